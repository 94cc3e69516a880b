//! What this project is made of: licences and origins of all dependencies, the bill of materials, and what the published
//! crates say about themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Counts, Scale, sbom};
use crate::package::is_published;
use crate::steps::Invocation;
use crate::workspace;

/// The one registry that dependencies come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks all packages that cargo resolves, and writes the bill of materials to `target/harden/sbom.cdx.json`.
///
/// # Errors
/// When cargo or the files cannot be read; what is wrong with a package is printed and counted.
pub(super) fn check(root: &Path, scale: Scale) -> Result<Counts> {
    let metadata = metadata(root)?;
    let packages = workspace::packages(&metadata);
    let allowed = allowed(root)?;
    let mut findings = Vec::new();
    for package in packages {
        findings.extend(licence_fault(package, &allowed));
        findings.extend(origin_fault(package));
    }
    let published = packages.iter().filter(|package| is_published(package));
    let mut crates = 0_u64;
    for package in published {
        crates += 1;
        findings.extend(description_faults(root, package)?);
    }
    let bill = sbom::write(root, &metadata)?;
    let mut counts = Counts::new();
    if scale == Scale::Full {
        let (deny, faults) = deny(root)?;
        counts.insert("cargo_deny".into(), deny.into());
        findings.extend(faults);
    }
    findings.iter().for_each(|finding| println!("{finding}"));
    counts.insert("packages".into(), packages.len().into());
    counts.insert("in_several_versions".into(), duplicates(packages).into());
    counts.insert("published_crates".into(), crates.into());
    counts.insert("bill_of_materials_components".into(), bill.into());
    counts.insert("findings".into(), findings.len().into());
    Ok(counts)
}

/// `cargo metadata` with all dependencies, as the lock file has them.
fn metadata(root: &Path) -> Result<Value> {
    let output = Command::new(workspace::cargo())
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .current_dir(root)
        .output()
        .context("cannot run `cargo metadata`")?;
    ensure!(output.status.success(), "`cargo metadata` failed:\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("`cargo metadata` did not print JSON")
}

/// The licences in `deny.toml`.
fn allowed(root: &Path) -> Result<Vec<spdx::Licensee>> {
    let text = fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?;
    let table: toml::Table = text.parse().context("deny.toml is no TOML")?;
    let list = table.get("licenses").and_then(|licences| licences.get("allow")).and_then(toml::Value::as_array);
    let list = list.context("deny.toml allows no licences")?;
    let words = list.iter().filter_map(toml::Value::as_str);
    words.map(|word| spdx::Licensee::parse(word).with_context(|| format!("{word} is no licence"))).collect()
}

fn name(package: &Value) -> String {
    format!("{} {}", package["name"].as_str().unwrap_or("?"), package["version"].as_str().unwrap_or("?"))
}

fn licence_fault(package: &Value, allowed: &[spdx::Licensee]) -> Option<String> {
    let Some(text) = package["license"].as_str() else {
        return Some(format!("{} names no licence", name(package)));
    };
    match spdx::Expression::parse_mode(text, spdx::ParseMode::LAX) {
        Ok(licence) if licence.evaluate(|asked| allowed.iter().any(|one| one.satisfies(asked))) => None,
        Ok(_) => Some(format!("{} is under '{text}', which deny.toml does not allow", name(package))),
        Err(error) => Some(format!("{}: '{text}' is no licence: {error}", name(package))),
    }
}

fn origin_fault(package: &Value) -> Option<String> {
    let source = package["source"].as_str();
    let known = source.is_none_or(|source| source == REGISTRY);
    (!known).then(|| format!("{} comes from {}", name(package), source.unwrap_or_default()))
}

/// What a published crate fails to say, by its manifest and by the files that would be packed.
fn description_faults(root: &Path, package: &Value) -> Result<Vec<String>> {
    let own = package["name"].as_str().unwrap_or_default();
    let listed = Command::new(workspace::cargo())
        .args(["package", "--list", "--allow-dirty", "--package", own])
        .current_dir(root)
        .output()
        .context("cannot run `cargo package --list`")?;
    let files = String::from_utf8_lossy(&listed.stdout).into_owned();
    let packed = |file: &str| files.lines().any(|line| line == file);
    let mut faults: Vec<String> = Vec::new();
    for field in ["description", "license", "readme", "rust_version"] {
        if package[field].as_str().is_none_or(str::is_empty) {
            faults.push(format!("{own} has no {field}"));
        }
    }
    if !listed.status.success() || !packed("Cargo.toml") {
        faults.push(format!("{own} cannot be packed: {}", String::from_utf8_lossy(&listed.stderr)));
    }
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    for dependency in dependencies.filter(|d| d["kind"] != "dev" && d["req"] == "*") {
        faults.push(format!("{own} takes any version of {}", dependency["name"]));
    }
    Ok(faults)
}

/// How many packages are there in more than one version.
fn duplicates(packages: &[Value]) -> usize {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let (Some(name), Some(version)) = (package["name"].as_str(), package["version"].as_str()) else { continue };
        versions.entry(name).or_default().insert(version);
    }
    versions.values().filter(|of| of.len() > 1).count()
}

/// `cargo deny`, installed if it is missing, with what it says of licences, bans and sources, and of advisories where
/// their database can be had.
fn deny(root: &Path) -> Result<(String, Vec<String>)> {
    let runs = |words: &str| Invocation::cargo(words).command(root).status().is_ok_and(|status| status.success());
    if !runs("deny --version") && !runs("install cargo-deny --locked") {
        return Ok(("cannot be installed here".into(), Vec::new()));
    }
    let mut faults = Vec::new();
    if !runs("deny check licenses bans sources") {
        faults.push("`cargo deny check licenses bans sources` failed".to_owned());
    }
    let note = if !runs("deny fetch db") {
        "licences, bans and sources; the database of advisories cannot be had here"
    } else {
        if !runs("deny check advisories") {
            faults.push("`cargo deny check advisories` failed".to_owned());
        }
        "licences, bans, sources and advisories"
    };
    Ok((note.to_owned(), faults))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn licences_are_held_against_the_list() {
        let allowed = allowed(&workspace::root().expect("a root")).expect("a list");
        let fault =
            |licence: Value| licence_fault(&json!({"name": "x", "version": "1.0.0", "license": licence}), &allowed);
        for good in ["MIT", "MIT OR Apache-2.0", "MIT/Apache-2.0", "GPL-3.0-only OR ISC", "Apache-2.0 AND ISC"] {
            assert_eq!(fault(json!(good)), None, "{good}");
        }
        for bad in [json!("GPL-3.0-only"), json!("MIT AND GPL-3.0-only"), json!("no such"), Value::Null] {
            assert!(fault(bad.clone()).is_some(), "{bad}");
        }
    }

    #[test]
    fn foreign_sources_are_faults() {
        let from = |source: Value| origin_fault(&json!({"name": "x", "version": "1.0.0", "source": source}));
        assert_eq!((from(Value::Null), from(json!(REGISTRY))), (None, None));
        assert!(from(json!("git+https://example.org/x")).is_some());
    }
}
