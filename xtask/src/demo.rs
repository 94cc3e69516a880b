//! `cargo xtask demo`: builds the command line in release mode and runs its demo.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::steps::Invocation;
use crate::{python, workspace};

/// The package and binary of the command line.
pub(crate) const CLI_PACKAGE: &str = "synchromesh-cli";

/// Features of the command line that the demo takes: all but what measures.
pub(crate) const DEMO_FEATURES: &str = "--no-default-features --features cuda,emulated";

/// Builds, then runs `synchromesh demo` (with `--python` first, the quickstart of the Python package) with `args`; standard output is the demo's alone, so that `--json` stays clean.
///
/// # Errors
/// When cargo or the demo cannot be started.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    if let Some((flag, rest)) = args.split_first()
        && flag == "--python"
    {
        return python::demo(rest);
    }
    let root = workspace::root()?;
    let build = Invocation::cargo(&format!("run --quiet --release {DEMO_FEATURES} --package"))
        .args(&[CLI_PACKAGE.into(), "--".into(), "demo".into()])
        .args(args);
    let status = build.command(&root).status().with_context(|| format!("cannot start `{build}`"))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
