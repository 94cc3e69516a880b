//! Bad input to every scheme: a typed error of the expected kind, with its numbers and a remedy, and never a panic.

use std::sync::Arc;

use synchromesh::ckks::Mode;
use synchromesh::exact::{self, Rotations, Scheme};
use synchromesh::rlwe::ring::prime::is_prime;
use synchromesh::rlwe::{EvaluationKeys, PublicKey, Randomness, SecretKey, Security};
use synchromesh::{Error, Result, bfv, bgv, ckks};

const LOG_N: u32 = 11;

/// Checks the kind of an error, and that it has something to say and to advise.
fn refused<T>(result: Result<T>, kind: &str, numbers: &[&str]) {
    let Err(error) = result else { panic!("accepted what should be refused as {kind}") };
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    assert!(numbers.iter().all(|n| text.contains(n)), "{text:?} lacks one of {numbers:?}");
    assert!(!error.remedy().is_empty(), "{text}");
}

fn exact_literal() -> exact::ParamsLiteral {
    exact::ParamsLiteral {
        log_n: LOG_N,
        t: "12289".to_owned(),
        q_bits: vec![50, 50, 50],
        p_bits: vec![50, 51],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 2,
        security: Security::Insecure,
        primes: None,
    }
}

fn ckks_literal(mode: Mode) -> ckks::ParamsLiteral {
    ckks::ParamsLiteral {
        log_n: LOG_N,
        log_scale: 40,
        q_bits: vec![55, 40, 40],
        p_bits: vec![50, 50],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 2,
        log_scales: vec![],
        mode,
        security: Security::Insecure,
        primes: None,
    }
}

