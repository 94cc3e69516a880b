//! 256-bit vectors, four 64-bit words.

use super::doubles::{Doubles, Float, FloatKernel, float};
use super::{Kernel, Lanes};
use std::arch::x86_64::*;

/// Four words in a 256-bit register.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// Runs a kernel compiled for AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn run<K: Kernel>(kernel: K) {
    // SAFETY: this function is compiled for the instruction set and its caller has checked for it.
    unsafe { kernel.run::<Avx2>() }
}

/// Runs a kernel compiled for AVX2, moduli below 2^50.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run_doubles<K: Kernel, const SHORT: bool>(kernel: K) {
    // SAFETY: as `run`.
    unsafe { kernel.run::<Doubles<Avx2, SHORT>>() }
}

/// Runs a kernel for doubles compiled for AVX2.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn run_float<K: FloatKernel>(kernel: K) {
    // SAFETY: as `run`.
    unsafe { kernel.run::<Avx2>() }
}

/// The high halves of the words, in the low halves. A shuffle rather than a shift: the compiler recognises a long
/// multiplication made of shifts and replaces it by scalar ones, six times slower.
#[inline(always)]
unsafe fn high_words(x: __m256i) -> __m256i {
    // SAFETY: reached from `run` only.
    unsafe { _mm256_shuffle_epi32::<0xf5>(x) }
}

/// Transposes a 4 x 4 matrix of words.
#[inline(always)]
unsafe fn transpose4(x: [__m256i; 4]) -> [__m256i; 4] {
    // SAFETY: reached from `run` only.
    unsafe {
        let a = _mm256_unpacklo_epi64(x[0], x[1]);
        let b = _mm256_unpackhi_epi64(x[0], x[1]);
        let c = _mm256_unpacklo_epi64(x[2], x[3]);
        let d = _mm256_unpackhi_epi64(x[2], x[3]);
        [
            _mm256_permute2x128_si256::<0x20>(a, c),
            _mm256_permute2x128_si256::<0x20>(b, d),
            _mm256_permute2x128_si256::<0x31>(a, c),
            _mm256_permute2x128_si256::<0x31>(b, d),
        ]
    }
}

// SAFETY (all methods): called only from kernels inlined into `run`, which is compiled for AVX2.
impl Lanes for Avx2 {
    const WIDTH: usize = 4;
    type V = __m256i;
    type Block = [[__m256i; 8]; 2];

