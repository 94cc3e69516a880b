//! What is known of the error of a ciphertext: its certificate, by which everything is decided, and estimates where
//! somebody compares them with what is measured. The same expressions compute both.

mod certificate;
mod estimates;
pub mod hints;
mod key_bound;
mod limit;
mod shared_key;
mod source;

pub use certificate::{Certificate, DEGREES, LARGEST_AT_ROOT, LinearBound, Origins, root_tail, tail};
pub use estimates::{Average, Estimates, Estimating, Model, Reference};
pub use key_bound::KeyBound;
pub use limit::FailureLimit;
pub use shared_key::SharedKey;
pub use source::{
    DigitSize, Norm, gadget, public, rounding, rounding_average, rounding_sigma, secret, uniform_components,
};

use crate::error::Error;

/// Default failure probability of one decryption, as minus its log2.
pub const DEFAULT_LOG2_FAILURE: u32 = 128;

/// Failure probability of a bound that enters another, as minus its log2: a million of them together stay below the
/// default.
pub const LOG2_FAILURE_INSIDE: u32 = DEFAULT_LOG2_FAILURE + 20;

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

/// The error of a ciphertext, or one that an operation adds to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// What holds.
    pub certificate: Certificate,
    /// What is expected: of what an operation adds, of fresh ciphertexts where an observer wants them
    /// ([`Observer::wants_estimates`](crate::Observer::wants_estimates)), and of all that is computed from such alone.
    pub estimates: Option<Estimates>,
}

impl From<Certificate> for Noise {
    fn from(certificate: Certificate) -> Self {
        Self { certificate, estimates: None }
    }
}

impl Noise {
    /// No error.
    pub const ZERO: Self = Self { certificate: Certificate::ZERO, estimates: Some(Estimates::ZERO) };

    /// An error of which nothing is known, see [`Certificate::UNKNOWN`].
    pub const UNKNOWN: Self = Self { certificate: Certificate::UNKNOWN, estimates: None };

    /// A sub-Gaussian error with standard deviation `sigma` (not its log2).
    #[must_use]
    pub fn gaussian(sigma: f64) -> Self {
        let log2 = sigma.log2();
        Self { certificate: Certificate::gaussian(log2), estimates: Some(Estimates::gaussian(log2)) }
    }

    /// An error of which only a bound is known (not its log2); uniform in the average case.
    #[must_use]
    pub fn bounded(bound: f64) -> Self {
        Self::at_most(bound.log2())
    }

    /// An error of which only a bound of 2^`log2` is known; uniform in the average case.
    #[must_use]
    pub fn at_most(log2: f64) -> Self {
        Self { certificate: Certificate::at_most(log2), estimates: Some(Estimates::uniform(log2)) }
    }

    /// log2 of the certified bound, see [`Certificate::bound`].
    #[must_use]
    pub fn bound(&self, log_n: u32, log2_failure: u32) -> f64 {
        self.certificate.bound(log_n, log2_failure)
    }

    /// Of encryptions with these numbers.
    #[must_use]
    pub const fn with_origins(self, origins: Origins) -> Self {
        Self { certificate: self.certificate.with_origins(origins), ..self }
    }

    /// The same certificate with other estimates.
    #[must_use]
    pub const fn with_estimates(self, estimates: Option<Estimates>) -> Self {
        Self { estimates, ..self }
    }

    /// The same with another average case.
    #[must_use]
    pub fn with_average(self, average: Average) -> Self {
        self.with_estimates(self.estimates.map(|estimates| Estimates { average, ..estimates }))
    }

    fn with(self, other: &Self, certificate: Certificate, f: impl Fn(&Estimates, &Estimates) -> Estimates) -> Self {
        let estimates = self.estimates.as_ref().zip(other.estimates.as_ref()).map(|(x, y)| f(x, y));
        Self { certificate, estimates }
    }

