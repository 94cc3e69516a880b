//! `cargo xtask compare`: this library and its peers in turn, in one run on one core, and the ratio of their times.

mod cases;
mod facts;
mod picture;
mod plans;
pub(crate) mod programs;
mod report;

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{machine, workspace};
use cases::{Case, Group};
use programs::{OURS, Programs};
use report::{About, Row};

const USAGE: &str = "usage: cargo xtask compare [ntt|key-switch|key-switch-sets|key-switch-levels|scheme|circuits|functions|joint|bootstrap] [--rounds 3] [--core N] [--min-time 1] [--isa NAME] [--peers-only]\n       \
                     cargo xtask compare plans|picture";

/// What the command line asks for.
struct Options {
    groups: Vec<Group>,
    rounds: usize,
    core: usize,
    min_time: u32,
    /// The instruction set of our program; the best one if none.
    isa: Option<&'static str>,
    peers_only: bool,
}

/// Median times per (case, program, operation), one a round, and the last line each came from.
#[derive(Default)]
struct Samples(BTreeMap<(usize, String, String), (Vec<f64>, Value)>);

/// Runs the comparison, prints its table and writes it to `docs/compare/`; fails when a ratio is above its limit.
///
/// # Errors
/// On bad arguments, when our own program cannot be built, or when the report cannot be written.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let root = workspace::root()?;
    if args == ["plans"] {
        return plans::run(&root);
    }
    if args == ["picture"] {
        return picture::run(&root);
    }
    let options = parse(args)?;
    let cases: Vec<Case> = cases::all().into_iter().filter(|case| options.groups.contains(&case.group)).collect();
    let mut programs = Programs::new(&root, options.core, options.min_time, options.isa);
    programs.build(&cases, options.peers_only)?;
    let mut samples = Samples::default();
    for round in 1..=options.rounds {
        for (index, case) in cases.iter().enumerate() {
            eprintln!("round {round} of {}: {}", options.rounds, case.label);
            samples.take(&mut programs, index, case);
            rows(index, case, &samples).iter().for_each(|row| eprintln!("    {}", row.brief()));
        }
    }
    let about = About {
        run: programs.description(options.rounds),
        reasons: programs.reasons(),
        peers_only: options.peers_only,
    };
    let all: Vec<Row> = cases.iter().enumerate().flat_map(|(index, case)| rows(index, case, &samples)).collect();
    report::publish(&root, &options.groups, &all, &about)
}

fn parse(args: &[String]) -> Result<Options> {
    let mut options = Options {
        groups: Vec::new(),
        rounds: 3,
        core: std::thread::available_parallelism().map_or(1, usize::from) - 1,
        min_time: 1,
        isa: None,
        peers_only: false,
    };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value\n{USAGE}"));
        let mut number = || -> Result<usize> {
            let text = value()?;
            text.parse().with_context(|| format!("{word} takes a whole number, not '{text}'\n{USAGE}"))
        };
        match word.as_str() {
            "--rounds" => options.rounds = number()?.max(1),
            "--core" => options.core = number()?,
            "--min-time" => options.min_time = u32::try_from(number()?).context(USAGE)?,
            "--isa" => options.isa = Some(isa(value()?)?),
            "--peers-only" => options.peers_only = true,
            name => match Group::ALL.into_iter().find(|group| group.name() == name) {
                Some(group) => options.groups.push(group),
                None => bail!("unknown argument '{name}'\n{USAGE}"),
            },
        }
    }
    if options.groups.is_empty() {
        options.groups = Group::ALL.into_iter().filter(|group| group.by_default()).collect();
    }
    Ok(options)
}

/// The instruction set of that name.
fn isa(name: &str) -> Result<&'static str> {
    let here: Vec<_> = machine::isas().into_iter().filter_map(|(isa, here)| here.then_some(isa)).collect();
    let known = here.iter().copied().find(|isa| *isa == name);
    known.with_context(|| format!("this machine has no instruction set '{name}', but {}\n{USAGE}", here.join(", ")))
}

impl Samples {
    /// Runs our program, then every peer, on one case.
    fn take(&mut self, programs: &mut Programs, index: usize, case: &Case) {
        for call in &case.ours {
            for line in programs.run(OURS, &call.args) {
                for field in &call.fields {
                    if let Some(time) = field.of(&line) {
                        self.push(index, OURS, field.op, time * field.to_ns, &line);
                    }
                }
            }
        }
        for call in &case.peers {
            for line in programs.run(call.peer, &call.args) {
                if let (Some(op), Some(ns)) = (line["op"].as_str(), line["median_ns"].as_f64()) {
                    self.push(index, call.peer, op, ns, &line);
                }
            }
        }
    }

    fn push(&mut self, case: usize, program: &str, op: &str, ns: f64, line: &Value) {
        let entry = self.0.entry((case, program.into(), op.into())).or_default();
        entry.0.push(ns);
        entry.1 = line.clone();
    }

    /// The median of the best round, and the last line.
    fn best(&self, case: usize, program: &str, op: &str) -> Option<(f64, &Value)> {
        let (medians, line) = self.0.get(&(case, program.to_owned(), op.to_owned()))?;
        Some((best(medians)?, line))
    }
}

/// The smallest of the medians: a round disturbed by other work on the machine says nothing about a program.
fn best(medians: &[f64]) -> Option<f64> {
    medians.iter().copied().min_by(f64::total_cmp)
}

/// One row for every (operation, peer) of a case, whether it was measured or not.
fn rows(index: usize, case: &Case, samples: &Samples) -> Vec<Row> {
    let mut rows = Vec::new();
    for op in &case.ops {
        let our_op = op.trim_end_matches(cases::UNNORMALISED);
        let ours = samples.best(index, OURS, our_op);
        let mut seen = Vec::new();
        for call in &case.peers {
            if seen.contains(&call.peer) {
                continue;
            }
            seen.push(call.peer);
            let peer = samples.best(index, call.peer, op);
            if peer.is_none() && call.lacks.contains(op) {
                continue;
            }
            rows.push(Row::new(case, op, call.peer, ours, peer));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbed_round_does_not_count() {
        assert_eq!(best(&[3.0, 1.0, 20.0]), Some(1.0));
        assert_eq!(best(&[]), None);
    }

    #[test]
    fn arguments_are_checked() {
        let parse = |text: &str| parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(parse("bootstrap").expect("a group").groups, [Group::Bootstrap]);
        let options = parse("ntt --rounds 5 --core 0").expect("good arguments");
        assert_eq!((options.groups.as_slice(), options.rounds, options.core), (&[Group::Ntt][..], 5, 0));
        assert_eq!(parse("").expect("no arguments").groups.len(), Group::ALL.len() - 1);
        assert!(parse("--rounds").is_err());
        assert!(parse("--rounds many").is_err());
        assert!(parse("fft").is_err());
        assert_eq!(parse("ntt --isa scalar").expect("every machine has it").isa, Some("scalar"));
        assert!(parse("ntt --isa").is_err());
        assert!(parse("ntt --isa mmx").is_err());
    }
}
