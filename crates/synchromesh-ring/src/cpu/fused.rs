//! The fused stages of a key switch: prime by prime, and within a prime a few KiB of slots at a time.
//!
//! A limb of a large ring does not stay in the caches, so what a slot goes through is done while it is there: the
//! last layers of its digits' transforms, the inner product with both key columns, then either the inverse transform
//! (primes that leave) or the sum with the transformed rest and the permutation (primes that stay).

use super::Cpu;
use crate::backend::{Addend, BackendError, DigitLimb, GadgetDigits, SlotSum, View, ViewMut};
use crate::kernels::{LimbKernels, streams};
use crate::ntt::NttTable;
use crate::slot_order::SlotPermutation;
use std::ops::Range;

/// What follows an inner product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// Nothing: it replaces what was there.
    Store,
    /// Nothing: it is added to what was there.
    Accumulate,
    /// The inverse transform.
    Inverse,
}

/// Digits and both key columns.
type Gadget<'a, 'b> = (&'b GadgetDigits<'a, Cpu>, [View<'b, Cpu>; 2]);

/// Limb r of a gadget product.
struct LimbProduct<'a> {
    table: &'a NttTable,
    kernels: &'a LimbKernels,
    /// The digits; those still in coefficients with room for their slots.
    digits: Vec<(&'a [u64], Option<&'a mut [u64]>)>,
    keys: [Vec<&'a [u64]>; 2],
}

impl LimbProduct<'_> {
    /// The slots of one part, which follows the part before it.
    fn part(&mut self, part: usize, out: [&mut [u64]; 2], accumulate: bool, stream: bool) {
        for (src, slots) in &mut self.digits {
            if let Some(slots) = slots {
                self.table.forward_part(Some(src), slots, part);
            }
        }
        let digits: Vec<&[u64]> = self.digits.iter().map(|(src, slots)| slots.as_deref().unwrap_or(src)).collect();
        let keys = self.keys.each_ref().map(Vec::as_slice);
        self.kernels.inner_product(&digits, keys, self.table.part(part).start, out, accumulate, stream);
    }

    /// All parts.
    fn all(&mut self, [out0, out1]: [&mut [u64]; 2], accumulate: bool, stream: bool) {
        for part in 0..self.table.parts() {
            let range = self.table.part(part);
            self.part(part, [&mut out0[range.clone()], &mut out1[range]], accumulate, stream);
        }
    }
}

/// One limb of a [`SlotSum`].
struct LimbSum<'a> {
    x: &'a mut [u64],
    ys: Vec<&'a [u64]>,
    out: Option<&'a mut [u64]>,
    /// Where the slots are made if there is an output.
    room: &'a mut [u64],
}

impl LimbSum<'_> {
    /// The slots, as far as they are made.
    fn slots(&mut self) -> &mut [u64] {
        if self.out.is_some() { self.room } else { self.x }
    }

    /// Makes the slots of x, one part.
    fn transform(&mut self, table: &NttTable, part: usize) {
        match self.out {
            Some(_) => table.forward_part(Some(self.x), self.room, part),
            None => table.forward_part(None, self.x, part),
        }
    }

    /// Adds the ys to slots, and puts them where they belong.
    fn finish(&mut self, kernels: &LimbKernels, range: Range<usize>, permutation: &SlotPermutation) {
        let slots = if self.out.is_some() { &mut *self.room } else { &mut *self.x };
        self.ys.iter().for_each(|y| kernels.add_assign(&mut slots[range.clone()], &y[range.clone()]));
        if let Some(out) = &mut self.out {
            kernels.permute_blocks(self.room, permutation, range.start / 64..range.end / 64, out);
        }
    }
}

/// Digits of which limb r is still to be transformed.
fn pending(gadget: &GadgetDigits<'_, Cpu>, r: usize) -> usize {
    gadget.limbs.iter().filter(|state| state[r] == DigitLimb::Coefficients).count()
}

