//! Search among encrypted vectors: plans, queries, data sets in directories, and what was found.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use synchromesh::bundle::{BundleError, Unproven};
use synchromesh::ckks::{self, Ckks, Complex64};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::wire::{KeyId, peek};
use synchromesh::rlwe::{Randomness, Security, memory};
use synchromesh::search;
use synchromesh::session::{Engine, Erased, Session};
use synchromesh::{Error, rlwe};
use synchromesh_cuda::AnyDevice;

use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::fault::Fault;
use crate::keys::{Envelope, SecretKey};
use crate::run::{counted, detached, interruptible};
use crate::values::{bytes_of, copied};

fn described(literal: &str) -> Result<search::Search, Fault> {
    serde_json::from_str(literal)
        .map_err(|error| Fault::own("argument", format!("no search: {error}"), "correct the number named"))
}

/// The plan of a search, as JSON.
#[pyfunction]
pub(crate) fn plan_search(py: Python<'_>, literal: String, security: &str) -> PyResult<String> {
    let wrong = || Fault::own("params", "no such level of security", "choose 128, 192, 256 or 'insecure'");
    let security: Security = serde_json::from_value(security.into()).map_err(|_| wrong())?;
    interruptible(py, move || Ok(described(&literal)?.plan(security)?.to_json()?))
}

/// Bytes of memory that can be had now; None where the system does not say.
#[pyfunction]
pub(crate) fn available_memory() -> Option<u64> {
    memory::available_bytes()
}

/// A search in a context of its plan.
#[derive(Clone)]
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct Search {
    search: search::Search,
    session: Arc<Session<Ckks, AnyDevice>>,
    context: Context,
}

/// An encrypted query, expanded to a ciphertext for each coordinate.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct Query {
    coordinates: Arc<Vec<ckks::Ciphertext<AnyDevice>>>,
    key: KeyId,
    /// Whether it is authenticated, as the files that it is to meet.
    keyed: bool,
}

/// The scores or marks of records, and the numbers that they carry.
type MarksAndNumbers<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<u16>>);

impl Search {
    fn envelope(&self, id: KeyId) -> Option<Arc<Envelope>> {
        self.context.envelopes.of(id)
    }
}

/// Why certificates are believed: those who wrote them hold the envelope key, or the caller says so.
fn trust(keyed: bool, envelope: Option<&Envelope>, on_word: bool) -> Result<Trust<'_>, Fault> {
    match envelope {
        Some(envelope) if keyed => Ok(Trust::Envelope(&envelope.key)),
        None if keyed => Err(Unproven::NoEnvelopeKey.into()),
        _ if on_word => Ok(Trust::Certificate),
        _ => Err(Unproven::NotSealed.into()),
    }
}

#[pymethods]
impl Search {
    #[new]
    fn new(context: &Context, literal: &str) -> PyResult<Self> {
        let session = Arc::clone(context.keyed()?).into_any().downcast::<Session<Ckks, AnyDevice>>();
        let wrong = |_| Fault::own("scheme", "a search in a context of another scheme", "use the search's own plan");
        Ok(Self { search: described(literal)?, session: session.map_err(wrong)?, context: context.clone() })
    }

    /// Records of a block.
    #[getter]
    fn block(&self) -> usize {
        search::Search::block(self.session.context())
    }

    /// Refuses coordinates of records, counted from `first`, that are no unit vectors.
    fn check(&self, py: Python<'_>, first: usize, records: &Bound<'_, PyArray1<f32>>) -> PyResult<()> {
        let (records, search) = (copied(records)?, self.search);
        interruptible(py, move || Ok(search.check_records(first, &records)?))
    }

    /// A query as its encryption travels.
    fn encrypt<'py>(
        &self,
        py: Python<'py>,
        secret: &SecretKey,
        vector: &Bound<'py, PyArray1<f64>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.context.require_own(&secret.context, "secret key")?;
        let (vector, envelope) = (copied(vector)?, self.envelope(secret.key.id()));
        let bytes = detached(py, || {
            let context = self.session.context();
            let message = self.search.encode_query(context, &vector)?;
            let top = context.params().top_level();
            let (made, seed) = context.encrypt_with_secret(&secret.key, &message, top, &mut Randomness::from_os())?;
            Ok(made.to_seeded_bytes(context, &seed, envelope.as_deref().map(|envelope| &envelope.key))?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The query in such bytes, its certificate authenticated under the context's envelope key, or believed on the caller's
    /// word.
    fn expand(&self, py: Python<'_>, bytes: &Bound<'_, PyArray1<u8>>, on_word: bool) -> PyResult<Query> {
        let (bytes, own) = (bytes_of(bytes)?, self.clone());
        interruptible(py, move || {
            let found = peek(&bytes).map_err(rlwe::Error::from)?;
            let (key, keyed) = (found.header.key, found.keyed);
            let envelope = own.envelope(key);
            let trust = trust(keyed, envelope.as_deref(), on_word)?;
            let query = ckks::Ciphertext::from_bytes(own.session.context(), &bytes, None, trust)?;
            let coordinates = own.search.expanded(&*own.session.evaluator_of(&query), &query)?;
            Ok(Query { coordinates: Arc::new(coordinates), key, keyed })
        })
    }

    /// The scores or marks of `count` records of a block and the numbers that they carry, from the slots of its replies.
    fn read<'py>(
        &self,
        py: Python<'py>,
        slots: &Bound<'py, PyArray1<numpy::Complex64>>,
        count: usize,
    ) -> PyResult<MarksAndNumbers<'py>> {
        let width = self.session.context().params().slots();
        let slots: Vec<Complex64> = copied(slots)?.iter().map(|z| Complex64::new(z.re, z.im)).collect();
        let replies: Vec<Vec<Complex64>> = slots.chunks(width).map(<[Complex64]>::to_vec).collect();
        let (marks, carried) = self.search.read(&replies, count).map_err(Fault::from)?;
        Ok((marks.into_pyarray(py), carried.into_pyarray(py)))
    }
}

/// An encrypted data set in a directory.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct SearchFiles {
    database: Arc<search::Database>,
    search: Search,
}

