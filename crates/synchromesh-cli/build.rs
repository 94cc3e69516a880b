//! Puts the commit that this is built from into the environment of the compiler, for reports of measurements.

use std::process::Command;

/// The crates that a measurement runs.
const MEASURED: [&str; 6] = ["", "-ring", "-rlwe", "-triples", "-cuda", "-bench"];

fn main() {
    println!("cargo:rerun-if-changed=src");
    for name in MEASURED {
        println!("cargo:rerun-if-changed=../synchromesh{name}/src");
    }
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    println!("cargo:rustc-env=SYNCHROMESH_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

/// The first line that git says, if there is git and a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()?.lines().next().map(str::to_owned)
}
