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

use std::sync::Arc;

use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};
use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::ring::{Backend, Cpu};
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

/// Bootstrapping at some parameters.
#[derive(Debug, Clone)]
pub struct Bootstrap {
    literal: BootstrapLiteral,
    params: Params,
    raise: Raise,
    sine: Sine,
    /// What CoeffsToSlots is multiplied by.
    up: f64,
    output_level: usize,
}

impl Bootstrap {
    /// Checks the choices against parameters: they need a sparse secret key, and levels for each stage.
    ///
    /// # Errors
    /// [`Error::Params`].
    pub fn new(params: &Params, literal: BootstrapLiteral) -> Result<Self> {
        let refuse = |reason: String| Err(Error::params(reason));
        let Some(sparse) = params.rlwe().sparse() else {
            return refuse("bootstrapping needs a sparse secret key: name its weight in the schedule".to_owned());
        };
        if params.rlwe().second().is_some() {
            return refuse("bootstrapping and a second secret key for lower levels do not go together".to_owned());
        }
        let bound = literal.message_bound;
        let even = (2..=MOST_DEGREE).contains(&literal.degree) && literal.degree.is_multiple_of(2);
        if !(bound.is_finite() && bound > 0.0 && even && literal.doublings <= 8) {
            return refuse(format!(
                "a message bound of {bound}, degree {} and {} doublings: a positive number, an even degree from 2 to \
                 {MOST_DEGREE} and at most 8 doublings are needed",
                literal.degree, literal.doublings
            ));
        }
        if literal.baby_steps.is_some_and(|count| !count.is_power_of_two()) {
            return refuse(format!("{:?} baby steps: a power of two is needed", literal.baby_steps));
        }
        let (top, log_n) = (params.top_level(), params.log_n());
        let (lowest, highest) = (params.at(0)?, params.at(top)?);
        let log2_q = params.rlwe().ring().log2(&sparse.q);
        // log2 of what q is of the largest message.
        let ratio = log2_q - lowest.log2 - bound.log2();
        let spare = ratio - f64::from(literal.ratio_bits);
        if spare < -NEAR {
            return refuse(format!(
                "level 0 has {log2_q:.1} bits, {ratio:.1} above the largest message; {} are asked for",
                literal.ratio_bits
            ));
        }
        let multiple = 1u64 << (spare.max(0.0).floor() as u32).min(40);
        let weight = sparse.weight;
        // All that the components can be, and what rounding in doubles makes of it.
        let most = (1.0 + weight as f64) / 2.0;
        let q = params.rlwe().ring().product(&sparse.q).to_f64().unwrap_or(f64::INFINITY);
        let q_of_message = q / lowest.double.to_f64() / multiple as f64;
        let sine = Sine::new(most, literal.degree, literal.doublings, Sine::size_for(q_of_message))?;
        let raised = (log2_q + raise::log2_overflow(log_n, weight) - highest.log2).exp2();
        let raise = Raise { multiple, bound: raised };
        // Slots come as S t q / S: half of the sum with the conjugate over q and what the sine reaches to.
        let up = highest.double.to_f64() / q / (2.0 * sine.reach);
        let [down, levels] = [literal.slots_to_coeffs, literal.coeffs_to_slots];
        let taken = levels + sine.depth::<Cpu>();
        let layers = (log_n - 1) as usize;
        if down == 0 || levels == 0 || down.max(levels) > layers || top < taken + down {
            return refuse(format!(
                "{down} levels for SlotsToCoeffs, {levels} for CoeffsToSlots (1 to {layers} each) and {} for EvalMod; \
                 there are {top}",
                sine.depth::<Cpu>()
            ));
        }
        Ok(Self { literal, params: params.clone(), raise, sine, up, output_level: top - taken })
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
        self.output_level
    }

    /// The lowest level that a ciphertext may have to be refreshed.
    #[must_use]
    pub const fn input_level(&self) -> usize {
        self.literal.slots_to_coeffs
    }

    /// Levels between, for the user.
    #[must_use]
    pub const fn usable_levels(&self) -> usize {
        self.output_level - self.literal.slots_to_coeffs
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
            // roots may be N / 2 times as large; nobody asks for them.
            let last = maps.pop().map(|map| map.with_image(self.literal.message_bound * (1.0 + 1e-9)));
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
        let prepare = |direction, top: usize| -> Result<Vec<_>> {
            let maps = bootstrap.maps(direction)?;
            let prepare = |(at, map): (usize, LinearTransform<Complex64>)| {
                map.prepare_with(&view, top - at, bootstrap.baby_steps(&map.pattern()))
            };
            maps.into_iter().enumerate().map(prepare).collect()
        };
        let down = prepare(Direction::SlotsToCoeffs, bootstrap.input_level())?;
        let up = prepare(Direction::CoeffsToSlots, params.top_level())?;
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
        let mut low = with_noise(evaluator, low, rlwe::Operation::Refresh, |_| Noise::ZERO)?;
        for map in &self.down {
            low = map.apply(&self.view, &low)?;
        }
        let beside = most * self.bootstrap.params.slots() as f64 * self.down.len() as f64 * ENTRY;
        let low = off_by(evaluator, low, beside)?;
        done(Stage::SlotsToCoeffs, &[&low]);
        let mut raised = self.bootstrap.raise.run(evaluator, &low)?;
        drop(low);
        done(Stage::ModRaise, &[&raised]);
        for (at, map) in self.up.iter().enumerate() {
            raised = map.apply(&self.view, &raised)?;
            let bound = raised.bound().min(self.bootstrap.bound_after(at + 1));
            raised = evaluator.declare_bound(raised, bound)?;
        }
        let entries = self.bootstrap.raise.bound * self.bootstrap.up * self.up.len() as f64 * ENTRY;
        let raised = off_by(evaluator, raised, entries + DOUBLES)?;
        let parts = self.parts(&raised)?;
        // With z off by e, and its conjugate as it is switched by f, the parts are off by e + f and i (f - e): together 2 e
        // where the sine is straight, and a little of each where it is not.
        let (own, scale) = (raised.inner().noise(), raised.log2_scale());
        let apart = parts.iter().map(|part| part.inner().noise()).fold(Noise::ZERO, Noise::plus);
        drop(raised);
        done(Stage::CoeffsToSlots, &parts.each_ref());
        let bent = &self.bootstrap.sine;
        let sine = |part| bent.evaluate(evaluator, part);
        let parts = evaluator.threads().try_map(Vec::from(parts), sine)?;
        let [re, im] = <[Ciphertext<B>; 2]>::try_from(parts).map_err(|_| Error::argument("two parts are two"))?;
        let sum = evaluator.add(&re, &self.times_i(&im)?)?;
        // Both parts are bent as much at the most.
        let bend = 2f64.sqrt() * bent.bend(most + off);
        let sum = off_by(evaluator, evaluator.declare_bound(sum, most)?, bend)?;
        let to = sum.log2_scale();
        let carried = bent.carried(own.times(1.0).plus(apart.times(bent.flatter(most + off).log2())), scale, to);
        let given = given.times(to - log2_scale).plus(carried);
        let refreshed = with_noise(evaluator, sum, rlwe::Operation::Refresh, |own| own.plus(given))?;
        done(Stage::EvalMod, &[&refreshed]);
        Ok(refreshed)
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
