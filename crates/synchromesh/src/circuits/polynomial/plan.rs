//! How a polynomial is cut into blocks: division by powers in either basis, and the search for the cheapest cut.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Coefficient, Cost, Number};
use super::Basis;

/// sum_j x^(n_j) q_j(x) + sum_i c_i x^i + c_0; in Chebyshev's basis T in place of the powers.
#[derive(Debug, Clone)]
pub(super) struct Sum<C> {
    pub(super) products: Vec<(usize, Self)>,
    pub(super) weights: Vec<(usize, C)>,
    pub(super) constant: Option<C>,
}

/// A coefficient as the division sees it: a number, or, while planning, whether there is one.
pub(super) trait Term: Clone {
    fn zero() -> Self;
    fn is_zero(&self) -> bool;
    fn minus(&self, other: &Self) -> Self;
}

impl Term for bool {
    fn zero() -> Self {
        false
    }
    fn is_zero(&self) -> bool {
        !self
    }
    fn minus(&self, other: &Self) -> Self {
        *self || *other
    }
}

impl<T: Number> Term for Coefficient<T> {
    fn zero() -> Self {
        Self::All(T::integer(0))
    }
    fn is_zero(&self) -> bool {
        Self::is_zero(self)
    }
    fn minus(&self, other: &Self) -> Self {
        Self::minus(self, other)
    }
}

/// A way to cut a polynomial: blocks of `baby` coefficients, `first` of those in a block of the next size, two from
/// there on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    baby: usize,
    first: usize,
    /// Levels that a product with a constant takes.
    scalar: usize,
    /// Depth that the cut aims at.
    budget: usize,
    /// For each power that is made, the two it is made of, the larger first.
    powers: BTreeMap<usize, (usize, usize)>,
}

/// What evaluating a polynomial takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolynomialPlan {
    /// Levels it takes: multiplications after one another, those by constants included where they take one (CKKS).
    pub depth: usize,
    /// Products of ciphertexts.
    pub products: usize,
    /// Relinearisations.
    pub key_switches: usize,
    /// The powers (or Chebyshev polynomials) of the argument that are made.
    pub powers: Vec<usize>,
}

/// ceil(log2 n): the depth of power n.
const fn depth_of(n: usize) -> usize {
    n.next_power_of_two().trailing_zeros() as usize
}

/// The cheapest among the shallowest cuts of a polynomial with coefficients where `present` says so.
pub(super) fn best(present: &[bool], basis: Basis, cost: Cost, mapped: bool) -> (PolynomialPlan, Shape) {
    let degree = present.len() - 1;
    let scalar = usize::from(cost.scalars_take_a_level);
    let budget = if cost.scalars_take_a_level { depth_of(degree + 1) } else { depth_of(degree.max(1)) };
    let root = degree.isqrt();
    let widest = (degree + 1).min(4 * root + 2);
    let mut best: Option<((usize, f64), PolynomialPlan, Shape)> = None;
    for baby in (root / 2).max(2)..=widest.max(2) {
        let blocks = (degree + 1).div_ceil(baby);
        for first in (2..=blocks.clamp(2, 4)).chain((blocks > 4).then_some(blocks)) {
            let mut shape = Shape { baby, first, scalar, budget, powers: BTreeMap::new() };
            let sum = shape.sum(present, basis);
            shape.powers = split_powers(&sum, basis);
            let (plan, price) = shape.price(&sum, cost, usize::from(mapped) * scalar);
            let key = (plan.depth, price);
            if best.as_ref().is_none_or(|(least, ..)| key < *least) {
                best = Some((key, plan, shape));
            }
        }
    }
    let (_, plan, shape) = best.expect("there is a first cut");
    (plan, shape)
}

