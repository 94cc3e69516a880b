//! Extended rings and radix digits beyond single switches: too few auxiliary primes, long sums, plans for lower
//! levels, operations on ciphertexts, files.

use crate::common::{Counted, Fixture, automorphism, centred, error_bits, fixture, literal, log2, message, product};
use num_bigint::BigInt;
use num_traits::Signed;
use synchromesh_ring::{Coeff, IndexSet, Ntt};
use synchromesh_rlwe::key_switch::Output;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::{
    AuxBound, Ciphertext, Error, EvaluationKeys, Noise, Operand, ProductRing, SecretKey, Source, SwitchDomain,
    SwitchKey, SwitchPlan,
};

/// Parameters with auxiliary primes.
fn with_aux(q: &[u32], p: &[u32], aux: &[u32], t: &str, seed: u64) -> Fixture {
    let mut made = literal(10, q, &[p, aux].concat(), t);
    made.aux = made.p.split_off(p.len());
    fixture(made, seed)
}

fn aux(plan: &SwitchPlan) -> &IndexSet {
    let ProductRing::Extended(ring) = &plan.ring else { panic!("no extended ring") };
    &ring.aux
}

/// log2 of the largest error of a rotation by `plan`, and how many coefficients are off by more than its bound.
fn rotation_errors(f: &mut Fixture, plan: &SwitchPlan) -> (f64, usize) {
    let level = f.context.params().top_level();
    let keys = EvaluationKeys::generate(&f.context, &f.secret, [Source::Galois(3)], plan, &mut f.randomness).unwrap();
    let (m, poly) = message(&f.context, level, 3);
    let (ct, _) = f.secret.encrypt::<Coeff>(&f.context, &poly, level, &mut f.randomness).unwrap();
    let rotated = KeySwitching::new(keys.into(), plan.clone()).automorphism(&f.context, &ct, 3).unwrap();
    let phase = centred(&f.context, f.secret.phase(&f.context, &rotated).unwrap().poly());
    let errors = phase.iter().zip(automorphism(&m, 3)).map(|(x, m)| (x - m).abs());
    let bound = rotated.noise().bound(10, 128) + log2(&f.context.params().error_multiple().clone().into());
    let off = errors.clone().filter(|e| log2(e) > bound).count();
    (errors.map(|e| log2(&e)).fold(0.0, f64::max), off)
}

/// omega = l, omega2 = round(sqrt(l (l + 1) / 2)) and three auxiliary primes, as ePrint 2023/1642, section 4.2 has it.
#[test]
fn three_auxiliary_primes_decrypt_wrongly_and_four_rightly() {
    for t in ["1", "65537"] {
        let mut f = with_aux(&[60; 6], &[60], &[60; 4], t, 1);
        let plan = SwitchPlan::double(f.context.params(), 6, 5).unwrap();
        assert_eq!(plan.digits.len(), 6);
        assert_eq!(aux(&plan).len(), 4);
        let (bits, off) = rotation_errors(&mut f, &plan);
        assert_eq!(off, 0, "largest error 2^{bits}");

        let three: IndexSet = aux(&plan).iter().take(3).collect();
        let mut checked = plan.clone();
        if let ProductRing::Extended(ring) = &mut checked.ring {
            ring.aux = three.clone();
        }
        let q = f.context.params().q().clone();
        let error = f.context.switcher(&checked, &q, &q).err().unwrap();
        assert_eq!(error.kind(), "aux_primes");
        let Error::AuxPrimes { have: 3, have_bits: 180, need_bits, omega: 6, omega2, nearest } = error else {
            panic!("{error:?}");
        };
        assert!((180..=195).contains(&need_bits) && omega2 == checked_groups(&checked), "{need_bits}");
        let (omega, omega2) = nearest.unwrap();
        let near = SwitchPlan::double(f.context.params(), omega, omega2).unwrap();
        assert_eq!(aux(&near), &three, "the plan named does with the primes there are");
        assert_eq!(rotation_errors(&mut f, &near).1, 0);

        let unchecked = plan.with_unchecked_aux(three);
        let (_, off) = rotation_errors(&mut f, &unchecked);
        assert!(off > 1000, "{off} coefficients are wrong");
    }
}

