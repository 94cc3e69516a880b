//! One of three parties does each deed to each frame that it sends: nobody honest is named, nothing wrong is believed that the
//! protocol promises to find, and whoever is told the same sees the same.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use synchromesh::bgv::Bgv;
use synchromesh::exact::{Ciphertext, Context, Params, Rotations};
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::{PublicKey, Randomness, SecretKey};
use synchromesh::scheme::{Scheme, Values};

use super::proven_tests::smallest;
use super::test_kit::*;
use super::*;
use crate::journal::Decryptions;
use crate::session::{HEADER, Kind, Session};
use crate::tampering::{Tamper, Tampering};
use crate::{Blame, Error, Result};

/// What becomes of a frame, given the one sent before to the same party; none is silence ever after.
type Deed = fn(Vec<u8>, &[u8]) -> Option<Vec<u8>>;

fn flip(mut frame: Vec<u8>, at: usize) -> Option<Vec<u8>> {
    if let Some(byte) = frame.get_mut(at) {
        *byte ^= 1;
    }
    Some(frame)
}

const DEEDS: [(&str, Deed); 13] = [
    ("another session", |frame, _| flip(frame, 0)),
    ("another round", |frame, _| flip(frame, 32)),
    ("another sender", |frame, _| flip(frame, 40)),
    ("another kind", |frame, _| flip(frame, 44)),
    ("another payload", |frame, _| flip(frame, HEADER)),
    ("another payload in the middle", |frame, _| {
        let at = HEADER + (frame.len() - HEADER) / 2;
        flip(frame, at)
    }),
    ("nothing that is a residue", |mut frame, _| {
        frame[HEADER..].fill(0xff);
        Some(frame)
    }),
    ("zeros", |mut frame, _| {
        frame[HEADER..].fill(0);
        Some(frame)
    }),
    ("a byte too few", |mut frame, _| {
        frame.pop();
        Some(frame)
    }),
    ("a byte too many", |mut frame, _| {
        frame.push(0);
        Some(frame)
    }),
    ("an empty frame", |_, _| Some(Vec::new())),
    ("the last frame again", |frame, last| Some(if last.is_empty() { frame } else { last.to_vec() })),
    ("silence", |_, _| None),
];

/// The deed done to so many frames from this one on: one, or those to both others in one round; `kind` is that of the last.
fn tamper(number: usize, frames: usize, deed: Deed, kind: &Arc<AtomicU32>) -> Option<Tamper> {
    let (mut last, kind) = (HashMap::<usize, Vec<u8>>::new(), Arc::clone(kind));
    Some(Box::new(move |n, peer, frame| {
        let before = last.insert(peer, frame.clone()).unwrap_or_default();
        if !(number..number + frames).contains(&n) {
            return Some(frame);
        }
        kind.store(frame[HEADER - 4..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word)), Ordering::SeqCst);
        deed(frame, &before)
    }))
}

/// Whether what was altered is what the party has of a sum, which is its own affair where it proves nothing: all believe the same
/// then, whatever it is.
pub(super) const fn is_summand(kind: u32) -> bool {
    kind == Kind::Summand as u32
}

/// Every deed to every frame of the last party, or to every `together` frames. `right` judges what honest parties believe,
/// all of them together, by the kind of the frame. Returns how many attempts there were, and how many ended for both.
pub(super) fn every_frame<R: std::fmt::Debug>(
    together: usize,
    mut attempt: impl FnMut(Option<Tamper>) -> Vec<Result<R>>,
    right: impl Fn(&[&R], u32) -> bool,
) -> (usize, usize) {
    let frames = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&frames);
    let count: Tamper = Box::new(move |n, _, frame| {
        counter.fetch_max(n + 1, Ordering::SeqCst);
        Some(frame)
    });
    assert!(attempt(Some(count)).iter().all(Result::is_ok));
    let (mut attempts, mut ended) = (0, 0);
    for number in (0..frames.load(Ordering::SeqCst)).step_by(together) {
        for (name, deed) in DEEDS {
            let kind = Arc::default();
            let results = attempt(tamper(number, together, deed, &kind));
            let honest = &results[..2];
            for result in honest {
                let blame = match result {
                    Ok(_) => continue,
                    Err(Error::Abort { blame, .. }) => blame,
                    Err(other) => panic!("{name} at frame {number}: {other:?}"),
                };
                let wrong = match blame {
                    Blame::Party(party) => *party != 2,
                    Blame::Missing(_) | Blame::Somebody => false,
                };
                assert!(!wrong, "{name} at frame {number}: {honest:?}");
            }
            let believed: Vec<&R> = honest.iter().flatten().collect();
            assert!(right(&believed, kind.load(Ordering::SeqCst)), "{name} at frame {number}: {believed:?}");
            attempts += 1;
            ended += usize::from(believed.is_empty());
        }
    }
    (attempts, ended)
}

/// A decryption by three of which one cheats.
fn decrypting(plan: Plan, together: usize) {
    let params = Bgv::with_joint(&Bgv::small(3), &plan);
    let mut kit = Kit::<Bgv>::new(params, plan.with_decryptions(4096), &Rotations::none());
    let values = Bgv::sample(kit.context(), 1);
    let integers = |values: &Values| values.integers("a test").unwrap();
    let attempt = |tamper| {
        // One that each adds up.
        let list = [(); 3].map(|()| kit.encrypt(&values));
        let results = kit.decrypt(&[0, 1, 2], (PATIENCE, tamper), &list.each_ref(), 0.0);
        results.into_iter().map(|result| result.map(|list| list.iter().map(integers).collect::<Vec<_>>())).collect()
    };
    // Each deed is done to one party's frame alone, so that the other sees that it was told something else.
    let expected = [(); 3].map(|()| integers(&values));
    let right = |believed: &[&Vec<_>], kind| {
        let all = if is_summand(kind) { believed.first().map_or(&expected[..], |first| first) } else { &expected };
        believed.iter().all(|found| found[..] == *all)
    };
    let (attempts, ended) = every_frame(together, attempt, right);
    assert!(attempts >= 200 / together && ended > attempts / 2, "{ended} of {attempts}");
}

