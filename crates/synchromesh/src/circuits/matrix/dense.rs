//! Matrices of public numbers, row after row.

use crate::error::{Error, Result};

/// A matrix with at least one row and one column, stored row after row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix<T> {
    rows: usize,
    columns: usize,
    entries: Vec<T>,
}

impl<T: Clone> Matrix<T> {
    /// The matrix of `rows` x `columns` with these entries, row after row.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix without entries, or another number of them.
    pub fn new(rows: usize, columns: usize, entries: Vec<T>) -> Result<Self> {
        if rows == 0 || columns == 0 || rows.checked_mul(columns) != Some(entries.len()) {
            let given = entries.len();
            return Err(Error::shape(format!("a matrix of {rows} x {columns} with {given} entries")));
        }
        Ok(Self { rows, columns, entries })
    }

    /// The matrix whose entry in row i and column j is `entry(i, j)`.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix without entries, or more of them than memory holds.
    pub fn from_fn(rows: usize, columns: usize, mut entry: impl FnMut(usize, usize) -> T) -> Result<Self> {
        let mut entries = Vec::new();
        let room = rows.checked_mul(columns).is_some_and(|count| entries.try_reserve_exact(count).is_ok());
        if !room {
            return Err(Error::shape(format!("a matrix of {rows} x {columns} is more than memory holds")));
        }
        entries.extend((0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).map(|(i, j)| entry(i, j)));
        Self::new(rows, columns, entries)
    }

    /// Number of rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// All entries, row after row.
    #[must_use]
    pub fn entries(&self) -> &[T] {
        &self.entries
    }

    /// The entry in row i and column j, counted from 0; none outside the matrix.
    #[must_use]
    pub fn get(&self, i: usize, j: usize) -> Option<&T> {
        if j < self.columns { self.entries.get(i.checked_mul(self.columns)?.checked_add(j)?) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::Matrix;

    #[test]
    fn entries_are_counted_and_found() {
        let m = Matrix::from_fn(2, 3, |i, j| 10 * i + j).unwrap();
        assert_eq!(
            (m.entries(), m.get(1, 2), m.get(0, 3), m.get(2, 0)),
            (&[0, 1, 2, 10, 11, 12][..], Some(&12), None, None)
        );
        assert_eq!(m.get(usize::MAX, 1), None);
        for (rows, columns, count) in [(0, 3, 0), (3, 0, 0), (2, 2, 3), (usize::MAX, 2, 4)] {
            assert_eq!(Matrix::new(rows, columns, vec![0; count]).unwrap_err().kind(), "shape");
        }
    }
}
