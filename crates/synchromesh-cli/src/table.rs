//! Numeric tables: a matrix of [`Number`]s with optional column names, read from and written to CSV and NPY.

mod csv_format;
mod npy;

use crate::number::{Number, NumberError};
use num_bigint::BigInt;
use std::path::Path;
use synchromesh_rlwe::file::{self, FileError};

/// The most cells a table may have, 2^24: 128 columns of 2^17 values.
pub const MAX_CELLS: usize = 1 << 24;

/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 30;

/// What is wrong with a table or its file. Lines and columns count from 1; lines count the header.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// No values at all.
    #[error("the table has no values")]
    Empty,
    /// A cell that is no number, or one with too many characters.
    #[error("line {line}, column {column}: \"{text}\" is not a number")]
    Text {
        /// Line of the file.
        line: u64,
        /// Cell of the line.
        column: usize,
        /// The cell, shortened.
        text: String,
    },
    /// NaN, an infinity, or a magnitude beyond binary64.
    #[error("line {line}, column {column}: \"{text}\" is not a finite number")]
    NotFinite {
        /// Line of the file, or row of the array.
        line: u64,
        /// Cell of the line.
        column: usize,
        /// The cell, shortened.
        text: String,
    },
    /// A line with another number of cells than the first.
    #[error("line {line} has {found} values, line 1 has {expected}")]
    Ragged {
        /// Line of the file.
        line: u64,
        /// Cells in the first line.
        expected: usize,
        /// Cells in this one.
        found: usize,
    },
    /// More than [`MAX_CELLS`] cells.
    #[error("the table has {found} cells, the limit is {limit}")]
    TooLarge {
        /// How many there are.
        found: u64,
        /// How many there may be.
        limit: u64,
    },
    /// Not the CSV text it should be: quotes or encoding.
    #[error("line {line}: {what}")]
    BadCsv {
        /// Line of the file.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// Not an NPY file that can be read.
    #[error("NPY: {what}")]
    BadNpy {
        /// What is wrong, with the numbers.
        what: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A column that does not exist.
    #[error("column {column} of a table with {columns} columns")]
    NoColumn {
        /// The column asked for, from 1.
        column: usize,
        /// How many there are.
        columns: usize,
    },
    /// A cell that had to be an integer.
    #[error("row {row}, column {column}: {value} is not an integer")]
    NotInteger {
        /// Row of values, from 1, without the header.
        row: usize,
        /// Column, from 1.
        column: usize,
        /// The cell.
        value: String,
    },
    /// A number the format or the type asked for cannot hold.
    #[error("row {row}, column {column}: {value} does not fit {target}")]
    DoesNotFit {
        /// Row of values, from 1, without the header.
        row: usize,
        /// Column, from 1.
        column: usize,
        /// The cell, shortened.
        value: String,
        /// What it should fit.
        target: &'static str,
    },
    /// Columns of different lengths.
    #[error("column {column} has {found} values, the first has {expected}")]
    UnequalColumns {
        /// Column, from 1.
        column: usize,
        /// Values in the first column.
        expected: usize,
        /// Values in this one.
        found: usize,
    },
}

impl TableError {
    /// The stable name of this kind of error, for scripts.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::File(error) => error.kind(),
            Self::Empty => "table_empty",
            Self::Text { .. } => "table_text",
            Self::NotFinite { .. } => "table_not_finite",
            Self::Ragged { .. } => "table_ragged",
            Self::TooLarge { .. } => "table_too_large",
            Self::BadCsv { .. } => "table_bad_csv",
            Self::BadNpy { .. } => "table_bad_npy",
            Self::NoColumn { .. } => "table_no_column",
            Self::NotInteger { .. } => "table_not_integer",
            Self::DoesNotFit { .. } => "table_does_not_fit",
            Self::UnequalColumns { .. } => "table_unequal_columns",
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::File(error) => error.remedy(),
            Self::Empty => "give at least one row of numbers",
            Self::Text { .. } => {
                "write numbers with a decimal point, separated by commas; only line 1 may hold names, and then only names"
            }
            Self::NotFinite { .. } => "remove or replace missing and infinite values before encrypting",
            Self::Ragged { .. } => "give every line the same number of values",
            Self::TooLarge { .. } => "split the table into several files",
            Self::BadCsv { .. } => "save the file as UTF-8 CSV, with quotes closed on the line they open",
            Self::BadNpy { remedy, .. } => remedy,
            Self::NoColumn { .. } => "name a column that exists; columns count from 1",
            Self::NotInteger { .. } => "round or scale the column to integers, or use ckks for reals",
            Self::DoesNotFit { .. } => "write CSV, which holds integers of any size, or scale the column down",
            Self::UnequalColumns { .. } => "give every column the same number of values",
        }
    }
}

