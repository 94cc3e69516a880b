//! Arithmetic in Z_t for a one-word t, 2 <= t < 2^62: Barrett and Shoup products, no branch and no division on residues.

/// Exclusive upper bound on the moduli of [`WordModulus`]: four times a residue must fit a word.
pub const WORD_LIMIT: u64 = 1 << 62;

/// A modulus 2 <= t < 2^62 with its Barrett constants.
///
/// Residues are `u64` in `[0, t)`. Every method that takes a residue runs in time independent of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordModulus {
    t: u64,
    /// floor(2^64 / t).
    ratio: u64,
    /// Bit length k of t.
    bits: u32,
    /// floor(4^k / t), at most k + 1 bits.
    square_ratio: u64,
    /// 2^64 mod t.
    word_residue: u64,
}

impl WordModulus {
    /// The constants of t, or `None` outside `2 <= t < 2^62`.
    pub fn new(t: u64) -> Option<Self> {
        if !(2..WORD_LIMIT).contains(&t) {
            return None;
        }
        let bits = 64 - t.leading_zeros();
        let word = 1u128 << 64;
        let square = 1u128 << (2 * bits);
        Some(Self {
            t,
            ratio: (word / u128::from(t)) as u64,
            bits,
            square_ratio: (square / u128::from(t)) as u64,
            word_residue: (word % u128::from(t)) as u64,
        })
    }

    /// The modulus t.
    #[inline]
    pub fn value(&self) -> u64 {
        self.t
    }

    /// x mod t for x < 2t.
    #[inline(always)]
    pub fn reduce_once(&self, x: u64) -> u64 {
        debug_assert!(x < 2 * self.t, "in: x < 2t");
        x.min(x.wrapping_sub(self.t))
    }

    /// x mod t for any x.
    ///
    /// With m = floor(2^64/t), x/t - 1 < x m / 2^64 <= x/t, so the quotient is short by at most one.
    #[inline]
    pub fn reduce(&self, x: u64) -> u64 {
        let quotient = high_product(x, self.ratio);
        self.reduce_once(x.wrapping_sub(quotient.wrapping_mul(self.t)))
    }

    /// The integer with these little-endian limbs, mod t. The time depends on the number of limbs alone.
    pub fn reduce_limbs(&self, limbs: impl DoubleEndedIterator<Item = u64>) -> u64 {
        limbs.rev().fold(0, |acc, limb| self.add(self.mul(acc, self.word_residue), self.reduce(limb)))
    }

    /// a + b mod t.
    #[inline(always)]
    pub fn add(&self, a: u64, b: u64) -> u64 {
        self.reduce_once(a + b)
    }

    /// a - b mod t.
    #[inline(always)]
    pub fn sub(&self, a: u64, b: u64) -> u64 {
        debug_assert!(a < self.t && b < self.t, "in: a, b < t");
        let difference = a.wrapping_sub(b);
        difference.min(difference.wrapping_add(self.t))
    }

    /// -a mod t.
    #[inline]
    pub fn neg(&self, a: u64) -> u64 {
        self.sub(0, a)
    }

    /// a b mod t, by Barrett's reduction: the quotient is short by at most two.
    #[inline]
    pub fn mul(&self, a: u64, b: u64) -> u64 {
        debug_assert!(a < self.t && b < self.t, "in: a, b < t");
        let product = u128::from(a) * u128::from(b);
        let top = (product >> (self.bits - 1)) as u64;
        let quotient = ((u128::from(top) * u128::from(self.square_ratio)) >> (self.bits + 1)) as u64;
        let rest = (product as u64).wrapping_sub(quotient.wrapping_mul(self.t));
        let twice = 2 * self.t;
        self.reduce_once(rest.min(rest.wrapping_sub(twice)))
    }

