//! Plans the server's circuit and makes its keys.

use anyhow::Result;
use fetch_by_similarity::Stage;
use synchromesh::plan::Plan;
use synchromesh::rlwe::Randomness;

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    let plan: Plan = stage.planned()?;
    std::fs::write(stage.io("keys", "plan.json")?, plan.bare().to_json()?)?;
    let session = stage.session()?;
    let mut randomness = Randomness::from_os();
    let (secret, _) = session.generate_keys(&mut randomness)?;
    let keys = session.generate_evaluation_keys(&secret, &mut randomness)?;
    std::fs::write(stage.io("keys", "secret.key")?, &*secret.to_bytes(session.rlwe(), None)?)?;
    std::fs::write(stage.io("keys", "eval.keys")?, keys.to_bytes(session.rlwe(), None)?)?;
    Ok(())
}
