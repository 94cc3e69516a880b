//! Measured errors beside what is said of them: the average case, the certificates, and the models of the papers, for
//! each operation of each scheme; and the rate of wrong decryptions beside the one predicted.

mod approximate;
mod calibration;
mod exact;
mod report;
mod saved;

pub use approximate::approximate;
pub use calibration::{Calibration, calibrate};
pub use exact::{Measured, Plan, exact, exact_bfv, exact_bgv};
pub use report::{SIZES, csv, svg, write_report};
pub use saved::{Saved, saved};

use serde::Serialize;
use synchromesh_rlwe::Noise;
use synchromesh_rlwe::noise::{FailureLimit, Model};

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
    /// Standard deviation estimated.
    pub estimate: f64,
    /// Largest error measured.
    pub largest: f64,
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

/// Errors of one operation as they come in.
#[derive(Debug, Clone)]
struct Collected {
    operation: &'static str,
    average: bool,
    depth: usize,
    count: usize,
    squares: f64,
    largest: f64,
    noise: Noise,
}

/// Errors of all operations, in the order they were first met.
#[derive(Debug, Clone, Default)]
struct Table(Vec<Collected>);

impl Table {
    fn add(&mut self, operation: &'static str, average: bool, depth: usize, noise: Noise, errors: &[f64]) {
        let at = self.0.iter().position(|row| row.operation == operation).unwrap_or_else(|| {
            self.0.push(Collected { operation, average, depth, count: 0, squares: 0.0, largest: 0.0, noise });
            self.0.len() - 1
        });
        let row = &mut self.0[at];
        row.count += errors.len();
        for error in errors {
            row.squares += error * error;
            row.largest = row.largest.max(error.abs());
        }
    }

    fn rows(&self, scheme: &str, log_n: u32, keys: usize, bound: impl Fn(&Noise, FailureLimit) -> f64) -> Vec<Row> {
        let row = |c: &Collected| Row {
            scheme: scheme.to_owned(),
            operation: c.operation,
            log_n,
            keys,
            values: c.count,
            average: c.average,
            depth: c.depth,
            sigma: (c.squares / c.count as f64).log2() / 2.0,
            estimate: c.noise.sigma_estimate(),
            largest: c.largest.log2(),
            certificate_40: bound(&c.noise, FailureLimit::Statistical),
            certificate_128: bound(&c.noise, FailureLimit::Negligible),
            worst_case: c.noise.by(Model::WorstCase, log_n),
            canonical: c.noise.by(Model::Canonical, log_n),
        };
        self.0.iter().map(row).collect()
    }
}
