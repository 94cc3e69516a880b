//! Decrypts the products, of up to 128 bits.

use anyhow::{Context as _, Result};
use synchromesh::bgv::Ciphertext;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::ring::Backend;
use zn_multiplication::{Folders, context, count_from_args, secret_key, write_numbers};

pub(crate) fn run() -> Result<()> {
    let (folders, count) = (Folders::from_args()?, count_from_args()?);
    let context = context(&folders)?;
    let secret = secret_key(&folders, &context)?;
    let t = u128::try_from(context.params().t().value()).context("t has more than 128 bits")?;
    let parts = (0..count.div_ceil(context.params().n())).collect();
    let products = context.backend().threads().try_map(parts, |i: usize| {
        let bytes = std::fs::read(folders.io("ciphertexts_download", &i.to_string())?)?;
        let ciphertext = Ciphertext::from_bytes(&context, &bytes, Some(secret.id()), Trust::Certificate)?;
        let slots = context.decode_big(&context.decrypt(&secret, &ciphertext)?)?;
        // Slots come centred around 0.
        let product = |x: i128| if x < 0 { t.wrapping_add_signed(x) } else { x.unsigned_abs() };
        let products = slots.into_iter().map(|x| i128::try_from(x).map(product));
        Ok::<_, anyhow::Error>(products.collect::<Result<Vec<u128>, _>>()?)
    })?;
    let products = products.into_iter().flatten().take(count);
    write_numbers(&folders.io("intermediate", "products")?, products.map(u128::to_le_bytes))
}
