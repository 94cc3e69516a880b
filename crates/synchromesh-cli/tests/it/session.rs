//! The file session over the built command: two columns, an expression in a process without the secret key, and what
//! happens to files that are not what they should be.

use crate::shell::{Shell, error};
use serde_json::Value;

const X: [i64; 7] = [3, -4, 5, 0, 120, -7, 1];
const Y: [i64; 7] = [2, 6, -1, 9, 100, -7, 0];

fn csv(values: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    std::iter::once("value\n".to_owned()).chain(values.into_iter().map(|v| format!("{v}\n"))).collect()
}

/// Plan, keys, two encrypted columns.
fn prepared(plan: &[&str], x: &str, y: &str, encrypt: &[&str]) -> Shell {
    let shell = Shell::new();
    shell.write("x.csv", x.as_bytes());
    shell.write("y.csv", y.as_bytes());
    shell.succeed(&[&["plan", "--out", "plan.json"], plan].concat());
    shell.succeed(&["keygen", "--plan", "plan.json", "--out", "keys"]);
    for name in ["x", "y"] {
        let (table, ciphertext) = (format!("{name}.csv"), format!("{name}.ct"));
        let arguments = ["encrypt", "--keys", "keys", "--in", &table, "--out", &ciphertext];
        shell.succeed(&[&arguments, encrypt].concat());
    }
    shell
}

/// `x*y + 2*x` without the secret key in reach; the decrypted numbers.
fn computed(shell: &Shell) -> Vec<f64> {
    shell.rename("keys/secret.key", "away");
    let arguments = ["eval", "x*y + 2*x", "--keys", "keys", "x=x.ct", "y=y.ct", "--out", "z.ct"];
    let report = shell.succeed(&arguments);
    assert_eq!((&report["rows"], &report["ciphertexts"]), (&Value::from(7), &Value::from(1)));
    shell.rename("away", "keys/secret.key");
    shell.succeed(&["decrypt", "--keys", "keys", "--in", "z.ct", "--out", "z.csv"]);
    shell.numbers("z.csv")
}

fn expected() -> Vec<f64> {
    X.iter().zip(&Y).map(|(x, y)| (x * y + 2 * x) as f64).collect()
}

#[test]
fn bgv_computes_on_files_exactly() {
    let shell = prepared(&["--scheme", "bgv", "--depth", "1"], &csv(X), &csv(Y), &[]);
    assert_eq!(computed(&shell), expected());
    let inspected = shell.succeed(&["inspect", "z.ct"]);
    assert_eq!((&inspected["type"], &inspected["scheme"]), (&Value::from("column"), &Value::from("bgv")));
    assert!(inspected["security_bits"].as_f64().unwrap() >= 128.0);
    assert!(inspected["noise_bits"].as_f64().unwrap() < inspected["modulus_bits"].as_f64().unwrap());
    for (file, kind) in [
        ("plan.json", "plan"),
        ("keys/secret.key", "secret_key"),
        ("keys/public.key", "public_key"),
        ("keys/eval.keys", "evaluation_keys"),
    ] {
        let report = shell.succeed(&["inspect", file]);
        assert_eq!(report["type"], kind);
        assert!(kind == "plan" || report["key_id"] == inspected["key_id"], "{report}");
    }
}

#[test]
fn bfv_computes_on_files_exactly_and_rotates() {
    let plan = ["--scheme", "bfv", "--depth", "1", "--rotations", "1,-2", "--swap"];
    let shell = prepared(&plan, &csv(X), &csv(Y), &[]);
    assert_eq!(computed(&shell), expected());
    shell.succeed(&["eval", "rotate(x, 1) - y", "--keys", "keys", "x=x.ct", "y=y.ct", "--out", "r.ct"]);
    shell.succeed(&["decrypt", "--keys", "keys", "--in", "r.ct", "--out", "r.csv"]);
    let turned: Vec<f64> = (0..7).map(|i| (X.get(i + 1).unwrap_or(&0) - Y[i]) as f64).collect();
    assert_eq!(shell.numbers("r.csv"), turned);
    let missing = ["eval", "rotate(x, 3)", "--keys", "keys", "x=x.ct", "--out", "r.ct"];
    let message = error(&shell.fail(&missing), "missing_key");
    assert!(message.contains("rotat") || message.contains("Galois") || message.contains("automorphism"), "{message}");
}

