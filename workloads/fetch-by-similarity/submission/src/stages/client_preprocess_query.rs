//! Refuses a query that is no unit vector.

use anyhow::Result;
use fetch_by_similarity::Stage;

pub(crate) fn run() -> Result<()> {
    Stage::from_args()?.query()?;
    Ok(())
}
