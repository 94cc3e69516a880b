//! Tails of products of independent errors: what a coefficient of a_1 ... a_d, and its 2-norm, stay below.
//!
//! a_i = tau_i h_i, where tau_i has independent coefficients that are strictly sub-Gaussian (their moments are at most
//! those of a Gaussian of the same variance, as for a uniform, a centred binomial and a ternary one), drawn
//! independently for each i, and h_i is 1 or the secret, of which [`crate::spectrum`] has seen that it is as even as a
//! random one. In tau_i a coefficient f of the product is linear given the others, so that E f^2p grows if one tau_i
//! after the other is replaced by a Gaussian. For those, the values at the N/2 pairs of conjugate roots are independent
//! complex Gaussians; with X exponential, W = prod |h_i|^2 relative to its normalisation and n = N/2,
//! ```text
//! E f^2p <= (2p - 1)!! E q^p, q = (1/n) sum W X_1 .. X_(d-1),   E |f|_2^2p / N^p <= E q^p with X_1 .. X_d,
//! ```
//! for errors of standard deviation 1 and the product divided by N^((d-1)/2). With c_k = (k!)^(number of X) / k! and
//! m_k >= mean of W^k, E q^p / p! is at most the coefficient of z^p in exp(n sum_k c_k m_k (z/n)^k), as log(1+x) <= x.
//! The best p gives a tail by Markov's inequality. Norms ||f||_2p obey the triangle inequality, so that sums of such
//! products have at most the sum of their bounds, whatever the terms have in common.
//!
//! Times a polynomial p with |p|_2 = 1 that does not depend on the tau_i, a coefficient is at most |f|_2, and the norms of
//! such bounds add in the same way. It is linear in each tau_i, too: with Gaussians its variance given all but one of them
//! is the mean of |p(zeta)|^2 W X_1 .. X_(d-1) over the roots, W at most the d-th power of the largest |h|^2, so that
//! ```text
//! E |p f|^2p <= (2p - 1)!! max W^p (p!)^(d-1).
//! ```
//! That is nearly attained by a p on the frequency at which the key is largest. The smaller of the two bounds holds.

use std::sync::OnceLock;

use crate::noise::log2_add;
use crate::spectrum;

/// Largest number of factors of a product.
pub const DEGREES: usize = 6;

/// Moments that are tried.
const MOMENTS: usize = 128;

/// Failure exponents with a table of their own: those of decryptions, of one to sixteen parts, and of bounds that enter
/// others.
const EXPONENTS: [u32; 16] = [40, 41, 42, 43, 44, 64, 65, 66, 67, 68, 128, 129, 130, 131, 132, 148];

/// How many standard deviations a sub-Gaussian value stays within, for 2^log_n values, except with probability
/// 2^-log2_failure.
#[must_use]
pub fn tail(log_n: u32, log2_failure: u32) -> f64 {
    (2.0 * std::f64::consts::LN_2 * f64::from(log_n + log2_failure + 1)).sqrt()
}

/// How large |g(zeta)| is at the most over all roots of X^N + 1, in units of 2^sigma sqrt(N), except with probability
/// 2^-log2_failure.
///
/// Given the keys, the part of g(zeta) in any direction has at most the moments of a Gaussian of variance
/// 2^2sigma V(zeta) N/2, where V is a mean of the squares that the secret and the errors of keys, moved by automorphisms,
/// have at the roots. The mean over all directions is E |g(zeta)|^2p <= p! (2^2sigma V(zeta) N)^p. What is known of the
/// moments of V bounds the sum over the N/2 pairs of roots, and the best p gives a tail by Markov's inequality.
#[must_use]
pub fn root_tail(log_n: u32, log2_failure: u32) -> f64 {
    tails(log_n, log2_failure).root.exp2()
}
/// log2 of the multiples of the standard deviation, for each number of factors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tails {
    /// No coefficient of N exceeds this.
    pub(super) largest: [f64; DEGREES],
    /// The 2-norm divided by sqrt(N) does not exceed this.
    pub(super) norm: [f64; DEGREES],
    /// No coefficient of the product with a p of |p|_2 = 1 exceeds this.
    pub(super) weighted: [f64; DEGREES],
    /// No value of a single factor at a root exceeds this times sqrt(N), see [`root_tail`].
    pub(super) root: f64,
}

/// The tails at failure probability 2^-`log2_failure`, for all N = 2^`log_n` coefficients together.
pub(super) fn tails(log_n: u32, log2_failure: u32) -> Tails {
    static TABLE: [[OnceLock<Tails>; EXPONENTS.len()]; 19] =
        [const { [const { OnceLock::new() }; EXPONENTS.len()] }; 19];
    let column = EXPONENTS.iter().position(|&k| k == log2_failure);
    match (TABLE.get(log_n as usize), column) {
        (Some(row), Some(column)) => *row[column].get_or_init(|| Tails::new(log_n, log2_failure)),
        _ => Tails::new(log_n, log2_failure),
    }
}

