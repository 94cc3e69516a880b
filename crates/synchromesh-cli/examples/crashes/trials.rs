//! One trial: a directory as it was, a command, a fault, and what must hold after it.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// SIGKILL at some moment.
    Kill,
    /// No file may be larger than some KiB.
    FileSize,
    /// A file system of some KiB.
    FullDisk,
    /// Some MiB of addresses.
    Memory,
    /// A folder that cannot be written to.
    ReadOnly,
    /// The same command twice at once.
    Twice,
}

impl Fault {
    const ALL: [Self; 6] = [Self::Kill, Self::FileSize, Self::FullDisk, Self::Memory, Self::ReadOnly, Self::Twice];

    const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::FileSize => "file_size",
            Self::FullDisk => "full_disk",
            Self::Memory => "memory",
            Self::ReadOnly => "read_only",
            Self::Twice => "twice",
        }
    }
}

/// A command that writes, and what it writes, below the directory `w`.
struct Case {
    command: &'static str,
    out: &'static str,
    holds: Holds,
}

/// How the file of a case is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Holds {
    /// An encrypted column of these numbers.
    Column(&'static str),
    /// Exactly what the command writes when nothing happens.
    Text,
    /// A directory of keys.
    Keys,
    /// A directory of keys for triples.
    Dealt,
}

impl Holds {
    /// Whether it is a folder of secrets that are other ones each time and are never replaced.
    const fn is_folder(self) -> bool {
        matches!(self, Self::Keys | Self::Dealt)
    }
}

static CASES: [Case; 8] = [
    Case { command: "keygen --plan plan.json --out w/keys", out: "w/keys", holds: Holds::Keys },
    Case {
        command: "triples deal --parties 2 --shape 2x2x2 --log-n 11 --out w/dealt",
        out: "w/dealt",
        holds: Holds::Dealt,
    },
    Case { command: "encrypt --keys keys --in x.csv --out w/z.ct", out: "w/z.ct", holds: Holds::Column("1\n2\n3\n") },
    Case { command: "eval x*x --keys keys x=x.ct --out w/z.ct", out: "w/z.ct", holds: Holds::Column("1\n4\n9\n") },
    Case { command: "decrypt --keys keys --in x.ct --out w/z.csv", out: "w/z.csv", holds: Holds::Text },
    Case { command: "decrypt --keys keys --in x.ct --out w/z.npy", out: "w/z.npy", holds: Holds::Text },
    Case { command: "plan --scheme bgv --depth 1 --out w/z.json", out: "w/z.json", holds: Holds::Text },
    Case { command: "inspect plan.json --plot w/z.svg", out: "w/z.svg", holds: Holds::Text },
];

/// What is in a file system of a trial's own is kept where there is a folder for it.
const KEEP: &str = "if [ -d after ]; then cp -a w/. after/; fi";

/// What an older run left where a case writes.
const OLDER: &[u8] = b"what was there before\n";

/// What came of all trials.
#[derive(Default)]
pub(crate) struct Counts {
    trials: u64,
    by_fault: BTreeMap<&'static str, u64>,
    /// Trials that this machine could not make.
    impossible: u64,
    /// Ended by the fault, with or without a word.
    stopped: u64,
    torn: u64,
    lost: u64,
    untyped: u64,
    stuck: u64,
    leftovers: u64,
    /// In words.
    pub(crate) failures: Vec<String>,
}

impl Counts {
    pub(crate) fn json(&self) -> Value {
        let mut counts = json!({
            "trials": self.trials, "not_possible_here": self.impossible, "stopped": self.stopped, "torn": self.torn,
            "lost": self.lost, "untyped": self.untyped, "stuck": self.stuck, "leftovers": self.leftovers,
            "findings": self.failures.len(),
        });
        self.by_fault.iter().for_each(|(fault, count)| counts[*fault] = (*count).into());
        counts
    }
}

/// What a trial found wrong.
enum Wrong {
    /// A file that is neither the old nor the new one.
    Torn,
    /// A file that was reported written, and is not there.
    Lost,
    /// An end that is neither a result nor a typed error.
    Untyped(String),
    /// A second try, undisturbed, that failed.
    Stuck(String),
    /// Hidden files after a second try.
    Leftover(String),
}

