//! Compares all records with the query, and multiplies their payloads by what was found; has no secret key.

use anyhow::Result;
use fetch_by_similarity::{PAIRS, Stage, column_file, pair_file};
use synchromesh::rlwe::EvaluationKeys;
use synchromesh::rlwe::ring::Backend;
use synchromesh::search::Search;

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    let session = stage.session()?;
    let (context, threads) = (session.context(), session.rlwe().backend().threads());
    let keys = EvaluationKeys::from_bytes(session.rlwe(), &std::fs::read(stage.io("keys", "eval.keys")?)?, None, None)?;
    let evaluator = session.evaluator(keys);
    let query = stage.search.expanded(&evaluator, &stage.read(context, "encrypted", "query.bin")?)?;
    for (block, from, to) in stage.parts(Search::block(context)) {
        let column = |j: usize| stage.read(context, "encrypted", &column_file(block, j));
        let halves = stage.search.found(&evaluator, &query, column)?;
        if stage.count_only {
            let joined = Search::joined(&evaluator, &halves)?;
            std::fs::write(stage.io("results", &format!("found_{block}"))?, joined.to_bytes(context, None)?)?;
            continue;
        }
        let filled = (to - from).div_ceil(context.params().slots());
        let pairs: Vec<(usize, usize)> = (0..filled).flat_map(|half| (0..PAIRS).map(move |k| (half, k))).collect();
        threads.try_map(pairs, |(half, k)| {
            let file = pair_file(block, half, k);
            let found = evaluator.mul(&halves[half], &stage.read(context, "encrypted", &file)?)?;
            Ok::<_, anyhow::Error>(std::fs::write(stage.io("results", &file)?, found.to_bytes(context, None)?)?)
        })?;
    }
    Ok(())
}
