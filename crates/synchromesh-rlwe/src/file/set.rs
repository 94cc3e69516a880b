//! Several new files of a directory that are there together or not at all.
//!
//! All are written and synced under temporary names. Then a record of them, with their digests, gets its name; then they
//! get theirs, in order; then the record goes. Whoever finds the record of a writer that is gone removes the files it
//! names, if their digests are those recorded, unless all are there: then only the record was left to be removed. Files that
//! are made one by one ([`Begun`]) have no digest in the record: none of them was there when it was written, and all go.

use super::read::{to_lock, without_waiting};
use super::temporary::{self, Temporary};
use super::{Access, Existing, FileError, permit, read, sync_directory};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// First line of a record.
const HEAD: &str = "synchromesh: these files are being written as one. If no synchromesh is at it any more, the next one \
                    that writes here clears up.";

/// Stands for the digest of a file that is not made yet.
const UNKNOWN: &str = "-";

/// Largest record, in bytes.
const MOST_BYTES: u64 = 1 << 16;

/// One file of a set.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Its name in the directory.
    pub name: &'a str,
    /// What it holds.
    pub bytes: &'a [u8],
    /// Who may read it.
    pub access: Access,
}

/// A set of files that is not written yet: none of them is there.
#[derive(Debug)]
pub struct Set {
    directory: PathBuf,
    names: Vec<String>,
}

/// A set whose files this process makes one by one. They are there together once it is finished; if that does not happen, they
/// are removed: when this is dropped, or by the next that begins the set.
#[derive(Debug)]
pub struct Begun {
    set: Set,
    /// Locked as long as it is open; none once the set is finished.
    lock: Option<File>,
}

impl Begun {
    /// All files are there, with their contents on the disk.
    ///
    /// # Errors
    /// [`FileError`]; then the files go.
    pub fn finish(mut self) -> Result<(), FileError> {
        self.set.sync()?;
        self.set.remove(&self.set.record())?;
        self.lock = None;
        self.set.sync()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // What stays is removed by the next.
            let paths = self.set.names.iter().map(|name| self.set.directory.join(name));
            paths.for_each(|path| drop(fs::remove_file(path)));
            let _ = fs::remove_file(self.set.record());
        }
    }
}

impl Set {
    /// Looks whether these files can be written to the directory, which is made if it is not there (mode 0700). What a
    /// writer that was stopped has left is removed.
    ///
    /// # Errors
    /// [`FileError::Exists`] if one is there, [`FileError::Busy`] while another process writes them.
    pub fn begin(directory: &Path, names: &[&str]) -> Result<Self, FileError> {
        super::create_private_directory(directory)?;
        let set = Self { directory: directory.to_owned(), names: names.iter().map(|&name| name.to_owned()).collect() };
        temporary::clear(directory);
        set.recover()?;
        set.names.iter().try_for_each(|name| permit(&directory.join(name), Existing::Keep))?;
        Ok(set)
    }

    /// Writes down that the files are about to be made, one by one.
    ///
    /// # Errors
    /// [`FileError::Busy`] while another process writes them, [`FileError::Exists`] if it has since this set was begun, or
    /// [`FileError::System`].
    pub fn open(self) -> Result<Begun, FileError> {
        let lock = self.note(self.names.iter().map(|name| format!("{UNKNOWN} {name}")))?;
        let there = self.names.iter().try_for_each(|name| permit(&self.directory.join(name), Existing::Keep));
        if let Err(error) = there {
            // Theirs: only the record goes.
            self.remove(&self.record())?;
            return Err(error);
        }
        Ok(Begun { set: self, lock: Some(lock) })
    }

    /// Writes the record of these lines, which is locked as long as it is open.
    fn note(&self, lines: impl Iterator<Item = String>) -> Result<File, FileError> {
        let record = self.record();
        let text = std::iter::once(HEAD.to_owned()).chain(lines).collect::<Vec<_>>().join("\n");
        let busy = |error| match error {
            FileError::Exists { .. } => FileError::Busy { path: self.directory.clone() },
            other => other,
        };
        Temporary::new(&record, text.as_bytes(), Access::Secret)?.commit(&record, false).map_err(busy)
    }

