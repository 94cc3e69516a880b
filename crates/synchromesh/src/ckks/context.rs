//! A context: CKKS parameters on a device; keys, encoding, encryption, decryption and what a certificate says.

use std::sync::Arc;

use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::noise::FailureLimit;
use synchromesh_rlwe::ring::sampler::Seed;
use synchromesh_rlwe::ring::{Backend, Coeff, Cpu, IndexSet, Ntt, Poly};
use synchromesh_rlwe::{EvaluationKeys, Noise, Observer, Operation, PublicKey, Randomness, SecretKey, Source};
use zeroize::Zeroizing;

use super::ciphertext::Ciphertext;
use super::decode;
use super::noise;
use super::params::Params;
use super::plaintext::{Decrypted, Encoded, Plaintext};
use super::scale::Scale;
use crate::embedding::{Complex64, Embedding};
use crate::error::Result;
use crate::rotations::Rotations;

/// Bits that one word of a split coefficient holds.
const SPLIT_BITS: u32 = 61;

/// CKKS parameters on a device.
pub struct Context<B: Backend = Cpu> {
    params: Params,
    rlwe: Arc<rlwe::Context<B>>,
    embedding: Embedding,
}

impl Context<Cpu> {
    /// The parameters on this machine's CPU.
    ///
    /// # Errors
    /// [`rlwe::Error::Ring`] when `SYNCHROMESH_ISA` asks for what this CPU lacks.
    pub fn new(params: Params) -> Result<Arc<Self>> {
        let rlwe = rlwe::Context::new(params.rlwe().clone())?;
        Ok(Arc::new(Self { embedding: Embedding::new(params.log_n())?, rlwe, params }))
    }
}

impl<B: Backend> Context<B> {
    /// The parameters on a device of the caller's choice, opened for the same ring.
    ///
    /// # Errors
    /// [`EmbeddingError`](super::embedding::EmbeddingError) for a degree the encoder lacks.
    pub fn with_backend(params: Params, backend: B) -> Result<Arc<Self>> {
        Self::observed(params, backend, None)
    }

    /// As [`Self::with_backend`], watched by an observer.
    ///
    /// # Errors
    /// As [`Self::with_backend`].
    pub fn observed(params: Params, backend: B, observer: Option<Arc<dyn Observer>>) -> Result<Arc<Self>> {
        let rlwe = rlwe::Context::observed(params.rlwe().clone(), backend, observer);
        Ok(Arc::new(Self { embedding: Embedding::new(params.log_n())?, rlwe, params }))
    }

    /// The parameters.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// The context of the layer below.
    #[must_use]
    pub const fn rlwe(&self) -> &Arc<rlwe::Context<B>> {
        &self.rlwe
    }

    pub(crate) const fn embedding(&self) -> &Embedding {
        &self.embedding
    }

    /// 3^k mod 2N, the Galois element of a rotation to the left by k slots.
    #[must_use]
    pub fn galois_element(&self, k: i64) -> usize {
        let two_n = 2 * self.params.n();
        let mut left = k.rem_euclid(self.params.slots() as i64);
        let (mut power, mut result) = (3, 1);
        while left > 0 {
            if left & 1 == 1 {
                result = result * power % two_n;
            }
            power = power * power % two_n;
            left >>= 1;
        }
        result
    }

    /// 2N - 1, the Galois element of conjugation.
    #[must_use]
    pub fn conjugation_element(&self) -> usize {
        2 * self.params.n() - 1
    }

    /// A new secret key and its public key.
    ///
    /// # Errors
    /// [`rlwe::Error::Entropy`] without randomness, or when the device fails.
    pub fn generate_keys(&self, randomness: &mut Randomness) -> Result<(SecretKey<B>, PublicKey<B>)> {
        let secret = SecretKey::generate(&self.rlwe, randomness)?;
        let public = PublicKey::generate(&self.rlwe, &secret, randomness)?;
        Ok((secret, public))
    }

