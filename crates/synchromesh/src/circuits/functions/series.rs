//! Series of Chebyshev polynomials on \[-1, 1\]: their values, and bounds on what they reach between the points looked at.
//!
//! A polynomial q of degree at most n is at most 1 / cos(pi n / (2 m)) times as large anywhere in an interval as at its m
//! Chebyshev points, m > n (Ehlich and Zeller, Math. Z. 86, 1964): as a trigonometric polynomial of degree n it falls from
//! its maximum no faster than cos(n t), and no angle is further than pi / (2 m) from a point's. So finitely many values,
//! each with its rounding bounded, prove a bound; rounded points count by Markov's |q'| <= n^2 |q|.

use super::interval::Interval;
use crate::embedding::cosines;

/// Rounding of an operation on doubles, with room.
pub(super) const UNIT: f64 = f64::EPSILON;

/// sum_k c_k T_k(u), |u| <= 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series(pub(super) Vec<f64>);

/// What a polynomial lies between on an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Series {
    pub(super) fn degree(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// The value at u, by Clenshaw's recurrence.
    pub(super) fn value(&self, u: f64) -> f64 {
        let (mut next, mut after) = (0.0, 0.0);
        for &c in self.0.iter().skip(1).rev() {
            (next, after) = (c + 2.0 * u * next - after, next);
        }
        self.0.first().copied().unwrap_or(0.0) + u * next - after
    }

    /// The sum of the absolute values of the coefficients: no value exceeds it.
    pub(super) fn size(&self) -> f64 {
        self.0.iter().map(|c| c.abs()).sum()
    }

    /// The derivative: of T_k it is 2 k (T_(k-1) + T_(k-3) + ..), with half of T_0.
    pub(super) fn derivative(&self) -> Self {
        let mut made = vec![0.0; self.degree().max(1)];
        let (mut next, mut after) = (0.0, 0.0);
        for k in (0..self.degree()).rev() {
            (next, after) = (after + 2.0 * (k as f64 + 1.0) * self.0[k + 1], next);
            made[k] = next;
        }
        made[0] *= 0.5;
        Self(made)
    }

    /// How far [`Self::value`] may be from the exact value: what is rounded at b_k = c_k + 2 u b_(k+1) - b_(k+2), four
    /// roundings of at most 2 |b| each, comes back times U_k(u), at most k + 1.
    pub(super) fn rounding(&self) -> f64 {
        let (mut total, mut sum, mut reach) = (0.0, 0.0, 0.0);
        for (k, c) in self.0.iter().enumerate().rev() {
            // |b_k| <= sum_(j >= k) (j - k + 1) |c_j|.
            sum += c.abs();
            reach += sum;
            total += (k as f64 + 1.0) * 8.0 * reach;
        }
        UNIT * total
    }

    /// What sum_k c_k T_k lies between on \[low, high\], a part of \[-1, 1\]; no more than `part` of the width is beyond
    /// what was seen.
    pub(super) fn range(&self, low: f64, high: f64, part: f64) -> Range {
        let rounding = self.rounding();
        range(self.degree(), (low, high), part, |u| (self.value(u), rounding))
    }

    /// c_1 T_1 + c_3 T_3 + .. over u, of which [`Self::range`] says whether the sign is that of u.
    pub(super) fn sign_range(&self, part: f64) -> Range {
        // At the points next to 0 the quotient is that of two small numbers: the rounding grows with it.
        let rounding = self.rounding();
        range(self.degree(), (-1.0, 1.0), part, |u| (self.value(u) / u, rounding / u.abs()))
    }

    /// How far sum_k c_k T_k is from f on \[-1, 1\] at most, where some polynomial of degree at most `degree` is within
    /// `remainder` of f, which `enclosure` encloses.
    pub(super) fn distance(&self, enclosure: impl Fn(Interval) -> Interval, degree: usize, remainder: f64) -> f64 {
        let degree = degree.max(self.degree()).max(1);
        let log_points = (8 * degree).next_power_of_two().trailing_zeros();
        let points = 1usize << log_points;
        let cosines = cosines(log_points + 1);
        let rounding = UNIT * (self.0.len() as f64 + 3.0) * self.size();
        let mut most = 0.0f64;
        for j in 0..points {
            let at = 2 * j + 1;
            // T_k at cos(at pi / (2 points)) is the cosine of k times that angle.
            let value: f64 = self.0.iter().enumerate().map(|(k, c)| c * cosines[k * at % (4 * points)]).sum();
            let found = enclosure(Interval::around(cosines[at], UNIT)) - Interval::around(value, rounding);
            most = most.max(found.magnitude());
        }
        (most + remainder) * between(degree, points, 0.0) + remainder
    }
}

