//! Fused stages as data: what a device may carry out as one, and the primitives that each stands for.

use super::{Backend, BackendError, ConvertMode, View, ViewMut};
use crate::repeated;

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

/// One sum of polynomials in slots, the first given as coefficients; see [`Stage::SlotSums`].
pub struct SlotSum<'a, B: Backend> {
    /// Coefficients.
    pub x: ViewMut<'a, B>,
    /// Slots.
    pub ys: Vec<View<'a, B>>,
    /// Where the result goes; none: to x.
    pub out: Option<ViewMut<'a, B>>,
}

/// What the terms of a [`ProductSum`] are multiplied by.
pub enum Factors<'a, B: Backend> {
    /// One polynomial for each term.
    Whole(View<'a, B>),
    /// The same as words that stand for slots, which repeat ([`crate::repeated`]): limb r of f_j is number j L + r, L the
    /// number of limbs, one after another.
    Repeated(&'a B::Buffer),
}

/// One sum of products in slots, out_c (+)= sum_j f_j a_jc.
pub struct ProductSum<'a, B: Backend> {
    /// The f_j.
    pub factors: Factors<'a, B>,
    /// The a_j0 and the a_j1, as many as there are factors.
    pub columns: [View<'a, B>; 2],
    /// Slots; a batch of two.
    pub out: ViewMut<'a, B>,
    /// Whether to add to `out`.
    pub accumulate: bool,
}

/// What [`Stage::RotatedProduct`] adds to column 0.
pub struct Addend<'a, B: Backend> {
    /// Slots.
    pub x: View<'a, B>,
    /// For each limb of x the limb of the product that it is added to.
    pub limbs: &'a [usize],
    /// For each limb of x what it is multiplied by; none: 1.
    pub scalars: Option<&'a [u64]>,
}

/// One of several base conversions from one buffer to another; see [`Stage::Conversions`].
pub struct Converted<'a, B: Backend> {
    /// The conversion.
    pub conversion: &'a B::Conversion,
    /// Row of each source.
    pub from: &'a [usize],
    /// Row of each destination.
    pub to: &'a [usize],
}

/// What [`Stage::Tensor`] does besides multiplying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorMode {
    /// The operands are slots; otherwise they are coefficients, and are transformed.
    pub slots: bool,
    /// Adds to the output, in slots, instead of overwriting it.
    pub accumulate: bool,
    /// Which components leave in coefficients; the others leave in slots.
    pub finish: [bool; 3],
}

