//! A backend that counts: NTTs, multiplications, conversion products and bytes, beside doing the work.
//!
//! Units are those of the papers' tables (ePrint 2023/1642, Tables 2 and 3): NTTs of one limb, and multiplications
//! per N coefficients, of which `mul` are element-wise and `convert_mac` sit inside base conversions. What the
//! overflow correction costs is counted apart. Fused stages are counted as the primitives they stand for.

use std::ops::{AddAssign, Sub};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::backend::{Backend, Stage};
use crate::observed::{Call, Handling, Observed, Observer, Primitive};
use crate::ring::Ring;

/// What was counted, per N coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Forward and inverse transforms of one limb.
    pub ntt: u64,
    /// Element-wise modular multiplications, scalar or not, base-conversion prescaling included.
    pub mul: u64,
    /// Products inside base conversions.
    pub convert_mac: u64,
    /// Products of the overflow correction: one a source limb to count, one a destination limb to apply.
    pub correction: u64,
    /// Bytes read and written by the operations.
    pub bytes: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, rhs: Self) {
        self.ntt += rhs.ntt;
        self.mul += rhs.mul;
        self.convert_mac += rhs.convert_mac;
        self.correction += rhs.correction;
        self.bytes += rhs.bytes;
    }
}

impl Sub for Counts {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self {
            ntt: self.ntt - rhs.ntt,
            mul: self.mul - rhs.mul,
            convert_mac: self.convert_mac - rhs.convert_mac,
            correction: self.correction - rhs.correction,
            bytes: self.bytes - rhs.bytes,
        }
    }
}

/// Counts another backend's work; see the module's text.
pub type Counting<B> = Observed<B, Counter>;

/// The totals so far.
#[derive(Debug, Default)]
pub struct Counter(Mutex<Counts>);

impl<B: Backend> Counting<B> {
    /// The totals so far.
    pub fn counts(&self) -> Counts {
        *self.observer().0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` and returns what it cost beside its result.
    pub fn measure<T>(&self, work: impl FnOnce() -> T) -> (T, Counts) {
        let before = self.counts();
        let result = work();
        (result, self.counts() - before)
    }
}

impl Observer for Counter {
    type Note = Counts;
    type Mark = ();

    fn allocated(&self, _: usize) {}

    fn primitive(&self, ring: &Ring, call: &Call<'_>) -> Counts {
        let (rows, row_bytes) = ((call.limbs * call.batch) as u64, 8 * ring.n() as u64);
        // Transforms, products and rows moved, for each row.
        let each = |ntt, mul, moved: u64| Counts {
            ntt: rows * ntt,
            mul: rows * mul,
            bytes: rows * moved * row_bytes,
            ..Counts::default()
        };
        match call.primitive {
            Primitive::ReduceSigned | Primitive::Uniform => each(0, 0, 1),
            Primitive::Copy
            | Primitive::NegAssign
            | Primitive::AutomorphismCoeff
            | Primitive::AutomorphismNtt
            | Primitive::RadixDigit => each(0, 0, 2),
            Primitive::NttForward | Primitive::NttInverse => each(1, 0, 2),
            Primitive::AddAssign | Primitive::SubAssign => each(0, 0, 3),
            Primitive::MulScalarAssign => each(0, 1, 2),
            Primitive::MulInto | Primitive::MulScalarAcc => each(0, 1, 3),
            Primitive::MulAcc => each(0, 1, 4),
            Primitive::InnerProduct { terms, accumulate } => {
                let terms = terms as u64;
                each(0, 2 * terms, 3 * terms + if accumulate { 4 } else { 2 })
            }
            Primitive::Convert(shape, _) => {
                let (batch, src, dst) = (call.batch as u64, shape.src.len() as u64, shape.dst.len() as u64);
                Counts {
                    ntt: 0,
                    mul: if shape.prescaled { batch * src } else { 0 },
                    convert_mac: batch * src * dst,
                    correction: if shape.counted { batch * (src + dst) } else { 0 },
                    bytes: batch * (src + dst) * row_bytes,
                }
            }
        }
    }

    fn stage<B: Backend>(&self, _: &Ring, _: &[usize], _: &Stage<'_, B>) -> Handling<Counts> {
        Handling::Apart
    }

    fn done(&self, counts: Counts, _: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += counts;
    }
}
