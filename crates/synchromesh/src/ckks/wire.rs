//! CKKS ciphertexts as bytes: the container of the layer below, with scale and message bound in its scheme header.
//!
//! The header is the bound as binary64, then a form: 0 for the scale of the ciphertext's level, 1 for its square,
//! 2 for any other, followed by the exponent of 2 and pairs (index of a ciphertext prime, exponent) in rising order.
//! Numbers are little-endian, exponents of 16 bytes. A scale has one form only.

use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::codec::{Attached, Trust};
use synchromesh_rlwe::ring::Backend;
use synchromesh_rlwe::ring::sampler::Seed;
use synchromesh_rlwe::wire::{EnvelopeKey, KeyId};

use super::ciphertext::{Ciphertext, Header};
use super::context::Context;
use super::params::Params;
use super::scale::Scale;
use crate::error::{Error, Result};

const OWN: u8 = 0;
const SQUARE: u8 = 1;
const OTHER: u8 = 2;

/// Bytes of an index and an exponent.
const FACTOR_BYTES: usize = 2 + 16;

impl Header {
    /// The header of a ciphertext at `level`, as the scheme header of its container.
    ///
    /// # Errors
    /// [`rlwe::Error::Level`] above the top level, [`Error::Header`] for a scale with a factor that is no ciphertext
    /// prime.
    pub fn to_bytes(&self, params: &Params, level: usize) -> Result<Vec<u8>> {
        let own = params.at(level)?;
        let mut bytes = self.bound.to_le_bytes().to_vec();
        if self.scale == own.scale {
            bytes.push(OWN);
        } else if self.scale == own.square {
            bytes.push(SQUARE);
        } else {
            bytes.push(OTHER);
            bytes.extend(self.scale.two().to_le_bytes());
            let primes = ciphertext_primes(params);
            for &(q, exponent) in self.scale.factors() {
                let index = primes.iter().position(|&prime| prime == q).and_then(|i| u16::try_from(i).ok());
                let index = index.ok_or_else(|| refusal(format!("its factor {q} is no ciphertext prime")))?;
                bytes.extend(index.to_le_bytes());
                bytes.extend(exponent.to_le_bytes());
            }
        }
        Ok(bytes)
    }

    /// The header in a container of a ciphertext at `level`.
    ///
    /// # Errors
    /// [`rlwe::Error::Level`] above the top level, [`Error::Header`] for bytes that [`Self::to_bytes`] does not write.
    pub fn from_bytes(params: &Params, level: usize, bytes: &[u8]) -> Result<Self> {
        let own = params.at(level)?;
        let (bound, rest) = bytes.split_first_chunk().ok_or_else(|| refusal("it is too short".to_owned()))?;
        let bound = f64::from_le_bytes(*bound);
        let scale = match rest {
            [OWN] => own.scale.clone(),
            [SQUARE] => own.square.clone(),
            [OTHER, rest @ ..] => read_scale(params, rest)?,
            _ => return Err(refusal("its form is unknown".to_owned())),
        };
        let header = Self { scale, bound };
        if header.to_bytes(params, level)? == bytes {
            return Ok(header);
        }
        Err(refusal("it is not in its only form".to_owned()))
    }
}

fn read_scale(params: &Params, bytes: &[u8]) -> Result<Scale> {
    let short = || refusal("it ends inside an exponent".to_owned());
    let (two, rest) = bytes.split_first_chunk().ok_or_else(short)?;
    let (factors, []) = rest.as_chunks::<FACTOR_BYTES>() else { return Err(short()) };
    let primes = ciphertext_primes(params);
    let factor = |bytes: &[u8; FACTOR_BYTES]| {
        let (index, exponent) = bytes.split_first_chunk::<2>().ok_or_else(short)?;
        let index = usize::from(u16::from_le_bytes(*index));
        let prime = primes.get(index).ok_or_else(|| refusal(format!("there is no ciphertext prime {index}")))?;
        Ok((*prime, i128::from_le_bytes(exponent.try_into().map_err(|_| short())?)))
    };
    Scale::new(i128::from_le_bytes(*two), factors.iter().map(factor).collect::<Result<Vec<_>>>()?)
}

/// The ciphertext primes in rising order.
fn ciphertext_primes(params: &Params) -> Vec<u64> {
    let moduli = params.rlwe().ring().moduli();
    let mut primes: Vec<u64> = params.rlwe().q().iter().map(|i| moduli[i].value()).collect();
    primes.sort_unstable();
    primes
}

fn refusal(reason: String) -> Error {
    Error::Header { field: "scale and bound", reason }
}

impl<B: Backend> Ciphertext<B> {
    /// The ciphertext as a container; with an envelope key, authenticated under it, so that its holders may believe the
    /// certificate.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`] in another context, [`rlwe::Error::OnWord`] for a certificate that was itself believed
    /// on the user's word where it shall be authenticated, or when the device fails.
    pub fn to_bytes(&self, context: &Context<B>, envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>> {
        let scheme_header = self.header().to_bytes(context.params(), self.level())?;
        let attached = Attached { scheme_header: &scheme_header, seed: None };
        Ok(self.inner().to_bytes(context.rlwe(), attached, envelope)?)
    }

    /// The same of a ciphertext fresh from the secret key, with the seed of its second component in the place of that: half
    /// the bytes.
    ///
    /// # Errors
    /// As [`Self::to_bytes`]; [`rlwe::Error::Wire`] for a seed that the second component does not expand from.
    pub fn to_seeded_bytes(
        &self,
        context: &Context<B>,
        seed: &Seed,
        envelope: Option<&EnvelopeKey>,
    ) -> Result<Vec<u8>> {
        let scheme_header = self.header().to_bytes(context.params(), self.level())?;
        let attached = Attached { scheme_header: &scheme_header, seed: Some(seed) };
        Ok(self.inner().to_bytes(context.rlwe(), attached, envelope)?)
    }

    /// The ciphertext in a container; under the secret key `key` if one is named.
    ///
    /// # Errors
    /// [`rlwe::Error::Wire`] for bytes that are no such container, [`Error::Header`] for a scale or bound that cannot
    /// be right, [`rlwe::Error::UnknownNoise`] when `trust` gives no reason to believe the certificate.
    pub fn from_bytes(context: &Context<B>, bytes: &[u8], key: Option<KeyId>, trust: Trust<'_>) -> Result<Self> {
        let received = rlwe::Ciphertext::from_bytes(context.rlwe(), bytes, key, trust)?;
        let header = Header::from_bytes(context.params(), received.head.level, &received.head.scheme_header)?;
        Self::from_parts(context, received.ciphertext, header)
    }
}
