//! What one level does with a stored key: how many of its digits make one, what of P it uses and borrows, and its ring.
//!
//! The numbers name no primes, so that a file can hold them: which primes they stand for follows from the parameters and
//! the stored key. One key, stored with any digits, serves all choices (Hwang, Seo and Song, level-aware key switching,
//! section 4.3; the extended ring of ePrint 2023/1642, section 2.8).

use serde::{Deserialize, Serialize};
use synchromesh_ring::IndexSet;

use crate::error::Error;
use crate::params::Params;
use crate::switch_plan::{Gadget, ProductRing, SwitchPlan};

/// How a level switches keys, beyond the stored key's own digits and special primes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelChoice {
    /// Neighbouring stored digits that make one; the last may have fewer.
    pub merged: usize,
    /// Special primes of the stored key that P has, its first ones.
    pub dedicated: usize,
    /// Ciphertext primes that P has besides, the last that no level up to this one uses.
    pub borrowed: usize,
    /// Digits of the key in an extended ring, where the inner product is computed in one.
    pub omega2: Option<usize>,
}

impl LevelChoice {
    /// The digits and the special primes that the key of `stored` is stored with.
    #[must_use]
    pub fn plain(stored: &SwitchPlan) -> Self {
        Self { merged: 1, dedicated: stored.shape().special.len(), borrowed: 0, omega2: None }
    }

    /// The plan for keys stored as those of `stored` are, for inputs of level `highest` and below.
    ///
    /// # Errors
    /// [`Error::BorrowedPrimes`] when fewer primes are free; [`Error::SwitchPlan`] for no digits or no P, more special primes
    /// than are stored, digits split in base 2^w; [`Error::Level`]; as [`SwitchPlan::in_extended_ring_at`].
    pub fn plan(self, params: &Params, stored: &SwitchPlan, highest: usize) -> Result<SwitchPlan, Error> {
        let (shape, active) = (stored.shape(), params.level(highest)?);
        let narrow = |plan: SwitchPlan| match self.omega2 {
            Some(omega2) => plan.up_to(active).in_extended_ring_at(params, active, omega2),
            None => Ok(plan),
        };
        if (Self { omega2: None, ..self }) == Self::plain(stored) {
            return narrow(stored.clone());
        }
        let (digits, free) = Self::split(params, stored, highest)?;
        if self.merged == 0 || self.dedicated > shape.special.len() || stored.radix_bits.is_some() {
            return Err(Error::switch_plan(format!(
                "level {highest} with {} stored digits in one and {} special primes: at least one digit, at most the {} \
                 stored special primes, and only digits that are not split in base 2^w",
                self.merged,
                self.dedicated,
                shape.special.len()
            )));
        }
        if self.borrowed > free.len() {
            let (limbs, primes) = (active.len(), shape.q.len());
            let most = primes.saturating_sub(self.borrowed);
            return Err(Error::BorrowedPrimes { limbs, most, borrowed: self.borrowed, primes });
        }
        let merge = |run: &[IndexSet]| run.iter().flat_map(IndexSet::iter).collect();
        let digits = digits.chunks(self.merged).map(merge).collect();
        let borrowed = free.iter().skip(free.len() - self.borrowed);
        let special = shape.special.iter().take(self.dedicated).chain(borrowed).collect();
        let plan = SwitchPlan {
            digits,
            gadget: Gadget::Coalesced { stored: shape.clone() },
            special: shape.special,
            ring: ProductRing::Base,
            ..stored.clone()
        };
        narrow(plan.dividing_by(special)?)
    }

    /// The stored digits that levels up to `highest` use, and the primes of the others.
    fn split(params: &Params, stored: &SwitchPlan, highest: usize) -> Result<(Vec<IndexSet>, IndexSet), Error> {
        let shape = stored.shape();
        let used =
            (0..=highest).try_fold(IndexSet::empty(), |all, level| Ok::<_, Error>(all.union(params.level(level)?)));
        let used = used?;
        let mut digits = shape.sizes.split(&shape.q)?;
        digits.retain(|digit| !digit.intersection(&used).is_empty());
        let held: IndexSet = digits.iter().flat_map(IndexSet::iter).collect();
        let missing = used.without(&held);
        if !missing.is_empty() {
            return Err(Error::switch_plan(format!(
                "level {highest} has primes {missing:?}, which no stored digit holds"
            )));
        }
        Ok((digits, shape.q.without(&held)))
    }

    /// All choices in R_QP of a level, by merged digits and then by rising P: first of special primes, then of borrowed
    /// ones besides.
    ///
    /// # Errors
    /// [`Error::Level`]; [`Error::SwitchPlan`] when no stored digit holds a prime of the level.
    pub fn all(params: &Params, stored: &SwitchPlan, level: usize) -> Result<Vec<Vec<Self>>, Error> {
        let (digits, free) = Self::split(params, stored, level)?;
        let special = stored.shape().special.len();
        let sizes = (1..=special).map(|dedicated| (dedicated, 0));
        let sizes: Vec<_> = sizes.chain((1..=free.len()).map(|borrowed| (special, borrowed))).collect();
        let of = |merged| {
            let choice = |&(dedicated, borrowed)| Self { merged, dedicated, borrowed, omega2: None };
            sizes.iter().map(choice).collect()
        };
        Ok((1..=digits.len()).map(of).collect())
    }
}
