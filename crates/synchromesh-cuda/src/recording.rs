//! Work that is written down once and done again: CUDA graphs, and the work for many operands merged into one launch each.

use std::any::Any;
use std::sync::Arc;

use synchromesh_ring::{BackendError, Error as RingError};

use crate::cuda::Cuda;
use crate::device::{Device, DeviceError};
use crate::memory::{DeviceBuffer, Pool};
use crate::tables::Tables;
use crate::work::{Arguments, Work};

/// The work of a function for several operands, ready to be done again; see [`Cuda::record`].
///
/// It owns the function and so what the function reads, and the memory in which the function computed.
pub struct Recording<D: Device, T> {
    graph: D::Graph,
    results: Vec<T>,
    launches: usize,
    _lists: Option<DeviceBuffer<D>>,
    memory: Memory<D>,
    _tables: Arc<Tables<D>>,
    _run: Box<dyn Any>,
}

/// Memory that a recording computes in.
struct Memory<D: Device> {
    pool: Arc<Pool<D>>,
    taken: Vec<(u64, usize)>,
}

impl<D: Device> Drop for Memory<D> {
    fn drop(&mut self) {
        self.pool.forget(&self.taken);
    }
}

fn failed<E: From<RingError>>(error: DeviceError) -> E {
    RingError::from(BackendError::from(error)).into()
}

impl<D: Device> Cuda<D> {
    /// Writes down what `run` has the device do for each operand 0, 1, .. below `count`, merged into one launch for each
    /// step where there are several operands, and does it once.
    ///
    /// `run` is called for operand 0 once before, so that what is prepared on first use is there; then for each operand
    /// with nothing being computed, so that it must decide nothing by results and copy nothing to or from the device.
    /// Operands may share what they read and must need the same work. On a card the work becomes a CUDA graph. One
    /// recording is made at a time; other threads' work is not written down.
    ///
    /// # Errors
    /// What `run` returns; [`DeviceError::Recording`] for a transfer and [`DeviceError::Unlike`] for operands that need
    /// different work, as [`BackendError::Unavailable`]; [`BackendError::Memory`] where the operands' temporary memory
    /// together exceeds the budget.
    pub fn record<T, E: From<RingError>>(
        &self,
        count: usize,
        run: impl Fn(usize) -> Result<T, E> + 'static,
    ) -> Result<Recording<D, T>, E> {
        run(0)?;
        let pool = self.pool();
        pool.begin_recording(count).map_err(failed::<E>)?;
        let operands: Result<Vec<(T, Vec<Work>)>, E> =
            (0..count).map(|i| run(i).map(|result| (result, pool.end_operand()))).collect();
        let memory = Memory { pool: Arc::clone(pool), taken: pool.end_recording() };
        let (results, mut lists): (Vec<T>, Vec<Vec<Work>>) = operands?.into_iter().unzip();
        let (work, list) = if lists.len() > 1 {
            let (work, list) = self.merge(&lists).map_err(failed::<E>)?;
            (work, Some(list))
        } else {
            (lists.pop().unwrap_or_default(), None)
        };
        let graph = pool.device().graph(&work).map_err(failed::<E>)?;
        let (tables, run) = (Arc::clone(self.ring_tables()), Box::new(run));
        let launches = work.len();
        let recording = Recording { graph, results, launches, _lists: list, memory, _tables: tables, _run: run };
        recording.replay().map_err(failed::<E>)?;
        Ok(recording)
    }

    /// One step for all operands at a time, and where the lists of arguments are.
    fn merge(&self, operands: &[Vec<Work>]) -> Result<(Vec<Work>, DeviceBuffer<D>), DeviceError> {
        let unlike = |item, reason: String| Err(DeviceError::Unlike { item, reason });
        for (item, work) in operands.iter().enumerate() {
            if work.len() != operands[0].len() {
                return unlike(item, format!("{} steps against {}", work.len(), operands[0].len()));
            }
        }
        let mut words: Vec<u64> = Vec::new();
        let mut steps: Vec<(&Work, usize)> = Vec::new();
        for (step, first) in operands[0].iter().enumerate() {
            // Lists begin where 16 bytes do.
            words.resize(words.len().next_multiple_of(2), 0);
            steps.push((first, words.len()));
            for (item, work) in operands.iter().enumerate() {
                if !work[step].merges_with(first) {
                    return unlike(item, format!("step {step} is another one"));
                }
                if let Work::Launch { arguments, .. } = &work[step] {
                    words.extend_from_slice(packed(arguments));
                }
            }
        }
        let mut list = self.pool().take(words.len())?;
        list.write(0, &words)?;
        let mut merged = Vec::with_capacity(steps.len());
        for (step, (first, at)) in steps.into_iter().enumerate() {
            match first {
                Work::Launch { kernel, launch, .. } => {
                    let address = list.address() + 8 * at as u64;
                    merged.push(Work::merged(kernel, *launch, address, operands.len() as u32));
                }
                Work::Clear { .. } => merged.extend(operands.iter().map(|work| work[step].clone())),
            }
        }
        Ok((merged, list))
    }
}

/// A list of arguments, as long as the kernel's type.
fn packed(arguments: &Arguments) -> &[u64] {
    &arguments.words()[..arguments.bytes() / size_of::<u64>()]
}

impl<D: Device, T> Recording<D, T> {
    /// Does it again: what `run` returned holds new results, from what its operands hold now.
    ///
    /// # Errors
    /// [`DeviceError::Lost`], [`DeviceError::Launch`].
    pub fn replay(&self) -> Result<(), DeviceError> {
        // SAFETY: what the work reaches is memory of this recording, of its lists, of the ring's constants, or was there
        // when it was recorded; memory is not given back to the device while there are recordings.
        unsafe { self.memory.pool.device().replay(&self.graph) }
    }

    /// What `run` returned for each operand.
    #[must_use]
    pub fn results(&self) -> &[T] {
        &self.results
    }

    /// Launches of one replay.
    #[must_use]
    pub const fn launches(&self) -> usize {
        self.launches
    }

    /// Seconds of a replay by the device's clock: the median of `repeats`, after one.
    ///
    /// # Errors
    /// As [`Recording::replay`].
    pub fn seconds(&self, repeats: usize) -> Result<f64, DeviceError> {
        let device = self.memory.pool.device();
        self.replay()?;
        let mut times = Vec::with_capacity(repeats.max(1));
        for _ in 0..repeats.max(1) {
            let from = device.mark()?;
            self.replay()?;
            let to = device.mark()?;
            times.push(device.seconds(&from, &to)?);
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }

    /// Waits for all replays.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    pub fn wait(&self) -> Result<(), DeviceError> {
        self.memory.pool.device().synchronize()
    }
}
