//! One ciphertext and its operations; tensors are made of these in Python.

use std::sync::Arc;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use synchromesh::circuits::SlotSum;

use crate::engine::{Binary, Engine, Entries, Erased};
use crate::fault::Fault;
use crate::run::{detached, interruptible};
use crate::values::Values;

/// A ciphertext of any scheme.
#[derive(Clone)]
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct Ciphertext {
    engine: Arc<dyn Engine>,
    pub(crate) cipher: Arc<Erased>,
}

impl Ciphertext {
    pub(crate) fn new(engine: &Arc<dyn Engine>, cipher: Erased) -> Self {
        Self { engine: Arc::clone(engine), cipher: Arc::new(cipher) }
    }

    fn made(&self, py: Python<'_>, work: impl FnOnce() -> Result<Erased, Fault> + Send) -> PyResult<Self> {
        Ok(Self::new(&self.engine, detached(py, work)?))
    }
}

fn operation(name: &str) -> Result<Binary, Fault> {
    match name {
        "add" => Ok(Binary::Add),
        "sub" => Ok(Binary::Sub),
        "mul" => Ok(Binary::Mul),
        other => Err(Fault::own("operation", format!("there is no operation {other:?}"), "use add, sub or mul")),
    }
}

/// Slots, none negative.
pub(crate) fn slots(array: &Bound<'_, PyArray1<i64>>) -> PyResult<Vec<usize>> {
    let array = array.try_readonly().map_err(PyErr::from)?;
    let contiguous = array.as_slice().map_err(|_| Fault::own("layout", "slots are not contiguous", "copy them"))?;
    let slot = |&x: &i64| {
        let wrong = || Fault::own("shape", format!("{x} is no slot"), "count slots from 0").into();
        usize::try_from(x).map_err(|_| wrong())
    };
    contiguous.iter().map(slot).collect()
}

#[pymethods]
impl Ciphertext {
    fn binary(&self, py: Python<'_>, op: &str, other: &Self) -> PyResult<Self> {
        let op = operation(op)?;
        self.made(py, || self.engine.binary(op, &self.cipher, &other.cipher))
    }

    fn plain(&self, py: Python<'_>, op: &str, values: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (op, values) = (operation(op)?, Values::from_array(values)?);
        self.made(py, || self.engine.plain(op, &self.cipher, &values))
    }

    fn scalar(&self, py: Python<'_>, op: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (op, value) = (operation(op)?, Values::from_array(value)?);
        self.made(py, || self.engine.scalar(op, &self.cipher, &value))
    }

    fn neg(&self, py: Python<'_>) -> PyResult<Self> {
        self.made(py, || self.engine.neg(&self.cipher))
    }

    fn square(&self, py: Python<'_>) -> PyResult<Self> {
        self.made(py, || self.engine.square(&self.cipher))
    }

    fn rotate(&self, py: Python<'_>, steps: i64) -> PyResult<Self> {
        self.made(py, || self.engine.rotate(&self.cipher, steps))
    }

    fn swap(&self, py: Python<'_>) -> PyResult<Self> {
        self.made(py, || self.engine.swap(&self.cipher))
    }

    fn at_level(&self, py: Python<'_>, level: usize) -> PyResult<Self> {
        self.made(py, || self.engine.at_level(&self.cipher, level))
    }

    fn declare_bound(&self, py: Python<'_>, bound: f64) -> PyResult<Self> {
        self.made(py, || self.engine.declare_bound(&self.cipher, bound))
    }

    /// Slot j becomes the sum of slots j + i stride of its row, i < count; 0: the sum of all slots, in all slots.
    fn sum_slots(&self, py: Python<'_>, count: usize, stride: i64) -> PyResult<Self> {
        let (slots, row) = (self.engine.slots(), self.engine.row());
        let sum = if count == 0 {
            SlotSum::all(synchromesh::circuits::SlotShape { row, rows: slots.checked_div(row).unwrap_or(0) })
        } else {
            SlotSum::new(count.min(row)).stride(stride)
        };
        let (engine, cipher) = (Arc::clone(&self.engine), Arc::clone(&self.cipher));
        Ok(Self::new(&self.engine, interruptible(py, move || engine.sum_slots(&cipher, &sum))?))
    }

    #[staticmethod]
    fn inner_product(py: Python<'_>, left: Vec<Bound<'_, Self>>, right: Vec<Bound<'_, Self>>) -> PyResult<Self> {
        let Some(engine) = left.first().map(|x| Arc::clone(&x.get().engine)) else {
            return Err(Fault::own("shape", "an inner product of no ciphertexts", "pass one on each side").into());
        };
        let held =
            |list: Vec<Bound<'_, Self>>| -> Vec<_> { list.iter().map(|x| Arc::clone(&x.get().cipher)).collect() };
        let (left, right, own) = (held(left), held(right), Arc::clone(&engine));
        let cipher = interruptible(py, move || {
            let x: Vec<&Erased> = left.iter().map(|x| &**x).collect();
            let y: Vec<&Erased> = right.iter().map(|y| &**y).collect();
            own.inner_product(&x, &y)
        })?;
        Ok(Self::new(&engine, cipher))
    }

    fn polynomial(&self, py: Python<'_>, coefficients: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (engine, cipher) = (Arc::clone(&self.engine), Arc::clone(&self.cipher));
        let coefficients = Values::from_array(coefficients)?;
        Ok(Self::new(&self.engine, interruptible(py, move || engine.polynomial(&cipher, &coefficients))?))
    }

    fn chebyshev(&self, py: Python<'_>, coefficients: Vec<f64>, low: f64, high: f64) -> PyResult<Self> {
        let (engine, cipher) = (Arc::clone(&self.engine), Arc::clone(&self.cipher));
        let work = move || engine.chebyshev(&cipher, &coefficients, (low, high));
        Ok(Self::new(&self.engine, interruptible(py, work)?))
    }

    /// The linear map with these entries, encoded for ciphertexts like this one.
    fn prepare(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyArray1<i64>>,
        origin: &Bound<'_, PyArray1<i64>>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<PreparedMap> {
        let entries = Entries { to: slots(to)?, from: slots(origin)?, values: Values::from_array(values)? };
        if entries.to.len() != entries.from.len() || entries.to.len() != entries.values.len() {
            return Err(Fault::own("shape", "a map's lists differ in length", "pass one of each an entry").into());
        }
        let (engine, cipher) = (Arc::clone(&self.engine), Arc::clone(&self.cipher));
        let map = interruptible(py, move || engine.prepare(&cipher, &entries))?;
        Ok(PreparedMap(Arc::new(map)))
    }

    fn apply(&self, py: Python<'_>, map: &PreparedMap) -> PyResult<Self> {
        let (engine, cipher, map) = (Arc::clone(&self.engine), Arc::clone(&self.cipher), Arc::clone(&map.0));
        Ok(Self::new(&self.engine, interruptible(py, move || engine.apply(&map, &cipher))?))
    }

    #[getter]
    fn level(&self) -> PyResult<usize> {
        Ok(self.engine.state(&self.cipher)?.level)
    }

    /// Level, components, key id, noise budget, error bound, bound on the message.
    fn state(&self) -> PyResult<(usize, usize, String, f64, f64, f64)> {
        let s = self.engine.state(&self.cipher)?;
        Ok((s.level, s.components, s.key.to_string(), s.noise_budget, s.error_bound, s.bound))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &detached(py, || self.engine.write(&self.cipher))?))
    }
}

/// A linear map of slots, encoded for one level.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct PreparedMap(Arc<Erased>);
