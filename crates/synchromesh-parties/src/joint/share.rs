//! What one party knows of a joint key: its share of the secret, and the key from which its noise comes.

use std::path::Path;

use synchromesh::rlwe::file::{self, Access, Existing, Journal};
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::ring::sampler::Seed;
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::{Context, KeyId, Params};

use super::noise::NoiseKey;
use super::plan::{self, Plan};
use super::{points, replicated};
use crate::error::{Error, Result};
use crate::journal::Decryptions;
use crate::proven::Rows;

/// One party's share of a joint key. Wiped when dropped, never printed.
pub struct KeyShare {
    pub(super) plan: Plan,
    pub(super) member: usize,
    pub(super) key: KeyId,
    /// Which shares of it these are: 0 as the key was made, and another number each time it was handed on.
    pub(super) sharing: u32,
    pub(super) params_digest: [u8; 32],
    /// In slots, on all primes of keys: s_i; for t of n the value of the polynomial at the member's point or, where shares are
    /// proven, each secret that the member knows.
    pub(super) secrets: Vec<SecretPoly<Cpu>>,
    pub(super) noise: NoiseKey,
    /// Where shares are proven.
    pub(super) publics: Option<Publics>,
}

/// What each secret s_i is known by: its share b_i = -a s_i + t e_i of the public key.
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
        let made = if self.sharing == 0 { String::new() } else { format!(", handed on as {:08x}", self.sharing) };
        format!("decryptions by member {} of {} with key {key}{made}", self.member, self.plan.parties)
    }

    /// Begins the journal of this share: once, beside the share itself.
    ///
    /// # Errors
    /// [`Error::File`] if there is a file already, or it cannot be written.
    pub fn begin_journal(&self, path: &Path) -> Result<()> {
        Decryptions::create(path, &self.title(), Existing::Keep)
    }

    /// As [`Self::begin_journal`] for a share of new holders, of a key that these ciphertexts were decrypted with, by their hashes.
    ///
    /// # Errors
    /// As [`Self::begin_journal`].
    pub fn begin_journal_with(&self, path: &Path, decrypted: &[[u8; 32]]) -> Result<()> {
        Ok(file::write(path, &self.journal_with(decrypted), Access::Secret, Existing::Keep)?)
    }

    /// The bytes of such a journal.
    pub(crate) fn journal_with(&self, decrypted: &[[u8; 32]]) -> Vec<u8> {
        let lines: Vec<String> = decrypted.iter().map(|hash| blake3::Hash::from(*hash).to_hex().to_string()).collect();
        Journal::begun(&self.title(), &lines)
    }

    /// Opens the journal of this share.
    ///
    /// # Errors
    /// As [`Decryptions::open`].
    pub fn open_journal(&self, path: &Path) -> Result<Decryptions> {
        Decryptions::open(path, &self.title(), self.plan.decryptions)
    }

    /// What this member adds to s among these.
    pub(super) fn part(&self, context: &Context<Cpu>, members: &[usize]) -> Result<SecretPoly<Cpu>> {
        match &self.secrets[..] {
            [share] if !self.plan.proofs => points::part(context, &self.plan, share, members, self.member),
            secrets => replicated::part(context, &self.plan, secrets, members, self.member),
        }
    }

    /// Fails unless the share is of a key under these parameters.
    pub(super) fn check(&self, params: &Params) -> Result<()> {
        plan::check(&self.plan, params)?;
        params.require_digest(&self.params_digest).map_err(Error::from)
    }
}
