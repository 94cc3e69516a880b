//! The command `triples`: dealing keys, one party's run over TLS, and all parties as processes of this machine.

mod local;

pub use self::local::Local;
use crate::error::Error;
use crate::output::say;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use synchromesh_rlwe::Security;
use synchromesh_rlwe::memory;
use synchromesh_triples::generation::{
    GenerationPlan, Keys, MOST_BYTES, Phase, Progress, Proofs, Request, deal_into_with,
};
use synchromesh_triples::mp_spdz::Preprocessing;
use synchromesh_triples::parties::hosts;
use synchromesh_triples::parties::tls::Identity;
use synchromesh_triples::party::{Spread, Took, Want};
use synchromesh_triples::{Field, MacKeyShare, Shape, party};

/// In which form triples are written.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Files that MP-SPDZ reads.
    MpSpdz,
    /// Plain residues after one line of JSON, each triple given out once.
    Plain,
}

impl From<Format> for party::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::MpSpdz => Self::MpSpdz,
            Format::Plain => Self::Plain,
        }
    }
}

/// Where keys come from.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A dealer whom all parties trust.
    Dealer,
    /// The parties, with proofs.
    Generate,
}

/// What is to be made.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Parties.
    pub parties: usize,
    /// The shapes; none: those of what is made, or 1x1x1 for tuples alone.
    pub shapes: Vec<String>,
    /// Triples of the first shape, if nothing else is said to be made.
    pub count: usize,
    /// What is made, each as `RxKxC:COUNT` or `KIND:COUNT`, for each thread of each run.
    pub make: Vec<String>,
    /// For how many runs, and threads of a run.
    pub spread: Spread,
    /// A directory `Player-Data` with all parties' shares of the MAC key, which a dealer goes on with.
    pub mac_keys: Option<PathBuf>,
    /// Bits of statistical security.
    pub security: u32,
    /// The prime; none: the default.
    pub prime: Option<String>,
    /// log2 of the decryptions under one key.
    pub decryptions: u32,
    /// log2 N, if it is not to be chosen.
    pub log_n: Option<u32>,
    /// Whether less than 128 bits of computational security are allowed.
    pub insecure: bool,
    /// Where keys come from.
    pub keys: Origin,
    /// Rotations made from one decomposition, if it is not to be chosen.
    pub window: Option<usize>,
    /// Most bytes of memory of all processes here; none: what is free.
    pub most_bytes: Option<u64>,
}

/// Most bytes of memory, as the user says or as they are free.
pub(crate) fn most_bytes(said: Option<u64>) -> u64 {
    said.or_else(memory::available_bytes).unwrap_or(MOST_BYTES)
}

impl Wanted {
    fn request(&self) -> Result<Request, Error> {
        let field: Field = self.prime.as_deref().unwrap_or(synchromesh_triples::field::DEFAULT_PRIME).parse()?;
        let (wants, mut shapes) = (self.wants()?, Vec::new());
        for shape in &self.shapes {
            shapes.push(shape.parse::<Shape>()?);
        }
        let mut count = 1;
        // More in a run pack more into each ciphertext.
        for want in &wants {
            if let Want::Matrices { shape, count: of_these } = *want {
                shapes.extend(shape);
                count = count.max(of_these.saturating_mul(self.spread.files()));
            }
        }
        let first = if shapes.is_empty() { Shape::new(1, 1, 1)? } else { shapes.remove(0) };
        let base = Request::new(&field, self.parties, first);
        let keys = match self.keys {
            Origin::Dealer => Keys::Dealt,
            Origin::Generate => Keys::Generated,
        };
        Ok(Request {
            more: shapes,
            count,
            statistical_security: self.security,
            log2_decryptions: self.decryptions,
            log_n: self.log_n,
            security: if self.insecure { Security::Insecure } else { Security::Bits128 },
            keys,
            window: self.window.unwrap_or(keys.window()),
            ..base
        })
    }

    /// What is to be made.
    fn wants(&self) -> Result<Vec<Want>, Error> {
        if self.make.is_empty() {
            return Ok(vec![Want::Matrices { shape: None, count: self.count }]);
        }
        Ok(self.make.iter().map(|text| text.parse()).collect::<Result<_, synchromesh_triples::Error>>()?)
    }

    /// The shares of the MAC key that a dealer goes on with.
    fn macs(&self, plan: &GenerationPlan) -> Result<Option<Vec<MacKeyShare>>, Error> {
        let Some(root) = &self.mac_keys else { return Ok(None) };
        let of = |party| Preprocessing::new(root, plan.field(), party, plan.parties())?.known_key();
        Ok(Some((0..plan.parties()).map(of).collect::<Result<_, synchromesh_triples::Error>>()?))
    }

