//! One party from its files to its files: keys, certificate and list of parties in, triples and tuples out.

use std::fmt;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use synchromesh::rlwe::file::FileError;
use synchromesh_parties::hosts;
use synchromesh_parties::session::numbered;
use synchromesh_parties::tls::{Identity, Tls};
use synchromesh_parties::transport::Transport;

use crate::error::{Error, Result};
use crate::field::Field;
use crate::generation::{
    DecryptionJournal, Floor, GeneratedKeys, GenerationPlan, Generator, Keys, PartyKey, Phase, Progress, Setup,
    TOGETHER, Workers, generate_keys, generate_keys_with,
};
use crate::journal::TripleStore;
use crate::mac::MacKeyShare;
use crate::mac::seal::Seal;
use crate::mp_spdz::Preprocessing;
use crate::share::{MatrixTriple, Shape};
use crate::tuples::{Kind, Tuples};

/// Something that parties make, and how much of it for each thread of each run of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Matrix triples, of a shape of the plan or of the first of them.
    Matrices {
        /// The shape.
        shape: Option<Shape>,
        /// How many.
        count: usize,
    },
    /// Tuples of single numbers. So many are made that files hold a multiple of what MP-SPDZ reads at a time.
    Tuples {
        /// The kind.
        kind: Kind,
        /// How many; of input masks, for each party.
        count: usize,
    },
}

impl Want {
    /// How many are in a file.
    #[must_use]
    pub fn count(&self) -> usize {
        match *self {
            Self::Matrices { count, .. } => count,
            Self::Tuples { count, .. } => Kind::rounded(count),
        }
    }

    /// What they are, in a word.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::Matrices { shape: Some(shape), .. } => shape.to_string(),
            Self::Matrices { shape: None, .. } => "matrix triples".into(),
            Self::Tuples { kind, .. } => kind.to_string(),
        }
    }

    /// The same with its shape, if it had none. For MP-SPDZ products of single numbers are triples of these.
    fn of(self, plan: &GenerationPlan, format: Format) -> Self {
        match self {
            Self::Matrices { shape: None, count } if plan.shape().elements() == 3 && format == Format::MpSpdz => {
                Self::Tuples { kind: Kind::Triples, count }
            }
            Self::Matrices { shape: None, count } => Self::Matrices { shape: Some(plan.shape()), count },
            other => other,
        }
    }

    /// How many in all are made for so many files.
    fn total(&self, files: usize) -> usize {
        self.count().saturating_mul(files)
    }

    fn require_memory(&self, plan: &GenerationPlan, files: usize, most: u64) -> Result<()> {
        let total = self.total(files);
        match *self {
            Self::Matrices { shape: Some(shape), .. } => plan.of(shape)?.require_memory(total, most),
            Self::Matrices { shape: None, .. } => plan.require_memory(total, most),
            Self::Tuples { kind, .. } => plan.require_tuple_memory(kind, total, most),
        }
    }
}

/// For what files of MP-SPDZ are made: runs of programs, and threads of a run, each of which has files of its own with as
/// much as is wanted. Triples in plain form, of which each is given out once, are all in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Runs, in directories `run-1`, `run-2` and so on of `out`, beginning with the first that is not there; none: one run,
    /// in `out` itself.
    pub runs: Option<usize>,
    /// Threads, each with files `..-T<thread>`, as MP-SPDZ reads them with `--file-prep-per-thread`; none: a program's threads
    /// read the same files.
    pub threads: Option<usize>,
}

impl Spread {
    /// Most runs and most threads.
    pub const MOST: usize = 1 << 10;

    /// How many files there are of each thing.
    #[must_use]
    pub fn files(&self) -> usize {
        self.runs.unwrap_or(1).max(1) * self.threads.unwrap_or(1).max(1)
    }

    /// The directory of a run.
    #[must_use]
    pub fn run(out: &Path, number: usize) -> PathBuf {
        out.join(format!("run-{number}"))
    }

    /// The first run that is not there.
    #[must_use]
    pub fn first(out: &Path) -> usize {
        (1..).find(|&number| !Self::run(out, number).exists()).unwrap_or(1)
    }