#[test]
fn ckks_computes_on_files_to_its_precision() {
    let scaled = |values: [i64; 7]| csv(values.map(|v| v as f64 / 128.0));
    let plan = ["--scheme", "ckks", "--depth", "1", "--precision", "25"];
    let shell = prepared(&plan, &scaled(X), &scaled(Y), &[]);
    let result = computed(&shell);
    let exact = X.iter().zip(&Y).map(|(x, y)| (x * y) as f64 / 16384.0 + 2.0 * *x as f64 / 128.0);
    let inspected = shell.succeed(&["inspect", "z.ct"]);
    let bound = inspected["error_bound"].as_f64().unwrap();
    assert!(bound < 1e-6, "{bound}");
    for (value, exact) in result.iter().zip(exact) {
        assert!((value - exact).abs() <= bound, "{value} {exact} {bound}");
    }
}

#[test]
fn published_values_are_the_same_each_time_and_requests_that_cannot_be_met_are_refused() {
    let scaled = |values: [i64; 7]| csv(values.map(|v| v as f64 / 128.0));
    let plan = ["--scheme", "ckks", "--depth", "0", "--precision", "38"];
    let shell = prepared(&plan, &scaled(X), &scaled(Y), &[]);
    let publish = |request: &'static str, out: &'static str| {
        ["decrypt", "--keys", "keys", "--in", "x.ct", "--out", out, "--publish", request]
    };
    let report = shell.succeed(&publish("4,16,40", "a.csv"));
    let precision = report["precision_bits"].as_f64().unwrap();
    assert!(precision >= 4.0 && report["sigma_bits"].as_u64().unwrap() > 20, "{report}");
    shell.succeed(&publish("4,16,40", "b.csv"));
    assert_eq!(shell.read("a.csv"), shell.read("b.csv"));
    shell.succeed(&["decrypt", "--keys", "keys", "--in", "x.ct", "--out", "plain.csv"]);
    assert_ne!(shell.read("a.csv"), shell.read("plain.csv"));
    for (value, x) in shell.numbers("a.csv").iter().zip(X) {
        assert!((value - x as f64 / 128.0).abs() <= (-precision).exp2(), "{value} for {x}/128");
    }
    // Too much precision, no shares, too little security, and what is no request.
    for request in ["35,16,40", "4,0,40", "4,16,20", "nan,1,40", "4,16,4000"] {
        error(&shell.fail(&publish(request, "c.csv")), "release");
    }
    for request in ["10,16", "10,16,40,1", "10,-1,40", "ten,16,40", ""] {
        error(&shell.fail(&publish(request, "c.csv")), "usage");
    }
    assert!(!shell.path("c.csv").exists());
    // Without the secret key: what is left, and how surely it decrypts.
    shell.rename("keys/secret.key", "away");
    let inspected = shell.succeed(&["inspect", "x.ct"]);
    assert!(inspected["budget_bits"].as_f64().unwrap() > 0.0 && inspected["log2_p_fail"] == -128.0, "{inspected}");
    let exact = prepared(&["--scheme", "bgv", "--depth", "0"], &csv(X), &csv(Y), &[]);
    error(&exact.fail(&publish("10,16,40", "c.csv")), "release");
    let inspected = exact.succeed(&["inspect", "x.ct"]);
    let [budget, noise, modulus] =
        ["budget_bits", "noise_bits", "modulus_bits"].map(|k| inspected[k].as_f64().unwrap());
    assert!(budget > 0.0 && (modulus - noise - budget).abs() < 1e-9, "{inspected}");
}

