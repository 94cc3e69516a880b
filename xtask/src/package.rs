//! `cargo xtask package`: what goes to a registry, packed and built from what was packed; and built by the oldest Rust that
//! it promises.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use crate::steps::{Invocation, Step, run_all};
use crate::workspace;

/// Whether a package of this workspace may go to a registry.
pub(crate) fn is_published(package: &Value) -> bool {
    package["source"].is_null() && package["publish"].is_null()
}

/// Packs every published package, builds each from what was packed, and checks the oldest Rust of each.
///
/// # Errors
/// On arguments, of which there are none.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    ensure!(args.is_empty(), "unknown arguments {args:?}; usage: cargo xtask package");
    let root = workspace::root()?;
    let metadata = workspace::metadata(&root)?;
    let steps = [Step::run("packages, built from what was packed", pack(&metadata)), oldest_step()];
    Ok(run_all(&root, &steps).tally.exit_code())
}

/// The steps that continuous integration runs: packing without building, and the oldest Rust.
pub(crate) fn test_steps(metadata: &Value) -> [Step; 2] {
    [Step::run("packages", pack(metadata).args(&["--quiet", "--no-verify"].map(str::to_owned))), oldest_step()]
}

pub(crate) fn published(metadata: &Value) -> impl Iterator<Item = &Value> {
    workspace::packages(metadata).iter().filter(|package| is_published(package))
}

/// Packing leaves a changed tree to version control: what is checked is what it has now.
fn pack(metadata: &Value) -> Invocation {
    let names = published(metadata).filter_map(|package| package["name"].as_str());
    let chosen: Vec<String> = names.flat_map(|name| ["--package".to_owned(), name.to_owned()]).collect();
    Invocation::cargo("package --allow-dirty").args(&chosen)
}

fn oldest_step() -> Step {
    Step::check("the oldest Rust", check_oldest, "cargo xtask package")
}

/// Published packages by the oldest Rust they promise.
fn by_oldest(metadata: &Value) -> BTreeMap<&str, Vec<String>> {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for package in published(metadata) {
        if let (Some(name), Some(oldest)) = (package["name"].as_str(), package["rust_version"].as_str()) {
            found.entry(oldest).or_default().extend(["--package".to_owned(), name.to_owned()]);
        }
    }
    found
}

/// `cargo check` of each package with the oldest Rust it promises, which rustup installs where it is missing.
fn check_oldest(root: &Path) -> Result<String> {
    let metadata = workspace::metadata(root)?;
    let folder = workspace::target(root).join("oldest").display().to_string();
    let mut said = Vec::new();
    for (version, packages) in by_oldest(&metadata) {
        let words = |words: &str| rustup(&format!("run {version} cargo {words}"));
        let install = rustup(&format!("toolchain install {version} --profile minimal --no-self-update"));
        if !is_silent_success(root, &words("--version")) && !is_silent_success(root, &install) {
            said.push(format!("{version}: not here, and rustup cannot install it"));
            continue;
        }
        let check = words("check --quiet --locked").args(&packages).env("CARGO_TARGET_DIR", &folder);
        if !check.command(root).status()?.success() {
            bail!("`{check}` failed");
        }
        said.push(format!("{version}: {} packages", packages.len() / 2));
    }
    Ok(said.join(", "))
}

/// Rustup without the toolchain that runs this program.
fn rustup(words: &str) -> Invocation {
    let own = ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC"];
    own.into_iter().fold(Invocation::new("rustup", words), |invocation, name| invocation.env_remove(name))
}

pub(crate) fn is_silent_success(root: &Path, invocation: &Invocation) -> bool {
    let status = invocation.command(root).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_published_needs_what_is_not() {
        let metadata = workspace::metadata(&workspace::root().expect("a root")).expect("metadata");
        let names: Vec<&str> = published(&metadata).filter_map(|package| package["name"].as_str()).collect();
        assert!(names.contains(&"synchromesh") && !names.contains(&"xtask"), "{names:?}");
        for package in published(&metadata) {
            let dependencies = package["dependencies"].as_array().into_iter().flatten();
            for dependency in dependencies.filter(|d| d["path"].is_string() && d["kind"] != "dev") {
                let name = dependency["name"].as_str().unwrap_or_default();
                assert!(names.contains(&name), "{} needs {name}", package["name"]);
            }
        }
    }

    #[test]
    fn every_published_package_says_its_oldest_rust() {
        let metadata = workspace::metadata(&workspace::root().expect("a root")).expect("metadata");
        let counted: usize = by_oldest(&metadata).values().map(|packages| packages.len() / 2).sum();
        assert_eq!(counted, published(&metadata).count());
    }
}
