//! Hoisted rotations of BFV and BGV in weighted sums, with their certificates; the levels of matrix products.

use num_bigint::BigInt;
use synchromesh_rlwe::noise::Noise;
use synchromesh_rlwe::ring::{Backend, Ntt, Poly};
use synchromesh_rlwe::{HoistedCiphertext, HoistedTerm, Operation};

use super::plaintext::Norms;
use super::{Ciphertext, Evaluator, Plaintext, Scheme, lift};
use crate::batch::{BatchEncoder, MIN_LOG_N};
use crate::circuits::{Levels, Mask, MatrixArithmetic, require_mask};
use crate::error::{Error, Result};

/// Bits of room that a lower level, which is cheaper, may cost.
const CHEAPER: f64 = 2.0;

/// A ciphertext decomposed for rotations.
pub struct Hoisted<S: Scheme, B: Backend> {
    inner: HoistedCiphertext<B>,
    header: S::Header,
}

impl<S: Scheme, B: Backend> Evaluator<S, B> {
    /// The certificate of a sum of hoisted rotations at level `from`, each times a factor of known norms, brought to
    /// level `to` in the same division; and its header.
    fn rotated_noise(
        &self,
        terms: &[(Noise, Option<Norms>)],
        header: &S::Header,
        from: usize,
        to: usize,
    ) -> Result<(Noise, S::Header)> {
        let (context, params) = (self.context().rlwe(), self.context().params());
        let switching = self.switching("rotation")?;
        let key = switching.key_at(params.rlwe(), from);
        let added = switching.rotation_noise_under(context, key, from, from)?;
        let mut total = Noise::ZERO;
        for (noise, norms) in terms {
            let rotated = noise.plus_switching(added);
            let term = norms.map_or(rotated, |n| {
                rotated.times_poly(params.log_n(), n.norm2, n.norm1).plus(S::product_noise(n.norm1))
            });
            total = total.plus(term).plus(S::sum_noise());
        }
        if to == from {
            return Ok((total.plus_switching(added), header.clone()));
        }
        let dropped = params.log2_modulus(from)? - params.log2_modulus(to)?;
        let (header, noise) = S::lowered(params, header, from, to)?;
        Ok((
            total.times(-dropped).plus_switching(switching.rotation_noise_under(context, key, from, to)?).plus(noise),
            header,
        ))
    }

    /// The terms of a mask times a difference, whose digits add the error of two key switches, and of what is subtracted.
    fn chosen_noise(
        &self,
        [difference, zeros]: [Noise; 2],
        norms: &Norms,
        level: usize,
    ) -> Result<[(Noise, Option<Norms>); 2]> {
        let (context, switching) = (self.context().rlwe(), self.switching("rotation")?);
        let key = switching.key_at(context.params(), level);
        let second = switching.rotation_noise_under(context, key, level, level)?;
        Ok([(difference.plus_switching(second).plus(S::sum_noise()), Some(*norms)), (zeros, None)])
    }

    /// A sum of hoisted ciphertexts times factors, rotated by k and brought down to a level, with the noise of each.
    fn sum_rotated(
        &self,
        terms: &[HoistedTerm<'_, B>],
        noises: &[(Noise, Option<Norms>)],
        header: &S::Header,
        (k, level): (i64, usize),
    ) -> Result<Ciphertext<S, B>> {
        let (context, params) = (self.context(), self.context().params());
        let Some((first, _)) = terms.first() else {
            return Err(Error::argument("a rotated sum needs at least one term"));
        };
        let element = context.galois_element(k)?;
        let parts = self.switching("rotation")?.rotated_sum(context.rlwe(), terms, element, level)?;
        let (noise, header) = self.rotated_noise(noises, header, first.level(), level)?;
        let made = synchromesh_rlwe::Ciphertext::new(params.rlwe(), Vec::from(parts), level, first.key(), noise)?;
        self.settled(Ciphertext::new(made, header).certified(context, Operation::Rotation)?)
    }

    fn budget(&self, noise: Noise, level: usize) -> Result<f64> {
        let params = self.context().params();
        Ok(S::room(params, level)? - noise.bound(params.log_n(), params.failure_limit().log2_failure()))
    }
}

/// The lowest of the levels, given with their budgets, that costs little against the best.
fn cheapest(budgets: &[(usize, f64)]) -> Option<usize> {
    let best = budgets.iter().map(|(_, budget)| *budget).fold(f64::NEG_INFINITY, f64::max);
    budgets.iter().filter(|(_, budget)| *budget >= best - CHEAPER).map(|(level, _)| *level).min()
}

impl<S: Scheme, B: Backend> MatrixArithmetic for Evaluator<S, B> {
    type Hoisted = Hoisted<S, B>;
    type Pair = HoistedCiphertext<B>;
    type Mask = Mask<(Poly<B, Ntt>, Norms)>;

    fn hoist(&self, x: &Ciphertext<S, B>, rotates: bool) -> Result<Hoisted<S, B>> {
        self.require(x)?;
        let x = self.under_own(x)?;
        let inner = self.switching("rotation")?.hoisted(self.context().rlwe(), x.inner(), rotates)?;
        Ok(Hoisted { inner, header: x.header().clone() })
    }

