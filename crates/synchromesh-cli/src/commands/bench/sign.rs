//! `bench sign`: the sign of every slot of a CKKS ciphertext outside a gap.

use crate::commands::place::Place;
use crate::error::Error;
use crate::output::Report;
use clap::Args;
use synchromesh_bench::sign;
use synchromesh_rlwe::Security;

/// Parameters of `bench sign`.
#[derive(Args, Debug)]
pub(in crate::commands) struct SignBench {
    /// log2 of the least degree N; all slots are used.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(4..=17))]
    log_n: u32,
    /// Arguments from 2^-GAP_BITS on are decided.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=20))]
    gap_bits: u32,
    /// To within 2^-BITS, certified.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=30))]
    bits: u32,
    /// Parameters below 128 bits of security.
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    place: Place,
}

impl SignBench {
    pub(in crate::commands) fn run(&self) -> Result<Report, Error> {
        self.place.check()?;
        let security = if self.insecure { Security::Insecure } else { Security::Bits128 };
        let request = sign::Request { log_n: self.log_n, gap_bits: self.gap_bits, bits: self.bits, security };
        Report::new(&sign::measure(&request)?)
    }
}
