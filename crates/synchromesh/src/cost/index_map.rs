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
    /// [`Error::Params`] when a level has no candidate, or none within the budget; whatever `seconds` returns.
    pub fn choose(
        levels: Vec<Vec<Candidate>>,
        budget: Option<u64>,
        mut seconds: impl FnMut(&Candidate) -> Result<f64>,
    ) -> Result<Self> {
        let mut plans: Vec<(SwitchPlan, u64)> = Vec::new();
        let mut priced: Vec<Priced> = Vec::new();
        for (level, candidates) in levels.into_iter().enumerate() {
            let mut row = Vec::with_capacity(candidates.len());
            for candidate in candidates {
                let known = plans.iter().position(|(p, _)| *p == candidate.plan);
                let number = known.unwrap_or(plans.len());
                if known.is_none() {
                    plans.push((candidate.plan.clone(), candidate.key_bytes));
                }
                let time = seconds(&candidate)?;
                row.push((number, candidate, time));
            }
            if row.is_empty() {
                return Err(Error::params(format!("no key-switching plan fits level {level}")));
            }
            row.sort_by(|a, b| a.2.total_cmp(&b.2));
            priced.push(row);
        }
        let bytes: Vec<u64> = plans.iter().map(|(_, bytes)| *bytes).collect();
        let kept = keep(&priced, &bytes, budget.unwrap_or(u64::MAX))?;
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

/// Which keys to hold: the subset with the least time within the budget.
fn keep(priced: &[Priced], bytes: &[u64], budget: u64) -> Result<Vec<bool>> {
    let size = |kept: &[bool]| -> u64 { kept.iter().zip(bytes).filter(|(k, _)| **k).map(|(_, b)| *b).sum() };
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
    if size(&unlimited) <= budget {
        return Ok(unlimited);
    }
    let found = if bytes.len() <= EXHAUSTIVE_KEYS {
        let subsets = (1u32..1 << bytes.len()).map(|mask| (0..bytes.len()).map(|i| mask >> i & 1 == 1).collect());
        let fitting = subsets.filter(|kept: &Vec<bool>| size(kept) <= budget);
        let timed = fitting.filter_map(|kept| total(priced, &kept).map(|time| (kept, time)));
        timed.min_by(|a, b| a.1.total_cmp(&b.1).then(size(&a.0).cmp(&size(&b.0)))).map(|(kept, _)| kept)
    } else {
        drop_one_by_one(priced, bytes, budget, all)
    };
    found.map(|kept| trim(&kept)).ok_or_else(|| {
        let alone = (0..bytes.len()).filter(|&i| {
            let one: Vec<bool> = (0..bytes.len()).map(|j| i == j).collect();
            total(priced, &one).is_some()
        });
        let least = alone.map(|i| bytes[i]).min().unwrap_or(0);
        Error::params(format!(
            "no keys of at most {budget} bytes serve every level; the smallest that serves all takes {least} bytes"
        ))
    })
}

/// Drops the key that costs the least time for each byte it frees, until the rest fits.
fn drop_one_by_one(priced: &[Priced], bytes: &[u64], budget: u64, mut kept: Vec<bool>) -> Option<Vec<bool>> {
    loop {
        let size: u64 = kept.iter().zip(bytes).filter(|(k, _)| **k).map(|(_, b)| *b).sum();
        if size <= budget {
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
