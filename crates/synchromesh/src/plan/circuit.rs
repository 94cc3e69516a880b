//! Parameters for a circuit that the caller wrote: it runs without data, and the run says what it needs.
//!
//! The circuit runs on [`Dry`] at the parameters of a description. A rotation without a key adds the rotation; a
//! certificate that fails, or a level that is missing, makes the description one multiplication deeper; a CKKS result
//! that is too coarse makes it more precise. The first parameters at which the whole circuit runs are the plan.

use std::sync::Arc;

use synchromesh_rlwe::Randomness;
use synchromesh_rlwe::ring::Dry;

use super::{Description, Plan, SchemeName, dry, too_small};
use crate::circuits::Steps;
use crate::ckks;
use crate::error::{Error, Result};
use crate::exact::{self, Scheme};

/// Most attempts at finding parameters: rotations found in turn, levels added, bits of precision added.
const MOST_RUNS: usize = 200;

/// What one run without data found.
enum Outcome {
    Runs,
    Missing(Steps),
    /// Another multiplication deep.
    Deeper,
    /// More bits of precision.
    Finer(u32),
}

impl Description {
    /// Parameters at which a circuit of BFV or BGV runs, with the rotations it makes; S names the scheme.
    ///
    /// The circuit gets an evaluator and `inputs` fresh ciphertexts. Of the description, depth and rotations are where
    /// the search starts.
    ///
    /// # Errors
    /// [`Error::Params`] for a description of another scheme or when nothing fits; what the circuit itself fails with.
    pub fn plan_exact<S: Scheme>(
        &self,
        inputs: usize,
        circuit: impl Fn(&exact::Evaluator<S, Dry>, &[exact::Ciphertext<S, Dry>]) -> Result<Vec<exact::Ciphertext<S, Dry>>>,
    ) -> Result<Plan> {
        if self.scheme.name() != S::NAME {
            return Err(Error::params(format!("the description is for {}, not for {}", self.scheme.name(), S::NAME)));
        }
        self.search_for(|plan, steps| {
            let literal = match &plan.params {
                super::SchemeParams::Bfv(literal) | super::SchemeParams::Bgv(literal) => literal.clone(),
                super::SchemeParams::Ckks(_) => return Err(Error::params("the plan is for ckks")),
            };
            let params = exact::Params::<S>::new(literal)?;
            let context = exact::Context::with_backend(params.clone(), dry(params.rlwe()))?;
            let mut randomness = Randomness::insecure_from_number(0);
            let (secret, public) = context.generate_keys(&mut randomness)?;
            let keys = context.generate_evaluation_keys(&secret, &steps.clone().into(), &mut randomness)?;
            let evaluator = exact::Evaluator::new(&context, Some(Arc::new(keys)));
            let message = context.encode_coefficients(&[1i64][..])?;
            let fresh = (0..inputs).map(|_| context.encrypt(&public, &message, &mut randomness));
            let result = fresh.collect::<Result<Vec<_>>>().and_then(|fresh| circuit(&evaluator, &fresh));
            result.map_or_else(Outcome::of, |_| Ok(Outcome::Runs))
        })
    }

    /// Parameters at which a circuit of CKKS runs and keeps the precision asked for, with the rotations it makes.
    ///
    /// The circuit gets an evaluator and a fresh ciphertext for each bound on an input's slots.
    ///
    /// # Errors
    /// As [`Self::plan_exact`].
    pub fn plan_ckks(
        &self,
        bounds: &[f64],
        circuit: impl Fn(&ckks::Evaluator<Dry>, &[ckks::Ciphertext<Dry>]) -> Result<Vec<ckks::Ciphertext<Dry>>>,
    ) -> Result<Plan> {
        if self.scheme != SchemeName::Ckks {
            return Err(Error::params(format!("the description is for {}, not for ckks", self.scheme.name())));
        }
        let wanted = f64::from(self.precision.unwrap_or(20));
        self.search_for(|plan, steps| {
            let params = plan.ckks()?;
            let context = ckks::Context::with_backend(params.clone(), dry(params.rlwe()))?;
            let mut randomness = Randomness::insecure_from_number(0);
            let (secret, public) = context.generate_keys(&mut randomness)?;
            let keys = context.generate_evaluation_keys(&secret, &steps.clone().into(), &mut randomness)?;
            let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
            let fresh = bounds
                .iter()
                .map(|&bound| context.encrypt(&public, &context.encode_bounded(&[], bound)?, &mut randomness));
            let result = fresh.collect::<Result<Vec<_>>>().and_then(|fresh| circuit(&evaluator, &fresh));
            let results = match result {
                Ok(results) => results,
                Err(error) => return Outcome::of(error),
            };
            let worst = results.iter().map(|x| context.error_bound(x)).fold(0.0, f64::max);
            let lacking = (wanted + worst.log2()).ceil();
            Ok(if lacking > 0.0 { Outcome::Finer(lacking as u32) } else { Outcome::Runs })
        })
    }

    fn search_for(&self, run: impl Fn(&Plan, &Steps) -> Result<Outcome>) -> Result<Plan> {
        let mut description = self.clone();
        let mut steps = Steps { by: self.rotations.clone(), swap: self.swap };
        let mut plan = description.plan()?;
        for _ in 0..MOST_RUNS {
            match run(&plan, &steps)? {
                Outcome::Runs if (&description.rotations, description.swap) == (&steps.by, steps.swap) => {
                    return Ok(plan);
                }
                // Once more at parameters that know all rotations.
                Outcome::Runs => {
                    (description.rotations, description.swap) = (steps.by.clone(), steps.swap);
                    plan = description.plan()?;
                }
                Outcome::Missing(more) => steps = steps.and(&more),
                Outcome::Deeper => {
                    description.depth += 1;
                    plan = description.plan()?;
                }
                Outcome::Finer(bits) => {
                    description.precision = Some(description.precision.unwrap_or(20) + bits);
                    plan = description.plan()?;
                }
            }
        }
        Err(Error::params(format!("no parameters were found in {MOST_RUNS} runs of the circuit")))
    }
}

impl Outcome {
    /// What an error of the circuit asks for; any other error is the circuit's own.
    fn of(error: Error) -> Result<Self> {
        match error {
            Error::MissingRotations { steps, swap } => Ok(Self::Missing(Steps { swap, ..Steps::by(steps) })),
            error if too_small(&error) => Ok(Self::Deeper),
            error => Err(error),
        }
    }
}
