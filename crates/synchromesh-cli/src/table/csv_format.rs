//! CSV (RFC 4180, comma, UTF-8): one line a row; line 1 holds column names when none of its cells is a number.

use super::{MAX_CELLS, Table, TableError, cell_error, check_size};
use crate::number::{Number, NumberError};

/// Reads a table.
pub(super) fn decode(bytes: &[u8]) -> Result<Table, TableError> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut record = csv::ByteRecord::new();
    let mut names = None;
    let mut columns = 0;
    let mut cells = Vec::new();
    while reader.read_byte_record(&mut record).map_err(|e| bad_csv(&e))? {
        let line = record.position().map_or(0, csv::Position::line);
        let fields = fields(&record, line)?;
        if columns == 0 {
            columns = fields.len();
            if fields.iter().all(|f| is_name(f)) {
                names = Some(fields.iter().map(|f| (*f).to_owned()).collect());
                continue;
            }
        }
        if fields.len() != columns {
            return Err(TableError::Ragged { line, expected: columns, found: fields.len() });
        }
        if cells.len() + columns > MAX_CELLS {
            check_size(cells.len() / columns + 1, columns)?;
        }
        for (index, field) in fields.iter().enumerate() {
            cells.push(Number::parse(field).map_err(|e| cell_error(e, line, index + 1, field))?);
        }
    }
    if cells.is_empty() { Err(TableError::Empty) } else { Ok(Table { names, columns, cells }) }
}

/// Writes the names, where there are any, and the numbers in the shortest form that reads back the same.
pub(super) fn encode(table: &Table) -> Result<Vec<u8>, TableError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    if let Some(names) = table.names() {
        writer.write_record(names.iter().map(|name| header(name))).map_err(|e| bad_csv(&e))?;
    }
    for row in table.cells.chunks(table.columns) {
        writer.write_record(row.iter().map(Number::to_string)).map_err(|e| bad_csv(&e))?;
    }
    writer.into_inner().map_err(|e| TableError::BadCsv { line: 0, what: e.to_string() })
}

fn fields(record: &csv::ByteRecord, line: u64) -> Result<Vec<&str>, TableError> {
    record
        .iter()
        .map(|field| std::str::from_utf8(field).map(trimmed))
        .collect::<Result<_, _>>()
        .map_err(|_| TableError::BadCsv { line, what: "not UTF-8 text".into() })
}

