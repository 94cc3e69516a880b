//! The emulated device: host memory, and the kernels compiled as C++, from their sources or from the PTX made of them.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::counts::Counts;
use crate::device::{Device, DeviceError, First, MAX_CLUSTER, Properties};
use crate::work::{Arguments, Launch, Work};

unsafe extern "C" {
    fn synchromesh_emulate(
        name: *const c_char,
        grid: *const u32,
        block: *const u32,
        cluster: u32,
        shared: usize,
        arguments: *const c_void,
        bytes: usize,
        sizes: *const usize,
        count: usize,
        manner: *const Manner,
    ) -> c_int;
    fn synchromesh_emulated_cache(bytes: usize) -> *mut c_void;
    fn synchromesh_emulated_cache_drop(cache: *mut c_void);
    fn synchromesh_emulated_kernel(set: u32, index: usize) -> *const c_char;
    fn synchromesh_emulated_fault(set: u32) -> *const c_char;
}

/// How a launch is run; twin of `Manner` in emulator/emulator.h.
#[repr(C)]
struct Manner {
    set: u32,
    order: u32,
    skipped: usize,
    counts: *mut Counts,
    cache: *mut c_void,
}

/// A launch, and what it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The kernel.
    pub kernel: String,
    /// The shape.
    pub launch: Launch,
    /// What was counted.
    pub counts: Counts,
}

/// The second-level cache of a device that runs samples, and the launches so far.
#[derive(Debug)]
struct Samples {
    cache: *mut c_void,
    launches: Vec<Counted>,
    /// Whether launches are run and counted.
    awake: bool,
}

// SAFETY: nothing refers to the cache but this.
unsafe impl Send for Samples {}

impl Drop for Samples {
    fn drop(&mut self) {
        // SAFETY: made for this object, and nobody else has it.
        unsafe { synchromesh_emulated_cache_drop(self.cache) };
    }
}

/// Which kernels an emulated device runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kernels {
    /// The sources, compiled as C++.
    #[default]
    Sources,
    /// The PTX that cards are given, translated to C++ (feature `translated`; without it there are none).
    Ptx,
    /// The same with the fault of this number in [`Emulated::faults`].
    Faulty(u16),
}

impl Kernels {
    const fn set(self) -> u32 {
        match self {
            Self::Sources => 0,
            Self::Ptx => 1,
            Self::Faulty(fault) => 2 + fault as u32,
        }
    }
}

/// In which order the clusters of a launch run, the blocks of a cluster between two barriers of it, and the threads of a
/// block between two barriers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// By index.
    #[default]
    Ascending,
    /// By falling index.
    Descending,
    /// Drawn anew between any two barriers, from this seed.
    Shuffled(u16),
}

impl Order {
    const fn number(self) -> u32 {
        match self {
            Self::Ascending => 0,
            Self::Descending => 1,
            Self::Shuffled(seed) => 2 + seed as u32,
        }
    }
}

/// An emulated device. Memory is the host's; work is done when it is queued.
#[derive(Debug, Clone)]
pub struct Emulated {
    properties: Properties,
    order: Order,
    skipped: usize,
    kernels: Kernels,
    /// By kernel, where launches are counted.
    counts: Option<Arc<Mutex<BTreeMap<String, Counts>>>>,
    samples: Option<Arc<Mutex<Samples>>>,
}

impl Emulated {
    /// A device whose threads run in the given order.
    #[must_use]
    pub fn new(order: Order) -> Self {
        let model = "an emulator of CUDA's execution model".to_owned();
        let name = "emulated".to_owned();
        let properties = Properties {
            name,
            model,
            memory_bytes: 4 << 30,
            shared_bytes: 160 << 10,
            cache_bytes: 40 << 20,
            cluster_blocks: 1,
            fast_doubles: false,
        };
        Self { properties, order, skipped: 0, kernels: Kernels::default(), counts: None, samples: None }
    }

    /// The same with fast multiplication of doubles.
    #[must_use]
    pub const fn with_fast_doubles(mut self) -> Self {
        self.properties.fast_doubles = true;
        self
    }

    /// The same with a second-level cache of so many bytes.
    #[must_use]
    pub const fn with_cache(mut self, bytes: u64) -> Self {
        self.properties.cache_bytes = bytes;
        self
    }

    /// The same with clusters of blocks.
    #[must_use]
    pub const fn with_clusters(mut self) -> Self {
        self.properties.cluster_blocks = MAX_CLUSTER;
        self
    }

    /// Plants a fault: at barrier `barrier` of a kernel, of the block or of the cluster, counted from 1, threads do not
    /// wait for each other.
    #[must_use]
    pub const fn without_barrier(mut self, barrier: usize) -> Self {
        self.skipped = barrier;
        self
    }

    /// The same with other kernels.
    #[must_use]
    pub const fn with_kernels(mut self, kernels: Kernels) -> Self {
        self.kernels = kernels;
        self
    }

