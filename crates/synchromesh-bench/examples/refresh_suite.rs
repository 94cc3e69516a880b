//! Refreshes at real parameters judged by decryption: `refresh_suite [OUT [LOG_N:REFRESHES:CHAIN ..]]`, at N = 2^16 1000
//! refreshes and 100 of one ciphertext unless said otherwise. What was found is written every few refreshes; lines of the
//! tables that are not measured again stay.

use std::path::Path;

use synchromesh::plan::bootstrap::BootstrapRequest;
use synchromesh_bench::refreshes::{Judgement, MOST_DEVIATIONS, judge};
use synchromesh_ring::Threads;
use synchromesh_rlwe::{Randomness, Security};

/// Refreshes after which what was found is written.
const OFTEN: usize = 25;

const ERRORS: &str = "log_n,log_qp,security,refreshes,worst_error_bits,certified_bits,error_over_certificate,chain,\
                      chain_error_bits,chain_certified_bits,largest_multiple,deviations";

const MULTIPLES: &str = "log_n,multiple,times,expected";

/// A case as it is asked for.
fn case(text: &str) -> Result<[usize; 3], Box<dyn std::error::Error>> {
    let numbers = text.split(':').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    numbers.try_into().map_err(|_| format!("'{text}' is not LOG_N:REFRESHES:CHAIN").into())
}

/// The table of a file with these lines in place of those of the degree.
fn put(path: &Path, head: &str, log_n: u32, lines: Vec<String>) -> std::io::Result<()> {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let own = format!("{log_n},");
    let mut all: Vec<String> = before.lines().skip(1).filter(|l| !l.starts_with(&own)).map(str::to_owned).collect();
    all.extend(lines);
    std::fs::write(path, format!("{head}\n{}\n", all.join("\n")))
}

fn record(out: &Path, judged: &Judgement) -> std::io::Result<()> {
    let bits = |error: f64| -error.log2();
    let line = format!(
        "{},{},{:.0},{},{:.2},{:.2},{:.4},{},{:.2},{:.2},{},{:.2}",
        judged.log_n,
        judged.log_qp,
        judged.security_bits,
        judged.refreshes,
        bits(judged.largest_error),
        bits(judged.certificate),
        judged.nearest.max(judged.chain_nearest),
        judged.chain,
        bits(judged.chain_error),
        bits(judged.chain_certificate),
        judged.largest_multiple(),
        judged.deviations(),
    );
    put(&out.join("errors.csv"), ERRORS, judged.log_n, vec![line])?;
    let multiple = |(k, (have, wanted)): (&i64, &(u64, f64))| format!("{},{k},{have},{wanted:.3}", judged.log_n);
    put(&out.join("multiples.csv"), MULTIPLES, judged.log_n, judged.multiples.iter().map(multiple).collect())
}

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let out = args.next().unwrap_or_else(|| "docs/bootstrap".to_owned());
    let mut cases = args.map(|text| case(&text)).collect::<Result<Vec<_>, _>>()?;
    if cases.is_empty() {
        cases.push([16, 1000, 100]);
    }
    std::fs::create_dir_all(&out)?;
    let mut good = true;
    for [log_n, refreshes, chain] in cases {
        let insecure = log_n < 15;
        let request = BootstrapRequest {
            log_n: log_n as u32,
            log_scale: 40,
            precision: 15,
            levels: Some(if insecure { 3 } else { 14 }),
            message_bound: 1.0,
            baby_steps: Some(8),
            security: if insecure { Security::Insecure } else { Security::Bits128 },
        };
        let threads = Threads::of_process()?;
        let judged = judge(&request, [refreshes, chain], &threads, Randomness::from_os(), |judged| {
            eprintln!("{} of {refreshes} refreshes, {} of {chain} of one ciphertext", judged.refreshes, judged.chain);
            if (judged.refreshes + judged.chain).is_multiple_of(OFTEN) {
                record(Path::new(&out), judged).unwrap_or_else(|error| eprintln!("{error}"));
            }
        })?;
        record(Path::new(&out), &judged)?;
        println!(
            "N = 2^{log_n}: {refreshes} refreshes, error 2^{:.2}, certificate 2^{:.2}; {chain} of one ciphertext, error 2^{:.2}, \
             certificate 2^{:.2}; multiples up to {}, {:.1} deviations from what is expected",
            judged.largest_error.log2(),
            judged.certificate.log2(),
            judged.chain_error.log2(),
            judged.chain_certificate.log2(),
            judged.largest_multiple(),
            judged.deviations(),
        );
        good &= judged.certificates_hold() && judged.deviations() < MOST_DEVIATIONS;
    }
    if good { Ok(()) } else { Err("an error is above its certificate, or multiples are not as expected".into()) }
}
