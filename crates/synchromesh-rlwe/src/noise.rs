//! The noise certificate of a ciphertext: a bound that holds for any message within its declared bound.
//!
//! The error e of a ciphertext (phase = message + t e) is written e = g + r. g is a sum of fresh errors and rounding
//! errors such as tau s: each coefficient exceeds x sigma with probability at most 2 exp(-x^2 / 2). r is whatever is
//! left, bounded in a norm that the scheme chooses. Nothing is assumed about how the errors of two ciphertexts depend
//! on each other: standard deviations add, products of two errors use the bound N |a| |b|.
//!
//! A fixed polynomial p times g is another matter: a coefficient of p tau s is the inner product of tau with p s, whose
//! length is itself random. With p on a single frequency it is |s(zeta)|, whose square has an exponential tail: for
//! P(|s(zeta)|^2 > x 2N/3) P(|tau| > y) about exp(-x - y^2/2) = 2^-(k+1)/N the product sqrt(x) y is largest at
//! x = y^2/2, which exceeds the Gaussian bound by y/sqrt(2) at the smaller y; see [`Noise::times_poly`].
//!
//! What is assumed, and listed in SECURITY.md: rounding errors and digits of a ciphertext behave as uniform and
//! independent of the keys, and the secret is the one the parameters name.

use serde::{Deserialize, Serialize};

use synchromesh_ring::rns::Overflow;

use crate::error::Error;

/// Default failure probability of one decryption, as minus its log2.
pub const DEFAULT_LOG2_FAILURE: u32 = 128;

/// log2(2^a + 2^b).
#[must_use]
pub fn log2_add(a: f64, b: f64) -> f64 {
    let (hi, lo) = if a >= b { (a, b) } else { (b, a) };
    if lo == f64::NEG_INFINITY || hi == f64::INFINITY {
        hi
    } else {
        hi + (lo - hi).exp2().ln_1p() / std::f64::consts::LN_2
    }
}

/// A bound on an error polynomial, as log2.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// log2 of the sub-Gaussian parameter of each coefficient of g.
    pub sigma: f64,
    /// log2 of the bound on r.
    pub remainder: f64,
}

impl Noise {
    /// No error.
    pub const ZERO: Self = Self { sigma: f64::NEG_INFINITY, remainder: f64::NEG_INFINITY };

    /// An error of which nothing is known: read from a file without a reason to believe its certificate.
    ///
    /// Whatever is computed from it is unknown too, and [`require_room`] refuses it.
    pub const UNKNOWN: Self = Self { sigma: f64::INFINITY, remainder: f64::INFINITY };

    /// Whether there is no bound.
    #[must_use]
    pub fn is_unknown(self) -> bool {
        !(self.sigma < f64::INFINITY && self.remainder < f64::INFINITY)
    }

    /// A sub-Gaussian error with standard deviation `sigma` (not its log2).
    #[must_use]
    pub fn gaussian(sigma: f64) -> Self {
        Self { sigma: sigma.log2(), remainder: f64::NEG_INFINITY }
    }

    /// An error of which only a bound is known (not its log2).
    #[must_use]
    pub fn bounded(bound: f64) -> Self {
        Self { sigma: f64::NEG_INFINITY, remainder: bound.log2() }
    }

    /// The sum of two errors, however they depend on each other.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { sigma: log2_add(self.sigma, other.sigma), remainder: log2_add(self.remainder, other.remainder) }
    }

    /// The error times a public number, given as log2.
    #[must_use]
    pub fn times(self, log2_factor: f64) -> Self {
        if self.is_unknown() {
            return Self::UNKNOWN;
        }
        Self { sigma: self.sigma + log2_factor, remainder: self.remainder + log2_factor }
    }

    /// The error times a public polynomial p, of which |p|_2 and |p|_1 are given as log2; all of it becomes remainder.
    ///
    /// g is bounded by |p|_2 sigma sqrt(2/3) x with x = ln(2N 2^k), k the failure exponent and 20 bits for the number
    /// of such products; r by |p|_1.
    #[must_use]
    pub fn times_poly(self, log_n: u32, log2_norm2: f64, log2_norm1: f64) -> Self {
        if self.is_unknown() {
            return Self::UNKNOWN;
        }
        let x = std::f64::consts::LN_2 * f64::from(log_n + DEFAULT_LOG2_FAILURE + 21);
        let tail = ((2.0f64 / 3.0).sqrt() * x).log2();
        let remainder = log2_add(self.sigma + log2_norm2 + tail, self.remainder + log2_norm1);
        Self { sigma: f64::NEG_INFINITY, remainder }
    }

    /// log2 of a bound that all N = 2^log_n coefficients keep except with probability 2^-log2_failure.
    #[must_use]
    pub fn bound(self, log_n: u32, log2_failure: u32) -> f64 {
        log2_add(self.sigma + tail(log_n, log2_failure).log2(), self.remainder)
    }
}

