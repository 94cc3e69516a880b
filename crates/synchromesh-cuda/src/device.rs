//! What a device offers: memory by address, transfers, and launches of named kernels.

use std::ffi::CStr;
use std::sync::Arc;

use synchromesh_ring::BackendError;

use crate::work::{Arguments, Launch, Work};

/// Why a device cannot be had, or could not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is no driver on this machine.
    #[error("no NVIDIA driver on this machine: {library} cannot be loaded")]
    NoDriver {
        /// The library that was looked for.
        library: &'static str,
    },
    /// The driver does not know the PTX that the kernels are embedded as.
    #[error("the driver supports CUDA {have}; the kernels need {need}")]
    OldDriver {
        /// Its version, as major.minor.
        have: String,
        /// The version needed, as major.minor.
        need: String,
    },
    /// There is no device of that number.
    #[error("there is no CUDA device {ordinal}; the driver has {count}")]
    NoDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The card is too old for the kernels.
    #[error("{device} has compute capability {have}; the kernels need {need}")]
    Unsupported {
        /// Its name.
        device: String,
        /// Its compute capability.
        have: String,
        /// The least one.
        need: String,
    },
    /// The driver's compiler does not take the kernels.
    #[error("{device} does not load the kernels: {reason}")]
    Kernels {
        /// Its name.
        device: String,
        /// The driver's words, and its compiler's.
        reason: String,
    },
    /// The budget of device memory is used up.
    #[error("{device}: {needed} bytes are needed, {in_use} of a budget of {budget} are in use")]
    MemoryBudget {
        /// Its name.
        device: String,
        /// Bytes asked for.
        needed: u64,
        /// Bytes that buffers hold.
        in_use: u64,
        /// Most bytes that they may hold.
        budget: u64,
    },
    /// A launch that the device refuses, or a kernel that broke a rule of it.
    #[error("{device}: kernel {kernel}: {reason}")]
    Launch {
        /// The device's name.
        device: String,
        /// The kernel's name.
        kernel: String,
        /// What is wrong.
        reason: String,
    },
    /// The device failed or is gone; no further work on it succeeds.
    #[error("{device} failed in {operation}: {reason}")]
    Lost {
        /// Its name.
        device: String,
        /// What it was doing.
        operation: &'static str,
        /// The driver's words.
        reason: String,
    },
    /// An operand is in another device's memory.
    #[error("an operand is in the memory of another device than {device}")]
    OtherDevice {
        /// The device that was to compute.
        device: String,
    },
    /// A transfer, while work is written down to be done again: it would not be done again.
    #[error("{operation} while work is recorded: it is not part of what is replayed")]
    Recording {
        /// What was asked for.
        operation: &'static str,
    },
    /// Work for several operands that is to be merged, and is not the same for all of them.
    #[error("operand {item} needs other work than operand 0: {reason}")]
    Unlike {
        /// Which operand.
        item: usize,
        /// How it differs.
        reason: String,
    },
    /// A row that a buffer does not have.
    #[error("row {row} of a buffer of {rows} rows")]
    NoSuchRow {
        /// The row asked for.
        row: usize,
        /// The rows there are.
        rows: usize,
    },
}

impl DeviceError {
    /// A stable word for scripts.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NoDriver { .. } => "no_driver",
            Self::OldDriver { .. } => "old_driver",
            Self::NoDevice { .. } => "no_device",
            Self::Unsupported { .. } => "unsupported_device",
            Self::Kernels { .. } => "kernels_refused",
            Self::MemoryBudget { .. } => "memory_budget",
            Self::Launch { .. } => "launch",
            Self::Lost { .. } => "device_lost",
            Self::OtherDevice { .. } => "other_device",
            Self::Recording { .. } => "recording",
            Self::Unlike { .. } => "unlike_work",
            Self::NoSuchRow { .. } => "no_such_row",
        }
    }

    /// What the caller can do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::NoDriver { .. } => "install NVIDIA's driver, or compute on the CPU",
            Self::OldDriver { .. } => "install a newer driver, or compute on the CPU",
            Self::NoDevice { .. } => "choose a device that there is, or compute on the CPU",
            Self::Unsupported { .. } => "use a card of compute capability 8.0 or later, or compute on the CPU",
            Self::Kernels { .. } => "install a newer driver, or compute on the CPU; report what it says",
            Self::MemoryBudget { .. } => "raise the budget, drop keys or ciphertexts, or use smaller parameters",
            Self::Launch { .. } => "report this: it is a defect of this program",
            Self::Lost { .. } => "start the program again, which gives back the card, or compute on the CPU",
            Self::OtherDevice { .. } => "bring the operands to one device",
            Self::Recording { .. } => "upload and prepare before recording, download after a replay",
            Self::Unlike { .. } => "merge operands of one level and one domain, or run them one after another",
            Self::NoSuchRow { .. } => "report this: it is a defect of this program",
        }
    }
}

impl From<DeviceError> for BackendError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::MemoryBudget { device, needed, in_use, budget } => {
                Self::Memory { device, needed, available: budget.saturating_sub(in_use) }
            }
            DeviceError::Lost { device, operation, reason } => {
                Self::Lost { device, reason: format!("{operation}: {reason}") }
            }
            DeviceError::OtherDevice { device } => Self::OtherDevice { device },
            error => Self::Unavailable { device: "cuda".to_owned(), reason: error.to_string() },
        }
    }
}

/// Most blocks of a cluster that every card with clusters takes.
pub(crate) const MAX_CLUSTER: u32 = 8;

