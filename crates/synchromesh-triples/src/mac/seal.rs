//! What is written beside a file of shares: the digest of what it holds, and where the record of its MAC key is.
//!
//! `<file>.seal` is a container. Shares are worth nothing once their MAC key is known, so that a file is read only where the key's record
//! can be seen: at the path where it was, or at the same place seen from the file, as when a directory was moved with
//! both in it.

use std::path::{Component, Path, PathBuf};

use synchromesh::rlwe::KeyId;
use synchromesh::rlwe::file::{self, Access, Existing, FileError};
use synchromesh::rlwe::wire::{Expected, Header, ObjectType, ParamsDigest, Reader, WireError, Writer};

use super::MacKeyShare;
use super::home::{self, Home, Name, canonical};
use crate::error::{Error, Result};

/// Largest payload: a digest, two names, and a few paths.
const LARGEST: u64 = 1 << 16;

/// Most records of one key.
const MOST_HOMES: usize = 64;

/// Longest path.
const LONGEST: usize = 4096;

/// What a seal says.
#[derive(Debug)]
pub(crate) struct Seal {
    pub(crate) digest: [u8; 32],
    pub(crate) name: Name,
    /// The session in which the shares were made, if it was one of this library's.
    session: Option<[u8; 32]>,
    /// Each record's path, and the same seen from the file.
    homes: Vec<(String, String)>,
}

impl Seal {
    /// Where the seal of a file is.
    pub(crate) fn path(file: &Path) -> PathBuf {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(".seal");
        file.with_file_name(name)
    }

    /// Writes down in the key's records that `file` is about to be written, and seals what it will hold. A key that has no
    /// record gets one beside the file.
    pub(crate) fn write(file: &Path, digest: [u8; 32], key: &MacKeyShare, session: Option<[u8; 32]>) -> Result<()> {
        if key.homes()?.is_empty() {
            key.house(file)?;
        }
        let own = canonical(file)?;
        let mut homes = Vec::new();
        for home in key.homes()? {
            home.wrote(file)?;
            homes.push((text(home.path())?, text(&seen_from(&own, home.path()))?));
        }
        let seal = Self { digest, name: key.name()?, session, homes };
        Ok(file::write(&Self::path(file), &seal.to_bytes()?, Access::Secret, Existing::beside(file))?)
    }

    /// The seal of a file, with the records of the MAC key.
    ///
    /// # Errors
    /// [`Error::Unbound`] if there is no seal or no record can be reached, [`Error::MacKeyBurnt`] and
    /// [`Error::Unmatched`] for shares that are void, [`synchromesh_parties::Error::Format`] for a damaged seal.
    pub(crate) fn open(file: &Path) -> Result<(Self, Vec<Home>)> {
        let path = Self::path(file);
        let bytes = match file::read(&path, LARGEST) {
            Err(FileError::NotFound { .. }) => return Err(Error::Unbound { file: file.to_owned(), record: path }),
            other => other?,
        };
        let seal = Self::from_bytes(&bytes).map_err(|error| Error::format(&path, error.to_string()))?;
        let homes = seal.homes(file)?;
        home::usable(&homes)?;
        if let Some(session) = &seal.session {
            for home in &homes {
                if home.is_void(session)? {
                    return Err(Error::Unmatched { file: file.to_owned() });
                }
            }
        }
        Ok((seal, homes))
    }

    /// Records that can be reached.
    fn homes(&self, file: &Path) -> Result<Vec<Home>> {
        let own = canonical(file)?;
        let mut found: Vec<Home> = Vec::new();
        for (absolute, relative) in &self.homes {
            for path in [PathBuf::from(absolute), own.with_file_name("").join(relative)] {
                match Home::open(&path, self.name, file) {
                    Ok(home) if !found.iter().any(|known| known.path() == home.path()) => found.push(home),
                    _ => {}
                }
            }
        }
        if found.is_empty() {
            let record = self.homes.first().map_or(PathBuf::new(), |(path, _)| PathBuf::from(path));
            return Err(Error::Unbound { file: file.to_owned(), record });
        }
        home::with_copies(&found)
    }

    fn to_bytes(&self) -> Result<Vec<u8>> {
        let header = Header::new(ObjectType::ShareSeal, ParamsDigest([0; 32]), KeyId::NONE);
        let mut writer = Writer::new(header, 512);
        writer.raw(&self.digest);
        writer.raw(&self.name.0);
        writer.bool(self.session.is_some());
        writer.raw(&self.session.unwrap_or_default());
        let write = |writer: &mut Writer| {
            writer.count("records", self.homes.len())?;
            for (absolute, relative) in &self.homes {
                writer.string("a path", absolute)?;
                writer.string("a path", relative)?;
            }
            Ok::<(), WireError>(())
        };
        write(&mut writer).map_err(synchromesh::rlwe::Error::from)?;
        Ok(writer.finish(None))
    }

    fn from_bytes(bytes: &[u8]) -> std::result::Result<Self, WireError> {
        let mut reader = Reader::open(bytes, &Expected::any(ObjectType::ShareSeal, LARGEST))?;
        let (digest, name) = (reader.array()?, Name(reader.array()?));
        let session = reader.bool()?.then_some(reader.array()?);
        let count = reader.count("records", MOST_HOMES)?;
        let mut homes = Vec::with_capacity(count);
        for _ in 0..count {
            homes.push((reader.string("a path", LONGEST)?.to_owned(), reader.string("a path", LONGEST)?.to_owned()));
        }
        reader.finish()?;
        Ok(Self { digest, name, session, homes })
    }
}

fn text(path: &Path) -> Result<String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::format(path, "its path is not UTF-8, and cannot be written down"))
}

/// `to` seen from the directory of `file`, both without links and dots.
fn seen_from(file: &Path, to: &Path) -> PathBuf {
    let from: Vec<Component<'_>> = file.parent().map(|p| p.components().collect()).unwrap_or_default();
    let to: Vec<Component<'_>> = to.components().collect();
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n(Component::ParentDir, from.len() - same);
    up.chain(to[same..].iter().copied()).collect()
}
