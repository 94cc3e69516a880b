//! `bench matmul`: the time and the memory of the product of encrypted square matrices.

use crate::commands::place::{Cores, Device};
use crate::error::Error;
use crate::matrices::Mode;
use crate::output::Report;
use clap::Args;
use serde::Serialize;
use synchromesh::circuits::MatrixChoices;
use synchromesh_bench::matmul;

/// Parameters of `bench matmul`.
#[derive(Args, Debug)]
pub(in crate::commands) struct MatmulBench {
    /// Rows and columns of a block, a power of two.
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=1024))]
    d: u32,
    /// Rows and columns of the matrices [default: one block].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=2048))]
    size: Option<u32>,
    /// Bits of the plaintext modulus.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(17..=256))]
    t_bits: u32,
    /// hoist: a key for each rotation; reuse: one key a factor; mixed: some; recompute: hoist, one block at a time.
    #[arg(long, value_enum, default_value = "hoist")]
    mode: Mode,
    /// mixed: rotation keys at most.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(2..=4096))]
    keys: u32,
    /// Lines twice as long instead of masks: half as many products at a time.
    #[arg(long)]
    doubled: bool,
    /// log2 of the degree N.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(10..=17))]
    log_n: u32,
    /// Bits of a prime.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(40..=60))]
    width: u32,
    #[command(flatten)]
    threads: Cores,
    /// Compare with the plain product.
    #[arg(long)]
    check: bool,
    /// The device.
    #[arg(long, value_enum, default_value = "auto")]
    device: Device,
}

#[derive(Serialize)]
struct Measured {
    mode: Mode,
    #[serde(flatten)]
    report: matmul::Report,
    /// Why the CPU was taken where a card was preferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not_cuda: Option<String>,
}

impl MatmulBench {
    pub(in crate::commands) fn run(&self) -> Result<Report, Error> {
        let (chosen, threads) = (self.device.choose()?, self.threads.settle_to_measure()?.count());
        let choices = match self.mode {
            Mode::Hoist => MatrixChoices::HOISTED,
            Mode::Reuse => MatrixChoices::REUSED,
            Mode::Mixed => MatrixChoices::mixed(self.keys as usize / 2),
            Mode::Recompute => MatrixChoices::RECOMPUTED,
        };
        let request = matmul::Request {
            d: self.d as usize,
            size: self.size.unwrap_or(self.d) as usize,
            t_bits: self.t_bits,
            log_n: self.log_n,
            width: self.width,
            choices: choices.threads(threads),
            doubled: self.doubled,
            check: self.check,
            runs: matmul::RUNS,
            device: chosen.measured(),
        };
        let report = matmul::measure(&request)?;
        Report::new(&Measured { mode: self.mode, report, why_not_cuda: chosen.why_not_cuda() })
    }
}
