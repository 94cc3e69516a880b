//! A context: checked parameters on a device, with every constant that depends on both cached.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use synchromesh_ring::scale::{Scale, ScaleSpec};
use synchromesh_ring::{Backend, Cpu};

use crate::error::Error;
use crate::noise::{Noise, Origins};
use crate::observer::Observer;
use crate::params::Params;

/// A constant of a context: what its parameters, its device and a description give, made once and shared.
pub(crate) trait Constant<B: Backend>: Sized + Send + Sync + 'static {
    /// Which one.
    type Spec: Eq + Hash + Send + 'static;

    /// Makes it.
    fn make(context: &Context<B>, spec: &Self::Spec) -> Result<Self, Error>;
}

impl<B: Backend> Constant<B> for Scale<B> {
    type Spec = ScaleSpec;

    fn make(context: &Context<B>, spec: &ScaleSpec) -> Result<Self, Error> {
        Ok(Self::new(&context.backend, spec.clone())?)
    }
}

/// By kind of constant, a map from descriptions to constants.
type Constants = HashMap<TypeId, Box<dyn Any + Send>>;

/// Parameters on a device.
pub struct Context<B: Backend = Cpu> {
    params: Params,
    backend: B,
    constants: Mutex<Constants>,
    /// Encryptions made so far.
    encryptions: AtomicU64,
    observer: Option<Arc<dyn Observer>>,
    inside: Option<Arc<Self>>,
}

impl Context<Cpu> {
    /// The parameters on this machine's CPU.
    ///
    /// # Errors
    /// [`Error::Ring`] when `SYNCHROMESH_ISA` asks for what this CPU lacks.
    pub fn new(params: Params) -> Result<Arc<Self>, Error> {
        let backend = Cpu::open(Arc::clone(params.ring()))?;
        Ok(Self::with_backend(params, backend))
    }
}

impl<B: Backend> Context<B> {
    /// The parameters on a device of the caller's choice, opened for the same ring.
    #[must_use]
    pub fn with_backend(params: Params, backend: B) -> Arc<Self> {
        Self::observed(params, backend, None)
    }

    /// As [`Self::with_backend`], watched by an observer.
    #[must_use]
    pub fn observed(params: Params, backend: B, observer: Option<Arc<dyn Observer>>) -> Arc<Self> {
        Arc::new(Self::assemble(params, backend, observer, None))
    }

    /// As [`Self::observed`], with the context of a larger ring in which ciphertexts of this one are bootstrapped: keys of that
    /// ring go where the keys of this one go.
    #[must_use]
    pub fn around(params: Params, backend: B, observer: Option<Arc<dyn Observer>>, inside: Arc<Self>) -> Arc<Self> {
        Arc::new(Self::assemble(params, backend, observer, Some(inside)))
    }

    fn assemble(params: Params, backend: B, observer: Option<Arc<dyn Observer>>, inside: Option<Arc<Self>>) -> Self {
        Self { params, backend, constants: Mutex::default(), encryptions: AtomicU64::new(0), observer, inside }
    }

    /// The context of the larger ring in which ciphertexts are bootstrapped, where there is one.
    #[must_use]
    pub fn inside(&self) -> Option<&Arc<Self>> {
        self.inside.as_ref()
    }

    /// That context, or where there is none this one, whose parameters the larger ring's keys will not have.
    pub(crate) fn inside_or_own(&self) -> &Self {
        self.inside.as_deref().unwrap_or(self)
    }

    /// The parameters.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// The device.
    #[must_use]
    pub const fn backend(&self) -> &B {
        &self.backend
    }

    /// Who watches.
    #[must_use]
    pub fn observer(&self) -> Option<&dyn Observer> {
        self.observer.as_deref()
    }

    /// The error of one more encryption: with an origin of its own, and estimates where the observer wants them. Two
    /// contexts give the same origins to different encryptions, which makes their ciphertexts count as dependent.
    pub(crate) fn fresh(&self, noise: Noise) -> Noise {
        let noise = noise.with_origins(Origins::one(self.encryptions.fetch_add(1, Ordering::Relaxed)));
        let estimates = noise.estimates.filter(|_| self.observer().is_some_and(Observer::wants_estimates));
        noise.with_estimates(estimates)
    }

    /// The scaling `spec`, prepared.
    ///
    /// # Errors
    /// As [`Scale::new`].
    pub fn scale(&self, spec: ScaleSpec) -> Result<Arc<Scale<B>>, Error> {
        self.constant(spec)
    }

    /// The constant of this description.
    pub(crate) fn constant<C: Constant<B>>(&self, spec: C::Spec) -> Result<Arc<C>, Error> {
        if let Some(found) = self.made(|made| made.get(&spec).cloned()) {
            return Ok(found);
        }
        // Not under the lock: a constant may take others, and at worst one is made twice.
        let constant = Arc::new(C::make(self, &spec)?);
        Ok(self.made(|made| Arc::clone(made.entry(spec).or_insert(constant))))
    }

    /// What `f` makes of the constants of one kind that there are.
    fn made<C: Constant<B>, R>(&self, f: impl FnOnce(&mut HashMap<C::Spec, Arc<C>>) -> R) -> R {
        let mut constants = self.constants.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = constants.entry(TypeId::of::<C>()).or_insert_with(|| Box::new(HashMap::<C::Spec, Arc<C>>::new()));
        f(kind.downcast_mut().expect("a kind of constants has one type of map"))
    }
}
