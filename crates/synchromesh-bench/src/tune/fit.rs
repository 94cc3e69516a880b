//! Times as sums of non-negative parts: least squares of the relative errors, by coordinate descent.

use synchromesh_ring::ledger::Work;

/// Steps over all coordinates; a handful of samples of four numbers converges long before.
const STEPS: usize = 4000;

/// Seconds for each unit of work, none negative, that come closest to the samples in proportion.
pub(super) fn nonnegative(samples: &[(Work, f64)]) -> [f64; 4] {
    let rows: Vec<[f64; 4]> = samples.iter().map(|(w, s)| w.features().map(|x| x as f64 / s)).collect();
    let mut x = [0.0; 4];
    let mut residual: Vec<f64> = vec![1.0; rows.len()];
    for _ in 0..STEPS {
        for i in 0..4 {
            let squares: f64 = rows.iter().map(|r| r[i] * r[i]).sum();
            if squares == 0.0 {
                continue;
            }
            let step: f64 = rows.iter().zip(&residual).map(|(r, e)| r[i] * e).sum::<f64>() / squares;
            let next = (x[i] + step).max(0.0);
            let change = next - x[i];
            x[i] = next;
            rows.iter().zip(&mut residual).for_each(|(r, e)| *e -= change * r[i]);
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(primes: u64, rows: u64, terms: u64, extra: u64) -> Work {
        Work { primes, rows, terms, extra }
    }

    #[test]
    fn exact_sums_are_found_again() {
        let truth = [3e-6, 5e-5, 2e-6, 0.0];
        let sample = |w: Work| (w, w.features().iter().zip(truth).map(|(&x, t)| x as f64 * t).sum());
        let samples = [work(4, 4, 4, 0), work(4, 8, 8, 0), work(4, 24, 24, 0), work(4, 0, 16, 0), work(4, 4, 8, 0)];
        let found = nonnegative(&samples.map(sample));
        for (found, truth) in found.into_iter().zip(truth) {
            assert!((found - truth).abs() <= 1e-3 * truth, "{found} {truth}");
        }
    }

    #[test]
    fn no_part_is_negative() {
        // More rows in less time: the best sum without negative parts has none for rows.
        let found = nonnegative(&[(work(1, 1, 0, 0), 2e-6), (work(1, 4, 0, 0), 1e-6)]);
        assert!(found.iter().all(|x| *x >= 0.0) && found[1] == 0.0, "{found:?}");
    }
}
