//! EvalMod: from t = m / q + I, |t| <= K, to m, as the sine of 2 pi t, which does not see the integer I.
//!
//! sin(2 pi t) = cos(2 pi (t - 1/4)). The cosine of a 2^r-th part of that angle is a polynomial in
//! u = (t - 1/4) / (K + 1/4), |u| <= 1, and r times cos(2 x) = 2 cos(x)^2 - 1 bring it back (ePrint 2018/153 and
//! 2020/552). Everything is multiplied by numbers b_0, b_1 = b_0^2, .. so that the last, b, makes the sine as large as the
//! message: c_(i+1) = 2 c_i^2 - b_i^2 for c_i = b_i cos(2^i x).
//!
//! What it is off by is bounded, not sampled. The series of cos(a u) in Chebyshev's polynomials has the coefficients
//! 2 (-1)^k J_2k(a), |J_n(a)| <= (a/2)^n / n!; interpolating at Chebyshev's points at most doubles what is cut off.
//! Doublings are products of ciphertexts, whose certificates hold whatever error their factors have. The error e that t
//! brings along is another matter: what is computed is the sine of t + e, which is off by at most e times the largest slope.
//! So the circuit runs as if t had no error, and that is added at the end; each product on the way would double it. And
//! |sin(x) - x| <= |x|^3 / 6.
//!
//! Where that is too much, the sine is straightened by the arcsine's first two terms (ePrint 2020/552), s + s^3 / 6 of
//! s = sin(x), at two levels. The others have positive coefficients that fall, from 3/40 on, so that x is more by at most
//! 3/40 |x|^5 / (1 - x^2); and the slope cos(x) (1 + sin(x)^2 / 2) lies between cos(x) and 1.

use std::f64::consts::{PI, TAU};

use synchromesh_rlwe::noise::require_room;
use synchromesh_rlwe::ring::{Backend, Cpu};
use synchromesh_rlwe::{Noise, Operation};

use crate::circuits::{Arithmetic, Coefficient, Combination, Polynomial, chebyshev_coefficients};
use crate::ckks::ciphertext::Ciphertext;
use crate::ckks::evaluator::Evaluator;
use crate::ckks::noise;
use crate::embedding::Complex64;
use crate::error::Result;

/// How far t may be off.
const SPARE: f64 = 1.0 / 1024.0;

/// The polynomial and the doublings.
#[derive(Debug, Clone)]
pub(crate) struct Sine {
    polynomial: Polynomial<Complex64>,
    /// b_0, ..
    sizes: Vec<f64>,
    /// K + 1/4, and what t may be off by.
    pub(super) reach: f64,
    /// How far the polynomial may be from b_0 cos(a u) on \[-1, 1\].
    error: f64,
    /// y + y^3 / (6 b^2), where the sine is straightened.
    arcsine: Option<Polynomial<Complex64>>,
}

impl Sine {
    /// For |t| <= `most`, of this degree (even) and with this number of doublings, times `size`.
    pub(super) fn new(most: f64, degree: usize, doublings: u32, size: f64) -> Result<Self> {
        let reach = most + 0.25 + SPARE;
        let angle = TAU * reach / f64::from(doublings).exp2();
        let first = size.powf(f64::from(doublings).exp2().recip());
        let mut coefficients = chebyshev_coefficients(|u| first * (angle * u).cos(), (-1.0, 1.0), degree);
        // The function is even: what is there is rounding.
        coefficients.iter_mut().skip(1).step_by(2).for_each(|c| *c = 0.0);
        let cut = 2.0 * (degree / 2 + 1..degree / 2 + 200).map(|k| 2.0 * bessel(2 * k, angle)).sum::<f64>();
        let rounding = 8.0 * (degree as f64 + 2.0) * f64::EPSILON;
        let mut sizes = vec![first];
        for _ in 0..doublings {
            sizes.push(sizes[sizes.len() - 1] * sizes[sizes.len() - 1]);
        }
        let polynomial = Polynomial::chebyshev(coefficients, (-1.0, 1.0))?;
        Ok(Self { polynomial, sizes, reach, error: first * (cut + rounding), arcsine: None })
    }

