//! 512-bit vectors, eight 64-bit words.

use super::doubles::{Doubles, Float, FloatKernel, float};
use super::{Consts, Kernel, Lanes};
use std::arch::x86_64::*;

/// Eight words in a 512-bit register.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// Runs a kernel compiled for AVX-512.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
pub(super) unsafe fn run<K: Kernel>(kernel: K) {
    // SAFETY: this function is compiled for the instruction set and its caller has checked for it.
    unsafe { kernel.run::<Avx512>() }
}

/// Runs a kernel compiled for AVX-512, moduli below 2^50.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
pub(super) unsafe fn run_doubles<K: Kernel, const SHORT: bool>(kernel: K) {
    // SAFETY: as `run`.
    unsafe { kernel.run::<Doubles<Avx512, SHORT>>() }
}

/// Runs a kernel for doubles compiled for AVX-512.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
pub(super) unsafe fn run_float<K: FloatKernel>(kernel: K) {
    // SAFETY: as `run`.
    unsafe { kernel.run::<Avx512>() }
}

// SAFETY (all methods): called only from kernels inlined into `run`, which is compiled for AVX-512.
impl Lanes for Avx512 {
    const WIDTH: usize = 8;
    /// The approximate quotient of `mul_twiddle` costs 2q; 8q < 2^64.
    const LAZY: u64 = 4;
    type V = __m512i;
    type Block = [[__m512i; 8]; 1];

