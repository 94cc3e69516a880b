//! The operations on whole RNS polynomials that a device offers: one trait, no cryptography.
//!
//! Data are residues in \[0, q) in a matrix \[batch\]\[limb\]\[N\] inside a device buffer; a [`View`] says which
//! rows of the buffer are meant, and each call names the prime of every row. Lazy ranges live inside a method
//! only. Execution may be asynchronous; [`Backend::download`] synchronises.
//!
//! Memory comes from the backend's own recycling allocator: a dropped buffer is kept and handed out again, so
//! outputs and temporaries alike cost no allocation in steady state and every method takes `&self`.
//! The contents of a new buffer are unspecified.

use std::sync::Arc;

use zeroize::Zeroize;

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

/// Where one limb of one digit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigitLimb {
    /// In the digit matrix, as coefficients still to be transformed.
    Coefficients,
    /// In the digit matrix, as slots.
    Slots,
    /// In this row of the input the digits were cut from, as slots.
    Input(usize),
}

/// The operands of one gadget product: digits in a matrix \[digit\]\[limb\]\[N\], and where each limb is.
pub struct GadgetDigits<'a, B: Backend> {
    /// The digits; batch = number of digits.
    pub digits: ViewMut<'a, B>,
    /// For each digit, where limb r is.
    pub limbs: &'a [Vec<DigitLimb>],
    /// The input, for [`DigitLimb::Input`].
    pub input: Option<&'a B::Buffer>,
}

/// One sum of polynomials in slots, the first given as coefficients; see [`Backend::slot_sums`].
pub struct SlotSum<'a, B: Backend> {
    /// Coefficients.
    pub x: ViewMut<'a, B>,
    /// Slots.
    pub ys: Vec<View<'a, B>>,
    /// Where the result goes; none: to x.
    pub out: Option<ViewMut<'a, B>>,
}

