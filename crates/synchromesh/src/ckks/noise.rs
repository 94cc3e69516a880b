//! The certificate of a CKKS ciphertext: how far a slot may be from the message, except with probability 2^-128.
//!
//! The phase of a ciphertext is S z + e, S its scale and z the message. [`Noise`] describes e = g + r. `sigma` bounds
//! g in this sense: X = |g(zeta)| at each root zeta of X^N + 1 has E exp(1.8 X / b) <= 2000 for b = 2^sigma sqrt(N).
//! The class is closed under sums of any dependence (b adds, by convexity) and under products with a fixed polynomial
//! (b times its value at zeta), and a member exceeds y b with probability at most 2000 exp(-1.8 y). `remainder` bounds
//! r in the canonical norm max |r(zeta)|, which is submultiplicative and bounds coefficients too.
//!
//! Why a mere variance does not do: in the slots, terms like tau s, u e or d e multiply two random values, whose
//! product has a heavier tail than either. If Y = sum_j y_j zeta^j with independent sub-Gaussian y_j of parameter rho,
//! its real part in any direction has parameter rho sqrt(N/2); 16 directions, c = cos^2(pi/16) = 0.9619, give
//! P(|Y| > x rho sqrt(N)) <= 16 exp(-c x^2) and E exp(t |Y| / (rho sqrt N)) <= 16 exp(t^2 / 4c). For a product with an
//! independent Y' of the same kind, t = 1.8 |Y'| / (rho' sqrt N) and E exp(a |Y'|^2 / (rho'^2 N)) <= 1 + 16 a/(c - a),
//! a = 1.8^2 / 4c = 0.8421: together at most 16 (1 + 16 * 0.8421 / 0.1198) < 1820. Parameters of the layer below exceed
//! the true ones (1 for a ternary secret, whose parameter is sqrt(2/3); 1.1 for an error's 1), which covers the rest,
//! and a single Y: 16 exp(0.842) = 37.

use synchromesh_rlwe::Noise;
use synchromesh_rlwe::noise::{DEFAULT_LOG2_FAILURE, log2_add, require_room, rounding};

use super::params::Params;
use crate::error::Result;

/// Failure probability of a bound that enters another certificate: a million products together stay below 2^-128.
const LOG2_FAILURE_INSIDE: u32 = DEFAULT_LOG2_FAILURE + 20;

/// Rounding unit of a double.
const UNIT: f64 = f64::EPSILON / 2.0;

/// The y with N * 2000 exp(-1.8 y) = 2^-log2_failure, a little more.
fn slot_tail(log_n: u32, log2_failure: u32) -> f64 {
    (f64::from(log_n + log2_failure) * std::f64::consts::LN_2 + 7.61) / 1.8
}

/// log2 of a bound on |e(zeta)| at every root, except with probability 2^-log2_failure.
fn canonical_at(noise: Noise, log_n: u32, log2_failure: u32) -> f64 {
    log2_add(noise.sigma + 0.5 * f64::from(log_n) + slot_tail(log_n, log2_failure).log2(), noise.remainder)
}

/// log2 of a bound on |e(zeta)| at every root, and so on every coefficient, except with probability 2^-128.
pub(crate) fn canonical(noise: Noise, log_n: u32) -> f64 {
    canonical_at(noise, log_n, DEFAULT_LOG2_FAILURE)
}

/// A factor of a product: log2 of the canonical norm of its exact part S z, and its error.
#[derive(Clone, Copy)]
pub(crate) struct Factor {
    pub(crate) log2_message: f64,
    pub(crate) noise: Noise,
}

/// The error of a product, (m + e)(m' + e') - m m' = m e' + m' e + e e', whatever e and e' have in common.
pub(crate) fn product(x: Factor, y: Factor, log_n: u32) -> Noise {
    let both = canonical_at(x.noise, log_n, LOG2_FAILURE_INSIDE) + canonical_at(y.noise, log_n, LOG2_FAILURE_INSIDE);
    let cross = x.noise.times(y.log2_message).plus(y.noise.times(x.log2_message));
    cross.plus(Noise { remainder: both, ..Noise::ZERO })
}

/// What a key switch adds, in the canonical norm: its remainder, if any, bounds coefficients.
pub(crate) fn switched(noise: Noise, log_n: u32) -> Noise {
    Noise { remainder: noise.remainder + f64::from(log_n), ..noise }
}

/// What rounding `components` parts adds: tau_0 + tau_1 s (+ tau_2 s^2, a product of three random values).
///
/// |tau_2| <= x sqrt(N/12) and |s|^2 <= x^2 2N/3 in the canonical norm, with 16 N exp(-0.9619 x^2) = 2^-148.
pub(crate) fn rounded(n: usize, log_n: u32, components: usize) -> Noise {
    let two = rounding(n, 2);
    if components < 3 {
        return two;
    }
    let x2 = (f64::from(log_n + LOG2_FAILURE_INSIDE + 5) * std::f64::consts::LN_2) / 0.9619;
    let n = n as f64;
    two.plus(Noise::bounded((x2 * n / 12.0).sqrt() * x2 * 2.0 * n / 3.0))
}

/// The error of encoding values of modulus at most `bound` at scale 2^`log2_scale`, in the canonical norm.
///
/// Each coefficient is rounded to an integer, so at most N/2 in a slot. The transform in doubles is within
/// (5 log2(N/2) + 2) u in the relative 2-norm, hence sqrt(N/2) times that of the largest slot; the scale itself is
/// rounded to a double, and values may exceed the bound by 2^-50.
pub(crate) fn encoding(log_n: u32, log2_scale: f64, bound: f64) -> Noise {
    let relative = transform_error(log_n) + 2.0 * UNIT;
    let rounding = f64::from(log_n) - 1.0;
    let transform = relative.log2() + log2_scale + bound.log2();
    Noise { remainder: log2_add(rounding, transform), ..Noise::ZERO }
}

/// Relative error of decoded slots, against the largest: the transform, three roundings of each coefficient.
pub(crate) fn transform_error(log_n: u32) -> f64 {
    let half = f64::from(log_n) - 1.0;
    (half / 2.0).exp2() * (5.0 * half + 6.0) * UNIT * 1.01
}

/// log2 of a bound on the phase of a ciphertext.
pub(crate) fn phase(log2_message: f64, noise: Noise, log_n: u32) -> f64 {
    log2_add(log2_message, canonical(noise, log_n))
}

/// Bits between the phase and half the modulus.
pub(crate) fn room(params: &Params, level: usize) -> Result<f64> {
    let rlwe = params.rlwe();
    // log2 of each prime is within 2^-46 of its value.
    Ok(rlwe.ring().log2(rlwe.level(level)?) - 1.0 - 1e-9)
}

/// Fails when the phase could wrap around the modulus of `level`.
pub(crate) fn check(params: &Params, level: usize, log2_message: f64, noise: Noise) -> Result<()> {
    let bits = phase(log2_message, noise, params.log_n());
    Ok(require_room(bits, room(params, level)?, level, DEFAULT_LOG2_FAILURE)?)
}
