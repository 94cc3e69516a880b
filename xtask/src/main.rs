//! Developer commands, run as `cargo xtask COMMAND`: everything that continuous integration does, and what it does not.

mod checks;
mod compare;
mod demo;
mod digests;
mod docs;
mod gpu_check;
mod harden;
mod kernels;
mod layers;
mod machine;
mod machines;
mod package;
mod programs;
mod python;
mod races;
mod semver;
mod steps;
mod tidy;
mod verify;
mod workloads;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  demo [ARGS]      build the command line in release mode and run its demo; ARGS are passed on
  demo --python    build the Python package and run its quickstart
  test [--fast]    everything continuous integration runs; --fast leaves out lower instruction sets
  verify [PART]    the long tests; writes docs/verify.md. PART is tests, cost-model,
                   noise (goes on where it was interrupted), plans or triples; none: all
  harden [--quick|--full] [--no-record] [PART]
                   try to break it: fuzzing, damaged files, known answers, soak, supply chain; writes
                   docs/reliability.md. quick: all in less than 20 minutes; full: hours, goes on where it stopped
  cost-model       measure this machine (minutes, idle), then how well predictions and choices of plans do
  compare [GROUP]  time this library and its peers in turn; GROUP is ntt, key-switch, scheme or
                   circuits, functions, joint or bootstrap; `plans` compares parameters and times nothing; `picture` draws the newest table
  wheel            a release wheel of the Python package, tested in a clean environment, and one for aarch64
  docs [--check]   the documentation site, in out/docs; --check opens it in a browser without network
  gpu-check [--dev] [--emulated|--stand-in|--pack-only]
                   pack checks and measurements for a machine with a card and no more than its driver, unpack
                   them and run them: on a card if there is one, on the emulator, or on a driver without a card
  kernels [--check]
                   compile the GPU kernels, count what they do, and write their PTX and the counts, or compare them; fetches
                   the compiler
  workloads NAME [SIZE ..]
                   a workload that others defined, stage by stage at the sizes of its harness, checked; NAME is
                   zn-multiplication or ml-inference, SIZE single, small, medium or large; or
                   fetch-by-similarity or count-by-similarity, SIZE toy, small or medium
  package          pack what goes to a registry, build it from what was packed, and check the oldest Rust
  semver [COMMIT]  what callers of the published libraries would notice since COMMIT; none: since the baseline in Cargo.toml
  layers           check that crates use only the layers below them
  machines [PART]  the library on other machines: aarch64 emulated, wasm in Node, check where it is only compiled,
                   js for the npm package; none: all of which the tools are here
  races            the GPU kernels on the emulator under ThreadSanitizer
  tidy             check file sizes, first lines and unfinished marks
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let outcome = match command {
        "demo" => demo::run(rest),
        "test" => checks::run(rest),
        "docs" => docs::run(rest),
        "wheel" => python::wheel(rest),
        "compare" => compare::run(rest),
        "verify" => verify::run(rest),
        "harden" => harden::run(rest),
        "cost-model" => verify::judge_cost_model(rest),
        "gpu-check" => gpu_check::run(rest),
        "workloads" => workloads::run(rest),
        "package" => package::run(rest),
        "semver" => semver::run(rest),
        "kernels" => kernels::run(rest),
        "layers" => workspace::root().and_then(|root| print_check(layers::check(&root))),
        "machines" => machines::run(rest),
        "races" => races::run(rest),
        checks::RUN_IF_OF_KERNELS => checks::run_if_of_kernels(rest),
        "tidy" => workspace::root().and_then(|root| print_check(tidy::check(&root))),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => {
            eprint!("unknown command '{other}'\n\n{USAGE}");
            Ok(ExitCode::from(2))
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

fn print_check(outcome: anyhow::Result<String>) -> anyhow::Result<ExitCode> {
    match outcome {
        Ok(summary) => {
            println!("{summary}");
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("{error:#}");
            Ok(ExitCode::FAILURE)
        }
    }
}
