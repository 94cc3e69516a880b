//! CKKS: reals in N/2 slots.

use super::{Flooding, KeyPair, Open, Scheme};
use crate::demo::Health;
use crate::error::Error;
use crate::number::Number;
use std::sync::Arc;
use synchromesh::ckks::{Ciphertext, Context, Evaluator, Header, Plaintext, Published, Release, Rotations};
use synchromesh::plan::Plan;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::wire::KeyId;
use synchromesh::rlwe::{self, EvaluationKeys, PublicKey, Randomness, SecretKey};
use synchromesh::rotations::Routes;
use synchromesh_ring::Cpu;

/// Reals, to within a certified error.
pub struct Approximate<B: Open = Cpu> {
    context: Arc<Context<B>>,
    evaluator: Evaluator<B>,
}

impl<B: Open> Approximate<B> {
    /// Public numbers, with their largest magnitude as the bound.
    fn plaintext(&self, values: &[Number]) -> Result<Plaintext<B>, Error> {
        let values = reals(values)?;
        let bound = values.iter().fold(f64::MIN_POSITIVE, |bound, value| bound.max(value.abs()));
        Ok(self.context.encode_bounded(&values, bound)?)
    }
}

fn reals(values: &[Number]) -> Result<Vec<f64>, Error> {
    values.iter().map(real).collect()
}

fn real(value: &Number) -> Result<f64, Error> {
    value.to_f64().ok_or_else(|| Error::NotReal { value: value.to_string() })
}

impl<B: Open> Scheme for Approximate<B> {
    type Backend = B;
    type Ciphertext = Ciphertext<B>;

    fn open(plan: &Plan) -> Result<Self, Error> {
        let params = plan.ckks()?;
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
        self.context.params().slots()
    }

    fn row(&self) -> usize {
        self.slots()
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
        bound: f64,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<B>, Error> {
        let plaintext = self.context.encode_bounded(&reals(values)?, bound)?;
        Ok(self.context.encrypt(key, &plaintext, randomness)?)
    }

    fn decrypt(&self, key: &SecretKey<B>, ciphertext: &Ciphertext<B>) -> Result<Vec<Number>, Error> {
        let plaintext = self.context.decrypt(key, ciphertext)?;
        Ok(self.context.decode(&plaintext)?.into_iter().map(Number::Real).collect())
    }

    fn publish(
        &self,
        key: &SecretKey<B>,
        ciphertext: &Ciphertext<B>,
        release: &Release,
    ) -> Result<(Vec<Number>, Flooding), Error> {
        let Published { values, precision, sigma_bits } = self.context.publish(key, ciphertext, release)?;
        Ok((values.into_iter().map(|z| Number::Real(z.re)).collect(), Flooding { precision, sigma_bits }))
    }

    fn write(&self, ciphertext: &Ciphertext<B>) -> Result<Vec<u8>, Error> {
        Ok(ciphertext.to_bytes(&self.context, None)?)
    }

    fn read(&self, bytes: &[u8], key: Option<KeyId>, trust: Trust<'_>) -> Result<Ciphertext<B>, Error> {
        Ok(Ciphertext::from_bytes(&self.context, bytes, key, trust)?)
    }

    fn is_on_word(&self, ciphertext: &Ciphertext<B>) -> bool {
        ciphertext.inner().noise().certificate.is_on_word()
    }

    /// The noise is the certified error times the scale.
    fn health(&self, ciphertext: &Ciphertext<B>) -> Health {
        let params = self.context.params().rlwe();
        let modulus_bits = params.level(ciphertext.level()).map_or(f64::NAN, |primes| params.ring().log2(primes));
        let noise_bits = self.context.error_bound(ciphertext).log2() + ciphertext.log2_scale();
        Health { level: ciphertext.level() as u32, modulus_bits, noise_bits }
    }

    fn budget(&self, ciphertext: &Ciphertext<B>) -> f64 {
        self.context.noise_budget(ciphertext)
    }

    fn error_bound(&self, ciphertext: &Ciphertext<B>) -> f64 {
        self.context.error_bound(ciphertext)
    }

    fn add(&self, a: &Ciphertext<B>, b: &Ciphertext<B>) -> Result<Ciphertext<B>, Error> {
        Ok(self.evaluator.add(a, b)?)
    }

    fn sub(&self, a: &Ciphertext<B>, b: &Ciphertext<B>) -> Result<Ciphertext<B>, Error> {
        Ok(self.evaluator.sub(a, b)?)
    }

    fn neg(&self, a: &Ciphertext<B>) -> Result<Ciphertext<B>, Error> {
        Ok(self.evaluator.neg(a)?)
    }

    fn mul(&self, a: &Ciphertext<B>, b: &Ciphertext<B>) -> Result<Ciphertext<B>, Error> {
        Ok(self.evaluator.mul(a, b)?)
    }

    fn square(&self, a: &Ciphertext<B>) -> Result<Ciphertext<B>, Error> {
        Ok(self.evaluator.square(a)?)
    }

    fn add_const(&self, a: &Ciphertext<B>, c: &Number) -> Result<Ciphertext<B>, Error> {
        Ok(self.evaluator.add_scalar(a, real(c)?)?)
    }

    fn mul_const(&self, a: &Ciphertext<B>, c: &Number) -> Result<Ciphertext<B>, Error> {
        Ok(self.evaluator.mul_scalar(a, real(c)?)?)
    }

    fn add_plain(&self, a: &Ciphertext<B>, p: &[Number]) -> Result<Ciphertext<B>, Error> {
        Ok(self.evaluator.add_plain(a, &self.plaintext(p)?)?)
    }

    fn mul_plain(&self, a: &Ciphertext<B>, p: &[Number]) -> Result<Ciphertext<B>, Error> {
        Ok(self.evaluator.mul_plain(a, &self.plaintext(p)?)?)
    }

    fn rotate(&self, a: &Ciphertext<B>, k: i64) -> Result<Ciphertext<B>, Error> {
        Ok(self.evaluator.rotate(a, k)?)
    }

    fn conjugate(&self, a: &Ciphertext<B>) -> Result<Ciphertext<B>, Error> {
        Ok(self.evaluator.conjugate(a)?)
    }

    fn promise(&self, a: Ciphertext<B>, bound: f64) -> Result<Ciphertext<B>, Error> {
        let (inner, header) = a.into_parts();
        Ok(Ciphertext::from_parts(&self.context, inner, Header { bound: header.bound.min(bound), ..header })?)
    }
}
