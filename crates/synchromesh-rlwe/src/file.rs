//! Files that are there whole or not at all: temporary file in the same directory, fsync, rename, fsync of the
//! directory; reading with a limit; and [journals](Journal), to which lines are added.

mod journal;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

pub use journal::{Journal, Lock, Record};

/// Who may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its owner only (mode 0600), from before the first byte is written.
    Secret,
    /// Everyone the process's umask lets (mode 0644 less the umask).
    Public,
}

/// What is done when the file exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is replaced at once, whole.
    Replace,
    /// It stays, and the write is an error.
    Keep,
}

/// A file that cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileError {
    /// There is no such file.
    #[error("{}: no such file", path.display())]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// The file exists and was to be kept.
    #[error("{}: already exists", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// The path names a directory, a device or a pipe.
    #[error("{}: not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file is larger than anything acceptable. Nothing was read.
    #[error("{}: larger than {limit} bytes", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// Largest size allowed in bytes.
        limit: u64,
    },
    /// Another process has the file to itself.
    #[error("{}: another process has it open", path.display())]
    Busy {
        /// The path.
        path: PathBuf,
    },
    /// The file is not what was written to it.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The operating system refused.
    #[error("{}: cannot {doing}: {reason}", path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        reason: String,
    },
}

impl FileError {
    /// Stable name of the kind of error.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "file_not_found",
            Self::Exists { .. } => "file_exists",
            Self::NotAFile { .. } => "not_a_file",
            Self::TooLarge { .. } => "file_too_large",
            Self::Busy { .. } => "file_busy",
            Self::Damaged { .. } => "file_damaged",
            Self::System { .. } => "file_system",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "check the path",
            Self::Exists { .. } => "choose another path, or remove the file first if it is not needed",
            Self::NotAFile { .. } => "give the path of a regular file",
            Self::TooLarge { .. } => "check that the file is the one meant",
            Self::Busy { .. } => "wait until the other process has ended",
            Self::Damaged { .. } => "bring back a copy that is whole, with the files that were written beside it",
            Self::System { .. } => "check the directory, its permissions and the free space",
        }
    }

    fn system(path: &Path, doing: &'static str, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound if doing == "open" => Self::NotFound { path },
            io::ErrorKind::AlreadyExists => Self::Exists { path },
            _ => Self::System { path, doing, reason: error.to_string() },
        }
    }
}

/// Writes `bytes` to `path` so that after a crash at any moment the path holds the old file or the new one, whole.
/// A symbolic link at `path` is replaced, not followed.
///
/// # Errors
/// [`FileError`], with the path; the old file is then untouched and nothing is left behind.
pub fn write(path: &Path, bytes: &[u8], access: Access, existing: Existing) -> Result<(), FileError> {
    let fail = |doing| move |e: io::Error| FileError::system(path, doing, &e);
    let directory = directory_of(path);
    let mut file = temporary(directory, access).map_err(fail("create a file beside it"))?;
    file.write_all(bytes).map_err(fail("write"))?;
    file.as_file().sync_all().map_err(fail("flush to disk"))?;
    match existing {
        Existing::Replace => file.persist(path),
        Existing::Keep => file.persist_noclobber(path),
    }
    .map_err(|e| FileError::system(path, "rename into place", &e.error))?;
    sync_directory(directory).map_err(fail("flush its directory to disk"))
}

/// Writes a new secret file that this process has a lock on from before the file has its name: whoever finds it unlocked
/// knows that its writer is gone.
///
/// # Errors
/// [`FileError`], with the path; nothing is left behind.
pub fn write_locked(path: &Path, bytes: &[u8]) -> Result<File, FileError> {
    let fail = |doing| move |e: io::Error| FileError::system(path, doing, &e);
    let directory = directory_of(path);
    let mut file = temporary(directory, Access::Secret).map_err(fail("create a file beside it"))?;
    file.as_file().lock().map_err(fail("lock"))?;
    file.write_all(bytes).map_err(fail("write"))?;
    file.as_file().sync_all().map_err(fail("flush to disk"))?;
    let file = file.persist_noclobber(path).map_err(|e| FileError::system(path, "rename into place", &e.error))?;
    sync_directory(directory).map_err(fail("flush its directory to disk"))?;
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
    let fail = |e: io::Error| FileError::system(path, "create a file beside it", &e);
    temporary(directory_of(path), Access::Secret).map(drop).map_err(fail)
}

