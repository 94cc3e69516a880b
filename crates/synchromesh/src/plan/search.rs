//! One search for the three schemes: the fewest bits a level at each degree, then the first degree that is secure and
//! keeps the budgets.

use synchromesh_rlwe::{Params, SwitchPlan};

use super::Limit;
use super::limit::Least;
use super::memory::Forecast;
use super::shape::{Digits, Shape, explain_digits, explain_raise, limit_text};
use super::trace::Traced;
use super::{Description, SchemeParams, too_small};
use crate::cost::Profile;
use crate::error::Result;
use crate::rotations::Routes;

/// Degrees that are tried, as log2.
pub(super) const DEGREES: std::ops::RangeInclusive<u32> = 11..=17;

/// The chain of primes at one degree.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    /// Its widths.
    pub(super) shape: Shape,
    /// log2 of the scale of CKKS; 0 elsewhere.
    pub(super) log_scale: u32,
    /// Why it is as it is.
    pub(super) explain: Vec<String>,
}

/// How a scheme takes part in the search.
pub(super) trait Family {
    /// Its checked parameters.
    type Params;

    /// Slots at a degree, 0 where there are none.
    fn slots(&self, log_n: u32) -> usize;
    /// Slots in a row.
    fn row(&self, log_n: u32) -> usize;
    /// Bits of a modulus that are needed at this degree in any case.
    fn floor(&self, log_n: u32) -> Result<u32>;
    /// The chain with the fewest bits that survives the circuit when each rotation takes so many switches, security
    /// aside; none when no chain does, and why.
    fn chain(&self, log_n: u32, switches: usize) -> Result<std::result::Result<Chain, String>>;
    /// Parameters with this chain.
    fn params(&self, log_n: u32, chain: &Chain, omega: usize, p_bits: &[u32]) -> Result<Self::Params>;
    /// The layer below.
    fn rlwe(params: &Self::Params) -> (&Params, &SwitchPlan);
    /// The literal with its primes.
    fn literal(params: &Self::Params) -> SchemeParams;
    /// Whether the circuit runs, and what it leaves, in words.
    fn judge(&self, params: &Self::Params, switches: usize) -> Result<Option<String>>;
    /// What the circuit does.
    fn trace(&self, params: &Self::Params, switches: usize) -> Result<Traced>;
}

/// What a search found.
pub(super) struct Found {
    pub(super) params: SchemeParams,
    pub(super) rlwe: Params,
    pub(super) switch: SwitchPlan,
    pub(super) slots: usize,
    pub(super) routes: Routes,
    pub(super) key_bytes: u64,
    pub(super) memory: Forecast,
    pub(super) traced: Traced,
    pub(super) explain: Vec<String>,
}

/// The search: a request, and what the degrees so far lacked.
struct Search<'a, F> {
    family: &'a F,
    description: &'a Description,
    profile: Option<&'a Profile>,
    limit: Limit,
    reason: String,
    over_budget: Option<(Limit, String)>,
    floor: u32,
    least: Least,
}

/// Why no degree serves a request.
pub(super) struct Refusal {
    pub(super) limit: Limit,
    pub(super) reason: String,
    pub(super) least: Least,
    /// Bits of QP that the largest degree needs at the least.
    pub(super) floor: u32,
}

/// Parameters for a description, or why there are none.
pub(super) fn search<F: Family>(
    family: &F,
    description: &Description,
    profile: Option<&Profile>,
) -> Result<std::result::Result<Found, Refusal>> {
    let (limit, reason, least, over_budget) = (Limit::Security, String::new(), Least::default(), None);
    let mut search = Search { family, description, profile, limit, reason, over_budget, floor: 0, least };
    for log_n in DEGREES {
        if let Some(found) = search.degree(log_n)? {
            return Ok(Ok(found));
        }
    }
    let Search { limit, reason, least, over_budget, floor, .. } = search;
    // A budget that one degree exceeded is what to change, whatever the larger ones lack.
    let (limit, reason) = over_budget.unwrap_or((limit, reason));
    Ok(Err(Refusal { limit, reason, least, floor }))
}

