//! One party from its files to its files: keys, certificate and list of parties in, triples out.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use synchromesh::rlwe::file::FileError;
use synchromesh_parties::hosts;
use synchromesh_parties::session::numbered;
use synchromesh_parties::tls::{Identity, Tls};
use synchromesh_parties::transport::Transport;

use crate::error::{Error, Result};
use crate::generation::{
    DecryptionJournal, Floor, GeneratedKeys, GenerationPlan, Generator, Keys, PartyKey, Phase, Progress, Setup,
    TOGETHER, Workers, generate_keys,
};
use crate::journal::TripleStore;
use crate::mac::MacKeyShare;
use crate::mac::seal::Seal;
use crate::mp_spdz::Preprocessing;
use crate::share::{MatrixTriple, Shape};

/// In which form triples are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Files that MP-SPDZ reads: [`Preprocessing`].
    MpSpdz,
    /// Plain residues after one line of JSON, each triple given out once: [`TripleStore`].
    Plain,
}

/// One party's run.
#[derive(Debug, Clone)]
pub struct Party {
    /// Its number, from 0.
    pub id: usize,
    /// The list of parties.
    pub hosts: PathBuf,
    /// Where the dealer's files are, or the plan alone and later this party's own: then each party has its own directory.
    pub setup: PathBuf,
    /// The party's key, beside which are its journal of decryptions and the record of its MAC key; none: in the
    /// directory of the setup.
    pub key: Option<PathBuf>,
    /// Its certificate.
    pub identity: PathBuf,
    /// Where triples go.
    pub out: PathBuf,
    /// Triples.
    pub count: usize,
    /// Threads for products of matrices.
    pub threads: usize,
    /// How they are written.
    pub format: Format,
    /// How long to wait for others.
    pub timeout: Duration,
    /// What it accepts of the plan, which it need not have written.
    pub floor: Floor,
    /// Most bytes of memory it means to use; [`MOST_BYTES`](crate::generation::MOST_BYTES) for any.
    pub most_bytes: u64,
}

/// Triples that passed all checks, and are not yet written.
pub struct Made {
    plan: GenerationPlan,
    phases: Vec<Phase>,
    triples: Vec<MatrixTriple>,
    mac: MacKeyShare,
    session: [u8; 32],
    unmatched: Vec<PathBuf>,
    output: Output,
}

impl std::fmt::Debug for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Made({} triples {}, secret)", self.triples.len(), self.plan.shape())
    }
}

impl Party {
    /// Meets the others and makes triples. Nothing is written but the party's own keys, if the parties make them, and the
    /// journal of decryptions. Without `workers` products are computed here.
    ///
    /// # Errors
    /// [`Error::BelowFloor`] and [`Error::TooLarge`] for a plan that this party does not take.
    /// [`synchromesh_parties::Error::Format`] and [`synchromesh_parties::Error::File`] for files that are missing or do
    /// not belong together, and for triples that are there already; [`synchromesh_parties::Error::Tls`];
    /// [`synchromesh_parties::Error::Abort`] with its blame, and whatever else [`Generator::generate`] fails with.
    pub fn make(&self, observer: &dyn Fn(Progress), workers: Option<Box<dyn Workers + '_>>) -> Result<Made> {
        let peers = hosts::read(&self.hosts)?;
        numbered(self.id, peers.len())?;
        let own = &peers[self.id];
        let path = self.key.clone().unwrap_or_else(|| PartyKey::path(&self.setup, self.id));
        let plan = GenerationPlan::read(&self.setup, &self.floor)?;
        plan.require_memory(self.count, self.most_bytes)?;
        let output = Output::new(self, &plan)?;
        let there = Setup::exists(&self.setup) || plan.keys() == Keys::Dealt;
        let found = there.then(|| self.read_keys(&path, plan.clone())).transpose()?;
        let open =
            |key: &PartyKey| DecryptionJournal::open(&path.with_extension("journal"), key, plan.most_decryptions());
        let journal = found.as_ref().map(|(_, key)| open(key)).transpose()?;
        let identity = Identity::read(&self.identity)?;
        let bound = TcpListener::bind(&own.address);
        let listener =
            bound.map_err(|error| synchromesh_parties::Error::Tls { reason: format!("{}: {error}", own.address) })?;
        let transport = Tls::connect(self.id, &identity, &listener, &peers, self.timeout)?;
        drop(listener);
        let mut phases = Vec::new();
        let (setup, key, transport) = match found {
            Some((setup, key)) => (setup, key, transport),
            None => {
                let made = generate_keys(transport, plan.clone(), Box::new(observer))?;
                let GeneratedKeys { setup, key, phases: of_keys, transport } = made;
                key.write_to(&path, &setup)?;
                setup.write_keys(&self.setup)?;
                phases = of_keys;
                (setup, key, transport)
            }
        };
        let journal = journal.map_or_else(|| open(&key), Ok)?;
        let generator = Generator::new(transport, &setup, &key, journal, Box::new(observer))?;
        let mut generator = generator.with_threads(self.threads);
        let unmatched = keep_step(&mut generator, key.mac(), self.id)?;
        if let Some(workers) = workers {
            generator = generator.with_workers(workers);
        }
        let mut triples: Vec<MatrixTriple> = Vec::new();
        while triples.len() < self.count {
            let next = (self.count - triples.len()).min(TOGETHER * plan.batch());
            triples.extend(generator.generate(next)?);
        }
        phases.extend_from_slice(generator.phases());
        let session = *generator.session_id();
        Ok(Made { plan, phases, triples, mac: key.mac().clone(), session, unmatched, output })
    }

