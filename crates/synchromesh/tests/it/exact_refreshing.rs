//! Plans of BFV and BGV whose ciphertexts are refreshed: products without end, judged by decryption of every slot; their keys
//! in files and on other devices.

use std::sync::Arc;

use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::{Arithmetic, LinearTransform, Polynomial};
use synchromesh::exact::{self, Ciphertext, Evaluator};
use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh::rlwe::ring::{Backend, Cpu};
use synchromesh::rlwe::{EvaluationKeys, Randomness, Security};
use synchromesh::scheme::{Operation, Values, apply};
use synchromesh::session::Session;

const T: i64 = 65537;

fn description<S: exact::Scheme>() -> Description {
    Description { bootstrap: Some(1.0), security: Security::Insecure, ..Description::new(S::SCHEME, 1) }
}

/// A number of Z_t from -(t - 1) / 2 to t / 2, as slots are decoded.
fn centred(x: i64) -> i64 {
    let x = x.rem_euclid(T);
    if 2 * x > T { x - T } else { x }
}

/// Decoded slots.
fn words(values: &Values) -> Vec<i64> {
    values.integers("bfv").unwrap().iter().map(|x| i64::try_from(x).unwrap()).collect()
}

fn product(x: i64, y: i64) -> i64 {
    centred(x * y)
}

fn inputs(slots: usize) -> [Vec<i64>; 2] {
    [3, 7].map(|k| (0..slots as i64).map(|i| centred(k * i * i + i + 1)).collect())
}

/// Refreshes that a plan's circuit makes.
fn refreshes(plan: &Plan) -> usize {
    plan.nodes.iter().filter(|node| node.operation == "refresh").count()
}

const STEPS: usize = 7;

/// x -> x y + x rotated by one, again and again; then x^5 + 2 x, and each slot plus twice its neighbour.
fn circuit<S: exact::Scheme, B: Backend>(
    e: &Evaluator<S, B>,
    x: &Ciphertext<S, B>,
    y: &Ciphertext<S, B>,
) -> synchromesh::Result<Ciphertext<S, B>> {
    let mut x = x.duplicate(e.context())?;
    for _ in 0..STEPS {
        x = e.add(&e.mul(&x, y)?, &e.rotate_rows(&x, 1)?)?;
    }
    let x = Polynomial::power([0, 2, 0, 0, 0, 1]).unwrap().evaluate(e, &x)?;
    let shape = e.slots()?;
    let mut map = LinearTransform::zero(shape);
    map.add_diagonal(0, false, vec![1.into(); shape.count()])?;
    map.add_diagonal(1, false, vec![2.into(); shape.count()])?;
    map.apply(e, &x)
}

/// Each row of slots rotated to the left.
fn rotated(x: &[i64], k: usize) -> Vec<i64> {
    let row = x.len() / 2;
    (0..x.len()).map(|i| x[i / row * row + (i % row + k) % row]).collect()
}

fn expected([x, y]: &[Vec<i64>; 2]) -> Vec<i64> {
    let mut x = x.clone();
    for _ in 0..STEPS {
        let turned = rotated(&x, 1);
        x = x.iter().zip(y).zip(turned).map(|((x, y), turned)| centred(product(*x, *y) + turned)).collect();
    }
    let fifth = |x: i64| (0..4).fold(x, |power, _| product(power, x));
    x = x.iter().map(|&x| centred(fifth(x) + 2 * x)).collect();
    x.iter().zip(rotated(&x, 1)).map(|(x, next)| centred(x + 2 * next)).collect()
}

fn planned<S: exact::Scheme>() -> Plan {
    description::<S>().plan_exact::<S>(2, |e, x| Ok(vec![circuit(e, &x[0], &x[1])?])).unwrap()
}

