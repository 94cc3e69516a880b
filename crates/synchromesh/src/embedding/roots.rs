//! Roots of unity exp(i pi k / N), computed in 128-bit fixed point and rounded once to doubles: no libm, so the same
//! bits on every platform.

use super::Complex64;

/// Fraction bits of [`Fixed`].
pub(super) const FRACTION_BITS: u32 = 126;

const ONE: i128 = 1 << FRACTION_BITS;

/// floor(pi 2^124), from the hexadecimal expansion 3.243f6a8885a308d313198a2e0370734...
const PI_124: i128 = 0x3243_f6a8_885a_308d_3131_98a2_e037_0734;

/// A complex number of modulus at most 1, both parts in units of 2^-126.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) re: i128,
    pub(super) im: i128,
}

impl Fixed {
    pub(super) const ONE: Self = Self { re: ONE, im: 0 };

    /// The product, each part within 2^-125.
    fn mul(self, other: Self) -> Self {
        Self {
            re: product(self.re, other.re) - product(self.im, other.im),
            im: product(self.re, other.im) + product(self.im, other.re),
        }
    }

    /// Both parts as doubles, rounded to the nearest, ties to even.
    pub(super) fn to_f64(self) -> (f64, f64) {
        let unit = f64::from_bits(u64::from(1023 - FRACTION_BITS) << 52);
        (self.re as f64 * unit, self.im as f64 * unit)
    }
}

/// a b / 2^126, rounded towards zero, for |a|, |b| <= 2^126; no branch on either.
pub(super) fn product(a: i128, b: i128) -> i128 {
    let (x, y) = (a.unsigned_abs(), b.unsigned_abs());
    let (x1, x0) = (x >> 64, x & u128::from(u64::MAX));
    let (y1, y0) = (y >> 64, y & u128::from(u64::MAX));
    let (cross1, cross2) = (x1 * y0, x0 * y1);
    let middle = ((x0 * y0) >> 64) + (cross1 & u128::from(u64::MAX)) + (cross2 & u128::from(u64::MAX));
    let high = x1 * y1 + (cross1 >> 64) + (cross2 >> 64) + (middle >> 64);
    let low_top = middle & u128::from(u64::MAX);
    // The product is high 2^128 + low_top 2^64 + ..., and high < 2^125.
    let magnitude = ((high << 2) | (low_top >> 62)) as i128;
    let sign = (a ^ b) >> 127;
    (magnitude ^ sign) - sign
}

/// exp(i pi / 2^j), each part within 2^-119.
fn half_turn_root(j: u32) -> Fixed {
    match j {
        0 => return Fixed { re: -ONE, im: 0 },
        1 => return Fixed { re: 0, im: ONE },
        _ => {}
    }
    // Taylor's series at an angle of at most pi/4 < 1, term k = term k-1 * angle / k.
    let angle = PI_124 >> (j - 2);
    let mut root = Fixed { re: 0, im: 0 };
    let mut term = ONE;
    let mut k: i128 = 0;
    while term != 0 {
        match k % 4 {
            0 => root.re += term,
            1 => root.im += term,
            2 => root.re -= term,
            _ => root.im -= term,
        }
        k += 1;
        term = product(term, angle) / k;
    }
    root
}

/// exp(i pi k / 2^log_half_turn) for the exponents k < 2^(log_half_turn + 1) asked for: a product of one root a bit.
pub(crate) struct RootTable {
    /// Entry b is exp(i pi 2^b / 2^log_half_turn).
    powers: Vec<Fixed>,
}

impl RootTable {
    pub(crate) fn new(log_half_turn: u32) -> Self {
        Self { powers: (0..=log_half_turn).map(|b| half_turn_root(log_half_turn - b)).collect() }
    }

    /// exp(i pi k / 2^log_half_turn), each part within 2^-114. `k` counts mod 2^(log_half_turn + 1).
    pub(super) fn root(&self, k: usize) -> Fixed {
        self.powers
            .iter()
            .enumerate()
            .filter(|(b, _)| (k >> b) & 1 == 1)
            .fold(Fixed::ONE, |root, (_, &power)| root.mul(power))
    }

    /// The doubles nearest to exp(i pi k / 2^log_half_turn).
    pub(crate) fn nearest(&self, k: usize) -> Complex64 {
        let (re, im) = self.root(k).to_f64();
        Complex64 { re, im }
    }

    /// The roots of all exponents up to 2^log_half_turn, as [`Self::root`] has them, with one product each.
    pub(super) fn first_half(&self) -> Vec<Fixed> {
        let mut roots = vec![Fixed::ONE];
        for power in &self.powers {
            for k in 0..roots.len() {
                roots.push(roots[k].mul(*power));
            }
        }
        roots.truncate(roots.len() / 2 + 1);
        roots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_have_modulus_one_and_compose() {
        for log in [1, 2, 5, 17] {
            let table = RootTable::new(log);
            let turn = 2usize << log;
            let all = table.first_half();
            assert_eq!(all.len(), turn / 2 + 1);
            assert_eq!(
                [turn / 8, turn / 3, turn / 2].map(|k| all[k]),
                [turn / 8, turn / 3, turn / 2].map(|k| table.root(k))
            );
            for k in [0, 1, 2, 3, turn / 8, turn / 4, turn / 3, turn / 2, turn - 1] {
                let root = table.root(k);
                let norm = product(root.re, root.re) + product(root.im, root.im);
                assert!((norm - ONE).unsigned_abs() < 1 << 13, "modulus of root {k} of {turn}: {norm:x}");
                let square = root.mul(root);
                let twice = table.root(2 * k % turn);
                assert!((square.re - twice.re).unsigned_abs() < 1 << 13, "square of root {k} of {turn}");
                assert!((square.im - twice.im).unsigned_abs() < 1 << 13, "square of root {k} of {turn}");
            }
        }
    }

    #[test]
    fn doubles_are_the_nearest_to_known_values() {
        let table = RootTable::new(2);
        let (re, im) = table.root(1).to_f64();
        assert_eq!((re, im), (std::f64::consts::FRAC_1_SQRT_2, std::f64::consts::FRAC_1_SQRT_2));
        assert_eq!(table.root(2).to_f64(), (0.0, 1.0));
        assert_eq!(table.root(4).to_f64(), (-1.0, 0.0));
        // sin(pi/6) = 1/2 has no dyadic angle; cos(pi/8) is 0.92387953251128675613...
        assert_eq!(RootTable::new(3).root(1).to_f64().0, 0.923_879_532_511_286_7);
    }
}
