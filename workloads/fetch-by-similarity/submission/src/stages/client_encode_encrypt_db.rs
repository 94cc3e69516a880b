//! Encrypts the records column by column, and their payloads unless they are only counted.

use std::fs;

use anyhow::{Result, ensure};
use fetch_by_similarity::Stage;
use synchromesh::search::Database;

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    let session = stage.session()?;
    let (context, secret) = (session.context(), stage.secret(&session)?);
    // The harness asks for payloads and for counts in one folder, one after the other.
    if stage.database().exists() {
        fs::remove_dir_all(stage.database())?;
    }
    let database = Database::create(&stage.database(), stage.search, stage.records)?;
    let (wanted, left) = (database.bytes(context)?, fs4::available_space(stage.database())?);
    ensure!(
        wanted < left,
        "the encrypted records take up to {wanted} bytes, and the disk has {left} left: free some, or search fewer records"
    );
    for block in 0..database.blocks(context) {
        let own = database.of_block(context, block);
        let (vectors, payloads) = (stage.vectors(own.start, own.end)?, stage.payloads(own.start, own.end)?);
        database.encrypt(context, (&secret, None), block, (&vectors, &payloads), &|| Ok(()))?;
    }
    Ok(database.finish(context)?)
}
