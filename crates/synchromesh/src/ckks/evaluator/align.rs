//! Scales and levels: rescaling, and bringing operands to one level at one exact scale.

use num_traits::ToPrimitive;
use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::ring::{Backend, IndexSet, Ntt, Ring};
use synchromesh_rlwe::{Noise, Operation};

use super::{Evaluator, Held};
use crate::ckks::ciphertext::Ciphertext;
use crate::ckks::lineage::Lineage;
use crate::ckks::scale::Scale;
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
        let inner = x.inner().mod_switch_to(self.context.rlwe(), x.level() - 1)?;
        let noise = inner.noise();
        let rounding = params.rlwe().rounding_noise(x.inner().parts().len());
        let beside = x.beside().map(|b| b.with(b.noise.times(-dropped.log2()).plus_switching(rounding)));
        let made =
            self.finish(Operation::Descent, &[x.parent()], inner, noise, x.scale().over(&dropped)?, x.bound())?;
        self.settled(made.with_beside(beside))
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
    /// message enters the certificate. In manual mode limbs are dropped and the scale stays; where the lower level has
    /// primes that this one lacks, it takes a constant as in automatic mode.
    ///
    /// # Errors
    /// [`rlwe::Error::Level`] when `level` is above the ciphertext's, [`rlwe::Error::Noise`].
    pub fn mod_switch_to(&self, x: &Ciphertext<B>, level: usize) -> Result<Ciphertext<B>> {
        let from = [x.parent()];
        let made = self.brought_to(x, level)?;
        let made = made.with_lineage(Lineage::of(Operation::Descent, &from));
        self.record_at_most(&from, &made)?;
        Ok(made)
    }

    /// As [`Self::mod_switch_to`], in the place of `x`: nothing that the circuit asks for.
    pub(super) fn brought_to(&self, x: &Ciphertext<B>, level: usize) -> Result<Ciphertext<B>> {
        self.require_own(x)?;
        self.settled(self.lowered(self.settle(x)?, level)?.take(&self.context)?)
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
    pub(super) fn lowered<'a>(&self, x: Held<'a, B>, level: usize) -> Result<Held<'a, B>> {
        if level == x.level() {
            return Ok(x);
        }
        if level > x.level() {
            return Err(self.no_level(level, x.level()));
        }
        let (context, params) = (self.context.rlwe(), self.context.params());
        let ring = params.rlwe().ring();
        let [active, to, next] = [x.level(), level, level + 1].map(|l| params.rlwe().level(l));
        let (active, to, next) = (active?, to?, next?);
        if !self.auto() && to.without(active).is_empty() {
            let inner = x.inner().drop_to(context, level)?;
            let noise = inner.noise();
            let inner = inner.assume_noise(noise);
            let made = Ciphertext::checked(&self.context, Operation::Descent, inner, x.scale().clone(), x.bound())?;
            return Ok(Held::Made(made.standing_for(&x)));
        }
        let target = if self.auto() { &params.at(level)?.scale } else { x.scale() };
        let through = through(ring, active, to, next);
        let product = |set: &IndexSet| Scale::product(set.iter().map(|i| ring.modulus(i).value()));
        let quotient = product(&through.without(to))?.over(&product(&to.without(&through))?)?;
        let factor = target.times(&quotient)?.over(x.scale())?.to_integer()?;
        let size = factor.to_f64().unwrap_or(f64::INFINITY);
        let down = |noise: Noise| noise.times(size.log2()).times(-(ring.log2(&through) - ring.log2(to)));
        let noise = down(x.inner().noise());
        let rounding = params.rlwe().rounding_noise(x.inner().parts().len());
        let beside = x.beside().map(|b| b.with(down(b.noise).plus_switching(rounding)));
        let inner = x.inner().scale_to(context, &through, &factor, level)?;
        // The true scale is the target's times 1 + d with |d| at most 1/2 over the factor.
        let log2 = if self.auto() { params.at(level)?.log2 } else { x.log2_scale() };
        let deviation = Noise::bounded(0.6 / size).times(log2 + x.bound().log2());
        let noise = noise.plus_switching(rounding).plus(deviation);
        let (inner, scale) = (inner.assume_noise(noise), target.clone());
        let made = Ciphertext::checked(&self.context, Operation::Descent, inner, scale, x.bound())?;
        Ok(Held::Made(made.standing_for(&x).with_beside(beside)))
    }

    /// Every component times a constant given by its residues.
    pub(crate) fn times_residues(
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
}

/// The primes through which a ciphertext on `active` goes down to the primes `to` of some level, `next` being those of
/// the level above that: what both have of the active ones, and more until there are as many bits as `next` has, so
/// that the constant it is multiplied by is as large as a level.
fn through(ring: &Ring, active: &IndexSet, to: &IndexSet, next: &IndexSet) -> IndexSet {
    let wanted = ring.log2(next) - 0.5;
    let mut kept: IndexSet = active.intersection(&to.union(next));
    for i in active.without(&kept).iter() {
        if ring.log2(&kept) >= wanted {
            break;
        }
        kept = active.iter().filter(|&j| j == i || kept.contains(j)).collect();
    }
    kept
}
