//! Tables 1, 4 and 5: operations of a BFV product and of key switches, by formula and counted, and the sizes of keys.

use std::sync::Arc;

use serde_json::json;
use synchromesh::bfv::{Ciphertext, Context, Encryption, Evaluator, Multiplication, Params, ParamsLiteral, Rotations};
use synchromesh::bgv;
use synchromesh::cost::Op;
use synchromesh_ring::{Counting, Counts, Cpu, IndexSet};
use synchromesh_rlwe::{EvaluationKeys, Noise, PublicKey, Randomness, Security, SwitchPlan};

use super::super::runner::{relinearisation, row};
use super::super::{Outcome, Row, Runner};
use synchromesh_bench::Error;
use synchromesh_bench::key_switch::{Chain, Method, Prepared};

type Device = Counting<Cpu>;

/// At degree 2^10, `limbs` primes of 50 bits in `omega` digits.
fn literal(limbs: usize, omega: usize) -> ParamsLiteral {
    ParamsLiteral {
        log_n: 10,
        t: "65537".to_owned(),
        q_bits: vec![50; limbs],
        p_bits: vec![60; limbs.div_ceil(omega)],
        level_limbs: vec![],
        schedule: Default::default(),
        omega,
        security: Security::Insecure,
        primes: None,
    }
}

/// Keys and inputs for products whose operations are counted.
struct Counted {
    context: Arc<Context<Device>>,
    keys: Arc<EvaluationKeys<Device>>,
    public: PublicKey<Device>,
    randomness: Randomness,
    security_bits: f64,
}

impl Counted {
    /// At degree 2^10, with `limbs` primes of 50 bits and `omega` digits.
    fn new(limbs: usize, omega: usize) -> Result<Self, Error> {
        let params = Params::new(literal(limbs, omega))?;
        let security_bits = params.rlwe().security_bits();
        let cpu = Cpu::open(Arc::clone(params.rlwe().ring()))?;
        let context = Context::with_backend(params, Counting::new(cpu))?;
        let mut randomness = Randomness::insecure_from_number(2021);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let keys = Arc::new(context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?);
        Ok(Self { context, keys, public, randomness, security_bits })
    }

    /// A ciphertext, said to err by 2^`log2`.
    fn input(&mut self, how: Encryption, log2: f64) -> Result<Ciphertext<Device>, Error> {
        let top = self.context.params().top_level();
        let plaintext = self.context.encode(&[1u64, 2, 3])?;
        let fresh = self.context.encrypt_by(how, &self.public, &plaintext, top, &mut self.randomness)?;
        let noise = Noise::at_most(log2);
        let inner = fresh.inner().duplicate(self.context.rlwe())?.assume_noise(noise);
        Ok(Ciphertext::from_parts(self.context.params(), inner, ())?)
    }

    /// Counts of one product without relinearisation; none where the certificate refuses it.
    fn product(&mut self, how: Multiplication, log2: f64) -> Result<Option<(Ciphertext<Device>, Counts)>, Error> {
        let original = how.tensor == Multiplication::ORIGINAL.tensor;
        let encryption = if original { Encryption::ORIGINAL } else { Encryption::NEW };
        let (x, y) = (self.input(encryption, log2)?, self.input(encryption, log2)?);
        let evaluator = Evaluator::new(&self.context, Some(Arc::clone(&self.keys))).with_variant(how);
        // The first makes the constants.
        match evaluator.mul_no_relin(&x, &y) {
            Err(error) if error.kind() == "noise" => return Ok(None),
            other => drop(other?),
        }
        let (product, counts) = self.context.rlwe().backend().measure(|| evaluator.mul_no_relin(&x, &y));
        Ok(Some((product?, counts)))
    }
}

