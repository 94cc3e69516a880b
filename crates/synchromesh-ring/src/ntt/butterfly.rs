//! The passes of the transform, written once over lanes.

use std::ops::Range;

use super::network::{
    FINAL, FREE, Factor, LAZY, LOOSE, LOWER, PLAIN, PerLane, Place, REDUCED, SPLIT, Short, TIGHT, Uniform,
    forward_network, inverse_network, is_short_within, limit,
};
use super::tables::{LEAF_LANES, Pass, leaf_words, words_per_block};
use crate::kernels::lanes::{Consts, Kernel, Lanes};
use crate::modulus::{Modulus, Scalar};

/// A forward transform: src < q to dst < q; src may equal dst.
pub(super) struct Forward<'a> {
    pub(super) modulus: &'a Modulus,
    pub(super) passes: &'a [Pass],
    pub(super) words: &'a [u64],
    pub(super) leaves: usize,
    pub(super) log_n: u32,
    /// The blocks of the last uniform pass to finish; what earlier ones prepared for them is in dst.
    pub(super) run: Range<usize>,
    pub(super) src: *const u64,
    pub(super) dst: *mut u64,
}

/// An inverse transform: src < q to dst < q, multiplied by `last`; src may equal work, and work dst.
pub(super) struct Inverse<'a> {
    pub(super) modulus: &'a Modulus,
    pub(super) passes: &'a [Pass],
    pub(super) words: &'a [u64],
    pub(super) leaves: usize,
    pub(super) log_n: u32,
    /// 1/N, for the sums of the last layer; its differences find it in their factor.
    pub(super) last: Scalar,
    pub(super) src: *const u64,
    /// Room for all passes but the last.
    pub(super) work: *mut u64,
    pub(super) dst: *mut u64,
    /// The last pass writes past the caches; dst is aligned.
    pub(super) stream: bool,
}

/// Words of a cache line. What goes past the caches goes in whole ones: the halves of eight or sixteen lines at a time are more
/// than a core gathers by itself.
const LINE: usize = 8;

/// Points of the largest network.
const MOST_POINTS: usize = 16;

/// A line for each point of a network.
#[repr(align(64))]
struct Lines([u64; MOST_POINTS * LINE]);

/// log2 of the blocks of the last uniform pass, and of the words in each.
fn leaf_groups(passes: &[Pass], log_n: u32) -> (u32, u32) {
    let groups = passes.last().map_or(0, |p| p.first);
    (groups, log_n - groups)
}

impl Kernel for Forward<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: forwarded contract.
        unsafe {
            match limit(self.modulus.bits()) {
                FREE if L::ROOM => self.run_within::<L, FREE>(),
                LOOSE if L::ROOM => self.run_within::<L, LOOSE>(),
                _ => self.run_within::<L, TIGHT>(),
            }
        }
    }
}

impl Forward<'_> {
    #[inline(always)]
    unsafe fn run_within<L: Lanes, const LIMIT: u8>(self) {
        let short = is_short_within::<L>(LIMIT);
        // SAFETY: src and dst are valid for N words and the table has the layout of `tables::build`; every pointer
        // below stays inside them.
        unsafe {
            let k = L::consts(self.modulus);
            let (groups, log_group) = leaf_groups(self.passes, self.log_n);
            for group in self.run {
                // Depth first: a block is finished while it is in cache.
                for (i, pass) in self.passes.iter().enumerate() {
                    let span = groups - pass.first;
                    if group & ((1 << span) - 1) != 0 {
                        continue;
                    }
                    let (block, log_block) = (group >> span, self.log_n - pass.first);
                    let factors = self.words.as_ptr().add(pass.offset + block * words_per_block(pass.layers));
                    let dst = self.dst.add(block << log_block);
                    let src = if i == 0 { self.src } else { dst.cast_const() };
                    let stride = 1usize << (log_block - pass.layers);
                    match (pass.layers, i) {
                        (2, 0) => forward_pass::<L, LIMIT, 4, true>(src, dst, stride, factors, &k),
                        (2, _) => forward_pass::<L, LIMIT, 4, false>(src, dst, stride, factors, &k),
                        (4, 0) => forward_pass::<L, LIMIT, 16, true>(src, dst, stride, factors, &k),
                        (4, _) => forward_pass::<L, LIMIT, 16, false>(src, dst, stride, factors, &k),
                        (_, 0) => forward_pass::<L, LIMIT, 8, true>(src, dst, stride, factors, &k),
                        _ => forward_pass::<L, LIMIT, 8, false>(src, dst, stride, factors, &k),
                    }
                }
                let leaves = 1usize << (log_group - 6);
                for leaf in (group * leaves..(group + 1) * leaves).step_by(2) {
                    let factors = self.words.as_ptr().add(self.leaves + leaf * leaf_words(short));
                    let x = self.dst.add(leaf * 64);
                    if L::ALONE {
                        forward_leaves::<L, LIMIT, 1>(x, factors, &k);
                        forward_leaves::<L, LIMIT, 1>(x.add(64), factors.add(leaf_words(short)), &k);
                    } else {
                        forward_leaves::<L, LIMIT, 2>(x, factors, &k);
                    }
                }
            }
        }
    }
}

