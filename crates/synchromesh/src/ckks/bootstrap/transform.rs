//! The transform between slots and coefficients as products of few sparse maps (CoeffsToSlots, SlotsToCoeffs).
//!
//! With n = N/2, e_k = (-3)^k and y_k the value of a polynomial at zeta^(e_k), y_k = sum_j w_j zeta^(j e_k), where
//! w_j = p_j + i p_(j + n). y_k is slot k for even k and its conjugate for odd k; seen like that, X -> X^(e_r) rotates all
//! slots by r (see [`View`](super::view::View)). Since e_(k + n/2) = e_k (1 + 2n), the transform is log2(n) layers of
//! butterflies after a permutation by reversed bits, which is left out: slots and coefficients correspond in reversed
//! order, both ways. A layer of blocks of 2h slots has the diagonals -h, 0 and h, and a product of neighbouring layers few
//! more: 2^(k+1) - 1 for k layers (ePrint 2018/1043).
//!
//! From a slot to another there is one way through the butterflies, so that an entry of any product of layers is a root of
//! unity, by a power of two: exponents are added, and every entry is rounded once.
//!
//! Slots that repeat, n of them over and over (sparse slots), are those of a polynomial in Y = X^(N / 2n), and its transform is
//! that of the ring of degree 2n, on every n slots alike. There is room for both parts of a number then: the last map to slots
//! leaves z in one n slots and -i z in the next, so that twice the real part has both parts of z, and [`unpacking`] puts them
//! together again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::circuits::{LinearTransform, Pattern, SlotShape};
use crate::embedding::{Complex64, RootTable};
use crate::error::Result;

/// How far an entry may be from what it stands for, relatively: it is rounded to doubles, and after the product with a
/// public number again.
pub(super) const ENTRY: f64 = f64::EPSILON;

/// Which way a transform goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The values in slots become coefficients.
    SlotsToCoeffs,
    /// And back.
    CoeffsToSlots,
}

/// A map of n slots by its diagonals: slot i becomes the sum over k of `d_k\[i\]` times slot i + k. An entry is nothing or
/// the root of unity exp(i pi e / 2n), given by its exponent e.
type Diagonals = BTreeMap<usize, Vec<Option<usize>>>;

/// The slots that a transform is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// All there are.
    pub(super) slots: usize,
    /// After how many of them they repeat: a power of two.
    pub(super) period: usize,
    /// Whether transforms to slots leave both parts of numbers in twice as many.
    pub(super) packed: bool,
}

impl Extent {
    /// How often the slots that repeat are there.
    pub(super) const fn copies(self) -> usize {
        self.slots / self.period
    }

    /// A rotation of the slots that repeat, as one of all: the nearer way, on which butterflies of blocks that are smaller
    /// than the period stay within it.
    const fn rotation(self, k: usize) -> usize {
        if 2 * k > self.period { self.slots - self.period + k } else { k }
    }

    /// As often as slots repeat.
    fn repeated<T: Clone>(self, entries: Vec<T>) -> Vec<T> {
        entries.into_iter().cycle().take(self.slots).collect()
    }

    /// log2 of the 2-norm of layers with these blocks, before they are halved, at the most: each is sqrt(2) times a unitary map.
    /// Where a block is all that repeats, rotations reach into copies of it, and errors do not repeat: to these the layers are
    /// matrices of `2^layers` rows and columns, one for each way that copies differ, with entries of absolute value 1.
    fn log2_growth(self, blocks: &[usize]) -> f64 {
        let wraps = self.period < self.slots && blocks.contains(&self.period);
        blocks.len() as f64 / if wraps { 1.0 } else { 2.0 }
    }
}

/// A map of all slots by its diagonals, and a bound of its 2-norm.
struct Factor {
    diagonals: Vec<(usize, Vec<Complex64>)>,
    norm: f64,
}

