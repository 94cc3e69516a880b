//! Homomorphic operations; each computes the certificate of its result and refuses one that could wrap around.
//!
//! In automatic mode (the default) a ciphertext of level l has scale S_l or, right after a multiplication that was not
//! relinearised, S_l^2. `mul` divides by P and by the level's primes at once and leaves exactly S_(l-1). Operands of
//! different levels are first brought to the lower one; see [`mod_switch_to`](Evaluator::mod_switch_to).

mod align;
mod combine;
mod expand;
mod hoisted;
mod plain;
pub(crate) mod recording;
mod refresh;
mod rotations;
mod second;

use std::ops::Deref;
use std::sync::Arc;

use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::noise::LOG2_FAILURE_INSIDE;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::ring::{Backend, Cpu, Ntt, Poly};
use synchromesh_rlwe::{EvaluationKeys, Noise, Operation};

use self::refresh::Refresher;
use super::beside::Beside;
use super::ciphertext::Ciphertext;
use super::context::Context;
use super::lineage::{Lineage, Parent};
use super::noise;
use super::params::Mode;
use crate::error::{Error, Result};
use crate::rotations::Rotations;
use crate::rotations::Routes;

/// Computes on ciphertexts; one may serve many threads.
pub struct Evaluator<B: Backend = Cpu> {
    context: Arc<Context<B>>,
    switching: Option<KeySwitching<B>>,
    routes: Option<Arc<Routes>>,
    refresher: Option<Arc<Refresher<B>>>,
}

/// A ciphertext as given, or one made from it.
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack of an operation")]
pub(crate) enum Held<'a, B: Backend> {
    Given(&'a Ciphertext<B>),
    Made(Ciphertext<B>),
}

impl<B: Backend> Deref for Held<'_, B> {
    type Target = Ciphertext<B>;

    fn deref(&self) -> &Ciphertext<B> {
        match self {
            Self::Given(ct) => ct,
            Self::Made(ct) => ct,
        }
    }
}

impl<B: Backend> Held<'_, B> {
    /// The ciphertext by value, copied if it was given.
    fn take(self, context: &Context<B>) -> Result<Ciphertext<B>> {
        match self {
            Self::Given(ct) => ct.duplicate(context),
            Self::Made(ct) => Ok(ct),
        }
    }
}

impl<B: Backend> Clone for Evaluator<B> {
    fn clone(&self) -> Self {
        let Self { context, switching, routes, refresher } = self;
        let (context, switching) = (Arc::clone(context), switching.clone());
        Self { context, switching, routes: routes.clone(), refresher: refresher.clone() }
    }
}

impl<B: Backend> Evaluator<B> {
    /// An evaluator; without keys it can add, multiply by plaintexts and rescale.
    #[must_use]
    pub fn new(context: &Arc<Context<B>>, keys: Option<Arc<EvaluationKeys<B>>>) -> Self {
        let params = context.params();
        let second = params.second_plan().cloned();
        let switching = keys.map(|keys| KeySwitching::new(keys, params.plans().clone()).with_second(second));
        Self { context: Arc::clone(context), switching, routes: None, refresher: None }
    }

    /// An evaluator like this one, with these keys.
    #[must_use]
    pub fn with_keys(&self, keys: Arc<EvaluationKeys<B>>) -> Self {
        let Self { switching, .. } = Self::new(&self.context, Some(keys));
        let refresher = self.refresher.as_ref().map(|refresher| refresher.with_keys());
        Self { switching, refresher, ..self.clone() }
    }

    /// The same evaluator with rotations composed from fewer keys, as a plan says.
    #[must_use]
    pub fn with_routes(self, routes: Option<Arc<Routes>>) -> Self {
        Self { routes, ..self }
    }

    /// The context.
    #[must_use]
    pub const fn context(&self) -> &Arc<Context<B>> {
        &self.context
    }

    fn auto(&self) -> bool {
        self.context.params().mode() == Mode::Auto
    }

    fn log_n(&self) -> u32 {
        self.context.params().log_n()
    }

    pub(crate) fn switching(&self, operation: &'static str) -> Result<&KeySwitching<B>> {
        self.switching.as_ref().ok_or(Error::NoKeys { operation })
    }

    /// A result with its certificate, checked.
    fn finish(
        &self,
        operation: Operation,
        from: &[Parent],
        inner: rlwe::Ciphertext<B, Ntt>,
        noise: Noise,
        scale: super::Scale,
        bound: f64,
    ) -> Result<Ciphertext<B>> {
        let made = Ciphertext::checked(&self.context, operation, inner.assume_noise(noise), scale, bound)?;
        let made = made.with_lineage(Lineage::of(operation, from));
        self.record(operation, from, &made)?;
        Ok(made)
    }

