//! The command's error: every kind carries what went wrong with the numbers, a stable name, and a remedy.

use crate::expression::ExpressionError;
use crate::table::TableError;
use synchromesh::bundle::{BundleError, Unproven};
use synchromesh_cuda::DeviceError;
use synchromesh_ring::ThreadsError;
use synchromesh_ring::isa::IsaError;
use synchromesh_rlwe::file::FileError;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A table or its file.
    #[error(transparent)]
    Table(#[from] TableError),
    /// An expression.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// The instruction set asked for in the environment.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// The number of threads asked for.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    /// A scheme, its keys, ciphertexts or parameters.
    #[error(transparent)]
    Scheme(synchromesh::Error),
    /// A device that cannot be had.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A key, plan or ciphertext file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that is no machine profile.
    #[error("{path}: no machine profile: {why}")]
    Profile {
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
        /// Whether it is where `tune` keeps that of this machine, so that nobody named it.
        own: bool,
    },
    /// A plan that contradicts itself or what it is used for.
    #[error("the plan cannot be used: {what}")]
    Plan {
        /// What is wrong with it.
        what: String,
    },
    /// A file of a session that is another one, or lacks something.
    #[error("{what}")]
    Session {
        /// What is wrong with it.
        what: String,
    },
    /// An encrypted column whose certificates nothing vouches for.
    #[error("{path}: {why}")]
    Unproven {
        /// The file.
        path: String,
        /// What is missing.
        why: Unproven,
    },
    /// A key file that the holder of the envelope key beside it did not write.
    #[error("{path}: not authentic under the envelope.key beside it")]
    ForeignKey {
        /// The file.
        path: String,
    },
    /// Parameters under 128 bits of security.
    #[error("the parameters have {bits:.0} bits of security, less than 128")]
    Insecure {
        /// Their security.
        bits: f64,
    },
    /// Columns of different lengths in one expression.
    #[error("'{first}' has {rows} rows and '{second}' has {other}")]
    Rows {
        /// A column.
        first: String,
        /// Its rows.
        rows: usize,
        /// Another.
        second: String,
        /// Its rows.
        other: usize,
    },
    /// Matrices that have no product.
    #[error("a matrix of {} x {} times one of {} x {}", left[0], left[1], right[0], right[1])]
    Shapes {
        /// Rows and columns of the left factor.
        left: [usize; 2],
        /// Rows and columns of the right factor.
        right: [usize; 2],
    },
    /// An entry of a matrix that is no residue.
    #[error("row {row}, column {column}: {value} is outside -t/2 to t - 1 for t = {t}")]
    Residue {
        /// Row of values, from 1.
        row: usize,
        /// Column, from 1.
        column: usize,
        /// The entry.
        value: String,
        /// The plaintext modulus.
        t: String,
    },
    /// Keys that this machine has no memory for.
    #[error("the plan takes {needed} bytes of memory, and {free} are free")]
    Memory {
        /// What the plan forecasts.
        needed: u64,
        /// What there is.
        free: u64,
    },
    /// An integer that a plaintext modulus cannot hold.
    #[error("{value} is outside -t/2 to t/2 for t = {t}")]
    Modulus {
        /// The integer.
        value: String,
        /// The plaintext modulus.
        t: String,
    },
    /// A number with a fraction where integers are computed with.
    #[error("{value} is not an integer, and {scheme} computes with integers")]
    NotInteger {
        /// The number.
        value: String,
        /// The scheme.
        scheme: &'static str,
    },
    /// An integer beyond binary64 where reals are computed with.
    #[error("{value} is beyond the largest binary64 number, and ckks computes with those")]
    NotReal {
        /// The number.
        value: String,
    },
    /// A bench request.
    #[cfg(feature = "measure")]
    #[error(transparent)]
    Bench(#[from] synchromesh_bench::Error),
    /// A choice that this program knows and does not offer.
    #[error("{choice} is not available here; available: {available}")]
    Unavailable {
        /// The flag and its value.
        choice: String,
        /// What can be chosen instead.
        available: String,
    },
    /// Triples, their files, or the protocol that makes them.
    #[error(transparent)]
    Triples(#[from] synchromesh_triples::Error),
    /// A party's process that failed.
    #[error("party {party}: {message}")]
    Party {
        /// Its number.
        party: usize,
        /// What it said.
        message: String,
        /// What it advised.
        remedy: String,
        /// Files that it said must not be used any more.
        void: Vec<String>,
    },
    /// A signal, or the end of whoever started the command.
    #[error("{what}")]
    Interrupted {
        /// What happened.
        what: String,
    },
    /// A file other than a table.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Flags and arguments that make no sense.
    #[error("{message}")]
    Usage {
        /// What is wrong with them.
        message: String,
    },
}

impl From<BundleError> for Error {
    fn from(error: BundleError) -> Self {
        match error {
            BundleError::Wire(error) => synchromesh_rlwe::Error::from(error).into(),
            BundleError::File(error) => error.into(),
            BundleError::Plan(error) => error.into(),
            other => Self::Session { what: other.to_string() },
        }
    }
}

impl From<synchromesh_triples::parties::Error> for Error {
    fn from(error: synchromesh_triples::parties::Error) -> Self {
        Self::Triples(error.into())
    }
}

impl From<synchromesh::Error> for Error {
    fn from(error: synchromesh::Error) -> Self {
        match error {
            synchromesh::Error::NumberExceedsModulus { value, t, .. } => Self::Modulus { value, t },
            other => Self::Scheme(other),
        }
    }
}

impl From<synchromesh_rlwe::Error> for Error {
    fn from(error: synchromesh_rlwe::Error) -> Self {
        Self::Scheme(error.into())
    }
}

impl Error {
    /// The stable name of this kind of error, for scripts.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Table(error) => error.kind(),
            Self::Expression(error) => error.kind(),
            Self::Isa(_) => "isa",
            Self::Threads(error) => error.kind(),
            Self::Scheme(error) => error.kind(),
            Self::Device(error) => error.kind(),
            Self::File(error) => error.kind(),
            Self::Profile { .. } => "profile",
            Self::Plan { .. } => "plan",
            Self::Session { .. } => "session",
            Self::Unproven { why, .. } => why.kind(),
            Self::ForeignKey { .. } => "not_authentic",
            Self::Insecure { .. } => "insecure",
            Self::Rows { .. } => "rows",
            Self::Shapes { .. } => "shapes",
            Self::Residue { .. } | Self::Modulus { .. } => "value_exceeds_modulus",
            Self::Memory { .. } => "memory",
            Self::NotInteger { .. } => "not_integer",
            Self::NotReal { .. } => "not_real",
            #[cfg(feature = "measure")]
            Self::Bench(error) => error.kind(),
            Self::Unavailable { .. } => "unavailable",
            Self::Triples(error) => error.kind(),
            Self::Party { .. } => "party",
            Self::Interrupted { .. } => "interrupted",
            Self::Io { .. } => "io",
            Self::Usage { .. } => "usage",
        }
    }

    /// Files that must not be used any more.
    #[must_use]
    pub fn void(&self) -> Vec<String> {
        match self {
            Self::Triples(error) => error.void().iter().map(|path| path.display().to_string()).collect(),
            Self::Party { void, .. } => void.clone(),
            _ => Vec::new(),
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Table(error) => error.remedy().to_owned(),
            Self::Expression(error) => error.remedy(),
            Self::Isa(_) => "unset SYNCHROMESH_ISA, or set it to one of the isas that `synchromesh info` lists".into(),
            Self::Threads(error) => error.remedy().to_owned(),
            Self::Scheme(error) => error.remedy(),
            Self::Device(error) => error.remedy().to_owned(),
            Self::File(FileError::Key { .. }) => "choose another path, or say --force to lose the key".into(),
            Self::File(error) => error.remedy().to_owned(),
            Self::Profile { own: true, .. } => "remove the file, or measure anew with `synchromesh tune`".into(),
            Self::Profile { .. } => "give a file that `synchromesh tune` wrote".into(),
            Self::Plan { .. } => "make the plan anew with `synchromesh plan`".into(),
            Self::Session { .. } => "give the file that was meant; each is written by one command".into(),
            Self::Unproven { why, .. } => why.remedy().into(),
            Self::ForeignKey { .. } => "take all key files from one run of `synchromesh keygen`".into(),
            Self::Insecure { .. } => "make a plan of 128 bits, or say --insecure if this is a test".into(),
            Self::Rows { .. } => "encrypt columns of equal length".into(),
            Self::Shapes { .. } => {
                "give factors of which the left one has as many columns as the right one rows".into()
            }
            Self::Residue { .. } => "reduce the entries modulo t, or take a larger --t".into(),
            Self::Memory { free, .. } => format!("plan with --max-memory-bytes {free}, or free memory"),
            Self::Modulus { .. } => "plan with a larger --t, or scale the values down".into(),
            Self::NotInteger { .. } => "round or scale the numbers to integers, or plan for ckks".into(),
            Self::NotReal { .. } => "scale the numbers down, or plan for bfv or bgv".into(),
            #[cfg(feature = "measure")]
            Self::Bench(error) => error.remedy(),
            Self::Unavailable { available, .. } => format!("use {available}"),
            Self::Triples(error) => error.remedy(),
            Self::Party { remedy, .. } => remedy.clone(),
            Self::Interrupted { .. } => "run it again into another directory; every file that it wrote is whole".into(),
            Self::Io { .. } => "check the path, its permissions and the space left".into(),
            Self::Usage { .. } => "run the command with --help".into(),
        }
    }
}
