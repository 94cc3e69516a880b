//! The built command in a directory of its own.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A directory and the command run in it.
pub(crate) struct Shell(tempfile::TempDir);

impl Shell {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    pub(crate) fn write(&self, file: &str, bytes: &[u8]) {
        std::fs::write(self.path(file), bytes).unwrap();
    }

    pub(crate) fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.path(file)).unwrap()
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> (Output, Value) {
        self.run_with(arguments, None)
    }

    fn run_with(&self, arguments: &[&str], data: Option<&str>) -> (Output, Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_synchromesh"));
        command.current_dir(self.0.path()).arg("--json").args(arguments).env_remove("SYNCHROMESH_ISA");
        if let Some(data) = data {
            command.env("XDG_DATA_HOME", self.path(data));
        }
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(!messages.contains("panicked"), "{arguments:?}: {messages}");
        let object = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {text} {messages}"));
        (output, object)
    }

    /// The object of a command that succeeds.
    pub(crate) fn succeed(&self, arguments: &[&str]) -> Value {
        let (output, object) = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {object}");
        object
    }

    /// The object of a command that ends in a typed error.
    pub(crate) fn fail(&self, arguments: &[&str]) -> Value {
        let (output, object) = self.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {object}");
        object
    }

    /// As [`Self::fail`], with `data` as the user's data directory.
    pub(crate) fn fail_in(&self, data: &str, arguments: &[&str]) -> Value {
        let (output, object) = self.run_with(arguments, Some(data));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {object}");
        object
    }

    /// The only column of a table with a header.
    pub(crate) fn numbers(&self, file: &str) -> Vec<f64> {
        let text = String::from_utf8(self.read(file)).unwrap();
        text.lines().skip(1).map(|line| line.parse().unwrap()).collect()
    }
}

/// The message of an error, which must be of this kind if one is named.
pub(crate) fn error(object: &Value, kind: &str) -> String {
    let error = &object["error"];
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    assert!(kind.is_empty() || text("kind") == kind, "expected {kind}: {object}");
    assert!(!text("kind").is_empty() && !text("message").is_empty() && !text("remedy").is_empty(), "{object}");
    text("message")
}
