//! `bench circuit`: the median time of a product tree, a polynomial or an inner product.

use crate::commands::place::Place;
use crate::commands::plan::Scheme;
use crate::error::Error;
use crate::output::Report;
use clap::{Args, ValueEnum};
use synchromesh_bench::circuits::{self, Circuit};

/// Parameters of `bench circuit`.
#[derive(Args, Debug)]
pub(in crate::commands) struct CircuitBench {
    /// The scheme, bfv or bgv.
    #[arg(long, value_enum)]
    scheme: Scheme,
    /// The circuit.
    #[arg(long, value_enum)]
    circuit: Name,
    /// Its size: 2^k factors, a polynomial of degree k, k pairs.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=256))]
    k: u32,
    /// Plaintext modulus [default: 65537].
    #[arg(long)]
    t: Option<String>,
    #[command(flatten)]
    place: Place,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Name {
    Product,
    Polynomial,
    InnerProduct,
}

impl CircuitBench {
    pub(in crate::commands) fn run(&self) -> Result<Report, Error> {
        self.place.check()?;
        let circuit = match self.circuit {
            Name::Product => Circuit::Product,
            Name::Polynomial => Circuit::Polynomial,
            Name::InnerProduct => Circuit::InnerProduct,
        };
        let (scheme, t) = (self.scheme.into(), self.t.clone());
        Report::new(&circuits::measure(&circuits::Request { scheme, circuit, k: self.k as usize, t })?)
    }
}
