//! BFV and BGV with extreme numbers: see `extremes`.

use crate::extremes::Findings;
use crate::oracle::{Ct, Fixture, Judged, Model, deep, fixture};
use num_bigint::BigInt;
use std::sync::Arc;
use synchromesh::Result;
use synchromesh::bfv::{Bfv, Encoding, Encryption};
use synchromesh::bgv::Bgv;
use synchromesh::circuits::functions::Table;
use synchromesh::circuits::{
    Arithmetic, Coefficient, Combination, LinearTransform, MatrixArithmetic, Polynomial, SlotShape, SlotSum, masked,
    replicate_blocks,
};
use synchromesh::exact::{Evaluator, Rotations};
use synchromesh::rlwe::{Randomness, SecretKey};

const N: usize = 1 << 10;
const SHAPE: SlotShape = SlotShape { row: N / 2, rows: 2 };

type Outcome<S> = Result<(Ct<S>, Model)>;
type Operation<S> = (&'static str, fn(&mut Fixture<S>, &Ct<S>, &Model, &BigInt) -> Outcome<S>);

/// Limits modulo t and of machine words, and what is just beside them.
fn numbers(t: &BigInt) -> Vec<BigInt> {
    let one = BigInt::from(1);
    let limits: [BigInt; 8] = [
        0.into(),
        t / BigInt::from(2),
        t.clone(),
        t * BigInt::from(2),
        i64::MAX.into(),
        u64::MAX.into(),
        &one << 256,
        &one << 1000,
    ];
    let beside = |x: &BigInt| [x - 1, x.clone(), x + 1];
    limits.iter().flat_map(beside).flat_map(|x| [-&x, x]).collect()
}

fn all(v: &BigInt) -> Model {
    vec![v.clone(); N]
}

fn weighted<S: Judged>(
    f: &Fixture<S>,
    x: &Ct<S>,
    w: Coefficient<BigInt>,
    c: Option<Coefficient<BigInt>>,
) -> Result<Ct<S>> {
    f.evaluator.combine(&Combination { products: vec![], weights: vec![(x, &w)], constant: c.as_ref() })
}

fn map<S: Judged>(f: &Fixture<S>, x: &Ct<S>, diagonals: Vec<(i64, Model)>) -> Result<Ct<S>> {
    LinearTransform::from_diagonals(SHAPE, diagonals)?.apply(&f.evaluator, x)
}

fn operations<S: Judged>() -> Vec<Operation<S>> {
    vec![
        ("encode in slots", |f, _, _, v| {
            let pt = f.context.encode(&all(v))?;
            Ok((f.context.encrypt(&f.public, &pt, &mut f.randomness)?, f.reduce(all(v))))
        }),
        ("encode in coefficients", |f, _, _, v| {
            let pt = f.context.encode_coefficients(std::slice::from_ref(v))?;
            Ok((f.context.encrypt_with_secret(&f.secret, &pt, &mut f.randomness)?.0, f.reduce(all(v))))
        }),
        ("mul_scalar", |f, x, m, v| Ok((f.evaluator.mul_scalar(x, v.clone())?, f.scale(m, v)))),
        ("mul_plain", |f, x, m, v| Ok((f.evaluator.mul_plain(x, &f.context.encode(&all(v))?)?, f.scale(m, v)))),
        ("mul_plain of public norms", |f, x, m, v| {
            Ok((f.evaluator.mul_plain(x, &f.context.encode(&all(v))?.with_public_norms())?, f.scale(m, v)))
        }),
        ("add_plain", |f, x, m, v| Ok((f.evaluator.add_plain(x, &f.context.encode(&all(v))?)?, f.add(m, &all(v))))),
        ("sub_plain", |f, x, m, v| Ok((f.evaluator.sub_plain(x, &f.context.encode(&all(v))?)?, f.sub(m, &all(v))))),
        ("a weight for all", |f, x, m, v| Ok((weighted(f, x, v.clone().into(), None)?, f.scale(m, v)))),
        ("a weight a slot", |f, x, m, v| Ok((weighted(f, x, all(v).into(), None)?, f.scale(m, v)))),
        ("weights of a sum", |f, x, m, v| {
            let (w, slots) = (Coefficient::from(v.clone()), Coefficient::from(all(v)));
            Ok((f.evaluator.weighted_sum(&[(x, &w), (x, &slots), (x, &w)])?, f.scale(m, &(v * 3))))
        }),
        ("a constant", |f, x, m, v| Ok((weighted(f, x, 1.into(), Some(v.clone().into()))?, f.add(m, &all(v))))),
        ("a constant a slot", |f, x, m, v| Ok((weighted(f, x, 1.into(), Some(all(v).into()))?, f.add(m, &all(v))))),
        ("masked", |f, x, m, v| Ok((masked(&f.evaluator, x, all(v))?, f.scale(m, v)))),
        ("a mask that chooses", |f, x, m, v| {
            let (a, b) = (f.evaluator.hoist(x, false)?, f.evaluator.hoist(&f.evaluator.mul_scalar(x, 0)?, false)?);
            let (pair, mask) = (f.evaluator.pair(&a, &b)?, f.evaluator.mask(std::slice::from_ref(v), x.level())?);
            Ok((f.evaluator.chosen([&a, &b], &pair, &mask, 0, x.level())?, f.scale(m, v)))
        }),
        ("a linear map of one diagonal", |f, x, m, v| Ok((map(f, x, vec![(0, all(v))])?, f.scale(m, v)))),
        ("a linear map of two diagonals", |f, x, m, v| {
            let expected = f.add(&f.scale(m, v), &f.rotate(m, 1));
            Ok((map(f, x, vec![(0, all(v)), (1, all(&1.into()))])?, expected))
        }),
        ("a polynomial", |f, x, m, v| {
            let expected = f.add(&f.scale(m, v), &f.scale(&f.mul(m, m), v));
            Ok((Polynomial::power([0.into(), v.clone(), v.clone()])?.evaluate(&f.evaluator, x)?, expected))
        }),
        // The line through 0 and v is that of all values.
        ("a table", |f, x, m, v| {
            let t = f.context.params().t().value().clone().into();
            let table = Table::new(0, [0.into(), v.clone(), v * 2])?;
            Ok((table.evaluate(&f.evaluator, &t, &[x])?, f.scale(m, v)))
        }),
        ("a polynomial's constant", |f, x, m, v| {
            Ok((Polynomial::power([v.clone(), 1.into()])?.evaluate(&f.evaluator, x)?, f.add(m, &all(v))))
        }),
    ]
}

fn made<S: Judged>(t: &str) -> Fixture<S> {
    fixture(deep(10, t, 60, 60, 2), &Rotations::by([1, -1, 5]).and_swap(), 340)
}

fn judged<S: Judged>(f: &Fixture<S>, outcome: Outcome<S>) -> Option<std::result::Result<(), String>> {
    let (ct, expected) = outcome.ok()?;
    let measured = S::measure(f, &ct, &f.encode(&expected));
    let bound = ct.noise().bound(f.context.params().log_n(), 128);
    let right = f.context.decrypt(&f.secret, &ct).is_ok_and(|plain| f.decode(&plain) == expected);
    Some(match (measured <= bound + 0.001, right) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("error 2^{measured:.2} above its certificate 2^{bound:.2}")),
        (_, false) => Err("decrypted wrongly".to_owned()),
    })
}

