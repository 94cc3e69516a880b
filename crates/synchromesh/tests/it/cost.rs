//! Cost models and index maps: predictions follow the ledger, choices are the best there are.

use std::sync::Arc;

use crate::machine::transforms_only;
use synchromesh::cost::{Candidate, IndexMap, OneSwitch, Op, Shape, candidates, predict, recorder};
use synchromesh::rlwe::operations::KeySwitching;
use synchromesh::rlwe::ring::ledger::Entries;
use synchromesh::rlwe::ring::prime::ntt_primes_excluding;
use synchromesh::rlwe::ring::{Coeff, Counting, Cpu, Dry, IndexSet, Ntt, Poly};
use synchromesh::rlwe::{
    Ciphertext, Context, EvaluationKeys, LevelPlans, Noise, Params, ParamsLiteral, Randomness, SecretKey, Security,
    Source, SwitchDomain, SwitchPlan,
};

fn params(q: &[u32], p: &[u32]) -> Params {
    with_levels(q, p, &[], vec![])
}

fn with_levels(q: &[u32], p: &[u32], aux: &[u32], level_limbs: Vec<usize>) -> Params {
    let mut primes: Vec<u64> = Vec::new();
    for &bits in q.iter().chain(p).chain(aux) {
        let next = ntt_primes_excluding(bits, 11, 1, &primes).unwrap();
        primes.extend(next);
    }
    let aux = primes.split_off(q.len() + p.len());
    let p = primes.split_off(q.len());
    Params::new(ParamsLiteral {
        tag: "test".into(),
        log_n: 11,
        q: primes,
        p,
        aux,
        level_limbs,
        schedule: Default::default(),
        error_multiple: "65537".into(),
        error: Default::default(),
        security: Security::Insecure,
    })
    .unwrap()
}

#[test]
fn predictions_price_exactly_the_transforms_that_are_counted() {
    let profile = transforms_only();
    for (q, p, omega) in
        [(vec![45; 6], vec![50; 3], 2), (vec![55, 45, 40, 60], vec![60; 2], 2), (vec![50; 5], vec![50; 5], 1)]
    {
        let params = params(&q, &p);
        let plan = SwitchPlan::hybrid(&params, omega).unwrap();
        for level in 0..q.len() {
            let active = params.level(level).unwrap();
            for (input_ntt, output_ntt) in [(true, true), (true, false), (false, true), (false, false)] {
                let shape = Shape { input_ntt, output_ntt, ..Shape::ROTATION };
                let seconds = predict(&profile, &params, &plan, [active, active], shape).unwrap();
                let backend = Counting::new(Dry::new(Arc::clone(params.ring())));
                let context = Context::with_backend(params.clone(), backend);
                let switch = OneSwitch::new(&context, &plan, [active, active], shape).unwrap();
                let (done, counts) = context.backend().measure(|| switch.run());
                done.unwrap();
                assert!((1e6 * seconds - counts.ntt as f64).abs() < 1e-6, "{seconds} {counts:?}");
            }
        }
    }
}

/// What a rotation and a relinearisation ask a device for, as users call them and as they are timed and priced.
fn asked<D: SwitchDomain>(params: &Params, plan: &SwitchPlan, op: Op) -> [Entries; 2] {
    let context = Context::with_backend(params.clone(), recorder(params));
    let active = params.q().clone();
    let (input_ntt, output_ntt) = (D::NTT, D::NTT);
    let shape = Shape { op, input_ntt, output_ntt, batch: 1 };
    let switch = OneSwitch::new(&context, plan, [&active, &active], shape).unwrap();
    let mut randomness = Randomness::insecure_from_number(1);
    let secret = SecretKey::generate(&context, &mut randomness).unwrap();
    let sources = [Source::Galois(3), Source::Square];
    let keys = EvaluationKeys::generate(&context, &secret, sources, plan, &mut randomness).unwrap();
    let switching = KeySwitching::new(Arc::new(keys), plan.clone());
    let poly = || Poly::<_, D>::new(context.backend(), &active).unwrap();
    let components = if op == Op::Rotate { 2 } else { 3 };
    let parts = (0..components).map(|_| poly()).collect();
    let ct = Ciphertext::new(params, parts, params.top_level(), secret.id(), Noise::ZERO).unwrap();
    let call = || match op {
        Op::Rotate => switching.automorphism(&context, &ct, 3).unwrap(),
        Op::Relin => switching.relinearize(&context, &ct).unwrap(),
    };
    // Keys are prepared when they are first used.
    drop(call());
    context.backend().take();
    drop(call());
    let (users, _) = context.backend().take();
    switch.run().unwrap();
    [users, context.backend().take().0]
}

