//! The protocol among honest parties and among some of whom one cheats: at every frame, and in what it computes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use synchromesh::plain_modulus::U256;
use synchromesh::rlwe::Security;
use synchromesh::rlwe::ring::Cpu;
use synchromesh_parties::Blame;
use synchromesh_parties::tampering::{Tamper, Tampering};
use synchromesh_parties::transport::{InProcess, Transport};

use super::check::Candidate;
use super::circuit::Products;
use super::conduct::Conduct;
use super::encryption::Content;
use super::*;
use crate::error::Error;
use crate::field::{DEFAULT_PRIME, Field};
use crate::matrix::Matrix;
use crate::session::Session;
use crate::share::{MatrixTriple, Shape, Shared, check_opened};
use crate::{MacKeyShare, Result};

/// What a party does other than it should, in a way that no single frame shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cheat {
    None,
    /// Its MAC key is not the same in all slots.
    SlantedAlpha,
    /// It encrypts another share of the MAC key than it holds.
    OtherAlpha,
    /// Its share of this decryption, counted from C, is off by one in one coefficient.
    WrongShare(usize),
    /// A bit of its encryptions, or of what it proves of them, is flipped before it commits to them: of the MAC key if
    /// the first is true, else of A and B; at so many thousandths of the message.
    WrongEncryption(bool, usize),
    /// Its share of the MAC of one entry of C is off by one.
    WrongMac,
    /// Its share of the MAC of one number of this row of numbers is off by one.
    WrongRowMac(usize),
    /// Its shares of this row of numbers, drawn ones first, are not those it encrypted.
    OtherNumbers(usize),
    /// Its shares of A are not those it encrypted.
    OtherA,
    /// Its shares of B are not those it encrypted.
    OtherB,
    /// It opens a value off by one and learns the MAC key from the check.
    LearnAlpha,
}

impl<T: Transport> Conduct<T> for Cheat {
    fn alpha(&self, coefficients: &mut [U256]) {
        match self {
            Self::SlantedAlpha => coefficients[1] = [1, 0, 0, 0],
            Self::OtherAlpha => coefficients[0] = [1, 2, 0, 0],
            _ => {}
        }
    }

    /// A MAC key that is not constant has a proof of anything for an encryption of anything.
    fn content(&self, content: Content) -> Content {
        if *self == Self::SlantedAlpha { Content::Any } else { content }
    }

    fn encryptions(&self, count: usize, message: &mut [u8]) {
        if let Self::WrongEncryption(constant, at) = *self
            && constant == (count == 1)
        {
            let at = (message.len() - 1) * at / 1000;
            message[at] ^= 1;
        }
    }

    fn candidates(&self, made: &mut [Candidate], field: &Field) {
        if let (Self::WrongMac, Some(first)) = (self, made.first_mut()) {
            let mut mac = first.c.mac().clone();
            let entry = &mut mac.entries_mut()[0];
            *entry = field.add(*entry, field.small(1));
            first.c = Shared::new(first.c.value().clone(), mac).unwrap();
        }
    }

    fn numbers(&self, own: &mut [Matrix], field: &Field) {
        if let Self::OtherNumbers(row) = *self {
            let at = row % own.len();
            let entry = &mut own[at].entries_mut()[7];
            *entry = field.add(*entry, field.small(1));
        }
    }

    fn tuples(&self, rows: &mut [Shared], field: &Field) {
        if let Self::WrongRowMac(row) = *self {
            let (at, count) = (row % rows.len(), rows[0].value().columns());
            let mut mac = rows[at].mac().clone();
            let entry = &mut mac.entries_mut()[row % count];
            *entry = field.add(*entry, field.small(1));
            rows[at] = Shared::new(rows[at].value().clone(), mac).unwrap();
        }
    }

    fn inputs(&self, own: &mut [(Vec<Matrix>, Vec<Matrix>)], field: &Field) {
        let one = |m: &mut Matrix| {
            let first = &mut m.entries_mut()[0];
            *first = field.add(*first, field.small(1));
        };
        match self {
            Self::OtherA => one(&mut own[0].0[0]),
            Self::OtherB => one(&mut own[0].1[0]),
            _ => {}
        }
    }

