//! The journal of decryptions: which ciphertexts met a party's share of the secret key, written down before the share leaves.
//!
//! A line for each ciphertext, the hexadecimal form of its hash, synced before the party sends anything that depends on it. After a crash at any
//! moment, kill -9 included, the journal knows every ciphertext whose share may have been seen, and refuses it; the
//! lines are also the count that the flooding is made for. It is begun with its key and belongs to it alone: a key without its
//! journal is refused, so that one that was copied, or lost its journal, does not begin to count anew.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use synchromesh::rlwe::file::{Access, Existing, FileError, Journal, Lock, Record};

use super::setup::PartyKey;
use crate::error::{Error, Result};

/// One key's decryptions. Two processes cannot have one open at the same time.
#[derive(Debug)]
pub struct DecryptionJournal {
    path: PathBuf,
    file: Journal,
    seen: HashSet<String>,
    made: u64,
    most: u64,
}

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
        Ok(Journal::create(path, &title(key)?, Access::Secret, existing)?)
    }

    /// Opens the journal of a key; `most` decryptions are allowed in all.
    ///
    /// # Errors
    /// [`Error::Unbound`] if it is not there, [`synchromesh_parties::Error::File`] if it is another key's, damaged, or
    /// another process has it open.
    pub fn open(path: &Path, key: &PartyKey, most: u64) -> Result<Self> {
        let opened = match Journal::open(path, &title(key)?, Lock::Now) {
            Err(FileError::NotFound { .. }) => {
                let file = key.file().unwrap_or_else(|| format!("the key of party {}", key.party()).into());
                return Err(Error::Unbound { file, record: path.to_owned() });
            }
            other => other?,
        };
        let (file, records) = opened;
        let made = records.len() as u64;
        // What was cut short was never sent, and counts all the same.
        let whole = |record| match record {
            Record::Whole(line) => Some(line),
            Record::Cut => None,
        };
        let seen = records.into_iter().filter_map(whole).collect();
        Ok(Self { path: path.to_owned(), file, seen, made, most })
    }

    /// Decryptions so far, those that were begun and not finished among them.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Writes down that these ciphertexts, by their hashes, are about to be decrypted. None of them may be again.
    ///
    /// # Errors
    /// [`Error::DecryptedBefore`] or [`Error::KeySpent`], and nothing is written; [`synchromesh_parties::Error::File`]
    /// if the journal cannot be written.
    pub fn intend(&mut self, ciphertexts: &[[u8; 32]]) -> Result<()> {
        let mut lines = Vec::with_capacity(ciphertexts.len());
        for hash in ciphertexts {
            let line = blake3::Hash::from(*hash).to_hex().to_string();
            if self.seen.contains(&line) || lines.contains(&line) {
                return Err(Error::DecryptedBefore { path: self.path.clone(), ciphertext: line[..16].to_owned() });
            }
            lines.push(line);
        }
        let wanted = lines.len() as u64;
        if wanted > self.most.saturating_sub(self.made) {
            return Err(Error::KeySpent { path: self.path.clone(), made: self.made, wanted, most: self.most });
        }
        let written = self.file.append(&lines);
        // Counted even if that failed: part of it may be on disk.
        self.made += wanted;
        self.seen.extend(lines);
        Ok(written?)
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
