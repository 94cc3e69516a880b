//! The files of a session: named sections between a mark and a digest.
//!
//! Little-endian: mark (8 bytes), version (2), kind (2), number of sections (4); then for each section the length of
//! its name (1), the name, the length of its contents (8), the contents; BLAKE3-256 of everything before (32).
//! Keys and ciphertexts in sections are containers of their own, with their own checks.

use crate::error::Error;
use std::path::Path;
use synchromesh_rlwe::file::{self, Access, Existing};
use synchromesh_rlwe::wire::{Expected, KeyId, ObjectType, Reader, WireError};
use zeroize::Zeroizing;

/// First bytes of a bundle.
pub const MAGIC: [u8; 8] = *b"\x89SMBDL\r\n";

/// The version this program writes and the newest it reads.
pub const VERSION: u16 = 1;

/// Largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 34;

/// Most sections a file may have.
const MAX_SECTIONS: usize = 1 << 20;

const HEAD_BYTES: usize = 16;
const DIGEST_BYTES: usize = 32;

/// The section of the plan.
pub(crate) const PLAN: &str = "plan";
/// The section of a key.
pub(crate) const KEY: &str = "key";
/// The section of what is known of a column.
pub(crate) const COLUMN: &str = "column";
/// A section for each ciphertext.
pub(crate) const CIPHERTEXT: &str = "ciphertext";

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The secret key.
    SecretKey,
    /// The public key.
    PublicKey,
    /// The evaluation keys.
    EvaluationKeys,
    /// An encrypted column.
    Column,
}

impl Kind {
    const ALL: [Self; 4] = [Self::SecretKey, Self::PublicKey, Self::EvaluationKeys, Self::Column];

    /// Its name in words and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SecretKey => "secret_key",
            Self::PublicKey => "public_key",
            Self::EvaluationKeys => "evaluation_keys",
            Self::Column => "column",
        }
    }
}

/// A file in memory, overwritten with zeros when dropped.
#[derive(Debug)]
pub struct Bundle {
    kind: Kind,
    bytes: Zeroizing<Vec<u8>>,
    /// Name and contents of each section, as places in `bytes`.
    sections: Vec<(std::ops::Range<usize>, std::ops::Range<usize>)>,
}

impl Bundle {
    /// The bytes of a file of these sections; names are at most 255 bytes.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] for a longer name or too many sections.
    pub fn encode(kind: Kind, sections: &[(&str, &[u8])]) -> Result<Zeroizing<Vec<u8>>, Error> {
        if sections.len() > MAX_SECTIONS {
            return Err(too_large("sections", sections.len() as u64, MAX_SECTIONS as u64));
        }
        let size: usize = sections.iter().map(|(name, contents)| 9 + name.len() + contents.len()).sum();
        // The exact size, so that the buffer never moves and no copy of a secret is left behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(HEAD_BYTES + size + DIGEST_BYTES));
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((Kind::ALL.iter().position(|k| *k == kind).unwrap_or(0) as u16 + 1).to_le_bytes());
        bytes.extend((sections.len() as u32).to_le_bytes());
        for (name, contents) in sections {
            let length =
                u8::try_from(name.len()).map_err(|_| too_large("name of a section", name.len() as u64, 255))?;
            bytes.push(length);
            bytes.extend(name.as_bytes());
            bytes.extend((contents.len() as u64).to_le_bytes());
            bytes.extend(*contents);
        }
        let digest = blake3::hash(&bytes);
        bytes.extend(digest.as_bytes());
        Ok(bytes)
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file's, and as [`Self::decode`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::decode(file::read(path, MAX_FILE_BYTES)?)
    }

    /// Writes a file of these sections, whole or not at all.
    ///
    /// # Errors
    /// The file's, and as [`Self::encode`].
    pub fn write(
        path: &Path,
        kind: Kind,
        sections: &[(&str, &[u8])],
        access: Access,
        existing: Existing,
    ) -> Result<u64, Error> {
        let bytes = Self::encode(kind, sections)?;
        file::write(path, &bytes, access, existing)?;
        Ok(bytes.len() as u64)
    }

    /// The sections of a file.
    ///
    /// # Errors
    /// A [`WireError`] for a wrong mark, a newer version, a length that does not fit, or a digest that does not match.
    pub fn decode(bytes: Vec<u8>) -> Result<Self, Error> {
        let bytes = Zeroizing::new(bytes);
        if bytes.get(..8) != Some(&MAGIC) {
            return Err(wire(WireError::BadMagic));
        }
        let mut at = 8;
        let version = u16::from_le_bytes(take(&bytes, &mut at)?);
        if version != VERSION {
            return Err(wire(WireError::FutureVersion { found: version, known: VERSION }));
        }
        let digest_at = bytes.len().saturating_sub(DIGEST_BYTES).max(HEAD_BYTES);
        let stored: [u8; DIGEST_BYTES] = take(&bytes, &mut { digest_at })?;
        if blake3::Hash::from_bytes(stored) != blake3::hash(&bytes[..digest_at]) {
            return Err(wire(WireError::BodyCorrupt));
        }
        let kind = u16::from_le_bytes(take(&bytes, &mut at)?);
        let kind = usize::from(kind).checked_sub(1).and_then(|k| Kind::ALL.get(k)).copied();
        let kind = kind.ok_or_else(|| wire(WireError::UnknownType { found: bytes[10].into() }))?;
        let count = u32::from_le_bytes(take(&bytes, &mut at)?) as usize;
        let mut sections = Vec::new();
        for _ in 0..count {
            let [length] = take(&bytes, &mut at)?;
            let name = range(&bytes, &mut at, u64::from(length))?;
            let length = u64::from_le_bytes(take(&bytes, &mut at)?);
            sections.push((name, range(&bytes, &mut at, length)?));
        }
        if at != digest_at {
            let extra = digest_at.saturating_sub(at) as u64;
            return Err(wire(WireError::TrailingBytes { part: "last section", extra }));
        }
        Ok(Self { kind, bytes, sections })
    }

