//! `parties`: keys that several parties hold together, one of which this process is.

use super::overwrite::Overwrite;
use super::place::Cores;
use super::session::{Encrypt, Eval, read_plan, require_memory};
use crate::error::Error;
use crate::interrupt::Children;
use crate::number::{Number, numbers};
use crate::output::Report;
use crate::session::require_secure;
use crate::table::{Table, TableError};
use crate::triples::identity;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use synchromesh::plan::Joint;
use synchromesh_rlwe::file::{self, Access};
use synchromesh_triples::parties::party::{Column, Floor, NewHolders, Party, Rewritten, Traffic};
use synchromesh_triples::parties::tls::Stop;

/// Keys that nobody holds alone: made by all parties, used by anybody, decrypted with by those who have met.
///
/// Each party runs each command on its own machine, at about the same time; they meet over TLS. Parties are
/// expected to follow the protocol: a share of a decryption that is wrong makes the result wrong. Where the plan says so
/// (`plan --proofs`) shares of keys, and of what is decrypted for all or for one receiver, are proven, and who sends a wrong one is
/// named; what is made fresh still takes parties who follow the protocol.
#[derive(Subcommand, Debug)]
pub(super) enum Parties {
    /// Make a party's certificate and print the fingerprint that the others need.
    Identity {
        /// The file.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    Keygen(Keygen),
    /// As `encrypt`: with the public key in a party's directory, or in a copy of it without the share.
    Encrypt(Encrypt),
    /// As `eval`: with the evaluation keys in a party's directory, or in a copy of it without the share.
    Eval(Eval),
    Decrypt(Decrypt),
    Refresh(Refresh),
    Reshare(Reshare),
}

/// Who this is, and whom it meets.
#[derive(Args, Debug)]
struct Meeting {
    /// The list of parties: a line for each, host:port and fingerprint, in the order in which they made the key.
    #[arg(long, value_name = "FILE")]
    hosts: PathBuf,
    /// This party's certificate, of `parties identity`: its fingerprint says which line of the list is its own.
    #[arg(long, value_name = "FILE")]
    identity: PathBuf,
    /// Seconds to wait for the others before giving up.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    #[command(flatten)]
    threads: Cores,
}

impl Meeting {
    fn party(&self, with: Option<Vec<usize>>) -> Result<Party, Error> {
        self.threads.settle()?;
        let (hosts, identity) = (self.hosts.clone(), self.identity.clone());
        Ok(Party { hosts, identity, with, timeout: Duration::from_secs(self.timeout), stop: Stop::default() })
    }
}

/// What a holder of a key and those who are there need to know.
#[derive(Args, Debug)]
struct Holder {
    /// This party's directory.
    #[arg(long, value_name = "DIR")]
    keys: PathBuf,
    /// Numbers of the holders who are there, say 0,2 [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    with: Option<Vec<usize>>,
    #[command(flatten)]
    meeting: Meeting,
    #[command(flatten)]
    least: Least,
}

impl Holder {
    fn party(&self) -> Result<Party, Error> {
        self.meeting.party(self.with.clone())
    }
}

/// A column, and what becomes of it.
#[derive(Args, Debug)]
struct Files {
    /// The encrypted column.
    #[arg(long, value_name = "FILE")]
    r#in: PathBuf,
    /// What becomes of it: a table, or a column again.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
}

/// What this party takes of a plan, whoever wrote it.
#[derive(Args, Debug)]
struct Least {
    /// Accept less than 128 bits of security.
    #[arg(long)]
    insecure: bool,
    /// Bits of statistical security that the plan must have.
    #[arg(long, value_name = "BITS", default_value_t = Floor::default().statistical_security)]
    least_statistical_security: u32,
}

impl Least {
    fn floor(&self) -> Floor {
        let security = if self.insecure { 0.0 } else { Floor::default().security };
        Floor { security, statistical_security: self.least_statistical_security }
    }
}

/// Makes a joint key with all other parties: DIR/share.key and DIR/share.journal for this one alone, and DIR/public.key,
/// DIR/eval.keys and DIR/envelope.key, which are the same for all. All or none; existing keys stay.
///
/// Share and journal belong together: move both, and never go on with a copy of them. Whoever has envelope.key is trusted to say
/// how much noise a ciphertext has: give it to those who encrypt and compute, if you trust them.
#[derive(Args, Debug)]
pub(super) struct Keygen {
    /// The plan, from `plan --parties N --out`: the same file at all parties.
    #[arg(long)]
    plan: PathBuf,
    /// This party's directory.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    meeting: Meeting,
    #[command(flatten)]
    least: Least,
}

#[derive(Serialize)]
struct KeyFile {
    path: String,
    bytes: u64,
}

#[derive(Serialize)]
struct Keys {
    scheme: &'static str,
    key_id: String,
    parties: usize,
    threshold: usize,
    party: usize,
    security_bits: f64,
    statistical_security: u32,
    decryptions: u64,
    security_model: &'static str,
    rotations: Vec<i64>,
    #[serde(flatten)]
    traffic: Sent,
    files: Vec<KeyFile>,
}

#[derive(Serialize)]
struct Sent {
    rounds: u64,
    bytes_sent: u64,
}

impl From<Traffic> for Sent {
    fn from(Traffic { rounds, bytes_sent }: Traffic) -> Self {
        Self { rounds, bytes_sent }
    }
}

/// What is assumed of the parties who make keys or decrypt.
const fn model(joint: &Joint) -> &'static str {
    match joint.proofs {
        true => {
            "malicious: shares of keys, and of what is decrypted for all or for one receiver, are proven; what is made fresh is not"
        }
        false => FOLLOWING,
    }
}

