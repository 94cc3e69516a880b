//! CKKS: real or complex numbers in N/2 slots.

use std::marker::PhantomData;
use std::sync::Arc;

use synchromesh::circuits::Polynomial;
use synchromesh::ckks::{Ciphertext, Complex64, Context, Evaluator, Plaintext, Rotations};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::{self, EvaluationKeys, KeyId, PublicKey, Randomness, SecretKey};
use synchromesh_ring::{Backend, Cpu};

use super::{Binary, Encryptor, OnCpu, Scheme, State};
use crate::fault::Fault;
use crate::values::{Decoded, Values};

/// CKKS on a device.
pub(crate) struct Approximate<B>(PhantomData<B>);

/// Public numbers, with their largest modulus as the bound.
fn plaintext<B: Backend>(context: &Context<B>, values: &Values) -> Result<Plaintext<B>, Fault> {
    if let Values::Reals(values) = values {
        let bound = values.iter().fold(f64::MIN_POSITIVE, |bound, x| bound.max(x.abs()));
        return Ok(context.encode_bounded(values, usable(bound))?);
    }
    let values = values.complexes()?;
    let bound = values.iter().fold(f64::MIN_POSITIVE, |bound, z| bound.max(z.re.hypot(z.im)));
    Ok(context.encode_complex(&values, usable(bound * (1.0 + 1e-12)))?)
}

/// A bound that encoding takes: of zeros, and of numbers next to them, a tiny one.
fn usable(bound: f64) -> f64 {
    if bound.is_finite() { bound.max(2f64.powi(-199)) } else { 1.0 }
}

fn scalar(value: &Values) -> Result<Complex64, Fault> {
    let values = value.complexes()?;
    values.first().copied().ok_or_else(|| Fault::own("shape", "no number was given", "pass one number"))
}

impl<B: Backend> Scheme for Approximate<B> {
    type Evaluator = Evaluator<B>;
    type Ciphertext = Ciphertext<B>;

    fn top_level(evaluator: &Evaluator<B>) -> usize {
        evaluator.context().params().top_level()
    }

    fn key(x: &Ciphertext<B>) -> KeyId {
        x.inner().key()
    }

    fn state(evaluator: &Evaluator<B>, x: &Ciphertext<B>) -> Result<State, Fault> {
        let context = evaluator.context();
        Ok(State {
            level: x.level(),
            components: x.components(),
            key: x.inner().key(),
            noise_budget: context.noise_budget(x),
            error_bound: context.error_bound(x),
            bound: x.bound(),
            on_word: x.inner().noise().certificate.is_on_word(),
        })
    }

    fn sub(e: &Evaluator<B>, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<Ciphertext<B>, Fault> {
        Ok(e.sub(x, y)?)
    }

    fn neg(e: &Evaluator<B>, x: &Ciphertext<B>) -> Result<Ciphertext<B>, Fault> {
        Ok(e.neg(x)?)
    }

    fn plain(e: &Evaluator<B>, op: Binary, x: &Ciphertext<B>, p: &Values) -> Result<Ciphertext<B>, Fault> {
        let p = plaintext(e.context(), p)?;
        Ok(match op {
            Binary::Add => e.add_plain(x, &p)?,
            Binary::Sub => e.sub_plain(x, &p)?,
            Binary::Mul => e.mul_plain(x, &p)?,
        })
    }

    fn scalar(e: &Evaluator<B>, op: Binary, x: &Ciphertext<B>, c: &Values) -> Result<Ciphertext<B>, Fault> {
        let c = scalar(c)?;
        Ok(match op {
            Binary::Add => e.add_scalar(x, c)?,
            Binary::Sub => e.add_scalar(x, Complex64::new(-c.re, -c.im))?,
            Binary::Mul => e.mul_scalar(x, c)?,
        })
    }

    fn declare_bound(e: &Evaluator<B>, x: Ciphertext<B>, bound: f64) -> Result<Ciphertext<B>, Fault> {
        Ok(e.declare_bound(x, bound)?)
    }

    fn chebyshev(
        e: &Evaluator<B>,
        x: &Ciphertext<B>,
        coefficients: &[f64],
        interval: (f64, f64),
    ) -> Result<Ciphertext<B>, Fault> {
        Ok(Polynomial::chebyshev(coefficients.iter().copied(), interval)?.evaluate(e, x)?)
    }

    fn numbers(_: &Evaluator<B>, values: &Values) -> Result<Vec<Complex64>, Fault> {
        Ok(values.complexes()?.to_vec())
    }

    fn write(e: &Evaluator<B>, x: &Ciphertext<B>) -> Result<Vec<u8>, Fault> {
        Ok(x.to_bytes(e.context(), None)?)
    }

    fn read(e: &Evaluator<B>, bytes: &[u8], trust: Trust<'_>) -> Result<Ciphertext<B>, Fault> {
        Ok(Ciphertext::from_bytes(e.context(), bytes, None, trust)?)
    }
}

impl OnCpu for Approximate<Cpu> {
    fn with_keys(evaluator: &Evaluator, keys: &Arc<EvaluationKeys>) -> Evaluator {
        evaluator.with_keys(Arc::clone(keys))
    }

    fn rlwe(evaluator: &Evaluator) -> &Arc<rlwe::Context> {
        evaluator.context().rlwe()
    }

    fn generate(e: &Evaluator, randomness: &mut Randomness) -> Result<(SecretKey, PublicKey), Fault> {
        Ok(e.context().generate_keys(randomness)?)
    }

    fn evaluation_keys(
        e: &Evaluator,
        secret: &SecretKey,
        rotations: &[i64],
        swap: bool,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys, Fault> {
        let rotations = Rotations { swap, ..Rotations::by(rotations.iter().copied()) };
        Ok(e.context().generate_evaluation_keys(secret, &rotations, randomness)?)
    }

    fn encrypt(
        e: &Evaluator,
        by: Encryptor<'_>,
        values: &Values,
        bound: f64,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext, Fault> {
        let context = e.context();
        let plaintext = match values {
            Values::Reals(values) => context.encode_bounded(values, bound)?,
            _ => context.encode_complex(&values.complexes()?, bound)?,
        };
        Ok(match by {
            Encryptor::Public(key) => context.encrypt_at(key, &plaintext, level, randomness)?,
            Encryptor::Secret(key) => context.encrypt_with_secret(key, &plaintext, level, randomness)?,
        })
    }

    fn decrypt(e: &Evaluator, secret: &SecretKey, x: &Ciphertext, complex: bool) -> Result<Decoded, Fault> {
        let plaintext = e.context().decrypt(secret, x)?;
        Ok(if complex {
            Decoded::Complexes(e.context().decode_complex(&plaintext)?)
        } else {
            Decoded::Reals(e.context().decode(&plaintext)?)
        })
    }
}
