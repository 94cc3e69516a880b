//! The demonstration: three computations on the breast-cancer table, each written once over a [`SlotMachine`].
//!
//! [`scores`] (CKKS): logistic-regression scores of the test patients. [`covariance`] (BGV): the exact covariance of
//! integer columns. [`group_by`] (BFV): exact counts of patients by diagnosis and size.

#[cfg(test)]
mod clear;
pub mod covariance;
pub mod group_by;
mod machine;
mod plans;
pub mod scores;

pub use machine::{Digests, Machine};
pub use plans::{Plans, descriptions};

use synchromesh::scheme::{Binary, Operation, State, Values};

/// Patients take this many slots when a column of all of them is packed: the power of two above 569.
pub const BLOCK: usize = 1024;

/// Who computes on vectors of `slots()` numbers: a session with its keys, or arithmetic in the clear. The server's part
/// never decrypts.
///
/// An operation fails with the scheme's own error; it switches keys, rescales and changes moduli as it must.
pub trait SlotMachine {
    /// An encrypted vector.
    type Ciphertext;
    /// The scheme's error.
    type Error;

    /// Numbers in a vector: a power of two.
    fn slots(&self) -> usize;
    /// Encrypts up to `slots()` numbers; the others are zero.
    fn encrypt(&mut self, values: &Values) -> Result<Self::Ciphertext, Self::Error>;
    /// The result of an operation on these vectors; rotations are to the left, round the end.
    fn apply(&mut self, operation: &Operation<'_>, x: &[&Self::Ciphertext]) -> Result<Self::Ciphertext, Self::Error>;
    /// All slots of a, `slots()` or more.
    fn decrypt(&mut self, a: &Self::Ciphertext) -> Result<Values, Self::Error>;
    /// Where a stands.
    fn health(&self, a: &Self::Ciphertext) -> Result<Health, Self::Error>;

    /// Of two vectors.
    fn of_two(
        &mut self,
        op: Binary,
        a: &Self::Ciphertext,
        b: &Self::Ciphertext,
    ) -> Result<Self::Ciphertext, Self::Error> {
        self.apply(&Operation::Binary(op), &[a, b])
    }
    /// a^2
    fn square(&mut self, a: &Self::Ciphertext) -> Result<Self::Ciphertext, Self::Error> {
        self.apply(&Operation::Square, &[a])
    }
    /// Of a vector and one in the clear.
    fn with_plain(
        &mut self,
        op: Binary,
        a: &Self::Ciphertext,
        p: impl Into<Values>,
    ) -> Result<Self::Ciphertext, Self::Error> {
        self.apply(&Operation::Plain(op, &p.into()), &[a])
    }
    /// a c, with one c for all slots.
    fn times(&mut self, a: &Self::Ciphertext, c: impl Into<Values>) -> Result<Self::Ciphertext, Self::Error> {
        self.apply(&Operation::Scalar(Binary::Mul, &c.into()), &[a])
    }
    /// Slot i + k in slot i.
    fn rotate(&mut self, a: &Self::Ciphertext, k: usize) -> Result<Self::Ciphertext, Self::Error> {
        self.apply(&Operation::Rotate(k as i64), &[a])
    }
}

/// How much a ciphertext can still take.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Health {
    /// Rescales or modulus switches that remain.
    pub level: u32,
    /// log2 of the modulus.
    pub modulus_bits: f64,
    /// log2 of the certified bound on the noise.
    pub noise_bits: f64,
}

impl From<State> for Health {
    fn from(state: State) -> Self {
        let State { level, modulus_bits, noise_bits, .. } = state;
        Self { level: level as u32, modulus_bits, noise_bits }
    }
}

/// A named point of a computation.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Step {
    /// What has just been done.
    pub name: String,
    /// The state of the result.
    pub health: Health,
}

/// What a computation asks of the parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Multiplications one after the other, by ciphertexts or vectors.
    pub depth: u32,
    /// Slots.
    pub slots: usize,
    /// Every rotation it makes.
    pub rotations: Vec<usize>,
    /// Largest magnitude an integer result may have; the plaintext modulus must exceed twice this. 0 for reals.
    pub bound: u64,
}

/// The steps of a computation as they happen, for progress and for the plot.
pub struct Trace<'a> {
    steps: Vec<Step>,
    on_step: Box<dyn FnMut(&str) + 'a>,
}

impl<'a> Trace<'a> {
    /// An empty trace that calls `on_step` with the name of each step.
    pub fn new(on_step: impl FnMut(&str) + 'a) -> Self {
        Self { steps: Vec::new(), on_step: Box::new(on_step) }
    }

    /// Records a step.
    ///
    /// # Errors
    /// The machine's.
    pub fn note<M: SlotMachine>(
        &mut self,
        name: &str,
        machine: &M,
        ciphertext: &M::Ciphertext,
    ) -> Result<(), M::Error> {
        (self.on_step)(name);
        self.steps.push(Step { name: name.to_owned(), health: machine.health(ciphertext)? });
        Ok(())
    }

    /// All steps, in order.
    #[must_use]
    pub fn into_steps(self) -> Vec<Step> {
        self.steps
    }
}

/// 1, 2, 4, ... below `count`, times `stride`: the rotations of a sum over `count` places, a power of two.
fn doublings(count: usize, stride: usize) -> impl Iterator<Item = usize> {
    (0..count.trailing_zeros()).map(move |k| stride << k)
}

/// The sum of slots i, i + stride, ..., i + (count - 1) stride, in slot i; `count` is a power of two above 1.
fn sum_slots<M: SlotMachine>(
    machine: &mut M,
    ciphertext: &M::Ciphertext,
    count: usize,
    stride: usize,
) -> Result<M::Ciphertext, M::Error> {
    let turned = machine.rotate(ciphertext, stride)?;
    let pairs = machine.of_two(Binary::Add, ciphertext, &turned)?;
    doublings(count, stride).skip(1).try_fold(pairs, |sum, k| {
        let turned = machine.rotate(&sum, k)?;
        machine.of_two(Binary::Add, &sum, &turned)
    })
}
