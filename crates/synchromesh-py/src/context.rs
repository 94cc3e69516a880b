//! Contexts and keys: what Python holds of parameters on the CPU, and of the keys under them.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use synchromesh::bundle::{Bundle, KEY, Kind, MAX_FILE_BYTES, PLAN};
use synchromesh::plan::Plan;
use synchromesh::rlwe;
use synchromesh_rlwe::file::{self, Access, Existing};
use zeroize::Zeroizing;

use crate::ciphertext::Ciphertext;
use crate::engine::{self, Encryptor, Engine, Keyed};
use crate::fault::Fault;
use crate::run::{detached, interruptible};
use crate::values::Values;

/// Parameters on a device: of a plan on the CPU, or of a dry run, which holds no data and has no keys.
#[derive(Clone)]
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct Context {
    pub(crate) engine: Arc<dyn Engine>,
    keyed: Option<Arc<dyn Keyed>>,
    plan: Arc<str>,
}

impl Context {
    /// The context of a dry run.
    pub(crate) fn of_dry_run(engine: Arc<dyn Engine>) -> Self {
        Self { engine, keyed: None, plan: "".into() }
    }

    fn keyed(&self) -> Result<&Arc<dyn Keyed>, Fault> {
        let remedy = "make a Context of the plan that the dry run returns";
        self.keyed.as_ref().ok_or_else(|| Fault::own("dry_run", "a dry run has no keys and no data", remedy))
    }

    fn bundle(&self, kind: Kind, key: &[u8]) -> Result<Zeroizing<Vec<u8>>, Fault> {
        Ok(Bundle::encode(kind, &[(PLAN, self.plan.as_bytes()), (KEY, key)])?)
    }
}

/// The bytes of an array of uint8, copied if somebody could write to them meanwhile.
pub(crate) fn bytes_of(array: &Bound<'_, PyArray1<u8>>) -> PyResult<Vec<u8>> {
    let array = array.try_readonly().map_err(PyErr::from)?;
    let slice = array.as_slice();
    Ok(slice.map_err(|_| Fault::own("layout", "the bytes are not contiguous", "pass bytes"))?.to_vec())
}

#[pymethods]
impl Context {
    #[new]
    fn new(py: Python<'_>, plan: String) -> PyResult<Self> {
        interruptible(py, move || {
            let keyed = engine::open(&Plan::from_json(&plan)?)?;
            let engine: Arc<dyn Engine> = Arc::clone(&keyed) as Arc<dyn Engine>;
            Ok(Self { engine, keyed: Some(keyed), plan: plan.into() })
        })
    }

    #[getter]
    fn plan(&self) -> &str {
        &self.plan
    }

    #[getter]
    fn slots(&self) -> usize {
        self.engine.slots()
    }

    #[getter]
    fn row(&self) -> usize {
        self.engine.row()
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

    fn generate_keys(&self, py: Python<'_>) -> PyResult<(SecretKey, PublicKey)> {
        let (context, keyed) = (self.clone(), Arc::clone(self.keyed()?));
        let (secret, public) = interruptible(py, move || keyed.generate())?;
        let public = PublicKey { context: context.clone(), key: Arc::new(public) };
        Ok((SecretKey { context, key: Arc::new(secret) }, public))
    }

    fn generate_evaluation_keys(
        &self,
        py: Python<'_>,
        secret: &SecretKey,
        rotations: Vec<i64>,
        swap: bool,
    ) -> PyResult<EvaluationKeys> {
        let (keyed, secret) = (Arc::clone(self.keyed()?), Arc::clone(&secret.key));
        let keys = interruptible(py, move || keyed.evaluation_keys(&secret, &rotations, swap))?;
        Ok(EvaluationKeys { context: self.clone(), key: Arc::new(keys) })
    }

    fn add_keys(&self, keys: &EvaluationKeys) -> PyResult<()> {
        let keyed = self.keyed()?;
        let same = keyed.rlwe().params() == keys.context.keyed()?.rlwe().params();
        if !same {
            let message = "the evaluation keys were made under other parameters";
            return Err(Fault::own("params_differ", message, "use keys of this context's plan").into());
        }
        keyed.add_keys(&keys.key);
        Ok(())
    }

    /// Encrypts with a public or secret key.
    fn encrypt(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        bound: f64,
        level: usize,
    ) -> PyResult<Ciphertext> {
        let (keyed, values) = (self.keyed()?, Values::from_array(values)?);
        let cipher = if let Ok(public) = key.cast::<PublicKey>() {
            let key = &public.get().key;
            detached(py, || keyed.encrypt(Encryptor::Public(key), &values, bound, level))?
        } else if let Ok(secret) = key.cast::<SecretKey>() {
            let key = &secret.get().key;
            detached(py, || keyed.encrypt(Encryptor::Secret(key), &values, bound, level))?
        } else {
            let message = format!("{} is no key to encrypt with", key.get_type().name()?);
            return Err(Fault::own("key_type", message, "pass a PublicKey or a SecretKey").into());
        };
        Ok(Ciphertext::new(&self.engine, cipher))
    }

    /// The ciphertext in a container; its certificate is believed only if `trusted`.
    fn read_ciphertext(&self, py: Python<'_>, bytes: &Bound<'_, PyArray1<u8>>, trusted: bool) -> PyResult<Ciphertext> {
        let bytes = bytes_of(bytes)?;
        let cipher = detached(py, || self.engine.read(&bytes, trusted))?;
        Ok(Ciphertext::new(&self.engine, cipher))
    }
}

/// The context and the key of a file of this kind.
fn read_key<K>(
    py: Python<'_>,
    bytes: Zeroizing<Vec<u8>>,
    kind: Kind,
    context: Option<Context>,
    read: impl FnOnce(&rlwe::Context, &[u8]) -> Result<K, rlwe::Error> + Send + 'static,
) -> PyResult<(Context, Arc<K>)>
where
    K: Send + Sync + 'static,
{
    interruptible(py, move || {
        let bundle = Bundle::decode(bytes.to_vec())?.require(kind)?;
        let context = match context {
            Some(context) => context,
            None => {
                let plan = bundle.plan()?;
                let keyed = engine::open(&plan)?;
                let engine: Arc<dyn Engine> = Arc::clone(&keyed) as Arc<dyn Engine>;
                Context { engine, keyed: Some(keyed), plan: plan.to_json()?.into() }
            }
        };
        let key = read(context.keyed()?.rlwe(), bundle.one(KEY)?)?;
        Ok((context, Arc::new(key)))
    })
}

fn file_bytes(py: Python<'_>, path: PathBuf) -> PyResult<Zeroizing<Vec<u8>>> {
    interruptible(py, move || Ok(Zeroizing::new(file::read(&path, MAX_FILE_BYTES)?)))
}

/// A secret key. Its bytes are written to files of mode 0600 and shown nowhere else.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct SecretKey {
    context: Context,
    key: Arc<rlwe::SecretKey>,
}

