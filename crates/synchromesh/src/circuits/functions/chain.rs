//! Polynomials one after the other, of an argument that is off: by no more than their slopes allow where the argument is.
//!
//! A certificate that follows an evaluation step by step knows of T_k that it may be off by k^2 times as much as its
//! argument, which holds at the ends of the interval, for all k at once and with the signs that are worst. Here each
//! polynomial p takes its argument to be what it decrypts to, u + e, exactly; what its evaluation rounds is all that the
//! certificate then counts, and p(u + e) is no further from p(u) than |e| times the slope between. So the result is off by a
//! sum of [gains](Gains) times what each evaluation before the last rounded, and what the argument was off by.
//!
//! A gain is the largest product of slopes along the way of one u. The interval is cut into cells, each followed through all
//! polynomials; in the middle of a gap a sign is steep, outside it is flat, and the slopes of two polynomials are hardly
//! ever steepest at the same u.
//!
//! e is complex. Near \[-1, 1\], by d, a polynomial of degree n is at most r^n times as large as on the interval, log r <=
//! (2 d)^(1/2) ([`Polynomial::evaluate_near`]). That bounds T_n, and the second derivative, by which the slope changes from
//! u to u + e.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::series::Series;
use crate::circuits::{Arithmetic, Polynomial, PolynomialPlan};
use crate::embedding::Complex64;
use crate::error::{Error, Result};

/// log2 of the largest r^n that is allowed for: the more, the more arguments may be off, and the more slopes change.
const GROWTHS: [f64; 3] = [0.0625, 0.25, 1.0];

/// Points that are looked at for what gains are at least.
const POINTS: i32 = 4096;

/// Cells are halved, those with the largest gains first, until none is larger than these times what some point's are, or by
/// so little,
const FINE: f64 = 1.05;
/// as this;
const LEAST: f64 = 1.0 / 64.0;
/// of deep chains with narrow gaps so many times at most.
const MOST_HALVINGS: usize = 10_000;

/// Between what is computed in doubles of slopes and what is relied on.
const ROOM: f64 = 1.0 + 1e-6;

/// Polynomials, each but the last from \[-1, 1\] to itself, the first by way of an interval.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chain {
    pub(super) series: Vec<Series>,
    pub(super) polynomials: Vec<Polynomial<Complex64>>,
    /// Half the width of the interval.
    half: f64,
    /// For smaller and for larger errors.
    gains: Vec<Found>,
}

/// By what each of some errors is multiplied at most.
type Gains = Vec<f64>;

/// The gains of a chain.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    /// How far the arguments of each polynomial may be off.
    limits: Vec<f64>,
    /// By what the argument's error, and after it what each polynomial rounds, comes back in the argument of each and in the
    /// result.
    anywhere: Vec<Gains>,
    /// The same in the result, outside the gap.
    outside: Gains,
}

/// What a [`Chain`] made.
pub(super) struct Made<C> {
    pub(super) value: C,
    /// How far the message is from what the polynomials make of the argument's, outside the gap,
    pub(super) outside: f64,
    /// and anywhere.
    pub(super) anywhere: f64,
}

impl Chain {
    /// Of arguments in `interval`, more than `gap` (relative to half its width) from its middle in all that counts.
    pub(super) fn new(series: Vec<Series>, interval: (f64, f64), gap: f64) -> Result<Self> {
        let ends = |i: usize| if i == 0 { interval } else { (-1.0, 1.0) };
        let polynomials = series.iter().enumerate();
        let polynomials = polynomials.map(|(i, s)| Polynomial::chebyshev(s.0.iter().copied(), ends(i)));
        let polynomials = polynomials.collect::<Result<_>>()?;
        let gains = GROWTHS.map(|growth| Found::new(&series, growth, gap)).into();
        Ok(Self { polynomials, half: 0.5 * (interval.1 - interval.0), gains, series })
    }

    pub(super) fn degrees(&self) -> Vec<usize> {
        self.series.iter().map(Series::degree).collect()
    }

    /// Levels, products, key switches.
    pub(super) fn plan<A: Arithmetic<Scalar = Complex64>>(&self) -> [usize; 3] {
        let plans: Vec<_> = self.polynomials.iter().map(Polynomial::plan::<A>).collect();
        let sum = |of: fn(&PolynomialPlan) -> usize| plans.iter().map(of).sum();
        [sum(|p| p.depth), sum(|p| p.products), sum(|p| p.key_switches)]
    }

