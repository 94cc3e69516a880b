//! Functions that are analytic around an interval, and polynomials of the least degree in their place, with proofs.
//!
//! If f is at most M in the ellipse with foci -1 and 1 whose semi-axes add up to rho, its Chebyshev series cut off after
//! degree n is within 2 M rho^-n / (rho - 1) of it on \[-1, 1\] (Bernstein; Trefethen, Approximation Theory and
//! Approximation Practice, theorem 8.2). That there is such a polynomial, of a high degree, and how far f is from ours at
//! many points, bounds how far it is from ours everywhere ([`Series::distance`]).

use serde::{Deserialize, Serialize};

use super::interval::Interval;
use super::remez::minimax;
use super::series::{Series, UNIT};
use crate::circuits::chebyshev_coefficients;

/// The largest degree that is tried is a power of two less one: eleven levels.
const MOST_LEVELS: u32 = 11;

/// The largest degree of a polynomial that is looked for by exchange; others interpolate.
const MOST_EXCHANGED: usize = 95;

/// The largest degree of the series that proofs go through.
const MOST_PROOF: usize = 1 << 13;

/// A function of one real number that is analytic on the intervals it is approximated on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Analytic {
    /// e^x
    Exp,
    /// The natural logarithm.
    Log,
    /// 1 / (1 + e^-x)
    Sigmoid,
    /// tanh x
    Tanh,
    /// x (1 + erf(x / sqrt 2)) / 2
    Gelu,
    /// The square root.
    Sqrt,
    /// 1 / sqrt x
    Rsqrt,
    /// 1 / x
    Inverse,
}

/// A polynomial in the place of a function on an interval.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fit {
    /// In u, the affine map of the interval to \[-1, 1\].
    pub(super) series: Series,
    /// How far it is from the function at most, with the map computed in doubles.
    pub(super) error: f64,
}

impl Analytic {
    /// Whether the function has a singularity on the interval.
    pub(super) fn singular_on(self, (low, high): (f64, f64)) -> bool {
        match self {
            Self::Exp | Self::Sigmoid | Self::Tanh | Self::Gelu => false,
            Self::Log | Self::Sqrt | Self::Rsqrt => low <= 0.0,
            Self::Inverse => low <= 0.0 && high >= 0.0,
        }
    }

    /// What the values on an interval lie between.
    pub(super) fn enclosure(self, x: Interval) -> Interval {
        let one = Interval::point(1.0);
        let twice = x + x;
        match self {
            Self::Exp => x.exp(),
            Self::Log => x.ln(),
            Self::Sigmoid => one / (one + (-x).exp()),
            Self::Tanh => one - Interval::point(2.0) / (one + twice.exp()),
            Self::Gelu => x * (one + (x / Interval::point(2.0).sqrt()).erf()) / Interval::point(2.0),
            Self::Sqrt => x.sqrt(),
            Self::Rsqrt => one / x.sqrt(),
            Self::Inverse => one / x,
        }
    }

    /// The value at a number, to a few units in the last place of the largest intermediate one.
    pub(super) fn value(self, x: f64) -> f64 {
        let Interval { low, high } = self.enclosure(Interval::point(x));
        0.5 * (low + high)
    }

    /// Half of the real axis that the ellipse around \[low, high\] may reach, and of the imaginary one, in units of half
    /// the interval: where the nearest singularity is.
    fn room(self, (low, high): (f64, f64)) -> (f64, f64) {
        let half = 0.5 * (high - low);
        match self {
            Self::Exp | Self::Gelu => (f64::INFINITY, f64::INFINITY),
            Self::Sigmoid => (f64::INFINITY, std::f64::consts::PI / half),
            Self::Tanh => (f64::INFINITY, std::f64::consts::FRAC_PI_2 / half),
            Self::Log | Self::Sqrt | Self::Rsqrt => (0.5 * (low + high) / half, f64::INFINITY),
            Self::Inverse => (0.5 * (low + high).abs() / half, f64::INFINITY),
        }
    }

