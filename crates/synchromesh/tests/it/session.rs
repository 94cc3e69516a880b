//! Sessions: from a plan to results in one vocabulary for the three schemes, beside the same in the clear; what is refused.

use std::sync::Arc;

use num_bigint::BigInt;
use synchromesh::circuits::{
    Arithmetic, LinearTransform, Matrix, MatrixChoices, MatrixPacking, MatrixPlan, Side, SlotShape, SlotSum,
};
use synchromesh::ckks::{Ckks, Complex64, Release};
use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::ring::backend::Open;
use synchromesh::rlwe::{EvaluationKeys, PublicKey, Randomness, SecretKey, Security};
use synchromesh::rotations::Rotations;
use synchromesh::scheme::{Binary, Encryptor, Entries, Operation, Scheme, Values};
use synchromesh::session::{AnySession, Erased};
use synchromesh::{bfv::Bfv, bgv::Bgv};

const SCHEMES: [SchemeName; 3] = [SchemeName::Bfv, SchemeName::Bgv, SchemeName::Ckks];

/// Every product and sum of the tests stays below t/2.
const T: i64 = 65_537;

fn plan(scheme: SchemeName) -> Plan {
    let description = Description {
        rotations: vec![1, 2, -3],
        swap: true,
        additions: 3,
        precision: (scheme == SchemeName::Ckks).then_some(8),
        security: Security::Insecure,
        ..Description::new(scheme, 3)
    };
    description.plan().unwrap()
}

/// A session with all its keys.
struct Fixture {
    session: Arc<dyn AnySession>,
    shape: SlotShape,
    secret: SecretKey,
    public: PublicKey,
    randomness: Randomness,
    name: &'static str,
}

fn fixture(scheme: SchemeName) -> Fixture {
    let session = plan(scheme).open_any().unwrap();
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = session.generate_keys(&mut randomness).unwrap();
    let keys = session.generate_keys_for(&secret, session.rotations(), &mut randomness).unwrap();
    session.add_keys(&Arc::new(keys));
    Fixture { shape: session.slots().unwrap(), session, secret, public, randomness, name: scheme.name() }
}

/// Small integers, as the scheme takes them.
fn numbers(name: &str, x: &[i64]) -> Values {
    if name == "ckks" { x.iter().map(|&x| x as f64).collect::<Vec<_>>().into() } else { x.into() }
}

impl Fixture {
    fn numbers(&self, x: &[i64]) -> Values {
        numbers(self.name, x)
    }

    fn message(&self, seed: i64) -> Vec<i64> {
        (0..self.shape.count() as i64).map(|i| (i * i + seed * i) % 7 - 3).collect()
    }

    fn encrypt(&mut self, x: &[i64], bound: f64) -> Erased {
        let (by, top) = (Encryptor::Public(&self.public), self.session.top_level());
        self.session.encrypt(&by, &numbers(self.name, x), bound, top, &mut self.randomness).unwrap()
    }

    fn apply(&self, operation: &Operation<'_>, x: &[&Erased]) -> Erased {
        self.session.apply(operation, x).unwrap()
    }

    /// Fails unless `x` decrypts to these integers: modulo t, or to within its error bound.
    fn judge(&self, x: &Erased, expected: &[i64], what: &str) {
        let (found, bound) =
            (self.session.decrypt(&self.secret, x).unwrap(), self.session.state(x).unwrap().error_bound);
        assert_eq!(found.len(), expected.len(), "{} {what}", self.name);
        assert!(bound < 0.5, "{} {what}: {bound}", self.name);
        for (slot, (found, &expected)) in found.reals().iter().zip(expected).enumerate() {
            let right = match self.name {
                "ckks" => (found - expected as f64).abs() <= bound,
                _ => (*found as i64 - expected).rem_euclid(T) == 0,
            };
            assert!(right, "{} {what}: slot {slot} is {found} and not {expected}", self.name);
        }
    }

    fn at(&self, x: &[i64], from: impl Fn(usize, usize) -> (usize, usize)) -> Vec<i64> {
        let SlotShape { row, rows } = self.shape;
        let slot = |i: usize| {
            let (r, c) = from(i / row, i % row);
            x[(r % rows) * row + c % row]
        };
        (0..x.len()).map(slot).collect()
    }
}

