//! Matrices of any shape as blocks in ciphertexts: cutting, padding, packing, products, and the choice of block sizes.

use super::arithmetic::{Levels, MatrixArithmetic};
use super::dense::Matrix;
use super::multiply::{MatrixChoices, Tile, levels, multiply};
use super::packing::{MatrixPacking, Side};
use crate::circuits::{LinearTransform, Number};
use crate::error::{Error, Result};
use crate::rotations::Rotations;

/// How the products of `batch` pairs of matrices, R x K times K x C each, are cut into blocks.
///
/// A ciphertext holds one block for each of its copies: `batch` x `grid[0]` x `grid[1]` are used. Copies of a pair are
/// `grid[0]` blocks below one another of the left factor and the product, and `grid[1]` beside one another of the right
/// factor and the product, repeated where a factor has no such direction. Matrices are padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixPlan {
    packing: MatrixPacking,
    shape: [usize; 3],
    batch: usize,
    grid: [usize; 2],
}

impl MatrixPlan {
    /// The plan for `batch` products of `shape` = \[R, K, C\].
    ///
    /// # Errors
    /// [`Error::Shape`] for an empty matrix or batch, or more copies than the packing has.
    pub fn new(packing: MatrixPacking, shape: [usize; 3], batch: usize, grid: [usize; 2]) -> Result<Self> {
        let used = batch.checked_mul(grid[0]).and_then(|c| c.checked_mul(grid[1]));
        if shape.contains(&0) || !used.is_some_and(|used| (1..=packing.copies()).contains(&used)) {
            return Err(Error::shape(format!(
                "{batch} products of {} x {} times {} x {} in {} x {} blocks each: there must be something to multiply, \
                 and the packing has {} copies",
                shape[0],
                shape[1],
                shape[1],
                shape[2],
                grid[0],
                grid[1],
                packing.copies()
            )));
        }
        Ok(Self { packing, shape, batch, grid })
    }

    /// How blocks lie in slots.
    #[must_use]
    pub const fn packing(&self) -> &MatrixPacking {
        &self.packing
    }

    /// R, K and C: rows of the left factors, what is summed over, columns of the right factors.
    #[must_use]
    pub const fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Pairs of matrices.
    #[must_use]
    pub const fn batch(&self) -> usize {
        self.batch
    }

    /// Blocks of the product in one ciphertext, below and beside one another.
    #[must_use]
    pub const fn grid(&self) -> [usize; 2] {
        self.grid
    }

    /// Ciphertexts in each direction: the left factors are \[0\] x \[1\] ciphertexts, the right ones \[1\] x \[2\], the
    /// products \[0\] x \[2\], row after row.
    #[must_use]
    pub const fn blocks(&self) -> [usize; 3] {
        let (p, [rows, columns], [r, k, c]) = (&self.packing, self.grid, self.shape);
        [r.div_ceil(p.rows() * rows), k.div_ceil(p.inner()), c.div_ceil(p.columns() * columns)]
    }

    /// Ciphertexts of a factor.
    #[must_use]
    pub const fn ciphertexts(&self, side: Side) -> usize {
        let [rows, inner, columns] = self.blocks();
        match side {
            Side::Left => rows * inner,
            Side::Right => inner * columns,
        }
    }

    /// Which pair, block row and block column a copy is.
    const fn copy(&self, copy: usize) -> [usize; 3] {
        let [rows, columns] = self.grid;
        [copy / (rows * columns), copy / columns % rows, copy % columns]
    }

    /// The matrix and the place in it of entry (i, j) of a copy's block in ciphertext number `at` of a factor.
    const fn place(&self, side: Side, at: usize, copy: usize, i: usize, j: usize) -> [usize; 3] {
        let [pair, row, column] = self.copy(copy);
        let [_, inner, columns] = self.blocks();
        let p = &self.packing;
        match side {
            Side::Left => [pair, (at / inner * self.grid[0] + row) * p.rows() + i, at % inner * p.inner() + j],
            Side::Right => {
                [pair, at / columns * p.inner() + i, (at % columns * self.grid[1] + column) * p.columns() + j]
            }
        }
    }

    fn require<T: Clone>(&self, side: Side, matrices: &[Matrix<T>]) -> Result<()> {
        let [r, k, c] = self.shape;
        let wanted = if side == Side::Left { [r, k] } else { [k, c] };
        if matrices.len() != self.batch {
            return Err(Error::shape(format!("{} matrices for {} products", matrices.len(), self.batch)));
        }
        match matrices.iter().find(|m| [m.rows(), m.columns()] != wanted) {
            Some(m) => Err(Error::shape(format!(
                "a factor of {} x {} where the plan has {} x {}",
                m.rows(),
                m.columns(),
                wanted[0],
                wanted[1]
            ))),
            None => Ok(()),
        }
    }

