//! The index map: for each level the plan that is fastest, within a budget of key bytes (level-aware key switching,
//! section 4.3, there from benchmarks or from a formula; here from any prediction).

use std::collections::BTreeMap;

use synchromesh_rlwe::{LevelPlans, Params, SwitchPlan};

use super::Candidate;
use crate::error::{Error, Result};

/// Distinct keys up to which every choice of keys is tried; above, keys are dropped one by one.
const EXHAUSTIVE_KEYS: usize = 12;

/// What one level uses.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// The level.
    pub level: usize,
    /// The plan chosen.
    pub best: Candidate,
    /// Its predicted seconds.
    pub seconds: f64,
    /// The next one that the keys at hand allow, and its seconds.
    pub runner_up: Option<(Candidate, f64)>,
    /// The fastest without a budget, where that is another one, and its seconds.
    pub unaffordable: Option<(Candidate, f64)>,
}

/// A plan for each level, lowest first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct IndexMap {
    /// One choice a level.
    pub choices: Vec<Choice>,
    /// Bytes of the prepared keys that one source key needs, each plan's once.
    pub key_bytes: u64,
}

/// All candidates of one level with their seconds, fastest first, each with the number of its plan.
type Priced = Vec<(usize, Candidate, f64)>;

impl IndexMap {
    /// Picks from `levels`, the candidates of each level, those with the least sum of `seconds` whose keys take at
    /// most `budget` bytes together. Exact up to a dozen distinct keys.
    ///
    /// # Errors
    /// [`Error::Request`] when a level has no candidate, [`Error::KeyBudget`] when none within the budget serves a level;
    /// whatever `seconds` returns.
    pub fn choose(
        levels: Vec<Vec<Candidate>>,
        budget: Option<u64>,
        mut seconds: impl FnMut(&Candidate) -> Result<f64>,
    ) -> Result<Self> {
        // Each plan once, with a candidate that has it.
        let mut plans: Vec<Candidate> = Vec::new();
        let mut priced: Vec<Priced> = Vec::new();
        for (level, candidates) in levels.into_iter().enumerate() {
            let mut row = Vec::with_capacity(candidates.len());
            for candidate in candidates {
                let known = plans.iter().position(|known| known.plan == candidate.plan);
                let number = known.unwrap_or(plans.len());
                if known.is_none() {
                    plans.push(candidate.clone());
                }
                let time = seconds(&candidate)?;
                row.push((number, candidate, time));
            }
            if row.is_empty() {
                return Err(Error::request(format!("no key-switching plan fits level {level}")));
            }
            row.sort_by(|a, b| a.2.total_cmp(&b.2));
            priced.push(row);
        }
        let bytes: Vec<u64> = plans.iter().map(|candidate| candidate.key_bytes).collect();
        let budget = budget.unwrap_or(u64::MAX);
        let kept = keep(&priced, &bytes, budget).ok_or_else(|| {
            let kept = least(&priced, &bytes);
            let labels: Vec<String> = plans.iter().zip(&kept).filter(|(_, k)| **k).map(|(c, _)| c.label()).collect();
            Error::KeyBudget { budget, least: size(&bytes, &kept), plans: labels.join("; ") }
        })?;
        Ok(Self::from_kept(priced, &bytes, &kept))
    }

    fn from_kept(priced: Vec<Priced>, bytes: &[u64], kept: &[bool]) -> Self {
        let mut used: BTreeMap<usize, u64> = BTreeMap::new();
        let mut choices = Vec::with_capacity(priced.len());
        for (level, row) in priced.into_iter().enumerate() {
            let dearest = row.first().filter(|(number, ..)| !kept[*number]).map(|(_, c, s)| (c.clone(), *s));
            let mut affordable = row.into_iter().filter(|(number, ..)| kept[*number]);
            let Some((number, best, seconds)) = affordable.next() else { continue };
            used.insert(number, bytes[number]);
            let runner_up = affordable.next().map(|(_, c, s)| (c, s));
            choices.push(Choice { level, best, seconds, runner_up, unaffordable: dearest });
        }
        Self { choices, key_bytes: used.values().sum() }
    }

    /// Predicted seconds of one switch at each level together.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.choices.iter().map(|c| c.seconds).sum()
    }

    /// The choices for use: each plan's key is trimmed to the highest level that uses it.
    ///
    /// # Errors
    /// [`Error::Rlwe`] unless one stored key serves all of them: candidates made from single-prime digits do, those with
    /// different digits or numbers of special primes are for keys stored differently.
    pub fn level_plans(&self, params: &Params) -> Result<LevelPlans> {
        let trimmed = |choice: &Choice| -> Result<SwitchPlan> {
            let plan = &choice.best.plan;
            let highest = self.choices.iter().rposition(|other| other.best.plan == *plan).unwrap_or(choice.level);
            Ok(plan.clone().up_to(params.level(highest)?))
        };
        Ok(LevelPlans::new(params, self.choices.iter().map(trimmed).collect::<Result<_>>()?)?)
    }

    /// A line a level: the choice, the runner-up and the difference.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        self.choices.iter().map(Choice::explain).collect()
    }
}

