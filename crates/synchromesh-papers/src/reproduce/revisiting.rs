//! ePrint 2021/204: Tables 1 to 8, Figure 1 and what it says of which scheme is faster.

mod counts;

use serde_json::json;

use super::runner::row;
use super::{Figure, Outcome, Row, Runner, Series};
use crate::revisiting::{self, Circuit, Products, Published};
use synchromesh_bench::{Error, memory};

pub(super) use counts::{table1, table4, table5};

const PLACE: &str = "the paper's times are of an Intel Core i7-9700 at 3 GHz with PALISADE 1.10.4, one thread; ours of this machine, one thread";
const NOISE: &str = "the error is measured in the phase, the median of three or five runs on inputs of our own; the paper does not give its coefficients a_i below 16, which move a sum by up to four bits: ours are drawn anew for each run";
const WHY: &str = "noise_at_most_the_papers false: a largest coefficient moves by about a bit with inputs and primes, a sum with its coefficients, BGV with its longer primes";
const LONGER: &str =
    "where certificates refuse BFV's parameters even for exact inputs, primes are longer by a few bits (ours_log_q)";
const STATIC: &str = "BGV runs at the parameters that the static rule of section 4 gives with the paper's noise model, which holds on average, or where certificates refuse them for exact ciphertexts at those of a certified bound (ours_log_q)";
const RESIDUE: &str = "the original ways run with primes that are 1 modulo t where their width has as many: their encoding errs by (Q mod t) m / t (section 3), up to four bits here";
const INSECURE: &str = "special primes are our own choice: where log QP exceeds the limit for 128 bits at the paper's degree, security_bits says so";
/// Plaintext moduli of every table.
pub(super) const MODULI: [u64; 3] = [2, 65_537, 1_073_479_681];