fn extreme_numbers<S: Judged>(t: &str) {
    let mut f = made::<S>(t);
    let m = f.random();
    let x = f.encrypt(&m);
    let mut findings = Findings::default();
    for (name, operation) in operations::<S>() {
        for v in numbers(&f.t()) {
            findings.call(
                || format!("{} modulo {t}: {name}, {v}", S::NAME),
                || {
                    let outcome = operation(&mut f, &x, &m, &v);
                    judged(&f, outcome)
                },
            );
        }
    }
    findings.finish();
}

fn extreme_steps<S: Judged>() {
    let mut f = made::<S>("65537");
    let m = f.random();
    let x = f.encrypt(&m);
    let mut findings = Findings::default();
    let (f, e) = (&f, &f.evaluator);
    for k in [0, 1, -1, 5, 512, 513, -511, i64::MAX, i64::MIN, i64::MIN + 1] {
        let expected = || f.rotate(&m, k % 512);
        findings.call(|| format!("rotate_rows {k}"), || judged(f, e.rotate_rows(&x, k).map(|ct| (ct, expected()))));
        findings.call(
            || format!("rotate_rows_many {k}"),
            || judged(f, e.rotate_rows_many(&x, &[k, 1]).map(|mut cts| (cts.remove(0), expected()))),
        );
        findings.call(
            || format!("diagonal {k}"),
            || judged(f, map(f, &x, vec![(k, all(&1.into()))]).map(|ct| (ct, expected()))),
        );
        findings.call(
            || format!("sum with stride {k}"),
            || judged(f, SlotSum::new(2).stride(k).run(e, &x).map(|ct| (ct, f.add(&m, &expected())))),
        );
    }
    // Modulo 2^64, and so modulo the row, four times this is nothing.
    let (four, sum) = (BigInt::from(4), SlotSum::new(4).stride(1 << 62).run(e, &x));
    findings.call(|| "a stride that overflows".to_owned(), || judged(f, sum.map(|ct| (ct, f.scale(&m, &four)))));
    findings.finish();
}

