//! Ciphertexts decomposed once, and rotated weighted sums of them divided down once (hoisting).
//!
//! With x_i decomposed, rot_g(sum_i f_i x_i) is one inner product for each term, a product with f_i modulo QP, and one
//! division by P and whatever primes the target lacks: the terms share the division, and it is merged with a modulus
//! switch or rescale.

use synchromesh_ring::{Backend, Ntt, Poly};

use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::domain::SwitchDomain;
use crate::error::Error;
use crate::key_switch::{Accumulator, Hoisted, Output};
use crate::noise::Noise;
use crate::operations::KeySwitching;
use crate::switch_key::Source;
use crate::wire::KeyId;

/// A ciphertext in slots, with its second component decomposed for any number of rotations.
pub struct HoistedCiphertext<B: Backend> {
    parts: [Poly<B, Ntt>; 2],
    digits: Option<Hoisted<B>>,
    params_digest: [u8; 32],
    key: KeyId,
    level: usize,
    noise: Noise,
}

impl<B: Backend> HoistedCiphertext<B> {
    /// Its level.
    #[must_use]
    pub const fn level(&self) -> usize {
        self.level
    }

    /// The secret key it is under.
    #[must_use]
    pub const fn key(&self) -> KeyId {
        self.key
    }

    /// The certificate of the ciphertext it was made from.
    #[must_use]
    pub const fn noise(&self) -> Noise {
        self.noise
    }

    fn require_params(&self, context: &Context<B>) -> Result<(), Error> {
        context.params().require_digest(&self.params_digest)
    }
}

/// A term of a rotated sum: a ciphertext, and the polynomial it is multiplied by, in slots on the primes of
/// [`KeySwitching::extended`]; none: 1.
pub type HoistedTerm<'a, B> = (&'a HoistedCiphertext<B>, Option<&'a Poly<B, Ntt>>);

impl<B: Backend> KeySwitching<B> {
    /// Decomposes a ciphertext for rotations; where `rotates` is false only the identity can be applied to it, and
    /// nothing is decomposed.
    ///
    /// # Errors
    /// [`Error::Components`], [`Error::KeysDiffer`], or when the device fails.
    pub fn hoisted<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        ct: &Ciphertext<B, D>,
        rotates: bool,
    ) -> Result<HoistedCiphertext<B>, Error> {
        ct.require_components(2)?;
        let (_, plan) = self.own(context, ct)?;
        let backend = context.backend();
        let digits = if rotates {
            let switcher = Self::switcher(context, plan, ct.level(), ct.level())?;
            Some(switcher.hoist(context, switcher.decompose(context, D::operand(&ct.parts()[1]))?)?)
        } else {
            None
        };
        let [c0, c1] = [0, 1].map(|i| D::to_ntt(backend, &ct.parts()[i]));
        let (params_digest, key, level, noise) = (*ct.params_digest(), ct.key(), ct.level(), ct.noise());
        Ok(HoistedCiphertext { parts: [c0?, c1?], digits, params_digest, key, level, noise })
    }

    /// x - y from their digits. A rotation of it adds the errors of two key switches.
    ///
    /// # Errors
    /// [`Error::Level`] for ciphertexts of different levels, [`Error::KeysDiffer`], [`Error::ParamsDiffer`], or when the
    /// device fails.
    pub fn hoisted_difference(
        &self,
        context: &Context<B>,
        x: &HoistedCiphertext<B>,
        y: &HoistedCiphertext<B>,
    ) -> Result<HoistedCiphertext<B>, Error> {
        x.require_params(context)?;
        y.require_params(context)?;
        x.key.require(y.key)?;
        if x.level != y.level {
            return Err(Error::Level { needed: x.level, have: y.level, top: context.params().top_level() });
        }
        let (_, plan) = self.under(x.key, x.level)?;
        let switcher = Self::switcher(context, plan, x.level, x.level)?;
        let digits = match (&x.digits, &y.digits) {
            (Some(a), Some(b)) => Some(switcher.subtract(context, a, b)?),
            _ => None,
        };
        let part = |i: usize| -> Result<Poly<B, Ntt>, Error> {
            let mut part = x.parts[i].duplicate(context.backend())?;
            part.sub_assign(context.backend(), &y.parts[i])?;
            Ok(part)
        };
        let parts = [part(0)?, part(1)?];
        let (params_digest, key, level) = (x.params_digest, x.key, x.level);
        Ok(HoistedCiphertext { parts, digits, params_digest, key, level, noise: x.noise.plus(y.noise) })
    }

    /// The components of rot(sum_i f_i x_i) with X -> X^galois for rot, divided down to level `to` in the same step;
    /// the scheme answers for the certificate.
    ///
    /// # Errors
    /// [`Error::Argument`] for an empty list or a rotation of what was not decomposed, [`Error::Level`] for terms of
    /// different levels, [`Error::MissingKey`], [`Error::KeysDiffer`], [`Error::ParamsDiffer`], or when the device fails.
    pub fn rotated_sum<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        terms: &[HoistedTerm<'_, B>],
        galois: usize,
        to: usize,
    ) -> Result<[Poly<B, D>; 2], Error> {
        let Some((first, _)) = terms.first() else {
            return Err(Error::argument("a rotated sum needs at least one term"));
        };
        let (keys, plan) = self.under(first.key, first.level)?;
        let switcher = Self::switcher(context, plan, first.level, first.level)?;
        let key = if galois == 1 { None } else { Some(keys.prepared(context, Source::Galois(galois), plan)?) };
        let mut sum: Option<Accumulator<B>> = None;
        for (term, factor) in terms {
            term.require_params(context)?;
            first.key.require(term.key)?;
            if term.level != first.level {
                let top = context.params().top_level();
                return Err(Error::Level { needed: first.level, have: term.level, top });
            }
            let mut own = match (&key, &term.digits) {
                (None, _) => {
                    let mut own = switcher.zero(context)?;
                    switcher.add_lifted(context, &mut own, 1, &term.parts[1])?;
                    own
                }
                (Some(key), Some(digits)) => {
                    switcher.in_base(context, switcher.inner_product(context, digits, key, None)?)?
                }
                (Some(_), None) => {
                    return Err(Error::argument("a ciphertext was hoisted for no rotation, and rotated"));
                }
            };
            switcher.add_lifted(context, &mut own, 0, &term.parts[0])?;
            sum = Some(match (factor, sum) {
                (Some(factor), sum) => switcher.multiply(context, factor, &own, sum)?,
                (None, None) => own,
                (None, Some(mut sum)) => {
                    switcher.add(context, &mut sum, &own, None)?;
                    sum
                }
            });
        }
        let down = Self::switcher(context, plan, first.level, to)?;
        let total = match sum {
            Some(sum) => sum,
            None => switcher.zero(context)?,
        };
        let output = Output { ntt: D::ntt_primes(down.target()), galois };
        Ok(down.mod_down(context, total, [None, None], &output)?.map(D::take))
    }
}
