//! Times CKKS at N = 2^15, Q = 55 + 12 * 45 bits, P = 5 * 48 bits, three digits: medians in milliseconds, manual mode.

use std::sync::Arc;
use std::time::Instant;

use synchromesh::ckks::{Context, Evaluator, Mode, Params, ParamsLiteral, Rotations};
use synchromesh::rlwe::{Randomness, Security};

fn main() -> synchromesh::Result<()> {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(15);
    for mode in [Mode::Manual, Mode::Auto] {
        measure(mode, rounds)?;
    }
    Ok(())
}

fn time<T>(name: &str, rounds: usize, mut run: impl FnMut() -> synchromesh::Result<T>) -> synchromesh::Result<()> {
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds + 2 {
        let start = Instant::now();
        drop(run()?);
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let times = &mut times[2..];
    times.sort_by(f64::total_cmp);
    println!("{name:>20} {:8.3} ms (least {:.3})", times[rounds / 2], times[0]);
    Ok(())
}

fn measure(mode: Mode, rounds: usize) -> synchromesh::Result<()> {
    let mut q_bits = vec![45; 13];
    q_bits[0] = 55;
    let params = Params::new(ParamsLiteral {
        log_n: 15,
        log_scale: 45,
        q_bits,
        p_bits: vec![48; 5],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 3,
        log_scales: vec![],
        mode,
        security: Security::Bits128,
        primes: None,
    })?;
    let context = Context::new(params)?;
    println!("{mode:?}, {}", synchromesh::rlwe::ring::Backend::name(context.rlwe().backend()));
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &Rotations::by([1, 2, 4, 8]), &mut randomness)?;
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    let values: Vec<f64> = (0..context.params().slots()).map(|i| (i % 17) as f64 / 17.0).collect();
    let plain = context.encode(&values)?;
    let x = context.encrypt(&public, &plain, &mut randomness)?;
    let y = context.encrypt(&public, &plain, &mut randomness)?;
    let three = evaluator.mul_no_relin(&x, &y)?;
    time("encode", rounds, || context.encode(&values))?;
    time("encrypt", rounds, || context.encrypt(&public, &plain, &mut randomness))?;
    time("encode, encrypt", rounds, || context.encrypt(&public, &context.encode(&values)?, &mut randomness))?;
    time("add", rounds, || evaluator.add(&x, &y))?;
    time("mul", rounds, || evaluator.mul(&x, &y))?;
    time("square", rounds, || evaluator.square(&x))?;
    time("mul_no_relin", rounds, || evaluator.mul_no_relin(&x, &y))?;
    time("relinearize", rounds, || evaluator.relinearize(&three))?;
    time("mul_plain", rounds, || evaluator.mul_plain(&x, &plain))?;
    time("rotate", rounds, || evaluator.rotate(&x, 1))?;
    time("rotate_many, 4", rounds, || evaluator.rotate_many(&x, &[1, 2, 4, 8]))?;
    if mode == Mode::Manual {
        let product = evaluator.mul(&x, &y)?;
        time("rescale", rounds, || evaluator.rescale(&product))?;
    } else {
        time("mod_switch", rounds, || evaluator.mod_switch(&x))?;
    }
    time("decrypt", rounds, || context.decrypt(&secret, &x))?;
    time("decrypt, decode", rounds, || context.decode(&context.decrypt(&secret, &x)?))
}
