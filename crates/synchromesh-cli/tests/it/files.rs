//! What paths may be: files that must not be lost, and what is no file at all, as output and as input.
#![cfg(unix)]

use crate::shell::{Shell, error};
use serde_json::Value;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::{Output, Stdio};

fn split(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

/// The error in JSON of a command that must end with code 2.
fn refused(output: &Output, kind: &str) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text} {messages}");
    assert!(!messages.contains("panicked"), "{messages}");
    let object: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text} {messages}"));
    error(&object, kind)
}

/// Every command that writes and takes less than seconds, with OUT for where.
const WRITERS: [&str; 7] = [
    "plan --scheme bgv --depth 0 --insecure --out OUT",
    "plan --scheme bgv --depth 0 --insecure --plot OUT",
    "inspect plan.json --plot OUT",
    "encrypt --keys keys --in x.csv --insecure --out OUT",
    "eval x+x --keys keys x=x.ct --insecure --out OUT",
    "decrypt --keys keys --in x.ct --insecure --out OUT",
    "matmul m.csv m.csv --out OUT",
];

#[test]
fn no_command_replaces_a_key_or_what_is_no_file() {
    let shell = Shell::small();
    shell.write("m.csv", b"1,2\n3,4\n");
    shell.write("id", b"\x89SMESH\r\n\x01\0\x21\0...");
    shell.after("mkfifo pipe; mkdir -p folder/x; ln -s keys/secret.key link", &["info"]);
    let keys = ["keys/secret.key", "keys/envelope.key", "keys/public.key", "keys/eval.keys", "link", "id"];
    let before = keys.map(|key| shell.read(key));
    let write = |command: &str, out: &str| shell.after("", &split(&command.replace("OUT", out)));
    // Items are measured before their results are written: what may not be is known earlier.
    for command in WRITERS.into_iter().chain(["demo --plot OUT", "tune --quick --out OUT"]) {
        for key in keys {
            refused(&write(command, key), "file_is_a_key");
        }
        for other in ["pipe", "folder", "/dev/null", "/dev/full"] {
            refused(&write(&format!("{command} --force"), other), "not_a_file");
        }
    }
    std::fs::create_dir(shell.path("out")).unwrap();
    std::fs::copy(shell.path("keys/secret.key"), shell.path("out/levelaware-claims.csv")).unwrap();
    refused(&write("reproduce levelaware-claims --quick --out OUT", "out"), "file_is_a_key");
    refused(&write("reproduce all --quick --report OUT", "out"), "file_is_a_key");
    assert_eq!(keys.map(|key| shell.read(key)), before);
    assert!(std::fs::metadata(shell.path("pipe")).unwrap().file_type().is_fifo());
    assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    // The user's word, and files that are nobody's key.
    for out in ["x.ct", "z.csv", "z.csv"] {
        shell.succeed(&split(&"decrypt --keys keys --in x.ct --insecure --out OUT".replace("OUT", "z.csv")));
        assert_eq!(write("eval x+x --keys keys x=x.ct --insecure --out OUT", out).status.code(), Some(0));
    }
    let forced = write("plan --scheme bgv --depth 0 --insecure --force --out OUT", "keys/secret.key");
    assert_eq!(forced.status.code(), Some(0));
}

