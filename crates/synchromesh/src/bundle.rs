//! The files of a session: named sections between a mark and a digest.
//!
//! Little-endian: mark (8 bytes), version (2), kind (2), number of sections (4); then for each section the length of
//! its name (1), the name, the length of its contents (8), the contents; BLAKE3-256 of everything before (32). A sealed
//! file, which has version 2, ends with an authentication code of all that under an [`EnvelopeKey`] (32): its holders
//! believe the certificates inside, of these ciphertexts in this order, with this plan and description. A file that is not
//! sealed has version 1.
//! Keys and ciphertexts in sections are containers of their own, with their own checks.

mod keys;

use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::codec::Trust;
use synchromesh_rlwe::file::{self, Access, Existing, FileError, Opened};
use synchromesh_rlwe::wire::{Authentic, EnvelopeKey, Expected, KeyId, ObjectType, Reader, WireError};
use zeroize::Zeroizing;

pub use self::keys::NewKeys;
use crate::plan::Plan;

/// First bytes of a bundle.
pub const MAGIC: [u8; 8] = *b"\x89SMBDL\r\n";

/// The newest version that this library reads, and the one of sealed files that it writes.
pub const VERSION: u16 = 2;

/// The version of files that are not sealed.
const UNSEALED: u16 = 1;

/// What the authentication code of a file is derived for.
const SEAL: &str = "synchromesh v1 bundle";

/// Largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 34;

/// Most sections a file may have.
const MAX_SECTIONS: usize = 1 << 20;

const HEAD_BYTES: usize = 16;
const DIGEST_BYTES: usize = 32;

/// The section of the plan.
pub const PLAN: &str = "plan";
/// The section of a key.
pub const KEY: &str = "key";
/// The section of what is known of a column.
pub const COLUMN: &str = "column";
/// A section for each ciphertext.
pub const CIPHERTEXT: &str = "ciphertext";

/// Why nothing vouches for the certificates in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unproven {
    /// Whoever wrote it had no envelope key.
    #[error("nothing vouches for the noise certificates in the file: it was written without an envelope key")]
    NotSealed,
    /// Whoever reads it has none.
    #[error("the noise certificates in the file are authenticated, and there is no envelope key to check that with")]
    NoEnvelopeKey,
    /// It is sealed under another key, or altered.
    #[error("the file is not authentic: it was altered, or written under another envelope key")]
    NotAuthentic,
}

impl Unproven {
    /// A stable word for scripts.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::NotSealed | Self::NoEnvelopeKey => "unproven_certificate",
            Self::NotAuthentic => "not_authentic",
        }
    }

    /// What the caller can do about it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::NotSealed => {
                "give envelope.key to those who are trusted to encrypt and compute, and let them write the file with it; or, \
                 to take its maker's word at your own risk, say so: --trust-certificate, in Python trust_certificate=True"
            }
            Self::NoEnvelopeKey => {
                "put envelope.key, which key generation writes, beside the keys; or, to take the maker's word at your own \
                 risk, say so: --trust-certificate, in Python trust_certificate=True"
            }
            Self::NotAuthentic => {
                "get the file from its maker anew; it is believed only if it was written under the envelope key of these keys"
            }
        }
    }
}

/// Why a file of a session was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// Its bytes.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The file itself.
    #[error(transparent)]
    File(#[from] FileError),
    /// A section that is not there.
    #[error("the {kind} file has no section \"{name}\"")]
    Section {
        /// What the file is for.
        kind: &'static str,
        /// The section.
        name: String,
    },
    /// A file for something else.
    #[error("a {expected} file was expected, this is a {found}")]
    Kind {
        /// What was wanted.
        expected: &'static str,
        /// What the file is for.
        found: &'static str,
    },
    /// A section that cannot be read.
    #[error("the section \"{name}\" cannot be read: {reason}")]
    Unreadable {
        /// The section.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The plan in the file.
    #[error(transparent)]
    Plan(#[from] crate::Error),
}

impl BundleError {
    /// A stable word for scripts.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Wire(error) => error.kind(),
            Self::File(error) => error.kind(),
            Self::Section { .. } | Self::Kind { .. } | Self::Unreadable { .. } => "session",
            Self::Plan(error) => error.kind(),
        }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Wire(error) => error.remedy().to_owned(),
            Self::File(error) => error.remedy().to_owned(),
            Self::Section { .. } | Self::Kind { .. } | Self::Unreadable { .. } => {
                "give the file that was meant; each is written by one command".to_owned()
            }
            Self::Plan(error) => error.remedy(),
        }
    }
}

