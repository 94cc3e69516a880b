//! Polynomials of a ciphertext: sum_i c_i x^i, or sum_i c_i T_i(x) in Chebyshev's basis, at the least depth.
//!
//! Baby steps x, .., x^(B-1) are multiplied by the constants, and blocks of B of those sums by giant steps x^(B j)
//! (Paterson and Stockmeyer). [`PolynomialPlan`] tries the splittings and keeps the cheapest among the shallowest. All
//! products that meet in one sum are relinearised together, and in CKKS rescaled together with the weighted sums beside
//! them. A block that is multiplied must be a level shallower than one that is added; where a product with a constant
//! takes a level (CKKS), only the blocks of leading coefficients are short of it and are split further (ePrint
//! 2020/1203).

mod plan;

use std::collections::BTreeMap;

use super::{Arithmetic, Coefficient, Combination, Cost, Number};
use crate::embedding::Complex64;
use crate::error::{Error, Result};
pub use plan::PolynomialPlan;
use plan::{Shape, Sum};

/// Largest degree that is planned for.
const MAX_DEGREE: usize = 1 << 12;

/// By how much Chebyshev's polynomials may exceed 1 for an argument mapped in doubles: less than any bound rests on.
const MOST_BEYOND: f64 = 1e-6;

/// What the coefficients multiply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// x^i.
    Power,
    /// T_i(x): T_0 = 1, T_1 = x, T_(a+b) = 2 T_a T_b - T_|a-b|.
    Chebyshev,
}

/// A polynomial with public coefficients, each one number or one number a slot.
#[derive(Debug, Clone, PartialEq)]
pub struct Polynomial<T> {
    basis: Basis,
    coefficients: Vec<Coefficient<T>>,
    /// Chebyshev's basis: where it is used.
    interval: Option<Interval<T>>,
}

/// An interval \[a, b\] and the map x -> (2 x - a - b) / (b - a) of it to \[-1, 1\].
#[derive(Debug, Clone, PartialEq)]
struct Interval<T> {
    ends: (f64, f64),
    /// 2 / (b - a) and -(a + b) / (b - a), unless the map is the identity.
    map: Option<[Coefficient<T>; 2]>,
}

/// One level of powers: a ciphertext at each level it was brought to.
type Powers<C> = BTreeMap<(usize, usize), C>;

impl<T: Number> Polynomial<T> {
    /// c_0 + c_1 x + c_2 x^2 + ..
    ///
    /// # Errors
    /// [`Error::Argument`] for no coefficients, or a degree above 4096.
    pub fn power<C: Into<Coefficient<T>>>(coefficients: impl IntoIterator<Item = C>) -> Result<Self> {
        Self::new(Basis::Power, coefficients.into_iter().map(Into::into).collect(), None)
    }

    fn new(basis: Basis, mut coefficients: Vec<Coefficient<T>>, interval: Option<Interval<T>>) -> Result<Self> {
        while coefficients.len() > 1 && coefficients.last().is_some_and(Coefficient::is_zero) {
            coefficients.pop();
        }
        if coefficients.is_empty() || coefficients.len() > MAX_DEGREE + 1 {
            let count = coefficients.len();
            return Err(Error::argument(format!("a polynomial of {count} coefficients: 1 to {} do", MAX_DEGREE + 1)));
        }
        Ok(Self { basis, coefficients, interval })
    }

    /// The degree, leading zeros apart.
    #[must_use]
    pub const fn degree(&self) -> usize {
        self.coefficients.len() - 1
    }

    /// Its coefficients, that of degree 0 first.
    #[cfg(test)]
    pub(super) fn coefficients(&self) -> &[Coefficient<T>] {
        &self.coefficients
    }

    /// How arithmetic A evaluates it: depth, products, key switches.
    #[must_use]
    pub fn plan<A: Arithmetic<Scalar = T>>(&self) -> PolynomialPlan {
        self.shaped(A::COST).0
    }

    fn shaped(&self, cost: Cost) -> (PolynomialPlan, Shape) {
        let present: Vec<bool> = self.coefficients.iter().map(|c| !c.is_zero()).collect();
        plan::best(&present, self.basis, cost, self.interval.as_ref().is_some_and(|i| i.map.is_some()))
    }

    /// The value at every slot of `x` (or at the polynomial it encrypts).
    ///
    /// For Chebyshev's basis the slots of x must be real and in the interval: that is the caller's word, and the
    /// certificate of the result rests on it.
    ///
    /// # Errors
    /// [`Error::Argument`] when the declared bound of `x` exceeds the interval, [`synchromesh_rlwe::Error::Level`] when
    /// fewer levels are left than [`PolynomialPlan::depth`] in CKKS, or as [`Arithmetic::combine`].
    pub fn evaluate<A: Arithmetic<Scalar = T>>(&self, arithmetic: &A, x: &A::Ciphertext) -> Result<A::Ciphertext> {
        self.evaluate_near(arithmetic, x, 0.0)
    }