#[test]
fn another_failure_probability_than_the_usual_one_is_in_every_report() {
    let bound = |failure: &'static str| {
        let plan = ["--scheme", "ckks", "--depth", "0", "--precision", "12", "--failure", failure];
        let shell = prepared(&plan, &csv([0.5; 7]), &csv([0.25; 7]), &[]);
        let reports = ["x.ct", "plan.json", "keys/eval.keys"].map(|file| shell.succeed(&["inspect", file]));
        let logs = reports.each_ref().map(|report| report["log2_p_fail"].as_f64().unwrap());
        (logs, reports[0]["error_bound"].as_f64().unwrap())
    };
    let ((often, wider), (seldom, tighter)) = (bound("2^-128"), bound("2^-40"));
    assert_eq!((often, seldom), ([-128.0; 3], [-40.0; 3]));
    assert!(tighter < 0.8 * wider, "{tighter} {wider}");
    let shell = Shell::new();
    let plan = |failure| ["plan", "--scheme", "bgv", "--depth", "1", "--failure", failure, "--explain"];
    let report = shell.succeed(&plan("2^-64"));
    assert!(report["explain"].to_string().contains("failure probability 2^-64"), "{report}");
    let message = error(&shell.fail(&plan("2^-50")), "usage");
    assert!(message.contains("2^-40, 2^-64, 2^-128"), "{message}");
}

#[test]
fn integers_of_128_bits_are_exact() {
    let shell = Shell::new();
    let t = "0xffffffffffffffffffffffffff820001";
    shell.write("x.csv", b"v\n1000000000000000000000000000000\n-5\n");
    shell.succeed(&["plan", "--scheme", "bfv", "--t", t, "--depth", "1", "--out", "plan.json"]);
    shell.succeed(&["keygen", "--plan", "plan.json", "--out", "keys"]);
    shell.succeed(&["encrypt", "--keys", "keys", "--in", "x.csv", "--out", "x.ct"]);
    shell.succeed(&["eval", "(x - 3)*(x + 3) + 7", "--keys", "keys", "x=x.ct", "--out", "z.ct"]);
    shell.succeed(&["decrypt", "--keys", "keys", "--in", "z.ct", "--out", "z.csv"]);
    // 10^60 - 2 and 23 modulo t, centred.
    assert_eq!(shell.read("z.csv"), b"z\n-53988160539778864696827905057520764164\n23\n");
}

#[test]
fn npy_tables_go_in_and_out() {
    let shell = prepared(&["--scheme", "bgv", "--depth", "0"], &csv(X), &csv(Y), &[]);
    shell.succeed(&["decrypt", "--keys", "keys", "--in", "x.ct", "--out", "x.npy"]);
    assert!(shell.read("x.npy").starts_with(b"\x93NUMPY"));
    shell.succeed(&["encrypt", "--keys", "keys", "--in", "x.npy", "--out", "again.ct"]);
    shell.succeed(&["decrypt", "--keys", "keys", "--in", "again.ct", "--out", "again.csv"]);
    assert_eq!(shell.numbers("again.csv"), X.map(|v| v as f64));
}

#[test]
fn a_long_column_takes_several_ciphertexts() {
    let shell = Shell::new();
    let values: Vec<i64> = (0..9000).map(|i| i % 200 - 100).collect();
    shell.write("x.csv", csv(&values).as_bytes());
    shell.succeed(&["plan", "--scheme", "bgv", "--depth", "0", "--out", "plan.json"]);
    shell.succeed(&["keygen", "--plan", "plan.json", "--out", "keys"]);
    let report = shell.succeed(&["encrypt", "--keys", "keys", "--in", "x.csv", "--out", "x.ct"]);
    assert!(report["ciphertexts"].as_u64().unwrap() > 1, "{report}");
    shell.succeed(&["eval", "3 - x", "--keys", "keys", "x=x.ct", "--out", "z.ct"]);
    shell.succeed(&["decrypt", "--keys", "keys", "--in", "z.ct", "--out", "z.csv"]);
    let expected: Vec<f64> = values.iter().map(|v| (3 - v) as f64).collect();
    assert_eq!(shell.numbers("z.csv"), expected);
}

