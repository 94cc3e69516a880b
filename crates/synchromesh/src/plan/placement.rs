//! Where a circuit's values are refreshed: dynamic programming over live values and their levels.
//!
//! A run without data has written down which value is made of which and how many levels that takes ([`Graph`]). Values are
//! gone through in the order they were made. A state is the level of each value that something still takes, and what was
//! refreshed on the way; of two states that have refreshed equally much the one is dropped that has no value at a higher
//! level. What is left at the end has fewest refreshes, whatever the circuit, unless there were ever more than
//! [`MOST_STATES`], of which the cheapest are kept. Where to refresh is NP-hard in general (ePrint 2016/785): circuits that
//! people write have few values alive at once.

use std::collections::{BTreeMap, HashMap, HashSet};

use synchromesh_rlwe::Operation;

use crate::ckks::Lineage;
use crate::ckks::recording::{Event, Parent};

/// Most states that are kept at once.
const MOST_STATES: usize = 512;

/// A value of a circuit.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) lineage: Lineage,
    /// What made it; none for inputs.
    pub(super) operation: Option<Operation>,
    /// What it is made of.
    pub(super) from: Vec<usize>,
    /// Levels that this takes.
    takes: usize,
    /// The highest level that it may have.
    most: usize,
    /// Whether it could be refreshed, but for its bound.
    whole: bool,
    /// No slot is larger.
    pub(super) bound: f64,
    /// How many ciphertexts it stands for.
    pub(super) weight: usize,
    /// The last step that takes it.
    last: usize,
}

/// What happens to values, in order.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// It is made.
    Make(usize),
    /// It needs this level at the least.
    Need(usize, usize),
}

/// Values and what happens to them.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) values: Vec<Value>,
    steps: Vec<Step>,
    known: HashMap<Lineage, usize>,
}

/// What refreshes can do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The lowest level that results may have, from which a value can be refreshed.
    pub(super) lowest: usize,
    /// The level of a refreshed value.
    pub(super) highest: usize,
    /// No slot of a value that is refreshed exceeds this.
    pub(super) bound: f64,
}

/// Values to refresh, in the order they are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) values: Vec<usize>,
    /// Refreshes: one for each ciphertext.
    pub(super) count: usize,
    /// Whether fewer are known not to do.
    pub(super) least: bool,
}

/// What lacks levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// A value, when it is made.
    Made(usize),
    /// A value, when something takes it that needs more levels: a polynomial or a map.
    Taken(usize),
}

impl Lack {
    pub(super) const fn value(self) -> usize {
        match self {
            Self::Made(at) | Self::Taken(at) => at,
        }
    }
}

/// A circuit that no refreshes help: what would lack levels, and the last value up to it that is too large to be refreshed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocked {
    pub(super) lacking: usize,
    pub(super) by: Option<usize>,
}

impl Graph {
    pub(super) fn of(events: &[Event]) -> Self {
        let mut graph = Self::default();
        for event in events {
            match event {
                Event::Made { operation, from, made, most, whole } => {
                    let level = from.iter().map(|parent| parent.level).min();
                    let by_hand = *operation == Operation::Refresh;
                    let takes = if by_hand || most.is_some() {
                        0
                    } else {
                        level.unwrap_or(made.level) - made.level.min(level.unwrap_or(made.level))
                    };
                    let from =
                        if by_hand { Vec::new() } else { from.iter().map(|parent| graph.input(parent)).collect() };
                    graph.make(Value {
                        lineage: made.lineage,
                        operation: Some(*operation),
                        takes,
                        most: if by_hand { made.level } else { most.unwrap_or(usize::MAX) },
                        whole: *whole,
                        bound: made.bound,
                        ..Value::new(made.lineage, from)
                    });
                }
                Event::Needs { value, level } => {
                    let value = graph.input(value);
                    graph.steps.push(Step::Need(value, *level));
                    graph.values[value].last = graph.steps.len() - 1;
                }
                Event::Refreshed | Event::TooLarge(_) => {}
            }
        }
        graph
    }

    /// The value that came about like this.
    pub(super) fn find(&self, lineage: Lineage) -> Option<usize> {
        self.known.get(&lineage).copied()
    }

