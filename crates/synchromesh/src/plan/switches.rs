//! How a plan switches keys at each level: what its file says, the plans that makes, and the choice of them for a machine.

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::{LevelChoice, LevelPlans, Params, SwitchPlan};

use super::derived::scratch_bytes;
use super::key_bytes::key_bytes;
use super::memory::Forecast;
use super::search::Family;
use super::trace::Traced;
use super::{Description, Plan, SchemeName, SchemeParams, exact, real};
use crate::cost::{self, Candidate, IndexMap, Profile};
use crate::error::{Error, Result};
use crate::rotations::Routes;
use crate::{bfv, bgv};

/// Bits of noise that a level's switches may add to those of the plan for all levels. The circuit is certified anew, with
/// less where it fails.
const SLACKS: [f64; 3] = [1.0, 0.1, 0.001];

/// How one level switches keys.
///
/// The last four numbers choose among what one stored key can do ([`LevelChoice`]); where all of them are missing the level
/// has the digits and the special primes of the stored key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LevelSwitch {
    /// The level.
    pub level: usize,
    /// "ghs" for one digit, "hybrid" for more, "level-aware" where P borrows ciphertext primes, "bv" for one prime a digit,
    /// "double" and "linear" in an extended ring.
    pub method: String,
    /// Digits at this level.
    pub omega: usize,
    /// Primes in the largest digit.
    pub digit_primes: usize,
    /// Width of the widest prime in bits.
    pub width: u32,
    /// Digits of the key in an extended ring, where the inner product is computed in one (double decomposition and
    /// linear key switching); the key at rest is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omega2: Option<usize>,
    /// Neighbouring digits of the stored key that make one; none: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<usize>,
    /// Special primes of the stored key that P has; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedicated: Option<usize>,
    /// Ciphertext primes that P borrows; none: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub borrowed: Option<usize>,
    /// Predicted milliseconds of one relinearisation; none without a machine profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
}

impl LevelSwitch {
    /// What is written down of a plan.
    fn of(params: &Params, plan: &SwitchPlan, level: usize) -> Option<Self> {
        let primes = params.level(level).ok()?;
        let digits = plan.active_digits(primes);
        Some(Self {
            level,
            method: if digits.len() == 1 { "ghs" } else { "hybrid" }.to_owned(),
            omega: digits.len(),
            digit_primes: digits.iter().map(|(_, d)| d.len()).max().unwrap_or(0),
            width: primes.iter().map(|i| params.ring().modulus(i).bits()).max().unwrap_or(0),
            omega2: None,
            merged: None,
            dedicated: None,
            borrowed: None,
            predicted_ms: None,
        })
    }

    /// The same with what a choice has besides the stored key's own digits and primes.
    fn with(self, choice: LevelChoice, stored: &SwitchPlan, candidate: &Candidate) -> Self {
        let plain = LevelChoice::plain(stored);
        if choice == plain {
            return self;
        }
        let LevelChoice { merged, dedicated, borrowed, omega2 } = choice;
        Self {
            method: candidate.method().to_owned(),
            merged: Some(merged).filter(|&n| n != plain.merged),
            dedicated: Some(dedicated).filter(|&n| n != plain.dedicated),
            borrowed: Some(borrowed).filter(|&n| n != plain.borrowed),
            omega2,
            ..self
        }
    }

    /// Whether the level makes a choice.
    pub(super) fn chooses(&self, stored: &SwitchPlan) -> bool {
        self.choice(stored).is_some()
    }

    /// The choice, if the level makes one.
    fn choice(&self, stored: &SwitchPlan) -> Option<LevelChoice> {
        let plain = LevelChoice::plain(stored);
        let Self { omega2, merged, dedicated, borrowed, .. } = *self;
        let choice = LevelChoice {
            merged: merged.unwrap_or(plain.merged),
            dedicated: dedicated.unwrap_or(plain.dedicated),
            borrowed: borrowed.unwrap_or(plain.borrowed),
            omega2,
        };
        let any = [omega2, merged, dedicated, borrowed].iter().any(Option::is_some);
        any.then_some(choice)
    }
}

