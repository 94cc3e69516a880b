//! Parameters: primes chosen so that every level has one exact scale near 2^log_scale.
//!
//! A fresh ciphertext at the top level L has scale S_L = 2^log_scale. Multiplying two ciphertexts of level l and
//! dividing by D_l, the product of the primes that level l - 1 lacks, gives S_(l-1) = S_l^2 / D_l. Each D_l is the
//! unused product nearest to S_l^2 / 2^log_scale, so that a level corrects the deviation of the one above it instead
//! of doubling it. Where a schedule brings primes in, D_l is the quotient of those that leave by those that come in,
//! exactly; small primes that return are what they were, and the large ones that leave for them correct the scale.
//!
//! Levels may have scales of their own sizes (`log_scales`), as bootstrapping wants them: D_l is then near the square of
//! the scale of level l over that of the level below.

use std::sync::Arc;

use num_bigint::BigUint;
use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};
use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::noise::{FailureLimit, Norm};
use synchromesh_rlwe::params::ErrorChoice;
use synchromesh_rlwe::ring::prime::{MAX_PRIME_BITS, MIN_PRIME_BITS, PrimeError, is_prime, ntt_primes_excluding};
use synchromesh_rlwe::{LevelPlans, Schedule, Security, SwitchPlan};

use super::scale::Scale;
use crate::embedding;
use crate::error::{Error, Result};

/// Levels above the lowest that a chain may have; exact exponents double at each.
const MAX_LEVELS: usize = 100;

/// Largest log2 of the scale: encoded coefficients stay below 2^120.
const MAX_LOG_SCALE: u32 = 110;

/// Who looks after scales and levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The library: every product is rescaled, operands are brought to one level, each level has one scale.
    #[default]
    Auto,
    /// The caller: products keep the product of the scales until `rescale`, sums need equal scales.
    Manual,
}

/// The primes of a chain, for parameters that must not depend on a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Primes {
    /// Ciphertext primes, lowest level first.
    pub q: Vec<u64>,
    /// Special primes of key switching.
    pub p: Vec<u64>,
}

/// Parameters as typed or read: unchecked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamsLiteral {
    /// log2 of the ring degree N, 10..17 (18 for measurement only).
    pub log_n: u32,
    /// log2 of the scale of a fresh message, 15 to 110.
    pub log_scale: u32,
    /// Widths of the ciphertext primes, lowest level first. Those a level adds make up `log_scale` bits together (twice its
    /// own less that of the level below, where levels have scales of their own); they lie on either side of a power of
    /// two, so a 50-bit one may exceed 2^50.
    pub q_bits: Vec<u32>,
    /// Widths of the special primes; empty where key switches borrow ciphertext primes.
    pub p_bits: Vec<u32>,
    /// Limbs present at level 0, 1, ..; empty: one prime a level. Without special primes the highest level may lack some
    /// of q, for key switches to borrow.
    #[serde(default)]
    pub level_limbs: Vec<usize>,
    /// Active primes of each level, where they are more than prefixes; what a level adds less what it lacks makes up
    /// `log_scale` bits.
    #[serde(default, skip_serializing_if = "Schedule::is_simple")]
    pub schedule: Schedule,
    /// Digits of a key switch, 1 to the number of ciphertext primes; without special primes, of a stored key: one for
    /// each prime, see [`LevelPlans::of`].
    pub omega: usize,
    /// log2 of the scale of level 0, 1, .., where they are not all `log_scale`, which messages are encrypted at; in automatic
    /// mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_scales: Vec<u32>,
    /// Who looks after scales and levels.
    #[serde(default)]
    pub mode: Mode,
    /// Required security.
    #[serde(default)]
    pub security: Security,
    /// The primes themselves, of the widths named (to a bit); `None`: chosen by the rule of this module.
    #[serde(default)]
    pub primes: Option<Primes>,
}

#[derive(Debug)]
struct Inner {
    literal: ParamsLiteral,
    rlwe: rlwe::Params,
    plans: LevelPlans,
    second: Option<SwitchPlan>,
    levels: Vec<Level>,
}