#[cfg(unix)]
#[test]
fn the_secret_key_is_its_owners_and_is_never_overwritten() {
    use std::os::unix::fs::PermissionsExt;
    let shell = Shell::new();
    shell.succeed(&["plan", "--scheme", "ckks", "--depth", "0", "--out", "plan.json"]);
    let keygen = ["keygen", "--plan", "plan.json", "--out", "keys"];
    shell.succeed(&keygen);
    let mode = |file: &str| std::fs::metadata(shell.path(file)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("keys/secret.key"), 0o600);
    let before = shell.read("keys/secret.key");
    error(&shell.fail(&keygen), "file_exists");
    assert_eq!(shell.read("keys/secret.key"), before);
}

#[test]
fn altered_files_and_other_keys_are_refused() {
    let shell = prepared(&["--scheme", "bgv", "--depth", "1"], &csv(X), &csv(Y), &[]);
    shell.succeed(&["keygen", "--plan", "plan.json", "--out", "others"]);
    let x = shell.read("x.ct");
    let eval = ["eval", "x*x", "--keys", "keys", "x=bad.ct", "--out", "z.ct"];
    let refused = |bytes: &[u8], kind: &str| {
        shell.write("bad.ct", bytes);
        error(&shell.fail(&eval), kind);
        assert!(!shell.path("z.ct").exists());
    };
    refused(&x[..x.len() / 2], "truncated");
    refused(&x[..9], "truncated");
    refused(b"", "not_a_container");
    refused(&[&x[..], b"\n"].concat(), "trailing_bytes");
    let mut flipped = x.clone();
    flipped[x.len() / 2] ^= 4;
    refused(&flipped, "body_corrupt");
    let mut newer = x.clone();
    newer[8] = 9;
    refused(&newer, "future_version");
    refused(&shell.read("keys/public.key"), "session");
    error(&shell.fail(&["eval", "x*x", "--keys", "others", "x=x.ct", "--out", "z.ct"]), "wrong_key");
    error(&shell.fail(&["decrypt", "--keys", "others", "--in", "x.ct", "--out", "x.out"]), "wrong_key");
    error(&shell.fail(&["eval", "x*x*x*x*x", "--keys", "keys", "x=x.ct", "--out", "z.ct"]), "noise");
    error(&shell.fail(&["eval", "x*w", "--keys", "keys", "x=x.ct", "--out", "z.ct"]), "usage");
    error(&shell.fail(&["eval", "x/2", "--keys", "keys", "x=x.ct", "--out", "z.ct"]), "expression");
    error(&shell.fail(&["eval", "0.5*x", "--keys", "keys", "x=x.ct", "--out", "z.ct"]), "not_integer");
    shell.write("short.csv", b"1\n2\n");
    shell.succeed(&["encrypt", "--keys", "keys", "--in", "short.csv", "--out", "short.ct"]);
    error(&shell.fail(&["eval", "x+y", "--keys", "keys", "x=x.ct", "y=short.ct", "--out", "z.ct"]), "rows");
    error(&shell.fail(&["decrypt", "--keys", "nowhere", "--in", "x.ct", "--out", "x.out"]), "file_not_found");
    error(&shell.fail(&["inspect", "bad.ct.not"]), "file_not_found");
    error(&shell.fail(&["inspect", "x.csv"]), "format");
}

