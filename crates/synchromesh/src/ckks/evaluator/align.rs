//! Scales and levels: rescaling, and bringing operands to one level at one exact scale.

use num_bigint::BigUint;
use num_traits::ToPrimitive;
use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::Noise;
use synchromesh_rlwe::ring::{Backend, Ntt};

use super::{Evaluator, Held};
use crate::ckks::ciphertext::Ciphertext;
use crate::ckks::noise;
use crate::error::{Error, Result};

impl<B: Backend> Evaluator<B> {
    /// Divides by the primes that the next level lacks. In automatic mode only a product that was not relinearised is
    /// ever due for it.
    ///
    /// # Errors
    /// [`rlwe::Error::Level`] at level 0, [`Error::ScaleMismatch`] in automatic mode when it is not due.
    pub fn rescale(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        let params = self.context.params();
        self.require_own(x)?;
        if self.auto() && !self.pending(x)? {
            let due = params.at(x.level())?;
            return Err(Error::ScaleMismatch { left: x.log2_scale(), right: 2.0 * due.log2 });
        }
        if x.level() == 0 {
            return Err(self.no_level(1, 0));
        }
        let dropped = params.at(x.level())?.dropped.clone();
        let noise = self.rescaled_noise(x.inner())?;
        let inner = x.inner().mod_switch_to(self.context.rlwe(), x.level() - 1)?;
        self.finish(inner, noise, x.scale().over(&dropped)?, x.bound())
    }

    /// The next lower level; see [`Self::mod_switch_to`].
    ///
    /// # Errors
    /// As [`Self::mod_switch_to`].
    pub fn mod_switch(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        let level = x.level().checked_sub(1).ok_or_else(|| self.no_level(1, 0))?;
        self.mod_switch_to(x, level)
    }

    /// The same message at a lower level.
    ///
    /// In automatic mode its scale becomes that level's S_l: limbs are dropped to level l + 1, the rest is multiplied
    /// by the integer nearest to S_l D_(l+1) / S and divided by D_(l+1), and what rounding the constant does to the
    /// message enters the certificate. In manual mode limbs are dropped and the scale stays.
    ///
    /// # Errors
    /// [`rlwe::Error::Level`] when `level` is above the ciphertext's, [`rlwe::Error::Noise`].
    pub fn mod_switch_to(&self, x: &Ciphertext<B>, level: usize) -> Result<Ciphertext<B>> {
        self.require_own(x)?;
        self.lowered(self.settle(x)?, level)?.take(&self.context)
    }

    /// Whether a rescale is due: automatic mode, scale S_l^2.
    pub(super) fn pending(&self, x: &Ciphertext<B>) -> Result<bool> {
        Ok(self.auto() && *x.scale() == self.context.params().at(x.level())?.square)
    }