impl Kernel for Inverse<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: forwarded contract.
        unsafe {
            match limit(self.modulus.bits()) {
                FREE if L::ROOM => self.run_within::<L, FREE>(),
                LOOSE if L::ROOM => self.run_within::<L, LOOSE>(),
                _ => self.run_within::<L, TIGHT>(),
            }
        }
    }
}

impl Inverse<'_> {
    #[inline(always)]
    unsafe fn run_within<L: Lanes, const LIMIT: u8>(self) {
        let short = is_short_within::<L>(LIMIT);
        // SAFETY: as for `Forward`.
        unsafe {
            let k = L::consts(self.modulus);
            let last = (L::splat(L::factor(&self.last, self.modulus)), L::splat(L::companion(&self.last)));
            let (groups, log_group) = leaf_groups(self.passes, self.log_n);
            for group in 0..1usize << groups {
                let leaves = 1usize << (log_group - 6);
                for leaf in (group * leaves..(group + 1) * leaves).step_by(2) {
                    let factors = self.words.as_ptr().add(self.leaves + leaf * leaf_words(short));
                    let (src, work) = (self.src.add(leaf * 64), self.work.add(leaf * 64));
                    if L::ALONE {
                        inverse_leaves::<L, LIMIT, 1>(src, work, factors, &k);
                        inverse_leaves::<L, LIMIT, 1>(src.add(64), work.add(64), factors.add(leaf_words(short)), &k);
                    } else {
                        inverse_leaves::<L, LIMIT, 2>(src, work, factors, &k);
                    }
                }
                for pass in self.passes.iter().rev() {
                    let span = groups - pass.first;
                    if (group + 1) & ((1 << span) - 1) != 0 {
                        break;
                    }
                    let (block, log_block) = (group >> span, self.log_n - pass.first);
                    let factors = self.words.as_ptr().add(pass.offset + block * words_per_block(pass.layers));
                    let work = self.work.add(block << log_block);
                    let out = if pass.first == 0 { (self.dst, self.stream) } else { (work, false) };
                    let stride = 1usize << (log_block - pass.layers);
                    // The block is the subtrahend of the next pass if its index is odd.
                    match (pass.layers, pass.first, block & 1) {
                        (2, 0, _) => inverse_pass::<L, LIMIT, 4, FINAL>(work, out, stride, factors, last, &k),
                        (2, _, 0) => inverse_pass::<L, LIMIT, 4, PLAIN>(work, out, stride, factors, last, &k),
                        (2, ..) => inverse_pass::<L, LIMIT, 4, LOWER>(work, out, stride, factors, last, &k),
                        (4, 0, _) => inverse_pass::<L, LIMIT, 16, FINAL>(work, out, stride, factors, last, &k),
                        (4, _, 0) => inverse_pass::<L, LIMIT, 16, PLAIN>(work, out, stride, factors, last, &k),
                        (4, ..) => inverse_pass::<L, LIMIT, 16, LOWER>(work, out, stride, factors, last, &k),
                        (_, 0, _) => inverse_pass::<L, LIMIT, 8, FINAL>(work, out, stride, factors, last, &k),
                        (_, _, 0) => inverse_pass::<L, LIMIT, 8, PLAIN>(work, out, stride, factors, last, &k),
                        _ => inverse_pass::<L, LIMIT, 8, LOWER>(work, out, stride, factors, last, &k),
                    }
                }
            }
        }
    }
}

