//! The same bits everywhere: the demo from a fixed seed must give equal digests on every instruction set, on any number of
//! threads, and on the emulated device.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::checks::ISA;
use crate::demo::CLI_PACKAGE;
use crate::machine;
use crate::steps::Invocation;

/// Runs `demo --test-seed 1` on every instruction set this CPU has, on several numbers of threads and on the emulated
/// device, and compares the digests.
///
/// # Errors
/// When a run fails, prints no digests, or differs from the scalar run on one thread.
pub(crate) fn check(root: &Path) -> Result<String> {
    let mut runs = Vec::new();
    for (isa, here) in machine::isas() {
        if here {
            runs.push((isa.to_owned(), [isa, "cpu", "1"]));
        } else {
            println!("skipped: digests on isa {isa} (not on this CPU)");
        }
    }
    let best = machine::best_isa();
    runs.extend(["2", "7"].map(|threads| (format!("{threads} threads"), [best, "cpu", threads])));
    runs.push(("the emulated device".to_owned(), [best, "emulated", "1"]));
    let mut reference: Option<Value> = None;
    for (name, run) in &runs {
        let digests = digests(root, *run)?;
        match &reference {
            None => reference = Some(digests),
            Some(expected) if *expected == digests => {}
            Some(expected) => bail!("digests on {name} differ from scalar:\n{digests:#}\nagainst\n{expected:#}"),
        }
    }
    let names: Vec<&str> = runs.iter().map(|(name, _)| name.as_str()).collect();
    Ok(format!("digests: equal on {}", names.join(", ")))
}

fn digests(root: &Path, [isa, device, threads]: [&str; 3]) -> Result<Value> {
    let run = Invocation::cargo("run --quiet --release --features emulated --package")
        .args(&[CLI_PACKAGE.to_owned(), "--".into(), "demo".into()])
        .args(&["--quick", "--test-seed", "1", "--json", "--device", device, "--threads", threads].map(str::to_owned))
        .env(ISA, isa);
    let output = run.command(root).output().with_context(|| format!("cannot start `{run}`"))?;
    ensure!(output.status.success(), "`{run}` failed:\n{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).with_context(|| format!("`{run}` printed no JSON"))?;
    let digests = report["digests"].clone();
    let filled = digests.as_object().is_some_and(|map| !map.is_empty())
        || digests.as_array().is_some_and(|list| !list.is_empty());
    ensure!(filled, "`{run}` printed no digests");
    Ok(digests)
}
