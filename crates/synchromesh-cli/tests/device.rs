//! The command on other devices than the CPU: what is listed, what is refused, and that the emulated one makes the same
//! bits.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn run(directory: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_synchromesh"));
    let output = command.args(arguments).arg("--json").current_dir(directory).output().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))))
}

#[test]
fn cards_are_listed_or_there_is_a_reason_and_a_typed_refusal() {
    let directory = tempfile::tempdir().unwrap();
    let (code, info) = run(directory.path(), &["info"]);
    assert_eq!(code, Some(0));
    let cards = info["devices"].as_array().unwrap();
    assert_eq!(cards.is_empty(), info["why_none"].is_string(), "{info}");
    assert_eq!(info["emulator"], Value::Bool(true), "tests are built with the emulator");
    if cards.is_empty() {
        let (code, report) = run(directory.path(), &["demo", "--quick", "--device", "cuda"]);
        assert_eq!(code, Some(2));
        let kind = report["error"]["kind"].as_str().unwrap();
        let kinds = ["no_driver", "old_driver", "no_device", "unsupported_device", "device_lost", "unavailable"];
        assert!(kinds.contains(&kind), "{report}");
        assert_eq!(report["error"]["message"], info["why_none"]);
    }
}

#[test]
fn the_emulated_device_makes_the_bits_of_the_cpu() {
    let directory = tempfile::tempdir().unwrap();
    let demo = |device| run(directory.path(), &["demo", "--quick", "--test-seed", "1", "--device", device]);
    let ((code, cpu), (emulated_code, emulated)) = (demo("cpu"), demo("emulated"));
    assert_eq!((code, emulated_code), (Some(0), Some(0)));
    assert_eq!((cpu["device"].as_str(), emulated["device"].as_str()), (Some("cpu"), Some("emulated")));
    assert_eq!(cpu["digests"], emulated["digests"]);
}
