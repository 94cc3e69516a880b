//! Runs of the circuit without data: at which levels every certificate holds and the masks of all parties fit on top.

use std::sync::Arc;

use synchromesh::bgv::{Ciphertext, Context, Evaluator, Params};
use synchromesh::circuits::{MatrixChoices, MatrixPlan};
use synchromesh::rlwe::noise::log2_add;
use synchromesh::rlwe::ring::{Backend, Dry};
use synchromesh::rlwe::{EvaluationKeys, Randomness, SecretKey, Source};

use super::super::circuit::{Factors, Products, believed, multiply, multiply_slots, product_level};
use super::super::encryption::{Content, Encryptions, dealt_log2_noise};
use super::{Keys, Placement, Request};
use crate::error::{Error, Result};
use crate::share::Shape;

/// What a run without data says of everything that a plan is for.
pub(super) struct Placed {
    pub(super) tasks: Vec<Placement>,
    pub(super) slots: Placement,
}

/// One block row and one block column of the circuit of each shape on a device that computes nothing: what is true of
/// their certificates is true of all. None if a certificate fails or the masks do not fit.
pub(super) fn rehearse(request: &Request, tasks: &[(Shape, MatrixPlan)], params: &Params) -> Result<Option<Placed>> {
    let device = Dry::new(Arc::clone(params.rlwe().ring()));
    let context = Context::with_backend(params.clone(), device)?;
    let placed = |made: Result<Option<Placement>>| match made {
        Err(Error::Library(error)) if too_small(&error) => Ok(None),
        other => other,
    };
    let mut placements = Vec::with_capacity(tasks.len());
    for (_, matrices) in tasks {
        match placed(rehearse_on(&context, request, matrices))? {
            Some(placement) => placements.push(placement),
            None => return Ok(None),
        }
    }
    let level = placements.iter().map(|placement| placement.product).max().unwrap_or(0);
    let slots = placed(rehearse_slots(&context, request, level))?;
    Ok(slots.map(|slots| Placed { tasks: placements, slots }))
}

/// Whether an error means that larger parameters may do.
fn too_small(error: &synchromesh::Error) -> bool {
    use synchromesh::rlwe::Error as E;
    matches!(error, synchromesh::Error::Rlwe(E::Noise { .. } | E::Level { .. } | E::UnknownNoise { .. }))
}

/// What parties send each other, as far as it is believed, and the keys to compute with.
struct Stage<B: Backend> {
    secret: SecretKey<B>,
    randomness: Randomness,
    /// The sum of encryptions of anything.
    sum: Ciphertext<B>,
    /// The encryption of the MAC key.
    alpha: Ciphertext<B>,
}

impl<B: Backend> Stage<B> {
    fn set(context: &Arc<Context<B>>, request: &Request) -> Result<Self> {
        let mut randomness = Randomness::insecure_from_number(0);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let zero = context.encode_coefficients(&[0i64][..])?;
        let none = Evaluator::new(context, None);
        let mut sum_of = |content| -> Result<Ciphertext<B>> {
            let log2_noise = Encryptions::new(request.proofs, context, &public, content)?.log2_noise()?;
            let fresh = believed(context, &context.encrypt(&public, &zero, &mut randomness)?, log2_noise)?;
            let mut sum = fresh.duplicate(context)?;
            for _ in 1..request.parties {
                sum = none.add(&sum, &fresh)?;
            }
            Ok(sum)
        };
        let sum = sum_of(Content::Any)?;
        let alpha = match request.keys {
            Keys::Generated => sum_of(Content::Constant)?,
            Keys::Dealt => {
                let fresh = context.encrypt(&public, &zero, &mut Randomness::insecure_from_number(1))?;
                believed(context, &fresh, dealt_log2_noise(context.params()))?
            }
        };
        Ok(Self { secret, randomness, sum, alpha })
    }
}

fn rehearse_on<B: Backend>(
    context: &Arc<Context<B>>,
    request: &Request,
    matrices: &MatrixPlan,
) -> Result<Option<Placement>> {
    let [_, inner, _] = matrices.shape();
    let narrow = MatrixPlan::new(*matrices.packing(), [1, inner, 1], 1, matrices.grid())?;
    let choices = MatrixChoices::mixed(request.window);
    let Stage { secret, mut randomness, sum, alpha } = Stage::set(context, request)?;
    let product = product_level(context, &narrow, secret.id(), [&sum, &sum])?;
    let keys = narrow.generate_keys(context, &secret, &choices, product, &mut randomness)?;
    let evaluator = Evaluator::new(context, Some(Arc::new(keys)));
    let copies = |count: usize| (0..count).map(|_| sum.duplicate(context)).collect::<synchromesh::Result<Vec<_>>>();
    let [_, blocks, _] = narrow.blocks();
    let (a, b) = (copies(blocks)?, copies(blocks)?);
    let factors = Factors { a: &a, b: &b, alpha: &alpha, macs: [true; 2] };
    let made = multiply(&evaluator, &narrow, &choices, &factors, product)?;
    place(&evaluator, request, &made, product)
}

/// Products slot by slot, at this level.
fn rehearse_slots<B: Backend>(context: &Arc<Context<B>>, request: &Request, level: usize) -> Result<Option<Placement>> {
    let Stage { secret, mut randomness, sum, alpha } = Stage::set(context, request)?;
    let params = context.params();
    let part = params.plans().needed(params.rlwe(), level)?;
    let keys = EvaluationKeys::generate_parts(context.rlwe(), &secret, [(Source::Square, part)], &mut randomness)?;
    let evaluator = Evaluator::new(context, Some(Arc::new(keys)));
    let made = multiply_slots(&evaluator, &[sum], &[[0, 0]], &alpha, level)?;
    place(&evaluator, request, &made, level)
}

/// The lowest level at which masks fit on top of all that is decrypted.
fn place<B: Backend>(
    evaluator: &Evaluator<B>,
    request: &Request,
    made: &Products<B>,
    product: usize,
) -> Result<Option<Placement>> {
    let params = evaluator.context().params();
    let top = made.all().map(|x| x.level()).min().unwrap_or(0);
    'levels: for decryption in 0..=top {
        let mut value_bits = f64::NEG_INFINITY;
        for x in made.all() {
            match evaluator.mod_switch_to(x, decryption) {
                Ok(lowered) => value_bits = value_bits.max(log2_value(params, &lowered)),
                Err(error) if too_small(&error) => continue 'levels,
                Err(error) => return Err(error.into()),
            }
        }
        let hidden = request.statistical_security + request.log2_decryptions + params.log_n();
        let mask_bits = (value_bits + f64::from(hidden)).ceil() as u32;
        let masks = f64::from(mask_bits) - 1.0 + (request.parties as f64).log2();
        if log2_add(masks, value_bits) < params.log2_modulus(decryption)? - 1.001 {
            return Ok(Some(Placement { product, decryption, value_bits, mask_bits }));
        }
    }
    Ok(None)
}

/// log2 of a bound on |m + t e|, with m in (-t/2, t/2).
pub(crate) fn log2_value<B: Backend>(params: &Params, x: &Ciphertext<B>) -> f64 {
    let error = x.noise().bound(params.log_n(), params.failure_limit().log2_failure());
    synchromesh::exact::log2_biguint(params.t().value()) + log2_add(-1.0, error)
}