/// One row a cell of `circuit` that `wanted` accepts.
fn cells(runner: &mut Runner<'_>, circuit: Circuit, wanted: impl Fn(&Published) -> bool) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for cell in revisiting::published(circuit)?.iter().filter(|cell| wanted(cell)) {
        let digits = cell.digits.map_or("L".to_owned(), |d| d.to_string());
        let label = format!("{}, t = {}, {digits} digits, k = {}, {}", circuit.name(), cell.t, cell.k, cell.variant);
        runner.note(&label);
        if let Err(free) = memory::fits(bytes(cell)) {
            let gib = free as f64 / (1u64 << 30) as f64;
            runner.deviations.push(format!("{label}: left out, memory is short, {gib:.1} GiB are free"));
            continue;
        }
        let measured = revisiting::measure(cell)?;
        if measured.ours.is_none() {
            runner.deviations.push(format!("{label}: refused by the certificates"));
        }
        let mut row = row(serde_json::to_value(&measured).map_err(|e| Error::Request { reason: e.to_string() })?);
        row.insert("digits".into(), json!(digits));
        for (key, digits) in [("ours_log_q", 1e1), ("ours_log_e", 1e1), ("ours_s", 1e6), ("security_bits", 1e1)] {
            if let Some(x) = row.get(key).and_then(serde_json::Value::as_f64) {
                row.insert(key.into(), json!((x * digits).round() / digits));
            }
        }
        let log_e = |key: &str| row.get(key).and_then(serde_json::Value::as_f64);
        // The paper prints whole bits.
        if let Some((ours, paper)) = log_e("ours_log_e").zip(log_e("paper_log_e")) {
            row.insert("noise_at_most_the_papers".into(), json!(ours.round() <= paper));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Bytes of the ciphertexts that a cell holds, about.
fn bytes(cell: &Published) -> usize {
    let inputs = match cell.circuit {
        Circuit::Tree => 2 << cell.k,
        Circuit::Polynomial => 2 * cell.k,
        Circuit::InnerProduct => 4 * cell.k,
    };
    let limbs = cell.log_q.div_ceil(cell.log_qi.min(40)) as usize + 2;
    // Two parts of words, a plain vector of as many.
    ((inputs + 64) * (2 * limbs + 1) * 8) << cell.log_n
}

fn outcome(runner: &mut Runner<'_>, rows: Vec<Row>, said: &[&str], figure: Option<Figure>) -> Outcome {
    let mut deviations: Vec<String> = said.iter().map(|s| (*s).to_owned()).collect();
    deviations.append(&mut runner.deviations);
    Outcome { rows, deviations, figure }
}

/// The cells of a circuit up to `most` if quick.
fn table(
    runner: &mut Runner<'_>,
    circuit: Circuit,
    most: usize,
    wanted: impl Fn(&Published) -> bool,
) -> Result<Outcome, Error> {
    let quick = runner.quick();
    let rows = cells(runner, circuit, |cell| wanted(cell) && (!quick || cell.k <= most))?;
    if quick {
        runner.deviations.push(format!("--quick: k up to {most}"));
    }
    let above = rows.iter().filter(|row| row.get("noise_at_most_the_papers") == Some(&json!(false))).count();
    if above > 0 {
        runner
            .deviations
            .push(format!("{above} of {} rows have more noise than the paper's figure, {WHY}", rows.len()));
    }
    Ok(outcome(runner, rows, &[PLACE, NOISE, RESIDUE, LONGER, STATIC, INSECURE], None))
}

/// The rows of Tables 2 and 3.
fn main_text(cell: &Published) -> bool {
    cell.t == 65_537 && cell.digits == Some(3)
}

/// Table 2: product trees at t = 2^16 + 1 with three digits.
pub(super) fn table2(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    table(runner, Circuit::Tree, 4, main_text)
}

/// Table 3: polynomials at t = 2^16 + 1 with three digits.
pub(super) fn table3(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    table(runner, Circuit::Polynomial, 16, main_text)
}

/// Table 6: product trees.
pub(super) fn table6(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    table(runner, Circuit::Tree, 2, |_| true)
}

/// Table 7: polynomials.
pub(super) fn table7(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    table(runner, Circuit::Polynomial, 4, |_| true)
}

/// Table 8: inner products.
pub(super) fn table8(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let quick = runner.quick();
    let rows = cells(runner, Circuit::InnerProduct, |cell| !quick || cell.digits == Some(3))?;
    if quick {
        runner.deviations.push("--quick: three digits only".into());
    }
    Ok(outcome(runner, rows, &[PLACE, NOISE, LONGER, INSECURE], None))
}

/// Variants of Figure 1, and what they are called.
const VARIANTS: [(&str, &str); 4] =
    [("hps", "BFV, original (HPS)"), ("new", "BFV, new"), ("leveled", "BFV, leveled"), ("bgv", "BGV")];

/// Products one after another at one plaintext modulus, by variant as in [`VARIANTS`].
struct Depths {
    t: u64,
    products: Vec<Products>,
}

/// The degree of a run, and all its products.
fn depths(runner: &mut Runner<'_>) -> Result<(u32, Vec<Depths>), Error> {
    let log_n = if runner.quick() { 13 } else { 15 };
    if runner.quick() {
        runner.deviations.push("--quick: N = 2^13 in place of 2^15".into());
    }
    let mut all = Vec::new();
    for t in MODULI {
        let depth = if t == 2 { 20 } else { 10 };
        let mut products = Vec::new();
        for (variant, name) in VARIANTS {
            runner.note(&format!("t = {t}, {name}"));
            products.push(revisiting::products(variant, log_n, t, depth)?);
        }
        all.push(Depths { t, products });
    }
    Ok((log_n, all))
}

/// Figure 1: one product with its key switch, by plaintext modulus, at several depths of the same parameters.
pub(super) fn figure1(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let (log_n, all) = depths(runner)?;
    let mut rows = Vec::new();
    for Depths { t, products } in &all {
        for ((variant, _), products) in VARIANTS.iter().zip(products) {
            for (i, ms) in products.milliseconds.iter().enumerate() {
                rows.push(row(json!({
                    "log_n": log_n, "t": t, "variant": variant, "depth": i + 1,
                    "ours_ms": (1e3 * ms).round() / 1e3, "ours_log_q": products.log_q.ceil(),
                    "security_bits": (10.0 * products.security_bits).round() / 10.0,
                })));
            }
        }
    }
    // The share of the depth at which a line is drawn.
    let line = |index: usize, name: String, at: fn(usize) -> usize| {
        let point = |d: &Depths| {
            let times = &d.products[index].milliseconds;
            ((d.t as f64).log2(), times[at(times.len()) - 1])
        };
        Series { name, points: all.iter().map(point).collect(), joined: true }
    };
    let mut series = Vec::new();
    for (index, (variant, name)) in VARIANTS.into_iter().enumerate() {
        // The time of products that drop no primes does not depend on the depth.
        if ["leveled", "bgv"].contains(&variant) {
            series.push(line(index, format!("{name}, first product"), |_| 1));
            series.push(line(index, format!("{name}, half way"), |depth| depth / 2));
        }
        let last = if ["leveled", "bgv"].contains(&variant) { ", last product" } else { "" };
        series.push(line(index, format!("{name}{last}"), |depth| depth));
    }
    let figure = Figure {
        title: format!("One product of parameters for depth 20 (t = 2) or 10, N = 2^{log_n}"),
        x: "log2 t".into(),
        y: "milliseconds".into(),
        logarithmic: false,
        series,
    };
    let said = [
        PLACE,
        "the paper's figure is an image: there are no figures to set beside",
        "the modulus of BFV is that of section 3.2's bound for the depth, BGV's that of the static rule",
        "whatever the security: security_bits",
    ];
    Ok(outcome(runner, rows, &said, Some(figure)))
}

/// What sections 6 and G say: how much faster leveled products are, which scheme is faster, and whose noise is larger.
pub(super) fn claims(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = deep_products(runner)?;
    let quick = runner.quick();
    for circuit in [Circuit::Tree, Circuit::Polynomial] {
        let most = if circuit == Circuit::Tree { 3 } else { 8 };
        let wanted = |cell: &Published| {
            cell.digits == Some(3) && ["leveled", "bgv"].contains(&cell.variant.as_str()) && (!quick || cell.k <= most)
        };
        let cells = cells(runner, circuit, wanted)?;
        // Leveled BFV and BGV of one cell follow one another.
        for pair in cells.windows(2) {
            let [bfv, bgv] = pair else { continue };
            let same = ["t", "k", "digits"].iter().all(|key| bfv.get(*key) == bgv.get(*key));
            if same && bgv.get("variant") == Some(&json!("bgv")) {
                rows.push(compared(circuit, bfv, bgv));
            }
        }
    }
    let said = [PLACE, NOISE, LONGER, STATIC, INSECURE];
    Ok(outcome(runner, rows, &said, None))
}

/// Which of two times is the shorter: null where one is missing.
fn faster(bfv: Option<f64>, bgv: Option<f64>) -> Option<&'static str> {
    Some(match bfv?.total_cmp(&bgv?) {
        std::cmp::Ordering::Less => "bfv",
        std::cmp::Ordering::Equal => "equal",
        std::cmp::Ordering::Greater => "bgv",
    })
}

/// A row of [`claims`] from two cells.
fn compared(circuit: Circuit, bfv: &Row, bgv: &Row) -> Row {
    let get = |row: &Row, key: &str| row.get(key).and_then(serde_json::Value::as_f64);
    let by = |key: &str| faster(get(bfv, key), get(bgv, key));
    let more = |key: &str| Some((10.0 * (get(bgv, key)? - get(bfv, key)?)).round() / 10.0);
    let ratio = |key: &str| Some((100.0 * get(bfv, key)? / get(bgv, key)?).round() / 100.0);
    row(json!({
        "claim": "faster", "circuit": circuit.name(), "t": bfv.get("t"), "k": bfv.get("k"),
        "ours": by("ours_s"), "paper": by("paper_s"),
        "ours_bfv_over_bgv": ratio("ours_s"), "paper_bfv_over_bgv": ratio("paper_s"),
        "ours_bgv_more_log_e": more("ours_log_e"), "paper_bgv_more_log_e": more("paper_log_e"),
        "security_bits": get(bfv, "security_bits").zip(get(bgv, "security_bits")).map(|(a, b)| a.min(b)),
    }))
}

/// The claims that Figure 1 goes with.
fn deep_products(runner: &mut Runner<'_>) -> Result<Vec<Row>, Error> {
    let (log_n, all) = depths(runner)?;
    let mut rows = Vec::new();
    for Depths { t, products } in &all {
        let [hps, _, leveled, bgv] = products.as_slice() else { continue };
        let depth = hps.milliseconds.len();
        let speedup = hps.milliseconds[depth - 1] / leveled.milliseconds[depth - 1];
        rows.push(row(json!({
            "claim": "leveled over original", "circuit": "product", "log_n": log_n, "t": t, "k": depth,
            "ours": (100.0 * speedup).round() / 100.0, "paper": "3 to 4",
            "security_bits": hps.security_bits.min(leveled.security_bits),
        })));
        for i in [1, depth / 2, depth] {
            let (x, y) = (leveled.milliseconds[i - 1], bgv.milliseconds[i - 1]);
            rows.push(row(json!({
                "claim": "faster", "circuit": "product", "log_n": log_n, "t": t, "k": i,
                "ours": faster(Some(x), Some(y)), "paper": if *t == 2 { "bfv" } else { "bgv" },
                "ours_bfv_over_bgv": (100.0 * x / y).round() / 100.0,
                "security_bits": leveled.security_bits.min(bgv.security_bits),
            })));
        }
    }
    Ok(rows)
}
