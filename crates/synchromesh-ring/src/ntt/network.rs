//! Butterfly networks on 4, 8 or 16 vectors in registers, and how large their words may become.
//!
//! Ranges in terms of z = LAZY q, 2q or 4q by the lanes.
//! Forward (decimation in time, Harvey): in < 2z, out < 2z per layer, inputs of the transform < q.
//! Inverse (decimation in frequency): in < z, out < z per layer, inputs of the transform < q.
//!
//! Lanes of doubles hold words of either sign, |x| < LIMIT q <= 2^52. What is not multiplied grows by less than q a layer,
//! so that above 2^47 it is brought down once a pass.
//!
//! Lanes of 52 bits have room for LIMIT q, LIMIT = 8 for q < 2^49 and 32 for q < 2^47; words are then brought below 2q
//! only before they would leave that room. LIMIT = 4 is the rule above, for all other lanes and moduli.

use crate::kernels::lanes::{Consts, Lanes};
use crate::modulus::Modulus;

/// Whether tables for these lanes and this modulus leave out the companions of per-lane factors.
pub(super) fn is_short<L: Lanes>(modulus: &Modulus) -> bool {
    L::ROOM && is_short_within::<L>(limit(modulus.bits()))
}

/// The same by the multiples of q that words may reach; doubles do without companions.
pub(super) const fn is_short_within<L: Lanes>(limit: u8) -> bool {
    L::DOUBLES || limit == FREE
}

/// Multiples of q that the words of a transform may reach.
pub(super) const fn limit(bits: u32) -> u8 {
    match 52u32.saturating_sub(bits) {
        0..3 => TIGHT,
        3 | 4 => LOOSE,
        _ => FREE,
    }
}

/// [`limit`]s: q < 2^50 or lanes without room, q < 2^49,
pub(super) const TIGHT: u8 = 4;
pub(super) const LOOSE: u8 = 8;
/// and q < 2^47, where no word of a forward transform is too large before the leaves: 1 + 2 (18 - 6) < 32.
pub(super) const FREE: u8 = 32;

/// A factor and its companion.
pub(super) type Factor<L> = (<L as Lanes>::V, <L as Lanes>::V);

/// Where a butterfly network finds the factor of its sub-tree node t.
pub(super) trait Factors<L: Lanes>: Copy {
    unsafe fn at(self, t: usize) -> Factor<L>;
}

/// One factor for all lanes.
#[derive(Clone, Copy)]
pub(super) struct Uniform(pub(super) *const u64);

/// A factor for each lane; points at the factors of the first lane.
#[derive(Clone, Copy)]
pub(super) struct PerLane(pub(super) *const u64);

/// A factor for each lane without its companion; points at the factors of the first lane. Products by it are below
/// (1 + 2x / 2^WORD) q: below 2q where x is below half the room.
#[derive(Clone, Copy)]
pub(super) struct Short<'a, V>(pub(super) *const u64, pub(super) &'a Consts<V>);

impl<L: Lanes> Factors<L> for Short<'_, L::V> {
    #[inline(always)]
    unsafe fn at(self, t: usize) -> Factor<L> {
        // SAFETY: the block of the table has eight factors for every node of the sub-tree.
        unsafe { L::short_factor(L::load(self.0.add(8 * t - 8)), self.1) }
    }
}

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

/// (x, y) -> (x + w y, x - w y), x brought below z first if `down`; see [`Lanes::butterfly`].
#[inline(always)]
unsafe fn forward_butterfly<L: Lanes, const LIMIT: u8>(
    x: &mut L::V,
    y: &mut L::V,
    w: Factor<L>,
    down: bool,
    k: &Consts<L::V>,
) {
    // SAFETY: forwarded contract.
    unsafe {
        (*x, *y) = match (down, LIMIT) {
            (false, _) => L::butterfly(*x, *y, w, k),
            (true, TIGHT) => L::butterfly_down(*x, *y, w, k),
            (true, _) => L::butterfly(L::bring_down(*x, k), *y, w, k),
        };
    }
}

