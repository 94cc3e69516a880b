//! Chains of primes for bootstrapping, from the sizes of their levels.

use synchromesh_rlwe::ring::Cpu;
use synchromesh_rlwe::ring::kernels::NARROW_BITS;
use synchromesh_rlwe::{DigitSizes, NarrowChain, Schedule, Security};

use super::BootstrapLiteral;
use super::sine::Sine;
use crate::ckks::params::{Mode, ParamsLiteral};
use crate::error::{Error, Result};

/// Widest prime of a chain for bootstrapping, in bits.
pub(crate) const WIDEST: u32 = 60;

/// Widest prime that words are multiplied by at the speed of doubles or of the 52-bit multiplier, in bits, with a bit to spare.
pub(crate) const NARROW: u32 = NARROW_BITS - 1;

/// Narrowest prime among narrow ones, in bits: at the largest degrees there are few below.
const NARROWEST: u32 = 24;

/// What a wider one takes, in transforms, conversions and products by keys, of what a narrow one does, about.
const WIDE_WORK: f64 = 1.5;

/// Widest special prime beside the first, in bits.
const SPECIAL: u32 = NARROW_BITS;

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
    /// Widest prime of these levels, in bits: of up to 49, wider levels share narrow primes that leave and return
    /// ([`NarrowChain`]), if that is less work; of more, each level has primes of its own.
    pub widest: u32,
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
        let lowest = log_scales.len();
        self.literal_of(log_scales, lowest, bootstrap, eval_mod)
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
        let lowest = log_scales.len();
        log_scales.extend(std::iter::repeat_n(self.log_scale_down, bootstrap.slots_to_coeffs));
        self.literal_of(log_scales, lowest, bootstrap, sine.depth::<Cpu>())
    }

    /// With levels of these scales below EvalMod, of which the `lowest` have primes of their own.
    fn literal_of(
        &self,
        mut log_scales: Vec<u32>,
        lowest: usize,
        bootstrap: &BootstrapLiteral,
        eval_mod: usize,
    ) -> Result<ParamsLiteral> {
        log_scales.extend(std::iter::repeat_n(self.log_scale_up, eval_mod + bootstrap.coeffs_to_slots));
        let steps = log_scales.windows(2).map(|pair| {
            let bits = (2 * pair[1]).checked_sub(pair[0]).filter(|&bits| bits >= 20);
            bits.ok_or_else(|| Error::params(format!("scales of {pair:?} bits do not follow")))
        });
        let steps = steps.collect::<Result<Vec<_>>>()?;
        let (own, above) = steps.split_at(lowest - 1);
        let (mut q_bits, mut level_limbs) = (split(self.base_bits), Vec::new());
        level_limbs.push(q_bits.len());
        for &bits in own {
            q_bits.extend(split(bits));
            level_limbs.push(q_bits.len());
        }
        let mut schedule = Schedule::default();
        if let Some(narrow) = self.narrow(above) {
            let (below, count) = (std::mem::take(&mut level_limbs), q_bits.len());
            schedule.levels = below.into_iter().map(|limbs| (0..limbs).collect()).collect();
            // The lowest set is of the level below, which is there already.
            let shared = narrow.levels.iter().skip(1);
            schedule.levels.extend(shared.map(|set| (0..count).chain(set.iter().map(|i| count + i)).collect()));
            q_bits.extend(narrow.q_bits);
        } else {
            for &bits in above {
                q_bits.extend(split(bits));
                level_limbs.push(q_bits.len());
            }
        }
        let p_bits = special(&q_bits, self.omega)?;
        Ok(ParamsLiteral {
            log_n: self.log_n,
            log_scale: self.log_scale,
            q_bits,
            p_bits,
            level_limbs,
            schedule: schedule.with_sparse_key(self.weight),
            omega: self.omega,
            log_scales,
            mode: Mode::Auto,
            security: self.security,
            primes: None,
        })
    }

    /// Narrow primes for levels of so many bits, where they are asked for and less work than a wide one for each.
    fn narrow(&self, steps: &[u32]) -> Option<NarrowChain> {
        if self.widest > NARROW || steps.iter().all(|&bits| bits <= self.widest) {
            return None;
        }
        let narrow = NarrowChain::new(steps, self.widest, NARROWEST)?;
        let work = |bits: u32| if bits > NARROW { WIDE_WORK } else { 1.0 };
        let each = steps.iter().map(|&bits| split(bits).into_iter().map(work).sum::<f64>());
        // Each is there on its own level and all above it.
        let wide: f64 = each.enumerate().map(|(below, work)| work * (steps.len() - below) as f64).sum();
        ((narrow.work() as f64) < wide).then_some(narrow)
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
