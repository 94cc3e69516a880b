//! Provers who do not look whether what they prove is true: what a cheater can do with secrets that are not short.

use synchromesh::rlwe::ring::sampler::Seed;
use synchromesh::rlwe::ring::{Backend, Ntt, Poly};

use super::error::Result;
use super::integers::Integers;
use super::keys::{ShareProofs, ShareWitness};
use super::linear::{Linear, pack};
use super::transcript::Transcript;

impl ShareWitness {
    /// The same with every coefficient of one polynomial at `value`.
    #[must_use]
    pub fn with(mut self, polynomial: usize, value: i64) -> Self {
        let coefficients = vec![value; self.0[polynomial].len()];
        self.0[polynomial] = Integers::from_signed(coefficients.iter(), 1);
        self
    }
}

impl<B: Backend> ShareProofs<'_, B> {
    /// A proof by somebody who does not look whether its secrets are short, nor whether its responses are.
    ///
    /// # Errors
    /// Of the arithmetic alone.
    pub fn prove_anything(
        &self,
        share: &[Poly<B, Ntt>],
        witness: &ShareWitness,
        transcript: &Transcript,
    ) -> Result<Vec<u8>> {
        let target: Vec<&Poly<B, Ntt>> = share.iter().collect();
        careless(&self.linear()?, &[&target], &[&witness.0], (transcript, 1))
    }
}

/// A proof by somebody who uses `witnesses`, whatever they are, and sends responses beyond the bound if none of so many attempts
/// is within.
pub(super) fn careless<B: Backend>(
    linear: &Linear<'_, B>,
    targets: &[&[&Poly<B, Ntt>]],
    witnesses: &[&[Integers]],
    (transcript, attempts): (&Transcript, u8),
) -> Result<Vec<u8>> {
    let plan = linear.plan(targets.len())?;
    let statement = linear.statement(&plan, targets, transcript)?;
    let mut last = Vec::new();
    for attempt in 0..attempts {
        let seed = Seed::from_bytes([attempt; 32]);
        let mut z: Vec<Vec<Integers>> = (0..plan.rows).map(|v| linear.masks(&plan, v, &seed)).collect();
        let digest = linear.announce(&statement, &z)?;
        let hidden = linear.respond(&plan, &mut z, witnesses, &linear.challenges(&plan, &digest));
        last = pack(&plan, &digest, &z);
        if hidden {
            break;
        }
    }
    Ok(last)
}
