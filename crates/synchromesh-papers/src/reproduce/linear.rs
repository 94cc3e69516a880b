//! The other tables and figures of linear key switching: memory, parameters, levels, where time goes, and what holds at
//! equal security.

use serde_json::json;
use synchromesh::cost::{OneSwitch, Shape};
use synchromesh_ring::backend::Open;
use synchromesh_ring::ledger::Operation;
use synchromesh_ring::{Backend, Ledger};
use synchromesh_rlwe::Context;
use synchromesh_rlwe::security::{SecurityLevel, max_log_qp};

use super::extended::{TABLE8, enough, request};
use super::runner::{put_ms, row};
use super::{Figure, Outcome, Row, Runner, Series};
use synchromesh_bench::Error;
use synchromesh_bench::device::{Device, Measured, on_device};
use synchromesh_bench::key_switch::{Chain, Method, Prepared, Request};

/// Bytes of a gigabyte, as the paper counts them.
const GB: f64 = 1e9;
/// Switches of which the mean time of each operation is taken.
const RUNS: usize = 5;
/// Widths of the paper's ciphertext primes and of its special prime.
const WIDTHS: [u32; 2] = [40, 55];

/// Numbers of digits of the key that differ, with the primes in each: those that `l + 1` primes can be cut into.
fn key_digits(l: usize) -> Vec<(usize, usize)> {
    let mut all: Vec<(usize, usize)> = (1..=l + 1).map(|primes| (primes, (l + 1).div_ceil(primes))).collect();
    // Of several lengths with as many digits, the shortest.
    all.dedup_by_key(|(_, digits)| *digits);
    all
}

/// The double decomposition of a request with one prime in each digit of the ciphertext.
fn double(log_n: u32, scheme: &str, l: usize, key_primes: usize) -> Request {
    let second = enough((l + 1).div_ceil(key_primes));
    Request { second, ..request(log_n, scheme, l, Method::Bv) }
}

/// Linear key switching.
fn linear(log_n: u32, scheme: &str, l: usize) -> Request {
    double(log_n, scheme, l, 1)
}

/// Digits and primes of a prepared double decomposition.
fn extended(prepared: &Prepared) -> (usize, usize) {
    prepared.extended().unwrap_or_default()
}

/// Table IV: operations of the double decomposition, by ePrint 2023/1642, Tables 3 and 4, as the text lost its body.
pub(super) fn table4(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    for l in [8usize, 16, 32] {
        for key_primes in [1, 4, 5, 7, 9, 11, 13].into_iter().filter(|&primes| primes <= l) {
            for scheme in ["bfv", "bgv", "ckks"] {
                runner.note(&format!("{scheme}, l = {l}, {key_primes} primes in a key digit"));
                let prepared = Prepared::new(&double(11, scheme, l, key_primes))?;
                let ((digits, aux), counts) = (extended(&prepared), prepared.counts()?);
                let formula = (l + 2 * digits) * aux + if scheme == "bfv" { 0 } else { 3 * l };
                rows.push(row(json!({
                    "scheme": scheme, "l": l, "key_digit_primes": key_primes, "key_digits": digits, "aux_primes": aux,
                    "ours_ntt": counts.ntt, "formula_ntt": formula,
                    "ours_mul": counts.mul + counts.convert_mac, "formula_key_mul": 2 * l * digits * aux,
                })));
            }
        }
    }
    let said = [
        "the paper's text lost the body of this table; formula_* are (l + 2 d) |T| + 3 l transforms (bfv: without 3 l) and 2 l d |T| products with the key, of ePrint 2023/1642",
        "ours_mul has the products of base conversions and of the division by P as well",
        "aux_primes is what a bound with whole primes, the sum over digits and the sign demands",
    ];
    Ok(Outcome { rows, deviations: said.map(str::to_owned).to_vec(), figure: None })
}

