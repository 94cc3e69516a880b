//! The certificate of a CKKS ciphertext: how far a slot may be from the message, except with probability 2^-128.
//!
//! The phase of a ciphertext is S z + e, S its scale and z the message. [`Certificate`] describes e = g + r. `sigma` bounds
//! g in this sense: given the keys, the part of g(zeta) in any direction is sub-Gaussian at each root zeta of X^N + 1,
//! with a parameter of 2^sigma sqrt(N/2) times what the least even key makes of it ([`root_tail`]). The class is closed
//! under sums of any dependence (parameters add), sums of independent ones, as those of different encryptions are given
//! the keys (variances add), and products with a fixed polynomial (times its value at zeta). `remainder` bounds r in the
//! canonical norm max |r(zeta)|, which is submultiplicative and bounds coefficients too.
//!
//! Why a mere variance does not do: in the slots, terms like tau s, u e or d e multiply two random values, whose
//! product has a heavier tail than either. What the secret contributes is known, though, as a key is drawn again until
//! its largest |s(zeta)|^2 is near what is typical, and so are the errors of keys, with more room.

use synchromesh_rlwe::noise::{
    Average, Certificate, Estimates, LARGEST_AT_ROOT, LOG2_FAILURE_INSIDE, Noise, Reference, log2_add, require_room,
    root_tail,
};

use super::params::Params;
use crate::embedding::fixed::{self, Rounding};
use crate::error::Result;

/// Rounding unit of a double.
const UNIT: f64 = f64::EPSILON / 2.0;

/// log2 of a bound on |e(zeta)| at every root, except with probability 2^-log2_failure.
pub(crate) fn canonical_at(noise: Noise, log_n: u32, log2_failure: u32) -> f64 {
    let noise = noise.certificate;
    log2_add(noise.sigma + 0.5 * f64::from(log_n) + root_tail(log_n, log2_failure).log2(), noise.remainder)
}

/// log2 of a bound on |e(zeta)| at every root, and so on every coefficient, at the failure limit of the parameters.
pub(crate) fn canonical(params: &Params, noise: Noise) -> f64 {
    canonical_at(noise, params.log_n(), params.failure_limit().log2_failure())
}

/// A factor of a product: log2 of the canonical norm of its exact part S z, and its error.
#[derive(Clone, Copy)]
pub(crate) struct Factor {
    pub(crate) log2_message: f64,
    pub(crate) noise: Noise,
}

/// The error of a product, (m + e)(m' + e') - m m' = m e' + m' e + e e'; the first two are independent if e and e' are.
pub(crate) fn product(x: Factor, y: Factor, log_n: u32, same: bool) -> Noise {
    let both = canonical_at(x.noise, log_n, LOG2_FAILURE_INSIDE) + canonical_at(y.noise, log_n, LOG2_FAILURE_INSIDE);
    let cross = x.noise.times(y.log2_message).sum(y.noise.times(x.log2_message));
    let total = cross.plus(Noise::at_most(both));
    let estimates = x.noise.estimates.zip(y.noise.estimates);
    total.with_estimates(estimates.map(|(a, b)| estimated_product([a, b], [x, y], log_n, same)))
}

/// A product in the average case, for real slots uniform within their bound, and in the reference models.
fn estimated_product([a, b]: [Estimates; 2], factors: [Factor; 2], log_n: u32, same: bool) -> Estimates {
    let [first, second] =
        [(a.average, b.average), (b.average, a.average)].map(|(e, m)| e.error().times_random(log_n, m.message));
    let cross = if same { first.plus_same(&second) } else { first.plus(&second) };
    // The mean of x^4 for uniform x is 9/5 of the square of that of x^2.
    let message = a.average.message + b.average.message + f64::from(log_n) + if same { 1.8f64.log2() } else { 0.0 };
    let both = a.product(&b, log_n, same);
    let average = cross.plus(&both.average).with_message(message);
    let [of_x, of_y] =
        factors.map(|z| Reference { worst: z.log2_message, canonical: z.log2_message - f64::from(log_n) / 2.0 });
    let cross = a.reference.product(&of_y, log_n).plus(&b.reference.product(&of_x, log_n));
    Estimates { average, reference: cross.plus(&both.reference) }
}

/// What multiplies a ciphertext in public.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Public {
    /// One number for all slots.
    Scalar,
    /// A vector; in the average case real and uniform.
    Vector,
}

