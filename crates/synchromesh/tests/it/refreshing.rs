//! Plans whose ciphertexts are refreshed: computations that are longer than any chain of levels.

use synchromesh::bfv::Bfv;
use synchromesh::circuits::Polynomial;
use synchromesh::ckks::{Ciphertext, Ckks, Evaluator};
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
    assert_eq!(refused.err().map(|error| error.kind()), Some("no_bootstrap"));

    let session = description().plan().unwrap().open::<Ckks>().unwrap();
    let (_, public) = session.generate_keys(&mut randomness).unwrap();
    let x = session.encrypt(&public, [0.5], &mut randomness).unwrap();
    assert_eq!(session.keyless().refresh(&x).err().map(|error| error.kind()), Some("no_keys"));
}

/// How often a plan's circuit refreshes.
fn refreshes(plan: &Plan) -> usize {
    plan.nodes.iter().filter(|node| node.operation == "refresh").count()
}

/// Five products of one value that has a level left, each squared: whoever waits until levels run out refreshes five.
fn fan<B: synchromesh::rlwe::ring::Backend>(
    e: &Evaluator<B>,
    x: &Ciphertext<B>,
) -> synchromesh::Result<Vec<Ciphertext<B>>> {
    let low = e.square(&e.square(x)?)?;
    let each = |k: i32| e.declare_bound(e.square(&e.mul_scalar(&low, 1.0 - 0.1 * f64::from(k))?)?, 1.0);
    (1..=5).map(each).collect()
}

#[test]
fn a_value_is_refreshed_in_the_place_of_five_that_are_made_of_it() {
    let plan = description().plan_ckks(&[1.0], |e, x| fan(e, &x[0])).unwrap();
    assert_eq!((refreshes(&plan), plan.refreshes.len()), (1, 1), "{:?}", plan.explain);
    assert!(
        plan.explain.iter().any(|line| line.starts_with("refreshes: 1, ") && line.contains("; 5 where")),
        "{:?}",
        plan.explain
    );
    let place = &plan.refreshes[0];
    assert!(plan.explain.iter().any(|line| line.starts_with("refresh 1: value ") && line.contains(&place.needed_for)));

    // A plan that is read does the same, one whose places are of another circuit is as without any, and none is wrong.
    let read = Plan::from_json(&plan.to_json().unwrap()).unwrap();
    assert_eq!(read, plan);
    let mut strange = plan.clone();
    strange.refreshes[0].value = "0123456789abcdef".parse().unwrap();
    for (plan, placed) in [(read, true), (strange, false)] {
        let session = plan.open::<Ckks>().unwrap();
        let mut randomness = Randomness::insecure_from_number(710);
        let (secret, public) = session.generate_keys(&mut randomness).unwrap();
        let keys = session.generate_evaluation_keys(&secret, &mut randomness).unwrap();
        let evaluator = session.evaluator(keys);
        let values: Vec<f64> = (0..plan.slots).map(|i| (i as f64 * 0.37).sin()).collect();
        let x = session.encrypt(&public, values.clone(), &mut randomness).unwrap();
        let highest = evaluator.bootstrap().unwrap().output_level();
        for (k, y) in fan(&evaluator, &x).unwrap().iter().enumerate() {
            // From a value that was refreshed before: two levels are gone; else from one that was afterwards: one.
            assert_eq!(y.level(), if placed { highest - 2 } else { highest - 1 });
            let (found, bound) = (reals(&session.decrypt(&secret, y).unwrap()), session.context().error_bound(y));
            assert!(bound < 2f64.powi(-9), "certified 2^{:.1}", bound.log2());
            let factor = 1.0 - 0.1 * (k + 1) as f64;
            for (found, x) in found.iter().zip(&values) {
                let expected = (factor * x.powi(4)).powi(2);
                assert!((found - expected).abs() <= bound, "{found} for {expected}, certified {bound}");
            }
        }
    }
}

