//! Sums of rotations times public vectors in one pass, with their certificate; rotation keys that are missing.

use num_bigint::{BigInt, BigUint};
use num_traits::One;
use synchromesh_rlwe::noise::Noise;
use synchromesh_rlwe::ring::{Backend, Ntt, Poly};
use synchromesh_rlwe::{Operation, Source};

use super::plaintext::Norms;
use super::{Ciphertext, Evaluator, Scheme, lift};
use crate::circuits::SizedSum;
use crate::error::{Error, Result};
use crate::rotations::Rotations;

impl<S: Scheme, B: Backend> Evaluator<S, B> {
    /// Fails unless there are keys for all of these rotations.
    ///
    /// # Errors
    /// [`Error::MissingRotations`], [`Error::NoKeys`], [`crate::batch::BatchError::NoSlots`] where t has no slots.
    pub fn require_rotations(&self, steps: &Rotations) -> Result<()> {
        let context = self.context();
        let missing = |g: usize| -> Result<bool> {
            Ok(g != 1 && self.switching("rotation")?.keys().get(Source::Galois(g)).is_err())
        };
        let mut left = Vec::new();
        for &k in &self.routes.as_ref().map_or_else(|| steps.clone(), |routes| routes.expand(steps)).by {
            if missing(context.galois_element(k)?)? {
                left.push(k);
            }
        }
        let swap = steps.swap && missing(context.columns_element()?)?;
        if left.is_empty() && !swap { Ok(()) } else { Err(Error::MissingRotations { steps: left, swap }) }
    }

    /// A public vector as it multiplies rotations modulo QP.
    pub(super) fn rotation_factor(&self, values: &[BigInt], level: usize) -> Result<(Poly<B, Ntt>, Norms)> {
        let (context, backend) = (self.context(), self.context().backend());
        let plaintext = context.encode(values)?.with_public_norms();
        let primes = self.switching("rotation")?.extended(context.rlwe(), level)?;
        let poly = lift(backend, &primes, plaintext.poly(), &BigUint::one())?.into_ntt(backend)?;
        Ok((poly, plaintext.norms()))
    }

    /// The sum of rotations, certified as if each rotation and each giant step were a key switch of its own.
    pub(super) fn sum_of_rotations(
        &self,
        inputs: &[&Ciphertext<S, B>],
        sum: &SizedSum<B, Norms>,
    ) -> Result<Ciphertext<S, B>> {
        let (context, params) = (self.context(), self.context().params());
        let inputs = inputs.iter().map(|x| self.under_own(x)).collect::<Result<Vec<_>>>()?;
        let Some((first, rest)) = inputs.split_first() else {
            return Err(Error::argument("a sum of rotations needs an input"));
        };
        for x in rest {
            first.inner().require_same(params.rlwe(), x.inner())?;
            if x.header() != first.header() {
                return Err(Error::argument("the inputs of a sum of rotations must have one correction factor"));
            }
        }
        let (switching, level) = (self.switching("rotation")?, sum.sum.level());
        let inner: Vec<_> = inputs.iter().map(|x| x.inner()).collect();
        let (parts, terms) = sum.run(switching, context.rlwe(), &inner, level)?;
        let added = switching.rotation_noise_under(context.rlwe(), first.inner().key(), level, level)?;
        let mut total = added;
        for giant in &*terms {
            for (input, size) in giant {
                let rotated = inputs[*input].noise().moved().plus_switching(added);
                let times = |norms| super::evaluator::times_known::<S>(rotated, params.log_n(), norms);
                let term = size.map_or(rotated, times);
                total = total.plus(term).plus(S::sum_noise());
            }
            total = total.plus(added).plus(S::sum_noise());
        }
        let key = first.inner().key();
        let inner = synchromesh_rlwe::Ciphertext::new(params.rlwe(), Vec::from(parts), level, key, Noise::ZERO)?;
        Ciphertext::new(inner.assume_noise(total), first.header().clone()).certified(context, Operation::Rotation)
    }
}