    /// x + y.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`], [`rlwe::Error::KeysDiffer`], [`rlwe::Error::Noise`]; in manual mode
    /// [`Error::ScaleMismatch`] unless both scales are the same.
    pub fn add(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.sum(x, y, false)
    }

    /// x - y.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn sub(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.sum(x, y, true)
    }

    fn sum(&self, x: &Ciphertext<B>, y: &Ciphertext<B>, subtract: bool) -> Result<Ciphertext<B>> {
        self.require_related(x, y)?;
        let twice = std::ptr::eq(x, y) && !subtract;
        let (x, y) = (self.renew(x, 0)?, self.renew(y, 0)?);
        let from = [x.parent(), y.parent()];
        let met = self.meet(&[x, y])?;
        let (x, y) = self.align_for_sum(&met[0], &met[1])?;
        let bound = x.bound() + y.bound();
        let noise = noise::sum(x.inner().noise(), y.inner().noise(), twice);
        let beside = x.beside().zip(y.beside()).and_then(|(x, y)| x.plus(y));
        let scale = x.header().scale.clone();
        let sum = match x {
            Held::Given(x) => x.inner().sum(self.context.rlwe(), y.inner(), subtract)?,
            Held::Made(x) => {
                let (mut sum, _) = x.into_parts();
                sum.add_assign(self.context.rlwe(), y.inner(), subtract)?;
                sum
            }
        };
        self.settled(self.finish(Operation::Sum, &from, sum, noise, scale, bound)?.with_beside(beside))
    }

    /// -x.
    ///
    /// # Errors
    /// When the device fails.
    pub fn neg(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.require_own(x)?;
        let x = self.renew(x, 0)?;
        let (mut inner, header) = x.duplicate(&self.context)?.into_parts();
        inner.neg_assign(self.context.rlwe())?;
        let noise = inner.noise();
        let made = self.finish(Operation::Copy, &[x.parent()], inner, noise, header.scale, header.bound)?;
        Ok(made.with_beside(x.beside().cloned()))
    }

    /// x y, slot by slot, relinearised; in automatic mode also rescaled, in one division.
    ///
    /// # Errors
    /// [`Error::NoKeys`], [`rlwe::Error::MissingKey`], [`rlwe::Error::KeysDiffer`], [`rlwe::Error::ParamsDiffer`],
    /// [`rlwe::Error::Components`] for operands of three components, [`rlwe::Error::Level`] when no level is left,
    /// [`rlwe::Error::Noise`].
    pub fn mul(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.switching("multiplication")?;
        self.require_related(x, y)?;
        let (x, y) = (self.renew(x, self.lowest() + 1)?, self.renew(y, self.lowest() + 1)?);
        self.require_level_for_product(x, y)?;
        self.relinearize(&self.mul_no_relin(x, y)?)
    }

    /// x^2, relinearised; as [`Self::mul`] with one product less.
    ///
    /// # Errors
    /// As [`Self::mul`].
    pub fn square(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.switching("multiplication")?;
        self.require_own(x)?;
        let x = self.renew(x, self.lowest() + 1)?;
        self.require_level_for_product(x, x)?;
        self.relinearize(&self.square_no_relin(x)?)
    }

    /// x y with three components, at the product of the scales.
    ///
    /// # Errors
    /// As [`Self::mul`], keys apart.
    pub fn mul_no_relin(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.require_related(x, y)?;
        let met = self.meet(&[x, y])?;
        let (x, y) = self.align_for_product(&met[0], &met[1])?;
        x.inner().require_components(2)?;
        y.inner().require_components(2)?;
        let backend = self.context.rlwe().backend();
        let [a, b] = [&*x, &*y].map(|z| [0, 1].map(|i| &z.inner().parts()[i]));
        self.product(&x, &y, Poly::tensor(backend, a, b)?)
    }

    /// x^2 with three components, at the square of the scale.
    ///
    /// # Errors
    /// As [`Self::mul_no_relin`].
    pub fn square_no_relin(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.require_own(x)?;
        let x = self.settle(x)?;
        x.inner().require_components(2)?;
        let backend = self.context.rlwe().backend();
        let parts = [0, 1].map(|i| &x.inner().parts()[i]);
        self.product(&x, &x, Poly::tensor(backend, parts, parts)?)
    }

    fn product(&self, x: &Ciphertext<B>, y: &Ciphertext<B>, parts: [Poly<B, Ntt>; 3]) -> Result<Ciphertext<B>> {
        let same = std::ptr::eq(x, y);
        let noise = noise::product(x.factor(), y.factor(), self.log_n(), same);
        let params = self.context.params();
        let inner = rlwe::Ciphertext::new(params.rlwe(), Vec::from(parts), x.level(), x.inner().key(), noise)?;
        let (from, scale) = ([x.parent(), y.parent()], x.scale().times(y.scale())?);
        let made = self.finish(Operation::Product, &from, inner, noise, scale, x.bound() * y.bound())?;
        Ok(made.with_beside(self.product_beside(x, y)))
    }

    /// Three components to two; a product that is due for a rescale in automatic mode is rescaled in the same division
    /// (ePrint 2023/1642, section 6.1).
    ///
    /// # Errors
    /// [`Error::NoKeys`], [`rlwe::Error::MissingKey`], [`rlwe::Error::KeysDiffer`], [`rlwe::Error::Components`].
    pub fn relinearize(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        let switching = self.switching("relinearisation")?;
        self.require_own(x)?;
        let merged = self.pending(x)? && x.level() > 0;
        let level = if merged { x.level() - 1 } else { x.level() };
        let inner = switching.relinearize_to(self.context.rlwe(), x.inner(), level)?;
        let (scale, noise) = if merged {
            // What the scale is divided by, exactly: the quotient of both moduli comes out of two sums.
            let dropped = &self.context.params().at(x.level())?.dropped;
            let added = switching.noise_under(self.context.rlwe(), x.inner().key(), x.level(), level)?;
            (x.scale().over(dropped)?, x.inner().noise().times(-dropped.log2()).plus_switching(added))
        } else {
            (x.scale().clone(), inner.noise())
        };
        let beside = match x.beside().filter(|_| merged) {
            Some(beside) => {
                let dropped = &self.context.params().at(x.level())?.dropped;
                let added = switching.noise_under(self.context.rlwe(), x.inner().key(), x.level(), level)?;
                Some(beside.with(beside.noise.times(-dropped.log2()).plus_switching(added)))
            }
            None => None,
        };
        let made = self.finish(Operation::Relinearisation, &[x.parent()], inner, noise, scale, x.bound())?;
        self.settled(made.with_beside(beside))
    }

    /// The slots rotated to the left by k, to the right for k < 0.
    ///
    /// # Errors
    /// [`Error::NoKeys`], [`rlwe::Error::MissingKey`], [`rlwe::Error::KeysDiffer`], [`rlwe::Error::Components`].
    pub fn rotate(&self, x: &Ciphertext<B>, k: i64) -> Result<Ciphertext<B>> {
        self.require_rotations(&Rotations::by([k]))?;
        let x = self.renew(x, 0)?;
        let once = |x: &Ciphertext<B>, &k: &i64| self.automorphism(x, self.context.galois_element(k), "rotation");
        match self.routes.as_ref().and_then(|routes| routes.route(k)) {
            Some([first, rest @ ..]) => rest.iter().try_fold(once(x, first)?, |x, k| once(&x, k)),
            _ => {
                let rotated = once(x, &k)?;
                let Some(beside) = x.beside() else { return Ok(rotated) };
                let switching = self.switching("rotation")?;
                let added = switching.noise_under(self.context.rlwe(), x.inner().key(), x.level(), x.level())?;
                Ok(rotated.with_beside(Some(beside.rotated(k, added))))
            }
        }
    }

    /// The complex conjugate of every slot.
    ///
    /// # Errors
    /// As [`Self::rotate`].
    pub fn conjugate(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.require_rotations(&Rotations::by([]).and_swap())?;
        let x = self.renew(x, 0)?;
        self.automorphism(x, self.context.conjugation_element(), "conjugation")
    }

    /// X -> X^g.
    pub(crate) fn automorphism(&self, x: &Ciphertext<B>, g: usize, operation: &'static str) -> Result<Ciphertext<B>> {
        if g == 1 {
            self.require_own(x)?;
            return x.duplicate(&self.context);
        }
        let switching = self.switching(operation)?;
        let inner = switching.automorphism(self.context.rlwe(), x.inner(), g)?;
        self.moved(x, inner)
    }

    /// The rotations by each k, with one decomposition for all (hoisting).
    ///
    /// # Errors
    /// As [`Self::rotate`].
    pub fn rotate_many(&self, x: &Ciphertext<B>, ks: &[i64]) -> Result<Vec<Ciphertext<B>>> {
        self.require_rotations(&Rotations::by(ks.iter().copied()))?;
        let x = self.renew(x, 0)?;
        if self.routes.as_ref().is_some_and(|routes| ks.iter().any(|&k| routes.route(k).is_some())) {
            return ks.iter().map(|&k| self.rotate(x, k)).collect();
        }
        let elements: Vec<usize> = ks.iter().map(|&k| self.context.galois_element(k)).collect();
        let switching = self.switching("rotation")?;
        let rotated = switching.automorphisms_hoisted(self.context.rlwe(), x.inner(), &elements)?;
        let finish = |(inner, g)| if g == 1 { x.duplicate(&self.context) } else { self.moved(x, inner) };
        rotated.into_iter().zip(elements).map(finish).collect()
    }

    /// The result of a key switch at the level of `x`, message and scale unchanged.
    fn moved(&self, x: &Ciphertext<B>, inner: rlwe::Ciphertext<B, Ntt>) -> Result<Ciphertext<B>> {
        let noise = inner.noise();
        self.finish(Operation::Rotation, &[x.parent()], inner, noise, x.scale().clone(), x.bound())
    }

    /// The same ciphertext with a smaller bound on its message, which the caller answers for: no slot exceeds it.
    ///
    /// Bounds follow the circuit, not the values: of -1 <= x <= 1 the evaluator knows only that 2 x^2 - 1 is at most 3.
    ///
    /// # Errors
    /// [`crate::ckks::embedding::EmbeddingError::BoundOutOfRange`] unless it is a positive number.
    pub fn declare_bound(&self, x: Ciphertext<B>, bound: f64) -> Result<Ciphertext<B>> {
        self.require_own(&x)?;
        self.context.encode_complex(&[], bound)?;
        let x = self.placed(x)?;
        let (beside, from) = (x.beside().cloned(), [x.parent()]);
        let (inner, header) = x.into_parts();
        let noise = inner.noise();
        let made = self.finish(Operation::Copy, &from, inner, noise, header.scale, header.bound.min(bound))?;
        Ok(made.with_beside(beside))
    }

    /// The same ciphertext, of whose message the caller answers for it being 0 beside some slots: sums of slots are then
    /// certified by what they meet.
    ///
    /// # Errors
    /// [`Error::Argument`] unless there is a word for each slot.
    pub fn declare_zeros(&self, x: Ciphertext<B>, own: &[bool]) -> Result<Ciphertext<B>> {
        self.require_own(&x)?;
        let slots = self.context.params().slots();
        if own.len() != slots {
            return Err(Error::argument(format!("{} words on what {slots} slots hold", own.len())));
        }
        let beside = Beside::new(own.into(), x.inner().noise());
        Ok(x.with_beside(beside))
    }

    /// The same ciphertext as one of another message, which the caller answers for: in no slot is that further than `error`
    /// from its own. The certificate counts from the other message on, as for a polynomial in the place of a function.
    ///
    /// # Errors
    /// [`Error::Argument`] unless `error` is a positive number; [`rlwe::Error::Noise`] for more than the level has room for.
    pub fn declare_error(&self, x: Ciphertext<B>, error: f64) -> Result<Ciphertext<B>> {
        self.require_own(&x)?;
        if !(error.is_finite() && error > 0.0) {
            return Err(Error::argument(format!("an error of {error}, where a positive number is needed")));
        }
        let x = self.placed(x)?;
        let from = [x.parent()];
        let (inner, header) = x.into_parts();
        let noise = inner.noise().plus(Noise::at_most(header.scale.log2() + error.log2()));
        self.finish(Operation::Copy, &from, inner, noise, header.scale, header.bound + error)
    }

    /// The same ciphertext as one of the message that it decrypts to, complex as that may be, from which nothing is off, and
    /// how far that is from its own message at most.
    ///
    /// For iterations that mend what they are off by: gradient descent, powers of a matrix, Newton's method. What a step is
    /// off by is certified from where the step began, and no longer grows by all steps' largest slopes. Bounds that are
    /// declared afterwards are about the message that is decrypted.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`], [`rlwe::Error::Noise`] for errors that leave no room.
    pub fn as_computed(&self, x: &Ciphertext<B>) -> Result<(Ciphertext<B>, f64)> {
        self.require_own(x)?;
        let x = self.renew(x, 0)?;
        let error = noise::canonical_at(x.inner().noise(), self.log_n(), LOG2_FAILURE_INSIDE) - x.log2_scale();
        let error = error.exp2() * (1.0 + 1e-9);
        let (inner, header) = x.duplicate(&self.context)?.into_parts();
        let nothing = Noise::ZERO.certificate;
        let certificate = if inner.noise().certificate.is_on_word() { nothing.on_word() } else { nothing };
        let noise = Noise { certificate, estimates: inner.noise().estimates };
        let bound = (header.bound + error) * (1.0 + 1e-12);
        Ok((self.finish(Operation::Copy, &[x.parent()], inner, noise, header.scale, bound)?, error))
    }

    fn require_own(&self, x: &Ciphertext<B>) -> Result<()> {
        Ok(self.context.params().rlwe().require_digest(x.inner().params_digest())?)
    }

    fn require_related(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<()> {
        self.require_own(x)?;
        self.require_own(y)
    }
}
