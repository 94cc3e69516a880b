//! Arithmetic in Z_q for one odd word-sized q, 2^19 < q < 2^61.

/// Why a number cannot be a [`Modulus`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModulusError {
    /// Outside 2^19 < q < 2^61.
    #[error("modulus {q} is outside 2^19 < q < 2^61; use a prime of 20 to 61 bits")]
    OutOfRange {
        /// The number refused.
        q: u64,
    },
    /// Divisible by two.
    #[error("modulus {q} is even; use an odd prime")]
    Even {
        /// The number refused.
        q: u64,
    },
}

/// An odd modulus 2^19 < q < 2^61 with its reduction constants. Primality is the caller's business.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Modulus {
    q: u64,
    bits: u32,
    /// floor(2^128 / q), high and low words.
    ratio: [u64; 2],
}

/// A constant of Z_q with the quotients that make multiplying by it cheap (Shoup).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub struct Scalar {
    /// The constant, in [0, q).
    pub value: u64,
    /// floor(value * 2^64 / q).
    pub shoup: u64,
    /// floor(value * 2^52 / q): meaningful below 2^52, so for q < 2^52.
    pub shoup52: u64,
}

impl Modulus {
    /// The modulus q.
    ///
    /// # Errors
    /// [`ModulusError`] unless q is odd and 2^19 < q < 2^61.
    pub fn new(q: u64) -> Result<Self, ModulusError> {
        if q <= 1 << 19 || q >= 1 << 61 {
            return Err(ModulusError::OutOfRange { q });
        }
        if q.is_multiple_of(2) {
            return Err(ModulusError::Even { q });
        }
        // q is odd and above 1, so it does not divide 2^128 and floor((2^128 - 1) / q) = floor(2^128 / q).
        let ratio = u128::MAX / u128::from(q);
        Ok(Self { q, bits: 64 - q.leading_zeros(), ratio: [(ratio >> 64) as u64, ratio as u64] })
    }

    /// q itself.
    #[inline(always)]
    #[must_use]
    pub fn value(&self) -> u64 {
        self.q
    }

    /// Bit length of q, 20 to 61.
    #[inline(always)]
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// floor(2^k / q) for k <= 128.
    #[inline(always)]
    pub(crate) fn reciprocal(&self, k: u32) -> u128 {
        let ratio = (u128::from(self.ratio[0]) << 64) | u128::from(self.ratio[1]);
        ratio >> (128 - k)
    }

    /// a + b mod q. Bounds: a, b < q.
    #[inline(always)]
    #[must_use]
    pub fn add(&self, a: u64, b: u64) -> u64 {
        debug_assert!(a < self.q && b < self.q);
        let s = a + b;
        s.min(s.wrapping_sub(self.q))
    }

    /// a - b mod q. Bounds: a, b < q.
    #[inline(always)]
    #[must_use]
    pub fn sub(&self, a: u64, b: u64) -> u64 {
        debug_assert!(a < self.q && b < self.q);
        let d = a.wrapping_sub(b);
        d.min(d.wrapping_add(self.q))
    }

    /// -a mod q. Bounds: a < q.
    #[inline(always)]
    #[must_use]
    pub fn neg(&self, a: u64) -> u64 {
        self.sub(0, a)
    }

    /// a * b mod q, for any a and b.
    #[inline(always)]
    #[must_use]
    pub fn mul(&self, a: u64, b: u64) -> u64 {
        self.reduce_u128(u128::from(a) * u128::from(b))
    }

    /// x mod q for any word.
    #[inline(always)]
    #[must_use]
    pub fn reduce(&self, x: u64) -> u64 {
        // floor(2^64/q) is the high word of the ratio; the quotient is short by at most 1.
        let quotient = mul_high(x, self.ratio[0]);
        let r = x.wrapping_sub(quotient.wrapping_mul(self.q));
        r.min(r.wrapping_sub(self.q))
    }

    /// x mod q for any double word [Barrett, two-word ratio].
    #[inline(always)]
    #[must_use]
    pub fn reduce_u128(&self, x: u128) -> u64 {
        let (lo, hi) = (x as u64, (x >> 64) as u64);
        let [r1, r0] = self.ratio;
        // floor(x * ratio / 2^128) mod 2^64, short of floor(x / q) by at most 1.
        let carry = (u128::from(lo) * u128::from(r0)) >> 64;
        let mid0 = u128::from(lo) * u128::from(r1) + carry;
        let mid1 = u128::from(hi) * u128::from(r0) + u128::from(mid0 as u64);
        let quotient = hi.wrapping_mul(r1).wrapping_add((mid0 >> 64) as u64).wrapping_add((mid1 >> 64) as u64);
        let r = lo.wrapping_sub(quotient.wrapping_mul(self.q));
        r.min(r.wrapping_sub(self.q))
    }

