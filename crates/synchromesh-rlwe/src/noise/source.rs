//! The errors that encryptions, roundings and key switches bring in.

use synchromesh_ring::rns::Overflow;

use super::{Average, Certificate, Estimates, LOG2_FAILURE_INSIDE, Noise, Reference, tail};
use crate::spectrum::{self, UNEVEN};

/// The standard deviation that rounding adds: tau_0 + tau_1 s (+ tau_2 s^2 is bounded apart) for a ternary s.
#[must_use]
pub fn rounding_sigma(n: usize) -> f64 {
    ((1.0 + spectrum::POWER * n as f64) / 12.0).sqrt()
}

/// tau_0 + tau_1 s with both uniform in +-`size`.
#[must_use]
pub fn uniform_components(n: usize, size: f64) -> Noise {
    let log2_size = (2.0 * size).log2();
    let certificate = Certificate::gaussian(rounding_sigma(n).log2() + log2_size);
    Noise { certificate, estimates: Some(rounding_estimates(n, 2).times(log2_size)) }
}

/// The average case of tau_0 + tau_1 s + .. with each tau uniform in +-1/2.
#[must_use]
pub fn rounding_average(n: usize, components: usize) -> Average {
    let secret = (2.0 / 3.0 * n as f64).log2();
    let part = |i: usize| Average::of(i, i as f64 * secret - 12f64.log2());
    (0..components).map(part).fold(Average::ZERO, |sum, x| sum.plus(&x))
}

fn rounding_estimates(n: usize, components: usize) -> Estimates {
    Estimates { average: rounding_average(n, components), reference: Reference::rounding(n, components) }
}

/// The norm in which a scheme bounds r, whatever is left of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Norm {
    /// The largest coefficient.
    #[default]
    Coefficients,
    /// The largest value at a root of X^N + 1.
    Canonical,
}

impl Norm {
    /// An error whose r is bounded by its coefficients.
    #[must_use]
    pub fn of_coefficients(self, noise: Noise, n: usize) -> Noise {
        let certificate = match self {
            Self::Coefficients => noise.certificate,
            Self::Canonical => noise.certificate.with_larger_remainder(f64::from(n.trailing_zeros())),
        };
        Noise { certificate, ..noise }
    }
}

/// Rounding error of a ciphertext of `components` parts: tau_0 + tau_1 s (+ tau_2 s^2, a product of three random values).
///
/// Given s, a coefficient of the part that meets s^2 is sub-Gaussian with |s^2|_2 / sqrt(12). In the canonical norm
/// |tau_2| <= x sqrt(N/12) and |s|^2 <= x^2 2N/3, with 16 N exp(-0.9619 x^2) = 2^-148.
#[must_use]
pub fn rounding(n: usize, components: usize, norm: Norm) -> Noise {
    let two = uniform_components(n, 0.5);
    if components < 3 {
        return two;
    }
    let log_n = n.trailing_zeros();
    let log2_bound = match norm {
        Norm::Coefficients => {
            let moment = spectrum::log2_moment(log_n, 2) - 12f64.log2();
            f64::from(log_n) + spectrum::POWER.log2() + moment / 2.0 + tail(log_n, LOG2_FAILURE_INSIDE).log2()
        }
        Norm::Canonical => {
            let x2 = (f64::from(log_n + LOG2_FAILURE_INSIDE + 5) * std::f64::consts::LN_2) / 0.9619;
            let n = n as f64;
            ((x2 * n / 12.0).sqrt() * x2 * 2.0 * n / 3.0).log2()
        }
    };
    two.plus(Noise::at_most(log2_bound)).with_estimates(Some(rounding_estimates(n, components)))
}

/// The error of a ciphertext under a public key with errors of standard deviation `sigma`: e u + e_0 + e_1 s.
///
/// In the average case e, which all encryptions share, and s are two secrets that errors meet; one of the power
/// sqrt(1/2) stands for them, which is right for products of two such errors.
#[must_use]
pub fn public(n: usize, sigma: f64) -> Noise {
    let (n, half) = (n as f64, 0.5f64.sqrt());
    let variance = (sigma * sigma * (4.0 / 3.0 * n + 1.0)).log2();
    let average = Average::of(0, variance + (1.0 - half).log2()).plus(&Average::of(1, variance + half.log2()));
    let worst = (6.0 * sigma * (4.0 * n.sqrt() + 1.0)).log2();
    let reference = Reference::of(worst, variance);
    Noise::gaussian(1.16 * sigma * (2.0 * n + 1.0).sqrt()).with_estimates(Some(Estimates { average, reference }))
}

/// The error of a ciphertext under the secret key.
#[must_use]
pub fn secret(sigma: f64) -> Noise {
    Noise::gaussian(1.01 * sigma).with_average(Average::of(0, 2.0 * sigma.log2()))
}

/// One digit of a key switch, for its noise: log2 of the product of its primes, how many there are, and how many errors
/// its row of the key holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DigitSize {
    /// log2 of the digit's product.
    pub log2: f64,
    /// Number of primes.
    pub primes: usize,
    /// Number of independent errors in its row of the key: stored rows added.
    pub errors: usize,
}

/// The error that a key switch adds before rounding: sum_j d_j e_j / P.
///
/// A centred digit is uniform in +-D/2; a fast one is up to (k + 1) D off and bounded by Cauchy-Schwarz. In the average
/// case floors are uniform in \[0, D), and k of k residues that overflow are off by a sum of as many uniform values.
#[must_use]
pub fn gadget(n: usize, error_sigma: f64, digits: &[DigitSize], log2_p: f64, overflow: Overflow) -> Noise {
    digits.iter().fold(Noise::ZERO, |sum, digit| {
        let exact = error_sigma * (digit.errors as f64 * n as f64).sqrt();
        let norm = 1.1 * exact;
        let scale = digit.log2 - log2_p;
        let uniform = Noise::gaussian(norm * UNEVEN / 12f64.sqrt()).times(scale);
        let k = digit.primes as f64;
        // Mean squares of a digit over D^2.
        let (extra, square) = match overflow {
            Overflow::Round | Overflow::HpsRound => (Noise::ZERO, 1.0 / 12.0),
            Overflow::Behz => (uniform, 1.0 / 12.0),
            Overflow::Floor | Overflow::HpsFloor => (Noise::bounded(norm * (n as f64).sqrt()).times(scale), 1.0 / 3.0),
            Overflow::Fast => {
                let bound = Noise::bounded((k + 1.0) * norm * (n as f64).sqrt()).times(scale);
                (bound, if digit.primes == 1 { 1.0 / 12.0 } else { k / 12.0 + k * k / 4.0 })
            }
        };
        let variance = 2.0 * (exact.log2() + scale) + square.log2();
        // alpha delta D B_err / (2 P), ePrint 2021/204, appendix B.
        let worst = (n as f64).log2() / 2.0 + scale + (6.0 * error_sigma * k * digit.errors as f64).log2();
        let reference = Reference::of(worst, variance);
        let estimates = Estimates { average: Average::of(1, variance), reference };
        let term = uniform.plus(extra).with_estimates(Some(estimates));
        sum.plus_switching(term)
    })
}