/// The scale of a level.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    /// S_l.
    pub(crate) scale: Scale,
    /// S_l^2, the scale of a product before its rescale.
    pub(crate) square: Scale,
    /// D_l; 1 at level 0.
    pub(crate) dropped: Scale,
    /// log2 S_l.
    pub(crate) log2: f64,
    /// S_l for encoding and decoding.
    pub(crate) double: embedding::Scale,
}

/// Checked, immutable parameters; cheap to clone.
#[derive(Debug, Clone)]
pub struct Params(Arc<Inner>);

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.0.rlwe == other.0.rlwe
    }
}

impl Params {
    /// Checks a literal and chooses the primes it leaves open.
    ///
    /// # Errors
    /// [`Error::Params`] for a rule of this scheme, [`Error::Rlwe`] for one of the layer below, security among them.
    pub fn new(mut literal: ParamsLiteral) -> Result<Self> {
        let sets = positions(&literal)?;
        check_widths(&literal, &sets)?;
        let primes = match literal.primes.take() {
            Some(primes) => primes,
            None => choose(&literal, &sets)?,
        };
        check_primes(&literal, &primes)?;
        let levels = levels(&literal, &sets, &primes.q)?;
        // The default written out; a schedule stands for itself.
        let simple = literal.schedule.levels.is_empty();
        let level_limbs = if simple { sets.iter().map(Vec::len).collect() } else { Vec::new() };
        let manual = if literal.mode == Mode::Manual { " manual" } else { "" };
        let own = if literal.log_scales.is_empty() { String::new() } else { format!(" {:?}", literal.log_scales) };
        let rlwe = rlwe::Params::new(rlwe::ParamsLiteral {
            tag: format!("ckks log_scale={}{own}{manual}", literal.log_scale),
            log_n: literal.log_n,
            q: primes.q.clone(),
            p: primes.p.clone(),
            aux: Vec::new(),
            level_limbs,
            schedule: literal.schedule.clone(),
            error_multiple: "1".to_owned(),
            error: ErrorChoice::Cbd21,
            security: literal.security,
        })?
        .with_norm(Norm::Canonical);
        let (plans, second) = (LevelPlans::of(&rlwe, literal.omega)?, SwitchPlan::second(&rlwe)?);
        literal.primes = Some(primes);
        Ok(Self(Arc::new(Inner { literal, rlwe, plans, second, levels })))
    }

    /// The literal, with its primes filled in.
    #[must_use]
    pub fn literal(&self) -> &ParamsLiteral {
        &self.0.literal
    }

    /// The parameters of the layer below.
    #[must_use]
    pub fn rlwe(&self) -> &rlwe::Params {
        &self.0.rlwe
    }

    /// How keys are switched at the highest level.
    #[must_use]
    pub fn plan(&self) -> &SwitchPlan {
        self.0.plans.at(self.top_level())
    }

    /// How keys are switched at each level.
    #[must_use]
    pub fn plans(&self) -> &LevelPlans {
        &self.0.plans
    }

    /// The same parameters with other plans, for keys stored with the plans' digits. Objects stay compatible: plans say
    /// how to compute, not what.
    ///
    /// # Errors
    /// As [`LevelPlans::check`].
    pub fn with_plans(&self, plans: impl Into<LevelPlans>) -> Result<Self> {
        let plans = plans.into();
        plans.check(self.rlwe())?;
        let Inner { literal, rlwe, second, levels, .. } = &*self.0;
        let (literal, rlwe, second, levels) = (literal.clone(), rlwe.clone(), second.clone(), levels.clone());
        Ok(Self(Arc::new(Inner { literal, rlwe, plans, second, levels })))
    }

    /// The same parameters with another largest probability that an error exceeds what a certificate says.
    #[must_use]
    pub fn with_failure_limit(&self, limit: FailureLimit) -> Self {
        self.with_rlwe(self.rlwe().clone().with_failure_limit(limit))
    }

    /// The same parameters for keys that so many parties make and hold together: certificates then hold for those.
    #[must_use]
    pub fn with_parties(&self, parties: usize) -> Self {
        self.with_rlwe(self.rlwe().clone().with_parties(parties))
    }

    /// The same parameters for a key that parties hold together, made as it says.
    #[must_use]
    pub fn with_joint(&self, joint: &crate::joint::Joint) -> Self {
        self.with_rlwe(joint.params(self.rlwe().clone()))
    }

