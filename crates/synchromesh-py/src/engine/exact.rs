//! BFV and BGV: integers modulo t in two rows of N/2 slots.

use std::marker::PhantomData;
use std::sync::Arc;

use num_bigint::{BigInt, Sign};
use synchromesh::exact::{self, Ciphertext, Context, Evaluator, Plaintext, Rotations};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::{self, EvaluationKeys, KeyId, PublicKey, Randomness, SecretKey};
use synchromesh_ring::{Backend, Cpu};

use super::{Binary, Encryptor, OnCpu, Scheme, State};
use crate::fault::Fault;
use crate::values::{Decoded, Values};

/// Integers modulo t of at most this many bits are decoded to words.
const WORD_BITS: u32 = 63;

/// BFV or BGV on a device.
pub(crate) struct Exact<S, B>(PhantomData<(S, B)>);

/// Integers from -(t-1)/2 to t/2.
fn integers<S: exact::Scheme, B: Backend>(context: &Context<S, B>, values: &Values) -> Result<Vec<BigInt>, Fault> {
    let t = context.params().t().value();
    let fits = |value: &BigInt| {
        let twice = value.magnitude() << 1u32;
        if value.sign() == Sign::Minus { twice < *t } else { twice <= *t }
    };
    let integers = values.integers()?;
    match integers.iter().position(|value| !fits(value)) {
        None => Ok(integers),
        Some(index) => Err(Fault::own(
            "value_exceeds_modulus",
            format!("number {index} is outside -t/2 to t/2 for t = {t}"),
            "plan with a larger t, or scale the numbers down",
        )),
    }
}

/// Public numbers in slots, their norms known to certificates.
fn plaintext<S: exact::Scheme, B: Backend>(context: &Context<S, B>, values: &Values) -> Result<Plaintext, Fault> {
    Ok(context.encode(&integers(context, values)?)?.with_public_norms())
}

fn scalar<S: exact::Scheme, B: Backend>(context: &Context<S, B>, value: &Values) -> Result<BigInt, Fault> {
    let value = integers(context, value)?.into_iter().next();
    value.ok_or_else(|| Fault::own("shape", "no number was given", "pass one number"))
}

impl<S: exact::Scheme, B: Backend> Scheme for Exact<S, B> {
    type Evaluator = Evaluator<S, B>;
    type Ciphertext = Ciphertext<S, B>;

    fn top_level(evaluator: &Self::Evaluator) -> usize {
        evaluator.context().params().top_level()
    }

    fn key(x: &Self::Ciphertext) -> KeyId {
        x.inner().key()
    }

    fn state(evaluator: &Self::Evaluator, x: &Self::Ciphertext) -> Result<State, Fault> {
        Ok(State {
            level: x.level(),
            components: x.components(),
            key: x.inner().key(),
            noise_budget: evaluator.context().noise_budget(x)?,
            error_bound: 0.0,
            bound: f64::INFINITY,
            on_word: x.noise().certificate.is_on_word(),
        })
    }

    fn sub(e: &Self::Evaluator, x: &Self::Ciphertext, y: &Self::Ciphertext) -> Result<Self::Ciphertext, Fault> {
        Ok(e.sub(x, y)?)
    }

    fn neg(e: &Self::Evaluator, x: &Self::Ciphertext) -> Result<Self::Ciphertext, Fault> {
        Ok(e.neg(x)?)
    }

    fn plain(e: &Self::Evaluator, op: Binary, x: &Self::Ciphertext, p: &Values) -> Result<Self::Ciphertext, Fault> {
        let p = plaintext(e.context(), p)?;
        Ok(match op {
            Binary::Add => e.add_plain(x, &p)?,
            Binary::Sub => e.sub_plain(x, &p)?,
            Binary::Mul => e.mul_plain(x, &p)?,
        })
    }

