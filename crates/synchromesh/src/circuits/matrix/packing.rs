//! Where the entries of matrix blocks lie in the slots, so that a product of blocks is a sum of products of rotations.
//!
//! A block product is A B with A of I x T entries and B of T x J. A row of slots holds m copies of a block interleaved:
//! entry x of line i of copy c is slot (i L + x) m + c, for i < I and x < L with I L m slots in a row. With
//! ```text
//! left:  a(i, x) = A(i, i + x mod T)      right:  b(i, x) = B(i + x mod T, x), 0 for x >= J
//! C(i, x) = sum_k A(i, i + x + k mod T) B(i + x + k mod T, x),    k = 0 .. T - 1
//! ```
//! the k-th factors are a(i, x + k) and b(i + k, x). The latter is b rotated by k L m slots, as T divides I. The former
//! is a rotated by k m slots where x + k < L. With J = T = L (Jiang et al., ePrint 2018/1041; ePrint 2023/593, sections
//! 2.4 and 3.2) it is not, and slots with x + k >= L come from another rotation, chosen by a mask of zeros and ones:
//! products with the mask cost as much noise as t has bits. With J + T - 1 <= L every slot that matters is in its own
//! line, and there is no mask.

use super::dense::Matrix;
use crate::circuits::{LinearTransform, Number, SlotShape};
use crate::error::{Error, Result};

/// A way of packing blocks of matrices into slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixPacking {
    shape: SlotShape,
    rows: usize,
    inner: usize,
    columns: usize,
    window: usize,
}

/// In which way a ciphertext holds the blocks of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// As left factor: rows permuted by sigma, ePrint 2023/593, section 2.4.
    Left,
    /// As right factor: columns permuted by tau.
    Right,
}

impl MatrixPacking {
    /// Blocks of `rows` x `inner` times `inner` x `columns` in lines of `window` slots.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `inner` divides `rows`, `rows` x `window` divides a row of slots, and either
    /// `columns` + `inner` - 1 <= `window`, or `columns` <= `window` and `inner` divides `window`.
    pub fn new(shape: SlotShape, rows: usize, inner: usize, columns: usize, window: usize) -> Result<Self> {
        let fits = |slots: Option<usize>| slots.is_some_and(|s| s > 0 && shape.row.is_multiple_of(s));
        let positive = rows > 0 && inner > 0 && columns > 0 && rows.is_multiple_of(inner);
        let wide = columns.saturating_add(inner) <= window.saturating_add(1);
        let masked = inner > 0 && columns <= window && window.is_multiple_of(inner);
        if positive && fits(rows.checked_mul(window)) && (wide || masked) {
            return Ok(Self { shape, rows, inner, columns, window });
        }
        Err(Error::shape(format!(
            "blocks of {rows} x {inner} times {inner} x {columns} in lines of {window} slots do not fit rows of {} \
             slots: inner divides rows, rows x window divides the slots of a row, and columns + inner - 1 are at most a \
             line, or columns are and inner divides it",
            shape.row
        )))
    }

    /// Square blocks of d x d in lines of d slots, with masks: the packing that holds most (ePrint 2018/1041).
    ///
    /// # Errors
    /// [`Error::Shape`] unless d^2 divides a row of slots.
    pub fn square(shape: SlotShape, d: usize) -> Result<Self> {
        Self::new(shape, d, d, d, d)
    }

    /// Square blocks of d x d in lines of 2d slots, without masks: half as many, for less noise and half the rotations
    /// of the left factor.
    ///
    /// # Errors
    /// [`Error::Shape`] unless 2d^2 divides a row of slots.
    pub fn doubled(shape: SlotShape, d: usize) -> Result<Self> {
        Self::new(shape, d, d, d, 2 * d)
    }

    /// The slots it is for.
    #[must_use]
    pub const fn shape(&self) -> SlotShape {
        self.shape
    }

