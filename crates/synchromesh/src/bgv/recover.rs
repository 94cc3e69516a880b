//! The message of a phase: the centred residue mod Q, taken modulo t and divided by the correction factor.

use std::sync::OnceLock;

use num_bigint::BigUint;
use num_traits::One;
use synchromesh_rlwe::ring::rns::inverse_residues;
use synchromesh_rlwe::ring::{Backend, Coeff, Poly};
use zeroize::Zeroizing;

use super::management::Management;
use super::{Ciphertext, Context, Factor, Params};
use crate::batch::PlainPoly;
use crate::error::Result;
use crate::exact::{FixedPoint, Recompose, Weights};

/// Canonical factors of all levels, and the constants of decryption, made at a level's first use.
pub struct Tables {
    management: Management,
    canonical: Vec<Factor>,
    levels: Vec<OnceLock<Level>>,
}

/// Decryption at one level, up to the correction factor.
struct Level {
    fixed: FixedPoint,
    /// Q/q_j mod t for each prime, then -Q mod t.
    weights: Vec<BigUint>,
}

impl Tables {
    pub(super) fn new(params: &Params, management: Management) -> Result<Self> {
        let levels = (0..=params.top_level()).map(|_| OnceLock::new()).collect();
        Ok(Self { management, canonical: management.canonical(params)?, levels })
    }

    /// How factors and levels are chosen.
    pub(super) const fn management(&self) -> Management {
        self.management
    }

    /// The factor of fresh ciphertexts; `level` must exist.
    pub(super) fn canonical(&self, level: usize) -> &Factor {
        &self.canonical[level]
    }

    fn level(&self, params: &Params, level: usize) -> Result<&Level> {
        if let Some(made) = self.levels[level].get() {
            return Ok(made);
        }
        let made = Level::new(params, level)?;
        Ok(self.levels[level].get_or_init(|| made))
    }
}

impl Level {
    fn new(params: &Params, level: usize) -> Result<Self> {
        let (ring, primes, t) = (params.rlwe().ring(), params.rlwe().level(level)?, params.t().value());
        let q = ring.product(primes);
        let cofactors: Vec<BigUint> = primes.iter().map(|i| &q / ring.modulus(i).value()).collect();
        let mut prescale = Vec::with_capacity(primes.len());
        for (i, cofactor) in primes.iter().zip(&cofactors) {
            prescale.extend(inverse_residues(ring, &std::iter::once(i).collect(), cofactor)?);
        }
        let fixed = FixedPoint::new(ring, primes, Some(&prescale), &vec![1; primes.len()]);
        let minus_q = t - &q % t;
        Ok(Self { fixed, weights: cofactors.into_iter().map(|c| c % t).chain([minus_q]).collect() })
    }
}

/// \[phase\]_Q / f mod t.
pub(super) fn recover<B: Backend>(
    context: &Context<B>,
    ciphertext: &Ciphertext<B>,
    phase: &Poly<B, Coeff>,
) -> Result<PlainPoly> {
    let params = context.params();
    let t = params.t();
    let level = context.tables().level(params, ciphertext.level())?;
    let inverse = Factor::new(BigUint::one(), t.value()).over(ciphertext.header().value(), t.value());
    let weights = Weights::new(t, level.weights.iter().map(|w| w * inverse.value()));
    let words = Zeroizing::new(phase.to_words(context.backend())?);
    Recompose { fixed: &level.fixed, weights }.run(t, &words, params.n())
}
