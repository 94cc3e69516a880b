//! Twiddle factors in the order the passes read them.
//!
//! Butterfly layer l of a forward transform has 2^l blocks, block b with the factor psi^rev(2^l + b). A pass covers
//! several layers; for each of its blocks the factors of the sub-tree it spans are stored together, root first, so a
//! transform reads its table once, front to back.

use super::Factors;
use super::network::is_short;
use crate::kernels::lanes::{Kernel, Lanes};
use crate::modulus::{Modulus, Scalar};

/// Layers of the last forward pass, which works on blocks of 64.
pub(super) const LEAF_LAYERS: u32 = 6;
/// Words of the table for one block of 64: 7 pairs, 2 unused words, and 7 pairs of 8, or 7 times 8 factors if `short`.
pub(super) const fn leaf_words(short: bool) -> usize {
    if short { 72 } else { 128 }
}
/// Where the per-lane factors of a block of 64 begin.
pub(super) const LEAF_LANES: usize = 16;

/// One pass: 2^layers-point butterflies on each of 2^first blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pass {
    /// Layers done before it, also log2 of its number of blocks.
    pub(super) first: u32,
    /// Layers it does, 2 to 4.
    pub(super) layers: u32,
    /// Where its factors begin, in words.
    pub(super) offset: usize,
}

/// The passes before the last one. Sixteen-point passes come last, where their sixteen streams are less than 4 KiB
/// apart and do not compete for one set of the first-level cache.
pub(super) fn passes(log_n: u32) -> Vec<Pass> {
    let split: &[u32] = match log_n - LEAF_LAYERS {
        4 => &[4],
        5 => &[2, 3],
        6 => &[3, 3],
        7 => &[3, 4],
        8 => &[3, 3, 2],
        9 => &[3, 3, 3],
        10 => &[3, 3, 4],
        11 => &[3, 2, 2, 4],
        _ => &[3, 3, 3, 3],
    };
    let (mut first, mut offset) = (0, 0);
    split
        .iter()
        .map(|&layers| {
            let pass = Pass { first, layers, offset };
            offset += words_per_block(layers) << first;
            first += layers;
            pass
        })
        .collect()
}

/// Words of factors for one block of a pass.
pub(super) fn words_per_block(layers: u32) -> usize {
    2 * ((1 << layers) - 1)
}

/// Words on a cache line boundary.
#[derive(Clone, Debug, Default)]
pub(super) struct Aligned(Vec<Line>);

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u64; 8]);

impl Aligned {
    fn new(words: &[u64]) -> Self {
        let line = |chunk: &[u64]| Line(std::array::from_fn(|i| chunk.get(i).copied().unwrap_or(0)));
        Self(words.chunks(8).map(line).collect())
    }

    /// The words, padded to a multiple of 8.
    pub(super) fn words(&self) -> &[u64] {
        // SAFETY: a Line is eight words without padding, so the buffer is 8 len initialised words.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), 8 * self.0.len()) }
    }
}

/// The factors base^rev(node) for all passes, as the lanes want them; `scale` multiplies the root factor.
pub(super) struct Build<'a> {
    pub(super) modulus: &'a Modulus,
    pub(super) base: u64,
    pub(super) log_n: u32,
    pub(super) scale: u64,
    pub(super) factors: &'a mut Factors,
}

impl Kernel for Build<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        *self.factors = build::<L>(self.modulus, self.base, self.log_n, self.scale);
    }
}

/// As [`Build`]; if [`is_short`], per-lane factors are as [`Lanes::short_factor`] wants them.
fn build<L: Lanes>(modulus: &Modulus, base: u64, log_n: u32, scale: u64) -> Factors {
    let short = is_short::<L>(modulus);
    let roots = powers(modulus, base, log_n);
    let node = |first: u32, block: usize, t: usize| {
        let depth = t.ilog2();
        let index = (((1usize << first) + block) << depth) + (t - (1 << depth));
        let root = roots[index];
        modulus.scalar(if index == 1 { modulus.mul(root, scale) } else { root })
    };
    let push_pair = |words: &mut Vec<u64>, w: Scalar| words.extend([L::factor(&w, modulus), L::companion(&w)]);
    let mut words = Vec::with_capacity((2 << log_n) + (1 << log_n) / 4);
    for pass in passes(log_n) {
        for block in 0..1 << pass.first {
            (1..1 << pass.layers).for_each(|t| push_pair(&mut words, node(pass.first, block, t)));
        }
    }
    words.resize(words.len().next_multiple_of(8), 0);
    let leaves = words.len();
    let first = log_n - LEAF_LAYERS;
    for block in 0..1 << first {
        (1..8).for_each(|t| push_pair(&mut words, node(first, block, t)));
        words.extend([0, 0]);
        for t in 1..8 {
            let lanes: [Scalar; 8] = std::array::from_fn(|v| node(first + 3, 8 * block + v, t));
            if short {
                words.extend(lanes.iter().map(|w| L::short_word(w, modulus)));
                continue;
            }
            words.extend(lanes.iter().map(|w| L::factor(w, modulus)));
            words.extend(lanes.iter().map(|w| L::companion(w)));
        }
    }
    Factors { words: Aligned::new(&words), leaves }
}

/// base^rev(k) at k, rev on log_n bits. Four products at a time, whose latencies overlap.
fn powers(modulus: &Modulus, base: u64, log_n: u32) -> Vec<u64> {
    let quarter = 1usize << (log_n - 2);
    let mut table = vec![0; 4 * quarter];
    let step = modulus.scalar(base);
    let mut four = [0, 2, 1, 3].map(|j| modulus.pow(base, j * quarter as u64));
    for k in 0..quarter {
        let at = k.reverse_bits() >> (usize::BITS - log_n);
        table[at..at + 4].copy_from_slice(&four);
        four = four.map(|power| modulus.mul_scalar(power, &step));
    }
    table
}
