//! 128-bit vectors of WebAssembly, two 64-bit words.
//!
//! There is no instruction for the high half of a product, neither of words nor of vectors: it is made of four products
//! of 32 bits (`extmul`), two words at a time.

use super::{Kernel, Lanes};
use std::arch::wasm32::*;

/// Two words in a 128-bit vector.
#[derive(Clone, Copy)]
pub(crate) struct Simd128;

/// Runs a kernel compiled for SIMD128.
#[target_feature(enable = "simd128")]
pub(super) unsafe fn run<K: Kernel>(kernel: K) {
    // SAFETY: this function is compiled for the instruction set, and no module with it starts where it is missing.
    unsafe { kernel.run::<Simd128>() }
}

// SAFETY (all methods): called only from kernels inlined into `run`, which is compiled for SIMD128.
impl Lanes for Simd128 {
    const WIDTH: usize = 2;
    type V = v128;
    type Block = [[v128; 8]; 4];

    #[inline(always)]
    unsafe fn load(p: *const u64) -> v128 {
        // SAFETY: the caller's pointer is valid for two words.
        unsafe { v128_load(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut u64, v: v128) {
        // SAFETY: the caller's pointer is valid for two words.
        unsafe { v128_store(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn splat(x: u64) -> v128 {
        u64x2_splat(x)
    }
    #[inline(always)]
    unsafe fn gather(base: *const u64, index: *const u32) -> v128 {
        // SAFETY: two indices, each within the range `base` points to.
        unsafe { u64x2(base.add(index.read() as usize).read(), base.add(index.add(1).read() as usize).read()) }
    }
    #[inline(always)]
    unsafe fn add(a: v128, b: v128) -> v128 {
        u64x2_add(a, b)
    }
    #[inline(always)]
    unsafe fn sub(a: v128, b: v128) -> v128 {
        u64x2_sub(a, b)
    }
    #[inline(always)]
    unsafe fn and(a: v128, b: v128) -> v128 {
        v128_and(a, b)
    }
    #[inline(always)]
    unsafe fn or(a: v128, b: v128) -> v128 {
        v128_or(a, b)
    }
    #[inline(always)]
    unsafe fn shl(a: v128, count: u32) -> v128 {
        u64x2_shl(a, count)
    }
    #[inline(always)]
    unsafe fn shr(a: v128, count: u32) -> v128 {
        u64x2_shr(a, count)
    }
    #[inline(always)]
    unsafe fn csub(x: v128, m: v128) -> v128 {
        // Comparisons are signed; x < 2^63 and m <= 2^63, so that the sign of the difference decides.
        let difference = u64x2_sub(x, m);
        v128_bitselect(x, difference, i64x2_shr(difference, 63))
    }
    #[inline(always)]
    unsafe fn cadd(x: v128, m: v128) -> v128 {
        u64x2_add(x, v128_and(m, i64x2_shr(x, 63)))
    }
    #[inline(always)]
    unsafe fn csub_negative(x: v128, m: v128) -> v128 {
        u64x2_sub(x, v128_andnot(m, i64x2_shr(x, 63)))
    }
    #[inline(always)]
    unsafe fn mul_lo(a: v128, b: v128) -> v128 {
        u64x2_mul(a, b)
    }
    #[inline(always)]
    unsafe fn mul_hi(a: v128, b: v128) -> v128 {
        // Both low halves, then both high ones; of b also the other way round.
        let a = u32x4_shuffle::<0, 2, 1, 3>(a, a);
        let (straight, crossed) = (u32x4_shuffle::<0, 2, 1, 3>(b, b), u32x4_shuffle::<1, 3, 0, 2>(b, b));
        let low = u64x2_splat(0xffff_ffff);
        let ll = u64x2_shr(u64x2_extmul_low_u32x4(a, straight), 32);
        let lh = u64x2_add(u64x2_extmul_low_u32x4(a, crossed), ll);
        let hl = u64x2_add(u64x2_extmul_high_u32x4(a, crossed), v128_and(lh, low));
        let hh = u64x2_add(u64x2_extmul_high_u32x4(a, straight), u64x2_shr(lh, 32));
        u64x2_add(hh, u64x2_shr(hl, 32))
    }
    #[inline(always)]
    unsafe fn carry(sum: v128, addend: v128) -> v128 {
        // Flipping the sign bits turns the signed comparison into an unsigned one.
        let sign = u64x2_splat(1 << 63);
        u64x2_shr(i64x2_gt(v128_xor(addend, sign), v128_xor(sum, sign)), 63)
    }
    #[inline(always)]
    unsafe fn zero_block() -> Self::Block {
        [[u64x2_splat(0); 8]; 4]
    }
    #[inline(always)]
    unsafe fn transpose(block: &mut Self::Block) {
        let from = *block;
        for c in 0..4 {
            for r in 0..4 {
                let (even, odd) = (from[c][2 * r], from[c][2 * r + 1]);
                block[r][2 * c] = u64x2_shuffle::<0, 2>(even, odd);
                block[r][2 * c + 1] = u64x2_shuffle::<1, 3>(even, odd);
            }
        }
    }
}
