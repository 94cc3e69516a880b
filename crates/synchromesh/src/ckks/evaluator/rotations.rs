//! Sums of rotations times public vectors in one pass, with their certificate; rotation keys that are missing.

use std::sync::Arc;

use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::noise::{Estimates, LinearBound, log2_add};
use synchromesh_rlwe::ring::{Backend, Ntt, Poly};
use synchromesh_rlwe::{Noise, Operation, Source};

use super::combine::largest;
use super::{Evaluator, Held};
use crate::circuits::{MapSize, SizedSum, SumCounts};
use crate::ckks::beside::Beside;
use crate::ckks::ciphertext::Ciphertext;
use crate::ckks::noise;
use crate::embedding::Complex64;
use crate::error::{Error, Result};
use crate::rotations::Rotations;

impl<B: Backend> Evaluator<B> {
    /// Fails unless there are keys for all of these rotations.
    ///
    /// # Errors
    /// [`Error::MissingRotations`], [`Error::NoKeys`].
    pub fn require_rotations(&self, steps: &Rotations) -> Result<()> {
        let missing = |g: usize| -> Result<bool> {
            Ok(g != 1 && self.switching("rotation")?.keys().get(Source::Galois(g)).is_err())
        };
        let mut left = Vec::new();
        for &k in &self.routes.as_ref().map_or_else(|| steps.clone(), |routes| routes.expand(steps)).by {
            if missing(self.context.galois_element(k))? {
                left.push(k);
            }
        }
        let swap = steps.swap && missing(self.context.conjugation_element())?;
        if left.is_empty() && !swap { Ok(()) } else { Err(Error::MissingRotations { steps: left, swap }) }
    }

    /// A public vector as it multiplies rotations modulo QP, at the scale of its level, and log2 of how far from the scaled
    /// vector it is at any root.
    pub(super) fn rotation_factor(&self, values: &[Complex64], level: usize) -> Result<(Poly<B, Ntt>, f64)> {
        let primes = self.switching("rotation")?.extended(self.context.rlwe(), level)?;
        let scale = &self.context.params().at(level)?.scale;
        let (poly, log2_error) = self.context.public_polynomial(values, largest(values)?, &primes, scale)?;
        Ok((poly.into_ntt(self.context.rlwe().backend())?, log2_error))
    }

    /// A sum of rotations of `x`, made by twos, with the certificate of the whole of it where that is smaller: values of an
    /// error at many roots are as good as independent, so that n of them are some sqrt(n) times as large, and not n times.
    pub(super) fn sum_certified(
        &self,
        x: &Ciphertext<B>,
        sum: Ciphertext<B>,
        counts: &SumCounts,
    ) -> Result<Ciphertext<B>> {
        let x = self.renew(x, 0)?;
        if self.routes.is_some() || x.scale() != sum.scale() || x.level() != sum.level() {
            return Ok(sum);
        }
        let context = self.context.rlwe();
        let added = self.switching("rotation")?.rotation_noise_under(context, x.inner().key(), x.level(), x.level())?;
        // Sums that meet so many slots of those that count, each of which is in so many sums.
        let met = |met: usize, count: usize| {
            let log2 = |x: usize| (x as f64).log2();
            let gain = log2(met);
            let row = 0.5 * (gain + log2(counts.same));
            LinearBound { gain, norm: 0.5 * (gain + log2(count)), row: gain.min(row) }
        };
        let (log_n, whole) = (self.log_n(), counts.whole);
        let through = |noise: Noise, map: &LinearBound| noise.with_estimates(None).through(map, log_n);
        let switched =
            |start: Noise| counts.switches.iter().fold(start, |noise, &n| noise.plus(through(added, &met(n, n))));
        let (noise, bound) = (x.inner().noise(), x.bound());
        let (all, bound, beside) = match x.beside() {
            None => (through(noise, &met(whole, whole)), bound * whole as f64, None),
            Some(beside) => {
                let (own, most) = beside.windows(whole, counts.stride);
                let rest = through(beside.noise, &met(whole, whole));
                let all = through(noise, &met(most.max(1), whole)).plus(rest);
                (all, bound * most as f64, Beside::new(own, switched(rest)))
            }
        };
        let lineage = sum.lineage();
        let (inner, header) = sum.into_parts();
        let noise = inner.noise().sharpened(switched(all));
        let (inner, bound) = (inner.assume_noise(noise), header.bound.min(bound));
        let sharper = Ciphertext::checked(&self.context, Operation::Copy, inner, header.scale, bound)?;
        Ok(sharper.with_lineage(lineage).with_beside(beside))
    }

