//! What parties agree on before they make keys: who decrypts, what the noise has to hide, and which keys there will be.

pub use synchromesh::plan::Joint as Plan;
use synchromesh::rlwe::{KeyPart, LevelPlans, Params, Source};
use synchromesh::rotations::Rotations;
use synchromesh::scheme::Scheme;

use crate::error::{Error, Result};

/// Fails unless such a key can be made under these parameters.
pub(super) fn check(plan: &Plan, params: &Params) -> Result<()> {
    let parties = plan.parties;
    let refused = |rule: String| Err(Error::JointKey { parties, rule });
    plan.check().or_else(|error| refused(error.to_string()))?;
    if params.second().is_some() || params.sparse().is_some() {
        return refused("a second or a sparse secret key comes from the first by a hash, which nobody has".into());
    }
    // What certificates take the keys to be is what the plan makes of them.
    let (found, expected) = (params.key_origin(), plan.params(params.clone()).key_origin());
    if found != expected {
        return refused(format!("the parameters are for other keys: {found:?}, and it takes {expected:?}"));
    }
    Ok(())
}

/// Fails unless both are plans of one key, whoever holds it.
pub(super) fn require_same_key(from: &Plan, to: &Plan) -> Result<()> {
    let of = |plan: &Plan| (plan.makers(), plan.security, plan.decryptions);
    if of(from) == of(to) {
        return Ok(());
    }
    let [(n, s, d), (to_n, to_s, to_d)] = [of(from), of(to)];
    let rule = format!(
        "{n} parties made it, for s = {s} and {d} decryptions, and its new holders would have one of {to_n}, {to_s} and {to_d}"
    );
    Err(Error::JointKey { parties: to.parties, rule })
}

/// Bytes of [`to_bytes`].
pub(super) const PLAN_BYTES: usize = 29;

/// The plan in a hash, or in a file. The upper half of the first word is 0, or how many others made the key.
pub(super) fn to_bytes(plan: &Plan) -> [u8; PLAN_BYTES] {
    let mut bytes = [0; PLAN_BYTES];
    let makers = (plan.makers.unwrap_or(0) as u64) << 32;
    bytes[..8].copy_from_slice(&(plan.parties as u64 | makers).to_le_bytes());
    bytes[8..16].copy_from_slice(&(plan.threshold as u64).to_le_bytes());
    bytes[16..24].copy_from_slice(&plan.decryptions.to_le_bytes());
    bytes[24..28].copy_from_slice(&plan.security.to_le_bytes());
    bytes[28] = u8::from(plan.proofs);
    bytes
}

/// The plan that [`to_bytes`] wrote so; any numbers, which [`check`] has to see. None where it says neither that shares are
/// proven nor that they are not.
pub(super) fn from_bytes(bytes: &[u8; PLAN_BYTES]) -> Option<Plan> {
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let count = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
    let (parties, makers) = (count(word(0) & u64::from(u32::MAX)), count(word(0) >> 32));
    let makers = (makers > 0).then_some(makers);
    let security = bytes[24..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
    let proofs = match bytes[28] {
        0 => false,
        1 => true,
        _ => return None,
    };
    Some(Plan { parties, threshold: count(word(8)), security, decryptions: word(16), makers, proofs })
}

/// Which evaluation keys are made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted(Vec<(Source, KeyPart)>);

impl Wanted {
    /// The keys that products and these rotations take, at all levels.
    ///
    /// # Errors
    /// Rotations where there are no slots.
    pub fn whole<S: Scheme>(
        context: &S::Context<synchromesh::rlwe::ring::Cpu>,
        plans: &LevelPlans,
        rotations: &Rotations,
    ) -> Result<Self> {
        let params = S::rlwe(context).params();
        let part = KeyPart::whole(params, plans.at(params.top_level()).shape())?;
        let rotations = S::galois_elements(context, rotations)?.into_iter().map(Source::Galois);
        Self::parts(params, std::iter::once(Source::Square).chain(rotations).map(|source| (source, part.clone())))
    }

    /// Of each of these keys the part that is named with it: [`LevelPlans::needed`] says what levels take.
    ///
    /// # Errors
    /// [`Error::JointKey`] for a key that is named twice, a key from another secret, or an element that rotates nothing.
    pub fn parts(params: &Params, parts: impl IntoIterator<Item = (Source, KeyPart)>) -> Result<Self> {
        let parts: Vec<(Source, KeyPart)> = parts.into_iter().collect();
        let refused =
            |source: &Source, rule: &str| Error::JointKey { parties: 0, rule: format!("the key for {source} {rule}") };
        for (i, (source, _)) in parts.iter().enumerate() {
            if parts[..i].iter().any(|(other, _)| other == source) {
                return Err(refused(source, "is named twice"));
            }
            match source {
                Source::Square => {}
                Source::Galois(g) if g % 2 == 1 && *g > 1 && *g < 2 * params.n() => {}
                Source::Galois(_) => {
                    return Err(refused(source, "rotates nothing: it takes an odd element between 1 and 2N"));
                }
                Source::Key(_) => return Err(refused(source, "is from another secret key, which is nobody's here")),
            }
        }
        Ok(Self(parts))
    }

    /// The keys and what of each there will be.
    #[must_use]
    pub fn list(&self) -> &[(Source, KeyPart)] {
        &self.0
    }

    /// Everything of it, for a hash.
    pub(super) fn describe(&self, hasher: &mut blake3::Hasher) {
        for (source, part) in &self.0 {
            // Both say all that they are.
            hasher.update(format!("{source:?} {part:?}\n").as_bytes());
        }
    }
}
