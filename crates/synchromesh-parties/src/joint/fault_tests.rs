//! Joint keys where somebody does not follow the protocol: who is blamed, and that nothing is shown twice.

use std::time::Duration;

use synchromesh::bgv::Bgv;
use synchromesh::exact::Rotations;
use synchromesh::rlwe::Source;
use synchromesh::scheme::Scheme;

use super::test_kit::*;
use super::*;
use crate::session::{HEADER, Session};
use crate::tampering::Tamper;
use crate::{Blame, Error, Result};

/// Short, since somebody may be silent.
const SHORT: Duration = Duration::from_millis(1500);

fn kit(plan: Plan) -> Kit<Bgv> {
    Kit::new(Bgv::small(plan.parties), plan.with_decryptions(64), &Rotations::none())
}

/// What becomes of a frame.
type Deed = fn(Vec<u8>) -> Option<Vec<u8>>;

/// How many values each member gets.
fn attempt(
    kit: &Kit<Bgv>,
    members: &[usize],
    how: (Duration, Option<Tamper>),
    list: &[&<Bgv as Scheme>::Ciphertext<synchromesh::rlwe::ring::Cpu>],
) -> Vec<Result<usize>> {
    kit.decrypt(members, how, list, 0.0).into_iter().map(|result| result.map(|values| values.len())).collect()
}

fn blame<R: std::fmt::Debug>(result: &Result<R>) -> &Blame {
    match result {
        Err(Error::Abort { blame, .. }) => blame,
        other => panic!("no abort: {other:?}"),
    }
}

/// Something is done to one frame.
fn at(number: usize, mut deed: impl FnMut(Vec<u8>) -> Option<Vec<u8>> + Send + 'static) -> Option<Tamper> {
    Some(Box::new(move |n, _, frame| if n == number { deed(frame) } else { Some(frame) }))
}

/// Frames that a party sends to each other one before it shows a share: hello and agreement; the key, its agreement, the
/// numbers and theirs; what is to be opened, and its agreement.
const BEFORE: usize = 2 + 4 + 2;

/// After whatever happened, nothing that a journal has is decrypted again; what no journal has is.
fn nothing_twice(kit: &Kit<Bgv>, x: &<Bgv as Scheme>::Ciphertext<synchromesh::rlwe::ring::Cpu>, shown: bool) {
    let members: Vec<usize> = (0..kit.parties.len()).collect();
    let again = attempt(kit, &members, (SHORT, None), &[x]);
    if shown {
        let before = again.iter().filter(|result| matches!(result, Err(Error::DecryptedBefore { .. })));
        assert!(before.count() > 0, "{again:?}");
        assert!(again.iter().all(Result::is_err));
    } else {
        assert!(again.iter().all(Result::is_ok), "{again:?}");
    }
}

#[test]
fn a_share_that_is_none_is_blamed_on_its_sender_and_never_made_again() {
    let mut kit = kit(Plan::all_of(3));
    let values = Bgv::sample(kit.context(), 1);
    let deeds: [(&str, Deed, bool); 5] = [
        (
            "a byte too few",
            |mut frame| {
                frame.pop();
                Some(frame)
            },
            true,
        ),
        (
            "a byte too many",
            |mut frame| {
                frame.push(0);
                Some(frame)
            },
            true,
        ),
        (
            "no residues",
            |mut frame| {
                frame[HEADER..].fill(0xff);
                Some(frame)
            },
            true,
        ),
        (
            "another session",
            |mut frame| {
                frame[0] ^= 1;
                Some(frame)
            },
            true,
        ),
        ("silence", |_| None, false),
    ];
    for (name, deed, named) in deeds {
        let x = kit.encrypt(&values);
        // To party 0 and to party 1 in turn: the first of both.
        let results = attempt(&kit, &[0, 1, 2], (SHORT, at(2 * BEFORE, deed)), &[&x]);
        match blame(&results[0]) {
            Blame::Party(party) => assert!(named && *party == 2, "{name}"),
            Blame::Missing(parties) => assert!(!named && parties == &[2], "{name}: {parties:?}"),
            Blame::Somebody => panic!("{name}: {results:?}"),
        }
        assert!(!matches!(blame(&results[1]), Blame::Party(party) if *party != 2), "{name}: {results:?}");
        nothing_twice(&kit, &x, true);
    }
}

#[test]
fn whoever_leaves_before_anything_is_shown_costs_nothing() {
    let mut kit = kit(Plan::all_of(3));
    let values = Bgv::sample(kit.context(), 1);
    for number in [0, 4, 2 * BEFORE - 4] {
        let x = kit.encrypt(&values);
        let results = attempt(&kit, &[0, 1, 2], (SHORT, at(number, |_| None)), &[&x]);
        assert!(results[..2].iter().all(Result::is_err), "{results:?}");
        nothing_twice(&kit, &x, false);
    }
}

