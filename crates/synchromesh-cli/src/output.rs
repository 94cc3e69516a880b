//! What a command prints: with `--json` one object on standard output and nothing else there; without, aligned lines.
//! Exit code 0 for success, 1 for a failed check, 2 for an error.

use crate::error::Error;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use synchromesh_ring::threads::spawn;

/// The result of a command: an object, and which of its checks failed.
#[derive(Clone, Debug)]
pub struct Report {
    object: Map<String, Value>,
    failed: Vec<String>,
}

impl Report {
    /// A report of the fields of `value`, which is a struct or a map.
    ///
    /// # Errors
    /// [`Error::Usage`] for anything else.
    pub fn new(value: &impl Serialize) -> Result<Self, Error> {
        match serde_json::to_value(value) {
            Ok(Value::Object(object)) => Ok(Self { object, failed: Vec::new() }),
            Ok(_) => Err(Error::Usage { message: "the result is not an object".into() }),
            Err(error) => Err(Error::Usage { message: error.to_string() }),
        }
    }

    /// The report without some keys, for reading.
    #[must_use]
    pub fn without(mut self, keys: &[&str]) -> Self {
        self.object.retain(|key, _| !keys.contains(&key.as_str()));
        self
    }

    /// Records a check: `what` failed unless `passed`.
    #[must_use]
    pub fn check(mut self, passed: bool, what: &str) -> Self {
        if !passed {
            self.failed.push(what.to_owned());
        }
        self
    }
}

/// Prints the result of a command and gives its exit code: 2 also where the result cannot be printed.
#[must_use]
pub fn finish(json: bool, result: Result<Report, Error>) -> ExitCode {
    let (stdout, stderr, code) = render(json, result);
    let mut out = std::io::stdout().lock();
    let written = out.write_all(stdout.as_bytes()).and_then(|()| out.flush());
    say(&stderr);
    told(written, ExitCode::from(code))
}

/// The exit code of a command that has said what it had to say; whose words are lost, has failed.
pub(crate) fn told(written: std::io::Result<()>, code: ExitCode) -> ExitCode {
    let Err(error) = written else { return code };
    say(&format!(
        "error: the result could not be printed: {error}\nremedy: see that standard output is read to its end\n"
    ));
    ExitCode::from(2)
}

/// Writes to standard error, as far as anyone listens.
pub fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Whether the command was asked for JSON, for when there is no memory to pass that on.
static JSON: AtomicBool = AtomicBool::new(false);

/// To be called before the work: how the command ends if memory runs out.
pub(crate) fn prepare(json: bool) {
    JSON.store(json, Ordering::Relaxed);
    // Makes its buffer now.
    let _ = std::io::stdout().flush();
}

/// Whether a thread has found that there is no memory, and ends the command.
static ENDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether it is this one.
    static ENDED_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Ends the command because memory that it needs cannot be had; of several threads that find that, the first says so. Takes