    #[inline(always)]
    unsafe fn load(p: *const u64) -> __m256i {
        // SAFETY: the caller's pointer is valid for four words.
        unsafe { _mm256_loadu_si256(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut u64, v: __m256i) {
        // SAFETY: the caller's pointer is valid for four words.
        unsafe { _mm256_storeu_si256(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn stream(p: *mut u64, v: __m256i) {
        // SAFETY: the caller's pointer is valid for four words and aligned to 32 bytes.
        unsafe { _mm256_stream_si256(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn splat(x: u64) -> __m256i {
        // SAFETY: reached from `run` only.
        unsafe { _mm256_set1_epi64x(x as i64) }
    }
    #[inline(always)]
    unsafe fn gather(base: *const u64, index: *const u32) -> __m256i {
        // SAFETY: four indices, each within the range `base` points to; indices are below 2^18, so not negative.
        unsafe { _mm256_i32gather_epi64::<8>(base.cast(), _mm_loadu_si128(index.cast())) }
    }
    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: reached from `run` only.
        unsafe { _mm256_add_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: reached from `run` only.
        unsafe { _mm256_sub_epi64(a, b) }
    }
    #[inline(always)]
    unsafe fn and(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: reached from `run` only.
        unsafe { _mm256_and_si256(a, b) }
    }
    #[inline(always)]
    unsafe fn or(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: reached from `run` only.
        unsafe { _mm256_or_si256(a, b) }
    }
    #[inline(always)]
    unsafe fn shl(a: __m256i, count: u32) -> __m256i {
        // SAFETY: reached from `run` only.
        unsafe { _mm256_sll_epi64(a, _mm_cvtsi32_si128(count as i32)) }
    }
    #[inline(always)]
    unsafe fn shr(a: __m256i, count: u32) -> __m256i {
        // SAFETY: reached from `run` only.
        unsafe { _mm256_srl_epi64(a, _mm_cvtsi32_si128(count as i32)) }
    }
    #[inline(always)]
    unsafe fn csub(x: __m256i, m: __m256i) -> __m256i {
        // SAFETY: reached from `run` only. The sign of the difference selects: x < 2^63 and m <= 2^63.
        unsafe {
            let d = _mm256_castsi256_pd(_mm256_sub_epi64(x, m));
            _mm256_castpd_si256(_mm256_blendv_pd(d, _mm256_castsi256_pd(x), d))
        }
    }
    #[inline(always)]
    unsafe fn cadd(x: __m256i, m: __m256i) -> __m256i {
        // SAFETY: reached from `run` only.
        unsafe {
            let (s, x) = (_mm256_castsi256_pd(_mm256_add_epi64(x, m)), _mm256_castsi256_pd(x));
            _mm256_castpd_si256(_mm256_blendv_pd(x, s, x))
        }
    }
    #[inline(always)]
    unsafe fn csub_negative(x: __m256i, m: __m256i) -> __m256i {
        // SAFETY: reached from `run` only.
        unsafe {
            let (d, x) = (_mm256_castsi256_pd(_mm256_sub_epi64(x, m)), _mm256_castsi256_pd(x));
            _mm256_castpd_si256(_mm256_blendv_pd(d, x, x))
        }
    }
    #[inline(always)]
    unsafe fn mul_lo(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: reached from `run` only.
        unsafe {
            let cross = _mm256_mullo_epi32(a, _mm256_shuffle_epi32::<0xb1>(b));
            let cross = _mm256_add_epi64(_mm256_slli_epi64::<32>(cross), cross);
            let cross = _mm256_and_si256(cross, _mm256_set1_epi64x(-1 << 32));
            _mm256_add_epi64(_mm256_mul_epu32(a, b), cross)
        }
    }
    #[inline(always)]
    unsafe fn mul_hi(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: reached from `run` only.
        unsafe {
            let (ah, bh) = (high_words(a), high_words(b));
            let low = _mm256_set1_epi64x(0xffff_ffff);
            let ll = _mm256_srli_epi64::<32>(_mm256_mul_epu32(a, b));
            let lh = _mm256_add_epi64(_mm256_mul_epu32(a, bh), ll);
            let hl = _mm256_add_epi64(_mm256_mul_epu32(ah, b), _mm256_and_si256(lh, low));
            let hh = _mm256_add_epi64(_mm256_mul_epu32(ah, bh), _mm256_srli_epi64::<32>(lh));
            _mm256_add_epi64(hh, _mm256_srli_epi64::<32>(hl))
        }
    }
    #[inline(always)]
    unsafe fn carry(sum: __m256i, addend: __m256i) -> __m256i {
        // SAFETY: reached from `run` only. Flipping the sign bits turns the signed comparison into an unsigned one.
        unsafe {
            let sign = _mm256_set1_epi64x(i64::MIN);
            let wrapped = _mm256_cmpgt_epi64(_mm256_xor_si256(addend, sign), _mm256_xor_si256(sum, sign));
            _mm256_srli_epi64::<63>(wrapped)
        }
    }
    #[inline(always)]
    unsafe fn zero_block() -> Self::Block {
        // SAFETY: reached from `run` only.
        unsafe { [[_mm256_setzero_si256(); 8]; 2] }
    }
    #[inline(always)]
    unsafe fn transpose(block: &mut Self::Block) {
        // SAFETY: reached from `run` only.
        unsafe {
            let quarter = |c: usize, r: usize| [block[c][r], block[c][r + 1], block[c][r + 2], block[c][r + 3]];
            let (a, b) = (transpose4(quarter(0, 0)), transpose4(quarter(0, 4)));
            let (c, d) = (transpose4(quarter(1, 0)), transpose4(quarter(1, 4)));
            *block =
                [[a[0], a[1], a[2], a[3], c[0], c[1], c[2], c[3]], [b[0], b[1], b[2], b[3], d[0], d[1], d[2], d[3]]];
        }
    }
}

float! {
    Avx2, __m256i, _mm256_castsi256_pd, _mm256_castpd_si256;
    plus(a, b) _mm256_add_pd(a, b);
    minus(a, b) _mm256_sub_pd(a, b);
    times(a, b) _mm256_mul_pd(a, b);
    fused(a, b, c) _mm256_fmadd_pd(a, b, c);
    minus_fused(a, b, c) _mm256_fnmadd_pd(a, b, c);
}
