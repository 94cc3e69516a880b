//! The command `triples`: processes over TLS on the loopback, the files they write, and what becomes of them when one dies.

use num_bigint::BigUint;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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
    for name in ["plan", "keys", "encrypt", "exchange", "multiply", "decrypt", "check"] {
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

/// p, and R^-1 for elements x that are written as x R mod p with R = 2^128.
fn prime() -> (BigUint, BigUint) {
    let p = BigUint::parse_bytes(b"ffffffffffffffffffffffffff820001", 16).unwrap();
    let radix = (BigUint::from(1u8) << 128u32) % &p;
    let inverse = radix.modpow(&(&p - 2u8), &p);
    (p, inverse)
}

/// The next `count` bytes.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (head, tail) = bytes.split_at(count);
    *bytes = tail;
    head
}

/// One party's file of matrix triples as MP-SPDZ reads it, by nothing of this library: all elements in their order, as they
/// are written. Everything before them is compared byte for byte.
fn elements(directory: &Path, party: usize, parties: usize, name: &str) -> (BigUint, Vec<BigUint>) {
    elements_of(directory, party, parties, &format!("{name}-P{party}"))
}

fn elements_of(directory: &Path, party: usize, parties: usize, name: &str) -> (BigUint, Vec<BigUint>) {
    let ((p, inverse), file) = (prime(), |name: &str| std::fs::read(directory.join(name)).unwrap());
    assert_eq!(file("Params-Data"), format!("{p}\n1\n").as_bytes());
    let key = String::from_utf8(file(&format!("Player-MAC-Keys-p-P{party}"))).unwrap();
    let share: BigUint =
        key.strip_prefix(&format!("{parties}\n")).unwrap().strip_suffix('\n').unwrap().parse().unwrap();
    assert!(share < p && key == format!("{parties}\n{share}\n"));
    let bytes = file(name);
    let mut rest = &bytes[..];
    assert_eq!(take(&mut rest, 8), 49u64.to_le_bytes());
    assert_eq!(take(&mut rest, 8), b"SPDZ gfp");
    assert_eq!(take(&mut rest, 1), [0]);
    assert_eq!(take(&mut rest, 4), 16u32.to_le_bytes());
    assert_eq!(take(&mut rest, 16), p.to_bytes_be());
    assert_eq!(take(&mut rest, 4), 1u32.to_le_bytes());
    assert_eq!(BigUint::from_bytes_le(take(&mut rest, 16)) * inverse % &p, share);
    let all: Vec<BigUint> = rest.chunks_exact(16).map(BigUint::from_bytes_le).collect();
    assert!(16 * all.len() == rest.len() && all.iter().all(|x| *x < p));
    (share, all)
}

/// Opens all parties' files with big integers: C = A B and all MACs.
fn opened(out: &Path, parties: usize, shape: &str, count: usize) {
    let (p, inverse) = prime();
    let directory = out.join(format!("Player-Data/{parties}-p-128"));
    let name = if shape == "1x1x1" { "Triples-p".to_owned() } else { format!("Matrix-{shape}") };
    let (mut alpha, mut sums) = (BigUint::ZERO, Vec::new());
    for party in 0..parties {
        let (share, all) = elements(&directory, party, parties, &name);
        alpha += share;
        sums.resize(all.len(), BigUint::ZERO);
        sums.iter_mut().zip(all).for_each(|(sum, x)| *sum += x);
    }
    let values: Vec<BigUint> = sums.iter().map(|x| x * &inverse % &p).collect();
    assert!(values.chunks(2).all(|pair| &pair[0] * &alpha % &p == pair[1]), "a MAC does not hold");
    let sides: Vec<usize> = shape.split('x').map(|side| side.parse().unwrap()).collect();
    let [rows, inner, columns] = sides[..] else { panic!("{shape}") };
    let elements = rows * inner + inner * columns + rows * columns;
    assert_eq!(values.len(), 2 * elements * count);
    for triple in values.chunks(2 * elements) {
        let value = |at: usize| &triple[2 * at];
        let [b, c] = [rows * inner, rows * inner + inner * columns];
        for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
            let sum: BigUint = (0..inner).map(|k| value(i * inner + k) * value(b + k * columns + j)).sum();
            assert_eq!(&(sum % &p), value(c + i * columns + j), "C is not A B at {i}, {j}");
        }
    }
    let distinct: std::collections::HashSet<_> = values.iter().step_by(2).collect();
    assert_eq!(2 * distinct.len(), values.len(), "a random element occurs twice");
}

