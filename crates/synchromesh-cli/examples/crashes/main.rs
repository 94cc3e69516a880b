//! Stops every command that writes at random moments, in every way a machine can, and looks at what is left.
//!
//! `cargo run -p synchromesh-cli --example crashes -- 1000` makes a thousand trials and prints the counts as JSON; code 1
//! if a file was torn, lost, or could not be made again, or an error was not a typed one. A second argument is the seed of
//! the random choices, a third the program.

mod trials;

use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, otherwise: u64| arguments.get(index).map_or(Some(otherwise), |a| a.parse().ok());
    let program = arguments.get(2).map(PathBuf::from).or_else(built);
    let (Some(trials), Some(seed), Some(program)) = (number(0, 200), number(1, 1), program) else {
        eprintln!("crashes [TRIALS [SEED [PROGRAM]]]");
        return ExitCode::from(2);
    };
    match trials::run(&program, trials, seed) {
        Ok(counts) => {
            counts.failures.iter().for_each(|failure| eprintln!("{failure}"));
            println!("{}", counts.json());
            ExitCode::from(u8::from(!counts.failures.is_empty()))
        }
        Err(error) => {
            eprintln!("{}: {error}", program.display());
            ExitCode::from(2)
        }
    }
}

/// The command beside this program, built anew if cargo runs this.
fn built() -> Option<PathBuf> {
    if let Some(cargo) = std::env::var_os("CARGO") {
        let build = ["build", "--quiet", "-p", "synchromesh-cli", "--bin", "synchromesh"];
        Command::new(cargo).args(build).status().ok().filter(ExitStatus::success)?;
    }
    let own = std::env::current_exe().ok()?;
    Some(own.parent()?.parent()?.join(format!("synchromesh{}", std::env::consts::EXE_SUFFIX)))
}
