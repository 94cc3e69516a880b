//! Plans for the caller's own functions: a run without data yields exactly the rotation keys, the levels, the noise of
//! each ciphertext and the memory that the run with data has.

use std::sync::Arc;

use synchromesh::circuits::Arithmetic;
use synchromesh::exact::{Ciphertext, Context, Evaluator, Scheme};
use synchromesh::plan::{Description, Limit, Plan, SchemeName};
use synchromesh::rlwe::ring::Backend;
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::rotations::Rotations;
use synchromesh::{Error, Result, bfv, bgv, ckks, exact};

/// Sums of eight neighbours times their product with the other row, rotated on in a loop.
fn function<S: Scheme, B: Backend>(e: &Evaluator<S, B>, x: &[Ciphertext<S, B>]) -> Result<Vec<Ciphertext<S, B>>> {
    let mut sum = x[0].duplicate(e.context())?;
    for step in [1, 2, 4] {
        sum = e.add(&sum, &e.rotate_rows(&sum, step)?)?;
    }
    let other = e.rotate_columns(&sum)?;
    let mut product = e.mul(&sum, &other)?;
    for _ in 0..3 {
        product = e.add(&product, &e.rotate_rows(&product, -5)?)?;
    }
    Ok(vec![e.mul(&product, &x[1])?])
}

fn clear(x: &[i64], y: &[i64], row: usize, t: i64) -> Vec<i64> {
    let rotate = |x: &[i64], k: i64| -> Vec<i64> {
        let at = |i: usize| i / row * row + ((i % row) as i64 + k).rem_euclid(row as i64) as usize;
        (0..x.len()).map(|i| x[at(i)]).collect()
    };
    let each = |x: &[i64], y: &[i64], f: fn(i64, i64) -> i64| -> Vec<i64> {
        x.iter().zip(y).map(|(x, y)| f(*x, *y).rem_euclid(t)).collect()
    };
    let mut sum = x.to_vec();
    for step in [1, 2, 4] {
        sum = each(&sum, &rotate(&sum, step), |x, y| x + y);
    }
    let other: Vec<i64> = (0..x.len()).map(|i| sum[(i + row) % (2 * row)]).collect();
    let mut product = each(&sum, &other, |x, y| x * y);
    for _ in 0..3 {
        product = each(&product, &rotate(&product, -5), |x, y| x + y);
    }
    each(&product, y, |x, y| x * y)
}

fn keys_of(plan: &Plan) -> Rotations {
    Rotations { swap: plan.swap, ..Rotations::by(plan.rotation_keys().iter().copied()) }
}

/// Runs the function by the plan with these keys, and compares it with plain integers.
fn run<S: Scheme>(params: exact::Params<S>, plan: &Plan, steps: Rotations) -> Result<()> {
    let context = Context::new(params)?;
    let mut randomness = Randomness::insecure_from_number(3);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &steps, &mut randomness)?;
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys))).with_routes(plan.routes.clone().map(Arc::new));
    let n = context.params().n();
    let values: [Vec<i64>; 2] = [3, 7].map(|f| (0..n as i64).map(|i| f * i % 101 - 50).collect());
    let encrypt = |values: &Vec<i64>, randomness: &mut Randomness| {
        context.encrypt(&public, &context.encode(&values[..])?, randomness)
    };
    let inputs = [encrypt(&values[0], &mut randomness)?, encrypt(&values[1], &mut randomness)?];
    let result = &function(&evaluator, &inputs)?[0];
    let last = plan.nodes.last().expect("the function makes ciphertexts");
    let noise = context.params().log2_modulus(result.level())? - context.noise_budget(result)?;
    assert_eq!((last.level, last.components), (result.level(), 2));
    assert!((last.noise_bits - noise).abs() < 1e-6, "certificates are the same with and without data");
    let out = context.decode(&context.decrypt(&secret, result)?)?;
    let expected = clear(&values[0], &values[1], n / 2, 65537);
    assert!(out.iter().zip(expected).all(|(out, value)| (out - value).rem_euclid(65537) == 0));
    Ok(())
}

fn description(scheme: SchemeName) -> Description {
    Description { security: Security::Insecure, ..Description::new(scheme, 0) }
}

