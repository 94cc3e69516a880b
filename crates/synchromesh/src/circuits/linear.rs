//! Linear maps of the slots, by diagonals: y = sum_k d_k * rot_k(x), with baby and giant steps and double hoisting.
//!
//! Diagonal k of a matrix M is the vector of its entries M(j, j + k); rot_k brings slot j + k to slot j. With k = g + b,
//! y = sum_g rot_g(sum_b rot_(-g)(d_(g+b)) * rot_b(x)): one decomposition of x for all baby steps b, one key switch for
//! each giant step g, one division by P at the end, merged with the rescale in CKKS. Giant steps are nested, so that those
//! of equal distance have one key.

use std::collections::{BTreeMap, BTreeSet};

use synchromesh_rlwe::{Giant, RotationSum};

use super::slots::SlotShape;
use super::{Arithmetic, MapSize, Number, SizedSum};
use crate::error::{Error, Result};
use crate::rotations::Rotations;

/// A public linear map of the matrix of slots, as its diagonals that are not 0.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearTransform<T> {
    shape: SlotShape,
    /// Whether it meets the swapped (conjugated) argument, and the rotation; with the diagonal's entry at every slot.
    diagonals: BTreeMap<(bool, usize), Vec<T>>,
    /// A bound on |A x|_2 for |x|_2 = 1 that whoever made the map knows.
    norm: Option<f64>,
}

impl<T: Number> LinearTransform<T> {
    /// The map to 0 on slots of this shape.
    #[must_use]
    pub const fn zero(shape: SlotShape) -> Self {
        Self { shape, diagonals: BTreeMap::new(), norm: None }
    }

    /// The map x -> sum_k d_k * rot_k(x) for each (k, d_k) of a list; entries beyond a vector are 0.
    ///
    /// # Errors
    /// [`Error::Shape`] for a vector longer than the slots, or slots of a shape that no ring has.
    pub fn from_diagonals(shape: SlotShape, diagonals: impl IntoIterator<Item = (i64, Vec<T>)>) -> Result<Self> {
        let mut map = Self::zero(shape);
        for (k, values) in diagonals {
            map.add_diagonal(k, false, values)?;
        }
        Ok(map)
    }

    /// Adds x -> d * rot_k(x); with `swap` x -> d * rot_k(x with its rows swapped, or conjugated in CKKS).
    ///
    /// # Errors
    /// [`Error::Shape`] for a vector longer than the slots, or slots of a shape that no ring has.
    pub fn add_diagonal(&mut self, k: i64, swap: bool, values: Vec<T>) -> Result<()> {
        self.shape.check()?;
        let (given, slots) = (values.len(), self.shape.count());
        if given > slots {
            return Err(Error::shape(format!("a diagonal of {given} entries for {slots} slots")));
        }
        let step = k.rem_euclid(self.shape.row as i64) as usize;
        self.norm = None;
        let sum = self.diagonals.entry((swap, step)).or_insert_with(|| vec![T::integer(0); slots]);
        for (sum, value) in sum.iter_mut().zip(values) {
            *sum = sum.minus(&T::integer(0).minus(&value));
        }
        let sum_is_zero = sum.iter().all(T::is_zero);
        if sum_is_zero {
            self.diagonals.remove(&(swap, step));
        }
        Ok(())
    }

    /// Multiplication by a matrix, given by rows: slot r becomes sum_c M(r, c) times slot c, slots beyond the matrix
    /// become 0. In BFV and BGV slots are counted row after row, and a matrix wider or higher than one row of slots
    /// swaps them.
    ///
    /// A matrix of m x n within one row has up to m + n - 1 diagonals; see [`Self::repeated`].
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix larger than the slots.
    pub fn from_dense<R: AsRef<[T]>>(shape: SlotShape, matrix: &[R]) -> Result<Self> {
        let mut map = Self::zero(shape);
        map.fits(matrix)?;
        for (r, row) in matrix.iter().enumerate() {
            for (c, value) in row.as_ref().iter().enumerate().filter(|(_, x)| !x.is_zero()) {
                let step = (c % shape.row + shape.row - r % shape.row) % shape.row;
                let swap = c / shape.row != r / shape.row;
                map.set(swap, step, r, value.clone());
            }
        }
        Ok(map)
    }

