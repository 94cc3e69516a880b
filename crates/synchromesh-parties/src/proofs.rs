//! Zero-knowledge proofs that public ring elements have short preimages: A w = u modulo Q with w short.
//!
//! One mechanism, [`linear`], proves batches of such statements for any public matrix A. [`encryption`] is the instance
//! for plaintext knowledge of BGV encryptions (TopGear, ePrint 2019/035, with the diagonal variant for constants),
//! [`keys`] those for the shares of a distributed key generation, [`decryption`] those for the shares of a decryption. What is proven, with which bounds and under which
//! assumptions, is in `docs/triples-proofs.md`.

#[cfg(any(test, feature = "adversary"))]
mod careless;
pub mod decryption;
pub mod encryption;
pub mod error;
pub(crate) mod integers;
pub mod keys;
pub mod linear;
pub mod relation;
mod transcript;

#[cfg(test)]
mod tests;

pub use error::ProofError;
pub use transcript::{Challenges, Transcript};

use error::Result;

/// Soundness below which proofs are for tests only. A proof without interaction can be tried offline as often as a cheater
/// can hash, so that statistical security chosen for the rest of a protocol does not apply.
pub const LEAST_SOUNDNESS: u32 = 128;

/// How responses hide the witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masking {
    /// Uniform masks, and responses near the border are thrown away with the whole attempt: those that remain are
    /// uniform and independent of the witness. Zero-knowledge distance 0; about half of all attempts fail.
    Rejection,
    /// Gaussian masks 8 to 16 times as wide as what they hide, and every response is sent: the witness keeps at least
    /// 64/65 of its variance. For secrets and errors of ring-LWE only, assuming it hard with such hints (Kim, Lee, Seo and
    /// Song, CRYPTO 2023, who reduce it to ring-LWE for Gaussian secrets).
    Hints,
}

impl Masking {
    /// In a hash.
    const fn number(self) -> u8 {
        match self {
            Self::Rejection => 0,
            Self::Hints => 1,
        }
    }
}

/// Soundness, challenges and masks of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    soundness: u32,
    challenges: Challenges,
    masking: Masking,
}

impl Parameters {
    /// A cheater succeeds with probability 2^-`soundness` in each attempt.
    ///
    /// # Errors
    /// [`ProofError::Parameters`] for less than [`LEAST_SOUNDNESS`] or more than 256 bits.
    pub fn new(soundness: u32, challenges: Challenges, masking: Masking) -> Result<Self> {
        if !(LEAST_SOUNDNESS..=256).contains(&soundness) {
            let rule = format!("soundness of {soundness} bits; it must be {LEAST_SOUNDNESS} to 256");
            return Err(ProofError::Parameters { rule });
        }
        Ok(Self { soundness, challenges, masking })
    }

    /// For batches of encryptions of anything: 15 responses, whatever the number of ciphertexts.
    #[must_use]
    pub const fn batch() -> Self {
        let challenges = Challenges::Monomials { log2_span: 8 };
        Self { soundness: LEAST_SOUNDNESS, challenges, masking: Masking::Rejection }
    }

    /// For encryptions of constants: 81 responses.
    #[must_use]
    pub const fn constant() -> Self {
        let challenges = Challenges::Monomials { log2_span: 0 };
        Self { soundness: LEAST_SOUNDNESS, challenges, masking: Masking::Rejection }
    }

    /// For shares of keys: 128 responses, and slack of at most 2^12.
    #[must_use]
    pub const fn keys() -> Self {
        Self { soundness: LEAST_SOUNDNESS, challenges: Challenges::Bits, masking: Masking::Hints }
    }

    /// For shares of decryptions: 128 responses, which say nothing of keys however many there are.
    #[must_use]
    pub const fn decryption() -> Self {
        Self { masking: Masking::Rejection, ..Self::keys() }
    }

    /// The same with any soundness of 1 to 256 bits, to which others are brought: proves nothing, for tests.
    #[must_use]
    pub fn insecure(self, soundness: u32) -> Self {
        Self { soundness: soundness.clamp(1, 256), ..self }
    }

    /// Bits of soundness.
    #[must_use]
    pub const fn soundness(&self) -> u32 {
        self.soundness
    }

    /// Where challenges come from.
    #[must_use]
    pub const fn challenges(&self) -> Challenges {
        self.challenges
    }

    /// How responses hide the witness.
    #[must_use]
    pub const fn masking(&self) -> Masking {
        self.masking
    }
}
