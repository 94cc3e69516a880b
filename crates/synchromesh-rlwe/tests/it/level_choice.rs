//! Choices of a level by numbers, judged by decryption: every merging of stored digits with every part of the special
//! primes and every borrowed one, from one stored key, whole and trimmed, at every level; and the refusals.

use std::sync::Arc;

use crate::common::{self, Counted, Fixture, automorphism, error_bits, fixture, literal, message, set};
use synchromesh_ring::{Coeff, IndexSet, Ntt};
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::{
    DigitSizes, EvaluationKeys, LevelChoice, LevelPlans, Params, ParamsLiteral, PrimeSwitching, Randomness, Source,
    SwitchPlan,
};

const G: usize = 5;

/// A key stored with these digits.
fn keys(f: &mut Fixture, stored: &SwitchPlan) -> Arc<EvaluationKeys<Counted>> {
    let sources = [Source::Galois(G), Source::Square];
    EvaluationKeys::generate(&f.context, &f.secret, sources, stored, &mut f.randomness).unwrap().into()
}

/// Rotates at `level` by `plan`, in each domain and hoisted: within the certificate where the modulus has room for it; tells
/// whether it had.
fn rotates(f: &mut Fixture, keys: &Arc<EvaluationKeys<Counted>>, plan: &SwitchPlan, level: usize) -> bool {
    rotates_in(f, keys, plan, level, true)
}

/// The same, of slots alone unless in `all` ways.
fn rotates_in(
    f: &mut Fixture,
    keys: &Arc<EvaluationKeys<Counted>>,
    plan: &SwitchPlan,
    level: usize,
    all: bool,
) -> bool {
    let switching = KeySwitching::new(Arc::clone(keys), plan.clone());
    let (m, poly) = message(&f.context, level, 3);
    let expected = automorphism(&m, G);
    let (slots, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, level, &mut f.randomness).unwrap();
    let (coefficients, _) = f.secret.encrypt::<Coeff>(&f.context, &poly, level, &mut f.randomness).unwrap();
    let params = f.context.params().clone();
    let slots = switching.automorphism(&f.context, &slots, G).unwrap();
    let bound = slots.noise().bound(10, 128);
    let room = params.ring().log2(params.level(level).unwrap()) - params.error_multiple().bits() as f64 - 2.0;
    if bound > room {
        return false;
    }
    let measured = error_bits(&f.context, &f.secret, &slots, &expected);
    assert!(measured <= bound, "level {level}, {plan:?}: 2^{measured:.2} above its certificate 2^{bound:.2}");
    if !all {
        return true;
    }
    let hoisted = switching.automorphisms_hoisted(&f.context, &coefficients, &[G]).unwrap();
    for rotated in [&switching.automorphism(&f.context, &coefficients, G).unwrap(), &hoisted[0]] {
        assert!(error_bits(&f.context, &f.secret, rotated, &expected) <= bound, "level {level}, {plan:?}");
    }
    true
}

/// Unequal primes, stored digits of several and of one, a schedule with primes that return.
fn cases() -> Vec<(ParamsLiteral, Option<Vec<usize>>)> {
    let chain = PrimeSwitching::new(2, 3).unwrap().chain(58, 38, 5, 61).unwrap();
    let returning = ParamsLiteral { schedule: chain.schedule, ..literal(10, &chain.q_bits, &[60, 61], "2") };
    vec![
        (literal(10, &[45, 50, 44, 40, 51, 47, 50], &[58, 30, 59], "1"), Some(vec![2, 2, 1, 2])),
        (literal(10, &[61, 33, 44, 60, 51], &[61, 60], "65537"), None),
        (
            literal(
                10,
                &[50, 45, 44, 46],
                &[61],
                "57896044618658097711785492504343953926634992332820282019728792003956564819949",
            ),
            None,
        ),
        (returning, None),
    ]
}

