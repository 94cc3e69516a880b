//! BFV and BGV as two encodings of one scheme (ePrint 2021/204, appendix A): conversion both ways, and mixed products.
//!
//! A BFV phase is x = (Q m + E) / t for an integer E = t e, so that t x = E mod Q and E = -Q m mod t: multiplied by t,
//! a BFV ciphertext is a BGV ciphertext of m with the correction factor -Q mod t. Its error is (E - \[E\]_t) / t, which
//! differs from e by at most 1/2. Multiplication by t^-1 mod Q leads back. Both are products by a public constant
//! modulo each prime, so a ciphertext converted there and back is the same ciphertext, bit for bit.
//!
//! A BGV ciphertext whose factor f is not -Q is first multiplied by -Q/f mod t, centred. That costs up to log2(t/2)
//! bits of noise; next to nothing where it is merged with a modulus switch ([`Bridge::to_bfv_at`]), and nothing at all
//! where the BGV context tracks factors in the way of Gentry, Halevi and Smart ([`super::Factors::Ghs`]): there fresh
//! ciphertexts have the factor -Q at every level and keep it when their modulus is switched.
//!
//! **Keys.** Both contexts work with one secret, under one key id ([`Bridge::secret_to_bgv`]). A switch key of BFV has
//! errors e, one of BGV t e; neither may be given to the other scheme's evaluator, which would refuse its parameters:
//! BGV's rounding does not keep e modulo t, and BFV would get an error t times as large as it should. But either kind
//! serves both schemes by way of a conversion: to relinearise or rotate a BGV ciphertext with BFV keys, convert it,
//! switch, and convert it back. So one set of evaluation keys and one public key are enough.

use std::sync::Arc;

use num_bigint::BigUint;
use num_traits::One;
use synchromesh_rlwe::noise::Noise;
use synchromesh_rlwe::ring::rns::inverse_residues;
use synchromesh_rlwe::ring::{Backend, Coeff, Cpu, Domain, Ntt, Poly};
use synchromesh_rlwe::{Operation, SecretKey, SwitchDomain};

use super::factor::Factor;
use super::switching::Move;
use super::{Ciphertext, Context, ParamsLiteral, PrimeLists};
use crate::bfv::{self, Bfv};
use crate::error::{Error, Result};
use crate::exact::{Scheme, log2_biguint};

/// A BFV and a BGV context over the same primes, and what takes ciphertexts from one to the other.
pub struct Bridge<B: Backend = Cpu> {
    bfv: Arc<bfv::Context<B>>,
    bgv: Arc<Context<B>>,
    levels: Vec<Level>,
}

/// Constants of one level.
struct Level {
    /// t modulo each prime.
    up: Vec<u64>,
    /// t^-1 modulo each prime.
    down: Vec<u64>,
    /// -Q mod t.
    factor: Factor,
}

/// The literal of BGV parameters that a bridge joins with these BFV parameters: all the same but the second base.
#[must_use]
pub fn bridged_literal(params: &bfv::Params) -> ParamsLiteral {
    let chosen = params.rlwe().literal();
    let primes = PrimeLists { q: chosen.q.clone(), p: chosen.p.clone(), aux: Vec::new() };
    ParamsLiteral { primes: Some(primes), ..params.literal().clone() }
}

/// -Q_l mod t.
pub(super) fn lossless_factor(params: &super::Params, level: usize) -> Result<Factor> {
    let t = params.t().value();
    Ok(Factor::new(t - params.modulus(level)? % t, t))
}

impl<B: Backend> Bridge<B> {
    /// Joins two contexts of the same degree, plaintext modulus and levels.
    ///
    /// # Errors
    /// [`Error::Argument`] when one of these differs.
    pub fn new(bfv: &Arc<bfv::Context<B>>, bgv: &Arc<Context<B>>) -> Result<Self> {
        let (left, right) = (bfv.params(), bgv.params());
        let differ = |what: &str, a: String, b: String| {
            Error::argument(format!("a bridge joins contexts of the same {what}: bfv has {a}, bgv has {b}"))
        };
        if left.n() != right.n() {
            return Err(differ("degree", left.n().to_string(), right.n().to_string()));
        }
        if left.t() != right.t() {
            return Err(differ("plaintext modulus", left.t().to_string(), right.t().to_string()));
        }
        let primes = |literal: &synchromesh_rlwe::params::ParamsLiteral| format!("{:?} + {:?}", literal.q, literal.p);
        let [a, b] = [left.rlwe().literal(), right.rlwe().literal()].map(primes);
        if a != b {
            return Err(differ("primes", a, b));
        }
        // One secret key serves both contexts: it is as secure as the weaker one demands.
        let [a, b] = [left.rlwe(), right.rlwe()].map(|params| format!("{:?}", params.literal().security));
        if a != b {
            return Err(differ("security", a, b));
        }
        let levels = |top: usize, level: &dyn Fn(usize) -> Result<Vec<usize>>| (0..=top).map(level).collect();
        let of_bfv: Result<Vec<_>> = levels(left.top_level(), &|l| Ok(left.rlwe().level(l)?.as_slice().to_vec()));
        let of_bgv: Result<Vec<_>> = levels(right.top_level(), &|l| Ok(right.rlwe().level(l)?.as_slice().to_vec()));
        let (of_bfv, of_bgv) = (of_bfv?, of_bgv?);
        if of_bfv != of_bgv {
            return Err(differ("levels", format!("{of_bfv:?}"), format!("{of_bgv:?}")));
        }
        let levels = (0..=right.top_level()).map(|level| Level::new(right, level)).collect::<Result<_>>()?;
        Ok(Self { bfv: Arc::clone(bfv), bgv: Arc::clone(bgv), levels })
    }