    /// The sum with an error that an operation adds: however they depend on each other for the certificate, independent
    /// in the average case.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(&other, self.certificate.plus(other.certificate), Estimates::plus)
    }

    /// The sum with the error of another ciphertext, see [`Certificate::sum`].
    #[must_use]
    pub fn sum(self, other: Self) -> Self {
        self.with(&other, self.certificate.sum(other.certificate), Estimates::plus)
    }

    /// As [`Self::sum`] for an error that goes with this one: in the average case standard deviations add.
    #[must_use]
    pub fn sum_same(self, other: Self) -> Self {
        self.with(&other, self.certificate.sum(other.certificate), Estimates::plus_same)
    }

    /// The error of a ciphertext added to itself.
    #[must_use]
    pub fn doubled(self) -> Self {
        self.with(&self, self.certificate.doubled(), Estimates::plus_same)
    }

    /// The sum with what switching this ciphertext leaves, see [`Certificate::plus_switching`].
    #[must_use]
    pub fn plus_switching(self, switching: Self) -> Self {
        self.with(&switching, self.certificate.plus_switching(switching.certificate), Estimates::plus)
    }

    /// The sum of both halves of a product, see [`Certificate::sum_crosswise`].
    #[must_use]
    pub fn sum_crosswise(self, other: Self, [x, y]: [&Self; 2]) -> Self {
        let operands = [&x.certificate, &y.certificate];
        self.with(&other, self.certificate.sum_crosswise(other.certificate, operands), Estimates::plus)
    }

    /// The error that is one of both at each root, see [`Certificate::either`].
    #[must_use]
    pub fn either(self, other: Self) -> Self {
        self.with(&other, self.certificate.either(other.certificate), Estimates::plus)
    }

    /// The same error, of which `other` is known too, see [`Certificate`].
    #[must_use]
    pub fn sharpened(self, other: Self) -> Self {
        Self { certificate: self.certificate.sharpened(other.certificate), ..self }
    }

    /// What either error keeps to, see [`Certificate::worse`]; with the estimates of the first.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        Self { certificate: self.certificate.worse(other.certificate), ..self }
    }

    /// After X -> X^g and a switch back to the same secret.
    #[must_use]
    pub fn moved(self) -> Self {
        self.with_estimates(self.estimates.as_ref().map(Estimates::moved))
    }

    /// The error times a public number, given as log2.
    #[must_use]
    pub fn times(self, log2_factor: f64) -> Self {
        let estimates = self.estimates.map(|estimates| estimates.times(log2_factor));
        Self { certificate: self.certificate.times(log2_factor), estimates }
    }

    /// The image under a public linear map of the values at the roots, see [`Certificate::through`]; estimates grow by the
    /// map's norm.
    #[must_use]
    pub fn through(self, map: &LinearBound, log_n: u32) -> Self {
        let estimates = self.estimates.map(|estimates| estimates.times(map.norm));
        Self { certificate: self.certificate.through(map, log_n), estimates }
    }

    /// The product with another error, of one with itself if `same`; see [`Certificate::product`].
    #[must_use]
    pub fn product(self, other: Self, log_n: u32, same: bool) -> Self {
        let certificate = self.certificate.product(other.certificate, log_n, same);
        self.with(&other, certificate, |x, y| x.product(y, log_n, same))
    }

    /// The error times a public polynomial p, of which |p|_2 and |p|_1 are given as log2.
    #[must_use]
    pub fn times_poly(self, log_n: u32, log2_norm2: f64, log2_norm1: f64) -> Self {
        let variance = 2.0 * log2_norm2 - f64::from(log_n);
        let estimates = self.estimates.map(|estimates| estimates.times_poly(log_n, log2_norm2, variance));
        Self { certificate: self.certificate.times_poly(log_n, log2_norm2, log2_norm1), estimates }
    }

    /// As [`Self::times_poly`] for a polynomial of which only that its coefficients are at most 2^`log2_bound` is known:
    /// any such for the certificate, a uniform one in the average case.
    #[must_use]
    pub fn times_message(self, log_n: u32, log2_bound: f64) -> Self {
        // Mean square (t^2 + 2) / 12 of centred residues modulo t = 2^(log2_bound + 1).
        let variance = log2_add(2.0 * log2_bound, -1.0) - 3f64.log2();
        let norm2 = log2_bound + f64::from(log_n) / 2.0;
        let estimates = self.estimates.map(|estimates| estimates.times_poly(log_n, norm2, variance));
        Self { certificate: self.certificate.times_message(log_n, log2_bound), estimates }
    }
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

    fn fresh(number: u64) -> Noise {
        rounding(1 << 13, 2, Norm::Coefficients).with_origins(Origins::one(number))
    }

    #[test]
    fn in_the_average_case_what_goes_together_is_larger_than_what_is_independent() {
        let (x, y) = (fresh(1), fresh(2));
        let sigma = |noise: Noise| noise.estimates.map_or(f64::NAN, |e| e.log2_sigma());
        assert!((sigma(x.doubled()) - sigma(x) - 1.0).abs() < 1e-9);
        assert!((sigma(x.sum(y)) - sigma(x) - 0.5).abs() < 1e-9);
        assert!((sigma(x.product(x, 13, true)) - sigma(x.product(y, 13, false)) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_certificate_is_the_same_with_and_without_estimates_and_what_has_none_gives_none() {
        let operations: [fn(Noise, Noise) -> Noise; 10] = [
            Noise::plus,
            Noise::sum,
            Noise::sum_same,
            Noise::plus_switching,
            Noise::either,
            Noise::worse,
            |x, y| x.product(y, 13, false),
            |x, y| x.sum_crosswise(y, [&x, &y]),
            |x, _| x.doubled().moved().times(3.0),
            |x, _| x.times_poly(13, 2.0, 5.0).times_message(13, 1.0),
        ];
        let (x, y) = (fresh(1), fresh(2));
        let without = Noise::from(x.certificate);
        for (i, operation) in operations.into_iter().enumerate() {
            let (estimated, certified) = (operation(x, y), operation(without, y));
            assert_eq!(estimated.certificate, certified.certificate, "{i}");
            assert!(estimated.estimates.is_some() && certified.estimates.is_none(), "{i}");
        }
    }
}