    /// The same, straightened or not.
    pub(super) fn straightened(self, straighten: bool) -> Result<Self> {
        let cubic = (6.0 * self.size() * self.size()).recip();
        let arcsine = straighten.then(|| Polynomial::power([0.0, 1.0, 0.0, cubic])).transpose()?;
        Ok(Self { arcsine, ..self })
    }

    /// The degree and doublings of the fewest levels that keep within `error`, of these the fewest products, and the levels;
    /// none where doubles are too coarse.
    pub(crate) fn cheapest(most: f64, size: f64, error: f64) -> Result<Option<(usize, u32, usize)>> {
        let mut best: Option<((usize, usize), usize, u32)> = None;
        for doublings in 0..=5 {
            // What the polynomial is off by grows fourfold with each doubling, times what the values do.
            let grown = |sine: &Self| sine.error / sine.sizes[0] * 4f64.powi(doublings as i32) * size;
            for degree in (4..=126).step_by(2) {
                let sine = Self::new(most, degree, doublings, size)?;
                if grown(&sine) > error {
                    continue;
                }
                let plan = sine.polynomial.plan::<Evaluator<Cpu>>();
                let key = (sine.depth::<Cpu>(), plan.products + doublings as usize);
                if best.as_ref().is_none_or(|(least, ..)| key < *least) {
                    best = Some((key, degree, doublings));
                }
                break;
            }
        }
        Ok(best.map(|((depth, _), degree, doublings)| (degree, doublings, depth)))
    }

    /// Levels it takes.
    pub(super) fn depth<B: Backend>(&self) -> usize {
        let arcsine = self.arcsine.as_ref().map_or(0, |arcsine| arcsine.plan::<Evaluator<B>>().depth);
        self.polynomial.plan::<Evaluator<B>>().depth + self.sizes.len() - 1 + arcsine
    }

    /// How far the sine times its size is from the message, for messages of absolute value at most `bound`.
    pub(super) fn bend(&self, bound: f64) -> f64 {
        // size sin(x) for x = message / size.
        let square = (bound / self.size()).powi(2);
        match self.arcsine {
            Some(_) if square < 1.0 => bound * square * square * 3.0 / (40.0 * (1.0 - square)),
            _ => bound * square / 6.0,
        }
    }

    /// What [`Self::evaluate`] gives for messages of absolute value at most `bound`, straightened if it is to be.
    pub(super) fn straight<B: Backend>(
        &self,
        evaluator: &Evaluator<B>,
        sine: Ciphertext<B>,
        bound: f64,
    ) -> Result<Ciphertext<B>> {
        let Some(arcsine) = &self.arcsine else { return Ok(sine) };
        arcsine.evaluate(evaluator, &evaluator.declare_bound(sine, bound)?)
    }

    /// The factor that makes the message, as the sine has it, of t times q: 2 pi times what q is of the message.
    pub(super) fn size_for(modulus_of_message: f64) -> f64 {
        modulus_of_message / (2.0 * PI)
    }

    /// Of `t / (K + 1/4)` the sine, as if t had no error but for how the sine bends it; [`Self::carried`] is the rest.
    pub(super) fn evaluate<B: Backend>(&self, evaluator: &Evaluator<B>, t: Ciphertext<B>) -> Result<Ciphertext<B>> {
        let params = evaluator.context().params();
        let off = noise::canonical(params, t.inner().noise()) - t.log2_scale();
        require_room(off, (SPARE / self.reach).log2(), t.level(), params.failure_limit().log2_failure())?;
        let t = with_noise(evaluator, t, Operation::Copy, |_| Noise::ZERO)?;
        let u = evaluator.add_scalar(&t, -0.25 / self.reach)?;
        let (shift, from) = (u.inner().noise(), u.log2_scale());
        let u = with_noise(evaluator, evaluator.declare_bound(u, 1.0)?, Operation::Copy, |_| Noise::ZERO)?;
        let cosine = self.polynomial.evaluate(evaluator, &u)?;
        let mut cosine = off_by(evaluator, cosine, self.error)?;
        for pair in self.sizes.windows(2) {
            cosine = evaluator.declare_bound(cosine, pair[0])?;
            let double = evaluator.add(&cosine, &cosine)?;
            let minus = Coefficient::from(-pair[1]);
            let products = vec![[&double, &cosine]];
            cosine = evaluator.combine(&Combination { products, weights: Vec::new(), constant: Some(&minus) })?;
        }
        // b sin(2 pi reach u) has slopes of at most b 2 pi reach, and bends by that times 2 pi reach.
        let (size, turns) = (self.size(), TAU * self.reach);
        let bend = Noise::at_most(self.log2_slope() + turns.log2() + 2.0 * off - 1.0 + cosine.log2_scale());
        let shift = self.carried(shift, from, cosine.log2_scale());
        let sine = with_noise(evaluator, cosine, Operation::Copy, |own| own.plus(bend).plus(shift))?;
        evaluator.declare_bound(sine, size)
    }

