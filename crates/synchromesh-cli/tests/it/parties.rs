//! The command `parties`: three processes over TLS on the loopback make a key, anybody computes, those who are there decrypt; and
//! what becomes of those who are silent, too few, twice there, or hold something else.

use crate::shell::{Shell, error};
use serde_json::Value;
use std::net::TcpListener;
use std::process::Child;
use std::thread;
use synchromesh::bundle::{Bundle, KEY, Kind, PLAN};
use synchromesh_rlwe::file::{Access, Existing};
use synchromesh_rlwe::wire::{EnvelopeKey, HEADER_BYTES, TRAILER_BYTES};

const X: [i64; 5] = [3, -4, 5, 0, 120];
const Y: [i64; 5] = [2, 6, -1, 9, 100];

/// Parties with identities and a list, in a directory of their own.
struct Parties {
    shell: Shell,
    count: usize,
}

/// The lines of a list at ports that are free.
fn list(fingerprints: &[String]) -> String {
    let listeners: Vec<TcpListener> = fingerprints.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let line = |(print, listener): (&String, &TcpListener)| format!("{} {print}\n", listener.local_addr().unwrap());
    fingerprints.iter().zip(&listeners).map(line).collect()
}

impl Parties {
    fn new(count: usize) -> Self {
        let shell = Shell::new();
        let one = |i: usize| {
            let report = shell.succeed(&["parties", "identity", "--out", &format!("{i}.identity")]);
            report["fingerprint"].as_str().unwrap().to_owned()
        };
        let fingerprints: Vec<String> = (0..count).map(one).collect();
        shell.write("hosts", list(&fingerprints).as_bytes());
        Self { shell, count }
    }

    /// Of a plan, with keys.
    fn with_keys(count: usize, plan: &[&str]) -> Self {
        let parties = Self::new(count);
        let number = count.to_string();
        let head = ["plan", "--out", "plan.json", "--insecure", "--parties", &number];
        parties.shell.succeed(&[&head, plan].concat());
        let reports = parties.all(&(0..count).collect::<Vec<_>>(), |i| keygen(i, "plan.json"));
        assert!(
            reports.iter().all(|report| report["key_id"] == reports[0]["key_id"] && report["files"][4].is_object()),
            "{reports:?}"
        );
        parties
    }

    /// The command of each of these parties, all at once; their objects.
    fn all(&self, members: &[usize], arguments: impl Fn(usize) -> Vec<String> + Sync) -> Vec<Value> {
        thread::scope(|scope| {
            let run = |i: usize| {
                let arguments = arguments(i);
                scope.spawn(move || {
                    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                    let output = self.shell.command(&arguments).output().unwrap();
                    let text = String::from_utf8(output.stdout).unwrap();
                    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {text}"))
                })
            };
            let runs: Vec<_> = members.iter().map(|&i| run(i)).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        })
    }

    /// Columns x and y, encrypted at parties 0 and 1.
    fn encrypt(&self, scale: f64) {
        for (i, (name, values)) in [("x", X), ("y", Y)].into_iter().enumerate() {
            let numbers =
                values.map(|v| if scale == 1.0 { format!("{v}\n") } else { format!("{}\n", v as f64 * scale) });
            self.shell.write(&format!("{name}.csv"), format!("v\n{}", numbers.concat()).as_bytes());
            let (keys, table, out) = (format!("party-{i}"), format!("{name}.csv"), format!("{name}.ct"));
            self.shell.succeed(&["parties", "encrypt", "--insecure", "--keys", &keys, "--in", &table, "--out", &out]);
        }
    }

    /// Decrypts a file among these; their objects.
    fn decrypt(&self, members: &[usize], file: &str, more: &[&str]) -> Vec<Value> {
        self.all(members, |i| decrypt(i, members, file, more))
    }

