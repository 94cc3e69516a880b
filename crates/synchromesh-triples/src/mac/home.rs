//! The record of a MAC key on disk: where the key and triples under it were written, and marks of checks that have not passed.
//!
//! The record is a journal beside the file of the key. Its lines: `home <path>`, where the record was made, for a copy of it to find;
//! `wrote <path>`, a file that holds the key or triples under it; `ended <session>` and `void <session>`, a session
//! of which this party wrote the triples, and one that another party did not end so.
//!
//! A mark is a file beside it, `<record>.check-<digits>`, written and synced before a share of a check leaves, and locked by the
//! process that checks. One that is locked is a check that goes on; one that is not is a check that failed, or whose
//! process died: then the key may be known. Each check has its own mark, so that none takes away another's.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use synchromesh::rlwe::entropy;
use synchromesh::rlwe::file::{self, Access, Existing, FileError, Journal, Lock, Record};

use crate::error::{Error, Result};

/// What a mark says to whoever opens it.
const TEXT: &[u8] =
    b"A check of MACs began and has not passed. Unless it goes on still, the MAC key may be known to other parties: \
use neither the key nor triples under it, and make new ones.\n";

/// What a MAC key's records are known by: random, and no function of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) [u8; 16]);

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A record of a MAC key.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    path: PathBuf,
    name: Name,
}

/// What has become of checks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// All have passed.
    Clear,
    /// One goes on.
    Pending,
}

/// A check that has not passed.
#[derive(Debug)]
pub(crate) struct Mark {
    path: PathBuf,
    /// Its lock ends with it.
    file: File,
}

impl Mark {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes it away: its check has passed, or sent nothing.
    pub(crate) fn clear(self) -> Result<()> {
        file::remove(&self.path)?;
        drop(self.file);
        Ok(())
    }
}

impl Home {
    /// Begins a record beside `file`, which knows of the others of its key as they of it. One that is there without the file
    /// is of a run that got no further.
    pub(crate) fn create(path: &Path, file: &Path, name: Name, others: &[Self]) -> Result<Self> {
        Journal::create(path, &title(name), Access::Secret, Existing::beside(file))?;
        let home = Self { path: canonical(path)?, name };
        let all = std::iter::once(&home).chain(others).map(|home| said("home", &home.path));
        let all = all.collect::<Result<Vec<_>>>()?;
        home.add(&all)?;
        for other in others {
            other.add(&all[..1])?;
        }
        Ok(home)
    }