/// By how much a polynomial of this degree may exceed its values at so many Chebyshev points, each within `shift` of
/// where it should be, in units of half the interval.
fn between(degree: usize, points: usize, shift: f64) -> f64 {
    let cos = (std::f64::consts::PI * degree as f64 / (2.0 * points as f64)).cos();
    1.0 / (cos - (degree as f64).powi(2) * shift - 4.0 * UNIT)
}

/// What a polynomial of this degree lies between on an interval, from values with bounds on their rounding; of the
/// width no more than `part` is beyond the values.
pub(super) fn range(degree: usize, (low, high): (f64, f64), part: f64, value: impl Fn(f64) -> (f64, f64)) -> Range {
    let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
    // 1 / cos t is less than 1 + t^2 for t <= 1.
    let fine = (std::f64::consts::FRAC_PI_2 / part.sqrt()).clamp(8.0, 4096.0);
    let log_points = ((fine * degree.max(1) as f64) as usize).next_power_of_two().trailing_zeros();
    let points = 1usize << log_points;
    let cosines = cosines(log_points + 1);
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for j in 0..points {
        let (value, rounding) = value(middle + half * cosines[2 * j + 1]);
        (least, most) = (least.min(value - rounding), most.max(value + rounding));
    }
    let (centre, reach) = (0.5 * (least + most), 0.5 * (most - least));
    // Around the middle of its values the polynomial is of the same degree; points are rounded to doubles near 1.
    let reach = reach * between(degree, points, 4.0 * UNIT / half) + 4.0 * UNIT * (centre.abs() + reach);
    Range { low: centre - reach, high: centre + reach }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_every_value_and_are_tight() {
        let mut state = 3u64;
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / 2f64.powi(52) - 1.0
        };
        for degree in [1usize, 2, 7, 31] {
            let series = Series((0..=degree).map(|_| word()).collect());
            for (low, high) in [(-1.0, 1.0), (0.25, 1.0), (-0.5, -0.499)] {
                let range = series.range(low, high, 0.01);
                let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
                for i in 0..=100_000 {
                    let u = low + (high - low) * f64::from(i) / 1e5;
                    let value: f64 = series.0.iter().enumerate().map(|(k, c)| c * (k as f64 * u.acos()).cos()).sum();
                    assert!((value - series.value(u)).abs() < 1e-11, "degree {degree} at {u}");
                    (least, most) = (least.min(value), most.max(value));
                }
                assert!(range.low <= least + 1e-13 && most <= range.high + 1e-13, "degree {degree}: {range:?}");
                assert!(range.high - range.low < 1.02 * (most - least) + 1e-9, "degree {degree}: {range:?}");
            }
        }
    }

    #[test]
    fn derivatives_are_slopes() {
        let series = Series(vec![0.5, -1.0, 0.25, 0.75, 3.0, -0.125]);
        let slope = series.derivative();
        assert_eq!(slope.degree(), 4);
        for i in -9..=9 {
            let (u, h) = (f64::from(i) / 10.0, 1e-6);
            let near = (series.value(u + h) - series.value(u - h)) / (2.0 * h);
            assert!((slope.value(u) - near).abs() < 1e-7, "{u}: {} and {near}", slope.value(u));
        }
        // T_k has the slope k^2 at 1.
        assert!((Series(vec![0.0, 0.0, 0.0, 1.0]).derivative().value(1.0) - 9.0).abs() < 1e-12);
        assert_eq!(Series(vec![2.0]).derivative(), Series(vec![0.0]));
    }

    #[test]
    fn the_distance_of_a_polynomial_from_itself_is_rounding() {
        let series = Series(vec![0.5, -1.0, 0.25, 0.0, 3.0]);
        let same = |u: Interval| {
            let (mut last, mut this) = (Interval::point(1.0), u);
            let mut sum = Interval::point(series.0[0]);
            for &c in &series.0[1..] {
                sum = sum + Interval::point(c) * this;
                (last, this) = (this, Interval::point(2.0) * u * this - last);
            }
            sum
        };
        assert!(series.distance(same, 4, 0.0) < 1e-12);
        let off = |u: Interval| same(u) + Interval::point(0.125);
        assert!((0.125..0.128).contains(&series.distance(off, 4, 0.0)));
    }
}