#[test]
fn modes_are_kept_and_directories_of_keys_are_private() {
    let shell = Shell::small();
    let mode = |file: &str| std::fs::metadata(shell.path(file)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("keys"), mode("keys/secret.key")], [0o700, 0o600]);
    let set = |file: &str, mode| {
        std::fs::set_permissions(shell.path(file), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for (before, command, after) in [
        (0o640, "eval x+x --keys keys x=x.ct --insecure --out z", 0o640),
        (0o600, "eval x+x --keys keys x=x.ct --insecure --out z", 0o600),
        (0o644, "decrypt --keys keys --in x.ct --insecure --out z", 0o600),
        (0o400, "decrypt --keys keys --in x.ct --insecure --out z", 0o400),
    ] {
        shell.write("z", b"");
        set("z", before);
        shell.succeed(&split(command));
        assert_eq!(mode("z"), after, "{command}");
    }
}

#[test]
fn what_is_no_file_is_not_waited_for_and_not_read_without_end() {
    let shell = Shell::small();
    shell
        .after("mkfifo pipe; mkdir folder; ln -s pipe link; truncate -s 15G sparse; truncate -s 900M table", &["info"]);
    let readers = [
        "encrypt --keys keys --in IN --insecure --out q",
        "decrypt --keys keys --in IN --insecure --out q",
        "eval x+x --keys keys x=IN --insecure --out q",
        "inspect IN",
        "keygen --plan IN --out new",
        "matmul IN IN",
        "plan --scheme bgv --depth 0 --profile IN",
    ];
    for command in readers {
        for path in ["pipe", "folder", "link", "/dev/zero", "/dev/null"] {
            refused(&shell.after("", &split(&command.replace("IN", path))), "not_a_file");
        }
        // 15 GiB of zeros are looked at, not read: 512 MiB of addresses are enough.
        let sparse = shell.after("ulimit -v 524288", &split(&command.replace("IN", "sparse")));
        let message = refused(&sparse, "");
        assert!(!message.contains("memory"), "{command}: {message}");
    }
    // A table of 900 MB has no mark to be known by; its size is more than there is.
    let table = shell.after("ulimit -v 524288", &split("encrypt --keys keys --in table --insecure --out q"));
    refused(&table, "file_exceeds_memory");
    assert!(!shell.path("q").exists() && !shell.path("new").exists());
}

#[test]
fn memory_that_cannot_be_had_is_a_typed_error() {
    let shell = Shell::small();
    shell.succeed(&split("plan --scheme ckks --depth 6 --out large.json"));
    let within = |kib: u64, command: &str| shell.after(&format!("ulimit -v {kib}"), &split(command));
    let mut refusals = 0;
    let mut typed = |kib: u64, command: &str| {
        let output = within(kib, command);
        match output.status.code() {
            Some(0) => {}
            // The system could not even load the program.
            Some(127) => {}
            _ => refusals += usize::from(!refused(&output, "").is_empty()),
        }
    };
    // Less than this and the system cannot load the program.
    let (mut little, mut least) = (10_000, 400_000);
    while least - little > 100 {
        let middle = (least + little) / 2;
        if within(middle, "info").status.code() == Some(0) { least = middle } else { little = middle }
    }
    for kib in [least, least + 15_000, least + 35_000, least + 75_000] {
        for command in ["keygen --plan large.json --out large", "plan --scheme bfv --depth 8", "matmul x.csv x.csv"] {
            typed(kib, command);
        }
    }
    // With hardly more than the program starts with, whatever is allocated first is what fails.
    for kib in (least..least + 1500).step_by(100) {
        typed(kib, &format!("encrypt --keys keys --in x.csv --insecure --out {kib}.ct"));
    }
    assert!(refusals > 0);
}

#[test]
fn a_result_that_nobody_gets_is_an_error() {
    let shell = Shell::new();
    for arguments in [&["info"][..], &["--help"], &["plan", "--scheme", "bgv", "--depth", "0"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = shell.command(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {messages}");
        assert!(messages.contains("could not be printed") && !messages.contains("panicked"), "{messages}");
    }
    // A pipe whose reader has gone, for results and for messages.
    let gone = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    assert_eq!(shell.command(&["info"]).stdout(gone()).status().unwrap().code(), Some(2));
    assert_eq!(shell.command(&["info"]).stdout(Stdio::null()).stderr(gone()).status().unwrap().code(), Some(0));
    let mut unheard = std::process::Command::new(env!("CARGO_BIN_EXE_synchromesh"));
    let refused = unheard.args(["inspect", "nothing"]).stderr(gone()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_column_named_like_a_number_keeps_its_rows() {
    let shell = Shell::small();
    for name in ["2024", "nan", "-inf", "1e5"] {
        let (encrypted, table) = (format!("./{name}.ct"), format!("./{name}.csv"));
        let run = |command: &str| shell.succeed(&split(&command.replace("CT", &encrypted).replace("CSV", &table)));
        run("eval x+x --keys keys x=x.ct --insecure --out CT");
        run("decrypt --keys keys --in CT --insecure --out CSV");
        assert_eq!(shell.numbers(&table), [2.0, 4.0, 6.0], "{name}");
        let again = run("encrypt --keys keys --in CSV --insecure --out again.ct");
        assert_eq!(again["rows"], 3, "{name}");
    }
    shell.write("two.csv", b"\xef\xbb\xbfage,\"age\"\r\n1,2\r\n3,4\r\n");
    let encrypt = "encrypt --keys keys --in two.csv --insecure --out two.ct --column";
    let message = error(&shell.fail(&split(&format!("{encrypt} age"))), "usage");
    assert!(message.contains("2 columns"), "{message}");
    assert_eq!(shell.succeed(&split(&format!("{encrypt} 2")))["rows"], 2);
}
