//! What the library writes as text and people may change: plans and machine profiles.

use anyhow::Result;
use synchromesh::cost::{Profile, Streaming};
use synchromesh::plan::Plan;

use super::{Outcome, SMALL, TABLES, Target, outcome};
use crate::mutation::Seal;

pub(super) const TARGETS: &[Target] =
    &[text("plan_json", plan_seeds, plan, TABLES), text("profile_json", profile_seeds, profile, SMALL)];

pub(super) const fn text(
    name: &'static str,
    seeds: fn() -> Result<Vec<Vec<u8>>>,
    read: fn(&[u8]) -> Outcome,
    slack: usize,
) -> Target {
    Target { name, seeds, read, seal: Seal::Nothing, checksummed: false, slack }
}

/// A plan as it is in files.
pub(super) const fn plan_json() -> &'static str {
    include_str!("../../../synchromesh-cli/data/plans/bfv.json")
}

fn plan_seeds() -> Result<Vec<Vec<u8>>> {
    let others = [
        include_str!("../../../synchromesh-cli/data/plans/bgv.json"),
        include_str!("../../../synchromesh-cli/data/plans/ckks.json"),
    ];
    Ok([plan_json()].into_iter().chain(others).map(|text| text.as_bytes().to_vec()).collect())
}

/// A plan as JSON; what is accepted is written and read again.
fn plan(bytes: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(bytes) else { return Outcome::Refused("no text".to_owned()) };
    let read = Plan::from_json(text);
    if let Ok(plan) = &read {
        let again = plan.to_json().and_then(|text| Plan::from_json(&text));
        assert!(again.is_ok(), "a plan that does not survive its file");
    }
    outcome!(read)
}

fn profile_seeds() -> Result<Vec<Vec<u8>>> {
    let streaming = Streaming { read_gb_per_s: 10.0, write_gb_per_s: 5.5, copy_gb_per_s: 7.25 };
    let names = ["a machine", "cpu", "scalar", "2026-01-01"].map(str::to_owned);
    let [machine, device, isa, date] = names;
    Ok(vec![Profile::new(machine, device, isa, date, streaming).to_json()?.into_bytes()])
}

/// A machine's profile.
fn profile(bytes: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(bytes) else { return Outcome::Refused("no text".to_owned()) };
    outcome!(Profile::from_json(text))
}