#[test]
fn a_function_gets_exactly_the_rotation_keys_it_needs() {
    let plan = description(SchemeName::Bgv).plan_exact::<bgv::Bgv>(2, function).unwrap();
    assert_eq!((&plan.rotations[..], plan.swap), (&[-5, 1, 2, 4][..], true));
    assert!(plan.depth >= 2);
    let params = plan.bgv().unwrap();
    run(params.clone(), &plan, keys_of(&plan)).unwrap();
    for left_out in 0..5 {
        let mut steps = keys_of(&plan);
        if left_out < 4 {
            steps.by.remove(left_out);
        } else {
            steps.swap = false;
        }
        let error = run(params.clone(), &plan, steps).unwrap_err();
        assert_eq!(error.kind(), "missing_key", "key {left_out} is needed");
    }
    let plan = description(SchemeName::Bfv).plan_exact::<bfv::Bfv>(2, function).unwrap();
    assert_eq!((&plan.rotations[..], plan.swap), (&[-5, 1, 2, 4][..], true));
    run(plan.bfv().unwrap(), &plan, keys_of(&plan)).unwrap();
}

#[test]
fn the_report_names_every_ciphertext_with_its_noise_and_memory() {
    let plan = description(SchemeName::Bgv).plan_exact::<bgv::Bgv>(2, function).unwrap();
    let count = |name: &str| plan.nodes.iter().filter(|node| node.operation == name).count();
    assert_eq!(["rotation", "product", "relinearisation"].map(count), [7, 2, 2], "{:?}", plan.nodes);
    assert!(count("sum") >= 6);
    for node in &plan.nodes {
        assert!(node.noise_bits < node.modulus_bits && node.bytes > 0, "{node:?}");
    }
    assert!(plan.nodes.windows(2).all(|w| w[1].level <= w[0].level || w[0].operation == "encryption"));
    let memory = plan.memory.unwrap();
    assert!(memory.total_bytes > plan.nodes.iter().map(|node| node.bytes).max().unwrap());
    let again = Plan::from_json(&plan.to_json().unwrap()).unwrap();
    assert_eq!(again.nodes.len(), plan.nodes.len());
    // CKKS too.
    let circuit = |e: &ckks::Evaluator<_>, x: &[ckks::Ciphertext<_>]| {
        let square = e.square(&x[0])?;
        Ok(vec![e.add(&square, &e.rotate(&square, 3)?)?])
    };
    let plan = description(SchemeName::Ckks).plan_ckks(&[1.0], circuit).unwrap();
    assert_eq!(plan.rotations, [3]);
    let names: Vec<&str> = plan.nodes.iter().map(|node| &*node.operation).collect();
    assert!(names.ends_with(&["product", "relinearisation", "rotation", "sum"]), "{names:?}");
}

#[test]
fn sums_above_1_widen_level_0_and_take_no_level() {
    let description = Description { security: Security::Insecure, ..Description::new(SchemeName::Ckks, 0) };
    let doubled = |times: usize| {
        description.plan_ckks(&[1.0], move |e, x| {
            let mut sum = e.duplicate(&x[0])?;
            for _ in 0..times {
                sum = e.add(&sum, &sum)?;
            }
            Ok(vec![sum])
        })
    };
    let (one, thousand) = (doubled(0).unwrap(), doubled(10).unwrap());
    assert_eq!((one.depth, thousand.depth), (0, 0));
    // The error grows with the sum, which the scale pays; level 0 is wider than the scale by the sum's bits.
    let above = |plan: &Plan| plan.q_bits.iter().sum::<u32>() - plan.ckks().unwrap().literal().log_scale;
    assert!(above(&thousand) >= above(&one) + 8, "{:?} {:?}", one.q_bits, thousand.q_bits);
    assert!(thousand.explain.iter().any(|line| line.contains("results above 1")), "{:?}", thousand.explain);
    // A product still takes its level.
    let product = description.plan_ckks(&[1.0], |e, x| Ok(vec![e.mul(&x[0], &x[0])?]));
    assert_eq!(product.unwrap().depth, 1);
}

#[test]
fn a_function_keeps_budgets_or_says_what_it_takes() {
    let whole = description(SchemeName::Bgv).plan_exact::<bgv::Bgv>(2, function).unwrap();
    let budget = Some(whole.key_bytes - 1);
    let tight = Description { max_key_bytes: budget, ..description(SchemeName::Bgv) };
    let plan = tight.plan_exact::<bgv::Bgv>(2, function).unwrap();
    assert!(Some(plan.key_bytes) <= budget && plan.key_bytes < whole.key_bytes);
    run(plan.bgv().unwrap(), &plan, keys_of(&plan)).unwrap();
    let small = Description { max_memory_bytes: Some(1 << 16), ..description(SchemeName::Bgv) };
    let error = small.plan_exact::<bgv::Bgv>(2, function).unwrap_err();
    assert!(matches!(error, Error::NoPlan { limit: Limit::Memory, nearest: Some(_), .. }), "{error}");
}