    /// The value of an operand, which is an input where nothing made it.
    fn input(&mut self, parent: &Parent) -> usize {
        if let Some(&value) = self.known.get(&parent.lineage) {
            return value;
        }
        let value = Value::new(parent.lineage, Vec::new());
        self.make(Value { most: parent.level, whole: true, bound: parent.bound, ..value })
    }

    fn make(&mut self, value: Value) -> usize {
        if let Some(&known) = self.known.get(&value.lineage) {
            let old = &mut self.values[known];
            old.weight += 1;
            (old.whole, old.bound) = (old.whole && value.whole, old.bound.max(value.bound));
            (old.takes, old.most) = (old.takes.max(value.takes), old.most.min(value.most));
            return known;
        }
        let (at, step) = (self.values.len(), self.steps.len());
        for &parent in &value.from {
            self.values[parent].last = step;
        }
        self.known.insert(value.lineage, at);
        self.values.push(Value { last: step, ..value });
        self.steps.push(Step::Make(at));
        at
    }

    /// The level of a value, of those of what it is made of; none where levels lack.
    fn level(&self, value: &Value, limits: &Limits, of: impl Fn(usize) -> usize) -> Option<usize> {
        let Some(from) = value.from.iter().map(|&parent| of(parent)).min() else { return Some(value.most) };
        let level = from.checked_sub(value.takes)?.min(value.most);
        (value.takes == 0 || level >= limits.lowest).then_some(level)
    }

    fn refreshable(&self, at: usize, level: usize, limits: &Limits) -> bool {
        let value = &self.values[at];
        value.whole && value.bound <= limits.bound && (limits.lowest..limits.highest).contains(&level)
    }

    /// What lacks levels first when these values are refreshed.
    fn lacking(&self, limits: &Limits, refreshed: impl Fn(usize, usize) -> bool) -> Option<Lack> {
        self.lacking_in(limits, refreshed, &mut vec![0; self.values.len()])
    }

    fn lacking_in(
        &self,
        limits: &Limits,
        refreshed: impl Fn(usize, usize) -> bool,
        levels: &mut [usize],
    ) -> Option<Lack> {
        for step in &self.steps {
            match *step {
                Step::Make(at) => {
                    let Some(level) = self.level(&self.values[at], limits, |parent| levels[parent]) else {
                        return Some(Lack::Made(at));
                    };
                    levels[at] = if refreshed(at, level) { limits.highest } else { level };
                }
                Step::Need(at, level) if levels[at] < level => return Some(Lack::Taken(at)),
                Step::Need(..) => {}
            }
        }
        None
    }

    /// What would lack a level without the refresh of `left_out`.
    pub(super) fn needing(&self, limits: &Limits, placement: &Placement, left_out: usize) -> Option<Lack> {
        let placed: HashSet<usize> = placement.values.iter().copied().filter(|&at| at != left_out).collect();
        self.lacking(limits, |at, level| placed.contains(&at) && self.refreshable(at, level, limits))
    }

    /// Fewest refreshes, or what blocks them. None where too many states had to be dropped to find any.
    pub(super) fn place(&self, limits: &Limits) -> Result<Option<Placement>, Blocked> {
        let mut levels = vec![0; self.values.len()];
        let all = |at, level| self.refreshable(at, level, limits);
        if let Some(lack) = self.lacking_in(limits, all, &mut levels) {
            return Err(Blocked { lacking: lack.value(), by: self.blocking(lack, limits, &levels) });
        }
        Ok(Search::new(self, *limits).run())
    }

    /// Up from a value that lacks levels, along what has fewest, the first that cannot be refreshed.
    fn blocking(&self, lack: Lack, limits: &Limits, levels: &[usize]) -> Option<usize> {
        let too_large = |at: usize| self.values[at].whole && self.values[at].bound > limits.bound;
        let mut at = lack.value();
        if lack == Lack::Taken(at) && too_large(at) {
            return Some(at);
        }
        while let Some(parent) = self.values[at].from.iter().copied().min_by_key(|&parent| levels[parent]) {
            if too_large(parent) {
                return Some(parent);
            }
            at = parent;
        }
        None
    }
}

impl Value {
    const fn new(lineage: Lineage, from: Vec<usize>) -> Self {
        Self {
            lineage,
            operation: None,
            from,
            takes: 0,
            most: usize::MAX,
            whole: false,
            bound: 0.0,
            weight: 1,
            last: 0,
        }
    }
}

