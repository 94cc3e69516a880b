//! Shares of decryptions that are proven, under keys whose shares are: each is c_1 s_i + t f_i for the s_i of the party's share of
//! the public key, and noise f_i of about the width that it should have.

use synchromesh::opening::Opening;
use synchromesh::rlwe::ring::{Coeff, Cpu, Poly};
use synchromesh::rlwe::{Context, Randomness};

use super::quorum::Quorum;
use crate::error::{Error, Result};
use crate::proofs::Transcript;
use crate::proofs::decryption::{DecryptionProofs, Flood};
use crate::transport::Transport;

impl<T: Transport> Quorum<'_, T> {
    /// What is proven of a share of each of these; nothing where shares are not.
    pub(super) fn proofs<'c, C>(
        &self,
        context: &'c Context<Cpu>,
        openings: &[Opening<C, Cpu>],
    ) -> Result<Vec<DecryptionProofs<'c, Cpu>>> {
        let Some(publics) = &self.own.share.publics else { return Ok(Vec::new()) };
        let proofs = |opening: &Opening<C, Cpu>| {
            let noise = (opening.sigma_bits, &opening.multiple);
            Ok(DecryptionProofs::new(context, &publics.seed, &opening.c1, noise)?)
        };
        openings.iter().map(proofs).collect()
    }

    /// The proof of this party's share of an opening.
    pub(super) fn prove<C>(
        &self,
        context: &Context<Cpu>,
        proofs: &DecryptionProofs<'_, Cpu>,
        opening: &Opening<C, Cpu>,
        share: &Poly<Cpu, Coeff>,
    ) -> Result<Vec<u8>> {
        let own = self.own.share.publics.as_ref().and_then(|publics| publics.shares.get(self.own.share.member));
        let (Some(own), backend) = (own, context.backend()) else { return Err(Error::Aborted) };
        let share = share.duplicate(backend)?.into_ntt(backend)?;
        let (seed, transcript) = (self.own.seed(opening, &[]), self.transcript(self.session.party(), opening));
        let witness = (&self.own.part, Flood { seed: &seed, bits: opening.sigma_bits });
        Ok(proofs.prove([own, &share], witness, &transcript, &mut Randomness::from_os())?)
    }

    /// Fails unless each of a party's shares has its proof in these bytes.
    pub(super) fn verified<C>(
        &self,
        party: usize,
        proofs: &[DecryptionProofs<'_, Cpu>],
        openings: &[Opening<C, Cpu>],
        shares: Vec<Poly<Cpu, Coeff>>,
        mut bytes: &[u8],
    ) -> Result<()> {
        for ((proofs, opening), share) in proofs.iter().zip(openings).zip(shares) {
            let member = self.own.among[party];
            let theirs = self.own.share.publics.as_ref().and_then(|publics| publics.shares.get(member));
            let (proof, rest) = bytes.split_at(proofs.bytes()?.min(bytes.len()));
            let share = share.into_ntt(proofs.backend())?;
            proofs.verify([theirs.ok_or(Error::Aborted)?, &share], proof, &self.transcript(party, opening))?;
            bytes = rest;
        }
        Ok(())
    }

    /// What a party's proof of its share is bound to.
    fn transcript<C>(&self, party: usize, opening: &Opening<C, Cpu>) -> Transcript {
        let mut transcript = Transcript::new(self.session.id(), party, "share of a decryption");
        transcript.absorb("subject", &opening.subject);
        transcript
    }
}
