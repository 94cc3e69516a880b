//! Level-aware keys: parameters and key expansion (Tables 2 and 5), and the index map with its figure.

use std::sync::Arc;

use serde_json::json;
use synchromesh::cost::{self, Candidate, IndexMap, OneSwitch, Shape};
use synchromesh_ring::backend::Stage;
use synchromesh_ring::{Backend, Counting, Dry, View, ViewMut};
use synchromesh_rlwe::{Context, LevelPlans, Params, Randomness, SecretKey, Source, SwitchKey, SwitchPlan};

use super::runner::{put_ms, row};
use super::{Figure, Outcome, Runner, Series};
use synchromesh_bench::key_switch::{Chain, Gadget, Method, Prepared, Request, rotation};
use synchromesh_bench::timing::{brief_median_seconds, median_seconds};
use synchromesh_bench::tune::streaming;
use synchromesh_bench::{Error, memory};

/// Primes of the paper's table, and their width.
pub(super) const PRIMES: usize = 40;
pub(super) const BITS: u32 = 44;

/// `primes` ciphertext primes, of which the highest level lacks the last.
pub(super) fn params(log_n: u32, primes: usize, bits: u32) -> Result<Params, Error> {
    let chain = Chain::Widths { q: vec![bits; primes - 1], p: vec![bits] };
    let request = Request { gadget: Gadget::Borrowing, ..rotation(log_n, chain, Method::Bv) };
    Ok(Prepared::new(&request)?.params().clone())
}

/// Table 2: the parameters.
pub(super) fn table2(_: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    for (bits, what) in [(BITS, "the text"), (40, "the authors' published file")] {
        let params = params(16, PRIMES, bits)?;
        rows.push(row(json!({
            "from": what, "log_n": 16, "primes": params.q().len(), "prime_bits": bits, "paper_log_q": 1760,
            "ours_log_q": params.log_qp(), "security_bits": params.security_bits().round(),
            "paper_security_bits": 128,
        })));
    }
    let said = "log Q = 1760 exceeds the limit for 128 bits at N = 2^16, which is 1746; the primes of the authors' file have 40 bits";
    Ok(Outcome { rows, deviations: vec![said.to_owned()], figure: None })
}

/// Gigabytes and milliseconds that the paper printed, by digit length.
const TABLE5: [(usize, Option<f64>, f64); 5] =
    [(1, None, 1.63), (2, Some(77.0), 0.79), (4, Some(73.0), 0.37), (8, Some(64.0), 0.16), (16, Some(48.0), 0.08)];

/// Bytes a second, read and written, at which the stored half of `key` is added up to the digits of `plan`.
fn sum_rate(context: &Context, key: &SwitchKey, plan: &SwitchPlan) -> Result<f64, Error> {
    let (backend, all) = (context.backend(), (0..context.params().q().len()).collect::<Vec<_>>());
    let mut to = backend.alloc(plan.digits.len() * all.len())?;
    let seconds = median_seconds(|| -> Result<(), Error> {
        for (j, digit) in plan.digits.iter().enumerate() {
            let xs = digit.iter().map(|i| View::new(key.b()[i].buffer(), &all)).collect();
            let at: Vec<usize> = all.iter().map(|r| j * all.len() + r).collect();
            backend.stage(&all, Stage::SumInto { xs, scalars: None, g: 1, out: ViewMut::new(&mut to, &at) })?;
        }
        Ok(())
    })?;
    let rows = plan.digits.iter().map(|digit| (digit.len() + 1) * all.len()).sum::<usize>();
    Ok((8 * context.params().n() * rows) as f64 / seconds)
}