fn extreme_counts<S: Judged>() {
    let mut f = made::<S>("65537");
    let m = f.random();
    let x = f.encrypt(&m);
    let mut findings = Findings::default();
    let (f, e) = (&f, &f.evaluator);
    for count in [0, 1, 2, 3, 511, 512, 513, N, N + 1, 2 * N - 1, 1 << 20, usize::MAX / 2, usize::MAX] {
        findings.call(
            || format!("sum of {count}"),
            || {
                judged(
                    f,
                    SlotSum::new(count).stride(0).radix(count).run(e, &x).map(|ct| (ct, f.scale(&m, &count.into()))),
                )
            },
        );
        findings.call(
            || format!("blocks of {count}"),
            || {
                // What blocks of more slots hold is tested with the circuits.
                let ct = replicate_blocks(e, &x, count).ok()?;
                if count == 1 { judged(f, Ok((ct, m.clone()))) } else { Some(Ok(())) }
            },
        );
        findings.call(|| format!("level {count}"), || judged(f, e.mod_switch_to(&x, count).map(|ct| (ct, m.clone()))));
        findings.call(
            || format!("automorphism {count}"),
            || {
                // Only 1, 3 and 2N - 1 are elements that there are keys for; what they do is tested elsewhere.
                e.automorphism(&x, count).ok().map(|_| Ok(()))
            },
        );
        findings.call(
            || format!("relinearised to level {count}"),
            || {
                let product = e.mul_no_relin(&x, &x).and_then(|p| e.relinearize_to(&p, count));
                judged(f, product.map(|ct| (ct, f.mul(&m, &m))))
            },
        );
        let values = || all(&1.into()).into_iter().cycle().take(count.min(2 * N)).collect::<Model>();
        findings.call(
            || format!("{count} ones"),
            || {
                let expected = || (0..N).map(|i| &m[i] + i32::from(i < count)).collect();
                judged(
                    f,
                    f.context.encode(&values()).and_then(|v| e.add_plain(&x, &v)).map(|ct| (ct, f.reduce(expected()))),
                )
            },
        );
        findings.call(
            || format!("{count} weights"),
            || {
                let expected = || (0..N).map(|i| if i < count { m[i].clone() } else { 0.into() }).collect();
                judged(f, weighted(f, &x, values().into(), None).map(|ct| (ct, expected())))
            },
        );
    }
    findings.finish();
}

