//! `matmul`: the product of two or three encrypted matrices, checked against the plain one.

use super::overwrite::Overwrite;
use super::place::{Cores, Device, Used, on_device};
use super::plan::Scheme;
use crate::error::Error;
use crate::matrices::{Job, Mode, Product, Summary};
use crate::output::{Report, progress};
use crate::table::Table;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use synchromesh_rlwe::file::{self, Access};

/// Encrypt two matrices, multiply, decrypt, and compare with the plain product.
#[derive(Args, Debug)]
pub(super) struct Matmul {
    /// The left factor: a CSV or NPY file, one line a row.
    left: PathBuf,
    /// The right factor.
    right: PathBuf,
    /// A third factor: the product of the first two is multiplied by it without being decrypted.
    #[arg(long, value_name = "FILE")]
    chain: Option<PathBuf>,
    /// The scheme: bgv and bfv compute modulo t, ckks on reals.
    #[arg(long, value_enum, default_value = "bgv")]
    scheme: Scheme,
    /// bfv, bgv: a prime modulus that is 1 mod 2N, decimal or 0x.. [default: 65537]; entries are from -t/2 to t - 1.
    #[arg(long)]
    t: Option<String>,
    /// ckks: the product within 2^-PRECISION.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=40))]
    precision: u32,
    /// hoist: a key for each rotation; reuse: one key a factor; mixed: some; recompute: hoist, one block at a time.
    #[arg(long, value_enum, default_value = "hoist")]
    mode: Mode,
    /// mixed: rotation keys at most.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(2..=4096))]
    keys: u32,
    /// Rotate left factors without masks only: less in a ciphertext, a smaller modulus.
    #[arg(long)]
    no_masks: bool,
    #[command(flatten)]
    threads: Cores,
    /// Where to write the product.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
    /// The device.
    #[arg(long, value_enum, default_value = "auto")]
    device: Device,
}

#[derive(Serialize)]
struct Multiplied {
    #[serde(flatten)]
    report: Summary,
    #[serde(flatten)]
    used: Used,
}

impl Matmul {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        let (chosen, threads) = (self.device.choose()?, self.threads.settle()?.count());
        let existing = self.overwrite.permit(self.out.as_deref())?;
        let tables: Vec<Table> = [Some(&self.left), Some(&self.right), self.chain.as_ref()]
            .into_iter()
            .flatten()
            .map(|path| Table::read(path))
            .collect::<Result<_, _>>()?;
        let bar = progress(json, 0);
        let job = Job {
            scheme: self.scheme.into(),
            t: self.t.clone(),
            precision: self.precision,
            mode: self.mode,
            keys: self.keys as usize,
            masks: !self.no_masks,
            threads,
        };
        let say = |what: &str| bar.set_message(what.to_owned());
        let Product { report, table, exact } = on_device!(chosen, Backend => job.run::<Backend>(&tables, &say))?;
        bar.finish_and_clear();
        if let Some(out) = &self.out {
            file::write(out, &table.to_bytes(out)?, Access::Public, existing)?;
        }
        Ok(Report::new(&Multiplied { report, used: chosen.used() })?
            .check(exact, "the decrypted product is the plain one"))
    }
}
