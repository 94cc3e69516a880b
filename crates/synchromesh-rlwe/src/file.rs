//! Files that are there whole or not at all: temporary file in the same directory, fsync, rename, fsync of the
//! directory; several that are there together or not at all ([`Set`]); [journals](Journal), to which lines are added; and
//! reading, with a limit, of what is a file.

mod error;
mod journal;
mod precious;
mod read;
mod set;
mod temporary;

pub use error::FileError;
pub use journal::{Journal, Lock, Record};
pub use precious::key_in;
pub use read::{Opened, read};
pub use set::{Begun, Part, Set};

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use temporary::Temporary;

/// Who may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its owner only (mode 0600), from before the first byte is written.
    Secret,
    /// Everyone the process's umask lets (mode 0644 less the umask).
    Public,
}

impl Access {
    /// The most that a file of this access lets anyone do.
    #[cfg(unix)]
    const fn most(self) -> u32 {
        match self {
            Self::Secret => 0o600,
            Self::Public => 0o777,
        }
    }
}

/// What is done when the file exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// A regular file is replaced at once, whole, and its mode is kept as far as [`Access`] allows. One that holds a key
    /// stays ([`key_in`]), and the write is an error.
    Replace,
    /// As [`Self::Replace`], and a key is no exception. Only on the user's own word.
    Force,
    /// It stays, and the write is an error.
    Keep,
}

impl Existing {
    /// For what stands beside `file` and is written before it: without `file` it is left of a run that got no further.
    #[must_use]
    pub fn beside(file: &Path) -> Self {
        if file.exists() { Self::Keep } else { Self::Force }
    }
}

/// Writes `bytes` to `path` so that after a crash at any moment the path holds the old file or the new one, whole.
/// A symbolic link at `path` is replaced, not followed.
///
/// Temporary files that a process left in the directory when it was killed are removed.
///
/// # Errors
/// [`FileError`], with the path; the old file is then untouched and nothing is left behind.
pub fn write(path: &Path, bytes: &[u8], access: Access, existing: Existing) -> Result<(), FileError> {
    permit(path, existing)?;
    let directory = directory_of(path);
    temporary::clear(directory);
    let temporary = Temporary::new(path, bytes, access)?;
    // Again, since writing took its time.
    permit(path, existing)?;
    temporary.commit(path, existing != Existing::Keep)?;
    sync_directory(directory).map_err(|e| FileError::system(path, "flush its directory to disk", &e))
}

/// Fails where [`write()`] would, for what is at `path` now: to be asked before the work whose result is written there.
///
/// # Errors
/// [`FileError::Exists`], [`FileError::NotAFile`] for anything but a regular file, [`FileError::Key`].
pub fn permit(path: &Path, existing: Existing) -> Result<(), FileError> {
    let Ok(entry) = fs::symlink_metadata(path) else { return Ok(()) };
    let path = || path.to_owned();
    // A link stands for what it leads to; one that leads nowhere holds nothing.
    let holds = if entry.is_symlink() { fs::metadata(path()).ok() } else { Some(entry) };
    if holds.is_some_and(|metadata| !metadata.is_file()) {
        return Err(FileError::NotAFile { path: path() });
    }
    match existing {
        Existing::Keep => Err(FileError::Exists { path: path() }),
        Existing::Force => Ok(()),
        Existing::Replace => match precious::key_at(&path()) {
            Some(what) => Err(FileError::Key { path: path(), what }),
            None => Ok(()),
        },
    }
}

/// Makes a directory and those above it, if they are not there; what is made, its owner alone may enter (mode 0700).
///
/// # Errors
/// [`FileError::System`].
pub fn create_private_directory(path: &Path) -> Result<(), FileError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|e| FileError::system(path, "make the directory", &e))
}

/// Writes a new secret file that this process has a lock on from before the file has its name: whoever finds it unlocked
/// knows that its writer is gone.
///
/// # Errors
/// [`FileError`], with the path; nothing is left behind.
pub fn write_locked(path: &Path, bytes: &[u8]) -> Result<File, FileError> {
    permit(path, Existing::Keep)?;
    let directory = directory_of(path);
    temporary::clear(directory);
    let file = Temporary::new(path, bytes, Access::Secret)?.commit(path, false)?;
    sync_directory(directory).map_err(|e| FileError::system(path, "flush its directory to disk", &e))?;
    Ok(file)
}

/// Removes a file, for good.
///
/// # Errors
/// [`FileError`], with the path.
pub fn remove(path: &Path) -> Result<(), FileError> {
    let fail = |doing| move |e: io::Error| FileError::system(path, doing, &e);
    fs::remove_file(path).map_err(fail("remove"))?;
    sync_directory(directory_of(path)).map_err(fail("flush its directory to disk"))
}

/// Whether a file could be written to `path` at present.
///
/// # Errors
/// [`FileError`], with the path.
pub fn probe(path: &Path) -> Result<(), FileError> {
    Temporary::new(path, &[], Access::Secret).map(drop)
}

/// Opens a regular file to be read in parts.
///
/// # Errors
/// [`FileError`], with the path.
pub fn open(path: &Path) -> Result<File, FileError> {
    Ok(Opened::open(path, u64::MAX)?.into_file())
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}

/// Names for messages: what a file is called without its directory.
fn name_of(path: &Path) -> PathBuf {
    path.file_name().map_or_else(PathBuf::new, PathBuf::from)
}

#[cfg(test)]
mod tests;
