//! `cargo xtask verify`: the long tests, in release mode, with a record of the machine and the date.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

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

/// What was measured by a run of the noise suite that was interrupted.
const NOISE_RECORD: &str = "target/noise-record.jsonl";

/// A part of the long verification, with a section of its own in the record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Tests,
    CostModel,
    Noise,
    Plans,
    Triples,
}

impl Part {
    const ALL: [Self; 5] = [Self::Tests, Self::CostModel, Self::Noise, Self::Plans, Self::Triples];

    const fn name(self) -> &'static str {
        match self {
            Self::Tests => "tests",
            Self::CostModel => "cost-model",
            Self::Noise => "noise",
            Self::Plans => "plans",
            Self::Triples => "triples",
        }
    }

    fn steps(self, root: &Path) -> Result<Vec<Step>> {
        const PROGRAM: &str = "run --quiet --release -p synchromesh-bench --example";
        let program =
            |name: &str, rest: &str| Step::run(name.to_owned(), Invocation::cargo(&format!("{PROGRAM} {rest}")));
        Ok(match self {
            Self::Tests => tests(root)?,
            Self::CostModel => cost_model(),
            Self::Noise => {
                vec![program(
                    "errors of every operation",
                    &format!("noise_suite -- --record {NOISE_RECORD} docs/noise"),
                )]
            }
            Self::Plans => vec![program("random circuits at their plans", "plan_suite -- docs/planner")],
            Self::Triples => adversary(root),
        })
    }
}

/// Every test, the ignored ones included, on every instruction set, and the digests of each.
fn tests(root: &Path) -> Result<Vec<Step>> {
    let metadata = workspace::metadata(root)?;
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
    steps.push(Step::check("digests on every isa", digests::check, "cargo xtask verify tests"));
    Ok(steps)
}

/// What became of parties that cheat: a line for each deed.
const ADVERSARY: &str = "docs/triples-adversary.csv";

/// Parties that cheat, fall silent or are killed while triples and keys are made: hundreds of runs.
fn adversary(root: &Path) -> Vec<Step> {
    let tests = |name: &str, of: &str| {
        let all = format!("test --release {of} -- --include-ignored --nocapture --test-threads 2");
        let record = root.join(ADVERSARY).display().to_string();
        Step::run(name.to_owned(), Invocation::cargo(&all).env("SYNCHROMESH_RECORD", &record))
    };
    vec![
        Step::check("a new record", begin_adversary, "cargo xtask verify triples"),
        tests("a cheater at every frame", "-p synchromesh-triples --lib generation"),
        tests("the online phase", "-p synchromesh-triples --test online"),
        tests("processes that are killed, and files of 128 x 128 x 128", "-p synchromesh-cli --test triples"),
    ]
}

fn begin_adversary(root: &Path) -> Result<String> {
    let head = "protocol,deed,runs,unharmed,aborts_of_honest_parties,blamed_on_the_cheater\n";
    fs::write(root.join(ADVERSARY), head).with_context(|| format!("cannot write {ADVERSARY}"))?;
    Ok(ADVERSARY.to_owned())
}

/// Runs the parts named, or all: every test on every instruction set; the cost model (`docs/planner`); the errors of every
/// operation (`docs/noise`), which goes on where an interrupted run stopped; random circuits at planned parameters
/// (`docs/planner`); cheaters in the protocol that makes triples
/// (`docs/triples-adversary.csv`). Each writes its section of `docs/verify.md`.
///
/// # Errors
/// On a part that there is not, or when the record cannot be written.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let find = |name: &String| Part::ALL.into_iter().find(|part| part.name() == name);
    let named: Option<Vec<Part>> = args.iter().map(find).collect();
    let Some(named) = named else {
        bail!("unknown parts in {args:?}; usage: cargo xtask verify [{}]", Part::ALL.map(Part::name).join("|"));
    };
    let root = workspace::root()?;
    let mut code = ExitCode::SUCCESS;
    for part in if named.is_empty() { Part::ALL.to_vec() } else { named } {
        let record = run_all(&root, &part.steps(&root)?);
        let section = format!(
            "{}, {}, {}, commit {}.\n\n```text\n{}\n{}\n```\n",
            machine::date(),
            machine::cpu(),
            machine::rustc(),
            machine::commit(&root),
            record.lines.join("\n"),
            record.tally,
        );
        let path = root.join("docs/verify.md");
        let before = fs::read_to_string(&path).unwrap_or_default();
        let text = with_section(&before, part.name(), &section);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("written to docs/verify.md");
        if record.tally.failed > 0 {
            code = ExitCode::FAILURE;
        } else if part == Part::Noise {
            // The next run measures again; it need not be there.
            let _ = fs::remove_file(root.join(NOISE_RECORD));
        }
    }
    Ok(code)
}

/// The text of the record with this section in place of the one of that name, or after the others.
fn with_section(text: &str, name: &str, section: &str) -> String {
    const HEAD: &str = "# Long verification\n\nThe last run of each part of `cargo xtask verify`.\n";
    let mut sections: Vec<(&str, &str)> = text.split("\n## ").skip(1).filter_map(|s| s.split_once("\n\n")).collect();
    match sections.iter_mut().find(|(other, _)| *other == name) {
        Some(found) => found.1 = section,
        None => sections.push((name, section)),
    }
    let mut out = HEAD.to_owned();
    for (name, body) in sections {
        out.push_str(&format!("\n## {name}\n\n{}\n", body.trim_end()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_writes_its_own_section() {
        let one = with_section("# an older record\n", "noise", "a\n\nb\n");
        let two = with_section(&one, "plans", "c\n");
        assert!(one.starts_with("# Long verification\n") && two.starts_with(&*one));
        assert_eq!(two, format!("{one}\n## plans\n\nc\n"));
        let again = with_section(&two, "noise", "d\n");
        assert!(again.contains("## noise\n\nd\n\n## plans\n\nc\n") && !again.contains("\nb\n"));
    }
}
