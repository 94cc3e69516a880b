//! `reproduce`: tables and figures of the papers, measured again.

use super::overwrite::Overwrite;
use super::place::{Chosen, Place, Used, unavailable};
use crate::error::Error;
use crate::output::{Report, progress};
use crate::page::{Section, page};
use crate::plot::chart::chart;
use crate::profile;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use synchromesh_bench::device::Device;
use synchromesh_bench::memory::total_bytes;
use synchromesh_bench::tune::{self, Plan};
use synchromesh_papers::reproduce::{Figure, ITEMS, Item, Outcome, Row, Settings, csv};
use synchromesh_ring::isa::Isa;
use synchromesh_rlwe::file::{self, Access, Existing};

/// Measure a table or figure of a paper again: `list` names them, `all` runs every one.
#[derive(Args, Debug)]
pub(super) struct Reproduce {
    /// An item, or list, or all.
    item: String,
    /// The smallest degrees only: under a minute an item.
    #[arg(long)]
    quick: bool,
    /// Where to write ITEM.csv and ITEM.svg.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// With all: where to write every item and index.html, a page of all of them beside the papers' figures.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// A machine profile [default: the one `tune` made].
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    #[command(flatten)]
    place: Place,
}

#[derive(Serialize)]
struct Listed {
    items: Vec<ListedItem>,
}

#[derive(Serialize)]
struct ListedItem {
    id: &'static str,
    title: &'static str,
    paper: &'static str,
}

#[derive(Serialize)]
struct Reproduced {
    id: &'static str,
    title: &'static str,
    rows: Vec<Row>,
    deviations: Vec<String>,
    files: Vec<String>,
    seconds: f64,
    #[serde(flatten)]
    used: Used,
    /// With all: why there are no rows, and what helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    #[serde(skip)]
    paper: &'static str,
    #[serde(skip)]
    figure: Option<Figure>,
}

#[derive(Serialize)]
struct All {
    items: Vec<Reproduced>,
    seconds: f64,
    report: Option<String>,
}

/// What a reader at a terminal is told of all items; rows and notes are in the report and with `--json`.
#[derive(Serialize)]
struct Overview {
    items: Vec<Line>,
    seconds: f64,
    report: Option<String>,
}

#[derive(Serialize)]
struct Line {
    id: &'static str,
    title: &'static str,
    rows: usize,
    notes: usize,
    seconds: f64,
    not_run: Option<String>,
}

