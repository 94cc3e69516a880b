//! Those who have met to decrypt: enough holders of one key, each known to the others.

use synchromesh::rlwe::Context;
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::secret_key::SecretPoly;

use super::plan;
use super::share::KeyShare;
use crate::error::{Blame, Error, Result};
use crate::session::{Kind, Session};
use crate::transport::Transport;

/// Parties of a session who hold shares of one key, enough of them to decrypt.
pub struct Quorum<'a, T> {
    pub(super) session: &'a mut Session<T>,
    pub(super) own: Member<'a>,
}

/// What a party has, and among whom it uses it.
pub(super) struct Member<'a> {
    pub(super) share: &'a KeyShare,
    /// The numbers of those who met, in the order of the session's parties.
    pub(super) among: Vec<usize>,
    /// What this party adds to s.
    pub(super) part: SecretPoly<Cpu>,
}

impl<T> std::fmt::Debug for Quorum<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Quorum({:?} of {})", self.own.among, self.own.share.plan.parties)
    }
}

impl<'a, T: Transport> Quorum<'a, T> {
    /// Tells the others who this is, and hears who they are. Nothing secret is shown.
    ///
    /// # Errors
    /// [`Error::TooFew`] before anything is sent; [`Error::Abort`] if one holds a share of another key, or two claim to be
    /// one, of which nobody can tell who is.
    pub fn meet(session: &'a mut Session<T>, context: &Context<Cpu>, share: &'a KeyShare) -> Result<Self> {
        let params = context.params();
        share.check(params)?;
        let plan = share.plan();
        let present = session.parties();
        if present < plan.threshold || present > plan.parties {
            return Err(Error::TooFew { present, threshold: plan.threshold, parties: plan.parties });
        }
        session.enter("meeting");
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 parties, quorum");
        hasher.update(params.digest()).update(&share.key.0).update(&plan::to_bytes(plan));
        hasher.update(&share.sharing.to_le_bytes());
        session.same("the key", hasher.finalize().as_bytes())?;
        let numbers = session.broadcast(Kind::Record, &(share.member as u64).to_le_bytes(), 8)?;
        session.agree()?;
        let mut members = Vec::with_capacity(present);
        for (party, number) in numbers.iter().enumerate() {
            let number = <[u8; 8]>::try_from(&number[..]).map_or(u64::MAX, u64::from_le_bytes);
            let member = usize::try_from(number).ok().filter(|&member| member < plan.parties);
            let Some(member) = member else {
                let deed = format!("says that it is member {number}, and there are {}", plan.parties);
                return Err(session.abort(Blame::Party(party), &deed));
            };
            if let Some(other) = members.iter().position(|&other| other == member) {
                let [other, party] = [other, party].map(|party| session.number(party));
                let deed = format!("is not who it says: parties {other} and {party} both claim to be member {member}");
                return Err(session.abort(Blame::Somebody, &deed));
            }
            members.push(member);
        }
        let part = share.part(context, &members)?;
        Ok(Self { session, own: Member { share, among: members, part } })
    }

    /// The members' numbers, in the order of the session's parties.
    #[must_use]
    pub fn members(&self) -> &[usize] {
        &self.own.among
    }
}
