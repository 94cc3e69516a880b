//! Certificates in files are claims: one that was forged, all plain checksums made anew, is believed by no command.

use crate::shell::{Shell, error};

const MARK: &[u8] = b"\x89SMESH\r\n";
/// Bytes of a digest, and of an authentication code.
const DIGEST: usize = 32;

/// Plan, keys, an encrypted column of two ciphertexts where they are short.
fn prepared(scheme: &str) -> Shell {
    let shell = Shell::new();
    let precision: &[&str] = if scheme == "ckks" { &["--precision", "38"] } else { &[] };
    let plan = ["plan", "--scheme", scheme, "--depth", "1", "--insecure", "--out", "plan.json"];
    shell.succeed(&[&plan[..], precision].concat());
    shell.succeed(&["keygen", "--plan", "plan.json", "--out", "keys", "--insecure"]);
    let rows: String = (0..2500).map(|i| format!("0.{}\n", i % 10)).collect();
    let rows = if scheme == "ckks" { rows } else { rows.replace("0.", "") };
    shell.write("x.csv", format!("x\n{rows}").as_bytes());
    encrypt(&shell, "keys", "x.ct");
    shell
}

fn encrypt(shell: &Shell, keys: &str, out: &str) -> serde_json::Value {
    shell.succeed(&["encrypt", "--keys", keys, "--in", "x.csv", "--out", out, "--insecure"])
}

