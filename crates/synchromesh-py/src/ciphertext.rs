//! One ciphertext and its operations; tensors are made of these in Python.

use std::sync::Arc;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use synchromesh::circuits::{SlotShape, SlotSum};
use synchromesh::scheme::{Binary, Entries, Operation};
use synchromesh::session::{Engine, Erased};

use crate::fault::Fault;
use crate::run::{detached, interruptible};
use crate::values::from_array;

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

    /// The result of a short operation on this ciphertext and those of `others`.
    fn made(&self, py: Python<'_>, operation: &Operation<'_>, others: &[&Self]) -> PyResult<Self> {
        let x: Vec<&Erased> = std::iter::once(self).chain(others.iter().copied()).map(|x| &*x.cipher).collect();
        Ok(Self::new(&self.engine, detached(py, || Ok(self.engine.apply(operation, &x)?))?))
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

fn binary(name: &str) -> Result<Binary, Fault> {
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
        self.made(py, &Operation::Binary(binary(op)?), &[other])
    }

    fn plain(&self, py: Python<'_>, op: &str, values: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.made(py, &Operation::Plain(binary(op)?, &from_array(values)?), &[])
    }

    fn scalar(&self, py: Python<'_>, op: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (op, value) = (binary(op)?, from_array(value)?);
        self.engine.require_held(&value).map_err(Fault::from)?;
        self.made(py, &Operation::Scalar(op, &value), &[])
    }

    fn neg(&self, py: Python<'_>) -> PyResult<Self> {
        self.made(py, &Operation::Neg, &[])
    }

    fn square(&self, py: Python<'_>) -> PyResult<Self> {
        self.made(py, &Operation::Square, &[])
    }

    fn rotate(&self, py: Python<'_>, steps: i64) -> PyResult<Self> {
        self.made(py, &Operation::Rotate(steps), &[])
    }

    fn swap(&self, py: Python<'_>) -> PyResult<Self> {
        self.made(py, &Operation::Swap, &[])
    }

    fn at_level(&self, py: Python<'_>, level: usize) -> PyResult<Self> {
        self.made(py, &Operation::AtLevel(level), &[])
    }

    fn declare_bound(&self, py: Python<'_>, bound: f64) -> PyResult<Self> {
        self.made(py, &Operation::Bounded(bound), &[])
    }

    /// Slot j becomes the sum of slots j + i stride of its row, i < count; 0: the sum of all slots, in all slots.
    fn sum_slots(&self, py: Python<'_>, count: usize, stride: i64) -> PyResult<Self> {
        let shape = self.engine.slots().unwrap_or(SlotShape { row: 0, rows: 0 });
        let sum = match count {
            0 => SlotSum::all(shape),
            _ => SlotSum::new(count.min(shape.row)).stride(stride),
        };
        self.interruptibly(py, move |engine, x| engine.apply(&Operation::SumSlots(&sum), &[x]))
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
            if left.len() != right.len() {
                let message = format!("an inner product of {} and {} ciphertexts", left.len(), right.len());
                return Err(Fault::own("params", message, "pass as many on each side"));
            }
            let x: Vec<&Erased> = left.iter().chain(&right).map(|x| &**x).collect();
            Ok(own.apply(&Operation::InnerProduct, &x)?)
        })?;
        Ok(Self::new(&engine, cipher))
    }

    fn polynomial(&self, py: Python<'_>, coefficients: &Bound<'_, PyAny>) -> PyResult<Self> {
        let coefficients = from_array(coefficients)?;
        self.interruptibly(py, move |engine, x| engine.apply(&Operation::Polynomial(&coefficients), &[x]))
    }

    fn chebyshev(&self, py: Python<'_>, coefficients: Vec<f64>, low: f64, high: f64) -> PyResult<Self> {
        self.interruptibly(py, move |engine, x| engine.apply(&Operation::Chebyshev(&coefficients, (low, high)), &[x]))
    }

    /// The linear map with these entries, encoded for ciphertexts like this one.
    fn prepare(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyArray1<i64>>,
        origin: &Bound<'_, PyArray1<i64>>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<PreparedMap> {
        let entries = Entries { to: slots(to)?, from: slots(origin)?, values: from_array(values)? };
        let (engine, cipher) = (Arc::clone(&self.engine), Arc::clone(&self.cipher));
        let map = interruptible(py, move || Ok(engine.prepare(&cipher, &entries)?))?;
        Ok(PreparedMap(Arc::new(map)))
    }

    fn apply(&self, py: Python<'_>, map: &PreparedMap) -> PyResult<Self> {
        let map = Arc::clone(&map.0);
        self.interruptibly(py, move |engine, x| engine.map(&map, x))
    }

    #[getter]
    fn level(&self) -> PyResult<usize> {
        Ok(self.engine.state(&self.cipher).map_err(Fault::from)?.level)
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
