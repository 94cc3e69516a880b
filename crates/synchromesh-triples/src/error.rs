//! What can go wrong: bad input, files that do not match, and other parties that misbehave.

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
    /// No field.
    #[error("a modulus of {bits} bits was refused: {reason}")]
    NotAField {
        /// Bits of the number.
        bits: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A number is no residue.
    #[error("a number of {bits} bits is not in [0, p) for a prime of {prime_bits} bits")]
    NotAnElement {
        /// Bits of the number.
        bits: u64,
        /// Bits of p.
        prime_bits: u64,
    },
    /// Shapes do not fit together.
    #[error("{} x {} and {} x {} do not make {what}", left.0, left.1, right.0, right.1)]
    Shape {
        /// Rows and columns of one.
        left: (usize, usize),
        /// Rows and columns of the other, or the number of entries given.
        right: (usize, usize),
        /// What was to be made of them.
        what: &'static str,
    },
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
    /// The prime is too small for the statistical security asked for.
    #[error("a prime of {bits} bits gives MACs of {bits} bits of security, {wanted} were asked for")]
    WeakMac {
        /// Bits of p.
        bits: u64,
        /// Bits asked for.
        wanted: u64,
    },
    /// A file is not what it should be.
    #[error("{}: {reason}", path.display())]
    Format {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A triple was given out before.
    #[error("{}: triple {index} of shape {shape} was given out before", path.display())]
    Spent {
        /// The journal.
        path: PathBuf,
        /// The shape.
        shape: String,
        /// Which triple.
        index: u64,
    },
    /// Opened triples do not satisfy C = A B, or a MAC is wrong.
    #[error("triple {index} of {count} is wrong: {reason}")]
    WrongTriple {
        /// Which triple.
        index: usize,
        /// Triples checked.
        count: usize,
        /// What does not hold.
        reason: &'static str,
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
    /// A check of MACs ended in an abort after shares had been opened: whoever cheated may know the MAC key.
    #[error("{abort}; the MAC key may be known now{}", listed(void))]
    MacKeyLeaked {
        /// The abort.
        abort: Box<Self>,
        /// Files that hold the key or triples under it.
        void: Vec<PathBuf>,
    },
    /// A MAC key that others may know.
    #[error("the MAC key may be known to others: {why}{}", listed(void))]
    MacKeyBurnt {
        /// How that is known.
        why: String,
        /// Files that hold the key or triples under it.
        void: Vec<PathBuf>,
    },
    /// Another session checks MACs under the same key, and does not end.
    #[error("another check under this MAC key has not ended in {seconds} seconds{}", listed(files))]
    MacKeyBusy {
        /// Files that hold the key or triples under it.
        files: Vec<PathBuf>,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A key or a file of shares without what was written beside it.
    #[error("{}: its record {} is not there", file.display(), record.display())]
    Unbound {
        /// The file.
        file: PathBuf,
        /// What is missing.
        record: PathBuf,
    },
    /// Triples of a session that another party did not end.
    #[error("{}: another party ended this session without triples, so that these have no counterparts", file.display())]
    Unmatched {
        /// The file.
        file: PathBuf,
    },
    /// Parties whose records of sessions do not fit together.
    #[error("party {party} has not ended the sessions under this key that this one has ended: {ended} here")]
    OutOfStep {
        /// The other party.
        party: usize,
        /// Sessions that ended with triples here.
        ended: usize,
    },
    /// A ciphertext was decrypted before under this key, or its decryption was begun.
    #[error("{}: ciphertext {ciphertext} met this key's share of the secret key before", path.display())]
    DecryptedBefore {
        /// The journal.
        path: PathBuf,
        /// The first bytes of its hash.
        ciphertext: String,
    },
    /// The key has taken part in as many decryptions as its flooding was made for.
    #[error("{}: {wanted} more decryptions after {made}, the flooding is for {most}", path.display())]
    KeySpent {
        /// The journal.
        path: PathBuf,
        /// Decryptions so far.
        made: u64,
        /// Decryptions asked for.
        wanted: u64,
        /// Most decryptions under one key.
        most: u64,
    },
    /// No parameters were found for the triples asked for.
    #[error("no parameters for triples {shape} among {parties} parties: {reason}")]
    NoParameters {
        /// The shape.
        shape: String,
        /// Number of parties.
        parties: usize,
        /// What stands in the way.
        reason: String,
    },
    /// A plan gives less than this party wants.
    #[error("the plan has {have} bits of {what}, and this party wants {least}")]
    BelowFloor {
        /// What it gives too little of.
        what: &'static str,
        /// Bits it gives.
        have: u32,
        /// Bits wanted.
        least: u32,
        /// The word by which a party takes it all the same.
        word: &'static str,
    },
    /// More than a machine has, or this party allows.
    #[error(
        "{count} triples {shape} take about {bytes} bytes of memory, of which {most} may be used; a party would send {bytes_sent} bytes \
         in some {seconds} s"
    )]
    TooLarge {
        /// The shape.
        shape: String,
        /// Triples.
        count: usize,
        /// Bytes of memory.
        bytes: u64,
        /// Bytes of memory that may be used.
        most: u64,
        /// Bytes that a party would send.
        bytes_sent: u64,
        /// Seconds it would take.
        seconds: u64,
    },
    /// A certificate or a connection could not be set up on this side.
    #[error("TLS: {reason}")]
    Tls {
        /// What is wrong.
        reason: String,
    },
    /// Other machines did not compute what they were asked for.
    #[error("blocks on other machines: {reason}")]
    Workers {
        /// What went wrong.
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
    /// Encryption or a computation on ciphertexts failed.
    #[error(transparent)]
    Library(#[from] synchromesh::Error),
}

impl From<synchromesh::rlwe::Error> for Error {
    fn from(error: synchromesh::rlwe::Error) -> Self {
        Self::Library(error.into())
    }
}

impl From<synchromesh::rlwe::ring::Error> for Error {
    fn from(error: synchromesh::rlwe::ring::Error) -> Self {
        synchromesh::rlwe::Error::from(error).into()
    }
}

impl From<synchromesh::batch::BatchError> for Error {
    fn from(error: synchromesh::batch::BatchError) -> Self {
        Self::Library(error.into())
    }
}

/// Files, for a message.
fn listed(files: &[PathBuf]) -> String {
    match files {
        [] => String::new(),
        files => {
            let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            format!("; of no use any more: {}", names.join(", "))
        }
    }
}

impl Error {
    /// Whose fault it is, for an abort.
    #[must_use]
    pub fn blame(&self) -> Option<&Blame> {
        match self {
            Self::Abort { blame, .. } => Some(blame),
            Self::MacKeyLeaked { abort, .. } => abort.blame(),
            _ => None,
        }
    }

    /// Files that must not be used any more, since the MAC key of what they hold may be known.
    #[must_use]
    pub fn void(&self) -> &[PathBuf] {
        match self {
            Self::MacKeyLeaked { void, .. } | Self::MacKeyBurnt { void, .. } => void,
            _ => &[],
        }
    }

    /// A stable name of the kind of error.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotAField { .. } => "not_a_field",
            Self::NotAnElement { .. } => "not_an_element",
            Self::Shape { .. } => "shape",
            Self::Parties { .. } => "parties",
            Self::SameParty { .. } => "same_party",
            Self::WeakMac { .. } => "weak_mac",
            Self::Format { .. } => "format",
            Self::Spent { .. } => "spent_triple",
            Self::WrongTriple { .. } => "wrong_triple",
            Self::Abort { .. } => "abort",
            // An abort is one kind, whatever comes of it.
            Self::MacKeyLeaked { abort, .. } => abort.kind(),
            Self::MacKeyBurnt { .. } => "mac_key_burnt",
            Self::MacKeyBusy { .. } => "mac_key_busy",
            Self::Unbound { .. } => "record_missing",
            Self::Unmatched { .. } => "unmatched_triples",
            Self::OutOfStep { .. } => "out_of_step",
            Self::DecryptedBefore { .. } => "decrypted_before",
            Self::KeySpent { .. } => "key_spent",
            Self::NoParameters { .. } => "no_parameters",
            Self::BelowFloor { .. } => "below_floor",
            Self::TooLarge { .. } => "memory",
            Self::Tls { .. } => "tls",
            Self::Workers { .. } => "workers",
            Self::Aborted => "aborted",
            Self::File(error) => error.kind(),
            Self::Proof(error) => error.kind(),
            Self::Entropy(error) => error.kind(),
            Self::Library(error) => error.kind(),
        }
    }

    /// Whether this is wrong with what another party sent, as no honest party sends it.
    pub(crate) fn blames_sender(&self) -> bool {
        match self {
            Self::Proof(error) => error.blames_prover(),
            error => matches!(error, Self::NotAnElement { .. }),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NotAField { .. } => {
                "use a prime of 64 to 256 bits, such as 0xffffffffffffffffffffffffff820001".into()
            }
            Self::NotAnElement { .. } => "reduce the numbers modulo p, or choose a larger prime".into(),
            Self::Shape { .. } => "check rows and columns of the operands".into(),
            Self::Parties { most, .. } => format!("number the parties from 0 and use 2 to {most} of them"),
            Self::SameParty { .. } => {
                "give each party a certificate and an address of its own, and list the fingerprint it printed".into()
            }
            Self::WeakMac { wanted, .. } => format!("choose a prime of at least {wanted} bits"),
            Self::Format { .. } => "write the file again; nothing of it was used".into(),
            Self::Spent { .. } => "make new triples: a triple used twice reveals what it was to hide".into(),
            Self::WrongTriple { .. } => "do not use any triple of this batch; make a new one".into(),
            Self::Abort { .. } => "do not retry with the same material: start a new session with fresh triples".into(),
            Self::MacKeyLeaked { .. } | Self::MacKeyBurnt { .. } => {
                "delete these keys and triples, at every party and wherever they were copied to; make new keys, in new \
                 directories, and new triples"
                    .into()
            }
            Self::MacKeyBusy { .. } => "end the other session, then run again: nothing of this one may be used".into(),
            Self::Unbound { .. } => {
                "bring the record back to where it was: it says what became of the key; a key or triples without it are \
                 not to be used, make new ones"
                    .into()
            }
            Self::Unmatched { .. } => "delete these triples, and make new ones".into(),
            Self::OutOfStep { .. } => {
                "a key was copied or brought back from before those sessions: go on with the one that took part in \
                 them, or make new keys"
                    .into()
            }
            Self::DecryptedBefore { .. } => {
                "begin a new session: a second share of a decryption would reveal the key".into()
            }
            Self::KeySpent { .. } => "make new keys, for more decryptions if so many are needed".into(),
            Self::NoParameters { .. } => "ask for less statistical security, fewer parties or a smaller prime".into(),
            Self::BelowFloor { word, .. } => format!(
                "have the plan made anew; or take it as it is by a word of your own: --{word} on the command line, {} in Python",
                word.replace('-', "_")
            ),
            Self::TooLarge { .. } => {
                "make smaller triples, or fewer: a product of larger matrices is a sum of products of blocks, each \
                                      with a triple of its own; --max-memory-bytes says what may be used"
                    .into()
            }
            Self::Tls { .. } => {
                "check the list of parties: each with its address and the fingerprint it printed".into()
            }
            Self::Workers { .. } => {
                "give the workers the setup of this session; then start a new one with fresh triples".into()
            }
            Self::Aborted => "start a new session with fresh triples".into(),
            Self::File(error) => error.remedy().into(),
            Self::Proof(error) => error.remedy(),
            Self::Entropy(error) => error.remedy().into(),
            Self::Library(error) => error.remedy(),
        }
    }
}
