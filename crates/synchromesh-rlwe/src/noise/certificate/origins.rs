//! Which fresh encryptions an error descends from, so that two errors can be told to have nothing in common.

/// How many intervals are kept.
const INTERVALS: usize = 4;

/// A set of numbered encryptions of one context that holds all those an error descends from, as up to four intervals;
/// gaps between more are filled, which can only make two sets meet that do not.
///
/// Errors with disjoint origins are independent given the keys: what randomness they have beside keys was drawn apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origins {
    /// Sorted, disjoint and not adjacent; both ends belong to an interval. Unused ones are (1, 0).
    intervals: [(u64, u64); INTERVALS],
}

const UNUSED: (u64, u64) = (1, 0);

impl Origins {
    /// None recorded: what an operation adds by itself.
    pub const NONE: Self = Self { intervals: [UNUSED; INTERVALS] };

    /// Anything: what was read from a file, or made outside a context.
    pub const ANY: Self = Self { intervals: [(0, u64::MAX), UNUSED, UNUSED, UNUSED] };

    /// One encryption.
    #[must_use]
    pub const fn one(number: u64) -> Self {
        Self { intervals: [(number, number), UNUSED, UNUSED, UNUSED] }
    }

    fn used(&self) -> impl Iterator<Item = (u64, u64)> {
        self.intervals.into_iter().filter(|(first, last)| first <= last)
    }

    /// Whether nothing is recorded.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.used().next().is_none()
    }

    /// Whether both are recorded and have no encryption in common.
    #[must_use]
    pub fn disjoint(&self, other: &Self) -> bool {
        let apart = |(a, b): (u64, u64), (c, d): (u64, u64)| b < c || d < a;
        !self.is_none() && !other.is_none() && self.used().all(|x| other.used().all(|y| apart(x, y)))
    }

    /// Those of both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all: Vec<(u64, u64)> = self.used().chain(other.used()).collect();
        all.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match merged.last_mut() {
                Some(previous) if first <= previous.1.saturating_add(1) => previous.1 = previous.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        while merged.len() > INTERVALS {
            let gap = |i: &usize| merged[i + 1].0 - merged[*i].1;
            let Some(narrowest) = (0..merged.len() - 1).min_by_key(gap) else { break };
            merged[narrowest].1 = merged[narrowest + 1].1;
            merged.remove(narrowest + 1);
        }
        let mut intervals = [UNUSED; INTERVALS];
        intervals[..merged.len()].copy_from_slice(&merged);
        Self { intervals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unions_hold_every_member_and_nothing_is_disjoint_from_what_it_shares() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 40 & 63
        };
        for _ in 0..500 {
            let sets: [Vec<u64>; 2] = [0, 1].map(|_| (0..next() % 9).map(|_| next()).collect());
            let [a, b] =
                sets.each_ref().map(|set| set.iter().fold(Origins::NONE, |all, &x| all.union(&Origins::one(x))));
            for (set, origins) in sets.iter().zip([&a, &b]) {
                assert!(set.iter().all(|&x| !origins.disjoint(&Origins::one(x))));
            }
            let shared = sets[0].iter().any(|x| sets[1].contains(x));
            assert!(!(shared && a.disjoint(&b)));
            let union = a.union(&b);
            assert!(sets.concat().iter().all(|&x| !union.disjoint(&Origins::one(x))));
            assert_eq!(union, b.union(&a));
        }
        // Four intervals are kept exactly.
        let odd = [1, 3, 5, 7].iter().fold(Origins::NONE, |all, &x| all.union(&Origins::one(x)));
        let even = [0, 2, 4, 6].iter().fold(Origins::NONE, |all, &x| all.union(&Origins::one(x)));
        assert!(odd.disjoint(&even) && even.disjoint(&odd));
        assert!(!Origins::NONE.disjoint(&odd) && !Origins::ANY.disjoint(&odd) && !odd.disjoint(&Origins::ANY));
    }
}