    /// A bound on |f| in the ellipse around \[low, high\] whose semi-axes are `a` and `b` times half the interval.
    fn largest_in_ellipse(self, (low, high): (f64, f64), a: f64, b: f64) -> f64 {
        let (centre, half) = (0.5 * (low + high), 0.5 * (high - low));
        let (right, left, up) = (centre + a * half, centre - a * half, b * half);
        let furthest = left.abs().max(right.abs());
        // |1 + e^-z| >= 1 where |Im z| <= pi / 2, and >= sin |Im z| up to pi.
        let logistic = |up: f64| if up <= std::f64::consts::FRAC_PI_2 { 1.0 } else { 1.0 / up.sin() };
        // The point of the ellipse nearest to 0, beside it on the real axis, is a vertex.
        let nearest = left.abs().min(right.abs());
        let most = match self {
            Self::Exp => right.exp(),
            Self::Log => nearest.ln().abs().max(furthest.ln().abs()) + std::f64::consts::PI,
            Self::Sigmoid => logistic(up),
            Self::Tanh => 1.0 + 2.0 * logistic(2.0 * up),
            // |erf(x + i y)| <= 1 + 2 / sqrt(pi) |y| e^(y^2): integrate upwards from x.
            Self::Gelu => {
                let y = up / std::f64::consts::SQRT_2;
                furthest.max(up) * 2.0 * (1.0 + 0.5 * std::f64::consts::FRAC_2_SQRT_PI * y * (y * y).exp())
            }
            Self::Sqrt => furthest.sqrt(),
            Self::Rsqrt => 1.0 / nearest.sqrt(),
            Self::Inverse => 1.0 / nearest,
        };
        // Twice as much, since it was computed in doubles and with the platform's functions.
        2.0 * most
    }

    /// How far the best polynomial of this degree is from the function on the interval at most.
    fn remainder(self, interval: (f64, f64), degree: usize) -> f64 {
        let (real, imaginary) = self.room(interval);
        // a = (rho + 1 / rho) / 2 and b = (rho - 1 / rho) / 2 of the largest ellipse, and those inside it.
        let most = (real + (real * real - 1.0).max(0.0).sqrt()).min(imaginary.hypot(1.0) + imaginary).min(1e4);
        let bound = |step: i32| {
            let rho = 1.0 + (most - 1.0) * (f64::from(step) / 48.0).powi(2);
            let (a, b) = (0.5 * (rho + 1.0 / rho), 0.5 * (rho - 1.0 / rho));
            let log2 =
                1.0 + self.largest_in_ellipse(interval, a, b).log2() - degree as f64 * rho.log2() - (rho - 1.0).log2();
            (log2 + 1e-6).exp2()
        };
        (1..48).map(bound).filter(|bound| !bound.is_nan()).fold(f64::INFINITY, f64::min)
    }

    /// A proved bound on how far a polynomial is from the function on the interval.
    fn judged(self, (low, high): (f64, f64), series: Series, aim: f64) -> Fit {
        let degree = series.degree() as f64;
        // The series that the proof goes through is much nearer than what is to be proved.
        let mut proof = 2 * series.degree().max(8);
        while self.remainder((low, high), proof) > aim / 256.0 && proof < MOST_PROOF {
            proof *= 2;
        }
        let [middle, half] = [low + high, high - low].map(|x| Interval::around(0.5 * x, UNIT * x.abs()));
        // Points next to an end stay on the interval as given.
        let inside = |x: Interval| Interval { low: x.low.max(low), high: x.high.min(high) };
        let exact = |u: Interval| self.enclosure(inside(middle + half * u));
        let distance = series.distance(exact, proof, self.remainder((low, high), proof));
        // The map of the interval is computed in doubles; |p'| <= n^2 |p| (Markov).
        let shift = 8.0 * UNIT * (1.0 + (low.abs() + high.abs()) / (high - low));
        Fit { error: (distance + degree * degree * series.size() * shift) * (1.0 + 1e-9), series }
    }

