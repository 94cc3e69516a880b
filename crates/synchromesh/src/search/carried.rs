//! What records carry: numbers below 2^9, two to a slot, and a mark that is 1, to be multiplied by 1 or 0.

use synchromesh_rlwe::ring::Backend;
use zeroize::Zeroizing;

use super::{LENGTH_SLACK, Reply, Search};
use crate::ckks::{Context, Plaintext};
use crate::embedding::Complex64;
use crate::error::{Error, Result};

/// Numbers that records carry are below this.
pub const LEVELS: u16 = 512;

/// The level that what records carry is encrypted at: one product is left.
pub const CARRIED_LEVEL: usize = 1;

/// Most numbers that a record carries.
const MOST_CARRIED: usize = 1 << 16;

pub(super) fn require_count(numbers: usize) -> Result<()> {
    if (1..=MOST_CARRIED).contains(&numbers) {
        return Ok(());
    }
    Err(Error::argument(format!("records carry 1 to {MOST_CARRIED} numbers, not {numbers}")))
}

impl Search {
    /// Ciphertexts of what half the records of a block carry.
    #[must_use]
    pub const fn pairs(numbers: usize) -> usize {
        numbers / 2 + 1
    }

    /// Pair `pair` of the numbers that half the records of a block carry, record after record, as a message; after the last
    /// number is the mark.
    ///
    /// # Errors
    /// [`Error::Argument`] for a pair that there is not, for more records than half a block has, a record that is not whole,
    /// or a number that is not below [`LEVELS`].
    pub fn encode_carried<B: Backend>(
        context: &Context<B>,
        carried: &[u16],
        numbers: usize,
        pair: usize,
    ) -> Result<Plaintext<B>> {
        require_count(numbers)?;
        let (records, slots) = (carried.len() / numbers, context.params().slots());
        if !carried.len().is_multiple_of(numbers) || records > slots || pair >= Self::pairs(numbers) {
            let count = carried.len();
            return Err(Error::argument(format!(
                "pair {pair} of {count} numbers, {numbers} of each of {slots} records"
            )));
        }
        if let Some(wrong) = carried.iter().find(|&&number| number >= LEVELS) {
            return Err(Error::argument(format!("records carry numbers below {LEVELS}, not {wrong}")));
        }
        let of = |record: &[u16]| {
            let [x, y] =
                [2 * pair, 2 * pair + 1].map(|i| record.get(i).map_or(1.0, |&x| f64::from(x) / f64::from(LEVELS)));
            Complex64::new(x, y)
        };
        let slots = Zeroizing::new(carried.chunks(numbers).map(of).collect::<Vec<Complex64>>());
        context.encode_complex(&slots, f64::sqrt(2.0) * (1.0 + LENGTH_SLACK))
    }

    /// Of what came back for a block, decrypted, the score or mark of each of its `count` records, and the numbers that those
    /// carry that were found, zeros of the others.
    ///
    /// Outside the gap a mark is 1 as nearly as numbers are told apart. Within it mark and numbers are smaller alike, so that
    /// the numbers are right if the record counts as found, which it does above a half.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are as many replies as the block has.
    pub fn read(&self, replies: &[Vec<Complex64>], count: usize) -> Result<(Vec<f64>, Vec<u16>)> {
        let slots = replies.first().map_or(0, Vec::len);
        let pairs = if let Reply::Carried(numbers) = self.reply { Self::pairs(numbers) } else { 1 };
        let halves = if matches!(self.reply, Reply::Carried(_)) { count.div_ceil(slots.max(1)) } else { 1 };
        if replies.len() != halves * pairs || replies.iter().any(|reply| reply.len() != slots) || count > 2 * slots {
            return Err(Error::shape(format!("{} replies of {slots} slots for {count} records", replies.len())));
        }
        let Reply::Carried(numbers) = self.reply else {
            let mut own = Self::parted(&replies[0]);
            own.truncate(count);
            return Ok((own, Vec::new()));
        };
        let (mut marks, mut carried) = (Vec::with_capacity(count), Vec::with_capacity(count * numbers));
        for record in 0..count {
            let (half, slot) = (record / slots, record % slots);
            let at = |i: usize| {
                let z = replies[half * pairs + i / 2][slot];
                if i.is_multiple_of(2) { z.re } else { z.im }
            };
            let mark = at(numbers);
            let levels = f64::from(LEVELS);
            let scale = if (mark - 1.0).abs() <= self.tolerance { levels } else { levels / mark };
            let number = |i: usize| (at(i) * scale).round().clamp(0.0, levels - 1.0) as u16;
            marks.push(mark);
            carried.extend((0..numbers).map(|i| if mark > 0.5 { number(i) } else { 0 }));
        }
        Ok((marks, carried))
    }
}
