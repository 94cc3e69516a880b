//! What a plan says of itself beside its parameters, held against them when it is read: nobody is to act on a number that
//! only a file knows.

use std::fmt::Debug;

use synchromesh_rlwe::noise::FailureLimit;
use synchromesh_rlwe::ring::IndexSet;
use synchromesh_rlwe::ring::threads::MOST_THREADS;
use synchromesh_rlwe::{LevelPlans, Params, SwitchPlan};

use super::key_bytes::key_bytes;
use super::memory::Forecast;
use super::switches::described;
use super::{MOST_NODES, MOST_ROTATION, Plan, SchemeName, SchemeParams, VERSION};
use crate::error::{Error, Result};
use crate::rotations::Routes;
use crate::{bfv, bgv, ckks};

/// By how much an estimate in a file may be off: it went through decimal text.
const ROUNDING: f64 = 1e-6;

/// Widths of primes in bits.
pub(super) fn widths(params: &Params, set: &IndexSet) -> Vec<u32> {
    set.iter().map(|i| params.ring().modulus(i).bits()).collect()
}

/// Bytes of temporary memory of one key switch at the top level.
pub(super) fn scratch_bytes(params: &Params, switch: &SwitchPlan) -> u64 {
    let limbs = params.q().len() + params.p().len();
    (8 * params.n() * ((switch.digits.len() + 2) * limbs + params.q().len())) as u64
}

/// What the security of the parameters is claimed against; nothing where they claim none.
pub(super) fn cost_model(params: &Params) -> Option<String> {
    let security = params.literal().security;
    security.level().map(|_| security.model().name().to_owned())
}

/// log2 of the failure probability of a decryption under the parameters of a plan.
pub(super) fn log2_p_fail(limit: FailureLimit) -> f64 {
    -f64::from(limit.log2_failure())
}

/// Fails unless the file says of `field` what the parameters make it.
fn hold<T: PartialEq + Debug>(field: &'static str, says: &T, makes: &T) -> Result<()> {
    if says == makes { Ok(()) } else { refuse(field, format!("{says:?}"), format!("{makes:?}")) }
}

/// Fails unless `good`, which is in words what the field must be.
fn demand(field: &'static str, says: impl Debug, good: bool, words: &str) -> Result<()> {
    if good { Ok(()) } else { refuse(field, format!("{says:?}"), words.to_owned()) }
}

fn refuse(field: &'static str, says: String, makes: String) -> Result<()> {
    Err(Error::PlanField { field, says, makes })
}

/// A time or a number of bits: no infinity, nothing negative.
fn is_size(x: f64) -> bool {
    x.is_finite() && x >= 0.0
}

impl SchemeParams {
    /// The scheme that they are for.
    pub(super) const fn scheme(&self) -> SchemeName {
        match self {
            Self::Bfv(_) => SchemeName::Bfv,
            Self::Bgv(_) => SchemeName::Bgv,
            Self::Ckks(_) => SchemeName::Ckks,
        }
    }

    /// Slots of a ciphertext; 0 where t allows none.
    fn slots(&self, rlwe: &Params) -> Result<usize> {
        let supports = |t: &crate::plain_modulus::PlainModulus| t.supports_slots(rlwe.ring().log_n());
        let has = match self {
            Self::Bfv(literal) => supports(bfv::Params::new(literal.clone())?.t()),
            Self::Bgv(literal) => supports(bgv::Params::new(literal.clone())?.t()),
            Self::Ckks(literal) => return Ok(ckks::Params::new(literal.clone())?.slots()),
        };
        Ok(if has { rlwe.n() } else { 0 })
    }
}

impl Plan {
    /// Fails for a field that is not what the parameters make it, and computes those anew that older versions lack.
    pub(super) fn check_derived(&mut self, params: &Params, plans: &LevelPlans) -> Result<()> {
        self.check_sizes(params)?;
        self.check_rotations(params)?;
        self.check_keys(params, plans)?;
        self.check_levels(params, plans)?;
        self.check_predictions(params)
    }

    fn check_sizes(&mut self, params: &Params) -> Result<()> {
        hold("scheme", &self.scheme, &self.params.scheme())?;
        hold("log_n", &self.log_n, &params.ring().log_n())?;
        hold("slots", &self.slots, &self.params.slots(params)?)?;
        hold("q_bits", &self.q_bits, &widths(params, params.q()))?;
        hold("p_bits", &self.p_bits, &widths(params, params.p()))?;
        hold("log_qp", &self.log_qp, &params.log_qp())?;
        let limits = FailureLimit::ALL.map(log2_p_fail);
        demand("log2_p_fail", self.log2_p_fail, limits.contains(&self.log2_p_fail), &format!("one of {limits:?}"))?;
        // An estimate, which another version may make better: never more than this one finds.
        let bits = self.least_security(params)?;
        let words = format!("{bits} or less");
        demand("security_bits", self.security_bits, self.security_bits <= bits + ROUNDING, &words)?;
        self.security_bits = bits;
        let model = cost_model(params);
        if self.cost_model.is_some() {
            hold("cost_model", &self.cost_model, &model)?;
        }
        self.cost_model = model;
        // Each multiplication takes a level of CKKS, and a bit of any modulus.
        let deepest = match self.scheme {
            SchemeName::Ckks if self.bootstrap.is_some() => self.usable_levels()?,
            SchemeName::Ckks => params.top_level(),
            SchemeName::Bfv | SchemeName::Bgv => params.log_qp() as usize,
        };
        demand("depth", self.depth, self.depth <= deepest, &format!("at most {deepest}"))
    }

