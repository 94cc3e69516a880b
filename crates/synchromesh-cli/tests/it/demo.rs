//! The demonstration over the built command: what it finds, and that every instruction set makes the same bits.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use synchromesh_ring::isa::Isa;

fn demo(directory: &Path, isa: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_synchromesh"));
    command.args(["demo", "--test-seed", "1", "--plot", "plots/demo.svg", "--json"]);
    let output = command.current_dir(directory).env("SYNCHROMESH_ISA", isa).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_instruction_set_finds_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let reports: Vec<Value> = Isa::available().into_iter().map(|isa| demo(directory.path(), isa.name())).collect();
    for report in &reports {
        assert_eq!(report["digests"], reports[0]["digests"]);
        assert_eq!(report["ckks"]["accuracy"], report["ckks"]["plain_accuracy"]);
        assert!(report["ckks"]["max_score_error"].as_f64().unwrap() < 1e-5);
        assert_eq!((&report["bgv"]["exact"], &report["bfv"]["exact"]), (&Value::Bool(true), &Value::Bool(true)));
        assert_eq!(report["bfv"]["malignant"], serde_json::json!([3, 14, 57, 138]));
        for scheme in ["ckks", "bgv", "bfv"] {
            assert!(report[scheme]["security_bits"].as_f64().unwrap() >= 128.0);
            for digest in ["secret_key", "public_key", "evaluation_keys", "encrypted", "computed"] {
                assert_eq!(report["digests"][scheme][digest].as_str().unwrap().len(), 64);
            }
        }
        assert!(report["seconds"].as_f64().unwrap() < 60.0);
        assert!(report["peak_bytes"].as_u64().unwrap() < 1 << 30);
    }
    let plot = std::fs::read_to_string(directory.path().join("plots/demo.svg")).unwrap();
    assert!(plot.starts_with("<svg") && plot.contains("BGV: covariance"));
}
