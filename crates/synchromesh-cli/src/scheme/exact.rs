//! BFV and BGV: integers modulo t in two rows of N/2 slots.

use super::{Flooding, KeyPair, Open, Scheme};
use crate::demo::Health;
use crate::error::Error;
use crate::number::Number;
use num_bigint::BigInt;
use num_traits::Signed;
use std::sync::Arc;
use synchromesh::ckks::Release;
use synchromesh::exact::{Ciphertext, Context, Evaluator, Params, Plaintext, Rotations};
use synchromesh::plan::Plan;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::wire::KeyId;
use synchromesh::rlwe::{self, EvaluationKeys, PublicKey, Randomness, SecretKey};
use synchromesh::rotations::Routes;
use synchromesh::{bfv, bgv};
use synchromesh_ring::Cpu;

/// An exact scheme S whose parameters can be found in a plan.
pub trait Planned: synchromesh::exact::Scheme {
    /// The parameters, if the plan is for this scheme.
    ///
    /// # Errors
    /// A plan of another scheme, or parameters that fail their checks.
    fn params(plan: &Plan) -> synchromesh::Result<Params<Self>>;
}

impl Planned for bfv::Bfv {
    fn params(plan: &Plan) -> synchromesh::Result<Params<Self>> {
        plan.bfv()
    }
}

impl Planned for bgv::Bgv {
    fn params(plan: &Plan) -> synchromesh::Result<Params<Self>> {
        plan.bgv()
    }
}

/// Integers modulo t.
pub struct Exact<S: Planned, B: Open = Cpu> {
    context: Arc<Context<S, B>>,
    evaluator: Evaluator<S, B>,
}

impl<S: Planned, B: Open> Exact<S, B> {
    /// Public numbers in slots, their norms known to certificates.
    fn plaintext(&self, values: &[Number]) -> Result<Plaintext, Error> {
        let integers = self.integers(values)?;
        Ok(self.context.encode(&integers[..])?.with_public_norms())
    }

    /// Integers of magnitude at most t/2.
    fn integers(&self, values: &[Number]) -> Result<Vec<BigInt>, Error> {
        let t = self.context.params().t().value();
        let fits = |value: &BigInt| {
            let twice = value.magnitude() << 1u32;
            if value.is_negative() { twice < *t } else { twice <= *t }
        };
        let integer = |value: &Number| {
            let integer = self.integer(value)?;
            if fits(&integer) {
                Ok(integer)
            } else {
                Err(Error::Modulus { value: integer.to_string(), t: t.to_string() })
            }
        };
        values.iter().map(integer).collect()
    }

    fn integer(&self, value: &Number) -> Result<BigInt, Error> {
        value.to_integer().ok_or_else(|| Error::NotInteger { value: value.to_string(), scheme: S::NAME })
    }
}

impl<S: Planned, B: Open> Scheme for Exact<S, B> {
    type Backend = B;
    type Ciphertext = Ciphertext<S, B>;

    fn open(plan: &Plan) -> Result<Self, Error> {
        let params = S::params(plan)?;
        let backend = B::open(params.rlwe().ring())?;
        let context = Context::with_backend(params, backend)?;
        Ok(Self { evaluator: Evaluator::new(&context, None), context })
    }

    fn with_keys(self, keys: Arc<EvaluationKeys<B>>, routes: Option<&Routes>) -> Self {
        Self { evaluator: Evaluator::new(&self.context, Some(keys)).with_routes(routes.cloned().map(Arc::new)), ..self }
    }

    fn rlwe(&self) -> &Arc<rlwe::Context<B>> {
        self.context.rlwe()
    }

    fn slots(&self) -> usize {
        self.context.params().n()
    }

    fn row(&self) -> usize {
        self.slots() / 2
    }

    fn generate_keys(&self, randomness: &mut Randomness) -> Result<KeyPair<B>, Error> {
        Ok(self.context.generate_keys(randomness)?)
    }

