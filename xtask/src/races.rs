//! `cargo xtask races`: the kernels under a race detector, and that it finds a barrier that is left out.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::steps::Invocation;
use crate::workspace;

const COMPILE: &str = "-std=c++17 -O1 -g -fsanitize=thread -DSYNCHROMESH_EMULATOR_THREADS -ffp-contract=off -Ikernels \
                       -Iemulator emulator/races.cpp emulator/emulator.cpp -pthread -o";
/// What the detector exits with when it has found a race.
const RACE: i32 = 66;

/// Compiles and runs the kernels, whole and with their second barrier left out, of blocks and of clusters.
///
/// # Errors
/// Without a C++ compiler that has ThreadSanitizer.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    ensure!(args.is_empty(), "unknown arguments {args:?}; usage: cargo xtask races");
    let root = workspace::root()?;
    let program = root.join("target/races");
    std::fs::create_dir_all(root.join("target"))?;
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let compile = Invocation::new(compiler, COMPILE).args(&[program.display().to_string()]);
    let folder = root.join("crates/synchromesh-cuda");
    ensure!(compile.command(&folder).status()?.success(), "`{compile}` failed");
    // The detector wants addresses that are not randomised.
    let run = |without: &[&str]| -> Result<Option<i32>> {
        let mut command = Command::new("setarch");
        command.arg("-R").arg(&program).args(without);
        if !without.is_empty() {
            // What it finds there was planted.
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        Ok(command.status().context("cannot start `setarch`")?.code())
    };
    ensure!(run(&[])? == Some(0), "the kernels race, or a launch failed");
    for of in ["last", "cluster"] {
        ensure!(run(&["2", of])? == Some(RACE), "ntt_*_{of}: the barrier that was left out was not found");
    }
    println!("races: none in the kernels; both planted ones, of a block's barrier and of a cluster's, were found");
    Ok(ExitCode::SUCCESS)
}
