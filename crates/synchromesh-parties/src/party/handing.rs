//! A joint key handed on to other holders, from files to files: the directory that each of the new ones has afterwards.
//!
//! Givers bring their directory, new holders a copy of one without a share. Public files are taken over as they are, byte for
//! byte, so that whoever encrypts or computes need not know; the share's file has the plan with the new holders.

use std::path::{Path, PathBuf};

use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::bundle::{Bundle, KEY, Kind, PLAN, Unproven};
use synchromesh::ckks::Ckks;
use synchromesh::plan::{Joint, Plan, SchemeName};
use synchromesh::rlwe::file::{Access, Part, Set};
use synchromesh::rlwe::wire::EnvelopeKey;
use synchromesh::rlwe::{KeyId, PublicKey};
use synchromesh::scheme::Scheme;
use zeroize::Zeroizing;

use super::keys::{NAMES, confirm};
use super::{Floor, JOURNAL, Party, Ready, SHARE, Traffic, authentic, ended, envelope, traffic};
use crate::error::{Error, Result};
use crate::hosts;
use crate::joint::{Holding, KeyShare, Taken, reshare};
use crate::tls::{Identity, Peer};

/// Who is to hold the key.
#[derive(Clone, Debug)]
pub struct NewHolders {
    /// The list of them, in the order of their new numbers.
    pub hosts: PathBuf,
    /// How many of them decrypt; none: all.
    pub threshold: Option<usize>,
}

/// What handing on left behind.
#[derive(Clone, Debug)]
pub struct HandedOn {
    /// Names the joint key.
    pub key: KeyId,
    /// The plan.
    pub plan: Plan,
    /// Its joint key with the new holders.
    pub joint: Joint,
    /// Number of this party among the new holders.
    pub member: Option<usize>,
    /// Numbers of the old holders who gave.
    pub givers: Vec<usize>,
    /// Path and size in bytes of each file; none where this party took no share.
    pub files: Vec<(PathBuf, u64)>,
    /// The old share and its journal, where this party gave: they can still do what they could, and are to be deleted.
    pub spent: Vec<PathBuf>,
    /// Decryptions that the new journal begins with.
    pub decryptions: u64,
    /// What this party sent.
    pub traffic: Traffic,
}

/// What is read before anybody is called.
struct Handing<'a> {
    ready: Ready,
    plan: Plan,
    to: Joint,
    share: Option<Bundle>,
    /// Number among the old holders, if this party gives.
    gives: Option<usize>,
    takes: Option<usize>,
    givers: Vec<usize>,
    envelope: EnvelopeKey,
    keys: &'a Path,
    public: [Bundle; 3],
}

impl Party {
    /// Hands the key in this directory on to new holders, all of whom are there, with the old ones who are named in
    /// [`Party::with`]; who is neither has nothing to do here. New holders write a directory to `out`: all files or none.
    ///
    /// # Errors
    /// Those of files, plans and too few parties before anybody is called; those of [`reshare`]. [`Error::Unconfirmed`] if all is
    /// written here, and somebody did not say so of itself.
    pub fn hand_on(&self, keys: &Path, to: &NewHolders, floor: &Floor, out: &Path) -> Result<HandedOn> {
        let handing = self.handing(keys, to, floor)?;
        let set = handing.takes.map(|_| Set::begin(out, &NAMES)).transpose()?;
        let done = match handing.plan.scheme {
            SchemeName::Bfv => handing.run::<Bfv>(set, out),
            SchemeName::Bgv => handing.run::<Bgv>(set, out),
            SchemeName::Ckks => handing.run::<Ckks>(set, out),
        };
        done.map_err(|error| ended(error, false))
    }

