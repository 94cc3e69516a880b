//! The built command in a directory of its own.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The built command.
const PROGRAM: &str = env!("CARGO_BIN_EXE_synchromesh");

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

    /// A plan of the smallest degree, its keys, and a column of three rows.
    pub(crate) fn small() -> Self {
        let shell = Self::new();
        shell.write("x.csv", b"v\n1\n2\n3\n");
        for command in [
            "plan --scheme bgv --depth 1 --insecure --out plan.json",
            "keygen --plan plan.json --out keys --insecure",
            "encrypt --keys keys --in x.csv --out x.ct --insecure",
        ] {
            shell.succeed(&command.split(' ').collect::<Vec<_>>());
        }
        shell
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.path(from), self.path(to)).unwrap();
    }

    /// The command, with its output as JSON.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        self.surround(command.arg("--json").args(arguments));
        command
    }

    fn surround(&self, command: &mut Command) {
        command.current_dir(self.0.path()).env_remove("SYNCHROMESH_ISA");
        // No machine profile of whoever runs the tests.
        command.env("XDG_DATA_HOME", self.path("no-profile"));
    }

    /// What the command prints, started by a shell that has done `before`, say set a limit; within some seconds.
    pub(crate) fn after(&self, before: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        let script = format!("{before}\nexec \"$0\" \"$@\"");
        command.args(["20", "bash", "-c", &script, PROGRAM, "--json"]).args(arguments);
        self.surround(&mut command);
        command.output().unwrap()
    }

    fn run(&self, arguments: &[&str]) -> (Output, Value) {
        self.run_with(arguments, None)
    }

    fn run_with(&self, arguments: &[&str], data: Option<&str>) -> (Output, Value) {
        let mut command = self.command(arguments);
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
