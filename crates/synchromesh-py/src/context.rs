//! Contexts: what Python holds of parameters on the CPU.

use std::sync::Arc;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use synchromesh::bundle::{Bundle, KEY, Kind, PLAN};
use synchromesh::plan::Plan;
use zeroize::Zeroizing;

use crate::ciphertext::{Ciphertext, slots};
use crate::engine::{self, Encryptor, Engine, Keyed};
use crate::fault::Fault;
use crate::keys::{EvaluationKeys, PublicKey, SecretKey};
use crate::matrices::MatrixProduct;
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

    /// The context of a plan on this machine.
    pub(crate) fn of_plan(plan: &Plan, text: &str) -> Result<Self, Fault> {
        let keyed = engine::open(plan)?;
        let engine: Arc<dyn Engine> = Arc::clone(&keyed) as Arc<dyn Engine>;
        Ok(Self { engine, keyed: Some(keyed), plan: text.into() })
    }

    pub(crate) fn keyed(&self) -> Result<&Arc<dyn Keyed>, Fault> {
        let remedy = "make a Context of the plan that the dry run returns";
        self.keyed.as_ref().ok_or_else(|| Fault::own("dry_run", "a dry run has no keys and no data", remedy))
    }

    /// A file that holds the plan and a key.
    pub(crate) fn bundle(&self, kind: Kind, key: &[u8]) -> Result<Zeroizing<Vec<u8>>, Fault> {
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
        interruptible(py, move || Self::of_plan(&Plan::from_json(&plan)?, &plan))
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
        let (keyed, secret, plan) = (Arc::clone(self.keyed()?), Arc::clone(&secret.key), Arc::clone(&self.plan));
        let keys = interruptible(py, move || {
            let keys = keyed.evaluation_keys(&secret, &rotations, swap)?;
            Ok(Plan::from_json(&plan)?.trim(keyed.rlwe(), keys)?)
        })?;
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

    /// How the product of encrypted matrices of `shape` = R, K, C is made, whose elements, row after row, lie at `left`
    /// and `right`.
    fn matrix_product(
        &self,
        py: Python<'_>,
        shape: [usize; 3],
        left: &Bound<'_, PyArray1<i64>>,
        right: &Bound<'_, PyArray1<i64>>,
    ) -> PyResult<MatrixProduct> {
        let (left, right, engine) = (slots(left)?, slots(right)?, Arc::clone(&self.engine));
        let [rows, inner, columns] = shape;
        if rows.checked_mul(inner) != Some(left.len()) || inner.checked_mul(columns) != Some(right.len()) {
            let message = format!("{} and {} slots for a product of {shape:?}", left.len(), right.len());
            return Err(Fault::own("shape", message, "pass one slot for each element").into());
        }
        let layout = interruptible(py, move || engine.matrix_product(shape, [&left, &right]))?;
        Ok(MatrixProduct::new(Arc::clone(&self.engine), Arc::new(layout)))
    }

    /// The ciphertext in a container; its certificate is believed only if `trusted`.
    fn read_ciphertext(&self, py: Python<'_>, bytes: &Bound<'_, PyArray1<u8>>, trusted: bool) -> PyResult<Ciphertext> {
        let bytes = bytes_of(bytes)?;
        let cipher = detached(py, || self.engine.read(&bytes, trusted))?;
        Ok(Ciphertext::new(&self.engine, cipher))
    }
}
