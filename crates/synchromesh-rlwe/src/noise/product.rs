//! The product of two errors, part by part.
//!
//! Of errors that have no encryption in common a product f_i f_j is one of i + j errors, p f_i times f_j is p times such a
//! one, and (p f_i)(q f_j) is p q times it, where |p q|_2 <= sqrt(N) |p|_2 |q|_2. Each keeps the tail of its degree until
//! the last bound. Everything else is at most |a|_2 |b|_2, by bounds that hold except with probability 2^-148.

use super::tails::{Tails, tails};
use super::{DEGREES, LOG2_FAILURE_INSIDE, Noise, log2_add, tail};
use crate::spectrum;

/// A part of an error: f_d, p f_d, or the rest.
#[derive(Clone, Copy)]
struct Part {
    /// Errors that are multiplied, and polynomials of them: 0 or 1. None for the rest.
    factors: Option<(usize, usize)>,
    /// log2 of its parameter, |p|_2 with it.
    size: f64,
    /// log2 of a bound on its 2-norm over sqrt(N).
    norm: f64,
}

impl Noise {
    /// The product with another error, of one with itself if `same`.
    ///
    /// With disjoint origins the degrees of products add. Otherwise, and beyond the highest degree, a coefficient is at
    /// most |a|_2 |b|_2; g r of such is at most sqrt(largest |h|^2) |r|_2 tail, if that is less.
    #[must_use]
    pub fn product(self, other: Self, log_n: u32, same: bool) -> Self {
        if self.is_unknown() || other.is_unknown() {
            return Self::UNKNOWN;
        }
        let apart = !same && self.origins.disjoint(&other.origins);
        let mut out = Self {
            origins: self.origins.union(&other.origins),
            detached: apart && self.detached && other.detached,
            average: self.average.error().product(&other.average.error(), log_n, same),
            reference: self.reference.product(&other.reference, log_n),
            ..Self::ZERO
        };
        let inside = tails(log_n, LOG2_FAILURE_INSIDE);
        let others: Vec<Part> = other.parts(log_n, &inside).collect();
        for a in self.parts(log_n, &inside) {
            for b in &others {
                out.gain(a, *b, log_n, apart, &inside);
            }
        }
        out.norm = out.remainder;
        out
    }

    /// Its parts that are not zero.
    fn parts(&self, log_n: u32, inside: &Tails) -> impl Iterator<Item = Part> {
        let graded = std::array::from_fn::<_, DEGREES, _>(|i| if i == 0 { self.sigma } else { self.products[i - 1] });
        let plain = |(i, size): (usize, f64)| (i + 1, 0, size, size + inside.norm[i]);
        let times = |(i, size): (usize, f64)| (i + 1, 1, size, weighted_bound(log_n, inside, i, size));
        let all = graded.into_iter().enumerate().map(plain).chain(self.weighted.into_iter().enumerate().map(times));
        let all: Vec<_> = all.filter(|&(_, _, size, _)| size > f64::NEG_INFINITY).collect();
        let rest = Part { factors: None, size: self.norm, norm: self.norm };
        let part = |(degree, polynomials, size, norm)| Part { factors: Some((degree, polynomials)), size, norm };
        all.into_iter().map(part).chain((self.norm > f64::NEG_INFINITY).then_some(rest))
    }

    /// Adds the product of two parts, `apart` if they are independent.
    fn gain(&mut self, a: Part, b: Part, log_n: u32, apart: bool, inside: &Tails) {
        let log2_n = f64::from(log_n);
        let single = spectrum::log2_peak(log_n) / 2.0 + tail(log_n, LOG2_FAILURE_INSIDE).log2() - log2_n / 2.0;
        // A g is less than its norm beside what is no such product.
        let norm = |x: Part, y: Part| match (x.factors, y.factors) {
            (Some((1, 0)), None | Some((_, 1))) if apart => x.norm.min(x.size + single),
            _ => x.norm,
        };
        let by_norms = norm(a, b) + norm(b, a) + log2_n;
        if let (true, Some((i, p)), Some((j, q))) = (apart, a.factors, b.factors)
            && i + j <= DEGREES
        {
            let size = a.size + b.size + log2_n / 2.0;
            let degree = i + j - 1;
            if p + q == 0 {
                self.products[degree - 1] = log2_add(self.products[degree - 1], size);
                return;
            }
            let size = size + (p + q - 1) as f64 * log2_n / 2.0;
            if weighted_bound(log_n, inside, degree, size) <= by_norms {
                self.weighted[degree] = log2_add(self.weighted[degree], size);
                return;
            }
        }
        self.remainder = log2_add(self.remainder, by_norms);
    }
}

/// log2 of a bound on every coefficient of p f of `degree` + 1 errors and this size.
fn weighted_bound(log_n: u32, inside: &Tails, degree: usize, size: f64) -> f64 {
    match degree {
        0 => size + spectrum::log2_peak(log_n) / 2.0 + tail(log_n, LOG2_FAILURE_INSIDE).log2(),
        _ => size + inside.weighted[degree],
    }
}
