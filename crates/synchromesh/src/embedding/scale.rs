//! The factor between values and integer coefficients, m 2^e, and the rounding of scaled doubles to integers.

use num_bigint::BigUint;

use super::error::EmbeddingError;

/// Largest |e| of a scale.
const EXPONENT_LIMIT: i32 = 400;

/// Integer coefficients stay below 2^120 in absolute value.
pub(super) const LOG2_COEFFICIENT_LIMIT: u32 = 120;

/// A scale m 2^e with 1 <= m < 2 and |e| <= 400: the double nearest to a scheme's exact scale, and what that lacks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    mantissa: f64,
    /// What the exact mantissa has more, at most 2^-53 in absolute value, itself within 2^-105.
    rest: f64,
    exponent: i32,
}

impl Scale {
    /// The scale m 2^e.
    ///
    /// # Errors
    /// [`ScaleOutOfRange`](EmbeddingError::ScaleOutOfRange) unless `1 <= m < 2` and `|e| <= 400`.
    pub fn new(mantissa: f64, exponent: i32) -> Result<Self, EmbeddingError> {
        if (1.0..2.0).contains(&mantissa) && exponent.unsigned_abs() <= EXPONENT_LIMIT.unsigned_abs() {
            Ok(Self { mantissa, rest: 0.0, exponent })
        } else {
            Err(Self::refusal(mantissa, i64::from(exponent)))
        }
    }

    /// The scale 2^e; errors as [`new`](Self::new).
    pub fn power_of_two(exponent: i32) -> Result<Self, EmbeddingError> {
        Self::new(1.0, exponent)
    }

    /// The scale nearest to numerator / denominator, ties to even, both positive; errors as [`new`](Self::new).
    pub fn from_ratio(numerator: &BigUint, denominator: &BigUint) -> Result<Self, EmbeddingError> {
        let (top, bottom) = (numerator.bits(), denominator.bits());
        if top == 0 || bottom == 0 {
            return Err(Self::refusal(0.0, 0));
        }
        // 2^54 < quotient < 2^56: two spare bits, and the lowest made to stand for all that follow.
        let shift = bottom as i64 - top as i64 + 55;
        let (scaled, divisor) = if shift >= 0 {
            (numerator << shift.unsigned_abs(), denominator.clone())
        } else {
            (numerator.clone(), denominator << shift.unsigned_abs())
        };
        let quotient = &scaled / &divisor;
        let sticky = u64::from(&quotient * &divisor != scaled);
        let word = quotient.iter_u64_digits().next().unwrap_or(0) | sticky;
        let rounded = word as f64;
        let exponent = i64::from(exponent_of(rounded)) - shift;
        let mantissa = f64::from_bits((rounded.to_bits() & MANTISSA_MASK) | (1023 << 52));
        // 64 more bits of the quotient, from which the double is at most 4 units of the word away.
        let wide = (scaled << 64u32) / divisor;
        let lacks = wide.iter_u64_digits().rev().fold(0i128, |x, digit| x << 64 | i128::from(digit))
            - (i128::from(rounded as u64) << 64);
        let rest = lacks as f64 * f64::from_bits((1023 - 64 - i64::from(exponent_of(rounded))).unsigned_abs() << 52);
        match i32::try_from(exponent) {
            Ok(exponent) => Ok(Self { rest, ..Self::new(mantissa, exponent)? }),
            Err(_) => Err(Self::refusal(mantissa, exponent)),
        }
    }

    /// Half of the exact mantissa in units of 2^-bits, within 2^-106; bits at least 54 and at most 126.
    pub(super) fn half_mantissa(&self, bits: u32) -> i128 {
        let nearest = i128::from((self.mantissa.to_bits() & MANTISSA_MASK) | (1 << 52)) << (bits - 53);
        nearest + (self.rest * f64::from_bits(u64::from(1023 + bits - 1) << 52)) as i128
    }

    /// m in [1, 2).
    pub fn mantissa(&self) -> f64 {
        self.mantissa
    }

    /// e.
    pub fn exponent(&self) -> i32 {
        self.exponent
    }

    /// The scale as one double, which holds it exactly.
    pub fn to_f64(&self) -> f64 {
        self.divided_by_power_of_two(0)
    }

    /// m 2^(e - log), exactly, for log <= 64.
    pub(super) fn divided_by_power_of_two(&self, log: u32) -> f64 {
        debug_assert!(log <= 64, "in: log <= 64");
        let biased = 1023 + i64::from(self.exponent) - i64::from(log);
        self.mantissa * f64::from_bits(biased.unsigned_abs() << 52)
    }

