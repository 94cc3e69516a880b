//! The command `triples`: processes over TLS on the loopback, the files they write, and what becomes of them when one dies.

use num_bigint::BigUint;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use synchromesh_triples::mp_spdz::Preprocessing;
use synchromesh_triples::share::check_opened;
use synchromesh_triples::{Field, Shape};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_synchromesh"));
    command.arg("triples").args(arguments).arg("--json").env_remove("SYNCHROMESH_ISA");
    command
}

fn run(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = command(arguments).stderr(Stdio::null()).output().unwrap();
    let text = std::str::from_utf8(&output.stdout).unwrap();
    (output.status.code(), serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}")))
}

/// Small parameters, for tests only.
const SMALL: [&str; 5] = ["--insecure", "--log-n", "10", "--security", "40"];

#[test]
fn three_processes_write_files_that_hold() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out");
    let out_text = out.to_str().unwrap();
    let what = ["local", "--parties", "3", "--shape", "5x7x3", "--count", "2", "--out", out_text];
    let (code, report) = run(&[&what[..], &SMALL].concat());
    assert_eq!(code, Some(0), "{report}");
    assert_eq!((&report["parties"], &report["shape"], &report["count"]), (&3.into(), &"5x7x3".into(), &2.into()));
    assert_eq!((&report["verified"], &report["statistical_security"]), (&true.into(), &40.into()));
    assert!(report["security_model"].as_str().unwrap().starts_with("dealer"));
    let phases = report["phases"].as_array().unwrap();
    for name in ["plan", "keys", "mac_key", "exchange", "multiply", "decrypt", "check"] {
        let phase = phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("{name} in {report}"));
        for key in ["seconds", "bytes_sent", "rounds", "peak_bytes"] {
            assert!(phase[key].is_number(), "{name} {key}");
        }
    }
    assert_eq!(report["files"].as_array().unwrap().len(), 7);
    opened(&out, 3, "5x7x3", 2);
    // A second run would give the same names to other triples.
    let (code, report) = run(&[&what[..], &SMALL].concat());
    assert_eq!((code, &report["error"]["kind"]), (Some(2), &"file_exists".into()));
    let what = ["local", "--shape", "2x2", "--out", out_text];
    assert_eq!(run(&what).1["error"]["kind"], "shape");
}

/// Opens all parties' files: C = A B, all MACs, and sizes to the byte.
fn opened(out: &Path, parties: usize, shape: &str, count: usize) {
    let (field, shape): (Field, Shape) =
        ("0xffffffffffffffffffffffffff820001".parse().unwrap(), shape.parse().unwrap());
    let (mut keys, mut lists) = (Vec::new(), Vec::new());
    for party in 0..parties {
        let files = Preprocessing::new(&out.join("Player-Data"), &field, party, parties).unwrap();
        let path = files.triples_path(shape);
        assert_eq!(path.metadata().unwrap().len(), (57 + 32 * shape.elements() * count) as u64);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(&bytes[..16], b"\x31\0\0\0\0\0\0\0SPDZ gfp");
        assert_eq!(BigUint::from_bytes_be(&bytes[21..37]), *field.prime());
        keys.push(files.read_key().unwrap());
        lists.push(files.read_triples(keys.last().unwrap(), shape).unwrap());
        assert_eq!(lists.last().unwrap().len(), count);
    }
    check_opened(&field, &keys, &lists).unwrap();
}

/// Keys and certificates of two parties.
struct Two {
    root: tempfile::TempDir,
}

