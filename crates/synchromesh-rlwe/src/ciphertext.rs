//! A ciphertext of two or three components at a level, with the key it is under and its noise certificate.

use num_bigint::BigUint;
use num_traits::ToPrimitive;
use synchromesh_ring::scale::ScaleSpec;
use synchromesh_ring::{Backend, IndexSet, Poly};

use crate::context::Context;
use crate::domain::SwitchDomain;
use crate::error::Error;
use crate::noise::Noise;
use crate::params::Params;
use crate::wire::KeyId;

/// c_0 + c_1 s (+ c_2 s^2) = message + t e modulo the primes of its level.
pub struct Ciphertext<B: Backend, D: SwitchDomain> {
    parts: Vec<Poly<B, D>>,
    level: usize,
    key: KeyId,
    params_digest: [u8; 32],
    noise: Noise,
}

impl<B: Backend, D: SwitchDomain> Ciphertext<B, D> {
    /// A ciphertext from its components.
    ///
    /// # Errors
    /// [`Error::Components`] unless there are 2 or 3, [`Error::Ring`] when one is not on the primes of `level`.
    pub fn new(params: &Params, parts: Vec<Poly<B, D>>, level: usize, key: KeyId, noise: Noise) -> Result<Self, Error> {
        if !(2..=3).contains(&parts.len()) {
            return Err(Error::Components { expected: 2, got: parts.len() });
        }
        for part in &parts {
            part.require(params.level(level)?)?;
        }
        Ok(Self { parts, level, key, params_digest: *params.digest(), noise })
    }

    /// The components c_0, c_1 (, c_2).
    #[must_use]
    pub fn parts(&self) -> &[Poly<B, D>] {
        &self.parts
    }

    /// The components, by value.
    #[must_use]
    pub fn into_parts(self) -> Vec<Poly<B, D>> {
        self.parts
    }

    /// Rescales or modulus switches that remain.
    #[must_use]
    pub const fn level(&self) -> usize {
        self.level
    }

    /// The secret key it is under.
    #[must_use]
    pub const fn key(&self) -> KeyId {
        self.key
    }

    /// The parameters it was made with.
    #[must_use]
    pub const fn params_digest(&self) -> &[u8; 32] {
        &self.params_digest
    }

    /// Its error.
    #[must_use]
    pub const fn noise(&self) -> Noise {
        self.noise
    }

    /// The same ciphertext, taken to have this error; whoever says so answers for it.
    #[must_use]
    pub const fn assume_noise(mut self, noise: Noise) -> Self {
        self.noise = noise;
        self
    }

    /// Fails unless `self` and `other` are of one key, one set of parameters and one level.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`], [`Error::KeysDiffer`] or [`Error::Level`].
    pub fn require_same(&self, params: &Params, other: &Self) -> Result<(), Error> {
        params.require_digest(&self.params_digest)?;
        params.require_digest(&other.params_digest)?;
        self.key.require(other.key)?;
        if self.level == other.level {
            return Ok(());
        }
        Err(Error::Level { needed: self.level, have: other.level, top: params.top_level() })
    }

    /// Fails unless there are `expected` components.
    ///
    /// # Errors
    /// [`Error::Components`].
    pub const fn require_components(&self, expected: usize) -> Result<(), Error> {
        if self.parts.len() == expected {
            return Ok(());
        }
        Err(Error::Components { expected, got: self.parts.len() })
    }

    /// A copy.
    ///
    /// # Errors
    /// When the device has no memory left.
    pub fn duplicate(&self, context: &Context<B>) -> Result<Self, Error> {
        let parts = self.parts.iter().map(|p| Ok(p.duplicate(context.backend())?)).collect::<Result<_, Error>>()?;
        Ok(Self { parts, ..*self })
    }

    /// self += other, or self -= other.
    ///
    /// # Errors
    /// As [`Self::require_same`].
    pub fn add_assign(&mut self, context: &Context<B>, other: &Self, subtract: bool) -> Result<(), Error> {
        self.require_same(context.params(), other)?;
        let backend = context.backend();
        for (x, y) in self.parts.iter_mut().zip(&other.parts) {
            if subtract {
                x.sub_assign(backend, y)?;
            } else {
                x.add_assign(backend, y)?;
            }
        }
        self.append_rest(context, other, subtract)
    }

    /// self + other, or self - other.
    ///
    /// # Errors
    /// As [`Self::require_same`].
    pub fn sum(&self, context: &Context<B>, other: &Self, subtract: bool) -> Result<Self, Error> {
        if subtract {
            let mut difference = self.duplicate(context)?;
            difference.add_assign(context, other, true)?;
            return Ok(difference);
        }
        self.require_same(context.params(), other)?;
        let backend = context.backend();
        let part = |(i, x): (usize, &Poly<B, D>)| match other.parts.get(i) {
            Some(y) => Ok(x.sum(backend, y)?),
            None => Ok(x.duplicate(backend)?),
        };
        let parts = self.parts.iter().enumerate().map(part).collect::<Result<_, Error>>()?;
        let mut sum = Self { parts, ..*self };
        sum.append_rest(context, other, false)?;
        Ok(sum)
    }

