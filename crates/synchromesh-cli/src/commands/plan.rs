//! `plan`: parameters from a description.

use super::place::unavailable;
use crate::demo::{Health, Step};
use crate::error::Error;
use crate::output::Report;
use crate::plot::{Panel, noise_plot};
use crate::profile;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use synchromesh::cost::Profile;
use synchromesh::plan::{Description, Plan, SchemeName};
use synchromesh::rlwe::Security;
use synchromesh_rlwe::file::{self, Access, Existing};

/// Depth of ckks plans up to which sums before each multiplication are planned for unasked.
const DEEPEST_CKKS_SUMS: u32 = 3;

/// A scheme by name.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
pub(super) enum Scheme {
    Bfv,
    Bgv,
    Ckks,
}

impl From<Scheme> for SchemeName {
    fn from(scheme: Scheme) -> Self {
        match scheme {
            Scheme::Bfv => Self::Bfv,
            Scheme::Bgv => Self::Bgv,
            Scheme::Ckks => Self::Ckks,
        }
    }
}

/// What shall be computed, and how securely.
#[derive(Args, Debug)]
pub(super) struct Planning {
    /// The scheme: bfv and bgv compute exactly modulo t, ckks on reals to a precision.
    #[arg(long, value_enum)]
    scheme: Scheme,
    /// bfv, bgv: plaintext modulus, decimal or 0x.., 2 to 256 bits; a prime that is 1 mod 2N gives slots
    /// [default: 65537].
    #[arg(long)]
    t: Option<String>,
    /// ckks: results within 2^-PRECISION for inputs of magnitude 1 [default: 20].
    #[arg(long)]
    precision: Option<u32>,
    /// Multiplications one after the other.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100))]
    depth: u32,
    /// Rotations to make keys for, say 1,2,-4.
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_name = "LIST")]
    rotations: Vec<i64>,
    /// Make the key for conj(x): complex conjugation, or the swap of the two rows of slots in bfv and bgv.
    #[arg(long)]
    swap: bool,
    /// Additions before each multiplication and at the end [default: 1; for ckks 0 beyond depth 3, since the growth of
    /// sums is squared by each multiplication].
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1 << 20))]
    adds: Option<u32>,
    /// Least number of slots.
    #[arg(long, default_value_t = 0)]
    slots: usize,
    /// Bits of security.
    #[arg(long, default_value = "128", value_parser = ["128", "192", "256"])]
    security: String,
    /// Security against quantum computers.
    #[arg(long)]
    quantum: bool,
    /// Allow any security at all: for tests.
    #[arg(long, conflicts_with = "security")]
    insecure: bool,
    /// Most bytes all evaluation keys may take.
    #[arg(long)]
    max_key_bytes: Option<u64>,
    /// A machine profile, that of the machine which will compute: choices are made for it. Without one they are the same
    /// everywhere, and times are predicted for this machine if `tune` was run.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Say why each choice was made.
    #[arg(long)]
    explain: bool,
    /// Draw the modulus level by level.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Write the plan for `keygen`.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Planning {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        let description = self.description()?;
        let mut plan = match &self.profile {
            Some(path) => description.plan_for(profile::load(Some(path))?.as_ref())?,
            None => description.plan()?,
        };
        if let Some(own) = profile::load(self.profile.as_deref())? {
            if self.profile.is_none() {
                plan.predict(&own)?;
            }
            if self.explain || json {
                plan.explain.extend(index_lines(&plan, &own, self.max_key_bytes)?);
            }
        }
        if let Some(out) = &self.out {
            file::write(out, (plan.to_json()? + "\n").as_bytes(), Access::Public, Existing::Replace)?;
        }
        if let Some(plot) = &self.plot {
            let svg = noise_plot("Modulus by level", &[panel(&plan)?]);
            file::write(plot, svg.as_bytes(), Access::Public, Existing::Replace)?;
        }
        let report = Report::new(&plan)?;
        if json {
            return Ok(report);
        }
        let report = report.without(&["format", "version", "params"]);
        Ok(if self.explain { report } else { report.without(&["explain"]) })
    }

    fn description(&self) -> Result<Description, Error> {
        if self.quantum {
            return Err(unavailable("--quantum", "", "classical security, without --quantum"));
        }
        let refuse = |message: &str| Err(Error::Usage { message: message.to_owned() });
        match (self.scheme, &self.t, self.precision) {
            (Scheme::Ckks, Some(_), _) => return refuse("--t is for bfv and bgv; ckks takes --precision"),
            (Scheme::Bfv | Scheme::Bgv, _, Some(_)) => return refuse("--precision is for ckks; bfv and bgv take --t"),
            _ => {}
        }
        let security = match self.security.as_str() {
            _ if self.insecure => Security::Insecure,
            "192" => Security::Bits192,
            "256" => Security::Bits256,
            _ => Security::Bits128,
        };
        let default_adds = u32::from(self.scheme != Scheme::Ckks || self.depth <= DEEPEST_CKKS_SUMS);
        let mut rotations = self.rotations.clone();
        rotations.sort_unstable();
        rotations.dedup();
        Ok(Description {
            t: self.t.clone(),
            precision: self.precision,
            additions: self.adds.unwrap_or(default_adds) as usize,
            rotations,
            swap: self.swap,
            min_slots: self.slots,
            security,
            max_key_bytes: self.max_key_bytes,
            ..Description::new(self.scheme.into(), self.depth as usize)
        })
    }
}

/// What each level could gain by a key of its own, a line for each level that would.
fn index_lines(plan: &Plan, profile: &Profile, budget: Option<u64>) -> Result<Vec<String>, Error> {
    let keys = 1 + plan.rotations.len() as u64 + u64::from(plan.swap);
    let map = match plan.index_map(profile, budget.map(|bytes| bytes / keys)) {
        Ok(map) => map,
        Err(e) => return Ok(vec![format!("index map: {e}")]),
    };
    let now: f64 = plan.switch.iter().filter_map(|s| s.predicted_ms).sum();
    let mut lines = vec![format!(
        "index map: a plan for each level would take {:.3} ms for one switch at every level, the one plan in use {now:.3} \
         ms; prepared keys {} bytes a source",
        1e3 * map.seconds(),
        map.key_bytes
    )];
    lines.extend(map.explain());
    Ok(lines)
}

/// The modulus at each level, from the top.
fn panel(plan: &Plan) -> Result<Panel, Error> {
    let (params, _) = plan.params.check()?;
    let steps = (0..=params.top_level()).rev().map(|level| {
        let modulus_bits = params.level(level).map_or(f64::NAN, |primes| params.ring().log2(primes));
        let health = Health { level: level as u32, modulus_bits, noise_bits: f64::NAN };
        Step { name: format!("level {level}"), health }
    });
    let title = format!("{}, N = 2^{}", plan.scheme.name(), plan.log_n);
    let subtitle = format!("log QP = {}, {:.0} bits of security", plan.log_qp, plan.security_bits);
    Ok(Panel { title, subtitle, steps: steps.collect() })
}
