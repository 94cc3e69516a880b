//! Key switching: decompose, inner product, mod down - three stages compiled for one plan, one set of primes and one
//! target.
//!
//! Every method of the literature is a choice on the axes of [`SwitchPlan`]; the stages never ask which one it is.
//! Hoisting is "decompose once, many inner products"; lazy key switching is "many inner products, one mod down";
//! merging with a following modulus switch is a smaller target. Inputs and outputs may be coefficients, slots, or
//! mixed prime by prime, each at the same number of transforms (ePrint 2023/1642, sections 3.1 and 6.1).

use synchromesh_ring::backend::{DigitLimb, GadgetDigits, SlotSum};
use synchromesh_ring::scale::ScaleSpec;
use synchromesh_ring::{Backend, Coeff, ConvertMode, Error as RingError, IndexSet, Ntt, Poly, View, ViewMut};

use crate::context::Context;
use crate::domain::{MixedPoly, Operand, SwitchDomain};
use crate::error::Error;
use crate::noise::{self, DigitSize, Noise};
use crate::params::Params;
use crate::switch_key::PreparedKey;
use crate::switch_plan::SwitchPlan;

/// One digit on the active primes: how it is extended to the other primes of the extended base.
struct Digit<B: Backend> {
    /// Its number in the key.
    index: usize,
    /// Limbs of the input that are its own primes.
    input_rows: Vec<usize>,
    /// The same primes as limbs of the extended base.
    own_rows: Vec<usize>,
    /// The other limbs of the extended base, and the conversion that fills them.
    rest_rows: Vec<usize>,
    conversion: Option<B::Conversion>,
}

/// The mod-down: what is multiplied where, beyond what the key has folded in.
struct ModDown<B: Backend> {
    leaving: IndexSet,
    leaving_rows: Vec<usize>,
    target_rows: Vec<usize>,
    conversion: Option<B::Conversion>,
    /// Factor of each target limb of the accumulator; `None`: all 1.
    factors: Option<Vec<u64>>,
    /// Factor of an addend on each target limb, 1 / (primes dropped besides P); `None`: all 1.
    addend_factors: Option<Vec<u64>>,
    /// Ciphertext primes that leave, and the factor of an addend on them.
    dropped: IndexSet,
    dropped_factors: Vec<u64>,
}

/// A key switch compiled for a plan, the active primes of its input and the primes of its output.
pub struct Switcher<B: Backend> {
    active: IndexSet,
    target: IndexSet,
    extended: IndexSet,
    digits: Vec<Digit<B>>,
    down: ModDown<B>,
    noise: Noise,
}

/// A polynomial decomposed into digits over the extended base: \[digit\]\[limb\]\[N\].
pub struct Decomposed<'a, B: Backend> {
    buffer: B::Buffer,
    /// For each digit, where its limbs are.
    limbs: Vec<Vec<DigitLimb>>,
    /// The input's slots, where digits still are limbs of it.
    input: Option<&'a B::Buffer>,
}

/// Digits all in slots over the extended base, for any number of inner products.
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

/// Two polynomials in slots over the extended base, not yet divided by P.
pub struct Accumulator<B: Backend> {
    /// Two times the extended base's limbs.
    buffer: B::Buffer,
}

fn ring(error: synchromesh_ring::BackendError) -> Error {
    RingError::from(error).into()
}

/// `values`, unless all of them are 1.
fn unless_ones(values: Vec<u64>) -> Option<Vec<u64>> {
    values.iter().any(|&v| v != 1).then_some(values)
}