    fn refusal(mantissa: f64, exponent: i64) -> EmbeddingError {
        EmbeddingError::ScaleOutOfRange { mantissa, exponent, limit: EXPONENT_LIMIT }
    }
}

const MANTISSA_MASK: u64 = (1 << 52) - 1;

/// The exponent of a positive normal double.
pub(super) fn exponent_of(x: f64) -> i32 {
    ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// The integer nearest to x, ties to even, for |x| < 2^120; no branch on x.
pub(super) fn round_to_integer(x: f64) -> i128 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1075;
    // |x| = mantissa 2^exponent; a subnormal gets a leading bit it lacks and rounds to 0 all the same.
    let mantissa = (bits & MANTISSA_MASK) | (1 << 52);
    let right = (-exponent).clamp(0, 63) as u32;
    let left = exponent.clamp(0, 74) as u32;
    // Half a unit less one, plus the unit bit: carries exactly when the nearest (or even) integer is above.
    let half = (1u64 << right) >> 1;
    let odd = (mantissa >> right) & 1;
    let rounded = (mantissa + half - u64::from(right > 0) + (odd & u64::from(right > 0))) >> right;
    let magnitude = (u128::from(rounded) << left) as i128;
    let sign = -((bits >> 63) as i128);
    (magnitude ^ sign) - sign
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_agrees_with_the_standard_library() {
        let mut xs = vec![0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -2.5, 0.49999999999999994, 1e-310, 1.0, 9e15 + 0.5];
        for exponent in -70..120 {
            for mantissa in [1.0, 1.5, 1.25, 1.75, 1.999_999_999_999_999_8, 1.000_000_000_000_000_2, 1.3] {
                xs.push(mantissa * f64::powi(2.0, exponent));
            }
        }
        for x in xs {
            for x in [x, -x, x + 0.5, x + 1.5] {
                assert_eq!(round_to_integer(x), x.round_ties_even() as i128, "x = {x:e}");
            }
        }
    }

    #[test]
    fn ratios_are_rounded_to_the_nearest_double() {
        let one = BigUint::from(1u8);
        for (numerator, denominator) in [(1u64, 1u64), (3, 1), (1, 3), (u64::MAX, 1), (1, u64::MAX - 58), (10, 7)] {
            let scale = Scale::from_ratio(&numerator.into(), &denominator.into()).expect("in range");
            let expected = numerator as f64 / denominator as f64;
            assert!((scale.to_f64() / expected - 1.0).abs() < 3e-16, "{numerator}/{denominator}");
        }
        let nearest = |numerator: &BigUint| {
            let scale = Scale::from_ratio(numerator, &one).expect("in range");
            (scale.mantissa(), scale.exponent())
        };
        assert_eq!(nearest(&u64::MAX.into()), (1.0, 64));
        // 2^53 + 1 is a tie and goes down to even; one more bit below sends it up.
        let tie = BigUint::from((1u64 << 53) + 1);
        assert_eq!(nearest(&tie), (1.0, 53));
        let above = (tie << 200u32) + 1u8;
        assert_eq!(nearest(&above), (1.0 + f64::EPSILON, 253));
        assert_eq!(Scale::from_ratio(&(&one << 160u32), &(&one << 40u32)), Scale::power_of_two(120));
    }

    #[test]
    fn half_the_mantissa_has_more_bits_than_a_double() {
        for (numerator, denominator) in [(1u128, 3u128), (u128::MAX, 1), ((1 << 53) + 1, 1), (355, 113), (5, 4)] {
            let scale = Scale::from_ratio(&numerator.into(), &denominator.into()).expect("in range");
            // numerator / denominator / 2^(e + 1), in units of 2^-126.
            let exact = ((BigUint::from(numerator) << (325 - scale.exponent()) as u64) / denominator) >> 200u32;
            let exact = exact.iter_u64_digits().rev().fold(0i128, |x, digit| x << 64 | i128::from(digit));
            assert!((scale.half_mantissa(126) - exact).abs() <= 1 << 20, "{numerator}/{denominator}");
        }
    }

    #[test]
    fn scales_outside_the_range_are_typed_errors() {
        let one = BigUint::from(1u8);
        for (mantissa, exponent) in [(2.0, 0), (0.5, 0), (f64::NAN, 0), (1.0, 401), (1.0, i32::MIN), (-1.0, 3)] {
            assert_eq!(Scale::new(mantissa, exponent).expect_err("refused").kind(), "scale_out_of_range");
        }
        for (a, b) in [(BigUint::ZERO, one.clone()), (one.clone(), BigUint::ZERO), (&one << 900u32, one.clone())] {
            assert_eq!(Scale::from_ratio(&a, &b).expect_err("refused").kind(), "scale_out_of_range");
        }
    }
}
