//! The sign of every slot of a CKKS ciphertext outside a gap, at a plan for it: its depth, its time, what it is certified to
//! be off by, and what it is off by.

use std::sync::Arc;

use serde::Serialize;
use synchromesh::circuits::functions::{Function, FunctionName};
use synchromesh::ckks::{Ckks, Evaluator, Rotations};
use synchromesh::plan::{Description, SchemeName};
use synchromesh_ring::isa::Isa;
use synchromesh_rlwe::{Randomness, Security};

use crate::Error;
use crate::timing::brief_median_seconds;

/// What to measure; see the command `bench sign`.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// log2 of the least degree.
    pub log_n: u32,
    /// Arguments from 2^-gap_bits on are decided.
    pub gap_bits: u32,
    /// To within 2^-bits.
    pub bits: u32,
    /// What the plan is to withstand.
    pub security: Security,
}

/// What `bench sign` reports.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// log2 of the degree.
    pub log_n: u32,
    /// Bits of the ciphertext primes.
    pub log_q: u32,
    /// Bits of all primes of a key.
    pub log_qp: u32,
    /// Estimated security.
    pub security_bits: f64,
    /// Degrees of the polynomials.
    pub degrees: Vec<usize>,
    /// Levels that they take.
    pub depth: usize,
    /// Products of ciphertexts.
    pub products: usize,
    /// What every result outside the gap is certified to be off by at most.
    pub certified: f64,
    /// The largest distance of a slot outside the gap.
    pub worst: f64,
    /// Instruction set.
    pub isa: &'static str,
    /// Median milliseconds.
    pub median_ms: f64,
}

/// Arguments outside the gap, of both signs, as many near it as near 1 by their logarithms.
fn arguments(count: usize, gap: f64) -> Vec<f64> {
    let at = |i: usize| gap.powf(1.0 - i as f64 / (count - 1) as f64);
    (0..count).map(|i| if i.is_multiple_of(2) { at(i) } else { -at(i) }).collect()
}

/// Plans, encrypts as many numbers as there are slots, and measures on one thread.
///
/// # Errors
/// [`Error::Request`] for numbers out of range, or the scheme's refusal.
pub fn measure(request: &Request) -> Result<Report, Error> {
    if !(4..=17).contains(&request.log_n) || !(1..=20).contains(&request.gap_bits) || !(1..=30).contains(&request.bits)
    {
        return Err(Error::Request { reason: format!("{request:?}: degrees to 2^17, gaps to 2^-20, 30 bits") });
    }
    let (gap, tolerance) = ((-f64::from(request.gap_bits)).exp2(), (-f64::from(request.bits)).exp2());
    // The rest is for noise.
    let sign = Function::new(FunctionName::Sign, (-1.0, 1.0), 0.75 * tolerance).with_gap(gap).approximate()?;
    let shape = sign.plan::<Evaluator>();
    let description = Description {
        precision: Some(request.bits),
        min_slots: 1 << (request.log_n - 1),
        additions: 0,
        security: request.security,
        ..Description::new(SchemeName::Ckks, shape.depth)
    };
    let plan = description.plan_ckks(&[1.0], |e, x| Ok(vec![sign.evaluate(e, &[&x[0]])?]))?;
    let session = plan.open::<Ckks>()?;
    let context = session.context();
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = session.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &Rotations::default(), &mut randomness)?;
    let evaluator = Evaluator::new(context, Some(Arc::new(keys)));
    let numbers = arguments(plan.slots, gap);
    let x = context.encrypt(&public, &context.encode(&numbers)?, &mut randomness)?;
    let result = sign.evaluate(&evaluator, &[&x])?;
    let values = context.decode(&context.decrypt(&secret, &result)?)?;
    let off = values.iter().zip(&numbers).map(|(value, x)| (value - x.signum()).abs());
    let seconds = brief_median_seconds(|| sign.evaluate(&evaluator, &[&x]))?;
    Ok(Report {
        log_n: plan.log_n,
        log_q: plan.q_bits.iter().sum(),
        log_qp: plan.log_qp,
        security_bits: plan.security_bits,
        degrees: sign.degrees(),
        depth: shape.depth,
        products: shape.products,
        certified: context.error_bound(&result),
        worst: off.fold(0.0, f64::max),
        isa: Isa::detect().map_or("unknown", Isa::name),
        median_ms: seconds * 1e3,
    })
}
