//! Messages in shares: integer polynomials at one scale, of which all parties' and a public one add up to S z + e.

use num_bigint::{BigInt, BigUint};
use synchromesh_rlwe::flood::{self, POINT, Wide};
use synchromesh_rlwe::noise::{Noise, log2_add};
use synchromesh_rlwe::ring::sampler::Seed;
use synchromesh_rlwe::ring::{Coeff, Cpu, Ntt, Poly};
use synchromesh_rlwe::{self as rlwe, Operation};
use zeroize::Zeroizing;

use super::ciphertext::Ciphertext;
use super::context::Context;
use super::noise;
use super::scale::Scale;
use crate::error::{Error, Result};
use crate::opening::{self, Hiding, Opening};

/// A part of a message: integer coefficients at a scale. All parts of a message have the same scale, bound and error.
#[derive(Clone, Debug)]
pub struct Part {
    integers: Wide,
    scale: Scale,
    bound: f64,
    noise: Noise,
}

impl Part {
    /// The coefficients, of which those of all parts add up to the message's at its scale, over the integers.
    #[must_use]
    pub const fn integers(&self) -> &Wide {
        &self.integers
    }

    /// The scale.
    #[must_use]
    pub const fn scale(&self) -> &Scale {
        &self.scale
    }

    /// Largest modulus of a slot of the message.
    #[must_use]
    pub const fn bound(&self) -> f64 {
        self.bound
    }

    /// How far the sum of all parts is from the message at its scale.
    #[must_use]
    pub const fn noise(&self) -> Noise {
        self.noise
    }

    /// The sum of both, of messages at the same scale: a part of the sum of the messages.
    ///
    /// # Errors
    /// [`Error::Argument`] for another scale.
    pub fn plus(&self, other: &Self) -> Result<Self> {
        if self.scale != other.scale {
            let rule = format!("shares at the scales {} and {} do not add up", self.scale, other.scale);
            return Err(Error::Argument { rule });
        }
        Ok(Self {
            integers: self.integers.plus(&other.integers),
            scale: self.scale.clone(),
            bound: self.bound + other.bound,
            noise: self.noise.plus(other.noise),
        })
    }

    /// The quotient of the top level's scale and this one times 2^[`POINT`], to an integer.
    fn to_top(&self, context: &Context) -> Result<BigUint> {
        let params = context.params();
        let quotient = params.scale(params.top_level())?.over(&self.scale)?;
        quotient.times(&Scale::power_of_two(POINT))?.to_integer()
    }

    /// log2 of what rounding takes of one part at a root: half a coefficient, all of N, where there is anything to round.
    fn rounding(context: &Context, factor: &BigUint) -> Noise {
        if *factor == BigUint::from(1u32) << POINT {
            return Noise::ZERO;
        }
        Noise::at_most(f64::from(context.params().log_n()) - 1.0)
    }

    /// All of it in a hash.
    pub(crate) fn absorb(&self, hasher: &mut blake3::Hasher) {
        let noise = self.noise.certificate;
        hasher.update(format!("{:?} {:e} {:e} {:e}", self.scale, self.bound, noise.sigma, noise.remainder).as_bytes());
        for integer in self.integers.to_integers_vartime() {
            let bytes = BigInt::to_signed_bytes_le(&integer);
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(&bytes);
        }
    }
}

