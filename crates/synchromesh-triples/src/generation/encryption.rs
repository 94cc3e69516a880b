//! Encryptions that parties send each other, and what they prove of them.

use serde::{Deserialize, Serialize};
use synchromesh::batch::PlainPoly;
use synchromesh::bgv::{Ciphertext, Context};
use synchromesh::exact::Plaintext;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::noise;
use synchromesh::rlwe::ring::Backend;
use synchromesh::rlwe::{PublicKey, Randomness};

use super::circuit::believed;
use super::setup::Setup;
use crate::error::{Error, Result};

/// What parties prove of their encryptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proofs {
    /// Nothing: triples are safe from parties that encrypt honestly; wrong triples are found all the same.
    #[default]
    Nothing,
}

/// What may be encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Any slots.
    Any,
    /// The same number in all slots.
    Constant,
}

/// Encryptions of one kind under one public key.
pub(crate) struct Encryptions<'a, B: Backend> {
    context: &'a Context<B>,
    public: &'a PublicKey<B>,
}

impl<'a, B: Backend> Encryptions<'a, B> {
    pub(crate) fn new(
        proofs: Proofs,
        context: &'a Context<B>,
        public: &'a PublicKey<B>,
        _content: Content,
    ) -> Result<Self> {
        match proofs {
            Proofs::Nothing => Ok(Self { context, public }),
        }
    }

    /// log2 of a bound on the error of what [`open`](Encryptions::open) returns; its message is in (-t/2, t/2).
    pub(crate) fn log2_noise(&self) -> Result<f64> {
        let params = self.context.params();
        let fresh = noise::public(params.n(), params.rlwe().error().variance().sqrt());
        Ok(fresh.bound(params.log_n(), noise::DEFAULT_LOG2_FAILURE))
    }
}

impl Encryptions<'_, synchromesh::rlwe::ring::Cpu> {
    /// Bytes of `count` ciphertexts and what is proven of them.
    pub(crate) fn bytes(&self, setup: &Setup, count: usize) -> Result<usize> {
        Ok(count * setup.ciphertext_bytes())
    }

    /// Encrypts and proves; the message to the others: all ciphertexts, then all proofs.
    pub(crate) fn make(
        &self,
        setup: &Setup,
        plaintexts: Vec<PlainPoly>,
        _prover: usize,
        _session: &[u8; 32],
    ) -> Result<Vec<u8>> {
        let mut randomness = Randomness::from_os();
        let mut message = Vec::with_capacity(self.bytes(setup, plaintexts.len())?);
        for poly in plaintexts {
            let ciphertext = self.context.encrypt(self.public, &Plaintext::from(poly), &mut randomness)?;
            message.extend_from_slice(&ciphertext.to_bytes(self.context)?);
        }
        Ok(message)
    }

    /// The ciphertexts in a party's message, checked, with what may be believed of them.
    ///
    /// # Errors
    /// Whatever is wrong with them is the prover's fault.
    pub(crate) fn open(
        &self,
        setup: &Setup,
        message: &[u8],
        count: usize,
        _prover: usize,
        _session: &[u8; 32],
    ) -> Result<Vec<Ciphertext>> {
        if Ok(message.len()) != self.bytes(setup, count) {
            return Err(Error::Aborted);
        }
        let log2_noise = self.log2_noise()?;
        let read = |bytes: &[u8]| believed(self.context, &self.read(setup, bytes)?, log2_noise);
        message.chunks(setup.ciphertext_bytes()).map(read).collect()
    }

    /// A ciphertext as fresh ones are: of this key, at the top level, with the factor of that level.
    fn read(&self, setup: &Setup, bytes: &[u8]) -> Result<Ciphertext> {
        let context = self.context;
        let read = Ciphertext::from_bytes(context, bytes, Some(setup.key()), Trust::Nothing)?;
        read.inner().require_components(2)?;
        let (top, level) = (context.params().top_level(), read.level());
        if level != top {
            return Err(synchromesh::rlwe::Error::Level { needed: top, have: level, top }.into());
        }
        if read.header() != setup.fresh_header() {
            let reason = "it is not that of a fresh ciphertext".into();
            return Err(synchromesh::Error::Header { field: "correction factor", reason }.into());
        }
        Ok(read)
    }
}
