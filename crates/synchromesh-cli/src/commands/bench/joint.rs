//! `bench joint`: time and traffic of keys that several parties make, and of decryptions under them.

use crate::commands::place::Place;
use crate::commands::plan::Scheme;
use crate::error::Error;
use crate::output::Report;
use clap::Args;
use synchromesh_bench::joint;

/// Parameters of `bench joint`.
#[derive(Args, Debug)]
pub(in crate::commands) struct JointBench {
    /// The scheme: bgv at N = 2^14, or ckks at N = 2^15.
    #[arg(long, value_enum)]
    scheme: Scheme,
    /// Parties who make the key, each a thread of this process.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=16))]
    parties: u32,
    /// How many of them decrypt [default: all].
    #[arg(long)]
    threshold: Option<u32>,
    /// Keys for rotations by 1 to ROTATIONS.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rotations: u32,
    /// Ciphertexts that are decrypted together.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    ciphertexts: u32,
    /// Each party proves its shares of the keys.
    #[arg(long)]
    proofs: bool,
    #[command(flatten)]
    place: Place,
}

impl JointBench {
    pub(in crate::commands) fn run(&self) -> Result<Report, Error> {
        self.place.check()?;
        let (parties, threshold) = (self.parties as usize, self.threshold.unwrap_or(self.parties) as usize);
        let Self { rotations, ciphertexts, proofs, .. } = *self;
        let request = joint::Request { scheme: self.scheme.into(), parties, threshold, rotations, ciphertexts, proofs };
        Report::new(&joint::measure(&request)?)
    }
}
