//! Slots as the transform to coefficients sees them: conjugated in odd places, so that X -> X^((-3)^k) rotates by k.

use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::Source;
use synchromesh_rlwe::ring::{Backend, IndexSet, Ntt, Poly, Threads};

use crate::circuits::{Arithmetic, Combination, Cost, SizedSum, SlotShape};
use crate::ckks::ciphertext::Ciphertext;
use crate::ckks::context::Context;
use crate::ckks::evaluator::Evaluator;
use crate::embedding::Complex64;
use crate::error::{Error, Result};
use crate::rotations::Rotations;

/// An evaluator whose rotations and vectors are those of the other view; sums and products act slot by slot in both.
pub(super) struct View<B: Backend>(pub(super) Evaluator<B>);

/// (-3)^k mod 2N.
pub(super) fn element<B: Backend>(context: &Context<B>, k: i64) -> usize {
    let g = context.galois_element(k);
    if k.rem_euclid(2) == 0 { g } else { 2 * context.params().n() - g }
}

impl<B: Backend> Arithmetic for View<B> {
    type Backend = B;
    type Ciphertext = Ciphertext<B>;
    type Scalar = Complex64;
    type Size = f64;
    const COST: Cost = Evaluator::<B>::COST;

    fn threads(&self) -> Threads {
        self.0.threads()
    }
    fn level(&self, x: &Ciphertext<B>) -> usize {
        x.level()
    }
    fn duplicate(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.0.duplicate(x)
    }
    fn add(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.0.add(x, y)
    }
    fn sub(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.0.sub(x, y)
    }
    fn neg(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.0.neg(x)
    }
    fn mul(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.0.mul(x, y)
    }
    fn square(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.0.square(x)
    }
    fn combine(&self, terms: &Combination<'_, Ciphertext<B>, Complex64>) -> Result<Ciphertext<B>> {
        self.0.combine(terms)
    }
    fn lowered(&self, x: &Ciphertext<B>, level: usize) -> Result<Option<Ciphertext<B>>> {
        self.0.lowered(x, level)
    }
    fn bound(&self, x: &Ciphertext<B>) -> f64 {
        x.bound()
    }
    fn bounded(&self, x: Ciphertext<B>, bound: f64) -> Result<Ciphertext<B>> {
        self.0.declare_bound(x, bound)
    }
    fn slots(&self) -> Result<SlotShape> {
        self.0.slots()
    }
    fn require_rotations(&self, steps: &Rotations) -> Result<()> {
        let keys = self.0.switching("rotation")?.keys();
        let missing = |k: &&i64| {
            let g = element(self.0.context(), **k);
            g != 1 && keys.get(Source::Galois(g)).is_err()
        };
        let left: Vec<i64> = steps.by.iter().filter(missing).copied().collect();
        let swap = steps.swap && keys.get(Source::Galois(self.0.context().conjugation_element())).is_err();
        if left.is_empty() && !swap { Ok(()) } else { Err(Error::MissingRotations { steps: left, swap }) }
    }
    fn rotate(&self, x: &Ciphertext<B>, k: i64) -> Result<Ciphertext<B>> {
        self.0.automorphism(x, element(self.0.context(), k), "rotation")
    }
    fn swap(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.0.conjugate(x)
    }
    fn at_level(&self, x: &Ciphertext<B>, level: usize) -> Result<Ciphertext<B>> {
        self.0.at_level(x, level)
    }
    fn element(&self, k: i64) -> Result<usize> {
        Ok(element(self.0.context(), k))
    }
    fn extended(&self, level: usize) -> Result<(&rlwe::Context<B>, IndexSet)> {
        self.0.extended(level)
    }
    fn factor(&self, values: &[Complex64], level: usize) -> Result<(Poly<B, Ntt>, f64)> {
        let conjugate = |(k, z): (usize, &Complex64)| Complex64::new(z.re, if k % 2 == 0 { z.im } else { -z.im });
        self.0.factor(&values.iter().enumerate().map(conjugate).collect::<Vec<_>>(), level)
    }
    fn rotation_sum(&self, inputs: &[&Ciphertext<B>], sum: &SizedSum<B, f64>) -> Result<Ciphertext<B>> {
        self.0.rotation_sum(inputs, sum)
    }
}
