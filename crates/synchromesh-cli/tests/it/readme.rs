//! The shell session of the README at the root, run as it stands there.

use std::path::Path;
use std::process::Command;

use super::shell::Shell;

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");

/// The first block of shell commands below a heading.
fn commands<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).expect("a heading");
    let (_, block) = section.split_once("```sh\n").expect("a block");
    block.split_once("```").expect("the end of a block").0
}

#[test]
fn the_shell_session_of_the_readme_computes_what_it_says() {
    let text = std::fs::read_to_string(README).unwrap();
    let shell = Shell::new();
    let folder = Path::new(env!("CARGO_BIN_EXE_synchromesh")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let run = Command::new("sh")
        .args(["-e", "-c", commands(&text, "From a shell")])
        .current_dir(shell.path(""))
        .env("PATH", path)
        .env("XDG_DATA_HOME", shell.path("no-profile"))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let result = String::from_utf8(shell.read("result.csv")).unwrap();
    let numbers: Vec<&str> = result.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert_eq!(numbers, ["11457", "15120", "9900"], "{result}");
}