/// What the section [`COLUMN`] says of the ciphertexts beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnHead {
    /// Name of the column in tables.
    pub name: String,
    /// Numbers in it.
    pub rows: usize,
}

impl ColumnHead {
    /// The contents of its section.
    ///
    /// # Errors
    /// [`BundleError::Unreadable`], which no head causes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BundleError> {
        serde_json::to_vec(self).map_err(|e| BundleError::Unreadable { name: COLUMN, reason: e.to_string() })
    }

    /// The head of the column in a file.
    ///
    /// # Errors
    /// [`BundleError::Section`] without one, [`BundleError::Unreadable`] for anything else.
    pub fn of(bundle: &Bundle) -> Result<Self, BundleError> {
        serde_json::from_slice(bundle.one(COLUMN)?)
            .map_err(|e| BundleError::Unreadable { name: COLUMN, reason: e.to_string() })
    }
}

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
    /// The envelope key.
    EnvelopeKey,
    /// One party's share of a joint key.
    KeyShare,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::SecretKey, Self::PublicKey, Self::EvaluationKeys, Self::Column, Self::EnvelopeKey, Self::KeyShare];

    /// Its name in words and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SecretKey => "secret_key",
            Self::PublicKey => "public_key",
            Self::EvaluationKeys => "evaluation_keys",
            Self::Column => "column",
            Self::EnvelopeKey => "envelope_key",
            Self::KeyShare => "key_share",
        }
    }
}

/// A file in memory, overwritten with zeros when dropped.
#[derive(Debug)]
pub struct Bundle {
    kind: Kind,
    bytes: Zeroizing<Vec<u8>>,
    /// Name and contents of each section, as places in `bytes`.
    sections: Vec<Section>,
    /// Bytes that the seal covers, and the seal, where there is one.
    seal: Option<(usize, [u8; DIGEST_BYTES])>,
}

impl Bundle {
    /// The bytes of a file of these sections, sealed if there is an envelope key; names are at most 255 bytes.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] for a longer name or too many sections.
    pub fn encode(
        kind: Kind,
        sections: &[(&str, &[u8])],
        envelope: Option<&EnvelopeKey>,
    ) -> Result<Zeroizing<Vec<u8>>, BundleError> {
        if sections.len() > MAX_SECTIONS {
            return Err(too_large("sections", sections.len() as u64, MAX_SECTIONS as u64));
        }
        let size: usize = sections.iter().map(|(name, contents)| 9 + name.len() + contents.len()).sum();
        // The exact size, so that the buffer never moves and no copy of a secret is left behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(HEAD_BYTES + size + 2 * DIGEST_BYTES));
        bytes.extend(MAGIC);
        bytes.extend(envelope.map_or(UNSEALED, |_| VERSION).to_le_bytes());
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
        if let Some(envelope) = envelope {
            let seal = envelope.seal(SEAL, &bytes);
            bytes.extend(seal);
        }
        Ok(bytes)
    }

