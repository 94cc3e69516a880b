//! BFV and BGV into each other: messages and errors kept, one set of keys for both, mixed products.

use crate::joined::joined;
use crate::oracle::{self, Ct, Fixture, fixture, literal};
use num_bigint::BigInt;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::{Bgv, Bridge, Factors, Rotations, bridged_literal};
use synchromesh::exact::{Context, Evaluator, Params, ParamsLiteral};
use synchromesh::rlwe::Security;
use synchromesh::rlwe::ring::{Backend, Domain, Poly};

type Words = Vec<Vec<u64>>;

fn words<B: Backend, D: Domain>(backend: &B, parts: &[Poly<B, D>]) -> Words {
    parts.iter().map(|p| p.to_words(backend).unwrap()).collect()
}

/// The measured errors of two ciphertexts of one message, as log2.
fn errors(bfv: &Fixture<Bfv>, x: &Ct<Bfv>, bgv: &Fixture<Bgv>, y: &Ct<Bgv>, m: &Vec<BigInt>) -> [f64; 2] {
    use crate::oracle::Judged;
    bfv.judge(x, m);
    bgv.judge(y, m);
    [Bfv::measure(bfv, x, &bfv.encode(m)), Bgv::measure(bgv, y, &bgv.encode(m))]
}

#[test]
fn bfv_becomes_bgv_and_bfv_again_bit_for_bit() {
    for t in oracle::moduli().iter().map(String::as_str).chain(["257", "1048576", "1000000"]) {
        let (mut bfv, bgv, bridge) = joined(t, Factors::PerLevel, 40);
        let m = bfv.random();
        let square = bfv.mul(&m, &m);
        for level in 0..=2 {
            let fresh = bfv.encrypt_at(&m, level);
            let mut cases = vec![(fresh, m.clone())];
            if level == 2 {
                let [(x, _)] = &cases[..] else { panic!("one case") };
                cases.push((bfv.evaluator.mul(x, x).unwrap(), square.clone()));
                cases.push((bfv.evaluator.mul_no_relin(&cases[0].0, &cases[0].0).unwrap(), square.clone()));
            }
            for (x, m) in cases {
                let y = bridge.to_bgv(&x).unwrap();
                assert_eq!((y.level(), y.components()), (x.level(), x.components()));
                let [before, after] = errors(&bfv, &x, &bgv, &y, &m);
                assert!((before - after).abs() < 0.1, "{t}: 2^{before} became 2^{after}");
                let budgets = [bfv.context.noise_budget(&x).unwrap(), bgv.context.noise_budget(&y).unwrap()];
                assert!((budgets[0] - budgets[1]).abs() < 0.1, "{t}: {budgets:?}");
                let back = bridge.to_bfv(&y).unwrap();
                let (left, right) = (x.inner().parts(), back.inner().parts());
                assert!(words(bfv.context.backend(), left) == words(bfv.context.backend(), right));
                bfv.judge(&back, &m);
                assert!(budgets[0] - bfv.context.noise_budget(&back).unwrap() < 0.1);
            }
        }
    }
}

#[test]
fn bgv_becomes_bfv_without_noise_where_factors_are_tracked() {
    for t in ["2", "65537", oracle::T128] {
        let (bfv, mut bgv, bridge) = joined(t, Factors::Ghs, 41);
        let m = bgv.random();
        let top = bgv.encrypt(&m);
        let mut cases = vec![top.duplicate(&bgv.context).unwrap(), bgv.evaluator.mod_switch(&top).unwrap()];
        cases.push(bgv.encrypt_at(&m, 0));
        for y in cases {
            let x = bridge.to_bfv(&y).unwrap();
            let [after, before] = errors(&bfv, &x, &bgv, &y, &m);
            assert!((before - after).abs() < 0.1, "{t}: 2^{before} became 2^{after}");
            let again = bridge.to_bgv(&x).unwrap();
            let backend = bgv.context.backend();
            assert!(words(backend, again.inner().parts()) == words(backend, y.inner().parts()));
            assert_eq!(again.header(), y.header());
        }
    }
}

#[test]
fn other_factors_are_corrected_and_cost_little_with_a_modulus_switch() {
    let t = "65537";
    let (bfv, mut bgv, bridge) = joined(t, Factors::PerLevel, 42);
    let (a, b) = (bgv.random(), bgv.random());
    let (x, y) = (bgv.encrypt(&a), bgv.encrypt(&b));
    let product = bgv.evaluator.mul(&x, &y).unwrap();
    for (ct, m) in [(&x, a.clone()), (&product, bgv.mul(&a, &b))] {
        let same = bridge.to_bfv(ct).unwrap();
        let below = bridge.to_bfv_at(ct, 1).unwrap();
        bfv.judge(&same, &m);
        bfv.judge(&below, &m);
        let budget = |x: &Ct<Bfv>| bfv.context.noise_budget(x).unwrap();
        assert!(budget(&same) > bgv.context.noise_budget(ct).unwrap() - 17.0);
        // The switch divides by 45 bits: of a fresh error, whatever the constant was, nothing is left.
        let plain = bgv.evaluator.mod_switch_to(ct, 1).unwrap();
        let cost = bgv.context.noise_budget(&plain).unwrap() - budget(&below);
        assert!(cost < if ct.level() == 2 && std::ptr::eq(ct, &x) { 1.0 } else { 17.0 }, "{cost}");
    }
}

