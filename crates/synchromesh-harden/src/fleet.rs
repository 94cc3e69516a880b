//! Campaigns of all targets side by side, each in a process of its own, in rounds until enough was done; what was counted
//! is kept, so that a run that was ended goes on.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::fuzz;
use crate::report::Report;
use crate::targets::{Target, all, named};

/// What is asked for.
pub struct Request {
    /// Targets; none: all.
    pub targets: Vec<String>,
    /// Seconds for each target in a round.
    pub seconds: u64,
    /// Inputs in all after which no further round begins; 0: one round.
    pub executions: u64,
    /// Processes at a time.
    pub jobs: usize,
    /// Where mutants come from.
    pub seed: u64,
    /// Where inputs that broke something, the inputs at hand, and the counts are kept.
    pub folder: PathBuf,
}

/// Runs campaigns until enough was done.
///
/// # Errors
/// When a process cannot be started or the folder not be written.
pub fn run(request: &Request) -> Result<Report> {
    std::fs::create_dir_all(&request.folder).with_context(|| format!("cannot make {}", request.folder.display()))?;
    let targets: Vec<&Target> = match request.targets.as_slice() {
        [] => all().collect(),
        names => names.iter().map(|name| named(name)).collect::<Result<_>>()?,
    };
    let mut counts = Counts::read(request)?;
    let mut report = Report::new();
    loop {
        let round = counts.rounds;
        let done = Mutex::new((counts, report));
        let queue = Mutex::new(targets.iter());
        let next = || queue.lock().ok().and_then(|mut queue| queue.next().copied());
        std::thread::scope(|scope| {
            for _ in 0..request.jobs.max(1) {
                scope.spawn(|| {
                    while let Some(target) = next() {
                        let result = one(request, target, request.seed.wrapping_add(round));
                        if let Ok(mut done) = done.lock() {
                            let (counts, report) = &mut *done;
                            match result {
                                Ok(result) => counts.add(target.name, &result, report),
                                Err(error) => report.finding(&format!("{}: {error:#}", target.name), "see above"),
                            }
                        }
                    }
                });
            }
        });
        (counts, report) = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        counts.rounds += 1;
        counts.write(request)?;
        if counts.executions() >= request.executions || report.findings() > 0 {
            break;
        }
        println!("round {}: {} executions", counts.rounds, counts.executions());
    }
    report.count("targets", targets.len() as u64);
    report.count("executions", counts.executions());
    report.count("crashes", report.findings());
    report.count("executions_by_target", Value::Object(counts.by_target));
    Ok(report)
}

/// Runs one campaign in a process; its counts, and what it found with the command that repeats it.
fn one(request: &Request, target: &Target, seed: u64) -> Result<Value> {
    let held = request.folder.join(format!("{}.held", target.name));
    let output = Command::new(std::env::current_exe().context("this program")?)
        .args(["campaign", target.name, "--seconds", &request.seconds.to_string(), "--seed", &seed.to_string()])
        .arg("--folder")
        .arg(&request.folder)
        .stdout(Stdio::piped())
        .output()
        .context("cannot start a campaign")?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().last().map(serde_json::from_str::<Value>) {
        Some(Ok(counts)) if matches!(output.status.code(), Some(0 | 1)) => Ok(counts),
        _ => {
            let (_, repeat) = fuzz::save(&request.folder, target.name, &fuzz::held(&held)?)?;
            let last = String::from_utf8_lossy(&output.stderr);
            let last = last.lines().last().unwrap_or_default();
            Ok(json!({"executions": 0, "found": [[format!("the process died ({}): {last}", output.status), repeat]]}))
        }
    }
}

/// Runs a campaign in this process and reports it for [`run`].
///
/// # Errors
/// As [`fuzz::campaign`].
pub fn campaign(target: &Target, seed: u64, seconds: u64, folder: &Path) -> Result<Value> {
    let limit = fuzz::Limit { executions: u64::MAX, time: std::time::Duration::from_secs(seconds) };
    let held = folder.join(format!("{}.held", target.name));
    let tally = fuzz::campaign(target, seed, limit, Some(&held))?;
    let mut found = Vec::new();
    for (fault, input) in &tally.findings {
        found.push(json!([fault, fuzz::save(folder, target.name, input)?.1]));
    }
    Ok(json!({"executions": tally.executions, "accepted": tally.accepted, "answers": tally.answers, "found": found}))
}

/// Counts over all rounds of one build of this program.
struct Counts {
    rounds: u64,
    by_target: Map<String, Value>,
}

impl Counts {
    fn path(request: &Request) -> PathBuf {
        request.folder.join("record.json")
    }

    /// What the program is: counts of another build are not added to its own.
    fn build() -> Result<String> {
        let bytes = std::fs::read(std::env::current_exe()?).context("cannot read this program")?;
        Ok(blake3::hash(&bytes).to_hex().to_string())
    }

    /// The counts to go on from, where a total is asked for; else none.
    fn read(request: &Request) -> Result<Self> {
        let none = Self { rounds: 0, by_target: Map::new() };
        if request.executions == 0 {
            return Ok(none);
        }
        let text = std::fs::read_to_string(Self::path(request)).unwrap_or_default();
        let kept: Value = serde_json::from_str(&text).unwrap_or_default();
        match (kept["build"] == Self::build()?, kept["rounds"].as_u64(), kept["by_target"].as_object()) {
            (true, Some(rounds), Some(by_target)) => Ok(Self { rounds, by_target: by_target.clone() }),
            _ => Ok(none),
        }
    }

    fn write(&self, request: &Request) -> Result<()> {
        let text = json!({"build": Self::build()?, "rounds": self.rounds, "by_target": self.by_target}).to_string();
        std::fs::write(Self::path(request), text).context("cannot keep the counts")
    }

    fn executions(&self) -> u64 {
        self.by_target.values().filter_map(Value::as_u64).sum()
    }

    fn add(&mut self, name: &str, result: &Value, report: &mut Report) {
        let executions = result["executions"].as_u64().unwrap_or(0);
        let before = self.by_target.get(name).and_then(Value::as_u64).unwrap_or(0);
        self.by_target.insert(name.to_owned(), (before + executions).into());
        println!("{name}: {executions} executions, {} accepted, {} answers", result["accepted"], result["answers"]);
        for found in result["found"].as_array().into_iter().flatten() {
            let word = |at: usize| found[at].as_str().unwrap_or_default().to_owned();
            report.finding(&format!("{name}: {}", word(0)), &word(1));
        }
    }
}