#[pymethods]
impl SecretKey {
    #[getter]
    fn context(&self) -> Context {
        self.context.clone()
    }

    #[getter]
    fn key_id(&self) -> String {
        self.key.id().to_string()
    }

    fn decrypt<'py>(&self, py: Python<'py>, ciphertext: &Ciphertext, complex: bool) -> PyResult<Bound<'py, PyAny>> {
        let (keyed, key, cipher) = (self.context.keyed()?, &self.key, &ciphertext.cipher);
        detached(py, || keyed.decrypt(key, cipher, complex))?.into_array(py)
    }

    /// Writes the key to a new file that only its owner may read.
    fn save(&self, py: Python<'_>, path: PathBuf, replace: bool) -> PyResult<()> {
        let (context, key) = (self.context.clone(), Arc::clone(&self.key));
        interruptible(py, move || {
            let bytes = context.bundle(Kind::SecretKey, &key.to_bytes(context.keyed()?.rlwe(), None)?)?;
            let existing = if replace { Existing::Replace } else { Existing::Keep };
            Ok(file::write(&path, &bytes, Access::Secret, existing)?)
        })
    }

    #[staticmethod]
    #[pyo3(signature = (path, context=None))]
    fn load(py: Python<'_>, path: PathBuf, context: Option<Bound<'_, Context>>) -> PyResult<Self> {
        let (bytes, context) = (file_bytes(py, path)?, context.map(|c| c.get().clone()));
        let read = |context: &rlwe::Context, bytes: &[u8]| rlwe::SecretKey::from_bytes(context, bytes, None);
        let (context, key) = read_key(py, bytes, Kind::SecretKey, context, read)?;
        Ok(Self { context, key })
    }
}

/// A key to encrypt with.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct PublicKey {
    context: Context,
    key: Arc<rlwe::PublicKey>,
}

#[pymethods]
impl PublicKey {
    #[getter]
    fn context(&self) -> Context {
        self.context.clone()
    }

    #[getter]
    fn key_id(&self) -> String {
        self.key.id().to_string()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detached(py, || {
            self.context.bundle(Kind::PublicKey, &self.key.to_bytes(self.context.keyed()?.rlwe(), None)?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    #[pyo3(signature = (bytes, context=None))]
    fn from_bytes(
        py: Python<'_>,
        bytes: &Bound<'_, PyArray1<u8>>,
        context: Option<Bound<'_, Context>>,
    ) -> PyResult<Self> {
        let (bytes, context) = (Zeroizing::new(bytes_of(bytes)?), context.map(|c| c.get().clone()));
        let read = |context: &rlwe::Context, bytes: &[u8]| rlwe::PublicKey::from_bytes(context, bytes, None, None);
        let (context, key) = read_key(py, bytes, Kind::PublicKey, context, read)?;
        Ok(Self { context, key })
    }
}

/// Keys to multiply and rotate with.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct EvaluationKeys {
    context: Context,
    key: Arc<rlwe::EvaluationKeys>,
}

#[pymethods]
impl EvaluationKeys {
    #[getter]
    fn context(&self) -> Context {
        self.context.clone()
    }

    #[getter]
    fn key_id(&self) -> String {
        self.key.target().to_string()
    }

    #[getter]
    fn count(&self) -> usize {
        self.key.iter().len()
    }

    #[getter]
    fn wire_bytes(&self) -> PyResult<u64> {
        Ok(self.key.wire_bytes(self.context.keyed()?.rlwe().params()))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (context, key) = (self.context.clone(), Arc::clone(&self.key));
        let bytes = interruptible(py, move || {
            context.bundle(Kind::EvaluationKeys, &key.to_bytes(context.keyed()?.rlwe(), None)?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[staticmethod]
    #[pyo3(signature = (bytes, context=None))]
    fn from_bytes(
        py: Python<'_>,
        bytes: &Bound<'_, PyArray1<u8>>,
        context: Option<Bound<'_, Context>>,
    ) -> PyResult<Self> {
        let (bytes, context) = (Zeroizing::new(bytes_of(bytes)?), context.map(|c| c.get().clone()));
        let read = |context: &rlwe::Context, bytes: &[u8]| rlwe::EvaluationKeys::from_bytes(context, bytes, None, None);
        let (context, key) = read_key(py, bytes, Kind::EvaluationKeys, context, read)?;
        Ok(Self { context, key })
    }
}
