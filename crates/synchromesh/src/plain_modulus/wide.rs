//! Arithmetic in Z_t for 2^62 <= t < 2^256 on four fixed limbs: Montgomery products for odd t, no branch on residues.

use num_bigint::BigUint;

/// A 256-bit unsigned integer as four 64-bit limbs, least significant first.
pub type U256 = [u64; 4];

/// A modulus 2^62 <= t < 2^256 with its Barrett and, where t is odd, Montgomery constants (R = 2^256).
///
/// Residues are [`U256`] in `[0, t)`. Every method that takes a residue runs in time independent of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WideModulus {
    t: U256,
    /// floor(2^256 / t), at most 2^194.
    ratio: U256,
    /// -t^-1 mod 2^64 for odd t.
    neg_inverse: Option<u64>,
    /// R^2 mod t.
    r_squared: U256,
}

impl WideModulus {
    /// The constants of t, or `None` outside `2^62 <= t < 2^256`.
    pub fn new(t: &BigUint) -> Option<Self> {
        if !(63..=256).contains(&t.bits()) {
            return None;
        }
        let limbs = from_biguint(t)?;
        let r = BigUint::from(1u8) << 256u32;
        Some(Self {
            t: limbs,
            ratio: from_biguint(&(&r / t))?,
            neg_inverse: (limbs[0] & 1 == 1).then(|| inverse_mod_word(limbs[0]).wrapping_neg()),
            r_squared: from_biguint(&((&r * &r) % t))?,
        })
    }

    /// The modulus t.
    #[inline]
    pub fn value(&self) -> &U256 {
        &self.t
    }

    /// Whether Montgomery products exist, that is, whether t is odd.
    pub fn is_odd(&self) -> bool {
        self.neg_inverse.is_some()
    }

    /// x mod t for any x.
    ///
    /// With m = floor(2^256/t), x/t - 1 < x m / 2^256 <= x/t, so the quotient is short by at most one.
    pub fn reduce(&self, x: &U256) -> U256 {
        let product = full_product(x, &self.ratio);
        let quotient = [product[4], product[5], product[6], product[7]];
        let multiple = full_product(&quotient, &self.t);
        let (rest, _) = sub_borrow(x, &[multiple[0], multiple[1], multiple[2], multiple[3]]);
        self.subtract_once(&rest, 0)
    }

    /// The integer with these little-endian limbs, mod t. The time depends on the number of limbs alone.
    pub fn reduce_limbs(&self, limbs: &[u64]) -> U256 {
        let top = limbs.len().saturating_sub(4);
        let mut head = [0; 4];
        for (to, from) in head.iter_mut().zip(&limbs[top..]) {
            *to = *from;
        }
        limbs[..top].iter().rev().fold(self.reduce(&head), |acc, &limb| {
            let shifted = (0..64).fold(acc, |x, _| self.add(&x, &x));
            self.add(&shifted, &self.reduce(&[limb, 0, 0, 0]))
        })
    }

    /// a + b mod t.
    #[inline]
    pub fn add(&self, a: &U256, b: &U256) -> U256 {
        let (sum, carry) = add_carry(a, b);
        self.subtract_once(&sum, carry)
    }

    /// a - b mod t.
    #[inline]
    pub fn sub(&self, a: &U256, b: &U256) -> U256 {
        let (difference, borrow) = sub_borrow(a, b);
        let mask = borrow.wrapping_neg();
        add_carry(&difference, &self.t.map(|limb| limb & mask)).0
    }

    /// -a mod t.
    #[inline]
    pub fn neg(&self, a: &U256) -> U256 {
        self.sub(&[0; 4], a)
    }

    /// -a mod t when `negative`, else a; without a branch.
    #[inline]
    pub fn negate_if(&self, a: &U256, negative: bool) -> U256 {
        select(u64::from(negative), &self.neg(a), a)
    }

    /// a b mod t: two Montgomery products for odd t, a ladder of 256 doublings otherwise.
    pub fn mul(&self, a: &U256, b: &U256) -> U256 {
        match self.neg_inverse {
            Some(neg_inverse) => self.montgomery(&self.montgomery(a, b, neg_inverse), &self.r_squared, neg_inverse),
            None => (0..256).rev().fold([0; 4], |acc, i| {
                let bit = (b[i / 64] >> (i % 64)) & 1;
                self.add(&self.add(&acc, &acc), &select(bit, a, &[0; 4]))
            }),
        }
    }

    /// a R mod t, the form a constant w takes so that [`mul_constant`](Self::mul_constant) yields x w; for odd t.
    pub fn to_montgomery(&self, a: &U256) -> Option<U256> {
        Some(self.montgomery(a, &self.r_squared, self.neg_inverse?))
    }

