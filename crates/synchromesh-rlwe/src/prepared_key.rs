//! Keys in use: the rows of a stored key added to the digits of a plan, then multiplied by its constants.
//!
//! Row j of the key in use is the sum of the stored rows of digit j, modulo the primes that the plan needs
//! (Hwang, Seo and Song, level-aware key switching, section 4.3): additions only. Both halves are summed, the uniform one
//! from the rows that the seed expands to.

mod lift;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use synchromesh_ring::backend::Stage;
use synchromesh_ring::sampler::Purpose;
use synchromesh_ring::{Backend, Cpu, IndexSet, View, ViewMut};

use crate::context::Context;
use crate::error::Error;
use crate::params::Params;
use crate::secret_key::uniform;
use crate::switch_key::{Source, SwitchKey, UniformHalves};
use crate::switch_plan::{ProductRing, SwitchPlan};
use crate::wire::KeyId;

/// A key on the device: two columns, each \[row\]\[limb of QP\]\[N\] in slots; in an extended ring \[row\]\[digit of the
/// key\]\[limb of E\]\[N\].
///
/// From [`SwitchKey::expand`] it is b_j and a_j of the plan's digits, an encryption of P g_j s' but for the factor
/// P / P_0 ([`SwitchPlan::input_factors`]); from [`SwitchKey::prepare`] it has all constants of the plan multiplied in.
pub struct PreparedKey<B: Backend = Cpu> {
    source: Source,
    target: KeyId,
    /// The number in its plan of each row, rising: all of them, unless the key is trimmed.
    numbers: Vec<usize>,
    /// Digits of the key; 1 in R_QP.
    groups: usize,
    primes: IndexSet,
    columns: [B::Buffer; 2],
}

impl<B: Backend> PreparedKey<B> {
    /// What it switches.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }

    /// The key it switches to.
    #[must_use]
    pub const fn target(&self) -> KeyId {
        self.target
    }

    /// The primes of its rows.
    #[must_use]
    pub const fn primes(&self) -> &IndexSet {
        &self.primes
    }

    /// Digits of the key: how often the primes are there in each row.
    #[must_use]
    pub const fn groups(&self) -> usize {
        self.groups
    }

    /// Number of rows: one a digit of the input, or radix digit.
    #[must_use]
    pub const fn omega(&self) -> usize {
        self.numbers.len()
    }

    /// Bytes at N = `n`.
    #[must_use]
    pub fn bytes(&self, n: usize) -> u64 {
        16u64.saturating_mul((self.omega() * self.groups * self.primes.len()) as u64).saturating_mul(n as u64)
    }

    /// Where the limbs of `primes` lie in row number `first` of the plan and the first digit of the key; the next
    /// `count` - 1 rows follow it.
    pub(crate) fn rows(&self, primes: &IndexSet, first: usize, count: usize) -> Result<Vec<usize>, Error> {
        let missing = primes.without(&self.primes);
        let at = self.numbers.partition_point(|&number| number < first);
        let there = self.numbers.get(at..at + count).is_some_and(|list| list.iter().copied().eq(first..first + count));
        if !missing.is_empty() || !there {
            let missing = if missing.is_empty() { primes } else { &missing };
            let source_name = self.source.to_string();
            let [missing, have] = [missing, &self.primes].map(|set| set.as_slice().to_vec());
            return Err(Error::TrimmedKey { source_name, missing, have });
        }
        Ok(self.primes.rows(primes)?.into_iter().map(|r| at * self.groups * self.primes.len() + r).collect())
    }

    /// Column 0 (b) and column 1 (a).
    #[must_use]
    pub const fn columns(&self) -> &[B::Buffer; 2] {
        &self.columns
    }
}

/// Which prepared key: the one under this secret key, of this source, for the plan of this digest.
type At = (KeyId, Source, [u8; 32]);

/// Prepared keys by what they switch and by their plan, within a budget of bytes: the one used longest ago goes first.
pub(crate) struct PreparedKeys<B: Backend>(Mutex<Kept<B>>);

struct Kept<B: Backend> {
    entries: HashMap<At, Entry<B>>,
    budget: u64,
    bytes: u64,
    clock: u64,
}

struct Entry<B: Backend> {
    key: Arc<PreparedKey<B>>,
    bytes: u64,
    used: u64,
}

