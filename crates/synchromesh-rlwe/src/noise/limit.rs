//! Which failure probability a caller accepts, and which model a bound is read from.

use serde::{Deserialize, Serialize};

use super::Noise;

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

/// A way of bounding an error; all are tracked by the same operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// The expansion factor 2 sqrt(N) (ePrint 2021/204, section 2).
    WorstCase,
    /// The canonical norm with six standard deviations (ePrint 2023/1642, section 2; 2023/593, section 4).
    Canonical,
    /// The average case times what N Gaussian values stay within.
    Average(FailureLimit),
    /// The certificate: what gates operations.
    Certificate(FailureLimit),
}

impl Noise {
    /// log2 of the bound on all N = 2^`log_n` coefficients that a model gives.
    #[must_use]
    pub fn by(&self, model: Model, log_n: u32) -> f64 {
        match model {
            Model::WorstCase => self.reference.worst,
            Model::Canonical => self.reference.canonical + f64::from(log_n) / 2.0,
            Model::Average(limit) => self.average.log2_sigma() + super::tail(log_n, limit.log2_failure()).log2(),
            Model::Certificate(limit) => self.bound(log_n, limit.log2_failure()),
        }
    }

    /// log2 of the standard deviation of a coefficient in the average case: over keys and encryptions, for uniform
    /// messages.
    #[must_use]
    pub fn sigma_estimate(&self) -> f64 {
        self.average.log2_sigma()
    }
}