    /// x w mod t from x and w R mod t, for odd t; for even t, where no such form exists, an unspecified residue.
    #[inline]
    pub fn mul_constant(&self, x: &U256, w_montgomery: &U256) -> U256 {
        self.montgomery(x, w_montgomery, self.neg_inverse.unwrap_or(0))
    }

    /// base^exponent mod t, in time that depends on the exponent, which must be public.
    pub fn pow_vartime(&self, base: &U256, exponent: &BigUint) -> U256 {
        let square_first = self.reduce(base);
        (0..exponent.bits()).rev().fold(self.reduce(&[1, 0, 0, 0]), |power, i| {
            let squared = self.mul(&power, &power);
            if exponent.bit(i) { self.mul(&squared, &square_first) } else { squared }
        })
    }

    /// a b / 2^256 mod t, limb by limb (Montgomery 1985, the coarsely integrated operand scanning form).
    /// in: a, b < t; out: < t. The running sum stays below 2t, hence the fifth limb.
    #[inline]
    fn montgomery(&self, a: &U256, b: &U256, neg_inverse: u64) -> U256 {
        let t = &self.t;
        let mut acc = [0u64; 5];
        for &limb in b {
            let mut carry = 0;
            for j in 0..4 {
                (acc[j], carry) = multiply_add(acc[j], a[j], limb, carry);
            }
            let (fifth, sixth) = add_with(acc[4], carry, 0);
            let factor = acc[0].wrapping_mul(neg_inverse);
            (_, carry) = multiply_add(acc[0], factor, t[0], 0);
            for j in 1..4 {
                (acc[j - 1], carry) = multiply_add(acc[j], factor, t[j], carry);
            }
            (acc[3], carry) = add_with(fifth, carry, 0);
            acc[4] = sixth + carry;
        }
        self.subtract_once(&[acc[0], acc[1], acc[2], acc[3]], acc[4])
    }

    /// x + carry 2^256 mod t, for a value below 2t.
    #[inline]
    fn subtract_once(&self, x: &U256, carry: u64) -> U256 {
        let (difference, borrow) = sub_borrow(x, &self.t);
        // The subtraction failed exactly when it borrowed and there was no 257th bit to borrow from.
        select(borrow & (carry ^ 1), x, &difference)
    }
}

/// 1 when a >= b, else 0, without a branch.
pub(crate) fn at_least(a: &U256, b: &U256) -> u64 {
    sub_borrow(a, b).1 ^ 1
}

/// a - b modulo 2^256.
pub(crate) fn difference(a: &U256, b: &U256) -> U256 {
    sub_borrow(a, b).0
}

/// The limbs of x, or `None` at 2^256 and above.
pub fn from_biguint(x: &BigUint) -> Option<U256> {
    if x.bits() > 256 {
        return None;
    }
    let mut limbs = [0; 4];
    for (to, from) in limbs.iter_mut().zip(x.iter_u64_digits()) {
        *to = from;
    }
    Some(limbs)
}

/// The integer with these limbs. Allocates by its length, so for decoded and public values only.
pub fn to_biguint(x: &U256) -> BigUint {
    let bytes: Vec<u8> = x.iter().flat_map(|limb| limb.to_le_bytes()).collect();
    BigUint::from_bytes_le(&bytes)
}

/// x^-1 mod 2^64 for odd x, by Newton's iteration from 5 correct bits.
fn inverse_mod_word(x: u64) -> u64 {
    let start = x.wrapping_mul(3) ^ 2;
    (0..4).fold(start, |y, _| y.wrapping_mul(2u64.wrapping_sub(x.wrapping_mul(y))))
}

/// `a` when bit is 1, `b` when it is 0.
#[inline(always)]
fn select(bit: u64, a: &U256, b: &U256) -> U256 {
    let mask = bit.wrapping_neg();
    std::array::from_fn(|i| b[i] ^ (mask & (a[i] ^ b[i])))
}

#[inline(always)]
fn add_with(a: u64, b: u64, carry: u64) -> (u64, u64) {
    let sum = u128::from(a) + u128::from(b) + u128::from(carry);
    (sum as u64, (sum >> 64) as u64)
}

/// The two words of acc + a b + carry, which cannot overflow.
#[inline(always)]
fn multiply_add(acc: u64, a: u64, b: u64, carry: u64) -> (u64, u64) {
    let sum = u128::from(acc) + u128::from(a) * u128::from(b) + u128::from(carry);
    (sum as u64, (sum >> 64) as u64)
}

