//! The built command: standard output, standard error and exit codes as scripts see them.

use serde_json::Value;
use std::process::{Command, Output};

fn synchromesh(arguments: &[&str], isa: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_synchromesh"));
    command.args(arguments).env_remove("SYNCHROMESH_ISA");
    // No machine profile of whoever runs the tests.
    command.env("XDG_DATA_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-profile"));
    if let Some(isa) = isa {
        command.env("SYNCHROMESH_ISA", isa);
    }
    command.output().unwrap()
}

fn object(output: &Output) -> Value {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    assert_eq!(text.trim_end().matches('\n').count(), 0, "{text}");
    serde_json::from_str(text).unwrap()
}

#[test]
fn info_has_the_keys_scripts_rely_on() {
    let output = synchromesh(&["info", "--json"], Some("scalar"));
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
    let info = object(&output);
    for key in ["version", "isa", "isas", "threads", "devices", "why_none", "security_table"] {
        assert!(info.get(key).is_some(), "{key}");
    }
    assert_eq!(info["isa"], "scalar");
    let row = &info["security_table"]["max_log_qp"][4];
    assert_eq!((&row["log_n"], &row["security_128"]), (&Value::from(14), &Value::from(430)));
}

#[test]
fn info_for_people_is_lines() {
    let output = synchromesh(&["info"], None);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("version"), "{text}");
    assert!(text.contains("devices         none\n") && text.contains("security table"), "{text}");
}

#[test]
fn errors_are_one_object_and_exit_code_2() {
    for (arguments, isa, kind) in [
        (&["info", "--json"][..], Some("mmx"), "isa"),
        (&["--json", "no-such-command"][..], None, "usage"),
        (&["info", "--json", "--no-such-flag"][..], None, "usage"),
    ] {
        let output = synchromesh(arguments, isa);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = &object(&output)["error"];
        assert_eq!(error["kind"], kind);
        assert!(!error["message"].as_str().unwrap().is_empty() && !error["remedy"].as_str().unwrap().is_empty());
    }
    let output = synchromesh(&["no-such-command"], None);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(!output.stderr.is_empty());
}

#[test]
fn benches_have_the_keys_scripts_rely_on() {
    let switch = ["bench", "key-switch", "--log-n", "11", "--log-q", "100", "--omega", "2", "--width", "25", "--json"];
    let scheme = ["bench", "scheme", "--scheme", "ckks", "--log-n", "11", "--depth", "2", "--op", "mul", "--json"];
    let bootstrap = ["bench", "bootstrap", "--log-n", "10", "--levels", "2", "--precision", "10", "--iterations", "1"];
    for (arguments, keys) in [
        (&["bench", "ntt", "--log-n", "11", "--bits", "50", "--json"][..], "log_n bits isa forward_ns inverse_ns"),
        (
            &switch,
            "method log_n q_bits p_bits log_qp security_bits omega omega2 digit_primes aux_primes limbs isa device \
             median_ms predicted_ms key_bytes counts",
        ),
        (&scheme, "scheme op variant log_n log_q security_bits median_ms"),
        (
            &[&bootstrap[..], &["--insecure", "--json"]].concat(),
            "log_n slots log_qp security_bits usable_levels usable_bits certified_bits measured_bits mean_bits keys \
             key_bytes prepared_bytes vector_bytes peak_bytes keys_s vectors_s stages seconds bootstrap",
        ),
        (
            &["bench", "bootstrap", "--scheme", "bfv", "--log-n", "10", "--iterations", "1", "--insecure", "--json"],
            "scheme log_n t products bootstrap forecast before_bits after_bits passes key_bytes peak_bytes keys_s \
             vectors_s pass_s seconds",
        ),
        (
            &["bench", "circuit", "--scheme", "bgv", "--circuit", "product", "--k", "1", "--json"],
            "scheme circuit k log_n log_q security_bits noise_budget median_ms",
        ),
    ] {
        let output = synchromesh(arguments, None);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let report = object(&output);
        keys.split_whitespace().for_each(|key| assert!(report.get(key).is_some(), "{key}"));
    }
    let counts = &object(&synchromesh(&switch, None))["counts"];
    for key in ["ntt", "mul", "convert_mac", "correction", "bytes"] {
        assert!(counts[key].as_u64().unwrap() > 0, "{key}");
    }
}

