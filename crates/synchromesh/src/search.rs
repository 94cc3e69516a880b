//! Search among encrypted unit vectors: which of them have an inner product above a threshold with an encrypted one.
//!
//! Records lie column by column: ciphertext j has coordinate j of two records in each slot, one in the real part and one in
//! the imaginary part. The query is one ciphertext, expanded on the server to one for each coordinate
//! ([`Evaluator::expand`]), so that an inner product with all records of a block is a product for each column and one key
//! switch for many. The two halves are taken apart by a conjugation, and a composite of odd polynomials
//! ([`functions`](crate::circuits::functions)) makes 1 of what is above the threshold and 0 of what is below. What a record
//! carries is multiplied by that.
//!
//! Columns come one after another: no more than [`AT_ONCE`] are in memory for each thread. A [`Database`] is such columns in
//! files, so that a data set may be larger than memory.
//!
//! Without a threshold the inner products themselves come back ([`Reply::Scores`]), at a fraction of the cost: whoever
//! decrypts them sorts them, and finds the nearest record that way. There is no nearest record that the server finds alone:
//! among n records that takes n - 1 comparisons one after another, or a ladder of thresholds that is as coarse as its steps.
//!
//! Certificates are of the worst case, and sums of errors grow with the dimension: 128 coordinates take N = 2^15 at 128 bits
//! of security with a gap of 0.05, N = 2^16 with one of 0.01.

mod carried;
mod database;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::Security;
use synchromesh_rlwe::ring::Backend;
use zeroize::Zeroizing;

use crate::circuits::functions::{Approximation, Function, FunctionName};
use crate::circuits::inner_product;
use crate::ckks::{Ciphertext, Context, Evaluator, Plaintext};
use crate::embedding::Complex64;
use crate::error::{Error, Result};
use crate::plan::{Description, Plan, SchemeName};
pub use carried::{CARRIED_LEVEL, LEVELS};
pub use database::{Database, Step};

/// Columns that are multiplied before a key switch.
pub const AT_ONCE: usize = 16;

/// How far the length of a record, or of a query, may be from 1: single precision's rounding.
const LENGTH_SLACK: f64 = 1.0 / 1024.0;

/// No inner product of a record and a query is larger.
const MOST: f64 = (1.0 + LENGTH_SLACK) * (1.0 + LENGTH_SLACK);

/// Coordinates that the largest ring has room for.
const MOST_COORDINATES: usize = 1 << 15;

/// What a search gives for each record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Its inner product with the query.
    Scores,
    /// 1 if it is found, else 0.
    Marks,
    /// So many numbers that it carries, and a mark, if it is found, else zeros.
    Carried(usize),
}

/// A search by its numbers; the same at client and server.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Search {
    /// Coordinates of a record.
    pub dimension: usize,
    /// What comes back.
    pub reply: Reply,
    /// The inner product above which a record is found, between -1 and 1.
    pub threshold: f64,
    /// Records whose inner product is nearer to the threshold than this are undecided: their result lies between 0 and 1.
    pub gap: f64,
    /// How far results may be from 0 or 1 outside the gap, times the largest number that a record carries; or scores from
    /// inner products.
    pub tolerance: f64,
}

impl Search {
    /// A search whose results are within 2^-11, so that numbers below 2^9 that records carry are told apart.
    ///
    /// Much coarser ones are no cheaper: comparisons need precision themselves.
    #[must_use]
    pub const fn new(dimension: usize, threshold: f64, gap: f64) -> Self {
        Self { dimension, reply: Reply::Marks, threshold, gap, tolerance: 1.0 / 2048.0 }
    }

    /// A search that gives the inner products, to within 2^-11, and compares nothing.
    #[must_use]
    pub const fn scores(dimension: usize) -> Self {
        Self { reply: Reply::Scores, ..Self::new(dimension, 0.0, 1.0) }
    }

    /// The same search that brings so many numbers below [`LEVELS`] of each record that is found.
    #[must_use]
    pub const fn carrying(self, numbers: usize) -> Self {
        Self { reply: Reply::Carried(numbers), ..self }
    }

