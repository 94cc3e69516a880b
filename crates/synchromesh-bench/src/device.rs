//! Where measurements run: the CPU, a card, or a card's kernels emulated; and operations timed there.

use std::hint::black_box;

use synchromesh_ring::Cpu;
use synchromesh_ring::backend::Open;

use crate::Error;
use crate::timing::median_seconds;

/// A device that this crate was built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Device {
    /// The CPU, one thread.
    #[default]
    Cpu,
    /// The first card.
    #[cfg(feature = "cuda")]
    Cuda,
    /// The kernels of a card, emulated: for small degrees, and times that mean nothing.
    #[cfg(feature = "emulated")]
    Emulated,
}

/// Runs an expression in which `$backend` names the type of a device's backend. The crate that uses it has features of the
/// same names.
#[macro_export]
macro_rules! on_device {
    ($device:expr, $backend:ident => $body:expr) => {
        match $device {
            $crate::device::Device::Cpu => {
                type $backend = synchromesh_ring::Cpu;
                $body
            }
            #[cfg(feature = "cuda")]
            $crate::device::Device::Cuda => {
                type $backend = synchromesh_cuda::Cuda<synchromesh_cuda::Driver>;
                $body
            }
            #[cfg(feature = "emulated")]
            $crate::device::Device::Emulated => {
                type $backend = synchromesh_cuda::Cuda<synchromesh_cuda::Emulated>;
                $body
            }
        }
    };
}
pub use on_device;

/// A backend on which work is timed.
pub trait Measured: Open {
    /// Whether what is timed may copy to or from the device's memory.
    const COPIES: bool;

    /// Waits until all work is done.
    ///
    /// # Errors
    /// When the device fails.
    fn wait(&self) -> Result<(), Error>;

    /// The same, each operation done when its call returns.
    #[must_use]
    fn waiting(self) -> Self;

    /// The median time of `run` for operands 0, 1, .. below `batch`: one after another on the CPU, elsewhere in one launch
    /// for each step, recorded once and replayed.
    ///
    /// # Errors
    /// What `run` returns, or when the device fails.
    fn time<T>(&self, batch: usize, run: impl Fn(usize) -> synchromesh::Result<T> + 'static) -> Result<Times, Error>;
}

/// How long a batch takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// Median seconds, waited for.
    pub seconds: f64,
    /// Launches, where there are launches.
    pub launches: Option<usize>,
    /// Median seconds by the device's own clock, where it has one.
    pub device_seconds: Option<f64>,
}

impl Measured for Cpu {
    const COPIES: bool = true;

    fn wait(&self) -> Result<(), Error> {
        Ok(())
    }

    fn waiting(self) -> Self {
        self
    }

    fn time<T>(&self, batch: usize, run: impl Fn(usize) -> synchromesh::Result<T> + 'static) -> Result<Times, Error> {
        let all = || (0..batch).try_for_each(|i| run(i).map(|result| drop(black_box(result))));
        Ok(Times { seconds: median_seconds(all)?, launches: None, device_seconds: None })
    }
}

impl Device {
    /// Whether times on it say something.
    #[must_use]
    pub const fn is_real(self) -> bool {
        match self {
            #[cfg(feature = "emulated")]
            Self::Emulated => false,
            _ => true,
        }
    }

    /// Whether it computes in the memory of this process.
    #[must_use]
    pub const fn is_host(self) -> bool {
        match self {
            #[cfg(feature = "cuda")]
            Self::Cuda => false,
            _ => true,
        }
    }
}

#[cfg(any(feature = "cuda", feature = "emulated"))]
mod launched {
    //! Work as recorded launches.

    use synchromesh_cuda::{Cuda, First};

    use super::{Error, Measured, Times, median_seconds};

    /// Replays of which the median counts.
    pub const REPEATS: usize = 25;

    impl<D: First> Measured for Cuda<D> {
        const COPIES: bool = false;

        fn wait(&self) -> Result<(), Error> {
            Ok(self.synchronize()?)
        }

        fn waiting(self) -> Self {
            self.waiting()
        }

        fn time<T>(
            &self,
            batch: usize,
            run: impl Fn(usize) -> synchromesh::Result<T> + 'static,
        ) -> Result<Times, Error> {
            let recording = self.record(batch, move |i| run(i).map_err(Error::from))?;
            let seconds = median_seconds(|| recording.replay().and_then(|()| recording.wait()))?;
            let device_seconds = Some(recording.seconds(REPEATS)?);
            Ok(Times { seconds, launches: Some(recording.launches()), device_seconds })
        }
    }
}

#[cfg(any(feature = "cuda", feature = "emulated"))]
pub use launched::REPEATS;
