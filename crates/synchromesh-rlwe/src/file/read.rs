//! Reading of regular files: what else a path can name is refused before it is waited for, and no more memory is taken
//! than the file has bytes.

use super::FileError;
use crate::memory;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A regular file, opened, of which nothing was read yet.
#[derive(Debug)]
pub struct Opened {
    file: File,
    path: PathBuf,
    size: u64,
}

impl Opened {
    /// Opens a regular file of at most `limit` bytes.
    ///
    /// # Errors
    /// [`FileError`], with the path.
    pub fn open(path: &Path, limit: u64) -> Result<Self, FileError> {
        let fail = |doing| move |e: io::Error| FileError::system(path, doing, &e);
        // Looked at before opening, since a device may do something when it is opened; and again after.
        regular_size(path, &fs::metadata(path).map_err(fail("open"))?, limit)?;
        let file = without_waiting().open(path).map_err(fail("open"))?;
        let size = regular_size(path, &file.metadata().map_err(fail("read"))?, limit)?;
        Ok(Self { file, path: path.to_owned(), size })
    }

    /// The file, to be read in parts.
    pub(super) fn into_file(self) -> File {
        self.file
    }

    /// Its size in bytes when it was opened.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Fills `buffer` from byte `at` on, as far as the file goes; how many bytes that were.
    ///
    /// # Errors
    /// [`FileError::System`].
    pub fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<usize, FileError> {
        let mut filled = 0;
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at)).map_err(|e| self.failed(&e))?;
        while filled < buffer.len() {
            match file.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failed(&e)),
            }
        }
        Ok(filled)
    }

    /// All of it. A secret file's bytes are the caller's to wipe.
    ///
    /// # Errors
    /// [`FileError::Memory`] for more than is free; [`FileError::Changed`], [`FileError::System`].
    pub fn read(self) -> Result<Vec<u8>, FileError> {
        self.read_into(memory::available_bytes())
    }

    /// [`Self::read`] into so many bytes of memory, if that is known.
    pub(super) fn read_into(self, free: Option<u64>) -> Result<Vec<u8>, FileError> {
        let needed = self.size;
        let refuse = |free| FileError::Memory { path: self.path.clone(), needed, free };
        if let Some(free) = free.filter(|free| *free < needed) {
            return Err(refuse(free));
        }
        let mut bytes = Vec::new();
        let length = usize::try_from(needed).map_err(|_| refuse(usize::MAX as u64))?;
        bytes.try_reserve_exact(length).map_err(|_| refuse(memory::available_bytes().unwrap_or(0)))?;
        bytes.resize(length, 0);
        let changed = || FileError::Changed { path: self.path.clone() };
        if self.read_at(0, &mut bytes)? != length || self.read_at(needed, &mut [0])? != 0 {
            return Err(changed());
        }
        Ok(bytes)
    }

    fn failed(&self, error: &io::Error) -> FileError {
        FileError::system(&self.path, "read", error)
    }
}

/// Reads a regular file of at most `limit` bytes. The size is checked before anything is allocated. A secret file's bytes
/// are the caller's to wipe.
///
/// # Errors
/// [`FileError`], with the path.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    Opened::open(path, limit)?.read()
}

/// Opens for reading; a pipe that has taken the place of the file is not waited for.
#[cfg(unix)]
pub(super) fn without_waiting() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).to_owned()
}

#[cfg(not(unix))]
pub(super) fn without_waiting() -> OpenOptions {
    OpenOptions::new().read(true).to_owned()
}

/// Opens for a lock, which some file systems give to writers only.
pub(super) fn to_lock() -> OpenOptions {
    without_waiting().write(true).to_owned()
}

pub(super) fn regular_size(path: &Path, metadata: &fs::Metadata, limit: u64) -> Result<u64, FileError> {
    let path = || path.to_owned();
    if !metadata.is_file() {
        return Err(FileError::NotAFile { path: path() });
    }
    if metadata.len() > limit {
        return Err(FileError::TooLarge { path: path(), limit });
    }
    Ok(metadata.len())
}
