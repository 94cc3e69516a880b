//! ModRaise under a sparse secret: the phase m modulo q becomes m + q I modulo the largest modulus.

use synchromesh_rlwe::noise::log2_add;
use synchromesh_rlwe::ring::{Backend, Ntt};
use synchromesh_rlwe::{self as rlwe, Operation};

use crate::ckks::ciphertext::Ciphertext;
use crate::ckks::evaluator::Evaluator;
use crate::ckks::noise;
use crate::error::Result;

/// How messages are raised.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raise {
    /// The power of two that messages are multiplied by before.
    pub(super) multiple: u64,
    /// No slot of m + q I is larger, as a message of the highest level.
    pub(super) bound: f64,
}

impl Raise {
    /// A ciphertext of level 0 whose coefficients, not its slots, are the message.
    pub(super) fn run<B: Backend>(&self, evaluator: &Evaluator<B>, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        let (context, params) = (evaluator.context(), evaluator.context().params());
        let rlwe = context.rlwe();
        let residues = params.rlwe().ring().residues(params.rlwe().level(0)?, &self.multiple.into());
        let noise = x.inner().noise().times((self.multiple as f64).log2());
        self.raised(evaluator, &evaluator.times_residues(x.inner().duplicate(rlwe)?, &residues, noise)?)
    }

    /// A ciphertext of level 0, multiplied already.
    pub(super) fn raised<B: Backend>(
        &self,
        evaluator: &Evaluator<B>,
        x: &rlwe::Ciphertext<B, Ntt>,
    ) -> Result<Ciphertext<B>> {
        let (context, params) = (evaluator.context(), evaluator.context().params());
        let inner = evaluator.switching("bootstrapping")?.raise(context.rlwe(), x)?;
        let scale = params.scale(params.top_level())?.clone();
        Ciphertext::checked(context, Operation::Conversion, inner, scale, self.bound)
    }
}

/// log2 of what a slot of (c_0 + c_1 s) / q stays below, for uniform components and `weight` coefficients of s that are not
/// 0: tails of the one, the worst of the other.
pub(super) fn log2_overflow(log_n: u32, weight: usize) -> f64 {
    // Each component is uniform in +-1/2, and |s(zeta)| is at most the weight.
    let one = rlwe::Noise::gaussian(12f64.sqrt().recip());
    let component = noise::canonical_at(one, log_n, rlwe::noise::LOG2_FAILURE_INSIDE);
    component + log2_add(0.0, (weight as f64).log2())
}