impl<B: Backend> Switcher<B> {
    /// Compiles `plan` for an input on `active` and an output on `target`, a subset of it.
    ///
    /// # Errors
    /// [`Error::Params`] when the target is not within the active primes, [`Error::Ring`] when the device fails.
    pub fn new(context: &Context<B>, plan: &SwitchPlan, active: &IndexSet, target: &IndexSet) -> Result<Self, Error> {
        if !target.without(active).is_empty() || target.is_empty() {
            return Err(Error::params(format!("key-switch target {target:?} must be among the primes {active:?}")));
        }
        let (backend, params) = (context.backend(), context.params());
        let extended = active.union(&plan.special);
        let mut digits = Vec::new();
        for (index, own) in plan.active_digits(active) {
            let rest = extended.without(&own);
            let ones = |set: &IndexSet| vec![1; set.len()];
            let conversion = if rest.is_empty() {
                None
            } else {
                let spec = synchromesh_ring::rns::ConvertSpec::new(
                    params.ring(),
                    &own,
                    &rest,
                    &ones(&own),
                    &ones(&rest),
                    plan.digit_overflow,
                )?;
                Some(backend.conversion(&own, &rest, &spec).map_err(ring)?)
            };
            digits.push(Digit {
                index,
                input_rows: active.rows(&own)?,
                own_rows: extended.rows(&own)?,
                rest_rows: extended.rows(&rest)?,
                conversion,
            });
        }
        let down = ModDown::new(context, plan, active, target, &extended)?;
        let noise = switch_noise(params, plan, active, target);
        Ok(Self { active: active.clone(), target: target.clone(), extended, digits, down, noise })
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

    /// Number of digits on the active primes.
    #[must_use]
    pub fn omega(&self) -> usize {
        self.digits.len()
    }

    /// The error the switch adds, at the target's modulus, rounding of two components included.
    #[must_use]
    pub const fn noise(&self) -> Noise {
        self.noise
    }

    /// Bytes of temporary memory one switch takes.
    #[must_use]
    pub fn scratch_bytes(&self, n: usize) -> usize {
        8 * n * (self.digits.len() * self.extended.len() + 2 * self.extended.len() + self.active.len())
    }

    /// Splits a polynomial into digits and extends each to the whole base; transforms are left pending.
    ///
    /// # Errors
    /// [`Error::Ring`] when the input is not on the active primes, or the device fails.
    pub fn decompose<'a>(&self, context: &Context<B>, input: Operand<'a, B>) -> Result<Decomposed<'a, B>, Error> {
        input.require(&self.active)?;
        let backend = context.backend();
        let width = self.extended.len();
        let mut buffer = backend.alloc(self.digits.len() * width).map_err(ring)?;
        let gathered;
        let coefficients = if let Operand::Coeff(poly) = input {
            poly
        } else {
            gathered = self.gather_coefficients(context, input)?;
            &gathered
        };
        let mut limbs = Vec::with_capacity(self.digits.len());
        for (position, digit) in self.digits.iter().enumerate() {
            let at = |rows: &[usize]| -> Vec<usize> { rows.iter().map(|r| position * width + r).collect() };
            let mut state = vec![DigitLimb::Coefficients; width];
            if let Some(conversion) = &digit.conversion {
                let (src, rest) = (View::new(coefficients.buffer(), &digit.input_rows), at(&digit.rest_rows));
                backend
                    .convert(conversion, src, ViewMut::new(&mut buffer, &rest), ConvertMode::Replace)
                    .map_err(ring)?;
            }
            for (&row, &own) in digit.input_rows.iter().zip(&digit.own_rows) {
                let prime = self.active.as_slice()[row];
                if let Some(slots) = input.ntt().and_then(|p| p.primes().position(prime)) {
                    state[own] = DigitLimb::Input(slots);
                    continue;
                }
                let (src, dst) = ([row], [position * width + own]);
                let dst = ViewMut::new(&mut buffer, &dst);
                backend.copy(View::new(coefficients.buffer(), &src), dst).map_err(ring)?;
            }
            limbs.push(state);
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
            backend.ntt_inverse_into(slots.primes().as_slice(), src, dst).map_err(ring)?;
        }
        Ok(all)
    }

    /// Brings all digits to slots, so that many inner products can use them (hoisting).
    ///
    /// # Errors
    /// When the device fails.
    pub fn hoist(&self, context: &Context<B>, mut digits: Decomposed<'_, B>) -> Result<Hoisted<B>, Error> {
        let rows: Vec<usize> = (0..self.extended.len()).collect();
        let view = self.digit_view(&mut digits.buffer, &rows);
        let gadget = GadgetDigits { digits: view, limbs: &digits.limbs, input: digits.input };
        context.backend().transform_digits(self.extended.as_slice(), gadget).map_err(ring)?;
        Ok(Hoisted { buffer: digits.buffer })
    }

    fn digit_view<'a>(&self, buffer: &'a mut B::Buffer, rows: &'a [usize]) -> ViewMut<'a, B> {
        ViewMut { buffer, batch: self.digits.len(), batch_stride: self.extended.len(), rows }
    }

    /// The inner product of the digits with both columns of `key`, added to `into` or as a new accumulator.
    ///
    /// # Errors
    /// [`Error::Ring`] when the key lacks a prime, or the device fails.
    pub fn gadget_product(
        &self,
        context: &Context<B>,
        mut digits: Decomposed<'_, B>,
        key: &PreparedKey<B>,
        into: Option<Accumulator<B>>,
    ) -> Result<Accumulator<B>, Error> {
        self.accumulate(context, key, into, |primes, keys, output, rows, accumulate| {
            let view = self.digit_view(&mut digits.buffer, rows);
            let gadget = GadgetDigits { digits: view, limbs: &digits.limbs, input: digits.input };
            context.backend().gadget_product(primes, gadget, keys, output, accumulate)
        })
    }

    /// As [`Self::gadget_product`], with hoisted digits.
    ///
    /// # Errors
    /// [`Error::Ring`] when the key lacks a prime, or the device fails.
    pub fn inner_product(
        &self,
        context: &Context<B>,
        digits: &Hoisted<B>,
        key: &PreparedKey<B>,
        into: Option<Accumulator<B>>,
    ) -> Result<Accumulator<B>, Error> {
        let (batch, batch_stride) = (self.digits.len(), self.extended.len());
        self.accumulate(context, key, into, |primes, keys, output, rows, accumulate| {
            let view = View { buffer: &digits.buffer, batch, batch_stride, rows };
            context.backend().inner_product(primes, view, keys, output, accumulate)
        })
    }

    /// Runs `product` on the key's rows for the extended base and an accumulator, `into` or a new one.
    fn accumulate(
        &self,
        context: &Context<B>,
        key: &PreparedKey<B>,
        into: Option<Accumulator<B>>,
        product: impl FnOnce(
            &[usize],
            [View<'_, B>; 2],
            ViewMut<'_, B>,
            &[usize],
            bool,
        ) -> Result<(), synchromesh_ring::BackendError>,
    ) -> Result<Accumulator<B>, Error> {
        let backend = context.backend();
        let accumulate = into.is_some();
        let width = self.extended.len();
        let mut out = match into {
            Some(accumulator) => accumulator,
            None => Accumulator { buffer: backend.alloc(2 * width).map_err(ring)? },
        };
        let rows: Vec<usize> = (0..width).collect();
        let (stride, batch) = (key.primes().len(), self.digits.len());
        let first = self.digits.first().map_or(0, |d| d.index);
        let key_rows: Vec<usize> = key.primes().rows(&self.extended)?.into_iter().map(|r| first * stride + r).collect();
        let keys = key.columns().each_ref().map(|buffer| View { buffer, batch, batch_stride: stride, rows: &key_rows });
        let output = ViewMut { buffer: &mut out.buffer, batch: 2, batch_stride: width, rows: &rows };
        product(self.extended.as_slice(), keys, output, &rows, accumulate).map_err(ring)?;
        Ok(out)
    }

    /// Divides both parts by P and the dropped primes, adds the addends, and leaves each prime in its output domain,
    /// after the automorphism.
    ///
    /// # Errors
    /// [`Error::Ring`] when an addend is not on the active primes, or the device fails.
    pub fn mod_down(
        &self,
        context: &Context<B>,
        accumulator: Accumulator<B>,
        addends: [Option<Operand<'_, B>>; 2],
        output: &Output,
    ) -> Result<[MixedPoly<B>; 2], Error> {
        for addend in addends.iter().flatten() {
            addend.require(&self.active)?;
        }
        let backend = context.backend();
        let mut both = accumulator.buffer;
        self.leave(context, &mut both, &addends)?;
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
            let rows = self.both_parts(&mut both, &self.down.target_rows);
            backend.mul_scalar_assign(self.target.as_slice(), rows, factors).map_err(ring)?;
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
        let backend = context.backend();
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
        let rows = self.extended.rows(&ntt_primes)?;
        let part_rows = [self.part_rows(0, &rows), self.part_rows(1, &rows)];
        let out_rows = self.target.rows(&ntt_primes)?;
        let direct_rows = self.active.rows(&ntt_primes)?;
        let all: Vec<usize> = (0..ntt_primes.len()).collect();
        let rotated = output.galois != 1;
        let fresh = if rotated { &ntt_primes } else { &IndexSet::empty() };
        let mut slots = [Poly::<B, Ntt>::new(backend, fresh)?, Poly::new(backend, fresh)?];
        let mut sums = Vec::with_capacity(2);
        for ((e, out), slots) in out.iter_mut().enumerate().zip(&mut slots) {
            let mut ys = vec![View::new(&both, &part_rows[e])];
            ys.extend(direct[e].map(|s| View::new(s.buffer(), &direct_rows)));
            let to = rotated.then(|| ViewMut::new(slots.buffer_mut(), &all));
            sums.push(SlotSum { x: ViewMut::new(out.buffer_mut(), &out_rows), ys, out: to });
        }
        backend.slot_sums(ntt_primes.as_slice(), sums, output.galois).map_err(ring)?;
        let [out0, out1] = out;
        let [slots0, slots1] = slots;
        let finish = |out: Poly<B, Coeff>, slots: Poly<B, Ntt>| {
            if !rotated {
                return split(context, out, &coeff_primes, &ntt_primes);
            }
            let coeff = out.restrict(backend, &coeff_primes)?.automorphism(backend, output.galois)?;
            Ok(MixedPoly { coeff, ntt: slots })
        };
        Ok([finish(out0, slots0)?, finish(out1, slots1)?])
    }

    /// out += the parts' coefficients, on the primes that leave as coefficients.
    fn join_coefficients(
        &self,
        context: &Context<B>,
        both: &mut B::Buffer,
        out: &mut [Poly<B, Coeff>; 2],
        primes: &IndexSet,
    ) -> Result<(), Error> {
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
                let factors: Vec<u64> = self.target.rows(&primes)?.into_iter().map(|r| factors[r]).collect();
                context.backend().mul_scalar_acc(primes.as_slice(), src, &factors, dst).map_err(ring)
            }
        }
    }

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
        let digits = self.decompose(context, D::operand(input))?;
        let accumulator = self.gadget_product(context, digits, key, None)?;
        let output = Output { ntt: D::ntt_primes(&self.target), galois };
        let parts = self.mod_down(context, accumulator, addends.map(|a| a.map(D::operand)), &output)?;
        Ok(parts.map(D::take))
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
        let keyed = params.q().union(&plan.special);
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
        let dropped_factors = ring_of.residues(&dropped, &p);
        let dropped_factors =
            dropped.iter().zip(dropped_factors).map(|(i, v)| ring_of.modulus(i).mul(v, folded_at(i))).collect();
        let drop_inverse = synchromesh_ring::rns::inverse_residues(ring_of, target, &ring_of.product(&dropped))?;
        Ok(Self {
            leaving_rows: extended.rows(&leaving)?,
            target_rows: extended.rows(target)?,
            factors: unless_ones(divide(target, &constants.factors)),
            addend_factors: unless_ones(drop_inverse),
            leaving,
            conversion,
            dropped,
            dropped_factors,
        })
    }
}

/// What a switch adds to the error: the digits' product with the key's errors, and rounding.
fn switch_noise(params: &Params, plan: &SwitchPlan, active: &IndexSet, target: &IndexSet) -> Noise {
    let ring = params.ring();
    let digits: Vec<DigitSize> = plan
        .active_digits(active)
        .iter()
        .map(|(_, own)| DigitSize { log2: ring.log2(own), primes: own.len() })
        .collect();
    let out = ring.log2(&plan.special) + ring.log2(active) - ring.log2(target);
    let sigma = params.error().variance().sqrt();
    let gadget = noise::gadget(params.n(), sigma, &digits, out, plan.digit_overflow);
    let nothing_leaves = plan.special.is_empty() && active == target;
    if nothing_leaves { gadget } else { gadget.plus(noise::rounding(params.n(), 2)) }
}
