//! Public integers modulo t: centred representatives, base-two logarithms, and the slices that can be encoded.

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;

/// Integers to encode, reduced mod t on the way.
#[derive(Clone, Copy)]
pub enum Integers<'a> {
    /// Unsigned words.
    U64(&'a [u64]),
    /// Signed words.
    I64(&'a [i64]),
    /// Signed integers of any size.
    Big(&'a [BigInt]),
}

macro_rules! from_slices {
    ($($ty:ty => $variant:ident),*) => {$(
        impl<'a> From<&'a [$ty]> for Integers<'a> {
            fn from(values: &'a [$ty]) -> Self {
                Self::$variant(values)
            }
        }
        impl<'a> From<&'a Vec<$ty>> for Integers<'a> {
            fn from(values: &'a Vec<$ty>) -> Self {
                Self::$variant(values)
            }
        }
        impl<'a, const K: usize> From<&'a [$ty; K]> for Integers<'a> {
            fn from(values: &'a [$ty; K]) -> Self {
                Self::$variant(values)
            }
        }
    )*};
}

from_slices!(u64 => U64, i64 => I64, BigInt => Big);

/// x mod t in [0, t).
pub(crate) fn residue(x: &BigInt, t: &BigUint) -> BigUint {
    x.mod_floor(&BigInt::from(t.clone())).magnitude().clone()
}

/// The representative of x mod t in [-(t-1)/2, t/2].
pub(crate) fn centred(x: &BigUint, t: &BigUint) -> BigInt {
    let r = x % t;
    if &r + &r > *t { BigInt::from_biguint(Sign::Minus, t - r) } else { BigInt::from(r) }
}

/// log2 x from its leading 60 bits; minus infinity for 0.
#[must_use]
pub fn log2_biguint(x: &BigUint) -> f64 {
    let shift = x.bits().saturating_sub(60);
    let top = (x >> shift).iter_u64_digits().next().unwrap_or(0);
    (top as f64).log2() + shift as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centred_residues_lie_within_half_of_t() {
        for t in [2u32, 3, 4, 97] {
            let t = BigUint::from(t);
            for x in 0u32..200 {
                let c = centred(&BigUint::from(x), &t);
                assert!(
                    BigInt::from(2) * &c <= BigInt::from(t.clone()) && BigInt::from(-2) * &c < BigInt::from(t.clone())
                );
                assert_eq!(residue(&c, &t), BigUint::from(x) % &t);
            }
        }
    }

    #[test]
    fn logarithms_of_wide_integers_are_accurate() {
        assert_eq!(log2_biguint(&(BigUint::from(1u8) << 300u32)), 300.0);
        assert!((log2_biguint(&(BigUint::from(3u8) << 299u32)) - 299.0 - 3f64.log2()).abs() < 1e-12);
        assert_eq!(log2_biguint(&BigUint::ZERO), f64::NEG_INFINITY);
    }
}
