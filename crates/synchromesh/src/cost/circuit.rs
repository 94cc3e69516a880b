//! What a whole circuit takes at given parameters: the caller's function on a device that computes nothing.
//!
//! Chains, plans of levels and second keys are part of the parameters, so that this compares them: mostly large primes
//! with small ones only, one secret key with two, a level-aware key with a key of a P of its own.

use std::sync::Arc;

use synchromesh_rlwe::ring::ledger::Entries;
use synchromesh_rlwe::{Params, Randomness};

use super::{DryLedger, Profile, recorder, table_bytes};
use crate::ckks;
use crate::error::Result;
use crate::exact::{self, Scheme};
use crate::rotations::Rotations;

/// Seconds of a circuit of BFV or BGV by `profile`, after keys are prepared.
///
/// The circuit gets an evaluator with keys for `steps` and `inputs` fresh ciphertexts, and runs twice.
///
/// # Errors
/// What the circuit fails with; [`crate::Error::Format`] when the profile lacks an operation.
pub fn predict_exact<S: Scheme, T>(
    profile: &Profile,
    params: &exact::Params<S>,
    steps: &Rotations,
    inputs: usize,
    circuit: impl Fn(&exact::Evaluator<S, DryLedger>, &[exact::Ciphertext<S, DryLedger>]) -> Result<T>,
) -> Result<f64> {
    let context = exact::Context::<S, _>::with_backend(params.clone(), recorder(params.rlwe()))?;
    let mut randomness = Randomness::insecure_from_number(0);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, steps, &mut randomness)?;
    let evaluator = exact::Evaluator::new(&context, Some(Arc::new(keys)));
    let message = context.encode_coefficients(&[1i64][..])?;
    let fresh = (0..inputs).map(|_| context.encrypt(&public, &message, &mut randomness));
    let fresh = fresh.collect::<Result<Vec<_>>>()?;
    price(profile, params.rlwe(), context.rlwe().backend(), || circuit(&evaluator, &fresh))
}

/// Seconds of a circuit of CKKS by `profile`, after keys are prepared.
///
/// The circuit gets an evaluator with keys for `steps` and a fresh ciphertext for each bound on an input's slots, and
/// runs twice.
///
/// # Errors
/// As [`predict_exact`].
pub fn predict_ckks<T>(
    profile: &Profile,
    params: &ckks::Params,
    steps: &Rotations,
    bounds: &[f64],
    circuit: impl Fn(&ckks::Evaluator<DryLedger>, &[ckks::Ciphertext<DryLedger>]) -> Result<T>,
) -> Result<f64> {
    let context = ckks::Context::with_backend(params.clone(), recorder(params.rlwe()))?;
    let mut randomness = Randomness::insecure_from_number(0);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, steps, &mut randomness)?;
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
    let encrypt = |&bound: &f64| context.encrypt(&public, &context.encode_bounded(&[], bound)?, &mut randomness);
    let fresh = bounds.iter().map(encrypt).collect::<Result<Vec<_>>>()?;
    price(profile, params.rlwe(), context.rlwe().backend(), || circuit(&evaluator, &fresh))
}

/// Runs `circuit` to prepare keys, then again to write down what it asks for.
fn price<T>(profile: &Profile, params: &Params, device: &DryLedger, circuit: impl Fn() -> Result<T>) -> Result<f64> {
    circuit()?;
    device.take();
    circuit()?;
    let (entries, peak): (Entries, usize) = device.take();
    let primes = params.q().union(params.p());
    profile.seconds(&entries, params.ring().log_n(), peak + table_bytes(params, &primes))
}
