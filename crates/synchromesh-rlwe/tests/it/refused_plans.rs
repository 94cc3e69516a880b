//! Plans that a key, a level or a ring cannot serve: each refusal names a plan that works, and that plan is tried.

use crate::common::{self, Counted, Fixture, automorphism, error_bits, fixture, literal, message, set};
use synchromesh_ring::{IndexSet, Ntt};
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::{DigitSizes, Error, EvaluationKeys, LevelPlans, ParamsLiteral, Source, SwitchKey, SwitchPlan};

const G: usize = 5;
/// Stored digits of the primes 0 and 1, 2 and 3, 4, 5 and 6; 7 and 8 are special.
const SIZES: [usize; 4] = [2, 2, 1, 2];

fn with_digits() -> Fixture {
    fixture(literal(10, &[45, 50, 44, 40, 51, 47, 50], &[58, 59], "65537"), 51)
}

/// A key stored for `stored`.
fn key(f: &mut Fixture, stored: &SwitchPlan) -> EvaluationKeys<Counted> {
    EvaluationKeys::generate(&f.context, &f.secret, [Source::Galois(G)], stored, &mut f.randomness).unwrap()
}

/// Rotates at `level`; the error of a result is within its certificate, which leaves room.
fn rotates(f: &mut Fixture, keys: EvaluationKeys<Counted>, plan: SwitchPlan, level: usize) -> Result<(), Error> {
    let (m, poly) = message(&f.context, level, 3);
    let (ct, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, level, &mut f.randomness)?;
    let rotated = KeySwitching::new(keys.into(), plan.clone()).automorphism(&f.context, &ct, G)?;
    let (params, bound) = (f.context.params(), rotated.noise().bound(10, 128));
    assert!(bound + 19.0 < params.ring().log2(params.level(level)?), "{plan:?} leaves no room at level {level}");
    let measured = error_bits(&f.context, &f.secret, &rotated, &automorphism(&m, G));
    assert!(measured <= bound, "{plan:?}: error 2^{measured:.2} above 2^{bound:.2}");
    Ok(())
}

/// The digits and special primes that the refusal names, which its message and its remedy say.
fn nearest(error: &Error) -> (Vec<IndexSet>, IndexSet) {
    let Error::Digits { nearest: Some(nearest), .. } = error else { panic!("{error}") };
    let (digits, special) = &**nearest;
    assert_eq!(error.kind(), "key_digits");
    assert!(error.remedy().contains(&format!("{digits:?} with P of the primes {special:?}")), "{}", error.remedy());
    (digits.iter().map(|d| set(d.iter().copied())).collect(), set(special.iter().copied()))
}

#[test]
fn digits_that_overlap_or_cut_name_digits_that_work() {
    let stored = DigitSizes(SIZES.to_vec());
    // Asked for, and what works instead: on a prime of P, cut, twice, outside q, none; with all of q borrowed.
    let cases: [(Vec<IndexSet>, IndexSet, Vec<IndexSet>, IndexSet); 6] = [
        (vec![set([0, 1]), set([2, 3])], set([3]), vec![set([0, 1]), set([2, 3])], set([7, 8])),
        (vec![set([0, 1, 2])], set([6]), vec![set([0, 1, 2, 3])], set([7, 8, 6])),
        (vec![set([0, 1]), set([0, 1])], set([6]), vec![set([0, 1])], set([7, 8, 6])),
        (vec![set([0, 1]), set([7])], set([6]), vec![set([0, 1])], set([7, 8, 6])),
        (vec![], set([6]), vec![set([0, 1]), set([2, 3]), set([4])], set([7, 8, 6])),
        (vec![set([0, 1, 2, 3])], set([0, 5, 9]), vec![set([0, 1, 2, 3])], set([7, 8, 5])),
    ];
    for (digits, borrowed, digits_that_work, special) in cases {
        let mut f = with_digits();
        let params = f.context.params().clone();
        let error = SwitchPlan::coalesced(&params, &stored, digits, &borrowed).unwrap_err();
        assert_eq!(nearest(&error), (digits_that_work.clone(), special.clone()), "{error}");
        let plan = SwitchPlan::coalesced(&params, &stored, digits_that_work, &special.without(params.p())).unwrap();
        let keys = key(&mut f, &SwitchPlan::with_digits(&params, &stored).unwrap());
        rotates(&mut f, keys, plan, 1).unwrap();
    }
    // Without special primes one stored digit is borrowed; with all of them borrowed there are no digits left.
    let f = fixture(literal(10, &[45, 50, 44], &[], "1"), 52);
    let single = DigitSizes::single(3);
    let refused = |digits: Vec<IndexSet>, borrowed| {
        SwitchPlan::coalesced(f.context.params(), &single, digits, &borrowed).unwrap_err()
    };
    assert_eq!(nearest(&refused(vec![set([0, 1]), set([1, 2])], set([2]))), (vec![set([0, 1])], set([2])));
    let error = refused(vec![], set([0, 1, 2]));
    assert!(matches!(&error, Error::Digits { nearest: None, .. }) && !error.remedy().is_empty(), "{error}");
}

