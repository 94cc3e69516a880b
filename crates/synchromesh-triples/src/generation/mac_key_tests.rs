//! A cheater that opens a wrong value to learn the MAC key, aborts, and comes back: to generation, and to the online phase.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use synchromesh_parties::Blame;
use synchromesh_parties::session::Kind;
use synchromesh_parties::tampering::{Tamper, Tampering};
use synchromesh_parties::tls::Identity;
use synchromesh_parties::transport::{InProcess, Transport};

use super::check::Candidate;
use super::tests::{Cheat, dealt, journal_of, run_with_journals, unused};
use super::*;
use crate::error::Error;
use crate::field::{Element, Field};
use crate::journal::TripleStore;
use crate::matrix::Matrix;
use crate::mp_spdz::Preprocessing;
use crate::online::Online;
use crate::opening::Unchecked;
use crate::session::Session;
use crate::share::{MatrixTriple, Shape, Shared};
use crate::{MacKeyShare, Result};

mod processes;

const PATIENCE: Duration = Duration::from_secs(20);

/// Parties of [`dealt`]; the last one cheats.
const PARTIES: usize = 3;

/// Where the cheater puts what it learns.
static LEARNT: Mutex<Option<Element>> = Mutex::new(None);

fn field() -> Field {
    dealt().0.plan().field().clone()
}

/// A matrix with this much more in the first entry.
fn off(m: &Matrix, by: Element) -> Matrix {
    let mut m = m.clone();
    m.entries_mut()[0] = field().add(m.entries()[0], by);
    m
}

/// What a cheater does in place of the check of opened values: as an honest party, up to the opening of its sigma, which it
/// keeps to itself. The first entry of `opened[lie]` is off by 1. Its own shares, coins and what others send are all it
/// uses.
fn learn<T: Transport>(
    session: &mut Session<T>,
    key: &MacKeyShare,
    opened: &[(Matrix, Matrix)],
    lie: usize,
) -> Result<Element> {
    let field = field();
    session.agree()?;
    let count = |opened: &[(Matrix, Matrix)]| opened.iter().map(|(v, _)| v.entries().len()).sum::<usize>();
    let coefficients = session.toss(count(opened))?;
    let (mut value, mut mac) = (Element::ZERO, Element::ZERO);
    let entries = opened.iter().flat_map(|(values, macs)| values.entries().iter().zip(macs.entries()));
    for ((&x, &share), &coefficient) in entries.zip(&coefficients) {
        value = field.add(value, field.mul(x, coefficient));
        mac = field.add(mac, field.mul(share, coefficient));
    }
    let mut bytes = Vec::new();
    field.write(field.sub(mac, field.mul(key.secret(), value)), &mut bytes);
    let shares = session.commit_and_open(&bytes)?;
    let sum = shares.iter().fold(Element::ZERO, |sum, bytes| field.add(sum, field.read(bytes).unwrap()));
    // sum = -alpha times the coefficient of the wrong entry.
    let factor = field.inverse_of_public(coefficients[count(&opened[..lie])]);
    Ok(field.sub(Element::ZERO, field.mul(sum, factor)))
}

/// The cheater in the check of a batch.
pub(super) fn learn_from_batch<T: Transport>(
    session: &mut Session<T>,
    key: &MacKeyShare,
    candidates: &[Candidate],
) -> Result<()> {
    let field = field();
    let columns = candidates[0].c.value().columns();
    let mut coins = session.toss(candidates.len() * (columns - 1))?.into_iter();
    let minus_one = field.sub(Element::ZERO, field.small(1));
    let mut unchecked = Unchecked::new();
    let coins: Vec<Element> = coins.by_ref().take(columns - 1).chain([minus_one]).collect();
    let (x, r) = (&candidates[0], Matrix::new(columns, 1, coins)?);
    let blinded = x.b.mul_public(&field, &r)?;
    let e = unchecked.open(session, &[&blinded])?.remove(0);
    let difference = x.c.mul_public(&field, &r)?.sub(&field, &x.a.mul_public(&field, &e)?)?;
    let lie = Shared::new(off(difference.value(), field.small(1)), difference.mac().clone())?;
    let zero = unchecked.open(session, &[&lie])?.remove(0);
    let alpha = learn(session, key, &[(e, blinded.mac().clone()), (zero, difference.mac().clone())], 1)?;
    *LEARNT.lock().unwrap() = Some(alpha);
    Err(session.abort(Blame::Somebody, "has what it wanted").into())
}