    /// Where files go, run by run and in each thread by thread, if the first run is this.
    ///
    /// # Errors
    /// As [`Preprocessing::new`].
    pub fn places(
        &self,
        out: &Path,
        field: &Field,
        (party, parties): (usize, usize),
        first: usize,
    ) -> Result<Vec<Preprocessing>> {
        let roots = match self.runs {
            None => vec![out.to_owned()],
            Some(runs) => (first..first + runs.max(1)).map(|number| Self::run(out, number)).collect(),
        };
        let mut places = Vec::with_capacity(self.files());
        for root in roots {
            let whole = Preprocessing::new(&root.join("Player-Data"), field, party, parties)?;
            match self.threads {
                None => places.push(whole),
                Some(threads) => places.extend((0..threads.max(1)).map(|thread| whole.of_thread(thread))),
            }
        }
        Ok(places)
    }
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Matrices { count, .. } | Self::Tuples { count, .. }) = self;
        write!(f, "{}:{count}", self.what())
    }
}

impl FromStr for Want {
    type Err = Error;

    /// `RxKxC:COUNT`, or a kind and how many: `bits:1000`. Products of single numbers, `1x1x1`, are `triples`.
    fn from_str(text: &str) -> Result<Self> {
        let unknown = || Error::UnknownTuples { text: text.into() };
        let (what, count) = text.split_once(':').ok_or_else(unknown)?;
        let count = count.parse().ok().filter(|count| (1..=MOST).contains(count)).ok_or_else(unknown)?;
        match (what.parse(), what.parse()) {
            (Ok(kind), _) => Ok(Self::Tuples { kind, count }),
            (_, Ok(shape)) if shape == Shape::new(1, 1, 1)? => Ok(Self::Tuples { kind: Kind::Triples, count }),
            (_, Ok(shape)) => Ok(Self::Matrices { shape: Some(shape), count }),
            _ => Err(unknown()),
        }
    }
}

/// Most of one thing.
pub(crate) const MOST: usize = 1 << 32;

/// In which form matrix triples are written. Tuples of single numbers go to files that MP-SPDZ reads.
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
    /// What is made, each once.
    pub wants: Vec<Want>,
    /// For what.
    pub spread: Spread,
    /// A directory `Player-Data` with a MAC key to go on with, where keys are not made yet; none: that where triples go, if
    /// it has one. One that MP-SPDZ made, which has no record, is taken on the word of whoever names it: that no check under
    /// it has failed.
    pub mac_key: Option<PathBuf>,
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

/// What was made of one thing that was wanted.
enum Product {
    Matrices(Shape, Vec<MatrixTriple>),
    Tuples(Vec<Tuples>),
}

/// What making something took.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Took {
    /// What was made.
    pub want: Want,
    /// How many in all.
    pub total: usize,
    /// Seconds.
    pub seconds: f64,
    /// Bytes this party sent.
    pub bytes_sent: u64,
    /// Rounds.
    pub rounds: u64,
}

/// Triples and tuples that passed all checks, and are not yet written.
pub struct Made {
    plan: GenerationPlan,
    phases: Vec<Phase>,
    products: Vec<Product>,
    took: Vec<Took>,
    mac: MacKeyShare,
    session: [u8; 32],
    unmatched: Vec<PathBuf>,
    output: Output,
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.took.iter().map(|took| took.want.to_string()).collect();
        write!(f, "Made({}, secret)", all.join(", "))
    }
}

