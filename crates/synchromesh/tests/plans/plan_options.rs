//! Every option of a plan through files: keys, encryption, three evaluations after one another, decryption.

use synchromesh::Result;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::MatrixArithmetic;
use synchromesh::ckks::Ckks;
use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::wire::EnvelopeKey;
use synchromesh::rlwe::{PrimeSwitching, Randomness, Security};
use synchromesh::scheme::Scheme;

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

/// The plan's circuit with the plan's keys on X over `divisor`.
fn through<S: Scheme>(plan: &Plan, divisor: f64, what: &str) {
    let session = plan.open::<S>().unwrap();
    let mut randomness = Randomness::insecure_from_number(3);
    let (secret, public) = session.generate_keys(&mut randomness).unwrap();
    let keys = session.generate_evaluation_keys(&secret, &mut randomness).unwrap();
    assert_eq!(keys.to_bytes(session.rlwe(), None).unwrap().len() as u64, plan.key_bytes, "{what}");
    let evaluator = session.evaluator(keys);
    let key = EnvelopeKey::from_bytes([7; 32]);
    let file = |x: &S::Ciphertext<Cpu>| {
        let bytes = S::write(session.context(), x, Some(&key))?;
        S::read(session.context(), &bytes, Some(secret.id()), Trust::Envelope(&key))
    };
    let scaled = X.map(|x| x as f64 / divisor);
    let x = match S::NAME {
        SchemeName::Ckks => session.encrypt(&public, scaled, &mut randomness),
        _ => session.encrypt(&public, X, &mut randomness),
    };
    let [y, z] = [scaled.map(|x| x * x), scaled.map(|x| x * x * x + x)];
    let w = std::array::from_fn(|i| y[i] * z[i]);
    for (made, values) in steps(&evaluator, &x.unwrap(), &file).unwrap().iter().zip([y, z, w]) {
        let found = session.decrypt(&secret, made).unwrap().reals();
        for (found, value) in found.iter().zip(values) {
            assert!((found - value).abs() < if divisor > 1.0 { 1e-3 } else { 1e-9 }, "{what}: {found} for {value}");
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
                SchemeName::Bfv => through::<Bfv>(&plan, 1.0, &what),
                SchemeName::Bgv => through::<Bgv>(&plan, 1.0, &what),
                SchemeName::Ckks => through::<Ckks>(&plan, 8.0, &what),
            }
        }
    }
}