impl<B: Backend> Default for PreparedKeys<B> {
    fn default() -> Self {
        Self(Mutex::new(Kept { entries: HashMap::new(), budget: u64::MAX, bytes: 0, clock: 0 }))
    }
}

impl<B: Backend> PreparedKeys<B> {
    fn kept(&self) -> MutexGuard<'_, Kept<B>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key `at` at N = `n`, made by `make` when it is not there.
    pub(crate) fn get_or_make(
        &self,
        at: At,
        n: usize,
        make: impl FnOnce() -> Result<PreparedKey<B>, Error>,
    ) -> Result<Arc<PreparedKey<B>>, Error> {
        if let Some(key) = self.kept().find(&at) {
            return Ok(key);
        }
        // Not under the lock: others may use their keys meanwhile, at worst one is made twice.
        let key = Arc::new(make()?);
        let bytes = key.bytes(n);
        let mut kept = self.kept();
        if let Some(first) = kept.find(&at) {
            return Ok(first);
        }
        if bytes <= kept.budget {
            let used = kept.clock;
            kept.bytes += bytes;
            kept.entries.insert(at, Entry { key: Arc::clone(&key), bytes, used });
            kept.keep_within_budget();
        }
        Ok(key)
    }

    /// Sets the budget and drops what exceeds it.
    pub(crate) fn set_budget(&self, bytes: u64) {
        let mut kept = self.kept();
        kept.budget = bytes;
        kept.keep_within_budget();
    }

    /// Bytes kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.kept().bytes
    }

    /// Drops every key.
    pub(crate) fn clear(&self) {
        let mut kept = self.kept();
        kept.entries.clear();
        kept.bytes = 0;
    }
}

impl<B: Backend> Kept<B> {
    fn find(&mut self, at: &At) -> Option<Arc<PreparedKey<B>>> {
        self.clock += 1;
        let entry = self.entries.get_mut(at)?;
        entry.used = self.clock;
        Some(Arc::clone(&entry.key))
    }

    fn keep_within_budget(&mut self) {
        while self.bytes > self.budget {
            let oldest = self.entries.iter().min_by_key(|(_, e)| e.used).map(|(at, _)| *at);
            let Some(entry) = oldest.and_then(|at| self.entries.remove(&at)) else { return };
            self.bytes -= entry.bytes;
        }
    }
}

impl<B: Backend> SwitchKey<B> {
    /// The key for the digits and primes of `plan` in R_QP, without its constants.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`], [`Error::SwitchPlan`] when the plan is for another kind of stored key, [`Error::MissingKey`]
    /// where its rows are gone ([`crate::EvaluationKeys::into_prepared`]), [`Error::TrimmedKey`] when this key has lost what the plan's lowest level needs, or when the device fails.
    pub fn expand(&self, context: &Context<B>, plan: &SwitchPlan) -> Result<PreparedKey<B>, Error> {
        let (plan, numbers) = self.narrowed(context.params(), plan)?;
        self.require_rows()?;
        self.sum_rows(context, &plan, numbers, None)
    }

    /// The key for the digits and primes of `plan`, with its constants: those of folding, and P / P_0 on a digit's own
    /// primes; in an extended ring it is lifted there.
    ///
    /// # Errors
    /// As [`Self::expand`] and [`SwitchPlan::require_valid`].
    pub fn prepare(&self, context: &Context<B>, plan: &SwitchPlan) -> Result<PreparedKey<B>, Error> {
        let params = context.params();
        plan.require_valid(params)?;
        let (plan, numbers) = &self.narrowed(params, plan)?;
        self.require_rows()?;
        let numbers = numbers.clone();
        let folded = plan.key_factors(params)?;
        match &plan.ring {
            ProductRing::Base => self.sum_rows(context, plan, numbers, Some(&folded)),
            ProductRing::Extended(ring) => lift::prepare(self, context, plan, numbers, ring, &folded),
        }
    }

    /// Bytes of this key prepared for `plan`, [`SwitchPlan::prepared_bytes`]; a trimmed key takes no more.
    #[must_use]
    pub fn prepared_bytes(&self, context: &Context<B>, plan: &SwitchPlan) -> usize {
        usize::try_from(plan.prepared_bytes(context.params())).unwrap_or(usize::MAX)
    }

