//! `cargo xtask races`: the kernels under a race detector, and that it finds a barrier that is left out.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::steps::Invocation;
use crate::workspace;

const COMPILE: &str = "-std=c++17 -O1 -g -fno-sanitize-recover=all -DSYNCHROMESH_EMULATOR_THREADS -ffp-contract=off -Ikernels \
                       -Iemulator emulator/races.cpp emulator/emulator.cpp -pthread";
/// What the detector exits with when it has found a race.
const RACE: i32 = 66;

/// The kernels as a program on threads of the machine, with a sanitizer compiled in.
pub(crate) struct Program(PathBuf);

impl Program {
    /// Compiles it.
    ///
    /// # Errors
    /// Without a C++ compiler that has the sanitizer.
    pub(crate) fn compile(root: &Path, sanitizer: &str) -> Result<Self> {
        let program = workspace::target(root).join(format!("emulator-{}", sanitizer.replace(',', "-")));
        std::fs::create_dir_all(workspace::target(root))?;
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        let options = [format!("-fsanitize={sanitizer}"), "-o".to_owned(), program.display().to_string()];
        let compile = Invocation::new(compiler, COMPILE).args(&options);
        let folder = root.join("crates/synchromesh-cuda");
        ensure!(compile.command(&folder).status()?.success(), "`{compile}` failed");
        Ok(Self(program))
    }

    /// Its exit code: without the barrier of a number in the kernels whose names end in a word, and with so many words of
    /// memory less, as the arguments say.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn run(&self, planted: &[&str]) -> Result<Option<i32>> {
        // The detector of races wants addresses that are not randomised.
        let mut command = Command::new("setarch");
        command.arg("-R").arg(&self.0).args(planted).stdout(Stdio::null());
        if !planted.is_empty() {
            // What is found there was planted.
            command.stderr(Stdio::null());
        }
        Ok(command.status().context("cannot start `setarch`")?.code())
    }
}

/// Compiles and runs the kernels, whole and with their second barrier left out, of blocks and of clusters.
///
/// # Errors
/// Without a C++ compiler that has ThreadSanitizer.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    ensure!(args.is_empty(), "unknown arguments {args:?}; usage: cargo xtask races");
    let program = Program::compile(&workspace::root()?, "thread")?;
    ensure!(program.run(&[])? == Some(0), "the kernels race, or a launch failed");
    for of in ["last", "cluster"] {
        ensure!(program.run(&["2", of])? == Some(RACE), "ntt_*_{of}: the barrier that was left out was not found");
    }
    println!("races: none in the kernels; both planted ones, of a block's barrier and of a cluster's, were found");
    Ok(ExitCode::SUCCESS)
}
