//! One holder of a joint key from its files to its files: keys made with the others, decryptions with those who are there.
//!
//! A directory of a joint key has [`SHARE`], its journal of decryptions [`JOURNAL`], and the three files that every directory
//! of keys has but the secret key: whoever encrypts or computes reads it as any other. The envelope key is the same for all
//! holders, from a coin that they tossed: they believe each other's certificates, and nobody else's.
//!
//! Nothing is written before all parties have made the same; then each says that it has written its files. What is in a column is shown
//! once: the journal knows it before a share leaves.

mod handing;
mod keys;
mod opening;
mod rewriting;
#[cfg(test)]
mod tests;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use synchromesh::bundle::{Bundle, BundleError, KEY, Kind};
use synchromesh::plan::{Joint, Plan};
use synchromesh::rlwe::file::FileError;
use synchromesh::rlwe::wire::EnvelopeKey;

pub use self::handing::{HandedOn, NewHolders};
pub use self::keys::Generated;
pub use self::opening::{Column, Decrypted};
pub use self::rewriting::{Rewritten, TENSOR};
use crate::error::{Error, Result};
use crate::hosts;
use crate::session::Session;
use crate::tls::{Identity, Peer, Stop, Tls};

/// The file of the share.
pub const SHARE: &str = "share.key";

/// The file of its journal.
pub const JOURNAL: &str = "share.journal";

/// What a party accepts of a plan, which it need not have written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Bits of computational security.
    pub security: f64,
    /// Bits by which what decryptions show is hidden.
    pub statistical_security: u32,
}

impl Default for Floor {
    fn default() -> Self {
        Self { security: 128.0, statistical_security: 40 }
    }
}

impl Floor {
    /// The joint key of a plan that this floor bears.
    fn admit(&self, plan: &Plan) -> Result<Joint> {
        let joint = plan.joint.ok_or(Error::NotJoint)?;
        // A hundredth of a bit below is what estimates say of parameters that were chosen for this many.
        if plan.security_bits < self.security {
            return Err(Error::BelowFloor { what: "bits of security", has: plan.security_bits, least: self.security });
        }
        if joint.security < self.statistical_security {
            let (has, least) = (joint.security.into(), self.statistical_security.into());
            return Err(Error::BelowFloor { what: "bits of statistical security", has, least });
        }
        Ok(joint)
    }
}

/// Who a party is, and whom it meets.
#[derive(Clone, Debug)]
pub struct Party {
    /// The list of parties, in the order of their numbers when the key was made.
    pub hosts: PathBuf,
    /// Its certificate.
    pub identity: PathBuf,
    /// The numbers of those who meet, its own among them; none: all of the list.
    pub with: Option<Vec<usize>>,
    /// How long to wait for others.
    pub timeout: Duration,
    /// Ends the session from another thread.
    pub stop: Stop,
}

/// What a session took of this party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Rounds.
    pub rounds: u64,
    /// Bytes that it sent.
    pub bytes_sent: u64,
}

/// A party that knows where the others are, and has not called them.
struct Ready {
    identity: Identity,
    peers: Vec<Peer>,
    /// Its own number in the list.
    number: usize,
    /// Numbers of those who meet, in rising order.
    present: Vec<usize>,
    timeout: Duration,
    stop: Stop,
}

impl Party {
    /// Reads list and certificate.
    fn ready(&self) -> Result<Ready> {
        let (peers, identity) = (hosts::read(&self.hosts)?, Identity::read(&self.identity)?);
        let own = identity.fingerprint();
        let number = peers
            .iter()
            .position(|peer| peer.fingerprint == own)
            .ok_or_else(|| Error::Unlisted { path: self.hosts.clone(), fingerprint: hosts::fingerprint_text(&own) })?;
        let mut present = self.with.clone().unwrap_or_else(|| (0..peers.len()).collect());
        present.sort_unstable();
        present.dedup();
        if !present.contains(&number) {
            return Err(Error::NotAmong { number, present });
        }
        Ok(Ready { identity, peers, number, present, timeout: self.timeout, stop: self.stop.clone() })
    }
}

impl Ready {
    /// Fails unless as many meet as it takes.
    fn require(&self, least: usize, joint: &Joint) -> Result<()> {
        let parties = joint.parties;
        if self.peers.len() != parties {
            let rule = format!("the list names {}", self.peers.len());
            return Err(Error::JointKey { parties, rule });
        }
        let present = self.present.len();
        if present < least {
            return Err(Error::TooFew { present, threshold: least, parties });
        }
        Ok(())
    }

    /// Calls the others and waits for them.
    fn meet(self, description: &str) -> Result<Session<Tls>> {
        let address = &self.peers[self.number].address;
        let bound = TcpListener::bind(address);
        let listener = bound.map_err(|error| Error::Tls { reason: format!("{address}: {error}") })?;
        let Self { identity, peers, number, present, timeout, stop } = &self;
        let met = Tls::among(present, *number, identity, &listener, peers, (*timeout, stop));
        met.and_then(|transport| Session::new(transport, description)).map_err(|error| ended(error, false))
    }
}

/// A file of keys that is authentic under the envelope key beside it.
fn authentic(directory: &Path, kind: Kind, envelope: &EnvelopeKey) -> Result<Bundle> {
    let path = directory.join(kind.file_name().unwrap_or_default());
    let bundle = Bundle::read(&path)?.require(kind)?;
    bundle.authentic(Some(envelope)).map_err(|why| Error::Unproven { path, why })?;
    Ok(bundle)
}

/// The envelope key of a directory; none where there is none.
fn envelope(directory: &Path) -> Result<Option<EnvelopeKey>> {
    let path = directory.join(Kind::EnvelopeKey.file_name().unwrap_or_default());
    let bundle = match Bundle::read(&path) {
        Err(BundleError::File(FileError::NotFound { .. })) => return Ok(None),
        read => read?.require(Kind::EnvelopeKey)?,
    };
    let (params, _) = bundle.plan()?.params.check()?;
    Ok(Some(EnvelopeKey::from_container(&params, bundle.one(KEY)?)?.0))
}

/// The error of a session that was aborted, with what that leaves to do.
fn ended(error: Error, shown: bool) -> Error {
    match error {
        Error::Abort { .. } => Error::Ended { error: Box::new(error), shown },
        other => other,
    }
}

fn traffic(session: &Session<Tls>) -> Traffic {
    let (rounds, bytes_sent) = session.traffic();
    Traffic { rounds, bytes_sent }
}