impl Factor {
    fn transform(self, slots: usize) -> Result<LinearTransform<Complex64>> {
        let diagonals = self.diagonals.into_iter().map(|(k, values)| (k as i64, values));
        let map = LinearTransform::from_diagonals(SlotShape { row: slots, rows: 1 }, diagonals)?;
        Ok(map.with_norm(self.norm * (1.0 + 1e-9)))
    }
}

/// The transform as the product of `count` maps, the first to be applied first.
pub(super) fn factors(extent: Extent, direction: Direction, count: usize) -> Result<Vec<LinearTransform<Complex64>>> {
    products(extent, direction, count).into_iter().map(|factor| factor.transform(extent.slots)).collect()
}

/// Transforms that are made once for all that ask for the same slots and as many maps: parameters do not matter.
#[derive(Default)]
pub(crate) struct Transforms(Mutex<Vec<(Kind, Maps)>>);

/// The slots, the way and the number of maps.
type Kind = (Extent, Direction, usize);

/// The maps of a transform, the first to be applied first.
pub(super) type Maps = Vec<Arc<LinearTransform<Complex64>>>;

impl fmt::Debug for Transforms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transforms").finish_non_exhaustive()
    }
}

impl Transforms {
    /// As [`factors`].
    pub(super) fn maps(&self, extent: Extent, direction: Direction, count: usize) -> Result<Maps> {
        let kind = (extent, direction, count);
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, maps)) = made.iter().find(|(known, _)| *known == kind) {
            return Ok(maps.clone());
        }
        let maps: Maps = factors(extent, direction, count)?.into_iter().map(Arc::new).collect();
        made.push((kind, maps.clone()));
        Ok(maps)
    }
}

fn products(extent: Extent, direction: Direction, count: usize) -> Vec<Factor> {
    let slots = extent.period;
    let table = RootTable::new(slots.trailing_zeros() + 1);
    let roots: Vec<Complex64> = (0..4 * slots).map(|e| table.nearest(e)).collect();
    let grouped = blocks(slots, direction, count);
    let count = grouped.len();
    let factor = |(at, own): (usize, &Vec<usize>)| {
        let map = own.iter().fold(identity(slots), |map, &block| product(&layer(slots, block, direction), &map));
        // Layers are halved on the way to slots.
        let each = match direction {
            Direction::SlotsToCoeffs => 1.0,
            Direction::CoeffsToSlots => (-(own.len() as f64)).exp2(),
        };
        let packed = at + 1 == count && extent.packed && direction == Direction::CoeffsToSlots;
        let value = |exponent: Option<usize>| {
            let root = exponent.map_or(Complex64::default(), |e| roots[e]);
            Complex64::new(root.re * each, root.im * each)
        };
        let diagonal = |(k, entries): (usize, Vec<Option<usize>>)| {
            let mut values: Vec<_> = entries.into_iter().map(value).collect();
            if packed {
                let turned: Vec<_> = values.iter().map(|z| Complex64::new(z.im, -z.re)).collect();
                values.extend(turned);
            }
            (extent.rotation(k), extent.repeated(values))
        };
        let norm = each * extent.log2_growth(own).exp2();
        Factor { diagonals: map.into_iter().map(diagonal).collect(), norm }
    };
    grouped.iter().enumerate().map(factor).collect()
}

/// The map that makes x + i y of slots x in one period and y in the next, in all periods.
pub(super) fn unpacking(extent: Extent) -> Result<LinearTransform<Complex64>> {
    let (one, i) = (Complex64::new(1.0, 0.0), Complex64::new(0.0, 1.0));
    let halves = |[first, second]: [Complex64; 2]| {
        extent.repeated([vec![first; extent.period], vec![second; extent.period]].concat())
    };
    let diagonals = vec![(0, halves([one, i])), (extent.period, halves([i, one]))];
    // A sum of two slots.
    Factor { diagonals, norm: 2.0 }.transform(extent.slots)
}

