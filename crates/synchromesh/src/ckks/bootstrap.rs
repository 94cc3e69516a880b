//! Bootstrapping: a ciphertext with few levels left becomes one of the same message with many.
//!
//! The stages, in their order (ePrint 2018/153, 2022/024): **SlotsToCoeffs**, so that the message stands in the
//! coefficients of the phase; **ModRaise**, under a sparse secret, after which the phase is m + q I with small integers I;
//! **CoeffsToSlots**, which brings real and imaginary parts of m / q + I to the slots of two ciphertexts; **EvalMod**, a
//! sine, which takes I away. SlotsToCoeffs comes first, where it works on few limbs, and what EvalMod is off by is not
//! spread over all slots afterwards.
//!
//! The result has a certificate like that of any other operation. What approximations are off by is in it, bounded on
//! their intervals; |m / q + I| is at most (1 + h) / 2 whatever happens, h the weight of the sparse secret.

mod chain;
mod keys;
mod raise;
mod sine;
mod transform;
mod view;

use std::f64::consts::{SQRT_2, TAU};
use std::sync::Arc;

use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};
use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::noise::{LOG2_FAILURE_INSIDE, log2_add};
use synchromesh_rlwe::ring::{Backend, Cpu, Ntt};
use synchromesh_rlwe::{EvaluationKeys, Noise};

pub use chain::Chain;

use self::raise::Raise;
pub(crate) use self::sine::Sine;
use self::sine::{off_by, with_noise};
use self::transform::{Direction, ENTRY};
use self::view::View;
use super::ciphertext::Ciphertext;
use super::context::Context;
use super::evaluator::Evaluator;
use super::noise;
use super::params::Params;
use crate::circuits::{Arithmetic, LinearTransform, Pattern, PreparedTransform};
use crate::embedding::Complex64;
use crate::error::{Error, Result};

/// By how much a number worked out by a few products and quotients of doubles may be off, relatively.
const DOUBLES: f64 = 4.0 * f64::EPSILON;

/// How far a prime may be from a power of two, as log2.
const NEAR: f64 = 1.0 / 1024.0;

