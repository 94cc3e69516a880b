//! `tune`: measures this machine and stores its profile.

use super::overwrite::Overwrite;
use super::place::Place;
use crate::error::Error;
use crate::output::{Report, progress};
use crate::profile;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use synchromesh::cost::Streaming;
use synchromesh_bench::tune::{self, Plan};

/// Measure this machine, for plans and predictions: some minutes, in which it should be idle.
#[derive(Args, Debug)]
pub(super) struct Tune {
    /// Where to write the profile [default: synchromesh/profile-ISA.json, profile-ISA-K-threads.json for K threads, or
    /// profile-cuda.json, in the user's data directory].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Fewer degrees and shorter measurements: under a minute, and coarser.
    #[arg(long)]
    quick: bool,
    /// These degrees only, as log2; what the file says of others is kept.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(10..=17))]
    log_n: Option<Vec<u32>>,
    #[command(flatten)]
    place: Place,
}

#[derive(Serialize)]
struct Tuned {
    profile: String,
    machine: String,
    device: String,
    isa: String,
    threads: usize,
    date: String,
    streaming: Streaming,
    entries: usize,
    /// Why the CPU was measured where a card was preferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not_cuda: Option<String>,
}

impl Tune {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        let chosen = self.place.choose_to_measure()?;
        let name = chosen.profile_name()?;
        let no_home = || Error::Usage { message: "the environment names no home directory: say --out FILE".to_owned() };
        let path = match &self.out {
            Some(path) => path.clone(),
            None => profile::default_path(name, self.place.threads()?.count()).ok_or_else(no_home)?,
        };
        let existing = self.overwrite.permit([path.as_path()])?;
        let mut plan = if self.quick { Plan::quick() } else { Plan::full() };
        let mut before = None;
        if let Some(degrees) = &self.log_n {
            plan.log_n.clone_from(degrees);
            plan.log_n.sort_unstable();
            plan.log_n.dedup();
            before = if path.is_file() { profile::load(Some(&path), 1)? } else { None };
            let own = (name, self.place.threads()?.count());
            if let Some(other) = before.as_ref().filter(|before| (before.isa.as_str(), before.threads) != own) {
                let message = format!(
                    "{} was measured with {} on {} threads, and {name} on {} is in use: name another file with --out",
                    path.display(),
                    other.isa,
                    other.threads,
                    own.1
                );
                return Err(Error::Usage { message });
            }
        }
        let bar = progress(json, plan.steps());
        let mut measured = tune::measure(&plan, chosen.measured(), |what| {
            bar.inc(1);
            bar.set_message(what.to_owned());
        })?;
        bar.finish_and_clear();
        if let Some(mut before) = before {
            before.entries.retain(|entry| !plan.log_n.contains(&entry.log_n));
            measured.entries.append(&mut before.entries);
            measured.entries.sort_by_key(|entry| (entry.log_n, entry.prime_bits));
        }
        profile::store(&path, &measured, existing)?;
        Report::new(&Tuned {
            profile: path.display().to_string(),
            entries: measured.entries.len(),
            machine: measured.machine,
            device: measured.device,
            isa: measured.isa,
            threads: measured.threads,
            date: measured.date,
            streaming: measured.streaming,
            why_not_cuda: chosen.why_not_cuda(),
        })
    }
}
