//! A backend that writes down what it was asked to do, call by call and stage by stage, beside doing it.
//!
//! [`crate::Counting`] counts what a computation costs on paper, where a fused stage is the primitives it stands for.
//! A ledger says what a device is asked for: a fused stage is one operation, since a device carries it out as one.
//! Around [`crate::Dry`] it is the first half of a cost model; around a real device it also says where time goes.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use zeroize::Zeroize;

use crate::backend::{
    Backend, BackendError, ConvertMode, DigitLimb, GadgetDigits, RadixDigit, SlotSum, TensorMode, View, ViewMut,
};
use crate::kernels::IFMA_BITS;
use crate::ring::{IndexSet, Ring};
use crate::rns::ConvertSpec;
use crate::sampler::{Purpose, Seed};

/// A JavaScript machine has no clock for us: operations there take no time that is known.
const HAS_CLOCK: bool = cfg!(not(all(target_family = "wasm", target_os = "unknown")));

/// What a device can be asked for: the methods of [`Backend`], sums and differences as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Rows moved.
    Copy,
    /// Signed integers reduced.
    ReduceSigned,
    /// Uniform residues expanded from a seed.
    Uniform,
    /// Forward transforms in place.
    NttForward,
    /// Inverse transforms in place.
    NttInverse,
    /// Inverse transforms from one row to another.
    NttInverseInto,
    /// Sums, differences and negatives.
    Add,
    /// Products of rows.
    Mul,
    /// Products of rows, added.
    MulAcc,
    /// Products with a constant in place.
    MulScalar,
    /// Products with a constant, added.
    MulScalarAcc,
    /// Automorphisms on coefficients.
    PermuteCoeff,
    /// Automorphisms on slots.
    PermuteSlots,
    /// Base conversions.
    Convert,
    /// Base conversions whose result is added.
    ConvertAdd,
    /// Radix digits of a limb.
    RadixDigit,
    /// Inner products of digits with two columns of a key.
    InnerProduct,
    /// Inner products whose digits are transformed first.
    GadgetProduct,
    /// Gadget products brought to coefficients.
    GadgetProductCoeff,
    /// Transforms with sums and an automorphism.
    SlotSums,
    /// The same with a gadget product among what is added.
    GadgetSums,
    /// Tensor products of two ciphertexts.
    Tensor,
    /// Sums of many rows.
    SumInto,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 23] = [
        Self::Copy,
        Self::ReduceSigned,
        Self::Uniform,
        Self::NttForward,
        Self::NttInverse,
        Self::NttInverseInto,
        Self::Add,
        Self::Mul,
        Self::MulAcc,
        Self::MulScalar,
        Self::MulScalarAcc,
        Self::PermuteCoeff,
        Self::PermuteSlots,
        Self::Convert,
        Self::ConvertAdd,
        Self::RadixDigit,
        Self::InnerProduct,
        Self::GadgetProduct,
        Self::GadgetProductCoeff,
        Self::SlotSums,
        Self::GadgetSums,
        Self::Tensor,
        Self::SumInto,
    ];

    /// The name in machine profiles.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::ReduceSigned => "reduce-signed",
            Self::Uniform => "uniform",
            Self::NttForward => "ntt-forward",
            Self::NttInverse => "ntt-inverse",
            Self::NttInverseInto => "ntt-inverse-into",
            Self::Add => "add",
            Self::Mul => "mul",
            Self::MulAcc => "mul-acc",
            Self::MulScalar => "mul-scalar",
            Self::MulScalarAcc => "mul-scalar-acc",
            Self::PermuteCoeff => "permute-coeff",
            Self::PermuteSlots => "permute-slots",
            Self::Convert => "convert",
            Self::ConvertAdd => "convert-add",
            Self::RadixDigit => "radix-digit",
            Self::InnerProduct => "inner-product",
            Self::GadgetProduct => "gadget-product",
            Self::GadgetProductCoeff => "gadget-product-coeff",
            Self::SlotSums => "slot-sums",
            Self::GadgetSums => "gadget-sums",
            Self::Tensor => "tensor",
            Self::SumInto => "sum",
        }
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

    const fn rows(rows: usize) -> Self {
        Self { primes: 0, rows: rows as u64, terms: 0, extra: 0 }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.primes += other.primes;
        self.rows += other.rows;
        self.terms += other.terms;
        self.extra += other.extra;
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

/// What is done on primes of at most [`IFMA_BITS`] bits (`true`) and on wider ones (`false`).
pub type Entries = BTreeMap<(Operation, bool), Tally>;

/// Wraps a backend; see the module's text.
pub struct Ledger<B> {
    inner: B,
    entries: Arc<Mutex<Entries>>,
    live: Arc<Live>,
}

/// Reads a ledger apart from the backend that keeps it, which a context owns.
#[derive(Clone)]
pub struct LedgerReader {
    entries: Arc<Mutex<Entries>>,
    live: Arc<Live>,
}

impl LedgerReader {
    /// As [`Ledger::take`].
    pub fn take(&self) -> (Entries, usize) {
        let now = self.live.now.load(Ordering::Relaxed);
        let peak = self.live.peak.swap(now, Ordering::Relaxed);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut *entries), peak.max(now))
    }
}

