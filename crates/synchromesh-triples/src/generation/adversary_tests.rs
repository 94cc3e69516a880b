//! The long form of the adversary's tests: every deed at every frame, one set of keys and journals for all of them.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use synchromesh_parties::Blame;
use synchromesh_parties::proven::Cheat as KeyCheat;
use synchromesh_parties::tampering::{Tamper, Tampering};
use synchromesh_parties::transport::{InProcess, Transport};

use super::keys_tests::{plan, run as make_keys};
use super::numbers_tests::{hold as hold_tuples, run as make_tuples, wrongs};
use super::tests::{Cheat, dealt, journal_of, run_with_journals, unused};
use super::*;
use crate::share::check_opened;
use crate::tuples::Kind;
use crate::{MatrixTriple, Result};

/// What the last party does to one of its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// Flips a bit of the byte at this place, counted from the end where it is beyond.
    Flip(usize),
    /// Flips the last bit of what one peer gets and sends the other the truth.
    Equivocate,
    /// Leaves out the last byte.
    Cut,
    /// Adds a byte.
    Lengthen,
    /// Sends once more what the same peer got in the round before.
    Replay,
    /// Sends random bytes of the right length.
    Noise,
    /// Sends nothing, and nothing ever after.
    Fall,
    /// Waits a little, and goes on.
    Pause,
}

const DEEDS: [Deed; 13] = [
    Deed::Flip(0),
    Deed::Flip(33),
    Deed::Flip(41),
    Deed::Flip(45),
    Deed::Flip(60),
    Deed::Flip(usize::MAX - 7),
    Deed::Equivocate,
    Deed::Cut,
    Deed::Lengthen,
    Deed::Replay,
    Deed::Noise,
    Deed::Fall,
    Deed::Pause,
];

impl Deed {
    fn name(self) -> String {
        match self {
            Self::Flip(place) if place > 1 << 20 => "flip near the end".into(),
            Self::Flip(place) => format!("flip in byte {place}"),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    /// Does it to frame `number`, and says in `done` that the run got so far.
    fn tamper(self, number: usize, done: std::sync::mpsc::Sender<()>) -> Tamper {
        let mut sent: Vec<Vec<u8>> = Vec::new();
        Box::new(move |n, peer, mut frame| {
            sent.push(frame.clone());
            if n < number || (n > number && self != Self::Fall) {
                return Some(frame);
            }
            let _ = done.send(());
            let end = frame.len() - 1;
            match self {
                Self::Flip(place) => frame[if place > end { end - place % 40 } else { place }] ^= 1,
                Self::Equivocate => frame[end] ^= u8::from(peer == 1),
                Self::Cut => frame.truncate(end),
                Self::Lengthen => frame.push(0),
                Self::Replay => frame = sent[if n < 2 { n } else { n - 2 }].clone(),
                Self::Noise => {
                    let mut hasher = blake3::Hasher::new();
                    hasher.update(&frame).finalize_xof().fill(&mut frame);
                }
                Self::Fall => return None,
                Self::Pause => thread::sleep(Duration::from_millis(50)),
            }
            Some(frame)
        })
    }

    /// Whether honest parties have no reason to stop: the frame is as it should be. Frames go to party 0 and party 1 in
    /// turn.
    fn is_harmless(self, number: usize) -> bool {
        match self {
            Self::Pause => true,
            Self::Equivocate => number.is_multiple_of(2),
            Self::Replay => number < 2,
            _ => false,
        }
    }
}

/// No ciphertext is in a journal twice: none was decrypted under two masks. Returns the lines of all.
fn lines_once(journals: &Path, parties: usize) -> usize {
    let count = |party: usize| {
        let text = std::fs::read_to_string(journals.join(format!("{party}.journal"))).unwrap();
        let all: Vec<&str> = text.lines().collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "party {party} decrypted a ciphertext twice");
        all.len()
    };
    (0..parties).map(count).sum()
}

/// What became of the runs with one deed.
#[derive(Default)]
struct Outcome {
    runs: usize,
    /// Runs at the end of which every honest party had what it wanted.
    unharmed: usize,
    /// Honest parties that ended with an abort, and how many of them blamed the cheater.
    aborts: usize,
    blamed: usize,
}

impl Outcome {
    /// Counts a run: honest parties have what they wanted, or abort, and all have it only if no harm was done.
    fn add<T: std::fmt::Debug>(&mut self, what: &str, results: &[Result<T>], harmless: bool) {
        let (_, honest) = results.split_last().unwrap();
        self.runs += 1;
        for result in honest {
            let Err(error) = result else { continue };
            assert_eq!(error.kind(), "abort", "{what}: {error}");
            self.aborts += 1;
            if let Some(Blame::Party(party)) = error.blame() {
                assert_eq!(*party, results.len() - 1, "{what}: an honest party is blamed: {error}");
                self.blamed += 1;
            }
        }
        let unharmed = honest.iter().all(Result::is_ok);
        assert_eq!(harmless, unharmed, "{what}: {honest:?}");
        self.unharmed += usize::from(unharmed);
    }

