//! `inspect`: what a file is, without its secrets.

use super::overwrite::Overwrite;
use super::plan::bars;
use super::session::read_plan;
use crate::bundle::{self, Bundle, Kind, MAX_FILE_BYTES};
use crate::error::Error;
use crate::output::Report;
use crate::plot::plan::plan_plot;
use crate::session::{self, Column, plan_of};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use synchromesh::plan::Plan;
use synchromesh::rlwe::codec::Trust;
use synchromesh_rlwe::file::{self, Access, Opened};

/// Says what a plan, key or ciphertext file is; secrets are neither printed nor looked at.
#[derive(Args, Debug)]
pub(super) struct Inspect {
    /// The file.
    file: PathBuf,
    /// Of a plan: draw levels, noise, and what a key switch takes at each level.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
}

/// What every file of a session has.
#[derive(Serialize)]
struct Common {
    file: String,
    r#type: &'static str,
    bytes: u64,
    scheme: &'static str,
    log_n: u32,
    slots: usize,
    log_qp: u32,
    security_bits: f64,
    /// log2 of the probability with which a decryption fails, or in ckks an error exceeds its certificate, at most.
    log2_p_fail: f64,
    levels: usize,
    params_digest: String,
    /// The secret key that a key or ciphertext belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<String>,
    /// Whether the file carries the authentication code of some envelope key; noise and bounds are claims all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<bool>,
}

#[derive(Serialize)]
struct InspectedPlan {
    #[serde(flatten)]
    common: Common,
    q_bits: Vec<u32>,
    p_bits: Vec<u32>,
    depth: usize,
    rotations: Vec<i64>,
    key_bytes: u64,
}

#[derive(Serialize)]
struct InspectedColumn {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    summary: session::Summary,
}

impl Inspect {
    /// Runs the command.
    pub(super) fn run(&self) -> Result<Report, Error> {
        let path = &self.file;
        let existing = self.overwrite.permit(self.plot.as_deref())?;
        let mut mark = [0; bundle::MAGIC.len()];
        Opened::open(path, MAX_FILE_BYTES)?.read_at(0, &mut mark)?;
        let is_bundle = mark == bundle::MAGIC;
        if is_bundle && self.plot.is_some() {
            return Err(Error::Usage { message: "--plot is for plans".to_owned() });
        }
        if is_bundle {
            let bundle = Bundle::read(path)?;
            let plan = plan_of(&bundle)?;
            let key_id = Some(bundle.key_id()?.to_string());
            let sealed = Some(bundle.is_sealed());
            let common = Common { key_id, sealed, ..common(path, bundle.kind().name(), &plan)? };
            return match bundle.kind() {
                Kind::Column => column(common, &plan, &bundle),
                _ => Report::new(&common),
            };
        }
        let plan = read_plan(path)?;
        if let Some(plot) = &self.plot {
            file::write(plot, plan_plot(&plan, &bars(&plan, None)).as_bytes(), Access::Public, existing)?;
        }
        Report::new(&InspectedPlan {
            common: common(path, "plan", &plan)?,
            q_bits: plan.q_bits,
            p_bits: plan.p_bits,
            depth: plan.depth,
            rotations: plan.rotations,
            key_bytes: plan.key_bytes,
        })
    }
}

fn common(path: &Path, kind: &'static str, plan: &Plan) -> Result<Common, Error> {
    let (params, _) = plan.params.check()?;
    Ok(Common {
        file: path.display().to_string(),
        r#type: kind,
        bytes: std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
        scheme: plan.scheme.name(),
        log_n: params.ring().log_n(),
        slots: plan.slots,
        log_qp: params.log_qp(),
        security_bits: params.security_bits(),
        log2_p_fail: plan.log2_p_fail,
        levels: params.top_level() + 1,
        params_digest: params.digest().iter().map(|byte| format!("{byte:02x}")).collect(),
        key_id: None,
        sealed: None,
    })
}

fn column(common: Common, plan: &Plan, bundle: &Bundle) -> Result<Report, Error> {
    let session = plan.open_any()?;
    // What the file says is shown as what it says: nothing is computed with it.
    let column = Column::from_bundle(&*session, bundle, None, Trust::Certificate)?;
    Report::new(&InspectedColumn { common, summary: session::Summary::new(&*session, plan, &column)? })
}