/// Bytes of buffers that exist now, and the most there were.
#[derive(Default)]
struct Live {
    now: AtomicUsize,
    peak: AtomicUsize,
}

/// A buffer that counts towards the live bytes.
pub struct LedgerBuffer<T> {
    inner: T,
    bytes: usize,
    live: Arc<Live>,
}

impl<T: Zeroize> Zeroize for LedgerBuffer<T> {
    fn zeroize(&mut self) {
        self.inner.zeroize();
    }
}

impl<T> Drop for LedgerBuffer<T> {
    fn drop(&mut self) {
        self.live.now.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A prepared conversion and what one run of it is.
pub struct LedgerConversion<C> {
    inner: C,
    narrow: Work,
    wide: Work,
}

type Done = Result<(), BackendError>;

impl<B: Backend> Ledger<B> {
    /// Writes down what `inner` does.
    pub fn new(inner: B) -> Self {
        Self { inner, entries: Arc::default(), live: Arc::default() }
    }

    /// A reader of this ledger.
    pub fn reader(&self) -> LedgerReader {
        LedgerReader { entries: Arc::clone(&self.entries), live: Arc::clone(&self.live) }
    }

    /// Everything since the last call, and the most bytes of buffers that existed meanwhile.
    pub fn take(&self) -> (Entries, usize) {
        self.reader().take()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn narrow(&self, prime: usize) -> bool {
        self.ring().modulus(prime).bits() <= IFMA_BITS
    }

    /// Runs `call`, which does `each` on every prime.
    fn record(
        &self,
        operation: Operation,
        primes: &[usize],
        each: impl Fn(usize) -> Work,
        call: impl FnOnce() -> Done,
    ) -> Done {
        let mut work = [Work::default(); 2];
        for (r, &prime) in primes.iter().enumerate() {
            work[usize::from(self.narrow(prime))] += each(r);
        }
        self.write(operation, work, call)
    }

    /// Runs `call`, which does `work` on wide primes, then on narrow ones.
    fn write(&self, operation: Operation, work: [Work; 2], call: impl FnOnce() -> Done) -> Done {
        let start = HAS_CLOCK.then(Instant::now);
        call()?;
        let seconds = start.map_or(0.0, |start| start.elapsed().as_secs_f64());
        let amount = |w: &Work| w.features().iter().sum::<u64>() as f64;
        let all: f64 = work.iter().map(amount).sum();
        let mut entries = self.lock();
        for (narrow, work) in [false, true].into_iter().zip(work) {
            if work != Work::default() {
                let tally = entries.entry((operation, narrow)).or_default();
                tally.work += work;
                tally.seconds += seconds * amount(&work) / all;
            }
        }
        Ok(())
    }

    /// What a gadget product of so many limbs is, for each, and its operand for the inner backend.
    fn gadget(limbs: usize, gadget: GadgetDigits<'_, Self>) -> (Vec<Work>, GadgetDigits<'_, B>) {
        let GadgetDigits { digits, limbs: states, input } = gadget;
        let pending = |r: usize| states.iter().filter(|state| state[r] == DigitLimb::Coefficients).count() as u64;
        let terms = digits.batch as u64;
        let work = (0..limbs).map(|r| Work { primes: 1, rows: pending(r), terms, extra: 0 }).collect();
        (work, GadgetDigits { digits: Self::view_mut(digits), limbs: states, input: input.map(|b| &b.inner) })
    }

    /// What slot sums are for each limb, and their operands for the inner backend.
    fn sums(sums: Vec<SlotSum<'_, Self>>) -> (Work, Vec<SlotSum<'_, B>>) {
        let terms = sums.iter().map(|s| s.ys.len() as u64).sum();
        let permuted = sums.iter().filter(|s| s.out.is_some()).count() as u64;
        let each = Work { primes: 1, rows: sums.len() as u64, terms, extra: permuted };
        let inner = |SlotSum { x, ys, out }| SlotSum {
            x: Self::view_mut(x),
            ys: ys.into_iter().map(Self::view).collect(),
            out: out.map(Self::view_mut),
        };
        (each, sums.into_iter().map(inner).collect())
    }

    fn view<'a>(view: View<'a, Self>) -> View<'a, B> {
        View { buffer: &view.buffer.inner, batch: view.batch, batch_stride: view.batch_stride, rows: view.rows }
    }

    fn view_mut<'a>(view: ViewMut<'a, Self>) -> ViewMut<'a, B> {
        ViewMut { buffer: &mut view.buffer.inner, batch: view.batch, batch_stride: view.batch_stride, rows: view.rows }
    }
}

