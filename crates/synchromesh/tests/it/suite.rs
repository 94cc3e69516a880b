//! The properties that BFV and BGV share, each as a function of the scheme; `bits` is what one product of fresh
//! ciphertexts at N = 2^10 takes from the modulus.
#![allow(unreachable_pub, missing_docs, reason = "shared by the files of one test program")]

use std::sync::Arc;

use num_bigint::BigInt;
use synchromesh::Error;
use synchromesh::batch::BatchError;
use synchromesh::exact::{Context, Evaluator, Params, ParamsLiteral, Rotations};
use synchromesh::rlwe::Error as RlweError;
use synchromesh::rlwe::{Randomness, Security};

use crate::oracle::{Fixture, Judged, big, deep, fixture, literal, moduli};

fn bits_of(t: &str, product: u32) -> u32 {
    big(t).bits() as u32 + product
}

/// Every operation on fresh ciphertexts, for every t.
pub fn every_operator<S: Judged>(product: u32) {
    for t in moduli() {
        let bits = bits_of(&t, product);
        let mut f: Fixture<S> = fixture(deep(10, &t, bits, bits, 2), &Rotations::by([1, -3]).and_swap_if(&t), 11);
        let (a, b) = (f.random(), f.random());
        let (x, y) = (f.encrypt(&a), f.encrypt(&b));
        let plain = f.encode(&b);
        let e = &f.evaluator;
        f.judge(&e.add(&x, &y).unwrap(), &f.add(&a, &b));
        f.judge(&e.sub(&x, &y).unwrap(), &f.sub(&a, &b));
        f.judge(&e.neg(&x).unwrap(), &f.scale(&a, &(-1).into()));
        f.judge(&e.add_plain(&x, &plain).unwrap(), &f.add(&a, &b));
        f.judge(&e.sub_plain(&x, &plain).unwrap(), &f.sub(&a, &b));
        f.judge(&e.mul_plain(&x, &plain).unwrap(), &f.mul(&a, &b));
        for c in [BigInt::from(0), BigInt::from(-7), f.t() - 1, f.t() / 2 + 3, f.t() * 5 + 2] {
            f.judge(&e.mul_scalar(&x, c.clone()).unwrap(), &f.scale(&a, &c));
        }
        f.judge(&e.mul(&x, &y).unwrap(), &f.mul(&a, &b));
        f.judge(&e.square(&x).unwrap(), &f.mul(&a, &a));
        let three = e.mul_no_relin(&x, &y).unwrap();
        assert_eq!(three.components(), 3);
        f.judge(&three, &f.mul(&a, &b));
        f.judge(&e.mod_switch(&three).unwrap(), &f.mul(&a, &b));
        f.judge(&e.add(&three, &x).unwrap(), &f.add(&f.mul(&a, &b), &a));
        f.judge(&e.sub(&x, &three).unwrap(), &f.sub(&a, &f.mul(&a, &b)));
        f.judge(&e.relinearize(&e.add(&three, &three).unwrap()).unwrap(), &f.scale(&f.mul(&a, &b), &2.into()));
        if f.has_slots() {
            for k in [1, -3] {
                f.judge(&e.rotate_rows(&x, k).unwrap(), &f.rotate(&a, k));
            }
            for (k, rotated) in [1, 0, -3].into_iter().zip(e.rotate_rows_many(&x, &[1, 0, -3]).unwrap()) {
                f.judge(&rotated, &f.rotate(&a, k));
            }
            f.judge(&e.rotate_columns(&x).unwrap(), &f.swap(&a));
        }
    }
}

trait RotationsFor {
    fn and_swap_if(self, t: &str) -> Self;
}

impl RotationsFor for Rotations {
    /// All rotations where t has slots at N = 2^10, none otherwise.
    fn and_swap_if(self, t: &str) -> Self {
        if t == "2" { Self::none() } else { self.and_swap() }
    }
}

/// `depth` squarings in a row with `depth` levels, and the level they end on.
pub fn squarings<S: Judged>(t: &str, product: u32, depth: usize) -> usize {
    let bits = bits_of(t, product);
    squarings_in::<S>(deep(10, t, bits, bits, depth), depth)
}

