//! `cargo xtask harden`: what keeps defects from landing, as parts that count what they tried and what they found.
//!
//! A part is a command that prints, as its last line, one JSON object of counts: numbers and words, among them
//! `findings`; or `skipped` with the reason. It exits with 1 if `findings` is not 0. What came before that line is for
//! people, and is shown as it comes.

mod adversary;
mod evidence;
mod known;
mod parts;
mod programs;
mod record;
mod sbom;
mod supply;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

use crate::steps::Invocation;
use crate::{machine, workspace};
use parts::PARTS;
use programs::Built;

/// Where the record for people is.
const RECORD: &str = "docs/reliability.md";

/// How long a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// All parts in less than twenty minutes, once their programs are built.
    Quick,
    /// Hours, for the counts that are published.
    Full,
}

impl Scale {
    const ALL: [Self; 2] = [Self::Quick, Self::Full];

    const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scale| word.strip_prefix("--") == Some(scale.name()))
    }
}

/// What a part runs.
enum Work {
    /// A program that was built with debug assertions, and its arguments.
    Program(&'static str, &'static str),
    /// A check inside this program.
    Check(fn(&Path, Scale) -> Result<Counts>),
}

/// A part: data, so that another one is another line.
struct Part {
    name: &'static str,
    /// What a run of it shows.
    shows: &'static str,
    /// What has to be built for it.
    built: Built,
    quick: Work,
    full: Work,
}

impl Part {
    const fn work(&self, scale: Scale) -> &Work {
        match scale {
            Scale::Quick => &self.quick,
            Scale::Full => &self.full,
        }
    }

    fn repeat(&self, scale: Scale) -> String {
        format!("cargo xtask harden --{} {}", scale.name(), self.name)
    }
}

/// What a part counted.
type Counts = Map<String, Value>;

/// Runs the parts named, or all, at the scale asked for (quick if none is); each writes its line of `docs/reliability.md`
/// and its counts to `target/harden/PART-SCALE.json`. `--no-record` leaves the page as it is.
///
/// # Errors
/// On a part that there is not, or when the record cannot be written.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let mut scale = Scale::Quick;
    let mut chosen: Vec<&Part> = Vec::new();
    let mut recorded = true;
    for word in args {
        if let Some(asked) = Scale::of(word) {
            scale = asked;
        } else if word == "--no-record" {
            recorded = false;
        } else if let Some(part) = PARTS.iter().find(|part| part.name == word) {
            chosen.push(part);
        } else {
            let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
            bail!(
                "'{word}' is no part; usage: cargo xtask harden [--quick|--full] [--no-record] [{}]",
                names.join("|")
            );
        }
    }
    if chosen.is_empty() {
        chosen = PARTS.iter().collect();
    }
    let root = workspace::root()?;
    let built = Instant::now();
    programs::build_all(&root, chosen.iter().map(|part| part.built))?;
    println!("programs: built in {:.0} s", built.elapsed().as_secs_f64());
    let start = Instant::now();
    let mut lines = Vec::new();
    let mut broken = Vec::new();
    for (index, part) in chosen.iter().enumerate() {
        println!("[{}/{}] {}, {}", index + 1, chosen.len(), part.name, scale.name());
        match run_part(&root, part, scale) {
            Ok(counts) => {
                save(&root, part, scale, &counts, recorded)?;
                let sound = is_sound(&counts);
                lines.push(format!(
                    "{} {}: {}",
                    if sound { "passed:" } else { "failed:" },
                    part.name,
                    record::line(&counts)
                ));
                broken.extend((!sound).then(|| part.repeat(scale)));
            }
            Err(error) => {
                eprintln!("{error:#}");
                lines.push(format!("failed: {}: {error}", part.name));
                broken.push(part.repeat(scale));
            }
        }
    }
    println!();
    lines.iter().for_each(|line| println!("{line}"));
    if !broken.is_empty() {
        println!("\nrepeat what failed with:");
        broken.iter().for_each(|command| println!("  {command}"));
    }
    println!(
        "{} parts, {} failed, {:.0} s after the programs were built",
        chosen.len(),
        broken.len(),
        start.elapsed().as_secs_f64()
    );
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs one part and adds the seconds it took to what it counted.
fn run_part(root: &Path, part: &Part, scale: Scale) -> Result<Counts> {
    let start = Instant::now();
    let mut counts = match part.work(scale) {
        Work::Check(check) => check(root, scale)?,
        Work::Program(program, args) => counts_of(root, &Built::Checked.start(program, args)?)?,
    };
    ensure!(
        counts.contains_key("skipped") || counts.get("findings").is_some_and(Value::is_u64),
        "{} counted no findings",
        part.name
    );
    counts.insert("seconds".into(), start.elapsed().as_secs().into());
    Ok(counts)
}

/// Runs a command, shows what it prints, and takes its last line as its counts.
fn counts_of(root: &Path, invocation: &Invocation) -> Result<Counts> {
    let mut command = invocation.command(root);
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start `{invocation}`"))?;
    let out = child.stdout.take().context("a pipe that was asked for")?;
    let mut last = String::new();
    for line in BufReader::new(out).lines() {
        last = line.with_context(|| format!("`{invocation}` printed something that is no text"))?;
        println!("{last}");
    }
    let status = child.wait()?;
    let counts: Counts =
        serde_json::from_str(&last).with_context(|| format!("`{invocation}` ended ({status}) without counts"))?;
    ensure!(
        status.code() == Some(i32::from(!is_sound(&counts))),
        "`{invocation}` ended with {status}, which does not fit its counts {last}"
    );
    Ok(counts)
}

fn is_sound(counts: &Counts) -> bool {
    counts.get("findings").and_then(Value::as_u64).unwrap_or(0) == 0
}

/// Keeps the counts as JSON and on the page.
fn save(root: &Path, part: &Part, scale: Scale, counts: &Counts, recorded: bool) -> Result<()> {
    let folder = workspace::target(root).join("harden");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut whole = counts.clone();
    whole.insert("part".into(), part.name.into());
    whole.insert("scale".into(), scale.name().into());
    let path = folder.join(format!("{}-{}.json", part.name, scale.name()));
    fs::write(&path, format!("{}\n", Value::Object(whole)))
        .with_context(|| format!("cannot write {}", path.display()))?;
    if !recorded {
        return Ok(());
    }
    let path = root.join(RECORD);
    let before = fs::read_to_string(&path).unwrap_or_default();
    let place =
        [machine::date(), machine::cpu(), machine::rustc(), format!("commit {}", machine::commit(root))].join(", ");
    let text = record::with_run(&before, part.name, scale, &place, counts);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_names_of_their_own() {
        let mut names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_command_counts_in_its_last_line() {
        let root = workspace::root().expect("a root");
        let of = |script: &str| {
            counts_of(&root, &Invocation::new("sh", "-c").args(&[script.to_owned()]))
                .map(|counts| Value::Object(counts).to_string())
        };
        assert_eq!(of("echo busy; echo '{\"findings\":0}'").ok().as_deref(), Some("{\"findings\":0}"));
        assert_eq!(of("echo '{\"findings\":2}'; exit 1").ok().as_deref(), Some("{\"findings\":2}"));
        for wrong in
            ["echo '{\"findings\":0}'; exit 1", "echo '{\"findings\":2}'", "echo nothing", "exit 1", "kill -9 $$"]
        {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
