//! Circuits of BFV and BGV judged by decryption against vectors modulo t, their certificates against errors measured.

use std::sync::Arc;

use crate::oracle::{self, Ct, Fixture, Judged, Model, T128, big, deep, fixture};
use num_bigint::BigInt;
use synchromesh::batch::BatchError;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::{
    Arithmetic, Coefficient, LinearTransform, Polynomial, SlotShape, SlotSum, inner_product, masked, product,
    replicate_blocks,
};
use synchromesh::exact::{Context, Evaluator, Rotations};
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::{Error, Result};

const SHAPE: SlotShape = SlotShape { row: 512, rows: 2 };

fn made<S: Judged>(t: &str, depth: usize, steps: Rotations, seed: u64) -> Fixture<S> {
    let bits = big(t).bits() as u32 + 30;
    fixture(deep(10, t, bits, bits, depth), &steps, seed)
}

fn products<S: Judged>() {
    let mut f: Fixture<S> = made("65537", 3, Rotations::default(), 31);
    let values: Vec<Model> = (0..7).map(|_| f.random()).collect();
    let cts: Vec<Ct<S>> = values.iter().map(|m| f.encrypt(m)).collect();
    for count in [1, 2, 3, 5, 7] {
        let result = product(&f.evaluator, &cts[..count].iter().collect::<Vec<_>>()).unwrap();
        let expected = values[1..count].iter().fold(values[0].clone(), |p, m| f.mul(&p, m));
        f.judge(&result, &expected);
        if count > 1 {
            let (a, b) = cts[..count].split_at(count / 2);
            let result =
                inner_product(&f.evaluator, &a.iter().collect::<Vec<_>>(), &b[..a.len()].iter().collect::<Vec<_>>());
            let terms = (0..a.len()).map(|i| f.mul(&values[i], &values[count / 2 + i]));
            f.judge(&result.unwrap(), &terms.reduce(|x, y| f.add(&x, &y)).unwrap());
        }
    }
    // An operand that already went down, a product of other factors beside it.
    let low = f.evaluator.mod_switch(&cts[2]).unwrap();
    let result = inner_product(&f.evaluator, &[&cts[0], &low], &[&cts[1], &cts[3]]).unwrap();
    f.judge(&result, &f.add(&f.mul(&values[0], &values[1]), &f.mul(&values[2], &values[3])));
    let refused = inner_product(&f.evaluator, &[&cts[0]], &[]).err();
    assert_eq!(refused.map(|e| e.kind()), Some("shape"));
}

#[test]
fn products_and_inner_products_decrypt() {
    products::<Bfv>();
    products::<Bgv>();
}

/// The polynomial by Horner's rule.
fn horner<S: Judged>(f: &Fixture<S>, coefficients: &[Coefficient<BigInt>], x: &Model) -> Model {
    let n = x.len();
    let vector = |c: &Coefficient<BigInt>| -> Model {
        let mut m = match c {
            Coefficient::All(c) if f.has_slots() => vec![c.clone(); n],
            Coefficient::All(c) => vec![c.clone()],
            Coefficient::Slots(values) => values.clone(),
        };
        m.resize(n, BigInt::from(0));
        f.reduce(m)
    };
    coefficients.iter().rev().fold(vec![BigInt::from(0); n], |sum, c| f.add(&f.mul(&sum, x), &vector(c)))
}

fn polynomial<S: Judged>(t: &str, coefficients: Vec<Coefficient<BigInt>>, seed: u64) {
    let polynomial = Polynomial::power(coefficients.clone()).unwrap();
    let depth = polynomial.plan::<Evaluator<S, oracle::Device>>().depth;
    // One level more for coefficients as large as t.
    let mut f: Fixture<S> = made(t, depth + 1, Rotations::default(), seed);
    let m = f.random();
    let x = f.encrypt(&m);
    let result = polynomial.evaluate(&f.evaluator, &x).unwrap();
    f.judge(&result, &horner(&f, &coefficients, &m));
}

