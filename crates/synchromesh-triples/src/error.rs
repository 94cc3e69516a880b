//! What can go wrong: bad input, files that do not match, and other parties that misbehave.

use std::path::{Path, PathBuf};

use synchromesh::rlwe::entropy::EntropyError;
use synchromesh::rlwe::file::FileError;
use synchromesh_parties::Blame;
use synchromesh_parties::proofs::ProofError;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

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
    /// The prime is too small for the statistical security asked for.
    #[error("a prime of {bits} bits gives MACs of {bits} bits of security, {wanted} were asked for")]
    WeakMac {
        /// Bits of p.
        bits: u64,
        /// Bits asked for.
        wanted: u64,
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
    /// Opened tuples are none, or a MAC is wrong.
    #[error("tuple {index} of {count} {kind} is wrong: {reason}")]
    WrongTuple {
        /// Which kind.
        kind: &'static str,
        /// Which tuple.
        index: usize,
        /// Tuples checked.
        count: usize,
        /// What does not hold.
        reason: &'static str,
    },
    /// A word for what is to be made is none.
    #[error("{text:?} is nothing that is made here")]
    UnknownTuples {
        /// The word.
        text: String,
    },
    /// What a program takes is not known, or not made here.
    #[error("{line:?} in what the compiler said: {reason}")]
    Demand {
        /// The line.
        line: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The files of a run were given to a program before.
    #[error("{}: the files of this run were given to a program before", path.display())]
    Used {
        /// The mark that says so.
        path: PathBuf,
    },
    /// A program that was to be given the files of a run did not begin.
    #[error("the program did not begin: {how}")]
    NotBegun {
        /// What stood in the way.
        how: String,
    },
    /// A program that was given the files of a run did not end well.
    #[error(
        "the program ended with {how}; whoever left it in a check of MACs may know the MAC key now{}",
        listed(void)
    )]
    Program {
        /// How it ended.
        how: String,
        /// Marks of the key.
        marks: Vec<PathBuf>,
        /// Files that hold the key or triples under it.
        void: Vec<PathBuf>,
    },
    /// A directory of preprocessing is of another prime.
    #[error("{}: its prime is {found}, and this is of the prime {wanted}", path.display())]
    OtherPrime {
        /// The file that says so.
        path: PathBuf,
        /// What it says.
        found: String,
        /// The prime wanted.
        wanted: String,
    },
    /// A directory of preprocessing is under another MAC key.
    #[error("{}: it is of another MAC key than this party's in its setup", path.display())]
    OtherMacKey {
        /// The file with the other key.
        path: PathBuf,
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
    /// The prime has no slots at the degree that is needed.
    #[error("p - 1 is divisible by 2^{twos} and no higher power, and N = 2^{log_n} takes 2N")]
    NoSlots {
        /// log2 of the degree.
        log_n: u32,
        /// How often 2 divides p - 1.
        twos: u64,
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
    /// Other machines did not compute what they were asked for.
    #[error("blocks on other machines: {reason}")]
    Workers {
        /// What went wrong.
        reason: String,
    },
    /// What goes wrong between parties, and with their files.
    #[error(transparent)]
    Parties(#[from] synchromesh_parties::Error),
    /// Encryption or a computation on ciphertexts failed.
    #[error(transparent)]
    Library(#[from] synchromesh::Error),
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        Self::Parties(error.into())
    }
}

impl From<ProofError> for Error {
    fn from(error: ProofError) -> Self {
        Self::Parties(error.into())
    }
}

impl From<EntropyError> for Error {
    fn from(error: EntropyError) -> Self {
        Self::Parties(error.into())
    }
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
            Self::Parties(error) => error.blame(),
            Self::MacKeyLeaked { abort, .. } => abort.blame(),
            _ => None,
        }
    }

    /// Files that must not be used any more, since the MAC key of what they hold may be known.
    #[must_use]
    pub fn void(&self) -> &[PathBuf] {
        match self {
            Self::MacKeyLeaked { void, .. } | Self::MacKeyBurnt { void, .. } | Self::Program { void, .. } => void,
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
            Self::WeakMac { .. } => "weak_mac",
            Self::Spent { .. } => "spent_triple",
            Self::WrongTriple { .. } => "wrong_triple",
            Self::Demand { .. } => "demand",
            Self::Used { .. } => "run_used",
            Self::NotBegun { .. } => "program_not_begun",
            Self::Program { .. } => "program_failed",
            Self::WrongTuple { .. } => "wrong_tuple",
            Self::UnknownTuples { .. } => "unknown_tuples",
            Self::OtherPrime { .. } => "other_prime",
            Self::OtherMacKey { .. } => "other_mac_key",
            // An abort is one kind, whatever comes of it.
            Self::MacKeyLeaked { abort, .. } => abort.kind(),
            Self::MacKeyBurnt { .. } => "mac_key_burnt",
            Self::MacKeyBusy { .. } => "mac_key_busy",
            Self::Unbound { .. } => "record_missing",
            Self::Unmatched { .. } => "unmatched_triples",
            Self::OutOfStep { .. } => "out_of_step",
            Self::NoSlots { .. } => "no_slots",
            Self::NoParameters { .. } => "no_parameters",
            Self::BelowFloor { .. } => "below_floor",
            Self::TooLarge { .. } => "memory",
            Self::Workers { .. } => "workers",
            Self::Parties(error) => error.kind(),
            Self::Library(error) => error.kind(),
        }
    }

    /// A session that has aborted is used again.
    pub(crate) const fn aborted() -> Self {
        Self::Parties(synchromesh_parties::Error::Aborted)
    }

    /// A file is not what it should be.
    pub(crate) fn format(path: &Path, reason: impl Into<String>) -> Self {
        synchromesh_parties::Error::Format { path: path.to_owned(), reason: reason.into() }.into()
    }

    /// Whether this is wrong with what another party sent, as no honest party sends it.
    pub(crate) fn blames_sender(&self) -> bool {
        match self {
            Self::Parties(error) => error.blames_sender(),
            Self::NotAnElement { .. } => true,
            _ => false,
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
            Self::WeakMac { wanted, .. } => format!("choose a prime of at least {wanted} bits"),
            Self::Spent { .. } => "make new triples: a triple used twice reveals what it was to hide".into(),
            Self::WrongTriple { .. } | Self::WrongTuple { .. } => {
                "do not use anything of this batch; make a new one".into()
            }
            Self::OtherPrime { wanted, .. } => format!(
                "write into another directory; or, if another program has written over it (MP-SPDZ's offline phases do so without \
                 -P {wanted}), bring it back and start that program with -P {wanted}"
            ),
            Self::OtherMacKey { .. } => {
                "write into another directory: files of two MAC keys do not go together; or make the keys of the setup anew \
                 with the MAC key that is there: `triples party` takes it by itself with keys of the parties, `triples deal` \
                 with --mac-keys DIR"
                    .into()
            }
            Self::Demand { .. } => {
                "say with --make what to make; daBits, edaBits and bits of other domains come from MP-SPDZ's own preprocessing, \
                 under the same MAC key"
                    .into()
            }
            Self::Used { .. } => {
                "use the files of another run, the same at every party, or make new ones: used twice, a triple reveals what it \
                 was to hide"
                    .into()
            }
            Self::NotBegun { .. } => "mend that and use the same run again: nothing of it was read".into(),
            Self::Program { marks, .. } => {
                let names: Vec<String> = marks.iter().map(|mark| mark.display().to_string()).collect();
                format!(
                    "delete these keys and triples at every party, and make new ones; or, if you know that the program came to no \
                     check of MACs, such as one that was not found or met nobody, delete {} and use the files of another run",
                    names.join(", ")
                )
            }
            Self::UnknownTuples { .. } => {
                "say a shape and how many, such as 128x128x128:4, or triples:1010, squares, bits, inverses, inputs"
                    .into()
            }
            Self::MacKeyLeaked { .. } | Self::MacKeyBurnt { .. } => {
                "delete these keys and triples, at every party and wherever they were copied to; make new keys, in new \
                 directories, and new triples"
                    .into()
            }
            Self::MacKeyBusy { .. } => "end the other session, then run again: nothing of this one may be used".into(),
            Self::Unbound { .. } => {
                "bring the record back to where it was: it says what became of the key; a key or triples without it are \
                 not to be used, make new ones. A MAC key that MP-SPDZ made has none, and is gone on with where its \
                 directory is named: --mac-key of `triples party`, --mac-keys of a dealer"
                    .into()
            }
            Self::Unmatched { .. } => "delete these triples, and make new ones".into(),
            Self::OutOfStep { .. } => {
                "a key was copied or brought back from before those sessions: go on with the one that took part in \
                 them, or make new keys"
                    .into()
            }
            Self::NoSlots { .. } => {
                "use a prime p with p - 1 divisible by 2N, such as the default one, \
                 340282366920938463463374607431759953921 = 0xffffffffffffffffffffffffff820001; MP-SPDZ's programs compute modulo \
                 that prime with -P, or read it from Params-Data"
                    .into()
            }
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
            Self::Workers { .. } => {
                "give the workers the setup of this session; then start a new one with fresh triples".into()
            }
            Self::Parties(error) => error.remedy(),
            Self::Library(error) => error.remedy(),
        }
    }
}
