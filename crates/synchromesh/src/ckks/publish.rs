//! Release of decrypted values: noise of known width hides what the error says about the key (Li and Micciancio,
//! ePrint 2020/1533; Li, Micciancio, Schultz and Sorrell, ePrint 2022/816).
//!
//! The error of a ciphertext has a 2-norm of at most C, its bound in the canonical norm, as |e|_2 is the root mean
//! square of the |e(zeta)|. A Gaussian of width sigma = sqrt(12 shares) 2^(s/2) C on every coefficient then makes the
//! released values as good as those of the exact result with the same noise: `shares` releases under one key together
//! cost less than s bits count. C is the certificate's, for any messages within their bounds, and needs no second run.
//!
//! A ciphertext has one noise for each width sigma = 2^k, whatever was asked for to come to it: that of the width below
//! plus noise of the variance that is missing, 3 4^(k-1), all parts independent and pseudo-random functions of the key, the
//! ciphertext's components and k ([`flood::nested`]). So a release of width 2^k' > 2^k is what anyone can compute from the
//! release of width 2^k by adding noise of his own: several of them together say what the narrowest says, and no average
//! of theirs has less noise than that.

use synchromesh_rlwe::ring::{Backend, Coeff, IndexSet, Ntt, Poly};
use synchromesh_rlwe::{self as rlwe, KeyId, Operation, SecretKey, flood};
use zeroize::Zeroizing;

use super::ciphertext::Ciphertext;
use super::context::Context;
use super::{decode, noise};
use crate::embedding::Complex64;
use crate::error::{Error, Result};
pub use crate::opening::LEAST_SECURITY;
use crate::opening::{self, Hiding, Opening};

/// What a release must satisfy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Release {
    /// Bits of the declared bound on the message that must be right in every slot.
    pub precision: f64,
    /// Releases under one secret key, this one and all others, at most.
    pub shares: u64,
    /// Statistical security s in bits, 30 or more.
    pub security: u32,
}

/// Values that may be shown to others.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// All N/2 slots.
    pub values: Vec<Complex64>,
    /// Bits of the bound on the message that are right in every slot, noise included.
    pub precision: f64,
    /// log2 of the width of the noise on each coefficient of the phase.
    pub sigma_bits: u32,
}

impl<B: Backend> Context<B> {
    /// Decrypts for others: the values with noise that is wide enough to hide the error.
    ///
    /// The noise is a function of the secret key, the ciphertext and the width, so that asking twice gives the same
    /// output; asking for another width gives the same noise with more added, or with less of it. No average can be taken.
    /// Ciphertexts that differ, though of one message, count as releases of their own; whoever releases keeps count.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::OnWord`] for a certificate that was read from a file and is believed on the user's word.
    /// [`Error::Release`] when the request allows no release: less than 30 bits, no share, or a precision that noise of
    /// the width needed does not leave; and as [`Context::decrypt`].
    pub fn publish(&self, key: &SecretKey<B>, ct: &Ciphertext<B>, release: &Release) -> Result<Published> {
        let params = self.params();
        params.rlwe().require_digest(ct.inner().params_digest())?;
        noise::check(params, ct.level(), ct.factor().log2_message, ct.inner().noise())?;
        ct.inner().noise().certificate.require_proven("a release")?;
        let (sigma_bits, precision) = self.released(ct, release)?;
        let primes = self.primes_for(ct, f64::from(sigma_bits))?;
        let phase = key.phase_on(self.rlwe(), ct.inner(), &primes)?;
        let subject = self.subject(ct)?;
        let seed = key.named(ct.inner().key())?.seed_for("ckks publish", &subject);
        let noise = flood::nested(&seed, sigma_bits, params.n());
        let backend = self.rlwe().backend();
        let mut sum = Zeroizing::new(self.signed_polynomial(&primes, &noise)?);
        sum.add_assign(backend, phase.poly())?;
        Ok(Published { values: self.opened(ct, &sum)?, precision, sigma_bits })
    }

    /// The slots of a phase of `ct` with noise in it.
    pub(crate) fn opened(&self, ct: &Ciphertext<B>, phase: &Poly<B, Coeff>) -> Result<Vec<Complex64>> {
        let coefficients = decode::coefficients(self.rlwe(), phase, self.double(ct.scale())?)?;
        Ok(self.embedding().decode(&coefficients)?)
    }

    /// See [`Scheme::opening`](crate::scheme::Scheme::opening).
    pub(crate) fn opening(&self, ct: &Ciphertext<B>, hiding: &Hiding) -> Result<Opening<Ciphertext<B>, B>> {
        let (params, backend) = (self.params(), self.rlwe().backend());
        let (bits, error_bound) = self.hidden(ct, hiding)?;
        let together = hiding.together(bits, params.log_n());
        let all = params.rlwe().level(ct.level())?.clone();
        let primes = if hiding.encrypted { all } else { self.primes_for(ct, together)? };
        let [c0, c1] = [0, 1].map(|i| ct.inner().parts()[i].restrict(backend, &primes));
        let (c0, c1) = (c0?.into_coeff(backend)?, c1?);
        Ok(Opening {
            ciphertext: ct.duplicate(self)?,
            c0,
            c1,
            sigma_bits: bits as u32,
            multiple: 1u32.into(),
            own_bits: None,
            noise: ct.inner().noise().plus(hiding.noise(params.rlwe(), bits)),
            error_bound,
            subject: opening::subject(self.rlwe(), opening::OPENED, ct.inner())?,
        })
    }

