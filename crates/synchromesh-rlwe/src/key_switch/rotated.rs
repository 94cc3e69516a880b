//! Accumulators as operands: ciphertexts, rotations and sums modulo QP, before any division by P.
//!
//! An accumulator holds each limb times the constant that the plan folds into its keys, so that a polynomial modulo Q
//! enters as P times itself times that constant, and as nothing on the special primes.

use synchromesh_ring::backend::{Addend, DigitLimb, Factors, GadgetDigits, ProductSum, Stage};
use synchromesh_ring::{Backend, Coeff, ConvertMode, IndexSet, Ntt, Poly, View, ViewMut};

use super::{Accumulator, Decomposed, Hoisted, Switcher, ring};
use crate::context::Context;
use crate::error::Error;
use crate::prepared_key::PreparedKey;

/// One sum of [`Switcher::multiply_sums`].
pub struct RowSum<'a, B: Backend> {
    /// The f_i, polynomials over the extended base one after another.
    pub factors: &'a B::Buffer,
    /// Whether these are the words that stand for slots which repeat ([`Factors::Repeated`]).
    pub repeats: bool,
    /// The number of a_0.
    pub first: usize,
    /// Terms.
    pub count: usize,
    /// What it is added to.
    pub into: Option<Accumulator<B>>,
}

/// Several accumulators in one buffer, \[part\]\[accumulator\]\[limb\]\[N\].
pub struct Accumulators<B: Backend> {
    buffer: B::Buffer,
    count: usize,
}

