//! The same random circuits in this library and in others: exact results equal, real ones within both bounds.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Counts, Scale, counts, output, skipped};
use crate::compare::programs::{build_lattigo, python_environment};
use crate::harden::programs::Built;
use crate::steps::Invocation;
use crate::workspace;

const PROGRAM: &str = "synchromesh-bench/differential";

/// What a peer may add to the certified bound of a CKKS value, of scales of 40 bits and more and values of at most 32.
const PEER_ERROR: f64 = 1e-4;

/// Scheme, log2 of the degree, and circuits in the quick and in the full run.
const BATCHES: [(&str, u32, [u32; 2]); 6] = [
    ("bfv", 11, [3300, 33_000]),
    ("bgv", 11, [3300, 33_000]),
    ("ckks", 11, [3300, 33_000]),
    ("bfv", 13, [40, 400]),
    ("bgv", 13, [40, 400]),
    ("ckks", 13, [40, 400]),
];

/// A peer and the command that evaluates a batch, or why there is none.
type Peer = (&'static str, Result<Vec<String>>);

/// Every batch in this library and in each peer there is.
pub(in crate::harden) fn run(root: &Path, scale: Scale) -> Result<Counts> {
    let peers = peers(root);
    let absent: Vec<String> =
        peers.iter().filter_map(|(name, command)| Some(format!("{name}: {:#}", command.as_ref().err()?))).collect();
    if absent.len() == peers.len() {
        return Ok(skipped(&absent.join("; ")));
    }
    let ours = Built::Checked.path(PROGRAM)?;
    let folder = workspace::target(root).join("differential");
    std::fs::create_dir_all(&folder)?;
    let (mut circuits, mut compared, mut mismatches, mut lacking) = (0, [0u64; 3], Vec::new(), 0u64);
    for (seed, (scheme, log_n, count)) in BATCHES.into_iter().enumerate() {
        let count = count[usize::from(scale == Scale::Full)];
        let batch = folder.join(format!("{scheme}-{log_n}.json"));
        let (_, text) = output(root, &Invocation::new(&ours, &format!("make {scheme} {log_n} {count} {seed}")))?;
        std::fs::write(&batch, text)?;
        let expected = lines(root, &[ours.clone(), "run".into()], &batch)?;
        ensure!(expected.len() == count as usize, "{scheme} at 2^{log_n}: {} of {count} circuits", expected.len());
        circuits += count;
        for ((name, command), compared) in peers.iter().zip(&mut compared) {
            let Ok(command) = command else { continue };
            let found = lines(root, command, &batch)?;
            let judged = expected.iter().zip(&found).enumerate();
            for (index, (ours, theirs)) in judged {
                if theirs.get("lacks").is_some() {
                    lacking += 1;
                } else if agree(ours, theirs) {
                    *compared += 1;
                } else {
                    mismatches.push(format!("{name}, {}: circuit {index}: {ours} and {theirs}", batch.display()));
                }
            }
            // An empty answer says that the peer has not the scheme.
            if !found.is_empty() && found.len() != expected.len() {
                mismatches.push(format!("{name}, {}: {} answers", batch.display(), found.len()));
            }
        }
    }
    mismatches.iter().take(10).for_each(|mismatch| eprintln!("{mismatch}"));
    let [openfhe, lattigo, tenseal] = compared;
    let mut counts = counts([
        ("findings", mismatches.len().into()),
        ("circuits", circuits.into()),
        ("equal_in_openfhe", openfhe.into()),
        ("equal_in_lattigo", lattigo.into()),
        ("equal_in_tenseal", tenseal.into()),
        ("with_rotations_tenseal_lacks", lacking.into()),
    ]);
    if !absent.is_empty() {
        counts.insert("absent".into(), absent.join("; ").into());
    }
    Ok(counts)
}

fn peers(root: &Path) -> [Peer; 3] {
    let peers = root.join("peers");
    let python = |script: &str| -> Result<Vec<String>> {
        let program = python_environment(&peers.join("differential"))?;
        Ok(vec![program, "-B".into(), peers.join("differential").join(script).display().to_string()])
    };
    let lattigo = || -> Result<Vec<String>> {
        let mut command = build_lattigo(&peers.join("lattigo"))?;
        command.push("differential".into());
        Ok(command)
    };
    [("openfhe", python("openfhe_run.py")), ("lattigo", lattigo()), ("tenseal", python("tenseal_run.py"))]
}

/// What a program prints for a batch.
fn lines(root: &Path, command: &[String], batch: &Path) -> Result<Vec<Value>> {
    let (program, args) = command.split_first().context("an empty command")?;
    // OpenFHE's threads wait for one another longer than such small circuits take.
    let run = Invocation::new(program, "").args(args).args(&[batch.display().to_string()]).env("OMP_NUM_THREADS", "1");
    let (clean, text) = output(root, &run)?;
    ensure!(clean, "`{run}` failed");
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Whether two results are one: hashes equal, or all values nearer than both bounds together.
fn agree(ours: &Value, theirs: &Value) -> bool {
    if let (Some(a), Some(b)) = (ours["hash"].as_str(), theirs["hash"].as_str()) {
        return a == b;
    }
    let (Some(a), Some(b), Some(bound)) =
        (ours["values"].as_array(), theirs["values"].as_array(), ours["bound"].as_f64())
    else {
        return false;
    };
    let near = |(a, b): (&Value, &Value)| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= bound + PEER_ERROR,
        _ => false,
    };
    !a.is_empty() && a.len() == b.len() && a.iter().zip(b).all(near)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_agree_by_hash_or_within_the_bounds() {
        let hash = |x: &str| json!({ "hash": x });
        assert!(agree(&hash("a"), &hash("a")) && !agree(&hash("a"), &hash("b")) && !agree(&hash("a"), &json!({})));
        let real = |x: f64| json!({ "values": [x, 1.0], "bound": 1e-6 });
        assert!(agree(&real(0.5), &real(0.5 + PEER_ERROR)));
        assert!(!agree(&real(0.5), &real(0.5 + 2.0 * PEER_ERROR)));
        assert!(!agree(&real(0.5), &json!({ "values": [], "bound": 1 })));
    }
}
