//! One word at a time: runs everywhere, and the reference for the others.

use super::Lanes;

/// One 64-bit word.
#[derive(Clone, Copy)]
pub(crate) struct Scalar1;

impl Lanes for Scalar1 {
    const WIDTH: usize = 1;
    type V = u64;
    type Block = [[u64; 8]; 8];

    #[inline(always)]
    unsafe fn load(p: *const u64) -> u64 {
        // SAFETY: the caller's pointer is valid for one word.
        unsafe { p.read() }
    }
    #[inline(always)]
    unsafe fn store(p: *mut u64, v: u64) {
        // SAFETY: the caller's pointer is valid for one word.
        unsafe { p.write(v) }
    }
    #[inline(always)]
    unsafe fn splat(x: u64) -> u64 {
        x
    }
    #[inline(always)]
    unsafe fn gather(base: *const u64, index: *const u32) -> u64 {
        // SAFETY: the caller's index is within the range `base` points to.
        unsafe { base.add(index.read() as usize).read() }
    }
    #[inline(always)]
    unsafe fn add(a: u64, b: u64) -> u64 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    unsafe fn sub(a: u64, b: u64) -> u64 {
        a.wrapping_sub(b)
    }
    #[inline(always)]
    unsafe fn and(a: u64, b: u64) -> u64 {
        a & b
    }
    #[inline(always)]
    unsafe fn or(a: u64, b: u64) -> u64 {
        a | b
    }
    #[inline(always)]
    unsafe fn shl(a: u64, count: u32) -> u64 {
        a << count
    }
    #[inline(always)]
    unsafe fn shr(a: u64, count: u32) -> u64 {
        a >> count
    }
    #[inline(always)]
    unsafe fn csub(x: u64, m: u64) -> u64 {
        x.min(x.wrapping_sub(m))
    }
    #[inline(always)]
    unsafe fn cadd(x: u64, m: u64) -> u64 {
        x.min(x.wrapping_add(m))
    }
    #[inline(always)]
    unsafe fn csub_negative(x: u64, m: u64) -> u64 {
        x.max(x.wrapping_sub(m))
    }
    #[inline(always)]
    unsafe fn mul_lo(a: u64, b: u64) -> u64 {
        a.wrapping_mul(b)
    }
    #[inline(always)]
    unsafe fn mul_hi(a: u64, b: u64) -> u64 {
        ((u128::from(a) * u128::from(b)) >> 64) as u64
    }
    #[inline(always)]
    unsafe fn carry(sum: u64, addend: u64) -> u64 {
        u64::from(sum < addend)
    }
    #[inline(always)]
    unsafe fn zero_block() -> Self::Block {
        [[0; 8]; 8]
    }
    #[inline(always)]
    unsafe fn transpose(block: &mut Self::Block) {
        // Column c of the block is block[c]; transposing words swaps block[c][r] with block[r][c].
        for c in 0..8 {
            for r in 0..c {
                let word = block[c][r];
                block[c][r] = block[r][c];
                block[r][c] = word;
            }
        }
    }
}
