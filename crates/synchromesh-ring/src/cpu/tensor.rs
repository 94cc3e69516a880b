//! Tensor products limb by limb: transforms, products and inverse transforms of one prime while its rows are in cache.

use super::Cpu;
use crate::backend::{BackendError, TensorMode, View, ViewMut};

/// Words of a row that are multiplied at a time where nothing is transformed: seven such pieces stay in L1.
const PIECE: usize = 512;

impl Cpu {
    /// [`Stage::Tensor`](crate::backend::Stage::Tensor).
    pub(super) fn tensor_rows(
        &self,
        primes: &[usize],
        a: [View<'_, Self>; 2],
        b: [View<'_, Self>; 2],
        out: [ViewMut<'_, Self>; 3],
        mode: TensorMode,
    ) -> Result<(), BackendError> {
        if mode.slots {
            return self.tensor_slots(primes, [a, b], out, mode);
        }
        let n = self.ring.n();
        let [low, middle, high] = out.map(|view| self.rows_mut(view));
        let items: Vec<_> = low.into_iter().zip(middle).zip(high).enumerate().collect();
        // Where nothing is to be added to, the operand a is transformed into the outputs it is multiplied in.
        let count = if mode.accumulate { 4 } else { 2 };
        self.try_for_each(items, 4 * n, |(r, ((low, middle), high))| {
            let (table, kernels) = (&self.tables[primes[r]], &self.kernels[primes[r]]);
            let mut scratch = self.scratch(count * n)?;
            let mut rows: Vec<&mut [u64]> = scratch.words_mut().chunks_exact_mut(n).take(count).collect();
            let [a, b] = [&a, &b].map(|x| [self.row(&x[0], 0, r), self.row(&x[1], 0, r)]);
            // One whole transform after another: a row and the factors stay in the second-level cache.
            let (of_b, of_a) = rows.split_at_mut(2);
            for (src, slots) in b.into_iter().zip(of_b.iter_mut()) {
                table.forward_into(src, slots);
            }
            let given = if let [a0, a1] = of_a {
                table.forward_into(a[0], a0);
                table.forward_into(a[1], a1);
                Some([&**a0, &**a1])
            } else {
                table.forward_into(a[0], low);
                table.forward_into(a[1], high);
                None
            };
            kernels.tensor(given, [&*of_b[0], &*of_b[1]], [&mut *low, &mut *middle, &mut *high]);
            let rows = [low, middle, high].into_iter().zip(mode.finish);
            rows.filter(|(_, finish)| *finish).for_each(|(row, _)| table.inverse(row));
            Ok(())
        })
    }

    /// Of operands in slots: each is read once.
    fn tensor_slots(
        &self,
        primes: &[usize],
        [a, b]: [[View<'_, Self>; 2]; 2],
        out: [ViewMut<'_, Self>; 3],
        mode: TensorMode,
    ) -> Result<(), BackendError> {
        let n = self.ring.n();
        let [low, middle, high] = out.map(|view| self.rows_mut(view));
        let items: Vec<_> = low.into_iter().zip(middle).zip(high).enumerate().collect();
        self.try_for_each(items, 4 * n, |(r, ((low, middle), high))| {
            let (table, kernels) = (&self.tables[primes[r]], &self.kernels[primes[r]]);
            let [a, b] = [&a, &b].map(|x| [self.row(&x[0], 0, r), self.row(&x[1], 0, r)]);
            for start in (0..n).step_by(PIECE) {
                let piece = start..n.min(start + PIECE);
                let [a, b] = [a, b].map(|x| x.map(|row| &row[piece.clone()]));
                let out = [&mut low[piece.clone()], &mut middle[piece.clone()], &mut high[piece]];
                if mode.accumulate {
                    kernels.tensor(Some(a), b, out);
                } else {
                    // Multiplied where they come to lie.
                    out[0].copy_from_slice(a[0]);
                    out[2].copy_from_slice(a[1]);
                    kernels.tensor(None, b, out);
                }
            }
            let rows = [low, middle, high].into_iter().zip(mode.finish);
            rows.filter(|(_, finish)| *finish).for_each(|(row, _)| table.inverse(row));
            Ok(())
        })
    }
}
