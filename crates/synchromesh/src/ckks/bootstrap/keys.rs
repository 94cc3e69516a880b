//! The keys of bootstrapping, each as far as the levels it switches at need it.

use std::collections::BTreeMap;

use synchromesh_rlwe::ring::Backend;
use synchromesh_rlwe::{EvaluationKeys, Randomness, SecretKey, Source};

use super::Bootstrap;
use super::transform::Direction;
use super::view::element;
use crate::ckks::context::Context;
use crate::error::Result;
use crate::rotations::Rotations;

impl Bootstrap {
    /// The keys for multiplication, for bootstrapping, and for these rotations up to [`Self::output_level`]; each is made as
    /// far as levels need it.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::ParamsDiffer`], [`synchromesh_rlwe::Error::Entropy`] without randomness, or when the
    /// device fails.
    pub fn generate_keys<B: Backend>(
        &self,
        context: &Context<B>,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        let (params, rlwe) = (context.params(), context.rlwe());
        params.rlwe().require_digest(self.params.rlwe().digest())?;
        let part = |(source, level)| Ok((source, params.plans().needed(params.rlwe(), level)?));
        let parts = self.levels(context, rotations)?.into_iter().map(part).collect::<Result<Vec<_>>>()?;
        let mut keys = EvaluationKeys::generate_parts(rlwe, secret, parts, randomness)?;
        keys.add_raising(rlwe, secret, params.plan(), randomness)?;
        Ok(keys)
    }

    /// The keys there must be, with the highest level that each switches at.
    fn levels<B: Backend>(&self, context: &Context<B>, rotations: &Rotations) -> Result<BTreeMap<Source, usize>> {
        let mut levels = BTreeMap::new();
        let mut at = |source, level: usize| {
            let highest = levels.entry(source).or_insert(level);
            *highest = level.max(*highest);
        };
        // Parts are made once the slots are there.
        let top = self.params.top_level();
        for source in [Source::Square, Source::Galois(context.conjugation_element())] {
            at(source, top - self.literal.coeffs_to_slots);
        }
        for &k in &rotations.by {
            at(Source::Galois(context.galois_element(k)), self.output_level());
        }
        for direction in [Direction::SlotsToCoeffs, Direction::CoeffsToSlots] {
            let first = self.first_level(direction);
            for (down, map) in self.patterns(direction).iter().enumerate() {
                for &k in &map.rotations(self.baby_steps(map)).by {
                    at(Source::Galois(element(context, k)), first - down);
                }
            }
        }
        for &k in &self.over_periods().rotations().by {
            at(Source::Galois(element(context, k)), top);
        }
        if self.extent.packed {
            at(Source::Galois(element(context, self.extent.period as i64)), self.bent_level);
        }
        levels.remove(&Source::Galois(1));
        Ok(levels)
    }
}
