//! The search for CKKS: the smallest scale that keeps the precision at each degree, then the first degree secure.

use std::sync::Arc;

use synchromesh_rlwe::{Randomness, Security};

use super::shape::{Shape, bit_limit, explain_digits, explain_raise, limit_text, split, split_exactly};
use super::{Description, Found, SchemeParams, dry, smallest, too_small};
use crate::ckks::{Context, Evaluator, Mode, Params, ParamsLiteral, Primes, Rotations};
use crate::cost::Profile;
use crate::error::{Error, Result};

pub(super) fn search(description: &Description, profile: Option<&Profile>) -> Result<Found> {
    let precision = description.precision.unwrap_or(20);
    if !(1..=80).contains(&precision) {
        return Err(Error::params(format!("a precision of {precision} bits is outside 1 to 80")));
    }
    let mut nearest = String::new();
    let mut floor = 0;
    for log_n in 11..=17u32 {
        if description.min_slots > 1 << (log_n - 1) {
            continue;
        }
        // What the degree below needed, this one needs too.
        if floor > bit_limit(log_n, description.security) {
            nearest =
                format!("N = 2^{log_n} allows {}, this needs {floor} or more", limit_text(log_n, description.security));
            continue;
        }
        let Some((log_scale, shape)) = shape(description, precision, log_n)? else {
            nearest = format!("at N = 2^{log_n} no scale keeps {precision} bits");
            continue;
        };
        floor = shape.least_log_qp();
        let digits = shape.digits(log_n, description.security, description.max_digits, profile)?;
        if digits.is_empty() {
            nearest = format!("N = 2^{log_n} needs log QP = {} or more, above its limit", shape.least_log_qp());
            continue;
        }
        let raise = digits.first().and_then(|first| shape.raise(log_n, description.security, first));
        if let (Some(raise), Some((omega, ..))) = (raise.filter(|raise| raise.operations < 1.0), digits.first()) {
            nearest = explain_raise(log_n, *omega, raise);
            continue;
        }
        for (index, (omega, p_bits, _)) in digits.iter().enumerate() {
            let params = match Params::new(literal(description, log_n, log_scale, &shape, *omega, p_bits)) {
                Err(e) if too_small(&e) => continue,
                other => other?,
            };
            let keys = super::key_bytes(params.rlwe(), *omega, description.keys());
            if description.max_key_bytes.is_some_and(|most| keys > most) {
                nearest = format!("N = 2^{log_n} with {omega} digits needs {keys} bytes of keys");
                continue;
            }
            let Some(kept) = judge(description, &params)? else { continue };
            if kept < f64::from(precision) {
                continue;
            }
            let limit = limit_text(log_n, description.security);
            let reason = if nearest.is_empty() { "no smaller degree is offered" } else { &nearest };
            let mut explain = vec![
                format!("N = 2^{log_n}: log QP = {} of at most {limit} bits; {reason}", params.rlwe().log_qp()),
                format!(
                    "scale 2^{log_scale}: the certificate keeps {kept:.1} bits after depth {} for inputs up to 1, \
                     {precision} were asked for; each level takes {log_scale} bits, level 0 has {}",
                    description.depth,
                    shape.level(0).iter().sum::<u32>(),
                ),
                explain_digits(&digits[index..], profile),
            ];
            explain.extend(raise.map(|raise| explain_raise(log_n, digits[0].0, raise)));
            let (rlwe, switch) = (params.rlwe().clone(), params.plan().clone());
            let mut listed = params.literal().clone();
            listed.primes = Some(Primes { q: rlwe.literal().q.clone(), p: rlwe.literal().p.clone() });
            return Ok(Found { params: SchemeParams::Ckks(listed), rlwe, switch, slots: 1 << (log_n - 1), explain });
        }
    }
    Err(Error::params(format!("no parameters up to N = 2^17 fit this description: {nearest}")))
}

fn literal(
    description: &Description,
    log_n: u32,
    log_scale: u32,
    shape: &Shape,
    omega: usize,
    p_bits: &[u32],
) -> ParamsLiteral {
    ParamsLiteral {
        log_n,
        log_scale,
        q_bits: shape.q_bits.clone(),
        p_bits: p_bits.to_vec(),
        level_limbs: shape.level_limbs.clone(),
        schedule: shape.schedule.clone(),
        omega,
        mode: Mode::Auto,
        security: description.security,
        primes: None,
    }
}

/// The smallest scale, and then the smallest level 0, that keep the precision at this degree, security aside.
fn shape(description: &Description, precision: u32, log_n: u32) -> Result<Option<(u32, Shape)>> {
    let open = Description { security: Security::Insecure, ..description.clone() };
    let width = description.width();
    let chain = |log_scale: u32, above: u32| {
        // Primes of a level lie on both sides of a power of two: one bit less keeps them below the width.
        let (base, level) = (split(log_scale + above, width), split_exactly(log_scale, width - 1));
        Shape::of(description, &base, &level)
    };
    let fits = |log_scale: u32, above: u32| -> Result<bool> {
        let shape = chain(log_scale, above);
        let omega = shape.q_bits.len().min(3);
        let p_bits = shape.special(omega);
        match Params::new(literal(&open, log_n, log_scale, &shape, omega, &p_bits)) {
            Ok(params) => Ok(judge(&open, &params)?.is_some_and(|kept| kept >= f64::from(precision))),
            Err(Error::Primes(_)) => Ok(false),
            Err(e) if too_small(&e) => Ok(false),
            Err(e) => Err(e),
        }
    };
    // Sums square at each multiplication: room for their growth above the scale.
    let growth = (description.additions as f64 + 1.0).log2() * 2f64.powi(description.depth.min(20) as i32 + 1);
    let roomy = 12 + growth.ceil().min(60.0) as u32;
    let least = (precision + 8).max(log_n + 9).max(25);
    let Some(log_scale) = smallest(least, 100, |s| fits(s, roomy))? else { return Ok(None) };
    let above = smallest(2, roomy, |m| fits(log_scale, m))?.unwrap_or(roomy);
    Ok(Some((log_scale, chain(log_scale, above))))
}

/// Runs the circuit without data; bits kept of an absolute error, or none when a certificate fails.
fn judge(description: &Description, params: &Params) -> Result<Option<f64>> {
    match run(description, params) {
        Ok(kept) => Ok(Some(kept)),
        Err(e) if too_small(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

fn run(description: &Description, params: &Params) -> Result<f64> {
    let context = Context::with_backend(params.clone(), dry(params.rlwe()))?;
    let mut randomness = Randomness::insecure_from_number(0);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let rotates = !description.rotations.is_empty();
    let rotations = if rotates { Rotations::by([1]) } else { Rotations::none() };
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness)?;
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    let message = context.encode(&[1.0])?;
    let mut x = context.encrypt(&public, &message, &mut randomness)?;
    for step in 0..=description.depth {
        let term = if rotates { evaluator.rotate(&x, 1)? } else { evaluator.neg(&x)? };
        let mut sum = evaluator.neg(&x)?;
        for _ in 0..description.additions {
            sum = evaluator.add(&sum, &term)?;
        }
        x = match step < description.depth {
            true if description.additions > 0 => evaluator.mul(&sum, &sum)?,
            true => evaluator.mul(&term, &term)?,
            false => sum,
        };
    }
    Ok(-context.error_bound(&x).log2())
}
