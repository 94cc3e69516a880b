//! `bench triples`: how time, memory and traffic of a matrix triple grow with its size, the parties and their threads.

use crate::error::Error;
use crate::interrupt::Children;
use crate::output::{Report, say};
use crate::triples::{Format, Local, Origin, Wanted};
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;
use synchromesh_triples::party::Spread;

/// Parameters of `bench triples`.
#[derive(Args, Debug)]
pub(in crate::commands) struct TriplesBench {
    /// Sides d of triples of d x d x d.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 32, 64, 128, 256, 512], value_parser = clap::value_parser!(u32).range(1..=1024))]
    sides: Vec<u32>,
    /// Numbers of parties, all of them processes of this machine.
    #[arg(long, value_delimiter = ',', default_values_t = [2], value_parser = clap::value_parser!(u32).range(2..=64))]
    parties: Vec<u32>,
    /// Numbers of threads of each.
    #[arg(long, value_delimiter = ',', default_values_t = [1], value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: Vec<u32>,
    /// Triples of each run.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    count: u32,
    /// Statistical security in bits.
    #[arg(long, default_value_t = 80, value_parser = clap::value_parser!(u32).range(20..=127))]
    security: u32,
    /// log2 of the degree N, which may be insecure then [default: the smallest that is secure].
    #[arg(long, value_parser = clap::value_parser!(u32).range(10..=17))]
    log_n: Option<u32>,
    /// A directory for the files of runs, each of which is removed after it.
    #[arg(long, value_name = "DIR", default_value = "triples-bench")]
    out: PathBuf,
}

/// One run.
#[derive(Serialize)]
struct Run {
    side: u32,
    parties: u32,
    threads: u32,
    count: u32,
    /// All that a party does once: keys of a dealer, the session.
    once_s: f64,
    /// All other phases of the slowest party.
    seconds: f64,
    /// Sent by one party.
    bytes_sent: u64,
    rounds: u64,
    /// The largest of any party.
    peak_bytes: u64,
    log_n: Value,
    log_q: Value,
    mask_bits: Value,
    security_bits: Value,
    phases: Value,
}

#[derive(Serialize)]
struct Growth {
    statistical_security: u32,
    runs: Vec<Run>,
}

/// Phases that do not grow with the triples.
const ONCE: [&str; 4] = ["plan", "keys", "session", "mac_key"];

impl TriplesBench {
    pub(in crate::commands) fn run(&self) -> Result<Report, Error> {
        let mut runs = Vec::new();
        for &parties in &self.parties {
            for &threads in &self.threads {
                for &side in &self.sides {
                    let run = self.one(side, parties, threads)?;
                    say(&format!(
                        "{side} x {side} x {side}, {parties} parties, {threads} thread(s): {:.1} s after {:.1} s, {:.1} MB \
                         sent, {:.2} GB\n",
                        run.seconds,
                        run.once_s,
                        run.bytes_sent as f64 / 1e6,
                        run.peak_bytes as f64 / 1e9
                    ));
                    runs.push(run);
                }
            }
        }
        Report::new(&Growth { statistical_security: self.security, runs })
    }

    fn one(&self, side: u32, parties: u32, threads: u32) -> Result<Run, Error> {
        let out = self.out.join(format!("{side}-{parties}-{threads}"));
        let wanted = Wanted {
            parties: parties as usize,
            shapes: vec![format!("{side}x{side}x{side}")],
            count: self.count as usize,
            make: Vec::new(),
            spread: Spread::default(),
            mac_keys: None,
            security: self.security,
            prime: None,
            decryptions: 20,
            log_n: self.log_n,
            insecure: self.log_n.is_some(),
            keys: Origin::Dealer,
            window: None,
            most_bytes: None,
        };
        let (format, timeout) = (Format::MpSpdz, Duration::from_secs(3600));
        let children = Children::default();
        let local = Local { wanted, out: out.clone(), threads: threads as usize, format, timeout, progress: false };
        let (report, _) = local.run(&children)?;
        std::fs::remove_dir_all(&out).map_err(|source| crate::triples::io(&out, source))?;
        Ok(self.row([side, parties, threads], &report))
    }

    fn row(&self, [side, parties, threads]: [u32; 3], report: &Map<String, Value>) -> Run {
        let phases = report["phases"].as_array().cloned().unwrap_or_default();
        let is_once = |phase: &Value| phase["name"].as_str().is_some_and(|name| ONCE.contains(&name));
        let sum = |key: &str, once: bool| {
            let chosen = phases.iter().filter(|phase| is_once(phase) == once);
            chosen.filter_map(|phase| phase[key].as_f64()).sum::<f64>()
        };
        let all = |key: &str| (sum(key, true) + sum(key, false)) as u64;
        let largest = phases.iter().filter_map(|phase| phase["peak_bytes"].as_u64()).max();
        let named = |key: &str| report.get(key).cloned().unwrap_or_default();
        Run {
            side,
            parties,
            threads,
            count: self.count,
            once_s: sum("seconds", true),
            seconds: sum("seconds", false),
            bytes_sent: all("bytes_sent"),
            rounds: all("rounds"),
            peak_bytes: largest.unwrap_or(0),
            log_n: named("log_n"),
            log_q: named("log_q"),
            mask_bits: named("mask_bits"),
            security_bits: named("security_bits"),
            phases: named("phases"),
        }
    }
}
