//! Temporary files: named after the file they become, locked while their writer lives, and removed by the next writer
//! in the directory when it does not.

use super::read::to_lock;
use super::{Access, FileError, directory_of, name_of};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// What the names of temporary files end in, after a point, the name of the file and some letters.
const SUFFIX: &str = ".synchromesh-tmp";

/// Attempts at a temporary file that nobody takes for a dead one.
const ATTEMPTS: usize = 16;

/// A file, whole and on disk, that does not have its name yet. Dropped, it is gone.
pub(super) struct Temporary {
    file: NamedTempFile,
    access: Access,
}

impl Temporary {
    /// The bytes of the file at `path`, beside it.
    pub(super) fn new(path: &Path, bytes: &[u8], access: Access) -> Result<Self, FileError> {
        let fail = |doing| move |e: io::Error| FileError::system(path, doing, &e);
        let mut file = locked(path, access).map_err(fail("create a file beside it"))?;
        file.write_all(bytes).map_err(fail("write"))?;
        file.as_file().sync_all().map_err(fail("flush to disk"))?;
        Ok(Self { file, access })
    }

    /// Gives it its name; what has that name goes if `replace`. The file, still locked.
    pub(super) fn commit(self, path: &Path, replace: bool) -> Result<File, FileError> {
        let fail = |e: &io::Error| FileError::system(path, "rename into place", e);
        if replace {
            keep_mode(&self.file, path, self.access).map_err(|e| fail(&e))?;
            self.file.persist(path).map_err(|e| fail(&e.error))
        } else {
            self.file.persist_noclobber(path).map_err(|e| fail(&e.error))
        }
    }
}

/// A new file that this process holds a lock on.
fn locked(path: &Path, access: Access) -> io::Result<NamedTempFile> {
    // At most 4 bytes a character, and no name is longer than 255 bytes.
    let name: String = name_of(path).to_string_lossy().chars().take(50).collect();
    let prefix = format!(".{name}.");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = if access == Access::Secret { 0o600 } else { 0o644 };
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    let _ = access;
    for _ in 0..ATTEMPTS {
        let file = builder.tempfile_in(directory_of(path))?;
        match file.as_file().try_lock() {
            // Who cleared it between its creation and the lock has removed it.
            Ok(()) if file.path().exists() => return Ok(file),
            Ok(()) | Err(fs::TryLockError::WouldBlock) => {}
            // A file system without locks: nobody clears there either.
            Err(fs::TryLockError::Error(_)) => return Ok(file),
        }
    }
    Err(io::Error::other("another process removes temporary files"))
}

/// The mode of the file that is replaced, as far as `access` allows.
#[cfg(unix)]
fn keep_mode(file: &NamedTempFile, path: &Path, access: Access) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    match fs::symlink_metadata(path) {
        Ok(old) if old.is_file() => {
            let mode = old.permissions().mode() & access.most();
            file.as_file().set_permissions(fs::Permissions::from_mode(mode))
        }
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn keep_mode(_file: &NamedTempFile, _path: &Path, _access: Access) -> io::Result<()> {
    Ok(())
}

/// Removes the temporary files in a directory whose writers are gone. What cannot be looked at or removed stays.
pub(super) fn clear(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with('.') && name.ends_with(SUFFIX));
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        // Removed under the lock, so that no writer takes it between.
        if let Some(_lock) = abandoned(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The lock on a file that nobody else holds one on.
fn abandoned(path: &Path) -> Option<File> {
    to_lock().open(path).ok().filter(|file| file.try_lock().is_ok())
}
