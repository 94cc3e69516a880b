//! The second secret key: results below the leading levels go under it, operands meet under one key.

use synchromesh_rlwe::Operation;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::ring::Backend;

use super::{Evaluator, Held};
use crate::ckks::ciphertext::Ciphertext;
use crate::error::Result;

impl<B: Backend> Evaluator<B> {
    /// `x`, which is under another secret key, under that of the evaluator's keys; message and scale unchanged.
    ///
    /// # Errors
    /// [`crate::Error::NoKeys`], [`synchromesh_rlwe::Error::MissingKey`] without a key from the secret key that `x` is under,
    /// [`synchromesh_rlwe::Error::Components`].
    pub fn rekey(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        let switching = self.switching("re-keying")?;
        if x.inner().key() == switching.keys().target() {
            return x.duplicate(&self.context);
        }
        let inner = switching.rekey(self.context.rlwe(), x.inner())?;
        let noise = inner.noise();
        self.finish(Operation::Rekeying, &[x.parent()], inner, noise, x.scale().clone(), x.bound())
    }

    /// `x` under the second secret key, if there is one and `x` has left the leading levels under the first.
    pub(super) fn settled(&self, x: Ciphertext<B>) -> Result<Ciphertext<B>> {
        let Some(switching) = &self.switching else { return Ok(x) };
        let (params, context) = (self.context.params().rlwe(), self.context.rlwe());
        if x.components() != 2 || !switching.should_rekey(params, x.inner().key(), x.level()) {
            return Ok(x);
        }
        let inner = switching.rekey(context, x.inner())?;
        let noise = inner.noise();
        self.finish(Operation::Rekeying, &[x.parent()], inner, noise, x.scale().clone(), x.bound())
    }

    /// `x`, or what it is under the second secret key where it should be under that.
    pub(super) fn under_own<'a>(&self, x: &'a Ciphertext<B>) -> Result<Held<'a, B>> {
        let params = self.context.params().rlwe();
        let first = |s: &KeySwitching<B>| s.should_rekey(params, x.inner().key(), x.level());
        if self.switching.as_ref().is_some_and(first) {
            return Ok(Held::Made(self.settled(x.duplicate(&self.context)?)?));
        }
        Ok(Held::Given(x))
    }

    /// Operands under one key: where some are under the second already, those still under the first come down to a
    /// level of it.
    pub(super) fn meet<'a>(&self, operands: &[&'a Ciphertext<B>]) -> Result<Vec<Held<'a, B>>> {
        let params = self.context.params().rlwe();
        let level = operands.iter().map(|x| x.level()).min().unwrap_or(0);
        let differ = operands.windows(2).any(|pair| pair[0].inner().key() != pair[1].inner().key());
        let bring = |x: &&'a Ciphertext<B>| -> Result<Held<'a, B>> {
            let first = |s: &KeySwitching<B>| s.should_rekey(params, x.inner().key(), level);
            if differ && self.switching.as_ref().is_some_and(first) {
                return Ok(Held::Made(self.brought_to(x, level)?));
            }
            Ok(Held::Given(x))
        };
        let met = operands.iter().map(bring).collect::<Result<Vec<_>>>()?;
        for pair in met.windows(2) {
            pair[0].inner().key().require(pair[1].inner().key())?;
        }
        Ok(met)
    }
}