fn zip(x: &[i64], y: &[i64], f: impl Fn(i64, i64) -> i64) -> Vec<i64> {
    x.iter().zip(y).map(|(&x, &y)| f(x, y)).collect()
}

#[test]
fn every_operation_has_its_value_in_the_clear() {
    for scheme in SCHEMES {
        let mut f = fixture(scheme);
        let (a, b) = (f.message(1), f.message(5));
        let (x, y) = (f.encrypt(&a, 3.0), f.encrypt(&b, 3.0));
        let public = f.numbers(&b[..100]);
        let padded: Vec<i64> = b.iter().enumerate().map(|(i, &b)| if i < 100 { b } else { 0 }).collect();
        let two = f.numbers(&[2]);
        type Clear = fn(i64, i64) -> i64;
        let binary: [(Binary, Clear); 3] =
            [(Binary::Add, |a, b| a + b), (Binary::Sub, |a, b| a - b), (Binary::Mul, |a, b| a * b)];
        for (op, clear) in binary {
            f.judge(&f.apply(&Operation::Binary(op), &[&x, &y]), &zip(&a, &b, clear), "of two");
            f.judge(&f.apply(&Operation::Plain(op, &public), &[&x]), &zip(&a, &padded, clear), "with a vector");
            let each: Vec<i64> = a.iter().map(|&a| clear(a, 2)).collect();
            f.judge(&f.apply(&Operation::Scalar(op, &two), &[&x]), &each, "with a number");
        }
        let each = |clear: &dyn Fn(i64) -> i64| a.iter().map(|&a| clear(a)).collect::<Vec<_>>();
        f.judge(&f.apply(&Operation::Neg, &[&x]), &each(&|a| -a), "negated");
        f.judge(&f.apply(&Operation::Square, &[&x]), &each(&|a| a * a), "squared");
        f.judge(&f.apply(&Operation::Bounded(2.0), &[&x]), &a, "bounded");
        let lowest = f.apply(&Operation::AtLevel(1), &[&x]);
        assert_eq!(f.session.state(&lowest).unwrap().level, 1);
        f.judge(&lowest, &a, "at level 1");
        f.judge(&f.apply(&Operation::Rotate(2), &[&x]), &f.at(&a, |r, c| (r, c + 2)), "rotated");
        let swapped = if scheme == SchemeName::Ckks { a.clone() } else { f.at(&a, |r, c| (r + 1, c)) };
        f.judge(&f.apply(&Operation::Swap, &[&x]), &swapped, "swapped");
        let pairs = zip(&a, &f.at(&a, |r, c| (r, c + 1)), |a, b| a + b);
        let four = zip(&pairs, &f.at(&pairs, |r, c| (r, c + 2)), |a, b| a + b);
        f.judge(&f.apply(&Operation::SumSlots(&SlotSum::new(4)), &[&x]), &four, "summed");
        let inner = zip(&a, &b, |a, b| a * b + b * b);
        f.judge(&f.apply(&Operation::InnerProduct, &[&x, &y, &y, &y]), &inner, "an inner product");
        let coefficients = f.numbers(&[1, -2, 3]);
        f.judge(
            &f.apply(&Operation::Polynomial(&coefficients, None), &[&x]),
            &each(&|a| 1 - 2 * a + 3 * a * a),
            "a polynomial",
        );
        // In some slots only, and zeros in the others.
        let own: Vec<bool> = (0..a.len()).map(|i| i % 3 == 1).collect();
        let values: Vec<i64> = a.iter().zip(&own).map(|(a, &own)| i64::from(own) * (1 - 2 * a + 3 * a * a)).collect();
        let some = f.apply(&Operation::Polynomial(&coefficients, Some(&own)), &[&x]);
        f.judge(&some, &values, "a polynomial in some slots");
        let all = f.apply(&Operation::Polynomial(&coefficients, None), &[&x]);
        // Integers take no level in CKKS, vectors do.
        let taken = usize::from(scheme == SchemeName::Ckks);
        let [some, all] = [&some, &all].map(|x| f.session.state(x).unwrap().level);
        assert_eq!(some + taken, all, "{}", f.name);
    }
}

