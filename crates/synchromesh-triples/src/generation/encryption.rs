//! Encryptions that parties send each other, and what they prove of them.

use serde::{Deserialize, Serialize};
use synchromesh::batch::PlainPoly;
use synchromesh::bgv::{Ciphertext, Context, Factor, Params};
use synchromesh::exact::Plaintext;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::noise;
use synchromesh::rlwe::ring::Backend;
use synchromesh::rlwe::{KeyId, PublicKey, Randomness};
use synchromesh_parties::proofs::encryption::{Bound, EncryptionProofs, KeyBound};
use synchromesh_parties::proofs::{Parameters, ProofError, Transcript};

use super::circuit::believed;
use super::setup::Setup;
use crate::error::{Error, Result};
pub(crate) use synchromesh_parties::proofs::encryption::Content;

/// Most ciphertexts of one proof.
pub(super) const TOGETHER: usize = 32;

/// What parties prove of their encryptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proofs {
    /// That they know the message and that it and the randomness are small; of the MAC key, that it is one number.
    #[default]
    Knowledge,
    /// Nothing: triples are safe from parties that encrypt honestly; wrong triples are found all the same.
    Nothing,
}

const fn parameters(content: Content) -> Parameters {
    match content {
        Content::Any => Parameters::batch(),
        Content::Constant => Parameters::constant(),
    }
}

const fn purpose(content: Content) -> &'static str {
    match content {
        Content::Any => "encryptions of A and B",
        Content::Constant => "encryption of the share of the MAC key",
    }
}

/// Encryptions of one kind under one public key.
pub(crate) struct Encryptions<'a, B: Backend> {
    context: &'a Context<B>,
    public: &'a PublicKey<B>,
    content: Content,
    proofs: Option<EncryptionProofs<'a, B>>,
    key: KeyBound,
}

impl<'a, B: Backend> Encryptions<'a, B> {
    pub(crate) fn new(
        proofs: Proofs,
        context: &'a Context<B>,
        public: &'a PublicKey<B>,
        content: Content,
    ) -> Result<Self> {
        let top = context.params().top_level();
        let proofs = match proofs {
            Proofs::Knowledge => Some(EncryptionProofs::new(context, public, top, content, parameters(content))?),
            Proofs::Nothing => None,
        };
        // A dealer draws one honest key.
        let params = context.params().rlwe();
        let key = params.key_bound().unwrap_or_else(|| KeyBound::honest(params, 1));
        Ok(Self { context, public, content, proofs, key })
    }

    /// log2 of a bound on the error of what [`open`](Encryptions::open) returns; its message is in (-t/2, t/2).
    pub(crate) fn log2_noise(&self) -> Result<f64> {
        let params = self.context.params();
        match &self.proofs {
            Some(proofs) => Ok(proofs.bound(TOGETHER)?.noise_log2(params.rlwe(), &self.key)),
            None if params.rlwe().key_bound().is_some() => {
                let (message, u) = (params.t().value() >> 1u32, params.rlwe().secret().bound().into());
                let honest = Bound::new(1, message, u, params.rlwe().error().bound().into());
                Ok(honest.noise_log2(params.rlwe(), &self.key))
            }
            None => Ok(dealt_log2_noise(params)),
        }
    }
}

/// log2 of a bound on the error of a dealer's encryption.
pub(crate) fn dealt_log2_noise(params: &Params) -> f64 {
    let fresh = noise::public(params.n(), params.rlwe().error().variance().sqrt());
    fresh.bound(params.log_n(), noise::DEFAULT_LOG2_FAILURE)
}

/// The transcript of the proof that begins with a ciphertext.
fn transcript(session: &[u8; 32], prover: usize, content: Content, first: usize) -> Transcript {
    let mut transcript = Transcript::new(session, prover, purpose(content));
    transcript.absorb("first ciphertext", &(first as u64).to_le_bytes());
    transcript
}

