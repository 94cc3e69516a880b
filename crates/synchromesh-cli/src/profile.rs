//! Machine profiles as files: where the one of this machine is kept, and how one is read.

use crate::error::Error;
use std::path::{Path, PathBuf};
use synchromesh::cost::Profile;
use synchromesh_ring::isa::Isa;
use synchromesh_rlwe::file::{self, Access, Existing};

/// Most bytes of a profile file.
const MOST_BYTES: u64 = 16 << 20;

/// Where `tune` keeps the profile of this machine for an instruction set, or `cuda` for its card: the user's data
/// directory, or none where the environment names no home.
#[must_use]
pub fn default_path(name: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = set("XDG_DATA_HOME").or_else(|| set("LOCALAPPDATA")).or_else(|| Some(set("HOME")?.join(".local/share")));
    Some(base?.join("synchromesh").join(format!("profile-{name}.json")))
}

/// The profile at `path`, or else the one of this machine's CPU, if `tune` was run.
///
/// # Errors
/// When `path` is given and cannot be read; [`Error::Profile`] when what is there is no profile.
pub fn load(path: Option<&Path>) -> Result<Option<Profile>, Error> {
    load_for(path, Isa::detect()?.name())
}

/// As [`load`], for an instruction set or `cuda`.
///
/// # Errors
/// As [`load`].
pub fn load_for(path: Option<&Path>, name: &str) -> Result<Option<Profile>, Error> {
    let own = if path.is_some() { None } else { default_path(name).filter(|p| p.is_file()) };
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
