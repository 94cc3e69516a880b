//! `cargo xtask compare plans`: the parameters this library plans beside those OpenFHE chooses for the same request.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::cases::{Case, Group, OPENFHE, PeerCall};
use super::programs::{OURS, Programs};
use crate::machine;

/// The table, from the root.
const TABLE: &str = "docs/compare/plans.csv";

/// Depths at 128 bits of security, then at 192, then at 256.
const DEPTHS: [(u32, &[u32]); 3] = [(128, &[1, 2, 3, 5, 8, 10, 15]), (192, &[2, 5]), (256, &[5])];

/// What both are asked for: exact schemes at t = 65537, CKKS at a scale of 40 bits or what keeps 20 bits.
struct Request {
    scheme: &'static str,
    depth: u32,
    security: u32,
}

/// Degree and bits of the moduli.
#[derive(Clone, Copy)]
struct Size {
    log_n: u64,
    log_q: u64,
    log_qp: u64,
}

impl Size {
    fn of(line: &Value) -> Option<Self> {
        let sum = |widths: &Value| widths.as_array().map(|list| list.iter().filter_map(Value::as_u64).sum());
        let log_q = line["log_q"].as_u64().or_else(|| sum(&line["q_bits"]))?;
        Some(Self { log_n: line["log_n"].as_u64()?, log_q, log_qp: line["log_qp"].as_u64()? })
    }
}

fn requests() -> Vec<Request> {
    let mut all = Vec::new();
    for scheme in ["bgv", "bfv", "ckks"] {
        for (security, depths) in DEPTHS {
            all.extend(depths.iter().map(|&depth| Request { scheme, depth, security }));
        }
    }
    all
}

/// Asks both for every request and writes the table; fails when one of our degrees is larger, or when fewer than half of
/// our moduli are smaller.
///
/// # Errors
/// When a program cannot be built or fails, or the table cannot be written.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let mut programs = Programs::new(root, 0, 0, None);
    let peer = PeerCall { peer: OPENFHE, args: String::new(), lacks: Vec::new() };
    let empty = || (Vec::new(), Vec::new(), Vec::new());
    let (ops, ours, limits) = empty();
    let case = Case { group: Group::Scheme, label: "plans".into(), ops, ours, peers: vec![peer], limits };
    programs.build(&[case], false)?;
    let mut rows = Vec::new();
    for request in requests() {
        let Request { scheme, depth, security } = request;
        let ask = format!("plan --scheme {scheme} --depth {depth} --security {security}");
        let own = programs.run(OURS, &format!("{ask} --adds 0 --json"));
        let other = programs.run(OPENFHE, &ask);
        let [Some(own), Some(other)] = [own.first(), other.first()].map(|line| line.and_then(Size::of)) else {
            bail!("no parameters for `{ask}`: {}", programs.reasons().join("; "));
        };
        println!("{ask}: N = 2^{} of 2^{}, log QP = {} of {}", own.log_n, other.log_n, own.log_qp, other.log_qp);
        rows.push((request, own, other));
    }
    let path = root.join(TABLE);
    fs::write(&path, table(&rows)).with_context(|| format!("cannot write {}", path.display()))?;
    let larger = rows.iter().filter(|(_, own, other)| own.log_n > other.log_n).count();
    let smaller = rows.iter().filter(|(_, own, other)| own.log_qp < other.log_qp).count();
    println!("{} requests: {larger} larger degrees, {smaller} smaller moduli; written to {TABLE}", rows.len());
    println!("{}, commit {}", machine::date(), machine::commit(root));
    Ok(if larger == 0 && 2 * smaller > rows.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn table(rows: &[(Request, Size, Size)]) -> String {
    let mut text = String::from(
        "scheme,t,depth,security,ours_log_n,ours_log_q,ours_log_qp,openfhe_log_n,openfhe_log_q,openfhe_log_qp\n",
    );
    for (Request { scheme, depth, security }, own, other) in rows {
        let t = if *scheme == "ckks" { "" } else { "65537" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{scheme},{t},{depth},{security}");
        for Size { log_n, log_q, log_qp } in [own, other] {
            let _ = write!(text, ",{log_n},{log_q},{log_qp}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn there_are_thirty_requests() {
        assert_eq!(requests().len(), 30);
    }

    #[test]
    fn sizes_are_read_from_both_programs() {
        let own = Size::of(&json!({"log_n": 13, "q_bits": [40, 40], "log_qp": 121})).expect("ours");
        let other = Size::of(&json!({"log_n": 14, "log_q": 121, "log_qp": 241})).expect("theirs");
        assert_eq!((own.log_q, own.log_qp, other.log_q), (80, 121, 121));
        assert!(Size::of(&json!({"error": {}})).is_none());
        let text = table(&[(Request { scheme: "bgv", depth: 2, security: 128 }, own, other)]);
        assert!(text.ends_with("\nbgv,65537,2,128,13,80,121,14,121,241\n"), "{text}");
    }
}
