//! The demonstration over the built command: what it finds, and that every instruction set and number of threads makes the
//! same bits.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use synchromesh_ring::isa::Isa;

fn demo(directory: &Path, isa: Isa, threads: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_synchromesh"));
    command.args(["demo", "--test-seed", "1", "--plot", "plots/demo.svg", "--json", "--threads", threads]);
    let output = command.current_dir(directory).env("SYNCHROMESH_ISA", isa.name()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_instruction_set_and_number_of_threads_finds_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let on_two = Isa::available().into_iter().map(|isa| (isa, "2"));
    let on_best = ["1", "7"].map(|threads| (Isa::best(), threads));
    let reports: Vec<Value> =
        on_two.chain(on_best).map(|(isa, threads)| demo(directory.path(), isa, threads)).collect();
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
