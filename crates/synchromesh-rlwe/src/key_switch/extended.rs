//! The way out of an extended ring: results of R_E, centred, modulo the primes of each digit of the key, and the rest
//! of the mod-down on coefficients.

use synchromesh_ring::backend::{Converted, Stage};
use synchromesh_ring::{Backend, Coeff, ConvertMode, IndexSet, Ntt, Poly, View, ViewMut};

use super::{Accumulator, Switcher, ring};
use crate::context::Context;
use crate::domain::{MixedPoly, Operand};
use crate::error::Error;
use crate::params::Params;
use crate::switch_plan::{ExtendedRing, Folding, SwitchPlan};

/// One digit of the key that has active primes: their limbs in QP, and the exact conversion from E to them.
struct Group<B: Backend> {
    rows: Vec<usize>,
    conversion: B::Conversion,
}

/// The conversions from E to the active primes of QP.
pub(super) struct WayOut<B: Backend> {
    groups: Vec<Group<B>>,
    /// Inner products that R_E holds the sum of.
    pub(super) capacity: u64,
}

impl<B: Backend> WayOut<B> {
    /// The way out of `extended` to `qp`, the active primes and P, and which digits of the key it concerns.
    pub(super) fn new(
        context: &Context<B>,
        plan: &SwitchPlan,
        extended: &ExtendedRing,
        active: &IndexSet,
        qp: &IndexSet,
    ) -> Result<(Self, Vec<usize>), Error> {
        let params: &Params = context.params();
        let folded = matches!(plan.folding, Folding::Folded { .. });
        let (mut groups, mut numbers) = (Vec::new(), Vec::new());
        for (number, own) in extended.active_digits(qp) {
            let spec = extended.way_out(params, &own)?;
            let spec = if folded { spec.fold().1 } else { spec };
            let conversion = context.backend().conversion(&extended.aux, &own, &spec).map_err(ring)?;
            groups.push(Group { rows: qp.rows(&own)?, conversion });
            numbers.push(number);
        }
        Ok((Self { groups, capacity: extended.capacity(params, plan, active).max(1) }, numbers))
    }
}

impl<B: Backend> Switcher<B> {
    /// Brings what an accumulator holds in R_E to coefficients modulo QP, added to what was brought there before.
    pub(super) fn settle(
        &self,
        context: &Context<B>,
        way_out: &WayOut<B>,
        accumulator: &mut Accumulator<B>,
    ) -> Result<(), Error> {
        let backend = context.backend();
        let (width, stride) = (self.base.len(), self.base.len() * way_out.groups.len());
        let repeated: Vec<usize> = way_out.groups.iter().flat_map(|_| self.base.iter()).collect();
        let all: Vec<usize> = (0..stride).collect();
        let view = ViewMut { buffer: &mut accumulator.buffer, batch: 2, batch_stride: stride, rows: &all };
        backend.ntt_inverse(&repeated, view).map_err(ring)?;
        let mode = if accumulator.settled.is_some() { ConvertMode::Add } else { ConvertMode::Replace };
        let mut out = match accumulator.settled.take() {
            Some(buffer) => buffer,
            None => backend.alloc(2 * self.extended.len()).map_err(ring)?,
        };
        let rows: Vec<usize> = (0..stride).collect();
        let each = way_out.groups.iter().zip(rows.chunks(width.max(1)));
        let each = each.map(|(group, from)| Converted { conversion: &group.conversion, from, to: &group.rows });
        let src = View { buffer: &accumulator.buffer, batch: 2, batch_stride: stride, rows: &[] };
        let dst = ViewMut { buffer: &mut out, batch: 2, batch_stride: self.extended.len(), rows: &[] };
        backend.stage(&[], Stage::Conversions { each: each.collect(), src, dst, mode }).map_err(ring)?;
        accumulator.settled = Some(out);
        accumulator.products = 0;
        Ok(())
    }

