//! Times forward and inverse transforms: `ntt_speed [LOG_N] [BITS]`, all degrees and 50 and 60 bits by default.
//!
//! Prints medians in nanoseconds, the time of one butterfly of eight lanes, and what the factors take that a first use makes.
//! The instruction set is the best one, or what `SYNCHROMESH_ISA` names; what it does for either kind of core where these
//! differ, in turn.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;
use synchromesh_ring::isa::{Isa, Multipliers};
use synchromesh_ring::modulus::Modulus;
use synchromesh_ring::ntt::{MAX_LOG_N, MIN_LOG_N, NttTable};
use synchromesh_ring::prime::ntt_primes;

/// Median time of one call, in nanoseconds, over repetitions of `batch` calls for about 0.2 s.
fn median(batch: u32, mut call: impl FnMut()) -> f64 {
    call();
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < 7 || start.elapsed().as_secs_f64() < 0.2 {
        let begin = Instant::now();
        (0..batch).for_each(|_| call());
        times.push(begin.elapsed().as_secs_f64() * 1e9 / f64::from(batch));
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u32>());
    let degrees = args.next().transpose()?.map_or(MIN_LOG_N..=MAX_LOG_N, |log_n| log_n..=log_n);
    let widths = args.next().transpose()?.map_or(vec![50, 60], |bits| vec![bits]);
    let isa = Isa::detect()?;
    for bits in widths {
        for log_n in degrees.clone() {
            let q = ntt_primes(bits, log_n, 1)?[0];
            let modulus = Modulus::new(q)?;
            let table = NttTable::new(modulus, log_n, isa)?;
            let new = median(1, || drop(black_box(NttTable::new(modulus, log_n, isa))));
            let mut x: Vec<u64> = (0..1u64 << log_n).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % q).collect();
            let batch = (1 << 17 >> log_n).max(1);
            let forward = median(batch, || table.forward(black_box(&mut x)));
            if table.isa() == Isa::Ifma {
                let mut kinds = [Multipliers::Every, Multipliers::Half]
                    .map(|kind| (kind, table.clone().with_multipliers(kind), [0.0; 3]));
                for round in 0..3 {
                    for (_, table, times) in &mut kinds {
                        times[round] = median(batch, || table.forward(black_box(&mut x)));
                    }
                }
                for (kind, _, times) in kinds {
                    println!("bits {bits} log_n {log_n} multipliers in {kind:?}: forward {times:.0?} ns");
                }
            }
            let inverse = median(batch, || table.inverse(black_box(&mut x)));
            // What a first use adds: the factors of both directions.
            let first = median(1, || {
                if let Ok(table) = NttTable::new(modulus, log_n, isa) {
                    table.forward(black_box(&mut x));
                    table.inverse(black_box(&mut x));
                }
            });
            let factors = first - new - forward - inverse;
            let butterflies = f64::from(log_n << log_n) / 16.0;
            println!(
                "bits {bits} log_n {log_n} {:6} forward {forward:9.0} ns ({:.2}/butterfly) inverse {inverse:9.0} ns ({:.2}) \
                 new {new:.0} ns factors {factors:.0} ns",
                table.isa().name(),
                forward / butterflies,
                inverse / butterflies
            );
        }
    }
    Ok(())
}
