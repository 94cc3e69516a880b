//! Encrypts the records column by column, and their payloads unless they are only counted.

use std::fs;

use anyhow::{Result, ensure};
use fetch_by_similarity::{CARRIED, PAIR_BOUND, PAIRS, Stage, column_file, encrypt_to, pair, pair_file};
use synchromesh::ckks::{Complex64, Context};
use synchromesh::rlwe::ring::Backend;
use synchromesh::rlwe::{Randomness, SecretKey};
use synchromesh::search::Search;

pub(crate) fn run() -> Result<()> {
    let stage = Stage::from_args()?;
    let session = stage.session()?;
    let (context, secret) = (session.context(), stage.secret(&session)?);
    for (block, from, to) in stage.parts(Search::block(context)) {
        let vectors = stage.vectors(from, to)?;
        let column = |column| encrypt_column(&stage, context, &secret, &vectors, block, column);
        column(0)?;
        if block == 0 {
            require_room(&stage, context)?;
        }
        session.rlwe().backend().threads().try_map((1..stage.search.dimension).collect(), column)?;
    }
    if stage.count_only {
        return Ok(());
    }
    for (half, from, to) in stage.parts(context.params().slots()) {
        let payloads = stage.payloads(from, to)?;
        let encrypt = |k: usize| {
            let both = payloads.iter().map(|payload| pair(payload, k));
            let slots: Vec<Complex64> = both.map(|[x, y]| Complex64::new(x, y)).collect();
            let message = context.encode_complex(&slots, PAIR_BOUND)?;
            let path = stage.io("encrypted", &pair_file(half / 2, half % 2, k))?;
            encrypt_to(&path, context, &secret, &message, CARRIED, &mut Randomness::from_os())
        };
        session.rlwe().backend().threads().try_map((0..PAIRS).collect(), encrypt)?;
    }
    Ok(())
}

fn encrypt_column(
    stage: &Stage,
    context: &Context,
    secret: &SecretKey,
    vectors: &[f32],
    block: usize,
    column: usize,
) -> Result<()> {
    let message = stage.search.encode_column(context, vectors, column)?;
    let path = stage.io("encrypted", &column_file(block, column))?;
    encrypt_to(&path, context, secret, &message, context.params().top_level(), &mut Randomness::from_os())
}

/// Refuses to begin what the disk has no room for, by the size of the first column; payloads are smaller.
fn require_room(stage: &Stage, context: &Context) -> Result<()> {
    let first = stage.io("encrypted", &column_file(0, 0))?;
    let blocks = stage.records.div_ceil(Search::block(context));
    let each = fs::metadata(&first)?.len();
    let (wanted, left) = (each * (blocks * (stage.search.dimension + 2 * PAIRS)) as u64, fs4::available_space(&first)?);
    ensure!(
        wanted < left,
        "the encrypted records take up to {wanted} bytes, and the disk has {left} left: free some, or search fewer records"
    );
    Ok(())
}