    /// The BFV context.
    #[must_use]
    pub const fn bfv(&self) -> &Arc<bfv::Context<B>> {
        &self.bfv
    }

    /// The BGV context.
    #[must_use]
    pub const fn bgv(&self) -> &Arc<Context<B>> {
        &self.bgv
    }

    /// The same secret key for the BGV context.
    ///
    /// # Errors
    /// When the device fails.
    pub fn secret_to_bgv(&self, secret: &SecretKey<B>) -> Result<SecretKey<B>> {
        Ok(SecretKey::from_small(self.bgv.rlwe(), secret.id(), secret.small().clone())?)
    }

    /// The same secret key for the BFV context.
    ///
    /// # Errors
    /// When the device fails.
    pub fn secret_to_bfv(&self, secret: &SecretKey<B>) -> Result<SecretKey<B>> {
        Ok(SecretKey::from_small(self.bfv.rlwe(), secret.id(), secret.small().clone())?)
    }

    /// The BGV ciphertext of the same message, with the factor -Q mod t. One transform and one product a limb.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::ParamsDiffer`] for a ciphertext of other parameters,
    /// [`synchromesh_rlwe::Error::Noise`] when its certificate leaves no room.
    pub fn to_bgv(&self, from: &bfv::Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.bfv.params().rlwe().require_digest(from.inner().params_digest())?;
        let level = &self.levels[from.level()];
        let (source, target) = (self.bfv.backend(), self.bgv.backend());
        let convert = |part: &Poly<B, Coeff>| -> Result<Poly<B, Ntt>> {
            let mut part = part.duplicate(source)?;
            part.mul_scalar_assign(source, &level.up)?;
            carry(source, target, part.into_ntt(source)?)
        };
        let parts = from.inner().parts().iter().map(convert).collect::<Result<_>>()?;
        let noise = from.noise().plus(Noise::bounded(0.5));
        let params = self.bgv.params();
        let inner = synchromesh_rlwe::Ciphertext::new(params.rlwe(), parts, from.level(), from.inner().key(), noise)?;
        Ciphertext::new(inner, level.factor.clone()).certified(&self.bgv, Operation::Conversion)
    }

    /// The BFV ciphertext of the same message at the same level.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::ParamsDiffer`] for a ciphertext of other parameters,
    /// [`synchromesh_rlwe::Error::Noise`] when its factor is not -Q mod t and correcting it takes more noise than there
    /// is room for.
    pub fn to_bfv(&self, from: &Ciphertext<B>) -> Result<bfv::Ciphertext<B>> {
        self.to_bfv_at(from, from.level())
    }

    /// The BFV ciphertext of the same message at `level`: the factor is corrected before the modulus switch, which
    /// divides what that costs.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] above the ciphertext's level, and as [`Self::to_bfv`].
    pub fn to_bfv_at(&self, from: &Ciphertext<B>, level: usize) -> Result<bfv::Ciphertext<B>> {
        self.bgv.params().rlwe().require_digest(from.inner().params_digest())?;
        if level > from.level() {
            let top = self.bgv.params().top_level();
            return Err(synchromesh_rlwe::Error::Level { needed: level, have: from.level(), top }.into());
        }
        let constants = &self.levels[level];
        let corrected = Move::to_factor(&self.bgv, from, level, &constants.factor)?.apply(&self.bgv, from)?;
        let (source, target) = (self.bgv.backend(), self.bfv.backend());
        let convert = |part: &Poly<B, Ntt>| -> Result<Poly<B, Coeff>> {
            let mut part = part.duplicate(source)?;
            part.mul_scalar_assign(source, &constants.down)?;
            carry(source, target, part.into_coeff(source)?)
        };
        let parts = corrected.inner().parts().iter().map(convert).collect::<Result<_>>()?;
        let noise = corrected.noise().plus(Noise::bounded(0.5));
        let params = self.bfv.params();
        let inner = synchromesh_rlwe::Ciphertext::new(params.rlwe(), parts, level, from.inner().key(), noise)?;
        bfv::Ciphertext::new(inner, ()).certified(&self.bfv, Operation::Conversion)
    }

