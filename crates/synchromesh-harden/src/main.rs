//! `cargo run -p synchromesh-harden -- PART`: runs a part and ends with its counts as one line of JSON; exit code 1 if it
//! found something.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, Subcommand};
use synchromesh_harden::targets::named;
use synchromesh_harden::{corpus, corruption, fleet, fuzz, known, soak};

/// Where inputs that broke something are kept.
const FOLDER: &str = "target/harden/fuzz";

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand)]
enum Part {
    /// Mixed operations over threads that share a context, results checked, memory watched.
    Soak {
        /// Operations in all.
        #[arg(long, default_value_t = 10_000)]
        operations: u64,
        /// Threads.
        #[arg(long, default_value_t = 16)]
        threads: usize,
        /// Where keys, messages and choices come from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Mutants of valid inputs for every reader, each target in a process of its own.
    Fuzz {
        /// Targets; none: all.
        targets: Vec<String>,
        /// Seconds for each target in a round.
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// Inputs in all after which no further round begins; a run that was ended goes on. 0: one round.
        #[arg(long, default_value_t = 0)]
        executions: u64,
        /// Processes at a time; 0: as many as there are cores.
        #[arg(long, default_value_t = 0)]
        jobs: usize,
        /// Where mutants come from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Where inputs that broke something are kept.
        #[arg(long, default_value = FOLDER)]
        folder: PathBuf,
    },
    /// One target in this process; for `fuzz` to call.
    Campaign {
        /// The target.
        target: String,
        /// Seconds.
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// Where mutants come from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Where inputs that broke something are kept.
        #[arg(long, default_value = FOLDER)]
        folder: PathBuf,
    },
    /// Reads one input with a target: what it answered, or how it broke.
    Replay {
        /// The target.
        target: String,
        /// The input.
        file: PathBuf,
    },
    /// Every truncation, every bit of the head and random bits of each kind of file with a checksum.
    Corruption {
        /// Random bits of each file.
        #[arg(long, default_value_t = 2000)]
        bits: u64,
        /// Where they come from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Where files that were not refused are kept.
        #[arg(long, default_value = FOLDER)]
        folder: PathBuf,
    },
    /// Digests of keys, ciphertexts and files from a seed against those on file.
    Known {
        /// Put them on file instead; after a change of formats or results that is meant.
        #[arg(long)]
        write: bool,
    },
    /// Reads the files of every version of the formats.
    Corpus {
        /// Write the files of this version, which there must not be yet, and read them.
        #[arg(long)]
        write: Option<u32>,
    },
}

fn run(part: Part) -> Result<ExitCode> {
    let report = match part {
        Part::Soak { operations, threads, seed } => soak::run(operations, threads, seed)?,
        Part::Fuzz { targets, seconds, executions, jobs, seed, folder } => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let jobs = if jobs == 0 { cores } else { jobs };
            fleet::run(&fleet::Request { targets, seconds, executions, jobs, seed, folder })?
        }
        Part::Campaign { target, seconds, seed, folder } => return campaign(&target, seed, seconds, &folder),
        Part::Replay { target, file } => return replay(&target, &file),
        Part::Corruption { bits, seed, folder } => quiet(|| corruption::run(bits, seed, &folder))?,
        Part::Known { write } => known::run(write)?,
        Part::Corpus { write } => write.map_or_else(corpus::check, corpus::write)?,
    };
    Ok(report.end())
}

/// Runs what catches panics, which are findings that it prints itself.
fn quiet<T>(function: impl FnOnce() -> T) -> T {
    std::panic::set_hook(Box::new(|_| ()));
    let result = function();
    let _ = std::panic::take_hook();
    result
}

fn campaign(target: &str, seed: u64, seconds: u64, folder: &std::path::Path) -> Result<ExitCode> {
    let target = named(target)?;
    println!("{}", quiet(|| fleet::campaign(target, seed, seconds, folder))?);
    Ok(ExitCode::SUCCESS)
}

fn replay(target: &str, file: &std::path::Path) -> Result<ExitCode> {
    let input = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let reader = named(target)?;
    // Keys that a target makes once are not to count as memory of its reader.
    let _ = (reader.seeds)()?;
    let (outcome, fault) = fuzz::judge(reader, &input);
    println!("{target}: {}", outcome.map_or_else(|| "no answer".to_owned(), |outcome| format!("{outcome:?}")));
    ensure!(fault.is_none(), "{}", fault.unwrap_or_default());
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    run(Arguments::parse().part).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
