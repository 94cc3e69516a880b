//! Schedules: which primes are active at each level, as index sets in the one prime table, and under which secret key.
//!
//! The simple form, `level_limbs`, makes every level a prefix of the one above. A [`Schedule`] lists the sets, so that
//! going down a level may bring primes in as well as drop some: with D the product of those that leave and E of those
//! that come in, every value is divided by D / E. That is prime switching (ePrint 2023/1642, section 3.7): a few small
//! primes set the size of a level, all others are as large as the machine likes, and where the small ones are used up,
//! mu large primes leave and small ones return.

mod narrow;

pub use narrow::NarrowChain;
use serde::{Deserialize, Serialize};
use synchromesh_ring::prime::{MAX_PRIME_BITS, MIN_PRIME_BITS};
use synchromesh_ring::{IndexSet, Ring};

use crate::error::Error;

/// Bits by which the modulus of a level exceeds that of the level below, at the least.
const LEAST_STEP: f64 = 18.999;

/// Narrowest prime that a chain gets beside the small ones, where nothing else decides.
const LEAST_BASE: u32 = 30;

/// Active primes and secret keys of the levels, beyond prefixes under one key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Positions in q, rising, of the primes active at level 0, 1, ..; empty: prefixes, as `level_limbs` says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Vec<usize>>,
    /// A second secret key for the lower levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondKey>,
    /// A sparse secret key for level 0, under which ciphertexts are raised (bootstrapping).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparse: Option<SparseKey>,
}

/// A sparse secret key for ciphertexts of level 0 (sparse-secret encapsulation, ePrint 2022/024): a ciphertext goes under
/// it just before its modulus is raised, so that few multiples of the old modulus enter its phase, and comes back to the
/// first key after that. No key under it knows a larger modulus than that of level 0 and one special prime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SparseKey {
    /// Coefficients that are -1 or 1; all others are 0.
    pub weight: usize,
    /// Positions of its special primes in the table q, P, aux; empty: the first of P.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub special: Vec<usize>,
}

/// A sparse secret key with its sets worked out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SparseSet {
    /// Coefficients that are not 0.
    pub weight: usize,
    /// The primes of level 0.
    pub q: IndexSet,
    /// Its special primes.
    pub special: IndexSet,
}

impl SparseSet {
    /// The primes of every key under the sparse secret key.
    #[must_use]
    pub fn keyed(&self) -> IndexSet {
        self.q.union(&self.special)
    }
}

/// A second secret key s' (ePrint 2023/1642, section 3.6): the leading levels are under s with the special primes P,
/// all others under s' with special primes P', among which those that the leading levels have freed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecondKey {
    /// Levels under the first key, counted from the top, 1 or more.
    pub leading_levels: usize,
    /// Positions of P' in the table q, P, aux; empty: P and every prime that only the leading levels use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub special: Vec<usize>,
    /// Digits of a key switch under the second key; none: as few as P' allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omega: Option<usize>,
}

/// A second secret key with its sets worked out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecondSet {
    /// The highest level under the second key.
    pub top_level: usize,
    /// The ciphertext primes of its levels.
    pub q: IndexSet,
    /// Its special primes P'.
    pub special: IndexSet,
}

impl SecondSet {
    /// The primes of every key under the second secret key: its own q, then P'.
    #[must_use]
    pub fn keyed(&self) -> IndexSet {
        self.q.union(&self.special)
    }
}

impl Schedule {
    /// Levels with these active primes, under one secret key.
    #[must_use]
    pub const fn of(levels: Vec<Vec<usize>>) -> Self {
        Self { levels, second: None, sparse: None }
    }

    /// The same levels with a second secret key below the leading ones, P' being P and the primes freed.
    #[must_use]
    pub fn with_second_key(mut self, leading_levels: usize) -> Self {
        self.second = Some(SecondKey { leading_levels, special: Vec::new(), omega: None });
        self
    }

