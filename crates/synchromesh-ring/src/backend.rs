//! The operations on whole RNS polynomials that a device offers: one trait, no cryptography.
//!
//! Data are residues in \[0, q) in a matrix \[batch\]\[limb\]\[N\] inside a device buffer; a [`View`] says which
//! rows of the buffer are meant, and each call names the prime of every row. Lazy ranges live inside a method
//! only. Execution may be asynchronous; [`Backend::download`] synchronises.
//!
//! Memory comes from the backend's own recycling allocator: a dropped buffer is kept and handed out again, so
//! outputs and temporaries alike cost no allocation in steady state and every method takes `&self`.
//! The contents of a new buffer are unspecified.

mod around;
mod stage;
mod width;

use std::sync::Arc;

use zeroize::Zeroize;

pub use self::around::Around;
pub use self::stage::{Addend, Converted, DigitLimb, Factors, GadgetDigits, ProductSum, SlotSum, Stage, TensorMode};
pub use self::width::SignedWidth;
pub use crate::error::BackendError;
pub use crate::kernels::RadixDigit;
use crate::ring::{IndexSet, Ring};
use crate::rns::ConvertSpec;
use crate::sampler::{Purpose, Seed};
use crate::threads::Threads;

/// Rows of a buffer to read: `rows[r]` is the row (of N words) of limb r; batch element b lies `b * batch_stride`
/// rows further.
pub struct View<'a, B: Backend> {
    /// The memory.
    pub buffer: &'a B::Buffer,
    /// Number of polynomials.
    pub batch: usize,
    /// Distance of two polynomials, in rows.
    pub batch_stride: usize,
    /// Row of each limb.
    pub rows: &'a [usize],
}

impl<B: Backend> Clone for View<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for View<'_, B> {}

impl<'a, B: Backend> View<'a, B> {
    /// One polynomial.
    pub const fn new(buffer: &'a B::Buffer, rows: &'a [usize]) -> Self {
        Self { buffer, batch: 1, batch_stride: 0, rows }
    }

    /// Row of limb `limb` of batch element `element`.
    #[must_use]
    pub const fn row(&self, element: usize, limb: usize) -> usize {
        element * self.batch_stride + self.rows[limb]
    }
}

/// Rows of a buffer to write; see [`View`].
pub struct ViewMut<'a, B: Backend> {
    /// The memory.
    pub buffer: &'a mut B::Buffer,
    /// Number of polynomials.
    pub batch: usize,
    /// Distance of two polynomials, in rows.
    pub batch_stride: usize,
    /// Row of each limb.
    pub rows: &'a [usize],
}

impl<'a, B: Backend> ViewMut<'a, B> {
    /// One polynomial.
    pub const fn new(buffer: &'a mut B::Buffer, rows: &'a [usize]) -> Self {
        Self { buffer, batch: 1, batch_stride: 0, rows }
    }

    /// The same rows for a shorter time.
    pub const fn reborrow(&mut self) -> ViewMut<'_, B> {
        ViewMut { buffer: self.buffer, batch: self.batch, batch_stride: self.batch_stride, rows: self.rows }
    }

    /// The same rows, to read.
    #[must_use]
    pub const fn as_view(&self) -> View<'_, B> {
        View { buffer: self.buffer, batch: self.batch, batch_stride: self.batch_stride, rows: self.rows }
    }

    /// Row of limb `limb` of batch element `element`.
    #[must_use]
    pub const fn row(&self, element: usize, limb: usize) -> usize {
        element * self.batch_stride + self.rows[limb]
    }
}

/// What a base conversion does with its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConvertMode {
    /// Overwrite it.
    Replace,
    /// Add to it.
    Add,
}

/// A backend that can be had by its type.
pub trait Open: Backend {
    /// Opens it for a ring.
    ///
    /// # Errors
    /// What the machine lacks.
    fn open(ring: &Arc<Ring>) -> Result<Self, BackendError>;
}

