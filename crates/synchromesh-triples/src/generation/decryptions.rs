//! The journal of decryptions: which ciphertexts met a party's share of the secret key, written down before the share leaves.
//!
//! A line for each ciphertext, the hexadecimal form of its hash, synced before the party sends anything that depends on it. After a crash at any
//! moment, kill -9 included, the journal knows every ciphertext whose share may have been seen, and refuses it; the
//! lines are also the count that the flooding is made for.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// One key's decryptions. Two processes cannot have one open at the same time.
#[derive(Debug)]
pub struct DecryptionJournal {
    path: PathBuf,
    file: File,
    seen: HashSet<String>,
    made: u64,
    most: u64,
}

impl DecryptionJournal {
    /// Opens the journal of a key, or begins it; `most` decryptions are allowed in all.
    ///
    /// # Errors
    /// [`Error::Format`] if it cannot be read, or another process has it open.
    pub fn open(path: &Path, most: u64) -> Result<Self> {
        let fail = |reason: String| Error::Format { path: path.to_owned(), reason };
        let options = OpenOptions::new().create(true).append(true).read(true).to_owned();
        let mut file = options.open(path).map_err(|e| fail(e.to_string()))?;
        file.try_lock().map_err(|_| fail("another process has it open".into()))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|e| fail(e.to_string()))?;
        // A line that a crash cut short counts too; its end is made up for, so that the next one begins anew.
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").map_err(|e| fail(e.to_string()))?;
        }
        let seen: HashSet<String> = text.lines().map(str::to_owned).collect();
        Ok(Self { path: path.to_owned(), file, made: text.lines().count() as u64, seen, most })
    }

    /// Decryptions so far, those that were begun and not finished among them.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Writes down that these ciphertexts, by their hashes, are about to be decrypted. None of them may be again.
    ///
    /// # Errors
    /// [`Error::DecryptedBefore`] or [`Error::KeySpent`], and nothing is written; [`Error::Format`] if the journal cannot be
    /// written.
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
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        let synced = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        // Counted even if that failed: part of it may be on disk.
        self.made += wanted;
        self.seen.extend(lines);
        synced.map_err(|e| Error::Format { path: self.path.clone(), reason: e.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_decrypted_twice_or_too_often_whatever_a_crash_left() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("decryptions.journal");
        let mut journal = DecryptionJournal::open(&path, 5).unwrap();
        assert_eq!(DecryptionJournal::open(&path, 5).unwrap_err().kind(), "format");
        journal.intend(&[[1; 32], [2; 32]]).unwrap();
        assert_eq!(journal.intend(&[[3; 32], [2; 32]]).unwrap_err().kind(), "decrypted_before");
        assert_eq!(journal.intend(&[[3; 32], [3; 32]]).unwrap_err().kind(), "decrypted_before");
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
        let mut journal = DecryptionJournal::open(&path, 5).unwrap();
        assert_eq!(journal.made(), 2);
        assert_eq!(journal.intend(&[[1; 32]]).unwrap_err().kind(), "decrypted_before");
        journal.intend(&[[3; 32]]).unwrap();
        assert_eq!(journal.intend(&[[4; 32], [5; 32], [6; 32]]).unwrap_err().kind(), "key_spent");
        drop(journal);
        let mut journal = DecryptionJournal::open(&path, 5).unwrap();
        assert_eq!(journal.intend(&[[3; 32]]).unwrap_err().kind(), "decrypted_before");
        journal.intend(&[[4; 32], [5; 32]]).unwrap();
        assert_eq!(journal.intend(&[[6; 32]]).unwrap_err().kind(), "key_spent");
    }
}