    /// The record at this path.
    ///
    /// # Errors
    /// [`Error::Unbound`] if there is none; [`synchromesh_parties::Error::File`] if it is another key's, or damaged.
    pub(crate) fn open(path: &Path, name: Name, of: &Path) -> Result<Self> {
        let missing = || Error::Unbound { file: of.to_owned(), record: path.to_owned() };
        match Journal::read(path, &title(name)) {
            Ok(_) => Ok(Self { path: canonical(path)?, name }),
            Err(FileError::NotFound { .. }) => Err(missing()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn records(&self) -> Result<Vec<String>> {
        let whole = |record| match record {
            Record::Whole(text) => Some(text),
            Record::Cut => None,
        };
        Ok(Journal::read(&self.path, &title(self.name))?.into_iter().filter_map(whole).collect())
    }

    fn add(&self, records: &[String]) -> Result<()> {
        let (mut journal, _) = Journal::open(&self.path, &title(self.name), Lock::Wait)?;
        Ok(journal.append(records)?)
    }

    /// What follows this word in the record, in order.
    fn all(&self, word: &str) -> Result<Vec<String>> {
        let rest = |record: String| record.strip_prefix(word)?.strip_prefix(' ').map(str::to_owned);
        Ok(self.records()?.into_iter().filter_map(rest).collect())
    }

    fn paths(&self, word: &str) -> Result<Vec<PathBuf>> {
        let read = |text: String| serde_json::from_str::<String>(&text).ok().map(PathBuf::from);
        Ok(self.all(word)?.into_iter().filter_map(read).collect())
    }

    /// Writes down that a file is about to hold the key, or triples under it.
    pub(crate) fn wrote(&self, file: &Path) -> Result<()> {
        self.add(&[said("wrote", &canonical(file)?)?])
    }

    /// Writes down that the triples of a session were written.
    pub(crate) fn ended(&self, session: &[u8; 32]) -> Result<()> {
        self.add(&[format!("ended {}", blake3::Hash::from(*session))])
    }

    /// Writes down that the triples of a session have no counterparts.
    pub(crate) fn void(&self, session: &[u8; 32]) -> Result<()> {
        self.add(&[format!("void {}", blake3::Hash::from(*session))])
    }

    /// Whether the triples of a session have no counterparts.
    pub(crate) fn is_void(&self, session: &[u8; 32]) -> Result<bool> {
        let session = blake3::Hash::from(*session).to_string();
        Ok(self.all("void")?.contains(&session))
    }

    /// Sessions that ended with triples everywhere, as far as is known, the last one first.
    pub(crate) fn sessions(&self) -> Result<Vec<[u8; 32]>> {
        let void = self.all("void")?;
        let ended = self.all("ended")?.into_iter().rev().filter(|session| !void.contains(session));
        Ok(ended.filter_map(|text| blake3::Hash::from_hex(text).ok()).map(|hash| *hash.as_bytes()).collect())
    }

    /// Marks the key. It counts as burnt from here on for whoever cannot see that this process goes on.
    pub(crate) fn mark(&self) -> Result<Mark> {
        let digits = u64::from_le_bytes(entropy::random_bytes()?);
        let mut name = self.prefix();
        name.push(format!("{digits:016x}"));
        let path = self.path.with_file_name(name);
        let file = file::write_locked(&path, TEXT)?;
        Ok(Mark { path, file })
    }

    /// Whether it could be marked.
    pub(crate) fn probe(&self) -> Result<()> {
        Ok(file::probe(&self.path)?)
    }

    fn prefix(&self) -> std::ffi::OsString {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".check-");
        name
    }

    /// All marks, and whether the check of each goes on.
    fn marks(&self) -> Result<Vec<(PathBuf, bool)>> {
        let prefix = self.prefix();
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let fail = |path: &Path, e: &io::Error| Error::format(path, e.to_string());
        let mut marks = Vec::new();
        for entry in fs::read_dir(directory).map_err(|e| fail(directory, &e))? {
            let name = entry.map_err(|e| fail(directory, &e))?.file_name();
            if !name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes()) {
                continue;
            }
            let path = directory.join(name);
            let held = match File::open(&path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                // What cannot be looked at is there all the same.
                Err(_) => false,
                Ok(file) => match file.try_lock_shared() {
                    // A check that passed takes its mark away before its lock.
                    Ok(()) if !path.exists() => continue,
                    Ok(()) | Err(TryLockError::Error(_)) => false,
                    Err(TryLockError::WouldBlock) => true,
                },
            };
            marks.push((path, held));
        }
        Ok(marks)
    }

    /// Marks of checks that did not pass.
    pub(crate) fn failed(&self) -> Result<Vec<PathBuf>> {
        Ok(self.marks()?.into_iter().filter(|(_, held)| !*held).map(|(path, _)| path).collect())
    }

    /// Checks that go on.
    pub(crate) fn pending(&self) -> Result<Vec<PathBuf>> {
        Ok(self.marks()?.into_iter().filter(|(_, held)| *held).map(|(path, _)| path).collect())
    }

    /// Whether one of these checks goes on.
    pub(crate) fn standing(&self, begun: &[PathBuf]) -> Result<Standing> {
        let pending = self.pending()?.iter().any(|path| begun.contains(path));
        Ok(if pending { Standing::Pending } else { Standing::Clear })
    }
}

/// These records, and those that are copies of them or that they are copies of, each once.
pub(crate) fn with_copies(homes: &[Home]) -> Result<Vec<Home>> {
    let mut all = homes.to_vec();
    for home in homes {
        for path in home.paths("home")? {
            // What is no record of this key any more, or cannot be reached, is none.
            match Home::open(&path, home.name, &path) {
                Ok(copy) if !all.iter().any(|known| known.path == copy.path) => all.push(copy),
                _ => {}
            }
        }
    }
    Ok(all)
}

/// Files that hold the key or triples under it, of those that are there still.
pub(crate) fn files(homes: &[Home]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for file in homes.iter().filter_map(|home| home.paths("wrote").ok()).flatten() {
        if !files.contains(&file) && file.exists() {
            files.push(file);
        }
    }
    files
}

/// Whether no check has failed, as far as these records know.
///
/// # Errors
/// [`Error::MacKeyBurnt`].
pub(crate) fn usable(homes: &[Home]) -> Result<()> {
    for home in homes {
        if let Some((mark, _)) = home.marks()?.into_iter().find(|(_, held)| !held) {
            let why = format!("{} is the mark of a check that did not pass", mark.display());
            return Err(Error::MacKeyBurnt { why, void: files(homes) });
        }
    }
    Ok(())
}

fn title(name: Name) -> String {
    format!("MAC key {name}")
}

fn said(word: &str, path: &Path) -> Result<String> {
    let text = path.to_str().ok_or_else(|| Error::format(path, "its path is not UTF-8, and cannot be written down"))?;
    Ok(format!("{word} {}", serde_json::Value::from(text)))
}

/// The path without links and dots, of a file that need not be there yet.
pub(crate) fn canonical(path: &Path) -> Result<PathBuf> {
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let parent = fs::canonicalize(parent).map_err(|e| Error::format(parent, e.to_string()))?;
    Ok(parent.join(path.file_name().unwrap_or_default()))
}