    /// The values on the slots of x, which lie on the interval; no value of the last polynomial is larger than `most`.
    ///
    /// # Errors
    /// [`Error::Rough`] where an argument may be off too much, or as [`Polynomial::evaluate`].
    pub(super) fn evaluate<A: Arithmetic<Scalar = Complex64>>(
        &self,
        a: &A,
        function: &'static str,
        x: &A::Ciphertext,
        most: f64,
    ) -> Result<Made<A::Ciphertext>> {
        let (mut argument, mut errors, last) = (None, Vec::new(), self.polynomials.len());
        let mut valid: Vec<&Found> = self.gains.iter().collect();
        for (i, polynomial) in self.polynomials.iter().enumerate() {
            let depth = polynomial.plan::<A>().depth;
            let x = a.renewed(argument.as_ref().unwrap_or(x), a.lowest_level() + depth)?;
            let (exact, error) = a.exactly(x)?;
            errors.push(if i == 0 { error / self.half } else { error });
            let near = |found: &&Found| found.off(i, &errors) <= found.limits[i];
            if let Some(last) = valid.last().filter(|_| !valid.iter().any(near)) {
                return Err(Error::Rough { function, off: last.off(i, &errors), most: last.limits[i] });
            }
            valid.retain(near);
            let least = |i: usize| valid.iter().map(|found| found.off(i, &errors)).fold(f64::INFINITY, f64::min);
            let (width, beyond) = (least(i), least(i + 1));
            let made = polynomial.evaluate_near(a, &exact, width)?;
            argument = Some(a.bounded(made, if i + 1 < last { 1.0 } else { most } + beyond)?);
        }
        let least = |of: &dyn Fn(&Found) -> f64| valid.iter().map(|found| of(found)).fold(f64::INFINITY, f64::min);
        let (outside, anywhere) = (least(&|f| total(&f.outside, &errors)), least(&|f| f.off(last, &errors)));
        let value = argument.map_or_else(|| a.duplicate(x), Ok)?;
        Ok(Made { value, outside, anywhere })
    }
}

/// One polynomial and its derivatives.
struct Stage<'a> {
    series: &'a Series,
    slope: Series,
    bend: Series,
    /// The largest third derivative where arguments may be.
    third: f64,
    limit: f64,
}

impl<'a> Stage<'a> {
    fn new(series: &'a Series, growth: f64) -> Self {
        let slope = series.derivative();
        let bend = slope.derivative();
        let range = bend.derivative().range(-1.0, 1.0, 0.01);
        let third = range.low.abs().max(range.high.abs()) * growth.exp2() * ROOM;
        let growth = growth * std::f64::consts::LN_2 / series.degree().max(1) as f64;
        Self { series, slope, bend, third, limit: 0.499 * growth * growth }
    }

    /// The largest slope no further from u than `distance`.
    fn steepest(&self, u: f64, distance: f64) -> f64 {
        let bend = self.bend.value(u).abs() + distance * self.third;
        (self.slope.value(u).abs() + distance * bend) * ROOM
    }
}

/// A part of the interval, by how much its gains are larger than they need to be known.
struct Cell {
    excess: f64,
    low: f64,
    high: f64,
    own: Vec<Gains>,
    outside: bool,
}

impl Ord for Cell {
    fn cmp(&self, other: &Self) -> Ordering {
        self.excess.total_cmp(&other.excess)
    }
}

impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Cell {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Cell {}

impl Found {
    fn new(series: &[Series], growth: f64, gap: f64) -> Self {
        let stages: Vec<Stage<'_>> = series.iter().map(|s| Stage::new(s, growth)).collect();
        // What the argument of a polynomial was rounded by last comes as it is.
        let none = |i: usize| (0..=i).map(|j| if i == j { 1.0 } else { 0.0 }).collect::<Gains>();
        let limits = stages.iter().map(|s| s.limit).collect();
        let anywhere = (0..=stages.len()).map(none).collect();
        let mut least = Self { limits, anywhere, outside: vec![0.0; stages.len()] };
        let mut found = least.clone();
        for i in 0..=POINTS {
            // Dense at the ends, and in steps of one ratio towards 0.
            let part = f64::from(i) / f64::from(POINTS);
            let point = gap.max(1e-3).powf(part);
            for u in [(std::f64::consts::PI * part).cos(), point, -point] {
                least.raise(&gains(&stages, u, 0.0), u.abs() >= gap);
            }
        }
        let mut cells = BinaryHeap::new();
        for halving in 0..=MOST_HALVINGS {
            let halves = match cells.pop() {
                Some(Cell { low, high, .. }) => [(low, 0.5 * (low + high)), (0.5 * (low + high), high)],
                None if halving == 0 => [(-1.0, 0.0), (0.0, 1.0)],
                None => break,
            };
            for (low, high) in halves {
                let (middle, outside) = (0.5 * (low + high), low.abs().max(high.abs()) >= gap);
                least.raise(&gains(&stages, middle, 0.0), middle.abs() >= gap);
                let own = gains(&stages, middle, 0.5 * (high - low) * ROOM + f64::EPSILON);
                let excess = least.excess(&own, outside);
                if excess > 1.0 {
                    cells.push(Cell { excess, low, high, own, outside });
                } else {
                    found.raise(&own, outside);
                }
            }
        }
        cells.iter().for_each(|cell| found.raise(&cell.own, cell.outside));
        found
    }

    /// By how many times gains are larger than they need to be known.
    fn excess(&self, own: &[Gains], outside: bool) -> f64 {
        let times = |own: &Gains, least: &Gains| {
            let each = own.iter().zip(least).map(|(own, least)| own / (least * FINE).max(least + LEAST));
            each.fold(0.0, f64::max)
        };
        let anywhere = own.iter().zip(&self.anywhere[1..]).map(|(own, least)| times(own, least)).fold(0.0, f64::max);
        own.last().filter(|_| outside).map_or(anywhere, |own| anywhere.max(times(own, &self.outside)))
    }

    /// How far the argument of polynomial i is off, or the result, anywhere.
    fn off(&self, i: usize, errors: &[f64]) -> f64 {
        total(&self.anywhere[i], errors)
    }

    fn raise(&mut self, own: &[Gains], outside: bool) {
        let larger = |found: &mut Gains, own: &Gains| found.iter_mut().zip(own).for_each(|(f, g)| *f = f.max(*g));
        self.anywhere.iter_mut().skip(1).zip(own).for_each(|(found, own)| larger(found, own));
        if let Some(last) = own.last().filter(|_| outside) {
            larger(&mut self.outside, last);
        }
    }
}

/// What errors come to.
fn total(gains: &Gains, errors: &[f64]) -> f64 {
    gains.iter().zip(errors).map(|(g, e)| g * e).sum::<f64>() * ROOM
}

/// The gains after each polynomial of arguments no further than `radius` from u.
fn gains(stages: &[Stage<'_>], mut u: f64, mut radius: f64) -> Vec<Gains> {
    let mut gains = Vec::with_capacity(stages.len());
    let mut own = Vec::with_capacity(stages.len());
    for stage in stages {
        own.push(1.0);
        let slope = stage.steepest(u, radius + stage.limit);
        own.iter_mut().for_each(|g| *g *= slope);
        gains.push(own.clone());
        (u, radius) = (stage.series.value(u), (radius * slope + stage.series.rounding()) * ROOM);
    }
    gains
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuits::functions::composite::Composite;

    /// The value at a complex argument, real and imaginary part.
    fn complex(series: &Series, [re, im]: [f64; 2]) -> [f64; 2] {
        let times_u = |z: [f64; 2]| [re * z[0] - im * z[1], re * z[1] + im * z[0]];
        let (mut next, mut after) = ([0.0; 2], [0.0; 2]);
        for &c in series.0.iter().skip(1).rev() {
            let product = times_u(next);
            (next, after) = ([c + 2.0 * product[0] - after[0], 2.0 * product[1] - after[1]], next);
        }
        let product = times_u(next);
        [series.0[0] + product[0] - after[0], product[1] - after[1]]
    }

    #[test]
    fn errors_come_back_as_gains_say_and_not_by_much_less() {
        let mut state = 5u64;
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / 2f64.powi(52) - 1.0
        };
        for (gap, error) in [(2f64.powi(-7), 2f64.powi(-10)), (0.1, 1e-3), (0.4, 0.25)] {
            let chain = Chain::new(Composite::new(gap, error).stages, (-1.0, 1.0), gap).unwrap();
            let (mut nearest, mut nearest_outside) = (0.0f64, 0.0f64);
            for found in &chain.gains {
                for i in 0..100_000 {
                    let u = [word(), gap * word(), gap + 1e-3 * (1.0 + word()), 1.0 - 1e-4 * (1.0 + word())][i % 4];
                    // Now the argument's error is most of what is off, now what a polynomial rounds.
                    let from = i / 4 % chain.series.len();
                    let size = |j: usize| if j == from { 1.0 } else { 1e-3 };
                    let share = (0..=from)
                        .map(|j| found.limits[from] / found.anywhere[from][j])
                        .chain((from..chain.series.len()).map(|k| found.limits[k] / found.anywhere[k][from]))
                        .fold(f64::INFINITY, f64::min);
                    let errors: Vec<f64> = (0..chain.series.len()).map(|j| 0.2 * share * size(j)).collect();
                    if (0..chain.series.len()).any(|j| found.off(j, &errors) > found.limits[j]) {
                        continue;
                    }
                    let (mut exact, mut off) = (u, [u, 0.0]);
                    for (series, error) in chain.series.iter().zip(&errors) {
                        let angle = std::f64::consts::PI * word();
                        off = complex(series, [off[0] + error * angle.cos(), off[1] + error * angle.sin()]);
                        exact = series.value(exact);
                    }
                    let distance = (off[0] - exact).hypot(off[1]);
                    let anywhere = distance / found.off(chain.series.len(), &errors);
                    assert!(anywhere <= 1.0, "{u}: {distance} of {found:?}");
                    nearest = nearest.max(anywhere);
                    if u.abs() >= gap {
                        let outside = distance / total(&found.outside, &errors);
                        assert!(outside <= 1.0, "{u} outside {gap}: {distance} of {found:?}");
                        nearest_outside = nearest_outside.max(outside);
                    }
                }
            }
            assert!(nearest > 0.6 && nearest_outside > 0.5, "{gap}: {nearest} {nearest_outside}");
        }
    }
}