/// Each party's files: keys in `<root>/<party>`, triples in `out` beside them.
struct Parties {
    root: tempfile::TempDir,
    shape: Shape,
    run: Run,
}

/// What a party of a session of generation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    /// A thread, with a queue to each other.
    Thread,
    /// `synchromesh triples party`, over TLS; but a cheater that does not behave is a thread all the same.
    Process,
}

/// How a session of generation ended for an honest party: the kind of its error, if there was one, and the files that
/// are void.
#[derive(Clone, Debug, PartialEq, Eq)]
struct End {
    kind: Option<String>,
    void: Vec<String>,
}

impl<T> From<Result<T>> for End {
    fn from(result: Result<T>) -> Self {
        let error = result.err();
        let void = error.iter().flat_map(|error| error.void()).map(|path| path.display().to_string()).collect();
        Self { kind: error.map(|error| error.kind().to_owned()), void }
    }
}

/// How a party's triples are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Plain,
    MpSpdz,
}

impl Kept {
    const fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::MpSpdz => "mp-spdz",
        }
    }
}

impl Parties {
    fn new(run: Run) -> Self {
        let (setup, keys) = dealt();
        let root = tempfile::tempdir().unwrap();
        for key in unused((setup, keys)) {
            let directory = root.path().join(key.party().to_string());
            std::fs::create_dir(&directory).unwrap();
            key.write(&directory, setup).unwrap();
            if run == Run::Process {
                setup.write(&directory).unwrap();
                Identity::new().unwrap().write(&directory.join("identity")).unwrap();
            }
        }
        Self { root, shape: setup.plan().shape(), run }
    }

    fn directory(&self, party: usize) -> PathBuf {
        self.root.path().join(party.to_string())
    }

    /// The keys as they are read at the start of a session; the cheater ignores what it is told.
    fn keys(&self) -> Vec<Result<PartyKey>> {
        let (setup, keys) = dealt();
        let read = |party| PartyKey::read(&PartyKey::path(&self.directory(party), party), setup, party);
        let cheater = unused((setup, keys)).pop().unwrap();
        (0..PARTIES - 1).map(read).chain([Ok(cheater)]).collect()
    }

    /// A session of generation, if every honest party is willing; how it ended for these.
    fn generate(&self, cheat: Cheat) -> Vec<End> {
        if self.run == Run::Process {
            return self.processes("more", 1, Kept::Plain, cheat);
        }
        let keys: Result<Vec<PartyKey>> = self.keys().into_iter().collect();
        let mut ends: Vec<End> = match keys {
            Ok(keys) => run_with_journals(self.root.path(), (&dealt().0, &keys), 1, None, cheat)
                .into_iter()
                .map(End::from)
                .collect(),
            Err(error) => vec![End::from(Err::<(), _>(error)); PARTIES],
        };
        ends.truncate(PARTIES - 1);
        ends
    }