/// A device that computes on RNS polynomials of one [`Ring`].
///
/// `primes[r]` names the prime of limb r in every method. Results are bit for bit equal on every implementation.
pub trait Backend: Sized + Send + Sync + 'static {
    /// Whether its buffers hold numbers; where they do not, nobody needs to work out what to write there.
    const HOLDS_NUMBERS: bool = true;

    /// Memory of the device, N words a row; returned to the recycling allocator when dropped.
    type Buffer: Send + Sync + Zeroize;
    /// A prepared base conversion.
    type Conversion: Send + Sync;

    /// The ring this backend computes in.
    fn ring(&self) -> &Arc<Ring>;

    /// Whether it has a way of its own for [`Factors::Repeated`]; others go by way of the host, so that factors are better kept
    /// whole.
    fn keeps_repeated(&self) -> bool {
        false
    }

    /// The threads on which whole operations may be asked of this device side by side.
    fn threads(&self) -> Threads {
        Threads::ONE
    }

    /// A short name: "cpu/ifma", "cuda:0".
    fn name(&self) -> String;

    /// Memory for `rows` rows of N words, contents unspecified.
    ///
    /// # Errors
    /// [`BackendError::Memory`].
    fn alloc(&self, rows: usize) -> Result<Self::Buffer, BackendError>;

    /// Writes `words` to the rows from `row` on.
    ///
    /// # Errors
    /// When the device fails.
    fn upload(&self, words: &[u64], buffer: &mut Self::Buffer, row: usize) -> Result<(), BackendError>;

    /// Reads the rows from `row` on; waits for all work on them.
    ///
    /// # Errors
    /// When the device fails.
    fn download(&self, buffer: &Self::Buffer, row: usize, words: &mut [u64]) -> Result<(), BackendError>;

    /// dst = src.
    ///
    /// # Errors
    /// When the device fails.
    fn copy(&self, src: View<'_, Self>, dst: ViewMut<'_, Self>) -> Result<(), BackendError>;

    /// dst = the residues of `values` (N signed integers that `width` holds), limb by limb; constant time in the values. A
    /// device that is written to is sent that many bytes for each.
    ///
    /// # Errors
    /// When the device fails.
    fn reduce_signed(
        &self,
        primes: &[usize],
        values: &[i64],
        width: SignedWidth,
        dst: ViewMut<'_, Self>,
    ) -> Result<(), BackendError>;

    /// dst = uniform residues expanded from `seed`, a stream per (seed, purpose, digit, prime).
    ///
    /// # Errors
    /// When the device fails.
    fn uniform(
        &self,
        primes: &[usize],
        seed: &Seed,
        purpose: Purpose,
        digit: u32,
        dst: ViewMut<'_, Self>,
    ) -> Result<(), BackendError>;

    /// Coefficients to slots, in place.
    ///
    /// # Errors
    /// When the device fails.
    fn ntt_forward(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Result<(), BackendError>;

    /// Slots to coefficients, in place.
    ///
    /// # Errors
    /// When the device fails.
    fn ntt_inverse(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Result<(), BackendError>;

    /// x += y.
    ///
    /// # Errors
    /// When the device fails.
    fn add_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Result<(), BackendError>;

    /// x -= y.
    ///
    /// # Errors
    /// When the device fails.
    fn sub_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Result<(), BackendError>;

    /// x = -x.
    ///
    /// # Errors
    /// When the device fails.
    fn neg_assign(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Result<(), BackendError>;

    /// out = a * b, residue by residue.
    ///
    /// # Errors
    /// When the device fails.
    fn mul_into(
        &self,
        primes: &[usize],
        a: View<'_, Self>,
        b: View<'_, Self>,
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError>;

    /// out += a * b, residue by residue.
    ///
    /// # Errors
    /// When the device fails.
    fn mul_acc(
        &self,
        primes: &[usize],
        a: View<'_, Self>,
        b: View<'_, Self>,
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError>;

    /// x = c x, one residue `scalars[r]` a limb.
    ///
    /// # Errors
    /// When the device fails.
    fn mul_scalar_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, scalars: &[u64]) -> Result<(), BackendError>;

    /// out += c x, one residue `scalars[r]` a limb.
    ///
    /// # Errors
    /// When the device fails.
    fn mul_scalar_acc(
        &self,
        primes: &[usize],
        x: View<'_, Self>,
        scalars: &[u64],
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError>;

    /// out(X) = x(X^g) on coefficients, g odd and below 2N.
    ///
    /// # Errors
    /// When the device fails.
    fn automorphism_coeff(
        &self,
        primes: &[usize],
        g: usize,
        x: View<'_, Self>,
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError>;

    /// out(X) = x(X^g) on slots, g odd and below 2N: a permutation, the same for every prime.
    ///
    /// # Errors
    /// When the device fails.
    fn automorphism_ntt(&self, g: usize, x: View<'_, Self>, out: ViewMut<'_, Self>) -> Result<(), BackendError>;

    /// Prepares a base conversion from the primes `src` to the primes `dst`.
    ///
    /// # Errors
    /// When the device fails.
    fn conversion(&self, src: &IndexSet, dst: &IndexSet, spec: &ConvertSpec) -> Result<Self::Conversion, BackendError>;

    /// Runs a base conversion: dst_i (=|+=) sum_j y_j M_ij + u correction_i + bias_i mod q_i; see [`ConvertSpec`].
    ///
    /// # Errors
    /// When the device fails.
    fn convert(
        &self,
        conversion: &Self::Conversion,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
        mode: ConvertMode,
    ) -> Result<(), BackendError>;

    /// dst = one radix digit of `src`, a single limb modulo the prime `from`, reduced modulo each of `primes`; see
    /// [`RadixDigit`].
    ///
    /// # Errors
    /// When the device fails.
    fn radix_digit(
        &self,
        primes: &[usize],
        from: usize,
        digit: RadixDigit,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
    ) -> Result<(), BackendError>;

    /// out_c (+)= sum_j d_j k_cj over the batch elements j, for both columns c; `out` has a batch of two.
    ///
    /// # Errors
    /// When the device fails.
    fn inner_product(
        &self,
        primes: &[usize],
        digits: View<'_, Self>,
        keys: [View<'_, Self>; 2],
        out: ViewMut<'_, Self>,
        accumulate: bool,
    ) -> Result<(), BackendError>;

    /// Carries out a fused stage; [`Stage::apart`] is how where there is no better way. `primes[r]` names the prime of
    /// limb r of all its operands.
    ///
    /// There is no default, and a device names every stage it takes apart: a new one does not fall through unseen.
    ///
    /// # Errors
    /// When the device fails.
    fn stage(&self, primes: &[usize], stage: Stage<'_, Self>) -> Result<(), BackendError>;
}