#[test]
fn the_stages_of_a_refresh_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("refresh.svg").display().to_string();
    let bench = ["bench", "bootstrap", "--log-n", "10", "--iterations", "1", "--insecure", "--json", "--plot", &plot];
    let output = synchromesh(&[&bench[..], &["--levels", "2", "--precision", "10"]].concat(), None);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let svg = std::fs::read_to_string(&plot).unwrap();
    for stage in ["SlotsToCoeffs, ", "ModRaise, ", "CoeffsToSlots, ", "EvalMod, "] {
        assert!(svg.contains(stage), "{stage}");
    }
    let refused = synchromesh(&[&bench[..], &["--scheme", "bgv"]].concat(), None);
    assert_eq!((refused.status.code(), &object(&refused)["error"]["kind"]), (Some(2), &"usage".into()));
}

#[test]
fn refreshes_are_asked_for_a_precision_that_security_may_leave_room_for() {
    let bench = ["bench", "bootstrap", "--log-n", "14", "--json"];
    for (more, bits) in [(&[][..], 8), (&["--precision", "15"], 15)] {
        let refused = synchromesh(&[&bench[..], more].concat(), None);
        let message = object(&refused)["error"]["message"].to_string();
        assert!(message.contains(&format!("N = 2^14 with {bits} bits of precision")), "{more:?}: {message}");
    }
}

#[test]
fn every_method_of_key_switching_is_measured() {
    let bench = ["bench", "key-switch", "--log-n", "10", "--log-q", "160", "--width", "40", "--json"];
    let run = |flags: &str| {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let output = synchromesh(&[&bench[..], &flags].concat(), None);
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", String::from_utf8_lossy(&output.stdout));
        object(&output)
    };
    // Four primes of 40 bits. Numbers: omega, omega2, primes of P, of E, key rows times limbs, transforms.
    let row = 16 * 1024;
    for (flags, method, [omega, omega2, p, aux, words, ntt]) in [
        ("--method bv", "bv", [4, 0, 1, 0, 4 * 5, 6 * 5]),
        ("--method ghs", "ghs", [1, 0, 4, 0, 8, 3 * 8]),
        ("--method hybrid --omega 2", "hybrid", [2, 0, 2, 0, 2 * 6, 4 * 6]),
        ("--method hybrid --omega 2 --gadget coalesced", "hybrid", [2, 0, 2, 0, 2 * 6, 4 * 6]),
        ("--method level-aware --digit-primes 2", "level-aware", [2, 0, 2, 0, 2 * 6, 4 * 6]),
        // E > N * 2 * 2^80 * 2^80: 171 bits and rounding.
        ("--method double --omega 2 --omega2 3", "double", [2, 3, 2, 5, 2 * 3 * 5, (2 + 6) * 5]),
        ("--omega2 3 --omega 2 --gadget coalesced", "double", [2, 3, 2, 5, 2 * 3 * 5, (2 + 6) * 5]),
        // N * 4 * 2^40 * 2^40: 92 bits.
        ("--method linear", "linear", [4, 5, 1, 3, 4 * 5 * 3, (4 + 10) * 3]),
        ("--method linear --alpha 2", "linear", [4, 6, 2, 3, 4 * 6 * 3, (4 + 12) * 3]),
        ("--method level-aware --digit-primes 2 --omega2 6", "double", [2, 6, 2, 4, 2 * 6 * 4, (2 + 12) * 4]),
    ] {
        let report = run(&format!("{flags} --input coeff --output coeff"));
        assert_eq!(report["method"], method, "{flags}");
        let shape = ["omega", "omega2", "aux_primes"].map(|key| report[key].as_u64().unwrap_or(0));
        assert_eq!(shape, [omega, omega2, aux], "{flags}");
        let primes = |key: &str| report[key].as_array().unwrap().len() as u64;
        assert_eq!((primes("q_bits"), primes("p_bits")), (4, p), "{flags}");
        assert_eq!(report["key_bytes"], row * words, "{flags}");
        assert_eq!(report["counts"]["ntt"], ntt, "{flags}");
        assert_eq!(report["log_qp"], 40 * (4 + p), "{flags}");
        assert!(report["median_ms"].as_f64().unwrap() > 0.0);
    }
    assert!(run("--method double")["omega2"].as_u64().unwrap() > 0);
    assert!(run("--method double --omega2 4")["omega"].as_u64().unwrap() > 0);
    assert_eq!(run("--method auto --insecure --limbs 3")["limbs"], 3);
    for method in
        ["bv", "ghs", "hybrid", "hybrid --gadget coalesced", "double", "linear", "level-aware", "auto --insecure"]
    {
        let report = run(&format!("--method {method} --swap 2,3"));
        // Two of the four primes of 40 bits leave, three of 27 bits come in.
        assert_eq!(report["target_bits"], serde_json::json!([40, 40, 27, 27, 27]), "{method}");
        assert_eq!((&report["limbs"], &report["swap"]["kappa"]), (&4.into(), &3.into()), "{method}");
        let bytes = ["trimmed_wire_bytes", "wire_bytes", "plain_bytes"].map(|key| report[key].as_u64().unwrap());
        assert!(bytes[0] <= bytes[1] && 2 * bytes[1] < bytes[2], "{method}: {bytes:?}");
    }
    assert_eq!(run("--method double --gadget coalesced --limbs 2")["limbs"], 2);
}

