//! Keys: what Python holds of them, and their files.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use synchromesh::bundle::{Bundle, KEY, Kind, MAX_FILE_BYTES, NewKeys};
use synchromesh::rlwe::wire;
use synchromesh::rlwe::{self, KeyId};
use synchromesh_cuda::AnyDevice;
use synchromesh_rlwe::file::{self, Access, Existing};
use zeroize::Zeroizing;

use crate::ciphertext::Ciphertext;
use crate::context::{Context, device};
use crate::fault::Fault;
use crate::run::{detached, interruptible};
use crate::values::bytes_of;
use crate::values::into_array;

/// Where keys live.
type Layer = rlwe::Context<AnyDevice>;

/// A key as a file holds it.
trait Filed: Sized + Send + Sync + 'static {
    /// What files of it are called.
    const KIND: Kind;
    /// The secret key it belongs to.
    fn id(&self) -> KeyId;
    fn write(&self, context: &Layer) -> Result<Zeroizing<Vec<u8>>, rlwe::Error>;
    fn read(context: &Layer, bytes: &[u8]) -> Result<Self, rlwe::Error>;
    /// The same key on the device of `to`.
    fn on(self: &Arc<Self>, from: &Layer, to: &Layer) -> Result<Arc<Self>, rlwe::Error>;
}

impl Filed for rlwe::SecretKey<AnyDevice> {
    const KIND: Kind = Kind::SecretKey;

    fn id(&self) -> KeyId {
        self.id()
    }

    fn write(&self, context: &Layer) -> Result<Zeroizing<Vec<u8>>, rlwe::Error> {
        self.to_bytes(context, None)
    }

    fn read(context: &Layer, bytes: &[u8]) -> Result<Self, rlwe::Error> {
        Self::from_bytes(context, bytes, None)
    }

    fn on(self: &Arc<Self>, _: &Layer, to: &Layer) -> Result<Arc<Self>, rlwe::Error> {
        self.transfer(to).map(Arc::new)
    }
}

impl Filed for rlwe::PublicKey<AnyDevice> {
    const KIND: Kind = Kind::PublicKey;

    fn id(&self) -> KeyId {
        self.id()
    }

    fn write(&self, context: &Layer) -> Result<Zeroizing<Vec<u8>>, rlwe::Error> {
        self.to_bytes(context, None).map(Zeroizing::new)
    }

    fn read(context: &Layer, bytes: &[u8]) -> Result<Self, rlwe::Error> {
        Self::from_bytes(context, bytes, None, None)
    }

    fn on(self: &Arc<Self>, from: &Layer, to: &Layer) -> Result<Arc<Self>, rlwe::Error> {
        self.transfer(from, to).map(Arc::new)
    }
}

impl Filed for rlwe::EvaluationKeys<AnyDevice> {
    const KIND: Kind = Kind::EvaluationKeys;

    fn id(&self) -> KeyId {
        self.target()
    }

    fn write(&self, context: &Layer) -> Result<Zeroizing<Vec<u8>>, rlwe::Error> {
        self.to_bytes(context, None).map(Zeroizing::new)
    }

    fn read(context: &Layer, bytes: &[u8]) -> Result<Self, rlwe::Error> {
        Self::from_bytes(context, bytes, None, None)
    }

    fn on(self: &Arc<Self>, from: &Layer, to: &Layer) -> Result<Arc<Self>, rlwe::Error> {
        self.transfer(from, to).map(Arc::new)
    }
}

/// An envelope key, and the secret key whose files it is for.
pub(crate) struct Envelope {
    pub(crate) key: wire::EnvelopeKey,
    pub(crate) id: KeyId,
}

impl Filed for Envelope {
    const KIND: Kind = Kind::EnvelopeKey;

    fn id(&self) -> KeyId {
        self.id
    }

    fn write(&self, context: &Layer) -> Result<Zeroizing<Vec<u8>>, rlwe::Error> {
        self.key.to_container(context.params(), self.id)
    }

    fn read(context: &Layer, bytes: &[u8]) -> Result<Self, rlwe::Error> {
        let (key, id) = wire::EnvelopeKey::from_container(context.params(), bytes)?;
        Ok(Self { key, id })
    }

    fn on(self: &Arc<Self>, _: &Layer, _: &Layer) -> Result<Arc<Self>, rlwe::Error> {
        Ok(Arc::clone(self))
    }
}

/// The file of a key with its plan.
fn filed<K: Filed>(context: &Context, key: &K) -> Result<Zeroizing<Vec<u8>>, Fault> {
    context.bundle(K::KIND, &key.write(context.keyed()?.rlwe())?, key.id())
}

/// The context and the key of a file: of `context` if there is one, else of the plan that the file names.
fn of_file<K: Filed>(
    py: Python<'_>,
    bytes: Zeroizing<Vec<u8>>,
    context: Option<Bound<'_, Context>>,
) -> PyResult<(Context, Arc<K>)> {
    let context = context.map(|context| context.get().clone());
    interruptible(py, move || {
        let bundle = Bundle::decode(bytes.to_vec())?.require(K::KIND)?;
        let context = match context {
            Some(context) => context,
            None => {
                let plan = bundle.plan()?;
                Context::of_plan(&plan, &plan.to_json()?, device(None)?)?
            }
        };
        let key = K::read(context.keyed()?.rlwe(), bundle.one(KEY)?)?;
        if let Some(envelope) = context.envelopes.of(key.id()) {
            bundle.authentic(Some(&envelope.key))?;
        }
        Ok((context, Arc::new(key)))
    })
}

