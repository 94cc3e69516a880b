//! A backend that writes down what it was asked to do, call by call and stage by stage, beside doing it.
//!
//! [`crate::Counting`] counts what a computation costs on paper, where a fused stage is the primitives it stands for.
//! A ledger says what a device is asked for: a fused stage is one operation, since a device carries it out as one.
//! Around [`crate::Dry`] it is the first half of a cost model; around a real device it also says where time goes.

use std::collections::BTreeMap;
use std::ops::{Add, AddAssign};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::backend::{Backend, ConvertMode, DigitLimb, GadgetDigits, SlotSum, Stage};
use crate::kernels::NARROW_BITS;
use crate::observed::{Call, ConversionShape, Handling, Observed, Observer, Primitive};
use crate::ring::Ring;

/// The operations, each once: with its text and its name.
macro_rules! operations {
    ($($(#[$text:meta])* $operation:ident: $name:literal,)*) => {
        /// What a device can be asked for: primitives, sums and differences as one, and the stages that it does as one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Operation {
            $($(#[$text])* $operation,)*
        }

        impl Operation {
            /// Every operation.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$operation),*];

            /// The name in machine profiles.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$operation => $name,)*
                }
            }
        }
    };
}

operations! {
    /// Rows moved.
    Copy: "copy",
    /// Signed integers reduced.
    ReduceSigned: "reduce-signed",
    /// Uniform residues expanded from a seed.
    Uniform: "uniform",
    /// Forward transforms in place.
    NttForward: "ntt-forward",
    /// Inverse transforms in place.
    NttInverse: "ntt-inverse",
    /// Inverse transforms from one row to another.
    NttInverseInto: "ntt-inverse-into",
    /// Sums, differences and negatives.
    Add: "add",
    /// Products of rows.
    Mul: "mul",
    /// Products of rows, added.
    MulAcc: "mul-acc",
    /// Products with a constant in place.
    MulScalar: "mul-scalar",
    /// Products with a constant, added.
    MulScalarAcc: "mul-scalar-acc",
    /// Automorphisms on coefficients.
    PermuteCoeff: "permute-coeff",
    /// Automorphisms on slots.
    PermuteSlots: "permute-slots",
    /// Base conversions.
    Convert: "convert",
    /// Base conversions whose result is added.
    ConvertAdd: "convert-add",
    /// Radix digits of a limb.
    RadixDigit: "radix-digit",
    /// Inner products of digits with two columns of a key.
    InnerProduct: "inner-product",
    /// Inner products whose digits are transformed first.
    GadgetProduct: "gadget-product",
    /// Gadget products brought to coefficients.
    GadgetProductCoeff: "gadget-product-coeff",
    /// Transforms with sums and an automorphism.
    SlotSums: "slot-sums",
    /// The same with a gadget product among what is added.
    GadgetSums: "gadget-sums",
    /// Tensor products of two ciphertexts.
    Tensor: "tensor",
    /// Sums of many rows.
    SumInto: "sum",
}

impl Operation {
    /// Whether its rows are transformed.
    #[must_use]
    pub const fn transforms(self) -> bool {
        use Operation::{
            GadgetProduct, GadgetProductCoeff, GadgetSums, NttForward, NttInverse, NttInverseInto, SlotSums,
        };
        matches!(
            self,
            NttForward | NttInverse | NttInverseInto | GadgetProduct | GadgetProductCoeff | GadgetSums | SlotSums
        )
    }
}

/// How much of an operation: what its time is linear in. Each is per N coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Limbs, however many rows each has: what tables are loaded for. In conversions: source rows.
    pub primes: u64,
    /// Rows transformed or written. In gadget products: digits still to transform; in gadget sums those and the sums.
    pub rows: u64,
    /// Products in conversions, digits times limbs in inner products, addends in sums, both in gadget sums.
    pub terms: u64,
    /// Rows permuted in slot sums; source rows multiplied first in conversions.
    pub extra: u64,
}

impl Work {
    /// The four numbers, in the order of the fields.
    #[must_use]
    pub const fn features(&self) -> [u64; 4] {
        [self.primes, self.rows, self.terms, self.extra]
    }

    fn times(self, count: usize) -> Self {
        let [primes, rows, terms, extra] = self.features().map(|x| count as u64 * x);
        Self { primes, rows, terms, extra }
    }
}