    /// In automatic mode, `x` rescaled if it is due.
    pub(super) fn settle<'a>(&self, x: &'a Ciphertext<B>) -> Result<Held<'a, B>> {
        if self.pending(x)? { Ok(Held::Made(self.rescale(x)?)) } else { Ok(Held::Given(x)) }
    }

    /// Both operands of a sum at one level and scale.
    pub(super) fn align_for_sum<'a>(
        &self,
        x: &'a Ciphertext<B>,
        y: &'a Ciphertext<B>,
    ) -> Result<(Held<'a, B>, Held<'a, B>)> {
        if x.level() == y.level() && x.scale() == y.scale() {
            return Ok((Held::Given(x), Held::Given(y)));
        }
        if !self.auto() && x.scale() != y.scale() {
            return Err(Error::ScaleMismatch { left: x.log2_scale(), right: y.log2_scale() });
        }
        self.align(x, y)
    }

    /// Both operands of a product at one level, at scales whose product is as it should be.
    pub(super) fn align_for_product<'a>(
        &self,
        x: &'a Ciphertext<B>,
        y: &'a Ciphertext<B>,
    ) -> Result<(Held<'a, B>, Held<'a, B>)> {
        self.align(x, y)
    }

    fn align<'a>(&self, x: &'a Ciphertext<B>, y: &'a Ciphertext<B>) -> Result<(Held<'a, B>, Held<'a, B>)> {
        let (x, y) = (self.settle(x)?, self.settle(y)?);
        let level = x.level().min(y.level());
        Ok((self.lowered(x, level)?, self.lowered(y, level)?))
    }

    /// In automatic mode a product needs a level to be rescaled to.
    pub(super) fn require_level_for_product(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<()> {
        let after = |ct: &Ciphertext<B>| Ok::<_, Error>(ct.level().saturating_sub(usize::from(self.pending(ct)?)));
        let level = after(x)?.min(after(y)?);
        if self.auto() && level == 0 {
            return Err(self.no_level(1, 0));
        }
        Ok(())
    }

    pub(super) fn no_level(&self, needed: usize, have: usize) -> Error {
        rlwe::Error::Level { needed, have, top: self.context.params().top_level() }.into()
    }

    /// `x`, not due for a rescale, at `level`.
    fn lowered<'a>(&self, x: Held<'a, B>, level: usize) -> Result<Held<'a, B>> {
        if level == x.level() {
            return Ok(x);
        }
        if level > x.level() {
            return Err(self.no_level(level, x.level()));
        }
        let (context, params) = (self.context.rlwe(), self.context.params());
        if !self.auto() {
            let inner = x.inner().drop_to(context, level)?;
            let noise = inner.noise();
            return Ok(Held::Made(self.finish(inner, noise, x.scale().clone(), x.bound())?));
        }
        let (target, above) = (params.at(level)?, params.at(level + 1)?);
        let factor = target.scale.times(&above.dropped)?.over(x.scale())?.to_integer()?;
        let size = factor.to_f64().unwrap_or(f64::INFINITY);
        let raised = self.times_integer(x.inner().drop_to(context, level + 1)?, &factor)?;
        let noise = self.rescaled_noise(&raised)?;
        let inner = raised.mod_switch_to(context, level)?;
        // The true scale is S_l (1 + d) with |d| at most 1/2 over the factor.
        let deviation = Noise::bounded(0.6 / size).times(target.log2 + x.bound().log2());
        Ok(Held::Made(self.finish(inner, noise.plus(deviation), target.scale.clone(), x.bound())?))
    }

    /// Every component times a positive integer, certificate included.
    pub(super) fn times_integer(
        &self,
        ct: rlwe::Ciphertext<B, Ntt>,
        factor: &BigUint,
    ) -> Result<rlwe::Ciphertext<B, Ntt>> {
        let params = self.context.params().rlwe();
        let residues = params.ring().residues(params.level(ct.level())?, factor);
        let noise = ct.noise().times(factor.to_f64().unwrap_or(f64::INFINITY).log2());
        self.times_residues(ct, &residues, noise)
    }

    /// Every component times a constant given by its residues.
    pub(super) fn times_residues(
        &self,
        ct: rlwe::Ciphertext<B, Ntt>,
        residues: &[u64],
        noise: Noise,
    ) -> Result<rlwe::Ciphertext<B, Ntt>> {
        let params = self.context.params().rlwe();
        let (level, key) = (ct.level(), ct.key());
        let mut parts = ct.into_parts();
        for part in &mut parts {
            part.mul_scalar_assign(self.context.rlwe().backend(), residues)?;
        }
        Ok(rlwe::Ciphertext::new(params, parts, level, key, noise)?)
    }

    /// The certificate after dividing by the primes of the ciphertext's level.
    fn rescaled_noise(&self, ct: &rlwe::Ciphertext<B, Ntt>) -> Result<Noise> {
        let params = self.context.params();
        let rlwe = params.rlwe();
        let dropped = rlwe.ring().log2(rlwe.level(ct.level())?) - rlwe.ring().log2(rlwe.level(ct.level() - 1)?);
        let rounding = noise::rounded(params.n(), params.log_n(), ct.parts().len());
        Ok(ct.noise().times(-dropped).plus(rounding))
    }
}
