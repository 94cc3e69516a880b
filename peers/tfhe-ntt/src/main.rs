//! Times one negacyclic NTT case of the crate tfhe-ntt and prints one JSON object a line.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tfhe_ntt::prime64::Plan;

const USAGE: &str = "usage: peer-tfhe-ntt ntt --log-n 16 --bits 50 [--min-time 1s]";
const VERSION: &str = "0.7.1";

struct Case {
    log_n: u32,
    bits: u32,
    min_time: Duration,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match parse(&args).and_then(|case| run(&case)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn parse(args: &[String]) -> Result<Case, String> {
    let mut case = Case { log_n: 16, bits: 50, min_time: Duration::from_secs(1) };
    let (command, flags) = args.split_first().ok_or(USAGE)?;
    if command != "ntt" || flags.len() % 2 != 0 {
        return Err(USAGE.into());
    }
    for pair in flags.chunks_exact(2) {
        let bad = |_| format!("{} takes a number, not '{}'\n{USAGE}", pair[0], pair[1]);
        match pair[0].as_str() {
            "--log-n" => case.log_n = pair[1].parse().map_err(bad)?,
            "--bits" => case.bits = pair[1].parse().map_err(bad)?,
            "--min-time" => case.min_time = Duration::from_secs(pair[1].trim_end_matches('s').parse().map_err(bad)?),
            _ => return Err(USAGE.into()),
        }
    }
    if !(5..=18).contains(&case.log_n) || !(20..=61).contains(&case.bits) {
        return Err(format!("log-n is 5..=18 and bits 20..=61\n{USAGE}"));
    }
    Ok(case)
}

/// Times the transforms in place on one hot limb, as a mean over enough of them to outlast the clock.
fn run(case: &Case) -> Result<(), String> {
    let n = 1usize << case.log_n;
    let step = 2 * n as u64;
    let top = (1u64 << case.bits) / step;
    let (q, plan) = (0..top)
        .rev()
        .map(|k| k * step + 1)
        .take(4096)
        .find_map(|q| Plan::try_new(n, q).map(|plan| (q, plan)))
        .ok_or_else(|| format!("no {}-bit prime that is 1 mod {step}", case.bits))?;
    let mut data: Vec<u64> = (0..n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % q).collect();
    let repeats = 1usize << 18u32.saturating_sub(case.log_n);
    emit(case, &plan, "forward", repeats, || {
        for _ in 0..repeats {
            plan.fwd(black_box(&mut data));
        }
    });
    emit(case, &plan, "inverse", repeats, || {
        for _ in 0..repeats {
            plan.inv(black_box(&mut data));
            plan.normalize(black_box(&mut data));
        }
    });
    emit(case, &plan, "inverse-unnormalised", repeats, || {
        for _ in 0..repeats {
            plan.inv(black_box(&mut data));
        }
    });
    Ok(())
}

fn emit(case: &Case, plan: &Plan, op: &str, repeats: usize, mut f: impl FnMut()) {
    let (ns, runs) = median(case.min_time, &mut f);
    println!(
        r#"{{"peer":"tfhe-ntt","version":"{VERSION}","bench":"ntt","op":"{op}","log_n":{},"bits":{},"ifma":{},"median_ns":{:.1},"runs":{runs}}}"#,
        case.log_n,
        case.bits,
        plan.use_ifma(),
        ns / repeats as f64
    );
}

/// Median in nanoseconds of at least seven runs that together last `min_time`, after one to warm up.
fn median(min_time: Duration, f: &mut impl FnMut()) -> (f64, usize) {
    f();
    let mut times = Vec::new();
    let mut total = Duration::ZERO;
    while times.len() < 7 || (total < min_time && times.len() < 2001) {
        let start = Instant::now();
        f();
        let elapsed = start.elapsed();
        times.push(elapsed);
        total += elapsed;
    }
    times.sort_unstable();
    (times[times.len() / 2].as_nanos() as f64, times.len())
}
