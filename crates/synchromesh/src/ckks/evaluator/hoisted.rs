//! Hoisted rotations of CKKS in weighted sums, with their certificates; the levels of matrix products.

use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::noise::log2_add;
use synchromesh_rlwe::ring::{Backend, Ntt, Poly};
use synchromesh_rlwe::{HoistedCiphertext, HoistedTerm, Noise, Operation};

use super::Evaluator;
use crate::circuits::{Levels, Mask, MatrixArithmetic, require_mask};
use crate::ckks::ciphertext::{Ciphertext, Header};
use crate::ckks::lineage::Parent;
use crate::ckks::noise;
use crate::embedding::Complex64;
use crate::error::{Error, Result};

/// A ciphertext decomposed for rotations.
pub struct Hoisted<B: Backend> {
    inner: HoistedCiphertext<B>,
    header: Header,
    parent: Parent,
}

/// A vector as it multiplies hoisted ciphertexts, and its bound.
type Vector<B> = (Poly<B, Ntt>, f64);

/// A hoisted ciphertext and what it is multiplied by; none: 1.
type Term<'a, B> = (&'a Hoisted<B>, Option<&'a Vector<B>>);

impl<B: Backend> Evaluator<B> {
    /// Terms with factors S d + r are rescaled in the same division; at every slot the |d| add up to at most 1.
    fn sum_rotated(&self, terms: &[Term<'_, B>], k: i64, level: usize) -> Result<Ciphertext<B>> {
        if !self.auto() {
            return Err(Error::argument("circuits need scales that are managed automatically: mode auto"));
        }
        let Some((first, _)) = terms.first() else {
            return Err(Error::argument("a rotated sum needs at least one term"));
        };
        let (params, context) = (self.context.params(), self.context.rlwe());
        let from = first.inner.level();
        let weighted = terms.iter().any(|(_, factor)| factor.is_some());
        if terms.iter().any(|(_, factor)| factor.is_some() != weighted) {
            return Err(Error::argument("either all terms of a rotated sum have factors or none has"));
        }
        if level + usize::from(weighted) != from {
            return Err(self.no_level(level + usize::from(weighted), from));
        }
        let own = params.at(from)?;
        if let Some((other, _)) = terms.iter().find(|(x, _)| x.header.scale != own.scale) {
            return Err(Error::ScaleMismatch { left: other.header.scale.log2(), right: own.log2 });
        }
        let inner: Vec<HoistedTerm<'_, B>> = terms.iter().map(|(x, f)| (&x.inner, f.map(|f| &f.0))).collect();
        let switching = self.switching("rotation")?;
        let parts = Vec::from(switching.rotated_sum(context, &inner, self.context.galois_element(k), level)?);
        let key = first.inner.key();
        let added = switching.rotation_noise_under(context, key, from, from)?;
        let bounds = terms.iter().map(|(x, _)| x.header.bound);
        let made = |noise| rlwe::Ciphertext::new(params.rlwe(), parts, level, key, noise);
        let parents: Vec<_> = terms.iter().map(|(x, _)| x.parent).collect();
        if !weighted {
            let noise = terms.iter().fold(added, |sum, (x, _)| sum.plus(x.inner.noise().plus_switching(added)));
            return self.finish(Operation::Rotation, &parents, made(noise)?, noise, own.scale.clone(), bounds.sum());
        }
        let bound = bounds.fold(0.0, f64::max);
        let rotated = terms.iter().map(|(x, _)| x.inner.noise()).fold(Noise::ZERO, Noise::either).plus_switching(added);
        let errors = terms.iter().filter_map(|(_, factor)| factor.map(|(_, error)| *error));
        let errors = errors.fold(f64::NEG_INFINITY, log2_add);
        let message = own.log2 + bound.log2();
        let noise = rotated.times(log2_add(own.log2, errors)).plus(Noise::at_most(message + errors)).plus(added);
        noise::check(params, from, message + own.log2, noise)?;
        let noise =
            noise.times(-own.dropped.log2()).plus_switching(switching.rotation_noise_under(context, key, from, level)?);
        let scale = own.square.over(&own.dropped)?;
        self.settled(self.finish(Operation::Rotation, &parents, made(noise)?, noise, scale, bound)?)
    }
}

impl<B: Backend> MatrixArithmetic for Evaluator<B> {
    type Hoisted = Hoisted<B>;
    type Pair = ();
    /// The mask and its complement: both bring the scale of a level.
    type Mask = Mask<[Vector<B>; 2]>;

    fn hoist(&self, x: &Ciphertext<B>, rotates: bool) -> Result<Hoisted<B>> {
        self.require_own(x)?;
        let settled = self.settle(x)?;
        let x = self.under_own(&settled)?;
        let inner = self.switching("rotation")?.hoisted(self.context.rlwe(), x.inner(), rotates)?;
        Ok(Hoisted { inner, header: x.header().clone(), parent: x.parent() })
    }

    fn rotated(&self, x: &Hoisted<B>, k: i64) -> Result<Ciphertext<B>> {
        self.sum_rotated(&[(x, None)], k, x.inner.level())
    }

    fn pair(&self, _: &Hoisted<B>, _: &Hoisted<B>) -> Result<()> {
        Ok(())
    }

    fn mask(&self, period: &[Complex64], level: usize) -> Result<Self::Mask> {
        let params = self.context.params();
        require_mask(period, params.slots())?;
        let ones: Vec<Complex64> = (0..params.slots()).map(|i| period[i % period.len()]).collect();
        let zeros: Vec<Complex64> = ones.iter().map(|z| Complex64::new(1.0 - z.re, -z.im)).collect();
        let both = [self.rotation_factor(&ones, level)?, self.rotation_factor(&zeros, level)?];
        Ok(Mask::new(both, level, params.rlwe()))
    }

    fn chosen(
        &self,
        [ones, zeros]: [&Hoisted<B>; 2],
        (): &(),
        mask: &Self::Mask,
        k: i64,
        level: usize,
    ) -> Result<Ciphertext<B>> {
        let [own, other] = mask.at(ones.inner.level(), self.context.params().rlwe())?;
        self.sum_rotated(&[(ones, Some(own)), (zeros, Some(other))], k, level)
    }

    fn levels(
        &self,
        left: &Ciphertext<B>,
        right: &Ciphertext<B>,
        mask: Option<&Self::Mask>,
        _: usize,
    ) -> Result<Levels> {
        let (left, right) = (self.settle(left)?.level(), self.settle(right)?.level());
        match mask {
            None => Ok(Levels { left: left.min(right), product: left.min(right) }),
            Some(_) => {
                let product = left.checked_sub(1).ok_or_else(|| self.no_level(1, 0))?.min(right);
                Ok(Levels { left: product + 1, product })
            }
        }
    }

    fn sum_of_tensors(&self, pairs: &[[&Ciphertext<B>; 2]]) -> Result<Ciphertext<B>> {
        let mut sum: Option<Ciphertext<B>> = None;
        for [x, y] in pairs {
            self.require_level_for_product(x, y)?;
            let product = self.mul_no_relin(x, y)?;
            sum = Some(match sum {
                Some(sum) => self.add(&sum, &product)?,
                None => product,
            });
        }
        sum.ok_or_else(|| Error::argument("a sum of products needs at least one product"))
    }

    fn settle_product(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.relinearize(x)
    }
}
