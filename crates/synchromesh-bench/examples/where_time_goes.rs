//! One rotation, operation by operation, measured and predicted: `where_time_goes PROFILE LOG_N LOG_Q OMEGA [WIDTH]`.

use std::sync::Arc;

use synchromesh::cost::{OneSwitch, Profile, TABLE_BYTES};
use synchromesh_bench::key_switch::{Chain, Method, Prepared, rotation};
use synchromesh_ring::{Cpu, Ledger};
use synchromesh_rlwe::Context;

/// Runs of which the mean counts.
const RUNS: usize = 15;

#[expect(clippy::print_stdout, reason = "the result of a command")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, numbers @ ..] = &args[..] else { return Err("PROFILE LOG_N LOG_Q OMEGA [WIDTH]".into()) };
    let numbers: Vec<u32> = numbers.iter().map(|a| a.parse()).collect::<Result<_, _>>()?;
    let [log_n, log_q, omega, ref rest @ ..] = numbers[..] else { return Err("LOG_N LOG_Q OMEGA".into()) };
    let profile = Profile::from_json(&std::fs::read_to_string(file)?)?;
    let chain = Chain::Equal { log_q, log_p: None, width: rest.first().copied() };
    let request = rotation(log_n, chain, Method::Hybrid { omega: omega as usize });
    let prepared = Prepared::new(&request)?;
    let params = prepared.params().clone();
    let context = Context::with_backend(params.clone(), Ledger::new(Cpu::open(Arc::clone(params.ring()))?));
    let plan = prepared.plan();
    let switch = OneSwitch::new(&context, plan, [params.q(), params.q()], request.shape)?;
    switch.run()?;
    context.backend().take();
    let start = std::time::Instant::now();
    for _ in 0..RUNS {
        switch.run()?;
    }
    let total = start.elapsed().as_secs_f64() / RUNS as f64;
    let (entries, peak) = context.backend().take();
    let working_set = peak + TABLE_BYTES * params.n() * params.keyed().len();
    let predicted = profile.by_operation(&entries, log_n, working_set)?;
    let ms = |s: f64| 1e3 * s / RUNS as f64;
    println!("working set {:.1} MiB", working_set as f64 / (1 << 20) as f64);
    for (((operation, narrow), tally), (.., seconds)) in entries.iter().zip(&predicted) {
        let class = if *narrow { "narrow" } else { "wide" };
        let ratio = seconds / tally.seconds;
        println!(
            "{:18} {class:7} measured {:9.4} ms  predicted {:9.4} ms  ratio {ratio:.2}  {:?}",
            operation.name(),
            ms(tally.seconds),
            ms(*seconds),
            tally.work.features().map(|x| x / RUNS as u64)
        );
    }
    let sum: f64 = predicted.iter().map(|p| p.2).sum();
    println!("total measured {:.4} ms  predicted {:.4} ms  ratio {:.2}", 1e3 * total, ms(sum), ms(sum) / (1e3 * total));
    Ok(())
}