#[test]
fn what_users_call_is_what_is_timed() {
    for (q, p, omega) in [(vec![45; 6], vec![50; 3], 2), (vec![45, 55, 40], vec![60], 3)] {
        let params = params(&q, &p);
        let plan = SwitchPlan::hybrid(&params, omega).unwrap();
        for plan in [plan.clone(), plan.unfolded()] {
            for op in [Op::Rotate, Op::Relin] {
                for [users, timed] in [asked::<Coeff>(&params, &plan, op), asked::<Ntt>(&params, &plan, op)] {
                    let work = |e: &Entries| e.iter().map(|(k, tally)| (*k, tally.work)).collect::<Vec<_>>();
                    assert_eq!(work(&users), work(&timed), "{op:?} by {plan:?}");
                    assert!(!users.is_empty());
                }
            }
        }
    }
}

#[test]
fn a_circuit_is_priced_with_all_its_levels_and_keys() {
    use synchromesh::ckks;
    let literal = |q_bits: Vec<u32>, schedule| ckks::ParamsLiteral {
        log_n: 11,
        log_scale: 36,
        p_bits: vec![60, 60, 60],
        level_limbs: vec![],
        omega: 2,
        log_scales: vec![],
        mode: ckks::Mode::Auto,
        security: Security::Insecure,
        primes: None,
        q_bits,
        schedule,
    };
    let chain = synchromesh::rlwe::PrimeSwitching::new(2, 3).unwrap().chain(56, 36, 5, 54).unwrap();
    let small = literal(vec![56, 36, 36, 36, 36, 36], Default::default());
    let second = literal(vec![56, 36, 36, 36, 36, 36], synchromesh::rlwe::Schedule::default().with_second_key(1));
    let mut seen = Vec::new();
    for literal in [small, literal(chain.q_bits, chain.schedule), second] {
        let params = ckks::Params::new(literal).unwrap();
        let top = params.top_level();
        let seconds =
            synchromesh::cost::predict_ckks(&transforms_only(), &params, &Default::default(), &[1.0], |e, x| {
                (1..top).try_fold(e.square(&x[0])?, |y, _| e.square(&y))
            });
        let context =
            ckks::Context::with_backend(params.clone(), Counting::new(Dry::new(Arc::clone(params.rlwe().ring()))))
                .unwrap();
        let mut randomness = Randomness::insecure_from_number(0);
        let (secret, public) = context.generate_keys(&mut randomness).unwrap();
        let keys = context.generate_evaluation_keys(&secret, &ckks::Rotations::none(), &mut randomness).unwrap();
        let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
        let x = context.encrypt(&public, &context.encode_bounded(&[], 1.0).unwrap(), &mut randomness).unwrap();
        let run = || (1..top).fold(evaluator.square(&x).unwrap(), |y, _| evaluator.square(&y).unwrap());
        drop(run());
        let (_, counts) = context.rlwe().backend().measure(run);
        let counted = counts.ntt as f64;
        assert!((1e6 * seconds.unwrap() - counted).abs() < 1e-6, "{counts:?}");
        seen.push(counted);
    }
    assert!(seen[0] != seen[1] && seen[0] != seen[2], "{seen:?}");
}

