//! Plans whose ciphertexts are refreshed: parameters for bootstrapping under a description's budgets, with the keys and the
//! memory that they take.

use synchromesh_rlwe::noise::FailureLimit;
use synchromesh_rlwe::ring::Backend;
use synchromesh_rlwe::{EvaluationKeys, Params, Randomness};

use super::bootstrap::{BootstrapRequest, Found, RefreshForecast};
use super::memory::Forecast;
use super::{DEFAULT_T, Description, Limit, Nearest, PRECISION, Plan, SchemeName, SchemeParams, dry, search};
use crate::bfv::Bfv;
use crate::bgv::Bgv;
use crate::ckks::bootstrap::Bootstrap;
use crate::ckks::{Context, Evaluator};
use crate::cost::Profile;
use crate::error::{Error, Result};
use crate::plain_modulus::PlainModulus;
use crate::rotations::{Rotations, Routes};

/// log2 of the ring degrees that are tried with security, and without.
const DEGREES: [std::ops::RangeInclusive<u32>; 2] = [15..=17, 11..=17];

/// By how many bits the scale between two refreshes exceeds the precision: a product at N = 2^16 is certified to be off by
/// less than a refresh.
const BELOW_PRECISION: u32 = 24;

/// Bits that a round of a refresh keeps without another one, at the least, before there are two of them.
const LEAST_BY_ROUND: u32 = 10;

/// Levels between two refreshes, at the least, where their number is left open: with fewer a larger ring takes less time in all,
/// as it refreshes less often.
const LEAST_OPEN: usize = 4;

/// Baby steps of each map that are tried where keys or memory are limited.
const BABY_STEPS: [Option<usize>; 4] = [Some(16), Some(8), Some(4), FEWEST_BABY_STEPS];

/// The fewest of them.
const FEWEST_BABY_STEPS: Option<usize> = Some(2);

/// Keys as they will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyForecast {
    /// How many, those of the sparse secret included.
    pub(super) count: usize,
    /// Bytes of their file.
    pub(super) wire: u64,
    /// Bytes of them in memory.
    pub(super) held: u64,
    /// Bytes of them as they are computed with: both halves, in words.
    pub(super) prepared: u64,
}

impl KeyForecast {
    /// The keys for bootstrapping and for these rotations, made without data.
    pub(super) fn new(bootstrap: &Bootstrap, rotations: &Rotations) -> Result<Self> {
        let params = bootstrap.params();
        let context = Context::with_backend(params.clone(), dry(params.rlwe()))?;
        let mut randomness = Randomness::insecure_from_number(0);
        let (secret, _) = context.generate_keys(&mut randomness)?;
        Ok(Self::of(&bootstrap.generate_keys(&context, &secret, rotations, &mut randomness)?, params.rlwe()))
    }

    /// These keys, of these parameters.
    pub(super) fn of<B: Backend>(keys: &EvaluationKeys<B>, params: &Params) -> Self {
        let sets = || std::iter::once(keys).chain(keys.inside().map(|inside| &**inside));
        let all =
            || sets().flat_map(|keys| keys.iter().chain(keys.sparse().into_iter().flat_map(|sparse| sparse.iter())));
        let held: u64 = all().map(|key| 8 * (key.b().len() * key.part().primes().len() * params.n()) as u64).sum();
        Self { count: all().count(), wire: keys.wire_bytes(params), held, prepared: 2 * held }
    }
}

impl Description {
    /// Parameters with refreshes of messages of this bound, at the smallest degree that has them; with as many baby steps as
    /// the budgets allow.
    pub(super) fn plan_refreshing(&self, bound: f64, profile: Option<&Profile>) -> Result<Plan> {
        self.check_refreshing()?;
        let mut last = Error::request(format!("no ring for bootstrapping has {} slots", self.min_slots));
        for log_n in DEGREES[usize::from(self.security.level().is_none())].clone() {
            if self.slots(log_n)? < self.min_slots {
                continue;
            }
            let made = match self.scheme {
                SchemeName::Bfv => self.refreshing_exact::<Bfv>(log_n, &BABY_STEPS, profile),
                SchemeName::Bgv => self.refreshing_exact::<Bgv>(log_n, &BABY_STEPS, profile),
                SchemeName::Ckks => self.refreshing_real(log_n, bound, profile),
            };
            match made {
                Err(error @ Error::Request { .. }) => last = error,
                made => return made,
            }
        }
        Err(last)
    }

    /// Slots of a ciphertext at a degree.
    fn slots(&self, log_n: u32) -> Result<usize> {
        if self.scheme == SchemeName::Ckks {
            return Ok(1 << (log_n - 1));
        }
        let t: PlainModulus = self.t.as_deref().unwrap_or(DEFAULT_T).parse()?;
        Ok(if t.supports_slots(log_n) { 1 << log_n } else { 0 })
    }