/// A matrix of numbers, at least 1 x 1, with optional column names.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    names: Option<Vec<String>>,
    columns: usize,
    cells: Vec<Number>,
}

impl Table {
    /// A table from its columns, all of one length, and as many names as columns or none.
    ///
    /// # Errors
    /// [`TableError::Empty`], [`TableError::UnequalColumns`] (also for the wrong number of names),
    /// [`TableError::TooLarge`].
    pub fn from_columns(names: Option<Vec<String>>, columns: &[Vec<Number>]) -> Result<Self, TableError> {
        let rows = columns.first().map_or(0, Vec::len);
        if rows == 0 {
            return Err(TableError::Empty);
        }
        if let Some(column) = columns.iter().position(|c| c.len() != rows) {
            return Err(TableError::UnequalColumns {
                column: column + 1,
                expected: rows,
                found: columns[column].len(),
            });
        }
        if names.as_ref().is_some_and(|n| n.len() != columns.len()) {
            return Err(TableError::UnequalColumns { column: columns.len() + 1, expected: rows, found: 0 });
        }
        check_size(rows, columns.len())?;
        let cells = (0..rows).flat_map(|row| columns.iter().map(move |c| c[row].clone())).collect();
        Ok(Self { names, columns: columns.len(), cells })
    }

    /// Reads a file: NPY if it begins with NPY's magic, CSV otherwise.
    ///
    /// # Errors
    /// Any [`TableError`] of reading.
    pub fn read(path: &Path) -> Result<Self, TableError> {
        Self::from_bytes(&file::read(path, MAX_FILE_BYTES)?)
    }

    /// What [`Self::read`] does, on bytes.
    ///
    /// # Errors
    /// Any [`TableError`] of reading but `File`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TableError> {
        if bytes.starts_with(npy::MAGIC) { npy::decode(bytes) } else { csv_format::decode(bytes) }
    }

    /// The bytes of a file for this table: NPY when `path` ends in `.npy`, CSV otherwise.
    ///
    /// # Errors
    /// [`TableError::DoesNotFit`] for a number that NPY cannot hold.
    pub fn to_bytes(&self, path: &Path) -> Result<Vec<u8>, TableError> {
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy")) {
            npy::encode(self)
        } else {
            csv_format::encode(self)
        }
    }

    /// Number of rows of values.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.cells.len() / self.columns
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The column names, where the file had any.
    #[must_use]
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// Whether every cell is an integer.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.cells.iter().all(|c| matches!(c, Number::Int(_)))
    }

    /// The cells of column `column` (from 0), top to bottom.
    ///
    /// # Errors
    /// [`TableError::NoColumn`].
    pub fn column(&self, column: usize) -> Result<impl Iterator<Item = &Number>, TableError> {
        if column >= self.columns {
            return Err(TableError::NoColumn { column: column.saturating_add(1), columns: self.columns });
        }
        Ok(self.cells[column..].iter().step_by(self.columns))
    }

    /// Column `column` (from 0) as binary64 reals.
    ///
    /// # Errors
    /// [`TableError::NoColumn`]; [`TableError::DoesNotFit`] for an integer beyond binary64.
    pub fn reals(&self, column: usize) -> Result<Vec<f64>, TableError> {
        self.convert(column, Number::to_f64, |row, value| TableError::DoesNotFit {
            row,
            column: column + 1,
            value: shorten(&value.to_string()),
            target: "a binary64 real",
        })
    }

    /// Column `column` (from 0) as integers; reals without a fraction count as integers up to 2^53.
    ///
    /// # Errors
    /// [`TableError::NoColumn`]; [`TableError::NotInteger`].
    pub fn integers(&self, column: usize) -> Result<Vec<BigInt>, TableError> {
        self.convert(column, Number::to_integer, |row, value| TableError::NotInteger {
            row,
            column: column + 1,
            value: shorten(&value.to_string()),
        })
    }

    fn convert<T>(
        &self,
        column: usize,
        convert: impl Fn(&Number) -> Option<T>,
        error: impl Fn(usize, &Number) -> TableError,
    ) -> Result<Vec<T>, TableError> {
        self.column(column)?.enumerate().map(|(row, cell)| convert(cell).ok_or_else(|| error(row + 1, cell))).collect()
    }
}

