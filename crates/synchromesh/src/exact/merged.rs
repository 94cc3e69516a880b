//! Relinearisation merged with a modulus switch, or with a prime switch: one division by P and whatever leaves.

use synchromesh_rlwe::Operation;
use synchromesh_rlwe::ring::Backend;

use super::{Ciphertext, Evaluator, Scheme};
use crate::error::Result;

impl<S: Scheme, B: Backend> Evaluator<S, B> {
    /// Three components to two at a lower level, in one division (ePrint 2023/1642, sections 3.7 and 6.1); cheaper than
    /// [`Self::relinearize`] and [`Self::mod_switch_to`] in turn, and the certificate is that of one rounding.
    ///
    /// # Errors
    /// As [`Self::relinearize`], and [`synchromesh_rlwe::Error::Level`] above the ciphertext's level.
    pub fn relinearize_to(&self, a: &Ciphertext<S, B>, level: usize) -> Result<Ciphertext<S, B>> {
        if level == a.level() {
            return self.relinearize(a);
        }
        let (context, params) = (self.context(), self.context().params());
        let switching = self.switching("relinearisation")?;
        let inner = switching.relinearize_to(context.rlwe(), a.inner(), level)?;
        let (header, noise) = S::lowered(params, a.header(), a.level(), level)?;
        self.settled(
            Ciphertext::new(inner, header).with_more_noise(noise).certified(context, Operation::Relinearisation)?,
        )
    }
}
