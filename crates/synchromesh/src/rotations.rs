//! Rotations that keys are made for, and rotations from fewer keys: every other one as a sum of those that have keys.
//!
//! A rotation by k = k_1 + .. + k_m modulo the row takes m key switches instead of one. Which m is possible depends on
//! which keys there are; [`Routes::within`] looks for the set of a given size that makes the longest sum shortest:
//! digits in several bases, signed bits, and what is left when steps are dropped one by one.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Most key switches that one rotation is made of.
pub const MOST_SWITCHES: usize = 16;

/// Rotations of which up to this many are dropped one by one, each time the best of all.
const MOST_PRUNED: usize = 16;

/// Rotations of which up to this many are dropped where they are sums of two; more are only written in digits.
const MOST_HALVED: usize = 64;

/// Rotations that a circuit makes, and that keys are made for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rotations {
    /// Rotations to the left by k slots of a row, to the right for k < 0, in rising order and without 0.
    pub by: Vec<i64>,
    /// Whether rows are swapped (BFV, BGV) or slots conjugated (CKKS): one automorphism, X -> X^-1.
    pub swap: bool,
}

impl Rotations {
    /// None: keys to relinearise with alone.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Rotations by each k; 0 needs no key.
    #[must_use]
    pub fn by(steps: impl IntoIterator<Item = i64>) -> Self {
        let mut by: Vec<i64> = steps.into_iter().filter(|&k| k != 0).collect();
        by.sort_unstable();
        by.dedup();
        Self { by, swap: false }
    }

    /// The swap of rows in addition.
    #[must_use]
    pub const fn and_swap(mut self) -> Self {
        self.swap = true;
        self
    }

    /// Conjugation in addition: what the swap of rows is in CKKS.
    #[must_use]
    pub const fn and_conjugate(self) -> Self {
        self.and_swap()
    }

    /// The rotations of both.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let swap = self.swap || other.swap;
        Self { swap, ..Self::by(self.by.into_iter().chain(other.by.iter().copied())) }
    }
}

/// For each rotation the steps it is made of, each of which has a key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Routes {
    /// Slots in a row: steps count modulo it.
    row: usize,
    /// The steps that have keys, rising.
    keys: Vec<i64>,
    /// For each rotation that has no key of its own the steps it is made of.
    composed: BTreeMap<i64, Vec<i64>>,
}

impl Routes {
    /// A key for each of `steps`, of which those that are the same modulo `row` have one.
    #[must_use]
    pub fn direct(steps: &[i64], row: usize) -> Self {
        // A turn by nothing needs no key.
        let mut known = BTreeSet::from([0]);
        let mut keys: Vec<i64> = steps.iter().copied().filter(|&step| known.insert(centred(step, row))).collect();
        keys.sort_unstable();
        Self { row, keys, composed: BTreeMap::new() }
    }

    /// At most `most_keys` keys from which all of `steps` are made, with the fewest switches for the longest of them
    /// and then the fewest for all; none when every set of so few keys takes more than [`MOST_SWITCHES`].
    #[must_use]
    pub fn within(steps: &[i64], row: usize, most_keys: usize) -> Option<Self> {
        let direct = Self::direct(steps, row);
        if direct.keys.len() <= most_keys {
            return Some(direct);
        }
        let routes = direct.composed_by(|keys| keys.len() <= most_keys);
        routes.into_iter().min_by_key(|routes| (routes.switches(), routes.all_switches(), routes.keys.len()))
    }

    /// The fewest keys from which all of `steps` are made.
    #[must_use]
    pub fn fewest(steps: &[i64], row: usize) -> usize {
        let direct = Self::direct(steps, row);
        let all = direct.composed_by(|_| true);
        all.iter().map(|routes| routes.keys.len()).min().unwrap_or(direct.keys.len()).min(direct.keys.len())
    }

    /// These rotations from every set of keys that is considered and `fits`.
    fn composed_by(&self, fits: impl Fn(&[i64]) -> bool) -> Vec<Self> {
        let sets = families(&self.keys, self.row).into_iter().chain(pruned(&self.keys, self.row));
        let sets = sets.chain(halved(&self.keys, self.row));
        let fitting = sets.filter(|keys| !keys.is_empty() && fits(keys));
        fitting.filter_map(|keys| Self::by(&self.keys, self.row, keys)).collect()
    }

