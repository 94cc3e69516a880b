//! `cargo run -p synchromesh-harden -- PART`: runs a part and ends with its counts as one line of JSON; exit code 1 if it
//! found something.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use synchromesh_harden::report::Report;
use synchromesh_harden::soak;

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
}

fn run(part: &Part) -> Result<Report> {
    match *part {
        Part::Soak { operations, threads, seed } => soak::run(operations, threads, seed),
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse().part) {
        Ok(report) => report.end(),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
