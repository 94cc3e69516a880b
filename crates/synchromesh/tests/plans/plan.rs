//! Plans: what they promise holds when the circuit runs on real data, and they survive their file.

use std::sync::Arc;

use synchromesh::plan::{Description, Plan, SchemeName, SchemeParams};
use synchromesh::rlwe::{PrimeSwitching, Randomness};
use synchromesh::{bfv, bgv, ckks};

fn show(plan: &Plan) {
    eprintln!(
        "{} N = 2^{} q {:?} p {:?} log QP {} ({} bits), {} key bytes\n  {}",
        plan.scheme.name(),
        plan.log_n,
        plan.q_bits,
        plan.p_bits,
        plan.log_qp,
        plan.security_bits,
        plan.key_bytes,
        plan.explain.join("\n  ")
    );
}

#[test]
fn a_planned_bgv_circuit_decrypts_and_the_plan_survives_its_file() {
    let mut description = Description::new(SchemeName::Bgv, 2);
    description.additions = 1;
    description.rotations = vec![1, 4];
    let plan = description.plan().unwrap();
    show(&plan);
    assert!(plan.security_bits >= 128.0 && plan.depth == 2);
    let plan = Plan::from_json(&plan.to_json().unwrap()).unwrap();
    let SchemeParams::Bgv(literal) = plan.params else { panic!("scheme") };
    let context = bgv::Context::new(bgv::Params::new(literal).unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let rotations = bgv::Rotations::by([1, 4]);
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness).unwrap();
    let evaluator = bgv::Evaluator::new(&context, Some(Arc::new(keys)));
    let values: Vec<i64> = (0..100).map(|i| i - 50).collect();
    let x = context.encrypt(&public, &context.encode(&values[..]).unwrap(), &mut randomness).unwrap();
    let sum = evaluator.add(&x, &x).unwrap();
    let square = evaluator.mul(&sum, &sum).unwrap();
    let fourth = evaluator.mul(&square, &square).unwrap();
    let out = context.decode(&context.decrypt(&secret, &fourth).unwrap()).unwrap();
    for (v, out) in values.iter().zip(out) {
        assert_eq!((out - 16 * v * v * v * v).rem_euclid(65537), 0);
    }
}

