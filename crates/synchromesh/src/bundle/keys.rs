//! A directory of keys: four files that are there together or not at all.

use std::path::{Path, PathBuf};

use synchromesh_rlwe::file::{Access, FileError, Part, Set};
use zeroize::Zeroizing;

use super::Kind;

impl Kind {
    /// The files of a directory of keys in the order in which they get their names. The public key is the last: nothing is
    /// encrypted under keys that are not all there.
    pub const KEYS: [Self; 4] = [Self::SecretKey, Self::EnvelopeKey, Self::EvaluationKeys, Self::PublicKey];

    /// What its file is called in a directory of keys; none for a column.
    #[must_use]
    pub const fn file_name(self) -> Option<&'static str> {
        match self {
            Self::SecretKey => Some("secret.key"),
            Self::PublicKey => Some("public.key"),
            Self::EvaluationKeys => Some("eval.keys"),
            Self::EnvelopeKey => Some("envelope.key"),
            Self::KeyShare => Some("share.key"),
            Self::Column => None,
        }
    }

    /// Who may read its file.
    #[must_use]
    pub const fn access(self) -> Access {
        match self {
            Self::SecretKey | Self::EnvelopeKey | Self::KeyShare => Access::Secret,
            Self::PublicKey | Self::EvaluationKeys | Self::Column => Access::Public,
        }
    }
}

/// A directory that has no keys yet.
#[derive(Debug)]
pub struct NewKeys(Set);

impl NewKeys {
    /// Looks whether keys can be written to the directory, which is made if it is not there (mode 0700).
    ///
    /// # Errors
    /// As [`Set::begin`].
    pub fn begin(directory: &Path) -> Result<Self, FileError> {
        let names: Vec<&str> = Kind::KEYS.into_iter().filter_map(Kind::file_name).collect();
        Ok(Self(Set::begin(directory, &names)?))
    }

    /// Writes the files, one for each of [`Kind::KEYS`] in any order; their paths and sizes in bytes.
    ///
    /// # Errors
    /// As [`Set::write`]; then none of them is there.
    pub fn write(self, files: &[(Kind, Zeroizing<Vec<u8>>); 4]) -> Result<Vec<(PathBuf, u64)>, FileError> {
        let parts: Vec<Part<'_>> = Kind::KEYS
            .into_iter()
            .filter_map(|wanted| files.iter().find(|(kind, _)| *kind == wanted))
            .filter_map(|(kind, bytes)| Some(Part { name: kind.file_name()?, bytes, access: kind.access() }))
            .collect();
        let paths = self.0.write(&parts)?;
        Ok(paths.into_iter().zip(parts.iter().map(|part| part.bytes.len() as u64)).collect())
    }
}
