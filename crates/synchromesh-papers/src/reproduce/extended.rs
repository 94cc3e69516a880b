//! Products in an extended ring: double decomposition (ePrint 2023/1642, Table 4 and Figure 1) and linear key switching
//! (Tables II and VIII).

use num_bigint::BigInt;
use serde_json::json;
use synchromesh::cost::{Op, Shape};
use synchromesh_ring::rns::compose_vartime;
use synchromesh_ring::{Coeff, Cpu, Poly};
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::{Context, EvaluationKeys, Randomness, SecretKey, Source};

use super::runner::{put_ms, row};
use super::sets::Set;
use super::{Outcome, Row, Runner, linear};
use synchromesh_bench::Error;
use synchromesh_bench::key_switch::{Aux, Chain, Method, Prepared, Request, Second, rotation};

/// Degrees up to which published sets are judged by decryption.
const JUDGED: u32 = 15;
/// Width of the primes of E where the paper's are too few.
const AUX_BITS: u32 = 60;

pub(super) const fn enough(omega2: usize) -> Option<Second> {
    Some(Second { omega2, aux: Aux::Enough { width: Some(AUX_BITS) } })
}

/// A set of the double technique as published, and with as many primes of E as it needs.
pub(super) fn published_and_corrected(set: &Set, request: &Request) -> Option<[Request; 2]> {
    let second = set.second?;
    let aux = Aux::Published(vec![second.aux_bits; second.aux_primes]);
    let published = Some(Second { omega2: second.omega2, aux });
    Some([published, enough(second.omega2)].map(|second| Request { second, ..request.clone() }))
}

/// Puts how many primes of E there are and, at degrees up to 2^15, which part of the coefficients a rotation gets wrong.
pub(super) fn put_judgement(row: &mut Row, name: &str, prepared: &Prepared) -> Result<(), Error> {
    row.insert(format!("{name}_aux_primes"), json!(prepared.extended().map(|(_, aux)| aux)));
    if prepared.params().ring().log_n() <= JUDGED {
        let percent = 100.0 * wrong(prepared)? as f64 / prepared.params().n() as f64;
        row.insert(format!("{name}_wrong_percent"), json!((10.0 * percent).round() / 10.0));
    }
    Ok(())
}

/// Coefficients of a rotated encryption of zero whose error exceeds its certificate.
pub(super) fn wrong(prepared: &Prepared) -> Result<usize, Error> {
    let (params, plan) = (prepared.params(), prepared.plan());
    let context = Context::new(params.clone())?;
    let mut randomness = Randomness::insecure_from_number(1);
    let secret = SecretKey::generate(&context, &mut randomness)?;
    let keys = EvaluationKeys::generate(&context, &secret, [Source::Galois(3)], plan, &mut randomness)?;
    let switching = KeySwitching::new(keys.into(), plan.clone());
    let level = params.top_level();
    let primes = params.level(level)?;
    let zero = Poly::<Cpu, Coeff>::zero(context.backend(), primes)?;
    let (ct, _) = secret.encrypt::<Coeff>(&context, &zero, level, &mut randomness)?;
    let rotated = switching.automorphism(&context, &ct, 3)?;
    let bound = rotated.noise().bound(params.ring().log_n(), 128);
    let words = secret.phase(&context, &rotated)?.poly().to_words(context.backend())?;
    let (n, product) = (params.n(), BigInt::from(params.ring().product(primes)));
    let bits = (bound + num_bits(params.error_multiple())).ceil() as u64;
    let mut count = 0;
    for i in 0..n {
        let residues: Vec<u64> = (0..primes.len()).map(|r| words[r * n + i]).collect();
        let x = BigInt::from(compose_vartime(params.ring(), primes, &residues)?);
        let size = x.bits().min((&product - x).bits());
        count += usize::from(size > bits);
    }
    Ok(count)
}

fn num_bits(x: &num_bigint::BigUint) -> f64 {
    x.bits() as f64
}

