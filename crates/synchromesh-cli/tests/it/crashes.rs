//! A few trials of the program `crashes`, which makes many by command.
#![cfg(target_os = "linux")]

#[path = "../../examples/crashes/trials.rs"]
mod trials;

use std::path::Path;

#[test]
fn nothing_that_stops_a_command_tears_or_loses_a_file() {
    let counts = trials::run(Path::new(env!("CARGO_BIN_EXE_synchromesh")), 84, 7).unwrap();
    assert!(counts.failures.is_empty(), "{}\n{}", counts.json(), counts.failures.join("\n"));
}
