//! A backend around others: its operands as those of the one inside.

use super::{
    Addend, Backend, BackendError, Converted, Factors, GadgetDigits, ProductSum, SlotSum, Stage, View, ViewMut,
};

/// A backend whose buffers hold those of another, to which it hands work on.
pub trait Around<I: Backend>: Backend {
    /// The buffer inside.
    ///
    /// # Errors
    /// [`BackendError::OtherDevice`] for a buffer of another backend that this one stands around.
    fn buffer(outer: &Self::Buffer) -> Result<&I::Buffer, BackendError>;

    /// The buffer inside, to write.
    ///
    /// # Errors
    /// As [`Self::buffer`].
    fn buffer_mut(outer: &mut Self::Buffer) -> Result<&mut I::Buffer, BackendError>;

    /// The prepared base conversion inside.
    ///
    /// # Errors
    /// As [`Self::buffer`].
    fn prepared(outer: &Self::Conversion) -> Result<&I::Conversion, BackendError>;
}

impl<'a, B: Backend> View<'a, B> {
    /// The same rows of the buffer inside.
    ///
    /// # Errors
    /// As [`Around::buffer`].
    pub fn inside<I: Backend>(self) -> Result<View<'a, I>, BackendError>
    where
        B: Around<I>,
    {
        let Self { buffer, batch, batch_stride, rows } = self;
        Ok(View { buffer: B::buffer(buffer)?, batch, batch_stride, rows })
    }
}

impl<'a, B: Backend> ViewMut<'a, B> {
    /// The same rows of the buffer inside.
    ///
    /// # Errors
    /// As [`Around::buffer`].
    pub fn inside<I: Backend>(self) -> Result<ViewMut<'a, I>, BackendError>
    where
        B: Around<I>,
    {
        let Self { buffer, batch, batch_stride, rows } = self;
        Ok(ViewMut { buffer: B::buffer_mut(buffer)?, batch, batch_stride, rows })
    }
}

fn all<'a, B: Around<I>, I: Backend>(views: Vec<View<'a, B>>) -> Result<Vec<View<'a, I>>, BackendError> {
    views.into_iter().map(View::inside).collect()
}

fn both<'a, B: Around<I>, I: Backend>([x, y]: [View<'a, B>; 2]) -> Result<[View<'a, I>; 2], BackendError> {
    Ok([x.inside()?, y.inside()?])
}

fn gadget<'a, B: Around<I>, I: Backend>(digits: GadgetDigits<'a, B>) -> Result<GadgetDigits<'a, I>, BackendError> {
    let GadgetDigits { digits, limbs, input } = digits;
    Ok(GadgetDigits { digits: digits.inside()?, limbs, input: input.map(B::buffer).transpose()? })
}

fn summed<'a, B: Around<I>, I: Backend>(sums: Vec<SlotSum<'a, B>>) -> Result<Vec<SlotSum<'a, I>>, BackendError> {
    let one = |SlotSum { x, ys, out }: SlotSum<'a, B>| {
        Ok(SlotSum { x: x.inside()?, ys: all(ys)?, out: out.map(ViewMut::inside).transpose()? })
    };
    sums.into_iter().map(one).collect()
}

fn product<'a, B: Around<I>, I: Backend>(sum: ProductSum<'a, B>) -> Result<ProductSum<'a, I>, BackendError> {
    let ProductSum { factors, columns, out, accumulate } = sum;
    let factors = match factors {
        Factors::Whole(factors) => Factors::Whole(factors.inside()?),
        Factors::Repeated(packed) => Factors::Repeated(B::buffer(packed)?),
    };
    Ok(ProductSum { factors, columns: both(columns)?, out: out.inside()?, accumulate })
}

fn converted<'a, B: Around<I>, I: Backend>(one: Converted<'a, B>) -> Result<Converted<'a, I>, BackendError> {
    let Converted { conversion, from, to } = one;
    Ok(Converted { conversion: B::prepared(conversion)?, from, to })
}

impl<'a, B: Backend> Stage<'a, B> {
    /// The same stage on the buffers inside.
    ///
    /// # Errors
    /// As [`Around::buffer`].
    pub fn inside<I: Backend>(self) -> Result<Stage<'a, I>, BackendError>
    where
        B: Around<I>,
    {
        Ok(match self {
            Self::TransformDigits(digits) => Stage::TransformDigits(gadget(digits)?),
            Self::GadgetProduct { gadget: digits, keys, out, accumulate } => {
                let (gadget, keys) = (gadget(digits)?, both(keys)?);
                Stage::GadgetProduct { gadget, keys, out: out.inside()?, accumulate }
            }
            Self::GadgetProductCoeff { gadget: digits, keys, out } => {
                Stage::GadgetProductCoeff { gadget: gadget(digits)?, keys: both(keys)?, out: out.inside()? }
            }
            Self::GadgetProductOnto { gadget: digits, keys, x: [x0, x1] } => {
                let (gadget, keys) = (gadget(digits)?, both(keys)?);
                Stage::GadgetProductOnto { gadget, keys, x: [x0.inside()?, x1.inside()?] }
            }
            Self::GadgetSums { gadget: digits, keys, sums, g } => {
                Stage::GadgetSums { gadget: gadget(digits)?, keys: both(keys)?, sums: summed(sums)?, g }
            }
            Self::SlotSums { sums, g } => Stage::SlotSums { sums: summed(sums)?, g },
            Self::SumInto { xs, scalars, g, out } => Stage::SumInto { xs: all(xs)?, scalars, g, out: out.inside()? },
            Self::RotatedProduct { gadget: digits, keys, addend: Addend { x, limbs, scalars }, g, out } => {
                let (gadget, keys) = (gadget(digits)?, both(keys)?);
                let addend = Addend { x: x.inside()?, limbs, scalars };
                Stage::RotatedProduct { gadget, keys, addend, g, out: out.inside()? }
            }
            Self::Conversions { each, src, dst, mode } => {
                let each = each.into_iter().map(converted).collect::<Result<_, _>>()?;
                Stage::Conversions { each, src: src.inside()?, dst: dst.inside()?, mode }
            }
            Self::ProductSums { sums } => {
                Stage::ProductSums { sums: sums.into_iter().map(product).collect::<Result<_, _>>()? }
            }
            Self::NttInverseInto { src, dst } => Stage::NttInverseInto { src: src.inside()?, dst: dst.inside()? },
            Self::Tensor { a, b, out: [x, y, z], mode } => {
                let out = [x.inside()?, y.inside()?, z.inside()?];
                Stage::Tensor { a: both(a)?, b: both(b)?, out, mode }
            }
        })
    }
}
