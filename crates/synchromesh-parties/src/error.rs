//! What goes wrong between parties: lists and files that do not fit, connections, and others that misbehave.

use std::path::PathBuf;

use synchromesh::bundle::{BundleError, Unproven};
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
    /// Bytes that are no polynomial of the ring.
    #[error("no polynomial: {reason}")]
    NotAPolynomial {
        /// What is wrong.
        reason: String,
    },
    /// A key that parties cannot make or use in this way.
    #[error("a key of {parties} parties: {rule}")]
    JointKey {
        /// How many parties.
        parties: usize,
        /// The rule, with the numbers.
        rule: String,
    },
    /// Fewer parties than a key takes.
    #[error("{present} parties are there, and {threshold} of the {parties} who hold the key are needed")]
    TooFew {
        /// Parties of the session.
        present: usize,
        /// How many are needed.
        threshold: usize,
        /// How many hold shares.
        parties: usize,
    },
    /// A plan for a key that one party holds.
    #[error("the plan is for a key that one party holds")]
    NotJoint,
    /// A plan that has less than a party wants.
    #[error("the plan has {has:.0} {what}, and this party takes {least:.0} or more")]
    BelowFloor {
        /// What it has too little of.
        what: &'static str,
        /// How much.
        has: f64,
        /// How much there must be.
        least: f64,
    },
    /// A party that is not in the list of parties.
    #[error("{}: no party has the fingerprint {fingerprint}, which is this one's", path.display())]
    Unlisted {
        /// The list.
        path: PathBuf,
        /// Of this party's certificate.
        fingerprint: String,
    },
    /// A party that is not among those who are to meet.
    #[error("this is party {number}, and {present:?} are to meet")]
    NotAmong {
        /// Its number.
        number: usize,
        /// Those who meet.
        present: Vec<usize>,
    },
    /// A share of another member than the certificate is of.
    #[error("the share is that of member {member}, and by its certificate this is party {party}")]
    AnothersShare {
        /// Whose share it is.
        member: usize,
        /// Whose certificate.
        party: usize,
    },
    /// Nothing that a decryption among parties may rest on vouches for a file.
    #[error("{}: {why}", path.display())]
    Unproven {
        /// The file.
        path: PathBuf,
        /// What is missing.
        why: Unproven,
    },
    /// Keys that are written here, and perhaps not elsewhere.
    #[error("{}: the keys are written, and {} did not say that it has its own", path.display(), Blame::Missing(parties.clone()))]
    Unconfirmed {
        /// The directory.
        path: PathBuf,
        /// Who did not say so.
        parties: Vec<usize>,
    },
    /// A session of the holders of a joint key that was aborted.
    #[error("{error}")]
    Ended {
        /// The abort.
        error: Box<Self>,
        /// Whether this party may have shown its share of a decryption.
        shown: bool,
    },
    /// A file of keys or of a column that is none.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A key without its journal.
    #[error("{}: the journal of this key's decryptions is not there", path.display())]
    NoJournal {
        /// Where it should be.
        path: PathBuf,
    },
    /// A ciphertext was decrypted before under this key, or its decryption was begun.
    #[error("{}: ciphertext {ciphertext} met this key's share of the secret key before", path.display())]
    DecryptedBefore {
        /// The journal.
        path: PathBuf,
        /// The beginning of the ciphertext's hash.
        ciphertext: String,
    },
    /// More decryptions than the noise of a key is made for.
    #[error("{}: {wanted} decryptions after {made}; the noise under this key is for {most}", path.display())]
    KeySpent {
        /// The journal.
        path: PathBuf,
        /// Decryptions so far.
        made: u64,
        /// Decryptions asked for.
        wanted: u64,
        /// Decryptions allowed in all.
        most: u64,
    },
    /// The system gave no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// A file's container could not be written or read.
    #[error(transparent)]
    Library(#[from] synchromesh::rlwe::Error),
    /// A scheme refused what was asked of it.
    #[error(transparent)]
    Scheme(#[from] synchromesh::Error),
}

impl From<synchromesh::rlwe::ring::Error> for Error {
    fn from(error: synchromesh::rlwe::ring::Error) -> Self {
        Self::Library(error.into())
    }
}

impl Error {
    /// Whose fault it is, for an abort.
    #[must_use]
    pub const fn blame(&self) -> Option<&Blame> {
        match self {
            Self::Abort { blame, .. } => Some(blame),
            Self::Ended { error, .. } => error.blame(),
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
            Self::NotAPolynomial { .. } => "not_a_polynomial",
            Self::JointKey { .. } => "joint_key",
            Self::TooFew { .. } => "too_few_parties",
            Self::NotJoint => "not_a_joint_plan",
            Self::BelowFloor { .. } => "below_floor",
            Self::Unlisted { .. } => "unlisted_party",
            Self::NotAmong { .. } => "not_among",
            Self::AnothersShare { .. } => "anothers_share",
            Self::Unproven { why, .. } => why.kind(),
            Self::Unconfirmed { .. } => "unconfirmed_keys",
            Self::Ended { error, .. } => error.kind(),
            Self::Bundle(error) => error.kind(),
            Self::NoJournal { .. } => "record_missing",
            Self::DecryptedBefore { .. } => "decrypted_before",
            Self::KeySpent { .. } => "key_spent",
            Self::Entropy(error) => error.kind(),
            Self::Library(error) => error.kind(),
            Self::Scheme(error) => error.kind(),
        }
    }

    /// Whether it is about what another party sent, which no honest one sends.
    #[must_use]
    pub const fn blames_sender(&self) -> bool {
        match self {
            Self::Proof(error) => error.blames_prover(),
            Self::NotAPolynomial { .. } => true,
            _ => false,
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
            Self::NotAPolynomial { .. } => "let all parties run the same version on the same parameters".into(),
            Self::JointKey { .. } => {
                "take parameters with_joint of the plan of the key, without a second or a sparse secret key, and \
                 let all of them say the same"
                    .into()
            }
            Self::TooFew { threshold, .. } => format!("wait until {threshold} of the holders are there, and begin a session with them"),
            Self::NotJoint => {
                "plan for a joint key: `synchromesh plan --parties N`, in Python plan(.., joint=Joint(N))".into()
            }
            Self::BelowFloor { what: "bits of security", .. } => {
                "make a plan of 128 bits, or say --insecure, in Python insecure=True, if this is a test".into()
            }
            Self::BelowFloor { .. } => {
                "plan with a larger --statistical-security, or say --least-statistical-security, in Python \
                 least_statistical_security, if less is enough for you"
                    .into()
            }
            Self::Unlisted { .. } => {
                "use the certificate whose fingerprint you gave to the others, or let all list this one".into()
            }
            Self::NotAmong { number, .. } => {
                format!("name {number} among those who meet, or run this at one of them")
            }
            Self::AnothersShare { .. } => {
                "take share and certificate of one party, and the list in the order in which the key was made".into()
            }
            Self::Unproven { why: Unproven::NotAuthentic, .. } => {
                "get the file anew; all who encrypt and compute for this key take envelope.key from its holders".into()
            }
            Self::Unproven { .. } => {
                "give envelope.key to whoever encrypts and computes, if it is trusted, and let it write the file again: a \
                 decryption among parties takes nobody's word for the noise, which says how much the shares have to hide"
                    .into()
            }
            Self::Unconfirmed { .. } => {
                "ask that party: if its directory has a key of this name, use yours; if not, remove all of them and make \
                 the key again"
                    .into()
            }
            Self::Ended { shown: true, .. } => {
                "this party may have shown its share of the ciphertext, and never shows another: add an encrypted column of \
                 zeros to it with `eval`, give the sum to all who decrypt, and decrypt that"
                    .into()
            }
            Self::Ended { error, shown: false } => match error.blame() {
                Some(missing @ Blame::Missing(_)) => format!(
                    "nothing was shown or written, so run it again at all parties: see that {missing} can be reached at the \
                     address in the list and runs the same within the timeout; where enough others decrypt, name them without it"
                ),
                Some(Blame::Party(_)) => {
                    "nothing was shown or written: ask that party what it runs, and go on without it or with a version that \
                     all share"
                        .into()
                }
                _ => {
                    "nothing was shown or written, so run it again at all parties, once all have the same plan, files, list of \
                     those who meet, and version"
                        .into()
                }
            },
            Self::Bundle(error) => error.remedy(),
            Self::NoJournal { .. } => {
                "bring the journal back to where it was: a key without it may show a share twice, and is not to be used"
                    .into()
            }
            Self::DecryptedBefore { .. } => {
                "begin a new session with fresh material, or add a fresh encryption of zero to the ciphertext, which counts \
                 as another decryption: a second share of one would reveal the key"
                    .into()
            }
            Self::KeySpent { .. } => "make new keys, for more decryptions if so many are needed".into(),
            Self::Entropy(error) => error.remedy().into(),
            Self::Library(error) => error.remedy(),
            Self::Scheme(error) => error.remedy(),
        }
    }
}