    /// A session all of whose triples are kept.
    fn store(&self, kept: Kept) {
        if self.run == Run::Process {
            let ends = self.processes("out", 2, kept, Cheat::None);
            return assert!(ends.iter().all(|end| end.kind.is_none()), "{ends:?}");
        }
        let keys: Vec<PartyKey> = self.keys().into_iter().map(|key| key.unwrap()).collect();
        let made = run_with_journals(self.root.path(), (&dealt().0, &keys), 2, None, Cheat::None);
        for (party, made) in made.into_iter().enumerate() {
            let (mac, out) = (keys[party].mac(), self.directory(party).join("out"));
            let spdz = Preprocessing::new(&out.join("Player-Data"), &field(), party, PARTIES).unwrap();
            spdz.write_key(mac).unwrap();
            match kept {
                Kept::MpSpdz => drop(spdz.write_triples(mac, self.shape, made.unwrap()).unwrap()),
                Kept::Plain => {
                    let parties = (party, PARTIES);
                    drop(TripleStore::create(&out, &field(), parties, self.shape, mac, made.unwrap()).unwrap());
                }
            }
        }
    }

    /// The MAC key and two triples of a party, from its files.
    fn material(&self, party: usize, kept: Kept) -> Result<(MacKeyShare, Vec<MatrixTriple>)> {
        let out = self.directory(party).join("out");
        let spdz = Preprocessing::new(&out.join("Player-Data"), &field(), party, PARTIES)?;
        let key = spdz.read_key()?;
        let triples = match kept {
            Kept::MpSpdz => spdz.read_triples(&key, self.shape)?,
            Kept::Plain => {
                let path = TripleStore::path(&out, self.shape, party);
                let mut store = TripleStore::open(&path, &field(), (party, PARTIES), self.shape)?;
                let triples = [store.take()?, store.take()?];
                triples.into_iter().flatten().collect()
            }
        };
        Ok((key, triples))
    }

    /// The online phase among parties that have their material: A times B of the second triple by the first, where the
    /// cheater adds `by` to the result, with the MAC that belongs to it by what it knows. What honest parties accept.
    fn online(&self, material: Vec<(MacKeyShare, Vec<MatrixTriple>)>, lie: OnlineLie) -> Vec<Result<Matrix>> {
        let material: Vec<_> = material.into_iter().map(|x| Mutex::new(Some(x))).collect();
        parties(|transport| {
            let party = transport.party();
            let (key, mut triples) = material[party].lock().unwrap().take().unwrap();
            let (second, first) = (triples.pop().unwrap(), triples.pop().unwrap());
            let session = Session::new(transport, &field(), 40, "a product")?;
            if party == PARTIES - 1 {
                return cheat_online(session, &key, [first, second], lie).map(|()| unreachable!());
            }
            let mut online = Online::new(session, key)?;
            let z = online.multiply(&second.parts[0], &second.parts[1], first)?;
            Ok(online.reveal(&[&z])?.remove(0))
        })
    }
}

/// What the cheater does in the online phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnlineLie {
    /// Opens D off by 1, learns alpha from the first check, and is gone.
    Learn,
    /// The same with the result, in the second check.
    LearnFromResult,
    /// Opens the result off by 1, with the MAC that belongs to it by what it knows.
    Forge(Element),
}

fn cheat_online<T: Transport>(
    mut session: Session<T>,
    key: &MacKeyShare,
    [first, second]: [MatrixTriple; 2],
    lie: OnlineLie,
) -> Result<()> {
    let field = field();
    let [a, b, c] = &first.parts;
    let (mut d, e) = (second.parts[0].sub(&field, a)?, second.parts[1].sub(&field, b)?);
    let one = field.small(1);
    if lie == OnlineLie::Learn {
        d = Shared::new(off(d.value(), one), d.mac().clone())?;
    }
    let mut unchecked = Unchecked::new();
    let opened = unchecked.open(&mut session, &[&d, &e])?;
    let pairs: Vec<(Matrix, Matrix)> = opened.iter().cloned().zip([d.mac().clone(), e.mac().clone()]).collect();
    if lie == OnlineLie::Learn {
        *LEARNT.lock().unwrap() = Some(learn(&mut session, key, &pairs, 0)?);
        return Err(Error::aborted());
    }
    unchecked.check(&mut session, key)?;
    let public = Shared::public(&field, &opened[0].mul(&field, &opened[1])?, session.party(), key)?;
    let mixed = b.public_mul(&field, &opened[0])?.add(&field, &a.mul_public(&field, &opened[1])?)?;
    let z = c.add(&field, &mixed)?.add(&field, &public)?;
    let mac = if let OnlineLie::Forge(alpha) = lie { off(z.mac(), alpha) } else { z.mac().clone() };
    let lying = Shared::new(off(z.value(), one), mac)?;
    let result = unchecked.open(&mut session, &[&lying])?.remove(0);
    if lie == OnlineLie::LearnFromResult {
        *LEARNT.lock().unwrap() = Some(learn(&mut session, key, &[(result, z.mac().clone())], 0)?);
        return Err(Error::aborted());
    }
    unchecked.check(&mut session, key)?;
    Err(Error::aborted())
}

