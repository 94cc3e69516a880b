//! Level-aware key switching judged by decryption: one stored key of single-prime digits, every digit length, every
//! level, borrowed primes, domains and error multiples; and the algebra of its gadget in big integers.

use crate::common::{self, Counted, Fixture, automorphism, error_bits, fixture, literal, message, set};
use num_bigint::{BigInt, BigUint};
use synchromesh_ring::rns::compose_vartime;
use synchromesh_ring::{Coeff, IndexSet, Ntt};
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::{
    Ciphertext, DigitChoice, DigitSizes, EvaluationKeys, LevelPlans, ParamsLiteral, SecretKey, Source, SwitchDomain,
    SwitchKey, SwitchPlan,
};

const MULTIPLES: [&str; 4] =
    ["1", "2", "65537", "57896044618658097711785492504343953926634992332820282019728792003956564819949"];

/// Parameters without special primes, whose highest level lacks the last prime.
fn unlimited(q: &[u32], t: &str) -> ParamsLiteral {
    ParamsLiteral { level_limbs: (1..q.len()).collect(), ..literal(10, q, &[], t) }
}

/// Checks the error against its certificate where the modulus has room for it; tells whether it had.
fn within<D: SwitchDomain>(
    f: &Fixture,
    secret: &SecretKey<Counted>,
    ct: &Ciphertext<Counted, D>,
    m: &[BigInt],
) -> bool {
    let params = f.context.params();
    let bound = ct.noise().bound(10, 128);
    let t = common::log2(&BigInt::from(params.error_multiple().clone()));
    if bound + t + 2.0 > params.ring().log2(params.level(ct.level()).unwrap()) {
        return false;
    }
    let measured = error_bits(&f.context, secret, ct, m);
    assert!(measured <= bound + 0.01, "error 2^{measured:.2} above its certificate 2^{bound:.2}");
    true
}

/// Rotates at every level that the plan takes, in both domains, and expects the typed refusal at the others.
fn rotate_at_all_levels(f: &mut Fixture, keys: &std::sync::Arc<EvaluationKeys<Counted>>, plan: &SwitchPlan) -> usize {
    let g = 5;
    let switching = KeySwitching::new(std::sync::Arc::clone(keys), plan.clone());
    let most: usize = plan.digits.iter().map(IndexSet::len).sum();
    let mut checked = 0;
    for level in 0..=f.context.params().top_level() {
        let (m, poly) = message(&f.context, level, 3);
        let (slots, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, level, &mut f.randomness).unwrap();
        let (coefficients, _) = f.secret.encrypt::<Coeff>(&f.context, &poly, level, &mut f.randomness).unwrap();
        if level + 1 > most {
            let error = switching.automorphism(&f.context, &slots, g).err().unwrap();
            assert_eq!(error.kind(), "borrowed_primes");
            let wanted = match f.context.params().q().len() - level - 1 {
                0 => format!("at most {most} limbs"),
                free => format!("at most {free} prime(s)"),
            };
            assert!(error.remedy().contains(&wanted), "{}", error.remedy());
            continue;
        }
        let expected = automorphism(&m, g);
        let rotated = switching.automorphism(&f.context, &slots, g).unwrap();
        checked += usize::from(within(f, &f.secret, &rotated, &expected));
        if (level + most).is_multiple_of(3) {
            let rotated = switching.automorphism(&f.context, &coefficients, g).unwrap();
            within(f, &f.secret, &rotated, &expected);
        }
        if level + 1 == most {
            let hoisted = switching.automorphisms_hoisted(&f.context, &coefficients, &[g, 1]).unwrap();
            within(f, &f.secret, &hoisted[0], &expected);
        }
    }
    checked
}

