//! A second secret key judged by decryption: ciphertexts go under it below the leading levels, with fewer digits; its
//! keys survive their file; and its security is that of its own primes.

use crate::common::{self, Counted, Fixture, automorphism, error_bits, fixture, literal, message};
use synchromesh_ring::{Coeff, Ntt};
use synchromesh_rlwe::derived_key::second_id;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::security::estimate_bits;
use synchromesh_rlwe::{
    Ciphertext, EvaluationKeys, Params, ParamsLiteral, PrimeSwitching, Schedule, SecondKey, SecretKey, Security,
    Source, SwitchDomain, SwitchPlan,
};

fn check<D: SwitchDomain>(f: &Fixture, ct: &Ciphertext<Counted, D>, m: &[num_bigint::BigInt]) {
    let (measured, bound) = (error_bits(&f.context, &f.secret, ct, m), ct.noise().bound(10, 128));
    assert!(measured <= bound + 0.01, "error 2^{measured:.2} above its certificate 2^{bound:.2}");
}

/// The path of a ciphertext from the top through the change of keys, in one domain.
fn descend<D: SwitchDomain>(f: &mut Fixture, switching: &KeySwitching<Counted>) {
    let params = f.context.params().clone();
    let (top, boundary) = (params.top_level(), params.second().unwrap().top_level);
    let (m, poly) = message(&f.context, boundary, 3);
    // Under the first key at a lower level, as it is after a modulus switch; t = 1 keeps the message otherwise.
    let (ct, _) = f.secret.encrypt::<D>(&f.context, &poly, boundary, &mut f.randomness).unwrap();
    check(f, &ct, &m);
    assert!(switching.should_rekey(&params, ct.key(), boundary) && !switching.should_rekey(&params, ct.key(), top));
    let lower = switching.rekey(&f.context, &ct).unwrap();
    assert_eq!(lower.key(), second_id(f.secret.id()));
    assert!(!switching.should_rekey(&params, lower.key(), boundary));
    check(f, &lower, &m);
    check(f, &switching.automorphism(&f.context, &lower, 3).unwrap(), &automorphism(&m, 3));
    check(f, &switching.automorphism(&f.context, &ct, 3).unwrap(), &automorphism(&m, 3));
    let hoisted = switching.automorphisms_hoisted(&f.context, &lower, &[3, 1]).unwrap();
    check(f, &hoisted[0], &automorphism(&m, 3));
    assert_eq!(lower.sum(&f.context, &ct, false).err().map(|e| e.kind()), Some("keys_differ"));
    // At a leading level the second key has nothing to offer.
    let (_, poly) = message(&f.context, top, 3);
    let (high, _) = f.secret.encrypt::<D>(&f.context, &poly, top, &mut f.randomness).unwrap();
    assert_eq!(switching.rekey(&f.context, &high).err().map(|e| e.kind()), Some("switch_plan"));
}

#[test]
fn ciphertexts_go_under_the_second_key_with_fewer_digits() {
    let chain = PrimeSwitching::new(1, 2).unwrap().chain(45, 28, 6, 58).unwrap();
    let switched = (chain.q_bits.clone(), chain.schedule);
    let plain = (vec![50; 6], Schedule::default());
    for (leading, (q, schedule)) in [1, 2].into_iter().flat_map(|n| [(n, &plain), (n, &switched)]) {
        for t in ["1", "2", "65537"] {
            let schedule = schedule.clone().with_second_key(leading);
            let mut f = fixture(ParamsLiteral { schedule, ..literal(10, q, &[54, 54], t) }, 41);
            let params = f.context.params().clone();
            let plan = SwitchPlan::hybrid(&params, 3).unwrap();
            let second = SwitchPlan::second(&params).unwrap().unwrap();
            assert!(
                second.digits.len() < plan.digits.len(),
                "{} digits for {}",
                second.digits.len(),
                plan.digits.len()
            );
            // P' is P and what the leading levels have freed: no key sees a prime more.
            let mut primes: Vec<usize> = second.key_primes().iter().collect();
            primes.sort_unstable();
            assert_eq!(primes, params.keyed().as_slice());
            let sources = [Source::Square, Source::Galois(3)];
            let keys =
                EvaluationKeys::generate_all(&f.context, &f.secret, sources, &plan, Some(&second), &mut f.randomness);
            let keys = keys.unwrap();
            assert_ne!(f.secret.second().unwrap().small().as_slice(), f.secret.small().as_slice());
            // Files: the secret key brings the second one along, the switch keys are those of both.
            let bytes = f.secret.to_bytes(&f.context, None).unwrap();
            let again = SecretKey::from_bytes(&f.context, &bytes, None).unwrap();
            assert_eq!(again.second().unwrap().small().as_slice(), f.secret.second().unwrap().small().as_slice());
            let bytes = keys.to_bytes(&f.context, None).unwrap();
            assert_eq!(keys.wire_bytes(&params), bytes.len() as u64);
            let keys = EvaluationKeys::from_bytes(&f.context, &bytes, Some(f.secret.id()), None).unwrap();
            assert_eq!(keys.to_bytes(&f.context, None).unwrap(), bytes);
            for cut in [bytes.len() - 40, bytes.len() / 2] {
                assert!(EvaluationKeys::<Counted>::from_bytes(&f.context, &bytes[..cut], None, None).is_err());
            }
            assert_eq!((keys.iter().len(), keys.second().unwrap().iter().len()), (2, 3));
            let switching = KeySwitching::new(keys.into(), plan).with_second(Some(second));
            descend::<Ntt>(&mut f, &switching);
            descend::<Coeff>(&mut f, &switching);
        }
    }
}