/// What each level does by these plans, under whichever secret key it is.
pub(super) fn described(params: &Params, plans: &LevelPlans) -> Vec<LevelSwitch> {
    // Checked when the parameters were made.
    let second = SwitchPlan::second(params).ok().flatten();
    let at = |level: usize| match (&second, params.second()) {
        (Some(plan), Some(set)) if level <= set.top_level => plan,
        _ => plans.at(level),
    };
    (0..=params.top_level()).filter_map(|level| LevelSwitch::of(params, at(level), level)).collect()
}

impl Plan {
    /// How keys are switched at each level, where a level differs in more than what is left of `plans`.
    pub(super) fn level_plans(&self, params: &Params, plans: &LevelPlans) -> Result<Option<LevelPlans>> {
        let stored = plans.at(params.top_level());
        let choices: Vec<Option<LevelChoice>> = self.choices(params, stored)?;
        if choices.iter().all(Option::is_none) {
            return Ok(None);
        }
        let at = |(level, choice): (usize, &Option<LevelChoice>)| -> Result<SwitchPlan> {
            let Some(choice) = choice else { return Ok(plans.at(level).clone()) };
            // Levels of one choice share a prepared key; a ring is made for its level.
            let highest = choices.iter().rposition(|other| other.as_ref() == Some(choice)).unwrap_or(level);
            Ok(choice.plan(params, stored, if choice.omega2.is_some() { level } else { highest })?)
        };
        let plans = choices.iter().enumerate().map(at).collect::<Result<_>>()?;
        Ok(Some(LevelPlans::new(params, plans)?))
    }

    /// The choice of each level under the first secret key.
    fn choices(&self, params: &Params, stored: &SwitchPlan) -> Result<Vec<Option<LevelChoice>>> {
        let mut choices = vec![None; params.top_level() + 1];
        let lowest = params.second().map_or(0, |second| second.top_level + 1);
        for switch in &self.switch {
            let Some(choice) = switch.choice(stored) else { continue };
            let Some(at) = choices.get_mut(switch.level).filter(|at| at.is_none() && switch.level >= lowest) else {
                return Err(Error::format(format!(
                    "the plan chooses how level {} switches keys: there can be one choice for each level from {lowest} to {}",
                    switch.level,
                    params.top_level()
                )));
            };
            *at = Some(choice);
        }
        Ok(choices)
    }

    /// Checks what a file says of each level against what it makes.
    pub(super) fn check_switches(&self, params: &Params, plans: &LevelPlans) -> Result<()> {
        let Some(all) = self.level_plans(params, plans)? else { return Ok(()) };
        let stored = plans.at(params.top_level());
        for switch in self.switch.iter().filter(|switch| switch.chooses(stored)) {
            // As far as this level goes: levels of one choice share a plan, which may have more digits.
            let active = params.level(switch.level)?;
            let candidate = Candidate::new(params, all.at(switch.level).clone().up_to(active), active);
            let made = (candidate.method(), candidate.omega(), candidate.digit_primes());
            if made != (switch.method.as_str(), switch.omega, switch.digit_primes) {
                return Err(Error::format(format!(
                    "the plan says that level {} switches keys by {}, {} digit(s) of {} prime(s); its choices make {}, {} of {}",
                    switch.level, switch.method, switch.omega, switch.digit_primes, made.0, made.1, made.2
                )));
            }
        }
        Ok(())
    }