/// A call with a batch of `batch` rows a limb.
const fn batched(batch: usize) -> Work {
    Work { primes: 1, rows: batch as u64, terms: 0, extra: 0 }
}

impl<B: Backend> Backend for Ledger<B> {
    const HOLDS_NUMBERS: bool = B::HOLDS_NUMBERS;

    type Buffer = LedgerBuffer<B::Buffer>;
    type Conversion = LedgerConversion<B::Conversion>;

    fn ring(&self) -> &Arc<Ring> {
        self.inner.ring()
    }

    fn name(&self) -> String {
        self.inner.name()
    }

    fn alloc(&self, rows: usize) -> Result<Self::Buffer, BackendError> {
        let inner = self.inner.alloc(rows)?;
        let bytes = rows * self.ring().n() * size_of::<u64>();
        let now = self.live.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.live.peak.fetch_max(now, Ordering::Relaxed);
        Ok(LedgerBuffer { inner, bytes, live: Arc::clone(&self.live) })
    }

    fn upload(&self, words: &[u64], buffer: &mut Self::Buffer, row: usize) -> Done {
        self.inner.upload(words, &mut buffer.inner, row)
    }

    fn download(&self, buffer: &Self::Buffer, row: usize, words: &mut [u64]) -> Done {
        self.inner.download(&buffer.inner, row, words)
    }

    fn copy(&self, src: View<'_, Self>, dst: ViewMut<'_, Self>) -> Done {
        let work = [Work::default(), Work::rows(src.rows.len() * src.batch)];
        self.write(Operation::Copy, work, || self.inner.copy(Self::view(src), Self::view_mut(dst)))
    }

    fn reduce_signed(&self, primes: &[usize], values: &[i64], dst: ViewMut<'_, Self>) -> Done {
        let call = || self.inner.reduce_signed(primes, values, Self::view_mut(dst));
        self.record(Operation::ReduceSigned, primes, |_| Work::rows(1), call)
    }

    fn uniform(&self, primes: &[usize], seed: &Seed, purpose: Purpose, digit: u32, dst: ViewMut<'_, Self>) -> Done {
        let call = || self.inner.uniform(primes, seed, purpose, digit, Self::view_mut(dst));
        self.record(Operation::Uniform, primes, |_| Work::rows(1), call)
    }