    /// The same, counting what kernels of the PTX do; slower.
    #[must_use]
    pub fn counting(mut self) -> Self {
        self.counts = Some(Arc::default());
        self
    }

    /// The same with the kernels of the PTX, of each launch only the blocks at x = 0, of which two warps are counted for
    /// all: fast, with wrong results. Memory is found through a second-level cache of so many bytes, in lines of 512 KiB.
    /// Nothing is run until launches are first asked for.
    #[must_use]
    pub fn sampling(self, cache_bytes: u64) -> Self {
        // SAFETY: makes an object; `Samples` owns it.
        let cache = unsafe { synchromesh_emulated_cache(cache_bytes as usize) };
        let samples = Some(Arc::new(Mutex::new(Samples { cache, launches: Vec::new(), awake: false })));
        Self { samples, ..self.with_kernels(Kernels::Ptx).with_cache(cache_bytes) }
    }

    /// The launches since this was last asked, of a device that runs samples.
    #[must_use]
    pub fn take_launches(&self) -> Vec<Counted> {
        let samples = self.samples.as_ref().map(|samples| samples.lock().unwrap_or_else(PoisonError::into_inner));
        let take = |mut samples: MutexGuard<'_, Samples>| {
            samples.awake = true;
            std::mem::take(&mut samples.launches)
        };
        samples.map(take).unwrap_or_default()
    }

    /// What was counted of each kernel since this was last asked, by this device and its clones together.
    #[must_use]
    pub fn take_counts(&self) -> BTreeMap<String, Counts> {
        let counts = self.counts.as_ref().map(|counts| counts.lock().unwrap_or_else(PoisonError::into_inner));
        counts.map(|mut counts| std::mem::take(&mut *counts)).unwrap_or_default()
    }

    /// The folder of a library that takes the place of NVIDIA's driver and runs kernels on the emulator, for tests of
    /// `Driver`: to be put first into `LD_LIBRARY_PATH`; `emulator/driver.cpp` says what it can be told.
    /// None where none was built.
    #[must_use]
    pub const fn stand_in_driver() -> Option<&'static str> {
        option_env!("SYNCHROMESH_STAND_IN_FOLDER")
    }

    /// The names of all entry points of a set of kernels: of each kernel for one list of arguments and for several
    /// (`_merged`), and those that test the emulator: the sources with faults, PTX of single instructions.
    #[must_use]
    pub fn kernels(kernels: Kernels) -> Vec<&'static CStr> {
        // SAFETY: reads a table that is complete before main.
        texts(|index| unsafe { synchromesh_emulated_kernel(kernels.set(), index) })
    }

    /// The faults that are planted in the PTX, in words, to see that tests find them.
    #[must_use]
    pub fn faults() -> Vec<&'static CStr> {
        // SAFETY: reads a table that is complete before main.
        texts(|index| unsafe { synchromesh_emulated_fault(Kernels::Faulty(index as u16).set()) })
    }
}

/// The texts by their numbers, up to the first that there is not.
fn texts(text: impl Fn(usize) -> *const c_char) -> Vec<&'static CStr> {
    // SAFETY: the emulator's texts are literals.
    (0..).map(text).take_while(|text| !text.is_null()).map(|text| unsafe { CStr::from_ptr(text) }).collect()
}

/// Bytes of a line of the emulated second-level cache.
const CACHE_LINE: usize = 512 << 10;

fn layout(bytes: usize) -> Option<Layout> {
    // Large buffers begin where lines of the emulated cache do.
    let alignment = if bytes < CACHE_LINE { 256 } else { CACHE_LINE };
    Layout::from_size_align(bytes.max(1), alignment).ok()
}

/// The emulator's number of a fault as words.
const fn fault(number: c_int) -> &'static str {
    match number {
        1 => "there is no such kernel",
        2 => "the wrong number of arguments",
        3 => "an argument of the wrong size, or more than 4096 bytes of them",
        4 => "an empty or too large grid or block",
        5 => "too much shared memory, or half a word",
        6 => "some threads ended while others waited at a barrier",
        7 => "it wrote outside its shared memory",
        8 => "it has a barrier and is declared to have none",
        9 => "a cluster that does not divide the grid, or of more than 8 blocks",
        10 => "it asked for the shared memory of a block that its cluster does not have",
        11 => "it asked for the shared memory of a block that had not begun, or had ended",
        12 => "an access at an address that is no multiple of its bytes",
        13 => "an access outside its shared memory or its arguments",
        _ => "an unknown fault",
    }
}

impl First for Emulated {
    const TESTED: bool = false;

    fn first() -> Result<Self, DeviceError> {
        Ok(Self::new(Order::default()))
    }
}

