//! Measures the errors of every operation and writes docs/noise: `noise_suite [--record FILE] [OUT [LOG_N:KEYS ...]]`.
//!
//! With a record an interrupted run goes on where it was.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use synchromesh_bench::noise::{Options, write_report};

/// Width of the bar.
const BAR: usize = 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    let (mut out, mut sizes) = (None, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--record" {
            options.record = Some(args.next().ok_or("--record takes a file")?.into());
        } else if arg.starts_with('-') {
            return Err(format!("{arg} is unknown; noise_suite [--record FILE] [OUT [LOG_N:KEYS ...]]").into());
        } else if out.is_none() {
            out = Some(arg);
        } else {
            let (log_n, keys) = arg.split_once(':').ok_or("a size is LOG_N:KEYS")?;
            sizes.push((log_n.parse::<u32>()?, keys.parse::<usize>()?));
        }
    }
    if !sizes.is_empty() {
        options.sizes = sizes;
    }
    let (start, mut before) = (Instant::now(), None);
    let terminal = std::io::stderr().is_terminal();
    let mut shown = 0;
    let rows = write_report(out.as_deref().unwrap_or("docs/noise").as_ref(), &options, &mut |share, new| {
        // What the record had already took no time.
        if !new || before.is_none() {
            before = Some((share, start.elapsed().as_secs_f64()));
        }
        let (from, then) = before.unwrap_or((0.0, 0.0));
        let passed = start.elapsed().as_secs_f64() - then;
        let left = if share > from { passed * (1.0 - share) / (share - from) / 60.0 } else { f64::INFINITY };
        let percent = (100.0 * share) as usize;
        let filled = (share * BAR as f64) as usize;
        let bar = format!("[{}{}] {percent:3} %, {left:.0} min left", "#".repeat(filled), " ".repeat(BAR - filled));
        if terminal {
            eprint!("\r{bar}   ");
            let _ = std::io::stderr().flush();
        } else if percent > shown {
            shown = percent;
            eprintln!("{bar}");
        }
    })?;
    eprintln!();
    let average = rows.iter().filter(|row| row.average);
    let off: Vec<_> = average.clone().filter(|row| row.deviation().abs() > 0.05).collect();
    println!(
        "{} rows, {} of {} estimates within 0.05 bits",
        rows.len(),
        average.clone().count() - off.len(),
        average.count()
    );
    for row in off {
        let (deviation, error) = (row.deviation(), row.standard_error);
        println!("  {} 2^{}, {}: {deviation:+.3}, standard error {error:.3}", row.scheme, row.log_n, row.operation);
    }
    let exceeded: Vec<_> = rows.iter().filter(|row| row.largest > row.certificate_40).collect();
    for row in &exceeded {
        println!("  above its certificate: {} 2^{}, {}", row.scheme, row.log_n, row.operation);
    }
    if exceeded.is_empty() { Ok(()) } else { Err("errors above their certificates".into()) }
}
