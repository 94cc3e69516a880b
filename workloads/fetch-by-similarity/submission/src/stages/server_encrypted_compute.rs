//! Compares all records with the query, and multiplies their payloads by what was found; has no secret key.

use anyhow::Result;
use fetch_by_similarity::{Stage, reply_file};
use synchromesh::rlwe::EvaluationKeys;
use synchromesh::rlwe::codec::Trust;

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    let (session, database) = (stage.session()?, stage.open()?);
    let context = session.context();
    let keys = EvaluationKeys::from_bytes(session.rlwe(), &std::fs::read(stage.io("keys", "eval.keys")?)?, None, None)?;
    let evaluator = session.evaluator(keys);
    let query = stage.search.expanded(&evaluator, &stage.read(context, "encrypted", "query.bin")?)?;
    for block in 0..database.blocks(context) {
        let replies = database.find(&evaluator, &query, block, Trust::Certificate, &|| Ok(()))?;
        for (i, reply) in replies.iter().enumerate() {
            std::fs::write(stage.io("results", &reply_file(block, i))?, reply.to_bytes(context, None)?)?;
        }
    }
    Ok(())
}
