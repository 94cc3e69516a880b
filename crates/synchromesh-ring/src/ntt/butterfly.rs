//! The passes of the transform, written once over lanes.
//!
//! Ranges in terms of z = LAZY q, 2q or 4q by the lanes.
//! Forward (decimation in time, Harvey): in < 2z, out < 2z per layer, inputs of the transform < q.
//! Inverse (decimation in frequency): in < z, out < z per layer, inputs of the transform < q.

use super::tables::{LEAF_LANES, LEAF_WORDS, Pass, words_per_block};
use crate::kernels::lanes::{Consts, Kernel, Lanes};
use crate::modulus::{Modulus, Scalar};

/// A forward transform: src < q to dst < q; src may equal dst.
pub(super) struct Forward<'a> {
    pub(super) modulus: &'a Modulus,
    pub(super) passes: &'a [Pass],
    pub(super) words: &'a [u64],
    pub(super) leaves: usize,
    pub(super) log_n: u32,
    pub(super) src: *const u64,
    pub(super) dst: *mut u64,
}

/// An inverse transform: src < q to dst < q, multiplied by `last`; src may equal dst.
pub(super) struct Inverse<'a> {
    pub(super) modulus: &'a Modulus,
    pub(super) passes: &'a [Pass],
    pub(super) words: &'a [u64],
    pub(super) leaves: usize,
    pub(super) log_n: u32,
    /// 1/N, for the sums of the last layer; its differences find it in their factor.
    pub(super) last: Scalar,
    pub(super) src: *const u64,
    pub(super) dst: *mut u64,
}

/// log2 of the blocks of the last uniform pass, and of the words in each.
fn leaf_groups(passes: &[Pass], log_n: u32) -> (u32, u32) {
    let groups = passes.last().map_or(0, |p| p.first);
    (groups, log_n - groups)
}

impl Kernel for Forward<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: src and dst are valid for N words and the table has the layout of `tables::build`; every pointer
        // below stays inside them.
        unsafe {
            let k = L::consts(self.modulus);
            let (groups, log_group) = leaf_groups(self.passes, self.log_n);
            for group in 0..1usize << groups {
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
                        (2, 0) => forward_pass::<L, 2, 4, true>(src, dst, stride, factors, &k),
                        (2, _) => forward_pass::<L, 2, 4, false>(src, dst, stride, factors, &k),
                        (4, 0) => forward_pass::<L, 1, 16, true>(src, dst, stride, factors, &k),
                        (4, _) => forward_pass::<L, 1, 16, false>(src, dst, stride, factors, &k),
                        (_, 0) => forward_pass::<L, 2, 8, true>(src, dst, stride, factors, &k),
                        _ => forward_pass::<L, 2, 8, false>(src, dst, stride, factors, &k),
                    }
                }
                let leaves = 1usize << (log_group - 6);
                for leaf in (group * leaves..(group + 1) * leaves).step_by(2) {
                    let factors = self.words.as_ptr().add(self.leaves + leaf * LEAF_WORDS);
                    forward_leaves::<L>(self.dst.add(leaf * 64), factors, &k);
                }
            }
        }
    }
}

