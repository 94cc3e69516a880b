//! NPY, versions 1.0 and 2.0: magic, version, header length, a Python dictionary `{'descr', 'fortran_order', 'shape'}`,
//! then the values, little-endian, row after row. One and two dimensions; a vector is one column.

use super::{Table, TableError, check_size, shorten};
use crate::number::{EXACT_REAL, Number};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

/// The first bytes of every NPY file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// The number types of an array, by NumPy's names without the byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    F4,
    F8,
    Signed(usize),
    Unsigned(usize),
}

impl Kind {
    fn parse(descr: &str) -> Result<Self, TableError> {
        let kind = match descr.strip_prefix(['<', '|', '=']).unwrap_or(descr) {
            "f4" => Self::F4,
            "f8" => Self::F8,
            "i1" => Self::Signed(1),
            "i2" => Self::Signed(2),
            "i4" => Self::Signed(4),
            "i8" => Self::Signed(8),
            "u1" => Self::Unsigned(1),
            "u2" => Self::Unsigned(2),
            "u4" => Self::Unsigned(4),
            "u8" => Self::Unsigned(8),
            _ => {
                return Err(bad(
                    format!("numbers of type '{}' are not read", shorten(descr)),
                    "save little-endian integers or floats, say array.astype('<f8')",
                ));
            }
        };
        Ok(kind)
    }

    fn bytes(self) -> usize {
        match self {
            Self::F4 => 4,
            Self::F8 => 8,
            Self::Signed(bytes) | Self::Unsigned(bytes) => bytes,
        }
    }

    /// The number in `bytes`, as many as [`Self::bytes`]; `None` for NaN and infinities.
    fn number(self, bytes: &[u8]) -> Option<Number> {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        match self {
            Self::F4 => Number::real(f64::from(f32::from_bits(word as u32))),
            Self::F8 => Number::real(f64::from_bits(word)),
            Self::Signed(bytes) => {
                let unused = 64 - 8 * bytes as u32;
                Some(Number::from((word << unused) as i64 >> unused))
            }
            Self::Unsigned(_) => Some(Number::Int(BigInt::from(word))),
        }
    }
}

/// Reads a table. Every length is checked against the bytes there are before anything is allocated.
pub(super) fn decode(bytes: &[u8]) -> Result<Table, TableError> {
    let (header, body) = split_header(bytes)?;
    let header = Header::parse(header)?;
    if header.fortran_order {
        return Err(bad("the array is stored column by column".into(), "save np.ascontiguousarray(array)"));
    }
    let (rows, columns) = match header.shape[..] {
        [rows] => (rows, 1),
        [rows, columns] => (rows, columns),
        _ => {
            return Err(bad(
                format!("the array has {} dimensions", header.shape.len()),
                "save a vector or a matrix, say array.reshape(len(array), -1)",
            ));
        }
    };
    if rows == 0 || columns == 0 {
        return Err(TableError::Empty);
    }
    check_size(rows, columns)?;
    let kind = Kind::parse(&header.descr)?;
    let need = rows * columns * kind.bytes();
    if body.len() != need {
        return Err(bad(
            format!("{rows} x {columns} values need {need} bytes, the file has {}", body.len()),
            "the file is cut short or has something appended: save it again",
        ));
    }
    let cells = body.chunks_exact(kind.bytes()).enumerate().map(|(index, value)| {
        kind.number(value).ok_or_else(|| TableError::NotFinite {
            line: (index / columns + 1) as u64,
            column: index % columns + 1,
            text: "NaN or infinity".into(),
        })
    });
    Ok(Table { names: None, columns, cells: cells.collect::<Result<_, _>>()? })
}

