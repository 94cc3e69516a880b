//! Plans of BFV and BGV whose ciphertexts are refreshed: their parameters and the ring of CKKS that refreshes run in, under a
//! description's budgets.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::ring::{Backend, Dry, Ring};
use synchromesh_rlwe::{Observer, Params, Randomness};

use super::bootstrap::{ExactBootstrapRequest, ExactForecast, ExactFound};
use super::exact::Exact;
use super::memory::Forecast;
use super::refreshing::{KeyForecast, over_budget};
use super::search::Family;
use super::{DEFAULT_T, Description, Plan, dry, search};
use crate::ckks;
use crate::cost::Profile;
use crate::error::{Error, Result};
use crate::exact::bootstrap::{Bootstrap, BootstrapLiteral};
use crate::exact::{self, Context, Evaluator, Rotations, Scheme};
use crate::rotations::Routes;

/// How ciphertexts of BFV or BGV are refreshed: their error is bootstrapped in a ring of CKKS over more primes (ePrint
/// 2024/109).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inside {
    /// The ring.
    pub ring: ckks::ParamsLiteral,
    /// What a refresh does.
    pub bootstrap: BootstrapLiteral,
}

impl Inside {
    /// The ring's parameters.
    fn params(&self) -> Result<ckks::Params> {
        ckks::Params::new(self.ring.clone())
    }
}

impl Description {
    /// The plan of parameters with refreshes, at one degree, if there are any that keep the budgets.
    pub(super) fn refreshing_exact<S: Scheme>(
        &self,
        log_n: u32,
        baby_steps: &[Option<usize>],
        profile: Option<&Profile>,
    ) -> Result<Plan> {
        let t = self.t.as_deref().unwrap_or(DEFAULT_T).to_owned();
        let products = u32::try_from(self.depth.max(1)).unwrap_or(u32::MAX);
        let request = ExactBootstrapRequest { log_n, t, products, baby_steps: None, security: self.security };
        let first = self.exact_plan::<S>(&request, request.find::<S>(profile)?);
        // With fewer baby steps where its keys are too many.
        baby_steps.iter().fold(first, |made, &baby_steps| {
            if !matches!(made, Err(Error::NoPlan { .. })) {
                return made;
            }
            let request = ExactBootstrapRequest { baby_steps, ..request.clone() };
            self.exact_plan::<S>(&request, request.find::<S>(profile)?)
        })
    }

    fn exact_plan<S: Scheme>(&self, request: &ExactBootstrapRequest, found: ExactFound) -> Result<Plan> {
        let ExactFound { ring, params, bootstrap, forecast, .. } = found;
        let params = exact::Params::<S>::new(params)?;
        let inside = Inside { ring, bootstrap };
        let rotations = Rotations { by: self.rotations.clone(), swap: self.swap };
        let (keys, ring) = (keys(&params, &inside, &rotations)?, inside.params()?);
        let literal = Exact::<S>::literal(&params);
        let mut memory = Forecast::for_refreshes(&literal, params.rlwe(), &keys, Some(ring.rlwe()))?;
        memory.raise(forecast.peak_bytes);
        over_budget(self, request.log_n, &keys, &memory)?;
        let explain = explained(S::NAME, request, &forecast, &keys, &memory);
        let mut plan = Plan::new(
            &Self { depth: request.products as usize, ..self.clone() },
            search::Found {
                params: literal,
                rlwe: params.rlwe().clone(),
                switch: params.plan().clone(),
                slots: if params.t().supports_slots(request.log_n) { params.n() } else { 0 },
                routes: Routes::direct(&self.rotations, params.n() / 2),
                key_bytes: keys.wire,
                memory,
                traced: super::Traced::default(),
                explain,
            },
        );
        plan.security_bits = plan.security_bits.min(ring.rlwe().security_bits());
        plan.inside = Some(inside);
        Ok(plan)
    }
}