/// Makes the trials; an error where they cannot even begin.
pub(crate) fn run(program: &Path, trials: u64, seed: u64) -> io::Result<Counts> {
    let directory = tempfile::tempdir()?;
    let mut bench = Bench::new(program, directory.path(), seed)?;
    let mut counts = Counts::default();
    for trial in 0..trials {
        let case = &CASES[trial as usize % CASES.len()];
        let fault = Fault::ALL[trial as usize / CASES.len() % Fault::ALL.len()];
        let Some(wrong) = bench.trial(case, fault, &mut counts)? else {
            counts.impossible += 1;
            continue;
        };
        counts.trials += 1;
        *counts.by_fault.entry(fault.name()).or_default() += 1;
        for wrong in wrong {
            let (count, what) = match wrong {
                Wrong::Torn => (&mut counts.torn, "torn".to_owned()),
                Wrong::Lost => (&mut counts.lost, "reported written, and not there".to_owned()),
                Wrong::Untyped(what) => (&mut counts.untyped, format!("no typed error: {what}")),
                Wrong::Stuck(what) => (&mut counts.stuck, format!("a second try fails: {what}")),
                Wrong::Leftover(name) => (&mut counts.leftovers, format!("left {name}")),
            };
            *count += 1;
            counts.failures.push(format!("trial {trial}, {}, {}: {what}", fault.name(), case.command));
        }
    }
    Ok(counts)
}

/// A directory in which trials are made, and what its commands write when nothing happens.
struct Bench {
    program: PathBuf,
    directory: PathBuf,
    random: u64,
    /// For each case: what it writes, and how long it takes.
    usual: Vec<(Vec<u8>, Duration)>,
    /// Whether file systems can be mounted here.
    mounts: bool,
    /// Addresses in KiB that the system needs to load the program.
    least_kib: u64,
}

impl Bench {
    fn new(program: &Path, directory: &Path, seed: u64) -> io::Result<Self> {
        let program = program.canonicalize()?;
        let directory = directory.to_owned();
        let mut bench = Self { program, directory, random: seed, usual: Vec::new(), mounts: false, least_kib: 0 };
        fs::write(bench.path("x.csv"), b"v\n1\n2\n3\n")?;
        for command in [
            "plan --scheme bgv --depth 1 --out plan.json",
            "keygen --plan plan.json --out keys",
            "encrypt --keys keys --in x.csv --out x.ct",
        ] {
            bench.undisturbed(command).map_err(io::Error::other)?;
        }
        for case in &CASES {
            bench.clean()?;
            let start = Instant::now();
            bench.undisturbed(case.command).map_err(io::Error::other)?;
            let took = start.elapsed();
            let usual = if case.holds.is_folder() { Vec::new() } else { fs::read(bench.path(case.out))? };
            bench.usual.push((usual, took));
        }
        let mount = bench.script("mount -t tmpfs -o size=64k none w", "true").output();
        bench.mounts = mount.is_ok_and(|output| output.status.success());
        let loads = |kib: &u64| {
            let output = bench.script(&format!("ulimit -v {kib}"), "info").output();
            output.is_ok_and(|output| output.status.success() || typed(&output).is_ok())
        };
        bench.least_kib = (8_000..1_000_000).step_by(1_000).find(loads).unwrap_or(1_000_000);
        Ok(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn clean(&self) -> io::Result<()> {
        let w = self.path("w");
        if w.exists() {
            fs::remove_dir_all(&w)?;
        }
        fs::create_dir(&w)
    }

    fn command(&self, command: &str) -> Command {
        let mut built = Command::new(&self.program);
        built.arg("--json").args(command.split(' ')).args(insecure(command));
        self.surround(&mut built);
        built
    }

    /// The command after some lines of a shell, with mounts of its own if it mounts.
    fn script(&self, before: &str, command: &str) -> Command {
        let mut built = Command::new(if before.contains("mount") { "unshare" } else { "env" });
        if before.contains("mount") {
            built.arg("-m");
        }
        built.args(["bash", "-c", &format!("set -e\n{before}\nset +e\n\"$@\"; code=$?; {KEEP}\nexit $code"), "-"]);
        if command == "true" {
            built.arg("true");
        } else {
            built.arg(&self.program).arg("--json").args(command.split(' ')).args(insecure(command));
        }
        self.surround(&mut built);
        built
    }

    fn surround(&self, command: &mut Command) {
        command.current_dir(&self.directory).env("XDG_DATA_HOME", self.path("none")).env_remove("SYNCHROMESH_ISA");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    /// Runs a command that must succeed.
    fn undisturbed(&self, command: &str) -> Result<(), String> {
        let output = self.command(command).output().map_err(|e| e.to_string())?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stdout).into_owned()) }
    }