impl Reproduce {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        let chosen = self.place.choose_to_measure()?;
        let usage = |message: String| Err(Error::Usage { message });
        if self.item != "all" && self.report.is_some() {
            return usage("--report is for `reproduce all`; one item takes --out".to_owned());
        }
        match self.item.as_str() {
            "list" => {
                let listed = |i: &Item| ListedItem { id: i.id, title: i.title, paper: i.paper };
                Report::new(&Listed { items: ITEMS.iter().map(listed).collect() })
            }
            "all" => self.all(&chosen, json),
            id => match Item::find(id) {
                Some(item) if item.on_devices() || self.place.may_be_cpu() => {
                    let chosen = place_of(item, &chosen);
                    let out = self.destination(std::slice::from_ref(item), self.out.as_deref())?;
                    let profile = profile::load_for(
                        self.profile.as_deref(),
                        chosen.profile_name()?,
                        self.place.threads()?.count(),
                    )?;
                    let settings = Settings { quick: self.quick, profile, device: chosen.measured() };
                    Report::new(&one(item, (&settings, &chosen), out, json)?)
                }
                Some(item) => Err(unavailable("--device", &self.place.asked(), &format!("auto, cpu for {}", item.id))),
                None => usage(format!("there is no item {id}; `synchromesh reproduce list` names them")),
            },
        }
    }

    /// Every item, those that cannot run with the reason; with `--report` the page of them.
    fn all(&self, chosen: &Chosen, json: bool) -> Result<Report, Error> {
        let start = Instant::now();
        let out = self.destination(ITEMS, self.report.as_deref().or(self.out.as_deref()))?;
        let quick = self.quick;
        let settings = Settings { quick, profile: Some(self.profile_or_measure(json)?), device: Device::Cpu };
        // Predictions are of items that are measured on the CPU.
        let elsewhere = Settings { quick, profile: None, device: chosen.measured() };
        let mut items = Vec::with_capacity(ITEMS.len());
        for item in ITEMS {
            let chosen = place_of(item, chosen);
            let settings = if chosen.measured() == settings.device { &settings } else { &elsewhere };
            let run = one(item, (settings, &chosen), out, json);
            items.push(run.or_else(|error| without_result(item, &chosen, error))?);
        }
        let seconds = rounded(start.elapsed().as_secs_f64());
        let mut report = None;
        if let (Some(_), Some(Destination { directory, existing })) = (&self.report, out) {
            let path = directory.join(PAGE);
            let sections: Vec<Section<'_>> = items.iter().map(Reproduced::section).collect();
            let text = page(&head(&settings, seconds)?, &sections);
            file::write(&path, text.as_bytes(), Access::Public, existing)?;
            report = Some(path.display().to_string());
        }
        let failed: Vec<&str> = items.iter().filter(|item| item.failure.is_some()).map(|item| item.id).collect();
        let (passed, what) = (failed.is_empty(), format!("not run: {}", failed.join(", ")));
        let found = if json {
            Report::new(&All { items, seconds, report })?
        } else {
            Report::new(&Overview { items: items.iter().map(Reproduced::line).collect(), seconds, report })?
        };
        Ok(found.check(passed, &what))
    }

    /// Where the files of these items go, if anywhere: what is there may be replaced.
    fn destination<'a>(&self, items: &[Item], out: Option<&'a Path>) -> Result<Option<Destination<'a>>, Error> {
        let Some(directory) = out else { return Ok(None) };
        let files = items.iter().flat_map(|item| SUFFIXES.map(|suffix| file_of(item, directory, suffix)));
        let files: Vec<PathBuf> = files.chain([directory.join(PAGE)]).collect();
        let existing = self.overwrite.permit(files.iter().map(PathBuf::as_path))?;
        Ok(Some(Destination { directory, existing }))
    }

    /// This machine's profile; a coarse one measured now where there is none.
    fn profile_or_measure(&self, json: bool) -> Result<synchromesh::cost::Profile, Error> {
        if let Some(profile) = profile::load(self.profile.as_deref(), self.place.threads()?.count())? {
            return Ok(profile);
        }
        let plan = Plan::quick();
        let bar = progress(json, plan.steps());
        let measured = tune::measure(&plan, Device::Cpu, |what| {
            bar.inc(1);
            bar.set_message(format!("this machine: {what}"));
        })?;
        bar.finish_and_clear();
        Ok(measured)
    }
}

impl Reproduced {
    fn line(&self) -> Line {
        let (rows, notes) = (self.rows.len(), self.deviations.len());
        let (id, title, seconds) = (self.id, self.title, self.seconds);
        Line { id, title, rows, notes, seconds, not_run: self.failure.clone() }
    }

    fn section(&self) -> Section<'_> {
        Section {
            id: self.id,
            title: self.title,
            paper: self.paper,
            rows: &self.rows,
            deviations: &self.deviations,
            figure: self.figure.as_ref(),
            failure: self.failure.as_deref(),
            seconds: self.seconds,
        }
    }
}

fn rounded(seconds: f64) -> f64 {
    (1e3 * seconds).round() / 1e3
}

/// Where an item is measured: what is not for cards on the CPU.
fn place_of(item: &Item, chosen: &Chosen) -> Chosen {
    if item.on_devices() { chosen.clone() } else { Chosen::Cpu { instead: None } }
}

