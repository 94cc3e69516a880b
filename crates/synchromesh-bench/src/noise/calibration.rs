//! Whether wrong decryptions come as often as predicted: BFV with a last prime so small that they do.

use std::sync::Arc;

use serde::Serialize;
use synchromesh::bfv::{Context, Params, ParamsLiteral, PrimeLists};
use synchromesh_ring::Cpu;
use synchromesh_ring::prime::ntt_primes;
use synchromesh_rlwe::noise::Estimating;
use synchromesh_rlwe::{Randomness, Security};

use crate::Error;

/// The plaintext modulus.
const T: u64 = 65_537;

/// A prime at which a coefficient should come out wrong with a given probability, and how often it did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// log2 N.
    pub log_n: u32,
    /// Last prime.
    pub prime: u64,
    /// Predicted probability for a coefficient, as log2.
    pub predicted: f64,
    /// Coefficients decrypted.
    pub coefficients: usize,
    /// Of them wrong.
    pub wrong: usize,
    /// Observed over predicted.
    pub ratio: f64,
}

/// P(|x| > z) for a standard Gaussian x, by the continued fraction of Mills' ratio.
fn two_sided(z: f64) -> f64 {
    let fraction = (1..200).rev().fold(0.0, |rest, k| f64::from(k) / (z + rest));
    (-z * z / 2.0).exp() / ((2.0 * std::f64::consts::PI).sqrt() * (z + fraction)) * 2.0
}

/// The smallest prime that is 1 mod 2N from `least` on.
fn prime_from(least: u64, log_n: u32) -> Result<u64, Error> {
    let step = 2u64 << log_n;
    let first = least / step * step + 1;
    let found = (0..10_000).map(|i| first + i * step).find(|&x| x >= least && synchromesh_ring::prime::is_prime(x));
    found.ok_or_else(|| Error::Request { reason: format!("no prime that is 1 mod 2^{} near {least}", log_n + 1) })
}

/// Encrypts, switches down to a last prime where a coefficient comes out wrong with probability 2^-`log2_rate` by
/// the average case, and counts, until `expected` wrong ones are expected.
///
/// # Errors
/// When no such prime exists or the device fails.
pub fn calibrate(log_n: u32, log2_rate: u32, expected: usize) -> Result<Calibration, Error> {
    let target = (-f64::from(log2_rate)).exp2();
    let (mut low, mut high) = (0.5, 12.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if two_sided(middle) > target { low = middle } else { high = middle }
    }
    // The error after the switch is that of rounding, whatever the prime.
    let n = f64::from(log_n).exp2();
    let sigma = ((1.0 + 2.0 / 3.0 * n) / 12.0).sqrt();
    let prime = prime_from((2.0 * T as f64 * low * sigma) as u64, log_n)?;
    let rest = ntt_primes(50, log_n, 2)?;
    let aux = ntt_primes(55, log_n, 2)?;
    let params = Params::new(ParamsLiteral {
        log_n,
        t: T.to_string(),
        q_bits: vec![64 - prime.leading_zeros(), 50],
        p_bits: vec![50],
        level_limbs: Vec::new(),
        schedule: Default::default(),
        omega: 1,
        security: Security::Insecure,
        primes: Some(PrimeLists { q: vec![prime, rest[0]], p: vec![rest[1]], aux }),
    })?;
    let backend = Cpu::open(Arc::clone(params.rlwe().ring()))?;
    let context = Context::observed(params, backend, Some(Arc::new(Estimating)))?;
    let mut randomness = Randomness::insecure_from_number(u64::from(log2_rate));
    let (mut wrong, mut coefficients) = (0, 0);
    let mut predicted = 0.0;
    let mut state = 1u64;
    let mut keys = None;
    while (coefficients as f64) * target < expected as f64 {
        // A new key every few ciphertexts.
        if coefficients % (16 << log_n) == 0 {
            keys = Some(context.generate_keys(&mut randomness)?);
        }
        let Some((secret, public)) = &keys else { continue };
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % T
        };
        let message: Vec<u64> = (0..1 << log_n).map(|_| next()).collect();
        let ct = context.encrypt(public, &context.encode_coefficients(&message)?, &mut randomness)?;
        let low = ct.inner().mod_switch_to(context.rlwe(), 0)?;
        let room = prime as f64 / (2.0 * T as f64);
        predicted = two_sided(room / super::estimates(&low.noise()).log2_sigma().exp2());
        let phase = secret.phase(context.rlwe(), &low)?;
        let words = phase.poly().to_words(context.rlwe().backend())?;
        // round(t x / q) mod t.
        let decrypted =
            |x: u64| ((u128::from(x) * u128::from(T) * 2 + u128::from(prime)) / (2 * u128::from(prime))) as u64 % T;
        wrong += words.iter().zip(&message).filter(|&(&x, &m)| decrypted(x) != m).count();
        coefficients += message.len();
    }
    let ratio = wrong as f64 / (predicted * coefficients as f64);
    Ok(Calibration { log_n, prime, predicted: predicted.log2(), coefficients, wrong, ratio })
}
