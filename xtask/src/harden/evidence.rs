//! What other tools say of this library: Valgrind, an SMT solver, Miri, sanitizers, other libraries. Where a tool cannot be
//! had the part is skipped, with the reason.

pub(super) mod constant_time;
pub(super) mod differential;
pub(super) mod memory;
pub(super) mod proofs;
pub(super) mod timing;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Counts, Scale};
use crate::steps::Invocation;

/// A part that says why it was not run.
fn skipped(why: &str) -> Counts {
    Counts::from_iter([("skipped".to_owned(), why.into())])
}

/// Counts under their names.
fn counts<const N: usize>(named: [(&str, Value); N]) -> Counts {
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Whether a command runs and succeeds, in silence.
fn works(program: &str, args: &str) -> bool {
    let status =
        Command::new(program).args(args.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Runs a command; its standard output, with its errors shown as they come.
fn output(root: &Path, invocation: &Invocation) -> Result<(bool, String)> {
    let out = invocation
        .command(root)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{invocation}`"))?;
    Ok((out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned()))
}

/// What libtest says at the end: tests passed and failed.
fn tally(text: &str) -> (u64, u64) {
    let results = text.lines().filter_map(|line| line.split_once("test result:").map(|(_, rest)| rest));
    results.fold((0, 0), |(passed, failed), rest| {
        let number = |word: &str| {
            let before = rest.split(word).next().unwrap_or_default();
            before.split_whitespace().next_back().and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        (passed + number(" passed"), failed + number(" failed"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted_over_all_programs() {
        let text = "test a ... ok\ntest result: ok. 12 passed; 0 failed; 1 ignored\n\
                    x\ntest result: FAILED. 3 passed; 2 failed; 0 ignored\n";
        assert_eq!(tally(text), (15, 2));
        assert_eq!(tally("nothing"), (0, 0));
    }
}
