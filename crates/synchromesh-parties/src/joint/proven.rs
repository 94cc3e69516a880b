//! Shares of decryptions that are proven, under keys whose shares are: each is c_1 s_i + t f_i for the s_i of the party's share of
//! the public key, and noise f_i of about the width that it should have.

use synchromesh::opening::Opening;
use synchromesh::rlwe::ring::{Cpu, Ntt, Poly};
use synchromesh::rlwe::{Context, PublicKey, Randomness};

use super::quorum::Quorum;
use super::replicated;
use crate::error::{Error, Result};
use crate::proofs::Transcript;
use crate::proofs::decryption::{DecryptionProofs, Flood, Sealing};
use crate::transport::Transport;

impl<T: Transport> Quorum<'_, T> {
    /// What is proven of a share of each of these; nothing where shares are not.
    pub(super) fn proofs<'c, C>(
        &self,
        context: &'c Context<Cpu>,
        openings: &[Opening<C, Cpu>],
        receiver: Option<&PublicKey>,
    ) -> Result<Vec<DecryptionProofs<'c, Cpu>>> {
        let Some(publics) = &self.own.share.publics else { return Ok(Vec::new()) };
        let secrets = replicated::most_shown(self.own.share.plan(), &self.own.among);
        let proofs = |opening: &Opening<C, Cpu>| {
            let noise = (opening.sigma_bits, &opening.multiple);
            Ok(DecryptionProofs::new(context, (&publics.seed, secrets), &opening.c1, noise, receiver)?)
        };
        openings.iter().map(proofs).collect()
    }

    /// The proof of this party's share of an opening, or of that encrypted for somebody.
    pub(super) fn prove<C>(
        &self,
        context: &Context<Cpu>,
        proofs: &DecryptionProofs<'_, Cpu>,
        opening: &Opening<C, Cpu>,
        shown: &[Poly<Cpu, Ntt>],
        sealing: Option<(&Sealing, &PublicKey)>,
    ) -> Result<Vec<u8>> {
        context.params().require_digest(&self.own.share.params_digest)?;
        let own = self.public_part(context, self.own.share.member)?;
        let to = sealing.map(|(_, key)| key.id().0);
        let seed = self.own.seed(opening, to.as_ref().map_or(&[][..], |to| &to[..]));
        let transcript = self.transcript(self.session.party(), opening);
        let flood = Flood { seed: &seed, bits: opening.sigma_bits };
        let witness = (&self.own.part, flood, sealing.map(|(sealing, _)| sealing));
        Ok(proofs.prove((&own, shown), witness, &transcript, &mut Randomness::from_os())?)
    }

    /// Fails unless what a party shows of each opening, so many polynomials, has its proof in these bytes.
    pub(super) fn verified<C>(
        &self,
        party: usize,
        context: &Context<Cpu>,
        (proofs, openings): (&[DecryptionProofs<'_, Cpu>], &[Opening<C, Cpu>]),
        shown: &[Vec<Poly<Cpu, Ntt>>],
        mut bytes: &[u8],
    ) -> Result<()> {
        let theirs = self.public_part(context, self.own.among[party])?;
        for ((proofs, opening), shown) in proofs.iter().zip(openings).zip(shown) {
            let (proof, rest) = bytes.split_at(proofs.bytes()?.min(bytes.len()));
            proofs.verify((&theirs, shown), proof, &self.transcript(party, opening))?;
            bytes = rest;
        }
        Ok(())
    }

    /// What is known of the part of s that a member shows.
    fn public_part(&self, context: &Context<Cpu>, member: usize) -> Result<Poly<Cpu, Ntt>> {
        let publics = self.own.share.publics.as_ref().ok_or(Error::Aborted)?;
        replicated::public_part(context, self.own.share.plan(), publics, &self.own.among, member)
    }

    /// What a party's proof of its share is bound to.
    fn transcript<C>(&self, party: usize, opening: &Opening<C, Cpu>) -> Transcript {
        let mut transcript = Transcript::new(self.session.id(), party, "share of a decryption");
        transcript.absorb("subject", &opening.subject);
        transcript
    }
}
