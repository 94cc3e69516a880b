//! Shares and triples as bytes: all of A row by row, then B, then C; of each element its value's share, then its MAC's.

use synchromesh::plain_modulus::U256;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::field::{Element, Field};
use crate::matrix::Matrix;
use crate::share::{MatrixTriple, Shape, Shared};

impl Shared {
    /// The shares as bytes, row by row: of each entry its value's share, then its MAC's. Secret.
    #[must_use]
    pub fn to_bytes(&self, field: &Field) -> Zeroizing<Vec<u8>> {
        let entries = 2 * self.value().entries().len();
        let mut bytes = Zeroizing::new(Vec::with_capacity(entries * field.element_bytes()));
        Codec::plain(field).write_shared(self, &mut bytes);
        bytes
    }

    /// From [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::NotAnElement`] unless these are rows x columns pairs of residues.
    pub fn from_bytes(field: &Field, rows: usize, columns: usize, bytes: &[u8]) -> Result<Self> {
        Codec::plain(field).read_shared(rows, columns, bytes)
    }
}

/// How an element is written: whole little-endian words, of x itself or of x R mod p with R = 2^(64 words).
pub(crate) struct Codec<'a> {
    field: &'a Field,
    /// R and 1 / R as factors.
    radix: Option<[U256; 2]>,
}

impl<'a> Codec<'a> {
    /// Residues as they are.
    pub(crate) fn plain(field: &'a Field) -> Self {
        Self { field, radix: None }
    }

    /// Residues times R.
    pub(crate) fn montgomery(field: &'a Field) -> Self {
        Self { field, radix: Some(field.word_radix()) }
    }

    /// Bytes of a triple.
    pub(crate) fn triple_bytes(&self, shape: Shape) -> usize {
        shape.elements() * 2 * self.field.element_bytes()
    }

    pub(crate) fn write(&self, x: Element, bytes: &mut Vec<u8>) {
        let x = self.radix.as_ref().map_or(x, |[radix, _]| self.field.mul_factor(x, radix));
        self.field.write(x, bytes);
    }

    pub(crate) fn read(&self, bytes: &[u8]) -> Result<Element> {
        let x = self.field.read(bytes)?;
        Ok(self.radix.as_ref().map_or(x, |[_, inverse]| self.field.mul_factor(x, inverse)))
    }

    /// Appends triples that all have this shape.
    pub(crate) fn write_triples(&self, shape: Shape, triples: &[MatrixTriple], bytes: &mut Vec<u8>) -> Result<()> {
        for triple in triples {
            if triple.shape() != shape {
                return Err(Error::Shape { left: shape.a(), right: triple.shape().a(), what: "triples of one file" });
            }
            triple.parts.iter().for_each(|part| self.write_shared(part, bytes));
        }
        Ok(())
    }

    /// The triple in these bytes, exactly [`triple_bytes`](Self::triple_bytes) of them.
    pub(crate) fn read_triple(&self, shape: Shape, bytes: &[u8]) -> Result<MatrixTriple> {
        let width = self.field.element_bytes();
        let (a, rest) = bytes.split_at(shape.a().0 * shape.a().1 * 2 * width);
        let (b, c) = rest.split_at(shape.b().0 * shape.b().1 * 2 * width);
        let part = |(rows, columns), own| self.read_shared(rows, columns, own);
        MatrixTriple::new(part(shape.a(), a)?, part(shape.b(), b)?, part(shape.c(), c)?)
    }

    /// Appends a shared matrix.
    pub(crate) fn write_shared(&self, shared: &Shared, bytes: &mut Vec<u8>) {
        for (&value, &mac) in shared.value().entries().iter().zip(shared.mac().entries()) {
            self.write(value, bytes);
            self.write(mac, bytes);
        }
    }

    /// The shared matrix in these bytes.
    pub(crate) fn read_shared(&self, rows: usize, columns: usize, bytes: &[u8]) -> Result<Shared> {
        let width = self.field.element_bytes();
        let half = |offset: usize| {
            let entries =
                bytes.chunks(2 * width).map(|pair| self.read(pair.get(offset..offset + width).unwrap_or(&[])));
            Matrix::new(rows, columns, entries.collect::<Result<_>>()?)
        };
        Shared::new(half(0)?, half(width)?)
    }
}
