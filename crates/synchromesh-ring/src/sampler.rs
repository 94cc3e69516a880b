//! Sampling from a 32-byte seed: uniform residues mod q and small integer polynomials, as functions of
//! (seed, purpose, digit, prime, coefficient) and of nothing else.
//!
//! Every stream of random words is random-access ([`Stream`]), so the value of coefficient `j` never depends on how
//! many coefficients were drawn before it, in which order, by how many threads or on which device.
//!
//! * **Uniform mod q** ([`uniform_into`]): attempt `a` for coefficient `j` of a polynomial of `N` coefficients reads
//!   word `a*N + j` of the stream, masked to the bit length of `q`; the first value below `q` is taken.
//! * **Small polynomials** ([`ternary`], [`cbd21`], [`gaussian`]): drawn once as integers, then reduced modulo each
//!   prime by the caller, so that the same integer polynomial stands behind every residue.
//!
//! The samplers of secrets neither branch on a drawn value nor use it as an address. The rejection of the uniform
//! sampler branches only on words that are thrown away.

mod cells;
mod gaussian;
mod small;
mod stream;
#[cfg(test)]
mod tests;

pub use cells::{Cells, cells_into};
pub use gaussian::GAUSSIAN_BOUND;
pub use small::{
    ErrorDistribution, SecretDistribution, SmallPoly, cbd21, cbd21_into, gaussian, gaussian_into, sparse_ternary,
    ternary, ternary_into,
};
pub use stream::{Stream, stream_key};

use crate::secrecy;
use std::fmt;
use thiserror::Error;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Domain of [`Seed::derive`]; BLAKE3 derives keys under different contexts independently.
const SEED_CONTEXT: &str = "synchromesh v1 seed derivation";

/// 32 bytes from which everything else is expanded. Zeroised on drop; its `Debug` form shows nothing.
///
/// A seed may be public (the uniform half of a key on the wire) or secret (the origin of a secret key); the type
/// treats both as secret.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Seed([u8; 32]);

impl Seed {
    /// A seed with these bytes. The caller answers for their entropy.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes, for writing a public seed to the wire or a secret one to the secret key's file.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// This seed, which is published: what is expanded from it is no secret.
    #[must_use]
    pub fn published(self) -> Self {
        Self(secrecy::reveal(self.0))
    }

    /// The child seed named (`label`, `index`): BLAKE3 in key-derivation mode over
    /// `seed || length of label as u64 LE || label || index as u64 LE`.
    ///
    /// Children under different names are independent, and none reveals its parent.
    #[must_use]
    pub fn derive(&self, label: &str, index: u64) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(SEED_CONTEXT);
        hasher.update(&self.0);
        hasher.update(&(label.len() as u64).to_le_bytes());
        hasher.update(label.as_bytes());
        hasher.update(&index.to_le_bytes());
        let mut child = Self([0; 32]);
        hasher.finalize_xof().fill(&mut child.0);
        hasher.zeroize();
        child
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}

/// What a stream of random words is for. Streams of different purposes are independent under one seed.
///
/// The numbers are part of the format: a seeded key expands to the same polynomial for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum Purpose {
    /// The secret polynomial s.
    SecretKey = 1,
    /// The uniform half a of a public key.
    PublicKeyUniform = 2,
    /// The error of a public key.
    PublicKeyError = 3,
    /// The uniform halves of a switch key, one a digit.
    SwitchKeyUniform = 4,
    /// The errors of a switch key, one a digit.
    SwitchKeyError = 5,
    /// The uniform half of a ciphertext made with the secret key.
    CiphertextUniform = 6,
    /// The ternary multiplier u of a ciphertext made with the public key.
    EncryptionSecret = 7,
    /// The errors of an encryption, one a component (the digit).
    EncryptionError = 8,
    /// Noise flooding before a decrypted value is shown to others.
    Flooding = 9,
    /// Public random inputs of tests, benches and probabilistic checks.
    PublicRandomness = 10,
}

impl Purpose {
    /// The number that enters the key derivation.
    #[must_use]
    pub const fn id(self) -> u32 {
        self as u32
    }
}

/// A request no sampler can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SamplerError {
    /// The modulus is 0 or above 2^63.
    #[error("cannot sample modulo {q}: the modulus must lie in 1..=2^63")]
    Modulus {
        /// The modulus asked for.
        q: u64,
    },
    /// The slice is not part of the polynomial it is said to belong to.
    #[error("coefficients {first}..{first}+{len} are not inside a polynomial of {n} coefficients (n at most 2^20)")]
    Range {
        /// First coefficient asked for.
        first: usize,
        /// Coefficients asked for.
        len: usize,
        /// Coefficients of the polynomial.
        n: usize,
    },
}

