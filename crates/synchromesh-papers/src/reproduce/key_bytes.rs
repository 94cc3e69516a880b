//! Bytes of a key: one word a residue, packed on the wire with a seed in place of its uniform half, trimmed to a level;
//! and whether what the trimmed key computes is what the whole one does.

use std::sync::Arc;

use serde_json::json;
use synchromesh_ring::{Coeff, Cpu, Poly};
use synchromesh_rlwe::codec::switch_key_bytes;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::{Context, EvaluationKeys, KeyPart, LevelPlans, Randomness, SecretKey, Source, SwitchPlan};

use super::runner::row;
use super::{Outcome, Row, Runner};
use synchromesh_bench::Error;
use synchromesh_bench::key_switch::{Chain, Gadget, Method, Prepared, Request, rotation};

const GALOIS: usize = 3;

/// Rows for one way of storing a key: trimmed to each of a few levels, by decomposition at each.
fn rows(name: &str, request: &Request) -> Result<Vec<Row>, Error> {
    let prepared = Prepared::new(request)?;
    let params = prepared.params().clone();
    let plans: LevelPlans = match request.gadget {
        Gadget::Borrowing => LevelPlans::level_aware(&params)?,
        Gadget::Idempotent | Gadget::Coalesced => prepared.plan().clone().into(),
    };
    let context = Context::new(params.clone())?;
    let mut randomness = Randomness::insecure_from_number(1);
    let secret = SecretKey::generate(&context, &mut randomness)?;
    let stored: &SwitchPlan = plans.at(params.top_level());
    let keys = EvaluationKeys::generate(&context, &secret, [Source::Galois(GALOIS)], stored, &mut randomness)?;
    let whole = KeyPart::whole(&params, stored.shape())?;
    // Both halves, as they would lie in memory.
    let plain = 2 * whole.bytes(params.n());
    let all = KeySwitching::new(Arc::new(keys.trim(&context, &whole)?), plans.clone());
    let top = params.top_level();
    let mut rows = Vec::new();
    for level in [top, top / 2, 0] {
        let part = plans.needed(&params, level)?;
        let trimmed = keys.trim(&context, &part)?;
        let read = EvaluationKeys::from_bytes(&context, &trimmed.to_bytes(&context, None)?, None, None)?;
        let switching = KeySwitching::new(Arc::new(read), plans.clone());
        let zero = Poly::<_, Coeff>::zero(context.backend(), params.level(level)?)?;
        let (ct, _) = secret.encrypt::<Coeff>(&context, &zero, level, &mut randomness)?;
        let words = |switching: &KeySwitching<Cpu>| -> Result<Vec<Vec<u64>>, Error> {
            let rotated = switching.automorphism(&context, &ct, GALOIS)?;
            Ok(rotated.parts().iter().map(|part| part.to_words(context.backend())).collect::<Result<_, _>>()?)
        };
        rows.push(row(json!({
            "key": name,
            "log_n": params.ring().log_n(),
            "limbs": params.level(level)?.len(),
            "level": level,
            "ours_words_bytes": plain,
            "ours_packed_bytes": switch_key_bytes(&params, Source::Galois(GALOIS), &whole),
            "ours_trimmed_bytes": switch_key_bytes(&params, Source::Galois(GALOIS), &part),
            "same_result": words(&switching)? == words(&all)?,
            "security_bits": (10.0 * params.security_bits()).round() / 10.0,
        })));
    }
    Ok(rows)
}

/// One key, whole and trimmed, as it is stored by each method.
pub(super) fn bytes(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let (log_n, log_q) = if runner.quick() { (13, 150) } else { (15, 600) };
    let chain = || Chain::Equal { log_q, log_p: None, width: None };
    let hybrid = |omega| rotation(log_n, chain(), Method::Hybrid { omega });
    let single = rotation(log_n, chain(), Method::Bv);
    let aware = Request { gadget: Gadget::Borrowing, ..hybrid(2) };
    let mut all = Vec::new();
    for (name, request) in [("one prime a digit", single), ("two digits", hybrid(2)), ("level-aware", aware)] {
        runner.note(name);
        all.extend(rows(name, &request)?);
    }
    let deviations = vec![
        "words: both halves with 64 bits a residue; packed: the stored half with the bits of each prime, and a seed of 32 bytes; trimmed: the same for a level and all below".to_owned(),
        "same_result: a rotation by the trimmed key, written and read, has the bits of one by the whole key".to_owned(),
    ];
    Ok(Outcome { rows: all, deviations, figure: None })
}