impl<F: Family> Search<'_, F> {
    fn lacks<T>(&mut self, limit: Limit, reason: String) -> Result<Option<T>> {
        if self.over_budget.is_none() && [Limit::KeyBytes, Limit::Memory].contains(&limit) {
            self.over_budget = Some((limit, reason.clone()));
        }
        (self.limit, self.reason) = (limit, reason);
        Ok(None)
    }

    /// The parameters at one degree, if there are any.
    fn degree(&mut self, log_n: u32) -> Result<Option<Found>> {
        let Description { security, min_slots, max_digits, .. } = *self.description;
        let (slots, rotates) = (self.family.slots(log_n), self.description.rotates());
        if slots < min_slots || (slots == 0 && rotates) {
            let most = if slots == 0 { "no".to_owned() } else { slots.to_string() };
            return self.lacks(Limit::Slots, format!("N = 2^{log_n} has {most} slots"));
        }
        // What the degree below needed, this one needs too.
        if self.floor <= security.max_log_qp(log_n) {
            let q = self.family.floor(log_n)?;
            self.floor = self.floor.max(q + Shape::least_special(q));
        }
        if self.floor > security.max_log_qp(log_n) {
            let (limit, floor) = (limit_text(log_n, security), self.floor);
            return self.lacks(Limit::Security, format!("N = 2^{log_n} allows {limit}, this needs {floor} or more"));
        }
        let chain = match self.family.chain(log_n, 1)? {
            Ok(chain) => chain,
            Err(reason) => return self.lacks(Limit::Precision, reason),
        };
        self.floor = chain.shape.least_log_qp();
        let digits = chain.shape.digits(log_n, security, max_digits, self.profile)?;
        let Some(first) = digits.first() else {
            let (limit, floor) = (limit_text(log_n, security), self.floor);
            return self.lacks(Limit::Security, format!("N = 2^{log_n} allows {limit}, this needs {floor} or more"));
        };
        let raise = chain.shape.raise(log_n, security, first);
        let keys = self.description.rotations.len().max(self.description.expected_rotations);
        if let Some(raise) = raise.filter(|raise| raise.price(keys) < 1.0) {
            return self.lacks(Limit::Security, explain_raise(log_n, first.0, raise));
        }
        let direct = Routes::direct(&self.description.rotations, self.family.row(log_n));
        for index in 0..digits.len() {
            let tried = self.candidate(log_n, &chain, &digits[index..], &direct)?;
            if let Some(mut found) = tried {
                found.explain.extend(raise.map(|raise| explain_raise(log_n, digits[0].0, raise)));
                return Ok(Some(found));
            }
        }
        let over = self.over_budget.as_ref().is_some_and(|(limit, _)| *limit == Limit::KeyBytes);
        if over && !direct.keys().is_empty() {
            return self.composed(log_n, &chain, &digits);
        }
        Ok(None)
    }

    /// Parameters with the first of `digits` that keep the budgets.
    fn candidate(&mut self, log_n: u32, chain: &Chain, digits: &[Digits], routes: &Routes) -> Result<Option<Found>> {
        let Some((omega, p_bits, _)) = digits.first() else { return Ok(None) };
        let params = match self.family.params(log_n, chain, *omega, p_bits) {
            Err(e) if too_small(&e) => return self.lacks(Limit::Security, e.to_string()),
            other => other?,
        };
        let (rlwe, switch) = F::rlwe(&params);
        let keys = 1 + routes.keys().len() + usize::from(self.description.swap);
        let key_bytes = self.key_bytes(rlwe, switch, keys)?;
        if self.description.max_key_bytes.is_some_and(|most| key_bytes > most) {
            self.least.keys(key_bytes);
            let reason = format!("N = 2^{log_n} with {omega} digit(s) needs {key_bytes} bytes for {keys} keys");
            return self.lacks(Limit::KeyBytes, reason);
        }
        let Some(left) = self.family.judge(&params, routes.switches())? else {
            return self.lacks(Limit::Security, format!("at N = 2^{log_n} the noise of {omega} digit(s) is too much"));
        };
        let literal = F::literal(&params);
        let memory = Forecast::new(self.description.depth > 0, &literal, rlwe, keys)?;
        if self.description.max_memory_bytes.is_some_and(|most| memory.total_bytes > most) {
            self.least.memory(memory.total_bytes);
            let reason = format!("N = 2^{log_n} with {omega} digit(s) takes {} bytes of memory", memory.total_bytes);
            return self.lacks(Limit::Memory, reason);
        }
        let security = self.description.security;
        let smaller = if self.reason.is_empty() { "no smaller degree is offered" } else { &self.reason };
        let mut explain = vec![format!(
            "N = 2^{log_n}: log QP = {} of at most {} bits; {smaller}",
            rlwe.log_qp(),
            limit_text(log_n, security),
        )];
        explain.extend(chain.explain.iter().cloned());
        explain.push(left);
        explain.push(explain_digits(digits, self.profile));
        explain.extend(self.explain_keys(rlwe, switch, routes, key_bytes)?);
        explain.push(memory.explain());
        let traced = self.family.trace(&params, routes.switches())?;
        let (rlwe, switch) = (rlwe.clone(), switch.clone());
        let (slots, routes) = (self.family.slots(log_n), routes.clone());
        Ok(Some(Found { params: literal, rlwe, switch, slots, routes, key_bytes, memory, traced, explain }))
    }

    /// Parameters with rotations composed from as many keys as the budget holds.
    fn composed(&mut self, log_n: u32, chain: &Chain, digits: &[Digits]) -> Result<Option<Found>> {
        let (row, budget) = (self.family.row(log_n), self.description.max_key_bytes.unwrap_or(u64::MAX));
        let reason = self.reason.clone();
        let fewest = Routes::fewest(&self.description.rotations, row);
        let mut best: Option<(usize, Routes)> = None;
        for (index, (omega, p_bits, _)) in digits.iter().enumerate() {
            let params = match self.family.params(log_n, chain, *omega, p_bits) {
                Err(e) if too_small(&e) => continue,
                other => other?,
            };
            let (rlwe, switch) = F::rlwe(&params);
            let bytes =
                |rotations: usize| self.key_bytes(rlwe, switch, 1 + rotations + usize::from(self.description.swap));
            let (none, one) = (bytes(0)?, bytes(1)?);
            let most = budget.saturating_sub(none) / (one - none).max(1);
            match Routes::within(&self.description.rotations, row, most as usize) {
                None => self.least.keys(bytes(fewest)?),
                Some(routes) if best.as_ref().is_none_or(|(_, b)| routes.switches() < b.switches()) => {
                    best = Some((index, routes));
                }
                Some(_) => {}
            }
        }
        let Some((index, routes)) = best else { return self.lacks(Limit::KeyBytes, reason) };
        if let Some(found) = self.candidate(log_n, chain, &digits[index..], &routes)? {
            return Ok(Some(found));
        }
        // More switches for each rotation, more noise: a chain for that.
        match self.family.chain(log_n, routes.switches())? {
            Ok(chain) => {
                let Description { security, max_digits, .. } = *self.description;
                let wider = chain.shape.digits(log_n, security, max_digits, self.profile)?;
                let index = wider.iter().position(|(omega, ..)| *omega == digits[index].0).unwrap_or(0);
                self.candidate(log_n, &chain, &wider[index.min(wider.len())..], &routes)
            }
            Err(reason) => self.lacks(Limit::Precision, reason),
        }
    }

    /// What the keys are, and what fewer or more of them would do.
    fn explain_keys(
        &self,
        rlwe: &Params,
        switch: &SwitchPlan,
        routes: &Routes,
        key_bytes: u64,
    ) -> Result<Option<String>> {
        let steps = self.description.rotations.len();
        let keys = routes.keys().len();
        if keys == 0 {
            return Ok(None);
        }
        if !routes.is_direct() {
            let all = self.key_bytes(rlwe, switch, 1 + steps + usize::from(self.description.swap))?;
            return Ok(Some(format!(
                "rotations: {keys} key(s), for {:?}, make all {steps} with up to {} switches each; the runner-up, a key for \
                 each, would take {all} bytes of keys instead of {key_bytes}",
                routes.keys(),
                routes.switches(),
            )));
        }
        let fewer = Routes::within(&self.description.rotations, self.family_row(rlwe), keys.div_ceil(2));
        let runner_up = fewer.map_or_else(String::new, |fewer| {
            format!("; the runner-up, {} keys, would take up to {} switches each", fewer.keys().len(), fewer.switches())
        });
        let trimmed = self.description.rotation_level.filter(|&level| level < rlwe.top_level());
        let trimmed = trimmed.map_or_else(String::new, |level| format!(", trimmed to level {level}"));
        Ok(Some(format!("rotations: a key for each of {keys}{trimmed}, one switch each{runner_up}")))
    }

    fn key_bytes(&self, rlwe: &Params, switch: &SwitchPlan, keys: usize) -> Result<u64> {
        super::key_bytes::key_bytes(self.description.rotation_level, rlwe, &switch.clone().into(), keys)
    }

    fn family_row(&self, rlwe: &Params) -> usize {
        self.family.row(rlwe.ring().log_n())
    }
}
