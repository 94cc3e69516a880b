//! 1 / x and 1 / sqrt x on wide intervals: a polynomial to start with, and steps that square its relative error.
//!
//! 1 / x by Goldschmidt: y' = y (1 + e), e' = e^2 where e = 1 - x y is carried along, so that a step is one level. The
//! start with the least |e| is e_0 = T_n(u) / T_n(u_0), u_0 the image of x = 0, with y_0 = (1 - e_0) / x, a polynomial. With
//! d the difference of e and 1 - x y, which rounded coefficients leave, d' = d (1 + e).
//!
//! 1 / sqrt x by Newton: y' = y (1 + 2 h), h' = h^2 (3 + 4 h) where h = (1 - x y^2) / 4. A step is two levels, and makes
//! e = 4 h to e^2 (3 + e) / 4, exactly: the first h is computed from the first y.

use super::analytic::Analytic;
use super::series::{Series, UNIT, range};
use crate::circuits::{Arithmetic, Coefficient, Combination, Number, Polynomial, chebyshev_coefficients};
use crate::embedding::Complex64;
use crate::error::Result;

/// The largest relative error to start with.
const MOST_FIRST: f64 = 0.9;

/// Steps at most.
const MOST_STEPS: usize = 24;

/// An approximation by steps.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Newton {
    interval: (f64, f64),
    /// 1 / x: of y_0 and e_0. 1 / sqrt x: of y_0 / 2.
    series: Vec<Series>,
    polynomials: Vec<Polynomial<Complex64>>,
    /// |e_k| is at most this, k = 0, .., steps.
    errors: Vec<f64>,
    root: bool,
    /// How far the result is from the function at most.
    pub(super) error: f64,
}

impl Newton {
    /// 1 / x on an interval without 0; none where even so many steps do not come so near.
    pub(super) fn inverse(interval: (f64, f64), tolerance: f64) -> Result<Option<Self>> {
        let (low, high) = interval;
        let least = low.abs().min(high.abs());
        let zero = (low + high).abs() / (high - low);
        let at = |u: f64| (0.5 * (low + high) + 0.5 * (high - low) * u).clamp(low, high);
        for log in 1..=7 {
            let degree = 1usize << log;
            let first = 1.0 / (degree as f64 * zero.acosh()).cosh();
            if first > MOST_FIRST && log < 7 {
                continue;
            }
            let mut start = vec![0.0; degree + 1];
            // T_n is even: its value at u_0 does not depend on the sign of u_0.
            start[degree] = first;
            let e = Series(start);
            let y = Series(chebyshev_coefficients(|u| (1.0 - e.value(u)) / at(u), (-1.0, 1.0), degree - 1));
            let most = low.abs().max(high.abs());
            let rounding = e.rounding() + most * y.rounding() + 8.0 * UNIT * (1.0 + most * y.size());
            let off = range(degree, (-1.0, 1.0), 0.01, |u| (1.0 - at(u) * y.value(u) - e.value(u), rounding));
            let first = first * (1.0 + 1e-9);
            let drift =
                (off.low.abs().max(off.high.abs()) + mapping(interval, degree, 1.0 + most * y.size())) / (1.0 - first);
            let mut errors = vec![first];
            while errors.len() <= MOST_STEPS {
                let last = errors[errors.len() - 1];
                let error = (last + drift) / least * (1.0 + 1e-9);
                if error <= tolerance && errors.len() > 1 {
                    let polynomials = polynomials(&[&y, &e], interval)?;
                    let series = vec![y, e];
                    return Ok(Some(Self { interval, series, polynomials, errors, root: false, error }));
                }
                errors.push(last * last);
            }
        }
        Ok(None)
    }

    /// 1 / sqrt x on an interval above 0, as [`Self::inverse`].
    pub(super) fn rsqrt(interval: (f64, f64), tolerance: f64) -> Result<Option<Self>> {
        let (low, high) = interval;
        let root = high.sqrt();
        for aim in [0.3, 0.2, 0.1, 0.05] {
            let fit = Analytic::Rsqrt.fit(interval, aim / root);
            let off = fit.error * root;
            let first = (2.0 * off + off * off) * (1.0 + 1e-9);
            if first > MOST_FIRST {
                continue;
            }
            let mut errors = vec![first];
            while errors.len() <= MOST_STEPS {
                let last = errors[errors.len() - 1];
                // |y sqrt x - 1| <= |e| for |e| < 1.
                let error = last / low.sqrt() * (1.0 + 1e-9);
                if error <= tolerance && errors.len() > 1 {
                    let half = Series(fit.series.0.iter().map(|c| 0.5 * c).collect());
                    let polynomials = polynomials(&[&half], interval)?;
                    return Ok(Some(Self { interval, series: vec![half], polynomials, errors, root: true, error }));
                }
                errors.push(last * last * (3.0 + last) / 4.0);
            }
        }
        Ok(None)
    }

    /// The degrees of the polynomials to start with.
    pub(super) fn degrees(&self) -> Vec<usize> {
        self.series.iter().map(Series::degree).collect()
    }

