//! `cargo xtask verify`: the long tests, in release mode, with a record of the machine and the date.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::checks::{ISA, sensitive};
use crate::steps::{Invocation, Step, run_all};
use crate::{digests, machine, workspace};

/// Measures this machine, then how well its profile predicts and chooses; tables and figures go to `docs/planner`.
fn cost_model() -> Vec<Step> {
    const PROGRAM: &str = "run --quiet --release -p synchromesh-cli --bin synchromesh --";
    const PROFILE: &str = "target/profile.json";
    let step = |name: String, args: String| Step::run(name, Invocation::cargo(&format!("{PROGRAM} {args}")));
    let tune = step("machine profile".to_owned(), format!("tune --out {PROFILE}"));
    let items = ["planner-predictions", "planner-choices"];
    let judged = items.map(|i| step(i.to_owned(), format!("reproduce {i} --profile {PROFILE} --out docs/planner")));
    std::iter::once(tune).chain(judged).collect()
}

/// Measures this machine and judges the cost model alone: the share of predictions within 15 % of the median, and the
/// chosen plans beside the best of all plans measured, at ten parameter sets.
///
/// # Errors
/// On arguments, of which there are none.
pub(crate) fn judge_cost_model(args: &[String]) -> Result<ExitCode> {
    ensure!(args.is_empty(), "unknown arguments {args:?}; usage: cargo xtask cost-model");
    Ok(run_all(&workspace::root()?, &cost_model()).tally.exit_code())
}

/// Runs every test, the ignored ones included, on every instruction set, judges the cost model, measures the errors of
/// every operation (tables and figures go to `docs/noise`), and writes `docs/verify.md`.
///
/// # Errors
/// On arguments, of which there are none, or when the record cannot be written.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    ensure!(args.is_empty(), "unknown arguments {args:?}; usage: cargo xtask verify");
    let root = workspace::root()?;
    let metadata = workspace::metadata(&root)?;
    let best = machine::best_isa();
    let all = Invocation::cargo("test --quiet --release --workspace --lib --bins --tests -- --include-ignored");
    let mut steps = vec![Step::run(format!("all tests, isa {best}"), all.env_remove(ISA))];
    for (isa, here) in machine::isas() {
        if !here {
            steps.push(Step::skip(format!("isa {isa}"), "not on this CPU"));
        } else if isa != best {
            let tests = Invocation::cargo("test --quiet --release --lib --tests").args(&sensitive(&metadata));
            let tests = tests.args(&["--", "--include-ignored"].map(str::to_owned)).env(ISA, isa);
            steps.push(Step::run(format!("all tests, isa {isa}"), tests));
        }
    }
    steps.extend(cost_model());
    let noise = "run --quiet --release -p synchromesh-bench --example noise_suite -- docs/noise";
    steps.push(Step::run("errors of every operation".to_owned(), Invocation::cargo(noise)));
    steps.push(Step::check("digests on every isa", digests::check, "cargo xtask verify"));
    let record = run_all(&root, &steps);
    let text = format!(
        "# Last long verification\n\n`cargo xtask verify` on {}, {}, {}, commit {}.\n\n```text\n{}\n{}\n```\n",
        machine::date(),
        machine::cpu(),
        machine::rustc(),
        machine::commit(&root),
        record.lines.join("\n"),
        record.tally,
    );
    let path = root.join("docs/verify.md");
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("written to docs/verify.md");
    Ok(record.tally.exit_code())
}
