//! Arithmetic on limbs of residues mod q.
#![doc = include_str!("../docs/kernels.md")]

pub mod convert;
pub(crate) mod lanes;
mod pointwise;
mod radix;
mod tensor;

use crate::isa::Isa;
use crate::modulus::{Modulus, Scalar};
use crate::repeated;
use crate::slot_order::SlotPermutation;
use lanes::{Kernel, dispatch, dispatch_sums};
use pointwise::{
    Add, FromSigned, InnerProduct2, Map, Mul, MulAcc, MulScalar, MulScalarAcc, Neg, Op, Permute, PermuteBlocks, Reduce,
    Sub, SubMulScalar,
};
pub use radix::{RadixCut, RadixDigit};
use std::marker::PhantomData;
use std::ops::Range;

/// Moduli of at most so many bits are multiplied 52 bits at a time, in words or in doubles, with lazy ranges.
pub const NARROW_BITS: u32 = 50;

/// Whether a modulus is one of those.
pub(crate) fn is_narrow(modulus: &Modulus) -> bool {
    modulus.bits() <= NARROW_BITS
}

/// The instruction set that serves a modulus: IFMA below 2^50 only.
pub(crate) fn effective_isa(modulus: &Modulus, isa: Isa) -> Isa {
    if isa == Isa::Ifma && !is_narrow(modulus) { Isa::Avx512 } else { isa }
}

/// Limbs of at least this many words are written past the caches where nothing reads them next: a polynomial of such
/// limbs does not fit them.
pub(crate) const STREAM_WORDS: usize = 1 << 15;

/// Whether a vector of the widest lanes is aligned at p.
pub(crate) fn aligned(p: *const u64) -> bool {
    p.addr().is_multiple_of(64)
}

/// Whether a limb of n words at p is written past the caches.
pub(crate) fn streams(p: *const u64, n: usize) -> bool {
    n >= STREAM_WORDS && aligned(p)
}

/// Lets every thread, this one too, read what this one has written past the caches.
pub(crate) fn settle_streams() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// The terms of a sum of products, out_c = sum_j f_j a_jc, of one limb.
pub(crate) struct Products<'a> {
    /// The f_j.
    pub(crate) factors: Vec<&'a [u64]>,
    /// The a_j0 and the a_j1.
    pub(crate) columns: [Vec<&'a [u64]>; 2],
    /// Of the factors eight words stand for a block of 64; see [`crate::repeated`].
    pub(crate) repeated: bool,
}

/// The operations on limbs of one modulus.
///
/// Every method panics if its slices differ in length: that is a defect of the caller, not of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LimbKernels {
    modulus: Modulus,
    isa: Isa,
}

impl LimbKernels {
    /// The kernels for one modulus. An `isa` the CPU lacks is lowered to the best it has below.
    #[must_use]
    pub fn new(modulus: Modulus, isa: Isa) -> Self {
        Self::new_unchecked(modulus, isa.lowered())
    }

    /// As [`LimbKernels::new`] for an instruction set known to be present.
    fn new_unchecked(modulus: Modulus, isa: Isa) -> Self {
        Self { modulus, isa: effective_isa(&modulus, isa) }
    }

    /// The modulus.
    #[must_use]
    pub fn modulus(&self) -> Modulus {
        self.modulus
    }

    /// The instruction set in use.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// x += y.
    pub fn add_assign(&self, x: &mut [u64], y: &[u64]) {
        self.check(&[x, y]);
        self.assign(Add, x, y, None);
    }

    /// x -= y.
    pub fn sub_assign(&self, x: &mut [u64], y: &[u64]) {
        self.check(&[x, y]);
        self.assign(Sub, x, y, None);
    }

    /// x = -x.
    pub fn neg_assign(&self, x: &mut [u64]) {
        self.check(&[x]);
        self.in_place(Neg, x, None);
    }

