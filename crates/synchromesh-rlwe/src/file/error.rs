//! Why a file was not read or not written.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

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
    /// The file that was to be replaced holds a key.
    #[error("{}: holds {what}, and would be lost", path.display())]
    Key {
        /// The path.
        path: PathBuf,
        /// What it holds.
        what: &'static str,
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
    /// The file is larger than the memory that is free. Nothing was read.
    #[error("{}: {needed} bytes, and {free} bytes of memory are free", path.display())]
    Memory {
        /// The path.
        path: PathBuf,
        /// Size of the file in bytes.
        needed: u64,
        /// Memory that could be had in bytes.
        free: u64,
    },
    /// The file became longer or shorter while it was read.
    #[error("{}: changed while it was read", path.display())]
    Changed {
        /// The path.
        path: PathBuf,
    },
    /// Another process has the file to itself, or is writing the same files.
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
            Self::Key { .. } => "file_is_a_key",
            Self::NotAFile { .. } => "not_a_file",
            Self::TooLarge { .. } => "file_too_large",
            Self::Memory { .. } => "file_exceeds_memory",
            Self::Changed { .. } => "file_changed",
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
            Self::Key { .. } => "choose another path; whoever wants to lose the key can force it",
            Self::NotAFile { .. } => "give the path of a regular file",
            Self::TooLarge { .. } => "check that the file is the one meant",
            Self::Memory { .. } => "check that the file is the one meant, or free memory",
            Self::Changed { .. } => "try again once nothing writes to the file",
            Self::Busy { .. } => "wait until the other process has ended, or choose another path",
            Self::Damaged { .. } => "bring back a copy that is whole, with the files that were written beside it",
            Self::System { .. } => "check the directory, its permissions and the free space",
        }
    }

    pub(super) fn system(path: &Path, doing: &'static str, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound if doing == "open" => Self::NotFound { path },
            io::ErrorKind::AlreadyExists => Self::Exists { path },
            _ => Self::System { path, doing, reason: error.to_string() },
        }
    }
}