/// The diagonals that the maps of [`factors`] have.
pub(super) fn patterns(extent: Extent, direction: Direction, count: usize) -> Vec<Pattern> {
    let slots = extent.period;
    let wider = |steps: BTreeSet<usize>, &block: &usize| -> BTreeSet<usize> {
        steps.iter().flat_map(|k| [0, block / 2, slots - block / 2].map(|half| (k + half) % slots)).collect()
    };
    let pattern = |own: Vec<usize>| {
        let steps = own.iter().fold(BTreeSet::from([0]), wider);
        Pattern { row: extent.slots, diagonals: steps.into_iter().map(|k| (false, extent.rotation(k))).collect() }
    };
    blocks(slots, direction, count).into_iter().map(pattern).collect()
}

/// The sizes of the blocks of each map's layers, in the order in which they are applied.
fn blocks(slots: usize, direction: Direction, count: usize) -> Vec<Vec<usize>> {
    let layers = slots.trailing_zeros() as usize;
    let mut blocks: Vec<usize> = (1..=layers).map(|log| 1 << log).collect();
    if direction == Direction::CoeffsToSlots {
        blocks.reverse();
    }
    let count = count.clamp(1, layers.max(1));
    (0..count)
        .map(|at| blocks[layers_before(layers, count, at)..layers_before(layers, count, at + 1)].to_vec())
        .collect()
}

/// Layers in the first `maps` of `count` maps: as even as can be, the shorter ones first.
pub(super) const fn layers_before(layers: usize, count: usize, maps: usize) -> usize {
    layers * maps / count
}

fn identity(slots: usize) -> Diagonals {
    Diagonals::from([(0, vec![Some(0); slots])])
}

/// The butterflies of blocks of `block` slots; halved where they go to slots, which [`factors`] does.
fn layer(slots: usize, block: usize, direction: Direction) -> Diagonals {
    let half = block / 2;
    let (order, unit) = (4 * block, slots / block);
    let mut exponent = 1;
    let mut map = Diagonals::new();
    let mut set = |shift: usize, slot: usize, exponent: usize| {
        map.entry(shift % slots).or_insert_with(|| vec![None; slots])[slot] = Some(exponent % (4 * slots));
    };
    for j in 0..half {
        let (w, minus) = (exponent * unit, 2 * slots);
        for first in (0..slots).step_by(block) {
            let (low, high) = (first + j, first + j + half);
            set(0, low, 0);
            match direction {
                Direction::SlotsToCoeffs => {
                    set(half, low, w);
                    set(slots - half, high, 0);
                    set(0, high, w + minus);
                }
                Direction::CoeffsToSlots => {
                    set(half, low, 0);
                    set(slots - half, high, 4 * slots - w);
                    set(0, high, 4 * slots - w + minus);
                }
            }
        }
        exponent = exponent * (order - 3) % order;
    }
    map
}