#[test]
fn the_second_key_is_checked_like_the_first() {
    let base = literal(10, &[50, 40, 40], &[50], "1");
    let with = |second: SecondKey| {
        let schedule = Schedule { second: Some(second), ..Schedule::default() };
        Params::new(ParamsLiteral { schedule, ..base.clone() })
    };
    let second =
        |leading_levels, special: &[usize]| SecondKey { leading_levels, special: special.to_vec(), omega: None };
    for (leading, special) in [(0, vec![]), (3, vec![]), (1, vec![0]), (1, vec![9]), (1, vec![3, 3])] {
        assert_eq!(with(second(leading, &special)).unwrap_err().kind(), "params", "{leading} {special:?}");
    }
    assert_eq!(with(second(2, &[3])).unwrap().second().unwrap().special.as_slice(), [3]);
    let none = with(SecondKey { omega: Some(0), ..second(1, &[]) }).unwrap();
    assert_eq!(SwitchPlan::second(&none).unwrap_err().kind(), "switch_plan");
    // At N = 2^12, 106 bits are secure: s alone is, s' with a prime of its own is not.
    let mut wide = literal(12, &[30, 25], &[50], "1");
    wide.aux = common::chain(12, &[30, 25, 50, 55]).split_off(3);
    wide.security = Security::Bits128;
    assert!(Params::new(wide.clone()).is_ok());
    wide.schedule.second = Some(second(1, &[2, 3]));
    assert_eq!(Params::new(wide.clone()).unwrap_err().kind(), "insecure_modulus");
    wide.schedule.second = Some(second(1, &[3]));
    assert!(Params::new(wide).is_ok());
    // Without the second half of the keys a ciphertext stays where it is.
    let mut f = fixture(ParamsLiteral { schedule: Schedule::default().with_second_key(1), ..base }, 42);
    let plan = SwitchPlan::hybrid(f.context.params(), 2).unwrap();
    let keys = EvaluationKeys::generate(&f.context, &f.secret, [Source::Square], &plan, &mut f.randomness).unwrap();
    let bytes = keys.to_bytes(&f.context, None).unwrap();
    assert!(EvaluationKeys::<Counted>::from_bytes(&f.context, &bytes, None, None).unwrap().second().is_none());
    let switching = KeySwitching::new(keys.into(), plan).with_second(SwitchPlan::second(f.context.params()).unwrap());
    assert!(!switching.should_rekey(f.context.params(), f.secret.id(), 0));
}

#[test]
fn parameters_claim_the_security_of_their_least_secure_key() {
    // At N = 2^12, 106 bits are secure. Each literal has one key above that: the first, and the second by primes that the
    // leading level has freed, of its own, or both.
    let plain = |q: &[u32], p: &[u32], aux: &[u32]| {
        let mut wide = literal(12, q, p, "1");
        wide.aux = common::chain(12, &[q, p, aux].concat()).split_off(q.len() + p.len());
        wide
    };
    let second = |special: &[usize]| Some(SecondKey { leading_levels: 1, special: special.to_vec(), omega: None });
    let with = |mut literal: ParamsLiteral, second| {
        literal.schedule.second = second;
        literal
    };
    let cases = [
        ("first", with(plain(&[30, 30], &[50], &[40]), second(&[3])), 110),
        ("second, with primes of its own", with(plain(&[30, 25], &[50], &[45, 45]), second(&[3, 4])), 120),
        ("second, with freed ones too", with(plain(&[30, 25], &[50], &[45]), second(&[1, 2, 3])), 150),
    ];
    for (name, literal, bits) in cases {
        let secure = Params::new(ParamsLiteral { security: Security::Bits128, ..literal.clone() });
        let refused = secure.unwrap_err();
        assert_eq!(refused.kind(), "insecure_modulus", "{name}");
        assert!(refused.to_string().contains(&format!("log2(QP) = {bits} at N = 2^12")), "{name}: {refused}");
        let params = Params::new(literal).unwrap();
        let claimed = params.security_bits();
        assert!(claimed < 128.0, "the {name} key has {bits} bits at N = 2^12; the parameters claim {claimed}");
        assert_eq!((params.log_qp(), claimed), (bits, estimate_bits(12, bits)), "{name}");
    }
}