#[test]
fn one_stored_key_serves_every_digit_length_and_level() {
    let chains: [&[u32]; 3] = [&[45; 7], &[60, 30, 55, 40, 49, 58], &[61, 60]];
    for q in chains {
        for t in MULTIPLES {
            let mut f = fixture(unlimited(q, t), 2);
            let params = f.context.params().clone();
            let any = SwitchPlan::level_aware(&params, 1, 1).unwrap();
            let keys = EvaluationKeys::generate(&f.context, &f.secret, [Source::Galois(5)], &any, &mut f.randomness);
            let keys = std::sync::Arc::new(keys.unwrap());
            let l = q.len();
            let mut checked = 0;
            for borrowed in 1..l {
                for digit_primes in borrowed.max(2) - 1..=borrowed {
                    let plan = SwitchPlan::level_aware(&params, digit_primes, borrowed).unwrap();
                    let plan = if (borrowed + digit_primes) % 3 == 0 { plan.unfolded() } else { plan };
                    checked += rotate_at_all_levels(&mut f, &keys, &plan);
                }
            }
            assert!(checked > 0 || params.error_multiple().bits() > 200, "nothing had room: {q:?}, t = {t}");
        }
    }
}

#[test]
fn stored_digits_of_several_primes_coalesce_beside_dedicated_special_primes() {
    for t in ["1", "65537"] {
        let mut f = fixture(literal(10, &[45, 50, 44, 40, 51, 47, 50], &[58, 59], t), 3);
        let params = f.context.params().clone();
        let stored = DigitSizes(vec![2, 2, 1, 2]);
        let key = SwitchPlan::with_digits(&params, &stored).unwrap();
        let keys = EvaluationKeys::generate(&f.context, &f.secret, [Source::Galois(5)], &key, &mut f.randomness);
        let keys = std::sync::Arc::new(keys.unwrap());
        rotate_at_all_levels(&mut f, &keys, &key);
        let cases: [(Vec<IndexSet>, IndexSet); 3] = [
            (vec![set([0, 1]), set([2, 3, 4])], set([6])),
            (vec![set([0, 1, 2, 3])], set([5, 6])),
            (vec![set([0, 1]), set([2, 3]), set([4]), set([5, 6])], set([])),
        ];
        for (digits, borrowed) in cases {
            let plan = SwitchPlan::coalesced(&params, &stored, digits, &borrowed).unwrap();
            assert!(rotate_at_all_levels(&mut f, &keys, &plan) > 0);
        }
        // A digit on a prime of P, one that cuts a stored digit, one twice, one outside q.
        let wrong: [(Vec<IndexSet>, IndexSet); 5] = [
            (vec![set([0, 1]), set([2, 3])], set([3])),
            (vec![set([0, 1, 2])], set([6])),
            (vec![set([0, 1]), set([0, 1])], set([6])),
            (vec![set([0, 1]), set([7])], set([6])),
            (vec![], set([6])),
        ];
        for (digits, borrowed) in wrong {
            assert_eq!(SwitchPlan::coalesced(&params, &stored, digits, &borrowed).unwrap_err().kind(), "key_digits");
        }
        let other = SwitchPlan::level_aware(&params, 2, 2).unwrap();
        let switching = KeySwitching::new(keys, other);
        let (_, poly) = message(&f.context, 2, 1);
        let (ct, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, 2, &mut f.randomness).unwrap();
        let error = switching.automorphism(&f.context, &ct, 5).err().unwrap();
        assert_eq!(error.kind(), "key_shape");
        assert!(
            error.to_string().contains("[1, 1, 1, 1, 1, 1, 1] primes with 2 special")
                && error.remedy().contains("4 digit(s)")
        );
    }
}

#[test]
fn relinearisation_lazy_sums_merged_switches_and_rekeying_work_with_borrowed_primes() {
    for t in ["1", "2", "65537"] {
        let mut f = fixture(unlimited(&[60, 55, 50, 45, 54, 57, 60, 59], t), 4);
        let params = f.context.params().clone();
        let other = SecretKey::generate(&f.context, &mut f.randomness).unwrap();
        let plan = SwitchPlan::level_aware(&params, 2, 3).unwrap();
        let mut keys =
            EvaluationKeys::generate(&f.context, &f.secret, [Source::Square], &plan, &mut f.randomness).unwrap();
        let from = Source::Key(other.id());
        let key = SwitchKey::generate(&f.context, &f.secret, from, Some(&other), &plan, &mut f.randomness).unwrap();
        keys.insert(key).unwrap();
        let switching = KeySwitching::new(keys.into(), plan);
        common::judge_relinearisation(&mut f, &switching, 60.0);
        let (ma, a) = message(&f.context, 4, 1);
        let (ct, _) = other.encrypt::<Ntt>(&f.context, &a, 4, &mut f.randomness).unwrap();
        assert!(within(&f, &f.secret, &switching.rekey(&f.context, &ct).unwrap(), &ma));
    }
}

