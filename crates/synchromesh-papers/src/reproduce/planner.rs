//! The cost model judged: predicted against measured times, and chosen plans against the best measured.

use serde_json::json;
use synchromesh::cost::{Candidate, Profile};
use synchromesh_rlwe::PrimeSwitching;

use super::runner::{head, put_ms, put_percent};
use super::{Figure, Outcome, Runner, Series};
use synchromesh_bench::Error;
use synchromesh_bench::key_switch::{Chain, Gadget, Method, Prepared, Request, rotation};
use synchromesh_bench::timing::median;

/// (log N, log q, omega, width) of switches whose times are predicted; the model is fitted to none of them.
const SWITCHES: [(u32, u32, usize, u32); 30] = [
    (11, 40, 1, 50),
    (12, 70, 2, 50),
    (12, 72, 2, 36),
    (13, 100, 1, 50),
    (13, 140, 2, 50),
    (13, 150, 3, 50),
    (13, 140, 2, 60),
    (13, 170, 5, 36),
    (14, 216, 1, 50),
    (14, 280, 2, 50),
    (14, 324, 3, 50),
    (14, 350, 7, 50),
    (14, 216, 1, 54),
    (14, 280, 2, 56),
    (14, 324, 6, 54),
    (15, 432, 1, 50),
    (15, 560, 2, 50),
    (15, 650, 3, 50),
    (15, 700, 5, 50),
    (15, 432, 1, 54),
    (15, 560, 2, 56),
    (15, 780, 13, 60),
    (16, 855, 1, 50),
    (16, 1121, 2, 50),
    (16, 1300, 3, 50),
    (16, 1450, 6, 50),
    (16, 855, 1, 57),
    (16, 1121, 2, 59),
    (16, 1298, 3, 59),
    (17, 2242, 2, 50),
];

/// Other methods than hybrid key switching with a P of its own.
#[derive(Debug, Clone, Copy)]
enum Other {
    /// Double decomposition with the fewest transforms.
    Double,
    /// Linear, with one special prime.
    Linear,
    /// P borrowed, so many digits.
    LevelAware(usize),
    /// Two digits, mu large primes out and kappa small ones in.
    Swap(usize, usize),
}

/// (log N, log q, method, width), predicted beside [`SWITCHES`].
const OTHERS: [(u32, u32, Other, u32); 12] = [
    (13, 150, Other::Double, 50),
    (14, 280, Other::Double, 50),
    (15, 560, Other::Double, 60),
    (13, 120, Other::Linear, 40),
    (14, 320, Other::Linear, 40),
    (15, 640, Other::Linear, 40),
    (13, 150, Other::LevelAware(3), 50),
    (14, 300, Other::LevelAware(2), 50),
    (15, 704, Other::LevelAware(4), 44),
    (16, 1056, Other::LevelAware(3), 44),
    (14, 300, Other::Swap(1, 2), 50),
    (15, 600, Other::Swap(2, 3), 50),
];

/// (log N, log q) of parameter sets for which a plan is chosen.
const SETS: [(u32, u32); 10] =
    [(13, 110), (13, 150), (14, 220), (14, 300), (14, 350), (15, 450), (15, 600), (15, 750), (16, 950), (16, 1250)];

/// Widths between which a plan may choose.
const WIDTHS: [u32; 2] = [50, 60];

fn profile<'a>(runner: &Runner<'a>) -> Result<&'a Profile, Error> {
    let missing =
        || Error::Request { reason: "there is no profile of this machine: run `synchromesh tune`".to_owned() };
    runner.profile().ok_or_else(missing)
}

fn request(log_n: u32, log_q: u32, omega: usize, width: u32) -> Request {
    let chain = Chain::Equal { log_q, log_p: None, width: Some(width) };
    rotation(log_n, chain, Method::Hybrid { omega })
}

fn prepare(log_n: u32, log_q: u32, omega: usize, width: u32) -> Result<Prepared, Error> {
    Prepared::new(&request(log_n, log_q, omega, width))
}

impl Other {
    fn prepare(self, log_n: u32, log_q: u32, width: u32) -> Result<Prepared, Error> {
        let base = request(log_n, log_q, 2, width);
        Prepared::new(&match self {
            Self::Double => base.double(None, None)?,
            Self::Linear => base.linear(None)?,
            Self::LevelAware(omega) => Request { method: Method::Hybrid { omega }, gadget: Gadget::Borrowing, ..base },
            Self::Swap(mu, kappa) => Request { swap: Some(PrimeSwitching::new(mu, kappa)?), ..base },
        })
    }
}