impl Party {
    /// Meets the others and makes triples and tuples. Nothing is written but the party's own keys, if the parties make them,
    /// and the journal of decryptions. Without `workers` products are computed here.
    ///
    /// # Errors
    /// [`Error::BelowFloor`] and [`Error::TooLarge`] for a plan that this party does not take, [`Error::NoParameters`] for a
    /// shape that it does not have. [`synchromesh_parties::Error::Format`] and [`synchromesh_parties::Error::File`] for files
    /// that are missing or do not belong together, and for triples that are there already; [`Error::OtherPrime`] and
    /// [`Error::OtherMacKey`] if they would not go with what is there, [`Error::Used`] where a program was left with what is
    /// there: in all these cases nobody was called.
    /// [`synchromesh_parties::Error::Tls`]; [`synchromesh_parties::Error::Abort`] with its blame, and whatever else
    /// [`Generator::generate`] fails with.
    pub fn make(&self, observer: &dyn Fn(Progress), workers: Option<Box<dyn Workers + '_>>) -> Result<Made> {
        let peers = hosts::read(&self.hosts)?;
        numbered(self.id, peers.len())?;
        let own = &peers[self.id];
        let path = self.key.clone().unwrap_or_else(|| PartyKey::path(&self.setup, self.id));
        let plan = GenerationPlan::read(&self.setup, &self.floor)?;
        let wants: Vec<Want> = self.wants.iter().map(|want| want.of(&plan, self.format)).collect();
        let files = self.spread.files();
        wants.iter().try_for_each(|want| want.require_memory(&plan, files, self.most_bytes))?;
        let output = Output::new((&self.out, self.format, self.spread), &plan, self.id, &wants)?;
        let there = Setup::exists(&self.setup) || plan.keys() == Keys::Dealt;
        let found = there.then(|| self.read_keys(&path, plan.clone())).transpose()?;
        let mac = match &found {
            Some((_, key)) => output.spdz.check_key(key.mac()).map(|()| None)?,
            None => self.known_mac_key(&plan, &output)?,
        };
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
                let made = match mac {
                    Some(mac) => generate_keys_with(transport, plan.clone(), mac, Box::new(observer))?,
                    None => generate_keys(transport, plan.clone(), Box::new(observer))?,
                };
                let GeneratedKeys { setup, key, phases: of_keys, transport } = made;
                key.write_to(&path, &setup)?;
                setup.write_keys(&self.setup)?;
                phases = of_keys;
                (setup, key, transport)
            }
        };
        let journal = journal.map_or_else(|| open(&key), Ok)?;
        let setups = wants.iter().map(|want| turned(&setup, want)).collect::<Result<Vec<Setup>>>()?;
        let generator = Generator::new(transport, &setup, &key, journal, Box::new(observer))?;
        let mut generator = generator.with_threads(self.threads);
        let unmatched = keep_step(&mut generator, key.mac(), self.id)?;
        generator.same(&output.plan_of(&wants))?;
        if let Some(workers) = workers {
            generator = generator.with_workers(workers);
        }
        let (mut products, mut took) = (Vec::with_capacity(wants.len()), Vec::with_capacity(wants.len()));
        for (want, setup) in wants.into_iter().zip(&setups) {
            let (began, before) = (Instant::now(), generator.traffic());
            generator.turn(setup)?;
            let total = want.total(files);
            products.push(make_one(&mut generator, setup, (want, total))?);
            let after = generator.traffic();
            let (seconds, rounds, bytes_sent) = (began.elapsed().as_secs_f64(), after.0 - before.0, after.1 - before.1);
            took.push(Took { want, total, seconds, bytes_sent, rounds });
        }
        phases.extend_from_slice(generator.phases());
        let session = *generator.session_id();
        Ok(Made { plan, phases, products, took, mac: key.mac().clone(), session, unmatched, output })
    }

    /// The MAC key that this party goes on with, if there is one.
    fn known_mac_key(&self, plan: &GenerationPlan, output: &Output) -> Result<Option<MacKeyShare>> {
        let Some(root) = &self.mac_key else { return output.spdz.own_key() };
        let mac = Preprocessing::new(root, plan.field(), self.id, plan.parties())?.known_key()?;
        output.spdz.check_key(&mac)?;
        Ok(Some(mac))
    }

    fn read_keys(&self, path: &Path, plan: GenerationPlan) -> Result<(Setup, PartyKey)> {
        let setup = Setup::read_keys(plan, &self.setup)?;
        let key = PartyKey::read(path, &setup, self.id)?;
        Ok((setup, key))
    }
}

/// The setup for something that is wanted.
fn turned(setup: &Setup, want: &Want) -> Result<Setup> {
    match want {
        Want::Matrices { shape: Some(shape), .. } => setup.of(*shape),
        _ => setup.of(setup.plan().shape()),
    }
}

fn make_one<T: Transport>(
    generator: &mut Generator<'_, T>,
    setup: &Setup,
    (want, total): (Want, usize),
) -> Result<Product> {
    let Want::Tuples { kind, .. } = want else {
        let mut triples: Vec<MatrixTriple> = Vec::new();
        while triples.len() < total {
            let next = (total - triples.len()).min(TOGETHER * setup.plan().batch());
            triples.extend(generator.generate(next)?);
        }
        return Ok(Product::Matrices(setup.plan().shape(), triples));
    };
    Ok(Product::Tuples(generator.generate_tuples(kind, total)?))
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

    /// What each thing that was wanted took, in turn.
    #[must_use]
    pub fn took(&self) -> &[Took] {
        &self.took
    }

    /// Writes triples, tuples and this party's share of the MAC key; the files.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`], [`Error::OtherPrime`] and [`Error::OtherMacKey`] if the directory has come to
    /// hold another prime or MAC key.
    pub fn write(self) -> Result<Vec<PathBuf>> {
        let Self { plan, products, mac, session, output, .. } = self;
        let homes = mac.homes()?;
        // Written down first: triples of which the record does not know would have no counterparts that anybody looks for.
        homes.iter().try_for_each(|home| home.ended(&session))?;
        output.write(&plan, (&mac, session), products).inspect_err(|_| {
            // They are not whole, and are not to be missed.
            homes.iter().for_each(|home| drop(home.void(&session)));
        })
    }
}

