//! `plan`: parameters from a description.

use super::overwrite::Overwrite;
use super::place::Cores;
use crate::error::Error;
use crate::expression::Graph;
use crate::output::Report;
use crate::plot::plan::{Bar, plan_plot};
use crate::profile;
use crate::session::compute;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::sync::Arc;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::Arithmetic;
use synchromesh::ckks::Ckks;
use synchromesh::ckks::bootstrap::Messages;
use synchromesh::cost::{IndexMap, Profile};
use synchromesh::plan::{Description, Joint, LevelSwitch, Plan, SchemeName};
use synchromesh::rlwe::noise::FailureLimit;
use synchromesh::rlwe::{PrimeSwitching, Security};
use synchromesh::scheme;
use synchromesh_ring::Backend;
use synchromesh_rlwe::file::{self, Access};

/// Depth of ckks plans up to which sums before each multiplication are planned for unasked.
const DEEPEST_CKKS_SUMS: u32 = 3;

/// A scheme by name.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
pub(super) enum Scheme {
    Bfv,
    Bgv,
    Ckks,
}

impl From<Scheme> for SchemeName {
    fn from(scheme: Scheme) -> Self {
        match scheme {
            Scheme::Bfv => Self::Bfv,
            Scheme::Bgv => Self::Bgv,
            Scheme::Ckks => Self::Ckks,
        }
    }
}