impl Device for Emulated {
    type Graph = Vec<Work>;
    type Mark = Instant;

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        // SAFETY: the layout is not empty. Memory that samples leave alone costs nothing while it is zero.
        let make = |layout| unsafe { if self.samples.is_some() { alloc_zeroed(layout) } else { alloc(layout) } };
        let memory = layout(bytes).map(make).filter(|memory| !memory.is_null());
        let Some(memory) = memory else {
            let device = self.properties.name.clone();
            return Err(DeviceError::MemoryBudget { device, needed: bytes as u64, in_use: 0, budget: 0 });
        };
        // What a kernel reads before it was written shall not look like residues.
        if self.samples.is_none() {
            // SAFETY: the memory was just made, of `bytes` bytes.
            unsafe { memory.write_bytes(0xdb, bytes) };
        }
        Ok(memory.expose_provenance() as u64)
    }

    unsafe fn free(&self, address: u64, bytes: usize) {
        if let Some(layout) = layout(bytes) {
            // SAFETY: by contract this is what `allocate` gave for the same number of bytes.
            unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address as usize), layout) };
        }
    }

    unsafe fn write(&self, words: &[u64], address: u64) -> Result<(), DeviceError> {
        let to: *mut u64 = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: by contract there are as many words.
        unsafe { to.copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        Ok(())
    }

    unsafe fn read(&self, address: u64, words: &mut [u64]) -> Result<(), DeviceError> {
        let from: *const u64 = std::ptr::with_exposed_provenance(address as usize);
        // SAFETY: by contract there are as many words.
        unsafe { words.as_mut_ptr().copy_from_nonoverlapping(from, words.len()) };
        Ok(())
    }

    unsafe fn clear(&self, address: u64, words: usize) -> Result<(), DeviceError> {
        if self.samples.is_some() {
            // What samples leave means nothing, and memory that they have not touched costs nothing.
            return Ok(());
        }
        let to: *mut u64 = std::ptr::with_exposed_provenance_mut(address as usize);
        for i in 0..words {
            // SAFETY: by contract there are as many words. Volatile, as what is cleared may be secret and is not read.
            unsafe { to.add(i).write_volatile(0) };
        }
        Ok(())
    }

    unsafe fn launch(&self, kernel: &CStr, launch: Launch, arguments: &Arguments) -> Result<(), DeviceError> {
        let (grid, block) = (launch.grid, [launch.threads, 1, 1]);
        let mut counts = self.counts.as_ref().map(|counts| counts.lock().unwrap_or_else(PoisonError::into_inner));
        let mut samples = self.samples.as_ref().map(|samples| samples.lock().unwrap_or_else(PoisonError::into_inner));
        if samples.as_ref().is_some_and(|samples| !samples.awake) {
            return Ok(());
        }
        let mut sampled = Counts::default();
        let counts = match &samples {
            Some(_) => Some(&mut sampled),
            None => counts.as_mut().map(|counts| counts.entry(kernel.to_string_lossy().into_owned()).or_default()),
        };
        let manner = Manner {
            set: self.kernels.set(),
            order: self.order.number(),
            skipped: self.skipped,
            counts: counts.map_or(std::ptr::null_mut(), std::ptr::from_mut),
            cache: samples.as_ref().map_or(std::ptr::null_mut(), |samples| samples.cache),
        };
        // SAFETY: the lists are as long as they say; by contract the arguments are the kernel's. Nobody else has the counts.
        let number = unsafe {
            synchromesh_emulate(
                kernel.as_ptr(),
                grid.as_ptr(),
                block.as_ptr(),
                launch.cluster,
                launch.shared as usize,
                arguments.pointer(),
                arguments.bytes(),
                arguments.sizes().as_ptr(),
                arguments.sizes().len(),
                &raw const manner,
            )
        };
        if number == 0 {
            if let Some(samples) = &mut samples {
                let kernel = kernel.to_string_lossy().into_owned();
                samples.launches.push(Counted { kernel, launch, counts: sampled });
            }
            return Ok(());
        }
        Err(DeviceError::Launch {
            device: self.properties.name.clone(),
            kernel: kernel.to_string_lossy().into_owned(),
            reason: fault(number).to_owned(),
        })
    }

    fn graph(&self, work: &[Work]) -> Result<Vec<Work>, DeviceError> {
        Ok(work.to_vec())
    }

    unsafe fn replay(&self, graph: &Vec<Work>) -> Result<(), DeviceError> {
        graph.iter().try_for_each(|item| match item {
            // SAFETY: forwarded contract.
            Work::Launch { kernel, launch, arguments } => unsafe { self.launch(kernel, *launch, arguments) },
            // SAFETY: forwarded contract.
            Work::Clear { address, words } => unsafe { self.clear(*address, *words) },
        })
    }

    fn mark(&self) -> Result<Instant, DeviceError> {
        Ok(Instant::now())
    }

    fn seconds(&self, from: &Instant, to: &Instant) -> Result<f64, DeviceError> {
        Ok(to.duration_since(*from).as_secs_f64())
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}
