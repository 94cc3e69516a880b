//! A machine's profile: what each operation of the ring takes, by degree, class of primes, and memory in use.

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::ring::ledger::{Entries, Operation, Work};

use crate::error::{Error, Result};

/// The format name in a profile file.
const FORMAT: &str = "synchromesh machine profile";
/// The version of the schema this library writes and reads.
const VERSION: u32 = 1;

/// Rates of plain passes over memory that no cache holds, in 10^9 bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streaming {
    /// Reading.
    pub read_gb_per_s: f64,
    /// Writing.
    pub write_gb_per_s: f64,
    /// Copying, both sides counted.
    pub copy_gb_per_s: f64,
}

/// What one unit of work takes while `working_set_bytes` are passed over again and again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Memory that was cycled through, twiddle factors included.
    pub working_set_bytes: u64,
    /// Nanoseconds for each unit of [`Work::features`]: primes, rows, terms, extra.
    pub ns: [f64; 4],
}

/// One operation at one degree on one class of primes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// [`Operation::name`].
    pub operation: String,
    /// log2 of the degree.
    pub log_n: u32,
    /// Width of the primes it was measured with; those of at most 50 bits are one class, the others another.
    pub prime_bits: u32,
    /// Working sets, rising.
    pub points: Vec<Point>,
}

/// Measured times of one machine, by `synchromesh tune`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    format: String,
    version: u32,
    /// The processor.
    pub machine: String,
    /// The device, as its backend names it.
    pub device: String,
    /// The instruction set.
    pub isa: String,
    /// Threads that it was measured on.
    #[serde(default = "one")]
    pub threads: usize,
    /// Whether nothing was measured: a model has said what takes how long.
    #[serde(default, skip_serializing_if = "is_measured")]
    pub predicted: bool,
    /// Day of the measurement, year-month-day.
    pub date: String,
    /// Plain passes over memory.
    pub streaming: Streaming,
    /// What was measured.
    pub entries: Vec<Entry>,
}

/// What profiles were measured on before they said so.
const fn one() -> usize {
    1
}

/// That a profile was measured is not written down.
const fn is_measured(predicted: &bool) -> bool {
    !*predicted
}

/// Profiles by name that come with the library: of cards, from instructions that were counted (docs/gpu.md).
const PREDICTED: [(&str, &str); 4] = [
    ("a100-predicted", include_str!("predicted/a100.json")),
    ("h100-predicted", include_str!("predicted/h100.json")),
    ("h200-predicted", include_str!("predicted/h200.json")),
    ("rtx-4090-predicted", include_str!("predicted/rtx-4090.json")),
];

impl Profile {
    /// A profile of these measurements, on one thread.
    #[must_use]
    pub fn new(machine: String, device: String, isa: String, date: String, streaming: Streaming) -> Self {
        let (format, entries) = (FORMAT.to_owned(), Vec::new());
        let (threads, predicted) = (one(), false);
        Self { format, version: VERSION, machine, device, isa, threads, predicted, date, streaming, entries }
    }

    /// The same, measured on so many threads.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// The same, which a model has made.
    #[must_use]
    pub fn as_predicted(self) -> Self {
        Self { predicted: true, ..self }
    }

