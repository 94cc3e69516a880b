//! Matrix triples: dealing keys, one party's run, and blocks of products for the workers of a party.
//!
//! A run has a thread of its own, which never calls Python. What it wants from Python, a report of progress or a block from workers,
//! it asks of the thread that waits for it, so that Ctrl-C ends the wait at once and workers are asked where they were made.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use synchromesh::rlwe::Security;
use synchromesh_ring::threads::spawn;
use synchromesh_triples::generation::{
    Floor, GenerationPlan, Keys, MOST_BYTES, Phase, Progress, Proofs, Request, Setup, Workers, deal_into_with,
};
use synchromesh_triples::mp_spdz::Preprocessing;
use synchromesh_triples::parties::hosts;
use synchromesh_triples::parties::tls::Identity;
use synchromesh_triples::party::{Format, Made, Party, Spread, Took, Want};
use synchromesh_triples::{Error, Field, Shape, field};

use crate::fault::Fault;
use crate::run::{SLICE, detached, guarded, interruptible};
use crate::values::bytes_of;

/// Plan and public keys of a session, for the workers of a party.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct TripleSetup {
    setup: Setup,
}

#[pymethods]
impl TripleSetup {
    /// From the contents of `plan.json`, `public.key`, `eval.keys` and, from a dealer, `mac.ct`.
    #[new]
    #[pyo3(signature = (plan, public, keys, mac=None))]
    fn new(
        py: Python<'_>,
        plan: String,
        public: &Bound<'_, PyArray1<u8>>,
        keys: &Bound<'_, PyArray1<u8>>,
        mac: Option<&Bound<'_, PyArray1<u8>>>,
    ) -> PyResult<Self> {
        let (public, keys, mac) = (bytes_of(public)?, bytes_of(keys)?, mac.map(bytes_of).transpose()?);
        interruptible(py, move || {
            // A worker multiplies what is public; what is taken is decided by the party whose worker it is.
            let plan = GenerationPlan::from_json(&plan, &Floor::NONE)?;
            Ok(Self { setup: Setup::from_bytes(plan, &public, &keys, mac)? })
        })
    }

    /// Which setup it is: the hash of all of it.
    #[getter]
    fn digest(&self) -> String {
        self.setup.digest().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The products of a block.
    fn multiply_block<'py>(
        &self,
        py: Python<'py>,
        block: &Bound<'py, PyBytes>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let block = block.as_bytes();
        let made = detached(py, || Ok(self.setup.multiply_block(block, threads)?))?;
        Ok(PyBytes::new(py, &made))
    }
}

/// Chooses parameters and deals keys into a directory.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is an argument of Python's function")]
pub(crate) fn deal_triples(
    py: Python<'_>,
    directory: PathBuf,
    parties: usize,
    shapes: Vec<String>,
    count: usize,
    security: u32,
    prime: Option<String>,
    decryptions: u32,
    log_n: Option<u32>,
    generate: bool,
    insecure: bool,
    mac_keys: Option<PathBuf>,
) -> PyResult<()> {
    interruptible(py, move || {
        let shapes = shapes.iter().map(|shape| shape.parse()).collect::<Result<Vec<Shape>, Error>>()?;
        let Some((&shape, more)) = shapes.split_first() else {
            return Err(Fault::own("shape", "no shape", "give one"));
        };
        let field: Field = prime.as_deref().unwrap_or(field::DEFAULT_PRIME).parse()?;
        let keys = if generate { Keys::Generated } else { Keys::Dealt };
        let request = Request {
            count,
            statistical_security: security,
            log2_decryptions: decryptions,
            log_n,
            keys,
            window: keys.window(),
            security: if insecure { Security::Insecure } else { Security::Bits128 },
            more: more.to_vec(),
            ..Request::new(&field, parties, shape)
        };
        let plan = GenerationPlan::find(&request)?;
        std::fs::create_dir_all(&directory).map_err(|e| {
            Fault::own("file_system", format!("{}: {e}", directory.display()), "choose another directory")
        })?;
        if generate {
            return Ok(plan.write(&directory)?);
        }
        let of = |root: &PathBuf, party| Preprocessing::new(root, plan.field(), party, plan.parties())?.known_key();
        let macs = mac_keys.map(|root| (0..plan.parties()).map(|party| of(&root, party)).collect::<Result<_, Error>>());
        let macs = macs.transpose()?;
        deal_into_with(plan, macs, &directory)?;
        Ok(())
    })
}

/// Makes a party's certificate; the fingerprint that the others need.
#[pyfunction]
pub(crate) fn triples_identity(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    detached(py, || {
        let identity = Identity::new()?;
        identity.write(&path)?;
        Ok(hosts::fingerprint_text(&identity.fingerprint()))
    })
}

/// What a run asks of the thread that waits for it.
enum Event {
    Progress(Progress),
    Begin(u64, Vec<u8>),
    Finish(u64),
    Done(Box<Result<Made, Fault>>),
}

/// Workers behind the thread that waits.
struct Asked {
    count: usize,
    events: Sender<Event>,
    replies: Receiver<Option<Vec<u8>>>,
}

impl Asked {
    fn ask(&self, event: Event) -> synchromesh_triples::Result<Vec<u8>> {
        let reply = self.events.send(event).ok().and_then(|()| self.replies.recv().ok()).flatten();
        reply.ok_or_else(|| Error::Workers { reason: "no worker computed a block".into() })
    }
}

impl Workers for Asked {
    fn count(&self) -> usize {
        self.count
    }

