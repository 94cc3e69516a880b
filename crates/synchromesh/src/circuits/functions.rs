//! Functions of real numbers in CKKS, and of integers in BFV and BGV: what stands in their place on a declared interval, how far it is off at most, and
//! what it takes.
//!
//! A [`Function`] is data: a name, an interval, a tolerance. [`Function::approximate`] finds polynomials of the least depth
//! within the tolerance, proves how far they are from the function at most, and says what they take; nothing encrypted is
//! needed for that. [`Approximation::evaluate`] runs them and enters the bound into the certificate of the result, which
//! then speaks of the function itself.
//!
//! An argument is refused whose declared bound exceeds the interval. That its slots are real, and not below the lower end,
//! is the caller's word. Functions that jump (sign, step, compare) are undecided within a declared distance of the jump:
//! there the result is, but for what is rounded, between the two values up to the tolerance, and nothing else is certified.
//! What an argument is off by counts as much as what stands in the function's place is steep.
//!
//! In BFV and BGV functions of integers are exact, by their values on a declared range: [`Table`].

mod analytic;
mod chain;
mod composite;
mod interval;
mod newton;
mod remez;
mod series;
mod table;

use serde::{Deserialize, Serialize};

use super::{Arithmetic, Coefficient, Combination, Number};
use crate::embedding::Complex64;
use crate::error::{Error, Result};
use analytic::Analytic;
use chain::Chain;
use composite::Composite;
use newton::Newton;
pub use table::Table;

/// Largest degree of one polynomial for 1 / x and 1 / sqrt x; wider intervals take steps.
const MOST_DIRECT: usize = 63;

/// Tolerances that are tried for one that is reached.
const MOST_TRIES: usize = 6;

/// The smallest gap, relative to the interval: 2^-24.
const LEAST_GAP: f64 = 1.0 / 16_777_216.0;

/// A function by name.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FunctionName {
    /// e^x
    Exp,
    /// The natural logarithm.
    Log,
    /// 1 / (1 + e^-x)
    Sigmoid,
    /// tanh x
    Tanh,
    /// x times the normal distribution's probability below x.
    Gelu,
    /// The square root.
    Sqrt,
    /// 1 / sqrt x
    Rsqrt,
    /// 1 / x
    Inverse,
    /// -1 below 0, 1 above.
    Sign,
    /// 0 below 0, 1 above.
    Step,
    /// |x|
    Abs,
    /// The larger of x and 0.
    Relu,
    /// x, or the end of this range that is nearer to it.
    Clip {
        /// The range's lower end.
        low: f64,
        /// Its upper end.
        high: f64,
    },
    /// Of two arguments: 0 where x < y, 1 where x > y.
    Compare,
    /// The larger of two arguments.
    Max,
    /// The smaller of two arguments.
    Min,
}

/// A function to be approximated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Which.
    pub name: FunctionName,
    /// Where its arguments are.
    pub interval: (f64, f64),
    /// How far the result may be off.
    pub tolerance: f64,
    /// Sign, step and compare: arguments (or differences) of at most this absolute value are undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
}

/// What an approximation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FunctionPlan {
    /// Levels.
    pub depth: usize,
    /// Products of ciphertexts.
    pub products: usize,
    /// Relinearisations.
    pub key_switches: usize,
}