impl Kernel for Inverse<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: as for `Forward`.
        unsafe {
            let k = L::consts(self.modulus);
            let last = (L::splat(self.last.value), L::splat(L::companion(&self.last)));
            let (groups, log_group) = leaf_groups(self.passes, self.log_n);
            for group in 0..1usize << groups {
                let leaves = 1usize << (log_group - 6);
                for leaf in (group * leaves..(group + 1) * leaves).step_by(2) {
                    let factors = self.words.as_ptr().add(self.leaves + leaf * LEAF_WORDS);
                    inverse_leaves::<L>(self.src.add(leaf * 64), self.dst.add(leaf * 64), factors, &k);
                }
                for pass in self.passes.iter().rev() {
                    let span = groups - pass.first;
                    if (group + 1) & ((1 << span) - 1) != 0 {
                        break;
                    }
                    let (block, log_block) = (group >> span, self.log_n - pass.first);
                    let factors = self.words.as_ptr().add(pass.offset + block * words_per_block(pass.layers));
                    let dst = self.dst.add(block << log_block);
                    let stride = 1usize << (log_block - pass.layers);
                    // The block is the subtrahend of the next pass if its index is odd.
                    match (pass.layers, pass.first, block & 1) {
                        (2, 0, _) => inverse_pass::<L, 2, 4, FINAL>(dst, stride, factors, last, &k),
                        (2, _, 0) => inverse_pass::<L, 2, 4, PLAIN>(dst, stride, factors, last, &k),
                        (2, ..) => inverse_pass::<L, 2, 4, LOWER>(dst, stride, factors, last, &k),
                        (4, 0, _) => inverse_pass::<L, 1, 16, FINAL>(dst, stride, factors, last, &k),
                        (4, _, 0) => inverse_pass::<L, 1, 16, PLAIN>(dst, stride, factors, last, &k),
                        (4, ..) => inverse_pass::<L, 1, 16, LOWER>(dst, stride, factors, last, &k),
                        (_, 0, _) => inverse_pass::<L, 2, 8, FINAL>(dst, stride, factors, last, &k),
                        (_, _, 0) => inverse_pass::<L, 2, 8, PLAIN>(dst, stride, factors, last, &k),
                        _ => inverse_pass::<L, 2, 8, LOWER>(dst, stride, factors, last, &k),
                    }
                }
            }
        }
    }
}

/// A factor and its companion.
type Factor<L> = (<L as Lanes>::V, <L as Lanes>::V);

/// Where a butterfly network finds the factor of its sub-tree node t.
trait Factors<L: Lanes>: Copy {
    unsafe fn at(self, t: usize) -> Factor<L>;
}

/// One factor for all lanes.
#[derive(Clone, Copy)]
struct Uniform(*const u64);

/// A factor for each lane; points at the factors of the first lane.
#[derive(Clone, Copy)]
struct PerLane(*const u64);

impl<L: Lanes> Factors<L> for Uniform {
    #[inline(always)]
    unsafe fn at(self, t: usize) -> Factor<L> {
        // SAFETY: the block of the table has a pair for every node of the sub-tree.
        unsafe { (L::splat(*self.0.add(2 * t - 2)), L::splat(*self.0.add(2 * t - 1))) }
    }
}

impl<L: Lanes> Factors<L> for PerLane {
    #[inline(always)]
    unsafe fn at(self, t: usize) -> Factor<L> {
        // SAFETY: the block of the table has eight pairs for every node of the sub-tree.
        unsafe { (L::load(self.0.add(16 * t - 16)), L::load(self.0.add(16 * t - 8))) }
    }
}

/// (x, y) -> (x + w y, x - w y). in: < 2z, or x < z if `first`; out: < 2z; see [`Lanes::butterfly`] for `exact`.
#[inline(always)]
unsafe fn forward_butterfly<L: Lanes>(
    x: &mut L::V,
    y: &mut L::V,
    w: Factor<L>,
    first: bool,
    exact: bool,
    k: &Consts<L::V>,
) {
    // SAFETY: forwarded contract.
    unsafe {
        let u = if first { *x } else { L::csub(*x, k.lazy) };
        (*x, *y) = L::butterfly(u, *y, w, exact, k);
    }
}

/// As [`forward_butterfly`], fully reduced. in: < 2z; out: < q.
#[inline(always)]
unsafe fn forward_butterfly_last<L: Lanes>(x: &mut L::V, y: &mut L::V, w: Factor<L>, k: &Consts<L::V>) {
    // SAFETY: forwarded contract.
    unsafe {
        let u = L::reduce_lazy(L::csub(*x, k.lazy), k);
        let v = L::reduce_lazy(L::mul_twiddle(*y, w, k), k);
        *x = L::csub(L::add(u, v), k.q);
        *y = L::cadd(L::sub(u, v), k.q);
    }
}

