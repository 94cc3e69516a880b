//! A CKKS ciphertext: one of the layer below, in slots, with its exact scale and the bound on its message.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::ring::{Backend, Cpu, Ntt};
use synchromesh_rlwe::{Made, Operation};

use super::beside::Beside;
use super::context::Context;
use super::lineage::{Lineage, Parent};
use super::noise;
use super::params::{Mode, Params};
use super::scale::Scale;
use crate::error::{Error, Result};

/// What CKKS knows about a ciphertext beyond the layer below; public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The phase is this multiple of the message.
    pub scale: Scale,
    /// No slot of the message has a larger modulus.
    pub bound: f64,
}

impl Header {
    /// log2 of the largest modulus of a slot of S z.
    pub(crate) fn log2_message(&self, log2_scale: f64) -> f64 {
        log2_scale + self.bound.log2()
    }
}

/// An encrypted vector of N/2 complex numbers.
pub struct Ciphertext<B: Backend = Cpu> {
    inner: rlwe::Ciphertext<B, Ntt>,
    header: Header,
    log2_scale: f64,
    /// The same message with levels to compute with, once it was needed.
    renewed: OnceLock<Box<Self>>,
    /// What is known of slots beside the message.
    beside: Option<Beside>,
    lineage: Lineage,
    /// Whether it stands for the ciphertext of that lineage, which was refreshed.
    refreshed: bool,
}

impl<B: Backend> Ciphertext<B> {
    /// Puts a result together and fails when its phase could wrap around.
    pub(crate) fn checked(
        context: &Context<B>,
        operation: Operation,
        inner: rlwe::Ciphertext<B, Ntt>,
        scale: Scale,
        bound: f64,
    ) -> Result<Self> {
        let params = context.params();
        let log2_scale = log2_of(params, inner.level(), &scale)?;
        let header = Header { scale, bound };
        noise::check(params, inner.level(), header.log2_message(log2_scale), inner.noise())?;
        if let Some(observer) = context.rlwe().observer() {
            let (level, components) = (inner.level(), inner.parts().len());
            let modulus_bits = params.rlwe().ring().log2(params.rlwe().level(level)?);
            let noise_bits = noise::canonical(params, inner.noise());
            observer.made(&Made { operation, level, components, modulus_bits, noise_bits });
        }
        let lineage = Lineage::fresh(inner.level());
        Ok(Self { inner, header, log2_scale, renewed: OnceLock::new(), beside: None, lineage, refreshed: false })
    }

    /// The same with what is known of slots beside its message.
    pub(crate) fn with_beside(self, beside: Option<Beside>) -> Self {
        Self { beside, ..self }
    }

    /// The same, as what an operation made of others.
    pub(crate) fn with_lineage(self, lineage: Lineage) -> Self {
        Self { lineage, ..self }
    }

    /// The same in the place of `x`: at another level, or with another certificate.
    pub(crate) fn standing_for<Other: Backend>(self, x: &Ciphertext<Other>) -> Self {
        Self { lineage: x.lineage, refreshed: x.refreshed, ..self }
    }

    /// The same as `x` after a refresh.
    pub(super) fn refreshed_from(self, x: &Self) -> Self {
        Self { lineage: x.lineage, refreshed: true, ..self }
    }

    /// Whether it is a refreshed one in the place of another.
    pub(super) const fn is_refreshed(&self) -> bool {
        self.refreshed
    }

    /// How it came about.
    #[must_use]
    pub const fn lineage(&self) -> Lineage {
        self.lineage
    }

    /// It as an operand.
    pub(crate) const fn parent(&self) -> Parent {
        Parent { lineage: self.lineage, level: self.inner.level(), bound: self.header.bound }
    }

    /// What is known of slots beside its message.
    pub(crate) const fn beside(&self) -> Option<&Beside> {
        self.beside.as_ref()
    }