    fn read_keys(&self, path: &Path, plan: GenerationPlan) -> Result<(Setup, PartyKey)> {
        let setup = Setup::read_keys(plan, &self.setup)?;
        let key = PartyKey::read(path, &setup, self.id)?;
        Ok((setup, key))
    }
}

/// Compares with the others what the last session under this key was that ended with triples. One that ended here
/// alone, since the last frames to another party were lost, left triples without counterparts: they are void from now
/// on. Returns their files.
pub(crate) fn keep_step<T: Transport>(
    generator: &mut Generator<'_, T>,
    mac: &MacKeyShare,
    own: usize,
) -> Result<Vec<PathBuf>> {
    let homes = mac.homes()?;
    let Some(home) = homes.first() else { return Ok(Vec::new()) };
    let ended = home.sessions()?;
    let at = |back: usize| ended.get(back).copied().unwrap_or([0; 32]);
    let said = generator.last_sessions(&at(0))?;
    // Whoever says the one before did not end the last one; whoever says another knows of one that this party did not end.
    let behind = |last: &[u8; 32]| *last != at(0) && !ended.is_empty() && (ended.contains(last) || *last == [0; 32]);
    for (party, last) in said.iter().enumerate().filter(|(party, _)| *party != own) {
        if behind(last) && *last != at(1) {
            return Err(Error::OutOfStep { party, ended: ended.len() });
        }
    }
    if !said.iter().any(behind) {
        return Ok(Vec::new());
    }
    homes.iter().try_for_each(|home| home.void(&at(0)))?;
    let files = mac.files().into_iter();
    Ok(files.filter(|file| Seal::open(file).is_err_and(|error| matches!(error, Error::Unmatched { .. }))).collect())
}

impl Made {
    /// Files of earlier triples that another party does not have, since it did not hear of the end of their session: no
    /// reader of this library takes them.
    #[must_use]
    pub fn unmatched(&self) -> &[PathBuf] {
        &self.unmatched
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &GenerationPlan {
        &self.plan
    }

    /// What the phases took, those of keys first.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Writes the triples and this party's share of the MAC key; the files.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`], [`synchromesh_parties::Error::Format`] if the directory holds another
    /// prime or MAC key.
    pub fn write(self) -> Result<Vec<PathBuf>> {
        let Self { plan, triples, mac, session, output, .. } = self;
        let homes = mac.homes()?;
        // Written down first: triples of which the record does not know would have no counterparts that anybody looks for.
        homes.iter().try_for_each(|home| home.ended(&session))?;
        output.write(&plan, (&mac, session), triples).inspect_err(|_| {
            // They are not whole, and are not to be missed.
            homes.iter().for_each(|home| drop(home.void(&session)));
        })
    }
}

/// Where a party's triples go; that nothing is there is known before they are made.
struct Output {
    out: PathBuf,
    party: usize,
    format: Format,
    spdz: Preprocessing,
    path: PathBuf,
}

impl Output {
    fn new(party: &Party, plan: &GenerationPlan) -> Result<Self> {
        let spdz = Preprocessing::new(&party.out.join("Player-Data"), plan.field(), party.id, plan.parties())?;
        let path = match party.format {
            Format::MpSpdz => spdz.triples_path(plan.shape()),
            Format::Plain => TripleStore::path(&party.out, plan.shape(), party.id),
        };
        if path.exists() {
            return Err(FileError::Exists { path }.into());
        }
        Ok(Self { out: party.out.clone(), party: party.id, format: party.format, spdz, path })
    }

    fn write(
        &self,
        plan: &GenerationPlan,
        (mac, session): (&MacKeyShare, [u8; 32]),
        triples: Vec<MatrixTriple>,
    ) -> Result<Vec<PathBuf>> {
        self.spdz.write_key(mac)?;
        let shape: Shape = plan.shape();
        let path = match self.format {
            Format::MpSpdz => self.spdz.write_triples_of((mac, Some(session)), shape, triples)?,
            Format::Plain => {
                let parties = (self.party, plan.parties());
                TripleStore::create_of(&self.out, plan.field(), parties, shape, (mac, Some(session)), triples)?
            }
        };
        debug_assert_eq!(path, self.path);
        let directory = self.spdz.directory();
        Ok(vec![directory.join("Params-Data"), self.spdz.key_path(), path])
    }
}
