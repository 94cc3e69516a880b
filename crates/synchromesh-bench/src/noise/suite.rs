//! Which errors are measured, under how many keys; keys that were measured are kept in a record and not measured again.

use std::path::Path;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::Noise;
use synchromesh_rlwe::file::{Access, Existing, FileError, Journal, Lock, Record as Line};
use synchromesh_rlwe::noise::FailureLimit;

use super::approximate::Approximate;
use super::exact::{Exact, Plan};
use super::{Row, Sample, Table, row};
use crate::Error;

/// log2 N and keys of the whole suite.
pub const SIZES: [(u32, usize); 5] = [(12, 100), (13, 100), (14, 100), (15, 100), (16, 100)];

/// Largest log2 N at which [`Plan::Narrow`] is measured beside [`Plan::Wide`].
const NARROW: u32 = 14;

/// Coefficients for which operands with something in common are measured, and the fewest keys for them.
const HOSTILE: (usize, usize) = (100_000, 10);

/// A scheme, and how its keys are switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// BFV.
    Bfv(Plan),
    /// BGV.
    Bgv(Plan),
    /// CKKS.
    Ckks,
}

/// How much is measured under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effort {
    /// Operands with something in common, and messages chosen to hurt.
    pub(super) hostile: bool,
    /// Sums over all slots, of each of which two coefficients remain.
    pub(super) sums: usize,
}

impl Effort {
    fn of(log_n: u32, key: usize) -> Self {
        let (coefficients, keys) = HOSTILE;
        let sums = match log_n {
            ..=13 => 16,
            14 => 8,
            _ => 4,
        };
        Self { hostile: key < coefficients.div_ceil(1 << log_n).max(keys), sums }
    }
}

/// A context that errors are measured in.
pub(super) trait Errors {
    /// Every operation under the key of this number.
    fn measure(&self, key: usize, effort: Effort) -> Result<Table, Error>;
    /// log2 of what a certificate allows, in the units of the errors.
    fn bound(&self, noise: &Noise, limit: FailureLimit) -> f64;
}

impl Subject {
    /// All that are measured at a degree.
    pub(super) fn at(log_n: u32) -> Vec<Self> {
        let plans = if log_n <= NARROW { &[Plan::Wide, Plan::Narrow][..] } else { &[Plan::Wide] };
        let exact = plans.iter().flat_map(|&plan| [Self::Bfv(plan), Self::Bgv(plan)]);
        exact.chain([Self::Ckks]).collect()
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::Bfv(plan) => format!("bfv{}", plan.name()),
            Self::Bgv(plan) => format!("bgv{}", plan.name()),
            Self::Ckks => "ckks".to_owned(),
        }
    }

    fn errors(self, log_n: u32) -> Result<Box<dyn Errors>, Error> {
        Ok(match self {
            Self::Bfv(plan) => Box::new(Exact::<synchromesh::bfv::Bfv>::new(log_n, plan)?),
            Self::Bgv(plan) => Box::new(Exact::<synchromesh::bgv::Bgv>::new(log_n, plan)?),
            Self::Ckks => Box::new(Approximate::new(log_n)?),
        })
    }
}

/// What was measured under one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    subject: Subject,
    log_n: u32,
    key: usize,
    samples: Vec<Sample>,
}

/// What was measured so far, a line for each key, also in a file if there is one.
pub(super) struct Record {
    file: Option<Journal>,
    entries: Vec<Entry>,
}

impl Record {
    /// Reads what is in the file at `path`, to which more is added; what an interrupted run has left of a line is left out.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Error> {
        const TITLE: &str = "measured errors";
        let Some(path) = path else { return Ok(Self { file: None, entries: Vec::new() }) };
        let failed = |e: FileError| Error::Request { reason: format!("the record of errors: {e}; {}", e.remedy()) };
        if !path.exists() {
            Journal::create(path, TITLE, Access::Public, Existing::Keep).map_err(failed)?;
        }
        let (file, lines) = Journal::open(path, TITLE, Lock::Now).map_err(failed)?;
        let entry = |line| match line {
            Line::Whole(text) => serde_json::from_str(&text).ok(),
            Line::Cut => None,
        };
        let entries = lines.into_iter().filter_map(entry).collect();
        Ok(Self { file: Some(file), entries })
    }

    /// Measures what is missing of `keys` keys; `progress` hears of each key.
    pub(super) fn complete(
        &mut self,
        subject: Subject,
        log_n: u32,
        keys: usize,
        progress: &mut dyn FnMut(bool),
    ) -> Result<Vec<Row>, Error> {
        let errors = subject.errors(log_n)?;
        for key in 0..keys {
            let known = self.entries.iter().any(|e| (e.subject, e.log_n, e.key) == (subject, log_n, key));
            if !known {
                let samples = errors.measure(key, Effort::of(log_n, key))?.samples();
                self.add(Entry { subject, log_n, key, samples })?;
            }
            progress(!known);
        }
        self.rows(subject, log_n, errors.as_ref())
    }

    fn add(&mut self, entry: Entry) -> Result<(), Error> {
        let failed = |e: &dyn std::fmt::Display| Error::Request { reason: format!("the record of errors: {e}") };
        if let Some(file) = &mut self.file {
            let line = serde_json::to_string(&entry).map_err(|e| failed(&e))?;
            file.append(&[line]).map_err(|e| failed(&e))?;
        }
        self.entries.push(entry);
        Ok(())
    }

    /// What is said of every operation, by one more run, beside all that was measured of it.
    fn rows(&self, subject: Subject, log_n: u32, errors: &dyn Errors) -> Result<Vec<Row>, Error> {
        let said = errors.measure(0, Effort { hostile: true, sums: 1 })?;
        let entries: Vec<&Entry> = self.entries.iter().filter(|e| (e.subject, e.log_n) == (subject, log_n)).collect();
        let rows = said.0.iter().map(|(what, _)| {
            let samples = entries.iter().flat_map(|e| &e.samples).filter(|s| s.operation == what.operation);
            let samples: Vec<&Sample> = samples.collect();
            row(subject.name(), log_n, what, &samples, |limit| errors.bound(&what.noise, limit))
        });
        Ok(rows.filter(|row| row.keys > 0).collect())
    }
}

/// Every operation of `subject` under `keys` keys.
///
/// # Errors
/// When a ciphertext is refused, decrypts wrongly, or the device fails.
pub fn measure(subject: Subject, log_n: u32, keys: usize) -> Result<Vec<Row>, Error> {
    let mut record = Record { file: None, entries: Vec::new() };
    record.complete(subject, log_n, keys, &mut |_| ())
}