    /// `steps` from these keys by the shortest sums; none when one takes too many.
    fn by(steps: &[i64], row: usize, mut keys: Vec<i64>) -> Option<Self> {
        keys.sort_unstable();
        let sums = shortest(steps, row, &keys)?;
        let composed = steps.iter().copied().zip(sums).filter(|(_, sum)| sum.len() > 1);
        Some(Self { row, composed: composed.collect(), keys })
    }

    /// The steps that have keys.
    #[must_use]
    pub fn keys(&self) -> &[i64] {
        &self.keys
    }

    /// Whether every rotation has a key of its own.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.composed.is_empty()
    }

    /// The steps that a rotation by k is made of; none for one that has a key of its own, or is not known.
    #[must_use]
    pub fn route(&self, k: i64) -> Option<&[i64]> {
        let same = |step: &i64| centred(*step, self.row) == centred(k, self.row);
        self.composed.get(&k).or_else(|| self.composed.iter().find(|(step, _)| same(step)).map(|x| x.1)).map(|x| &x[..])
    }

    /// Whether these are routes for exactly `steps` in rows of `row` slots: known keys, and sums of them that come to each
    /// other rotation in few switches.
    pub(crate) fn make(&self, steps: &[i64], row: usize) -> bool {
        let centre = |of: &[i64]| of.iter().map(|&k| centred(k, row)).collect::<BTreeSet<_>>();
        let (keys, wanted) = (centre(&self.keys), centre(steps));
        let composed = |(step, made): (&i64, &Vec<i64>)| {
            let sum = made.iter().fold(0i64, |sum, &k| sum.wrapping_add(centred(k, row)));
            let known = made.iter().all(|k| self.keys.binary_search(k).is_ok());
            let short = (2..=MOST_SWITCHES).contains(&made.len());
            known && short && wanted.contains(&centred(*step, row)) && centred(sum, row) == centred(*step, row)
        };
        let routed: BTreeSet<i64> = self.composed.keys().map(|&k| centred(k, row)).collect();
        let made = |step: &i64| *step == 0 || keys.contains(step) || routed.contains(step);
        let few = self.row == row && self.keys.len() <= steps.len();
        let rising = self.keys.windows(2).all(|pair| pair[0] < pair[1]);
        few && rising && self.composed.iter().all(composed) && wanted.iter().all(made)
    }

    /// Most key switches of a rotation.
    #[must_use]
    pub fn switches(&self) -> usize {
        self.composed.values().map(Vec::len).max().unwrap_or(1)
    }

    /// Key switches of all composed rotations together.
    fn all_switches(&self) -> usize {
        self.composed.values().map(Vec::len).sum()
    }

    /// The rotations that keys are needed for to make `steps`.
    #[must_use]
    pub fn expand(&self, steps: &Rotations) -> Rotations {
        let made = |&k: &i64| self.route(k).map_or_else(|| vec![k], <[i64]>::to_vec);
        Rotations { swap: steps.swap, ..Rotations::by(steps.by.iter().flat_map(made)) }
    }
}

/// k modulo the row, from -row/2 to row/2.
fn centred(k: i64, row: usize) -> i64 {
    let row = row.max(1) as i64;
    let k = k.rem_euclid(row);
    if 2 * k > row { k - row } else { k }
}

/// Sets that reach every step: digits times powers of a base, the powers alone, and signed bits.
fn families(steps: &[i64], row: usize) -> Vec<Vec<i64>> {
    let mut sets = Vec::new();
    for log_base in 1..=8 {
        let (mut whole, mut powers) = (Vec::new(), Vec::new());
        for &step in steps {
            let mut rest = step.rem_euclid(row.max(1) as i64);
            let mut power = 1;
            while rest > 0 {
                let digit = rest & ((1 << log_base) - 1);
                if digit > 0 {
                    whole.push(digit * power);
                    powers.push(power);
                }
                (rest, power) = (rest >> log_base, power << log_base);
            }
        }
        sets.extend([whole, powers]);
    }
    sets.push(steps.iter().flat_map(|&step| signed_bits(centred(step, row))).collect());
    for set in &mut sets {
        set.sort_unstable();
        set.dedup();
    }
    sets
}

