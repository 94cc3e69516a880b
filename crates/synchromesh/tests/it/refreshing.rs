//! Plans whose ciphertexts are refreshed: computations that are longer than any chain of levels.

use synchromesh::bfv::Bfv;
use synchromesh::circuits::Polynomial;
use synchromesh::ckks::Ckks;
use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::scheme::{Operation, Values, apply};

fn description() -> Description {
    let description = Description::new(SchemeName::Ckks, 3);
    Description { precision: Some(10), bootstrap: Some(1.0), security: Security::Insecure, ..description }
}

fn reals(values: &Values) -> Vec<f64> {
    values.complexes("ckks").unwrap().iter().map(|z| z.re).collect()
}

/// x -> x^2 / 2 - 1 / 4 leaves errors as they are; each step takes two levels.
fn step() -> Polynomial<synchromesh::ckks::Complex64> {
    Polynomial::power([-0.25, 0.0, 0.5]).unwrap()
}

#[test]
fn an_iteration_of_any_length_refreshes_by_itself() {
    const STEPS: usize = 8;
    let circuit =
        |x: &[f64]| -> Vec<f64> { (0..STEPS).fold(x.to_vec(), |x, _| x.iter().map(|x| 0.5 * x * x - 0.25).collect()) };
    let plan = description()
        .plan_ckks(&[1.0], |e, x| {
            let mut x = x[0].duplicate(e.context())?;
            for _ in 0..STEPS {
                x = e.declare_bound(step().evaluate(e, &x)?, 1.0)?;
            }
            Ok(vec![x])
        })
        .unwrap();
    let refreshes = plan.nodes.iter().filter(|node| node.operation == "refresh").count();
    assert!((2..=STEPS).contains(&refreshes), "{refreshes}");
    assert!(plan.explain.iter().any(|line| line.contains("refresh")), "{:?}", plan.explain);

    // What the plan says is what is made of it, and read again.
    let again = Plan::from_json(&plan.to_json().unwrap()).unwrap();
    assert_eq!(again, plan);
    let session = again.open::<Ckks>().unwrap();
    let mut randomness = Randomness::insecure_from_number(700);
    let (secret, public) = session.generate_keys(&mut randomness).unwrap();
    let keys = session.generate_evaluation_keys(&secret, &mut randomness).unwrap();
    assert_eq!(keys.wire_bytes(session.rlwe().params()), plan.key_bytes);
    let evaluator = session.evaluator(keys);
    let values: Vec<f64> = (0..plan.slots).map(|i| (i as f64 * 0.37).sin()).collect();
    let mut x = session.encrypt(&public, values.clone(), &mut randomness).unwrap();
    assert_eq!(x.level(), evaluator.bootstrap().unwrap().output_level());
    for _ in 0..STEPS {
        x = evaluator.declare_bound(step().evaluate(&evaluator, &x).unwrap(), 1.0).unwrap();
    }
    let found = reals(&session.decrypt(&secret, &x).unwrap());
    let bound = session.context().error_bound(&x);
    assert!(bound < 2f64.powi(-10), "certified 2^{:.1}", bound.log2());
    for (found, expected) in found.iter().zip(circuit(&values)) {
        assert!((found - expected).abs() <= bound, "{found} for {expected}, certified {bound}");
    }

    // Once more by hand: what is refreshed is as it was.
    let refreshed = apply::<Ckks, _>(&evaluator, &Operation::Refresh, &[&x]).unwrap();
    assert_eq!(refreshed.level(), evaluator.bootstrap().unwrap().output_level());
    let again = reals(&session.decrypt(&secret, &refreshed).unwrap());
    let bound = bound + session.context().error_bound(&refreshed);
    assert!(again.iter().zip(&found).all(|(a, b)| (a - b).abs() <= bound));
}

#[test]
fn a_value_that_two_operations_need_is_refreshed_once() {
    let plan = description()
        .plan_ckks(&[1.0, 1.0], |e, x| {
            let low = e.mod_switch_to(&x[0], e.bootstrap().unwrap().input_level())?;
            Ok(vec![e.mul(&low, &x[1])?, e.square(&low)?, e.mul_scalar(&low, 0.5)?])
        })
        .unwrap();
    assert_eq!(plan.nodes.iter().filter(|node| node.operation == "refresh").count(), 1);
}

#[test]
fn plans_with_refreshes_are_held_to_what_they_say() {
    let plan = description().plan().unwrap();
    assert!(plan.depth == 3 && plan.swap && plan.bootstrap.is_some());
    let text = plan.to_json().unwrap();
    let kind = |text: &str| Plan::from_json(text).err().map(|error| error.kind());
    assert_eq!(kind(&text), None);
    let bytes = plan.key_bytes.to_string();
    assert_eq!(kind(&text.replacen(&bytes, "1234", 1)), Some("plan_field"));
    assert_eq!(kind(&text.replacen("\"depth\": 3", "\"depth\": 4", 1)), Some("plan_field"));
    assert_eq!(kind(&text.replacen("\"degree\": ", "\"degree\": 9", 1)), Some("params"));
    assert_eq!(kind(&text.replacen("\"doublings\": ", "\"doublings\": 9", 1)), Some("params"));

    // Keys within a budget, by fewer baby steps; and what no budget allows.
    let budget = plan.key_bytes * 3 / 4;
    let frugal = Description { max_key_bytes: Some(budget), ..description() }.plan().unwrap();
    assert!(frugal.key_bytes <= budget && frugal.bootstrap.unwrap().baby_steps.is_some());
    let refused = |description: Description| description.plan().err().map(|error| error.kind()).unwrap();
    assert_eq!(refused(Description { max_key_bytes: Some(1000), ..description() }), "plan_key_bytes");
    assert_eq!(refused(Description { max_memory_bytes: Some(1000), ..description() }), "plan_memory");
    assert_eq!(refused(Description { depth: 0, ..description() }), "request");
    assert_eq!(refused(Description { leading_levels: 1, ..description() }), "request");
    assert_eq!(refused(Description { bootstrap: Some(f64::NAN), ..description() }), "request");
    let exact = Description { scheme: SchemeName::Bfv, precision: None, ..description() };
    assert_eq!(refused(exact), "scheme");
}

#[test]
fn refreshes_that_cannot_be_are_typed_errors() {
    let mut randomness = Randomness::insecure_from_number(701);
    let plain = Description { bootstrap: None, ..description() }.plan().unwrap().open::<Ckks>().unwrap();
    let (_, public) = plain.generate_keys(&mut randomness).unwrap();
    let x = plain.encrypt(&public, [0.5], &mut randomness).unwrap();
    assert_eq!(plain.keyless().refresh(&x).err().map(|error| error.kind()), Some("no_bootstrap"));
    let exact = Description { scheme: SchemeName::Bfv, precision: None, bootstrap: None, ..description() };
    let exact = exact.plan().unwrap().open::<Bfv>().unwrap();
    let (_, public) = exact.generate_keys(&mut randomness).unwrap();
    let x = exact.encrypt(&public, [1i64], &mut randomness).unwrap();
    let refused = apply::<Bfv, _>(exact.keyless(), &Operation::Refresh, &[&x]);
    assert_eq!(refused.err().map(|error| error.kind()), Some("scheme"));

    let session = description().plan().unwrap().open::<Ckks>().unwrap();
    let (_, public) = session.generate_keys(&mut randomness).unwrap();
    let x = session.encrypt(&public, [0.5], &mut randomness).unwrap();
    assert_eq!(session.keyless().refresh(&x).err().map(|error| error.kind()), Some("no_keys"));
}