/// R-point butterflies on elements `stride` apart, for each of `stride` starting points, as many at a time as there are
/// registers for.
#[inline(always)]
unsafe fn forward_pass<L: Lanes, const LIMIT: u8, const R: usize, const FIRST: bool>(
    src: *const u64,
    dst: *mut u64,
    stride: usize,
    factors: *const u64,
    k: &Consts<L::V>,
) {
    // SAFETY: forwarded contract.
    unsafe {
        if R == 16 || R == 8 && L::ALONE {
            forward_columns::<L, LIMIT, 1, R, FIRST>(src, dst, stride, factors, k);
        } else {
            forward_columns::<L, LIMIT, 2, R, FIRST>(src, dst, stride, factors, k);
        }
    }
}

/// As [`forward_pass`], C vectors at a time.
#[inline(always)]
unsafe fn forward_columns<L: Lanes, const LIMIT: u8, const C: usize, const R: usize, const FIRST: bool>(
    src: *const u64,
    dst: *mut u64,
    stride: usize,
    factors: *const u64,
    k: &Consts<L::V>,
) {
    // SAFETY: R stride words are valid at src and dst, and C WIDTH divides stride.
    unsafe {
        let mut x = [[k.q; R]; C];
        for i in (0..stride).step_by(C * L::WIDTH) {
            for r in 0..R {
                for c in 0..C {
                    let word = L::load(src.add(r * stride + i + c * L::WIDTH));
                    x[c][r] = if FIRST { L::enter(word) } else { word };
                }
            }
            let place = if FIRST { Place::First } else { Place::Middle };
            forward_network::<L, Uniform, LIMIT, C, R>(&mut x, [Uniform(factors); C], place, k);
            for r in 0..R {
                for c in 0..C {
                    L::store(dst.add(r * stride + i + c * L::WIDTH), x[c][r]);
                }
            }
        }
    }
}

/// As [`forward_pass`], the other way; written past the caches if `stream`.
#[inline(always)]
unsafe fn inverse_pass<L: Lanes, const LIMIT: u8, const R: usize, const ROOT: u8>(
    src: *const u64,
    dst: (*mut u64, bool),
    stride: usize,
    factors: *const u64,
    last: Factor<L>,
    k: &Consts<L::V>,
) {
    // SAFETY: forwarded contract.
    unsafe {
        if R == 16 || R == 8 && L::ALONE {
            inverse_columns::<L, LIMIT, 1, R, ROOT>(src, dst, stride, factors, last, k);
        } else {
            inverse_columns::<L, LIMIT, 2, R, ROOT>(src, dst, stride, factors, last, k);
        }
    }
}

/// As [`inverse_pass`], C vectors at a time.
#[inline(always)]
unsafe fn inverse_columns<L: Lanes, const LIMIT: u8, const C: usize, const R: usize, const ROOT: u8>(
    src: *const u64,
    (dst, stream): (*mut u64, bool),
    stride: usize,
    factors: *const u64,
    last: Factor<L>,
    k: &Consts<L::V>,
) {
    // SAFETY: R stride words are valid at src and dst, and C WIDTH divides stride.
    unsafe {
        let gathers = ROOT == FINAL && stream && C * L::WIDTH < LINE;
        let mut lines = Lines([0; MOST_POINTS * LINE]);
        let mut x = [[k.q; R]; C];
        for i in (0..stride).step_by(C * L::WIDTH) {
            for r in 0..R {
                for c in 0..C {
                    x[c][r] = L::load(src.add(r * stride + i + c * L::WIDTH));
                }
            }
            inverse_network::<L, Uniform, LIMIT, C, R>(&mut x, [Uniform(factors); C], SPLIT, [ROOT; C], last, k);
            for r in 0..R {
                for c in 0..C {
                    let at = i + c * L::WIDTH;
                    let out = dst.add(r * stride + at);
                    if gathers {
                        L::store(lines.0.as_mut_ptr().add(r * LINE + at % LINE), x[c][r]);
                    } else if ROOT == FINAL && stream {
                        L::stream(out, x[c][r]);
                    } else {
                        L::store(out, x[c][r]);
                    }
                }
            }
            let done = i + C * L::WIDTH;
            if gathers && done.is_multiple_of(LINE) {
                for r in 0..R {
                    for w in (0..LINE).step_by(L::WIDTH) {
                        let word = L::load(lines.0.as_ptr().add(r * LINE + w));
                        L::stream(dst.add(r * stride + done - LINE + w), word);
                    }
                }
            }
        }
    }
}

