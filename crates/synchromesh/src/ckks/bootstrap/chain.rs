//! Chains of primes for bootstrapping, from the sizes of their levels.

use synchromesh_rlwe::ring::Cpu;
use synchromesh_rlwe::{DigitSizes, Schedule, Security};

use super::BootstrapLiteral;
use super::sine::Sine;
use crate::ckks::params::{Mode, ParamsLiteral};
use crate::error::{Error, Result};

/// Widest prime of a chain for bootstrapping, in bits.
const WIDEST: u32 = 60;

/// Widest special prime beside the first, in bits.
const SPECIAL: u32 = 50;

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
        self.literal_with(bootstrap, sine.depth::<Cpu>())
    }

    /// As [`Self::literal`], with so many levels for EvalMod.
    pub(crate) fn literal_with(&self, bootstrap: &BootstrapLiteral, eval_mod: usize) -> Result<ParamsLiteral> {
        let mut log_scales = vec![self.log_scale_down; bootstrap.slots_to_coeffs + 1];
        log_scales.extend(std::iter::repeat_n(self.log_scale, self.usable));
        self.literal_of(log_scales, bootstrap, eval_mod)
    }

    /// As [`Self::literal`], for messages in coefficients: SlotsToCoeffs comes above the levels for the user. The sine may be
    /// straightened.
    ///
    /// # Errors
    /// As [`Self::literal`].
    pub(crate) fn literal_for_coefficients(
        &self,
        bootstrap: &BootstrapLiteral,
        arcsine: bool,
    ) -> Result<ParamsLiteral> {
        let sine = Sine::new((1.0 + self.weight as f64) / 2.0, bootstrap.degree, bootstrap.doublings, 1.0)?;
        let sine = sine.straightened(arcsine)?;
        let mut log_scales = vec![self.log_scale; self.usable + 1];
        log_scales.extend(std::iter::repeat_n(self.log_scale_down, bootstrap.slots_to_coeffs));
        self.literal_of(log_scales, bootstrap, sine.depth::<Cpu>())
    }

    /// With levels of these scales below EvalMod.
    fn literal_of(
        &self,
        mut log_scales: Vec<u32>,
        bootstrap: &BootstrapLiteral,
        eval_mod: usize,
    ) -> Result<ParamsLiteral> {
        log_scales.extend(std::iter::repeat_n(self.log_scale_up, eval_mod + bootstrap.coeffs_to_slots));
        let mut q_bits = split(self.base_bits);
        let mut level_limbs = vec![q_bits.len()];
        for pair in log_scales.windows(2) {
            let bits = (2 * pair[1]).checked_sub(pair[0]).filter(|&bits| bits >= 20);
            q_bits.extend(split(bits.ok_or_else(|| Error::params(format!("scales of {pair:?} bits do not follow")))?));
            level_limbs.push(q_bits.len());
        }
        let p_bits = special(&q_bits, self.omega)?;
        Ok(ParamsLiteral {
            log_n: self.log_n,
            log_scale: self.log_scale,
            q_bits,
            p_bits,
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
    spread(bits, bits.div_ceil(WIDEST).max(1))
}

/// So many bits in so many parts that differ by one at the most.
fn spread(bits: u32, count: u32) -> Vec<u32> {
    (0..count).map(|i| (bits + i) / count).collect()
}

/// Widths of the special primes for digits of these primes, as [`LevelPlans::of`] cuts them: together as wide as the widest
/// digit. The first is the special prime of the sparse key, which is to be as wide as level 0; the others fit the 52-bit
/// multiplier.
///
/// [`LevelPlans::of`]: synchromesh_rlwe::LevelPlans::of
fn special(q_bits: &[u32], omega: usize) -> Result<Vec<u32>> {
    let mut rest = q_bits;
    let mut widest = 0;
    for size in DigitSizes::balanced(q_bits, omega.clamp(1, q_bits.len()))?.0 {
        let (digit, after) = rest.split_at(size);
        widest = widest.max(digit.iter().sum::<u32>());
        rest = after;
    }
    let beside = widest.saturating_sub(WIDEST);
    let mut widths = vec![WIDEST];
    widths.extend(spread(beside, beside.div_ceil(SPECIAL)));
    Ok(widths)
}
