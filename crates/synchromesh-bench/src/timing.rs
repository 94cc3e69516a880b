//! Medians of repeated runs.

use std::time::{Duration, Instant};

/// Least time spent on a measurement.
const LEAST_TIME: Duration = Duration::from_millis(700);
/// Least time spent on a brief measurement.
const BRIEF_TIME: Duration = Duration::from_millis(100);
/// Least number of runs.
const LEAST_RUNS: usize = 7;
/// Most runs.
const MOST_RUNS: usize = 2001;

/// The median time of `run`, in seconds, after one run to warm up.
pub fn median_seconds<E>(mut run: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    run()?;
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < LEAST_RUNS || (begin.elapsed() < LEAST_TIME && times.len() < MOST_RUNS) {
        times.push(seconds(&mut run)?);
    }
    Ok(median(times))
}

/// The median time of `run`, which has run before, in seconds: of one run if it is long.
pub fn brief_median_seconds<T, E>(mut run: impl FnMut() -> Result<T, E>) -> Result<f64, E> {
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.is_empty() || (begin.elapsed() < BRIEF_TIME && times.len() < MOST_RUNS) {
        times.push(seconds(&mut || run().map(drop))?);
    }
    Ok(median(times))
}

/// The median time of each of `runs` in seconds, taken in turn for at least `least`: what disturbs the machine meanwhile
/// disturbs all of them. Each timed run follows one that is not timed, so that caches hold its own data.
pub fn interleaved_medians<E>(
    runs: &mut [Box<dyn FnMut() -> Result<(), E> + '_>],
    least: Duration,
    rounds: usize,
) -> Result<Vec<f64>, E> {
    let begin = Instant::now();
    let mut times = vec![Vec::new(); runs.len()];
    let mut done = 0;
    while done < rounds || (begin.elapsed() < least && done < MOST_RUNS) {
        for (run, times) in runs.iter_mut().zip(&mut times) {
            run()?;
            times.push(seconds(run)?);
        }
        done += 1;
    }
    Ok(times.into_iter().map(median).collect())
}

fn seconds<E>(mut run: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64())
}

/// The middle of the times, or the upper of the two in the middle.
#[must_use]
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
