//! Estimates of an error: the average case and the models of the papers. Nothing decides by them; they are compared with
//! what is measured and with certificates.

mod average;
mod reference;

pub use average::Average;
pub use reference::Reference;

use super::{FailureLimit, tail};
use crate::observer::Observer;

/// An observer by which ciphertexts carry estimates.
#[derive(Debug, Clone, Copy)]
pub struct Estimating;

impl Observer for Estimating {
    fn wants_estimates(&self) -> bool {
        true
    }
}

/// What is expected of an error polynomial rather than certified.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimates {
    /// The average case.
    pub average: Average,
    /// The models of the papers.
    pub reference: Reference,
}

/// A way of estimating how large an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Model {
    /// The expansion factor 2 sqrt(N) (ePrint 2021/204, section 2).
    WorstCase,
    /// The canonical norm with six standard deviations (ePrint 2023/1642, section 2; 2023/593, section 4).
    Canonical,
    /// The average case times what N Gaussian values stay within.
    Average(FailureLimit),
}

impl Estimates {
    /// No error.
    pub const ZERO: Self = Self { average: Average::ZERO, reference: Reference::ZERO };

    /// Coefficients of standard deviation 2^`log2`.
    #[must_use]
    pub fn gaussian(log2: f64) -> Self {
        Self { average: Average::of(0, 2.0 * log2), reference: Reference::gaussian(log2) }
    }

    /// Coefficients uniform in +-2^`log2`.
    #[must_use]
    pub fn uniform(log2: f64) -> Self {
        Self { average: Average::of(0, 2.0 * log2 - 3f64.log2()), reference: Reference::uniform(log2) }
    }

    /// log2 of the bound on all N = 2^`log_n` coefficients that a model gives.
    #[must_use]
    pub fn by(&self, model: Model, log_n: u32) -> f64 {
        match model {
            Model::WorstCase => self.reference.worst,
            Model::Canonical => self.reference.canonical + f64::from(log_n) / 2.0,
            Model::Average(limit) => self.log2_sigma() + tail(log_n, limit.log2_failure()).log2(),
        }
    }

    /// log2 of the standard deviation of a coefficient in the average case: over keys and encryptions, for uniform
    /// messages.
    #[must_use]
    pub fn log2_sigma(&self) -> f64 {
        self.average.log2_sigma()
    }

    /// The sum with an independent error.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self { average: self.average.plus(&other.average), reference: self.reference.plus(&other.reference) }
    }

    /// The sum with an error that goes with it: in the average case standard deviations add.
    #[must_use]
    pub fn plus_same(&self, other: &Self) -> Self {
        Self { average: self.average.plus_same(&other.average), reference: self.reference.plus(&other.reference) }
    }

    /// Multiplied by 2^`log2`.
    #[must_use]
    pub fn times(&self, log2: f64) -> Self {
        Self { average: self.average.times(log2), reference: self.reference.times(log2) }
    }

    /// After X -> X^g and a switch back to the same secret.
    #[must_use]
    pub fn moved(&self) -> Self {
        Self { average: self.average.moved(), ..*self }
    }

    /// The product of two errors, of one with itself if `same`.
    #[must_use]
    pub fn product(&self, other: &Self, log_n: u32, same: bool) -> Self {
        Self {
            average: self.average.error().product(&other.average.error(), log_n, same),
            reference: self.reference.product(&other.reference, log_n),
        }
    }

    /// The error times a polynomial p with |p|_2 = 2^`log2_norm2`, in the average case independent with coefficients of
    /// variance 2^`log2_variance`.
    #[must_use]
    pub fn times_poly(&self, log_n: u32, log2_norm2: f64, log2_variance: f64) -> Self {
        let poly = Reference::of(log2_norm2 - f64::from(log_n) / 2.0, log2_variance);
        Self {
            average: self.average.error().times_random(log_n, log2_variance),
            reference: self.reference.product(&poly, log_n),
        }
    }
}