/// no memory itself.
pub fn out_of_memory(bytes: usize) -> ! {
    if ENDED_HERE.get() {
        std::process::abort();
    }
    while ENDING.swap(true, Ordering::AcqRel) {
        // Until the other has ended the process.
        std::thread::sleep(Duration::from_secs(1));
    }
    ENDED_HERE.set(true);
    let mut text = [0; 256];
    let mut rest = &mut text[..];
    let (message, remedy) = ("bytes of memory cannot be had", "free memory, or raise the limit of this process");
    let json = JSON.load(Ordering::Relaxed);
    let _ = if json {
        let head = r#"{"error":{"kind":"memory","message":""#;
        writeln!(rest, r#"{head}{bytes} {message}","remedy":"{remedy}"}}}}"#)
    } else {
        writeln!(rest, "error: {bytes} {message}\nremedy: {remedy}")
    };
    let left = rest.len();
    let text = &text[..text.len() - left];
    let _ = if json { std::io::stdout().write_all(text) } else { std::io::stderr().write_all(text) };
    std::process::exit(2)
}

/// Standard output, standard error, exit code.
fn render(json: bool, result: Result<Report, Error>) -> (String, String, u8) {
    match result {
        Ok(Report { object, failed }) => {
            let code = u8::from(!failed.is_empty());
            let messages = failed.iter().map(|what| format!("check failed: {what}\n")).collect();
            let stdout = if json { format!("{}\n", Value::Object(object)) } else { lines(&object) };
            (stdout, messages, code)
        }
        Err(error) => {
            let (kind, message, remedy) = (error.kind(), error.to_string(), error.remedy());
            if json {
                let mut object = json!({ "error": { "kind": kind, "message": message, "remedy": remedy } });
                let void = error.void();
                if !void.is_empty() {
                    object["error"]["void"] = void.into();
                }
                (format!("{object}\n"), String::new(), 2)
            } else {
                (String::new(), format!("error: {message}\nremedy: {remedy}\n"), 2)
            }
        }
    }
}

/// Aligned `key  value` lines; objects become indented sections and lists of objects tables.
fn lines(object: &Map<String, Value>) -> String {
    let mut out = String::new();
    section(&mut out, object, 0);
    out
}

fn section(out: &mut String, object: &Map<String, Value>, indent: usize) {
    let pad = " ".repeat(indent);
    let width = object.keys().map(|k| label(k).chars().count()).max().unwrap_or(0);
    for (key, value) in object {
        match value {
            Value::Object(inner) => {
                out.push_str(&format!("{pad}{}\n", label(key)));
                section(out, inner, indent + 2);
            }
            Value::Array(rows) if !rows.is_empty() && rows.iter().all(Value::is_object) => {
                out.push_str(&format!("{pad}{}\n", label(key)));
                table(out, rows, indent + 2);
            }
            Value::Array(sentences) if sentences.iter().any(|s| s.as_str().is_some_and(|s| s.contains(' '))) => {
                out.push_str(&format!("{pad}{}\n", label(key)));
                sentences.iter().for_each(|s| out.push_str(&format!("{pad}  - {}\n", text(key, s))));
            }
            _ => out.push_str(&format!("{pad}{:width$}  {}\n", label(key), text(key, value))),
        }
    }
}

/// Rows of objects under every key that one of them has.
fn table(out: &mut String, rows: &[Value], indent: usize) {
    let mut keys: Vec<&String> = Vec::new();
    for key in rows.iter().filter_map(Value::as_object).flat_map(Map::keys) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut lines = vec![keys.iter().map(|k| label(k)).collect::<Vec<_>>()];
    for row in rows {
        lines.push(keys.iter().map(|k| text(k, row.get(k.as_str()).unwrap_or(&Value::Null))).collect());
    }
    let widths: Vec<usize> =
        (0..keys.len()).map(|c| lines.iter().map(|l| l[c].chars().count()).max().unwrap_or(0)).collect();
    for line in lines {
        let cells: Vec<_> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        out.push_str(&format!("{}{}\n", " ".repeat(indent), cells.join("  ").trim_end()));
    }
}

/// A key in words; its unit, if it ends in one, is with the value.
fn label(key: &str) -> String {
    let stem = ["_bytes", "_ms", "_ns", "_bits"].iter().find_map(|unit| key.strip_suffix(unit)).unwrap_or(key);
    stem.replace('_', " ")
}

/// A value for reading, with the unit that the key says.
fn text(key: &str, value: &Value) -> String {
    let number = match value {
        Value::Number(number) => number,
        Value::Null => return "-".to_owned(),
        Value::Array(items) if items.is_empty() => return "none".to_owned(),
        Value::String(string) => return string.clone(),
        Value::Array(items) => return items.iter().map(|item| text(key, item)).collect::<Vec<_>>().join(", "),
        other => return other.to_string(),
    };
    if key.ends_with("_bytes") || key == "bytes" {
        return number.as_u64().map_or_else(|| number.to_string(), bytes);
    }
    let shown = match number.as_f64() {
        Some(real) if number.is_f64() => significant(real),
        _ => number.to_string(),
    };
    let unit = [("_ms", " ms"), ("_ns", " ns"), ("_bits", " bits"), ("seconds", " s")];
    let unit = unit.iter().find(|(suffix, _)| key.ends_with(suffix)).map_or("", |(_, unit)| unit);
    format!("{shown}{unit}")
}

/// Four significant digits.
fn significant(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e7).contains(&value.abs()) {
        return format!("{value:.3e}");
    }
    let whole_digits = if value == 0.0 { 1 } else { value.abs().log10().floor() as i32 + 1 };
    format!("{value:.*}", (4 - whole_digits).clamp(0, 6) as usize)
}