    /// The names of the profiles that come with the library: of cards, by a model.
    pub fn predicted_names() -> impl Iterator<Item = &'static str> {
        PREDICTED.iter().map(|(name, _)| *name)
    }

    /// The profile of such a name, if it is one.
    ///
    /// # Errors
    /// As [`Self::from_json`].
    pub fn predicted(name: &str) -> Result<Option<Self>> {
        PREDICTED.iter().find(|(of, _)| *of == name).map(|(_, text)| Self::from_json(text)).transpose()
    }

    /// The profile as JSON.
    ///
    /// # Errors
    /// [`Error::Format`] for numbers that JSON does not have.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|e| Error::format(e.to_string()))
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// [`Error::Format`] for text that is no profile, of another version, or with times that are no times.
    pub fn from_json(text: &str) -> Result<Self> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| Error::format(format!("the profile is no JSON: {e}")))?;
        if value["format"] != FORMAT || value["version"] != VERSION {
            return Err(Error::format(format!(
                "this is no machine profile of version {VERSION}: format {}, version {}; run `synchromesh tune`",
                value["format"], value["version"]
            )));
        }
        let profile: Self =
            serde_json::from_value(value).map_err(|e| Error::format(format!("the profile breaks its schema: {e}")))?;
        let sane = |e: &Entry| {
            let times = e.points.iter().all(|p| p.ns.iter().all(|t| t.is_finite() && *t >= 0.0));
            let rising = e.points.windows(2).all(|w| w[0].working_set_bytes < w[1].working_set_bytes);
            times && rising && !e.points.is_empty() && (10..=18).contains(&e.log_n)
        };
        match profile.entries.iter().find(|e| !sane(e)) {
            None => Ok(profile),
            Some(e) => Err(Error::format(format!(
                "the profile's entry {} at N = 2^{} has no points, unordered working sets or negative times",
                e.operation, e.log_n
            ))),
        }
    }

    /// Seconds of everything in `entries` at degree 2^log_n while `working_set` bytes are in use.
    ///
    /// # Errors
    /// [`Error::Format`] when an operation was not measured for its class of primes at any degree.
    pub fn seconds(&self, entries: &Entries, log_n: u32, working_set: usize) -> Result<f64> {
        self.by_operation(entries, log_n, working_set).map(|parts| parts.iter().map(|(_, _, s)| s).sum())
    }

    /// As [`Self::seconds`], operation by operation; `true` for the class of narrow primes.
    ///
    /// # Errors
    /// As [`Self::seconds`].
    pub fn by_operation(
        &self,
        entries: &Entries,
        log_n: u32,
        working_set: usize,
    ) -> Result<Vec<(Operation, bool, f64)>> {
        let price = |(&(operation, narrow), tally): (&(Operation, bool), &_)| {
            let ns = self.coefficients(operation, narrow, log_n, working_set)?;
            let synchromesh_rlwe::ring::ledger::Tally { work, .. } = tally;
            Ok((operation, narrow, 1e-9 * dot(&ns, work)))
        };
        entries.iter().map(price).collect()
    }

    /// Nanoseconds a unit, from the nearest degree measured, in proportion to N beyond it.
    fn coefficients(&self, operation: Operation, narrow: bool, log_n: u32, working_set: usize) -> Result<[f64; 4]> {
        let of = |narrow: bool| {
            let class = move |e: &&Entry| (e.prime_bits <= synchromesh_rlwe::ring::kernels::NARROW_BITS) == narrow;
            let entries = self.entries.iter().filter(|e| e.operation == operation.name()).filter(class);
            entries.min_by_key(|e| e.log_n.abs_diff(log_n))
        };
        let missing = || {
            let class = if narrow { "up to" } else { "above" };
            Error::format(format!(
                "the profile lacks operation {} for primes {class} 50 bits; run `synchromesh tune` again",
                operation.name()
            ))
        };
        // Moving rows takes the same time whatever the prime: such operations are measured for one class.
        let entry = of(narrow).or_else(|| of(!narrow).filter(|_| moves_only(operation))).ok_or_else(missing)?;
        let scale = 2f64.powi(log_n as i32 - entry.log_n as i32);
        Ok(interpolate(&entry.points, working_set as f64 / scale).map(|ns| ns * scale))
    }
}

/// Whether an operation only moves rows.
const fn moves_only(operation: Operation) -> bool {
    matches!(operation, Operation::Copy | Operation::PermuteSlots)
}

fn dot(ns: &[f64; 4], work: &Work) -> f64 {
    ns.iter().zip(work.features()).map(|(ns, units)| ns * units as f64).sum()
}