/// One party's tuples of a kind: the numbers of each, shares and MACs in turn, by nothing of this library.
fn tuples(out: &Path, parties: usize, name: &str, width: usize) -> Vec<Vec<BigUint>> {
    let (p, inverse) = prime();
    let directory = out.join(format!("Player-Data/{parties}-p-128"));
    let (mut alpha, mut sums) = (BigUint::ZERO, Vec::new());
    let owner = name.rsplit_once("-p-").and_then(|(_, owner)| owner.parse::<usize>().ok());
    let name = owner.map_or(name, |_| "Inputs-p");
    let mut clear = Vec::new();
    for party in 0..parties {
        let file = owner.map_or(format!("{name}-P{party}"), |owner| format!("{name}-P{party}-{owner}"));
        let (share, mut all) = elements_of(&directory, party, parties, &file);
        alpha += share;
        if owner == Some(party) {
            clear = all.chunks(2 * width + 1).map(|tuple| &tuple[2 * width] * &inverse % &p).collect();
            all = all.chunks(2 * width + 1).flat_map(|tuple| tuple[..2 * width].to_vec()).collect();
        }
        sums.resize(all.len(), BigUint::ZERO);
        sums.iter_mut().zip(all).for_each(|(sum, x)| *sum += x);
    }
    let values: Vec<BigUint> = sums.iter().map(|x| x * &inverse % &p).collect();
    assert!(values.chunks(2).all(|pair| &pair[0] * &alpha % &p == pair[1]), "a MAC of {name} does not hold");
    let tuples: Vec<Vec<BigUint>> =
        values.chunks(2 * width).map(|tuple| tuple.iter().step_by(2).cloned().collect()).collect();
    if owner.is_some() {
        assert_eq!(tuples.iter().map(|tuple| tuple[0].clone()).collect::<Vec<_>>(), clear, "{name}");
    }
    // MP-SPDZ reads 101 shares at a time, and has to find as many.
    assert!(!tuples.is_empty() && tuples.len().is_multiple_of(101), "{} of {name}", tuples.len());
    tuples
}

/// Opens all parties' tuples with big integers.
fn opened_tuples(out: &Path, parties: usize) {
    let (p, one) = (prime().0, BigUint::from(1u8));
    let all = |name: &str, width: usize| tuples(out, parties, name, width);
    assert!(all("Triples-p", 3).iter().all(|t| &t[0] * &t[1] % &p == t[2]));
    assert!(all("Squares-p", 2).iter().all(|t| &t[0] * &t[0] % &p == t[1]));
    assert!(all("Inverses-p", 2).iter().all(|t| &t[0] * &t[1] % &p == one));
    let bits = all("Bits-p", 1);
    assert!(bits.iter().all(|t| t[0] <= one));
    let ones = bits.iter().filter(|t| t[0] == one).count();
    assert!((bits.len() / 4..3 * bits.len() / 4).contains(&ones), "{ones} of {} bits", bits.len());
    for owner in 0..parties {
        all(&format!("Inputs-p-{owner}"), 1);
    }
}

