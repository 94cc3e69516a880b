//! `cargo xtask test`: everything continuous integration runs, as named steps.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Result, bail};
use serde_json::Value;

use crate::demo::{CLI_PACKAGE, DEMO_FEATURES};
use crate::steps::{Invocation, Step, run_all};
use crate::{layers, machine, machines, package, python, tidy, workspace};

/// The variable that lowers the instruction set.
pub(crate) const ISA: &str = "SYNCHROMESH_ISA";

/// All tests. The same packages in every run: another choice has other features, and would compile everything again,
/// which takes longer than the tests. The Python module has no tests in Rust. A failure stops no other test.
const ALL_TESTS: &str = "test --quiet --no-fail-fast --workspace --exclude synchromesh-py --lib --bins --tests";

/// The examples in the documentation of the same packages.
const DOC_TESTS: &str = "test --quiet --workspace --exclude synchromesh-py --doc";

/// Packages whose results could depend on the instruction set.
const ISA_SENSITIVE: &[&str] = &["synchromesh-ring", "synchromesh-rlwe", "synchromesh", "synchromesh-testing"];

/// Those that have the kernels of each set, or compare them: what stands on these has the same bits on all sets, which the
/// tests of the demo show here and `cargo xtask verify tests` with every test of the rest.
const KERNELS: &[&str] = &["synchromesh-ring", "synchromesh-rlwe", "synchromesh-testing"];

/// The command of this program by which cargo starts a test program on a lower instruction set.
pub(crate) const RUN_IF_OF_KERNELS: &str = "run-if-of-kernels";

/// Runs all steps; `--fast` leaves out the repeats on lower instruction sets and the documentation.
///
/// # Errors
/// On an unknown flag or a workspace that cannot be read.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let fast = match args {
        [] => false,
        [flag] if flag == "--fast" => true,
        other => bail!("unknown arguments {other:?}; usage: cargo xtask test [--fast]"),
    };
    let root = workspace::root()?;
    let metadata = workspace::metadata(&root)?;
    let mut steps = steps(&root, &metadata, fast);
    if !fast {
        steps.extend(machines::ring_steps(&root));
    }
    steps.extend(python::test_steps(&root));
    Ok(run_all(&root, &steps).tally.exit_code())
}

fn steps(root: &Path, metadata: &Value, fast: bool) -> Vec<Step> {
    let mut steps = vec![
        Step::check("tools", tools, "cargo fmt --version && cargo clippy --version"),
        Step::run("format", Invocation::cargo("fmt --all --check")),
        Step::run("clippy", Invocation::cargo("clippy --workspace --all-targets -- -D warnings")),
        Step::run(
            "clippy, the demo's build",
            Invocation::cargo(&format!("clippy -p {CLI_PACKAGE} {DEMO_FEATURES} -- -D warnings")),
        ),
        Step::check("layers", layers::check, "cargo xtask layers"),
        Step::check("tidy", tidy::check, "cargo xtask tidy"),
    ];
    if fast {
        steps.push(Step::skip("packages and the oldest Rust", "--fast"));
    } else {
        steps.extend(package::test_steps(metadata));
    }
    steps.extend(test_steps(fast));
    steps.push(Step::run("doc tests", Invocation::cargo(DOC_TESTS).env_remove(ISA)));
    let doc = Invocation::cargo("doc --quiet --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings");
    steps.push(if fast { Step::skip("documentation", "--fast") } else { Step::run("documentation", doc) });
    steps.extend(example_steps(root, metadata));
    steps
}

/// The examples that a reader is to follow, built with the packages of all tests, for the same reason, and run.
fn example_steps(root: &Path, metadata: &Value) -> Vec<Step> {
    let names = workspace::tutorials(metadata);
    let chosen: Vec<String> = names.iter().flat_map(|name| ["--example".to_owned(), name.clone()]).collect();
    let build = Invocation::cargo("build --quiet --workspace --exclude synchromesh-py").args(&chosen);
    let folder = workspace::target(root).join("debug/examples");
    let run = |name: &String| {
        let program = Invocation::new(folder.join(name).display().to_string(), "");
        Step::run(format!("example {name}"), program)
    };
    std::iter::once(Step::run("examples, built", build)).chain(names.iter().map(run)).collect()
}