/// Polynomials in the place of a function, with a proved bound on their distance.
#[derive(Debug, Clone, PartialEq)]
pub struct Approximation {
    function: Function,
    circuit: Circuit,
    error: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Circuit {
    /// One polynomial.
    Direct(Chain),
    /// A start and steps; times the argument for the square root.
    Steps { newton: Newton, times: bool },
    /// factor sign(d) + constant; times the argument for all that bend and do not jump.
    Signs(Signs),
}

/// `factor` times the sign, plus `constant`, of arguments of at most `reach`.
#[derive(Debug, Clone, PartialEq)]
struct Signs {
    reach: f64,
    chain: Chain,
    /// The gap, relative to the reach.
    gap: f64,
    /// No value of the last polynomial is larger.
    most: f64,
}

impl FunctionName {
    /// Its name in expressions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exp => "exp",
            Self::Log => "log",
            Self::Sigmoid => "sigmoid",
            Self::Tanh => "tanh",
            Self::Gelu => "gelu",
            Self::Sqrt => "sqrt",
            Self::Rsqrt => "rsqrt",
            Self::Inverse => "inverse",
            Self::Sign => "sign",
            Self::Step => "step",
            Self::Abs => "abs",
            Self::Relu => "relu",
            Self::Clip { .. } => "clip",
            Self::Compare => "compare",
            Self::Max => "max",
            Self::Min => "min",
        }
    }

    /// How many arguments it has.
    #[must_use]
    pub const fn arguments(self) -> usize {
        match self {
            Self::Compare | Self::Max | Self::Min => 2,
            _ => 1,
        }
    }

    /// Whether it jumps, and has a gap.
    #[must_use]
    pub const fn jumps(self) -> bool {
        matches!(self, Self::Sign | Self::Step | Self::Compare)
    }

    const fn analytic(self) -> Option<Analytic> {
        Some(match self {
            Self::Exp => Analytic::Exp,
            Self::Log => Analytic::Log,
            Self::Sigmoid => Analytic::Sigmoid,
            Self::Tanh => Analytic::Tanh,
            Self::Gelu => Analytic::Gelu,
            Self::Sqrt => Analytic::Sqrt,
            Self::Rsqrt => Analytic::Rsqrt,
            Self::Inverse => Analytic::Inverse,
            _ => return None,
        })
    }

    /// The value in doubles; of fewer arguments than it has, as if the others were 0.
    #[must_use]
    pub fn value(self, x: &[f64]) -> f64 {
        let [x, y] = [0, 1].map(|i| x.get(i).copied().unwrap_or(0.0));
        let step = |d: f64| {
            if d > 0.0 {
                1.0
            } else if d < 0.0 {
                0.0
            } else {
                0.5
            }
        };
        match self {
            Self::Sign => 2.0 * step(x) - 1.0,
            Self::Step => step(x),
            Self::Compare => step(x - y),
            Self::Abs => x.abs(),
            Self::Relu => x.max(0.0),
            Self::Clip { low, high } => x.max(low).min(high),
            Self::Max => x.max(y),
            Self::Min => x.min(y),
            _ => self.analytic().map_or(f64::NAN, |f| f.value(x)),
        }
    }
}

impl Function {
    /// A function on an interval to a tolerance; one that jumps with a gap of the tolerance times the interval's reach.
    #[must_use]
    pub const fn new(name: FunctionName, interval: (f64, f64), tolerance: f64) -> Self {
        Self { name, interval, tolerance, gap: None }
    }

    /// The same with arguments up to this distance from a jump undecided.
    #[must_use]
    pub const fn with_gap(self, gap: f64) -> Self {
        Self { gap: Some(gap), ..self }
    }

    /// The polynomials in its place, proved.
    ///
    /// # Errors
    /// [`Error::Argument`] unless the interval is one, tolerance and gap are positive, and the range of a clip is one;
    /// [`Error::Singular`] where the function is infinite, or has no derivative, on the interval; [`Error::Tolerance`] for
    /// one that is not reached, with the nearest that is.
    pub fn approximate(&self) -> Result<Approximation> {
        self.require_valid()?;
        let (circuit, error) = match self.name.analytic() {
            Some(analytic) => self.smooth(analytic)?,
            None => self.signs()?,
        };
        Ok(Approximation { function: *self, circuit, error })
    }

    fn require_valid(&self) -> Result<()> {
        let (name, (low, high)) = (self.name.name(), self.interval);
        if !(low.is_finite() && high.is_finite() && low < high && (high - low).is_finite()) {
            return Err(Error::argument(format!("{name} on {low} to {high}, which is no interval")));
        }
        if !(self.tolerance.is_finite() && self.tolerance > 0.0) {
            let tolerance = self.tolerance;
            return Err(Error::argument(format!("{name} to a tolerance of {tolerance}: it must be a positive number")));
        }
        if self.gap.is_some() && !self.name.jumps() {
            return Err(Error::argument(format!("{name} does not jump: it has no gap")));
        }
        let (least, most) = (LEAST_GAP * self.reach(), self.reach());
        if let Some(gap) = self.gap.filter(|gap| !(*gap >= least && *gap < most)) {
            return Err(Error::argument(format!("{name} with a gap of {gap}: it must be from {least:e} to {most}")));
        }
        if let FunctionName::Clip { low: from, high: to } = self.name
            && !(from.is_finite() && to.is_finite() && from < to && low <= to && from <= high)
        {
            let message =
                format!("clip to {from} to {to} on {low} to {high}: the range must be one that the interval meets");
            return Err(Error::argument(message));
        }
        if self.name.analytic().is_some_and(|f| f.singular_on(self.interval)) {
            return Err(Error::Singular { function: name, at: 0.0, low, high });
        }
        Ok(())
    }

