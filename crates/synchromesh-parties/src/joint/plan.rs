//! What parties agree on before they make keys: who decrypts, what the noise has to hide, and which keys there will be.

use synchromesh::opening::LEAST_SECURITY;
use synchromesh::rlwe::params::KeyOrigin;
use synchromesh::rlwe::{KeyPart, LevelPlans, Params, Source};
use synchromesh::rotations::Rotations;
use synchromesh::scheme::Scheme;

use crate::error::{Error, Result};
use crate::session::MOST_PARTIES;

/// Who decrypts, how often, and how well what they show is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How many parties hold the key.
    pub parties: usize,
    /// How many of them decrypt: all, or 2 or more.
    pub threshold: usize,
    /// Statistical security in bits, 30 or more: decryptions show the key as little as that many bits allow.
    pub security: u32,
    /// Decryptions under the key, at most.
    pub decryptions: u64,
}

impl Plan {
    /// All of so many parties decrypt, with 128 bits and up to 2^20 decryptions.
    #[must_use]
    pub const fn all_of(parties: usize) -> Self {
        Self { parties, threshold: parties, security: 128, decryptions: 1 << 20 }
    }

    /// Any `threshold` of so many parties decrypt, with 128 bits and up to 2^20 decryptions.
    #[must_use]
    pub const fn any_of(threshold: usize, parties: usize) -> Self {
        Self { threshold, ..Self::all_of(parties) }
    }

    /// The same with another statistical security.
    #[must_use]
    pub const fn with_security(self, security: u32) -> Self {
        Self { security, ..self }
    }

    /// The same with another number of decryptions.
    #[must_use]
    pub const fn with_decryptions(self, decryptions: u64) -> Self {
        Self { decryptions, ..self }
    }

    /// Whether each party holds a share by itself, and not a point of a polynomial.
    pub(super) const fn is_additive(&self) -> bool {
        self.threshold == self.parties
    }

    /// Fails unless such a key can be made under these parameters.
    pub(super) fn check(&self, params: &Params) -> Result<()> {
        let Self { parties, threshold, security, decryptions } = *self;
        let refused = |rule: String| Err(Error::JointKey { parties, rule });
        if parties == 0 || parties > MOST_PARTIES {
            return refused(format!("there must be 1 to {MOST_PARTIES}"));
        }
        if threshold > parties || (threshold < 2 && parties > 1) || threshold == 0 {
            return refused(format!("{threshold} of them cannot decrypt; it takes 2 to {parties}"));
        }
        if security < LEAST_SECURITY || decryptions == 0 {
            return refused(format!(
                "s = {security} and {decryptions} decryptions; it takes s of {LEAST_SECURITY} or more, and a decryption"
            ));
        }
        if params.second().is_some() || params.sparse().is_some() {
            return refused("a second or a sparse secret key comes from the first by a hash, which nobody has".into());
        }
        match params.key_origin() {
            KeyOrigin::Shared(shared) if shared.parties() == parties => Ok(()),
            other => refused(format!("the parameters are for other keys: {other:?}")),
        }
    }

    pub(super) fn to_bytes(self) -> [u8; 28] {
        let mut bytes = [0; 28];
        bytes[..8].copy_from_slice(&(self.parties as u64).to_le_bytes());
        bytes[8..16].copy_from_slice(&(self.threshold as u64).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.decryptions.to_le_bytes());
        bytes[24..].copy_from_slice(&self.security.to_le_bytes());
        bytes
    }
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