fn polynomials<S: Judged>() {
    for (t, degrees) in [("65537", vec![0, 1, 2, 5, 16, 23]), ("2", vec![3, 6]), (T128, vec![4])] {
        for degree in degrees {
            // As large as t, then small.
            let large = |i: usize| Coefficient::from(BigInt::from(big(t)) / 3 * (i as i64 + 1) + 1);
            polynomial::<S>(t, (0..=degree).map(large).collect(), 40 + degree as u64);
            polynomial::<S>(t, (0..=degree).map(|i| Coefficient::from(i as i64 % 7 - 3)).collect(), 41);
        }
    }
    // Odd, with one coefficient for each slot.
    let slots = |i: usize| Coefficient::from((0..1000).map(|j| (i * j) as i64 % 65_521).collect::<Vec<i64>>());
    polynomial::<S>("65537", vec![7.into(), slots(1), 0.into(), slots(3), 0.into(), 2.into()], 43);
}

#[test]
fn polynomials_decrypt_in_bfv() {
    polynomials::<Bfv>();
}

#[test]
fn polynomials_decrypt_in_bgv() {
    polynomials::<Bgv>();
}

fn sums<S: Judged>() {
    let all = [
        SlotSum::new(1),
        SlotSum::new(5),
        SlotSum::new(8).stride(-3),
        SlotSum::new(11).radix(4),
        SlotSum::new(64).stride(8).radix(8),
        SlotSum::all(SHAPE),
        SlotSum::new(4).stride(-1),
    ];
    let steps = all.iter().fold(Rotations::default(), |steps, sum| steps.and(&sum.rotations()));
    let mut f: Fixture<S> = made("65537", 1, steps, 51);
    let m = f.random();
    let x = f.encrypt(&m);
    let slid =
        |m: &Model, count: i64, stride: i64| (1..count).fold(m.clone(), |sum, i| f.add(&sum, &f.rotate(m, i * stride)));
    for (sum, count, stride) in [(0, 1, 1), (1, 5, 1), (2, 8, -3), (3, 11, 1), (4, 64, 8)] {
        f.judge(&all[sum].run(&f.evaluator, &x).unwrap(), &slid(&m, count, stride));
    }
    let total: BigInt = m.iter().sum();
    f.judge(&all[5].run(&f.evaluator, &x).unwrap(), &f.reduce(vec![total; 1024]));
    let blocks = (0..1024).map(|i| m[i / 4 * 4].clone()).collect();
    f.judge(&replicate_blocks(&f.evaluator, &x, 4).unwrap(), &blocks);
    let mask: Vec<BigInt> = (0..700).map(|i| (i * i % 5).into()).collect();
    let masks = (0..1024).map(|i| mask.get(i).cloned().unwrap_or_default()).collect();
    f.judge(&masked(&f.evaluator, &x, mask).unwrap(), &f.mul(&m, &masks));
    // Level 0, and a step without a key.
    let low = f.evaluator.mod_switch_to(&x, 0).unwrap();
    f.judge(&all[3].run(&f.evaluator, &low).unwrap(), &slid(&m, 11, 1));
    let error = SlotSum::new(3).stride(7).run(&f.evaluator, &x).err().unwrap();
    assert_eq!((error.kind(), error.to_string().contains("[7, 14]")), ("missing_key", true), "{error}");
}

#[test]
fn slot_sums_decrypt() {
    sums::<Bfv>();
    sums::<Bgv>();
}

/// A matrix of the size named, most entries 0 except near `width` diagonals.
fn matrix(rows: usize, columns: usize, keep: impl Fn(usize, usize) -> bool, t: &BigInt) -> Vec<Vec<BigInt>> {
    let entry = |r: usize, c: usize| {
        if keep(r, c) { (BigInt::from(r * 31 + c * 17 + 1) * 0x9e37_79b9i64) % t } else { 0.into() }
    };
    (0..rows).map(|r| (0..columns).map(|c| entry(r, c)).collect()).collect()
}

