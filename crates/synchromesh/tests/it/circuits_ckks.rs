//! Circuits of CKKS judged by decryption against the same circuits on complex numbers, within their certificates.

use std::sync::Arc;

use crate::ckks_fixture::{Fixture, Slots, conjugate, fixture, literal, minus, plus, rotated, times, values, zip};
use synchromesh::circuits::{
    Coefficient, LinearTransform, Polynomial, SlotShape, SlotSum, chebyshev_coefficients, inner_product, product,
};
use synchromesh::ckks::{Ciphertext, Complex64, Context, Evaluator, Mode, Params, ParamsLiteral, Rotations};

use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::noise::FailureLimit;
use synchromesh::rlwe::{Randomness, Security};

const SLOTS: usize = 1 << 9;
const SHAPE: SlotShape = SlotShape { row: SLOTS, rows: 1 };

/// Parameters of `depth` levels of two primes each.
fn chain(depth: usize) -> ParamsLiteral {
    let mut q = vec![31, 34];
    let mut limbs = vec![2];
    for _ in 0..depth {
        q.extend([29, 21]);
        limbs.push(q.len());
    }
    let digit: u32 = q.chunks(q.len().div_ceil(3)).map(|d| d.iter().sum()).max().unwrap_or(0);
    let p = vec![50; digit.div_ceil(49) as usize];
    ParamsLiteral { level_limbs: limbs, omega: 3, ..literal(10, 50, &q, &p) }
}

fn made(depth: usize, steps: Rotations, seed: u64) -> Fixture {
    made_with(chain(depth), steps, seed)
}

fn made_with(literal: ParamsLiteral, steps: Rotations, seed: u64) -> Fixture {
    let mut f = fixture(literal, seed);
    let keys = f.context.generate_evaluation_keys(&f.secret, &steps, &mut f.randomness).unwrap();
    f.evaluator = Evaluator::new(&f.context, Some(Arc::new(keys)));
    f
}

fn real(z: &Slots) -> Slots {
    z.iter().map(|z| z.re.into()).collect()
}

/// Decrypts; the error must be within the certificate, and the certificate below 2^-`bits`.
fn near(f: &Fixture, ct: &Ciphertext, expected: &Slots, bits: i32, what: &str) {
    let slots = f.context.decode_complex(&f.context.decrypt(&f.secret, ct).unwrap()).unwrap();
    let error = zip(&slots, expected, minus).iter().map(|z| z.re.hypot(z.im)).fold(0.0, f64::max);
    let bound = f.context.error_bound(ct);
    assert!(error <= bound, "{what}: error {error:e} above its certificate {bound:e}");
    assert!(bound < 2f64.powi(-bits), "{what}: the certificate says {bound:e}, the error is {error:e}");
    let largest = expected.iter().map(|z| z.re.hypot(z.im)).fold(0.0, f64::max);
    assert!(largest <= ct.bound() * (1.0 + 1e-9), "{what}: message {largest} above its bound {}", ct.bound());
}