    /// The plan as far as this key goes, that of the levels it was trimmed to; and which of the plan's rows it has.
    fn narrowed(&self, params: &Params, plan: &SwitchPlan) -> Result<(SwitchPlan, Vec<usize>), Error> {
        params.require_digest(self.params_digest())?;
        self.require_shape(&plan.shape())?;
        let part = self.part();
        if part.is_whole(params) {
            return Ok((plan.clone(), (0..plan.rows(params, params.q()).len()).collect()));
        }
        let narrowed = plan.clone().up_to(part.usable());
        let missing = narrowed.key_primes().without(part.primes());
        if missing.is_empty() && !narrowed.digits.is_empty() {
            let numbers = plan.rows(params, part.usable()).iter().map(|row| row.index).collect();
            return Ok((narrowed, numbers));
        }
        Err(self.lacks(if missing.is_empty() { &plan.special } else { &missing }))
    }

    /// All rows of `plan` in R_QP, times a factor for each limb and, where there are factors, P / P_0 on own primes.
    fn sum_rows(
        &self,
        context: &Context<B>,
        plan: &SwitchPlan,
        numbers: Vec<usize>,
        factors: Option<&[u64]>,
    ) -> Result<PreparedKey<B>, Error> {
        let (params, backend) = (context.params(), context.backend());
        let primes = plan.key_primes();
        let rows = plan.rows(params, params.q());
        let (width, omega) = (primes.len(), rows.len());
        let mut columns = [backend.alloc(width * omega)?, backend.alloc(width * omega)?];
        for row in &rows {
            let factors = factors.map(|common| {
                let mut factors = common.to_vec();
                for (i, value) in row.own.iter().zip(plan.input_factors(params, &row.own)) {
                    if let Some(r) = primes.position(i) {
                        factors[r] = params.ring().modulus(i).mul(factors[r], value);
                    }
                }
                factors
            });
            let at: Vec<usize> = (row.index * width..(row.index + 1) * width).collect();
            self.sum_row_into(context, (&row.stored, &primes), factors.as_deref(), columns.each_mut(), &at)?;
        }
        Ok(PreparedKey { source: self.source(), target: self.target(), numbers, groups: 1, primes, columns })
    }

    /// The sum of the rows `stored` on `primes`, times a factor for each limb, into the rows `at` of both columns.
    fn sum_row_into(
        &self,
        context: &Context<B>,
        (stored, primes): (&[usize], &IndexSet),
        factors: Option<&[u64]>,
        [b, a]: [&mut B::Buffer; 2],
        at: &[usize],
    ) -> Result<(), Error> {
        let backend = context.backend();
        let factors = factors.filter(|f| f.iter().any(|&c| c != 1));
        let own: Option<Vec<_>> = stored.iter().map(|i| self.part().rows().iter().position(|j| j == i)).collect();
        let own = own.filter(|own| !own.is_empty()).ok_or_else(|| self.lacks(primes))?;
        let parts = own.iter().map(|&i| &self.b()[i]);
        let from = parts.clone().map(|p| p.primes().rows(primes)).collect::<Result<Vec<_>, _>>()?;
        let xs = parts.zip(&from).map(|(p, rows)| View::new(p.buffer(), rows)).collect();
        let sum = Stage::SumInto { xs, scalars: factors, g: 1, out: ViewMut::new(b, at) };
        backend.stage(primes.as_slice(), sum)?;
        let all: Vec<usize> = (0..primes.len()).collect();
        let seed = match self.uniform() {
            UniformHalves::Seed(seed) => seed,
            UniformHalves::Given(given) => {
                let xs = own.iter().zip(&from).map(|(&i, rows)| View::new(given[i].buffer(), rows)).collect();
                let sum = Stage::SumInto { xs, scalars: factors, g: 1, out: ViewMut::new(a, at) };
                return Ok(backend.stage(primes.as_slice(), sum)?);
            }
        };
        for (k, &i) in stored.iter().enumerate() {
            let (purpose, i) = (Purpose::SwitchKeyUniform, i as u32);
            if k == 0 {
                backend.uniform(primes.as_slice(), seed, purpose, i, ViewMut::new(a, at))?;
                continue;
            }
            let half = uniform(context, primes, seed, purpose, i)?;
            let half = View::new(half.buffer(), &all);
            backend.add_assign(primes.as_slice(), ViewMut::new(a, at), half)?;
        }
        factors.map_or(Ok(()), |f| Ok(backend.mul_scalar_assign(primes.as_slice(), ViewMut::new(a, at), f)?))
    }
}