fn a_circuit_of_any_depth<S: exact::Scheme>() {
    let plan = planned::<S>();
    assert!(refreshes(&plan) >= 3, "{}", refreshes(&plan));
    assert!(plan.inside.is_some() && plan.rotations == [1] && plan.depth <= 2, "{:?}", plan.explain);
    let again = Plan::from_json(&plan.to_json().unwrap()).unwrap();
    assert_eq!(again, plan);

    let session: Session<S> = again.open().unwrap();
    let mut randomness = Randomness::insecure_from_number(710);
    let (secret, public) = session.generate_keys(&mut randomness).unwrap();
    let made = session.generate_evaluation_keys(&secret, &mut randomness).unwrap();
    // Through a file, to another device, and what others have made besides.
    let bytes = made.to_bytes(session.rlwe(), None).unwrap();
    assert_eq!((bytes.len() as u64, made.wire_bytes(session.rlwe().params())), (plan.key_bytes, plan.key_bytes));
    let read = EvaluationKeys::from_bytes(session.rlwe(), &bytes, Some(secret.id()), None).unwrap();
    assert_eq!(read.to_bytes(session.rlwe(), None).unwrap(), bytes);
    let other: Session<S> = again.open().unwrap();
    let moved = read.transfer(session.rlwe(), other.rlwe()).unwrap();
    assert_eq!(moved.to_bytes(other.rlwe(), None).unwrap(), bytes);
    let both = EvaluationKeys::new(secret.id()).and(&moved).unwrap();
    let evaluator = other.evaluator(both);

    let values = inputs(plan.slots);
    let [x, y] = values.clone().map(|values| session.encrypt(&public, values, &mut randomness).unwrap());
    let decrypted = |x: &Ciphertext<S>| words(&session.decrypt(&secret, x).unwrap());
    let result = circuit(&evaluator, &x, &y).unwrap();
    assert!(decrypted(&result) == expected(&values), "{}", S::NAME);
    assert!(session.context().noise_budget(&result).unwrap() >= evaluator.bootstrap().unwrap().least_budget().unwrap());

    // By hand: what is refreshed is as it was, with the noise budget that was planned.
    let refreshed = apply::<S, Cpu>(&evaluator, &Operation::Refresh, &[&result]).unwrap();
    let planned = evaluator.bootstrap().unwrap().literal().budget_bits;
    assert!(session.context().noise_budget(&refreshed).unwrap() >= f64::from(planned));
    assert!(decrypted(&refreshed) == expected(&values));

    // Without keys of refreshes it computes as far as it can, and says what is missing.
    let mut bare = EvaluationKeys::new(secret.id());
    made.iter().for_each(|key| bare.insert(key.transfer(session.rlwe(), session.rlwe()).unwrap()).unwrap());
    let bare = session.evaluator(bare);
    assert!(decrypted(&bare.rotate_rows(&x, 1).unwrap()) == rotated(&values[0], 1));
    assert_eq!(circuit(&bare, &x, &y).err().map(|error| error.kind()), Some("missing_key"));
    assert_eq!(bare.refresh(&x).err().map(|error| error.kind()), Some("missing_key"));
    assert_eq!(session.keyless().refresh(&x).err().map(|error| error.kind()), Some("no_keys"));
}

#[test]
fn circuits_of_bfv_of_any_depth_refresh_by_themselves() {
    a_circuit_of_any_depth::<Bfv>();
}

#[test]
fn circuits_of_bgv_of_any_depth_refresh_by_themselves() {
    a_circuit_of_any_depth::<Bgv>();
}

#[test]
fn a_value_that_several_products_need_is_refreshed_once() {
    let plan = |count: usize| {
        let description = description::<Bfv>();
        let fan = move |e: &Evaluator<Bfv, _>, x: &[Ciphertext<Bfv, _>]| {
            let mut low = x[0].duplicate(e.context())?;
            let least = e.bootstrap().unwrap().least_budget()?;
            // Until a product would be too much; sums are not refreshed.
            while e.context().noise_budget(&low)? > least + 20.0 {
                low = e.add(&low, &low)?;
            }
            (0..count).map(|_| e.mul(&low, &x[1])).collect()
        };
        let plan = description.plan_exact::<Bfv>(2, fan).unwrap();
        refreshes(&plan)
    };
    let one = plan(1);
    assert!(one > 0);
    assert_eq!(plan(3), one);
}