/// The map that applies `first` and then `second`, both products of layers that follow one another.
fn product(second: &Diagonals, first: &Diagonals) -> Diagonals {
    let mut out = Diagonals::new();
    for (&a, x) in second {
        for (&b, y) in first {
            let slots = x.len();
            let sum = out.entry((a + b) % slots).or_insert_with(|| vec![None; slots]);
            let (before, after) = y.split_at(a);
            for (i, ((sum, x), y)) in sum.iter_mut().zip(x).zip(after.iter().chain(before)).enumerate() {
                if let (Some(x), Some(y)) = (x, y) {
                    debug_assert!(sum.is_none(), "two ways from slot {} to slot {i}", i + a + b);
                    let exponent = x + y;
                    *sum = Some(if exponent < 4 * slots { exponent } else { exponent - 4 * slots });
                }
            }
        }
    }
    out.retain(|_, entries| entries.iter().any(Option::is_some));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedding::{Embedding, Scale};

    fn apply(map: &Diagonals, x: &[Complex64]) -> Vec<Complex64> {
        let n = x.len();
        let roots = RootTable::new(n.trailing_zeros() + 1);
        let mut out = vec![Complex64::default(); n];
        for (&k, entries) in map {
            for (i, (sum, entry)) in out.iter_mut().zip(entries).enumerate() {
                let (x, d) = (x[(i + k) % n], entry.map_or(Complex64::default(), |e| roots.nearest(e)));
                sum.re += d.re * x.re - d.im * x.im;
                sum.im += d.re * x.im + d.im * x.re;
            }
        }
        out
    }

    fn whole(slots: usize, direction: Direction) -> Diagonals {
        let logs = 1..=slots.trailing_zeros();
        let blocks: Vec<usize> = logs.map(|log| 1 << log).collect();
        let then = |map, &block: &usize| product(&layer(slots, block, direction), &map);
        match direction {
            Direction::SlotsToCoeffs => blocks.iter().fold(identity(slots), then),
            Direction::CoeffsToSlots => blocks.iter().rev().fold(identity(slots), then),
        }
    }

    #[test]
    fn slots_become_coefficients_in_reversed_order_and_come_back() {
        for log_n in [4u32, 7, 10] {
            let (n, half) = (1usize << log_n, 1usize << (log_n - 1));
            let point = |i: usize| Complex64::new((i as f64 * 0.7).sin(), (i as f64 * 1.3).cos());
            let given: Vec<Complex64> = (0..half).map(point).collect();
            let there = apply(&whole(half, Direction::SlotsToCoeffs), &given);
            // As the embedding sees it: conjugated in odd places.
            let slots: Vec<Complex64> = there
                .iter()
                .enumerate()
                .map(|(k, z)| Complex64::new(z.re, if k % 2 == 0 { z.im } else { -z.im }))
                .collect();
            let scale = Scale::power_of_two(40).unwrap();
            let bound = slots.iter().map(|z| z.re.hypot(z.im)).fold(0.0, f64::max) * 1.001;
            let coefficients = Embedding::new(log_n).unwrap().encode(&slots, scale, bound).unwrap();
            assert_eq!(coefficients.len(), n);
            for (k, z) in given.iter().enumerate() {
                let j = k.reverse_bits() >> (usize::BITS - (log_n - 1));
                let found = [coefficients[j], coefficients[j + half]].map(|c| c as f64 / 40f64.exp2());
                assert!((found[0] - z.re).abs() < 1e-9 && (found[1] - z.im).abs() < 1e-9, "N = {n}, slot {k}");
            }
            let back = apply(&whole(half, Direction::CoeffsToSlots), &there);
            let same =
                |(a, b): (&Complex64, &Complex64)| (a.re / half as f64 - b.re).hypot(a.im / half as f64 - b.im) < 1e-12;
            assert!(back.iter().zip(&given).all(same));
        }
    }

    #[test]
    fn factors_have_few_diagonals_and_the_norm_they_say() {
        for (direction, sign) in [(Direction::SlotsToCoeffs, 0.5), (Direction::CoeffsToSlots, -0.5)] {
            for (slots, packed) in [(1 << 9, false), (1 << 11, false), (1 << 11, true)] {
                let extent = Extent { slots, period: 1 << 9, packed };
                let maps = factors(extent, direction, 3).unwrap();
                assert!(maps.iter().all(|map| map.diagonals() <= 15), "three layers each");
                assert!(maps.iter().map(LinearTransform::pattern).eq(patterns(extent, direction, 3)));
            }
            // |A x| on a random vector is that of a multiple of a unitary map.
            let map = product(&layer(512, 8, direction), &layer(512, 4, direction));
            let x: Vec<Complex64> =
                (0..512).map(|i| Complex64::new((i as f64).sin(), (3.0 * i as f64).cos())).collect();
            let norm = |x: &[Complex64]| x.iter().map(|z| z.re * z.re + z.im * z.im).sum::<f64>().sqrt();
            let halved = if sign < 0.0 { 0.25 } else { 1.0 };
            let grows = halved * norm(&apply(&map, &x)) / norm(&x);
            assert!((grows - f64::exp2(2.0 * sign)).abs() < 1e-9, "{grows}");
        }
    }

    #[test]
    fn transforms_are_made_once_for_each_kind() {
        let (extent, made) = (Extent { slots: 1 << 6, period: 1 << 6, packed: false }, Transforms::default());
        for (direction, count) in
            [(Direction::SlotsToCoeffs, 2), (Direction::CoeffsToSlots, 2), (Direction::CoeffsToSlots, 3)]
        {
            let maps = made.maps(extent, direction, count).unwrap();
            assert!(maps.iter().map(Arc::as_ref).eq(&factors(extent, direction, count).unwrap()));
            let again = made.maps(extent, direction, count).unwrap();
            assert!(maps.iter().zip(&again).all(|(a, b)| Arc::ptr_eq(a, b)));
        }
        let fewer = Extent { period: 1 << 5, ..extent };
        let maps = made.maps(fewer, Direction::CoeffsToSlots, 2).unwrap();
        assert!(maps.iter().map(Arc::as_ref).eq(&factors(fewer, Direction::CoeffsToSlots, 2).unwrap()));
    }

    /// What a factor makes of all slots.
    fn applied(factor: &Factor, x: &[Complex64]) -> Vec<Complex64> {
        let n = x.len();
        let times = |a: Complex64, b: Complex64| Complex64::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
        let slot = |i: usize| {
            let terms = factor.diagonals.iter().map(|(k, values)| times(values[i], x[(i + k) % n]));
            terms.fold(Complex64::default(), |sum, z| Complex64::new(sum.re + z.re, sum.im + z.im))
        };
        (0..n).map(slot).collect()
    }

    #[test]
    fn slots_that_repeat_are_transformed_alike_and_norms_hold_for_those_that_do_not() {
        let norm = |x: &[Complex64]| x.iter().map(|z| z.re * z.re + z.im * z.im).sum::<f64>().sqrt();
        for direction in [Direction::SlotsToCoeffs, Direction::CoeffsToSlots] {
            for (slots, period, count) in [(64, 64, 2), (64, 32, 1), (64, 16, 2), (64, 4, 1), (64, 2, 1)] {
                let extent = Extent { slots, period, packed: false };
                let x: Vec<Complex64> =
                    (0..period).map(|i| Complex64::new((2.3 * i as f64).sin(), (1.1 * i as f64).cos())).collect();
                let halved = if direction == Direction::CoeffsToSlots { period as f64 } else { 1.0 };
                let expected = apply(&whole(period, direction), &x);
                let factors = products(extent, direction, count);
                let found = factors.iter().fold(extent.repeated(x.clone()), |x, factor| applied(factor, &x));
                for (i, z) in found.iter().enumerate() {
                    let z = [z.re * halved - expected[i % period].re, z.im * halved - expected[i % period].im];
                    assert!(z[0].hypot(z[1]) < 1e-12, "{slots} slots, {period} of them, slot {i}");
                }
                // The largest of many vectors with one frequency over the copies each, and of what the map turns them into.
                for factor in &factors {
                    let mut most = 0f64;
                    for frequency in 0..slots {
                        let turn = |i: usize| std::f64::consts::TAU * (i * frequency) as f64 / slots as f64;
                        let x: Vec<Complex64> =
                            (0..slots).map(|i| Complex64::new(turn(i).cos(), turn(i).sin())).collect();
                        most = most.max(norm(&applied(factor, &x)) / norm(&x));
                    }
                    assert!(most <= factor.norm * (1.0 + 1e-9), "{most} above {}", factor.norm);
                    assert!(most > factor.norm / 6.0, "{most} far below {}", factor.norm);
                }
                let both = Extent { packed: true, ..extent };
                if period < slots && direction == Direction::CoeffsToSlots {
                    let packed = products(both, direction, count);
                    let last = packed.iter().fold(extent.repeated(x), |x, factor| applied(factor, &x));
                    for (i, (z, w)) in last.iter().zip(&found).enumerate() {
                        let part = if i / period % 2 == 0 { w.re } else { w.im };
                        assert!((z.re - part).abs() < 1e-12, "slot {i}");
                    }
                }
            }
        }
    }
}
