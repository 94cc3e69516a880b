//! Rows as CSV, and as a figure of what is lost above the largest measured error.

use std::fmt::Write;
use std::path::Path;

use super::{Plan, Row, approximate, calibrate, exact_bfv, exact_bgv, saved};

/// log2 N and keys of the whole suite.
pub const SIZES: [(u32, usize); 5] = [(12, 100), (13, 100), (14, 100), (15, 100), (16, 100)];

/// Measures everything and writes `errors.csv`, `errors.svg`, `failure-rate.csv` and `modulus.csv`; what there is so far
/// after every size, since the largest take long.
///
/// # Errors
/// When a ciphertext is refused, the device fails, or a file cannot be written.
pub fn write_report(out: &Path, sizes: &[(u32, usize)]) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(out)?;
    let mut text = String::from("log_n,prime,predicted_log2,coefficients,wrong,ratio\n");
    for rate in [8, 12, 16] {
        let c = calibrate(12, rate, 400)?;
        writeln!(text, "{},{},{:.4},{},{},{:.3}", c.log_n, c.prime, c.predicted, c.coefficients, c.wrong, c.ratio)?;
    }
    std::fs::write(out.join("failure-rate.csv"), text)?;
    let mut text = String::from("circuit,log_n,worst_case,canonical,average,certificate_2^-128,certificate_2^-40\n");
    for s in saved()? {
        let numbers = [s.worst_case, s.canonical, s.average, s.certificate_128, s.certificate_40];
        writeln!(text, "\"{}\",{},{}", s.circuit, s.log_n, numbers.map(|x| format!("{x:.1}")).join(","))?;
    }
    std::fs::write(out.join("modulus.csv"), text)?;
    let mut rows: Vec<Row> = Vec::new();
    for &(log_n, keys) in sizes {
        for plan in [Plan::Wide, Plan::Narrow] {
            rows.extend(exact_bfv(log_n, keys, plan)?);
            rows.extend(exact_bgv(log_n, keys, plan)?);
        }
        rows.extend(approximate(log_n, keys)?);
        std::fs::write(out.join("errors.csv"), csv(&rows))?;
        std::fs::write(out.join("errors.svg"), svg(&rows))?;
    }
    Ok(())
}

/// Comma-separated values with a line of names.
#[must_use]
pub fn csv(rows: &[Row]) -> String {
    let mut out = String::from(
        "scheme,operation,log_n,keys,values,average_case,depth,sigma_measured,sigma_estimate,deviation,largest_measured,\
         certificate_2^-40,certificate_2^-128,worst_case,canonical\n",
    );
    for r in rows {
        let _ = writeln!(
            out,
            "\"{}\",\"{}\",{},{},{},{},{},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3}",
            r.scheme,
            r.operation,
            r.log_n,
            r.keys,
            r.values,
            r.average,
            r.depth,
            r.sigma,
            r.estimate,
            r.deviation(),
            r.largest,
            r.certificate_40,
            r.certificate_128,
            r.worst_case,
            r.canonical,
        );
    }
    out
}

/// Height of a row of the figure.
const LINE: usize = 16;
/// Where bars begin, and pixels for a bit.
const LEFT: f64 = 330.0;
const BIT: f64 = 12.0;

/// Bits above the largest measured error for each row: estimate, certificates, the papers' models.
#[must_use]
pub fn svg(rows: &[Row]) -> String {
    type Model = (&'static str, &'static str, fn(&Row) -> f64);
    let models: [Model; 4] = [
        ("certificate 2^-40", "#1b7f4d", |r| r.certificate_40),
        ("certificate 2^-128", "#1f5fa8", |r| r.certificate_128),
        ("canonical norm", "#c9822b", |r| r.canonical),
        ("worst case", "#b03a3a", |r| r.worst_case),
    ];
    let height = LINE * (rows.len() + 5);
    let width = LEFT + BIT * 42.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"8\" y=\"14\" font-size=\"13\">Bits above the largest measured error</text>\n"
    );
    for (i, (name, colour, _)) in models.iter().enumerate() {
        let x = LEFT + 120.0 * i as f64;
        let _ = writeln!(out, "<circle cx=\"{x}\" cy=\"26\" r=\"4\" fill=\"{colour}\"/>");
        let _ = writeln!(out, "<text x=\"{}\" y=\"30\">{name}</text>", x + 8.0);
    }
    let bottom = LINE * (rows.len() + 3);
    for bits in (0..=40).step_by(5) {
        let x = LEFT + BIT * f64::from(bits);
        let _ = writeln!(out, "<line x1=\"{x}\" y1=\"38\" x2=\"{x}\" y2=\"{bottom}\" stroke=\"#dddddd\"/>");
        let _ = writeln!(out, "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{bits}</text>", bottom + 14);
    }
    for (i, row) in rows.iter().enumerate() {
        let y = LINE * (i + 3);
        let name = format!("{} 2^{}: {}", row.scheme, row.log_n, row.operation);
        let _ = writeln!(out, "<text x=\"8\" y=\"{}\">{name}</text>", y + 4);
        for (_, colour, of) in models {
            let bits = of(row) - row.largest;
            if bits.is_finite() {
                let x = LEFT + BIT * bits.clamp(-1.0, 41.0);
                let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y}\" r=\"4\" fill=\"{colour}\"/>");
            }
        }
    }
    out.push_str("</svg>\n");
    out
}
