//! What other programs say: NVIDIA's sanitizer about this one, and `synchromesh` about digests and times.

use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::deadline::output;
use crate::{Request, folder};

/// Key-switching methods and their flags.
const METHODS: [(&str, &[&str]); 6] = [
    ("hybrid, 1 prime a digit", &["--method", "hybrid", "--digit-primes", "1"]),
    ("hybrid, 8 primes a digit", &["--method", "hybrid", "--digit-primes", "8"]),
    ("double", &["--method", "double", "--digit-primes", "1", "--omega2", "5"]),
    ("linear", &["--method", "linear"]),
    ("level-aware", &["--method", "level-aware", "--omega", "4"]),
    ("ghs", &["--method", "ghs"]),
];

/// Runs this program's checks under the sanitizer's tools; what each said, and whether all were content.
pub(crate) fn sanitizer(request: &Request) -> (Value, bool) {
    let absent = |why: &str| (json!({"present": false, "why": why}), true);
    if request.device != "cuda" {
        return absent("it is for cards");
    }
    let Ok(own) = std::env::current_exe() else { return absent("this program does not know its path") };
    let (mut tools, mut clean) = (Vec::new(), true);
    for tool in ["memcheck", "racecheck", "initcheck", "synccheck"] {
        let mut command = Command::new("compute-sanitizer");
        command.args(["--error-exitcode", "99", "--tool", tool]).arg(&own).args(["--checks-only", "--device", "cuda"]);
        let output = match output(&mut command, request.until) {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                // One that all time was too short for has said nothing.
                clean &= request.until.is_some_and(|until| until <= Instant::now());
                tools.push(json!({"tool": tool, "exit": Value::Null, "says": [error.to_string()]}));
                continue;
            }
            Err(_) => return absent("compute-sanitizer is not on the path"),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        // initcheck reports memory that the pool hands out and nobody reads as well: it informs and does not judge.
        clean &= tool == "initcheck" || output.status.success();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("=========")).collect();
        let last = &lines[lines.len().saturating_sub(20)..];
        tools.push(json!({"tool": tool, "exit": output.status.code(), "says": last}));
    }
    (json!({"present": true, "tools": tools}), clean)
}

/// What the `synchromesh` beside this program prints as JSON, or why not.
fn synchromesh(request: &Request, arguments: &[&str]) -> Value {
    let folder = folder();
    let mut command = Command::new(folder.join("synchromesh"));
    command.args(arguments).arg("--json").current_dir(&folder);
    eprintln!("synchromesh {}", arguments.join(" "));
    match output(&mut command, request.until) {
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            json!({"error": {"kind": "timeout", "message": error.to_string()}})
        }
        Err(error) => json!({"error": {"kind": "missing", "message": error.to_string()}}),
        Ok(output) => serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            json!({"error": {"kind": "output", "message": message}})
        }),
    }
}

/// Digests of keys and ciphertexts of the demo here and on the CPU; equal where both could be had.
pub(crate) fn digests(request: &Request) -> (Value, bool) {
    let demo = |device| synchromesh(request, &["demo", "--quick", "--test-seed", "1", "--device", device]);
    let (cpu, here) = (demo("cpu"), demo(request.device));
    let equal = cpu["digests"].is_object() && cpu["digests"] == here["digests"];
    let error = [&cpu, &here].into_iter().find_map(|report| report.get("error").cloned());
    (json!({"equal": equal, "seconds_cpu": cpu["seconds"], "seconds": here["seconds"], "error": error}), equal)
}

/// How much is measured.
struct Scale {
    /// log2 of the degree, and primes of 40 bits.
    switch: [&'static str; 2],
    /// log2 of the degree, and levels: of CKKS.
    circuit: [&'static str; 2],
    /// Blocks, log2 of the degree, bits of the plaintext modulus: of products of matrices.
    matrices: [&'static str; 3],
    batches: &'static [&'static str],
    /// The degree and levels of refreshes of CKKS.
    refresh: &'static [&'static str],
    /// What degrees every operation is measured at.
    operations: &'static [&'static str],
    reproduce: &'static [&'static str],
}

