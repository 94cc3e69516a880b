#![doc = include_str!("../docs/wire.md")]

mod envelope;
mod error;
mod pack;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use envelope::KEY_BYTES as ENVELOPE_KEY_BYTES;
pub use envelope::{Authentic, EnvelopeKey};
pub use error::WireError;
pub use pack::{limb_bytes, residue_bits};
pub use reader::{Expected, Reader};
pub use writer::Writer;

use std::fmt;

/// First bytes of every container: a byte outside ASCII, a name, and a line ending that text-mode transfers destroy.
pub const MAGIC: [u8; 8] = *b"\x89SMESH\r\n";

/// The format version this library writes, and the newest it reads.
pub const FORMAT: u16 = 1;

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 76;

/// Bytes after the payload.
pub const TRAILER_BYTES: usize = 32;

/// Largest scheme header (the opaque bytes a scheme adds to a ciphertext or plaintext).
pub const SCHEME_HEADER_LIMIT: usize = 1024;

/// Bytes the header checksum covers.
const CHECKED_BYTES: usize = 72;

const FLAG_KEYED: u32 = 1;
const FLAG_SEEDED: u32 = 2;

/// The types of objects, each once: with its text, its number and its name. Numbers rise.
macro_rules! object_types {
    ($($(#[$text:meta])* $object:ident = $id:literal, $name:literal;)*) => {
        /// What a container holds. The numbers are part of the format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u16)]
        pub enum ObjectType {
            $($(#[$text])* $object = $id,)*
        }

        impl ObjectType {
            /// All types, in the order of their numbers.
            pub const ALL: [Self; [$($id),*].len()] = [$(Self::$object),*];

            /// Name for messages and JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$object => $name,)*
                }
            }
        }
    };
}

object_types! {
    /// Parameters.
    Params = 1, "params";
    /// A secret key.
    SecretKey = 2, "secret_key";
    /// A public encryption key.
    PublicKey = 3, "public_key";
    /// A set of switch keys.
    SwitchKeySet = 4, "switch_key_set";
    /// A ciphertext.
    Ciphertext = 5, "ciphertext";
    /// A plaintext.
    Plaintext = 6, "plaintext";
    /// A plan.
    Plan = 7, "plan";
    /// An envelope key.
    EnvelopeKey = 8, "envelope_key";
    /// One party's keys for matrix triples.
    PartyKey = 32, "party_key";
    /// One party's certificate and its key.
    PartyIdentity = 33, "party_identity";
    /// What is written beside a file of shares: its digest, and where its MAC key's record is.
    ShareSeal = 34, "share_seal";
    /// One party's share of a joint key.
    KeyShare = 35, "key_share";
}

impl ObjectType {
    /// The number in the header.
    #[must_use]
    pub const fn id(self) -> u16 {
        self as u16
    }

    /// The type with this number, if there is one.
    #[must_use]
    pub fn from_id(id: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|object| object.id() == id)
    }
}

/// BLAKE3-256 of the canonical encoding of parameters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ParamsDigest(pub [u8; 32]);

/// Names a secret key: 16 random bytes made with it, carried by every object under it. Zero where there is no key.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub [u8; 16]);

impl KeyId {
    /// The id of objects that belong to no secret key.
    pub const NONE: Self = Self([0; 16]);
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for ParamsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for ParamsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParamsDigest({self})")
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

/// What the header of a container says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the payload is.
    pub object: ObjectType,
    /// Whether uniform polynomials are replaced by the seeds they expand from.
    pub seeded: bool,
    /// The parameters the object belongs to.
    pub params: ParamsDigest,
    /// The secret key the object belongs to.
    pub key: KeyId,
}

impl Header {
    /// The header of a plain (not seeded) object.
    #[must_use]
    pub const fn new(object: ObjectType, params: ParamsDigest, key: KeyId) -> Self {
        Self { object, seeded: false, params, key }
    }

    /// The same header with the seeded flag.
    #[must_use]
    pub const fn seeded(self) -> Self {
        Self { seeded: true, ..self }
    }

    fn encode(&self, keyed: bool, payload: u64) -> [u8; HEADER_BYTES] {
        let flags = (FLAG_KEYED * u32::from(keyed)) | (FLAG_SEEDED * u32::from(self.seeded));
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.object.id().to_le_bytes());
        bytes[12..16].copy_from_slice(&flags.to_le_bytes());
        bytes[16..48].copy_from_slice(&self.params.0);
        bytes[48..64].copy_from_slice(&self.key.0);
        bytes[64..72].copy_from_slice(&payload.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..CHECKED_BYTES]);
        bytes[72..76].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

/// A header as read, before anyone has decided whether it is welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peek {
    /// What the header says.
    pub header: Header,
    /// Whether the trailer is a message authentication code under an [`EnvelopeKey`].
    pub keyed: bool,
    /// Declared payload length in bytes; not yet compared with anything.
    pub payload: u64,
}

/// Reads and checks the header alone (magic, version, checksum, flags, type), for inspection or dispatch. Says nothing
/// about the payload's integrity.
///
/// # Errors
/// [`WireError`]: too short, not a container, a later version, altered, or of a type unknown here.
pub fn peek(bytes: &[u8]) -> Result<Peek, WireError> {
    let magic = bytes.get(..8).unwrap_or(bytes);
    if *magic != MAGIC[..magic.len()] {
        return Err(WireError::BadMagic);
    }
    let truncated = WireError::Truncated { need: (HEADER_BYTES + TRAILER_BYTES) as u64, have: bytes.len() as u64 };
    let format = u16::from_le_bytes(field(bytes, 8).ok_or(truncated.clone())?);
    if format > FORMAT {
        return Err(WireError::FutureVersion { found: format, known: FORMAT });
    }
    let crc = u32::from_le_bytes(field(bytes, 72).ok_or(truncated.clone())?);
    let found = crc32c::crc32c(bytes.get(..CHECKED_BYTES).ok_or(truncated.clone())?);
    if format == 0 || crc != found {
        return Err(WireError::HeaderCorrupt { stored: crc, computed: found });
    }
    let flags = u32::from_le_bytes(field(bytes, 12).ok_or(truncated.clone())?);
    if flags & !(FLAG_KEYED | FLAG_SEEDED) != 0 {
        return Err(WireError::NonCanonical { what: "unknown flag", offset: 12 });
    }
    let id = u16::from_le_bytes(field(bytes, 10).ok_or(truncated.clone())?);
    let header = Header {
        object: ObjectType::from_id(id).ok_or(WireError::UnknownType { found: id })?,
        seeded: flags & FLAG_SEEDED != 0,
        params: ParamsDigest(field(bytes, 16).ok_or(truncated.clone())?),
        key: KeyId(field(bytes, 48).ok_or(truncated.clone())?),
    };
    let payload = u64::from_le_bytes(field(bytes, 64).ok_or(truncated)?);
    Ok(Peek { header, keyed: flags & FLAG_KEYED != 0, payload })
}

fn field<const K: usize>(bytes: &[u8], at: usize) -> Option<[u8; K]> {
    bytes.get(at..at + K)?.try_into().ok()
}

/// Digest of everything before the trailer: plain, or keyed under an envelope key.
fn trailer(bytes: &[u8], envelope: Option<&EnvelopeKey>) -> blake3::Hash {
    envelope.map_or_else(|| blake3::hash(bytes), |key| key.code("synchromesh v1 envelope", bytes))
}
