//! Level-aware key switching in use: polynomials evaluated from its highest level (Table 4), and the claims of the text.

use std::sync::Arc;

use serde_json::json;
use synchromesh::circuits::Polynomial;
use synchromesh::ckks::{Ciphertext, Context, Evaluator, Mode, Params, ParamsLiteral, Rotations};
use synchromesh_rlwe::{
    Context as RlweContext, EvaluationKeys, LevelPlans, Randomness, SecretKey, Security, Source, SwitchPlan,
};

use super::level_plans::{BITS, PRIMES, params, profiled};
use super::levelaware::request;
use super::runner::{put_ms, row};
use super::{Outcome, Runner};
use synchromesh_bench::key_switch::Prepared;
use synchromesh_bench::timing::brief_median_seconds;
use synchromesh_bench::{Error, memory};

/// Degrees, and the seconds that the paper printed for digits of one prime and for its own method.
const TABLE4: [(usize, [f64; 2]); 3] = [(8, [7.77, 5.67]), (16, [19.56, 13.55]), (32, [48.74, 31.28])];

/// CKKS over the paper's chain; level 0 has two primes, the highest level lacks the last.
fn literal(log_n: u32) -> ParamsLiteral {
    ParamsLiteral {
        log_n,
        log_scale: BITS,
        q_bits: vec![BITS; PRIMES],
        p_bits: vec![],
        level_limbs: (2..PRIMES).collect(),
        schedule: Default::default(),
        omega: PRIMES,
        log_scales: vec![],
        mode: Mode::Auto,
        security: Security::Insecure,
        primes: None,
    }
}

/// Coefficients in (-1, 1) that look random.
fn coefficients(degree: usize) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1 << 30) - 1.0
    };
    (0..=degree).map(|_| next()).collect()
}

/// The parameters with one way of switching keys, and what computes with it.
struct Way {
    context: Arc<Context>,
    evaluator: Evaluator,
}

impl Way {
    fn new(params: Params, keys: &Arc<EvaluationKeys>) -> Result<Self, Error> {
        let context = Context::new(params)?;
        let evaluator = Evaluator::new(&context, Some(Arc::clone(keys)));
        Ok(Self { context, evaluator })
    }

    /// Seconds, and by how much the result is off.
    fn measure(&self, x: &Ciphertext, secret: &SecretKey, values: &[f64], degree: usize) -> Result<(f64, f64), Error> {
        let coefficients = coefficients(degree);
        let polynomial = Polynomial::power(coefficients.iter().copied().map(synchromesh::circuits::Coefficient::from))?;
        // The first run prepares keys.
        let result = polynomial.evaluate(&self.evaluator, x)?;
        let decoded = self.context.decode(&self.context.decrypt(secret, &result)?)?;
        let horner = |x: f64| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c);
        let off = decoded.iter().zip(values).map(|(y, &x)| (y - horner(x)).abs()).fold(0.0, f64::max);
        let seconds = brief_median_seconds(|| polynomial.evaluate(&self.evaluator, x))?;
        Ok((seconds, off))
    }
}

/// Table 4: random polynomials evaluated from level 39, by keys of one prime a digit and by the index map, from one
/// stored key.
pub(super) fn table4(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let log_n = if runner.quick() { 12 } else { 16 };
    let ours = Params::new(literal(log_n))?;
    let previous = ours.with_plans(SwitchPlan::level_aware(ours.rlwe(), 1, 1)?)?;
    let mut ours = ours.with_plans(profiled(runner, ours.rlwe())?)?;
    let mut deviations = vec![
        "the paper's times are of another machine with Lattigo; the polynomial is cut into blocks by this library's own search".to_owned(),
        "log Q = 1760 exceeds the limit for 128 bits at N = 2^16, which is 1746".to_owned(),
        "level 0 has two primes, so that the ciphertext starts 37 levels up, on the paper's 39 primes".to_owned(),
    ];
    if runner.quick() {
        deviations.push("--quick: N = 2^12 in place of 2^16".to_owned());
    }
    let prepared = |p: &Params| p.plans().prepared_bytes(p.rlwe()) as usize;
    let stored = 8 * PRIMES * PRIMES * ours.n();
    if memory::fits(stored + prepared(&ours) + prepared(&previous)).is_err() {
        deviations.push("the keys of all levels exceed the free memory: the plans of fewest transforms are kept apart from a profile's".into());
        ours = ours.with_plans(LevelPlans::level_aware(ours.rlwe())?)?;
    }
    let mut randomness = Randomness::insecure_from_number(1);
    let context = Context::new(ours.clone())?;
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = Arc::new(context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?);
    let values: Vec<f64> = (0..ours.slots()).map(|i| 1.0 - (i % 97) as f64 / 48.0).collect();
    let x = context.encrypt(&public, &context.encode(&values)?, &mut randomness)?;
    let ways = [Way::new(previous, &keys)?, Way::new(ours, &keys)?];
    let mut rows = Vec::new();
    for (degree, paper) in TABLE4 {
        runner.note(&format!("degree {degree}"));
        let mut row = row(json!({"degree": degree, "log_n": log_n}));
        let mut seconds = [0.0; 2];
        for (i, (way, name)) in ways.iter().zip(["digit1", "level_aware"]).enumerate() {
            let (time, off) = way.measure(&x, &secret, &values, degree)?;
            seconds[i] = time;
            put_ms(&mut row, &format!("ours_{name}_s"), time);
            row.insert(format!("ours_{name}_error"), json!(off));
            row.insert(format!("paper_{name}_s"), json!(paper[i]));
        }
        put_ms(&mut row, "ours_speedup", seconds[0] / seconds[1]);
        put_ms(&mut row, "paper_speedup", paper[0] / paper[1]);
        row.insert("security_bits".into(), json!(ways[0].context.params().rlwe().security_bits().round()));
        rows.push(row);
    }
    deviations.append(&mut runner.deviations);
    Ok(Outcome { rows, deviations, figure: None })
}