/// Digits of one input.
pub enum Digits<'a, 'b, B: Backend> {
    /// For other products too.
    Hoisted(&'b mut Hoisted<B>),
    /// For this product, which uses them up.
    Once(Decomposed<'a, B>),
}

/// What is added to part 0 of a product.
#[derive(Clone, Copy)]
pub enum Plus<'a, B: Backend> {
    /// A polynomial on the active primes, so that it divides down to itself.
    Lifted(&'a Poly<B, Ntt>),
    /// Part 0 of another accumulator.
    Part0(&'a Accumulator<B>),
}

impl<B: Backend> Switcher<B> {
    /// The primes of accumulators: those of the input and P.
    #[must_use]
    pub const fn extended(&self) -> &IndexSet {
        &self.extended
    }

    /// Slots modulo QP as an accumulator: nothing of it is in an extended ring.
    fn summed(&self, buffer: B::Buffer) -> Accumulator<B> {
        Accumulator { buffer, products: u64::from(self.way_out.is_none()), settled: None }
    }

    /// The accumulator in slots modulo QP, where the functions below take it; from an extended ring it is brought there.
    ///
    /// # Errors
    /// When the device fails.
    pub fn in_base(&self, context: &Context<B>, mut accumulator: Accumulator<B>) -> Result<Accumulator<B>, Error> {
        let Some(way_out) = &self.way_out else { return Ok(accumulator) };
        if accumulator.products > 0 {
            self.settle(context, way_out, &mut accumulator)?;
        }
        let Some(mut buffer) = accumulator.settled.take() else { return Ok(accumulator) };
        let rows: Vec<usize> = (0..self.extended.len()).collect();
        let both = ViewMut { buffer: &mut buffer, batch: 2, batch_stride: self.extended.len(), rows: &rows };
        context.backend().ntt_forward(self.extended.as_slice(), both).map_err(ring)?;
        Ok(self.summed(buffer))
    }

    /// The accumulator that divides down to 0.
    ///
    /// # Errors
    /// When the device fails.
    pub fn zero(&self, context: &Context<B>) -> Result<Accumulator<B>, Error> {
        let mut buffer = context.backend().alloc(2 * self.extended.len()).map_err(ring)?;
        zeroize::Zeroize::zeroize(&mut buffer);
        Ok(self.summed(buffer))
    }

    /// Adds a polynomial on the active primes to part e, so that it divides down to itself.
    ///
    /// # Errors
    /// [`Error::Ring`] when it is on other primes, or the device fails.
    pub fn add_lifted(
        &self,
        context: &Context<B>,
        into: &mut Accumulator<B>,
        e: usize,
        x: &Poly<B, Ntt>,
    ) -> Result<(), Error> {
        x.require(&self.active)?;
        let from: Vec<usize> = (0..self.active.len()).collect();
        let to = self.part_rows(e, &self.extended.rows(&self.active)?);
        let (src, dst) = (View::new(x.buffer(), &from), ViewMut::new(&mut into.buffer, &to));
        context.backend().mul_scalar_acc(self.active.as_slice(), src, &self.down.lift, dst).map_err(ring)
    }

    /// into += part e of x, or both parts where none is named.
    ///
    /// # Errors
    /// When the device fails.
    pub fn add(
        &self,
        context: &Context<B>,
        into: &mut Accumulator<B>,
        x: &Accumulator<B>,
        e: Option<usize>,
    ) -> Result<(), Error> {
        let all: Vec<usize> = (0..self.extended.len()).collect();
        for e in e.map_or(0..2, |e| e..e + 1) {
            self.add_part(context, into, e, &x.buffer, &self.part_rows(e, &all))?;
        }
        Ok(())
    }

    /// into += number `at` of `from`.
    ///
    /// # Errors
    /// When the device fails.
    pub fn add_one(
        &self,
        context: &Context<B>,
        into: &mut Accumulator<B>,
        from: &Accumulators<B>,
        at: usize,
    ) -> Result<(), Error> {
        (0..2).try_for_each(|e| self.add_part(context, into, e, &from.buffer, &self.rows_of(from, e, at)))
    }

    /// The rows of part e of number `at`.
    fn rows_of(&self, of: &Accumulators<B>, e: usize, at: usize) -> Vec<usize> {
        let (width, first) = (self.extended.len(), e * of.count + at);
        (first * width..(first + 1) * width).collect()
    }

    /// Room for so many accumulators.
    ///
    /// # Errors
    /// When the device fails.
    pub fn accumulators(&self, context: &Context<B>, count: usize) -> Result<Accumulators<B>, Error> {
        let buffer = context.backend().alloc(2 * count * self.extended.len()).map_err(ring)?;
        Ok(Accumulators { buffer, count })
    }

    fn add_part(
        &self,
        context: &Context<B>,
        into: &mut Accumulator<B>,
        e: usize,
        from: &B::Buffer,
        rows: &[usize],
    ) -> Result<(), Error> {
        let all: Vec<usize> = (0..self.extended.len()).collect();
        let to = self.part_rows(e, &all);
        let dst = ViewMut::new(&mut into.buffer, &to);
        context.backend().add_assign(self.extended.as_slice(), dst, View::new(from, rows)).map_err(ring)
    }

    /// Writes x(X^g) as number `at` of `into`.
    ///
    /// # Errors
    /// When the device fails.
    pub fn rotate_into(
        &self,
        context: &Context<B>,
        x: &Accumulator<B>,
        g: usize,
        into: &mut Accumulators<B>,
        at: usize,
    ) -> Result<(), Error> {
        let (backend, all) = (context.backend(), (0..self.extended.len()).collect::<Vec<_>>());
        for e in 0..2 {
            let (from, to) = (self.part_rows(e, &all), self.rows_of(into, e, at));
            let (src, dst) = (View::new(&x.buffer, &from), ViewMut::new(&mut into.buffer, &to));
            if g == 1 { backend.copy(src, dst) } else { backend.automorphism_ntt(g, src, dst) }.map_err(ring)?;
        }
        Ok(())
    }

    /// Writes (the gadget product of the digits with `key`, and an addend in part 0)(X^g) as number `at` of `into`.
    ///
    /// # Errors
    /// As [`Self::gadget_product`] and [`Self::add_lifted`].
    pub fn rotated_product(
        &self,
        context: &Context<B>,
        (digits, key): (Digits<'_, '_, B>, &PreparedKey<B>),
        plus: Plus<'_, B>,
        g: usize,
        into: &mut Accumulators<B>,
        at: usize,
    ) -> Result<(), Error> {
        let ([group], 1, None) = (self.groups.as_slice(), self.runs().len(), &self.way_out) else {
            let product = match digits {
                Digits::Hoisted(digits) => self.inner_product(context, digits, key, None)?,
                Digits::Once(digits) => self.gadget_product(context, digits, key, None)?,
            };
            let mut own = self.in_base(context, product)?;
            match plus {
                Plus::Lifted(c0) => self.add_lifted(context, &mut own, 0, c0)?,
                Plus::Part0(sum) => self.add(context, &mut own, sum, Some(0))?,
            }
            return self.rotate_into(context, &own, g, into, at);
        };
        self.require_groups(key)?;
        let (width, batch) = (self.extended.len(), self.digits.len());
        let all: Vec<usize> = (0..width).collect();
        let active = self.extended.rows(&self.active)?;
        let addend = match plus {
            Plus::Lifted(c0) => {
                c0.require(&self.active)?;
                let (x, scalars) = (View::new(c0.buffer(), &all[..active.len()]), Some(self.down.lift.as_slice()));
                Addend { x, limbs: &active, scalars }
            }
            Plus::Part0(sum) => Addend { x: View::new(&sum.buffer, &all), limbs: &all, scalars: None },
        };
        let mut owned;
        let (buffer, limbs, input) = match digits {
            Digits::Hoisted(digits) => (&mut digits.buffer, vec![vec![DigitLimb::Slots; width]; batch], None),
            Digits::Once(digits) => {
                owned = digits.buffer;
                (&mut owned, digits.limbs, digits.input)
            }
        };
        let gadget = GadgetDigits { digits: self.digit_view(buffer, &all, batch), limbs: &limbs, input };
        let first = self.digits.first().map_or(0, |digit| digit.index);
        let limbs_of_key = key.rows(&self.base, first, batch)?;
        let key_rows: Vec<usize> = limbs_of_key.iter().map(|row| row + group * key.primes().len()).collect();
        let batch_stride = key.primes().len() * key.groups();
        let keys = key.columns().each_ref().map(|buffer| View { buffer, batch, batch_stride, rows: &key_rows });
        let rows = self.rows_of(into, 0, at);
        let out = ViewMut { buffer: &mut into.buffer, batch: 2, batch_stride: into.count * width, rows: &rows };
        let stage = Stage::RotatedProduct { gadget, keys, addend, g, out };
        context.backend().stage(self.extended.as_slice(), stage).map_err(ring)
    }

    /// As [`Self::rotated_product`], as an accumulator.
    ///
    /// # Errors
    /// As [`Self::rotated_product`].
    pub fn rotated_accumulator(
        &self,
        context: &Context<B>,
        product: (Digits<'_, '_, B>, &PreparedKey<B>),
        plus: Plus<'_, B>,
        g: usize,
    ) -> Result<Accumulator<B>, Error> {
        let mut one = self.accumulators(context, 1)?;
        self.rotated_product(context, product, plus, g, &mut one, 0)?;
        Ok(self.summed(one.buffer))
    }

    /// For each of `sums` sum_i f_i a_i, added to its accumulator or as a new one: the a_i are numbers `first` and following of
    /// `from`. Sums of the same a_i read these once.
    ///
    /// # Errors
    /// When the device fails.
    pub fn multiply_sums(
        &self,
        context: &Context<B>,
        from: &Accumulators<B>,
        sums: Vec<RowSum<'_, B>>,
    ) -> Result<Vec<Accumulator<B>>, Error> {
        let (backend, width) = (context.backend(), self.extended.len());
        let rows: Vec<usize> = (0..width).collect();
        let mut outs = Vec::with_capacity(sums.len());
        let mut columns = Vec::with_capacity(sums.len());
        let mut kinds = Vec::with_capacity(sums.len());
        for RowSum { factors, repeats, first, count, into } in sums {
            let accumulate = into.is_some();
            outs.push(match into {
                Some(accumulator) => accumulator,
                None => self.summed(backend.alloc(2 * width).map_err(ring)?),
            });
            columns.push([0, 1].map(|e| self.rows_of(from, e, first)));
            kinds.push((factors, repeats, count, accumulate));
        }
        let sum = |((accumulator, columns), (factors, repeats, batch, accumulate))| {
            let accumulator: &mut Accumulator<B> = accumulator;
            let columns: &[Vec<usize>; 2] = columns;
            let factors = match repeats {
                true => Factors::Repeated(factors),
                false => Factors::Whole(View { buffer: factors, batch, batch_stride: width, rows: &rows }),
            };
            let buffer = &from.buffer;
            let columns = columns.each_ref().map(|rows| View { buffer, batch, batch_stride: width, rows });
            let out = ViewMut { buffer: &mut accumulator.buffer, batch: 2, batch_stride: width, rows: &rows };
            ProductSum { factors, columns, out, accumulate }
        };
        let sums = outs.iter_mut().zip(&columns).zip(kinds).map(sum).collect();
        backend.stage(self.extended.as_slice(), Stage::ProductSums { sums }).map_err(ring)?;
        Ok(outs)
    }

    /// One part divided by P, in coefficients on the active primes; that part is used up.
    ///
    /// # Errors
    /// [`Error::Argument`] for a switch that drops ciphertext primes, or when the device fails.
    pub fn mod_down_part(
        &self,
        context: &Context<B>,
        accumulator: &mut Accumulator<B>,
        e: usize,
    ) -> Result<Poly<B, Coeff>, Error> {
        if self.active != self.target {
            return Err(Error::argument("one part alone is divided by P only, not by ciphertext primes"));
        }
        let backend = context.backend();
        let mut out = Poly::<B, Coeff>::zero(backend, &self.target)?;
        let all: Vec<usize> = (0..self.target.len()).collect();
        let both = &mut accumulator.buffer;
        if let Some(conversion) = &self.down.conversion {
            let rows = self.part_rows(e, &self.down.leaving_rows);
            backend.ntt_inverse(self.down.leaving.as_slice(), ViewMut::new(both, &rows)).map_err(ring)?;
            let (src, dst) = (View::new(both, &rows), ViewMut::new(out.buffer_mut(), &all));
            backend.convert(conversion, src, dst, ConvertMode::Replace).map_err(ring)?;
        }
        let rows = self.part_rows(e, &self.down.staying_rows);
        if let Some(factors) = &self.down.factors {
            backend.mul_scalar_assign(self.target.as_slice(), ViewMut::new(both, &rows), factors).map_err(ring)?;
        }
        backend.ntt_inverse(self.target.as_slice(), ViewMut::new(both, &rows)).map_err(ring)?;
        let dst = ViewMut::new(out.buffer_mut(), &all);
        backend.add_assign(self.target.as_slice(), dst, View::new(both, &rows)).map_err(ring)?;
        Ok(out)
    }
}
