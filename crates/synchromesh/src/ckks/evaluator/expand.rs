//! A ciphertext with numbers in the coefficients of its message to ciphertexts with one number each, in all slots.
//!
//! Angel, Chen, Laine and Setty, ePrint 2017/1142, section 3.3, for CKKS: X -> X^(N/2^i + 1) keeps the coefficients at
//! multiples of 2^(i + 1) and negates those between, of a message that has some at multiples of 2^i alone. Sum and
//! difference with a message are twice either half; the second one is brought back by X^(-2^i). No level is taken.

use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::Operation;
use synchromesh_rlwe::ring::{Backend, Ntt, Poly};

use super::Evaluator;
use crate::ckks::ciphertext::Ciphertext;
use crate::ckks::context::Context;
use crate::error::{Error, Result};

impl<B: Backend> Context<B> {
    /// The rotations that [`Evaluator::expand`] to `count` ciphertexts makes, N / 8 at the most.
    #[must_use]
    pub fn expansion_rotations(&self, count: usize) -> Vec<i64> {
        let n = self.params().n();
        let step = |i: u32| {
            // Powers of 3 that are 1 modulo N / 2^i come at multiples of this many; one of the odd multiples is it.
            let unit = (n >> (i + 2)).max(1) as i64;
            (0..=1i64 << i).map(|k| (2 * k + 1) * unit).find(|&k| self.galois_element(k) == (n >> i) + 1)
        };
        (0..steps(count.min(n / 8))).filter_map(step).collect()
    }
}

/// Halvings from one ciphertext to `count`.
fn steps(count: usize) -> u32 {
    count.next_power_of_two().trailing_zeros()
}

impl<B: Backend> Evaluator<B> {
    /// x X^k for any k: every slot times a root of unity, exactly, at no level. X^(N/2) is i in
    /// slots of even numbers, -i in the others.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`], or when the device fails.
    pub fn mul_monomial(&self, x: &Ciphertext<B>, k: i64) -> Result<Ciphertext<B>> {
        self.require_own(x)?;
        let (context, params) = (self.context.rlwe(), self.context.params());
        let (backend, n) = (context.backend(), params.n());
        let place = k.rem_euclid(2 * n as i64) as usize;
        let mut coefficients = vec![0; n];
        coefficients[place % n] = if place < n { 1 } else { -1 };
        let level = params.rlwe().level(x.level())?;
        let monomial: Poly<B, Ntt> = Poly::from_bounded(backend, level, &coefficients, 1)?.into_ntt(backend)?;
        let inner = x.inner();
        let parts = inner.parts().iter().map(|part| Ok(part.mul(backend, &monomial)?)).collect::<Result<_>>()?;
        let made = rlwe::Ciphertext::new(params.rlwe(), parts, inner.level(), inner.key(), inner.noise())?;
        self.finish(Operation::Copy, &[x.parent()], made, inner.noise(), x.scale().clone(), x.bound())
    }

    /// Of a message that is c_0 + c_1 X + .. with `count` coefficients at most ([`Context::encode_coefficients`]), for each
    /// a ciphertext with c_j times the first power of two from `count` on in every slot.
    ///
    /// Bounds double with each of log2 `count` steps; of what is known to be smaller declare it. One key switch for each
    /// ciphertext but one.
    ///
    /// # Errors
    /// [`Error::Argument`] for no coefficients or more than N / 8, [`Error::MissingRotations`], [`Error::NoKeys`], and as
    /// sums.
    pub fn expand(&self, x: &Ciphertext<B>, count: usize) -> Result<Vec<Ciphertext<B>>> {
        let most = self.context.params().n() / 8;
        if count == 0 || count > most {
            return Err(Error::argument(format!("a message is expanded to 1 to {most} numbers, not {count}")));
        }
        let rotations = self.context.expansion_rotations(count);
        self.require_rotations(&crate::rotations::Rotations::by(rotations.iter().copied()))?;
        let threads = self.context.rlwe().backend().threads();
        let mut made = vec![x.duplicate(&self.context)?];
        for (i, &rotation) in rotations.iter().enumerate() {
            let halves = threads.try_map(made, |x| {
                let turned = self.rotate(&x, rotation)?;
                let odd = self.mul_monomial(&self.sub(&x, &turned)?, -(1 << i))?;
                Ok::<_, Error>([self.add(&x, &turned)?, odd])
            })?;
            let (even, odd): (Vec<_>, Vec<_>) = halves.into_iter().map(Into::into).unzip();
            made = even;
            made.extend(odd);
        }
        made.truncate(count);
        Ok(made)
    }
}
