//! Ciphertexts of an exact scheme as bytes: the container of the layer below, with the scheme's header inside.

use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::codec::{Attached, Trust};
use synchromesh_rlwe::ring::Backend;
use synchromesh_rlwe::ring::sampler::Seed;
use synchromesh_rlwe::wire::{EnvelopeKey, KeyId};

use super::{Ciphertext, Context, Scheme};
use crate::error::Result;

impl<S: Scheme, B: Backend> Ciphertext<S, B> {
    /// The ciphertext as a container; with an envelope key, authenticated under it, so that its holders may believe the
    /// certificate.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`] in another context, [`rlwe::Error::OnWord`] for a certificate that was itself believed
    /// on the user's word where it shall be authenticated, or when the device fails.
    pub fn to_bytes(&self, context: &Context<S, B>, envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>> {
        let scheme_header = S::header_to_bytes(self.header());
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
        context: &Context<S, B>,
        seed: &Seed,
        envelope: Option<&EnvelopeKey>,
    ) -> Result<Vec<u8>> {
        let scheme_header = S::header_to_bytes(self.header());
        let attached = Attached { scheme_header: &scheme_header, seed: Some(seed) };
        Ok(self.inner().to_bytes(context.rlwe(), attached, envelope)?)
    }

    /// The ciphertext in a container; under the secret key `key` if one is named. Unless `trust` gives a reason to
    /// believe its certificate, operations that need one refuse it.
    ///
    /// # Errors
    /// [`rlwe::Error::Wire`] for bytes that are no such container, [`crate::Error::Header`] for a header that cannot
    /// be right.
    pub fn from_bytes(context: &Context<S, B>, bytes: &[u8], key: Option<KeyId>, trust: Trust<'_>) -> Result<Self> {
        let received = rlwe::Ciphertext::from_bytes(context.rlwe(), bytes, key, trust)?;
        let header = S::header_from_bytes(context.params(), &received.head.scheme_header)?;
        Self::from_parts(context.params(), received.ciphertext, header)
    }
}
