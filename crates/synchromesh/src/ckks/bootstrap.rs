//! Bootstrapping: a ciphertext with few levels left becomes one of the same message with many.
//!
//! The stages, in their order (ePrint 2018/153, 2022/024): **SlotsToCoeffs**, so that the message stands in the
//! coefficients of the phase; **ModRaise**, under a sparse secret, after which the phase is m + q I with small integers I;
//! **CoeffsToSlots**, which brings real and imaginary parts of m / q + I to the slots of two ciphertexts; **EvalMod**, a
//! sine, which takes I away. SlotsToCoeffs comes first, where it works on few limbs, and what EvalMod is off by is not
//! spread over all slots afterwards.
//!
//! Where messages repeat after n slots, all of this is done to n slots (sparse slots): the transforms have fewer layers, the
//! sum of what ModRaise leaves and its rotations by n has no I but in the coefficients that messages use, and one sine does for
//! both parts of a number.
//!
//! The result has a certificate like that of any other operation. What approximations are off by is in it, bounded on
//! their intervals; |m / q + I| is at most (1 + h) / 2 whatever happens, h the weight of the sparse secret.

mod bootstrapper;
mod chain;
mod keys;
mod raise;
mod rounds;
mod sine;
mod transform;
mod view;

use std::sync::Arc;

use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};
use synchromesh_rlwe::ring::Cpu;

pub use bootstrapper::Bootstrapper;
pub use chain::Chain;
pub(crate) use chain::{NARROW, WIDEST};

use self::raise::Raise;
pub(crate) use self::sine::Sine;
pub(crate) use self::transform::Transforms;
use self::transform::{Direction, Extent, Maps};
use super::params::Params;
use crate::circuits::{LinearTransform, Pattern, SlotSum};
use crate::embedding::Complex64;
use crate::error::{Error, Result};

/// By how much a number worked out by a few products and quotients of doubles may be off, relatively.
const DOUBLES: f64 = 4.0 * f64::EPSILON;

/// How far a prime may be from a power of two, as log2.
const NEAR: f64 = 1.0 / 1024.0;

/// Largest degree of the cosine's polynomial, a little above what [`Sine::cheapest`] tries.
const MOST_DEGREE: usize = 128;

/// Rounds of a refresh, at most.
const MOST_ROUNDS: u32 = 8;

/// What bootstrapping does, as choices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootstrapLiteral {
    /// Levels of SlotsToCoeffs, the lowest there are: maps that the transform is the product of.
    pub slots_to_coeffs: usize,
    /// Levels of CoeffsToSlots, the highest there are.
    pub coeffs_to_slots: usize,
    /// Baby steps of each map, a power of two: fewer of them need fewer keys and take longer; none: as many as are fastest.
    #[serde(default)]
    pub baby_steps: Option<usize>,
    /// Degree of the cosine's polynomial, even.
    pub degree: usize,
    /// Doublings of its angle.
    pub doublings: u32,
    /// What slots of messages may be.
    #[serde(default)]
    pub messages: Messages,
    /// Slots after which messages repeat, a power of two from 2: fewer of them take less time and fewer keys. Of a message that
    /// does not repeat, the mean over its periods is what is left. None: all slots.
    #[serde(default)]
    pub slots: Option<usize>,
    /// No slot of a message to refresh exceeds this.
    pub message_bound: f64,
    /// log2 of what the modulus of level 0 is of the largest message, at the least: the sine is straight up to a relative
    /// error of 6.6 / 4^this.
    pub ratio_bits: u32,
    /// Rounds of a refresh, for more precision: each but the first refreshes what the one before was off by, made as large as a
    /// message may be (ePrint 2022/1167). More than one take a level.
    #[serde(default = "one")]
    pub rounds: u32,
}

/// Rounds where nothing is said of them.
pub(crate) const fn one() -> u32 {
    1
}

/// What slots of messages may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Messages {
    /// Complex numbers: EvalMod has two sines, of real and imaginary parts.
    #[default]
    Complex,
    /// Real numbers: EvalMod has one. The imaginary part of what is refreshed nevertheless is gone afterwards.
    Real,
}

impl Messages {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complex => "complex",
            Self::Real => "real",
        }
    }
}