/// Two shapes and every kind of tuple in one run; then, with other keys, another shape and under the same MAC key.
#[test]
fn everything_is_made_under_one_mac_key() {
    for keys in ["dealer", "generate"] {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        let what = |make: &str| {
            let what = ["local", "--parties", "3", "--keys", keys, "--make", make, "--out", out.to_str().unwrap()];
            run(&[&what[..], &SMALL].concat())
        };
        let (code, report) = what("3x4x2:2,1x2x1:1,triples:5,squares:101,bits:150,inverses:1,inputs:10");
        assert_eq!((code, &report["verified"]), (Some(0), &true.into()), "{report}");
        assert_eq!(report["shapes"], serde_json::json!(["3x4x2", "1x2x1"]));
        let made = report["made"].as_array().unwrap();
        assert_eq!((made.len(), &made[4]["what"], &made[4]["count"]), (7, &"bits".into(), &303.into()), "{report}");
        opened(&out, 3, "3x4x2", 2);
        opened(&out, 3, "1x2x1", 1);
        opened_tuples(&out, 3);
        let key = std::fs::read(out.join("Player-Data/3-p-128/Player-MAC-Keys-p-P1")).unwrap();
        let (code, report) = what("2x2x2:1");
        assert_eq!((code, &report["verified"]), (Some(0), &true.into()), "{report}");
        assert_eq!(key, std::fs::read(out.join("Player-Data/3-p-128/Player-MAC-Keys-p-P1")).unwrap());
        opened(&out, 3, "2x2x2", 1);
        opened(&out, 3, "3x4x2", 2);
        // What is there stays.
        assert_eq!(what("bits:1").1["error"]["kind"], "file_exists");
        assert_eq!(what("bits:0").1["error"]["kind"], "unknown_tuples");
        assert_eq!(what("bytes:5").1["error"]["kind"], "unknown_tuples");
    }
}

/// Every thread of every run has files of its own, and no number is in two of them.
#[test]
fn runs_and_threads_have_files_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out");
    // As the compiler says it: twelve of the triples are those of the product of matrices.
    let needs = root.path().join("needs");
    let lines = "Program requires at most:\n           1 matrix multiplications (2x3 * 3x2)\n          12 integer triples\n\
                 \x20          5 integer squares\n           3 integer randoms\n           9 virtual machine rounds\n";
    std::fs::write(&needs, lines).unwrap();
    let places =
        ["--for", needs.to_str().unwrap(), "--runs", "2", "--program-threads", "2", "--out", out.to_str().unwrap()];
    let (code, report) = run(&[&["local"][..], &places, &SMALL].concat());
    assert_eq!((code, &report["verified"]), (Some(0), &true.into()), "{report}");
    let what: Vec<_> = report["made"].as_array().unwrap().iter().map(|made| made["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["2x3x2", "squares", "inputs"]);
    let mut seen = std::collections::HashSet::new();
    for (number, thread) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        let directory = out.join(format!("run-{number}/Player-Data/2-p-128"));
        for (name, count) in [("Matrix-2x3x2-P1", 2 * 16), ("Squares-p-P1", 202 * 4), ("Inputs-p-P1-0", 202 * 2)] {
            let all = elements_of(&directory, 1, 2, &format!("{name}-T{thread}")).1;
            assert_eq!(all.len(), count, "{name}");
            assert!(all.into_iter().all(|x| seen.insert(x)), "run {number}, thread {thread}, {name}");
        }
    }
    // Runs are numbered on.
    let more = ["--make", "bits:1", "--runs", "1", "--out", out.to_str().unwrap()];
    assert_eq!(run(&[&["local"][..], &more, &SMALL].concat()).0, Some(0));
    assert!(out.join("run-3/Player-Data/2-p-128/Bits-p-P0").exists() && !out.join("run-4").exists());
    std::fs::write(&needs, lines.replace("5 integer squares", "inf integer squares")).unwrap();
    let (code, report) = run(&[&["local"][..], &places, &SMALL].concat());
    assert_eq!((code, &report["error"]["kind"]), (Some(2), &"demand".into()), "{report}");
}

