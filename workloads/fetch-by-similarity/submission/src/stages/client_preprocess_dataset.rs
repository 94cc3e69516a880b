//! Refuses a data set that could not be searched, before anything is encrypted.

use anyhow::Result;
use fetch_by_similarity::Stage;

/// Records that are looked at together.
const AT_ONCE: usize = 1 << 14;

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    for from in (0..stage.records).step_by(AT_ONCE) {
        let to = stage.records.min(from + AT_ONCE);
        stage.vectors(from, to)?;
        stage.payloads(from, to)?;
    }
    Ok(())
}