/// k as a sum of powers of two with signs, no two of them neighbours.
fn signed_bits(k: i64) -> Vec<i64> {
    let (mut rest, mut power, mut bits) = (k, 1i64, Vec::new());
    while rest != 0 {
        if rest & 1 == 1 {
            let bit = 2 - rest.rem_euclid(4);
            bits.push(bit * power);
            rest -= bit;
        }
        (rest, power) = (rest / 2, power * 2);
    }
    bits
}

/// The steps with one after another left out, each time the one whose loss costs the fewest switches.
fn pruned(steps: &[i64], row: usize) -> Vec<Vec<i64>> {
    let mut sets = Vec::new();
    let mut keys = steps.to_vec();
    while keys.len() > 1 && steps.len() <= MOST_PRUNED {
        let without = |i: usize| {
            let mut fewer = keys.clone();
            fewer.remove(i);
            Routes::by(steps, row, fewer)
        };
        let best = (0..keys.len()).filter_map(without).min_by_key(|r| (r.switches(), r.all_switches()));
        let Some(best) = best else { break };
        keys = best.keys;
        sets.push(keys.clone());
    }
    sets
}

/// The steps with one after another left out that is a sum of two others, the longest first: none that such a sum needs, as
/// long as there is another.
fn halved(steps: &[i64], row: usize) -> Vec<Vec<i64>> {
    let (mut sets, mut keys) = (Vec::new(), steps.to_vec());
    if keys.len() > MOST_HALVED {
        return sets;
    }
    keys.sort_unstable_by_key(|&k| std::cmp::Reverse(centred(k, row).abs()));
    loop {
        let (before, mut needed, mut at) = (keys.len(), BTreeSet::new(), 0);
        while at < keys.len() {
            let key = keys[at];
            let others: BTreeMap<i64, i64> =
                keys.iter().filter(|&&k| k != key).map(|&k| (centred(k, row), k)).collect();
            let rest = |&k: &i64| others.get(&centred(key - k, row)).map(|&other| [k, other]);
            match others.values().find_map(rest).filter(|_| !needed.contains(&key)) {
                Some(sum) => {
                    needed.extend(sum);
                    keys.remove(at);
                    sets.push(keys.clone());
                }
                None => at += 1,
            }
        }
        if keys.len() == before {
            return sets;
        }
    }
}