/// Writes version 1.0: `<i8` or `<u8` when all cells are integers that fit, `<f8` otherwise. One column is a vector.
pub(super) fn encode(table: &Table) -> Result<Vec<u8>, TableError> {
    let integer = |cell: &Number| match cell {
        Number::Int(value) => Some(value.clone()),
        Number::Real(_) => None,
    };
    let (descr, words): (_, Result<Vec<u64>, TableError>) =
        if let Some(words) = table.cells.iter().map(|c| integer(c)?.to_i64().map(|v| v as u64)).collect() {
            ("<i8", Ok(words))
        } else if let Some(words) = table.cells.iter().map(|c| integer(c)?.to_u64()).collect() {
            ("<u8", Ok(words))
        } else {
            ("<f8", table.cells.iter().enumerate().map(|(index, cell)| real_bits(table, index, cell)).collect())
        };
    let words = words?;
    let shape = match table.columns {
        1 => format!("({},)", table.rows()),
        columns => format!("({}, {columns})", table.rows()),
    };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let mut out = Vec::with_capacity(MAGIC.len() + 4 + header.len() + 8 * words.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend(words.iter().flat_map(|w| w.to_le_bytes()));
    Ok(out)
}

/// The bits of a cell as binary64, unless it is an integer that would be rounded.
fn real_bits(table: &Table, index: usize, cell: &Number) -> Result<u64, TableError> {
    match cell {
        Number::Real(value) => Some(*value),
        Number::Int(value) if *value.magnitude() <= EXACT_REAL.into() => value.to_f64(),
        Number::Int(_) => None,
    }
    .map(f64::to_bits)
    .ok_or_else(|| TableError::DoesNotFit {
        row: index / table.columns + 1,
        column: index % table.columns + 1,
        value: shorten(&cell.to_string()),
        target: "an NPY file of 64-bit numbers",
    })
}

/// The header text and the values.
fn split_header(bytes: &[u8]) -> Result<(&str, &[u8]), TableError> {
    const CUT: &str = "the file is cut short: save it again";
    let rest = bytes.get(MAGIC.len()..).unwrap_or_default();
    let (version, rest) =
        rest.split_first_chunk::<2>().ok_or_else(|| bad("the file ends in its version".into(), CUT))?;
    let short = || bad("the file ends in its header".into(), CUT);
    let (length, rest) = match version {
        [1, 0] => {
            rest.split_first_chunk().map(|(l, rest)| (u16::from_le_bytes(*l) as usize, rest)).ok_or_else(short)?
        }
        [2, 0] => {
            rest.split_first_chunk().map(|(l, rest)| (u32::from_le_bytes(*l) as usize, rest)).ok_or_else(short)?
        }
        [major, minor] => {
            return Err(bad(
                format!("version {major}.{minor} is not read, 1.0 and 2.0 are"),
                "save with numpy.save, which writes 1.0",
            ));
        }
    };
    let (header, body) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| bad_header("it is not text"))?;
    Ok((header, body))
}

/// The dictionary at the head of the file.
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    fn parse(text: &str) -> Result<Self, TableError> {
        let mut reader = Dictionary { rest: text };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        reader.expect("{")?;
        while !reader.accept("}") {
            let key = reader.string()?;
            reader.expect(":")?;
            match key {
                "descr" => descr = Some(reader.string()?.to_owned()),
                "fortran_order" => fortran_order = Some(reader.boolean()?),
                "shape" => shape = Some(reader.tuple()?),
                _ => return Err(bad_header("it has an unknown key")),
            }
            if !reader.accept(",") {
                reader.expect("}")?;
                break;
            }
        }
        if !reader.rest.trim().is_empty() {
            return Err(bad_header("something follows its dictionary"));
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Self { descr, fortran_order, shape }),
            _ => Err(bad_header("it lacks descr, fortran_order or shape")),
        }
    }
}

/// What is left to read of a Python dictionary literal.
struct Dictionary<'a> {
    rest: &'a str,
}

impl<'a> Dictionary<'a> {
    fn accept(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), TableError> {
        if self.accept(token) { Ok(()) } else { Err(bad_header("it is not the dictionary numpy writes")) }
    }

    fn string(&mut self) -> Result<&'a str, TableError> {
        let quote = if self.accept("'") { '\'' } else { self.expect("\"").map(|()| '"')? };
        let (text, rest) = self.rest.split_once(quote).ok_or_else(|| bad_header("a text in it does not end"))?;
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, TableError> {
        if self.accept("True") { Ok(true) } else { self.expect("False").map(|()| false) }
    }

    fn tuple(&mut self) -> Result<Vec<usize>, TableError> {
        self.expect("(")?;
        let mut values = Vec::new();
        while !self.accept(")") {
            let rest = self.rest.trim_start();
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            values.push(rest[..digits].parse().map_err(|_| bad_header("its shape is not a tuple of sizes"))?);
            self.rest = &rest[digits..];
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(values)
    }
}

fn bad(what: String, remedy: &'static str) -> TableError {
    TableError::BadNpy { what, remedy }
}

fn bad_header(what: &str) -> TableError {
    bad(format!("the header is damaged: {what}"), "save the array again with numpy.save")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn file(version: u8, header: &str, body: &[u8]) -> Vec<u8> {
        let length = header.len() as u32;
        let mut out = [MAGIC, &[version, 0]].concat();
        out.extend_from_slice(&length.to_le_bytes()[..if version == 1 { 2 } else { 4 }]);
        [&out, header.as_bytes(), body].concat()
    }

    fn header(descr: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}   \n")
    }