impl SamplerError {
    /// Stable name of the kind of error.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Modulus { .. } => "sampler_modulus",
            Self::Range { .. } => "sampler_range",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Modulus { .. } => "use a prime of 20 to 61 bits",
            Self::Range { .. } => "ask for coefficients below the ring degree",
        }
    }
}

/// Words of one tile: 4 KiB, held in L1 while rejected words are looked for.
const TILE: usize = 512;

/// Largest polynomial the samplers serve; keeps `a*N + j` far inside the stream.
const MAX_N: usize = 1 << 20;

/// Writes `n` independent uniform residues mod `q` to `out`, which holds the whole polynomial (`n = out.len()`).
///
/// # Errors
/// [`SamplerError::Modulus`] unless `1 <= q <= 2^63`; [`SamplerError::Range`] when `out` is longer than 2^20.
pub fn uniform_into(seed: &Seed, purpose: Purpose, digit: u32, q: u64, out: &mut [u64]) -> Result<(), SamplerError> {
    let n = out.len();
    uniform_part_into(seed, purpose, digit, q, n, 0, out)
}

/// Writes coefficients `first .. first + out.len()` of the polynomial of `n` coefficients that [`uniform_into`] draws.
///
/// # Errors
/// [`SamplerError::Modulus`] unless `1 <= q <= 2^63`; [`SamplerError::Range`] when the part leaves the polynomial or
/// `n` exceeds 2^20.
pub fn uniform_part_into(
    seed: &Seed,
    purpose: Purpose,
    digit: u32,
    q: u64,
    n: usize,
    first: usize,
    out: &mut [u64],
) -> Result<(), SamplerError> {
    if q == 0 || q > 1 << 63 {
        return Err(SamplerError::Modulus { q });
    }
    if n > MAX_N || first > n || out.len() > n - first {
        return Err(SamplerError::Range { first, len: out.len(), n });
    }
    let mut stream = Stream::new(seed, purpose, digit, q);
    let mask = u64::MAX >> q.leading_zeros();
    let mut rejected = Vec::new();
    for (tile, words) in out.chunks_mut(TILE).enumerate() {
        let start = tile * TILE;
        stream.fill_words((first + start) as u64, words);
        let missing = words.len() - accept(words, mask, q);
        if missing > 0 {
            list_rejected(words, start, q, missing, &mut rejected);
        }
    }
    let mut attempt = 1u64;
    while !rejected.is_empty() {
        let row = attempt * n as u64 + first as u64;
        retry(&mut stream, row, mask, q, &mut rejected, out);
        attempt += 1;
    }
    Ok(())
}

/// Masks the words in place and counts those below `q`, without a branch. in: any; out: at most `mask` < 2^64.
fn accept(words: &mut [u64], mask: u64, q: u64) -> usize {
    let mut accepted = 0;
    for word in words.iter_mut() {
        *word &= mask;
        accepted += u64::from(*word < q);
    }
    accepted as usize
}

/// Appends the positions (offset by `start`) of the `missing` words that are not below `q`, in order. Rejections are
/// unpredictable, so the position is always written and kept only when its word fails.
fn list_rejected(words: &[u64], start: usize, q: u64, missing: usize, rejected: &mut Vec<u32>) {
    let mut kept = rejected.len();
    rejected.resize(kept + missing + 1, 0);
    for (j, word) in words.iter().enumerate() {
        rejected[kept] = (start + j) as u32;
        kept += usize::from(*word >= q);
    }
    rejected.truncate(kept);
}

/// One more attempt for every coefficient in `rejected`, which keeps those that fail again.
fn retry(stream: &mut Stream, row: u64, mask: u64, q: u64, rejected: &mut Vec<u32>, out: &mut [u64]) {
    let mut tile = [0u64; TILE];
    let mut kept = 0;
    let mut i = 0;
    while i < rejected.len() {
        // The list is sorted; read one run of words over neighbours no more than two blocks apart.
        let from = rejected[i] as usize;
        let mut end = i + 1;
        while end < rejected.len() && rejected[end] - rejected[end - 1] <= 16 && (rejected[end] as usize) < from + TILE
        {
            end += 1;
        }
        let words = &mut tile[..rejected[end - 1] as usize - from + 1];
        stream.fill_words(row + from as u64, words);
        for k in i..end {
            let j = rejected[k];
            let word = words[j as usize - from] & mask;
            out[j as usize] = word;
            rejected[kept] = j;
            kept += usize::from(word >= q);
        }
        i = end;
    }
    rejected.truncate(kept);
}
