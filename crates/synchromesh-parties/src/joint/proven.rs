//! Shares of decryptions that are proven, under keys whose shares are: each is c_1 s_i + t f_i for the s_i of the party's share of
//! the public key, and noise f_i of about the width that it should have.

use synchromesh::opening::Opening;
use synchromesh::rlwe::ring::{Cpu, Ntt, Poly};
use synchromesh::rlwe::{Context, PublicKey, Randomness};

use super::quorum::Quorum;
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
        let proofs = |opening: &Opening<C, Cpu>| {
            let noise = (opening.sigma_bits, &opening.multiple);
            Ok(DecryptionProofs::new(context, &publics.seed, &opening.c1, noise, receiver)?)
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
        let own = self.own.share.publics.as_ref().and_then(|publics| publics.shares.get(self.own.share.member));
        let own = own.ok_or(Error::Aborted)?;
        let to = sealing.map(|(_, key)| key.id().0);
        let seed = self.own.seed(opening, to.as_ref().map_or(&[][..], |to| &to[..]));
        let transcript = self.transcript(self.session.party(), opening);
        let flood = Flood { seed: &seed, bits: opening.sigma_bits };
        let witness = (&self.own.part, flood, sealing.map(|(sealing, _)| sealing));
        Ok(proofs.prove((own, shown), witness, &transcript, &mut Randomness::from_os())?)
    }

    /// Fails unless what a party shows of each opening, so many polynomials, has its proof in these bytes.
    pub(super) fn verified<C>(
        &self,
        party: usize,
        proofs: &[DecryptionProofs<'_, Cpu>],
        openings: &[Opening<C, Cpu>],
        shown: &[Vec<Poly<Cpu, Ntt>>],
        mut bytes: &[u8],
    ) -> Result<()> {
        for ((proofs, opening), shown) in proofs.iter().zip(openings).zip(shown) {
            let member = self.own.among[party];
            let theirs = self.own.share.publics.as_ref().and_then(|publics| publics.shares.get(member));
            let (proof, rest) = bytes.split_at(proofs.bytes()?.min(bytes.len()));
            let theirs = theirs.ok_or(Error::Aborted)?;
            proofs.verify((theirs, shown), proof, &self.transcript(party, opening))?;
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
