//! What parties read: frames of others, the list of parties, identities, keys, triples, journals, MP-SPDZ's files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Result;
use synchromesh::bgv;
use synchromesh::rlwe::Security;
use synchromesh_triples::field::DEFAULT_PRIME;
use synchromesh_triples::generation::{DecryptionJournal, Floor, GenerationPlan, PartyKey, Request, Setup, deal};
use synchromesh_triples::journal::TripleStore;
use synchromesh_triples::mp_spdz::Preprocessing;
use synchromesh_triples::parties::hosts;
use synchromesh_triples::parties::joint::{self, KeyShare, Wanted, generate};
use synchromesh_triples::parties::session::{Kind, Session};
use synchromesh_triples::parties::tls::{Identity, Peer};
use synchromesh_triples::parties::transport::{Fault, InProcess, Transport};
use synchromesh_triples::{Error, Field, MacKeyShare, Matrix, MatrixTriple, Shape, Shared};

use super::folders::{Folder, put};
use super::{Outcome, SMALL, TABLES, Target, outcome, text};
use crate::mutation::Seal;

/// A target of one file of a folder.
macro_rules! file {
    ($name:literal, $folder:ident, $file:expr, $seal:ident, $checksummed:literal) => {
        Target {
            seal: Seal::$seal,
            checksummed: $checksummed,
            ..text::text($name, || $folder.seeds($file), |bytes| $folder.read($file, bytes), SMALL)
        }
    };
}

// What a journal lost at its end cannot be told, so that not every damage of one is refused.
pub(super) const TARGETS: &[Target] = &[
    text::text("frames", frame_seeds, frames, SMALL),
    file!("hosts", HOSTS, "hosts", Hosts, true),
    file!("hosts_by_hand", HOSTS_BY_HAND, "hosts", Nothing, false),
    file!("identity", IDENTITY, "identity", Container, true),
    text::text("generation_plan", plan_seeds, plan, TABLES),
    file!("party_key", PARTY, "party-1.key", Container, true),
    Target {
        seal: Seal::Container,
        checksummed: true,
        ..text::text("key_share", || Ok(SHARES.get().1.clone()), |bytes| key_share(&SHARES, bytes), SMALL)
    },
    Target {
        seal: Seal::Container,
        checksummed: true,
        ..text::text("proven_key_share", || Ok(PROVEN.get().1.clone()), |bytes| key_share(&PROVEN, bytes), SMALL)
    },
    file!("decryption_journal", PARTY, "party-1.journal", Journal, false),
    file!("mac_record", PARTY, "party-1.mac", Journal, false),
    file!("triple_store", TRIPLES, "triples-2x1x2-P0.bin", Nothing, true),
    file!("triple_seal", TRIPLES, "triples-2x1x2-P0.bin.seal", Container, true),
    file!("triple_journal", TRIPLES_USED, "triples-2x1x2-P0.journal", Journal, false),
    file!("mp_spdz_key", MP_SPDZ, "Player-MAC-Keys-p-P0", Nothing, true),
    file!("mp_spdz_key_seal", MP_SPDZ, "Player-MAC-Keys-p-P0.seal", Container, true),
    file!("mp_spdz_triples", MP_SPDZ, "Matrix-2x1x2-P0", Nothing, true),
    file!("mp_spdz_triples_seal", MP_SPDZ, "Matrix-2x1x2-P0.seal", Container, true),
    text::text("shared", shared_seeds, shared, SMALL),
    text::text("shape", shape_seeds, shape, SMALL),
    text::text("prime", prime_seeds, prime, SMALL),
];

static HOSTS: Folder = Folder::new("hosts", make_hosts, read_hosts);
static HOSTS_BY_HAND: Folder = Folder::new("hosts_by_hand", make_hosts_by_hand, read_hosts);
static IDENTITY: Folder = Folder::new("identity", make_identity, read_identity);
static PARTY: Folder = Folder::new("party", make_party, read_party);
static TRIPLES: Folder = Folder::new("triples", |folder| make_triples(folder).map(drop), read_triples);
static TRIPLES_USED: Folder = Folder::new("triples_used", make_triples_used, read_triples);
static MP_SPDZ: Folder = Folder::new("mp_spdz", make_mp_spdz, read_mp_spdz);

