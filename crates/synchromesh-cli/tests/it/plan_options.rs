//! Every option of `plan` through the file session: keys, encryption, two evaluations after one another, decryption.

use crate::shell::Shell;

const X: [i64; 5] = [3, -4, 5, 0, 2];

/// Plans `options` at the smallest degree, computes y = x^2, z = x y + x and y z in three processes without the secret key,
/// so that results go below every leading level, and decrypts all of them; with rotations, z has y turned by one more.
fn session(scheme: &str, options: &str) {
    let shell = Shell::new();
    let exact = scheme != "ckks";
    let scaled = |x: i64| if exact { x as f64 } else { x as f64 / 8.0 };
    let table: String = X.iter().map(|&x| format!("{}\n", scaled(x))).collect();
    shell.write("x.csv", format!("x\n{table}").as_bytes());
    let words: Vec<&str> = options.split_whitespace().collect();
    let security: &[&str] =
        if words.iter().any(|w| ["--security", "--quantum"].contains(w)) { &[] } else { &["--insecure"] };
    shell.succeed(&[&["plan", "--scheme", scheme, "--depth", "3", "--out", "plan.json"], security, &words].concat());
    let run = |arguments: &[&str]| shell.succeed(&[arguments, security_word(security)].concat());
    run(&["keygen", "--plan", "plan.json", "--out", "keys"]);
    shell.rename("keys/secret.key", "away");
    run(&["encrypt", "--keys", "keys", "--in", "x.csv", "--out", "x.ct"]);
    run(&["eval", "x*x", "--keys", "keys", "x=x.ct", "--out", "y.ct"]);
    let low = words.contains(&"--rotation-level");
    let turned = if words.contains(&"--rotations") && !low { " + rotate(y, 1)" } else { "" };
    run(&["eval", &format!("y*x + x{turned}"), "--keys", "keys", "x=x.ct", "y=y.ct", "--out", "z.ct"]);
    run(&["eval", "y*z", "--keys", "keys", "y=y.ct", "z=z.ct", "--out", "w.ct"]);
    // Results of bfv stay at the level of what they are made of.
    if low && scheme != "bfv" {
        run(&["eval", "rotate(w, 1)", "--keys", "keys", "w=w.ct", "--out", "turned.ct"]);
    }
    shell.rename("away", "keys/secret.key");
    for name in ["y", "z", "w"] {
        run(&["decrypt", "--keys", "keys", "--in", &format!("{name}.ct"), "--out", &format!("{name}.csv")]);
    }
    let close = |file: &str, value: &dyn Fn(usize) -> f64| {
        for (i, found) in shell.numbers(file).into_iter().enumerate() {
            let wanted = value(i);
            let off = if exact { 0.0 } else { 1e-3 };
            assert!((found - wanted).abs() <= off, "{scheme} {options} {file}, row {i}: {found} for {wanted}");
        }
    };
    let square = |i: usize| X.get(i).map_or(0.0, |&x| scaled(x) * scaled(x));
    close("y.csv", &square);
    let turned = |i: usize| if turned.is_empty() { 0.0 } else { square(i + 1) };
    let third = |i: usize| square(i) * scaled(X[i]) + scaled(X[i]) + turned(i);
    close("z.csv", &third);
    close("w.csv", &|i| square(i) * third(i));
}

/// What the other commands need to hear where `plan` heard `--insecure`.
fn security_word<'a>(planned: &[&'a str]) -> &'a [&'a str] {
    if planned.is_empty() { &[] } else { &["--insecure"] }
}

/// Options of every scheme.
const OPTIONS: [&str; 13] = [
    "",
    "--rotations 1,-2 --swap",
    "--slots 600",
    "--max-key-bytes 280000 --rotations 1,2,3,5",
    "--max-memory-bytes 100000000",
    "--max-digits 2",
    "--width 40",
    "--prime-switching 1,2",
    "--leading-levels 1",
    "--leading-levels 2 --rotations 1",
    "--leading-levels 3",
    "--prime-switching 1,2 --leading-levels 1 --rotations 1 --swap",
    "--rotation-level 1 --rotations 1",
];

