//! The discrete Gaussian on Z with sigma = 3.19 by a cumulative table scanned whole:
//! |x| = #{k : u >= T_k}, T_k = round(2^127 * Pr[|X| <= k]), u uniform on 127 bits, sign uniform.
//!
//! The table is computed once, from the exact rational 1/(2 sigma^2) = 5000/101761, in fixed point with 256
//! fraction bits. Each T_k is off by at most half a unit, so the masses of the magnitudes are off by at most one unit
//! each: over the [`GAUSSIAN_BOUND`] + 1 magnitudes the statistical distance is below 2^-121, the cut tail included.

use num_bigint::BigUint;
use num_traits::{One, ToPrimitive};
use std::sync::OnceLock;

/// Largest absolute value the sampler returns. Beyond it lies a mass below 2^-127.
pub const GAUSSIAN_BOUND: u64 = 41;

/// Fraction bits of the fixed-point computation.
pub(super) const FRACTION: u32 = 256;

/// The thresholds T_0 .. T_{bound - 1}; those above equal 2^127 and are never reached.
pub(super) struct GaussianTable([u128; GAUSSIAN_BOUND as usize]);

impl GaussianTable {
    /// The table, computed on first use (it holds no secret).
    pub(super) fn shared() -> &'static Self {
        static TABLE: OnceLock<GaussianTable> = OnceLock::new();
        TABLE.get_or_init(Self::compute)
    }

    /// The value selected by 128 random bits: the low bit of `low` is the sign, the rest is compared with every
    /// threshold. Takes the same steps for every input.
    #[inline]
    pub(super) fn value(&self, low: u64, high: u64) -> i64 {
        let u = u128::from(high) << 63 | u128::from(low >> 1);
        // Both sides are below 2^127, so the top bit of the difference is the borrow.
        let below: u64 = self.0.iter().map(|t| (u.wrapping_sub(*t) >> 127) as u64).sum();
        let magnitude = (GAUSSIAN_BOUND - below) as i64;
        let sign = -((low & 1) as i64);
        (magnitude ^ sign) - sign
    }

    fn compute() -> Self {
        let masses = masses();
        let total: BigUint = masses.iter().sum();
        let mut cumulative = BigUint::ZERO;
        let mut table = [0u128; GAUSSIAN_BOUND as usize];
        for (threshold, mass) in table.iter_mut().zip(&masses) {
            cumulative += mass;
            let rounded = ((&cumulative << 128u32) / &total + 1u32) >> 1u32;
            *threshold = rounded.to_u128().unwrap_or(u128::MAX >> 1);
        }
        Self(table)
    }
}

/// Unnormalised masses of the magnitudes 0, 1, 2, ..: 1, then 2 exp(-k^2 / (2 sigma^2)), down to 2^-256.
fn masses() -> Vec<BigUint> {
    let one = BigUint::one() << FRACTION;
    let g = exp_minus(&5000u32.into(), &101_761u32.into());
    let g2 = (&g * &g) >> FRACTION;
    let mut masses = vec![one];
    // exp(-(k+1)^2 c) = exp(-k^2 c) * g^(2k+1), with g = exp(-c).
    let (mut density, mut step) = (g.clone(), g);
    while density > BigUint::ZERO {
        masses.push(&density << 1u32);
        step = (&step * &g2) >> FRACTION;
        density = (&density * &step) >> FRACTION;
    }
    masses
}

/// exp(-num/den) * 2^256 for 0 <= num/den < 4, by its alternating series; error below 1024 units.
pub(super) fn exp_minus(num: &BigUint, den: &BigUint) -> BigUint {
    let mut term = BigUint::one() << FRACTION;
    let (mut plus, mut minus) = (term.clone(), BigUint::ZERO);
    let mut i = 1u32;
    while term > BigUint::ZERO {
        term = term * num / (den * i);
        if i.is_multiple_of(2) {
            plus += &term;
        } else {
            minus += &term;
        }
        i += 1;
    }
    plus - minus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_rise_and_end_at_the_bound() {
        let table = GaussianTable::shared();
        assert!(table.0.windows(2).all(|w| w[0] < w[1]));
        assert!(table.0[GAUSSIAN_BOUND as usize - 1] < 1 << 127);
        assert_eq!(table.value(u64::MAX, u64::MAX), -(GAUSSIAN_BOUND as i64));
        assert_eq!(table.value(u64::MAX - 1, u64::MAX), GAUSSIAN_BOUND as i64);
        assert_eq!((table.value(0, 0), table.value(1, 0)), (0, 0));
        let masses = masses();
        let total: BigUint = masses.iter().sum();
        let tail: BigUint = masses[GAUSSIAN_BOUND as usize + 1..].iter().sum();
        assert!(tail << 127u32 < total, "the mass beyond the bound must be below 2^-127");
    }

    #[test]
    fn thresholds_match_double_precision() {
        let density = |k: i32| (-f64::from(k * k) / (2.0 * 3.19 * 3.19)).exp();
        let total: f64 = (-200..=200).map(density).sum();
        let mut cumulative = 0.0;
        for (k, t) in GaussianTable::shared().0.iter().enumerate() {
            let k = k as i32;
            cumulative += if k == 0 { density(0) } else { 2.0 * density(k) };
            let found = *t as f64 / 2f64.powi(127);
            assert!((found - cumulative / total).abs() < 1e-14, "threshold {k}: {found}");
        }
    }
}
