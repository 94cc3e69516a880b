//! `demo`: three computations on an encrypted table, one in each scheme.

use super::overwrite::Overwrite;
use super::place::{Chosen, Place};
use crate::dataset::{Dataset, PATIENTS};
use crate::demo::{Digests, Machine, Plans, Step, Trace, covariance, group_by, scores};
use crate::error::Error;
use crate::output::{Report, progress};
use crate::plot::{Panel, noise_plot};
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;
use synchromesh::plan::Plan;
use synchromesh_ring::Cpu;
use synchromesh_ring::backend::Open;
use synchromesh_rlwe::file::{self, Access, Existing};

/// The demonstration.
#[derive(Args, Debug)]
pub(super) struct Demo {
    /// Use the plans committed with this program, and do not search for parameters.
    #[arg(long)]
    quick: bool,
    /// Make keys from a seed, so that they protect nothing, and report digests of keys and ciphertexts; implies --quick.
    #[arg(long, value_name = "N")]
    test_seed: Option<u64>,
    /// Where the noise-and-level plot goes.
    #[arg(long, value_name = "FILE.svg", default_value = "out/demo.svg")]
    plot: PathBuf,
    #[command(flatten)]
    overwrite: Overwrite,
    #[command(flatten)]
    place: Place,
}

/// How a part was done.
#[derive(Serialize)]
struct Setting {
    security_bits: f64,
    log_n: u32,
    log_qp: u32,
    key_bytes: u64,
    seconds: f64,
    explain: Vec<String>,
}

#[derive(Serialize)]
struct Ckks {
    task: &'static str,
    accuracy: f64,
    plain_accuracy: f64,
    max_score_error: f64,
    max_sigmoid_gap: f64,
    patients: usize,
    #[serde(flatten)]
    setting: Setting,
}

#[derive(Serialize)]
struct Bgv {
    task: &'static str,
    exact: bool,
    columns: Vec<&'static str>,
    /// n^2 times the covariances of the scaled columns, the upper triangle row by row.
    covariance: Vec<i64>,
    patients: usize,
    #[serde(flatten)]
    setting: Setting,
}

#[derive(Serialize)]
struct Bfv {
    task: &'static str,
    exact: bool,
    benign: [i64; group_by::QUARTILES],
    malignant: [i64; group_by::QUARTILES],
    patients: usize,
    #[serde(flatten)]
    setting: Setting,
}

#[derive(Serialize)]
struct AllDigests {
    ckks: Option<Digests>,
    bgv: Option<Digests>,
    bfv: Option<Digests>,
}

#[derive(Serialize)]
struct Outcome {
    ckks: Ckks,
    bgv: Bgv,
    bfv: Bfv,
    seconds: f64,
    peak_bytes: Option<u64>,
    plot: String,
    device: &'static str,
    /// Why the CPU was taken where a card was preferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not_cuda: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digests: Option<AllDigests>,
}

/// A part of the demonstration in progress.
struct Part<'a> {
    plan: &'a Plan,
    seed: Option<u64>,
    bar: &'a ProgressBar,
    name: &'static str,
    start: Instant,
}

impl<'a> Part<'a> {
    fn machine<B: Open>(&self) -> Result<Machine<B>, Error> {
        self.bar.set_message(format!("{}: keys", self.name));
        let machine = Machine::new(self.plan, self.seed)?;
        self.bar.inc(1);
        Ok(machine)
    }

    fn trace(&self) -> Trace<'a> {
        let (bar, name) = (self.bar, self.name);
        Trace::new(move |step| {
            bar.set_message(format!("{name}: {step}"));
            bar.inc(1);
        })
    }

    fn setting(&self) -> Setting {
        Setting {
            security_bits: self.plan.security_bits,
            log_n: self.plan.log_n,
            log_qp: self.plan.log_qp,
            key_bytes: self.plan.key_bytes,
            seconds: self.start.elapsed().as_secs_f64(),
            explain: self.plan.explain.clone(),
        }
    }

    fn panel(&self, title: &str, steps: Vec<Step>) -> Panel {
        let Plan { log_n, log_qp, security_bits, .. } = self.plan;
        let subtitle = format!("N = 2^{log_n}, log QP = {log_qp}, {security_bits:.0} bits of security");
        Panel { title: format!("{}: {title}", self.name), subtitle, steps }
    }
}

