//! The keys of bootstrapping, and chains of primes for it.

use synchromesh_rlwe::ring::{Backend, Cpu};
use synchromesh_rlwe::{EvaluationKeys, Randomness, Schedule, SecretKey, Security, Source};

use super::sine::Sine;
use super::transform::Direction;
use super::view::element;
use super::{Bootstrap, BootstrapLiteral};
use crate::ckks::context::Context;
use crate::ckks::params::{Mode, ParamsLiteral};
use crate::error::{Error, Result};
use crate::rotations::Rotations;

/// Widest prime of a chain for bootstrapping, in bits.
const WIDEST: u32 = 60;

impl Bootstrap {
    /// The keys for multiplication, for these rotations and for bootstrapping.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::ParamsDiffer`], [`synchromesh_rlwe::Error::Entropy`] without randomness, or when the
    /// device fails.
    pub fn generate_keys<B: Backend>(
        &self,
        context: &Context<B>,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        let (params, rlwe) = (context.params(), context.rlwe());
        params.rlwe().require_digest(self.params.rlwe().digest())?;
        let mut elements: Vec<usize> = rotations.by.iter().map(|&k| context.galois_element(k)).collect();
        elements.extend(self.elements(context)?);
        elements.sort_unstable();
        elements.dedup();
        let sources = elements.into_iter().filter(|&g| g != 1).map(Source::Galois);
        let sources = [Source::Square].into_iter().chain(sources);
        let mut keys = EvaluationKeys::generate(rlwe, secret, sources, params.plan(), randomness)?;
        keys.add_raising(rlwe, secret, params.plan(), randomness)?;
        Ok(keys)
    }

    /// The Galois elements that bootstrapping switches keys for.
    fn elements<B: Backend>(&self, context: &Context<B>) -> Result<Vec<usize>> {
        let mut elements = vec![context.conjugation_element()];
        for direction in [Direction::SlotsToCoeffs, Direction::CoeffsToSlots] {
            for map in self.maps(direction)? {
                let rotations = map.rotations(map.baby_steps());
                elements.extend(rotations.by.iter().map(|&k| element(context, k)));
            }
        }
        Ok(elements)
    }
}

/// Parameters for bootstrapping by their sizes, the widths of primes worked out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chain {
    /// log2 of the ring degree.
    pub log_n: u32,
    /// log2 of the scale of the levels for the user.
    pub log_scale: u32,
    /// Levels for the user, between the input and the output of a refresh.
    pub usable: usize,
    /// Bits of level 0.
    pub base_bits: u32,
    /// log2 of the scale of SlotsToCoeffs' levels.
    pub log_scale_down: u32,
    /// log2 of the scale of the levels of EvalMod and CoeffsToSlots.
    pub log_scale_up: u32,
    /// Digits of a key switch.
    pub omega: usize,
    /// Coefficients of the sparse secret that are not 0.
    pub weight: usize,
    /// Required security.
    pub security: Security,
}

impl Chain {
    /// The parameters.
    ///
    /// # Errors
    /// [`Error::Params`] for choices that no polynomial is made of.
    pub fn literal(&self, bootstrap: &BootstrapLiteral) -> Result<ParamsLiteral> {
        let sine = Sine::new((1.0 + self.weight as f64) / 2.0, bootstrap.degree, bootstrap.doublings, 1.0)?;
        let inside = sine.depth::<Cpu>() + bootstrap.coeffs_to_slots;
        let mut log_scales = vec![self.log_scale_down; bootstrap.slots_to_coeffs + 1];
        log_scales.extend(std::iter::repeat_n(self.log_scale, self.usable));
        log_scales.extend(std::iter::repeat_n(self.log_scale_up, inside));
        let mut q_bits = split(self.base_bits);
        let mut level_limbs = vec![q_bits.len()];
        for pair in log_scales.windows(2) {
            let bits = (2 * pair[1]).checked_sub(pair[0]).filter(|&bits| bits >= 20);
            q_bits.extend(split(bits.ok_or_else(|| Error::params(format!("scales of {pair:?} bits do not follow")))?));
            level_limbs.push(q_bits.len());
        }
        let digit =
            q_bits.chunks(q_bits.len().div_ceil(self.omega.max(1))).map(|digit| digit.iter().sum::<u32>()).max();
        let special = digit.unwrap_or(0).div_ceil(WIDEST) as usize;
        Ok(ParamsLiteral {
            log_n: self.log_n,
            log_scale: self.log_scale,
            q_bits,
            p_bits: vec![WIDEST; special],
            level_limbs,
            schedule: Schedule::default().with_sparse_key(self.weight),
            omega: self.omega,
            log_scales,
            mode: Mode::Auto,
            security: self.security,
            primes: None,
        })
    }
}

/// Widths of as few primes as make up so many bits together.
fn split(bits: u32) -> Vec<u32> {
    let count = bits.div_ceil(WIDEST).max(1);
    (0..count).map(|i| (bits + i) / count).collect()
}