/// Table 4 of ePrint 2023/1642: transforms of the double decomposition by operation and domains.
pub(super) fn table4(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    for (l, k, omega, omega2) in [(6, 1, 6, 4), (6, 2, 3, 4), (12, 3, 4, 5), (15, 3, 5, 3)] {
        runner.note(&format!("l = {l}, omega = {omega}, omega2 = {omega2}"));
        for (op, name) in [(Op::Rotate, "rotation"), (Op::Relin, "multiplication")] {
            for (input_ntt, output_ntt) in [(false, false), (false, true), (true, false), (true, true)] {
                let chain = Chain::Widths { q: vec![45; l], p: vec![46; k] };
                let shape = Shape { op, input_ntt, output_ntt, batch: 1 };
                let request =
                    Request { second: enough(omega2), shape, ..rotation(11, chain, Method::Hybrid { omega }) };
                let prepared = Prepared::new(&request)?;
                let (digits, aux) = prepared.extended().unwrap_or_default();
                let counts = prepared.counts()?;
                let further = match (op, input_ntt, output_ntt) {
                    (_, false, false) => 0,
                    (_, false, true) | (Op::Rotate, true, false) => 2 * l,
                    (_, true, _) => 3 * l,
                };
                let domain = |ntt| if ntt { "ntt" } else { "coeff" };
                rows.push(row(json!({
                    "operation": name, "input": domain(input_ntt), "output": domain(output_ntt),
                    "l": l, "k": k, "omega": omega, "omega2": digits, "aux_primes": aux,
                    "ours_ntt": counts.ntt, "paper_ntt": (omega + 2 * digits) * aux + further,
                    "ours_mul": counts.mul + counts.convert_mac, "ours_correction": counts.correction,
                })));
            }
        }
    }
    let said = [
        "aux_primes is what a bound with whole primes in each digit demands, not the paper's estimate r, which is too small",
        "the paper's count of products omits the 2 (l + k) r of the way from E to QP; ours_mul has them",
    ];
    Ok(Outcome { rows, deviations: said.map(str::to_owned).to_vec(), figure: None })
}

/// A switch of the linear method's paper: primes of 40 bits, P of one prime of 55.
pub(super) fn request(log_n: u32, scheme: &str, l: usize, method: Method) -> Request {
    let mut q = vec![40; l];
    if scheme == "ckks" {
        q[0] = 55;
    }
    let slots = scheme != "bfv";
    Request {
        shape: Shape { op: Op::Relin, input_ntt: slots, output_ntt: slots, batch: 1 },
        error_multiple: if scheme == "bgv" { "65537" } else { "1" }.to_owned(),
        ..rotation(log_n, Chain::Widths { q, p: vec![55] }, method)
    }
}

/// Table II of linear key switching.
pub(super) fn linear_table2(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    for l in [4usize, 8, 16, 32] {
        for scheme in ["bfv", "bgv", "ckks"] {
            runner.note(&format!("{scheme}, l = {l}"));
            let baseline = Prepared::new(&request(11, scheme, l, Method::Bv))?.counts()?;
            let linear = Request { second: enough(l + 1), ..request(11, scheme, l, Method::Bv) };
            let linear = Prepared::new(&linear)?;
            let counts = linear.counts()?;
            let (paper, corrected, paper_baseline) = match scheme {
                "bfv" => (6 * l + 4, 6 * l + 4, (l + 2) * (l + 1)),
                "bgv" => (8 * l + 4, 9 * l + 4, l * l + 7 * l + 2),
                _ => (8 * l + 4, 9 * l + 4, l * (l + 1) + 5 * l),
            };
            rows.push(row(json!({
                "scheme": scheme, "l": l, "aux_primes": linear.extended().map(|(_, aux)| aux),
                "ours_linear_ntt": counts.ntt, "paper_linear_ntt": paper, "corrected_linear_ntt": corrected,
                "ours_baseline_ntt": baseline.ntt, "paper_baseline_ntt": paper_baseline,
                "ours_linear_mul": counts.mul + counts.convert_mac, "paper_linear_mul": 4 * l * (l + 1),
                "ours_baseline_mul": baseline.mul + baseline.convert_mac, "paper_baseline_mul": 2 * l * (l + 1),
                "ours_linear_key_words": linear.key_bytes() / 8 / linear.params().n(),
                "paper_linear_key_words": 4 * l * (l + 1),
            })));
        }
    }
    let said = [
        "for bgv and ckks the paper's own algorithm takes 9 l + 4 transforms, not 8 l + 4: corrected_linear_ntt",
        "the paper's primes for ckks, the first of 55 bits, need three primes of 60 bits in E, where it takes two",
        "the paper counts the products with the key alone; ours_*_mul has those of base conversion and of the division by P as well",
        "our baseline takes no transform of a digit's own prime, and l fewer than the paper's algorithm",
    ];
    Ok(Outcome { rows, deviations: said.map(str::to_owned).to_vec(), figure: None })
}

