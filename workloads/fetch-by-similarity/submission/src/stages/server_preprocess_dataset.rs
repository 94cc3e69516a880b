//! Refuses an encrypted data set that is not whole, before a query is answered for minutes.

use anyhow::Result;
use fetch_by_similarity::Stage;

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    let session = stage.session()?;
    Ok(stage.open()?.require_whole(session.context())?)
}