/// The error of a rotation by `plan` at `level`, as log2.
fn switch_error(params: &Params, plan: &SwitchPlan, level: usize) -> f64 {
    rotation_errors(params, &plan.clone().into(), &[level])[0]
}

/// The errors of rotations at `levels` by `plans` and one stored key, as log2.
fn rotation_errors(params: &Params, plans: &LevelPlans, levels: &[usize]) -> Vec<f64> {
    let context = Context::new(params.clone()).unwrap();
    let mut randomness = Randomness::insecure_from_number(5);
    let secret = SecretKey::generate(&context, &mut randomness).unwrap();
    let any = plans.at(levels[0]);
    let keys = EvaluationKeys::generate(&context, &secret, [Source::Galois(3)], any, &mut randomness).unwrap();
    let switching = KeySwitching::new(keys.into(), plans.clone());
    let context = &context;
    levels.iter().map(|&level| rotation_error(context, &secret, &switching, &mut randomness, level)).collect()
}

fn rotation_error(
    context: &Arc<Context<Cpu>>,
    secret: &SecretKey<Cpu>,
    switching: &KeySwitching<Cpu>,
    randomness: &mut Randomness,
    level: usize,
) -> f64 {
    let params = context.params();
    let zero = Poly::<Cpu, Coeff>::zero(context.backend(), params.level(level).unwrap()).unwrap();
    let (ct, _) = secret.encrypt::<Coeff>(context, &zero, level, randomness).unwrap();
    let rotated = switching.automorphism(context, &ct, 3).unwrap();
    let phase = secret.phase(context, &rotated).unwrap();
    // The phase is t e: centred modulo the first prime alone, which is enough for a small error.
    let words = phase.poly().to_words(context.backend()).unwrap();
    let q = params.ring().modulus(0).value();
    let centre = |x: u64| if x > q / 2 { -((q - x) as f64) } else { x as f64 };
    let largest = words[..params.n()].iter().map(|&x| centre(x)).fold(0.0f64, |m, x| m.max(x.abs()));
    assert!(words[..params.n()].iter().all(|&x| centre(x) % 65537.0 == 0.0), "not a multiple of t");
    (largest / 65537.0).log2()
}

#[test]
fn every_candidate_decrypts_at_every_level_with_no_more_noise_than_the_reference() {
    let params = params(&[50, 42, 45, 40, 45, 41], &[50, 50, 50]);
    let reference = SwitchPlan::hybrid(&params, 3).unwrap();
    let mut subsets = 0;
    for level in 0..=params.top_level() {
        let found = candidates(&params, &reference, level, 0.5).unwrap();
        assert_eq!(found[0].plan, reference);
        assert!(found.len() >= 2, "level {level}: {}", found.len());
        for candidate in &found {
            subsets += usize::from(candidate.plan.special.len() < params.p().len());
            let error = switch_error(&params, &candidate.plan, level);
            assert!(error < 14.0, "level {level}, {}: error 2^{error}", candidate.label());
        }
    }
    assert!(subsets > 0, "no candidate leaves special primes out");
}

#[test]
fn candidates_cover_every_method_and_decrypt() {
    // P of one prime smaller than those of q: single primes are split as well.
    for (q, p, methods) in [
        (&[50, 42, 45, 40, 45, 41][..], &[50, 50, 50][..], &["bv", "hybrid", "double", "linear"][..]),
        (&[45, 44, 43, 45], &[30], &["bv", "double", "linear"]),
    ] {
        let params = with_levels(q, p, &[60; 4], vec![]);
        let reference = SwitchPlan::hybrid(&params, q.len().div_ceil(p.len())).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let mut radix = 0;
        for level in 1..=params.top_level() {
            for candidate in candidates(&params, &reference, level, 2.0).unwrap() {
                assert_eq!(candidate.key_bytes, candidate.plan.prepared_bytes(&params));
                seen.insert(candidate.method());
                radix += usize::from(candidate.plan.radix_bits.is_some());
                let [error, least] = [&candidate.plan, &reference].map(|plan| switch_error(&params, plan, level));
                assert!(error < least.max(9.0) + 3.0, "level {level}, {}: 2^{error}", candidate.label());
            }
        }
        assert!(methods.iter().all(|m| seen.contains(m)), "{seen:?}");
        assert_eq!(radix > 0, p.len() == 1);
    }
}

