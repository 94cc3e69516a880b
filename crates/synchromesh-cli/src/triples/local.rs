//! All parties as processes of this machine: `triples local`.

use super::{Format, Origin, Wanted, io, most_bytes};
use crate::error::Error;
use crate::interrupt::Children;
use serde_json::{Map, Value, json};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use synchromesh_triples::generation::{Floor, GenerationPlan, Request};
use synchromesh_triples::mp_spdz::Preprocessing;
use synchromesh_triples::parties::hosts;
use synchromesh_triples::parties::tls::{Identity, Peer};
use synchromesh_triples::party::{Spread, Want, require_vacant};
use synchromesh_triples::share::check_opened;
use synchromesh_triples::{Field, MacKeyShare, Shape, tuples};

/// All parties on this machine.
#[derive(Debug, Clone)]
pub struct Local {
    /// What is to be made.
    pub wanted: Wanted,
    /// Where all files go.
    pub out: PathBuf,
    /// Threads of each party.
    pub threads: usize,
    /// How triples are written.
    pub format: Format,
    /// How long parties wait for one another.
    pub timeout: Duration,
    /// Whether party 0 says where it is.
    pub progress: bool,
}

impl Local {
    /// Deals keys or lets parties make them, runs a process for each party over TLS on the loopback, and opens what they
    /// wrote to check it.
    ///
    /// # Errors
    /// What dealing fails with, or [`Error::Party`] for the first party that failed.
    pub fn run(&self, children: &Children) -> Result<(Map<String, Value>, bool), Error> {
        let (setup, wanted, wants) = (self.vacant_setup(), self.wanted_here()?, self.wanted.wants()?);
        let first = Spread::first(&self.out);
        let vacant = |plan: &GenerationPlan| {
            let place = (self.out.as_path(), self.format.into(), self.wanted.spread);
            (0..plan.parties()).try_for_each(|party| Ok(require_vacant(place, plan, party, &wants)?))
        };
        let mut report = wanted.deal_here(&setup, wanted.parties, vacant)?;
        self.meet(&setup)?;
        if self.wanted.keys == Origin::Generate {
            self.share_plan(&setup)?;
        }
        let reports = self.parties(&setup, children);
        // Where one failed the others wait for it no longer.
        children.end();
        let reports = reports?;
        let mut phases = match report.remove("phases") {
            Some(Value::Array(phases)) => phases,
            _ => Vec::new(),
        };
        phases.extend(largest(&reports));
        let made = reports.first().map(|report| report["made"].clone()).unwrap_or_default();
        let per_party = reports.iter().map(|party| party["phases"].clone()).collect::<Vec<_>>();
        let mut files: Vec<Value> = Vec::new();
        for file in reports.iter().filter_map(|party| party["files"].as_array()).flatten() {
            if !files.contains(file) {
                files.push(file.clone());
            }
        }
        let verified = match self.format {
            Format::MpSpdz => Some(self.verify(first)?),
            Format::Plain => None,
        };
        report.insert("phases".into(), phases.into());
        report.insert("phases_of_parties".into(), per_party.into());
        report.insert("made".into(), made);
        report.insert("verified".into(), json!(verified));
        report.insert("files".into(), files.into());
        Ok((report, verified.unwrap_or(true)))
    }

    /// The first directory for a setup where there is none yet.
    fn vacant_setup(&self) -> PathBuf {
        let first = self.out.join("setup");
        let others = (2..).map(|number: u32| self.out.join(format!("setup-{number}")));
        std::iter::once(first.clone()).chain(others).find(|path| !path.join("plan.json").exists()).unwrap_or(first)
    }

    /// What is wanted, with the MAC key that is there from a run before, if a dealer is to go on with it. Parties that make
    /// their keys find it themselves.
    fn wanted_here(&self) -> Result<Wanted, Error> {
        let (mut wanted, request) = (self.wanted.clone(), self.wanted.request()?);
        let root = self.out.join("Player-Data");
        if wanted.keys == Origin::Dealer && wanted.mac_keys.is_none() {
            let first = Preprocessing::new(&root, &request.field, 0, request.parties)?;
            wanted.mac_keys = first.own_key()?.map(|_| root);
        }
        Ok(wanted)
    }