/// [`squarings`] with parameters of any form.
pub fn squarings_in<S: Judged>(literal: ParamsLiteral, depth: usize) -> usize {
    let mut f: Fixture<S> = fixture(literal, &Rotations::none(), 12);
    let mut m = f.random();
    let mut ct = f.encrypt(&m);
    for _ in 0..depth {
        ct = f.evaluator.square(&ct).unwrap();
        m = f.mul(&m, &m);
        f.judge(&ct, &m);
    }
    ct.level()
}

/// Fresh ciphertexts at every level, switched ciphertexts at every level, and sums of any two of them.
pub fn levels_mix<S: Judged>(t: &str, product: u32) {
    let bits = bits_of(t, product);
    levels_mix_in::<S>(deep(10, t, bits, bits, 3));
}

/// [`levels_mix`] with parameters of any form, of two levels or more.
pub fn levels_mix_in<S: Judged>(literal: ParamsLiteral) {
    let mut f: Fixture<S> = fixture(literal, &Rotations::none(), 13);
    let (a, b) = (f.random(), f.random());
    let (x, y) = (f.encrypt(&a), f.encrypt(&b));
    let product = f.evaluator.mul(&x, &y).unwrap();
    let ab = f.mul(&a, &b);
    let top = f.context.params().top_level();
    let mut pool = vec![(product.duplicate(&f.context).unwrap(), ab.clone())];
    for level in 0..=top {
        let m = f.random();
        let fresh = f.encrypt_at(&m, level);
        f.judge(&fresh, &m);
        pool.push((fresh, m));
        for (ct, m) in [(&x, &a), (&product, &ab)] {
            let level = level.min(ct.level());
            let switched = f.evaluator.mod_switch_to(ct, level).unwrap();
            assert_eq!(switched.level(), level);
            f.judge(&switched, m);
            pool.push((switched, m.clone()));
        }
    }
    for (x, a) in &pool {
        for (y, b) in &pool {
            let sum = f.evaluator.add(x, y).unwrap();
            assert_eq!(sum.level(), x.level().min(y.level()));
            f.judge(&sum, &f.add(a, b));
        }
        if x.level() > 0 {
            let product = f.evaluator.mul(x, &pool[1 + 3].0).unwrap();
            f.judge(&product, &f.mul(a, &pool[1 + 3].1));
        }
    }
    let m = f.random();
    let plaintext = f.encode(&m);
    let (ct, _) = f.context.encrypt_with_secret(&f.secret, &plaintext, &mut f.randomness).unwrap();
    f.judge(&ct, &m);
}

/// Coefficients modulo composite t, even and odd, in words and in limbs.
pub fn composite_moduli<S: Judged>(product: u32) {
    for t in ["4", "1048576", "1000000", "0x10000000000000000000000000", "0x7fffffffffffffffffffffff"] {
        let bits = bits_of(t, product);
        let mut f: Fixture<S> = fixture(deep(10, t, bits, bits, 2), &Rotations::none(), 14);
        assert!(!f.has_slots());
        let (a, b) = (f.random(), f.random());
        let (x, y) = (f.encrypt(&a), f.encrypt(&b));
        let z = f.evaluator.mul(&x, &y).unwrap();
        let c = f.mul(&a, &b);
        f.judge(&z, &c);
        let z = f.evaluator.mod_switch(&z).unwrap();
        f.judge(&f.evaluator.add(&z, &y).unwrap(), &f.add(&c, &b));
        f.judge(&f.evaluator.mul_plain(&y, &f.encode(&a)).unwrap(), &c);
        assert_eq!(f.evaluator.rotate_rows(&x, 1).err().map(|e| e.kind()), Some("no_slots"));
    }
}

/// Declared norms tighten the certificate of a product, and still cover the error.
pub fn public_norms<S: Judged>(product: u32) {
    for t in ["1073479681", crate::oracle::T128] {
        let bits = bits_of(t, product);
        let mut f: Fixture<S> = fixture(deep(10, t, bits, bits, 1), &Rotations::none(), 15);
        let a = f.random();
        let x = f.encrypt(&a);
        let small = f.context.encode_coefficients(&[3i64, 0, -2]).unwrap();
        let expected = f.decode(&small);
        let blind = f.evaluator.mul_plain(&x, &small).unwrap();
        let informed = f.evaluator.mul_plain(&x, &small.with_public_norms()).unwrap();
        f.judge(&blind, &f.mul(&a, &expected));
        let slack = f.judge(&informed, &f.mul(&a, &expected));
        let left = [&blind, &informed].map(|ct| f.context.noise_budget(ct).unwrap());
        assert!(left[1] > left[0] + 20.0 && slack < 15.0, "{left:?}, slack {slack}");
    }
}