    /// The coefficients of an addend's slots on `primes`.
    fn lower(
        &self,
        context: &Context<B>,
        addend: Option<Operand<'_, B>>,
        primes: &IndexSet,
    ) -> Result<Option<Poly<B, Coeff>>, Error> {
        let Some(slots) = addend.and_then(|a| a.ntt()) else { return Ok(None) };
        let primes = primes.intersection(slots.primes());
        if primes.is_empty() {
            return Ok(None);
        }
        let mut out = Poly::new(context.backend(), &primes)?;
        let (from, to) = (slots.primes().rows(&primes)?, (0..primes.len()).collect::<Vec<_>>());
        let (src, dst) = (View::new(slots.buffer(), &from), ViewMut::new(out.buffer_mut(), &to));
        context.backend().stage(primes.as_slice(), Stage::NttInverseInto { src, dst }).map_err(ring)?;
        Ok(Some(out))
    }

    /// Adds the addends on the primes that leave to both parts, all in coefficients.
    pub(super) fn leave_coefficients(
        &self,
        context: &Context<B>,
        both: &mut B::Buffer,
        addends: &[Option<Operand<'_, B>>; 2],
    ) -> Result<(), Error> {
        let [first, second] = addends.map(|a| self.lower(context, a, &self.down.dropped));
        let lowered = [first?, second?];
        self.add_dropped(context, both, lowered.each_ref().map(|l| l.as_ref().map(|p| (p.buffer(), p.primes()))))?;
        let coefficients = addends.map(|a| a.and_then(|a| a.coeff()).map(|p| (p.buffer(), p.primes())));
        self.add_dropped(context, both, coefficients)
    }

    /// out + both parts + addends, where out and both parts are coefficients: each prime in its output domain.
    pub(super) fn join_lowered(
        &self,
        context: &Context<B>,
        both: &B::Buffer,
        mut out: [Poly<B, Coeff>; 2],
        addends: &[Option<Operand<'_, B>>; 2],
        output: &super::Output,
    ) -> Result<[MixedPoly<B>; 2], Error> {
        let backend = context.backend();
        let coeff_primes = self.target.without(&output.ntt);
        let ntt_primes = self.target.intersection(&output.ntt);
        let to_rows = self.target.rows(&self.down.staying)?;
        // Slots that join after the transforms: those of the addends on primes that leave in slots.
        let mut slots: [Option<Poly<B, Ntt>>; 2] = [None, None];
        let mut direct: [Option<(&B::Buffer, Vec<usize>)>; 2] = [None, None];
        let ntt_rows: Vec<usize> = (0..ntt_primes.len()).collect();
        for (e, (out, addend)) in out.iter_mut().zip(addends).enumerate() {
            let (staying, rows) = (&self.down.staying, self.part_rows(e, &self.down.staying_rows));
            let dst = ViewMut::new(out.buffer_mut(), &to_rows);
            backend.add_assign(staying.as_slice(), dst, View::new(both, &rows)).map_err(ring)?;
            let lowered = self.lower(context, *addend, &coeff_primes)?;
            for c in addend.and_then(|a| a.coeff()).into_iter().chain(lowered.as_ref()) {
                let to = (out.buffer_mut(), 0);
                self.add_addend(context, c.buffer(), c.primes(), &self.target, &self.target, to)?;
            }
            let Some(s) = addend.and_then(|a| a.ntt()) else { continue };
            if self.down.addend_factors.is_none() && ntt_primes.without(s.primes()).is_empty() {
                direct[e] = Some((s.buffer(), s.primes().rows(&ntt_primes)?));
            } else if !ntt_primes.intersection(s.primes()).is_empty() {
                let mut sum = Poly::zero(backend, &ntt_primes)?;
                let to = (sum.buffer_mut(), 0);
                self.add_addend(context, s.buffer(), s.primes(), &ntt_primes, &ntt_primes, to)?;
                slots[e] = Some(sum);
            }
        }
        let ys = [0, 1].map(|e| {
            let summed = slots[e].iter().map(|s| View::new(s.buffer(), &ntt_rows));
            summed.chain(direct[e].iter().map(|(buffer, rows)| View::new(*buffer, rows))).collect()
        });
        self.finish(context, out, (ys, &ntt_primes), [&coeff_primes, &ntt_primes], [false; 2], output.galois)
    }
}
