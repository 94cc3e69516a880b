//! Errors under public linear maps of the values at the roots, in the canonical norm.
//!
//! A map whose rows have sums of absolute values of at most its gain makes each value that much larger at the most. Where
//! values are as good as independent that is far too much: a transform of n values has gain n and makes them sqrt(n)
//! larger. So a certificate knows g at all roots together as well: with w of |w|_2 = 1 over the pairs of conjugate roots,
//! the part of sum_j w_j g(zeta_j) in any direction is sub-Gaussian with a parameter of 2^`joint` sqrt(N/2).
//!
//! For tau uniform on its coefficients that holds with its standard deviation, since zeta_j / zeta_k is an N-th root of
//! unity other than 1 and sum_i |sum_j w_j zeta_j^i|^2 = N; for tau s the weights become w_j s(zeta_j), of a norm that is at
//! most the largest |s(zeta)|, whatever was likely for one root. A map A makes w into A* w, so that the parameter grows by
//! the norm of A; for one value of A g, w is a row of A, whose length may be less: a sum of n values has norm n where it
//! stands in n places, and rows of length sqrt(n). What is bounded only, r, has a norm as well, and no value of A r is
//! larger than the longest row times |r|_2.

use super::Certificate;

/// log2 of the square root of the largest |s(zeta)|^2 over its mean, at most 16 up to N = 2^18, and of what the errors of a
/// public key add to that.
pub(super) const JOINT: f64 = 2.5;

/// How large a public linear map of the values at the roots makes them, as log2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearBound {
    /// The largest sum of absolute values of a row.
    pub gain: f64,
    /// The largest |A w|_2 for |w|_2 = 1.
    pub norm: f64,
    /// The largest |w|_2 of a row w; at most the norm.
    pub row: f64,
}

impl LinearBound {
    /// The sum of this map and any one whose rows have sums of absolute values of at most 2^`log2`, and its columns too.
    #[must_use]
    pub fn plus(self, log2: f64) -> Self {
        let [gain, norm, row] = [self.gain, self.norm, self.row].map(|x| super::log2_add(x, log2));
        Self { gain, norm, row }
    }

    /// The map times a public number, given as log2.
    #[must_use]
    pub fn times(self, log2_factor: f64) -> Self {
        let [gain, norm, row] = [self.gain, self.norm, self.row].map(|x| x + log2_factor);
        Self { gain, norm, row }
    }
}

impl Certificate {
    /// What becomes of the error under a linear map of its values at the roots; in the canonical norm.
    #[must_use]
    pub fn through(self, map: &LinearBound, log_n: u32) -> Self {
        if self.is_unknown() {
            return Self::UNKNOWN;
        }
        let further = self.weighted.iter().chain(&self.products).any(|&x| x > f64::NEG_INFINITY);
        let [joint, row] = [map.norm, map.row].map(|x| if further { f64::INFINITY } else { self.joint + x });
        let scaled = self.times(map.gain);
        let remainder = scaled.remainder.min(self.norm + map.row + f64::from(log_n - 1) / 2.0);
        let norm = (self.norm + map.norm).min(remainder);
        Self { sigma: scaled.sigma.min(row), joint, remainder, norm, ..scaled }
    }

    /// The same error, cut into the same g and r, of which `other` is known too: at one root whichever is smaller, at
    /// several roots together what `other` has.
    #[must_use]
    pub(crate) fn sharpened(self, other: Self) -> Self {
        let [sigma, remainder] = [self.sigma.min(other.sigma), self.remainder.min(other.remainder)];
        Self { sigma, remainder, joint: other.joint, norm: other.norm.min(remainder), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transform_adds_its_norm_and_a_spread_value_its_gain() {
        let fresh = Certificate::gaussian(4.0).plus(Certificate::at_most(1.0));
        let transform = LinearBound { gain: 10.0, norm: 5.0, row: 5.0 };
        let there = fresh.through(&transform, 11);
        assert_eq!((there.sigma, there.remainder, there.norm), (4.0 + JOINT + 5.0, 11.0, 6.0));
        // And back: what it was, but that one root is no longer known to be like the others.
        let back = there.through(&LinearBound { gain: 0.0, norm: -5.0, row: -5.0 }, 11);
        assert_eq!((back.sigma, back.remainder, back.norm), (4.0 + JOINT, 6.0, 1.0));
        // One value in all places.
        let spread = fresh.through(&LinearBound { gain: 0.0, norm: 5.0, row: 0.0 }, 11);
        assert_eq!((spread.sigma, spread.remainder), (4.0, 1.0));
        // A sum of 2^8 values in as many places: each is as large as independent values make it, all together are not.
        let sum = fresh.through(&LinearBound { gain: 8.0, norm: 8.0, row: 4.0 }, 11);
        assert_eq!((sum.sigma, sum.joint, sum.remainder), (4.0 + JOINT + 4.0, 4.0 + JOINT + 8.0, 9.0));
        assert!(Certificate::UNKNOWN.through(&transform, 11).is_unknown());
        // Read from a file: of values at several roots nothing is known.
        let read = Certificate::claimed(4.0, 1.0).through(&transform, 11);
        assert_eq!((read.sigma, read.remainder), (14.0, 11.0));
    }
}
