//! Accesses to memory: the ring's scalar path in Miri, the vector kernels and the GPU emulator under AddressSanitizer.

use std::path::Path;

use anyhow::Result;

use super::{Counts, Scale, counts, output, skipped, tally, works};
use crate::races::Program;
use crate::steps::Invocation;
use crate::workspace;

/// What is small enough for an interpreter, and which tests of it: arithmetic and memory; in full every primitive and every
/// stage on the smallest ring, which takes it a quarter of an hour.
const MIRI: [(&str, &str); 2] = [
    ("--package synchromesh-ring --lib", "modulus:: prime:: isa:: memory:: refused"),
    ("--package synchromesh-testing --test backend_laws", "interpreted"),
];

/// Instrumented code and its documentation tests do not go together; all else of the crate with the unsafe code does.
const ADDRESS: &str = "+nightly test --package synchromesh-ring --lib --tests --target x86_64-unknown-linux-gnu";

/// Everything undefined that the interpreter knows of, with the environment and the clock of the machine.
const MIRI_FLAGS: &str = "-Zmiri-disable-isolation";

/// The ring's scalar path, which is all that Miri's processor has.
pub(in crate::harden) fn miri(root: &Path, scale: Scale) -> Result<Counts> {
    if !works("cargo", "+nightly miri --version") {
        return Ok(skipped("no Miri: `rustup component add miri rust-src --toolchain nightly`"));
    }
    let folder = workspace::target(root).join("miri").display().to_string();
    let (mut passed, mut findings) = (0, 0);
    for (what, filters) in &MIRI[..if scale == Scale::Quick { 1 } else { MIRI.len() }] {
        let run = nightly(&format!("+nightly miri test {what} -- {filters}"), &folder);
        let (clean, text) = output(root, &run.env("MIRIFLAGS", MIRI_FLAGS).env("SYNCHROMESH_ISA", "scalar"))?;
        let (tests, _) = tally(&text);
        passed += tests;
        findings += u64::from(!clean || tests == 0);
    }
    Ok(counts([("findings", findings.into()), ("tests", passed.into())]))
}

/// The tests of the crate with the vector kernels on every instruction set here, and the kernels on the emulator.
pub(in crate::harden) fn address(root: &Path, _scale: Scale) -> Result<Counts> {
    if !works("cargo", "+nightly --version") {
        return Ok(skipped("no nightly toolchain"));
    }
    let folder = workspace::target(root).join("address").display().to_string();
    let run = nightly(ADDRESS, &folder).env("RUSTFLAGS", "-Zsanitizer=address").env_remove("SYNCHROMESH_ISA");
    let (clean, text) = output(root, &run)?;
    let (tests, _) = tally(&text);
    let mut findings = u64::from(!clean || tests == 0);
    // The emulator: every kernel with barriers, and again with less memory than they touch, which must be found.
    let emulator = Program::compile(root, "address,undefined")?;
    findings += u64::from(emulator.run(&[])? != Some(0));
    let planted = emulator.run(&["0", "", "4160"])? != Some(0);
    findings += u64::from(!planted);
    Ok(counts([
        ("findings", findings.into()),
        ("tests", tests.into()),
        ("emulator_runs", 1.into()),
        ("planted_found", u64::from(planted).into()),
    ]))
}

/// Cargo of the nightly toolchain, which rustup chooses by its first word.
fn nightly(command: &str, folder: &str) -> Invocation {
    Invocation::new("cargo", command).env("CARGO_TARGET_DIR", folder).env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO")
}
