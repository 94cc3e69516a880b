//! Circuits of many levels by the schedule of their primes and keys: mostly large primes, a second secret key, a raise of
//! N. Each is decrypted and compared, timed beside the plain chain, and beside what a machine profile would pick.

use std::sync::Arc;

use serde_json::json;

use synchromesh::ckks::{Ciphertext, Context, Evaluator, Mode, Params, ParamsLiteral, Rotations};
use synchromesh::cost::predict_ckks;
use synchromesh_rlwe::{DigitSizes, PrimeSwitching, Randomness, Schedule, SecretKey, Security};

use super::runner::{put_ms, row};
use super::{Outcome, Row, Runner};
use synchromesh_bench::Error;
use synchromesh_bench::timing::interleaved_medians;

/// A squaring at every level from the top to the lowest.
struct Squarings {
    name: String,
    context: Arc<Context>,
    evaluator: Evaluator,
    secret: SecretKey,
    x: Ciphertext,
}

/// Numbers whose powers stay near 1.
fn values(params: &Params) -> Vec<f64> {
    (0..params.slots()).map(|i| 1.0 - (i % 17) as f64 / 4096.0).collect()
}

impl Squarings {
    fn new(name: String, literal: ParamsLiteral) -> Result<Self, Error> {
        let context = Context::new(Params::new(literal)?)?;
        let mut randomness = Randomness::insecure_from_number(1);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?;
        let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
        let x = context.encrypt(&public, &context.encode(&values(context.params()))?, &mut randomness)?;
        Ok(Self { name, context, evaluator, secret, x })
    }

    fn run(&self) -> Result<Ciphertext, Error> {
        let mut y = self.evaluator.square(&self.x)?;
        while y.level() > 0 {
            y = self.evaluator.square(&y)?;
        }
        Ok(y)
    }

    /// By how much the result is off.
    fn off(&self) -> Result<f64, Error> {
        let params = self.context.params();
        let power = 1 << params.top_level();
        let decoded = self.context.decode(&self.context.decrypt(&self.secret, &self.run()?)?)?;
        Ok(decoded.iter().zip(&values(params)).map(|(y, x)| (y - x.powi(power)).abs()).fold(0.0, f64::max))
    }

    /// What the machine's profile says, in milliseconds.
    fn predicted(&self, runner: &Runner<'_>) -> Result<Option<f64>, Error> {
        let Some(profile) = runner.profile() else { return Ok(None) };
        let params = self.context.params();
        let seconds = predict_ckks(profile, params, &Rotations::default(), &[1.0], |evaluator, x| {
            (1..params.top_level()).try_fold(evaluator.square(&x[0])?, |y, _| evaluator.square(&y))
        });
        Ok(Some(1e3 * seconds?))
    }

    fn row(&self, runner: &Runner<'_>, [ms, first]: [f64; 2]) -> Result<Row, Error> {
        let params = self.context.params();
        let rlwe = params.rlwe();
        let below = params.second_plan().map(|plan| plan.digits.len());
        let mut row = row(json!({
            "chain": self.name,
            "log_scale": params.literal().log_scale,
            "log_n": params.log_n(),
            "depth": params.top_level(),
            "primes": rlwe.q().len(),
            "special_primes": rlwe.p().len(),
            "log_qp": rlwe.log_qp(),
            "security_bits": (10.0 * rlwe.security_bits()).round() / 10.0,
            "omega": params.plan().digits.len(),
            "omega_below": below,
        }));
        put_ms(&mut row, "ours_ms", ms);
        row.insert("ours_ratio".into(), json!((1e3 * ms / first).round() / 1e3));
        if let Some(predicted) = self.predicted(runner)? {
            put_ms(&mut row, "ours_predicted_ms", predicted);
        }
        row.insert("ours_off".into(), json!(format!("{:.1e}", self.off()?)));
        Ok(row)
    }
}

/// Rows for circuits taken in turn, the first of which is the plain one, and a sentence on what is picked.
fn compare(runner: &mut Runner<'_>, what: &str, circuits: &[Squarings]) -> Result<Vec<Row>, Error> {
    runner.note(what);
    let mut runs: Vec<Box<dyn FnMut() -> Result<(), Error> + '_>> = Vec::new();
    for circuit in circuits {
        runs.push(Box::new(|| circuit.run().map(drop)));
    }
    let (least, rounds) = (runner.least(), if runner.quick() { 3 } else { 15 });
    let ms: Vec<f64> = interleaved_medians(&mut runs, least, rounds)?.into_iter().map(|s| 1e3 * s).collect();
    drop(runs);
    let mut rows = Vec::new();
    for (circuit, &time) in circuits.iter().zip(&ms) {
        rows.push(circuit.row(runner, [time, ms[0]])?);
    }
    let fastest = |key: &str| {
        let time = |row: &&Row| row.get(key).and_then(serde_json::Value::as_f64).unwrap_or(f64::MAX);
        let best = rows.iter().min_by(|a, b| time(a).total_cmp(&time(b)))?;
        Some(format!(
            "{} ({} of the plain chain's measured time)",
            best.get("chain")?.as_str()?,
            best.get("ours_ratio")?
        ))
    };
    let measured = fastest("ours_ms").unwrap_or_default();
    let picked = match runner.profile() {
        Some(_) => format!("the planner picks {}", fastest("ours_predicted_ms").unwrap_or_default()),
        None => "without a machine profile (`synchromesh tune`) the planner keeps the plain chain".to_owned(),
    };
    runner.deviations.push(format!("{what}: the fastest is {measured}; {picked}"));
    Ok(rows)
}

