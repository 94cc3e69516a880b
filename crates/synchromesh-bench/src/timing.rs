//! Medians of repeated runs.

use std::time::{Duration, Instant};

/// Least time spent on a measurement.
const LEAST_TIME: Duration = Duration::from_millis(700);
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
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