    /// Chooses parameters, and deals keys into a directory unless the parties make them: then it has the plan alone.
    ///
    /// # Errors
    /// What the planner refuses, more memory than there is, and files that are there already.
    pub fn deal(&self, directory: &Path) -> Result<Map<String, Value>, Error> {
        if self.keys == Origin::Generate && self.mac_keys.is_some() {
            let message =
                "--mac-keys is for keys of a dealer; each party gives its own to `triples party --mac-key`".into();
            return Err(Error::Usage { message });
        }
        self.deal_here(directory, 0, |_| Ok(()))
    }

    /// The same where so many of the parties run on this machine too.
    fn deal_here(
        &self,
        directory: &Path,
        here: usize,
        accept: impl FnOnce(&GenerationPlan) -> Result<(), Error>,
    ) -> Result<Map<String, Value>, Error> {
        let start = Instant::now();
        let plan = GenerationPlan::find(&self.request()?)?;
        let planned = start.elapsed();
        accept(&plan)?;
        let macs = self.macs(&plan)?;
        self.check_memory(&plan, here)?;
        synchromesh_rlwe::file::create_private_directory(directory)?;
        let phase = |name, time: Duration| json!({"name": name, "seconds": time.as_secs_f64(), "bytes_sent": 0, "rounds": 0, "peak_bytes": memory::peak_bytes()});
        let count = self.wants()?.first().map_or(self.count, Want::count);
        let mut report = describe(&plan, count);
        let mut phases = vec![phase("plan", planned)];
        let files = match self.keys {
            Origin::Generate => {
                plan.write(directory)?;
                vec![directory.join("plan.json")]
            }
            Origin::Dealer => {
                let files = deal_into_with(plan, macs, directory)?;
                phases.push(phase("keys", start.elapsed() - planned));
                files
            }
        };
        report.insert("phases".into(), phases.into());
        report.insert("files".into(), names(&files));
        Ok(report)
    }

    /// Refuses what this machine has no memory for: keys that are dealt here, and parties that run here.
    fn check_memory(&self, plan: &GenerationPlan, here: usize) -> Result<(), Error> {
        let most = most_bytes(self.most_bytes);
        if here > 0 {
            plan.require_memory(self.count, most / here as u64)?;
        }
        let forecast = plan.forecast(self.count);
        if self.keys == Origin::Generate || forecast.setup_bytes <= most {
            return Ok(());
        }
        Err(synchromesh_triples::Error::TooLarge {
            shape: plan.shape().to_string(),
            count: self.count,
            bytes: forecast.setup_bytes,
            most,
            bytes_sent: forecast.bytes_sent,
            seconds: forecast.seconds as u64,
        }
        .into())
    }
}

/// What a plan says of the triples it makes.
fn describe(plan: &GenerationPlan, count: usize) -> Map<String, Value> {
    let (rlwe, forecast) = (plan.params().rlwe(), plan.forecast(count));
    let object = json!({
        "parties": plan.parties(),
        "shape": plan.shape().to_string(),
        "shapes": plan.shapes().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "count": count,
        "statistical_security": plan.statistical_security(),
        "security_model": model(plan),
        "keys": match plan.keys() {
            Keys::Dealt => "dealer",
            Keys::Generated => "generate",
        },
        "window": plan.window(),
        "security_bits": rlwe.security_bits(),
        "log_n": plan.params().log_n(),
        "log_q": rlwe.ring().log2(rlwe.q()).ceil(),
        "log_qp": rlwe.log_qp(),
        "mask_bits": plan.mask_bits(),
        "packing": plan.matrices().to_string(),
        "forecast": json!({
            "memory_bytes": forecast.memory_bytes,
            "bytes_sent": forecast.bytes_sent,
            "seconds": forecast.seconds,
        }),
        // In what the plan gives less than a party takes without a word.
        "lowered": plan.shortfalls(),
    });
    match object {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Against whom the triples are safe.
fn model(plan: &GenerationPlan) -> &'static str {
    match (plan.keys(), plan.proofs()) {
        (Keys::Dealt, Proofs::Knowledge) => "dealer",
        (Keys::Dealt, Proofs::Nothing) => "dealer, honest encryptions",
        (Keys::Generated, Proofs::Knowledge) => "dishonest majority, ring-LWE with hints",
        (Keys::Generated, Proofs::Nothing) => "dishonest majority, honest encryptions, ring-LWE with hints",
    }
}

fn names(files: &[PathBuf]) -> Value {
    files.iter().map(|path| Value::from(path.display().to_string())).collect()
}

pub(crate) fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.display().to_string(), source }
}

