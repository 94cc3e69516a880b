//! Evaluation keys of a plan: their bytes before they are made, and what of them is left out.

use synchromesh_rlwe::codec::{given_half_bytes, switch_key_bytes};
use synchromesh_rlwe::params::KeyOrigin;
use synchromesh_rlwe::ring::Backend;
use synchromesh_rlwe::wire::{HEADER_BYTES, KeyId, TRAILER_BYTES};
use synchromesh_rlwe::{Context, EvaluationKeys, KeyPart, LevelPlans, Params, Source, SwitchPlan};

use super::Plan;
use crate::error::{Error, Result};

/// Bytes of an object of `keys` evaluation keys on the wire, under both secret keys where there are two; all but the first
/// are for rotations, trimmed to `rotation_level`.
pub(super) fn key_bytes(rotation_level: Option<usize>, rlwe: &Params, plans: &LevelPlans, keys: usize) -> Result<u64> {
    let rotations = keys.saturating_sub(1) as u64;
    let one = |source, part: &KeyPart| switch_key_bytes(rlwe, source, part);
    let shape = plans.at(rlwe.top_level()).shape();
    let whole = KeyPart::whole(rlwe, shape)?;
    let trimmed = part(rotation_level, rlwe, plans)?;
    // What parties make together for products comes from no seed.
    let given = match rlwe.key_origin() {
        KeyOrigin::Shared(_) | KeyOrigin::Bounded(_) => given_half_bytes(rlwe, &whole),
        KeyOrigin::Drawn => 0,
    };
    let first =
        given + one(Source::Square, &whole) + rotations * one(Source::Galois(3), trimmed.as_ref().unwrap_or(&whole));
    // One key more brings ciphertexts under the second secret key; their number is counted again.
    let second = SwitchPlan::second(rlwe)?.map_or(Ok(0), |plan| {
        let whole = KeyPart::whole(rlwe, plan.shape())?;
        let entering = one(Source::Key(KeyId([0; 16])), &whole);
        Ok::<_, Error>(4 + one(Source::Square, &whole) + rotations * one(Source::Galois(3), &whole) + entering)
    })?;
    Ok((HEADER_BYTES + TRAILER_BYTES + 4) as u64 + first + second)
}

/// `keys` with those for rotations trimmed to `part`, where they are not whole.
///
/// # Errors
/// [`Error::Rlwe`] when the device fails, or for keys of other parameters.
pub(crate) fn trim<B: Backend>(
    context: &Context<B>,
    part: Option<&KeyPart>,
    keys: EvaluationKeys<B>,
) -> Result<EvaluationKeys<B>> {
    let Some(part) = part else { return Ok(keys) };
    Ok(keys.trim_where(context, part, |source| matches!(source, Source::Galois(_)))?)
}

/// What keys for rotations up to a level hold; none where they are whole.
fn part(level: Option<usize>, rlwe: &Params, plans: &LevelPlans) -> Result<Option<KeyPart>> {
    let Some(level) = level.filter(|&level| level < rlwe.top_level()) else { return Ok(None) };
    if rlwe.second().is_some() {
        return Err(Error::request(format!(
            "rotations up to level {level} and a second secret key: keys are trimmed under one secret key only"
        )));
    }
    Ok(Some(plans.needed(rlwe, level)?))
}

impl Plan {
    /// What the keys for rotations hold.
    pub(super) fn rotation_part(&self, params: &Params, plans: &LevelPlans) -> Result<Option<KeyPart>> {
        let plans = self.level_plans(params, plans)?;
        let (_, plain) = self.params.plans()?;
        part(self.rotation_level, params, plans.as_ref().unwrap_or(&plain))
    }

    /// What keys for rotations hold, of which the levels are left out at which the plan does not rotate; none: whole keys.
    pub(crate) fn trimmed(&self) -> Result<Option<KeyPart>> {
        if self.rotation_level.is_none() {
            return Ok(None);
        }
        let (params, plans) = self.params.plans()?;
        self.rotation_part(&params, &plans)
    }

    /// Leaves out of `keys` what no level needs at which the plan rotates.
    ///
    /// # Errors
    /// [`Error::Rlwe`] when the device fails, or for keys of other parameters.
    pub fn trim<B: Backend>(&self, context: &Context<B>, keys: EvaluationKeys<B>) -> Result<EvaluationKeys<B>> {
        trim(context, self.trimmed()?.as_ref(), keys)
    }
}
