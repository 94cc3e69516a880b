//! Times of operations on fixed and on random secrets, by Welch's t: reported, never a finding, as machines are disturbed.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Counts, Scale, counts, output};
use crate::harden::programs::Built;

const PROGRAM: &str = "synchromesh-triples/timing_leaks";

/// The largest |t|, with each operation's on the way; above 4.5 in run after run it is a leak.
pub(in crate::harden) fn run(root: &Path, scale: Scale) -> Result<Counts> {
    let samples = if scale == Scale::Full { "1000000" } else { "20000" };
    let (_, text) = output(root, &Built::Released.start(PROGRAM, samples)?)?;
    let report: Value = serde_json::from_str(&text).context("the timing program did not print a line of JSON")?;
    let operations = report["operations"].as_array().context("no operations")?;
    let largest =
        operations.iter().filter_map(|operation| operation["t"].as_f64()).fold(0.0, |a: f64, t| a.max(t.abs()));
    operations.iter().for_each(|operation| println!("{operation}"));
    Ok(counts([
        ("findings", 0.into()),
        ("samples", report["samples"].clone()),
        ("operations", operations.len().into()),
        ("largest_t", largest.into()),
    ]))
}