    /// What is wrong after a trial; `None` if it cannot be made here.
    fn trial(&mut self, case: &Case, fault: Fault, counts: &mut Counts) -> io::Result<Option<Vec<Wrong>>> {
        self.clean()?;
        let replaced = !case.holds.is_folder() && self.below(2) == 0;
        if replaced {
            fs::write(self.path(case.out), OLDER)?;
        }
        let mut wrong = Vec::new();
        let Some(outputs) = self.disturbed(case, fault)? else { return Ok(None) };
        let succeeded = outputs.iter().any(|output| output.status.success());
        counts.stopped += u64::from(!succeeded);
        for output in outputs.iter().filter(|output| !output.status.success()) {
            let killed = fault == Fault::Kill && output.status.code().is_none();
            if !killed && let Err(what) = typed(output) {
                wrong.push(Wrong::Untyped(what));
            }
        }
        let state = self.state(case);
        match state {
            State::None if replaced => wrong.push(Wrong::Torn),
            State::None | State::Older if succeeded => wrong.push(Wrong::Lost),
            State::Torn => wrong.push(Wrong::Torn),
            State::None | State::Older | State::New => {}
        }
        if !case.holds.is_folder() || state != State::New {
            if let Err(what) = self.undisturbed(case.command) {
                wrong.push(Wrong::Stuck(what));
            } else if self.state(case) != State::New {
                wrong.push(Wrong::Torn);
            }
        } else if self.undisturbed(case.command).is_ok() {
            // Keys that were all there were replaced.
            wrong.push(Wrong::Lost);
        }
        wrong.extend(self.hidden(case).into_iter().map(Wrong::Leftover));
        Ok(Some(wrong))
    }

    /// The ends of a command with a fault.
    fn disturbed(&mut self, case: &Case, fault: Fault) -> io::Result<Option<Vec<Output>>> {
        let index = CASES.iter().position(|other| std::ptr::eq(other, case)).unwrap_or(0);
        let took = self.usual.get(index).map_or(0, |usual| usual.1.as_micros() as u64);
        let one = |output: Output| Ok(Some(vec![output]));
        match fault {
            Fault::Kill => {
                let mut child = self.command(case.command).spawn()?;
                // Half of the time in its last third, where files are written.
                let after =
                    if self.below(2) == 0 { self.below(took + 1) } else { took * 2 / 3 + self.below(took / 2 + 1) };
                std::thread::sleep(Duration::from_micros(after));
                child.kill()?;
                one(child.wait_with_output()?)
            }
            Fault::FileSize => {
                let kib = self.below(48);
                one(self.script(&format!("trap '' XFSZ; ulimit -f {kib}"), case.command).output()?)
            }
            Fault::Memory => {
                let kib = self.least_kib + self.below(10_000);
                one(self.script(&format!("ulimit -v {kib}"), case.command).output()?)
            }
            Fault::FullDisk | Fault::ReadOnly if !self.mounts => Ok(None),
            Fault::FullDisk => {
                let kib = 4 * (1 + self.below(24));
                let [folder, after] = ["w", "after"].map(|name| self.path(name));
                fs::create_dir(&after)?;
                let before = format!(
                    "mkdir was; cp -a w/. was/; mount -t tmpfs -o size={kib}k none w; cp -a was/. w/; rm -r was"
                );
                let output = self.script(&before, case.command).output();
                fs::remove_dir_all(&folder)?;
                fs::rename(after, folder)?;
                one(output?)
            }
            Fault::ReadOnly => {
                one(self.script("mount --bind w w; mount -o remount,ro,bind w", case.command).output()?)
            }
            Fault::Twice => {
                let (first, second) = (self.command(case.command).spawn()?, self.command(case.command).spawn()?);
                Ok(Some(vec![first.wait_with_output()?, second.wait_with_output()?]))
            }
        }
    }