    /// As [`Self::evaluate`], of slots that are complex, and further from the interval by `width` at most, relative to half
    /// of its own.
    ///
    /// There T_n is at most r^n, r = 1 + d + (2 d + d^2)^(1/2), d the width: it is on the ellipse whose half axes sum to r,
    /// which holds all points whose distances from -1 and 1 sum to 2 + 2 d (Bernstein).
    ///
    /// # Errors
    /// As [`Self::evaluate`].
    pub(super) fn evaluate_near<A: Arithmetic<Scalar = T>>(
        &self,
        arithmetic: &A,
        x: &A::Ciphertext,
        width: f64,
    ) -> Result<A::Ciphertext> {
        let (plan, shape) = self.shaped(A::COST);
        let x = arithmetic.renewed(x, arithmetic.lowest_level() + plan.depth)?;
        let sum = shape.sum(&self.coefficients, self.basis);
        let growth = (width + (2.0 * width + width * width).sqrt()).ln_1p() * (1.0 + 1e-12);
        let mut run = Run { arithmetic, basis: self.basis, growth, powers: Powers::new(), tops: BTreeMap::new() };
        run.keep(1, self.mapped(arithmetic, x, width)?);
        for (n, (a, b)) in shape.powers() {
            run.raise(n, a, b)?;
        }
        run.sum(&sum)
    }

    /// The argument mapped to \[-1, 1\], or as near as it was to the interval, for Chebyshev's basis.
    fn mapped<A: Arithmetic<Scalar = T>>(
        &self,
        arithmetic: &A,
        x: &A::Ciphertext,
        width: f64,
    ) -> Result<A::Ciphertext> {
        let Some(Interval { ends: (a, b), map }) = &self.interval else { return arithmetic.duplicate(x) };
        let (most, have) = (a.abs().max(b.abs()), arithmetic.bound(x));
        if have > most * (1.0 + 1e-9) + 0.5 * width * (b - a) {
            return Err(Error::argument(format!(
                "the argument may reach {have}, and the interval is {a} to {b}: widen it, or declare a smaller bound"
            )));
        }
        let Some([scale, shift]) = map else { return arithmetic.duplicate(x) };
        let combination = Combination { products: Vec::new(), weights: vec![(x, scale)], constant: Some(shift) };
        arithmetic.bounded(arithmetic.combine(&combination)?, 1.0 + width)
    }
}

impl Polynomial<Complex64> {
    /// c_0 T_0(u) + c_1 T_1(u) + .., u the affine map of \[a, b\] to \[-1, 1\]; the map takes a level unless it is the
    /// identity. See [`chebyshev_coefficients`].
    ///
    /// # Errors
    /// [`Error::Argument`] for no coefficients, a degree above 4096, unless a < b are finite, and for an interval so narrow
    /// against its distance from 0 that the map in doubles would take arguments out of \[-1, 1\].
    pub fn chebyshev<C: Into<Coefficient<Complex64>>>(
        coefficients: impl IntoIterator<Item = C>,
        (a, b): (f64, f64),
    ) -> Result<Self> {
        if !(a.is_finite() && b.is_finite() && a < b && (b - a).is_finite()) {
            return Err(Error::argument(format!("{a} to {b} is no interval")));
        }
        let map = [2.0 / (b - a), -(a + b) / (b - a)];
        let interval = Interval { ends: (a, b), map: ((a, b) != (-1.0, 1.0)).then_some(map.map(Coefficient::from)) };
        let sum = Self::new(Basis::Chebyshev, coefficients.into_iter().map(Into::into).collect(), Some(interval))?;
        // Rounded, the ends of the interval go to +-(1 + d), where T_n is at most about 1 + n^2 d.
        let beyond = 8.0 * f64::EPSILON * (1.0 + (a.abs() + b.abs()) / (b - a)) * (sum.degree() as f64).powi(2);
        if beyond <= MOST_BEYOND && map[0].is_finite() {
            return Ok(sum);
        }
        let degree = sum.degree();
        Err(Error::argument(format!("{a} to {b} is too narrow for doubles at degree {degree}: shift or widen it")))
    }
}

