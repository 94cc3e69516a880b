//! Circuits run on numbers in the clear, which count products, relinearisations and levels.

use std::cell::RefCell;

use num_bigint::BigInt;
use synchromesh_rlwe::Context;
use synchromesh_rlwe::ring::{Dry, IndexSet, Ntt, Poly};

use super::*;
use crate::error::Error;

/// A number with the levels it has left.
#[derive(Debug, Clone, PartialEq)]
struct Clear {
    value: BigInt,
    level: usize,
}

/// Counts products and relinearisations; REAL: constants take a level, as in CKKS.
#[derive(Default)]
struct Counter<const REAL: bool>(RefCell<(usize, usize)>);

fn absent<T>() -> Result<T> {
    Err(Error::params("numbers in the clear have no slots"))
}

impl<const REAL: bool> Counter<REAL> {
    fn taken(&self, level: usize) -> Result<usize> {
        level.checked_sub(1).ok_or_else(|| synchromesh_rlwe::Error::Level { needed: 1, have: 0, top: 0 }.into())
    }
}

impl<const REAL: bool> Arithmetic for Counter<REAL> {
    type Backend = Dry;
    type Ciphertext = Clear;
    type Scalar = BigInt;
    type Size = ();
    const COST: Cost = Cost { tensor: if REAL { 0.1 } else { 0.65 }, scalars_take_a_level: REAL };

    fn level(&self, x: &Clear) -> usize {
        x.level
    }
    fn duplicate(&self, x: &Clear) -> Result<Clear> {
        Ok(x.clone())
    }
    fn add(&self, x: &Clear, y: &Clear) -> Result<Clear> {
        Ok(Clear { value: &x.value + &y.value, level: x.level.min(y.level) })
    }
    fn sub(&self, x: &Clear, y: &Clear) -> Result<Clear> {
        self.add(x, &self.neg(y)?)
    }
    fn neg(&self, x: &Clear) -> Result<Clear> {
        Ok(Clear { value: -&x.value, level: x.level })
    }
    fn mul(&self, x: &Clear, y: &Clear) -> Result<Clear> {
        self.combine(&Combination { products: vec![[x, y]], weights: vec![], constant: None })
    }
    fn square(&self, x: &Clear) -> Result<Clear> {
        self.mul(x, x)
    }
    fn combine(&self, terms: &Combination<'_, Clear, BigInt>) -> Result<Clear> {
        let number = |c: &Coefficient<BigInt>| match c {
            Coefficient::All(c) => c.clone(),
            Coefficient::Slots(_) => unreachable!("only numbers here"),
        };
        let operands = terms.products.iter().flatten().copied().chain(terms.weights.iter().map(|(x, _)| *x));
        let lowest = operands.map(|x| x.level).min().unwrap_or(0);
        let products = terms.products.iter().map(|[x, y]| &x.value * &y.value);
        let weights = terms.weights.iter().map(|(x, c)| &x.value * number(c));
        let value = products.chain(weights).sum::<BigInt>() + terms.constant.map(number).unwrap_or_default();
        let mut counts = self.0.borrow_mut();
        counts.0 += terms.products.len();
        counts.1 += usize::from(!terms.products.is_empty());
        let factors = terms.products.iter().map(|[x, y]| x.level.min(y.level)).min();
        let level = match factors {
            Some(_) if REAL => self.taken(lowest)?,
            Some(factors) => self.taken(factors)?.min(lowest),
            None if REAL => self.taken(lowest)?,
            None => lowest,
        };
        Ok(Clear { value, level })
    }
    fn lowered(&self, x: &Clear, level: usize) -> Result<Option<Clear>> {
        Ok((x.level > level).then(|| Clear { level, ..x.clone() }).filter(|_| REAL))
    }
    fn bound(&self, _: &Clear) -> f64 {
        0.0
    }
    fn bounded(&self, x: Clear, _: f64) -> Result<Clear> {
        Ok(x)
    }
    fn slots(&self) -> Result<SlotShape> {
        absent()
    }
    fn require_rotations(&self, _: &Rotations) -> Result<()> {
        absent()
    }
    fn rotate(&self, _: &Clear, _: i64) -> Result<Clear> {
        absent()
    }
    fn swap(&self, _: &Clear) -> Result<Clear> {
        absent()
    }
    fn at_level(&self, x: &Clear, level: usize) -> Result<Clear> {
        Ok(Clear { level, ..x.clone() })
    }
    fn element(&self, _: i64) -> Result<usize> {
        absent()
    }
    fn extended(&self, _: usize) -> Result<(&Context<Dry>, IndexSet)> {
        absent()
    }
    fn factor(&self, _: &[BigInt], _: usize) -> Result<(Poly<Dry, Ntt>, ())> {
        absent()
    }
    fn rotation_sum(&self, _: &[&Clear], _: &SizedSum<Dry, ()>) -> Result<Clear> {
        absent()
    }
}