/// What row j of an expanded key hides besides its error, by decryption: b + a s - sum of t e, on the primes of `set`.
fn hidden(f: &Fixture, key: &SwitchKey<Counted>, plan: &SwitchPlan, j: usize) -> Vec<BigInt> {
    let backend = f.context.backend();
    let expanded = key.expand(&f.context, plan).unwrap();
    let primes = expanded.primes().clone();
    let n = f.context.params().n();
    let column = |c: usize| {
        let mut words = vec![0; primes.len() * n];
        synchromesh_ring::Backend::download(backend, &expanded.columns()[c], j * primes.len(), &mut words).unwrap();
        synchromesh_ring::Poly::<_, Coeff>::from_words(backend, &primes, &words).unwrap().assume_ntt()
    };
    let secret = f.secret.slots().poly().restrict(backend, &primes).unwrap();
    let mut phase = column(0);
    phase.mul_acc(backend, &column(1), &secret).unwrap();
    common::centred(&f.context, &phase.into_coeff(backend).unwrap())
}

#[test]
fn rows_hide_the_sum_of_the_single_gadgets_and_both_gadgets_carry_the_same_integers() {
    let f = fixture(unlimited(&[45, 40, 50, 44, 46, 48], "1"), 7);
    let params = f.context.params().clone();
    let ring = params.ring();
    let mut randomness = synchromesh_rlwe::Randomness::insecure_from_number(5);
    let plan = SwitchPlan::level_aware(&params, 2, 2).unwrap();
    let key = SwitchKey::generate(&f.context, &f.secret, Source::Galois(3), None, &plan, &mut randomness).unwrap();
    // For a rotation the key takes s to s(X^(1/3)) and hides s: test what the row hides under s(X^(1/3)).
    let rotated = SecretKey::from_small(&f.context, f.secret.id(), {
        let inverse = synchromesh_rlwe::switch_key::inverse_galois(3, 2048);
        let s: Vec<BigInt> = f.secret.small().as_slice().iter().map(|&x| BigInt::from(x)).collect();
        let s = automorphism(&s, inverse);
        synchromesh_ring::sampler::SmallPoly::from_vec(s.iter().map(|x| i64::try_from(x).unwrap()).collect())
    });
    let s: Vec<BigInt> = f.secret.small().as_slice().iter().map(|&x| BigInt::from(x)).collect();
    let under = Fixture { context: f.context.clone(), secret: rotated.unwrap(), randomness };
    let primes = plan.key_primes();
    let product = BigInt::from(ring.product(&primes));
    for (j, digit) in plan.digits.iter().enumerate() {
        let residues: Vec<u64> = primes.iter().map(|i| u64::from(digit.contains(i))).collect();
        let w = BigInt::from(compose_vartime(ring, &primes, &residues).unwrap());
        for (x, s) in hidden(&under, &key, &plan, j).iter().zip(&s) {
            let mut e = (x - &w * s) % &product;
            let half: BigInt = &product / 2;
            if e > half {
                e -= &product;
            } else if e < -half {
                e += &product;
            }
            assert!(common::log2(&(&e * &e + 1)) < 14.0, "row {j} hides something else, off by {e}");
        }
    }
    // The paper's gadget Q_L / q_k with its decomposition constants, and ours, in big integers: sum_j b_j W_j is the
    // same multiple of P for both, though the digits differ.
    let big = |set: &IndexSet| BigInt::from(ring.product(set));
    let (all, p) = (big(params.q()), big(&plan.special));
    let inside: IndexSet = plan.digits.iter().flat_map(IndexSet::iter).collect();
    let modulus = big(&inside);
    let a: BigInt = (BigInt::from(BigUint::from(7u32).pow(200))) % &modulus;
    let invert = |x: &BigInt, m: &BigInt| x.modinv(m).unwrap();
    let (mut paper, mut ours) = (BigInt::from(0), BigInt::from(0));
    let mut differ = false;
    for digit in &plan.digits {
        let d = big(digit);
        let w: BigInt = digit.iter().map(|k| &all / ring.modulus(k).value()).sum();
        let scalar: BigInt = digit.iter().map(|k| &modulus / ring.modulus(k).value()).sum();
        let b = invert(&(scalar % &d), &d) * &a % &d;
        paper += &b * w;
        let rest = &all / &d;
        let idempotent = &rest * invert(&(&rest % &d), &d);
        let c = &p * &a % &d;
        differ |= b != c;
        ours += &c * idempotent;
    }
    assert_eq!(paper % &all, ours.clone() % &all);
    assert_eq!(ours % &all, &p * &a % &all);
    assert!(differ, "the two decompositions were expected to have different digits");
}

