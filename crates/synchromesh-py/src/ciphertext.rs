//! One ciphertext; tensors are made of these in Python.

use std::sync::Arc;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use synchromesh::scheme::Entries;
use synchromesh::session::{Engine, Erased};

use crate::fault::Fault;
use crate::run::{detached, interruptible};
use crate::values::from_array;

/// A ciphertext of any scheme.
#[derive(Clone)]
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct Ciphertext {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) cipher: Arc<Erased>,
}

impl Ciphertext {
    pub(crate) fn new(engine: &Arc<dyn Engine>, cipher: Erased) -> Self {
        Self { engine: Arc::clone(engine), cipher: Arc::new(cipher) }
    }

    /// The result of `work` on this ciphertext, which may take long.
    fn interruptibly(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&dyn Engine, &Erased) -> synchromesh::Result<Erased> + Send + 'static,
    ) -> PyResult<Self> {
        let (engine, cipher) = (Arc::clone(&self.engine), Arc::clone(&self.cipher));
        Ok(Self::new(&self.engine, interruptible(py, move || Ok(work(&*engine, &cipher)?))?))
    }
}

/// Slots, none negative.
pub(crate) fn slots<I, T>(array: &Bound<'_, PyArray1<I>>) -> PyResult<Vec<T>>
where
    I: numpy::Element + Copy + std::fmt::Display,
    T: TryFrom<I>,
{
    let array = array.try_readonly().map_err(PyErr::from)?;
    let contiguous = array.as_slice().map_err(|_| Fault::own("layout", "slots are not contiguous", "copy them"))?;
    let slot = |&x: &I| {
        let wrong = || Fault::own("shape", format!("{x} is no slot"), "count slots from 0").into();
        T::try_from(x).map_err(|_| wrong())
    };
    contiguous.iter().map(slot).collect()
}

fn entries(
    to: &Bound<'_, PyArray1<i32>>,
    origin: &Bound<'_, PyArray1<i32>>,
    values: &Bound<'_, PyAny>,
) -> PyResult<Entries> {
    Ok(Entries { to: slots(to)?, from: slots(origin)?, values: from_array(values)? })
}

#[pymethods]
impl Ciphertext {
    /// The linear map with these entries, encoded for ciphertexts like this one.
    fn prepare(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyArray1<i32>>,
        origin: &Bound<'_, PyArray1<i32>>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<PreparedMap> {
        let entries = entries(to, origin, values)?;
        let (engine, cipher) = (Arc::clone(&self.engine), Arc::clone(&self.cipher));
        let map = interruptible(py, move || Ok(engine.prepare(&cipher, &entries)?))?;
        Ok(PreparedMap(Arc::new(map)))
    }

    /// The image under the linear map with these entries, which is not kept.
    fn linear(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyArray1<i32>>,
        origin: &Bound<'_, PyArray1<i32>>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let entries = entries(to, origin, values)?;
        self.interruptibly(py, move |engine, x| engine.linear(entries, x))
    }

    fn apply(&self, py: Python<'_>, map: &PreparedMap) -> PyResult<Self> {
        let map = Arc::clone(&map.0);
        self.interruptibly(py, move |engine, x| engine.map(&map, x))
    }

    #[getter]
    fn level(&self) -> PyResult<usize> {
        Ok(self.engine.state(&self.cipher).map_err(Fault::from)?.level)
    }

    /// How it came about; nothing in exact schemes.
    #[getter]
    fn lineage(&self) -> PyResult<Option<String>> {
        Ok(self.engine.state(&self.cipher).map_err(Fault::from)?.lineage.map(String::from))
    }

    /// Level, components, key id, noise budget, error bound, bound on the message.
    fn state(&self) -> PyResult<(usize, usize, String, f64, f64, f64)> {
        let s = self.engine.state(&self.cipher).map_err(Fault::from)?;
        Ok((s.level, s.components, s.key.to_string(), s.noise_budget, s.error_bound, s.bound))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &detached(py, || Ok(self.engine.write(&self.cipher)?))?))
    }
}

/// A linear map of slots, encoded for one level.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct PreparedMap(Arc<Erased>);
