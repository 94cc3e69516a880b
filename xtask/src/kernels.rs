//! `cargo xtask kernels`: makes the PTX that is embedded in synchromesh-cuda and the record of what its kernels do, or checks
//! them, and the machine profiles that follow; needs no card.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};

use crate::steps::Invocation;
use crate::workspace;

/// The compiler and the assembler, as Python packages of one version: what is embedded is what these make. The disassembler
/// reads what they make, of whatever version it is.
const PACKAGES: &[&str] =
    &["nvidia-cuda-nvrtc-cu12==12.8.93", "nvidia-cuda-nvcc-cu12==12.8.93", "nvidia-cuda-nvdisasm==13.5.37"];
/// Where they are installed, relative to the root of the workspace.
const ENVIRONMENT: &str = "target/kernels";
const SCRIPT: &str = "crates/synchromesh-cuda/kernels/compile.py";
const PTX: &str = "crates/synchromesh-cuda/ptx";
/// Runs the PTX on the emulator, prints what kernels do and writes it down, or compares.
const COUNTS: &str = "run --quiet --package synchromesh-cuda --example kernel_counts --";

/// Prices what they do as machine profiles of cards, and writes those down, or compares.
const PROFILES: &str =
    "run --quiet --package synchromesh-bench --features cuda,predicted --example predicted_profiles --";

/// Compiles the kernels and counts what they do; `--check` compares with the PTX and the record that are there instead of
/// writing them.
///
/// # Errors
/// On an unknown flag, or where Python or its packages cannot be had.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    ensure!(
        args.iter().all(|arg| arg == "--check"),
        "unknown arguments {args:?}; usage: cargo xtask kernels [--check]"
    );
    let root = workspace::root()?;
    let python = install(&root)?;
    let compile = Invocation::new(python, &format!("{SCRIPT} {PTX}")).args(args);
    // What the PTX does is counted even where it is not what the sources give.
    let compiled = compile.command(&root).status()?.success();
    let counted = Invocation::cargo(COUNTS).args(args).command(&root).status()?.success();
    let priced = Invocation::cargo(PROFILES).args(args).command(&root).status()?.success();
    Ok(if compiled && counted && priced { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The Python of an environment that has the packages.
fn install(root: &Path) -> Result<String> {
    let python = root.join(ENVIRONMENT).join("bin/python").display().to_string();
    if !Path::new(&python).is_file() {
        step(root, &Invocation::new("python3", &format!("-m venv {ENVIRONMENT}")))?;
    }
    let packages: Vec<String> = PACKAGES.iter().map(|&package| package.to_owned()).collect();
    step(root, &Invocation::new(python.clone(), "-m pip install --quiet --no-deps").args(&packages))?;
    Ok(python)
}

fn step(root: &Path, invocation: &Invocation) -> Result<()> {
    if invocation.command(root).status()?.success() { Ok(()) } else { bail!("`{invocation}` failed") }
}
