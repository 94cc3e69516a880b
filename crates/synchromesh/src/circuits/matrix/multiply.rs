//! The product of encrypted matrices: one walk through the steps k, whatever keys and memory it may take.
//!
//! All blocks of a tile take step k together, so that a rotation is made once however many products use it, and only
//! products are kept, no rotations: where ePrint 2023/593, section 4.4, chooses between keeping every rotation and
//! making it again for each product, this does neither. `window` steps are rotations of one decomposition. Then the
//! factors themselves are rotated by a window and decomposed again: window 1 has one key a factor (section 3.1, key
//! re-use), a window of all steps is full hoisting, those between are the mix.

use super::arithmetic::{Levels, MatrixArithmetic};
use super::packing::{MatrixPacking, Side};
use crate::error::{Error, Result};
use crate::rotations::Rotations;

/// Pairs whose products are summed at once.
const PAIRS: usize = 8;

/// How a product is computed: choices that change time, keys and memory, never the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixChoices {
    /// Rotations made from one decomposition; as many rotation keys a factor. 1: key re-use.
    pub window: usize,
    /// Most block rows and block columns of the product computed at once; rotations of a factor are made again for each
    /// tile. None: all.
    pub tile: Option<[usize; 2]>,
    /// Parts in which the steps are computed side by side, each with sums of its own: as many as threads, or 1 to spread
    /// each operation over the threads instead.
    pub threads: usize,
}

impl MatrixChoices {
    /// All steps from one decomposition: the fastest, with a key for each step of each factor.
    pub const HOISTED: Self = Self { window: usize::MAX, tile: None, threads: 1 };
    /// One key a factor.
    pub const REUSED: Self = Self { window: 1, ..Self::HOISTED };
    /// Hoisted, one block of the product at a time.
    pub const RECOMPUTED: Self = Self { tile: Some([1, 1]), ..Self::HOISTED };

    /// Windows of this many steps.
    #[must_use]
    pub const fn mixed(window: usize) -> Self {
        Self { window: if window == 0 { 1 } else { window }, ..Self::HOISTED }
    }

    /// The widest windows for which factors have no more than this many rotation keys together.
    #[must_use]
    pub const fn for_keys(packing: &MatrixPacking, keys: usize) -> Self {
        let all = packing.inner().saturating_sub(1);
        if keys >= 2 * all { Self::HOISTED } else { Self::mixed(keys / 2) }
    }

    /// In this many parts.
    #[must_use]
    pub const fn threads(self, threads: usize) -> Self {
        Self { threads: if threads == 0 { 1 } else { threads }, ..self }
    }

    /// Rotations of one decomposition for blocks of this packing.
    const fn steps(&self, packing: &MatrixPacking) -> usize {
        let window = if self.window == 0 { 1 } else { self.window };
        if window < packing.inner() { window } else { packing.inner() }
    }
}

impl MatrixPacking {
    /// The rotations that products make: with window w multiples of a step up to w - 1, and w itself if there are
    /// further windows.
    #[must_use]
    pub fn rotations(&self, choices: &MatrixChoices) -> Rotations {
        let window = choices.steps(self);
        let last = if window < self.inner() { window } else { window - 1 };
        let multiples = |side| (1..=last as i64).map(move |k| k * self.step(side));
        let line = self.is_masked().then(|| self.step(Side::Right));
        Rotations::by(multiples(Side::Left).chain(multiples(Side::Right)).chain(line))
    }
}

/// A factor on its way through the steps: itself, or the two that its masks choose between.
struct Walker<A: MatrixArithmetic> {
    at: Vec<A::Ciphertext>,
    hoisted: Vec<A::Hoisted>,
    pair: Option<A::Pair>,
}

impl<A: MatrixArithmetic> Walker<A> {
    fn new(at: Vec<A::Ciphertext>) -> Self {
        Self { at, hoisted: Vec::new(), pair: None }
    }

    fn hoist(&mut self, arithmetic: &A, rotates: bool) -> Result<()> {
        (self.hoisted, self.pair) = (Vec::new(), None);
        for x in &self.at {
            self.hoisted.push(arithmetic.hoist(x, rotates)?);
        }
        if let [ones, zeros] = &self.hoisted[..] {
            self.pair = Some(arithmetic.pair(ones, zeros)?);
        }
        Ok(())
    }

