//! The names of the three schemes.

use serde::{Deserialize, Serialize};

/// Which scheme a plan, a session or an evaluator is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemeName {
    /// Exact, message in the high bits.
    Bfv,
    /// Exact, message in the low bits.
    Bgv,
    /// Approximate, real or complex slots.
    Ckks,
}

impl SchemeName {
    /// "bfv", "bgv" or "ckks".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bfv => "bfv",
            Self::Bgv => "bgv",
            Self::Ckks => "ckks",
        }
    }
}