#[test]
fn the_default_map_has_the_fewest_transforms_and_refuses_levels_with_nothing_to_borrow() {
    let params = synchromesh_rlwe::Params::new(unlimited(&[45; 13], "1")).unwrap();
    let plans = LevelPlans::level_aware(&params).unwrap();
    for level in 0..=params.top_level() {
        let (plan, l) = (plans.at(level), level + 1);
        let (omega, k) = (plan.active_digits(params.level(level).unwrap()).len(), plan.special.len());
        let fewest = (1..=13 - l).map(|r| (l.div_ceil(r) + 2) * (l + r)).min().unwrap();
        assert_eq!((omega + 2) * (l + k), fewest, "{l} limbs: {omega} digits, {k} borrowed");
    }
    // Unequal primes: no digit exceeds P by more than two bits while any choice has that.
    let widths = [60, 30, 55, 40, 49, 58, 33, 50];
    let params = synchromesh_rlwe::Params::new(unlimited(&widths, "1")).unwrap();
    let plans = LevelPlans::level_aware(&params).unwrap();
    let log2 = |set: &IndexSet| params.ring().log2(set);
    for level in 0..=params.top_level() {
        let plan = plans.at(level);
        let digits = plan.active_digits(params.level(level).unwrap());
        let largest = digits.iter().map(|(_, d)| log2(d)).fold(0.0, f64::max);
        assert!(level >= 6 || largest <= log2(&plan.special) + 2.0, "level {level}: {plan:?}");
    }
    let full = synchromesh_rlwe::Params::new(literal(10, &[45; 4], &[], "1")).unwrap();
    assert_eq!(LevelPlans::level_aware(&full).unwrap_err().kind(), "borrowed_primes");
    assert_eq!(LevelPlans::of(&params, 3).unwrap_err().kind(), "switch_plan");
    let few = [DigitChoice { digit_primes: 1, borrowed: 1 }];
    assert_eq!(LevelPlans::by_choice(&params, &few).unwrap_err().kind(), "switch_plan");
    let greedy = [DigitChoice { digit_primes: 2, borrowed: 2 }; 7];
    assert_eq!(LevelPlans::by_choice(&params, &greedy).unwrap_err().kind(), "borrowed_primes");
    let none = [DigitChoice { digit_primes: 0, borrowed: 1 }; 7];
    assert_eq!(LevelPlans::by_choice(&params, &none).unwrap_err().kind(), "switch_plan");
}

#[test]
fn keys_in_use_are_dropped_within_their_budget_and_derived_again_bit_for_bit() {
    let mut f = fixture(unlimited(&[50, 45, 44, 46, 48, 50, 50], "65537"), 9);
    let params = f.context.params().clone();
    let plans = LevelPlans::level_aware(&params).unwrap();
    let any = plans.at(0);
    let sources = [Source::Galois(5), Source::Galois(9)];
    let keys = EvaluationKeys::generate(&f.context, &f.secret, sources, any, &mut f.randomness).unwrap();
    let keys = std::sync::Arc::new(keys);
    let switching = KeySwitching::new(std::sync::Arc::clone(&keys), plans.clone());
    let inputs: Vec<_> = (0..=params.top_level())
        .map(|level| {
            let (m, poly) = message(&f.context, level, 3);
            (m, f.secret.encrypt::<Ntt>(&f.context, &poly, level, &mut f.randomness).unwrap().0)
        })
        .collect();
    let all = |f: &Fixture| -> Vec<Vec<u64>> {
        let rotate = |(m, ct): &(Vec<BigInt>, Ciphertext<Counted, Ntt>)| {
            let mut words = Vec::new();
            for g in [5, 9] {
                let rotated = switching.automorphism(&f.context, ct, g).unwrap();
                within(f, &f.secret, &rotated, &automorphism(m, g));
                words.extend(rotated.parts().iter().flat_map(|p| p.to_words(f.context.backend()).unwrap()));
            }
            words
        };
        inputs.iter().rev().map(rotate).collect()
    };
    let unbounded = all(&f);
    assert_eq!(keys.prepared_bytes(), 2 * plans.prepared_bytes(&params), "the forecast must be exact");
    assert!(plans.distinct().len() > 2, "{plans:?}");
    let largest = plans.iter().map(|p| p.prepared_bytes(&params)).max().unwrap();
    for budget in [largest, largest + largest / 2, 0] {
        keys.set_prepared_budget(budget);
        assert!(keys.prepared_bytes() <= budget);
        assert_eq!(all(&f), unbounded);
        assert!(keys.prepared_bytes() <= budget && (keys.prepared_bytes() > 0 || budget == 0));
    }
    keys.set_prepared_budget(u64::MAX);
    assert_eq!(all(&f), unbounded);
    keys.drop_prepared();
    assert_eq!(keys.prepared_bytes(), 0);
    assert_eq!(all(&f), unbounded);
}

