//! What one party knows of a joint key: its share of the secret, and the key from which its noise comes.

use std::path::Path;

use synchromesh::rlwe::file::Existing;
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::ring::sampler::Seed;
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::{KeyId, Params};

use super::noise::NoiseKey;
use super::plan::{self, Plan};
use crate::error::{Error, Result};
use crate::journal::Decryptions;
use crate::proven::Rows;

/// One party's share of a joint key. Wiped when dropped, never printed.
pub struct KeyShare {
    pub(super) plan: Plan,
    pub(super) member: usize,
    pub(super) key: KeyId,
    pub(super) params_digest: [u8; 32],
    /// In slots, on all primes of keys: s_i, or for t of n the value of the polynomial at the member's point.
    pub(super) secret: SecretPoly<Cpu>,
    pub(super) noise: NoiseKey,
    /// Where shares are proven.
    pub(super) publics: Option<Publics>,
}

/// What every member's s_i is known by: its share b_i = -a s_i + t e_i of the public key.
pub(super) struct Publics {
    /// From which a is.
    pub(super) seed: Seed,
    /// b_i, on all primes of keys.
    pub(super) shares: Rows,
}

impl std::fmt::Debug for KeyShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyShare(member {} of {}, secret)", self.member, self.plan.parties)
    }
}

impl KeyShare {
    /// What was agreed on.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Number of the party when the key was made, from 0.
    #[must_use]
    pub const fn member(&self) -> usize {
        self.member
    }

    /// The name of the joint key.
    #[must_use]
    pub const fn key(&self) -> KeyId {
        self.key
    }

    /// The first line of its journal.
    pub(crate) fn title(&self) -> String {
        let key: String = self.key.0.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("decryptions by member {} of {} with key {key}", self.member, self.plan.parties)
    }

    /// Begins the journal of this share: once, beside the share itself.
    ///
    /// # Errors
    /// [`Error::File`] if there is a file already, or it cannot be written.
    pub fn begin_journal(&self, path: &Path) -> Result<()> {
        Decryptions::create(path, &self.title(), Existing::Keep)
    }

    /// Opens the journal of this share.
    ///
    /// # Errors
    /// As [`Decryptions::open`].
    pub fn open_journal(&self, path: &Path) -> Result<Decryptions> {
        Decryptions::open(path, &self.title(), self.plan.decryptions)
    }

    /// Fails unless the share is of a key under these parameters.
    pub(super) fn check(&self, params: &Params) -> Result<()> {
        plan::check(&self.plan, params)?;
        params.require_digest(&self.params_digest).map_err(Error::from)
    }
}
