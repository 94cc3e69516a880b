//! A list of named steps, run in order, timed and counted; each failure is listed with the command that repeats it.

use std::fmt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::Result;

/// One external command with its environment; prints as the line one would type.
#[derive(Clone)]
pub(crate) struct Invocation {
    program: String,
    args: Vec<String>,
    set: Vec<(String, String)>,
    unset: Vec<String>,
}

impl Invocation {
    /// `program` with `args` split at spaces.
    pub(crate) fn new(program: impl Into<String>, args: &str) -> Self {
        Self {
            program: program.into(),
            args: args.split_whitespace().map(str::to_owned).collect(),
            set: Vec::new(),
            unset: Vec::new(),
        }
    }

    /// The cargo in use with `args` split at spaces.
    pub(crate) fn cargo(args: &str) -> Self {
        Self::new(crate::workspace::cargo(), args)
    }

    pub(crate) fn args(mut self, args: &[String]) -> Self {
        self.args.extend_from_slice(args);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: &str) -> Self {
        self.set.push((key.into(), value.into()));
        self
    }

    pub(crate) fn env_remove(mut self, key: &str) -> Self {
        self.unset.push(key.into());
        self
    }

    pub(crate) fn command(&self, dir: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(dir);
        for name in of_this_package() {
            command.env_remove(name);
        }
        command.envs(self.set.iter().map(|(key, value)| (key, value)));
        for key in &self.unset {
            command.env_remove(key);
        }
        command
    }
}

/// What cargo told this program of its own package. Build scripts of others look at the same variables, and would run again,
/// and all that stands on them be compiled again, whenever cargo is called from here and by hand in turn.
fn of_this_package() -> impl Iterator<Item = String> {
    let own = |name: &String| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(own)
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.set {
            write!(f, "{key}={} ", quoted(value))?;
        }
        let name = Path::new(&self.program)
            .file_name()
            .map_or_else(|| self.program.clone(), |n| n.to_string_lossy().into_owned());
        write!(f, "{name}")?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}

/// What a step does.
pub(crate) enum Action {
    /// Runs a command; it passes if the command succeeds.
    Run(Invocation),
    /// Runs a check inside this program; the text is its summary. The second field is the command that repeats it.
    Check(fn(&Path) -> Result<String>, &'static str),
    /// Cannot run here, and why.
    Skip(String),
}

/// A named step.
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) action: Action,
}

impl Step {
    pub(crate) fn run(name: impl Into<String>, invocation: Invocation) -> Self {
        Self { name: name.into(), action: Action::Run(invocation) }
    }

    pub(crate) fn check(name: &str, check: fn(&Path) -> Result<String>, repeat: &'static str) -> Self {
        Self { name: name.into(), action: Action::Check(check, repeat) }
    }

    pub(crate) fn skip(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { name: name.into(), action: Action::Skip(why.into()) }
    }
}

/// How many steps ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

impl Tally {
    /// Success unless a step failed.
    pub(crate) fn exit_code(self) -> ExitCode {
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// What happened: the tally, and a line for each step.
pub(crate) struct Record {
    pub(crate) tally: Tally,
    pub(crate) lines: Vec<String>,
}

/// Runs all `steps` in `root`, those behind a failure too: one run shows everything that is wrong. Prints the tally last.
pub(crate) fn run_all(root: &Path, steps: &[Step]) -> Record {
    let mut record = Record { tally: Tally::default(), lines: Vec::new() };
    let mut repeat = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        if let Action::Skip(why) = &step.action {
            record.skip(step, why);
            println!("skipped: {} ({why})", step.name);
        } else {
            println!("[{}/{}] {}", index + 1, steps.len(), step.name);
            let start = Instant::now();
            let failed = run_one(root, &step.action);
            record.finish(step, failed.is_none(), start.elapsed().as_secs_f64());
            repeat.extend(failed);
        }
    }
    println!();
    record.lines.iter().for_each(|line| println!("{line}"));
    if !repeat.is_empty() {
        println!("\nrepeat what failed with:");
        repeat.iter().for_each(|command| println!("  {command}"));
    }
    println!("{}", record.tally);
    record
}

impl Record {
    fn skip(&mut self, step: &Step, why: &str) {
        self.tally.skipped += 1;
        self.lines.push(format!("skipped: {} ({why})", step.name));
    }

    fn finish(&mut self, step: &Step, passed: bool, seconds: f64) {
        let (count, word) =
            if passed { (&mut self.tally.passed, "passed: ") } else { (&mut self.tally.failed, "failed: ") };
        *count += 1;
        self.lines.push(format!("{word} {} ({seconds:.1} s)", step.name));
    }
}

/// Runs one action; on failure returns the command that repeats it.
fn run_one(root: &Path, action: &Action) -> Option<String> {
    match action {
        Action::Skip(_) => None,
        Action::Run(invocation) => match invocation.command(root).status() {
            Ok(status) if status.success() => None,
            Ok(_) => Some(invocation.to_string()),
            Err(error) => {
                eprintln!("cannot start `{invocation}`: {error}");
                Some(invocation.to_string())
            }
        },
        Action::Check(check, repeat) => match check(root) {
            Ok(summary) => {
                println!("{summary}");
                None
            }
            Err(error) => {
                eprintln!("{error:#}");
                Some((*repeat).to_owned())
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    fn good(_: &Path) -> Result<String> {
        Ok("fine".into())
    }

    fn bad(_: &Path) -> Result<String> {
        bail!("broken on purpose")
    }

    #[test]
    fn steps_after_a_failure_run() {
        let steps = [
            Step::check("a", good, "a"),
            Step::skip("b", "not here"),
            Step::check("c", bad, "c"),
            Step::check("d", good, "d"),
        ];
        let Record { tally, lines } = run_all(Path::new("."), &steps);
        assert_eq!(tally, Tally { passed: 2, failed: 1, skipped: 1 });
        assert_eq!(lines.len(), 4);
        assert_eq!(tally.to_string(), "2 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn a_command_prints_as_one_would_type_it() {
        let invocation = Invocation::new("/opt/bin/cargo", "doc --no-deps").env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(invocation.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    }

    #[test]
    fn a_command_that_cannot_start_is_a_failure() {
        let missing = Action::Run(Invocation::new("no-such-program-anywhere", ""));
        assert!(run_one(Path::new("."), &missing).is_some());
    }
}
