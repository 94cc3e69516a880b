//! Errors times messages and public polynomials: the part w = w_1 + .. + w_6 of an error, w_d a sum of terms p f_d.
//!
//! f_1 is g, f_d a product of d errors, p a polynomial that nobody chose with their randomness, which may itself be a
//! product. What is kept is the sum of |p|_2 sigma_d over the terms: q p has at most max |q(zeta)| times that norm, so that
//! a tail is taken once, of the last bound, however many polynomials came in.
//!
//! Given the keys, with V(zeta) the variance of g at a root, a coefficient of p g is sub-Gaussian with the root mean square
//! of |p(zeta)|^2 V(zeta), at most |p|_2 sigma times the root of the largest V. What p f_d keeps to is in
//! [`Tails`](super::tails::Tails).

use super::tails::tails;
use super::{Certificate, DEGREES};
use crate::noise::{LOG2_FAILURE_INSIDE, log2_add};

/// More than the largest |p(zeta)| over N B for coefficients of at most B: the sum of |cos| over equal angles, 2 / pi.
pub const LARGEST_AT_ROOT: f64 = 0.64;

impl Certificate {
    /// The same with w in the remainder.
    pub(super) fn with_weighted_bounded(self, log_n: u32) -> Self {
        let linear = self.weighted[0] + tails(log_n, LOG2_FAILURE_INSIDE).weighted[0];
        let bound = log2_add(linear, self.weighted_bound(log_n, LOG2_FAILURE_INSIDE));
        let (remainder, norm) = (log2_add(self.remainder, bound), log2_add(self.norm, bound));
        Self { remainder, norm, weighted: Self::ZERO.weighted, ..self }
    }

    /// log2 of a bound on w_2 + .. + w_6.
    pub(super) fn weighted_bound(&self, log_n: u32, log2_failure: u32) -> f64 {
        let products = &self.weighted[1..];
        if products.iter().all(|&x| x == f64::NEG_INFINITY) {
            return f64::NEG_INFINITY;
        }
        let tails = tails(log_n, log2_failure).weighted;
        products.iter().zip(&tails[1..]).map(|(x, tail)| x + tail).fold(f64::NEG_INFINITY, log2_add)
    }

    /// The error times a public polynomial p, of which |p|_2 and |p|_1 are given as log2.
    ///
    /// p g and p f_d become parts of w, where p w is at most |p(zeta)| times as large as w. A p with few coefficients
    /// leaves a product of errors what it is, a sum of moved ones. r is bounded by |p|_1, or by |p|_2 and its own.
    #[must_use]
    pub fn times_poly(self, log_n: u32, log2_norm2: f64, log2_norm1: f64) -> Self {
        self.times_polynomial(log_n, [log2_norm2, log2_norm1, log2_norm1])
    }

    /// As [`Self::times_poly`] for any polynomial with coefficients of at most 2^`log2_bound`.
    #[must_use]
    pub fn times_message(self, log_n: u32, log2_bound: f64) -> Self {
        let log2_n = f64::from(log_n);
        let norms = [log2_n / 2.0, log2_n, log2_n + LARGEST_AT_ROOT.log2()].map(|x| log2_bound + x);
        self.times_polynomial(log_n, norms)
    }

    /// With log2 of |p|_2, |p|_1 and the largest |p(zeta)|.
    fn times_polynomial(self, log_n: u32, [norm2, norm1, largest]: [f64; 3]) -> Self {
        if self.is_unknown() {
            return Self::UNKNOWN;
        }
        let half = f64::from(log_n) / 2.0;
        let inside = tails(log_n, LOG2_FAILURE_INSIDE);
        let mut weighted = self.weighted.map(|w| w + largest);
        weighted[0] = log2_add(weighted[0], self.sigma + norm2);
        let mut products = Self::ZERO.products;
        for (d, x) in (1..DEGREES).zip(self.products) {
            if norm1 + inside.largest[d] <= norm2 + inside.weighted[d] {
                products[d - 1] = x + norm1;
            } else {
                weighted[d] = log2_add(weighted[d], x + norm2);
            }
        }
        let remainder = (self.remainder + norm1).min(self.norm + half + norm2);
        Self {
            remainder,
            weighted,
            products,
            norm: remainder,
            origins: self.origins,
            detached: self.detached,
            on_word: self.on_word,
            ..Self::ZERO
        }
    }
}
