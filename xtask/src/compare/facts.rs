//! What lines of programs say beside times: of refreshes sizes, precision, keys and memory, of signs depth and bounds,
//! of joint keys traffic.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

/// A table: what it is of, a key that only its lines have, its columns and what is said below it.
struct Table {
    of: &'static str,
    key: &'static str,
    columns: &'static [(&'static str, &'static str, Cell)],
    note: &'static str,
}

/// How a number is shown.
#[derive(Clone, Copy)]
enum Cell {
    /// Divided by the first, with so many digits.
    Number(f64, usize),
    /// As a power of two.
    Power,
    /// A list of numbers.
    List,
}

const WHOLE: Cell = Cell::Number(1.0, 0);

const TABLES: [Table; 4] = [
    Table {
        of: "refreshes",
        key: "measured_bits",
        columns: &[
            ("log QP", "log_qp", WHOLE),
            ("slots", "slots", WHOLE),
            ("usable bits", "usable_bits", WHOLE),
            ("least bits", "measured_bits", Cell::Number(1.0, 1)),
            ("mean bits", "mean_bits", Cell::Number(1.0, 1)),
            ("certified", "certified_bits", Cell::Number(1.0, 1)),
            ("keys GB", "key_bytes", Cell::Number(1e9, 2)),
            ("peak GB", "peak_bytes", Cell::Number(1e9, 1)),
            ("security", "security_bits", WHOLE),
        ],
        note: "Usable bits are those between a refreshed message and the level that is refreshed; least and mean bits are log2 of \
               the largest slot of a message over the largest and the mean error.",
    },
    Table {
        of: "refreshes modulo t",
        key: "after_bits",
        columns: &[
            ("log QP", "log_qp", WHOLE),
            ("values", "values", WHOLE),
            ("budget after, bits", "after_bits", WHOLE),
            ("keys GB", "key_bytes", Cell::Number(1e9, 2)),
            ("peak GB", "peak_bytes", Cell::Number(1e9, 1)),
            ("security", "security_bits", WHOLE),
        ],
        note: "Values are the integers modulo t that one refresh serves; the noise budget is the least after it.",
    },
    Table {
        of: "signs",
        key: "worst",
        columns: &[
            ("degrees", "degrees", Cell::List),
            ("levels", "depth", WHOLE),
            ("log Q", "log_q", WHOLE),
            ("off by", "worst", Cell::Power),
            ("certified", "certified", Cell::Power),
        ],
        note: "What results are off by is the most of all slots.",
    },
    Table {
        of: "joint keys",
        key: "generate_bytes",
        columns: &[
            ("keys MB", "generate_bytes", Cell::Number(1e6, 1)),
            ("decryptions MB", "decrypt_bytes", Cell::Number(1e6, 1)),
        ],
        note: "Megabytes are those that one party sends to one other.",
    },
];

/// Of each kind a line for each program and degree; nothing where no line is of any.
pub(crate) fn tables<'a>(lines: impl Iterator<Item = (&'a str, &'a Value)> + Clone) -> String {
    TABLES.iter().map(|table| table.of(lines.clone())).collect()
}

impl Table {
    fn of<'a>(&self, lines: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
        let own = lines.filter(|(_, line)| line[self.key].is_number());
        let found: BTreeMap<(u64, &str), &Value> =
            own.map(|(name, line)| ((u64::MAX - line["log_n"].as_u64().unwrap_or(0), name), line)).collect();
        if found.is_empty() {
            return String::new();
        }
        let mut text = format!("| {} | log N |", self.of);
        self.columns.iter().for_each(|(head, ..)| text.push_str(&format!(" {head} |")));
        text.push_str(&format!("\n|{}\n", "---|".repeat(2 + self.columns.len())));
        for ((_, name), line) in found {
            // Writing to a string cannot fail.
            let _ = write!(text, "| {} | {} |", line["set"].as_str().unwrap_or(name), line["log_n"]);
            for (_, key, cell) in self.columns {
                let _ = write!(text, " {} |", cell.of(&line[key]).unwrap_or_else(|| "-".into()));
            }
            text.push('\n');
        }
        text.push_str(&format!("\n{} A program that does not say leaves a dash.\n\n", self.note));
        text
    }
}

impl Cell {
    fn of(self, value: &Value) -> Option<String> {
        match self {
            Self::Number(unit, digits) => value.as_f64().map(|number| format!("{:.digits$}", number / unit)),
            Self::Power => value.as_f64().map(|number| format!("2^{:.2}", number.log2())),
            Self::List => {
                value.as_array().map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_program_has_a_line_and_what_it_does_not_say_is_a_dash() {
        let ours = json!({"log_n": 16, "log_qp": 1740, "measured_bits": 20.16, "key_bytes": 1_390_000_000u64});
        let theirs = json!({"log_n": 16, "set": "N16", "log_qp": 1766.6, "measured_bits": 21.0});
        let text = tables([("ours", &ours), ("peer", &theirs), ("ours", &json!({"log_n": 13}))].into_iter());
        assert!(text.contains("| ours | 16 | 1740 | - | - | 20.2 | - | - | 1.39 | - | - |\n"), "{text}");
        assert!(text.contains("| N16 | 16 | 1767 |") && text.lines().filter(|l| l.starts_with('|')).count() == 4);
        assert_eq!(tables([("ours", &json!({"log_n": 13}))].into_iter()), "");
    }

    #[test]
    fn signs_have_a_table_of_their_own() {
        let ours = json!({"log_n": 16, "degrees": [31, 7], "depth": 10, "worst": 0.25, "certified": 0.5});
        let text = tables([("ours", &ours), ("peer", &json!({"log_n": 16, "worst": 1.0}))].into_iter());
        assert!(text.contains("| ours | 16 | 31, 7 | 10 | - | 2^-2.00 | 2^-1.00 |\n"), "{text}");
        assert!(text.contains("| peer | 16 | - | - | - | 2^0.00 | - |\n") && !text.contains("refreshes"), "{text}");
    }
}