/// (x, y) -> (x + y, (x - y) w). in: as `input` says; out: < z, or both in [-z, 0) if `lower`. A subtrahend in
/// [-z, 0) saves the addition of z that keeps the difference positive.
#[inline(always)]
unsafe fn inverse_butterfly<L: Lanes>(
    x: &mut L::V,
    y: &mut L::V,
    w: Factor<L>,
    input: u8,
    lower: bool,
    k: &Consts<L::V>,
) {
    // SAFETY: forwarded contract.
    unsafe {
        let sum = L::add(*x, *y);
        let difference = if input == SPLIT { L::sub(*x, *y) } else { L::sub(L::add(*x, k.lazy), *y) };
        *x = match (input, lower) {
            (REDUCED, false) => sum,
            (REDUCED, true) => L::sub(sum, k.lazy),
            (LAZY, false) => L::csub(sum, k.lazy),
            (LAZY, true) => L::csub_negative(L::sub(sum, k.lazy), k.lazy),
            (_, false) => L::cadd(sum, k.lazy),
            (_, true) => L::csub_negative(sum, k.lazy),
        };
        *y = if lower { L::mul_twiddle_negative(difference, w, k) } else { L::mul_twiddle(difference, w, k) };
    }
}

/// (x, y) -> ((x + y) last, (x - y) w), fully reduced. in: x < z, y in [-z, 0); out: < q.
#[inline(always)]
unsafe fn inverse_butterfly_last<L: Lanes>(
    x: &mut L::V,
    y: &mut L::V,
    w: Factor<L>,
    last: Factor<L>,
    k: &Consts<L::V>,
) {
    // SAFETY: forwarded contract.
    unsafe {
        let (sum, difference) = (L::add(L::add(*x, k.lazy), *y), L::sub(*x, *y));
        *x = L::reduce_lazy(L::mul_twiddle(sum, last, k), k);
        *y = L::reduce_lazy(L::mul_twiddle(difference, w, k), k);
    }
}

/// One layer on each of C columns of N points: $call on x\[i\], x\[i + half\] with the factor of the block, for all
/// blocks of 2 half. Columns are independent and interleaved, so that latencies overlap.
macro_rules! layer {
    ($x:ident, $n:expr, $half:expr, $f:ident, |$a:ident, $b:ident, $w:ident, $i:ident| $call:expr) => {
        for block in 0..$n / (2 * $half) {
            for $i in 2 * $half * block..2 * $half * block + $half {
                for (x, f) in $x.iter_mut().zip($f) {
                    let $w = f.at($n / (2 * $half) + block);
                    let (mut low, mut high) = (x[$i], x[$i + $half]);
                    let ($a, $b) = (&mut low, &mut high);
                    $call;
                    (x[$i], x[$i + $half]) = (low, high);
                }
            }
        }
    };
}

/// log2(N) layers on N = 4, 8 or 16 points. Inputs below z if `FIRST`; the last layer fully reduced if `LAST`.
#[inline(always)]
unsafe fn forward_network<
    L: Lanes,
    F: Factors<L>,
    const C: usize,
    const N: usize,
    const FIRST: bool,
    const LAST: bool,
>(
    x: &mut [[L::V; N]; C],
    f: [F; C],
    k: &Consts<L::V>,
) {
    // SAFETY: forwarded contract.
    unsafe {
        // Results that the next layer multiplies need not be exact.
        if N == 16 {
            layer!(x, N, 8, f, |a, b, w, i| forward_butterfly::<L>(a, b, w, FIRST, i & 4 == 0, k));
        }
        if N >= 8 {
            layer!(x, N, 4, f, |a, b, w, i| forward_butterfly::<L>(a, b, w, FIRST && N == 8, i & 2 == 0, k));
        }
        layer!(x, N, 2, f, |a, b, w, i| forward_butterfly::<L>(a, b, w, FIRST && N == 4, i & 1 == 0, k));
        if LAST {
            layer!(x, N, 1, f, |a, b, w, _i| forward_butterfly_last::<L>(a, b, w, k));
        } else {
            layer!(x, N, 1, f, |a, b, w, _i| forward_butterfly::<L>(a, b, w, false, true, k));
        }
    }
}