    /// out = a + b.
    pub fn add_into(&self, a: &[u64], b: &[u64], out: &mut [u64]) {
        self.check(&[a, b]);
        self.into(Add, a, b, out, None);
    }

    /// out = a + b, past the caches; out is aligned, and [`settle_streams`] comes before it is read.
    pub(crate) fn stream_sum(&self, a: &[u64], b: &[u64], out: &mut [u64]) {
        self.check(&[a, b]);
        assert!(a.len() == out.len() && b.len() == out.len(), "limbs of unequal length");
        assert!(aligned(out.as_ptr()), "streams to unaligned memory");
        self.map::<Add, true>(Add, a.as_ptr(), b.as_ptr(), out.as_mut_ptr(), out.len(), None);
    }

    /// out = a - b.
    pub fn sub_into(&self, a: &[u64], b: &[u64], out: &mut [u64]) {
        self.check(&[a, b]);
        self.into(Sub, a, b, out, None);
    }

    /// x *= y, element by element.
    pub fn mul_assign(&self, x: &mut [u64], y: &[u64]) {
        self.check(&[x, y]);
        self.assign(Mul, x, y, None);
    }

    /// out = a * b, element by element.
    pub fn mul_into(&self, a: &[u64], b: &[u64], out: &mut [u64]) {
        self.check(&[a, b]);
        self.into(Mul, a, b, out, None);
    }

    /// out += a * b, element by element.
    pub fn mul_acc(&self, a: &[u64], b: &[u64], out: &mut [u64]) {
        self.check(&[a, b, out]);
        self.into(MulAcc, a, b, out, None);
    }

    /// x *= c.
    pub fn mul_scalar_assign(&self, x: &mut [u64], c: &Scalar) {
        self.check(&[x]);
        self.in_place(MulScalar, x, Some(*c));
    }

    /// out = x * c.
    pub fn mul_scalar_into(&self, x: &[u64], c: &Scalar, out: &mut [u64]) {
        self.check(&[x]);
        self.into(MulScalar, x, x, out, Some(*c));
    }

    /// out += x * c.
    pub fn mul_scalar_acc(&self, x: &[u64], c: &Scalar, out: &mut [u64]) {
        self.check(&[x, out]);
        self.into(MulScalarAcc, x, x, out, Some(*c));
    }

    /// out = (a - b) * c.
    pub fn sub_mul_scalar_into(&self, a: &[u64], b: &[u64], c: &Scalar, out: &mut [u64]) {
        self.check(&[a, b]);
        self.into(SubMulScalar, a, b, out, Some(*c));
    }

    /// out0 (+)= sum_j d_j * k0_j and out1 (+)= sum_j d_j * k1_j, added to what is there if `accumulate`.
    ///
    /// Any number of digits; products are summed unreduced and reduced at the end.
    pub fn inner_product2(
        &self,
        digits: &[&[u64]],
        k0: &[&[u64]],
        k1: &[&[u64]],
        out0: &mut [u64],
        out1: &mut [u64],
        accumulate: bool,
    ) {
        assert!(digits.len() == k0.len() && digits.len() == k1.len(), "inner product of unequal numbers of limbs");
        let n = out0.len();
        let mut limbs = digits.iter().chain(k0).chain(k1);
        assert!(out1.len() == n && limbs.all(|limb| limb.len() == n), "limbs of unequal length");
        let out = [out0.as_mut_ptr(), out1.as_mut_ptr()];
        let stream = !accumulate && out.iter().all(|&p| streams(p, n));
        self.inner_product(digits, [k0, k1], 0, [out0, out1], accumulate, stream);
        settle_streams();
    }

