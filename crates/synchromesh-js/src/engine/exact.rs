//! BFV and BGV: integers modulo t in two rows of N/2 slots.

use std::marker::PhantomData;
use std::sync::Arc;

use num_bigint::{BigInt, Sign};
use synchromesh::exact::{self, Ciphertext, Context, Evaluator, Plaintext, Rotations};
use synchromesh::plan::Plan;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::{self, EvaluationKeys, PublicKey, Randomness, SecretKey};

use super::{Binary, Scheme, State, Unary};
use crate::fault::Fault;
use crate::numbers::{Kind, Number};

/// BFV or BGV.
pub(super) struct Exact<S>(PhantomData<S>);

/// Integers from -(t-1)/2 to t/2.
fn integers<S: exact::Scheme>(context: &Context<S>, values: &[Number]) -> Result<Vec<BigInt>, Fault> {
    let t = context.params().t().value();
    let fits = |value: &BigInt| {
        let twice = value.magnitude() << 1u32;
        if value.sign() == Sign::Minus { twice < *t } else { twice <= *t }
    };
    let integer = |(index, value): (usize, &Number)| {
        let value = value.integer()?;
        if fits(&value) {
            return Ok(value);
        }
        let message = format!("number {index} is outside -t/2 to t/2 for t = {t}");
        Err(Fault::own("value_exceeds_modulus", message, "plan with a larger t, or scale the numbers down"))
    };
    values.iter().enumerate().map(integer).collect()
}

/// Public numbers in slots, their norms known to certificates.
fn plaintext<S: exact::Scheme>(context: &Context<S>, values: &[Number]) -> Result<Plaintext, Fault> {
    Ok(context.encode(&integers(context, values)?)?.with_public_norms())
}

impl<S: exact::Scheme> Scheme for Exact<S> {
    type Evaluator = Evaluator<S>;
    type Ciphertext = Ciphertext<S>;

    fn slots(e: &Evaluator<S>) -> usize {
        e.context().params().n()
    }

    fn row(e: &Evaluator<S>) -> usize {
        Self::slots(e) / 2
    }

    fn kind(e: &Evaluator<S>) -> Kind {
        if e.context().params().t().bits() <= 63 { Kind::Words } else { Kind::Integers }
    }

    fn rlwe(e: &Evaluator<S>) -> &Arc<rlwe::Context> {
        e.context().rlwe()
    }

    fn with_keys(e: &Evaluator<S>, keys: Arc<EvaluationKeys>) -> Evaluator<S> {
        e.with_keys(keys)
    }

    fn generate(e: &Evaluator<S>, randomness: &mut Randomness) -> Result<(SecretKey, PublicKey), Fault> {
        Ok(e.context().generate_keys(randomness)?)
    }

    fn evaluation_keys(
        e: &Evaluator<S>,
        secret: &SecretKey,
        plan: &Plan,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys, Fault> {
        let rotations = Rotations { swap: plan.swap, ..Rotations::by(plan.rotation_keys().iter().copied()) };
        Ok(e.context().generate_evaluation_keys(secret, &rotations, randomness)?)
    }

    fn encrypt(
        e: &Evaluator<S>,
        key: &PublicKey,
        values: &[Number],
        _bound: f64,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<S>, Fault> {
        let context = e.context();
        Ok(context.encrypt(key, &context.encode(&integers(context, values)?)?, randomness)?)
    }

    fn decrypt(e: &Evaluator<S>, secret: &SecretKey, x: &Ciphertext<S>) -> Result<Vec<Number>, Fault> {
        let values = e.context().decode_big(&e.context().decrypt(secret, x)?)?;
        Ok(values.into_iter().map(Number::Integer).collect())
    }

    fn unary(e: &Evaluator<S>, op: Unary, x: &Ciphertext<S>) -> Result<Ciphertext<S>, Fault> {
        Ok(match op {
            Unary::Neg => e.neg(x)?,
            Unary::Square => e.square(x)?,
            Unary::Rotate(k) => e.rotate_rows(x, k)?,
            Unary::Conjugate => e.rotate_columns(x)?,
        })
    }

    fn binary(e: &Evaluator<S>, op: Binary, x: &Ciphertext<S>, y: &Ciphertext<S>) -> Result<Ciphertext<S>, Fault> {
        Ok(match op {
            Binary::Add => e.add(x, y)?,
            Binary::Sub => e.sub(x, y)?,
            Binary::Mul => e.mul(x, y)?,
        })
    }

    fn plain(e: &Evaluator<S>, op: Binary, x: &Ciphertext<S>, p: &[Number]) -> Result<Ciphertext<S>, Fault> {
        let p = plaintext(e.context(), p)?;
        Ok(match op {
            Binary::Add => e.add_plain(x, &p)?,
            Binary::Sub => e.sub_plain(x, &p)?,
            Binary::Mul => e.mul_plain(x, &p)?,
        })
    }

    fn scalar(e: &Evaluator<S>, op: Binary, x: &Ciphertext<S>, c: &Number) -> Result<Ciphertext<S>, Fault> {
        let c = integers(e.context(), std::slice::from_ref(c))?;
        if op == Binary::Mul {
            return Ok(e.mul_scalar(x, c.into_iter().sum::<BigInt>())?);
        }
        let constant = e.context().encode_coefficients(&c)?.with_public_norms();
        Ok(if op == Binary::Add { e.add_plain(x, &constant)? } else { e.sub_plain(x, &constant)? })
    }

    fn state(e: &Evaluator<S>, x: &Ciphertext<S>) -> Result<State, Fault> {
        Ok(State {
            level: x.level(),
            key: x.inner().key(),
            noise_budget: e.context().noise_budget(x)?,
            error_bound: 0.0,
            on_word: x.noise().certificate.is_on_word(),
        })
    }

    fn write(e: &Evaluator<S>, x: &Ciphertext<S>) -> Result<Vec<u8>, Fault> {
        Ok(x.to_bytes(e.context(), None)?)
    }

    fn read(e: &Evaluator<S>, bytes: &[u8], trust: Trust<'_>) -> Result<Ciphertext<S>, Fault> {
        Ok(Ciphertext::from_bytes(e.context(), bytes, None, trust)?)
    }
}
