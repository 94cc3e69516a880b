//! What a circuit does to levels, written down while it runs without data: which value is made of which, and which level
//! something needs.

use std::sync::{Mutex, PoisonError};

use synchromesh_rlwe::Operation;
use synchromesh_rlwe::ring::Backend;

use super::Evaluator;
use crate::ckks::ciphertext::Ciphertext;
pub(crate) use crate::ckks::lineage::Parent;
use crate::error::Result;

/// A thing that happened.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A value was made of others.
    Made {
        operation: Operation,
        from: Vec<Parent>,
        made: Parent,
        /// The highest level that it has, whatever it is made of.
        most: Option<usize>,
        /// Whether it could be refreshed, but for its bound: two components, at the scale of its level.
        whole: bool,
    },
    /// An operation begins that takes a value of this level at the least.
    Needs { value: Parent, level: usize },
    /// A value was refreshed, since it lacked levels or since that was its place.
    Refreshed,
    /// A value would have been refreshed and may be too large for it.
    TooLarge(Parent),
}

/// Writes down events.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<Event>>);

impl Recorder {
    pub(super) fn push(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// What was written.
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<B: Backend> Evaluator<B> {
    /// Writes down a value that an operation made.
    pub(super) fn record(&self, operation: Operation, from: &[Parent], made: &Ciphertext<B>) -> Result<()> {
        let Some(recorder) = self.recorder() else { return Ok(()) };
        let scale = &self.context().params().at(made.level())?.scale;
        let whole = made.components() == 2 && made.scale() == scale;
        recorder.push(Event::Made { operation, from: from.to_vec(), made: made.parent(), most: None, whole });
        Ok(())
    }

    /// Writes down a value that was brought to a level which the circuit named.
    pub(super) fn record_at_most(&self, from: &[Parent], made: &Ciphertext<B>) -> Result<()> {
        let Some(recorder) = self.recorder() else { return Ok(()) };
        let (operation, most) = (Operation::Descent, Some(made.level()));
        recorder.push(Event::Made { operation, from: from.to_vec(), made: made.parent(), most, whole: true });
        Ok(())
    }
}
