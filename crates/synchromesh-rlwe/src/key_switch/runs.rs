//! Runs of digits that follow one another in a key.

use std::ops::Range;

use synchromesh_ring::Backend;

use super::Switcher;

impl<B: Backend> Switcher<B> {
    /// Digits whose numbers in the key follow one another, as ranges of positions: one range where nothing is missing
    /// between the active digits.
    pub(super) fn runs(&self) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (position, digit) in self.digits.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if self.digits[run.end - 1].index + 1 == digit.index => run.end += 1,
                _ => runs.push(position..position + 1),
            }
        }
        runs
    }
}
