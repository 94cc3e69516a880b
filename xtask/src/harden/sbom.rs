//! The bill of materials: CycloneDX 1.5 as JSON, of what the library and the command are made of, without what only tests
//! use. The same sources give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::workspace;

/// Where the bill is written, in cargo's target folder.
const FILE: &str = "harden/sbom.cdx.json";

/// Writes the bill for what `cargo metadata` resolved; returns how many components it has.
///
/// # Errors
/// When the lock file cannot be read or the bill not be written.
pub(super) fn write(root: &Path, metadata: &Value) -> Result<usize> {
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let bill = bill(metadata, &checksums(&lock)?);
    let path = workspace::target(root).join(FILE);
    fs::create_dir_all(path.parent().context("a folder")?).context("cannot make a folder for the bill")?;
    let text = serde_json::to_string_pretty(&bill).context("a bill of plain values")?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(bill["components"].as_array().map_or(0, Vec::len))
}

/// SHA-256 of each package's archive, by name and version.
fn checksums(lock: &str) -> Result<BTreeMap<String, String>> {
    let table: toml::Table = lock.parse().context("Cargo.lock is no TOML")?;
    let packages = table.get("package").and_then(toml::Value::as_array);
    let of = |package: &toml::Value, field: &str| package.get(field).and_then(toml::Value::as_str).map(str::to_owned);
    Ok(packages
        .into_iter()
        .flatten()
        .filter_map(|p| Some((format!("{}@{}", of(p, "name")?, of(p, "version")?), of(p, "checksum")?)))
        .collect())
}

/// Edges that are there outside tests, by package id.
fn edges(metadata: &Value) -> BTreeMap<&str, Vec<&str>> {
    let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
    nodes
        .filter_map(|node| {
            let deps = node["deps"].as_array()?.iter().filter(|dep| {
                dep["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"))
            });
            Some((node["id"].as_str()?, deps.filter_map(|dep| dep["pkg"].as_str()).collect()))
        })
        .collect()
}

fn bill(metadata: &Value, checksums: &BTreeMap<String, String>) -> Value {
    let edges = edges(metadata);
    let packages = workspace::packages(metadata);
    let tools = ["xtask", "synchromesh-testing", "synchromesh-harden"];
    let own = packages.iter().filter(|p| p["source"].is_null() && !tools.iter().any(|tool| p["name"] == *tool));
    let mut ahead: Vec<&str> = own.filter_map(|package| package["id"].as_str()).collect();
    let mut used: BTreeSet<&str> = BTreeSet::new();
    while let Some(id) = ahead.pop() {
        if used.insert(id) {
            ahead.extend(edges.get(id).into_iter().flatten());
        }
    }
    let purls: BTreeMap<&str, String> = packages.iter().filter_map(|p| Some((p["id"].as_str()?, purl(p)?))).collect();
    let by_id = |id: &&str| purls.get(*id).cloned();
    let components: Vec<Value> = packages
        .iter()
        .filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id)))
        .map(|package| component(package, checksums))
        .collect();
    let dependencies: Vec<Value> = used
        .iter()
        .filter_map(|id| {
            Some(json!({"ref": by_id(id)?, "dependsOn": edges.get(id)?.iter().filter_map(by_id).collect::<Vec<_>>()}))
        })
        .collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "synchromesh", "bom-ref": "synchromesh"}},
        "components": components,
        "dependencies": dependencies,
    })
}

fn purl(package: &Value) -> Option<String> {
    Some(format!("pkg:cargo/{}@{}", package["name"].as_str()?, package["version"].as_str()?))
}

fn component(package: &Value, checksums: &BTreeMap<String, String>) -> Value {
    let (name, version) =
        (package["name"].as_str().unwrap_or_default(), package["version"].as_str().unwrap_or_default());
    let mut out = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": name,
        "version": version,
        "purl": purl(package),
    });
    if let Some(licence) = package["license"].as_str() {
        // Older manifests separate alternatives with a slash.
        out["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    if let Some(sum) = checksums.get(&format!("{name}@{version}")) {
        out["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tests_use_is_no_component() {
        let package = |name: &str, source: Value| json!({"id": name, "name": name, "version": "1.0.0", "source": source, "license": "MIT/Apache-2.0"});
        let dep = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("ours", Value::Null), package("used", json!("r")), package("deep", json!("r")), package("tested", json!("r"))],
            "resolve": {"nodes": [
                {"id": "ours", "deps": [dep("used", Value::Null), dep("tested", json!("dev"))]},
                {"id": "used", "deps": [dep("deep", json!("build"))]},
                {"id": "deep", "deps": []}, {"id": "tested", "deps": []},
            ]},
        });
        let lock = "[[package]]\nname = \"used\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n";
        let bill = bill(&metadata, &checksums(lock).expect("a lock file"));
        let names: Vec<&str> =
            bill["components"].as_array().into_iter().flatten().filter_map(|c| c["name"].as_str()).collect();
        assert_eq!(names, ["ours", "used", "deep"]);
        assert_eq!(bill["components"][1]["hashes"][0]["content"], "ab");
        assert_eq!(bill["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bill["dependencies"].as_array().map(Vec::len), Some(3));
    }
}