fn number(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// Where the containers of ciphertexts are.
fn containers(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let marks = (0..bytes.len() - MARK.len()).filter(|&at| &bytes[at..at + MARK.len()] == MARK);
    let ciphertexts = marks.filter(|at| bytes[at + 10] == 5);
    ciphertexts.map(|at| at..at + 76 + number(bytes, at + 64) + DIGEST).collect()
}

/// The digest of the whole file made anew.
fn fixed(mut bytes: Vec<u8>) -> Vec<u8> {
    let codes = usize::from(bytes[8]);
    let end = bytes.len() - codes * DIGEST;
    let digest = blake3::hash(&bytes[..end]);
    bytes[end..end + DIGEST].copy_from_slice(digest.as_bytes());
    bytes
}

/// Tiny certificates in all ciphertexts, as `sigma` and `remainder` of 2^-50.
fn forged(mut bytes: Vec<u8>) -> Vec<u8> {
    for place in containers(&bytes) {
        for at in [4, 8] {
            bytes[place.start + 76 + at..][..4].copy_from_slice(&(-50i32 << 10).to_le_bytes());
        }
        let end = place.end - DIGEST;
        let digest = blake3::hash(&bytes[place.start..end]);
        bytes[end..place.end].copy_from_slice(digest.as_bytes());
    }
    fixed(bytes)
}

/// The file as one that was written without an envelope key.
fn stripped(mut bytes: Vec<u8>) -> Vec<u8> {
    assert_eq!(bytes[8], 2, "not sealed");
    bytes[8] = 1;
    bytes.truncate(bytes.len() - DIGEST);
    fixed(bytes)
}

fn eval<'a>(input: &'a str, word: &[&'a str]) -> Vec<&'a str> {
    [&["eval", "x + x", "--keys", "keys", input, "--out", "z.ct", "--insecure"], word].concat()
}

fn decrypt<'a>(input: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    [&["decrypt", "--keys", "keys", "--in", input, "--out", "z.csv", "--insecure"], words].concat()
}

const WORD: &str = "--trust-certificate";

#[test]
fn a_forged_certificate_is_not_believed() {
    for scheme in ["bfv", "bgv", "ckks"] {
        let shell = prepared(scheme);
        let whole = shell.read("x.ct");
        let mut renamed = whole.clone();
        let name = whole.windows(8).position(|w| w == b"\"rows\":2").unwrap();
        renamed[name + 8] ^= 1;
        let places = containers(&whole);
        let mut changes = vec![("certificate", forged(whole.clone())), ("rows", fixed(renamed))];
        if let [a, b, ..] = &places[..] {
            let mut swapped = whole.clone();
            swapped[a.clone()].copy_from_slice(&whole[b.clone()]);
            swapped[b.clone()].copy_from_slice(&whole[a.clone()]);
            changes.push(("order", fixed(swapped)));
        }
        assert_eq!(changes.len(), 3, "{scheme}");
        let publish = ["--publish", "1,4,30"];
        for (what, bytes) in changes {
            shell.write("bad.ct", &bytes);
            for command in [eval("x=bad.ct", &[]), decrypt("bad.ct", &[]), decrypt("bad.ct", &publish)] {
                error(&shell.fail(&command), "not_authentic");
            }
            shell.write("bad.ct", &stripped(bytes));
            for command in [eval("x=bad.ct", &[]), decrypt("bad.ct", &[]), decrypt("bad.ct", &publish)] {
                let object = shell.fail(&command);
                assert!(error(&object, "unproven_certificate").contains("bad.ct"), "{what}");
                assert!(object["error"]["remedy"].as_str().unwrap().contains(WORD), "{object}");
            }
        }
        assert!(!shell.path("z.ct").exists() && !shell.path("z.csv").exists());
    }
}

/// A result below the leading levels carries the name of the second secret key, which is the same owner's.
#[test]
fn a_forged_certificate_under_the_second_secret_key_is_not_believed() {
    let shell = Shell::new();
    shell.write("x.csv", b"x\n1\n2\n3\n");
    let plan = "plan --scheme bgv --depth 3 --leading-levels 1 --insecure --out plan.json";
    shell.succeed(&plan.split(' ').collect::<Vec<_>>());
    shell.succeed(&["keygen", "--plan", "plan.json", "--out", "keys", "--insecure"]);
    encrypt(&shell, "keys", "x.ct");
    shell.succeed(&["eval", "(x*x)*(x*x)", "--keys", "keys", "x=x.ct", "--out", "y.ct", "--insecure"]);
    let key = |file: &str| {
        let bytes = shell.read(file);
        let start = containers(&bytes)[0].start;
        bytes[start + 48..start + 64].to_vec()
    };
    assert_ne!(key("x.ct"), key("y.ct"));
    shell.succeed(&decrypt("y.ct", &[]));
    shell.write("bad.ct", &forged(shell.read("y.ct")));
    for command in [eval("x=bad.ct", &[]), decrypt("bad.ct", &[])] {
        error(&shell.fail(&command), "not_authentic");
    }
}

#[test]
fn the_users_word_opens_a_file_and_never_releases_it() {
    for scheme in ["bgv", "ckks"] {
        let shell = prepared(scheme);
        shell.write("told.ct", &stripped(shell.read("x.ct")));
        assert_eq!(shell.succeed(&decrypt("told.ct", &[WORD]))["authenticated"], false);
        let kind = if scheme == "ckks" { "certificate_on_word" } else { "release" };
        error(&shell.fail(&decrypt("told.ct", &[WORD, "--publish", "1,4,30"])), kind);
        // What is computed from it is not vouched for.
        assert_eq!(shell.succeed(&eval("x=told.ct", &[WORD]))["authenticated"], false);
        error(&shell.fail(&decrypt("z.ct", &[])), "unproven_certificate");
        shell.succeed(&decrypt("z.ct", &[WORD]));
        // With the word, a file that is authentic is still believed for that.
        assert_eq!(shell.succeed(&eval("x=x.ct", &[WORD]))["authenticated"], true);
        assert_eq!(shell.succeed(&decrypt("z.ct", &[]))["authenticated"], true);
        if scheme == "ckks" {
            shell.succeed(&decrypt("z.ct", &["--publish", "1,4,30", WORD]));
        }
        assert_eq!(shell.succeed(&["inspect", "x.ct"])["sealed"], true);
        assert_eq!(shell.succeed(&["inspect", "told.ct"])["sealed"], false);
    }
}

#[test]
fn who_has_no_envelope_key_vouches_for_nothing() {
    let shell = prepared("ckks");
    shell.rename("keys/envelope.key", "away");
    // A stranger with the public key, a server with the evaluation keys.
    assert_eq!(encrypt(&shell, "keys", "strange.ct")["authenticated"], false);
    error(&shell.fail(&eval("x=x.ct", &[])), "unproven_certificate");
    assert_eq!(shell.succeed(&eval("x=x.ct", &[WORD]))["authenticated"], false);
    error(&shell.fail(&decrypt("x.ct", &[])), "unproven_certificate");
    shell.rename("away", "keys/envelope.key");
    for file in ["strange.ct", "z.ct"] {
        error(&shell.fail(&decrypt(file, &[])), "unproven_certificate");
        shell.succeed(&decrypt(file, &[WORD]));
    }
    // A key file of another owner, or another key generation, is not taken for one's own.
    shell.succeed(&["keygen", "--plan", "plan.json", "--out", "others", "--insecure"]);
    for name in ["public.key", "eval.keys", "secret.key"] {
        let (own, other) = (format!("keys/{name}"), format!("others/{name}"));
        shell.rename(&own, "away");
        shell.rename(&other, &own);
        let command = match name {
            "public.key" => vec!["encrypt", "--keys", "keys", "--in", "x.csv", "--out", "y.ct", "--insecure"],
            "eval.keys" => eval("x=x.ct", &[]),
            _ => decrypt("x.ct", &[]),
        };
        assert!(error(&shell.fail(&command), "not_authentic").contains(name));
        shell.rename(&own, &other);
        shell.rename("away", &own);
    }
}

#[cfg(unix)]
#[test]
fn the_envelope_key_is_its_owners() {
    use std::os::unix::fs::PermissionsExt;
    let shell = prepared("bgv");
    let mode = std::fs::metadata(shell.path("keys/envelope.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(shell.succeed(&["inspect", "keys/envelope.key"])["type"], "envelope_key");
    let mut damaged = shell.read("keys/envelope.key");
    let middle = damaged.len() - 3 * DIGEST;
    damaged[middle] ^= 1;
    shell.write("keys/envelope.key", &damaged);
    error(&shell.fail(&decrypt("x.ct", &[])), "body_corrupt");
}