    fn scalar(e: &Self::Evaluator, op: Binary, x: &Self::Ciphertext, c: &Values) -> Result<Self::Ciphertext, Fault> {
        let c = scalar(e.context(), c)?;
        if op == Binary::Mul {
            return Ok(e.mul_scalar(x, c)?);
        }
        let constant = e.context().encode_coefficients(&[c])?.with_public_norms();
        Ok(if op == Binary::Add { e.add_plain(x, &constant)? } else { e.sub_plain(x, &constant)? })
    }

    fn declare_bound(_: &Self::Evaluator, x: Self::Ciphertext, _: f64) -> Result<Self::Ciphertext, Fault> {
        Ok(x)
    }

    fn chebyshev(
        _: &Self::Evaluator,
        _: &Self::Ciphertext,
        _: &[f64],
        _: (f64, f64),
    ) -> Result<Self::Ciphertext, Fault> {
        Err(Fault::own("scheme", "Chebyshev polynomials in bfv or bgv", "use ckks, or a polynomial in powers"))
    }

    fn numbers(e: &Self::Evaluator, values: &Values) -> Result<Vec<BigInt>, Fault> {
        integers(e.context(), values)
    }

    fn write(e: &Self::Evaluator, x: &Self::Ciphertext) -> Result<Vec<u8>, Fault> {
        Ok(x.to_bytes(e.context(), None)?)
    }

    fn read(e: &Self::Evaluator, bytes: &[u8], trust: Trust<'_>) -> Result<Self::Ciphertext, Fault> {
        Ok(Ciphertext::from_bytes(e.context(), bytes, None, trust)?)
    }
}

impl<S: exact::Scheme> OnCpu for Exact<S, Cpu> {
    fn with_keys(evaluator: &Self::Evaluator, keys: &Arc<EvaluationKeys>) -> Self::Evaluator {
        evaluator.with_keys(Arc::clone(keys))
    }

    fn rlwe(evaluator: &Self::Evaluator) -> &Arc<rlwe::Context> {
        evaluator.context().rlwe()
    }

    fn generate(e: &Self::Evaluator, randomness: &mut Randomness) -> Result<(SecretKey, PublicKey), Fault> {
        Ok(e.context().generate_keys(randomness)?)
    }

    fn evaluation_keys(
        e: &Self::Evaluator,
        secret: &SecretKey,
        rotations: &[i64],
        swap: bool,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys, Fault> {
        let rotations = Rotations { swap, ..Rotations::by(rotations.iter().copied()) };
        Ok(e.context().generate_evaluation_keys(secret, &rotations, randomness)?)
    }

    fn encrypt(
        e: &Self::Evaluator,
        by: Encryptor<'_>,
        values: &Values,
        _: f64,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<Self::Ciphertext, Fault> {
        let context = e.context();
        let plaintext = match (values, context.params().t().as_u64()) {
            (Values::Integers(words), Some(t)) if words.iter().all(|x| small(*x, t)) => context.encode(&words[..])?,
            _ => context.encode(&integers(context, values)?)?,
        };
        let fresh = match by {
            Encryptor::Public(key) => return Ok(context.encrypt_at(key, &plaintext, level, randomness)?),
            Encryptor::Secret(key) => context.encrypt_with_secret(key, &plaintext, randomness)?.0,
        };
        Ok(if level == fresh.level() { fresh } else { e.mod_switch_to(&fresh, level)? })
    }

    fn decrypt(e: &Self::Evaluator, secret: &SecretKey, x: &Self::Ciphertext, _: bool) -> Result<Decoded, Fault> {
        let context = e.context();
        let plaintext = context.decrypt(secret, x)?;
        Ok(if context.params().t().bits() <= WORD_BITS {
            Decoded::Integers(context.decode(&plaintext)?)
        } else {
            Decoded::Wide(context.decode_big(&plaintext)?)
        })
    }
}

/// Whether x is from -(t-1)/2 to t/2.
const fn small(x: i64, t: u64) -> bool {
    let twice = 2 * x as i128;
    twice <= t as i128 && -twice < t as i128
}
