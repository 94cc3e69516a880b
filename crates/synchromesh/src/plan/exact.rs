//! The search for BFV and BGV: the fewest bits a level at each degree, then the first degree that is secure.

use std::sync::Arc;

use synchromesh_rlwe::{Randomness, Security};

use super::shape::{Shape, bit_limit, explain_digits, explain_raise, limit_text, split};
use super::{Description, Found, SchemeName, SchemeParams, dry, smallest, too_small};
use crate::cost::Profile;
use crate::error::{Error, Result};
use crate::exact::{Context, Evaluator, Params, ParamsLiteral, PrimeLists, Rotations, Scheme};
use crate::plain_modulus::PlainModulus;

/// Most bits one level may take.
const MOST_LEVEL_BITS: u32 = 700;

pub(super) fn search<S: Scheme>(description: &Description, profile: Option<&Profile>) -> Result<Found> {
    let t: PlainModulus = description.t.as_deref().unwrap_or("65537").parse()?;
    let mut nearest = String::new();
    // A product multiplies errors by t at the least.
    let mut floor = description.depth as u32 * t.bits();
    for log_n in 11..=17 {
        let slots = if t.supports_slots(log_n) { 1usize << log_n } else { 0 };
        if description.min_slots > 1 << log_n {
            continue;
        }
        if slots == 0 && (!description.rotations.is_empty() || description.swap) {
            nearest += &format!("; t = {t} has no slots to rotate at N = 2^{log_n}");
            continue;
        }
        // What the degree below needed, this one needs too.
        if floor > bit_limit(log_n, description.security) {
            nearest =
                format!("N = 2^{log_n} allows {}, this needs {floor} or more", limit_text(log_n, description.security));
            continue;
        }
        let Some(shape) = shape::<S>(description, &t, log_n)? else {
            nearest = format!("at N = 2^{log_n} no chain of up to {MOST_LEVEL_BITS} bits a level decrypts");
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
            let literal = literal(description, &t, log_n, &shape, *omega, p_bits);
            let params = match Params::<S>::new(literal.clone()) {
                Err(e) if too_small(&e) => continue,
                other => other?,
            };
            let keys = super::key_bytes(params.rlwe(), *omega, description.keys());
            if description.max_key_bytes.is_some_and(|most| keys > most) {
                nearest = format!("N = 2^{log_n} with {omega} digits needs {keys} bytes of keys");
                continue;
            }
            let Some(budget) = judge(description, &params)? else { continue };
            let mut explain = vec![format!(
                "N = 2^{log_n}: log QP = {} of at most {} bits; {}",
                params.rlwe().log_qp(),
                limit_text(log_n, description.security),
                if nearest.is_empty() { "no smaller degree is offered".to_owned() } else { nearest.clone() }
            )];
            explain.push(format!(
                "{} levels: level 0 has {:?} bits, each multiplication takes {:?} bits; {budget:.1} bits of noise \
                 budget remain at the end, at failure probability 2^-128",
                description.depth + 1,
                shape.level(0),
                shape.step(),
            ));
            explain.push(explain_digits(&digits[index..], profile));
            explain.extend(raise.map(|raise| explain_raise(log_n, digits[0].0, raise)));
            let (rlwe, switch) = (params.rlwe().clone(), params.plan().clone());
            let listed = ParamsLiteral { primes: Some(listed(&params)), ..literal };
            let params = match description.scheme {
                SchemeName::Bfv => SchemeParams::Bfv(listed),
                _ => SchemeParams::Bgv(listed),
            };
            return Ok(Found { params, rlwe, switch, slots, explain });
        }
    }
    Err(Error::params(format!("no parameters up to N = 2^17 fit this description: {nearest}")))
}

fn listed<S: Scheme>(params: &Params<S>) -> PrimeLists {
    let literal = params.rlwe().literal();
    PrimeLists { q: literal.q.clone(), p: literal.p.clone(), aux: literal.aux.clone() }
}

fn literal(
    description: &Description,
    t: &PlainModulus,
    log_n: u32,
    shape: &Shape,
    omega: usize,
    p_bits: &[u32],
) -> ParamsLiteral {
    ParamsLiteral {
        log_n,
        t: t.to_string(),
        q_bits: shape.q_bits.clone(),
        p_bits: p_bits.to_vec(),
        level_limbs: shape.level_limbs.clone(),
        schedule: shape.schedule.clone(),
        omega,
        security: description.security,
        primes: None,
    }
}

/// The chain with the fewest bits that survives the circuit at this degree, security aside.
fn shape<S: Scheme>(description: &Description, t: &PlainModulus, log_n: u32) -> Result<Option<Shape>> {
    let (least, width) = ((log_n + 8).max(20), description.width());
    let fits = |base: u32, level: u32| -> Result<bool> {
        let shape = Shape::of(description, &split(base, width), &split(level, width));
        let omega = shape.q_bits.len().min(3);
        let p_bits = shape.special(omega);
        let open = Description { security: Security::Insecure, ..description.clone() };
        match Params::<S>::new(literal(&open, t, log_n, &shape, omega, &p_bits)) {
            Ok(params) => Ok(judge(&open, &params)?.is_some()),
            Err(Error::Primes(_)) => Ok(false),
            Err(e) if too_small(&e) => Ok(false),
            Err(e) => Err(e),
        }
    };
    let most = (t.bits() + 4 * log_n + 60).min(MOST_LEVEL_BITS);
    // A wide level 0 saves bits on every level and a narrow one saves its own: try three.
    let mut best: Option<Shape> = None;
    for slack in [log_n + 24, 2 * log_n + 40, 3 * log_n + 60] {
        let widest = t.bits() + slack;
        let level = if description.depth == 0 { Some(least) } else { smallest(least, most, |w| fits(widest, w))? };
        let Some(level) = level else { continue };
        let Some(base) = smallest(least, widest, |b| fits(b, level))? else { continue };
        let shape = Shape::of(description, &split(base, width), &split(level, width));
        let bits = |shape: &Shape| shape.q_bits.iter().sum::<u32>();
        if best.as_ref().is_none_or(|b| bits(&shape) < bits(b)) {
            best = Some(shape);
        }
    }
    Ok(best)
}

/// Runs the circuit without data; the noise budget left, or none when a certificate fails.
fn judge<S: Scheme>(description: &Description, params: &Params<S>) -> Result<Option<f64>> {
    match run(description, params) {
        Ok(budget) => Ok((budget > 0.0).then_some(budget)),
        Err(e) if too_small(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

fn run<S: Scheme>(description: &Description, params: &Params<S>) -> Result<f64> {
    let context = Context::<S, _>::with_backend(params.clone(), dry(params.rlwe()))?;
    let mut randomness = Randomness::insecure_from_number(0);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let rotates = !description.rotations.is_empty();
    let rotations = if rotates { Rotations::rows([1]) } else { Rotations::none() };
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness)?;
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    let message = context.encode_coefficients(&[1i64][..])?;
    let mut x = context.encrypt(&public, &message, &mut randomness)?;
    for step in 0..=description.depth {
        let term = if rotates { evaluator.rotate_rows(&x, 1)? } else { evaluator.neg(&x)? };
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
    context.noise_budget(&x)
}