    /// A line of the record, which is a file if one is named.
    fn record(&self, part: &str, deed: &str) {
        let Self { runs, unharmed, aborts, blamed } = self;
        let line = format!("{part},{deed:?},{runs},{unharmed},{aborts},{blamed}");
        println!("{line}");
        if let Some(path) = std::env::var_os("SYNCHROMESH_RECORD") {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
            writeln!(file, "{line}").unwrap();
        }
    }
}

/// Opens the triples of all parties.
fn hold(results: Vec<Result<Vec<MatrixTriple>>>) {
    let (setup, keys) = dealt();
    let made: Vec<Vec<MatrixTriple>> = results.into_iter().map(|made| made.unwrap()).collect();
    let macs: Vec<_> = keys.iter().map(|key| key.mac().clone()).collect();
    check_opened(setup.plan().field(), &macs, &made).unwrap();
}

fn run(journals: &Path, tamper: Option<Tamper>, cheat: Cheat) -> Vec<Result<Vec<MatrixTriple>>> {
    let (setup, keys) = dealt();
    run_with_journals(journals, (setup, &unused((setup, keys))), 1, tamper, cheat)
}

#[test]
#[ignore = "hundreds of runs; cargo xtask verify triples runs them"]
fn every_deed_at_every_frame_ends_in_an_abort_and_never_in_a_wrong_triple() {
    let journals = tempfile::tempdir().unwrap();
    let mut runs = 0;
    for deed in DEEDS {
        let mut outcome = Outcome::default();
        for number in 0.. {
            let (done, seen) = std::sync::mpsc::channel();
            let results = run(journals.path(), Some(deed.tamper(number, done)), Cheat::None);
            if seen.try_recv().is_err() {
                assert!(number > 30, "{deed:?}: a run has {number} frames only");
                break;
            }
            outcome.add(&format!("{deed:?} at {number}"), &results, deed.is_harmless(number));
            if results.iter().all(Result::is_ok) {
                hold(results);
            }
        }
        outcome.record("triples, each frame", &deed.name());
        assert!(deed == Deed::Pause || outcome.aborts > outcome.runs - outcome.unharmed, "{deed:?}: hardly an abort");
        runs += outcome.runs;
    }
    let lines = lines_once(journals.path(), 3);
    println!("{runs} runs; {lines} lines of journals, none twice");
    assert!(runs > 300);
}

#[test]
#[ignore = "a hundred runs; cargo xtask verify triples runs them"]
fn every_deed_at_every_frame_of_making_keys_ends_in_an_abort() {
    // The hello and its agreement, (commitment, agreement, opening) of the coin, and with one more agreement of both rounds of
    // shares.
    const FRAMES: usize = 2 * (2 + 3 + 4 + 4);
    let plan = plan(3, "1x1x1");
    for deed in [Deed::Flip(usize::MAX - 7), Deed::Equivocate, Deed::Cut, Deed::Replay, Deed::Noise, Deed::Fall] {
        let mut outcome = Outcome::default();
        for number in 0..FRAMES {
            let (done, seen) = std::sync::mpsc::channel();
            let results = make_keys(&plan, Some(deed.tamper(number, done)), KeyCheat::None);
            assert!(seen.try_recv().is_ok(), "{deed:?}: a run has {number} frames only");
            outcome.add(&format!("{deed:?} at {number}"), &results, deed.is_harmless(number));
        }
        outcome.record("keys, each frame", &deed.name());
    }
}

/// What is wrong in a cheater's values and not in any one frame: proofs, shares, MACs, inputs.
#[test]
#[ignore = "hundreds of runs; cargo xtask verify triples runs them"]
fn every_wrong_value_ends_in_an_abort() {
    const RUNS: usize = 10;
    let journals = tempfile::tempdir().unwrap();
    let places = || (0..RUNS).map(|i| 1000 * i / (RUNS - 1));
    let always = |cheat: Cheat| vec![cheat; RUNS];
    let cases: [(&str, Vec<Cheat>); 8] = [
        ("wrong encryption or proof of A and B", places().map(|at| Cheat::WrongEncryption(false, at)).collect()),
        ("wrong encryption or proof of alpha", places().map(|at| Cheat::WrongEncryption(true, at)).collect()),
        ("wrong share of a decryption", (0..RUNS).map(Cheat::WrongShare).collect()),
        ("wrong share of a MAC", always(Cheat::WrongMac)),
        ("alpha not diagonal", always(Cheat::SlantedAlpha)),
        ("another alpha encrypted", always(Cheat::OtherAlpha)),
        ("another A encrypted", always(Cheat::OtherA)),
        ("another B encrypted", always(Cheat::OtherB)),
    ];
    for (name, cheats) in cases {
        let mut outcome = Outcome::default();
        for cheat in cheats {
            outcome.add(&format!("{cheat:?}"), &run(journals.path(), None, cheat), false);
        }
        outcome.record("triples, wrong values", name);
        assert_eq!(outcome.aborts, 2 * RUNS, "{name}");
    }
    lines_once(journals.path(), 3);
}

/// Every deed at every frame from the first of these on, where tuples of a kind are made.
fn every_deed_at_every_frame_of(kind: Kind, first: usize) {
    let journals = tempfile::tempdir().unwrap();
    let mut runs = 0;
    for deed in DEEDS {
        let mut outcome = Outcome::default();
        for number in first.. {
            let (done, seen) = std::sync::mpsc::channel();
            let tamper = Some(deed.tamper(number, done));
            let results = make_tuples(journals.path(), kind, 40, tamper, Cheat::None);
            if seen.try_recv().is_err() {
                assert!(number > 30, "{deed:?}: a run has {number} frames only");
                break;
            }
            outcome.add(&format!("{kind}, {deed:?} at {number}"), &results, deed.is_harmless(number));
            if results.iter().all(Result::is_ok) {
                hold_tuples(kind, results);
            }
        }
        outcome.record(&format!("tuples, each frame of {kind}"), &deed.name());
        assert!(deed == Deed::Pause || outcome.aborts > outcome.runs - outcome.unharmed, "{deed:?}: hardly an abort");
        runs += outcome.runs;
    }
    let lines = lines_once(journals.path(), 3);
    println!("{runs} runs; {lines} lines of journals, none twice");
    assert!(runs > 300);
}

/// Tuples of single numbers are made of the same frames as triples up to their check: those of bits are all tampered with, of
/// the others those from the last of the encryptions on. Two frames a round: the hello and its agreement, (commitment,
/// agreement, opening, agreement) of the MAC key and of the numbers, of which the last two rounds are tampered with again.
const SHARED: usize = 2 * (2 + 4 + 2);

#[test]
#[ignore = "hundreds of runs; cargo xtask verify triples runs them"]
fn every_deed_at_every_frame_of_bits_ends_in_an_abort_and_never_in_a_wrong_bit() {
    every_deed_at_every_frame_of(Kind::Bits, 0);
}

#[test]
#[ignore = "hundreds of runs; cargo xtask verify triples runs them"]
fn every_deed_at_every_frame_of_input_masks_ends_in_an_abort_and_never_in_a_wrong_mask() {
    every_deed_at_every_frame_of(Kind::Inputs, SHARED);
}

#[test]
#[ignore = "hundreds of runs; cargo xtask verify triples runs them"]
fn every_deed_at_every_frame_of_products_ends_in_an_abort_and_never_in_a_wrong_one() {
    for kind in [Kind::Triples, Kind::Squares, Kind::Inverses] {
        every_deed_at_every_frame_of(kind, SHARED);
    }
}

/// Numbers other than the encrypted ones, shares of MACs and of decryptions that are off, another MAC key.
#[test]
#[ignore = "a hundred runs; cargo xtask verify triples runs them"]
fn every_wrong_value_of_tuples_ends_in_an_abort() {
    let journals = tempfile::tempdir().unwrap();
    for kind in Kind::ALL {
        let (mut outcome, cheats) = (Outcome::default(), wrongs(kind));
        for &cheat in &cheats {
            let results = make_tuples(journals.path(), kind, 40, None, cheat);
            outcome.add(&format!("{kind}, {cheat:?}"), &results, false);
        }
        outcome.record("tuples, wrong values", kind.word());
        assert_eq!(outcome.aborts, 2 * cheats.len(), "{kind}");
    }
    lines_once(journals.path(), 3);
}

/// A party that is late by more than the others' patience is blamed; one that is late by less is waited for.
#[test]
fn a_late_party_is_waited_for_as_long_as_patience_lasts() {
    for (late, patient) in [(Duration::from_millis(100), true), (Duration::from_secs(2), false)] {
        let limit = Duration::from_millis(if patient { 20_000 } else { 500 });
        let (setup, keys) = dealt();
        let keys = &unused((setup, keys));
        let root = tempfile::tempdir().unwrap();
        let party = |inner: InProcess| {
            let number = inner.party();
            let tamper: Tamper = Box::new(move |n, _, frame| {
                if n == 1 {
                    thread::sleep(late);
                }
                Some(frame)
            });
            let transport = Tampering::new(inner, (number == 2).then_some(tamper));
            let journal = journal_of(&root.path().join(number.to_string()), &keys[number], 1 << 20)?;
            Generator::new(transport, setup, &keys[number], journal, Box::new(|_| ())).map(|_| ())
        };
        let results: Vec<Result<()>> = thread::scope(|scope| {
            let threads: Vec<_> =
                InProcess::mesh(3, limit).into_iter().map(|inner| scope.spawn(|| party(inner))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        if patient {
            assert!(results.iter().all(Result::is_ok));
        } else {
            let text = results[1].as_ref().unwrap_err().to_string();
            assert!(text.contains("party 2") && text.contains("in time"), "{text}");
        }
    }
}
