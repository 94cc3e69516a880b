//! Where the workspace is and what is in it: its root, its cargo, its metadata.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The root of the workspace: the folder above this package.
pub(crate) fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .context("the xtask package has no parent folder")
}

/// The cargo that started this program, so that a toolchain chosen on the command line is kept.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// `cargo metadata` of the workspace's own packages, without their dependencies' graphs.
pub(crate) fn metadata(root: &Path) -> Result<Value> {
    let output = Command::new(cargo())
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .context("cannot run `cargo metadata`")?;
    ensure!(output.status.success(), "`cargo metadata` failed:\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("`cargo metadata` did not print JSON")
}

/// The packages of [`metadata`].
pub(crate) fn packages(metadata: &Value) -> &[Value] {
    metadata["packages"].as_array().map_or(&[], Vec::as_slice)
}

/// Names of the workspace's packages.
pub(crate) fn package_names(metadata: &Value) -> Vec<&str> {
    packages(metadata).iter().filter_map(|package| package["name"].as_str()).collect()
}

/// The numbered examples, in order: the tutorials that `test` runs.
pub(crate) fn tutorials(metadata: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages(metadata) {
        for target in package["targets"].as_array().into_iter().flatten() {
            let example = target["kind"].as_array().is_some_and(|kinds| kinds.contains(&"example".into()));
            if let (true, Some(name)) = (example, target["name"].as_str())
                && name.starts_with(|c: char| c.is_ascii_digit())
            {
                found.push(name.to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Where cargo puts what it builds.
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}