impl Encryptions<'_, synchromesh::rlwe::ring::Cpu> {
    /// Bytes of `count` ciphertexts of `each` bytes, and of what is proven of them.
    pub(crate) fn bytes(&self, each: usize, count: usize) -> Result<usize> {
        let mut bytes = count * each;
        if let Some(proofs) = &self.proofs {
            for first in (0..count).step_by(TOGETHER) {
                bytes += proofs.proof_bytes((count - first).min(TOGETHER))?;
            }
        }
        Ok(bytes)
    }

    /// Encrypts and proves; the message to the others: all ciphertexts, then all proofs.
    pub(crate) fn make(
        &self,
        setup: &Setup,
        plaintexts: Vec<PlainPoly>,
        prover: usize,
        session: &[u8; 32],
    ) -> Result<Vec<u8>> {
        let mut randomness = Randomness::from_os();
        let mut message = Vec::with_capacity(self.bytes(setup.ciphertext_bytes(), plaintexts.len())?);
        let (mut made, mut witnesses) = (Vec::new(), Vec::new());
        for poly in plaintexts {
            let plaintext = Plaintext::from(poly);
            let ciphertext = match &self.proofs {
                Some(proofs) => {
                    let (ciphertext, witness) = proofs.encrypt(&plaintext, &mut randomness)?;
                    witnesses.push(witness);
                    ciphertext
                }
                None => self.context.encrypt(self.public, &plaintext, &mut randomness)?,
            };
            message.extend_from_slice(&ciphertext.to_bytes(self.context, None)?);
            made.push(ciphertext);
        }
        if let Some(proofs) = &self.proofs {
            for (at, (made, witnesses)) in made.chunks(TOGETHER).zip(witnesses.chunks(TOGETHER)).enumerate() {
                let transcript = transcript(session, prover, self.content, at * TOGETHER);
                let made: Vec<&Ciphertext> = made.iter().collect();
                message.extend_from_slice(&proofs.prove(&made, witnesses, &transcript, &mut randomness)?);
            }
        }
        Ok(message)
    }

    /// The ciphertexts in a party's message, checked unless it is this party's own, with what may be believed of them.
    ///
    /// # Errors
    /// Those that [blame the sender](Error::blames_sender) are the prover's fault; others are this process's own.
    pub(crate) fn open(
        &self,
        setup: &Setup,
        message: &[u8],
        count: usize,
        [prover, own]: [usize; 2],
        session: &[u8; 32],
    ) -> Result<Vec<Ciphertext>> {
        let split = message.split_at_checked(count * setup.ciphertext_bytes());
        let (bytes, mut rest) = split
            .filter(|_| Ok(message.len()) == self.bytes(setup.ciphertext_bytes(), count))
            .ok_or_else(Error::aborted)?;
        let read = |(index, bytes)| {
            let reason = "it is no fresh ciphertext under this key";
            self.read(setup, bytes).map_err(|_| Error::from(ProofError::Statement { index, reason }))
        };
        let received = bytes.chunks(setup.ciphertext_bytes()).enumerate().map(read);
        let received = received.collect::<Result<Vec<_>>>()?;
        let Some(proofs) = &self.proofs else {
            let log2_noise = self.log2_noise()?;
            return received.iter().map(|x| believed(self.context, x, log2_noise)).collect();
        };
        let mut usable = Vec::with_capacity(count);
        for (at, chunk) in received.chunks(TOGETHER).enumerate() {
            let (proof, more) = rest.split_at(proofs.proof_bytes(chunk.len())?);
            rest = more;
            let chunk: Vec<&Ciphertext> = chunk.iter().collect();
            let bound = if prover == own {
                proofs.bound(chunk.len())?
            } else {
                proofs.verify(&chunk, proof, &transcript(session, prover, self.content, at * TOGETHER))?
            };
            for x in chunk {
                usable.push(proofs.usable(x, &bound, &self.key)?);
            }
        }
        Ok(usable)
    }

    fn read(&self, setup: &Setup, bytes: &[u8]) -> Result<Ciphertext> {
        read_fresh(self.context, (setup.key(), setup.fresh_header()), bytes)
    }
}

/// A ciphertext as fresh ones are: of this key, at the top level, with the factor of that level.
pub(crate) fn read_fresh(context: &Context, (key, fresh): (KeyId, &Factor), bytes: &[u8]) -> Result<Ciphertext> {
    let read = Ciphertext::from_bytes(context, bytes, Some(key), Trust::Nothing)?;
    read.inner().require_components(2)?;
    let (top, level) = (context.params().top_level(), read.level());
    if level != top {
        return Err(synchromesh::rlwe::Error::Level { needed: top, have: level, top }.into());
    }
    if read.header() != fresh {
        let reason = "it is not that of a fresh ciphertext".into();
        return Err(synchromesh::Error::Header { field: "correction factor", reason }.into());
    }
    Ok(read)
}