/// Opens a regular file to be read in parts.
///
/// # Errors
/// [`FileError`], with the path.
pub fn open(path: &Path) -> Result<File, FileError> {
    let fail = |e: io::Error| FileError::system(path, "open", &e);
    regular_size(path, &fs::metadata(path).map_err(fail)?, u64::MAX)?;
    File::open(path).map_err(fail)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

#[cfg(unix)]
fn temporary(directory: &Path, access: Access) -> io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let mode = match access {
        Access::Secret => 0o600,
        Access::Public => 0o644,
    };
    tempfile::Builder::new()
        .prefix(".")
        .suffix(".tmp")
        .permissions(fs::Permissions::from_mode(mode))
        .tempfile_in(directory)
}

#[cfg(not(unix))]
fn temporary(directory: &Path, _access: Access) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(".").suffix(".tmp").tempfile_in(directory)
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}

/// Reads a regular file of at most `limit` bytes. The size is checked before anything is allocated, and again while
/// reading. A secret file's bytes are the caller's to wipe.
///
/// # Errors
/// [`FileError`], with the path.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let fail = |doing| move |e: io::Error| FileError::system(path, doing, &e);
    // Looked at before opening: opening a pipe would wait for its writer.
    let size = regular_size(path, &fs::metadata(path).map_err(fail("open"))?, limit)?;
    let file = File::open(path).map_err(fail("open"))?;
    regular_size(path, &file.metadata().map_err(fail("read"))?, limit)?;
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(fail("read"))?;
    if bytes.len() as u64 > limit {
        return Err(FileError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

fn regular_size(path: &Path, metadata: &fs::Metadata, limit: u64) -> Result<u64, FileError> {
    let path = || path.to_owned();
    if !metadata.is_file() {
        return Err(FileError::NotAFile { path: path() });
    }
    if metadata.len() > limit {
        return Err(FileError::TooLarge { path: path(), limit });
    }
    Ok(metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_replaced_whole_or_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        write(&path, b"one", Access::Public, Existing::Keep).unwrap();
        let refused = write(&path, b"two", Access::Public, Existing::Keep).unwrap_err();
        assert_eq!(refused, FileError::Exists { path: path.clone() });
        assert_eq!(read(&path, 3).unwrap(), b"one");
        write(&path, b"three", Access::Public, Existing::Replace).unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"three");
        assert_eq!(names(dir.path()), ["key"], "no temporary file may stay");
    }

    #[cfg(unix)]
    #[test]
    fn secret_files_belong_to_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        write(&path, b"", Access::Public, Existing::Keep).unwrap();
        assert_ne!(mode() & 0o400, 0);
        write(&path, b"s", Access::Secret, Existing::Replace).unwrap();
        assert_eq!(mode(), 0o600);
        assert_eq!(temporary(dir.path(), Access::Secret).unwrap().as_file().metadata().unwrap().mode_bits(), 0o600);
    }

    #[cfg(unix)]
    trait ModeBits {
        fn mode_bits(&self) -> u32;
    }

    #[cfg(unix)]
    impl ModeBits for fs::Metadata {
        fn mode_bits(&self) -> u32 {
            use std::os::unix::fs::PermissionsExt;
            self.permissions().mode() & 0o777
        }
    }

    #[test]
    fn impossible_paths_are_typed_errors_with_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert_eq!(read(&path, 9).unwrap_err(), FileError::NotFound { path: path.clone() });
        assert_eq!(read(dir.path(), 9).unwrap_err().kind(), "not_a_file");
        fs::write(&path, b"0123456789").unwrap();
        assert_eq!(read(&path, 9).unwrap_err(), FileError::TooLarge { path: path.clone(), limit: 9 });
        assert_eq!(read(&path, 10).unwrap().len(), 10);
        let lost = write(&dir.path().join("no/such/dir"), b"", Access::Public, Existing::Replace).unwrap_err();
        assert_eq!(lost.kind(), "file_system");
        assert!(lost.to_string().contains("no/such/dir"), "{lost}");
        assert!(write(dir.path(), b"", Access::Public, Existing::Replace).is_err());
        assert!(write(Path::new(""), b"", Access::Public, Existing::Replace).is_err());
        assert_eq!(names(dir.path()), ["file"]);
    }
}
