//! Numbers on their way between NumPy arrays and the library.

use num_bigint::BigInt;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use synchromesh::ckks::Complex64;
use synchromesh::scheme::Values;

use crate::fault::Fault;

/// Bytes of an integer in a row of bytes: two's complement, little-endian.
pub(crate) const WIDE_BYTES: usize = 32;

/// The numbers of a contiguous array of one dimension, or of rows of bytes.
pub(crate) fn from_array(array: &Bound<'_, PyAny>) -> PyResult<Values> {
    if let Ok(array) = array.cast::<PyArray1<f64>>() {
        return Ok(copied(array)?.into());
    }
    if let Ok(array) = array.cast::<PyArray1<i64>>() {
        return Ok(copied(array)?.into());
    }
    if let Ok(array) = array.cast::<PyArray1<numpy::Complex64>>() {
        let values: Vec<Complex64> = copied(array)?.iter().map(|z| Complex64::new(z.re, z.im)).collect();
        return Ok(values.into());
    }
    let bytes = array.cast::<PyArray2<u8>>().ok().filter(|array| array.shape().get(1) == Some(&WIDE_BYTES));
    let Some(bytes) = bytes else {
        let found = array.get_type().name()?;
        let message = format!("{found} is no array of float64, complex128, int64 or {WIDE_BYTES}-byte integers");
        return Err(Fault::own("dtype", message, "pass a NumPy array of numbers").into());
    };
    let bytes = bytes.try_readonly().map_err(PyErr::from)?;
    let bytes = bytes.as_slice().map_err(|_| not_contiguous())?;
    Ok(bytes.chunks_exact(WIDE_BYTES).map(BigInt::from_signed_bytes_le).collect::<Vec<_>>().into())
}

/// The numbers of a contiguous array.
pub(crate) fn copied<T: numpy::Element + Clone>(array: &Bound<'_, PyArray1<T>>) -> PyResult<Vec<T>> {
    let array = array.try_readonly().map_err(PyErr::from)?;
    Ok(array.as_slice().map_err(|_| not_contiguous())?.to_vec())
}

fn not_contiguous() -> Fault {
    Fault::own("layout", "the array is not contiguous", "pass numpy.ascontiguousarray(array)")
}

/// Decrypted numbers as an array: of one dimension, or rows of [`WIDE_BYTES`] bytes; of complex ones the real parts
/// unless `complex`.
pub(crate) fn into_array(values: Values, complex: bool, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    Ok(match values {
        Values::Integers(mut x) => std::mem::take(&mut *x).into_pyarray(py).into_any(),
        Values::Complexes(x) if complex => {
            let values: Vec<numpy::Complex64> = x.iter().map(|z| numpy::Complex64::new(z.re, z.im)).collect();
            values.into_pyarray(py).into_any()
        }
        Values::Wide(x) => {
            let rows = x.len();
            let bytes: Vec<u8> = x.iter().flat_map(wide_bytes).collect();
            bytes.into_pyarray(py).reshape([rows, WIDE_BYTES])?.into_any()
        }
        reals => std::mem::take(&mut *reals.reals()).into_pyarray(py).into_any(),
    })
}

/// Two's complement of an integer of at most 255 bits and a sign.
fn wide_bytes(x: &BigInt) -> [u8; WIDE_BYTES] {
    let sign = if x.sign() == num_bigint::Sign::Minus { 0xff } else { 0 };
    let mut bytes = [sign; WIDE_BYTES];
    for (byte, value) in bytes.iter_mut().zip(x.to_signed_bytes_le()) {
        *byte = value;
    }
    bytes
}

/// The bytes of an array of uint8, copied if somebody could write to them meanwhile.
pub(crate) fn bytes_of(array: &Bound<'_, PyArray1<u8>>) -> PyResult<Vec<u8>> {
    let array = array.try_readonly().map_err(PyErr::from)?;
    let slice = array.as_slice();
    Ok(slice.map_err(|_| Fault::own("layout", "the bytes are not contiguous", "pass bytes"))?.to_vec())
}
