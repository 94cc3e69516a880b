//! How long a program takes before it computes: `start_up [THREADS]`, CKKS at N = 2^16 with 25 primes and 3 special ones.
//!
//! Prints milliseconds, each the median of nine: of parameters, of a context on them, and of the first transforms modulo every
//! prime, forward and inverse, which make their factors; beside these the same transforms a second time.

use std::time::Instant;

use synchromesh::ckks::{Context, Mode, Params, ParamsLiteral};
use synchromesh_bench::timing::median;
use synchromesh_ring::{Coeff, Cpu, Poly, Threads};
use synchromesh_rlwe::{Schedule, Security};

const REPEATS: usize = 9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads = Threads::settle(std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?)?;
    let literal = literal();
    let (mut samples, mut transforms) = ([const { Vec::new() }; 4], 0);
    for _ in 0..REPEATS {
        let mut begin = Instant::now();
        let mut lap = |samples: &mut Vec<f64>| {
            samples.push(begin.elapsed().as_secs_f64() * 1e3);
            begin = Instant::now();
        };
        let params = Params::new(literal.clone())?;
        lap(&mut samples[0]);
        let context = Context::new(params)?;
        lap(&mut samples[1]);
        let (ring, backend) = (context.params().rlwe(), context.rlwe().backend());
        let primes = ring.keyed();
        transforms = 2 * primes.len();
        let mut poly = Poly::<Cpu, Coeff>::zero(backend, &primes)?;
        for i in 2..4 {
            poly = poly.into_ntt(backend)?.into_coeff(backend)?;
            lap(&mut samples[i]);
        }
    }
    let [params, context, first, second] = samples.map(median);
    #[expect(clippy::print_stdout, reason = "the result of a command")]
    {
        println!("{} threads: parameters {params:.2} ms, context {context:.2} ms", threads.count());
        println!("{transforms} first transforms {first:.2} ms, again {second:.2} ms");
    }
    Ok(())
}

fn literal() -> ParamsLiteral {
    ParamsLiteral {
        log_n: 16,
        log_scale: 40,
        q_bits: [&[60][..], &[40; 24]].concat(),
        p_bits: vec![60; 3],
        level_limbs: Vec::new(),
        schedule: Schedule::default(),
        omega: 7,
        log_scales: Vec::new(),
        mode: Mode::Auto,
        security: Security::Bits128,
        primes: None,
    }
}