    /// The largest absolute value whose sign is taken.
    fn reach(&self) -> f64 {
        let (low, high) = self.interval;
        match self.name {
            FunctionName::Compare | FunctionName::Max | FunctionName::Min => high - low,
            FunctionName::Clip { low: from, high: to } => {
                [low - from, high - from, low - to, high - to].iter().map(|d| d.abs()).fold(0.0, f64::max)
            }
            _ => low.abs().max(high.abs()),
        }
    }

    fn smooth(&self, analytic: Analytic) -> Result<(Circuit, f64)> {
        let (low, high) = self.interval;
        let fit = analytic.fit(self.interval, self.tolerance);
        let reached = fit.error <= self.tolerance;
        let steps = match analytic {
            _ if reached && fit.series.degree() <= MOST_DIRECT => None,
            Analytic::Inverse => Newton::inverse(self.interval, self.tolerance)?,
            Analytic::Rsqrt => Newton::rsqrt(self.interval, self.tolerance)?,
            Analytic::Sqrt => Newton::rsqrt((low, high), self.tolerance / high)?,
            _ => None,
        };
        if let Some(newton) = steps {
            let times = analytic == Analytic::Sqrt;
            let error = newton.error * if times { high } else { 1.0 };
            return Ok((Circuit::Steps { newton, times }, error));
        }
        if !reached {
            return Err(self.unreached(self.nearest(analytic, fit.error)));
        }
        Ok((Circuit::Direct(Chain::new(vec![fit.series], self.interval, 0.0)?), fit.error))
    }

    /// A tolerance that is reached, for one that is not.
    fn nearest(&self, analytic: Analytic, mut tolerance: f64) -> f64 {
        for _ in 0..MOST_TRIES {
            tolerance *= 1.001;
            match analytic.fit(self.interval, tolerance).error {
                error if error <= tolerance => return tolerance,
                error => tolerance = error.max(2.0 * tolerance),
            }
        }
        f64::INFINITY
    }

    /// Where the sign's factor and constant are: one half of a sign for all but the sign and the absolute value.
    const fn weights(&self) -> (f64, f64) {
        match self.name {
            FunctionName::Step | FunctionName::Compare | FunctionName::Relu => (0.5, 0.5),
            FunctionName::Max | FunctionName::Clip { .. } => (0.5, 0.0),
            FunctionName::Min => (-0.5, 0.0),
            _ => (1.0, 0.0),
        }
    }

    fn signs(&self) -> Result<(Circuit, f64)> {
        let (reach, (factor, constant)) = (self.reach(), self.weights());
        // What the result is off by, for a sign that is off by e outside the gap: as the sign, or times the argument.
        let terms = if matches!(self.name, FunctionName::Clip { .. }) { 2.0 } else { 1.0 };
        let gain = factor.abs() * terms * if self.name.jumps() { 1.0 } else { reach };
        let aim = self.tolerance / gain;
        // |x| is off by |x| (1 - s) inside the gap, 0 <= s: at most the gap's width.
        let gap = if self.name.jumps() { self.gap.map_or(aim.min(0.5), |gap| gap / reach) } else { aim.min(0.5) };
        if gap < LEAST_GAP {
            return Err(self.unreached(gain * LEAST_GAP * 1.01));
        }
        let rounding = 64.0 * f64::EPSILON;
        // The map of the interval is computed in doubles.
        let composite = Composite::new(gap * (1.0 - 1e-9), aim - rounding);
        let outside = composite.error + rounding;
        let inside = if self.name.jumps() { 0.0 } else { gap * (composite.most - 1.0).max(1.0) };
        let error = gain * outside.max(inside) * (1.0 + 1e-9);
        if error > self.tolerance * (1.0 + 1e-6) {
            return Err(self.unreached(error));
        }
        let mut series = composite.stages;
        if let Some(last) = series.last_mut() {
            last.0.iter_mut().for_each(|c| *c *= factor);
            last.0[0] += constant;
        }
        let most = (factor.abs() * composite.most + constant) * (1.0 + 1e-9);
        let chain = Chain::new(series, (-reach, reach), gap * (1.0 - 1e-9))?;
        Ok((Circuit::Signs(Signs { reach, chain, gap, most }), error))
    }

    fn unreached(&self, nearest: f64) -> Error {
        let (low, high) = self.interval;
        Error::Tolerance { function: self.name.name(), tolerance: self.tolerance, nearest: nearest * 1.001, low, high }
    }
}

