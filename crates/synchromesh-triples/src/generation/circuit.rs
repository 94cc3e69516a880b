//! What parties compute on ciphertexts, each for itself: C = A B, and the products of A, B and C with the MAC key.

use std::sync::Arc;

use synchromesh::bgv::{Ciphertext, Context, Evaluator};
use synchromesh::circuits::{MatrixChoices, MatrixPlan};
use synchromesh::rlwe::noise::{Noise, Origins};
use synchromesh::rlwe::ring::Backend;
use synchromesh::rlwe::{EvaluationKeys, KeyId};

use crate::error::Result;

/// The ciphertexts that are decrypted to shares: C, and alpha A, alpha B, alpha C.
pub(crate) struct Products<B: Backend> {
    pub(crate) c: Vec<Ciphertext<B>>,
    pub(crate) macs: [Vec<Ciphertext<B>>; 3],
}

impl<B: Backend> Products<B> {
    /// C, then the MACs of A, B and C.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Ciphertext<B>> {
        self.c.iter().chain(self.macs.iter().flatten())
    }
}

/// The ciphertext with nothing believed of its error but that it is at most 2^`log2_noise`: it may be anybody's, and depend
/// on anything.
pub(crate) fn believed<B: Backend>(context: &Context<B>, x: &Ciphertext<B>, log2_noise: f64) -> Result<Ciphertext<B>> {
    let noise = Noise::at_most(log2_noise).with_origins(Origins::ANY);
    let inner = x.inner().duplicate(context.rlwe())?.assume_noise(noise);
    Ok(Ciphertext::from_parts(context.params(), inner, x.header().clone())?)
}

/// The level at which such factors are multiplied, which keys are made for.
pub(crate) fn product_level<B: Backend>(
    context: &Arc<Context<B>>,
    plan: &MatrixPlan,
    key: KeyId,
    [a, b]: [&Ciphertext<B>; 2],
) -> Result<usize> {
    let evaluator = Evaluator::new(context, Some(Arc::new(EvaluationKeys::new(key))));
    Ok(plan.levels(&evaluator, a, b)?.product)
}

/// Rows of A's ciphertexts, columns of B's, the MAC key's, and whether MACs of A and of B are wanted beside those of C.
pub(crate) struct Factors<'a, B: Backend> {
    pub(crate) a: &'a [Ciphertext<B>],
    pub(crate) b: &'a [Ciphertext<B>],
    pub(crate) alpha: &'a Ciphertext<B>,
    pub(crate) macs: [bool; 2],
}

/// All products of these factors; keys are for levels up to `level`.
pub(crate) fn multiply<B: Backend>(
    evaluator: &Evaluator<B>,
    plan: &MatrixPlan,
    choices: &MatrixChoices,
    factors: &Factors<'_, B>,
    level: usize,
) -> Result<Products<B>> {
    let Factors { a, b, alpha, macs: [of_a, of_b] } = *factors;
    let c = plan.multiply_part(evaluator, choices, a, b)?;
    let lowered = |x: &Ciphertext<B>| evaluator.mod_switch_to(x, level.min(x.level()));
    let alpha = lowered(alpha)?;
    let mac = |x: &Ciphertext<B>| Ok(evaluator.mul(&lowered(x)?, &alpha)?);
    let macs = |list: &[Ciphertext<B>]| list.iter().map(mac).collect::<Result<Vec<_>>>();
    let macs = [macs(if of_a { a } else { &[] })?, macs(if of_b { b } else { &[] })?, macs(&c)?];
    Ok(Products { c, macs })
}

/// Products slot by slot: of each pair of numbers of `fresh` one product, and the MACs of all of `fresh` and of the products.
pub(crate) fn multiply_slots<B: Backend>(
    evaluator: &Evaluator<B>,
    fresh: &[Ciphertext<B>],
    pairs: &[[usize; 2]],
    alpha: &Ciphertext<B>,
    level: usize,
) -> Result<Products<B>> {
    let lowered = |x: &Ciphertext<B>| evaluator.mod_switch_to(x, level.min(x.level()));
    let alpha = lowered(alpha)?;
    let factors = fresh.iter().map(lowered).collect::<synchromesh::Result<Vec<_>>>()?;
    let c = pairs.iter().map(|&[i, j]| evaluator.mul(&factors[i], &factors[j]));
    let c = c.collect::<synchromesh::Result<Vec<_>>>()?;
    let macs = |list: &[Ciphertext<B>]| {
        list.iter().map(|x| Ok(evaluator.mul(&lowered(x)?, &alpha)?)).collect::<Result<Vec<_>>>()
    };
    let macs = [macs(&factors)?, Vec::new(), macs(&c)?];
    Ok(Products { c, macs })
}