    /// The same levels with a sparse secret key of this weight, its special prime being the first of P.
    #[must_use]
    pub fn with_sparse_key(mut self, weight: usize) -> Self {
        self.sparse = Some(SparseKey { weight, special: Vec::new() });
        self
    }

    /// Whether `level_limbs` says all there is.
    #[must_use]
    pub const fn is_simple(&self) -> bool {
        self.levels.is_empty() && self.second.is_none() && self.sparse.is_none()
    }

    /// The positions active at each level, lowest first, for l ciphertext primes and the simple form `level_limbs`.
    ///
    /// # Errors
    /// [`Error::Params`] for prefixes that do not rise strictly from at least 1 to at most l, both forms at once, or a set
    /// that is empty, unordered or outside q.
    pub fn positions(&self, level_limbs: &[usize], l: usize) -> Result<Vec<Vec<usize>>, Error> {
        if self.levels.is_empty() {
            let every: Vec<usize> = (1..=l).collect();
            let limbs = if level_limbs.is_empty() { &every[..] } else { level_limbs };
            let rising = limbs.windows(2).all(|w| w[0] < w[1]) && limbs.first().is_some_and(|&n| n > 0);
            if !rising || limbs.last().is_some_and(|&top| top > l) {
                let rule = format!("level_limbs {limbs:?} must rise strictly from at least 1 to at most {l}");
                return Err(Error::params(rule));
            }
            return Ok(limbs.iter().map(|&n| (0..n).collect()).collect());
        }
        if !level_limbs.is_empty() {
            return Err(Error::params("a schedule lists its levels, so level_limbs must be empty"));
        }
        for (level, set) in self.levels.iter().enumerate() {
            let rising = set.windows(2).all(|w| w[0] < w[1]) && set.last().is_some_and(|&i| i < l);
            if !rising {
                return Err(Error::params(format!("level {level} is {set:?}: positions must rise and be below {l}")));
            }
        }
        Ok(self.levels.clone())
    }

    /// The active sets of all levels, lowest first, for l ciphertext primes and k special ones.
    ///
    /// # Errors
    /// As [`Self::positions`]; for a level whose modulus is less than 2^19 times that of the level below; and, unless
    /// k = 0 where key switches borrow it, for a prime that no level uses.
    pub(crate) fn levels(
        &self,
        level_limbs: &[usize],
        [l, k]: [usize; 2],
        ring: &Ring,
    ) -> Result<Vec<IndexSet>, Error> {
        let levels: Vec<IndexSet> =
            self.positions(level_limbs, l)?.into_iter().map(|set| set.into_iter().collect()).collect();
        if let Some(idle) = (0..l).find(|&i| k > 0 && !levels.iter().any(|set| set.contains(i))) {
            return Err(Error::params(format!(
                "ciphertext prime {idle} is active at no level, and no key switch borrows it, since there are special \
                 primes: leave it out, or add it to a level"
            )));
        }
        for (level, pair) in levels.windows(2).enumerate() {
            let step = ring.log2(&pair[1]) - ring.log2(&pair[0]);
            if step < LEAST_STEP {
                let above = level + 1;
                return Err(Error::params(format!(
                    "the modulus of level {above} is 2^{step:.2} times that of level {level}; it must be 2^19 or more"
                )));
            }
        }
        Ok(levels)
    }

    /// What the second key covers, in a table of `table` primes of which `keyed` are the first key's.
    pub(crate) fn second_set(
        &self,
        levels: &[IndexSet],
        keyed: &IndexSet,
        table: usize,
    ) -> Result<Option<SecondSet>, Error> {
        let Some(second) = &self.second else { return Ok(None) };
        if second.leading_levels == 0 || second.leading_levels >= levels.len() {
            return Err(Error::params(format!(
                "{} leading levels of {}: at least one level must be under each secret key",
                second.leading_levels,
                levels.len()
            )));
        }
        let top_level = levels.len() - 1 - second.leading_levels;
        let used = levels[..=top_level].iter().fold(IndexSet::empty(), |all, set| all.union(set));
        // In the order of the table.
        let q: IndexSet = keyed.iter().filter(|&i| used.contains(i)).collect();
        let special: IndexSet =
            if second.special.is_empty() { keyed.without(&q) } else { second.special.iter().copied().collect() };
        let outside = special.iter().any(|i| i >= table || q.contains(i));
        let repeated = (1..special.len()).any(|r| special.as_slice()[..r].contains(&special.as_slice()[r]));
        if outside || repeated {
            return Err(Error::params(format!(
                "special primes {special:?} of the second key: they must be different, below {table}, and not active at \
                 levels 0 to {top_level}"
            )));
        }
        Ok(Some(SecondSet { top_level, q, special }))
    }