impl Shape {
    /// Each power n with the a and b that it is made of, smallest first.
    pub(super) fn powers(&self) -> impl Iterator<Item = (usize, (usize, usize))> + '_ {
        self.powers.iter().map(|(&n, &parts)| (n, parts))
    }

    /// Coefficients in a block of size t; size 0 is a single power.
    const fn block(&self, t: usize) -> usize {
        match t {
            0 => 1,
            1 => self.baby,
            _ => (self.baby * self.first) << (t - 2),
        }
    }

    /// The polynomial cut into sums.
    pub(super) fn sum<C: Term>(&self, coefficients: &[C], basis: Basis) -> Sum<C> {
        let mut top = 1;
        while self.block(top + 1) + 1 < coefficients.len() {
            top += 1;
        }
        self.cut(coefficients, basis, self.budget, top)
    }

    fn cut<C: Term>(&self, p: &[C], basis: Basis, budget: usize, mut t: usize) -> Sum<C> {
        let length = p.iter().rposition(|c| !c.is_zero()).map_or(0, |at| at + 1);
        let p = &p[..length];
        // A block may have one coefficient more, of the power that the next block is multiplied by.
        while t > 0 && length <= self.block(t) + 1 {
            t -= 1;
        }
        if t > 0 {
            return self.divided(p, basis, budget, t, self.block(t));
        }
        let deepest = (1..length).filter(|&i| !p[i].is_zero()).map(depth_of).max();
        if length > 2 && deepest.is_some_and(|depth| depth + self.scalar > budget) {
            return self.divided(p, basis, budget, 0, 1 << (usize::BITS - 1 - (length - 1).leading_zeros()));
        }
        let weights = (1..length).filter(|&i| !p[i].is_zero()).map(|i| (i, p[i].clone())).collect();
        Sum { products: Vec::new(), weights, constant: p.first().filter(|c| !c.is_zero()).cloned() }
    }

    /// Cut into blocks of `size` coefficients, each of which is cut into blocks below size t.
    fn divided<C: Term>(&self, p: &[C], basis: Basis, budget: usize, t: usize, size: usize) -> Sum<C> {
        let below = t.saturating_sub(1);
        let blocks = divide(p, size, basis);
        let mut sum = self.cut(&blocks[0], basis, budget, below);
        for (j, block) in blocks.into_iter().enumerate().skip(1) {
            let Some(last) = block.iter().rposition(|c| !c.is_zero()) else { continue };
            if last == 0 {
                sum.weights.push((j * size, block[0].clone()));
            } else {
                sum.products.push((j * size, self.cut(&block, basis, budget.saturating_sub(1), below)));
            }
        }
        sum
    }

    /// What the sum takes, and its cost in products.
    fn price<C>(&self, sum: &Sum<C>, cost: Cost, before: usize) -> (PolynomialPlan, f64) {
        let mut depths = BTreeMap::from([(1, before)]);
        for (&n, &(a, b)) in &self.powers {
            let of = |n| depths.get(&n).copied().unwrap_or(0);
            depths.insert(n, of(a).max(of(b)) + 1);
        }
        let made = self.powers.len();
        let powers = self.powers.keys().copied().collect();
        let mut plan = PolynomialPlan { depth: 0, products: made, key_switches: made, powers };
        let mut price = made as f64;
        plan.depth = self.add(sum, cost, &depths, &mut plan, &mut price);
        (plan, price)
    }

    /// Adds what a sum takes; returns its depth.
    fn add<C>(
        &self,
        sum: &Sum<C>,
        cost: Cost,
        depths: &BTreeMap<usize, usize>,
        plan: &mut PolynomialPlan,
        price: &mut f64,
    ) -> usize {
        let of = |n: &usize| depths.get(n).copied().unwrap_or(0);
        let mut depth = sum.weights.iter().map(|(n, _)| of(n) + self.scalar).max().unwrap_or(0);
        *price += 0.02 * sum.weights.len() as f64;
        if sum.products.is_empty() {
            *price += 0.05 * self.scalar as f64;
            return depth;
        }
        for (n, factor) in &sum.products {
            let inner = self.add(factor, cost, depths, plan, price);
            depth = depth.max(inner.max(of(n)) + 1);
        }
        plan.products += sum.products.len();
        plan.key_switches += 1;
        *price += sum.products.len() as f64 * cost.tensor + 1.0 - cost.tensor;
        depth
    }
}

/// The blocks q_j of p = sum_j q_j x^(j size), each of at most `size` coefficients; in Chebyshev's basis of
/// p = sum_j q_j T_(j size), where T_(j size + i) = 2 T_(j size) T_i - T_(j size - i). A last block of one coefficient
/// is joined to the one before it.
fn divide<C: Term>(p: &[C], size: usize, basis: Basis) -> Vec<Vec<C>> {
    let mut p = p.to_vec();
    let join = p.len() % size == 1 && p.len() > 2 * size;
    if basis == Basis::Chebyshev {
        for at in (size + 1..p.len()).rev() {
            let i = if join && at + 1 == p.len() { size } else { at % size };
            if i == 0 {
                continue;
            }
            let c = p[at].clone();
            p[at] = c.minus(&C::zero().minus(&c));
            p[at - 2 * i] = p[at - 2 * i].minus(&c);
        }
    }
    let mut blocks: Vec<Vec<C>> = p.chunks(size).map(<[C]>::to_vec).collect();
    if join {
        let last = blocks.pop().unwrap_or_default();
        blocks.last_mut().into_iter().for_each(|block| block.extend(last.iter().cloned()));
    }
    blocks
}

