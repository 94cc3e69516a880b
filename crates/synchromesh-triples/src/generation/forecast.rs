//! What a run will take, by counting ciphertexts: said before it begins, and refused where nobody has so much.
//!
//! The factors are those of the runs in docs/performance.md, by size from 128 to 512; a forecast is within a factor of two
//! of these.

use synchromesh::bgv::Evaluator;
use synchromesh::circuits::{Arithmetic, MatrixPlan, Side, Slicing};

use super::plan::{GenerationPlan, slots};
use crate::error::{Error, Result};
use crate::share::Shape;
use crate::tuples::Kind;

/// Most products whose ciphertexts a [`Party`](crate::party::Party) sends and proves together, in units of the plan's batch.
pub(crate) const TOGETHER: usize = 8;

/// Most memory of a party, in bytes: 4 TiB. What takes more is refused before anything is tried.
pub const MOST_BYTES: u64 = 1 << 42;

/// Keys in their prepared form and other work space, in ciphertexts.
const WORK_SPACE: f64 = 150.0;

/// Ciphertexts of single numbers that are sent and proven together.
const MOST_DRAWN: f64 = 32.0;

/// Seconds at N = 2^15 and 13 primes, on one thread: what begins a run, an encryption with its proof, its verification, its
/// decryption, and a hoisted rotation.
const SECONDS: [f64; 5] = [2.0, 0.12, 0.2, 0.063, 0.015];

/// What one party's run takes, about.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Forecast {
    /// Bytes of memory at the peak.
    pub memory_bytes: u64,
    /// Bytes of memory for keys and packing alone, as whoever deals needs them.
    pub setup_bytes: u64,
    /// Bytes sent to all others together.
    pub bytes_sent: u64,
    /// Seconds on one thread, keys not among them.
    pub seconds: f64,
}

/// What a forecast is made of.
pub(super) struct Work<'a> {
    pub(super) matrices: &'a MatrixPlan,
    pub(super) shape: Shape,
    pub(super) parties: usize,
    pub(super) count: usize,
    pub(super) log_n: u32,
    /// Primes of a ciphertext.
    pub(super) limbs: usize,
}

impl Work<'_> {
    pub(super) fn forecast(&self) -> Forecast {
        let Self { matrices, shape, parties, count, log_n, limbs } = *self;
        let (n, others) = ((log_n as f64).exp2(), parties as f64 - 1.0);
        let groups = count.max(1).div_ceil(matrices.batch()) as f64;
        let at_once = groups.min(TOGETHER as f64);
        let [rows, _, columns] = matrices.blocks().map(|blocks| blocks as f64);
        let factors = [Side::Left, Side::Right].map(|side| matrices.ciphertexts(side) as f64).iter().sum::<f64>();
        let decrypted = 2.0 * rows * columns + factors;
        let ciphertext = 2.0 * n * limbs as f64 * 8.0;
        // Every party's message, twice while it is read, and what is computed from their sums.
        let held = at_once * ((2.0 * parties as f64 + 3.0) * factors + decrypted);
        // Value and MAC of each entry, of 32 bytes, before and after the check.
        let shares = count as f64 * shape.elements() as f64 * 128.0;
        let slicing = Slicing {
            slots: slots(log_n),
            batch: matrices.batch(),
            masks: false,
            chain: None,
            tensor: <Evaluator as Arithmetic>::COST.tensor,
        };
        let [begin, encrypt, verify, decrypt, rotate] = SECONDS;
        let each = factors * (encrypt + others * verify) + decrypted * decrypt + slicing.cost(matrices) * rotate;
        Forecast {
            memory_bytes: (ciphertext * (WORK_SPACE + held) + shares) as u64,
            // A number and its place for each slot of each factor.
            setup_bytes: (ciphertext * WORK_SPACE + factors * n * 72.0) as u64,
            bytes_sent: (others * groups * factors * ciphertext) as u64,
            seconds: (begin + groups * each) * n * limbs as f64 / f64::from(13 << 15),
        }
    }

    /// Refuses what is beyond `most` bytes of memory.
    pub(super) fn within(&self, most: u64) -> Result<()> {
        let Forecast { memory_bytes, bytes_sent, seconds, .. } = self.forecast();
        if memory_bytes <= most {
            return Ok(());
        }
        let (shape, count) = (self.shape.to_string(), self.count);
        Err(Error::TooLarge { shape, count, bytes: memory_bytes, most, bytes_sent, seconds: seconds as u64 })
    }
}