    /// The same search with results so near to 0 or 1.
    #[must_use]
    pub const fn within(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Parameters and keys: one expansion, the columns, and unless scores are wanted the comparison, and the product with
    /// what a record carries, of absolute value 2^(1/2) at most.
    ///
    /// # Errors
    /// [`Error::Argument`] for numbers out of range, [`Error::Tolerance`], and as [`Description::plan_ckks`].
    pub fn plan(&self, security: Security) -> Result<Plan> {
        let beyond = self.beyond()?;
        let precision = Some((-self.tolerance.log2()).ceil().max(1.0) as u32);
        let swap = self.reply != Reply::Scores;
        let description = Description { precision, swap, security, ..Description::new(SchemeName::Ckks, 1) };
        let bound = f64::sqrt(2.0) * (1.0 + LENGTH_SLACK);
        description.plan_ckks(&[self.query_bound(), bound, bound], |evaluator, x| {
            let query = self.expanded(evaluator, &x[0])?;
            let column = |_| x[1].duplicate(evaluator.context());
            if self.reply == Reply::Scores {
                return Ok(vec![Self::scored(evaluator, &query, column)?]);
            }
            let halves = self.compared(evaluator, &query, &beyond, column)?;
            if let Reply::Carried(_) = self.reply {
                halves.iter().map(|half| evaluator.mul(half, &x[2])).collect()
            } else {
                Ok(vec![Self::joined(evaluator, &halves)?])
            }
        })
    }

    /// What is above the threshold, of twice an inner product less twice the threshold.
    fn beyond(&self) -> Result<Approximation> {
        let Self { threshold, gap, tolerance, .. } = *self;
        let within = |range: std::ops::RangeInclusive<f64>, x: f64| range.contains(&x);
        let sound = within(-1.0..=1.0, threshold)
            && within(f64::MIN_POSITIVE..=1.0, gap)
            && within(f64::MIN_POSITIVE..=1.0, tolerance);
        self.require_dimension()?;
        if let Reply::Carried(numbers) = self.reply {
            carried::require_count(numbers)?;
        }
        if !sound {
            return Err(Error::argument(format!(
                "a search takes a threshold from -1 to 1, a gap and a tolerance between 0 and 1, not {threshold}, {gap} and {tolerance}"
            )));
        }
        let (low, high) = ((-MOST - threshold) * 2.0, (MOST - threshold) * 2.0);
        let step = Function::new(FunctionName::Step, (low, high), 0.5 * tolerance).with_gap(2.0 * gap);
        step.approximate()
    }

    fn require_dimension(&self) -> Result<()> {
        if (1..=MOST_COORDINATES).contains(&self.dimension) {
            return Ok(());
        }
        Err(Error::argument(format!("records have 1 to {MOST_COORDINATES} coordinates, not {}", self.dimension)))
    }

    /// Largest slot of a query as it is encrypted: a unit vector's coordinates, each divided by what expansion brings.
    fn query_bound(&self) -> f64 {
        (1.0 + LENGTH_SLACK) * (self.dimension as f64).sqrt() / self.dimension.next_power_of_two() as f64
    }

    /// A query, a unit vector, as a message.
    ///
    /// # Errors
    /// [`Error::Argument`] for a vector of another length, and as [`Context::encode_coefficients`].
    pub fn encode_query<B: Backend>(&self, context: &Context<B>, query: &[f64]) -> Result<Plaintext<B>> {
        self.check_query(query)?;
        let share = 1.0 / self.dimension.next_power_of_two() as f64;
        let coefficients = Zeroizing::new(query.iter().map(|q| q * share).collect::<Vec<f64>>());
        context.encode_coefficients(&coefficients, self.query_bound())
    }

    /// Refuses a query that is no unit vector.
    ///
    /// # Errors
    /// [`Error::Argument`] with its length.
    pub fn check_query(&self, query: &[f64]) -> Result<()> {
        self.require_dimension()?;
        self.require_unit("the query", query)
    }

    /// Records of a block: twice as many as there are slots.
    #[must_use]
    pub fn block<B: Backend>(context: &Context<B>) -> usize {
        2 * context.params().slots()
    }

    /// A number of each record of a block, two to a slot: that of record s in the real part of slot s, that of record
    /// N/2 + s in its imaginary part, conjugated where X^(N/2) is -i.
    #[must_use]
    pub fn paired<B: Backend>(context: &Context<B>, numbers: &[f64]) -> Vec<Complex64> {
        let slots = context.params().slots();
        let (re, im) = numbers.split_at(slots.min(numbers.len()));
        let sign = |s: usize| if s.is_multiple_of(2) { 1.0 } else { -1.0 };
        re.iter().enumerate().map(|(s, &x)| Complex64::new(x, sign(s) * im.get(s).copied().unwrap_or(0.0))).collect()
    }

    /// Coordinate `column` of the records of a block, unit vectors one after another, as a message.
    ///
    /// # Errors
    /// [`Error::Argument`] for a column that there is not, for more records than a block has, or a record that is not whole;
    /// of their lengths see [`Self::check_records`].
    pub fn encode_column<B: Backend>(
        &self,
        context: &Context<B>,
        records: &[f32],
        column: usize,
    ) -> Result<Plaintext<B>> {
        self.require_whole(records)?;
        let (dimension, count, most) = (self.dimension, records.len() / self.dimension, Self::block(context));
        if column >= dimension || count > most {
            return Err(Error::argument(format!(
                "column {column} of {count} records, where there are {dimension} columns and blocks of {most}"
            )));
        }
        let own = records.iter().skip(column).step_by(dimension).map(|&x| f64::from(x));
        let numbers = Zeroizing::new(own.collect::<Vec<f64>>());
        let slots = Zeroizing::new(Self::paired(context, &numbers));
        context.encode_complex(&slots, f64::sqrt(2.0) * (1.0 + LENGTH_SLACK))
    }

    /// Refuses records that are no unit vectors, before anything is encrypted; they are counted from `first`.
    ///
    /// # Errors
    /// [`Error::Argument`] with the first one's number and length.
    pub fn check_records(&self, first: usize, records: &[f32]) -> Result<()> {
        self.require_whole(records)?;
        let as_wide = |record: &[f32]| record.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let mut all = records.chunks(self.dimension).map(as_wide).enumerate();
        all.try_for_each(|(i, record)| self.require_unit(&format!("record {}", first + i), &record))
    }

    fn require_whole(&self, records: &[f32]) -> Result<()> {
        self.require_dimension()?;
        let (count, dimension) = (records.len(), self.dimension);
        if count.is_multiple_of(dimension) {
            return Ok(());
        }
        Err(Error::argument(format!("records have {dimension} coordinates each, of which {count} are no multiple")))
    }

    fn require_unit(&self, what: &str, vector: &[f64]) -> Result<()> {
        let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        if vector.len() != self.dimension || length.is_nan() || (length - 1.0).abs() > LENGTH_SLACK {
            let (count, dimension) = (vector.len(), self.dimension);
            return Err(Error::argument(format!(
                "{what} must be a vector of {dimension} coordinates and of length 1, and has {count} and {length}"
            )));
        }
        Ok(())
    }

    /// The query's coordinates, each in all slots of a ciphertext of its own.
    ///
    /// # Errors
    /// As [`Evaluator::expand`].
    pub fn expanded<B: Backend>(&self, evaluator: &Evaluator<B>, query: &Ciphertext<B>) -> Result<Vec<Ciphertext<B>>> {
        let made = evaluator.expand(query, self.dimension)?;
        made.into_iter().map(|x| evaluator.declare_bound(x, 1.0 + LENGTH_SLACK)).collect()
    }

    /// For the records of a block, in two halves, 1 where one is found and 0 where it is not, within the tolerance.
    ///
    /// `column` gives the encrypted columns; it is asked for each once, from several threads.
    ///
    /// # Errors
    /// What `column` fails with, and as products.
    pub fn found<B: Backend, E: From<Error> + Send>(
        &self,
        evaluator: &Evaluator<B>,
        query: &[Ciphertext<B>],
        column: impl Fn(usize) -> Result<Ciphertext<B>, E> + Sync,
    ) -> Result<[Ciphertext<B>; 2], E> {
        self.compared(evaluator, query, &self.beyond()?, column)
    }

    /// The inner products of the records of a block, as numbers are [`paired`](Self::paired).
    ///
    /// `column` gives the encrypted columns; it is asked for each once, from several threads.
    ///
    /// # Errors
    /// What `column` fails with, and as products.
    pub fn scored<B: Backend, E: From<Error> + Send>(
        evaluator: &Evaluator<B>,
        query: &[Ciphertext<B>],
        column: impl Fn(usize) -> Result<Ciphertext<B>, E> + Sync,
    ) -> Result<Ciphertext<B>, E> {
        let threads = evaluator.context().rlwe().backend().threads();
        let starts: Vec<usize> = (0..query.len()).step_by(AT_ONCE).collect();
        let part = |start: usize| {
            let own = &query[start..query.len().min(start + AT_ONCE)];
            let columns = (start..start + own.len()).map(&column).collect::<Result<Vec<_>, E>>()?;
            let [own, columns] = [own, &columns].map(|all| all.iter().collect::<Vec<_>>());
            Ok::<_, E>(inner_product(evaluator, &own, &columns)?)
        };
        let mut parts = threads.try_map(starts, part)?.into_iter();
        let first = parts.next().ok_or_else(|| Error::argument("a query of no coordinates"))?;
        let sum = parts.try_fold(first, |sum, part| evaluator.add(&sum, &part))?;
        // Two unit vectors have an inner product of 1 at most, and there are two records in a slot.
        Ok(evaluator.declare_bound(sum, f64::sqrt(2.0) * MOST)?)
    }

    fn compared<B: Backend, E: From<Error> + Send>(
        &self,
        evaluator: &Evaluator<B>,
        query: &[Ciphertext<B>],
        beyond: &Approximation,
        column: impl Fn(usize) -> Result<Ciphertext<B>, E> + Sync,
    ) -> Result<[Ciphertext<B>; 2], E> {
        let threads = evaluator.context().rlwe().backend().threads();
        let sum = Self::scored(evaluator, query, column)?;
        let conjugate = evaluator.conjugate(&sum)?;
        let half_turn = (evaluator.context().params().n() / 2) as i64;
        let im = evaluator.mul_monomial(&evaluator.sub(&conjugate, &sum)?, half_turn)?;
        let halves = vec![evaluator.add(&sum, &conjugate)?, im];
        let (low, high) = beyond.function().interval;
        let above = |twice: Ciphertext<B>| {
            let excess = evaluator.add_scalar(&twice, -2.0 * self.threshold)?;
            let excess = evaluator.declare_bound(excess, low.abs().max(high.abs()))?;
            beyond.evaluate(evaluator, &[&excess])
        };
        let made = threads.try_map(halves, above)?;
        <[Ciphertext<B>; 2]>::try_from(made).map_err(|_| Error::argument("two halves are two").into())
    }

    /// Both halves in one ciphertext, as numbers are [`paired`](Self::paired).
    ///
    /// # Errors
    /// As sums.
    pub fn joined<B: Backend>(evaluator: &Evaluator<B>, halves: &[Ciphertext<B>; 2]) -> Result<Ciphertext<B>> {
        let half_turn = (evaluator.context().params().n() / 2) as i64;
        evaluator.add(&halves[0], &evaluator.mul_monomial(&halves[1], half_turn)?)
    }

    /// Of a decrypted message as numbers are [`paired`](Self::paired) those of the records of a block in order.
    #[must_use]
    pub fn parted(slots: &[Complex64]) -> Vec<f64> {
        let im = slots.iter().enumerate().map(|(s, z)| if s.is_multiple_of(2) { z.im } else { -z.im });
        slots.iter().map(|z| z.re).chain(im).collect()
    }
}
