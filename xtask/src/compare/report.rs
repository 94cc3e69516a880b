//! The comparison's table: one row for each (case, operation, peer), printed and written as Markdown and JSON.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::cases::{Case, Group};
use super::facts;
use super::programs::OURS;

/// How a ratio stands to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The ratio is at most its limit.
    Holds,
    /// The ratio is above its limit.
    Missed,
    /// No limit binds here.
    Recorded,
    /// One of the two times is missing.
    NotRun,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Missed => "MISSED",
            Self::Recorded => "recorded",
            Self::NotRun => "not run",
        }
    }

    /// Judges `ratio` against `limit`, both ours over the peer's.
    fn of(ratio: Option<f64>, limit: Option<f64>) -> Self {
        match (ratio, limit) {
            (None, _) => Self::NotRun,
            (Some(_), None) => Self::Recorded,
            (Some(ratio), Some(limit)) if ratio <= limit => Self::Holds,
            _ => Self::Missed,
        }
    }
}

/// One comparison of one operation with one peer.
pub(crate) struct Row {
    case: String,
    op: String,
    peer: String,
    ours_ns: Option<f64>,
    peer_ns: Option<f64>,
    limit: Option<f64>,
    verdict: Verdict,
    ours_line: Value,
    peer_line: Value,
}

impl Row {
    pub(crate) fn new(
        case: &Case,
        op: &str,
        peer: &str,
        ours: Option<(f64, &Value)>,
        theirs: Option<(f64, &Value)>,
    ) -> Self {
        let isa = ours.and_then(|(_, line)| line["isa"].as_str());
        let limit = case
            .limits
            .iter()
            .filter(|limit| limit.op == op && limit.peer == peer)
            .find(|limit| limit.only_isa.is_none_or(|needed| isa == Some(needed)))
            .map(|limit| limit.ratio);
        let (ours_ns, peer_ns) = (ours.map(|(ns, _)| ns), theirs.map(|(ns, _)| ns));
        Self {
            case: case.label.clone(),
            op: op.into(),
            peer: peer.into(),
            ours_ns,
            peer_ns,
            limit,
            verdict: Verdict::of(ratio(ours_ns, peer_ns), limit),
            ours_line: ours.map_or(Value::Null, |(_, line)| line.clone()),
            peer_line: theirs.map_or(Value::Null, |(_, line)| line.clone()),
        }
    }

    fn cells(&self) -> [String; 7] {
        let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.3}"));
        [
            self.case.clone(),
            self.op.clone(),
            self.ours_ns.map_or_else(|| "-".into(), duration),
            format!("{} {}", self.peer, self.peer_ns.map_or_else(|| "-".into(), duration)),
            number(ratio(self.ours_ns, self.peer_ns)),
            number(self.limit),
            self.verdict.text().into(),
        ]
    }

    /// What our program and the peer's printed, with the name of each.
    fn lines(&self) -> [(&str, &Value); 2] {
        [(OURS, &self.ours_line), (&self.peer, &self.peer_line)]
    }

    /// The row without its case, on one line.
    pub(crate) fn brief(&self) -> String {
        let [_, op, ours, theirs, ratio, limit, verdict] = self.cells();
        format!("{op}: {ours}, {theirs}; ratio {ratio}, limit {limit}: {verdict}")
    }

    fn json(&self) -> Value {
        json!({
            "case": self.case, "op": self.op, "peer": self.peer,
            "ours_ns": self.ours_ns, "peer_ns": self.peer_ns, "ratio": ratio(self.ours_ns, self.peer_ns),
            "limit": self.limit, "verdict": self.verdict.text().to_lowercase(),
            "ours": self.ours_line, "theirs": self.peer_line,
        })
    }
}

fn ratio(ours: Option<f64>, peer: Option<f64>) -> Option<f64> {
    Some(ours? / peer?)
}

/// Nanoseconds as text with three significant figures or more.
fn duration(ns: f64) -> String {
    match ns {
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns if ns < 1e8 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.0} ms", ns / 1e6),
    }
}

/// What stands beside the rows: the machine, why some programs did not run, and whether ours was meant to.
pub(crate) struct About {
    pub(crate) run: Value,
    pub(crate) reasons: Vec<String>,
    pub(crate) peers_only: bool,
}