#[test]
fn maps_and_products_of_matrices_go_through_a_session() {
    for scheme in SCHEMES {
        let mut f = fixture(scheme);
        let a = f.message(2);
        let x = f.encrypt(&a, 3.0);
        // Slot 5 becomes 2 times slot 6, less slot 5.
        let entries = Entries { to: vec![5, 5], from: vec![6, 5], values: f.numbers(&[2, -1]) };
        let map = f.session.prepare(&x, &entries).unwrap();
        let mut expected = vec![0; a.len()];
        expected[5] = 2 * a[6] - a[5];
        f.judge(&f.session.map(&map, &x).unwrap(), &expected, "a map");
        f.judge(&f.session.linear(entries, &x).unwrap(), &expected, "a map that is applied once");

        let packing = MatrixPacking::new(f.shape, 2, 2, f.shape.row / 2 - 1, f.shape.row / 2).unwrap();
        let (product, choices) = (MatrixPlan::new(packing, [2, 2, 2], 1, [1, 1]).unwrap(), MatrixChoices::mixed(4));
        let keys = f.session.generate_keys_for(&f.secret, &product.rotations(&choices), &mut f.randomness).unwrap();
        f.session.add_keys(&Arc::new(keys));
        let matrix = |entries: [i64; 4]| Matrix::new(2, 2, entries.map(BigInt::from).to_vec()).unwrap();
        let mut factor = |side, entries| {
            let slots = product.slots(side, &[matrix(entries)]).unwrap();
            let integer = |x: &BigInt| i64::try_from(x).unwrap();
            let slots = slots.iter().map(|slots| slots.iter().map(integer).collect::<Vec<_>>());
            slots.map(|slots| f.encrypt(&slots, 3.0)).collect::<Vec<_>>()
        };
        let (left, right) = (factor(Side::Left, [1, 2, 3, -1]), factor(Side::Right, [2, 0, 1, -3]));
        let (left, right): (Vec<&Erased>, Vec<&Erased>) = (left.iter().collect(), right.iter().collect());
        let made = f.session.multiply(&product, &choices, &left, &right).unwrap();
        let slots: Vec<Vec<f64>> =
            made.iter().map(|x| f.session.decrypt(&f.secret, x).unwrap().reals().to_vec()).collect();
        let entries: Vec<i64> =
            product.products(&slots).unwrap()[0].entries().iter().map(|x| x.round() as i64).collect();
        assert_eq!(entries, [4, -6, 5, 3], "{}", f.name);
    }
}

#[test]
fn a_typed_session_goes_from_a_plan_to_the_result() {
    fn computes<S: Scheme>() {
        let session = plan(S::NAME).open::<S>().unwrap();
        let mut randomness = Randomness::insecure_from_number(2);
        let (secret, public) = session.generate_keys(&mut randomness).unwrap();
        let evaluator = session.evaluator(session.generate_evaluation_keys(&secret, &mut randomness).unwrap());
        let (name, bits) = (S::NAME.name(), [1, 0, -1, 1]);
        let x = session.encrypt(&public, numbers(name, &bits), &mut randomness).unwrap();
        let y = evaluator.mul(&evaluator.sub(&x, &evaluator.rotate(&x, 1).unwrap()).unwrap(), &x).unwrap();
        let found = session.decrypt(&secret, &y).unwrap().reals();
        let found: Vec<i64> = found[..4].iter().map(|x| x.round() as i64).collect();
        assert_eq!(found, [1, 0, 2, 1], "{name}");
        // What takes no keys is there without them.
        session.keyless().add(&x, &y).unwrap();
        assert_eq!(session.keyless().mul(&x, &x).err().map(|e| e.kind()), Some("no_keys"), "{name}");
    }
    computes::<Bfv>();
    computes::<Bgv>();
    computes::<Ckks>();
}

#[test]
fn chebyshev_polynomials_are_for_ckks() {
    for scheme in SCHEMES {
        let mut f = fixture(scheme);
        let a: Vec<i64> = f.message(1).iter().map(|a| a.signum()).collect();
        let x = f.encrypt(&a, 1.0);
        let operation = Operation::Chebyshev(&[0.5, 0.0, 0.5], (-1.0, 1.0), None);
        match f.session.apply(&operation, &[&x]) {
            Ok(square) if scheme == SchemeName::Ckks => f.judge(&square, &zip(&a, &a, |a, b| a * b), "T_2"),
            other => assert_eq!(other.err().map(|e| e.kind()), Some("scheme"), "{}", f.name),
        }
    }
}