#[test]
fn every_choice_of_every_level_decrypts_from_one_stored_key() {
    let (mut checked, mut borrowing, mut fewer, mut merging) = (0, 0, 0, 0);
    for (literal, sizes) in cases() {
        let mut f = fixture(literal, 31);
        let params = f.context.params().clone();
        let sizes = sizes.map_or_else(|| DigitSizes::single(params.q().len()), DigitSizes);
        let stored = SwitchPlan::with_digits(&params, &sizes).unwrap();
        let keys = keys(&mut f, &stored);
        for level in 0..=params.top_level() {
            let choices = LevelChoice::all(&params, &stored, level).unwrap();
            let used = choices.len();
            for choice in choices.into_iter().flatten() {
                let plan = choice.plan(&params, &stored, level).unwrap();
                assert_eq!(plan.shape(), stored.shape());
                let digits = plan.clone().up_to(params.level(level).unwrap()).digits.len();
                assert!(digits <= used.div_ceil(choice.merged), "{digits} of {used} by {choice:?}");
                if choice == LevelChoice::plain(&stored) {
                    assert_eq!(plan, stored);
                }
                // Domains and hoisting are the switcher's affair, not the choice's: some choices show them.
                if rotates_in(&mut f, &keys, &plan, level, checked % 4 == 0) {
                    checked += 1;
                    borrowing += usize::from(choice.borrowed > 0);
                    fewer += usize::from(choice.dedicated < params.p().len());
                    merging += usize::from(choice.merged > 1);
                }
            }
        }
    }
    assert!(
        checked > 100 && [borrowing, fewer, merging].iter().all(|&n| n > 20),
        "{checked} {borrowing} {fewer} {merging}"
    );
}

#[test]
fn fewer_special_primes_take_fewer_transforms_and_a_smaller_key() {
    let mut f = fixture(literal(10, &[45; 8], &[50; 4], "65537"), 32);
    let params = f.context.params().clone();
    let stored = SwitchPlan::hybrid(&params, 2).unwrap();
    let keys = keys(&mut f, &stored);
    for (level, dedicated) in [(1usize, 2usize), (0, 1), (2, 3), (7, 3), (5, 2)] {
        let choice = LevelChoice { dedicated, ..LevelChoice::plain(&stored) };
        let plan = choice.plan(&params, &stored, level).unwrap().up_to(params.level(level).unwrap());
        assert!(rotates(&mut f, &keys, &plan, level));
        let (_, poly) = message(&f.context, level, 3);
        let (ct, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, level, &mut f.randomness).unwrap();
        let counts = |keys: &Arc<EvaluationKeys<Counted>>, plan: &SwitchPlan| {
            let switching = KeySwitching::new(Arc::clone(keys), plan.clone());
            switching.automorphism(&f.context, &ct, G).unwrap();
            f.context.backend().measure(|| switching.automorphism(&f.context, &ct, G).unwrap()).1
        };
        // As for a key that was made with so many special primes: the constant costs nothing at run time.
        let own = stored.clone().with_special(params.p().iter().take(dedicated).collect());
        let mut randomness = Randomness::insecure_from_number(7);
        let made = EvaluationKeys::generate(&f.context, &f.secret, [Source::Galois(G)], &own, &mut randomness).unwrap();
        let (l, k, omega) = (level as u64 + 1, dedicated as u64, (level as u64 + 1).div_ceil(4));
        let counted = counts(&keys, &plan);
        assert_eq!(counted, counts(&made.into(), &own));
        assert_eq!(counted.ntt, (omega + 2) * (l + k), "ePrint 2023/1642, Table 2");
        let limbs = level + 1 + dedicated;
        assert_eq!(plan.prepared_bytes(&params), (16 * omega as usize * limbs * params.n()) as u64);
    }
}

