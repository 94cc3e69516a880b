//! Plans whose levels switch keys in different ways: chosen by a profile, kept in their file, and right by decryption.

use std::sync::Arc;

use crate::machine::transforms_only;
use synchromesh::plan::{Description, LevelSwitch, Plan, SchemeName, SchemeParams};
use synchromesh::rlwe::Randomness;
use synchromesh::{bfv, bgv, ckks};

const SCHEMES: [SchemeName; 3] = [SchemeName::Bfv, SchemeName::Bgv, SchemeName::Ckks];

/// Several levels at 128 bits, where security leaves room for a P of one or two primes and so for several digits.
fn description(scheme: SchemeName) -> Description {
    let (depth, precision) = if scheme == SchemeName::Ckks { (4, Some(15)) } else { (4, None) };
    let t = (scheme != SchemeName::Ckks).then(|| "65537".to_owned());
    Description { rotations: vec![1], precision, t, max_digits: Some(9), ..Description::new(scheme, depth) }
}

fn read_back(plan: &Plan) -> Plan {
    let again = Plan::from_json(&plan.to_json().unwrap()).unwrap();
    assert_eq!(again.switch, plan.switch);
    again
}

/// Squares, rotating before each square at a level up to `highest`, down the levels; both by the plan's keys.
macro_rules! run {
    ($module:ident, $plan:expr, $rotations:expr, $rotate:ident, $encode:expr, $highest:expr) => {{
        let plan: &Plan = $plan;
        let context = $module::Context::new(plan.$module().unwrap()).unwrap();
        let mut randomness = Randomness::insecure_from_number(1);
        let (secret, public) = context.generate_keys(&mut randomness).unwrap();
        let keys = context.generate_evaluation_keys(&secret, &$rotations, &mut randomness).unwrap();
        let keys = plan.trim(context.rlwe(), keys).unwrap();
        let bytes = keys.to_bytes(context.rlwe(), None).unwrap();
        assert_eq!(bytes.len() as u64, plan.key_bytes, "the forecast must be exact");
        let keys = Arc::new(synchromesh::rlwe::EvaluationKeys::from_bytes(context.rlwe(), &bytes, None, None).unwrap());
        let evaluator = $module::Evaluator::new(&context, Some(Arc::clone(&keys)));
        let mut x = context.encrypt(&public, &$encode(&context), &mut randomness).unwrap();
        let mut rotated = 0;
        for _ in 0..plan.depth {
            if x.level() <= $highest {
                x = evaluator.$rotate(&x, 1).unwrap();
                rotated += 1;
            } else {
                assert_eq!(evaluator.$rotate(&x, 1).err().map(|e| e.kind()), Some("trimmed_key"));
            }
            x = evaluator.mul(&x, &x).unwrap();
        }
        let out = context.decode(&context.decrypt(&secret, &x).unwrap()).unwrap();
        (out, rotated, keys.prepared_bytes())
    }};
}

/// Runs the circuit of a plan on the CPU and checks the slots; tells how many bytes prepared keys took.
fn decrypts(plan: &Plan, highest: usize) -> u64 {
    let values = [3i64, 2, 8, 7, 1, 8, 6, 8, 8, 5, 1, 7];
    let at = |rotated: usize, i: usize| values[i + rotated];
    match plan.scheme {
        SchemeName::Ckks => {
            let encode = |c: &Arc<ckks::Context>| c.encode(&values.map(|v| v as f64 / 8.0)).unwrap();
            let (out, rotated, bytes) = run!(ckks, plan, ckks::Rotations::by([1]), rotate, encode, highest);
            for (i, out) in out.iter().enumerate().take(2) {
                let exact = (at(rotated, i) as f64 / 8.0).powi(1 << plan.depth);
                assert!((out - exact).abs() < 2f64.powi(-15), "{out} {exact}");
            }
            bytes
        }
        scheme => {
            let rotations = bgv::Rotations::by([1]);
            let (out, rotated, bytes) = if scheme == SchemeName::Bfv {
                let encode = |c: &Arc<bfv::Context>| c.encode(&values[..]).unwrap();
                run!(bfv, plan, rotations, rotate_rows, encode, highest)
            } else {
                let encode = |c: &Arc<bgv::Context>| c.encode(&values[..]).unwrap();
                run!(bgv, plan, rotations, rotate_rows, encode, highest)
            };
            for (i, out) in out.iter().enumerate().take(2) {
                let exact = (0..plan.depth).fold(at(rotated, i), |x, _| x * x % 65537);
                assert_eq!((out - exact).rem_euclid(65537), 0, "{} slot {i}", scheme.name());
            }
            bytes
        }
    }
}