/// An operation that could decrypt wrongly is an error, and so is decryption.
pub fn noise_is_refused<S: Judged>(product: u32) {
    let t = "65537";
    let bits = bits_of(t, product);
    let mut f: Fixture<S> = fixture(deep(10, t, bits, bits, 1), &Rotations::none(), 16);
    let mut m = f.random();
    let mut ct = f.encrypt(&m);
    let error = loop {
        match f.evaluator.square(&ct) {
            Ok(square) => {
                ct = square;
                m = f.mul(&m, &m);
                f.judge(&ct, &m);
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Rlwe(RlweError::Noise { .. })), "{error}");
    assert!(!error.remedy().is_empty() && error.kind() == "noise");
    let none = Params::<S>::new(literal(10, t, &[20], &[30], &[], 1)).unwrap();
    let context = Context::new(none).unwrap();
    let mut randomness = Randomness::insecure_from_number(1);
    let (_, public) = context.generate_keys(&mut randomness).unwrap();
    let plaintext = context.encode(&[1i64]).unwrap();
    let refused = context.encrypt(&public, &plaintext, &mut randomness).err();
    assert!(matches!(refused, Some(Error::Rlwe(RlweError::Noise { .. }))), "{refused:?}");
}

/// Keys, levels, parameters and plaintexts that do not fit: the typed error.
pub fn mismatches<S: Judged>(product: u32) {
    let bits = bits_of("65537", product);
    let mut f: Fixture<S> = fixture(deep(10, "65537", bits, bits, 1), &Rotations::by([1]), 17);
    let a = f.random();
    let x = f.encrypt(&a);
    let (other_secret, other_public) = f.context.generate_keys(&mut f.randomness).unwrap();
    let plaintext = f.encode(&a);
    let other = f.context.encrypt(&other_public, &plaintext, &mut f.randomness).unwrap();
    let kind = |e: Option<Error>| e.map(|e| e.kind());
    assert_eq!(kind(f.context.decrypt(&other_secret, &x).err()), Some("keys_differ"));
    assert_eq!(kind(f.evaluator.add(&x, &other).err()), Some("keys_differ"));
    assert_eq!(kind(f.evaluator.mul(&x, &other).err()), Some("keys_differ"));
    assert_eq!(kind(f.evaluator.rotate_rows(&other, 1).err()), Some("keys_differ"));
    assert_eq!(kind(f.evaluator.rotate_rows(&x, 2).err()), Some("missing_key"));
    assert_eq!(kind(f.evaluator.rotate_columns(&x).err()), Some("missing_key"));
    assert_eq!(kind(f.evaluator.relinearize(&x).err()), Some("components"));
    let three = f.evaluator.mul_no_relin(&x, &x).unwrap();
    assert_eq!(kind(f.evaluator.mul(&three, &x).err()), Some("components"));
    assert_eq!(kind(f.evaluator.rotate_rows(&three, 1).err()), Some("components"));
    let bottom = f.evaluator.mod_switch_to(&x, 0).unwrap();
    assert_eq!(kind(f.evaluator.mod_switch(&bottom).err()), Some("level"));
    assert_eq!(kind(f.evaluator.mod_switch_to(&bottom, 1).err()), Some("level"));
    let encrypted = f.context.encrypt_at(&f.public, &plaintext, 2, &mut f.randomness).err();
    assert_eq!(kind(encrypted), Some("level"));
    let keyless = Evaluator::new(&f.context, None);
    assert_eq!(kind(keyless.mul(&x, &x).err()), Some("no_keys"));
    assert_eq!(kind(keyless.rotate_rows(&x, 1).err()), Some("no_keys"));

    let mut g: Fixture<S> = fixture(deep(10, "1073479681", bits + 20, bits, 1), &Rotations::none(), 18);
    let b = g.random();
    let y = g.encrypt(&b);
    for result in [f.evaluator.add(&x, &y), f.evaluator.mul(&y, &x), f.evaluator.mod_switch(&y), f.evaluator.neg(&y)] {
        assert_eq!(kind(result.err()), Some("params_differ"));
    }
    assert_eq!(kind(f.context.decrypt(&f.secret, &y).err()), Some("params_differ"));
    let encrypted = f.context.encrypt(&g.public, &plaintext, &mut f.randomness).err();
    assert_eq!(kind(encrypted), Some("params_differ"));
    let foreign = g.encode(&b);
    assert_eq!(kind(f.evaluator.add_plain(&x, &foreign).err()), Some("plain_modulus_differs"));
    assert_eq!(kind(f.evaluator.mul_plain(&x, &foreign).err()), Some("plain_modulus_differs"));
    let wider: Fixture<S> = fixture(literal(11, "65537", &[60], &[60], &[], 1), &Rotations::none(), 19);
    let longer = wider.context.encode(&[1i64]).unwrap();
    assert_eq!(kind(f.evaluator.mul_plain(&x, &longer).err()), Some("plaintext_degree"));
    let values = vec![1i64; 1025];
    for error in [f.context.encode(&values).err(), f.context.encode_coefficients(&values).err()] {
        let expected = BatchError::TooManyValues { given: 1025, capacity: 1024 };
        assert_eq!(error, Some(Error::Batch(expected)));
    }
}

/// Literals that break a rule.
pub fn bad_literals<S: Judged>() {
    let good = literal(10, "65537", &[50, 50], &[50], &[], 2);
    let params = Params::<S>::new(good.clone()).unwrap();
    let again = Params::<S>::new(params.literal().clone()).unwrap();
    assert!(params == again, "the primes chosen are the primes listed");
    let kind = |change: &dyn Fn(&mut ParamsLiteral)| {
        let mut bad = good.clone();
        change(&mut bad);
        let error = Params::<S>::new(bad).expect_err("refused");
        assert!(!error.remedy().is_empty());
        error.kind()
    };
    assert_eq!(kind(&|l| l.t = "1".to_owned()), "plain_modulus_too_small");
    assert_eq!(kind(&|l| l.t = "x".to_owned()), "plain_modulus_not_a_number");
    assert_eq!(kind(&|l| l.t = "9".repeat(79)), "plain_modulus_too_wide");
    assert_eq!(kind(&|l| l.q_bits = vec![19]), "primes");
    assert_eq!(kind(&|l| l.q_bits = vec![20; 400]), "primes");
    assert_eq!(kind(&|l| l.q_bits = vec![]), "params");
    assert_eq!(kind(&|l| l.log_n = 9), "degree");
    assert_eq!(kind(&|l| l.omega = 0), "switch_plan");
    assert_eq!(kind(&|l| l.level_limbs = vec![2, 1]), "params");
    assert_eq!(kind(&|l| l.security = Security::Bits128), "insecure_modulus");
    let listed = params.literal().primes.clone().unwrap();
    let shared = listed.q[1].to_string();
    let explicit = |t: &str, change: &dyn Fn(&mut synchromesh::exact::PrimeLists)| {
        kind(&|l| {
            let mut lists = listed.clone();
            change(&mut lists);
            (l.t, l.primes) = (t.to_owned(), Some(lists));
        })
    };
    assert_eq!(explicit(&shared, &|_| ()), "shared_factor");
    assert_eq!(explicit("65537", &|l| l.q[0] = l.q[1]), "repeated_modulus");
    assert_eq!(explicit("65537", &|l| l.q[0] += 2), "modulus");
    assert_eq!(explicit("65537", &|l| l.q[0] = 0), "params");
    assert_eq!(explicit("65537", &|l| l.aux.push(41)), "params");
    // A t that is itself the largest prime of its width is passed over, not refused.
    let own = Params::<S>::new(literal(10, "1073479681", &[30; 12], &[40], &[], 3)).unwrap();
    assert!(!own.literal().primes.clone().unwrap().q.contains(&1_073_479_681));
}

/// A product and a rotation at 128 bits of security.
pub fn at_real_size<S: Judged>(q_bits: &[u32], p_bits: &[u32]) {
    let mut real = literal(13, "65537", q_bits, p_bits, &[], q_bits.len());
    real.security = Security::Bits128;
    let mut f: Fixture<S> = fixture(real, &Rotations::by([5]), 20);
    assert!(f.context.params().rlwe().security_bits() >= 128.0);
    let (a, b) = (f.random(), f.random());
    let (x, y) = (f.encrypt(&a), f.encrypt(&b));
    let z = f.evaluator.mul(&x, &y).unwrap();
    let c = f.mul(&a, &b);
    f.judge(&z, &c);
    f.judge(&f.evaluator.rotate_rows(&z, 5).unwrap(), &f.rotate(&c, 5));
}

/// Errors as large as the room allows, on either side of every message; beyond it, the certificate refuses.
pub fn edge_of_the_room<S: Judged>() {
    let moduli = moduli().into_iter().chain(["1048576", "0x7fffffffffffffffffffffff"].map(str::to_owned));
    for t in moduli {
        let wide = big(&t).bits() as usize / 50 + 2;
        for q_bits in [
            vec![61; 40],
            vec![61; wide + 3],
            vec![45; wide + 8],
            (0..wide as u32 + 9).map(|i| 20 + 4 * i % 42).collect(),
        ] {
            let mut f: Fixture<S> = fixture(literal(10, &t, &q_bits, &[60], &[], 1), &Rotations::none(), 50);
            let (t, q) = (f.t(), f.modulus(f.context.params().top_level()));
            let room = &q / (&t * 2);
            let e = &room - (&room >> 30u32) - 2;
            let m = f.random();
            let plaintext = f.encode(&m);
            let sign = |i: usize| BigInt::from(1 - 2 * (i as i64 % 2));
            let phase: Vec<BigInt> = f
                .coefficients(&plaintext)
                .iter()
                .enumerate()
                .map(|(i, m)| S::phase_of(&f, m, &(&e * sign(i))))
                .collect();
            f.judge(&f.trivial(&phase, &e), &m);
            let refused = f.context.decrypt(&f.secret, &f.trivial(&phase, &(&room + (&room >> 30u32) + 2)));
            assert_eq!(refused.err().map(|e| e.kind()), Some("noise"));
        }
    }
}

/// Threads share an evaluator.
pub fn threads_share<S: Judged>(product: u32) {
    let bits = bits_of("65537", product);
    let mut f: Fixture<S> = fixture(deep(10, "65537", bits, bits, 1), &Rotations::none(), 21);
    let a = f.random();
    let x = Arc::new(f.encrypt(&a));
    let expected = f.mul(&a, &a);
    std::thread::scope(|scope| {
        let square = || f.evaluator.square(&x).unwrap();
        let handles: Vec<_> = (0..3).map(|_| scope.spawn(square)).collect();
        for handle in handles {
            f.judge(&handle.join().unwrap(), &expected);
        }
    });
}

/// A chain of products and rotations, each level with its own digits and borrowed primes, all from one stored key.
pub fn one_stored_key_serves_all_levels<S: Judged>(product: u32) {
    for t in ["2", "65537", crate::oracle::T128] {
        let bits = bits_of(t, product);
        let hybrid = deep(10, t, bits, bits, 4);
        let mut literal = hybrid;
        literal.q_bits.extend([58, 60, 61]);
        literal.p_bits.clear();
        literal.omega = literal.q_bits.len();
        let rotations = Rotations::by([1]).and_swap_if(t);
        let mut f: Fixture<S> = fixture(literal, &rotations, 17);
        let plans = f.context.params().plans().clone();
        assert!(plans.distinct().len() > 1, "{plans:?}");
        let (mut a, b) = (f.random(), f.random());
        let (mut x, y) = (f.encrypt(&a), f.encrypt(&b));
        for level in (0..f.context.params().top_level()).rev() {
            (x, a) = (f.evaluator.mul(&x, &y).unwrap(), f.mul(&a, &b));
            f.judge(&x, &a);
            if f.has_slots() {
                (x, a) = (f.evaluator.rotate_rows(&x, 1).unwrap(), f.rotate(&a, 1));
                f.judge(&x, &a);
            }
            while x.level() > level {
                x = f.evaluator.mod_switch(&x).unwrap();
            }
            f.judge(&x, &a);
        }
        if f.has_slots() {
            f.judge(&f.evaluator.rotate_rows(&x, 1).unwrap(), &f.rotate(&a, 1));
        }
    }
}
