//! `cargo xtask gpu-check`: packs what a machine with a card and nothing else needs to judge and measure the kernels.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::steps::Invocation;
use crate::workspace;

const FOLDER: &str = "target/gpu-check";
const PACKAGE: &str = "synchromesh-cuda";

/// Runs where the folder is: laws and key switches against the CPU, the sanitizer where it is installed, times.
const SCRIPT: &str = r#"#!/bin/sh
# Judges and measures the kernels on this machine's card; writes report.json beside itself. Needs NVIDIA's driver alone.
cd "$(dirname "$0")" || exit 2
if ./card --nocapture > card.log 2>&1; then correct=true; else correct=false; fi
if grep -q '^skipped' card.log; then correct=null; fi
sanitizer='"absent"'
if command -v compute-sanitizer > /dev/null; then
    if compute-sanitizer --error-exitcode 1 ./card switches > sanitizer.log 2>&1; then sanitizer='"clean"'; else sanitizer='"errors"'; fi
fi
./measure > measure.json 2> measure.log || true
[ -s measure.json ] || echo null > measure.json
printf '{"correct": %s, "sanitizer": %s, "measure": %s}\n' "$correct" "$sanitizer" "$(cat measure.json)" > report.json
cat report.json
[ "$correct" != false ]
"#;

/// Builds the tests and the measurement in release mode, packs them with a script, and runs it if there is a card.
///
/// # Errors
/// When something cannot be built or packed.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    ensure!(args.is_empty(), "unknown arguments {args:?}; usage: cargo xtask gpu-check");
    let root = workspace::root()?;
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder)?;
    for (name, kind) in [("card", "test"), ("measure", "example")] {
        std::fs::copy(build(&root, kind, name)?, folder.join(name))?;
    }
    let script = folder.join("run.sh");
    std::fs::write(&script, SCRIPT)?;
    let pack = Invocation::new("tar", "-C target -czf target/gpu-check.tar.gz gpu-check");
    ensure!(pack.command(&root).status()?.success(), "`{pack}` failed");
    println!("packed: target/gpu-check.tar.gz; on the other machine: sh gpu-check/run.sh");
    let status = Invocation::new("sh", &script.display().to_string()).command(&root).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The executable of a target of the package, built in release mode.
fn build(root: &Path, kind: &str, name: &str) -> Result<PathBuf> {
    let command = if kind == "test" { "test --no-run" } else { "build" };
    let run = Invocation::cargo(&format!("{command} --release --message-format json"))
        .args(&["--package".into(), PACKAGE.into(), "--features".into(), "driver".into()])
        .args(&[format!("--{kind}"), name.to_owned()]);
    let output = run.command(root).stderr(std::process::Stdio::inherit()).output()?;
    ensure!(output.status.success(), "`{run}` failed");
    let lines = String::from_utf8(output.stdout).context("cargo printed no text")?;
    let messages = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for message in messages {
        if message["target"]["name"] == name
            && let Some(path) = message["executable"].as_str()
        {
            return Ok(path.into());
        }
    }
    bail!("`{run}` made no executable")
}