#[test]
fn products_and_inner_products() {
    let mut f = made(3, Rotations::default(), 81);
    let m: Vec<Slots> = (0..6).map(|i| values(SLOTS, 1.0, 90 + i)).collect();
    let cts: Vec<Ciphertext> = m.iter().map(|x| f.encrypt(x, 1.0)).collect();
    for count in [1, 3, 6] {
        let result = product(&f.evaluator, &cts[..count].iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(3 - result.level(), [0, 2, 3][count / 3]);
        near(&f, &result, &m[1..count].iter().fold(m[0].clone(), |p, x| zip(&p, x, times)), 15, "product");
    }
    let low = f.evaluator.mod_switch(&cts[2]).unwrap();
    let result = inner_product(&f.evaluator, &[&cts[0], &low], &[&cts[1], &cts[3]]).unwrap();
    near(&f, &result, &zip(&zip(&m[0], &m[1], times), &zip(&m[2], &m[3], times), plus), 15, "inner product");
}

fn horner(coefficients: &[Coefficient<Complex64>], x: &Slots) -> Slots {
    let vector = |c: &Coefficient<Complex64>| match c {
        Coefficient::All(c) => vec![*c; x.len()],
        Coefficient::Slots(v) => (0..x.len()).map(|i| v.get(i).copied().unwrap_or_default()).collect(),
    };
    coefficients
        .iter()
        .rev()
        .fold(vec![Complex64::default(); x.len()], |sum, c| zip(&zip(&sum, x, times), &vector(c), plus))
}

#[test]
fn polynomials_in_powers_take_the_least_levels() {
    for degree in [1usize, 2, 3, 4, 7, 15] {
        let number =
            |i: usize| Coefficient::from(Complex64::new(0.3 - 0.11 * i as f64, if degree == 4 { 0.2 } else { 0.0 }));
        let mut coefficients: Vec<_> = (0..=degree).map(number).collect();
        if degree == 7 {
            coefficients[3] = (0..400).map(|j| f64::from(j) / 500.0).collect::<Vec<_>>().into();
            coefficients[4] = 2.0.into();
        }
        let polynomial = Polynomial::power(coefficients.clone()).unwrap();
        let plan = polynomial.plan::<Evaluator>();
        assert_eq!(plan.depth, (degree + 1).next_power_of_two().trailing_zeros() as usize);
        let mut f = made(plan.depth, Rotations::default(), 100 + degree as u64);
        let m = values(SLOTS, 1.0, 110 + degree as u64);
        let x = f.encrypt(&m, 1.0);
        let result = polynomial.evaluate(&f.evaluator, &x).unwrap();
        assert_eq!(result.level(), 0, "degree {degree}");
        near(&f, &result, &horner(&coefficients, &m), 12, &format!("degree {degree}"));
        let low = f.evaluator.mod_switch(&x).unwrap();
        assert_eq!(polynomial.evaluate(&f.evaluator, &low).err().map(|e| e.kind()), Some("level"));
    }
}

#[test]
fn chebyshev_series_approximate_functions() {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    for (degree, (a, b), depth) in [(15usize, (-1.0, 1.0), 4), (31, (-8.0, 8.0), 6), (22, (-2.0, 6.0), 6)] {
        let coefficients = chebyshev_coefficients(sigmoid, (a, b), degree);
        let polynomial = Polynomial::chebyshev(coefficients.iter().copied(), (a, b)).unwrap();
        assert_eq!(polynomial.plan::<Evaluator>().depth, depth);
        let mut f = made(depth, Rotations::default(), 120 + degree as u64);
        let most = f64::max(-a, b);
        let m: Slots =
            real(&values(SLOTS, 1.0, 121)).iter().map(|z| (0.5 * (a + b) + 0.5 * (b - a) * z.re).into()).collect();
        let x = f.encrypt(&m, most);
        let result = polynomial.evaluate(&f.evaluator, &x).unwrap();
        assert_eq!(result.level(), 0);
        let series = |x: f64| {
            let angle = ((2.0 * x - a - b) / (b - a)).clamp(-1.0, 1.0).acos();
            coefficients.iter().enumerate().map(|(k, c)| c * (k as f64 * angle).cos()).sum::<f64>()
        };
        near(&f, &result, &m.iter().map(|z| series(z.re).into()).collect(), 12, "sigmoid");
        let wide = f.encrypt(&m, 2.0 * most);
        assert_eq!(polynomial.evaluate(&f.evaluator, &wide).err().map(|e| e.kind()), Some("argument"));
        let declared = f.evaluator.declare_bound(wide, most).unwrap();
        near(
            &f,
            &polynomial.evaluate(&f.evaluator, &declared).unwrap(),
            &m.iter().map(|z| series(z.re).into()).collect(),
            10,
            "declared",
        );
    }
    assert!(Polynomial::chebyshev([1.0], (1.0, 1.0)).is_err());
}

#[test]
fn slot_sums_and_linear_transforms() {
    let sums = [SlotSum::new(6), SlotSum::new(16).radix(4), SlotSum::all(SHAPE)];
    let entry = |r: usize, c: usize| Complex64::new((r as f64 - c as f64) / 9.0, 0.1 * (r * c % 4) as f64);
    let matrix: Vec<Vec<Complex64>> = (0..6).map(|r| (0..9).map(|c| entry(r, c)).collect()).collect();
    let dense = LinearTransform::from_dense(SHAPE, &matrix).unwrap();
    let mut both = LinearTransform::from_diagonals(SHAPE, [(2, vec![Complex64::new(0.5, 0.0); SLOTS])]).unwrap();
    let own: Slots = values(SLOTS, 1.0, 130);
    both.add_diagonal(-7, true, own.clone()).unwrap();
    let steps =
        sums.iter().fold(dense.rotations(4).and(&both.rotations(both.baby_steps())), |s, sum| s.and(&sum.rotations()));
    let mut f = made(2, steps, 131);
    let m = values(SLOTS, 1.0, 132);
    let x = f.encrypt(&m, 1.0);
    let slid = |count: i64| (1..count).fold(m.clone(), |sum, i| zip(&sum, &rotated(&m, i), plus));
    for (sum, count) in sums.iter().zip([6, 16, SLOTS as i64]) {
        near(&f, &sum.run(&f.evaluator, &x).unwrap(), &slid(count), 12, "slot sum");
    }
    let dot =
        |row: &Vec<Complex64>| row.iter().zip(&m).fold(Complex64::default(), |sum, (&a, &b)| plus(sum, times(a, b)));
    let mut image: Slots = matrix.iter().map(dot).collect();
    image.resize(SLOTS, Complex64::default());
    for level in [2, 1] {
        let prepared = dense.prepare_with(&f.evaluator, level, 4).unwrap();
        let result = prepared.apply(&f.evaluator, &x).unwrap();
        assert_eq!((result.level(), result.scale()), (level - 1, f.context.params().scale(level - 1).unwrap()));
        near(&f, &result, &image, 15, "matrix");
    }
    let conjugates: Slots = rotated(&m.iter().map(|&z| conjugate(z)).collect(), -7);
    let expected =
        zip(&rotated(&m, 2).iter().map(|z| times(*z, 0.5.into())).collect(), &zip(&own, &conjugates, times), plus);
    let result = both.prepare(&f.evaluator, 2).unwrap().apply(&f.evaluator, &x).unwrap();
    near(&f, &result, &expected, 15, "with conjugates");
    // Encoded as it goes: the same ciphertext with the same certificate.
    let streamed = both.apply(&f.evaluator, &x).unwrap();
    let bytes = |x: &Ciphertext| x.to_bytes(&f.context, None).unwrap();
    assert!(bytes(&streamed) == bytes(&result), "bits of a map that is encoded as it goes");
    let zero = LinearTransform::<Complex64>::zero(SHAPE);
    assert_eq!(zero.apply(&f.evaluator, &x).err().map(|e| e.kind()), Some("shape"));
    let error = SlotSum::new(2).stride(99).run(&f.evaluator, &x).err().unwrap();
    assert!(error.kind() == "missing_key" && error.to_string().contains("99"), "{error}");
    let bottom = dense.prepare_with(&f.evaluator, 0, 4).unwrap();
    assert_eq!(bottom.apply(&f.evaluator, &x).err().map(|e| e.kind()), Some("level"));
}

#[test]
fn circuits_go_on_below_a_change_of_secret_keys() {
    let mut literal = chain(3);
    literal.schedule = literal.schedule.with_second_key(2);
    let sum = SlotSum::new(6);
    let mut map = LinearTransform::from_diagonals(SHAPE, [(2, vec![Complex64::new(0.5, 0.0); SLOTS])]).unwrap();
    let own: Slots = values(SLOTS, 1.0, 140);
    map.add_diagonal(-7, false, own.clone()).unwrap();
    let mut f = made_with(literal, sum.rotations().and(&map.rotations(map.baby_steps())), 141);
    let m = values(SLOTS, 1.0, 142);
    let high = f.encrypt(&m, 1.0);
    let low = f.evaluator.mod_switch_to(&high, 1).unwrap();
    assert_ne!(high.inner().key(), low.inner().key());
    let slid = (1..6).fold(m.clone(), |sum, i| zip(&sum, &rotated(&m, i), plus));
    let half: Slots = rotated(&m, 2).iter().map(|z| times(*z, 0.5.into())).collect();
    let image = zip(&half, &zip(&own, &rotated(&m, -7), times), plus);
    let prepared = [2, 1].map(|level| map.prepare(&f.evaluator, level).unwrap());
    for x in [&high, &low] {
        near(&f, &sum.run(&f.evaluator, x).unwrap(), &slid, 10, "slot sum");
        let result = prepared[1].apply(&f.evaluator, x).unwrap();
        assert_eq!(result.inner().key(), low.inner().key());
        near(&f, &result, &image, 10, "below");
    }
    // The result leaves the leading levels.
    let result = prepared[0].apply(&f.evaluator, &high).unwrap();
    assert_eq!(result.inner().key(), low.inner().key());
    near(&f, &result, &image, 10, "across");
    let squares = zip(&m, &m, times);
    let inner = inner_product(&f.evaluator, &[&high, &low], &[&low, &high]).unwrap();
    near(&f, &inner, &zip(&squares, &squares, plus), 10, "inner product");
}

#[test]
fn scales_managed_by_hand_are_refused() {
    let mut f = fixture(ParamsLiteral { mode: Mode::Manual, ..literal(10, 40, &[55, 40], &[50, 50]) }, 140);
    let x = f.encrypt(&values(SLOTS, 1.0, 141), 1.0);
    let refused = Polynomial::power([1.0, 0.5]).unwrap().evaluate(&f.evaluator, &x);
    assert_eq!(refused.err().map(|e| e.kind()), Some("argument"));
}

#[test]
fn a_run_without_data_finds_levels_precision_and_rotations() {
    let matrix: Vec<Vec<Complex64>> =
        (0..3).map(|r| (0..3).map(|c| (0.25 * (r * c) as f64).into()).collect()).collect();
    let circuit = |row: usize| LinearTransform::from_dense(SlotShape { row, rows: 1 }, &matrix).unwrap();
    let cube = Polynomial::power([0.5, 0.0, -0.25, 1.0]).unwrap();
    let mut description = Description::new(SchemeName::Ckks, 1);
    (description.security, description.precision) = (Security::Insecure, Some(18));
    let plan = description
        .plan_ckks(&[1.0], |e, x| {
            let y = cube.evaluate(e, &x[0])?;
            Ok(vec![circuit(e.context().params().slots()).prepare(e, y.level())?.apply(e, &y)?])
        })
        .unwrap();
    assert!(plan.depth >= 3 && !plan.rotations.is_empty() && !plan.swap, "{plan:?}");
    let context = Context::new(plan.ckks().unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let keys = context.generate_evaluation_keys(&secret, &Rotations::by(plan.rotations), &mut randomness).unwrap();
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    let x = context.encrypt(&public, &context.encode(&[0.5, -0.75, 1.0]).unwrap(), &mut randomness).unwrap();
    let y = cube.evaluate(&evaluator, &x).unwrap();
    let result = circuit(plan.slots).prepare(&evaluator, y.level()).unwrap().apply(&evaluator, &y).unwrap();
    let out = context.decode(&context.decrypt(&secret, &result).unwrap()).unwrap();
    let y = [0.5f64, -0.75, 1.0].map(|x| 0.5 - 0.25 * x * x + x.powi(3));
    for r in 0..3 {
        let expected: f64 = (0..3).map(|c| 0.25 * (r * c) as f64 * y[c]).sum();
        assert!((out[r] - expected).abs() < 2f64.powi(-18), "{} {expected}", out[r]);
    }
    let mismatched = Description::new(SchemeName::Bfv, 1).plan_ckks(&[], |_, _| Ok(vec![]));
    assert_eq!(mismatched.err().map(|e| e.kind()), Some("request"));
}

#[test]
fn a_map_that_is_applied_once_holds_the_diagonals_of_one_giant_step() {
    let most = |streamed: bool| {
        let mut description = Description::new(SchemeName::Ckks, 1);
        (description.security, description.precision) = (Security::Insecure, Some(12));
        let plan = description.plan_ckks(&[1.0], |e, x| {
            let row = e.context().params().slots();
            // None that repeats, of which an eighth would be kept.
            let entry = |i: usize| Complex64::new((1.0 + i as f64 / row as f64) / 128.0, 0.0);
            let diagonals = (0..64).map(|k| (k, (0..row).map(entry).collect()));
            let map = LinearTransform::from_diagonals(SlotShape { row, rows: 1 }, diagonals)?;
            let made = if streamed { map.apply(e, &x[0]) } else { map.prepare(e, x[0].level())?.apply(e, &x[0]) };
            Ok(vec![made?])
        });
        let plan = plan.unwrap();
        let limb = 8u64 << plan.log_n;
        let polynomial = limb * (plan.q_bits.len() + plan.p_bits.len()) as u64;
        (plan.nodes.iter().map(|node| node.bytes).max().unwrap() / polynomial, plan.rotations)
    };
    let ((held, rotations), (streamed, same)) = (most(false), most(true));
    assert_eq!(rotations, same);
    // Those of one step, of sixteen diagonals, each for itself and side by side.
    assert!(streamed + 64 - 2 * 16 <= held, "{streamed} polynomials for one giant step at a time, {held} for all");
}

#[test]
fn failure_probabilities_that_are_asked_for_are_in_the_plan_and_decide_what_is_refused() {
    let plan = |failure: FailureLimit| {
        let mut description = Description::new(SchemeName::Ckks, 3);
        (description.security, description.failure) = (Security::Insecure, failure);
        description.plan().unwrap()
    };
    let [often, _, seldom] = FailureLimit::ALL.map(plan);
    assert_eq!((often.log2_p_fail, seldom.log2_p_fail), (-40.0, -128.0));
    assert!(often.explain.iter().any(|line| line.contains("failure probability 2^-40")), "{:?}", often.explain);
    assert!(often.q_bits.iter().sum::<u32>() <= seldom.q_bits.iter().sum::<u32>());
    // What the parameters of a plan's file say is what it was planned for, and a ciphertext's bound follows it.
    let read = synchromesh::plan::Plan::from_json(&often.to_json().unwrap()).unwrap();
    assert_eq!(read.ckks().unwrap().failure_limit(), FailureLimit::Statistical);
    let bound = |params: Params| {
        let context = Context::new(params).unwrap();
        let mut randomness = Randomness::insecure_from_number(1);
        let (_, public) = context.generate_keys(&mut randomness).unwrap();
        let x = context.encrypt(&public, &context.encode(&[0.5]).unwrap(), &mut randomness).unwrap();
        context.error_bound(&x)
    };
    let own = read.ckks().unwrap();
    let stricter = own.with_failure_limit(FailureLimit::Negligible);
    let (often, seldom) = (bound(own), bound(stricter));
    assert!(often < 0.8 * seldom, "{often} at 2^-40, {seldom} at 2^-128");
    let mut refreshing = Description::new(SchemeName::Ckks, 0);
    (refreshing.bootstrap, refreshing.failure) = (Some(1.0), FailureLimit::Statistical);
    assert_eq!(refreshing.plan().err().map(|e| e.kind()), Some("request"));
}

/// 3.5 x (1 - x), whose values stay in \[0, 1\]; bounds of them, which know no more than |x| <= 1, square at each step.
fn logistic(steps: usize, declared: bool) -> Result<synchromesh::plan::Plan, synchromesh::Error> {
    let mut description = Description::new(SchemeName::Ckks, 0);
    (description.security, description.precision) = (Security::Insecure, Some(20));
    description.plan_ckks(&[1.0], |e, x| {
        let mut x = x[0].duplicate(e.context())?;
        for _ in 0..steps {
            let rest = e.add_scalar(&e.neg(&x)?, 1.0)?;
            x = e.mul_scalar(&e.mul(&x, &rest)?, 3.5)?;
            if declared {
                x = e.declare_bound(x, 1.0)?;
            }
        }
        Ok(vec![x])
    })
}

#[test]
fn bounds_that_grow_beyond_all_parameters_are_named_with_what_to_do() {
    let refused = logistic(5, false).unwrap_err();
    assert_eq!(refused.kind(), "plan_bounds", "{refused}");
    assert!(refused.to_string().contains("results may reach 2^"), "{refused}");
    assert!(refused.remedy().contains("declare_bound"), "{}", refused.remedy());
    assert!(logistic(5, true).unwrap().depth >= 10);
}
