//! A joint key handed on: to more or fewer holders, some of whom stay; the same secret, the same journal, and shares that are
//! wrong found out.

use std::path::PathBuf;
use std::time::Duration;

use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::Arithmetic;
use synchromesh::ckks::Ckks;
use synchromesh::exact::Rotations;
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::scheme::Values;
use synchromesh::shares::Shares;

use super::adversary_tests::every_frame;
use super::test_kit::*;
use super::*;
use crate::journal::Decryptions;
use crate::session::{HEADER, Session};
use crate::tampering::Tamper;
use crate::{Blame, Error, Result};

/// The number of a party of the session among the old holders, and among the new.
type Role = (Option<usize>, Option<usize>);

/// How many of how many hold the key then, who takes part, and which of them decrypt.
type Step<'a> = (usize, usize, &'a [Role], &'a [&'a [usize]]);

/// A share with its journal.
type Holder = (KeyShare, PathBuf);

fn holders<S: Judged>(kit: &mut Kit<S>) -> Vec<Holder> {
    kit.parties.iter().map(|party| (copy(kit, &party.share), party.journal.clone())).collect()
}

fn copy<S: Judged>(kit: &Kit<S>, share: &KeyShare) -> KeyShare {
    KeyShare::from_bytes(kit.rlwe(), &share.to_bytes(kit.rlwe()).unwrap()).unwrap()
}

/// What each of these gets; frames of the last pass through `tamper`.
fn hand_on<S: Judged>(
    kit: &Kit<S>,
    old: &[Holder],
    to: Plan,
    roles: &[Role],
    how: (Duration, Option<Tamper>),
) -> Vec<Result<Option<Taken>>> {
    run(roles.len(), how, |i, transport| {
        let mut session = Session::new(transport, "new holders")?;
        let (gives, takes) = roles[i];
        let journal = gives.map(|member| old[member].0.open_journal(&old[member].1)).transpose()?;
        let gives = gives.map(|member| &old[member].0).zip(journal.as_ref());
        let public = &kit.parties[0].keys.public;
        reshare(&mut session, kit.rlwe(), public, &to, Holding { gives, takes })
    })
}

/// The same where all goes well: the new holders, in the order of their numbers.
fn handed_on<S: Judged>(kit: &Kit<S>, old: &[Holder], to: Plan, roles: &[Role]) -> Vec<Holder> {
    let results = hand_on(kit, old, to, roles, (PATIENCE, None));
    let mut taken: Vec<Taken> = results.into_iter().filter_map(|result| result.unwrap()).collect();
    taken.sort_by_key(|taken| taken.share.member());
    assert_eq!(taken.iter().map(|taken| taken.share.member()).collect::<Vec<_>>(), (0..to.parties).collect::<Vec<_>>());
    let begun = |Taken { share, decrypted }: Taken| {
        let path = kit.root.path().join(format!(
            "{} {}.journal",
            std::fs::read_dir(kit.root.path()).unwrap().count(),
            share.member()
        ));
        share.begin_journal_with(&path, &decrypted).unwrap();
        (copy(kit, &share), path)
    };
    taken.into_iter().map(begun).collect()
}

/// What each of these holders gets of a decryption.
fn opened<S: Judged>(
    kit: &Kit<S>,
    holders: &[Holder],
    members: &[usize],
    ciphertext: &S::Ciphertext<Cpu>,
) -> Vec<Result<Values>> {
    run(members.len(), (Duration::from_secs(5), None), |i, transport| {
        let (share, journal) = &holders[members[i]];
        let mut session = Session::new(transport, "decryption")?;
        let mut journal = share.open_journal(journal)?;
        let mut quorum = Quorum::meet(&mut session, kit.rlwe(), share)?;
        let mut opened = quorum.decrypt::<S>(kit.context(), &mut journal, &[ciphertext], 10.0)?;
        Ok(opened.remove(0).values)
    })
}

fn words<S: Judged>(kit: &Kit<S>, secret: &SecretPoly<Cpu>) -> Vec<u64> {
    secret.poly().to_words(kit.rlwe().backend()).unwrap()
}