/// Table V: memory of double decomposition, when keys for several cuts are kept at once.
pub(super) fn table5(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let l = 32;
    let mut rows = Vec::new();
    for log_n in [14, 15, 16] {
        let mut sizes = Vec::new();
        for (key_primes, _) in key_digits(l) {
            runner.note(&format!("N = 2^{log_n}, {key_primes} primes in a key digit"));
            sizes.push(Prepared::new(&double(log_n, "ckks", l, key_primes))?.key_bytes());
        }
        let linear = Prepared::new(&linear(log_n, "ckks", l))?.key_bytes();
        for kept in [1, 2, 4, 8, sizes.len()] {
            // The smallest keys first: the least that so many decompositions take.
            let mut least = sizes.clone();
            least.sort_unstable();
            let bytes: usize = least.iter().take(kept).sum();
            rows.push(row(json!({
                "log_n": log_n, "l": l, "decompositions_kept": kept, "ours_double_gb": gb(bytes),
                "ours_linear_gb": gb(linear),
            })));
        }
    }
    let said = [
        "the paper's text lost the body of this table; these are bytes of prepared keys, one relinearisation key at each N, the smallest decompositions first",
        "one decomposition takes less than the linear method's key: only keeping many of them takes more",
    ];
    Ok(Outcome { rows, deviations: said.map(str::to_owned).to_vec(), figure: None })
}

fn gb(bytes: usize) -> f64 {
    (bytes as f64 / GB * 1e3).round() / 1e3
}

/// Table VI: the parameters, and their security.
pub(super) fn table6(_: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    for (log_n, scheme, l, ..) in TABLE8.into_iter().filter(|&(log_n, scheme, l, ..)| l == most(log_n, scheme)) {
        let prepared = Prepared::new(&request(log_n, scheme, l, Method::Bv))?;
        rows.push(row(json!({
            "log_n": log_n, "scheme": scheme, "l": l, "log_qp": prepared.params().log_qp(),
            "security_bits": prepared.params().security_bits().round(), "secure": prepared.is_secure(),
            "most_l_secure": secure_l(log_n, scheme, 1),
        })));
    }
    let said = [
        "the paper's bfv row for N = 2^14 has seven primes and speaks of eight levels; its times are for eight, and so are ours",
        "32 primes of 40 bits are far below 128 bits of security at N = 2^14 and 2^15",
    ];
    Ok(Outcome { rows, deviations: said.map(str::to_owned).to_vec(), figure: None })
}

/// The most primes that Table VIII has at a degree.
fn most(log_n: u32, scheme: &str) -> usize {
    TABLE8.into_iter().filter(|row| (row.0, row.1) == (log_n, scheme)).map(|row| row.2).max().unwrap_or(0)
}

/// Most primes of 40 bits, in ckks the first of 55, beside `special` of 55 that leave 128 bits of security.
fn secure_l(log_n: u32, scheme: &str, special: u32) -> usize {
    let limit = max_log_qp(log_n, SecurityLevel::Bits128).unwrap_or(0);
    let wider = if scheme == "ckks" { WIDTHS[1] - WIDTHS[0] } else { 0 };
    (limit.saturating_sub(special * WIDTHS[1] + wider) / WIDTHS[0]) as usize
}

/// log N, the scheme and the most primes that leave 128 bits, where the paper has more.
pub(super) fn largest_secure() -> impl Iterator<Item = (u32, &'static str, usize)> {
    let all = [14, 15, 16].into_iter().flat_map(|log_n| ["bgv", "ckks", "bfv"].map(|scheme| (log_n, scheme)));
    let largest = all.map(|(log_n, scheme)| (log_n, scheme, secure_l(log_n, scheme, 1)));
    largest.filter(|&(log_n, scheme, l)| l < most(log_n, scheme))
}

