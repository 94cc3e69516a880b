//! The plan of each level: the index map of level-aware key switching (Hwang, Seo and Song, section 4.3).

use synchromesh_ring::IndexSet;

use crate::error::Error;
use crate::params::Params;
use crate::switch_plan::{DigitSizes, SwitchPlan};

/// By how many bits a digit may exceed P in the default choice: the noise of a switch grows by as many.
const EXCESS_BITS: f64 = 2.0;

/// A plan for each level, all from one stored key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelPlans {
    first: SwitchPlan,
    /// Of levels 1, 2, ..; the last serves all levels above.
    rest: Vec<SwitchPlan>,
}

/// One plan for every level.
impl From<SwitchPlan> for LevelPlans {
    fn from(plan: SwitchPlan) -> Self {
        Self { first: plan, rest: Vec::new() }
    }
}

/// How a level switches keys: primes in a digit, and ciphertext primes that P borrows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DigitChoice {
    /// Primes in a digit.
    pub digit_primes: usize,
    /// Primes of P besides dedicated ones, the last of the chain.
    pub borrowed: usize,
}

impl LevelPlans {
    /// These plans for levels 0, 1, ..
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] unless there is one for each level and all are for keys stored with the same digits;
    /// [`Error::BorrowedPrimes`] when one borrows a prime that its level still has.
    pub fn new(params: &Params, plans: Vec<SwitchPlan>) -> Result<Self, Error> {
        let levels = params.top_level() + 1;
        let count = plans.len();
        let mut plans = plans.into_iter();
        let Some(first) = plans.next().filter(|_| count == levels) else {
            return Err(Error::switch_plan(format!("{count} plans are given for {levels} levels")));
        };
        let all = Self { first, rest: plans.collect() };
        all.check(params)?;
        Ok(all)
    }

    /// Fails unless every level can use its plan, and one stored key serves them all.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn check(&self, params: &Params) -> Result<(), Error> {
        for level in 0..=params.top_level() {
            let plan = self.at(level);
            plan.require_input(params, params.level(level)?)?;
            if plan.shape() != self.first.shape() {
                let rule = format!("the plans of levels 0 and {level} are for keys stored differently");
                return Err(Error::switch_plan(rule));
            }
        }
        Ok(())
    }

    /// How parameters switch keys: by `omega` digits and their special primes, of as many primes each or, where a schedule
    /// lists primes of different widths or has a sparse key for bootstrapping, of about as many bits; or, where there are no special primes and the highest
    /// level lacks primes to borrow, level-aware.
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] unless 1 <= omega <= number of ciphertext primes, which it must equal in the second case.
    pub fn of(params: &Params, omega: usize) -> Result<Self, Error> {
        let (l, top) = (params.q().len(), params.level(params.top_level())?.len());
        if top == l || !params.p().is_empty() {
            let schedule = &params.literal().schedule;
            if schedule.levels.is_empty() && schedule.sparse.is_none() {
                return Ok(SwitchPlan::hybrid(params, omega)?.into());
            }
            let width = |i: usize| params.ring().log2(&std::iter::once(i).collect()).round() as u32;
            let widths: Vec<u32> = params.q().iter().map(width).collect();
            return Ok(SwitchPlan::with_digits(params, &DigitSizes::balanced(&widths, omega)?)?.into());
        }
        if omega != l {
            let rule = format!("keys without special primes are stored in {l} digits of one prime; omega is {omega}");
            return Err(Error::switch_plan(rule));
        }
        Self::level_aware(params)
    }

    /// Level-aware key switching from one key of single-prime digits, by a choice for each level.
    ///
    /// # Errors
    /// As [`SwitchPlan::level_aware`] and [`Self::new`].
    pub fn by_choice(params: &Params, choices: &[DigitChoice]) -> Result<Self, Error> {
        let most = |choice: &DigitChoice| {
            let highest = choices.iter().rposition(|c| c == choice).unwrap_or(0);
            params.level(highest.min(params.top_level()))
        };
        let plan = |choice: &DigitChoice| {
            let plan = SwitchPlan::level_aware(params, choice.digit_primes, choice.borrowed)?;
            Ok(if plan.require_input(params, most(choice)?).is_ok() { plan.up_to(most(choice)?) } else { plan })
        };
        Self::new(params, choices.iter().map(plan).collect::<Result<_, Error>>()?)
    }

    /// Level-aware key switching with the fewest transforms at each level, (omega + 2)(l + k) of them.
    ///
    /// # Errors
    /// As [`default_choice`].
    pub fn level_aware(params: &Params) -> Result<Self, Error> {
        let choice = |level| default_choice(params, params.level(level)?);
        let choices = (0..=params.top_level()).map(choice).collect::<Result<Vec<_>, Error>>()?;
        Self::by_choice(params, &choices)
    }

    /// The plan of a level; that of the highest for levels above.
    #[must_use]
    pub fn at(&self, level: usize) -> &SwitchPlan {
        level.checked_sub(1).map_or(&self.first, |i| self.rest.get(i).or(self.rest.last()).unwrap_or(&self.first))
    }

    /// The plans of levels 0, 1, .., as far as they are given.
    pub fn iter(&self) -> impl Iterator<Item = &SwitchPlan> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// Each plan once, the lowest level's first.
    #[must_use]
    pub fn distinct(&self) -> Vec<&SwitchPlan> {
        let mut seen: Vec<&SwitchPlan> = Vec::new();
        self.iter().for_each(|plan| {
            if !seen.contains(&plan) {
                seen.push(plan);
            }
        });
        seen
    }

    /// Bytes of one source's keys in use, for all levels together.
    #[must_use]
    pub fn prepared_bytes(&self, params: &Params) -> u64 {
        self.distinct().iter().fold(0, |sum, plan| sum.saturating_add(plan.prepared_bytes(params)))
    }
}

/// The choice with the fewest transforms for an input on `active` among those whose digits exceed P by at most two bits;
/// if there is none, the one whose digits exceed it least.
///
/// # Errors
/// [`Error::BorrowedPrimes`] when the input has all ciphertext primes and there are no dedicated special ones.
pub fn default_choice(params: &Params, active: &IndexSet) -> Result<DigitChoice, Error> {
    let (l, primes, ring) = (active.len(), params.q().len(), params.ring());
    let free = primes - l;
    let dedicated = params.p().len();
    let fewest = usize::from(dedicated == 0);
    if free < fewest {
        return Err(Error::BorrowedPrimes { limbs: l, most: primes - fewest, borrowed: fewest, primes });
    }
    let top = |k: usize| params.q().iter().skip(primes - k).collect::<IndexSet>();
    let mut best: Option<((f64, usize), DigitChoice)> = None;
    for borrowed in fewest..=free {
        let p = ring.log2(params.p()) + ring.log2(&top(borrowed));
        for digit_primes in 1..=l {
            let digits = active.as_slice().chunks(digit_primes);
            let transforms = (digits.len() + 2) * (l + borrowed + dedicated);
            let largest = digits.map(|d| ring.log2(&d.iter().copied().collect())).fold(0.0, f64::max);
            // What is within the limit ranks by its transforms alone.
            let rank = (largest - p).max(EXCESS_BITS);
            let better = |(other, _): &((f64, usize), _)| {
                rank < other.0 || (rank.total_cmp(&other.0).is_eq() && transforms < other.1)
            };
            if best.as_ref().is_none_or(better) {
                best = Some(((rank, transforms), DigitChoice { digit_primes, borrowed }));
            }
        }
    }
    best.map(|(_, choice)| choice).ok_or_else(|| Error::switch_plan("a key switch needs an input of at least one limb"))
}
