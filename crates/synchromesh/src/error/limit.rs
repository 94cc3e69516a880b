//! Which limit a request for a plan ran into, and the nearest request that works.

use std::fmt;

/// What a request ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// The largest modulus that is secure at the largest degree.
    Security,
    /// The certificates of CKKS, at every scale that primes allow.
    Precision,
    /// The slots of the largest degree, or of the plaintext modulus.
    Slots,
    /// [`Description::max_key_bytes`](crate::plan::Description::max_key_bytes).
    KeyBytes,
    /// [`Description::max_memory_bytes`](crate::plan::Description::max_memory_bytes).
    Memory,
    /// How large values of a CKKS circuit may become, by the bounds of its inputs.
    Bounds,
}

impl Limit {
    /// The kind of the error, for scripts.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Security => "plan_security",
            Self::Precision => "plan_precision",
            Self::Slots => "plan_slots",
            Self::KeyBytes => "plan_key_bytes",
            Self::Memory => "plan_memory",
            Self::Bounds => "plan_bounds",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Security => "the largest secure modulus",
            Self::Precision => "the precision that primes allow",
            Self::Slots => "the number of slots",
            Self::KeyBytes => "the budget of key bytes",
            Self::Memory => "the budget of memory",
            Self::Bounds => "how large its values may become",
        })
    }
}

/// The change to a request that makes it work, all else as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Nearest {
    /// So many multiplications.
    Depth(usize),
    /// So many bits.
    Precision(u32),
    /// So many multiplications, and no more than so many bits.
    DepthAndPrecision(usize, u32),
    /// So many slots.
    Slots(usize),
    /// A budget of so many key bytes.
    KeyBytes(u64),
    /// A budget of so many bytes of memory.
    MemoryBytes(u64),
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth(depth) => write!(f, "depth {depth}"),
            Self::Precision(bits) => write!(f, "a precision of {bits} bits"),
            Self::DepthAndPrecision(depth, bits) => write!(f, "depth {depth} with a precision of {bits} bits"),
            Self::Slots(slots) => write!(f, "{slots} slots"),
            Self::KeyBytes(bytes) => write!(f, "a key budget of {bytes} bytes"),
            Self::MemoryBytes(bytes) => write!(f, "a memory budget of {bytes} bytes"),
        }
    }
}