fn times<S: Judged>(f: &Fixture<S>, matrix: &[Vec<BigInt>], m: &Model) -> Model {
    let dot = |row: &Vec<BigInt>| row.iter().zip(m).map(|(a, b)| a * b).sum::<BigInt>();
    let mut out: Model = matrix.iter().map(dot).collect();
    out.resize(m.len(), BigInt::from(0));
    f.reduce(out)
}

fn transforms<S: Judged>(t: &str) {
    let modulus = BigInt::from(big(t));
    let dense = matrix(5, 7, |_, _| true, &modulus);
    let banded = matrix(512, 512, |r, c| [0, 1, 2, 3, 5, 17, 40].contains(&((c + 512 - r) % 512)), &modulus);
    let wide = matrix(1024, 1024, |r, c| c % 512 == (r + 3) % 512 || c == r, &modulus);
    let small = matrix(8, 8, |_, _| true, &modulus);
    // Rows and columns of 22 numbers swapped: steps of 21 slots, which go around the row.
    let turned = matrix(484, 484, |r, c| c == r % 22 * 22 + r / 22, &modulus);
    let maps = [
        (LinearTransform::from_dense(SHAPE, &turned).unwrap(), 8),
        (LinearTransform::from_dense(SHAPE, &dense).unwrap(), 4),
        (LinearTransform::from_dense(SHAPE, &banded).unwrap(), 8),
        (LinearTransform::from_dense(SHAPE, &wide).unwrap(), 2),
    ];
    let repeated = LinearTransform::repeated(SHAPE, &small).unwrap();
    assert_eq!(maps.each_ref().map(|(map, _)| map.diagonals()), [43, 11, 7, 3]);
    // Baby steps of 21, not of 1.
    let turned_steps = maps[0].0.rotations(maps[0].0.baby_steps());
    assert!(turned_steps.by.len() <= 14, "{turned_steps:?}");
    assert_eq!(repeated.diagonals(), 8);
    let steps = maps.iter().fold(repeated.rotations(4), |steps, (map, baby)| {
        steps.and(&map.rotations(*baby)).and(&map.rotations(map.baby_steps()))
    });
    let mut f: Fixture<S> = made(t, 2, steps, 61);
    let m = f.random();
    let x = f.encrypt(&m);
    for ((map, baby), matrix) in maps.iter().zip([&turned, &dense, &banded, &wide]) {
        let expected = times(&f, matrix, &m);
        for level in [2, 1] {
            let prepared = map.prepare_with(&f.evaluator, level, *baby).unwrap();
            assert_eq!(prepared.level(), level);
            f.judge(&prepared.apply(&f.evaluator, &x).unwrap(), &expected);
        }
        f.judge(&map.prepare(&f.evaluator, 1).unwrap().apply(&f.evaluator, &x).unwrap(), &expected);
        f.judge(&map.apply(&f.evaluator, &x).unwrap(), &expected);
    }
    let periodic: Model = (0..1024).map(|i| m[i % 8].clone()).collect();
    let y = f.encrypt(&periodic);
    let image = times(&f, &small, &periodic[..8].to_vec());
    let prepared = repeated.prepare_with(&f.evaluator, 1, 4).unwrap();
    f.judge(&prepared.apply(&f.evaluator, &y).unwrap(), &(0..1024).map(|i| image[i % 8].clone()).collect());
    let mut other = repeated.clone();
    other.add_diagonal(300, false, vec![1.into()]).unwrap();
    let error = other.prepare_with(&f.evaluator, 1, 4).err().unwrap();
    // From the giant step 4 to 300.
    assert!(error.kind() == "missing_key" && error.to_string().contains("296"), "{error}");
    let low = f.evaluator.mod_switch_to(&x, 0).unwrap();
    assert_eq!(prepared.apply(&f.evaluator, &low).err().map(|e| e.kind()), Some("level"));
    assert_eq!(LinearTransform::from_dense(SHAPE, &[vec![modulus; 1025]]).err().map(|e| e.kind()), Some("shape"));
}

#[test]
fn linear_transforms_decrypt_in_bfv() {
    transforms::<Bfv>("65537");
}