    #[test]
    fn every_type_reads_its_extremes() {
        let cases: [(&str, &[u8], &str); 10] = [
            ("<f8", &(-0.5f64).to_le_bytes(), "-0.5"),
            ("<f4", &1.5f32.to_le_bytes(), "1.5"),
            ("|i1", &[0x80], "-128"),
            ("<i2", &i16::MIN.to_le_bytes(), "-32768"),
            ("<i4", &i32::MIN.to_le_bytes(), "-2147483648"),
            ("<i8", &i64::MIN.to_le_bytes(), "-9223372036854775808"),
            ("|u1", &[0xff], "255"),
            ("<u2", &u16::MAX.to_le_bytes(), "65535"),
            ("<u4", &u32::MAX.to_le_bytes(), "4294967295"),
            ("<u8", &u64::MAX.to_le_bytes(), "18446744073709551615"),
        ];
        for (descr, body, text) in cases {
            for version in [1, 2] {
                let table = decode(&file(version, &header(descr, "(1,)"), body)).unwrap();
                assert_eq!(table.cells[0].to_string(), text, "{descr}");
            }
        }
    }

    #[test]
    fn a_matrix_is_read_row_after_row() {
        let table = decode(&file(1, &header("|u1", "(2, 3)"), &[1, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!((table.rows(), table.columns()), (2, 3));
        assert_eq!(table.integers(1).unwrap(), [BigInt::from(2), BigInt::from(5)]);
    }

    #[test]
    fn what_cannot_be_read_is_a_typed_error() {
        let error = |bytes: &[u8]| decode(bytes).unwrap_err();
        for (descr, shape, words) in [
            (">f8", "(1,)", 1),
            ("<c16", "(1,)", 2),
            ("|O", "(1,)", 1),
            ("<f8", "()", 1),
            ("<f8", "(1, 1, 1)", 1),
            ("<f8", "(2,)", 1),
            ("<f8", "(1,)", 2),
        ] {
            let kind = error(&file(1, &header(descr, shape), &vec![0; 8 * words])).kind();
            assert_eq!(kind, "table_bad_npy", "{descr} {shape}");
        }
        assert_eq!(error(&file(1, &header("<f8", "(0, 3)"), &[])).kind(), "table_empty");
        assert_eq!(error(&file(1, &header("<f8", "(9999999999, 9999999999)"), &[])).kind(), "table_too_large");
        assert_eq!(error(&file(1, &header("<f8", "(99999999999999999999999,)"), &[])).kind(), "table_bad_npy");
        let nan = file(1, &header("<f8", "(1, 2)"), &[0.0f64.to_le_bytes(), f64::NAN.to_le_bytes()].concat());
        assert!(matches!(error(&nan), TableError::NotFinite { line: 1, column: 2, .. }));
        assert_eq!(error(&file(9, "{}", &[])).kind(), "table_bad_npy");
        let fortran = header("<f8", "(1,)").replace("False", "True");
        assert!(error(&file(1, &fortran, &[0; 8])).to_string().contains("column by column"));
    }

    #[test]
    fn every_truncation_is_a_typed_error() {
        let whole = file(1, &header("<i8", "(2,)"), &[7; 16]);
        assert!(decode(&whole).is_ok());
        for length in MAGIC.len()..whole.len() {
            assert_eq!(decode(&whole[..length]).unwrap_err().kind(), "table_bad_npy", "{length}");
        }
    }

    #[test]
    fn integers_that_would_be_rounded_are_not_written() {
        let wide = Number::Int(BigInt::from(1) << 64);
        let table = Table::from_columns(None, &[vec![Number::from(0), wide]]).unwrap();
        assert!(matches!(encode(&table), Err(TableError::DoesNotFit { row: 2, column: 1, .. })));
        let mixed = Table::from_columns(None, &[vec![Number::Real(0.5), Number::from((1 << 53) + 1)]]).unwrap();
        assert!(matches!(encode(&mixed), Err(TableError::DoesNotFit { row: 2, column: 1, .. })));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            integers in prop::collection::vec(any::<i64>(), 1..20),
            reals in prop::collection::vec(prop::num::f64::NORMAL, 1..20),
            above in any::<u64>(),
        ) {
            let columns = [
                integers.into_iter().map(Number::from).collect::<Vec<_>>(),
                reals.into_iter().map(Number::Real).collect(),
                vec![Number::Int(BigInt::from(above)), Number::Int(BigInt::from(u64::MAX))],
            ];
            for column in columns {
                let table = Table::from_columns(None, &[column]).unwrap();
                let bytes = table.to_bytes(Path::new("x.npy")).unwrap();
                prop_assert_eq!((bytes.len() - 8 * table.rows()) % 64, 0);
                prop_assert_eq!(Table::from_bytes(&bytes).unwrap(), table);
            }
        }

        #[test]
        fn damaged_bytes_never_panic(at in 0usize..90, value in any::<u8>()) {
            let mut bytes = file(1, &header("<f8", "(1, 2)"), &[0; 16]);
            let at = at % bytes.len();
            bytes[at] = value;
            let _ = Table::from_bytes(&bytes);
        }
    }
}