    fn begin(&mut self, number: u64, block: Vec<u8>) -> synchromesh_triples::Result<()> {
        self.ask(Event::Begin(number, block)).map(drop)
    }

    fn finish(&mut self, number: u64) -> synchromesh_triples::Result<Vec<u8>> {
        self.ask(Event::Finish(number))
    }
}

/// Files, phases, in what the plan is below what is wanted as a rule, files that are void, and what each thing took.
type Ran = (Vec<PathBuf>, Vec<Measured>, Vec<String>, Vec<PathBuf>, Vec<(String, usize, f64, u64, u64)>);

/// A phase: name, seconds, bytes sent, rounds.
type Measured = (&'static str, f64, u64, u64);

fn measured(phase: &Phase) -> Measured {
    (phase.name, phase.seconds, phase.bytes_sent, phase.rounds)
}

fn took(took: &Took) -> (String, usize, f64, u64, u64) {
    (took.want.what(), took.total, took.seconds, took.bytes_sent, took.rounds)
}

/// Runs one party. `workers` has `count`, `begin(number, block)` and `finish(number)`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is an argument of Python's function")]
pub(crate) fn run_triples_party(
    py: Python<'_>,
    id: usize,
    hosts: PathBuf,
    setup: PathBuf,
    key: Option<PathBuf>,
    identity: PathBuf,
    out: PathBuf,
    count: usize,
    make: Vec<String>,
    mac_key: Option<PathBuf>,
    runs: Option<usize>,
    program_threads: Option<usize>,
    plain: bool,
    threads: usize,
    timeout: f64,
    insecure: bool,
    least_statistical_security: u32,
    without_proofs: bool,
    workers: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Ran> {
    let format = if plain { Format::Plain } else { Format::MpSpdz };
    let timeout = Duration::try_from_secs_f64(timeout)
        .map_err(|_| Fault::own("operation", format!("a timeout of {timeout} seconds"), "give seconds, at least 0"))?;
    let floor = Floor {
        statistical_security: least_statistical_security,
        insecure,
        proofs: if without_proofs { Proofs::Nothing } else { Proofs::Knowledge },
    };
    let most_bytes = MOST_BYTES;
    let wants = make.iter().map(|text| text.parse()).collect::<Result<Vec<Want>, Error>>().map_err(Fault::from)?;
    let wants = if wants.is_empty() { vec![Want::Matrices { shape: None, count }] } else { wants };
    let spread = Spread { runs, threads: program_threads };
    let party = Party {
        id,
        hosts,
        setup,
        key,
        identity,
        out,
        wants,
        spread,
        mac_key,
        threads,
        format,
        timeout,
        floor,
        most_bytes,
    };
    let workers_count = workers.as_ref().map(|workers| workers.bind(py).getattr("count")?.extract::<usize>());
    let workers_count = workers_count.transpose()?;
    let (events, asked) = channel();
    let (answers, replies) = channel();
    let run = move || {
        let watching = events.clone();
        // Where nobody waits any more the run ends here: unwound up to `guarded`, its connections closed.
        let observer = move |progress| {
            if watching.send(Event::Progress(progress)).is_err() {
                std::panic::resume_unwind(Box::new("nobody waits for this run"));
            }
        };
        let asked = workers_count.map(|count| Asked { count, events: events.clone(), replies });
        let made = guarded(|| {
            let workers = asked.map(|asked| Box::new(asked) as Box<dyn Workers>);
            Ok(party.make(&observer, workers)?)
        });
        drop(events.send(Event::Done(Box::new(made))));
    };
    let spawned = spawn("synchromesh", run);
    spawned.map_err(|e| Fault::own("thread", format!("no thread could be started: {e}"), "end other threads"))?;
    let made = attend(py, asked, &answers, workers.as_ref(), progress.as_ref())?;
    let phases = made.phases().iter().map(measured).collect();
    let (lowered, void) = (made.plan().shortfalls(), made.unmatched().to_vec());
    let all = made.took().iter().map(took).collect();
    let files = detached(py, || Ok(made.write()?))?;
    Ok((files, phases, lowered, void, all))
}

/// Answers what a run asks for, until it is done.
fn attend(
    py: Python<'_>,
    mut events: Receiver<Event>,
    answers: &Sender<Option<Vec<u8>>>,
    workers: Option<&Py<PyAny>>,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Made> {
    loop {
        let waited = py.detach(move || {
            let event = events.recv_timeout(SLICE);
            (events, event)
        });
        events = waited.0;
        let reply = match (waited.1, workers) {
            (Ok(Event::Done(made)), _) => return Ok((*made)?),
            (Ok(Event::Progress(at)), _) => {
                if let Some(progress) = progress {
                    progress.call1(py, (at.phase, at.done, at.of))?;
                }
                continue;
            }
            (Err(RecvTimeoutError::Timeout), _) => {
                py.check_signals()?;
                continue;
            }
            (Ok(Event::Begin(number, block)), Some(workers)) => {
                workers.call_method1(py, "begin", (number, PyBytes::new(py, &block)))?;
                Vec::new()
            }
            (Ok(Event::Finish(number)), Some(workers)) => {
                workers.call_method1(py, "finish", (number,))?.bind(py).cast::<PyBytes>()?.as_bytes().to_vec()
            }
            _ => return Err(crate::run::internal().into()),
        };
        // A run that is gone says so by the event that follows.
        drop(answers.send(Some(reply)));
    }
}
