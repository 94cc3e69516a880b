//! A session of parties that compute in one field, of which MACs are to be as secure as they agreed.

use std::ops::{Deref, DerefMut};

use synchromesh_parties::session;
use synchromesh_parties::transport::Transport;

use crate::error::{Error, Result};
use crate::field::{Element, Field};

/// One party's side of a session. It is a [`session::Session`] of a field.
#[derive(Debug)]
pub struct Session<T> {
    session: session::Session<T>,
    field: Field,
}

impl<T: Transport> Session<T> {
    /// Begins a session of parties that give the same field, security in bits and description of what they will do.
    ///
    /// # Errors
    /// [`Error::WeakMac`] if p has no more than `statistical_security` bits, and as [`session::Session::new`].
    pub fn new(transport: T, field: &Field, statistical_security: u32, description: &str) -> Result<Self> {
        if field.bits() <= u64::from(statistical_security) {
            return Err(Error::WeakMac { bits: field.bits(), wanted: u64::from(statistical_security) + 1 });
        }
        let about = format!("{:x}, {statistical_security}: {description}", field.prime());
        Ok(Self { session: session::Session::new(transport, about)?, field: field.clone() })
    }

    /// The field.
    #[must_use]
    pub const fn field(&self) -> &Field {
        &self.field
    }

    /// Uniform elements that no party could influence or foresee.
    ///
    /// # Errors
    /// As [`session::Session::coins`].
    pub fn toss(&mut self, count: usize) -> Result<Vec<Element>> {
        let mut coins = self.session.coins()?;
        let draw = |_| {
            let mut bytes = [0; 48];
            coins.fill(&mut bytes);
            self.field.reduce_bytes(&bytes)
        };
        Ok((0..count).map(draw).collect())
    }

    /// Ends the session in peace; its channels are free for another.
    ///
    /// # Errors
    /// As [`session::Session::into_transport`].
    pub fn into_transport(self) -> Result<T> {
        Ok(self.session.into_transport()?)
    }
}

impl<T> Deref for Session<T> {
    type Target = session::Session<T>;

    fn deref(&self) -> &Self::Target {
        &self.session
    }
}

impl<T> DerefMut for Session<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.session
    }
}
