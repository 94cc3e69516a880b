//! The journal of decryptions: which ciphertexts met a party's share of a secret key, written down before the share leaves.
//!
//! A line for each ciphertext, the hexadecimal form of its hash, synced before the party sends anything that depends on it. After a crash at any
//! moment, kill -9 included, the journal knows every ciphertext whose share may have been seen, and refuses it; the
//! lines are also the count that the noise is made for. It is begun with its key and belongs to it alone: a key without its
//! journal is refused, so that one that was copied, or lost its journal, does not begin to count anew.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use synchromesh::rlwe::file::{Access, Existing, FileError, Journal, Lock, Record};

use crate::error::{Error, Result};

/// One key's decryptions. Two processes cannot have one open at the same time.
#[derive(Debug)]
pub struct Decryptions {
    path: PathBuf,
    file: Journal,
    seen: HashSet<String>,
    made: u64,
    most: u64,
}

impl Decryptions {
    /// Begins the journal of a new key, which the title names.
    ///
    /// # Errors
    /// [`Error::File`] if there is a file already that is to be kept, or it cannot be written.
    pub fn create(path: &Path, title: &str, existing: Existing) -> Result<()> {
        Ok(Journal::create(path, title, Access::Secret, existing)?)
    }

    /// Opens the journal of a key; `most` decryptions are allowed in all.
    ///
    /// # Errors
    /// [`Error::NoJournal`] if it is not there, [`Error::File`] if it is another key's, damaged, or another process has it
    /// open.
    pub fn open(path: &Path, title: &str, most: u64) -> Result<Self> {
        let opened = match Journal::open(path, title, Lock::Now) {
            Err(FileError::NotFound { .. }) => return Err(Error::NoJournal { path: path.to_owned() }),
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

    /// The hashes of all ciphertexts that it has; of a line that was cut short one that no ciphertext has.
    #[must_use]
    pub fn hashes(&self) -> Vec<[u8; 32]> {
        let known = self.seen.iter().filter_map(|line| Some(*blake3::Hash::from_hex(line).ok()?.as_bytes()));
        let mut hashes: Vec<[u8; 32]> = known.collect();
        let cut = hashes.len() as u64..self.made;
        hashes.extend(cut.map(|i| *blake3::hash(format!("{} {i}", self.path.display()).as_bytes()).as_bytes()));
        hashes
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Decryptions so far, those that were begun and not finished among them.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Decryptions allowed in all.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Fails if one of these ciphertexts, by their hashes, was decrypted before, is named twice, or is one too many.
    ///
    /// # Errors
    /// [`Error::DecryptedBefore`] or [`Error::KeySpent`].
    pub fn permit(&self, ciphertexts: &[[u8; 32]]) -> Result<()> {
        self.lines(ciphertexts).map(drop)
    }

    /// Writes down that these ciphertexts, by their hashes, are about to be decrypted. None of them may be again.
    ///
    /// # Errors
    /// As [`Self::permit`], and nothing is written; [`Error::File`] if the journal cannot be written.
    pub fn intend(&mut self, ciphertexts: &[[u8; 32]]) -> Result<()> {
        let lines = self.lines(ciphertexts)?;
        let written = self.file.append(&lines);
        // Counted even if that failed: part of it may be on disk.
        self.made += lines.len() as u64;
        self.seen.extend(lines);
        Ok(written?)
    }

    fn lines(&self, ciphertexts: &[[u8; 32]]) -> Result<Vec<String>> {
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
        Ok(lines)
    }
}