/// A program, here the shell, has its files for as long as it runs, once.
#[test]
fn a_program_has_the_files_of_a_run_once() {
    let root = tempfile::tempdir().unwrap();
    let (out, data) = (root.path().join("out"), root.path().join("Player-Data"));
    let made = ["local", "--make", "2x2x2:1,bits:1", "--runs", "3", "--out", out.to_str().unwrap()];
    assert_eq!(run(&[&made[..], &SMALL].concat()).0, Some(0));
    let shell = |party: &str, number: usize, script: &str| {
        let from = out.join(format!("run-{number}"));
        let (from, data) = (from.to_str().unwrap(), data.to_str().unwrap());
        let mut command = command(&["use", "--id", party, "--from", from, "--player-data", data]);
        let output = command.args(["--", "sh", "-c", script]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
        (report, String::from_utf8(output.stderr).unwrap())
    };
    let kind = |report: &Value| report["error"]["kind"].as_str().map(str::to_owned);
    let there = format!("cd {}/2-p-128 && ls 1>&2 Matrix-2x2x2-P0 Bits-p-P0", data.display());
    let (report, said) = shell("0", 1, &format!("{there}; echo reverting to plain triples 1>&2"));
    assert_eq!((report["plain_triples"].as_bool(), kind(&report)), (Some(true), None), "{report}");
    assert!(said.contains("Matrix-2x2x2-P0") && said.contains("ordinary triples"), "{said}");
    assert!(!data.join("2-p-128/Matrix-2x2x2-P0").exists() && data.join("2-p-128/Params-Data").exists());
    assert_eq!(kind(&shell("0", 1, "true").0).as_deref(), Some("run_used"));
    let mut none = command(&["use", "--id", "0", "--from", out.join("run-2").to_str().unwrap()]);
    let output = none.args(["--", "./no-such-program"]).current_dir(root.path()).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(kind(&report).as_deref(), Some("program_not_begun"), "{report}");
    let (report, _) = shell("0", 2, "true");
    assert_eq!((report["plain_triples"].as_bool(), kind(&report)), (Some(false), None), "{report}");
    // Without runs what is made anew is another run: the mark goes with what it was on.
    let anew = ["local", "--make", "squares:1", "--out", out.to_str().unwrap()];
    for _ in 0..2 {
        assert_eq!(run(&[&anew[..], &SMALL].concat()).0, Some(0));
        for party in ["0", "1"] {
            let (from, data) = (out.to_str().unwrap(), data.to_str().unwrap());
            let mut command = command(&["use", "--id", party, "--from", from, "--player-data", data]);
            let output = command.args(["--", "true"]).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    }
    // Party 1's key is another share, with a record of its own.
    for (party, script) in [("0", "echo MacCheck Failure 1>&2"), ("1", "exit 1")] {
        let (report, _) = shell(party, 3, script);
        assert_eq!(kind(&report).as_deref(), Some("program_failed"), "{report}");
        assert!(report["error"]["void"].as_array().is_some_and(|void| void.len() > 3), "{report}");
    }
    assert_eq!(kind(&shell("0", 3, "true").0).as_deref(), Some("mac_key_burnt"));
}

/// Another prime or MAC key where files would go ends a party before it calls anybody.
#[test]
fn a_directory_of_another_prime_or_key_is_refused_before_anybody_is_called() {
    let two = Two::new();
    let directory = two.path("out/Player-Data/2-p-128");
    std::fs::create_dir_all(&directory).unwrap();
    let refused = |name: &str, text: &str, kind: &str| {
        std::fs::write(directory.join(name), text).unwrap();
        let report = report(two.party(0, "out"));
        assert_eq!(report["error"]["kind"], kind, "{report}");
        std::fs::remove_file(directory.join(name)).unwrap();
    };
    // What an offline phase of MP-SPDZ writes without -P, and what it leaves beside a prime that is the same.
    refused("Params-Data", "170141183460469231731687303715885907969\n1\n", "other_prime");
    std::fs::write(directory.join("Params-Data"), format!("{}\n1\n", prime().0)).unwrap();
    refused("Player-MAC-Keys-p-P0", "2\n5\n", "other_mac_key");
}

#[test]
#[ignore = "a minute; cargo xtask verify triples runs it"]
fn three_processes_write_two_triples_of_128_x_128_x_128_at_80_bits() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out");
    let what = ["local", "--parties", "3", "--shape", "128x128x128", "--count", "2", "--out", out.to_str().unwrap()];
    let (code, report) = run(&what);
    assert_eq!((code, &report["verified"]), (Some(0), &true.into()), "{report}");
    assert_eq!((&report["statistical_security"], &report["security_model"]), (&80.into(), &"dealer".into()));
    assert!(report["security_bits"].as_f64().unwrap() >= 128.0);
    let file = out.join("Player-Data/3-p-128/Matrix-128x128x128-P1");
    assert_eq!(file.metadata().unwrap().len(), 57 + 2 * (1_572_921 - 57));
    opened(&out, 3, "128x128x128", 2);
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
        command.args(["--out", &out, "--progress", "--timeout", "20", "--insecure"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Whether a party was killed, or left alone, in the midst of a check: its key is not used any more.
    fn burnt(&self) -> bool {
        let names = std::fs::read_dir(self.path("setup")).unwrap().map(|entry| entry.unwrap().file_name());
        names.into_iter().any(|name| name.to_string_lossy().contains(".check-"))
    }

    /// The lines of a party's journal, without its title.
    fn journal(&self, id: usize) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(&format!("setup/party-{id}.journal"))).unwrap();
        text.lines().skip(1).map(|line| line.split(' ').next().unwrap().to_owned()).collect()
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
    for (run, phase) in ["encrypt", "exchange", "decrypt"].into_iter().enumerate() {
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
        assert!(two.journal(0).len() >= lines);
        lines = two.journal(0).len();
    }
    // Who dies in the midst of a check has used up its key, and so have those who were left alone.
    let burnt = two.burnt();
    let children = [two.party(0, "out"), two.party(1, "out")];
    for report in children.map(report) {
        assert!(burnt || report.get("files").is_some(), "{report}");
        assert!(!burnt || ["mac_key_burnt", "abort"].contains(&report["error"]["kind"].as_str().unwrap()), "{report}");
    }
    if burnt {
        return;
    }
    opened(&two.path("out"), 2, "4x4x4", 1);
    let mut seen = two.journal(0);
    assert!(seen.len() > lines);
    seen.sort_unstable();
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "a ciphertext was decrypted twice");
}

/// What became of a run of two parties of which one is killed after a while: whether the other ended with triples, and
/// if not whether it blamed the one that was killed.
fn killed_after(two: &Two, run: usize, wait: Duration) -> (bool, bool) {
    let out = format!("out-{run}");
    let victim_id = run % 2;
    let (mut victim, honest) = (two.party(victim_id, &out), two.party(1 - victim_id, &out));
    std::thread::sleep(wait);
    victim.kill().unwrap();
    victim.wait().unwrap();
    let report = report(honest);
    let ended = report.get("files").is_some();
    let blames = report["error"]["kind"] == "abort";
    if !ended {
        let text = report["error"]["message"].as_str().unwrap();
        let kind = &report["error"]["kind"];
        // Before the channels are up there is nobody to blame but the connection.
        assert!((kind == "abort" && text.contains(&format!("party {victim_id}"))) || kind == "tls", "{report}");
        let files = two.path(&out).join("Player-Data/2-p-128").join(format!("Matrix-4x4x4-P{}", 1 - victim_id));
        assert!(!files.exists(), "a triple was written after an abort");
    }
    for id in 0..2 {
        let mut seen = two.journal(id);
        seen.sort_unstable();
        assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "party {id} decrypted a ciphertext twice");
    }
    (ended, blames)
}

