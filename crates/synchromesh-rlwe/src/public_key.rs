//! The public key and encryption: under it with noise scaled down by P, or under the secret key with a seed.

use std::sync::Arc;

use synchromesh_ring::sampler::{Purpose, Seed, SmallPoly};
use synchromesh_ring::scale::{Scale, ScaleSpec};
use synchromesh_ring::{Backend, Coeff, Cpu, IndexSet, Ntt, Poly, View, ViewMut};
use zeroize::Zeroize;

use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::domain::SwitchDomain;
use crate::error::Error;
use crate::noise::{self, Noise};
use crate::params::Params;
use crate::randomness::Randomness;
use crate::secret_key::{KeyId, SecretKey, SecretPoly, scaled_error, uniform};
use crate::spectrum;

/// (b, a) = (-a s + t e, a) modulo QP; a is expanded from a seed.
pub struct PublicKey<B: Backend = Cpu> {
    id: KeyId,
    params_digest: [u8; 32],
    seed: Seed,
    b: Poly<B, Ntt>,
    a: Poly<B, Ntt>,
}

impl<B: Backend> PublicKey<B> {
    /// Makes the public key of `secret`.
    ///
    /// # Errors
    /// [`Error::Entropy`] without randomness, [`Error::ParamsDiffer`] for a secret key of other parameters,
    /// [`Error::Security`], or when the device fails.
    pub fn generate(context: &Context<B>, secret: &SecretKey<B>, randomness: &mut Randomness) -> Result<Self, Error> {
        let params = context.params();
        secret.require_params(params)?;
        let root = randomness.next_seed()?;
        let keyed = params.keyed();
        params.require_secure(&keyed)?;
        let seed = root.derive("public key uniform", 0).published();
        let a = uniform(context, &keyed, &seed, Purpose::PublicKeyUniform, 0)?;
        let error = spectrum::even_error(
            params.error(),
            params.n(),
            &root.derive("public key error", 0),
            Purpose::PublicKeyError,
            0,
        )?;
        let mut b = scaled_error(context, &keyed, &error)?.into_ntt(context.backend())?;
        b.sub_assign(context.backend(), SecretPoly::new(secret.times(context, &a)?).poly())?;
        Ok(Self { id: secret.id(), params_digest: *params.digest(), seed, b, a })
    }

    /// The public key with these parts, as read from a file.
    ///
    /// # Errors
    /// [`Error::Ring`] when b is not over all of QP, [`Error::Security`] when QP is too large for N.
    pub fn from_parts(context: &Context<B>, id: KeyId, seed: Seed, b: Poly<B, Ntt>) -> Result<Self, Error> {
        let params = context.params();
        let keyed = params.keyed();
        b.require(&keyed)?;
        params.require_secure(&keyed)?;
        let a = uniform(context, &keyed, &seed, Purpose::PublicKeyUniform, 0)?;
        Ok(Self { id, params_digest: *params.digest(), seed, b, a })
    }

    /// The secret key it belongs to.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// The parameters it was made with.
    #[must_use]
    pub const fn params_digest(&self) -> &[u8; 32] {
        &self.params_digest
    }

    /// The public seed of a.
    #[must_use]
    pub const fn seed(&self) -> &Seed {
        &self.seed
    }

    /// b, in slots over QP.
    #[must_use]
    pub const fn b(&self) -> &Poly<B, Ntt> {
        &self.b
    }

    /// Encrypts `message` (a polynomial on the primes of `level`, in the ciphertext's own scaling): a ciphertext of
    /// zero modulo QP, divided by P, plus the message (ePrint 2021/204, section 3.1).
    ///
    /// # Errors
    /// [`Error::Level`], [`Error::ParamsDiffer`], [`Error::Entropy`], or when the device fails.
    pub fn encrypt<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        message: &Poly<B, Coeff>,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<B, D>, Error> {
        self.encrypt_over(context, message, level, context.params().p(), randomness)
    }

    /// As [`Self::encrypt`], with the special primes of the caller's choice in place of all; without any, the noise of
    /// the public key stays as it is.
    ///
    /// # Errors
    /// As [`Self::encrypt`], and [`Error::Ring`] for primes that are not special.
    pub fn encrypt_over<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        message: &Poly<B, Coeff>,
        level: usize,
        special: &IndexSet,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<B, D>, Error> {
        let params = context.params();
        params.require_digest(&self.params_digest)?;
        let primes = params.level(level)?;
        message.require(primes)?;
        params.p().rows(special)?;
        let seed = randomness.next_seed()?;
        let u = params.secret().sample(&seed, Purpose::EncryptionSecret, 0, params.n());
        let u = Multiplier::new(context, &u, primes, special)?;
        let mut parts = Vec::with_capacity(2);
        for (index, column) in [&self.b, &self.a].into_iter().enumerate() {
            let error = params.error().sample(&seed, Purpose::EncryptionError, index as u32, params.n());
            parts.push(u.part::<D>(context, column, &error, (index == 0).then_some(message))?);
        }
        let noise = context.fresh(fresh_noise(params, special));
        Ciphertext::new(params, parts, level, self.id, noise)
    }
}