    /// Multiplication by an n x n matrix of vectors that are repeated along every row of slots: n diagonals.
    ///
    /// # Errors
    /// [`Error::Shape`] unless the matrix is square and its size divides a row of slots.
    pub fn repeated<R: AsRef<[T]>>(shape: SlotShape, matrix: &[R]) -> Result<Self> {
        shape.check()?;
        let n = matrix.len();
        let square = matrix.iter().all(|row| row.as_ref().len() == n);
        if n == 0 || !square || !shape.row.is_multiple_of(n) {
            let row = shape.row;
            return Err(Error::shape(format!("a square matrix whose size ({n} rows) divides {row} slots is needed")));
        }
        let mut map = Self::zero(shape);
        for (r, row) in matrix.iter().enumerate() {
            for (c, value) in row.as_ref().iter().enumerate().filter(|(_, x)| !x.is_zero()) {
                for slot in (r..shape.count()).step_by(n) {
                    map.set(false, (c + n - r) % n, slot, value.clone());
                }
            }
        }
        Ok(map)
    }

    fn fits<R: AsRef<[T]>>(&self, matrix: &[R]) -> Result<()> {
        self.shape.check()?;
        let (rows, columns) = (matrix.len(), matrix.iter().map(|row| row.as_ref().len()).max().unwrap_or(0));
        if rows.max(columns) <= self.shape.count() {
            return Ok(());
        }
        Err(Error::shape(format!("a matrix of {rows} x {columns} for {} slots", self.shape.count())))
    }

    fn set(&mut self, swap: bool, step: usize, slot: usize, value: T) {
        let slots = self.shape.count();
        self.diagonals.entry((swap, step)).or_insert_with(|| vec![T::integer(0); slots])[slot] = value;
    }

    /// The same map, of which it is known that |A x|_2 is at most `norm` for |x|_2 = 1: certificates rest on it.
    #[must_use]
    pub(crate) const fn with_norm(mut self, norm: f64) -> Self {
        self.norm = Some(norm);
        self
    }

    /// Diagonals that are not 0.
    #[must_use]
    pub fn diagonals(&self) -> usize {
        self.diagonals.len()
    }

    /// Baby and giant steps when there are `baby` baby steps next to one another; giant steps in the order of the unit, so
    /// that most of them are equally far from the one before.
    fn steps(&self, baby: usize) -> (BTreeSet<(bool, usize)>, Vec<usize>) {
        let unit = self.unit();
        let split = |&(swap, k): &(bool, usize)| {
            let (low, giant) = unit.split(k, baby);
            ((swap, low), (unit.place(giant), giant))
        };
        let (babies, giants): (_, BTreeMap<usize, usize>) = self.diagonals.keys().map(split).unzip();
        (babies, giants.into_values().collect())
    }

    /// How far each giant step is from the one before, the first from none: by that much sums are rotated, nested.
    fn apart(&self, giants: &[usize]) -> Vec<usize> {
        let row = self.shape.row;
        std::iter::once(&0).chain(giants).zip(giants).map(|(before, giant)| (row + giant - before) % row).collect()
    }

    /// The unit in which steps are short: 1, what divides all of them, or the shortest, which others are multiples of
    /// modulo the row.
    fn unit(&self) -> Unit {
        let row = self.shape.row;
        let plain = Unit { row, two: 1, odd: 1 };
        if !row.is_power_of_two() {
            return plain;
        }
        let steps = || self.diagonals.keys().map(|&(_, k)| k).filter(|&k| k != 0);
        let away = |k: usize| k.min(row - k);
        let two = 1 << steps().map(usize::trailing_zeros).min().unwrap_or(0).min(row.trailing_zeros());
        let shortest = steps().map(away).min().unwrap_or(1) / two;
        let common = steps().map(away).fold(0, gcd) / two;
        let span = |unit: &Unit| {
            let counted = steps().map(|k| unit.counted(k)).chain([0]);
            counted.fold((0, 0), |(low, high): (i64, i64), k| (low.min(k), high.max(k)))
        };
        let units = [1, shortest, common].into_iter().filter(|odd| odd % 2 == 1).map(|odd| Unit { row, two, odd });
        let shorter = |a: &Unit, b: &Unit| (span(a).1 - span(a).0).cmp(&(span(b).1 - span(b).0));
        units.min_by(shorter).unwrap_or(plain)
    }

