//! Authenticated additive shares: party i holds x_i and a share of alpha x, where sum x_i = x and alpha is shared too.

use std::fmt;
use std::str::FromStr;

use synchromesh_parties::session::MOST_PARTIES;

use crate::error::{Error, Result};
use crate::field::{Element, Field};
use crate::mac::MacKeyShare;
use crate::matrix::Matrix;

/// Largest number of rows or columns of a shape.
pub const LONGEST_SIDE: usize = 1 << 16;

/// One party's share of a matrix X and of its MAC alpha X, of the same shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    value: Matrix,
    mac: Matrix,
}

impl Shared {
    /// From the two shares.
    ///
    /// # Errors
    /// [`Error::Shape`] if they differ in shape.
    pub fn new(value: Matrix, mac: Matrix) -> Result<Self> {
        let (left, right) = ((value.rows(), value.columns()), (mac.rows(), mac.columns()));
        if left == right { Ok(Self { value, mac }) } else { Err(Error::Shape { left, right, what: "a shared matrix" }) }
    }

    /// The share of the value.
    #[must_use]
    pub fn value(&self) -> &Matrix {
        &self.value
    }

    /// The share of the MAC.
    #[must_use]
    pub fn mac(&self) -> &Matrix {
        &self.mac
    }

    /// Both halves through one linear map.
    fn map(&self, f: impl Fn(&Matrix) -> Result<Matrix>) -> Result<Self> {
        Self::new(f(&self.value)?, f(&self.mac)?)
    }

    /// Shares of X + Y.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ.
    pub fn add(&self, field: &Field, other: &Self) -> Result<Self> {
        Self::new(self.value.add(field, &other.value)?, self.mac.add(field, &other.mac)?)
    }

    /// Shares of X - Y.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ.
    pub fn sub(&self, field: &Field, other: &Self) -> Result<Self> {
        Self::new(self.value.sub(field, &other.value)?, self.mac.sub(field, &other.mac)?)
    }

    /// Shares of c X for a public c.
    pub(crate) fn scale(&self, field: &Field, by: Element) -> Result<Self> {
        self.map(|half| Ok(half.scale(field, by)))
    }

    /// Shares of the products entry by entry with a public M.
    pub(crate) fn times_public(&self, field: &Field, by: &Matrix) -> Result<Self> {
        self.map(|half| half.times(field, by))
    }

    /// These entries of a row.
    pub(crate) fn columns(&self, range: std::ops::Range<usize>) -> Result<Self> {
        self.map(|half| half.columns_in(range.clone()))
    }

    /// Two rows, one after the other.
    pub(crate) fn beside(&self, other: &Self) -> Result<Self> {
        Self::new(self.value.beside(&other.value)?, self.mac.beside(&other.mac)?)
    }

    /// Shares of X M for a public M.
    ///
    /// # Errors
    /// [`Error::Shape`] unless X has as many columns as M has rows.
    pub fn mul_public(&self, field: &Field, by: &Matrix) -> Result<Self> {
        self.map(|half| half.mul(field, by))
    }

    /// Shares of M X for a public M.
    ///
    /// # Errors
    /// [`Error::Shape`] unless M has as many columns as X has rows.
    pub fn public_mul(&self, field: &Field, by: &Matrix) -> Result<Self> {
        self.map(|half| by.mul(field, half))
    }

    /// Shares of a public matrix M: party 0 holds M, everybody the share alpha_i M of the MAC.
    ///
    /// # Errors
    /// None but [`Error::Shape`] for an M without entries, of which there is none.
    pub fn public(field: &Field, m: &Matrix, party: usize, key: &MacKeyShare) -> Result<Self> {
        let value = if party == 0 { m.clone() } else { Matrix::zero(m.rows(), m.columns())? };
        Self::new(value, m.scale(field, key.secret()))
    }
}

/// The shape of a matrix product: `rows` x `inner` times `inner` x `columns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    rows: usize,
    inner: usize,
    columns: usize,
}

impl Shape {
    /// A shape with sides in 1..=65536.
    ///
    /// # Errors
    /// [`Error::Shape`] for other sides.
    pub fn new(rows: usize, inner: usize, columns: usize) -> Result<Self> {
        let legal = [rows, inner, columns].iter().all(|side| (1..=LONGEST_SIDE).contains(side));
        if legal {
            Ok(Self { rows, inner, columns })
        } else {
            Err(Error::Shape { left: (rows, inner), right: (inner, columns), what: "a product of matrices" })
        }
    }