/// What shall be computed, and how securely.
#[derive(Args, Debug)]
pub(super) struct Planning {
    /// The scheme: bfv and bgv compute exactly modulo t, ckks on reals to a precision.
    #[arg(long, value_enum)]
    scheme: Scheme,
    /// bfv, bgv: plaintext modulus, decimal or 0x.., 2 to 256 bits; a prime that is 1 mod 2N gives slots
    /// [default: 65537].
    #[arg(long)]
    t: Option<String>,
    /// ckks: results within 2^-PRECISION for inputs of magnitude 1 [default: 20].
    #[arg(long)]
    precision: Option<u32>,
    /// Multiplications one after the other.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100), required_unless_present_any = ["expression", "bootstrap"])]
    depth: Option<u32>,
    /// Plan for what `eval` is to compute: depth and rotations are found by running it without data.
    #[arg(long, conflicts_with = "depth")]
    expression: Option<String>,
    /// ckks: the largest magnitudes of the names in the expression, say x=8,y=0.5 [default: 1 each].
    #[arg(long, value_delimiter = ',', value_parser = bound, value_name = "NAME=B", requires = "expression")]
    bounds: Vec<(String, f64)>,
    /// Rotations to make keys for, say 1,2,-4.
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_name = "LIST")]
    rotations: Vec<i64>,
    /// Make the key for conj(x): complex conjugation, or the swap of the two rows of slots in bfv and bgv.
    #[arg(long)]
    swap: bool,
    /// Additions before each multiplication and at the end [default: 1; for ckks 0 beyond depth 3, since the growth of
    /// sums is squared by each multiplication].
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1 << 20))]
    adds: Option<u32>,
    /// Least number of slots.
    #[arg(long, default_value_t = 0)]
    slots: usize,
    /// Bits of security.
    #[arg(long, default_value = "128", value_parser = ["128", "192", "256"])]
    security: String,
    /// Security against quantum computers: smaller moduli, by the model that the plan names.
    #[arg(long, conflicts_with = "insecure")]
    quantum: bool,
    /// Allow any security at all: for tests.
    #[arg(long, conflicts_with = "security")]
    insecure: bool,
    /// Largest probability that a decryption fails or, in ckks, that an error exceeds what its certificate says. 2^-40 is as
    /// likely as a fault of the machine: not where an attacker may have ciphertexts of his making decrypted.
    #[arg(long, default_value = "2^-128", value_parser = failure)]
    failure: FailureLimit,
    /// Most bytes all evaluation keys may take; rotations are composed from fewer keys where that helps.
    #[arg(long)]
    max_key_bytes: Option<u64>,
    /// Most bytes of memory that keys, ciphertexts, tables and temporaries may take.
    #[arg(long)]
    max_memory_bytes: Option<u64>,
    /// Most digits of a key switch: a larger degree where a smaller one needs more.
    #[arg(long, value_name = "OMEGA")]
    max_digits: Option<usize>,
    /// Widest prime in bits, 30 to 60 [default: 50; with --profile the faster of 50 and 60].
    #[arg(long)]
    width: Option<u32>,
    /// Mostly large primes: MU of them leave where KAPPA levels are used up.
    #[arg(long, value_name = "MU,KAPPA", value_delimiter = ',')]
    prime_switching: Vec<usize>,
    /// Levels from the top under the first secret key, the others under a second one.
    #[arg(long, default_value_t = 0)]
    leading_levels: usize,
    /// Rotate at this level and below only, a level being the multiplications that remain: smaller keys for rotations.
    #[arg(long, value_name = "LEVEL")]
    rotation_level: Option<usize>,
    /// Refresh ciphertexts where levels, in bfv and bgv room for noise, run out, so that computations have no end: in ckks those
    /// of magnitude at most BOUND. --depth is then the least number of levels, in bfv and bgv of products in a row, between two
    /// refreshes [default: those that take the least time each; 1], --precision what a refresh keeps.
    #[arg(long, value_name = "BOUND", num_args = 0..=1, default_missing_value = "1")]
    bootstrap: Option<f64>,
    /// The key is one that so many parties make and hold together, with `parties keygen`: results have room for the noise of a
    /// decryption by all of them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=64))]
    parties: Option<u32>,
    /// As many of them as decrypt [default: all].
    #[arg(long, value_name = "T", requires = "parties", value_parser = clap::value_parser!(u32).range(2..=64))]
    threshold: Option<u32>,
    /// Each of them proves its shares of the keys, and is blamed for a wrong one: nobody has to be trusted with the making of
    /// them. Noise then is for the worst that proofs let through.
    #[arg(long, requires = "parties")]
    proofs: bool,
    /// Bits by which what parties show of their shares is hidden [default: 128; in ckks, where each bit takes half a bit of
    /// the scale, 40].
    #[arg(long, value_name = "S", requires = "parties", value_parser = clap::value_parser!(u32).range(30..=256))]
    statistical_security: Option<u32>,
    /// log2 of how many ciphertexts the parties may decrypt under one key [default: 20; in ckks 10].
    #[arg(long, value_name = "LOG2", requires = "parties", value_parser = clap::value_parser!(u32).range(0..=40))]
    decryptions: Option<u32>,
    /// bgv: the levels of the static rule, one size for all.
    #[arg(long = "static")]
    static_levels: bool,
    /// A machine profile, that of the machine which will compute: choices are made for it. Without one they are the same
    /// everywhere, and times are predicted for this machine if `tune` was run. In place of a file, a100-predicted,
    /// h100-predicted, h200-predicted or rtx-4090-predicted: a card's, by a model from counted instructions.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    #[command(flatten)]
    threads: Cores,
    /// Say why each choice was made.
    #[arg(long)]
    explain: bool,
    /// Draw levels, noise, and what a key switch takes at each level.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Write the plan for `keygen`.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
}