    fn spawn(&self, arguments: &[String]) -> Child {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.shell.command(&arguments).stdout(std::process::Stdio::null()).spawn().unwrap()
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn keygen(i: usize, plan: &str) -> Vec<String> {
    words(&format!(
        "parties keygen --insecure --timeout 30 --plan {plan} --out party-{i} --hosts hosts --identity {i}.identity"
    ))
}

fn decrypt(i: usize, members: &[usize], file: &str, more: &[&str]) -> Vec<String> {
    let with: Vec<String> = members.iter().map(usize::to_string).collect();
    let text = format!(
        "parties decrypt --insecure --timeout 20 --keys party-{i} --hosts hosts --identity {i}.identity --with {} --in {file} --out {file}-{i}.csv",
        with.join(",")
    );
    words(&text).into_iter().chain(more.iter().map(|&word| word.to_owned())).collect()
}

/// The same with so many seconds of patience.
fn patient(mut arguments: Vec<String>, seconds: &str) -> Vec<String> {
    let at = arguments.iter().position(|word| word == "--timeout").unwrap() + 1;
    arguments[at] = seconds.to_owned();
    arguments
}

/// The command that makes a file fresh among these.
fn refresh(i: usize, members: &[usize], file: &str) -> Vec<String> {
    let mut arguments = decrypt(i, members, file, &[]);
    arguments[1] = "refresh".to_owned();
    let out = arguments.iter().position(|word| word == "--out").unwrap() + 1;
    arguments[out] = format!("fresh-{i}-{file}");
    arguments
}

/// What each of these errors is.
fn kinds(reports: &[Value]) -> Vec<&str> {
    reports.iter().map(|report| report["error"]["kind"].as_str().unwrap_or("none")).collect()
}

/// x y + 2 x by three parties in three processes, all of whom decrypt or two of them, one missing.
fn computes(plan: &[&str], members: &[usize], scale: f64, tolerance: f64) {
    let parties = Parties::with_keys(3, plan);
    parties.encrypt(scale);
    let shell = &parties.shell;
    // Somebody who has no share.
    std::fs::create_dir(shell.path("cloud")).unwrap();
    for name in ["public.key", "eval.keys", "envelope.key"] {
        shell.write(&format!("cloud/{name}"), &shell.read(&format!("party-2/{name}")));
    }
    for (expression, out) in [("x*y + 2*x", "z.ct"), ("x - y", "w.ct")] {
        shell.succeed(&["eval", expression, "--insecure", "--keys", "cloud", "x=x.ct", "y=y.ct", "--out", out]);
    }
    let expected: Vec<f64> =
        X.iter().zip(&Y).map(|(&x, &y)| (x * y) as f64 * scale * scale + 2.0 * x as f64 * scale).collect();
    let reports = parties.decrypt(members, "z.ct", &[]);
    for (&i, report) in members.iter().zip(&reports) {
        assert_eq!(report["members"], serde_json::json!(members), "{report}");
        let found = shell.numbers(&format!("z.ct-{i}.csv"));
        assert_eq!(found.len(), 5);
        let bound = report["error_bound"].as_f64().unwrap_or(0.0);
        assert!(bound <= tolerance, "{report}");
        assert!(found.iter().zip(&expected).all(|(x, y)| (x - y).abs() <= bound), "{found:?} {expected:?}");
    }
    let again = parties.decrypt(members, "z.ct", &[]);
    assert!(
        again.iter().all(|report| ["decrypted_before", "abort"].contains(&report["error"]["kind"].as_str().unwrap()))
    );
    assert!(kinds(&again).contains(&"decrypted_before"), "{again:?}");
    // To one who has a key of its own: nobody else sees.
    shell.succeed(&["keygen", "--plan", "plan.json", "--out", "receiver", "--insecure"]);
    let reports = parties.decrypt(members, "w.ct", &["--to", "receiver"]);
    assert!(reports.iter().all(|report| report["authenticated"] == true), "{reports:?}");
    let passed = format!("w.ct-{}.csv", members[0]);
    shell.succeed(&["decrypt", "--keys", "receiver", "--insecure", "--in", &passed, "--out", "w.csv"]);
    let found = shell.numbers("w.csv");
    let expected = X.iter().zip(&Y).map(|(x, y)| (x - y) as f64 * scale);
    assert!(found.iter().zip(expected).all(|(x, y)| (x - y).abs() <= tolerance), "{found:?}");
}

/// x^2 y^2 under a plan for one product: what has no level left is made fresh between them, and the same by all.
fn goes_on(plan: &[&str], members: &[usize], scale: f64, tolerance: f64) {
    let parties = Parties::with_keys(3, plan);
    parties.encrypt(scale);
    let shell = &parties.shell;
    let eval = |expression: &str, inputs: &[&str], out: &str| {
        let head = ["eval", expression, "--insecure", "--keys", "party-0"];
        shell.succeed(&[&head, inputs, &["--out", out]].concat())
    };
    eval("x*y", &["x=x.ct", "y=y.ct"], "z.ct");
    let reports = parties.all(members, |i| refresh(i, members, "z.ct"));
    let first = format!("fresh-{}-z.ct", members[0]);
    for (&i, report) in members.iter().zip(&reports) {
        assert_eq!((&report["authenticated"], &report["rows"]), (&true.into(), &5.into()), "{report}");
        assert!(report["level"].as_u64().unwrap() > 0 && report["decryptions"] == 1, "{report}");
        assert_eq!(shell.read(&format!("fresh-{i}-z.ct")), shell.read(&first), "one file for all");
    }
    // It has been shown, hidden: nobody shows it again.
    let again = parties.decrypt(members, "z.ct", &[]);
    assert!(kinds(&again).contains(&"decrypted_before"), "{again:?}");
    eval("z*z", &[&format!("z={first}")], "w.ct");
    let reports = parties.decrypt(members, "w.ct", &[]);
    let expected: Vec<f64> = X.iter().zip(&Y).map(|(&x, &y)| ((x * y).pow(2)) as f64 * scale.powi(4)).collect();
    for (&i, report) in members.iter().zip(&reports) {
        let (found, bound) = (shell.numbers(&format!("w.ct-{i}.csv")), report["error_bound"].as_f64().unwrap_or(0.0));
        assert!(bound <= tolerance, "{report}");
        assert!(found.iter().zip(&expected).all(|(x, y)| (x - y).abs() <= bound), "{found:?} {expected:?}");
    }
}

/// The plaintext modulus holds x^2 y^2.
const WIDE: [&str; 2] = ["--t", "469762049"];

#[test]
fn a_column_is_made_fresh_by_those_who_are_there_bgv() {
    goes_on(&[&["--scheme", "bgv"], &WIDE[..], &TWO_OF_THREE[..]].concat(), &[0, 2], 1.0, 0.0);
}

#[test]
fn a_column_is_made_fresh_by_those_who_are_there_bfv() {
    goes_on(&[&["--scheme", "bfv"], &WIDE[..], &ALL[..]].concat(), &[0, 1, 2], 1.0, 0.0);
}

#[test]
fn a_column_is_made_fresh_by_those_who_are_there_ckks() {
    // What hides a message of CKKS takes room: a product of a plan for two.
    let deeper = ["--depth", "2", "--threshold", "2", "--decryptions", "4"];
    goes_on(&[&["--scheme", "ckks", "--precision", "12"], &deeper[..]].concat(), &[1, 2], UNIT, 2f64.powi(-9));
}

const TWO_OF_THREE: [&str; 6] = ["--depth", "1", "--threshold", "2", "--decryptions", "4"];
const ALL: [&str; 4] = ["--depth", "1", "--decryptions", "4"];
/// For numbers of magnitude at most 1.
const UNIT: f64 = 1.0 / 128.0;

#[test]
fn two_of_three_compute_and_decrypt_while_one_is_missing_bgv() {
    computes(&[&["--scheme", "bgv"], &TWO_OF_THREE[..]].concat(), &[0, 2], 1.0, 0.0);
}

#[test]
fn two_of_three_compute_and_decrypt_while_one_is_missing_bfv() {
    computes(&[&["--scheme", "bfv"], &TWO_OF_THREE[..]].concat(), &[1, 2], 1.0, 0.0);
}

#[test]
fn two_of_three_compute_and_decrypt_while_one_is_missing_ckks() {
    computes(&[&["--scheme", "ckks", "--precision", "12"], &TWO_OF_THREE[..]].concat(), &[0, 1], UNIT, 2f64.powi(-11));
}

#[test]
fn three_of_three_compute_and_decrypt_bgv() {
    computes(&[&["--scheme", "bgv"], &ALL[..]].concat(), &[0, 1, 2], 1.0, 0.0);
}

#[test]
fn three_of_three_compute_and_decrypt_bfv() {
    computes(&[&["--scheme", "bfv"], &ALL[..]].concat(), &[0, 1, 2], 1.0, 0.0);
}

#[test]
fn three_of_three_compute_and_decrypt_ckks() {
    computes(&[&["--scheme", "ckks", "--precision", "12"], &ALL[..]].concat(), &[0, 1, 2], UNIT, 2f64.powi(-11));
}

const PROVEN: [&str; 5] = ["--depth", "1", "--decryptions", "4", "--proofs"];

#[test]
fn three_of_three_who_prove_their_shares_compute_and_decrypt_bgv() {
    computes(&[&["--scheme", "bgv"], &PROVEN[..]].concat(), &[0, 1, 2], 1.0, 0.0);
}

#[test]
fn two_of_three_who_prove_their_shares_compute_and_decrypt_bfv() {
    computes(&[&["--scheme", "bfv", "--threshold", "2"], &PROVEN[..]].concat(), &[0, 2], 1.0, 0.0);
}

#[test]
fn two_of_three_who_prove_their_shares_compute_and_decrypt_ckks() {
    let plan = ["--scheme", "ckks", "--precision", "12", "--threshold", "2"];
    computes(&[&plan[..], &PROVEN[..]].concat(), &[1, 2], UNIT, 2f64.powi(-11));
}

/// Another's secret, and what that is known by, in the place of a party's own, in a file that is authentic: what it shows is as
/// well formed as any, and proven of the other's secret.
fn with_the_secret_of(shell: &Shell, other: usize, party: usize) {
    let read = |name: &str| Bundle::read(&shell.path(name)).unwrap();
    let envelope = read(&format!("party-{party}/envelope.key"));
    let (params, _) = envelope.plan().unwrap().params.check().unwrap();
    let envelope = EnvelopeKey::from_container(&params, envelope.one(KEY).unwrap()).unwrap().0;
    let [theirs, own] = [other, party].map(|i| read(&format!("party-{i}/share.key")));
    let (mut share, plan) = (own.one(KEY).unwrap().to_vec(), own.one(PLAN).unwrap().to_vec());
    // Behind the plan, the number, and the key of the noise is the secret, then a seed and what the secrets of all three are known by.
    let begin = HEADER_BYTES + 29 + 8 + 32;
    let each = (share.len() - TRAILER_BYTES - begin - 32) / 4;
    share[begin..begin + each].copy_from_slice(&theirs.one(KEY).unwrap()[begin..begin + each]);
    let known = |i: usize| begin + each + 32 + i * each;
    share.copy_within(known(other)..known(other) + each, known(party));
    let body = share.len() - TRAILER_BYTES;
    let digest = blake3::hash(&share[..body]);
    share[body..].copy_from_slice(digest.as_bytes());
    let (path, sections) = (shell.path(&format!("party-{party}/share.key")), [(PLAN, &plan[..]), (KEY, &share[..])]);
    std::fs::remove_file(&path).unwrap();
    Bundle::write(&path, Kind::KeyShare, &sections, Some(&envelope), (Access::Secret, Existing::Keep)).unwrap();
}

/// A party that shows what is no share of its own is named by the others, and what it was to see is not decrypted again.
#[test]
fn a_party_that_does_not_prove_what_it_shows_is_named() {
    let parties = Parties::with_keys(3, &[&["--scheme", "bgv"], &PROVEN[..]].concat());
    parties.encrypt(1.0);
    let shell = &parties.shell;
    let honest = shell.read("party-2/share.key");
    with_the_secret_of(shell, 1, 2);
    let reports = parties.decrypt(&[0, 1, 2], "x.ct", &[]);
    let says = |report: &Value| error(report, "abort").contains("party 2 sent what it did not prove");
    // Who hears of it from the other first has not looked itself.
    assert!(reports[..2].iter().any(says), "{reports:?}");
    let names = |report: &Value| error(report, "abort").contains("party 2");
    assert!(reports[..2].iter().all(names), "{reports:?}");
    assert!(!shell.path("x.ct-0.csv").exists() && !shell.path("x.ct-1.csv").exists());
    shell.write("party-2/share.key", &honest);
    let again = parties.decrypt(&[0, 1, 2], "x.ct", &[]);
    assert!(kinds(&again).contains(&"decrypted_before"), "{again:?}");
    let shown = parties.decrypt(&[0, 1, 2], "y.ct", &[]);
    assert!(shown.iter().all(|report| report["rows"] == 5), "{shown:?}");
    // There are no secrets for any half of 64, and nobody else can have the key.
    let many = words("plan --scheme bgv --depth 1 --insecure --parties 64 --threshold 32 --proofs --out many.json");
    let refused = shell.fail(&many.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(refused["error"]["message"].as_str().unwrap().contains("let all 64 decrypt"), "{refused}");
    let handed = words(
        "parties reshare --insecure --keys party-0 --out new --hosts hosts --new-hosts hosts --identity 0.identity",
    );
    let refused = shell.fail(&handed.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(error(&refused, "joint_key").contains("proof of their shares"));
}

/// The command by which a party, by its number among all five, hands the key on.
fn reshare(i: usize, keys: &str, out: &str, with: &str) -> Vec<String> {
    words(&format!(
        "parties reshare --insecure --timeout 30 --keys {keys} --out {out} --hosts hosts --new-hosts new-hosts --identity {i}.identity --with {with} --threshold 3"
    ))
}

/// Of three, two of whom decrypt, one is away, one leaves and one stays; three come. What was encrypted before, three of the four
/// decrypt, and nobody what was decrypted before.
#[test]
fn a_key_is_handed_on_to_others_who_decrypt_what_was_encrypted_before() {
    let parties = Parties::with_keys(3, &[&["--scheme", "bgv"], &TWO_OF_THREE[..]].concat());
    parties.encrypt(1.0);
    let shell = &parties.shell;
    let shown = parties.decrypt(&[0, 1], "y.ct", &[]);
    assert!(shown.iter().all(|report| report["rows"] == 5), "{shown:?}");
    let fingerprint = |i: usize| {
        let report = shell.succeed(&["parties", "identity", "--out", &format!("{i}.identity")]);
        report["fingerprint"].as_str().unwrap().to_owned()
    };
    let come: Vec<String> = (3..6).map(fingerprint).collect();
    let hosts = String::from_utf8(shell.read("hosts")).unwrap();
    let stays = hosts.lines().nth(2).unwrap();
    shell.write("new-hosts", format!("{}{stays}\n", list(&come)).as_bytes());
    std::fs::create_dir(shell.path("copy")).unwrap();
    for name in ["public.key", "eval.keys", "envelope.key"] {
        shell.write(&format!("copy/{name}"), &shell.read(&format!("party-2/{name}")));
    }
    let keys = |i: usize| if i < 3 { format!("party-{i}") } else { "copy".to_owned() };
    // Too few give, and a stranger: nobody is called.
    let alone = reshare(0, "party-0", "nowhere", "0");
    let report = shell.fail(&alone.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(error(&report, "too_few_parties").contains("2 of the 3"));
    let stranger = reshare(1, "party-1", "nowhere", "0,2");
    error(&shell.fail(&stranger.iter().map(String::as_str).collect::<Vec<_>>()), "unlisted_party");
    let reports = parties.all(&[0, 2, 3, 4, 5], |i| reshare(i, &keys(i), &format!("new-{i}"), "0,2"));
    assert!(reports.iter().all(|report| report["givers"] == serde_json::json!([0, 2])), "{reports:?}");
    let places: Vec<&Value> = reports.iter().map(|report| &report["party"]).collect();
    assert_eq!(places, [&Value::Null, &3.into(), &0.into(), &1.into(), &2.into()]);
    assert_eq!(reports[0]["delete"].as_array().unwrap().len(), 2);
    assert!(!shell.path("new-0").exists());
    for name in ["public.key", "eval.keys", "envelope.key"] {
        assert_eq!(shell.read(&format!("new-4/{name}")), shell.read(&format!("party-0/{name}")), "{name}");
    }
    for name in ["share.key", "share.journal"] {
        std::fs::remove_file(shell.path(&format!("party-0/{name}"))).unwrap();
    }
    // As numbers of the new list: 3, 4 and 5 have 0, 1 and 2.
    let decrypt_new = |members: &[usize], file: &str| {
        let with: Vec<String> = members.iter().map(usize::to_string).collect();
        let identities = [3, 4, 5, 2];
        parties.all(members, |member| {
            let i = identities[member];
            words(&format!(
                "parties decrypt --insecure --timeout 20 --keys new-{i} --hosts new-hosts --identity {i}.identity --with {} --in {file} --out {file}-{i}.csv",
                with.join(",")
            ))
        })
    };
    // What one of those who gave had decrypted stays decrypted.
    let before = decrypt_new(&[0, 1, 2], "y.ct");
    assert!(kinds(&before).contains(&"decrypted_before"), "{before:?}");
    let reports = decrypt_new(&[0, 2, 3], "x.ct");
    assert!(reports.iter().all(|report| report["decryptions"] == 3), "{reports:?}");
    for i in [3, 5, 2] {
        assert_eq!(shell.numbers(&format!("x.ct-{i}.csv")), X.map(|x| x as f64));
    }
    let few = decrypt_new(&[0, 1], "x.ct");
    assert_eq!(kinds(&few), ["too_few_parties"; 2]);
    // Old shares and new ones are not of one key any more.
    shell.succeed(&["encrypt", "--insecure", "--keys", "copy", "--in", "x.csv", "--out", "w.ct"]);
    shell.write("new-3/share.key", &shell.read("party-2/share.key"));
    assert!(decrypt_new(&[0, 1, 2], "w.ct").iter().all(|report| report["error"].is_object()));
}

#[test]
fn what_does_not_fit_is_refused_before_anybody_is_called() {
    let parties = Parties::with_keys(3, &[&["--scheme", "bgv"], &TWO_OF_THREE[..]].concat());
    parties.encrypt(1.0);
    let shell = &parties.shell;
    let fail = |arguments: Vec<String>, kind: &str| {
        let report = shell.fail(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        error(&report, kind)
    };
    let with = |members: &[usize]| decrypt(0, members, "x.ct", &[]);
    assert!(fail(with(&[0]), "too_few_parties").contains("2 of the 3"));
    fail(with(&[1, 2]), "not_among");
    fail(with(&[0, 7]), "parties");
    // Keys stay.
    let before = shell.read("party-0/share.key");
    fail(keygen(0, "plan.json"), "file_exists");
    assert_eq!(shell.read("party-0/share.key"), before);
    let mut secure = keygen(0, "plan.json");
    secure.retain(|word| word != "--insecure");
    fail(secure, "insecure");
    fail([keygen(1, "plan.json"), words("--least-statistical-security 200")].concat(), "below_floor");
    shell.succeed(&["plan", "--scheme", "bgv", "--depth", "1", "--insecure", "--out", "alone.json"]);
    fail(keygen(1, "alone.json"), "not_a_joint_plan");
    // A certificate that nobody vouches for: how much a share has to hide is nobody's word.
    shell.rename("party-1/envelope.key", "away");
    shell.succeed(
        &words("eval 2*x --insecure --trust-certificate --keys party-1 x=x.ct --out v.ct")
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
    );
    shell.rename("away", "party-1/envelope.key");
    fail(decrypt(0, &[0, 1], "v.ct", &[]), "unproven_certificate");
    // The list or the share of another, a stranger, and a share without its journal.
    shell.rename("0.identity", "away");
    shell.write("0.identity", &shell.read("1.identity"));
    fail(decrypt(0, &[0, 1], "x.ct", &[]), "anothers_share");
    std::fs::remove_file(shell.path("0.identity")).unwrap();
    shell.succeed(&["parties", "identity", "--out", "0.identity"]);
    fail(decrypt(0, &[0, 1], "x.ct", &[]), "unlisted_party");
    std::fs::remove_file(shell.path("0.identity")).unwrap();
    shell.rename("away", "0.identity");
    shell.rename("party-0/share.journal", "away");
    fail(decrypt(0, &[0, 1], "x.ct", &[]), "record_missing");
    shell.write("party-0/share.journal", &shell.read("party-1/share.journal"));
    fail(decrypt(0, &[0, 1], "x.ct", &[]), "file_damaged");
    // Two who are one.
    let hosts = String::from_utf8(shell.read("hosts")).unwrap();
    let lines: Vec<&str> = hosts.lines().collect();
    shell.write(
        "hosts",
        format!(
            "{}\n{}\n{}\n",
            lines[0],
            lines[1],
            lines[2].replace(&lines[2][lines[2].len() - 64..], &lines[1][lines[1].len() - 64..])
        )
        .as_bytes(),
    );
    fail(decrypt(2, &[0, 2], "x.ct", &[]), "same_party");
}

#[test]
fn whoever_is_silent_or_holds_something_else_is_named_and_nothing_is_lost() {
    let parties = Parties::with_keys(3, &[&["--scheme", "bgv"], &TWO_OF_THREE[..]].concat());
    parties.encrypt(1.0);
    let shell = &parties.shell;
    // Nobody comes: named in time, and the ciphertext is not used up.
    let alone = parties.all(&[0], |i| patient(decrypt(i, &[0, 1], "x.ct", &[]), "1"));
    let message = error(&alone[0], "abort");
    assert!(message.contains("party 1 could not be connected within 1.0 s"), "{message}");
    let names = |reports: &[Value], what: &str| reports.iter().any(|report| error(report, "abort").contains(what));
    // As the list has them, also where others than the first have met.
    let missing = parties.all(&[1], |i| patient(decrypt(i, &[1, 2], "x.ct", &[]), "1"));
    assert!(names(&missing, "party 2 could not be connected"), "{missing:?}");
    // Two about different ciphertexts.
    let different = parties.all(&[1, 2], |i| decrypt(i, &[1, 2], ["x.ct", "y.ct"][i - 1], &[]));
    assert!(names(&different, "is about to do something else"), "{different:?}");
    assert!(different.iter().all(|report| report["error"]["remedy"].as_str().unwrap().contains("nothing was shown")));
    // One who holds the key of another session.
    shell.rename("party-2", "kept");
    let others = parties.all(&[0, 1, 2], |i| {
        let mut arguments = keygen(i, "plan.json");
        let out = arguments.iter().position(|word| word == "--out").unwrap() + 1;
        arguments[out] = if i == 2 { "party-2".to_owned() } else { format!("other-{i}") };
        arguments
    });
    assert!(others.iter().all(|report| report["key_id"].is_string()), "{others:?}");
    let x = shell.read("x.ct");
    let foreign = parties.all(&[1, 2], |i| patient(decrypt(i, &[1, 2], "x.ct", &[]), "1"));
    assert!(kinds(&foreign).contains(&"not_authentic"), "{foreign:?}");
    shell.write("party-2/envelope.key", &shell.read("kept/envelope.key"));
    assert_eq!(kinds(&parties.all(&[2], |i| decrypt(i, &[1, 2], "x.ct", &[]))), ["not_authentic"]);
    std::fs::remove_dir_all(shell.path("party-2")).unwrap();
    shell.rename("kept", "party-2");
    // After all of it the ciphertext decrypts as if nothing had been.
    assert_eq!(shell.read("x.ct"), x);
    let reports = parties.decrypt(&[1, 2], "x.ct", &[]);
    assert!(reports.iter().all(|report| report["rows"] == 5), "{reports:?}");
    // Another ciphertext of the same, as the remedy says.
    shell.write("zero.csv", b"v\n0\n0\n0\n0\n0\n");
    shell.succeed(&["encrypt", "--insecure", "--keys", "party-0", "--in", "zero.csv", "--out", "zero.ct"]);
    shell.succeed(&[
        "eval",
        "x + zero",
        "--insecure",
        "--keys",
        "party-0",
        "x=x.ct",
        "zero=zero.ct",
        "--out",
        "again.ct",
    ]);
    let reports = parties.decrypt(&[0, 1], "again.ct", &[]);
    assert!(reports.iter().all(|report| report["rows"] == 5), "{reports:?}");
    assert_eq!(shell.numbers("again.ct-0.csv"), X.map(|x| x as f64));
}

#[test]
fn a_party_that_is_killed_leaves_whole_directories_and_all_begin_again() {
    let parties = Parties::new(3);
    let shell = &parties.shell;
    shell.succeed(
        &words("plan --scheme bfv --depth 1 --insecure --parties 3 --out plan.json")
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
    );
    // Parties 0 and 1 wait for one that is killed while all of them are at it.
    for milliseconds in [0, 60, 250] {
        let mut last = parties.spawn(&keygen(2, "plan.json"));
        let short = |i| patient(keygen(i, "plan.json"), "3");
        let others = thread::scope(|scope| {
            let others = scope.spawn(|| parties.all(&[0, 1], short));
            thread::sleep(std::time::Duration::from_millis(milliseconds));
            let _ = last.kill();
            let _ = last.wait();
            others.join().unwrap()
        });
        for (i, report) in others.iter().enumerate() {
            let directory = shell.path(&format!("party-{i}"));
            let count = std::fs::read_dir(&directory).map_or(0, Iterator::count);
            let made = report["key_id"].is_string() || report["error"]["kind"] == "unconfirmed_keys";
            assert_eq!(count, if made { 5 } else { 0 }, "{report}");
            let _ = std::fs::remove_dir_all(directory);
        }
        let _ = std::fs::remove_dir_all(shell.path("party-2"));
    }
    let reports = parties.all(&[0, 1, 2], |i| keygen(i, "plan.json"));
    assert!(reports.iter().all(|report| report["key_id"].is_string()), "{reports:?}");
    assert_eq!(parties.count, 3);
}
