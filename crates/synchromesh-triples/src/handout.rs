//! One run of a program of MP-SPDZ with the files of one run: they go to where MP-SPDZ reads them, once, and are gone when it ends.
//!
//! MP-SPDZ begins to read matrix files at their start whenever it is run, and in each thread, so that a second run on the same
//! file uses its triples again: differences of secrets are opened then. And it checks MACs, and says nothing of it to the
//! record of their key. So a run is a loan: its files are marked as used before they move, the MAC key counts as burnt while
//! the program goes on, as in a check here, and only a program that ends well takes the mark away.

use std::fs;
use std::path::{Path, PathBuf};

use synchromesh::rlwe::file::{self, Access, Existing, FileError};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::mac::MacKeyShare;
use crate::mac::home::{Home, Mark};
use crate::mac::seal::Seal;
use crate::mp_spdz::Preprocessing;

/// What the mark of a run says to whoever opens it.
const TEXT: &[u8] = b"The files of this run were given to a program, and are not to be used again.\n";

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As it should.
    Well,
    /// It never began, and no file was read.
    Never(String),
    /// It may have been left in the midst of a check of MACs, by somebody who knows the MAC key since.
    Badly(String),
}

/// Runs a program with the files that party `party` has in `from/Player-Data`, in MP-SPDZ's own directory `player_data`. Returns
/// the files, all of which are gone by then.
///
/// # Errors
/// [`Error::Used`] for files that were given out before; [`Error::MacKeyBurnt`], [`Error::Unmatched`] and
/// [`synchromesh_parties::Error::Format`] for those that are not to be used, [`Error::OtherPrime`], [`Error::OtherMacKey`] and
/// [`synchromesh_parties::Error::File`] if `player_data` has another prime, another key or files of another run,
/// [`Error::MacKeyBusy`] while another program or check goes on under the same key: the program was not begun then.
/// [`Error::NotBegun`] if it never began: its files are as they were; [`Error::Program`] if it ended badly.
pub fn run(from: &Path, player_data: &Path, party: usize, program: impl FnOnce() -> Ended) -> Result<Vec<PathBuf>> {
    let source = Preprocessing::found(&from.join("Player-Data"), party)?;
    let key = source.read_key()?;
    key.ready()?;
    let used = source.used_mark();
    if used.exists() {
        return Err(Error::Used { path: used });
    }
    let files = source.share_files()?;
    if files.is_empty() {
        return Err(FileError::NotFound { path: source.directory().join(format!("*-P{party}")) }.into());
    }
    let target = source.at(player_data)?;
    clear(&target, party)?;
    target.place_key(&key)?;
    let homes = key.homes()?;
    let marks = lend(&homes)?;
    // Before anything of the run is where a program reads it.
    file::write(&used, TEXT, Access::Public, Existing::Keep)?;
    let ended = match issue(&source, &target, &key, &files, party) {
        Ok(()) => program(),
        Err(error) => Ended::Never(error.to_string()),
    };
    let cleared = clear(&target, party);
    match ended {
        Ended::Well => marks.into_iter().try_for_each(Mark::clear)?,
        Ended::Never(how) => {
            marks.into_iter().try_for_each(Mark::clear)?;
            file::remove(&used)?;
            return Err(Error::NotBegun { how });
        }
        Ended::Badly(how) => {
            drop(marks);
            let marks = homes.iter().map(Home::failed).collect::<Result<Vec<_>>>()?.concat();
            return Err(Error::Program { how, marks, void: key.files() });
        }
    }
    for file in &files {
        file::remove(file)?;
        file::remove(&Seal::path(file))?;
    }
    cleared.map(|()| files)
}

/// Marks the key, unless somebody checks MACs under it.
fn lend(homes: &[Home]) -> Result<Vec<Mark>> {
    let mut marks = Vec::with_capacity(homes.len());
    for home in homes {
        marks.push(home.mark()?);
    }
    let own: Vec<PathBuf> = marks.iter().map(|mark| mark.path().to_owned()).collect();
    for home in homes {
        let files = home.pending()?.into_iter().filter(|path| !own.contains(path)).collect::<Vec<_>>();
        if !files.is_empty() {
            marks.into_iter().try_for_each(Mark::clear)?;
            return Err(Error::MacKeyBusy { files, seconds: 0 });
        }
    }
    Ok(marks)
}

/// Copies files to where the program reads them. What goes there is written down first.
fn issue(
    source: &Preprocessing,
    target: &Preprocessing,
    key: &MacKeyShare,
    files: &[PathBuf],
    party: usize,
) -> Result<()> {
    let name = |file: &PathBuf| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names: String = files.iter().map(|file| name(file) + "\n").collect();
    file::write(&issued(target, party), names.as_bytes(), Access::Secret, Existing::Keep)?;
    for file in files {
        let (bytes, to) = (source.read_whole(key, file)?, target.directory().join(name(file)));
        key.homes()?.iter().try_for_each(|home| home.wrote(&to))?;
        file::write(&to, &bytes, Access::Secret, Existing::Keep)?;
    }
    Ok(())
}

/// The list of what is lent, beside it.
fn issued(target: &Preprocessing, party: usize) -> PathBuf {
    target.directory().join(format!("issued-P{party}"))
}

/// Takes away what a run was lent, if one did not come to its end, and refuses other files that a program would read.
fn clear(target: &Preprocessing, party: usize) -> Result<()> {
    let list = issued(target, party);
    if list.exists() {
        let names = Zeroizing::new(file::read(&list, 1 << 20)?);
        for name in String::from_utf8_lossy(&names).lines().filter(|name| target.is_share_file(name)) {
            match fs::remove_file(target.directory().join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::format(&target.directory().join(name), error.to_string()));
                }
                _ => {}
            }
        }
        file::remove(&list)?;
    }
    match target.present()?.into_iter().next() {
        Some(path) => Err(FileError::Exists { path }.into()),
        None => Ok(()),
    }
}
