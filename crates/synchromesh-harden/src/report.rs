//! What a part counted, as the last line that it prints.

use std::process::ExitCode;

use serde_json::{Map, Value};

/// Counts by name, and what was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    counts: Map<String, Value>,
    findings: u64,
}

impl Report {
    /// A report of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a count.
    pub fn count(&mut self, name: &str, value: impl Into<Value>) {
        self.counts.insert(name.to_owned(), value.into());
    }

    /// Notes something that must not be, and shows it with the command that repeats it.
    pub fn finding(&mut self, what: &str, repeat: &str) {
        self.findings += 1;
        println!("FINDING: {what}\n  repeat with: {repeat}");
    }

    /// How many findings there were.
    #[must_use]
    pub const fn findings(&self) -> u64 {
        self.findings
    }

    /// Prints the counts as one line of JSON, and says how the program is to end.
    #[must_use]
    pub fn end(mut self) -> ExitCode {
        self.counts.insert("findings".to_owned(), self.findings.into());
        println!("{}", Value::Object(self.counts));
        if self.findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