    fn steps(&self) -> usize {
        self.errors.len() - 1
    }

    /// Levels, products, key switches.
    pub(super) fn plan<A: Arithmetic<Scalar = Complex64>>(&self) -> [usize; 3] {
        let plans: Vec<_> = self.polynomials.iter().map(Polynomial::plan::<A>).collect();
        let start = plans.iter().map(|p| p.depth).max().unwrap_or(0);
        let products: usize = plans.iter().map(|p| p.products).sum();
        let switches: usize = plans.iter().map(|p| p.key_switches).sum();
        // The last error is not squared any more.
        let (more, depth) = match self.root {
            true => (2 + 3 * self.steps() - 2, 2 + 2 * self.steps() - 1),
            false => (2 * self.steps() - 1, self.steps()),
        };
        [start + depth, products + more, switches + more]
    }

    /// What is computed, in doubles.
    pub(super) fn value(&self, x: f64) -> f64 {
        let (low, high) = self.interval;
        let u = ((2.0 * x - low - high) / (high - low)).clamp(-1.0, 1.0);
        let mut y = self.series[0].value(u);
        if self.root {
            let mut h = 0.25 - x * y * y;
            y *= 2.0;
            for _ in 0..self.steps() {
                (y, h) = (y * (1.0 + 2.0 * h), h * h * (3.0 + 4.0 * h));
            }
            return y;
        }
        let mut e = self.series[1].value(u);
        for _ in 0..self.steps() {
            (y, e) = (y * (1.0 + e), e * e);
        }
        y
    }

    /// Of every slot of x.
    pub(super) fn evaluate<A: Arithmetic<Scalar = Complex64>>(
        &self,
        a: &A,
        x: &A::Ciphertext,
    ) -> Result<A::Ciphertext> {
        if self.root { self.evaluate_root(a, x) } else { self.evaluate_inverse(a, x) }
    }

    fn evaluate_inverse<A: Arithmetic<Scalar = Complex64>>(&self, a: &A, x: &A::Ciphertext) -> Result<A::Ciphertext> {
        let most = 1.0 / self.interval.0.abs().min(self.interval.1.abs());
        let first = a.bounded(self.polynomials[0].evaluate(a, x)?, most * (1.0 + self.errors[0]) + self.error)?;
        let (mut y, mut e) = (first, a.bounded(self.polynomials[1].evaluate(a, x)?, self.errors[0])?);
        let one = Coefficient::All(Complex64::integer(1));
        for (k, error) in self.errors.iter().enumerate().skip(1) {
            let terms = Combination { products: vec![[&y, &e]], weights: vec![(&y, &one)], constant: None };
            y = a.bounded(a.combine(&terms)?, most * (1.0 + error) + self.error)?;
            if k < self.steps() {
                e = a.bounded(a.square(&e)?, *error)?;
            }
        }
        Ok(y)
    }

    fn evaluate_root<A: Arithmetic<Scalar = Complex64>>(&self, a: &A, x: &A::Ciphertext) -> Result<A::Ciphertext> {
        let (low, high) = (1.0 / self.interval.0.sqrt(), self.interval.1.sqrt());
        let half = self.polynomials[0].evaluate(a, x)?;
        let half = a.bounded(half, 0.5 * low * (1.0 + self.errors[0]))?;
        let minus = a.bounded(a.neg(&a.mul(x, &half)?)?, 0.5 * high * (1.0 + self.errors[0]))?;
        let quarter = Coefficient::All(Complex64::new(0.25, 0.0));
        let terms = Combination { products: vec![[&minus, &half]], weights: Vec::new(), constant: Some(&quarter) };
        let mut h = a.bounded(a.combine(&terms)?, 0.25 * self.errors[0])?;
        let mut y = a.add(&half, &half)?;
        let [one, four] = [1, 4].map(|c| Coefficient::All(Complex64::integer(c)));
        let three = Coefficient::All(Complex64::integer(3));
        for (k, error) in self.errors.iter().enumerate().skip(1) {
            let double = a.add(&y, &y)?;
            let terms = Combination { products: vec![[&double, &h]], weights: vec![(&y, &one)], constant: None };
            y = a.bounded(a.combine(&terms)?, low * (1.0 + error))?;
            if k < self.steps() {
                let terms = Combination { products: Vec::new(), weights: vec![(&h, &four)], constant: Some(&three) };
                h = a.bounded(a.mul(&a.square(&h)?, &a.combine(&terms)?)?, 0.25 * error)?;
            }
        }
        Ok(y)
    }
}

/// How far the map of an interval in doubles moves a polynomial of this degree and size (Markov: |p'| <= n^2 |p|).
fn mapping((low, high): (f64, f64), degree: usize, size: f64) -> f64 {
    (degree as f64).powi(2) * size * 8.0 * UNIT * (1.0 + (low.abs() + high.abs()) / (high - low))
}

fn polynomials(series: &[&Series], interval: (f64, f64)) -> Result<Vec<Polynomial<Complex64>>> {
    series.iter().map(|s| Polynomial::chebyshev(s.0.iter().copied(), interval)).collect()
}
