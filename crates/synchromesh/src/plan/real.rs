//! CKKS in the search for parameters: the smallest scale that keeps the precision at a degree, judged by a run without
//! data.

use std::sync::Arc;

use synchromesh_rlwe::ring::Backend;
use synchromesh_rlwe::{Randomness, Security, SwitchPlan};

use super::circuit::described;
use super::search::{Chain, Family};
use super::shape::{Shape, split, split_exactly};
use super::trace::{Trace, Traced};
use super::{Description, PRECISION, SchemeParams, dry, smallest, too_small};
use crate::ckks::{Context, Evaluator, Mode, Params, ParamsLiteral, Primes, Rotations};
use crate::cost::recorder;
use crate::error::{Error, Result};

/// Most bits of a scale.
const MOST_SCALE: u32 = 100;

/// A description for CKKS.
pub(super) struct Real<'a> {
    description: &'a Description,
    precision: u32,
}

impl<'a> Real<'a> {
    pub(super) fn new(description: &'a Description) -> Self {
        Self { description, precision: description.precision.unwrap_or(PRECISION) }
    }

    fn literal(&self, log_n: u32, chain: &Chain, omega: usize, p_bits: &[u32], security: Security) -> ParamsLiteral {
        ParamsLiteral {
            log_n,
            log_scale: chain.log_scale,
            q_bits: chain.shape.q_bits.clone(),
            p_bits: p_bits.to_vec(),
            level_limbs: chain.shape.level_limbs.clone(),
            schedule: chain.shape.schedule.clone(),
            omega,
            log_scales: vec![],
            mode: Mode::Auto,
            security,
            primes: None,
        }
    }

    /// The parameters of a literal, for keys and at the failure probability as the description has them.
    fn checked(&self, literal: ParamsLiteral) -> Result<Params> {
        let params = Params::new(literal)?.with_failure_limit(self.description.failure);
        Ok(self.description.joint.map_or(params.clone(), |joint| params.with_parties(joint.makers())))
    }

    /// The chain of a scale and a level 0 that is `above` bits wider.
    fn sized(&self, log_scale: u32, above: u32) -> Chain {
        let width = self.description.width();
        // Primes of a level lie on both sides of a power of two: one bit less keeps them below the width.
        let base = log_scale + above + self.description.headroom;
        let (base, level) = (split(base, width), split_exactly(log_scale, width - 1));
        Chain { shape: Shape::of(self.description, &base, &level), log_scale, explain: Vec::new() }
    }

