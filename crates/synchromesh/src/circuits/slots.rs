//! Slots: their layout, sums over blocks of them, masks, and values spread over blocks.

use synchromesh_rlwe::{Giant, RotationSum};

use super::{Arithmetic, Coefficient, Combination, Factors, MapSize, Number, SizedSum, SumCounts};
use crate::error::{Error, Result};
use crate::rotations::Rotations;

/// Slots at the largest degree there is.
const MOST_SLOTS: usize = 1 << 18;

/// Rotations that are summed at once.
const MOST_RADIX: usize = 256;

/// The matrix of slots: rotations act on each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotShape {
    /// Slots in a row: N/2.
    pub row: usize,
    /// Rows: 2 in BFV and BGV, 1 in CKKS.
    pub rows: usize,
}

impl SlotShape {
    /// All slots.
    #[must_use]
    pub const fn count(self) -> usize {
        self.row.saturating_mul(self.rows)
    }

    /// Fails for a shape that no ring has.
    pub(super) fn check(self) -> Result<()> {
        if (1..=MOST_SLOTS).contains(&self.count()) {
            return Ok(());
        }
        let Self { row, rows } = self;
        Err(Error::shape(format!("{rows} row(s) of {row} slots: there are 1 to {MOST_SLOTS} in all")))
    }
}

/// Sums of `count` slots at a distance: slot j becomes the sum over i < count of slot j + i `stride` of its row.
///
/// With radix 2 it rotates and adds, log2(count) times and once more for every further 1 in count. A larger radix sums
/// that many rotations from one decomposition and with one division by P: fewer key switches, more keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotSum {
    count: usize,
    stride: i64,
    radix: usize,
    rows: bool,
}

impl SlotSum {
    /// Sums of `count` neighbouring slots.
    #[must_use]
    pub const fn new(count: usize) -> Self {
        Self { count, stride: 1, radix: 2, rows: false }
    }

    /// Sums over every slot of a matrix of slots, in all slots.
    #[must_use]
    pub const fn all(shape: SlotShape) -> Self {
        Self { rows: shape.rows > 1, ..Self::new(shape.row) }
    }

    /// At this distance, to the right for a negative one.
    #[must_use]
    pub const fn stride(mut self, stride: i64) -> Self {
        self.stride = stride;
        self
    }

    /// With up to `radix` rotations summed at once; from 2 to 256, as they are all in memory at once.
    #[must_use]
    pub const fn radix(mut self, radix: usize) -> Self {
        self.radix = match radix {
            0..2 => 2,
            2..=MOST_RADIX => radix,
            _ => MOST_RADIX,
        };
        self
    }

    /// The rotations it makes.
    #[must_use]
    pub fn rotations(&self) -> Rotations {
        let mut steps = Vec::new();
        self.collect(self.count, &mut steps);
        Rotations { swap: self.rows, ..Rotations::by(steps) }
    }

    fn step(&self, slots: usize) -> i64 {
        // Modulo 2^64, which every row divides.
        self.stride.wrapping_mul(slots as i64)
    }

    fn collect(&self, count: usize, steps: &mut Vec<i64>) {
        if count < 2 {
            return;
        }
        if count < self.radix {
            steps.extend((1..count).map(|i| self.step(i)));
            return;
        }
        let (blocks, rest) = (count / self.radix, count % self.radix);
        self.collect(blocks, steps);
        steps.extend((1..self.radix).map(|i| self.step(i * blocks)));
        if rest > 0 {
            self.collect(rest, steps);
            steps.push(self.step(blocks * self.radix));
        }
    }

    /// The sums.
    ///
    /// # Errors
    /// [`Error::Shape`] for a sum of no slots, [`Error::MissingRotations`], or as [`Arithmetic::rotate`] and
    /// [`Arithmetic::add`].
    pub fn run<A: Arithmetic>(&self, arithmetic: &A, x: &A::Ciphertext) -> Result<A::Ciphertext> {
        if self.count == 0 {
            return Err(Error::shape("a sum of no slots"));
        }
        arithmetic.slots()?;
        if self.rotations() != Rotations::default() {
            arithmetic.require_rotations(&self.rotations())?;
        }
        let mut sum = self.sum(arithmetic, x, self.count)?;
        if self.radix == 2 && self.count > 2 {
            sum = arithmetic.summed(x, sum, &self.counts(arithmetic.slots()?.row))?;
        }
        if self.rows { arithmetic.add(&sum, &arithmetic.swap(&sum)?) } else { Ok(sum) }
    }