#[test]
fn the_index_map_of_level_aware_parameters_runs_and_decrypts() {
    let l = 7;
    let params = with_levels(&[50, 42, 45, 40, 45, 41, 44], &[], &[60; 3], (1..l).collect());
    let default = LevelPlans::level_aware(&params).unwrap();
    let levels: Vec<usize> = (0..=params.top_level()).collect();
    let found = levels.iter().map(|&level| candidates(&params, default.at(level), level, 1.0).unwrap());
    let mut methods = std::collections::BTreeSet::new();
    let mut fewest = Vec::new();
    let found: Vec<Vec<Candidate>> = found.collect();
    // Every candidate of a level is for the one stored key.
    for (level, row) in found.iter().enumerate() {
        for candidate in row {
            methods.insert(candidate.method());
            let mut plans: Vec<SwitchPlan> = default.iter().cloned().collect();
            plans[level] = candidate.plan.clone();
            let plans = LevelPlans::new(&params, plans).unwrap();
            let error = rotation_errors(&params, &plans, &[level])[0];
            assert!(error < 16.0, "level {level}, {}: error 2^{error}", candidate.label());
        }
        let plain = row.iter().filter(|c| c.method() == "level-aware");
        fewest.push(plain.map(|c| (c.omega() + 2) * (c.active.len() + c.plan.special.len())).min().unwrap());
    }
    assert!(["level-aware", "double", "linear"].iter().all(|m| methods.contains(m)), "{methods:?}");
    let profile = transforms_only();
    let price = |c: &Candidate| predict(&profile, &params, &c.plan, [&c.active, &c.target], Shape::ROTATION);
    let map = IndexMap::choose(found, None, price).unwrap();
    assert!(map.choices.iter().any(|c| c.best.plan.special.len() > 1), "{:?}", map.explain());
    let plans = map.level_plans(&params).unwrap();
    assert!(plans.prepared_bytes(&params) <= map.key_bytes);
    let errors = rotation_errors(&params, &plans, &levels);
    assert!(errors.iter().all(|e| *e < 16.0), "{errors:?}");
    for (choice, transforms) in map.choices.iter().zip(fewest) {
        assert!(choice.seconds * 1e6 <= transforms as f64 + choice.best.active.len() as f64 * 2.0 + 1e-6);
    }
    // Keys stored with other digits do not make one map.
    let p = with_levels(&[45; 6], &[50, 50], &[], vec![]);
    let of = |omega| Candidate::new(&p, SwitchPlan::hybrid(&p, omega).unwrap(), p.q());
    let mut calls = 0;
    let mixed = IndexMap::choose(vec![vec![of(3), of(6)]; 6], None, |_| {
        calls += 1;
        Ok(f64::from(calls % 3))
    });
    assert_eq!(mixed.unwrap().level_plans(&p).unwrap_err().kind(), "switch_plan");
}

/// A candidate of a key of so many bytes; the plan only makes keys differ.
fn candidate(params: &Params, omega: usize, key_bytes: u64) -> Candidate {
    let plan = SwitchPlan::hybrid(params, omega).unwrap();
    Candidate { key_bytes, ..Candidate::new(params, plan, params.q()) }
}