    /// What becomes of an error of t / (K + 1/4) where the sine is straight, from one scale to another, both as log2.
    pub(super) fn carried(&self, noise: Noise, from: f64, to: f64) -> Noise {
        noise.times(self.log2_slope() + to - from)
    }

    /// By how much the slope of the sine differs from what it is at 0, relatively, for messages of absolute value at most
    /// `bound`.
    pub(super) fn flatter(&self, bound: f64) -> f64 {
        (bound / self.size()).powi(2) / 2.0
    }

    /// What the sine is multiplied by.
    pub(super) fn size(&self) -> f64 {
        self.sizes[self.sizes.len() - 1]
    }

    /// log2 of the largest slope of size sin(2 pi reach u).
    fn log2_slope(&self) -> f64 {
        (self.size() * TAU * self.reach).log2()
    }
}

/// The ciphertext with a certificate that holds for another message too, at most `error` from the one it has.
pub(super) fn off_by<B: Backend>(evaluator: &Evaluator<B>, x: Ciphertext<B>, error: f64) -> Result<Ciphertext<B>> {
    let added = Noise::at_most(x.log2_scale() + error.log2());
    with_noise(evaluator, x, Operation::Copy, |own| own.plus(added))
}

/// The ciphertext with what becomes of its certificate.
pub(super) fn with_noise<B: Backend>(
    evaluator: &Evaluator<B>,
    x: Ciphertext<B>,
    operation: Operation,
    noise: impl FnOnce(Noise) -> Noise,
) -> Result<Ciphertext<B>> {
    let (inner, header) = x.into_parts();
    let noise = noise(inner.noise());
    Ciphertext::checked(evaluator.context(), operation, inner.assume_noise(noise), header.scale, header.bound)
}

/// (a/2)^n / n!, at least |J_n(a)|.
fn bessel(n: usize, a: f64) -> f64 {
    (1..=n).map(|i| a / 2.0 / i as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_polynomial_is_as_near_as_it_says() {
        for (most, degree, doublings) in [(16.5, 30, 3u32), (16.5, 30, 4), (16.5, 62, 3), (8.5, 22, 3), (1.0, 20, 0)] {
            let sine = Sine::new(most, degree, doublings, 81.5).unwrap();
            let angle = TAU * sine.reach / f64::from(doublings).exp2();
            let coefficients = chebyshev_coefficients(|u| sine.sizes[0] * (angle * u).cos(), (-1.0, 1.0), degree);
            let mut worst = 0.0f64;
            for i in 0..=20_000 {
                let x = (PI * f64::from(i) / 20_000.0).cos();
                let value: f64 =
                    coefficients.iter().enumerate().step_by(2).map(|(k, c)| c * (k as f64 * x.acos()).cos()).sum();
                worst = worst.max((value - sine.sizes[0] * (angle * x).cos()).abs());
            }
            assert!(worst <= sine.error, "degree {degree}: {worst:e} above {:e}", sine.error);
            assert!(sine.error < worst * 300.0 + 1e-11, "degree {degree}: {worst:e}, and {:e} is said", sine.error);
            let last = sine.sizes[sine.sizes.len() - 1];
            assert!((last / 81.5 - 1.0).abs() < 1e-12);
        }
    }
}
