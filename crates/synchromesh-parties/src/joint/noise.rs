//! Where the noise comes from that hides a share of a decryption: it is a function of a party's key, the ciphertext, who else is
//! there, and the width.
//!
//! A party that is made to repeat itself says the same again: two shares of one ciphertext under different noise would
//! reveal s_i by averaging. Where others take part, the share has another Lagrange factor, and other noise.

use synchromesh::rlwe::entropy;
use synchromesh::rlwe::flood::seed_of;
use synchromesh::rlwe::ring::sampler::Seed;
use zeroize::Zeroizing;

use crate::error::Result;

/// The secret from which a party's noise comes. Wiped when dropped, never printed.
pub(super) struct NoiseKey(Zeroizing<[u8; KEY_BYTES]>);

/// Bytes of a [`NoiseKey`].
pub(super) const KEY_BYTES: usize = 32;

impl NoiseKey {
    /// A fresh one.
    pub(super) fn generate() -> Result<Self> {
        Ok(Self(Zeroizing::new(entropy::random_bytes::<KEY_BYTES>()?)))
    }

    /// The one with these bytes.
    pub(super) const fn from_bytes(bytes: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        Self(bytes)
    }

    /// Its bytes, to be written where nobody else reads.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0[..]
    }

    /// The seed for what these bytes describe.
    pub(super) fn seed(&self, subject: &[u8]) -> Seed {
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 parties, flooding");
        hasher.update(&self.0[..]);
        hasher.update(subject);
        seed_of(hasher)
    }
}
