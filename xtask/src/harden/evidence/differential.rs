//! The same random circuits in this library and in others: exact results equal, real ones within both bounds.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use super::{Counts, Scale, counts, output, skipped};
use crate::compare::programs::{build_lattigo, python_environment};
use crate::harden::programs::Built;
use crate::steps::Invocation;
use crate::workspace;

const PROGRAM: &str = "synchromesh-harden/differential";

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

/// Another library.
struct Peer {
    name: &'static str,
    /// The command that evaluates a batch, or why there is none.
    command: Result<Vec<String>>,
    /// One in how many circuits of a quick and of a full run it is given.
    share: [usize; 2],
}

/// What was found of one batch in one peer.
#[derive(Default)]
struct Compared {
    equal: u64,
    lacking: u64,
    mismatches: Vec<String>,
}

/// Every batch in this library and in each peer there is.
pub(in crate::harden) fn run(root: &Path, scale: Scale) -> Result<Counts> {
    let peers = peers(root);
    let absent: Vec<String> =
        peers.iter().filter_map(|peer| Some(format!("{}: {:#}", peer.name, peer.command.as_ref().err()?))).collect();
    if absent.len() == peers.len() {
        return Ok(skipped(&absent.join("; ")));
    }
    let ours = Built::Checked.path(PROGRAM)?;
    let folder = workspace::target(root).join("differential");
    std::fs::create_dir_all(&folder)?;
    let (mut circuits, mut equal, mut mismatches, mut lacking) = (0, [0u64; 3], Vec::new(), 0);
    for (seed, (scheme, log_n, count)) in BATCHES.into_iter().enumerate() {
        let count = count[usize::from(scale == Scale::Full)];
        let batch = folder.join(format!("{scheme}-{log_n}.json"));
        let (_, text) = output(root, &Invocation::new(&ours, &format!("make {scheme} {log_n} {count} {seed}")))?;
        std::fs::write(&batch, text)?;
        let expected = lines(root, &[ours.clone(), "run".into()], &batch)?;
        ensure!(expected.len() == count as usize, "{scheme} at 2^{log_n}: {} of {count} circuits", expected.len());
        circuits += count;
        let compare = |peer: &Peer| -> Result<Compared> {
            let Ok(command) = &peer.command else { return Ok(Compared::default()) };
            let share = peer.share[usize::from(scale == Scale::Full)];
            let (batch, count) = beginning(&batch, peer.name, expected.len().div_ceil(share))?;
            let found = lines(root, command, &batch)?;
            Ok(compared(&format!("{}, {}", peer.name, batch.display()), &expected[..count], &found))
        };
        let all: Vec<Result<Compared>> = std::thread::scope(|scope| {
            let threads: Vec<_> = peers.iter().map(|peer| scope.spawn(|| compare(peer))).collect();
            let stopped = || Err(anyhow!("a comparison stopped"));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| stopped())).collect()
        });
        for (one, equal) in all.into_iter().zip(&mut equal) {
            let one = one?;
            *equal += one.equal;
            lacking += one.lacking;
            mismatches.extend(one.mismatches);
        }
    }
    mismatches.iter().take(10).for_each(|mismatch| eprintln!("{mismatch}"));
    let [openfhe, lattigo, tenseal] = equal;
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
    let peer = |name, command, share| Peer { name, command, share };
    // Vectors of TenSEAL take 0.1 s a circuit.
    [
        peer("openfhe", python("openfhe_run.py"), [1, 1]),
        peer("lattigo", lattigo(), [1, 1]),
        peer("tenseal", python("tenseal_run.py"), [4, 20]),
    ]
}

/// A batch of the first circuits of another, in a file of its own for a peer; how many it has.
fn beginning(batch: &Path, peer: &str, most: usize) -> Result<(PathBuf, usize)> {
    let mut value: Value = serde_json::from_str(&std::fs::read_to_string(batch)?)?;
    let circuits = value["circuits"].as_array_mut().context("a batch of no circuits")?;
    circuits.truncate(most);
    let count = circuits.len();
    let path = batch.with_extension(format!("{peer}.json"));
    std::fs::write(&path, value.to_string())?;
    Ok((path, count))
}

/// Results beside one another. No answers at all say that the peer has not the scheme.
fn compared(what: &str, expected: &[Value], found: &[Value]) -> Compared {
    let mut all = Compared::default();
    for (index, (ours, theirs)) in expected.iter().zip(found).enumerate() {
        if theirs.get("lacks").is_some() {
            all.lacking += 1;
        } else if agree(ours, theirs) {
            all.equal += 1;
        } else {
            all.mismatches.push(format!("{what}: circuit {index}: {ours} and {theirs}"));
        }
    }
    if !found.is_empty() && found.len() != expected.len() {
        all.mismatches.push(format!("{what}: {} answers", found.len()));
    }
    all
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
    fn what_a_peer_lacks_or_leaves_out_is_told_apart_from_what_differs() {
        let ours = [json!({ "hash": "a" }), json!({ "hash": "b" }), json!({ "hash": "c" })];
        let theirs = [json!({ "hash": "a" }), json!({ "lacks": "x" }), json!({ "hash": "d" })];
        let all = compared("peer", &ours, &theirs);
        assert_eq!((all.equal, all.lacking, all.mismatches.len()), (1, 1, 1));
        assert_eq!(compared("peer", &ours, &theirs[..1]).mismatches.len(), 1);
        assert!(compared("peer", &ours, &[]).mismatches.is_empty());
    }

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
