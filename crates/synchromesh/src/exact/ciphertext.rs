//! A ciphertext of an exact scheme: a ring-LWE ciphertext in its resting domain, with the scheme's header.

use std::ops::Deref;
use std::sync::OnceLock;

use synchromesh_rlwe::noise::{self, Estimates, Noise};
use synchromesh_rlwe::ring::{Backend, Cpu};
use synchromesh_rlwe::{Made, Operation};

use super::{Context, Params, Scheme};
use crate::error::Result;

/// A ciphertext of the scheme S, of two or three components.
pub struct Ciphertext<S: Scheme, B: Backend = Cpu> {
    inner: synchromesh_rlwe::Ciphertext<B, S::Domain>,
    header: S::Header,
    /// The same message refreshed, once an operation has needed that.
    renewed: OnceLock<Box<Self>>,
}

impl<S: Scheme, B: Backend> Ciphertext<S, B> {
    pub(crate) fn new(inner: synchromesh_rlwe::Ciphertext<B, S::Domain>, header: S::Header) -> Self {
        Self { inner, header, renewed: OnceLock::new() }
    }

    /// What `make` makes of it, made once.
    pub(super) fn renewed_by(&self, make: impl FnOnce() -> Result<Self>) -> Result<&Self> {
        if let Some(renewed) = self.renewed.get() {
            return Ok(renewed);
        }
        let made = Box::new(make()?);
        Ok(self.renewed.get_or_init(|| made))
    }

    /// A ciphertext from its parts, as read from a file.
    ///
    /// # Errors
    /// [`crate::Error::Rlwe`] for other parameters, [`crate::Error::Header`] for a header that cannot be right.
    pub fn from_parts(
        params: &Params<S>,
        inner: synchromesh_rlwe::Ciphertext<B, S::Domain>,
        header: S::Header,
    ) -> Result<Self> {
        params.rlwe().require_digest(inner.params_digest())?;
        S::check_header(params, &header)?;
        Ok(Self::new(inner, header))
    }

    /// The ring-LWE ciphertext.
    #[must_use]
    pub const fn inner(&self) -> &synchromesh_rlwe::Ciphertext<B, S::Domain> {
        &self.inner
    }

    /// The scheme's header.
    #[must_use]
    pub const fn header(&self) -> &S::Header {
        &self.header
    }

    /// Modulus switches that remain.
    #[must_use]
    pub const fn level(&self) -> usize {
        self.inner.level()
    }

    /// The number of components, 2 or 3.
    #[must_use]
    pub fn components(&self) -> usize {
        self.inner.parts().len()
    }

    /// The noise certificate.
    #[must_use]
    pub const fn noise(&self) -> Noise {
        self.inner.noise()
    }

    /// A copy.
    ///
    /// # Errors
    /// When the device has no memory left.
    pub fn duplicate(&self, context: &Context<S, B>) -> Result<Self> {
        Ok(Self::new(self.inner.duplicate(context.rlwe())?, self.header.clone()))
    }

    pub(crate) fn inner_mut(&mut self) -> &mut synchromesh_rlwe::Ciphertext<B, S::Domain> {
        self.renewed = OnceLock::new();
        &mut self.inner
    }

    /// The same ciphertext with `noise` added to its certificate.
    pub(crate) fn with_more_noise(self, noise: Noise) -> Self {
        let total = self.inner.noise().plus(noise);
        Self::new(self.inner.assume_noise(total), self.header)
    }

    /// The same ciphertext with other estimates of its error.
    pub(crate) fn with_estimates(self, estimates: Option<Estimates>) -> Self {
        let noise = self.inner.noise().with_estimates(estimates);
        Self::new(self.inner.assume_noise(noise), self.header)
    }

    /// The ciphertext, unless its certificate leaves no room for correct decryption.
    pub(crate) fn certified(self, context: &Context<S, B>, operation: Operation) -> Result<Self> {
        require_room(context.params(), self.inner.noise(), self.level())?;
        self.told(context, operation)?;
        Ok(self)
    }

    /// Tells who watches the context of it, as made by this operation.
    pub(super) fn told(&self, context: &Context<S, B>, operation: Operation) -> Result<()> {
        let Some(observer) = context.rlwe().observer() else { return Ok(()) };
        let (params, level) = (context.params(), self.level());
        let bound = self.inner.noise().bound(params.log_n(), params.failure_limit().log2_failure());
        let (budget, modulus_bits) = (S::room(params, level)? - bound, params.log2_modulus(level)?);
        let (components, noise_bits) = (self.components(), modulus_bits - budget);
        observer.made(&Made { operation, level, components, modulus_bits, noise_bits });
        Ok(())
    }
}

/// Fails when an error may exceed what decrypts at `level`.
pub(crate) fn require_room<S: Scheme>(params: &Params<S>, noise: Noise, level: usize) -> Result<()> {
    let log2_failure = params.failure_limit().log2_failure();
    let bound = noise.bound(params.log_n(), log2_failure);
    Ok(noise::require_room(bound, S::room(params, level)?, level, log2_failure)?)
}

/// An operand as it was given, or brought to another level or header.
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack of an operation")]
pub enum Operand<'a, S: Scheme, B: Backend> {
    /// As given.
    Given(&'a Ciphertext<S, B>),
    /// Changed.
    Brought(Ciphertext<S, B>),
}

impl<S: Scheme, B: Backend> Deref for Operand<'_, S, B> {
    type Target = Ciphertext<S, B>;
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Given(ciphertext) => ciphertext,
            Self::Brought(ciphertext) => ciphertext,
        }
    }
}

impl<'a, S: Scheme, B: Backend> Operand<'a, S, B> {
    /// The ciphertext at a level no higher than its own.
    pub(crate) fn at_level(context: &Context<S, B>, ciphertext: &'a Ciphertext<S, B>, level: usize) -> Result<Self> {
        if ciphertext.level() == level {
            return Ok(Self::Given(ciphertext));
        }
        let brought = S::mod_switch_to(context, ciphertext, level)?.certified(context, Operation::Descent)?;
        Ok(Self::Brought(brought))
    }
}

impl<S: Scheme, B: Backend> Operand<'_, S, B> {
    /// The ciphertext by value; copied only if it was given.
    pub(crate) fn into_owned(self, context: &Context<S, B>) -> Result<Ciphertext<S, B>> {
        match self {
            Self::Given(ciphertext) => ciphertext.duplicate(context),
            Self::Brought(ciphertext) => Ok(ciphertext),
        }
    }

    /// The sum with another, or the difference, with this one's header; in place unless it was given.
    pub(crate) fn plus(self, context: &Context<S, B>, other: &Self, subtract: bool) -> Result<Ciphertext<S, B>> {
        match self {
            Self::Given(given) => {
                let sum = given.inner.sum(context.rlwe(), &other.inner, subtract)?;
                Ok(Ciphertext::new(sum, given.header.clone()))
            }
            Self::Brought(mut sum) => {
                sum.inner_mut().add_assign(context.rlwe(), &other.inner, subtract)?;
                Ok(sum)
            }
        }
    }
}