#[test]
fn one_switch_costs_what_a_hybrid_one_of_its_digits_costs() {
    for (l, r) in [(4u64, 2u64), (6, 3), (5, 1), (3, 3)] {
        let total = (l + r) as usize;
        let mut f =
            fixture(ParamsLiteral { level_limbs: vec![l as usize], ..literal(10, &vec![45; total], &[], "65537") }, 8);
        let params = f.context.params().clone();
        let plan = SwitchPlan::level_aware(&params, r as usize, r as usize).unwrap();
        let keys = EvaluationKeys::generate(&f.context, &f.secret, [Source::Galois(5)], &plan, &mut f.randomness);
        let switching = KeySwitching::new(keys.unwrap().into(), plan);
        let (_, poly) = message(&f.context, 0, 3);
        let (ct, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, 0, &mut f.randomness).unwrap();
        switching.automorphism(&f.context, &ct, 5).unwrap();
        let (_, counts) = f.context.backend().measure(|| switching.automorphism(&f.context, &ct, 5).unwrap());
        let omega = l.div_ceil(r);
        // ePrint 2023/1642, Table 2 and section 4: borrowing and coalescing cost nothing at run time.
        assert_eq!(counts.ntt, (omega + 2) * (l + r));
        assert_eq!(counts.mul + counts.convert_mac, l * (l + 2 * omega + 2 * r + 3), "{l} {r}");
    }
}

#[test]
fn coalesced_keys_work_in_an_extended_ring() {
    for t in ["1", "65537"] {
        // E takes auxiliary primes, and where they do not suffice primes of q, a digit's own among them.
        for aux in [vec![60; 9], vec![60; 2]] {
            let mut with_aux = unlimited(&[45, 50, 44, 40, 51, 47, 49], t);
            with_aux.aux = common::chain(10, &[&[45, 50, 44, 40, 51, 47, 49], &aux[..]].concat())[7..].to_vec();
            let mut f = fixture(with_aux, 13);
            let params = f.context.params().clone();
            let any = SwitchPlan::level_aware(&params, 1, 1).unwrap();
            let keys = EvaluationKeys::generate(&f.context, &f.secret, [Source::Galois(5)], &any, &mut f.randomness);
            let keys = std::sync::Arc::new(keys.unwrap());
            let mut checked = 0;
            for (digit_primes, borrowed, omega2) in [(2, 2, 3), (1, 3, 7), (2, 3, 4), (1, 1, 2)] {
                let plan = SwitchPlan::level_aware(&params, digit_primes, borrowed).unwrap();
                let plan = match plan.in_extended_ring(&params, omega2) {
                    Ok(plan) => plan,
                    Err(error) => {
                        assert_eq!((error.kind(), aux.len()), ("aux_primes", 2));
                        continue;
                    }
                };
                checked += rotate_at_all_levels(&mut f, &keys, &plan);
                checked += rotate_at_all_levels(&mut f, &keys, &plan.unfolded());
            }
            assert!(checked > 0, "nothing had room: t = {t}");
        }
    }
}
