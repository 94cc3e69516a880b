//! The directory of keys: `secret.key` (mode 0600), `public.key`, `eval.keys`, each with the plan inside.

use crate::bundle::{Bundle, KEY, Kind, PLAN};
use crate::error::Error;
use crate::scheme::Scheme;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use synchromesh::plan::Plan;
use synchromesh::rlwe::{EvaluationKeys, PublicKey, Randomness, SecretKey};
use synchromesh_rlwe::file::{Access, Part, Set};

/// A directory of keys.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

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

    /// The path of a file of keys.
    #[must_use]
    pub fn path(&self, kind: Kind) -> PathBuf {
        self.0.join(file_name(kind))
    }

    /// Reads a file of keys and its plan.
    ///
    /// # Errors
    /// The file's, or the plan's.
    pub fn read(&self, kind: Kind) -> Result<(Plan, Bundle), Error> {
        let bundle = Bundle::read(&self.path(kind))?.require(kind)?;
        Ok((plan_of(&bundle)?, bundle))
    }
}

const fn file_name(kind: Kind) -> &'static str {
    match kind {
        Kind::SecretKey => "secret.key",
        Kind::PublicKey => "public.key",
        Kind::EvaluationKeys | Kind::Column => "eval.keys",
    }
}

/// The files of keys in the order in which they get their names. The public key is the last: nothing is encrypted under
/// keys that are not all there.
const KINDS: [Kind; 3] = [Kind::SecretKey, Kind::EvaluationKeys, Kind::PublicKey];

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

const fn access(kind: Kind) -> Access {
    match kind {
        Kind::SecretKey => Access::Secret,
        Kind::PublicKey | Kind::EvaluationKeys | Kind::Column => Access::Public,
    }
}

/// Makes keys for a plan and writes them, all or none; existing keys are kept and are an error.
///
/// # Errors
/// The file's; without randomness.
pub fn generate<A: Scheme>(plan: &Plan, directory: &Directory) -> Result<Generated, Error> {
    let scheme = A::open(plan)?;
    let most = 2 * scheme.slots();
    if plan.rotations.len() > most {
        let what = format!("it asks for {} rotations, and there are at most {most}", plan.rotations.len());
        return Err(Error::Plan { what });
    }
    let set = Set::begin(&directory.0, &KINDS.map(file_name))?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = scheme.generate_keys(&mut randomness)?;
    let keys = scheme.generate_evaluation_keys(&secret, plan.rotation_keys(), plan.swap, &mut randomness)?;
    let keys = plan.trim(scheme.rlwe(), keys)?;
    let (context, plan) = (scheme.rlwe(), plan.to_json()?);
    let file = |kind, key: &[u8]| Bundle::encode(kind, &[(PLAN, plan.as_bytes()), (KEY, key)]);
    let files = [
        file(Kind::SecretKey, &secret.to_bytes(context, None)?)?,
        file(Kind::EvaluationKeys, &keys.to_bytes(context, None)?)?,
        file(Kind::PublicKey, &public.to_bytes(context, None)?)?,
    ];
    let part = |(kind, bytes)| Part { name: file_name(kind), bytes, access: access(kind) };
    let parts: Vec<Part<'_>> = KINDS.into_iter().zip(files.iter().map(|bytes| &bytes[..])).map(part).collect();
    let paths = set.write(&parts)?;
    let files = paths.into_iter().zip(files.iter().map(|bytes| bytes.len() as u64)).collect();
    Ok(Generated { key_id: secret.id().to_string(), files })
}

/// The secret key in a file.
pub(super) fn secret_key<A: Scheme>(scheme: &A, bundle: &Bundle) -> Result<SecretKey<A::Backend>, Error> {
    Ok(SecretKey::from_bytes(scheme.rlwe(), bundle.one(KEY)?, None)?)
}

/// The public key in a file.
pub(super) fn public_key<A: Scheme>(scheme: &A, bundle: &Bundle) -> Result<PublicKey<A::Backend>, Error> {
    Ok(PublicKey::from_bytes(scheme.rlwe(), bundle.one(KEY)?, None, None)?)
}

/// The evaluation keys in a file.
///
/// # Errors
/// The container's.
pub(super) fn evaluation_keys<A: Scheme>(
    scheme: &A,
    bundle: &Bundle,
) -> Result<Arc<EvaluationKeys<A::Backend>>, Error> {
    Ok(Arc::new(EvaluationKeys::from_bytes(scheme.rlwe(), bundle.one(KEY)?, None, None)?))
}
