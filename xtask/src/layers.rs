//! The layer check: ring, rlwe, synchromesh, parties, triples form a chain, a crate uses only what lies below it, and
//! within a crate no modules use one another in a circle.

mod circles;

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::workspace;

/// What one package may use of the workspace, in normal and build dependencies.
struct Layer {
    name: &'static str,
    may_use: &'static [&'static str],
}

const LAYERS: &[Layer] = &[
    Layer { name: "synchromesh-ring", may_use: &[] },
    Layer { name: "synchromesh-rlwe", may_use: &["synchromesh-ring"] },
    Layer { name: "synchromesh", may_use: &["synchromesh-ring", "synchromesh-rlwe"] },
    Layer { name: "synchromesh-parties", may_use: &["synchromesh-ring", "synchromesh-rlwe", "synchromesh"] },
    Layer {
        name: "synchromesh-triples",
        may_use: &["synchromesh-ring", "synchromesh-rlwe", "synchromesh", "synchromesh-parties"],
    },
    Layer { name: "synchromesh-cuda", may_use: &["synchromesh-ring"] },
    Layer { name: "synchromesh-bench", may_use: LIBRARIES },
    Layer { name: "synchromesh-papers", may_use: LIBRARIES_AND_BENCH },
    Layer { name: "synchromesh-py", may_use: LIBRARIES },
    Layer { name: "synchromesh-cli", may_use: LIBRARIES_AND_MEASUREMENTS },
    Layer { name: "synchromesh-js", may_use: LIBRARIES },
    Layer { name: "synchromesh-testing", may_use: &["synchromesh-ring", "synchromesh-rlwe", "synchromesh"] },
    Layer { name: "synchromesh-harden", may_use: EVERYTHING },
    Layer { name: "fetch-by-similarity", may_use: &["synchromesh"] },
    Layer { name: "zn-multiplication", may_use: &["synchromesh"] },
    Layer { name: "xtask", may_use: &[] },
];

const LIBRARIES: &[&str] = &[
    "synchromesh-ring",
    "synchromesh-rlwe",
    "synchromesh",
    "synchromesh-parties",
    "synchromesh-triples",
    "synchromesh-cuda",
];

const LIBRARIES_AND_BENCH: &[&str] = &[
    "synchromesh-ring",
    "synchromesh-rlwe",
    "synchromesh",
    "synchromesh-parties",
    "synchromesh-triples",
    "synchromesh-cuda",
    "synchromesh-bench",
];

const LIBRARIES_AND_MEASUREMENTS: &[&str] = &[
    "synchromesh-ring",
    "synchromesh-rlwe",
    "synchromesh",
    "synchromesh-parties",
    "synchromesh-triples",
    "synchromesh-cuda",
    "synchromesh-bench",
    "synchromesh-papers",
];

/// What tries to break the rest, and is itself part of nothing.
const EVERYTHING: &[&str] = &[
    "synchromesh-ring",
    "synchromesh-rlwe",
    "synchromesh",
    "synchromesh-parties",
    "synchromesh-triples",
    "synchromesh-cuda",
    "synchromesh-cli",
    DEV_ONLY,
];

/// What tests may use besides: a backend is tested under the layers above it.
const TESTS_MAY_USE: &[(&str, &[&str])] =
    &[("synchromesh-cuda", &["synchromesh-rlwe", "synchromesh"]), ("synchromesh-triples", &["synchromesh-cuda"])];

/// Packages that others may name only as a development dependency.
const DEV_ONLY: &str = "synchromesh-testing";

/// Packages within which modules form no circle.
const WITHOUT_CIRCLES: [&str; 11] = [
    "synchromesh-ring",
    "synchromesh-rlwe",
    "synchromesh",
    "synchromesh-parties",
    "synchromesh-triples",
    "synchromesh-cuda",
    "synchromesh-bench",
    "synchromesh-papers",
    "synchromesh-cli",
    "synchromesh-js",
    "synchromesh-harden",
];

/// Checks every package of the workspace at `root`; the text says how many dependencies were looked at.
///
/// # Errors
/// Lists every dependency that points upwards or sideways, every package that has no layer, and circles of modules.
pub(crate) fn check(root: &Path) -> Result<String> {
    let metadata = workspace::metadata(root)?;
    let members = workspace::package_names(&metadata);
    let mut faults = Vec::new();
    let mut edges = 0;
    for package in workspace::packages(&metadata) {
        edges += check_package(package, &members, &mut faults);
    }
    for name in WITHOUT_CIRCLES {
        let circles = circles::uses(&root.join("crates").join(name).join("src"))?.circles();
        faults.extend(circles.iter().map(|circle| format!("{name} has a circle of modules: {circle}")));
    }
    if faults.is_empty() {
        let crates = WITHOUT_CIRCLES.join(", ");
        let packages = members.len();
        Ok(format!(
            "layers: {packages} packages, {edges} dependencies between them, all downwards; no circle of modules in {crates}"
        ))
    } else {
        bail!("layers:\n  {}", faults.join("\n  "))
    }
}

/// Appends the faults of one package to `faults`; returns how many workspace dependencies it has.
fn check_package(package: &Value, members: &[&str], faults: &mut Vec<String>) -> usize {
    let name = package["name"].as_str().unwrap_or_default();
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
        faults.push(format!("{name} has no layer: add it to LAYERS in {} and to ARCHITECTURE.md", file!()));
        return 0;
    };
    let mut edges = 0;
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let on = dependency["name"].as_str().unwrap_or_default();
        if !members.contains(&on) {
            continue;
        }
        edges += 1;
        let dev = dependency["kind"] == "dev";
        // A package that names itself gives its tests features.
        let for_tests = on == DEV_ONLY
            || on == name
            || TESTS_MAY_USE.iter().any(|(test, uses)| *test == name && uses.contains(&on));
        let allowed = layer.may_use.contains(&on) || (dev && for_tests);
        if !allowed {
            let kind = if dev { "a development" } else { "a" };
            faults.push(format!("{name} has {kind} dependency on {on}; it may use only {:?}", layer.may_use));
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(package: Value) -> Vec<String> {
        let members: Vec<&str> = LAYERS.iter().map(|layer| layer.name).collect();
        let mut faults = Vec::new();
        check_package(&package, &members, &mut faults);
        faults
    }

    #[test]
    fn this_workspace_obeys_its_layers() {
        let root = workspace::root().expect("a root");
        check(&root).expect("dependencies point downwards");
    }

    #[test]
    fn an_upward_dependency_is_a_fault() {
        let package = json!({"name": "synchromesh-ring", "dependencies": [{"name": "synchromesh-rlwe", "kind": null}]});
        assert_eq!(faults(package).len(), 1);
    }

    #[test]
    fn laws_are_for_tests_only() {
        let dev = json!({"name": "synchromesh-rlwe", "dependencies": [{"name": DEV_ONLY, "kind": "dev"}]});
        assert!(faults(dev).is_empty());
        let normal = json!({"name": "synchromesh-rlwe", "dependencies": [{"name": DEV_ONLY, "kind": null}]});
        assert_eq!(faults(normal).len(), 1);
    }

    #[test]
    fn a_package_without_a_layer_is_a_fault() {
        assert_eq!(faults(json!({"name": "synchromesh-utils", "dependencies": []})).len(), 1);
    }
}
