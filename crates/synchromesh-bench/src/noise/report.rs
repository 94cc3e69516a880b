//! The files of the suite: rows as comma-separated values, figures, rates of wrong decryptions, and saved bits.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::suite::Record;
use super::{Row, SIZES, Subject, calibrate, figure, saved};

/// What the suite measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// log2 N and keys.
    pub sizes: Vec<(u32, usize)>,
    /// Where each key's errors are kept, so that an interrupted run goes on where it was.
    pub record: Option<PathBuf>,
    /// Wrong coefficients that are expected at each rate of failure.
    pub wrong: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { sizes: SIZES.to_vec(), record: None, wrong: 400 }
    }
}

/// Measures everything and writes `errors.csv`, `errors.svg`, `failure-rate.csv` and `modulus.csv`; what there is so far
/// after every scheme and size, since the largest take long. `progress` hears which share is done, and whether the last
/// step was measured just now.
///
/// # Errors
/// When a ciphertext is refused or decrypts wrongly, the device fails, or a file cannot be written.
pub fn write_report(
    out: &Path,
    options: &Options,
    progress: &mut dyn FnMut(f64, bool),
) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    std::fs::create_dir_all(out)?;
    let mut text = String::from("log_n,prime,predicted_log2,coefficients,wrong,ratio\n");
    for rate in [8, 12, 16] {
        let c = calibrate(12, rate, options.wrong)?;
        writeln!(text, "{},{},{:.4},{},{},{:.3}", c.log_n, c.prime, c.predicted, c.coefficients, c.wrong, c.ratio)?;
    }
    std::fs::write(out.join("failure-rate.csv"), text)?;
    let mut text = String::from("circuit,log_n,worst_case,canonical,average,certificate_2^-128,certificate_2^-40\n");
    for s in saved()? {
        let numbers = [s.worst_case, s.canonical, s.average, s.certificate_128, s.certificate_40];
        writeln!(text, "\"{}\",{},{}", s.circuit, s.log_n, numbers.map(|x| format!("{x:.1}")).join(","))?;
    }
    std::fs::write(out.join("modulus.csv"), text)?;
    let mut record = Record::open(options.record.as_deref())?;
    let work = |log_n: u32| f64::from(log_n).exp2();
    let all: f64 = options.sizes.iter().map(|&(n, keys)| work(n) * (keys * Subject::at(n).len()) as f64).sum();
    let (mut rows, mut done) = (Vec::new(), 0.0);
    for &(log_n, keys) in &options.sizes {
        for subject in Subject::at(log_n) {
            rows.extend(record.complete(subject, log_n, keys, &mut |new| {
                done += work(log_n);
                progress(done / all, new);
            })?);
            std::fs::write(out.join("errors.csv"), csv(&rows))?;
            std::fs::write(out.join("errors.svg"), figure::svg(&rows))?;
        }
    }
    Ok(rows)
}

/// Comma-separated values with a line of names.
#[must_use]
pub fn csv(rows: &[Row]) -> String {
    let mut out = String::from(
        "scheme,operation,log_n,keys,values,average_case,depth,sigma_measured,standard_error,sigma_estimate,deviation,\
         largest_measured,attained_2^-40,certificate_2^-40,certificate_2^-128,worst_case,canonical\n",
    );
    for r in rows {
        let _ = writeln!(
            out,
            "\"{}\",\"{}\",{},{},{},{},{},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3}",
            r.scheme,
            r.operation,
            r.log_n,
            r.keys,
            r.values,
            r.average,
            r.depth,
            r.sigma,
            r.standard_error,
            r.estimate,
            r.deviation(),
            r.largest,
            r.attained_40,
            r.certificate_40,
            r.certificate_128,
            r.worst_case,
            r.canonical,
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use synchromesh_rlwe::noise::Estimates;

    use super::super::attained_40;
    use super::*;

    #[test]
    fn the_normal_quantile_is_that_of_the_error_function() {
        let attained = |scheme: &str, log_n| attained_40(scheme, log_n, 3.0, &Estimates::gaussian(3.0)) - 3.0;
        // 2^12 erfc(8.20954 / sqrt 2) = 2^16 erfc(8.53614 / sqrt 2) = 2^-40.
        for (log_n, expected) in [(12, 8.20954f64), (16, 8.53614)] {
            assert!((attained("bfv", log_n) - expected.log2()).abs() < 1e-3, "{log_n}");
        }
        // 2^11 exp(-x^2) = 2^-40.
        let x = attained("ckks", 12).exp2();
        assert!((11.0 - x * x / std::f64::consts::LN_2 + 40.0).abs() < 1e-6);
    }

    #[test]
    fn a_row_has_as_many_columns_as_the_header() {
        let row = Row {
            scheme: "bfv".to_owned(),
            operation: "encrypt",
            log_n: 12,
            keys: 1,
            values: 1,
            average: true,
            depth: 0,
            sigma: 3.0,
            standard_error: 0.0,
            estimate: 3.0,
            largest: 5.0,
            attained_40: 6.0,
            certificate_40: 6.5,
            certificate_128: 7.0,
            worst_case: 8.0,
            canonical: 9.0,
        };
        let text = csv(&[row]);
        assert!(text.lines().all(|line| line.matches(',').count() == 16), "{text}");
    }
}