/// The coefficients of the polynomial of this degree that interpolates f at Chebyshev's points of \[a, b\]; its error
/// is within a factor 2 + (2 / pi) ln(degree + 1) of the best polynomial's. Of a degree above 4096, those of 4096.
#[must_use]
pub fn chebyshev_coefficients(f: impl Fn(f64) -> f64, (a, b): (f64, f64), degree: usize) -> Vec<f64> {
    let count = degree.min(MAX_DEGREE) + 1;
    let angle = |j: usize| (j as f64 + 0.5) * std::f64::consts::PI / count as f64;
    let values: Vec<f64> = (0..count).map(|j| f(0.5 * (a + b) + 0.5 * (b - a) * angle(j).cos())).collect();
    let coefficient = |k: usize| {
        let sum: f64 = values.iter().enumerate().map(|(j, v)| v * (k as f64 * angle(j)).cos()).sum();
        sum * if k == 0 { 1.0 } else { 2.0 } / count as f64
    };
    (0..count).map(coefficient).collect()
}

/// An evaluation under way: the powers made so far, at every level they were needed at.
struct Run<'a, A: Arithmetic> {
    arithmetic: &'a A,
    basis: Basis,
    /// log r, where T_n is at most r^n.
    growth: f64,
    powers: Powers<A::Ciphertext>,
    /// The level at which each power was made.
    tops: BTreeMap<usize, usize>,
}

impl<A: Arithmetic> Run<'_, A> {
    fn keep(&mut self, n: usize, power: A::Ciphertext) {
        let level = self.arithmetic.level(&power);
        self.tops.insert(n, level);
        self.powers.insert((n, level), power);
    }

    /// Makes power n = a + b, a >= b.
    fn raise(&mut self, n: usize, a: usize, b: usize) -> Result<()> {
        let arithmetic = self.arithmetic;
        if self.basis == Basis::Power {
            let product = match a == b {
                true => arithmetic.square(self.at(a, usize::MAX)?)?,
                false => arithmetic.mul(self.at(a, usize::MAX)?, self.at(b, usize::MAX)?)?,
            };
            self.keep(n, product);
            return Ok(());
        }
        let x = self.at(a, usize::MAX)?;
        let growth = self.growth;
        let most = |n: usize| (growth * n as f64).exp();
        let double = arithmetic.bounded(arithmetic.add(x, x)?, 2.0 * most(a))?;
        let minus = Coefficient::All(A::Scalar::integer(-1));
        let level = arithmetic.level(&double).min(self.tops.get(&b).copied().unwrap_or(0));
        let other = if a == b { None } else { Some(self.lower(a - b, level)?) };
        let (y, other) = (self.at(b, usize::MAX)?, other.map(|at| self.at(a - b, at)).transpose()?);
        let combination = Combination {
            products: vec![[&double, y]],
            weights: other.map(|z| (z, &minus)).into_iter().collect(),
            constant: (a == b).then_some(&minus),
        };
        let power = arithmetic.bounded(arithmetic.combine(&combination)?, most(n))?;
        self.keep(n, power);
        Ok(())
    }

    /// Power n as it was brought to `level`, or as it was made.
    fn at(&self, n: usize, level: usize) -> Result<&A::Ciphertext> {
        let top = self.tops.get(&n).copied().unwrap_or(0);
        let found = self.powers.get(&(n, level)).or_else(|| self.powers.get(&(n, top)));
        found.ok_or_else(|| Error::argument(format!("power {n} was not planned")))
    }

    /// Brings power n to `level` where that is worth keeping; returns the level to find it under.
    fn lower(&mut self, n: usize, level: usize) -> Result<usize> {
        if !self.powers.contains_key(&(n, level))
            && let Some(lower) = self.arithmetic.lowered(self.at(n, level)?, level)?
        {
            self.powers.insert((n, level), lower);
        }
        Ok(level)
    }

    fn sum(&mut self, sum: &Sum<Coefficient<A::Scalar>>) -> Result<A::Ciphertext> {
        let factors = sum.products.iter().map(|(_, q)| self.sum(q)).collect::<Result<Vec<_>>>()?;
        let powers = || sum.products.iter().map(|(n, _)| *n).chain(sum.weights.iter().map(|(n, _)| *n));
        let made = powers().filter_map(|n| self.tops.get(&n).copied());
        let level = made.chain(factors.iter().map(|q| self.arithmetic.level(q))).min().unwrap_or(0);
        for n in powers().collect::<Vec<_>>() {
            self.lower(n, level)?;
        }
        let products = sum.products.iter().zip(&factors).map(|((n, _), q)| Ok([self.at(*n, level)?, q]));
        let mut weights = sum.weights.iter().map(|(n, c)| Ok((self.at(*n, level)?, c))).collect::<Result<Vec<_>>>()?;
        let zero = Coefficient::All(A::Scalar::integer(0));
        if sum.products.is_empty() && weights.is_empty() {
            weights.push((self.at(1, level)?, &zero));
        }
        let products = products.collect::<Result<Vec<_>>>()?;
        self.arithmetic.combine(&Combination { products, weights, constant: sum.constant.as_ref() })
    }
}