/// Between two working sets in proportion to the logarithm; beyond the measured ones, as at the nearest.
fn interpolate(points: &[Point], working_set: f64) -> [f64; 4] {
    let Some(next) = points.iter().position(|p| p.working_set_bytes as f64 >= working_set) else {
        return points.last().map_or([0.0; 4], |p| p.ns);
    };
    let Some(before) = next.checked_sub(1) else { return points[0].ns };
    let (low, high) = (&points[before], &points[next]);
    let at = (working_set / low.working_set_bytes as f64).log2()
        / (high.working_set_bytes as f64 / low.working_set_bytes as f64).log2();
    std::array::from_fn(|i| low.ns[i] + at * (high.ns[i] - low.ns[i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use synchromesh_rlwe::ring::ledger::Tally;

    fn profile() -> Profile {
        let streaming = Streaming { read_gb_per_s: 10.0, write_gb_per_s: 10.0, copy_gb_per_s: 10.0 };
        let mut profile = Profile::new("a".into(), "b".into(), "c".into(), "2026-11-21".into(), streaming);
        let point = |working_set_bytes, ns| Point { working_set_bytes, ns };
        profile.entries.push(Entry {
            operation: Operation::NttForward.name().into(),
            log_n: 12,
            prime_bits: 50,
            points: vec![point(1 << 20, [1.0, 10.0, 0.0, 0.0]), point(1 << 24, [5.0, 30.0, 0.0, 0.0])],
        });
        profile
    }

    fn entries() -> Entries {
        let work = Work { primes: 2, rows: 4, terms: 0, extra: 0 };
        Entries::from([((Operation::NttForward, true), Tally { work, seconds: 0.0 })])
    }

    #[test]
    fn times_are_linear_in_work_and_between_working_sets() {
        let seconds = |log_n, working_set| profile().seconds(&entries(), log_n, working_set).unwrap();
        let close = |x: f64, y: f64| assert!((x / y - 1.0).abs() < 1e-9, "{x} {y}");
        close(seconds(12, 0), 42e-9);
        close(seconds(12, 1 << 20), 42e-9);
        close(seconds(12, 1 << 22), 86e-9);
        close(seconds(12, 1 << 30), 130e-9);
        close(seconds(13, 1 << 21), 84e-9);
    }

    #[test]
    fn every_predicted_profile_prices_every_operation() {
        for name in Profile::predicted_names() {
            let profile = Profile::predicted(name).unwrap().unwrap();
            assert!(profile.predicted && profile.machine.contains("predicted"), "{name}");
            for (operation, narrow) in Operation::ALL.into_iter().flat_map(|it| [(it, false), (it, true)]) {
                let work = Work { primes: 8, rows: 8, terms: 8, extra: 8 };
                let entries = Entries::from([((operation, narrow), Tally { work, seconds: 0.0 })]);
                let seconds = |log_n, bytes| profile.seconds(&entries, log_n, bytes).unwrap();
                for log_n in [12, 15, 17] {
                    assert!(seconds(log_n, 1 << 20) > 0.0 && seconds(log_n, 1 << 30) < 0.1, "{name} {operation:?}");
                }
            }
        }
        assert!(Profile::predicted("no-such-card").unwrap().is_none());
    }

    #[test]
    fn what_was_not_measured_is_an_error() {
        let wide = Entries::from([((Operation::NttForward, false), Tally::default())]);
        assert!(profile().seconds(&wide, 12, 0).is_err());
    }

    #[test]
    fn json_round_trips_and_nonsense_is_refused() {
        let text = profile().to_json().unwrap();
        assert_eq!(Profile::from_json(&text).unwrap(), profile());
        for (from, to) in [
            ("\"version\": 1", "\"version\": 2"),
            ("machine profile", "plan"),
            ("16777216", "1048576"),
            ("\"log_n\": 12", "\"log_n\": 40"),
            ("\"isa\"", "\"asi\""),
        ] {
            assert!(text.contains(from), "{from}");
            assert!(Profile::from_json(&text.replacen(from, to, 1)).is_err(), "{from}");
        }
        assert!(Profile::from_json(&text.replace("30.0", "-30.0")).is_err());
        assert!(Profile::from_json("{").is_err() && Profile::from_json("[]").is_err());
    }
}
