//! Multiplies slot by slot, without any key, and sends each product at the lowest level.

use anyhow::Result;
use synchromesh::bgv::{Ciphertext, Evaluator};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::ring::Backend;
use zn_multiplication::{Folders, context, count_from_args};

pub(crate) fn run() -> Result<()> {
    let (folders, count) = (Folders::from_args()?, count_from_args()?);
    let context = context(&folders)?;
    let evaluator = Evaluator::new(&context, None);
    // The client is the one to be harmed by false certificates, and it wrote these files itself.
    let read = |side: &str, i: usize| -> Result<Ciphertext> {
        let bytes = std::fs::read(folders.io("ciphertexts_upload", &format!("{side}_{i}"))?)?;
        Ok(Ciphertext::from_bytes(&context, &bytes, None, Trust::Certificate)?)
    };
    let parts: Vec<usize> = (0..count.div_ceil(context.params().n())).collect();
    context.backend().threads().try_map(parts, |i| {
        let product = evaluator.mul_no_relin(&read("lhs", i)?, &read("rhs", i)?)?;
        let bytes = evaluator.mod_switch_to(&product, 0)?.to_bytes(&context, None)?;
        Ok::<_, anyhow::Error>(std::fs::write(folders.io("ciphertexts_download", &i.to_string())?, bytes)?)
    })?;
    Ok(())
}
