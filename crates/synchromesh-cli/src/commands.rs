//! The commands, their flags, and the way from arguments to an exit code.

#[cfg(feature = "measure")]
mod bench;
mod demo;
mod info;
mod inspect;
mod matmul;
mod overwrite;
mod parties;
mod place;
mod plan;
#[cfg(feature = "measure")]
mod reproduce;
mod session;
mod triples;
#[cfg(feature = "measure")]
mod tune;

use crate::error::Error;
use crate::output::{Report, finish, prepare, told};
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Homomorphic encryption with BFV, BGV and CKKS, built around key switching.
#[derive(Parser, Debug)]
#[command(name = "synchromesh", version, arg_required_else_help = true)]
struct Arguments {
    /// Print one JSON object on standard output, and nothing else there.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show the version, the instruction sets, the devices and the security table.
    Info,
    /// Compute on an encrypted data set in all three schemes.
    Demo(demo::Demo),
    /// Choose parameters for what shall be computed.
    Plan(plan::Planning),
    Keygen(session::Keygen),
    Encrypt(session::Encrypt),
    Eval(session::Eval),
    Decrypt(session::Decrypt),
    Inspect(inspect::Inspect),
    Matmul(matmul::Matmul),
    /// Measure one operation: medians on one thread, at any parameters.
    #[cfg(feature = "measure")]
    #[command(subcommand)]
    Bench(bench::Bench),
    #[command(subcommand)]
    Parties(parties::Parties),
    #[command(subcommand)]
    Triples(triples::Triples),
    #[cfg(feature = "measure")]
    Tune(tune::Tune),
    #[cfg(feature = "measure")]
    Reproduce(reproduce::Reproduce),
}

impl Command {
    fn run(&self, json: bool) -> Result<Report, Error> {
        match self {
            Self::Info => info::run(),
            Self::Demo(demo) => demo.run(json),
            Self::Plan(plan) => plan.run(json),
            Self::Keygen(keygen) => keygen.run(),
            Self::Encrypt(encrypt) => encrypt.run(json),
            Self::Eval(eval) => eval.run(json),
            Self::Decrypt(decrypt) => decrypt.run(json),
            Self::Inspect(inspect) => inspect.run(),
            Self::Matmul(matmul) => matmul.run(json),
            #[cfg(feature = "measure")]
            Self::Bench(bench) => bench.run(),
            Self::Parties(parties) => parties.run(json),
            Self::Triples(triples) => triples.run(json),
            #[cfg(feature = "measure")]
            Self::Tune(tune) => tune.run(json),
            #[cfg(feature = "measure")]
            Self::Reproduce(reproduce) => reproduce.run(json),
        }
    }
}

/// Runs the command that `arguments` name, the program's own name first, and prints its result.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let json = arguments.iter().any(|a| a == "--json");
    prepare(json);
    match Arguments::try_parse_from(&arguments) {
        Ok(parsed) => finish(parsed.json, parsed.command.run(parsed.json)),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            told(error.print(), ExitCode::SUCCESS)
        }
        Err(error) if json => {
            let text = error.to_string();
            let message = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").trim();
            finish(true, Err(Error::Usage { message: message.to_owned() }))
        }
        Err(error) => {
            let _ = error.print();
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn flags_are_consistent() {
        Arguments::command().debug_assert();
    }
}
