//! The programs that measure: building ours and the peers', and running them pinned to one core.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::cases::{Case, FHEANOR, LATTIGO, OPENFHE, POULPY, TFHE_NTT};
use crate::checks::ISA;
use crate::demo::CLI_PACKAGE;
use crate::machine;
use crate::workspace::cargo;

/// The name of our own program in tables.
pub(crate) const OURS: &str = "synchromesh";

const PYTHON_NOTE: &str = "OpenFHE's wheel needs CPython 3.10: python3.10 on PATH or ~/.pyenv/versions/3.10*";

/// The command that starts a program, or why there is none.
type Program = Result<Vec<String>, String>;

/// All programs of one comparison.
pub(crate) struct Programs {
    root: PathBuf,
    min_time: u32,
    prefix: Vec<String>,
    /// The instruction set of ours; the best one if none.
    isa: Option<&'static str>,
    found: BTreeMap<&'static str, Program>,
    failures: BTreeSet<String>,
}

impl Programs {
    pub(crate) fn new(root: &Path, core: usize, min_time: u32, isa: Option<&'static str>) -> Self {
        let prefix = prefix(core);
        let (found, failures) = (BTreeMap::new(), BTreeSet::new());
        Self { root: root.into(), min_time, prefix, isa, found, failures }
    }

    /// Builds ours, then every peer that `cases` name. A peer that cannot be built is remembered with the reason.
    ///
    /// # Errors
    /// When our own program cannot be built.
    pub(crate) fn build(&mut self, cases: &[Case], peers_only: bool) -> Result<()> {
        let ours = if peers_only { Err("--peers-only".into()) } else { Ok(self.lowered(build_ours(&self.root)?)) };
        self.found.insert(OURS, ours);
        let peers = self.root.join("peers");
        for call in cases.iter().flat_map(|case| &case.peers) {
            if self.found.contains_key(call.peer) {
                continue;
            }
            eprintln!("building peer {}", call.peer);
            let built = match call.peer {
                LATTIGO => build_lattigo(&peers.join("lattigo")),
                TFHE_NTT => build_crate(&peers.join("tfhe-ntt"), TFHE_NTT, None),
                FHEANOR => build_crate(&peers.join("fheanor"), FHEANOR, Some("+nightly")),
                POULPY => build_crate(&peers.join("poulpy"), POULPY, Some("+nightly")),
                OPENFHE => build_openfhe(&peers.join("openfhe")),
                other => Err(anyhow::anyhow!("no rule builds '{other}'")),
            };
            let program = built.map_err(|error| format!("{error:#}"));
            if let Err(why) = &program {
                eprintln!("peer {} is not run: {why}", call.peer);
            }
            self.found.insert(call.peer, program);
        }
        Ok(())
    }

    /// Ours on the chosen instruction set.
    fn lowered(&self, program: Vec<String>) -> Vec<String> {
        let variable = self.isa.map(|isa| ["env".to_owned(), format!("{ISA}={isa}")]);
        variable.into_iter().flatten().chain(program).collect()
    }

    /// Why some programs gave no times, one sentence each.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let absent =
            self.found.iter().filter_map(|(name, program)| Some(format!("{name}: {}", program.as_ref().err()?)));
        absent.chain(self.failures.iter().cloned()).collect()
    }

    /// Runs one program and returns the JSON objects it printed; none when it cannot run or fails.
    pub(crate) fn run(&mut self, name: &str, args: &str) -> Vec<Value> {
        let Some(Ok(program)) = self.found.get(name) else { return Vec::new() };
        let mut words = self.prefix.clone();
        words.extend_from_slice(program);
        words.extend(args.split_whitespace().map(str::to_owned));
        if name != OURS {
            words.extend(["--min-time".into(), format!("{}s", self.min_time)]);
        }
        match execute(&self.root, &words) {
            Ok(lines) => lines,
            Err(error) => {
                let why = format!("{name}: {error:#}");
                eprintln!("{why}");
                self.failures.insert(why);
                Vec::new()
            }
        }
    }

    /// What the reader of a table must know: machine, date, pinning, rounds.
    pub(crate) fn description(&self, rounds: usize) -> Value {
        json!({
            "date": machine::date(),
            "cpu": machine::cpu(),
            "isas": machine::isas().iter().filter(|(_, here)| *here).map(|(isa, _)| *isa).collect::<Vec<_>>(),
            "isa": self.isa.unwrap_or_else(machine::best_isa),
            "threads": 1,
            "started_with": self.prefix.join(" "),
            "load_average": machine::load_average(),
            "rounds": rounds,
            "rustc": machine::rustc(),
            "commit": machine::commit(&self.root),
        })
    }
}

