//! Known answers on every instruction set of this machine, and the files that must read for ever.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::programs::Built;
use super::{Counts, Scale, counts_of};
use crate::checks::ISA;
use crate::{digests, machine};

const PROGRAM: &str = "synchromesh-harden/synchromesh-harden";

/// Digests of keys, ciphertexts and files on each instruction set, the corpus, and in full the demo's digests.
///
/// # Errors
/// When a program cannot be run; what differs is counted.
pub(super) fn check(root: &Path, scale: Scale) -> Result<Counts> {
    let mut counts = Counts::new();
    let (mut findings, mut isas) = (0, Vec::new());
    for (isa, _) in machine::isas().into_iter().filter(|(_, here)| *here) {
        let found = counts_of(root, &Built::Checked.start(PROGRAM, "known")?.env(ISA, isa))?;
        findings += found.get("findings").and_then(Value::as_u64).unwrap_or(0);
        counts.extend(found.into_iter().filter(|(name, _)| name == "digests"));
        isas.push(isa);
    }
    let corpus = counts_of(root, &Built::Checked.start(PROGRAM, "corpus")?)?;
    findings += corpus.get("findings").and_then(Value::as_u64).unwrap_or(0);
    counts.extend(corpus.into_iter().filter(|(name, _)| name == "versions" || name == "files"));
    if scale == Scale::Full {
        match digests::check(root) {
            Ok(summary) => println!("{summary}"),
            Err(error) => {
                println!("{error:#}");
                findings += 1;
            }
        }
        counts.insert("emulated_device".into(), true.into());
    }
    counts.insert("instruction_sets".into(), isas.join(", ").into());
    counts.insert("findings".into(), findings.into());
    Ok(counts)
}
