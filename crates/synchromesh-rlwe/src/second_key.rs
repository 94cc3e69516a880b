//! A second secret key s' for the lower levels (ePrint 2023/1642, section 3.6): how it is made, and how keys are
//! switched under it.
//!
//! The leading levels need special primes P beside all of q. Below them some ciphertext primes are gone, and P' may be
//! that much larger at the same security: fewer digits. The paper takes a second secret key for that, since keys modulo
//! two different products give an attacker two kinds of samples of one secret. A ciphertext goes to s' by one more key
//! switch, after the modulus switch, with P'.
//!
//! s' is derived from s by a hash, so that one secret key file opens every ciphertext of its owner.

use synchromesh_ring::Backend;
use synchromesh_ring::sampler::Seed;
use zeroize::Zeroize;

use crate::context::Context;
use crate::error::Error;
use crate::params::Params;
use crate::randomness::Randomness;
use crate::secret_key::{KeyId, SecretKey};
use crate::switch_key::{EvaluationKeys, Source, SwitchKey};
use crate::switch_plan::{DigitSizes, SwitchPlan};

/// Bits that P' has beyond the widest digit, where the number of digits is left open: a digit's error is then below
/// the rounding error.
const SPARE_BITS: f64 = 4.0;

impl SwitchPlan {
    /// How keys are switched under the second secret key; none where there is no such key.
    ///
    /// # Errors
    /// [`Error::Params`] when the schedule names more digits than there are primes, or none.
    pub fn second(params: &Params) -> Result<Option<Self>, Error> {
        let Some(second) = params.second() else { return Ok(None) };
        let ring = params.ring();
        let widths: Vec<u32> = second.q.iter().map(|i| ring.modulus(i).bits()).collect();
        let wanted = params.literal().schedule.second.as_ref().and_then(|key| key.omega);
        let room = ring.log2(&second.special) - SPARE_BITS;
        for omega in wanted.unwrap_or(1)..=wanted.unwrap_or(widths.len()) {
            let plan = Self::over(&second.q, &second.special, &DigitSizes::balanced(&widths, omega)?)?;
            let fits = plan.digits.iter().all(|digit| ring.log2(digit) <= room);
            if fits || wanted.is_some() || omega == widths.len() {
                return Ok(Some(plan));
            }
        }
        Err(Error::params("a second secret key switches keys with one digit or more"))
    }
}

/// The id of the second secret key that goes with `id`.
#[must_use]
pub fn second_id(id: KeyId) -> KeyId {
    let hash = blake3::Hasher::new_derive_key("synchromesh v1 second secret key id").update(&id.0).finalize();
    let mut out = [0; 16];
    out.copy_from_slice(&hash.as_bytes()[..16]);
    KeyId(out)
}

/// The seed of s': a hash of the coefficients of s.
pub(crate) fn second_seed(coefficients: &[i64]) -> Seed {
    let mut hasher = blake3::Hasher::new_derive_key("synchromesh v1 second secret key");
    for chunk in coefficients.chunks(1024) {
        // -1, 0, 1 as one byte each, without a branch.
        let mut bytes: Vec<u8> = chunk.iter().map(|&x| x as u8).collect();
        hasher.update(&bytes);
        bytes.zeroize();
    }
    let mut hash = *hasher.finalize().as_bytes();
    hasher.zeroize();
    let seed = Seed::from_bytes(hash);
    hash.zeroize();
    seed
}

impl<B: Backend> EvaluationKeys<B> {
    /// Keys for each of `sources`, under the secret key by `plan`, and, where the parameters have a second one, under
    /// that by `second`, with the key that brings ciphertexts to it.
    ///
    /// # Errors
    /// As [`SwitchKey::generate`].
    pub fn generate_all(
        context: &Context<B>,
        secret: &SecretKey<B>,
        sources: impl IntoIterator<Item = Source> + Clone,
        plan: &SwitchPlan,
        second: Option<&SwitchPlan>,
        randomness: &mut Randomness,
    ) -> Result<Self, Error> {
        let mut keys = Self::generate(context, secret, sources.clone(), plan, randomness)?;
        if let (Some(plan), Some(lower)) = (second, secret.second()) {
            let mut under = Self::generate(context, lower, sources, plan, randomness)?;
            let source = Source::Key(secret.id());
            under.insert(SwitchKey::generate(context, lower, source, Some(secret), plan, randomness)?)?;
            keys.set_second(under);
        }
        Ok(keys)
    }
}
