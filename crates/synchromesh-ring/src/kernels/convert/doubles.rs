//! The inner loop of a base conversion in doubles: of whole words, or of words split at 24 bits.
//!
//! Three products of parts without rounding [Karatsuba, 1962] stand for one of whole words, which takes two fused operations and
//! three others.

use super::Mode;
use crate::isa::Isa;
use crate::kernels::aligned;
use crate::kernels::lanes::{Consts, Float, FloatKernel, Lanes, Short, TERMS};
use crate::modulus::Modulus;

/// Bits of sources at the most, and of destinations.
const BITS: [u32; 2] = [48, 47];
/// What the products of one sum must stay below, in multiples of q.
const MOST: u64 = 1 << 51;
/// Bits of the lower part of a word that is split,
const PART: u32 = 24;
/// and 3 2^75, beside which doubles are multiples of 2^24.
const BESIDE: u64 = (1024 + 51 + PART as u64) << 52 | 1 << 51;
/// Vectors of a row computed together.
const COLUMNS: usize = 4;
/// Numbers of sources that are worth splitting: fewer words take as long whole, and the parts of more leave the first-level
/// cache.
const SPLIT: std::ops::Range<usize> = 8..32;

/// How many doubles stand for a word of these sources, none if doubles serve no destination.
pub(super) fn parts(src: &[Modulus], dst: &[Modulus], isa: Isa) -> usize {
    match isa.multiplies_doubles() && src.iter().all(|p| p.bits() <= BITS[0]) && dst.iter().any(serves) {
        true if SPLIT.contains(&src.len()) => 3,
        true => 1,
        false => 0,
    }
}

/// Whether they do for this destination.
pub(super) fn serves(q: &Modulus) -> bool {
    q.bits() <= BITS[1]
}

/// The doubles that stand for a factor: itself, or its parts and what they add up to.
pub(super) fn factor(m: u64, parts: usize) -> Vec<u64> {
    let high = (m + (1 << (PART - 1))) >> PART;
    let low = m as i64 - (high << PART) as i64;
    let all = [low as f64, (high << PART) as f64, (low + high as i64) as f64];
    if parts == 1 { vec![(m as f64).to_bits()] } else { all.map(f64::to_bits).to_vec() }
}

/// Products that one sum takes of words below 2^bits.
pub(super) fn terms(bits: u32) -> usize {
    (((MOST - 1) >> bits) as usize).min(TERMS)
}

/// The doubles that stand for words y < 2^48: themselves, or low, 2^24 high and low + high for y = low + 2^24 high, |low| <= 2^23.
pub(super) struct Enter<'a, const PARTS: usize> {
    pub(super) y: &'a [u64],
    pub(super) out: [&'a mut [u64]; PARTS],
}

impl<const PARTS: usize> FloatKernel for Enter<'_, PARTS> {
    #[inline(always)]
    unsafe fn run<B: Float>(mut self) {
        // SAFETY: all have as many words as y, a multiple of 64.
        unsafe {
            for i in (0..self.y.len()).step_by(B::WIDTH) {
                let y = Short::<B>::enter(B::load(self.y.as_ptr().add(i)));
                let parts = if PARTS == 1 { [y; 3] } else { split::<B>(y) };
                for (out, part) in self.out.iter_mut().zip(parts) {
                    B::store(out.as_mut_ptr().add(i), part);
                }
            }
        }
    }
}

/// low, 2^24 high and low + high.
#[inline(always)]
unsafe fn split<B: Float>(y: B::V) -> [B::V; 3] {
    // SAFETY: forwarded contract.
    unsafe {
        let high = upper::<B>(y);
        let low = B::minus(y, high);
        [low, high, B::fused(high, power::<B>(-(PART as i32)), low)]
    }
}

/// The multiple of 2^24 nearest to an integer within 2^52.
#[inline(always)]
unsafe fn upper<B: Float>(x: B::V) -> B::V {
    // SAFETY: forwarded contract.
    unsafe { B::minus(B::plus(x, B::splat(BESIDE)), B::splat(BESIDE)) }
}

/// 2^exponent.
#[inline(always)]
unsafe fn power<B: Float>(exponent: i32) -> B::V {
    // SAFETY: forwarded contract.
    unsafe { B::splat(((1023 + exponent) as u64) << 52) }
}

/// As [`Row`](super::tile::Row), from what [`Enter`] makes of the sources.
pub(super) struct DoubleRow<'a, const PARTS: usize> {
    pub(super) q: &'a Modulus,
    /// Those of all sources, and of the overflow counts if there are any, `PARTS` each.
    pub(super) y: &'a [&'a [u64]],
    /// What [`factor`] makes of as many factors.
    pub(super) factors: &'a [u64],
    /// Products of one sum.
    pub(super) terms: usize,
    pub(super) bias: u64,
    pub(super) out: *mut u64,
    pub(super) len: usize,
    pub(super) mode: Mode,
}

