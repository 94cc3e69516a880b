//! Numbers on their way between NumPy arrays and the library.

use num_bigint::BigInt;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use synchromesh::ckks::Complex64;
use zeroize::Zeroizing;

use crate::fault::Fault;

/// Bytes of an integer in a row of bytes: two's complement, little-endian.
pub(crate) const WIDE_BYTES: usize = 32;

/// A vector of numbers, copied from an array and wiped when dropped where it can be.
pub(crate) enum Values {
    /// float64.
    Reals(Zeroizing<Vec<f64>>),
    /// complex128.
    Complexes(Zeroizing<Vec<Complex64>>),
    /// int64.
    Integers(Zeroizing<Vec<i64>>),
    /// Rows of [`WIDE_BYTES`] bytes.
    Wide(Vec<BigInt>),
}

impl Values {
    /// The numbers of a contiguous array of one dimension, or of rows of bytes.
    pub(crate) fn from_array(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(array) = array.cast::<PyArray1<f64>>() {
            return Ok(Self::Reals(Zeroizing::new(copied(array)?)));
        }
        if let Ok(array) = array.cast::<PyArray1<i64>>() {
            return Ok(Self::Integers(Zeroizing::new(copied(array)?)));
        }
        if let Ok(array) = array.cast::<PyArray1<numpy::Complex64>>() {
            let values = Zeroizing::new(copied(array)?.iter().map(|z| Complex64::new(z.re, z.im)).collect());
            return Ok(Self::Complexes(values));
        }
        let bytes = array.cast::<PyArray2<u8>>().ok().filter(|array| array.shape().get(1) == Some(&WIDE_BYTES));
        let Some(bytes) = bytes else {
            let found = array.get_type().name()?;
            let message = format!("{found} is no array of float64, complex128, int64 or {WIDE_BYTES}-byte integers");
            return Err(Fault::own("dtype", message, "pass a NumPy array of numbers").into());
        };
        let bytes = bytes.try_readonly().map_err(PyErr::from)?;
        let bytes = bytes.as_slice().map_err(|_| not_contiguous())?;
        Ok(Self::Wide(bytes.chunks_exact(WIDE_BYTES).map(BigInt::from_signed_bytes_le).collect()))
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Reals(x) => x.len(),
            Self::Complexes(x) => x.len(),
            Self::Integers(x) => x.len(),
            Self::Wide(x) => x.len(),
        }
    }

    /// As complex numbers.
    pub(crate) fn complexes(&self) -> Result<Zeroizing<Vec<Complex64>>, Fault> {
        match self {
            Self::Reals(x) => Ok(Zeroizing::new(x.iter().map(|&x| x.into()).collect())),
            Self::Complexes(x) => Ok(x.clone()),
            Self::Integers(x) => Ok(Zeroizing::new(x.iter().map(|&x| (x as f64).into()).collect())),
            Self::Wide(_) => Err(Fault::own("dtype", "wide integers in ckks", "use bfv or bgv for large integers")),
        }
    }

    /// As integers.
    pub(crate) fn integers(&self) -> Result<Vec<BigInt>, Fault> {
        match self {
            Self::Integers(x) => Ok(x.iter().map(|&x| x.into()).collect()),
            Self::Wide(x) => Ok(x.clone()),
            _ => Err(Fault::own("dtype", "numbers with fractions in bfv or bgv", "round them, or use ckks")),
        }
    }
}

fn copied<T: numpy::Element + Clone>(array: &Bound<'_, PyArray1<T>>) -> PyResult<Vec<T>> {
    let array = array.try_readonly().map_err(PyErr::from)?;
    Ok(array.as_slice().map_err(|_| not_contiguous())?.to_vec())
}

fn not_contiguous() -> Fault {
    Fault::own("layout", "the array is not contiguous", "pass numpy.ascontiguousarray(array)")
}

/// Decrypted numbers.
pub(crate) enum Decoded {
    /// CKKS, real parts.
    Reals(Vec<f64>),
    /// CKKS.
    Complexes(Vec<Complex64>),
    /// Integers of at most 63 bits.
    Integers(Vec<i64>),
    /// Larger ones.
    Wide(Vec<BigInt>),
}

impl Decoded {
    /// As an array: of one dimension, or rows of [`WIDE_BYTES`] bytes.
    pub(crate) fn into_array(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(match self {
            Self::Reals(x) => x.into_pyarray(py).into_any(),
            Self::Integers(x) => x.into_pyarray(py).into_any(),
            Self::Complexes(x) => {
                let values: Vec<numpy::Complex64> = x.iter().map(|z| numpy::Complex64::new(z.re, z.im)).collect();
                values.into_pyarray(py).into_any()
            }
            Self::Wide(x) => {
                let rows = x.len();
                let bytes: Vec<u8> = x.iter().flat_map(wide_bytes).collect();
                bytes.into_pyarray(py).reshape([rows, WIDE_BYTES])?.into_any()
            }
        })
    }
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
