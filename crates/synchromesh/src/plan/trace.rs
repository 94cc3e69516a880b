//! What a circuit does when it runs without data: each ciphertext it makes, with its certificate, what the device was
//! asked for to make it, and the memory in use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::ring::ledger::{Book, Entries, Operation};

use crate::cost::Profile;
use crate::error::Result;

/// A ciphertext that a circuit makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// What made it, by what the device was asked for: "encryption", "product", "relinearisation", "rotation", ..
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
    asked: Vec<(Entries, usize)>,
}

/// How a plan was found is no part of it: one that is read from its file equals the one that was written.
impl PartialEq for Traced {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Traced {
    /// Fills in what each node takes on the machine of `profile`, with so many bytes of tables besides.
    pub(crate) fn predict(&mut self, profile: &Profile, log_n: u32, tables: usize) -> Result<()> {
        for (node, (entries, peak)) in self.nodes.iter_mut().zip(&self.asked) {
            node.predicted_ms = Some(1e3 * profile.seconds(entries, log_n, peak + tables)?);
        }
        Ok(())
    }
}

/// Writes down nodes while a circuit runs.
pub(crate) struct Trace {
    ledger: Book,
    traced: Mutex<Traced>,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lock().nodes.fmt(f)
    }
}

impl Trace {
    /// Of a circuit that runs on the device of this ledger.
    pub(crate) fn new(ledger: Book) -> Arc<Self> {
        Arc::new(Self { ledger, traced: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Traced> {
        self.traced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A ciphertext was made, whose error could grow by so many bits.
    pub(crate) fn node(&self, level: usize, components: usize, modulus_bits: f64, budget: f64) {
        let (entries, peak) = self.ledger.take();
        let mut traced = self.lock();
        let before = traced.nodes.last().map(|node| node.level);
        let operation = name(&entries, components, before.is_some_and(|before| level < before)).to_owned();
        let (noise_bits, bytes) = (modulus_bits - budget, peak as u64);
        traced.nodes.push(Node { operation, level, components, modulus_bits, noise_bits, bytes, predicted_ms: None });
        traced.asked.push((entries, peak));
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

/// The name of what a device was asked for.
fn name(entries: &Entries, components: usize, descends: bool) -> &'static str {
    let any = |operations: &[Operation]| entries.iter().any(|((operation, _), _)| operations.contains(operation));
    let permutes = |operations: &[Operation]| {
        entries.iter().any(|((operation, _), tally)| operations.contains(operation) && tally.work.extra > 0)
    };
    let gadget =
        [Operation::InnerProduct, Operation::GadgetProduct, Operation::GadgetProductCoeff, Operation::GadgetSums];
    let rotates = any(&[Operation::PermuteCoeff, Operation::PermuteSlots])
        || permutes(&[Operation::SlotSums, Operation::GadgetSums]);
    if any(&gadget) {
        return if rotates { "rotation" } else { "relinearisation" };
    }
    // Fresh secrets and errors: more polynomials reduced than multiplied. A plaintext is one polynomial.
    let rows = |wanted: &[Operation]| -> u64 {
        entries.iter().filter(|((operation, _), _)| wanted.contains(operation)).map(|(_, tally)| tally.work.rows).sum()
    };
    if rows(&[Operation::ReduceSigned]) > rows(&[Operation::Mul, Operation::MulAcc]) && components == 2 {
        return if any(&[Operation::Mul, Operation::MulAcc]) { "encryption" } else { "sum with a plaintext" };
    }
    if components == 3 && any(&[Operation::Tensor, Operation::Mul, Operation::MulAcc]) {
        return "product";
    }
    if any(&[Operation::Mul, Operation::MulAcc]) {
        return "product with a plaintext";
    }
    match () {
        () if descends => "switch to a lower level",
        () if any(&[Operation::MulScalar, Operation::MulScalarAcc]) => "product with a number",
        () if any(&[Operation::Add, Operation::SumInto]) => "sum",
        () => "copy",
    }
}