/// The words before every command line: the highest priority this user may have, and one core.
fn prefix(core: usize) -> Vec<String> {
    let mut prefix = Vec::new();
    let priority = Command::new("nice").args(["-n", "-20", "true"]).output();
    if priority.is_ok_and(|output| output.status.success() && output.stderr.is_empty()) {
        prefix.extend(["nice", "-n", "-20"].map(str::to_owned));
    }
    let core = core.to_string();
    if quiet(Command::new("taskset").args(["-c", &core, "true"])) {
        prefix.extend(["taskset".into(), "-c".into(), core]);
    } else {
        eprintln!("note: cannot pin to core {core} with taskset; times will scatter more");
    }
    prefix
}

fn build_ours(root: &Path) -> Result<Vec<String>> {
    let output = Command::new(cargo())
        .args(["build", "--release", "--package", CLI_PACKAGE, "--message-format", "json-render-diagnostics"])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "cannot build {CLI_PACKAGE}; --peers-only measures the peers alone");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| {
            let ours = message["target"]["name"] == OURS;
            message["executable"].as_str().filter(|_| ours).map(|path| vec![path.to_owned()])
        })
        .with_context(|| format!("{CLI_PACKAGE} has no binary called {OURS}"))
}

/// Lattigo's program; builds it.
///
/// # Errors
/// Without Go, or its modules.
pub(crate) fn build_lattigo(dir: &Path) -> Result<Vec<String>> {
    command(dir, "go", &["build", "-o", "bench", "."])?;
    Ok(vec![shown(dir, "bench")])
}

/// The program of a crate that times another one, which may need a toolchain of its own.
fn build_crate(dir: &Path, peer: &str, toolchain: Option<&str>) -> Result<Vec<String>> {
    // What cargo itself was started by knows no other toolchain.
    let program = toolchain.map_or_else(cargo, |_| "cargo".to_owned());
    let build = ["build", "--release", "--quiet", "--locked", "--target-dir", "target"];
    command(dir, &program, &toolchain.into_iter().chain(build).collect::<Vec<_>>())?;
    Ok(vec![shown(dir, &format!("target/release/peer-{peer}"))])
}

fn build_openfhe(dir: &Path) -> Result<Vec<String>> {
    Ok(vec![python_environment(dir)?, shown(dir, "bench.py")])
}

/// The Python of an environment in `dir` with what `requirements.txt` there names, which OpenFHE's wheel is among.
///
/// # Errors
/// Without a CPython 3.10 or the package index.
pub(crate) fn python_environment(dir: &Path) -> Result<String> {
    let python = shown(dir, ".venv/bin/python");
    let stamp = dir.join(".venv/requirements.txt");
    let wanted = std::fs::read(dir.join("requirements.txt")).context("cannot read the requirements")?;
    if !std::fs::read(&stamp).is_ok_and(|have| have == wanted) {
        let base = python_3_10().context(PYTHON_NOTE)?;
        command(dir, &base, &["-m", "venv", "--clear", ".venv"])?;
        command(dir, &python, &["-m", "pip", "install", "--quiet", "-r", "requirements.txt"])?;
        std::fs::write(&stamp, wanted)?;
    }
    Ok(python)
}

/// A CPython 3.10: on PATH, or under pyenv.
fn python_3_10() -> Option<String> {
    let pyenv = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv/versions"));
    let installed = pyenv.and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let candidates = installed
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("3.10"))
        .map(|entry| entry.path().join("bin/python").display().to_string());
    std::iter::once("python3.10".to_owned()).chain(candidates).find(|python| {
        quiet(Command::new(python).args(["-c", "import sys, venv; assert sys.version_info[:2] == (3, 10)"]))
    })
}

fn shown(dir: &Path, file: &str) -> String {
    dir.join(file).display().to_string()
}

fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn command(dir: &Path, program: &str, args: &[&str]) -> Result<()> {
    let status = Command::new(program)
        .args(args)
        .current_dir(dir)
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {program}"))?;
    ensure!(status.success(), "`{program} {}` failed in {}", args.join(" "), dir.display());
    Ok(())
}

/// Runs a command line on one thread and parses every line of its standard output that is a JSON object.
fn execute(root: &Path, words: &[String]) -> Result<Vec<Value>> {
    let (program, args) = words.split_first().context("an empty command line")?;
    let output = Command::new(program)
        .args(args)
        .current_dir(root)
        .envs([("GOMAXPROCS", "1"), ("OMP_NUM_THREADS", "1"), ("RAYON_NUM_THREADS", "1")])
        .output()
        .with_context(|| format!("cannot start {program}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        // Reports go to others, whom paths of this machine tell nothing.
        let command = words.join(" ").replace(&format!("{}/", root.display()), "");
        bail!("`{command}` failed: {} {}", text.trim(), errors.trim());
    }
    let lines: Vec<Value> = match serde_json::from_str::<Value>(&text) {
        Ok(one) => vec![one],
        Err(_) => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
    };
    ensure!(!lines.is_empty(), "`{}` printed no JSON", words.join(" "));
    Ok(lines)
}
