//! The average case: the variance of an error's coefficients over keys and encryptions, for messages that are uniform.
//!
//! Given the key, the error at a root zeta behaves like a complex Gaussian whose variance is a polynomial in |s(zeta)|^2,
//! since roundings and fresh errors meet the secret once, twice and so on. Over keys |s(zeta)|^2 / (2N/3) is
//! exponential, with mean 1 and moments k!. So it is the coefficients of that polynomial that are tracked: products of
//! two errors under one key double where both meet s, which independent variances would miss.

use crate::noise::log2_add;
use crate::spectrum;

/// Powers of |s(zeta)|^2 that are kept; more are counted at the highest, with the variance they have.
const POWERS: usize = 8;

/// k! for k < POWERS.
const FACTORIALS: [f64; POWERS] = [1.0, 1.0, 2.0, 6.0, 24.0, 120.0, 720.0, 5040.0];

/// An error's variance and, for CKKS, the message's, as log2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Average {
    /// Variance of a coefficient for each power of |s(zeta)|^2 over its mean, the moment k! not counted.
    powers: [f64; POWERS],
    /// Variance of a coefficient of the message in the phase, where it multiplies errors.
    pub message: f64,
}

impl Average {
    /// No error.
    pub const ZERO: Self = Self { powers: [f64::NEG_INFINITY; POWERS], message: f64::NEG_INFINITY };

    /// Coefficients of variance 2^`log2` that meet the secret `power` times.
    #[must_use]
    pub fn of(power: usize, log2: f64) -> Self {
        let mut out = Self::ZERO;
        out.gain(power, log2);
        out
    }

    fn gain(&mut self, power: usize, log2: f64) {
        let kept = power.min(POWERS - 1);
        let more: f64 = (kept + 1..=power).map(|k| (k as f64).log2()).sum();
        self.powers[kept] = log2_add(self.powers[kept], log2 + more);
    }

    /// The same with a message of variance 2^`log2`.
    #[must_use]
    pub const fn with_message(self, log2: f64) -> Self {
        Self { message: log2, ..self }
    }

    /// log2 of the standard deviation of the error's coefficients.
    #[must_use]
    pub fn log2_sigma(&self) -> f64 {
        let weighted = self.powers.iter().zip(FACTORIALS).map(|(v, moment)| v + moment.log2());
        weighted.fold(f64::NEG_INFINITY, log2_add) / 2.0
    }

    /// log2 of what the largest of the error's values at the N/2 pairs of roots, over sqrt(N), exceeds with probability
    /// 2^-`log2_failure` over keys that pass for even, errors and uniform messages: given w = |s(zeta)|^2 over its mean,
    /// a value is a complex Gaussian, of the variance that w makes.
    #[must_use]
    pub fn log2_largest_at_roots(&self, log_n: u32, log2_failure: u32) -> f64 {
        const STEPS: u32 = 400;
        let largest = spectrum::largest(log_n);
        let step = largest / f64::from(STEPS);
        let unit = self.log2_sigma();
        let variance = |w: f64| {
            let power = |(k, v): (usize, &f64)| (v - 2.0 * unit).exp2() * w.powi(k as i32);
            self.powers.iter().enumerate().map(power).sum::<f64>()
        };
        let points: Vec<(f64, f64)> =
            (0..STEPS).map(|i| (f64::from(i) + 0.5) * step).map(|w| ((-w).exp() * step, variance(w))).collect();
        let share: f64 = points.iter().map(|(weight, _)| weight).sum();
        let exceeds = |log2: f64| {
            let square = (2.0 * log2).exp2();
            let at: f64 = points.iter().map(|(weight, v)| weight * (-square / v).exp()).sum();
            f64::from(log_n - 1) + (at / share).log2() > -f64::from(log2_failure)
        };
        let halve = |(low, high): (f64, f64), _| {
            let middle = 0.5 * (low + high);
            if exceeds(middle) { (middle, high) } else { (low, middle) }
        };
        unit + (0..40).fold((-1.0, 12.0), halve).0
    }

    fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let mut powers = self.powers;
        powers.iter_mut().zip(other.powers).for_each(|(x, y)| *x = f(*x, y));
        Self { powers, message: f(self.message, other.message) }
    }

    /// The sum with an independent error.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.zip(other, log2_add)
    }

    /// The sum with an error that goes with it: standard deviations add.
    #[must_use]
    pub fn plus_same(&self, other: &Self) -> Self {
        self.zip(other, |x, y| 2.0 * log2_add(x / 2.0, y / 2.0))
    }

    /// Both multiplied by 2^`log2`.
    #[must_use]
    pub fn times(&self, log2: f64) -> Self {
        // An absent part stays absent for a factor of infinite size.
        let scale = |x: f64| if x == f64::NEG_INFINITY { x } else { x + 2.0 * log2 };
        self.zip(self, |x, _| scale(x))
    }

    /// The error, its message left out.
    #[must_use]
    pub const fn error(self) -> Self {
        self.with_message(f64::NEG_INFINITY)
    }

    /// The error times an independent polynomial whose coefficients have variance 2^`log2`.
    #[must_use]
    pub fn times_random(&self, log_n: u32, log2: f64) -> Self {
        self.times((log2 + f64::from(log_n)) / 2.0)
    }

    /// The product of two errors; of one with itself, it has twice the variance.
    #[must_use]
    pub fn product(&self, other: &Self, log_n: u32, same: bool) -> Self {
        let mut out = Self::ZERO;
        let common = f64::from(log_n) + f64::from(u8::from(same));
        for (i, x) in self.powers.iter().enumerate() {
            for (j, y) in other.powers.iter().enumerate() {
                if *x > f64::NEG_INFINITY && *y > f64::NEG_INFINITY {
                    out.gain(i + j, x + y + common);
                }
            }
        }
        out.message = self.message + other.message + f64::from(log_n);
        out
    }

    /// After X -> X^g and a switch back: what met s(X^g) is independent of what meets s.
    #[must_use]
    pub fn moved(&self) -> Self {
        Self { message: self.message, ..Self::of(0, 2.0 * self.log2_sigma()) }
    }
}
