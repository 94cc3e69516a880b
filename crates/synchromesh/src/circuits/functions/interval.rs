//! Interval arithmetic on doubles, rounded outwards, with exp, log and the error function enclosed by their series.
//!
//! Sums, products, quotients and roots of doubles are the nearest doubles to the exact ones (IEEE 754), so that the next
//! double to either side encloses them. No function of the platform's libm is used: a bound is the same everywhere.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// What a real number lies between; an end that is not known is infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
}

/// log 2, between neighbouring doubles.
const LN_2: Interval = Interval { low: std::f64::consts::LN_2, high: std::f64::consts::LN_2.next_up() };

/// 2 / sqrt(pi), between neighbouring doubles.
const TWO_OVER_ROOT_PI: Interval =
    Interval { low: std::f64::consts::FRAC_2_SQRT_PI.next_down(), high: std::f64::consts::FRAC_2_SQRT_PI.next_up() };

impl Interval {
    /// One double.
    pub(super) const fn point(x: f64) -> Self {
        Self { low: x, high: x }
    }

    /// All numbers at most `distance` from `x`.
    pub(super) fn around(x: f64, distance: f64) -> Self {
        Self { low: (x - distance).next_down(), high: (x + distance).next_up() }
    }

    /// From two ends as rounded, in either order.
    fn hull(ends: &[f64]) -> Self {
        if ends.iter().any(|x| x.is_nan()) {
            return Self { low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { low: low.next_down(), high: high.next_up() }
    }

    /// The largest absolute value.
    pub(super) const fn magnitude(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// The image under a function that does not fall, of which `at` encloses the values.
    fn rising(self, at: impl Fn(f64) -> Self) -> Self {
        Self { low: at(self.low).low, high: at(self.high).high }
    }

    /// The square root; of what is negative, 0.
    pub(super) fn sqrt(self) -> Self {
        Self { low: self.low.max(0.0).sqrt().next_down().max(0.0), high: self.high.max(0.0).sqrt().next_up() }
    }

    /// e^x.
    pub(super) fn exp(self) -> Self {
        self.rising(exp)
    }

    /// The natural logarithm; -inf where it reaches 0.
    pub(super) fn ln(self) -> Self {
        self.rising(ln)
    }

    /// 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
    pub(super) fn erf(self) -> Self {
        self.rising(erf)
    }

    /// Times 2^k, exactly but for what is subnormal.
    fn shifted(self, k: i32) -> Self {
        let half = |k: i32| f64::from(k).exp2();
        let [low, high] = [self.low, self.high].map(|x| x * half(k / 2) * half(k - k / 2));
        Self { low: if low < f64::MIN_POSITIVE { 0.0f64.min(low) } else { low }, high: high.max(f64::MIN_POSITIVE) }
    }
}

impl Add for Interval {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { low: (self.low + other.low).next_down(), high: (self.high + other.high).next_up() }
    }
}

impl Neg for Interval {
    type Output = Self;
    fn neg(self) -> Self {
        Self { low: -self.high, high: -self.low }
    }
}

impl Sub for Interval {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Interval {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let (a, b) = (self, other);
        Self::hull(&[a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high])
    }
}

impl Div for Interval {
    type Output = Self;
    /// All reals where the divisor may be 0.
    fn div(self, other: Self) -> Self {
        if other.low <= 0.0 && other.high >= 0.0 {
            return Self::hull(&[f64::NAN]);
        }
        let (a, b) = (self, other);
        Self::hull(&[a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high])
    }
}

/// e^x = 2^k e^r, |r| <= 0.36, by Taylor's series: 16 terms leave less than 0.36^16 / 16! < 2^-67.
fn exp(x: f64) -> Interval {
    if x < -700.0 {
        return Interval { low: 0.0, high: 1e-304 };
    }
    if x > 700.0 {
        return Interval { low: 1e304, high: f64::INFINITY };
    }
    let k = (x / std::f64::consts::LN_2).round();
    let r = Interval::point(x) - Interval::point(k) * LN_2;
    let series = (1..16)
        .rev()
        .fold(Interval::point(1.0), |sum, n| Interval::point(1.0) + r * sum / Interval::point(f64::from(n)));
    (series + Interval::around(0.0, 2f64.powi(-66))).shifted(k as i32)
}

/// log x = e log 2 + 2 artanh((m - 1) / (m + 1)) for x = m 2^e, 0.7 < m < 1.42: 14 terms leave less than 2^-77.
fn ln(x: f64) -> Interval {
    if x <= 0.0 {
        return Interval::point(f64::NEG_INFINITY);
    }
    if x < f64::MIN_POSITIVE || x == f64::INFINITY {
        return if x < 1.0 { Interval { low: f64::NEG_INFINITY, high: -708.0 } } else { Interval::point(x) };
    }
    let mut e = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let mut m = f64::from_bits((x.to_bits() & ((1 << 52) - 1)) | (1023 << 52));
    if m > std::f64::consts::SQRT_2 {
        (e, m) = (e + 1, m / 2.0);
    }
    let z = (Interval::point(m) - Interval::point(1.0)) / (Interval::point(m) + Interval::point(1.0));
    let square = z * z;
    let series = (0..14).rev().fold(Interval::around(0.0, 2f64.powi(-76)), |sum, n| {
        Interval::point(1.0) / Interval::point(f64::from(2 * n + 1)) + square * sum
    });
    Interval::point(f64::from(e)) * LN_2 + z * series * Interval::point(2.0)
}

/// erf x = (2 / sqrt(pi)) exp(-x^2) sum_n 2^n x^(2n+1) / (2n+1)!!, whose terms are all of one sign; from 6 on
/// 1 - erf x < exp(-36) / (6 sqrt(pi)) < 2^-55.
fn erf(x: f64) -> Interval {
    if x < 0.0 {
        return -erf(-x);
    }
    if x >= 6.0 {
        return Interval { low: 1.0 - 2f64.powi(-53), high: 1.0 };
    }
    if x < 2f64.powi(-30) {
        // x - x^3 / 3 and x, times 2 / sqrt(pi), on either side.
        return TWO_OVER_ROOT_PI * Interval { low: x * (1.0 - 2f64.powi(-53)), high: x };
    }
    let (x, mut sum) = (Interval::point(x), Interval::point(0.0));
    let (square, mut term, mut n) = (x * x, x, 0);
    // From n = 2 x^2 on each term is less than half the one before: what is left is less than the last.
    while term.high > 2f64.powi(-70) * sum.high || f64::from(n) < 2.0 * square.high {
        sum = sum + term;
        n += 1;
        term = term * square * Interval::point(2.0) / Interval::point(f64::from(2 * n + 1));
    }
    let sum = Interval { low: sum.low, high: (sum.high + 2.0 * term.high.max(0.0)).next_up() };
    let value = TWO_OVER_ROOT_PI * (-square).exp() * sum;
    Interval { low: value.low.max(0.0), high: value.high.min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_enclose_their_values_tightly() {
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let x = (state >> 11) as f64 / 2f64.powi(53);
            let wide = 60.0 * x - 30.0;
            // The platform's functions are within an ulp or two, which is allowed for.
            let near = |found: Interval, value: f64, relative: f64| {
                let slack = 4.0 * f64::EPSILON * value.abs() + 1e-300;
                assert!(found.low <= value + slack && value - slack <= found.high, "{found:?} {value}");
                assert!(found.high - found.low <= relative * value.abs() + 1e-300, "{found:?} for {value}");
            };
            near(Interval::point(wide).exp(), wide.exp(), 5e-14);
            near(Interval::point(x + 1e-9).sqrt(), (x + 1e-9).sqrt(), 1e-15);
            let log = Interval::point(x + 0.001).ln();
            assert!(log.low <= log.high && log.high - log.low < 1e-14, "{log:?}");
            near(log.exp(), x + 0.001, 1e-13);
        }
        assert_eq!(Interval { low: 0.0, high: 1.0 }.ln().low, f64::NEG_INFINITY);
    }

    #[test]
    fn the_error_function_has_its_known_values() {
        // Abramowitz and Stegun, table 7.1.
        for (x, value) in [
            (0.0, 0.0),
            (1e-12, std::f64::consts::FRAC_2_SQRT_PI * 1e-12),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.5, 0.999_999_256_901_627_7),
        ] {
            for sign in [1.0, -1.0] {
                let found = Interval::point(sign * x).erf();
                assert!(found.low <= sign * value + 2e-16 && sign * value - 2e-16 <= found.high, "{x}: {found:?}");
                assert!(found.high - found.low < 1e-13, "{x}: {found:?}");
            }
        }
        // Its slope is 2 / sqrt(pi) exp(-x^2): a Riemann sum of it from one end to the other.
        let (mut sum, step) = (0.0, 1e-4);
        for i in 0..50_000 {
            let t = (f64::from(i) + 0.5) * step;
            sum += std::f64::consts::FRAC_2_SQRT_PI * (-t * t).exp() * step;
            if i % 5000 == 4999 {
                let found = Interval::point(f64::from(i + 1) * step).erf();
                assert!((found.low - sum).abs() < 1e-8 && (found.high - sum).abs() < 1e-8, "{t}: {found:?} {sum}");
            }
        }
    }

    #[test]
    fn operations_enclose_what_exact_arithmetic_gives() {
        let third = Interval::point(1.0) / Interval::point(3.0);
        let one = third + third + third;
        assert!(one.low < 1.0 && 1.0 < one.high);
        let zero = one - one;
        assert!(zero.low < 0.0 && 0.0 < zero.high && zero.magnitude() < 1e-14);
        let product = Interval { low: -2.0, high: 3.0 } * Interval { low: -5.0, high: 4.0 };
        assert!(product.low <= -15.0 && product.high >= 12.0 && product.low > -15.1 && product.high < 12.1);
        assert_eq!((Interval::point(1.0) / Interval { low: -1.0, high: 1.0 }).high, f64::INFINITY);
    }
}
