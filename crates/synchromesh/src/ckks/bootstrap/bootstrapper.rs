//! Refreshes as they are carried out: the stages one after the other, each with its part of the certificate.

use std::f64::consts::{SQRT_2, TAU};
use std::sync::Arc;

use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::noise::{LOG2_FAILURE_INSIDE, log2_add};
use synchromesh_rlwe::ring::{Backend, Cpu, Ntt};
use synchromesh_rlwe::{EvaluationKeys, Noise};

use super::sine::{Sine, off_by, with_noise};
use super::transform::{Direction, ENTRY};
use super::view::View;
use super::{Bootstrap, BootstrapLiteral, DOUBLES, Messages, Stage};
use crate::circuits::{Arithmetic, LinearTransform, PreparedTransform};
use crate::ckks::ciphertext::Ciphertext;
use crate::ckks::context::Context;
use crate::ckks::evaluator::Evaluator;
use crate::ckks::noise;
use crate::embedding::Complex64;
use crate::error::{Error, Result};

/// What CoeffsToSlots leaves: twice the real parts, twice the imaginary ones where these are asked for, and the error and scale
/// of what they are of.
struct Slots<B: Backend> {
    parts: Vec<Ciphertext<B>>,
    own: Noise,
    log2_scale: f64,
}

/// A message at the lowest level that is refreshed, as if it had no error, and that.
///
/// Both transforms together are the identity, and the sine is straight: the error that a message brings along is what it was,
/// a part of the message. Followed stage by stage it would grow.
struct Input<B: Backend> {
    low: Ciphertext<B>,
    given: Given,
    /// What a slot is off by.
    off: f64,
}

/// The error of a message, and log2 of the scale.
#[derive(Debug, Clone, Copy)]
struct Given {
    noise: Noise,
    log2_scale: f64,
}

impl<B: Backend> Input<B> {
    fn new(evaluator: &Evaluator<B>, low: Ciphertext<B>) -> Result<Self> {
        let given = Given { noise: low.inner().noise(), log2_scale: low.log2_scale() };
        let off = (noise::canonical(evaluator.context().params(), given.noise) - given.log2_scale).exp2();
        let low = with_noise(evaluator, low, rlwe::Operation::Refresh, |_| Noise::ZERO)?;
        Ok(Self { low, given, off })
    }
}

impl Given {
    /// What was made of the message, with its error.
    fn onto<B: Backend>(self, evaluator: &Evaluator<B>, made: Ciphertext<B>) -> Result<Ciphertext<B>> {
        let given = self.noise.times(made.log2_scale() - self.log2_scale);
        with_noise(evaluator, made, rlwe::Operation::Refresh, |own| own.plus(given))
    }
}