/// Runs a thread for each party.
fn parties<R: Send>(party: impl Fn(InProcess) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let threads: Vec<_> =
            InProcess::mesh(PARTIES, PATIENCE).into_iter().map(|transport| scope.spawn(|| party(transport))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn alpha() -> Element {
    let keys = &dealt().1;
    keys.iter().fold(Element::ZERO, |sum, key| field().add(sum, key.mac().secret()))
}

/// Tests of one key at a time: what the cheater learns has one place.
static ONE: Mutex<()> = Mutex::new(());

/// A whole attack: a session whose triples are kept, one in which the cheater learns alpha, and everything it may come
/// back for. Returns how many honest parties accepted a value that is wrong.
fn attack(run: Run, kept: Kept, way: Option<OnlineLie>) -> usize {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let all = Parties::new(run);
    all.store(kept);
    let honest = 0..PARTIES - 1;
    // What the cheater had before, and goes on with.
    let material: Vec<_> = (0..PARTIES).map(|party| all.material(party, kept).unwrap()).collect();
    let copies: Vec<Vec<MatrixTriple>> =
        material.iter().map(|(_, triples)| triples.iter().map(copy).collect()).collect();
    *LEARNT.lock().unwrap() = None;
    match way {
        // In the next session of generation.
        None => {
            for end in all.generate(Cheat::LearnAlpha) {
                assert_eq!(end.kind.as_deref(), Some("abort"), "{end:?}");
            }
        }
        Some(lie) => {
            for result in &all.online(material, lie)[..PARTIES - 1] {
                let error = result.as_ref().unwrap_err();
                assert_eq!(error.kind(), "abort", "{error}");
                assert!(!error.void().is_empty(), "{error}");
            }
        }
    }
    let learnt = LEARNT.lock().unwrap().expect("the cheater has learnt something");
    assert_eq!(learnt, alpha(), "the attack is one");
    // It comes back: to generation, where honest parties do not begin,
    for (party, end) in all.generate(Cheat::None).into_iter().enumerate() {
        assert_eq!(end.kind.as_deref(), Some("mac_key_burnt"), "{end:?}");
        let party = if run == Run::Process { party } else { 0 };
        let named = |name: String| end.void.iter().any(|file| file.ends_with(&name));
        assert!(named(format!("party-{party}.key")) && named(format!("Player-MAC-Keys-p-P{party}")), "{end:?}");
    }
    // and to the online phase, with what is in files,
    for party in honest.clone() {
        assert_eq!(all.material(party, kept).unwrap_err().kind(), "mac_key_burnt");
    }
    // and with what an honest party has in memory under the same key.
    let mut wrong = 0;
    let product = sum(copies.iter().map(|triples| triples[1].parts[2].value().clone()));
    let keys: Vec<MacKeyShare> = dealt().1.iter().map(|key| key.mac().clone()).collect();
    let material = (0..PARTIES).map(|party| {
        let key = if party < PARTIES - 1 { all.key_in_memory(party) } else { keys[party].clone() };
        (key, copies[party].iter().map(copy).collect())
    });
    for result in &all.online(material.collect(), OnlineLie::Forge(learnt))[..PARTIES - 1] {
        wrong += usize::from(result.as_ref().is_ok_and(|found| *found != product));
        assert!(result.is_err());
    }
    wrong
}

impl Parties {
    /// The share of an honest party as a process has it that read it before the key was burnt.
    fn key_in_memory(&self, party: usize) -> MacKeyShare {
        let path = PartyKey::path(&self.directory(party), party);
        let name = crate::mac::home::Name(self.name_of(&path));
        let home = crate::mac::home::Home::open(&path.with_extension("mac"), name, &path).unwrap();
        MacKeyShare::of(dealt().1[party].mac().secret(), name, vec![home])
    }

    /// The name in a key's file.
    fn name_of(&self, path: &Path) -> [u8; 16] {
        let bytes = std::fs::read(path).unwrap();
        let at = synchromesh::rlwe::wire::HEADER_BYTES + 32 + 8;
        bytes[at..at + 16].try_into().unwrap()
    }
}

fn copy(triple: &MatrixTriple) -> MatrixTriple {
    let [a, b, c] = &triple.parts;
    MatrixTriple::new(a.clone(), b.clone(), c.clone()).unwrap()
}

fn sum(all: impl Iterator<Item = Matrix>) -> Matrix {
    all.reduce(|a, b| a.add(&field(), &b).unwrap()).unwrap()
}

#[test]
fn a_cheater_that_learns_alpha_comes_back_to_nothing() {
    assert_eq!(attack(Run::Thread, Kept::Plain, None), 0);
    assert_eq!(attack(Run::Thread, Kept::MpSpdz, Some(OnlineLie::Learn)), 0);
    assert_eq!(attack(Run::Thread, Kept::Plain, Some(OnlineLie::LearnFromResult)), 0);
}

/// One of the thousand attacks below: what the command line says before it begins changes, and the cheater has to say it too.
#[test]
fn a_cheater_among_processes_comes_back_to_nothing() {
    if !processes::command().exists() {
        println!("not run: cargo build -p synchromesh-cli makes {}", processes::command().display());
        return;
    }
    assert_eq!(attack(Run::Process, Kept::Plain, None), 0);
}

/// Without the key's record the forged result is believed: the attack is one, and nothing else stops it.
#[test]
fn a_forged_mac_is_believed_by_whoever_goes_on_with_a_known_key() {
    let all = Parties::new(Run::Thread);
    all.store(Kept::MpSpdz);
    let material: Vec<_> = (0..PARTIES).map(|party| all.material(party, Kept::MpSpdz).unwrap()).collect();
    let product = sum(material.iter().map(|(_, triples)| triples[1].parts[2].value().clone()));
    for result in &all.online(material, OnlineLie::Forge(alpha()))[..PARTIES - 1] {
        assert_eq!(*result.as_ref().unwrap(), off(&product, field().small(1)));
    }
}

#[test]
#[ignore = "a thousand runs of two sessions of the command line and the online phase; cargo xtask verify triples runs them"]
fn no_wrong_value_is_accepted_in_a_thousand_attacks() {
    const RUNS: usize = 1000;
    let ways = [None, Some(OnlineLie::Learn), Some(OnlineLie::LearnFromResult)];
    let kept = [Kept::Plain, Kept::MpSpdz];
    let wrong: usize = (0..RUNS).map(|run| attack(Run::Process, kept[run % 2], ways[run / 2 % 3])).sum();
    println!("{RUNS} attacks: {wrong} wrong values accepted");
    if let Some(path) = std::env::var_os("SYNCHROMESH_RECORD") {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        let line = format!("triples,\"learns the MAC key and comes back\",{RUNS},{wrong},{},0\n", 2 * RUNS);
        std::io::Write::write_all(&mut file, line.as_bytes()).unwrap();
    }
    assert_eq!(wrong, 0);
}

/// What one party sees that checks an opened value, right or off by 1, after it has opened it.
fn check_one<T: Transport>(transport: T, key: &MacKeyShare, share: &Shared, before: impl FnOnce()) -> Result<()> {
    let mut session = Session::new(transport, &field(), 40, "a value")?;
    let mut unchecked = Unchecked::new();
    unchecked.open(&mut session, &[share])?;
    before();
    unchecked.check(&mut session, key)
}

/// Shares of a matrix under keys in memory, and those of the last party off by 1.
fn shares() -> (Vec<MacKeyShare>, Vec<Shared>, Vec<Shared>) {
    let dealer = crate::dealer::TrustedDealer::new(&field(), PARTIES).unwrap();
    let right = dealer.share(&Matrix::random(&field(), 2, 2).unwrap()).unwrap();
    let mut wrong = right.clone();
    let last = wrong.pop().unwrap();
    wrong.push(Shared::new(off(last.value(), field().small(1)), last.mac().clone()).unwrap());
    (dealer.keys().to_vec(), right, wrong)
}

#[test]
fn a_key_in_memory_is_not_used_after_a_failed_check() {
    let (keys, right, wrong) = shares();
    let run = |shares: &[Shared]| parties(|t| check_one_of(t, &keys, shares));
    assert!(run(&right).iter().all(Result::is_ok));
    assert!(run(&right).iter().all(Result::is_ok));
    assert!(run(&wrong).iter().all(|result| matches!(result, Err(Error::MacKeyLeaked { .. }))));
    for key in &keys {
        let error = key.clone().usable().unwrap_err();
        assert!(error.kind() == "mac_key_burnt" && error.remedy().contains("new keys"), "{error}");
    }
    assert!(run(&right).iter().all(|result| result.as_ref().is_err_and(|error| error.kind() == "mac_key_burnt")));
    let refused = parties(|t| Online::new(Session::new(t, &field(), 40, "x")?, keys[0].clone()).map(drop));
    assert!(refused.iter().all(|result| result.as_ref().is_err_and(|error| error.kind() == "mac_key_burnt")));
}

fn check_one_of(transport: InProcess, keys: &[MacKeyShare], shares: &[Shared]) -> Result<()> {
    let party = transport.party();
    check_one(transport, &keys[party], &shares[party], || ())
}

/// A mark of a check in another process: while its lock is held it is waited for; once it is not, the key is burnt; and
/// a check that passes leaves it where it is.
#[test]
fn marks_of_other_processes_count_and_stay() {
    let all = Parties::new(Run::Thread);
    let path = PartyKey::path(&all.directory(0), 0);
    let record = path.with_extension("mac");
    let mut keys: Vec<PartyKey> = all.keys().into_iter().map(|key| key.unwrap()).collect();
    let mark = all.key_in_memory(0).homes().unwrap()[0].mark().unwrap();
    // It goes on: the key is read, and what is made meanwhile waits for the outcome.
    PartyKey::read(&path, &dealt().0, 0).unwrap();
    let zero = |party: usize| Shared::public(&field(), &Matrix::zero(1, 1).unwrap(), party, keys[party].mac()).unwrap();
    let zeros: Vec<Shared> = (0..PARTIES).map(zero).collect();
    let macs: Vec<MacKeyShare> = keys.iter().map(|key| key.mac().clone()).collect();
    let results = thread::scope(|scope| {
        let run = scope.spawn(|| parties(|t| check_one_of(t, &macs, &zeros)));
        thread::sleep(Duration::from_millis(300));
        assert!(!run.is_finished(), "party 0 has not waited");
        drop(mark);
        run.join().unwrap()
    });
    assert_eq!(results[0].as_ref().unwrap_err().kind(), "mac_key_burnt");
    // Theirs has passed, and party 0 has told them that it goes on no further.
    assert_eq!(results[1].as_ref().unwrap_err().kind(), "abort");
    assert!(macs[1].usable().is_ok());
    assert_eq!(PartyKey::read(&path, &dealt().0, 0).unwrap_err().kind(), "mac_key_burnt");
    let marks = || {
        std::fs::read_dir(all.directory(0))
            .unwrap()
            .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().contains(".check-"))
    };
    assert_eq!(marks().count(), 1, "the mark of the other has to stay, and no other");
    // A copied directory knows where it came from, and a copy of the record alone is none without the name.
    let elsewhere = all.root.path().join("copy");
    std::fs::create_dir(&elsewhere).unwrap();
    for name in ["party-0.key", "party-0.mac", "party-0.journal"] {
        std::fs::copy(all.directory(0).join(name), elsewhere.join(name)).unwrap();
    }
    let copy = PartyKey::path(&elsewhere, 0);
    assert_eq!(PartyKey::read(&copy, &dealt().0, 0).unwrap_err().kind(), "mac_key_burnt");
    std::fs::remove_file(copy.with_extension("mac")).unwrap();
    assert_eq!(PartyKey::read(&copy, &dealt().0, 0).unwrap_err().kind(), "record_missing");
    std::fs::copy(all.directory(1).join("party-1.mac"), copy.with_extension("mac")).unwrap();
    assert_eq!(PartyKey::read(&copy, &dealt().0, 0).unwrap_err().kind(), "file_damaged");
    assert!(record.exists());
    keys.clear();
}

/// Where no mark can be made nothing is sent: not a frame of the online phase, not a share of a check.
#[test]
fn a_record_that_cannot_be_marked_stops_the_check_before_a_share_leaves() {
    let all = Parties::new(Run::Thread);
    let keys: Vec<PartyKey> = all.keys().into_iter().map(|key| key.unwrap()).collect();
    let zero = |party: usize| Shared::public(&field(), &Matrix::zero(1, 1).unwrap(), party, keys[party].mac()).unwrap();
    let zeros: Vec<Shared> = (0..PARTIES).map(zero).collect();
    let macs: Vec<MacKeyShare> = keys.iter().map(|key| key.mac().clone()).collect();
    let openings = Arc::new(Mutex::new(0));
    let results = parties(|transport| {
        let (party, openings) = (transport.party(), Arc::clone(&openings));
        let count: Tamper = Box::new(move |_, _, frame| {
            let kind = u32::from_le_bytes(frame[44..48].try_into().unwrap());
            *openings.lock().unwrap() += usize::from(kind == Kind::Decommitment as u32);
            Some(frame)
        });
        let counted = Tampering::new(transport, (party == 0).then_some(count));
        check_one(counted, &macs[party], &zeros[party], || {
            if party == 0 {
                std::fs::remove_dir_all(all.directory(0)).unwrap();
            }
        })
    });
    assert_eq!(*openings.lock().unwrap(), PARTIES - 1, "to each party the seed of a coin, and no share of a check");
    assert!(results.iter().all(Result::is_err), "{results:?}");
    assert!(!matches!(results[0], Err(Error::MacKeyLeaked { .. })), "{results:?}");
    assert!(keys[0].mac().ready().is_err());
}

impl Parties {
    /// A session in which parties compare what they ended before, and which ends with triples at the first `ended` of
    /// them; the files that are void from now on, and those that were written, of each.
    fn step(&self, number: usize, ended: usize) -> Vec<Result<(Vec<PathBuf>, PathBuf)>> {
        let (setup, _) = dealt();
        let dealer = crate::dealer::TrustedDealer::new(&field(), PARTIES).unwrap();
        let triples: Vec<_> = dealer.triple(self.shape).unwrap().into_iter().map(|x| Mutex::new(Some(x))).collect();
        parties(|transport| {
            let party = transport.party();
            let path = PartyKey::path(&self.directory(party), party);
            let key = PartyKey::read(&path, setup, party)?;
            let journal = journal_of(&path.with_extension("journal"), &key, 1 << 20)?;
            let mut generator = Generator::new(transport, setup, &key, journal, Box::new(|_| ()))?;
            let void = crate::party::keep_step(&mut generator, key.mac(), party)?;
            let out = self.directory(party).join(format!("out-{number}"));
            let spdz = Preprocessing::new(&out, &field(), party, PARTIES)?;
            if party < ended {
                let session = *generator.session_id();
                key.mac().homes()?.iter().try_for_each(|home| home.ended(&session))?;
                spdz.write_key(key.mac())?;
                let triple = triples[party].lock().unwrap().take().unwrap();
                spdz.write_triples_of((key.mac(), Some(session)), self.shape, vec![triple])?;
            }
            Ok((void, spdz.triples_path(self.shape)))
        })
    }

    fn read(&self, number: usize, party: usize) -> Result<usize> {
        let out = self.directory(party).join(format!("out-{number}"));
        let spdz = Preprocessing::new(&out, &field(), party, PARTIES)?;
        Ok(spdz.read_triples(&spdz.read_key()?, self.shape)?.len())
    }
}

/// The last frame of a session does not reach the last party: the others have triples without counterparts, which the
/// next session finds. A party whose record is older than that is found too.
#[test]
fn triples_without_counterparts_are_void_from_the_next_session_on() {
    let all = Parties::new(Run::Thread);
    let record = all.directory(2).join("party-2.mac");
    let before = std::fs::read(&record).unwrap();
    let whole = |step: Vec<Result<(Vec<PathBuf>, PathBuf)>>| step.into_iter().map(|x| x.unwrap()).collect::<Vec<_>>();
    assert!(whole(all.step(1, PARTIES)).iter().all(|(void, _)| void.is_empty()));
    let second = whole(all.step(2, PARTIES - 1));
    for party in 0..PARTIES - 1 {
        assert_eq!((all.read(1, party).unwrap(), all.read(2, party).unwrap()), (1, 1));
    }
    let third = whole(all.step(3, PARTIES));
    for party in 0..PARTIES - 1 {
        let void = [crate::mac::home::canonical(&second[party].1).unwrap()];
        assert_eq!(third[party].0, void, "party {party}");
        assert_eq!(all.read(2, party).unwrap_err().kind(), "unmatched_triples");
        assert_eq!((all.read(1, party).unwrap(), all.read(3, party).unwrap()), (1, 1));
    }
    assert!(third[2].0.is_empty() && all.read(3, 2).unwrap() == 1);
    assert!(whole(all.step(4, PARTIES)).iter().all(|(void, _)| void.is_empty()));
    // A record brought back from the beginning.
    std::fs::write(&record, before).unwrap();
    let step = all.step(5, 0);
    assert!(
        step[..2].iter().all(|result| result.as_ref().is_err_and(|error| error.kind() == "out_of_step")),
        "{step:?}"
    );
}

#[test]
fn every_flipped_bit_of_a_key_is_refused() {
    let all = Parties::new(Run::Thread);
    let path = PartyKey::path(&all.directory(0), 0);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(synchromesh::rlwe::file::key_in(&bytes), Some("a party's key"));
    // Every bit of the header, the names and the MAC key, and some of each 100th byte of the rest.
    for bit in (0..8 * 300).chain((8 * 300..8 * bytes.len()).step_by(8 * bytes.len() / 200 + 3)) {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &damaged).unwrap();
        assert_eq!(PartyKey::read(&path, &dealt().0, 0).unwrap_err().kind(), "format", "bit {bit}");
    }
    std::fs::write(&path, [b"synchromesh party key 1\n", &bytes[76..]].concat()).unwrap();
    let former = PartyKey::read(&path, &dealt().0, 0).unwrap_err();
    assert!(former.kind() == "format" && former.to_string().contains("former format"), "{former}");
}