fn chooses(switch: &LevelSwitch) -> bool {
    [switch.omega2, switch.merged, switch.dedicated, switch.borrowed].iter().any(Option::is_some)
}

#[test]
fn each_level_switches_keys_its_own_way_where_a_profile_says_so() {
    for scheme in SCHEMES {
        let description = description(scheme);
        let plain = description.plan().unwrap();
        assert!(!plain.switch.iter().any(chooses), "without a profile there is one plan for all levels");
        let plan = read_back(&description.plan_for(Some(&transforms_only())).unwrap());
        let line = plan.explain.iter().find(|line| line.starts_with("key switching by level: ")).unwrap();
        // In this circuit ciphertexts of BFV stay at the top, where the plan for all levels is the fastest already.
        if !plan.switch.iter().any(chooses) {
            assert!(scheme == SchemeName::Bfv && line.contains("is predicted to be the fastest"), "{line}");
            decrypts(&plan, usize::MAX);
            continue;
        }
        assert!(line.contains("% less than with one plan for all levels"), "{line}");
        assert!(plan.explain.iter().any(|line| line.starts_with("level ") && line.contains("the runner-up, ")));
        assert!(decrypts(&plan, usize::MAX) > 0);
        assert!(plan.circuit_ms.unwrap() > 0.0 && plan.switch.iter().all(|switch| switch.predicted_ms.is_some()));
    }
}

/// The digits that the keys of a plan of BGV are stored in.
fn stored_digits(plan: &Plan) -> usize {
    let SchemeParams::Bgv(literal) = &plan.params else { panic!("{}", plan.scheme.name()) };
    literal.omega
}

#[test]
fn keys_are_stored_in_more_digits_where_the_budget_allows_and_that_is_faster() {
    let profile = transforms_only();
    let within = |most: u64| {
        let description =
            Description { max_key_bytes: Some(most), width: Some(40), ..Description::new(SchemeName::Bgv, 9) };
        let plan = Description { t: Some("2".into()), ..description }.plan_for(Some(&profile)).unwrap();
        assert!(plan.key_bytes <= most, "{} bytes for a budget of {most}", plan.key_bytes);
        read_back(&plan)
    };
    let fine = within(1 << 30);
    let coarse = within(fine.key_bytes - 1);
    let line = fine.explain.iter().find(|line| line.starts_with("key switching by level: ")).unwrap();
    assert!(line.matches(" stored digits ").count() > 2, "{line}");
    assert!(stored_digits(&fine) > stored_digits(&coarse) && fine.circuit_ms < coarse.circuit_ms, "{line}");
    // More than the reference has, so that levels merge what is stored.
    assert!(fine.switch.iter().any(|switch| switch.merged.is_some_and(|merged| merged > 1)), "{:?}", fine.switch);
    for plan in [fine, coarse] {
        let context = bgv::Context::new(plan.bgv().unwrap()).unwrap();
        let mut randomness = Randomness::insecure_from_number(2);
        let (secret, public) = context.generate_keys(&mut randomness).unwrap();
        let keys = context.generate_evaluation_keys(&secret, &bgv::Rotations::none(), &mut randomness).unwrap();
        assert_eq!(keys.to_bytes(context.rlwe(), None).unwrap().len() as u64, plan.key_bytes);
        let evaluator = bgv::Evaluator::new(&context, Some(keys.into()));
        let message = context.encode_coefficients(&[1i64, 1]).unwrap();
        let x = context.encrypt(&public, &message, &mut randomness).unwrap();
        let x = (0..plan.depth).fold(x, |x, _| evaluator.mul(&x, &x).unwrap());
        // Modulo 2, (1 + X)^(2^d) = 1 + X^(2^d).
        let out = context.decrypt(&secret, &x).unwrap();
        let out = context.decode_coefficients(&out).unwrap();
        let ones: Vec<usize> = (0..out.len()).filter(|&i| out[i] != 0).collect();
        assert_eq!(ones, [0, 1 << plan.depth]);
    }
}