    /// The product of a BFV and a BGV ciphertext (LSD x MSD): a BFV ciphertext of three components.
    ///
    /// With phases (Q/t) m_1 + e_1 and m_2 + t e_2 the product of phases modulo Q is (Q/t) m_1 m_2 plus the error
    /// e_1 (m_2 + t e_2): the noise of BGV, and neither a second base nor a scaling, so 7 transforms a limb against 14.
    /// The BGV operand's factor is taken out first. That costs nothing for a factor of 1, that of a ciphertext fresh at
    /// the top level, next to nothing where its modulus is switched on the way, and up to log2(t/2) bits elsewhere.
    /// For a BGV result, convert the BFV operand and multiply there.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Components`] unless both operands have two components,
    /// [`synchromesh_rlwe::Error::KeysDiffer`] for different secrets, [`synchromesh_rlwe::Error::ParamsDiffer`] for
    /// ciphertexts of other contexts, [`synchromesh_rlwe::Error::Noise`] when the product could decrypt wrongly.
    pub fn mul(&self, msd: &bfv::Ciphertext<B>, lsd: &Ciphertext<B>) -> Result<bfv::Ciphertext<B>> {
        self.bfv.params().rlwe().require_digest(msd.inner().params_digest())?;
        self.bgv.params().rlwe().require_digest(lsd.inner().params_digest())?;
        msd.inner().require_components(2)?;
        lsd.inner().require_components(2)?;
        msd.inner().key().require(lsd.inner().key())?;
        let level = msd.level().min(lsd.level());
        let one = Factor::new(BigUint::one(), self.bgv.params().t().value());
        let lsd = Move::to_factor(&self.bgv, lsd, level, &one)?.apply(&self.bgv, lsd)?;
        let switched = match msd.level() == level {
            true => None,
            false => Some(Bfv::mod_switch_to(&self.bfv, msd, level)?.certified(&self.bfv, Operation::Descent)?),
        };
        let msd = switched.as_ref().unwrap_or(msd);
        let (params, backend) = (self.bfv.params(), self.bfv.backend());
        let x = msd.inner().parts().iter().map(|p| Ok(Coeff::to_ntt(backend, p)?)).collect::<Result<Vec<_>>>()?;
        let bring = |p: &Poly<B, Ntt>| carry(self.bgv.backend(), backend, p.duplicate(self.bgv.backend())?);
        let y = lsd.inner().parts().iter().map(bring).collect::<Result<Vec<_>>>()?;
        let products = Poly::tensor(backend, [&x[0], &x[1]], [&y[0], &y[1]])?;
        let parts = products.into_iter().map(|p| Ok(p.into_coeff(backend)?)).collect::<Result<_>>()?;
        let noise = mixed_product(params, msd.noise(), lsd.noise());
        let inner = synchromesh_rlwe::Ciphertext::new(params.rlwe(), parts, level, msd.inner().key(), noise)?;
        bfv::Ciphertext::new(inner, ()).certified(&self.bfv, Operation::Product)
    }
}

impl Level {
    fn new(params: &super::Params, level: usize) -> Result<Self> {
        let (ring, primes, t) = (params.rlwe().ring(), params.rlwe().level(level)?, params.t().value());
        Ok(Self {
            up: ring.residues(primes, t),
            down: inverse_residues(ring, primes, t)?,
            factor: lossless_factor(params, level)?,
        })
    }
}

/// e_1 (m_2 + t e_2) where |m_2| <= t/2.
fn mixed_product(params: &bfv::Params, msd: Noise, lsd: Noise) -> Noise {
    let log2_t = log2_biguint(params.t().value());
    let errors = msd.product(lsd, params.log_n(), false).times(log2_t);
    msd.times_message(params.log_n(), log2_t - 1.0).plus(errors)
}

/// A polynomial in the memory of another context.
fn carry<B: Backend, D: Domain>(source: &B, target: &B, poly: Poly<B, D>) -> Result<Poly<B, D>> {
    Ok(Poly::from_words(target, poly.primes(), &poly.to_words(source)?)?)
}