/// Without white space and byte-order marks around it, of whatever alphabet: for cells and names alike, so that a name that
/// is read is written as it is.
fn trimmed(field: &str) -> &str {
    field.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

/// A non-empty text that is no attempt at a number.
fn is_name(field: &str) -> bool {
    let number_like = field.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    !field.is_empty() && !number_like && Number::parse(field) == Err(NumberError::Text)
}

/// A name as it is written: one that would not read back as a name, say `2024`, `nan` or none at all, becomes
/// `column 2024`, so that a line of names is never taken for numbers.
fn header(name: &str) -> String {
    let name = trimmed(name);
    if is_name(name) { name.to_owned() } else { format!("column {name}").trim_end().to_owned() }
}

fn bad_csv(error: &csv::Error) -> TableError {
    TableError::BadCsv { line: error.position().map_or(0, csv::Position::line), what: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Table, TableError> {
        decode(text.as_bytes())
    }

    #[test]
    fn a_header_is_taken_for_names_only_when_no_cell_is_a_number() {
        let table = read("\u{feff}age, weight\r\n1,2.5\r\n-3,4e2\r\n").unwrap();
        assert_eq!(table.names().unwrap(), ["age", "weight"]);
        assert_eq!(table.integers(0).unwrap(), [BigInt::from(1), BigInt::from(-3)]);
        assert_eq!(table.reals(1).unwrap(), [2.5, 400.0]);
        assert_eq!(read("1,2\n3,4").unwrap().names(), None);
        assert_eq!(read("a, \u{feff}b\u{b} \n1,\u{a0}2\n").unwrap(), read("a,b\n1,2\n").unwrap());
        assert_eq!(read("\u{b}5\n3\n").unwrap().rows(), 2, "a number beside a vertical tab is no name");
        assert!(matches!(read("age,2\n3,4"), Err(TableError::Text { line: 1, column: 1, .. })));
        assert!(matches!(read("12a\n3"), Err(TableError::Text { line: 1, column: 1, .. })));
    }

    #[test]
    fn bad_cells_are_named_by_line_and_column() {
        assert!(matches!(read("a,b\n1,2\n3,x\n"), Err(TableError::Text { line: 3, column: 2, .. })));
        assert!(matches!(read("1,2\n3,\n"), Err(TableError::Text { line: 2, column: 2, .. })));
        assert!(matches!(read("1\nNaN\n"), Err(TableError::NotFinite { line: 2, column: 1, .. })));
        assert!(matches!(read("nan\n1\n"), Err(TableError::NotFinite { line: 1, column: 1, .. })));
        assert!(matches!(read("1\n1e999\n"), Err(TableError::NotFinite { line: 2, column: 1, .. })));
        assert!(matches!(read("1,2\n3\n"), Err(TableError::Ragged { line: 2, expected: 2, found: 1 })));
        assert!(matches!(read("a,b\n1,2,3\n"), Err(TableError::Ragged { line: 2, expected: 2, found: 3 })));
        assert!(matches!(decode(b"1\n\xff\n"), Err(TableError::BadCsv { line: 2, .. })));
    }

    #[test]
    fn a_line_of_names_is_never_read_as_numbers() {
        let cells = [1, 2, 3].map(Number::from).to_vec();
        for (name, read) in [
            ("2024", "column 2024"),
            (" 7 ", "column 7"),
            ("-.5e3", "column -.5e3"),
            ("nan", "column nan"),
            ("-inf", "column -inf"),
            ("infinity", "column infinity"),
            ("0x10", "column 0x10"),
            ("", "column"),
            (" \t", "column"),
            ("\u{feff}", "column"),
            ("\u{feff}3", "column 3"),
            ("\u{a0}5", "column 5"),
            ("a\r\nb", "a\r\nb"),
            ("\"12\"", "\"12\""),
            ("x,y", "x,y"),
            ("\u{5217}\u{1f600}", "\u{5217}\u{1f600}"),
            ("age", "age"),
        ] {
            let table = Table::from_columns(Some(vec![name.to_owned()]), std::slice::from_ref(&cells)).unwrap();
            let back = decode(&encode(&table).unwrap()).unwrap();
            assert_eq!((back.rows(), back.names().unwrap()), (3, &[read.to_owned()][..]), "{name:?}");
        }
        let two = Table::from_columns(Some(vec!["1".into(), "b".into()]), &[cells.clone(), cells]).unwrap();
        assert_eq!(decode(&encode(&two).unwrap()).unwrap().rows(), 3);
    }

    #[test]
    fn no_values_is_an_error() {
        for text in ["", "\n\n", "a,b\n"] {
            assert!(matches!(read(text), Err(TableError::Empty)), "{text:?}");
        }
    }

    #[test]
    fn long_cells_are_shortened_in_messages() {
        let message = read(&format!("1\n{}\n", "z".repeat(5000))).unwrap_err().to_string();
        assert!(message.len() < 120, "{message}");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            cells in prop::collection::vec(prop_oneof![
                any::<[u8; 32]>().prop_map(|b| Number::Int(BigInt::from_signed_bytes_le(&b))),
                any::<i64>().prop_map(Number::from),
                prop::num::f64::NORMAL.prop_map(Number::Real),
            ], 1..40),
        ) {
            let table = Table::from_columns(Some(vec!["a, \"quoted\"".into()]), &[cells]).unwrap();
            prop_assert_eq!(decode(&encode(&table).unwrap()).unwrap(), table);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Table::from_bytes(&bytes);
        }
    }
}