#[test]
fn levels_borrow_primes_where_a_profile_says_so() {
    let rotations = vec![1];
    let budget = Some(60_000_000);
    let description =
        Description { rotations, additions: 1, max_key_bytes: budget, ..Description::new(SchemeName::Bgv, 7) };
    let plan = read_back(&description.plan_for(Some(&transforms_only())).unwrap());
    assert!(plan.switch.iter().any(|switch| switch.method == "level-aware" && switch.borrowed.is_some()));
    decrypts(&plan, usize::MAX);
}

#[test]
fn keys_for_rotations_low_down_are_trimmed() {
    for scheme in SCHEMES {
        let whole = description(scheme).plan().unwrap();
        for profile in [None, Some(transforms_only())] {
            let low = Description { rotation_level: Some(1), ..description(scheme) };
            let plan = read_back(&low.plan_for(profile.as_ref()).unwrap());
            assert!(plan.rotation_level == Some(1) && plan.key_bytes < whole.key_bytes);
            decrypts(&plan, 1);
        }
    }
    let both = Description { rotation_level: Some(1), leading_levels: 1, ..description(SchemeName::Bgv) };
    assert_eq!(both.plan().unwrap_err().kind(), "request");
}

#[test]
fn files_with_choices_that_the_keys_cannot_serve_are_refused() {
    let plan = description(SchemeName::Bgv).plan_for(Some(&transforms_only())).unwrap();
    let at = plan.switch.iter().position(chooses).unwrap();
    let top = plan.switch.len() - 1;
    type Change = Box<dyn Fn(&mut Plan)>;
    let changes: [(Change, &str, &str); 8] = [
        (Box::new(move |p| p.switch[at].omega += 1), "format", "the plan says that level"),
        (Box::new(move |p| p.switch[at].method = "ghs hybrid".into()), "format", "the plan says that level"),
        (Box::new(move |p| p.switch[at].merged = Some(0)), "switch_plan", "stored digits in one"),
        (Box::new(move |p| p.switch[at].dedicated = Some(99)), "switch_plan", "99 special primes"),
        (Box::new(move |p| p.switch[top].borrowed = Some(1)), "borrowed_primes", "borrows 1 of"),
        (Box::new(move |p| p.switch[at].level = 99), "format", "level 99"),
        (Box::new(move |p| p.switch[at].omega2 = Some(99)), "switch_plan", "99"),
        (Box::new(move |p| p.switch.push(p.switch[at].clone())), "format", "one choice for each level"),
    ];
    for (change, kind, words) in changes {
        let mut broken = plan.clone();
        change(&mut broken);
        let error = Plan::from_json(&broken.to_json().unwrap()).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(words), "{words}: {error}");
        assert!(!error.remedy().is_empty());
    }
    // A file of version 2 has none of these numbers and is read as before.
    let old =
        description(SchemeName::Bgv).plan().unwrap().to_json().unwrap().replace("\"version\": 3", "\"version\": 2");
    assert!(Plan::from_json(&old).is_ok());
}