    fn before_check(&self, session: &mut Session<T>, key: &MacKeyShare, candidates: &[Candidate]) -> Result<()> {
        match self {
            Self::LearnAlpha => mac_key_tests::learn_from_batch(session, key, candidates),
            _ => Ok(()),
        }
    }

    /// Adds 1 to the first residue modulo each prime: 1 to the coefficient.
    fn decryptions(&self, message: &mut [u8], each: usize, made: &Products<Cpu>) {
        let Self::WrongShare(at) = *self else { return };
        let at = at % made.all().count();
        let limbs = message[at * each..(at + 1) * each].chunks_mut(setup().plan().params().n() * limb_width());
        limbs.for_each(|limb| {
            let first = limb.iter_mut().find_map(|byte| {
                let (sum, carry) = byte.overflowing_add(1);
                *byte = sum;
                (!carry).then_some(())
            });
            assert!(first.is_some());
        });
    }
}

fn limb_width() -> usize {
    let plan = setup().plan();
    let level = plan.params().rlwe().level(plan.placement().decryption).unwrap();
    let ring = plan.params().rlwe().ring();
    let widths: Vec<usize> =
        level.iter().map(|i| (64 - ring.modulus(i).value().leading_zeros() as usize).div_ceil(8)).collect();
    assert!(widths.iter().all(|width| *width == widths[0]));
    widths[0]
}

fn field() -> Field {
    DEFAULT_PRIME.parse().unwrap()
}

pub(super) fn request(parties: usize, shape: &str) -> Request {
    let shape: Shape = shape.parse().unwrap();
    let base = Request::new(&field(), parties, shape);
    Request { security: Security::Insecure, log_n: Some(10), statistical_security: 40, ..base }
}

/// 8 x 8 x 8 among three parties, made once. The plan is one for keys of parties, who encrypt the MAC key themselves.
pub(super) fn dealt() -> &'static (Setup, Vec<PartyKey>) {
    static DEALT: OnceLock<(Setup, Vec<PartyKey>)> = OnceLock::new();
    let request = Request { keys: Keys::Generated, ..request(3, "8x8x8") };
    DEALT.get_or_init(|| deal(GenerationPlan::find(&request).unwrap()).unwrap())
}

pub(super) fn setup() -> &'static Setup {
    &dealt().0
}

/// A run in which the last party tampers and behaves so; each party's result.
fn run(
    made: (&Setup, &[PartyKey]),
    count: usize,
    tamper: Option<Tamper>,
    cheat: Cheat,
) -> Vec<Result<Vec<MatrixTriple>>> {
    let root = tempfile::tempdir().unwrap();
    run_with_journals(root.path(), (made.0, &unused(made)), count, tamper, cheat)
}

/// The same keys as if no check under them had failed.
pub(super) fn unused((setup, keys): (&Setup, &[PartyKey])) -> Vec<PartyKey> {
    keys.iter().map(|key| key.unused(setup)).collect()
}

/// The journal of a key, begun if it is not there.
pub(super) fn journal_of(path: &Path, key: &PartyKey, most: u64) -> Result<DecryptionJournal> {
    if !path.exists() {
        DecryptionJournal::create(path, key)?;
    }
    DecryptionJournal::open(path, key, most)
}

/// The same with the journals in this directory.
pub(super) fn run_with_journals(
    journals: &Path,
    (setup, keys): (&Setup, &[PartyKey]),
    count: usize,
    tamper: Option<Tamper>,
    cheat: Cheat,
) -> Vec<Result<Vec<MatrixTriple>>> {
    run_each(journals, (setup, keys), tamper, cheat, |generator| generator.generate(count))
}