/// The error of (m + e)(m' + r), m' public and at most 2^`log2_plain`, |r| at most 2^`log2_error`: e (m' + r) + m r.
pub(crate) fn plain_product(x: Factor, plain: Public, log2_plain: f64, log2_error: f64, log_n: u32) -> Noise {
    let own = x.noise.times(log2_add(log2_plain, log2_error));
    let total = own.plus(Noise::at_most(x.log2_message + log2_error));
    let estimated = |e: Estimates| {
        let rounding = e.average.message - 12f64.log2();
        let average = match plain {
            Public::Scalar => e.average.times(log2_plain).plus(&Average::of(0, rounding)),
            Public::Vector => {
                let error = e.average.times_random(log_n, message_variance(log_n, log2_plain, 1.0));
                error.plus(&Average::of(0, rounding + f64::from(log_n)))
            }
        };
        let added = Reference::of(x.log2_message + log2_error, 2.0 * rounding);
        Estimates { average, reference: e.reference.times(log2_plain).plus(&added) }
    };
    total.with_estimates(x.noise.estimates.map(estimated))
}

/// The variance of a coefficient of S z, as log2, for real slots uniform in +-`bound`.
pub(crate) fn message_variance(log_n: u32, log2_scale: f64, bound: f64) -> f64 {
    2.0 * (log2_scale + bound.log2()) - 3f64.log2() - f64::from(log_n)
}

/// The sum of the errors of two ciphertexts, of one with itself if `twice`.
pub(crate) fn sum(x: Noise, y: Noise, twice: bool) -> Noise {
    if twice { x.doubled() } else { x.sum(y) }
}

/// The error of encoding values of modulus at most `bound` at scale 2^`log2_scale`, in the canonical norm.
///
/// Each coefficient is rounded to an integer, so at most 0.64 N/2 in a slot. The transform in doubles is within
/// (5 log2(N/2) + 2) u in the relative 2-norm, hence sqrt(N/2) times that of the largest slot; the scale itself is
/// rounded to a double, and values may exceed the bound by 2^-50. The transform in integers, which takes over where that
/// would count, bounds each coefficient.
pub(crate) fn encoding(log_n: u32, log2_scale: f64, bound: f64) -> Noise {
    let rounding = f64::from(log_n) - 1.0 + LARGEST_AT_ROOT.log2();
    let transform = encoding_transform(log_n, log2_scale + bound.log2(), Rounding::Bounded);
    // Coefficients are off by up to 1/2 each, uniform in the average case.
    let half = Estimates::uniform(-1.0);
    let average = half.average.with_message(message_variance(log_n, log2_scale, bound));
    let certificate = Certificate::at_most(log2_add(rounding, transform));
    Noise { certificate, estimates: Some(Estimates { average, ..half }) }
}

/// log2 of the error of encoding public values that are `largest` at most, scaled, as log2, where what rounding took was
/// looked at, and its largest value is `rounding`.
pub(crate) fn encoding_measured(log_n: u32, largest: f64, rounding: f64) -> f64 {
    log2_add((rounding * (1.0 + transform_error(log_n))).log2(), encoding_transform(log_n, largest, Rounding::Measured))
}

/// What the rounding of 2^`log_n` coefficients, uniform in +-1/2, exceeds at no root but with a probability of e^-20.
pub(crate) fn likely_rounding(log_n: u32) -> f64 {
    let n = f64::from(log_n).exp2();
    // A value has the variance N / 12; its modulus squared over that is exponential.
    (n / 12.0 * (20.0 + n.ln())).sqrt()
}

/// log2 of how far the transform of scaled values is off before it is rounded, for values of at most 2^`largest`.
fn encoding_transform(log_n: u32, largest: f64, rounding: Rounding) -> f64 {
    largest
        + match fixed::surely_serves(largest, rounding) {
            true => f64::from(log_n) + fixed::LOG2_ERROR,
            false => (transform_error(log_n) + 2.0 * UNIT).log2(),
        }
}

/// Relative error of decoded slots, against the largest: the transform, three roundings of each coefficient.
pub(crate) fn transform_error(log_n: u32) -> f64 {
    let half = f64::from(log_n) - 1.0;
    (half / 2.0).exp2() * (5.0 * half + 6.0) * UNIT * 1.01
}

/// log2 of a bound on the phase of a ciphertext.
pub(crate) fn phase(params: &Params, log2_message: f64, noise: Noise) -> f64 {
    log2_add(log2_message, canonical(params, noise))
}

/// Bits between the phase and half the modulus.
pub(crate) fn room(params: &Params, level: usize) -> Result<f64> {
    let rlwe = params.rlwe();
    // log2 of each prime is within 2^-46 of its value.
    Ok(rlwe.ring().log2(rlwe.level(level)?) - 1.0 - 1e-9)
}

