//! Encrypts both sides under the secret key: of each ciphertext one half and the seed of the other travel.

use anyhow::Result;
use synchromesh::rlwe::Randomness;
use synchromesh::rlwe::ring::Backend;
use zn_multiplication::{Folders, context, read_numbers, secret_key};

pub(crate) fn run() -> Result<()> {
    let folders = Folders::from_args()?;
    let context = context(&folders)?;
    let secret = secret_key(&folders, &context)?;
    let mut randomness = Randomness::from_os();
    for side in ["lhs", "rhs"] {
        let numbers: Vec<u64> =
            read_numbers(&folders.io("intermediate", side)?)?.into_iter().map(u64::from_le_bytes).collect();
        let parts = numbers.chunks(context.params().n()).enumerate();
        let parts = parts.map(|(i, part)| Ok((i, part, randomness.fork()?))).collect::<Result<Vec<_>>>()?;
        context.backend().threads().try_map(parts, |(i, part, mut randomness)| {
            let (ciphertext, seed) = context.encrypt_with_secret(&secret, &context.encode(part)?, &mut randomness)?;
            let bytes = ciphertext.to_seeded_bytes(&context, &seed, None)?;
            Ok::<_, anyhow::Error>(std::fs::write(folders.io("ciphertexts_upload", &format!("{side}_{i}"))?, bytes)?)
        })?;
    }
    Ok(())
}
