//! Machine profiles and reproduction through the built command.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use synchromesh_bench::device::Device;
use synchromesh_bench::tune::{Plan, measure};

fn run(arguments: &[&str]) -> (Option<i32>, Value) {
    run_in(concat!(env!("CARGO_TARGET_TMPDIR"), "/no-profile"), arguments)
}

/// With the profiles in a directory as those of this machine.
fn run_in(data: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_synchromesh"))
        .args(arguments)
        .arg("--json")
        .env_remove("SYNCHROMESH_ISA")
        .env("XDG_DATA_HOME", data)
        .output()
        .unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

fn ok(arguments: &[&str]) -> Value {
    let (code, value) = run(arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {value}");
    value
}

/// A profile of one small degree: coarse, but every operation is in it.
fn profile(directory: &Path) -> String {
    let path = directory.join("profile.json");
    let plan = Plan { log_n: vec![11], least: Duration::ZERO, rounds: 1, most_bytes: 2 << 20, ..Plan::quick() };
    let measured = measure(&plan, Device::Cpu, |_| {}).unwrap();
    synchromesh_cli::profile::store(&path, &measured, synchromesh_rlwe::file::Existing::Keep).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn times_are_those_of_the_threads_that_a_profile_was_measured_on() {
    let directory = tempfile::tempdir().unwrap();
    let one = synchromesh_cli::profile::load(Some(Path::new(&profile(directory.path()))), 1).unwrap().unwrap();
    let isa = ok(&["info"])["isa"].as_str().unwrap().to_owned();
    for (name, threads) in [(format!("profile-{isa}.json"), 1), (format!("profile-{isa}-2-threads.json"), 2)] {
        let path = directory.path().join("synchromesh").join(name);
        let measured = one.clone().on_threads(threads);
        synchromesh_cli::profile::store(&path, &measured, synchromesh_rlwe::file::Existing::Keep).unwrap();
    }
    for (asked, predicted) in [("1", 1), ("2", 2), ("3", 1)] {
        let plan = ["plan", "--scheme", "bgv", "--depth", "1", "--t", "65537", "--threads", asked];
        let (code, plan) = run_in(directory.path().to_str().unwrap(), &plan);
        assert_eq!((code, &plan["predicted_threads"]), (Some(0), &Value::from(predicted)), "{plan}");
        assert_eq!(plan["explain"].to_string().contains("times: on 1 of 3 threads"), asked == "3", "{plan}");
    }
    let (code, refused) = run(&["plan", "--scheme", "bgv", "--depth", "1", "--threads", "0"]);
    assert_eq!((code, &refused["error"]["kind"]), (Some(2), &Value::from("threads")));
}

#[test]
fn a_profile_predicts_benches_and_plans_and_chooses_digits() {
    let directory = tempfile::tempdir().unwrap();
    let profile = profile(directory.path());
    let switch = ["bench", "key-switch", "--log-n", "12", "--log-q", "70", "--width", "35"];
    assert_eq!(ok(&switch)["predicted_ms"], Value::Null);
    let report = ok(&[&switch[..], &["--profile", &profile]].concat());
    assert!(report["predicted_ms"].as_f64().unwrap() > 0.0, "{report}");
    // 70 bits leave room for one digit at N = 2^12 only with P of 35 bits: two digits.
    assert_eq!((&report["method"], &report["omega"], &report["batch"]), (&"bv".into(), &2.into(), &1.into()));
    let free = ok(&[&switch[..], &["--profile", &profile, "--method", "auto", "--insecure", "--batch", "2"]].concat());
    assert!(free["median_ms"].as_f64().unwrap() > 0.0 && free["batch"] == 2);
    assert_eq!(free["counts"]["ntt"].as_u64().unwrap() % 2, 0);

    let planned = ["plan", "--scheme", "bgv", "--depth", "2", "--t", "65537"];
    let plain = ok(&planned);
    assert_eq!(plain["predicted_ms"], Value::Null);
    let plan = ok(&[&planned[..], &["--profile", &profile]].concat());
    assert!(plan["predicted_ms"].as_f64().unwrap() > 0.0, "{plan}");
    assert_eq!(plan["switch"].as_array().unwrap().len(), 3);
    for level in plan["switch"].as_array().unwrap() {
        assert!(level["predicted_ms"].as_f64().unwrap() > 0.0, "{level}");
    }
    let explain = plan["explain"].to_string();
    for part in ["prime width", "time by the machine's profile", "index map", "level 2: "] {
        assert!(explain.contains(part) || part.starts_with("time"), "{part}: {explain}");
    }
}

#[test]
fn cards_that_nobody_measured_are_named_as_profiles() {
    let planned = ["plan", "--scheme", "ckks", "--depth", "2", "--profile"];
    let mut times = Vec::new();
    for name in synchromesh::cost::Profile::predicted_names() {
        let plan = ok(&[&planned[..], &[name]].concat());
        times.push(plan["predicted_ms"].as_f64().unwrap());
        assert!(plan["explain"].to_string().contains("the card was not measured"), "{plan}");
    }
    assert!(times.len() == 4 && times.iter().all(|&ms| ms > 0.0), "{times:?}");
    let (code, value) = run(&[&planned[..], &["b100-predicted"]].concat());
    assert_eq!((code, value["error"]["kind"].as_str()), (Some(2), Some("file_not_found")), "{value}");
}

#[test]
fn broken_profiles_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.json");
    let arguments = ["plan", "--scheme", "bgv", "--depth", "1", "--profile", path.to_str().unwrap()];
    for text in [&b"{"[..], b"{\"format\": \"x\"}", b"\0", &[0xff, 0xfe]] {
        std::fs::write(&path, text).unwrap();
        let (code, value) = run(&arguments);
        assert_eq!((code, value["error"]["kind"].as_str()), (Some(2), Some("profile")), "{text:?}");
    }
}

#[test]
fn items_are_listed_and_reproduced_into_files() {
    let items = ok(&["reproduce", "list"]);
    let ids: Vec<&str> = items["items"].as_array().unwrap().iter().map(|i| i["id"].as_str().unwrap()).collect();
    assert!(
        ids.contains(&"perspective-table9")
            && ids.contains(&"levelaware-figure1")
            && ids.contains(&"revisiting-claims"),
        "{ids:?}"
    );
    let (code, value) = run(&["reproduce", "perspective-table99"]);
    assert_eq!((code, value["error"]["kind"].as_str()), (Some(2), Some("usage")));
    let (code, value) = run(&["reproduce", "planner-choices", "--quick"]);
    assert_eq!((code, value["error"]["kind"].as_str()), (Some(2), Some("request")));

    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("new");
    let counts = ok(&["reproduce", "perspective-table2", "--out", out.to_str().unwrap()]);
    let rows = counts["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 32);
    for row in rows {
        assert_eq!(row["ours_ntt"], row["paper_ntt"], "{row}");
        if row["folded"] == true || row["scheme"] == "bfv" {
            assert_eq!(row["ours_mul"], row["paper_mul"], "{row}");
        }
    }
    let text = std::fs::read_to_string(out.join("perspective-table2.csv")).unwrap();
    assert_eq!(text.lines().count(), 33);
    assert_eq!(counts["files"].as_array().unwrap().len(), 1);

    let counts = ok(&["reproduce", "revisiting-table1", "--quick"]);
    let rows = counts["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["variant"] == "leveled") && rows.len() >= 12, "{rows:?}");
    for row in rows {
        assert!(row["ours_ntt"].as_u64() <= row["paper_ntt"].as_u64(), "{row}");
        assert!(row["security_bits"].is_number(), "{row}");
    }
}