    /// Chooses how each level switches keys by a profile: of all that the keys of this plan can do, and, where a budget of
    /// key bytes leaves room for keys stored in more digits, of what those can do (level-aware key switching, section 4.3).
    /// Nothing changes where nothing is predicted to be faster.
    pub(super) fn choose_switches(&mut self, description: &Description, profile: &Profile) -> Result<()> {
        let (params, plans) = self.params.plans()?;
        if params.second().is_some() {
            return Ok(());
        }
        let reference = plans.at(params.top_level()).clone();
        let mut tried: Vec<(f64, usize, Self)> = Vec::new();
        for omega in finer(&params, &reference, description.max_key_bytes.is_some()) {
            let request = Request { description, profile, reference: &reference };
            if let Some(plan) = self.with_stored(omega, &request)? {
                tried.push((plan.circuit_ms.unwrap_or(f64::INFINITY), omega, plan));
            }
        }
        tried.sort_by(|a, b| a.0.total_cmp(&b.0));
        let words = |(ms, omega, plan): &(f64, usize, Self)| {
            format!("{omega} stored digits {ms:.3} ms and {} bytes of keys", plan.key_bytes)
        };
        let line = tried.iter().map(words).collect::<Vec<_>>().join(", ");
        let (before, lines) = (self.circuit_ms.unwrap_or(f64::INFINITY), self.explain.len());
        let Some((ms, _, plan)) = tried.into_iter().next().filter(|(ms, ..)| *ms < before) else {
            self.explain.push(format!(
                "key switching by level: one plan for all levels, {before:.3} ms, is predicted to be the fastest; {line}"
            ));
            return Ok(());
        };
        *self = plan;
        let less = 100.0 * (1.0 - ms / before);
        let words = format!(
            "key switching by level: the circuit is predicted to take {less:.1} % less than with one plan for all levels, \
             {before:.3} ms; {line}"
        );
        self.explain.insert(lines, words);
        Ok(())
    }

    /// The plan with keys stored in `omega` digits, each level at its fastest; none beyond the budgets, or where no choice
    /// keeps the circuit's certificates.
    fn with_stored(&self, omega: usize, request: &Request<'_>) -> Result<Option<Self>> {
        let mut plan = self.clone();
        if omega != request.reference.digits.len() {
            plan.params = self.params.stored_in(omega);
        }
        let (params, plans) = plan.params.plans()?;
        let stored = plans.at(params.top_level()).clone();
        let (keys, Description { max_key_bytes, max_memory_bytes, .. }) = (plan.key_count(), request.description);
        let over = |budget: &Option<u64>, bytes: u64| budget.is_some_and(|most| bytes > most);
        plan.key_bytes = key_bytes(request.description.rotation_level, &params, &plans, keys)?;
        let memory = Forecast::new(request.description.depth > 0, &plan.params, &params, keys)?;
        if over(max_key_bytes, plan.key_bytes) || over(max_memory_bytes, memory.total_bytes) {
            return Ok(None);
        }
        plan.memory = Some(memory);
        plan.switch = described(&params, &plans);
        plan.scratch_bytes = scratch_bytes(&params, &stored);
        // What the prepared keys of one source may take.
        let prepared =
            max_memory_bytes.map(|most| (most - memory.total_bytes + memory.prepared_key_bytes) / keys as u64);
        for slack in SLACKS {
            let mut chosen = plan.clone();
            chosen.choose_levels((&params, &stored), request, (slack, prepared))?;
            if let Some(traced) = chosen.run_again(request.description)? {
                chosen.traced = traced;
                chosen.predict(request.profile)?;
                chosen.count_keys(request.description, &params, &plans)?;
                return Ok(Some(chosen));
            }
        }
        Ok(None)
    }

