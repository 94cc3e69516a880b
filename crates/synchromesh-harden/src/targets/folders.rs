//! Readers of files that are read only beside others: a folder of valid files made once, in which one is replaced by the input.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::Outcome;

/// Valid files that belong together, and their reader.
pub(crate) struct Folder {
    pub(crate) name: &'static str,
    make: fn(&Path) -> Result<()>,
    pub(crate) read: fn(&Path) -> Outcome,
    /// Paths seen from the folder, each with another file name, and contents.
    files: OnceLock<Vec<(PathBuf, Vec<u8>)>>,
}

impl Folder {
    pub(super) const fn new(name: &'static str, make: fn(&Path) -> Result<()>, read: fn(&Path) -> Outcome) -> Self {
        Self { name, make, read, files: OnceLock::new() }
    }

    /// The files as they were made. They read in another folder, or else no input of a target would get to its reader.
    pub(crate) fn files(&self) -> &[(PathBuf, Vec<u8>)] {
        let made = || {
            let folder = fresh()?;
            (self.make)(folder.path())?;
            let files = files_in(folder.path())?;
            // What was made is gone by now: a reader sees its own folder alone.
            drop(folder);
            let outcome = self.read_with(&files, None);
            ensure!(outcome == Outcome::Accepted, "they do not read: {outcome:?}");
            Ok(files)
        };
        self.files.get_or_init(|| made().unwrap_or_else(|error| panic!("the files of {}: {error:#}", self.name)))
    }

    /// The contents of the file of that name.
    pub(super) fn seeds(&self, name: &str) -> Result<Vec<Vec<u8>>> {
        let found = self.files().iter().find(|(path, _)| is(path, name));
        let (_, bytes) = found.with_context(|| format!("no file {name} of {}", self.name))?;
        Ok(vec![bytes.clone()])
    }

    /// Reads the folder with these bytes in the file of that name.
    pub(super) fn read(&self, name: &str, bytes: &[u8]) -> Outcome {
        self.read_with(self.files(), Some((name, bytes)))
    }

    fn read_with(&self, files: &[(PathBuf, Vec<u8>)], instead: Option<(&str, &[u8])>) -> Outcome {
        let folder = fresh().expect("a folder");
        for (path, bytes) in files {
            let other = instead.filter(|(name, _)| is(path, name));
            put(&folder.path().join(path), other.map_or(&bytes[..], |(_, bytes)| bytes)).expect("a file");
        }
        (self.read)(folder.path())
    }
}

fn is(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|found| found == name)
}

/// An empty folder that is gone afterwards; in memory where the system has that, as the readers of journals wait for the disk.
pub(crate) fn fresh() -> Result<TempDir> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).context("no folder")
}

/// Writes a file and the folder that it is in.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// All files below a folder, by their paths seen from it, in order.
pub(crate) fn files_in(root: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                files.push((path.strip_prefix(root)?.to_owned(), bytes));
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(folder: &Path) -> Result<()> {
        put(&folder.join("a"), b"one")?;
        put(&folder.join("deep/b"), b"two")
    }

    fn read(folder: &Path) -> Outcome {
        let found: Vec<_> = files_in(folder).expect("files").into_iter().map(|(_, bytes)| bytes).collect();
        if found[0] == b"one" { Outcome::Accepted } else { Outcome::Refused(format!("{found:?}")) }
    }

    #[test]
    fn one_file_is_replaced_and_the_others_are_as_they_were_made() {
        static FOLDER: Folder = Folder::new("test", make, read);
        assert_eq!(FOLDER.seeds("b").expect("a file"), [b"two"]);
        assert!(FOLDER.seeds("c").is_err());
        assert_eq!(FOLDER.read("b", b"three"), Outcome::Accepted);
        assert_eq!(FOLDER.read("a", b"x"), Outcome::Refused(format!("{:?}", [&b"x"[..], b"two"])));
    }

    #[test]
    #[should_panic(expected = "they do not read")]
    fn files_that_do_not_read_are_no_template() {
        static FOLDER: Folder = Folder::new("test", make, |_| Outcome::Refused("never".to_owned()));
        let _ = FOLDER.files();
    }
}
