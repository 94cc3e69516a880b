//! Which diagonals a linear map has, and the baby and giant steps that follow: what keys it takes, whatever the entries are.

use std::collections::{BTreeMap, BTreeSet};

use crate::rotations::Rotations;

/// The diagonals of a map that are not 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// Slots of a row.
    pub(crate) row: usize,
    /// Whether each meets the swapped (conjugated) argument, and the rotation.
    pub(crate) diagonals: BTreeSet<(bool, usize)>,
}

impl Pattern {
    /// Baby and giant steps when there are `baby` baby steps next to one another; giant steps in the order of the unit, so
    /// that most of them are equally far from the one before.
    pub(super) fn steps(&self, baby: usize) -> (BTreeSet<(bool, usize)>, Vec<usize>) {
        let unit = self.unit();
        let split = |&(swap, k): &(bool, usize)| {
            let (low, giant) = unit.split(k, baby);
            ((swap, low), (unit.place(giant), giant))
        };
        let (babies, giants): (_, BTreeMap<usize, usize>) = self.diagonals.iter().map(split).unzip();
        (babies, giants.into_values().collect())
    }

    /// How far each giant step is from the one before, the first from none: by that much sums are rotated, nested.
    pub(super) fn apart(&self, giants: &[usize]) -> Vec<usize> {
        let row = self.row;
        std::iter::once(&0).chain(giants).zip(giants).map(|(before, giant)| (row + giant - before) % row).collect()
    }

    /// The unit in which steps are short: 1, what divides all of them, or the shortest, which others are multiples of
    /// modulo the row.
    pub(super) fn unit(&self) -> Unit {
        let row = self.row;
        let plain = Unit { row, two: 1, odd: 1 };
        if !row.is_power_of_two() {
            return plain;
        }
        let steps = || self.diagonals.iter().map(|&(_, k)| k).filter(|&k| k != 0);
        let away = |k: usize| k.min(row - k);
        let two = 1 << steps().map(usize::trailing_zeros).min().unwrap_or(0).min(row.trailing_zeros());
        let shortest = steps().map(away).min().unwrap_or(1) / two;
        let common = steps().map(away).fold(0, gcd) / two;
        let span = |unit: &Unit| {
            let counted = steps().map(|k| unit.counted(k)).chain([0]);
            counted.fold((0, 0), |(low, high): (i64, i64), k| (low.min(k), high.max(k)))
        };
        let units = [1, shortest, common].into_iter().filter(|odd| odd % 2 == 1).map(|odd| Unit { row, two, odd });
        let shorter = |a: &Unit, b: &Unit| (span(a).1 - span(a).0).cmp(&(span(b).1 - span(b).0));
        units.min_by(shorter).unwrap_or(plain)
    }

    /// How many baby steps make it cheapest: a giant step costs about 1 + log2(N) / 4 baby steps.
    pub(crate) fn baby_steps(&self) -> usize {
        let giant = 1.0 + f64::from(self.row.trailing_zeros() + 1) / 4.0;
        let cost = |baby: usize| {
            let (babies, giants) = self.steps(baby);
            let moved = babies.iter().filter(|(_, k)| *k != 0).count() as f64;
            moved + giant * giants.iter().filter(|&&k| k != 0).count() as f64
        };
        let sizes = (0..=self.row.trailing_zeros().min(usize::BITS - 1)).map(|i| 1 << i);
        sizes.min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(1)
    }

    /// The rotations it makes with this many baby steps.
    pub(crate) fn rotations(&self, baby: usize) -> Rotations {
        let (babies, giants) = self.steps(baby.clamp(1, self.row.max(1)));
        let swap = babies.iter().any(|(swap, _)| *swap);
        let steps = babies.into_iter().map(|(_, k)| k).chain(self.apart(&giants));
        Rotations { swap, ..Rotations::by(steps.map(|k| k as i64)) }
    }
}

/// A step that others are multiples of, modulo the row: a power of two times an odd number.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    row: usize,
    two: usize,
    odd: usize,
}

impl Unit {
    /// A step in units, the short way round.
    const fn counted(self, k: usize) -> i64 {
        let rest = self.row / self.two;
        // Newton's iteration doubles the bits of an inverse modulo a power of two.
        let (mut inverse, mut round) = (self.odd, 0);
        while round < 6 {
            inverse = inverse.wrapping_mul(2usize.wrapping_sub(self.odd.wrapping_mul(inverse)));
            round += 1;
        }
        let count = (k / self.two).wrapping_mul(inverse) % rest;
        if count > rest / 2 { count as i64 - rest as i64 } else { count as i64 }
    }

    /// Where a step comes, all counted one way round from none.
    const fn place(self, k: usize) -> usize {
        self.counted(k).rem_euclid((self.row / self.two) as i64) as usize
    }

    /// A step as its baby step and its giant step, a multiple of `baby` units, to the left or to the right.
    pub(super) const fn split(self, k: usize, baby: usize) -> (usize, usize) {
        let (row, counted) = (self.row as i64, self.counted(k));
        let low = counted.rem_euclid(baby as i64);
        let unit = (self.two * self.odd) as i64;
        ((low * unit).rem_euclid(row) as usize, ((counted - low) * unit).rem_euclid(row) as usize)
    }
}

/// The greatest common divisor; that of 0 and b is b.
const fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