/// log N, the scheme, l, and the gigabytes of double decomposition and of the linear method, by Table VII.
#[rustfmt::skip]
const TABLE7: [(u32, &str, usize, f64, f64); 9] = [
    (14, "bgv", 32, 11.38, 0.55), (14, "ckks", 32, 11.87, 0.55), (14, "bfv", 8, 0.30, 0.04),
    (15, "bgv", 32, 22.76, 1.10), (15, "ckks", 32, 23.85, 1.10), (15, "bfv", 15, 2.93, 0.26),
    (16, "bgv", 32, 45.64, 2.21), (16, "ckks", 32, 47.70, 2.21), (16, "bfv", 34, 53.77, 2.48),
];

/// Table VII: memory of one relinearisation key.
pub(super) fn table7(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    for (log_n, scheme, l, paper_double, paper_linear) in TABLE7 {
        runner.note(&format!("N = 2^{log_n}, {scheme}"));
        let mut sizes = Vec::new();
        for (key_primes, _) in key_digits(l) {
            sizes.push(Prepared::new(&double(log_n, scheme, l, key_primes))?.key_bytes());
        }
        let linear = Prepared::new(&linear(log_n, scheme, l))?;
        let baseline = Prepared::new(&request(log_n, scheme, l, Method::Bv))?;
        rows.push(row(json!({
            "log_n": log_n, "scheme": scheme, "l": l,
            "paper_double_gb": paper_double, "paper_linear_gb": paper_linear,
            "ours_double_all_gb": gb(sizes.iter().sum()), "ours_double_least_gb": gb(sizes.iter().copied().min().unwrap_or(0)),
            "ours_linear_gb": gb(linear.key_bytes()), "ours_baseline_gb": gb(baseline.key_bytes()),
            "ours_linear_aux_primes": extended(&linear).1,
            "security_bits": baseline.params().security_bits().round(), "secure": baseline.is_secure(),
        })));
    }
    let said = [
        "the paper compares with keys for every number of primes in a key digit at once; a program that has chosen one needs ours_double_least_gb, less than the linear method",
        "the first prime of ckks has 55 bits, so that E needs three primes of 60 bits where the paper takes two",
    ];
    Ok(Outcome { rows, deviations: said.map(str::to_owned).to_vec(), figure: None })
}

/// Figure 2: operations against time over the primes of a key digit.
pub(super) fn figure2(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for (paper_log_n, l) in sizes(runner) {
        let log_n = runner.degree(paper_log_n);
        let chosen = [1, 2, 3, 4, 5, 7, 9, 11, 13].into_iter().filter(|&primes| primes <= l + 1);
        let (mut counted, mut timed) = (Vec::new(), Vec::new());
        for key_primes in chosen {
            let prepared = Prepared::new(&double(log_n, "ckks", l, key_primes))?;
            let label = format!("N = 2^{log_n}, l = {l}, {key_primes} primes in a key digit");
            let Some(ms) = runner.alone(&label, &prepared)? else { continue };
            let counts = prepared.counts()?;
            let operations = counts.ntt as f64 * f64::from(log_n) / 2.0 + (counts.mul + counts.convert_mac) as f64;
            counted.push((key_primes as f64, operations));
            timed.push((key_primes as f64, ms));
            let mut row = row(json!({
                "log_n": log_n, "scheme": "ckks", "l": l, "key_digit_primes": key_primes,
                "aux_primes": extended(&prepared).1, "ours_operations_per_coefficient": operations,
            }));
            put_ms(&mut row, "ours_ms", ms);
            put_security(&mut row, &prepared);
            rows.push(row);
        }
        // Both at one scale: the counted line meets the measured one in the mean.
        let mean = |points: &[(f64, f64)]| points.iter().map(|p| p.1).sum::<f64>();
        let scale = mean(&timed) / mean(&counted);
        let points = counted.iter().map(|&(x, y)| (x, y * scale)).collect();
        series.push(Series { name: format!("N = 2^{log_n}, operations"), points, joined: true });
        series.push(Series { name: format!("N = 2^{log_n}, time"), points: timed, joined: false });
    }
    let deviations =
        "operations are log2(N)/2 a transform and coefficient and 1 a product, scaled to the mean of the times";
    finish(
        runner,
        rows,
        vec![deviations.to_owned()],
        figure("Double decomposition by the primes of a key digit", "primes in a key digit", series),
    )
}

