//! AVX-512 with the 52-bit multiplier: q < 2^50, factors below 2^52, companions relative to 2^52.

use super::avx512::{Avx512, transpose8};
use super::{Consts, Kernel, Lanes};
use crate::modulus::Scalar;
use std::arch::x86_64::*;

/// Eight words in a 512-bit register, multiplied 52 bits at a time. `SUMS` if forward butterflies are of as few products as
/// sums, not of as few operations: for [`Multipliers::Half`](crate::isa::Multipliers::Half).
#[derive(Clone, Copy)]
pub(crate) struct Ifma<const SUMS: bool>;

/// Runs a kernel compiled for AVX-512 IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma")]
pub(super) unsafe fn run<K: Kernel, const SUMS: bool>(kernel: K) {
    // SAFETY: this function is compiled for the instruction set and its caller has checked for it.
    unsafe { kernel.run::<Ifma<SUMS>>() }
}

/// acc + (a b mod 2^52)
#[inline(always)]
unsafe fn madd_lo(acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: reached from `run` only.
    unsafe { _mm512_madd52lo_epu64(acc, a, b) }
}

/// acc + floor(a b / 2^52)
#[inline(always)]
unsafe fn madd_hi(acc: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: reached from `run` only.
    unsafe { _mm512_madd52hi_epu64(acc, a, b) }
}

/// The forward butterfly of u and y, where `twice` is 2u + 2q: the sum comes out of the accumulator, the difference is
/// twice - sum.
#[inline(always)]
unsafe fn butterfly_of(
    u: __m512i,
    twice: __m512i,
    y: __m512i,
    w: (__m512i, __m512i),
    k: &Consts<__m512i>,
) -> (__m512i, __m512i) {
    // SAFETY: reached from `run` only.
    unsafe {
        let quotient = madd_hi(_mm512_setzero_si512(), y, w.1);
        let sum = madd_lo(madd_lo(u, y, w.0), quotient, k.neg_q);
        (sum, _mm512_sub_epi64(twice, sum))
    }
}

macro_rules! forward_to_avx512 {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arg: $ty),*) -> $out {
                // SAFETY: the same contract; reached from `run` only.
                unsafe { <Avx512 as Lanes>::$name($($arg),*) }
            }
        )*
    };
}

// SAFETY (all methods): called only from kernels inlined into `run`, which is compiled for AVX-512 IFMA.
impl<const SUMS: bool> Lanes for Ifma<SUMS> {
    const WIDTH: usize = 8;
    const WORD: u32 = 52;
    const ROOM: bool = true;
    /// A residue and 15 products below q^2 < 2^100 stay below 2^104.
    const ACC_TERMS: usize = 15;
    type V = __m512i;
    type Block = [[__m512i; 8]; 1];

    forward_to_avx512! {
        load(p: *const u64) -> __m512i;
        store(p: *mut u64, v: __m512i) -> ();
        stream(p: *mut u64, v: __m512i) -> ();
        splat(x: u64) -> __m512i;
        gather(base: *const u64, index: *const u32) -> __m512i;
        add(a: __m512i, b: __m512i) -> __m512i;
        sub(a: __m512i, b: __m512i) -> __m512i;
        and(a: __m512i, b: __m512i) -> __m512i;
        or(a: __m512i, b: __m512i) -> __m512i;
        shl(a: __m512i, count: u32) -> __m512i;
        shr(a: __m512i, count: u32) -> __m512i;
        csub(x: __m512i, m: __m512i) -> __m512i;
        cadd(x: __m512i, m: __m512i) -> __m512i;
        csub_negative(x: __m512i, m: __m512i) -> __m512i;
        mul_lo(a: __m512i, b: __m512i) -> __m512i;
        mul_hi(a: __m512i, b: __m512i) -> __m512i;
        carry(sum: __m512i, addend: __m512i) -> __m512i;
    }

    #[inline(always)]
    unsafe fn zero_block() -> Self::Block {
        // SAFETY: reached from `run` only.
        unsafe { [[_mm512_setzero_si512(); 8]; 1] }
    }
    #[inline(always)]
    unsafe fn transpose(block: &mut Self::Block) {
        // SAFETY: reached from `run` only.
        unsafe { block[0] = transpose8(block[0]) }
    }

    #[inline(always)]
    fn companion(w: &Scalar) -> u64 {
        w.shoup52
    }