    fn rotated(&self, x: &Hoisted<S, B>, k: i64) -> Result<Ciphertext<S, B>> {
        self.sum_rotated(&[(&x.inner, None)], &[(x.inner.noise(), None)], &x.header, (k, x.inner.level()))
    }

    /// Their difference, as x + m (y - x) takes one mask where m y + (1 - m) x takes two.
    fn pair(&self, ones: &Hoisted<S, B>, zeros: &Hoisted<S, B>) -> Result<HoistedCiphertext<B>> {
        if ones.header != zeros.header {
            return Err(Error::argument("ciphertexts that masks choose between must have one correction factor"));
        }
        let context = self.context().rlwe();
        Ok(self.switching("rotation")?.hoisted_difference(context, &ones.inner, &zeros.inner)?)
    }

    fn chosen(
        &self,
        [_, zeros]: [&Hoisted<S, B>; 2],
        pair: &HoistedCiphertext<B>,
        mask: &Self::Mask,
        k: i64,
        level: usize,
    ) -> Result<Ciphertext<S, B>> {
        let (factor, norms) = mask.at(pair.level(), self.context().params().rlwe())?;
        let noises = self.chosen_noise([pair.noise(), zeros.inner.noise()], norms, pair.level())?;
        self.sum_rotated(&[(pair, Some(factor)), (&zeros.inner, None)], &noises, &zeros.header, (k, level))
    }

    /// A vector of period p in both rows is a polynomial in X^(N/2p): its small transform is all that takes encoding,
    /// and its norm is that of 2p coefficients.
    fn mask(&self, period: &[BigInt], level: usize) -> Result<Self::Mask> {
        let (context, params) = (self.context(), self.context().params());
        context.slot_encoder()?;
        let (n, count) = (params.n(), 2 * period.len());
        require_mask(period, n / 2)?;
        if count < 1 << MIN_LOG_N {
            let slots: Vec<BigInt> = (0..n).map(|i| period[i % period.len()].clone()).collect();
            return Ok(Mask::new(self.rotation_factor(&slots, level)?, level, params.rlwe()));
        }
        let log_count = count.trailing_zeros();
        let both: Vec<BigInt> = period.iter().chain(period).cloned().collect();
        let small = BatchEncoder::new(params.t(), log_count)?.encode_big(&both)?;
        let primes = self.switching("rotation")?.extended(context.rlwe(), level)?;
        let whole = small.spread(n / count);
        let poly = lift(context.backend(), &primes, &whole, &1u32.into())?.into_ntt(context.backend())?;
        let norms = Plaintext::from(small).with_public_norms().norms();
        Ok(Mask::new((poly, norms), level, params.rlwe()))
    }

    fn levels(
        &self,
        left: &Ciphertext<S, B>,
        right: &Ciphertext<S, B>,
        mask: Option<&Self::Mask>,
        terms: usize,
    ) -> Result<Levels> {
        let params = self.context().params();
        let lowest = left.level().min(right.level());
        if S::SECOND_BASE {
            return Ok(Levels { left: lowest, product: lowest });
        }
        let mut budgets = Vec::with_capacity(lowest + 1);
        for level in 0..=lowest {
            let rotated = |x: &Ciphertext<S, B>, terms: &[(Noise, Option<Norms>)]| {
                Ok::<_, Error>(self.rotated_noise(terms, x.header(), x.level(), level)?.0)
            };
            let a = match mask {
                Some(mask) => {
                    let norms = &mask.encoded().1;
                    let difference = left.noise().plus(left.noise());
                    rotated(left, &self.chosen_noise([difference, left.noise()], norms, left.level())?)?
                }
                None => rotated(left, &[(left.noise(), None)])?,
            };
            let b = rotated(right, &[(right.noise(), None)])?;
            let sum = S::tensor_noise(params, a, b).times((terms as f64).log2());
            budgets.push((level, self.budget(sum, level)?));
        }
        let product = cheapest(&budgets).unwrap_or(lowest);
        Ok(Levels { left: if mask.is_some() { left.level() } else { product }, product })
    }

    fn sum_of_tensors(&self, pairs: &[[&Ciphertext<S, B>; 2]]) -> Result<Ciphertext<S, B>> {
        self.sum_of_products_no_relin(pairs)
    }

    fn settle_product(&self, x: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        if S::SECOND_BASE {
            return self.relinearize(x);
        }
        let (context, params) = (self.context().rlwe(), self.context().params());
        let switching = self.switching("relinearisation")?;
        let mut budgets = Vec::with_capacity(x.level() + 1);
        for level in 0..=x.level() {
            let dropped = params.log2_modulus(x.level())? - params.log2_modulus(level)?;
            let added = switching.noise_under(context, x.inner().key(), x.level(), level)?;
            let lowered = S::lowered(params, x.header(), x.level(), level)?.1;
            budgets.push((level, self.budget(x.noise().times(-dropped).plus_switching(added).plus(lowered), level)?));
        }
        self.relinearize_to(x, cheapest(&budgets).unwrap_or(x.level()))
    }
}
