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

mod keys;
mod raise;
mod sine;
mod transform;
mod view;

use std::sync::Arc;

use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};
use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::ring::{Backend, Cpu, Ntt, Poly};
use synchromesh_rlwe::{EvaluationKeys, Noise};

pub use keys::Chain;

use self::raise::Raise;
use self::sine::{Sine, off_by, with_noise};
use self::transform::Direction;
use self::view::View;
use super::ciphertext::Ciphertext;
use super::context::Context;
use super::evaluator::Evaluator;
use super::noise;
use super::params::Params;
use crate::circuits::{Arithmetic, LinearTransform, PreparedTransform};
use crate::embedding::Complex64;
use crate::error::{Error, Result};

/// By how much the entries of a map in doubles may be off, against the gain of all of it: a hundred roundings of one.
const DOUBLES: f64 = 100.0 * f64::EPSILON;

/// What bootstrapping does, as choices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootstrapLiteral {
    /// Levels of SlotsToCoeffs, the lowest there are: maps that the transform is the product of.
    pub slots_to_coeffs: usize,
    /// Levels of CoeffsToSlots, the highest there are.
    pub coeffs_to_slots: usize,
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
        if !(bound.is_finite() && bound > 0.0) || literal.degree < 2 || literal.degree % 2 == 1 || literal.doublings > 8
        {
            return refuse(format!(
                "a message bound of {bound}, degree {} and {} doublings: a positive number, an even degree from 2 on and \
                 at most 8 doublings are needed",
                literal.degree, literal.doublings
            ));
        }
        let (top, log_n) = (params.top_level(), params.log_n());
        let (lowest, highest) = (params.at(0)?, params.at(top)?);
        let log2_q = params.rlwe().ring().log2(&sparse.q);
        // log2 of what q is of the largest message.
        let ratio = log2_q - lowest.log2 - bound.log2();
        let spare = ratio - f64::from(literal.ratio_bits);
        if spare < 0.0 {
            return refuse(format!(
                "level 0 has {log2_q:.1} bits, {ratio:.1} above the largest message; {} are asked for",
                literal.ratio_bits
            ));
        }
        let multiple = 1u64 << (spare.floor() as u32).min(40);
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

    fn maps(&self, direction: Direction) -> Result<Vec<LinearTransform<Complex64>>> {
        let (count, number) = match direction {
            Direction::SlotsToCoeffs => (self.literal.slots_to_coeffs, 1.0),
            Direction::CoeffsToSlots => (self.literal.coeffs_to_slots, self.up),
        };
        transform::factors(self.params.slots(), direction, count, number)
    }
}

/// Refreshes ciphertexts; one may serve many threads.
pub struct Bootstrapper<B: Backend = Cpu> {
    view: View<B>,
    bootstrap: Bootstrap,
    down: Vec<PreparedTransform<View<B>>>,
    up: Vec<PreparedTransform<View<B>>>,
    /// i in every slot, as the view sees it, at the level after CoeffsToSlots and at that of the result.
    i: [Poly<B, Ntt>; 2],
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
            maps.into_iter().enumerate().map(|(at, map)| map.prepare(&view, top - at)).collect()
        };
        let down = prepare(Direction::SlotsToCoeffs, bootstrap.input_level())?;
        let up = prepare(Direction::CoeffsToSlots, params.top_level())?;
        let monomial = |level: usize| -> Result<Poly<B, Ntt>> {
            let mut coefficients = vec![0; params.n()];
            coefficients[params.n() / 2] = 1;
            let backend = context.rlwe().backend();
            Ok(Poly::from_signed(backend, params.rlwe().level(level)?, &coefficients)?.into_ntt(backend)?)
        };
        let i = [monomial(params.top_level() - bootstrap.literal.coeffs_to_slots)?, monomial(bootstrap.output_level)?];
        Ok(Self { view, bootstrap, down, up, i })
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
        let (evaluator, most) = (&self.view.0, self.bootstrap.literal.message_bound);
        if x.bound() > most * (1.0 + 1e-9) {
            return Err(Error::MessageBound { have: x.bound(), most });
        }
        let low = evaluator.mod_switch_to(x, self.bootstrap.input_level())?;
        // Both transforms together are the identity, and the sine is straight: the error that x brings along is what it was,
        // a part of the message. Followed stage by stage it would grow.
        let (given, log2_scale) = (low.inner().noise(), low.log2_scale());
        let off = (noise::canonical(&self.bootstrap.params, given) - log2_scale).exp2();
        let mut low = with_noise(evaluator, low, |_| Noise::ZERO)?;
        for map in &self.down {
            low = map.apply(&self.view, &low)?;
        }
        let beside = low.bound() * self.down.len() as f64 * DOUBLES;
        let low = off_by(evaluator, low, beside)?;
        let mut raised = self.bootstrap.raise.run(evaluator, &low)?;
        drop(low);
        for map in &self.up {
            raised = map.apply(&self.view, &raised)?;
        }
        let parts = self.parts(&raised)?;
        drop(raised);
        let sine = |part| self.bootstrap.sine.evaluate(evaluator, part);
        let parts = evaluator.threads().try_map(Vec::from(parts), sine)?;
        let [re, im] = <[Ciphertext<B>; 2]>::try_from(parts).map_err(|_| Error::argument("two parts are two"))?;
        let sum = evaluator.add(&re, &self.times_i(&im, 1)?)?;
        // Both parts are bent as much at the most.
        let bend = 2f64.sqrt() * self.bootstrap.sine.bend(most + off);
        let sum = off_by(evaluator, evaluator.declare_bound(sum, most)?, bend)?;
        let given = given.times(sum.log2_scale() - log2_scale);
        with_noise(evaluator, sum, |own| own.plus(given))
    }

    /// Twice the real parts of all slots and twice the imaginary ones.
    fn parts(&self, x: &Ciphertext<B>) -> Result<[Ciphertext<B>; 2]> {
        let evaluator = &self.view.0;
        let conjugate = evaluator.conjugate(x)?;
        let (re, im) = (evaluator.add(x, &conjugate)?, evaluator.sub(&conjugate, x)?);
        // (conj z - z) i = 2 Im z.
        let im = self.times_i(&im, 0)?;
        let beside = 2.0 * self.bootstrap.raise.bound * self.bootstrap.up * self.up.len() as f64 * DOUBLES;
        let bounded = |part| evaluator.declare_bound(off_by(evaluator, part, beside)?, 1.0);
        Ok([bounded(re)?, bounded(im)?])
    }

    /// x times i in every slot, exactly.
    fn times_i(&self, x: &Ciphertext<B>, place: usize) -> Result<Ciphertext<B>> {
        let (context, i) = (self.view.0.context(), &self.i[place]);
        let (backend, params) = (context.rlwe().backend(), context.params());
        let (inner, header) = x.duplicate(context)?.into_parts();
        let (level, key, noise) = (inner.level(), inner.key(), inner.noise());
        let parts = inner.into_parts().iter().map(|part| Ok(part.mul(backend, i)?)).collect::<Result<_>>()?;
        let inner = rlwe::Ciphertext::new(params.rlwe(), parts, level, key, noise)?;
        Ciphertext::checked(context, rlwe::Operation::Copy, inner, header.scale, header.bound)
    }
}