    /// The sum of rotations; with factors also rescaled, in the same division. Automatic mode only.
    ///
    /// The factors f_k of all terms, scaled, are S d_k + r_k. At every slot sum_k |d_k| is at most the gain, so that
    /// errors of the rotated inputs grow by that; each message meets the sum of all |r_k|.
    pub(super) fn sum_of_rotations(&self, inputs: &[&Ciphertext<B>], sum: &SizedSum<B, f64>) -> Result<Ciphertext<B>> {
        if !self.auto() {
            return Err(Error::argument("circuits need scales that are managed automatically: mode auto"));
        }
        let (params, context) = (self.context.params(), self.context.rlwe());
        let (switching, level) = (self.switching("rotation")?, sum.sum.level());
        let own = params.at(level)?;
        let keys: Vec<_> = inputs.iter().map(|x| x.inner().key()).collect();
        let inputs = inputs.iter().map(|x| self.under_own(x)).collect::<Result<Vec<_>>>()?;
        let Some(first) = inputs.first() else {
            return Err(Error::argument("a sum of rotations needs an input"));
        };
        for x in &inputs {
            first.inner().require_same(params.rlwe(), x.inner())?;
            if *x.scale() != own.scale {
                return Err(Error::ScaleMismatch { left: x.log2_scale(), right: own.log2 });
            }
        }
        let weighted = sum.is_weighted();
        if weighted && level == 0 {
            return Err(self.no_level(1, 0));
        }
        let to = level - usize::from(weighted);
        let key = first.inner().key();
        let added = switching.rotation_noise_under(context, key, level, level)?;
        let worst = |a: Noise, x: &Held<'_, B>| a.worse(x.inner().noise());
        let from: Vec<_> = inputs.iter().map(|x| x.parent()).collect();
        let given = inputs.iter().fold(first.inner().noise(), worst).moved();
        let rotated = given.plus_switching(added);
        // What rotations before these ones left is no rotation of one error.
        let before = added.worse(switching.noise_under(context, key, level, level)?);
        let each = if sum.switches > 0 { added.plus(before.times((sum.switches as f64).log2())) } else { added };
        let alike = sum.switches == 0 || keys.iter().all(|&own| own == key);
        let bound = inputs.iter().map(|x| x.bound()).fold(0.0, f64::max);
        let inner: Vec<_> = inputs.iter().map(|x| x.inner()).collect();
        let (parts, terms) = sum.run(switching, context, &inner, to)?;
        let (parts, giants) = (Vec::from(parts), added.times((terms.len() as f64).log2()));
        let made = |noise| rlwe::Ciphertext::new(params.rlwe(), parts, to, key, noise);
        if !weighted {
            let count = terms.iter().flatten().count() as f64;
            // Rotations of one error are independent in the average case.
            let estimated =
                |e: Estimates| Estimates { average: e.average.times(count.log2() / 2.0), ..e.times(count.log2()) };
            let rotated = rotated.times(count.log2()).with_estimates(rotated.estimates.map(estimated));
            let noise = rotated.plus(giants).plus(added);
            return self.finish(Operation::Rotation, &from, made(noise)?, noise, own.scale.clone(), bound * count);
        }
        let errors = terms.iter().flatten().filter_map(|(_, error)| *error).fold(f64::NEG_INFINITY, log2_add);
        let message = own.log2 + bound.log2();
        let MapSize { gain, norm, row, total, image, .. } = *sum.size;
        let most = image.map_or(bound * gain, |image| image.min(bound * gain));
        let log_n = params.log_n();
        // What comes with the inputs goes through the whole map, what each rotation adds through a part of it.
        let bounds = |norm: f64, row: f64| {
            LinearBound { gain: gain.log2(), norm: norm.log2(), row: row.log2() }.times(own.log2).plus(errors)
        };
        let apart = given.through(&bounds(norm, row), log_n);
        let apart = apart.plus(each.through(&bounds(total, total), log_n));
        let noise = rotated.times(log2_add(own.log2 + gain.log2(), errors));
        let noise =
            (if alike { noise.sharpened(apart) } else { noise }).plus(Noise::at_most(message + errors)).plus(giants);
        noise::check(params, level, 2.0 * own.log2 + most.log2(), noise)?;
        let noise =
            noise.times(-own.dropped.log2()).plus_switching(switching.rotation_noise_under(context, key, level, to)?);
        let beside = match &sum.size.own {
            Some(slots) => {
                let zero = rotated.times(errors).plus(Noise::at_most(message + errors)).plus(giants);
                let switched = switching.rotation_noise_under(context, key, level, to)?;
                Beside::new(Arc::clone(slots), zero.times(-own.dropped.log2()).plus_switching(switched))
            }
            None => None,
        };
        let scale = own.square.over(&own.dropped)?;
        let made = self.finish(Operation::Rotation, &from, made(noise)?, noise, scale, most)?;
        self.settled(made.with_beside(beside))
    }
}
