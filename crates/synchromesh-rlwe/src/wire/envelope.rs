//! Envelope keys: whoever holds one is trusted to state certificates.

use super::WireError;
use crate::entropy::{self, EntropyError};
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of an envelope key.
pub(crate) const KEY_BYTES: usize = 32;

/// A shared 32-byte key under which containers and files are authenticated. Zeroised on drop; `Debug` shows nothing.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct EnvelopeKey([u8; KEY_BYTES]);

/// Proof that something was found authentic under an [`EnvelopeKey`]; [`EnvelopeKey::check`] alone makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authentic(());

impl EnvelopeKey {
    /// A new key.
    ///
    /// # Errors
    /// [`EntropyError`] without randomness.
    pub fn random() -> Result<Self, EntropyError> {
        entropy::random_bytes().map(Self)
    }

    /// The key with these bytes. The caller answers for their entropy.
    #[must_use]
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes, for the file that keeps them.
    pub(crate) const fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// The authentication code of `bytes`, as something of the format that `label` names, "program, version, format".
    #[must_use]
    pub fn seal(&self, label: &'static str, bytes: &[u8]) -> [u8; 32] {
        *self.code(label, bytes).as_bytes()
    }

    /// Checks what [`Self::seal`] made.
    ///
    /// # Errors
    /// [`WireError::NotAuthentic`] for other bytes, another label or another key.
    pub fn check(&self, label: &'static str, bytes: &[u8], code: [u8; 32]) -> Result<Authentic, WireError> {
        // The comparison of `blake3::Hash` takes constant time.
        if self.code(label, bytes) == blake3::Hash::from_bytes(code) {
            return Ok(Authentic(()));
        }
        Err(WireError::NotAuthentic)
    }

    /// BLAKE3 in keyed mode, under a key derived for the format.
    pub(super) fn code(&self, label: &'static str, bytes: &[u8]) -> blake3::Hash {
        let mut derived = blake3::derive_key(label, &self.0);
        let code = blake3::keyed_hash(&derived, bytes);
        derived.zeroize();
        code
    }
}

impl fmt::Debug for EnvelopeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnvelopeKey(..)")
    }
}
