//! Minimax polynomials by Remez' exchange: of all sums of given Chebyshev polynomials the one whose largest distance from
//! a function on an interval is least. What comes out is a candidate; its distance is bounded by who uses it.

use super::series::Series;

/// Exchanges at most; they converge quadratically.
const MOST_STEPS: usize = 24;

/// When the largest distance is so near the levelled one, the polynomial is as good as the best.
const LEVEL: f64 = 1.002;

/// A polynomial c_i T_(degrees_i) + .. near f on \[low, high\], a part of \[-1, 1\]; none where rounding stands in the way.
///
/// The differences of the degrees must make a Chebyshev system of that interval, as all degrees to n, and as odd ones
/// to n where 0 < low.
pub(super) fn minimax(f: impl Fn(f64) -> f64, (low, high): (f64, f64), degrees: &[usize]) -> Option<Series> {
    let count = degrees.len() + 1;
    let odd = degrees.iter().all(|k| k % 2 == 1);
    // Extrema of the error for odd degrees are those of a polynomial in u^2.
    let place = |t: f64| {
        let sine = (0.5 * std::f64::consts::PI * t).sin().powi(2);
        if odd { (low * low + (high * high - low * low) * sine).sqrt() } else { low + (high - low) * sine }
    };
    let mut points: Vec<f64> = (0..count).map(|j| place(j as f64 / (count - 1) as f64)).collect();
    let grid: Vec<f64> = (0..=24 * count).map(|j| place(j as f64 / (24 * count) as f64)).collect();
    let mut best: Option<(f64, Series)> = None;
    for _ in 0..MOST_STEPS {
        let (series, level) = levelled(&f, &points, degrees)?;
        let error = |u: f64| series.value(u) - f(u);
        let extrema = extrema(&error, &grid, count)?;
        let worst = extrema.iter().map(|&u| error(u).abs()).fold(0.0, f64::max);
        if !worst.is_finite() {
            return None;
        }
        if best.as_ref().is_none_or(|(least, _)| worst < *least) {
            best = Some((worst, series));
        }
        if worst <= LEVEL * level.abs() {
            break;
        }
        points = extrema;
    }
    best.map(|(_, series)| series)
}

/// The polynomial whose error at the points is E, -E, E, .., and E.
fn levelled(f: &impl Fn(f64) -> f64, points: &[f64], degrees: &[usize]) -> Option<(Series, f64)> {
    let rows = points.iter().enumerate().map(|(i, &u)| {
        let angle = u.clamp(-1.0, 1.0).acos();
        let mut row: Vec<f64> = degrees.iter().map(|&k| (k as f64 * angle).cos()).collect();
        row.push(if i % 2 == 0 { 1.0 } else { -1.0 });
        row.push(f(u));
        row
    });
    let solution = solve(rows.collect())?;
    let mut coefficients = vec![0.0; degrees.last()? + 1];
    for (&k, &c) in degrees.iter().zip(&solution) {
        coefficients[k] = c;
    }
    Some((Series(coefficients), *solution.last()?))
}

/// The solution of a square system with its right side in the last column, by elimination with pivots.
fn solve(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let n = rows.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| rows[i][k].abs().total_cmp(&rows[j][k].abs()))?;
        rows.swap(k, pivot);
        if rows[k][k] == 0.0 || !rows[k][k].is_finite() {
            return None;
        }
        let (above, below) = rows.split_at_mut(k + 1);
        for row in below {
            let factor = row[k] / above[k][k];
            row[k..].iter_mut().zip(&above[k][k..]).for_each(|(a, b)| *a -= factor * b);
        }
    }
    let mut solution = vec![0.0; n];
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| rows[k][j] * solution[j]).sum();
        solution[k] = (rows[k][n] - known) / rows[k][k];
    }
    Some(solution)
}

/// `count` places where the error is largest with alternating signs; none if it does not alternate so often.
fn extrema(error: &impl Fn(f64) -> f64, grid: &[f64], count: usize) -> Option<Vec<f64>> {
    // The largest of each stretch of one sign.
    let mut found: Vec<(usize, f64)> = Vec::new();
    for (i, &u) in grid.iter().enumerate() {
        let e = error(u);
        match found.last_mut() {
            Some((_, last)) if e * *last > 0.0 && e.abs() <= last.abs() => {}
            Some(last) if e * last.1 > 0.0 => *last = (i, e),
            _ => found.push((i, e)),
        }
    }
    // Too many: of both ends the smaller goes.
    while found.len() > count {
        let first = found.first()?.1.abs() < found.last()?.1.abs();
        found.remove(if first { 0 } else { found.len() - 1 });
    }
    (found.len() == count).then(|| found.into_iter().map(|(i, _)| peak(error, grid, i)).collect())
}

/// The place near grid\[i\] where a parabola through three errors has its peak.
fn peak(error: &impl Fn(f64) -> f64, grid: &[f64], i: usize) -> f64 {
    let (Some(&a), Some(&b), Some(&c)) = (i.checked_sub(1).and_then(|j| grid.get(j)), grid.get(i), grid.get(i + 1))
    else {
        return grid[i];
    };
    let [x, y, z] = [a, b, c].map(error);
    let (p, q) = ((b - a) * (y - z), (b - c) * (y - x));
    let moved = b - 0.5 * ((b - a) * p - (b - c) * q) / (p - q);
    if moved > a && moved < c && error(moved).abs() > y.abs() { moved } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(f: impl Fn(f64) -> f64, series: &Series, (low, high): (f64, f64)) -> f64 {
        let at = |i: i32| low + (high - low) * f64::from(i) / 1e5;
        (0..=100_000).map(|i| (series.value(at(i)) - f(at(i))).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn known_best_polynomials_are_found() {
        // The best line for x^2 on [-1, 1] is 1/2; of x^n by lower degrees the distance is 2^(1 - n) (Chebyshev).
        for n in [2i32, 5, 9] {
            let degrees: Vec<usize> = (0..n as usize).collect();
            let series = minimax(|u| u.powi(n), (-1.0, 1.0), &degrees).unwrap();
            let error = worst(|u| u.powi(n), &series, (-1.0, 1.0));
            assert!((error * f64::from(n - 1).exp2() - 1.0).abs() < 0.01, "{n}: {error}");
        }
        // |u| on [-1, 1] by even degrees is known to 0.2801 / n (Bernstein's constant).
        let degrees: Vec<usize> = (0..=40).step_by(2).collect();
        let series = minimax(f64::abs, (0.0, 1.0), &degrees).unwrap();
        let error = worst(f64::abs, &series, (0.0, 1.0));
        assert!((40.0 * error - 0.2801).abs() < 0.01, "{error}");
    }

    #[test]
    fn odd_polynomials_level_their_error_beside_a_gap() {
        for (low, degree) in [(0.5, 7usize), (0.1, 15), (1e-3, 15), (1e-6, 31)] {
            let degrees: Vec<usize> = (1..=degree).step_by(2).collect();
            let series = minimax(|_| 1.0, (low, 1.0), &degrees).unwrap();
            let error = worst(|_| 1.0, &series, (low, 1.0));
            // The error at the gap's edge is the largest, and is met again on the other side of 1.
            let edge = 1.0 - series.value(low);
            assert!((error - edge).abs() <= 0.01 * error, "{low} {degree}: {error} {edge}");
            assert!(series.0.iter().step_by(2).all(|c| *c == 0.0));
        }
    }
}