/// SIGKILL at random points of a run, from before the first connection to after the last message.
#[test]
#[ignore = "a hundred pairs of processes; cargo xtask verify triples runs them"]
fn parties_killed_at_random_points_leave_nothing_wrong() {
    let mut two = Two::new();
    let start = std::time::Instant::now();
    for child in [two.party(0, "whole"), two.party(1, "whole")] {
        assert!(report(child).get("files").is_some());
    }
    let whole = start.elapsed();
    let (mut ended, mut blamed, mut burnt, runs) = (0, 0, 0, 100);
    for run in 0..runs {
        if two.burnt() {
            (two, burnt) = (Two::new(), burnt + 1);
        }
        // The golden ratio spreads the points evenly, whatever their number.
        let part = (f64::from(run) * 0.618_033_988_749_895).fract();
        let (whole_run, blames) = killed_after(&two, run as usize, whole.mul_f64(1.1 * part));
        (ended, blamed) = (ended + u32::from(whole_run), blamed + u32::from(blames));
    }
    println!("{runs} runs of {whole:?}: {ended} ended before the kill, the others with an abort; {burnt} keys burnt");
    if let Some(path) = std::env::var_os("SYNCHROMESH_RECORD") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        // One party of the two is honest, and blames the other unless channels were not up yet.
        writeln!(file, "triples,\"kill -9 at random points\",{runs},{ended},{},{blamed}", runs - ended).unwrap();
    }
    assert!(ended < runs, "no kill came in time");
    if two.burnt() {
        two = Two::new();
    }
    for child in [two.party(0, "last"), two.party(1, "last")] {
        assert!(report(child).get("files").is_some());
    }
    opened(&two.path("last"), 2, "4x4x4", 1);
}

