//! Decryption among parties, as far as it depends on the scheme: what they add their shares to, and how much noise hides
//! what the error says of the key.
//!
//! Each party shows c_1 s_i + f_i. Who knows all other shares of s learns c_0 + c_1 s + f_i: the message, and e + f_i. The
//! width of f_i is that of a release ([`crate::ckks::Release`]): a Gaussian of sigma = sqrt(12 shares) 2^(s/2) |e|_2 on every
//! coefficient (ePrint 2022/816), with |e|_2 from the certificate, whatever the scheme. What all f_i do to the
//! result is counted before anybody shows anything.

use num_bigint::BigUint;
use synchromesh_rlwe::codec::absorb_words;
use synchromesh_rlwe::noise::{Certificate, Noise, hints};
use synchromesh_rlwe::ring::{Backend, Coeff, Ntt, Poly};
use synchromesh_rlwe::{self as rlwe, SwitchDomain};

use crate::error::{Error, Result};

/// Statistical security that every release has at least.
pub const LEAST_SECURITY: u32 = 30;

/// What the noise of each party has to hide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hiding {
    /// How many parties add noise, one or more.
    pub parties: usize,
    /// Statistical security s in bits, 30 or more.
    pub security: u32,
    /// Decryptions under one key, this one and all others, at most.
    pub decryptions: u64,
    /// Bits of the declared bound on the message that must be right in every slot; of CKKS, since others are exact.
    pub precision: f64,
    /// Whether each party encrypts what it shows, under somebody's key.
    pub encrypted: bool,
    /// Whether each proves what it shows, and nothing else is known of its noise: it may be as large as proofs let through.
    pub proven: bool,
}

impl Hiding {
    /// log2 of how much wider than an error the noise is that hides it.
    ///
    /// # Errors
    /// [`Error::Release`] for what is no request.
    pub fn bits(&self) -> Result<f64> {
        let Self { parties, security, decryptions, precision, proven, .. } = *self;
        if security < LEAST_SECURITY || decryptions == 0 || parties == 0 || !precision.is_finite() {
            let reason = format!(
                "{parties} parties, {decryptions} decryptions, {precision} bits and s = {security} are no request: it takes \
                 one or more of both, a number of bits, and s of {LEAST_SECURITY} or more"
            );
            return Err(Error::Release { reason });
        }
        let hinted = if proven { hints::log2_hinted() } else { 0.0 };
        Ok((12.0 * decryptions as f64).log2() / 2.0 + f64::from(security) / 2.0 + hinted)
    }

    /// log2 of the width of everybody's noise together, each of 2^`bits`.
    pub(crate) fn together(&self, bits: f64, log_n: u32) -> f64 {
        if self.proven {
            // Of a Gaussian so wide a value at a root is larger, and a coefficient too, than what these add up to.
            return self.at_most(bits) + f64::from(log_n) / 2.0;
        }
        // Rounded up for what is uniform in the noise of each.
        bits + (self.parties as f64).log2() / 2.0 + 1e-3
    }

    /// log2 of a bound on the coefficients of everybody's noise, of which each is proven to be a Gaussian of width 2^`bits`.
    fn at_most(&self, bits: f64) -> f64 {
        hints::log2_proven(bits) + (self.parties as f64).log2()
    }

    /// The error that everybody's noise, and encryption where there is one, adds.
    pub(crate) fn noise(&self, params: &rlwe::Params, bits: f64) -> Noise {
        let flood = match self.proven {
            true => params.norm().of_coefficients(Noise::at_most(self.at_most(bits)), params.n()),
            false => Noise::from(Certificate::gaussian(self.together(bits, params.ring().log_n()))),
        };
        if !self.encrypted {
            return flood;
        }
        if self.proven {
            return flood.plus(params.sealed_noise().with_estimates(None));
        }
        let fresh = params.public_noise().times(-params.ring().log2(params.p()));
        let fresh = fresh.plus_switching(params.rounding_noise(2));
        flood.plus(fresh.times((self.parties as f64).log2()).with_estimates(None))
    }
}

/// A ciphertext about to be decrypted among parties.
pub struct Opening<C, B: Backend> {
    /// The ciphertext, at the lowest level that has room for the noise.
    pub ciphertext: C,
    /// c_0, on as many primes as the result takes: what shares are added to.
    pub c0: Poly<B, Coeff>,
    /// c_1, on the same primes, in the ring's slots: what is multiplied by a share of the key.
    pub c1: Poly<B, Ntt>,
    /// log2 of the width of the Gaussian that each party adds to every coefficient.
    pub sigma_bits: u32,
    /// What multiplies it: the error multiple of the scheme.
    pub multiple: BigUint,
    /// log2 of the width of the Gaussian in what each party keeps of a message in shares, where that may be put together; of CKKS.
    pub own_bits: Option<u32>,
    /// The error of the result.
    pub noise: Noise,
    /// How far a slot of what everybody's noise leaves may be off, once it is opened; 0 where results are exact.
    pub error_bound: f64,
    /// Hash of all that the phase is a function of: of the ciphertext as it was given.
    pub subject: [u8; 32],
}

/// Hash of parameters, level and components.
pub(crate) fn subject<B: Backend, D: SwitchDomain>(
    context: &rlwe::Context<B>,
    label: &str,
    x: &rlwe::Ciphertext<B, D>,
) -> Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new_derive_key(label);
    hasher.update(x.params_digest());
    hasher.update(&(x.level() as u64).to_le_bytes());
    hasher.update(&(x.parts().len() as u64).to_le_bytes());
    let backend = context.backend();
    let mut limb = vec![0; context.params().n()];
    for part in x.parts() {
        for row in 0..part.primes().len() {
            backend.download(part.buffer(), row, &mut limb)?;
            absorb_words(&mut hasher, &limb);
        }
    }
    Ok(*hasher.finalize().as_bytes())
}

/// What decryptions among parties hash a ciphertext under.
pub(crate) const OPENED: &str = "synchromesh v1 ciphertext to open";