/// Refreshes ciphertexts; one may serve many threads.
pub struct Bootstrapper<B: Backend = Cpu> {
    view: View<B>,
    bootstrap: Bootstrap,
    down: Vec<PreparedTransform<View<B>>>,
    up: Vec<PreparedTransform<View<B>>>,
    /// Where one sine is of both parts of numbers.
    unpacking: Option<PreparedTransform<View<B>>>,
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
            let prepare = |(at, map): (usize, Arc<LinearTransform<Complex64>>)| {
                map.prepare_with(&view, top - at, bootstrap.baby_steps(&map.pattern()))
            };
            maps.into_iter().enumerate().map(prepare).collect()
        };
        let [down, up] = [prepare(Direction::SlotsToCoeffs)?, prepare(Direction::CoeffsToSlots)?];
        let unpacking = bootstrap.unpacking()?;
        let unpacking = unpacking.map(|map| map.prepare(&view, bootstrap.bent_level)).transpose()?;
        Ok(Self { view, bootstrap, down, up, unpacking })
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
        self.down.iter().chain(&self.up).chain(&self.unpacking).map(|map| map.bytes(self.bootstrap.params.n())).sum()
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

    /// As [`Self::refresh`]; `done` is told each stage as it ends, in each round, and shown the ciphertexts that it made.
    ///
    /// # Errors
    /// As [`Self::refresh`].
    pub fn refresh_watched(
        &self,
        x: &Ciphertext<B>,
        mut done: impl FnMut(Stage, &[&Ciphertext<B>]),
    ) -> Result<Ciphertext<B>> {
        let [refreshed] = self.in_rounds([x], self.bootstrap.literal.messages, |[x]| Ok([self.once(x, &mut done)?]))?;
        Ok(refreshed)
    }

    /// Two messages with real slots in little more time than one: as one whose slots are x + i y. What x and y are off by is
    /// the error of both. An imaginary part of one would be taken for something of the other.
    ///
    /// # Errors
    /// As [`Self::refresh`].
    pub fn refresh_pair(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<[Ciphertext<B>; 2]> {
        self.in_rounds([x, y], Messages::Real, |[x, y]| self.pair_once(x, y))
    }

    /// A round.
    fn once(&self, x: &Ciphertext<B>, done: &mut impl FnMut(Stage, &[&Ciphertext<B>])) -> Result<Ciphertext<B>> {
        let BootstrapLiteral { messages, message_bound: most, .. } = self.bootstrap.literal;
        let input = Input::new(&self.view.0, self.lowered(x)?)?;
        let slots = self.slots(input.low, messages, most, done)?;
        let sine = &self.bootstrap.sine;
        let made = if let Some(unpacking) = &self.unpacking {
            let [both] = self.eval_parts(slots, most, input.off)?;
            unpacking.apply(&self.view, &both)?
        } else if messages == Messages::Real {
            let [real] = self.eval_parts(slots, most, input.off)?;
            real
        } else {
            self.eval_mod(sine, slots, [most, most], input.off)?
        };
        let refreshed = input.given.onto(&self.view.0, made)?;
        done(Stage::EvalMod, &[&refreshed]);
        Ok(refreshed)
    }

    fn pair_once(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<[Ciphertext<B>; 2]> {
        if self.unpacking.is_some() {
            // One sine is of both parts of either.
            return Ok([self.once(x, &mut |_, _| ())?, self.once(y, &mut |_, _| ())?]);
        }
        let (evaluator, most) = (&self.view.0, self.bootstrap.literal.message_bound);
        let both = evaluator.add(&self.lowered(x)?, &self.times_i(&self.lowered(y)?)?)?;
        let input = Input::new(evaluator, evaluator.declare_bound(both, SQRT_2 * most)?)?;
        let slots = self.slots(input.low, Messages::Complex, SQRT_2 * most, &mut |_, _| ())?;
        let [x, y] = self.eval_parts(slots, most, input.off)?;
        Ok([input.given.onto(evaluator, x)?, input.given.onto(evaluator, y)?])
    }

    /// At the lowest level that is refreshed, if it is not too large.
    fn lowered(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        let most = self.bootstrap.literal.message_bound;
        if x.bound() > most * (1.0 + 1e-9) {
            return Err(Error::MessageBound { have: x.bound(), most });
        }
        self.view.0.mod_switch_to(x, self.bootstrap.input_level())
    }

    /// The stages up to CoeffsToSlots, of slots of at most `most`.
    fn slots(
        &self,
        low: Ciphertext<B>,
        messages: Messages,
        most: f64,
        done: &mut impl FnMut(Stage, &[&Ciphertext<B>]),
    ) -> Result<Slots<B>> {
        let low = self.slots_to_coeffs(low, most)?;
        done(Stage::SlotsToCoeffs, &[&low]);
        let raised = self.bootstrap.raise.run(&self.view.0, &low)?;
        drop(low);
        done(Stage::ModRaise, &[&raised]);
        let slots = self.coeffs_to_slots(raised, messages)?;
        done(Stage::CoeffsToSlots, &slots.parts.iter().collect::<Vec<_>>());
        Ok(slots)
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
        let slots = self.coeffs_to_slots(raised, Messages::Complex)?;
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

    /// What is in the coefficients of a raised ciphertext in the slots of two, over what the sine reaches to; in those of one
    /// where that has room for both.
    fn coeffs_to_slots(&self, mut raised: Ciphertext<B>, messages: Messages) -> Result<Slots<B>> {
        let evaluator = &self.view.0;
        let copies;
        (raised, copies) = self.sum_over_periods(&raised)?;
        for (at, map) in self.up.iter().enumerate() {
            raised = map.apply(&self.view, &raised)?;
            let bound = raised.bound().min(self.bootstrap.bound_after(at + 1));
            raised = evaluator.declare_bound(raised, bound)?;
        }
        let entries = self.bootstrap.raise.bound * copies * self.bootstrap.up * self.up.len() as f64 * ENTRY;
        let raised = off_by(evaluator, raised, entries + DOUBLES)?;
        let messages = if self.unpacking.is_some() { Messages::Real } else { messages };
        let parts = self.parts(&raised, messages)?;
        let (own, log2_scale) = (raised.inner().noise(), raised.log2_scale());
        Ok(Slots { parts, own, log2_scale })
    }

    /// The sum over all periods of messages that repeat, and how many there are.
    pub(super) fn sum_over_periods(&self, x: &Ciphertext<B>) -> Result<(Ciphertext<B>, f64)> {
        Ok((self.bootstrap.over_periods().run(&self.view, x)?, self.bootstrap.extent.copies() as f64))
    }

    /// The sine of both parts, and their sum: parts of at most the first bound, `off` apart, make slots of at most the second.
    fn eval_mod(&self, sine: &Sine, slots: Slots<B>, [part, whole]: [f64; 2], off: f64) -> Result<Ciphertext<B>> {
        let evaluator = &self.view.0;
        let Slots { parts, own, log2_scale } = slots;
        // With z off by e, and its conjugate as it is switched by f, the parts are off by e + f and i (f - e): together 2 e
        // where the sine is straight, and a little of each where it is not.
        let apart = parts.iter().map(|part| part.inner().noise()).fold(Noise::ZERO, Noise::plus);
        let most = part + off;
        let [re, im] = self.sines(sine, parts, most)?;
        let sum = evaluator.add(&re, &self.times_i(&im)?)?;
        // Both parts are bent as much at the most.
        let bend = SQRT_2 * sine.bend(most);
        let sum = off_by(evaluator, evaluator.declare_bound(sum, whole)?, bend)?;
        let error = own.times(1.0).plus(apart.times(sine.flatter(most).log2()));
        let carried = sine.carried(error, log2_scale, sum.log2_scale());
        with_noise(evaluator, sum, rlwe::Operation::Copy, |own| own.plus(carried))
    }

    /// The sines of parts of at most `part`, `off` apart, each for itself.
    fn eval_parts<const K: usize>(&self, slots: Slots<B>, part: f64, off: f64) -> Result<[Ciphertext<B>; K]> {
        let (evaluator, sine) = (&self.view.0, &self.bootstrap.sine);
        let errors: Vec<Noise> = slots.parts.iter().map(|part| part.inner().noise()).collect();
        let most = part + off;
        let mut errors = errors.into_iter();
        let sines: [_; K] = self.sines(sine, slots.parts, most)?;
        let finish = |made: Ciphertext<B>| {
            let made = off_by(evaluator, evaluator.declare_bound(made, part)?, sine.bend(most))?;
            let carried = sine.carried(errors.next().unwrap_or(Noise::ZERO), slots.log2_scale, made.log2_scale());
            with_noise(evaluator, made, rlwe::Operation::Copy, |own| own.plus(carried))
        };
        Self::exactly(sines.into_iter().map(finish).collect::<Result<_>>()?)
    }

    /// The sines of parts whose messages are at most `most`.
    fn sines<const K: usize>(&self, sine: &Sine, parts: Vec<Ciphertext<B>>, most: f64) -> Result<[Ciphertext<B>; K]> {
        let evaluator = &self.view.0;
        let number = |slots| sine.straight(evaluator, sine.evaluate(evaluator, slots)?, most);
        Self::exactly(evaluator.threads().try_map(parts, number)?)
    }

    pub(super) fn exactly<T, const K: usize>(parts: Vec<T>) -> Result<[T; K]> {
        parts.try_into().map_err(|_| Error::argument("as many parts as were asked for"))
    }

    /// Twice the real parts of all slots, and of complex messages twice the imaginary ones.
    fn parts(&self, x: &Ciphertext<B>, messages: Messages) -> Result<Vec<Ciphertext<B>>> {
        let evaluator = &self.view.0;
        let conjugate = evaluator.conjugate(x)?;
        let mut parts = vec![evaluator.add(x, &conjugate)?];
        if messages == Messages::Complex {
            // (conj z - z) i = 2 Im z.
            parts.push(self.times_i(&evaluator.sub(&conjugate, x)?)?);
        }
        parts.into_iter().map(|part| evaluator.declare_bound(part, 1.0)).collect()
    }

    /// x times i in every slot, as the view sees it.
    fn times_i(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.view.0.mul_monomial(x, (self.bootstrap.params.n() / 2) as i64)
    }
}