/// Where what a party makes goes; that nothing is there is known before it is made.
struct Output {
    out: PathBuf,
    party: usize,
    format: Format,
    /// The first run that is written.
    first: usize,
    spread: Spread,
    /// Where the MAC key is, whatever runs there are.
    spdz: Preprocessing,
    /// Where files of MP-SPDZ go, one for each thread of each run.
    places: Vec<Preprocessing>,
}

/// Whether nothing is yet where this party's triples and tuples of a plan would go.
///
/// # Errors
/// [`synchromesh_parties::Error::File`] with the first that is there, or that would be written twice.
pub fn require_vacant(
    place: (&Path, Format, Spread),
    plan: &GenerationPlan,
    party: usize,
    wants: &[Want],
) -> Result<()> {
    let wants: Vec<Want> = wants.iter().map(|want| want.of(plan, place.1)).collect();
    Output::new(place, plan, party, &wants).map(drop)
}

impl Output {
    fn new(
        (out, format, spread): (&Path, Format, Spread),
        plan: &GenerationPlan,
        party: usize,
        wants: &[Want],
    ) -> Result<Self> {
        let (field, parties) = (plan.field(), plan.parties());
        let spdz = Preprocessing::new(&out.join("Player-Data"), field, party, parties)?;
        let first = Spread::first(out);
        let places = spread.places(out, field, (party, parties), first)?;
        places.iter().try_for_each(Preprocessing::require_unused)?;
        let output = Self { out: out.to_owned(), party, format, first, spread, spdz, places };
        let mut paths: Vec<PathBuf> = Vec::new();
        for path in wants.iter().flat_map(|want| output.paths(want)) {
            if path.exists() || paths.contains(&path) {
                return Err(FileError::Exists { path }.into());
            }
            paths.push(path);
        }
        Ok(output)
    }

    /// What all parties must be about to write.
    fn plan_of(&self, wants: &[Want]) -> Vec<String> {
        let runs = self.spread.runs.map(|runs| format!("runs {} to {}", self.first, self.first + runs));
        let threads = self.spread.threads.map(|threads| format!("{threads} threads"));
        wants.iter().map(ToString::to_string).chain(runs).chain(threads).collect()
    }

    fn paths(&self, want: &Want) -> Vec<PathBuf> {
        match (*want, self.format) {
            (Want::Matrices { shape: Some(shape), .. }, Format::MpSpdz) => {
                self.places.iter().map(|place| place.triples_path(shape)).collect()
            }
            (Want::Matrices { shape: Some(shape), .. }, Format::Plain) => {
                vec![TripleStore::path(&self.out, shape, self.party)]
            }
            (Want::Matrices { shape: None, .. }, _) => Vec::new(),
            (Want::Tuples { kind, .. }, _) => self.places.iter().flat_map(|place| place.tuples_paths(kind)).collect(),
        }
    }

    fn write(
        &self,
        plan: &GenerationPlan,
        (mac, session): (&MacKeyShare, [u8; 32]),
        products: Vec<Product>,
    ) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for place in std::iter::once(&self.spdz).chain(&self.places) {
            if !files.contains(&place.key_path()) {
                place.write_key(mac)?;
                files.extend([place.directory().join("Params-Data"), place.key_path()]);
            }
        }
        self.places.iter().try_for_each(Preprocessing::begin_anew)?;
        let key = (mac, Some(session));
        for product in products {
            match (product, self.format) {
                (Product::Matrices(shape, mut triples), Format::MpSpdz) => {
                    let each = triples.len() / self.places.len();
                    for place in &self.places {
                        let rest = triples.split_off(each.min(triples.len()));
                        files.push(place.write_triples_of(key, shape, std::mem::replace(&mut triples, rest))?);
                    }
                }
                (Product::Matrices(shape, triples), Format::Plain) => {
                    let parties = (self.party, plan.parties());
                    files.push(TripleStore::create_of(&self.out, plan.field(), parties, shape, key, triples)?);
                }
                (Product::Tuples(lists), _) => {
                    for tuples in lists {
                        let each = tuples.count() / self.places.len();
                        for (at, place) in self.places.iter().enumerate() {
                            files.push(place.write_tuples_of(key, tuples.part(at * each..(at + 1) * each)?)?);
                        }
                    }
                }
            }
        }
        Ok(files)
    }
}
