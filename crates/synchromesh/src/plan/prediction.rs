//! What a plan takes on a machine: one multiplication by the scheme's own evaluator, and a key switch at each level.

use std::sync::Arc;

use synchromesh_rlwe::noise::FailureLimit;
use synchromesh_rlwe::ring::ledger::Entries;
use synchromesh_rlwe::{PrimeSwitching, Randomness};

use super::{Description, Plan, SchemeName, SchemeParams};
use crate::cost::{self, Candidate, DryLedger, IndexMap, Op, Profile, Shape, recorder};
use crate::error::{Error, Result};
use crate::{bfv, bgv, ckks, exact};

/// Widths that a plan is tried with: the widest of each class of primes.
const TRIED: [u32; 2] = [50, 60];

/// A choice, in words, and the requests that differ in it; the first is how it is.
type Question = (&'static str, Vec<(String, Description)>);

/// The widest prime.
fn widths(now: &Description) -> Option<Question> {
    let wide = |&width: &u32| (format!("up to {width} bits"), Description { width: Some(width), ..now.clone() });
    now.width.is_none().then(|| ("prime width", TRIED.iter().map(wide).collect()))
}

/// Mostly large primes (ePrint 2023/1642, section 3.7).
fn switching(now: &Description) -> Option<Question> {
    let rule = |(mu, kappa): (usize, usize)| {
        let prime_switching = PrimeSwitching::new(mu, kappa).ok();
        (format!("{mu} large for {kappa} small"), Description { prime_switching, ..now.clone() })
    };
    let rules = [("one width a level".to_owned(), now.clone())].into_iter().chain([(1, 2), (2, 3)].map(rule));
    let open = now.prime_switching.is_none() && now.depth > 1 && !now.static_levels;
    open.then(|| ("prime switching", rules.collect()))
}

/// A second secret key (section 3.6 there).
fn second_key(now: &Description) -> Option<Question> {
    let second = Description { leading_levels: 1, ..now.clone() };
    let options = vec![("none".to_owned(), now.clone()), ("below the top level".to_owned(), second)];
    (now.leading_levels == 0 && now.depth > 1).then_some(("second secret key", options))
}

/// A raise of N for fewer digits (section 3.5 there).
fn raise(now: &Description) -> Option<Question> {
    let few = Description { max_digits: Some(2), ..now.clone() };
    let options =
        vec![("any number".to_owned(), now.clone()), ("at most 2, with a larger N if need be".to_owned(), few)];
    now.max_digits.is_none().then_some(("digits", options))
}

/// The plan whose circuit is predicted to be the fastest, each choice made after the one before, with why.
pub(super) fn fastest(description: &Description, profile: &Profile) -> Result<Plan> {
    let (mut request, mut lines) = (description.clone(), Vec::new());
    let mut best: Option<Plan> = None;
    for question in [widths, switching, second_key, raise] {
        let Some((what, options)) = question(&request) else { continue };
        let mut tried: Vec<(f64, String, Description, Plan)> = Vec::new();
        let mut refused = None;
        for (words, option) in options {
            // The first option after the first question is what is planned already.
            let plan = match best.take_if(|_| option == request) {
                Some(plan) => Ok(plan),
                None => option.plan_at(Some(profile)),
            };
            match plan {
                Ok(plan) => tried.push((plan.circuit_ms.unwrap_or(f64::INFINITY), words, option, plan)),
                Err(e) => refused = Some(e),
            }
        }
        tried.sort_by(|a, b| a.0.total_cmp(&b.0));
        let words = |(ms, words, _, plan): &(f64, String, Description, Plan)| {
            format!("{words} {ms:.3} ms at N = 2^{}", plan.log_n)
        };
        let line = tried.iter().map(words).collect::<Vec<_>>().join(", ");
        let none = || refused.unwrap_or_else(|| Error::request("no choice fits"));
        let (_, _, option, plan) = tried.into_iter().next().ok_or_else(none)?;
        lines.push(format!("{what}: the circuit is predicted to take with {line}"));
        (request, best) = (option, Some(plan));
    }
    let mut plan = best.map_or_else(|| description.plan_at(Some(profile)), Ok)?;
    plan.explain.extend(lines);
    plan.choose_switches(&request, profile)?;
    Ok(plan)
}

impl Plan {
    /// Fills in what `profile` predicts: one multiplication with relinearisation at the top level, and one
    /// relinearisation at each. The choices stay as they are.
    ///
    /// # Errors
    /// [`Error::Format`] when the profile lacks an operation.
    pub fn predict(&mut self, profile: &Profile) -> Result<()> {
        self.predicted_ms = self.multiplication(profile)?.map(|s| 1e3 * s);
        self.predicted_threads = Some(profile.threads);
        let (params, plans) = self.params.plans()?;
        let plans = self.level_plans(&params, &plans)?.unwrap_or(plans);
        let shape = self.shape();
        for switch in &mut self.switch {
            let active = params.level(switch.level)?;
            let seconds = cost::predict(profile, &params, plans.at(switch.level), [active, active], shape)?;
            switch.predicted_ms = Some(1e3 * seconds);
        }
        let tables = cost::table_bytes(&params, &params.keyed());
        self.traced.predict(profile, self.log_n, tables)?;
        let times = self.traced.nodes.iter().filter_map(|node| node.predicted_ms);
        self.circuit_ms = (!self.traced.nodes.is_empty()).then(|| times.sum());
        if !self.traced.nodes.is_empty() {
            self.nodes.clone_from(&self.traced.nodes);
        }
        Ok(())
    }

    /// The fastest way to switch keys at each level of these parameters by `profile`, where the prepared keys for one
    /// source take at most `budget` bytes (level-aware key switching, section 4.3).
    ///
    /// # Errors
    /// As [`IndexMap::choose`].
    pub fn index_map(&self, profile: &Profile, budget: Option<u64>) -> Result<IndexMap> {
        let (params, plan) = self.params.check()?;
        let levels = (0..=params.top_level()).map(|level| cost::candidates(&params, &plan, level, 0.0));
        let shape = self.shape();
        let price = |c: &Candidate| cost::predict(profile, &params, &c.plan, [&c.active, &c.target], shape);
        IndexMap::choose(levels.collect::<Result<_>>()?, budget, price)
    }

    /// A relinearisation in the domain that ciphertexts rest in.
    pub(super) const fn shape(&self) -> Shape {
        let ntt = !matches!(self.params, SchemeParams::Bfv(_));
        Shape { op: Op::Relin, input_ntt: ntt, output_ntt: ntt, batch: 1 }
    }

    /// Seconds of one multiplication at the top level; none where there is no level to multiply at.
    fn multiplication(&self, profile: &Profile) -> Result<Option<f64>> {
        if self.depth == 0 {
            return Ok(None);
        }
        let (params, _) = self.params.check()?;
        let (entries, peak) = match self.scheme {
            SchemeName::Bfv => exact_record(self.bfv()?, true),
            SchemeName::Bgv => exact_record(self.bgv()?, true),
            SchemeName::Ckks => real_record(self.ckks()?, true),
        }?;
        let tables = cost::table_bytes(&params, &params.q().union(params.p()));
        profile.seconds(&entries, params.ring().log_n(), peak + tables).map(Some)
    }
}

/// The most bytes of buffers that there are during a multiplication at the top level that nothing has to be prepared for,
/// or an encryption.
pub(super) fn peak_bytes(params: &SchemeParams, multiplies: bool) -> Result<usize> {
    let (_, peak) = match params {
        SchemeParams::Bfv(literal) => exact_record(bfv::Params::new(literal.clone())?, multiplies),
        SchemeParams::Bgv(literal) => exact_record(bgv::Params::new(literal.clone())?, multiplies),
        SchemeParams::Ckks(literal) => real_record(ckks::Params::new(literal.clone())?, multiplies),
    }?;
    Ok(peak)
}

/// What is counted is the same for every failure probability: that which refuses least.
const ANY: FailureLimit = FailureLimit::Statistical;

fn exact_record<S: exact::Scheme>(params: exact::Params<S>, multiplies: bool) -> Result<(Entries, usize)> {
    let device: DryLedger = recorder(params.rlwe());
    let context = exact::Context::<S, _>::with_backend(params.with_failure_limit(ANY), device)?;
    let mut randomness = Randomness::insecure_from_number(0);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &exact::Rotations::none(), &mut randomness)?;
    let evaluator = exact::Evaluator::new(&context, Some(Arc::new(keys)));
    let message = context.encode_coefficients(&[1i64][..])?;
    let x = context.encrypt(&public, &message, &mut randomness)?;
    for _ in 0..if multiplies { 2 } else { 0 } {
        context.rlwe().backend().take();
        evaluator.mul(&x, &x)?;
    }
    Ok(context.rlwe().backend().take())
}

fn real_record(params: ckks::Params, multiplies: bool) -> Result<(Entries, usize)> {
    let device: DryLedger = recorder(params.rlwe());
    let context = ckks::Context::with_backend(params.with_failure_limit(ANY), device)?;
    let mut randomness = Randomness::insecure_from_number(0);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &ckks::Rotations::none(), &mut randomness)?;
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
    let message = context.encode(&[1.0])?;
    let x = context.encrypt(&public, &message, &mut randomness)?;
    for _ in 0..if multiplies { 2 } else { 0 } {
        context.rlwe().backend().take();
        evaluator.mul(&x, &x)?;
    }
    Ok(context.rlwe().backend().take())
}