/// A stage of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The message comes to the coefficients.
    SlotsToCoeffs,
    /// From the smallest modulus to the largest, under the sparse secret and back.
    ModRaise,
    /// The coefficients come to the slots of two ciphertexts.
    CoeffsToSlots,
    /// The sine of both, and their sum.
    EvalMod,
}

impl Stage {
    /// All, in their order.
    pub const ALL: [Self; 4] = [Self::SlotsToCoeffs, Self::ModRaise, Self::CoeffsToSlots, Self::EvalMod];

    /// Its name, as in the papers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlotsToCoeffs => "SlotsToCoeffs",
            Self::ModRaise => "ModRaise",
            Self::CoeffsToSlots => "CoeffsToSlots",
            Self::EvalMod => "EvalMod",
        }
    }
}

/// The order of the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// SlotsToCoeffs first, on the lowest levels: of a message in slots.
    SlotsFirst,
    /// ModRaise first, on level 0, and SlotsToCoeffs last, above the levels for the user: of a message in coefficients.
    CoefficientsFirst {
        /// Whether the sine is straightened.
        arcsine: bool,
    },
}

impl Order {
    const fn arcsine(self) -> bool {
        matches!(self, Self::CoefficientsFirst { arcsine: true })
    }
}

/// Bootstrapping at some parameters.
#[derive(Debug, Clone)]
pub struct Bootstrap {
    literal: BootstrapLiteral,
    order: Order,
    params: Params,
    extent: Extent,
    raise: Raise,
    sine: Sine,
    /// What CoeffsToSlots is multiplied by.
    up: f64,
    /// The level that EvalMod leaves.
    bent_level: usize,
    /// Where others share its transforms: else they are made for each that asks, and nobody keeps them.
    transforms: Option<Arc<Transforms>>,
}

impl Bootstrap {
    /// Checks the choices against parameters: they need a sparse secret key, and levels for each stage.
    ///
    /// # Errors
    /// [`Error::Params`].
    pub fn new(params: &Params, literal: BootstrapLiteral) -> Result<Self> {
        Self::ordered(params, literal, Order::SlotsFirst)
    }

    /// As [`Self::new`], of messages in coefficients: of these, `ratio_bits` is what the modulus of level 0 is of the largest,
    /// and the message bound says how large they are in slots, as the sine leaves them.
    ///
    /// # Errors
    /// [`Error::Params`].
    pub(crate) fn ordered(params: &Params, literal: BootstrapLiteral, order: Order) -> Result<Self> {
        let refuse = |reason: String| Err(Error::params(reason));
        let Some(sparse) = params.rlwe().sparse() else {
            return refuse("bootstrapping needs a sparse secret key: name its weight in the schedule".to_owned());
        };
        if params.rlwe().second().is_some() {
            return refuse("bootstrapping and a second secret key for lower levels do not go together".to_owned());
        }
        literal.check()?;
        let extent = literal.extent(params.slots())?;
        if order != Order::SlotsFirst && extent.copies() > 1 {
            return refuse("messages in coefficients have all slots: none repeat".to_owned());
        }
        let (top, log_n) = (params.top_level(), params.log_n());
        let highest = params.at(top)?;
        let log2_q = params.rlwe().ring().log2(&sparse.q);
        let q = params.rlwe().ring().product(&sparse.q).to_f64().unwrap_or(f64::INFINITY);
        let (multiple, q_of_message) = match order {
            Order::SlotsFirst => {
                let multiple = literal.multiple(params, log2_q)?;
                (multiple, q / params.at(0)?.double.to_f64() / multiple as f64)
            }
            Order::CoefficientsFirst { .. } => (1, literal.message_bound * f64::from(literal.ratio_bits).exp2()),
        };
        let weight = sparse.weight;
        // All that the components can be, and what rounding in doubles makes of it.
        let most = (1.0 + weight as f64) / 2.0;
        let sine = Sine::new(most, literal.degree, literal.doublings, Sine::size_for(q_of_message))?;
        let sine = sine.straightened(order.arcsine())?;
        let raised = (log2_q + raise::log2_overflow(log_n, weight) - highest.log2).exp2();
        let raise = Raise { multiple, bound: raised };
        // Slots come as S t q / S: half of the sum with the conjugate over q and what the sine reaches to.
        let up = highest.double.to_f64() / q / (2.0 * sine.reach) / extent.copies() as f64;
        let [down, levels] = [literal.slots_to_coeffs, literal.coeffs_to_slots];
        let depth = sine.depth::<Cpu>() + literal.levels_after(extent.slots);
        let layers = extent.period.trailing_zeros() as usize;
        if down == 0 || levels == 0 || down.max(levels) > layers || top < levels + depth + down {
            return refuse(format!(
                "{down} levels for SlotsToCoeffs, {levels} for CoeffsToSlots (1 to {layers} each) and {depth} for EvalMod; \
                 there are {top}"
            ));
        }
        let bent_level = top - levels - sine.depth::<Cpu>();
        let params = params.clone();
        Ok(Self { literal, order, params, extent, raise, sine, up, bent_level, transforms: None })
    }