/// Levels of the values that are alive, and what was refreshed so far.
#[derive(Debug, Clone)]
struct State {
    levels: Vec<u8>,
    count: usize,
    /// Levels of all operations so far: fewer are faster.
    work: usize,
    /// The refresh that came last, in [`Search::trail`].
    trail: Option<usize>,
}

struct Search<'a> {
    graph: &'a Graph,
    limits: Limits,
    alive: Vec<usize>,
    states: Vec<State>,
    /// Refreshes, and each the one before.
    trail: Vec<(usize, Option<usize>)>,
    least: bool,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, limits: Limits) -> Self {
        let start = State { levels: Vec::new(), count: 0, work: 0, trail: None };
        Self { graph, limits, alive: Vec::new(), states: vec![start], trail: Vec::new(), least: true }
    }

    fn run(mut self) -> Option<Placement> {
        for (step, what) in self.graph.steps.iter().enumerate() {
            match *what {
                Step::Make(at) => self.make(at),
                Step::Need(at, level) => {
                    let place = self.alive.iter().position(|&value| value == at);
                    self.states.retain(|state| place.is_none_or(|place| usize::from(state.levels[place]) >= level));
                }
            }
            self.forget(step);
            self.prune();
        }
        let best = self.states.iter().min_by_key(|state| (state.count, state.work))?;
        let (mut values, mut trail) = (Vec::new(), best.trail);
        while let Some((value, before)) = trail.map(|at| self.trail[at]) {
            values.push(value);
            trail = before;
        }
        values.reverse();
        Some(Placement { values, count: best.count, least: self.least })
    }

    fn make(&mut self, at: usize) {
        let value = &self.graph.values[at];
        let places: HashMap<usize, usize> =
            self.alive.iter().enumerate().map(|(place, &value)| (value, place)).collect();
        let used = matches!(self.graph.steps.get(value.last), Some(Step::Make(user)) if *user != at)
            || matches!(self.graph.steps.get(value.last), Some(Step::Need(..)));
        let mut next = Vec::with_capacity(self.states.len());
        for state in std::mem::take(&mut self.states) {
            let of = |parent: usize| places.get(&parent).map_or(0, |&place| usize::from(state.levels[place]));
            let Some(level) = self.graph.level(value, &self.limits, of) else { continue };
            let work = state.work + level * value.weight;
            if used && self.graph.refreshable(at, level, &self.limits) {
                self.trail.push((at, state.trail));
                let (trail, count) = (Some(self.trail.len() - 1), state.count + value.weight);
                let mut levels = state.levels.clone();
                levels.push(self.limits.highest as u8);
                next.push(State { levels, count, work, trail });
            }
            let mut levels = state.levels;
            levels.push(level.min(usize::from(u8::MAX)) as u8);
            next.push(State { levels, work, ..state });
        }
        self.states = next;
        self.alive.push(at);
    }

    /// Values that nothing takes after this step.
    fn forget(&mut self, step: usize) {
        let kept: Vec<bool> = self.alive.iter().map(|&value| self.graph.values[value].last > step).collect();
        if kept.iter().all(|&kept| kept) {
            return;
        }
        for state in &mut self.states {
            let mut kept = kept.iter();
            state.levels.retain(|_| *kept.next().unwrap_or(&false));
        }
        let mut kept = kept.iter();
        self.alive.retain(|_| *kept.next().unwrap_or(&false));
    }

    /// Without states that others are as good as, and no more than there may be.
    fn prune(&mut self) {
        let mut best: BTreeMap<Vec<u8>, State> = BTreeMap::new();
        for state in self.states.drain(..) {
            match best.get(&state.levels) {
                Some(other) if (other.count, other.work) <= (state.count, state.work) => {}
                _ => {
                    best.insert(state.levels.clone(), state);
                }
            }
        }
        let mut states: Vec<State> = best.into_values().collect();
        states.sort_by_key(|state| {
            (state.count, std::cmp::Reverse(state.levels.iter().map(|&l| usize::from(l)).sum::<usize>()))
        });
        let worse =
            |state: &State, other: &State| other.levels.iter().zip(&state.levels).all(|(other, own)| other >= own);
        for state in states {
            if self.states.len() >= MOST_STATES {
                self.least = false;
                break;
            }
            if !self.states.iter().any(|other| worse(&state, other)) {
                self.states.push(state);
            }
        }
    }
}

#[cfg(test)]
mod tests;
