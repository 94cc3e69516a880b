//! A backend that counts: NTTs, multiplications, conversion products and bytes, beside doing the work.
//!
//! Units are those of the papers' tables (ePrint 2023/1642, Tables 2 and 3): NTTs of one limb, and multiplications
//! per N coefficients, of which `mul` are element-wise and `convert_mac` sit inside base conversions. What the
//! overflow correction costs is counted apart. Fused stages are counted as the primitives they stand for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backend::{Backend, BackendError, ConvertMode, RadixDigit, View, ViewMut};
use crate::ring::{IndexSet, Ring};
use crate::rns::{ConvertSpec, Count};
use crate::sampler::{Purpose, Seed};

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

impl std::ops::Sub for Counts {
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

/// A prepared conversion and what one run of it costs.
pub struct CountedConversion<C> {
    inner: C,
    cost: Counts,
}

/// Wraps a backend; see the module's text.
pub struct Counting<B> {
    inner: B,
    ntt: AtomicU64,
    mul: AtomicU64,
    convert_mac: AtomicU64,
    correction: AtomicU64,
    bytes: AtomicU64,
}

impl<B: Backend> Counting<B> {
    /// Counts what `inner` does.
    pub const fn new(inner: B) -> Self {
        Self {
            inner,
            ntt: AtomicU64::new(0),
            mul: AtomicU64::new(0),
            convert_mac: AtomicU64::new(0),
            correction: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// The totals so far.
    pub fn counts(&self) -> Counts {
        let get = |x: &AtomicU64| x.load(Ordering::Relaxed);
        Counts {
            ntt: get(&self.ntt),
            mul: get(&self.mul),
            convert_mac: get(&self.convert_mac),
            correction: get(&self.correction),
            bytes: get(&self.bytes),
        }
    }

    /// Runs `work` and returns what it cost beside its result.
    pub fn measure<T>(&self, work: impl FnOnce() -> T) -> (T, Counts) {
        let before = self.counts();
        let result = work();
        (result, self.counts() - before)
    }

    fn count(&self, rows: usize, ntt: usize, mul: usize, passes: usize) {
        self.ntt.fetch_add((rows * ntt) as u64, Ordering::Relaxed);
        self.mul.fetch_add((rows * mul) as u64, Ordering::Relaxed);
        self.bytes.fetch_add((rows * passes * self.inner.ring().n() * 8) as u64, Ordering::Relaxed);
    }

    fn view<'a>(view: View<'a, Self>) -> View<'a, B> {
        View { buffer: view.buffer, batch: view.batch, batch_stride: view.batch_stride, rows: view.rows }
    }

    fn view_mut<'a>(view: ViewMut<'a, Self>) -> ViewMut<'a, B> {
        ViewMut { buffer: view.buffer, batch: view.batch, batch_stride: view.batch_stride, rows: view.rows }
    }
}

impl<B: Backend> Backend for Counting<B> {
    const HOLDS_NUMBERS: bool = B::HOLDS_NUMBERS;

    type Buffer = B::Buffer;
    type Conversion = CountedConversion<B::Conversion>;

    fn ring(&self) -> &Arc<Ring> {
        self.inner.ring()
    }

    fn name(&self) -> String {
        format!("counting {}", self.inner.name())
    }

    fn alloc(&self, rows: usize) -> Result<Self::Buffer, BackendError> {
        self.inner.alloc(rows)
    }

    fn upload(&self, words: &[u64], buffer: &mut Self::Buffer, row: usize) -> Result<(), BackendError> {
        self.inner.upload(words, buffer, row)
    }

    fn download(&self, buffer: &Self::Buffer, row: usize, words: &mut [u64]) -> Result<(), BackendError> {
        self.inner.download(buffer, row, words)
    }

    fn copy(&self, src: View<'_, Self>, dst: ViewMut<'_, Self>) -> Result<(), BackendError> {
        self.count(src.rows.len() * src.batch, 0, 0, 2);
        self.inner.copy(Self::view(src), Self::view_mut(dst))
    }

    fn reduce_signed(&self, primes: &[usize], values: &[i64], dst: ViewMut<'_, Self>) -> Result<(), BackendError> {
        self.count(primes.len(), 0, 0, 1);
        self.inner.reduce_signed(primes, values, Self::view_mut(dst))
    }

    fn uniform(
        &self,
        primes: &[usize],
        seed: &Seed,
        purpose: Purpose,
        digit: u32,
        dst: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.count(primes.len(), 0, 0, 1);
        self.inner.uniform(primes, seed, purpose, digit, Self::view_mut(dst))
    }

