//! A dry run that makes rotation keys as they are asked for, and tells which: one run finds all of them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use synchromesh::circuits::{Cost, MatrixChoices, MatrixPlan, SlotShape};
use synchromesh::cost::DryLedger;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::ring::Threads;
use synchromesh::rlwe::{KeyId, Randomness};
use synchromesh::rotations::Rotations;
use synchromesh::scheme::{Entries, Operation, Scheme, State, Values};
use synchromesh::session::{AnySession, Engine, Erased, Session};
use synchromesh::{Error, Result};

/// Bytes of a number as circuits have it, and of an entry of a map in the caller's arrays: two slots and a weight. What the
/// library makes of the latter is gone before temporaries come.
const NUMBER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 16;

/// A session without data that lacks no rotation key.
pub(crate) struct Growing<S: Scheme> {
    session: Session<S, DryLedger>,
    found: Mutex<Rotations>,
    /// The most bytes of a map's entries and numbers.
    maps: AtomicU64,
}

impl<S: Scheme> Growing<S> {
    pub(crate) fn new(evaluator: S::Evaluator<DryLedger>) -> Self {
        Self { session: Session::new(evaluator), found: Mutex::new(Rotations::none()), maps: AtomicU64::new(0) }
    }

    /// The most bytes of the entries and diagonals of a map, beside all buffers.
    pub(crate) fn map_bytes(&self) -> u64 {
        self.maps.load(Ordering::Relaxed)
    }

    fn note(&self, entries: &Entries) {
        let Ok(shape) = self.session.slots() else { return };
        let row = shape.row.max(1) as u32;
        let diagonal = |(&to, &from): (&u32, &u32)| (to / row != from / row, (from % row + row - to % row) % row);
        let diagonals = entries.to.iter().zip(&entries.from).map(diagonal).collect::<BTreeSet<_>>().len();
        let bytes = entries.to.len() * ENTRY_BYTES + diagonals * shape.count() * NUMBER_BYTES;
        self.maps.fetch_max(bytes as u64, Ordering::Relaxed);
    }

    /// Fails with all rotations that were asked for and for which there were no keys.
    pub(crate) fn require_none_found(&self) -> Result<()> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if found == Rotations::none() {
            return Ok(());
        }
        Err(Error::MissingRotations { steps: found.by, swap: found.swap })
    }

    /// What `work` makes, with the keys that it turns out to need.
    fn with_keys<T>(&self, work: impl Fn(&Session<S, DryLedger>) -> Result<T>) -> Result<T> {
        loop {
            match work(&self.session) {
                Err(Error::MissingRotations { steps, swap }) if self.grow(&steps, swap)? => {}
                other => return other,
            }
        }
    }

    /// Keys for these rotations too; whether any of them is new. Keys of a dry run hold nothing.
    fn grow(&self, steps: &[i64], swap: bool) -> Result<bool> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let more = found.clone().and(&Rotations { swap, ..Rotations::by(steps.iter().copied()) });
        if more == *found {
            return Ok(false);
        }
        // The secret key that the planner's ciphertexts are under.
        let mut randomness = Randomness::insecure_from_number(0);
        let (secret, _) = self.session.generate_keys(&mut randomness)?;
        let keys = self.session.generate_keys_for(&secret, &more, &mut randomness)?;
        self.session.add_keys(&Arc::new(keys));
        *found = more;
        Ok(true)
    }
}

impl<S: Scheme> Engine for Growing<S> {
    fn slots(&self) -> Result<SlotShape> {
        self.session.slots()
    }

    fn top_level(&self) -> usize {
        self.session.top_level()
    }

    fn threads(&self) -> Threads {
        self.session.threads()
    }

    fn cost(&self) -> Cost {
        self.session.cost()
    }

    fn require_held(&self, values: &Values) -> Result<()> {
        self.session.require_held(values)
    }

    fn apply(&self, operation: &Operation<'_>, x: &[&Erased]) -> Result<Erased> {
        self.with_keys(|session| session.apply(operation, x))
    }

    fn prepare(&self, x: &Erased, entries: &Entries) -> Result<Erased> {
        self.note(entries);
        self.with_keys(|session| session.prepare(x, entries))
    }

    fn linear(&self, entries: Entries, x: &Erased) -> Result<Erased> {
        self.note(&entries);
        self.with_keys(|session| session.linear(entries.clone(), x))
    }

    fn map(&self, map: &Erased, x: &Erased) -> Result<Erased> {
        self.with_keys(|session| session.map(map, x))
    }

    fn multiply(
        &self,
        plan: &MatrixPlan,
        choices: &MatrixChoices,
        left: &[&Erased],
        right: &[&Erased],
    ) -> Result<Vec<Erased>> {
        self.with_keys(|session| session.multiply(plan, choices, left, right))
    }

    fn state(&self, x: &Erased) -> Result<State> {
        self.session.state(x)
    }

    fn write(&self, x: &Erased) -> Result<Vec<u8>> {
        self.session.write(x)
    }

    fn read(&self, bytes: &[u8], key: Option<KeyId>, trust: Trust<'_>) -> Result<Erased> {
        self.session.read(bytes, key, trust)
    }
}