    fn handing<'a>(&self, keys: &'a Path, new: &NewHolders, floor: &Floor) -> Result<Handing<'a>> {
        let path = keys.join(Kind::EnvelopeKey.file_name().unwrap_or_default());
        let none = || Error::Unproven { path: path.clone(), why: Unproven::NoEnvelopeKey };
        let envelope = envelope(keys)?.ok_or_else(none)?;
        let public = authentic(keys, Kind::PublicKey, &envelope)?;
        let evaluation = authentic(keys, Kind::EvaluationKeys, &envelope)?;
        let plan = public.plan()?;
        let made = floor.admit(&plan)?;
        let (identity, old, next) =
            (Identity::read(&self.identity)?, hosts::read(&self.hosts)?, hosts::read(&new.hosts)?);
        let own = identity.fingerprint();
        let place = |peers: &[Peer]| peers.iter().position(|peer| peer.fingerprint == own);
        let mut givers = self.with.clone().unwrap_or_else(|| (0..old.len()).collect());
        givers.sort_unstable();
        givers.dedup();
        let (gives, takes) = (place(&old).filter(|number| givers.contains(number)), place(&next));
        if gives.is_none() && takes.is_none() {
            return Err(Error::Unlisted { path: new.hosts.clone(), fingerprint: hosts::fingerprint_text(&own) });
        }
        let share = gives.map(|_| authentic(keys, Kind::KeyShare, &envelope)).transpose()?;
        if let Some(share) = &share {
            let held = floor.admit(&share.plan()?)?;
            let (parties, present) = (held.parties, givers.len());
            if old.len() != parties {
                return Err(Error::JointKey { parties, rule: format!("the list names {}", old.len()) });
            }
            if present < held.threshold {
                return Err(Error::TooFew { present, threshold: held.threshold, parties });
            }
        }
        // Those who give, in the order of their numbers, then all others who take.
        let unknown = |&number: &usize| Error::Parties { party: number, parties: old.len(), most: old.len() };
        let mut peers = givers
            .iter()
            .map(|number| old.get(*number).cloned().ok_or_else(|| unknown(number)))
            .collect::<Result<Vec<Peer>>>()?;
        let further = next.iter().filter(|peer| givers.iter().all(|&i| old[i].fingerprint != peer.fingerprint));
        peers.extend(further.cloned().collect::<Vec<_>>());
        let number = place(&peers).unwrap_or_default();
        let present = (0..peers.len()).collect();
        let ready = Ready { identity, peers, number, present, timeout: self.timeout, stop: self.stop.clone() };
        let to = made.held_by(new.threshold.unwrap_or(next.len()), next.len());
        to.check().map_err(|error| Error::JointKey { parties: to.parties, rule: error.to_string() })?;
        let public = [Bundle::read(&path)?.require(Kind::EnvelopeKey)?, evaluation, public];
        Ok(Handing { ready, plan, to, share, gives, takes, givers, envelope, keys, public })
    }
}

impl Handing<'_> {
    fn run<S: Scheme>(self, set: Option<Set>, out: &Path) -> Result<HandedOn> {
        let Self { ready, plan, to, share, gives, takes, givers, envelope, keys, public } = self;
        let opened = plan.open::<S>()?;
        let context = opened.rlwe();
        let share = share.map(|share| KeyShare::from_bytes(context, share.one(KEY)?)).transpose()?;
        if let Some((share, party)) = share.as_ref().zip(gives).filter(|(share, party)| share.member() != *party) {
            return Err(Error::AnothersShare { member: share.member(), party });
        }
        let journal = share.as_ref().map(|share| share.open_journal(&keys.join(JOURNAL))).transpose()?;
        let key = PublicKey::from_bytes(context, public[2].one(KEY)?, None, None)?;
        let mut plan = plan;
        plan.joint = Some(to);
        let text = plan.to_json()?;
        let mut session = ready.meet("synchromesh parties, new holders")?;
        session.enter("comparing plans");
        session.same("the plan", blake3::hash(text.as_bytes()).as_bytes())?;
        let holding = Holding { gives: share.as_ref().zip(journal.as_ref()), takes };
        let taken = reshare(&mut session, context, &key, &to, holding)?;
        let (mut files, mut decryptions, mut paths) = (Vec::new(), 0, Vec::new());
        if let (Some(Taken { share, decrypted }), Some(set)) = (taken, set) {
            let made = || -> Result<_> {
                let own = share.to_bytes(context)?;
                let sections = [(PLAN, text.as_bytes()), (KEY, &own[..])];
                Ok([
                    Zeroizing::new(share.journal_with(&decrypted)),
                    Bundle::encode(Kind::KeyShare, &sections, Some(&envelope))?,
                ])
            };
            let made = session.or_leave(made())?;
            let bytes = made.iter().map(|bytes| &bytes[..]).chain(public.iter().map(Bundle::bytes));
            let access = [Access::Secret, Kind::KeyShare.access(), Access::Secret, Access::Public, Access::Public];
            let parts = NAMES.into_iter().zip(bytes).zip(access);
            let parts: Vec<Part<'_>> = parts.map(|((name, bytes), access)| Part { name, bytes, access }).collect();
            paths = session.or_leave(set.write(&parts))?;
            files = paths.iter().cloned().zip(parts.iter().map(|part| part.bytes.len() as u64)).collect();
            decryptions = decrypted.len() as u64;
        }
        confirm(&mut session, blake3::hash(text.as_bytes()).as_bytes(), out, &paths)?;
        let spent = share.map_or_else(Vec::new, |_| vec![keys.join(SHARE), keys.join(JOURNAL)]);
        let traffic = traffic(&session);
        Ok(HandedOn { key: key.id(), plan, joint: to, member: takes, givers, files, spent, decryptions, traffic })
    }
}