    /// Identities, free ports and the list of parties.
    fn meet(&self, setup: &Path) -> Result<(), Error> {
        let mut peers = Vec::new();
        let mut listeners = Vec::new();
        for party in 0..self.wanted.parties {
            let identity = Identity::new()?;
            identity.write(&identity_path(setup, party))?;
            let listener = TcpListener::bind("127.0.0.1:0").map_err(|source| io(Path::new("127.0.0.1:0"), source))?;
            let address = listener.local_addr().map_err(|source| io(Path::new("127.0.0.1:0"), source))?;
            peers.push(Peer { address: address.to_string(), fingerprint: identity.fingerprint() });
            // Kept until all have theirs, so that no two are the same.
            listeners.push(listener);
        }
        Ok(hosts::write(&setup.join("hosts"), &peers)?)
    }

    /// Where a party's keys are: with the others' where a dealer made them, else in its own directory.
    fn place(&self, setup: &Path, party: usize) -> PathBuf {
        match self.wanted.keys {
            Origin::Dealer => setup.to_owned(),
            Origin::Generate => setup.join(format!("party-{party}")),
        }
    }

    /// Gives each party the plan.
    fn share_plan(&self, setup: &Path) -> Result<(), Error> {
        let plan = GenerationPlan::read(setup, &Floor::NONE)?;
        for party in 0..self.wanted.parties {
            let directory = self.place(setup, party);
            synchromesh_rlwe::file::create_private_directory(&directory)?;
            plan.write(&directory)?;
        }
        Ok(())
    }

    fn command(&self, setup: &Path, party: usize) -> Result<Command, Error> {
        let program = std::env::current_exe().map_err(|source| io(Path::new("this program"), source))?;
        let mut command = Command::new(program);
        command.args(["triples", "party", "--json", "--id"]).arg(party.to_string());
        command.arg("--hosts").arg(setup.join("hosts")).arg("--setup").arg(self.place(setup, party));
        command.arg("--identity").arg(identity_path(setup, party)).arg("--out").arg(&self.out);
        match self.wanted.make.is_empty() {
            true => command.arg("--count").arg(self.wanted.count.to_string()),
            false => command.arg("--make").arg(self.wanted.make.join(",")),
        };
        if let Some(runs) = self.wanted.spread.runs {
            command.arg("--runs").arg(runs.to_string());
        }
        if let Some(threads) = self.wanted.spread.threads {
            command.arg("--program-threads").arg(threads.to_string());
        }
        if let (Origin::Generate, Some(root)) = (self.wanted.keys, &self.wanted.mac_keys) {
            command.arg("--mac-key").arg(root);
        }
        command.arg("--threads").arg(self.threads.to_string());
        command.arg("--timeout").arg(self.timeout.as_secs().to_string());
        command.args(["--format", if self.format == Format::MpSpdz { "mp-spdz" } else { "plain" }]);
        command.arg("--max-memory-bytes").arg(most_bytes(self.wanted.most_bytes).to_string());
        if self.progress && party == 0 {
            command.arg("--progress");
        }
        // Whoever asks for the triples is each party: what he lowers is lowered by all.
        if self.wanted.insecure {
            command.arg("--insecure");
        }
        if self.wanted.security < Floor::default().statistical_security {
            command.arg("--least-statistical-security").arg(self.wanted.security.to_string());
        }
        // Its standard input ends with this process, however that ends.
        command.arg("--end-with-input").stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(command)
    }