    /// The polynomial of the least degree that is found within `tolerance`; if none is, the nearest that was.
    pub(super) fn fit(self, interval: (f64, f64), tolerance: f64) -> Fit {
        let (low, high) = interval;
        let at = |u: f64| self.value((0.5 * (low + high) + 0.5 * (high - low) * u).clamp(low, high));
        let (mut series, mut least) = (Vec::new(), 0.0);
        for log in 5..=MOST_LEVELS {
            series = chebyshev_coefficients(at, (-1.0, 1.0), (1 << log) - 1);
            // Below that there is rounding only.
            least = 64.0 * UNIT * series.iter().map(|c| c.abs()).fold(0.0, f64::max);
            let end: f64 = series.iter().rev().take(series.len() / 4).map(|c| c.abs()).sum();
            if end < (tolerance / 64.0).max(series.len() as f64 * least / 16.0) {
                break;
            }
        }
        // What is cut off is at most the sum of its coefficients, of which those by rounding do not count.
        let (aim, mut tail) = ((0.9 * tolerance).max(4.0 * least), 0.0);
        let degree = series.iter().rposition(|c| {
            tail += if c.abs() <= least / 16.0 { 0.0 } else { c.abs() };
            tail > aim
        });
        let degree = degree.unwrap_or(0);
        let mut best = self.judged(interval, without_dust(&series[..=degree], tolerance), tolerance);
        for more in 1..=4 {
            if best.error <= tolerance || degree + more >= series.len() {
                break;
            }
            let next = self.judged(interval, without_dust(&series[..=degree + more], tolerance), tolerance);
            best = if next.error < best.error { next } else { best };
        }
        self.exchanged(interval, tolerance, at, best)
    }

    /// The same or a lower degree by Remez' exchange, where that is as near.
    fn exchanged(self, interval: (f64, f64), tolerance: f64, at: impl Fn(f64) -> f64, first: Fit) -> Fit {
        let mut best = first;
        let most = best.series.degree();
        if most > MOST_EXCHANGED || best.error > tolerance {
            return best;
        }
        for degree in (1..=most).rev() {
            let present: Vec<usize> = (0..=degree).filter(|&k| best.series.0.get(k) != Some(&0.0)).collect();
            let Some(series) = best_of(&at, &present) else { break };
            let next = self.judged(interval, series, tolerance);
            if next.error <= tolerance && (degree < most || next.error < best.error) {
                best = next;
            } else if degree < most {
                break;
            }
        }
        best
    }
}

/// The best polynomial on \[-1, 1\] with these degrees; even or odd ones but for a constant on half of that.
fn best_of(f: &impl Fn(f64) -> f64, degrees: &[usize]) -> Option<Series> {
    let all = |parity: usize| degrees.iter().all(|k| *k == 0 || k % 2 == parity);
    if degrees.last()? > &1 && all(1) {
        // The first extremum is at about half of 1 / n.
        let (middle, odd) = (f(0.0), degrees.iter().copied().filter(|k| *k > 0).collect::<Vec<_>>());
        let mut series = minimax(|u| f(u) - middle, (1e-3, 1.0), &odd)?;
        series.0[0] = middle;
        return Some(series);
    }
    minimax(f, (if degrees.len() > 1 && all(0) { 0.0 } else { -1.0 }, 1.0), degrees)
}

/// The series without coefficients that are there by rounding alone, so that even and odd functions have even and odd ones.
fn without_dust(series: &[f64], tolerance: f64) -> Series {
    let most = series.iter().map(|c| c.abs()).fold(0.0, f64::max);
    let dust = (64.0 * UNIT * most).min(tolerance / (64.0 * series.len() as f64));
    let mut kept: Vec<f64> = series.iter().map(|c| if c.abs() <= dust { 0.0 } else { *c }).collect();
    while kept.len() > 1 && kept.last() == Some(&0.0) {
        kept.pop();
    }
    Series(kept)
}