/// Words of blocks of 64 as columns of 8 vectors: column g of each.
#[inline(always)]
fn column<L: Lanes, const C: usize>(blocks: &mut [L::Block; C], g: usize) -> [[L::V; 8]; C] {
    blocks.each_mut().map(|block| block.as_mut()[g])
}

/// The last six layers on C blocks of 64, left transposed.
#[inline(always)]
unsafe fn forward_leaves<L: Lanes, const LIMIT: u8, const C: usize>(
    x: *mut u64,
    factors: *const u64,
    k: &Consts<L::V>,
) {
    // SAFETY: 64 C words are valid at x, and the factors of C blocks at `factors`.
    unsafe {
        let mut blocks = [L::zero_block(); C];
        for g in 0..8 / L::WIDTH {
            let mut rows = [[k.q; 8]; C];
            for r in 0..8 {
                for c in 0..C {
                    rows[c][r] = L::load(x.add(64 * c + 8 * r + g * L::WIDTH));
                }
            }
            let factors = std::array::from_fn(|c| Uniform(factors.add(c * leaf_words(is_short_within::<L>(LIMIT)))));
            forward_network::<L, Uniform, LIMIT, C, 8>(&mut rows, factors, Place::Leaf, k);
            for c in 0..C {
                blocks[c].as_mut()[g] = rows[c];
            }
        }
        for block in &mut blocks {
            L::transpose(block);
        }
        for g in 0..8 / L::WIDTH {
            let mut rows = column::<L, C>(&mut blocks, g);
            let factors = factors.add(LEAF_LANES + g * L::WIDTH);
            if is_short_within::<L>(LIMIT) {
                let factors = std::array::from_fn(|c| Short(factors.add(c * leaf_words(true)), k));
                forward_network::<L, Short<'_, L::V>, LIMIT, C, 8>(&mut rows, factors, Place::Last, k);
            } else {
                let factors = std::array::from_fn(|c| PerLane(factors.add(c * leaf_words(false))));
                forward_network::<L, PerLane, LIMIT, C, 8>(&mut rows, factors, Place::Last, k);
            }
            for r in 0..8 {
                for c in 0..C {
                    L::store(x.add(64 * c + 8 * r + g * L::WIDTH), rows[c][r]);
                }
            }
        }
    }
}

/// The first six inverse layers on C blocks of 64 found transposed.
#[inline(always)]
unsafe fn inverse_leaves<L: Lanes, const LIMIT: u8, const C: usize>(
    src: *const u64,
    dst: *mut u64,
    factors: *const u64,
    k: &Consts<L::V>,
) {
    // SAFETY: 64 C words are valid at src and dst, and the factors of C blocks at `factors`.
    unsafe {
        let unused = (k.q, k.q);
        // The next pass subtracts every other block.
        let lower = std::array::from_fn(|c| if c == 1 { LOWER } else { PLAIN });
        let mut blocks = [L::zero_block(); C];
        for g in 0..8 / L::WIDTH {
            let mut rows = [[k.q; 8]; C];
            for r in 0..8 {
                for c in 0..C {
                    rows[c][r] = L::enter(L::load(src.add(64 * c + 8 * r + g * L::WIDTH)));
                }
            }
            let factors = factors.add(LEAF_LANES + g * L::WIDTH);
            if is_short_within::<L>(LIMIT) {
                let factors = std::array::from_fn(|c| Short(factors.add(c * leaf_words(true)), k));
                inverse_network::<L, Short<'_, L::V>, LIMIT, C, 8>(&mut rows, factors, REDUCED, [PLAIN; C], unused, k);
            } else {
                let factors = std::array::from_fn(|c| PerLane(factors.add(c * leaf_words(false))));
                inverse_network::<L, PerLane, LIMIT, C, 8>(&mut rows, factors, REDUCED, [PLAIN; C], unused, k);
            }
            for c in 0..C {
                blocks[c].as_mut()[g] = rows[c];
            }
        }
        for block in &mut blocks {
            L::transpose(block);
        }
        for g in 0..8 / L::WIDTH {
            let mut rows = column::<L, C>(&mut blocks, g);
            let factors = std::array::from_fn(|c| Uniform(factors.add(c * leaf_words(is_short_within::<L>(LIMIT)))));
            inverse_network::<L, Uniform, LIMIT, C, 8>(&mut rows, factors, LAZY, lower, unused, k);
            for r in 0..8 {
                for c in 0..C {
                    L::store(dst.add(64 * c + 8 * r + g * L::WIDTH), rows[c][r]);
                }
            }
        }
    }
}
