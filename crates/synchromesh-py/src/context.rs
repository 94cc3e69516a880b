//! Contexts: what Python holds of parameters on a device.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use synchromesh::bundle::{Bundle, CIPHERTEXT, COLUMN, ColumnHead, KEY, Kind, PLAN, Unproven};
use synchromesh::plan::Plan;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::derived_key::second_id;
use synchromesh::rlwe::wire;
use synchromesh::rlwe::{KeyId, Randomness};
use synchromesh::rotations::Rotations;
use synchromesh::scheme::{Binary, Encryptor, Operation};
use synchromesh::session::{AnySession, Engine, Erased};
use synchromesh_cuda::{AnyDevice, DeviceChoice};
use synchromesh_ring::BackendError;
use zeroize::Zeroizing;

use crate::ciphertext::{Ciphertext, slots};
use crate::fault::Fault;
use crate::files::{Column, TENSOR};
use crate::keys::{Envelope, EnvelopeKey, EvaluationKeys, PublicKey, SecretKey};
use crate::matrices::{self, MatrixProduct};
use crate::run::{detached, interruptible};
use crate::values::{bytes_of, from_array};

/// Parameters on a device: of a plan, or of a dry run, which holds no data and has no keys.
#[derive(Clone)]
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct Context {
    pub(crate) engine: Arc<dyn Engine>,
    keyed: Option<Arc<dyn AnySession<AnyDevice>>>,
    plan: Arc<str>,
    device: DeviceChoice,
    /// The plan as ciphertexts take it along.
    bare: Arc<str>,
    pub(crate) envelopes: Arc<Envelopes>,
}

/// Envelope keys by the secret keys whose files they are for.
#[derive(Default)]
pub(crate) struct Envelopes(RwLock<HashMap<KeyId, Arc<Envelope>>>);

impl Envelopes {
    /// The one for files under a secret key, or under the second one that belongs to it.
    pub(crate) fn of(&self, id: KeyId) -> Option<Arc<Envelope>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    fn insert(&self, envelope: &Arc<Envelope>) {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for id in [envelope.id, second_id(envelope.id)] {
            held.insert(id, Arc::clone(envelope));
        }
    }
}

impl Context {
    /// The context of a dry run.
    pub(crate) fn of_dry_run(engine: Arc<dyn Engine>) -> Self {
        let (plan, bare) = ("".into(), "".into());
        Self { engine, keyed: None, plan, device: DeviceChoice::Cpu, bare, envelopes: Arc::default() }
    }

    /// The context of a plan on a device of this machine.
    pub(crate) fn of_plan(plan: &Plan, text: &str, device: DeviceChoice) -> Result<Self, Fault> {
        let keyed = plan.open_any_on(|ring| AnyDevice::open(ring, device).map_err(of_device))?;
        let engine: Arc<dyn Engine> = Arc::clone(&keyed) as Arc<dyn Engine>;
        let bare = plan.bare().to_json()?.into();
        Ok(Self { engine, keyed: Some(keyed), plan: text.into(), device, bare, envelopes: Arc::default() })
    }

    pub(crate) fn keyed(&self) -> Result<&Arc<dyn AnySession<AnyDevice>>, Fault> {
        let remedy = "make a Context of the plan that the dry run returns";
        self.keyed.as_ref().ok_or_else(|| Fault::own("dry_run", "a dry run has no keys and no data", remedy))
    }

    /// A file that holds the plan and a key of the secret key `id`, sealed if there is an envelope key for it.
    pub(crate) fn bundle(&self, kind: Kind, key: &[u8], id: KeyId) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let envelope = self.envelopes.of(id);
        let sections = [(PLAN, self.plan.as_bytes()), (KEY, key)];
        Ok(Bundle::encode(kind, &sections, envelope.as_deref().map(|envelope| &envelope.key))?)
    }

    pub(crate) fn require_own(&self, other: &Self, what: &str) -> Result<(), Fault> {
        if self.keyed()?.rlwe().params() == other.keyed()?.rlwe().params() {
            return Ok(());
        }
        let message = format!("the {what} were made under other parameters");
        Err(Fault::own("params_differ", message, "use keys of this context's plan"))
    }
}

