//! CKKS: reals in N/2 slots.

use std::sync::Arc;

use synchromesh::ckks::{Ciphertext, Context, Evaluator, Plaintext, Rotations};
use synchromesh::plan::Plan;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::{self, EvaluationKeys, PublicKey, Randomness, SecretKey};
use synchromesh_ring::Cpu;

use super::{Binary, Scheme, State, Unary};
use crate::fault::Fault;
use crate::numbers::{Kind, Number};

/// CKKS.
pub(super) struct Approximate;

fn reals(values: &[Number]) -> Result<Vec<f64>, Fault> {
    values.iter().map(Number::real).collect()
}

/// Public numbers, with their largest magnitude as the bound.
fn plaintext(context: &Context, values: &[Number]) -> Result<Plaintext<Cpu>, Fault> {
    let values = reals(values)?;
    let bound = values.iter().fold(f64::MIN_POSITIVE, |bound, x| bound.max(x.abs()));
    Ok(context.encode_bounded(&values, bound.max(2f64.powi(-199)))?)
}

impl Scheme for Approximate {
    type Evaluator = Evaluator;
    type Ciphertext = Ciphertext;

    fn slots(e: &Evaluator) -> usize {
        e.context().params().slots()
    }

    fn row(e: &Evaluator) -> usize {
        Self::slots(e)
    }

    fn kind(_: &Evaluator) -> Kind {
        Kind::Reals
    }

    fn rlwe(e: &Evaluator) -> &Arc<rlwe::Context> {
        e.context().rlwe()
    }

    fn with_keys(e: &Evaluator, keys: Arc<EvaluationKeys>) -> Evaluator {
        e.with_keys(keys)
    }

    fn generate(e: &Evaluator, randomness: &mut Randomness) -> Result<(SecretKey, PublicKey), Fault> {
        Ok(e.context().generate_keys(randomness)?)
    }

    fn evaluation_keys(
        e: &Evaluator,
        secret: &SecretKey,
        plan: &Plan,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys, Fault> {
        let rotations = Rotations { swap: plan.swap, ..Rotations::by(plan.rotation_keys().iter().copied()) };
        Ok(e.context().generate_evaluation_keys(secret, &rotations, randomness)?)
    }

    fn encrypt(
        e: &Evaluator,
        key: &PublicKey,
        values: &[Number],
        bound: f64,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext, Fault> {
        let context = e.context();
        Ok(context.encrypt(key, &context.encode_bounded(&reals(values)?, bound)?, randomness)?)
    }

    fn decrypt(e: &Evaluator, secret: &SecretKey, x: &Ciphertext) -> Result<Vec<Number>, Fault> {
        let values = e.context().decode(&e.context().decrypt(secret, x)?)?;
        Ok(values.into_iter().map(Number::Real).collect())
    }

    fn unary(e: &Evaluator, op: Unary, x: &Ciphertext) -> Result<Ciphertext, Fault> {
        Ok(match op {
            Unary::Neg => e.neg(x)?,
            Unary::Square => e.square(x)?,
            Unary::Rotate(k) => e.rotate(x, k)?,
            Unary::Conjugate => e.conjugate(x)?,
        })
    }

    fn binary(e: &Evaluator, op: Binary, x: &Ciphertext, y: &Ciphertext) -> Result<Ciphertext, Fault> {
        Ok(match op {
            Binary::Add => e.add(x, y)?,
            Binary::Sub => e.sub(x, y)?,
            Binary::Mul => e.mul(x, y)?,
        })
    }

    fn plain(e: &Evaluator, op: Binary, x: &Ciphertext, p: &[Number]) -> Result<Ciphertext, Fault> {
        let p = plaintext(e.context(), p)?;
        Ok(match op {
            Binary::Add => e.add_plain(x, &p)?,
            Binary::Sub => e.sub_plain(x, &p)?,
            Binary::Mul => e.mul_plain(x, &p)?,
        })
    }

    fn scalar(e: &Evaluator, op: Binary, x: &Ciphertext, c: &Number) -> Result<Ciphertext, Fault> {
        let c = c.real()?;
        Ok(match op {
            Binary::Add => e.add_scalar(x, c)?,
            Binary::Sub => e.add_scalar(x, -c)?,
            Binary::Mul => e.mul_scalar(x, c)?,
        })
    }

    fn state(e: &Evaluator, x: &Ciphertext) -> Result<State, Fault> {
        Ok(State {
            level: x.level(),
            key: x.inner().key(),
            noise_budget: e.context().noise_budget(x),
            error_bound: e.context().error_bound(x),
            on_word: x.inner().noise().certificate.is_on_word(),
        })
    }

    fn write(e: &Evaluator, x: &Ciphertext) -> Result<Vec<u8>, Fault> {
        Ok(x.to_bytes(e.context(), None)?)
    }

    fn read(e: &Evaluator, bytes: &[u8], trust: Trust<'_>) -> Result<Ciphertext, Fault> {
        Ok(Ciphertext::from_bytes(e.context(), bytes, None, trust)?)
    }
}