    /// The same, with transforms that are shared.
    pub(crate) fn sharing(self, transforms: &Arc<Transforms>) -> Self {
        Self { transforms: Some(Arc::clone(transforms)), ..self }
    }

    /// The parameters it is for.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// The choices.
    #[must_use]
    pub const fn literal(&self) -> &BootstrapLiteral {
        &self.literal
    }

    /// The level of refreshed ciphertexts.
    #[must_use]
    pub fn output_level(&self) -> usize {
        match self.order {
            Order::SlotsFirst => self.bent_level - self.literal.levels_after(self.extent.slots),
            Order::CoefficientsFirst { .. } => self.bent_level - self.literal.slots_to_coeffs,
        }
    }

    /// The lowest level that a ciphertext may have to be refreshed.
    #[must_use]
    pub const fn input_level(&self) -> usize {
        match self.order {
            Order::SlotsFirst => self.literal.slots_to_coeffs,
            Order::CoefficientsFirst { .. } => 0,
        }
    }

    /// Levels between, for the user.
    #[must_use]
    pub fn usable_levels(&self) -> usize {
        self.output_level() - self.input_level()
    }

    /// The level that a transform begins at.
    fn first_level(&self, direction: Direction) -> usize {
        match (direction, self.order) {
            (Direction::CoeffsToSlots, _) => self.params.top_level(),
            (Direction::SlotsToCoeffs, Order::SlotsFirst) => self.input_level(),
            (Direction::SlotsToCoeffs, Order::CoefficientsFirst { .. }) => self.bent_level,
        }
    }

    /// The sine of another size.
    fn sine_of(&self, size: f64) -> Result<Sine> {
        let most = self.params.rlwe().sparse().map_or(0, |sparse| sparse.weight);
        let sine = Sine::new((1.0 + most as f64) / 2.0, self.literal.degree, self.literal.doublings, size)?;
        sine.straightened(self.order.arcsine())
    }

    /// Baby steps of a map.
    fn baby_steps(&self, map: &Pattern) -> usize {
        self.literal.baby_steps.unwrap_or_else(|| map.baby_steps())
    }

    /// The maps of a transform, the first to be applied first.
    fn maps(&self, direction: Direction) -> Result<Maps> {
        let count = self.map_count(direction);
        let mut maps = match &self.transforms {
            Some(made) => made.maps(self.extent, direction, count)?,
            None => Transforms::default().maps(self.extent, direction, count)?,
        };
        let last = maps.pop().map(|map| self.last(direction, Arc::unwrap_or_clone(map)));
        maps.extend(last.map(Arc::new));
        Ok(maps)
    }

    /// The last map of a transform, from one that does nothing more.
    fn last(&self, direction: Direction, map: LinearTransform<Complex64>) -> LinearTransform<Complex64> {
        match direction {
            // What makes slots smaller makes smaller what the maps before have rounded.
            Direction::CoeffsToSlots => map.times(self.up),
            // What was in slots are the coefficients of a polynomial then, which the phase must have room for. Its values at
            // roots may be N / 2 times as large; nobody asks for them. Two coefficients, and errors, share a slot.
            Direction::SlotsToCoeffs => map.with_image(match self.order {
                Order::SlotsFirst => self.literal.message_bound * (1.0 + 1e-9),
                Order::CoefficientsFirst { .. } => 2.0 * self.literal.message_bound,
            }),
        }
    }