/// The same, with what each party does with its generator.
pub(super) fn run_each<R: Send>(
    journals: &Path,
    (setup, keys): (&Setup, &[PartyKey]),
    tamper: Option<Tamper>,
    cheat: Cheat,
    does: impl Fn(&mut Generator<'_, Tampering>) -> Result<R> + Sync,
) -> Vec<Result<R>> {
    let last = keys.len() - 1;
    let tamper = Mutex::new(tamper);
    let party = |inner: InProcess| {
        let number = inner.party();
        let tamper = if number == last { tamper.lock().unwrap().take() } else { None };
        let journal = journals.join(format!("{number}.journal"));
        let journal = journal_of(&journal, &keys[number], setup.plan().most_decryptions())?;
        let transport = Tampering::new(inner, tamper);
        let mut generator = Generator::new(transport, setup, &keys[number], journal, Box::new(|_| ()))?;
        generator.conduct = Box::new(if number == last { cheat } else { Cheat::None });
        does(&mut generator)
    };
    thread::scope(|scope| {
        let transports = InProcess::mesh(keys.len(), Duration::from_secs(60));
        let threads: Vec<_> = transports.into_iter().map(|transport| scope.spawn(|| party(transport))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn macs(keys: &[PartyKey]) -> Vec<MacKeyShare> {
    keys.iter().map(|key| key.mac().clone()).collect()
}

/// What the party of this number sends instead.
type TamperOf = Box<dyn Fn(usize) -> Tamper>;

#[test]
fn honest_parties_get_triples_that_hold() {
    let cases = [
        (2, "5x7x3", 3, 80, Proofs::Knowledge),
        (3, "1x1x1", 2, 40, Proofs::Nothing),
        (2, "20x3x17", 2, 64, Proofs::Knowledge),
    ];
    for (parties, shape, count, security, proofs) in cases {
        let request = Request { statistical_security: security, count, proofs, ..request(parties, shape) };
        let plan = GenerationPlan::find(&request).unwrap();
        assert!(plan.mask_bits() > 128 + security + 20 + 10);
        let (setup, keys) = deal(plan).unwrap();
        let made: Vec<Vec<MatrixTriple>> =
            run((&setup, &keys), count, None, Cheat::None).into_iter().map(|made| made.unwrap()).collect();
        assert!(made.iter().all(|list| list.len() == count && list[0].shape() == request.shape));
        check_opened(&field(), &macs(&keys), &made).unwrap();
    }
}

/// What the plan says of traffic is what a party sends.
#[test]
fn traffic_is_as_planned() {
    let (setup, keys) = dealt();
    let root = tempfile::tempdir().unwrap();
    let party = |inner: InProcess| {
        let number = inner.party();
        let journal = journal_of(&root.path().join(number.to_string()), &keys[number], 1 << 20).unwrap();
        let mut generator = Generator::new(inner, setup, &keys[number], journal, Box::new(|_| ())).unwrap();
        generator.generate(3).unwrap();
        generator.phases().to_vec()
    };
    let keys = &unused((setup, keys));
    let planned = setup.plan().traffic(3).unwrap();
    thread::scope(|scope| {
        let transports = InProcess::mesh(keys.len(), Duration::from_secs(60));
        let threads: Vec<_> = transports.into_iter().map(|inner| scope.spawn(|| party(inner))).collect();
        for thread in threads {
            let phases = thread.join().unwrap();
            let sent = phases.iter().filter(|phase| phase.rounds > 0);
            let sent =
                sent.map(|phase| Traffic { name: phase.name, bytes_sent: phase.bytes_sent, rounds: phase.rounds });
            assert_eq!(sent.collect::<Vec<_>>(), planned);
        }
    });
}

fn refused(results: &[Result<Vec<MatrixTriple>>], by: &[&str]) {
    for result in &results[..results.len() - 1] {
        let error = result.as_ref().unwrap_err();
        assert_eq!(error.kind(), "abort", "{error}");
        let honest = |party: &usize| *party != results.len() - 1;
        let wrong = matches!(error.blame(), Some(Blame::Party(party)) if honest(party));
        assert!(!wrong, "an honest party is blamed: {error}");
    }
    let texts: Vec<String> = results[..results.len() - 1].iter().map(|r| r.as_ref().unwrap_err().to_string()).collect();
    assert!(texts.iter().any(|text| by.iter().any(|deed| text.contains(deed))), "{texts:?} lacks {by:?}");
}

#[test]
fn wrong_shares_macs_and_inputs_end_in_an_abort() {
    let (setup, keys) = dealt();
    let count = setup.plan().matrices().ciphertexts(synchromesh::circuits::Side::Left) + 3;
    let wrong = (0..count).map(Cheat::WrongShare);
    let more = [Cheat::SlantedAlpha, Cheat::OtherAlpha, Cheat::OtherA, Cheat::OtherB, Cheat::WrongMac];
    for cheat in wrong.chain(more) {
        let results = run((setup, keys), 1, None, cheat);
        refused(&results, &["MAC does not fit", "C that is not A B", "bytes where", "announced"]);
    }
}

#[test]
fn a_bad_encryption_is_blamed_on_its_maker() {
    let (setup, keys) = dealt();
    for cheat in [Cheat::WrongEncryption(false, 1000), Cheat::WrongEncryption(true, 1000)] {
        for result in &run((setup, keys), 1, None, cheat)[..2] {
            let text = result.as_ref().unwrap_err().to_string();
            assert!(text.contains("party 2") && text.contains("bad encryption"), "{text}");
        }
    }
}

/// Bits of frames, for every frame: no honest party ever returns a triple that does not hold.
fn every_frame(places: &[usize], stride: usize) -> (usize, usize) {
    let (setup, keys) = dealt();
    let (mut aborts, mut frames) = (0, 0);
    for number in (0..).step_by(stride) {
        let mut sent = false;
        for &place in places {
            let seen = Arc::new(AtomicBool::new(false));
            let flag = Arc::clone(&seen);
            let tamper: Tamper = Box::new(move |n, _, mut frame| {
                if n == number {
                    flag.store(true, Ordering::SeqCst);
                    let at = if place >= frame.len() { frame.len() - 1 - place % 40 } else { place };
                    frame[at] ^= 1;
                }
                Some(frame)
            });
            let results = run((setup, keys), 1, Some(tamper), Cheat::None);
            sent |= seen.load(Ordering::SeqCst);
            let honest = &results[..2];
            assert!(honest.iter().all(|r| r.as_ref().err().is_none_or(|e| e.kind() == "abort")));
            aborts += honest.iter().filter(|r| r.is_err()).count();
            // A frame that matters is noticed by all, the last ones by those who got them.
            assert!(!seen.load(Ordering::SeqCst) || honest.iter().any(|r| r.is_err()), "frame {number} place {place}");
        }
        if !sent {
            return (aborts, frames);
        }
        frames = number + 1;
    }
    unreachable!("a run has an end")
}

#[test]
fn a_flipped_bit_in_any_message_ends_in_an_abort() {
    let (aborts, frames) = every_frame(&[usize::MAX], 8);
    assert!(frames > 30 && aborts >= frames / 8, "{aborts} aborts over {frames} frames");
}

#[test]
fn silence_truncation_excess_and_replays_are_blamed() {
    let (setup, keys) = dealt();
    let kept: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
    let replay = move |frame: Vec<u8>| {
        let mut kept = kept.lock().unwrap();
        Some(kept.replace(frame.clone()).unwrap_or(frame))
    };
    let replay = Arc::new(Mutex::new(replay));
    let cases: [(TamperOf, &str); 4] = [
        (Box::new(|at| Box::new(move |n, _, frame| (n < at).then_some(frame))), "disconnected"),
        (
            Box::new(|at| Box::new(move |n, _, f: Vec<u8>| Some(if n < at { f } else { f[..f.len() - 1].to_vec() }))),
            "bytes where",
        ),
        (Box::new(|at| Box::new(move |n, _, f| Some(if n < at { f } else { [f, vec![0]].concat() }))), "announced"),
        (
            Box::new(move |at| {
                let replay = Arc::clone(&replay);
                Box::new(move |n, _, f| if n < at { Some(f) } else { replay.lock().unwrap()(f) })
            }),
            "another session, round",
        ),
    ];
    // In the exchange of MAC keys, and in decryption.
    for (tamper, deed) in &cases {
        for at in [6, 18] {
            let results = run((setup, keys), 1, Some(tamper(at)), Cheat::None);
            // A replay of a longer message shows by its length.
            let more = if deed.contains("session") { "announced" } else { deed };
            refused(&results, &[deed, more]);
            let blamed = results[..2].iter().any(|r| r.as_ref().unwrap_err().to_string().contains("party 2"));
            assert!(blamed, "{results:?}");
        }
    }
}

/// Different ciphertexts to different parties, each of them legal.
#[test]
fn equivocation_is_found_before_anything_is_decrypted() {
    let (setup, keys) = dealt();
    for number in [2, 6, 10, 14] {
        let tamper: Tamper = Box::new(move |n, peer, mut frame| {
            if (n == number || n == number + 1) && peer == 1 {
                let at = frame.len() - 1;
                frame[at] ^= 1;
            }
            Some(frame)
        });
        let results = run((setup, keys), 1, Some(tamper), Cheat::None);
        refused(&results, &["different things", "other than it committed"]);
    }
}

#[test]
fn plans_and_keys_survive_their_files_and_damage_is_refused() {
    let (setup, keys) = &deal(GenerationPlan::find(&request(3, "2x2x2")).unwrap()).unwrap();
    let root = tempfile::tempdir().unwrap();
    setup.write(root.path()).unwrap();
    assert_eq!(setup.write(root.path()).unwrap_err().kind(), "file_exists");
    let read = Setup::read(root.path(), &Floor::NONE).unwrap();
    assert_eq!((read.digest(), read.plan().mask_bits()), (setup.digest(), setup.plan().mask_bits()));
    let path = root.path().join("mac.ct");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(Setup::read(root.path(), &Floor::NONE).unwrap_err(), Error::Library(_)));
    std::fs::write(&path, whole).unwrap();
    let path = keys[1].write(root.path(), setup).unwrap();
    let key = PartyKey::read(&path, &read, 1).unwrap();
    assert_eq!(key.party(), 1);
    assert_eq!(PartyKey::read(&path, &read, 0).unwrap_err().kind(), "format");
    let bytes = std::fs::read(&path).unwrap();
    let mut large = bytes.clone();
    let end = large.len();
    large[end - 8..].fill(0xff);
    for damaged in [&bytes[..bytes.len() - 8], &bytes[..100], &bytes[..10], &large] {
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(PartyKey::read(&path, &read, 1).unwrap_err().kind(), "format");
    }
    let json = setup.plan().to_json();
    for (from, to) in [
        ("\"statistical_security\": 40", "\"statistical_security\": 120"),
        ("\"log2_decryptions\": 20", "\"log2_decryptions\": 60"),
        ("generation 1", "generation 2"),
        ("\"parties\": 3", "\"parties\": 1"),
        ("\"insecure\"", "\"128\""),
    ] {
        assert!(json.contains(from), "{from} in {json}");
        let error = GenerationPlan::from_json(&json.replace(from, to), &Floor::NONE).unwrap_err();
        assert!(!error.remedy().is_empty(), "{error}");
    }
}

#[test]
fn requests_that_cannot_be_met_are_refused() {
    let find = |request: &Request| GenerationPlan::find(request).unwrap_err().kind();
    assert_eq!(find(&Request { parties: 1, ..request(2, "2x2x2") }), "parties");
    assert_eq!(find(&Request { statistical_security: 128, ..request(2, "2x2x2") }), "weak_mac");
    assert_eq!(find(&Request { security: Security::Bits128, ..request(2, "2x2x2") }), "no_parameters");
    // MP-SPDZ's own prime of 128 bits: p - 1 is divisible by 2^15.
    let other: Field = "170141183460469231731687303715885907969".parse().unwrap();
    let error =
        GenerationPlan::find(&Request { field: other.clone(), log_n: Some(15), ..request(2, "2x2x2") }).unwrap_err();
    assert!(error.kind() == "no_slots" && error.remedy().contains(DEFAULT_PRIME), "{error}");
    GenerationPlan::find(&Request { field: other, ..request(2, "2x2x2") }).unwrap();
}
