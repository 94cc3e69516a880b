//! A slot machine that does not encrypt: the oracle of the demo's tests. It counts depth and remembers rotations.

use super::{Health, SlotMachine};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::convert::Infallible;

/// Vectors in the clear, reduced to the centred interval of a modulus, or not at all when it is 0.
pub(crate) struct Clear<S> {
    pub(crate) slots: usize,
    pub(crate) modulus: i64,
    pub(crate) rotations: BTreeSet<usize>,
    pub(crate) largest_depth: Cell<u32>,
    slot: std::marker::PhantomData<S>,
}

/// A vector and the multiplications behind it.
pub(crate) struct Vector<S> {
    values: Vec<S>,
    depth: u32,
}

/// Arithmetic of a slot.
pub(crate) trait Slot: Copy + Default {
    fn add(self, other: Self, modulus: i64) -> Self;
    fn mul(self, other: Self, modulus: i64) -> Self;
    fn neg(self) -> Self;
    fn magnitude(self) -> f64;
}

impl Slot for f64 {
    fn add(self, other: Self, _: i64) -> Self {
        self + other
    }
    fn mul(self, other: Self, _: i64) -> Self {
        self * other
    }
    fn neg(self) -> Self {
        -self
    }
    fn magnitude(self) -> f64 {
        self.abs()
    }
}

impl Slot for i64 {
    fn add(self, other: Self, modulus: i64) -> Self {
        centred(i128::from(self) + i128::from(other), modulus)
    }
    fn mul(self, other: Self, modulus: i64) -> Self {
        centred(i128::from(self) * i128::from(other), modulus)
    }
    fn neg(self) -> Self {
        -self
    }
    fn magnitude(self) -> f64 {
        self.unsigned_abs() as f64
    }
}

fn centred(value: i128, modulus: i64) -> i64 {
    let residue = value.rem_euclid(i128::from(modulus)) as i64;
    if residue > modulus / 2 { residue - modulus } else { residue }
}

impl<S: Slot> Clear<S> {
    pub(crate) fn new(slots: usize, modulus: i64) -> Self {
        Self { slots, modulus, rotations: BTreeSet::new(), largest_depth: Cell::new(0), slot: std::marker::PhantomData }
    }

    fn zip(&self, a: &[S], b: &[S], depth: u32, f: impl Fn(S, S) -> S) -> Result<Vector<S>, Infallible> {
        assert!(b.len() <= self.slots, "{} values for {} slots", b.len(), self.slots);
        self.largest_depth.set(depth.max(self.largest_depth.get()));
        let b = b.iter().copied().chain(std::iter::repeat(S::default()));
        Ok(Vector { values: a.iter().copied().zip(b).map(|(a, b)| f(a, b)).collect(), depth })
    }
}

impl<S: Slot> SlotMachine for Clear<S> {
    type Slot = S;
    type Ciphertext = Vector<S>;
    type Error = Infallible;

    fn slots(&self) -> usize {
        self.slots
    }
    fn encrypt(&mut self, values: &[S]) -> Result<Vector<S>, Infallible> {
        self.zip(&vec![S::default(); self.slots], values, 0, |_, v| v)
    }
    fn add(&mut self, a: &Vector<S>, b: &Vector<S>) -> Result<Vector<S>, Infallible> {
        self.zip(&a.values, &b.values, a.depth.max(b.depth), |a, b| a.add(b, self.modulus))
    }
    fn sub(&mut self, a: &Vector<S>, b: &Vector<S>) -> Result<Vector<S>, Infallible> {
        self.zip(&a.values, &b.values, a.depth.max(b.depth), |a, b| a.add(b.neg(), self.modulus))
    }
    fn mul(&mut self, a: &Vector<S>, b: &Vector<S>) -> Result<Vector<S>, Infallible> {
        self.zip(&a.values, &b.values, a.depth.max(b.depth) + 1, |a, b| a.mul(b, self.modulus))
    }
    fn add_plain(&mut self, a: &Vector<S>, p: &[S]) -> Result<Vector<S>, Infallible> {
        self.zip(&a.values, p, a.depth, |a, p| a.add(p, self.modulus))
    }
    fn mul_plain(&mut self, a: &Vector<S>, p: &[S]) -> Result<Vector<S>, Infallible> {
        self.zip(&a.values, p, a.depth + 1, |a, p| a.mul(p, self.modulus))
    }
    fn mul_scalar(&mut self, a: &Vector<S>, c: S) -> Result<Vector<S>, Infallible> {
        self.zip(&a.values, &vec![c; self.slots], a.depth + 1, |a, c| a.mul(c, self.modulus))
    }
    fn rotate(&mut self, a: &Vector<S>, k: usize) -> Result<Vector<S>, Infallible> {
        self.rotations.insert(k);
        let mut values = a.values.clone();
        values.rotate_left(k);
        Ok(Vector { values, depth: a.depth })
    }
    fn promise(&self, a: Vector<S>, bound: f64) -> Result<Vector<S>, Infallible> {
        assert!(a.values.iter().all(|value| value.magnitude() <= bound));
        Ok(a)
    }
    fn decrypt(&mut self, a: &Vector<S>) -> Result<Vec<S>, Infallible> {
        Ok(a.values.clone())
    }
    fn health(&self, a: &Vector<S>) -> Health {
        Health { level: 10 - a.depth, modulus_bits: 400.0 - 40.0 * f64::from(a.depth), noise_bits: 20.0 }
    }
}