impl Add for Work {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            primes: self.primes + other.primes,
            rows: self.rows + other.rows,
            terms: self.terms + other.terms,
            extra: self.extra + other.extra,
        }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// All calls of one operation on primes of one class.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tally {
    /// How much was done.
    pub work: Work,
    /// How long it took, for a call on primes of both classes in proportion to their limbs; 0 around [`crate::Dry`].
    pub seconds: f64,
}

/// What is done on primes of at most [`NARROW_BITS`] bits (`true`) and on wider ones (`false`).
pub type Entries = BTreeMap<(Operation, bool), Tally>;

/// Writes down what another backend is asked for; see the module's text.
pub type Ledger<B> = Observed<B, Book>;

/// What is written down, apart from the backend, which a context owns; clones are of one book.
#[derive(Clone, Default)]
pub struct Book {
    entries: Arc<Mutex<Entries>>,
    live: Arc<Live>,
}

impl Book {
    /// Everything since the last call, and the most bytes of buffers that existed meanwhile.
    pub fn take(&self) -> (Entries, usize) {
        let now = self.live.now.load(Ordering::Relaxed);
        let peak = self.live.peak.swap(now, Ordering::Relaxed);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut *entries), peak.max(now))
    }
}

impl<B: Backend> Ledger<B> {
    /// What is written down.
    pub fn reader(&self) -> Book {
        self.observer().clone()
    }

    /// As [`Book::take`].
    pub fn take(&self) -> (Entries, usize) {
        self.observer().take()
    }
}

/// Bytes of buffers that exist now, and the most there were.
#[derive(Default)]
struct Live {
    now: AtomicUsize,
    peak: AtomicUsize,
}

/// Counts towards the live bytes for as long as it exists.
pub struct LiveBytes {
    bytes: usize,
    live: Arc<Live>,
}