/// How many standard deviations a sub-Gaussian value stays within, for 2^log_n values, except with probability
/// 2^-log2_failure.
#[must_use]
pub fn tail(log_n: u32, log2_failure: u32) -> f64 {
    (2.0 * std::f64::consts::LN_2 * f64::from(log_n + log2_failure + 1)).sqrt()
}

/// The standard deviation that rounding adds: tau_0 + tau_1 s (+ tau_2 s^2 is bounded apart) for a ternary s.
#[must_use]
pub fn rounding_sigma(n: usize) -> f64 {
    ((1.0 + n as f64) / 12.0).sqrt()
}

/// Rounding error of a ciphertext of `components` parts; the part that meets s^2 is bounded by N^2 / 2.
#[must_use]
pub fn rounding(n: usize, components: usize) -> Noise {
    let two = Noise::gaussian(rounding_sigma(n));
    if components < 3 { two } else { two.plus(Noise::bounded((n as f64).powi(2) / 2.0)) }
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
/// A centred digit is uniform in +-D/2; a fast one is up to (k + 1) D off and bounded by Cauchy-Schwarz.
#[must_use]
pub fn gadget(n: usize, error_sigma: f64, digits: &[DigitSize], log2_p: f64, overflow: Overflow) -> Noise {
    digits.iter().fold(Noise::ZERO, |sum, digit| {
        let norm = 1.1 * error_sigma * (digit.errors as f64 * n as f64).sqrt();
        let scale = digit.log2 - log2_p;
        let uniform = Noise::gaussian(norm / 12f64.sqrt()).times(scale);
        let extra = match overflow {
            Overflow::Round | Overflow::HpsRound => Noise::ZERO,
            Overflow::Behz => uniform,
            Overflow::Floor | Overflow::HpsFloor => Noise::bounded(norm * (n as f64).sqrt()).times(scale),
            Overflow::Fast => Noise::bounded((digit.primes as f64 + 1.0) * norm * (n as f64).sqrt()).times(scale),
        };
        sum.plus(uniform).plus(extra)
    })
}

/// Fails when a noise bound exceeds the room, both as log2.
///
/// # Errors
/// [`Error::Noise`]; [`Error::UnknownNoise`] when there is no bound (infinite, or not a number).
pub fn require_room(noise_bits: f64, room_bits: f64, level: usize, log2_failure: u32) -> Result<(), Error> {
    if noise_bits < room_bits {
        return Ok(());
    }
    if noise_bits < f64::INFINITY {
        return Err(Error::Noise { noise_bits, room_bits, level, log2_failure });
    }
    Err(Error::UnknownNoise { room_bits, level })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_error_stays_unknown_and_is_refused() {
        let unknown = Noise::UNKNOWN;
        let derived = [
            unknown,
            unknown.plus(unknown),
            unknown.plus(Noise::ZERO),
            Noise::gaussian(3.2).plus(unknown),
            unknown.times(-1000.0),
            unknown.times(f64::NEG_INFINITY),
            unknown.times_poly(12, -5.0, f64::NEG_INFINITY),
        ];
        for noise in derived {
            assert!(noise.is_unknown());
            assert_eq!(noise, Noise::UNKNOWN);
            let error = require_room(noise.bound(15, 128), 1e9, 3, 128).unwrap_err();
            assert_eq!(error, Error::UnknownNoise { room_bits: 1e9, level: 3 });
        }
        assert_eq!(require_room(f64::NAN, 10.0, 3, 128).unwrap_err().kind(), "unknown_noise");
        assert_eq!(require_room(11.0, 10.0, 3, 128).unwrap_err().kind(), "noise");
        for known in [Noise::ZERO, Noise::gaussian(3.2), Noise::bounded(2.0)] {
            assert!(!known.is_unknown());
            require_room(known.bound(15, 128), 10.0, 3, 128).unwrap();
        }
    }
}
