//! The whole protocol of matrix triples beside ePrint 2023/593 and Chen et al. (ePrint 2020/451): moduli with flooding that
//! hides, keys, traffic, rounds, and the product at those moduli.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use synchromesh::bgv::{Ciphertext, Context, Evaluator};
use synchromesh::circuits::{Arithmetic, MatrixChoices, Side, Slicing, SlotShape};
use synchromesh_rlwe::{EvaluationKeys, Randomness};
use synchromesh_triples::generation::{GenerationPlan, Keys, Request};
use synchromesh_triples::{Field, Shape};

use super::runner::row;
use super::triples::{HOISTING_KEYS, rounded};
use super::{Outcome, Row, Runner};
use synchromesh_bench::Error;
use synchromesh_bench::matmul;

/// Sides of the paper's tables.
const SIZES: [usize; 5] = [128, 256, 384, 512, 1024];

/// Parties: two, and those of the paper.
const PARTIES: [usize; 2] = [2, 5];

/// Triples of 128 x 128 x 128 at a time: what one proof covers.
const BATCH: usize = 8;

/// Megabytes for a product of 128 x 128 in Chen et al., and by single products with the proofs of LowGear.
const CHEN_MEGABYTES: [f64; 2] = [12.46, 1540.0];

fn failed(error: synchromesh_triples::Error) -> Error {
    Error::Request { reason: error.to_string() }
}

fn plan(size: usize, parties: usize, keys: Keys) -> Result<GenerationPlan, Error> {
    let field: Field = matmul::T128.parse().map_err(failed)?;
    let shape = Shape::new(size, size, size).map_err(failed)?;
    let window = if keys == Keys::Generated { 1 } else { 8 };
    // Not packed with other products, so that all sizes compare.
    let request = Request { keys, window, ..Request::new(&field, parties, shape) };
    GenerationPlan::find(&request).map_err(failed)
}

/// Seconds of one product at the plan's parameters, and of encrypting its factors.
fn product(plan: &GenerationPlan) -> Result<[f64; 2], Error> {
    let context = Context::new(plan.params().clone())?;
    let mut randomness = Randomness::insecure_from_number(8);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let (matrices, t) = (plan.matrices(), matmul::T128);
    let [r, k, c] = matrices.shape();
    let batch = matrices.batch();
    let sides = [(Side::Left, [r, k]), (Side::Right, [k, c])];
    let start = Instant::now();
    let mut factors: Vec<Vec<Ciphertext>> = Vec::new();
    for (seed, (side, shape)) in (1..).zip(sides) {
        let slots = matrices.slots(side, &matmul::matrices(batch, shape, seed, t)?)?;
        let one = |slots: &Vec<_>| context.encrypt(&public, &context.encode(slots)?, &mut randomness);
        factors.push(slots.iter().map(one).collect::<synchromesh::Result<_>>()?);
    }
    let encrypt = start.elapsed().as_secs_f64();
    let choices = MatrixChoices::mixed(plan.window());
    let none = Evaluator::new(&context, Some(Arc::new(EvaluationKeys::new(secret.id()))));
    let level = matrices.levels(&none, &factors[0][0], &factors[1][0])?.product;
    let keys = matrices.generate_keys(&context, &secret, &choices, level, &mut randomness)?;
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    let start = Instant::now();
    std::hint::black_box(matrices.multiply(&evaluator, &choices, &factors[0], &factors[1])?);
    Ok([start.elapsed().as_secs_f64() / batch as f64, encrypt / batch as f64])
}

/// What a product costs by the count that slicings are chosen by.
fn cost(plan: &GenerationPlan) -> f64 {
    let slots = SlotShape { row: 1 << (plan.params().log_n() - 1), rows: 2 };
    let tensor = <Evaluator as Arithmetic>::COST.tensor;
    let slicing = Slicing { slots, batch: plan.batch(), masks: false, chain: None, tensor };
    slicing.cost(plan.matrices()) / plan.batch() as f64
}