    #[inline(always)]
    unsafe fn load(p: *const u64) -> __m512i {
        // SAFETY: the caller's pointer is valid for eight words.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut u64, v: __m512i) {
        // SAFETY: the caller's pointer is valid for eight words.
        unsafe { _mm512_storeu_si512(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn stream(p: *mut u64, v: __m512i) {
        // SAFETY: the caller's pointer is valid for eight words and aligned to 64 bytes.
        unsafe { _mm512_stream_si512(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn splat(x: u64) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe { _mm512_set1_epi64(x as i64) }
    }
    #[inline(always)]
    unsafe fn gather(base: *const u64, index: *const u32) -> __m512i {
        // SAFETY: eight indices, each within the range `base` points to; indices are below 2^18, so not negative.
        unsafe { _mm512_i32gather_epi64::<8>(_mm256_loadu_si256(index.cast()), base.cast()) }
    }
    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe { _mm512_add_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe { _mm512_sub_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn and(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe { _mm512_and_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn or(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe { _mm512_or_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn shl(a: __m512i, count: u32) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe { _mm512_sll_epi64(a, _mm_cvtsi32_si128(count as i32)) }
    }
    #[inline(always)]
    unsafe fn shr(a: __m512i, count: u32) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe { _mm512_srl_epi64(a, _mm_cvtsi32_si128(count as i32)) }
    }
    #[inline(always)]
    unsafe fn csub(x: __m512i, m: __m512i) -> __m512i {
        // SAFETY: reached from `run` only. A negative difference is a large unsigned word.
        unsafe { _mm512_min_epu64(x, _mm512_sub_epi64(x, m)) }
    }
    #[inline(always)]
    unsafe fn cadd(x: __m512i, m: __m512i) -> __m512i {
        // SAFETY: reached from `run` only. A negative x is a large unsigned word.
        unsafe { _mm512_min_epu64(x, _mm512_add_epi64(x, m)) }
    }
    #[inline(always)]
    unsafe fn csub_negative(x: __m512i, m: __m512i) -> __m512i {
        // SAFETY: reached from `run` only. Of two negative words the larger is x, else the negative one is larger.
        unsafe { _mm512_max_epu64(x, _mm512_sub_epi64(x, m)) }
    }
    #[inline(always)]
    unsafe fn mul_lo(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe { _mm512_mullo_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_hi(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe {
            let (ah, bh) = (high_words(a), high_words(b));
            let low = _mm512_set1_epi64(0xffff_ffff);
            let ll = _mm512_srli_epi64::<32>(_mm512_mul_epu32(a, b));
            let lh = _mm512_add_epi64(_mm512_mul_epu32(a, bh), ll);
            let hl = _mm512_add_epi64(_mm512_mul_epu32(ah, b), _mm512_and_si512(lh, low));
            let hh = _mm512_add_epi64(_mm512_mul_epu32(ah, bh), _mm512_srli_epi64::<32>(lh));
            _mm512_add_epi64(hh, _mm512_srli_epi64::<32>(hl))
        }
    }
    #[inline(always)]
    unsafe fn carry(sum: __m512i, addend: __m512i) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe { _mm512_maskz_set1_epi64(_mm512_cmplt_epu64_mask(sum, addend), 1) }
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
    unsafe fn mul_twiddle(x: __m512i, w: (__m512i, __m512i), k: &Consts<__m512i>) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe {
            // Three of the four partial products: the quotient falls short by at most 2 more, so r < 4q for x < 2^64.
            let (xh, ch) = (high_words(x), high_words(w.1));
            let cross0 = _mm512_srli_epi64::<32>(_mm512_mul_epu32(x, ch));
            let cross1 = _mm512_srli_epi64::<32>(_mm512_mul_epu32(xh, w.1));
            let quotient = Self::add(Self::add(_mm512_mul_epu32(xh, ch), cross0), cross1);
            Self::sub(Self::mul_lo(x, w.0), Self::mul_lo(quotient, k.q))
        }
    }

    #[inline(always)]
    unsafe fn reduce_lazy(x: __m512i, k: &Consts<__m512i>) -> __m512i {
        // SAFETY: reached from `run` only.
        unsafe { Self::csub(Self::csub(x, k.q2), k.q) }
    }
}

/// The high halves of the words, in the low halves. A shuffle rather than a shift: the compiler recognises a long
/// multiplication made of shifts and replaces it by scalar ones, six times slower.
#[inline(always)]
unsafe fn high_words(x: __m512i) -> __m512i {
    // SAFETY: reached from `run` only.
    unsafe { _mm512_shuffle_epi32::<0xf5>(x) }
}

/// Transposes an 8 x 8 matrix of words: pairs of words, then pairs of 128-bit lanes, then halves.
#[inline(always)]
pub(super) unsafe fn transpose8(x: [__m512i; 8]) -> [__m512i; 8] {
    // SAFETY: reached from a `run` compiled for AVX-512 only.
    unsafe {
        let lo = |i: usize| _mm512_unpacklo_epi64(x[i], x[i + 1]);
        let hi = |i: usize| _mm512_unpackhi_epi64(x[i], x[i + 1]);
        // p[i] holds columns i % 2 + {0, 2, 4, 6} of rows 2 (i / 2), 2 (i / 2) + 1.
        let p = [lo(0), hi(0), lo(2), hi(2), lo(4), hi(4), lo(6), hi(6)];
        let even = |a, b| _mm512_shuffle_i64x2::<0x88>(a, b);
        let odd = |a, b| _mm512_shuffle_i64x2::<0xdd>(a, b);
        // Columns {0, 4}, {2, 6}, {1, 5}, {3, 7} of rows 0..4, then of rows 4..8.
        let (a04, a26, a15, a37) = (even(p[0], p[2]), odd(p[0], p[2]), even(p[1], p[3]), odd(p[1], p[3]));
        let (b04, b26, b15, b37) = (even(p[4], p[6]), odd(p[4], p[6]), even(p[5], p[7]), odd(p[5], p[7]));
        [
            even(a04, b04),
            even(a15, b15),
            even(a26, b26),
            even(a37, b37),
            odd(a04, b04),
            odd(a15, b15),
            odd(a26, b26),
            odd(a37, b37),
        ]
    }
}

float! {
    Avx512, __m512i, _mm512_castsi512_pd, _mm512_castpd_si512;
    plus(a, b) _mm512_add_pd(a, b);
    minus(a, b) _mm512_sub_pd(a, b);
    times(a, b) _mm512_mul_pd(a, b);
    fused(a, b, c) _mm512_fmadd_pd(a, b, c);
    minus_fused(a, b, c) _mm512_fnmadd_pd(a, b, c);
}