/// What is known of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// A short name for results: "cuda:0", "emulated".
    pub name: String,
    /// What the maker calls it.
    pub model: String,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Most bytes of shared memory of one block of threads.
    pub shared_bytes: u32,
    /// Bytes of its second-level cache.
    pub cache_bytes: u64,
    /// Most blocks of a cluster, which reach each other's shared memory; 1 where there are none.
    pub cluster_blocks: u32,
    /// Whether it multiplies doubles at half the rate of floats or faster: transforms modulo primes of at most 50 bits are
    /// then in doubles, with the same results.
    pub fast_doubles: bool,
}

/// A device that can be had by its type.
pub trait First: Device + Sized {
    /// Opens the first one.
    ///
    /// # Errors
    /// What the machine lacks.
    fn first() -> Result<Self, DeviceError>;

    /// Whether what it computes is compared with the CPU before it is used: a card's driver compiles the kernels once more.
    const TESTED: bool;
}

/// A device: one queue of work, in order.
pub trait Device: Send + Sync + 'static {
    /// A list of work, prepared.
    type Graph: Send + Sync;
    /// A point in time.
    type Mark: Send;

    /// What is known of it.
    fn properties(&self) -> &Properties;

    /// `bytes` bytes of device memory, contents unspecified; the address.
    ///
    /// # Errors
    /// [`DeviceError::Lost`], or [`DeviceError::MemoryBudget`] where the device has no more.
    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError>;

    /// Frees what [`Device::allocate`] gave, after the work that is queued.
    ///
    /// # Safety
    /// Nothing uses that memory any more but queued work.
    unsafe fn free(&self, address: u64, bytes: usize);

    /// Copies words to the device, after the work that is queued; `words` may be reused on return.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    ///
    /// # Safety
    /// The memory from `address` on holds as many words.
    unsafe fn write(&self, words: &[u64], address: u64) -> Result<(), DeviceError>;

    /// Copies words from the device, after the work that is queued, and waits.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    ///
    /// # Safety
    /// The memory from `address` on holds as many words.
    unsafe fn read(&self, address: u64, words: &mut [u64]) -> Result<(), DeviceError>;

    /// Sets words to 0, after the work that is queued.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    ///
    /// # Safety
    /// The memory from `address` on holds as many words.
    unsafe fn clear(&self, address: u64, words: usize) -> Result<(), DeviceError>;

    /// Queues a kernel.
    ///
    /// # Errors
    /// [`DeviceError::Launch`], [`DeviceError::Lost`].
    ///
    /// # Safety
    /// The arguments are those the kernel takes, and all that it reaches is memory of this device.
    unsafe fn launch(&self, kernel: &CStr, launch: Launch, arguments: &Arguments) -> Result<(), DeviceError>;

    /// Prepares a list of work to be queued as one, again and again.
    ///
    /// # Errors
    /// As [`Device::launch`].
    fn graph(&self, work: &[Work]) -> Result<Self::Graph, DeviceError>;

    /// Queues a prepared list.
    ///
    /// # Errors
    /// [`DeviceError::Launch`], [`DeviceError::Lost`].
    ///
    /// # Safety
    /// As [`Device::launch`] and [`Device::clear`], for everything in the list.
    unsafe fn replay(&self, graph: &Self::Graph) -> Result<(), DeviceError>;

    /// A point in time: when the work that is queued is done.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    fn mark(&self) -> Result<Self::Mark, DeviceError>;

    /// Waits for both points; the seconds between them, by the device's clock.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    fn seconds(&self, from: &Self::Mark, to: &Self::Mark) -> Result<f64, DeviceError>;

    /// Waits for all queued work.
    ///
    /// # Errors
    /// [`DeviceError::Lost`].
    fn synchronize(&self) -> Result<(), DeviceError>;
}

/// One device that several backends share: one queue, and the kernels loaded once.
impl<D: Device> Device for Arc<D> {
    type Graph = D::Graph;
    type Mark = D::Mark;

    fn properties(&self) -> &Properties {
        (**self).properties()
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        (**self).allocate(bytes)
    }

    unsafe fn free(&self, address: u64, bytes: usize) {
        // SAFETY: forwarded contract.
        unsafe { (**self).free(address, bytes) }
    }

    unsafe fn write(&self, words: &[u64], address: u64) -> Result<(), DeviceError> {
        // SAFETY: forwarded contract.
        unsafe { (**self).write(words, address) }
    }

    unsafe fn read(&self, address: u64, words: &mut [u64]) -> Result<(), DeviceError> {
        // SAFETY: forwarded contract.
        unsafe { (**self).read(address, words) }
    }

    unsafe fn clear(&self, address: u64, words: usize) -> Result<(), DeviceError> {
        // SAFETY: forwarded contract.
        unsafe { (**self).clear(address, words) }
    }

    unsafe fn launch(&self, kernel: &CStr, launch: Launch, arguments: &Arguments) -> Result<(), DeviceError> {
        // SAFETY: forwarded contract.
        unsafe { (**self).launch(kernel, launch, arguments) }
    }

    fn graph(&self, work: &[Work]) -> Result<Self::Graph, DeviceError> {
        (**self).graph(work)
    }

    unsafe fn replay(&self, graph: &Self::Graph) -> Result<(), DeviceError> {
        // SAFETY: forwarded contract.
        unsafe { (**self).replay(graph) }
    }

    fn mark(&self) -> Result<Self::Mark, DeviceError> {
        (**self).mark()
    }

    fn seconds(&self, from: &Self::Mark, to: &Self::Mark) -> Result<f64, DeviceError> {
        (**self).seconds(from, to)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        (**self).synchronize()
    }
}
