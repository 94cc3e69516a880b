//! Ciphertexts with plaintexts and constants.

use num_bigint::{BigInt, BigUint};
use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::Operation;
use synchromesh_rlwe::noise::{Certificate, Estimates, Noise};
use synchromesh_rlwe::ring::{Backend, Ntt, Poly};

use super::Evaluator;
use crate::ckks::beside::Beside;
use crate::ckks::ciphertext::Ciphertext;
use crate::ckks::noise::{self, Public};
use crate::ckks::plaintext::Plaintext;
use crate::ckks::scale::Scale;
use crate::embedding::{Complex64, EmbeddingError};
use crate::error::Result;

/// Integers up to this size multiply without using a level.
pub(super) const INTEGER_LIMIT: f64 = (1u64 << 40) as f64;

impl<B: Backend> Evaluator<B> {
    /// x + m; the plaintext is encoded at the ciphertext's scale.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`], [`rlwe::Error::Noise`],
    /// [`EmbeddingError::CoefficientTooLarge`] at a scale that no message can be encoded at.
    pub fn add_plain(&self, x: &Ciphertext<B>, m: &Plaintext<B>) -> Result<Ciphertext<B>> {
        self.sum_plain(x, m, false)
    }

    /// x - m.
    ///
    /// # Errors
    /// As [`Self::add_plain`].
    pub fn sub_plain(&self, x: &Ciphertext<B>, m: &Plaintext<B>) -> Result<Ciphertext<B>> {
        self.sum_plain(x, m, true)
    }

    fn sum_plain(&self, x: &Ciphertext<B>, m: &Plaintext<B>, subtract: bool) -> Result<Ciphertext<B>> {
        self.require_own(x)?;
        let x = self.renew(x, 0)?;
        let encoded = self.context.slots(m, x.level(), x.scale())?;
        let added = self.context.encoding_noise(x.log2_scale(), m.bound());
        let sum = self.plus_polynomial(x, &encoded.poly, subtract, added, m.bound())?;
        let Some(beside) = x.beside() else { return Ok(sum) };
        let own = Beside::new(self.context.holding(m)?, added);
        Ok(sum.with_beside(own.and_then(|own| beside.plus(&own))))
    }

    fn plus_polynomial(
        &self,
        x: &Ciphertext<B>,
        poly: &Poly<B, Ntt>,
        subtract: bool,
        added: Noise,
        bound: f64,
    ) -> Result<Ciphertext<B>> {
        let params = self.context.params();
        let backend = self.context.rlwe().backend();
        let (inner, header) = x.duplicate(&self.context)?.into_parts();
        let (level, key, noise) = (inner.level(), inner.key(), inner.noise().plus(added));
        let mut parts = inner.into_parts();
        if subtract {
            parts[0].sub_assign(backend, poly)?;
        } else {
            parts[0].add_assign(backend, poly)?;
        }
        let inner = rlwe::Ciphertext::new(params.rlwe(), parts, level, key, noise)?;
        self.finish(Operation::PlainSum, &[x.parent()], inner, noise, header.scale, header.bound + bound)
    }

    /// x m, slot by slot; in automatic mode rescaled, and the plaintext encoded at the scale that makes the result the
    /// level's own.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`], [`rlwe::Error::Level`] when no level is left, [`rlwe::Error::Noise`].
    pub fn mul_plain(&self, x: &Ciphertext<B>, m: &Plaintext<B>) -> Result<Ciphertext<B>> {
        let params = self.context.params();
        self.require_own(x)?;
        let x = self.renew(x, self.lowest() + 1)?;
        self.require_level_for_product(x, x)?;
        let x = self.settle(x)?;
        let level = params.at(x.level())?;
        let (encoded, error) = self.context.factor(m, x.level(), &level.scale)?;
        let backend = self.context.rlwe().backend();
        let product = |part: &Poly<B, Ntt>| Ok(part.mul(backend, &encoded.poly)?);
        let parts = x.inner().parts().iter().map(product).collect::<Result<_>>()?;
        let noise =
            noise::plain_product(x.factor(), Public::Vector, level.log2 + m.bound().log2(), error, self.log_n());
        let inner = rlwe::Ciphertext::new(params.rlwe(), parts, x.level(), x.inner().key(), noise)?;
        let zero = noise::plain_product(x.factor(), Public::Vector, f64::NEG_INFINITY, error, self.log_n());
        let beside = Beside::new(self.context.holding(m)?, zero);
        let (scale, bound) = (x.scale().times(&level.scale)?, x.bound() * m.bound());
        let product = self.finish(Operation::PlainProduct, &[x.parent()], inner, noise, scale, bound)?;
        self.after_plain(product.with_beside(beside))
    }

