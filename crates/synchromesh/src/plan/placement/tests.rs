//! Places against all sets of places there are, on small circuits.

use super::*;

const LIMITS: Limits = Limits { lowest: 2, highest: 5, bound: 1.0 };

/// A circuit under construction: events as a run without data would tell them, in which nothing was refreshed.
#[derive(Default)]
struct Circuit {
    events: Vec<Event>,
    made: Vec<Parent>,
}

impl Circuit {
    fn input(&mut self, level: usize) -> usize {
        // Each input is another one.
        let lineage = Lineage::of(
            Operation::Encryption,
            &vec![Parent { lineage: Lineage::fresh(0), level, bound: 1.0 }; self.made.len() + 1],
        );
        self.made.push(Parent { lineage, level, bound: 1.0 });
        self.made.len() - 1
    }

    fn make(&mut self, from: &[usize], takes: usize, bound: f64) -> usize {
        let from: Vec<Parent> = from.iter().map(|&at| self.made[at]).collect();
        // Levels are what they would be if there were enough of them.
        let level = from.iter().map(|parent| parent.level).min().unwrap();
        let salt = Parent { lineage: Lineage::fresh(self.made.len()), level, bound };
        let lineage = Lineage::of(Operation::Product, &[&from[..], &[salt]].concat());
        let made = Parent { lineage, level: level - takes, bound };
        self.events.push(Event::Made { operation: Operation::Product, from, made, most: None, whole: true });
        self.made.push(made);
        self.made.len() - 1
    }

    fn graph(&self) -> Graph {
        Graph::of(&self.events)
    }
}

/// Fewest refreshes by trying all sets of values; none where no set does.
fn by_trying(graph: &Graph) -> Option<usize> {
    let all = 0..1u32 << graph.values.len();
    let count =
        |set: u32| (0..graph.values.len()).filter(|at| set >> at & 1 == 1).map(|at| graph.values[at].weight).sum();
    let works = |set: &u32| {
        graph.lacking(&LIMITS, |at, level| set >> at & 1 == 1 && graph.refreshable(at, level, &LIMITS)).is_none()
    };
    all.filter(works).map(count).min()
}

#[test]
fn no_set_of_places_is_smaller() {
    let mut word = 7u64;
    let mut draw = |below: usize| {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (word >> 33) as usize % below
    };
    let (mut blocked, mut refreshed) = (0, 0);
    for _ in 0..400 {
        let mut circuit = Circuit::default();
        for _ in 0..1 + draw(2) {
            circuit.input(1000 + LIMITS.highest);
        }
        for _ in 0..3 + draw(8) {
            let from: Vec<usize> =
                (0..1 + draw(3)).map(|_| circuit.made.len() - 1 - draw(circuit.made.len().min(4))).collect();
            let (takes, bound) = (draw(3), if draw(4) == 0 { 2.0 } else { 1.0 });
            circuit.make(&from, takes, bound);
            // Another ciphertext that came about in the same way.
            if draw(4) == 0 {
                circuit.events.extend(circuit.events.last().cloned());
            }
        }
        let mut graph = circuit.graph();
        // Inputs are as high as refreshed values.
        for value in graph.values.iter_mut().filter(|value| value.from.is_empty()) {
            value.most = LIMITS.highest;
        }
        match (graph.place(&LIMITS), by_trying(&graph)) {
            (Ok(Some(placement)), Some(least)) => {
                assert_eq!(placement.count, least, "{graph:?}");
                assert!(placement.least);
                let placed = |at: usize| placement.values.contains(&at);
                assert_eq!(
                    graph.lacking(&LIMITS, |at, level| placed(at) && graph.refreshable(at, level, &LIMITS)),
                    None
                );
                // None of them is there for nothing.
                for &value in &placement.values {
                    assert!(graph.needing(&LIMITS, &placement, value).is_some(), "{graph:?}");
                }
                refreshed += usize::from(least > 0);
            }
            (Err(at), None) => {
                assert!(at.by.is_none_or(|by| graph.values[by].bound > LIMITS.bound));
                blocked += 1;
            }
            other => panic!("{other:?} of {graph:?}"),
        }
    }
    assert!(blocked > 20 && refreshed > 100, "{blocked} {refreshed}");
}

#[test]
fn many_values_made_of_one_are_refreshed_as_that_one() {
    let mut circuit = Circuit::default();
    let x = circuit.input(LIMITS.highest);
    let deep = (0..2).fold(x, |x, _| circuit.make(&[x], 1, 1.0));
    for _ in 0..5 {
        let y = circuit.make(&[deep], 1, 1.0);
        circuit.events.push(Event::Needs { value: circuit.made[y], level: LIMITS.lowest + 1 });
    }
    let graph = circuit.graph();
    let placement = graph.place(&LIMITS).unwrap().unwrap();
    assert_eq!((placement.count, placement.values.len()), (1, 1));
    assert!(graph.values[placement.values[0]].lineage == circuit.made[deep].lineage);
}

#[test]
fn a_long_loop_of_several_values_is_placed_at_once() {
    // Two values that go on, as in Nesterov's method: 400 steps.
    let mut circuit = Circuit::default();
    let (mut w, mut v) = (circuit.input(100_000), circuit.input(100_000));
    for _ in 0..400 {
        let terms: Vec<usize> = (0..3).map(|_| circuit.make(&[v], 1, 1.0)).collect();
        let next = circuit.make(&terms, 1, 1.0);
        (v, w) = (circuit.make(&[next, w], 1, 1.0), next);
    }
    let mut graph = circuit.graph();
    for value in graph.values.iter_mut().filter(|value| value.from.is_empty()) {
        value.most = LIMITS.highest;
    }
    let placement = graph.place(&LIMITS).unwrap().unwrap();
    assert!(placement.least && (390..=800).contains(&placement.count), "{}", placement.count);
}
