//! Tables of parameters: ePrint 2023/593, Table 1; the limits of ePrint 2023/1642; the moduli of ePrint 2021/204.

use crate::look_ahead::{Canonical, LookAhead, MatrixTriple};
use serde_json::json;
use synchromesh::plan::static_bgv::{NoiseModel, StaticRule};
use synchromesh::plan::{Description, SchemeName};
use synchromesh_rlwe::Security;
use synchromesh_rlwe::security::{CostModel, ESTIMATOR, SecurityLevel, closed_formula, estimate_bits, max_log_qp_for};

use super::runner::row;
use super::{Outcome, Runner};
use crate::revisiting::{self, Circuit, Published};
use synchromesh_bench::Error;

/// Widest prime of the paper's library, in bits of its size.
const WIDEST: u32 = 60;

/// ePrint 2023/593, Table 1: the numbers of primes by Algorithm 1.
pub(super) fn triples_table1(_: &mut Runner<'_>) -> Result<Outcome, Error> {
    // The smallest prime above 2^128 has 128.0 bits.
    let circuit = MatrixTriple { model: Canonical { log2_t: 128.0 }, parties: 5, dimension: 128, flood: 80.0 };
    let request = LookAhead { omega: 3, parts: 1, widest: WIDEST, narrowest: 30, security: Security::Bits128 };
    let found = request.search(&circuit)?;
    let (log_q, log_p) = (found.q as u32 * found.bits, found.p as u32 * found.bits);
    let rows = vec![row(json!({
        "ours_log_n": found.log_n,
        "paper_log_n": 15,
        "ours_bits": found.bits,
        "paper_bits": 60,
        "ours_q_primes": found.q,
        "paper_q_primes": 10,
        "ours_p_primes": found.p,
        "paper_p_primes": 4,
        "ours_log_q": log_q,
        "paper_log_q": 600,
        "ours_log_p": log_p,
        "paper_log_p": 240,
        "ours_omega": request.omega,
        "paper_omega": 3,
        "ours_switches": found.switches,
        "paper_switches": [0, 1, 1],
        "chen_log_q": 712,
        "security_bits": estimate_bits(found.log_n, log_q + log_p),
    }))];
    let deviations = [
        "the paper's noise bounds with its flooding by t 2^80, which is no security for distributed decryption: that \
         takes flooding by 2^80 times the noise",
        "the first place for a switch, after the sum of the shares, gets none: the error does not become a prime shorter",
    ];
    Ok(Outcome { rows, deviations: deviations.map(str::to_owned).to_vec(), figure: None })
}

/// The limits that ePrint 2023/1642 takes from a closed formula, beside those of the estimator.
pub(super) fn perspective_limits(_: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    for (log_n, paper) in [(14, 433u32), (15, 867), (16, 1735), (17, 3470)] {
        let most = |bits: f64| (1..1 << 13).rev().find(|&log_q| closed_formula(log_n, log_q) >= bits);
        let limit = |model| max_log_qp_for(log_n, SecurityLevel::Bits128, model);
        rows.push(row(json!({
            "log_n": log_n,
            "ours_closed_formula": most(128.0),
            "paper_limit": paper,
            "ours_estimator": limit(CostModel::ClassicalMatzov),
            "ours_estimator_quantum": limit(CostModel::QuantumLaaMosPol14),
            "closed_formula_bits": (closed_formula(log_n, paper) * 10.0).round() / 10.0,
            "security_bits": estimate_bits(log_n, paper),
        })));
    }
    let deviations = vec![
        format!("the library checks against runs of {ESTIMATOR}, not against the formula (ePrint 2022/706, section 4)"),
        "433 bits at N = 2^14 are beyond the estimator's limit of 430, and below the formula's error at 2^16 and 2^17"
            .to_owned(),
    ];
    Ok(Outcome { rows, deviations, figure: None })
}

/// The moduli of ePrint 2021/204 for product trees beside those that certificates ask for.
pub(super) fn revisiting_logq(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let published = revisiting::published(Circuit::Tree)?;
    let quick = runner.quick();
    let mut rows = Vec::new();
    for t in super::revisiting::MODULI {
        for k in 1..=if quick { 3 } else { 7 } {
            runner.note(&format!("t = {t}, a tree of depth {k}"));
            let paper = |variant: &str| {
                let own =
                    |cell: &&Published| cell.t == t && cell.k == k && cell.digits == Some(3) && cell.variant == variant;
                published.iter().find(own)
            };
            let rule = |model| StaticRule { omega: Some(3), model, ..StaticRule::new(t.to_string(), k) };
            let heuristic = NoiseModel::Heuristic { expansion: 2.0 };
            let mut cells = row(json!({ "t": t, "k": k }));
            for (scheme, variants) in [(SchemeName::Bgv, ["bgv", "bgv"]), (SchemeName::Bfv, ["new", "hps"])] {
                let name = scheme.name();
                let plan = Description { t: Some(t.to_string()), ..Description::new(scheme, k) }.plan()?;
                cells.insert(format!("ours_{name}_log_n"), json!(plan.log_n));
                cells.insert(format!("ours_{name}_log_q"), json!(plan.q_bits.iter().sum::<u32>()));
                cells.insert(format!("ours_{name}_log_qp"), json!(plan.log_qp));
                for variant in variants {
                    let cell = paper(variant);
                    cells.insert(format!("paper_{variant}_log_n"), json!(cell.map(|cell| cell.log_n)));
                    cells.insert(format!("paper_{variant}_log_q"), json!(cell.map(|cell| cell.log_q)));
                }
                cells.insert(format!("{name}_security_bits"), json!(plan.security_bits));
            }
            let log_n = paper("bgv").map_or(15, |cell| cell.log_n);
            let bits = |model| -> Result<u32, Error> { Ok(rule(model).chain(log_n)?.q_bits.iter().sum()) };
            cells.insert("ours_bgv_static_paper_noise_log_q".into(), json!(bits(heuristic)?));
            cells.insert("ours_bgv_static_certified_log_q".into(), json!(bits(NoiseModel::Certified)?));
            cells.insert("security_bits".into(), cells["bgv_security_bits"].clone());
            rows.push(cells);
        }
    }
    let mut deviations = vec![
        "ours hold for every message and for operands that depend on each other, except with probability 2^-128; the \
         paper's bounds hold on average, for independent operands"
            .to_owned(),
        "paper_bgv_log_q leaves out the prime that goes before the first product; ours and the static rule's columns \
         have it"
            .to_owned(),
    ];
    if quick {
        deviations.push("--quick: depth up to 3".to_owned());
    }
    Ok(Outcome { rows, deviations, figure: None })
}
