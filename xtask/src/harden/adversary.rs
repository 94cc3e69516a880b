//! The search for errors above their certificates, in all three schemes side by side.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::programs::Built;
use super::{Counts, Scale};

/// What a scheme's line of counts begins with.
const MARK: &str = "counts: ";

/// Schemes that are searched.
const SCHEMES: usize = 3;

/// Searches for forty seconds, or for twenty minutes.
///
/// # Errors
/// When the search cannot be run, or fails without a finding.
pub(super) fn check(root: &Path, scale: Scale) -> Result<Counts> {
    let seconds = if scale == Scale::Full { "1200" } else { "40" };
    let search = Built::Checked
        .start("synchromesh/harden", "adversary --nocapture --test-threads 3")?
        .env("SYNCHROMESH_ADVERSARY_SECONDS", seconds);
    let output = search.command(root).output().context("cannot run the search")?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<Counts> =
        text.lines().filter_map(|line| line.strip_prefix(MARK)).map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(lines.len() == SCHEMES, "{} of {SCHEMES} schemes were searched", lines.len());
    let counts = joined(&lines);
    let sound = counts.get("findings").and_then(Value::as_u64) == Some(0);
    ensure!(output.status.success() == sound, "the search ended with {}, which does not fit its counts", output.status);
    Ok(counts)
}

/// The sums of the counts of all schemes, and the least distance of an error from its certificate.
fn joined(lines: &[Counts]) -> Counts {
    let sum = |key: &str| lines.iter().filter_map(|counts| counts.get(key)?.as_u64()).sum::<u64>();
    let mut all: Counts =
        ["rounds", "circuits", "errors"].map(|key| (key.to_owned(), sum(key).into())).into_iter().collect();
    let gaps = lines.iter().filter_map(|counts| counts.get("least_gap_bits")?.as_f64());
    all.insert("least_gap_bits".to_owned(), gaps.fold(f64::INFINITY, f64::min).into());
    all.insert("findings".to_owned(), sum("findings").into());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_schemes_add_up_and_the_least_gap_stays() {
        let line = |text: &str| serde_json::from_str::<Counts>(text).expect("counts");
        let all = joined(&[
            line(r#"{"rounds":2,"circuits":30,"errors":400,"least_gap_bits":0.5,"findings":1}"#),
            line(r#"{"rounds":1,"circuits":40,"errors":500,"least_gap_bits":0.25,"findings":0}"#),
        ]);
        let expected = r#"{"rounds":3,"circuits":70,"errors":900,"least_gap_bits":0.25,"findings":1}"#;
        assert_eq!(all, line(expected));
    }
}
