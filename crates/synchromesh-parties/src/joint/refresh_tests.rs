//! Messages in shares and back, of each scheme: what shares add up to, certificates of what comes back, and what has no room.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::ToPrimitive;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::Arithmetic;
use synchromesh::ckks::{self, Ckks};
use synchromesh::embedding::Embedding;
use synchromesh::exact::{self, Rotations};
use synchromesh::rlwe::Security;
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::ring::sampler::Seed;
use synchromesh::scheme::{Encryptor, Scheme, Values};
use synchromesh::shares::Shares;

use super::test_kit::*;
use super::*;
use crate::Result;
use crate::session::Session;

/// A scheme whose shares tests can put together.
trait Together: Judged + Shares {
    fn together(context: &Self::Context<Cpu>, parts: &[&Self::Part]) -> Values;
}

impl<S: Exact> Together for S {
    fn together(context: &exact::Context<S>, parts: &[&Self::Part]) -> Values {
        let t = BigInt::from(context.params().t().value().clone());
        let decoded = |part: &&Self::Part| context.decode_big(&exact::Plaintext::from((*part).clone())).unwrap();
        let mut sums = vec![BigInt::ZERO; context.params().n()];
        for part in parts.iter().map(decoded) {
            sums.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        }
        let centred = |x: &BigInt| x.mod_floor(&t);
        let half = |x: BigInt| if &x * 2 > t { x - &t } else { x };
        sums.iter().map(centred).map(half).collect::<Vec<BigInt>>().into()
    }
}

impl Together for Ckks {
    fn together(context: &ckks::Context, parts: &[&ckks::Part]) -> Values {
        let mut sums = vec![BigInt::ZERO; context.params().n()];
        for part in parts {
            sums.iter_mut().zip(part.integers().to_integers_vartime()).for_each(|(sum, x)| *sum += x);
        }
        let scale = parts[0].scale().to_double().unwrap().to_f64();
        let coefficients: Vec<f64> = sums.iter().map(|x| x.to_f64().unwrap() / scale).collect();
        Embedding::new(context.params().log_n()).unwrap().decode(&coefficients).unwrap().into()
    }
}

/// CKKS with room for shares at the lowest level, and scales that differ from level to level.
fn roomy(parties: usize, mode: ckks::Mode) -> ckks::Params {
    let literal = ckks::ParamsLiteral {
        log_scale: 70,
        q_bits: vec![60, 60, 50, 35, 35, 35, 35],
        level_limbs: vec![3, 5, 7],
        omega: 4,
        mode,
        primes: None,
        ..Ckks::small(1).literal().clone()
    };
    ckks::Params::new(literal).unwrap().with_parties(parties)
}

/// What each of these members gets: shares of the first ciphertext, and the second made fresh.
#[expect(clippy::type_complexity, reason = "one list, of pairs")]
fn shared_and_fresh<S: Together>(
    kit: &Kit<S>,
    members: &[usize],
    shared: &S::Ciphertext<Cpu>,
    low: &S::Ciphertext<Cpu>,
) -> Vec<Result<(Vec<MessageShare<S>>, Vec<S::Ciphertext<Cpu>>)>> {
    run(members.len(), (PATIENCE, None), |i, transport| {
        let mut session = Session::new(transport, "refresh")?;
        let mut journal = kit.journal(members[i]);
        let mut quorum = Quorum::meet(&mut session, kit.rlwe(), &kit.parties[members[i]].share)?;
        let shares = quorum.to_shares::<S>(kit.context(), &mut journal, &[shared], 10.0)?;
        let fresh = quorum.refresh::<S>(kit.context(), &mut journal, &kit.parties[0].keys.public, &[low])?;
        Ok((shares, fresh))
    })
}

