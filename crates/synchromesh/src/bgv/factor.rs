//! Correction factors: public units modulo t, and the pairs of small constants that make two of them equal.

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{One, Zero};

use crate::exact::centred;

/// The f of a phase f m + t e: a public unit modulo t, in [0, t).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factor(BigUint);

impl Factor {
    /// The factor `value` mod t.
    #[must_use]
    pub fn new(value: BigUint, t: &BigUint) -> Self {
        Self(value % t)
    }

    /// Its residue in [0, t).
    #[must_use]
    pub const fn value(&self) -> &BigUint {
        &self.0
    }

    /// f g mod t.
    pub(super) fn times(&self, other: &BigUint, t: &BigUint) -> Self {
        Self(&self.0 * other % t)
    }

    /// f / d mod t; f itself where d is no unit, which checked parameters exclude.
    pub(super) fn over(&self, d: &BigUint, t: &BigUint) -> Self {
        self.times(&(d % t).modinv(t).unwrap_or_else(BigUint::one), t)
    }
}

/// Constants (c, d) with c f = d g mod t, both units, from (f^-1 g, 1) over the remainders of Euclid's algorithm to
/// (1, g^-1 f): c falls as d grows, |c d| stays about t.
pub(super) fn equalisers(f: &Factor, g: &Factor, t: &BigUint) -> Vec<(BigInt, BigInt)> {
    let ratio = g.over(f.value(), t);
    let inverse = f.over(g.value(), t);
    let mut pairs = vec![(centred(ratio.value(), t), BigInt::one()), (BigInt::one(), centred(inverse.value(), t))];
    // r_i = s_i ratio mod t at every step, so (r_i, s_i) equalises.
    let (mut r0, mut r1) = (BigInt::from(t.clone()), BigInt::from(ratio.0));
    let (mut s0, mut s1) = (BigInt::zero(), BigInt::one());
    while !r1.is_zero() {
        if r1.magnitude().gcd(t).is_one() {
            pairs.push((r1.clone(), s1.clone()));
        }
        let (quotient, rest) = r0.div_rem(&r1);
        (r0, r1) = (r1, rest);
        let next = s0 - quotient * &s1;
        (s0, s1) = (s1, next);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_equalises_and_some_pair_is_as_small_as_the_root_of_t() {
        for t in [2u64, 65_537, 1_073_479_681, 1 << 20, 3 * 5 * 7 * 11] {
            let big = BigUint::from(t);
            for (f, g) in [(1u64, 1u64), (1, t - 1), (t / 2 + 2, 13), (17, t - 2)] {
                let (f, g) = (Factor::new(f.into(), &big), Factor::new(g.into(), &big));
                if !f.value().gcd(&big).is_one() || !g.value().gcd(&big).is_one() {
                    continue;
                }
                let pairs = equalisers(&f, &g, &big);
                let t = BigInt::from(t);
                for (c, d) in &pairs {
                    let difference = c * BigInt::from(f.0.clone()) - d * BigInt::from(g.0.clone());
                    assert!((difference % &t).is_zero(), "{c} {d} for {f:?} {g:?}");
                    assert!(c.magnitude().gcd(&big).is_one() && d.magnitude().gcd(&big).is_one());
                }
                let least = pairs.iter().map(|(c, d)| c.magnitude().max(d.magnitude()).clone()).min().expect("some");
                assert!(big != BigUint::from(65_537u32) || &least * &least <= big, "{least}");
            }
        }
    }
}