/// The method and numbers of a plan, and its widths.
fn name(prepared: &Prepared, width: u32) -> String {
    let candidate = Candidate::new(prepared.params(), prepared.plan().clone(), &prepared.ends()[0]);
    format!("{}, {width}-bit primes", candidate.label())
}

fn per_cent(part: usize, all: usize) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

/// Rounds over all switches, each with memory of its own, of which the median counts: where pages lie moves a switch that
/// nearly fits a cache by 10 to 20 %, and what else runs on a machine slows it down for seconds or minutes.
const ROUNDS: usize = 3;

/// Predicted against measured.
pub(super) fn predictions(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let profile = profile(runner)?;
    let hybrid = SWITCHES.iter().map(|&(log_n, log_q, omega, width)| (prepare(log_n, log_q, omega, width), width));
    let others = OTHERS.iter().map(|&(log_n, log_q, other, width)| (other.prepare(log_n, log_q, width), width));
    let mut switches = Vec::new();
    for (prepared, width) in hybrid.chain(others) {
        let prepared = prepared?;
        if runner.takes_degree(prepared.params().ring().log_n()) {
            switches.push((name(&prepared, width), prepared, Vec::new()));
        }
    }
    for round in 0..if runner.quick() { 1 } else { ROUNDS } {
        for (name, prepared, times) in &mut switches {
            let label = format!("round {}: N = 2^{}, {name}", round + 1, prepared.params().ring().log_n());
            // Slots to slots, as the prediction has it.
            times.extend(runner.slots_milliseconds(&label, &[prepared])?.map(|ms| ms[0]));
        }
    }
    let (mut rows, mut points) = (Vec::new(), Vec::new());
    for (name, prepared, times) in switches {
        if times.is_empty() {
            continue;
        }
        let ms = median(times);
        let predicted = 1e3 * prepared.predict(profile)?;
        let mut row = head(&prepared);
        row.insert("plan".into(), json!(name));
        put_ms(&mut row, "ours_measured_ms", ms);
        put_ms(&mut row, "ours_predicted_ms", predicted);
        put_percent(&mut row, "error_percent", predicted, ms);
        rows.push(row);
        points.push((ms, predicted));
    }
    let within = points.iter().filter(|(m, p)| (p / m - 1.0).abs() <= 0.15).count();
    let all = points.len();
    let mut deviations =
        vec![format!("{within} of {all} predictions ({:.0} %) within 15 % of the median", per_cent(within, all))];
    if !runner.quick() {
        deviations.push(format!("each measured in {ROUNDS} rounds with memory of its own, of which the median counts"));
    }
    deviations.append(&mut runner.deviations);
    let ends = points.iter().fold((f64::MAX, 0.0f64), |(low, high), p| (low.min(p.0), high.max(p.0)));
    let figure = Figure {
        title: "Key switching: predicted against measured".into(),
        x: "measured milliseconds".into(),
        y: "predicted milliseconds".into(),
        logarithmic: true,
        series: vec![
            Series { name: "equal".into(), points: vec![(ends.0, ends.0), (ends.1, ends.1)], joined: true },
            Series { name: "key switches".into(), points, joined: false },
        ],
    };
    Ok(Outcome { rows, deviations, figure: Some(figure) })
}

/// How much slower than the best by prediction a plan may be predicted to be and still be measured.
const HOPELESS: f64 = 2.5;
/// How much slower than the best a plan may be when measured alone and still be measured with the others in turn.
const CLOSE: f64 = 1.3;

/// A plan in words, ready to be measured, and its predicted seconds.
type Plan = (String, Prepared, f64);

/// Every secure plan for a modulus: all methods, numbers of digits and widths.
fn plans(profile: &Profile, log_n: u32, log_q: u32) -> Result<Vec<Plan>, Error> {
    let mut plans: Vec<Plan> = Vec::new();
    for width in WIDTHS {
        for tried in request(log_n, log_q, 2, width).variants()? {
            let Ok(prepared) = Prepared::new(&tried) else { continue };
            let name = name(&prepared, width);
            if prepared.is_secure() && !plans.iter().any(|(other, ..)| *other == name) {
                let predicted = prepared.predict(profile)?;
                plans.push((name, prepared, predicted));
            }
        }
    }
    Ok(plans)
}

