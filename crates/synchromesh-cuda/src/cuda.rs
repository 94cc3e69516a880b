//! [`Cuda`]: a device with a ring's constants on it, and how it is to be used.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use synchromesh_ring::backend::Open;
use synchromesh_ring::{BackendError, Ring};

use crate::device::{Device, DeviceError, First, Properties};
use crate::memory::Pool;
use crate::tables::Tables;

/// log2 of the largest degree that one block of threads transforms; its points take 64 KiB of shared memory.
pub(crate) const ONE_BLOCK_LOG_N: u32 = 13;

/// How the stages of a key switch become launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stages {
    /// A launch for each primitive, all limbs at once: what fused stages are measured against.
    Primitive,
    /// Neighbouring primitives in one launch, where there is a kernel for them.
    #[default]
    Fused,
}

/// How a transform becomes launches where one block of threads does not hold its points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transforms {
    /// In two, each a pass over memory.
    TwoPasses,
    /// In one, by a cluster of blocks that put points into each other's shared memory, 2^log_points points a block: where
    /// the device has clusters of 2 to 8 blocks that hold a polynomial so, else as by `TwoPasses`.
    Clusters {
        /// log2 of the points of a block, 6 to 13.
        log_points: u32,
    },
}

impl Default for Transforms {
    /// Clusters of the fewest blocks.
    fn default() -> Self {
        Self::Clusters { log_points: ONE_BLOCK_LOG_N }
    }
}

/// Launches of a kernel, and the seconds that they took together by the device's clock.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Timed {
    /// How many.
    pub launches: u64,
    /// Seconds of all.
    pub seconds: f64,
}

/// A device that computes on the RNS polynomials of one ring.
///
/// Work is queued in order; [`Backend::download`](synchromesh_ring::Backend::download) waits. Buffers come from a pool within a budget of bytes.
pub struct Cuda<D: Device> {
    pub(crate) ring: Arc<Ring>,
    tables: Arc<Tables<D>>,
    stages: Stages,
    transforms: Transforms,
    waits: bool,
    times: Option<Mutex<BTreeMap<&'static CStr, Timed>>>,
    pool: Arc<Pool<D>>,
}

impl<D: Device> Cuda<D> {
    /// The ring's constants on `device`, whose buffers may hold `budget` bytes in all; without a budget, nine tenths of
    /// its memory.
    ///
    /// # Errors
    /// [`BackendError::Memory`] where the constants alone exceed the budget, [`BackendError::Unavailable`] when the
    /// device fails.
    pub fn new(ring: Arc<Ring>, device: D, budget: Option<u64>) -> Result<Self, BackendError> {
        let budget = budget.unwrap_or(device.properties().memory_bytes / 10 * 9);
        let pool = Pool::new(device, budget);
        let tables = Arc::new(Tables::new(&pool, &ring)?);
        let (stages, transforms) = (Stages::default(), Transforms::default());
        Ok(Self { tables, ring, stages, transforms, waits: false, times: None, pool })
    }

    /// The same, by `stages`; results do not depend on it.
    #[must_use]
    pub fn with_stages(mut self, stages: Stages) -> Self {
        self.stages = stages;
        self
    }

    /// The same, with transforms in other launches; results do not depend on it.
    #[must_use]
    pub fn with_transforms(mut self, transforms: Transforms) -> Self {
        self.transforms = transforms;
        self
    }

    /// The same, waiting after each launch: for whoever times operations one by one.
    #[must_use]
    pub fn waiting(mut self) -> Self {
        self.waits = true;
        self
    }

    /// The same, timing each launch by the device's clock and waiting for it: for whoever wants to know which kernels take how
    /// long. Not for recordings.
    #[must_use]
    pub fn timing(mut self) -> Self {
        self.times = Some(Mutex::default());
        self
    }

    /// What launches of each kernel took since the last call, under [`Self::timing`].
    #[must_use]
    pub fn take_times(&self) -> BTreeMap<&'static CStr, Timed> {
        let times = self.times.as_ref().map(|times| times.lock().unwrap_or_else(PoisonError::into_inner));
        times.map_or_else(BTreeMap::new, |mut times| std::mem::take(&mut *times))
    }

    /// Runs `launch` of a kernel, on the clock if there is one.
    pub(crate) fn timed(
        &self,
        kernel: &'static CStr,
        launch: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let Some(times) = &self.times else { return launch() };
        let device = self.pool.device();
        let from = device.mark()?;
        launch()?;
        let seconds = device.seconds(&from, &device.mark()?)?;
        let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
        let kernel = times.entry(kernel).or_default();
        kernel.launches += 1;
        kernel.seconds += seconds;
        Ok(())
    }

    /// How a transform becomes launches.
    pub(crate) const fn transforms(&self) -> Transforms {
        self.transforms
    }

    /// How the stages of a key switch become launches.
    pub(crate) const fn stages(&self) -> Stages {
        self.stages
    }

    /// Whether every launch is waited for.
    pub(crate) const fn waits(&self) -> bool {
        self.waits
    }

    /// What is known of the device.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        self.pool.device().properties()
    }

    /// Most bytes that buffers may hold.
    #[must_use]
    pub fn memory_budget(&self) -> u64 {
        self.pool.budget()
    }

    /// Bytes that buffers hold, the ring's constants among them.
    #[must_use]
    pub fn memory_in_use(&self) -> u64 {
        self.pool.used_bytes()
    }

    /// Bytes that were copied to the device so far, the ring's constants among them; arguments of launches are none.
    #[must_use]
    pub fn uploaded_bytes(&self) -> u64 {
        self.pool.uploaded_bytes()
    }

    /// Waits for all queued work.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.pool.device().synchronize()
    }

    pub(crate) const fn pool(&self) -> &Arc<Pool<D>> {
        &self.pool
    }

    pub(crate) const fn ring_tables(&self) -> &Arc<Tables<D>> {
        &self.tables
    }
}

impl<D: First> Open for Cuda<D> {
    fn open(ring: &Arc<Ring>) -> Result<Self, BackendError> {
        let device = Self::new(Arc::clone(ring), D::first()?, None)?;
        if D::TESTED {
            device.self_test()?;
        }
        Ok(device)
    }
}
