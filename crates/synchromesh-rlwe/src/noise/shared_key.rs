//! Certificates under a key that is a sum: s = s_1 + .. + s_n, each s_i drawn by one of n parties as this library draws
//! secrets, and nobody knows s.
//!
//! What certificates use of a secret are the moments and the largest of its values |s(zeta)|^2 at the roots
//! ([`crate::spectrum`]). By the convexity of powers those of s / n keep every bound that all s_i keep, whatever the s_i have
//! in common. So s is n times as large as a secret that was drawn, in every bound, and so is each error that is a sum of n: of
//! the public key, and of keys for rotations. That is sqrt(n) more than is likely, and holds for n that nobody can look at.
//!
//! The error of a row of the relinearisation key is f s + e v + e_j + e'_j s, as for [`super::KeyBound`], with products of
//! two such sums. Where x and y are moduli squared over their units, of which only the moments m_j <= `MOMENTS` and the
//! largest value p are known, x y has by Cauchy and Schwarz moments of at most sqrt(m_2j m_2j), and the largest p^2. These
//! are those of an even error over the unit p.

use synchromesh_ring::rns::Overflow;

use super::{DigitSize, Noise, Norm, gadget, log2_add, public, rounding};
use crate::spectrum::{self, POWER};

/// A key that the sum of the shares of so many parties is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedKey {
    /// How many.
    parties: u32,
}

impl SharedKey {
    /// A key of `parties` parties, at least one.
    #[must_use]
    pub const fn of(parties: usize) -> Self {
        let parties = if parties == 0 { 1 } else { parties };
        Self { parties: parties as u32 }
    }

    /// How many parties.
    #[must_use]
    pub const fn parties(&self) -> usize {
        self.parties as usize
    }

    /// log2 of how much larger than one that was drawn the secret may be.
    #[must_use]
    pub fn log2_size(&self) -> f64 {
        f64::from(self.parties).log2()
    }

    /// tau_0 + tau_1 s (+ tau_2 s^2) for uniform tau.
    pub(crate) fn rounding(&self, n: usize, components: usize, norm: Norm) -> Noise {
        Self::certified(rounding(n, components, norm).times(components.saturating_sub(1) as f64 * self.log2_size()))
    }

    /// e u + e_0 + e_1 s.
    pub(crate) fn public(&self, n: usize, sigma: f64) -> Noise {
        Self::certified(public(n, sigma).times(self.log2_size()))
    }

    /// sum_j d_j e_j / P for the errors of a key for rotations.
    pub(crate) fn rotation(&self, n: usize, sigma: f64, digits: &[DigitSize], p: f64, overflow: Overflow) -> Noise {
        Self::certified(gadget(n, sigma, digits, p, overflow).times(self.log2_size()))
    }

    /// The same for those of a relinearisation key. Rows that share a digit share e and s: their errors add up.
    pub(crate) fn relinearisation(
        &self,
        n: usize,
        sigma: f64,
        digits: &[DigitSize],
        p: f64,
        overflow: Overflow,
    ) -> Noise {
        let largest = digits.iter().map(|digit| digit.errors).max().unwrap_or(1) as f64;
        let unit = POWER * n as f64 * spectrum::log2_peak(n.trailing_zeros()).exp2();
        let products = (3.0 * (unit * largest).sqrt()).log2() + 2.0 * self.log2_size();
        Self::certified(gadget(n, sigma, digits, p, overflow).times(log2_add(products, self.log2_size())))
    }

    /// The average case has none of it: nobody has measured such keys.
    fn certified(noise: Noise) -> Noise {
        noise.with_estimates(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moments that the text says, for the worst of both factors.
    #[test]
    fn products_of_even_values_are_even_over_the_largest_one() {
        for log_n in 10..=17 {
            let peak = spectrum::log2_peak(log_n);
            assert!(peak > 0.0);
            for j in 1..=40 {
                let product = spectrum::log2_moment(log_n, 2 * j);
                let even = spectrum::log2_moment(log_n, j) + j as f64 * peak;
                assert!(product <= even + 1e-9, "2^{log_n}, moment {j}: {product} {even}");
            }
        }
    }

    #[test]
    fn a_sum_of_one_is_a_key_that_was_drawn_but_for_its_relinearisation_key() {
        let digits = [DigitSize { log2: 49.0, primes: 1, errors: 1 }, DigitSize { log2: 98.0, primes: 2, errors: 2 }];
        let [one, three] = [1, 3].map(SharedKey::of);
        let bound = |noise: Noise| noise.bound(13, 128);
        for norm in [Norm::Coefficients, Norm::Canonical] {
            for components in [2, 3] {
                let drawn = bound(rounding(1 << 13, components, norm));
                assert!((bound(one.rounding(1 << 13, components, norm)) - drawn).abs() < 1e-9);
                let more = (components - 1) as f64 * 3f64.log2();
                assert!((bound(three.rounding(1 << 13, components, norm)) - drawn - more).abs() < 1e-9);
            }
        }
        let drawn = bound(gadget(1 << 13, 3.24, &digits, 100.0, Overflow::Round));
        let rotation = |key: SharedKey| bound(key.rotation(1 << 13, 3.24, &digits, 100.0, Overflow::Round));
        let square = |key: SharedKey| bound(key.relinearisation(1 << 13, 3.24, &digits, 100.0, Overflow::Round));
        assert!((rotation(one) - drawn).abs() < 1e-9 && (rotation(three) - drawn - 3f64.log2()).abs() < 1e-9);
        assert!((8.0..12.0).contains(&(square(one) - drawn)), "{}", square(one) - drawn);
        assert!((square(three) - square(one) - 2.0 * 3f64.log2()).abs() < 0.01);
        assert!(one.public(1 << 13, 3.24).estimates.is_none());
    }
}