#[test]
fn tables_that_cannot_be_encrypted_name_the_place() {
    let shell = Shell::new();
    shell.succeed(&["plan", "--scheme", "bgv", "--depth", "0", "--out", "exact.json"]);
    shell.succeed(&["keygen", "--plan", "exact.json", "--out", "exact"]);
    shell.succeed(&["plan", "--scheme", "ckks", "--depth", "0", "--out", "real.json"]);
    shell.succeed(&["keygen", "--plan", "real.json", "--out", "real"]);
    for (keys, table, kind, place) in [
        ("exact", "a\n1\nthree\n", "table_text", "line 3"),
        ("real", "1.5\nNaN\n", "table_not_finite", "line 2"),
        ("real", "1.5\ninf\n", "table_not_finite", "line 2"),
        ("exact", "1\n2.5\n", "table_not_integer", "row 2"),
        ("exact", "1\n70000\n", "value_exceeds_modulus", "70000"),
        ("real", "0.5\n1.5\n", "", "input 1"),
        ("exact", "", "table_empty", ""),
        ("exact", "1,2\n3\n", "table_ragged", "line 2"),
        ("exact", "1,2\n3,4\n", "usage", "2 columns"),
    ] {
        shell.write("t.csv", table.as_bytes());
        let object = shell.fail(&["encrypt", "--keys", keys, "--in", "t.csv", "--out", "t.ct"]);
        let message = error(&object, kind);
        assert!(message.contains(place), "{table:?}: {message}");
        assert!(!shell.path("t.ct").exists());
    }
}

#[test]
fn plans_with_broken_parameters_are_refused() {
    let shell = Shell::new();
    shell.succeed(&["plan", "--scheme", "bgv", "--depth", "1", "--out", "plan.json"]);
    let plan: Value = serde_json::from_slice(&shell.read("plan.json")).unwrap();
    let refused = |change: &dyn Fn(&mut Value), what: &str| {
        let mut broken = plan.clone();
        change(&mut broken);
        shell.write("broken.json", broken.to_string().as_bytes());
        let object = shell.fail(&["keygen", "--plan", "broken.json", "--out", "keys"]);
        let message = error(&object, "");
        assert!(message.contains(what), "{what}: {message}");
        assert!(!shell.path("keys").exists());
    };
    let q = |plan: &Value| plan["params"]["bgv"]["primes"]["q"][0].as_u64().unwrap();
    refused(&|p| p["params"]["bgv"]["primes"]["q"][0] = (q(p) - (1 << 20)).into(), "prime");
    let repeated = |p: &mut Value| {
        p["params"]["bgv"]["primes"]["q"][1] = q(p).into();
        p["params"]["bgv"]["q_bits"][1] = p["params"]["bgv"]["q_bits"][0].clone();
    };
    refused(&repeated, &q(&plan).to_string());
    refused(&|p| p["params"]["bgv"]["log_n"] = 3.into(), "");
    refused(&|p| p["params"]["bgv"]["log_n"] = 64.into(), "64");
    refused(&|p| p["params"]["bgv"]["t"] = q(p).to_string().into(), &q(&plan).to_string());
    refused(&|p| p["params"]["bgv"]["omega"] = 99.into(), "99");
    refused(&|p| p["version"] = 7.into(), "version 7");
    refused(&|p| p["format"] = "poem".into(), "poem");
    refused(&|p| p["surprise"] = 1.into(), "surprise");
}

#[test]
fn less_than_128_bits_takes_the_word() {
    let shell = Shell::new();
    let plan = ["plan", "--scheme", "bgv", "--depth", "3", "--insecure", "--out", "weak.json", "--t", "12289"];
    let report = shell.succeed(&plan);
    assert!(report["security_bits"].as_f64().unwrap() < 128.0, "{report}");
    error(&shell.fail(&["keygen", "--plan", "weak.json", "--out", "keys"]), "insecure");
    shell.succeed(&["keygen", "--plan", "weak.json", "--out", "keys", "--insecure"]);
    shell.write("x.csv", b"1\n");
    let encrypt = ["encrypt", "--keys", "keys", "--in", "x.csv", "--out", "x.ct"];
    error(&shell.fail(&encrypt), "insecure");
    shell.succeed(&[&encrypt[..], &["--insecure"]].concat());
}

