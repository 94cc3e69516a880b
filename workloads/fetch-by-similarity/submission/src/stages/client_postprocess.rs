//! Adds the counts of blocks, or sorts the payloads.

use anyhow::Result;
use fetch_by_similarity::{PAYLOAD, Stage};

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    let found = std::fs::read(stage.io("intermediate", "found.bin")?)?;
    let result: Vec<u8> = if stage.count_only {
        let counts = found.chunks_exact(8).map(|count| u64::from_le_bytes(std::array::from_fn(|i| count[i])));
        counts.sum::<u64>().to_le_bytes().to_vec()
    } else {
        let numbers: Vec<i16> = found.as_chunks().0.iter().map(|&number| i16::from_le_bytes(number)).collect();
        let mut payloads: Vec<&[i16]> = numbers.chunks(PAYLOAD).collect();
        payloads.sort_unstable();
        payloads.into_iter().flatten().flat_map(|number| number.to_le_bytes()).collect()
    };
    Ok(std::fs::write(stage.io("", "results.bin")?, result)?)
}
