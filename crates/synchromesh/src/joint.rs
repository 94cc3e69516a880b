//! A key that several parties hold together, as its plan says it: who decrypts, how often, and how well what they show is hidden.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::opening::{Hiding, LEAST_SECURITY};

/// Who decrypts, how often, and how well what they show is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joint {
    /// How many parties hold the key.
    pub parties: usize,
    /// How many of them decrypt: all, or 2 or more.
    pub threshold: usize,
    /// Statistical security in bits, 30 or more: decryptions show the key as little as that many bits allow.
    pub security: u32,
    /// Decryptions under the key, at most.
    pub decryptions: u64,
    /// How many parties made the key, where others hold it now: certificates depend on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub makers: Option<usize>,
    /// Whether each party proves its share of every key, and of what is decrypted for all: nobody has to be trusted then to
    /// follow these protocols. Certificates, and the room that a decryption takes, are for the worst that proofs let through.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proofs: bool,
}

impl Joint {
    /// Most parties that hold one key.
    pub const MOST_PARTIES: usize = 64;

    /// Most bits of statistical security.
    pub const MOST_SECURITY: u32 = 256;

    /// All of so many parties decrypt, with 128 bits and up to 2^20 decryptions.
    #[must_use]
    pub const fn all_of(parties: usize) -> Self {
        Self { parties, threshold: parties, security: 128, decryptions: 1 << 20, makers: None, proofs: false }
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

    /// The same key once others hold it: any `threshold` of so many, which may be all.
    #[must_use]
    pub const fn held_by(self, threshold: usize, parties: usize) -> Self {
        Self { parties, threshold, makers: Some(self.makers()), ..self }
    }

    /// How many parties made the key.
    #[must_use]
    pub const fn makers(&self) -> usize {
        match self.makers {
            Some(makers) => makers,
            None => self.parties,
        }
    }

    /// The same with a proof of each share of the keys.
    #[must_use]
    pub const fn with_proofs(self) -> Self {
        Self { proofs: true, ..self }
    }

    /// The same parameters for such a key: certificates then hold for it.
    #[must_use]
    pub fn params(&self, params: synchromesh_rlwe::Params) -> synchromesh_rlwe::Params {
        match self.proofs {
            true => params.with_proven_parties(self.makers()),
            false => params.with_parties(self.makers()),
        }
    }

    /// Whether each party holds a share by itself, and not a point of a polynomial.
    #[must_use]
    pub const fn is_additive(&self) -> bool {
        self.threshold == self.parties
    }

    /// Fails for numbers that no joint key has.
    ///
    /// # Errors
    /// [`Error::Request`] with the rule.
    pub fn check(&self) -> Result<()> {
        let Self { parties, threshold, security, decryptions, proofs, .. } = *self;
        let refused = |rule: String| Err(Error::request(rule));
        for count in [parties, self.makers()] {
            if count == 0 || count > Self::MOST_PARTIES {
                return refused(format!("{count} parties: there must be 1 to {}", Self::MOST_PARTIES));
            }
        }
        if threshold > parties || (threshold < 2 && parties > 1) || threshold == 0 {
            return refused(format!("{threshold} of {parties} parties cannot decrypt; it takes 2 to {parties}"));
        }
        if proofs && threshold < parties {
            return refused(format!(
                "proofs, and {threshold} of {parties} parties decrypt: what each deals to the others is not proven; let all \
                 {parties} decrypt, or trust them to follow the protocol, without proofs"
            ));
        }
        if proofs && self.makers.is_some() {
            return refused(
                "proofs, and other holders than those who made the key: nobody has a proof of their shares".to_owned(),
            );
        }
        if !(LEAST_SECURITY..=Self::MOST_SECURITY).contains(&security) || decryptions == 0 {
            return refused(format!(
                "s = {security} and {decryptions} decryptions; it takes s of {LEAST_SECURITY} or more, at most {}, and a \
                 decryption",
                Self::MOST_SECURITY
            ));
        }
        Ok(())
    }

    /// What noise has to hide where so many of the parties decrypt, with this precision of CKKS.
    #[must_use]
    pub const fn hiding(&self, present: usize, precision: f64) -> Hiding {
        let Self { security, decryptions, proofs: proven, .. } = *self;
        Hiding { parties: present, security, decryptions, precision, encrypted: false, proven }
    }

    /// What the widest noise has to hide: that of all parties, encrypted for a receiver, and twice as wide for shares.
    pub(crate) const fn widest(&self) -> Hiding {
        Hiding { encrypted: true, security: self.security + 2, ..self.hiding(self.parties, f64::MIN) }
    }
}
