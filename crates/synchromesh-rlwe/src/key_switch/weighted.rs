//! An accumulator times a polynomial modulo QP; differences of hoisted digits.

use synchromesh_ring::{Backend, Ntt, Poly, View, ViewMut};

use super::{Accumulator, Hoisted, Switcher, ring};
use crate::context::Context;
use crate::error::Error;

impl<B: Backend> Switcher<B> {
    /// `into` + f x, or f x where there is none: f is in slots on the primes of accumulators.
    ///
    /// # Errors
    /// [`Error::Ring`] for a polynomial on other primes, or when the device fails.
    pub fn multiply(
        &self,
        context: &Context<B>,
        factor: &Poly<B, Ntt>,
        x: &Accumulator<B>,
        into: Option<Accumulator<B>>,
    ) -> Result<Accumulator<B>, Error> {
        factor.require(&self.extended)?;
        let (backend, width) = (context.backend(), self.extended.len());
        let accumulate = into.is_some();
        let mut out = match into {
            Some(accumulator) => accumulator,
            None => {
                let buffer = backend.alloc(2 * width).map_err(ring)?;
                Accumulator { buffer, products: u64::from(self.way_out.is_none()), settled: None }
            }
        };
        let rows: Vec<usize> = (0..width).collect();
        let parts = [0, 1].map(|e| self.part_rows(e, &rows));
        let factor = View { buffer: factor.buffer(), batch: 1, batch_stride: width, rows: &rows };
        let parts =
            [0, 1].map(|e: usize| View { buffer: &x.buffer, batch: 1, batch_stride: 2 * width, rows: &parts[e] });
        let to = ViewMut { buffer: &mut out.buffer, batch: 2, batch_stride: width, rows: &rows };
        backend.inner_product(self.extended.as_slice(), factor, parts, to, accumulate).map_err(ring)?;
        Ok(out)
    }

    /// The digits of a minus those of b: digits of the difference, as long as those of both together.
    ///
    /// # Errors
    /// When the device fails.
    pub fn subtract(&self, context: &Context<B>, a: &Hoisted<B>, b: &Hoisted<B>) -> Result<Hoisted<B>, Error> {
        let (backend, count) = (context.backend(), self.digits.len());
        let rows: Vec<usize> = (0..count * self.base.len()).collect();
        let primes = self.base.as_slice().repeat(count);
        let mut buffer = backend.alloc(rows.len()).map_err(ring)?;
        backend.copy(View::new(&a.buffer, &rows), ViewMut::new(&mut buffer, &rows)).map_err(ring)?;
        let dst = ViewMut::new(&mut buffer, &rows);
        backend.sub_assign(&primes, dst, View::new(&b.buffer, &rows)).map_err(ring)?;
        Ok(Hoisted { buffer })
    }
}