#[test]
fn plans_have_the_keys_scripts_rely_on() {
    let shell = Shell::new();
    let plan =
        ["plan", "--scheme", "ckks", "--precision", "15", "--depth", "2", "--rotations", "1,2", "--plot", "p.svg"];
    let report = shell.succeed(&plan);
    for key in [
        "scheme",
        "log_n",
        "slots",
        "q_bits",
        "p_bits",
        "log_qp",
        "security_bits",
        "depth",
        "rotations",
        "key_bytes",
        "scratch_bytes",
        "predicted_ms",
        "log2_p_fail",
        "switch",
        "explain",
    ] {
        assert!(report.get(key).is_some(), "{key}");
    }
    for key in ["method", "omega", "digit_primes", "width"] {
        assert!(report["switch"][0].get(key).is_some(), "{key}");
    }
    shell.succeed(&["plan", "--scheme", "bgv", "--depth", "1", "--out", "plan.json"]);
    shell.succeed(&["inspect", "plan.json", "--plot", "q.svg"]);
    assert!(shell.read("q.svg").starts_with(b"<svg"));
    let deep = shell.succeed(&["plan", "--scheme", "ckks", "--depth", "6"]);
    assert!(deep["security_bits"].as_f64().unwrap() >= 128.0 && deep["switch"].as_array().unwrap().len() == 7);
    assert!(shell.read("p.svg").starts_with(b"<svg"));
    for (flags, kind) in [
        (&["--scheme", "ckks", "--t", "17"][..], "usage"),
        (&["--scheme", "bgv", "--precision", "20"], "usage"),
        (&["--scheme", "bgv", "--t", "1"], ""),
        (&["--scheme", "bgv", "--quantum", "--insecure"], "usage"),
        (&["--scheme", "bgv", "--prime-switching", "2"], "usage"),
        (&["--scheme", "bgv", "--prime-switching", "3,2"], "params"),
        (&["--scheme", "bfv", "--static"], "request"),
        (&["--scheme", "bgv", "--width", "70"], "request"),
        (&["--scheme", "bgv", "--max-memory-bytes", "1000"], "plan_memory"),
        (&["--scheme", "bgv", "--max-key-bytes", "1000"], "plan_key_bytes"),
        (&["--scheme", "bgv", "--slots", "1000000"], "plan_slots"),
        (&["--scheme", "bgv", "--profile", "p.json"], "file_not_found"),
        (&["--scheme", "bgv", "--security", "100"], "usage"),
        (&["--scheme", "rsa"], "usage"),
        (&["--scheme", "ckks", "--precision", "90"], "request"),
    ] {
        error(&shell.fail(&[&["plan", "--depth", "1"], flags].concat()), kind);
    }
    error(&shell.fail(&["plan", "--scheme", "ckks", "--depth", "40"]), "plan_security");
    for flags in [
        &["--quantum"][..],
        &["--quantum", "--security", "192"],
        &["--static"],
        &["--max-digits", "2"],
        &["--width", "60"],
        &["--prime-switching", "1,2", "--leading-levels", "1"],
    ] {
        let report = shell.succeed(&[&["plan", "--scheme", "bgv", "--depth", "2", "--explain"], flags].concat());
        assert!(report["security_bits"].as_f64().unwrap() >= 128.0, "{flags:?}");
        let quantum = report["cost_model"].as_str().unwrap().starts_with("quantum");
        assert_eq!(quantum, flags[0] == "--quantum", "{flags:?}");
    }
}

