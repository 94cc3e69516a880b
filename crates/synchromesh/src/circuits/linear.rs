//! Linear maps of the slots, by diagonals: y = sum_k d_k * rot_k(x), with baby and giant steps and double hoisting.
//!
//! Diagonal k of a matrix M is the vector of its entries M(j, j + k); rot_k brings slot j + k to slot j. With k = g + b,
//! y = sum_g rot_g(sum_b rot_(-g)(d_(g+b)) * rot_b(x)): one decomposition of x for all baby steps b, one key switch for
//! each giant step g, one division by P at the end, merged with the rescale in CKKS. Giant steps are nested, so that those
//! of equal distance have one key.

mod pattern;

use std::collections::BTreeMap;

use synchromesh_rlwe::{Giant, RotationSum};

pub(crate) use self::pattern::Pattern;
use self::pattern::Unit;
use super::slots::SlotShape;
use super::{Arithmetic, Factors, MapSize, Number, SizedSum, Step};
use crate::embedding::Complex64;
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
    /// What no message exceeds after the map, likewise.
    image: Option<f64>,
}

impl<T: Number> LinearTransform<T> {
    /// The map to 0 on slots of this shape.
    #[must_use]
    pub const fn zero(shape: SlotShape) -> Self {
        Self { shape, diagonals: BTreeMap::new(), norm: None, image: None }
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
        (self.norm, self.image) = (None, None);
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

    /// The same map, after which no message that it is applied to is larger, in whatever sense the ciphertext has a message
    /// from then on.
    #[must_use]
    pub(crate) const fn with_image(mut self, bound: f64) -> Self {
        self.image = Some(bound);
        self
    }

    /// Diagonals that are not 0.
    #[must_use]
    pub fn diagonals(&self) -> usize {
        self.diagonals.len()
    }

    /// Which diagonals there are.
    pub(crate) fn pattern(&self) -> Pattern {
        Pattern { row: self.shape.row, diagonals: self.diagonals.keys().copied().collect() }
    }

    /// How many baby steps make it cheapest.
    #[must_use]
    pub fn baby_steps(&self) -> usize {
        self.pattern().baby_steps()
    }

    /// The rotations it makes with this many baby steps.
    #[must_use]
    pub fn rotations(&self, baby: usize) -> Rotations {
        self.pattern().rotations(baby)
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
        let layout = self.layout(arithmetic, baby)?;
        let (mut compiled, mut terms) = (Vec::new(), Vec::new());
        let repeats = self.repeats();
        for (at, &(galois, _)) in layout.giants.iter().enumerate() {
            let (own, sizes) = self.step(arithmetic, &layout, at, level)?;
            compiled.push(Giant { galois, terms: own, repeats });
            terms.push(sizes);
        }
        let (context, extended) = arithmetic.extended(level)?;
        let sum = RotationSum::new(context, level, extended, layout.babies, compiled)?;
        Ok(PreparedTransform { sum, terms, size: self.size(), rotations: layout.rotations, composed: layout.composed })
    }

    /// The image of x; takes a level in CKKS. Diagonals are encoded for one giant step at a time: a map that is applied once
    /// takes no more memory than these.
    ///
    /// # Errors
    /// As [`Self::prepare`] and [`PreparedTransform::apply`].
    pub fn apply<A: Arithmetic<Scalar = T>>(&self, arithmetic: &A, x: &A::Ciphertext) -> Result<A::Ciphertext> {
        let layout = self.layout(arithmetic, self.baby_steps())?;
        arithmetic.with_room(&[x], &|x| self.applied(arithmetic, &layout, x[0]))
    }

    fn applied<A: Arithmetic<Scalar = T>>(
        &self,
        arithmetic: &A,
        layout: &Layout,
        x: &A::Ciphertext,
    ) -> Result<A::Ciphertext> {
        let x = arithmetic.renewed(x, arithmetic.lowest_level() + 1)?;
        let level = arithmetic.level(x);
        let (context, extended) = arithmetic.extended(level)?;
        let giants = layout.giants.iter().map(|&(galois, _)| galois);
        let sum = RotationSum::outline(context, level, extended, layout.babies.clone(), giants);
        let (x, size) = (arithmetic.at_level(x, level)?, self.size());
        let make = |at| self.step(arithmetic, layout, at, level);
        let switches = switches(&layout.composed);
        let sum = SizedSum { sum: &sum, factors: Factors::Made(&make), size: &size, switches };
        summed(arithmetic, &x, &sum, (&layout.rotations, &layout.composed))
    }

    /// Which rotations make the map with this many baby steps.
    fn layout<A: Arithmetic<Scalar = T>>(&self, arithmetic: &A, baby: usize) -> Result<Layout> {
        let baby = baby.clamp(1, self.shape.row.max(1));
        let shape = arithmetic.slots()?;
        if shape != self.shape {
            let made = self.shape;
            return Err(Error::shape(format!(
                "the map is for {} x {} slots, there are {} x {}",
                made.rows, made.row, shape.rows, shape.row
            )));
        }
        if self.diagonals.is_empty() {
            return Err(Error::shape("the map to 0 has no diagonals; multiply by 0 instead"));
        }
        let pattern = self.pattern();
        let rotations = pattern.rotations(baby);
        arithmetic.require_rotations(&rotations)?;
        let (unit, (steps, places)) = (pattern.unit(), pattern.steps(baby));
        let steps: Vec<(bool, usize)> = steps.into_iter().collect();
        let (mut babies, mut composed) = (Vec::with_capacity(steps.len()), Vec::new());
        let arguments = 1 + usize::from(rotations.swap);
        for &(swap, b) in &steps {
            let route = arithmetic.route(b as i64);
            if route.len() > 1 {
                babies.push((arguments + composed.len(), 1));
                composed.push((swap, route));
            } else {
                babies.push((usize::from(swap), arithmetic.element(b as i64)?));
            }
        }
        let mut giants = Vec::with_capacity(places.len());
        for (&distance, &place) in pattern.apart(&places).iter().zip(&places) {
            let route = arithmetic.route(distance as i64);
            for (left, &k) in (0..route.len()).rev().zip(&route) {
                giants.push((arithmetic.element(k)?, (left == 0).then_some(place)));
            }
        }
        Ok(Layout { baby, unit, steps, babies, composed, giants, rotations })
    }

    /// The diagonals of one giant step, encoded.
    fn step<A: Arithmetic<Scalar = T>>(
        &self,
        arithmetic: &A,
        layout: &Layout,
        at: usize,
        level: usize,
    ) -> Result<Step<A::Backend, A::Size>> {
        let (mut own, mut sizes) = (Vec::new(), Vec::new());
        let Some(giant) = layout.giants[at].1 else { return Ok((own, sizes)) };
        for (baby, &(swap, b)) in layout.steps.iter().enumerate() {
            // A step next to half a row may be the same as one from the other side.
            let k = (giant + b) % self.shape.row;
            let own_step = layout.unit.split(k, layout.baby) == (b, giant);
            let Some(values) = self.diagonals.get(&(swap, k)).filter(|_| own_step) else { continue };
            let (factor, size) = arithmetic.factor(&self.moved(values, giant), level)?;
            own.push((baby, Some(factor)));
            sizes.push((layout.babies[baby].0, Some(size)));
        }
        Ok((own, sizes))
    }

    /// Whether all diagonals have a period that makes of them polynomials in X^8 where slots are those of CKKS.
    fn repeats(&self) -> bool {
        let period = self.shape.row / 8;
        let same = |values: &Vec<T>| (period..values.len()).all(|i| values[i] == values[i - period]);
        self.shape.rows == 1 && period > 1 && self.diagonals.values().all(same)
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
            let swapped = if swap && self.shape.rows > 1 { row } else { 0 };
            for (first, values) in (0..count).step_by(row).zip(values.chunks(row)) {
                let from_row = (first + swapped) % count;
                let from = (k..row).chain(0..k).map(|from| from_row + from);
                for ((j, value), from) in (first..).zip(values).zip(from) {
                    let modulus = value.modulus();
                    rows[j] += modulus;
                    columns[from] += modulus;
                    squares[j] += modulus * modulus;
                    largest = f64::max(largest, modulus);
                }
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
        let row = norm.min((pairs * most(squares)).sqrt() * above);
        MapSize { gain, norm, row, total, own, image: self.image }
    }
}

impl LinearTransform<Complex64> {
    /// The map and then the product with a number.
    pub(crate) fn times(mut self, number: f64) -> Self {
        for z in self.diagonals.values_mut().flatten() {
            *z = Complex64::new(z.re * number, z.im * number);
        }
        [self.norm, self.image] = [self.norm, self.image].map(|bound| bound.map(|bound| bound * number.abs()));
        self
    }
}

/// Rotations of the argument, or of it swapped, that have no key of their own, by the rotations they are made of.
type Composed = Vec<(bool, Vec<i64>)>;

/// Which rotations make a map: baby steps, giant steps, and the Galois elements of both.
struct Layout {
    /// How many baby steps there may be.
    baby: usize,
    unit: Unit,
    steps: Vec<(bool, usize)>,
    /// For each baby step its input and the Galois element: inputs are the argument, where any step needs it the argument
    /// swapped, and those that are composed.
    babies: Vec<(usize, usize)>,
    composed: Composed,
    /// The Galois elements that bring each giant step to the one before, nested, with the step's place at the last of them.
    giants: Vec<(usize, Option<usize>)>,
    rotations: Rotations,
}

/// The sum for an argument of its level.
fn summed<A: Arithmetic>(
    arithmetic: &A,
    x: &A::Ciphertext,
    sum: &SizedSum<'_, A::Backend, A::Size>,
    (rotations, composed): (&Rotations, &Composed),
) -> Result<A::Ciphertext> {
    let swapped = if rotations.swap { Some(arithmetic.swap(x)?) } else { None };
    let rotated = rotated(arithmetic, x, swapped.as_ref(), composed)?;
    let inputs: Vec<&A::Ciphertext> = std::iter::once(x).chain(&swapped).chain(&rotated).collect();
    arithmetic.rotation_sum(&inputs, sum)
}

/// The most key switches of a composed rotation.
fn switches(composed: &Composed) -> usize {
    composed.iter().map(|(_, route)| route.len()).max().unwrap_or(0)
}

/// The composed rotations, of which those that begin alike share what they begin with.
fn rotated<A: Arithmetic>(
    arithmetic: &A,
    x: &A::Ciphertext,
    swapped: Option<&A::Ciphertext>,
    composed: &Composed,
) -> Result<Vec<A::Ciphertext>> {
    let mut made: BTreeMap<(bool, i64), A::Ciphertext> = BTreeMap::new();
    let mut ends = Vec::with_capacity(composed.len());
    for (swap, route) in composed {
        let start = if *swap { swapped.unwrap_or(x) } else { x };
        // Routes are the shortest ones of one search: from their last rotation on they are branches of one tree.
        let mut sum = 0i64;
        for &k in route.iter().rev() {
            let (before, end) = (made.get(&(*swap, sum)), (*swap, sum + k));
            let new = if made.contains_key(&end) { None } else { Some(arithmetic.rotate(before.unwrap_or(start), k)?) };
            made.extend(new.map(|rotated| (end, rotated)));
            sum += k;
        }
        ends.push((*swap, sum));
    }
    ends.into_iter()
        .map(|end| made.remove(&end).ok_or_else(|| Error::argument("a rotation that is composed twice")))
        .collect()
}

/// A linear map encoded for one level of one context.
pub struct PreparedTransform<A: Arithmetic> {
    sum: RotationSum<A::Backend>,
    terms: Vec<Vec<(usize, Option<A::Size>)>>,
    size: MapSize,
    rotations: Rotations,
    composed: Composed,
}

impl<A: Arithmetic> PreparedTransform<A> {
    /// The level that arguments are brought to.
    #[must_use]
    pub const fn level(&self) -> usize {
        self.sum.level()
    }

    /// The rotations it makes.
    #[must_use]
    pub const fn rotations(&self) -> &Rotations {
        &self.rotations
    }

    /// Bytes of its diagonals for ring degree n.
    #[must_use]
    pub fn bytes(&self, n: usize) -> usize {
        self.sum.bytes(n)
    }

    /// The image of x; takes a level in CKKS.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] for an argument below the level it was encoded for,
    /// [`Error::MissingRotations`], or as the evaluator's rotations and products with plaintexts.
    pub fn apply(&self, arithmetic: &A, x: &A::Ciphertext) -> Result<A::Ciphertext> {
        arithmetic.require_rotations(&self.rotations)?;
        arithmetic.with_room(&[x], &|x| self.applied(arithmetic, x[0]))
    }

    fn applied(&self, arithmetic: &A, x: &A::Ciphertext) -> Result<A::Ciphertext> {
        let mut x = arithmetic.renewed(x, arithmetic.lowest_level() + 1)?;
        if arithmetic.level(x) < self.level() {
            x = arithmetic.renewed(x, self.level())?;
        }
        let x = arithmetic.at_level(x, self.level())?;
        let (factors, switches) = (Factors::Held(&self.terms), switches(&self.composed));
        let sum = SizedSum { sum: &self.sum, factors, size: &self.size, switches };
        summed(arithmetic, &x, &sum, (&self.rotations, &self.composed))
    }
}
