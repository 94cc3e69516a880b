//! The inner loop of a base conversion in doubles from many sources: words are split at 24 bits, so that three products without
//! rounding [Karatsuba, 1962] stand for one, where whole words take two fused ones and both halves of their sums apart.

use super::Mode;
use crate::isa::Isa;
use crate::kernels::aligned;
use crate::kernels::lanes::{Consts, Float, FloatKernel, Lanes, SPLIT, Short};
use crate::modulus::Modulus;

/// Most products of one sum: of |y_0|, |m_0|, |m_1| <= 2^23 and |y_1| <= 2^24 the products of sums are at most 3 2^47, so that
/// 20 of them and a residue stay below 2^53.
const TERMS: usize = 20;
/// Vectors of a row computed together.
const COLUMNS: usize = 4;

/// Sources from which on their parts are worth making: with six, products of whole words take as long.
const LEAST_SOURCES: usize = 8;

/// Whether words of these sources are split: all below 2^48.
pub(super) fn pays(src: &[Modulus], isa: Isa) -> bool {
    isa.multiplies_doubles() && src.len() >= LEAST_SOURCES && src.iter().all(|p| p.bits() <= 48)
}

/// Whether they are for this destination: below 2^47.
pub(super) fn serves(q: &Modulus) -> bool {
    q.bits() <= 47
}

/// The parts of a factor below 2^47, as [`Split`] has them.
pub(super) fn split_factor(m: u64) -> [u64; 3] {
    let high = (m + (1 << (SPLIT - 1))) >> SPLIT;
    let low = m as i64 - (high << SPLIT) as i64;
    [low as f64, high as f64, (low + high as i64) as f64].map(f64::to_bits)
}

/// Of y = low + 2^24 high, |low| <= 2^23, on words y < 2^48: low, high and their sum, doubles.
pub(super) struct Split<'a> {
    pub(super) y: &'a [u64],
    pub(super) out: [&'a mut [u64]; 3],
}

impl FloatKernel for Split<'_> {
    #[inline(always)]
    unsafe fn run<B: Float>(self) {
        // SAFETY: all have as many words as y, a multiple of 64.
        unsafe {
            for i in (0..self.y.len()).step_by(B::WIDTH) {
                let [low, high] = Short::<B>::split(B::load(self.y.as_ptr().add(i)));
                B::store(self.out[0].as_mut_ptr().add(i), low);
                B::store(self.out[1].as_mut_ptr().add(i), high);
                B::store(self.out[2].as_mut_ptr().add(i), B::plus(low, high));
            }
        }
    }
}

/// As [`Row`](super::tile::Row) for q < 2^47, from the parts of the sources.
pub(super) struct SplitRow<'a> {
    pub(super) q: &'a Modulus,
    /// Those of all sources, and of the overflow counts if there are any.
    pub(super) parts: &'a [[&'a [u64]; 3]],
    /// As many factors.
    pub(super) factors: &'a [[u64; 3]],
    pub(super) bias: u64,
    pub(super) out: *mut u64,
    pub(super) len: usize,
    pub(super) mode: Mode,
}

impl FloatKernel for SplitRow<'_> {
    #[inline(always)]
    unsafe fn run<B: Float>(self) {
        let out = self.out;
        // SAFETY: the parts and `out` have `len` words, a multiple of 64.
        unsafe {
            let k = Short::<B>::consts(self.q);
            match self.mode {
                Mode::Stream if aligned(out) => self.columns::<B>(out, &k, |out, r| B::stream(out, r)),
                Mode::Replace | Mode::Stream => self.columns::<B>(out, &k, |out, r| B::store(out, r)),
                Mode::Add => {
                    self.columns::<B>(out, &k, |out, r| B::store(out, B::csub(B::add(B::load(out), r), k.q)));
                }
            }
        }
    }
}

impl SplitRow<'_> {
    #[inline(always)]
    unsafe fn columns<B: Float>(&self, out: *mut u64, k: &Consts<B::V>, finish: impl Fn(*mut u64, B::V)) {
        // SAFETY: forwarded contract.
        unsafe {
            let zero = B::splat(0);
            for i in (0..self.len).step_by(COLUMNS * B::WIDTH) {
                let bias = B::splat((self.bias as f64).to_bits());
                let mut sums = [[bias, zero, bias]; COLUMNS];
                for (parts, factors) in self.parts.chunks(TERMS).zip(self.factors.chunks(TERMS)) {
                    for (parts, factor) in parts.iter().zip(factors) {
                        let factor = factor.map(|part| B::splat(part));
                        for (c, sums) in sums.iter_mut().enumerate() {
                            for (part, sum) in sums.iter_mut().enumerate() {
                                let y = B::load(parts[part].as_ptr().add(i + c * B::WIDTH));
                                *sum = B::fused(y, factor[part], *sum);
                            }
                        }
                    }
                    for sums in &mut sums {
                        let joined = Short::<B>::join_parts(*sums, k);
                        *sums = [joined, zero, joined];
                    }
                }
                for (c, sums) in sums.into_iter().enumerate() {
                    finish(out.add(i + c * B::WIDTH), Short::<B>::leave(sums[0], k));
                }
            }
        }
    }
}
