//! The sign of u, |u| <= 1, outside a gap around 0: odd minimax polynomials, each of what the one before it gives.
//!
//! Outside the gap a polynomial takes \[r, 1\] to an interval around 1 whose ends are nearer to one another, divided by its
//! upper end \[r', 1\]; the next one starts there (ePrint 2019/1234; minimax ones, ePrint 2020/834, section 3). What is
//! reached by so many levels is the best that is reached by fewer and one more polynomial, since a narrower interval is
//! never worse: the degrees of least depth are found level by level (ePrint 2020/834, section 4).
//!
//! Inside the gap the values have the sign of u, and are at most as large as outside: proved too, as all of this is.

use super::remez::minimax;
use super::series::Series;

/// The levels of one polynomial, of degree 2^levels - 1 at most.
const MOST_LEVELS: usize = 5;

/// The levels of all together.
const MOST_DEPTH: usize = 40;

/// Errors below this may be rounding: they are not waited for to fall.
const FLOOR: f64 = 1e-9;

/// Between what is proved of a polynomial and what the next one relies on.
const ROOM: f64 = 1e-9;

/// Odd polynomials one after the other, each from \[-1, 1\] to \[-1, 1\] but for the last.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Composite {
    pub(super) stages: Vec<Series>,
    /// How far it is from the sign of u for |u| >= the gap.
    pub(super) error: f64,
    /// No value is larger.
    pub(super) most: f64,
}

/// What polynomials reach so far.
#[derive(Debug, Clone)]
struct Reached {
    stages: Vec<Series>,
    /// Outside the gap the values are at least this, divided so that none exceeds 1.
    low: f64,
}

impl Composite {
    /// Of the least depth for this gap and error, both relative to 1; otherwise what comes nearest.
    pub(super) fn new(gap: f64, error: f64) -> Self {
        let mut reached: Vec<Option<Reached>> = vec![Some(Reached { stages: Vec::new(), low: gap })];
        let mut nearest: Option<Self> = None;
        let (mut before_that, mut in_vain) = (1.0, 0);
        for depth in 1..=MOST_DEPTH {
            let mut best: Option<Reached> = None;
            for levels in 2..=MOST_LEVELS.min(depth) {
                let Some(before) = &reached[depth - levels] else { continue };
                let whole = (1 << levels) - 1;
                let last = last_stage(before, whole);
                // Where that is near enough, a lower degree may be.
                let enough = |found: &Self| found.error <= error;
                let fewer = || degrees(levels).filter_map(|degree| last_stage(before, degree)).find(enough);
                let last = if last.as_ref().is_some_and(enough) { fewer() } else { last };
                if let Some(last) = last.filter(|l| nearest.as_ref().is_none_or(|found| l.error < found.error)) {
                    nearest = Some(last);
                }
                let next = stage(before, whole).filter(|r| best.as_ref().is_none_or(|b| r.low > b.low));
                best = next.or(best);
            }
            let now = nearest.as_ref().map_or(1.0, |found| found.error);
            in_vain = if now < 0.5 * before_that { 0 } else { in_vain + 1 };
            before_that = now;
            if now <= error || (now < FLOOR && in_vain > MOST_LEVELS) {
                break;
            }
            reached.push(best);
        }
        nearest.unwrap_or(Self { stages: vec![Series(vec![0.0, 1.0])], error: 1.0, most: 1.0 })
    }
}

/// The odd degrees that take so many levels, fewest products first.
fn degrees(levels: usize) -> impl Iterator<Item = usize> {
    ((1usize << (levels - 1)) + 1..1 << levels).step_by(2)
}

/// The odd polynomial of this degree nearest to 1 on \[low, 1\], if it is provably positive on \]0, 1\].
fn odd(low: f64, degree: usize) -> Option<Series> {
    let degrees: Vec<usize> = (1..=degree).step_by(2).collect();
    let series = minimax(|_| 1.0, (low, 1.0), &degrees)?;
    // The quotient by u is of the size of the gap's edge at the least, and of the degree at the most.
    (series.sign_range(low / (4.0 * degree as f64)).low > 0.0).then_some(series)
}

/// One more polynomial, divided by the largest value it has on \[-1, 1\].
fn stage(before: &Reached, degree: usize) -> Option<Reached> {
    let mut series = odd(before.low, degree)?;
    let most = series.range(-1.0, 1.0, 1e-3).high * (1.0 + ROOM);
    series.0.iter_mut().for_each(|c| *c /= most);
    let low = series.range(before.low, 1.0, before.low / 64.0).low * (1.0 - ROOM);
    let mut stages = before.stages.clone();
    stages.push(series);
    (low > before.low).then_some(Reached { stages, low })
}

/// The last polynomial, and what it comes to.
fn last_stage(before: &Reached, degree: usize) -> Option<Composite> {
    let series = odd(before.low, degree)?;
    let outside = series.range(before.low, 1.0, before.low / 64.0);
    let error = (1.0 - outside.low).max(outside.high - 1.0) * (1.0 + ROOM);
    let most = series.range(-1.0, 1.0, 1e-3).high * (1.0 + ROOM);
    let mut stages = before.stages.clone();
    stages.push(series);
    Some(Composite { stages, error, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(composite: &Composite, u: f64) -> f64 {
        composite.stages.iter().fold(u, |u, stage| stage.value(u))
    }

    #[test]
    fn signs_are_as_near_as_they_say_and_keep_their_sign_in_the_gap() {
        for (gap, error) in [(0.5, 1e-2), (2f64.powi(-7), 2f64.powi(-10)), (2f64.powi(-12), 2f64.powi(-16))] {
            let composite = Composite::new(gap, error);
            assert!(composite.error <= error, "{gap}: {composite:?}");
            let (mut worst, mut most) = (0.0f64, 0.0f64);
            for i in 1..=200_000 {
                // Half of the points are near the gap.
                let u = if i % 2 == 0 { f64::from(i) / 2e5 } else { (gap * 4.0 * f64::from(i) / 2e5).min(1.0) };
                let y = value(&composite, u);
                assert!(y > 0.0 && value(&composite, -u) < 0.0, "{u}: {y}");
                most = most.max(y);
                if u >= gap && u <= 1.0 {
                    worst = worst.max((1.0 - y).abs());
                }
            }
            assert!(worst <= composite.error && most <= composite.most, "{gap}: {worst} {most} {composite:?}");
            assert!(worst > 0.9 * composite.error, "{gap}: {worst} of {}", composite.error);
        }
    }
}