#[test]
fn rotations_from_fewer_keys_work_through_files() {
    let plan =
        ["plan", "--scheme", "bgv", "--depth", "1", "--insecure", "--rotations", "1,2,3,5,6,7", "--out", "plan.json"];
    let shell = Shell::new();
    let whole = shell.succeed(&plan);
    let budget = (whole["key_bytes"].as_u64().unwrap() * 2 / 3).to_string();
    let less = shell.succeed(&[&plan[..], &["--max-key-bytes", &budget]].concat());
    assert!(less["key_bytes"].as_u64().unwrap() <= budget.parse().unwrap(), "{less}");
    shell.succeed(&["keygen", "--plan", "plan.json", "--out", "keys", "--insecure"]);
    shell.write("x.csv", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    shell.succeed(&["encrypt", "--keys", "keys", "--in", "x.csv", "--out", "x.ct", "--insecure"]);
    shell.succeed(&["eval", "rotate(x, 7) + rotate(x, 5)", "--keys", "keys", "x=x.ct", "--out", "y.ct", "--insecure"]);
    shell.succeed(&["decrypt", "--keys", "keys", "--in", "y.ct", "--out", "y.csv", "--insecure"]);
    let text = String::from_utf8(shell.read("y.csv")).unwrap();
    let numbers: Vec<i64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(numbers[..4], [8 + 6, 9 + 7, 8, 9], "{text}");
}

/// The ciphertexts of a column are worked on side by side, in their order: each row meets its own, on any number of threads.
#[test]
fn a_long_column_is_the_same_on_any_number_of_threads() {
    let shell = Shell::small();
    let rows = 4 * 1024 + 5;
    shell.write("long.csv", csv((0..rows).map(|i| i % 151)).as_bytes());
    let with = |threads: &str, arguments: &[&str]| {
        let output = shell.command(arguments).env("SYNCHROMESH_THREADS", threads).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    };
    let mut first = None;
    for threads in ["1", "2", "3"] {
        let x = format!("long-{threads}.ct");
        with(threads, &["encrypt", "--keys", "keys", "--in", "long.csv", "--out", &x, "--insecure"]);
        with(threads, &["eval", "x*x + x", "x=long-1.ct", "--keys", "keys", "--out", "z.ct", "--insecure"]);
        let value = first.get_or_insert_with(|| shell.read("z.ct"));
        assert!(shell.read("z.ct") == *value, "{threads} threads");
        for (file, expected) in [(&*x, (|v| v) as fn(i64) -> i64), ("z.ct", |v| v * v + v)] {
            with(threads, &["decrypt", "--keys", "keys", "--in", file, "--out", "out.csv", "--force", "--insecure"]);
            let right = (0..rows).map(|i| expected(i % 151) as f64);
            assert!(shell.numbers("out.csv").into_iter().eq(right), "{file}");
        }
    }
}

#[test]
fn functions_of_integers_are_exact_on_files() {
    let expression = "less(x, y, 0, 9) + 2*equal(x, y, 0, 9) + 10*lookup(x, 0, 5, -7, 9, 0, 1, 2, 3, 4, 8, 6)";
    for scheme in ["bfv", "bgv"] {
        let (x, y): (Vec<i64>, Vec<i64>) = (0..100).map(|i| (i / 10, i % 10)).unzip();
        let shell = Shell::new();
        shell.write("x.csv", csv(&x).as_bytes());
        shell.write("y.csv", csv(&y).as_bytes());
        let plan = ["plan", "--out", "plan.json", "--scheme", scheme, "--expression", expression, "--insecure"];
        let report = shell.succeed(&plan);
        // The multiple of a comparison is a level more.
        assert_eq!(report["depth"], 6, "{report}");
        shell.succeed(&["keygen", "--plan", "plan.json", "--out", "keys", "--insecure"]);
        for name in ["x", "y"] {
            let (table, ciphertext) = (format!("{name}.csv"), format!("{name}.ct"));
            shell.succeed(&["encrypt", "--keys", "keys", "--in", &table, "--out", &ciphertext, "--insecure"]);
        }
        shell.succeed(&["eval", expression, "--keys", "keys", "x=x.ct", "y=y.ct", "--out", "z.ct", "--insecure"]);
        shell.succeed(&["decrypt", "--keys", "keys", "--in", "z.ct", "--out", "z.csv", "--insecure"]);
        let table = [5, -7, 9, 0, 1, 2, 3, 4, 8, 6];
        let clear = |(x, y): (&i64, &i64)| {
            (i64::from(x < y) + 2 * i64::from(x == y) + 10 * table[usize::try_from(*x).unwrap()]) as f64
        };
        assert!(shell.numbers("z.csv").into_iter().eq(x.iter().zip(&y).map(clear)), "{scheme}");
    }
    let shell = Shell::new();
    error(&shell.fail(&["plan", "--scheme", "bgv", "--expression", "less(x, y, 0, 9999)"]), "argument");
    error(&shell.fail(&["plan", "--scheme", "bgv", "--expression", "less(x, y)"]), "expression");
}

#[test]
fn functions_are_planned_for_and_computed_within_their_certificates() {
    let scaled = |values: [i64; 7]| csv(values.map(|v| v as f64 / 128.0));
    let expression = "max(x, y, -1, 1, 0.02) + 0.5*sigmoid(4*x, -4, 4, 1e-3)";
    let plan = ["--scheme", "ckks", "--expression", expression, "--precision", "5", "--insecure"];
    let plan = [&plan[..], &["--bounds", "x=1,y=1"]].concat();
    let shell = Shell::new();
    shell.write("x.csv", scaled(X).as_bytes());
    shell.write("y.csv", scaled(Y).as_bytes());
    let report = shell.succeed(&[&["plan", "--out", "plan.json"], &plan[..]].concat());
    assert!(report["depth"].as_u64().unwrap() >= 6, "{report}");
    shell.succeed(&["keygen", "--plan", "plan.json", "--out", "keys", "--insecure"]);
    for name in ["x", "y"] {
        let (table, ciphertext) = (format!("{name}.csv"), format!("{name}.ct"));
        shell.succeed(&["encrypt", "--keys", "keys", "--in", &table, "--out", &ciphertext, "--insecure"]);
    }
    let eval = |expression: &'static str| {
        ["eval", expression, "--keys", "keys", "x=x.ct", "y=y.ct", "--out", "z.ct", "--insecure"]
    };
    shell.succeed(&eval(expression));
    shell.succeed(&["decrypt", "--keys", "keys", "--in", "z.ct", "--out", "z.csv", "--insecure"]);
    let bound = shell.succeed(&["inspect", "z.ct"])["error_bound"].as_f64().unwrap();
    // Certificates in files do not say that x and y are independent: a little more than was planned for.
    assert!(bound < 1.0 / 16.0, "{bound}");
    for (value, (x, y)) in shell.numbers("z.csv").iter().zip(X.iter().zip(&Y)) {
        let (x, y) = (*x as f64 / 128.0, *y as f64 / 128.0);
        let expected = x.max(y) + 0.5 / (1.0 + (-4.0 * x).exp());
        assert!((value - expected).abs() <= bound, "{value} {expected} {bound}");
    }
    // What is refused, by its place in the text, before keys are read.
    error(&shell.fail(&eval("inverse(x, -1, 1) + y")), "singular");
    error(&shell.fail(&eval("exp(x, -1, 1, 1e-18) + y")), "tolerance");
    error(&shell.fail(&eval("exp(x, 1) + y")), "expression");
    error(&shell.fail(&eval("exp(x, -0.5, 0.5) + y")), "interval");
    let exact = shell.fail(&["plan", "--scheme", "bfv", "--expression", "exp(x)"]);
    assert!(error(&exact, "scheme").contains("bfv"), "{exact:?}");
    error(&shell.fail(&["plan", "--scheme", "ckks", "--expression", "x*y", "--bounds", "z=2"]), "usage");
    error(&shell.fail(&["plan", "--scheme", "ckks"]), "usage");
    error(&shell.fail(&["plan", "--scheme", "ckks", "--expression", "less(x, y, 0, 3)", "--bounds", "x=1"]), "scheme");
    let report = shell.succeed(&["plan", "--scheme", "bgv", "--expression", "x*y + rotate(x, 3)"]);
    assert_eq!((&report["depth"], &report["rotations"]), (&Value::from(1), &serde_json::json!([3])));
}