    /// What the sparse key covers, for special primes `p` in a table of `table` primes and ring degree n.
    pub(crate) fn sparse_set(
        &self,
        levels: &[IndexSet],
        p: &IndexSet,
        [table, n]: [usize; 2],
    ) -> Result<Option<SparseSet>, Error> {
        let (Some(sparse), Some(q)) = (&self.sparse, levels.first()) else { return Ok(None) };
        let weight = sparse.weight;
        if weight == 0 || weight > n / 2 {
            return Err(Error::params(format!("a sparse secret of weight {weight}: it must be 1 to N/2 = {}", n / 2)));
        }
        let given = sparse.special.iter().copied();
        let special: IndexSet = if sparse.special.is_empty() { p.iter().take(1).collect() } else { given.collect() };
        let outside = special.iter().any(|i| i >= table || q.contains(i));
        let repeated = (1..special.len()).any(|r| special.as_slice()[..r].contains(&special.as_slice()[r]));
        if special.is_empty() || outside || repeated {
            return Err(Error::params(format!(
                "special primes {special:?} of the sparse key: there must be one or more, different, below {table}, and \
                 not active at level 0"
            )));
        }
        Ok(Some(SparseSet { weight, q: q.clone(), special }))
    }
}

/// Prime switching by (mu, kappa): where all small primes are used up, mu large ones leave and small ones return
/// (ePrint 2023/1642, section 3.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrimeSwitching {
    /// Large primes that leave together.
    pub mu: usize,
    /// Levels that they make; more than mu.
    pub kappa: usize,
}

/// A chain of mostly large primes: widths for q, and which are active at each level.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SwitchedChain {
    /// Widths in bits: the small primes that return, those of level 0, then the others, the first to leave last.
    pub q_bits: Vec<u32>,
    /// How many of them return.
    pub small: usize,
    /// The levels.
    pub schedule: Schedule,
}

/// Counts and widths by ePrint 2023/1642, section 3.7, for a modulus of a given size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainCounts {
    /// Large primes, l' - mu.
    pub large: usize,
    /// Their width b.
    pub large_bits: u32,
    /// Small primes, kappa.
    pub small: usize,
    /// Their width, mu b / kappa.
    pub small_bits: u32,
}

impl ChainCounts {
    /// All ciphertext primes, l = l' - mu + kappa.
    #[must_use]
    pub const fn primes(&self) -> usize {
        self.large + self.small
    }
}

impl PrimeSwitching {
    /// mu large primes for kappa levels.
    ///
    /// # Errors
    /// [`Error::Params`] unless 1 <= mu < kappa <= 64.
    pub fn new(mu: usize, kappa: usize) -> Result<Self, Error> {
        if mu == 0 || mu >= kappa || kappa > 64 {
            return Err(Error::params(format!("prime switching by ({mu}, {kappa}): it takes 1 <= mu < kappa <= 64")));
        }
        Ok(Self { mu, kappa })
    }

