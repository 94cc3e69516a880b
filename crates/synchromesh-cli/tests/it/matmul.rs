//! The command `matmul`: products of encrypted matrices from files, and what is refused.

use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

fn run(arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_synchromesh"));
    command.args(arguments).arg("--json").env_remove("SYNCHROMESH_ISA");
    let output = command.output().unwrap();
    let text = std::str::from_utf8(&output.stdout).unwrap();
    (output.status.code(), serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}")))
}

fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("matmul-{name}"));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn matrix(name: &str, rows: usize, columns: usize, entry: impl Fn(usize, usize) -> String) -> String {
    let mut text = String::new();
    for i in 0..rows {
        let cells: Vec<String> = (0..columns).map(|j| entry(i, j)).collect();
        writeln!(text, "{}", cells.join(",")).unwrap();
    }
    file(name, &text)
}

fn integers(name: &str, rows: usize, columns: usize) -> String {
    matrix(name, rows, columns, |i, j| format!("{}", (i * 7919 + j * 104_729 + i * j * 31) % 65_537))
}

#[test]
fn every_mode_gives_the_product() {
    let (a, b, out) = (integers("a.csv", 5, 7), integers("b.csv", 7, 3), file("out.csv", ""));
    let mut texts = Vec::new();
    for mode in ["hoist", "reuse", "mixed", "recompute"] {
        let (code, report) = run(&["matmul", &a, &b, "--mode", mode, "--keys", "4", "--out", &out]);
        assert_eq!(code, Some(0), "{report}");
        assert_eq!((&report["rows"], &report["cols"], &report["exact"]), (&5.into(), &3.into(), &true.into()));
        assert!(
            report["security_bits"].as_f64().unwrap() >= 128.0 && !report["slicing"][0].as_str().unwrap().is_empty()
        );
        texts.push(std::fs::read_to_string(&out).unwrap());
    }
    assert!(texts.iter().all(|text| text == &texts[0]));
    let plain = |i: usize, j: usize| -> usize {
        let entry = |i: usize, j: usize| (i * 7919 + j * 104_729 + i * j * 31) % 65_537;
        (0..7).map(|k| entry(i, k) * entry(k, j)).sum::<usize>() % 65_537
    };
    let expected: Vec<String> = (0..5).map(|i| format!("{},{},{}", plain(i, 0), plain(i, 1), plain(i, 2))).collect();
    assert_eq!(texts[0].trim(), expected.join("\n"));
}

#[test]
fn three_factors_and_other_schemes() {
    let (a, b, c) = (integers("d.csv", 4, 6), integers("e.csv", 6, 5), integers("f.csv", 5, 2));
    let (code, report) = run(&["matmul", &a, &b, "--chain", &c, "--mode", "mixed", "--keys", "8"]);
    assert_eq!((code, &report["cols"], &report["exact"]), (Some(0), &2.into(), &true.into()), "{report}");
    let (code, report) = run(&["matmul", &a, &b, "--scheme", "bfv", "--mode", "mixed", "--keys", "8"]);
    assert_eq!((code, &report["exact"]), (Some(0), &true.into()), "{report}");
    let real =
        |name, rows, columns| matrix(name, rows, columns, |i, j| format!("{:.3}", (i * 3 + j) as f64 / 11.0 - 0.7));
    let (a, b) = (real("g.csv", 3, 4), real("h.csv", 4, 5));
    let (code, report) = run(&["matmul", &a, &b, "--scheme", "ckks", "--mode", "mixed", "--keys", "8"]);
    assert_eq!((code, &report["exact"]), (Some(0), &true.into()), "{report}");
    assert!(report["max_error"].as_f64().unwrap() < 2f64.powi(-10));
}

#[test]
fn what_has_no_product_is_refused() {
    let (a, b) = (integers("i.csv", 2, 3), integers("j.csv", 2, 3));
    let large = file("k.csv", "1,2\n3,65537\n5,6\n");
    let low = file("l.csv", "1,2\n3,-32769\n5,6\n");
    let text = file("m.csv", "1,2\n3,x\n5,6\n");
    let half = file("n.csv", "1,2\n3,0.5\n5,6\n");
    let fine = file("o.csv", "1,2\n3,65536\n5,-32768\n");
    for (arguments, kind) in [
        (vec!["matmul", &a, &b], "shapes"),
        (vec!["matmul", &a, &fine, "--chain", &fine], "shapes"),
        (vec!["matmul", &a, &large], "value_exceeds_modulus"),
        (vec!["matmul", &a, &low], "value_exceeds_modulus"),
        (vec!["matmul", &a, &text], "table_text"),
        (vec!["matmul", &a, &half], "table_not_integer"),
        (vec!["matmul", &a, "/no/such/file"], "file_not_found"),
        (vec!["matmul", &a, &fine, "--t", "1"], "plain_modulus_too_small"),
        (vec!["matmul", &a, &fine, "--scheme", "ckks", "--t", "65537"], "usage"),
    ] {
        let (code, report) = run(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {report}");
        let found = report["error"]["kind"].as_str().unwrap();
        assert_eq!(found, kind, "{arguments:?}: {report}");
        assert!(!report["error"]["remedy"].as_str().unwrap().is_empty());
    }
}