impl Demo {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        match self.place.choose()? {
            Chosen::Cpu { instead } => self.run_on::<Cpu>("cpu", instead, json),
            #[cfg(feature = "cuda")]
            Chosen::Cuda => self.run_on::<synchromesh_cuda::Cuda<synchromesh_cuda::Driver>>("cuda", None, json),
            #[cfg(feature = "emulated")]
            Chosen::Emulated => {
                self.run_on::<synchromesh_cuda::Cuda<synchromesh_cuda::Emulated>>("emulated", None, json)
            }
        }
    }

    fn run_on<B: Open>(&self, device: &'static str, why_not_cuda: Option<String>, json: bool) -> Result<Report, Error> {
        let existing = self.overwrite.permit([self.plot.as_path()])?;
        let start = Instant::now();
        let bar = progress(json, scores::STEPS + covariance::STEPS + group_by::STEPS + 4);
        bar.set_message("parameters");
        let data = Dataset::load()?;
        let plans = if self.quick || self.test_seed.is_some() { Plans::committed() } else { Plans::search() }?;
        bar.inc(1);
        let part = |plan, name| Part { plan, seed: self.test_seed, bar: &bar, name, start: Instant::now() };
        let (ckks, first, ckks_digests) = run_scores::<B>(&part(&plans.ckks, "CKKS"), &data)?;
        let (bgv, second, bgv_digests) = run_covariance::<B>(&part(&plans.bgv, "BGV"), &data)?;
        let (bfv, third, bfv_digests) = run_group_by::<B>(&part(&plans.bfv, "BFV"), &data)?;
        bar.finish_and_clear();
        let svg = noise_plot("Noise and level in the three encrypted computations", &[first, second, third]);
        self.write_plot(&svg, existing)?;
        let digests = AllDigests { ckks: ckks_digests, bgv: bgv_digests, bfv: bfv_digests };
        let outcome = Outcome {
            ckks,
            bgv,
            bfv,
            seconds: start.elapsed().as_secs_f64(),
            peak_bytes: synchromesh_rlwe::memory::peak_bytes(),
            plot: self.plot.display().to_string(),
            device,
            why_not_cuda,
            digests: self.test_seed.map(|_| digests),
        };
        judge(&outcome)
    }

    fn write_plot(&self, svg: &str, existing: Existing) -> Result<(), Error> {
        if let Some(directory) = self.plot.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            let io = |source| Error::Io { path: directory.display().to_string(), source };
            std::fs::create_dir_all(directory).map_err(io)?;
        }
        Ok(file::write(&self.plot, svg.as_bytes(), Access::Public, existing)?)
    }
}

/// The report with what must hold.
fn judge(outcome: &Outcome) -> Result<Report, Error> {
    let ckks = &outcome.ckks;
    let one_patient = 1.0 / ckks.patients as f64 + 1e-9;
    let secure = [&ckks.setting, &outcome.bgv.setting, &outcome.bfv.setting].iter().all(|s| s.security_bits >= 128.0);
    let accurate = (ckks.accuracy - ckks.plain_accuracy).abs() <= one_patient;
    Ok(Report::new(outcome)?
        .check(accurate, "CKKS: the accuracy on encrypted features is that of the model in the clear, to one patient")
        .check(outcome.bgv.exact, "BGV: every covariance is exact")
        .check(outcome.bfv.exact, "BFV: every count is exact")
        .check(secure, "all parameters have 128 bits of security"))
}

fn run_scores<B: Open>(part: &Part<'_>, data: &Dataset) -> Result<(Ckks, Panel, Option<Digests>), Error> {
    let mut machine = part.machine::<B>()?;
    let result = scores::run(&mut machine, data, part.trace())?;
    let outcome = Ckks {
        task: "logistic-regression scores of the test patients, on encrypted features",
        accuracy: result.accuracy,
        plain_accuracy: result.plain_accuracy,
        max_score_error: result.max_score_error,
        max_sigmoid_gap: result.max_sigmoid_gap,
        patients: result.scores.len(),
        setting: part.setting(),
    };
    Ok((outcome, part.panel("logistic scores", result.steps), machine.digests()))
}

fn run_covariance<B: Open>(part: &Part<'_>, data: &Dataset) -> Result<(Bgv, Panel, Option<Digests>), Error> {
    let mut machine = part.machine::<B>()?;
    let result = covariance::run(&mut machine, data, part.trace())?;
    let upper = result.matrix.iter().enumerate().flat_map(|(c, row)| row[c..].to_vec()).collect();
    let outcome = Bgv {
        task: "n^2 times the covariances of four integer columns, encrypted",
        exact: result.exact,
        columns: covariance::COLUMNS.map(|(name, _)| name).to_vec(),
        covariance: upper,
        patients: PATIENTS,
        setting: part.setting(),
    };
    Ok((outcome, part.panel("covariance", result.steps), machine.digests()))
}

fn run_group_by<B: Open>(part: &Part<'_>, data: &Dataset) -> Result<(Bfv, Panel, Option<Digests>), Error> {
    let mut machine = part.machine::<B>()?;
    let result = group_by::run(&mut machine, data, part.trace())?;
    let [benign, malignant] = result.counts;
    let outcome = Bfv {
        task: "patients by diagnosis and quartile of the mean radius, both encrypted",
        exact: result.exact,
        benign,
        malignant,
        patients: PATIENTS,
        setting: part.setting(),
    };
    Ok((outcome, part.panel("group-by count", result.steps), machine.digests()))
}