/// As [`forward_butterfly`], fully reduced.
#[inline(always)]
unsafe fn forward_butterfly_last<L: Lanes>(x: &mut L::V, y: &mut L::V, w: Factor<L>, down: bool, k: &Consts<L::V>) {
    // SAFETY: forwarded contract.
    unsafe {
        let u = if down { L::bring_down(*x, k) } else { *x };
        (*x, *y) = L::butterfly_last(u, *y, w, k);
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

/// Where in a forward transform a network stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The first pass: words below q.
    First,
    /// A later pass.
    Middle,
    /// The upper three layers of a block of 64,
    Leaf,
    /// and the lower three; the last one reduces fully.
    Last,
}

/// Whether layer `layer` of a forward network must bring down what it does not multiply. With room for 8q one layer
/// in three does, 2q + 3 2q; with room for 32q only that of the leaves.
const fn brings_down<L: Lanes>(limit: u8, place: Place, layer: u32) -> bool {
    match (limit, place) {
        (FREE, _) if L::DOUBLES => false,
        (_, Place::First) if L::DOUBLES => layer == 3,
        _ if L::DOUBLES => layer == 0,
        (LOOSE, Place::First) => layer == 3,
        (LOOSE, _) => layer == 0 || layer == 3,
        (FREE, Place::Leaf) => layer == 0,
        (FREE, _) => false,
        (_, Place::First) => layer > 0,
        _ => true,
    }
}

/// log2(N) layers on N = 4, 8 or 16 points.
#[inline(always)]
pub(super) unsafe fn forward_network<L: Lanes, F: Factors<L>, const LIMIT: u8, const C: usize, const N: usize>(
    x: &mut [[L::V; N]; C],
    f: [F; C],
    place: Place,
    k: &Consts<L::V>,
) {
    // SAFETY: forwarded contract.
    unsafe {
        let layers = N.ilog2();
        if N == 16 {
            let down = brings_down::<L>(LIMIT, place, 0);
            layer!(x, N, 8, f, |a, b, w, _i| forward_butterfly::<L, LIMIT>(a, b, w, down, k));
        }
        if N >= 8 {
            let down = brings_down::<L>(LIMIT, place, layers - 3);
            layer!(x, N, 4, f, |a, b, w, _i| forward_butterfly::<L, LIMIT>(a, b, w, down, k));
        }
        let down = brings_down::<L>(LIMIT, place, layers - 2);
        layer!(x, N, 2, f, |a, b, w, _i| forward_butterfly::<L, LIMIT>(a, b, w, down, k));
        let down = brings_down::<L>(LIMIT, place, layers - 1);
        if place == Place::Last {
            layer!(x, N, 1, f, |a, b, w, _i| forward_butterfly_last::<L>(a, b, w, down, k));
        } else {
            layer!(x, N, 1, f, |a, b, w, _i| forward_butterfly::<L, LIMIT>(a, b, w, down, k));
        }
    }
}

/// What the root layer of an inverse network returns.
pub(super) const PLAIN: u8 = 0;
/// Results in [-z, 0), for a subtrahend of the next pass.
pub(super) const LOWER: u8 = 1;
/// Results scaled and below q.
pub(super) const FINAL: u8 = 2;

/// Where the inputs of an inverse network lie: below q,
pub(super) const REDUCED: u8 = 0;
/// below z,
pub(super) const LAZY: u8 = 1;
/// or below z with the subtrahends in [-z, 0).
pub(super) const SPLIT: u8 = 2;

/// The inverse layers on N = 4, 8 or 16 points; `root` of column c is the range of its results.
#[inline(always)]
pub(super) unsafe fn inverse_network<L: Lanes, F: Factors<L>, const LIMIT: u8, const C: usize, const N: usize>(
    x: &mut [[L::V; N]; C],
    f: [F; C],
    input: u8,
    root: [u8; C],
    last: Factor<L>,
    k: &Consts<L::V>,
) {
    // SAFETY: forwarded contract.
    unsafe {
        if L::DOUBLES || LIMIT != TIGHT {
            let room = &const {
                let product = if L::DOUBLES { 1 } else { 2 };
                [room(LIMIT, N, entry(LIMIT), product), room(LIMIT, N, 1, product)]
            }[usize::from(input == REDUCED)];
            return inverse_network_within::<L, F, C, N>(x, f, room, root[0] == FINAL, last, k);
        }
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

/// How an inverse network keeps its words within LIMIT q: which are brought below 2q before each layer, and after the
/// last; log2 of the multiple of q that keeps differences positive.
struct Room {
    down: [u32; 5],
    offset: [usize; 4],
}

/// Words that a later inverse network takes and returns are below this times q.
const fn entry(limit: u8) -> u8 {
    if limit == TIGHT { 2 } else { 4 }
}

/// Follows the bounds of N words, `first` q at first, through the layers: a sum has the sum of both bounds, a product,
/// and what is brought down, is below `product` q.
const fn room(limit: u8, n: usize, first: u8, product: u8) -> Room {
    let mut room = Room { down: [0; 5], offset: [0; 4] };
    let mut bounds = [first; 16];
    let (mut half, mut layer) = (1, 0);
    while half < n {
        let mut i = 0;
        while i < n {
            if i & half == 0 && 2 * bounds[i] > limit {
                room.down[layer] |= 1 << i | 1 << (i + half);
                (bounds[i], bounds[i + half]) = (product, product);
            }
            i += 1;
        }
        i = 0;
        while i < n {
            if i & half == 0 {
                // Both bounds of a pair are the same power of two.
                let offset = bounds[i].ilog2() as usize;
                if offset > room.offset[layer] {
                    room.offset[layer] = offset;
                }
                (bounds[i], bounds[i + half]) = (2 * bounds[i], product);
            }
            i += 1;
        }
        half *= 2;
        layer += 1;
    }
    let mut i = 0;
    while i < n {
        if bounds[i] > entry(limit) {
            room.down[layer] |= 1 << i;
        }
        i += 1;
    }
    room
}

/// (x, y) -> (x + y, (x - y) w) up to multiples of q, for words i and i + 2^layer of a network with such a `room`.
#[inline(always)]
unsafe fn inverse_butterfly_within<L: Lanes>(
    (x, y): (&mut L::V, &mut L::V),
    w: Factor<L>,
    room: &Room,
    layer: usize,
    i: usize,
    k: &Consts<L::V>,
) {
    // SAFETY: forwarded contract.
    unsafe {
        if room.down[layer] >> i & 1 == 1 {
            (*x, *y) = (L::bring_down(*x, k), L::bring_down(*y, k));
        }
        let difference = L::difference(*x, *y, k.multiples[room.offset[layer]]);
        *x = L::sum(*x, *y);
        *y = L::mul_open(difference, w, k);
    }
}

/// As [`inverse_network`] with such a `room`. out: < [`entry`] q, or < q if `is_final`.
#[inline(always)]
unsafe fn inverse_network_within<L: Lanes, F: Factors<L>, const C: usize, const N: usize>(
    x: &mut [[L::V; N]; C],
    f: [F; C],
    room: &Room,
    is_final: bool,
    last: Factor<L>,
    k: &Consts<L::V>,
) {
    // SAFETY: forwarded contract.
    unsafe {
        layer!(x, N, 1, f, |a, b, w, i| inverse_butterfly_within::<L>((a, b), w, room, 0, i, k));
        if N > 4 {
            layer!(x, N, 2, f, |a, b, w, i| inverse_butterfly_within::<L>((a, b), w, room, 1, i, k));
        }
        if N > 8 {
            layer!(x, N, 4, f, |a, b, w, i| inverse_butterfly_within::<L>((a, b), w, room, 2, i, k));
        }
        let root = N.ilog2() as usize - 1;
        for i in 0..N / 2 {
            for c in 0..C {
                let (mut a, mut b) = (x[c][i], x[c][i + N / 2]);
                if is_final {
                    if room.down[root] >> i & 1 == 1 {
                        (a, b) = (L::bring_down(a, k), L::bring_down(b, k));
                    }
                    let difference = L::difference(a, b, k.multiples[room.offset[root]]);
                    a = L::reduce_lazy(L::mul_twiddle(L::sum(a, b), last, k), k);
                    b = L::reduce_lazy(L::mul_twiddle(difference, f[c].at(1), k), k);
                } else {
                    inverse_butterfly_within::<L>((&mut a, &mut b), f[c].at(1), room, root, i, k);
                    a = if room.down[root + 1] >> i & 1 == 1 { L::bring_down(a, k) } else { a };
                }
                (x[c][i], x[c][i + N / 2]) = (a, b);
            }
        }
    }
}