/// The device of this name, or of the environment.
pub(crate) fn device(name: Option<&str>) -> Result<DeviceChoice, Fault> {
    let choice = name.map_or_else(DeviceChoice::of_environment, str::parse);
    choice.map_err(|error| of_device(error).into())
}

/// A device's error in the library's words.
fn of_device(error: BackendError) -> synchromesh_rlwe::Error {
    synchromesh_ring::Error::from(error).into()
}

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (plan, device=None))]
    fn new(py: Python<'_>, plan: String, device: Option<&str>) -> PyResult<Self> {
        let device = self::device(device)?;
        interruptible(py, move || Self::of_plan(&Plan::from_json(&plan)?, &plan, device))
    }

    #[getter]
    fn plan(&self) -> &str {
        &self.plan
    }

    #[getter]
    fn device(&self) -> String {
        self.device.to_string()
    }

    #[getter]
    fn slots(&self) -> usize {
        self.engine.slots().map_or(0, |shape| shape.count())
    }

    #[getter]
    fn row(&self) -> usize {
        self.engine.slots().map_or(0, |shape| shape.row)
    }

    #[getter]
    fn top_level(&self) -> usize {
        self.engine.top_level()
    }

    #[getter]
    fn dry(&self) -> bool {
        self.keyed.is_none()
    }

    /// Bytes of a ciphertext of two components at a level, in memory.
    fn ciphertext_bytes(&self, level: usize) -> PyResult<usize> {
        let params = self.keyed()?.rlwe().params();
        Ok(16 * params.n() * params.level(level).map_err(Fault::from)?.len())
    }

    /// A secret key, its public key and the envelope key of their files, which the context holds from then on.
    fn generate_keys(&self, py: Python<'_>) -> PyResult<(SecretKey, PublicKey, EnvelopeKey)> {
        let (context, keyed) = (self.clone(), Arc::clone(self.keyed()?));
        let (secret, public) = interruptible(py, move || Ok(keyed.generate_keys(&mut Randomness::from_os())?))?;
        let key = wire::EnvelopeKey::random().map_err(|e| Fault::from(synchromesh_rlwe::Error::from(e)))?;
        let envelope = Arc::new(Envelope { key, id: secret.id() });
        self.envelopes.insert(&envelope);
        let public = PublicKey { context: context.clone(), key: Arc::new(public) };
        let envelope = EnvelopeKey { context: context.clone(), key: envelope };
        Ok((SecretKey { context, key: Arc::new(secret) }, public, envelope))
    }

    /// Authenticates what is written under the key's secret key, and believes what is authenticated.
    fn add_envelope(&self, key: &EnvelopeKey) -> PyResult<()> {
        self.require_own(&key.context, "envelope keys")?;
        self.envelopes.insert(&key.key);
        Ok(())
    }

    fn generate_evaluation_keys(
        &self,
        py: Python<'_>,
        secret: &SecretKey,
        rotations: Vec<i64>,
        swap: bool,
    ) -> PyResult<EvaluationKeys> {
        let (keyed, secret) = (Arc::clone(self.keyed()?), Arc::clone(&secret.key));
        let rotations = Rotations { swap, ..Rotations::by(rotations) };
        let work = move || Ok(keyed.generate_keys_for(&secret, &rotations, &mut Randomness::from_os())?);
        let keys = interruptible(py, work)?;
        Ok(EvaluationKeys { context: self.clone(), key: Arc::new(keys) })
    }

    /// The keys that bring what is under `origin` under `secret`.
    fn generate_rekeying(&self, py: Python<'_>, secret: &SecretKey, origin: &SecretKey) -> PyResult<EvaluationKeys> {
        self.require_own(&origin.context, "secret key")?;
        let (keyed, secret, origin) = (Arc::clone(self.keyed()?), Arc::clone(&secret.key), Arc::clone(&origin.key));
        let keys =
            interruptible(py, move || Ok(keyed.generate_rekeying(&secret, &origin, &mut Randomness::from_os())?))?;
        Ok(EvaluationKeys { context: self.clone(), key: Arc::new(keys) })
    }

    /// Ciphertexts under the secret key of these keys.
    fn rekey(
        &self,
        py: Python<'_>,
        keys: &EvaluationKeys,
        parts: Vec<Bound<'_, Ciphertext>>,
    ) -> PyResult<Vec<Ciphertext>> {
        self.require_own(&keys.context, "evaluation keys")?;
        let (keyed, keys) = (Arc::clone(self.keyed()?), Arc::clone(&keys.key));
        let parts: Vec<_> = parts.iter().map(|part| Arc::clone(&part.get().cipher)).collect();
        let made = interruptible(py, move || {
            parts.iter().map(|part| Ok(keyed.rekey(&keys, part)?)).collect::<Result<Vec<_>, Fault>>()
        })?;
        Ok(made.into_iter().map(|cipher| Ciphertext::new(&self.engine, cipher)).collect())
    }

    fn add_keys(&self, keys: &EvaluationKeys) -> PyResult<()> {
        self.require_own(&keys.context, "evaluation keys")?;
        self.keyed()?.add_keys(&keys.key);
        Ok(())
    }

    /// Whether what one of the two made is at hand for the other: contexts on the CPU have one memory, others one each.
    fn shares_memory(&self, other: &Self) -> bool {
        let on_cpu = [self, other].iter().all(|context| context.device == DeviceChoice::Cpu);
        on_cpu || Arc::ptr_eq(&self.engine, &other.engine)
    }

    /// Ciphertexts of a context of the same parameters, on this one's device.
    fn bring(&self, py: Python<'_>, context: &Self, parts: Vec<Bound<'_, Ciphertext>>) -> PyResult<Vec<Ciphertext>> {
        self.require_own(context, "ciphertexts")?;
        let (keyed, from) = (Arc::clone(self.keyed()?), Arc::clone(context.keyed()?));
        let parts: Vec<_> = parts.iter().map(|part| Arc::clone(&part.get().cipher)).collect();
        let moved = interruptible(py, move || {
            parts.iter().map(|part| Ok(keyed.bring(&from, part)?)).collect::<Result<Vec<_>, Fault>>()
        })?;
        Ok(moved.into_iter().map(|cipher| Ciphertext::new(&self.engine, cipher)).collect())
    }

    /// Encrypts several vectors with a public or secret key, on all threads where there are as many.
    fn encrypt(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        values: Vec<Bound<'_, PyAny>>,
        bound: f64,
        level: usize,
    ) -> PyResult<Vec<Ciphertext>> {
        let (keyed, values) = (self.keyed()?, values.iter().map(from_array).collect::<PyResult<Vec<_>>>()?);
        let encrypt = |by: Encryptor<'_, AnyDevice>| {
            let one = |values| Ok(keyed.encrypt(&by, &values, bound, level, &mut Randomness::from_os())?);
            detached(py, || keyed.threads().try_map(values, one))
        };
        let made = if let Ok(public) = key.cast::<PublicKey>() {
            encrypt(Encryptor::Public(&public.get().key))?
        } else if let Ok(secret) = key.cast::<SecretKey>() {
            encrypt(Encryptor::Secret(&secret.get().key))?
        } else {
            let message = format!("{} is no key to encrypt with", key.get_type().name()?);
            return Err(Fault::own("key_type", message, "pass a PublicKey or a SecretKey").into());
        };
        Ok(made.into_iter().map(|cipher| Ciphertext::new(&self.engine, cipher)).collect())
    }

    /// How the product of encrypted matrices of `shape` = R, K, C is made, whose elements, row after row, lie at `left`
    /// and `right`, if that costs less than `most`.
    fn matrix_product(
        &self,
        py: Python<'_>,
        shape: [usize; 3],
        left: &Bound<'_, PyArray1<i64>>,
        right: &Bound<'_, PyArray1<i64>>,
        most: f64,
    ) -> PyResult<MatrixProduct> {
        let (left, right, engine) = (slots(left)?, slots(right)?, Arc::clone(&self.engine));
        let [rows, inner, columns] = shape;
        if rows.checked_mul(inner) != Some(left.len()) || inner.checked_mul(columns) != Some(right.len()) {
            let message = format!("{} and {} slots for a product of {shape:?}", left.len(), right.len());
            return Err(Fault::own("shape", message, "pass one slot for each element").into());
        }
        let layout = interruptible(py, move || matrices::cheapest(&*engine, shape, [&left, &right], most))?;
        Ok(MatrixProduct::new(Arc::clone(&self.engine), Arc::new(layout)))
    }

    /// The ciphertext in a container, its certificate believed on the caller's word.
    fn read_ciphertext(&self, py: Python<'_>, bytes: &Bound<'_, PyArray1<u8>>) -> PyResult<Ciphertext> {
        let bytes = bytes_of(bytes)?;
        let cipher = detached(py, || Ok(self.engine.read(&bytes, None, Trust::Certificate)?))?;
        Ok(Ciphertext::new(&self.engine, cipher))
    }

    /// The file of an encrypted column of `rows` numbers: the plan, its name, its ciphertexts, and the tensor's description.
    /// Sealed if there is an envelope key for it and no certificate is believed on the user's word.
    fn encode_column<'py>(
        &self,
        py: Python<'py>,
        name: String,
        rows: usize,
        tensor: &[u8],
        parts: Vec<Bound<'py, Ciphertext>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let parts: Vec<Ciphertext> = parts.iter().map(|part| part.get().clone()).collect();
        let bytes = detached(py, || {
            let states = parts.iter().map(|x| self.engine.state(&x.cipher)).collect::<Result<Vec<_>, _>>()?;
            let envelope = states.first().and_then(|state| self.envelopes.of(state.key));
            let envelope = envelope.filter(|_| !states.iter().any(|state| state.on_word));
            let containers = parts.iter().map(|x| self.engine.write(&x.cipher)).collect::<Result<Vec<_>, _>>()?;
            let head = ColumnHead { name, rows }.to_bytes()?;
            let mut sections = vec![(PLAN, self.bare.as_bytes()), (COLUMN, &head[..]), (TENSOR, tensor)];
            sections.extend(containers.iter().map(|bytes| (CIPHERTEXT, &bytes[..])));
            Ok(Bundle::encode(Kind::Column, &sections, envelope.as_deref().map(|envelope| &envelope.key))?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The ciphertexts of a column, and whether their certificates are believed: since the file is authentic under an
    /// envelope key of the context, or else since the caller says so.
    fn read_column(&self, py: Python<'_>, column: &Column, on_word: bool) -> PyResult<(Vec<Ciphertext>, bool)> {
        let (parts, believed) = detached(py, || {
            let envelope = self.envelopes.of(column.bundle.key_id()?);
            let trust = match column.bundle.trust(envelope.as_deref().map(|envelope| &envelope.key), on_word) {
                Err(Unproven::NotAuthentic) => return Err(Unproven::NotAuthentic.into()),
                trust => trust.unwrap_or(Trust::Nothing),
            };
            let read = |bytes| self.engine.read(bytes, None, trust);
            let parts = column.bundle.all(CIPHERTEXT).map(read).collect::<Result<Vec<Erased>, _>>()?;
            let believed = !matches!(trust, Trust::Nothing);
            if let (false, Some(part)) = (believed, parts.first()) {
                // Every operation would be refused: better now, in all schemes, than at the first of them.
                self.engine.apply(&Operation::Binary(Binary::Add), &[part, part])?;
            }
            Ok((parts, believed))
        })?;
        Ok((parts.into_iter().map(|cipher| Ciphertext::new(&self.engine, cipher)).collect(), believed))
    }
}