    fn generate_evaluation_keys(
        &self,
        secret: &SecretKey<B>,
        rotations: &[i64],
        swap: bool,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>, Error> {
        let rotations = Rotations { swap, ..Rotations::by(rotations.iter().copied()) };
        Ok(self.context.generate_evaluation_keys(secret, &rotations, randomness)?)
    }

    fn encrypt(
        &self,
        key: &PublicKey<B>,
        values: &[Number],
        _bound: f64,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<S, B>, Error> {
        let integers = self.integers(values)?;
        Ok(self.context.encrypt(key, &self.context.encode(&integers[..])?, randomness)?)
    }

    fn decrypt(&self, key: &SecretKey<B>, ciphertext: &Ciphertext<S, B>) -> Result<Vec<Number>, Error> {
        let plaintext = self.context.decrypt(key, ciphertext)?;
        Ok(self.context.decode_big(&plaintext)?.into_iter().map(Number::Int).collect())
    }

    fn publish(&self, _: &SecretKey<B>, _: &Ciphertext<S, B>, _: &Release) -> Result<(Vec<Number>, Flooding), Error> {
        let reason = format!("results of {} are exact and are released by decrypting; noise is for ckks", S::NAME);
        Err(synchromesh::Error::Release { reason }.into())
    }

    fn write(&self, ciphertext: &Ciphertext<S, B>) -> Result<Vec<u8>, Error> {
        Ok(ciphertext.to_bytes(&self.context, None)?)
    }

    fn read(&self, bytes: &[u8], key: Option<KeyId>, trust: Trust<'_>) -> Result<Ciphertext<S, B>, Error> {
        Ok(Ciphertext::from_bytes(&self.context, bytes, key, trust)?)
    }

    fn is_on_word(&self, ciphertext: &Ciphertext<S, B>) -> bool {
        ciphertext.inner().noise().certificate.is_on_word()
    }

    fn health(&self, ciphertext: &Ciphertext<S, B>) -> Health {
        let modulus_bits = self.context.params().log2_modulus(ciphertext.level()).unwrap_or(f64::NAN);
        let budget = self.context.noise_budget(ciphertext).unwrap_or(f64::NAN);
        Health { level: ciphertext.level() as u32, modulus_bits, noise_bits: modulus_bits - budget }
    }

    fn budget(&self, ciphertext: &Ciphertext<S, B>) -> f64 {
        self.context.noise_budget(ciphertext).unwrap_or(f64::NAN)
    }

    fn error_bound(&self, _: &Ciphertext<S, B>) -> f64 {
        0.0
    }

    fn add(&self, a: &Ciphertext<S, B>, b: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>, Error> {
        Ok(self.evaluator.add(a, b)?)
    }

    fn sub(&self, a: &Ciphertext<S, B>, b: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>, Error> {
        Ok(self.evaluator.sub(a, b)?)
    }

    fn neg(&self, a: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>, Error> {
        Ok(self.evaluator.neg(a)?)
    }

    fn mul(&self, a: &Ciphertext<S, B>, b: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>, Error> {
        Ok(self.evaluator.mul(a, b)?)
    }

    fn square(&self, a: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>, Error> {
        Ok(self.evaluator.square(a)?)
    }

    fn add_const(&self, a: &Ciphertext<S, B>, c: &Number) -> Result<Ciphertext<S, B>, Error> {
        let constant = self.context.encode_coefficients(&[self.integer(c)?])?.with_public_norms();
        Ok(self.evaluator.add_plain(a, &constant)?)
    }

    fn mul_const(&self, a: &Ciphertext<S, B>, c: &Number) -> Result<Ciphertext<S, B>, Error> {
        Ok(self.evaluator.mul_scalar(a, self.integer(c)?)?)
    }

    fn add_plain(&self, a: &Ciphertext<S, B>, p: &[Number]) -> Result<Ciphertext<S, B>, Error> {
        Ok(self.evaluator.add_plain(a, &self.plaintext(p)?)?)
    }

    fn mul_plain(&self, a: &Ciphertext<S, B>, p: &[Number]) -> Result<Ciphertext<S, B>, Error> {
        Ok(self.evaluator.mul_plain(a, &self.plaintext(p)?)?)
    }

    fn rotate(&self, a: &Ciphertext<S, B>, k: i64) -> Result<Ciphertext<S, B>, Error> {
        Ok(self.evaluator.rotate_rows(a, k)?)
    }

    fn conjugate(&self, a: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>, Error> {
        Ok(self.evaluator.rotate_columns(a)?)
    }

    fn promise(&self, a: Ciphertext<S, B>, _: f64) -> Result<Ciphertext<S, B>, Error> {
        Ok(a)
    }
}