fn checked_groups(plan: &SwitchPlan) -> usize {
    let ProductRing::Extended(ring) = &plan.ring else { panic!("no extended ring") };
    assert_eq!(ring.bound, AuxBound::Checked);
    ring.key_digits.len()
}

#[test]
fn a_table_without_auxiliary_primes_serves_and_one_too_small_says_what_it_needs() {
    let mut f = with_aux(&[50, 45, 55, 50, 50, 40], &[55, 55], &[], "65537", 2);
    let plan = SwitchPlan::double(f.context.params(), 3, 3).unwrap();
    assert!(aux(&plan).iter().all(|i| f.context.params().keyed().contains(i)));
    assert_eq!(rotation_errors(&mut f, &plan).1, 0);
    let error = SwitchPlan::double(f.context.params(), 1, 1).err().unwrap();
    assert_eq!(error.kind(), "aux_primes");
    assert!(error.to_string().contains("8 primes have"), "{error}");
    assert!(error.remedy().contains("digits"), "{}", error.remedy());
}

/// Sums of many inner products leave E before it overflows.
#[test]
fn sums_longer_than_the_ring_holds_are_right() {
    let mut f = with_aux(&[40, 45, 40, 38], &[45, 45], &[30; 9], "65537", 3);
    let params = f.context.params().clone();
    let q = params.q().clone();
    let capacity = |plan: &SwitchPlan| {
        let ProductRing::Extended(ring) = &plan.ring else { panic!("no extended ring") };
        ring.capacity(&params, plan, &q)
    };
    let pairs = (1..=4).flat_map(|w| (1..=6).map(move |w2| (w, w2)));
    let plans = pairs.filter_map(|(w, w2)| SwitchPlan::double(&params, w, w2).ok());
    let plan = plans.min_by_key(capacity).unwrap();
    // The bound is for the worst digits; equal random ones overflow some hundred times later.
    let held = u32::try_from(capacity(&plan)).unwrap();
    assert!((1..100).contains(&held), "R_E holds {held} products");
    let terms = 256 * held;
    let key = SwitchKey::generate(&f.context, &f.secret, Source::Square, None, &plan, &mut f.randomness).unwrap();
    let key = key.prepare(&f.context, &plan).unwrap();
    let (_, poly) = message(&f.context, params.top_level(), 4);
    let (ct, _) = f.secret.encrypt::<Coeff>(&f.context, &poly, params.top_level(), &mut f.randomness).unwrap();
    let c = &ct.parts()[1];
    let switcher = f.context.switcher(&plan, &q, &q).unwrap();
    let sum = |count: u32| {
        let digits = switcher.decompose(&f.context, Operand::Coeff(c)).unwrap();
        let digits = switcher.hoist(&f.context, digits).unwrap();
        let product = |into| switcher.inner_product(&f.context, &digits, &key, into).unwrap();
        let accumulator = (1..count).fold(product(None), |sum, _| product(Some(sum)));
        let output = Output { ntt: IndexSet::empty(), galois: 1 };
        let parts = switcher.mod_down(&f.context, accumulator, [None, None], &output).unwrap();
        let parts = Vec::from(parts.map(|p| p.coeff));
        let ct = Ciphertext::new(&params, parts, params.top_level(), f.secret.id(), Noise::ZERO).unwrap();
        centred(&f.context, f.secret.phase(&f.context, &ct).unwrap().poly())
    };
    let modulus = BigInt::from(params.ring().product(&q));
    let (once, many) = (sum(1), sum(terms));
    for (once, many) in once.iter().zip(&many) {
        let mut off = (once * terms - many) % &modulus;
        if off.abs() * 2 > modulus {
            off -= &modulus * off.signum();
        }
        assert!(log2(&off.abs()) < f64::from(terms).log2() + 17.0 + 16.0, "a sum is off by {off}");
    }
}

