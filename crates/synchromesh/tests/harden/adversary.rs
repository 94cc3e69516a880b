//! The search for an error above its certificate: random legal parameters, circuits that make errors as large as they get,
//! and the least distance of each from its bound at 2^-40.
//!
//! `SYNCHROMESH_ADVERSARY_SECONDS` makes it as long as that for each scheme, `SYNCHROMESH_ADVERSARY_SEED` takes other keys
//! and parameters, `SYNCHROMESH_ADVERSARY_LOG_N` a larger degree. What is found can be repeated by the line printed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use synchromesh_testing::random::SplitMix;

/// Rounds where no time is given.
const ROUNDS: u64 = 2;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// How long to search, and from where.
pub(crate) struct Search {
    seed: u64,
    round: u64,
    until: Option<Instant>,
    least: BTreeMap<String, (f64, usize, String)>,
    excess: Vec<String>,
}

impl Search {
    pub(crate) fn new() -> Self {
        let until = number("SYNCHROMESH_ADVERSARY_SECONDS").map(|s| Instant::now() + Duration::from_secs(s));
        let seed = number("SYNCHROMESH_ADVERSARY_SEED").unwrap_or(1);
        Self { seed, round: 0, until, least: BTreeMap::new(), excess: Vec::new() }
    }

    /// log2 of the degree.
    pub(crate) fn log_n() -> u32 {
        number("SYNCHROMESH_ADVERSARY_LOG_N").map_or(10, |log_n| log_n as u32)
    }

    /// The randomness of the next round, and what repeats it; none when it is over.
    pub(crate) fn next(&mut self) -> Option<(SplitMix, String)> {
        let over = self.until.map_or(self.round >= ROUNDS, |until| Instant::now() >= until);
        if over {
            return None;
        }
        let seed = self.seed + self.round;
        self.round += 1;
        Some((
            SplitMix::new(seed),
            format!("SYNCHROMESH_ADVERSARY_SEED={seed} SYNCHROMESH_ADVERSARY_LOG_N={}", Self::log_n()),
        ))
    }

    /// The distance in bits of one error from its bound.
    pub(crate) fn add(&mut self, what: &str, gap: f64, note: &str) {
        let least = self.least.entry(what.to_owned()).or_insert((f64::INFINITY, 0, String::new()));
        least.1 += 1;
        if gap < least.0 {
            (least.0, least.2) = (gap, note.to_owned());
        }
        if gap < 0.0 || gap.is_nan() {
            self.excess.push(format!("{what}: {:.2} bits above the certificate; {note}", -gap));
        }
    }

    /// Something else that must not be.
    pub(crate) fn wrong(&mut self, what: &str) {
        self.excess.push(what.to_owned());
    }

    /// Prints the least distance of each circuit and a line of counts, and fails where a distance is negative.
    pub(crate) fn finish(self, scheme: &str) {
        println!("{scheme}: {} rounds", self.round);
        let (mut judged, mut least) = (0, f64::INFINITY);
        for (what, (gap, count, note)) in &self.least {
            println!("{gap:8.2} {count:7}  {what:32} {note}");
            (judged, least) = (judged + count, least.min(*gap));
        }
        let (circuits, findings) = (self.least.len(), self.excess.len());
        println!(
            "counts: {{\"rounds\":{},\"circuits\":{circuits},\"errors\":{judged},\"least_gap_bits\":{least:.3},\
             \"findings\":{findings}}}",
            self.round
        );
        assert!(circuits > 20, "only {circuits} kinds of circuits were judged");
        assert!(self.excess.is_empty(), "{scheme}:\n{}", self.excess.join("\n"));
    }
}