/// At the highest level again with a certificate that holds, computed with and decrypted; and shares add up to their message.
fn refreshed<S: Together>(params: S::Params, plan: Plan, members: &[usize], level: usize, seeds: u64) {
    let plan = plan.with_decryptions(64);
    let plan = if S::NAME.name() == "ckks" { plan.with_security(40) } else { plan };
    let mut kit = Kit::<S>::new(params, plan, &Rotations::none());
    let (secret, top) = (kit.secret(), kit.rlwe().params().top_level());
    for seed in 1..=seeds {
        let x = S::sample(kit.context(), seed);
        let squared = S::product(kit.context(), &x, &x);
        let expected = S::product(kit.context(), &squared, &squared);
        let a = kit.encrypt(&x);
        let square = kit.evaluator.square(&a).unwrap();
        let low = kit.evaluator.at_level(&square, level).unwrap();
        let results = shared_and_fresh(&kit, members, &kit.evaluator.at_level(&a, level).unwrap(), &low);
        let results: Vec<_> = results.into_iter().map(|result| result.unwrap()).collect();
        let mut parts = vec![&results[0].0[0].public];
        parts.extend(results.iter().map(|(shares, _)| &shares[0].own));
        assert!(S::agree(&S::together(kit.context(), &parts), &x, 10.0), "shares");
        assert!(!S::agree(&S::together(kit.context(), &parts[1..]), &x, 0.0), "own parts say it");
        assert!(!S::agree(&S::together(kit.context(), &parts[..members.len()]), &x, 0.0), "a part is not needed");
        for (_, fresh) in &results {
            assert_eq!(S::state(kit.context(), &fresh[0]).unwrap().level, top);
            let again = kit.evaluator.square(&fresh[0]).unwrap();
            for (ciphertext, values, gap) in [(&fresh[0], &squared, 10.0), (&again, &expected, 16.0)] {
                let [measured, certified] = S::errors(kit.context(), ciphertext, &secret, values);
                println!("{} {members:?} level {level}: {measured:.1} of {certified:.1} bits", S::NAME.name());
                assert!(measured <= certified && certified < measured + gap, "{measured} of {certified} bits");
            }
            let bytes = |x: &S::Ciphertext<Cpu>| S::write(kit.context(), x, None).unwrap();
            assert_eq!(bytes(&fresh[0]), bytes(&results[0].1[0]), "all make the same ciphertext");
        }
        let again = kit.evaluator.square(&results[0].1[0]).unwrap();
        assert!(S::agree(&kit.open(members, &[&again], 8.0)[0], &expected, 8.0));
        assert_eq!(kit.journal(members[0]).made(), 3 * seed);
    }
}

#[test]
fn a_ciphertext_that_has_no_room_left_is_made_fresh_by_its_parties() {
    refreshed::<Bfv>(Bfv::small(3), Plan::all_of(3), &[0, 1, 2], 2, 2);
    refreshed::<Bgv>(Bgv::small(2), Plan::all_of(2), &[0, 1], 2, 2);
    refreshed::<Bfv>(Bfv::small(3), Plan::any_of(2, 3), &[0, 2], 2, 2);
    refreshed::<Bgv>(Bgv::small(3), Plan::any_of(2, 3), &[2, 1], 2, 2);
}

#[test]
fn an_approximate_message_is_made_fresh_at_every_level() {
    for level in 0..2 {
        refreshed::<Ckks>(roomy(3, ckks::Mode::Auto), Plan::all_of(3), &[0, 1, 2], level, 4);
        refreshed::<Ckks>(roomy(3, ckks::Mode::Auto), Plan::any_of(2, 3), &[2, 0], level, 4);
    }
    refreshed::<Ckks>(roomy(2, ckks::Mode::Manual), Plan::all_of(2), &[0, 1], 1, 4);
    refreshed::<Ckks>(Ckks::small(2), Plan::all_of(2), &[1, 0], 1, 2);
}

/// Sums of shares are shares of sums, and a message that was never in a ciphertext before comes back in one.
#[test]
fn shares_of_sums_are_sums_of_shares() {
    let plan = Plan::all_of(2).with_decryptions(64).with_security(40);
    let mut kit = Kit::<Ckks>::new(roomy(2, ckks::Mode::Auto), plan, &Rotations::none());
    let [x, y] = [1, 2].map(|seed| Ckks::sample(kit.context(), seed));
    let [a, b] = [&x, &y].map(|values| kit.encrypt(values));
    let fresh = run(2, (PATIENCE, None), |i, transport| {
        let mut session = Session::new(transport, "sums").unwrap();
        let mut journal = kit.journal(i);
        let mut quorum = Quorum::meet(&mut session, kit.rlwe(), &kit.parties[i].share).unwrap();
        let shares = quorum.to_shares::<Ckks>(kit.context(), &mut journal, &[&a, &b], 10.0).unwrap();
        let [public, own] =
            [shares[0].public.plus(&shares[1].public).unwrap(), shares[0].own.plus(&shares[1].own).unwrap()];
        let sum = MessageShare { public, own };
        quorum.from_shares::<Ckks>(kit.context(), &kit.parties[0].keys.public, &[sum]).unwrap()
    });
    let [x, y] = [x, y].map(|x| x.complexes("a test").unwrap().to_vec());
    let sums = x.iter().zip(&y).map(|(x, y)| ckks::Complex64::new(x.re + y.re, x.im + y.im));
    let sums: Values = sums.collect::<Vec<_>>().into();
    assert_eq!(fresh[0][0].bound(), 2.0);
    let [measured, certified] = Ckks::errors(kit.context(), &fresh[0][0], &kit.secret(), &sums);
    // What may be put together has the noise of a decryption in it, and not much more is certified.
    assert!(measured <= certified && certified < measured + 12.0, "{measured} of {certified} bits");
}