#[test]
fn a_plan_for_lower_levels_needs_fewer_auxiliary_primes_and_the_same_key() {
    let mut f = with_aux(&[45; 6], &[50, 50], &[50; 14], "2", 4);
    let params = f.context.params().clone();
    let plan = SwitchPlan::hybrid(&params, 3).unwrap();
    let key = SwitchKey::generate(&f.context, &f.secret, Source::Galois(3), None, &plan, &mut f.randomness).unwrap();
    let mut keys = EvaluationKeys::new(f.secret.id());
    keys.insert(key).unwrap();
    let keys = std::sync::Arc::new(keys);
    let mut last = usize::MAX;
    for level in (0..=params.top_level()).rev() {
        let at = plan.clone().in_extended_ring_at(&params, params.level(level).unwrap(), 1).unwrap();
        assert!(aux(&at).len() < last, "level {level}");
        last = aux(&at).len();
        let switching = KeySwitching::new(keys.clone(), at);
        let (m, poly) = message(&f.context, level, 6);
        let (ct, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, level, &mut f.randomness).unwrap();
        let rotated = switching.automorphism(&f.context, &ct, 3).unwrap();
        let bits = error_bits(&f.context, &f.secret, &rotated, &automorphism(&m, 3));
        assert!(bits <= rotated.noise().bound(10, 128), "level {level}: 2^{bits}");
        if level < params.top_level() {
            let (_, poly) = message(&f.context, level + 1, 6);
            let (ct, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, level + 1, &mut f.randomness).unwrap();
            assert_eq!(switching.automorphism(&f.context, &ct, 3).err().unwrap().kind(), "switch_plan");
        }
    }
}

/// One plan of each method.
fn methods(f: &Fixture) -> Vec<SwitchPlan> {
    let params = f.context.params();
    let plans = vec![
        SwitchPlan::bv(params, 8).unwrap(),
        SwitchPlan::hybrid(params, 4).unwrap().with_radix(20),
        SwitchPlan::hybrid(params, 4).unwrap(),
        SwitchPlan::ghs(params).unwrap(),
        SwitchPlan::hybrid(params, 2).unwrap(),
        SwitchPlan::double(params, 2, 3).unwrap(),
        SwitchPlan::double(params, 4, 2).unwrap().unfolded(),
        SwitchPlan::linear(params, 1).unwrap(),
        SwitchPlan::bv(params, 12).unwrap().in_extended_ring(params, 2).unwrap(),
    ];
    let names: Vec<&str> = plans.iter().map(SwitchPlan::method).collect();
    assert_eq!(names, ["bv", "bv", "rns_bv", "ghs", "hybrid", "double", "double", "linear", "double"]);
    plans
}

fn every_operation<D: SwitchDomain>(f: &mut Fixture, plan: &SwitchPlan) {
    let other = SecretKey::generate(&f.context, &mut f.randomness).unwrap();
    let top = f.context.params().top_level();
    let two_n = 2 * f.context.params().n();
    let elements = [3, two_n - 1];
    let sources = [Source::Square, Source::Galois(3), Source::Galois(two_n - 1)];
    let mut keys = EvaluationKeys::generate(&f.context, &f.secret, sources, plan, &mut f.randomness).unwrap();
    let from = Source::Key(other.id());
    keys.insert(SwitchKey::generate(&f.context, &f.secret, from, Some(&other), plan, &mut f.randomness).unwrap())
        .unwrap();
    // The keys go through a file.
    let bytes = keys.to_bytes(&f.context, None).unwrap();
    let keys = EvaluationKeys::from_bytes(&f.context, &bytes, Some(f.secret.id()), None).unwrap();
    assert_eq!(keys.to_bytes(&f.context, None).unwrap(), bytes);
    assert_eq!(keys.get(Source::Square).unwrap().shape(), &plan.shape());
    let switching = KeySwitching::new(keys.into(), plan.clone());

    let check = |ct: &Ciphertext<Counted, D>, m: &[BigInt]| {
        let bits = error_bits(&f.context, &f.secret, ct, m);
        let bound = ct.noise().bound(10, 128);
        assert!(bits <= bound + 0.01, "error 2^{bits:.1} above 2^{bound:.1}, {plan:?}");
    };
    let (m, poly) = message(&f.context, top, 5);
    let (ct, _) = f.secret.encrypt::<D>(&f.context, &poly, top, &mut f.randomness).unwrap();
    let hoisted = switching.automorphisms_hoisted(&f.context, &ct, &elements).unwrap();
    for (g, hoisted) in elements.into_iter().zip(&hoisted) {
        check(hoisted, &automorphism(&m, g));
        let single = switching.automorphism(&f.context, &ct, g).unwrap();
        for (x, y) in single.parts().iter().zip(hoisted.parts()) {
            assert_eq!(x.to_words(f.context.backend()).unwrap(), y.to_words(f.context.backend()).unwrap());
        }
    }
    let (foreign, _) = other.encrypt::<D>(&f.context, &poly, top, &mut f.randomness).unwrap();
    check(&switching.rekey(&f.context, &foreign).unwrap(), &m);

    // (c_0, c_1)^2 as three components, relinearised at once, with a modulus switch, and as a sum.
    let backend = f.context.backend();
    let slots: Vec<_> = ct.parts().iter().map(|p| D::to_ntt(backend, p).unwrap()).collect();
    let mut middle = slots[0].mul(backend, &slots[1]).unwrap();
    middle.mul_acc(backend, &slots[0], &slots[1]).unwrap();
    let parts = [slots[0].mul(backend, &slots[0]).unwrap(), middle, slots[1].mul(backend, &slots[1]).unwrap()];
    let parts = parts.map(|p| D::from_ntt(backend, p).unwrap());
    let t = BigInt::from(f.context.params().error_multiple().clone());
    let fresh = ct.noise().bound(10, 128);
    let noise = Noise::bounded((2.0 * fresh + log2(&t) + 10.0).max(fresh + 35.0).exp2());
    let three = Ciphertext::new(f.context.params(), Vec::from(parts), top, ct.key(), noise).unwrap();
    let square = product(&m, &m);
    let plain = switching.relinearize(&f.context, &three).unwrap();
    check(&plain, &square);
    let lazy = switching.relinearize_sum(&f.context, &[three.duplicate(&f.context).unwrap(), three]).unwrap();
    check(&lazy, &square.iter().map(|x| x * 2).collect::<Vec<_>>());
}