#[test]
fn special_primes_in_a_digit_name_a_p_that_works() {
    let mut f = with_digits();
    let params = f.context.params().clone();
    let stored = SwitchPlan::with_digits(&params, &DigitSizes(SIZES.to_vec())).unwrap();
    // As a plan that a key is made for, and as one that a key is used with.
    let made = stored.clone().with_special(set([0, 7, 8]));
    let error =
        SwitchKey::generate(&f.context, &f.secret, Source::Galois(G), None, &made, &mut f.randomness).err().unwrap();
    let (digits, special) = nearest(&error);
    assert_eq!((digits, special.clone()), (stored.digits.clone(), set([7, 8])));
    let plan = made.with_special(special);
    let keys = key(&mut f, &plan);
    rotates(&mut f, keys, plan, 6).unwrap();
    for (asked, works) in [(set([8, 4]), set([8])), (set([]), set([7, 8])), (set([0, 9]), set([7, 8]))] {
        let error = stored.clone().dividing_by(asked).unwrap_err();
        assert_eq!(nearest(&error), (stored.digits.clone(), works.clone()));
        let keys = key(&mut f, &stored);
        rotates(&mut f, keys, stored.clone().dividing_by(works).unwrap(), 4).unwrap();
    }
}

#[test]
fn keys_and_levels_that_cannot_serve_a_plan_name_one_they_can() {
    let mut f = with_digits();
    let params = f.context.params().clone();
    let stored = SwitchPlan::with_digits(&params, &DigitSizes(SIZES.to_vec())).unwrap();
    // A plan for a key stored otherwise.
    let keys = key(&mut f, &stored);
    let error = rotates(&mut f, keys, SwitchPlan::hybrid(&params, 7).unwrap(), 3).unwrap_err();
    let Error::KeyShape { have, have_special, .. } = &error else { panic!("{error}") };
    assert!(error.remedy().contains("4 digit(s)"), "{}", error.remedy());
    let special: IndexSet = params.p().iter().take(*have_special).collect();
    let plan = SwitchPlan::with_digits(&params, &DigitSizes(have.clone())).unwrap().with_special(special);
    let keys = key(&mut f, &stored);
    rotates(&mut f, keys, plan, 3).unwrap();
    // Trimmed to level 2: what it kept says which level works.
    let part = LevelPlans::from(stored.clone()).needed(&params, 2).unwrap();
    let keys = key(&mut f, &stored).trim(&f.context, &part).unwrap();
    let error = rotates(&mut f, keys, stored.clone(), 5).unwrap_err();
    let Error::TrimmedKey { missing, have, .. } = &error else { panic!("{error}") };
    assert!(!missing.is_empty() && error.remedy().contains(&format!("{have:?}")), "{}", error.remedy());
    let have = set(have.iter().copied());
    let serves = |&level: &usize| params.level(level).unwrap().without(&have).is_empty();
    let level = (0..=params.top_level()).rev().find(serves).unwrap();
    let keys = key(&mut f, &stored).trim(&f.context, &part).unwrap();
    rotates(&mut f, keys, stored.clone(), level).unwrap();
    // Of another parameter set.
    let other = fixture(literal(10, &[45, 50, 44, 40, 51, 47, 50], &[58, 57], "65537"), 53);
    let keys = key(&mut f, &stored);
    let error = keys.get(Source::Galois(G)).unwrap().prepare(&other.context, &stored).err().unwrap();
    let digest = |f: &Fixture| f.context.params().digest()[..4].iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(error.kind(), "params_differ");
    assert!([&f, &other].iter().all(|f| error.remedy().contains(&digest(f))), "{}", error.remedy());
}

#[test]
fn too_few_primes_to_borrow_or_to_extend_name_a_plan_that_works() {
    let unlimited = |q: &[u32]| ParamsLiteral { level_limbs: (1..q.len()).collect(), ..literal(10, q, &[], "65537") };
    let mut f = fixture(unlimited(&[45, 50, 44, 40, 51, 47, 50]), 54);
    let params = f.context.params().clone();
    let any = SwitchPlan::level_aware(&params, 1, 1).unwrap();
    let keys = key(&mut f, &any);
    let error = rotates(&mut f, keys, SwitchPlan::level_aware(&params, 3, 3).unwrap(), 4).unwrap_err();
    let Error::BorrowedPrimes { limbs, primes, .. } = error else { panic!("{error}") };
    let free = primes - limbs;
    assert!(error.remedy().contains(&format!("borrows at most {free} prime(s)")), "{}", error.remedy());
    let keys = key(&mut f, &any);
    rotates(&mut f, keys, SwitchPlan::level_aware(&params, free, free).unwrap(), 4).unwrap();
    // All primes together are too few for the integers of one digit each.
    let widths = [45, 50, 44, 40, 60, 60, 60, 58];
    let aux = common::chain(10, &widths)[7..].to_vec();
    let mut f = fixture(ParamsLiteral { aux, ..literal(10, &widths[..4], &widths[4..7], "65537") }, 55);
    let params = f.context.params().clone();
    let error = SwitchPlan::double(&params, 1, 1).unwrap_err();
    let Error::AuxPrimes { nearest: Some((omega, omega2)), have: 8, need_bits, have_bits, .. } = error else {
        panic!("{error}")
    };
    assert!(need_bits > have_bits && error.remedy().contains(&format!("{omega} and {omega2} digits")), "{error}");
    let plan = SwitchPlan::double(&params, omega, omega2).unwrap();
    let keys = key(&mut f, &plan);
    rotates(&mut f, keys, plan, 3).unwrap();
}
