//! Plans that say which values are refreshed: found on the circuit of a run without data, and tried by another one.

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::Operation;

use super::placement::{Blocked, Graph, Lack, Limits, Placement};
use super::trace::Traced;
use super::{Limit, MOST_NODES, Plan};
use crate::ckks::Lineage;
use crate::ckks::bootstrap::Bootstrap;
use crate::ckks::recording::{Event, Recorder};
use crate::error::{Error, Result};

/// Most times that places are looked for: a circuit may take another way where levels are others.
const MOST_ROUNDS: usize = 4;

/// Most refreshes that are explained one by one.
const MOST_EXPLAINED: usize = 256;

/// A value that is refreshed before something takes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Placed {
    /// Which one.
    pub value: Lineage,
    /// What made it: an [`Operation`] in words, or an input.
    pub made_by: String,
    /// How many ciphertexts came about like that, each of which is refreshed.
    pub ciphertexts: usize,
    /// The first value that could not be made without this refresh.
    pub needed_by: Lineage,
    /// What makes that.
    pub needed_for: String,
}

/// A plan that says where values are refreshed, and what its circuit did.
struct Tried {
    plan: Plan,
    traced: Traced,
    /// Whether nothing was run after it.
    last: bool,
}

/// What came of all that was tried.
struct Trials {
    best: Option<Tried>,
    /// Whether anything was run.
    ran: bool,
    /// What was too large to be refreshed when the circuit ran last, or before.
    stuck: Option<String>,
}

/// How often a circuit refreshed, and whether it could.
struct Refreshes {
    count: usize,
    too_large: bool,
}

impl Refreshes {
    fn of(events: &[Event]) -> Self {
        let count = events.iter().filter(|event| matches!(event, Event::Refreshed)).count();
        Self { count, too_large: events.iter().any(|event| matches!(event, Event::TooLarge(_))) }
    }
}

/// Values of a graph in words.
struct Words<'a>(&'a Graph);

impl Words<'_> {
    fn made_by(&self, at: usize) -> String {
        self.0.values[at].operation.map_or_else(|| "input".to_owned(), |operation: Operation| operation.to_string())
    }

    /// "value 63 (product) would lack a level".
    fn lacks(&self, lack: Lack) -> String {
        match lack {
            Lack::Made(at) => format!("{} would lack a level", self.named(at)),
            Lack::Taken(at) => format!("{} would be too low for what takes it", self.named(at)),
        }
    }

    /// The first value that was to be refreshed and is too large for it.
    fn too_large(&self, events: &[Event]) -> Option<String> {
        let too_large = |event: &Event| match event {
            Event::TooLarge(value) => Some(*value),
            _ => None,
        };
        let value = events.iter().find_map(too_large)?;
        let named = self.0.find(value.lineage).map_or_else(|| "an input".to_owned(), |at| self.named(at));
        Some(format!("{named}, which may reach {:.4}", value.bound))
    }

    /// "value 57 (product)".
    fn named(&self, at: usize) -> String {
        format!("value {} ({})", at + 1, self.made_by(at))
    }
}

impl Plan {
    /// The plan with the values that are refreshed, where `run` follows them with no more refreshes than without.
    ///
    /// `events` are those of the run that found the plan. `run` is told of a plan and tells what it traced, or nothing where
    /// the results are not what they should be.
    pub(super) fn placed(
        self,
        recorder: &Recorder,
        run: impl Fn(&Self) -> Result<Option<Traced>>,
        most_memory: Option<u64>,
    ) -> Result<Self> {
        let Some(literal) = &self.bootstrap else { return Ok(self) };
        let bootstrap = Bootstrap::new(&self.ckks()?, literal.clone())?;
        let limits =
            Limits { lowest: bootstrap.input_level(), highest: bootstrap.output_level(), bound: literal.message_bound };
        let events = recorder.take();
        let alone = Refreshes::of(&events);
        let Trials { best, ran, stuck } = self.tried(events, recorder, &limits, &run)?;
        match best {
            Some(Tried { plan, traced, last: true }) => plan.with_circuit(traced, most_memory),
            // Once more, so that what was told last is of this plan.
            Some(Tried { plan, traced, .. }) => {
                let again = run(&plan)?.unwrap_or(traced);
                plan.with_circuit(again, most_memory)
            }
            None if alone.too_large => Err(unplaced(&limits, stuck)),
            None => {
                if ran {
                    run(&self)?;
                }
                Ok(self.with_greedy(alone.count))
            }
        }
    }