impl Two {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let two = Self { root };
        let setup = two.text("setup");
        let what = ["deal", "--parties", "2", "--shape", "4x4x4", "--count", "1", "--out", &setup];
        assert_eq!(run(&[&what[..], &SMALL].concat()).0, Some(0));
        let listeners = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let mut hosts = String::from("# two parties\n");
        for (party, listener) in listeners.iter().enumerate() {
            let (code, report) = run(&["identity", "--out", &two.text(&format!("identity-{party}"))]);
            assert_eq!(code, Some(0));
            let fingerprint = report["fingerprint"].as_str().unwrap();
            hosts += &format!("{} {fingerprint}\n", listener.local_addr().unwrap());
        }
        std::fs::write(two.path("hosts"), hosts).unwrap();
        two
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn party(&self, id: usize, out: &str) -> Child {
        let (hosts, setup, identity) = (self.text("hosts"), self.text("setup"), self.text(&format!("identity-{id}")));
        let (id, out) = (id.to_string(), self.text(out));
        let mut command =
            command(&["party", "--id", &id, "--hosts", &hosts, "--setup", &setup, "--identity", &identity]);
        command.args(["--out", &out, "--progress", "--timeout", "20"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn journal(&self, id: usize) -> String {
        std::fs::read_to_string(self.path(&format!("setup/party-{id}.journal"))).unwrap_or_default()
    }
}

/// The report, once the process has ended.
fn report(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

/// Kills (SIGKILL) party 1 when it says that it is in a phase: the other aborts with the blame and writes no triple, what was
/// begun is in both journals' or in none's next session, and a new session makes triples all the same.
#[test]
fn a_killed_party_is_blamed_and_nothing_is_decrypted_twice() {
    let two = Two::new();
    let mut lines = 0;
    for (run, phase) in ["mac_key", "exchange", "decrypt"].into_iter().enumerate() {
        let out = format!("out-{run}");
        let (honest, mut victim) = (two.party(0, &out), two.party(1, &out));
        let mut said = BufReader::new(victim.stderr.take().unwrap()).lines();
        assert!(said.any(|line| line.is_ok_and(|line| line.starts_with(phase))), "{phase}");
        victim.kill().unwrap();
        victim.wait().unwrap();
        let report = report(honest);
        // The rest of a run takes milliseconds: death may come too late.
        if phase == "decrypt" && report.get("files").is_some() {
            continue;
        }
        let text = report["error"]["message"].as_str().unwrap();
        assert!(report["error"]["kind"] == "abort" && text.contains("party 1"), "{report}");
        assert!(!two.path(&out).join("Player-Data").exists());
        assert!(two.journal(0).lines().count() >= lines);
        lines = two.journal(0).lines().count();
    }
    let (first, second) = (two.party(0, "out"), two.party(1, "out"));
    for child in [first, second] {
        let report = report(child);
        assert!(report.get("files").is_some(), "{report}");
    }
    opened(&two.path("out"), 2, "4x4x4", 1);
    let journal = two.journal(0);
    let mut seen: Vec<&str> = journal.lines().collect();
    assert!(seen.len() > lines);
    seen.sort_unstable();
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "a ciphertext was decrypted twice");
}

#[test]
fn wrong_files_are_typed_errors() {
    let two = Two::new();
    let (hosts, setup, identity) = (two.text("hosts"), two.text("setup"), two.text("identity-0"));
    let party = |id: &str, hosts: &str, setup: &str, identity: &str| {
        let out = two.text("none");
        let (code, report) =
            run(&["party", "--id", id, "--hosts", hosts, "--setup", setup, "--identity", identity, "--out", &out]);
        assert_eq!(code, Some(2));
        report["error"]["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(party("2", &hosts, &setup, &identity), "parties");
    assert_eq!(party("0", &identity, &setup, &identity), "format");
    assert_eq!(party("0", &hosts, &two.text("nowhere"), &identity), "file_not_found");
    assert_eq!(party("0", &hosts, &setup, &hosts), "format");
    assert_eq!(party("0", &hosts, &setup, &two.text("identity-1")), "tls");
    let plan = two.path("setup/plan.json");
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("\"parties\": 2", "\"parties\": 3")).unwrap();
    assert!(["format", "no_parameters"].contains(&&party("0", &hosts, &setup, &identity)[..]));
}