    /// How many baby steps make it cheapest: a giant step costs about 1 + log2(N) / 4 baby steps.
    #[must_use]
    pub fn baby_steps(&self) -> usize {
        let giant = 1.0 + f64::from(self.shape.row.trailing_zeros() + 1) / 4.0;
        let cost = |baby: usize| {
            let (babies, giants) = self.steps(baby);
            let moved = babies.iter().filter(|(_, k)| *k != 0).count() as f64;
            moved + giant * giants.iter().filter(|&&k| k != 0).count() as f64
        };
        let sizes = (0..=self.shape.row.trailing_zeros().min(usize::BITS - 1)).map(|i| 1 << i);
        sizes.min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(1)
    }

    /// The rotations it makes with this many baby steps.
    #[must_use]
    pub fn rotations(&self, baby: usize) -> Rotations {
        let (babies, giants) = self.steps(baby.clamp(1, self.shape.row.max(1)));
        let swap = babies.iter().any(|(swap, _)| *swap);
        let steps = babies.into_iter().map(|(_, k)| k).chain(self.apart(&giants));
        Rotations { swap, ..Rotations::by(steps.map(|k| k as i64)) }
    }

    /// Encodes the diagonals for arguments at `level`, with the cheapest number of baby steps.
    ///
    /// # Errors
    /// As [`Self::prepare_with`].
    pub fn prepare<A: Arithmetic<Scalar = T>>(&self, arithmetic: &A, level: usize) -> Result<PreparedTransform<A>> {
        self.prepare_with(arithmetic, level, self.baby_steps())
    }

    /// Encodes the diagonals for arguments at `level`, with `baby` baby steps: more of them make fewer giant steps and
    /// more keys.
    ///
    /// # Errors
    /// [`Error::Shape`] for slots of another shape, [`Error::MissingRotations`], or when the device fails.
    pub fn prepare_with<A: Arithmetic<Scalar = T>>(
        &self,
        arithmetic: &A,
        level: usize,
        baby: usize,
    ) -> Result<PreparedTransform<A>> {
        let baby = baby.clamp(1, self.shape.row.max(1));
        let shape = arithmetic.slots()?;
        if shape != self.shape {
            let made = self.shape;
            return Err(Error::shape(format!(
                "the map is for {} x {} slots, there are {} x {}",
                made.rows, made.row, shape.rows, shape.row
            )));
        }
        let rotations = self.rotations(baby);
        arithmetic.require_rotations(&rotations)?;
        let (unit, (babies, giants)) = (self.unit(), self.steps(baby));
        let babies: Vec<(bool, usize)> = babies.into_iter().collect();
        let (mut compiled, mut terms) = (Vec::new(), Vec::new());
        for (&giant, distance) in giants.iter().zip(self.apart(&giants)) {
            let (mut own, mut sizes) = (Vec::new(), Vec::new());
            for (at, &(swap, b)) in babies.iter().enumerate() {
                // A step next to half a row may be the same as one from the other side.
                let k = (giant + b) % self.shape.row;
                let Some(values) = self.diagonals.get(&(swap, k)).filter(|_| unit.split(k, baby) == (b, giant)) else {
                    continue;
                };
                let (factor, size) = arithmetic.factor(&self.moved(values, giant), level)?;
                own.push((at, Some(factor)));
                sizes.push((usize::from(swap), Some(size)));
            }
            compiled.push(Giant { galois: arithmetic.element(distance as i64)?, terms: own });
            terms.push(sizes);
        }
        let element = |&(swap, b): &(bool, usize)| Ok((usize::from(swap), arithmetic.element(b as i64)?));
        let steps = babies.iter().map(element).collect::<Result<Vec<_>>>()?;
        let (context, extended) = arithmetic.extended(level)?;
        if compiled.is_empty() {
            return Err(Error::shape("the map to 0 has no diagonals; multiply by 0 instead"));
        }
        let sum = RotationSum::new(context, level, extended, steps, compiled)?;
        Ok(PreparedTransform { sum: SizedSum { sum, terms, size: self.size() }, rotations })
    }

    /// A diagonal before the giant step brings it to its place: rotated to the right.
    fn moved(&self, values: &[T], giant: usize) -> Vec<T> {
        let row = self.shape.row;
        let from = |j: usize| j / row * row + (j % row + row - giant) % row;
        (0..values.len()).map(|j| values[from(j)].clone()).collect()
    }