/// Bytes in the largest binary unit that leaves a whole part.
fn bytes(count: u64) -> String {
    let (mut value, mut units) = (count as f64, ["B", "KiB", "MiB", "GiB", "TiB"].iter().peekable());
    while let Some(unit) = units.next() {
        if value < 1024.0 || units.peek().is_none() {
            return if *unit == "B" { format!("{count} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{count} B")
}

/// A progress bar on standard error; silent with `--json` and where standard error is no terminal.
#[must_use]
pub fn progress(json: bool, steps: usize) -> ProgressBar {
    let shown = !json && std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:32.cyan/dim} {pos}/{len}  {msg}  {elapsed}") {
        bar.set_style(style);
    }
    // The bar's clock is a thread, which not every process may have.
    if shown && spawn("clock", || ()).is_ok() {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Sample {
        scheme: &'static str,
        median_ms: f64,
        key_bytes: u64,
        security_bits: u32,
        q_bits: [u32; 3],
        bgv: Inner,
        devices: Vec<Device>,
    }

    #[derive(Serialize)]
    struct Inner {
        exact: bool,
        seconds: f64,
    }

    #[derive(Serialize)]
    struct Device {
        name: &'static str,
        memory_bytes: u64,
    }

    #[test]
    fn tables_have_every_key_that_a_row_has() {
        let mut out = String::new();
        table(&mut out, &[json!({"level": 0}), json!({"level": 1, "borrowed": 2})], 0);
        assert_eq!(out, "level  borrowed\n0      -\n1      2\n");
    }

    fn sample() -> Report {
        Report::new(&Sample {
            scheme: "ckks",
            median_ms: 12.345_678,
            key_bytes: 5 << 20,
            security_bits: 131,
            q_bits: [60, 50, 50],
            bgv: Inner { exact: true, seconds: 0.000_012 },
            devices: vec![
                Device { name: "first", memory_bytes: 1 },
                Device { name: "the second", memory_bytes: 139 << 30 },
            ],
        })
        .unwrap()
    }

    #[test]
    fn json_is_one_object_with_the_keys_in_order() {
        let (stdout, stderr, code) = render(true, Ok(sample()));
        assert_eq!((stderr.as_str(), code), ("", 0));
        assert_eq!(stdout.matches('\n').count(), 1);
        assert!(stdout.starts_with("{\"scheme\":\"ckks\",\"median_ms\":12.345678,\"key_bytes\":5242880,"), "{stdout}");
    }

    #[test]
    fn people_get_aligned_lines_with_units() {
        let (stdout, ..) = render(false, Ok(sample()));
        let expected = "\
scheme    ckks
median    12.35 ms
key       5.0 MiB
security  131 bits
q         60 bits, 50 bits, 50 bits
bgv
  exact    true
  seconds  1.200e-5 s
devices
  name        memory
  first       1 B
  the second  139.0 GiB
";
        assert_eq!(stdout, expected);
    }

    #[test]
    fn errors_are_an_object_or_two_lines_and_code_2() {
        let error = || Err(Error::Usage { message: "no \"such\" flag".into() });
        let (stdout, stderr, code) = render(true, error());
        let object: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(object["error"]["kind"], "usage");
        assert_eq!(object["error"]["message"], "no \"such\" flag");
        assert_eq!(object["error"]["remedy"], "run the command with --help");
        assert_eq!((stderr.as_str(), code), ("", 2));
        let (stdout, stderr, code) = render(false, error());
        assert_eq!((stdout.as_str(), code), ("", 2));
        assert_eq!(stderr, "error: no \"such\" flag\nremedy: run the command with --help\n");
    }

    #[test]
    fn a_failed_check_is_code_1_and_still_reports() {
        let (stdout, stderr, code) = render(true, Ok(sample().check(true, "a").check(false, "exactness")));
        assert!(stdout.contains("\"scheme\""));
        assert_eq!((stderr.as_str(), code), ("check failed: exactness\n", 1));
    }

    #[test]
    fn numbers_keep_four_digits() {
        for (value, shown) in
            [(0.0, "0.000"), (1.0, "1.000"), (123_456.0, "123456"), (0.012_345_6, "0.01235"), (-2.5e9, "-2.500e9")]
        {
            assert_eq!(significant(value), shown);
        }
        for (count, shown) in [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (u64::MAX, "16777216.0 TiB")] {
            assert_eq!(bytes(count), shown);
        }
    }

    #[test]
    fn what_is_no_object_is_no_report() {
        assert!(Report::new(&[1, 2]).is_err());
    }
}