/// Degrees with numbers of primes: all of the paper's, or the smallest if quick.
fn sizes(runner: &Runner<'_>) -> Vec<(u32, usize)> {
    if runner.quick() { vec![(14, 12)] } else { vec![(14, 32), (15, 32), (16, 32)] }
}

fn figure(title: &str, x: &str, series: Vec<Series>) -> Option<Figure> {
    Some(Figure { title: title.to_owned(), x: x.to_owned(), y: "milliseconds".to_owned(), logarithmic: true, series })
}

fn put_security(row: &mut Row, prepared: &Prepared) {
    row.insert("security_bits".into(), json!(prepared.params().security_bits().round()));
    row.insert("secure".into(), json!(prepared.is_secure()));
}

fn finish(
    runner: &mut Runner<'_>,
    rows: Vec<Row>,
    mut deviations: Vec<String>,
    figure: Option<Figure>,
) -> Result<Outcome, Error> {
    deviations
        .push("the paper measured on one A100; ours is this machine's device, one thread if it is the CPU".to_owned());
    if runner.quick() {
        deviations.push("--quick: the smallest degree and fewer primes".to_owned());
    }
    deviations.append(&mut runner.deviations);
    Ok(Outcome { rows, deviations, figure })
}

/// Figure 4: time by level.
pub(super) fn figure4(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    let schemes: &[&str] = if runner.quick() { &["bgv"] } else { &["bgv", "ckks"] };
    for (paper_log_n, top) in sizes(runner) {
        let log_n = runner.degree(paper_log_n);
        for &scheme in schemes {
            let mut lines = vec![Vec::new(); 4];
            for l in (4..=top).step_by(4) {
                let key_primes = [5, 7];
                let all = [
                    request(log_n, scheme, l, Method::Bv),
                    linear(log_n, scheme, l),
                    double(log_n, scheme, l, key_primes[0].min(l + 1)),
                    double(log_n, scheme, l, key_primes[1].min(l + 1)),
                ];
                let all: Vec<Prepared> = all.iter().map(Prepared::new).collect::<Result<_, _>>()?;
                let label = format!("N = 2^{log_n}, {scheme}, l = {l}");
                let Some(ms) = runner.slots_milliseconds(&label, &all.iter().collect::<Vec<_>>())? else { continue };
                let mut row = row(json!({ "log_n": log_n, "scheme": scheme, "l": l }));
                for (i, name) in METHODS.into_iter().enumerate() {
                    put_ms(&mut row, &format!("ours_{name}_ms"), ms[i]);
                    lines[i].push((l as f64, ms[i]));
                }
                put_security(&mut row, &all[0]);
                rows.push(row);
            }
            for (name, points) in METHODS.into_iter().zip(lines) {
                series.push(Series { name: format!("2^{log_n} {scheme} {name}"), points, joined: true });
            }
        }
    }
    let said =
        "double5 and double7 have five and seven primes in a key digit; the paper's figure has no numbers in the text";
    finish(runner, rows, vec![said.to_owned()], figure("Key switching by level", "primes of the ciphertext", series))
}

/// The lines of Figure 4.
const METHODS: [&str; 4] = ["baseline", "linear", "double5", "double7"];

/// What an operation of the ledger is in the paper's words.
const fn stage(operation: Operation) -> &'static str {
    match operation {
        Operation::NttForward | Operation::NttInverse | Operation::NttInverseInto => "ntt",
        Operation::Convert | Operation::ConvertAdd => "base_conversion",
        Operation::InnerProduct | Operation::GadgetProduct | Operation::GadgetProductCoeff | Operation::GadgetSums => {
            "digits_and_inner_product"
        }
        Operation::SlotSums => "ntt_and_sums",
        _ => "rest",
    }
}

/// The stages in the order of columns.
const STAGES: [&str; 5] = ["ntt", "base_conversion", "digits_and_inner_product", "ntt_and_sums", "rest"];

