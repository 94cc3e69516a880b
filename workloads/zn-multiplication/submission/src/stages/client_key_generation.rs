//! Chooses parameters and makes the secret key; the server gets the parameters alone.

use anyhow::Result;
use synchromesh::bgv::{Context, Params};
use synchromesh::rlwe::file::{Access, Existing, write};
use synchromesh::rlwe::{Randomness, SecretKey};
use zn_multiplication::{Folders, planned};

pub(crate) fn run() -> Result<()> {
    let folders = Folders::from_args()?;
    let literal = planned()?;
    let context = Context::new(Params::new(literal)?)?;
    let literal = serde_json::to_vec_pretty(&context.params().literal())?;
    std::fs::write(folders.io("public_keys", "params.json")?, literal)?;
    let secret = SecretKey::generate(context.rlwe(), &mut Randomness::from_os())?;
    let bytes = secret.to_bytes(context.rlwe(), None)?;
    write(&folders.io("secret_key", "secret.key")?, &bytes, Access::Secret, Existing::Force)?;
    Ok(())
}
