//! CKKS with extreme numbers: see `extremes`.

use crate::ckks_fixture::{Fixture, Slots, fixture, literal, minus, plus, rotated, times, values, zip};
use crate::extremes::Findings;
use std::sync::Arc;
use synchromesh::Result;
use synchromesh::circuits::{
    Arithmetic, Coefficient, Combination, LinearTransform, MatrixArithmetic, Polynomial, SlotShape, SlotSum, masked,
    replicate_blocks,
};
use synchromesh::ckks::bootstrap::{Bootstrap, BootstrapLiteral, Bootstrapper, Chain, Messages};
use synchromesh::ckks::{Ciphertext, Complex64, Evaluator, ParamsLiteral, Release, Rotations};
use synchromesh::rlwe::{PublicKey, SecretKey, Security};
use synchromesh::search::Search;

const SHAPE: SlotShape = SlotShape { row: 512, rows: 1 };

/// What a call gives: a ciphertext and the message it should have.
type Outcome = Result<(Ciphertext, Slots)>;
type Operation = (&'static str, fn(&mut Fixture, &Ciphertext, &Slots, f64) -> Outcome);

/// Limits and what is just beside them.
fn numbers() -> Vec<f64> {
    let mut all =
        vec![0.0, 1.0, 0.5, 1.0 / 3.0, 1e9, f64::MAX, f64::MIN_POSITIVE, 5e-324, f64::EPSILON, 1.0 + f64::EPSILON];
    for log2 in [-201, -200, -100, -53, -40, 20, 40, 52, 53, 60, 100, 199, 200, 201, 500] {
        let power = 2f64.powi(log2);
        all.extend([power, power.next_up(), power.next_down()]);
    }
    let negative: Vec<f64> = all.iter().map(|x| -x).collect();
    all.extend(negative);
    all.extend([f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
    all
}

fn within(f: &Fixture, ct: &Ciphertext, expected: &Slots) -> std::result::Result<(), String> {
    let plain = f.context.decrypt(&f.secret, ct).map_err(|e| format!("a result that does not decrypt: {e}"))?;
    let slots = f.context.decode_complex(&plain).map_err(|e| e.to_string())?;
    let error = slots.iter().zip(expected).map(|(x, y)| (x.re - y.re).hypot(x.im - y.im)).fold(0.0, f64::max);
    let (bound, largest) = (f.context.error_bound(ct), expected.iter().map(|z| z.re.hypot(z.im)).fold(0.0, f64::max));
    // NaN is an excess.
    match (error <= bound, largest <= ct.bound() * (1.0 + 1e-9)) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("error 2^{:.2} above its certificate 2^{:.2}", error.log2(), bound.log2())),
        (_, false) => Err(format!("a message of {largest} above its bound {}", ct.bound())),
    }
}

fn all(v: f64) -> Slots {
    vec![v.into(); SHAPE.row]
}

fn scaled(x: &Slots, v: f64) -> Slots {
    zip(x, &all(v), times)
}

fn map(f: &Fixture, x: &Ciphertext, diagonals: Vec<(i64, Slots)>) -> Result<Ciphertext> {
    LinearTransform::from_diagonals(SHAPE, diagonals)?.apply(&f.evaluator, x)
}

fn weighted(
    f: &Fixture,
    x: &Ciphertext,
    w: Coefficient<Complex64>,
    c: Option<Coefficient<Complex64>>,
) -> Result<Ciphertext> {
    f.evaluator.combine(&Combination { products: vec![], weights: vec![(x, &w)], constant: c.as_ref() })
}

const OPERATIONS: &[Operation] = &[
    ("encode within a bound", |f, _, _, v| {
        let pt = f.context.encode_bounded(&[v; 512], v.abs())?;
        Ok((f.context.encrypt(&f.public, &pt, &mut f.randomness)?, all(v)))
    }),
    ("encode", |f, _, _, v| {
        let pt = f.context.encode(&[v; 512])?;
        Ok((f.context.encrypt_with_secret(&f.secret, &pt, 0, &mut f.randomness)?.0, all(v)))
    }),
    ("encode coefficients", |f, _, _, v| {
        let pt = f.context.encode_coefficients(&[v], v.abs())?;
        Ok((f.context.encrypt(&f.public, &pt, &mut f.randomness)?, all(v)))
    }),
    ("encode a query", |f, _, _, v| {
        let pt = Search::new(1, 0.5, 0.1).encode_query(&f.context, &[v])?;
        Ok((f.context.encrypt(&f.public, &pt, &mut f.randomness)?, all(v)))
    }),
    ("encode a column of records", |f, _, _, v| {
        let pt = Search::new(1, 0.5, 0.1).encode_column(&f.context, &[v as f32; 512], 0)?;
        Ok((f.context.encrypt(&f.public, &pt, &mut f.randomness)?, all(f64::from(v as f32))))
    }),
    ("encode what records carry", |f, _, _, v| {
        let pt = Search::encode_carried(&f.context, &[v as u16; 512], 1, 0)?;
        let expected = Complex64::new(f64::from(v as u16) / 512.0, 1.0);
        Ok((f.context.encrypt(&f.public, &pt, &mut f.randomness)?, vec![expected; 512]))
    }),
    ("a power of X", |f, x, slots, v| {
        // Slot s holds the root to the power of 3^s.
        let (turns, mut power) = ((v as i64).rem_euclid(2048), 1);
        let mut roots = Vec::new();
        for _ in 0..512 {
            let turn = std::f64::consts::PI * ((power * turns) % 2048) as f64 / 1024.0;
            roots.push(Complex64::new(turn.cos(), turn.sin()));
            power = power * 3 % 2048;
        }
        Ok((f.evaluator.mul_monomial(x, v as i64)?, zip(slots, &roots, times)))
    }),
    ("expand", |f, x, slots, v| Ok((f.evaluator.expand(x, v as usize)?.remove(0), slots.clone()))),
    ("encode ones within v", |f, _, _, v| {
        let pt = f.context.encode_bounded(&[1.0; 512], v)?;
        Ok((f.context.encrypt_at(&f.public, &pt, 1, &mut f.randomness)?, all(1.0)))
    }),
    ("mul_scalar", |f, x, m, v| Ok((f.evaluator.mul_scalar(x, v)?, scaled(m, v)))),
    ("mul_scalar by an imaginary number", |f, x, m, v| {
        let i = Complex64::new(0.0, v);
        Ok((f.evaluator.mul_scalar(x, i)?, zip(m, &vec![i; 512], times)))
    }),
    ("mul_scalar by 0, plus x", |f, x, m, v| {
        let product = f.evaluator.mul_scalar(x, v)?;
        Ok((f.evaluator.add(&product, &f.evaluator.mul_scalar(x, 0.0)?)?, scaled(m, v)))
    }),
    ("add_scalar", |f, x, m, v| Ok((f.evaluator.add_scalar(x, v)?, zip(m, &all(v), plus)))),
    ("add_scalar of a complex number", |f, x, m, v| {
        let c = Complex64::new(v, v);
        Ok((f.evaluator.add_scalar(x, c)?, zip(m, &vec![c; 512], plus)))
    }),
    ("mul_plain", |f, x, m, v| {
        Ok((f.evaluator.mul_plain(x, &f.context.encode_bounded(&[v; 512], v.abs())?)?, scaled(m, v)))
    }),
    ("mul_plain within v", |f, x, m, v| {
        Ok((f.evaluator.mul_plain(x, &f.context.encode_bounded(&[0.5; 512], v)?)?, scaled(m, 0.5)))
    }),
    ("add_plain", |f, x, m, v| {
        Ok((f.evaluator.add_plain(x, &f.context.encode_bounded(&[v; 512], v.abs())?)?, zip(m, &all(v), plus)))
    }),
    ("sub_plain", |f, x, m, v| {
        Ok((f.evaluator.sub_plain(x, &f.context.encode_bounded(&[v; 512], v.abs())?)?, zip(m, &all(v), minus)))
    }),
    ("a weight for all", |f, x, m, v| Ok((weighted(f, x, v.into(), None)?, scaled(m, v)))),
    ("a weight a slot", |f, x, m, v| Ok((weighted(f, x, vec![v; 512].into(), None)?, scaled(m, v)))),
    ("a constant", |f, x, m, v| Ok((weighted(f, x, 1.0.into(), Some(v.into()))?, zip(m, &all(v), plus)))),
    ("a constant a slot", |f, x, m, v| {
        Ok((weighted(f, x, 0.5.into(), Some(vec![v; 512].into()))?, zip(&scaled(m, 0.5), &all(v), plus)))
    }),
    ("masked", |f, x, m, v| Ok((masked(&f.evaluator, x, all(v))?, scaled(m, v)))),
    ("a mask that chooses", |f, x, m, v| {
        let (a, b) = (f.evaluator.hoist(x, false)?, f.evaluator.hoist(x, false)?);
        let mask = f.evaluator.mask(&[v.into(), 1.0.into()], x.level())?;
        Ok((f.evaluator.chosen([&a, &b], &(), &mask, 0, x.level() - 1)?, m.clone()))
    }),
    ("a mask that chooses, against 0", |f, x, m, v| {
        let zero = f.evaluator.mul_scalar(x, 0.0)?;
        let (a, b) = (f.evaluator.hoist(x, false)?, f.evaluator.hoist(&zero, false)?);
        let mask = f.evaluator.mask(&[v.into()], x.level())?;
        Ok((f.evaluator.chosen([&a, &b], &(), &mask, 0, x.level() - 1)?, scaled(m, v)))
    }),
    ("a linear map of one diagonal", |f, x, m, v| Ok((map(f, x, vec![(0, all(v))])?, scaled(m, v)))),
    ("a linear map of two diagonals", |f, x, m, v| {
        let expected = zip(&scaled(m, v), &rotated(m, 1), plus);
        Ok((map(f, x, vec![(0, all(v)), (1, all(1.0))])?, expected))
    }),
    ("a polynomial", |f, x, m, v| {
        let square = zip(m, m, times);
        Ok((Polynomial::power([0.0, v, v])?.evaluate(&f.evaluator, x)?, zip(&scaled(m, v), &scaled(&square, v), plus)))
    }),
    ("a polynomial's constant", |f, x, m, v| {
        Ok((Polynomial::power([v, 1.0])?.evaluate(&f.evaluator, x)?, zip(m, &all(v), plus)))
    }),
    ("Chebyshev's basis on an interval", |f, x, m, v| {
        let sum = Polynomial::chebyshev([0.0, 1.0], (-v, v))?.evaluate(&f.evaluator, x)?;
        Ok((sum, m.iter().map(|z| Complex64::new(z.re / v, z.im / v)).collect()))
    }),
    ("Chebyshev's coefficients", |f, x, m, v| {
        let sum = Polynomial::chebyshev([0.0, 0.0, v], (-1.0, 1.0))?.evaluate(&f.evaluator, x)?;
        let value = |z: &Complex64| Complex64::new(v * (2.0 * z.re * z.re - 1.0), 0.0);
        Ok((sum, m.iter().map(value).collect()))
    }),
    ("declared bounds that hold", |f, x, m, v| {
        let (ct, _) = (f.evaluator.declare_bound(x.duplicate(&f.context)?, v.abs().max(1.0))?, ());
        Ok((f.evaluator.mul(&ct, x)?, zip(m, m, times)))
    }),
    ("a declared bound", |f, x, _, v| {
        let zero = f.evaluator.mul_scalar(x, 0.0)?;
        Ok((f.evaluator.declare_bound(zero, v)?, all(0.0)))
    }),
    ("a declared error", |f, x, m, v| {
        Ok((f.evaluator.declare_error(x.duplicate(&f.context)?, v)?, zip(m, &all(v), plus)))
    }),
    ("a number times another, as computed, and off by what that was off", |f, x, m, v| {
        let (computed, off) = f.evaluator.as_computed(&f.evaluator.mul_scalar(x, v)?)?;
        Ok((f.evaluator.declare_error(computed, off)?, zip(m, &all(v), times)))
    }),
];

/// Real values of absolute value at most 1.
fn real(seed: u64) -> Slots {
    values(SHAPE.row, 1.0, seed).iter().map(|z| z.re.into()).collect()
}

fn wide() -> ParamsLiteral {
    literal(10, 40, &[60, 40, 40, 40], &[60, 60])
}

/// The same scale at the top, other primes.
fn foreign() -> ParamsLiteral {
    literal(10, 40, &[59, 40, 40, 40], &[61, 60])
}

#[test]
fn extreme_numbers_are_refused_or_keep_the_certificate() {
    let mut f = fixture(wide(), 300);
    let m = real(301);
    let x = f.encrypt(&m, 1.0);
    let mut findings = Findings::default();
    for (name, operation) in OPERATIONS {
        for v in numbers() {
            findings.call(
                || format!("{name}, {v:e}"),
                || match operation(&mut f, &x, &m, v) {
                    Err(_) => None,
                    Ok((ct, expected)) => Some(within(&f, &ct, &expected)),
                },
            );
        }
    }
    findings.finish();
}

#[test]
fn extreme_steps_are_refused_or_keep_the_certificate() {
    let mut f = fixture(wide(), 310);
    let m = real(311);
    let x = f.encrypt(&m, 1.0);
    let mut findings = Findings::default();
    let f = &f;
    let judged = |outcome: Outcome| outcome.ok().map(|(ct, expected)| within(f, &ct, &expected));
    let steps = [0, 1, -1, 5, 512, 513, -511, i64::MAX, i64::MIN, i64::MIN + 1];
    let e = &f.evaluator;
    for k in steps {
        findings.call(|| format!("rotate {k}"), || judged(e.rotate(&x, k).map(|ct| (ct, rotated(&m, k % 512)))));
        let many = || Ok((e.rotate_many(&x, &[k, 1])?.remove(0), rotated(&m, k % 512)));
        findings.call(|| format!("rotate_many {k}"), || judged(many()));
        findings.call(
            || format!("diagonal {k}"),
            || judged(map(f, &x, vec![(k, all(1.0))]).map(|ct| (ct, rotated(&m, k % 512)))),
        );
        findings.call(
            || format!("sum with stride {k}"),
            || {
                let sum = zip(&m, &rotated(&m, k % 512), plus);
                judged(SlotSum::new(2).stride(k).run(e, &x).map(|ct| (ct, sum)))
            },
        );
    }
    findings.finish();
}

#[test]
fn extreme_counts_are_refused_or_keep_the_certificate() {
    let mut f = fixture(wide(), 312);
    let m = real(313);
    let x = f.encrypt(&m, 1.0);
    let mut findings = Findings::default();
    let f = &f;
    let judged = |outcome: Outcome| outcome.ok().map(|(ct, expected)| within(f, &ct, &expected));
    let e = &f.evaluator;
    for count in [0, 1, 2, 511, 512, 513, 1 << 20, usize::MAX / 2, usize::MAX] {
        for radix in [0, 2, 3, usize::MAX] {
            let sum = || SlotSum::new(count).stride(0).radix(radix).run(e, &x);
            let expected = scaled(&m, count as f64);
            findings.call(|| format!("sum of {count} with radix {radix}"), || judged(sum().map(|ct| (ct, expected))));
        }
        findings.call(
            || format!("blocks of {count}"),
            || {
                // What blocks of more slots hold is tested with the circuits.
                let ct = replicate_blocks(e, &x, count).ok()?;
                if count == 1 { judged(Ok((ct, m.clone()))) } else { Some(Ok(())) }
            },
        );
        findings.call(|| format!("level {count}"), || judged(e.mod_switch_to(&x, count).map(|ct| (ct, m.clone()))));
        findings.call(
            || format!("{count} ones"),
            || {
                if count > 1 << 21 {
                    return None;
                }
                let ones = vec![1.0; count];
                let sum = || e.add_plain(&x, &f.context.encode(&ones)?);
                let expected = (0..512).map(|i| plus(m[i], f64::from(u8::from(i < count)).into())).collect();
                judged(sum().map(|ct| (ct, expected)))
            },
        );
        findings.call(
            || format!("{count} weights"),
            || {
                if count > 1 << 21 {
                    return None;
                }
                let expected = (0..512).map(|i| if i < count { m[i] } else { 0.0.into() }).collect();
                judged(weighted(f, &x, vec![1.0; count].into(), None).map(|ct| (ct, expected)))
            },
        );
    }
    findings.finish();
}

#[test]
fn maps_of_shapes_that_no_ring_has_are_refused() {
    let mut f = fixture(wide(), 315);
    let x = f.encrypt(&real(316), 1.0);
    let (e, mut findings) = (&f.evaluator, Findings::default());
    for shape in [(0, 1), (1, 0), (0, 0), (usize::MAX, 2), (usize::MAX, 1), (1 << 40, 1), (3, 1), (512, 1 << 50)] {
        let shape = SlotShape { row: shape.0, rows: shape.1 };
        findings.call(
            || format!("a map of {shape:?}"),
            || {
                let ones: [Vec<Complex64>; 1] = [vec![1.0.into()]];
                let made = [
                    LinearTransform::from_diagonals(shape, [(1, vec![])]),
                    LinearTransform::from_diagonals(shape, [(0, vec![1.0.into()])]),
                    LinearTransform::from_dense(shape, &ones),
                    LinearTransform::repeated(shape, &ones),
                    Ok(LinearTransform::zero(shape)),
                ];
                let run = |made: LinearTransform<Complex64>| made.prepare(e, 1)?.apply(e, &x);
                made.into_iter()
                    .flatten()
                    .for_each(|made| assert!(run(made).is_err(), "a map of another shape was applied"));
                None
            },
        );
    }
    findings.refused();
}

#[test]
fn masks_choose_and_belong_to_a_level_and_to_parameters() {
    let mut f = fixture(wide(), 320);
    let m = real(321);
    let x = f.encrypt(&m, 1.0);
    let (top, e) = (x.level(), &f.evaluator);
    for bad in [f64::NAN, 2.0, -1.0, 0.5, 1e6, 1.0 + f64::EPSILON] {
        assert_eq!(e.mask(&[0.0.into(), bad.into()], top).err().map(|e| e.kind()), Some("shape"), "{bad}");
        assert!(e.mask(&[Complex64::new(1.0, bad)], top).is_err());
    }
    for period in [0, 3, 1024] {
        assert_eq!(e.mask(&vec![1.0.into(); period], top).err().map(|e| e.kind()), Some("shape"), "{period}");
    }
    let chosen = |x: &Ciphertext, mask: &_| {
        let x = e.hoist(x, false)?;
        e.chosen([&x, &x], &(), mask, 0, top - 1)
    };
    let mask = e.mask(&[1.0.into(), 0.0.into()], top).unwrap();
    within(&f, &chosen(&x, &mask).unwrap(), &m).unwrap();
    let lower = e.mask(&[1.0.into(), 0.0.into()], top - 1).unwrap();
    assert_eq!(chosen(&x, &lower).err().map(|e| e.kind()), Some("level"));
    let other = fixture(foreign(), 322);
    let foreign = other.evaluator.mask(&[1.0.into(), 0.0.into()], top).unwrap();
    assert_eq!(chosen(&x, &foreign).err().map(|e| e.kind()), Some("params_differ"));
}

#[test]
fn what_was_made_in_one_context_is_encoded_again_or_refused_in_another() {
    let mut f = fixture(wide(), 330);
    let mut g = fixture(foreign(), 331);
    let m = real(332);
    let pt = f.context.encode_complex(&m, 1.0).unwrap();
    let here = f.context.encrypt(&f.public, &pt, &mut f.randomness).unwrap();
    let there = g.context.encrypt(&g.public, &pt, &mut g.randomness).unwrap();
    within(&f, &here, &m).unwrap();
    within(&g, &there, &m).unwrap();
    within(&f, &f.evaluator.mul_plain(&here, &pt).unwrap(), &zip(&m, &m, times)).unwrap();
    within(&g, &g.evaluator.mul_plain(&there, &pt).unwrap(), &zip(&m, &m, times)).unwrap();
    // A decrypted phase, a linear map, a secret key.
    let phase = f.context.decrypt(&f.secret, &here).unwrap();
    assert_eq!(g.context.decode_complex(&phase).err().map(|e| e.kind()), Some("params_differ"));
    let prepared = LinearTransform::from_diagonals(SHAPE, [(0, m.clone())]).unwrap().prepare(&f.evaluator, 2).unwrap();
    assert_eq!(prepared.apply(&g.evaluator, &there).err().map(|e| e.kind()), Some("params_differ"));
    let made = g.context.encrypt_with_secret(&f.secret, &pt, 1, &mut g.randomness);
    assert_eq!(made.err().map(|e| e.kind()), Some("params_differ"));
    let keys = g.context.generate_evaluation_keys(&f.secret, &Default::default(), &mut g.randomness);
    assert_eq!(keys.err().map(|e| e.kind()), Some("params_differ"));
    let public = PublicKey::generate(g.context.rlwe(), &f.secret, &mut g.randomness);
    assert_eq!(public.err().map(|e| e.kind()), Some("params_differ"));
    // The same secret in both contexts, under one name: nothing else tells their objects apart.
    let twin = SecretKey::from_small(g.context.rlwe(), f.secret.id(), f.secret.small().clone()).unwrap();
    let keys = g.context.generate_evaluation_keys(&twin, &Rotations::by([1]), &mut g.randomness).unwrap();
    let e = Evaluator::new(&g.context, Some(Arc::new(keys)));
    let top = g.context.params().top_level();
    let (there, _) = g.context.encrypt_with_secret(&twin, &pt, top, &mut g.randomness).unwrap();
    let hoisted = f.evaluator.hoist(&here, true).unwrap();
    assert_eq!(e.rotated(&hoisted, 1).err().map(|e| e.kind()), Some("params_differ"));
    assert_eq!(prepared.apply(&e, &there).err().map(|e| e.kind()), Some("params_differ"));
    assert_eq!(g.context.decrypt(&f.secret, &there).err().map(|e| e.kind()), Some("params_differ"));
    let release = Release { precision: 1.0, shares: 1, security: 30 };
    assert_eq!(g.context.publish(&f.secret, &there, &release).err().map(|e| e.kind()), Some("params_differ"));
}

#[test]
fn intervals_too_narrow_for_doubles_are_refused() {
    let on = |a: f64, b: f64, degree: usize| Polynomial::chebyshev(vec![1.0; degree + 1], (a, b)).map(|_| ());
    for (a, b) in [(1.0, 1.0 + f64::EPSILON), (1e6, 1e6 + 1e-6), (-1e300, -1e300f64.next_up()), (5e-324, 1e-323)] {
        assert_eq!(on(a, b, 63).err().map(|e| e.kind()), Some("argument"), "{a} to {b}");
    }
    for (a, b) in [(0.0, 1e-9), (-1.0, 1.0), (1000.0, 1001.0), (-8.0, 8.0)] {
        on(a, b, 63).unwrap();
    }
}

#[test]
fn refreshed_messages_of_any_size_keep_their_certificates() {
    let choices = BootstrapLiteral {
        slots_to_coeffs: 2,
        coeffs_to_slots: 2,
        baby_steps: None,
        degree: 30,
        doublings: 4,
        messages: Messages::Complex,
        slots: None,
        message_bound: 1.0,
        ratio_bits: 10,
        rounds: 1,
    };
    let chain = Chain {
        log_n: 10,
        log_scale: 40,
        usable: 1,
        base_bits: 60,
        log_scale_down: 45,
        log_scale_up: 58,
        widest: 49,
        omega: 4,
        weight: 32,
        security: Security::Insecure,
    };
    let mut f = fixture(chain.literal(&choices).unwrap(), 790);
    let bootstrap = Bootstrap::new(f.context.params(), choices).unwrap();
    let keys = bootstrap.generate_keys(&f.context, &f.secret, &Rotations::by([]), &mut f.randomness).unwrap();
    let bootstrapper = Bootstrapper::new(&f.context, bootstrap, Arc::new(keys)).unwrap();
    let half = f.context.encode_bounded(&[0.5; 512], 0.5).unwrap();
    let half = f.context.encrypt_at(&f.public, &half, 2, &mut f.randomness).unwrap();
    let mut refreshed = 0;
    for v in numbers() {
        let Ok(plain) = f.context.encode_bounded(&[v; 512], v.abs()) else { continue };
        let Ok(ct) = f.context.encrypt_at(&f.public, &plain, 2, &mut f.randomness) else { continue };
        match bootstrapper.refresh(&ct) {
            Ok(ct) => {
                within(&f, &ct, &all(v)).unwrap_or_else(|e| panic!("{v:e}: {e}"));
                refreshed += 1;
            }
            Err(error) => assert!(v.abs() > 1.0 && error.kind() == "message_bound", "{v:e}: {error}"),
        }
        match bootstrapper.refresh_pair(&half, &ct) {
            Ok([first, second]) => {
                within(&f, &first, &all(0.5)).unwrap_or_else(|e| panic!("beside {v:e}: {e}"));
                within(&f, &second, &all(v)).unwrap_or_else(|e| panic!("{v:e}: {e}"));
            }
            Err(error) => assert!(v.abs() > 1.0 && error.kind() == "message_bound", "{v:e}: {error}"),
        }
    }
    assert!(refreshed > 20, "{refreshed}");
}
