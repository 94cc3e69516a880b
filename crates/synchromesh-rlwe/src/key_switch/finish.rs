//! The end of a key switch: sums of slots, the automorphism, and the two halves of a mixed polynomial.

use synchromesh_ring::backend::{SlotSum, Stage};
use synchromesh_ring::{Backend, Coeff, IndexSet, Ntt, Poly, View, ViewMut};

use super::{Switcher, ring};
use crate::context::Context;
use crate::domain::MixedPoly;
use crate::error::Error;

impl<B: Backend> Switcher<B> {
    /// out + ys, which are on the primes `summed`, each prime in its output domain, after X -> X^galois. Where `zero`
    /// says so, `out` is not read in slots there.
    pub(super) fn finish(
        &self,
        context: &Context<B>,
        mut out: [Poly<B, Coeff>; 2],
        (ys, summed): ([Vec<View<'_, B>>; 2], &IndexSet),
        [coeff_primes, ntt_primes]: [&IndexSet; 2],
        zero: [bool; 2],
        galois: usize,
    ) -> Result<[MixedPoly<B>; 2], Error> {
        let backend = context.backend();
        let rotated = galois != 1;
        let fresh = if rotated { ntt_primes } else { &IndexSet::empty() };
        let mut slots = [Poly::<B, Ntt>::new(backend, fresh)?, Poly::new(backend, fresh)?];
        let rest = (ntt_primes.without(summed), Default::default(), [false; 2]);
        for (primes, ys, zero) in [(summed.clone(), ys, zero), rest] {
            if primes.is_empty() {
                continue;
            }
            let (out_rows, to_rows) = (self.target.rows(&primes)?, ntt_primes.rows(&primes)?);
            let mut sums = Vec::with_capacity(2);
            for ((out, slots), (ys, zero)) in out.iter_mut().zip(&mut slots).zip(ys.into_iter().zip(zero)) {
                let to = rotated.then(|| ViewMut::new(slots.buffer_mut(), &to_rows));
                let sum = SlotSum { x: ViewMut::new(out.buffer_mut(), &out_rows), ys, out: to };
                if zero {
                    sum_slots(context, &primes, sum, galois)?;
                } else {
                    sums.push(sum);
                }
            }
            backend.stage(primes.as_slice(), Stage::SlotSums { sums, g: galois }).map_err(ring)?;
        }
        let [out0, out1] = out;
        let [slots0, slots1] = slots;
        let finish = |out: Poly<B, Coeff>, slots: Poly<B, Ntt>| {
            if !rotated {
                return split(context, out, coeff_primes, ntt_primes);
            }
            let (from, all) = (self.target.rows(coeff_primes)?, (0..coeff_primes.len()).collect::<Vec<_>>());
            let mut coeff = Poly::new(backend, coeff_primes)?;
            let (src, dst) = (View::new(out.buffer(), &from), ViewMut::new(coeff.buffer_mut(), &all));
            backend.automorphism_coeff(coeff_primes.as_slice(), galois, src, dst).map_err(ring)?;
            Ok(MixedPoly { coeff, ntt: slots })
        };
        Ok([finish(out0, slots0)?, finish(out1, slots1)?])
    }
}

/// The sum of ys, which replaces x, or goes to `out` after X -> X^galois; all in slots.
fn sum_slots<B: Backend>(
    context: &Context<B>,
    primes: &IndexSet,
    sum: SlotSum<'_, B>,
    galois: usize,
) -> Result<(), Error> {
    let (backend, SlotSum { mut x, ys, out }) = (context.backend(), sum);
    let mut ys = ys.into_iter();
    if let Some(first) = ys.next() {
        backend.copy(first, x.reborrow()).map_err(ring)?;
    }
    for y in ys {
        backend.add_assign(primes.as_slice(), x.reborrow(), y).map_err(ring)?;
    }
    match out {
        Some(out) => backend.automorphism_ntt(galois, x.as_view(), out).map_err(ring),
        None => Ok(()),
    }
}

/// Views rows already in their final domains as the two halves of a mixed polynomial.
fn split<B: Backend>(
    context: &Context<B>,
    out: Poly<B, Coeff>,
    coeff: &IndexSet,
    ntt: &IndexSet,
) -> Result<MixedPoly<B>, Error> {
    let backend = context.backend();
    let empty = IndexSet::empty();
    if ntt.is_empty() {
        return Ok(MixedPoly { coeff: out, ntt: Poly::new(backend, &empty)? });
    }
    if coeff.is_empty() {
        return Ok(MixedPoly { coeff: Poly::new(backend, &empty)?, ntt: out.assume_ntt() });
    }
    let slots = out.restrict(backend, ntt)?.assume_ntt();
    Ok(MixedPoly { coeff: out.restrict(backend, coeff)?, ntt: slots })
}
