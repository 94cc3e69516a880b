//! A source of fresh seeds: the operating system, or a named test seed whose keys must be thrown away.

use synchromesh_ring::sampler::Seed;

use crate::entropy;
use crate::error::Error;

/// Hands out one seed after another, each used once.
pub struct Randomness {
    root: Option<(Seed, u64)>,
}

impl Randomness {
    /// Fresh seeds from the operating system.
    #[must_use]
    pub const fn from_os() -> Self {
        Self { root: None }
    }

    /// Reproducible seeds: whatever is made with them protects nothing.
    #[must_use]
    pub const fn insecure_from_seed(seed: Seed) -> Self {
        Self { root: Some((seed, 0)) }
    }

    /// Reproducible seeds from a number, for tests.
    #[must_use]
    pub fn insecure_from_number(number: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Self::insecure_from_seed(Seed::from_bytes(bytes))
    }

    /// A source of its own, for work that is done beside other work: what it hands out does not depend on when.
    ///
    /// # Errors
    /// As [`Self::next_seed`].
    pub fn fork(&mut self) -> Result<Self, Error> {
        Ok(match self.root {
            None => Self::from_os(),
            Some(_) => Self::insecure_from_seed(self.next_seed()?.derive("fork", 0)),
        })
    }

    /// The next seed.
    ///
    /// # Errors
    /// [`Error::Entropy`] when the operating system gives no randomness.
    pub fn next_seed(&mut self) -> Result<Seed, Error> {
        match &mut self.root {
            None => Ok(entropy::seed()?),
            Some((seed, counter)) => {
                *counter += 1;
                Ok(seed.derive("next", *counter))
            }
        }
    }
}
