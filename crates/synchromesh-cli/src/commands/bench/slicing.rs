//! `bench slicing`: whether the block sizes chosen for products of matrices are the fastest, shape by shape.

use crate::error::Error;
use crate::output::{Report, say};
use clap::Args;
use serde::Serialize;
use synchromesh_bench::slicing::{Choice, SHAPES, measure};

/// A choice this much slower than the best counts as missed.
const TOLERANCE: f64 = 1.1;

/// Parameters of `bench slicing`.
#[derive(Args, Debug)]
pub(in crate::commands) struct SlicingBench {
    /// log2 of the degree N.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(10..=16))]
    log_n: u32,
    /// Bits of the plaintext modulus.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(17..=256))]
    t_bits: u32,
    /// Rotations made from one decomposition, and as many keys for each factor.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    window: u32,
    /// One shape, RxKxC [default: twenty].
    #[arg(long, value_parser = shape)]
    shape: Option<[usize; 3]>,
}

fn shape(text: &str) -> Result<[usize; 3], String> {
    let sides: Vec<usize> = text.split('x').filter_map(|side| side.parse().ok()).collect();
    let sides: [usize; 3] = sides.try_into().map_err(|_| format!("{text:?} is not a shape RxKxC"))?;
    if sides.iter().all(|side| (1..=1024).contains(side)) { Ok(sides) } else { Err("sides are from 1 to 1024".into()) }
}

#[derive(Serialize)]
struct Judged {
    log_n: u32,
    t_bits: u32,
    shapes: usize,
    within_10_percent: usize,
    worst_ratio: f64,
    choices: Vec<Choice>,
}

impl SlicingBench {
    pub(in crate::commands) fn run(&self) -> Result<Report, Error> {
        let shapes = self.shape.map_or_else(|| SHAPES.to_vec(), |shape| vec![shape]);
        let mut choices = Vec::with_capacity(shapes.len());
        for shape in shapes {
            let choice = measure(shape, self.log_n, self.t_bits, self.window as usize)?;
            let ([r, k, c], [chosen, best]) = (shape, [&choice.chosen, &choice.best].map(|x| (x.block, x.seconds)));
            say(&format!("{r} x {k} x {c}: {chosen:?} chosen, {best:?} fastest, {:.2}\n", choice.ratio));
            choices.push(choice);
        }
        let judged = Judged {
            log_n: self.log_n,
            t_bits: self.t_bits,
            shapes: choices.len(),
            within_10_percent: choices.iter().filter(|choice| choice.ratio <= TOLERANCE).count(),
            worst_ratio: choices.iter().map(|choice| choice.ratio).fold(1.0, f64::max),
            choices,
        };
        Report::new(&judged)
    }
}
