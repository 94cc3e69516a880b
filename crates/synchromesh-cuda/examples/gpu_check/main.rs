//! Judges and measures a device on a machine that has nothing but its driver: `gpu-check [--device cuda|emulated] [--quick]
//! [--checks-only | --only NAME] [--minutes M]`.
//!
//! Runs every check in this process, then the `synchromesh` beside it for digests and times, then itself under NVIDIA's
//! sanitizer where that is installed; writes report.json beside itself after each of these and prints it at the end. Exit
//! code 0, 1 where something is wrong with the device, 2 where there is none. Packed by `cargo xtask gpu-check`.

mod checks;
mod commands;
mod deadline;
#[path = "../../tests/it/runs/mod.rs"]
mod runs;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use synchromesh_cuda::{Cuda, Device, DeviceError, Driver, Emulated, Order, Properties};
use synchromesh_ring::Ring;

/// What was asked for.
pub(crate) struct Request {
    /// The word for `--device`.
    device: &'static str,
    /// Only the checks, briefly: for a run under the sanitizer.
    checks_only: bool,
    /// Small degrees and few repeats.
    quick: bool,
    /// Checks whose names hold this are run.
    only: String,
    /// When programs that still run are ended and no other is begun.
    until: Option<Instant>,
}

impl Request {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut request = Self { device: "cuda", checks_only: false, quick: false, only: String::new(), until: None };
        let mut words = arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match (word, word == "--device") {
                ("--quick", _) => request.quick = true,
                ("--checks-only", _) => request.checks_only = true,
                ("--only", _) => match words.next() {
                    Some(name) => (request.only, request.checks_only) = (name.to_owned(), true),
                    None => return Err("--only without a value: a part of a check's name".to_owned()),
                },
                ("--minutes", _) => match words.next().map(|word| (word, word.parse::<u32>())) {
                    Some((_, Ok(minutes @ 1..=10_000))) => {
                        request.until = Some(Instant::now() + Duration::from_secs(60 * u64::from(minutes)));
                    }
                    other => {
                        let given = other.map_or("without a value", |(word, _)| word);
                        return Err(format!("--minutes {given}: whole minutes, 1 to 10000"));
                    }
                },
                (_, true) => match words.next() {
                    Some("cuda") => request.device = "cuda",
                    Some("emulated") => request.device = "emulated",
                    other => return Err(format!("--device {}: cuda or emulated", other.unwrap_or("without a value"))),
                },
                _ => {
                    return Err(format!(
                        "unknown argument {word}; [--device cuda|emulated] [--quick] [--checks-only] [--only NAME] [--minutes M]"
                    ));
                }
            }
        }
        Ok(request)
    }
}

impl Request {
    /// log2 of the degree, and primes, of what is measured.
    fn shape(&self) -> [usize; 2] {
        if self.device == "cuda" && !self.quick { [16, 32] } else { [11, 8] }
    }
}

/// Where this program is.
fn folder() -> PathBuf {
    let own = std::env::current_exe().ok();
    own.and_then(|path| path.parent().map(PathBuf::from)).unwrap_or_default()
}

fn describe(properties: &Properties) -> Value {
    let Properties { name, model, memory_bytes, shared_bytes, cache_bytes, cluster_blocks, fast_doubles, .. } =
        properties;
    json!({
        "name": name, "model": model, "memory_bytes": memory_bytes, "shared_bytes": shared_bytes,
        "cache_bytes": cache_bytes, "cluster_blocks": cluster_blocks, "fast_doubles": fast_doubles,
    })
}

/// Checks a device, and measures it unless only checks are wanted; the report, and whether all is well.
fn judge<D: Device>(request: &Request, device: Value, open: impl Fn() -> Result<D, DeviceError>) -> (Value, bool) {
    let opened = |ring: &Arc<Ring>| {
        let device = open().unwrap_or_else(|error| panic!("the device cannot be opened again: {error}"));
        Cuda::new(Arc::clone(ring), device, None).unwrap_or_else(|error| panic!("{error}"))
    };
    let (checks, mut well) = checks::run(&opened, request);
    let mut report = json!({"device": device, "correct": well, "checks": checks});
    report["well"] = json!(well);
    if !request.checks_only {
        keep(&report);
        let (digests, equal) = commands::digests(request);
        well &= equal;
        report["digests"] = digests;
        report["kernels"] = checks::kernels(&opened, request);
        report["well"] = json!(well);
        keep(&report);
        report["bench"] = commands::bench(request);
        keep(&report);
        let (sanitizer, clean) = commands::sanitizer(request);
        well &= clean;
        report["sanitizer"] = sanitizer;
        report["well"] = json!(well);
    }
    (report, well)
}

fn run(request: &Request) -> Result<(Value, bool), DeviceError> {
    if request.device == "emulated" {
        let device = || Emulated::new(Order::Descending).with_fast_doubles().with_clusters();
        return Ok(judge(request, describe(device().properties()), || Ok(device())));
    }
    // The driver compiles the kernels when they are loaded: once.
    let card = Arc::new(Driver::first()?);
    let mut device = describe(card.properties());
    device["cards"] = json!(Driver::list()?.len());
    Ok(judge(request, device, || Ok(Arc::clone(&card))))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (report, code, kept) = match Request::parse(&arguments) {
        Err(message) => {
            (json!({"error": {"kind": "usage", "message": message, "remedy": "give other arguments"}}), 2, false)
        }
        Ok(request) => match run(&request) {
            Ok((report, well)) => (report, u8::from(!well), !request.checks_only),
            Err(error) => {
                let (kind, message, remedy) = (error.kind(), error.to_string(), error.remedy());
                (json!({"error": {"kind": kind, "message": message, "remedy": remedy}}), 2, !request.checks_only)
            }
        },
    };
    finish(&report, kept);
    ExitCode::from(code)
}

/// Prints a report, and writes it beside this program if it is to be kept.
pub(crate) fn finish(report: &Value, kept: bool) {
    if kept {
        keep(report);
    }
    println!("{report:#}");
}

/// Writes a report beside this program, in place of the one that is there.
fn keep(report: &Value) {
    let (path, new) = (folder().join("report.json"), folder().join("report.json.new"));
    if let Err(error) = std::fs::write(&new, format!("{report:#}\n")).and_then(|()| std::fs::rename(&new, path)) {
        eprintln!("report.json was not written: {error}");
    }
}
