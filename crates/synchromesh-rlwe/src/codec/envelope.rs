//! Envelope keys as bytes: 32 of them, with the parameters and the secret key they go with in the header.

use zeroize::Zeroizing;

use super::{digest, open, require_named, require_seeded};
use crate::error::Error;
use crate::params::Params;
use crate::wire::{EnvelopeKey, Header, KeyId, ObjectType, Writer};

/// Bytes of the payload.
pub(super) const BYTES: u64 = crate::wire::ENVELOPE_KEY_BYTES as u64;

impl EnvelopeKey {
    /// The key as a container for files under the secret key `key`, wiped when dropped. Write it with
    /// [`Access::Secret`](crate::file::Access::Secret).
    ///
    /// # Errors
    /// [`Error::Wire`] for [`KeyId::NONE`].
    pub fn to_container(&self, params: &Params, key: KeyId) -> Result<Zeroizing<Vec<u8>>, Error> {
        require_named(key)?;
        let mut writer = Writer::new(Header::new(ObjectType::EnvelopeKey, digest(params), key), BYTES as usize);
        writer.raw(self.bytes());
        Ok(Zeroizing::new(writer.finish(None)))
    }

    /// The key in a container, and the secret key whose files it is for. The bytes are the caller's to wipe.
    ///
    /// # Errors
    /// [`Error::Wire`] for bytes that are not such a key of these parameters.
    pub fn from_container(params: &Params, bytes: &[u8]) -> Result<(Self, KeyId), Error> {
        let mut reader = open(params, bytes, ObjectType::EnvelopeKey, None, None)?;
        require_seeded(&reader, false)?;
        let key = Zeroizing::new(reader.array()?);
        let id = reader.header().key;
        reader.finish()?;
        Ok((Self::from_bytes(*key), id))
    }
}
