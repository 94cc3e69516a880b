//! Decrypts what the server sent, and writes the payloads of found records, or how many of each block there are.

use anyhow::Result;
use fetch_by_similarity::{PAIRS, Stage, pair_file, payload};
use synchromesh::ckks::Complex64;
use synchromesh::search::Search;

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    let session = stage.session()?;
    let (context, secret) = (session.context(), stage.secret(&session)?);
    let slots = |file: &str| -> Result<Vec<Complex64>> {
        Ok(context.decode_complex(&context.decrypt(&secret, &stage.read(context, "results", file)?)?)?)
    };
    let mut decoded = Vec::new();
    if stage.count_only {
        for (block, from, to) in stage.parts(Search::block(context)) {
            let found = Search::parted(&slots(&format!("found_{block}"))?);
            let count = found[..to - from].iter().filter(|&&x| x > 0.5).count() as u64;
            decoded.extend(count.to_le_bytes());
        }
    } else {
        for (half, from, to) in stage.parts(context.params().slots()) {
            let pairs = (0..PAIRS).map(|k| slots(&pair_file(half / 2, half % 2, k))).collect::<Result<Vec<_>>>()?;
            let found =
                (0..to - from).filter_map(|s| payload(std::array::from_fn(|k| [pairs[k][s].re, pairs[k][s].im])));
            decoded.extend(found.flatten().flat_map(i16::to_le_bytes));
        }
    }
    Ok(std::fs::write(stage.io("intermediate", "found.bin")?, decoded)?)
}
