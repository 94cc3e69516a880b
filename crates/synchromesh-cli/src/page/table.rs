//! Rows as an HTML table in which `ours_x` and `paper_x` stand beside one another with their ratio.

use std::fmt::Write as _;

use crate::plot::escape;
use serde_json::{Map, Value};
use synchromesh_papers::reproduce::Row;

const OURS: &str = "ours_";
const THEIRS: &str = "paper_";

/// Endings of keys that are units, and how they are written.
const UNITS: [(&str, &str); 7] = [
    ("_ms", "ms"),
    ("_ns", "ns"),
    ("_s", "s"),
    ("_gib", "GiB"),
    ("_bits", "bits"),
    ("_bytes", "bytes"),
    ("_percent", "%"),
];

/// A column of the table.
#[derive(Debug, PartialEq)]
enum Column {
    /// One key.
    One(String),
    /// What was found here, and what the paper has.
    Both { ours: String, theirs: String },
}

/// How near ours are to theirs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Comparison {
    /// Pairs of which both are there.
    pub(super) cells: usize,
    /// Equal ones.
    pub(super) equal: usize,
    /// The median of ours divided by theirs, over numbers that are not zero.
    pub(super) median: Option<f64>,
}

/// The columns of rows.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    comparison: Comparison,
}

impl Table {
    /// Columns in the order of first occurrence; both of a pair where its first is.
    pub(super) fn new(rows: &[Row]) -> Self {
        let mut keys: Vec<&str> = Vec::new();
        for key in rows.iter().flat_map(Map::keys) {
            if !keys.contains(&key.as_str()) {
                keys.push(key);
            }
        }
        let mut columns: Vec<Column> = Vec::new();
        for key in &keys {
            let stem = key.strip_prefix(OURS).or_else(|| key.strip_prefix(THEIRS)).unwrap_or(key);
            let (ours, theirs) = (format!("{OURS}{stem}"), format!("{THEIRS}{stem}"));
            let paired = keys.contains(&ours.as_str()) && keys.contains(&theirs.as_str()) && stem != *key;
            let column = if paired { Column::Both { ours, theirs } } else { Column::One((*key).to_owned()) };
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let comparison = compare(&columns, rows);
        Self { columns, comparison }
    }

    pub(super) const fn comparison(&self) -> Comparison {
        self.comparison
    }

    /// The table; a row of which a key `measured` or `.._measured` is false is marked.
    pub(super) fn html(&self, rows: &[Row]) -> String {
        let mut html = String::from("<table>\n<thead>\n");
        html += &self.head();
        html.push_str("</thead>\n<tbody>\n");
        for row in rows {
            let guessed = row.iter().any(|(key, value)| key.ends_with("measured") && *value == Value::Bool(false));
            html.push_str(if guessed { "<tr class=\"extrapolated\">" } else { "<tr>" });
            for column in &self.columns {
                match column {
                    Column::One(key) => cell(&mut html, if key.starts_with(OURS) { "ours" } else { "" }, row.get(key)),
                    Column::Both { ours: key, theirs } => {
                        let (ours, theirs) = (row.get(key), row.get(theirs));
                        cell(&mut html, "ours", ours);
                        cell(&mut html, "", theirs);
                        let quotient = match pair(ours, theirs) {
                            Some((a, b)) if a == b => "=".to_owned(),
                            Some((Value::Number(a), Value::Number(b))) => {
                                quotient(key, a, b).map_or_else(String::new, ratio)
                            }
                            _ => String::new(),
                        };
                        let _ = write!(html, "<td class=\"ratio\">{quotient}</td>");
                    }
                }
            }
            html.push_str("</tr>\n");
        }
        html + "</tbody>\n</table>"
    }

    fn head(&self) -> String {
        let pairs = self.columns.iter().any(|column| matches!(column, Column::Both { .. }));
        let (mut first, mut second) = (String::from("<tr>"), String::from("<tr>"));
        for column in &self.columns {
            match column {
                Column::One(key) => {
                    let rows = if pairs { " rowspan=\"2\"" } else { "" };
                    let label = match (key.strip_prefix(OURS), key.strip_prefix(THEIRS)) {
                        (Some(stem), _) => format!("ours: {}", label(stem)),
                        (_, Some(stem)) => format!("theirs: {}", label(stem)),
                        _ => label(key),
                    };
                    let _ = write!(first, "<th{rows}>{label}</th>");
                }
                Column::Both { ours, .. } => {
                    let _ = write!(first, "<th colspan=\"3\">{}</th>", label(ours.trim_start_matches(OURS)));
                    second.push_str("<th class=\"ours\">ours</th><th>theirs</th><th>÷</th>");
                }
            }
        }
        if pairs { format!("{first}</tr>\n{second}</tr>\n") } else { format!("{first}</tr>\n") }
    }
}

/// Both values, where there are both and neither is null.
fn pair<'a>(ours: Option<&'a Value>, theirs: Option<&'a Value>) -> Option<(&'a Value, &'a Value)> {
    ours.zip(theirs).filter(|(a, b)| !a.is_null() && !b.is_null())
}