#[test]
fn parties_make_their_keys_and_use_them_again() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out");
    let what = ["local", "--keys", "generate", "--shape", "2x2x2", "--out", out.to_str().unwrap()];
    let (code, report) = run(&[&what[..], &SMALL].concat());
    assert_eq!(code, Some(0), "{report}");
    assert_eq!((&report["keys"], &report["verified"]), (&"generate".into(), &true.into()));
    assert_eq!(report["security_model"], "dishonest majority, ring-LWE with hints");
    let phases = report["phases"].as_array().unwrap();
    for name in ["plan", "key_shares", "relinearisation_key", "mac_key", "multiply", "check"] {
        assert!(phases.iter().any(|phase| phase["name"] == name), "{name} in {report}");
    }
    opened(&out, 2, "2x2x2", 1);
    // Each party has its own secrets, and the same public keys.
    let file = |party: usize, name: &str| std::fs::read(out.join(format!("setup/party-{party}/{name}"))).unwrap();
    for name in ["plan.json", "public.key", "eval.keys"] {
        assert_eq!(file(0, name), file(1, name), "{name}");
    }
    assert!(!out.join("setup/party-0/party-1.key").exists());
    // A second session with the keys that are there.
    let text = |path: &str| out.join(path).to_str().unwrap().to_owned();
    let again = |id: usize| {
        let number = id.to_string();
        let (hosts, setup) = (text("setup/hosts"), text(&format!("setup/party-{id}")));
        let (identity, out) = (text(&format!("setup/party-{id}.identity")), text("again"));
        let mut command = command(&["party", "--id", &number, "--hosts", &hosts, "--setup", &setup]);
        command.args(["--identity", &identity, "--out", &out, "--timeout", "60", "--insecure"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    for child in [again(0), again(1)] {
        let report = self::report(child);
        let phases = report["phases"].as_array().unwrap_or_else(|| panic!("{report}"));
        assert!(phases.iter().all(|phase| phase["name"] != "key_shares"));
    }
    opened(&out.join("again"), 2, "2x2x2", 1);
}

#[test]
fn wrong_files_are_typed_errors() {
    let two = Two::new();
    let (hosts, setup, identity) = (two.text("hosts"), two.text("setup"), two.text("identity-0"));
    let party = |id: &str, hosts: &str, setup: &str, identity: &str| {
        let out = two.text("none");
        let (code, report) = run(&[
            "party",
            "--id",
            id,
            "--hosts",
            hosts,
            "--setup",
            setup,
            "--identity",
            identity,
            "--out",
            &out,
            "--insecure",
        ]);
        assert_eq!(code, Some(2));
        report["error"]["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(party("2", &hosts, &setup, &identity), "parties");
    assert_eq!(party("0", &identity, &setup, &identity), "format");
    assert_eq!(party("0", &hosts, &two.text("nowhere"), &identity), "file_not_found");
    assert_eq!(party("0", &hosts, &setup, &hosts), "format");
    assert_eq!(party("0", &hosts, &setup, &two.text("identity-1")), "tls");
    // A key whose MAC key may be known, or that lacks what was written beside it, is not used; the report says which files are void.
    let mark = two.path("setup/party-0.mac.check-0123456789abcdef");
    std::fs::write(&mark, "").unwrap();
    let (id, out) = ("0", two.text("none"));
    let what = ["party", "--id", id, "--hosts", &hosts, "--setup", &setup, "--identity", &identity, "--out", &out];
    let what = [&what[..], &["--insecure"]].concat();
    let (code, report) = run(&what);
    assert_eq!((code, &report["error"]["kind"]), (Some(2), &"mac_key_burnt".into()));
    let void = report["error"]["void"].as_array().unwrap();
    assert!(void.len() == 1 && void[0].as_str().unwrap().ends_with("party-0.key"), "{report}");
    assert!(report["error"]["message"].as_str().unwrap().contains("party-0.key"), "{report}");
    std::fs::remove_file(mark).unwrap();
    for name in ["party-0.mac", "party-0.journal"] {
        let (from, to) = (two.path("setup").join(name), two.path("away"));
        std::fs::rename(&from, &to).unwrap();
        assert_eq!(party("0", &hosts, &setup, &identity), "record_missing", "{name}");
        std::fs::rename(&to, &from).unwrap();
    }
    let plan = two.path("setup/plan.json");
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("\"parties\": 2", "\"parties\": 3")).unwrap();
    assert!(["format", "no_parameters"].contains(&&party("0", &hosts, &setup, &identity)[..]));
}

/// A plan that protects nobody is not run, whoever wrote it, unless a party says so in so many words.
#[test]
fn a_plan_below_the_floor_needs_a_word_for_each_lack() {
    let two = Two::new();
    let (hosts, setup, identity) = (two.text("hosts"), two.text("setup"), two.text("identity-0"));
    let out = two.text("none");
    let party = |words: &[&str]| {
        let what = ["party", "--id", "0", "--hosts", &hosts, "--setup", &setup, "--identity", &identity, "--out", &out];
        let (code, report) = run(&[&what[..], &["--timeout", "1"], words].concat());
        assert_eq!(code, Some(2), "{report}");
        let error = |key: &str| report["error"][key].as_str().unwrap().to_owned();
        (error("kind"), error("message"), error("remedy"))
    };
    let refused = |words: &[&str], has: &str, word: &str| {
        let (kind, message, remedy) = party(words);
        assert!(kind == "below_floor" && message.contains(has) && remedy.contains(word), "{message}; {remedy}");
    };
    refused(&[], "bits of computational security", "--insecure");
    refused(
        &["--insecure", "--least-statistical-security", "41"],
        "40 bits of statistical security",
        "--least-statistical",
    );
    let plan = two.path("setup/plan.json");
    let text = std::fs::read_to_string(&plan).unwrap();
    assert!(text.contains("\"knowledge\"") && text.contains("\"statistical_security\": 40"), "{text}");
    let hostile = text
        .replace("\"knowledge\"", "\"nothing\"")
        .replace("\"statistical_security\": 40", "\"statistical_security\": 0");
    std::fs::write(&plan, hostile).unwrap();
    refused(&["--insecure"], "0 bits of statistical security", "--least-statistical-security");
    refused(&["--insecure", "--least-statistical-security", "0"], "proofs of encryptions", "--without-proofs");
    // With all of them said it goes on, to what is wrong besides: the keys are another plan's.
    let (kind, message, _) = party(&["--insecure", "--least-statistical-security", "0", "--without-proofs"]);
    assert!(["format", "file_too_large"].contains(&&kind[..]), "{message}");
    // Sizes that nobody has are refused before anything is computed with them.
    for (from, to) in
        [("\"window\": 8", "\"window\": 0"), ("\"log_n\": 10", "\"log_n\": 60"), ("4x4x4", "65536x65536x65536")]
    {
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(&plan, text.replace(from, to)).unwrap();
        let (kind, message, _) = party(&["--insecure"]);
        assert!(["no_parameters", "memory"].contains(&&kind[..]), "{to}: {kind}, {message}");
    }
}

/// Parties that run for this directory.
fn parties_of(root: &Path) -> Vec<String> {
    let root = root.to_str().unwrap().as_bytes();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let has = |word: &[u8]| line.windows(word.len()).any(|part| part == word);
        if has(root) && has(b"\0party\0") {
            found.push(entry.file_name().into_string().unwrap());
        }
    }
    found
}

/// Whether it comes about within so many seconds.
fn soon(seconds: u64, mut what: impl FnMut() -> bool) -> bool {
    (0..seconds * 20).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        what()
    })
}

