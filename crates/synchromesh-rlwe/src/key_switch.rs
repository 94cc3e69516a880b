//! Key switching: decompose, inner product, mod down - three stages compiled for one plan, one set of primes and one
//! target.
//!
//! Every method of the literature is a choice on the axes of [`SwitchPlan`]; the stages never ask which one it is.
//! Hoisting is "decompose once, many inner products"; lazy key switching is "many inner products, one mod down";
//! merging with a following modulus switch is a smaller target. Inputs and outputs may be coefficients, slots, or
//! mixed prime by prime, each at the same number of transforms (ePrint 2023/1642, sections 3.1 and 6.1).

mod compiled;
mod digit;
mod extended;
mod finish;
mod onto;
mod rotated;
mod runs;
mod weighted;
mod whole;

pub use self::rotated::{Accumulators, Digits, Plus, RowSum};

use std::ops::Range;

use synchromesh_ring::backend::{Converted, DigitLimb, GadgetDigits, Stage};
use synchromesh_ring::scale::ScaleSpec;
use synchromesh_ring::{Backend, Coeff, ConvertMode, Error as RingError, IndexSet, Ntt, Poly, View, ViewMut};

use crate::context::Context;
use crate::domain::{MixedPoly, Operand};
use crate::error::Error;
use crate::noise::{DigitSize, Noise};
use crate::params::Params;
use crate::prepared_key::PreparedKey;
use crate::switch_plan::{ProductRing, SwitchPlan};
use digit::{Digit, Fill};
use extended::WayOut;

/// The mod-down: what is multiplied where, beyond what the key has folded in.
struct ModDown<B: Backend> {
    leaving: IndexSet,
    leaving_rows: Vec<usize>,
    /// Target primes that were active before; the others come in.
    staying: IndexSet,
    staying_rows: Vec<usize>,
    conversion: Option<B::Conversion>,
    /// Factor of each staying limb of the accumulator; `None`: all 1.
    factors: Option<Vec<u64>>,
    /// Factor of an addend on each staying limb, (primes coming in) / (primes dropped besides P); `None`: all 1.
    addend_factors: Option<Vec<u64>>,
    /// What a polynomial on each active prime is multiplied by to enter an accumulator.
    lift: Vec<u64>,
    /// Ciphertext primes that leave, and the factor of an addend on them.
    dropped: IndexSet,
    dropped_factors: Vec<u64>,
}

/// A key switch compiled for a plan, the active primes of its input and the primes of its output.
pub struct Switcher<B: Backend> {
    active: IndexSet,
    target: IndexSet,
    /// The active primes and P.
    extended: IndexSet,
    /// Where the inner product is computed: `extended`, or E.
    base: IndexSet,
    digits: Vec<Digit<B>>,
    /// Digits of the key with active primes; 0 alone in R_QP.
    groups: Vec<usize>,
    way_out: Option<WayOut<B>>,
    down: ModDown<B>,
    noise: Noise,
    rotation_noise: Noise,
}

/// A polynomial decomposed into digits over the base: \[digit\]\[limb\]\[N\].
pub struct Decomposed<'a, B: Backend> {
    buffer: B::Buffer,
    /// For each digit, where its limbs are.
    limbs: Vec<Vec<DigitLimb>>,
    /// The input's slots, where digits still are limbs of it.
    input: Option<&'a B::Buffer>,
}

/// Digits all in slots over the base, for any number of inner products.
pub struct Hoisted<B: Backend> {
    buffer: B::Buffer,
}

/// What leaves a key switch: which primes in slots (the others in coefficients), and X -> X^galois at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Primes that leave in slots.
    pub ntt: IndexSet,
    /// Galois element applied last; 1: none.
    pub galois: usize,
}

/// Two polynomials not yet divided by P: \[part\]\[digit of the key\]\[limb\]\[N\] in slots over the base.
pub struct Accumulator<B: Backend> {
    buffer: B::Buffer,
    /// How many inner products it holds.
    products: u64,
    /// In an extended ring: what has left it, as coefficients \[part\]\[limb of QP\]\[N\].
    settled: Option<B::Buffer>,
}

