//! Times CKKS circuits at 128 bits over different level schedules: small primes only or mostly large ones with prime
//! switching, and one secret key or two. Every result is decrypted and compared.
//!
//! `level_schedules [rounds] [PROFILE]`; medians in milliseconds, one thread, beside what a machine profile predicts.

use std::sync::Arc;
use std::time::Instant;

use synchromesh::circuits::Steps;
use synchromesh::ckks::{Context, Evaluator, Mode, Params, ParamsLiteral, Rotations};
use synchromesh::cost::{Profile, predict_ckks};
use synchromesh::rlwe::{DigitSizes, PrimeSwitching, Randomness, Schedule, Security};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(7);
    let text = std::env::args().nth(2).map(std::fs::read_to_string).transpose()?;
    let profile = text.map(|text| Profile::from_json(&text)).transpose()?;
    let run = |name: &str, literal, rounds| run(name, literal, rounds, profile.as_ref());
    println!("depth 12, N = 2^15, three digits: squarings from the top level to the bottom");
    for log_scale in [36, 40] {
        let small = [vec![log_scale + 20], vec![log_scale; 12]].concat();
        // Prefixes, listed, so that its digits are balanced by bits like those of the others.
        let prefixes = Schedule::of((1..=13).map(|end| (0..end).collect()).collect());
        run("small primes only", literal(15, log_scale, small, prefixes, 3, 50)?, rounds)?;
        for (mu, kappa) in [(2, 3), (3, 4), (4, 5)] {
            let switching = PrimeSwitching::new(mu, kappa)?;
            // Large primes on the fast side of 2^50 where they fit there.
            let Ok(chain) = switching.chain(log_scale + 20, log_scale, 12, 50) else { continue };
            let widest = chain.q_bits.iter().copied().max().unwrap_or(50);
            let name = format!("({mu}, {kappa}), large primes of {widest} bits");
            run(&name, literal(15, log_scale, chain.q_bits, chain.schedule, 3, 50)?, rounds)?;
        }
    }
    println!("depth 8, N = 2^14, P of one prime: as many digits as primes above, fewer under a second key");
    for leading in 0..=2 {
        let q_bits = [vec![54], vec![40; 8]].concat();
        let mut literal = literal(14, 40, q_bits, Schedule::default(), 9, 55)?;
        if leading > 0 {
            literal.schedule = literal.schedule.with_second_key(leading);
        }
        run(&format!("{leading} leading levels"), literal, rounds)?;
    }
    Ok(())
}

/// A literal whose special primes, of at most `width` bits, cover the widest of `omega` digits.
fn literal(
    log_n: u32,
    log_scale: u32,
    q_bits: Vec<u32>,
    schedule: Schedule,
    omega: usize,
    width: u32,
) -> synchromesh::Result<ParamsLiteral> {
    let sizes = if schedule.levels.is_empty() {
        DigitSizes::equal(q_bits.len(), omega)?
    } else {
        DigitSizes::balanced(&q_bits, omega)?
    };
    let mut widths = q_bits.iter();
    let widest = sizes.0.iter().map(|&size| widths.by_ref().take(size).sum::<u32>()).max().unwrap_or(0) + 1;
    let count = widest.div_ceil(width);
    let p_bits = vec![widest.div_ceil(count); count as usize];
    let (level_limbs, security) = (Vec::new(), Security::Bits128);
    let mode = Mode::Auto;
    Ok(ParamsLiteral { log_n, log_scale, q_bits, p_bits, level_limbs, schedule, omega, mode, security, primes: None })
}

fn run(name: &str, literal: ParamsLiteral, rounds: usize, profile: Option<&Profile>) -> synchromesh::Result<()> {
    let params = Params::new(literal)?;
    let top = params.top_level();
    let predicted = profile.map(|profile| {
        predict_ckks(profile, &params, &Steps::default(), &[1.0], |evaluator, x| {
            (1..top).try_fold(evaluator.square(&x[0])?, |y, _| evaluator.square(&y))
        })
    });
    let predicted = predicted.transpose()?.map_or_else(String::new, |s| format!("{:8.2} predicted, ", 1e3 * s));
    let (digits, below) = (params.plan().digits.len(), params.second_plan().map(|plan| plan.digits.len()));
    let log_qp = params.rlwe().log_qp();
    let limbs = (params.rlwe().q().len(), params.rlwe().p().len());
    let context = Context::new(params)?;
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?;
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    let values: Vec<f64> = (0..context.params().slots()).map(|i| 1.0 - (i % 17) as f64 / 4096.0).collect();
    let x = context.encrypt(&public, &context.encode(&values)?, &mut randomness)?;
    let (mut times, mut result) = (Vec::with_capacity(rounds), None);
    for round in 0..=rounds {
        let start = Instant::now();
        let mut y = evaluator.square(&x)?;
        while y.level() > 0 {
            y = evaluator.square(&y)?;
        }
        // The first round prepares keys.
        if round > 0 {
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        result = Some(y);
    }
    times.sort_by(f64::total_cmp);
    let Some(y) = result else { return Ok(()) };
    let decoded = context.decode(&context.decrypt(&secret, &y)?)?;
    let power = 1 << context.params().top_level();
    let off = decoded.iter().zip(&values).map(|(y, x)| (y - x.powi(power)).abs()).fold(0.0, f64::max);
    assert!(off < 0.01, "decrypted wrongly: off by {off}");
    let digits = below.map_or(format!("{digits} digits"), |below| format!("{digits} and {below} digits"));
    let (l, k) = limbs;
    println!(
        "{name:>34}: {:8.2} ms, {predicted}{l:2} + {k} primes, {digits}, log QP = {log_qp}, off by {off:.1e}",
        times[rounds / 2]
    );
    Ok(())
}
