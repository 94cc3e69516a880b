//! Refuses an encrypted data set that is not whole, before a query is answered for minutes.

use anyhow::{Context as _, Result, ensure};
use fetch_by_similarity::{PAIRS, Stage, column_file, pair_file};
use synchromesh::search::Search;

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    let session = stage.session()?;
    let context = session.context();
    let (mut columns, mut carried) = (Vec::new(), Vec::new());
    for (block, ..) in stage.parts(Search::block(context)) {
        columns.extend((0..stage.search.dimension).map(|column| column_file(block, column)));
    }
    for (half, ..) in stage.parts(context.params().slots()).filter(|_| !stage.count_only) {
        carried.extend((0..PAIRS).map(|k| pair_file(half / 2, half % 2, k)));
    }
    for files in [columns, carried] {
        let Some(first) = files.first() else { continue };
        let bytes = |file: &str| -> Result<u64> {
            let path = stage.io("encrypted", file)?;
            Ok(std::fs::metadata(&path).with_context(|| format!("there is no {}", path.display()))?.len())
        };
        let expected = bytes(first)?;
        for file in &files {
            let own = bytes(file)?;
            ensure!(
                own == expected,
                "{file} has {own} bytes, where {first} has {expected}: encrypt the data set again"
            );
        }
    }
    Ok(())
}