/// What [`Backend::tensor`] does besides multiplying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorMode {
    /// Adds to the output, in slots, instead of overwriting it.
    pub accumulate: bool,
    /// Which components leave in coefficients; the others leave in slots.
    pub finish: [bool; 3],
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

    /// dst = the residues of `values` (N signed integers), limb by limb; constant time in the values.
    ///
    /// # Errors
    /// When the device fails.
    fn reduce_signed(&self, primes: &[usize], values: &[i64], dst: ViewMut<'_, Self>) -> Result<(), BackendError>;

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

    /// Brings all digits to slots, then takes their inner product with both key columns. Unless all limbs are
    /// [`DigitLimb::Slots`] already, the digit matrix is used up.
    ///
    /// # Errors
    /// When the device fails.
    fn gadget_product(
        &self,
        primes: &[usize],
        gadget: GadgetDigits<'_, Self>,
        keys: [View<'_, Self>; 2],
        out: ViewMut<'_, Self>,
        accumulate: bool,
    ) -> Result<(), BackendError> {
        let GadgetDigits { mut digits, limbs, input } = gadget;
        self.transform_digits(primes, GadgetDigits { digits: digits.reborrow(), limbs, input })?;
        self.inner_product(primes, digits.as_view(), keys, out, accumulate)
    }

    /// Brings all digits to slots, in the digit matrix.
    ///
    /// # Errors
    /// When the device fails.
    fn transform_digits(&self, primes: &[usize], gadget: GadgetDigits<'_, Self>) -> Result<(), BackendError> {
        let GadgetDigits { mut digits, limbs, input } = gadget;
        for (j, state) in limbs.iter().enumerate() {
            let pending: Vec<usize> = (0..primes.len()).filter(|&r| state[r] == DigitLimb::Coefficients).collect();
            let rows: Vec<usize> = pending.iter().map(|&r| digits.row(j, r)).collect();
            let of: Vec<usize> = pending.iter().map(|&r| primes[r]).collect();
            self.ntt_forward(&of, ViewMut::new(digits.buffer, &rows))?;
            for (r, limb) in state.iter().enumerate() {
                if let (DigitLimb::Input(row), Some(buffer)) = (limb, input) {
                    let (src, dst) = ([*row], [digits.row(j, r)]);
                    self.copy(View::new(buffer, &src), ViewMut::new(digits.reborrow().buffer, &dst))?;
                }
            }
        }
        Ok(())
    }

    /// out = c (x_1 + x_2 + ..) for at least one x, one residue `scalars[r]` a limb; without scalars, c = 1.
    ///
    /// # Errors
    /// When the device fails.
    fn sum_into(
        &self,
        primes: &[usize],
        xs: &[View<'_, Self>],
        scalars: Option<&[u64]>,
        mut out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        for (i, &x) in xs.iter().enumerate() {
            if i == 0 {
                self.copy(x, out.reborrow())?;
            } else {
                self.add_assign(primes, out.reborrow(), x)?;
            }
        }
        scalars.map_or(Ok(()), |scalars| self.mul_scalar_assign(primes, out, scalars))
    }

    /// dst = the coefficients of src.
    ///
    /// # Errors
    /// When the device fails.
    fn ntt_inverse_into(
        &self,
        primes: &[usize],
        src: View<'_, Self>,
        mut dst: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.copy(src, dst.reborrow())?;
        self.ntt_inverse(primes, dst)
    }

    /// For each sum, out(X) = (NTT(x) + the sum of ys)(X^g) in slots; x is used up, or is the output where `out` is
    /// none, which needs g = 1.
    ///
    /// # Errors
    /// When the device fails.
    fn slot_sums(&self, primes: &[usize], sums: Vec<SlotSum<'_, Self>>, g: usize) -> Result<(), BackendError> {
        for SlotSum { mut x, ys, out } in sums {
            self.ntt_forward(primes, x.reborrow())?;
            ys.iter().try_for_each(|y| self.add_assign(primes, x.reborrow(), *y))?;
            if let Some(out) = out {
                self.automorphism_ntt(g, x.as_view(), out)?;
            }
        }
        Ok(())
    }

    /// (a_0 b_0, a_0 b_1 + a_1 b_0, a_1 b_1) of polynomials given by coefficients; see [`TensorMode`].
    ///
    /// # Errors
    /// When the device fails.
    fn tensor(
        &self,
        primes: &[usize],
        a: [View<'_, Self>; 2],
        b: [View<'_, Self>; 2],
        out: [ViewMut<'_, Self>; 3],
        mode: TensorMode,
    ) -> Result<(), BackendError> {
        let limbs = primes.len();
        let mut slots = self.alloc(4 * limbs)?;
        let rows: Vec<Vec<usize>> = (0..4).map(|i| (i * limbs..(i + 1) * limbs).collect()).collect();
        for (operand, rows) in a.into_iter().chain(b).zip(&rows) {
            self.copy(operand, ViewMut::new(&mut slots, rows))?;
            self.ntt_forward(primes, ViewMut::new(&mut slots, rows))?;
        }
        let [a0, a1, b0, b1] = [0, 1, 2, 3].map(|i| View::new(&slots, &rows[i]));
        let terms = [vec![(a0, b0)], vec![(a0, b1), (a1, b0)], vec![(a1, b1)]];
        for ((mut out, pairs), finish) in out.into_iter().zip(terms).zip(mode.finish) {
            for (i, (x, y)) in pairs.into_iter().enumerate() {
                if mode.accumulate || i > 0 {
                    self.mul_acc(primes, x, y, out.reborrow())?;
                } else {
                    self.mul_into(primes, x, y, out.reborrow())?;
                }
            }
            if finish {
                self.ntt_inverse(primes, out)?;
            }
        }
        Ok(())
    }

    /// As [`Backend::gadget_product`] into `out`, then brought to coefficients.
    ///
    /// # Errors
    /// When the device fails.
    fn gadget_product_coeff(
        &self,
        primes: &[usize],
        gadget: GadgetDigits<'_, Self>,
        keys: [View<'_, Self>; 2],
        mut out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.gadget_product(primes, gadget, keys, out.reborrow(), false)?;
        self.ntt_inverse(primes, out)
    }

    /// As [`Backend::slot_sums`] for at most two sums, sum c with the gadget product of key column c as one more y.
    ///
    /// # Errors
    /// When the device fails.
    fn gadget_sums(
        &self,
        primes: &[usize],
        gadget: GadgetDigits<'_, Self>,
        keys: [View<'_, Self>; 2],
        sums: Vec<SlotSum<'_, Self>>,
        g: usize,
    ) -> Result<(), BackendError> {
        let limbs = primes.len();
        let mut product = self.alloc(2 * limbs)?;
        let rows: Vec<usize> = (0..2 * limbs).collect();
        let both = ViewMut { buffer: &mut product, batch: 2, batch_stride: limbs, rows: &rows[..limbs] };
        self.gadget_product(primes, gadget, keys, both, false)?;
        let parts = rows.chunks(limbs.max(1)).map(|rows| View::new(&product, rows));
        let add = |(SlotSum { x, mut ys, out }, part)| {
            ys.push(part);
            SlotSum { x, ys, out }
        };
        self.slot_sums(primes, sums.into_iter().zip(parts).map(add).collect(), g)
    }

    /// x_c = the coefficients of x_c plus the gadget product of key column c; x_c is given in slots.
    ///
    /// # Errors
    /// When the device fails.
    fn gadget_product_onto(
        &self,
        primes: &[usize],
        gadget: GadgetDigits<'_, Self>,
        keys: [View<'_, Self>; 2],
        x: [ViewMut<'_, Self>; 2],
    ) -> Result<(), BackendError> {
        let limbs = primes.len();
        let mut product = self.alloc(2 * limbs)?;
        let rows: Vec<usize> = (0..2 * limbs).collect();
        let both = ViewMut { buffer: &mut product, batch: 2, batch_stride: limbs, rows: &rows[..limbs] };
        self.gadget_product(primes, gadget, keys, both, false)?;
        for (mut x, rows) in x.into_iter().zip(rows.chunks(limbs.max(1))) {
            self.add_assign(primes, x.reborrow(), View::new(&product, rows))?;
            self.ntt_inverse(primes, x)?;
        }
        Ok(())
    }
}