/// Folders whose reader needs nothing of the process that made them. A party's key is read with a setup of megabytes.
pub(crate) static FOLDERS: [&Folder; 3] = [&TRIPLES, &TRIPLES_USED, &MP_SPDZ];

fn field() -> &'static Field {
    static FIELD: OnceLock<Field> = OnceLock::new();
    FIELD.get_or_init(|| DEFAULT_PRIME.parse().expect("a prime"))
}

/// The shape of all triples here.
fn small() -> Shape {
    "2x1x2".parse().expect("a shape")
}

/// A peer whose frames come from the input: a byte says whether the next one is as it should be, changed or raw.
struct Scripted {
    script: std::vec::IntoIter<u8>,
}

/// Bytes of a frame before its payload, and where the sender's number is.
const HEAD: usize = 48;
const SENDER: std::ops::Range<usize> = 40..44;

impl Scripted {
    fn take(&mut self, count: usize) -> Vec<u8> {
        self.script.by_ref().take(count).collect()
    }
}

impl Transport for Scripted {
    fn party(&self) -> usize {
        0
    }

    fn parties(&self) -> usize {
        3
    }

    fn exchange(&mut self, peer: usize, frame: Vec<u8>, limit: usize) -> Result<Vec<u8>, Fault> {
        let Some(what) = self.script.next() else { return Err(Fault::Disconnected) };
        let mut answer = frame;
        if let Some(sender) = answer.get_mut(SENDER) {
            sender.copy_from_slice(&(peer as u32).to_le_bytes());
        }
        match what % 8 {
            0 => return Err(Fault::TimedOut),
            1 => answer = self.take(usize::from(what)),
            2 => {
                answer.truncate(HEAD);
                answer.extend(self.take(usize::from(what)));
            }
            3 => {
                let at = usize::from(what) % answer.len().max(1);
                let with = self.take(4);
                answer.iter_mut().skip(at).zip(with).for_each(|(byte, x)| *byte ^= x);
            }
            4 => {
                let payload = answer.len().saturating_sub(HEAD);
                answer.truncate(HEAD);
                answer.extend(self.take(payload));
                answer.resize(HEAD + payload, what);
            }
            _ => {}
        }
        if answer.len() > limit {
            Err(Fault::TooLong { bytes: answer.len() as u64, limit: limit as u64 })
        } else {
            Ok(answer)
        }
    }
}

fn frame_seeds() -> Result<Vec<Vec<u8>>> {
    // Honest to the end: what all parties say is the same where all are the first one's echo.
    Ok(vec![vec![7; 40]])
}

/// A session among three of which two follow the script.
fn frames(bytes: &[u8]) -> Outcome {
    let script = bytes.to_vec();
    let transport = Scripted { script: script.into_iter() };
    let run = || {
        let mut session = Session::new(transport, "fuzz")?;
        session.broadcast(Kind::Hello, &[1, 2, 3], 3)?;
        session.agree()
    };
    outcome!(run())
}

fn make_hosts(folder: &Path) -> Result<()> {
    let peer = |i: u8| Peer { address: format!("127.0.0.1:{}", 4000 + u16::from(i)), fingerprint: [i; 32] };
    Ok(hosts::write(&folder.join("hosts"), &[peer(1), peer(2), peer(3)])?)
}

/// A list without a checksum, as a person writes it.
fn make_hosts_by_hand(folder: &Path) -> Result<()> {
    let digits = [1, 2].map(|i| hosts::fingerprint_text(&[i; 32]));
    let text = format!("# two\n127.0.0.1:4000 {}\n\nhost:1 {}\n", digits[0], digits[1]);
    put(&folder.join("hosts"), text.as_bytes())
}

/// The list of parties.
fn read_hosts(folder: &Path) -> Outcome {
    outcome!(hosts::read(&folder.join("hosts")))
}

fn make_identity(folder: &Path) -> Result<()> {
    Ok(Identity::new()?.write(&folder.join("identity"))?)
}

