//! Budgets, limits and security levels of plans: what fits fits, what does not says which limit it hit and what would.

use std::sync::Arc;

use synchromesh::plan::{Description, Limit, Nearest, Plan, SchemeName};
use synchromesh::rlwe::security::{CostModel, SecurityLevel, max_log_qp_for};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::rotations::Rotations;
use synchromesh::{Error, bgv, ckks};

const SCHEMES: [SchemeName; 3] = [SchemeName::Bfv, SchemeName::Bgv, SchemeName::Ckks];

/// Rotates by every step of a plan for BGV, and decrypts.
fn rotates_bgv(plan: &Plan) {
    let context = bgv::Context::new(plan.bgv().unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let rotations = Rotations { swap: plan.swap, ..Rotations::by(plan.rotation_keys().iter().copied()) };
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness).unwrap();
    assert_eq!(keys.to_bytes(context.rlwe(), None).unwrap().len() as u64, plan.key_bytes, "the forecast must be exact");
    let evaluator = bgv::Evaluator::new(&context, Some(Arc::new(keys)));
    let evaluator = evaluator.with_routes(plan.routes.clone().map(Arc::new));
    let row = context.params().n() / 2;
    let values: Vec<i64> = (0..row as i64).map(|i| i * i % 1000).collect();
    let x = context.encrypt(&public, &context.encode(&values[..]).unwrap(), &mut randomness).unwrap();
    let square = evaluator.square(&x).unwrap();
    for (rotated, &step) in evaluator.rotate_rows_many(&square, &plan.rotations).unwrap().iter().zip(&plan.rotations) {
        let one = evaluator.rotate_rows(&square, step).unwrap();
        for rotated in [rotated, &one] {
            let out = context.decode(&context.decrypt(&secret, rotated).unwrap()).unwrap();
            for i in 0..row {
                let from = values[(i as i64 + step).rem_euclid(row as i64) as usize];
                assert_eq!((out[i] - from * from).rem_euclid(65537), 0, "step {step}, slot {i}");
            }
        }
    }
    assert_eq!(evaluator.rotate_rows(&square, 999).err().map(|e| e.kind()), Some("missing_key"));
}

#[test]
fn a_small_budget_of_key_bytes_composes_rotations_from_fewer_keys() {
    let mut description = Description::new(SchemeName::Bgv, 1);
    (description.security, description.rotations) = (Security::Insecure, (1..16).chain([-5]).collect());
    let direct = description.plan().unwrap();
    assert!(direct.routes.is_none() && direct.rotation_keys().len() == 16);
    rotates_bgv(&direct);
    for share in [2, 3] {
        description.max_key_bytes = Some(direct.key_bytes / share);
        let plan = description.plan().unwrap();
        assert!(plan.key_bytes <= direct.key_bytes / share && plan.log_n == direct.log_n);
        assert!(plan.rotation_keys().len() < 16 && plan.routes.as_ref().unwrap().switches() > 1);
        rotates_bgv(&Plan::from_json(&plan.to_json().unwrap()).unwrap());
    }
    description.max_key_bytes = Some(1000);
    let Err(Error::NoPlan { limit: Limit::KeyBytes, nearest: Some(Nearest::KeyBytes(bytes)), .. }) = description.plan()
    else {
        panic!("a budget of 1000 bytes")
    };
    description.max_key_bytes = Some(bytes);
    let plan = description.plan().unwrap();
    assert!(plan.key_bytes <= bytes, "the nearest request works");
}

#[test]
fn composed_rotations_of_ckks_keep_the_precision() {
    let mut description = Description::new(SchemeName::Ckks, 1);
    (description.security, description.rotations) = (Security::Insecure, (1..32).collect());
    description.max_key_bytes = Some(description.plan().unwrap().key_bytes / 4);
    let plan = description.plan().unwrap();
    let context = ckks::Context::new(plan.ckks().unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(2);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let rotations = Rotations::by(plan.rotation_keys().iter().copied());
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness).unwrap();
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
    let evaluator = evaluator.with_routes(plan.routes.clone().map(Arc::new));
    let values: Vec<f64> = (0..plan.slots).map(|i| (i as f64).sin()).collect();
    let x = context.encrypt(&public, &context.encode(&values).unwrap(), &mut randomness).unwrap();
    for step in [31, 7, 1] {
        let rotated = evaluator.rotate(&x, step).unwrap();
        let out = context.decode(&context.decrypt(&secret, &rotated).unwrap()).unwrap();
        for i in 0..plan.slots {
            assert!((out[i] - values[(i + step as usize) % plan.slots]).abs() < 2f64.powi(-20));
        }
    }
}