    /// base^exponent mod q, for any base. Variable time in the exponent.
    #[must_use]
    pub fn pow(&self, base: u64, mut exponent: u64) -> u64 {
        let mut square = self.reduce(base);
        let mut result = 1;
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = self.mul(result, square);
            }
            square = self.mul(square, square);
            exponent >>= 1;
        }
        result
    }

    /// The inverse of a mod q, or `None` if they share a factor. Variable time.
    #[must_use]
    pub fn inv(&self, a: u64) -> Option<u64> {
        // Below 2^61, as are the factors, in absolute value.
        let (mut r0, mut r1) = (self.q as i64, self.reduce(a) as i64);
        let (mut t0, mut t1) = (0i64, 1i64);
        while r1 != 0 {
            let quotient = r0 / r1;
            (r0, r1) = (r1, r0 - quotient * r1);
            (t0, t1) = (t1, t0 - quotient * t1);
        }
        (r0 == 1).then(|| t0.rem_euclid(self.q as i64) as u64)
    }

    /// w mod q with its companions, for [`Modulus::mul_scalar`] and the kernels.
    #[must_use]
    pub fn scalar(&self, w: u64) -> Scalar {
        let value = self.reduce(w);
        // floor(w 2^64 floor(2^128 / q) / 2^128) is floor(w 2^64 / q) or one less.
        let short = value.wrapping_mul(self.ratio[0]).wrapping_add(mul_high(value, self.ratio[1]));
        let rest = short.wrapping_mul(self.q).wrapping_neg();
        let shoup = short + u64::from(rest >= self.q);
        Scalar { value, shoup, shoup52: shoup >> 12 }
    }

    /// x * w mod q for any word x.
    #[inline(always)]
    #[must_use]
    pub fn mul_scalar(&self, x: u64, w: &Scalar) -> u64 {
        let r = self.mul_scalar_lazy(x, w);
        r.min(r.wrapping_sub(self.q))
    }

    /// x * w mod q up to one q. in: any word x; out: < 2q.
    #[inline(always)]
    #[must_use]
    pub fn mul_scalar_lazy(&self, x: u64, w: &Scalar) -> u64 {
        debug_assert!(w.value < self.q);
        x.wrapping_mul(w.value).wrapping_sub(mul_high(x, w.shoup).wrapping_mul(self.q))
    }
}

/// The high word of a * b.
#[inline(always)]
fn mul_high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quotients of 4 of the last one's samples fall short by one before they are corrected.
    const MODULI: [u64; 7] = [
        (1 << 19) + 1,
        1_032_193,
        (1 << 50) - 27,
        (1 << 60) - 93,
        (1 << 61) - 1,
        0x1fff_ffff_ffe0_0001,
        0x1fd4_23ab_a294_b4bb,
    ];

    fn samples(q: u64) -> Vec<u64> {
        let mut x = 0x9e37_79b9_7f4a_7c15u64;
        let mut v = vec![0, 1, 2, q / 2, q - 2, q - 1];
        v.extend((0..20).map(|_| {
            x = x.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            (x >> 3) % q
        }));
        v
    }

    #[test]
    fn agrees_with_wide_division() {
        for q in MODULI {
            let m = Modulus::new(q).unwrap();
            for a in samples(q) {
                for b in samples(q) {
                    let wide = |x: u128| (x % u128::from(q)) as u64;
                    assert_eq!(m.add(a, b), wide(u128::from(a) + u128::from(b)));
                    assert_eq!(m.sub(a, b), wide(u128::from(a) + u128::from(q - b)));
                    assert_eq!(m.mul(a, b), wide(u128::from(a) * u128::from(b)));
                    assert_eq!(m.mul_scalar(a, &m.scalar(b)), m.mul(a, b));
                    let x = u128::from(a) << 64 | u128::from(u64::MAX - b);
                    assert_eq!(m.reduce_u128(x), wide(x));
                    assert_eq!(m.reduce(u64::MAX - b), (u64::MAX - b) % q);
                    assert_eq!(m.mul_scalar(u64::MAX - a, &m.scalar(b)), m.mul(u64::MAX - a, b));
                }
                assert_eq!(m.add(a, m.neg(a)), 0);
                let (w, quotient) = (m.scalar(a), |shift| ((u128::from(a) << shift) / u128::from(q)) as u64);
                assert_eq!((w.value, w.shoup, w.shoup52), (a, quotient(64), quotient(52)));
            }
            assert_eq!(m.reduce_u128(u128::MAX), (u128::MAX % u128::from(q)) as u64);
            assert_eq!(m.reduce(u64::MAX), u64::MAX % q);
        }
    }

    #[test]
    fn inverses_and_powers() {
        for q in MODULI {
            let m = Modulus::new(q).unwrap();
            for a in samples(q) {
                if let Some(inverse) = m.inv(a) {
                    assert_eq!(m.mul(a, inverse), 1);
                }
                assert_eq!(m.pow(a, 5), m.mul(m.mul(m.mul(a, a), m.mul(a, a)), a));
            }
            assert_eq!(m.inv(0), None);
            assert_eq!(m.inv(q), None);
        }
    }

    #[test]
    fn the_range_is_enforced() {
        for q in [0, 1, 2, 3, 1 << 19, 1 << 61, (1 << 61) + 1, u64::MAX] {
            assert_eq!(Modulus::new(q), Err(ModulusError::OutOfRange { q }));
        }
        assert_eq!(Modulus::new(1 << 20), Err(ModulusError::Even { q: 1 << 20 }));
    }
}