    /// x c for one public number. An integer of absolute value up to 2^40 is exact and uses no level; other real
    /// numbers cost a multiplication by words and a rescale; complex ones are encoded as plaintexts.
    ///
    /// # Errors
    /// As [`Self::mul_plain`]; [`EmbeddingError::NotFinite`].
    pub fn mul_scalar(&self, x: &Ciphertext<B>, c: impl Into<Complex64>) -> Result<Ciphertext<B>> {
        let c = finite(c.into())?;
        if c.im != 0.0 {
            let values = vec![c; self.context.params().slots()];
            return self.mul_plain(x, &self.context.encode_complex(&values, modulus_above(c))?);
        }
        let params = self.context.params();
        self.require_own(x)?;
        if c.re == c.re.trunc() && c.re.abs() <= INTEGER_LIMIT {
            let x = self.renew(x, 0)?;
            let residues = self.residues(x.level(), &BigInt::from(c.re as i64))?;
            let noise = x.inner().noise().times(c.re.abs().log2());
            let (inner, header) = x.duplicate(&self.context)?.into_parts();
            let inner = self.times_residues(inner, &residues, noise)?;
            let beside = x.beside().map(|b| b.with(b.noise.times(c.re.abs().log2())));
            let (from, bound) = ([x.parent()], header.bound * c.re.abs());
            let made = self.finish(Operation::NumberProduct, &from, inner, noise, header.scale, bound)?;
            return Ok(made.with_beside(beside));
        }
        let x = self.renew(x, self.lowest() + 1)?;
        self.require_level_for_product(x, x)?;
        let x = self.settle(x)?;
        let level = params.at(x.level())?;
        let (integer, error) = rounded_multiple(&level.scale, c.re)?;
        let size = level.log2 + c.re.abs().log2();
        let product = |factor| noise::plain_product(factor, Public::Scalar, size, error.log2(), self.log_n());
        let (noise, beside) = (product(x.factor()), x.beside().map(|b| b.with(product(b.factor()))));
        let residues = self.residues(x.level(), &integer)?;
        let inner = self.times_residues(x.inner().duplicate(self.context.rlwe())?, &residues, noise)?;
        let (scale, bound) = (x.scale().times(&level.scale)?, x.bound() * c.re.abs());
        let product = self.finish(Operation::NumberProduct, &[x.parent()], inner, noise, scale, bound)?;
        self.after_plain(product.with_beside(beside))
    }

    /// x + c for one public number in every slot.
    ///
    /// # Errors
    /// As [`Self::add_plain`]; [`EmbeddingError::NotFinite`].
    pub fn add_scalar(&self, x: &Ciphertext<B>, c: impl Into<Complex64>) -> Result<Ciphertext<B>> {
        let c = finite(c.into())?;
        let params = self.context.params();
        self.require_own(x)?;
        if c.im != 0.0 {
            let values = vec![c; params.slots()];
            return self.add_plain(x, &self.context.encode_complex(&values, modulus_above(c))?);
        }
        let x = self.renew(x, 0)?;
        let (integer, error) = rounded_multiple(x.scale(), c.re)?;
        let residues = self.residues(x.level(), &integer)?;
        let backend = self.context.rlwe().backend();
        let mut poly = Poly::from_bounded(backend, params.rlwe().level(x.level())?, &vec![1; params.n()], 1)?;
        poly.mul_scalar_assign(backend, &residues)?;
        // The same number in all places is in coefficients as in slots.
        let poly = poly.assume_ntt();
        let message = 2.0 * (x.log2_scale() + c.re.abs().log2()) - f64::from(params.log_n());
        let certificate = Certificate::at_most(error.log2());
        let uniform = Estimates::uniform(error.log2());
        let estimates = Estimates { average: uniform.average.with_message(message), ..uniform };
        let added = Noise { certificate, estimates: Some(estimates) };
        self.plus_polynomial(x, &poly, false, added, c.re.abs())
    }

    /// A product with a plaintext, rescaled in automatic mode.
    fn after_plain(&self, product: Ciphertext<B>) -> Result<Ciphertext<B>> {
        if self.auto() { self.rescale(&product) } else { Ok(product) }
    }

    pub(super) fn residues(&self, level: usize, x: &BigInt) -> Result<Vec<u64>> {
        let params = self.context.params().rlwe();
        let primes = params.level(level)?;
        let product = BigInt::from(params.ring().product(primes));
        let positive = ((x % &product) + &product) % &product;
        Ok(params.ring().residues(primes, &positive.to_biguint().unwrap_or_default()))
    }
}

pub(super) fn finite(c: Complex64) -> Result<Complex64> {
    if c.re.is_finite() && c.im.is_finite() { Ok(c) } else { Err(EmbeddingError::NotFinite { index: 0 }.into()) }
}

/// A little more than |c|.
pub(super) fn modulus_above(c: Complex64) -> f64 {
    c.re.hypot(c.im) * (1.0 + 1e-12)
}

/// The integer nearest to c times the scale, and how far it may be from c times the scale.
pub(super) fn rounded_multiple(scale: &Scale, c: f64) -> Result<(BigInt, f64)> {
    // |c| = m 2^e exactly, m a word; the scale times m has one factor more and is rounded once.
    let bits = c.abs().to_bits();
    let exponent = (bits >> 52).max(1) as i128 - 1075;
    let mantissa = (bits & ((1 << 52) - 1)) | if bits >> 52 == 0 { 0 } else { 1 << 52 };
    let fine = scale.times(&Scale::new(exponent + 64, [])?)?.to_integer()?;
    let scaled = fine * BigUint::from(mantissa);
    let magnitude = (&scaled + (BigUint::from(1u32) << 63u32)) >> 64u32;
    // S 2^(e + 64) is within 1/2 of an integer, so m times it within 2^52, and c S within 2^-12 before rounding.
    let error = 0.5 + 2f64.powi(-11);
    let sign = if c < 0.0 { num_bigint::Sign::Minus } else { num_bigint::Sign::Plus };
    Ok((BigInt::from_biguint(sign, magnitude), error))
}