#[test]
fn different_things_to_different_parties_end_the_session() {
    let mut kit = kit(Plan::all_of(3));
    let list = [1, 2, 3].map(|seed| kit.encrypt(&Bgv::sample(kit.context(), seed)));
    // A residue of the sum that it has added up is another for party 1; its top bits are 0.
    let flip = |mut frame: Vec<u8>| {
        frame[HEADER] ^= 1;
        Some(frame)
    };
    // To each what it has of the sum that the other adds up, and then what it has added up.
    let sums = 2 * (BEFORE + 1);
    let results = attempt(&kit, &[0, 1, 2], (SHORT, at(sums + 1, flip)), &list.each_ref());
    assert!(results.iter().all(|result| *blame(result) == Blame::Somebody), "{results:?}");
    list.iter().for_each(|x| nothing_twice(&kit, x, true));
}

#[test]
fn parties_about_different_ciphertexts_show_nothing() {
    let mut kit = kit(Plan::all_of(2));
    let [x, y] = [1, 2].map(|seed| kit.encrypt(&Bgv::sample(kit.context(), seed)));
    let results = run(2, (SHORT, None), |i, transport| {
        let mut session = Session::new(transport, "decryption").unwrap();
        let mut quorum = Quorum::meet(&mut session, kit.rlwe(), &kit.parties[i].share).unwrap();
        quorum.decrypt::<Bgv>(kit.context(), &mut kit.journal(i), &[[&x, &y][i]], 0.0).map(drop)
    });
    assert!(results.iter().all(|result| *blame(result) == Blame::Somebody), "{results:?}");
    assert!((0..2).all(|i| kit.journal(i).made() == 0));
    nothing_twice(&kit, &x, false);
}

#[test]
fn one_identity_twice_and_holders_of_different_keys_are_no_quorum() {
    let kit = kit(Plan::any_of(2, 3));
    let meet = |shares: [&KeyShare; 2]| {
        run(2, (SHORT, None), |i, transport| {
            let mut session = Session::new(transport, "meeting").unwrap();
            Quorum::meet(&mut session, kit.rlwe(), shares[i]).map(drop)
        })
    };
    let same = meet([&kit.parties[1].share, &kit.parties[1].share]);
    assert!(same.iter().all(|result| *blame(result) == Blame::Somebody), "{same:?}");
    assert!(same[0].as_ref().unwrap_err().to_string().contains("both claim to be member 1"));
    let other = self::kit(Plan::any_of(2, 3));
    let strangers = meet([&kit.parties[0].share, &other.parties[1].share]);
    assert!(strangers.iter().all(|result| *blame(result) == Blame::Somebody), "{strangers:?}");
}

#[test]
fn a_journal_bounds_decryptions_and_belongs_to_its_share() {
    let mut kit = Kit::<Bgv>::new(Bgv::small(2), Plan::all_of(2).with_decryptions(2), &Rotations::none());
    let [x, y, z] = [1, 2, 3].map(|seed| kit.encrypt(&Bgv::sample(kit.context(), seed)));
    let refused = |results: Vec<Result<usize>>, kind: &str| {
        assert!(results.iter().all(|result| result.as_ref().unwrap_err().kind() == kind), "{results:?}");
    };
    let decrypt = |list: &[_]| attempt(&kit, &[0, 1], (SHORT, None), list);
    refused(decrypt(&[&x, &x]), "decrypted_before");
    refused(decrypt(&[&x, &y, &z]), "key_spent");
    assert!(decrypt(&[&x]).iter().all(Result::is_ok));
    refused(decrypt(&[&x]), "decrypted_before");
    refused(decrypt(&[&y, &z]), "key_spent");
    assert!(decrypt(&[&y]).iter().all(Result::is_ok));
    refused(decrypt(&[&z]), "key_spent");
    let [first, second] = [0, 1].map(|i| &kit.parties[i]);
    assert_eq!(first.share.open_journal(&second.journal).unwrap_err().kind(), "file_damaged");
    assert_eq!(first.share.open_journal(&kit.root.path().join("none")).unwrap_err().kind(), "record_missing");
}