#[test]
fn every_option_of_a_bfv_plan_computes_in_several_steps() {
    OPTIONS.iter().for_each(|options| session("bfv", options));
    session("bfv", "--t 12289 --adds 3");
}

#[test]
fn every_option_of_a_bgv_plan_computes_in_several_steps() {
    OPTIONS.iter().for_each(|options| session("bgv", options));
    session("bgv", "--t 12289 --static");
    session("bgv", "--adds 3");
}

#[test]
fn every_option_of_a_ckks_plan_computes_in_several_steps() {
    OPTIONS.iter().for_each(|options| session("ckks", options));
    session("ckks", "--precision 12 --adds 3");
}

#[test]
fn plans_for_other_levels_of_security_compute_in_several_steps() {
    for (scheme, options) in [("bgv", "--security 192"), ("ckks", "--quantum"), ("bfv", "--quantum --security 192")] {
        session(scheme, options);
    }
}

#[test]
fn a_plan_with_refreshes_has_no_last_level() {
    let shell = Shell::new();
    let x = X.map(|x| x as f64 / 8.0);
    let table: String = x.iter().map(|x| format!("{x}\n")).collect();
    shell.write("0.csv", format!("x\n{table}").as_bytes());
    let run = |arguments: &str| {
        let words: Vec<&str> = arguments.split_whitespace().chain(["--insecure"]).collect();
        shell.succeed(&words);
    };
    run("plan --scheme ckks --bootstrap --depth 3 --precision 12 --out plan.json");
    run("keygen --plan plan.json --out keys");
    shell.rename("keys/secret.key", "away");
    run("encrypt --keys keys --in 0.csv --out 0.ct");
    for step in 1..6 {
        let before = step - 1;
        run(&format!("eval y*x --keys keys y={before}.ct x=0.ct --out {step}.ct"));
    }
    run("eval refresh(y)*x --keys keys y=5.ct x=0.ct --out 6.ct");
    shell.rename("away", "keys/secret.key");
    run("decrypt --keys keys --in 6.ct --out 6.csv");
    for (found, x) in shell.numbers("6.csv").into_iter().zip(x) {
        assert!((found - x.powi(7)).abs() < 1e-3, "{found} for {}", x.powi(7));
    }
}

#[test]
fn a_plan_of_an_exact_scheme_with_refreshes_has_no_last_product() {
    for scheme in ["bfv", "bgv"] {
        let shell = Shell::new();
        let table: String = X.map(|x| format!("{x}\n")).concat();
        shell.write("0.csv", format!("x\n{table}").as_bytes());
        let run = |arguments: &str| {
            let words: Vec<&str> = arguments.split_whitespace().chain(["--insecure"]).collect();
            shell.succeed(&words)
        };
        run(&format!("plan --scheme {scheme} --bootstrap --rotations 1 --out plan.json"));
        run("keygen --plan plan.json --out keys");
        shell.rename("keys/secret.key", "away");
        run("encrypt --keys keys --in 0.csv --out 0.ct");
        for step in 1..6 {
            let before = step - 1;
            run(&format!("eval y*x+rotate(y,1) --keys keys y={before}.ct x=0.ct --out {step}.ct"));
        }
        run("eval refresh(y)*x --keys keys y=5.ct x=0.ct --out 6.ct");
        shell.rename("away", "keys/secret.key");
        run("decrypt --keys keys --in 6.ct --out 6.csv");
        // Beside the numbers there are zeros.
        let mut y = X.to_vec();
        y.push(0);
        let x = y.clone();
        for _ in 1..6 {
            y = (0..x.len()).map(|i| y[i] * x[i] + y.get(i + 1).copied().unwrap_or(0)).collect();
        }
        let expected = y.iter().zip(&x).map(|(y, x)| (y * x).rem_euclid(65537)).take(X.len());
        let found = shell.numbers("6.csv").into_iter().map(|found| (found as i64).rem_euclid(65537));
        assert!(found.eq(expected), "{scheme}");
        // Of another bound there is nothing to say.
        let words = ["plan", "--scheme", scheme, "--bootstrap", "2", "--insecure"];
        shell.fail(&words);
    }
}
