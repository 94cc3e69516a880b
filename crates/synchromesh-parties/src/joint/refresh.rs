//! Messages in shares, and ciphertexts from shares: for computing on among parties, and a ciphertext without noise, or with all
//! its levels, from one that has no room left (ePrint 2020/304's E2S and S2E).
//!
//! Each party shows c_1 p_i with what hides it, which its own part of the message is in: the sum of all and c_0 is the phase of
//! the public part, which everybody reads and which says nothing of the message. The way back is an encryption of each own part under
//! the joint key, the sum of all, and the public part added. What parts are is the scheme's affair ([`synchromesh::shares`]).

use std::sync::Arc;

use synchromesh::rlwe::noise::Origins;
use synchromesh::rlwe::ring::{Cpu, Ntt};
use synchromesh::rlwe::{self, PublicKey, Randomness};
use synchromesh::shares::Shares;

use super::quorum::Quorum;
use crate::error::{Error, Result};
use crate::journal::Decryptions;
use crate::polynomials::add_up;
use crate::proven::Rows;
use crate::transport::Transport;

/// One party's share of a message: the public part, which is the same for all, and what all parties' secret parts add up to
/// with it; modulo t, or of CKKS over the integers.
pub struct MessageShare<S: Shares> {
    /// The message less the sum of all parties' parts. It says nothing of it.
    pub public: S::Part,
    /// This party's part. Wiped when dropped.
    pub own: S::Part,
}

impl<S: Shares> std::fmt::Debug for MessageShare<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MessageShare(secret)")
    }
}

impl<T: Transport> Quorum<'_, T> {
    /// The messages of these ciphertexts in shares, which may be put together for others to see; of CKKS with this many bits of
    /// the bound of each message right in every slot then.
    ///
    /// # Errors
    /// As [`Self::decrypt`], and [`synchromesh::Error::NoRoomForShares`].
    pub fn to_shares<S: Shares>(
        &mut self,
        context: &S::Context<Cpu>,
        journal: &mut Decryptions,
        ciphertexts: &[&S::Ciphertext<Cpu>],
        precision: f64,
    ) -> Result<Vec<MessageShare<S>>> {
        self.shared::<S>(context, journal, ciphertexts, Some(precision))
    }

    /// As [`Self::to_shares`]; without a precision, for nobody to see.
    fn shared<S: Shares>(
        &mut self,
        context: &S::Context<Cpu>,
        journal: &mut Decryptions,
        ciphertexts: &[&S::Ciphertext<Cpu>],
        precision: Option<f64>,
    ) -> Result<Vec<MessageShare<S>>> {
        let rlwe = S::rlwe(context);
        self.session.enter("sharing messages");
        let how = (precision.unwrap_or(0.0), None);
        let openings = self.agreed::<S>(context, journal, ciphertexts, how, |context, ciphertext, hiding| {
            S::sharing(context, ciphertext, hiding, precision.is_some())
        })?;
        let mut own: Vec<Option<S::Part>> = openings.iter().map(|_| None).collect();
        let phases = self.opened(rlwe, &openings, &[], |member, i| {
            let (part, hides) = S::own_part(context, &openings[i], &member.seed(&openings[i], b"shares"))?;
            own[i] = Some(part);
            member.hidden(rlwe, &openings[i], &hides)
        })?;
        let share = |((opening, phase), own): (_, Option<S::Part>)| {
            let public = S::public_part(context, opening, phase)?;
            Ok(MessageShare { public, own: own.ok_or(Error::Aborted)? })
        };
        openings.iter().zip(&phases).zip(own).map(share).collect()
    }

    /// A ciphertext at the highest level of each message that is in shares, as if it had just been encrypted, but for the error
    /// that the message had of CKKS.
    ///
    /// # Errors
    /// [`crate::Error::Abort`] with the blame; [`rlwe::Error::KeysDiffer`] for another public key.
    pub fn from_shares<S: Shares>(
        &mut self,
        context: &Arc<S::Context<Cpu>>,
        public: &PublicKey,
        shares: &[MessageShare<S>],
    ) -> Result<Vec<S::Ciphertext<Cpu>>> {
        let rlwe = S::rlwe(context);
        let (params, parties) = (rlwe.params(), self.own.among.len());
        self.session.enter("encrypting shares");
        public.id().require(self.own.share.key())?;
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 parties, what is encrypted");
        shares.iter().for_each(|share| S::absorb(&share.public, &mut hasher));
        self.session.same("what is to be encrypted", hasher.finalize().as_bytes())?;
        let (mut randomness, level) = (Randomness::from_os(), params.top_level());
        let primes = params.level(level)?;
        let mut noises: Vec<rlwe::Noise> = shares.iter().map(|_| rlwe::Noise::ZERO).collect();
        let pieces = vec![vec![primes.clone(); 2]; shares.len()];
        let sums = add_up(self.session, rlwe, &pieces, |i| {
            let (part, encoding) = S::fresh_part(context, &shares[i].own)?;
            let fresh: rlwe::Ciphertext<Cpu, Ntt> = public.encrypt(rlwe, &part, level, &mut randomness)?;
            noises[i] = fresh.noise().plus(encoding);
            Ok(fresh.into_parts())
        })?;
        self.session.agree()?;
        let whole = |((share, noise), sum): ((&MessageShare<S>, rlwe::Noise), Rows)| {
            // Each party's is bounded as the own, whatever they have in common.
            let noise = noise.times((parties as f64).log2()).with_origins(Origins::ANY);
            let inner = rlwe::Ciphertext::new(params, sum, level, public.id(), noise)?;
            Ok(S::whole(context, inner, &share.public, parties)?)
        };
        shares.iter().zip(noises).zip(sums).map(whole).collect()
    }

    /// Ciphertexts of the same messages at the highest level: fresh ones, but for the error that a message of CKKS has.
    ///
    /// # Errors
    /// As [`Self::to_shares`] and [`Self::from_shares`].
    pub fn refresh<S: Shares>(
        &mut self,
        context: &Arc<S::Context<Cpu>>,
        journal: &mut Decryptions,
        public: &PublicKey,
        ciphertexts: &[&S::Ciphertext<Cpu>],
    ) -> Result<Vec<S::Ciphertext<Cpu>>> {
        public.id().require(self.own.share.key())?;
        let shares = self.shared::<S>(context, journal, ciphertexts, None)?;
        self.from_shares::<S>(context, public, &shares)
    }
}