#[test]
fn no_deed_to_a_frame_of_a_decryption_shows_a_wrong_value_or_names_an_honest_party() {
    decrypting(Plan::all_of(3), 1);
}

/// Both others are told the same, but for the hash of it. (`proven_tests` have a party that lies in that too.)
#[test]
fn the_same_where_shares_of_a_decryption_are_proven_and_both_others_are_told_the_same() {
    decrypting(Plan::all_of(3).with_proofs(), 2);
}

#[test]
fn the_same_among_members_of_a_threshold_key() {
    decrypting(Plan::any_of(2, 3), 1);
}

/// One of three cheats while they make another ciphertext of one: `makes` says whether it is one of the same values. Each deed is
/// done to one party's frame alone.
fn making_of(
    makes: impl Fn(&mut Quorum<'_, Tampering>, &mut Decryptions, &Kit<Bgv>, &Ciphertext<Bgv>, &Values) -> Result<bool>
    + Sync,
) {
    let mut kit = Kit::<Bgv>::new(Bgv::small(3), Plan::all_of(3).with_decryptions(4096), &Rotations::none());
    let values = Bgv::sample(kit.context(), 1);
    let attempt = |tamper| {
        let x = kit.encrypt(&values);
        run(3, (PATIENCE, tamper), |i, transport| {
            let mut session = Session::new(transport, "another ciphertext")?;
            let mut quorum = Quorum::meet(&mut session, kit.rlwe(), &kit.parties[i].share)?;
            makes(&mut quorum, &mut kit.journal(i), &kit, &x, &values)
        })
    };
    let right = |believed: &[&bool], kind| is_summand(kind) || believed.iter().all(|right| **right);
    let (attempts, ended) = every_frame(1, attempt, right);
    println!("{ended} of {attempts} ended for both");
    assert!(attempts >= 200 && ended > attempts / 2, "{ended} of {attempts}");
}

#[test]
fn no_deed_to_a_frame_puts_a_wrong_value_into_what_is_passed_on_or_names_an_honest_party() {
    making_of(|quorum, journal, kit, x, values| {
        let mut randomness = Randomness::insecure_from_number(5);
        let receiver = SecretKey::<Cpu>::generate(kit.rlwe(), &mut randomness)?;
        let public = PublicKey::generate(kit.rlwe(), &receiver, &mut randomness)?;
        let passed = quorum.pass_on::<Bgv>(kit.context(), journal, &[x], &public, 0.0)?;
        Ok(Bgv::agree(&Bgv::decrypt(kit.context(), &receiver, &passed[0])?, values, 0.0))
    });
}

#[test]
fn the_same_of_what_is_shared_and_encrypted_again() {
    making_of(|quorum, journal, kit, x, values| {
        let fresh = quorum.refresh::<Bgv>(kit.context(), journal, &kit.parties[0].keys.public, &[x])?;
        // Another message is farther away than any certificate allows.
        let [measured, certified] = Bgv::errors(kit.context(), &fresh[0], &kit.secret(), values);
        Ok(measured <= certified)
    });
}

/// Keys among three of which one cheats. What the others believe is one key: its public halves are the same. (A value that one
/// party alone was dealt is not checked: semi-honest parties deal right ones.)
fn making(plan: Plan, params: Params<Bgv>, together: usize) {
    let context = Context::new(params.clone()).unwrap();
    let wanted = Wanted::whole::<Bgv>(&context, params.plans(), &Rotations::none()).unwrap();
    let attempt = |tamper| {
        run(3, (PATIENCE, tamper), |_, transport| {
            let mut session = Session::new(transport, "keys")?;
            let (keys, share) = generate(&mut session, context.rlwe(), &plan, &wanted)?;
            let public = keys.public.to_bytes(context.rlwe(), None)?;
            let evaluation = keys.evaluation.to_bytes(context.rlwe(), None)?;
            Ok((blake3::hash(&[public, evaluation].concat()), share.key()))
        })
    };
    let (attempts, ended) =
        every_frame(together, attempt, |believed, _| believed.windows(2).all(|pair| pair[0] == pair[1]));
    println!("{ended} of {attempts} ended for both");
    assert!(attempts >= 400 / together && ended > attempts / 2, "{ended} of {attempts}");
}

#[test]
fn no_deed_to_a_frame_of_key_generation_leaves_two_keys_or_names_an_honest_party() {
    making(Plan::all_of(3), Bgv::small(3), 1);
}

#[test]
fn the_same_where_shares_of_the_key_are_dealt() {
    making(Plan::any_of(2, 3), Bgv::small(3), 1);
}

#[test]
#[ignore = "hundreds of runs with proofs; cargo xtask verify triples runs them"]
fn the_same_where_shares_are_proven() {
    let plan = Plan::all_of(3).with_proofs();
    making(plan, smallest(&plan), 1);
}

#[test]
#[ignore = "hundreds of runs with proofs; cargo xtask verify triples runs them"]
fn the_same_of_a_threshold_key_whose_shares_are_proven() {
    let plan = Plan::any_of(2, 3).with_proofs();
    making(plan, smallest(&plan), 2);
    decrypting(plan, 2);
}

#[test]
fn the_same_where_shares_are_proven_and_both_others_are_told_the_same() {
    let plan = Plan::all_of(3).with_proofs();
    making(plan, smallest(&plan), 2);
}