/// The multiplier u of an encryption, in slots.
struct Multiplier<B: Backend> {
    /// u / P modulo the primes of the level, so that products by it need not be divided.
    divided: SecretPoly<B>,
    /// u modulo the primes of P, if there are any, and the division by P, rounded to a multiple of t apart.
    leaving: Option<(SecretPoly<B>, Arc<Scale<B>>)>,
}

impl<B: Backend> Multiplier<B> {
    fn new(context: &Context<B>, u: &SmallPoly, primes: &IndexSet, special: &IndexSet) -> Result<Self, Error> {
        let backend = context.backend();
        let slots = |x: Poly<B, Coeff>| Ok::<_, Error>(SecretPoly::new(x.into_ntt(backend)?));
        let mut divided = Poly::from_small(backend, primes, u)?;
        if special.is_empty() {
            return Ok(Self { divided: slots(divided)?, leaving: None });
        }
        let (all, t) = (primes.union(special), context.params().error_multiple());
        let scale = context.scale(ScaleSpec::switch(&all, primes, t))?;
        divided.mul_scalar_assign(backend, &scale.constants().factors)?;
        let leaving = slots(Poly::from_small(backend, special, u)?)?;
        Ok(Self { divided: slots(divided)?, leaving: Some((leaving, scale)) })
    }

    /// (u column + t error) / P and the message: what leaves P returns together with the error.
    fn part<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        column: &Poly<B, Ntt>,
        error: &SmallPoly,
        message: Option<&Poly<B, Coeff>>,
    ) -> Result<Poly<B, D>, Error> {
        let (backend, u) = (context.backend(), self.divided.poly());
        let mut rest = scaled_error(context, u.primes(), error)?;
        if let Some((u, scale)) = &self.leaving {
            rest.mul_scalar_assign(backend, &scale.constants().factors)?;
            let mut leaving = times_rows(backend, u.poly(), column, None)?.into_coeff(backend)?;
            let mut error = scaled_error(context, u.poly().primes(), error)?;
            leaving.add_assign(backend, &error)?;
            error.zeroize();
            scale.leave_into(backend, &leaving, &mut rest)?;
        }
        if let Some(m) = message {
            rest.add_assign(backend, m)?;
        }
        if D::NTT {
            let rest = rest.into_ntt(backend)?;
            return D::from_ntt(backend, times_rows(backend, u, column, Some(rest))?);
        }
        let mut sum = times_rows(backend, u, column, None)?.into_coeff(backend)?;
        sum.add_assign(backend, &rest)?;
        rest.zeroize();
        D::from_coeff(backend, sum)
    }
}

/// x times the rows of `column` that x has, added to what is there already.
fn times_rows<B: Backend>(
    backend: &B,
    x: &Poly<B, Ntt>,
    column: &Poly<B, Ntt>,
    onto: Option<Poly<B, Ntt>>,
) -> Result<Poly<B, Ntt>, Error> {
    let (primes, all) = (x.primes(), (0..x.primes().len()).collect::<Vec<usize>>());
    let rows = column.primes().rows(x.primes())?;
    let (x, column) = (View::new(x.buffer(), &all), View::new(column.buffer(), &rows));
    if let Some(mut sum) = onto {
        backend.mul_acc(primes.as_slice(), x, column, ViewMut::new(sum.buffer_mut(), &all))?;
        return Ok(sum);
    }
    let mut product = Poly::new(backend, primes)?;
    backend.mul_into(primes.as_slice(), x, column, ViewMut::new(product.buffer_mut(), &all))?;
    Ok(product)
}

/// The certificate of a ciphertext fresh from a public key: (e u + e_0 + e_1 s) / P and its rounding.
fn fresh_noise(params: &Params, special: &IndexSet) -> Noise {
    let public = params.public_noise();
    if special.is_empty() {
        return public;
    }
    public.times(-params.ring().log2(special)).plus_switching(params.rounding_noise(2))
}

impl<B: Backend> SecretKey<B> {
    /// Encrypts `message` (a polynomial on the primes of `level`) under the secret key: (-a s + t e + m, a), with a
    /// expanded from the seed returned beside it.
    ///
    /// # Errors
    /// [`Error::Level`], [`Error::ParamsDiffer`], [`Error::Entropy`], or when the device fails.
    pub fn encrypt<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        message: &Poly<B, Coeff>,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<(Ciphertext<B, D>, Seed), Error> {
        let params = context.params();
        self.require_params(params)?;
        let primes = params.level(level)?;
        message.require(primes)?;
        let backend = context.backend();
        let root = randomness.next_seed()?;
        let seed = root.derive("ciphertext uniform", 0).published();
        let error = params.error().sample(&root.derive("ciphertext error", 0), Purpose::EncryptionError, 0, params.n());
        let a = uniform(context, primes, &seed, Purpose::CiphertextUniform, 0)?;
        let mut body = scaled_error(context, primes, &error)?;
        body.add_assign(backend, message)?;
        let mut body = body.into_ntt(backend)?;
        body.sub_assign(backend, SecretPoly::new(self.times(context, &a)?).poly())?;
        let parts = vec![D::from_ntt(backend, body)?, D::from_ntt(backend, a)?];
        let noise = context.fresh(noise::secret(params.error().variance().sqrt()));
        Ok((Ciphertext::new(params, parts, level, self.id(), noise)?, seed))
    }
}