impl Drop for LiveBytes {
    fn drop(&mut self) {
        self.live.now.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// An operation, and how much of it on wide primes, then on narrow ones.
type Note = (Operation, [Work; 2]);

impl Observer for Book {
    type Note = Note;
    type Mark = LiveBytes;

    fn allocated(&self, bytes: usize) -> LiveBytes {
        let now = self.live.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.live.peak.fetch_max(now, Ordering::Relaxed);
        LiveBytes { bytes, live: Arc::clone(&self.live) }
    }

    fn primitive(&self, ring: &Ring, call: &Call<'_>) -> Note {
        let rows = Work { primes: 0, rows: call.batch as u64, terms: 0, extra: 0 };
        let (operation, each) = match call.primitive {
            Primitive::Copy => (Operation::Copy, rows),
            Primitive::ReduceSigned => (Operation::ReduceSigned, rows),
            Primitive::Uniform => (Operation::Uniform, rows),
            Primitive::NttForward => (Operation::NttForward, Work { primes: 1, ..rows }),
            Primitive::NttInverse => (Operation::NttInverse, Work { primes: 1, ..rows }),
            Primitive::AddAssign | Primitive::SubAssign | Primitive::NegAssign => (Operation::Add, rows),
            Primitive::MulInto => (Operation::Mul, rows),
            Primitive::MulAcc => (Operation::MulAcc, rows),
            Primitive::MulScalarAssign => (Operation::MulScalar, rows),
            Primitive::MulScalarAcc => (Operation::MulScalarAcc, rows),
            Primitive::AutomorphismCoeff => (Operation::PermuteCoeff, rows),
            Primitive::AutomorphismNtt => (Operation::PermuteSlots, rows),
            Primitive::RadixDigit => (Operation::RadixDigit, rows),
            Primitive::InnerProduct { terms, .. } => {
                (Operation::InnerProduct, Work { primes: 1, rows: 0, terms: terms as u64, extra: 0 })
            }
            Primitive::Convert(shape, ConvertMode::Replace) => {
                return (Operation::Convert, conversion(ring, shape, call.batch));
            }
            Primitive::Convert(shape, ConvertMode::Add) => {
                return (Operation::ConvertAdd, conversion(ring, shape, call.batch));
            }
        };
        match call.primes {
            Some(primes) => (operation, by_class(ring, primes, |_| each)),
            None => (operation, [Work::default(), each.times(call.limbs)]),
        }
    }

    /// What has an [`Operation`] is handed on; profiles have no other prices.
    #[deny(clippy::wildcard_enum_match_arm, reason = "a new stage is to be decided on")]
    fn stage<B: Backend>(&self, ring: &Ring, primes: &[usize], stage: &Stage<'_, B>) -> Handling<Note> {
        let whole =
            |operation, each: &dyn Fn(usize) -> Work| Handling::Whole((operation, by_class(ring, primes, each)));
        match stage {
            Stage::GadgetProduct { gadget, .. } => whole(Operation::GadgetProduct, &|r| product(gadget, r)),
            Stage::GadgetProductCoeff { gadget, .. } => whole(Operation::GadgetProductCoeff, &|r| product(gadget, r)),
            Stage::GadgetSums { gadget, sums, .. } => {
                let sums = Work { primes: 0, ..slot_sums(sums) };
                whole(Operation::GadgetSums, &|r| product(gadget, r) + sums)
            }
            Stage::SlotSums { sums, .. } => {
                let each = slot_sums(sums);
                whole(Operation::SlotSums, &|_| each)
            }
            Stage::SumInto { xs, scalars, g: 1, .. } => {
                let extra = u64::from(scalars.is_some());
                whole(Operation::SumInto, &|_| Work { primes: 0, rows: 1, terms: xs.len() as u64, extra })
            }
            // The addend is a row of one column.
            Stage::RotatedProduct { gadget, .. } => whole(Operation::GadgetProduct, &|r| product(gadget, r)),
            // Like as many inner products, but for what is read.
            Stage::ProductSums { sums } => {
                let terms = sums.iter().map(|sum| sum.columns[0].batch as u64).sum();
                whole(Operation::InnerProduct, &|_| Work { primes: 1, rows: 0, terms, extra: 0 })
            }
            Stage::NttInverseInto { src, .. } => {
                let rows = src.batch as u64;
                whole(Operation::NttInverseInto, &|_| Work { primes: 1, rows, terms: 0, extra: 0 })
            }
            Stage::Tensor { mode, .. } if !mode.slots => {
                let extra = mode.finish.iter().map(|&f| u64::from(f)).sum();
                whole(Operation::Tensor, &|_| Work { primes: 1, rows: 4, terms: 4, extra })
            }
            Stage::TransformDigits(_)
            | Stage::Conversions { .. }
            | Stage::GadgetProductOnto { .. }
            | Stage::SumInto { .. }
            | Stage::Tensor { .. } => Handling::Apart,
        }
    }

    fn done(&self, (operation, work): Note, time: Duration) {
        let amount = |w: &Work| w.features().iter().sum::<u64>() as f64;
        let all: f64 = work.iter().map(amount).sum();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        for (narrow, work) in [false, true].into_iter().zip(work) {
            if work != Work::default() {
                let tally = entries.entry((operation, narrow)).or_default();
                tally.work += work;
                tally.seconds += time.as_secs_f64() * amount(&work) / all;
            }
        }
    }
}

fn narrow(ring: &Ring, prime: usize) -> bool {
    ring.modulus(prime).bits() <= NARROW_BITS
}

/// `each` on the wide primes, then on the narrow ones.
fn by_class(ring: &Ring, primes: &[usize], each: impl Fn(usize) -> Work) -> [Work; 2] {
    let mut work = [Work::default(); 2];
    for (r, &prime) in primes.iter().enumerate() {
        work[usize::from(narrow(ring, prime))] += each(r);
    }
    work
}

/// Limb r of a gadget product.
fn product<B: Backend>(gadget: &GadgetDigits<'_, B>, r: usize) -> Work {
    let pending = gadget.limbs.iter().filter(|state| state[r] == DigitLimb::Coefficients).count() as u64;
    Work { primes: 1, rows: pending, terms: gadget.digits.batch as u64, extra: 0 }
}

/// One limb of slot sums.
fn slot_sums<B: Backend>(sums: &[SlotSum<'_, B>]) -> Work {
    let terms = sums.iter().map(|s| s.ys.len() as u64).sum();
    let permuted = sums.iter().filter(|s| s.out.is_some()).count() as u64;
    Work { primes: 1, rows: sums.len() as u64, terms, extra: permuted }
}

/// Conversions of `batch` polynomials, on wide primes, then on narrow ones.
fn conversion(ring: &Ring, shape: &ConversionShape, batch: usize) -> [Work; 2] {
    let ConversionShape { src, dst, prescaled, .. } = shape;
    let wide = src.iter().filter(|&i| !narrow(ring, i)).count() as u64;
    [false, true].map(|class| {
        let rows = dst.iter().filter(|&i| narrow(ring, i) == class).count() as u64;
        let primes = if class { src.len() as u64 - wide } else { wide };
        // A narrow destination takes wide sources in halves.
        let terms = rows * (src.len() as u64 + if class { wide } else { 0 });
        let extra = if *prescaled { primes } else { 0 };
        Work { primes, rows, terms, extra }.times(batch)
    })
}