#[test]
fn index_maps_are_the_best_within_the_budget() {
    let params = params(&[40; 6], &[50]);
    let (a, b, c) = (candidate(&params, 1, 100), candidate(&params, 2, 60), candidate(&params, 3, 50));
    let times = [[1.0, 2.0, 4.0], [3.0, 2.5, 2.0], [5.0, 1.0, 2.0]];
    let levels = || vec![vec![a.clone(), b.clone(), c.clone()]; 3];
    let choose = |budget| {
        let mut calls = 0;
        let seconds = |_: &Candidate| {
            calls += 1;
            Ok(times[(calls - 1) / 3][(calls - 1) % 3])
        };
        IndexMap::choose(levels(), budget, seconds)
    };
    let bytes = [100u64, 60, 50];
    for budget in [0, 49, 50, 60, 99, 100, 110, 149, 150, 160, 210, u64::MAX] {
        // Every subset of keys by hand.
        let best = (1..8usize)
            .filter(|s| (0..3).filter(|i| s >> i & 1 == 1).map(|i| bytes[i]).sum::<u64>() <= budget)
            .map(|s| {
                let row = |r: &[f64; 3]| (0..3).filter(|i| s >> i & 1 == 1).map(|i| r[i]).fold(f64::MAX, f64::min);
                times.iter().map(row).sum::<f64>()
            })
            .fold(f64::MAX, f64::min);
        match choose(Some(budget)) {
            Err(e) => {
                assert!(best == f64::MAX && e.kind() == "key_budget", "{budget}: {e}");
                assert!(e.remedy().contains("allow 50 bytes, for hybrid, 3 digit(s)"), "{}", e.remedy());
                choose(Some(50)).unwrap();
            }
            Ok(map) => {
                assert_eq!(map.seconds(), best, "{budget}");
                assert!(map.key_bytes <= budget);
            }
        }
    }
    let free = choose(None).unwrap();
    assert_eq!((free.seconds(), free.key_bytes), (4.0, 210));
    // No key serves all levels: the refusal names the least that do together, and they do.
    for many in [0, 12] {
        let mut levels = vec![vec![a.clone(), b.clone()], vec![c.clone(), a.clone()], vec![b.clone(), c.clone()]];
        levels.iter_mut().flat_map(|row| row.iter_mut()).for_each(|candidate| candidate.key_bytes += 1);
        levels.extend((0..many).map(|i| {
            let plan = SwitchPlan::hybrid(&params, 6).unwrap().with_radix(20 + i);
            vec![b.clone(), Candidate { key_bytes: 5, ..Candidate::new(&params, plan, params.q()) }]
        }));
        let choose = |budget| IndexMap::choose(levels.clone(), Some(budget), |_| Ok(1.0));
        let Err(synchromesh::Error::KeyBudget { least, budget: 100, .. }) = choose(100) else { panic!("{many}") };
        let all = choose(least).unwrap();
        assert_eq!((all.choices.len(), all.key_bytes), (3 + many as usize, least));
        assert!(choose(least - 1).is_err());
    }
    let lines = choose(Some(60)).unwrap().explain();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].contains("hybrid, 2 digit(s)") && lines[0].contains("no other plan fits"), "{}", lines[0]);
    assert!(
        lines[0].contains("ghs") && lines[0].contains("50.0 % less but its key exceeds the budget"),
        "{}",
        lines[0]
    );
    assert!(IndexMap::choose(vec![vec![]], None, |_| Ok(1.0)).is_err());
}

#[test]
fn a_real_index_map_takes_fewer_special_primes_low_down() {
    let params = params(&[45; 8], &[50; 4]);
    let reference = SwitchPlan::hybrid(&params, 2).unwrap();
    let profile = transforms_only();
    let levels = (0..=params.top_level()).map(|l| candidates(&params, &reference, l, 1.0).unwrap()).collect();
    let price = |c: &Candidate| predict(&profile, &params, &c.plan, [&c.active, &c.target], Shape::ROTATION);
    let map = IndexMap::choose(levels, None, price).unwrap();
    let special = |level: usize| map.choices[level].best.plan.special.len();
    assert!(special(0) < special(params.top_level()), "{} {}", special(0), special(params.top_level()));
    for choice in &map.choices {
        let active: &IndexSet = params.level(choice.level).unwrap();
        let alone = predict(&profile, &params, &reference, [active, active], Shape::ROTATION).unwrap();
        assert!(choice.seconds <= alone, "level {}", choice.level);
    }
}