#[test]
fn a_ciphertext_that_does_not_fit_is_refused_before_anything_is_shown() {
    let mut kit = kit(Plan::all_of(2));
    let x = kit.encrypt(&Bgv::sample(kit.context(), 1));
    let product = kit.evaluator.mul_no_relin(&x, &x).unwrap();
    let mut other = self::kit(Plan::all_of(2));
    let foreign = other.encrypt(&Bgv::sample(kit.context(), 1));
    let read = |trust| {
        let bytes = Bgv::write(kit.context(), &x, None).unwrap();
        Bgv::read(kit.context(), &bytes, None, trust).unwrap()
    };
    let kind = |x: &_| {
        let kinds: Vec<&str> =
            attempt(&kit, &[0, 1], (SHORT, None), &[x]).iter().map(|r| r.as_ref().unwrap_err().kind()).collect();
        assert_eq!(kinds[0], kinds[1]);
        kinds[0]
    };
    assert_eq!(kind(&product), "components");
    assert_eq!(kind(&foreign), "keys_differ");
    assert_eq!(kind(&read(synchromesh::rlwe::codec::Trust::Certificate)), "certificate_on_word");
    assert!(["noise", "unknown_noise"].contains(&kind(&read(synchromesh::rlwe::codec::Trust::Nothing))));
    // Noise that 128 bits take leaves no room at level 0.
    let low = kit.evaluator.mod_switch_to(&x, 0).unwrap();
    assert_eq!(kind(&low), "noise");
    assert!((0..2).all(|i| kit.journal(i).made() == 0));
}

#[test]
fn a_share_of_a_key_that_is_none_ends_its_making() {
    let plan = Plan::any_of(2, 3);
    let params = Bgv::small(3);
    let context = synchromesh::bgv::Context::new(params.clone()).unwrap();
    let wanted = Wanted::whole::<Bgv>(&context, params.plans(), &Rotations::by([1])).unwrap();
    let make = |tamper: Option<Tamper>| {
        run(3, (SHORT * 4, tamper), |_, transport| {
            let mut session = Session::new(transport, "keys")?;
            generate(&mut session, context.rlwe(), &plan, &wanted).map(drop)
        })
    };
    // Hello, agreement; the plan, agreement; a coin of three rounds; commitments, agreement, and then the shares of the public key.
    let shares = 2 * (2 + 2 + 3 + 2);
    let garbage = |mut frame: Vec<u8>| {
        frame[HEADER + 40..].fill(0xff);
        Some(frame)
    };
    let results = make(at(shares, garbage));
    assert_eq!(*blame(&results[0]), Blame::Party(2));
    // Of the rotation key and the first round of the relinearisation key what each adds up.
    let results = make(at(shares + 2 * 2, garbage));
    assert_eq!(*blame(&results[0]), Blame::Party(2));
    // Shares and agreement; twice shares of sums, sums and agreement: then each party's value.
    let values = shares + 2 * (2 + 3 + 3);
    let results = make(at(values, |mut frame| {
        frame[HEADER..].fill(0xff);
        Some(frame)
    }));
    assert_eq!(*blame(&results[0]), Blame::Party(2), "{results:?}");
    let results = make(at(values, |mut frame| {
        frame.truncate(HEADER + 100);
        Some(frame)
    }));
    assert_eq!(*blame(&results[0]), Blame::Party(2), "{results:?}");
    assert!(make(None).iter().all(Result::is_ok));
}

#[test]
fn plans_that_do_not_fit_are_refused_with_a_reason() {
    let params = Bgv::small(3);
    let rlwe = params.rlwe();
    let refused = |plan: Plan| plan::check(&plan, rlwe).unwrap_err().to_string();
    assert!(refused(Plan::all_of(2)).contains("for other keys"));
    assert!(refused(Plan::any_of(1, 3)).contains("cannot decrypt"));
    assert!(refused(Plan::any_of(4, 3)).contains("cannot decrypt"));
    assert!(refused(Plan::all_of(65)).contains("1 to 64"));
    assert!(refused(Plan::all_of(3).with_security(20)).contains("30 or more"));
    assert!(refused(Plan::all_of(3).with_decryptions(0)).contains("a decryption"));
    assert!(plan::check(&Plan::all_of(3), rlwe).is_ok() && plan::check(&Plan::any_of(2, 3), rlwe).is_ok());
    let part = synchromesh::rlwe::KeyPart::whole(rlwe, params.plan().shape()).unwrap();
    let wanted = |sources: &[Source]| Wanted::parts(rlwe, sources.iter().map(|&source| (source, part.clone())));
    for sources in
        [&[Source::Square, Source::Square][..], &[Source::Galois(2)], &[Source::Galois(1)], &[Source::Galois(4097)]]
    {
        assert_eq!(wanted(sources).unwrap_err().kind(), "joint_key");
    }
    assert!(wanted(&[Source::Square, Source::Galois(3)]).is_ok());
    // Two who want different keys make none.
    let context = synchromesh::bgv::Context::new(Bgv::small(2)).unwrap();
    let rotations = [Rotations::none(), Rotations::by([1])];
    let results = run(2, (SHORT, None), |i, transport| {
        let wanted = Wanted::whole::<Bgv>(&context, params.plans(), &rotations[i])?;
        let mut session = Session::new(transport, "keys")?;
        generate(&mut session, context.rlwe(), &Plan::all_of(2), &wanted).map(drop)
    });
    assert!(results.iter().all(|result| *blame(result) == Blame::Somebody), "{results:?}");
}