#[test]
fn errors_are_declared_in_ckks() {
    for scheme in SCHEMES {
        let mut f = fixture(scheme);
        let a = f.message(1);
        let x = f.encrypt(&a, 3.0);
        let before = f.session.state(&x).unwrap();
        match f.session.apply(&Operation::Approximate(0.25), &[&x]) {
            Ok(near) if scheme == SchemeName::Ckks => {
                let after = f.session.state(&near).unwrap();
                let apart = after.error_bound - before.error_bound;
                assert!((0.25 - 1e-9..0.251).contains(&apart) && after.bound == before.bound + 0.25, "{apart}");
                f.judge(&near, &a, "an error that is declared");
                // What follows counts it.
                let twice = f.apply(&Operation::Binary(Binary::Add), &[&near, &near]);
                assert!(f.session.state(&twice).unwrap().error_bound >= 0.5);
            }
            other => assert_eq!(other.err().map(|e| e.kind()), Some("scheme"), "{}", f.name),
        }
        match f.session.apply(&Operation::AsComputed, &[&x]) {
            Ok(exact) if scheme == SchemeName::Ckks => {
                let after = f.session.state(&exact).unwrap();
                assert!(
                    after.error_bound < before.error_bound && after.bound > before.bound && after.lineage.is_some()
                );
            }
            other => assert_eq!(other.err().map(|e| e.kind()), Some("scheme"), "{}", f.name),
        }
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(f.session.apply(&Operation::Approximate(wrong), &[&x]).is_err(), "{wrong}");
        }
    }
}

#[test]
fn either_key_encrypts_at_every_level() {
    for scheme in SCHEMES {
        let mut f = fixture(scheme);
        let a = f.message(3);
        for level in 1..=f.session.top_level() {
            for by in [Encryptor::Public(&f.public), Encryptor::Secret(&f.secret)] {
                let x = f.session.encrypt(&by, &f.numbers(&a), 3.0, level, &mut f.randomness).unwrap();
                let state = f.session.state(&x).unwrap();
                assert_eq!((state.level, state.components, state.key), (level, 2, f.secret.id()));
                assert!(state.noise_budget > 0.0 && state.noise_bits < state.modulus_bits, "{state:?}");
                assert_eq!((state.bound, state.on_word), (if f.name == "ckks" { 3.0 } else { f64::INFINITY }, false));
                f.judge(&x, &a, "fresh");
            }
        }
    }
}

#[test]
fn a_ciphertext_that_is_read_is_believed_for_a_reason() {
    for scheme in SCHEMES {
        let mut f = fixture(scheme);
        let a = f.message(4);
        let x = f.encrypt(&a, 3.0);
        let bytes = f.session.write(&x).unwrap();
        let read = |trust| f.session.read(&bytes, Some(f.secret.id()), trust);
        let on_word = read(Trust::Certificate).unwrap();
        assert!(f.session.state(&on_word).unwrap().on_word);
        f.judge(&on_word, &a, "read");
        assert!(f.session.state(&f.apply(&Operation::Binary(Binary::Add), &[&x, &on_word])).unwrap().on_word);
        let unknown = read(Trust::Nothing);
        let kind = unknown.and_then(|x| f.session.decrypt(&f.secret, &x)).err().map(|e| e.kind());
        assert_eq!(kind, Some("unknown_noise"), "{}", f.name);
        let release = Release { precision: 1.0, shares: 1, security: 30 };
        let refused = |x| f.session.publish(&f.secret, x, &release).err().map(|e| e.kind());
        assert!(refused(&on_word).is_some(), "{}", f.name);
        assert_eq!(refused(&x), (f.name != "ckks").then_some("release"), "{}", f.name);
    }
}