impl<const PARTS: usize> FloatKernel for DoubleRow<'_, PARTS> {
    #[inline(always)]
    unsafe fn run<B: Float>(self) {
        let out = self.out;
        // SAFETY: y and `out` have `len` words, a multiple of 64.
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

impl<const PARTS: usize> DoubleRow<'_, PARTS> {
    #[inline(always)]
    unsafe fn columns<B: Float>(&self, out: *mut u64, k: &Consts<B::V>, finish: impl Fn(*mut u64, B::V)) {
        // SAFETY: forwarded contract.
        unsafe {
            let half = ((self.q.value() - 1) / 2) as f64;
            let all = PARTS * self.terms;
            for i in (0..self.len).step_by(COLUMNS * B::WIDTH) {
                // What the sum is so far, less (q - 1)/2.
                let mut rest = [B::splat((self.bias as f64 - half).to_bits()); COLUMNS];
                for (n, (y, factors)) in self.y.chunks(all).zip(self.factors.chunks(all)).enumerate() {
                    let mut sums = [Sums::<B::V, PARTS>([rest[0]; 3]); COLUMNS];
                    for (sums, rest) in sums.iter_mut().zip(rest) {
                        let rest = if n == 0 { rest } else { Short::<B>::centred(rest, k) };
                        *sums = Sums::start::<B>(rest, y.len() / PARTS);
                    }
                    for (y, factors) in y.chunks_exact(PARTS).zip(factors.chunks_exact(PARTS)) {
                        let mut factor = [B::splat(*factors.get_unchecked(0)); PARTS];
                        for (factor, &word) in factor.iter_mut().zip(factors) {
                            *factor = B::splat(word);
                        }
                        for (c, sums) in sums.iter_mut().enumerate() {
                            let mut words = factor;
                            for (word, y) in words.iter_mut().zip(y) {
                                *word = B::load(y.as_ptr().add(i + c * B::WIDTH));
                            }
                            sums.add::<B>(words, factor);
                        }
                    }
                    for (rest, sums) in rest.iter_mut().zip(sums) {
                        *rest = sums.join::<B>(k);
                    }
                }
                for (c, rest) in rest.into_iter().enumerate() {
                    finish(out.add(i + c * B::WIDTH), Short::<B>::residue(rest, k));
                }
            }
        }
    }
}

/// A sum of products in two or three that lose nothing: the halves of those of whole words, or the sums of those of parts.
#[derive(Clone, Copy)]
struct Sums<V, const PARTS: usize>([V; 3]);

impl<V: Copy, const PARTS: usize> Sums<V, PARTS> {
    /// Of `terms` products and a residue of either sign.
    #[inline(always)]
    unsafe fn start<B: Float<V = V>>(residue: V, terms: usize) -> Self {
        // SAFETY: forwarded contract.
        unsafe {
            if PARTS == 1 {
                let (low, high) = Short::<B>::start(residue, terms);
                return Self([low, high, high]);
            }
            Self([residue, B::splat(0), residue])
        }
    }

    #[inline(always)]
    unsafe fn add<B: Float<V = V>>(&mut self, y: [V; PARTS], factor: [V; PARTS]) {
        // SAFETY: forwarded contract.
        unsafe {
            if PARTS == 1 {
                let mut halves = (self.0[0], self.0[1]);
                Short::<B>::add_product(&mut halves, y[0], factor[0]);
                (self.0[0], self.0[1]) = halves;
                return;
            }
            for (part, sum) in self.0.iter_mut().enumerate() {
                *sum = B::fused(y[part], factor[part], *sum);
            }
        }
    }

    /// What is summed up, up to multiples of q, within 2^52.
    #[inline(always)]
    unsafe fn join<B: Float<V = V>>(self, k: &Consts<V>) -> V {
        // SAFETY: forwarded contract.
        unsafe {
            let Self([lower, higher, all]) = self;
            if PARTS == 1 {
                return Short::<B>::amount((lower, higher), k);
            }
            let middle = B::minus_fused(higher, power::<B>(-2 * PART as i32), B::minus(all, lower));
            let upper = upper::<B>(middle);
            let high = B::fused(upper, power::<B>(PART as i32), higher);
            let low = B::fused(B::minus(middle, upper), power::<B>(PART as i32), lower);
            B::plus(Short::<B>::centred(high, k), low)
        }
    }
}
