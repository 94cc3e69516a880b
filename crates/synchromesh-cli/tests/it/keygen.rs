//! Keys are there all or not at all, whatever stops the command that makes them.
#![cfg(unix)]

use crate::shell::{Shell, error};
use std::collections::BTreeMap;
use std::time::Duration;

const KEYGEN: [&str; 6] = ["keygen", "--plan", "plan.json", "--out", "new", "--insecure"];

/// Every file of the directory of keys.
fn found(shell: &Shell) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(shell.path("new")) else { return BTreeMap::new() };
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        Some((entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).ok()?))
    };
    entries.filter_map(read).collect()
}

/// What was left is all keys, which stay, or a second try makes them; they belong together either way.
fn recovers(shell: &Shell, when: &str) {
    let before = found(shell);
    let keys = ["secret.key", "eval.keys", "public.key"];
    let whole = keys.iter().all(|key| before.contains_key(*key));
    if whole {
        error(&shell.fail(&KEYGEN), "file_exists");
        assert!(keys.iter().all(|key| found(shell)[*key] == before[*key]), "{when}: keys were replaced");
    } else {
        assert!(!before.contains_key("public.key"), "{when}: a public key without the others");
        shell.succeed(&KEYGEN);
    }
    assert!(keys.iter().all(|key| found(shell).contains_key(*key)), "{when}: {:?}", found(shell).keys());
    let hidden: Vec<String> = found(shell).into_keys().filter(|name| name.starts_with('.')).collect();
    assert!(hidden.is_empty(), "{when}: {hidden:?} were left");
    shell.succeed(&["encrypt", "--keys", "new", "--in", "x.csv", "--out", "n.ct", "--insecure"]);
    shell.succeed(&["eval", "x*x", "--keys", "new", "x=n.ct", "--out", "n2.ct", "--insecure"]);
    shell.succeed(&["decrypt", "--keys", "new", "--in", "n2.ct", "--out", "n.csv", "--insecure"]);
    assert_eq!(shell.numbers("n.csv"), [1.0, 4.0, 9.0], "{when}");
    std::fs::remove_dir_all(shell.path("new")).unwrap();
}

#[test]
fn keys_that_a_full_disk_cut_short_are_made_by_a_second_try() {
    let shell = Shell::small();
    // Files of at most so many KiB: the secret key fits sooner than the others.
    for kib in [0, 1, 4, 8, 16, 40] {
        let output = shell.after(&format!("trap '' XFSZ; ulimit -f {kib}"), &KEYGEN);
        assert_eq!(output.status.code(), Some(if kib < 40 { 2 } else { 0 }), "{kib} KiB");
        recovers(&shell, &format!("{kib} KiB"));
    }
}

#[test]
fn keys_that_were_stopped_half_way_are_made_by_a_second_try() {
    let shell = Shell::small();
    for microseconds in (0..24).map(|step| step * step * 60) {
        let mut child = shell.command(&KEYGEN).stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(microseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        recovers(&shell, &format!("killed after {microseconds} us"));
    }
}

#[test]
fn two_that_make_keys_at_once_do_not_mix_them() {
    let shell = Shell::small();
    for _ in 0..4 {
        let spawn = || shell.command(&KEYGEN).stdout(std::process::Stdio::null()).spawn().unwrap();
        let mut both = [spawn(), spawn(), spawn()];
        let codes = both.each_mut().map(|child| child.wait().unwrap().code());
        let made = codes.iter().filter(|code| **code == Some(0)).count();
        assert!(made == 1 && codes.iter().all(|code| matches!(code, Some(0 | 2))), "{codes:?}");
        recovers(&shell, "two at once");
    }
}
