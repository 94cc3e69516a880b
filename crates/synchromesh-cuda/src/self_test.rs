//! Whether a device computes what the CPU computes, before anything is entrusted to it.

use std::sync::Arc;

use synchromesh_ring::{Backend, BackendError, Cpu, Error, IndexSet, Ring, transcript};

use crate::cuda::Cuda;
use crate::device::Device;

/// Primes of a ring that are tried: what kernels do depends on how wide they are.
const TRIED: usize = 4;

impl<D: Device> Cuda<D> {
    /// Carries out every primitive and every stage at the ring's degree, modulo the narrowest and the widest of its primes,
    /// and compares with the CPU bit for bit: no card or driver is believed on its word.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] with the operation that differs, or when the device fails.
    pub fn self_test(&self) -> Result<(), BackendError> {
        let mut primes: Vec<usize> = (0..self.ring.moduli().len()).collect();
        primes.sort_by_key(|&prime| self.ring.modulus(prime).value());
        if primes.len() > TRIED {
            primes.drain(TRIED / 2..primes.len() - TRIED / 2);
        }
        let primes: IndexSet = primes.into_iter().collect();
        let values: Vec<u64> = primes.iter().map(|prime| self.ring.modulus(prime).value()).collect();
        let failed = |reason: String| BackendError::Unavailable { device: self.name(), reason };
        let ring = Ring::new(self.ring.log_n(), &values).map_err(|error| failed(error.to_string()))?;
        let cpu = Cpu::open(Arc::new(ring))?;
        let of_device = |error| match error {
            Error::Backend(error) => error,
            error => failed(error.to_string()),
        };
        let expected = transcript::everything(&cpu, &(0..values.len()).collect()).map_err(of_device)?;
        let found = transcript::everything(self, &primes).map_err(of_device)?;
        match found.iter().zip(&expected).find(|(found, expected)| found != expected) {
            None => Ok(()),
            Some(((operation, _), _)) => {
                let log_n = self.ring.log_n();
                Err(failed(format!("it failed its self-test at N = 2^{log_n}: {operation} differs from the CPU's")))
            }
        }
    }
}
