//! The choice of block sizes for a product of any shape (matrix slicing, ePrint 2023/593, section 3.2), by counting.

use super::packing::{MatrixPacking, Side};
use super::plan::MatrixPlan;
use crate::circuits::SlotShape;
use crate::error::{Error, Result};

/// The rotation of a left factor with its two masks, in hoisted rotations: two inner products, two products modulo QP
/// and one division, at a modulus longer by a mask.
const MASKED: f64 = 2.6;

/// What all operations cost more at the longer modulus that masks take.
const LONGER: f64 = 1.3;

/// A key switch of its own, in hoisted rotations.
const SWITCH: f64 = 2.0;

/// Encrypting a block, in hoisted rotations.
const ENCRYPT: f64 = 3.0;

/// What a slicing is to be good for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slicing {
    /// The slots.
    pub slots: SlotShape,
    /// Pairs of matrices.
    pub batch: usize,
    /// Whether masks, which cost as many bits of the modulus as t has, may be used.
    pub masks: bool,
    /// The factor that products of it shall become ([`MatrixPlan::chain`]), if any.
    pub chain: Option<Side>,
    /// A product in three components, in units of a product with its relinearisation: the scheme's
    /// [`Cost::tensor`](crate::circuits::Cost::tensor).
    pub tensor: f64,
}

impl Slicing {
    /// All plans for products of `shape` = \[R, K, C\] with their costs in hoisted rotations, cheapest first.
    ///
    /// # Errors
    /// [`Error::Shape`] when no packing fits.
    pub fn candidates(&self, shape: [usize; 3]) -> Result<Vec<(MatrixPlan, f64)>> {
        let mut found = Vec::new();
        for packing in self.packings() {
            for grid in self.grids(&packing) {
                let plan = MatrixPlan::new(packing, shape, self.batch, grid)?;
                found.push((plan, self.cost(&plan)));
            }
        }
        if found.is_empty() {
            let (batch, slots) = (self.batch, self.slots.count());
            return Err(Error::shape(format!(
                "no packing of {batch} pairs of matrices in {slots} slots: take fewer pairs at a time, or more slots"
            )));
        }
        let ciphertexts = |plan: &MatrixPlan| plan.ciphertexts(Side::Left) + plan.ciphertexts(Side::Right);
        found.sort_by(|(p, a), (q, b)| a.total_cmp(b).then(ciphertexts(p).cmp(&ciphertexts(q))));
        Ok(found)
    }

    /// The cheapest plan.
    ///
    /// # Errors
    /// As [`Self::candidates`].
    pub fn best(&self, shape: [usize; 3]) -> Result<MatrixPlan> {
        let (plan, _) = self.candidates(shape)?[0];
        Ok(plan)
    }

    /// The time of a product in hoisted rotations, all factors hoisted.
    #[must_use]
    pub fn cost(&self, plan: &MatrixPlan) -> f64 {
        let [rows, inner, columns] = plan.blocks().map(|count| count as f64);
        let packing = plan.packing();
        let steps = packing.inner() as f64;
        let left = if packing.is_masked() { MASKED } else { 1.0 };
        let tensor = SWITCH * self.tensor / (1.0 - self.tensor).max(0.1);
        let rotations = (rows * inner * left + inner * columns) * (steps - 1.0);
        let products = rows * inner * columns * steps * tensor + rows * columns * SWITCH;
        let encryptions = ENCRYPT * (rows * inner + inner * columns);
        (rotations + products + encryptions) * if packing.is_masked() { LONGER } else { 1.0 }
    }

    fn packings(&self) -> Vec<MatrixPacking> {
        let powers = |most: usize| (0..usize::BITS).map(|i| 1usize << i).take_while(move |&x| x <= most);
        let mut all = Vec::new();
        for window in powers(self.slots.row) {
            for rows in powers(self.slots.row / window) {
                for inner in powers(rows.min(window)) {
                    let wide = window + 1 - inner;
                    let square = rows == inner;
                    let columns = match self.chain {
                        None => [Some(wide), self.masks.then_some(window)],
                        Some(_) => [
                            Some(inner).filter(|&j| square && 2 * j == window),
                            Some(inner).filter(|&j| square && self.masks && j == window),
                        ],
                    };
                    let of = |columns: usize| MatrixPacking::new(self.slots, rows, inner, columns, window).ok();
                    all.extend(columns.into_iter().flatten().filter_map(of));
                }
            }
        }
        all
    }

    fn grids(&self, packing: &MatrixPacking) -> Vec<[usize; 2]> {
        let copies = packing.copies() / self.batch.max(1);
        let powers = (0..usize::BITS).map(|i| 1usize << i).take_while(|&x| x <= copies);
        let all = powers.map(|rows| [rows, copies / rows]);
        match self.chain {
            None => all.collect(),
            Some(Side::Left) if copies > 0 => vec![[copies, 1]],
            Some(Side::Right) if copies > 0 => vec![[1, copies]],
            Some(_) => Vec::new(),
        }
    }
}

impl std::fmt::Display for MatrixPlan {
    /// What blocks there are and what multiplying them takes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (p, [r, k, c], [rows, inner, columns]) = (self.packing(), self.shape(), self.blocks());
        write!(
            f,
            "{r} x {k} times {k} x {c} in blocks of {} x {} times {} x {}, {} to a ciphertext ({} below and {} beside one \
             another), {}: {} + {} ciphertexts, {} steps of {} products",
            p.rows(),
            p.inner(),
            p.inner(),
            p.columns(),
            p.copies(),
            self.grid()[0],
            self.grid()[1],
            if p.is_masked() { "masked" } else { "without masks" },
            rows * inner,
            inner * columns,
            p.inner(),
            rows * inner * columns
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_products_take_one_ciphertext_each_and_large_ones_large_blocks() {
        let slots = SlotShape { row: 1 << 13, rows: 2 };
        let slicing = Slicing { slots, batch: 1, masks: true, chain: None, tensor: 0.15 };
        let small = slicing.best([5, 7, 3]).unwrap();
        assert_eq!(small.blocks(), [1, 1, 1], "{small}");
        for shape in [[100, 130, 64], [192, 192, 192], [1, 1000, 1]] {
            let found = slicing.candidates(shape).unwrap();
            assert!(found.windows(2).all(|pair| pair[0].1 <= pair[1].1));
            let covers = |(plan, _): &(MatrixPlan, f64)| {
                let (p, b, g) = (plan.packing(), plan.blocks(), plan.grid());
                b[0] * g[0] * p.rows() >= shape[0]
                    && b[1] * p.inner() >= shape[1]
                    && b[2] * g[1] * p.columns() >= shape[2]
            };
            assert!(found.iter().all(covers));
        }
        let chained = Slicing { chain: Some(Side::Left), ..slicing };
        let plan = chained.best([20, 30, 40]).unwrap();
        assert_eq!((plan.grid()[1], plan.packing().inner()), (1, plan.packing().columns()));
        assert_eq!(Slicing { batch: 1 << 20, ..slicing }.best([2, 2, 2]).unwrap_err().kind(), "shape");
    }
}
