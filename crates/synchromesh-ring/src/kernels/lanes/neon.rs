//! 128-bit vectors of NEON, two 64-bit words; products word by word, or in doubles for moduli under 2^50.
//!
//! The scalar unit multiplies 64 bits by 64. Word by word a forward transform at N = 2^12 takes 66 instructions a
//! coefficient; with products made of 32-bit ones (`umull`) 105, and 83 without vectors (docs/machines.md). Sums,
//! comparisons, shifts and moves are vectors.

use super::doubles::{Doubles, Float, FloatKernel, float};
use super::{Consts, Kernel, Lanes, Scalar1};
use std::arch::aarch64::*;

/// Two words in a 128-bit register.
#[derive(Clone, Copy)]
pub(crate) struct Neon;

/// Runs a kernel compiled for NEON.
#[target_feature(enable = "neon")]
pub(super) unsafe fn run<K: Kernel>(kernel: K) {
    // SAFETY: this function is compiled for the instruction set and its caller has checked for it.
    unsafe { kernel.run::<Neon>() }
}

/// Runs a kernel compiled for NEON, moduli below 2^50.
#[target_feature(enable = "neon")]
pub(super) unsafe fn run_doubles<K: Kernel, const SHORT: bool>(kernel: K) {
    // SAFETY: as `run`.
    unsafe { kernel.run::<Doubles<Neon, SHORT>>() }
}

/// Runs a kernel for doubles compiled for NEON.
#[target_feature(enable = "neon")]
pub(super) unsafe fn run_float<K: FloatKernel>(kernel: K) {
    // SAFETY: as `run`.
    unsafe { kernel.run::<Neon>() }
}

/// Both words.
#[inline(always)]
unsafe fn words(x: uint64x2_t) -> [u64; 2] {
    // SAFETY: reached from `run` only.
    unsafe { [vgetq_lane_u64::<0>(x), vgetq_lane_u64::<1>(x)] }
}

/// The vector of two words.
#[inline(always)]
unsafe fn vector([a, b]: [u64; 2]) -> uint64x2_t {
    // SAFETY: reached from `run` only.
    unsafe { vcombine_u64(vcreate_u64(a), vcreate_u64(b)) }
}

/// The constants of one word.
#[inline(always)]
unsafe fn narrow(k: &Consts<uint64x2_t>) -> Consts<u64> {
    // SAFETY: reached from `run` only.
    k.map(|x| unsafe { vgetq_lane_u64::<0>(x) })
}

// SAFETY (all methods): called only from kernels inlined into `run`, which is compiled for NEON.
impl Lanes for Neon {
    const WIDTH: usize = 2;
    type V = uint64x2_t;
    type Block = [[uint64x2_t; 8]; 4];