    /// log2 of the width of the noise that hides the error, and how far a slot may be off with everybody's noise in it.
    ///
    /// # Errors
    /// As [`Scheme::opening`](crate::scheme::Scheme::opening).
    pub(crate) fn hidden(&self, ct: &Ciphertext<B>, hiding: &Hiding) -> Result<(f64, f64)> {
        self.require_openable(ct)?;
        let params = self.params();
        let error = noise::canonical(params, ct.inner().noise());
        let bits = (error + hiding.bits()?).ceil().max(f64::from(flood::MIN_BITS));
        let together = hiding.together(bits, params.log_n());
        self.left(ct, together, hiding.precision)?;
        noise::check_flooded(params, ct.level(), ct.factor(), together)?;
        Ok((bits, self.off(ct, together)))
    }

    /// Fails for a ciphertext that parties do not decrypt, whatever the noise.
    pub(super) fn require_openable(&self, ct: &Ciphertext<B>) -> Result<()> {
        let params = self.params();
        params.rlwe().require_digest(ct.inner().params_digest())?;
        ct.inner().require_components(2)?;
        ct.inner().noise().certificate.require_proven("a decryption among parties")?;
        noise::check(params, ct.level(), ct.factor().log2_message, ct.inner().noise())
    }

    /// See [`Scheme::passed_on`](crate::scheme::Scheme::passed_on).
    pub(crate) fn passed_on(
        &self,
        opening: &Opening<Ciphertext<B>, B>,
        key: KeyId,
        parts: [Poly<B, Ntt>; 2],
    ) -> Result<Ciphertext<B>> {
        let (ct, params) = (&opening.ciphertext, self.params().rlwe());
        let inner = rlwe::Ciphertext::new(params, parts.into(), ct.level(), key, opening.noise)?;
        Ciphertext::checked(self, Operation::Copy, inner, ct.scale().clone(), ct.bound())
    }

    /// log2 of the width that a release takes, and the precision that it leaves.
    ///
    /// # Errors
    /// [`Error::Release`] when it leaves less than asked for.
    pub fn released(&self, ct: &Ciphertext<B>, release: &Release) -> Result<(u32, f64)> {
        let refuse = |reason: String| Error::Release { reason };
        if release.security < LEAST_SECURITY || release.shares == 0 || !release.precision.is_finite() {
            let Release { precision, shares, security } = release;
            return Err(refuse(format!(
                "{precision} bits, {shares} shares and s = {security} are no request: it takes a number of bits, one \
                 share or more, and s of {LEAST_SECURITY} or more"
            )));
        }
        let params = self.params();
        let error = noise::canonical(params, ct.inner().noise());
        let hidden = (12.0 * release.shares as f64).log2() / 2.0 + f64::from(release.security) / 2.0;
        let bits = (error + hidden).ceil().max(f64::from(flood::MIN_BITS));
        if bits > f64::from(flood::MAX_BITS) {
            return Err(refuse(format!("noise of width 2^{bits} is wider than the 2^{} there is", flood::MAX_BITS)));
        }
        let left = self.left(ct, bits, release.precision)?;
        noise::check_flooded(params, ct.level(), ct.factor(), bits)?;
        Ok((bits as u32, left))
    }

    /// How far a slot may be off with noise of width 2^`bits`.
    fn off(&self, ct: &Ciphertext<B>, bits: f64) -> f64 {
        (noise::flooded(self.params(), bits) - ct.log2_scale()).exp2() + self.error_bound(ct)
    }

    /// Bits of the bound on the message that noise of width 2^`bits` leaves right.
    ///
    /// # Errors
    /// [`Error::Release`] for less than asked for.
    fn left(&self, ct: &Ciphertext<B>, bits: f64, precision: f64) -> Result<f64> {
        let left = (ct.bound() / self.off(ct, bits)).log2();
        if left >= precision {
            return Ok(left);
        }
        let most = ct.bound();
        Err(Error::Release {
            reason: format!(
                "noise of width 2^{bits:.0} leaves {left:.2} bits of a message of at most {most}, {precision} were asked for"
            ),
        })
    }

    /// As many primes of the ciphertext's level as the phase and noise of width 2^`sigma_bits` need.
    pub(super) fn primes_for(&self, ct: &Ciphertext<B>, sigma_bits: f64) -> Result<IndexSet> {
        let params = self.params();
        let needed = noise::flooded_phase(params, ct.factor(), sigma_bits) + 1.0 + 1e-9;
        let all = params.rlwe().level(ct.level())?;
        let mut count = 1;
        while count < all.len() && params.rlwe().ring().log2(&all.iter().take(count).collect()) <= needed {
            count += 1;
        }
        Ok(all.iter().take(count).collect())
    }

    /// Everything that the noise is a function of, beside the key and the width: what the phase is a function of, so that
    /// one phase has one noise, whatever a file says of its scale, its bound or its error.
    fn subject(&self, ct: &Ciphertext<B>) -> Result<Vec<u8>> {
        Ok(opening::subject(self.rlwe(), "synchromesh v1 ciphertext to publish", ct.inner())?.to_vec())
    }
}