    /// Steps that there are, and routes that come to them.
    fn check_rotations(&self, params: &Params) -> Result<()> {
        let near = |k: &i64| k.unsigned_abs() <= MOST_ROTATION;
        let most = 2 * params.n();
        demand("rotations", self.rotations.len(), self.rotations.len() <= most, &format!("at most {most} steps"))?;
        let far = self.rotations.iter().find(|k| !near(k));
        demand("rotations", far, far.is_none(), &format!("steps of at most {MOST_ROTATION}"))?;
        let Some(routes) = &self.routes else { return Ok(()) };
        let good = routes.keys().iter().all(near) && routes.make(&self.rotations, params.n() / 2);
        demand("routes", routes, good, "sums of steps with keys, for all rotations and nothing else")
    }

    /// Bytes of keys and memory.
    fn check_keys(&mut self, params: &Params, plans: &LevelPlans) -> Result<()> {
        let keys = self.key_count();
        let chosen = self.level_plans(params, plans)?;
        let refreshing = self.refreshing_keys()?;
        let bytes = match &refreshing {
            Some((keys, _)) => keys.wire,
            None => key_bytes(self.rotation_level, params, chosen.as_ref().unwrap_or(plans), keys)?,
        };
        let scratch = scratch_bytes(params, plans.at(params.top_level()));
        if self.version < VERSION {
            // Earlier versions counted otherwise, or not at all.
            (self.key_bytes, self.scratch_bytes, self.memory) = (bytes, scratch, None);
        }
        hold("key_bytes", &self.key_bytes, &bytes)?;
        hold("scratch_bytes", &self.scratch_bytes, &scratch)?;
        let mut least = match &refreshing {
            Some((keys, ring)) => Forecast::for_refreshes(&self.params, params, keys, ring.as_ref())?,
            None => Forecast::new(self.depth > 0, &self.params, params, keys)?,
        };
        if let Some(chosen) = &chosen {
            least.prepared(keys as u64 * chosen.prepared_bytes(params));
        }
        let memory = *self.memory.get_or_insert(least);
        hold("memory.table_bytes", &memory.table_bytes, &least.table_bytes)?;
        hold("memory.key_bytes", &memory.key_bytes, &least.key_bytes)?;
        hold("memory.prepared_key_bytes", &memory.prepared_key_bytes, &least.prepared_key_bytes)?;
        // A circuit may take more than a multiplication.
        let words = format!("{} or more", least.working_bytes);
        demand("memory.working_bytes", memory.working_bytes, memory.working_bytes >= least.working_bytes, &words)?;
        let parts = [memory.table_bytes, memory.key_bytes, memory.prepared_key_bytes, memory.working_bytes];
        hold("memory.total_bytes", &memory.total_bytes, &parts.into_iter().fold(0, u64::saturating_add))
    }

    /// How keys are switched at levels that choose nothing of their own; those that do are checked with their choices.
    fn check_levels(&self, params: &Params, plans: &LevelPlans) -> Result<()> {
        let made = described(params, plans);
        hold("switch", &self.switch.len(), &made.len())?;
        let stored = plans.at(params.top_level());
        for (says, mut makes) in self.switch.iter().zip(made) {
            makes.predicted_ms = says.predicted_ms;
            if says.level != makes.level || !says.chooses(stored) {
                hold("switch", says, &makes)?;
            }
        }
        Ok(())
    }

    /// Times and nodes, which nothing but reports are made of.
    fn check_predictions(&self, params: &Params) -> Result<()> {
        let good = |x: Option<f64>| x.is_none_or(is_size);
        let switches = self.switch.iter().map(|switch| switch.predicted_ms);
        for ms in [self.predicted_ms, self.circuit_ms].into_iter().chain(switches) {
            demand("predicted_ms", ms, good(ms), "a time")?;
        }
        let threads = self.predicted_threads.is_none_or(|threads| (1..=MOST_THREADS).contains(&threads));
        demand("predicted_threads", self.predicted_threads, threads, "a number of threads")?;
        demand("nodes", self.nodes.len(), self.nodes.len() <= MOST_NODES, &format!("at most {MOST_NODES}"))?;
        let node = self.nodes.iter().find(|node| {
            let inside = node.level <= params.top_level() && (2..=3).contains(&node.components);
            !(inside && is_size(node.modulus_bits) && node.noise_bits.is_finite() && good(node.predicted_ms))
        });
        demand("nodes", node, node.is_none(), "ciphertexts of these parameters")?;
        let exact = self.scheme != SchemeName::Ckks;
        demand("bootstrap", self.bootstrap.is_some(), self.bootstrap.is_none() || !exact, "for ckks only")?;
        demand("inside", self.inside.is_some(), self.inside.is_none() || exact, "for bfv and bgv only")?;
        let most = if self.bootstrap.is_some() { MOST_NODES } else { 0 };
        demand("refreshes", self.refreshes.len(), self.refreshes.len() <= most, &format!("at most {most}"))
    }

    /// Keys there are: one for products, the rotations', of which those of one automorphism are one, and the swap's.
    pub(super) fn key_count(&self) -> usize {
        let direct = || Routes::direct(&self.rotations, 1 << (self.log_n - 1)).keys().len();
        1 + self.routes.as_ref().map_or_else(direct, |routes| routes.keys().len()) + usize::from(self.swap)
    }
}