/// Each case: the kind, numbers that must be named, and the change to a good literal.
type ExactCase = (&'static str, &'static [&'static str], fn(&mut exact::ParamsLiteral));

const EXACT_CASES: &[ExactCase] = &[
    ("degree", &["2^9"], |l| l.log_n = 9),
    ("degree", &["2^19"], |l| l.log_n = 19),
    ("switch_plan", &["0 digits"], |l| l.omega = 0),
    ("switch_plan", &["4 digits"], |l| l.omega = 4),
    ("params", &[], |l| l.level_limbs = vec![2, 1]),
    ("params", &[], |l| l.level_limbs = vec![1, 4]),
    ("insecure_modulus", &["2^11", "53"], |l| l.security = Security::Bits128),
    ("insecure_degree", &["2^10"], |l| (l.log_n, l.security) = (10, Security::Bits192)),
    ("plain_modulus_too_small", &["1"], |l| l.t = "1".to_owned()),
    ("plain_modulus_not_a_number", &["4 characters"], |l| l.t = "many".to_owned()),
    ("plain_modulus_too_wide", &["256"], |l| l.t = format!("0x1{}", "0".repeat(65))),
];

/// Primes listed by hand; each case starts from those that the library would choose.
fn bad_primes<S: Scheme>() {
    let good = exact::Params::<S>::new(exact_literal()).unwrap().literal().clone();
    let lists = good.primes.clone().unwrap();
    let with = |change: &dyn Fn(&mut exact::PrimeLists)| {
        let mut changed = lists.clone();
        change(&mut changed);
        exact::Params::<S>::new(exact::ParamsLiteral { primes: Some(changed), ..good.clone() })
    };
    let composite = (1..).map(|k| lists.q[0] - (k << (LOG_N + 1))).find(|&q| !is_prime(q)).unwrap();
    refused(with(&|l| l.q[0] = composite), "modulus", &[&composite.to_string(), "prime"]);
    refused(with(&|l| l.q[0] -= 2), "modulus", &["1 mod 2N"]);
    refused(with(&|l| l.q[1] = l.q[0]), "repeated_modulus", &[&lists.q[0].to_string()]);
    refused(with(&|l| l.p[0] = l.q[0]), "repeated_modulus", &[&lists.q[0].to_string()]);
    refused(with(&|l| l.q[0] = 1), "params", &["bits"]);
    refused(with(&|l| l.q[0] = 0), "params", &["bits"]);
    refused(with(&|l| l.q.truncate(2)), "params", &["[50, 50]"]);
    refused(with(&|l| l.aux.push(lists.q[0])), "params", &["auxiliary"]);

    // t = 3 q_0 shares a factor with a prime listed; a t that is a prime of the chain is avoided when choosing.
    let t = (u128::from(lists.q[0]) * 3).to_string();
    let shared = exact::ParamsLiteral { t: t.clone(), ..good.clone() };
    refused(exact::Params::<S>::new(shared), "shared_factor", &[&t, &lists.q[0].to_string()]);
    let avoided = exact::ParamsLiteral { t: lists.q[0].to_string(), primes: None, ..good.clone() };
    let avoided = exact::Params::<S>::new(avoided).unwrap();
    assert!(!avoided.literal().primes.as_ref().unwrap().q.contains(&lists.q[0]));
}

fn bad_literals<S: Scheme>() {
    for (kind, numbers, change) in EXACT_CASES {
        let mut literal = exact_literal();
        change(&mut literal);
        refused(exact::Params::<S>::new(literal), kind, numbers);
    }
    bad_primes::<S>();
}

#[test]
fn bfv_refuses_bad_parameters() {
    bad_literals::<bfv::Bfv>();
}

#[test]
fn bgv_refuses_bad_parameters() {
    bad_literals::<bgv::Bgv>();
}

struct Exact<S: Scheme> {
    context: Arc<exact::Context<S>>,
    secret: SecretKey,
    public: PublicKey,
    keys: Arc<EvaluationKeys>,
    randomness: Randomness,
}

impl<S: Scheme> Exact<S> {
    fn new(literal: exact::ParamsLiteral, seed: u64) -> Self {
        let context = exact::Context::new(exact::Params::new(literal).unwrap()).unwrap();
        let mut randomness = Randomness::insecure_from_number(seed);
        let (secret, public) = context.generate_keys(&mut randomness).unwrap();
        let keys = context.generate_evaluation_keys(&secret, &Rotations::by([1]), &mut randomness).unwrap();
        Self { context, secret, public, keys: Arc::new(keys), randomness }
    }

    fn encrypt(&mut self, values: &[i64]) -> exact::Ciphertext<S> {
        let plaintext = self.context.encode(values).unwrap();
        self.context.encrypt(&self.public, &plaintext, &mut self.randomness).unwrap()
    }

    fn evaluator(&self) -> exact::Evaluator<S> {
        exact::Evaluator::new(&self.context, Some(Arc::clone(&self.keys)))
    }
}

fn bad_operands<S: Scheme>() {
    let mut f = Exact::<S>::new(exact_literal(), 1);
    let (x, evaluator) = (f.encrypt(&[1, 2, 3]), f.evaluator());

    // Levels.
    let lowest = evaluator.mod_switch_to(&x, 0).unwrap();
    refused(evaluator.mod_switch(&lowest), "level", &["level 1", "level 0 of 2"]);
    refused(evaluator.mod_switch_to(&lowest, 1), "level", &["0 of 2"]);
    refused(evaluator.mod_switch_to(&x, usize::MAX), "level", &[]);
    let plaintext = f.context.encode(&[1i64]).unwrap();
    refused(f.context.encrypt_at(&f.public, &plaintext, 3, &mut f.randomness), "level", &["level 3"]);

    // Keys that are missing, or of others.
    refused(evaluator.rotate_rows(&x, 2), "missing_key", &["[2]"]);
    refused(evaluator.rotate_columns(&x), "missing_key", &["swap"]);
    refused(evaluator.rotate_rows_many(&x, &[1, 2]), "missing_key", &["[2]"]);
    refused(evaluator.automorphism(&x, 2), "missing_key", &["X^2"]);
    let bare = exact::Evaluator::new(&f.context, None);
    refused(bare.mul(&x, &x), "no_keys", &["relinearisation"]);
    refused(bare.rotate_rows(&x, 1), "no_keys", &["rotation"]);
    let (other, other_public) = f.context.generate_keys(&mut f.randomness).unwrap();
    refused(f.context.decrypt(&other, &x), "keys_differ", &[]);
    let foreign = f.context.encrypt(&other_public, &plaintext, &mut f.randomness).unwrap();
    refused(evaluator.add(&x, &foreign), "keys_differ", &[]);
    refused(evaluator.mul(&x, &foreign), "keys_differ", &[]);
    refused(evaluator.rotate_rows(&foreign, 1), "keys_differ", &[]);

    // Parameters and plaintexts of others.
    let mut g = Exact::<S>::new(exact::ParamsLiteral { t: "40961".to_owned(), ..exact_literal() }, 2);
    let y = g.encrypt(&[1]);
    refused(evaluator.add(&x, &y), "params_differ", &[]);
    refused(evaluator.neg(&y), "params_differ", &[]);
    refused(f.context.decrypt(&g.secret, &y), "params_differ", &[]);
    refused(f.context.noise_budget(&y), "params_differ", &[]);
    refused(evaluator.add_plain(&x, &g.context.encode(&[1i64]).unwrap()), "plain_modulus_differs", &["40961"]);

    // Values.
    let many = vec![1i64; 2049];
    refused(f.context.encode(&many), "too_many_values", &["2049", "2048"]);
    refused(f.context.encode_coefficients(&many), "too_many_values", &["2049", "2048"]);
    let even = Exact::<S>::with_no_slots();
    refused(even.encode(&[1i64]), "no_slots", &["1048577", "2^11"]);
    refused(even.galois_element(1), "no_slots", &[]);

    // Components and noise.
    let product = evaluator.mul_no_relin(&x, &x).unwrap();
    refused(evaluator.mul(&product, &x), "components", &["3"]);
    refused(evaluator.rotate_rows(&product, 1), "components", &["3"]);
    refused(evaluator.relinearize(&x), "components", &["2"]);
    let mut y = x;
    let noisy = (0..8).map(|_| evaluator.square(&y).map(|z| y = z)).find(Result::is_err);
    refused(noisy.expect("eight squarings do not fit"), "noise", &["2^-128"]);
}

impl<S: Scheme> Exact<S> {
    /// A context whose t is no prime.
    fn with_no_slots() -> Arc<exact::Context<S>> {
        let literal = exact::ParamsLiteral { t: "1048577".to_owned(), ..exact_literal() };
        exact::Context::new(exact::Params::new(literal).unwrap()).unwrap()
    }
}

#[test]
fn bfv_refuses_bad_operands() {
    bad_operands::<bfv::Bfv>();
}

#[test]
fn bgv_refuses_bad_operands() {
    bad_operands::<bgv::Bgv>();
}

#[test]
fn ckks_refuses_bad_parameters() {
    type Case = (&'static str, fn(&mut ckks::ParamsLiteral));
    let cases: [Case; 12] = [
        ("params", |l| l.log_n = 9),
        ("params", |l| l.log_n = u32::MAX),
        ("params", |l| l.log_scale = 14),
        ("params", |l| l.q_bits.clear()),
        ("params", |l| l.q_bits[1] = 62),
        ("params", |l| l.q_bits[2] = 41),
        ("params", |l| l.q_bits[0] = 41),
        ("params", |l| l.p_bits[0] = 19),
        ("params", |l| l.level_limbs = vec![3, 2]),
        ("switch_plan", |l| l.omega = 0),
        ("switch_plan", |l| l.omega = 9),
        ("insecure_modulus", |l| l.security = Security::Bits128),
    ];
    for (kind, change) in cases {
        let mut literal = ckks_literal(Mode::Auto);
        change(&mut literal);
        refused(ckks::Params::new(literal), kind, &[]);
    }
    let good = ckks::Params::new(ckks_literal(Mode::Auto)).unwrap().literal().clone();
    let lists = good.primes.clone().unwrap();
    let with = |change: &dyn Fn(&mut ckks::Primes)| {
        let mut changed = lists.clone();
        change(&mut changed);
        ckks::Params::new(ckks::ParamsLiteral { primes: Some(changed), ..good.clone() })
    };
    let composite = (1..).map(|k| lists.q[0] - (k << (LOG_N + 1))).find(|&q| !is_prime(q)).unwrap();
    refused(with(&|l| l.q[0] = composite), "modulus", &[&composite.to_string()]);
    refused(with(&|l| l.q[0] -= 2), "modulus", &["1 mod 2N"]);
    refused(with(&|l| l.p[1] = l.p[0]), "repeated_modulus", &[&lists.p[0].to_string()]);
    refused(with(&|l| l.q[0] = 0), "params", &["55"]);
}

#[test]
fn ckks_refuses_bad_operands() {
    let context = ckks::Context::new(ckks::Params::new(ckks_literal(Mode::Auto)).unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(3);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let keys = context.generate_evaluation_keys(&secret, &Rotations::by([1]), &mut randomness).unwrap();
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));

    // Values: not finite, above the bound, too many; bounds that are no bounds.
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        refused(context.encode(&[0.0, value]), "not_finite", &["1"]);
    }
    refused(context.encode(&[0.5, 1.5]), "above_declared_bound", &["bound 1"]);
    for bound in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(context.encode_bounded(&[0.0], bound), "bound_out_of_range", &[]);
    }
    refused(context.encode(&vec![0.0; 1025]), "too_many_values", &["1025", "1024"]);

    let plaintext = context.encode(&[0.5, -0.25]).unwrap();
    let x = context.encrypt(&public, &plaintext, &mut randomness).unwrap();
    refused(context.encrypt_at(&public, &plaintext, 3, &mut randomness), "level", &["level 3"]);
    let lowest = evaluator.mod_switch_to(&x, 0).unwrap();
    refused(evaluator.mod_switch(&lowest), "level", &["0 of 2"]);
    refused(evaluator.mod_switch_to(&lowest, 1), "level", &["0 of 2"]);
    refused(evaluator.mul(&lowest, &x), "level", &["0 of 2"]);
    refused(evaluator.mul_plain(&lowest, &plaintext), "level", &["0 of 2"]);
    for c in [f64::NAN, f64::INFINITY] {
        refused(evaluator.mul_scalar(&x, c), "not_finite", &[]);
        refused(evaluator.add_scalar(&x, c), "not_finite", &[]);
    }

    refused(evaluator.rotate(&x, 2), "missing_key", &["[2]"]);
    refused(evaluator.conjugate(&x), "missing_key", &["conjugate"]);
    let bare = ckks::Evaluator::new(&context, None);
    refused(bare.mul(&x, &x), "no_keys", &["multiplication"]);
    let (other, other_public) = context.generate_keys(&mut randomness).unwrap();
    refused(context.decrypt(&other, &x), "keys_differ", &[]);
    let foreign = context.encrypt(&other_public, &plaintext, &mut randomness).unwrap();
    refused(evaluator.add(&x, &foreign), "keys_differ", &[]);
    refused(evaluator.rotate(&foreign, 1), "keys_differ", &[]);

    // What outgrows the modulus, message or noise.
    let mut y = x;
    let large = (0..40).map(|_| evaluator.mul_scalar(&y, 1024.0).map(|z| y = z)).find(Result::is_err);
    refused(large.expect("2^400 does not fit"), "noise", &["2^-128"]);
}

#[test]
fn scales_that_differ_are_refused_in_manual_mode() {
    let context = ckks::Context::new(ckks::Params::new(ckks_literal(Mode::Manual)).unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(4);
    let (_, public) = context.generate_keys(&mut randomness).unwrap();
    let evaluator = ckks::Evaluator::new(&context, None);
    let x = context.encrypt(&public, &context.encode(&[0.5]).unwrap(), &mut randomness).unwrap();
    let square = evaluator.mul_no_relin(&x, &x).unwrap();
    refused(evaluator.add(&square, &x), "scale_mismatch", &["2^80", "2^40"]);
    // Scales that print alike and differ in the last place are different scales.
    let rescaled = evaluator.rescale(&square).unwrap();
    assert!((rescaled.log2_scale() - x.log2_scale()).abs() < 1e-3);
    refused(evaluator.add(&rescaled, &x), "scale_mismatch", &[]);
    let error = Error::ScaleMismatch { left: 80.0, right: 40.0 };
    assert!(error.remedy().contains("rescale"));
}