/// Through these plans, each with who takes part; all who are named decrypt what was computed before and after.
fn through<S: Judged>(first: Plan, steps: &[Step<'_>]) {
    let plan = first.with_decryptions(64).with_security(40);
    let mut kit = Kit::<S>::new(S::small(first.parties), plan, &Rotations::none());
    let (mut current, secret) = (holders(&mut kit), kit.secret());
    for (step, &(threshold, parties, roles, quorums)) in steps.iter().enumerate() {
        let to = plan.held_by(threshold, parties);
        let [x, y] = [1, 2].map(|seed| S::sample(kit.context(), seed + 10 * step as u64));
        let expected = S::product(kit.context(), &x, &y);
        let [a, b, before] = [&x, &y, &x].map(|values| kit.encrypt(values));
        let giver = roles.iter().find_map(|role| role.0).unwrap();
        let old: Vec<usize> = std::iter::once(giver)
            .chain((0..current.len()).filter(|&member| member != giver))
            .take(current[0].0.plan().threshold)
            .collect();
        assert!(opened(&kit, &current, &old, &before).iter().all(|result| result.is_ok()));
        let next = handed_on(&kit, &current, to, roles);
        let shares: Vec<&KeyShare> = next.iter().map(|holder| &holder.0).collect();
        assert_eq!(words(&kit, &test_kit::secret(kit.rlwe(), &shares)), words(&kit, &secret), "the secret");
        assert!(shares.iter().all(|share| share.plan() == &to && share.key() == current[0].0.key()));
        // What met an old share meets no new one.
        let again = opened(&kit, &next, quorums[0], &before);
        assert!(again.iter().any(|result| result.as_ref().is_err_and(|e| e.kind() == "decrypted_before")));
        for members in quorums {
            let zero = kit.encrypt(&S::zeros_of(&x));
            // Another ciphertext each time.
            let product = kit.evaluator.add(&kit.evaluator.mul(&a, &b).unwrap(), &zero).unwrap();
            for found in opened(&kit, &next, members, &product) {
                assert!(S::agree(&found.unwrap(), &expected, 10.0), "{} {members:?} of {to:?}", S::NAME.name());
            }
        }
        if threshold > 2 {
            let few = opened(&kit, &next, &quorums[0][..2], &a);
            assert!(few.iter().all(|result| result.as_ref().is_err_and(|e| e.kind() == "too_few_parties")));
        }
        // An old share and new ones are of different plans.
        let mut mixed: Vec<Holder> = next.iter().map(|(share, path)| (copy(&kit, share), path.clone())).collect();
        mixed[quorums[0][0]] = (copy(&kit, &current[giver].0), current[giver].1.clone());
        assert!(opened(&kit, &mixed, quorums[0], &a).iter().all(|result| result.is_err()));
        current = next;
    }
}

/// A zero beside values of a scheme.
trait Zeros: Judged {
    fn zeros_of(x: &Values) -> Values;
}

impl<S: Judged> Zeros for S {
    fn zeros_of(x: &Values) -> Values {
        match S::NAME.name() {
            "ckks" => vec![0.0; x.len()].into(),
            _ => vec![0i64; x.len()].into(),
        }
    }
}

#[test]
fn two_of_three_become_three_of_five_while_one_is_away_and_one_stays() {
    // Members 0 and 2 give; 2 stays, as number 1.
    let roles =
        [(None, Some(0)), (Some(2), Some(1)), (Some(0), None), (None, Some(2)), (None, Some(4)), (None, Some(3))];
    through::<Bgv>(Plan::any_of(2, 3), &[(3, 5, &roles, &[&[0, 1, 2], &[4, 2, 3], &[0, 1, 2, 3, 4]])]);
    through::<Ckks>(Plan::any_of(2, 3), &[(3, 5, &roles, &[&[1, 3, 4]])]);
}

#[test]
fn all_of_three_become_two_of_three_and_all_of_two() {
    let same = [(Some(0), Some(0)), (Some(1), Some(1)), (Some(2), Some(2))];
    // One leaves, and nobody comes.
    let leaves = [(Some(2), Some(1)), (Some(0), Some(0))];
    // One comes to two, of whom both decrypt.
    let comes = [(None, Some(2)), (Some(0), Some(0)), (Some(1), Some(1))];
    let steps: [Step<'_>; 3] =
        [(2, 3, &same, &[&[0, 1], &[2, 1]]), (2, 2, &leaves, &[&[0, 1]]), (3, 3, &comes, &[&[0, 1, 2]])];
    through::<Bfv>(Plan::all_of(3), &steps);
}

/// Those who hold a key that others made refresh under it too.
#[test]
fn new_holders_make_ciphertexts_fresh() {
    fn check<S: Judged + Shares>(level: usize) {
        let plan = Plan::all_of(2).with_decryptions(64).with_security(40);
        let mut kit = Kit::<S>::new(S::small(2), plan, &Rotations::none());
        let old = holders(&mut kit);
        let roles = [(Some(0), Some(0)), (Some(1), Some(1)), (None, Some(2))];
        let new = handed_on(&kit, &old, plan.held_by(2, 3), &roles);
        let x = S::sample(kit.context(), 1);
        let a = kit.encrypt(&x);
        let low = kit.evaluator.at_level(&a, level).unwrap();
        let fresh = run(2, (PATIENCE, None), |i, transport| {
            let (share, journal) = &new[i + 1];
            let mut session = Session::new(transport, "refresh").unwrap();
            let mut journal: Decryptions = share.open_journal(journal).unwrap();
            let mut quorum = Quorum::meet(&mut session, kit.rlwe(), share).unwrap();
            quorum.refresh::<S>(kit.context(), &mut journal, &kit.parties[0].keys.public, &[&low]).unwrap().remove(0)
        });
        let [measured, certified] = S::errors(kit.context(), &fresh[0], &kit.secret(), &x);
        assert!(measured <= certified && certified < measured + 16.0, "{measured} of {certified}");
    }
    check::<Bgv>(2);
    check::<Ckks>(1);
}

fn two_of_three() -> (Kit<Bgv>, Vec<Holder>, Plan) {
    let plan = Plan::any_of(2, 3).with_decryptions(64);
    let mut kit = Kit::<Bgv>::new(Bgv::small(3), plan, &Rotations::none());
    let old = holders(&mut kit);
    (kit, old, plan)
}

/// A share that is wrong, old or new, makes all of them give up, and says of which; it does not say whose.
#[test]
fn shares_that_do_not_add_up_to_the_key_are_used_by_nobody() {
    let (kit, mut old, plan) = two_of_three();
    let roles = [(Some(1), None), (None, Some(0)), (None, Some(1)), (Some(0), Some(2))];
    let found = |results: &[Result<Option<Taken>>], who: &str| {
        for result in results {
            let Err(Error::Abort { blame, deed, .. }) = result else { panic!("{result:?}") };
            assert!(*blame == Blame::Somebody, "{result:?}");
            assert!(deed.contains(who) || deed.contains("has aborted"), "{deed}");
        }
        assert!(results.iter().any(|result| result.as_ref().unwrap_err().to_string().contains(who)), "{results:?}");
    };
    // One residue of a piece on its way to the last but one.
    let mut left = 3;
    let tamper: Tamper = Box::new(move |_, _, mut frame| {
        if frame[HEADER - 4] == crate::session::Kind::Private as u8 {
            left -= 1;
            if left == 0 {
                frame[HEADER] ^= 1;
            }
        }
        Some(frame)
    });
    found(&hand_on(&kit, &old, plan.held_by(2, 3), &roles, (PATIENCE, Some(tamper))), "the new holders");
    let backend = kit.rlwe().backend();
    let mut doubled = old[0].0.secrets[0].poly().duplicate(backend).unwrap();
    doubled.add_assign(backend, old[0].0.secrets[0].poly()).unwrap();
    old[0].0.secrets = vec![SecretPoly::new(doubled)];
    found(&hand_on(&kit, &old, plan.held_by(2, 3), &roles, (PATIENCE, None)), "those who gave");
}

/// One who gives and takes does each deed to each frame: nobody honest is named, and shares that both others believe are of the
/// same key.
#[test]
fn no_deed_to_a_frame_hands_on_another_key_or_names_an_honest_party() {
    let (kit, old, plan) = two_of_three();
    let to = plan.held_by(2, 3);
    let roles = [(Some(1), Some(0)), (None, Some(1)), (Some(0), Some(2))];
    let key = words(&kit, &kit.secret());
    let attempt = |tamper| {
        let results = hand_on(&kit, &old, to, &roles, (PATIENCE, tamper)).into_iter();
        results.map(|result| result.map(|taken| taken.map(|taken| taken.share))).collect()
    };
    let right = |believed: &[&Option<KeyShare>], _| {
        let shares: Vec<&KeyShare> = believed.iter().filter_map(|share| share.as_ref()).collect();
        shares.len() < 2 || words(&kit, &secret(kit.rlwe(), &shares)) == key
    };
    let (attempts, ended) = every_frame(1, attempt, right);
    assert!(attempts >= 300 && ended > attempts / 2, "{ended} of {attempts}");
    assert_eq!(old[0].0.open_journal(&old[0].1).unwrap().made(), 0);
}

#[test]
fn who_is_not_there_or_says_something_else_is_refused() {
    let (kit, old, plan) = two_of_three();
    let kinds = |to: Plan, roles: &[Role]| -> Vec<&'static str> {
        let results = hand_on(&kit, &old, to, roles, (Duration::from_secs(5), None));
        results.iter().map(|result| result.as_ref().map_or_else(Error::kind, |_| "none")).collect()
    };
    let to = plan.held_by(2, 3);
    assert_eq!(kinds(to, &[(Some(0), Some(0)), (None, Some(1)), (None, Some(2))]), ["too_few_parties"; 3]);
    assert_eq!(kinds(to, &[(Some(0), Some(0)), (Some(1), Some(2))]), ["joint_key"; 2]);
    assert_eq!(kinds(to, &[(Some(0), Some(0)), (Some(1), Some(1)), (None, None)]), ["abort"; 3]);
    // Of two with one journal whoever comes second finds it busy.
    let mut both = kinds(to, &[(Some(0), Some(0)), (Some(0), Some(1)), (Some(1), Some(2))]);
    both.sort_unstable();
    assert_eq!(both, ["abort", "abort", "file_busy"]);
    assert_eq!(kinds(to, &[(Some(0), Some(1)), (Some(2), Some(1)), (Some(1), Some(2))]), ["abort"; 3]);
    let other = Plan { makers: Some(2), ..to };
    assert!(kinds(other, &[(Some(0), Some(0)), (Some(1), Some(1)), (None, Some(2))]).contains(&"joint_key"));
    let more = to.with_decryptions(65);
    assert!(kinds(more, &[(Some(0), Some(0)), (Some(1), Some(1)), (None, Some(2))]).contains(&"joint_key"));
    // Nothing of this was a decryption.
    assert_eq!(old[0].0.open_journal(&old[0].1).unwrap().made(), 0);
}