#[test]
fn one_set_of_keys_serves_both_schemes() {
    for t in ["2", "65537", oracle::T128] {
        let (mut bfv, bgv, bridge) = joined(t, Factors::Ghs, 43);
        let (a, b) = (bfv.random(), bfv.random());
        // Encrypted with BFV's public key, multiplied in BGV, relinearised with BFV's key, and the reverse.
        let [x, y] = [&a, &b].map(|m| bfv.encrypt(m));
        let [u, v] = [&x, &y].map(|ct| bridge.to_bgv(ct).unwrap());
        let product = bgv.mul(&a, &b);
        let keyless = Evaluator::new(&bgv.context, None);
        let three = keyless.mul_no_relin(&u, &v).unwrap();
        bgv.judge(&three, &product);
        let three = bridge.to_bfv_at(&three, 1).unwrap();
        let two = bfv.evaluator.relinearize(&three).unwrap();
        bfv.judge(&two, &product);
        bgv.judge(&bridge.to_bgv(&two).unwrap(), &product);
        let three = bfv.evaluator.mul_no_relin(&x, &y).unwrap();
        let two = bgv.evaluator.relinearize(&bridge.to_bgv(&three).unwrap()).unwrap();
        bfv.judge(&bridge.to_bfv(&two).unwrap(), &product);
    }
}

#[test]
fn a_bfv_and_a_bgv_ciphertext_multiply_without_a_second_base() {
    for t in oracle::moduli().iter().map(String::as_str).chain(["1048576"]) {
        for factors in [Factors::PerLevel, Factors::Ghs] {
            let (mut bfv, mut bgv, bridge) = joined(t, factors, 44);
            let (a, b) = (bfv.random(), bgv.random());
            let (x, y) = (bfv.encrypt(&a), bgv.encrypt(&b));
            let product = bfv.mul(&a, &b);
            let low = bfv.evaluator.mod_switch(&x).unwrap();
            let below = bgv.evaluator.mod_switch(&y).unwrap();
            for (x, y) in [(&x, &y), (&low, &y), (&x, &below)] {
                let three = match bridge.mul(x, y) {
                    Ok(three) => three,
                    // Taking a factor out costs log2 t bits unless a switch follows.
                    Err(error) => {
                        assert!(error.kind() == "noise" && y.level() <= x.level(), "{error}");
                        assert_ne!(y.header().value(), &1u32.into());
                        continue;
                    }
                };
                assert_eq!((three.components(), three.level()), (3, x.level().min(y.level())));
                bfv.judge(&three, &product);
                bfv.judge(&bfv.evaluator.relinearize(&three).unwrap(), &product);
            }
            if factors == Factors::PerLevel {
                let (_, count) = bfv.context.backend().measure(|| bridge.mul(&x, &y).unwrap());
                let limbs = x.inner().parts()[0].primes().len() as u64;
                assert_eq!((count.ntt, count.mul, count.convert_mac), (5 * limbs, 4 * limbs, 0));
            }
        }
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let (mut bfv, mut bgv, bridge) = joined("65537", Factors::PerLevel, 45);
    let (a, b) = (bfv.random(), bgv.random());
    let (x, y) = (bfv.encrypt(&a), bgv.encrypt(&b));
    let low = bgv.evaluator.mod_switch(&y).unwrap();
    assert_eq!(bridge.to_bfv_at(&low, 2).err().map(|e| e.kind()), Some("level"));
    let three = bfv.evaluator.mul_no_relin(&x, &x).unwrap();
    assert_eq!(bridge.mul(&three, &y).err().map(|e| e.kind()), Some("components"));
    let other: Fixture<Bgv> = fixture(literal(10, "65537", &[50, 50], &[50], &[], 1), &Rotations::none(), 46);
    let refused = Bridge::new(&bfv.context, &other.context).err().unwrap();
    assert!(refused.kind() == "argument" && refused.to_string().contains("primes"), "{refused}");
    let own: Fixture<Bgv> = fixture(bridged_literal(bfv.context.params()), &Rotations::none(), 47);
    let z = { own }.encrypt(&b);
    assert_eq!(bridge.mul(&x, &z).err().map(|e| e.kind()), Some("keys_differ"));
    let mut foreign = other;
    let m = foreign.random();
    let w = foreign.encrypt(&m);
    assert_eq!(bridge.to_bfv(&w).err().map(|e| e.kind()), Some("params_differ"));
    // One secret key would be as secure as the weaker context demands.
    let demanding = ParamsLiteral { security: Security::Bits128, ..literal(13, "65537", &[54, 54], &[55], &[], 1) };
    let strict = Context::<Bfv>::new(Params::new(demanding).unwrap()).unwrap();
    let lax = ParamsLiteral { security: Security::Insecure, ..bridged_literal(strict.params()) };
    let lax = Context::<Bgv>::new(Params::new(lax).unwrap()).unwrap();
    let refused = Bridge::new(&strict, &lax).err().unwrap();
    assert!(refused.kind() == "argument" && refused.to_string().contains("security"), "{refused}");
    // Mixed noise that would not decrypt is refused, never silent.
    let mut x = x;
    let error = loop {
        match bridge.mul(&x, &y).and_then(|p| bfv.evaluator.relinearize(&p)) {
            Ok(next) => x = next,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), "noise");
}