    /// A ciphertext from its parts, as read from a file. Its certificate and message bound are the writer's claim.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`], [`Error::Header`] for a scale that these parameters cannot give or a bound that
    /// is no positive number, [`rlwe::Error::Noise`] when the certificate leaves no room.
    pub fn from_parts(context: &Context<B>, inner: rlwe::Ciphertext<B, Ntt>, header: Header) -> Result<Self> {
        let params = context.params();
        params.rlwe().require_digest(inner.params_digest())?;
        let refuse = |field, reason: String| Err(Error::Header { field, reason });
        if !(header.bound.is_finite() && header.bound >= 0.0) {
            return refuse("message bound", format!("{} is no finite positive number", header.bound));
        }
        let noise = inner.noise().certificate;
        if noise.sigma.is_nan() || noise.remainder.is_nan() {
            return refuse("certificate", "it is not a number".to_owned());
        }
        let moduli = params.rlwe().ring().moduli();
        let known = |q: u64| params.rlwe().q().iter().any(|i| moduli[i].value() == q);
        if let Some((q, _)) = header.scale.factors().iter().find(|(q, _)| !known(*q)) {
            return refuse("scale", format!("its factor {q} is no ciphertext prime"));
        }
        let level = params.at(inner.level())?;
        if params.mode() == Mode::Auto && header.scale != level.scale && header.scale != level.square {
            return refuse("scale", format!("{} is not that of level {}", header.scale, inner.level()));
        }
        Self::checked(context, Operation::Copy, inner, header.scale, header.bound)
    }

    /// The ciphertext of the layer below.
    #[must_use]
    pub const fn inner(&self) -> &rlwe::Ciphertext<B, Ntt> {
        &self.inner
    }

    /// The ciphertext of the layer below and the header.
    #[must_use]
    pub fn into_parts(self) -> (rlwe::Ciphertext<B, Ntt>, Header) {
        (self.inner, self.header)
    }

    /// Scale and message bound.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The exact scale.
    #[must_use]
    pub const fn scale(&self) -> &Scale {
        &self.header.scale
    }

    /// log2 of the scale.
    #[must_use]
    pub const fn log2_scale(&self) -> f64 {
        self.log2_scale
    }

    /// Largest modulus of a slot of the message.
    #[must_use]
    pub const fn bound(&self) -> f64 {
        self.header.bound
    }

    /// Rescales that remain.
    #[must_use]
    pub const fn level(&self) -> usize {
        self.inner.level()
    }

    /// Number of components, 2 or 3.
    #[must_use]
    pub fn components(&self) -> usize {
        self.inner.parts().len()
    }

    /// A copy.
    ///
    /// # Errors
    /// When the device has no memory left.
    pub fn duplicate(&self, context: &Context<B>) -> Result<Self> {
        let inner = self.inner.duplicate(context.rlwe())?;
        let (header, beside, renewed) = (self.header.clone(), self.beside.clone(), OnceLock::new());
        let Self { log2_scale, lineage, refreshed, .. } = *self;
        Ok(Self { inner, header, log2_scale, renewed, beside, lineage, refreshed })
    }

    /// What `make` makes of it, made once.
    pub(crate) fn renewed_by(&self, make: impl FnOnce() -> Result<Self>) -> Result<&Self> {
        if let Some(renewed) = self.renewed.get() {
            return Ok(renewed);
        }
        let made = Box::new(make()?);
        Ok(self.renewed.get_or_init(|| made))
    }

    /// What it was renewed to, if it was.
    pub(super) fn into_renewed(self) -> Option<Self> {
        self.renewed.into_inner().map(|renewed| *renewed)
    }

    /// As the factor of a product.
    pub(crate) fn factor(&self) -> noise::Factor {
        noise::Factor { log2_message: self.header.log2_message(self.log2_scale), noise: self.inner.noise() }
    }
}

/// log2 of a scale, from the tables where it is a level's own.
fn log2_of(params: &Params, level: usize, scale: &Scale) -> Result<f64> {
    let own = params.at(level)?;
    Ok(if *scale == own.scale {
        own.log2
    } else if *scale == own.square {
        2.0 * own.log2
    } else {
        scale.log2()
    })
}
