//! What a plan takes on a machine: one multiplication by the scheme's own evaluator, and a key switch at each level.

use std::sync::Arc;

use synchromesh_rlwe::Randomness;

use super::{Description, Plan, SchemeParams};
use crate::cost::{self, Candidate, DryLedger, IndexMap, Op, Profile, Shape, recorder};
use crate::error::{Error, Result};
use crate::{bfv, bgv, ckks, exact};

/// Widths that a plan is tried with: the widest of each class of primes.
const TRIED: [u32; 2] = [50, 60];

/// The plan whose multiplication is predicted to be the fastest, with why.
pub(super) fn fastest_width(description: &Description, profile: &Profile) -> Result<Plan> {
    let mut best: Option<Plan> = None;
    let mut refused = None;
    let mut times = Vec::new();
    for width in TRIED {
        let tried = Description { width: Some(width), ..description.clone() };
        let plan = match tried.plan_at(Some(profile)) {
            Ok(plan) => plan,
            Err(e) => {
                refused = Some(e);
                continue;
            }
        };
        let ms = plan.predicted_ms.unwrap_or(f64::INFINITY);
        times.push(format!("{ms:.3} ms with primes of up to {width} bits at N = 2^{}", plan.log_n));
        if best.as_ref().and_then(|b| b.predicted_ms).is_none_or(|least| ms < least) {
            best = Some(plan);
        }
    }
    let none = || refused.unwrap_or_else(|| Error::params("no width of primes fits"));
    let mut plan = best.ok_or_else(none)?;
    plan.explain.push(format!("prime width: a multiplication is predicted to take {}", times.join(", ")));
    Ok(plan)
}

impl Plan {
    /// Fills in what `profile` predicts: one multiplication with relinearisation at the top level, and one
    /// relinearisation at each. The choices stay as they are.
    ///
    /// # Errors
    /// [`Error::Params`] when the profile lacks an operation.
    pub fn predict(&mut self, profile: &Profile) -> Result<()> {
        self.predicted_ms = self.multiplication(profile)?.map(|s| 1e3 * s);
        let (params, plan) = self.params.check()?;
        let shape = self.shape();
        for switch in &mut self.switch {
            let active = params.level(switch.level)?;
            let seconds = cost::predict(profile, &params, &plan, [active, active], shape)?;
            switch.predicted_ms = Some(1e3 * seconds);
        }
        Ok(())
    }

    /// The fastest way to switch keys at each level of these parameters by `profile`, where the prepared keys for one
    /// source take at most `budget` bytes (level-aware key switching, section 4.3).
    ///
    /// # Errors
    /// As [`IndexMap::choose`].
    pub fn index_map(&self, profile: &Profile, budget: Option<u64>) -> Result<IndexMap> {
        let (params, plan) = self.params.check()?;
        let levels = (0..=params.top_level()).map(|level| cost::candidates(&params, &plan, level, 0.0));
        let shape = self.shape();
        let price = |c: &Candidate| cost::predict(profile, &params, &c.plan, [&c.active, &c.target], shape);
        IndexMap::choose(levels.collect::<Result<_>>()?, budget, price)
    }

    /// A relinearisation in the domain that ciphertexts rest in.
    const fn shape(&self) -> Shape {
        let ntt = !matches!(self.params, SchemeParams::Bfv(_));
        Shape { op: Op::Relin, input_ntt: ntt, output_ntt: ntt, batch: 1 }
    }

    /// Seconds of one multiplication at the top level; none where there is no level to multiply at.
    fn multiplication(&self, profile: &Profile) -> Result<Option<f64>> {
        if self.depth == 0 {
            return Ok(None);
        }
        let (params, plan) = self.params.check()?;
        let (entries, peak) = match &self.params {
            SchemeParams::Bfv(literal) => exact_product(bfv::Params::new(literal.clone())?)?,
            SchemeParams::Bgv(literal) => exact_product(bgv::Params::new(literal.clone())?)?,
            SchemeParams::Ckks(literal) => real_product(ckks::Params::new(literal.clone())?)?,
        };
        let tables = cost::table_bytes(&params, &params.q().union(&plan.special));
        profile.seconds(&entries, params.ring().log_n(), peak + tables).map(Some)
    }
}

type Recorded = (synchromesh_rlwe::ring::ledger::Entries, usize);

fn exact_product<S: exact::Scheme>(params: exact::Params<S>) -> Result<Recorded> {
    let device: DryLedger = recorder(params.rlwe());
    let context = exact::Context::<S, _>::with_backend(params, device)?;
    let mut randomness = Randomness::insecure_from_number(0);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &exact::Rotations::none(), &mut randomness)?;
    let evaluator = exact::Evaluator::new(&context, Some(Arc::new(keys)));
    let message = context.encode_coefficients(&[1i64][..])?;
    let x = context.encrypt(&public, &message, &mut randomness)?;
    evaluator.mul(&x, &x)?;
    context.rlwe().backend().take();
    evaluator.mul(&x, &x)?;
    Ok(context.rlwe().backend().take())
}

fn real_product(params: ckks::Params) -> Result<Recorded> {
    let device: DryLedger = recorder(params.rlwe());
    let context = ckks::Context::with_backend(params, device)?;
    let mut randomness = Randomness::insecure_from_number(0);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &ckks::Rotations::none(), &mut randomness)?;
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
    let message = context.encode(&[1.0])?;
    let x = context.encrypt(&public, &message, &mut randomness)?;
    evaluator.mul(&x, &x)?;
    context.rlwe().backend().take();
    evaluator.mul(&x, &x)?;
    Ok(context.rlwe().backend().take())
}
