//! BFV and BGV: integers modulo t in two rows of N/2 slots.

use super::{Scheme, another_scheme};
use crate::demo::Health;
use crate::error::Error;
use crate::number::Number;
use num_bigint::BigInt;
use num_traits::Signed;
use std::sync::Arc;
use synchromesh::exact::{Ciphertext, Context, Evaluator, Params, ParamsLiteral, Plaintext, Rotations};
use synchromesh::plan::SchemeParams;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::wire::KeyId;
use synchromesh::rlwe::{self, EvaluationKeys, PublicKey, Randomness, SecretKey};
use synchromesh::{bfv, bgv};

/// An exact scheme S whose literal can be found in a plan.
pub trait Planned: synchromesh::exact::Scheme {
    /// The literal, if these are parameters of this scheme.
    fn literal(params: &SchemeParams) -> Option<&ParamsLiteral>;
}

impl Planned for bfv::Bfv {
    fn literal(params: &SchemeParams) -> Option<&ParamsLiteral> {
        if let SchemeParams::Bfv(literal) = params { Some(literal) } else { None }
    }
}

impl Planned for bgv::Bgv {
    fn literal(params: &SchemeParams) -> Option<&ParamsLiteral> {
        if let SchemeParams::Bgv(literal) = params { Some(literal) } else { None }
    }
}

/// Integers modulo t.
pub struct Exact<S: Planned> {
    context: Arc<Context<S>>,
    evaluator: Evaluator<S>,
}

impl<S: Planned> Exact<S> {
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

impl<S: Planned> Scheme for Exact<S> {
    type Ciphertext = Ciphertext<S>;

    fn open(params: &SchemeParams) -> Result<Self, Error> {
        let literal = S::literal(params).ok_or_else(|| another_scheme(S::NAME, params))?;
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
        self.context.params().n()
    }

    fn row(&self) -> usize {
        self.slots() / 2
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
        let rotations = Rotations { rows: rotations.to_vec(), columns: swap };
        Ok(self.context.generate_evaluation_keys(secret, &rotations, randomness)?)
    }

    fn encrypt(
        &self,
        key: &PublicKey,
        values: &[Number],
        _bound: f64,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<S>, Error> {
        let integers = self.integers(values)?;
        Ok(self.context.encrypt(key, &self.context.encode(&integers[..])?, randomness)?)
    }

    fn decrypt(&self, key: &SecretKey, ciphertext: &Ciphertext<S>) -> Result<Vec<Number>, Error> {
        let plaintext = self.context.decrypt(key, ciphertext)?;
        Ok(self.context.decode_big(&plaintext)?.into_iter().map(Number::Int).collect())
    }

    fn write(&self, ciphertext: &Ciphertext<S>) -> Result<Vec<u8>, Error> {
        Ok(ciphertext.to_bytes(&self.context)?)
    }

    fn read(&self, bytes: &[u8], key: Option<KeyId>) -> Result<Ciphertext<S>, Error> {
        Ok(Ciphertext::from_bytes(&self.context, bytes, key, Trust::Certificate)?)
    }

    fn health(&self, ciphertext: &Ciphertext<S>) -> Health {
        let modulus_bits = self.context.params().log2_modulus(ciphertext.level()).unwrap_or(f64::NAN);
        let budget = self.context.noise_budget(ciphertext).unwrap_or(f64::NAN);
        Health { level: ciphertext.level() as u32, modulus_bits, noise_bits: modulus_bits - budget }
    }

    fn error_bound(&self, _: &Ciphertext<S>) -> f64 {
        0.0
    }

    fn add(&self, a: &Ciphertext<S>, b: &Ciphertext<S>) -> Result<Ciphertext<S>, Error> {
        Ok(self.evaluator.add(a, b)?)
    }

    fn sub(&self, a: &Ciphertext<S>, b: &Ciphertext<S>) -> Result<Ciphertext<S>, Error> {
        Ok(self.evaluator.sub(a, b)?)
    }

    fn neg(&self, a: &Ciphertext<S>) -> Result<Ciphertext<S>, Error> {
        Ok(self.evaluator.neg(a)?)
    }

    fn mul(&self, a: &Ciphertext<S>, b: &Ciphertext<S>) -> Result<Ciphertext<S>, Error> {
        Ok(self.evaluator.mul(a, b)?)
    }

    fn square(&self, a: &Ciphertext<S>) -> Result<Ciphertext<S>, Error> {
        Ok(self.evaluator.square(a)?)
    }

    fn add_const(&self, a: &Ciphertext<S>, c: &Number) -> Result<Ciphertext<S>, Error> {
        let constant = self.context.encode_coefficients(&[self.integer(c)?])?.with_public_norms();
        Ok(self.evaluator.add_plain(a, &constant)?)
    }

    fn mul_const(&self, a: &Ciphertext<S>, c: &Number) -> Result<Ciphertext<S>, Error> {
        Ok(self.evaluator.mul_scalar(a, self.integer(c)?)?)
    }

    fn add_plain(&self, a: &Ciphertext<S>, p: &[Number]) -> Result<Ciphertext<S>, Error> {
        Ok(self.evaluator.add_plain(a, &self.plaintext(p)?)?)
    }

    fn mul_plain(&self, a: &Ciphertext<S>, p: &[Number]) -> Result<Ciphertext<S>, Error> {
        Ok(self.evaluator.mul_plain(a, &self.plaintext(p)?)?)
    }

    fn rotate(&self, a: &Ciphertext<S>, k: i64) -> Result<Ciphertext<S>, Error> {
        Ok(self.evaluator.rotate_rows(a, k)?)
    }

    fn conjugate(&self, a: &Ciphertext<S>) -> Result<Ciphertext<S>, Error> {
        Ok(self.evaluator.rotate_columns(a)?)
    }

    fn promise(&self, a: Ciphertext<S>, _: f64) -> Result<Ciphertext<S>, Error> {
        Ok(a)
    }
}
