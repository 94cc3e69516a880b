//! A joint key made and written: the directory that each of its holders has afterwards.

use std::path::{Path, PathBuf};

use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::bundle::{Bundle, KEY, Kind, PLAN};
use synchromesh::ckks::Ckks;
use synchromesh::plan::{Joint, Plan, SchemeName};
use synchromesh::rlwe::KeyId;
use synchromesh::rlwe::file::{Access, Journal, Part, Set};
use synchromesh::rlwe::wire::EnvelopeKey;
use synchromesh::scheme::Scheme;
use zeroize::Zeroizing;

use super::{Floor, JOURNAL, Party, Ready, Traffic, ended, traffic};
use crate::error::{Blame, Error, Result};
use crate::joint::{Wanted, generate};
use crate::session::Session;
use crate::tls::Tls;

/// What key generation left behind.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Names the joint key.
    pub key: KeyId,
    /// Number of this party.
    pub member: usize,
    /// Path and size in bytes of each file.
    pub files: Vec<(PathBuf, u64)>,
    /// What this party sent.
    pub traffic: Traffic,
}

impl Party {
    /// Makes the key of a plan with all other parties, and writes this party's directory: all files or none, and none over
    /// another key.
    ///
    /// # Errors
    /// [`Error::NotJoint`] and [`Error::BelowFloor`] for a plan that this party does not take, the files' errors, and those of
    /// [`generate`], all before anything is written. [`Error::Unconfirmed`] if all is written here, and somebody did not say so of
    /// itself.
    pub fn generate_keys(&self, plan: &Plan, floor: &Floor, out: &Path) -> Result<Generated> {
        let joint = floor.admit(plan)?;
        let ready = self.ready()?;
        ready.require(joint.parties, &joint)?;
        let set = Set::begin(out, &NAMES)?;
        let made = match plan.scheme {
            SchemeName::Bfv => generate_as::<Bfv>(ready, plan, &joint, set, out),
            SchemeName::Bgv => generate_as::<Bgv>(ready, plan, &joint, set, out),
            SchemeName::Ckks => generate_as::<Ckks>(ready, plan, &joint, set, out),
        };
        made.map_err(|error| ended(error, false))
    }
}

/// The files in the order in which they get their names. The public key is the last: nothing is encrypted under keys that
/// are not all there.
pub(super) const NAMES: [&str; 5] = [JOURNAL, super::SHARE, "envelope.key", "eval.keys", "public.key"];

fn generate_as<S: Scheme>(ready: Ready, plan: &Plan, joint: &Joint, set: Set, out: &Path) -> Result<Generated> {
    let opened = plan.open::<S>()?;
    let context = opened.rlwe();
    let wanted = Wanted::parts(context.params(), opened.key_parts()?)?;
    let text = plan.to_json()?;
    let mut session = ready.meet("synchromesh parties, keys")?;
    session.enter("comparing plans");
    session.same("the plan", blake3::hash(text.as_bytes()).as_bytes())?;
    let (keys, share) = generate(&mut session, context, joint, &wanted)?;
    session.enter("making the envelope key");
    let coin = Zeroizing::new(session.coin()?);
    let envelope = EnvelopeKey::from_bytes(blake3::derive_key("synchromesh 1 parties, envelope key", &coin[..]));
    let file = |kind, key: &[u8]| Bundle::encode(kind, &[(PLAN, text.as_bytes()), (KEY, key)], Some(&envelope));
    let made = || -> Result<_> {
        let journal = Zeroizing::new(Journal::blank(&share.title()));
        Ok([
            (journal, Access::Secret),
            (file(Kind::KeyShare, &share.to_bytes(context)?)?, Kind::KeyShare.access()),
            (file(Kind::EnvelopeKey, &envelope.to_container(context.params(), share.key())?)?, Access::Secret),
            (file(Kind::EvaluationKeys, &keys.evaluation.to_bytes(context, None)?)?, Access::Public),
            (file(Kind::PublicKey, &keys.public.to_bytes(context, None)?)?, Access::Public),
        ])
    };
    let made = session.or_leave(made())?;
    let part = |(name, (bytes, access)): (&'static str, &'_ (Zeroizing<Vec<u8>>, Access))| (name, bytes.len(), *access);
    let sizes: Vec<_> = NAMES.into_iter().zip(&made).map(part).collect();
    let parts = sizes.iter().zip(&made).map(|(&(name, _, access), (bytes, _))| Part { name, bytes, access });
    let paths = session.or_leave(set.write(&parts.collect::<Vec<_>>()))?;
    let mut public = blake3::Hasher::new();
    for (bytes, _) in &made[3..] {
        public.update(bytes);
    }
    confirm(&mut session, public.finalize().as_bytes(), out, &paths)?;
    Ok(Generated {
        key: share.key(),
        member: share.member(),
        files: paths.into_iter().zip(sizes).map(|(path, (_, bytes, _))| (path, bytes as u64)).collect(),
        traffic: traffic(&session),
    })
}

/// Hears from all others that they have written the same. Where one says that it has not, the files go again: nobody has them all.
/// One that is silent may have them.
pub(super) fn confirm(session: &mut Session<Tls>, public: &[u8; 32], out: &Path, paths: &[PathBuf]) -> Result<()> {
    session.enter("confirming keys");
    match session.same("what was written", public) {
        Err(Error::Abort { blame: Blame::Missing(parties), .. }) => {
            Err(Error::Unconfirmed { path: out.to_owned(), parties })
        }
        Err(error) => {
            paths.iter().rev().for_each(|path| drop(std::fs::remove_file(path)));
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}