impl Cpu {
    /// Limb r of a gadget product, with scratch rows for what is to be transformed.
    fn limb_product<'a>(
        &'a self,
        prime: usize,
        r: usize,
        (gadget, keys): &Gadget<'_, 'a>,
        free: &mut impl Iterator<Item = &'a mut [u64]>,
    ) -> LimbProduct<'a> {
        let n = self.ring.n();
        let view = |view: &ViewMut<'_, Self>, j: usize| view.row(j, r) * n..(view.row(j, r) + 1) * n;
        let digits = gadget.limbs.iter().enumerate().map(|(j, state)| match (state[r], gadget.input) {
            (DigitLimb::Input(row), Some(input)) => (&input.words()[row * n..(row + 1) * n], None),
            (DigitLimb::Coefficients, _) => (&gadget.digits.buffer.words()[view(&gadget.digits, j)], free.next()),
            _ => (&gadget.digits.buffer.words()[view(&gadget.digits, j)], None),
        });
        let digits = digits.collect();
        let keys = keys.each_ref().map(|key| self.column(key, gadget.digits.batch, r));
        LimbProduct { table: &self.tables[prime], kernels: &self.kernels[prime], digits, keys }
    }

    /// Gadget products, limb by limb, and what is to follow them.
    pub(super) fn products(
        &self,
        primes: &[usize],
        gadget: &GadgetDigits<'_, Self>,
        keys: [View<'_, Self>; 2],
        out: ViewMut<'_, Self>,
        after: After,
    ) -> Result<(), BackendError> {
        let n = self.ring.n();
        let mut out0 = self.rows_mut(out);
        let out1 = out0.split_off(primes.len());
        let items: Vec<_> = out0.into_iter().zip(out1).enumerate().collect();
        self.try_for_each(items, n * gadget.digits.batch, |(r, (out0, out1))| {
            // Columns that go on are made where they stay in the caches.
            let (inverse, table) = (after == After::Inverse, &self.tables[primes[r]]);
            let room = if inverse { 2 } else { 0 };
            let mut scratch = self.scratch((pending(gadget, r) + room) * n)?;
            let mut free = scratch.words_mut().chunks_exact_mut(n);
            let columns: Vec<&mut [u64]> = free.by_ref().take(room).collect();
            let mut product = self.limb_product(primes[r], r, &(gadget, keys), &mut free);
            let stream = after == After::Store && [&out0, &out1].iter().all(|out| streams(out.as_ptr(), n));
            if let Ok([column0, column1]) = <[_; 2]>::try_from(columns) {
                product.all([&mut *column0, &mut *column1], false, false);
                table.inverse_from(column0, out0);
                table.inverse_from(column1, out1);
            } else {
                product.all([out0, out1], after == After::Accumulate, stream);
            }
            Ok(())
        })
    }

    /// Gadget products and an addend, limb by limb, part by part where an automorphism takes them.
    pub(super) fn rotated_products(
        &self,
        primes: &[usize],
        (gadget, keys): Gadget<'_, '_>,
        addend: &Addend<'_, Self>,
        g: usize,
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        let (n, permutation) = (self.ring.n(), self.permutation(g));
        let mut out0 = self.rows_mut(out);
        let out1 = out0.split_off(primes.len());
        let items: Vec<_> = out0.into_iter().zip(out1).enumerate().collect();
        self.try_for_each(items, n * gadget.digits.batch, |(r, (out0, out1))| {
            let (table, kernels) = (&self.tables[primes[r]], &self.kernels[primes[r]]);
            let mut scratch = self.scratch((pending(gadget, r) + 2) * n)?;
            let (room, rest) = scratch.words_mut().split_at_mut(2 * n);
            let (slots0, slots1) = room.split_at_mut(n);
            let mut product = self.limb_product(primes[r], r, &(gadget, keys), &mut rest.chunks_exact_mut(n));
            let at = addend.limbs.iter().position(|&limb| limb == r);
            let added = at.map(|i| {
                let scalar = addend.scalars.map(|scalars| self.ring.modulus(primes[r]).scalar(scalars[i]));
                (self.row(&addend.x, 0, i), scalar)
            });
            for part in 0..table.parts() {
                let range = table.part(part);
                product.part(part, [&mut slots0[range.clone()], &mut slots1[range.clone()]], false, false);
                match &added {
                    Some((x, Some(scalar))) => {
                        kernels.mul_scalar_acc(&x[range.clone()], scalar, &mut slots0[range.clone()]);
                    }
                    Some((x, None)) => kernels.add_assign(&mut slots0[range.clone()], &x[range.clone()]),
                    None => {}
                }
                let blocks = range.start / 64..range.end / 64;
                kernels.permute_blocks(slots0, &permutation, blocks.clone(), out0);
                kernels.permute_blocks(slots1, &permutation, blocks, out1);
            }
            Ok(())
        })
    }

    /// Gadget products, limb by limb, added to slots that are then brought to coefficients.
    pub(super) fn products_onto(
        &self,
        primes: &[usize],
        gadget: Gadget<'_, '_>,
        x: [ViewMut<'_, Self>; 2],
    ) -> Result<(), BackendError> {
        let n = self.ring.n();
        let [x0, x1] = x.map(|x| self.rows_mut(x));
        let items: Vec<_> = x0.into_iter().zip(x1).enumerate().collect();
        self.try_for_each(items, n * gadget.0.digits.batch, |(r, (x0, x1))| {
            let mut scratch = self.scratch(pending(gadget.0, r) * n)?;
            let mut free = scratch.words_mut().chunks_exact_mut(n);
            let mut product = self.limb_product(primes[r], r, &gadget, &mut free);
            product.all([&mut *x0, &mut *x1], true, false);
            [x0, x1].into_iter().for_each(|x| self.tables[primes[r]].inverse(x));
            Ok(())
        })
    }

    /// Sums in slots, limb by limb; with a gadget, the first two sums each have one column of its product added.
    pub(super) fn sums(
        &self,
        primes: &[usize],
        gadget: Option<Gadget<'_, '_>>,
        sums: Vec<SlotSum<'_, Self>>,
        g: usize,
    ) -> Result<(), BackendError> {
        let n = self.ring.n();
        let permutation = self.permutation(g);
        let count = sums.len();
        let mut items: Vec<Vec<LimbSum<'_>>> = primes.iter().map(|_| Vec::with_capacity(count)).collect();
        for SlotSum { x, ys, out } in sums {
            let mut out = out.map(|out| self.rows_mut(out).into_iter());
            for (r, x) in self.rows_mut(x).into_iter().enumerate() {
                let ys = ys.iter().map(|y| self.row(y, 0, r)).collect();
                items[r].push(LimbSum { x, ys, out: out.as_mut().and_then(Iterator::next), room: &mut [] });
            }
        }
        let items: Vec<_> = items.into_iter().enumerate().collect();
        self.try_for_each(items, n * count, |(r, mut sums)| {
            let (table, kernels) = (&self.tables[primes[r]], &self.kernels[primes[r]]);
            let pending = gadget.as_ref().map_or(0, |(gadget, _)| pending(gadget, r));
            let mut scratch = self.scratch((pending + count) * n)?;
            let mut free = scratch.words_mut().chunks_exact_mut(n);
            let mut product = gadget.as_ref().map(|gadget| self.limb_product(primes[r], r, gadget, &mut free));
            for (sum, room) in sums.iter_mut().zip(free) {
                sum.room = room;
            }
            for part in 0..table.parts() {
                let range = table.part(part);
                sums.iter_mut().for_each(|sum| sum.transform(table, part));
                if let (Some(product), [sum0, sum1, ..]) = (&mut product, &mut sums[..]) {
                    let out = [sum0, sum1].map(|sum| &mut sum.slots()[range.clone()]);
                    product.part(part, out, true, false);
                }
                sums.iter_mut().for_each(|sum| sum.finish(kernels, range.clone(), &permutation));
            }
            Ok(())
        })
    }
}