    /// Bits kept with this chain, security aside; none when a certificate fails.
    fn kept_by(&self, log_n: u32, chain: &Chain, switches: usize) -> Result<Option<f64>> {
        let omega = chain.shape.q_bits.len().min(3);
        let p_bits = chain.shape.special(omega);
        match self.checked(self.literal(log_n, chain, omega, &p_bits, Security::Insecure)) {
            Ok(params) => self.kept(&params, switches),
            // Primes that there are not enough of, or scales that drift.
            Err(Error::Primes(_) | Error::Params { .. }) => Ok(None),
            Err(e) if too_small(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Bits kept of an absolute error when the circuit has run without data, or none when a certificate fails.
    fn kept(&self, params: &Params, switches: usize) -> Result<Option<f64>> {
        match self.run(params, dry(params.rlwe()), switches, None) {
            Ok(kept) => Ok(Some(kept)),
            Err(e) if too_small(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Runs the circuit on a device; `trace` gets what happens once all keys are made.
    fn run<B: Backend>(&self, params: &Params, device: B, switches: usize, trace: Option<&Arc<Trace>>) -> Result<f64> {
        let description = self.description;
        let context = Context::observed(params.clone(), device, trace.map(Trace::observer))?;
        let mut randomness = Randomness::insecure_from_number(0);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let rotates = !description.rotations.is_empty();
        let rotations = if rotates { Rotations::by([1]) } else { Rotations::none() };
        let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness)?;
        let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
        trace.inspect(|trace| trace.restart());
        let message = context.encode(&[1.0])?;
        let x = described(&evaluator, description, switches, context.encrypt(&public, &message, &mut randomness)?)?;
        Ok(-description.off(&context, &x)?.log2())
    }
}

impl Family for Real<'_> {
    type Params = Params;

    fn slots(&self, log_n: u32) -> usize {
        1 << (log_n - 1)
    }

    fn row(&self, log_n: u32) -> usize {
        1 << (log_n - 1)
    }

    fn floor(&self, _log_n: u32) -> Result<u32> {
        Ok(self.description.depth as u32 * self.precision)
    }

    fn chain(&self, log_n: u32, switches: usize) -> Result<std::result::Result<Chain, String>> {
        let (description, precision) = (self.description, self.precision);
        let fits = |log_scale: u32, above: u32| -> Result<bool> {
            let kept = self.kept_by(log_n, &self.sized(log_scale, above), switches)?;
            Ok(kept.is_some_and(|kept| kept >= f64::from(precision)))
        };
        // Sums square at each multiplication: room for their growth above the scale.
        let growth = (description.additions as f64 + 1.0).log2() * 2f64.powi(description.depth.min(20) as i32 + 1);
        let roomy = 12 + growth.ceil().min(60.0) as u32;
        let least = (precision + 8).max(log_n + 9).max(25);
        let refused = || Ok(Err(format!("at N = 2^{log_n} no scale up to 2^{MOST_SCALE} keeps {precision} bits")));
        let Some(log_scale) = smallest(least, MOST_SCALE, |s| fits(s, roomy))? else { return refused() };
        let log_scale = log_scale + description.finer;
        if log_scale > MOST_SCALE {
            return refused();
        }
        let above = smallest(2, roomy, |m| fits(log_scale, m))?.unwrap_or(roomy);
        let mut chain = self.sized(log_scale, above);
        let less = log_scale.checked_sub(1).filter(|&s| s >= least);
        let kept = less.map_or(Ok(None), |s| self.kept_by(log_n, &self.sized(s, above), switches))?;
        let runner_up = match kept {
            Some(kept) => format!("; one bit less would keep {kept:.1} bits"),
            None => "; no smaller one is usable".to_owned(),
        };
        chain.explain.push(format!(
            "scale 2^{log_scale}: each level takes {log_scale} bits, level 0 has {}{runner_up}",
            chain.shape.level(0).iter().sum::<u32>(),
        ));
        if description.finer > 0 {
            chain
                .explain
                .push(format!("{} bits of the scale are for errors that the circuit makes larger", description.finer));
        }
        if description.headroom > 0 {
            chain.explain.push(format!(
                "{} bits of level 0 are for results above 1 by the bounds of the inputs; declare_bound where they are smaller",
                description.headroom
            ));
        }
        Ok(Ok(chain))
    }

    fn params(&self, log_n: u32, chain: &Chain, omega: usize, p_bits: &[u32]) -> Result<Params> {
        self.checked(self.literal(log_n, chain, omega, p_bits, self.description.security))
    }

    fn rlwe(params: &Params) -> (&synchromesh_rlwe::Params, &SwitchPlan) {
        (params.rlwe(), params.plan())
    }

    fn literal(params: &Params) -> SchemeParams {
        let rlwe = params.rlwe().literal();
        let primes = Some(Primes { q: rlwe.q.clone(), p: rlwe.p.clone() });
        SchemeParams::Ckks(ParamsLiteral { primes, ..params.literal().clone() })
    }

    fn judge(&self, params: &Params, switches: usize) -> Result<Option<String>> {
        let (depth, wanted) = (self.description.depth, self.precision);
        let limit = self.description.failure;
        let words = |kept: f64| {
            format!(
                "precision: the certificate keeps {kept:.1} bits after depth {depth} for inputs up to 1, {wanted} were asked \
                 for, at failure probability {limit}"
            )
        };
        Ok(self.kept(params, switches)?.filter(|&kept| kept >= f64::from(wanted)).map(words))
    }
    fn trace(&self, params: &Params, switches: usize) -> Result<Traced> {
        let device = recorder(params.rlwe());
        let trace = Trace::new(device.reader());
        self.run(params, device, switches, Some(&trace))?;
        Ok(trace.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SchemeName;

    #[test]
    fn parameters_that_keep_too_few_bits_are_not_taken() {
        let description = Description::new(SchemeName::Ckks, 2);
        let real = Real::new(&description);
        let judged = |chain: &Chain| {
            let omega = chain.shape.q_bits.len().min(3);
            let p_bits = chain.shape.special(omega);
            let params = Params::new(real.literal(12, chain, omega, &p_bits, Security::Insecure)).unwrap();
            real.judge(&params, 1).unwrap()
        };
        let chain = real.chain(12, 1).unwrap().unwrap();
        assert!(judged(&chain).is_some_and(|words| words.contains("certificate keeps")));
        assert_eq!(judged(&real.sized(chain.log_scale - 3, 14)), None);
    }
}