/// What is assumed of those who pass on or make fresh, whatever the plan: a share that is wrong makes the result wrong.
const FOLLOWING: &str = "semi-honest: parties follow the protocol";

impl Keygen {
    fn run(&self) -> Result<Report, Error> {
        let plan = read_plan(&self.plan)?;
        require_secure(&plan, self.least.insecure)?;
        require_memory(&plan)?;
        let joint = plan.joint.ok_or(synchromesh_triples::parties::Error::NotJoint)?;
        let party = self.meeting.party(None)?;
        let made = party.generate_keys(&plan, &self.least.floor(), &self.out)?;
        let file = |(path, bytes): (PathBuf, u64)| KeyFile { path: path.display().to_string(), bytes };
        Report::new(&Keys {
            scheme: plan.scheme.name(),
            key_id: made.key.to_string(),
            parties: joint.parties,
            threshold: joint.threshold,
            party: made.member,
            security_bits: plan.security_bits,
            statistical_security: joint.security,
            decryptions: joint.decryptions,
            security_model: model(&joint),
            rotations: plan.rotations,
            traffic: made.traffic.into(),
            files: made.files.into_iter().map(file).collect(),
        })
    }
}

/// Decrypts a column with the other parties who are there: all, or as many as the key takes, named with --with.
///
/// All of them run this command with the same file, and all get the numbers, in a CSV file or an NPY file if --out ends in
/// .npy; with --to nobody but the receiver does, who decrypts the file that comes out with `decrypt`. The input must be
/// authenticated under DIR/envelope.key. A ciphertext is decrypted once: to see it again, add an encrypted column of
/// zeros with `eval`, which is another ciphertext and counts as another decryption.
#[derive(Args, Debug)]
pub(super) struct Decrypt {
    #[command(flatten)]
    files: Files,
    /// A receiver's directory with public.key and, for a result that is authenticated, envelope.key: of `keygen` with the same
    /// plan. What comes out is the column under the receiver's key.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// ckks: bits of the bound of each message that must be right in every slot; fewer are an error before anything is shown.
    #[arg(long, value_name = "BITS", default_value_t = 1.0)]
    precision: f64,
    #[command(flatten)]
    holder: Holder,
}

#[derive(Serialize)]
struct Shown {
    out: String,
    bytes: u64,
    scheme: &'static str,
    rows: usize,
    ciphertexts: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<usize>,
    members: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_bound: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authenticated: Option<bool>,
    decryptions: u64,
    most_decryptions: u64,
    security_model: &'static str,
    #[serde(flatten)]
    traffic: Sent,
}