    /// The best of what was tried, if it is no worse than no places at all, and whether anything was.
    fn tried(
        &self,
        mut events: Vec<Event>,
        recorder: &Recorder,
        limits: &Limits,
        run: impl Fn(&Self) -> Result<Option<Traced>>,
    ) -> Result<Trials> {
        let alone = Refreshes::of(&events);
        let mut least = if alone.too_large { usize::MAX } else { alone.count };
        let mut trials = Trials { best: None, ran: false, stuck: Words(&Graph::of(&events)).too_large(&events) };
        for round in 0..MOST_ROUNDS {
            let graph = Graph::of(&events);
            let placement = match graph.place(limits) {
                Ok(Some(placement)) if (1..=MOST_NODES).contains(&placement.values.len()) => placement,
                Err(blocked) if round == 0 && alone.too_large => return Err(blocked_by(&graph, limits, blocked)),
                Ok(_) | Err(_) => break,
            };
            let mut plan = self.clone().with_places(&graph, limits, &placement, &alone);
            // What does not run with places is left without them.
            trials.ran = true;
            let Ok(Some(traced)) = run(&plan) else { break };
            events = recorder.take();
            let found = Refreshes::of(&events);
            let better = found.count < least || (trials.best.is_none() && found.count == least);
            trials.best = trials.best.map(|before| Tried { last: false, ..before });
            if found.too_large {
                trials.stuck = Words(&Graph::of(&events)).too_large(&events);
            } else if better {
                least = found.count;
                if let Some(more @ 1..) = found.count.checked_sub(placement.count) {
                    plan.explain.push(format!("and {more} more where a value runs out of levels all the same"));
                }
                trials.best = Some(Tried { plan, traced, last: true });
            }
            // What came out is what was worked out.
            if found.count <= placement.count && !found.too_large {
                break;
            }
        }
        Ok(trials)
    }

    fn with_places(mut self, graph: &Graph, limits: &Limits, placement: &Placement, alone: &Refreshes) -> Self {
        let words = Words(graph);
        let (count, least) = (placement.count, if placement.least { "fewer do not do" } else { "the fewest found" });
        let otherwise = match alone.too_large {
            true => "where levels run out a value may be too large".to_owned(),
            false => format!("{} where each is refreshed as it runs out of levels", alone.count),
        };
        self.explain.retain(|line| !line.starts_with("circuit: "));
        self.explain.push(format!("refreshes: {count}, {least}; {otherwise}"));
        for (at, &value) in placement.values.iter().enumerate() {
            let lack = graph.needing(limits, placement, value).unwrap_or(Lack::Taken(value));
            let ciphertexts = graph.values[value].weight;
            if at < MOST_EXPLAINED {
                let each = if ciphertexts > 1 { format!(", {ciphertexts} ciphertexts") } else { String::new() };
                let place = words.named(value);
                self.explain.push(format!("refresh {}: {place}{each}, without which {}", at + 1, words.lacks(lack)));
            }
            self.refreshes.push(Placed {
                value: graph.values[value].lineage,
                made_by: words.made_by(value),
                ciphertexts,
                needed_by: graph.values[lack.value()].lineage,
                needed_for: words.made_by(lack.value()),
            });
        }
        if placement.values.len() > MOST_EXPLAINED {
            self.explain.push(format!("and {} more refreshes", placement.values.len() - MOST_EXPLAINED));
        }
        self
    }

    fn with_greedy(mut self, count: usize) -> Self {
        let line = match count {
            0 => "refreshes: none".to_owned(),
            _ => format!("refreshes: {count}, each where a value has fewer levels left than the operation on it takes"),
        };
        self.explain.push(line);
        self
    }
}

/// The error for a circuit in which no refresh helps.
fn blocked_by(graph: &Graph, limits: &Limits, blocked: Blocked) -> Error {
    let words = Words(graph);
    let (lacking, most) = (words.named(blocked.lacking), limits.bound);
    let reason = match blocked.by {
        None => {
            let levels = limits.highest - limits.lowest;
            format!("{lacking} takes more than the {levels} levels between two refreshes")
        }
        Some(by) => {
            let (which, bound) = (words.named(by), graph.values[by].bound);
            format!(
                "{lacking} lacks a level, and {which} cannot be refreshed: it may reach {bound:.4} by its bound, and a refresh \
                 takes messages up to {most}"
            )
        }
    };
    Error::NoPlan { limit: Limit::Bounds, reason, nearest: None }
}

/// The error for a circuit whose places could not be followed.
fn unplaced(limits: &Limits, stuck: Option<String>) -> Error {
    let what = stuck.unwrap_or_else(|| "a value".to_owned());
    let reason = format!("{what}, runs out of levels, and messages are refreshed up to {}", limits.bound);
    Error::NoPlan { limit: Limit::Bounds, reason, nearest: None }
}