#[test]
fn a_planned_bfv_circuit_decrypts() {
    let plan = Description::new(SchemeName::Bfv, 2).plan().unwrap();
    show(&plan);
    let SchemeParams::Bfv(literal) = plan.params else { panic!("scheme") };
    let context = bfv::Context::new(bfv::Params::new(literal).unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let keys = context.generate_evaluation_keys(&secret, &bfv::Rotations::none(), &mut randomness).unwrap();
    let evaluator = bfv::Evaluator::new(&context, Some(Arc::new(keys)));
    let values: Vec<i64> = (0..100).map(|i| i - 50).collect();
    let x = context.encrypt(&public, &context.encode(&values[..]).unwrap(), &mut randomness).unwrap();
    let square = evaluator.mul(&x, &x).unwrap();
    let fourth = evaluator.mul(&square, &square).unwrap();
    let out = context.decode(&context.decrypt(&secret, &fourth).unwrap()).unwrap();
    for (v, out) in values.iter().zip(out) {
        assert_eq!((out - v * v * v * v).rem_euclid(65537), 0);
    }
}

#[test]
fn a_planned_ckks_circuit_keeps_its_precision() {
    let mut description = Description::new(SchemeName::Ckks, 3);
    description.precision = Some(18);
    let plan = description.plan().unwrap();
    show(&plan);
    let SchemeParams::Ckks(literal) = plan.params else { panic!("scheme") };
    let context = ckks::Context::new(ckks::Params::new(literal).unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let keys = context.generate_evaluation_keys(&secret, &ckks::Rotations::none(), &mut randomness).unwrap();
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
    let values: Vec<f64> = (0..100).map(|i| f64::from(i) / 50.0 - 1.0).collect();
    let mut x = context.encrypt(&public, &context.encode(&values).unwrap(), &mut randomness).unwrap();
    for _ in 0..3 {
        x = evaluator.mul(&x, &x).unwrap();
    }
    let out = context.decode(&context.decrypt(&secret, &x).unwrap()).unwrap();
    for (v, out) in values.iter().zip(out) {
        assert!((out - v.powi(8)).abs() < 2f64.powi(-18));
    }
}

#[test]
fn a_deep_ckks_circuit_is_planned_though_each_product_doubles_the_relative_error() {
    // Twenty-five bits for the products and twenty that stay: more than doubles encode with.
    let plan = Description::new(SchemeName::Ckks, 25).plan().unwrap();
    show(&plan);
    let SchemeParams::Ckks(literal) = plan.params else { panic!("scheme") };
    assert!(literal.log_scale > 53 && plan.log_n <= 17, "scale 2^{}, N = 2^{}", literal.log_scale, plan.log_n);
}

#[test]
fn wide_moduli_key_budgets_and_impossible_requests() {
    let mut wide = Description::new(SchemeName::Bgv, 1);
    wide.t = Some("0xffffffffffffffffffffffffff820001".to_owned());
    let plan = wide.plan().unwrap();
    show(&plan);
    assert!(plan.slots == 1 << plan.log_n && plan.security_bits >= 128.0);
    wide.max_key_bytes = Some(1000);
    assert!(wide.plan().is_err());
    let mut slots = Description::new(SchemeName::Ckks, 1);
    slots.min_slots = 1 << 14;
    assert!(slots.plan().unwrap().slots >= 1 << 14);
}

#[test]
fn a_plan_file_that_was_tampered_with_is_refused() {
    let plan = Description::new(SchemeName::Bgv, 0).plan().unwrap();
    let text = plan.to_json().unwrap();
    let prime = match &plan.params {
        SchemeParams::Bgv(literal) => literal.primes.as_ref().unwrap().q[0].to_string(),
        _ => unreachable!("asked for BGV"),
    };
    for (from, to) in [
        (prime.as_str(), "1125899906842625"),
        ("\"version\": 3", "\"version\": 4"),
        ("synchromesh plan", "another plan"),
        ("\"log_n\"", "\"log_m\""),
        ("{", ""),
    ] {
        assert!(Plan::from_json(&text.replacen(from, to, 2)).is_err(), "{from} -> {to}");
    }
    assert!(Plan::from_json(&text).is_ok());
}

#[test]
fn a_depth_out_of_reach_of_a_wide_modulus_is_refused_with_the_nearest_one() {
    let t = (num_bigint::BigUint::from(1u32) << 256u32) - 189u32;
    let wide = Description { t: Some(t.to_string()), ..Description::new(SchemeName::Bgv, 20) };
    let start = std::time::Instant::now();
    let error = wide.plan().unwrap_err();
    println!("refused after {:.1} s: {error}", start.elapsed().as_secs_f64());
    assert_eq!(error.kind(), "plan_security");
    assert!(error.to_string().contains("N = 2^17 allows 3522"), "{error}");
    assert!(error.to_string().contains("depth 10 would fit"), "{error}");
    assert!(Description { depth: 10, ..wide }.plan().is_ok());
}

/// Squares down to the lowest level by a plan for CKKS, and decrypts.
fn squares(plan: &Plan) -> f64 {
    let context = ckks::Context::new(Plan::from_json(&plan.to_json().unwrap()).unwrap().ckks().unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let keys = context.generate_evaluation_keys(&secret, &ckks::Rotations::none(), &mut randomness).unwrap();
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
    let mut x = context.encrypt(&public, &context.encode(&[0.9, -0.5]).unwrap(), &mut randomness).unwrap();
    for _ in 0..plan.depth {
        x = evaluator.square(&x).unwrap();
    }
    assert_eq!(x.level(), 0);
    let out = context.decode(&context.decrypt(&secret, &x).unwrap()).unwrap();
    let exact = |x: f64| x.powi(1 << plan.depth);
    (out[0] - exact(0.9)).abs().max((out[1] - exact(-0.5)).abs())
}

#[test]
fn a_larger_degree_with_two_digits_is_planned_where_the_smaller_one_needs_more() {
    let mut description = Description::new(SchemeName::Ckks, 2);
    description.precision = Some(15);
    let digits = |plan: &Plan| plan.switch.iter().map(|level| level.omega).max().unwrap();
    let mut small = description.plan().unwrap();
    while digits(&small) <= 2 {
        description.depth += 1;
        small = description.plan().unwrap();
    }
    description.max_digits = Some(2);
    let raised = description.plan().unwrap();
    show(&raised);
    assert!(digits(&raised) <= 2 && raised.log_n == small.log_n + 1);
    assert!(squares(&raised) < 2f64.powi(-15));
}

#[test]
fn prime_switching_and_a_second_key_are_planned_and_decrypt() {
    let mut description = Description::new(SchemeName::Ckks, 3);
    description.precision = Some(12);
    description.prime_switching = Some(PrimeSwitching::new(2, 3).unwrap());
    description.leading_levels = 1;
    let plan = description.plan().unwrap();
    show(&plan);
    let SchemeParams::Ckks(literal) = &plan.params else { panic!("scheme") };
    assert!(literal.schedule.second.is_some());
    assert!(plan.switch[0].omega <= plan.switch[3].omega);
    assert!(squares(&plan) < 2f64.powi(-12));
}
