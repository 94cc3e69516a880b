//! The cost model judged: predicted against measured times, and chosen plans against the best measured.

use serde_json::json;
use synchromesh::cost::Profile;

use super::runner::{head, put_ms, put_percent};
use super::{Figure, Outcome, Runner, Series};
use crate::Error;
use crate::key_switch::{Chain, Method, Prepared, rotation};

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

fn prepare(log_n: u32, log_q: u32, omega: usize, width: u32) -> Result<Prepared, Error> {
    let chain = Chain::Equal { log_q, log_p: None, width: Some(width) };
    Prepared::new(&rotation(log_n, chain, Method::Hybrid { omega }))
}

fn per_cent(part: usize, all: usize) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

/// Predicted against measured.
pub(super) fn predictions(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let profile = profile(runner)?;
    let mut rows = Vec::new();
    let mut points = Vec::new();
    for (log_n, log_q, omega, width) in SWITCHES {
        if !runner.takes_degree(log_n) {
            continue;
        }
        let prepared = prepare(log_n, log_q, omega, width)?;
        let label = format!("N = 2^{log_n}, log q = {log_q}, {omega} digit(s), {width}-bit primes");
        // Slots to slots, as the prediction has it.
        let Some(ms) = runner.slots_milliseconds(&label, &[&prepared])? else { continue };
        let predicted = 1e3 * prepared.predict(profile)?;
        let mut row = head(&prepared);
        row.insert("width".into(), json!(width));
        put_ms(&mut row, "ours_measured_ms", ms[0]);
        put_ms(&mut row, "ours_predicted_ms", predicted);
        put_percent(&mut row, "error_percent", predicted, ms[0]);
        rows.push(row);
        points.push((ms[0], predicted));
    }
    let within = points.iter().filter(|(m, p)| (p / m - 1.0).abs() <= 0.15).count();
    let all = points.len();
    let mut deviations =
        vec![format!("{within} of {all} predictions ({:.0} %) within 15 % of the median", per_cent(within, all))];
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

/// The fastest by prediction against the fastest by measurement, over digits and widths, secure ones only.
pub(super) fn choices(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let profile = profile(runner)?;
    let mut rows = Vec::new();
    for (log_n, log_q) in SETS {
        if !runner.takes_degree(log_n) {
            continue;
        }
        let mut plans: Vec<(String, Prepared, f64)> = Vec::new();
        for width in WIDTHS {
            let mut last = 0;
            for omega in 1..=log_q.div_ceil(width) as usize {
                let prepared = prepare(log_n, log_q, omega, width)?;
                let digits = prepared.plan().digits.len();
                if digits != last && prepared.is_secure() {
                    let predicted = prepared.predict(profile)?;
                    plans.push((format!("{digits} digit(s), {width}-bit primes"), prepared, predicted));
                }
                last = digits;
            }
        }
        let label = format!("N = 2^{log_n}, log q = {log_q}");
        let Some(ms) = runner.slots_milliseconds(&label, &plans.iter().map(|p| &p.1).collect::<Vec<_>>())? else {
            continue;
        };
        let least = |times: &[f64]| times.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(i, _)| i);
        let chosen = least(&plans.iter().map(|p| p.2).collect::<Vec<_>>());
        let best = least(&ms);
        let Some((name, prepared, predicted)) = plans.get(chosen) else { continue };
        let mut row = head(prepared);
        row.insert("plans".into(), json!(plans.len()));
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
    let mut deviations = vec![format!("{within} of {} chosen plans within 10 % of the best measured", rows.len())];
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
        for (log_n, log_q) in SETS {
            let secure = |omega| prepare(log_n, log_q, omega, 50).unwrap().is_secure();
            assert!((1..=log_q.div_ceil(50) as usize).any(secure), "{log_n} {log_q}");
        }
    }
}
