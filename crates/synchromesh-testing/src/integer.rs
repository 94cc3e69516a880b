//! Integers modulo q: the residue in [0, q), the centred one in (-q/2, q/2], inverses, exact and rounded quotients.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, Zero};

/// The residue of `x` in [0, q).
pub fn reduce(x: &BigInt, q: &BigInt) -> BigInt {
    x.mod_floor(q)
}

/// The residue of `x` in (-q/2, q/2]: for even q the tie is positive.
pub fn centre(x: &BigInt, q: &BigInt) -> BigInt {
    let residue = x.mod_floor(q);
    if &residue + &residue > *q { residue - q } else { residue }
}

/// The inverse of `x` modulo q, in [0, q).
///
/// # Panics
/// When x and q share a factor.
pub fn inverse(x: &BigInt, q: &BigInt) -> BigInt {
    if q.is_one() {
        return BigInt::zero();
    }
    let gcd = x.mod_floor(q).extended_gcd(q);
    assert!(gcd.gcd.is_one(), "{x} has no inverse modulo {q}: they share {}", gcd.gcd);
    gcd.x.mod_floor(q)
}

/// x / d for a d that divides x.
///
/// # Panics
/// When it does not.
pub fn exact_quotient(x: &BigInt, d: &BigInt) -> BigInt {
    let (quotient, rest) = x.div_rem(d);
    assert!(rest.is_zero(), "{d} does not divide {x}: the rest is {rest}");
    quotient
}

/// x / d rounded to the nearest integer, ties upwards; d > 0.
pub fn round_quotient(x: &BigInt, d: &BigInt) -> BigInt {
    let doubled: BigInt = x * 2 + d;
    doubled.div_floor(&(d * 2))
}

/// The number of bits of |x|.
pub fn bits(x: &BigInt) -> u64 {
    x.abs().bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(x: i64) -> BigInt {
        x.into()
    }

    #[test]
    fn centred_residues_of_odd_and_even_moduli() {
        let centred = |q: i64| (0..q).map(|x| centre(&int(x), &int(q))).collect::<Vec<_>>();
        assert_eq!(centred(5), [0, 1, 2, -2, -1].map(int));
        assert_eq!(centred(4), [0, 1, 2, -1].map(int));
        assert_eq!(centre(&int(-7), &int(5)), int(-2));
    }

    #[test]
    fn quotients_round_to_nearest_and_ties_go_up() {
        let rounded: Vec<BigInt> = (-6..=6).map(|x| round_quotient(&int(x), &int(4))).collect();
        assert_eq!(rounded, [-1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2].map(int));
    }

    #[test]
    fn inverses_multiply_to_one() {
        for x in 1..97 {
            assert!(reduce(&(inverse(&int(x), &int(97)) * x), &int(97)).is_one());
        }
        assert_eq!(inverse(&int(5), &int(1)), int(0));
    }

    #[test]
    #[should_panic(expected = "share 3")]
    fn a_shared_factor_has_no_inverse() {
        inverse(&int(6), &int(9));
    }
}