    /// The keys that multiplication and the rotations named need.
    ///
    /// # Errors
    /// [`rlwe::Error::Entropy`] without randomness, or when the device fails.
    pub fn generate_evaluation_keys(
        &self,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        let sources = self.galois_elements(rotations).into_iter().map(Source::Galois);
        let sources = [Source::Square].into_iter().chain(sources).collect::<Vec<_>>();
        let (plan, second) = (self.params.plan(), self.params.second_plan());
        Ok(EvaluationKeys::generate_all(&self.rlwe, secret, sources, plan, second, randomness)?)
    }

    /// The Galois elements of rotations, in rising order and without 1.
    #[must_use]
    pub fn galois_elements(&self, rotations: &Rotations) -> Vec<usize> {
        let mut elements: Vec<usize> = rotations.by.iter().map(|&k| self.galois_element(k)).collect();
        elements.extend(rotations.swap.then(|| self.conjugation_element()));
        elements.retain(|&g| g != 1);
        elements.sort_unstable();
        elements.dedup();
        elements
    }

    /// Real values of absolute value at most 1; missing slots are zeros.
    ///
    /// # Errors
    /// As [`Self::encode_complex`].
    pub fn encode(&self, values: &[f64]) -> Result<Plaintext<B>> {
        self.encode_bounded(values, 1.0)
    }

    /// Real values of absolute value at most `bound`.
    ///
    /// # Errors
    /// As [`Self::encode_complex`].
    pub fn encode_bounded(&self, values: &[f64], bound: f64) -> Result<Plaintext<B>> {
        self.plaintext(Zeroizing::new(values.iter().map(|&x| x.into()).collect()), bound)
    }

    /// Complex values of modulus at most `bound`.
    ///
    /// # Errors
    /// [`EmbeddingError`](super::embedding::EmbeddingError): too many values, one that is not finite or exceeds the
    /// bound, or a bound that is no usable number.
    pub fn encode_complex(&self, values: &[Complex64], bound: f64) -> Result<Plaintext<B>> {
        self.plaintext(Zeroizing::new(values.to_vec()), bound)
    }

    /// The message whose polynomial has these coefficients, from that of 1 on, and in no slot more than `bound`.
    ///
    /// # Errors
    /// As [`Self::encode_complex`].
    pub fn encode_coefficients(&self, coefficients: &[f64], bound: f64) -> Result<Plaintext<B>> {
        let mut all = Zeroizing::new(vec![0.0; self.params.n().max(coefficients.len())]);
        all[..coefficients.len()].copy_from_slice(coefficients);
        self.plaintext(Zeroizing::new(self.embedding.decode(&all)?), bound)
    }

    fn plaintext(&self, values: Zeroizing<Vec<Complex64>>, bound: f64) -> Result<Plaintext<B>> {
        self.embedding.check(&values, bound)?;
        Ok(Plaintext::from_values(values, bound))
    }

    /// The real parts of a message's slots: those encoded, or all N/2 of a decrypted one.
    ///
    /// # Errors
    /// As [`Self::decode_complex`].
    pub fn decode(&self, plaintext: &Plaintext<B>) -> Result<Vec<f64>> {
        Ok(self.values(plaintext)?.iter().map(|z| z.re).collect())
    }

    /// A message's slots; variable time.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`] for one decrypted under other parameters, or when the device fails.
    pub fn decode_complex(&self, plaintext: &Plaintext<B>) -> Result<Vec<Complex64>> {
        Ok(self.values(plaintext)?.to_vec())
    }