    /// base^exponent mod t, in time that depends on the exponent, which must be public.
    pub fn pow_vartime(&self, base: u64, mut exponent: u64) -> u64 {
        let mut square = self.reduce(base);
        let mut power = self.reduce(1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                power = self.mul(power, square);
            }
            square = self.mul(square, square);
            exponent >>= 1;
        }
        power
    }

    /// The companion floor(w 2^64 / t) of a public constant w < t, for [`mul_shoup_lazy`](Self::mul_shoup_lazy).
    pub fn shoup(&self, w: u64) -> u64 {
        ((u128::from(w) << 64) / u128::from(self.t)) as u64
    }

    /// x w mod t. in: any x, w < t with its companion; out: < 2t.
    #[inline(always)]
    pub fn mul_shoup_lazy(&self, x: u64, w: u64, companion: u64) -> u64 {
        let quotient = high_product(x, companion);
        x.wrapping_mul(w).wrapping_sub(quotient.wrapping_mul(self.t))
    }

    /// The residue of a signed word.
    #[inline]
    pub fn reduce_signed(&self, x: i64) -> u64 {
        self.negate_if(self.reduce(x.unsigned_abs()), x < 0)
    }

    /// -a mod t when `negative`, else a; without a branch.
    #[inline]
    pub fn negate_if(&self, a: u64, negative: bool) -> u64 {
        let mask = u64::from(negative).wrapping_neg();
        a ^ (mask & (a ^ self.neg(a)))
    }
}

#[inline(always)]
fn high_product(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULI: [u64; 8] = [2, 3, 4, 97, 65_537, (1 << 32) + 15, (1 << 62) - 57, (1 << 62) - 1];

    #[test]
    fn moduli_outside_two_to_two_to_the_62_are_refused() {
        for t in [0, 1, WORD_LIMIT, u64::MAX] {
            assert_eq!(WordModulus::new(t), None, "t = {t}");
        }
    }

    #[test]
    fn arithmetic_agrees_with_integer_division_at_the_borders() {
        for t in MODULI {
            let m = WordModulus::new(t).expect("in range");
            let wide = u128::from(t);
            let mut xs = vec![0, 1, t / 2, t - 1, t, 2 * t - 1, 4 * t - 1, u64::MAX - 1, u64::MAX];
            let mut state = t ^ 0x9e37_79b9_7f4a_7c15;
            for _ in 0..200 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                xs.push(state);
            }
            for &x in &xs {
                assert_eq!(m.reduce(x), x % t, "reduce {x} mod {t}");
                let signed = x as i64;
                assert_eq!(i128::from(m.reduce_signed(signed)), i128::from(signed).rem_euclid(i128::from(t)));
                for &y in &xs {
                    let (a, b) = (x % t, y % t);
                    assert_eq!(u128::from(m.mul(a, b)), u128::from(a) * u128::from(b) % wide, "{a} {b} mod {t}");
                    assert_eq!(u128::from(m.add(a, b)), (u128::from(a) + u128::from(b)) % wide);
                    assert_eq!(u128::from(m.sub(a, b)), (u128::from(a) + wide - u128::from(b)) % wide);
                    let lazy = m.mul_shoup_lazy(x, b, m.shoup(b));
                    assert!(lazy < 2 * t && u128::from(lazy % t) == u128::from(x) * u128::from(b) % wide);
                }
            }
        }
    }

    #[test]
    fn products_are_right_for_every_pair_of_small_residues() {
        // Quotients short by two are rare: the first are 47 * 49 mod 50 and 53 * 53 mod 54.
        for t in 2..=128 {
            let m = WordModulus::new(t).expect("in range");
            for a in 0..t {
                for b in 0..t {
                    assert_eq!(m.mul(a, b), a * b % t, "{a} {b} mod {t}");
                }
            }
        }
    }

    #[test]
    fn limbs_are_read_little_endian() {
        let m = WordModulus::new(1_000_003).expect("in range");
        let expected = ((7u128 << 64) + 5) % 1_000_003;
        assert_eq!(u128::from(m.reduce_limbs([5, 7].into_iter())), expected);
    }
}