#[test]
fn plans_are_held_to_what_they_say_of_refreshes() {
    let plan = description::<Bfv>().plan().unwrap();
    let text = plan.to_json().unwrap();
    let kind = |text: &str| Plan::from_json(text).err().map(|error| error.kind());
    assert_eq!(kind(&text), None);
    assert_eq!(kind(&text.replacen(&plan.key_bytes.to_string(), "1234", 1)), Some("plan_field"));
    let weight = "\"ratio_bits\": ";
    assert_eq!(kind(&text.replacen(weight, "\"ratio_bits\": 9", 1)), Some("params"));
    let real = Description {
        bootstrap: Some(1.0),
        security: Security::Insecure,
        precision: Some(10),
        ..Description::new(SchemeName::Ckks, 3)
    };
    let real = real.plan().unwrap();
    let mut mixed = real.clone();
    mixed.inside = plan.inside.clone();
    assert_eq!(kind(&mixed.to_json().unwrap()), Some("format"));
    let mut mixed = plan.clone();
    mixed.bootstrap = real.bootstrap;
    assert_eq!(kind(&mixed.to_json().unwrap()), Some("plan_field"));

    let refused = |description: Description| description.plan().err().map(|error| error.kind()).unwrap();
    let budget = plan.key_bytes * 3 / 4;
    let frugal = Description { max_key_bytes: Some(budget), ..description::<Bfv>() }.plan().unwrap();
    assert!(frugal.key_bytes <= budget && frugal.inside.unwrap().bootstrap.baby_steps.is_some());
    assert_eq!(refused(Description { max_key_bytes: Some(1000), ..description::<Bfv>() }), "plan_key_bytes");
    assert_eq!(refused(Description { max_memory_bytes: Some(1000), ..description::<Bfv>() }), "plan_memory");
    assert_eq!(refused(Description { leading_levels: 1, ..description::<Bgv>() }), "request");
    assert_eq!(refused(Description { min_slots: 1 << 17, ..description::<Bgv>() }), "request");
}

#[test]
fn keys_of_refreshes_need_a_context_that_knows_their_ring() {
    let plan = description::<Bfv>().plan().unwrap();
    let session = plan.open::<Bfv>().unwrap();
    let mut flat = plan;
    flat.inside = None;
    let flat: Session<Bfv> = flat.open().unwrap();
    let mut randomness = Randomness::insecure_from_number(711);
    let (secret, _) = session.generate_keys(&mut randomness).unwrap();
    let keys = Arc::new(session.generate_evaluation_keys(&secret, &mut randomness).unwrap());
    let bytes = keys.to_bytes(session.rlwe(), None).unwrap();
    let kind = |result: Result<(), synchromesh::rlwe::Error>| result.err().map(|error| error.kind());
    assert_eq!(kind(keys.to_bytes(flat.rlwe(), None).map(drop)), Some("params_differ"));
    assert_eq!(kind(keys.transfer(session.rlwe(), flat.rlwe()).map(drop)), Some("params_differ"));
    assert_eq!(kind(EvaluationKeys::from_bytes(flat.rlwe(), &bytes, None, None).map(drop)), Some("trailing_bytes"));
    // Of another secret key inside.
    let (other, _) = session.generate_keys(&mut randomness).unwrap();
    let mut mixed = session.generate_evaluation_keys(&other, &mut randomness).unwrap();
    let larger = Arc::clone(keys.inside().unwrap());
    let ring = session.rlwe().inside().unwrap().params().clone();
    assert_eq!(kind(mixed.set_inside(&ring, larger)), Some("keys_differ"));
    for at in [bytes.len() / 2, bytes.len() - 40] {
        let mut bent = bytes.clone();
        bent[at] ^= 1;
        assert!(EvaluationKeys::from_bytes(session.rlwe(), &bent, None, None).is_err());
    }
}