fn describe(plan: &GenerationPlan, size: usize) -> Result<Row, Error> {
    let rlwe = plan.params().rlwe();
    let count = if size == SIZES[0] { BATCH } else { 1 };
    let traffic = plan.traffic(count).map_err(failed)?;
    let others = (plan.parties() - 1) as f64;
    let megabytes = |names: &[&str]| {
        let sent =
            traffic.iter().filter(|phase| names.contains(&phase.name)).map(|phase| phase.bytes_sent).sum::<u64>();
        rounded(sent as f64 / 1e6)
    };
    let amortised = |names: &[&str]| rounded(megabytes(names) / count as f64 / others);
    Ok(row(json!({
        "size": size,
        "parties": plan.parties(),
        "keys_from": if plan.keys() == Keys::Dealt { "dealer" } else { "parties" },
        "ours_log_n": plan.params().log_n(),
        "ours_log_q": rlwe.ring().log2(rlwe.q()).ceil(),
        "ours_log_qp": rlwe.log_qp(),
        "paper_log_n": 15,
        "paper_log_q": 600,
        "paper_log_qp": 840,
        "chen_log_q": 720,
        "ours_flooding_bits": plan.mask_bits(),
        "paper_flooding_bits": 128 + 80,
        "security_bits": rlwe.security_bits(),
        "packing": plan.matrices().to_string(),
        "ours_keys": 2 * plan.window() + 1,
        "paper_keys_hoisting": HOISTING_KEYS,
        "paper_keys_reuse": 3,
        "ours_ciphertexts": plan.matrices().ciphertexts(Side::Left) + plan.matrices().ciphertexts(Side::Right),
        "triples_at_a_time": count,
        "ours_rounds": traffic.iter().map(|phase| phase.rounds).sum::<u64>(),
        "ours_once_mb": amortised(&["mac_key"]) * count as f64,
        "ours_exchange_mb": amortised(&["exchange"]),
        "ours_decrypt_mb": amortised(&["decrypt"]),
        "ours_check_mb": amortised(&["check"]),
        "ours_mb": amortised(&["exchange", "decrypt", "check"]),
    })))
}

/// The protocol at the sizes of the tables.
pub(super) fn protocol(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    let mut measured: Option<([f64; 2], f64)> = None;
    for size in SIZES {
        for (parties, keys) in PARTIES.map(|parties| (parties, Keys::Dealt)).into_iter().chain([(2, Keys::Generated)]) {
            // The larger ones follow from it.
            if runner.quick() && size > SIZES[1] || keys == Keys::Generated && size > SIZES[0] {
                continue;
            }
            runner.note(&format!("{size} x {size} x {size}, {parties} parties"));
            let plan = plan(size, parties, keys)?;
            let mut line = describe(&plan, size)?;
            if measured.is_none() {
                measured = Some((product(&plan)?, cost(&plan)));
            }
            let ([seconds, encrypt], unit) = measured.unwrap_or_default();
            let all = line["ours_ciphertexts"].as_f64().unwrap_or_default();
            let first = rows.first().and_then(|first: &Row| first["ours_ciphertexts"].as_f64()).unwrap_or(all);
            line.insert("ours_product_s".into(), json!(rounded(seconds * cost(&plan) / unit)));
            line.insert("ours_encrypt_s".into(), json!(rounded(encrypt * all / first)));
            line.insert("measured".into(), json!(rows.is_empty()));
            line.insert("threads".into(), json!(1));
            if size == SIZES[0] {
                line.insert("chen_mb".into(), json!(CHEN_MEGABYTES[0]));
                line.insert("single_products_mb".into(), json!(CHEN_MEGABYTES[1]));
            }
            rows.push(line);
        }
    }
    let mut deviations: Vec<String> = [
        "megabytes are those that one party sends to one other, for one triple; ours have the proofs in them, and ours_once_mb \
         is what a session sends before its first triple; chen_mb is what ePrint 2020/451 states for a product of 128 x 128, \
         and single_products_mb for the same by Beaver triples of LowGear",
        "the paper's protocol was not run among parties: it has no traffic and no rounds, its keys are drawn by one program, and \
         its shares are decrypted with 2^80 t, which its own bounds of 2^193 t for C and 2^343 t for the MAC of C exceed; ours \
         have masks of 80 + log2(N 2^20) bits more than the largest value",
        "keys are those of rotations and relinearisation; by --keys generate one for each factor",
        "rows that are not measured are the measured product times the ratio of what slicings cost, and times the ciphertexts",
    ]
    .map(str::to_owned)
    .into();
    if runner.quick() {
        deviations.push("sizes above 256 are left out by --quick".to_owned());
    }
    deviations.append(&mut runner.deviations);
    Ok(Outcome { rows, deviations, figure: None })
}