    /// How large it makes slots. By Schur's test its norm is at most the root of the largest row's sum times the largest
    /// column's.
    fn size(&self) -> MapSize {
        let (row, count) = (self.shape.row, self.shape.count());
        let (mut rows, mut columns, mut squares) = (vec![0.0; count], vec![0.0; count], vec![0.0; count]);
        let mut total = 0.0;
        for (&(swap, k), values) in &self.diagonals {
            let mut largest = 0.0;
            for (j, value) in values.iter().enumerate().take(count) {
                let modulus = value.modulus();
                let from =
                    (j / row * row + (j % row + k) % row + if swap && self.shape.rows > 1 { row } else { 0 }) % count;
                rows[j] += modulus;
                columns[from] += modulus;
                squares[j] += modulus * modulus;
                largest = f64::max(largest, modulus);
            }
            total += largest;
        }
        // Residues have no size, and no certificate asks.
        let own = rows.iter().any(|&sum| sum > 0.0).then(|| rows.iter().map(|&sum| sum > 0.0).collect());
        let most = |all: Vec<f64>| all.into_iter().fold(0.0, f64::max);
        let above = 1.0 + 1e-9;
        let (gain, columns, total) = (most(rows) * above, most(columns) * above, total * above);
        let norm = total.min((gain * columns).sqrt());
        let norm = self.norm.map_or(norm, |known| known.min(norm));
        // A slot and its conjugate are values at one pair of roots, where both may meet.
        let pairs = if self.diagonals.keys().any(|&(swap, _)| swap) { 2.0 } else { 1.0 };
        MapSize { gain, norm, row: norm.min((pairs * most(squares)).sqrt() * above), total, own }
    }
}

/// A step that others are multiples of, modulo the row: a power of two times an odd number.
#[derive(Clone, Copy)]
struct Unit {
    row: usize,
    two: usize,
    odd: usize,
}

impl Unit {
    /// A step in units, the short way round.
    const fn counted(self, k: usize) -> i64 {
        let rest = self.row / self.two;
        // Newton's iteration doubles the bits of an inverse modulo a power of two.
        let (mut inverse, mut round) = (self.odd, 0);
        while round < 6 {
            inverse = inverse.wrapping_mul(2usize.wrapping_sub(self.odd.wrapping_mul(inverse)));
            round += 1;
        }
        let count = (k / self.two).wrapping_mul(inverse) % rest;
        if count > rest / 2 { count as i64 - rest as i64 } else { count as i64 }
    }

    /// Where a step comes, all counted one way round from none.
    const fn place(self, k: usize) -> usize {
        self.counted(k).rem_euclid((self.row / self.two) as i64) as usize
    }

    /// A step as its baby step and its giant step, a multiple of `baby` units, to the left or to the right.
    const fn split(self, k: usize, baby: usize) -> (usize, usize) {
        let (row, counted) = (self.row as i64, self.counted(k));
        let low = counted.rem_euclid(baby as i64);
        let unit = (self.two * self.odd) as i64;
        ((low * unit).rem_euclid(row) as usize, ((counted - low) * unit).rem_euclid(row) as usize)
    }
}

/// The greatest common divisor; that of 0 and b is b.
const fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A linear map encoded for one level of one context.
pub struct PreparedTransform<A: Arithmetic> {
    sum: SizedSum<A::Backend, A::Size>,
    rotations: Rotations,
}

impl<A: Arithmetic> PreparedTransform<A> {
    /// The level that arguments are brought to.
    #[must_use]
    pub const fn level(&self) -> usize {
        self.sum.sum.level()
    }

    /// The rotations it makes.
    #[must_use]
    pub const fn rotations(&self) -> &Rotations {
        &self.rotations
    }

    /// Bytes of its diagonals for ring degree n.
    #[must_use]
    pub fn bytes(&self, n: usize) -> usize {
        self.sum.sum.bytes(n)
    }

    /// The image of x; takes a level in CKKS.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] for an argument below the level it was encoded for,
    /// [`Error::MissingRotations`], or as the evaluator's rotations and products with plaintexts.
    pub fn apply(&self, arithmetic: &A, x: &A::Ciphertext) -> Result<A::Ciphertext> {
        arithmetic.require_rotations(&self.rotations)?;
        let x = arithmetic.at_level(x, self.level())?;
        if !self.rotations.swap {
            return arithmetic.rotation_sum(&[&x], &self.sum);
        }
        let swapped = arithmetic.swap(&x)?;
        arithmetic.rotation_sum(&[&x, &swapped], &self.sum)
    }
}