impl Planning {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        let existing = self.overwrite.permit(self.out.as_deref().into_iter().chain(self.plot.as_deref()))?;
        let graph = self.expression.as_deref().map(Graph::parse).transpose()?;
        let description = self.description(graph.as_ref())?;
        let threads = self.threads.settle()?.count();
        let own = profile::load(self.profile.as_deref(), threads)?;
        let mut plan = match (&graph, &self.profile) {
            (Some(graph), _) => self.plan_expression(&description, graph)?,
            (None, Some(_)) => description.plan_for(own.as_ref())?,
            (None, None) => description.plan()?,
        };
        let mut map = None;
        if let Some(own) = own {
            if self.profile.is_none() || graph.is_some() {
                plan.predict(&own)?;
            }
            if own.predicted {
                plan.explain.push(format!("times: of an {}: the card was not measured", own.machine));
            } else if own.threads != threads {
                plan.explain.push(format!(
                    "times: on {} of {threads} threads, as the profile was measured; `tune --threads {threads}` measures more",
                    own.threads
                ));
            }
            if self.explain || json || self.plot.is_some() {
                map = index_map(&mut plan, &own, self.max_key_bytes);
            }
        }
        if let Some(out) = &self.out {
            file::write(out, (plan.to_json()? + "\n").as_bytes(), Access::Public, existing)?;
        }
        if let Some(plot) = &self.plot {
            let svg = plan_plot(&plan, &bars(&plan, map.as_ref()));
            file::write(plot, svg.as_bytes(), Access::Public, existing)?;
        }
        let report = Report::new(&plan)?;
        if json {
            return Ok(report);
        }
        let report = report.without(&["format", "version", "params", "nodes"]);
        Ok(if self.explain { report } else { report.without(&["explain"]) })
    }

    /// The plan of an expression, by running it without data.
    fn plan_expression(&self, description: &Description, graph: &Graph) -> Result<Plan, Error> {
        let mut bounds = vec![1.0; graph.inputs().len()];
        for (name, bound) in &self.bounds {
            let Some(place) = graph.inputs().iter().position(|input| input == name) else {
                return Err(Error::Usage { message: format!("--bounds names '{name}', which the expression has not") });
            };
            bounds[place] = *bound;
        }
        let count = bounds.len();
        Ok(match self.scheme {
            Scheme::Bfv => description.plan_exact::<Bfv>(count, |e, x| run::<Bfv, _>(graph, e, x))?,
            Scheme::Bgv => description.plan_exact::<Bgv>(count, |e, x| run::<Bgv, _>(graph, e, x))?,
            Scheme::Ckks => description.plan_ckks(&bounds, |e, x| run::<Ckks, _>(graph, e, x))?,
        })
    }

    fn description(&self, graph: Option<&Graph>) -> Result<Description, Error> {
        let own = graph.filter(|_| self.bootstrap.is_none()).map_or(0, Graph::depth);
        let depth = self.depth.unwrap_or(own);
        let refuse = |message: &str| Err(Error::Usage { message: message.to_owned() });
        match (self.scheme, &self.t, self.precision) {
            (Scheme::Ckks, Some(_), _) => return refuse("--t is for bfv and bgv; ckks takes --precision"),
            (Scheme::Bfv | Scheme::Bgv, _, Some(_)) => return refuse("--precision is for ckks; bfv and bgv take --t"),
            (Scheme::Bfv | Scheme::Bgv, ..) if self.bootstrap.is_some_and(|bound| bound != 1.0) => {
                return refuse("--bootstrap takes a bound in ckks only: bfv and bgv refresh any message");
            }
            _ => {}
        }
        let security = match self.security.as_str() {
            _ if self.insecure => Security::Insecure,
            "192" if self.quantum => Security::Quantum192,
            "256" if self.quantum => Security::Quantum256,
            _ if self.quantum => Security::Quantum128,
            "192" => Security::Bits192,
            "256" => Security::Bits256,
            _ => Security::Bits128,
        };
        let sums = graph.is_none() && (self.scheme != Scheme::Ckks || depth <= DEEPEST_CKKS_SUMS);
        let default_adds = u32::from(sums);
        let prime_switching = match self.prime_switching[..] {
            [] => None,
            [mu, kappa] => Some(PrimeSwitching::new(mu, kappa)?),
            _ => return refuse("--prime-switching takes two numbers, say 2,3"),
        };
        let mut rotations = self.rotations.clone();
        rotations.sort_unstable();
        rotations.dedup();
        Ok(Description {
            t: self.t.clone(),
            precision: self.precision,
            additions: self.adds.unwrap_or(default_adds) as usize,
            rotations,
            swap: self.swap,
            min_slots: self.slots,
            security,
            max_key_bytes: self.max_key_bytes,
            max_memory_bytes: self.max_memory_bytes,
            max_digits: self.max_digits,
            width: self.width,
            prime_switching,
            leading_levels: self.leading_levels,
            rotation_level: self.rotation_level,
            static_levels: self.static_levels,
            bootstrap: self.bootstrap,
            // There are no others on the command line.
            messages: Messages::Real,
            joint: self.joint(),
            failure: self.failure,
            ..Description::new(self.scheme.into(), depth as usize)
        })
    }
}

