//! Files of sections, the ones that the command line reads and writes.

use std::path::PathBuf;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use synchromesh::bundle::{Bundle, CIPHERTEXT, ColumnHead, Kind, MAX_FILE_BYTES};
use synchromesh_rlwe::file::{self, Access, Existing};
pub(crate) use synchromesh_triples::parties::party::TENSOR;

use crate::run::{detached, interruptible};
use crate::values::bytes_of;

/// An encrypted column in a file, its bytes checked and its ciphertexts not yet read.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct Column {
    pub(crate) bundle: Bundle,
    head: ColumnHead,
    plan: String,
}

#[pymethods]
impl Column {
    #[staticmethod]
    fn decode(py: Python<'_>, bytes: &Bound<'_, PyArray1<u8>>) -> PyResult<Self> {
        let bytes = bytes_of(bytes)?;
        detached(py, || {
            let bundle = Bundle::decode(bytes)?.require(Kind::Column)?;
            let (plan, head) = (bundle.plan()?.to_json()?, ColumnHead::of(&bundle)?);
            Ok(Self { bundle, head, plan })
        })
    }

    #[getter]
    fn plan(&self) -> &str {
        &self.plan
    }

    #[getter]
    const fn rows(&self) -> usize {
        self.head.rows
    }

    /// Number of ciphertexts.
    #[getter]
    fn parts(&self) -> usize {
        self.bundle.all(CIPHERTEXT).count()
    }

    /// The tensor's description, if Python wrote the file.
    #[getter]
    fn tensor<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.bundle.all(TENSOR).next().map(|bytes| PyBytes::new(py, bytes))
    }
}

/// Writes a file whole or not at all. Where one may be replaced, a key may only be by another.
#[pyfunction]
pub(crate) fn write_file(py: Python<'_>, path: PathBuf, bytes: &Bound<'_, PyBytes>, replace: bool) -> PyResult<()> {
    let bytes = bytes.as_bytes();
    let existing = match (replace, file::key_in(bytes)) {
        (false, _) => Existing::Keep,
        (true, None) => Existing::Replace,
        (true, Some(_)) => Existing::Force,
    };
    detached(py, || Ok(file::write(&path, bytes, Access::Public, existing)?))
}

/// Reads a file.
#[pyfunction]
pub(crate) fn read_file(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyBytes>> {
    let bytes = interruptible(py, move || Ok(file::read(&path, MAX_FILE_BYTES)?))?;
    Ok(PyBytes::new(py, &bytes))
}
