//! Machine profiles as files: where the one of this machine is kept, and how one is read.

use crate::error::Error;
use std::path::{Path, PathBuf};
use synchromesh::cost::Profile;
use synchromesh_ring::isa::Isa;
use synchromesh_rlwe::file::{self, Access, Existing};

/// Most bytes of a profile file.
const MOST_BYTES: u64 = 16 << 20;

/// Where `tune` keeps the profile of this machine for an instruction set, or `cuda` for its card, and for so many threads:
/// the user's data directory, or none where the environment names no home.
#[must_use]
pub fn default_path(name: &str, threads: usize) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = set("XDG_DATA_HOME").or_else(|| set("LOCALAPPDATA")).or_else(|| Some(set("HOME")?.join(".local/share")));
    let threads = if threads == 1 { String::new() } else { format!("-{threads}-threads") };
    Some(base?.join("synchromesh").join(format!("profile-{name}{threads}.json")))
}

/// The profile at `path`, which may be the name of one that comes with the library, or else the one of this machine's CPU for
/// so many threads, if `tune` was run on as many; else the one for one thread.
///
/// # Errors
/// When `path` is given and cannot be read; [`Error::Profile`] when what is there is no profile.
pub fn load(path: Option<&Path>, threads: usize) -> Result<Option<Profile>, Error> {
    load_for(path, Isa::detect()?.name(), threads)
}

/// As [`load`], for an instruction set or `cuda`.
///
/// # Errors
/// As [`load`].
pub fn load_for(path: Option<&Path>, name: &str, threads: usize) -> Result<Option<Profile>, Error> {
    let kept =
        || [threads, 1].into_iter().filter_map(|threads| default_path(name, threads)).find(|path| path.is_file());
    if let Some(name) = path.and_then(Path::to_str)
        && let Some(profile) = Profile::predicted(name)?
    {
        return Ok(Some(profile));
    }
    let own = if path.is_some() { None } else { kept() };
    let Some(path) = path.or(own.as_deref()) else { return Ok(None) };
    let refused = |why: String| Error::Profile { path: path.display().to_string(), why, own: own.is_some() };
    let text = String::from_utf8(file::read(path, MOST_BYTES)?).map_err(|_| refused("it is not UTF-8 text".into()))?;
    Profile::from_json(&text).map(Some).map_err(|why| refused(why.to_string()))
}

/// Writes a profile, whole or not at all.
///
/// # Errors
/// When the directory cannot be made or the file not be written.
pub fn store(path: &Path, profile: &Profile, existing: Existing) -> Result<(), Error> {
    if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory)
            .map_err(|source| Error::Io { path: directory.display().to_string(), source })?;
    }
    Ok(file::write(path, (profile.to_json()? + "\n").as_bytes(), Access::Public, existing)?)
}
