//! Matrices over Z_p, row by row; wiped when dropped, since most of them are shares.

use zeroize::Zeroize;

use crate::error::{Error, Result};
use crate::field::{Element, Field};

/// Rows times columns of elements, row by row.
#[derive(Clone, PartialEq, Eq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    entries: Vec<Element>,
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix({} x {})", self.rows, self.columns)
    }
}

impl Drop for Matrix {
    fn drop(&mut self) {
        self.entries.zeroize();
    }
}

impl Matrix {
    /// A matrix of these entries, row by row.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are rows x columns of them, and at least one.
    pub fn new(rows: usize, columns: usize, entries: Vec<Element>) -> Result<Self> {
        if entries.is_empty() || rows.checked_mul(columns) != Some(entries.len()) {
            return Err(Error::Shape { left: (rows, columns), right: (entries.len(), 1), what: "entries" });
        }
        Ok(Self { rows, columns, entries })
    }

    /// Zeros.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no entry, or no memory for them.
    pub fn zero(rows: usize, columns: usize) -> Result<Self> {
        let (count, mut entries) = (rows.saturating_mul(columns), Vec::new());
        if entries.try_reserve_exact(count).is_err() {
            let what = "a matrix that memory holds";
            return Err(Error::Shape { left: (rows, columns), right: (count, 1), what });
        }
        entries.resize(count, Element::ZERO);
        Self::new(rows, columns, entries)
    }

    /// Uniform entries from the operating system.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no entry or no memory for them, [`synchromesh_parties::Error::Entropy`] when the
    /// system gives no randomness.
    pub fn random(field: &Field, rows: usize, columns: usize) -> Result<Self> {
        let mut matrix = Self::zero(rows, columns)?;
        for entry in &mut matrix.entries {
            *entry = field.random()?;
        }
        Ok(matrix)
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The entries, row by row.
    #[must_use]
    pub fn entries(&self) -> &[Element] {
        &self.entries
    }

    #[cfg(test)]
    pub(crate) fn entries_mut(&mut self) -> &mut [Element] {
        &mut self.entries
    }

    /// self + other.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ.
    pub fn add(&self, field: &Field, other: &Self) -> Result<Self> {
        self.zip(other, "a sum", |a, b| field.add(a, b))
    }

    /// self - other.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ.
    pub fn sub(&self, field: &Field, other: &Self) -> Result<Self> {
        self.zip(other, "a difference", |a, b| field.sub(a, b))
    }

    /// Every entry times one element.
    #[must_use]
    pub fn scale(&self, field: &Field, by: Element) -> Self {
        let mut factor = field.factor(by);
        let entries = self.entries.iter().map(|&entry| field.mul_factor(entry, &factor)).collect();
        factor.zeroize();
        Self { rows: self.rows, columns: self.columns, entries }
    }

    /// The products entry by entry.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ.
    pub(crate) fn times(&self, field: &Field, other: &Self) -> Result<Self> {
        self.zip(other, "products of entries", |a, b| field.mul(a, b))
    }

    /// The columns in this range of a matrix of one row.
    pub(crate) fn columns_in(&self, range: std::ops::Range<usize>) -> Result<Self> {
        let found = Error::Shape { left: (self.rows, self.columns), right: (1, range.end), what: "a part of a row" };
        let entries = self.entries.get(range).filter(|_| self.rows == 1).ok_or(found)?.to_vec();
        Self::new(1, entries.len(), entries)
    }

    /// Two matrices of one row, one after the other.
    pub(crate) fn beside(&self, other: &Self) -> Result<Self> {
        if (self.rows, other.rows) != (1, 1) {
            return Err(self.mismatch(other, "a row"));
        }
        let mut entries = Vec::with_capacity(self.entries.len() + other.entries.len());
        entries.extend_from_slice(&self.entries);
        entries.extend_from_slice(&other.entries);
        Self::new(1, entries.len(), entries)
    }

    /// The matrix product self other.
    ///
    /// # Errors
    /// [`Error::Shape`] unless self has as many columns as other has rows.
    pub fn mul(&self, field: &Field, other: &Self) -> Result<Self> {
        if self.columns != other.rows {
            return Err(self.mismatch(other, "a product"));
        }
        let mut product = Self::zero(self.rows, other.columns)?;
        for (row, out) in self.entries.chunks_exact(self.columns).zip(product.entries.chunks_exact_mut(other.columns)) {
            for (&entry, column) in row.iter().zip(other.entries.chunks_exact(other.columns)) {
                let mut factor = field.factor(entry);
                for (out, &x) in out.iter_mut().zip(column) {
                    *out = field.add(*out, field.mul_factor(x, &factor));
                }
                factor.zeroize();
            }
        }
        Ok(product)
    }

    fn zip(&self, other: &Self, what: &'static str, f: impl Fn(Element, Element) -> Element) -> Result<Self> {
        if (self.rows, self.columns) != (other.rows, other.columns) {
            return Err(self.mismatch(other, what));
        }
        let entries = self.entries.iter().zip(&other.entries).map(|(&a, &b)| f(a, b)).collect();
        Ok(Self { rows: self.rows, columns: self.columns, entries })
    }

    fn mismatch(&self, other: &Self, what: &'static str) -> Error {
        Error::Shape { left: (self.rows, self.columns), right: (other.rows, other.columns), what }
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::*;
    use crate::field::DEFAULT_PRIME;

    #[test]
    fn products_are_those_of_integers() {
        let field: Field = DEFAULT_PRIME.parse().unwrap();
        let (a, b) = (Matrix::random(&field, 3, 5).unwrap(), Matrix::random(&field, 5, 2).unwrap());
        let c = a.mul(&field, &b).unwrap();
        for i in 0..3 {
            for j in 0..2 {
                let sum: BigUint =
                    (0..5).map(|k| a.entries()[5 * i + k].to_biguint() * b.entries()[2 * k + j].to_biguint()).sum();
                assert_eq!(c.entries()[2 * i + j].to_biguint(), sum % field.prime());
            }
        }
        assert_eq!(b.mul(&field, &b).unwrap_err().kind(), "shape");
        assert_eq!(a.add(&field, &b).unwrap_err().kind(), "shape");
        assert_eq!(Matrix::new(2, 2, vec![Element::ZERO; 3]).unwrap_err().kind(), "shape");
        assert_eq!(Matrix::zero(0, 4).unwrap_err().kind(), "shape");
    }

    #[test]
    fn sizes_that_no_memory_holds_are_errors() {
        for (rows, columns) in [(usize::MAX, 2), (1 << 40, 1 << 10), (0, 5)] {
            assert_eq!(Matrix::zero(rows, columns).unwrap_err().kind(), "shape");
        }
    }
}
