//! What a plan's file says, and the sizes that no plan has: its author may be anybody.

use serde::{Deserialize, Serialize};
use synchromesh::bgv::{Params, ParamsLiteral};

use super::super::encryption::Proofs;
use super::super::floor::Offer;
use super::Keys;

/// Everything that all parties must agree on, as it is written to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Agreed {
    pub(super) format: String,
    pub(super) prime: String,
    pub(super) parties: usize,
    pub(super) shape: String,
    pub(super) statistical_security: u32,
    pub(super) log2_decryptions: u32,
    pub(super) proofs: Proofs,
    pub(super) keys: Keys,
    /// Rows, inner side, columns and line of a block.
    pub(super) packing: [usize; 4],
    pub(super) grid: [usize; 2],
    pub(super) batch: usize,
    pub(super) window: usize,
    pub(super) params: ParamsLiteral,
}

impl Agreed {
    /// Refuses numbers that no plan has, before anything is computed with them.
    pub(super) fn check_sizes(&self) -> Result<(), &'static str> {
        let ParamsLiteral { log_n, q_bits, p_bits, level_limbs, omega, primes, .. } = &self.params;
        let listed = primes.as_ref().map_or(0, |lists| lists.q.len().max(lists.p.len()).max(lists.aux.len()));
        let most = [q_bits.len(), p_bits.len(), level_limbs.len(), *omega, listed].into_iter().max().unwrap_or(0);
        if !LEGAL_DEGREES.contains(log_n) {
            Err("its degree is none")
        } else if most > MOST_LISTED {
            Err("its parameters list too many primes, levels or digits")
        } else if !(1..=MOST_WINDOW).contains(&self.window) {
            Err("its window of rotations is none")
        } else {
            Ok(())
        }
    }

    pub(super) fn offer(&self, params: &Params) -> Offer {
        Offer {
            statistical_security: self.statistical_security,
            security: params.literal().security,
            security_bits: params.rlwe().security_bits(),
            proofs: self.proofs,
        }
    }
}

/// Degrees of plans that are read, as log2.
const LEGAL_DEGREES: std::ops::RangeInclusive<u32> = 10..=17;

/// Most primes, levels and digits that a plan may list.
const MOST_LISTED: usize = 128;

/// Most rotations made from one decomposition.
const MOST_WINDOW: usize = 1024;