    /// The slots of each ciphertext of a factor, to be encoded and encrypted.
    ///
    /// # Errors
    /// [`Error::Shape`] for matrices of another shape or number.
    pub fn slots<T: Number>(&self, side: Side, matrices: &[Matrix<T>]) -> Result<Vec<Vec<T>>> {
        self.require(side, matrices)?;
        let entry = |at: usize, copy: usize, i: usize, j: usize| {
            let [pair, row, column] = self.place(side, at, copy, i, j);
            matrices.get(pair).and_then(|m| m.get(row, column)).cloned()
        };
        let one = |at| self.packing.pack(side, |copy, i, j| entry(at, copy, i, j));
        Ok((0..self.ciphertexts(side)).map(one).collect())
    }

    /// The products from the slots of their ciphertexts.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of ciphertexts or of slots.
    pub fn products<T: Clone>(&self, slots: &[Vec<T>]) -> Result<Vec<Matrix<T>>> {
        let [rows, _, columns] = self.blocks();
        let count = self.packing.shape().count();
        if slots.len() != rows * columns || slots.iter().any(|s| s.len() != count) {
            let given = slots.len();
            return Err(Error::shape(format!("{given} vectors of slots for {} of {count}", rows * columns)));
        }
        let p = &self.packing;
        let entry = |pair: usize, i: usize, j: usize| {
            let (block_row, block_column) = (i / p.rows(), j / p.columns());
            let [r, c] = [block_row % self.grid[0], block_column % self.grid[1]];
            let copy = (pair * self.grid[0] + r) * self.grid[1] + c;
            let at = block_row / self.grid[0] * columns + block_column / self.grid[1];
            p.entry(&slots[at], copy, i % p.rows(), j % p.columns()).cloned()
        };
        let missing = || Error::shape("an entry of a product lies in no slot");
        let one = |pair: usize| {
            let all = (0..self.shape[0]).flat_map(|i| (0..self.shape[2]).map(move |j| (i, j)));
            let entries = all.map(|(i, j)| entry(pair, i, j).ok_or_else(missing)).collect::<Result<_>>()?;
            Matrix::new(self.shape[0], self.shape[2], entries)
        };
        (0..self.batch).map(one).collect()
    }

    /// The rotations that products make.
    #[must_use]
    pub fn rotations(&self, choices: &MatrixChoices) -> Rotations {
        self.packing.rotations(choices)
    }

    /// The levels that products of such ciphertexts are computed at.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] when a mask finds no level left in CKKS, or as the evaluator's rotations.
    pub fn levels<A: MatrixArithmetic>(
        &self,
        arithmetic: &A,
        left: &A::Ciphertext,
        right: &A::Ciphertext,
    ) -> Result<Levels> {
        let [_, inner, _] = self.blocks();
        levels(arithmetic, &self.packing, [left, right], inner)
    }

    /// Key switches of a product: rotations and relinearisations.
    #[must_use]
    pub fn key_switches(&self, choices: &MatrixChoices) -> usize {
        let [rows, inner, columns] = self.blocks();
        let [high, wide] = choices.tile.unwrap_or([rows, columns]).map(|size| size.max(1));
        let steps = self.packing.inner() - 1;
        // With masks, two rotations a step and the one by a line.
        let left = if self.packing.is_masked() { 2 * steps + 1 } else { steps };
        let rotations = left * rows * columns.div_ceil(wide) + steps * columns * rows.div_ceil(high);
        rotations * inner + rows * columns
    }

    /// The ciphertexts of the products, from those of the factors; \[`Self::blocks`\] says how many there are.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of ciphertexts or slots of another shape, [`Error::MissingRotations`], or as
    /// the evaluator's rotations and products.
    pub fn multiply<A: MatrixArithmetic>(
        &self,
        arithmetic: &A,
        choices: &MatrixChoices,
        left: &[A::Ciphertext],
        right: &[A::Ciphertext],
    ) -> Result<Vec<A::Ciphertext>> {
        self.require_count(Side::Left, left.len())?;
        self.require_count(Side::Right, right.len())?;
        self.multiply_part(arithmetic, choices, left, right)
    }

    /// Some rows and columns of the ciphertexts that [`Self::multiply`] makes, row after row: from those rows of the left
    /// factor's ciphertexts and those columns of the right one's.
    ///
    /// # Errors
    /// As [`Self::multiply`].
    pub fn multiply_part<A: MatrixArithmetic>(
        &self,
        arithmetic: &A,
        choices: &MatrixChoices,
        left: &[A::Ciphertext],
        right: &[A::Ciphertext],
    ) -> Result<Vec<A::Ciphertext>> {
        let [_, inner, _] = self.blocks();
        let [rows, columns] = [left.len() / inner, right.len() / inner];
        if [rows * inner, columns * inner] != [left.len(), right.len()] || rows * columns == 0 {
            let (left, right) = (left.len(), right.len());
            return Err(Error::shape(format!(
                "{left} and {right} ciphertexts are no rows and columns of {inner} each"
            )));
        }
        let [high, wide] = choices.tile.unwrap_or([rows, columns]).map(|size| size.max(1));
        let mut out: Vec<Option<A::Ciphertext>> = (0..rows * columns).map(|_| None).collect();
        for top in (0..rows).step_by(high) {
            let lines = top..(top + high).min(rows);
            let left: Vec<&A::Ciphertext> = left[lines.start * inner..lines.end * inner].iter().collect();
            for first in (0..columns).step_by(wide) {
                let across = first..(first + wide).min(columns);
                let chosen = (0..inner).flat_map(|l| across.clone().map(move |j| l * columns + j));
                let tile = Tile { left: left.clone(), right: chosen.map(|at| &right[at]).collect(), inner };
                let made = multiply(arithmetic, &self.packing, choices, &tile)?;
                let places = lines.clone().flat_map(|i| across.clone().map(move |j| i * columns + j));
                places.zip(made).for_each(|(at, product)| out[at] = Some(product));
            }
        }
        Ok(out.into_iter().flatten().collect())
    }

