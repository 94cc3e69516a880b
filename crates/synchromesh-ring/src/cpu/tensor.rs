//! Tensor products limb by limb: transforms, products and inverse transforms of one prime while its rows are in cache.

use super::Cpu;
use crate::backend::{BackendError, TensorMode, View, ViewMut};

impl Cpu {
    /// [`Backend::tensor`](crate::Backend::tensor).
    pub(super) fn tensor_rows(
        &self,
        primes: &[usize],
        a: [View<'_, Self>; 2],
        b: [View<'_, Self>; 2],
        out: [ViewMut<'_, Self>; 3],
        mode: TensorMode,
    ) -> Result<(), BackendError> {
        let n = self.ring.n();
        let [low, middle, high] = out.map(|view| self.rows_mut(view));
        let items: Vec<_> = low.into_iter().zip(middle).zip(high).enumerate().collect();
        // Where nothing is to be added to, the operand a is transformed into the outputs it is multiplied in.
        let rows = if mode.accumulate { 4 } else { 2 };
        self.try_for_each(items, |(r, ((low, middle), high))| {
            let (table, kernels) = (&self.tables[primes[r]], &self.kernels[primes[r]]);
            let mut scratch = self.scratch(rows * n)?;
            let mut free = scratch.words_mut().chunks_exact_mut(n);
            let mut slots = |view: &View<'_, Self>| {
                let row = free.next().expect("invariant: a scratch row for each transform");
                table.forward_into(self.row(view, 0, r), row);
                &*row
            };
            let (b0, b1) = (slots(&b[0]), slots(&b[1]));
            if mode.accumulate {
                let (a0, a1) = (slots(&a[0]), slots(&a[1]));
                kernels.mul_acc(a0, b0, low);
                kernels.mul_acc(a0, b1, middle);
                kernels.mul_acc(a1, b0, middle);
                kernels.mul_acc(a1, b1, high);
            } else {
                table.forward_into(self.row(&a[0], 0, r), low);
                table.forward_into(self.row(&a[1], 0, r), high);
                kernels.mul_into(low, b1, middle);
                kernels.mul_acc(high, b0, middle);
                kernels.mul_assign(low, b0);
                kernels.mul_assign(high, b1);
            }
            if mode.finish {
                [low, middle, high].into_iter().for_each(|row| table.inverse(row));
            }
            Ok(())
        })
    }
}
