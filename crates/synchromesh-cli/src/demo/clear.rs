//! A slot machine that does not encrypt: the oracle of the demo's tests. It counts depth and remembers rotations.

use super::{Health, SlotMachine};
use std::cell::Cell;
use std::collections::BTreeSet;
use synchromesh::scheme::{Binary, Operation, Values};

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
pub(crate) trait Slot: Copy + Default + 'static {
    fn of(values: &Values) -> Vec<Self>;
    fn add(self, other: Self, modulus: i64) -> Self;
    fn mul(self, other: Self, modulus: i64) -> Self;
    fn neg(self) -> Self;
    fn magnitude(self) -> f64;
}

impl Slot for f64 {
    fn of(values: &Values) -> Vec<Self> {
        values.reals().to_vec()
    }
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
    fn of(values: &Values) -> Vec<Self> {
        values.words().unwrap().to_vec()
    }
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

    fn zip(&self, op: Binary, a: &Vector<S>, b: &[S], depth: u32) -> Vector<S> {
        assert!(b.len() <= self.slots, "{} values for {} slots", b.len(), self.slots);
        let depth = a.depth.max(depth) + u32::from(op == Binary::Mul);
        self.largest_depth.set(depth.max(self.largest_depth.get()));
        let f = |a: S, b: S| match op {
            Binary::Add => a.add(b, self.modulus),
            Binary::Sub => a.add(b.neg(), self.modulus),
            Binary::Mul => a.mul(b, self.modulus),
        };
        let b = b.iter().copied().chain(std::iter::repeat(S::default()));
        Vector { values: a.values.iter().copied().zip(b).map(|(a, b)| f(a, b)).collect(), depth }
    }
}

impl<S: Slot> SlotMachine for Clear<S>
where
    Values: From<Vec<S>>,
{
    type Ciphertext = Vector<S>;
    type Error = synchromesh::Error;

    fn slots(&self) -> usize {
        self.slots
    }
    fn encrypt(&mut self, values: &Values) -> synchromesh::Result<Vector<S>> {
        let zeros = Vector { values: vec![S::default(); self.slots], depth: 0 };
        Ok(self.zip(Binary::Add, &zeros, &S::of(values), 0))
    }
    fn apply(&mut self, operation: &Operation<'_>, x: &[&Vector<S>]) -> synchromesh::Result<Vector<S>> {
        Ok(match (operation, x) {
            (Operation::Binary(op), [a, b]) => self.zip(*op, a, &b.values, b.depth),
            (Operation::Square, [a]) => self.zip(Binary::Mul, a, &a.values, a.depth),
            (Operation::Plain(op, p), [a]) => self.zip(*op, a, &S::of(p), 0),
            (Operation::Scalar(op, c), [a]) => self.zip(*op, a, &vec![S::of(c)[0]; self.slots], 0),
            (Operation::Rotate(k), [a]) => {
                let k = usize::try_from(*k).unwrap();
                self.rotations.insert(k);
                let mut values = a.values.clone();
                values.rotate_left(k);
                Vector { values, depth: a.depth }
            }
            (Operation::Bounded(bound), [a]) => {
                assert!(a.values.iter().all(|value| value.magnitude() <= *bound));
                Vector { values: a.values.clone(), depth: a.depth }
            }
            _ => unreachable!("the demo has no other operation"),
        })
    }
    fn decrypt(&mut self, a: &Vector<S>) -> synchromesh::Result<Values> {
        Ok(a.values.clone().into())
    }
    fn health(&self, a: &Vector<S>) -> synchromesh::Result<Health> {
        let modulus_bits = 400.0 - 40.0 * f64::from(a.depth);
        Ok(Health { level: 10 - a.depth, modulus_bits, noise_bits: 20.0 })
    }
}
