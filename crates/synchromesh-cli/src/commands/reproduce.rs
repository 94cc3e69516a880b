//! `reproduce`: tables and figures of the papers, measured again.

use super::place::Place;
use crate::error::Error;
use crate::output::{Report, progress};
use crate::plot::chart::chart;
use crate::profile;
use clap::Args;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use synchromesh_bench::reproduce::{ITEMS, Item, Outcome, Row, Settings, csv};
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
    /// With all: where to write every item and report.md.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// A machine profile [default: the one `tune` made].
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
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
}

#[derive(Serialize)]
struct All {
    items: Vec<Reproduced>,
    report: Option<String>,
}

impl Reproduce {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        self.place.check()?;
        let usage = |message: String| Err(Error::Usage { message });
        if self.item != "all" && self.report.is_some() {
            return usage("--report is for `reproduce all`; one item takes --out".to_owned());
        }
        match self.item.as_str() {
            "list" => {
                let listed = |i: &Item| ListedItem { id: i.id, title: i.title, paper: i.paper };
                Report::new(&Listed { items: ITEMS.iter().map(listed).collect() })
            }
            "all" => self.all(json),
            id => match Item::find(id) {
                Some(item) => Report::new(&self.one(item, self.out.as_deref(), json)?),
                None => usage(format!("there is no item {id}; `synchromesh reproduce list` names them")),
            },
        }
    }

    fn one(&self, item: &'static Item, out: Option<&Path>, json: bool) -> Result<Reproduced, Error> {
        let settings = Settings { quick: self.quick, profile: profile::load(self.profile.as_deref())? };
        let bar = progress(json, 0);
        let outcome = item.run(&settings, &mut |what| {
            bar.inc_length(1);
            bar.inc(1);
            bar.set_message(format!("{}: {what}", item.id));
        })?;
        bar.finish_and_clear();
        let files = out.map_or_else(|| Ok(Vec::new()), |out| write(item, &outcome, out))?;
        Ok(Reproduced { id: item.id, title: item.title, rows: outcome.rows, deviations: outcome.deviations, files })
    }

    fn all(&self, json: bool) -> Result<Report, Error> {
        let out = self.report.as_deref().or(self.out.as_deref());
        let mut items = Vec::with_capacity(ITEMS.len());
        for item in ITEMS {
            items.push(self.one(item, out, json)?);
        }
        let mut report = None;
        if let Some(directory) = &self.report {
            let path = directory.join("report.md");
            file::write(&path, markdown(&items).as_bytes(), Access::Public, Existing::Replace)?;
            report = Some(path.display().to_string());
        }
        Report::new(&All { items, report })
    }
}

/// Writes an item's CSV and, if it has one, its figure; the paths.
fn write(item: &Item, outcome: &Outcome, out: &Path) -> Result<Vec<String>, Error> {
    std::fs::create_dir_all(out).map_err(|source| Error::Io { path: out.display().to_string(), source })?;
    let mut texts = vec![("csv", csv(&outcome.rows))];
    texts.extend(outcome.figure.as_ref().map(|figure| ("svg", chart(figure))));
    let mut files = Vec::with_capacity(texts.len());
    for (suffix, text) in texts {
        let path = out.join(format!("{}.{suffix}", item.id));
        file::write(&path, text.as_bytes(), Access::Public, Existing::Replace)?;
        files.push(path.display().to_string());
    }
    Ok(files)
}

/// All items as one page.
fn markdown(items: &[Reproduced]) -> String {
    let mut text = String::from("# Tables and figures, measured again\n");
    for item in items {
        let _ = write!(text, "\n## {}: {}\n\n", item.id, item.title);
        let keys: Vec<&String> = item.rows.first().map_or_else(Vec::new, |row| row.keys().collect());
        if !keys.is_empty() {
            let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
            text += &line(keys.iter().map(|k| (*k).clone()).collect());
            text += &line(keys.iter().map(|_| "---".to_owned()).collect());
            let cell = |row: &Row, key: &str| match row.get(key) {
                None | Some(serde_json::Value::Null) => String::new(),
                Some(serde_json::Value::String(s)) => s.clone(),
                Some(other) => other.to_string(),
            };
            item.rows.iter().for_each(|row| text += &line(keys.iter().map(|k| cell(row, k)).collect()));
            text.push('\n');
        }
        item.deviations.iter().for_each(|d| text += &format!("- {d}\n"));
    }
    text
}