    /// What the file is for.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The contents of every section of that name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        let named = move |section: &&(std::ops::Range<usize>, _)| &self.bytes[section.0.clone()] == name.as_bytes();
        self.sections.iter().filter(named).map(|(_, contents)| &self.bytes[contents.clone()])
    }

    /// The contents of the first section of that name.
    ///
    /// # Errors
    /// [`Error::Session`] when there is none.
    pub fn one<'a>(&'a self, name: &'a str) -> Result<&'a [u8], Error> {
        let missing = || Error::Session { what: format!("the {} file has no section \"{name}\"", self.kind.name()) };
        self.all(name).next().ok_or_else(missing)
    }

    /// The secret key that the first key or ciphertext in the file belongs to; its container is checked.
    ///
    /// # Errors
    /// The container's.
    pub fn key_id(&self) -> Result<KeyId, Error> {
        let (name, object) = match self.kind {
            Kind::SecretKey => (KEY, ObjectType::SecretKey),
            Kind::PublicKey => (KEY, ObjectType::PublicKey),
            Kind::EvaluationKeys => (KEY, ObjectType::SwitchKeySet),
            Kind::Column => (CIPHERTEXT, ObjectType::Ciphertext),
        };
        let reader = Reader::open(self.one(name)?, &Expected::any(object, MAX_FILE_BYTES)).map_err(wire)?;
        Ok(reader.header().key)
    }

    /// Fails unless the file is for `kind`.
    ///
    /// # Errors
    /// [`Error::Session`].
    pub fn require(self, kind: Kind) -> Result<Self, Error> {
        if self.kind == kind {
            return Ok(self);
        }
        Err(Error::Session { what: format!("a {} file was expected, this is a {}", kind.name(), self.kind.name()) })
    }
}

fn wire(error: WireError) -> Error {
    synchromesh_rlwe::Error::from(error).into()
}

fn too_large(what: &'static str, declared: u64, limit: u64) -> Error {
    wire(WireError::TooLarge { what, declared, limit })
}

/// The next K bytes.
fn take<const K: usize>(bytes: &[u8], at: &mut usize) -> Result<[u8; K], Error> {
    let range = range(bytes, at, K as u64)?;
    bytes[range].try_into().map_err(|_| wire(WireError::Truncated { need: K as u64, have: 0 }))
}

/// The place of the next `length` bytes.
fn range(bytes: &[u8], at: &mut usize, length: u64) -> Result<std::ops::Range<usize>, Error> {
    let start = *at;
    let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
    let Some(end) = end.filter(|end| *end <= bytes.len()) else {
        let need = (start as u64).saturating_add(length);
        return Err(wire(WireError::Truncated { need, have: bytes.len() as u64 }));
    };
    *at = end;
    Ok(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        Bundle::encode(Kind::Column, &[("plan", b"{}"), ("ct", b"one"), ("ct", b"")]).unwrap().to_vec()
    }

    #[test]
    fn sections_come_back_in_order() {
        let bundle = Bundle::decode(sample()).unwrap();
        assert_eq!(bundle.kind(), Kind::Column);
        assert_eq!(bundle.one("plan").unwrap(), b"{}");
        assert_eq!(bundle.all("ct").collect::<Vec<_>>(), [&b"one"[..], b""]);
        assert_eq!(bundle.one("key").unwrap_err().kind(), "session");
        assert_eq!(bundle.require(Kind::SecretKey).unwrap_err().kind(), "session");
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_an_error() {
        let whole = sample();
        for byte in 0..whole.len() {
            assert!(Bundle::decode(whole[..byte].to_vec()).is_err(), "cut at {byte}");
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[byte] ^= 1 << bit;
                assert!(Bundle::decode(flipped).is_err(), "byte {byte} bit {bit}");
            }
        }
        assert!(Bundle::decode([&whole[..], b"x"].concat()).is_err());
    }

    #[test]
    fn a_newer_version_and_a_lying_length_are_named() {
        let mut newer = sample();
        newer[8] = 2;
        assert!(Bundle::decode(newer).unwrap_err().to_string().contains("version 2"));
        let mut lying = sample();
        let at = lying.len() - DIGEST_BYTES;
        lying[HEAD_BYTES + 5..HEAD_BYTES + 13].copy_from_slice(&u64::MAX.to_le_bytes());
        let digest = blake3::hash(&lying[..at]);
        lying[at..].copy_from_slice(digest.as_bytes());
        assert!(Bundle::decode(lying).unwrap_err().to_string().contains("truncated"));
    }
}