    #[inline(always)]
    unsafe fn mul_lazy(x: __m512i, w: __m512i, c: __m512i, k: &Consts<__m512i>) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe {
            let zero = _mm512_setzero_si512();
            let quotient = madd_hi(zero, x, c);
            Self::and(madd_lo(madd_lo(zero, x, w), quotient, k.neg_q), k.mask)
        }
    }

    #[inline(always)]
    unsafe fn mul_open(x: __m512i, w: (__m512i, __m512i), k: &Consts<__m512i>) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe {
            let zero = _mm512_setzero_si512();
            madd_lo(madd_lo(zero, x, w.0), madd_hi(zero, x, w.1), k.neg_q)
        }
    }

    #[inline(always)]
    unsafe fn short_factor(shifted: __m512i, k: &Consts<__m512i>) -> (__m512i, __m512i) {
        // SAFETY: reached from `run` only.
        unsafe { (Self::shr(shifted, 52 - k.bits), madd_hi(shifted, shifted, k.fraction)) }
    }

    #[inline(always)]
    unsafe fn bring_down(x: __m512i, k: &Consts<__m512i>) -> __m512i {
        // SAFETY: reached from `run` only. The companion of 1 is floor(2^52/q).
        unsafe { madd_lo(x, madd_hi(_mm512_setzero_si512(), x, k.one), k.neg_q) }
    }

    #[inline(always)]
    unsafe fn butterfly(u: __m512i, y: __m512i, w: (__m512i, __m512i), k: &Consts<__m512i>) -> (__m512i, __m512i) {
        // SAFETY: reached from `run` only.
        unsafe {
            let twice = if SUMS { Self::add(Self::add(u, k.q2), u) } else { madd_lo(k.q2, u, k.two) };
            butterfly_of(u, twice, y, w, k)
        }
    }

    #[inline(always)]
    unsafe fn butterfly_down(x: __m512i, y: __m512i, w: (__m512i, __m512i), k: &Consts<__m512i>) -> (__m512i, __m512i) {
        // SAFETY: reached from `run` only.
        unsafe {
            // Of sums there are four already, so that of 2u + 2q a product is made.
            let u = if SUMS { Self::csub(Self::and(x, k.mask), k.q2) } else { Self::bring_down(x, k) };
            butterfly_of(u, madd_lo(k.q2, u, k.two), y, w, k)
        }
    }

    #[inline(always)]
    unsafe fn butterfly_last(u: __m512i, y: __m512i, w: (__m512i, __m512i), k: &Consts<__m512i>) -> (__m512i, __m512i) {
        // SAFETY: reached from `run` only.
        unsafe {
            let (sum, difference) = Self::butterfly(u, y, w, k);
            let finish = |x| Self::csub(Self::and(Self::bring_down(x, k), k.mask), k.q);
            (finish(sum), finish(difference))
        }
    }

    #[inline(always)]
    unsafe fn mul_twiddle_negative(x: __m512i, w: (__m512i, __m512i), k: &Consts<__m512i>) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe {
            // r - 2q + 2^52 in the low 52 bits; ones above them make it negative.
            let quotient = madd_hi(_mm512_setzero_si512(), x, w.1);
            let r = madd_lo(madd_lo(k.neg_q2, x, w.0), quotient, k.neg_q);
            _mm512_ternarylogic_epi64::<0xf3>(r, k.mask, k.mask)
        }
    }

    #[inline(always)]
    unsafe fn mul(a: __m512i, b: __m512i, k: &Consts<__m512i>) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe {
            // lead = floor(ab / 2^(b-1)) < 2^51; the quotient falls short by less than 2.5, so r < 3q < 2^52.
            let zero = _mm512_setzero_si512();
            let lead = madd_hi(zero, Self::shl(a, 52 - k.bits), Self::add(b, b));
            let quotient = madd_hi(zero, lead, k.mu);
            let r = Self::and(madd_lo(madd_lo(zero, a, b), quotient, k.neg_q), k.mask);
            Self::csub(Self::csub(r, k.q2), k.q)
        }
    }

    #[inline(always)]
    unsafe fn acc_mul(acc: &mut (__m512i, __m512i), a: __m512i, b: __m512i) {
        // SAFETY: reached from `run` only.
        unsafe { *acc = (madd_lo(acc.0, a, b), madd_hi(acc.1, a, b)) }
    }

    #[inline(always)]
    unsafe fn acc_reduce(acc: (__m512i, __m512i), _: usize, k: &Consts<__m512i>) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe {
            // Both quotients fall short by less than 2, and 4q < 2^52.
            let carried = Self::add(acc.1, Self::shr(acc.0, 52));
            let quotient = madd_hi(madd_hi(_mm512_setzero_si512(), carried, k.word_companion), acc.0, k.one);
            let rest = madd_lo(madd_lo(acc.0, carried, k.word), quotient, k.neg_q);
            Self::csub(Self::csub(Self::and(rest, k.mask), k.q2), k.q)
        }
    }

    #[inline(always)]
    unsafe fn reduce(x: __m512i, k: &Consts<__m512i>) -> __m512i {
        // SAFETY: reached from `run` only. The top 12 bits are the carry out of the low word.
        unsafe { Self::acc_reduce((x, _mm512_setzero_si512()), 0, k) }
    }

    #[inline(always)]
    unsafe fn acc_hi52(sum: __m512i, h: __m512i, f: __m512i) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe { madd_hi(sum, h, f) }
    }
}