/// A literal whose special primes, of at most `width` bits, cover the widest of `omega` digits.
fn literal(
    log_n: u32,
    log_scale: u32,
    q_bits: Vec<u32>,
    schedule: Schedule,
    [omega, width]: [usize; 2],
) -> Result<ParamsLiteral, Error> {
    let sizes = if schedule.levels.is_empty() {
        DigitSizes::equal(q_bits.len(), omega)?
    } else {
        DigitSizes::balanced(&q_bits, omega)?
    };
    let mut widths = q_bits.iter();
    let widest = sizes.0.iter().map(|&size| widths.by_ref().take(size).sum::<u32>()).max().unwrap_or(0) + 1;
    let count = widest.div_ceil(width as u32);
    let p_bits = vec![widest.div_ceil(count); count as usize];
    Ok(ParamsLiteral {
        log_n,
        log_scale,
        q_bits,
        p_bits,
        level_limbs: Vec::new(),
        schedule,
        omega,
        log_scales: Vec::new(),
        mode: Mode::Auto,
        security: Security::Bits128,
        primes: None,
    })
}

/// Depth 12 at 128 bits with small primes only and with mostly large ones (ePrint 2023/1642, sections 3.7 and 5.3).
pub(super) fn depth12(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    let scales: &[u32] = if runner.quick() { &[36] } else { &[36, 40] };
    for &log_scale in scales {
        let small = [vec![log_scale + 20], vec![log_scale; 12]].concat();
        // Prefixes, listed, so that its digits are balanced by bits like those of the others.
        let prefixes = Schedule::of((1..=13).map(|end| (0..end).collect()).collect());
        let plain = literal(15, log_scale, small, prefixes, [3, 50])?;
        let mut circuits = vec![Squarings::new("small primes only".to_owned(), plain)?];
        for (mu, kappa, most) in [(1, 2, 61), (2, 3, 50), (2, 3, 60), (3, 4, 50), (4, 5, 50)] {
            // Large primes on the fast side of 2^50 where they fit there.
            let Ok(chain) = PrimeSwitching::new(mu, kappa)?.chain(log_scale + 20, log_scale, 12, most) else {
                continue;
            };
            let widest = chain.q_bits.iter().copied().max().unwrap_or(0);
            let name = format!("({mu}, {kappa}), large primes of {widest} bits");
            if widest <= most && circuits.iter().all(|circuit| circuit.name != name) {
                let literal = literal(15, log_scale, chain.q_bits, chain.schedule, [3, 50])?;
                circuits.push(Squarings::new(name, literal)?);
            }
        }
        rows.extend(compare(runner, &format!("depth 12, scale 2^{log_scale}"), &circuits)?);
    }
    let mut deviations = vec![
        "the paper gains 17 to 63 % with primes of 54 bits in place of 36 on a CPU without 52-bit multipliers; where there are some, primes above 50 bits take a slower path".to_owned(),
    ];
    if runner.quick() {
        deviations.push("--quick: a scale of 2^36 alone, 3 rounds".to_owned());
    }
    deviations.append(&mut runner.deviations);
    Ok(Outcome { rows, deviations, figure: None })
}

/// Depth 8 at 128 bits under one secret key and, with fewer digits below the leading levels, under two (section 3.6); and
/// twice the degree with two digits (section 3.5).
pub(super) fn depth8(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let q_bits = [vec![54], vec![40; 8]].concat();
    let mut circuits = Vec::new();
    for leading in 0..=2 {
        let schedule = Schedule::default();
        let schedule = if leading > 0 { schedule.with_second_key(leading) } else { schedule };
        let name = if leading == 0 { "one key".to_owned() } else { format!("{leading} leading level(s)") };
        circuits.push(Squarings::new(name, literal(14, 40, q_bits.clone(), schedule, [9, 55])?)?);
    }
    let raised = literal(15, 40, q_bits, Schedule::default(), [2, 50])?;
    circuits.push(Squarings::new("N raised to 2^15".to_owned(), raised)?);
    let rows = compare(runner, "depth 8", &circuits)?;
    let mut deviations = vec![
        "one special prime, so that the plan under one key has as many digits as primes: what a second key and a raise of N are for".to_owned(),
        "at 2^15 a ciphertext has twice the slots: its time stands beside two of the others".to_owned(),
    ];
    deviations.append(&mut runner.deviations);
    Ok(Outcome { rows, deviations, figure: None })
}
