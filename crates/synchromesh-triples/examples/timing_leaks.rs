//! Whether times tell secrets apart, by Welch's t (dudect, ePrint 2016/1123): `timing_leaks [SAMPLES]`. Each operation runs on
//! a fixed secret and on random ones in random order; |t| above 4.5 again and again is a leak. Timers and other work on the
//! machine disturb it, so that nothing is asserted.

use std::hint::black_box;
use std::time::Instant;

use serde_json::{Value, json};
use synchromesh::rlwe::ring::sampler::{Purpose, Seed, SmallPoly, cbd21, gaussian, ternary};
use synchromesh::rlwe::{Randomness, SecretKey, Security};
use synchromesh::{bfv, exact};

/// A polynomial of a seed.
type Sampler = fn(&Seed, Purpose, u32, usize) -> SmallPoly;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const LOG_N: u32 = 10;
const N: usize = 1 << LOG_N;
/// Secrets of each class, so that neither has its memory to itself.
const SECRETS: usize = 32;
/// Of the slowest times so many in a hundred are thrown away: interrupts.
const CROP: usize = 10;

/// Mean, variance and number.
fn moments(times: &[f64]) -> (f64, f64, f64) {
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let variance = times.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, variance, count)
}

/// Welch's t of two classes without their slowest times.
fn welch(classes: &[Vec<f64>; 2]) -> f64 {
    let mut all: Vec<f64> = classes.concat();
    all.sort_by(f64::total_cmp);
    let most = all[all.len() * (100 - CROP) / 100 - 1];
    let [a, b] = classes.each_ref().map(|times| {
        let kept: Vec<f64> = times.iter().copied().filter(|&x| x <= most).collect();
        moments(&kept)
    });
    (a.0 - b.0) / (a.1 / a.2 + b.1 / b.2).sqrt()
}

/// Times `work` on secrets 0 .. SECRETS, all alike, and SECRETS .. 2 SECRETS, all different.
fn judge(name: &str, samples: usize, mut work: impl FnMut(usize)) -> Value {
    let mut classes = [Vec::new(), Vec::new()];
    let mut state = 1u64;
    for i in 0..samples + samples / 10 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (class, which) = ((state >> 40) as usize % 2, (state >> 48) as usize % SECRETS);
        let start = Instant::now();
        work(class * SECRETS + which);
        let time = start.elapsed().as_nanos() as f64;
        // The first tenth warms up.
        if i >= samples / 10 {
            classes[class].push(time);
        }
    }
    json!({ "operation": name, "t": (welch(&classes) * 100.0).round() / 100.0 })
}

fn seeds() -> Vec<Seed> {
    let seed = |i: usize| Seed::from_bytes([if i < SECRETS { 7 } else { 100 + i as u8 }; 32]);
    (0..2 * SECRETS).map(seed).collect()
}

fn main() -> Outcome<()> {
    let samples: usize = std::env::args().nth(1).map_or(Ok(20_000), |x| x.parse())?;
    let seeds = seeds();
    let mut results = Vec::new();
    let samplers: [(&str, Sampler); 3] = [("ternary", ternary), ("cbd21", cbd21), ("gaussian", gaussian)];
    for (name, sample) in samplers {
        results.push(judge(name, samples, |i| drop(black_box(sample(&seeds[i], Purpose::SecretKey, 0, N)))));
    }
    let literal = exact::ParamsLiteral {
        log_n: LOG_N,
        t: "65537".into(),
        q_bits: vec![50, 50],
        p_bits: vec![55],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 2,
        security: Security::Insecure,
        primes: None,
    };
    let context = bfv::Context::new(bfv::Params::new(literal)?)?;
    let key = |seed: &Seed| -> Outcome<SecretKey> {
        Ok(SecretKey::generate(context.rlwe(), &mut Randomness::insecure_from_seed(seed.clone()))?)
    };
    let keys = seeds.iter().map(key).collect::<Outcome<Vec<_>>>()?;
    let zero = context.encode_coefficients(&[0u64; N][..])?;
    // One message for all keys: its ciphertexts differ as the keys do.
    let encrypt =
        |key: &SecretKey| Ok(context.encrypt_with_secret(key, &zero, &mut Randomness::insecure_from_number(3))?.0);
    let ciphertexts = keys.iter().map(encrypt).collect::<Outcome<Vec<_>>>()?;
    results.push(judge("decrypt, by key", samples, |i| drop(black_box(context.decrypt(&keys[i], &ciphertexts[i])))));
    let message = |i: usize| -> Vec<u64> {
        (0..N as u64).map(|j| if i < SECRETS { 0 } else { (j * 7919 + i as u64) % 65537 }).collect()
    };
    let messages =
        (0..2 * SECRETS).map(|i| Ok(context.encode_coefficients(&message(i)[..])?)).collect::<Outcome<Vec<_>>>()?;
    let encrypt = |m| Ok(context.encrypt_with_secret(&keys[0], m, &mut Randomness::insecure_from_number(3))?.0);
    let encrypted = messages.iter().map(encrypt).collect::<Outcome<Vec<_>>>()?;
    results.push(judge("decrypt, by message", samples, |i| drop(black_box(context.decrypt(&keys[0], &encrypted[i])))));
    results.push(judge("encrypt, by message", samples, |i| {
        drop(black_box(context.encrypt_with_secret(&keys[0], &messages[i], &mut Randomness::insecure_from_number(3))));
    }));
    #[expect(clippy::print_stdout, reason = "the result of a command")]
    {
        println!("{}", json!({ "samples": samples, "operations": results }));
    }
    Ok(())
}