/// Milliseconds of the plans that come close to the best, measured in turn; the others as measured alone.
fn measure_all(runner: &mut Runner<'_>, label: &str, plans: &[&Plan], chosen: usize) -> Result<Vec<f64>, Error> {
    let mut ms = Vec::with_capacity(plans.len());
    for (name, prepared, _) in plans {
        ms.push(runner.alone(&format!("{label}, {name}"), prepared)?.unwrap_or(f64::MAX));
    }
    let least = ms.iter().copied().fold(f64::MAX, f64::min);
    let close: Vec<usize> = (0..ms.len()).filter(|&i| i == chosen || ms[i] <= CLOSE * least).collect();
    let final_heat: Vec<&Prepared> = close.iter().map(|&i| &plans[i].1).collect();
    if let Some(times) = runner.in_turn(label, &final_heat)? {
        close.iter().zip(times).for_each(|(&i, time)| ms[i] = time);
    }
    Ok(ms)
}

fn least(times: impl Iterator<Item = f64>) -> usize {
    times.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(i, _)| i)
}

/// The fastest by prediction against the fastest by measurement, over methods, digits and widths, secure ones only.
pub(super) fn choices(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let profile = profile(runner)?;
    let mut rows = Vec::new();
    for (log_n, log_q) in SETS {
        if runner.quick() && log_n > 13 {
            continue;
        }
        let label = format!("N = 2^{log_n}, log q = {log_q}");
        runner.note(&label);
        let all = plans(profile, log_n, log_q)?;
        let fastest = all.iter().map(|p| p.2).fold(f64::MAX, f64::min);
        let plans: Vec<&Plan> = all.iter().filter(|p| p.2 <= HOPELESS * fastest).collect();
        let chosen = least(plans.iter().map(|p| p.2));
        let Some((name, prepared, predicted)) = plans.get(chosen) else { continue };
        let ms = measure_all(runner, &label, &plans, chosen)?;
        let best = least(ms.iter().copied());
        let mut row = head(prepared);
        row.insert("plans".into(), json!(all.len()));
        row.insert("measured".into(), json!(plans.len()));
        row.insert("chosen".into(), json!(name));
        put_ms(&mut row, "ours_predicted_ms", 1e3 * predicted);
        put_ms(&mut row, "ours_chosen_ms", ms[chosen]);
        row.insert("best".into(), json!(plans[best].0));
        put_ms(&mut row, "ours_best_ms", ms[best]);
        put_percent(&mut row, "loss_percent", ms[chosen], ms[best]);
        rows.push(row);
    }
    let loss = |row: &super::Row| row.get("loss_percent").and_then(serde_json::Value::as_f64).unwrap_or(f64::MAX);
    let within = rows.iter().filter(|row| loss(row) <= 10.0).count();
    let mut deviations = vec![
        format!("{within} of {} chosen plans within 10 % of the best measured", rows.len()),
        format!(
            "plans predicted to take more than {HOPELESS} times the chosen one's time are not measured; the others are \
             measured alone, then those within {CLOSE} of the best in turn, 15 rounds"
        ),
    ];
    if runner.quick() {
        deviations.push("--quick: N = 2^13 alone".to_owned());
    }
    deviations.append(&mut runner.deviations);
    Ok(Outcome { rows, deviations, figure: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_switch_can_be_built() {
        for (log_n, log_q, omega, width) in SWITCHES {
            let prepared = prepare(log_n, log_q, omega, width).unwrap();
            assert_eq!(prepared.plan().digits.len(), omega, "{log_n} {log_q} {width}");
        }
        for (log_n, log_q, other, width) in OTHERS {
            let prepared = other.prepare(log_n, log_q, width).unwrap();
            assert!(!name(&prepared, width).contains("hybrid") || prepared.ends()[0] != prepared.ends()[1]);
        }
        for (log_n, log_q) in SETS {
            let secure = |omega| prepare(log_n, log_q, omega, 50).unwrap().is_secure();
            assert!((1..=log_q.div_ceil(50) as usize).any(secure), "{log_n} {log_q}");
        }
    }
}
