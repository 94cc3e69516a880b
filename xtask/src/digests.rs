//! The same bits everywhere: the demo from a fixed seed must give equal digests on every instruction set, and on the
//! emulated device.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::checks::ISA;
use crate::demo::CLI_PACKAGE;
use crate::machine;
use crate::steps::Invocation;

/// Runs `demo --test-seed 1` on every instruction set this CPU has and on the emulated device, and compares the digests.
///
/// # Errors
/// When a run fails, prints no digests, or differs from the scalar run.
pub(crate) fn check(root: &Path) -> Result<String> {
    let mut reference: Option<Value> = None;
    let mut names = Vec::new();
    for (isa, here) in machine::isas() {
        if !here {
            println!("skipped: digests on isa {isa} (not on this CPU)");
            continue;
        }
        let digests = digests(root, isa, "cpu")?;
        match &reference {
            None => reference = Some(digests),
            Some(expected) if *expected == digests => {}
            Some(expected) => bail!("digests on {isa} differ from scalar:\n{digests:#}\nagainst\n{expected:#}"),
        }
        names.push(isa);
    }
    let emulated = digests(root, machine::best_isa(), "emulated")?;
    ensure!(
        reference.is_none_or(|expected| expected == emulated),
        "digests on the emulated device differ:\n{emulated:#}"
    );
    names.push("the emulated device");
    Ok(format!("digests: equal on {}", names.join(", ")))
}

fn digests(root: &Path, isa: &str, device: &str) -> Result<Value> {
    let run = Invocation::cargo("run --quiet --release --features emulated --package")
        .args(&[CLI_PACKAGE.to_owned(), "--".into(), "demo".into()])
        .args(&["--quick", "--test-seed", "1", "--json", "--device", device].map(str::to_owned))
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
