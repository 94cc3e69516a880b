//! Encrypts the query, all of it in one ciphertext.

use anyhow::Result;
use fetch_by_similarity::Stage;
use synchromesh::rlwe::Randomness;

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    let session = stage.session()?;
    let (context, secret) = (session.context(), stage.secret(&session)?);
    let message = stage.search.encode_query(context, &stage.query()?)?;
    let top = context.params().top_level();
    let (query, seed) = context.encrypt_with_secret(&secret, &message, top, &mut Randomness::from_os())?;
    Ok(std::fs::write(stage.io("encrypted", "query.bin")?, query.to_seeded_bytes(context, &seed, None)?)?)
}
