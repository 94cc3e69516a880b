//! Encrypts the query, all of it in one ciphertext.

use anyhow::Result;
use fetch_by_similarity::{Stage, encrypt_to};
use synchromesh::rlwe::Randomness;

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    let session = stage.session()?;
    let (context, secret) = (session.context(), stage.secret(&session)?);
    let message = stage.search.encode_query(context, &stage.query()?)?;
    let (path, top) = (stage.io("encrypted", "query.bin")?, context.params().top_level());
    encrypt_to(&path, context, &secret, &message, top, &mut Randomness::from_os())
}
