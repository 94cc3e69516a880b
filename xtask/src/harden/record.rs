//! `docs/reliability.md`: for each part the latest quick and the latest full run, with machine, date and counts.

use serde_json::Value;

use super::{Counts, PARTS, Scale};

const HEAD: &str = "\
# Reliability

What `cargo xtask harden` tried and found, part by part: the latest run of each with `--quick` (all of them in less than
twenty minutes, once their programs are built) and with `--full` (hours). The page is written by that command. `findings` counts what must not be: a
crash, a hang, a damaged file that was accepted, a wrong result; each is printed with the command that repeats it.
";

const HEADINGS: &str = "| run | when and where | counts |\n|---|---|---|\n";

/// The page with this run in place of the one before it of the same part and scale; it has a section for every part.
pub(super) fn with_run(page: &str, name: &str, scale: Scale, place: &str, counts: &Counts) -> String {
    let mut out = HEAD.to_owned();
    for part in PARTS {
        out.push_str(&format!("\n## {}\n\n{}.\n\n{HEADINGS}", part.name, part.shows));
        for row in Scale::ALL {
            let lead = format!("| {} | ", row.name());
            if part.name == name && row == scale {
                out.push_str(&format!("{lead}{place} | {} |\n", line(counts)));
            } else {
                let known = section(page, part.name).and_then(|s| s.lines().find(|line| line.starts_with(&lead)));
                out.push_str(known.unwrap_or(&format!("{lead}not yet | |")));
                out.push('\n');
            }
        }
    }
    out
}

fn section<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let begin = page.find(&format!("\n## {name}\n"))? + 1;
    let end = page[begin..].find("\n## ").map_or(page.len(), |at| begin + at);
    page.get(begin..end)
}

/// Counts for people, findings first: `findings 0; executions 1,000,000`.
pub(super) fn line(counts: &Counts) -> String {
    let mut words: Vec<String> = Vec::new();
    // By name: whether a map keeps the order of insertion depends on what else is compiled.
    for (name, value) in counts.iter().collect::<std::collections::BTreeMap<_, _>>() {
        let word = format!("{} {}", name.replace('_', " "), shown(value));
        if name == "findings" { words.insert(0, word) } else { words.push(word) }
    }
    words.join("; ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), grouped),
        Value::String(text) => text.replace('|', "/"),
        Value::Array(list) => list.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(map) => format!("({})", line(map)),
        other => other.to_string(),
    }
}

/// A number with its digits in threes.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let threes: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|chunk| std::str::from_utf8(chunk).ok()).collect();
    threes.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn counts(value: Value) -> Counts {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn numbers_are_in_threes_and_findings_first() {
        let all = counts(json!({"executions": 1_234_567, "findings": 0, "by_type": {"params": 12}, "share": 0.5}));
        assert_eq!(line(&all), "findings 0; by type (params 12); executions 1,234,567; share 0.5");
    }

    #[test]
    fn a_run_replaces_its_own_row_only() {
        let (first, last) = (PARTS[0].name, PARTS[PARTS.len() - 1].name);
        let one = with_run("", first, Scale::Quick, "here", &counts(json!({"findings": 1})));
        assert_eq!(one.matches("not yet").count(), 2 * PARTS.len() - 1);
        let two = with_run(&one, last, Scale::Full, "there", &counts(json!({"findings": 2})));
        assert!(two.contains("| quick | here | findings 1 |") && two.contains("| full | there | findings 2 |"));
        let again = with_run(&two, first, Scale::Quick, "here again", &counts(json!({"findings": 3})));
        assert!(again.contains("| full | there | findings 2 |") && !again.contains("findings 1"));
        assert_eq!(again.matches("\n## ").count(), PARTS.len());
    }
}