/// Figure 5: where the time goes.
pub(super) fn figure5(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let (paper_log_n, l) = if runner.quick() { (14, 12) } else { (16, 32) };
    let log_n = runner.degree(paper_log_n);
    let all = [
        ("baseline", request(log_n, "ckks", l, Method::Bv)),
        ("double7", double(log_n, "ckks", l, 7)),
        ("double11", double(log_n, "ckks", l, 11)),
        ("linear", linear(log_n, "ckks", l)),
    ];
    let mut rows = Vec::new();
    for (name, request) in all {
        runner.note(&format!("N = 2^{log_n}, {name}"));
        let prepared = Prepared::new(&request)?;
        let milliseconds = breakdown(runner.device(), &prepared)?;
        let mut row = row(json!({ "method": name, "log_n": log_n, "scheme": "ckks", "l": l }));
        for (stage, ms) in STAGES.into_iter().zip(milliseconds) {
            put_ms(&mut row, &format!("ours_{stage}_ms"), ms);
        }
        put_ms(&mut row, "ours_sum_ms", milliseconds.iter().sum());
        put_security(&mut row, &prepared);
        rows.push(row);
    }
    let said = [
        "the paper's figure has no numbers in the text",
        "a digit is transformed where it is multiplied, so that the inner product has the digits' transforms in it",
    ];
    finish(runner, rows, said.map(str::to_owned).to_vec(), None)
}

/// Milliseconds of each stage, each operation waited for.
fn breakdown(device: Device, prepared: &Prepared) -> Result<[f64; 5], Error> {
    let ring = prepared.params().ring();
    on_device!(device, B => stages(prepared, Measured::waiting(<B as Open>::open(ring)?)))
}

fn stages<B: Backend>(prepared: &Prepared, backend: B) -> Result<[f64; 5], Error> {
    let context = Context::with_backend(prepared.params().clone(), Ledger::new(backend));
    let switch = OneSwitch::new(&context, prepared.plan(), prepared.ends().each_ref(), prepared.shape())?;
    switch.run()?;
    context.backend().take();
    for _ in 0..RUNS {
        switch.run()?;
    }
    let (entries, _) = context.backend().take();
    let mut milliseconds = [0.0; 5];
    for (&(operation, _), tally) in &entries {
        let at = STAGES.iter().position(|name| *name == stage(operation)).unwrap_or(STAGES.len() - 1);
        milliseconds[at] += 1e3 * tally.seconds / RUNS as f64;
    }
    Ok(milliseconds)
}

/// The methods that are compared at equal security, each with 128 bits.
pub(super) const COMPARED: [&str; 4] = ["baseline", "linear", "double7", "hybrid8"];

/// Relinearisations of `l` primes by these methods.
pub(super) fn compared(log_n: u32, scheme: &str, l: usize) -> [Request; 4] {
    let primes = l.min(8);
    let mut hybrid = request(log_n, scheme, l, Method::Digits { primes });
    if let Chain::Widths { q, p } = &mut hybrid.chain {
        let digit: u32 = q.iter().take(primes).sum();
        *p = vec![WIDTHS[1]; digit.div_ceil(WIDTHS[1]) as usize];
    }
    let baseline = request(log_n, scheme, l, Method::Bv);
    [baseline, linear(log_n, scheme, l), double(log_n, scheme, l, 7.min(l + 1)), hybrid]
}