/// Keys for products, these rotations and refreshes, made without data.
fn keys<S: Scheme>(params: &exact::Params<S>, inside: &Inside, rotations: &Rotations) -> Result<KeyForecast> {
    let evaluator = around(params.clone(), inside, (dry(params.rlwe()), None), |ring| Ok(Dry::new(Arc::clone(ring))))?;
    let mut randomness = Randomness::insecure_from_number(0);
    let (secret, _) = evaluator.context().generate_keys(&mut randomness)?;
    Ok(KeyForecast::of(&evaluator.generate_keys(&secret, rotations, &mut randomness)?, params.rlwe()))
}

/// An evaluator without keys that refreshes in a ring on a device which `open` opens.
fn around<S: Scheme, B: Backend>(
    params: exact::Params<S>,
    inside: &Inside,
    (backend, observer): (B, Option<Arc<dyn Observer>>),
    open: impl FnOnce(&Arc<Ring>) -> Result<B>,
) -> Result<Evaluator<S, B>> {
    let ring = inside.params()?;
    let bootstrap = Bootstrap::new(&params, &ring, inside.bootstrap.clone())?;
    let device = open(ring.rlwe().ring())?;
    let ring = ckks::Context::with_backend(ring, device)?;
    let context = Context::around(params, backend, observer, &ring)?;
    Evaluator::new(&context, None).with_bootstrap(bootstrap, &ring)
}

impl Plan {
    /// The evaluator without keys, with what the plan says of refreshes; `open` opens a device for the ring of these.
    pub(crate) fn on_exact<S: Scheme, B: Backend>(
        &self,
        params: exact::Params<S>,
        (backend, observer): (B, Option<Arc<dyn Observer>>),
        open: impl FnOnce(&Arc<Ring>) -> Result<B>,
    ) -> Result<Evaluator<S, B>> {
        match &self.inside {
            Some(inside) => around(params, inside, (backend, observer), open),
            None => Ok(Evaluator::new(&Context::observed(params, backend, observer)?, None)),
        }
    }

    /// The keys of a plan of the scheme S with refreshes, and the parameters of their ring.
    pub(super) fn inside_keys<S: Scheme>(&self, inside: &Inside) -> Result<(KeyForecast, Params)> {
        let rotations = Rotations { by: self.rotation_keys().to_vec(), swap: self.swap };
        Ok((keys(&self.exact::<S>()?, inside, &rotations)?, inside.params()?.rlwe().clone()))
    }

    /// The security of the parameters in bits: the least of all rings'.
    pub(super) fn least_security(&self, params: &Params) -> Result<f64> {
        let inside = self.inside.as_ref().map(Inside::params).transpose()?;
        Ok(inside.map_or(params.security_bits(), |ring| params.security_bits().min(ring.rlwe().security_bits())))
    }
}

/// Why the parameters are as they are, and what a refresh is like.
fn explained(
    scheme: &str,
    request: &ExactBootstrapRequest,
    forecast: &ExactForecast,
    keys: &KeyForecast,
    memory: &Forecast,
) -> Vec<String> {
    let ExactForecast { passes, bits_per_pass, budget_bits, left_bits, least_bits, .. } = forecast;
    let seconds = forecast.seconds.map_or_else(String::new, |seconds| format!(", {seconds:.1} s"));
    vec![
        format!(
            "N = 2^{}: log Q = {:.0} for {scheme} and log QP = {} for the ring of its refreshes, {:.0} bits of security",
            request.log_n, forecast.log_q, forecast.log_qp, forecast.security_bits
        ),
        format!(
            "refresh: {passes} passes of {bits_per_pass:.1} bits take a noise budget from {least_bits:.1} bits, the least that \
             can be refreshed, to {budget_bits:.1}{seconds}"
        ),
        format!("{} products in a row between two refreshes leave {left_bits:.1} bits", request.products),
        format!(
            "keys: {} of {} bytes, for refreshes {} of {} bytes; {}",
            keys.count,
            keys.wire,
            forecast.keys,
            forecast.key_bytes,
            request.baby_steps.map_or_else(
                || "as many baby steps as are fastest".to_owned(),
                |steps| format!("{steps} baby steps of each map, for fewer keys")
            )
        ),
        memory.explain(),
    ]
}
