//! What goes wrong between parties: lists and files that do not fit, connections, and others that misbehave.

use std::path::PathBuf;

use synchromesh::rlwe::entropy::EntropyError;
use synchromesh::rlwe::file::FileError;

use crate::proofs::ProofError;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Whose fault an abort is, as far as an honest party can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blame {
    /// This party sent, over its own channel, something that no honest party sends.
    Party(usize),
    /// Nothing came from these parties, in order of their numbers: they are at fault, or the network is. It proves nothing.
    Missing(Vec<usize>),
    /// Some party cheated; the protocol does not say which.
    Somebody,
}

impl std::fmt::Display for Blame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Party(party) => write!(f, "party {party}"),
            Self::Missing(parties) => match &parties[..] {
                [] => write!(f, "no party"),
                [party] => write!(f, "party {party}"),
                [first @ .., last] => {
                    let first = first.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
                    write!(f, "parties {first} and {last}")
                }
            },
            Self::Somebody => write!(f, "an unknown party"),
        }
    }
}

/// Errors of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such number of parties.
    #[error("{parties} parties, and this is number {party}; there must be 2 to {most}")]
    Parties {
        /// Number of this party, from 0.
        party: usize,
        /// Parties in all.
        parties: usize,
        /// Most parties supported.
        most: usize,
    },
    /// Two parties of a list are one.
    #[error("parties {first} and {second} are listed with one {what}")]
    SameParty {
        /// Number of one.
        first: usize,
        /// Number of the other.
        second: usize,
        /// What they share: a certificate or an address.
        what: &'static str,
    },
    /// A file is not what it should be.
    #[error("{}: {reason}", path.display())]
    Format {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The protocol was aborted.
    #[error("aborted in {phase}: {blame} {deed}")]
    Abort {
        /// What the parties were doing.
        phase: String,
        /// Whose fault it is.
        blame: Blame,
        /// What was wrong.
        deed: String,
    },
    /// A certificate or a connection could not be set up on this side.
    #[error("TLS: {reason}")]
    Tls {
        /// What is wrong.
        reason: String,
    },
    /// A session that aborted is used again.
    #[error("this session has aborted and stays so")]
    Aborted,
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A proof was not made or not believed.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The system gave no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// A file's container could not be written or read.
    #[error(transparent)]
    Library(#[from] synchromesh::rlwe::Error),
}

impl Error {
    /// Whose fault it is, for an abort.
    #[must_use]
    pub const fn blame(&self) -> Option<&Blame> {
        match self {
            Self::Abort { blame, .. } => Some(blame),
            _ => None,
        }
    }

    /// A stable name of the kind of error.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Parties { .. } => "parties",
            Self::SameParty { .. } => "same_party",
            Self::Format { .. } => "format",
            Self::Abort { .. } => "abort",
            Self::Tls { .. } => "tls",
            Self::Aborted => "aborted",
            Self::File(error) => error.kind(),
            Self::Proof(error) => error.kind(),
            Self::Entropy(error) => error.kind(),
            Self::Library(error) => error.kind(),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Parties { most, .. } => format!("number the parties from 0 and use 2 to {most} of them"),
            Self::SameParty { .. } => {
                "give each party a certificate and an address of its own, and list the fingerprint it printed".into()
            }
            Self::Format { .. } => "write the file again; nothing of it was used".into(),
            Self::Abort { .. } => {
                "do not retry with the same material: start a new session with fresh keys or triples".into()
            }
            Self::Tls { .. } => {
                "check the list of parties: each with its address and the fingerprint it printed".into()
            }
            Self::Aborted => "start a new session with fresh keys or triples".into(),
            Self::File(error) => error.remedy().into(),
            Self::Proof(error) => error.remedy(),
            Self::Entropy(error) => error.remedy().into(),
            Self::Library(error) => error.remedy(),
        }
    }
}
