//! Reduces modulo 2^64 and writes decimal text.

use std::fmt::Write as _;

use anyhow::Result;
use zn_multiplication::{Folders, read_numbers};

pub(crate) fn run() -> Result<()> {
    let folders = Folders::from_args()?;
    let mut text = String::new();
    for product in read_numbers(&folders.io("intermediate", "products")?)? {
        writeln!(text, "{}", u128::from_le_bytes(product) as u64)?;
    }
    Ok(std::fs::write(folders.io("cleartext_output", "out.txt")?, text)?)
}