#[test]
fn what_does_not_belong_is_refused_by_name() {
    let [bfv, bgv, ckks] = SCHEMES.map(plan);
    assert_eq!(bfv.open::<Bgv>().err().map(|e| e.kind()), Some("argument"));
    assert_eq!(ckks.open::<Bfv>().err().map(|e| e.kind()), Some("argument"));
    assert_eq!(bgv.open::<Ckks>().err().map(|e| e.kind()), Some("argument"));

    for scheme in SCHEMES {
        let mut f = fixture(scheme);
        let a = f.message(1);
        let x = f.encrypt(&a, 3.0);
        let kind = |result: synchromesh::Result<Erased>| result.err().map(|e| e.kind());
        let add = Operation::Binary(Binary::Add);
        // Another scheme's, another plan's, and as many as it does not take.
        let other = fixture(if scheme == SchemeName::Bfv { SchemeName::Bgv } else { SchemeName::Bfv });
        assert_eq!(kind(other.session.apply(&add, &[&x, &x])), Some("scheme_differs"));
        assert_eq!(other.session.state(&x).err().map(|e| e.kind()), Some("scheme_differs"));
        assert_eq!(kind(f.session.apply(&add, &[&x])), Some("shape"));
        assert_eq!(kind(f.session.apply(&Operation::Neg, &[])), Some("shape"));
        let deeper = Description { security: Security::Insecure, ..Description::new(scheme, 5) };
        let deeper = deeper.plan().unwrap().open_any().unwrap();
        assert_eq!(kind(deeper.apply(&add, &[&x, &x])), Some("params_differ"), "{}", f.name);
        assert!(deeper.decrypt(&f.secret, &x).is_err());
        // Rotations that have no keys, and more than there are.
        assert_eq!(kind(f.session.apply(&Operation::Rotate(17), &[&x])), Some("missing_key"));
        let many = Rotations::by(1..=4 * f.shape.row as i64 + 1);
        let refused = f.session.generate_keys_for(&f.secret, &many, &mut f.randomness);
        assert_eq!(refused.err().map(|e| e.kind()), Some("rotations"));
        // A slot that there is not.
        let beyond = Entries { to: vec![f.shape.count() as u32], from: vec![0], values: f.numbers(&[1]) };
        assert_eq!(kind(f.session.prepare(&x, &beyond)), Some("shape"));
        assert_eq!(kind(f.session.linear(beyond, &x)), Some("shape"));
    }
}

#[test]
fn numbers_that_a_slot_does_not_hold_are_refused() {
    let wide: Values = vec![BigInt::from(T / 2 + 1)].into();
    for scheme in SCHEMES {
        let mut f = fixture(scheme);
        let x = f.encrypt(&[1], 1.0);
        let kind = |values: &Values| f.session.require_held(values).err().map(|e| e.kind());
        if scheme == SchemeName::Ckks {
            assert_eq!(kind(&wide), Some("dtype"));
            assert_eq!(kind(&[1i64 << 40].into()), None);
        } else {
            assert_eq!(kind(&[T / 2, -(T / 2)].into()), None);
            assert_eq!(kind(&[1.0].into()), Some("dtype"));
            assert_eq!(kind(&[Complex64::new(0.0, 1.0)].into()), Some("dtype"));
            assert_eq!(kind(&wide), Some("value_exceeds_modulus"));
            let refused = f.session.require_held(&[0, T / 2 + 1].into()).unwrap_err();
            assert!(refused.to_string().contains("number 1 ") && !refused.remedy().is_empty(), "{refused}");
            // An entry of a map, behind many others.
            let mut entries = vec![1; 5000];
            entries[4999] = T;
            let entries = Entries { to: vec![0; 5000], from: vec![0; 5000], values: entries.into() };
            let refused = f.session.prepare(&x, &entries).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains("number 4999 "), "{refused}");
            // A public factor is taken modulo t.
            let product = f.apply(&Operation::Scalar(Binary::Mul, &[T + 2].into()), &[&x]);
            assert_eq!(f.session.decrypt(&f.secret, &product).unwrap().words().unwrap()[..2], [2, 0]);
        }
        let too_large = f.numbers(&[0, T]);
        let (by, top) = (Encryptor::Public(&f.public), f.session.top_level());
        let refused = f.session.encrypt(&by, &too_large, 1.0, top, &mut f.randomness);
        let expected = if f.name == "ckks" { "above_declared_bound" } else { "value_exceeds_modulus" };
        assert_eq!(refused.err().map(|e| e.kind()), Some(expected));
    }
}

