//! `tune`: measures this machine and stores its profile.

use super::place::Place;
use crate::error::Error;
use crate::output::{Report, progress};
use crate::profile;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use synchromesh::cost::Streaming;
use synchromesh_bench::tune::{self, Plan};
use synchromesh_ring::isa::Isa;

/// Measure this machine, for plans and predictions: some minutes, in which it should be idle.
#[derive(Args, Debug)]
pub(super) struct Tune {
    /// Where to write the profile [default: synchromesh/profile-ISA.json in the user's data directory].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Fewer degrees and shorter measurements: half a minute, and coarser.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Serialize)]
struct Tuned {
    profile: String,
    machine: String,
    device: String,
    isa: String,
    date: String,
    streaming: Streaming,
    entries: usize,
}

impl Tune {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        self.place.check()?;
        let no_home = || Error::Usage { message: "the environment names no home directory: say --out FILE".to_owned() };
        let path = match &self.out {
            Some(path) => path.clone(),
            None => profile::default_path(Isa::detect()?).ok_or_else(no_home)?,
        };
        let plan = if self.quick { Plan::quick() } else { Plan::full() };
        let bar = progress(json, plan.steps());
        let measured = tune::measure(&plan, |what| {
            bar.inc(1);
            bar.set_message(what.to_owned());
        })?;
        bar.finish_and_clear();
        profile::store(&path, &measured)?;
        Report::new(&Tuned {
            profile: path.display().to_string(),
            entries: measured.entries.len(),
            machine: measured.machine,
            device: measured.device,
            isa: measured.isa,
            date: measured.date,
            streaming: measured.streaming,
        })
    }
}