impl Decrypt {
    fn run(&self) -> Result<Report, Error> {
        let (Files { r#in, out, overwrite }, Holder { keys, least, .. }) = (&self.files, &self.holder);
        let existing = overwrite.permit([out.as_path()])?;
        let (party, input, out): (_, &Path, &Path) = (self.holder.party()?, r#in, out);
        if let Some(receiver) = &self.to {
            let to = (&**receiver, &[out][..], existing);
            let passed = party.pass_on(keys, &[input], to, self.precision, &least.floor())?;
            let model = passed.plan.joint.as_ref().map_or(FOLLOWING, model);
            return Report::new(&Shown::rewritten(out, passed, model));
        }
        let shown = party.decrypt(keys, &[input], self.precision, &least.floor())?;
        let Some(column) = shown.columns.into_iter().next() else { return Err(TableError::Empty.into()) };
        let (ciphertexts, error_bound) = (column.values.len(), column.error_bound);
        let (name, values) = named(column);
        let rows = values.len();
        let table = Table::from_columns(Some(vec![name]), &[values])?;
        file::write(out, &table.to_bytes(out)?, Access::Secret, existing)?;
        Report::new(&Shown {
            out: out.display().to_string(),
            bytes: std::fs::metadata(out).map_or(0, |metadata| metadata.len()),
            scheme: shown.plan.scheme.name(),
            rows,
            ciphertexts,
            level: None,
            members: shown.members,
            error_bound: (error_bound > 0.0).then_some(error_bound),
            authenticated: None,
            decryptions: shown.decryptions.0,
            most_decryptions: shown.decryptions.1,
            security_model: shown.plan.joint.as_ref().map_or(FOLLOWING, model),
            traffic: shown.traffic.into(),
        })
    }
}

/// Makes a column fresh, at the highest level of its plan, with the other parties who are there: all, or as many as the key
/// takes, named with --with.
///
/// All of them run this command with the same file, nobody sees what it holds, and all get the same column, for whoever computes.
/// The input must be authenticated under DIR/envelope.key. It counts as a decryption, and cannot be decrypted any more:
/// what comes out can. In ckks its level needs room for what hides it, and its error stays.
#[derive(Args, Debug)]
pub(super) struct Refresh {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    holder: Holder,
}

impl Refresh {
    fn run(&self) -> Result<Report, Error> {
        let (Files { r#in, out, overwrite }, Holder { keys, least, .. }) = (&self.files, &self.holder);
        let existing = overwrite.permit([out.as_path()])?;
        let (party, input, out): (_, &Path, &Path) = (self.holder.party()?, r#in, out);
        let fresh = party.refresh(keys, &[input], (&[out], existing), &least.floor())?;
        Report::new(&Shown::rewritten(out, fresh, FOLLOWING))
    }
}

impl Shown {
    fn rewritten(out: &Path, written: Rewritten, security_model: &'static str) -> Self {
        Self {
            out: out.display().to_string(),
            bytes: written.files.iter().map(|file| file.1).sum(),
            scheme: written.plan.scheme.name(),
            rows: written.rows,
            ciphertexts: written.ciphertexts,
            level: Some(written.level),
            members: written.members,
            error_bound: None,
            authenticated: Some(written.authenticated),
            decryptions: written.decryptions.0,
            most_decryptions: written.decryptions.1,
            security_model,
            traffic: written.traffic.into(),
        }
    }
}

/// Hands a joint key on to other holders, so many of whom decrypt from then on: some come, some go, some stay.
///
/// As many of the old holders as decrypt, named with --with, and all new ones run this command. Public, evaluation and envelope keys
/// stay as they are, and so does all that was encrypted. An old holder's --keys is its directory, that of one who comes a copy
/// of it without share and journal. New holders get a directory with a share, and a journal that has what those who gave had
/// decrypted. Old shares can do what they could before: that a holder leaves means that it deletes its own, and it is believed
/// that enough of them do.
#[derive(Args, Debug)]
pub(super) struct Reshare {
    /// The new directory, of one who is in the new list.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The list of new holders, in the order of their new numbers.
    #[arg(long, value_name = "FILE")]
    new_hosts: PathBuf,
    /// As many of the new holders as decrypt [default: all].
    #[arg(long, value_name = "T")]
    threshold: Option<usize>,
    #[command(flatten)]
    holder: Holder,
}

#[derive(Serialize)]
struct HandedOn {
    scheme: &'static str,
    key_id: String,
    parties: usize,
    threshold: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    party: Option<usize>,
    givers: Vec<usize>,
    decryptions: u64,
    most_decryptions: u64,
    security_model: &'static str,
    #[serde(flatten)]
    traffic: Sent,
    files: Vec<KeyFile>,
    delete: Vec<String>,
}

impl Reshare {
    fn run(&self) -> Result<Report, Error> {
        let to = NewHolders { hosts: self.new_hosts.clone(), threshold: self.threshold };
        let Holder { keys, least, .. } = &self.holder;
        let done = self.holder.party()?.hand_on(keys, &to, &least.floor(), &self.out)?;
        let joint = done.joint;
        let file = |(path, bytes): (PathBuf, u64)| KeyFile { path: path.display().to_string(), bytes };
        Report::new(&HandedOn {
            scheme: done.plan.scheme.name(),
            key_id: done.key.to_string(),
            parties: joint.parties,
            threshold: joint.threshold,
            party: done.member,
            givers: done.givers,
            decryptions: done.decryptions,
            most_decryptions: joint.decryptions,
            security_model: model(&joint),
            traffic: done.traffic.into(),
            files: done.files.into_iter().map(file).collect(),
            delete: done.spent.into_iter().map(|path| path.display().to_string()).collect(),
        })
    }
}

/// A column's name and its numbers.
fn named(column: Column) -> (String, Vec<Number>) {
    let mut values: Vec<Number> = column.values.iter().flat_map(numbers).collect();
    values.truncate(column.head.rows);
    (column.head.name, values)
}

impl Parties {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        Children::default().end_with_signals(json)?;
        match self {
            Self::Identity { out } => Report::new(&identity(out)?),
            Self::Keygen(keygen) => keygen.run(),
            Self::Encrypt(encrypt) => encrypt.run(json),
            Self::Eval(eval) => eval.run(json),
            Self::Decrypt(decrypt) => decrypt.run(),
            Self::Refresh(refresh) => refresh.run(),
            Self::Reshare(reshare) => reshare.run(),
        }
    }
}