    /// The diagonals that the maps have.
    fn patterns(&self, direction: Direction) -> Vec<Pattern> {
        transform::patterns(self.extent, direction, self.map_count(direction))
    }

    /// The sum over all periods of messages that repeat.
    const fn over_periods(&self) -> SlotSum {
        SlotSum::new(self.extent.copies()).stride(self.extent.period as i64)
    }

    /// What puts both parts of numbers together where one sine was of both.
    fn unpacking(&self) -> Result<Option<LinearTransform<Complex64>>> {
        let map = self.extent.packed.then(|| transform::unpacking(self.extent)).transpose()?;
        Ok(map.map(|map| map.with_image(self.literal.message_bound)))
    }

    const fn map_count(&self, direction: Direction) -> usize {
        match direction {
            Direction::SlotsToCoeffs => self.literal.slots_to_coeffs,
            Direction::CoeffsToSlots => self.literal.coeffs_to_slots,
        }
    }
}

impl BootstrapLiteral {
    /// The slots that messages have, of all there are.
    fn extent(&self, slots: usize) -> Result<Extent> {
        let period = self.slots.unwrap_or(slots);
        if !(period.is_power_of_two() && (2..=slots).contains(&period)) {
            return Err(Error::params(format!(
                "messages that repeat after {period} slots: a power of two from 2 to {slots} is needed"
            )));
        }
        Ok(Extent { slots, period, packed: self.is_packed(slots) })
    }

    /// Whether one sine is of both parts of numbers: where messages that are not real repeat.
    fn is_packed(&self, slots: usize) -> bool {
        self.messages == Messages::Complex && self.slots.is_some_and(|period| period < slots)
    }

    /// Levels between EvalMod and the result: of the sum of rounds, and of parts that are put together.
    pub(crate) fn levels_after(&self, slots: usize) -> usize {
        usize::from(self.rounds > 1) + usize::from(self.is_packed(slots))
    }

    /// Every number within its range.
    fn check(&self) -> Result<()> {
        let bound = self.message_bound;
        let even = (2..=MOST_DEGREE).contains(&self.degree) && self.degree.is_multiple_of(2);
        if !(bound.is_finite() && bound > 0.0 && even && self.doublings <= 8) {
            return Err(Error::params(format!(
                "a message bound of {bound}, degree {} and {} doublings: a positive number, an even degree from 2 to \
                 {MOST_DEGREE} and at most 8 doublings are needed",
                self.degree, self.doublings
            )));
        }
        if !(1..=MOST_ROUNDS).contains(&self.rounds) {
            return Err(Error::params(format!("{} rounds of a refresh: from 1 to {MOST_ROUNDS}", self.rounds)));
        }
        if self.baby_steps.is_some_and(|count| !count.is_power_of_two()) {
            return Err(Error::params(format!("{:?} baby steps: a power of two is needed", self.baby_steps)));
        }
        Ok(())
    }

    /// The power of two that messages of level 0, of 2^`log2_q`, are multiplied by: as large as the ratio leaves room for.
    fn multiple(&self, params: &Params, log2_q: f64) -> Result<u64> {
        // log2 of what q is of the largest message.
        let ratio = log2_q - params.at(0)?.log2 - self.message_bound.log2();
        let spare = ratio - f64::from(self.ratio_bits);
        if spare < -NEAR {
            return Err(Error::params(format!(
                "level 0 has {log2_q:.1} bits, {ratio:.1} above the largest message; {} are asked for",
                self.ratio_bits
            )));
        }
        Ok(1u64 << (spare.max(0.0).floor() as u32).min(40))
    }
}

impl Bootstrap {
    /// No slot is larger after so many maps of CoeffsToSlots: the maps that are left take it to a slot of known size, and
    /// undone each of their layers makes slots at most twice as large. What was summed over periods is as many times as large
    /// until the last map undoes that.
    fn bound_after(&self, maps: usize) -> f64 {
        let count = self.literal.coeffs_to_slots;
        let layers = self.extent.period.trailing_zeros() as usize;
        let left = layers - transform::layers_before(layers, count, maps);
        // What becomes of real and imaginary part, 1 / 2 at the most each, before the number comes to it.
        let last = f64::sqrt(0.5) * (1.0 + 1e-9);
        if maps == count { last } else { last / self.up * (left as f64).exp2() }
    }
}
