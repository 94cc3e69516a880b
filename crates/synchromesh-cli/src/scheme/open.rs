//! The devices this program computes on, each opened for a ring.

use crate::error::Error;
use std::sync::Arc;
use synchromesh_ring::{Backend, Cpu, Ring};

/// A backend that can be had by its type.
pub trait Open: Backend {
    /// Opens it for a ring.
    ///
    /// # Errors
    /// What the machine lacks.
    fn open(ring: &Arc<Ring>) -> Result<Self, Error>;
}

impl Open for Cpu {
    fn open(ring: &Arc<Ring>) -> Result<Self, Error> {
        Ok(Self::open(Arc::clone(ring)).map_err(device_error)?)
    }
}

#[cfg(feature = "cuda")]
impl Open for synchromesh_cuda::Cuda<synchromesh_cuda::Driver> {
    fn open(ring: &Arc<Ring>) -> Result<Self, Error> {
        let device = synchromesh_cuda::Driver::open(0)?;
        Ok(Self::new(Arc::clone(ring), device, None).map_err(device_error)?)
    }
}

#[cfg(feature = "emulated")]
impl Open for synchromesh_cuda::Cuda<synchromesh_cuda::Emulated> {
    fn open(ring: &Arc<Ring>) -> Result<Self, Error> {
        let device = synchromesh_cuda::Emulated::new(synchromesh_cuda::Order::default());
        Ok(Self::new(Arc::clone(ring), device, None).map_err(device_error)?)
    }
}

fn device_error(error: synchromesh_ring::BackendError) -> synchromesh_rlwe::Error {
    synchromesh_ring::Error::from(error).into()
}
