//! The product of two errors, part by part.
//!
//! Of errors that have no encryption in common a product f_i f_j is one of i + j errors, p f_i times f_j is p times such a
//! one, and (p f_i)(q f_j) is p q times it, where |p q|_2 <= sqrt(N) |p|_2 |q|_2. Each keeps the tail of its degree until
//! the last bound. Everything else is at most |a|_2 |b|_2, by bounds that hold except with probability 2^-148.

use super::tails::{Tails, tails};
use super::{Certificate, DEGREES};
use crate::noise::{LOG2_FAILURE_INSIDE, log2_add};

/// f_d or p f_d.
#[derive(Clone, Copy)]
struct Factors {
    /// d.
    errors: usize,
    /// 0 or 1.
    polynomials: usize,
    /// log2 of its parameter, |p|_2 with it.
    size: f64,
}

/// A part of an error: errors and polynomials that are multiplied, or the rest.
#[derive(Clone, Copy)]
struct Part {
    factors: Option<Factors>,
    /// log2 of a bound on its 2-norm over sqrt(N).
    norm: f64,
}

impl Certificate {
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
            on_word: self.on_word || other.on_word,
            ..Self::ZERO
        };
        let inside = tails(log_n, LOG2_FAILURE_INSIDE);
        let others = other.parts(&inside);
        for a in self.parts(&inside) {
            for b in &others {
                out.gain(a, *b, log_n, apart, &inside);
            }
        }
        out.norm = out.remainder;
        out
    }

    /// Its parts that are not zero.
    fn parts(&self, inside: &Tails) -> Vec<Part> {
        let plain = std::iter::once(&self.sigma).chain(&self.products).zip(&inside.norm);
        let times = self.weighted.iter().zip(&inside.weighted);
        let part = |polynomials| {
            move |(i, (&size, tail)): (usize, (&f64, &f64))| Part {
                factors: Some(Factors { errors: i + 1, polynomials, size }),
                norm: size + tail,
            }
        };
        let all = plain.enumerate().map(part(0)).chain(times.enumerate().map(part(1)));
        all.chain([Part { factors: None, norm: self.norm }]).filter(|x| x.norm > f64::NEG_INFINITY).collect()
    }

    /// Adds the product of two parts, `apart` if they are independent.
    fn gain(&mut self, a: Part, b: Part, log_n: u32, apart: bool, inside: &Tails) {
        let half = f64::from(log_n) / 2.0;
        // A g is less than its norm beside what is no such product.
        let norm = |x: Part, y: Part| match (x.factors, y.factors) {
            (Some(Factors { errors: 1, polynomials: 0, size }), None | Some(Factors { polynomials: 1, .. }))
                if apart =>
            {
                x.norm.min(size + inside.weighted[0] - half)
            }
            _ => x.norm,
        };
        let by_norms = norm(a, b) + norm(b, a) + 2.0 * half;
        if let (true, Some(x), Some(y)) = (apart, a.factors, b.factors)
            && x.errors + y.errors <= DEGREES
        {
            let last = x.errors + y.errors - 1;
            let polynomials = x.polynomials + y.polynomials;
            if polynomials == 0 {
                self.products[last - 1] = log2_add(self.products[last - 1], x.size + y.size + half);
                return;
            }
            let size = x.size + y.size + polynomials as f64 * half;
            if size + inside.weighted[last] <= by_norms {
                self.weighted[last] = log2_add(self.weighted[last], size);
                return;
            }
        }
        self.remainder = log2_add(self.remainder, by_norms);
    }
}
