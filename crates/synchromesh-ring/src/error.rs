//! What can go wrong when a ring is built or a polynomial operation is asked for, and on a device.

use crate::threads::ThreadsError;

/// Why a device could not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// Not enough memory on the device.
    #[error("{device}: {needed} bytes are needed, {available} are available")]
    Memory {
        /// Device name.
        device: String,
        /// Bytes asked for.
        needed: u64,
        /// Bytes free.
        available: u64,
    },
    /// The device cannot be used.
    #[error("{device} cannot be used: {reason}")]
    Unavailable {
        /// Device name.
        device: String,
        /// What is missing.
        reason: String,
    },
    /// The device failed or is gone; no further work on it succeeds.
    #[error("{device} is lost: {reason}")]
    Lost {
        /// Device name.
        device: String,
        /// What failed.
        reason: String,
    },
    /// An operand is in another device's memory.
    #[error("an operand is in the memory of another device than {device}")]
    OtherDevice {
        /// Name of the device that was to compute.
        device: String,
    },
    /// The threads that the CPU was to compute on.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    /// A prime or degree this device has no kernel for.
    #[error("{device} has no kernel for modulus {modulus} at N = 2^{log_n}: {reason}")]
    Unsupported {
        /// Device name.
        device: String,
        /// The modulus.
        modulus: u64,
        /// log2 of the degree.
        log_n: u32,
        /// Which rule is broken.
        reason: String,
    },
}

impl BackendError {
    /// A stable word for scripts.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Memory { .. } => "memory_budget",
            Self::Unavailable { .. } => "device_unavailable",
            Self::Lost { .. } => "device_lost",
            Self::OtherDevice { .. } => "other_device",
            Self::Threads(error) => error.kind(),
            Self::Unsupported { .. } => "unsupported_modulus",
        }
    }

    /// What the caller can do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Memory { .. } => "use smaller parameters, fewer keys, or drop prepared keys",
            Self::Unavailable { .. } => "use the CPU backend, or lower SYNCHROMESH_ISA to one this machine has",
            Self::Lost { .. } => "start the program again, which gives back the card, or compute on the CPU",
            Self::OtherDevice { .. } => "bring the operands to one device: `transfer` on keys and ciphertexts",
            Self::Threads(error) => error.remedy(),
            Self::Unsupported { .. } => "use primes of 20 to 61 bits that are 1 mod 2N",
        }
    }
}

/// Errors of this crate; each carries the numbers involved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The ring degree is outside 2^10..2^18.
    #[error("ring degree 2^{log_n} is outside 2^10..2^18")]
    Degree {
        /// log2 of the requested degree.
        log_n: u32,
    },
    /// A modulus cannot serve in this ring.
    #[error("modulus {value} cannot be used: {reason}")]
    Modulus {
        /// The offending modulus.
        value: u64,
        /// Which rule it breaks.
        reason: String,
    },
    /// The same modulus stands in the table twice.
    #[error("modulus {value} stands in the prime table more than once")]
    Repeated {
        /// The repeated modulus.
        value: u64,
    },
    /// Two operands live on different primes.
    #[error("operands live on different primes: {left:?} and {right:?}")]
    PrimesDiffer {
        /// Prime indices of the left operand.
        left: Vec<usize>,
        /// Prime indices of the right operand.
        right: Vec<usize>,
    },
    /// A prime index does not exist, or is not in the set it should come from.
    #[error("prime index {index} is not among {have:?}")]
    NoSuchPrime {
        /// The index asked for.
        index: usize,
        /// The indices present.
        have: Vec<usize>,
    },
    /// Data of the wrong length was given.
    #[error("expected {expected} values, got {got}")]
    Length {
        /// Number of values expected.
        expected: usize,
        /// Number of values given.
        got: usize,
    },
    /// A coefficient is larger than it is said to be.
    #[error("a coefficient needs more than {bytes} bytes, which suffice for magnitudes up to {bound}")]
    Magnitude {
        /// The largest magnitude there should be.
        bound: u64,
        /// Bytes that hold it.
        bytes: usize,
    },
    /// The scaling asked for has no inverse: the error multiple shares a factor with a prime.
    #[error("the error multiple shares a factor with modulus {modulus}")]
    NotInvertible {
        /// The modulus.
        modulus: u64,
    },
    /// An even Galois element, or one not below 2N.
    #[error("{element} is no Galois element: it must be odd and below {two_n}")]
    GaloisElement {
        /// The element given.
        element: usize,
        /// 2N.
        two_n: usize,
    },
    /// The device failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl Error {
    /// A stable word for scripts.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Degree { .. } => "degree",
            Self::Modulus { .. } => "modulus",
            Self::Repeated { .. } => "repeated_modulus",
            Self::PrimesDiffer { .. } => "primes_differ",
            Self::NoSuchPrime { .. } => "no_such_prime",
            Self::Length { .. } => "length",
            Self::Magnitude { .. } => "magnitude",
            Self::NotInvertible { .. } => "not_invertible",
            Self::GaloisElement { .. } => "galois_element",
            Self::Backend(e) => e.kind(),
        }
    }

    /// What the caller can do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Degree { .. } => "choose N between 2^10 and 2^17 (2^18 for measurement only)",
            Self::Modulus { .. } => "use primes of 20 to 61 bits that are 1 mod 2N, for example from prime::ntt_primes",
            Self::Repeated { .. } => "list each prime once",
            Self::PrimesDiffer { .. } => "bring both operands to the same level first",
            Self::NoSuchPrime { .. } => "use indices of this ring's own prime table",
            Self::Length { .. } => "give N values for each limb",
            Self::Magnitude { .. } => "give the bound that the coefficients have",
            Self::NotInvertible { .. } => "choose a plaintext modulus coprime to every prime of the chain",
            Self::GaloisElement { .. } => "use 3^k mod 2N for a rotation by k, or 2N - 1",
            Self::Backend(e) => e.remedy(),
        }
    }
}