    /// Reads the file at `path`: its mark and the lengths of its sections before anything else of it.
    ///
    /// # Errors
    /// The file's, and as [`Self::decode`].
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        let file = Opened::open(path, MAX_FILE_BYTES)?;
        let _ = Layout::of(file.size(), |at, buffer| Ok(file.read_at(at, buffer)?))?;
        Self::decode(file.read()?)
    }

    /// All bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes a file of these sections, whole or not at all, sealed if there is an envelope key.
    ///
    /// # Errors
    /// The file's, and as [`Self::encode`].
    pub fn write(
        path: &Path,
        kind: Kind,
        sections: &[(&str, &[u8])],
        envelope: Option<&EnvelopeKey>,
        (access, existing): (Access, Existing),
    ) -> Result<u64, BundleError> {
        let bytes = Self::encode(kind, sections, envelope)?;
        file::write(path, &bytes, access, existing)?;
        Ok(bytes.len() as u64)
    }

    /// The sections of a file.
    ///
    /// # Errors
    /// A [`WireError`] for a wrong mark, a newer version, a length that does not fit, or a digest that does not match.
    pub fn decode(bytes: Vec<u8>) -> Result<Self, BundleError> {
        let bytes = Zeroizing::new(bytes);
        let Layout { kind, sections, end, sealed } = Layout::of(bytes.len() as u64, |at, buffer| {
            let rest = &bytes[usize::try_from(at).map_or(bytes.len(), |at| at.min(bytes.len()))..];
            let length = rest.len().min(buffer.len());
            buffer[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        })?;
        let stored = code(&bytes, end)?;
        if blake3::Hash::from_bytes(stored) != blake3::hash(&bytes[..end]) {
            return Err(WireError::BodyCorrupt.into());
        }
        let covered = end + DIGEST_BYTES;
        let seal = if sealed { Some((covered, code(&bytes, covered)?)) } else { None };
        Ok(Self { kind, bytes, sections, seal })
    }

    /// Whether the file carries an authentication code; says nothing of whose.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// Proof that the holder of `envelope` wrote the file as it is.
    ///
    /// # Errors
    /// [`Unproven`].
    pub fn authentic(&self, envelope: Option<&EnvelopeKey>) -> Result<Authentic, Unproven> {
        let (sealed, code) = self.seal.ok_or(Unproven::NotSealed)?;
        let envelope = envelope.ok_or(Unproven::NoEnvelopeKey)?;
        envelope.check(SEAL, &self.bytes[..sealed], code).map_err(|_| Unproven::NotAuthentic)
    }

    /// Why the certificates in the file are believed: it is authentic under `envelope`, or else the user says so.
    ///
    /// # Errors
    /// [`Unproven`] where neither is.
    pub fn trust(&self, envelope: Option<&EnvelopeKey>, on_word: bool) -> Result<Trust<'static>, Unproven> {
        match self.authentic(envelope) {
            Ok(authentic) => Ok(Trust::Enclosed(authentic)),
            Err(_) if on_word => Ok(Trust::Certificate),
            Err(unproven) => Err(unproven),
        }
    }

    /// What the file is for.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The contents of every section of that name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        let named = move |section: &&Section| &self.bytes[section.0.clone()] == name.as_bytes();
        self.sections.iter().filter(named).map(|(_, contents)| &self.bytes[contents.clone()])
    }

    /// The contents of the first section of that name.
    ///
    /// # Errors
    /// [`BundleError::Section`] when there is none.
    pub fn one<'a>(&'a self, name: &'a str) -> Result<&'a [u8], BundleError> {
        let missing = || BundleError::Section { kind: self.kind.name(), name: name.to_owned() };
        self.all(name).next().ok_or_else(missing)
    }

    /// The secret key that the first key or ciphertext in the file belongs to; its container is checked.
    ///
    /// # Errors
    /// The container's.
    pub fn key_id(&self) -> Result<KeyId, BundleError> {
        let (name, object) = match self.kind {
            Kind::SecretKey => (KEY, ObjectType::SecretKey),
            Kind::PublicKey => (KEY, ObjectType::PublicKey),
            Kind::EvaluationKeys => (KEY, ObjectType::SwitchKeySet),
            Kind::Column => (CIPHERTEXT, ObjectType::Ciphertext),
            Kind::EnvelopeKey => (KEY, ObjectType::EnvelopeKey),
            Kind::KeyShare => (KEY, ObjectType::KeyShare),
        };
        let reader = Reader::open(self.one(name)?, &Expected::any(object, MAX_FILE_BYTES))?;
        Ok(reader.header().key)
    }

    /// The plan in the file, checked.
    ///
    /// # Errors
    /// [`BundleError::Section`] without one, or the plan's own.
    pub fn plan(&self) -> Result<Plan, BundleError> {
        let text = std::str::from_utf8(self.one(PLAN)?)
            .map_err(|_| BundleError::Unreadable { name: PLAN, reason: "it is not UTF-8 text".to_owned() })?;
        Ok(Plan::from_json(text)?)
    }

    /// Fails unless the file is for `kind`.
    ///
    /// # Errors
    /// [`BundleError::Kind`].
    pub fn require(self, kind: Kind) -> Result<Self, BundleError> {
        if self.kind == kind {
            return Ok(self);
        }
        Err(BundleError::Kind { expected: kind.name(), found: self.kind.name() })
    }
}