    /// On to the next window, `slots` to the left.
    fn advance(&mut self, arithmetic: &A, slots: i64) -> Result<()> {
        self.at = self.hoisted.iter().map(|x| arithmetic.rotated(x, slots)).collect::<Result<_>>()?;
        Ok(())
    }

    /// The factor rotated by `slots`, chosen by a mask where there are masks.
    fn step(&self, arithmetic: &A, slots: i64, mask: Option<&A::Mask>, level: usize) -> Result<A::Ciphertext> {
        match (&self.hoisted[..], &self.pair, mask) {
            ([ones, zeros], Some(pair), Some(mask)) => arithmetic.chosen([ones, zeros], pair, mask, slots, level),
            _ if slots == 0 => arithmetic.duplicate(&self.at[0]),
            _ => arithmetic.rotated(&self.hoisted[0], slots),
        }
    }
}

/// Products in three components as they grow, row after row.
type Sums<C> = Vec<Option<C>>;

/// Blocks of the factors of one tile, row after row: `rows` x `inner` and `inner` x `columns`.
pub(super) struct Tile<'a, C> {
    pub(super) left: Vec<&'a C>,
    pub(super) right: Vec<&'a C>,
    pub(super) inner: usize,
}

/// One product of a tile of blocks.
struct Run<'a, A: MatrixArithmetic> {
    arithmetic: &'a A,
    packing: &'a MatrixPacking,
    levels: Levels,
    left: Vec<Walker<A>>,
    right: Vec<Walker<A>>,
    inner: usize,
}

/// The levels of a product, for factors of which each has `blocks` blocks in a sum.
pub(super) fn levels<A: MatrixArithmetic>(
    arithmetic: &A,
    packing: &MatrixPacking,
    [left, right]: [&A::Ciphertext; 2],
    blocks: usize,
) -> Result<Levels> {
    // Of all masks, that of the first half of a line is as large as any.
    let mask = packing.mask(0, packing.inner() / 2);
    let mask = if packing.is_masked() { Some(arithmetic.mask(&mask, arithmetic.level(left))?) } else { None };
    arithmetic.levels(left, right, mask.as_ref(), packing.inner() * blocks)
}

/// The blocks of the product of one tile, row after row.
pub(super) fn multiply<A: MatrixArithmetic>(
    arithmetic: &A,
    packing: &MatrixPacking,
    choices: &MatrixChoices,
    tile: &Tile<'_, A::Ciphertext>,
) -> Result<Vec<A::Ciphertext>> {
    let slots = arithmetic.slots()?;
    if slots != packing.shape() {
        let made = packing.shape();
        return Err(Error::shape(format!(
            "the packing is for {} x {} slots, there are {} x {}",
            made.rows, made.row, slots.rows, slots.row
        )));
    }
    arithmetic.require_rotations(&packing.rotations(choices))?;
    let window = choices.steps(packing);
    let mut run = Run::new(arithmetic, packing, tile)?;
    let mut sums: Sums<A::Ciphertext> = Vec::new();
    for base in (0..packing.inner()).step_by(window) {
        let steps = window.min(packing.inner() - base);
        let further = base + window < packing.inner();
        for walker in run.left.iter_mut().chain(&mut run.right) {
            walker.hoist(arithmetic, steps > 1 || further)?;
        }
        let own = run.window(base, steps, choices.threads)?;
        sums = if sums.is_empty() { own } else { joined(arithmetic, sums, own)? };
        if further {
            let slots = |side| window as i64 * packing.step(side);
            run.left.iter_mut().try_for_each(|walker| walker.advance(arithmetic, slots(Side::Left)))?;
            run.right.iter_mut().try_for_each(|walker| walker.advance(arithmetic, slots(Side::Right)))?;
        }
    }
    sums.iter().flatten().map(|sum| arithmetic.settle_product(sum)).collect()
}