#[test]
fn every_operation_works_by_every_method() {
    for t in ["1", "2", "65537"] {
        let mut f = with_aux(&[50, 45, 55, 36], &[55, 56, 50], &[60; 7], t, 5);
        for plan in methods(&f) {
            // GHS has too small a P for four primes, and is exercised elsewhere.
            if plan.method() == "ghs" {
                continue;
            }
            every_operation::<Ntt>(&mut f, &plan);
            every_operation::<Coeff>(&mut f, &plan);
        }
    }
}

#[test]
fn keys_and_plans_that_do_not_fit_are_refused() {
    let mut f = with_aux(&[45, 45, 45], &[50, 50], &[60; 4], "1", 7);
    let params = f.context.params().clone();
    let hybrid = SwitchPlan::hybrid(&params, 3).unwrap();
    let key = SwitchKey::generate(&f.context, &f.secret, Source::Square, None, &hybrid, &mut f.randomness).unwrap();
    for plan in [
        SwitchPlan::hybrid(&params, 2).unwrap(),
        hybrid.clone().with_radix(10),
        hybrid.clone().with_special(IndexSet::empty()),
        SwitchPlan::linear(&params, 1).unwrap(),
    ] {
        assert_eq!(key.prepare(&f.context, &plan).err().unwrap().kind(), "key_shape", "{plan:?}");
    }
    assert_eq!(SwitchPlan::bv(&params, 0).unwrap_err().kind(), "switch_plan");
    assert_eq!(SwitchPlan::bv(&params, 62).unwrap_err().kind(), "switch_plan");
    assert_eq!(SwitchPlan::linear(&params, 3).unwrap_err().kind(), "switch_plan");
    assert_eq!(SwitchPlan::double(&params, 1, 0).unwrap_err().kind(), "switch_plan");
    let q = params.q().clone();
    let wrong = [
        SwitchPlan::hybrid(&params, 2).unwrap().with_radix(10),
        hybrid.clone().with_special([9, 9].into_iter().collect()),
        hybrid.clone().with_special([99].into_iter().collect()),
        hybrid.clone().in_extended_ring(&params, 2).unwrap().with_unchecked_aux(IndexSet::empty()),
        hybrid.in_extended_ring(&params, 2).unwrap().with_unchecked_aux([99].into_iter().collect()),
    ];
    for plan in wrong {
        assert_eq!(f.context.switcher(&plan, &q, &q).err().unwrap().kind(), "switch_plan", "{plan:?}");
    }
}