/// What the root layer of an inverse network returns.
const PLAIN: u8 = 0;
/// Results in [-z, 0), for a subtrahend of the next pass.
const LOWER: u8 = 1;
/// Results scaled and below q.
const FINAL: u8 = 2;

/// Where the inputs of an inverse network lie: below q,
const REDUCED: u8 = 0;
/// below z,
const LAZY: u8 = 1;
/// or below z with the subtrahends in [-z, 0).
const SPLIT: u8 = 2;

/// The inverse layers on N = 4, 8 or 16 points; `root` of column c is the range of its results.
#[inline(always)]
unsafe fn inverse_network<L: Lanes, F: Factors<L>, const C: usize, const N: usize>(
    x: &mut [[L::V; N]; C],
    f: [F; C],
    input: u8,
    root: [u8; C],
    last: Factor<L>,
    k: &Consts<L::V>,
) {
    // SAFETY: forwarded contract.
    unsafe {
        // Results that the next layer subtracts are wanted in [-z, 0).
        layer!(x, N, 1, f, |a, b, w, i| inverse_butterfly::<L>(a, b, w, input, i & 2 != 0, k));
        if N > 4 {
            layer!(x, N, 2, f, |a, b, w, i| inverse_butterfly::<L>(a, b, w, SPLIT, i & 4 != 0, k));
        }
        if N > 8 {
            layer!(x, N, 4, f, |a, b, w, i| inverse_butterfly::<L>(a, b, w, SPLIT, i & 8 != 0, k));
        }
        for i in 0..N / 2 {
            for c in 0..C {
                let (mut a, mut b) = (x[c][i], x[c][i + N / 2]);
                if root[c] == FINAL {
                    inverse_butterfly_last::<L>(&mut a, &mut b, f[c].at(1), last, k);
                } else {
                    inverse_butterfly::<L>(&mut a, &mut b, f[c].at(1), SPLIT, root[c] == LOWER, k);
                }
                (x[c][i], x[c][i + N / 2]) = (a, b);
            }
        }
    }
}

/// R-point butterflies on elements `stride` apart, for each of `stride` starting points, C vectors at a time.
#[inline(always)]
unsafe fn forward_pass<L: Lanes, const C: usize, const R: usize, const FIRST: bool>(
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
                    x[c][r] = L::load(src.add(r * stride + i + c * L::WIDTH));
                }
            }
            forward_network::<L, Uniform, C, R, FIRST, false>(&mut x, [Uniform(factors); C], k);
            for r in 0..R {
                for c in 0..C {
                    L::store(dst.add(r * stride + i + c * L::WIDTH), x[c][r]);
                }
            }
        }
    }
}

/// As [`forward_pass`], the other way.
#[inline(always)]
unsafe fn inverse_pass<L: Lanes, const C: usize, const R: usize, const ROOT: u8>(
    dst: *mut u64,
    stride: usize,
    factors: *const u64,
    last: Factor<L>,
    k: &Consts<L::V>,
) {
    // SAFETY: R stride words are valid at dst, and C WIDTH divides stride.
    unsafe {
        let mut x = [[k.q; R]; C];
        for i in (0..stride).step_by(C * L::WIDTH) {
            for r in 0..R {
                for c in 0..C {
                    x[c][r] = L::load(dst.add(r * stride + i + c * L::WIDTH));
                }
            }
            inverse_network::<L, Uniform, C, R>(&mut x, [Uniform(factors); C], SPLIT, [ROOT; C], last, k);
            for r in 0..R {
                for c in 0..C {
                    L::store(dst.add(r * stride + i + c * L::WIDTH), x[c][r]);
                }
            }
        }
    }
}