#[test]
fn a_place_is_found_where_what_runs_out_of_levels_is_too_large() {
    // x^8 has no level left, and 3 x^8 is too large to be refreshed.
    let circuit = |x: f64| (3.0 * x.powi(8)).powi(2);
    fn tripled<B: synchromesh::rlwe::ring::Backend>(
        e: &Evaluator<B>,
        x: &Ciphertext<B>,
    ) -> synchromesh::Result<Ciphertext<B>> {
        let eighth = e.square(&e.square(&e.square(x)?)?)?;
        e.square(&e.add(&e.add(&eighth, &eighth)?, &eighth)?)
    }
    let plan = description().plan_ckks(&[1.0], |e, x| Ok(vec![tripled(e, &x[0])?])).unwrap();
    assert_eq!(refreshes(&plan), 1, "{:?}", plan.explain);
    assert!(plan.explain.iter().any(|line| line.contains("a value may be too large")), "{:?}", plan.explain);
    let session = plan.open::<Ckks>().unwrap();
    let mut randomness = Randomness::insecure_from_number(711);
    let (secret, public) = session.generate_keys(&mut randomness).unwrap();
    let evaluator = session.evaluator(session.generate_evaluation_keys(&secret, &mut randomness).unwrap());
    let values: Vec<f64> = (0..plan.slots).map(|i| (i as f64 * 0.21).cos()).collect();
    let x = session.encrypt(&public, values.clone(), &mut randomness).unwrap();
    let y = tripled(&evaluator, &x).unwrap();
    let (found, bound) = (reals(&session.decrypt(&secret, &y).unwrap()), session.context().error_bound(&y));
    assert!(found.iter().zip(&values).all(|(y, x)| (y - circuit(*x)).abs() <= bound), "{bound}");

    // Without its list the evaluator waits until 3 x^8 lacks a level, and says that it is too large.
    let mut without = plan;
    without.refreshes.clear();
    let session = without.open::<Ckks>().unwrap();
    let evaluator = session.evaluator(session.generate_evaluation_keys(&secret, &mut randomness).unwrap());
    assert_eq!(tripled(&evaluator, &x).err().map(|error| error.kind()), Some("message_bound"));
}

#[test]
fn a_circuit_that_cannot_be_placed_says_what_blocks_it() {
    // Nothing here is known to be at most 1.
    let circuit = |e: &Evaluator<_>, x: &[Ciphertext<_>]| {
        let deep = (0..4).try_fold(x[0].duplicate(e.context())?, |x, _| e.square(&x))?;
        Ok(vec![deep])
    };
    let error = description().plan_ckks(&[1.25], circuit).unwrap_err();
    assert_eq!(error.kind(), "plan_bounds", "{error}");
    let text = error.to_string();
    assert!(text.contains("cannot be refreshed") && text.contains("up to 1"), "{text}");
    assert!(error.remedy().contains("declare"), "{}", error.remedy());
    assert!(description().plan_ckks(&[1.0], circuit).is_ok());
}

#[test]
fn places_without_refreshes_or_of_no_form_are_refused() {
    let plan = description().plan_ckks(&[1.0], |e, x| fan(e, &x[0])).unwrap();
    let text = plan.to_json().unwrap();
    let kind = |text: &str| Plan::from_json(text).err().map(|error| error.kind());
    let value = plan.refreshes[0].value.to_string();
    assert_eq!(kind(&text.replace(&value, "0x12")), Some("format"));
    assert_eq!(
        kind(&text.replace(&value, &value.to_uppercase().replace(|c: char| c.is_ascii_digit(), "A"))),
        Some("format")
    );
    let mut plain = Description { bootstrap: None, ..description() }.plan().unwrap();
    plain.refreshes = plan.refreshes.clone();
    assert_eq!(kind(&plain.to_json().unwrap()), Some("plan_field"));
    assert!(plan.bare().refreshes.is_empty());
}

#[test]
fn what_is_off_is_certified_from_where_it_was_taken_as_computed() {
    let plan =
        description().plan_ckks(&[1.0], |e, x| Ok(vec![e.square(&e.as_computed(&e.square(&x[0])?)?.0)?])).unwrap();
    let session = plan.open::<Ckks>().unwrap();
    let mut randomness = Randomness::insecure_from_number(712);
    let (secret, public) = session.generate_keys(&mut randomness).unwrap();
    let evaluator = session.evaluator(session.generate_evaluation_keys(&secret, &mut randomness).unwrap());
    let values: Vec<f64> = (0..plan.slots).map(|i| (i as f64 * 0.11).sin()).collect();
    let x = session.encrypt(&public, values.clone(), &mut randomness).unwrap();
    let square = evaluator.square(&x).unwrap();
    let (exact, off) = evaluator.as_computed(&square).unwrap();
    let own = session.context().error_bound(&square);
    assert!((0.9..1.1).contains(&(off / own)), "{off} {own}");
    assert!(session.context().error_bound(&exact) < own / 1024.0);
    assert!(exact.bound() >= square.bound() + off && exact.level() == square.level());
    // The message is what it decrypts to, and the square of that is certified from there.
    let message = session.decrypt(&secret, &exact).unwrap().complexes("ckks").unwrap().to_vec();
    assert!(message.iter().zip(&values).all(|(y, x)| (y.re - x * x).hypot(y.im) <= off));
    let fourth = evaluator.square(&exact).unwrap();
    let (found, bound) = (session.decrypt(&secret, &fourth).unwrap(), session.context().error_bound(&fourth));
    for (found, z) in found.complexes("ckks").unwrap().iter().zip(&message) {
        let (re, im) = (z.re * z.re - z.im * z.im, 2.0 * z.re * z.im);
        assert!((found.re - re).hypot(found.im - im) <= bound + session.context().error_bound(&exact) * 2.0);
    }
    assert!(
        session.context().error_bound(&fourth) < session.context().error_bound(&evaluator.square(&square).unwrap())
    );
}