    fn ntt_forward(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Done {
        let each = batched(x.batch);
        self.record(Operation::NttForward, primes, |_| each, || self.inner.ntt_forward(primes, Self::view_mut(x)))
    }

    fn ntt_inverse(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Done {
        let each = batched(x.batch);
        self.record(Operation::NttInverse, primes, |_| each, || self.inner.ntt_inverse(primes, Self::view_mut(x)))
    }

    fn add_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Done {
        let each = Work::rows(x.batch);
        let call = || self.inner.add_assign(primes, Self::view_mut(x), Self::view(y));
        self.record(Operation::Add, primes, |_| each, call)
    }

    fn sub_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Done {
        let each = Work::rows(x.batch);
        let call = || self.inner.sub_assign(primes, Self::view_mut(x), Self::view(y));
        self.record(Operation::Add, primes, |_| each, call)
    }

    fn neg_assign(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Done {
        let each = Work::rows(x.batch);
        self.record(Operation::Add, primes, |_| each, || self.inner.neg_assign(primes, Self::view_mut(x)))
    }

    fn mul_into(&self, primes: &[usize], a: View<'_, Self>, b: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        let each = Work::rows(out.batch);
        let call = || self.inner.mul_into(primes, Self::view(a), Self::view(b), Self::view_mut(out));
        self.record(Operation::Mul, primes, |_| each, call)
    }

    fn mul_acc(&self, primes: &[usize], a: View<'_, Self>, b: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        let each = Work::rows(out.batch);
        let call = || self.inner.mul_acc(primes, Self::view(a), Self::view(b), Self::view_mut(out));
        self.record(Operation::MulAcc, primes, |_| each, call)
    }

    fn mul_scalar_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, scalars: &[u64]) -> Done {
        let each = Work::rows(x.batch);
        let call = || self.inner.mul_scalar_assign(primes, Self::view_mut(x), scalars);
        self.record(Operation::MulScalar, primes, |_| each, call)
    }

    fn mul_scalar_acc(&self, primes: &[usize], x: View<'_, Self>, scalars: &[u64], out: ViewMut<'_, Self>) -> Done {
        let each = Work::rows(x.batch);
        let call = || self.inner.mul_scalar_acc(primes, Self::view(x), scalars, Self::view_mut(out));
        self.record(Operation::MulScalarAcc, primes, |_| each, call)
    }

    fn automorphism_coeff(&self, primes: &[usize], g: usize, x: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        let each = Work::rows(x.batch);
        let call = || self.inner.automorphism_coeff(primes, g, Self::view(x), Self::view_mut(out));
        self.record(Operation::PermuteCoeff, primes, |_| each, call)
    }

    fn automorphism_ntt(&self, g: usize, x: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        let work = [Work::default(), Work::rows(x.rows.len() * x.batch)];
        let call = || self.inner.automorphism_ntt(g, Self::view(x), Self::view_mut(out));
        self.write(Operation::PermuteSlots, work, call)
    }

    fn conversion(&self, src: &IndexSet, dst: &IndexSet, spec: &ConvertSpec) -> Result<Self::Conversion, BackendError> {
        // A destination has the 52-bit kernel only if every source is narrow too.
        let all_narrow = src.iter().all(|i| self.narrow(i));
        let part = |narrow: bool| {
            let rows = dst.iter().filter(|&i| (all_narrow && self.narrow(i)) == narrow).count() as u64;
            let primes = src.iter().filter(|&i| self.narrow(i) == narrow).count() as u64;
            let extra = if spec.prescale.is_some() { primes } else { 0 };
            Work { primes, rows, terms: rows * src.len() as u64, extra }
        };
        let (narrow, wide) = (part(true), part(false));
        Ok(LedgerConversion { inner: self.inner.conversion(src, dst, spec)?, narrow, wide })
    }

    fn convert(
        &self,
        conversion: &Self::Conversion,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
        mode: ConvertMode,
    ) -> Done {
        let operation = match mode {
            ConvertMode::Replace => Operation::Convert,
            ConvertMode::Add => Operation::ConvertAdd,
        };
        let batch = src.batch as u64;
        let times = |w: Work| {
            let [primes, rows, terms, extra] = w.features().map(|x| batch * x);
            Work { primes, rows, terms, extra }
        };
        let work = [times(conversion.wide), times(conversion.narrow)];
        let call = || self.inner.convert(&conversion.inner, Self::view(src), Self::view_mut(dst), mode);
        self.write(operation, work, call)
    }

    fn radix_digit(
        &self,
        primes: &[usize],
        from: usize,
        digit: RadixDigit,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
    ) -> Done {
        let each = Work::rows(dst.batch);
        let call = || self.inner.radix_digit(primes, from, digit, Self::view(src), Self::view_mut(dst));
        self.record(Operation::RadixDigit, primes, |_| each, call)
    }

    fn inner_product(
        &self,
        primes: &[usize],
        digits: View<'_, Self>,
        keys: [View<'_, Self>; 2],
        out: ViewMut<'_, Self>,
        accumulate: bool,
    ) -> Done {
        let each = Work { primes: 1, rows: 0, terms: digits.batch as u64, extra: 0 };
        let call = || {
            let (digits, out) = (Self::view(digits), Self::view_mut(out));
            self.inner.inner_product(primes, digits, keys.map(Self::view), out, accumulate)
        };
        self.record(Operation::InnerProduct, primes, |_| each, call)
    }

    fn gadget_product(
        &self,
        primes: &[usize],
        gadget: GadgetDigits<'_, Self>,
        keys: [View<'_, Self>; 2],
        out: ViewMut<'_, Self>,
        accumulate: bool,
    ) -> Done {
        let (work, gadget) = Self::gadget(primes.len(), gadget);
        let call = || self.inner.gadget_product(primes, gadget, keys.map(Self::view), Self::view_mut(out), accumulate);
        self.record(Operation::GadgetProduct, primes, |r| work[r], call)
    }

    fn gadget_product_coeff(
        &self,
        primes: &[usize],
        gadget: GadgetDigits<'_, Self>,
        keys: [View<'_, Self>; 2],
        out: ViewMut<'_, Self>,
    ) -> Done {
        let (work, gadget) = Self::gadget(primes.len(), gadget);
        let call = || self.inner.gadget_product_coeff(primes, gadget, keys.map(Self::view), Self::view_mut(out));
        self.record(Operation::GadgetProductCoeff, primes, |r| work[r], call)
    }

    fn gadget_sums(
        &self,
        primes: &[usize],
        gadget: GadgetDigits<'_, Self>,
        keys: [View<'_, Self>; 2],
        sums: Vec<SlotSum<'_, Self>>,
        g: usize,
    ) -> Done {
        let (work, gadget) = Self::gadget(primes.len(), gadget);
        let (each, sums) = Self::sums(sums);
        let both = |r: usize| {
            let mut both = work[r];
            both += Work { primes: 0, ..each };
            both
        };
        let call = || self.inner.gadget_sums(primes, gadget, keys.map(Self::view), sums, g);
        self.record(Operation::GadgetSums, primes, both, call)
    }

    fn tensor(
        &self,
        primes: &[usize],
        a: [View<'_, Self>; 2],
        b: [View<'_, Self>; 2],
        out: [ViewMut<'_, Self>; 3],
        mode: TensorMode,
    ) -> Done {
        let each = Work { primes: 1, rows: 4, terms: 4, extra: mode.finish.iter().map(|&f| u64::from(f)).sum() };
        let (a, b) = (a.map(Self::view), b.map(Self::view));
        let call = || self.inner.tensor(primes, a, b, out.map(Self::view_mut), mode);
        self.record(Operation::Tensor, primes, |_| each, call)
    }

    fn sum_into(
        &self,
        primes: &[usize],
        xs: &[View<'_, Self>],
        scalars: Option<&[u64]>,
        out: ViewMut<'_, Self>,
    ) -> Done {
        let each = Work { primes: 0, rows: 1, terms: xs.len() as u64, extra: u64::from(scalars.is_some()) };
        let xs: Vec<_> = xs.iter().map(|x| Self::view(*x)).collect();
        self.record(
            Operation::SumInto,
            primes,
            |_| each,
            || self.inner.sum_into(primes, &xs, scalars, Self::view_mut(out)),
        )
    }

    fn ntt_inverse_into(&self, primes: &[usize], src: View<'_, Self>, dst: ViewMut<'_, Self>) -> Done {
        let each = batched(src.batch);
        let call = || self.inner.ntt_inverse_into(primes, Self::view(src), Self::view_mut(dst));
        self.record(Operation::NttInverseInto, primes, |_| each, call)
    }

    fn slot_sums(&self, primes: &[usize], sums: Vec<SlotSum<'_, Self>>, g: usize) -> Done {
        let (each, sums) = Self::sums(sums);
        self.record(Operation::SlotSums, primes, |_| each, || self.inner.slot_sums(primes, sums, g))
    }
}
