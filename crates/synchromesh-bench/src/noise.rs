//! Measured errors beside what is said of them: the average case, the certificates, and the models of the papers, for
//! each operation of each scheme; and the rate of wrong decryptions beside the one predicted.

mod approximate;
mod calibration;
mod exact;
mod figure;
mod report;
mod saved;
mod suite;

pub use calibration::{Calibration, calibrate};
pub use exact::Plan;
pub use figure::svg;
pub use report::{Options, csv, write_report};
pub use saved::{Saved, saved};
pub use suite::{SIZES, Subject, measure};

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::Noise;
use synchromesh_rlwe::noise::{Estimates, FailureLimit, Model};

/// What was measured of one operation, and what was said of it; sizes are log2.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Scheme, and how keys are switched where there is a choice.
    pub scheme: String,
    /// The operation.
    pub operation: &'static str,
    /// log2 N.
    pub log_n: u32,
    /// Secret keys.
    pub keys: usize,
    /// Coefficients (CKKS: slots) measured.
    pub values: usize,
    /// Whether messages and operands are those of the average case: uniform and, products of a ciphertext with itself
    /// apart, unrelated.
    pub average: bool,
    /// Products one after another.
    pub depth: usize,
    /// Standard deviation measured.
    pub sigma: f64,
    /// Standard error of [`Self::sigma`], from how keys differ; not a number for a single key.
    pub standard_error: f64,
    /// Standard deviation estimated.
    pub estimate: f64,
    /// Largest error measured.
    pub largest: f64,
    /// What the largest error of a ciphertext exceeds with probability 2^-40 if errors are normal given the key.
    pub attained_40: f64,
    /// Certificate at 2^-40.
    pub certificate_40: f64,
    /// Certificate at 2^-128.
    pub certificate_128: f64,
    /// Worst case with the expansion factor (ePrint 2021/204).
    pub worst_case: f64,
    /// Canonical norm (ePrint 2023/1642, 2023/593).
    pub canonical: f64,
}

impl Row {
    /// Bits by which the estimate is above the measured standard deviation.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        self.estimate - self.sigma
    }

    /// Bits by which the certificate at 2^-40 is above the largest error.
    #[must_use]
    pub fn gap(&self) -> f64 {
        self.certificate_40 - self.largest
    }
}

/// Errors measured of one operation under one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Sample {
    operation: String,
    count: usize,
    squares: f64,
    largest: f64,
}

/// An operation, and what is said of its error.
#[derive(Debug, Clone)]
struct Described {
    operation: &'static str,
    average: bool,
    depth: usize,
    noise: Noise,
}

/// What was measured under one key, in the order operations were first met.
#[derive(Debug, Clone, Default)]
struct Table(Vec<(Described, Sample)>);

impl Table {
    fn add(&mut self, operation: &'static str, average: bool, depth: usize, noise: Noise, errors: &[f64]) {
        let at = self.0.iter().position(|(row, _)| row.operation == operation).unwrap_or_else(|| {
            let sample = Sample { operation: operation.to_owned(), count: 0, squares: 0.0, largest: 0.0 };
            self.0.push((Described { operation, average, depth, noise }, sample));
            self.0.len() - 1
        });
        let sample = &mut self.0[at].1;
        sample.count += errors.len();
        for error in errors {
            sample.squares += error * error;
            sample.largest = sample.largest.max(error.abs());
        }
    }

    fn samples(self) -> Vec<Sample> {
        self.0.into_iter().map(|(_, sample)| sample).collect()
    }
}

/// What is expected of an error, of a ciphertext of a context that [`Estimating`](synchromesh_rlwe::noise::Estimating)
/// watches.
fn estimates(noise: &Noise) -> Estimates {
    noise.estimates.expect("errors are measured where estimates are wanted")
}

/// What the largest error of a ciphertext exceeds with probability 2^-40 if errors are independent and, given the key,
/// normal with the measured deviation: over keys a slot's are not. Products of errors have heavier tails, as have messages
/// that are larger than uniform ones; a certificate at 2^-40 cannot be below.
fn attained_40(scheme: &str, log_n: u32, sigma: f64, estimates: &Estimates) -> f64 {
    if scheme == "ckks" {
        return sigma + estimates.average.log2_largest_at_roots(log_n, 40) - estimates.log2_sigma();
    }
    // N times sqrt(2 / pi) / x exp(-x^2 / 2) (1 - 1 / x^2) = 2^-40.
    let wanted = (f64::from(log_n) + 40.0) * std::f64::consts::LN_2 + 0.5 * (2.0 / std::f64::consts::PI).ln();
    let step = |x: f64| (2.0 * (wanted - x.ln() + (1.0 - 1.0 / (x * x)).ln())).sqrt();
    sigma + (0..20).fold(8.0, |x, _| step(x)).log2()
}

/// The row of an operation that was measured under several keys.
fn row(scheme: String, log_n: u32, what: &Described, keys: &[&Sample], bound: impl Fn(FailureLimit) -> f64) -> Row {
    let values = keys.iter().map(|s| s.count).sum();
    let square = keys.iter().map(|s| s.squares).sum::<f64>() / values as f64;
    let off = |s: &&Sample| (s.squares / s.count as f64 / square - 1.0).powi(2);
    let spread = keys.iter().map(off).sum::<f64>() / (keys.len() as f64 * (keys.len() as f64 - 1.0));
    let sigma = square.log2() / 2.0;
    let estimates = estimates(&what.noise);
    Row {
        attained_40: attained_40(&scheme, log_n, sigma, &estimates),
        scheme,
        operation: what.operation,
        log_n,
        keys: keys.len(),
        values,
        average: what.average,
        depth: what.depth,
        sigma,
        standard_error: spread.sqrt() / (2.0 * std::f64::consts::LN_2),
        estimate: estimates.log2_sigma(),
        largest: keys.iter().map(|s| s.largest).fold(0.0, f64::max).log2(),
        certificate_40: bound(FailureLimit::Statistical),
        certificate_128: bound(FailureLimit::Negligible),
        worst_case: estimates.by(Model::WorstCase, log_n),
        canonical: estimates.by(Model::Canonical, log_n),
    }
}
