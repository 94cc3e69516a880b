//! The noise models of the papers, tracked beside our own through the same operations.
//!
//! Worst case (ePrint 2021/204, section 2): bounds on coefficients; a product of polynomials grows by the expansion
//! factor 2 sqrt(N), errors have at most 6 standard deviations, the secret at most 1. Canonical norm (ePrint 2023/1642,
//! section 2, and 2023/593, section 4): a polynomial whose coefficients have variance V is at most 6 sqrt(N V) at every
//! root of X^N + 1, sums add and products multiply. Both are heuristics: SECURITY.md says what is proven of which.

use crate::noise::log2_add;

/// Standard deviations that both models allow.
const DEVIATIONS: f64 = 6.0;

/// log2 of the bounds of both models.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// Worst case, on coefficients.
    pub worst: f64,
    /// Canonical norm, divided by sqrt(N).
    pub canonical: f64,
}

impl Reference {
    /// No error.
    pub const ZERO: Self = Self { worst: f64::NEG_INFINITY, canonical: f64::NEG_INFINITY };

    /// Bounds on coefficients in the worst case, and the variance of a coefficient, both as log2.
    #[must_use]
    pub fn of(log2_worst: f64, log2_variance: f64) -> Self {
        Self { worst: log2_worst, canonical: DEVIATIONS.log2() + log2_variance / 2.0 }
    }

    /// Coefficients of standard deviation 2^`log2_sigma` without a sharper bound.
    #[must_use]
    pub fn gaussian(log2_sigma: f64) -> Self {
        Self::of(DEVIATIONS.log2() + log2_sigma, 2.0 * log2_sigma)
    }

    /// Coefficients uniform in +-2^`log2`.
    #[must_use]
    pub fn uniform(log2: f64) -> Self {
        Self::of(log2, 2.0 * log2 - 3f64.log2())
    }

    /// log2 of the expansion factor.
    fn expansion(log_n: u32) -> f64 {
        1.0 + f64::from(log_n) / 2.0
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self { worst: log2_add(self.worst, other.worst), canonical: log2_add(self.canonical, other.canonical) }
    }

    /// Multiplied by 2^`log2`.
    #[must_use]
    pub fn times(&self, log2: f64) -> Self {
        Self { worst: self.worst + log2, canonical: self.canonical + log2 }
    }

    /// The product of two polynomials.
    #[must_use]
    pub fn product(&self, other: &Self, log_n: u32) -> Self {
        Self {
            worst: self.worst + other.worst + Self::expansion(log_n),
            canonical: self.canonical + other.canonical + f64::from(log_n) / 2.0,
        }
    }

    /// Rounding to integers of `components` parts under a ternary secret.
    #[must_use]
    pub fn rounding(n: usize, components: usize) -> Self {
        let delta = 2.0 * (n as f64).sqrt();
        let secret = 2.0 / 3.0 * n as f64;
        let powers = |x: f64| (0..components).map(|i| x.powi(i as i32)).sum::<f64>();
        Self::of((powers(delta) / 2.0).log2(), (powers(secret) / 12.0).log2())
    }
}