/// log2 of what a Gaussian of width 2^`sigma_bits` on every coefficient stays below at every root.
pub(crate) fn flooded(params: &Params, sigma_bits: f64) -> f64 {
    let (log_n, log2_failure) = (params.log_n(), params.failure_limit().log2_failure());
    let x2 = f64::from(log_n + log2_failure + 4) * std::f64::consts::LN_2 / 0.9619;
    sigma_bits + (f64::from(log_n) + x2.log2()) / 2.0
}

/// log2 of a bound on the phase of a ciphertext with such noise.
pub(crate) fn flooded_phase(params: &Params, factor: Factor, sigma_bits: f64) -> f64 {
    log2_add(phase(params, factor.log2_message, factor.noise), flooded(params, sigma_bits))
}

/// Fails when that could wrap around the modulus of `level`.
pub(crate) fn check_flooded(params: &Params, level: usize, factor: Factor, sigma_bits: f64) -> Result<()> {
    let bits = flooded_phase(params, factor, sigma_bits);
    Ok(require_room(bits, room(params, level)?, level, params.failure_limit().log2_failure())?)
}

/// Fails when the phase could wrap around the modulus of `level`.
pub(crate) fn check(params: &Params, level: usize, log2_message: f64, noise: Noise) -> Result<()> {
    let bits = phase(params, log2_message, noise);
    Ok(require_room(bits, room(params, level)?, level, params.failure_limit().log2_failure())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedding::{Complex64, Embedding, Scale};

    #[test]
    fn rounding_attains_its_bound_where_it_is_all_on_one_frequency() {
        let mut state = 7u64;
        for log_n in [4, 12, 15] {
            let n = 1usize << log_n;
            let (embedding, scale) = (Embedding::new(log_n).unwrap(), Scale::power_of_two(20).unwrap());
            let mut word = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 54) as f64
            };
            let sign = |j: usize| (std::f64::consts::PI * j as f64 / n as f64).cos().signum();
            let wanted = (0..n).map(|j| (word() + 0.499 * sign(j)) / scale.to_f64());
            let slots = embedding.decode(&wanted.collect::<Vec<f64>>()).unwrap();
            let bound = slots.iter().map(|z| z.re.hypot(z.im)).fold(0.0, f64::max);
            let encoded = embedding.encode(&slots, scale, bound).unwrap();
            let rounded = encoded.iter().map(|&c| c as f64 / scale.to_f64());
            let found = embedding.decode(&rounded.collect::<Vec<f64>>()).unwrap();
            let distances = slots.iter().zip(found.iter()).map(|(a, b)| (a.re - b.re).hypot(a.im - b.im));
            let off = distances.fold(0.0, f64::max) * scale.to_f64();
            let most = encoding(log_n, 20.0, bound).certificate.remainder;
            assert!((0.97..1.0).contains(&(off / most.exp2())), "2^{log_n}: {off} of {}", most.exp2());
        }
    }

    #[test]
    fn what_is_measured_of_an_encoding_holds_and_is_sharp() {
        let mut state = 11u64;
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / 2f64.powi(52) - 1.0
        };
        let log_n = 11;
        let embedding = Embedding::new(log_n).unwrap();
        let values: Vec<Complex64> =
            (0..1 << (log_n - 1)).map(|_| Complex64::new(0.7 * word(), 0.7 * word())).collect();
        // In doubles and in integers.
        for exponent in [20, 40, 43, 50] {
            let scale = Scale::power_of_two(exponent).unwrap();
            let (encoded, rounding) = embedding.encode_measured(&values, scale, 1.0).unwrap();
            let error = encoding_measured(log_n, f64::from(exponent), rounding);
            assert!(
                rounding.log2() <= error && error <= encoding(log_n, f64::from(exponent), 1.0).certificate.remainder
            );
            // Decoding is in doubles: the message has to be small for it to see the rounding.
            let scaled: Vec<f64> = encoded.iter().map(|&c| c as f64 / scale.to_f64()).collect();
            let found = embedding.decode(&scaled).unwrap();
            let off = values.iter().zip(&found).map(|(a, b)| (a.re - b.re).hypot(a.im - b.im)).fold(0.0, f64::max);
            let own = transform_error(log_n) * 1.01;
            assert!(off <= error.exp2() / scale.to_f64() + own, "2^{exponent}: {off:e}");
            if exponent < 43 {
                assert!((rounding / scale.to_f64() - off).abs() < 2.0 * own, "2^{exponent}: {rounding} is not {off:e}");
            }
            // The largest of N / 2 values of variance N / 12, not N / 2.
            assert!(rounding <= likely_rounding(log_n) && rounding * 4.0 > likely_rounding(log_n), "{rounding}");
        }
    }
}