    /// Rows of a left block and of a product.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of a left block and rows of a right one: as many steps has a product.
    #[must_use]
    pub const fn inner(&self) -> usize {
        self.inner
    }

    /// Columns of a right block and of a product.
    #[must_use]
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// Slots of a line.
    #[must_use]
    pub const fn window(&self) -> usize {
        self.window
    }

    /// Whether the left factor's rotations need masks.
    #[must_use]
    pub const fn is_masked(&self) -> bool {
        self.columns + self.inner > self.window + 1
    }

    /// Blocks in one ciphertext.
    #[must_use]
    pub const fn copies(&self) -> usize {
        self.stride() * self.shape.rows
    }

    /// Blocks interleaved in a row of slots, m.
    #[must_use]
    pub const fn stride(&self) -> usize {
        self.shape.row / (self.rows * self.window)
    }

    /// Slots that a step of a factor rotates it by, to the left: m or L m.
    #[must_use]
    pub const fn step(&self, side: Side) -> i64 {
        match side {
            Side::Left => self.stride() as i64,
            Side::Right => (self.stride() * self.window) as i64,
        }
    }

    /// The slot of entry x of line i of a copy.
    const fn slot(&self, copy: usize, i: usize, x: usize) -> usize {
        let m = self.stride();
        (copy / m) * self.shape.row + (i * self.window + x) * m + copy % m
    }

    /// The entry of a factor's block that lies at entry x of line i; none: 0.
    ///
    /// Left factors with masks are rotated to the right by a line, from where the rotation by a line, which right
    /// factors need anyway, gives the other argument of the masks (ePrint 2023/593, section 3.1).
    const fn source(&self, side: Side, i: usize, x: usize) -> Option<(usize, usize)> {
        match side {
            Side::Left => {
                let line = if self.is_masked() { (i + self.rows - 1) % self.rows } else { i };
                Some((line, (line + x) % self.inner))
            }
            Side::Right if x < self.columns => Some(((i + x) % self.inner, x)),
            Side::Right => None,
        }
    }

    /// The slots of a factor whose copy c is the block with entries `entry(c, i, j)`; entries that are none are 0.
    #[must_use]
    pub fn pack<T: Number>(&self, side: Side, entry: impl Fn(usize, usize, usize) -> Option<T>) -> Vec<T> {
        let mut slots = vec![T::integer(0); self.shape.count()];
        for copy in 0..self.copies() {
            for i in 0..self.rows {
                for x in 0..self.window {
                    let value = self.source(side, i, x).and_then(|(row, column)| entry(copy, row, column));
                    if let Some(value) = value {
                        slots[self.slot(copy, i, x)] = value;
                    }
                }
            }
        }
        slots
    }

    /// The slots of a matrix in each copy as products leave it: entry (i, j) at entry j of line i. From there
    /// [`Self::map`] makes factors of it on ciphertexts.
    #[must_use]
    pub fn pack_plainly<T: Number>(&self, blocks: &[Matrix<T>]) -> Vec<T> {
        let mut slots = vec![T::integer(0); self.shape.count()];
        for (copy, block) in blocks.iter().enumerate().take(self.copies()) {
            for (i, j) in (0..self.rows).flat_map(|i| (0..self.columns).map(move |j| (i, j))) {
                if let Some(value) = block.get(i, j) {
                    slots[self.slot(copy, i, j)] = value.clone();
                }
            }
        }
        slots
    }

