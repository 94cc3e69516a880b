//! From decimal text to binary.

use anyhow::{Context as _, Result};
use zn_multiplication::{Folders, write_numbers};

pub(crate) fn run() -> Result<()> {
    let folders = Folders::from_args()?;
    for side in ["lhs", "rhs"] {
        let path = folders.dataset(side);
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let numbers =
            text.lines().map(|line| line.trim().parse().with_context(|| format!("{line} in {}", path.display())));
        let numbers = numbers.collect::<Result<Vec<u64>>>()?;
        write_numbers(&folders.io("intermediate", side)?, numbers.into_iter().map(u64::to_le_bytes))?;
    }
    Ok(())
}