/// One party's run.
#[derive(Debug, Clone)]
pub struct Party {
    /// The run.
    pub run: party::Party,
    /// Whether to say on standard error where it is.
    pub progress: bool,
}

/// A phase with its memory.
#[derive(Debug, Clone, Serialize)]
struct Measured {
    name: &'static str,
    seconds: f64,
    bytes_sent: u64,
    rounds: u64,
    peak_bytes: Option<u64>,
}

/// Peaks of memory by phase, and lines of progress.
struct Watch {
    phase: &'static str,
    since: Instant,
    peaks: Vec<(&'static str, u64)>,
    speak: bool,
}

impl Watch {
    fn new(speak: bool) -> Self {
        memory::forget_peak();
        Self { phase: "session", since: Instant::now(), peaks: Vec::new(), speak }
    }

    /// Ends a phase.
    fn settle(&mut self) {
        let peak = memory::peak_bytes().unwrap_or(0);
        match self.peaks.iter_mut().find(|(name, _)| *name == self.phase) {
            Some((_, most)) => *most = peak.max(*most),
            None => self.peaks.push((self.phase, peak)),
        }
        memory::forget_peak();
    }

    fn see(&mut self, progress: Progress) {
        if progress.phase != self.phase {
            self.settle();
            (self.phase, self.since) = (progress.phase, Instant::now());
        }
        if self.speak {
            let Progress { phase, done, of, bytes_sent, rounds } = progress;
            let spent = self.since.elapsed().as_secs_f64();
            let left = match done {
                0 => String::new(),
                done => format!(", about {:.0} s left", spent / done as f64 * (of - done.min(of)) as f64),
            };
            say(&format!("{phase} {done}/{of}: {:.1} MB sent, {rounds} rounds{left}\n", bytes_sent as f64 / 1e6));
        }
    }

    fn measured(&self, phases: &[Phase]) -> Vec<Measured> {
        let peak = |name| self.peaks.iter().find(|(phase, _)| *phase == name).map(|(_, peak)| *peak);
        let one = |phase: &Phase| Measured {
            name: phase.name,
            seconds: phase.seconds,
            bytes_sent: phase.bytes_sent,
            rounds: phase.rounds,
            peak_bytes: peak(phase.name),
        };
        phases.iter().map(one).collect()
    }
}

impl Party {
    /// Meets the others, makes triples, and writes this party's files.
    ///
    /// # Errors
    /// [`Error::Triples`], among others an abort with its blame: nothing is written then.
    pub fn run(&self) -> Result<Map<String, Value>, Error> {
        let watch = RefCell::new(Watch::new(self.progress));
        let made = self.run.make(&|progress| watch.borrow_mut().see(progress), None)?;
        let mut report = describe(made.plan(), self.run.wants.first().map_or(0, Want::count));
        report.insert("made".into(), made.took().iter().map(took).collect());
        let phases = watch.borrow().measured(made.phases());
        report.insert("party".into(), self.run.id.into());
        report.insert("phases".into(), serde_json::to_value(phases).unwrap_or_default());
        if !made.unmatched().is_empty() {
            report.insert("void".into(), names(made.unmatched()));
        }
        report.insert("files".into(), names(&made.write()?));
        Ok(report)
    }
}

/// What making something took, and what that is for a thousand of it.
fn took(took: &Took) -> Value {
    let each = 1000.0 / took.total.max(1) as f64;
    json!({
        "what": took.want.what(),
        "count": took.total,
        "seconds": took.seconds,
        "bytes_sent": took.bytes_sent,
        "rounds": took.rounds,
        "seconds_per_1000": took.seconds * each,
        "bytes_sent_per_1000": took.bytes_sent as f64 * each,
    })
}

/// Makes a party's certificate, and says its fingerprint.
///
/// # Errors
/// [`Error::Triples`] if the file is there already.
pub fn identity(path: &Path) -> Result<Map<String, Value>, Error> {
    let identity = Identity::new()?;
    identity.write(path)?;
    let mut report = Map::new();
    report.insert("file".into(), path.display().to_string().into());
    report.insert("fingerprint".into(), hosts::fingerprint_text(&identity.fingerprint()).into());
    Ok(report)
}
