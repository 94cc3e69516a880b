//! What only BFV has: the way back to a higher level.

use synchromesh_rlwe::Operation;
use synchromesh_rlwe::ring::Backend;

use super::{Ciphertext, Evaluator, multiply};
use crate::error::Result;

impl<B: Backend> Evaluator<B> {
    /// The ciphertext at a higher level: every residue times the primes between. Exact, without a key; the opposite of
    /// [`Self::mod_switch_to`] but for the rounding there.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] below the ciphertext's level or above the top level.
    pub fn mod_raise_to(&self, a: &Ciphertext<B>, level: usize) -> Result<Ciphertext<B>> {
        self.require(a)?;
        multiply::raise(self.context(), a, level)?.certified(self.context(), Operation::Conversion)
    }
}