    #[inline(always)]
    unsafe fn load(p: *const u64) -> uint64x2_t {
        // SAFETY: the caller's pointer is valid for two words.
        unsafe { vld1q_u64(p) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut u64, v: uint64x2_t) {
        // SAFETY: the caller's pointer is valid for two words.
        unsafe { vst1q_u64(p, v) }
    }
    #[inline(always)]
    unsafe fn splat(x: u64) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe { vdupq_n_u64(x) }
    }
    #[inline(always)]
    unsafe fn gather(base: *const u64, index: *const u32) -> uint64x2_t {
        // SAFETY: two indices, each within the range `base` points to.
        unsafe {
            let at = |i: usize| vld1_u64(base.add(index.add(i).read() as usize));
            vcombine_u64(at(0), at(1))
        }
    }
    #[inline(always)]
    unsafe fn add(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe { vaddq_u64(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe { vsubq_u64(a, b) }
    }
    #[inline(always)]
    unsafe fn and(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe { vandq_u64(a, b) }
    }
    #[inline(always)]
    unsafe fn or(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe { vorrq_u64(a, b) }
    }
    #[inline(always)]
    unsafe fn shl(a: uint64x2_t, count: u32) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe { vshlq_u64(a, vdupq_n_s64(i64::from(count))) }
    }
    #[inline(always)]
    unsafe fn shr(a: uint64x2_t, count: u32) -> uint64x2_t {
        // SAFETY: reached from `run` only. A negative count shifts to the right.
        unsafe { vshlq_u64(a, vdupq_n_s64(-i64::from(count))) }
    }
    #[inline(always)]
    unsafe fn csub(x: uint64x2_t, m: uint64x2_t) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe { vbslq_u64(vcgeq_u64(x, m), vsubq_u64(x, m), x) }
    }
    #[inline(always)]
    unsafe fn cadd(x: uint64x2_t, m: uint64x2_t) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe { vbslq_u64(vcltzq_s64(vreinterpretq_s64_u64(x)), vaddq_u64(x, m), x) }
    }
    #[inline(always)]
    unsafe fn csub_negative(x: uint64x2_t, m: uint64x2_t) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe { vbslq_u64(vcltzq_s64(vreinterpretq_s64_u64(x)), x, vsubq_u64(x, m)) }
    }
    #[inline(always)]
    unsafe fn mul_lo(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe {
            let ([a0, a1], [b0, b1]) = (words(a), words(b));
            vector([Scalar1::mul_lo(a0, b0), Scalar1::mul_lo(a1, b1)])
        }
    }
    #[inline(always)]
    unsafe fn mul_hi(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe {
            let ([a0, a1], [b0, b1]) = (words(a), words(b));
            vector([Scalar1::mul_hi(a0, b0), Scalar1::mul_hi(a1, b1)])
        }
    }
    #[inline(always)]
    unsafe fn carry(sum: uint64x2_t, addend: uint64x2_t) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe { vshrq_n_u64::<63>(vcltq_u64(sum, addend)) }
    }
    #[inline(always)]
    unsafe fn zero_block() -> Self::Block {
        // SAFETY: reached from `run` only.
        unsafe { [[vdupq_n_u64(0); 8]; 4] }
    }
    #[inline(always)]
    unsafe fn transpose(block: &mut Self::Block) {
        // SAFETY: reached from `run` only.
        unsafe {
            let from = *block;
            for c in 0..4 {
                for r in 0..4 {
                    let (even, odd) = (from[c][2 * r], from[c][2 * r + 1]);
                    block[r][2 * c] = vtrn1q_u64(even, odd);
                    block[r][2 * c + 1] = vtrn2q_u64(even, odd);
                }
            }
        }
    }

    // What follows is products and little else: word by word throughout, so that nothing moves in between.
    #[inline(always)]
    unsafe fn mul_lazy(x: uint64x2_t, w: uint64x2_t, c: uint64x2_t, k: &Consts<uint64x2_t>) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe {
            let ([x0, x1], [w0, w1], [c0, c1], k) = (words(x), words(w), words(c), narrow(k));
            vector([Scalar1::mul_lazy(x0, w0, c0, &k), Scalar1::mul_lazy(x1, w1, c1, &k)])
        }
    }
    #[inline(always)]
    unsafe fn mul(a: uint64x2_t, b: uint64x2_t, k: &Consts<uint64x2_t>) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe {
            let ([a0, a1], [b0, b1], k) = (words(a), words(b), narrow(k));
            vector([Scalar1::mul(a0, b0, &k), Scalar1::mul(a1, b1, &k)])
        }
    }
    #[inline(always)]
    unsafe fn acc_reduce(acc: (uint64x2_t, uint64x2_t), terms: usize, k: &Consts<uint64x2_t>) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe {
            let ([l0, l1], [h0, h1], k) = (words(acc.0), words(acc.1), narrow(k));
            vector([Scalar1::acc_reduce((l0, h0), terms, &k), Scalar1::acc_reduce((l1, h1), terms, &k)])
        }
    }
    #[inline(always)]
    unsafe fn reduce(x: uint64x2_t, k: &Consts<uint64x2_t>) -> uint64x2_t {
        // SAFETY: reached from `run` only.
        unsafe {
            let ([x0, x1], k) = (words(x), narrow(k));
            vector([Scalar1::reduce(x0, &k), Scalar1::reduce(x1, &k)])
        }
    }
}

float! {
    Neon, uint64x2_t, vreinterpretq_f64_u64, vreinterpretq_u64_f64;
    plus(a, b) vaddq_f64(a, b);
    minus(a, b) vsubq_f64(a, b);
    times(a, b) vmulq_f64(a, b);
    fused(a, b, c) vfmaq_f64(c, a, b);
    minus_fused(a, b, c) vfmsq_f64(c, a, b);
}