/// Linear against the baseline and against hybrid key switching with eight primes a digit, all at 128 bits or more.
pub(super) fn claims(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    let real = runner.device().is_real();
    let schemes: &[&str] = if real { &["bfv", "bgv", "ckks"] } else { &["bgv"] };
    let batches: &[usize] = match (runner.device() == Device::Cpu, real) {
        (true, _) => &[1],
        (_, true) => &[1, 8, 64],
        _ => &[1, 2],
    };
    // Below, a P for eight primes leaves no room for them.
    let degrees: &[u32] = if runner.quick() { &[15] } else { &[15, 16] };
    for &paper_log_n in degrees {
        // Seven primes of 55 bits hold eight of 40, and eight of which the first has 55; the same l for all methods and schemes.
        let l = secure_l(paper_log_n, "ckks", 7);
        let log_n = runner.degree(paper_log_n);
        for (&scheme, &batch) in schemes.iter().flat_map(|scheme| batches.iter().map(move |batch| (scheme, batch))) {
            let shaped =
                |request: Request| Prepared::new(&Request { shape: Shape { batch, ..request.shape }, ..request });
            let all: Vec<Prepared> = compared(log_n, scheme, l).into_iter().map(shaped).collect::<Result<_, _>>()?;
            let label = format!("N = 2^{log_n}, {scheme}, l = {l}, batch of {batch}");
            let Some(ms) = runner.slots_milliseconds(&label, &all.iter().collect::<Vec<_>>())? else { continue };
            let mut row = row(json!({ "log_n": log_n, "scheme": scheme, "l": l, "batch": batch }));
            for ((name, prepared), ms) in COMPARED.into_iter().zip(&all).zip(&ms) {
                put_ms(&mut row, &format!("ours_{name}_ms_per_ciphertext"), ms / batch as f64);
                row.insert(format!("ours_{name}_key_gb"), json!(gb(prepared.key_bytes())));
            }
            let ratio = |i: usize| (100.0 * ms[i] / ms[1]).round() / 100.0;
            row.insert("ours_baseline_over_linear".into(), json!(ratio(0)));
            row.insert("ours_double7_over_linear".into(), json!(ratio(2)));
            row.insert("ours_hybrid8_over_linear".into(), json!(ratio(3)));
            let least = all.iter().map(|prepared| prepared.params().security_bits()).fold(f64::INFINITY, f64::min);
            row.insert("security_bits".into(), json!(least.round()));
            row.insert("secure".into(), json!(all.iter().all(Prepared::is_secure)));
            rows.push(row);
        }
    }
    let said = [
        "the paper claims up to 2.0 times the speed of its baseline, and compares with digits of one prime only; hybrid8 has digits of eight primes with a P of as many bits, and costs security: security_bits is the least of the four",
        "on the CPU batches gain nothing and are not measured",
    ];
    finish(runner, rows, said.map(str::to_owned).to_vec(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::{Item, Settings};

    fn outcome(id: &str) -> Outcome {
        let settings = Settings { quick: true, profile: None, device: Device::Cpu };
        Item::find(id).unwrap().run(&settings, &mut |_| {}).unwrap()
    }

    #[test]
    fn counts_of_double_decomposition_are_the_formulas() {
        let rows = outcome("linear-table4").rows;
        assert_eq!(rows.len(), 54);
        for row in rows {
            assert!(row["ours_ntt"].as_u64() <= row["formula_ntt"].as_u64(), "{row:?}");
            assert!(row["ours_mul"].as_u64() >= row["formula_key_mul"].as_u64(), "{row:?}");
        }
    }

    #[test]
    fn keys_of_the_linear_method_take_what_the_paper_says() {
        for row in outcome("linear-table7").rows {
            let get = |key: &str| row[key].as_f64().unwrap();
            // With two primes in E, and three where the first prime is wide.
            let expected = get("paper_linear_gb") * get("ours_linear_aux_primes") / 2.0;
            assert!((get("ours_linear_gb") / expected - 1.0).abs() < 0.13, "{row:?}");
            assert!(get("ours_double_least_gb") <= get("ours_linear_gb"), "{row:?}");
        }
    }

    #[test]
    fn most_primes_are_those_that_leave_128_bits() {
        let rows = outcome("linear-table6").rows;
        assert_eq!(rows.len(), 9);
        for row in rows {
            assert_eq!(row["secure"], row["l"].as_u64() <= row["most_l_secure"].as_u64(), "{row:?}");
        }
    }
}
