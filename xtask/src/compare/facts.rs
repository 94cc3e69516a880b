//! What refreshes of each program come to beside their times: sizes, precision, keys and memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

/// The columns, each with its key in the programs' lines, what it is divided by, and its digits.
const COLUMNS: [(&str, &str, f64, usize); 9] = [
    ("log QP", "log_qp", 1.0, 0),
    ("slots", "slots", 1.0, 0),
    ("usable bits", "usable_bits", 1.0, 0),
    ("least bits", "measured_bits", 1.0, 1),
    ("mean bits", "mean_bits", 1.0, 1),
    ("certified", "certified_bits", 1.0, 1),
    ("keys GB", "key_bytes", 1e9, 2),
    ("peak GB", "peak_bytes", 1e9, 1),
    ("security", "security_bits", 1.0, 0),
];

/// A line for each program and degree among those that refreshed something; nothing where none did.
pub(crate) fn table<'a>(lines: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let refreshed = lines.filter(|(_, line)| line["measured_bits"].is_number());
    let found: BTreeMap<(u64, &str), &Value> =
        refreshed.map(|(name, line)| ((u64::MAX - line["log_n"].as_u64().unwrap_or(0), name), line)).collect();
    if found.is_empty() {
        return String::new();
    }
    let mut text = String::from("| refreshes | log N |");
    COLUMNS.iter().for_each(|(head, ..)| text.push_str(&format!(" {head} |")));
    text.push_str(&format!("\n|{}\n", "---|".repeat(2 + COLUMNS.len())));
    for ((_, name), line) in found {
        // Writing to a string cannot fail.
        let _ = write!(text, "| {} | {} |", line["set"].as_str().unwrap_or(name), line["log_n"]);
        for (_, key, unit, digits) in COLUMNS {
            let cell = line[key].as_f64().map_or_else(|| "-".into(), |value| format!("{:.digits$}", value / unit));
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    text.push_str(
        "\nUsable bits are those between a refreshed message and the level that is refreshed; least and mean bits are log2 of \
         the largest slot of a message over the largest and the mean error. A program that does not say leaves a dash.\n\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_program_has_a_line_and_what_it_does_not_say_is_a_dash() {
        let ours = json!({"log_n": 16, "log_qp": 1740, "measured_bits": 20.16, "key_bytes": 1_390_000_000u64});
        let theirs = json!({"log_n": 16, "set": "N16", "log_qp": 1766.6, "measured_bits": 21.0});
        let text = table([("ours", &ours), ("peer", &theirs), ("ours", &json!({"log_n": 13}))].into_iter());
        assert!(text.contains("| ours | 16 | 1740 | - | - | 20.2 | - | - | 1.39 | - | - |\n"), "{text}");
        assert!(text.contains("| N16 | 16 | 1767 |") && text.lines().filter(|l| l.starts_with('|')).count() == 4);
        assert_eq!(table([("ours", &json!({"log_n": 13}))].into_iter()), "");
    }
}