    /// A sum of which the components are there that both operands have: those that only the other has, and its error.
    fn append_rest(&mut self, context: &Context<B>, other: &Self, subtract: bool) -> Result<(), Error> {
        for y in &other.parts[self.parts.len().min(other.parts.len())..] {
            let mut y = y.duplicate(context.backend())?;
            if subtract {
                y.neg_assign(context.backend())?;
            }
            self.parts.push(y);
        }
        self.noise = self.noise.sum(other.noise);
        Ok(())
    }

    /// self = -self.
    ///
    /// # Errors
    /// When the device fails.
    pub fn neg_assign(&mut self, context: &Context<B>) -> Result<(), Error> {
        self.parts.iter_mut().try_for_each(|p| Ok(p.neg_assign(context.backend())?))
    }

    /// c_0 += a polynomial: a plaintext in the ciphertext's own scaling.
    ///
    /// # Errors
    /// [`Error::Ring`] when it is not on the primes of this level.
    pub fn add_constant_assign(&mut self, context: &Context<B>, m: &Poly<B, D>) -> Result<(), Error> {
        Ok(self.parts[0].add_assign(context.backend(), m)?)
    }

    /// The ciphertext modulo the primes of a lower level, divided by the primes dropped and rounded
    /// (ePrint 2023/1642, section 2.7).
    ///
    /// The certificate shrinks by the dropped primes and gains the rounding error; a BGV message changes by their
    /// inverse modulo t, which the scheme above keeps track of.
    ///
    /// # Errors
    /// [`Error::Level`] unless `level` is below this one's.
    pub fn mod_switch_to(&self, context: &Context<B>, level: usize) -> Result<Self, Error> {
        let params = context.params();
        if level >= self.level {
            return Err(Error::Level { needed: level.saturating_add(1), have: self.level, top: params.top_level() });
        }
        let (from, to) = (params.level(self.level)?, params.level(level)?);
        let scale = context.scale(ScaleSpec::switch(from, to, params.error_multiple()))?;
        let scaled = |p| D::scale(context.backend(), &scale, p);
        let parts = self.parts.iter().map(scaled).collect::<Result<_, _>>()?;
        let dropped = params.ring().log2(from) - params.ring().log2(to);
        let noise = self.noise.times(-dropped).plus_switching(params.rounding_noise(self.parts.len()));
        Ok(Self { parts, level, noise, ..*self })
    }

    /// The ciphertext at a lower level, times `factor` over the quotient of the moduli of `through` and that level: the
    /// primes outside `through` are dropped without dividing, then one scaling multiplies and divides.
    ///
    /// For a factor near that quotient the phase keeps its size: a modulus switch to a level whose primes are not among
    /// this one's, at any scale.
    ///
    /// # Errors
    /// [`Error::Level`] unless `level` is below this one's, [`Error::Ring`] for a prime in `through` that is not active.
    pub fn scale_to(
        &self,
        context: &Context<B>,
        through: &IndexSet,
        factor: &BigUint,
        level: usize,
    ) -> Result<Self, Error> {
        let params = context.params();
        if level >= self.level {
            return Err(Error::Level { needed: level.saturating_add(1), have: self.level, top: params.top_level() });
        }
        let to = params.level(level)?;
        let spec = ScaleSpec { numerator: factor.clone(), ..ScaleSpec::switch(through, to, params.error_multiple()) };
        let scale = context.scale(spec)?;
        let scaled = |p: &Poly<B, D>| D::scale(context.backend(), &scale, &p.restrict(context.backend(), through)?);
        let parts = self.parts.iter().map(scaled).collect::<Result<_, _>>()?;
        let divided = params.ring().log2(through) - params.ring().log2(to);
        let size = factor.to_f64().unwrap_or(f64::INFINITY).log2();
        let noise = self.noise.times(size - divided).plus_switching(params.rounding_noise(self.parts.len()));
        Ok(Self { parts, level, noise, ..*self })
    }

    /// The same integers modulo fewer primes, without dividing.
    ///
    /// # Errors
    /// [`Error::Level`] unless `level` is at most this one's.
    pub fn drop_to(&self, context: &Context<B>, level: usize) -> Result<Self, Error> {
        let params = context.params();
        if level > self.level {
            return Err(Error::Level { needed: level, have: self.level, top: params.top_level() });
        }
        let primes = params.level(level)?;
        let restrict = |p: &Poly<B, D>| Ok(p.restrict(context.backend(), primes)?);
        let parts = self.parts.iter().map(restrict).collect::<Result<_, Error>>()?;
        Ok(Self { parts, level, ..*self })
    }
}