    /// The ciphertexts of the products of an encrypted factor on `side` with public matrices: as linear maps of its
    /// slots by baby and giant steps, without masks or relinearisation.
    ///
    /// # Errors
    /// As [`Self::multiply`], for the rotations of [`Self::plain_rotations`].
    pub fn multiply_plain<A: MatrixArithmetic>(
        &self,
        arithmetic: &A,
        side: Side,
        encrypted: &[A::Ciphertext],
        public: &[Matrix<A::Scalar>],
    ) -> Result<Vec<A::Ciphertext>> {
        let other = if side == Side::Left { Side::Right } else { Side::Left };
        self.require(other, public)?;
        self.require_count(side, encrypted.len())?;
        let [rows, inner, columns] = self.blocks();
        let level = encrypted.iter().map(|x| arithmetic.level(x)).min().unwrap_or(0);
        let mut out: Vec<Option<A::Ciphertext>> = (0..rows * columns).map(|_| None).collect();
        for at in 0..self.ciphertexts(other) {
            let entry = |copy: usize, i: usize, j: usize| {
                let [pair, row, column] = self.place(other, at, copy, i, j);
                public.get(pair).and_then(|m| m.get(row, column)).cloned()
            };
            let map = self.packing.plain_product(side, entry)?;
            if map.diagonals() == 0 {
                continue;
            }
            let prepared = map.prepare_with(arithmetic, level, self.plain_baby_steps(side))?;
            // The blocks that meet this one, and where their products go.
            let meets: Vec<(usize, usize)> = match side {
                Side::Left => (0..rows).map(|i| (i * inner + at / columns, i * columns + at % columns)).collect(),
                Side::Right => (0..columns).map(|j| (at % inner * columns + j, at / inner * columns + j)).collect(),
            };
            for (from, to) in meets {
                let product = prepared.apply(arithmetic, &encrypted[from])?;
                out[to] = Some(match out[to].take() {
                    Some(sum) => arithmetic.add(&sum, &product)?,
                    None => product,
                });
            }
        }
        let zero = || Error::shape("a product with a public matrix of zeros is zero: nothing is to be computed");
        out.into_iter().map(|x| x.ok_or_else(zero)).collect()
    }

    /// The rotations that [`Self::multiply_plain`] makes for an encrypted factor on `side`.
    ///
    /// # Errors
    /// When a vector does not fit, which no plan causes.
    pub fn plain_rotations(&self, side: Side) -> Result<Rotations> {
        Ok(self.dense_map(side)?.rotations(self.plain_baby_steps(side)))
    }

    /// The map of a product with a public matrix that has no zeros.
    fn dense_map(&self, side: Side) -> Result<LinearTransform<num_bigint::BigInt>> {
        self.packing.plain_product(side, |_, _, _| Some(1.into()))
    }

    /// Baby steps of products with public matrices: the same for all of them, so that their keys are.
    fn plain_baby_steps(&self, side: Side) -> usize {
        self.dense_map(side).map_or(1, |map| map.baby_steps())
    }

    /// The map of slots that makes products of this plan factors of `next`: A B as left factor of (A B) C, or B C as
    /// right factor of A (B C). It takes as much noise as a product with a mask, and a level in CKKS.
    ///
    /// # Errors
    /// [`Error::Shape`] unless both plans have one packing of square blocks, one batch, and copies in the direction of
    /// the other factor only: below one another for left factors, beside one another for right ones.
    pub fn chain<T: Number>(&self, next: &Self, side: Side) -> Result<LinearTransform<T>> {
        let [rows, _, columns] = self.shape;
        let (crossing, wanted) = match side {
            Side::Left => (1, [next.shape[0], next.shape[1]]),
            Side::Right => (0, [next.shape[1], next.shape[2]]),
        };
        let alike = self.packing == next.packing && self.batch == next.batch && self.grid == next.grid;
        if !alike || self.grid[crossing] != 1 || [rows, columns] != wanted {
            return Err(Error::shape(format!(
                "products of {rows} x {columns} do not become factors of {} x {}: both plans need one shape for them, \
                 one packing and one batch, and copies in the direction of the other factor only",
                wanted[0], wanted[1],
            )));
        }
        self.packing.map(side)
    }

    fn require_count(&self, side: Side, given: usize) -> Result<()> {
        let wanted = self.ciphertexts(side);
        if given == wanted {
            return Ok(());
        }
        Err(Error::shape(format!("{given} ciphertexts for a {side:?} factor of {wanted}")))
    }
}