#[test]
fn extreme_numbers_are_refused_or_keep_the_certificate_in_bfv() {
    ["65537", "12289", crate::oracle::T128].into_iter().for_each(extreme_numbers::<Bfv>);
}

#[test]
fn extreme_numbers_are_refused_or_keep_the_certificate_in_bgv() {
    ["65537", "12289", crate::oracle::T128].into_iter().for_each(extreme_numbers::<Bgv>);
}

#[test]
fn extreme_counts_and_steps_are_refused_or_keep_the_certificate_in_bfv_and_bgv() {
    extreme_steps::<Bfv>();
    extreme_steps::<Bgv>();
    extreme_counts::<Bfv>();
    extreme_counts::<Bgv>();
}

/// The same secret in two contexts, under one name: nothing but the parameters tells their objects apart.
fn foreign_objects<S: Judged>() {
    let (mut f, g) = (made::<S>("65537"), fixture::<S>(deep(10, "65537", 60, 59, 2), &Rotations::none(), 341));
    let (m, mut randomness) = (f.random(), Randomness::insecure_from_number(342));
    let here = f.encrypt(&m);
    let twin = SecretKey::from_small(g.context.rlwe(), f.secret.id(), f.secret.small().clone()).unwrap();
    let keys = g.context.generate_evaluation_keys(&twin, &Rotations::by([1]), &mut randomness).unwrap();
    let e = Evaluator::new(&g.context, Some(Arc::new(keys)));
    let (there, _) = g.context.encrypt_with_secret(&twin, &f.encode(&m), &mut randomness).unwrap();
    let refused = |what: &str, made: Result<()>| {
        assert_eq!(made.err().map(|e| e.kind()), Some("params_differ"), "{}: {what}", S::NAME);
    };
    refused("a secret key", g.context.decrypt(&f.secret, &there).map(drop));
    refused("a ciphertext", g.context.decrypt(&twin, &here).map(drop));
    let hoisted = f.evaluator.hoist(&here, true).unwrap();
    refused("what was hoisted", e.rotated(&hoisted, 1).map(drop));
    refused("what was hoisted, in a difference", e.pair(&hoisted, &hoisted).map(drop));
    let map = LinearTransform::from_diagonals(SHAPE, [(0, m)]).unwrap();
    let map = map.prepare(&f.evaluator, there.level()).unwrap();
    refused("a map", map.apply(&e, &there).map(drop));
}

#[test]
fn objects_of_other_parameters_are_refused_in_bfv_and_bgv() {
    foreign_objects::<Bfv>();
    foreign_objects::<Bgv>();
}

#[test]
fn every_way_of_encrypting_and_raising_keeps_the_certificate_or_refuses() {
    let mut f = made::<Bfv>("65537");
    let half: BigInt = f.t() / BigInt::from(2);
    let m = f.reduce(all(&-half));
    let pt = f.encode(&m);
    let mut findings = Findings::default();
    for level in [0, 1, 2, 3, usize::MAX] {
        for scaled in [false, true] {
            for encoding in [Encoding::Rounded, Encoding::Floor] {
                let how = Encryption { encoding, scaled };
                findings.call(
                    || format!("{how:?} at {level}"),
                    || {
                        let ct = f.context.encrypt_by(how, &f.public, &pt, level, &mut f.randomness);
                        judged(&f, ct.map(|ct| (ct, m.clone())))
                    },
                );
            }
        }
        let low = f.encrypt_at(&m, 0);
        findings.call(
            || format!("raised to {level}"),
            || judged(&f, f.evaluator.mod_raise_to(&low, level).map(|ct| (ct, m.clone()))),
        );
    }
    findings.finish();
}