#[inline(always)]
fn add_carry(a: &U256, b: &U256) -> (U256, u64) {
    let mut sum = [0; 4];
    let mut carry = 0;
    for i in 0..4 {
        (sum[i], carry) = add_with(a[i], b[i], carry);
    }
    (sum, carry)
}

#[inline(always)]
fn sub_borrow(a: &U256, b: &U256) -> (U256, u64) {
    let mut difference = [0; 4];
    let mut borrow = 0;
    for i in 0..4 {
        let wide = u128::from(a[i]).wrapping_sub(u128::from(b[i])).wrapping_sub(u128::from(borrow));
        difference[i] = wide as u64;
        borrow = (wide >> 127) as u64;
    }
    (difference, borrow)
}

fn full_product(a: &U256, b: &U256) -> [u64; 8] {
    let mut product = [0; 8];
    for i in 0..4 {
        let mut carry = 0;
        for j in 0..4 {
            (product[i + j], carry) = multiply_add(product[i + j], a[i], b[j], carry);
        }
        product[i + 4] = carry;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    fn big(text: &str) -> BigUint {
        BigUint::parse_bytes(text.as_bytes(), 16).expect("hex")
    }

    fn moduli() -> Vec<BigUint> {
        let one = BigUint::from(1u8);
        vec![
            &one << 62u32,
            (&one << 62u32) + 1u8,
            (&one << 64u32) - 1u8,
            &one << 64u32,
            big("ffffffffffffffffffffffffff820001"),
            (&one << 192u32) + 6u8,
            &one << 255u32,
            (&one << 255u32) - 19u8,
            (&one << 256u32) - 189u32,
            (&one << 256u32) - 1u8,
        ]
    }

    fn samples(t: &BigUint) -> Vec<BigUint> {
        let top = (BigUint::from(1u8) << 256u32) - 1u8;
        let mut xs = vec![BigUint::ZERO, BigUint::from(1u8), t >> 1u32, t - 1u8, t.clone(), &top - 1u8, top.clone()];
        let mut state = t.clone();
        for _ in 0..20 {
            state = (&state * &state + 0x9e37_79b9_7f4a_7c15u64) & &top;
            xs.push(state.clone());
        }
        xs
    }

    #[test]
    fn arithmetic_agrees_with_big_integers_at_the_borders() {
        for t in moduli() {
            let m = WideModulus::new(&t).expect("in range");
            for x in samples(&t) {
                let limbs = from_biguint(&x).expect("256 bits");
                assert_eq!(to_biguint(&m.reduce(&limbs)), &x % &t, "reduce {x} mod {t}");
                let a = &x % &t;
                let a_limbs = from_biguint(&a).expect("residue");
                assert_eq!(to_biguint(&m.neg(&a_limbs)), (&t - &a) % &t);
                for y in samples(&t) {
                    let b = &y % &t;
                    let b_limbs = from_biguint(&b).expect("residue");
                    assert_eq!(to_biguint(&m.mul(&a_limbs, &b_limbs)), &a * &b % &t, "{a} {b} mod {t}");
                    assert_eq!(to_biguint(&m.add(&a_limbs, &b_limbs)), (&a + &b) % &t);
                    assert_eq!(to_biguint(&m.sub(&a_limbs, &b_limbs)), (&a + &t - &b) % &t);
                    if let Some(form) = m.to_montgomery(&b_limbs) {
                        assert_eq!(to_biguint(&m.mul_constant(&a_limbs, &form)), &a * &b % &t);
                    }
                }
            }
        }
    }

    #[test]
    fn long_integers_and_powers_agree_with_big_integers() {
        for t in moduli() {
            let m = WideModulus::new(&t).expect("in range");
            for limbs in [vec![], vec![3], vec![1, 2, 3, 4, 5], vec![u64::MAX; 9]] {
                let integer = limbs.iter().rev().fold(BigUint::ZERO, |acc, &limb| (acc << 64u32) + limb);
                assert_eq!(to_biguint(&m.reduce_limbs(&limbs)), integer % &t, "{limbs:?} mod {t}");
            }
            let exponent = big("123456789abcdef0123456789");
            let power = m.pow_vartime(&[7, 0, 0, 0], &exponent);
            assert_eq!(to_biguint(&power), BigUint::from(7u8).modpow(&exponent, &t));
        }
    }

    #[test]
    fn moduli_outside_the_range_are_refused() {
        let one = BigUint::from(1u8);
        assert_eq!(WideModulus::new(&(&one << 256u32)), None);
        assert_eq!(WideModulus::new(&((&one << 62u32) - 1u8)), None);
    }
}
