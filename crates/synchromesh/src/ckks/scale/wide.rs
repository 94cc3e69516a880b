//! Positive binary floats m 2^e with 320-bit mantissas, for values whose factors nearly cancel.

use num_bigint::BigUint;
use num_traits::ToPrimitive;

/// Bits of the mantissa.
const BITS: u64 = 320;

/// Values from 2^4096 on have no integer view.
const LOG2_INTEGER_LIMIT: i128 = 4096;

/// m 2^e with 2^319 <= m < 2^320. An operation cuts its result off: relative error below 2^-318.
#[derive(Clone, Debug)]
pub(super) struct Wide {
    mantissa: BigUint,
    exponent: i128,
}

impl Wide {
    fn normalised(mantissa: BigUint, exponent: i128) -> Self {
        let excess = i128::from(mantissa.bits()) - i128::from(BITS);
        let shift = excess.unsigned_abs() as u64;
        let mantissa = if excess >= 0 { mantissa >> shift } else { mantissa << shift };
        Self { mantissa, exponent: exponent + excess }
    }

    pub(super) fn power_of_two(exponent: i128) -> Self {
        Self::normalised(BigUint::from(1u32), exponent)
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        Self::normalised(&self.mantissa * &other.mantissa, self.exponent + other.exponent)
    }

    fn inverse(&self) -> Self {
        Self::normalised((BigUint::from(1u32) << (2 * BITS)) / &self.mantissa, -self.exponent - 2 * i128::from(BITS))
    }

    /// base^exponent; the relative error grows with |exponent|, to |exponent| 2^-317.
    pub(super) fn power(base: u64, exponent: i128) -> Self {
        let mut square = Self::normalised(BigUint::from(base), 0);
        let mut result = Self::power_of_two(0);
        let mut left = exponent.unsigned_abs();
        while left > 0 {
            if left & 1 == 1 {
                result = result.times(&square);
            }
            left >>= 1;
            if left > 0 {
                square = square.times(&square);
            }
        }
        if exponent < 0 { result.inverse() } else { result }
    }

    pub(super) fn log2(&self) -> f64 {
        let leading = (&self.mantissa >> (BITS - 64)).to_f64().unwrap_or(0.0);
        (self.exponent + i128::from(BITS) - 64) as f64 + leading.log2()
    }

    /// The nearest integer; `None` from 2^4096 on.
    pub(super) fn to_integer(&self) -> Option<BigUint> {
        if self.exponent + i128::from(BITS) > LOG2_INTEGER_LIMIT {
            return None;
        }
        let shift = self.exponent.unsigned_abs();
        if self.exponent >= 0 {
            return Some(&self.mantissa << shift as u64);
        }
        if shift > u128::from(BITS) + 1 {
            return Some(BigUint::ZERO);
        }
        let half = BigUint::from(1u32) << (shift as u64 - 1);
        Some((&self.mantissa + half) >> shift as u64)
    }

    /// m and e.
    pub(super) fn into_parts(self) -> (BigUint, i128) {
        (self.mantissa, self.exponent)
    }
}