/// Table 5: sizes of keys in use, and the time to expand them from one stored key.
pub(super) fn table5(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let at_full = params(16, PRIMES, BITS)?;
    let log_n = if runner.quick() { 12 } else { 16 };
    let mut deviations = Vec::new();
    if runner.quick() {
        deviations.push("--quick: keys are expanded at N = 2^12; all sizes are of 2^16".to_owned());
    }
    let params = params(log_n, PRIMES, BITS)?;
    let stored = 16 * PRIMES * PRIMES * params.n();
    let fits = memory::fits(3 * stored);
    let context = Context::new(params.clone())?;
    let mut randomness = Randomness::insecure_from_number(1);
    let any = SwitchPlan::level_aware(&params, 1, 1)?;
    let key = if fits.is_ok() {
        let secret = SecretKey::generate(&context, &mut randomness)?;
        Some(SwitchKey::generate(&context, &secret, Source::Galois(3), None, &any, &mut randomness)?)
    } else {
        deviations.push(format!("keys of {stored} bytes are not expanded: too little memory is free"));
        None
    };
    runner.note("streaming rates");
    let streaming = streaming();
    deviations.push(format!(
        "ours_sum_gb_per_s: the sum of the stored half, which is what the paper's expansion is, in bytes read and written; \
         this machine streams {:.1} GB/s reading and {:.1} GB/s copying, both sides counted, and ours_sum_of_streaming is \
         over the larger; ours_expand_ms has the uniform half too, sampled from its seed",
        streaming.read_gb_per_s, streaming.copy_gb_per_s
    ));
    let fastest = 1e9 * streaming.read_gb_per_s.max(streaming.copy_gb_per_s);
    let mut rows = Vec::new();
    for (length, paper_ms, paper_gb) in TABLE5 {
        runner.note(&format!("digits of {length}"));
        let plan = SwitchPlan::level_aware(&at_full, length, length)?;
        let digits = (PRIMES - length).div_ceil(length);
        let formula = 16 * digits * PRIMES * at_full.n();
        let gb = |bytes: u64| (bytes as f64 / 1e4).round() / 1e5;
        let mut row = row(json!({
            "digit_primes": length, "digits": plan.digits.len(), "ours_key_gb": gb(plan.prepared_bytes(&at_full)),
            "formula_key_gb": gb(formula as u64), "paper_key_gb": paper_gb, "log_n_of_times": log_n,
        }));
        if let (Some(key), Some(_)) = (&key, paper_ms) {
            let plan = SwitchPlan::level_aware(&params, length, length)?;
            let seconds = median_seconds(|| key.expand(&context, &plan).map(drop))?;
            put_ms(&mut row, "ours_expand_ms", 1e3 * seconds);
            let seconds = median_seconds(|| key.prepare(&context, &plan).map(drop))?;
            put_ms(&mut row, "ours_prepare_ms", 1e3 * seconds);
            let rate = sum_rate(&context, key, &plan)?;
            put_ms(&mut row, "ours_sum_gb_per_s", rate / 1e9);
            put_ms(&mut row, "ours_sum_of_streaming", rate / fastest);
        }
        row.insert("paper_expand_ms".into(), json!(paper_ms));
        row.insert("security_bits".into(), json!(at_full.security_bits().round()));
        rows.push(row);
    }
    Ok(Outcome { rows, deviations, figure: None })
}

/// Transforms of one rotation, coefficients to coefficients.
fn transforms(params: &Params, candidate: &Candidate) -> Result<f64, synchromesh::Error> {
    let dry = Dry::new(Arc::clone(params.ring()));
    let context = Context::with_backend(params.clone(), Counting::new(dry));
    let shape = Shape { input_ntt: false, output_ntt: false, ..Shape::ROTATION };
    let switch = OneSwitch::new(&context, &candidate.plan, [&candidate.active, &candidate.target], shape)?;
    let (done, counts) = context.backend().measure(|| switch.run());
    done?;
    Ok(counts.ntt as f64)
}

/// How each level switches keys: as the machine's profile has it fastest, or without one with the fewest transforms.
pub(super) fn profiled(runner: &mut Runner<'_>, params: &Params) -> Result<LevelPlans, Error> {
    let default = LevelPlans::level_aware(params)?;
    let Some(profile) = runner.profile() else { return Ok(default) };
    let mut levels = Vec::new();
    for level in 0..=params.top_level() {
        runner.note(&format!("index map, level {level}"));
        levels.push(cost::candidates(params, default.at(level), level, 1.0)?);
    }
    let shape = Shape { op: cost::Op::Relin, ..Shape::ROTATION };
    let price = |c: &Candidate| cost::predict(profile, params, &c.plan, [&c.active, &c.target], shape);
    Ok(IndexMap::choose(levels, None, price)?.level_plans(params)?)
}