    /// Rows and columns of A.
    #[must_use]
    pub fn a(self) -> (usize, usize) {
        (self.rows, self.inner)
    }

    /// Rows and columns of B.
    #[must_use]
    pub fn b(self) -> (usize, usize) {
        (self.inner, self.columns)
    }

    /// Rows and columns of C = A B.
    #[must_use]
    pub fn c(self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// Elements of A, B and C together.
    #[must_use]
    pub fn elements(self) -> usize {
        self.rows * self.inner + self.inner * self.columns + self.rows * self.columns
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.rows, self.inner, self.columns)
    }
}

impl FromStr for Shape {
    type Err = Error;

    /// `RxKxC`.
    fn from_str(text: &str) -> Result<Self> {
        let sides: Option<Vec<usize>> = text.split('x').map(|side| side.parse().ok()).collect();
        match sides.as_deref() {
            Some(&[rows, inner, columns]) => Self::new(rows, inner, columns),
            _ => Err(Error::Shape { left: (0, 0), right: (0, 0), what: "a shape RxKxC, such as 128x128x128" }),
        }
    }
}

/// One party's shares of random A and B and of C = A B. It is used up by one multiplication, hence no `Clone`.
#[derive(Debug)]
pub struct MatrixTriple {
    shape: Shape,
    /// Shares of A, B and C.
    pub(crate) parts: [Shared; 3],
}

impl MatrixTriple {
    /// A triple of shares of A, B and C.
    ///
    /// # Errors
    /// [`Error::Shape`] unless A is r x k, B is k x c and C is r x c.
    pub fn new(a: Shared, b: Shared, c: Shared) -> Result<Self> {
        let shape = Shape::new(a.value.rows(), a.value.columns(), b.value.columns())?;
        for (part, expected) in [(&b, shape.b()), (&c, shape.c())] {
            let found = (part.value.rows(), part.value.columns());
            if found != expected {
                return Err(Error::Shape { left: expected, right: found, what: "a matrix triple" });
            }
        }
        Ok(Self { shape, parts: [a, b, c] })
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

/// Opens triples of all parties, side by side, and checks C = A B and every MAC: for tests, and for whoever may see
/// everything. `triples[i]` and `keys[i]` are party i's.
///
/// # Errors
/// [`Error::WrongTriple`] for the first that is wrong; [`synchromesh_parties::Error::Parties`] or [`Error::Shape`] if
/// the lists do not fit.
pub fn check_opened(field: &Field, keys: &[MacKeyShare], triples: &[Vec<MatrixTriple>]) -> Result<()> {
    let (parties, count) = (keys.len(), triples.first().map_or(0, Vec::len));
    if parties != triples.len() || !(2..=MOST_PARTIES).contains(&parties) {
        return Err(synchromesh_parties::Error::Parties { party: triples.len(), parties, most: MOST_PARTIES }.into());
    }
    if let Some(other) = triples.iter().find(|list| list.len() != count) {
        return Err(Error::Shape { left: (count, 1), right: (other.len(), 1), what: "lists of the same triples" });
    }
    let alpha = keys.iter().fold(Element::ZERO, |sum, key| field.add(sum, key.secret()));
    for index in 0..count {
        let wrong = |reason| Error::WrongTriple { index, count, reason };
        let mut opened = Vec::with_capacity(3);
        for part in 0..3 {
            let shares = |half: fn(&Shared) -> &Matrix| sum(field, triples, index, part, half);
            let value = shares(Shared::value)?;
            if shares(Shared::mac)? != value.scale(field, alpha) {
                return Err(wrong("a MAC does not fit"));
            }
            opened.push(value);
        }
        if opened[0].mul(field, &opened[1])? != opened[2] {
            return Err(wrong("C is not A B"));
        }
    }
    Ok(())
}

fn sum(
    field: &Field,
    triples: &[Vec<MatrixTriple>],
    index: usize,
    part: usize,
    half: fn(&Shared) -> &Matrix,
) -> Result<Matrix> {
    let first = half(&triples[0][index].parts[part]).clone();
    triples[1..].iter().try_fold(first, |sum, list| sum.add(field, half(&list[index].parts[part])))
}