impl SearchFiles {
    fn context(&self) -> &ckks::Context<AnyDevice> {
        self.search.session.context()
    }
}

#[pymethods]
impl SearchFiles {
    /// One that is to be written.
    #[staticmethod]
    fn create(search: &Search, directory: PathBuf, records: usize) -> PyResult<Self> {
        let database = search::Database::create(&directory, search.search, records).map_err(Fault::from)?;
        Ok(Self { database: Arc::new(database), search: search.clone() })
    }

    /// One that was written.
    #[staticmethod]
    fn open(py: Python<'_>, context: &Context, directory: PathBuf) -> PyResult<Self> {
        let database = detached(py, || Ok(search::Database::open(&directory)?))?;
        let literal = serde_json::to_string(database.search()).map_err(|_| crate::run::internal())?;
        let search = Search::new(context, &literal)?;
        detached(py, || Ok(database.require_whole(search.session.context())?))?;
        Ok(Self { database: Arc::new(database), search })
    }

    /// The search by its numbers, as JSON.
    #[getter]
    fn literal(&self) -> PyResult<String> {
        Ok(serde_json::to_string(self.database.search()).map_err(|_| crate::run::internal())?)
    }

    #[getter]
    fn records(&self) -> usize {
        self.database.records()
    }

    #[getter]
    fn blocks(&self) -> usize {
        self.database.blocks(self.context())
    }

    /// Bytes of all files, at most.
    #[getter]
    fn bytes(&self) -> PyResult<u64> {
        Ok(self.database.bytes(self.context()).map_err(Fault::from)?)
    }

    /// The first record of a block, and the first one after it.
    fn span(&self, block: usize) -> (usize, usize) {
        let span = self.database.of_block(self.context(), block);
        (span.start, span.end)
    }

    /// Files of a block, and ciphertexts that come back for it.
    fn counts(&self, block: usize) -> (usize, usize) {
        (self.database.files(self.context(), block), self.database.replies(self.context(), block))
    }

    /// Encrypts the records of a block, and the numbers that they carry, into files.
    #[pyo3(signature = (secret, block, records, carried, progress=None))]
    fn encrypt(
        &self,
        py: Python<'_>,
        secret: &SecretKey,
        block: usize,
        records: &Bound<'_, PyArray1<f32>>,
        carried: &Bound<'_, PyArray1<u16>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.search.context.require_own(&secret.context, "secret key")?;
        let (records, carried, key) = (copied(records)?, copied(carried)?, Arc::clone(&secret.key));
        let (database, session) = (Arc::clone(&self.database), Arc::clone(&self.search.session));
        let envelope = self.search.envelope(key.id());
        counted(py, progress, move |steps| {
            let by = (&*key, envelope.as_deref().map(|envelope| &envelope.key));
            Ok(database.encrypt(session.context(), by, block, (&records, &carried), &|| steps.step())?)
        })
    }

    /// Says that all blocks are there.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || Ok(self.database.finish(self.context())?))
    }

    /// What a query finds in a block.
    #[pyo3(signature = (query, block, on_word, progress=None))]
    fn find(
        &self,
        py: Python<'_>,
        query: &Query,
        block: usize,
        on_word: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Ciphertext>> {
        let (database, session) = (Arc::clone(&self.database), Arc::clone(&self.search.session));
        let (coordinates, envelope) = (Arc::clone(&query.coordinates), self.search.envelope(query.key));
        let keyed = query.keyed;
        let made = counted(py, progress, move |steps| {
            let trust = trust(keyed, envelope.as_deref(), on_word)?;
            let none = || Error::Argument { rule: "a query of no coordinates".into() };
            let evaluator = session.evaluator_of(coordinates.first().ok_or_else(none)?);
            let found = database.find(&evaluator, &coordinates, block, trust, &|| steps.step());
            found.map_err(|error| match error {
                BundleError::Plan(error) => Fault::from(error),
                error => error.into(),
            })
        })?;
        let engine: Arc<dyn Engine> = Arc::clone(&self.search.session) as Arc<dyn Engine>;
        Ok(made.into_iter().map(|x| Ciphertext::new(&engine, Erased::new(x))).collect())
    }
}