impl<'a, A: MatrixArithmetic> Run<'a, A> {
    fn new(arithmetic: &'a A, packing: &'a MatrixPacking, tile: &Tile<'_, A::Ciphertext>) -> Result<Self> {
        let lowest = |blocks: &[&A::Ciphertext]| blocks.iter().map(|x| arithmetic.level(x)).min().unwrap_or(0);
        let [left, right] = [&tile.left, &tile.right].map(|blocks| lowest(blocks));
        let bring = |x: &A::Ciphertext, level: usize| arithmetic.at_level(x, level);
        let (Some(a), Some(b)) = (tile.left.first(), tile.right.first()) else {
            return Err(Error::shape("a product of no blocks"));
        };
        let (a, b) = (bring(a, left)?, bring(b, right)?);
        let levels = levels(arithmetic, packing, [&a, &b], tile.inner)?;
        let line = packing.step(Side::Right);
        let walker = |x: &&A::Ciphertext| {
            let x = bring(x, levels.left)?;
            let turned = if packing.is_masked() { Some(arithmetic.rotate(&x, line)?) } else { None };
            Ok(Walker::new(turned.into_iter().chain([x]).collect()))
        };
        let left = tile.left.iter().map(walker).collect::<Result<_>>()?;
        let right =
            tile.right.iter().map(|x| Ok(Walker::new(vec![bring(x, levels.product)?]))).collect::<Result<_>>()?;
        Ok(Self { arithmetic, packing, levels, left, right, inner: tile.inner })
    }

    /// The sums over the steps from `base` on, in some parts.
    fn window(&self, base: usize, steps: usize, threads: usize) -> Result<Sums<A::Ciphertext>> {
        let threads = threads.clamp(1, steps);
        if threads == 1 {
            return self.steps(base, 0..steps);
        }
        let each = steps.div_ceil(threads);
        let ranges = (0..steps).step_by(each).map(|from| from..(from + each).min(steps));
        let parts = self.arithmetic.threads().try_map(ranges.collect(), |range| self.steps(base, range))?;
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap_or_default();
        parts.try_fold(first, |sums, part| joined(self.arithmetic, sums, part))
    }

    fn steps(&self, base: usize, offsets: std::ops::Range<usize>) -> Result<Sums<A::Ciphertext>> {
        let blocks = (self.left.len() / self.inner) * (self.right.len() / self.inner);
        let mut sums: Sums<A::Ciphertext> = (0..blocks).map(|_| None).collect();
        // As many steps together as give sums of some length.
        let together = PAIRS.div_ceil(self.inner).max(1);
        let mut from = offsets.start;
        while from < offsets.end {
            let to = (from + together).min(offsets.end);
            let factors = (from..to).map(|offset| self.factors(base, offset)).collect::<Result<Vec<_>>>()?;
            self.add_products(&factors, &mut sums)?;
            from = to;
        }
        Ok(sums)
    }

    /// All rotated factors of a step.
    fn factors(&self, base: usize, offset: usize) -> Result<[Vec<A::Ciphertext>; 2]> {
        let mask = match self.packing.is_masked() {
            true => Some(self.arithmetic.mask(&self.packing.mask(base, offset), self.levels.left)?),
            false => None,
        };
        let slots = |side| offset as i64 * self.packing.step(side);
        let (level, arithmetic) = (self.levels.product, self.arithmetic);
        let left = self.left.iter().map(|x| x.step(arithmetic, slots(Side::Left), mask.as_ref(), level));
        let left = left.collect::<Result<_>>()?;
        let right = self.right.iter().map(|x| x.step(arithmetic, slots(Side::Right), None, level));
        Ok([left, right.collect::<Result<_>>()?])
    }

    fn add_products(&self, factors: &[[Vec<A::Ciphertext>; 2]], sums: &mut Sums<A::Ciphertext>) -> Result<()> {
        let columns = self.right.len() / self.inner;
        for (at, sum) in sums.iter_mut().enumerate() {
            let (i, j) = (at / columns, at % columns);
            let pairs: Vec<[&A::Ciphertext; 2]> = factors
                .iter()
                .flat_map(|[left, right]| {
                    (0..self.inner).map(move |l| [&left[i * self.inner + l], &right[l * columns + j]])
                })
                .collect();
            let own = self.arithmetic.sum_of_tensors(&pairs)?;
            *sum = Some(match sum.take() {
                Some(sum) => self.arithmetic.add(&sum, &own)?,
                None => own,
            });
        }
        Ok(())
    }
}

/// The sums of two parts of the steps.
fn joined<A: MatrixArithmetic>(
    arithmetic: &A,
    a: Sums<A::Ciphertext>,
    b: Sums<A::Ciphertext>,
) -> Result<Sums<A::Ciphertext>> {
    let both = |(a, b): (Option<A::Ciphertext>, Option<A::Ciphertext>)| match (a, b) {
        (Some(a), Some(b)) => Ok(Some(arithmetic.add(&a, &b)?)),
        (one, None) | (None, one) => Ok(one),
    };
    a.into_iter().zip(b).map(both).collect()
}