impl Context {
    /// See [`Shares`](crate::shares::Shares).
    pub(crate) fn sharing(&self, x: &Ciphertext, hiding: &Hiding, together: bool) -> Result<Opening<Ciphertext, Cpu>> {
        let (params, backend) = (self.params(), self.rlwe().backend());
        // Only what is put together is seen with its error.
        let revealed = if together { Some(self.hidden(x, hiding)?) } else { None };
        self.require_openable(x)?;
        let own = revealed.map(|(bits, _)| hiding.noise(params.rlwe(), bits));
        let noise = own.map_or(x.inner().noise(), |own| x.inner().noise().plus(own));
        let message = noise::phase(params, x.factor().log2_message, x.factor().noise);
        let bits = (message + hiding.bits()?).ceil().max(f64::from(flood::MIN_BITS));
        let all = hiding.together(bits, params.log_n());
        let needed = noise::flooded_phase(params, x.factor(), all);
        let room = noise::room(params, x.level())?;
        if needed >= room {
            let fits = |level: &usize| noise::room(params, *level).is_ok_and(|room| needed < room);
            let least = (x.level() + 1..=params.top_level()).find(fits);
            return Err(Error::NoRoomForShares { level: x.level(), needed, room, least });
        }
        let primes = self.primes_for(x, all)?;
        let [c0, c1] = [0, 1].map(|i| x.inner().parts()[i].restrict(backend, &primes));
        let (c0, c1) = (c0?.into_coeff(backend)?, c1?);
        Ok(Opening {
            ciphertext: x.duplicate(self)?,
            c0,
            c1,
            sigma_bits: bits as u32,
            multiple: 1u32.into(),
            own_bits: revealed.map(|(bits, _)| bits as u32),
            noise,
            error_bound: revealed.map_or_else(|| self.error_bound(x), |(_, off)| off),
            subject: opening::subject(self.rlwe(), opening::OPENED, x.inner())?,
        })
    }

    /// See [`Shares`](crate::shares::Shares).
    pub(crate) fn own_part(
        &self,
        opening: &Opening<Ciphertext, Cpu>,
        seed: &Seed,
    ) -> Result<(Part, Zeroizing<Poly<Cpu, Coeff>>)> {
        let (params, backend) = (self.params(), self.rlwe().backend());
        let mut own = Wide::gaussian(seed, opening.sigma_bits, params.n());
        let mut hides = own.to_poly(backend, params.rlwe().ring(), opening.c1.primes(), &1u32.into())?;
        hides.neg_assign(backend)?;
        if let Some(bits) = opening.own_bits {
            own = own.plus(&Wide::gaussian(&seed.derive("a part of a message", 0), bits, params.n()));
        }
        Ok((of(opening, own), hides))
    }

    /// See [`Shares`](crate::shares::Shares).
    pub(crate) fn public_part(&self, opening: &Opening<Ciphertext, Cpu>, phase: &Poly<Cpu, Coeff>) -> Result<Part> {
        Ok(of(opening, Wide::centred_vartime(self.rlwe().backend(), phase)?))
    }

    /// See [`Shares`](crate::shares::Shares).
    pub(crate) fn fresh_part(&self, part: &Part) -> Result<(Zeroizing<Poly<Cpu, Coeff>>, Noise)> {
        let (params, factor) = (self.params().rlwe(), part.to_top(self)?);
        let primes = params.level(params.top_level())?;
        let integers = part.integers.times(&factor);
        let message = integers.to_poly(self.rlwe().backend(), params.ring(), primes, &1u32.into())?;
        Ok((message, Part::rounding(self, &factor)))
    }

    /// See [`Shares`](crate::shares::Shares).
    pub(crate) fn whole(&self, sum: rlwe::Ciphertext<Cpu, Ntt>, public: &Part) -> Result<Ciphertext> {
        let (params, backend) = (self.params(), self.rlwe().backend());
        let (level, key, mut noise) = (sum.level(), sum.key(), sum.noise());
        let (message, rounding) = self.fresh_part(public)?;
        let mut parts = sum.into_parts();
        parts[0].add_assign(backend, &message.duplicate(backend)?.into_ntt(backend)?)?;
        let scale = params.scale(level)?;
        // The factor is off by 2^-121 of 1, which all of the message meets.
        let factor = scale.log2() - public.scale.log2();
        let largest = log2_add(public.scale.log2() + public.bound.log2(), noise::canonical(params, public.noise));
        noise = noise.plus(rounding).plus(public.noise.times(factor));
        noise = noise.plus(Noise::at_most(largest - f64::from(POINT) - 1.0));
        let inner = rlwe::Ciphertext::new(params.rlwe(), parts, level, key, noise)?;
        Ciphertext::checked(self, Operation::Encryption, inner, scale.clone(), public.bound)
    }
}

/// A part of what an opening is of.
fn of(opening: &Opening<Ciphertext, Cpu>, integers: Wide) -> Part {
    let (scale, bound) = (opening.ciphertext.scale().clone(), opening.ciphertext.bound());
    Part { integers, scale, bound, noise: opening.noise }
}
