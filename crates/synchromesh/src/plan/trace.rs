//! What a circuit does when it runs without data: each ciphertext it makes, with its certificate, what the device was
//! asked for to make it, and the memory in use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::ring::ledger::{Book, Entries, Operation as Ledgered, Tally};
use synchromesh_rlwe::{Made, Observer, Operation};

use crate::cost::Profile;
use crate::error::Result;

/// Bits of noise where there is none.
const NO_NOISE_BITS: f64 = -1024.0;

/// A ciphertext that a circuit makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Node {
    /// What made it: an [`Operation`] in words.
    pub operation: String,
    /// Its level.
    pub level: usize,
    /// Its components, 2 or 3.
    pub components: usize,
    /// log2 of its modulus.
    pub modulus_bits: f64,
    /// log2 of its certified error, as far as it counts: an error of as many bits as the modulus does not decrypt.
    pub noise_bits: f64,
    /// The most bytes of buffers, keys included, while it was made.
    pub bytes: u64,
    /// Predicted milliseconds to make it; none without a machine profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
}

/// The nodes of a circuit, in the order they are made, and what each asks of a device.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traced {
    pub(crate) nodes: Vec<Node>,
    /// For each node what was asked of the device, with the most bytes of buffers meanwhile: at once, or in turn where it is
    /// a whole refresh.
    asked: Vec<Vec<(Entries, usize)>>,
    /// The number of nodes before the refresh that goes on.
    refreshing: Option<usize>,
}

/// How a plan was found is no part of it: one that is read from its file equals the one that was written.
impl PartialEq for Traced {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Traced {
    /// Levels below every ciphertext that is made.
    pub(crate) fn unused_levels(&self) -> usize {
        self.nodes.iter().map(|node| node.level).min().unwrap_or(0)
    }

    /// What was written later.
    pub(crate) fn append(&mut self, mut later: Self) {
        self.nodes.append(&mut later.nodes);
        self.asked.append(&mut later.asked);
    }

    /// Fills in what each node takes on the machine of `profile`, with so many bytes of tables besides.
    pub(crate) fn predict(&mut self, profile: &Profile, log_n: u32, tables: usize) -> Result<()> {
        for (node, asked) in self.nodes.iter_mut().zip(&self.asked) {
            let seconds = |(entries, peak): &(Entries, usize)| profile.seconds(entries, log_n, peak + tables);
            node.predicted_ms = Some(1e3 * asked.iter().map(seconds).sum::<Result<f64>>()?);
        }
        Ok(())
    }

    /// Products modulo primes, about: half of log2(N) for each coefficient that is transformed, and one for each that a base
    /// conversion or an inner product takes.
    pub(crate) fn multiplications(&self, log_n: u32) -> f64 {
        let each = |(&(operation, _), tally): (&(Ledgered, bool), &Tally)| {
            let transformed = if operation.transforms() { tally.work.rows } else { 0 };
            f64::from(log_n) / 2.0 * transformed as f64 + tally.work.terms as f64
        };
        let all = self.asked.iter().flatten().flat_map(|(entries, _)| entries.iter().map(each));
        f64::from(log_n).exp2() * all.sum::<f64>()
    }

    /// One node for a refresh, which is told as it begins and as it ends.
    fn fold(&mut self, first: usize) {
        let asked = self.asked.drain(first..).flatten().collect();
        let made: Vec<Node> = self.nodes.drain(first..).collect();
        let bytes = made.iter().map(|node| node.bytes).max().unwrap_or(0);
        if let Some(last) = made.into_iter().next_back() {
            self.nodes.push(Node { bytes, ..last });
            self.asked.push(asked);
        }
    }
}

/// Writes down nodes while a circuit runs.
pub(crate) struct Trace {
    ledger: Book,
    traced: Mutex<Traced>,
    /// Whether a refresh is one node.
    folds: bool,
}

impl Trace {
    /// Of a circuit that runs on the device of this ledger.
    pub(crate) fn new(ledger: Book) -> Arc<Self> {
        Arc::new(Self { ledger, traced: Mutex::default(), folds: true })
    }

    /// As [`Self::new`], with every ciphertext that a refresh makes.
    pub(crate) fn of_refreshes(ledger: Book) -> Arc<Self> {
        Arc::new(Self { ledger, traced: Mutex::default(), folds: false })
    }

    /// The trace as what watches a context.
    pub(crate) fn observer(self: &Arc<Self>) -> Arc<dyn Observer> {
        Arc::<Self>::clone(self)
    }

    fn lock(&self) -> MutexGuard<'_, Traced> {
        self.traced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was written so far: keys and encryptions, say.
    pub(crate) fn restart(&self) {
        self.ledger.take();
        *self.lock() = Traced::default();
    }

    /// What was written.
    pub(crate) fn take(&self) -> Traced {
        std::mem::take(&mut *self.lock())
    }
}

impl Observer for Trace {
    fn made(&self, made: &Made) {
        let (entries, peak) = self.ledger.take();
        let Made { operation, level, components, modulus_bits, noise_bits } = *made;
        // Nothing, as a product with 0, has no error: files have no number for its logarithm.
        let noise_bits = noise_bits.max(NO_NOISE_BITS);
        let mut traced = self.lock();
        let refresh = self.folds && operation == Operation::Refresh;
        if refresh && traced.refreshing.is_none() {
            // What was asked for before belongs to making the refreshes' vectors.
            traced.refreshing = Some(traced.nodes.len());
            return;
        }
        let (operation, bytes) = (operation.to_string(), peak as u64);
        traced.nodes.push(Node { operation, level, components, modulus_bits, noise_bits, bytes, predicted_ms: None });
        traced.asked.push(vec![(entries, peak)]);
        if let Some(first) = traced.refreshing.take_if(|_| refresh) {
            traced.fold(first);
        }
    }
}