fn too_large(what: &'static str, declared: u64, limit: u64) -> BundleError {
    WireError::TooLarge { what, declared, limit }.into()
}

/// The digest or seal at `at`.
fn code(bytes: &[u8], at: usize) -> Result<[u8; DIGEST_BYTES], WireError> {
    bytes.get(at..at + DIGEST_BYTES).and_then(|code| code.try_into().ok()).ok_or(WireError::BodyCorrupt)
}

/// Where the parts of a file are.
struct Layout {
    kind: Kind,
    /// Name and contents of each section.
    sections: Vec<Section>,
    /// Where the digest begins.
    end: usize,
    /// Whether a seal follows the digest.
    sealed: bool,
}

type Section = (Range<usize>, Range<usize>);

impl Layout {
    /// Of a file of `size` bytes, of which `fetch` copies those from a place on into a buffer, as many as there are.
    fn of(size: u64, fetch: impl Fn(u64, &mut [u8]) -> Result<usize, BundleError>) -> Result<Self, BundleError> {
        let mut head = [0; HEAD_BYTES];
        let have = fetch(0, &mut head)?;
        if have < MAGIC.len() || head[..8] != MAGIC {
            return Err(WireError::BadMagic.into());
        }
        let version = u16::from_le_bytes([head[8], head[9]]);
        let sealed = version == VERSION;
        // The digest, and the seal where there is one.
        let codes = (DIGEST_BYTES * (1 + usize::from(sealed))) as u64;
        let (end, short) = (size.checked_sub(codes), |need| WireError::Truncated { need, have: size });
        let end = end.filter(|end| *end >= HEAD_BYTES as u64).ok_or_else(|| short(HEAD_BYTES as u64 + codes))?;
        if !(UNSEALED..=VERSION).contains(&version) {
            return Err(WireError::FutureVersion { found: version, known: VERSION }.into());
        }
        let kind = u16::from_le_bytes([head[10], head[11]]);
        let known = usize::from(kind).checked_sub(1).and_then(|k| Kind::ALL.get(k)).copied();
        let kind = known.ok_or(WireError::UnknownType { found: kind })?;
        let mut walk = Walk { at: HEAD_BYTES as u64, end, codes, size };
        let mut sections = Vec::new();
        let count = u32::from_le_bytes([head[12], head[13], head[14], head[15]]);
        if count as usize > MAX_SECTIONS {
            return Err(too_large("sections", count.into(), MAX_SECTIONS as u64));
        }
        for _ in 0..count {
            let mut number = [0; 8];
            fetch(walk.next(1)?.start as u64, &mut number[..1])?;
            let name = walk.next(u64::from(number[0]))?;
            fetch(walk.next(8)?.start as u64, &mut number)?;
            sections.push((name, walk.next(u64::from_le_bytes(number))?));
        }
        if walk.at != end {
            return Err(WireError::TrailingBytes { part: "last section", extra: end - walk.at }.into());
        }
        let end = usize::try_from(end).map_err(|_| too_large("file", size, usize::MAX as u64))?;
        Ok(Self { kind, sections, end, sealed })
    }
}

/// A place in a file before its digest.
struct Walk {
    at: u64,
    end: u64,
    /// Bytes of what follows.
    codes: u64,
    size: u64,
}