impl Planning {
    /// Who holds the key together.
    fn joint(&self) -> Option<Joint> {
        let (security, decryptions) = if self.scheme == Scheme::Ckks { (40, 10) } else { (128, 20) };
        self.parties.map(|parties| {
            let joint = Joint::any_of(self.threshold.unwrap_or(parties) as usize, parties as usize)
                .with_security(self.statistical_security.unwrap_or(security))
                .with_decryptions(1 << self.decryptions.unwrap_or(decryptions));
            if self.proofs { joint.with_proofs() } else { joint }
        })
    }
}

/// A failure probability that plans are made for.
fn failure(text: &str) -> Result<FailureLimit, String> {
    let known = || FailureLimit::ALL.map(|limit| limit.to_string()).join(", ");
    FailureLimit::ALL
        .into_iter()
        .find(|limit| limit.to_string() == text)
        .ok_or_else(|| format!("expected one of {}", known()))
}

/// A name with the largest magnitude of its numbers.
fn bound(text: &str) -> Result<(String, f64), String> {
    let wrong = || "expected NAME=B, B a positive number".to_owned();
    let (name, bound) = text.split_once('=').ok_or_else(wrong)?;
    let bound: f64 = bound.trim().parse().map_err(|_| wrong())?;
    if bound.is_finite() && bound > 0.0 { Ok((name.trim().to_owned(), bound)) } else { Err(wrong()) }
}

/// The value of an expression of these ciphertexts.
fn run<S: scheme::Scheme, B: Backend>(
    graph: &Graph,
    evaluator: &S::Evaluator<B>,
    x: &[S::Ciphertext<B>],
) -> synchromesh::Result<Vec<S::Ciphertext<B>>> {
    let inputs = x.iter().map(|x| evaluator.duplicate(x).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let apply =
        |operation: &scheme::Operation<'_>, x: &[&S::Ciphertext<B>]| scheme::apply::<S, B>(evaluator, operation, x);
    let value =
        graph.evaluate(|operation| compute(S::NAME, &inputs, &operation, apply)).map_err(|error| match error {
            Error::Scheme(error) => error,
            other => synchromesh::Error::Argument { rule: other.to_string() },
        })?;
    Ok(vec![evaluator.duplicate(&value)?])
}

/// What each level could gain by a key of its own, and a line for each level in the plan's explanation.
fn index_map(plan: &mut Plan, profile: &Profile, budget: Option<u64>) -> Option<IndexMap> {
    let keys = 1 + plan.rotation_keys().len() as u64 + u64::from(plan.swap);
    let map = match plan.index_map(profile, budget.map(|bytes| bytes / keys)) {
        Ok(map) => map,
        Err(e) => {
            plan.explain.push(format!("index map: {e}"));
            return None;
        }
    };
    let now: f64 = plan.switch.iter().filter_map(|s| s.predicted_ms).sum();
    plan.explain.push(format!(
        "index map: a plan for each level would take {:.3} ms for one switch at every level, the one plan in use {now:.3} \
         ms; prepared keys {} bytes a source",
        1e3 * map.seconds(),
        map.key_bytes
    ));
    plan.explain.extend(map.explain());
    Some(map)
}

/// What a key switch takes at each level, with the plan's own choice and the fastest.
pub(super) fn bars(plan: &Plan, map: Option<&IndexMap>) -> Vec<Bar> {
    let bar = |switch: &LevelSwitch| {
        let choice = map.and_then(|map| map.choices.iter().find(|choice| choice.level == switch.level));
        Bar {
            level: switch.level,
            milliseconds: switch.predicted_ms,
            fastest: choice.map(|choice| 1e3 * choice.seconds),
            label: format!("{} x {}", switch.omega, switch.digit_primes),
        }
    };
    plan.switch.iter().map(bar).collect()
}