/// Table 1: transforms and multiplications of a product in BFV, without relinearisation.
pub(in super::super) fn table1(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    for k in [2usize, 4, 8, 12] {
        runner.note(&format!("{k} primes"));
        let mut counted = Counted::new(k, 1)?;
        let security_bits = counted.security_bits;
        let mut put = |variant: &str, l: usize, counts: Counts, ntt: usize, mul: usize, doubles: usize| {
            rows.push(row(json!({
                "variant": variant, "k": k, "l": l,
                "ours_ntt": counts.ntt, "paper_ntt": ntt,
                "ours_mul": counts.mul + counts.convert_mac, "paper_mul": mul,
                "ours_correction": counts.correction, "paper_doubles": doubles,
                "security_bits": security_bits,
            })));
        };
        for (name, how) in [("hps", Multiplication::HPS), ("new", Multiplication::NEW)] {
            let Some((_, counts)) = counted.product(how, 20.0)? else { continue };
            match name {
                "hps" => put(name, k, counts, 14 * k + 7, 10 * k * k + 26 * k + 9, 10 * k + 3),
                _ => put(name, k, counts, 14 * k, 9 * k * k + 15 * k, 7 * k),
            }
        }
        let mut last = k;
        for log2 in (0..50 * k).step_by(10) {
            // The level of a product is where a descending one stays.
            let Some((product, _)) = counted.product(Multiplication::DESCENDING, log2 as f64)? else { break };
            let l = counted.context.params().rlwe().level(product.level())?.len();
            if l < last
                && let Some((_, counts)) = counted.product(Multiplication::LEVELED, log2 as f64)?
            {
                last = l;
                let mul = 4 * k * l + 5 * l * l + 2 * k + 18 * l;
                put("leveled", l, counts, 14 * l, mul, 2 * k + 5 * l);
            }
        }
    }
    for (l, omega) in [(4, 1), (6, 2), (6, 3), (12, 3)] {
        runner.note(&format!("relinearised, {l} primes, {omega} digits"));
        rows.extend(relinearised(l, omega)?);
    }
    let deviations = vec![
        "relinearised rows are the totals of section 5.2 with its slips put right: 14 l + (2 + d)(l + k) for BFV, 4 l + 4 + (2 + d)(l + k) for BGV with its modulus switch; the first two components of a BFV product stay in slots until the key switch takes them along, 2 l transforms fewer".into(),
        "operations are counted per N coefficients on degree 2^10; corrections of overflows are one a coefficient and conversion, the paper counts a double operation for each prime".into(),
        "the leveled product takes the merged switch of remark 3.4, which the paper's count leaves out".into(),
    ];
    Ok(Outcome { rows, deviations, figure: None })
}

/// Transforms of products with their relinearisation at l primes, in BFV and in BGV with one level more.
fn relinearised(l: usize, omega: usize) -> Result<[Row; 2], Error> {
    let mut counted = Counted::new(l, omega)?;
    let (x, y) = (counted.input(Encryption::NEW, 20.0)?, counted.input(Encryption::NEW, 20.0)?);
    let evaluator = Evaluator::new(&counted.context, Some(Arc::clone(&counted.keys)));
    evaluator.mul(&x, &y)?;
    let (product, bfv) = counted.context.rlwe().backend().measure(|| evaluator.mul(&x, &y));
    product?;
    let params = bgv::Params::new(literal(l + 1, omega))?;
    let security_bits = params.rlwe().security_bits();
    let k = params.plan().special.len();
    let cpu = Cpu::open(Arc::clone(params.rlwe().ring()))?;
    let context = bgv::Context::managed_on(params, Counting::new(cpu), bgv::Management::STATIC)?;
    let mut randomness = Randomness::insecure_from_number(2021);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?;
    let x = context.encrypt(&public, &context.encode(&[1u64, 2, 3])?, &mut randomness)?;
    let evaluator = bgv::Evaluator::new(&context, Some(Arc::new(keys)));
    evaluator.mul(&x, &x)?;
    let (product, bgv) = context.rlwe().backend().measure(|| evaluator.mul(&x, &x));
    let level = product?.level();
    let digits = |plan: &SwitchPlan, primes: &IndexSet| {
        plan.digits.iter().filter(|d| !d.intersection(primes).is_empty()).count()
    };
    let of_bgv = digits(context.params().plan(), context.params().rlwe().level(level)?);
    let of_bfv = digits(counted.context.params().plan(), counted.context.params().rlwe().q());
    let row_of = |variant: &str, d: usize, k: usize, counts: Counts, ntt: usize, security_bits: f64| {
        row(json!({
            "variant": variant, "k": k, "l": l, "digits": d, "ours_ntt": counts.ntt, "paper_ntt": ntt,
            "security_bits": security_bits,
        }))
    };
    let bfv_k = counted.context.params().plan().special.len();
    Ok([
        row_of("new, relinearised", of_bfv, bfv_k, bfv, 14 * l + (2 + of_bfv) * (l + bfv_k), counted.security_bits),
        row_of("bgv, relinearised", of_bgv, k, bgv, 4 * l + 4 + (2 + of_bgv) * (l + k), security_bits),
    ])
}

/// A switch from l primes by a method with k special primes.
struct Switch {
    name: &'static str,
    method: Method,
    l: usize,
    k: usize,
}