    fn ntt_forward(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Result<(), BackendError> {
        self.count(primes.len() * x.batch, 1, 0, 2);
        self.inner.ntt_forward(primes, Self::view_mut(x))
    }

    fn ntt_inverse(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Result<(), BackendError> {
        self.count(primes.len() * x.batch, 1, 0, 2);
        self.inner.ntt_inverse(primes, Self::view_mut(x))
    }

    fn add_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Result<(), BackendError> {
        self.count(primes.len() * x.batch, 0, 0, 3);
        self.inner.add_assign(primes, Self::view_mut(x), Self::view(y))
    }

    fn sub_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Result<(), BackendError> {
        self.count(primes.len() * x.batch, 0, 0, 3);
        self.inner.sub_assign(primes, Self::view_mut(x), Self::view(y))
    }

    fn neg_assign(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Result<(), BackendError> {
        self.count(primes.len() * x.batch, 0, 0, 2);
        self.inner.neg_assign(primes, Self::view_mut(x))
    }

    fn mul_into(
        &self,
        primes: &[usize],
        a: View<'_, Self>,
        b: View<'_, Self>,
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.count(primes.len() * out.batch, 0, 1, 3);
        self.inner.mul_into(primes, Self::view(a), Self::view(b), Self::view_mut(out))
    }

    fn mul_acc(
        &self,
        primes: &[usize],
        a: View<'_, Self>,
        b: View<'_, Self>,
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.count(primes.len() * out.batch, 0, 1, 4);
        self.inner.mul_acc(primes, Self::view(a), Self::view(b), Self::view_mut(out))
    }

    fn mul_scalar_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, scalars: &[u64]) -> Result<(), BackendError> {
        self.count(primes.len() * x.batch, 0, 1, 2);
        self.inner.mul_scalar_assign(primes, Self::view_mut(x), scalars)
    }

    fn mul_scalar_acc(
        &self,
        primes: &[usize],
        x: View<'_, Self>,
        scalars: &[u64],
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.count(primes.len() * x.batch, 0, 1, 3);
        self.inner.mul_scalar_acc(primes, Self::view(x), scalars, Self::view_mut(out))
    }

    fn automorphism_coeff(
        &self,
        primes: &[usize],
        g: usize,
        x: View<'_, Self>,
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.count(primes.len() * x.batch, 0, 0, 2);
        self.inner.automorphism_coeff(primes, g, Self::view(x), Self::view_mut(out))
    }

    fn automorphism_ntt(&self, g: usize, x: View<'_, Self>, out: ViewMut<'_, Self>) -> Result<(), BackendError> {
        self.count(x.rows.len() * x.batch, 0, 0, 2);
        self.inner.automorphism_ntt(g, Self::view(x), Self::view_mut(out))
    }

    fn conversion(&self, src: &IndexSet, dst: &IndexSet, spec: &ConvertSpec) -> Result<Self::Conversion, BackendError> {
        let (s, d) = (src.len() as u64, dst.len() as u64);
        let cost = Counts {
            ntt: 0,
            mul: if spec.prescale.is_some() { s } else { 0 },
            convert_mac: s * d,
            correction: if spec.overflow == Count::None { 0 } else { s + d },
            bytes: (s + d) * self.inner.ring().n() as u64 * 8,
        };
        Ok(CountedConversion { inner: self.inner.conversion(src, dst, spec)?, cost })
    }

    fn convert(
        &self,
        conversion: &Self::Conversion,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
        mode: ConvertMode,
    ) -> Result<(), BackendError> {
        let batch = src.batch as u64;
        let add = |counter: &AtomicU64, x: u64| counter.fetch_add(batch * x, Ordering::Relaxed);
        add(&self.mul, conversion.cost.mul);
        add(&self.convert_mac, conversion.cost.convert_mac);
        add(&self.correction, conversion.cost.correction);
        add(&self.bytes, conversion.cost.bytes);
        self.inner.convert(&conversion.inner, Self::view(src), Self::view_mut(dst), mode)
    }

    fn radix_digit(
        &self,
        primes: &[usize],
        from: usize,
        digit: RadixDigit,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.count(primes.len(), 0, 0, 2);
        self.inner.radix_digit(primes, from, digit, Self::view(src), Self::view_mut(dst))
    }

    fn inner_product(
        &self,
        primes: &[usize],
        digits: View<'_, Self>,
        keys: [View<'_, Self>; 2],
        out: ViewMut<'_, Self>,
        accumulate: bool,
    ) -> Result<(), BackendError> {
        self.count(primes.len() * digits.batch, 0, 2, 3);
        self.count(primes.len(), 0, 0, if accumulate { 4 } else { 2 });
        let (digits, out) = (Self::view(digits), Self::view_mut(out));
        self.inner.inner_product(primes, digits, keys.map(Self::view), out, accumulate)
    }
}
