//! Rows of slots that repeat: of a polynomial in X^M for M >= 8 eight words stand for each block of 64.
//!
//! Slot i = 64 B + 8 j + v holds the value at psi^(2 rev(64 B + 8 v + j) + 1) (`slot_order.rs`), and psi^M of that
//! depends on floor((64 B + 8 v + j) / M) alone: not on j. A vector of period p in the slots of CKKS, p <= N / 16, is such a
//! polynomial, with M = N / 2p.

/// Slots of a block.
pub const BLOCK: usize = 64;

/// Words that stand for a block.
pub const KEPT: usize = 8;

/// Words that stand for n slots.
#[must_use]
pub const fn words(n: usize) -> usize {
    n / BLOCK * KEPT
}

/// Which of the words that are kept stands for slot i.
#[inline]
pub(crate) const fn standing_for(i: usize) -> usize {
    i / BLOCK * KEPT + i % KEPT
}

/// The words that stand for a row of slots; none where the slots do not repeat.
#[must_use]
pub fn pack(row: &[u64]) -> Option<Vec<u64>> {
    let kept: Vec<u64> = row.chunks(BLOCK).flat_map(|block| &block[..KEPT.min(block.len())]).copied().collect();
    let same = row.len().is_multiple_of(BLOCK) && (0..row.len()).all(|i| row[i] == kept[standing_for(i)]);
    same.then_some(kept)
}

/// The row of slots that words stand for.
pub fn unpack(kept: &[u64], row: &mut [u64]) {
    row.iter_mut().enumerate().for_each(|(i, slot)| *slot = kept[standing_for(i)]);
}
