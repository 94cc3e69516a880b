//! Everything that can be wrong with a container: what, the numbers, and what to do.

use super::{KeyId, ObjectType, ParamsDigest};
use thiserror::Error;

/// A container that cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes do not start as a container does.
    #[error("not a synchromesh file: the first bytes are not the format's mark")]
    BadMagic,
    /// The bytes end too early.
    #[error("truncated: {need} bytes needed, {have} present")]
    Truncated {
        /// Bytes needed, counted from the start of the container (or of the payload, inside it).
        need: u64,
        /// Bytes present.
        have: u64,
    },
    /// There are bytes after the end.
    #[error("{extra} bytes follow the end of the {part}")]
    TrailingBytes {
        /// What had ended: the container or its payload.
        part: &'static str,
        /// Bytes left over.
        extra: u64,
    },
    /// Written by a later version of the format.
    #[error("format version {found}; this library reads up to {known}")]
    FutureVersion {
        /// Version in the header.
        found: u16,
        /// Newest version known here.
        known: u16,
    },
    /// The header's checksum does not match.
    #[error("the header is damaged: checksum {stored:08x} stored, {computed:08x} computed")]
    HeaderCorrupt {
        /// Checksum in the header.
        stored: u32,
        /// Checksum of the header's bytes.
        computed: u32,
    },
    /// The trailer's digest does not match.
    #[error("the contents are damaged: the digest of the container does not match its trailer")]
    BodyCorrupt,
    /// The trailer's authentication code does not match: altered, or made under another envelope key.
    #[error("the authentication code does not match: altered, or another envelope key")]
    NotAuthentic,
    /// The container is keyed and no envelope key was given, or the reverse.
    #[error("{}", if *.keyed { "the container needs an envelope key" } else { "the container carries no authentication code" })]
    EnvelopeMismatch {
        /// Whether the container is keyed.
        keyed: bool,
    },
    /// The header names an object type this library does not know.
    #[error("object type {found} is not known to this version")]
    UnknownType {
        /// Number in the header.
        found: u16,
    },
    /// The container holds something else.
    #[error("a {} was expected, this is a {}", expected.name(), found.name())]
    WrongType {
        /// Type wanted.
        expected: ObjectType,
        /// Type in the header.
        found: ObjectType,
    },
    /// The object belongs to other parameters.
    #[error("made for other parameters: {found}, not {expected}")]
    WrongParams {
        /// Digest wanted.
        expected: ParamsDigest,
        /// Digest in the header.
        found: ParamsDigest,
    },
    /// The object belongs to another secret key.
    #[error("made under another secret key: {found}, not {expected}")]
    WrongKey {
        /// Key id wanted.
        expected: KeyId,
        /// Key id in the header.
        found: KeyId,
    },
    /// The ciphertext rests in the other domain.
    #[error("the ciphertext rests in {}, {} were expected", domain(*.found_ntt), domain(*.expected_ntt))]
    WrongDomain {
        /// Whether slots were expected (otherwise coefficients).
        expected_ntt: bool,
        /// Whether it is in slots.
        found_ntt: bool,
    },
    /// A declared size is above what the parameters allow. Nothing was allocated.
    #[error("{what}: {declared} declared, at most {limit} allowed")]
    TooLarge {
        /// What the size is of.
        what: &'static str,
        /// Size declared.
        declared: u64,
        /// Largest size allowed.
        limit: u64,
    },
    /// A value that no writer produces.
    #[error("invalid contents at byte {offset}: {what}")]
    NonCanonical {
        /// What is wrong.
        what: &'static str,
        /// Where, counted from the start of the container (or of the payload, inside it).
        offset: u64,
    },
    /// A limb of this modulus cannot be packed or unpacked.
    #[error("limbs modulo {q} are not supported: q must lie in 2..=2^63")]
    Modulus {
        /// The modulus.
        q: u64,
    },
}

const fn domain(ntt: bool) -> &'static str {
    if ntt { "slots" } else { "coefficients" }
}

impl WireError {
    /// Stable name of the kind of error.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::BadMagic => "not_a_container",
            Self::Truncated { .. } => "truncated",
            Self::TrailingBytes { .. } => "trailing_bytes",
            Self::FutureVersion { .. } => "future_version",
            Self::HeaderCorrupt { .. } => "header_corrupt",
            Self::BodyCorrupt => "body_corrupt",
            Self::NotAuthentic => "not_authentic",
            Self::EnvelopeMismatch { .. } => "envelope_mismatch",
            Self::UnknownType { .. } => "unknown_type",
            Self::WrongType { .. } => "wrong_type",
            Self::WrongParams { .. } => "wrong_params",
            Self::WrongKey { .. } => "wrong_key",
            Self::WrongDomain { .. } => "wrong_domain",
            Self::TooLarge { .. } => "too_large",
            Self::NonCanonical { .. } => "non_canonical",
            Self::Modulus { .. } => "wire_modulus",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::BadMagic => "give a file that synchromesh wrote",
            Self::Truncated { .. } | Self::TrailingBytes { .. } => {
                "copy or download the file again, whole and in binary"
            }
            Self::FutureVersion { .. } | Self::UnknownType { .. } => "upgrade synchromesh to read this file",
            Self::HeaderCorrupt { .. } | Self::BodyCorrupt => "restore the file from a good copy; it was altered",
            Self::NotAuthentic => "check the envelope key; otherwise do not trust the sender's channel",
            Self::EnvelopeMismatch { keyed: true } => "give the envelope key it was written with",
            Self::EnvelopeMismatch { keyed: false } => "ask the sender to write it with the envelope key",
            Self::WrongType { .. } => "give the file of the type named",
            Self::WrongParams { .. } => "use objects made from one parameter file",
            Self::WrongKey { .. } => "use the key the object was made with",
            Self::WrongDomain { .. } => "read it by the scheme it was written by",
            Self::TooLarge { .. } => "check that the file belongs to these parameters",
            Self::NonCanonical { .. } => "have the file written again by synchromesh",
            Self::Modulus { .. } => "use primes of 20 to 61 bits",
        }
    }
}