/// Refuses more than [`MAX_CELLS`] cells.
fn check_size(rows: usize, columns: usize) -> Result<(), TableError> {
    match rows.checked_mul(columns) {
        Some(cells) if cells <= MAX_CELLS => Ok(()),
        cells => Err(TableError::TooLarge { found: cells.map_or(u64::MAX, |c| c as u64), limit: MAX_CELLS as u64 }),
    }
}

/// The error for a cell that [`Number::parse`] refused.
fn cell_error(error: NumberError, line: u64, column: usize, text: &str) -> TableError {
    let text = shorten(text);
    match error {
        NumberError::NotFinite => TableError::NotFinite { line, column, text },
        NumberError::Text | NumberError::TooLong => TableError::Text { line, column, text },
    }
}

/// At most 40 characters of `text`, control characters escaped, for a message.
fn shorten(text: &str) -> String {
    let head: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().count() > 40 { format!("{head}...") } else { head }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_back_as_they_went_in() {
        let wide: BigInt = BigInt::from(1) << 200;
        let table = Table::from_columns(
            Some(vec!["a".into(), "b".into()]),
            &[vec![Number::from(1), Number::Int(wide.clone())], vec![Number::Real(0.5), Number::Real(4.0)]],
        )
        .unwrap();
        assert_eq!((table.rows(), table.columns()), (2, 2));
        assert_eq!(table.integers(0).unwrap(), [BigInt::from(1), wide]);
        assert_eq!(table.reals(1).unwrap(), [0.5, 4.0]);
        assert!(matches!(table.integers(1), Err(TableError::NotInteger { row: 1, column: 2, .. })));
        assert!(matches!(table.reals(2), Err(TableError::NoColumn { column: 3, columns: 2 })));
        assert!(!table.is_integer());
    }

    #[test]
    fn columns_of_unequal_length_or_none_are_refused() {
        let one = vec![Number::from(1)];
        let two = vec![Number::from(1), Number::from(2)];
        let error = Table::from_columns(None, &[one.clone(), two]).unwrap_err();
        assert!(matches!(error, TableError::UnequalColumns { column: 2, expected: 1, found: 2 }));
        assert!(matches!(Table::from_columns(None, &[]), Err(TableError::Empty)));
        assert!(matches!(Table::from_columns(None, &[vec![]]), Err(TableError::Empty)));
        assert!(Table::from_columns(Some(vec![]), &[one]).is_err());
    }

    #[test]
    fn an_integer_beyond_binary64_is_no_real() {
        let table = Table::from_columns(None, &[vec![Number::Int(BigInt::from(1) << 1100)]]).unwrap();
        assert!(matches!(table.reals(0), Err(TableError::DoesNotFit { row: 1, column: 1, .. })));
    }

    #[test]
    fn a_missing_file_names_its_path() {
        let error = Table::read(Path::new("/nonexistent/x.csv")).unwrap_err();
        assert_eq!(error.kind(), "file_not_found");
        assert!(error.to_string().contains("/nonexistent/x.csv"));
    }
}