#[cfg(target_os = "linux")]
#[test]
fn parties_end_with_the_command_that_runs_them() {
    for (signal, says) in [("TERM", true), ("INT", true), ("KILL", false)] {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        let what = ["local", "--keys", "generate", "--shape", "2x2x2", "--out", out.to_str().unwrap()];
        let mut local = command(&[&what[..], &SMALL].concat());
        let local = local.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        assert!(soon(60, || parties_of(root.path()).len() == 2), "no party began");
        let sent = Command::new("kill").args([&format!("-{signal}"), &local.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let output = local.wait_with_output().unwrap();
        assert!(soon(5, || parties_of(root.path()).is_empty()), "{signal} left {:?}", parties_of(root.path()));
        if says {
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!((output.status.code(), &report["error"]["kind"]), (Some(2), &"interrupted".into()), "{report}");
            assert!(report["error"]["message"].as_str().unwrap().contains(signal), "{report}");
        }
    }
}

#[test]
fn triples_that_no_machine_holds_are_refused_at_once_with_numbers() {
    let root = tempfile::tempdir().unwrap();
    let start = std::time::Instant::now();
    for (number, what) in [
        &["deal", "--shape", "10000x10000x10000"][..],
        &["deal", "--keys", "generate", "--shape", "65536x65536x65536", "--parties", "64"],
        &["deal", "--shape", "65536x1x65536", "--count", "1000000"],
        &["local", "--shape", "30000x30000x30000"],
        &["local", "--shape", "128x128x128", "--count", "1000000", "--parties", "64"],
        &[
            "local",
            "--shape",
            "2x2x2",
            "--max-memory-bytes",
            "1000000",
            "--insecure",
            "--log-n",
            "10",
            "--security",
            "40",
        ],
    ]
    .into_iter()
    .enumerate()
    {
        let out = root.path().join(number.to_string());
        let (code, report) = run(&[what, &["--out", out.to_str().unwrap()]].concat());
        assert_eq!((code, &report["error"]["kind"]), (Some(2), &"memory".into()), "{what:?}: {report}");
        let (message, remedy) = (&report["error"]["message"], &report["error"]["remedy"]);
        assert!(message.as_str().unwrap().contains("bytes of memory"), "{report}");
        assert!(remedy.as_str().unwrap().contains("--max-memory-bytes"), "{report}");
        println!("{what:?}: {message}");
        assert!(!out.join("plan.json").exists() && !out.join("setup/plan.json").exists());
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}
