//! The least that a party accepts of a plan: its author may be the adversary.
//!
//! A plan that holds may still be one that protects nobody: parameters marked insecure, proofs of nothing, flooding and MACs of
//! a few bits. Each party says for itself what it takes, in so many words; nothing in the plan lowers it.

use synchromesh::rlwe::Security;
use synchromesh_parties::proofs::LEAST_SOUNDNESS;

use super::encryption::Proofs;
use crate::error::{Error, Result};

/// Least bits of statistical security that are taken without a word: the least in use among protocols of this kind, as 2^-40
/// is spent in a run and cannot be tried again offline. What is not, the soundness of proofs, has 128 bits whatever the
/// plan says.
const STATISTICAL: u32 = 40;

/// Least bits of computational security.
const COMPUTATIONAL: u32 = 128;

/// What a party wants of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Least bits of statistical security: of MACs and flooding.
    pub statistical_security: u32,
    /// Whether parameters marked insecure are taken.
    pub insecure: bool,
    /// What has to be proven of encryptions.
    pub proofs: Proofs,
}

impl Default for Floor {
    fn default() -> Self {
        Self { statistical_security: STATISTICAL, insecure: false, proofs: Proofs::Knowledge }
    }
}

/// What a plan has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) statistical_security: u32,
    pub(super) security: Security,
    pub(super) security_bits: f64,
    pub(super) proofs: Proofs,
}

impl Floor {
    /// Anything: for the author of a plan, and for those who decide nothing by it.
    pub const NONE: Self = Self { statistical_security: 0, insecure: true, proofs: Proofs::Nothing };

    /// All in which a plan is below.
    pub(super) fn shortfalls(&self, offer: &Offer) -> Vec<Error> {
        let mut all = Vec::new();
        let mut below = |what, have, least, word| all.push(Error::BelowFloor { what, have, least, word });
        if offer.security == Security::Insecure && !self.insecure {
            below("computational security", offer.security_bits as u32, COMPUTATIONAL, "insecure");
        }
        if offer.statistical_security < self.statistical_security {
            let (have, least) = (offer.statistical_security, self.statistical_security);
            below("statistical security", have, least, "least-statistical-security");
        }
        if (self.proofs, offer.proofs) == (Proofs::Knowledge, Proofs::Nothing) {
            below("soundness in proofs of encryptions", 0, LEAST_SOUNDNESS, "without-proofs");
        }
        all
    }

    /// The first of [`Self::shortfalls`], if there is one.
    pub(super) fn check(&self, offer: &Offer) -> Result<()> {
        self.shortfalls(offer).into_iter().next().map_or(Ok(()), Err)
    }
}