/// A party's certificate and key.
fn read_identity(folder: &Path) -> Outcome {
    outcome!(Identity::read(&folder.join("identity")))
}

/// A setup among two at N = 2^10, made once.
fn dealt() -> &'static (Setup, Vec<PartyKey>) {
    static DEALT: OnceLock<(Setup, Vec<PartyKey>)> = OnceLock::new();
    DEALT.get_or_init(|| {
        let base = Request::new(field(), 2, small());
        let request = Request { security: Security::Insecure, log_n: Some(10), statistical_security: 40, ..base };
        deal(GenerationPlan::find(&request).expect("a plan")).expect("keys")
    })
}

/// Parameters of a joint key, and the shares of its holders.
type Made = (Arc<bgv::Context>, Vec<Vec<u8>>);

/// The shares of a joint key of a plan.
struct Shares {
    plan: joint::Plan,
    made: OnceLock<Made>,
}

static SHARES: Shares = Shares { plan: joint::Plan::all_of(2), made: OnceLock::new() };
static PROVEN: Shares = Shares { plan: joint::Plan::any_of(2, 3).with_proofs(), made: OnceLock::new() };

impl Shares {
    fn get(&self) -> &Made {
        self.made.get_or_init(|| {
            let literal = bgv::ParamsLiteral {
                log_n: 10,
                t: "65537".to_owned(),
                q_bits: vec![40],
                p_bits: vec![40],
                level_limbs: vec![],
                schedule: Default::default(),
                omega: 1,
                security: Security::Insecure,
                primes: None,
            };
            let params = bgv::Params::new(literal).expect("parameters").with_joint(&self.plan);
            let context = bgv::Context::new(params).expect("a context");
            let make = |transport: InProcess| {
                let (rlwe, none) = (context.rlwe(), Wanted::parts(context.rlwe().params(), []).expect("no keys"));
                let mut session = Session::new(transport, "corpus").expect("a session");
                let (_, share) = generate(&mut session, rlwe, &self.plan, &none).expect("a key");
                share.to_bytes(rlwe).expect("bytes").to_vec()
            };
            let bytes = std::thread::scope(|scope| {
                let parties = InProcess::mesh(self.plan.parties, Duration::from_secs(60)).into_iter();
                let threads: Vec<_> = parties.map(|transport| scope.spawn(|| make(transport))).collect();
                threads.into_iter().map(|thread| thread.join().expect("a party")).collect()
            });
            (context, bytes)
        })
    }
}

/// A share of a joint key.
fn key_share(of: &Shares, bytes: &[u8]) -> Outcome {
    let rlwe = of.get().0.rlwe();
    let read = KeyShare::from_bytes(rlwe, bytes);
    if let Ok(share) = &read {
        assert!(share.to_bytes(rlwe).is_ok_and(|again| again[..] == *bytes), "two encodings of one share");
    }
    outcome!(read)
}

fn plan_seeds() -> Result<Vec<Vec<u8>>> {
    Ok(vec![dealt().0.plan().to_json().into_bytes()])
}

/// A plan of triples, checked as every party checks it.
fn plan(bytes: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(bytes) else { return Outcome::Refused("no text".to_owned()) };
    outcome!(GenerationPlan::from_json(text, &Floor::NONE))
}

/// The party whose files are read.
const PARTY_NUMBER: usize = 1;

fn make_party(folder: &Path) -> Result<()> {
    let (setup, keys) = dealt();
    let path = keys[PARTY_NUMBER].write(folder, setup)?;
    let mut journal = DecryptionJournal::open(&path.with_extension("journal"), &keys[PARTY_NUMBER], 9)?;
    Ok(journal.intend(&[[1; 32], [2; 32]])?)
}

