//! Files of sections, the ones that the command line reads and writes.

use std::path::PathBuf;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use synchromesh::bundle::{Bundle, CIPHERTEXT, COLUMN, ColumnHead, Kind, MAX_FILE_BYTES, PLAN};
use synchromesh_rlwe::file::{self, Access, Existing};

use crate::context::bytes_of;
use crate::fault::Fault;
use crate::run::{detached, interruptible};

/// The section of what Python knows of a column beyond its length.
const TENSOR: &str = "tensor";

/// The file of an encrypted column of `rows` numbers: its plan, its name, its ciphertexts, and the tensor's description.
#[pyfunction]
pub(crate) fn encode_column<'py>(
    py: Python<'py>,
    plan: &str,
    name: String,
    rows: usize,
    tensor: &[u8],
    ciphertexts: Vec<Bound<'py, PyBytes>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let head = ColumnHead { name, rows }.to_bytes().map_err(Fault::from)?;
    let mut sections = vec![(PLAN, plan.as_bytes()), (COLUMN, &head[..]), (TENSOR, tensor)];
    sections.extend(ciphertexts.iter().map(|bytes| (CIPHERTEXT, bytes.as_bytes())));
    let bytes = detached(py, || Ok(Bundle::encode(Kind::Column, &sections)?))?;
    Ok(PyBytes::new(py, &bytes))
}

/// A column as its parts: plan, name, rows, the tensor's description, ciphertexts.
type Column<'py> = (String, String, usize, Option<Bound<'py, PyBytes>>, Vec<Bound<'py, PyBytes>>);

/// The plan, name, rows, tensor's description (if Python wrote the file) and ciphertexts of a column.
#[pyfunction]
pub(crate) fn decode_column<'py>(py: Python<'py>, bytes: &Bound<'py, PyArray1<u8>>) -> PyResult<Column<'py>> {
    let bytes = bytes_of(bytes)?;
    let (bundle, plan, head) = detached(py, || {
        let bundle = Bundle::decode(bytes)?.require(Kind::Column)?;
        let (plan, head) = (bundle.plan()?.to_json()?, ColumnHead::of(&bundle)?);
        Ok((bundle, plan, head))
    })?;
    let tensor = bundle.all(TENSOR).next().map(|bytes| PyBytes::new(py, bytes));
    let ciphertexts = bundle.all(CIPHERTEXT).map(|bytes| PyBytes::new(py, bytes)).collect();
    Ok((plan, head.name, head.rows, tensor, ciphertexts))
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