fn ring(error: synchromesh_ring::BackendError) -> Error {
    RingError::from(error).into()
}

/// `values`, unless all of them are 1.
fn unless_ones(values: Vec<u64>) -> Option<Vec<u64>> {
    values.iter().any(|&v| v != 1).then_some(values)
}

impl<B: Backend> Switcher<B> {
    /// Compiles `plan` for an input on `active` and an output on `target`.
    ///
    /// Active primes that the target lacks leave with P; primes that it has besides come in, in the same division
    /// (ePrint 2023/1642, section 3.7).
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] for an empty target or one with special primes, or when an active prime is in no digit, and
    /// [`Error::BorrowedPrimes`] when P has borrowed it; [`Error::Ring`] when the device fails.
    pub fn new(context: &Context<B>, plan: &SwitchPlan, active: &IndexSet, target: &IndexSet) -> Result<Self, Error> {
        let params = context.params();
        plan.require_valid(params)?;
        plan.require_input(params, active)?;
        let special = &plan.special;
        if target.is_empty() || !target.intersection(special).is_empty() {
            let rule = format!("key-switch target {target:?}: one or more primes, none of P {special:?}");
            return Err(Error::switch_plan(rule));
        }
        plan.require_capacity(params, active)?;
        let extended = active.union(&plan.special);
        let (base, groups, way_out) = match &plan.ring {
            ProductRing::Base => (extended.clone(), vec![0], None),
            ProductRing::Extended(ring) => {
                let (way_out, groups) = WayOut::new(context, plan, ring, active, &extended)?;
                (ring.aux.clone(), groups, Some(way_out))
            }
        };
        let rows = plan.rows(params, active);
        let digits = rows.iter().map(|row| Digit::new(context, plan, row, active, &base)).collect::<Result<_, _>>()?;
        let down = ModDown::new(context, plan, active, target, &extended)?;
        let noise = switch_noise(params, plan, active, target, Params::gadget_noise);
        let rotation_noise = switch_noise(params, plan, active, target, Params::rotation_noise);
        let (active, target) = (active.clone(), target.clone());
        Ok(Self { active, target, extended, base, digits, groups, way_out, down, noise, rotation_noise })
    }

    /// The primes of the input.
    #[must_use]
    pub const fn active(&self) -> &IndexSet {
        &self.active
    }

    /// The primes of the output.
    #[must_use]
    pub const fn target(&self) -> &IndexSet {
        &self.target
    }

    /// Number of digits on the active primes, radix digits counted each.
    #[must_use]
    pub fn omega(&self) -> usize {
        self.digits.len()
    }

    /// The error the switch adds, at the target's modulus, rounding of two components included, whatever key it is by.
    #[must_use]
    pub const fn noise(&self) -> Noise {
        self.noise
    }

    /// The same by a key for a rotation.
    #[must_use]
    pub const fn rotation_noise(&self) -> Noise {
        self.rotation_noise
    }

    /// Bytes of temporary memory one switch takes.
    #[must_use]
    pub fn scratch_bytes(&self, n: usize) -> usize {
        let out = if self.way_out.is_some() { 2 * self.extended.len() } else { 0 };
        8 * n * ((self.digits.len() + 2 * self.groups.len()) * self.base.len() + out + self.active.len())
    }

    /// Splits a polynomial into digits and brings each to the whole base; transforms are left pending.
    ///
    /// # Errors
    /// [`Error::Ring`] when the input is not on the active primes, or the device fails.
    pub fn decompose<'a>(&self, context: &Context<B>, input: Operand<'a, B>) -> Result<Decomposed<'a, B>, Error> {
        input.require(&self.active)?;
        let backend = context.backend();
        let width = self.base.len();
        let mut buffer = backend.alloc(self.digits.len() * width).map_err(ring)?;
        let gathered;
        let coefficients = if let Some(poly) = input.coeff().filter(|poly| poly.primes() == &self.active) {
            poly
        } else {
            gathered = self.gather_coefficients(context, input)?;
            &gathered
        };
        let at = |position: usize, rows: &[usize]| rows.iter().map(|r| position * width + r).collect::<Vec<usize>>();
        let rest: Vec<_> = self.digits.iter().enumerate().map(|(i, digit)| at(i, &digit.rest_rows)).collect();
        let (mut conversions, mut kept, mut own_rows) = (Vec::new(), Vec::new(), Vec::new());
        let mut limbs = Vec::with_capacity(self.digits.len());
        for (position, (digit, rest)) in self.digits.iter().zip(&rest).enumerate() {
            let mut state = vec![DigitLimb::Coefficients; width];
            match &digit.fill {
                Fill::Nothing => {}
                Fill::Convert(conversion) => {
                    conversions.push(Converted { conversion, from: &digit.input_rows, to: rest });
                }
                Fill::Radix(from, radix) => {
                    let src = View::new(coefficients.buffer(), &digit.input_rows);
                    let dst = ViewMut::new(&mut buffer, rest);
                    backend.radix_digit(digit.rest.as_slice(), *from, *radix, src, dst).map_err(ring)?;
                }
            }
            for &(row, own) in &digit.kept {
                let prime = self.active.as_slice()[row];
                if let Some(slots) = input.ntt().and_then(|p| p.primes().position(prime)) {
                    state[own] = DigitLimb::Input(slots);
                    continue;
                }
                kept.push(row);
                own_rows.push(position * width + own);
            }
            limbs.push(state);
        }
        if !conversions.is_empty() {
            let (src, dst) = (View::new(coefficients.buffer(), &[]), ViewMut::new(&mut buffer, &[]));
            let all = Stage::Conversions { each: conversions, src, dst, mode: ConvertMode::Replace };
            backend.stage(&[], all).map_err(ring)?;
        }
        if !kept.is_empty() {
            let dst = ViewMut::new(&mut buffer, &own_rows);
            backend.copy(View::new(coefficients.buffer(), &kept), dst).map_err(ring)?;
        }
        Ok(Decomposed { buffer, limbs, input: input.ntt().map(Poly::buffer) })
    }

    /// All active limbs in coefficients.
    fn gather_coefficients(&self, context: &Context<B>, input: Operand<'_, B>) -> Result<Poly<B, Coeff>, Error> {
        let backend = context.backend();
        let mut all = Poly::new(backend, &self.active)?;
        if let Some(coeff) = input.coeff() {
            let (from, to) = ((0..coeff.primes().len()).collect::<Vec<_>>(), self.active.rows(coeff.primes())?);
            backend.copy(View::new(coeff.buffer(), &from), ViewMut::new(all.buffer_mut(), &to)).map_err(ring)?;
        }
        if let Some(slots) = input.ntt() {
            let (from, to) = ((0..slots.primes().len()).collect::<Vec<_>>(), self.active.rows(slots.primes())?);
            let (src, dst) = (View::new(slots.buffer(), &from), ViewMut::new(all.buffer_mut(), &to));
            backend.stage(slots.primes().as_slice(), Stage::NttInverseInto { src, dst }).map_err(ring)?;
        }
        Ok(all)
    }

    /// Brings all digits to slots, so that many inner products can use them (hoisting).
    ///
    /// # Errors
    /// When the device fails.
    pub fn hoist(&self, context: &Context<B>, mut digits: Decomposed<'_, B>) -> Result<Hoisted<B>, Error> {
        let rows: Vec<usize> = (0..self.base.len()).collect();
        let view = self.digit_view(&mut digits.buffer, &rows, self.digits.len());
        let gadget = GadgetDigits { digits: view, limbs: &digits.limbs, input: digits.input };
        context.backend().stage(self.base.as_slice(), Stage::TransformDigits(gadget)).map_err(ring)?;
        Ok(Hoisted { buffer: digits.buffer })
    }

    fn digit_view<'a>(&self, buffer: &'a mut B::Buffer, rows: &'a [usize], batch: usize) -> ViewMut<'a, B> {
        ViewMut { buffer, batch, batch_stride: self.base.len(), rows }
    }

    /// The inner product of the digits with both columns of `key`, added to `into` or as a new accumulator.
    ///
    /// # Errors
    /// [`Error::TrimmedKey`] when the key lacks a prime, [`Error::Ring`] when the device fails.
    pub fn gadget_product(
        &self,
        context: &Context<B>,
        mut digits: Decomposed<'_, B>,
        key: &PreparedKey<B>,
        into: Option<Accumulator<B>>,
    ) -> Result<Accumulator<B>, Error> {
        if self.groups.len() != 1 {
            let digits = self.hoist(context, digits)?;
            return self.inner_product(context, &digits, key, into);
        }
        self.accumulate(context, key, into, |primes, keys, out, (run, rows), accumulate| {
            let view = self.digit_view(&mut digits.buffer, rows, run.len());
            let gadget = GadgetDigits { digits: view, limbs: &digits.limbs[run], input: digits.input };
            context.backend().stage(primes, Stage::GadgetProduct { gadget, keys, out, accumulate })
        })
    }

    /// As [`Self::gadget_product`], with hoisted digits.
    ///
    /// # Errors
    /// [`Error::TrimmedKey`] when the key lacks a prime, [`Error::Ring`] when the device fails.
    pub fn inner_product(
        &self,
        context: &Context<B>,
        digits: &Hoisted<B>,
        key: &PreparedKey<B>,
        into: Option<Accumulator<B>>,
    ) -> Result<Accumulator<B>, Error> {
        let batch_stride = self.base.len();
        self.accumulate(context, key, into, |primes, keys, output, (run, rows), accumulate| {
            let view = View { buffer: &digits.buffer, batch: run.len(), batch_stride, rows };
            context.backend().inner_product(primes, view, keys, output, accumulate)
        })
    }

    /// Runs `product` on each run of digits, the key's rows for them, and an accumulator, `into` or a new one.
    fn accumulate(
        &self,
        context: &Context<B>,
        key: &PreparedKey<B>,
        into: Option<Accumulator<B>>,
        mut product: impl FnMut(
            &[usize],
            [View<'_, B>; 2],
            ViewMut<'_, B>,
            (Range<usize>, &[usize]),
            bool,
        ) -> Result<(), synchromesh_ring::BackendError>,
    ) -> Result<Accumulator<B>, Error> {
        let backend = context.backend();
        let width = self.base.len();
        let mut out = match into {
            Some(accumulator) => accumulator,
            None => {
                let buffer = backend.alloc(2 * self.groups.len() * width).map_err(ring)?;
                Accumulator { buffer, products: 0, settled: None }
            }
        };
        if let Some(way_out) = self.way_out.as_ref().filter(|w| out.products >= w.capacity) {
            self.settle(context, way_out, &mut out)?;
        }
        self.require_groups(key)?;
        let batch_stride = key.primes().len() * key.groups();
        // Limb by limb and for each its digits of the key, so that what they share stays in the caches.
        let pairs = (0..width).flat_map(|r| self.groups.iter().enumerate().map(move |(to, &from)| (r, to, from)));
        let pairs: Vec<(usize, usize, usize)> = pairs.collect();
        let primes: Vec<usize> = pairs.iter().map(|&(r, ..)| self.base.as_slice()[r]).collect();
        let to_rows: Vec<usize> = pairs.iter().map(|&(r, to, _)| to * width + r).collect();
        let stride = self.groups.len() * width;
        let mut accumulate = out.products > 0;
        for run in self.runs() {
            let (first, batch) = (self.digits[run.start].index, run.len());
            let limbs = key.rows(&self.base, first, batch)?;
            let rows: Vec<usize> = pairs.iter().map(|&(r, ..)| run.start * width + r).collect();
            let key_rows: Vec<usize> = pairs.iter().map(|&(r, _, from)| limbs[r] + from * key.primes().len()).collect();
            let keys = key.columns().each_ref().map(|buffer| View { buffer, batch, batch_stride, rows: &key_rows });
            let output = ViewMut { buffer: &mut out.buffer, batch: 2, batch_stride: stride, rows: &to_rows };
            product(&primes, keys, output, (run, &rows), accumulate).map_err(ring)?;
            accumulate = true;
        }
        out.products += 1;
        Ok(out)
    }

    /// Fails unless `key` was prepared in the digits of the key that the plan has.
    fn require_groups(&self, key: &PreparedKey<B>) -> Result<(), Error> {
        if self.groups.last().is_some_and(|&m| m >= key.groups()) {
            return Err(Error::switch_plan(format!(
                "a key prepared in {} digits lacks one of the plan's",
                key.groups()
            )));
        }
        Ok(())
    }

    /// Divides both parts by P and the dropped primes, adds the addends, and leaves each prime in its output domain,
    /// after the automorphism.
    ///
    /// # Errors
    /// [`Error::Ring`] when an addend is not on the active primes, or the device fails.
    pub fn mod_down(
        &self,
        context: &Context<B>,
        mut accumulator: Accumulator<B>,
        addends: [Option<Operand<'_, B>>; 2],
        output: &Output,
    ) -> Result<[MixedPoly<B>; 2], Error> {
        for addend in addends.iter().flatten() {
            addend.require(&self.active)?;
        }
        let backend = context.backend();
        if let Some(way_out) = self.way_out.as_ref().filter(|_| accumulator.products > 0) {
            self.settle(context, way_out, &mut accumulator)?;
        }
        let lowered = accumulator.settled.is_some();
        let mut both = accumulator.settled.unwrap_or(accumulator.buffer);
        if lowered {
            self.leave_coefficients(context, &mut both, &addends)?;
        } else {
            self.leave(context, &mut both, &addends)?;
        }
        let all: Vec<usize> = (0..self.target.len()).collect();
        let mut out = [Poly::<B, Coeff>::new(backend, &self.target)?, Poly::new(backend, &self.target)?];
        for (e, out) in out.iter_mut().enumerate() {
            if let Some(conversion) = &self.down.conversion {
                let rows = self.part_rows(e, &self.down.leaving_rows);
                let (src, dst) = (View::new(&both, &rows), ViewMut::new(out.buffer_mut(), &all));
                backend.convert(conversion, src, dst, ConvertMode::Replace).map_err(ring)?;
            } else {
                zeroize::Zeroize::zeroize(out.buffer_mut());
            }
        }
        if let Some(factors) = &self.down.factors {
            let rows = self.both_parts(&mut both, &self.down.staying_rows);
            backend.mul_scalar_assign(self.down.staying.as_slice(), rows, factors).map_err(ring)?;
        }
        if lowered {
            return self.join_lowered(context, &both, out, &addends, output);
        }
        self.join(context, both, out, &addends, output)
    }

    /// `rows` of part e of an accumulator.
    fn part_rows(&self, e: usize, rows: &[usize]) -> Vec<usize> {
        rows.iter().map(|r| e * self.extended.len() + r).collect()
    }

    /// `rows` of both parts of an accumulator.
    fn both_parts<'a>(&self, buffer: &'a mut B::Buffer, rows: &'a [usize]) -> ViewMut<'a, B> {
        ViewMut { buffer, batch: 2, batch_stride: self.extended.len(), rows }
    }

    /// Brings the leaving limbs of both parts to coefficients, the addends on dropped primes included.
    fn leave(
        &self,
        context: &Context<B>,
        both: &mut B::Buffer,
        addends: &[Option<Operand<'_, B>>; 2],
    ) -> Result<(), Error> {
        let slots = addends.map(|a| a.and_then(|a| a.ntt()).map(|p| (p.buffer(), p.primes())));
        self.add_dropped(context, both, slots)?;
        let rows = self.both_parts(both, &self.down.leaving_rows);
        context.backend().ntt_inverse(self.down.leaving.as_slice(), rows).map_err(ring)?;
        let coefficients = addends.map(|a| a.and_then(|a| a.coeff()).map(|p| (p.buffer(), p.primes())));
        self.add_dropped(context, both, coefficients)
    }

    /// Adds the addends on the ciphertext primes that leave.
    fn add_dropped(
        &self,
        context: &Context<B>,
        both: &mut B::Buffer,
        addends: [Option<(&B::Buffer, &IndexSet)>; 2],
    ) -> Result<(), Error> {
        for (e, addend) in addends.into_iter().enumerate() {
            let Some((buffer, primes)) = addend else { continue };
            for (&prime, &factor) in self.down.dropped.as_slice().iter().zip(&self.down.dropped_factors) {
                let (Some(from), Some(to)) = (primes.position(prime), self.extended.position(prime)) else { continue };
                let (src, dst) = ([from], [e * self.extended.len() + to]);
                let dst = ViewMut::new(both, &dst);
                let src = View::new(buffer, &src);
                context.backend().mul_scalar_acc(&[prime], src, &[factor], dst).map_err(ring)?;
            }
        }
        Ok(())
    }

    /// out (coefficients) + both parts (slots) + addends, each prime in its output domain.
    fn join(
        &self,
        context: &Context<B>,
        mut both: B::Buffer,
        mut out: [Poly<B, Coeff>; 2],
        addends: &[Option<Operand<'_, B>>; 2],
        output: &Output,
    ) -> Result<[MixedPoly<B>; 2], Error> {
        let coeff_primes = self.target.without(&output.ntt);
        let ntt_primes = self.target.intersection(&output.ntt);
        let mut direct: [Option<&Poly<B, Ntt>>; 2] = [None, None];
        for (e, addend) in addends.iter().enumerate() {
            // Coefficients join `out` before any transform; slots join the parts before they go back, or directly.
            if let Some(c) = addend.and_then(|a| a.coeff()) {
                let to = (out[e].buffer_mut(), 0);
                self.add_addend(context, c.buffer(), c.primes(), &self.target, &self.target, to)?;
            }
            let Some(s) = addend.and_then(|a| a.ntt()) else { continue };
            direct[e] = Some(s).filter(|s| self.down.addend_factors.is_none() && s.primes() == &self.active);
            let which = if direct[e].is_some() { &coeff_primes } else { &self.target };
            let to = (&mut both, e * self.extended.len());
            self.add_addend(context, s.buffer(), s.primes(), which, &self.extended, to)?;
        }
        self.join_coefficients(context, &mut both, &mut out, &coeff_primes)?;
        // Primes that come in hold nothing but what the leaving ones contribute.
        let summed = ntt_primes.intersection(&self.down.staying);
        let rows = self.extended.rows(&summed)?;
        let part_rows = [self.part_rows(0, &rows), self.part_rows(1, &rows)];
        let direct_rows = self.active.rows(&summed)?;
        let ys = [0, 1].map(|e| {
            let mut ys = vec![View::new(&both, &part_rows[e])];
            ys.extend(direct[e].map(|s| View::new(s.buffer(), &direct_rows)));
            ys
        });
        // Where nothing was divided out and no addend is in coefficients, `out` is zero.
        let zero = addends
            .map(|a| self.down.conversion.is_none() && a.and_then(|a| a.coeff()).is_none_or(|p| p.primes().is_empty()));
        self.finish(context, out, (ys, &summed), [&coeff_primes, &ntt_primes], zero, output.galois)
    }

    /// out += the parts' coefficients, on the primes that leave as coefficients.
    fn join_coefficients(
        &self,
        context: &Context<B>,
        both: &mut B::Buffer,
        out: &mut [Poly<B, Coeff>; 2],
        primes: &IndexSet,
    ) -> Result<(), Error> {
        let primes = &primes.intersection(&self.down.staying);
        if primes.is_empty() {
            return Ok(());
        }
        let (rows, out_rows) = (self.extended.rows(primes)?, self.target.rows(primes)?);
        context.backend().ntt_inverse(primes.as_slice(), self.both_parts(both, &rows)).map_err(ring)?;
        for (e, out) in out.iter_mut().enumerate() {
            let rows = self.part_rows(e, &rows);
            let dst = ViewMut::new(out.buffer_mut(), &out_rows);
            context.backend().add_assign(primes.as_slice(), dst, View::new(both, &rows)).map_err(ring)?;
        }
        Ok(())
    }

    /// Adds the limbs of an addend that are in `which` to the matching rows of a buffer laid out as `layout` from a
    /// first row on.
    fn add_addend(
        &self,
        context: &Context<B>,
        from: &B::Buffer,
        from_primes: &IndexSet,
        which: &IndexSet,
        layout: &IndexSet,
        (to, first): (&mut B::Buffer, usize),
    ) -> Result<(), Error> {
        let primes = which.intersection(from_primes);
        if primes.is_empty() {
            return Ok(());
        }
        let src = from_primes.rows(&primes)?;
        let dst: Vec<usize> = layout.rows(&primes)?.into_iter().map(|r| first + r).collect();
        let (src, dst) = (View::new(from, &src), ViewMut::new(to, &dst));
        match &self.down.addend_factors {
            None => context.backend().add_assign(primes.as_slice(), dst, src).map_err(ring),
            Some(factors) => {
                let factors: Vec<u64> = self.down.staying.rows(&primes)?.into_iter().map(|r| factors[r]).collect();
                context.backend().mul_scalar_acc(primes.as_slice(), src, &factors, dst).map_err(ring)
            }
        }
    }
}

impl<B: Backend> ModDown<B> {
    fn new(
        context: &Context<B>,
        plan: &SwitchPlan,
        active: &IndexSet,
        target: &IndexSet,
        extended: &IndexSet,
    ) -> Result<Self, Error> {
        let params = context.params();
        let ring_of = params.ring();
        let mut spec = ScaleSpec::switch(extended, target, params.error_multiple());
        spec.overflow = plan.down_overflow;
        let constants = spec.constants(ring_of)?;
        let folded = plan.key_factors(params)?;
        let keyed = plan.key_primes();
        let folded_at = |i: usize| keyed.position(i).map_or(1, |r| folded[r]);
        let divide = |set: &IndexSet, values: &[u64]| -> Vec<u64> {
            let ratio = |(i, &v): (usize, &u64)| {
                let q = ring_of.modulus(i);
                q.mul(v, q.inv(folded_at(i)).unwrap_or(1))
            };
            set.iter().zip(values).map(ratio).collect()
        };
        let leaving = constants.leaving.clone();
        let (pre, mut convert) = constants.convert.fold();
        convert.prescale = unless_ones(divide(&leaving, &pre));
        let conversion = if leaving.is_empty() {
            None
        } else {
            Some(context.backend().conversion(&leaving, target, &convert).map_err(ring)?)
        };
        let dropped = active.without(target);
        let p = ring_of.product(&plan.special);
        let lift = |set: &IndexSet| -> Vec<u64> {
            set.iter().zip(ring_of.residues(set, &p)).map(|(i, v)| ring_of.modulus(i).mul(v, folded_at(i))).collect()
        };
        let dropped_factors = lift(&dropped);
        let staying = constants.staying.clone();
        let coming = ring_of.residues(&staying, &ring_of.product(&target.without(active)));
        let inverse = synchromesh_ring::rns::inverse_residues(ring_of, &staying, &ring_of.product(&dropped))?;
        let addend_factors =
            staying.iter().zip(coming.iter().zip(inverse)).map(|(i, (&e, d))| ring_of.modulus(i).mul(e, d)).collect();
        Ok(Self {
            leaving_rows: extended.rows(&leaving)?,
            staying_rows: extended.rows(&staying)?,
            factors: unless_ones(divide(&staying, &constants.factors)),
            addend_factors: unless_ones(addend_factors),
            leaving,
            staying,
            conversion,
            lift: lift(active),
            dropped,
            dropped_factors,
        })
    }
}

/// What a switch adds to the error: the digits' product with the key's errors, and rounding.
fn switch_noise(
    params: &Params,
    plan: &SwitchPlan,
    active: &IndexSet,
    target: &IndexSet,
    by: impl Fn(&Params, &[DigitSize], f64, synchromesh_ring::rns::Overflow) -> Noise,
) -> Noise {
    let ring = params.ring();
    let digits: Vec<DigitSize> = plan.rows(params, active).iter().map(|row| row.size(params)).collect();
    let out = ring.log2(&plan.special) + ring.log2(active) - ring.log2(target);
    let gadget = by(params, &digits, out, plan.digit_overflow);
    let nothing_leaves = plan.special.is_empty() && active == target;
    if nothing_leaves { gadget } else { gadget.plus_switching(params.rounding_noise(2)) }
}