    /// As [`LimbKernels::inner_product2`] on as many elements as `out` has, from element `first` of all operands on;
    /// written past the caches if `stream`, which needs aligned outputs.
    pub(crate) fn inner_product(
        &self,
        digits: &[&[u64]],
        keys: [&[&[u64]]; 2],
        first: usize,
        out: [&mut [u64]; 2],
        accumulate: bool,
        stream: bool,
    ) {
        let n = out[0].len();
        assert!(keys.iter().all(|k| k.len() == digits.len()), "inner product of unequal numbers of limbs");
        let limbs = digits.iter().chain(keys[0]).chain(keys[1]);
        assert!(out[1].len() == n && limbs.clone().all(|limb| limb.len() >= first + n), "limbs of unequal length");
        limbs.for_each(|limb| self.check(&[&limb[first..first + n]]));
        let out = out.map(<[u64]>::as_mut_ptr);
        assert!(!stream || out.iter().all(|&p| aligned(p)), "streams to unaligned memory");
        let (modulus, repeated) = (&self.modulus, false);
        self.dispatch_sums(InnerProduct2 { modulus, digits, keys, first, out, n, accumulate, stream, repeated });
    }

    /// As [`LimbKernels::inner_product2`] on as many elements as `out` has, from element `first` of all operands on; past the
    /// caches where whole limbs are.
    pub(crate) fn products(&self, products: &Products<'_>, first: usize, out: [&mut [u64]; 2], accumulate: bool) {
        let Products { factors: digits, columns, repeated } = products;
        let (n, repeated) = (out[0].len(), *repeated);
        assert!(columns.iter().all(|k| k.len() == digits.len()), "inner product of unequal numbers of limbs");
        let mut limbs = columns.iter().flatten();
        let all = limbs.next().map_or(first + n, |limb| limb.len());
        assert!(
            out[1].len() == n && first + n <= all && limbs.all(|limb| limb.len() == all),
            "limbs of unequal length"
        );
        let whole = if repeated { repeated::words(all) } else { all };
        assert!(!repeated || (all | first | n).is_multiple_of(repeated::BLOCK), "{n} words are no whole blocks");
        assert!(digits.iter().all(|f| f.len() == whole), "factors of another length");
        let last = first + n;
        let of = if repeated { repeated::words(first)..repeated::words(last) } else { first..last };
        digits.iter().for_each(|f| self.check(&[&f[of.clone()]]));
        columns.iter().flatten().for_each(|limb| self.check(&[&limb[first..last]]));
        let out = out.map(<[u64]>::as_mut_ptr);
        let stream = !accumulate && out.iter().all(|&p| streams(p, all));
        let (modulus, keys) = (&self.modulus, [columns[0].as_slice(), columns[1].as_slice()]);
        self.dispatch_sums(InnerProduct2 { modulus, digits, keys, first, out, n, accumulate, stream, repeated });
    }

    /// out = src mod q, for any words in `src`.
    pub fn reduce_into(&self, src: &[u64], out: &mut [u64]) {
        self.into(Reduce, src, src, out, None);
    }

    /// out = src mod q, for any signed words in `src`; constant time in the values.
    pub fn from_signed_into(&self, src: &[i64], out: &mut [u64]) {
        self.into(
            FromSigned,
            bytemuck::cast_slice(src),
            bytemuck::cast_slice(src),
            out,
            Some(self.modulus.scalar(1 << 63)),
        );
    }

    /// out = one radix digit of the residues `src` modulo `from`, as residues of this modulus; see [`RadixDigit`].
    pub fn radix_digit_into(&self, src: &[u64], from: Modulus, digit: RadixDigit, out: &mut [u64]) {
        assert_eq!(src.len(), out.len(), "limbs of unequal length");
        debug_assert!(src.iter().all(|&x| x < from.value()), "residues not below p");
        let (src, out, n) = (src.as_ptr(), out.as_mut_ptr(), out.len());
        self.dispatch(radix::Radix::new(&self.modulus, &from, digit, src, out, n));
    }