    /// Entry (i, j) of the product in a copy.
    #[must_use]
    pub fn entry<'a, T>(&self, slots: &'a [T], copy: usize, i: usize, j: usize) -> Option<&'a T> {
        let inside = copy < self.copies() && i < self.rows && j < self.columns;
        inside.then(|| slots.get(self.slot(copy, i, j))).flatten()
    }

    /// The mask of step `base` + `offset` for left factors that are rotated by `base` steps, before they are rotated by
    /// `offset` more: 1 where the factor rotated by a line is taken, 0 where the factor itself is. One line of slots, as
    /// all are alike.
    #[must_use]
    pub fn mask<T: Number>(&self, base: usize, offset: usize) -> Vec<T> {
        let inside = |x: usize| (x + self.window - offset % self.window) % self.window + base + offset < self.window;
        let slots = 0..self.stride() * self.window;
        slots.map(|s| T::integer(i64::from(inside(s / self.stride())))).collect()
    }

    /// The map of slots from products (or plainly packed blocks) to factors: U_sigma with 2d - 1 diagonals, U_tau with d
    /// (ePrint 2023/593, section 3.2).
    ///
    /// # Errors
    /// [`Error::Shape`] unless products have the shape of the factor.
    pub fn map<T: Number>(&self, side: Side) -> Result<LinearTransform<T>> {
        let fits = match side {
            Side::Left => self.columns == self.inner,
            Side::Right => self.rows == self.inner,
        };
        if !fits {
            return Err(Error::shape(format!(
                "products of {} x {} entries are no {} factors of {} x {}: take a packing of square blocks",
                self.rows,
                self.columns,
                if side == Side::Left { "left" } else { "right" },
                if side == Side::Left { self.rows } else { self.inner },
                if side == Side::Left { self.inner } else { self.columns },
            )));
        }
        let mut diagonals = std::collections::BTreeMap::<i64, Vec<T>>::new();
        let row = self.shape.row as i64;
        for (i, x) in (0..self.rows).flat_map(|i| (0..self.window).map(move |x| (i, x))) {
            let Some((from_i, from_j)) = self.source(side, i, x) else { continue };
            // Beyond J + T - 1 nothing of a wide line matters.
            if side == Side::Left && !self.is_masked() && x >= self.columns + self.inner - 1 {
                continue;
            }
            let step = (self.slot(0, from_i, from_j) as i64 - self.slot(0, i, x) as i64).rem_euclid(row);
            let values = diagonals.entry(step).or_insert_with(|| vec![T::integer(0); self.shape.count()]);
            for copy in 0..self.copies() {
                values[self.slot(copy, i, x)] = T::integer(1);
            }
        }
        LinearTransform::from_diagonals(self.shape, diagonals)
    }

    /// The product with a public block on one side, as a map of the slots of the encrypted factor on `side`.
    ///
    /// # Errors
    /// When a vector does not fit, which no packing causes.
    pub fn plain_product<T: Number>(
        &self,
        side: Side,
        public: impl Fn(usize, usize, usize) -> Option<T>,
    ) -> Result<LinearTransform<T>> {
        let mut map = LinearTransform::zero(self.shape);
        for k in 0..self.inner {
            // Step k has A(i, i + x + k) and B(i + x + k, x) at entry x of line i.
            let factors = |wanted: &dyn Fn(usize) -> bool| -> Vec<T> {
                let mut values = vec![T::integer(0); self.shape.count()];
                for (copy, i) in (0..self.copies()).flat_map(|c| (0..self.rows).map(move |i| (c, i))) {
                    for x in (0..self.columns).filter(|&x| wanted(x)) {
                        let inner = (i + x + k) % self.inner;
                        let value = match side {
                            Side::Left => public(copy, inner, x),
                            Side::Right => public(copy, i, inner),
                        };
                        if let Some(value) = value {
                            values[self.slot(copy, i, x)] = value;
                        }
                    }
                }
                values
            };
            let step = k as i64 * self.step(side);
            match side {
                Side::Left if self.is_masked() => {
                    let line = self.step(Side::Right);
                    map.add_diagonal(step + line, false, factors(&|x| x + k < self.window))?;
                    map.add_diagonal(step, false, factors(&|x| x + k >= self.window))?;
                }
                _ => map.add_diagonal(step, false, factors(&|_| true))?,
            }
        }
        Ok(map)
    }
}
