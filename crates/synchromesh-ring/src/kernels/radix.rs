//! Radix digits of a residue: x centred modulo p is sum_i d_i 2^(w i) with -2^(w-1) <= d_i <= 2^(w-1).

use super::lanes::{Kernel, Lanes, Scalar1};
use crate::modulus::{Modulus, Scalar};

/// One digit of residues in base 2^w, with signed digits.
///
/// The digits of x in \[-(p-1)/2, (p-1)/2\] are those of x + sum_(i<n-1) 2^(w-1) 2^(w i), read without sign, each less
/// 2^(w-1); the last of the n digits takes what is left. So digits are centred without carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RadixDigit {
    /// w, 1 to 61.
    pub bits: u32,
    /// i.
    pub index: u32,
}

impl RadixDigit {
    /// Number of digits of residues modulo a prime of `modulus_bits` bits: ceil(modulus_bits / w).
    #[must_use]
    pub const fn count(modulus_bits: u32, bits: u32) -> u32 {
        if bits == 0 { modulus_bits } else { modulus_bits.div_ceil(bits) }
    }

    /// How to read this digit of residues modulo `from`.
    #[must_use]
    pub fn cut(self, from: &Modulus) -> RadixCut {
        RadixCut::new(from, self)
    }
}

/// How to read a digit of x mod p: d = (((x + half mod p) + add) >> shift & mask) - offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RadixCut {
    /// p.
    pub p: u64,
    /// (p - 1) / 2.
    pub half: u64,
    /// What makes every digit non-negative.
    pub add: u64,
    /// Bits below the digit.
    pub shift: u32,
    /// Bits of the digit.
    pub mask: u64,
    /// What was added to the digit.
    pub offset: u64,
}

impl RadixCut {
    fn new(from: &Modulus, digit: RadixDigit) -> Self {
        let (p, w) = (from.value(), digit.bits.clamp(1, 61));
        let (half, last) = ((p - 1) / 2, RadixDigit::count(from.bits(), w) - 1);
        let carries: u64 = (0..last).map(|i| 1u64 << (w - 1 + w * i)).sum();
        // A multiple of the last digit's unit, so that nothing is negative.
        let lift = half.div_ceil(1 << (w * last));
        let add = (lift << (w * last)) + carries - half;
        let cut = |mask, offset| Self { p, half, add, shift: w * digit.index, mask, offset };
        match digit.index {
            i if i < last => cut((1 << w) - 1, 1 << (w - 1)),
            i if i == last => cut(u64::MAX, lift),
            _ => Self { p, half, add, shift: 0, mask: 0, offset: 0 },
        }
    }
}

/// out = digit of src mod q, on n words; src < p.
pub(super) struct Radix<'a> {
    modulus: &'a Modulus,
    cut: RadixCut,
    /// 2^63 mod q, where a digit may exceed q.
    wide: Option<Scalar>,
    src: *const u64,
    out: *mut u64,
    n: usize,
}

impl<'a> Radix<'a> {
    /// The pointers must be valid for n words.
    pub(super) fn new(
        modulus: &'a Modulus,
        from: &Modulus,
        digit: RadixDigit,
        src: *const u64,
        out: *mut u64,
        n: usize,
    ) -> Self {
        let fits = 1u64 << (digit.bits.clamp(1, 61) - 1) < modulus.value();
        let wide = (!fits).then(|| modulus.scalar(modulus.reduce(1 << 63)));
        Self { modulus, cut: RadixCut::new(from, digit), wide, src, out, n }
    }

    #[inline(always)]
    unsafe fn range<L: Lanes>(&self, from: usize, to: usize) {
        // SAFETY: from and to are at most n, and WIDTH divides their difference.
        unsafe {
            let RadixCut { p, half, add, shift, mask, offset } = self.cut;
            let (k, sign) = (L::consts(self.modulus), L::splat(1 << 63));
            let [p, half, add, mask, offset] = [p, half, add, mask, offset].map(|x| L::splat(x));
            for i in (from..to).step_by(L::WIDTH) {
                let x = L::csub(L::add(L::load(self.src.add(i)), half), p);
                let digit = L::sub(L::and(L::shr(L::add(x, add), shift), mask), offset);
                let residue = match &self.wide {
                    None => L::cadd(digit, k.q),
                    Some(c) => L::cadd(L::sub(L::reduce(L::add(digit, sign), &k), L::splat(c.value)), k.q),
                };
                L::store(self.out.add(i), residue);
            }
        }
    }
}

impl Kernel for Radix<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: both pointers are valid for n words.
        unsafe {
            let body = self.n - self.n % L::WIDTH;
            self.range::<L>(0, body);
            if body < self.n {
                self.range::<Scalar1>(body, self.n);
            }
        }
    }
}
