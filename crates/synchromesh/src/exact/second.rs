//! The second secret key: results below the leading levels go under it, operands meet under one key.

use synchromesh_rlwe::Operation;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::ring::Backend;

use super::{Ciphertext, Evaluator, Operand, Scheme};
use crate::error::Result;

impl<S: Scheme, B: Backend> Evaluator<S, B> {
    /// `a`, which is under another secret key, under that of the evaluator's keys.
    ///
    /// # Errors
    /// [`crate::Error::NoKeys`], [`synchromesh_rlwe::Error::MissingKey`] without a key from the secret key that `a` is under,
    /// [`synchromesh_rlwe::Error::Components`].
    pub fn rekey(&self, a: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        let switching = self.switching("re-keying")?;
        if a.inner().key() == switching.keys().target() {
            return a.duplicate(self.context());
        }
        let inner = switching.rekey(self.context().rlwe(), a.inner())?;
        Ciphertext::new(inner, a.header().clone()).certified(self.context(), Operation::Rekeying)
    }

    /// `a` under the second secret key, if there is one and `a` has left the leading levels under the first.
    pub(crate) fn settled(&self, a: Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        let params = self.context().params();
        let lower = |s: &&KeySwitching<B>| s.should_rekey(params.rlwe(), a.inner().key(), a.level());
        match self.keys().filter(lower) {
            Some(switching) if a.components() == 2 => {
                let inner = switching.rekey(self.context().rlwe(), a.inner())?;
                Ciphertext::new(inner, a.header().clone()).certified(self.context(), Operation::Rekeying)
            }
            _ => Ok(a),
        }
    }

    /// `a`, or what it is under the second secret key where it should be under that.
    pub(crate) fn under_own<'a>(&self, a: &'a Ciphertext<S, B>) -> Result<Operand<'a, S, B>> {
        let params = self.context().params().rlwe();
        if self.keys().is_some_and(|keys| keys.should_rekey(params, a.inner().key(), a.level())) {
            return Ok(Operand::Brought(self.settled(a.duplicate(self.context())?)?));
        }
        Ok(Operand::Given(a))
    }

    /// Operands under one key: where some are under the second already, those still under the first come down to a
    /// level of it.
    pub(crate) fn meet<'a>(
        &self,
        operands: impl Iterator<Item = &'a Ciphertext<S, B>>,
    ) -> Result<Vec<Operand<'a, S, B>>> {
        let params = self.context().params().rlwe();
        let operands: Vec<&'a Ciphertext<S, B>> = operands.collect();
        let level = operands.iter().map(|x| x.level()).min().unwrap_or(0);
        let differ = operands.windows(2).any(|pair| pair[0].inner().key() != pair[1].inner().key());
        let bring = |x: &'a Ciphertext<S, B>| -> Result<Operand<'a, S, B>> {
            let first = |s: &KeySwitching<B>| s.should_rekey(params, x.inner().key(), level);
            if differ && self.keys().is_some_and(first) {
                return Ok(Operand::Brought(self.mod_switch_to(x, level)?));
            }
            Ok(Operand::Given(x))
        };
        let met = operands.into_iter().map(bring).collect::<Result<Vec<_>>>()?;
        for pair in met.windows(2) {
            pair[0].inner().key().require(pair[1].inner().key())?;
        }
        Ok(met)
    }
}