/// Largest degree of the cosine's polynomial, a little above what [`Sine::cheapest`] tries.
const MOST_DEGREE: usize = 128;

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
    /// No slot of a message to refresh exceeds this.
    pub message_bound: f64,
    /// log2 of what the modulus of level 0 is of the largest message, at the least: the sine is straight up to a relative
    /// error of 6.6 / 4^this.
    pub ratio_bits: u32,
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
    raise: Raise,
    sine: Sine,
    /// What CoeffsToSlots is multiplied by.
    up: f64,
    /// The level that EvalMod leaves.
    bent_level: usize,
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
        let up = highest.double.to_f64() / q / (2.0 * sine.reach);
        let [down, levels] = [literal.slots_to_coeffs, literal.coeffs_to_slots];
        let depth = sine.depth::<Cpu>();
        let layers = (log_n - 1) as usize;
        if down == 0 || levels == 0 || down.max(levels) > layers || top < levels + depth + down {
            return refuse(format!(
                "{down} levels for SlotsToCoeffs, {levels} for CoeffsToSlots (1 to {layers} each) and {depth} for EvalMod; \
                 there are {top}"
            ));
        }
        let bent_level = top - levels - depth;
        Ok(Self { literal, order, params: params.clone(), raise, sine, up, bent_level })
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
    pub const fn output_level(&self) -> usize {
        match self.order {
            Order::SlotsFirst => self.bent_level,
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
    pub const fn usable_levels(&self) -> usize {
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

    fn maps(&self, direction: Direction) -> Result<Vec<LinearTransform<Complex64>>> {
        let number = match direction {
            Direction::SlotsToCoeffs => 1.0,
            Direction::CoeffsToSlots => self.up,
        };
        let mut maps = transform::factors(self.params.slots(), direction, self.map_count(direction), number)?;
        if direction == Direction::SlotsToCoeffs {
            // What was in slots are the coefficients of a polynomial then, which the phase must have room for. Its values at
            // roots may be N / 2 times as large; nobody asks for them. Two coefficients, and errors, share a slot.
            let image = match self.order {
                Order::SlotsFirst => self.literal.message_bound * (1.0 + 1e-9),
                Order::CoefficientsFirst { .. } => 2.0 * self.literal.message_bound,
            };
            let last = maps.pop().map(|map| map.with_image(image));
            maps.extend(last);
        }
        Ok(maps)
    }

    /// The diagonals that the maps have.
    fn patterns(&self, direction: Direction) -> Vec<Pattern> {
        transform::patterns(self.params.slots(), direction, self.map_count(direction))
    }

    const fn map_count(&self, direction: Direction) -> usize {
        match direction {
            Direction::SlotsToCoeffs => self.literal.slots_to_coeffs,
            Direction::CoeffsToSlots => self.literal.coeffs_to_slots,
        }
    }
}

impl BootstrapLiteral {
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
    /// undone each of their layers makes slots at most twice as large.
    fn bound_after(&self, maps: usize) -> f64 {
        let count = self.literal.coeffs_to_slots;
        let layers = self.params.slots().trailing_zeros() as usize;
        let left = layers - transform::layers_before(layers, count, maps);
        // What becomes of real and imaginary part, 1 / 2 at the most each, before the number comes to it.
        let last = f64::sqrt(0.5) * (1.0 + 1e-9);
        if maps == count { last } else { last / self.up * (left as f64).exp2() }
    }
}

/// What CoeffsToSlots leaves: twice the real parts, twice the imaginary ones, and the error and scale of what they are of.
struct Slots<B: Backend> {
    parts: [Ciphertext<B>; 2],
    own: Noise,
    log2_scale: f64,
}

/// Refreshes ciphertexts; one may serve many threads.
pub struct Bootstrapper<B: Backend = Cpu> {
    view: View<B>,
    bootstrap: Bootstrap,
    down: Vec<PreparedTransform<View<B>>>,
    up: Vec<PreparedTransform<View<B>>>,
}

impl<B: Backend> Bootstrapper<B> {
    /// Prepares all public vectors; they stay in memory.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`], [`Error::MissingRotations`], or when the device fails.
    pub fn new(context: &Arc<Context<B>>, bootstrap: Bootstrap, keys: Arc<EvaluationKeys<B>>) -> Result<Self> {
        let params = context.params();
        params.rlwe().require_digest(bootstrap.params.rlwe().digest())?;
        let view = View(Evaluator::new(context, Some(keys)));
        let prepare = |direction| -> Result<Vec<_>> {
            let (maps, top) = (bootstrap.maps(direction)?, bootstrap.first_level(direction));
            let prepare = |(at, map): (usize, LinearTransform<Complex64>)| {
                map.prepare_with(&view, top - at, bootstrap.baby_steps(&map.pattern()))
            };
            maps.into_iter().enumerate().map(prepare).collect()
        };
        let [down, up] = [prepare(Direction::SlotsToCoeffs)?, prepare(Direction::CoeffsToSlots)?];
        Ok(Self { view, bootstrap, down, up })
    }

    /// What it does.
    #[must_use]
    pub const fn bootstrap(&self) -> &Bootstrap {
        &self.bootstrap
    }

    /// The evaluator with the keys it was made with.
    #[must_use]
    pub const fn evaluator(&self) -> &Evaluator<B> {
        &self.view.0
    }

    /// Bytes of the public vectors that are kept.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.down.iter().chain(&self.up).map(|map| map.bytes(self.bootstrap.params.n())).sum()
    }

    /// The same message at [`Bootstrap::output_level`], with its certificate.
    ///
    /// # Errors
    /// [`Error::MessageBound`] for a message that may be larger than was planned for, [`rlwe::Error::Level`] below
    /// [`Bootstrap::input_level`], [`rlwe::Error::Noise`] where its error is too large, [`rlwe::Error::MissingKey`], or when
    /// the device fails.
    pub fn refresh(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.refresh_watched(x, |_, _| ())
    }

    /// As [`Self::refresh`]; `done` is told each stage as it ends, and shown the ciphertexts that it made.
    ///
    /// # Errors
    /// As [`Self::refresh`].
    pub fn refresh_watched(
        &self,
        x: &Ciphertext<B>,
        mut done: impl FnMut(Stage, &[&Ciphertext<B>]),
    ) -> Result<Ciphertext<B>> {
        let (evaluator, most) = (&self.view.0, self.bootstrap.literal.message_bound);
        if x.bound() > most * (1.0 + 1e-9) {
            return Err(Error::MessageBound { have: x.bound(), most });
        }
        let low = evaluator.mod_switch_to(x, self.bootstrap.input_level())?;
        // Both transforms together are the identity, and the sine is straight: the error that x brings along is what it was,
        // a part of the message. Followed stage by stage it would grow.
        let (given, log2_scale) = (low.inner().noise(), low.log2_scale());
        let off = (noise::canonical(&self.bootstrap.params, given) - log2_scale).exp2();
        let low = with_noise(evaluator, low, rlwe::Operation::Refresh, |_| Noise::ZERO)?;
        let low = self.slots_to_coeffs(low, most)?;
        done(Stage::SlotsToCoeffs, &[&low]);
        let raised = self.bootstrap.raise.run(evaluator, &low)?;
        drop(low);
        done(Stage::ModRaise, &[&raised]);
        let slots = self.coeffs_to_slots(raised)?;
        done(Stage::CoeffsToSlots, &slots.parts.each_ref());
        let sum = self.eval_mod(&self.bootstrap.sine, slots, [most, most], off)?;
        let given = given.times(sum.log2_scale() - log2_scale);
        let refreshed = with_noise(evaluator, sum, rlwe::Operation::Refresh, |own| own.plus(given))?;
        done(Stage::EvalMod, &[&refreshed]);
        Ok(refreshed)
    }

    /// Of a phase modulo q_0, at level 0, with coefficients of at most `most` q_0, whatever they are made of: one at
    /// [`Bootstrap::output_level`] whose phase has 2 pi `size` S / q_0 times these, S the scale there, and log2 of what a
    /// coefficient of it is off by, at the failure probability of a bound that enters another.
    ///
    /// What EvalMod leaves in the slots are the coefficients of the result: what a slot is off by then, a coefficient is off
    /// by afterwards. SlotsToCoeffs runs as if there were no such error, and has its own.
    ///
    /// # Errors
    /// [`rlwe::Error::Level`] above level 0, [`rlwe::Error::MissingKey`], [`rlwe::Error::Noise`] where errors leave no room
    /// at some stage, or when the device fails.
    pub(crate) fn refresh_coefficients(
        &self,
        x: rlwe::Ciphertext<B, Ntt>,
        most: f64,
        size: f64,
    ) -> Result<(rlwe::Ciphertext<B, Ntt>, f64)> {
        let (evaluator, log_n) = (&self.view.0, self.bootstrap.params.log_n());
        let inside = |noise| noise::canonical_at(noise, log_n, LOG2_FAILURE_INSIDE);
        let sine = self.bootstrap.sine_of(size)?;
        let raised = self.bootstrap.raise.raised(evaluator, &x.assume_noise(Noise::ZERO))?;
        let slots = self.coeffs_to_slots(raised)?;
        let part = TAU * size * most * (1.0 + 1e-9);
        // Two coefficients share a slot.
        let sum = self.eval_mod(&sine, slots, [part, SQRT_2 * part], 0.0)?;
        let off = (inside(sum.inner().noise()) - sum.log2_scale()).exp2();
        let bound = SQRT_2 * part + off;
        let (inner, header) = sum.into_parts();
        let inner = inner.assume_noise(Noise::ZERO);
        let exact = Ciphertext::checked(evaluator.context(), rlwe::Operation::Copy, inner, header.scale, bound)?;
        let low = self.slots_to_coeffs(exact, bound)?;
        // The sine is as large as its doublings make it.
        let sizes = (sine.size() / size - 1.0).abs() + DOUBLES * f64::from(self.bootstrap.literal.doublings).exp2();
        let error = log2_add(inside(low.inner().noise()), low.log2_scale() + (off + sizes * part).log2());
        Ok((low.into_parts().0, error))
    }

    /// What is in the slots, at most `most`, in the coefficients.
    fn slots_to_coeffs(&self, mut x: Ciphertext<B>, most: f64) -> Result<Ciphertext<B>> {
        for map in &self.down {
            x = map.apply(&self.view, &x)?;
        }
        let entries = most * self.bootstrap.params.slots() as f64 * self.down.len() as f64 * ENTRY;
        off_by(&self.view.0, x, entries)
    }

    /// What is in the coefficients of a raised ciphertext in the slots of two, over what the sine reaches to.
    fn coeffs_to_slots(&self, mut raised: Ciphertext<B>) -> Result<Slots<B>> {
        let evaluator = &self.view.0;
        for (at, map) in self.up.iter().enumerate() {
            raised = map.apply(&self.view, &raised)?;
            let bound = raised.bound().min(self.bootstrap.bound_after(at + 1));
            raised = evaluator.declare_bound(raised, bound)?;
        }
        let entries = self.bootstrap.raise.bound * self.bootstrap.up * self.up.len() as f64 * ENTRY;
        let raised = off_by(evaluator, raised, entries + DOUBLES)?;
        let parts = self.parts(&raised)?;
        let (own, log2_scale) = (raised.inner().noise(), raised.log2_scale());
        Ok(Slots { parts, own, log2_scale })
    }

    /// The sine of both parts, and their sum: parts of at most the first bound, `off` apart, make slots of at most the second.
    fn eval_mod(&self, sine: &Sine, slots: Slots<B>, [part, whole]: [f64; 2], off: f64) -> Result<Ciphertext<B>> {
        let evaluator = &self.view.0;
        let Slots { parts, own, log2_scale } = slots;
        // With z off by e, and its conjugate as it is switched by f, the parts are off by e + f and i (f - e): together 2 e
        // where the sine is straight, and a little of each where it is not.
        let apart = parts.iter().map(|part| part.inner().noise()).fold(Noise::ZERO, Noise::plus);
        let most = part + off;
        let number = |slots| sine.straight(evaluator, sine.evaluate(evaluator, slots)?, most);
        let parts = evaluator.threads().try_map(Vec::from(parts), number)?;
        let [re, im] = <[Ciphertext<B>; 2]>::try_from(parts).map_err(|_| Error::argument("two parts are two"))?;
        let sum = evaluator.add(&re, &self.times_i(&im)?)?;
        // Both parts are bent as much at the most.
        let bend = SQRT_2 * sine.bend(most);
        let sum = off_by(evaluator, evaluator.declare_bound(sum, whole)?, bend)?;
        let error = own.times(1.0).plus(apart.times(sine.flatter(most).log2()));
        let carried = sine.carried(error, log2_scale, sum.log2_scale());
        with_noise(evaluator, sum, rlwe::Operation::Copy, |own| own.plus(carried))
    }

    /// Twice the real parts of all slots and twice the imaginary ones.
    fn parts(&self, x: &Ciphertext<B>) -> Result<[Ciphertext<B>; 2]> {
        let evaluator = &self.view.0;
        let conjugate = evaluator.conjugate(x)?;
        let (re, im) = (evaluator.add(x, &conjugate)?, evaluator.sub(&conjugate, x)?);
        // (conj z - z) i = 2 Im z.
        let im = self.times_i(&im)?;
        let bounded = |part| evaluator.declare_bound(part, 1.0);
        Ok([bounded(re)?, bounded(im)?])
    }

    /// x times i in every slot, as the view sees it.
    fn times_i(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.view.0.mul_monomial(x, (self.bootstrap.params.n() / 2) as i64)
    }
}