/// Prints the table and writes `docs/compare/<date>-<cpu>.md` and `.json`. Fails if a limit was missed, or if a time of
/// ours is missing although it was asked for.
///
/// # Errors
/// When a file cannot be written.
pub(crate) fn publish(root: &Path, groups: &[Group], rows: &[Row], about: &About) -> Result<ExitCode> {
    let About { run: about, reasons, peers_only } = about;
    let table = markdown(rows, reasons);
    println!("{table}");
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let missed = count(Verdict::Missed);
    let summary = format!(
        "{} hold, {missed} missed, {} recorded, {} not run",
        count(Verdict::Holds),
        count(Verdict::Recorded),
        count(Verdict::NotRun)
    );
    let folder = root.join("docs/compare");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let whole = Group::ALL.into_iter().filter(|group| group.by_default());
    let part = if groups.iter().copied().eq(whole) {
        String::new()
    } else {
        groups.iter().map(|group| format!("-{}", group.name())).collect()
    };
    let text = |key: &str| about[key].as_str().unwrap_or("unknown").to_owned();
    let stem = format!("{}-{}-{}{part}", text("date"), slug(&text("cpu")), text("isa"));
    let facts = facts::tables(rows.iter().flat_map(Row::lines));
    print!("{facts}");
    let heading = format!(
        "# Comparison of {}\n\n{}, instruction sets {}, ours on {}, one thread, started with `{}`, load average {} at the end, \
         {} rounds in turn, {}, commit {}. Each time is the median of the best round; the ratio is ours over the \
         peer's.\n\n",
        text("date"),
        text("cpu"),
        about["isas"],
        text("isa"),
        text("started_with"),
        about["load_average"],
        about["rounds"],
        text("rustc"),
        text("commit"),
    );
    write(&folder.join(format!("{stem}.md")), &format!("{heading}{table}\n{facts}{summary}.\n"))?;
    let body = json!({"about": about, "not_run": reasons, "rows": rows.iter().map(Row::json).collect::<Vec<_>>()});
    write(&folder.join(format!("{stem}.json")), &format!("{body:#}\n"))?;
    println!("{summary}; written to docs/compare/{stem}.md and .json");
    let complete = *peers_only || rows.iter().all(|row| row.ours_ns.is_some());
    Ok(if missed == 0 && complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// A Markdown table that also reads well as plain text, and the reasons of what was not run.
fn markdown(rows: &[Row], reasons: &[String]) -> String {
    let head = ["case", "operation", "ours", "peer", "ratio", "limit", "verdict"].map(str::to_owned);
    let body: Vec<[String; 7]> = rows.iter().map(Row::cells).collect();
    let width =
        |column: usize| body.iter().chain([&head]).map(|cells| cells[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String; 7]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!(" {cell:width$} "));
        format!("|{}|\n", padded.collect::<Vec<_>>().join("|"))
    };
    let mut text = line(&head);
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    let _ = writeln!(text, "|{}|", rule.join("|"));
    body.iter().for_each(|cells| text.push_str(&line(cells)));
    for reason in reasons {
        let _ = write!(text, "\nNot run: {reason}\n");
    }
    text
}

/// Letters and digits of `text` in lower case, joined by single hyphens.
fn slug(text: &str) -> String {
    let lower = text.replace("(R)", " ").replace("(TM)", " ").to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_above_its_limit_is_missed() {
        assert_eq!(Verdict::of(Some(0.66), Some(0.65)), Verdict::Missed);
        assert_eq!(Verdict::of(Some(0.65), Some(0.65)), Verdict::Holds);
        assert_eq!(Verdict::of(Some(f64::NAN), Some(0.65)), Verdict::Missed);
        assert_eq!(Verdict::of(Some(9.0), None), Verdict::Recorded);
        assert_eq!(Verdict::of(None, Some(1.0)), Verdict::NotRun);
    }

    #[test]
    fn durations_and_slugs_are_readable() {
        assert_eq!([duration(31_000.0), duration(9e6), duration(1.2e8)], ["31.0 us", "9.00 ms", "120 ms"]);
        assert_eq!(slug("AMD EPYC 9B45 (R) @ 2.6GHz"), "amd-epyc-9b45-2-6ghz");
    }
}