/// Keys for bootstrapping, by the paper's count.
const KEYS: f64 = 48.0;
/// Bytes that a line of 1 Gbit/s brings in a second.
const LINE: f64 = 1.25e8;

/// The claims: the index map against fixed digit lengths at two levels, and expansion against transmission.
pub(super) fn claims(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    let mut claim = |what: &str, ours: f64, paper: f64, security: f64| {
        let mut row = row(json!({"claim": what}));
        put_ms(&mut row, "ours", ours);
        row.insert("paper".into(), json!(paper));
        row.insert("security_bits".into(), json!(security.round()));
        rows.push(row);
    };
    let log_n = if runner.quick() { 13 } else { 16 };
    let security = params(16, PRIMES, BITS)?.security_bits();
    for (level, against, paper) in [(32, 1, 2.5), (4, 8, 1.7)] {
        let lengths = [1, 2, 4, 8, 16].into_iter().filter(|length| level + length <= PRIMES);
        let mut times = Vec::new();
        for length in lengths {
            let label = format!("level {level}, digits of {length}");
            let prepared = Prepared::new(&request(log_n, level, length))?;
            let Some(ms) = runner.slots_milliseconds(&label, &[&prepared])? else { continue };
            times.push((length, ms[0]));
        }
        let best = times.iter().map(|t| t.1).fold(f64::MAX, f64::min);
        if let Some((_, fixed)) = times.iter().find(|(length, _)| *length == against) {
            let what = format!("level {level}: times as fast as digits of {against}");
            claim(&what, fixed / best, paper, security);
        }
    }
    // Expansion of one stored key to digits of 2, 4, 8 and 16 primes, against sending these keys.
    let log_n = if runner.quick() { 12 } else { 16 };
    let params = params(log_n, PRIMES, BITS)?;
    let scale = f64::from(1 << (16 - log_n));
    let context = RlweContext::new(params.clone())?;
    let stored = 16 * PRIMES * PRIMES * params.n();
    if memory::fits(3 * stored).is_ok() {
        let mut randomness = Randomness::insecure_from_number(1);
        let secret = SecretKey::generate(&context, &mut randomness)?;
        let any = SwitchPlan::level_aware(&params, 1, 1)?;
        let keys = EvaluationKeys::generate(&context, &secret, [Source::Galois(3)], &any, &mut randomness)?;
        let sent = keys.to_bytes(&context, None)?.len() as f64;
        let key = keys.get(Source::Galois(3))?;
        let (mut seconds, mut bytes) = (0.0, 0.0);
        for length in [2, 4, 8, 16] {
            runner.note(&format!("expansion to digits of {length}"));
            let plan = SwitchPlan::level_aware(&params, length, length)?;
            seconds += brief_median_seconds(|| key.expand(&context, &plan))?;
            bytes += plan.prepared_bytes(&params) as f64;
        }
        claim("expansion: times as fast as receiving at 1 Gbit/s", bytes / LINE / seconds, 43.0, security);
        claim("48 keys: GB that need not be sent", KEYS * scale * bytes / 1e9, 70.0, security);
        claim("48 keys: GB sent, packed and with seeds", KEYS * scale * sent / 1e9, KEYS * 1.63, security);
    } else {
        runner.deviations.push(format!("keys of {stored} bytes are not expanded: too little memory is free"));
    }
    let mut deviations = vec![
        "the paper's expansion adds stored halves; ours samples the uniform half from its seed besides, which takes most of the time".to_owned(),
        "the paper's 78 GB are 48 keys of 1.63 GB; ours are sent with 44 bits a residue, and the uniform half as a seed".to_owned(),
    ];
    if runner.quick() {
        deviations.push("--quick: switches at N = 2^13, expansion at N = 2^12; gigabytes are of 2^16".to_owned());
    }
    deviations.append(&mut runner.deviations);
    Ok(Outcome { rows, deviations, figure: None })
}
