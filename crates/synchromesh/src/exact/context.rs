//! A context: parameters on a device with everything derived from them; keys, encoding, encryption, decryption.

use std::sync::Arc;

use num_bigint::{BigInt, BigUint};
use synchromesh_rlwe::ring::sampler::Seed;
use synchromesh_rlwe::ring::{Backend, Cpu};
use synchromesh_rlwe::{EvaluationKeys, Observer, Operation, PublicKey, Randomness, SecretKey, Source};

use super::ciphertext::require_room;
use super::rotations::row_element;
use super::{Ciphertext, Integers, Params, Plaintext, Rotations, Scheme};
use crate::batch::{BatchEncoder, BatchError, CoefficientEncoder, PlainPoly};
use crate::error::{Error, Result};

/// Parameters of the scheme S on a device.
pub struct Context<S: Scheme, B: Backend = Cpu> {
    params: Params<S>,
    rlwe: Arc<synchromesh_rlwe::Context<B>>,
    slots: Option<BatchEncoder>,
    coefficients: CoefficientEncoder,
    tables: S::Tables<B>,
}

impl<S: Scheme> Context<S, Cpu> {
    /// The parameters on this machine's CPU.
    ///
    /// # Errors
    /// [`Error::Rlwe`] when `SYNCHROMESH_ISA` asks for what this CPU lacks.
    pub fn new(params: Params<S>) -> Result<Arc<Self>> {
        let backend = Cpu::open(Arc::clone(params.rlwe().ring()))?;
        Self::with_backend(params, backend)
    }
}

impl<S: Scheme, B: Backend> Context<S, B> {
    /// The parameters on a device of the caller's choice, opened for the same ring.
    ///
    /// # Errors
    /// When the device fails.
    pub fn with_backend(params: Params<S>, backend: B) -> Result<Arc<Self>> {
        Self::observed(params, backend, None)
    }

    /// As [`Self::with_backend`], watched by an observer.
    ///
    /// # Errors
    /// As [`Self::with_backend`].
    pub fn observed(params: Params<S>, backend: B, observer: Option<Arc<dyn Observer>>) -> Result<Arc<Self>> {
        let tables = S::tables(&params)?;
        Self::with_tables(synchromesh_rlwe::Context::observed(params.rlwe().clone(), backend, observer), params, tables)
    }

    /// As [`Self::observed`], with the context of the CKKS ring in which ciphertexts are bootstrapped: its keys go where the
    /// keys of this one go.
    ///
    /// # Errors
    /// As [`Self::with_backend`].
    pub fn around(
        params: Params<S>,
        backend: B,
        observer: Option<Arc<dyn Observer>>,
        inside: &crate::ckks::Context<B>,
    ) -> Result<Arc<Self>> {
        let (tables, inside) = (S::tables(&params)?, Arc::clone(inside.rlwe()));
        let rlwe = synchromesh_rlwe::Context::around(params.rlwe().clone(), backend, observer, inside);
        Self::with_tables(rlwe, params, tables)
    }

