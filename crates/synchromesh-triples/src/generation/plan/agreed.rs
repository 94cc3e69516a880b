//! What a plan's file says, and the sizes that no plan has: its author may be anybody.

use serde::{Deserialize, Serialize};
use synchromesh::bgv::{Params, ParamsLiteral};

use super::super::encryption::Proofs;
use super::super::floor::Offer;
use super::Keys;

/// Triples of one shape.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Packed {
    pub(super) shape: String,
    /// Rows, inner side, columns and line of a block.
    pub(super) packing: [usize; 4],
    pub(super) grid: [usize; 2],
    pub(super) batch: usize,
}

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
    /// Other shapes under the same keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) more: Vec<Packed>,
    pub(super) window: usize,
    pub(super) params: ParamsLiteral,
}

impl Agreed {
    /// All shapes, the first one first.
    pub(super) fn packed(&self) -> Vec<Packed> {
        let (shape, packing, grid, batch) = (self.shape.clone(), self.packing, self.grid, self.batch);
        let first = Packed { shape, packing, grid, batch };
        std::iter::once(first).chain(self.more.iter().cloned()).collect()
    }

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
        } else if self.more.len() >= MOST_SHAPES {
            Err("it has too many shapes")
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

/// Most shapes.
const MOST_SHAPES: usize = 64;
