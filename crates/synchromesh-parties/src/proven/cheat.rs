//! Parties that make other shares of keys than they should, for tests.

use synchromesh::rlwe::Randomness;
use synchromesh::rlwe::ring::sampler::{Purpose, SecretDistribution, Seed, SmallPoly};
use synchromesh::rlwe::ring::{Cpu, Ntt, Poly};

use super::{Conduct, FIRST, Made, SECOND};
use crate::proofs::keys::{ShareProofs, ShareWitness};
use crate::proofs::{ProofError, Transcript};

/// What a party does other than it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cheat {
    /// Nothing.
    None,
    /// One bit of its share of this round is flipped before it commits to it.
    WrongShare(&'static str),
    /// One bit of its proof of this round.
    WrongProof(&'static str),
    /// A residue of its share is not below its prime.
    NoResidue,
    /// Its share of the second round is made from another secret, with a proof of that.
    OtherSecret,
    /// Every coefficient of its secret (0) or of its error of the public key (1) is this, and it does its best to prove
    /// that. Masks are Gaussian of widths 128 and 512, and responses up to ten widths are taken: 400 and 1500 leave seven,
    /// which no coefficient of some millions goes beyond.
    Long(usize, i64),
}

impl Cheat {
    /// What is always found out.
    pub const FOUND: [Self; 10] = [
        Self::NoResidue,
        Self::WrongShare(FIRST),
        Self::WrongShare(SECOND),
        Self::WrongProof(FIRST),
        Self::WrongProof(SECOND),
        Self::OtherSecret,
        // Responses that can be written though they are too large, responses that cannot, and the same of an error.
        Self::Long(0, 1400),
        Self::Long(0, 1 << 40),
        Self::Long(1, 7000),
        Self::Long(1, -(1 << 40)),
    ];

    /// Whether it is in the second round that it shows.
    #[must_use]
    pub fn is_late(self) -> bool {
        matches!(self, Self::OtherSecret) || self == Self::WrongShare(SECOND) || self == Self::WrongProof(SECOND)
    }
}

impl Conduct for Cheat {
    fn secret(&self, honest: SmallPoly) -> SmallPoly {
        match self {
            Self::Long(0, value) => SmallPoly::from_vec(vec![*value; honest.len()]),
            _ => honest,
        }
    }

    fn first_share(
        &self,
        proofs: &ShareProofs<'_, Cpu>,
        (share, witness): Made,
        randomness: &mut Randomness,
    ) -> Result<Made, ProofError> {
        match self {
            Self::Long(1, value) => proofs.share_again(&witness.with(1, *value), 2, randomness),
            _ => Ok((share, witness)),
        }
    }

    fn second_share(
        &self,
        proofs: &ShareProofs<'_, Cpu>,
        (witness, columns): (&ShareWitness, usize),
        randomness: &mut Randomness,
    ) -> Result<Made, ProofError> {
        if *self != Self::OtherSecret {
            return proofs.share_again(witness, columns, randomness);
        }
        let other =
            SecretDistribution::Ternary.sample(&Seed::from_bytes([9; 32]), Purpose::SecretKey, 0, proofs.degree());
        proofs.share(&other, randomness)
    }

    fn proof(
        &self,
        proofs: &ShareProofs<'_, Cpu>,
        (share, witness): (&[Poly<Cpu, Ntt>], &ShareWitness),
        transcript: &Transcript,
        randomness: &mut Randomness,
    ) -> Result<Vec<u8>, ProofError> {
        match self {
            Self::Long(..) => proofs.prove_anything(share, witness, transcript),
            _ => proofs.prove(share, witness, transcript, randomness),
        }
    }

    fn proven_share(&self, round: &str, split: usize, message: &mut [u8]) {
        match self {
            Self::WrongShare(at) if *at == round => message[split / 2] ^= 1,
            Self::WrongProof(at) if *at == round => message[split + 100] ^= 1,
            Self::NoResidue if round == FIRST => message[..8].fill(0xff),
            _ => {}
        }
    }
}
