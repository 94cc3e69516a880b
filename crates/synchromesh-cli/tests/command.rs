//! The built command: standard output, standard error and exit codes as scripts see them.

use serde_json::Value;
use std::process::{Command, Output};

fn synchromesh(arguments: &[&str], isa: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_synchromesh"));
    command.args(arguments).env_remove("SYNCHROMESH_ISA");
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
    for (arguments, keys) in [
        (&["bench", "ntt", "--log-n", "11", "--bits", "50", "--json"][..], "log_n bits isa forward_ns inverse_ns"),
        (
            &switch,
            "method log_n q_bits p_bits log_qp security_bits omega omega2 digit_primes aux_primes limbs isa device \
             median_ms predicted_ms key_bytes counts",
        ),
        (&scheme, "scheme op variant log_n log_q security_bits median_ms"),
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
fn what_a_bench_does_not_offer_is_named() {
    let switch = ["bench", "key-switch", "--log-n", "11", "--log-q", "100", "--json"];
    let scheme = ["bench", "scheme", "--log-n", "11", "--depth", "1", "--op", "add", "--json"];
    for (command, flags, kind) in [
        (&switch, &["--method", "double"][..], "unavailable"),
        (&switch, &["--method", "ghs", "--omega", "2"], "usage"),
        (&switch, &["--gadget", "coalesced"], "unavailable"),
        (&switch, &["--swap", "1,2"], "unavailable"),
        (&switch, &["--omega2", "2"], "unavailable"),
        (&switch, &["--omega", "40"], "params"),
        (&switch, &["--batch", "2"], "unavailable"),
        (&switch, &["--device", "cuda"], "unavailable"),
        (&switch, &["--threads", "2"], "unavailable"),
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
        (&["--scheme", "bfv", "--variant", "behz"][..], "unavailable"),
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