impl Choice {
    fn explain(&self) -> String {
        let ms = |s: f64| format!("{:.3} ms", 1e3 * s);
        let more = |s: f64| 100.0 * (s / self.seconds - 1.0);
        let mut text = format!("level {}: {}, {} predicted", self.level, self.best.label(), ms(self.seconds));
        text += &match &self.runner_up {
            None => "; no other plan fits".to_owned(),
            Some((other, s)) => format!("; the runner-up, {}, takes {:.1} % more", other.label(), more(*s)),
        };
        if let Some((other, s)) = &self.unaffordable {
            text += &format!("; {} would take {:.1} % less but its key exceeds the budget", other.label(), -more(*s));
        }
        text
    }
}

/// Sum over levels of the fastest candidate among `kept`; none when a level has none.
fn total(priced: &[Priced], kept: &[bool]) -> Option<f64> {
    priced.iter().map(|row| row.iter().find(|(number, ..)| kept[*number]).map(|(.., s)| *s)).sum()
}

/// Bytes of the keys that are kept.
fn size(bytes: &[u64], kept: &[bool]) -> u64 {
    kept.iter().zip(bytes).filter(|(k, _)| **k).map(|(_, b)| *b).sum()
}

/// Every set of a few keys, none left out but the empty one.
fn subsets(keys: usize) -> impl Iterator<Item = Vec<bool>> {
    (1u32..1 << keys).map(move |mask| (0..keys).map(|i| mask >> i & 1 == 1).collect())
}

/// Which keys to hold: the subset with the least time within the budget; none where no subset within it serves all levels.
fn keep(priced: &[Priced], bytes: &[u64], budget: u64) -> Option<Vec<bool>> {
    let all = vec![true; bytes.len()];
    // Keys that no level would choose cost bytes for nothing.
    let trim = |kept: &[bool]| -> Vec<bool> {
        let mut used = vec![false; kept.len()];
        for row in priced {
            if let Some((number, ..)) = row.iter().find(|(number, ..)| kept[*number]) {
                used[*number] = true;
            }
        }
        used
    };
    let unlimited = trim(&all);
    if size(bytes, &unlimited) <= budget {
        return Some(unlimited);
    }
    let found = if bytes.len() <= EXHAUSTIVE_KEYS {
        let timed = subsets(bytes.len()).filter(|kept| size(bytes, kept) <= budget);
        let timed = timed.filter_map(|kept| total(priced, &kept).map(|time| (kept, time)));
        let least = |a: &(Vec<bool>, f64), b: &(Vec<bool>, f64)| {
            a.1.total_cmp(&b.1).then(size(bytes, &a.0).cmp(&size(bytes, &b.0)))
        };
        timed.min_by(least).map(|(kept, _)| kept)
    } else {
        // Dropping by time may end with keys that serve all levels and are not the least.
        drop_one_by_one(priced, bytes, budget, all)
            .or_else(|| Some(least(priced, bytes)).filter(|kept| size(bytes, kept) <= budget))
    };
    found.map(|kept| trim(&kept))
}

/// The keys of the fewest bytes that serve every level: of all sets where there are few keys, else the better of one key
/// and of dropping the largest as long as the others serve.
fn least(priced: &[Priced], bytes: &[u64]) -> Vec<bool> {
    let keys = bytes.len();
    let serves = |kept: &Vec<bool>| total(priced, kept).is_some();
    let sets: Vec<Vec<bool>> = if keys <= EXHAUSTIVE_KEYS {
        subsets(keys).filter(serves).collect()
    } else {
        let mut fewer = vec![true; keys];
        let mut order: Vec<usize> = (0..keys).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(bytes[i]));
        for i in order {
            fewer[i] = false;
            fewer[i] = !serves(&fewer);
        }
        let single = (0..keys).map(|i| (0..keys).map(|j| i == j).collect());
        single.filter(serves).chain([fewer]).collect()
    };
    sets.into_iter().min_by_key(|kept| size(bytes, kept)).unwrap_or_else(|| vec![true; keys])
}

/// Drops the key that costs the least time for each byte it frees, until the rest fits.
fn drop_one_by_one(priced: &[Priced], bytes: &[u64], budget: u64, mut kept: Vec<bool>) -> Option<Vec<bool>> {
    loop {
        if size(bytes, &kept) <= budget {
            return Some(kept);
        }
        let now = total(priced, &kept)?;
        let loss = |i: usize| {
            let mut without = kept.clone();
            without[i] = false;
            total(priced, &without).map(|time| (i, (time - now) / bytes[i].max(1) as f64))
        };
        let (drop, _) = (0..bytes.len()).filter(|&i| kept[i]).filter_map(loss).min_by(|a, b| a.1.total_cmp(&b.1))?;
        kept[drop] = false;
    }
}
