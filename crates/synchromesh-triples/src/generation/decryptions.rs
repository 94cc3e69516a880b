//! The journal of decryptions of a party's key, see [`synchromesh_parties::journal`].

use std::path::Path;

use synchromesh::rlwe::file::Existing;
use synchromesh_parties::journal::Decryptions;

use super::setup::PartyKey;
use crate::error::{Error, Result};

/// One key's decryptions. Two processes cannot have one open at the same time.
#[derive(Debug)]
pub struct DecryptionJournal(Decryptions);

fn title(key: &PartyKey) -> Result<String> {
    Ok(format!("decryptions by party {} with key {}", key.party(), key.mac().name()?))
}

impl DecryptionJournal {
    /// Begins the journal of a new key. [`PartyKey::write`] does so for a key that it writes.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`] if there is a file already, or it cannot be written.
    pub fn create(path: &Path, key: &PartyKey) -> Result<()> {
        Self::begin(path, key, Existing::Keep)
    }

    pub(super) fn begin(path: &Path, key: &PartyKey, existing: Existing) -> Result<()> {
        Ok(Decryptions::create(path, &title(key)?, existing)?)
    }

    /// Opens the journal of a key; `most` decryptions are allowed in all.
    ///
    /// # Errors
    /// [`Error::Unbound`] if it is not there, [`synchromesh_parties::Error::File`] if it is another key's, damaged, or
    /// another process has it open.
    pub fn open(path: &Path, key: &PartyKey, most: u64) -> Result<Self> {
        match Decryptions::open(path, &title(key)?, most) {
            Err(synchromesh_parties::Error::NoJournal { path }) => {
                let file = key.file().unwrap_or_else(|| format!("the key of party {}", key.party()).into());
                Err(Error::Unbound { file, record: path })
            }
            opened => Ok(Self(opened?)),
        }
    }

    /// Decryptions so far, those that were begun and not finished among them.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.0.made()
    }

    /// Writes down that these ciphertexts, by their hashes, are about to be decrypted. None of them may be again.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::DecryptedBefore`] or [`synchromesh_parties::Error::KeySpent`], and nothing is written;
    /// [`synchromesh_parties::Error::File`] if the journal cannot be written.
    pub fn intend(&mut self, ciphertexts: &[[u8; 32]]) -> Result<()> {
        Ok(self.0.intend(ciphertexts)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::dealt;
    use super::*;

    #[test]
    fn nothing_is_decrypted_twice_or_too_often_whatever_a_crash_left() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("decryptions.journal");
        let keys = &dealt().1;
        assert_eq!(DecryptionJournal::open(&path, &keys[0], 5).unwrap_err().kind(), "record_missing");
        DecryptionJournal::create(&path, &keys[0]).unwrap();
        assert_eq!(DecryptionJournal::create(&path, &keys[0]).unwrap_err().kind(), "file_exists");
        assert_eq!(DecryptionJournal::open(&path, &keys[1], 5).unwrap_err().kind(), "file_damaged");
        let open = || DecryptionJournal::open(&path, &keys[0], 5);
        let mut journal = open().unwrap();
        assert_eq!(open().unwrap_err().kind(), "file_busy");
        journal.intend(&[[1; 32], [2; 32]]).unwrap();
        assert_eq!(journal.intend(&[[3; 32], [2; 32]]).unwrap_err().kind(), "decrypted_before");
        assert_eq!(journal.intend(&[[3; 32], [3; 32]]).unwrap_err().kind(), "decrypted_before");
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
        let mut journal = open().unwrap();
        assert_eq!(journal.made(), 2);
        assert_eq!(journal.intend(&[[1; 32]]).unwrap_err().kind(), "decrypted_before");
        journal.intend(&[[3; 32]]).unwrap();
        assert_eq!(journal.intend(&[[4; 32], [5; 32], [6; 32]]).unwrap_err().kind(), "key_spent");
        drop(journal);
        let mut journal = open().unwrap();
        assert_eq!(journal.intend(&[[3; 32]]).unwrap_err().kind(), "decrypted_before");
        journal.intend(&[[4; 32], [5; 32]]).unwrap();
        assert_eq!(journal.intend(&[[6; 32]]).unwrap_err().kind(), "key_spent");
    }
}
