//! `cargo xtask semver`: what callers of the published libraries would notice since a baseline, by cargo-semver-checks.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::steps::{Invocation, Step, run_all};
use crate::{package, workspace};

/// Where the root's Cargo.toml names the commit that is compared with: the last release, before the first one a commit.
const BASELINE: &str = "/metadata/semver/baseline";

/// Compares every published library with what it was at the commit in `args`, or at the baseline.
///
/// # Errors
/// On other arguments, without cargo-semver-checks, or without a baseline.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    ensure!(args.len() <= 1, "unknown arguments {args:?}; usage: cargo xtask semver [COMMIT]");
    let root = workspace::root()?;
    let tool = Invocation::cargo("semver-checks --version");
    ensure!(
        package::is_silent_success(&root, &tool),
        "cargo-semver-checks is not here: `cargo install --locked cargo-semver-checks`"
    );
    let metadata = workspace::metadata(&root)?;
    let commit = args.first().map_or_else(|| baseline(&metadata), |commit| Ok(commit.as_str()))?;
    let steps: Vec<Step> = libraries(&metadata)
        .map(|name| {
            let words = format!("semver-checks --package {name} --baseline-rev {commit}");
            Step::run(format!("{name} since {commit}"), Invocation::cargo(&words))
        })
        .collect();
    Ok(run_all(&root, &steps).tally.exit_code())
}

fn baseline(metadata: &Value) -> Result<&str> {
    let named = metadata.pointer(BASELINE).and_then(Value::as_str);
    named.context("Cargo.toml has no `baseline` under [workspace.metadata.semver]: name the commit of the last release")
}

/// Published packages that others can depend on.
fn libraries(metadata: &Value) -> impl Iterator<Item = &str> {
    let kinds = |target: &Value| target["kind"].as_array().is_some_and(|kinds| kinds.contains(&"lib".into()));
    let is_library =
        move |package: &&Value| package["targets"].as_array().is_some_and(|targets| targets.iter().any(kinds));
    package::published(metadata).filter(is_library).filter_map(|package| package["name"].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_a_commit_and_libraries_are_compared() {
        let metadata = workspace::metadata(&workspace::root().expect("a root")).expect("metadata");
        let commit = baseline(&metadata).expect("a baseline");
        assert!(commit.len() == 40 && commit.chars().all(|digit| digit.is_ascii_hexdigit()), "{commit}");
        let names: Vec<&str> = libraries(&metadata).collect();
        assert!(names.contains(&"synchromesh") && !names.contains(&"synchromesh-testing"), "{names:?}");
    }
}
