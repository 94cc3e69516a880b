//! Key switches on top of what is in slots already: the components of a product need no transforms of their own.
//!
//! The gadget product of a prime is added to the slots, and one inverse transform takes both to coefficients. Where the
//! slots are those of a numerator that is to be divided by a multiple of P anyway, the sums modulo P join it too, and
//! that division is the mod-down.

use synchromesh_ring::backend::Stage;
use synchromesh_ring::{Backend, Coeff, ConvertMode, IndexSet, Ntt, Poly, View, ViewMut};

use super::{Decomposed, Switcher, ring};
use crate::context::Context;
use crate::domain::Operand;
use crate::error::Error;
use crate::prepared_key::PreparedKey;

impl<B: Backend> Switcher<B> {
    /// x_c = the coefficients of x_c plus the gadget product of column c, on `primes`, some of the active and special
    /// ones; x_c is given in slots. Uses the digits' limbs of these primes up.
    ///
    /// The product carries the factors that the key has folded in, and nothing is divided by P.
    ///
    /// # Errors
    /// [`Error::Argument`] unless [`Switcher::is_plain`], [`Error::TrimmedKey`] when the key lacks a prime,
    /// [`Error::Ring`] for other primes, or when the device fails.
    pub fn product_onto(
        &self,
        context: &Context<B>,
        digits: &mut Decomposed<'_, B>,
        key: &PreparedKey<B>,
        primes: &IndexSet,
        x: [ViewMut<'_, B>; 2],
    ) -> Result<(), Error> {
        if !self.is_plain() {
            return Err(Error::argument(
                "a gadget product joins slots only where its limbs are added without further factors",
            ));
        }
        let rows = self.extended.rows(primes)?;
        self.gadget_on(digits, key, &rows, |primes, gadget, keys| {
            context.backend().stage(primes, Stage::GadgetProductOnto { gadget, keys, x })
        })
    }

    /// As [`Switcher::switch`] in coefficients, with addends in slots on the active primes.
    ///
    /// # Errors
    /// [`Error::Ring`] when the input or an addend is not on the active primes, or the device fails.
    pub fn switch_onto(
        &self,
        context: &Context<B>,
        input: &Poly<B, Coeff>,
        key: &PreparedKey<B>,
        mut x: [Poly<B, Ntt>; 2],
    ) -> Result<[Poly<B, Coeff>; 2], Error> {
        x.iter().try_for_each(|x| x.require(&self.active))?;
        let backend = context.backend();
        if !self.is_plain() {
            let [a, b] = x.map(|x| x.into_coeff(backend));
            let (a, b) = (a?, b?);
            return self.switch(context, input, key, [Some(&a), Some(&b)], 1);
        }
        let mut digits = self.decompose(context, Operand::Coeff(input))?;
        let (special, rows) = self.special_limbs(context, &mut digits, key)?;
        let all: Vec<usize> = (0..self.active.len()).collect();
        let views = x.each_mut().map(|x| ViewMut::new(x.buffer_mut(), &all));
        self.product_onto(context, &mut digits, key, &self.active, views)?;
        let mut out = x.map(Poly::assume_coeff);
        for (out, rows) in out.iter_mut().zip(&rows) {
            if let Some(conversion) = &self.down.conversion {
                let (src, dst) = (View::new(&special, rows), ViewMut::new(out.buffer_mut(), &all));
                backend.convert(conversion, src, dst, ConvertMode::Add).map_err(ring)?;
            }
        }
        Ok(out)
    }
}