    pub(crate) fn with_tables(
        rlwe: Arc<synchromesh_rlwe::Context<B>>,
        params: Params<S>,
        tables: S::Tables<B>,
    ) -> Result<Arc<Self>> {
        let slots = match BatchEncoder::new(params.t(), params.log_n()) {
            Ok(encoder) => Some(encoder),
            Err(BatchError::NoSlots { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let coefficients = CoefficientEncoder::new(params.t(), params.log_n())?;
        Ok(Arc::new(Self { params, rlwe, slots, coefficients, tables }))
    }

    /// The parameters.
    #[must_use]
    pub const fn params(&self) -> &Params<S> {
        &self.params
    }

    /// The context of the layer below.
    #[must_use]
    pub const fn rlwe(&self) -> &Arc<synchromesh_rlwe::Context<B>> {
        &self.rlwe
    }

    /// The device.
    #[must_use]
    pub fn backend(&self) -> &B {
        self.rlwe.backend()
    }

    pub(crate) const fn tables(&self) -> &S::Tables<B> {
        &self.tables
    }

    /// A new secret key and its public key.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Entropy`] without randomness, or when the device fails.
    pub fn generate_keys(&self, randomness: &mut Randomness) -> Result<(SecretKey<B>, PublicKey<B>)> {
        let secret = SecretKey::generate(&self.rlwe, randomness)?;
        let public = PublicKey::generate(&self.rlwe, &secret, randomness)?;
        Ok((secret, public))
    }

    /// The keys that relinearisation and these rotations need.
    ///
    /// # Errors
    /// [`BatchError::NoSlots`] for rotations where t has no slots, or as [`Self::generate_keys`].
    pub fn generate_evaluation_keys(
        &self,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        let elements = self.galois_elements(rotations)?;
        let sources = std::iter::once(Source::Square).chain(elements.into_iter().map(Source::Galois));
        let (plan, second) = (self.params.plan(), self.params.second_plan());
        Ok(EvaluationKeys::generate_all(&self.rlwe, secret, sources, plan, second, randomness)?)
    }

    /// The Galois elements of rotations, in rising order and without 1.
    ///
    /// # Errors
    /// [`BatchError::NoSlots`] where t has no slots.
    pub fn galois_elements(&self, rotations: &Rotations) -> Result<Vec<usize>> {
        let mut elements = rotations.by.iter().map(|&k| self.galois_element(k)).collect::<Result<Vec<_>>>()?;
        if rotations.swap {
            elements.push(self.columns_element()?);
        }
        elements.retain(|&g| g != 1);
        elements.sort_unstable();
        elements.dedup();
        Ok(elements)
    }

    /// g = 3^k mod 2N: X -> X^g rotates both rows of slots by k, to the left for k > 0.
    ///
    /// # Errors
    /// [`BatchError::NoSlots`] where t has no slots.
    pub fn galois_element(&self, k: i64) -> Result<usize> {
        self.slot_encoder()?;
        Ok(row_element(k, self.params.n()))
    }

    /// g = 2N - 1: X -> X^g swaps the two rows of slots.
    ///
    /// # Errors
    /// [`BatchError::NoSlots`] where t has no slots.
    pub fn columns_element(&self) -> Result<usize> {
        self.slot_encoder()?;
        Ok(2 * self.params.n() - 1)
    }

    /// The slot encoder: N slots in two rows, for a prime t = 1 mod 2N.
    ///
    /// # Errors
    /// [`BatchError::NoSlots`] for any other t.
    pub fn slot_encoder(&self) -> Result<&BatchEncoder> {
        self.slots.as_ref().ok_or_else(|| {
            let t = self.params.t();
            BatchError::NoSlots { t: t.to_string(), log_n: self.params.log_n(), prime: t.is_prime() }.into()
        })
    }

    /// The coefficient encoder, for any t.
    #[must_use]
    pub const fn coefficient_encoder(&self) -> &CoefficientEncoder {
        &self.coefficients
    }

    /// Integers mod t into slots; those not given are 0.
    ///
    /// # Errors
    /// [`BatchError::TooManyValues`] above N, [`BatchError::NoSlots`] where t has none.
    pub fn encode<'a>(&self, values: impl Into<Integers<'a>>) -> Result<Plaintext> {
        let encoder = self.slot_encoder()?;
        let poly = match values.into() {
            Integers::U64(x) => encoder.encode_u64(x),
            Integers::I64(x) => encoder.encode_i64(x),
            Integers::Big(x) => encoder.encode_big(x),
        };
        Ok(poly?.into())
    }

    /// Integers mod t into coefficients; those not given are 0.
    ///
    /// # Errors
    /// [`BatchError::TooManyValues`] above N.
    pub fn encode_coefficients<'a>(&self, values: impl Into<Integers<'a>>) -> Result<Plaintext> {
        let poly = match values.into() {
            Integers::U64(x) => self.coefficients.encode_u64(x),
            Integers::I64(x) => self.coefficients.encode_i64(x),
            Integers::Big(x) => self.coefficients.encode_big(x),
        };
        Ok(poly?.into())
    }

    /// All N slots, each in \[-(t-1)/2, t/2\].
    ///
    /// # Errors
    /// [`BatchError::DoesNotFit`] for t above 64 bits, [`BatchError::NoSlots`] where t has none.
    pub fn decode(&self, plaintext: &Plaintext) -> Result<Vec<i64>> {
        Ok(self.slot_encoder()?.decode_i64(plaintext.poly())?)
    }

    /// All N slots, each in \[0, t); errors as [`Self::decode`].
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decode_u64(&self, plaintext: &Plaintext) -> Result<Vec<u64>> {
        Ok(self.slot_encoder()?.decode_u64(plaintext.poly())?)
    }

    /// All N slots, centred, for any t that has slots.
    ///
    /// # Errors
    /// [`BatchError::NoSlots`] where t has none.
    pub fn decode_big(&self, plaintext: &Plaintext) -> Result<Vec<BigInt>> {
        Ok(self.slot_encoder()?.decode_big(plaintext.poly())?)
    }

    /// All N coefficients, each in \[-(t-1)/2, t/2\].
    ///
    /// # Errors
    /// [`BatchError::DoesNotFit`] for t above 64 bits.
    pub fn decode_coefficients(&self, plaintext: &Plaintext) -> Result<Vec<i64>> {
        Ok(self.coefficients.decode_i64(plaintext.poly())?)
    }

    /// All N coefficients, each in \[0, t).
    ///
    /// # Errors
    /// [`BatchError::DoesNotFit`] for t above 64 bits.
    pub fn decode_coefficients_u64(&self, plaintext: &Plaintext) -> Result<Vec<u64>> {
        Ok(self.coefficients.decode_u64(plaintext.poly())?)
    }

    /// All N coefficients, centred, for any t.
    ///
    /// # Errors
    /// [`Error::Batch`] for a plaintext of another t or N.
    pub fn decode_coefficients_big(&self, plaintext: &Plaintext) -> Result<Vec<BigInt>> {
        Ok(self.coefficients.decode_big(plaintext.poly())?)
    }

    /// All N coefficients in \[0, t), for any t.
    ///
    /// # Errors
    /// [`Error::Batch`] for a plaintext of another t or N.
    pub fn decode_coefficients_unsigned(&self, plaintext: &Plaintext) -> Result<Vec<BigUint>> {
        Ok(self.coefficients.decode_big_unsigned(plaintext.poly())?)
    }

    /// Encrypts at the top level.
    ///
    /// # Errors
    /// As [`Self::encrypt_at`].
    pub fn encrypt(
        &self,
        key: &PublicKey<B>,
        plaintext: &Plaintext,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<S, B>> {
        self.encrypt_at(key, plaintext, self.params.top_level(), randomness)
    }

    /// Encrypts at `level`.
    ///
    /// # Errors
    /// [`Error::PlainModulusDiffers`] or [`Error::Degree`] for a plaintext of other parameters,
    /// [`synchromesh_rlwe::Error::Level`] above the top level, [`synchromesh_rlwe::Error::ParamsDiffer`] for another
    /// key, [`synchromesh_rlwe::Error::Noise`] when the level has no room for a fresh ciphertext.
    pub fn encrypt_at(
        &self,
        key: &PublicKey<B>,
        plaintext: &Plaintext,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<S, B>> {
        self.require_plaintext(plaintext)?;
        let header = S::fresh_header(self, level)?;
        let (message, noise) = S::message(self, plaintext.poly(), level, &header)?;
        let message = Secret(message);
        let inner = key.encrypt(&self.rlwe, &message.0, level, randomness)?;
        Ciphertext::new(inner, header).with_more_noise(noise).certified(self, Operation::Encryption)
    }

    /// Encrypts at the top level under the secret key; the second component is expanded from the seed returned.
    ///
    /// # Errors
    /// As [`Self::encrypt_at`].
    pub fn encrypt_with_secret(
        &self,
        secret: &SecretKey<B>,
        plaintext: &Plaintext,
        randomness: &mut Randomness,
    ) -> Result<(Ciphertext<S, B>, Seed)> {
        self.require_plaintext(plaintext)?;
        let level = self.params.top_level();
        let header = S::fresh_header(self, level)?;
        let (message, noise) = S::message(self, plaintext.poly(), level, &header)?;
        let message = Secret(message);
        let (inner, seed) = secret.encrypt(&self.rlwe, &message.0, level, randomness)?;
        Ok((Ciphertext::new(inner, header).with_more_noise(noise).certified(self, Operation::Encryption)?, seed))
    }

    /// Decrypts two or three components.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Noise`] when the certificate leaves no room at the failure limit of the parameters,
    /// [`synchromesh_rlwe::Error::KeysDiffer`] or [`synchromesh_rlwe::Error::ParamsDiffer`] for another key.
    pub fn decrypt(&self, secret: &SecretKey<B>, ciphertext: &Ciphertext<S, B>) -> Result<Plaintext> {
        let phase = self.phase(secret, ciphertext)?;
        Ok(S::recover(self, ciphertext, phase.poly())?.into())
    }

    /// The phase of a ciphertext whose certificate leaves room.
    pub(crate) fn phase(
        &self,
        secret: &SecretKey<B>,
        ciphertext: &Ciphertext<S, B>,
    ) -> Result<synchromesh_rlwe::secret_key::Phase<B>> {
        self.params.rlwe().require_digest(ciphertext.inner().params_digest())?;
        require_room(&self.params, ciphertext.noise(), ciphertext.level())?;
        Ok(secret.phase(&self.rlwe, ciphertext.inner())?)
    }

    /// Bits of noise that the certificate leaves before decryption could fail; needs no key.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::ParamsDiffer`] for a ciphertext of other parameters.
    pub fn noise_budget(&self, ciphertext: &Ciphertext<S, B>) -> Result<f64> {
        self.params.rlwe().require_digest(ciphertext.inner().params_digest())?;
        let bound = ciphertext.noise().bound(self.params.log_n(), self.params.failure_limit().log2_failure());
        Ok(S::room(&self.params, ciphertext.level())? - bound)
    }

    pub(crate) fn require_plaintext(&self, plaintext: &Plaintext) -> Result<()> {
        require_poly(&self.params, plaintext.poly())
    }
}

fn require_poly<S: Scheme>(params: &Params<S>, poly: &PlainPoly) -> Result<()> {
    if poly.modulus() != params.t() {
        let (expected, found) = (params.t().to_string(), poly.modulus().to_string());
        return Err(Error::PlainModulusDiffers { expected, found });
    }
    if poly.coeffs().len() != params.n() {
        return Err(Error::Degree { expected: params.n(), found: poly.coeffs().len() });
    }
    Ok(())
}

/// A secret polynomial, overwritten with zeros when dropped.
pub(crate) struct Secret<T: zeroize::Zeroize>(pub(crate) T);

impl<T: zeroize::Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
