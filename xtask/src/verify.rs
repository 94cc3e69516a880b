//! `cargo xtask verify`: the long tests, in release mode but those of triples, with a record of the machine and the date.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use crate::checks::{ISA, sensitive};
use crate::programs::Programs;
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
    Functions,
    Triples,
    Bootstrap,
}

impl Part {
    const ALL: [Self; 7] =
        [Self::Tests, Self::CostModel, Self::Noise, Self::Plans, Self::Functions, Self::Triples, Self::Bootstrap];

    const fn name(self) -> &'static str {
        match self {
            Self::Tests => "tests",
            Self::CostModel => "cost-model",
            Self::Noise => "noise",
            Self::Plans => "plans",
            Self::Functions => "functions",
            Self::Triples => "triples",
            Self::Bootstrap => "bootstrap",
        }
    }

    /// What a run of it shows.
    const fn shows(self) -> &'static str {
        match self {
            Self::Tests => {
                "every test of the workspace passes, the long ones included, on every instruction set of the machine, and \
                 gives the same bits on each"
            }
            Self::CostModel => {
                "how far predicted times are from measured ones, and the plans that are chosen by them from the best of all \
                 plans measured (`docs/planner`)"
            }
            Self::Noise => {
                "measured errors of every operation of every scheme beside the average case and the certificates, the rate of \
                 wrong decryptions beside the predicted one, and the modulus that circuits take by each model (`docs/noise`)"
            }
            Self::Plans => {
                "plans of depth 10 for every scheme and security keep the table of moduli, and 1000 of 1000 random circuits of \
                 that depth decrypt rightly at each (`docs/planner/decryptions.csv`)"
            }
            Self::Functions => {
                "at a million points each, no function is further from what stands in its place than is proved \
                 (`docs/functions.csv`)"
            }
            Self::Bootstrap => {
                "refreshes of CKKS ciphertexts at real parameters: the largest error of a slot beside the certificate, the \
                 multiples of the modulus that come in beside their distribution, and one ciphertext refreshed again and again; \
                 products in a row of BFV and BGV with refreshes between, all coefficients of each compared (`docs/bootstrap`)"
            }
            Self::Triples => {
                "parties that cheat, fall silent or are killed while triples and keys are made: honest ones always abort with \
                 the blame and give out no triple; one that learns the MAC key, aborts and comes back finds nobody who accepts \
                 a wrong value in a thousand attacks (`docs/triples-adversary.csv`)"
            }
        }
    }

    /// `cases` are those that a suite of noise, plans or refreshes is cut down to; none: all.
    fn steps(self, root: &Path, cases: &[String]) -> Result<Vec<Step>> {
        const PROGRAM: &str = "run --quiet --release -p synchromesh-bench --example";
        let program =
            |name: &str, rest: &str| Step::run(name.to_owned(), Invocation::cargo(&format!("{PROGRAM} {rest}")));
        let cases = cases.iter().map(|case| format!(" {case}")).collect::<String>();
        Ok(match self {
            Self::Tests => tests(root)?,
            Self::CostModel => cost_model(),
            Self::Noise => {
                vec![program(
                    "errors of every operation",
                    &format!("noise_suite -- --record {NOISE_RECORD} docs/noise{cases}"),
                )]
            }
            Self::Plans => {
                vec![program("random circuits at their plans", &format!("plan_suite -- docs/planner 1000{cases}"))]
            }
            Self::Functions => {
                let args = "run --quiet --release -p synchromesh --example functions -- docs";
                vec![Step::run("a million points each".to_owned(), Invocation::cargo(args))]
            }
            Self::Triples => adversary(root)?,
            Self::Bootstrap => {
                vec![program("refreshes", &format!("refresh_suite -- docs/bootstrap{cases}"))]
            }
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

/// All tests, with debug assertions, as `cargo xtask test` has them; what computes most here is compiled to be fast, which takes
/// longer.
const CHECKED: &str = "test --quiet --workspace --exclude synchromesh-py --lib --bins --tests --no-run \
    --config profile.dev.package.synchromesh-parties.opt-level=3 \
    --config profile.dev.package.synchromesh-triples.opt-level=3";

/// Parties that cheat, fall silent or are killed while triples and keys are made: hundreds of runs.
///
/// # Errors
/// When the tests do not compile.
fn adversary(root: &Path) -> Result<Vec<Step>> {
    let programs = Programs::build(root, [Invocation::cargo(CHECKED)])?;
    let record = root.join(ADVERSARY).display().to_string();
    let tests = |name: &str, program: &str, of: &str| -> Result<Step> {
        let all = programs.start(program, &format!("{of} --include-ignored --nocapture --test-threads 2"))?;
        Ok(Step::run(name.to_owned(), all.env("SYNCHROMESH_RECORD", &record)))
    };
    Ok(vec![
        Step::check("a new record", begin_adversary, "cargo xtask verify triples"),
        tests("a cheater at every frame", "synchromesh-triples/synchromesh_triples", "generation")?,
        tests("the same of joint keys", "synchromesh-parties/synchromesh_parties", "joint")?,
        tests("the online phase", "synchromesh-triples/it", "online")?,
        tests("processes that are killed, and files of 128 x 128 x 128", "synchromesh-cli/it", "triples")?,
    ])
}

fn begin_adversary(root: &Path) -> Result<String> {
    let head = "protocol,deed,runs,unharmed,aborts_of_honest_parties,blamed_on_the_cheater\n";
    fs::write(root.join(ADVERSARY), head).with_context(|| format!("cannot write {ADVERSARY}"))?;
    Ok(ADVERSARY.to_owned())
}

/// Runs the parts named, or all: every test on every instruction set; the cost model (`docs/planner`); the errors of every
/// operation (`docs/noise`), which goes on where an interrupted run stopped; random circuits at planned parameters
/// (`docs/planner`); functions at a million points (`docs/functions.csv`); cheaters in the protocol that makes triples
/// (`docs/triples-adversary.csv`); refreshes of ciphertexts (`docs/bootstrap`). Each writes its section of
/// `docs/verify.md`. `noise` may be followed by sizes LOG_N:KEYS, `plans` by cases SCHEME:SECURITY and `bootstrap` by
/// LOG_N:REFRESHES:CHAIN or SCHEME:LOG_N:T:PRODUCTS, without which it takes hours and 10 GB of memory; the section names them.
///
/// # Errors
/// On a part that there is not, or when the record cannot be written.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let Some(named) = parts(args) else {
        bail!(
            "unknown parts in {args:?}; usage: cargo xtask verify [{}], noise followed by sizes 12:100 .., plans by cases bgv:128 .., bootstrap by \
             LOG_N:REFRESHES:CHAIN or SCHEME:LOG_N:T:PRODUCTS",
            Part::ALL.map(Part::name).join("|")
        );
    };
    let root = workspace::root()?;
    let mut code = ExitCode::SUCCESS;
    for (part, cases) in named {
        let record = run_all(&root, &part.steps(&root, &cases)?);
        let section = format!(
            "{}, {}, {}, commit {}{}:\n\n```text\n{}\n{}\n```\n",
            machine::date(),
            machine::cpu(),
            machine::rustc(),
            machine::commit(&root),
            if cases.is_empty() { String::new() } else { format!("; only {}", cases.join(", ")) },
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
        } else if part == Part::Noise && cases.is_empty() {
            // The next run measures again; it need not be there.
            let _ = fs::remove_file(root.join(NOISE_RECORD));
        }
    }
    Ok(code)
}

/// The parts that the words name, all for none, each with the cases that follow it.
fn parts(words: &[String]) -> Option<Vec<(Part, Vec<String>)>> {
    let mut named: Vec<(Part, Vec<String>)> = Vec::new();
    for word in words {
        match Part::ALL.into_iter().find(|part| part.name() == word) {
            Some(part) => named.push((part, Vec::new())),
            None => {
                let last =
                    named.last_mut().filter(|(part, _)| matches!(part, Part::Noise | Part::Plans | Part::Bootstrap))?;
                last.1.push(Some(word).filter(|word| word.contains(':'))?.clone());
            }
        }
    }
    Some(if named.is_empty() { Part::ALL.map(|part| (part, Vec::new())).to_vec() } else { named })
}

/// The text of the record with this section in place of the one of that name; it has one for every part.
fn with_section(text: &str, name: &str, section: &str) -> String {
    const HEAD: &str = "# Long verification\n\nThe last run of each part of `cargo xtask verify`; without a part it runs all of them.\n";
    let known: Vec<(&str, &str)> = text.split("\n## ").skip(1).filter_map(|s| s.split_once("\n\n")).collect();
    let mut out = HEAD.to_owned();
    for part in Part::ALL {
        let own = part.name();
        let lead = format!("`cargo xtask verify {own}` shows: {}.", part.shows());
        let before = known.iter().find(|(other, _)| *other == own).and_then(|(_, body)| body.split_once("\n\n"));
        let body =
            if own == name { section } else { before.map_or("Not run since this record began.", |(_, run)| run) };
        out.push_str(&format!("\n## {own}\n\n{lead}\n\n{}\n", body.trim_end()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_followed_by_their_cases() {
        let of = |words: &str| {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            parts(&words).map(|all| all.iter().map(|(p, c)| (p.name(), c.join(" "))).collect::<Vec<_>>())
        };
        assert_eq!(of("").map(|all| all.len()), Some(Part::ALL.len()));
        let cut = of("noise 12:100 13:20 tests").expect("words that are known");
        assert_eq!(cut, [("noise", "12:100 13:20".to_owned()), ("tests", String::new())]);
        assert_eq!((of("12:100"), of("tests 12:100"), of("noise 12"), of("nothing")), (None, None, None, None));
    }

    #[test]
    fn a_part_writes_its_own_section() {
        let none = "Not run since this record began.";
        let one = with_section("# an older record\n", "noise", "a\n\nb\n");
        assert!(one.starts_with("# Long verification\n") && one.matches(none).count() == Part::ALL.len() - 1);
        let two = with_section(&one, "plans", "c\n");
        assert_eq!(two.matches("\n## ").count(), Part::ALL.len());
        assert!(two.contains("(`docs/noise`).\n\na\n\nb\n\n## plans\n") && two.contains("\n\nc\n\n## "), "{two}");
        let again = with_section(&two, "noise", "d\n");
        assert!(again.contains("\n\nd\n\n## plans\n") && !again.contains("\nb\n") && again.contains("\n\nc\n\n## "));
    }
}