/// The powers that a sum needs, each with two that it is made of at the least depth, adding few further ones.
fn split_powers<C>(sum: &Sum<C>, basis: Basis) -> BTreeMap<usize, (usize, usize)> {
    let mut open = BTreeSet::new();
    collect(sum, &mut open);
    let mut powers = BTreeMap::new();
    while let Some(n) = open.pop_last().filter(|&n| n > 1) {
        let parts = |a: usize| {
            let difference = if basis == Basis::Chebyshev { 2 * a - n } else { 0 };
            [a, n - a, difference]
        };
        let extra = |a: usize| parts(a).iter().filter(|&&m| m > 1 && !open.contains(&m)).count();
        let halves = n.div_ceil(2)..=(1 << (depth_of(n) - 1));
        let a = halves.min_by_key(|&a| (extra(a), 2 * a != n)).unwrap_or(n - 1);
        open.extend(parts(a).into_iter().filter(|&m| m > 1));
        powers.insert(n, (a, n - a));
    }
    powers
}

fn collect<C>(sum: &Sum<C>, into: &mut BTreeSet<usize>) {
    into.extend(sum.weights.iter().map(|(n, _)| *n));
    for (n, factor) in &sum.products {
        into.insert(*n);
        collect(factor, into);
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;

    use super::*;

    const EXACT: Cost = Cost { tensor: 0.65, scalars_take_a_level: false };
    const REAL: Cost = Cost { tensor: 0.1, scalars_take_a_level: true };

    /// T_n or x^n at an integer.
    fn power(basis: Basis, n: usize, x: &BigInt) -> BigInt {
        let (mut a, mut b) = (BigInt::from(1), x.clone());
        for _ in 0..n {
            let next = if basis == Basis::Chebyshev { x * &b * 2 - &a } else { x * &b };
            (a, b) = (b, next);
        }
        a
    }

    fn value(sum: &Sum<Coefficient<BigInt>>, basis: Basis, x: &BigInt) -> BigInt {
        let number = |c: &Coefficient<BigInt>| match c {
            Coefficient::All(c) => c.clone(),
            Coefficient::Slots(_) => unreachable!("only numbers here"),
        };
        let products = sum.products.iter().map(|(n, q)| power(basis, *n, x) * value(q, basis, x));
        let weights = sum.weights.iter().map(|(n, c)| power(basis, *n, x) * number(c));
        products.chain(weights).sum::<BigInt>() + sum.constant.as_ref().map(number).unwrap_or_default()
    }

    #[test]
    fn cuts_evaluate_to_the_polynomial_and_meet_the_least_depth() {
        for basis in [Basis::Power, Basis::Chebyshev] {
            for cost in [EXACT, REAL] {
                for degree in (1..=34).chain([63, 64, 100, 128]) {
                    for pattern in 0..3 {
                        let number = |i: usize| match pattern {
                            1 if i % 2 == 1 && i != degree => 0,
                            2 if i.is_multiple_of(2) && i != degree => 0,
                            _ => (i * i % 23) as i64 - 30,
                        };
                        let coefficients: Vec<Coefficient<BigInt>> = (0..=degree).map(|i| number(i).into()).collect();
                        let present: Vec<bool> = coefficients.iter().map(|c| !c.is_zero()).collect();
                        let (plan, shape) = best(&present, basis, cost, false);
                        let least = if cost.scalars_take_a_level { degree + 1 } else { degree };
                        assert_eq!(plan.depth, depth_of(least), "degree {degree}, pattern {pattern}: {plan:?}");
                        let x = BigInt::from(3);
                        let expected: BigInt = (0..=degree).map(|i| power(basis, i, &x) * number(i)).sum();
                        let sum = shape.sum(&coefficients, basis);
                        assert_eq!(value(&sum, basis, &x), expected, "degree {degree}, pattern {pattern}");
                    }
                }
            }
        }
    }

    #[test]
    fn products_grow_as_the_root_of_the_degree() {
        let products = |degree: usize, cost| best(&vec![true; degree + 1], Basis::Power, cost, false).0;
        for (degree, most) in [(2, 1), (4, 2), (8, 4), (16, 7), (32, 12), (64, 17), (255, 35), (256, 36)] {
            let (a, b) = (products(degree, EXACT), products(degree, REAL));
            // Where products in three components are cheap, there are more of them and fewer key switches.
            assert!(a.products <= most && b.key_switches <= most, "degree {degree}: {a:?} {b:?}");
        }
        // Even polynomials cost what half their degree does, and one product for the square.
        let even: Vec<bool> = (0..=64).map(|i| i % 2 == 0).collect();
        assert!(best(&even, Basis::Power, EXACT, false).0.products <= products(32, EXACT).products + 1);
    }
}
