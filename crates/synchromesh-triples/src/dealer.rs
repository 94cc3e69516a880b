//! Triples from a dealer who sees everything: for tests of online phases and of files, never for real inputs.

use synchromesh_parties::session::numbered;

use crate::error::Result;
use crate::field::{Element, Field};
use crate::mac::MacKeyShare;
use crate::matrix::Matrix;
use crate::share::{MatrixTriple, Shape, Shared};

/// Somebody all parties would have to trust: he knows alpha, A, B and C.
#[derive(Debug)]
pub struct TrustedDealer {
    field: Field,
    keys: Vec<MacKeyShare>,
}

impl TrustedDealer {
    /// A dealer with a fresh MAC key for 2 to 64 parties.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::Parties`] for other numbers, [`synchromesh_parties::Error::Entropy`] when the
    /// system gives no randomness.
    pub fn new(field: &Field, parties: usize) -> Result<Self> {
        numbered(0, parties)?;
        let keys = (0..parties).map(|_| MacKeyShare::random(field)).collect::<Result<_>>()?;
        Ok(Self { field: field.clone(), keys })
    }

    /// Each party's share of the MAC key.
    #[must_use]
    pub fn keys(&self) -> &[MacKeyShare] {
        &self.keys
    }

    /// Shares of a matrix, one for each party.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::Entropy`] when the system gives no randomness.
    pub fn share(&self, matrix: &Matrix) -> Result<Vec<Shared>> {
        let alpha = self.keys.iter().fold(Element::ZERO, |sum, key| self.field.add(sum, key.secret()));
        let values = self.split(matrix)?;
        let macs = self.split(&matrix.scale(&self.field, alpha))?;
        values.into_iter().zip(macs).map(|(value, mac)| Shared::new(value, mac)).collect()
    }

    /// A random triple of this shape, one share for each party.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::Entropy`] when the system gives no randomness.
    pub fn triple(&self, shape: Shape) -> Result<Vec<MatrixTriple>> {
        let random = |(rows, columns)| Matrix::random(&self.field, rows, columns);
        let (a, b) = (random(shape.a())?, random(shape.b())?);
        let c = a.mul(&self.field, &b)?;
        let (a, b, c) = (self.share(&a)?, self.share(&b)?, self.share(&c)?);
        a.into_iter().zip(b).zip(c).map(|((a, b), c)| MatrixTriple::new(a, b, c)).collect()
    }

    /// Uniform matrices, one for each party, that add up to this one.
    fn split(&self, matrix: &Matrix) -> Result<Vec<Matrix>> {
        let mut rest = matrix.clone();
        let mut shares = Vec::with_capacity(self.keys.len());
        for _ in 1..self.keys.len() {
            let share = Matrix::random(&self.field, matrix.rows(), matrix.columns())?;
            rest = rest.sub(&self.field, &share)?;
            shares.push(share);
        }
        shares.push(rest);
        Ok(shares)
    }
}
