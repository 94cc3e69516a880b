//! A context: checked parameters on a device, with every constant that depends on both cached.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use synchromesh_ring::scale::{Scale, ScaleSpec};
use synchromesh_ring::{Backend, Cpu, IndexSet};

use crate::error::Error;
use crate::key_switch::Switcher;
use crate::noise::{Noise, Origins};
use crate::observer::Observer;
use crate::params::Params;
use crate::switch_plan::SwitchPlan;

/// Values made once for each key and shared.
pub(crate) struct Cache<K, V>(Mutex<HashMap<K, Arc<V>>>);

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq, V> Cache<K, V> {
    /// The value for `key`, made by `make` the first time.
    pub(crate) fn get_or_make(&self, key: K, make: impl FnOnce() -> Result<V, Error>) -> Result<Arc<V>, Error> {
        let find = |map: &HashMap<K, Arc<V>>, key: &K| map.get(key).cloned();
        if let Some(value) = find(&self.0.lock().unwrap_or_else(PoisonError::into_inner), &key) {
            return Ok(value);
        }
        let made = Arc::new(make()?);
        Ok(Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert(made)))
    }
}

/// Parameters on a device.
pub struct Context<B: Backend = Cpu> {
    params: Params,
    backend: B,
    scales: Cache<ScaleSpec, Scale<B>>,
    switchers: Cache<(SwitchPlan, IndexSet, IndexSet), Switcher<B>>,
    /// Encryptions made so far.
    encryptions: AtomicU64,
    observer: Option<Arc<dyn Observer>>,
}

impl Context<Cpu> {
    /// The parameters on this machine's CPU.
    ///
    /// # Errors
    /// [`Error::Ring`] when `SYNCHROMESH_ISA` asks for what this CPU lacks.
    pub fn new(params: Params) -> Result<Arc<Self>, Error> {
        let backend = Cpu::open(Arc::clone(params.ring())).map_err(synchromesh_ring::Error::from)?;
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
        let (scales, switchers) = (Cache::default(), Cache::default());
        Arc::new(Self { params, backend, scales, switchers, encryptions: AtomicU64::new(0), observer })
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
        self.scales.get_or_make(spec.clone(), || Ok(Scale::new(&self.backend, spec)?))
    }

    /// The key switch of `plan` on the primes `active`, ending on the primes `target`.
    ///
    /// # Errors
    /// As [`Switcher::new`].
    pub fn switcher(&self, plan: &SwitchPlan, active: &IndexSet, target: &IndexSet) -> Result<Arc<Switcher<B>>, Error> {
        self.switchers
            .get_or_make((plan.clone(), active.clone(), target.clone()), || Switcher::new(self, plan, active, target))
    }
}