impl Walk {
    /// The place of the next `length` bytes.
    fn next(&mut self, length: u64) -> Result<Range<usize>, BundleError> {
        let start = self.at;
        let end = start.saturating_add(length);
        if end > self.end {
            let need = end.saturating_add(self.codes);
            return Err(WireError::Truncated { need, have: self.size }.into());
        }
        self.at = end;
        match (usize::try_from(start), usize::try_from(end)) {
            (Ok(start), Ok(end)) => Ok(start..end),
            _ => Err(too_large("file", self.size, usize::MAX as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        encoded(None)
    }

    fn encoded(envelope: Option<&EnvelopeKey>) -> Vec<u8> {
        Bundle::encode(Kind::Column, &[("plan", b"{}"), ("ct", b"one"), ("ct", b"")], envelope).unwrap().to_vec()
    }

    fn key(byte: u8) -> EnvelopeKey {
        EnvelopeKey::from_bytes([byte; 32])
    }

    /// `bytes` with the byte at `at` changed and every checksum that needs no key made anew.
    fn forged(mut bytes: Vec<u8>, at: usize, sealed: bool) -> Vec<u8> {
        bytes[at] ^= 1;
        let digest_at = bytes.len() - DIGEST_BYTES * if sealed { 2 } else { 1 };
        let digest = blake3::hash(&bytes[..digest_at]);
        bytes[digest_at..digest_at + DIGEST_BYTES].copy_from_slice(digest.as_bytes());
        bytes
    }

    #[test]
    fn a_file_is_believed_under_its_envelope_key_or_on_the_users_word() {
        let (own, other) = (key(1), key(2));
        let plain = Bundle::decode(encoded(None)).unwrap();
        let sealed = Bundle::decode(encoded(Some(&own))).unwrap();
        assert_eq!((plain.is_sealed(), sealed.is_sealed()), (false, true));
        assert_eq!(plain.all("ct").collect::<Vec<_>>(), sealed.all("ct").collect::<Vec<_>>());
        for (bundle, envelope, why) in [
            (&plain, Some(&own), Unproven::NotSealed),
            (&plain, None, Unproven::NotSealed),
            (&sealed, None, Unproven::NoEnvelopeKey),
            (&sealed, Some(&other), Unproven::NotAuthentic),
        ] {
            assert_eq!(bundle.trust(envelope, false).unwrap_err(), why);
            assert!(matches!(bundle.trust(envelope, true).unwrap(), Trust::Certificate));
        }
        assert!(matches!(sealed.trust(Some(&own), true).unwrap(), Trust::Enclosed(_)));
        sealed.authentic(Some(&own)).unwrap();
    }

    #[test]
    fn every_forged_byte_of_a_sealed_file_is_found_by_its_key() {
        let whole = encoded(Some(&key(1)));
        let covered = whole.len() - 2 * DIGEST_BYTES;
        for at in 0..covered {
            let Ok(read) = Bundle::decode(forged(whole.clone(), at, true)) else { continue };
            assert_eq!(read.authentic(Some(&key(1))), Err(Unproven::NotAuthentic), "byte {at}");
        }
        let mut altered = whole.clone();
        altered[covered + DIGEST_BYTES] ^= 1;
        assert_eq!(Bundle::decode(altered).unwrap().authentic(Some(&key(1))), Err(Unproven::NotAuthentic));
        // Stripped of its seal it is a file that nobody vouches for.
        let mut stripped = whole[..covered + DIGEST_BYTES].to_vec();
        stripped[8] = 1;
        let stripped = Bundle::decode(forged(forged(stripped, HEAD_BYTES, false), HEAD_BYTES, false)).unwrap();
        assert_eq!(stripped.authentic(Some(&key(1))), Err(Unproven::NotSealed));
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
    fn keys_are_told_by_their_first_bytes_and_columns_are_none() {
        for kind in Kind::ALL {
            let head = &Bundle::encode(kind, &[], None).unwrap()[..HEAD_BYTES];
            assert_eq!(file::key_in(head).is_some(), kind != Kind::Column, "{kind:?}");
        }
    }

    #[test]
    fn what_is_no_bundle_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sparse");
        let sparse = |head: &[u8]| {
            std::fs::write(&path, head).unwrap();
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(MAX_FILE_BYTES).unwrap();
            Bundle::read(&path).unwrap_err().kind()
        };
        let mut lying = sample();
        lying[HEAD_BYTES + 5..HEAD_BYTES + 13].copy_from_slice(&(1u64 << 35).to_le_bytes());
        assert_eq!(sparse(b""), "not_a_container");
        assert_eq!(sparse(&MAGIC), "future_version");
        assert_eq!(sparse(&sample()), "trailing_bytes");
        assert_eq!(sparse(&lying), "truncated");
    }

    #[test]
    fn a_newer_version_and_a_lying_length_are_named() {
        let mut newer = sample();
        newer[8] = 3;
        assert!(Bundle::decode(newer).unwrap_err().to_string().contains("version 3"));
        let mut lying = sample();
        let at = lying.len() - DIGEST_BYTES;
        lying[HEAD_BYTES + 5..HEAD_BYTES + 13].copy_from_slice(&u64::MAX.to_le_bytes());
        let digest = blake3::hash(&lying[..at]);
        lying[at..].copy_from_slice(digest.as_bytes());
        assert!(Bundle::decode(lying).unwrap_err().to_string().contains("truncated"));
    }
}