/// What is shown hides message and error by the rule of a release; an own part is what was shown, and where it may be put
/// together the noise of a decryption.
#[test]
fn what_is_shown_is_as_wide_as_message_and_decryptions_take() {
    let plan = Plan::all_of(2).with_decryptions(64).with_security(40);
    let mut kit = Kit::<Ckks>::new(roomy(2, ckks::Mode::Auto), plan, &Rotations::none());
    let a = kit.encrypt(&Ckks::sample(kit.context(), 1));
    let (context, seed) = (kit.rlwe(), Seed::from_bytes([3; 32]));
    let width = |x: &[BigInt]| (x.iter().map(|x| x.to_f64().unwrap().powi(2)).sum::<f64>() / 1024.0).log2() / 2.0;
    for together in [false, true] {
        let hiding = plan.hiding(2, 10.0);
        let opening = Ckks::sharing(kit.context(), &a, &hiding, together).unwrap();
        // sqrt(12 D) 2^(S/2) times messages of 1 at the scale.
        let least = a.log2_scale() + (12.0 * 64.0f64).log2() / 2.0 + 20.0;
        assert!((least..least + 2.0).contains(&f64::from(opening.sigma_bits)), "{}", opening.sigma_bits);
        let (own, hides) = Ckks::own_part(kit.context(), &opening, &seed).unwrap();
        let (own, hides) = (own.integers().to_integers_vartime(), hides.duplicate(context.backend()).unwrap());
        let shown = integers(context.params().ring(), context.backend(), hides);
        assert!((width(&shown) - f64::from(opening.sigma_bits)).abs() < 0.2);
        let left: Vec<BigInt> = own.iter().zip(&shown).map(|(own, shown)| own + shown).collect();
        match Ckks::opening(kit.context(), &a, &hiding).unwrap().sigma_bits {
            bits if together => assert!((width(&left) - f64::from(bits)).abs() < 0.2),
            _ => assert!(left.iter().all(|x| *x == BigInt::ZERO)),
        }
    }
}

/// Where the modulus has no room for what hides a message that is told before anything is shown, with a level that has it.
#[test]
fn what_has_no_room_is_refused_with_the_level_that_has() {
    let plan = Plan::all_of(2).with_decryptions(64).with_security(40);
    let mut kit = Kit::<Ckks>::new(Ckks::small(2), plan, &Rotations::none());
    let a = kit.encrypt(&Ckks::sample(kit.context(), 1));
    let low = kit.evaluator.at_level(&a, 0).unwrap();
    for result in shared_and_fresh(&kit, &[0, 1], &a, &low) {
        let error = result.err().unwrap();
        assert_eq!(error.kind(), "no_room_for_shares");
        assert!(
            error.to_string().contains("level 0") && error.remedy().contains("level 1"),
            "{error}: {}",
            error.remedy()
        );
    }
    assert_eq!(kit.journal(0).made(), 1);
}

/// 128 bits: of everything for BGV, and of CKKS with 40 bits of statistical security.
#[test]
fn messages_are_made_fresh_under_real_parameters() {
    fn check<S: Together>(params: S::Params, plan: Plan, x: &Values) {
        let mut kit = Kit::<S>::new(params, plan, &Rotations::none());
        let context = std::sync::Arc::clone(kit.context());
        let by = Encryptor::Public(&kit.parties[0].keys.public);
        let a = S::encrypt(&context, &by, x, 1.0, 0, &mut kit.randomness).unwrap();
        let results = shared_and_fresh(&kit, &[0, 1], &a, &kit.evaluator.add(&a, &a).unwrap());
        let (_, fresh) = results.into_iter().next().unwrap().unwrap();
        let found = kit.open(&[0, 1], &[&fresh[0]], 8.0)[0].reals();
        let expected: Vec<f64> = x.reals().iter().map(|x| 2.0 * x).collect();
        assert!(found.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 0.004), "{}", S::NAME.name());
    }
    let literal = ckks::ParamsLiteral {
        log_n: 13,
        log_scale: 70,
        q_bits: vec![60, 60],
        level_limbs: vec![2],
        p_bits: vec![60],
        omega: 2,
        security: Security::Bits128,
        primes: None,
        ..Ckks::small(1).literal().clone()
    };
    let plan = Plan::any_of(2, 3).with_security(40).with_decryptions(1000);
    let values: Values = vec![0.25, -0.125, 0.5, 0.0].into();
    check::<Ckks>(ckks::Params::new(literal).unwrap().with_parties(3), plan, &values);
}