impl GenerationPlan {
    /// What a party's run for `count` triples takes, about.
    #[must_use]
    pub fn forecast(&self, count: usize) -> Forecast {
        self.work(count).forecast()
    }

    /// Refuses a run for `count` triples that takes a party more than `most` bytes of memory, or than [`MOST_BYTES`].
    ///
    /// # Errors
    /// [`Error::TooLarge`] with the forecast.
    pub fn require_memory(&self, count: usize, most: u64) -> Result<()> {
        self.work(count).within(most.min(MOST_BYTES))
    }

    /// Refuses as many tuples of single numbers as take a party more than `most` bytes of memory, or than [`MOST_BYTES`].
    ///
    /// # Errors
    /// [`Error::TooLarge`] with the forecast.
    pub fn require_tuple_memory(&self, kind: Kind, count: usize, most: u64) -> Result<()> {
        let (count, n) = (count as f64, self.params().n() as f64);
        let ciphertext = 2.0 * n * self.params().rlwe().q().len() as f64 * 8.0;
        // Values and MACs before and after the check, a few times; and what is sent and proven together.
        let shares = count * (kind.width() * self.parties()) as f64 * 256.0;
        let bytes = shares + ciphertext * (WORK_SPACE + (2.0 * self.parties() as f64 + 3.0) * MOST_DRAWN);
        let most = most.min(MOST_BYTES);
        if bytes <= most as f64 {
            return Ok(());
        }
        let shape = kind.to_string();
        let sent = (self.parties() as f64 - 1.0) * count / n * 8.0 * ciphertext;
        let (bytes, bytes_sent) = (bytes as u64, sent as u64);
        Err(Error::TooLarge { shape, count: count as usize, bytes, most, bytes_sent, seconds: 0 })
    }

    fn work(&self, count: usize) -> Work<'_> {
        let (matrices, params) = (self.matrices(), self.params());
        let (log_n, limbs) = (params.log_n(), params.rlwe().q().len());
        Work { matrices, shape: self.shape(), parties: self.parties(), count, log_n, limbs }
    }
}

#[cfg(test)]
mod tests {
    use synchromesh::circuits::MatrixPacking;

    use super::*;

    /// Two parties, one thread, one triple of d x d x d: what docs/performance.md has of these runs.
    #[test]
    fn forecasts_are_near_what_was_measured() {
        let runs = [
            (128, [64, 64, 65, 128], [2, 2], [1.3e9, 42.2e6, 7.4]),
            (256, [32, 32, 97, 128], [8, 1], [3.3e9, 223.7e6, 28.6]),
            (512, [16, 16, 113, 128], [16, 1], [13.2e9, 1540e6, 156.0]),
        ];
        for (d, [rows, inner, columns, line], grid, measured) in runs {
            let packing = MatrixPacking::new(slots(15), rows, inner, columns, line).unwrap();
            let matrices = MatrixPlan::new(packing, [d, d, d + 1], 1, grid).unwrap();
            let shape = Shape::new(d, d, d).unwrap();
            let work = Work { matrices: &matrices, shape, parties: 2, count: 1, log_n: 15, limbs: 13 };
            let Forecast { memory_bytes, bytes_sent, seconds, .. } = work.forecast();
            let said = [memory_bytes as f64, bytes_sent as f64, seconds];
            println!("{d}: {said:.3?}, measured {measured:.3?}");
            assert!(said.iter().zip(measured).all(|(said, measured)| (0.625..1.6).contains(&(said / measured))));
        }
    }

    #[test]
    fn numbers_that_nobody_has_are_refused_and_overflow_nowhere() {
        let packing = MatrixPacking::new(slots(13), 8, 8, 8, 16).unwrap();
        let side = 1 << 16;
        let matrices = MatrixPlan::new(packing, [side, side, side + 1], 1, [1, 1]).unwrap();
        let shape = Shape::new(side, side, side).unwrap();
        let work = Work { matrices: &matrices, shape, parties: 64, count: usize::MAX, log_n: 13, limbs: 40 };
        let error = work.within(u64::MAX - 1).unwrap_err();
        assert!(error.kind() == "memory" && error.remedy().contains("blocks"), "{error}");
    }
}
