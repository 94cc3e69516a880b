//! Which failure probability a caller accepts.

use serde::{Deserialize, Serialize};

/// The largest probability with which one decryption may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum FailureLimit {
    /// 2^-40: as likely as a fault of the machine, and no protection where an attacker may have decryptions at will.
    #[serde(rename = "2^-40")]
    Statistical,
    /// 2^-64.
    #[serde(rename = "2^-64")]
    Moderate,
    /// 2^-128: no more likely than guessing the key.
    #[default]
    #[serde(rename = "2^-128")]
    Negligible,
}

impl FailureLimit {
    /// All of them, the largest probability first.
    pub const ALL: [Self; 3] = [Self::Statistical, Self::Moderate, Self::Negligible];

    /// Minus log2 of the probability.
    #[must_use]
    pub const fn log2_failure(self) -> u32 {
        match self {
            Self::Statistical => 40,
            Self::Moderate => 64,
            Self::Negligible => 128,
        }
    }

    /// The limit of this exponent.
    #[must_use]
    pub fn from_log2(log2_failure: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.log2_failure() == log2_failure)
    }
}

impl std::fmt::Display for FailureLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "2^-{}", self.log2_failure())
    }
}