fn evaluates<const REAL: bool>(polynomial: &Polynomial<BigInt>, expected: &BigInt, x: i64) {
    let counter = Counter::<REAL>::default();
    let plan = polynomial.plan::<Counter<REAL>>();
    let x = Clear { value: x.into(), level: plan.depth };
    let result = polynomial.evaluate(&counter, &x).unwrap();
    let degree = polynomial.degree();
    assert_eq!((&result.value, result.level), (expected, 0), "degree {degree}: {plan:?}");
    assert_eq!(*counter.0.borrow(), (plan.products, plan.key_switches), "degree {degree}");
    if degree > 0 {
        let short = Clear { level: plan.depth - 1, ..x };
        assert_eq!(polynomial.evaluate(&counter, &short).err().map(|e| e.kind()), (plan.depth > 0).then_some("level"));
    }
}

#[test]
fn polynomials_take_the_depth_products_and_key_switches_of_their_plan() {
    for degree in (1..=34).chain([63, 64, 127, 255]) {
        let number = |i: usize| (i * 7919 % 31) as i64 - 15 + i64::from(i == degree) * 40;
        let coefficients: Vec<i64> = (0..=degree).map(number).collect();
        let polynomial = Polynomial::power(coefficients.iter().copied()).unwrap();
        let expected = coefficients.iter().rev().fold(BigInt::from(0), |sum, c| sum * 3 + c);
        if degree > 1 {
            evaluates::<false>(&polynomial, &expected, 3);
        }
        evaluates::<true>(&polynomial, &expected, 3);
    }
}

#[test]
fn products_in_a_tree_are_shallow() {
    for count in 1..=33usize {
        let counter = Counter::<false>::default();
        let factors: Vec<Clear> = (0..count).map(|i| Clear { value: (i + 2).into(), level: 6 }).collect();
        let result = product(&counter, &factors.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(result.value, factors.iter().map(|x| &x.value).product::<BigInt>());
        assert_eq!(6 - result.level, product_depth(count), "{count}");
        assert_eq!(*counter.0.borrow(), (count - 1, count - 1));
    }
    // Factors that are lower already are multiplied late.
    let counter = Counter::<false>::default();
    let factors: Vec<Clear> = [4, 6, 6, 5, 3].map(|level| Clear { value: 2.into(), level }).to_vec();
    assert_eq!(product(&counter, &factors.iter().collect::<Vec<_>>()).unwrap().level, 2);
    assert_eq!(product(&counter, &[]).err().map(|e| e.kind()), Some("shape"));
}

#[test]
fn interpolation_at_chebyshev_points_is_near_the_function() {
    let f = |x: f64| 1.0 / (1.0 + (-x).exp());
    let coefficients = chebyshev_coefficients(f, (-8.0, 8.0), 31);
    let mut worst: f64 = 0.0;
    for i in 0..=100 {
        let x = -8.0 + 0.16 * f64::from(i);
        let angle = (x / 8.0).clamp(-1.0, 1.0).acos();
        let value: f64 = coefficients.iter().enumerate().map(|(k, c)| c * (k as f64 * angle).cos()).sum();
        worst = worst.max((value - f(x)).abs());
    }
    assert!(worst < 1e-4, "{worst}");
    assert_eq!(chebyshev_coefficients(|x| 2.0 * x, (-1.0, 1.0), 0).len(), 1);
}

#[test]
fn rotations_of_slot_sums_are_those_of_the_count() {
    let steps = |sum: SlotSum| sum.rotations().by;
    assert_eq!(steps(SlotSum::new(8)), [1, 2, 4]);
    assert_eq!(steps(SlotSum::new(8).stride(-2)), [-8, -4, -2]);
    assert_eq!(steps(SlotSum::new(16).radix(4)), [1, 2, 3, 4, 8, 12]);
    assert_eq!(steps(SlotSum::new(1)), [0i64; 0]);
    assert_eq!(steps(SlotSum::new(5)), [1, 2, 4]);
    assert!(SlotSum::all(SlotShape { row: 4, rows: 2 }).rotations().swap);
}