/// Degrees that a card is for.
const WHOLE: Scale = Scale {
    switch: ["16", "1280"],
    circuit: ["16", "24"],
    matrices: ["128", "15", "128"],
    batches: &["1", "8", "64"],
    refresh: &["--log-n", "16"],
    operations: &[],
    reproduce: &[],
};
/// Degrees that an emulator can do.
const QUICK: Scale = Scale {
    switch: ["11", "320"],
    circuit: ["11", "4"],
    matrices: ["4", "10", "20"],
    batches: &["1", "8"],
    refresh: &["--log-n", "10", "--levels", "1", "--precision", "12", "--baby-steps", "4", "--insecure"],
    operations: &["--log-n", "10"],
    reproduce: &["--quick"],
};

/// Times: key switches by method, and unfused in two-pass transforms, which fused stages are measured against; CKKS products,
/// rotations and refreshes, products of matrices, every operation as a machine profile, and Table VIII of linear key switching.
pub(crate) fn bench(request: &Request) -> Value {
    let scale = if request.device == "cuda" && !request.quick { WHOLE } else { QUICK };
    let on_device = ["--device", request.device];
    let (mut switches, mut ckks) = (Vec::new(), Vec::new());
    let [log_n, log_q] = scale.switch;
    for (name, flags) in METHODS {
        for batch in scale.batches {
            let shape = ["bench", "key-switch", "--log-n", log_n, "--log-q", log_q, "--width", "40", "--batch", batch];
            let report = synchromesh(request, &[&shape[..], flags, &on_device].concat());
            let unfused = synchromesh(request, &[&shape[..], flags, &on_device, &["--unfused"]].concat());
            let faster = unfused["device_ms"].as_f64().zip(report["device_ms"].as_f64()).map(|(a, b)| a / b);
            switches.push(json!({
                "method": name, "batch": batch, "report": report, "unfused": unfused, "unfused_over_fused": faster,
            }));
        }
    }
    let [log_n, depth] = scale.circuit;
    for op in ["mul-rescale", "rotate"] {
        for batch in scale.batches {
            let what = ["bench", "scheme", "--scheme", "ckks", "--log-n", log_n, "--depth", depth, "--op", op];
            let report = synchromesh(request, &[&what[..], &["--batch", batch], &on_device].concat());
            ckks.push(json!({"op": op, "batch": batch, "report": report}));
        }
    }
    let [d, log_n, t_bits] = scale.matrices;
    let product = ["bench", "matmul", "--check", "--d", d, "--log-n", log_n, "--t-bits", t_bits, "--device"];
    let matrices = ["cpu", request.device].map(|device| synchromesh(request, &[&product[..], &[device]].concat()));
    let refresh = synchromesh(request, &[&["bench", "bootstrap"][..], scale.refresh, &on_device].concat());
    let tune = ["tune", "--quick", "--out", "profile.json"];
    let profile = synchromesh(request, &[&tune[..], scale.operations, &on_device].concat());
    let profile = json!({"report": profile, "entries": entries()});
    let reproduce =
        |item, flags: &[&str]| synchromesh(request, &[&["reproduce", item][..], flags, &on_device].concat());
    json!({
        "clock": "graph replays: median_ms each waited for, device_ms by CUDA events",
        "key_switches": switches, "ckks": ckks, "matmul": matrices, "refresh": refresh, "operations": profile,
        "linear_table8": reproduce("linear-table8", scale.reproduce),
        "linear_claims": reproduce("linear-claims", &["--quick"]),
    })
}

/// The profile's entries, from its file.
fn entries() -> Value {
    let text = std::fs::read_to_string(folder().join("profile.json")).unwrap_or_default();
    serde_json::from_str::<Value>(&text).map_or(Value::Null, |profile| profile["entries"].clone())
}