#[test]
fn moduli_are_within_the_table_at_every_security_classical_and_quantum() {
    let levels = [
        (Security::Bits128, SecurityLevel::Bits128, CostModel::ClassicalMatzov),
        (Security::Bits256, SecurityLevel::Bits256, CostModel::ClassicalMatzov),
        (Security::Quantum128, SecurityLevel::Bits128, CostModel::QuantumLaaMosPol14),
        (Security::Quantum192, SecurityLevel::Bits192, CostModel::QuantumLaaMosPol14),
    ];
    for scheme in SCHEMES {
        for (security, level, model) in levels {
            let plan = Description { security, ..Description::new(scheme, 1) }.plan().unwrap();
            assert!(plan.log_qp <= max_log_qp_for(plan.log_n, level, model).unwrap(), "{plan:?}");
            assert!(plan.security_bits >= f64::from(level.bits()), "quantum limits are below classical ones");
            assert_eq!(plan.cost_model.as_deref(), Some(model.name()));
            Plan::from_json(&plan.to_json().unwrap()).unwrap();
        }
    }
}

#[test]
fn impossible_requests_name_the_limit_and_the_nearest_that_works() {
    let deep = Description { security: Security::Bits256, ..Description::new(SchemeName::Bgv, 60) };
    let error = deep.plan().unwrap_err();
    let Error::NoPlan { limit: Limit::Security, nearest: Some(Nearest::Depth(depth)), .. } = error else {
        panic!("{error}")
    };
    assert!(error.kind() == "plan_security" && error.remedy().contains(&format!("depth {depth}")), "{error}");
    assert!(depth > 20 && Description { depth, ..deep }.plan().is_ok());
    let mut fine = Description { precision: Some(80), ..Description::new(SchemeName::Ckks, 2) };
    let error = fine.plan().unwrap_err();
    let Error::NoPlan { limit: Limit::Precision, nearest: Some(Nearest::Precision(bits)), .. } = error else {
        panic!("{error}")
    };
    assert!(error.remedy().contains(&format!("{bits} bits")), "{}", error.remedy());
    fine.precision = Some(bits);
    assert!(fine.plan().is_ok());
    // Neither fewer products nor fewer bits alone.
    let both = Description { precision: Some(60), ..Description::new(SchemeName::Ckks, 80) };
    let error = both.plan().unwrap_err();
    let Error::NoPlan { nearest: Some(Nearest::DepthAndPrecision(depth, bits)), .. } = error else { panic!("{error}") };
    assert!(depth > 10 && bits >= 20 && error.remedy().contains(&format!("depth {depth} with a precision of {bits}")));
    assert!(Description { depth, precision: Some(bits), ..both }.plan().is_ok());
    let many = Description { min_slots: 1 << 20, ..Description::new(SchemeName::Bfv, 1) };
    let Err(Error::NoPlan { limit: Limit::Slots, nearest: Some(Nearest::Slots(slots)), .. }) = many.plan() else {
        panic!("a million slots")
    };
    assert!(Description { min_slots: slots, ..many }.plan().unwrap().slots >= slots);
    let mut small = Description { max_memory_bytes: Some(1 << 20), ..Description::new(SchemeName::Bgv, 2) };
    let Err(Error::NoPlan { limit: Limit::Memory, nearest: Some(Nearest::MemoryBytes(bytes)), .. }) = small.plan()
    else {
        panic!("a mebibyte")
    };
    small.max_memory_bytes = Some(bytes);
    assert!(small.plan().unwrap().memory.unwrap().total_bytes <= bytes);
    small.max_memory_bytes = Some(bytes - 1);
    assert!(small.plan().is_err(), "a byte less is too few");
}

#[test]
fn the_static_rule_is_planned_and_decrypts() {
    let mut description = Description::new(SchemeName::Bgv, 3);
    (description.security, description.static_levels, description.rotations) = (Security::Insecure, true, vec![1, -1]);
    let plan = description.plan().unwrap();
    assert_eq!(plan.switch.len(), 5, "a level for each product, one for fresh ciphertexts, and the lowest");
    rotates_bgv(&plan);
    description.scheme = SchemeName::Bfv;
    assert_eq!(description.plan().unwrap_err().kind(), "request");
}