/// Ours divided by theirs; none for differences in per cent, whose quotient says nothing.
fn quotient(key: &str, a: &serde_json::Number, b: &serde_json::Number) -> Option<f64> {
    let (a, b) = (a.as_f64()?, b.as_f64()?);
    (a * b > 0.0 && !key.ends_with("_percent")).then(|| a / b)
}

fn compare(columns: &[Column], rows: &[Row]) -> Comparison {
    let mut found = Comparison { cells: 0, equal: 0, median: None };
    let mut ratios = Vec::new();
    for row in rows {
        for column in columns {
            let Column::Both { ours, theirs } = column else { continue };
            let Some((a, b)) = pair(row.get(ours), row.get(theirs)) else { continue };
            found.cells += 1;
            found.equal += usize::from(a == b);
            if let (Value::Number(a), Value::Number(b)) = (a, b) {
                ratios.extend(quotient(ours, a, b));
            }
        }
    }
    ratios.sort_by(f64::total_cmp);
    found.median = ratios.get(ratios.len() / 2).copied();
    found
}

/// Two digits after the point, or as many as show something.
pub(super) fn ratio(value: f64) -> String {
    if value >= 0.01 { format!("{value:.2}") } else { format!("{value:.1e}") }
}

/// A key in words with its unit.
fn label(key: &str) -> String {
    let unit = UNITS.iter().find_map(|(ending, unit)| key.strip_suffix(ending).map(|stem| (stem, *unit)));
    match unit.or_else(|| UNITS.iter().find(|(ending, _)| &ending[1..] == key).map(|(_, unit)| ("", *unit))) {
        Some((stem, unit)) => format!("{} <small>{unit}</small>", escape(&stem.replace('_', " "))),
        None => escape(&key.replace('_', " ")),
    }
}

fn cell(html: &mut String, class: &str, value: Option<&Value>) {
    let (mut class, text) = (class.to_owned(), text(value));
    if value.is_some_and(|value| value.is_string() || value.is_array()) {
        class += " words";
    }
    let class = if class.is_empty() { class } else { format!(" class=\"{}\"", class.trim_start()) };
    let _ = write!(html, "<td{class}>{}</td>", escape(&text));
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "–".to_owned(),
        Some(Value::Bool(value)) => if *value { "yes" } else { "no" }.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(values)) => values.iter().map(text_of_one).collect::<Vec<_>>().join(", "),
        Some(other) => text_of_one(other),
    }
}

fn text_of_one(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows() -> Vec<Row> {
        let row = |value: Value| value.as_object().unwrap().clone();
        vec![
            row(json!({"l": 4, "ours_ntt": 24, "paper_ntt": 24, "ours_key_ms": 1.5, "alone": [1, 2]})),
            row(json!({"l": 5, "ours_ntt": 12, "paper_ntt": 24, "paper_key_ms": 3.0, "paper_only_gib": null})),
            row(json!({"l": 6, "ours_ntt": 0, "paper_ntt": 24, "ours_key_ms": 1.0, "paper_key_ms": 4.0})),
        ]
    }

    #[test]
    fn pairs_are_one_column_and_the_rest_alone() {
        let table = Table::new(&rows());
        let both = |stem: &str| Column::Both { ours: format!("ours_{stem}"), theirs: format!("paper_{stem}") };
        let one = |key: &str| Column::One(key.to_owned());
        assert_eq!(table.columns, [one("l"), both("ntt"), both("key_ms"), one("alone"), one("paper_only_gib")]);
        let html = table.html(&rows());
        assert!(html.contains("<td class=\"ours\">24</td><td>24</td><td class=\"ratio\">=</td>"), "{html}");
        assert!(html.contains("<td class=\"ours\">12</td><td>24</td><td class=\"ratio\">0.50</td>"));
        assert!(html.contains("<td class=\"ours\">0</td><td>24</td><td class=\"ratio\"></td>"));
        assert!(html.contains("<td class=\"ours\">–</td><td>3.0</td>"));
        assert!(html.contains("<td class=\"words\">1, 2</td>"));
        assert!(html.contains("theirs: only <small>GiB</small>") && html.contains("key <small>ms</small>"));
        let widths = |line: &str| line.matches("<td").count();
        assert!(html.lines().filter(|line| line.contains("<td")).all(|line| widths(line) == 9));
    }

    #[test]
    fn comparisons_count_what_both_have() {
        let Comparison { cells, equal, median } = Table::new(&rows()).comparison();
        assert_eq!((cells, equal, median), (4, 1, Some(0.5)));
        assert_eq!(Table::new(&[]).comparison(), Comparison { cells: 0, equal: 0, median: None });
        let percent = json!({"ours_x_percent": 5, "paper_x_percent": 9}).as_object().unwrap().clone();
        assert_eq!(Table::new(&[percent]).comparison(), Comparison { cells: 1, equal: 0, median: None });
        assert_eq!((ratio(0.25), ratio(0.001)), ("0.25".to_owned(), "1.0e-3".to_owned()));
    }
}