    /// The plan for CKKS at one degree.
    fn refreshing_real(&self, log_n: u32, bound: f64, profile: Option<&Profile>) -> Result<Plan> {
        let precision = self.precision.unwrap_or(PRECISION);
        let log_scale = (precision + BELOW_PRECISION).min(60);
        let mut request = BootstrapRequest {
            levels: (self.depth > 0).then_some(self.depth),
            messages: self.messages,
            message_bound: bound,
            security: self.security,
            ..BootstrapRequest::new(log_n, log_scale, precision)
        };
        // As few rounds as do.
        let mut found = self.found_for(&request, profile);
        while matches!(found, Err(Error::Request { .. })) && precision > request.rounds * LEAST_BY_ROUND {
            request.rounds += 1;
            found = self.found_for(&request, profile);
        }
        let cheapest = found?.swap_remove(0);
        match self.refreshing(&request, cheapest) {
            Err(refusal @ Error::NoPlan { .. }) => self.within_budgets(&request, profile, refusal),
            made => made,
        }
    }

    /// What serves a request, the least cost first, with so many levels as a plan is to have; at least one.
    fn found_for(&self, request: &BootstrapRequest, profile: Option<&Profile>) -> Result<Vec<Found>> {
        let mut found = request.find_all(profile)?;
        let most = found.iter().map(|found| found.forecast.usable_levels).max().unwrap_or(0);
        if self.depth == 0 {
            found.retain(|found| found.forecast.usable_levels >= LEAST_OPEN);
        }
        if found.is_empty() {
            return Err(Error::request(format!(
                "{most} levels between two refreshes at N = 2^{}, where {LEAST_OPEN} are the least unless a depth is said",
                request.log_n
            )));
        }
        Ok(found)
    }

    /// The plan of the least cost that keeps the budgets, with fewer baby steps and, where levels are open, fewer levels than
    /// what was refused; or the refusal that comes nearest.
    fn within_budgets(
        &self,
        request: &BootstrapRequest,
        profile: Option<&Profile>,
        mut refusal: Error,
    ) -> Result<Plan> {
        // Rotations one after another are a little less precise: what serves with the fewest baby steps does with more.
        let fewest = BootstrapRequest { baby_steps: FEWEST_BABY_STEPS, ..request.clone() };
        let found = match self.found_for(&fewest, profile) {
            Err(Error::Request { .. }) => return Err(refusal),
            found => found?,
        };
        let mut choices = Vec::new();
        for baby_steps in BABY_STEPS.into_iter().filter(|steps| *steps != FEWEST_BABY_STEPS) {
            for found in &found {
                choices.push(found.with_baby_steps(baby_steps, profile)?);
            }
        }
        choices.extend(found);
        let size = |found: &Found| found.forecast.peak_bytes;
        choices.sort_by_key(size);
        let (smallest, mut others) = (choices[0].clone(), choices);
        // Keys of the plan's own rotations come on top.
        let most_memory = self.max_memory_bytes.unwrap_or(u64::MAX);
        let most_keys = self.max_key_bytes.unwrap_or(u64::MAX);
        others.retain(|found| size(found) <= most_memory && found.forecast.key_bytes <= most_keys);
        others.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
        for found in others.into_iter().chain([smallest]) {
            let request = BootstrapRequest { baby_steps: found.bootstrap.baby_steps, ..request.clone() };
            match self.refreshing(&request, found) {
                Err(refused @ Error::NoPlan { .. }) => refusal = refused,
                made => return made,
            }
        }
        Err(refusal)
    }

    /// Fails for what does not go together with refreshes.
    fn check_refreshing(&self) -> Result<()> {
        let chosen = [
            ("a width of primes", self.width.is_some()),
            ("a number of digits", self.max_digits.is_some()),
            ("prime switching", self.prime_switching.is_some()),
            ("a second secret key", self.leading_levels > 0),
            ("a level for rotations", self.rotation_level.is_some()),
            ("a failure probability", self.failure != FailureLimit::default()),
        ];
        match chosen.iter().find(|(_, named)| *named) {
            Some((what, _)) => Err(Error::request(format!("{what} and bootstrapping, which chooses its own"))),
            None => Ok(()),
        }
    }

    /// The plan of parameters that were found, if they keep the budgets.
    fn refreshing(&self, request: &BootstrapRequest, found: Found) -> Result<Plan> {
        let Found { params, bootstrap: literal, forecast, .. } = found;
        let params = crate::ckks::Params::new(params)?;
        let bootstrap = Bootstrap::new(&params, literal.clone())?;
        let rotations = Rotations { by: self.rotations.clone(), swap: true };
        let keys = KeyForecast::new(&bootstrap, &rotations)?;
        let scheme = SchemeParams::Ckks(params.literal().clone());
        let mut memory = Forecast::for_refreshes(&scheme, params.rlwe(), &keys, None)?;
        memory.raise(forecast.peak_bytes);
        over_budget(self, request.log_n, &keys, &memory)?;
        let explain = explained(request, &forecast, &keys, &memory);
        let direct = Routes::direct(&self.rotations, params.slots());
        let mut plan = Plan::new(
            &Self { depth: forecast.usable_levels, swap: true, ..self.clone() },
            search::Found {
                params: scheme,
                rlwe: params.rlwe().clone(),
                switch: params.plan().clone(),
                slots: params.slots(),
                routes: direct,
                key_bytes: keys.wire,
                memory,
                traced: super::Traced::default(),
                explain,
            },
        );
        plan.bootstrap = Some(literal);
        Ok(plan)
    }
}