    /// out\[i\] = src\[perm\[i\]\].
    pub fn permute_into(&self, src: &[u64], perm: &[u32], out: &mut [u64]) {
        let n = out.len();
        assert!(src.len() == n && perm.len() == n, "limbs of unequal length");
        let greatest = perm.iter().fold(0, |m, &p| m.max(p));
        assert!(n == 0 || (greatest as usize) < n, "index {greatest} in a permutation of {n}");
        self.dispatch(Permute { src: src.as_ptr(), perm: perm.as_ptr(), out: out.as_mut_ptr(), n });
    }

    /// The blocks of 64 slots `blocks` of src, each where `permutation` takes it.
    pub(crate) fn permute_blocks(
        &self,
        src: &[u64],
        permutation: &SlotPermutation,
        blocks: Range<usize>,
        out: &mut [u64],
    ) {
        let (from, to) = (permutation.from(), permutation.block_to());
        assert!(src.len() == from.len() && out.len() == from.len(), "limbs of unequal length");
        let (to, stream) = (&to[blocks], streams(out.as_ptr(), out.len()));
        self.dispatch(PermuteBlocks { src: src.as_ptr(), from: from.as_ptr(), to, out: out.as_mut_ptr(), stream });
    }

    /// The coefficients of a(X^g) from those of a(X), modulo X^N + 1. `g` is taken modulo 2N and must be odd.
    pub fn automorphism_into(&self, src: &[u64], g: u32, out: &mut [u64]) {
        let n = src.len();
        assert!(n == out.len() && n.is_power_of_two(), "limbs of unequal length");
        assert!(g % 2 == 1, "Galois element {g} is even; use an odd one below 2N");
        let (step, mut k) = (g as usize & (2 * n - 1), 0);
        for &x in src {
            out[k & (n - 1)] = if k < n { x } else { self.modulus.neg(x) };
            k = (k + step) & (2 * n - 1);
        }
    }

    fn dispatch(&self, kernel: impl Kernel) {
        dispatch(self.isa, is_narrow(&self.modulus), kernel);
    }

    /// As `dispatch`, for sums of products of residues.
    fn dispatch_sums(&self, kernel: impl Kernel) {
        dispatch_sums(self.isa, is_narrow(&self.modulus), self.modulus.bits(), kernel);
    }

    /// In debug builds, that all are residues.
    fn check(&self, limbs: &[&[u64]]) {
        debug_assert!(limbs.iter().all(|x| x.iter().all(|&x| x < self.modulus.value())), "residues not below q");
    }

    fn in_place<O: Op>(&self, op: O, x: &mut [u64], scalar: Option<Scalar>) {
        // One pointer for what is read and written: a shared one would end where the other begins.
        let (n, x) = (x.len(), x.as_mut_ptr());
        self.map::<O, false>(op, x, x, x, n, scalar);
    }

    fn assign<O: Op>(&self, op: O, x: &mut [u64], y: &[u64], scalar: Option<Scalar>) {
        assert_eq!(x.len(), y.len(), "limbs of unequal length");
        let (n, x) = (x.len(), x.as_mut_ptr());
        self.map::<O, false>(op, x, y.as_ptr(), x, n, scalar);
    }

    fn into<O: Op>(&self, op: O, a: &[u64], b: &[u64], out: &mut [u64], scalar: Option<Scalar>) {
        assert!(a.len() == out.len() && b.len() == out.len(), "limbs of unequal length");
        self.map::<O, false>(op, a.as_ptr(), b.as_ptr(), out.as_mut_ptr(), out.len(), scalar);
    }

    /// The pointers must be valid for n words.
    fn map<O: Op, const STREAM: bool>(
        &self,
        _op: O,
        a: *const u64,
        b: *const u64,
        out: *mut u64,
        n: usize,
        scalar: Option<Scalar>,
    ) {
        let scalar = scalar.unwrap_or(Scalar { value: 0, shoup: 0, shoup52: 0 });
        self.dispatch(Map::<'_, O, STREAM> { op: PhantomData::<O>, modulus: &self.modulus, scalar, a, b, out, n });
    }
}

#[cfg(test)]
mod tests;
