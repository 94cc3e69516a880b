//! What a proof is bound to, and the challenges that follow from it (Fiat-Shamir with BLAKE3 as the random oracle).

use synchromesh::rlwe::codec;

/// Session, prover and purpose of a proof, and whatever else must be the same on both sides.
///
/// A proof made for one transcript is refused under any other: in another session, from another prover, for another
/// purpose. Prover and verifier build it alike; making a proof does not change it.
#[derive(Clone, Debug)]
pub struct Transcript(blake3::Hasher);

impl Transcript {
    /// The transcript of `prover` (the number of the party) in a session, for the purpose `label`.
    #[must_use]
    pub fn new(session: &[u8; 32], prover: usize, label: &str) -> Self {
        let mut transcript = Self(blake3::Hasher::new_derive_key("synchromesh 1 triples, proof"));
        transcript.absorb("session", session);
        transcript.absorb("prover", &(prover as u64).to_le_bytes());
        transcript.absorb("purpose", label.as_bytes());
        transcript
    }

    /// Binds these bytes too. Labels and lengths are part of the hash, so that no two sequences of calls agree.
    pub fn absorb(&mut self, label: &str, bytes: &[u8]) {
        self.0.update(&(label.len() as u64).to_le_bytes());
        self.0.update(label.as_bytes());
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Binds residues, as little-endian words.
    pub(super) fn absorb_words(&mut self, label: &str, words: &[u64]) {
        self.absorb(label, &(words.len() as u64).to_le_bytes());
        codec::absorb_words(&mut self.0, words);
    }

    /// The hash of everything so far.
    pub(super) fn digest(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}

/// One challenge: 0, or X^e with 0 <= e < 2N.
pub(super) type Challenge = Option<usize>;

/// Where challenges come from.
///
/// With c and c' two of them, k / (c - c') is a polynomial for a small integer k, whose coefficients have a small sum of
/// absolute values: two responses to different challenges then give a witness for k times the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenges {
    /// 0 and 1: k = 1 and a sum of 1.
    Bits,
    /// 0 and the 2^(mu + 1) monomials X^(i N / 2^mu), which are closed under the sign: k = 2 and a sum of at most
    /// max(2, 2^mu), as 2 / (1 - X^d) = 1 + X^d + .. + X^((m-1) d) where X^(m d) = -1 (ePrint 2019/035, section 2 has all
    /// 2N of them, mu = log2 N).
    Monomials {
        /// mu, from 0 to log2 N.
        log2_span: u32,
    },
}

impl Challenges {
    /// How many there are.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            Self::Bits => 2,
            Self::Monomials { log2_span } => (2 << log2_span) + 1,
        }
    }

    /// k: what is extracted is a witness for k times the statement.
    #[must_use]
    pub const fn multiple(self) -> u32 {
        match self {
            Self::Bits => 1,
            Self::Monomials { .. } => 2,
        }
    }

    /// Bound on the sum of the absolute values of the coefficients of k / (c - c').
    #[must_use]
    pub const fn growth(self) -> u32 {
        match self {
            Self::Bits => 1,
            Self::Monomials { log2_span: 0 } => 2,
            Self::Monomials { log2_span } => 1 << log2_span,
        }
    }

    /// Whether all are integers, so that a response to a constant is one, and automorphisms pass through.
    #[must_use]
    pub const fn are_integers(self) -> bool {
        matches!(self, Self::Bits | Self::Monomials { log2_span: 0 })
    }

    /// The number of rows V with |C|^-V at most 2^-`bits`.
    #[must_use]
    pub fn rows(self, bits: u32) -> usize {
        let each = f64::from(self.size()).log2();
        (f64::from(bits) / each - 1e-9).ceil() as usize
    }

    /// The challenge of this number below [`Self::size`].
    pub(super) fn number(self, number: usize, n: usize) -> Challenge {
        let log2_span = match self {
            Self::Bits => 0,
            Self::Monomials { log2_span } => log2_span,
        };
        number.checked_sub(1).map(|i| i * (n >> log2_span))
    }

    /// A matrix of `rows` times `columns` challenges from a digest.
    pub(super) fn expand(self, digest: &[u8; 32], rows: usize, columns: usize, n: usize) -> Vec<Vec<Challenge>> {
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 triples, challenges of a proof");
        hasher.update(digest);
        let mut stream = hasher.finalize_xof();
        let size = self.size();
        let limit = u32::MAX - u32::MAX % size;
        let mut draw = || loop {
            let mut bytes = [0; 4];
            stream.fill(&mut bytes);
            let word = u32::from_le_bytes(bytes);
            if word < limit {
                return self.number((word % size) as usize, n);
            }
        };
        (0..rows).map(|_| (0..columns).map(|_| draw()).collect()).collect()
    }
}
