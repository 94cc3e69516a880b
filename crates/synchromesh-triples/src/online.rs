//! The online phase: products of shared matrices, one triple each, and results that are revealed after the check only.

use synchromesh_parties::transport::Transport;

use crate::error::Result;
use crate::mac::MacKeyShare;
use crate::matrix::Matrix;
use crate::opening::Unchecked;
use crate::session::Session;
use crate::share::{MatrixTriple, Shared};

/// One party's computation on shared matrices.
#[derive(Debug)]
pub struct Online<T> {
    session: Session<T>,
    key: MacKeyShare,
    unchecked: Unchecked,
}

impl<T: Transport> Online<T> {
    /// A computation in a session, under this share of the MAC key. Nothing is sent.
    ///
    /// # Errors
    /// [`Error::MacKeyBurnt`](crate::Error::MacKeyBurnt) for a key that others may know, and
    /// [`synchromesh_parties::Error::File`] where its record cannot be written to: no
    /// result could be checked.
    pub fn new(session: Session<T>, key: MacKeyShare) -> Result<Self> {
        key.ready()?;
        Ok(Self { session, key, unchecked: Unchecked::new() })
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Session<T> {
        &self.session
    }

    /// Shares of X Y, with two openings in one round (Beaver 1991): with D = X - A and E = Y - B public,
    /// X Y = C + D B + A E + D E. The triple is used up.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) unless the triple has the product's shape, and as [`Unchecked::open`].
    pub fn multiply(&mut self, x: &Shared, y: &Shared, triple: MatrixTriple) -> Result<Shared> {
        self.session.enter("a product");
        let field = self.session.field().clone();
        let [a, b, c] = &triple.parts;
        let (d, e) = (x.sub(&field, a)?, y.sub(&field, b)?);
        let [d, e] = &self.unchecked.open(&mut self.session, &[&d, &e])?[..] else {
            unreachable!("two matrices were opened");
        };
        let public = Shared::public(&field, &d.mul(&field, e)?, self.session.party(), &self.key)?;
        let mixed = b.public_mul(&field, d)?.add(&field, &a.mul_public(&field, e)?)?;
        c.add(&field, &mixed)?.add(&field, &public)
    }

    /// The matrices themselves, revealed to all parties: after everything opened before has passed the check, and returned
    /// after they have passed it themselves.
    ///
    /// # Errors
    /// [`Error::MacKeyLeaked`](crate::Error::MacKeyLeaked) if a check fails; nothing is revealed if it is the first. As
    /// [`Unchecked::check`].
    pub fn reveal(&mut self, shares: &[&Shared]) -> Result<Vec<Matrix>> {
        self.session.enter("the check before results");
        self.unchecked.check(&mut self.session, &self.key)?;
        self.session.enter("the results");
        let results = self.unchecked.open(&mut self.session, shares)?;
        self.unchecked.check(&mut self.session, &self.key)?;
        Ok(results)
    }
}