/// Words of a block of 64 as columns of 8 vectors, for each of two blocks: column g of both.
#[inline(always)]
unsafe fn column<L: Lanes>(blocks: &mut [L::Block; 2], g: usize) -> [[L::V; 8]; 2] {
    let [a, b] = blocks;
    [a.as_mut()[g], b.as_mut()[g]]
}

/// The last six layers on two blocks of 64, left transposed.
#[inline(always)]
unsafe fn forward_leaves<L: Lanes>(x: *mut u64, factors: *const u64, k: &Consts<L::V>) {
    // SAFETY: 128 words are valid at x, and the factors of two blocks at `factors`.
    unsafe {
        let mut blocks = [L::zero_block(), L::zero_block()];
        for g in 0..8 / L::WIDTH {
            let mut rows = [[k.q; 8]; 2];
            for r in 0..8 {
                for c in 0..2 {
                    rows[c][r] = L::load(x.add(64 * c + 8 * r + g * L::WIDTH));
                }
            }
            let factors = [Uniform(factors), Uniform(factors.add(LEAF_WORDS))];
            forward_network::<L, Uniform, 2, 8, false, false>(&mut rows, factors, k);
            for c in 0..2 {
                blocks[c].as_mut()[g] = rows[c];
            }
        }
        L::transpose(&mut blocks[0]);
        L::transpose(&mut blocks[1]);
        for g in 0..8 / L::WIDTH {
            let mut rows = column::<L>(&mut blocks, g);
            let factors = factors.add(LEAF_LANES + g * L::WIDTH);
            let factors = [PerLane(factors), PerLane(factors.add(LEAF_WORDS))];
            forward_network::<L, PerLane, 2, 8, false, true>(&mut rows, factors, k);
            for r in 0..8 {
                for c in 0..2 {
                    L::store(x.add(64 * c + 8 * r + g * L::WIDTH), rows[c][r]);
                }
            }
        }
    }
}

/// The first six inverse layers on two blocks of 64 found transposed.
#[inline(always)]
unsafe fn inverse_leaves<L: Lanes>(src: *const u64, dst: *mut u64, factors: *const u64, k: &Consts<L::V>) {
    // SAFETY: 128 words are valid at src and dst, and the factors of two blocks at `factors`.
    unsafe {
        let unused = (k.q, k.q);
        let mut blocks = [L::zero_block(), L::zero_block()];
        for g in 0..8 / L::WIDTH {
            let mut rows = [[k.q; 8]; 2];
            for r in 0..8 {
                for c in 0..2 {
                    rows[c][r] = L::load(src.add(64 * c + 8 * r + g * L::WIDTH));
                }
            }
            let factors = factors.add(LEAF_LANES + g * L::WIDTH);
            let factors = [PerLane(factors), PerLane(factors.add(LEAF_WORDS))];
            inverse_network::<L, PerLane, 2, 8>(&mut rows, factors, REDUCED, [PLAIN; 2], unused, k);
            for c in 0..2 {
                blocks[c].as_mut()[g] = rows[c];
            }
        }
        L::transpose(&mut blocks[0]);
        L::transpose(&mut blocks[1]);
        for g in 0..8 / L::WIDTH {
            let mut rows = column::<L>(&mut blocks, g);
            let factors = [Uniform(factors), Uniform(factors.add(LEAF_WORDS))];
            inverse_network::<L, Uniform, 2, 8>(&mut rows, factors, LAZY, [PLAIN, LOWER], unused, k);
            for r in 0..8 {
                for c in 0..2 {
                    L::store(dst.add(64 * c + 8 * r + g * L::WIDTH), rows[c][r]);
                }
            }
        }
    }
}