    /// Takes the fastest choice of each level whose noise is within `slack` bits of the reference's, with at most so many
    /// bytes of prepared keys for one source.
    fn choose_levels(
        &mut self,
        (params, stored): (&Params, &SwitchPlan),
        request: &Request<'_>,
        (slack, prepared): (f64, Option<u64>),
    ) -> Result<()> {
        let (mut choices, mut levels) = (Vec::new(), Vec::new());
        for level in 0..=params.top_level() {
            let mut found = cost::choices(params, stored, (request.reference, slack), level)?;
            // Keys stored in more digits than are asked for at most serve as they are merged.
            let most = request.description.max_digits.unwrap_or(usize::MAX);
            if found.iter().any(|(_, candidate)| candidate.omega() <= most) {
                found.retain(|(_, candidate)| candidate.omega() <= most);
            }
            let (choice, candidates): (Vec<LevelChoice>, Vec<Candidate>) = found.into_iter().unzip();
            choices.push(choice);
            levels.push(candidates);
        }
        let shape = self.shape();
        let price = |c: &Candidate| cost::predict(request.profile, params, &c.plan, [&c.active, &c.target], shape);
        let candidates = levels.clone();
        let map = IndexMap::choose(levels, prepared, price)?;
        for (switch, best) in self.switch.iter_mut().zip(&map.choices) {
            let candidate = &best.best;
            let Some(at) = candidates[best.level].iter().position(|c| c == candidate) else { continue };
            let Some(described) = LevelSwitch::of(params, &candidate.plan, best.level) else { continue };
            *switch = described.with(choices[best.level][at], stored, candidate);
        }
        self.explain.extend(map.explain());
        Ok(())
    }

    /// Runs the described circuit without data by the plan's own choices; none when a certificate fails.
    fn run_again(&self, description: &Description) -> Result<Option<Traced>> {
        fn run<F: Family>(family: &F, params: &F::Params, switches: usize) -> Result<Option<Traced>> {
            family.judge(params, switches)?.map(|_| family.trace(params, switches)).transpose()
        }
        let switches = self.routes.as_ref().map_or(1, Routes::switches);
        match self.scheme {
            SchemeName::Bfv => run(&exact::Exact::<bfv::Bfv>::new(description)?, &self.bfv()?, switches),
            SchemeName::Bgv => run(&exact::Exact::<bgv::Bgv>::new(description)?, &self.bgv()?, switches),
            SchemeName::Ckks => run(&real::Real::new(description), &self.ckks()?, switches),
        }
    }

    /// Counts the bytes of keys by the choices of the levels: prepared ones, and trimmed ones on the wire.
    fn count_keys(&mut self, description: &Description, params: &Params, plans: &LevelPlans) -> Result<()> {
        let Some(chosen) = self.level_plans(params, plans)? else { return Ok(()) };
        let keys = self.key_count();
        self.key_bytes = key_bytes(description.rotation_level, params, &chosen, keys)?;
        if let Some(memory) = &mut self.memory {
            memory.prepared(keys as u64 * chosen.prepared_bytes(params));
            let line = memory.explain();
            self.explain.iter_mut().filter(|old| old.starts_with("memory: ")).for_each(|old| old.clone_from(&line));
        }
        Ok(())
    }
}

/// What a choice is made for.
struct Request<'a> {
    description: &'a Description,
    profile: &'a Profile,
    /// The plan for all levels whose noise is certified.
    reference: &'a SwitchPlan,
}

/// Numbers of digits to store keys in: that of the plan; with `more` also digits of half as many primes, and of one.
fn finer(params: &Params, plan: &SwitchPlan, more: bool) -> Vec<usize> {
    let (l, omega) = (params.q().len(), plan.digits.len());
    let longest = plan.digits.iter().map(synchromesh_rlwe::ring::IndexSet::len).max().unwrap_or(1);
    let mut all = vec![omega];
    if more {
        all.extend([longest.div_ceil(2), 1].map(|size| l.div_ceil(size)));
    }
    all.dedup();
    all
}

impl SchemeParams {
    /// The same primes with keys stored in `omega` digits.
    fn stored_in(&self, omega: usize) -> Self {
        let mut params = self.clone();
        match &mut params {
            Self::Bfv(literal) | Self::Bgv(literal) => literal.omega = omega,
            Self::Ckks(literal) => literal.omega = omega,
        }
        params
    }
}