impl Signs {
    fn value(&self, x: f64) -> f64 {
        self.chain.series.iter().fold((x / self.reach).clamp(-1.0, 1.0), |u, series| series.value(u))
    }

    /// The polynomials' values, as far as certified outside the gap; inside it they may be complex, and further from real
    /// ones by what is given beside.
    fn evaluate<A: Arithmetic<Scalar = Complex64>>(
        &self,
        a: &A,
        name: FunctionName,
        x: &A::Ciphertext,
    ) -> Result<(A::Ciphertext, f64)> {
        let made = self.chain.evaluate(a, name.name(), x, self.most)?;
        let value = if made.outside > 0.0 { a.deviated(made.value, made.outside)? } else { made.value };
        Ok((value, made.anywhere))
    }
}

impl Approximation {
    /// The function it stands for.
    #[must_use]
    pub const fn function(&self) -> &Function {
        &self.function
    }

    /// How far it is from the function at most, outside the gap of one that jumps.
    #[must_use]
    pub const fn error(&self) -> f64 {
        self.error
    }

    /// Arguments (or differences) of at most this absolute value are undecided; 0 for functions that do not jump.
    #[must_use]
    pub fn gap(&self) -> f64 {
        let tolerance = self.function.tolerance / self.function.weights().0.abs();
        let default = || tolerance.min(0.5) * self.function.reach();
        if self.function.name.jumps() { self.function.gap.unwrap_or_else(default) } else { 0.0 }
    }

    /// The degrees of its polynomials, in the order of their evaluation.
    #[must_use]
    pub fn degrees(&self) -> Vec<usize> {
        match &self.circuit {
            Circuit::Direct(chain) => chain.degrees(),
            Circuit::Steps { newton, .. } => newton.degrees(),
            Circuit::Signs(signs) => signs.chain.degrees(),
        }
    }

    /// What arithmetic A takes for it.
    #[must_use]
    pub fn plan<A: Arithmetic<Scalar = Complex64>>(&self) -> FunctionPlan {
        let [depth, products, key_switches] = match &self.circuit {
            Circuit::Direct(chain) => chain.plan::<A>(),
            Circuit::Steps { newton, times } => newton.plan::<A>().map(|n| n + usize::from(*times)),
            Circuit::Signs(signs) => {
                let [depth, products, switches] = signs.chain.plan::<A>();
                match self.function.name {
                    FunctionName::Clip { .. } => [depth + 1, 2 * products + 2, 2 * switches + 1],
                    name => [depth, products, switches].map(|n| n + usize::from(!name.jumps())),
                }
            }
        };
        FunctionPlan { depth, products, key_switches }
    }

    /// What is computed, in doubles, of as many numbers as the function has arguments.
    #[must_use]
    pub fn value(&self, x: &[f64]) -> f64 {
        let [x, y] = [0, 1].map(|i| x.get(i).copied().unwrap_or(0.0));
        match (&self.circuit, self.function.name) {
            (Circuit::Direct(chain), _) => {
                let (low, high) = self.function.interval;
                chain.series[0].value(((2.0 * x - low - high) / (high - low)).clamp(-1.0, 1.0))
            }
            (Circuit::Steps { newton, times }, _) => newton.value(x) * if *times { x } else { 1.0 },
            (Circuit::Signs(signs), FunctionName::Abs | FunctionName::Relu) => x * signs.value(x),
            (Circuit::Signs(signs), FunctionName::Max | FunctionName::Min) => {
                0.5 * (x + y) + (x - y) * signs.value(x - y)
            }
            (Circuit::Signs(signs), FunctionName::Compare) => signs.value(x - y),
            (Circuit::Signs(signs), FunctionName::Clip { low, high }) => {
                0.5 * (low + high) + (x - low) * signs.value(x - low) - (x - high) * signs.value(x - high)
            }
            (Circuit::Signs(signs), _) => signs.value(x),
        }
    }