impl Tails {
    fn new(log_n: u32, log2_failure: u32) -> Self {
        let factorials = log2_factorials(2 * MOMENTS);
        let (all, one) = (f64::from(log_n + log2_failure), f64::from(log2_failure));
        // (2p - 1)!! = (2p)! / (2^p p!).
        let double = |p: usize| factorials[2 * p] - p as f64 - factorials[p];
        let best = |of: &dyn Fn(usize) -> f64| (1..=MOMENTS).map(of).fold(f64::INFINITY, f64::min);
        let at_roots = |p: usize| (all - 1.0 + factorials[p] + spectrum::log2_moment(log_n, p)) / (2.0 * p as f64);
        let [largest, norm, weighted] = [[0.0; DEGREES]; 3];
        let mut tails = Self { largest, norm, weighted, root: best(&at_roots) };
        for d in 1..=DEGREES {
            let given = moments(log_n, d, d - 1, &factorials);
            tails.largest[d - 1] = best(&|p| (all + double(p) + given[p]) / (2.0 * p as f64));
            let whole = moments(log_n, d, d, &factorials);
            tails.norm[d - 1] = best(&|p| (one + whole[p]) / (2.0 * p as f64));
            let root = |p: usize| d as f64 * p as f64 * spectrum::log2_peak(log_n) + (d as f64 - 1.0) * factorials[p];
            let at_root = best(&|p| (all + double(p) + root(p)) / (2.0 * p as f64));
            tails.weighted[d - 1] = at_root.min(tails.norm[d - 1] + f64::from(log_n) / 2.0);
        }
        // A single factor is sub-Gaussian, which is a little sharper than its moments.
        tails.largest[0] = tail(log_n, log2_failure).log2();
        tails.weighted[0] = tails.largest[0] + spectrum::log2_peak(log_n) / 2.0;
        tails
    }
}

/// log2 k! for k up to `most`.
fn log2_factorials(most: usize) -> Vec<f64> {
    let mut out = vec![0.0; most + 1];
    for k in 1..=most {
        out[k] = out[k - 1] + (k as f64).log2();
    }
    out
}

/// log2 of bounds on E q^p for p up to [`MOMENTS`], with `factors` h's and `exponentials` X's.
fn moments(log_n: u32, factors: usize, exponentials: usize, factorials: &[f64]) -> Vec<f64> {
    let log2_half = f64::from(log_n) - 1.0;
    let term = |k: usize| {
        let c = factorials[k] * (exponentials as f64 - 1.0);
        c + spectrum::log2_moment(log_n, factors * k) - (k as f64 - 1.0) * log2_half
    };
    let terms: Vec<f64> = (1..=MOMENTS).map(term).collect();
    // A = exp(B): p A_p = sum k B_k A_(p-k).
    let mut series = vec![0.0];
    for p in 1..=MOMENTS {
        let sum =
            (1..=p).fold(f64::NEG_INFINITY, |sum, k| log2_add(sum, (k as f64).log2() + terms[k - 1] + series[p - k]));
        series.push(sum - (p as f64).log2());
    }
    series.iter().zip(factorials).map(|(a, f)| a + f).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_grow_with_the_degree_and_fall_towards_the_typical_size() {
        for log_n in [10, 13, 16] {
            for exponent in [40, 128] {
                let t = tails(log_n, exponent);
                for d in 1..DEGREES {
                    assert!(t.largest[d] > t.largest[d - 1] && t.norm[d] >= t.norm[d - 1], "{t:?}");
                }
                assert!(t.norm[0] < 1.0 && t.largest[0] < 4.0, "{t:?}");
            }
        }
        // Times a polynomial, by norms where N is small and by the largest root where it is large.
        let by_norm = |log_n: u32, t: Tails| t.norm[1] + f64::from(log_n) / 2.0;
        let [small, large] = [12, 15].map(|log_n| (log_n, tails(log_n, 40)));
        assert!(
            small.1.weighted[1] == by_norm(small.0, small.1) && large.1.weighted[1] < by_norm(large.0, large.1) - 0.1
        );
        // At N = 2^15 two factors have almost the tail of one with the moment's root more.
        let t = tails(15, 40);
        assert!(t.largest[1] - t.largest[0] < 1.1, "{t:?}");
        assert!(tails(15, 41).largest[1] > t.largest[1]);
    }
}