    /// The same with other parameters of ring learning with errors that have the same digest.
    fn with_rlwe(&self, rlwe: rlwe::Params) -> Self {
        let Inner { literal, plans, second, levels, .. } = &*self.0;
        let (literal, plans, second, levels) = (literal.clone(), plans.clone(), second.clone(), levels.clone());
        Self(Arc::new(Inner { literal, rlwe, plans, second, levels }))
    }

    /// The largest probability that an error exceeds what a certificate says, 2^-128 unless another was chosen.
    #[must_use]
    pub fn failure_limit(&self) -> FailureLimit {
        self.rlwe().failure_limit()
    }

    /// How keys are switched under the second secret key, where the schedule has one.
    #[must_use]
    pub fn second_plan(&self) -> Option<&SwitchPlan> {
        self.0.second.as_ref()
    }

    /// Who looks after scales and levels.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.0.literal.mode
    }

    /// The ring degree N.
    #[must_use]
    pub fn n(&self) -> usize {
        self.0.rlwe.n()
    }

    /// log2 N.
    #[must_use]
    pub fn log_n(&self) -> u32 {
        self.0.literal.log_n
    }

    /// Complex slots of a message, N/2.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.n() / 2
    }

    /// Level of a fresh ciphertext.
    #[must_use]
    pub fn top_level(&self) -> usize {
        self.0.rlwe.top_level()
    }

    /// The scale at which messages are encoded for `level`: S_l, or 2^log_scale in manual mode.
    ///
    /// # Errors
    /// [`rlwe::Error::Level`] above the top level.
    pub fn scale(&self, level: usize) -> Result<&Scale> {
        Ok(&self.at(level)?.scale)
    }

    pub(crate) fn at(&self, level: usize) -> Result<&Level> {
        self.0.rlwe.level(level)?;
        Ok(&self.0.levels[level])
    }
}

/// The ciphertext primes active at each level, by position.
fn positions(literal: &ParamsLiteral) -> Result<Vec<Vec<usize>>> {
    if literal.q_bits.is_empty() {
        return Err(Error::params("the list q_bits of ciphertext primes is empty"));
    }
    let sets = literal.schedule.positions(&literal.level_limbs, literal.q_bits.len())?;
    if sets.len() > MAX_LEVELS + 1 {
        return Err(Error::params(format!("{} levels above the lowest; at most {MAX_LEVELS}", sets.len() - 1)));
    }
    Ok(sets)
}

/// Primes that leave and primes that come in from `level` to the one below.
fn step(sets: &[Vec<usize>], level: usize) -> (Vec<usize>, Vec<usize>) {
    let lacks = |x: usize, y: usize| sets[x].iter().copied().filter(|i| !sets[y].contains(i)).collect();
    (lacks(level, level - 1), lacks(level - 1, level))
}

/// D_l, the product of the primes that leave over that of those that come in.
fn quotient(q: &[u64], leaving: &[usize], coming: &[usize]) -> Result<Scale> {
    Scale::product(leaving.iter().map(|&i| q[i]))?.over(&Scale::product(coming.iter().map(|&i| q[i]))?)
}

/// log2 of the scale that a level should have.
fn log_scale(literal: &ParamsLiteral, level: usize) -> u32 {
    literal.log_scales.get(level).copied().unwrap_or(literal.log_scale)
}