/// Fails where keys or memory are above the description's budgets.
pub(super) fn over_budget(description: &Description, log_n: u32, keys: &KeyForecast, memory: &Forecast) -> Result<()> {
    let refuse = |limit, reason, nearest| Err(Error::NoPlan { limit, reason, nearest: Some(nearest) });
    if description.max_key_bytes.is_some_and(|most| keys.wire > most) {
        let reason = format!("N = 2^{log_n} needs {} bytes for {} keys", keys.wire, keys.count);
        return refuse(Limit::KeyBytes, reason, Nearest::KeyBytes(keys.wire));
    }
    if description.max_memory_bytes.is_some_and(|most| memory.total_bytes > most) {
        let needed = memory.total_bytes;
        let reason = format!("refreshes at N = 2^{log_n} take {needed} bytes of memory");
        return refuse(Limit::Memory, reason, Nearest::MemoryBytes(needed));
    }
    Ok(())
}

/// Why the parameters are as they are, and what a refresh is like.
fn explained(
    request: &BootstrapRequest,
    forecast: &RefreshForecast,
    keys: &KeyForecast,
    memory: &Forecast,
) -> Vec<String> {
    let mut lines = vec![
        format!(
            "N = 2^{}: log QP = {}, {:.0} bits of security; level 0 to the level of a refreshed message, {} levels and {:.0} \
             bits to compute with",
            request.log_n, forecast.log_qp, forecast.security_bits, forecast.usable_levels, forecast.usable_bits
        ),
        format!(
            "refresh: {} messages up to {} keep {:.1} bits by the certificate{}, {} were asked for",
            request.messages.name(),
            request.message_bound,
            forecast.precision_bits,
            if request.rounds > 1 { format!(", in {} rounds", request.rounds) } else { String::new() },
            request.precision
        ),
        format!(
            "keys: {} of {} bytes, each as far as the levels it switches at need it; {}",
            keys.count,
            keys.wire,
            request.baby_steps.map_or_else(
                || "as many baby steps as are fastest".to_owned(),
                |steps| format!("{steps} baby steps of each map, for fewer keys")
            )
        ),
    ];
    lines.extend(forecast.stages.iter().map(|stage| {
        let time = stage.seconds.map_or_else(String::new, |seconds| format!(", {seconds:.2} s"));
        format!("{}: down to level {}, {} ciphertexts{time}", stage.stage.name(), stage.level, stage.nodes.len())
    }));
    lines.push(memory.explain());
    lines
}

impl Plan {
    /// The evaluator with what the plan says of rotations and refreshes.
    pub(crate) fn on_ckks<B: Backend>(&self, evaluator: Evaluator<B>) -> Result<Evaluator<B>> {
        let evaluator = evaluator.with_routes(self.routes.clone().map(std::sync::Arc::new));
        match &self.bootstrap {
            Some(literal) => {
                let bootstrap = Bootstrap::new(evaluator.context().params(), literal.clone())?;
                let placed = self.refreshes.iter().map(|placed| placed.value);
                Ok(evaluator.with_bootstrap(bootstrap)?.with_refreshes(placed))
            }
            None => Ok(evaluator),
        }
    }

    /// Levels between two refreshes, in a plan that has them.
    pub(super) fn usable_levels(&self) -> Result<usize> {
        let Some(literal) = &self.bootstrap else { return Ok(0) };
        Ok(Bootstrap::new(&self.ckks()?, literal.clone())?.usable_levels())
    }

    /// The keys of a plan with refreshes, and the parameters of a ring of its own that they run in.
    pub(super) fn refreshing_keys(&self) -> Result<Option<(KeyForecast, Option<Params>)>> {
        if let Some(inside) = &self.inside {
            let (keys, ring) = match self.scheme {
                SchemeName::Bfv => self.inside_keys::<Bfv>(inside)?,
                SchemeName::Bgv => self.inside_keys::<Bgv>(inside)?,
                SchemeName::Ckks => {
                    return Err(Error::format("a plan for ckks names a ring that only bfv and bgv have"));
                }
            };
            return Ok(Some((keys, Some(ring))));
        }
        let Some(literal) = &self.bootstrap else { return Ok(None) };
        let bootstrap = Bootstrap::new(&self.ckks()?, literal.clone())?;
        let rotations = Rotations { by: self.rotation_keys().to_vec(), swap: true };
        Ok(Some((KeyForecast::new(&bootstrap, &rotations)?, None)))
    }
}
