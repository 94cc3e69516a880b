//! Where a key switch's time goes: `stages LOG_N LOG_Q OMEGA [WIDTH]`, a hybrid rotation from slots to slots.
//!
//! Each stage is timed in its place in whole switches, so caches are as warm as they are there.

use std::error::Error;
use std::time::{Duration, Instant};

use synchromesh_ring::isa::Isa;
use synchromesh_ring::prime::ntt_primes_excluding;
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, Cpu, IndexSet, Ntt, Poly, ViewMut};
use synchromesh_rlwe::domain::{MixedPoly, SwitchDomain};
use synchromesh_rlwe::key_switch::Output;
use synchromesh_rlwe::{
    Context, Operand, Params, ParamsLiteral, Randomness, SecretKey, Security, Source, SwitchKey, SwitchPlan,
};

/// Time spent measuring.
const TIME: Duration = Duration::from_secs(3);
/// Least number of switches.
const LEAST: usize = 15;

/// Primes for log_q bits of Q and a P as large as the largest digit, of at most `width` bits.
fn params(log_n: u32, log_q: u32, omega: u32, width: u32) -> Result<Params, Box<dyn Error>> {
    let count = log_q.div_ceil(width);
    let bits = log_q.div_ceil(count);
    let log_p = bits * count.div_ceil(omega);
    let special = log_p.div_ceil(width);
    let mut primes = Vec::new();
    for bits in (0..count).map(|_| bits).chain((0..special).map(|_| log_p.div_ceil(special))) {
        let next = ntt_primes_excluding(bits, log_n, 1, &primes)?;
        primes.extend(next);
    }
    let p = primes.split_off(count as usize);
    Ok(Params::new(ParamsLiteral {
        tag: "stages".to_owned(),
        log_n,
        q: primes,
        p,
        aux: vec![],
        level_limbs: vec![],
        schedule: Default::default(),
        error_multiple: "1".to_owned(),
        error: Default::default(),
        security: Security::Insecure,
    })?)
}

fn uniform(backend: &Cpu, primes: &IndexSet, which: u32) -> Result<Poly<Cpu, Ntt>, Box<dyn Error>> {
    let mut x: Poly<Cpu, Ntt> = Poly::new(backend, primes)?;
    let rows: Vec<usize> = (0..primes.len()).collect();
    let seed = Seed::from_bytes([7; 32]);
    let view = ViewMut::new(x.buffer_mut(), &rows);
    backend.uniform(primes.as_slice(), &seed, Purpose::PublicRandomness, which, view)?;
    Ok(x)
}

#[expect(clippy::print_stdout, reason = "the result of a command")]
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<u32> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let [log_n, log_q, omega, ref rest @ ..] = args[..] else { return Err("LOG_N LOG_Q OMEGA [WIDTH]".into()) };
    let isa = Isa::detect()?;
    let width = rest.first().copied().unwrap_or(if isa == Isa::Ifma { 47 } else { 60 });
    let params = params(log_n, log_q, omega, width)?;
    let backend = Cpu::with_isa(std::sync::Arc::clone(params.ring()), isa)?;
    let context = Context::with_backend(params, backend);
    let params = context.params();
    let plan = SwitchPlan::hybrid(params, omega as usize)?;
    let mut randomness = Randomness::insecure_from_number(1);
    let secret = SecretKey::generate(&context, &mut randomness)?;
    let key = SwitchKey::generate(&context, &secret, Source::Galois(3), None, &plan, &mut randomness)?
        .prepare(&context, &plan)?;
    let active = params.q().clone();
    let switcher = context.switcher(&plan, &active, &active)?;
    let [input, addend] = [0, 1].map(|which| uniform(context.backend(), &active, which));
    let (input, addend) = (input?, addend?);
    let output = Output { ntt: active.clone(), galois: 3 };
    let digits = switcher.decompose(&context, Operand::Ntt(&input))?;
    let accumulator = switcher.gadget_product(&context, digits, &key, None)?;
    let staged = switcher.mod_down(&context, accumulator, [Some(Ntt::operand(&addend)), None], &output)?;
    let whole = switcher.switch(&context, &input, &key, [Some(&addend), None], 3)?;
    for (staged, whole) in staged.iter().zip(&whole) {
        if staged.ntt.to_words(context.backend())? != whole.to_words(context.backend())? {
            return Err("the stages and the whole switch differ".into());
        }
    }
    let stages = ["decompose", "gadget product", "mod down", "stages", "switch"];
    let mut times: [Vec<f64>; 5] = Default::default();
    let begin = Instant::now();
    while times[0].len() < LEAST || begin.elapsed() < TIME {
        let mut marks = vec![Instant::now()];
        let digits = switcher.decompose(&context, Operand::Ntt(&input))?;
        marks.push(Instant::now());
        let accumulator = switcher.gadget_product(&context, digits, &key, None)?;
        marks.push(Instant::now());
        let parts: [MixedPoly<Cpu>; 2] =
            switcher.mod_down(&context, accumulator, [Some(Ntt::operand(&addend)), None], &output)?;
        marks.push(Instant::now());
        std::hint::black_box(parts);
        let whole = Instant::now();
        std::hint::black_box(switcher.switch(&context, &input, &key, [Some(&addend), None], 3)?);
        times[4].push(whole.elapsed().as_secs_f64());
        for (stage, pair) in marks.windows(2).enumerate() {
            times[stage].push((pair[1] - pair[0]).as_secs_f64());
        }
        times[3].push((marks[3] - marks[0]).as_secs_f64());
    }
    println!(
        "{} + {} primes of {width} bits at most, {} runs, medians in ms",
        active.len(),
        params.p().len(),
        times[0].len()
    );
    for (stage, times) in stages.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{stage:16} {:9.3}   (best {:9.3})", times[times.len() / 2] * 1e3, times[0] * 1e3);
    }
    Ok(())
}