fn check_widths(literal: &ParamsLiteral, sets: &[Vec<usize>]) -> Result<()> {
    if !(10..=18).contains(&literal.log_n) {
        return Err(Error::params(format!("log_n = {}: the ring degree must be 2^10 to 2^18", literal.log_n)));
    }
    for &log_scale in literal.log_scales.iter().chain([&literal.log_scale]) {
        if !(15..=MAX_LOG_SCALE).contains(&log_scale) {
            return Err(Error::params(format!("log_scale = {log_scale} is outside 15 to {MAX_LOG_SCALE}")));
        }
    }
    let given = literal.log_scales.len();
    if given > 0 && (given != sets.len() || literal.mode == Mode::Manual) {
        let levels = sets.len();
        return Err(Error::params(format!(
            "log_scales has {given} entries; there are {levels} levels, in automatic mode"
        )));
    }
    let allowed = MIN_PRIME_BITS..=MAX_PRIME_BITS;
    if let Some(w) = literal.q_bits.iter().chain(&literal.p_bits).find(|w| !allowed.contains(w)) {
        return Err(Error::params(format!("prime width {w} is outside {MIN_PRIME_BITS} to {MAX_PRIME_BITS} bits")));
    }
    let bits = |set: &[usize]| set.iter().map(|&i| i64::from(literal.q_bits[i])).sum::<i64>();
    for level in 1..sets.len() {
        let (leaving, coming) = step(sets, level);
        let sum = bits(&leaving) - bits(&coming);
        let [own, below] = [level, level - 1].map(|level| i64::from(log_scale(literal, level)));
        if sum != 2 * own - below {
            let wanted = if own == below { "log_scale" } else { "2 log_scales[level] - log_scales[level - 1]" };
            return Err(Error::params(format!(
                "the primes of level {level} have {sum} bits together, they must have {wanted} = {}",
                2 * own - below
            )));
        }
    }
    let (lowest, log_scale) = (bits(&sets[0]), log_scale(literal, 0));
    if lowest < i64::from(log_scale) + 2 {
        return Err(Error::params(format!(
            "level 0 has {lowest} bits; a message of absolute value 1 at scale 2^{log_scale} needs {}",
            log_scale + 2
        )));
    }
    Ok(())
}

/// Explicit primes must have the widths named, to a bit; the layer below checks the rest.
fn check_primes(literal: &ParamsLiteral, primes: &Primes) -> Result<()> {
    let lists = [("q", &literal.q_bits, &primes.q), ("p", &literal.p_bits, &primes.p)];
    for (name, widths, list) in lists {
        if widths.len() != list.len() {
            return Err(Error::params(format!("{name}_bits names {} primes, {} are given", widths.len(), list.len())));
        }
        let off = |&(&w, &q): &(&u32, &u64)| !is_of(w, q);
        if let Some((w, q)) = widths.iter().zip(list).find(off) {
            return Err(Error::params(format!("prime {q} of {name} is not of the {w} bits named")));
        }
    }
    Ok(())
}

/// Scaling primes from the top level down, then the other primes of level 0, then the special ones.
fn choose(literal: &ParamsLiteral, sets: &[Vec<usize>]) -> Result<Primes> {
    let mut q = vec![0; literal.q_bits.len()];
    let mut used = Vec::new();
    let base = |level| Scale::power_of_two(log_scale(literal, level));
    let mut scale = base(sets.len() - 1);
    for level in (1..sets.len()).rev() {
        let (leaving, coming) = step(sets, level);
        let mut take = |q: &mut Vec<u64>, i: usize, target: u64| -> Result<()> {
            q[i] = nearest_prime(target, literal.q_bits[i], literal.log_n, &used)?;
            used.push(q[i]);
            Ok(())
        };
        // One that comes in without having left above.
        for &i in coming.iter().filter(|&&i| q[i] == 0).collect::<Vec<_>>() {
            take(&mut q, i, 1 << literal.q_bits[i])?;
        }
        let (open, chosen): (Vec<usize>, Vec<usize>) = leaving.iter().partition(|&&i| q[i] == 0);
        let square = scale.times(&scale)?;
        let mut left = square.over(&base(level - 1))?.over(&quotient(&q, &chosen, &coming)?)?.to_integer()?;
        for &i in &open {
            let target =
                if Some(&i) == open.last() { left.to_u64().unwrap_or(u64::MAX) } else { 1 << literal.q_bits[i] };
            take(&mut q, i, target)?;
            left = (&left + q[i] / 2) / BigUint::from(q[i]);
        }
        scale = square.over(&quotient(&q, &leaving, &coming)?)?;
    }
    let mut largest = |width: u32| -> Result<u64> {
        let found = ntt_primes_excluding(width, literal.log_n, 1, &used).map_err(|e| Error::params(e.to_string()))?;
        used.extend(&found);
        Ok(found[0])
    };
    // Those of level 0, and those that key switches borrow at every level.
    for i in 0..q.len() {
        if q[i] == 0 {
            q[i] = largest(literal.q_bits[i])?;
        }
    }
    let p = literal.p_bits.iter().map(|&width| largest(width)).collect::<Result<_>>()?;
    Ok(Primes { q, p })
}

/// Whether a prime is of a width, to a bit.
fn is_of(width: u32, q: u64) -> bool {
    ((q as f64).log2() - f64::from(width)).abs() <= 1.0
}

