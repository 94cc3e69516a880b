//! Errors on their way to JavaScript: each becomes an `Error` with a kind, a message and a remedy.

use js_sys::{Error, Reflect};
use synchromesh::bundle::{BundleError, Unproven};
use wasm_bindgen::JsValue;

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
}

impl From<synchromesh::rlwe::Error> for Fault {
    fn from(error: synchromesh::rlwe::Error) -> Self {
        Self::Library(error.into())
    }
}

impl Fault {
    pub(crate) fn own(kind: &'static str, message: impl Into<String>, remedy: &'static str) -> Self {
        Self::Own { kind, message: message.into(), remedy }
    }

    fn kind(&self) -> &str {
        match self {
            Self::Library(error) => error.kind(),
            Self::Bundle(error) => error.kind(),
            Self::Unproven(error) => error.kind(),
            Self::Own { kind, .. } => kind,
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Library(synchromesh::Error::NoKeys { .. }) => {
                "give the context evaluation keys: context.useKeys(keys)".to_owned()
            }
            Self::Library(error) => error.remedy(),
            Self::Bundle(error) => error.remedy(),
            Self::Unproven(Unproven::NotAuthentic) => Unproven::NotAuthentic.remedy().to_owned(),
            Self::Unproven(_) => {
                "give the context the envelope key of these keys: context.readEnvelopeKey(file); or, to take \
                 the maker's word at your own risk, pass trustCertificate = true"
                    .to_owned()
            }
            Self::Own { remedy, .. } => (*remedy).to_owned(),
        }
    }
}

impl From<Fault> for JsValue {
    fn from(fault: Fault) -> Self {
        let error = Error::new(&fault.to_string());
        error.set_name("SynchromeshError");
        for (name, value) in [("kind", fault.kind()), ("remedy", &fault.remedy())] {
            // Fails for objects that take no properties; an error just made takes them.
            let _ = Reflect::set(&error, &name.into(), &value.into());
        }
        error.into()
    }
}