/// What a device may do in one pass where primitives take several; see [`Backend::stage`].
///
/// A gadget product is that of digits with both columns of a key. Unless all limbs are [`DigitLimb::Slots`] already, the
/// digit matrix is used up.
pub enum Stage<'a, B: Backend> {
    /// Brings all digits to slots, in the digit matrix.
    TransformDigits(GadgetDigits<'a, B>),
    /// out_c (+)= the gadget product with column c; `out` has a batch of two.
    GadgetProduct {
        /// The digits.
        gadget: GadgetDigits<'a, B>,
        /// Both columns of the key.
        keys: [View<'a, B>; 2],
        /// Slots.
        out: ViewMut<'a, B>,
        /// Whether to add to `out`.
        accumulate: bool,
    },
    /// out_c = the coefficients of the gadget product with column c; `out` has a batch of two.
    GadgetProductCoeff {
        /// The digits.
        gadget: GadgetDigits<'a, B>,
        /// Both columns of the key.
        keys: [View<'a, B>; 2],
        /// Coefficients.
        out: ViewMut<'a, B>,
    },
    /// x_c = the coefficients of x_c plus the gadget product with column c.
    GadgetProductOnto {
        /// The digits.
        gadget: GadgetDigits<'a, B>,
        /// Both columns of the key.
        keys: [View<'a, B>; 2],
        /// Slots that become coefficients.
        x: [ViewMut<'a, B>; 2],
    },
    /// [`Stage::SlotSums`] of at most two sums, sum c with the gadget product with column c as one more y.
    GadgetSums {
        /// The digits.
        gadget: GadgetDigits<'a, B>,
        /// Both columns of the key.
        keys: [View<'a, B>; 2],
        /// The sums.
        sums: Vec<SlotSum<'a, B>>,
        /// The Galois element, odd and below 2N.
        g: usize,
    },
    /// For each sum, out(X) = (NTT(x) + the sum of ys)(X^g) in slots; x is used up, or is the output where `out` is none,
    /// which needs g = 1.
    SlotSums {
        /// The sums.
        sums: Vec<SlotSum<'a, B>>,
        /// The Galois element, odd and below 2N.
        g: usize,
    },
    /// out(X) = c (x_1 + x_2 + ..)(X^g) for at least one x, in coefficients unless g = 1.
    SumInto {
        /// What is added.
        xs: Vec<View<'a, B>>,
        /// The residue of c modulo the prime of each limb; none: c = 1.
        scalars: Option<&'a [u64]>,
        /// The Galois element, odd and below 2N.
        g: usize,
        /// The sum.
        out: ViewMut<'a, B>,
    },
    /// out_c(X) = (the gadget product with column c, and of column 0 an addend)(X^g); `out` has a batch of two.
    RotatedProduct {
        /// The digits.
        gadget: GadgetDigits<'a, B>,
        /// Both columns of the key.
        keys: [View<'a, B>; 2],
        /// What is added to column 0.
        addend: Addend<'a, B>,
        /// The Galois element, odd and below 2N.
        g: usize,
        /// Slots.
        out: ViewMut<'a, B>,
    },
    /// Base conversions from rows of one buffer to rows of another, no two of them to the same. Rows are those of each
    /// conversion, and so are primes.
    Conversions {
        /// The conversions.
        each: Vec<Converted<'a, B>>,
        /// What is converted.
        src: View<'a, B>,
        /// As large a batch.
        dst: ViewMut<'a, B>,
        /// What becomes of the destination.
        mode: ConvertMode,
    },
    /// Sums of products of which several read the same columns.
    ProductSums {
        /// The sums.
        sums: Vec<ProductSum<'a, B>>,
    },
    /// dst = the coefficients of src.
    NttInverseInto {
        /// Slots.
        src: View<'a, B>,
        /// Coefficients.
        dst: ViewMut<'a, B>,
    },
    /// (a_0 b_0, a_0 b_1 + a_1 b_0, a_1 b_1); see [`TensorMode`].
    Tensor {
        /// One operand.
        a: [View<'a, B>; 2],
        /// The other.
        b: [View<'a, B>; 2],
        /// The three components.
        out: [ViewMut<'a, B>; 3],
        /// In which domain they leave, and whether they are added.
        mode: TensorMode,
    },
}

type Done = Result<(), BackendError>;

impl<B: Backend> Stage<'_, B> {
    /// Carries the stage out on `backend` by the primitives, and the smaller stages, that it stands for.
    ///
    /// # Errors
    /// When the device fails.
    pub fn apart(self, backend: &B, primes: &[usize]) -> Result<(), BackendError> {
        match self {
            Self::TransformDigits(gadget) => transform_digits(backend, primes, gadget),
            Self::GadgetProduct { gadget: GadgetDigits { mut digits, limbs, input }, keys, out, accumulate } => {
                let gadget = GadgetDigits { digits: digits.reborrow(), limbs, input };
                backend.stage(primes, Stage::TransformDigits(gadget))?;
                backend.inner_product(primes, digits.as_view(), keys, out, accumulate)
            }
            Self::GadgetProductCoeff { gadget, keys, mut out } => {
                let product = Stage::GadgetProduct { gadget, keys, out: out.reborrow(), accumulate: false };
                backend.stage(primes, product)?;
                backend.ntt_inverse(primes, out)
            }
            Self::GadgetProductOnto { gadget, keys, x } => {
                let each = |(mut x, product): (ViewMut<'_, B>, View<'_, B>)| {
                    backend.add_assign(primes, x.reborrow(), product)?;
                    backend.ntt_inverse(primes, x)
                };
                with_product(backend, primes, (gadget, keys), |product| x.into_iter().zip(product).try_for_each(each))
            }
            Self::GadgetSums { gadget, keys, sums, g } => with_product(backend, primes, (gadget, keys), |product| {
                let add = |(SlotSum { x, mut ys, out }, product)| {
                    ys.push(product);
                    SlotSum { x, ys, out }
                };
                let sums = sums.into_iter().zip(product).map(add).collect();
                backend.stage(primes, Stage::SlotSums { sums, g })
            }),
            Self::SlotSums { sums, g } => sums.into_iter().try_for_each(|SlotSum { mut x, ys, out }| {
                backend.ntt_forward(primes, x.reborrow())?;
                ys.iter().try_for_each(|y| backend.add_assign(primes, x.reborrow(), *y))?;
                out.map_or(Ok(()), |out| backend.automorphism_ntt(g, x.as_view(), out))
            }),
            Self::SumInto { xs, scalars, g, out } if g != 1 => {
                let mut sum = backend.alloc(primes.len())?;
                let rows: Vec<usize> = (0..primes.len()).collect();
                let into = ViewMut::new(&mut sum, &rows);
                backend.stage(primes, Stage::SumInto { xs, scalars, g: 1, out: into })?;
                backend.automorphism_coeff(primes, g, View::new(&sum, &rows), out)
            }
            Self::SumInto { xs, scalars, mut out, .. } => {
                for (i, x) in xs.into_iter().enumerate() {
                    match i {
                        0 => backend.copy(x, out.reborrow())?,
                        _ => backend.add_assign(primes, out.reborrow(), x)?,
                    }
                }
                scalars.map_or(Ok(()), |scalars| backend.mul_scalar_assign(primes, out, scalars))
            }
            Self::RotatedProduct { gadget, keys, addend: Addend { x, limbs, scalars }, g, out } => {
                let rows: Vec<usize> = (0..2 * primes.len()).collect();
                let mut sum = backend.alloc(rows.len())?;
                let own = &rows[..primes.len()];
                let both = ViewMut { buffer: &mut sum, batch: 2, batch_stride: primes.len(), rows: own };
                backend.stage(primes, Stage::GadgetProduct { gadget, keys, out: both, accumulate: false })?;
                let (of, to): (Vec<usize>, _) =
                    (limbs.iter().map(|&r| primes[r]).collect(), ViewMut::new(&mut sum, limbs));
                match scalars {
                    Some(scalars) => backend.mul_scalar_acc(&of, x, scalars, to)?,
                    None => backend.add_assign(&of, to, x)?,
                }
                let both = View { buffer: &sum, batch: 2, batch_stride: primes.len(), rows: own };
                backend.automorphism_ntt(g, both, out)
            }
            Self::Conversions { each, src, mut dst, mode } => each.into_iter().try_for_each(|one| {
                let dst = ViewMut { rows: one.to, ..dst.reborrow() };
                backend.convert(one.conversion, View { rows: one.from, ..src }, dst, mode)
            }),
            Self::ProductSums { sums } => sums.into_iter().try_for_each(|sum| product_sum(backend, primes, sum)),
            Self::NttInverseInto { src, mut dst } => {
                backend.copy(src, dst.reborrow())?;
                backend.ntt_inverse(primes, dst)
            }
            Self::Tensor { a, b, out, mode } => tensor(backend, primes, [a, b], out, mode),
        }
    }
}

fn product_sum<B: Backend>(backend: &B, primes: &[usize], sum: ProductSum<'_, B>) -> Done {
    let ProductSum { factors, columns, out, accumulate } = sum;
    let packed = match factors {
        Factors::Whole(factors) => return backend.inner_product(primes, factors, columns, out, accumulate),
        Factors::Repeated(packed) => packed,
    };
    let limbs = primes.len();
    let whole = unpacked(backend, packed, columns[0].batch * limbs)?;
    let rows: Vec<usize> = (0..limbs).collect();
    let factors = View { buffer: &whole, batch: columns[0].batch, batch_stride: limbs, rows: &rows };
    backend.inner_product(primes, factors, columns, out, accumulate)
}

fn transform_digits<B: Backend>(backend: &B, primes: &[usize], gadget: GadgetDigits<'_, B>) -> Done {
    let GadgetDigits { mut digits, limbs, input } = gadget;
    for (j, state) in limbs.iter().enumerate() {
        let pending: Vec<usize> = (0..primes.len()).filter(|&r| state[r] == DigitLimb::Coefficients).collect();
        let rows: Vec<usize> = pending.iter().map(|&r| digits.row(j, r)).collect();
        let of: Vec<usize> = pending.iter().map(|&r| primes[r]).collect();
        backend.ntt_forward(&of, ViewMut::new(digits.buffer, &rows))?;
        for (r, limb) in state.iter().enumerate() {
            if let (DigitLimb::Input(row), Some(buffer)) = (limb, input) {
                let (src, dst) = ([*row], [digits.row(j, r)]);
                backend.copy(View::new(buffer, &src), ViewMut::new(digits.reborrow().buffer, &dst))?;
            }
        }
    }
    Ok(())
}

/// Runs `then` on both columns of a gadget product in slots.
fn with_product<B: Backend>(
    backend: &B,
    primes: &[usize],
    (gadget, keys): (GadgetDigits<'_, B>, [View<'_, B>; 2]),
    then: impl FnOnce([View<'_, B>; 2]) -> Done,
) -> Done {
    let limbs = primes.len();
    let mut product = backend.alloc(2 * limbs)?;
    let rows: Vec<usize> = (0..2 * limbs).collect();
    let out = ViewMut { buffer: &mut product, batch: 2, batch_stride: limbs, rows: &rows[..limbs] };
    backend.stage(primes, Stage::GadgetProduct { gadget, keys, out, accumulate: false })?;
    let (first, second) = rows.split_at(limbs);
    then([View::new(&product, first), View::new(&product, second)])
}

/// So many rows of slots from the words that stand for them, by way of the host.
fn unpacked<B: Backend>(backend: &B, packed: &B::Buffer, count: usize) -> Result<B::Buffer, BackendError> {
    let n = backend.ring().n();
    let (mut words, mut row) = (vec![0; n], vec![0; n]);
    let (each, mut whole) = (repeated::words(n), backend.alloc(count)?);
    for at in 0..count {
        let (of, first) = (at * each / n, at * each % n);
        if first == 0 {
            backend.download(packed, of, &mut words)?;
        }
        repeated::unpack(&words[first..first + each], &mut row);
        backend.upload(&row, &mut whole, at)?;
    }
    Ok(whole)
}

fn tensor<B: Backend>(
    backend: &B,
    primes: &[usize],
    [a, b]: [[View<'_, B>; 2]; 2],
    out: [ViewMut<'_, B>; 3],
    mode: TensorMode,
) -> Done {
    let limbs = primes.len();
    let rows: [Vec<usize>; 4] = std::array::from_fn(|i| (i * limbs..(i + 1) * limbs).collect());
    let mut slots = backend.alloc(if mode.slots { 0 } else { 4 * limbs })?;
    if !mode.slots {
        for (operand, rows) in a.into_iter().chain(b).zip(&rows) {
            backend.copy(operand, ViewMut::new(&mut slots, rows))?;
            backend.ntt_forward(primes, ViewMut::new(&mut slots, rows))?;
        }
    }
    let made = rows.each_ref().map(|rows| View::new(&slots, rows));
    let [a0, a1, b0, b1] = if mode.slots { [a[0], a[1], b[0], b[1]] } else { made };
    let terms = [vec![(a0, b0)], vec![(a0, b1), (a1, b0)], vec![(a1, b1)]];
    for ((mut out, pairs), finish) in out.into_iter().zip(terms).zip(mode.finish) {
        for (i, (x, y)) in pairs.into_iter().enumerate() {
            if mode.accumulate || i > 0 {
                backend.mul_acc(primes, x, y, out.reborrow())?;
            } else {
                backend.mul_into(primes, x, y, out.reborrow())?;
            }
        }
        if finish {
            backend.ntt_inverse(primes, out)?;
        }
    }
    Ok(())
}