    fn parties(&self, setup: &Path, children: &Children) -> Result<Vec<Value>, Error> {
        let mut outputs = Vec::with_capacity(self.wanted.parties);
        for party in 0..self.wanted.parties {
            let spawned = children.spawn(&mut self.command(setup, party)?);
            outputs.push(spawned.map_err(|source| io(Path::new("this program"), source))?);
        }
        let mut reports = Vec::with_capacity(outputs.len());
        for (party, output) in outputs.into_iter().enumerate() {
            let mut text = String::new();
            if let Some(mut stdout) = output {
                let read = std::io::Read::read_to_string(&mut stdout, &mut text);
                read.map_err(|source| io(Path::new("a party's report"), source))?;
            }
            let ended = children.wait(party);
            let report: Value = serde_json::from_str(&text).unwrap_or_default();
            let word = |key: &str| report["error"][key].as_str().map(str::to_owned);
            if report.get("phases").is_none() {
                let status = ended.map_or_else(|e| e.to_string(), |status| status.to_string());
                let message = word("message").unwrap_or_else(|| format!("it ended without a report, {status}"));
                let remedy = word("remedy").unwrap_or_else(|| {
                    "run again into another directory; a party that the system killed lacked memory as a rule: make smaller \
                     or fewer triples at a time, or run each party on a machine of its own"
                        .into()
                });
                let void = serde_json::from_value(report["error"]["void"].clone()).unwrap_or_default();
                return Err(Error::Party { party, message, remedy, void });
            }
            reports.push(report);
        }
        Ok(reports)
    }

    /// Opens all shares from the files of all parties, of every thread of every run from this one on.
    fn verify(&self, first: usize) -> Result<bool, Error> {
        let request = self.wanted.request()?;
        let mut places = Vec::with_capacity(request.parties);
        for party in 0..request.parties {
            let numbers = (party, request.parties);
            places.push(self.wanted.spread.places(&self.out, &request.field, numbers, first)?.into_iter());
        }
        for _ in 0..self.wanted.spread.files() {
            let files: Vec<Preprocessing> = places.iter_mut().filter_map(Iterator::next).collect();
            if !self.verify_files(&request, &files)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same for one thread of one run, of which `files[i]` are party i's.
    fn verify_files(&self, request: &Request, files: &[Preprocessing]) -> Result<bool, Error> {
        let keys = files.iter().map(Preprocessing::read_key).collect::<Result<Vec<_>, _>>()?;
        let parties = || files.iter().zip(&keys);
        for want in self.wanted.wants()? {
            let holds = match want {
                Want::Matrices { shape, count } if shape.unwrap_or(request.shape) != Shape::new(1, 1, 1)? => {
                    let shape = shape.unwrap_or(request.shape);
                    let lists =
                        parties().map(|(files, key)| files.read_triples(key, shape)).collect::<Result<Vec<_>, _>>()?;
                    lists.iter().all(|list| list.len() == count) && check_opened(&request.field, &keys, &lists).is_ok()
                }
                Want::Matrices { count, .. } => holds(&request.field, (files, &keys), tuples::Kind::Triples, count)?,
                Want::Tuples { kind, count } => holds(&request.field, (files, &keys), kind, count)?,
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether all parties' files of a kind are tuples with right MACs, enough for so many.
fn holds(
    field: &Field,
    (files, keys): (&[Preprocessing], &[MacKeyShare]),
    kind: tuples::Kind,
    count: usize,
) -> Result<bool, Error> {
    let owners = match kind {
        tuples::Kind::Inputs => (0..files.len()).map(Some).collect(),
        _ => vec![None],
    };
    let mut holds = true;
    for owner in owners {
        let read = files.iter().zip(keys).map(|(files, key)| files.read_tuples(key, kind, owner));
        let lists = read.collect::<Result<Vec<_>, _>>()?;
        holds &= lists.iter().all(|list| list.count() == tuples::Kind::rounded(count));
        holds &= tuples::check_opened(field, keys, &lists).is_ok();
    }
    Ok(holds)
}

fn identity_path(setup: &Path, party: usize) -> PathBuf {
    setup.join(format!("party-{party}.identity"))
}

/// Of each phase the largest numbers of any party.
fn largest(reports: &[Value]) -> Vec<Value> {
    let first = reports.first().and_then(|report| report["phases"].as_array()).cloned().unwrap_or_default();
    let most = |at: usize, key: &str| {
        let values = reports.iter().filter_map(|report| report["phases"][at][key].as_f64());
        values.fold(0.0, f64::max)
    };
    let one = |(at, phase): (usize, &Value)| {
        let whole = |key| json!(most(at, key) as u64);
        json!({"name": phase["name"], "seconds": most(at, "seconds"), "bytes_sent": whole("bytes_sent"), "rounds": whole("rounds"), "peak_bytes": whole("peak_bytes")})
    };
    first.iter().enumerate().map(one).collect()
}