/// A party's key, the record of its MAC key and its journal: a ciphertext that is taken down is refused ever after.
fn read_party(folder: &Path) -> Outcome {
    let path = PartyKey::path(folder, PARTY_NUMBER);
    let run = || {
        let key = PartyKey::read(&path, &dealt().0, PARTY_NUMBER)?;
        let open = || DecryptionJournal::open(&path.with_extension("journal"), &key, 1 << 20);
        open()?.intend(&[[9; 32]])?;
        let again = open()?.intend(&[[9; 32]]);
        assert!(again.is_err(), "a ciphertext is decrypted twice");
        Ok::<_, Error>(())
    };
    outcome!(run())
}

/// A share of a matrix of small numbers.
fn part((rows, columns): (usize, usize), from: u32) -> Result<Shared> {
    let count = u32::try_from(rows * columns)?;
    let matrix = |from: u32| Matrix::new(rows, columns, (0..count).map(|i| field().small(from + i)).collect());
    Ok(Shared::new(matrix(from)?, matrix(from + 100)?)?)
}

/// A triple of small numbers.
fn triple(from: u32) -> Result<MatrixTriple> {
    let shape = small();
    Ok(MatrixTriple::new(part(shape.a(), from)?, part(shape.b(), from + 10)?, part(shape.c(), from + 20)?)?)
}

/// The share of the MAC key in all files of triples here.
fn mac() -> MacKeyShare {
    MacKeyShare::new(field().small(3))
}

fn make_triples(folder: &Path) -> Result<PathBuf> {
    Ok(TripleStore::create(folder, field(), (0, 2), small(), &mac(), vec![triple(1)?, triple(2)?])?)
}

/// A store of which a triple was given out.
fn make_triples_used(folder: &Path) -> Result<()> {
    let path = make_triples(folder)?;
    TripleStore::open(&path, field(), (0, 2), small())?.take()?;
    Ok(())
}

/// A store of triples, with its seal, its journal and the record of its MAC key: what is given out is so once.
fn read_triples(folder: &Path) -> Outcome {
    let path = TripleStore::path(folder, small(), 0);
    let open = || TripleStore::open(&path, field(), (0, 2), small());
    let run = || {
        let mut store = open()?;
        while store.take()?.is_some() {}
        drop(store);
        assert_eq!(open()?.left(), 0, "triples are given out twice");
        Ok::<_, Error>(())
    };
    outcome!(run())
}

fn mp_spdz(folder: &Path) -> Result<Preprocessing, Error> {
    Preprocessing::new(folder, field(), 0, 2)
}

fn make_mp_spdz(folder: &Path) -> Result<()> {
    let (files, key) = (mp_spdz(folder)?, mac());
    files.write_key(&key)?;
    files.write_triples(&key, small(), vec![triple(1)?])?;
    Ok(())
}

/// MP-SPDZ's files of a party's MAC key and of triples, with their seals.
fn read_mp_spdz(folder: &Path) -> Outcome {
    let run = || {
        let files = mp_spdz(folder)?;
        files.read_triples(&files.read_key()?, small())
    };
    outcome!(run())
}

fn shared_seeds() -> Result<Vec<Vec<u8>>> {
    Ok(vec![part(small().a(), 5)?.to_bytes(field()).to_vec()])
}

/// Shares of a matrix in a frame.
fn shared(bytes: &[u8]) -> Outcome {
    let (rows, columns) = small().a();
    let read = Shared::from_bytes(field(), rows, columns, bytes);
    if let Ok(shared) = &read {
        assert!(shared.to_bytes(field())[..] == *bytes, "two encodings of one matrix");
    }
    outcome!(read)
}

fn shape_seeds() -> Result<Vec<Vec<u8>>> {
    Ok(["2x3x4", "128x128x128", "1x1x1"].map(|text| text.as_bytes().to_vec()).to_vec())
}

/// A shape in words.
fn shape(bytes: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(bytes) else { return Outcome::Refused("no text".to_owned()) };
    outcome!(text.parse::<Shape>())
}

fn prime_seeds() -> Result<Vec<Vec<u8>>> {
    Ok(vec![DEFAULT_PRIME.as_bytes().to_vec(), b"18446744073709551557".to_vec()])
}

/// A prime in words, checked.
fn prime(bytes: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(bytes) else { return Outcome::Refused("no text".to_owned()) };
    outcome!(text.parse::<Field>())
}
