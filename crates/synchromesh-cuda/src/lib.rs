//! The GPU backend: [`Cuda`] implements [`synchromesh_ring::Backend`] with kernels that run on a [`Device`].
//!
//! There are two devices, and the code above them does not know which it has:
//! - `Driver` (feature `driver`): an NVIDIA card. The driver is loaded when a device is opened and the kernels are
//!   embedded as PTX, so that nothing of CUDA is needed to build, and only the driver to run.
//! - `Emulated` (feature `emulated`): the same kernels, compiled as C++ over an emulator of CUDA's execution model that
//!   runs threads in a chosen order and checks what they do: their sources, or (feature `translated`) the PTX itself,
//!   translated to C++ by the build script. Slow; for tests.
//!
//! Results are bit for bit those of the CPU backend: residues are canonical, and where a result is defined by an
//! approximation (the overflow counts of base conversions, the uniform sampler) the definition is in integers or in
//! unfused IEEE operations.
//!
//! **Architecture Invariant:** host and device memory meet in `upload`, `download` and `reduce_signed` only.

#[cfg(any(feature = "driver", feature = "emulated"))]
mod any;
mod arguments;
mod backend;
mod convert;
#[cfg(feature = "emulated")]
mod counts;
mod cuda;
mod device;
#[cfg(feature = "driver")]
mod driver;
#[cfg(feature = "emulated")]
mod emulated;
mod fused;
mod launch;
mod memory;
#[cfg(feature = "emulated")]
pub mod model;
mod recording;
mod self_test;
#[cfg(feature = "driver")]
mod staging;
mod tables;
mod work;

#[cfg(any(feature = "driver", feature = "emulated"))]
pub use any::{AnyBuffer, AnyConversion, AnyDevice, DeviceChoice};
pub use convert::DeviceConversion;
#[cfg(feature = "emulated")]
pub use counts::Counts;
pub use cuda::{Cuda, Stages, Timed, Transforms};
pub use device::{Device, DeviceError, First, Properties};
#[cfg(feature = "driver")]
pub use driver::Driver;
#[cfg(feature = "emulated")]
pub use emulated::{Counted, Emulated, Kernels, Order};
pub use memory::DeviceBuffer;
pub use recording::Recording;
pub use work::{Argument, Arguments, Launch, Parameter, Work};