#[test]
fn composed_rotations_come_with_the_plan() {
    for scheme in SCHEMES {
        let mut description = Description { security: Security::Insecure, ..Description::new(scheme, 1) };
        description.rotations = vec![1, 2, 3, 4, 5];
        let whole = description.plan().unwrap().key_bytes;
        description.max_key_bytes = Some(whole * 2 / 3);
        let plan = description.plan().unwrap();
        assert!(plan.routes.is_some());
        let session = plan.open_any_on(<Cpu as Open>::open).unwrap();
        let mut randomness = Randomness::insecure_from_number(4);
        let (secret, public) = session.generate_keys(&mut randomness).unwrap();
        let size = |keys: &EvaluationKeys| keys.to_bytes(session.rlwe(), None).unwrap().len() as u64;
        let keys = session.generate_keys_for(&secret, session.rotations(), &mut randomness).unwrap();
        assert_eq!(size(&keys), plan.key_bytes);
        // Named by the rotations that the circuit makes, they are the same keys.
        let named = Rotations::by(plan.rotations.iter().copied());
        assert_eq!(size(&session.generate_keys_for(&secret, &named, &mut randomness).unwrap()), plan.key_bytes);
        session.add_keys(&Arc::new(keys));
        let values = numbers(scheme.name(), &[0, 0, 0, 0, 0, 1]);
        let by = Encryptor::Public(&public);
        let x = session.encrypt(&by, &values, 1.0, session.top_level(), &mut randomness).unwrap();
        for k in 1..=5 {
            let rotated = session.apply(&Operation::Rotate(k), &[&x]).unwrap();
            let found = session.decrypt(&secret, &rotated).unwrap().reals();
            assert_eq!(found[5 - k as usize].round(), 1.0, "{} by {k}", scheme.name());
        }
    }
}

/// Both kinds of map, of diagonals in one row and of such as meet the argument swapped too, with keys for a third of their
/// rotations.
#[test]
fn maps_are_made_of_composed_rotations() {
    const SIZE: usize = 12;
    for scheme in SCHEMES {
        // Results are up to 180 times as large as plans expect.
        let description = |depth| Description {
            headroom: if scheme == SchemeName::Ckks { 10 } else { 0 },
            security: Security::Insecure,
            ..Description::new(scheme, depth)
        };
        let shape = description(1).plan().unwrap().open_any().unwrap().slots().unwrap();
        for swaps in [false, true] {
            let beyond = if swaps && shape.rows > 1 { shape.row } else { 0 };
            let entry = |r: usize, c: usize| ((5 * r + 3 * c) % 7) as i64 - 3;
            let mut map = LinearTransform::<BigInt>::zero(shape);
            for k in 0..SIZE {
                let diagonal = (0..SIZE).map(|r| entry(r, (r + k) % SIZE).into());
                map.add_diagonal(k as i64, swaps && k % 3 == 1, diagonal.collect()).unwrap();
            }
            let all = map.rotations(map.baby_steps());
            let mut description = Description { rotations: all.by.clone(), swap: all.swap, ..description(1) };
            let [none, whole] = [&[][..], &all.by].map(|rotations| {
                Description { rotations: rotations.to_vec(), ..description.clone() }.plan().unwrap().key_bytes
            });
            description.max_key_bytes = Some(none + (whole - none) / 3);
            let plan = description.plan().unwrap();
            assert!(plan.routes.is_some(), "{plan:?}");
            let session = plan.open_any_on(<Cpu as Open>::open).unwrap();
            assert_eq!(session.slots().unwrap(), shape);
            let mut randomness = Randomness::insecure_from_number(14);
            let (secret, public) = session.generate_keys(&mut randomness).unwrap();
            let keys = session.generate_keys_for(&secret, session.rotations(), &mut randomness).unwrap();
            session.add_keys(&Arc::new(keys));
            let a: Vec<i64> = (0..shape.count()).map(|i| (7 * i % 11) as i64 - 5).collect();
            let by = Encryptor::Public(&public);
            let x = numbers(scheme.name(), &a);
            let x = session.encrypt(&by, &x, 5.0, session.top_level(), &mut randomness).unwrap();
            let from = |r: usize, k: usize| if swaps && k % 3 == 1 { beyond + r + k } else { r + k };
            let (mut to, mut slots, mut values) = (Vec::new(), Vec::new(), Vec::new());
            let mut expected = vec![0; SIZE];
            for (r, k) in (0..SIZE).flat_map(|r| (0..SIZE).map(move |k| (r, k))) {
                to.push(r as u32);
                slots.push(from(r, k) as u32);
                values.push(entry(r, (r + k) % SIZE));
                expected[r] += entry(r, (r + k) % SIZE) * a[from(r, k)];
            }
            let entries = || Entries { to: to.clone(), from: slots.clone(), values: numbers(scheme.name(), &values) };
            let prepared = session.prepare(&x, &entries()).unwrap();
            for y in [session.linear(entries(), &x).unwrap(), session.map(&prepared, &x).unwrap()] {
                let found = session.decrypt(&secret, &y).unwrap().reals();
                let found: Vec<i64> = found[..SIZE].iter().map(|x| x.round() as i64).collect();
                assert_eq!(found, expected, "{} {swaps}", scheme.name());
            }
        }
    }
}

