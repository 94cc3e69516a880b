//! The directory of keys: `secret.key` and `envelope.key` (mode 0600), `public.key`, `eval.keys`, each with the plan inside
//! and sealed under the envelope key.

use crate::bundle::{Bundle, KEY, Kind, PLAN};
use crate::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use synchromesh::bundle::{BundleError, NewKeys};
use synchromesh::plan::Plan;
use synchromesh::rlwe::wire::EnvelopeKey;
use synchromesh::rlwe::{Context, EvaluationKeys, PublicKey, Randomness, SecretKey};
use synchromesh_ring::Backend;
use synchromesh_rlwe::file::FileError;

/// A directory of keys.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

/// A file of keys as a command uses it.
#[derive(Debug)]
pub struct KeyFile {
    /// The plan in it.
    pub plan: Plan,
    /// The envelope key beside it, if this directory has one: then the file was found authentic under it.
    pub envelope: Option<EnvelopeKey>,
    pub(super) bundle: Bundle,
}

/// What key generation wrote.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Names the secret key.
    pub key_id: String,
    /// Path and size in bytes of each file.
    pub files: Vec<(PathBuf, u64)>,
}

impl Directory {
    /// The directory at `path`.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The path of a file of keys; of any other, the directory.
    #[must_use]
    pub fn path(&self, kind: Kind) -> PathBuf {
        kind.file_name().map_or_else(|| self.0.clone(), |name| self.0.join(name))
    }

    /// Reads a file of keys and its plan, and the envelope key if there is one.
    ///
    /// # Errors
    /// The files', or the plan's; [`Error::ForeignKey`] for a file that the holder of the envelope key did not write.
    pub fn read(&self, kind: Kind) -> Result<KeyFile, Error> {
        let path = self.path(kind);
        let bundle = Bundle::read(&path)?.require(kind)?;
        let envelope = self.envelope()?;
        if envelope.is_some() && bundle.authentic(envelope.as_ref()).is_err() {
            return Err(Error::ForeignKey { path: path.display().to_string() });
        }
        Ok(KeyFile { plan: plan_of(&bundle)?, envelope, bundle })
    }

    /// The envelope key, if the directory has one.
    fn envelope(&self) -> Result<Option<EnvelopeKey>, Error> {
        let bundle = match Bundle::read(&self.path(Kind::EnvelopeKey)) {
            Err(BundleError::File(FileError::NotFound { .. })) => return Ok(None),
            read => read?.require(Kind::EnvelopeKey)?,
        };
        let (params, _) = plan_of(&bundle)?.params.check()?;
        Ok(Some(EnvelopeKey::from_container(&params, bundle.one(KEY)?)?.0))
    }
}

/// The plan in a file, checked.
///
/// # Errors
/// [`Error::Session`] without one, or the plan's own.
pub fn plan_of(bundle: &Bundle) -> Result<Plan, Error> {
    Ok(bundle.plan()?)
}

/// The section of a plan.
pub(super) fn plan_section(plan: &Plan) -> Result<(&'static str, String), Error> {
    Ok((PLAN, plan.to_json()?))
}

/// Makes keys for a plan and writes them, all or none; existing keys are kept and are an error.
///
/// # Errors
/// The file's; without randomness.
pub fn generate(plan: &Plan, directory: &Directory) -> Result<Generated, Error> {
    let session = plan.open_any()?;
    let new = NewKeys::begin(&directory.0)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = session.generate_keys(&mut randomness)?;
    let keys = session.generate_keys_for(&secret, session.rotations(), &mut randomness)?;
    let (context, plan) = (session.rlwe(), plan.to_json()?);
    let envelope = EnvelopeKey::random().map_err(synchromesh_rlwe::Error::from)?;
    let file = |kind, key: &[u8]| -> Result<_, Error> {
        Ok((kind, Bundle::encode(kind, &[(PLAN, plan.as_bytes()), (KEY, key)], Some(&envelope))?))
    };
    let files = new.write(&[
        file(Kind::SecretKey, &secret.to_bytes(context, None)?)?,
        file(Kind::EnvelopeKey, &envelope.to_container(context.params(), secret.id())?)?,
        file(Kind::EvaluationKeys, &keys.to_bytes(context, None)?)?,
        file(Kind::PublicKey, &public.to_bytes(context, None)?)?,
    ])?;
    Ok(Generated { key_id: secret.id().to_string(), files })
}

/// The secret key in a file.
pub(super) fn secret_key(context: &Context, file: &KeyFile) -> Result<SecretKey, Error> {
    Ok(SecretKey::from_bytes(context, file.bundle.one(KEY)?, None)?)
}

/// The public key in a file.
pub(super) fn public_key(context: &Context, file: &KeyFile) -> Result<PublicKey, Error> {
    Ok(PublicKey::from_bytes(context, file.bundle.one(KEY)?, None, None)?)
}

/// The evaluation keys in a file.
///
/// # Errors
/// The container's.
pub(super) fn evaluation_keys<B: Backend>(
    context: &Context<B>,
    file: &KeyFile,
) -> Result<Arc<EvaluationKeys<B>>, Error> {
    Ok(Arc::new(EvaluationKeys::from_bytes(context, file.bundle.one(KEY)?, None, None)?))
}
