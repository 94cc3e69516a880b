//! The command `triples use`: a program of MP-SPDZ with the files of one run, and what it says on standard error.

use crate::error::Error;
use crate::interrupt::Children;
use crate::output::say;
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use synchromesh_triples::handout::{self, Ended};

/// What MP-SPDZ says when it multiplies matrices with ordinary triples.
const PLAIN: &str = "plain triples";

/// What it says when a check of MACs fails.
const MAC_CHECK: &str = "MacCheck Failure";

/// What a program said, of which one does not hear otherwise.
#[derive(Default)]
struct Heard {
    plain: bool,
    mac_check: bool,
}

/// Runs a program of party `party` with the files of the run in the first directory, which go to the second for as long. What it
/// writes to standard output goes to standard error if that of this command is `taken`.
///
/// # Errors
/// [`Error::Triples`] as [`handout::run`].
pub fn use_files(
    (from, player_data): (&Path, &Path),
    party: usize,
    (program, taken): (&[String], bool),
    children: &Children,
) -> Result<Map<String, Value>, Error> {
    let mut heard = Heard::default();
    let files = handout::run(from, player_data, party, || execute((program, taken), children, &mut heard))?;
    let mut report = Map::new();
    report.insert("party".into(), party.into());
    report.insert("plain_triples".into(), heard.plain.into());
    report.insert("used".into(), files.iter().map(|file| Value::from(file.display().to_string())).collect());
    Ok(report)
}

fn execute((program, taken): (&[String], bool), children: &Children, heard: &mut Heard) -> Ended {
    let Some((name, arguments)) = program.split_first() else {
        return Ended::Never("no program was named".into());
    };
    let mut command = Command::new(name);
    if taken {
        command.stdout(std::io::stderr());
    }
    let stderr = match children.spawn_heard(command.args(arguments).stderr(Stdio::piped())) {
        Ok(stderr) => stderr,
        Err(error) => return Ended::Never(format!("{name}: {error}")),
    };
    let lines = stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).split(b'\n'));
    for line in lines.map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        say(&format!("{line}\n"));
        heard.mac_check |= line.contains(MAC_CHECK);
        if line.contains(PLAIN) && !heard.plain {
            heard.plain = true;
            say(
                "synchromesh: a party has no matrix triples of a shape that is multiplied here, or of another MAC key: ordinary \
                 triples are used in their place, thousands for one\n",
            );
        }
    }
    match children.wait(0) {
        Ok(status) if status.success() && !heard.mac_check => Ended::Well,
        Ok(_) if heard.mac_check => Ended::Badly("a failed check of MACs".into()),
        Ok(status) => Ended::Badly(status.to_string()),
        Err(error) => Ended::Badly(error.to_string()),
    }
}