    fn sum<A: Arithmetic>(&self, arithmetic: &A, x: &A::Ciphertext, count: usize) -> Result<A::Ciphertext> {
        if count < 2 {
            return arithmetic.duplicate(x);
        }
        if count < self.radix {
            return self.together(arithmetic, x, 1, count);
        }
        let (blocks, rest) = (count / self.radix, count % self.radix);
        let block = self.sum(arithmetic, x, blocks)?;
        let sum = self.together(arithmetic, &block, blocks, self.radix)?;
        if rest == 0 {
            return Ok(sum);
        }
        let tail = self.sum(arithmetic, x, rest)?;
        arithmetic.add(&sum, &arithmetic.rotate(&tail, self.step(blocks * self.radix))?)
    }

    /// Of a sum by twos in rows of so many slots.
    fn counts(&self, row: usize) -> SumCounts {
        fn switches(count: usize) -> Vec<usize> {
            if count < 2 {
                return Vec::new();
            }
            let doubled = switches(count / 2).into_iter().map(|n| 2 * n);
            doubled.chain(std::iter::repeat_n(1, 1 + count % 2)).collect()
        }
        let zeros = self.stride.trailing_zeros().min(row.trailing_zeros());
        let different = row >> zeros;
        let same = self.count.div_ceil(different.max(1));
        SumCounts { whole: self.count, switches: switches(self.count), stride: self.stride, same }
    }

    /// The sum of the rotations by i `distance` slots for i < count.
    fn together<A: Arithmetic>(
        &self,
        arithmetic: &A,
        x: &A::Ciphertext,
        distance: usize,
        count: usize,
    ) -> Result<A::Ciphertext> {
        if count == 2 {
            return arithmetic.add(x, &arithmetic.rotate(x, self.step(distance))?);
        }
        if (1..count).any(|i| arithmetic.route(self.step(i * distance)).len() > 1) {
            return (1..count).try_fold(arithmetic.duplicate(x)?, |sum, i| {
                arithmetic.add(&sum, &arithmetic.rotate(x, self.step(i * distance))?)
            });
        }
        let level = arithmetic.level(x);
        let babies =
            (0..count).map(|i| Ok((0, arithmetic.element(self.step(i * distance))?))).collect::<Result<_>>()?;
        let giant = Giant { galois: 1, terms: (0..count).map(|i| (i, None)).collect(), repeats: false };
        let (context, extended) = arithmetic.extended(level)?;
        let sum = RotationSum::new(context, level, extended, babies, vec![giant])?;
        let (terms, all) = (vec![vec![(0, None); count]], count as f64);
        let size = MapSize { gain: all, norm: all, row: all, total: all, own: None, image: None };
        let factors = Factors::Held(&terms);
        arithmetic.rotation_sum(&[x], &SizedSum { sum: &sum, factors, size: &size, switches: 0 })
    }
}

/// x with every slot multiplied by a public number; slots beyond the vector become 0. Takes a level in CKKS.
///
/// # Errors
/// As [`Arithmetic::combine`].
pub fn masked<A: Arithmetic>(arithmetic: &A, x: &A::Ciphertext, mask: Vec<A::Scalar>) -> Result<A::Ciphertext> {
    let mask = Coefficient::Slots(mask);
    arithmetic.combine(&Combination { products: Vec::new(), weights: vec![(x, &mask)], constant: None })
}

/// Every slot of a block of `block` slots becomes the block's first one; `block` divides the row. Takes the rotations of
/// `SlotSum::new(block).stride(-1)`, and a level in CKKS.
///
/// # Errors
/// [`Error::Shape`] unless `block` divides the row, or as [`masked`] and [`SlotSum::run`].
pub fn replicate_blocks<A: Arithmetic>(arithmetic: &A, x: &A::Ciphertext, block: usize) -> Result<A::Ciphertext> {
    let shape = arithmetic.slots()?;
    if block == 0 || !shape.row.is_multiple_of(block) {
        return Err(Error::shape(format!("blocks of {block} slots in rows of {}: they must divide a row", shape.row)));
    }
    let mask = (0..shape.count()).map(|i| A::Scalar::integer(i64::from(i % block == 0))).collect();
    SlotSum::new(block).stride(-1).run(arithmetic, &masked(arithmetic, x, mask)?)
}
