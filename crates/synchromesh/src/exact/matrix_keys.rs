//! Keys for products of matrices: those of right factors only as far as the level of the product goes.

use std::collections::BTreeSet;

use synchromesh_rlwe::ring::Backend;
use synchromesh_rlwe::{EvaluationKeys, KeyPart, Randomness, SecretKey, Source};

use super::{Context, Scheme};
use crate::circuits::{MatrixChoices, MatrixPlan, Side};
use crate::error::Result;

impl MatrixPlan {
    /// The keys that products of this plan take in BFV or BGV: relinearisation and rotations, trimmed to levels up to
    /// `level` but for those that left factors take before masks; [`Self::levels`] names the level.
    ///
    /// # Errors
    /// As [`Context::generate_evaluation_keys`], and [`synchromesh_rlwe::Error::Level`] above the top level.
    pub fn generate_keys<S: Scheme, B: Backend>(
        &self,
        context: &Context<S, B>,
        secret: &SecretKey<B>,
        choices: &MatrixChoices,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        let parts = self.key_parts(context, choices, level)?;
        Ok(EvaluationKeys::generate_parts(context.rlwe(), secret, parts, randomness)?)
    }

    /// Which keys those are, and which part of each.
    ///
    /// # Errors
    /// As [`Self::generate_keys`].
    pub fn key_parts<S: Scheme, B: Backend>(
        &self,
        context: &Context<S, B>,
        choices: &MatrixChoices,
        level: usize,
    ) -> Result<Vec<(Source, KeyPart)>> {
        let params = context.params();
        let whole = KeyPart::whole(params.rlwe(), params.plan().shape())?;
        let trimmed = params.plans().needed(params.rlwe(), level)?;
        let steps = self.rotations(choices).by;
        // What masks choose from stays at its own level: left factors, and what a line makes of them.
        let line = self.packing().step(Side::Right);
        let high = steps.iter().filter(|&&k| self.packing().is_masked() && k <= line);
        let element = |k: &i64| context.galois_element(*k);
        let high = high.map(element).collect::<Result<BTreeSet<_>>>()?;
        let all = steps.iter().map(element).collect::<Result<BTreeSet<_>>>()?;
        let part = |source| match source {
            Source::Galois(g) if high.contains(&g) => (source, whole.clone()),
            _ => (source, trimmed.clone()),
        };
        Ok(std::iter::once(Source::Square).chain(all.into_iter().map(Source::Galois)).map(part).collect())
    }
}
