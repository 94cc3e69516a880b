//! The command on other devices than the CPU: what is listed, what is refused, and that the emulated one makes the same
//! bits.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn run(directory: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    finish(&mut Command::new(env!("CARGO_BIN_EXE_synchromesh")), directory, arguments)
}

/// The same with a driver that has no card, told what it is to be, in the place of NVIDIA's.
#[cfg(target_os = "linux")]
fn run_on_driver(words: &str, directory: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_synchromesh"));
    command.env("LD_LIBRARY_PATH", synchromesh_cuda::Emulated::stand_in_driver().unwrap());
    finish(command.env("SYNCHROMESH_STAND_IN", words), directory, arguments)
}

fn finish(command: &mut Command, directory: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
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
fn every_command_with_a_device_refuses_a_card_that_is_not_there_and_auto_says_why_it_took_the_cpu() {
    let directory = tempfile::tempdir().unwrap();
    let (_, info) = run(directory.path(), &["info"]);
    if info["why_none"].is_null() {
        return;
    }
    std::fs::write(directory.path().join("x.csv"), "1,2\n3,4\n").unwrap();
    let switch = ["bench", "key-switch", "--log-n", "10", "--log-q", "60", "--width", "30"];
    let commands: [&[&str]; 5] = [
        &["demo", "--quick"],
        &["matmul", "x.csv", "x.csv"],
        &switch,
        &["tune", "--quick"],
        &["reproduce", "linear-table8", "--quick"],
    ];
    for command in commands {
        let (code, report) = run(directory.path(), &[command, &["--device", "cuda"]].concat());
        assert_eq!(code, Some(2), "{command:?}");
        assert_eq!(report["error"]["message"], info["why_none"], "{command:?}");
        assert!(report["error"]["remedy"].as_str().is_some_and(|remedy| remedy.contains("CPU")), "{report}");
    }
    let (code, report) = run(directory.path(), &["reproduce", "perspective-table5", "--device", "emulated"]);
    assert_eq!((code, report["error"]["kind"].as_str()), (Some(2), Some("unavailable")));
    let (code, report) = run(directory.path(), &[&switch[..], &["--device", "auto"]].concat());
    assert_eq!((code, &report["why_not_cuda"]), (Some(0), &info["why_none"]));
}

#[cfg(target_os = "linux")]
#[test]
fn old_drivers_and_unsupported_cards_are_told_apart_and_auto_says_which() {
    let directory = tempfile::tempdir().unwrap();
    let run = |words: &str, arguments: &[&str]| run_on_driver(words, directory.path(), arguments);
    let switch = ["bench", "key-switch", "--log-n", "10", "--log-q", "60", "--width", "30", "--device"];
    for (words, kind) in [
        ("version=11080", "old_driver"),
        ("devices=0", "no_device"),
        ("capability0=75", "unsupported_device"),
        ("memory=1000", "memory_budget"),
        ("launches=5", "device_lost"),
    ] {
        let (code, report) = run(words, &[&switch[..], &["cuda"]].concat());
        assert_eq!((code, report["error"]["kind"].as_str()), (Some(2), Some(kind)), "{report}");
        assert!(report["error"]["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{report}");
    }
    let (_, info) = run("version=11080", &["info"]);
    assert!(info["why_none"].as_str().is_some_and(|why| why.contains("11.8") && why.contains("12.0")), "{info}");
    let (code, report) = run("version=11080", &[&switch[..], &["auto"]].concat());
    assert_eq!((code, &report["why_not_cuda"]), (Some(0), &info["why_none"]));
}

#[cfg(target_os = "linux")]
#[test]
fn a_card_is_listed_and_auto_takes_it() {
    let directory = tempfile::tempdir().unwrap();
    // The first one is too old.
    let run = |arguments: &[&str]| run_on_driver("devices=2 capability0=75", directory.path(), arguments);
    let (_, info) = run(&["info"]);
    let card = &info["devices"][0];
    assert_eq!(
        (&card["name"], &card["kind"], &card["model"]),
        (&"cuda:1".into(), &"cuda".into(), &"stand-in 1".into())
    );
    assert_eq!((info["devices"].as_array().unwrap().len(), info["why_none"].is_null()), (1, true));
    let (code, report) =
        run(&["bench", "key-switch", "--log-n", "10", "--log-q", "60", "--width", "30", "--batch", "2"]);
    assert_eq!((code, &report["device"], report["launches"].is_u64()), (Some(0), &"cuda:1".into(), true), "{report}");
    let ckks =
        ["bench", "scheme", "--scheme", "ckks", "--log-n", "10", "--depth", "1", "--op", "mul-rescale", "--batch", "2"];
    let (code, report) = run(&ckks);
    assert_eq!((code, &report["device"], report["launches"].is_u64()), (Some(0), &"cuda:1".into(), true), "{report}");
}

#[test]
fn refreshes_of_every_scheme_run_on_the_emulated_device() {
    let directory = tempfile::tempdir().unwrap();
    let bench = ["bench", "bootstrap", "--log-n", "10", "--iterations", "1", "--insecure", "--device", "emulated"];
    for own in [&["--levels", "1", "--precision", "10"][..], &["--scheme", "bfv"], &["--scheme", "bgv"]] {
        let (code, report) = run(directory.path(), &[&bench[..], own].concat());
        assert_eq!((code, report["device"].as_str()), (Some(0), Some("emulated")), "{own:?}: {report}");
    }
}

#[test]
fn batches_are_switched_in_as_many_launches_as_one_ciphertext() {
    let directory = tempfile::tempdir().unwrap();
    let switch = ["bench", "key-switch", "--log-n", "10", "--log-q", "150", "--width", "50", "--device", "emulated"];
    let launches = |batch| {
        let (code, report) = run(directory.path(), &[&switch[..], &["--batch", batch]].concat());
        assert_eq!((code, report["device"].as_str()), (Some(0), Some("emulated")), "{report}");
        report["launches"].as_u64().unwrap()
    };
    assert_eq!(launches("1"), launches("3"));
    let unfused = |device| run(directory.path(), &[&switch[..9], &[device, "--unfused"]].concat());
    let (code, report) = unfused("emulated");
    assert!(code == Some(0) && report["launches"].as_u64().is_some_and(|count| count > launches("1")), "{report}");
    let (code, report) = unfused("cpu");
    assert_eq!((code, report["error"]["kind"].as_str()), (Some(2), Some("unavailable")), "{report}");
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