#[test]
fn choices_work_in_an_extended_ring_and_on_trimmed_keys() {
    let widths = [&[45, 50, 44, 40, 51, 47][..], &[58, 59, 57], &[60; 6]].concat();
    let literal = ParamsLiteral {
        aux: common::chain(10, &widths)[9..].to_vec(),
        ..literal(10, &widths[..6], &widths[6..9], "65537")
    };
    let mut f = fixture(literal, 33);
    let params = f.context.params().clone();
    let stored = SwitchPlan::hybrid(&params, 6).unwrap();
    let all = keys(&mut f, &stored);
    let of = |merged, dedicated, borrowed, omega2| LevelChoice { merged, dedicated, borrowed, omega2 };
    let rings =
        [(of(2, 2, 0, Some(2)), 3), (of(1, 1, 0, Some(4)), 2), (of(2, 3, 2, Some(3)), 2), (of(3, 3, 1, Some(1)), 3)];
    for (choice, level) in rings {
        let plan = choice.plan(&params, &stored, level).unwrap();
        assert!(["double", "linear"].contains(&plan.method()));
        assert!(rotates(&mut f, &all, &plan, level), "{choice:?}");
    }
    // One plan a level, the key trimmed to what levels 0 to 3 need of them.
    let choices = [
        of(1, 1, 0, None),
        of(2, 2, 0, None),
        of(2, 3, 2, None),
        of(2, 2, 0, None),
        of(1, 3, 0, None),
        of(1, 3, 0, None),
    ];
    let plans = choices.iter().enumerate().map(|(level, choice)| choice.plan(&params, &stored, level).unwrap());
    let plans = LevelPlans::new(&params, plans.collect()).unwrap();
    let part = plans.needed(&params, 3).unwrap();
    let trimmed: Arc<_> = all.trim(&f.context, &part).unwrap().into();
    assert!(part.bytes(params.n()) < all.get(Source::Galois(G)).unwrap().part().bytes(params.n()));
    for level in 0..=3 {
        assert!(rotates(&mut f, &trimmed, plans.at(level), level));
    }
    let switching = KeySwitching::new(trimmed, plans);
    let (_, poly) = message(&f.context, 4, 3);
    let (ct, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, 4, &mut f.randomness).unwrap();
    assert_eq!(switching.automorphism(&f.context, &ct, G).err().unwrap().kind(), "trimmed_key");
}

#[test]
fn relinearisation_and_merged_switches_work_by_choice() {
    for t in ["1", "65537"] {
        let mut f = fixture(literal(10, &[60, 55, 50, 45, 54, 57], &[60, 59, 58], t), 34);
        let params = f.context.params().clone();
        let stored = SwitchPlan::hybrid(&params, 6).unwrap();
        let keys = keys(&mut f, &stored);
        for (merged, dedicated, borrowed) in [(2, 2, 0), (1, 1, 0), (3, 3, 1)] {
            let choice = LevelChoice { merged, dedicated, borrowed, omega2: None };
            let plan = choice.plan(&params, &stored, 4).unwrap();
            let switching = KeySwitching::new(Arc::clone(&keys), plan);
            common::judge_relinearisation(&mut f, &switching, 60.0);
        }
    }
}

#[test]
fn choices_that_the_key_or_the_level_cannot_serve_are_refused() {
    let params = Params::new(literal(10, &[45, 50, 44, 40, 51], &[58, 59], "1")).unwrap();
    let stored = SwitchPlan::with_digits(&params, &DigitSizes(vec![2, 1, 2])).unwrap();
    let plan = |merged, dedicated, borrowed, level| {
        LevelChoice { merged, dedicated, borrowed, omega2: None }.plan(&params, &stored, level)
    };
    // Level 3 has a prime of the last digit, so that none of its primes is free.
    assert_eq!(plan(1, 2, 1, 3).unwrap_err().kind(), "borrowed_primes");
    assert_eq!(plan(1, 2, 2, 2).unwrap().special, set([5, 6, 3, 4]));
    assert_eq!(plan(1, 2, 3, 2).unwrap_err().kind(), "borrowed_primes");
    for (merged, dedicated, kind) in [(0, 2, "switch_plan"), (1, 3, "switch_plan"), (1, 0, "key_digits")] {
        assert_eq!(plan(merged, dedicated, 0, 2).unwrap_err().kind(), kind);
    }
    assert_eq!(plan(1, 2, 0, 5).unwrap_err().kind(), "level");
    let split = SwitchPlan::hybrid(&params, 5).unwrap().with_radix(20);
    assert_eq!(
        LevelChoice { merged: 1, dedicated: 1, borrowed: 0, omega2: None }.plan(&params, &split, 0).unwrap_err().kind(),
        "switch_plan"
    );
    // P of a prime of a digit, of one that the key does not live in, and in an extended ring.
    let hybrid = SwitchPlan::hybrid(&params, 2).unwrap();
    for special in [set([5, 0]), set([7]), IndexSet::empty()] {
        assert_eq!(hybrid.clone().dividing_by(special).unwrap_err().kind(), "key_digits");
    }
    let ring = hybrid.clone().in_extended_ring(&params, 7).unwrap();
    assert_eq!(ring.dividing_by(set([5])).unwrap_err().kind(), "key_digits");
    assert_eq!(split.dividing_by(set([5])).unwrap_err().kind(), "key_digits");
    assert_eq!(hybrid.clone().dividing_by(hybrid.special.clone()).unwrap(), hybrid);
}
