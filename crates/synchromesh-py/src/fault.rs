//! Errors on their way to Python: each becomes one exception of the tree in `synchromesh.errors`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use synchromesh::batch::BatchError;
use synchromesh::bundle::{BundleError, Unproven};
use synchromesh::rlwe;
use synchromesh_ring::ThreadsError;
use synchromesh_rlwe::file::FileError;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The library refused.
    #[error(transparent)]
    Library(#[from] synchromesh::Error),
    /// A file of keys or ciphertexts.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A file whose certificates nothing vouches for.
    #[error(transparent)]
    Unproven(#[from] Unproven),
    /// The making of triples.
    #[error(transparent)]
    Triples(#[from] synchromesh_triples::Error),
    /// The number of threads asked for.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    /// Something only this layer sees.
    #[error("{message}")]
    Own {
        /// A stable word.
        kind: &'static str,
        /// What is wrong, with the numbers.
        message: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// An exception that Python code raised while it was called from here.
    #[error(transparent)]
    Python(#[from] PyErr),
}

impl From<synchromesh_rlwe::Error> for Fault {
    fn from(error: synchromesh_rlwe::Error) -> Self {
        Self::Library(error.into())
    }
}

impl From<FileError> for Fault {
    fn from(error: FileError) -> Self {
        Self::Bundle(error.into())
    }
}

/// The library's error behind an exception, so that a dry run can tell what its function lacked.
#[pyclass(frozen, module = "synchromesh._native")]
pub(crate) struct Cause(pub(crate) synchromesh::Error);

impl Fault {
    pub(crate) fn own(kind: &'static str, message: impl Into<String>, remedy: &'static str) -> Self {
        Self::Own { kind, message: message.into(), remedy }
    }

    fn kind(&self) -> &str {
        match self {
            Self::Library(error) => error.kind(),
            Self::Bundle(error) => error.kind(),
            Self::Unproven(error) => error.kind(),
            Self::Triples(error) => error.kind(),
            Self::Threads(error) => error.kind(),
            Self::Own { kind, .. } => kind,
            Self::Python(_) => "python",
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Library(synchromesh::Error::NoKeys { .. }) => {
                "give the context evaluation keys: context.keygen(), or context.add_keys(EvaluationKeys.load(..))"
                    .into()
            }
            Self::Library(synchromesh::Error::MissingRotations { steps, swap }) => format!(
                "have the owner of the secret key call keys.extend({steps:?}{}), and give this context the evaluation keys \
                 that it returns",
                if *swap { ", swap=True" } else { "" }
            ),
            Self::Library(synchromesh::Error::Rlwe(rlwe::Error::MissingKey { source_name, .. }))
                if source_name.starts_with("key ") =>
            {
                "have whoever holds both secret keys call keys.receive(old_secret), and pass the evaluation keys that it \
                 returns"
                    .into()
            }
            Self::Library(error) if error.kind() == "keys_differ" => {
                "use tensors and keys of one secret key, or bring them under it: tensor.rekey(keys)".into()
            }
            Self::Library(synchromesh::Error::Batch(BatchError::NoSlots { log_n, .. })) => {
                format!("leave t to the plan, or take synchromesh.plain_modulus(bound, {log_n})")
            }
            Self::Library(error) if error.kind() == "other_device" => {
                "bring them to one device: tensor.to(context), keys.to(context)".into()
            }
            Self::Library(error) => error.remedy(),
            Self::Bundle(error) => error.remedy(),
            Self::Unproven(error) => error.remedy().to_owned(),
            Self::Triples(error) => error.remedy(),
            Self::Threads(error) => error.remedy().into(),
            Self::Own { remedy, .. } => (*remedy).to_owned(),
            Self::Python(_) => String::new(),
        }
    }
}

impl From<synchromesh_triples::parties::Error> for Fault {
    fn from(error: synchromesh_triples::parties::Error) -> Self {
        Self::Triples(error.into())
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let (kind, message, remedy) = (fault.kind().to_owned(), fault.to_string(), fault.remedy());
        let cause = match fault {
            Fault::Python(error) => return error,
            Fault::Library(error) => Some(Cause(error)),
            _ => None,
        };
        Python::attach(|py| {
            let make = MAKE.import(py, "synchromesh.errors", "from_native");
            let made = make.and_then(|make| make.call1((kind, message, remedy, cause)));
            made.map_or_else(|error| error, Self::from_value)
        })
    }
}

/// The library's error behind a Python exception, if one is.
pub(crate) fn cause_of(py: Python<'_>, error: &PyErr) -> Option<synchromesh::Error> {
    let cause = error.value(py).getattr("_cause").ok()?;
    cause.cast::<Cause>().ok().map(|cause| cause.get().0.clone())
}