#[test]
fn linear_transforms_decrypt_in_bgv() {
    transforms::<Bgv>("65537");
    transforms::<Bgv>(T128);
}

#[test]
fn one_pass_costs_fewer_transforms_than_rotations_one_by_one() {
    let diagonals = (0..16).map(|k| (k, vec![BigInt::from(k + 1); 1024]));
    let map = LinearTransform::from_diagonals(SHAPE, diagonals).unwrap();
    let mut f: Fixture<Bgv> = made("65537", 2, map.rotations(16).and(&map.rotations(4)), 71);
    let m = f.random();
    let x = f.encrypt(&m);
    let prepared = [4, 16].map(|baby| map.prepare_with(&f.evaluator, 2, baby).unwrap());
    let backend = f.context.backend();
    // Keys are prepared at first use.
    let warm = |work: &dyn Fn() -> Ct<Bgv>| {
        work();
        backend.measure(work)
    };
    let (one, rotate) = warm(&|| f.evaluator.rotate_rows(&x, 1).unwrap());
    let (split, four) = warm(&|| prepared[0].apply(&f.evaluator, &x).unwrap());
    let (flat, sixteen) = warm(&|| prepared[1].apply(&f.evaluator, &x).unwrap());
    assert!(four.ntt < 5 * rotate.ntt && sixteen.ntt < 2 * rotate.ntt, "{rotate:?} {four:?} {sixteen:?}");
    f.judge(&one, &f.rotate(&m, 1));
    let expected =
        (0..16).fold(f.scale(&m, &0.into()), |sum, k| f.add(&sum, &f.scale(&f.rotate(&m, k), &(k + 1).into())));
    f.judge(&split, &expected);
    f.judge(&flat, &expected);
    assert_eq!(f.evaluator.slots().unwrap(), SHAPE);
}

/// A cubic of the sum of four slots, 3 apart.
fn cubic_of_sums<A: Arithmetic<Scalar = BigInt>>(arithmetic: &A, x: &A::Ciphertext) -> Result<A::Ciphertext> {
    let sum = SlotSum::new(4).stride(3).run(arithmetic, x)?;
    Polynomial::power([1i64, -2, 0, 5])?.evaluate(arithmetic, &sum)
}

#[test]
fn a_run_without_data_finds_the_rotations_and_parameters_of_a_circuit() {
    let description = Description { security: Security::Insecure, ..Description::new(SchemeName::Bgv, 1) };
    let plan = description.plan_exact::<Bgv>(1, |e, x| Ok(vec![cubic_of_sums(e, &x[0])?])).unwrap();
    assert_eq!((plan.rotations.as_slice(), plan.swap), (&[3, 6][..], false));
    let context = Context::<Bgv>::new(plan.bgv().unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let keys = context.generate_evaluation_keys(&secret, &Rotations::by(plan.rotations), &mut randomness).unwrap();
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    let values: Vec<i64> = (0..plan.slots as i64).map(|i| i * i % 1009).collect();
    let x = context.encrypt(&public, &context.encode(&values).unwrap(), &mut randomness).unwrap();
    let result = cubic_of_sums(&evaluator, &x).unwrap();
    let out = context.decode(&context.decrypt(&secret, &result).unwrap()).unwrap();
    for j in 0..100 {
        let s: i64 = (0..4).map(|i| values[j + 3 * i]).sum();
        let expected = (i128::from(s).pow(3) * 5 - 2 * i128::from(s) + 1).rem_euclid(65_537);
        assert_eq!(i128::from(out[j]).rem_euclid(65_537), expected, "slot {j}");
    }
    let other = description.plan_exact::<Bfv>(1, |_, _| Ok(vec![]));
    assert_eq!(other.err().map(|e| e.kind()), Some("request"));
    let own =
        description.plan_exact::<Bgv>(1, |_, _| Err(Error::Batch(BatchError::TooManyValues { given: 2, capacity: 1 })));
    assert_eq!(own.err().map(|e| e.kind()), Some("too_many_values"));
}
