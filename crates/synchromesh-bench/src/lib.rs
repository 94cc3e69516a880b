//! Benches of every layer: medians on one thread, reported as data that scripts read.
//!
//! Any parameters run, secure or not; each report carries its estimated security bits.

#![forbid(unsafe_code)]

pub mod bootstrap;
pub mod circuits;
pub mod decryptions;
pub mod device;
pub mod exact_refreshes;
pub mod joint;
pub mod key_switch;
pub mod matmul;
pub mod memory;
pub mod noise;
pub mod ntt;
pub mod numbers;
pub mod refreshes;
pub mod scaling;
pub mod scheme;
pub mod sign;
pub mod slicing;
pub mod timing;
pub mod tune;

/// Errors of a bench request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The parameters cannot be built.
    #[error(transparent)]
    Rlwe(#[from] synchromesh_rlwe::Error),
    /// A scheme refused parameters or operands.
    #[error(transparent)]
    Scheme(#[from] synchromesh::Error),
    /// A device that cannot be had, or failed.
    #[error(transparent)]
    Device(#[from] synchromesh_cuda::DeviceError),
    /// Not enough primes of the width asked for.
    #[error(transparent)]
    Prime(#[from] synchromesh_ring::prime::PrimeError),
    /// Parties could not make a key or decrypt.
    #[error(transparent)]
    Parties(#[from] synchromesh_parties::Error),
    /// A request that makes no sense.
    #[error("{reason}")]
    Request {
        /// What is wrong, with the numbers.
        reason: String,
    },
}

impl From<synchromesh_ring::Error> for Error {
    fn from(error: synchromesh_ring::Error) -> Self {
        Self::Rlwe(error.into())
    }
}

impl From<synchromesh_ring::BackendError> for Error {
    fn from(error: synchromesh_ring::BackendError) -> Self {
        synchromesh_ring::Error::from(error).into()
    }
}

impl Error {
    /// A stable word for scripts.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Rlwe(e) => e.kind(),
            Self::Scheme(e) => e.kind(),
            Self::Device(e) => e.kind(),
            Self::Parties(e) => e.kind(),
            Self::Prime(_) => "prime",
            Self::Request { .. } => "request",
        }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Rlwe(e) => e.remedy(),
            Self::Scheme(e) => e.remedy(),
            Self::Device(e) => e.remedy().to_owned(),
            Self::Parties(e) => e.remedy(),
            Self::Prime(_) => "choose a wider width, or a smaller degree".to_owned(),
            Self::Request { .. } => "correct the request".to_owned(),
        }
    }
}
