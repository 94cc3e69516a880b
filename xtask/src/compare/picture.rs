//! The comparison as a picture: bars of the peers' times in multiples of ours, drawn from the newest table of the schemes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::Value;

/// Operations that users call and that mean the same in every library, with the words for them. (A peer's decryption of
/// CKKS holds the decoding.)
const OPERATIONS: [(&str, &str); 4] =
    [("mul", "multiply"), ("rotate", "rotate"), ("rescale", "rescale"), ("add", "add")];

/// What the cases are of that are drawn.
const CASES: [&str; 4] = ["key switch", "ckks", "bgv", "bfv"];

/// Bars are cut at this multiple, and say theirs.
const WIDEST: f64 = 12.0;

const PICTURE: &str = "docs/compare/schemes.svg";

const COLOURS: [(&str, &str); 2] = [("lattigo", "#3b6fb6"), ("openfhe", "#d9822b")];

/// A bar: the operation, the peer, and its time over ours.
struct Bar {
    group: String,
    peer: String,
    times: f64,
}

/// Draws `docs/compare/schemes.svg` from the newest table in `docs/compare` that has all the operations, taken with
/// the best instruction set of its machine.
///
/// # Errors
/// Without such a table, or when the picture cannot be written.
pub(super) fn run(root: &Path) -> Result<ExitCode> {
    let (path, table) = newest(&root.join("docs/compare"))?;
    let about = &table["about"];
    let word = |key: &str| about[key].as_str().unwrap_or("unknown");
    let machine = format!("{}, {}, one thread", word("date"), word("cpu"));
    fs::write(root.join(PICTURE), svg(&bars(&table), &machine)).with_context(|| format!("cannot write {PICTURE}"))?;
    println!("{PICTURE}, drawn from {}", path.display());
    Ok(ExitCode::SUCCESS)
}

fn newest(folder: &Path) -> Result<(PathBuf, Value)> {
    let read = |path: PathBuf| -> Result<(PathBuf, Value)> {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let table = serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
        Ok((path, table))
    };
    let files = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let tables = paths.filter(|path| path.extension().is_some_and(|ext| ext == "json")).map(read);
    let tables = tables.collect::<Result<Vec<_>>>()?;
    let date = |(path, table): &(PathBuf, Value)| (table["about"]["date"].as_str().map(str::to_owned), path.clone());
    let serve = tables.into_iter().filter(|(_, table)| is_of_best_isa(table) && has_every_operation(table));
    serve.max_by_key(date).context("no table of the schemes: `cargo xtask compare scheme` makes one")
}

/// Whether a table is of whole schemes: others have rotations only, or sums.
fn has_every_operation(table: &Value) -> bool {
    let bars = bars(table);
    OPERATIONS.iter().all(|(_, word)| bars.iter().any(|bar| bar.group.ends_with(word)))
}

/// Whether our program ran with the best instruction set of its machine; of tables that do not say what that has, yes.
fn is_of_best_isa(table: &Value) -> bool {
    let about = &table["about"];
    about["isas"].as_array().and_then(|isas| isas.last()).is_none_or(|best| *best == about["isa"])
}

fn bars(table: &Value) -> Vec<Bar> {
    let rows = table["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let mut bars = Vec::new();
    for row in rows {
        let (Some(case), Some(op), Some(peer)) = (row["case"].as_str(), row["op"].as_str(), row["peer"].as_str())
        else {
            continue;
        };
        let scheme = case.split(',').next().unwrap_or_default();
        let word = OPERATIONS.iter().find(|(name, _)| *name == op).map(|(_, word)| *word);
        let word = word.filter(|_| CASES.contains(&scheme));
        if let (Some(word), Some(ratio)) = (word, row["ratio"].as_f64()) {
            let group = format!("{} {word}", scheme.to_uppercase());
            bars.push(Bar { group, peer: peer.to_owned(), times: 1.0 / ratio });
        }
    }
    bars
}

/// Horizontal bars, a line at 1: our own time.
fn svg(bars: &[Bar], machine: &str) -> String {
    const LEFT: f64 = 130.0;
    const SCALE: f64 = 40.0;
    const STEP: f64 = 16.0;
    let height = 60.0 + STEP * bars.len() as f64 + 8.0 * bars.len() as f64 / 2.0;
    let width = LEFT + SCALE * WIDEST + 90.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"8\" y=\"18\" font-size=\"13\">Time of other libraries, in multiples of synchromesh's \
         (beyond the dashed line: synchromesh is faster)</text>\n"
    );
    let mut y = 32.0;
    for (index, bar) in bars.iter().enumerate() {
        let first = index == 0 || bars[index - 1].group != bar.group;
        if first {
            y += 8.0;
            let _ = writeln!(out, "<text x=\"8\" y=\"{:.0}\">{}</text>", y + 12.0, bar.group);
        }
        let colour = COLOURS.iter().find(|(name, _)| *name == bar.peer).map_or("#888888", |(_, colour)| *colour);
        let length = SCALE * bar.times.min(WIDEST);
        let _ = writeln!(
            out,
            "<rect x=\"{LEFT}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"13\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{:.0}\" font-size=\"11\">{:.1} {}</text>",
            LEFT + length + 4.0,
            y + 11.0,
            bar.times,
            bar.peer
        );
        y += STEP;
    }
    let _ = writeln!(
        out,
        "<line x1=\"{0}\" y1=\"30\" x2=\"{0}\" y2=\"{y:.0}\" stroke=\"black\" stroke-dasharray=\"3 3\"/>\n\
         <text x=\"8\" y=\"{1:.0}\" font-size=\"11\" fill=\"#555555\">{machine}; dashed: our own time</text>\n</svg>",
        LEFT + SCALE,
        y + 20.0
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bars_are_the_peers_times_over_ours() {
        let row =
            |case: &str, op: &str, ratio: Value| json!({"case": case, "op": op, "peer": "lattigo", "ratio": ratio});
        let table = json!({"rows": [
            row("bfv, N 2^14", "mul", json!(0.25)),
            row("bfv, N 2^14", "encrypt", json!(0.5)),
            row("bfv, N 2^14", "rotate", Value::Null),
            row("level of 4 of 40 primes, N 2^16", "rotate", json!(0.5)),
        ]});
        let bars = bars(&table);
        assert_eq!((bars.len(), bars[0].group.as_str(), bars[0].times), (1, "BFV multiply", 4.0));
        let picture = svg(&bars, "a machine");
        assert!(picture.contains("4.0 lattigo") && picture.contains("a machine") && picture.ends_with("</svg>\n"));
    }
}