/// Single-prime digits, one digit and hybrids.
fn switches() -> Vec<Switch> {
    let mut switches = Vec::new();
    for l in [4usize, 6, 12] {
        switches.push(Switch { name: "bv", method: Method::Bv, l, k: 1 });
        switches.push(Switch { name: "ghs", method: Method::Ghs, l, k: l });
        for omega in [2, 3] {
            switches.push(Switch { name: "hybrid", method: Method::Hybrid { omega }, l, k: l.div_ceil(omega) });
        }
    }
    switches
}

fn prepared(switch: &Switch, scheme: &str, log_n: u32) -> Result<Prepared, Error> {
    let mut request = relinearisation(log_n, vec![45; switch.l], vec![46; switch.k], 1);
    request.chain = Chain::Widths { q: vec![45; switch.l], p: vec![46; switch.k] };
    request.method = switch.method;
    request.error_multiple = if scheme == "bfv" { "1" } else { "65537" }.to_owned();
    request.unfolded = true;
    // A switch with one addend: the tables leave the second out.
    request.shape.op = Op::Rotate;
    // BFV's ciphertexts are kept as coefficients by the paper, BGV's as slots.
    (request.shape.input_ntt, request.shape.output_ntt) = (scheme == "bgv", scheme == "bgv");
    Prepared::new(&request)
}

/// Table 4: transforms and multiplications of key switches.
pub(in super::super) fn table4(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    for switch in switches() {
        let &Switch { name, l, k, .. } = &switch;
        for scheme in ["bgv", "bfv"] {
            runner.note(&format!("{scheme}, {name}, l = {l}"));
            let prepared = prepared(&switch, scheme, 11)?;
            let counts = prepared.counts()?;
            let d = prepared.plan().digits.len();
            let bgv = scheme == "bgv";
            let (ntt, mul) = match name {
                "bv" => (l * (l + if bgv { 1 } else { 2 }), 2 * l * l),
                "ghs" => (6 * l, l * (3 * l + if bgv { 13 } else { 9 })),
                _ if bgv => (3 * l + k * (d * d + 2), (l + 2 * k + 2 * d + 7) * l + 4 * k),
                _ => (2 * l + k * (d * d + 3), (l + 2 * k + 2 * d + 5) * l + 2 * k),
            };
            rows.push(row(json!({
                "scheme": scheme, "method": name, "l": l, "k": k, "digits": d,
                "ours_ntt": counts.ntt, "paper_ntt": ntt,
                "ours_mul": counts.mul + counts.convert_mac, "paper_mul": mul,
                "ours_correction": counts.correction,
                "security_bits": prepared.params().security_bits(),
            })));
        }
    }
    let deviations = vec![
        "the table's transforms of BFV's hybrid, 2l + a(d^2 + 3), drop d a = l: appendix B's (2 + d)(l + a) is 3l + a(d^2 + 2), the same as BGV's".into(),
        "digits of one prime: here with one special prime, which keeps the noise small; the paper's have none".into(),
        "each is counted with its constants at run time, as the paper has them; key switching here folds them into the key, see perspective-table2".into(),
    ];
    Ok(Outcome { rows, deviations, figure: None })
}

/// Table 5: bits of key-switching keys.
pub(in super::super) fn table5(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    for switch in switches() {
        let &Switch { name, l, k, .. } = &switch;
        runner.note(&format!("{name}, l = {l}"));
        let prepared = prepared(&switch, "bfv", 14)?;
        let params = prepared.params();
        let d = prepared.plan().digits.len();
        let log = |set| params.ring().log2(set);
        let log_qp = log(params.q()) + log(params.p());
        // 2 N l log Q of BV, 2 N log QP of GHS, 2 N d log QP of hybrids.
        let bits = 2.0 * params.n() as f64 * d as f64 * if name == "bv" { log(params.q()) } else { log_qp };
        rows.push(row(json!({
            "method": name, "l": l, "k": k, "digits": d,
            "ours_in_use_bits": 8 * prepared.key_bytes(),
            "ours_residues_bits": (2.0 * params.n() as f64 * d as f64 * log_qp).ceil(),
            "paper_bits": bits.ceil(),
            "security_bits": params.security_bits(),
        })));
    }
    let deviations = vec![
        "a key in use has 64 bits a residue; one written to a file packs its residues and replaces half of them by a seed".into(),
        "digits of one prime: here with one special prime, the paper's have none".into(),
    ];
    Ok(Outcome { rows, deviations, figure: None })
}