#[test]
fn bfv_products_are_measured_in_every_way() {
    let bench = ["bench", "scheme", "--scheme", "bfv", "--log-n", "10", "--depth", "3", "--limbs", "3", "--json"];
    for (way, op) in [("original", "mul"), ("leveled", "mul"), ("descending", "mul-norelin"), ("lazy", "mul-norelin")] {
        let output = synchromesh(&[&bench[..], &["--op", op, "--variant", way]].concat(), None);
        assert_eq!(output.status.code(), Some(0), "{way}");
        let report = object(&output);
        assert_eq!((&report["variant"], &report["limbs"]), (&way.into(), &3.into()));
        assert!(report["median_ms"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn what_a_bench_does_not_offer_is_named() {
    let switch = ["bench", "key-switch", "--log-n", "11", "--log-q", "100", "--json"];
    let scheme = ["bench", "scheme", "--log-n", "11", "--depth", "1", "--op", "add", "--json"];
    for (command, flags, kind) in [
        (&switch, &["--method", "ghs", "--omega", "2"][..], "usage"),
        (&switch, &["--method", "hybrid", "--omega2", "2"], "usage"),
        (&switch, &["--method", "level-aware", "--gadget", "idempotent"], "usage"),
        (&switch, &["--method", "auto", "--gadget", "coalesced"], "usage"),
        (&switch, &["--method", "linear", "--omega", "2"], "usage"),
        (&switch, &["--method", "linear", "--alpha", "2", "--log-p", "40"], "usage"),
        (&switch, &["--alpha", "2"], "usage"),
        (&switch, &["--method", "double", "--log-p", "40", "--omega", "1", "--width", "25"], "request"),
        (&switch, &["--method", "double", "--omega", "2", "--omega2", "99"], "switch_plan"),
        (&switch, &["--method", "level-aware", "--digit-primes", "9"], "request"),
        (&switch, &["--swap", "2,2"], "usage"),
        (&switch, &["--swap", "2"], "usage"),
        (&switch, &["--swap", "5,6"], "request"),
        (&switch, &["--omega", "40"], "switch_plan"),
        (&switch, &["--method", "auto"], "unavailable"),
        (&switch, &["--method", "bv", "--omega", "2"], "usage"),
        (&switch, &["--omega", "2", "--digit-primes", "1"], "usage"),
        (&switch, &["--digit-primes", "9"], "request"),
        (&switch, &["--batch", "0"], "usage"),
        (&switch, &["--profile", "/no/such/profile.json"], "file_not_found"),
        (&switch, &["--threads", "0"], "threads"),
        (&switch, &["--threads", "1025"], "threads"),
        (&switch, &["--threads", "two"], "usage"),
        (&switch, &["--width", "19"], "usage"),
        (&switch, &["--limbs", "9"], "request"),
        (&switch, &["--t", "17"], "usage"),
        (&switch, &["--scheme", "bgv", "--t", "0"], "plain_modulus_too_small"),
    ] {
        let output = synchromesh(&[&command[..], flags].concat(), None);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert_eq!(object(&output)["error"]["kind"], kind, "{flags:?}");
    }
    for (flags, kind) in [
        (&["--scheme", "bfv", "--variant", "packed"][..], "unavailable"),
        (&["--scheme", "bfv", "--variant", "lazy"], "request"),
        (&["--scheme", "ckks", "--variant", "new"], "unavailable"),
        (&["--scheme", "ckks", "--t", "17"], "request"),
        (&["--scheme", "bgv", "--limbs", "3"], "request"),
        (&["--scheme", "bgv", "--t", "x"], ""),
    ] {
        let output = synchromesh(&[&scheme[..], flags].concat(), None);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        let found = object(&output)["error"]["kind"].clone();
        assert!(kind.is_empty() || found == kind, "{flags:?}: {found}");
    }
}

#[test]
fn help_and_version_succeed() {
    for flag in ["--help", "--version"] {
        let output = synchromesh(&[flag], None);
        assert_eq!(output.status.code(), Some(0));
        assert!(!output.stdout.is_empty());
    }
}
