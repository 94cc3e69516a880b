//! The whole switch in one call: the three stages, or prime by prime where nothing stands between them.
//!
//! Where all primes enter, stay and leave as slots, the limbs of P are finished first - inner product, inverse
//! transform, conversion - and each limb of Q then goes from its digits to the output without a detour: its
//! accumulators are never written. Where all primes leave as coefficients, and addends come so, each limb of the gadget
//! product goes to coefficients where it was made, and one pass adds what there is and permutes it. The operations are
//! those of the stages, and so are the bits.

use synchromesh_ring::backend::{GadgetDigits, SlotSum, Stage};
use synchromesh_ring::{Backend, BackendError, Coeff, ConvertMode, Domain, IndexSet, Ntt, Poly, View, ViewMut};

use super::{Decomposed, Output, Switcher, ring};
use crate::context::Context;
use crate::domain::{MixedPoly, Operand, SwitchDomain};
use crate::error::Error;
use crate::prepared_key::PreparedKey;

impl<B: Backend> Switcher<B> {
    /// The whole switch: decompose, inner product with `key`, mod down with addends, X -> X^galois.
    ///
    /// # Errors
    /// As the three stages.
    pub fn switch<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        input: &Poly<B, D>,
        key: &PreparedKey<B>,
        addends: [Option<&Poly<B, D>>; 2],
        galois: usize,
    ) -> Result<[Poly<B, D>; 2], Error> {
        let output = Output { ntt: D::ntt_primes(&self.target), galois };
        let addends = addends.map(|a| a.map(D::operand));
        Ok(self.switch_mixed(context, D::operand(input), key, addends, &output)?.map(D::take))
    }

    /// As [`Self::switch`], with any prime of the input, the addends and the output in either domain.
    ///
    /// # Errors
    /// As the three stages.
    pub fn switch_mixed(
        &self,
        context: &Context<B>,
        input: Operand<'_, B>,
        key: &PreparedKey<B>,
        addends: [Option<Operand<'_, B>>; 2],
        output: &Output,
    ) -> Result<[MixedPoly<B>; 2], Error> {
        let digits = self.decompose(context, input)?;
        if self.target.without(&output.ntt).is_empty()
            && let Some(addends) = self.direct(&addends, Operand::ntt)
        {
            return self.prime_by_prime(context, digits, key, addends, output.galois);
        }
        if self.target.intersection(&output.ntt).is_empty()
            && let Some(addends) = self.direct(&addends, Operand::coeff)
        {
            return self.in_coefficients(context, digits, key, addends, output.galois);
        }
        let accumulator = self.gadget_product(context, digits, key, None)?;
        self.mod_down(context, accumulator, addends, output)
    }

    /// The addends in one domain, if the limbs of the target need nothing but their gadget product, the converted rest
    /// and these.
    fn direct<'a, D: Domain>(
        &self,
        addends: &[Option<Operand<'a, B>>; 2],
        domain: impl Fn(&Operand<'a, B>) -> Option<&'a Poly<B, D>>,
    ) -> Option<[Option<&'a Poly<B, D>>; 2]> {
        let of = |a: &Option<Operand<'a, B>>| a.as_ref().and_then(&domain).filter(|p| p.primes() == &self.active);
        let [a, b] = addends.each_ref().map(of);
        let all = a.is_some() == addends[0].is_some() && b.is_some() == addends[1].is_some();
        (self.is_plain() && all).then_some([a, b])
    }

    /// Whether each limb of the target is its gadget product, the converted rest and addends, and nothing else.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let down = &self.down;
        let plain = down.factors.is_none() && down.addend_factors.is_none() && down.conversion.is_some();
        plain && self.way_out.is_none() && self.runs().len() == 1 && self.target == self.active
    }

    /// The gadget product on the primes of P, in coefficients: a buffer, and the rows of each part in it.
    pub(super) fn special_limbs(
        &self,
        context: &Context<B>,
        digits: &mut Decomposed<'_, B>,
        key: &PreparedKey<B>,
    ) -> Result<(B::Buffer, [Vec<usize>; 2]), Error> {
        let (backend, count) = (context.backend(), self.down.leaving.len());
        let mut special = backend.alloc(2 * count).map_err(ring)?;
        let rows = [(0..count).collect(), (count..2 * count).collect::<Vec<usize>>()];
        let out = ViewMut { buffer: &mut special, batch: 2, batch_stride: count, rows: &rows[0] };
        self.gadget_on(digits, key, &self.down.leaving_rows, |primes, gadget, keys| {
            backend.stage(primes, Stage::GadgetProductCoeff { gadget, keys, out })
        })?;
        Ok((special, rows))
    }

    fn prime_by_prime(
        &self,
        context: &Context<B>,
        mut digits: Decomposed<'_, B>,
        key: &PreparedKey<B>,
        addends: [Option<&Poly<B, Ntt>>; 2],
        galois: usize,
    ) -> Result<[MixedPoly<B>; 2], Error> {
        let backend = context.backend();
        let (special, rows) = self.special_limbs(context, &mut digits, key)?;
        let all: Vec<usize> = (0..self.target.len()).collect();
        let mut rest = self.converted(context, &special, &rows)?;
        let rotated = galois != 1;
        let fresh = if rotated { self.target.clone() } else { IndexSet::empty() };
        let mut slots = [Poly::<B, Ntt>::new(backend, &fresh)?, Poly::new(backend, &fresh)?];
        let mut sums = Vec::with_capacity(2);
        for ((rest, slots), addend) in rest.iter_mut().zip(&mut slots).zip(addends) {
            let ys = addend.iter().map(|a| View::new(a.buffer(), &all)).collect();
            let out = rotated.then(|| ViewMut::new(slots.buffer_mut(), &all));
            sums.push(SlotSum { x: ViewMut::new(rest.buffer_mut(), &all), ys, out });
        }
        self.gadget_on(&mut digits, key, &self.down.staying_rows, |primes, gadget, keys| {
            backend.stage(primes, Stage::GadgetSums { gadget, keys, sums, g: galois })
        })?;
        let [a, b] = if rotated { slots } else { rest.map(Poly::assume_ntt) };
        let empty = || Poly::new(backend, &IndexSet::empty());
        Ok([MixedPoly { coeff: empty()?, ntt: a }, MixedPoly { coeff: empty()?, ntt: b }])
    }

    /// What the leaving limbs of both parts contribute to the target, by their rows in a buffer of coefficients.
    fn converted(
        &self,
        context: &Context<B>,
        special: &B::Buffer,
        rows: &[Vec<usize>; 2],
    ) -> Result<[Poly<B, Coeff>; 2], Error> {
        let backend = context.backend();
        let all: Vec<usize> = (0..self.target.len()).collect();
        let mut rest = [Poly::<B, Coeff>::new(backend, &self.target)?, Poly::new(backend, &self.target)?];
        for (rest, rows) in rest.iter_mut().zip(rows) {
            let Some(conversion) = &self.down.conversion else { continue };
            let (src, dst) = (View::new(special, rows), ViewMut::new(rest.buffer_mut(), &all));
            backend.convert(conversion, src, dst, ConvertMode::Replace).map_err(ring)?;
        }
        Ok(rest)
    }

    fn in_coefficients(
        &self,
        context: &Context<B>,
        mut digits: Decomposed<'_, B>,
        key: &PreparedKey<B>,
        addends: [Option<&Poly<B, Coeff>>; 2],
        galois: usize,
    ) -> Result<[MixedPoly<B>; 2], Error> {
        let (backend, width) = (context.backend(), self.extended.len());
        let mut both = backend.alloc(2 * width).map_err(ring)?;
        let rows: Vec<usize> = (0..width).collect();
        let out = ViewMut { buffer: &mut both, batch: 2, batch_stride: width, rows: &rows };
        self.gadget_on(&mut digits, key, &rows, |primes, gadget, keys| {
            backend.stage(primes, Stage::GadgetProductCoeff { gadget, keys, out })
        })?;
        let leaving = [0, 1].map(|e| self.part_rows(e, &self.down.leaving_rows));
        let rest = self.converted(context, &both, &leaving)?;
        let staying = [0, 1].map(|e| self.part_rows(e, &self.down.staying_rows));
        let all: Vec<usize> = (0..self.target.len()).collect();
        let mut parts = [Poly::<B, Coeff>::new(backend, &self.target)?, Poly::new(backend, &self.target)?];
        for (e, part) in parts.iter_mut().enumerate() {
            let mut xs = vec![View::new(rest[e].buffer(), &all), View::new(&both, &staying[e])];
            xs.extend(addends[e].map(|a| View::new(a.buffer(), &all)));
            let sum = Stage::SumInto { xs, scalars: None, g: galois, out: ViewMut::new(part.buffer_mut(), &all) };
            backend.stage(self.target.as_slice(), sum).map_err(ring)?;
        }
        let [a, b] = parts;
        let empty = || Poly::new(backend, &IndexSet::empty());
        Ok([MixedPoly { coeff: a, ntt: empty()? }, MixedPoly { coeff: b, ntt: empty()? }])
    }

    /// Runs `product` on some limbs of the digits and of the key.
    pub(super) fn gadget_on(
        &self,
        digits: &mut Decomposed<'_, B>,
        key: &PreparedKey<B>,
        rows: &[usize],
        product: impl FnOnce(&[usize], GadgetDigits<'_, B>, [View<'_, B>; 2]) -> Result<(), BackendError>,
    ) -> Result<(), Error> {
        let of = |limb: &usize| self.extended.as_slice()[*limb];
        let primes: Vec<usize> = rows.iter().map(of).collect();
        let limbs: Vec<_> = digits.limbs.iter().map(|state| rows.iter().map(|&r| state[r]).collect()).collect();
        let (batch, batch_stride) = (self.digits.len(), key.primes().len());
        let limbs_in_key = key.rows(&self.extended, self.digits.first().map_or(0, |digit| digit.index), batch)?;
        let key_rows: Vec<usize> = rows.iter().map(|&r| limbs_in_key[r]).collect();
        let keys = key.columns().each_ref().map(|buffer| View { buffer, batch, batch_stride, rows: &key_rows });
        let gadget = GadgetDigits {
            digits: self.digit_view(&mut digits.buffer, rows, batch),
            limbs: &limbs,
            input: digits.input,
        };
        product(&primes, gadget, keys).map_err(ring)
    }
}