/// Before and after products, and with a second secret key for the lower levels.
#[test]
fn what_is_under_an_old_key_goes_under_a_new_one() {
    for (scheme, leading_levels) in SCHEMES.into_iter().map(|scheme| (scheme, 0)).chain([(SchemeName::Bgv, 1)]) {
        let description = Description { security: Security::Insecure, leading_levels, ..Description::new(scheme, 2) };
        let session = description.plan().unwrap().open_any().unwrap();
        let mut randomness = Randomness::insecure_from_number(24);
        let mut owner = || {
            let (secret, public) = session.generate_keys(&mut randomness).unwrap();
            let keys = session.generate_keys_for(&secret, session.rotations(), &mut randomness).unwrap();
            (secret, public, keys)
        };
        let ((old, public, own), (new, _, others)) = (owner(), owner());
        session.add_keys(&Arc::new(own));
        let bridge = session.generate_rekeying(&new, &old, &mut randomness).unwrap();
        let by = Encryptor::Public(&public);
        let x = numbers(scheme.name(), &[1, -1]);
        let x = session.encrypt(&by, &x, 1.0, session.top_level(), &mut randomness).unwrap();
        let kind = |found: synchromesh::Result<Erased>| found.err().map(|e| e.kind());
        let squared = session.apply(&Operation::Square, &[&x]).unwrap();
        // What is computed later has its keys and the bridge in one set.
        let keys = Arc::new(others.and(&bridge).unwrap());
        let without = Arc::new(others);
        session.add_keys(&keys);
        for (x, expected) in [(&x, [1.0, -1.0]), (&squared, [1.0, 1.0])] {
            assert_eq!(kind(session.rekey(&without, x)), Some("missing_key"), "{}", scheme.name());
            let moved = session.rekey(&keys, x).unwrap();
            let found = |x: &Erased| session.decrypt(&new, x).unwrap().reals();
            assert_eq!(found(&moved)[..2].iter().map(|x| x.round()).collect::<Vec<_>>(), expected);
            assert_eq!(session.decrypt(&old, &moved).err().map(|e| e.kind()), Some("keys_differ"));
            let again = session.rekey(&keys, &moved).unwrap();
            assert_eq!(found(&again)[..2], found(&moved)[..2], "under its own key already");
            let product = session.apply(&Operation::Square, &[&moved]).unwrap();
            assert_eq!(found(&product)[..2].iter().map(|x| x.round()).collect::<Vec<_>>(), [1.0, 1.0]);
            let mixed = session.apply(&Operation::Binary(Binary::Add), &[x, &moved]);
            assert_eq!(kind(mixed), Some("keys_differ"));
        }
    }
}

/// Below the leading levels ciphertexts are under a second secret key, and go on there.
#[test]
fn what_is_under_the_second_secret_key_is_computed_on_and_decrypted() {
    for scheme in [SchemeName::Bgv, SchemeName::Ckks] {
        let description = Description {
            leading_levels: 1,
            precision: (scheme == SchemeName::Ckks).then_some(8),
            security: Security::Insecure,
            ..Description::new(scheme, 3)
        };
        let session = description.plan().unwrap().open_any().unwrap();
        let mut randomness = Randomness::insecure_from_number(6);
        let (secret, public) = session.generate_keys(&mut randomness).unwrap();
        let keys = session.generate_keys_for(&secret, session.rotations(), &mut randomness).unwrap();
        session.add_keys(&Arc::new(keys));
        let by = Encryptor::Public(&public);
        let one = numbers(scheme.name(), &[1, -1]);
        let mut x = session.encrypt(&by, &one, 1.0, session.top_level(), &mut randomness).unwrap();
        for level in (0..session.top_level()).rev() {
            x = session.apply(&Operation::AtLevel(level), &[&x]).unwrap();
            if level > 0 {
                x = session.apply(&Operation::Square, &[&x]).unwrap();
            }
            let found = session.decrypt(&secret, &x).unwrap().reals();
            assert_eq!(found[0].round(), 1.0, "{} at level {level}", scheme.name());
        }
    }
}