/// The index map of level-aware parameters: what each method takes at each level, and which is chosen.
pub(super) fn index_map(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let (log_n, primes) = if runner.quick() { (14, 12) } else { (16, 24) };
    let params = params(log_n, primes, BITS)?;
    let default = LevelPlans::level_aware(&params)?;
    let profile = runner.profile();
    let mut levels = Vec::new();
    for level in 0..=params.top_level() {
        runner.note(&format!("level {level}"));
        levels.push(cost::candidates(&params, default.at(level), level, 1.0)?);
    }
    let (unit, scale) = if profile.is_some() { ("ms", 1e3) } else { ("transforms", 1.0) };
    let mut lines: Vec<Series> = Vec::new();
    let mut price = |candidate: &Candidate| {
        let value = match profile {
            None => transforms(&params, candidate)?,
            Some(profile) => {
                let at = [&candidate.active, &candidate.target];
                cost::predict(profile, &params, &candidate.plan, at, Shape::ROTATION)?
            }
        };
        add_point(&mut lines, candidate, scale * value);
        Ok(value)
    };
    let map = IndexMap::choose(levels, None, &mut price)?;
    let plans = map.level_plans(&params)?;
    let (mut rows, mut times) = (Vec::new(), Vec::new());
    let context = Context::new(params.clone())?;
    for choice in &map.choices {
        let at = choice.best.active.len() as f64;
        let mut row = row(json!({
            "log_n": log_n, "primes": choice.best.active.len(), "method": choice.best.method(),
            "omega": choice.best.omega(), "digit_primes": choice.best.digit_primes(),
            "borrowed": choice.best.plan.special.len(),
        }));
        put_ms(&mut row, &format!("ours_chosen_{unit}"), scale * choice.seconds);
        if profile.is_some() {
            runner.note(&format!("measuring at {at} primes"));
            let ms = 1e3 * measured(&context, &choice.best)?;
            put_ms(&mut row, "ours_measured_ms", ms);
            times.push((at, ms));
        }
        for line in &lines {
            let value = line.points.iter().find(|(x, _)| *x == at).map(|(_, y)| (1e3 * y).round() / 1e3);
            row.insert(format!("ours_{}_{unit}", line.name), json!(value));
        }
        row.insert("security_bits".into(), json!(params.security_bits().round()));
        rows.push(row);
    }
    let chosen = map.choices.iter().map(|c| (c.best.active.len() as f64, scale * c.seconds)).collect();
    lines.push(Series { name: "chosen".into(), points: chosen, joined: false });
    if profile.is_some() {
        lines.push(Series { name: "chosen, measured".into(), points: times, joined: false });
    }
    let mut deviations = vec![
        format!(
            "one stored key of {primes} single-prime digits serves all; its forms in use take {} bytes a source",
            plans.prepared_bytes(&params)
        ),
        "E is made of primes of q here, as these parameters have no auxiliary ones".to_owned(),
    ];
    if profile.is_none() {
        deviations.push("there is no profile of this machine (`synchromesh tune` makes one): transforms are counted in place of time".to_owned());
    }
    let figure = Figure {
        title: format!("Key switching by level and method, N = 2^{log_n}"),
        x: "primes of the ciphertext".into(),
        y: if profile.is_some() { "milliseconds, predicted unless measured" } else { "transforms" }.into(),
        logarithmic: false,
        series: lines,
    };
    Ok(Outcome { rows, deviations, figure: Some(figure) })
}

/// Median seconds of a rotation by `candidate`, slots to slots.
fn measured(context: &Arc<Context>, candidate: &Candidate) -> Result<f64, Error> {
    let plan = candidate.plan.clone().up_to(&candidate.active);
    let switch = OneSwitch::new(context, &plan, [&candidate.active, &candidate.target], Shape::ROTATION)?;
    switch.run()?;
    Ok(brief_median_seconds(|| switch.run())?)
}

/// Puts the best value of a method at a level.
fn add_point(lines: &mut Vec<Series>, candidate: &Candidate, value: f64) {
    let (name, x) = (candidate.method(), candidate.active.len() as f64);
    let found = lines.iter().position(|line| line.name == name);
    let i = found.unwrap_or_else(|| {
        lines.push(Series { name: name.to_owned(), points: vec![], joined: true });
        lines.len() - 1
    });
    match lines[i].points.iter_mut().find(|(at, _)| *at == x) {
        Some((_, least)) => *least = least.min(value),
        None => lines[i].points.push((x, value)),
    }
}