    /// Writes the files, which get their names in the order of `parts`: the last makes the set whole.
    ///
    /// # Errors
    /// [`FileError`]; then none of them is there.
    pub fn write(self, parts: &[Part<'_>]) -> Result<Vec<PathBuf>, FileError> {
        let paths: Vec<PathBuf> = parts.iter().map(|part| self.directory.join(part.name)).collect();
        let files = parts.iter().zip(&paths).map(|(part, path)| Temporary::new(path, part.bytes, part.access));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let record = self.record();
        let line = |part: &Part<'_>| format!("{} {}", blake3::hash(part.bytes).to_hex(), part.name);
        let lock = self.note(parts.iter().map(line))?;
        let outcome = self.name_all(files, &paths);
        if outcome.is_ok() {
            self.remove(&record)?;
        } else {
            // The first error is the one to tell.
            let _ = fs::remove_file(&record);
        }
        drop(lock);
        outcome.map(|()| paths)
    }

    fn name_all(&self, files: Vec<Temporary>, paths: &[PathBuf]) -> Result<(), FileError> {
        self.sync()?;
        for (done, (file, path)) in files.into_iter().zip(paths).enumerate() {
            if let Err(error) = file.commit(path, false) {
                paths[..done].iter().for_each(|path| drop(fs::remove_file(path)));
                return Err(error);
            }
        }
        self.sync()
    }

    /// The file that is there while the others get their names.
    fn record(&self) -> PathBuf {
        self.directory.join(format!(".{}.synchromesh-set", self.names.first().map_or("", String::as_str)))
    }

    /// Ends what a writer that was stopped has begun.
    fn recover(&self) -> Result<(), FileError> {
        let record = self.record();
        let Ok(lock) = to_lock().open(&record) else { return Ok(()) };
        let busy = || FileError::Busy { path: self.directory.clone() };
        if lock.try_lock().is_err() || !same_file(&lock, &record) {
            return Err(busy());
        }
        let text = read(&record, MOST_BYTES)?;
        let text = String::from_utf8_lossy(&text);
        let listed: Vec<(&str, PathBuf)> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(_, name)| self.names.iter().any(|own| own == name))
            .map(|(digest, name)| (digest, self.directory.join(name)))
            .collect();
        let there: Vec<&PathBuf> = listed.iter().filter(|(digest, path)| holds(path, digest)).map(|l| &l.1).collect();
        if there.len() < self.names.len() || listed.iter().any(|(digest, _)| *digest == UNKNOWN) {
            there.into_iter().try_for_each(|path| self.remove(path))?;
        }
        self.remove(&record)?;
        self.sync()
    }

    fn remove(&self, path: &Path) -> Result<(), FileError> {
        fs::remove_file(path).map_err(|e| FileError::system(path, "remove", &e))
    }

    fn sync(&self) -> Result<(), FileError> {
        sync_directory(&self.directory)
            .map_err(|e| FileError::system(&self.directory, "flush the directory to disk", &e))
    }
}

/// Whether the file at `path` is the one with this digest; any, where none is known.
fn holds(path: &Path, digest: &str) -> bool {
    if digest == UNKNOWN {
        return path.is_file();
    }
    let mut hasher = blake3::Hasher::new();
    let whole = without_waiting().open(path).and_then(|mut file| std::io::copy(&mut file, &mut hasher));
    whole.is_ok() && *hasher.finalize().to_hex() == *digest
}

/// Whether an open file still has this path.
#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    file.metadata().ok().map(place) == fs::metadata(path).ok().map(place)
}

#[cfg(not(unix))]
fn same_file(_file: &File, path: &Path) -> bool {
    path.exists()
}
