//! Which part of a stored key there is: the rows of some digits, the limbs of some primes.
//!
//! A ciphertext at a low level meets the rows of the digits it has left, on the primes it has left and those of P. A key
//! that serves no higher level needs no more: it is trimmed, at generation or later, with the same numbers in what stays.

use synchromesh_ring::IndexSet;

use crate::error::Error;
use crate::level_plans::LevelPlans;
use crate::params::Params;
use crate::switch_plan::{KeyShape, SwitchPlan};

/// A stored key's shape, and which of its rows and limbs there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    shape: KeyShape,
    rows: Vec<usize>,
    primes: IndexSet,
    usable: IndexSet,
}

impl KeyPart {
    /// A whole key of this shape: all rows, over q and P_0.
    ///
    /// # Errors
    /// As [`KeyShape::plan`].
    pub fn whole(params: &Params, shape: KeyShape) -> Result<Self, Error> {
        let rows = (0..shape.plan(params)?.rows(params, &shape.q).len()).collect();
        let (primes, usable) = (shape.primes(), shape.q.clone());
        Ok(Self { shape, rows, primes, usable })
    }

    /// The rows `rows` of such a key, on `primes`.
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] as [`Self::whole`]; unless both lists rise, are not empty and name what there is; and when a
    /// digit has some of its rows only, or none of its primes.
    pub fn of(params: &Params, shape: KeyShape, rows: Vec<usize>, primes: IndexSet) -> Result<Self, Error> {
        let whole = Self::whole(params, shape)?;
        let rising = |list: &[usize]| !list.is_empty() && list.windows(2).all(|w| w[0] < w[1]);
        let of = whole.shape.rows(params);
        let known = rows.iter().all(|&i| i < of.len()) && primes.without(&whole.primes).is_empty();
        let kept = |i: usize| rows.binary_search(&i).is_ok();
        let met = of.iter().filter(|r| kept(r.index)).all(|r| !r.own.intersection(&primes).is_empty());
        let complete = of.windows(2).all(|w| w[0].own != w[1].own || kept(w[0].index) == kept(w[1].index));
        let ordered: Vec<usize> = primes.iter().filter_map(|i| whole.primes.position(i)).collect();
        if !rising(&rows) || !rising(&ordered) || !known || !met || !complete {
            return Err(Error::switch_plan(format!(
                "a trimmed key must name rising rows below {}, all of a digit and each with a prime of its own, and \
                 primes of {:?} in that order; this one names rows {rows:?} and primes {primes:?}",
                of.len(),
                whole.primes
            )));
        }
        let own = of.iter().filter(|r| kept(r.index)).flat_map(|r| r.own.as_slice());
        let own: IndexSet = own.copied().collect();
        let usable = whole.usable.intersection(&own).intersection(&primes);
        Ok(Self { rows, primes, usable, ..whole })
    }

    /// What of a plan is fixed in the whole key.
    #[must_use]
    pub const fn shape(&self) -> &KeyShape {
        &self.shape
    }

    /// The rows there are, rising: one a digit, or radix digit.
    #[must_use]
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The primes of each row.
    #[must_use]
    pub const fn primes(&self) -> &IndexSet {
        &self.primes
    }

    /// The ciphertext primes that an input may have: those of the rows there are.
    #[must_use]
    pub const fn usable(&self) -> &IndexSet {
        &self.usable
    }

    /// Whether nothing is missing.
    #[must_use]
    pub fn is_whole(&self, params: &Params) -> bool {
        self.rows.len() == self.shape.rows(params).len() && self.primes == self.shape.primes()
    }

    /// Bytes in memory of the half that is stored, one word a residue.
    #[must_use]
    pub fn bytes(&self, n: usize) -> u64 {
        8u64.saturating_mul((self.rows.len() * self.primes.len()) as u64).saturating_mul(n as u64)
    }

    /// What inputs on `active` need for `plan`.
    ///
    /// # Errors
    /// [`Error::BorrowedPrimes`] when the plan does not take such an input.
    pub fn needed(params: &Params, plan: &SwitchPlan, active: &IndexSet) -> Result<Self, Error> {
        plan.require_input(params, active)?;
        let plan = plan.clone().up_to(active);
        let rows = plan.rows(params, params.q()).into_iter().flat_map(|row| row.stored).collect();
        let shape = plan.shape();
        let primes = shape.primes().intersection(&plan.key_primes());
        Self::of(params, shape, rows, primes)
    }

    /// What of a whole key both parts have together.
    fn union(mut self, other: &Self, params: &Params) -> Result<Self, Error> {
        self.rows.extend(&other.rows);
        self.rows.sort_unstable();
        self.rows.dedup();
        let primes = self.shape.primes().intersection(&self.primes.union(&other.primes));
        Self::of(params, self.shape, self.rows, primes)
    }
}

impl LevelPlans {
    /// What levels 0 to `level` need of a stored key.
    ///
    /// # Errors
    /// [`Error::Level`] above the top level, or as [`KeyPart::needed`].
    pub fn needed(&self, params: &Params, level: usize) -> Result<KeyPart, Error> {
        let at = |level| KeyPart::needed(params, self.at(level), params.level(level)?);
        (0..level).try_fold(at(level)?, |part, lower| part.union(&at(lower)?, params))
    }
}