/// The unused prime 1 mod 2N nearest to `target`, of this width.
fn nearest_prime(target: u64, width: u32, log_n: u32, used: &[u64]) -> Result<u64> {
    let step = 2u64 << log_n;
    let fits = |q: u64| {
        let in_range = q > 1 << (MIN_PRIME_BITS - 1) && q < 1 << MAX_PRIME_BITS;
        in_range && is_of(width, q) && !used.contains(&q) && is_prime(q)
    };
    let below = target.saturating_sub(1) / step * step + 1;
    for k in 0..=(2u64 << width) / step {
        let [down, up] = [below.saturating_sub(k * step), below.saturating_add((k + 1) * step)];
        let order = if target.abs_diff(down) <= target.abs_diff(up) { [down, up] } else { [up, down] };
        if let Some(q) = order.into_iter().find(|&q| fits(q)) {
            return Ok(q);
        }
    }
    let have = used.iter().filter(|&&q| is_of(width, q)).count();
    let nearest = (width + 1..=MAX_PRIME_BITS).find(|&w| ntt_primes_excluding(w, log_n, have + 1, &[]).is_ok());
    Err(PrimeError::NotEnoughPrimes { width, have, need: have + 1, congruence: step, nearest }.into())
}

fn levels(literal: &ParamsLiteral, sets: &[Vec<usize>], q: &[u64]) -> Result<Vec<Level>> {
    let mut scale = Scale::power_of_two(log_scale(literal, sets.len() - 1));
    let mut levels = Vec::with_capacity(sets.len());
    for level in (0..sets.len()).rev() {
        let (leaving, coming) = if level == 0 { Default::default() } else { step(sets, level) };
        let dropped = quotient(q, &leaving, &coming)?;
        let square = scale.times(&scale)?;
        let below = match literal.mode {
            Mode::Auto => square.over(&dropped)?,
            Mode::Manual => scale.clone(),
        };
        let (log2, wanted) = (scale.log2(), log_scale(literal, level));
        if (log2 - f64::from(wanted)).abs() > 0.5 {
            return Err(Error::params(format!(
                "the scale drifts to 2^{log2:.2} at level {level}, log_scale is {wanted}; use wider primes or fewer levels"
            )));
        }
        levels.push(Level { double: scale.to_double()?, scale, square, dropped, log2 });
        scale = below;
    }
    levels.reverse();
    Ok(levels)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = Box<dyn Fn(&mut ParamsLiteral)>;

    fn literal() -> ParamsLiteral {
        ParamsLiteral {
            log_n: 12,
            log_scale: 40,
            q_bits: vec![50, 40, 40],
            p_bits: vec![51, 51],
            level_limbs: vec![],
            schedule: Schedule::default(),
            omega: 2,
            log_scales: vec![],
            mode: Mode::Auto,
            security: Security::Insecure,
            primes: None,
        }
    }

    #[test]
    fn scales_do_not_drift_in_forty_levels() {
        for (log_n, log_scale) in [(12, 30), (15, 45), (16, 45), (17, 59)] {
            let mut q_bits = vec![log_scale; 41];
            q_bits[0] = (log_scale + 10).min(61);
            let params = Params::new(ParamsLiteral { log_n, log_scale, q_bits, ..literal() }).unwrap();
            for level in 0..=40 {
                let off = (params.at(level).unwrap().log2 - f64::from(log_scale)).abs();
                // At most about 41 primes a side are passed over, N ln(2^log_scale) apart on average.
                let gap = f64::from(log_n) + (f64::from(log_scale) * 0.7).log2() + 6.0 - f64::from(log_scale);
                assert!(off < gap.exp2(), "N = 2^{log_n}, level {level}: 2^{log_scale} is off by {off:e} bits");
            }
        }
    }

    #[test]
    fn levels_may_hold_several_primes() {
        let q_bits = vec![35, 35, 30, 30, 25, 35, 31, 29];
        let level_limbs = vec![2, 4, 6, 8];
        let params = Params::new(ParamsLiteral { log_scale: 60, q_bits, level_limbs, ..literal() }).unwrap();
        assert_eq!(params.top_level(), 3);
        for level in 0..3 {
            assert!((params.at(level).unwrap().log2 - 60.0).abs() < 1e-3);
            let above = params.at(level + 1).unwrap();
            assert_eq!(above.square.over(&above.dropped).unwrap(), *params.scale(level).unwrap());
        }
        assert_eq!(params.scale(4).unwrap_err().kind(), "level");
    }

    #[test]
    fn levels_may_have_scales_of_their_own() {
        // 40 for use, 58 and 55 above it: 2 * 58 - 40 = 76, 2 * 58 - 58, 2 * 55 - 58 = 52.
        let own = ParamsLiteral {
            q_bits: vec![60, 40, 38, 38, 58, 52],
            level_limbs: vec![1, 2, 4, 5, 6],
            log_scales: vec![40, 40, 58, 58, 55],
            ..literal()
        };
        let params = Params::new(own.clone()).unwrap();
        for (level, wanted) in [40.0, 40.0, 58.0, 58.0, 55.0].into_iter().enumerate() {
            assert!((params.at(level).unwrap().log2 - wanted).abs() < 1e-2, "level {level}");
        }
        for level in 0..4 {
            let above = params.at(level + 1).unwrap();
            assert_eq!(above.square.over(&above.dropped).unwrap(), *params.scale(level).unwrap());
        }
        let text = serde_json::to_string(params.literal()).unwrap();
        assert_eq!(Params::new(serde_json::from_str(&text).unwrap()).unwrap(), params);
        let changes: [Change; 4] = [
            Box::new(|l| l.log_scales[4] = 56),
            Box::new(|l| l.log_scales.truncate(3)),
            Box::new(|l| l.log_scales[0] = 14),
            Box::new(|l| l.mode = Mode::Manual),
        ];
        for change in changes {
            let mut literal = own.clone();
            change(&mut literal);
            assert_eq!(Params::new(literal).unwrap_err().kind(), "params");
        }
    }

    #[test]
    fn the_filled_literal_gives_the_same_parameters() {
        let params = Params::new(literal()).unwrap();
        let text = serde_json::to_string(params.literal()).unwrap();
        let again = Params::new(serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(params, again);
        let manual = Params::new(ParamsLiteral { mode: Mode::Manual, ..params.literal().clone() }).unwrap();
        assert_ne!(params, manual);
        assert_eq!(manual.scale(0).unwrap(), &Scale::power_of_two(40));
    }

    #[test]
    fn broken_rules_are_typed_errors() {
        let primes = Params::new(literal()).unwrap().literal().primes.clone().unwrap();
        let cases: [(&str, Change); 12] = [
            ("params", Box::new(|l| l.q_bits = vec![])),
            ("params", Box::new(|l| l.q_bits[1] = 41)),
            ("params", Box::new(|l| l.q_bits[0] = 41)),
            ("params", Box::new(|l| l.log_scale = 200)),
            ("params", Box::new(|l| l.log_n = 9)),
            ("params", Box::new(|l| l.log_n = 40)),
            ("params", Box::new(|l| l.p_bits[0] = 62)),
            ("params", Box::new(|l| l.level_limbs = vec![3, 2])),
            ("switch_plan", Box::new(|l| l.omega = 0)),
            ("insecure_modulus", Box::new(|l| l.security = Security::Bits128)),
            (
                "params",
                Box::new({
                    let primes = primes.clone();
                    move |l| l.primes = Some(Primes { q: primes.q[..2].to_vec(), p: primes.p.clone() })
                }),
            ),
            (
                "modulus",
                Box::new(move |l| {
                    let mut q = primes.q.clone();
                    q[2] -= 2;
                    l.primes = Some(Primes { q, p: primes.p.clone() });
                }),
            ),
        ];
        for (i, (kind, change)) in cases.iter().enumerate() {
            let mut literal = literal();
            change(&mut literal);
            let error = Params::new(literal).unwrap_err();
            assert_eq!(error.kind(), *kind, "case {i}: {error}");
            assert!(!error.remedy().is_empty());
        }
        // 20-bit scales at N = 2^17: there are too few primes of about that width.
        let narrow = ParamsLiteral { log_n: 17, log_scale: 20, q_bits: vec![40, 20, 20, 20], ..literal() };
        assert_eq!(Params::new(narrow).unwrap_err().kind(), "primes");
    }
}
