//! CKKS: reals in N/2 slots.

use super::{Scheme, another_scheme};
use crate::demo::Health;
use crate::error::Error;
use crate::number::Number;
use std::sync::Arc;
use synchromesh::ckks::{Ciphertext, Context, Evaluator, Header, Params, Plaintext, Rotations};
use synchromesh::plan::SchemeParams;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::wire::KeyId;
use synchromesh::rlwe::{self, EvaluationKeys, PublicKey, Randomness, SecretKey};

/// Reals, to within a certified error.
pub struct Approximate {
    context: Arc<Context>,
    evaluator: Evaluator,
}

impl Approximate {
    /// Public numbers, with their largest magnitude as the bound.
    fn plaintext(&self, values: &[Number]) -> Result<Plaintext, Error> {
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

impl Scheme for Approximate {
    type Ciphertext = Ciphertext;

    fn open(params: &SchemeParams) -> Result<Self, Error> {
        let SchemeParams::Ckks(literal) = params else { return Err(another_scheme("ckks", params)) };
        let context = Context::new(Params::new(literal.clone())?)?;
        Ok(Self { evaluator: Evaluator::new(&context, None), context })
    }

    fn with_keys(self, keys: Arc<EvaluationKeys>) -> Self {
        Self { evaluator: Evaluator::new(&self.context, Some(keys)), ..self }
    }

    fn rlwe(&self) -> &Arc<rlwe::Context> {
        self.context.rlwe()
    }

    fn slots(&self) -> usize {
        self.context.params().slots()
    }

    fn row(&self) -> usize {
        self.slots()
    }

    fn generate_keys(&self, randomness: &mut Randomness) -> Result<(SecretKey, PublicKey), Error> {
        Ok(self.context.generate_keys(randomness)?)
    }

    fn generate_evaluation_keys(
        &self,
        secret: &SecretKey,
        rotations: &[i64],
        swap: bool,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys, Error> {
        let rotations = Rotations { by: rotations.to_vec(), conjugate: swap };
        Ok(self.context.generate_evaluation_keys(secret, &rotations, randomness)?)
    }

    fn encrypt(
        &self,
        key: &PublicKey,
        values: &[Number],
        bound: f64,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext, Error> {
        let plaintext = self.context.encode_bounded(&reals(values)?, bound)?;
        Ok(self.context.encrypt(key, &plaintext, randomness)?)
    }

    fn decrypt(&self, key: &SecretKey, ciphertext: &Ciphertext) -> Result<Vec<Number>, Error> {
        let plaintext = self.context.decrypt(key, ciphertext)?;
        Ok(self.context.decode(&plaintext)?.into_iter().map(Number::Real).collect())
    }

    fn write(&self, ciphertext: &Ciphertext) -> Result<Vec<u8>, Error> {
        Ok(ciphertext.to_bytes(&self.context)?)
    }

    fn read(&self, bytes: &[u8], key: Option<KeyId>) -> Result<Ciphertext, Error> {
        Ok(Ciphertext::from_bytes(&self.context, bytes, key, Trust::Certificate)?)
    }

    /// The noise is the certified error times the scale.
    fn health(&self, ciphertext: &Ciphertext) -> Health {
        let params = self.context.params().rlwe();
        let modulus_bits = params.level(ciphertext.level()).map_or(f64::NAN, |primes| params.ring().log2(primes));
        let noise_bits = self.context.error_bound(ciphertext).log2() + ciphertext.log2_scale();
        Health { level: ciphertext.level() as u32, modulus_bits, noise_bits }
    }

    fn error_bound(&self, ciphertext: &Ciphertext) -> f64 {
        self.context.error_bound(ciphertext)
    }

    fn add(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, Error> {
        Ok(self.evaluator.add(a, b)?)
    }

    fn sub(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, Error> {
        Ok(self.evaluator.sub(a, b)?)
    }

    fn neg(&self, a: &Ciphertext) -> Result<Ciphertext, Error> {
        Ok(self.evaluator.neg(a)?)
    }

    fn mul(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, Error> {
        Ok(self.evaluator.mul(a, b)?)
    }

    fn square(&self, a: &Ciphertext) -> Result<Ciphertext, Error> {
        Ok(self.evaluator.square(a)?)
    }

    fn add_const(&self, a: &Ciphertext, c: &Number) -> Result<Ciphertext, Error> {
        Ok(self.evaluator.add_scalar(a, real(c)?)?)
    }

    fn mul_const(&self, a: &Ciphertext, c: &Number) -> Result<Ciphertext, Error> {
        Ok(self.evaluator.mul_scalar(a, real(c)?)?)
    }

    fn add_plain(&self, a: &Ciphertext, p: &[Number]) -> Result<Ciphertext, Error> {
        Ok(self.evaluator.add_plain(a, &self.plaintext(p)?)?)
    }

    fn mul_plain(&self, a: &Ciphertext, p: &[Number]) -> Result<Ciphertext, Error> {
        Ok(self.evaluator.mul_plain(a, &self.plaintext(p)?)?)
    }

    fn rotate(&self, a: &Ciphertext, k: i64) -> Result<Ciphertext, Error> {
        Ok(self.evaluator.rotate(a, k)?)
    }

    fn conjugate(&self, a: &Ciphertext) -> Result<Ciphertext, Error> {
        Ok(self.evaluator.conjugate(a)?)
    }

    fn promise(&self, a: Ciphertext, bound: f64) -> Result<Ciphertext, Error> {
        let (inner, header) = a.into_parts();
        Ok(Ciphertext::from_parts(&self.context, inner, Header { bound: header.bound.min(bound), ..header })?)
    }
}