    /// How a modulus of `log_q` bits is split with primes of at most `width` bits: l' = ceil(log q / B), b = log q / l',
    /// l' - mu primes of b bits and kappa of mu b / kappa bits, each width rounded up.
    ///
    /// # Errors
    /// [`Error::Params`] when a width leaves 20 to 61 bits, or mu large primes are not there.
    pub fn counts(self, log_q: u32, width: u32) -> Result<ChainCounts, Error> {
        let Self { mu, kappa } = Self::new(self.mu, self.kappa)?;
        let count = log_q.div_ceil(width.max(1)).max(1);
        let large_bits = log_q.div_ceil(count);
        let small_bits = (large_bits * mu as u32).div_ceil(kappa as u32);
        let fits = |bits: u32| (MIN_PRIME_BITS..=MAX_PRIME_BITS).contains(&bits);
        if !fits(large_bits) || !fits(small_bits) || (count as usize) <= mu {
            return Err(Error::params(format!(
                "a modulus of {log_q} bits as {count} primes of {large_bits} bits, {mu} of them in {kappa} parts of \
                 {small_bits} bits: widths must be 20 to 61, and more than {mu} primes are needed"
            )));
        }
        Ok(ChainCounts { large: count as usize - mu, large_bits, small: kappa, small_bits })
    }

    /// Whether a chain of `counts` has fewer primes than one of small primes alone: l >= kappa + mu / (kappa - mu).
    #[must_use]
    pub const fn pays(self, counts: &ChainCounts) -> bool {
        counts.primes() * (self.kappa - self.mu) >= self.kappa * (self.kappa - self.mu) + self.mu
    }

    /// A chain of `depth` levels of exactly `level_bits` bits each above a level 0 of at least `base_bits`.
    ///
    /// Level 0 has primes of its own of at most `width` bits, which never leave. Going down, a small prime leaves; when
    /// none is left, mu large primes, kappa times `level_bits` together, leave and kappa - 1 small ones return in the
    /// same division, which is steps 5 and 6 of the paper's schedule at once. Levels beyond whole rounds of kappa have
    /// a small prime each at the top, which leaves for good. The top level has all primes, so that no key has more.
    ///
    /// # Errors
    /// [`Error::Params`] when a small or large prime would be outside 20 to 61 bits.
    pub fn chain(self, base_bits: u32, level_bits: u32, depth: usize, width: u32) -> Result<SwitchedChain, Error> {
        let Self { mu, kappa } = Self::new(self.mu, self.kappa)?;
        let together = level_bits.saturating_mul(kappa as u32);
        let large: Vec<u32> =
            (0..mu as u32).map(|i| together / mu as u32 + u32::from(i < together % mu as u32)).collect();
        let fits = |bits: u32| (MIN_PRIME_BITS..=MAX_PRIME_BITS).contains(&bits);
        if !fits(level_bits) || !large.iter().all(|&bits| fits(bits)) || !fits(width) {
            return Err(Error::params(format!(
                "prime switching by ({mu}, {kappa}) at {level_bits} bits a level takes large primes of {large:?} bits; \
                 widths must be 20 to {MAX_PRIME_BITS}"
            )));
        }
        // Small primes at level 0: as many as leave the fewest levels over after whole rounds of kappa.
        let most = (base_bits.saturating_sub(LEAST_BASE) / level_bits) as usize;
        let left_over = |lowest: usize| (depth + lowest + 1).checked_sub(kappa).map_or(0, |more| more % kappa);
        let lowest = (0..=most.min(kappa - 1)).min_by_key(|&lowest| left_over(lowest)).unwrap_or(0);
        let small = (kappa - 1).min(lowest + depth);
        let rest = (base_bits - (level_bits * lowest as u32).min(base_bits)).max(LEAST_BASE);
        let count = rest.div_ceil(width);
        let mut q_bits = vec![level_bits; small];
        q_bits.extend((0..count).map(|_| rest.div_ceil(count)));
        let (mut active, mut present) = (q_bits.len(), lowest);
        let set = |present: usize, active: usize| (0..present).chain(small..active).collect::<Vec<usize>>();
        let mut levels = vec![set(present, active)];
        for level in 1..=depth {
            if present < small {
                present += 1;
            } else if level + left_over(lowest) > depth {
                q_bits.push(level_bits);
            } else {
                q_bits.extend(&large);
                present = 0;
            }
            active = q_bits.len();
            levels.push(set(present, active));
        }
        Ok(SwitchedChain { q_bits, small, schedule: Schedule::of(levels) })
    }
}