    fn values<'a>(&self, plaintext: &'a Plaintext<B>) -> Result<&'a [Complex64]> {
        if let Some(decrypted) = plaintext.decrypted.as_ref().filter(|_| plaintext.values.get().is_none()) {
            self.params.rlwe().require_digest(&decrypted.params_digest)?;
            let scale = self.double(&decrypted.scale)?;
            let coefficients = decode::coefficients(&self.rlwe, decrypted.phase.poly(), scale)?;
            let values = Zeroizing::new(self.embedding.decode(&coefficients)?);
            return Ok(plaintext.values.get_or_init(|| values));
        }
        Ok(plaintext.values.get().map_or(&[], |values| values.as_slice()))
    }

    /// A scale as a double, from the tables where it is a level's own.
    pub(crate) fn double(&self, scale: &Scale) -> Result<super::embedding::Scale> {
        for level in 0..=self.params.top_level() {
            let own = self.params.at(level)?;
            if own.scale == *scale {
                return Ok(own.double);
            }
        }
        scale.to_double()
    }

    /// The integer polynomial of a message at a scale, modulo the primes of a level.
    fn polynomial(&self, plaintext: &Plaintext<B>, level: usize, scale: &Scale) -> Result<Poly<B, Coeff>> {
        self.polynomial_on(plaintext, self.params.rlwe().level(level)?, scale)
    }

    /// The integer polynomial of a message at a scale, modulo any primes.
    pub(crate) fn polynomial_on(
        &self,
        plaintext: &Plaintext<B>,
        primes: &IndexSet,
        scale: &Scale,
    ) -> Result<Poly<B, Coeff>> {
        if !B::HOLDS_NUMBERS {
            return Ok(Poly::new(self.rlwe.backend(), primes)?);
        }
        let double = self.double(scale)?;
        let integers = self.embedding.encode(self.values(plaintext)?, double, plaintext.bound())?;
        self.encoded_polynomial(primes, &integers, double, plaintext.bound())
    }

    /// As [`Self::polynomial_on`] of public values of modulus at most `bound`, with log2 of how far from the scaled values
    /// the polynomial is at any root: the rounding of its coefficients is measured. A device without numbers is told what
    /// no rounding is likely to exceed.
    pub(crate) fn public_polynomial(
        &self,
        values: &[Complex64],
        bound: f64,
        primes: &IndexSet,
        scale: &Scale,
    ) -> Result<(Poly<B, Coeff>, f64)> {
        let (log_n, largest) = (self.params.log_n(), scale.log2() + bound.log2());
        if !B::HOLDS_NUMBERS {
            self.embedding.check(values, bound)?;
            let error =
                noise::encoding_measured(log_n, largest, noise::likely_rounding(self.log2_coefficients(values)));
            return Ok((Poly::zero(self.rlwe.backend(), primes)?, error));
        }
        let double = self.double(scale)?;
        let (integers, rounding) = self.embedding.encode_measured(values, double, bound)?;
        let error = noise::encoding_measured(log_n, largest, rounding);
        Ok((self.encoded_polynomial(primes, &integers, double, bound)?, error))
    }

    /// log2 of how many coefficients encode these values: of a period p in all slots 2 p, those of powers of X^(N / 2p).
    fn log2_coefficients(&self, values: &[Complex64]) -> u32 {
        let (log_n, slots) = (self.params.log_n(), self.params.slots());
        let repeats = |log: &u32| (1 << log..slots).all(|i| values[i] == values[i - (1 << log)]);
        // Conjugates stand in odd places, so that a constant has period 2.
        let period = if values.len() == slots { (1..log_n - 1).find(repeats) } else { None };
        period.map_or(log_n, |log| log + 1)
    }

    fn encoded_polynomial(
        &self,
        primes: &IndexSet,
        integers: &[i128],
        scale: super::embedding::Scale,
        bound: f64,
    ) -> Result<Poly<B, Coeff>> {
        // No coefficient exceeds the largest slot.
        let bits = f64::from(scale.exponent()) + 1.0 + bound.log2();
        if bits < 62.0 {
            let words: Zeroizing<Vec<i64>> = Zeroizing::new(integers.iter().map(|&x| x as i64).collect());
            let bound = 1u64 << bits.ceil().max(0.0) as u32;
            return Ok(Poly::from_bounded(self.rlwe.backend(), primes, &words, bound)?);
        }
        self.signed_polynomial(primes, integers)
    }

    /// The polynomial with these coefficients, of less than 124 bits each.
    pub(crate) fn signed_polynomial(&self, primes: &IndexSet, integers: &[i128]) -> Result<Poly<B, Coeff>> {
        let low = |x: &i128| (x & ((1 << SPLIT_BITS) - 1)) as i64;
        let low: Zeroizing<Vec<i64>> = Zeroizing::new(integers.iter().map(low).collect());
        let high: Zeroizing<Vec<i64>> = Zeroizing::new(integers.iter().map(|x| (x >> SPLIT_BITS) as i64).collect());
        Ok(Poly::from_parts(self.rlwe.backend(), primes, &[&**low, &**high], SPLIT_BITS)?)
    }

    /// A message in coefficients; the last encoding is reused.
    pub(crate) fn coefficients(
        &self,
        plaintext: &Plaintext<B>,
        level: usize,
        scale: &Scale,
    ) -> Result<Arc<Encoded<B, Coeff>>> {
        let make = || Ok((self.polynomial(plaintext, level, scale)?, None));
        plaintext.coefficients.get_or_make(&self.params, (level, scale), false, make)
    }

    /// A message in the ring's slots; the last encoding is reused.
    pub(crate) fn slots(&self, plaintext: &Plaintext<B>, level: usize, scale: &Scale) -> Result<Arc<Encoded<B, Ntt>>> {
        let make = || Ok((self.polynomial(plaintext, level, scale)?.into_ntt(self.rlwe.backend())?, None));
        plaintext.slots.get_or_make(&self.params, (level, scale), false, make)
    }

    /// A public message in the ring's slots, with log2 of how far it is from the scaled message at any root; the last
    /// encoding is reused.
    pub(crate) fn factor(
        &self,
        plaintext: &Plaintext<B>,
        level: usize,
        scale: &Scale,
    ) -> Result<(Arc<Encoded<B, Ntt>>, f64)> {
        let make = || {
            let primes = self.params.rlwe().level(level)?;
            let (poly, error) = self.public_polynomial(self.values(plaintext)?, plaintext.bound(), primes, scale)?;
            Ok((poly.into_ntt(self.rlwe.backend())?, Some(error)))
        };
        let found = plaintext.slots.get_or_make(&self.params, (level, scale), true, make)?;
        let error = found.error.unwrap_or(f64::INFINITY);
        Ok((found, error))
    }

    /// The slots of a message that are not 0.
    pub(crate) fn holding(&self, plaintext: &Plaintext<B>) -> Result<Arc<[bool]>> {
        let values = self.values(plaintext)?;
        let held = |i: usize| values.get(i).is_some_and(|z| z.re != 0.0 || z.im != 0.0);
        Ok((0..self.params.slots()).map(held).collect())
    }

    /// Encrypts at the top level.
    ///
    /// # Errors
    /// As [`Self::encrypt_at`].
    pub fn encrypt(
        &self,
        key: &PublicKey<B>,
        plaintext: &Plaintext<B>,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<B>> {
        self.encrypt_at(key, plaintext, self.params.top_level(), randomness)
    }

    /// Encrypts at a level, whose scale the message takes.
    ///
    /// # Errors
    /// [`rlwe::Error::Level`], [`rlwe::Error::ParamsDiffer`], [`rlwe::Error::Entropy`], [`rlwe::Error::Noise`] when the
    /// level has no room for the declared bound.
    pub fn encrypt_at(
        &self,
        key: &PublicKey<B>,
        plaintext: &Plaintext<B>,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<B>> {
        let message = self.coefficients(plaintext, level, self.params.scale(level)?)?;
        self.fresh(key.encrypt(&self.rlwe, &message.poly, level, randomness)?, plaintext)
    }

    /// Encrypts at a level under the secret key; the second component is expanded from the seed returned.
    ///
    /// # Errors
    /// As [`Self::encrypt_at`].
    pub fn encrypt_with_secret(
        &self,
        key: &SecretKey<B>,
        plaintext: &Plaintext<B>,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<(Ciphertext<B>, Seed)> {
        let message = self.coefficients(plaintext, level, self.params.scale(level)?)?;
        let (inner, seed) = key.encrypt(&self.rlwe, &message.poly, level, randomness)?;
        Ok((self.fresh(inner, plaintext)?, seed))
    }

    fn fresh(&self, inner: rlwe::Ciphertext<B, Ntt>, plaintext: &Plaintext<B>) -> Result<Ciphertext<B>> {
        let level = self.params.at(inner.level())?;
        let rounding = noise::encoding(self.params.log_n(), level.log2, plaintext.bound());
        let total = inner.noise().plus(rounding);
        let inner = inner.assume_noise(total);
        Ciphertext::checked(self, Operation::Encryption, inner, level.scale.clone(), plaintext.bound())
    }

    /// Decrypts, on as many primes as the certificate says the phase needs; see [`Plaintext`] about publishing it.
    ///
    /// # Errors
    /// [`rlwe::Error::KeysDiffer`], [`rlwe::Error::ParamsDiffer`], [`rlwe::Error::Noise`] when the phase could wrap around.
    pub fn decrypt(&self, key: &SecretKey<B>, ct: &Ciphertext<B>) -> Result<Plaintext<B>> {
        let params = self.params.rlwe();
        params.require_digest(ct.inner().params_digest())?;
        let level = ct.level();
        let factor = ct.factor();
        noise::check(&self.params, level, factor.log2_message, factor.noise)?;
        let needed = noise::phase(&self.params, factor.log2_message, factor.noise) + 1.0 + 1e-9;
        let all = params.level(level)?;
        let mut count = 1;
        while count < all.len() && params.ring().log2(&all.iter().take(count).collect()) <= needed {
            count += 1;
        }
        let primes: IndexSet = all.iter().take(count).collect();
        let phase = key.phase_on(&self.rlwe, ct.inner(), &primes)?;
        let error = self.error_bound(ct);
        let decrypted = Decrypted { params_digest: *params.digest(), phase, scale: ct.scale().clone() };
        Ok(Plaintext::from_phase(decrypted, ct.bound() + error, error))
    }

    /// How far a decrypted and decoded slot may be from the message, at the failure limit of the parameters.
    #[must_use]
    pub fn error_bound(&self, ct: &Ciphertext<B>) -> f64 {
        let error = (noise::canonical(&self.params, ct.inner().noise()) - ct.log2_scale()).exp2();
        error + noise::transform_error(self.params.log_n()) * (ct.bound() + error)
    }

    /// log2 of what a slot of S z, the message at its scale, may be off by with a certificate, at a failure probability of
    /// choice for all slots together.
    #[must_use]
    pub fn slot_bound(&self, noise: Noise, limit: FailureLimit) -> f64 {
        noise::canonical_at(noise, self.params.log_n(), limit.log2_failure())
    }

    /// log2 of the message bound over the error bound: bits of the largest slot that are surely right.
    #[must_use]
    pub fn precision_bits(&self, ct: &Ciphertext<B>) -> f64 {
        (ct.bound() / self.error_bound(ct)).log2()
    }

    /// Bits by which message and error together could grow before they wrap around; needs no key.
    #[must_use]
    pub fn noise_budget(&self, ct: &Ciphertext<B>) -> f64 {
        let factor = ct.factor();
        let used = noise::phase(&self.params, factor.log2_message, factor.noise);
        noise::room(&self.params, ct.level()).unwrap_or(0.0) - used
    }

    /// The error of encoding a message at a scale.
    pub(crate) fn encoding_noise(&self, log2_scale: f64, bound: f64) -> Noise {
        noise::encoding(self.params.log_n(), log2_scale, bound)
    }
}