/// Each step as the shortest sum of keys modulo the row, found breadth first; none when one takes too many.
fn shortest(steps: &[i64], row: usize, keys: &[i64]) -> Option<Vec<Vec<i64>>> {
    const UNSEEN: u32 = u32::MAX;
    let size = row.max(1);
    let place = |k: i64| k.rem_euclid(size as i64) as usize;
    // For each rotation reached, the key that came last.
    let mut last = vec![UNSEEN; size];
    let (mut front, mut left) = (vec![0usize], steps.iter().filter(|&&k| place(k) != 0).count());
    last[0] = 0;
    let mut wanted = vec![0u32; size];
    steps.iter().filter(|&&k| place(k) != 0).for_each(|&k| wanted[place(k)] += 1);
    for _ in 0..MOST_SWITCHES {
        let mut next = Vec::new();
        for &from in &front {
            for (i, &key) in keys.iter().enumerate() {
                let to = (from + place(key)) % size;
                if last[to] == UNSEEN {
                    last[to] = i as u32;
                    left -= wanted[to] as usize;
                    next.push(to);
                }
            }
        }
        front = next;
        if left == 0 {
            let back = |&step: &i64| {
                let (mut at, mut sum) = (place(step), Vec::new());
                while at != 0 {
                    let key = keys[last[at] as usize];
                    sum.push(key);
                    at = (at + size - place(key)) % size;
                }
                sum
            };
            return Some(steps.iter().map(back).collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(routes: &Routes, steps: &[i64], row: usize) {
        for &step in steps.iter().filter(|&&k| centred(k, row) != 0) {
            let Some(route) = routes.route(step) else {
                let own = |&k: &i64| centred(k, row) == centred(step, row);
                assert!(routes.keys.iter().any(own), "{step} has neither key nor route in {routes:?}");
                continue;
            };
            assert!(route.len() > 1 && route.len() <= routes.switches(), "{step}: {route:?}");
            assert_eq!(centred(route.iter().sum::<i64>() - step, row), 0, "{step}: {route:?}");
            assert!(route.iter().all(|k| routes.keys.contains(k)), "{step}: {route:?}");
        }
    }

    #[test]
    fn a_rotation_named_twice_has_one_key() {
        let both = Rotations::by([3, -1, 3, 0]).and(&Rotations::by([5, -1]).and_swap());
        assert_eq!(both, Rotations { by: vec![-1, 3, 5], swap: true });
    }

    #[test]
    fn every_rotation_is_a_sum_of_steps_with_keys() {
        for (steps, row, most) in [
            ((1..100).collect::<Vec<i64>>(), 1024usize, 20usize),
            ((-20..20).collect(), 1024, 7),
            (vec![1, 5, -3, 77, 511, 1023, 1025], 1024, 4),
            (vec![3, 6, 9, 12], 512, 1),
            ((1..4096).step_by(7).collect(), 4096, 24),
        ] {
            let routes = Routes::within(&steps, row, most).unwrap();
            assert!(routes.keys.len() <= most && !routes.is_direct(), "{routes:?}");
            holds(&routes, &steps, row);
        }
    }

    #[test]
    fn enough_keys_make_every_rotation_direct_and_too_few_none() {
        let steps = [4, -1, 1023, 0, 2048];
        let routes = Routes::within(&steps, 1024, 3).unwrap();
        assert_eq!((routes.keys(), routes.switches(), routes.is_direct()), (&[-1, 4][..], 1, true));
        holds(&routes, &steps, 1024);
        assert_eq!(Routes::within(&[100, 1], 8192, 1), None, "a hundred switches are too many");
        assert_eq!(Routes::within(&[1], 8192, 0), None);
        for steps in [&[100, 1][..], &[1], &[], &[7, 5, -3, 20, 21], &(1..40).collect::<Vec<i64>>()] {
            let fewest = Routes::fewest(steps, 8192);
            assert!(Routes::within(steps, 8192, fewest).is_some(), "{steps:?}");
            assert!(fewest == 0 || Routes::within(steps, 8192, fewest - 1).is_none(), "{steps:?}");
        }
        assert_eq!(Routes::within(&[], 8192, 0), Some(Routes::direct(&[], 8192)));
    }

    #[test]
    fn more_keys_never_take_more_switches() {
        let steps: Vec<i64> = (1..64).collect();
        let switches: Vec<usize> =
            (6..64).filter_map(|most| Routes::within(&steps, 4096, most).map(|r| r.switches())).collect();
        assert!(switches.len() > 50 && switches.windows(2).all(|w| w[1] <= w[0]), "{switches:?}");
        assert_eq!(Routes::within(&steps, 4096, 6).unwrap().keys(), [1, 2, 4, 8, 16, 32]);
    }

    #[test]
    fn two_thirds_of_the_keys_of_a_map_take_two_switches() {
        // Baby steps, steps of 56 and of 448, sums of powers of two, and a few of their own.
        let steps = (1..8).flat_map(|i| [7 * i, 56 * i, 448 * i]).chain((0..13).map(|i| 1 << i)).chain([-7, -4088]);
        let direct = Routes::direct(&steps.collect::<Vec<_>>(), 16_384);
        let all = direct.keys.len();
        for most in [2 * all / 3, all / 2] {
            let routes = Routes::within(&direct.keys, 16_384, most).unwrap();
            assert!(routes.keys.len() <= most && routes.switches() <= 2 + usize::from(most <= all / 2), "{routes:?}");
            holds(&routes, &direct.keys, 16_384);
        }
    }

    #[test]
    fn signed_bits_are_few_and_add_up() {
        for k in -300..300 {
            let bits = signed_bits(k);
            assert_eq!(bits.iter().sum::<i64>(), k);
            assert!(bits.len() <= 5 && bits.windows(2).all(|w| w[1].abs() > 2 * w[0].abs()), "{k}: {bits:?}");
        }
        assert_eq!(signed_bits(7), [-1, 8]);
    }
}