fn one(
    item: &'static Item,
    (settings, chosen): (&Settings, &Chosen),
    out: Option<Destination<'_>>,
    json: bool,
) -> Result<Reproduced, Error> {
    let start = Instant::now();
    let bar = progress(json, 0);
    let outcome = item.run(settings, &mut |what| {
        bar.inc_length(1);
        bar.inc(1);
        bar.set_message(format!("{}: {what}", item.id));
    })?;
    bar.finish_and_clear();
    let seconds = rounded(start.elapsed().as_secs_f64());
    let files = out.map_or_else(|| Ok(Vec::new()), |out| write(item, &outcome, out))?;
    let Outcome { rows, deviations, figure } = outcome;
    let (id, title, paper) = (item.id, item.title, item.paper);
    Ok(Reproduced { id, title, rows, deviations, files, seconds, used: chosen.used(), failure: None, paper, figure })
}

/// An item that this machine cannot run; an error of the files is everybody's.
fn without_result(item: &'static Item, chosen: &Chosen, error: Error) -> Result<Reproduced, Error> {
    let Error::Bench(error) = error else { return Err(error) };
    let failure = Some(format!("{error}; {}", error.remedy()));
    let (id, title, paper) = (item.id, item.title, item.paper);
    Ok(Reproduced {
        id,
        title,
        rows: Vec::new(),
        deviations: Vec::new(),
        files: Vec::new(),
        seconds: 0.0,
        used: chosen.used(),
        failure,
        paper,
        figure: None,
    })
}

/// What machine, commit and run this is.
fn head(settings: &Settings, seconds: f64) -> Result<Vec<(&'static str, String)>, Error> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let profile = settings.profile.as_ref();
    let mut head = vec![
        ("commit", env!("SYNCHROMESH_COMMIT").to_owned()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("date", tune::date()),
        ("machine", tune::machine_name()),
        ("hardware threads", threads.to_string()),
        ("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        ("instruction set", Isa::detect()?.name().to_owned()),
        ("run", if settings.quick { "--quick: the smallest degrees" } else { "whole" }.to_owned()),
        ("time", format!("{:.0} min {:02.0} s", (seconds / 60.0).floor(), (seconds % 60.0).floor())),
    ];
    if let Some(bytes) = total_bytes() {
        head.insert(5, ("memory", format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))));
    }
    if cfg!(debug_assertions) {
        head.push(("build", "unoptimised: no time means anything".to_owned()));
    }
    head.extend(profile.map(|profile| ("profile for predictions", format!("{}, {}", profile.machine, profile.date))));
    Ok(head)
}

/// A directory for results, and what of it may be replaced.
#[derive(Clone, Copy)]
struct Destination<'a> {
    directory: &'a Path,
    existing: Existing,
}

/// The page of all items.
const PAGE: &str = "index.html";

/// An item's table and figure.
const SUFFIXES: [&str; 2] = ["csv", "svg"];

fn file_of(item: &Item, directory: &Path, suffix: &str) -> PathBuf {
    directory.join(format!("{}.{suffix}", item.id))
}

/// Writes an item's CSV and, if it has one, its figure; the paths.
fn write(item: &Item, outcome: &Outcome, out: Destination<'_>) -> Result<Vec<String>, Error> {
    let Destination { directory, existing } = out;
    std::fs::create_dir_all(directory).map_err(|source| Error::Io { path: directory.display().to_string(), source })?;
    let texts = [Some(csv(&outcome.rows)), outcome.figure.as_ref().map(chart)];
    let texts: Vec<(&str, String)> = SUFFIXES.into_iter().zip(texts).filter_map(|(s, text)| Some((s, text?))).collect();
    let mut files = Vec::with_capacity(texts.len());
    for (suffix, text) in texts {
        let path = file_of(item, directory, suffix);
        file::write(&path, text.as_bytes(), Access::Public, existing)?;
        files.push(path.display().to_string());
    }
    Ok(files)
}