/// A Python class around a key, with the methods that all keys have and those in braces.
macro_rules! key_class {
    ($(#[$doc:meta])* $name:ident($key:ty), { $($own:tt)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "synchromesh._native")]
        pub(crate) struct $name {
            pub(crate) context: Context,
            pub(crate) key: Arc<$key>,
        }

        #[pymethods]
        impl $name {
            #[getter]
            fn context(&self) -> Context {
                self.context.clone()
            }

            #[getter]
            fn key_id(&self) -> String {
                Filed::id(&*self.key).to_string()
            }

            /// The same key for a context of the same parameters, on its device.
            fn to(&self, py: Python<'_>, context: &Bound<'_, Context>) -> PyResult<Self> {
                let (to, from, key) = (context.get().clone(), self.context.clone(), Arc::clone(&self.key));
                to.require_own(&from, "keys")?;
                let (context, key) = interruptible(py, move || {
                    let key = key.on(from.keyed()?.rlwe(), to.keyed()?.rlwe())?;
                    Ok((to, key))
                })?;
                Ok(Self { context, key })
            }

            $($own)*
        }
    };
}

/// A key class whose keys may go to others, as bytes.
macro_rules! shared_key_class {
    ($(#[$doc:meta])* $name:ident($key:ty), { $($own:tt)* }) => {
        key_class! { $(#[$doc])* $name($key), {
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                let (context, key) = (self.context.clone(), Arc::clone(&self.key));
                Ok(PyBytes::new(py, &interruptible(py, move || filed(&context, &*key))?))
            }

            #[staticmethod]
            #[pyo3(signature = (bytes, context=None))]
            fn from_bytes(
                py: Python<'_>,
                bytes: &Bound<'_, PyArray1<u8>>,
                context: Option<Bound<'_, Context>>,
            ) -> PyResult<Self> {
                let (context, key) = of_file(py, Zeroizing::new(bytes_of(bytes)?), context)?;
                Ok(Self { context, key })
            }

            $($own)*
        } }
    };
}

/// A key class whose keys go to files of mode 0600 and nowhere else.
macro_rules! kept_key_class {
    ($(#[$doc:meta])* $name:ident($key:ty), { $($own:tt)* }) => {
        key_class! { $(#[$doc])* $name($key), {
            $($own)*

            /// Writes the key to a file that only its owner may read.
            fn save(&self, py: Python<'_>, path: PathBuf, replace: bool) -> PyResult<()> {
                let (context, key) = (self.context.clone(), Arc::clone(&self.key));
                interruptible(py, move || {
                    let existing = if replace { Existing::Force } else { Existing::Keep };
                    Ok(file::write(&path, &filed(&context, &*key)?, Access::Secret, existing)?)
                })
            }

            #[staticmethod]
            #[pyo3(signature = (path, context=None))]
            fn load(py: Python<'_>, path: PathBuf, context: Option<Bound<'_, Context>>) -> PyResult<Self> {
                let bytes = interruptible(py, move || Ok(Zeroizing::new(file::read(&path, MAX_FILE_BYTES)?)))?;
                let (context, key) = of_file(py, bytes, context)?;
                Ok(Self { context, key })
            }
        } }
    };
}

kept_key_class! {
    /// A secret key.
    SecretKey(rlwe::SecretKey<AnyDevice>), {
        fn decrypt<'py>(
            &self,
            py: Python<'py>,
            ciphertexts: Vec<Bound<'py, Ciphertext>>,
            complex: bool,
        ) -> PyResult<Vec<Bound<'py, PyAny>>> {
            let (keyed, key) = (self.context.keyed()?, &self.key);
            let ciphers: Vec<_> = ciphertexts.iter().map(|x| Arc::clone(&x.get().cipher)).collect();
            let values = detached(py, || keyed.threads().try_map(ciphers, |x| Ok(keyed.decrypt(key, &x)?)))?;
            values.into_iter().map(|values| into_array(values, complex, py)).collect()
        }
    }
}

kept_key_class! {
    /// The key under which files are authenticated: who holds it is trusted to state certificates.
    EnvelopeKey(Envelope), {}
}

shared_key_class! {
    /// A key to encrypt with.
    PublicKey(rlwe::PublicKey<AnyDevice>), {}
}

shared_key_class! {
    /// Keys to multiply and rotate with.
    EvaluationKeys(rlwe::EvaluationKeys<AnyDevice>), {
        #[getter]
        fn count(&self) -> usize {
            self.key.iter().len()
        }

        /// These keys and those of `other` that are not among them.
        fn both(&self, other: &Self) -> PyResult<Self> {
            self.context.require_own(&other.context, "evaluation keys")?;
            let key = self.key.and(&other.key).map_err(Fault::from)?;
            Ok(Self { context: self.context.clone(), key: Arc::new(key) })
        }

        #[getter]
        fn wire_bytes(&self) -> PyResult<u64> {
            Ok(self.key.wire_bytes(self.context.keyed()?.rlwe().params()))
        }
    }
}

/// Writes the four files of a directory of keys, all or none.
#[pyfunction]
pub(crate) fn save_keys(
    py: Python<'_>,
    secret: &SecretKey,
    envelope: &EnvelopeKey,
    evaluation: &EvaluationKeys,
    public: &PublicKey,
    directory: PathBuf,
) -> PyResult<()> {
    let context = secret.context.clone();
    let (secret, envelope) = (Arc::clone(&secret.key), Arc::clone(&envelope.key));
    let (evaluation, public) = (Arc::clone(&evaluation.key), Arc::clone(&public.key));
    interruptible(py, move || {
        let new = NewKeys::begin(&directory)?;
        new.write(&[
            (Kind::SecretKey, filed(&context, &*secret)?),
            (Kind::EnvelopeKey, filed(&context, &*envelope)?),
            (Kind::EvaluationKeys, filed(&context, &*evaluation)?),
            (Kind::PublicKey, filed(&context, &*public)?),
        ])?;
        Ok(())
    })
}
