//! Certificates under keys of which only norms are known: sums of shares that their makers proved to be short.
//!
//! The other certificates rest on a secret that this library drew and looked at. A share of somebody else's may be anything
//! within the bound that was proven, all of it on one frequency. What stays: rounding errors and digits are uniform and
//! independent of the keys, since every ciphertext has a part that an honest party encrypted after all keys were fixed.
//! A coefficient of tau s, given s, is then sub-Gaussian with |s|_2 / sqrt(12), for any s. Every term is taken at its largest and
//! is remainder from then on.

use synchromesh_ring::rns::Overflow;

use super::{DigitSize, LOG2_FAILURE_INSIDE, Noise, log2_add, tail};

/// log2 of bounds on the 2-norms of a key: of its secret s, and of the error e of its public key b = -a s + t e.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyBound {
    /// log2 of |e|.
    pub error: f64,
    /// log2 of |s|.
    pub secret: f64,
}

impl KeyBound {
    /// log2 of the 2-norm of the error of any row of a switch key that was made in shares: of a relinearisation key, which is
    /// f s + e v + e_j + e'_j s with v within the bounds of s, and f, e_j, e'_j within those of e.
    #[must_use]
    pub fn switch_key_error(&self, log_n: u32) -> f64 {
        let product = f64::from(log_n) / 2.0 + self.error + self.secret;
        log2_add(product + 3f64.log2(), self.error)
    }

    /// log2 of a bound on |s|_1.
    pub(crate) fn log2_sum(&self, log_n: u32) -> f64 {
        self.secret + f64::from(log_n) / 2.0
    }

    /// e u + e_0 + e_1 s for a ternary u and errors of standard deviation `sigma`, all fresh.
    pub(crate) fn public(&self, n: usize, sigma: f64) -> Noise {
        let size = log2_add(self.error, (2.0 * sigma).log2() + log2_add(self.secret, 0.0));
        Noise::at_most(size + tail(n.trailing_zeros(), LOG2_FAILURE_INSIDE).log2())
    }

    /// The coefficients of e v + e_1 s for v and e_1 that are sums as s and e are, with the same bounds on their 2-norms.
    pub(crate) fn sealed(&self) -> Noise {
        Noise::at_most(self.error + self.secret + 1.0)
    }

    /// tau_0 + tau_1 s (+ tau_2 s^2) for uniform tau.
    pub(crate) fn rounding(&self, n: usize, components: usize) -> Noise {
        let log_n = n.trailing_zeros();
        // |s^2|_2 is at most |s|_1 |s|_2.
        let power = |i: usize| match i {
            0 => 0.0,
            i => i as f64 * self.secret + (i - 1) as f64 * f64::from(log_n) / 2.0,
        };
        let deviation = (0..components).map(|i| 2.0 * power(i)).fold(f64::NEG_INFINITY, log2_add);
        Noise::at_most((deviation - 12f64.log2()) / 2.0 + tail(log_n, LOG2_FAILURE_INSIDE).log2())
    }

    /// sum_j d_j e_j / P for uniform digits d_j.
    pub(crate) fn gadget(&self, n: usize, digits: &[DigitSize], log2_p: f64, overflow: Overflow) -> Noise {
        let log_n = n.trailing_zeros();
        let (error, half) = (self.switch_key_error(log_n), f64::from(log_n) / 2.0);
        let one = |digit: &DigitSize| {
            let norm = error + (digit.errors as f64).log2() + digit.log2 - log2_p;
            let uniform = norm - 12f64.log2() / 2.0 + tail(log_n, LOG2_FAILURE_INSIDE).log2();
            let beyond = match overflow {
                Overflow::Round | Overflow::HpsRound | Overflow::Behz => f64::NEG_INFINITY,
                Overflow::Floor | Overflow::HpsFloor => norm + half,
                Overflow::Fast => norm + half + (digit.primes as f64 + 1.0).log2(),
            };
            log2_add(uniform, beyond)
        };
        Noise::at_most(digits.iter().map(one).fold(f64::NEG_INFINITY, log2_add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Norm, gadget, public, rounding};

    /// A key that a dealer drew satisfies the bounds of one made in shares: certificates under those are never smaller.
    #[test]
    fn a_bound_on_norms_costs_noise_and_never_gains_any() {
        let digits = [DigitSize { log2: 100.0, primes: 2, errors: 1 }, DigitSize { log2: 49.0, primes: 1, errors: 1 }];
        for log_n in [10, 15] {
            let n = 1usize << log_n;
            let half = f64::from(log_n) / 2.0;
            let bound = KeyBound { error: 21f64.log2() + half, secret: half };
            for components in [2, 3] {
                let [ours, drawn] = [bound.rounding(n, components), rounding(n, components, Norm::Coefficients)]
                    .map(|x| x.bound(log_n, 128));
                assert!(ours > drawn - 0.1 && ours < drawn + 8.0 * components as f64, "{ours} {drawn}");
            }
            let [ours, drawn] = [bound.public(n, 3.24), public(n, 3.24)].map(|x| x.bound(log_n, 128));
            assert!(ours > drawn - 0.1, "{ours} {drawn}");
            for overflow in [Overflow::Round, Overflow::Floor, Overflow::Fast, Overflow::Behz] {
                let [ours, drawn] =
                    [bound.gadget(n, &digits, 101.0, overflow), gadget(n, 3.24, &digits, 101.0, overflow)];
                assert!(ours.bound(log_n, 128) > drawn.bound(log_n, 128), "{overflow:?}");
                assert!(ours.certificate.sigma == f64::NEG_INFINITY, "all of it is remainder");
            }
            let wider = KeyBound { error: bound.error + 10.0, secret: bound.secret + 11.0 };
            assert!(
                (wider.rounding(n, 2).certificate.remainder - bound.rounding(n, 2).certificate.remainder - 11.0).abs()
                    < 0.01
            );
            assert!(
                (wider.rounding(n, 3).certificate.remainder - bound.rounding(n, 3).certificate.remainder - 22.0).abs()
                    < 0.01
            );
            let [wide, narrow] =
                [wider, bound].map(|x| x.gadget(n, &digits, 101.0, Overflow::Round).certificate.remainder);
            assert!((wide - narrow - 21.0).abs() < 0.01);
        }
    }
}