/// All tests on each instruction set, the best first.
fn test_steps(fast: bool) -> Vec<Step> {
    let isas = machine::isas();
    let best = machine::best_isa();
    let all = Invocation::cargo(ALL_TESTS).env_remove(ISA);
    let mut steps = vec![Step::run(format!("tests, isa {best} (the best here)"), all)];
    for (isa, here) in isas {
        if !here {
            steps.push(Step::skip(format!("isa {isa}"), "not on this CPU"));
        } else if isa != best && fast {
            steps.push(Step::skip(format!("isa {isa}"), "--fast"));
        } else if isa != best {
            steps.push(Step::run(format!("tests of kernels, isa {isa}"), kernel_tests(isa)));
        }
    }
    steps
}

/// The tests of kernels on an instruction set: the whole workspace as it is compiled already, each test program started
/// through [`run_if_of_kernels`].
fn kernel_tests(isa: &str) -> Invocation {
    let tests = Invocation::cargo(ALL_TESTS).env(ISA, isa);
    match std::env::current_exe() {
        Ok(this) => {
            let runner = format!("target.'cfg(all())'.runner = ['{}', '{RUN_IF_OF_KERNELS}']", this.display());
            tests.args(&["--config".to_owned(), runner])
        }
        Err(_) => tests,
    }
}

/// Runs the test program in `args` if cargo says that it belongs to a package of [`KERNELS`]; passes otherwise.
///
/// # Errors
/// When the program cannot be started.
pub(crate) fn run_if_of_kernels(args: &[String]) -> Result<ExitCode> {
    let (Some((program, args)), Ok(package)) = (args.split_first(), std::env::var("CARGO_PKG_NAME")) else {
        bail!("{RUN_IF_OF_KERNELS} is for cargo to call");
    };
    if !KERNELS.contains(&package.as_str()) {
        return Ok(ExitCode::SUCCESS);
    }
    let status = Command::new(program).args(args).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `--package NAME` for every package whose results could depend on the instruction set.
pub(crate) fn sensitive(metadata: &Value) -> Vec<String> {
    let members = workspace::package_names(metadata);
    ISA_SENSITIVE
        .iter()
        .filter(|name| members.contains(name))
        .flat_map(|name| ["--package".to_owned(), (*name).to_owned()])
        .collect()
}

/// Makes sure that rustfmt and clippy are there, adding them with rustup where that is possible.
fn tools(root: &Path) -> Result<String> {
    let mut missing: Vec<&str> = absent(root);
    if !missing.is_empty() {
        eprintln!("missing: {}; trying rustup", missing.join(" and "));
        let names = missing.join(" ");
        let added = Invocation::new("rustup", &format!("component add {names}")).command(root).status();
        if added.is_ok_and(|status| status.success()) {
            missing = absent(root);
        }
    }
    match missing.as_slice() {
        [] => Ok("tools: rustfmt and clippy are here".into()),
        names => bail!(
            "the toolchain lacks {}, which the format and lint steps need: `rustup component add {}`, \
             or your distribution's package of that name",
            names.join(" and "),
            names.join(" ")
        ),
    }
}

fn absent(root: &Path) -> Vec<&'static str> {
    [("fmt", "rustfmt"), ("clippy", "clippy")]
        .into_iter()
        .filter(|(command, _)| {
            let status = Command::new(workspace::cargo())
                .args([command, "--version"])
                .current_dir(root)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            !status.is_ok_and(|status| status.success())
        })
        .map(|(_, component)| component)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Action;

    fn plan(fast: bool) -> Vec<Step> {
        let root = workspace::root().expect("a root");
        steps(&root, &workspace::metadata(&root).expect("metadata"), fast)
    }

    #[test]
    fn every_instruction_set_is_run_or_skipped_by_name() {
        for fast in [false, true] {
            let plan = plan(fast);
            for (isa, _) in machine::isas() {
                assert!(plan.iter().any(|step| step.name.contains(&format!("isa {isa}"))), "{isa}");
            }
        }
    }

    #[test]
    fn fast_runs_strictly_less() {
        let run = |fast| plan(fast).iter().filter(|step| !matches!(step.action, Action::Skip(_))).count();
        assert!(run(true) < run(false));
    }
}
