//! Randomness from the operating system, and from nowhere else: no fallback, no process-wide state.

use synchromesh_ring::sampler::Seed;
use thiserror::Error;
use zeroize::Zeroize;

/// The operating system gave no randomness; nothing secret can be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the operating system's random generator failed: {reason}")]
#[non_exhaustive]
pub struct EntropyError {
    /// What the system said.
    pub reason: String,
}

impl EntropyError {
    /// Stable name of the kind of error.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        "entropy"
    }

    /// What to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        "run where getrandom(2) or its equivalent is permitted; no other source is used"
    }
}

/// A fresh random seed.
///
/// # Errors
/// [`EntropyError`] when the system's generator fails.
pub fn seed() -> Result<Seed, EntropyError> {
    let mut bytes = random_bytes::<32>()?;
    let seed = Seed::from_bytes(bytes);
    bytes.zeroize();
    Ok(seed)
}

/// `K` fresh random bytes, for key ids and envelope keys.
///
/// # Errors
/// [`EntropyError`] when the system's generator fails.
pub fn random_bytes<const K: usize>() -> Result<[u8; K], EntropyError> {
    let mut bytes = [0; K];
    getrandom::fill(&mut bytes).map_err(|e| EntropyError { reason: e.to_string() })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seeds_differ_and_are_not_zero() {
        let (a, b) = (seed().unwrap(), seed().unwrap());
        assert_ne!(a.as_bytes(), b.as_bytes());
        assert_ne!(a.as_bytes(), &[0; 32]);
    }
}
