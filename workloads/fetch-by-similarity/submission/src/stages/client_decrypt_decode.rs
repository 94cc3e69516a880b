//! Decrypts what the server sent, and writes the payloads of found records, or how many of each block there are.

use anyhow::Result;
use fetch_by_similarity::{PAYLOAD, Stage, reply_file};

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    let (session, database) = (stage.session()?, stage.open()?);
    let (context, secret) = (session.context(), stage.secret(&session)?);
    let mut decoded = Vec::new();
    for block in 0..database.blocks(context) {
        let slots = |i: usize| -> Result<_> {
            let reply = stage.read(context, "results", &reply_file(block, i))?;
            Ok(context.decode_complex(&context.decrypt(&secret, &reply)?)?)
        };
        let replies = (0..database.replies(context, block)).map(slots).collect::<Result<Vec<_>>>()?;
        let (marks, numbers) = stage.search.read(&replies, database.of_block(context, block).len())?;
        if stage.count_only {
            decoded.extend((marks.iter().filter(|&&mark| mark > 0.5).count() as u64).to_le_bytes());
        } else {
            let found = marks.iter().zip(numbers.chunks(PAYLOAD)).filter(|(mark, _)| **mark > 0.5);
            decoded.extend(found.flat_map(|(_, payload)| payload).flat_map(|number| number.to_le_bytes()));
        }
    }
    Ok(std::fs::write(stage.io("intermediate", "found.bin")?, decoded)?)
}
