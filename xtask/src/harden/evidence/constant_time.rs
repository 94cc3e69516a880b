//! Operations on secrets under Valgrind's memcheck, with their secrets undefined: every branch and address that depends on
//! one is a finding.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Counts, Scale, counts, skipped, tally, works};
use crate::harden::programs::Built;
use crate::steps::Invocation;

/// Instruction sets that Valgrind knows.
const ISAS: [&str; 2] = ["scalar", "avx2"];

const VALGRIND: &str = "--quiet --error-limit=no --num-callers=16";

const TESTS: &str = "constant_time_tests --test-threads=1";

/// The test that must have findings.
const PLANTED: &str = "planted_leaks_are_found --ignored --test-threads=1";

/// The tests of `constant_time_tests.rs` on each instruction set, and the one with planted leaks.
pub(in crate::harden) fn run(root: &Path, _scale: Scale) -> Result<Counts> {
    if !works("valgrind", "--version") {
        return Ok(skipped("no valgrind on PATH"));
    }
    let program = Built::Released.path("synchromesh-triples/synchromesh_triples")?;
    let (mut operations, mut findings, mut planted) = (0, 0, 0);
    for isa in ISAS {
        let watch = |tests: &str| -> Result<(u64, u64, String)> {
            let valgrind = Invocation::new("valgrind", VALGRIND).args(std::slice::from_ref(&program));
            let words: Vec<String> = tests.split_whitespace().map(str::to_owned).collect();
            let watched = valgrind.args(&words).env("SYNCHROMESH_ISA", isa).env("RUST_BACKTRACE", "0");
            let out = watched.command(root).output().context("cannot start valgrind")?;
            let (passed, failed) = tally(&String::from_utf8_lossy(&out.stdout));
            Ok((passed, failed, String::from_utf8_lossy(&out.stderr).into_owned()))
        };
        let (passed, failed, report) = watch(TESTS)?;
        if failed > 0 || passed == 0 {
            eprintln!("{report}");
        }
        operations += passed;
        findings += failed + u64::from(passed == 0);
        planted += watch(PLANTED)?.0;
    }
    findings += u64::from(planted != ISAS.len() as u64);
    Ok(counts([
        ("findings", findings.into()),
        ("tests", operations.into()),
        ("instruction_sets", ISAS.join(" and ").into()),
        ("planted_found", planted.into()),
    ]))
}