    fn state(&self, case: &Case) -> State {
        let index = CASES.iter().position(|other| std::ptr::eq(other, case)).unwrap_or(0);
        match case.holds {
            Holds::Keys => return self.keys_state(),
            Holds::Dealt => return self.dealt_state(),
            Holds::Column(_) | Holds::Text => {}
        }
        match (fs::read(self.path(case.out)), case.holds) {
            (Err(_), _) => State::None,
            (Ok(bytes), _) if bytes == OLDER => State::Older,
            (Ok(bytes), Holds::Text) if self.usual.get(index).is_some_and(|usual| usual.0 == bytes) => State::New,
            (Ok(_), Holds::Column(numbers)) if self.decrypts(case.out, "keys", numbers) => State::New,
            (Ok(_), _) => State::Torn,
        }
    }

    /// Keys are all there and belong together, or none can be encrypted with.
    fn keys_state(&self) -> State {
        let there = |name: &str| self.path("w/keys").join(name).exists();
        let encrypted = || self.undisturbed("encrypt --keys w/keys --in x.csv --out k.ct").is_ok();
        let computed = || self.undisturbed("eval x*x --keys w/keys x=k.ct --out k.ct").is_ok();
        if !there("public.key") {
            State::None
        } else if encrypted() && computed() && self.decrypts("k.ct", "w/keys", "1\n4\n9\n") {
            State::New
        } else {
            State::Torn
        }
    }

    /// Keys for triples are all there, or there is no plan to use them with, or a record says that they are not all made.
    fn dealt_state(&self) -> State {
        let there = |name: &str| self.path("w/dealt").join(name).exists();
        let party = |kind: &str| (0..2).all(|party| there(&format!("party-{party}.{kind}")));
        if !there("plan.json") || there(".plan.json.synchromesh-set") {
            State::None
        } else if ["public.key", "eval.keys", "mac.ct"].into_iter().all(there)
            && ["key", "mac", "journal"].into_iter().all(party)
        {
            State::New
        } else {
            State::Torn
        }
    }

    fn decrypts(&self, column: &str, keys: &str, numbers: &str) -> bool {
        let done = self.undisturbed(&format!("decrypt --keys {keys} --in {column} --out k.csv"));
        let text = fs::read_to_string(self.path("k.csv")).unwrap_or_default();
        done.is_ok() && text.split_once('\n').is_some_and(|(_, rows)| rows == numbers)
    }

    /// Hidden files beside what a case writes.
    fn hidden(&self, case: &Case) -> Vec<String> {
        let out = self.path(case.out);
        let folder = if case.holds.is_folder() { &out } else { out.parent().unwrap_or(&out) };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with('.')).collect()
    }
}

/// What is where a case writes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    None,
    Older,
    New,
    Torn,
}

/// The plans of the trials are of the smallest degree; `inspect` and `info` do not ask.
fn insecure(command: &str) -> Option<&'static str> {
    (!command.starts_with("in")).then_some("--insecure")
}

/// Fails unless a command ended with code 2 and an error that says kind, message and remedy.
fn typed(output: &Output) -> Result<(), String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let object: Value = serde_json::from_str(&text).unwrap_or_default();
    let says = |key: &str| object["error"][key].as_str().is_some_and(|text| !text.is_empty());
    if output.status.code() == Some(2) && ["kind", "message", "remedy"].into_iter().all(says) {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    let messages: String = messages.chars().take(300).collect();
    Err(format!("{}: {text} {messages}", output.status))
}
