//! Times the samplers at N = 2^16: median of 41 runs, one thread, microseconds.

use std::time::Instant;
use synchromesh_ring::sampler::{self, Purpose, Seed, Stream};

fn median(name: &str, mut f: impl FnMut()) {
    let mut times: Vec<f64> = (0..41)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name:<28} {:>8.1} us", times[20]);
}

fn main() {
    let seed = Seed::from_bytes([1; 32]);
    let n = 1 << 16;
    let mut words = vec![0u64; n];
    let mut small = vec![0i64; n];
    let purpose = Purpose::PublicRandomness;
    let mut stream = Stream::new(&seed, purpose, 0, 0);
    median("stream words", || stream.fill_words(0, &mut words));
    for (name, q) in [("uniform, q just below 2^50", (1 << 50) - 27), ("uniform, q just above 2^49", (1 << 49) + 69)] {
        median(name, || sampler::uniform_into(&seed, purpose, 0, q, &mut words).expect("valid modulus"));
    }
    median("ternary", || sampler::ternary_into(&seed, purpose, 0, &mut small));
    median("cbd21", || sampler::cbd21_into(&seed, purpose, 0, &mut small));
    median("gaussian", || sampler::gaussian_into(&seed, purpose, 0, &mut small));
}
