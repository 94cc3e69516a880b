//! Every option of a plan through files: keys, encryption, three evaluations after one another, decryption.

use std::sync::Arc;

use synchromesh::circuits::MatrixArithmetic;
use synchromesh::exact::{self, Scheme};
use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::wire::EnvelopeKey;
use synchromesh::rlwe::{PrimeSwitching, Randomness, Security};
use synchromesh::rotations::Rotations;
use synchromesh::{Result, bfv, bgv, ckks};

const X: [i64; 5] = [3, -4, 5, 0, 2];

/// y = x^2, z = x y + x and y z, each operand through a file, so that results go below every leading level.
fn steps<A: MatrixArithmetic>(
    e: &A,
    x: &A::Ciphertext,
    file: &impl Fn(&A::Ciphertext) -> Result<A::Ciphertext>,
) -> Result<[A::Ciphertext; 3]> {
    let y = file(&e.mul(x, x)?)?;
    let z = file(&e.add(&e.mul(&y, x)?, x)?)?;
    let w = file(&e.mul(&y, &z)?)?;
    Ok([y, z, w])
}

fn expected() -> [Vec<i64>; 3] {
    let (y, z) = (X.map(|x| x * x), X.map(|x| x * x * x + x));
    [y.to_vec(), z.to_vec(), (0..X.len()).map(|i| y[i] * z[i]).collect()]
}

fn through_exact<S: Scheme>(plan: &Plan, params: exact::Params<S>, what: &str)
where
    exact::Evaluator<S>: MatrixArithmetic<Ciphertext = exact::Ciphertext<S>>,
{
    let context = exact::Context::<S>::new(params).unwrap();
    let mut randomness = Randomness::insecure_from_number(3);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let rotations = Rotations { swap: plan.swap, ..Rotations::by(plan.rotation_keys().iter().copied()) };
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness).unwrap();
    let keys = plan.trim(context.rlwe(), keys).unwrap();
    assert_eq!(keys.to_bytes(context.rlwe(), None).unwrap().len() as u64, plan.key_bytes, "{what}");
    let evaluator = exact::Evaluator::new(&context, Some(Arc::new(keys)));
    let key = EnvelopeKey::from_bytes([7; 32]);
    let file = |x: &exact::Ciphertext<S>| {
        let bytes = x.to_bytes(&context, Some(&key))?;
        exact::Ciphertext::from_bytes(&context, &bytes, Some(secret.id()), Trust::Envelope(&key))
    };
    let x = context.encrypt(&public, &context.encode(&X).unwrap(), &mut randomness).unwrap();
    for (made, values) in steps(&evaluator, &x, &file).unwrap().iter().zip(expected()) {
        assert_eq!(context.decode(&context.decrypt(&secret, made).unwrap()).unwrap()[..5], values, "{what}");
    }
}

fn through_ckks(plan: &Plan, what: &str) {
    let context = ckks::Context::new(plan.ckks().unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(3);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let rotations = Rotations { swap: plan.swap, ..Rotations::by(plan.rotation_keys().iter().copied()) };
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness).unwrap();
    let keys = plan.trim(context.rlwe(), keys).unwrap();
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
    let key = EnvelopeKey::from_bytes([7; 32]);
    let file = |x: &ckks::Ciphertext| {
        let bytes = x.to_bytes(&context, Some(&key))?;
        ckks::Ciphertext::from_bytes(&context, &bytes, Some(secret.id()), Trust::Envelope(&key))
    };
    let scaled = X.map(|x| x as f64 / 8.0);
    let x = context.encrypt(&public, &context.encode(&scaled).unwrap(), &mut randomness).unwrap();
    let [y, z] = [scaled.map(|x| x * x), scaled.map(|x| x * x * x + x)];
    let w = std::array::from_fn(|i| y[i] * z[i]);
    for (made, values) in steps(&evaluator, &x, &file).unwrap().iter().zip([y, z, w]) {
        let found = context.decode(&context.decrypt(&secret, made).unwrap()).unwrap();
        for (found, value) in found.iter().zip(values) {
            assert!((found - value).abs() < 1e-3, "{what}: {found} for {value}");
        }
    }
}

/// A change of a description.
type Choice = Box<dyn Fn(&mut Description)>;

/// What a plan may be asked for beside scheme and depth.
fn options() -> Vec<(&'static str, Choice)> {
    let switching = PrimeSwitching::new(1, 2).unwrap();
    vec![
        ("nothing", Box::new(|_| ())),
        ("rotations", Box::new(|d| (d.rotations, d.swap) = (vec![1, -2], true))),
        ("additions", Box::new(|d| (d.additions, d.precision) = (3, Some(12)))),
        ("slots", Box::new(|d| d.min_slots = 600)),
        ("key bytes", Box::new(|d| (d.rotations, d.max_key_bytes) = (vec![1, 2, 3, 5], Some(280_000)))),
        ("memory", Box::new(|d| d.max_memory_bytes = Some(100_000_000))),
        ("digits", Box::new(|d| d.max_digits = Some(2))),
        ("width", Box::new(|d| d.width = Some(40))),
        ("prime switching", Box::new(move |d| d.prime_switching = Some(switching))),
        ("one leading level", Box::new(|d| d.leading_levels = 1)),
        ("two leading levels", Box::new(|d| d.leading_levels = 2)),
        ("three leading levels", Box::new(|d| d.leading_levels = 3)),
        ("both", Box::new(move |d| (d.prime_switching, d.leading_levels) = (Some(switching), 1))),
        ("rotation level", Box::new(|d| (d.rotations, d.rotation_level) = (vec![1], Some(1)))),
    ]
}

#[test]
fn every_option_computes_in_several_steps_through_files() {
    for scheme in [SchemeName::Bfv, SchemeName::Bgv, SchemeName::Ckks] {
        for (name, option) in options() {
            let mut description =
                Description { security: Security::Insecure, additions: 1, ..Description::new(scheme, 3) };
            option(&mut description);
            let plan = description.plan().unwrap();
            let plan = Plan::from_json(&plan.to_json().unwrap()).unwrap();
            let what = format!("{scheme:?}, {name}");
            match scheme {
                SchemeName::Bfv => through_exact::<bfv::Bfv>(&plan, plan.bfv().unwrap(), &what),
                SchemeName::Bgv => through_exact::<bgv::Bgv>(&plan, plan.bgv().unwrap(), &what),
                SchemeName::Ckks => through_ckks(&plan, &what),
            }
        }
    }
}