/// (log N, scheme, l, primes in a key digit and in E of the best double decomposition, its milliseconds, those of the
/// baseline and of the linear method) on one A100.
pub(super) type Published = (u32, &'static str, usize, usize, usize, [f64; 3]);

#[rustfmt::skip]
pub(super) const TABLE8: [Published; 27] = [
    (14, "bgv", 32, 11, 9, [12.12, 13.19, 8.07]), (14, "bgv", 24, 13, 10, [8.68, 9.18, 5.48]),
    (14, "bgv", 16, 9, 8, [6.16, 6.91, 3.60]), (14, "bgv", 8, 9, 8, [3.19, 2.98, 2.14]),
    (14, "ckks", 32, 11, 9, [11.78, 15.45, 7.82]), (14, "ckks", 24, 13, 10, [8.55, 10.00, 5.32]),
    (14, "ckks", 16, 9, 8, [6.05, 6.68, 3.45]), (14, "ckks", 8, 9, 8, [3.13, 2.84, 1.99]),
    (14, "bfv", 8, 5, 5, [2.86, 2.33, 1.45]),
    (15, "bgv", 32, 5, 5, [18.51, 27.41, 16.43]), (15, "bgv", 24, 7, 6, [12.46, 17.34, 10.44]),
    (15, "bgv", 16, 7, 6, [8.19, 9.25, 6.01]), (15, "bgv", 8, 5, 5, [4.23, 4.31, 3.12]),
    (15, "ckks", 32, 5, 5, [18.24, 26.65, 16.13]), (15, "ckks", 24, 7, 6, [12.16, 16.57, 10.26]),
    (15, "ckks", 16, 7, 6, [8.00, 8.61, 5.80]), (15, "ckks", 8, 5, 5, [4.02, 3.95, 2.95]),
    (15, "bfv", 15, 4, 4, [6.91, 7.65, 4.36]),
    (16, "bgv", 32, 11, 9, [34.62, 49.62, 33.12]), (16, "bgv", 24, 5, 5, [20.17, 30.04, 21.36]),
    (16, "bgv", 16, 6, 6, [12.55, 15.26, 11.99]), (16, "bgv", 8, 5, 5, [6.00, 5.68, 4.99]),
    (16, "ckks", 32, 11, 9, [29.53, 47.94, 32.89]), (16, "ckks", 24, 13, 10, [20.96, 28.53, 21.15]),
    (16, "ckks", 16, 6, 6, [13.81, 14.34, 11.75]), (16, "ckks", 8, 5, 5, [5.88, 5.06, 4.80]),
    (16, "bfv", 34, 5, 5, [36.07, 54.62, 32.96]),
];

/// Primes in a key digit of the double decomposition where the paper has no row.
const SECURE_KEY_PRIMES: usize = 7;

/// Table VIII of linear key switching, on one thread of a CPU or on a card.
pub(super) fn linear_table8(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    let published =
        |(log_n, scheme, l, key_primes, aux, ms): Published| (log_n, scheme, l, key_primes, Some((aux, ms)));
    let secure = linear::largest_secure().map(|(log_n, scheme, l)| (log_n, scheme, l, SECURE_KEY_PRIMES, None));
    for (log_n, scheme, l, key_primes, paper) in TABLE8.into_iter().map(published).chain(secure) {
        if runner.quick() && (log_n > 14 || l > 16 || scheme == "ckks") {
            continue;
        }
        let degree = runner.degree(log_n);
        let single = request(degree, scheme, l, Method::Bv);
        let double = Request { second: enough((l + 1).div_ceil(key_primes)), ..single.clone() };
        let linear = Request { second: enough(l + 1), ..single.clone() };
        let mut two = request(degree, scheme, l, Method::Hybrid { omega: 2 });
        if let Chain::Widths { p, .. } = &mut two.chain {
            *p = vec![45; l.div_ceil(2)];
        }
        let all: Vec<Prepared> = [double, single, linear, two].iter().map(Prepared::new).collect::<Result<_, _>>()?;
        let label = format!("N = 2^{log_n}, {scheme}, l = {l}");
        let Some(ms) = runner.slots_milliseconds(&label, &all.iter().collect::<Vec<_>>())? else { continue };
        let mut row = row(json!({ "log_n": log_n, "scheme": scheme, "l": l }));
        row.insert("paper_double_aux_primes".into(), json!(paper.map(|(aux, _)| aux)));
        for (i, name) in ["double", "baseline", "linear", "two_digits"].into_iter().enumerate() {
            put_ms(&mut row, &format!("ours_{name}_ms"), ms[i]);
            row.insert(format!("ours_{name}_key_bytes"), json!(all[i].key_bytes()));
            if let Some(ms) = paper.and_then(|(_, ms)| ms.get(i).copied()) {
                row.insert(format!("paper_{name}_ms"), json!(ms));
            }
            if let Some((_, aux)) = all[i].extended() {
                row.insert(format!("ours_{name}_aux_primes"), json!(aux));
            }
        }
        row.insert("security_bits".into(), json!(all[1].params().security_bits().round()));
        row.insert("secure".into(), json!(all[1].is_secure()));
        row.insert("two_digits_security_bits".into(), json!(all[3].params().security_bits().round()));
        rows.push(row);
    }
    let mut deviations = vec![
        "the paper's times are of one A100, ours of this machine's device (the CPU: one thread); all slots to slots".to_owned(),
        "rows that are not secure have less than 128 bits, and are for comparison only; rows without times of the paper have the most primes that leave 128 bits, where the paper has more".to_owned(),
        "two_digits is hybrid key switching with a P of half of q, which the paper does not compare with; its P costs security".to_owned(),
        "the paper's bound for the primes of E forgets the sum over digits and the sign; ours has both".to_owned(),
    ];
    if runner.quick() {
        deviations.push("--quick: N = 2^14, bgv and bfv, at most 16 primes".to_owned());
    }
    deviations.append(&mut runner.deviations);
    Ok(Outcome { rows, deviations, figure: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::sets::SETS;
    use crate::reproduce::{Item, Settings};

    fn rows(id: &str) -> Vec<Row> {
        let settings = Settings { quick: true, profile: None, device: Default::default() };
        Item::find(id).unwrap().run(&settings, &mut |_| {}).unwrap().rows
    }

    #[test]
    fn transforms_of_extended_rings_are_as_few_as_the_papers_say() {
        let rows = [rows("perspective-table4"), rows("linear-table2")];
        assert_eq!(rows.each_ref().map(Vec::len), [32, 12]);
        for row in &rows[0] {
            assert!(row["ours_ntt"].as_u64() <= row["paper_ntt"].as_u64(), "{row:?}");
        }
        for row in &rows[1] {
            // A first prime of 55 bits leaves two primes of E short.
            let wide = row["scheme"] == "ckks";
            assert_eq!(row["aux_primes"], if wide { 3 } else { 2 }, "{row:?}");
            if !wide {
                assert!(row["ours_linear_ntt"].as_u64() <= row["corrected_linear_ntt"].as_u64(), "{row:?}");
                assert_eq!(row["ours_linear_key_words"], row["paper_linear_key_words"]);
            }
        }
    }

    #[test]
    fn the_published_extended_ring_is_wrong_and_the_corrected_one_is_not() {
        let set = &SETS[34];
        let chain = Chain::Widths { q: set.q_bits(), p: set.p_bits() };
        let base = rotation(10, chain, Method::Hybrid { omega: set.omega });
        let [published, corrected] = published_and_corrected(set, &base).unwrap();
        let judge = |request| {
            let prepared = Prepared::new(&request).unwrap();
            (prepared.extended().unwrap().1, wrong(&prepared).unwrap())
        };
        let (aux, count) = judge(published);
        assert!(aux == 3 && count > 1000, "{count} of 1024 are wrong with {aux} primes");
        let (aux, count) = judge(corrected);
        assert!(aux >= 3 && count == 0, "{count} of 1024 are wrong with {aux} primes");
        assert!(published_and_corrected(&SETS[0], &base).is_none());
    }

    #[test]
    fn sizes_of_expanded_keys_are_the_papers() {
        for row in rows("levelaware-table5") {
            let [formula, paper] = ["formula_key_gb", "paper_key_gb"].map(|key| row[key].as_f64().unwrap());
            assert!((formula - paper).abs() < 0.0101, "{row:?}");
            assert!((row["ours_key_gb"].as_f64().unwrap() - formula).abs() < 1e-4, "{row:?}");
        }
        assert_eq!(rows("levelaware-table2").len(), 2);
        let map = rows("planner-index-map");
        assert!(
            map.iter().all(|row| row["ours_chosen_transforms"].as_f64() <= row["ours_level-aware_transforms"].as_f64())
        );
    }
}