    /// The function of every slot of x, or of both operands; the certificate of the result counts from the function's values.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of ciphertexts than the function has arguments, [`Error::Interval`] when the
    /// declared bound of one exceeds the interval, [`Error::Rough`] when one may be off by too much, [`synchromesh_rlwe::Error::Level`] when fewer levels are left than
    /// [`FunctionPlan::depth`], or as [`Arithmetic::combine`].
    pub fn evaluate<A: Arithmetic<Scalar = Complex64>>(&self, a: &A, x: &[&A::Ciphertext]) -> Result<A::Ciphertext> {
        let (name, count) = (self.function.name, self.function.name.arguments());
        if x.len() != count {
            return Err(Error::shape(format!("{} of {} ciphertexts: it takes {count}", name.name(), x.len())));
        }
        let (low, high) = self.function.interval;
        let have = x.iter().map(|x| a.bound(x)).fold(0.0, f64::max);
        if have > low.abs().max(high.abs()) * (1.0 + 1e-9) {
            return Err(Error::Interval { function: name.name(), have, low, high });
        }
        let (value, off, beyond) = match &self.circuit {
            Circuit::Direct(chain) => {
                let made = chain.evaluate(a, name.name(), x[0], self.largest())?;
                (made.value, made.outside, 0.0)
            }
            Circuit::Steps { newton, times: false } => (newton.evaluate(a, x[0])?, 0.0, 0.0),
            Circuit::Steps { newton, times: true } => (a.mul(x[0], &newton.evaluate(a, x[0])?)?, 0.0, 0.0),
            Circuit::Signs(signs) => self.by_signs(a, signs, x)?,
        };
        a.bounded(a.deviated(value, self.error + off)?, self.largest() + beyond)
    }

    /// No value that is computed is larger.
    fn largest(&self) -> f64 {
        let ((low, high), name) = (self.function.interval, self.function.name);
        let ends = [name.value(&[low, low]), name.value(&[high, high])].map(f64::abs);
        let most = match (&self.circuit, name) {
            (Circuit::Signs(signs), name) if name.jumps() => return signs.most,
            (_, FunctionName::Clip { low, high }) => low.abs().max(high.abs()),
            // Below 0 it comes to no more than 0.17; the others do not fall, or are largest at one of the ends.
            (_, FunctionName::Gelu) => ends[0].max(ends[1]).max(0.171),
            (_, FunctionName::Min | FunctionName::Max | FunctionName::Abs | FunctionName::Relu) => {
                low.abs().max(high.abs())
            }
            _ => ends[0].max(ends[1]),
        };
        (most + self.error) * (1.0 + 1e-9)
    }

    /// The result, how far it may be off inside the gap, and beyond its values there.
    fn by_signs<A: Arithmetic<Scalar = Complex64>>(
        &self,
        a: &A,
        signs: &Signs,
        x: &[&A::Ciphertext],
    ) -> Result<(A::Ciphertext, f64, f64)> {
        let half = Coefficient::All(Complex64::new(0.5, 0.0));
        let one = Coefficient::All(Complex64::integer(1));
        let within = |d: A::Ciphertext| a.bounded(d, signs.reach);
        // Times an argument inside the gap.
        let small = |beyond: f64| beyond * signs.gap * signs.reach * (1.0 + 1e-6);
        let sign_of = |x: &A::Ciphertext| signs.evaluate(a, self.function.name, x);
        match self.function.name {
            FunctionName::Abs | FunctionName::Relu => {
                let (sign, beyond) = sign_of(x[0])?;
                Ok((a.mul(x[0], &sign)?, small(beyond), 0.0))
            }
            FunctionName::Compare => {
                let (sign, beyond) = sign_of(&within(a.sub(x[0], x[1])?)?)?;
                Ok((sign, 0.0, beyond))
            }
            FunctionName::Max | FunctionName::Min => {
                let difference = within(a.sub(x[0], x[1])?)?;
                let (sign, beyond) = sign_of(&difference)?;
                let weights = vec![(x[0], &half), (x[1], &half)];
                let value =
                    a.combine(&Combination { products: vec![[&difference, &sign]], weights, constant: None })?;
                Ok((value, small(beyond), 0.0))
            }
            FunctionName::Clip { low, high } => {
                let shifted = |by: f64| {
                    let by = Coefficient::All(Complex64::new(by, 0.0));
                    within(a.combine(&Combination {
                        products: Vec::new(),
                        weights: vec![(x[0], &one)],
                        constant: Some(&by),
                    })?)
                };
                let (first, second) = (shifted(-low)?, shifted(-high)?);
                let ((left, beyond), (right, also)) = (sign_of(&first)?, sign_of(&second)?);
                let middle = Coefficient::All(Complex64::new(0.5 * (low + high), 0.0));
                let right = a.neg(&right)?;
                let products = vec![[&first, &left], [&second, &right]];
                let value = a.combine(&Combination { products, weights: Vec::new(), constant: Some(&middle) })?;
                Ok((value, small(beyond) + small(also), 0.0))
            }
            _ => {
                let (sign, beyond) = sign_of(x[0])?;
                Ok((sign, 0.0, beyond))
            }
        }
    }
}
