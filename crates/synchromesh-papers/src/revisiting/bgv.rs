//! BGV's circuits at the parameters of the static rule (ePrint 2021/204, section 4).

use std::sync::Arc;

use num_bigint::{BigInt, BigUint, Sign};
use synchromesh::bgv::{Ciphertext, Context, Evaluator, Management, Params, Plaintext, Rotations};
use synchromesh::exact::log2_biguint;
use synchromesh::plan::static_bgv::{NoiseModel, StaticChain, StaticRule};
use synchromesh_rlwe::{Randomness, SecretKey, Security};

use super::{Circuit, Measured, Products, Published, noise};
use synchromesh_bench::Error;
use synchromesh_bench::timing::{brief_median_seconds, median};

/// The paper's noise model: delta = 2 sqrt(N).
const PAPER_MODEL: NoiseModel = NoiseModel::Heuristic { expansion: 2.0 };

fn rule(published: &Published, model: NoiseModel) -> StaticRule {
    let &Published { k, t, digits: omega, .. } = published;
    let (depth, additions) = match published.circuit {
        Circuit::Tree => (k, 0),
        // The powers above k/2 are added at the last level, each times up to 15.
        Circuit::Polynomial => {
            let weight = if t == 2 { 1 } else { 15 };
            (k.next_power_of_two().trailing_zeros() as usize, weight * k.div_ceil(2))
        }
        Circuit::InnerProduct => (1, k),
    };
    StaticRule { additions, omega, model, ..StaticRule::new(t.to_string(), depth) }
}

/// One digit a prime where the cell says so.
fn every_prime(rule: StaticRule, limbs: usize) -> StaticRule {
    StaticRule { omega: Some(rule.omega.unwrap_or(limbs)), ..rule }
}

/// The chain that the paper's noise model gives for a cell at the paper's degree.
///
/// # Errors
/// [`Error::Scheme`] for a plaintext modulus or depth outside the rule's range.
pub fn printed_chain(published: &Published) -> Result<StaticChain, Error> {
    Ok(every_prime(rule(published, PAPER_MODEL), published.k + 2).chain(published.log_n)?)
}

/// The cell at the static rule's parameters, and their security: by the paper's model at its degree, where every
/// ciphertext is said to have no error, or by the certified one where a certificate refuses even that; none where it
/// refuses that, too.
pub(super) fn measure(published: &Published) -> Result<(Option<Measured>, f64), Error> {
    let paper = StaticRule { security: Security::Insecure, ..every_prime(rule(published, PAPER_MODEL), 1 << 10) };
    let plan = paper.plan_at(published.log_n)?;
    let security_bits = plan.params.rlwe().security_bits();
    match repeated(&plan.params, published, true) {
        Err(Error::Scheme(error)) if error.kind() == "noise" => {}
        other => return Ok((Some(other?), security_bits)),
    }
    let plan = every_prime(rule(published, NoiseModel::Certified), 1 << 10).plan()?;
    let security_bits = plan.params.rlwe().security_bits();
    if plan.verdict.is_err() {
        return Ok((None, security_bits));
    }
    Ok((Some(repeated(&plan.params, published, false)?), security_bits))
}

/// Runs on different inputs, coefficients and keys; ciphertexts are said to have no error where it `claims` so.
fn repeated(params: &Params, published: &Published, claims: bool) -> Result<Measured, Error> {
    let measure = |draw: usize| {
        let run = Run::new(params.clone(), published.circuit, published.k, published.t, draw)?;
        Run { claims, ..run }.measure()
    };
    let mut all = vec![measure(0)?];
    while all.len() < super::runs(all[0].ours_s) {
        all.push(measure(all.len())?);
    }
    Ok(Measured {
        ours_log_e: median(all.iter().map(|run| run.ours_log_e).collect()),
        ours_s: all.iter().map(|run| run.ours_s).fold(f64::INFINITY, f64::min),
        correct: all.iter().all(|run| run.correct),
        ..all[0]
    })
}

/// See [`super::products`].
pub(super) fn products(log_n: u32, t: u64, depth: usize) -> Result<Products, Error> {
    let rule = StaticRule { omega: Some(3), security: Security::Insecure, ..StaticRule::new(t.to_string(), depth) };
    let run = Run::new(rule.plan_at(log_n)?.params, Circuit::Tree, 1, t, 0)?;
    let mut layer = [run.inputs[0].duplicate(&run.context)?, run.inputs[1].duplicate(&run.context)?];
    let mut expected = run.expected.clone();
    let mut milliseconds = Vec::with_capacity(depth);
    for i in 0..depth {
        let e = &run.evaluator;
        let next = [e.mul(&layer[0], &layer[1])?, e.mul(&layer[1], &layer[0])?];
        milliseconds.push(1e3 * brief_median_seconds(|| e.mul(&layer[0], &layer[1]).map(drop))?);
        layer = next;
        if i > 0 {
            expected.iter_mut().for_each(|x| *x = centred(i128::from(*x) * i128::from(*x), t));
        }
    }
    if run.decoded(&run.context.decrypt(&run.secret, &layer[0])?)?[..expected.len()] != expected[..] {
        return Err(Error::Request { reason: format!("{depth} products in bgv with t = {t} decrypted wrongly") });
    }
    let params = run.context.params();
    let log_q = params.log2_modulus(params.top_level())?;
    Ok(Products { milliseconds, log_q, security_bits: params.rlwe().security_bits() })
}

/// A circuit with its inputs.
struct Run {
    context: Arc<Context>,
    secret: SecretKey,
    evaluator: Evaluator,
    circuit: Circuit,
    k: usize,
    t: u64,
    inputs: Vec<Ciphertext>,
    expected: Vec<i64>,
    /// a_0, a_1, .. of a polynomial.
    coefficients: Vec<i64>,
    /// Whether ciphertexts are said to have no error.
    claims: bool,
}

impl Run {
    fn new(params: Params, circuit: Circuit, k: usize, t: u64, draw: usize) -> Result<Self, Error> {
        let context = Context::managed(params, Management::STATIC)?;
        let mut randomness = Randomness::insecure_from_number(1 + draw as u64);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?;
        let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
        let count = match circuit {
            Circuit::Tree => 1usize << k,
            Circuit::Polynomial => 1,
            Circuit::InnerProduct => 2 * k,
        };
        let mut inputs = Vec::with_capacity(count);
        // Where t has no slots, a constant polynomial.
        let width = if context.slot_encoder().is_ok() { 64 } else { 1 };
        let values = |i: usize| (0..width).map(|j| ((7 * i + 3 * j + draw) as i64 % 5) + 1).collect::<Vec<i64>>();
        for i in 0..count {
            inputs.push(context.encrypt(&public, &encode(&context, &values(i))?, &mut randomness)?);
        }
        let coefficients: Vec<i64> = (0..=k).map(|i| coefficient(i, t, draw)).collect();
        let expected = clear(circuit, t, &coefficients, &(0..count).map(values).collect::<Vec<_>>());
        Ok(Self { context, secret, evaluator, circuit, k, t, inputs, expected, coefficients, claims: false })
    }

    /// The result of an operation as the next one is to take it.
    fn taken(&self, result: synchromesh::Result<Ciphertext>) -> synchromesh::Result<Ciphertext> {
        let result = result?;
        if self.claims { noise::said(&self.context, &result, f64::NEG_INFINITY) } else { Ok(result) }
    }

    fn run(&self) -> synchromesh::Result<Ciphertext> {
        let e = &self.evaluator;
        let mul = |x: &Ciphertext, y: &Ciphertext| self.taken(e.mul(x, y));
        match self.circuit {
            Circuit::Tree => {
                let mut layer: Vec<Ciphertext> =
                    self.inputs.chunks_exact(2).map(|pair| mul(&pair[0], &pair[1])).collect::<Result<_, _>>()?;
                while layer.len() > 1 {
                    layer = layer.chunks_exact(2).map(|pair| mul(&pair[0], &pair[1])).collect::<Result<_, _>>()?;
                }
                layer.pop().ok_or(synchromesh::Error::Argument { rule: "a tree needs two inputs".to_owned() })
            }
            Circuit::Polynomial => {
                let mut powers = vec![self.inputs[0].duplicate(&self.context)?];
                for i in 2..=self.k {
                    powers.push(mul(&powers[i / 2 - 1], &powers[i - i / 2 - 1])?);
                }
                let mut sum = self.taken(e.mul_scalar(&powers[self.k - 1], self.coefficients[self.k]))?;
                for (i, power) in powers.iter().enumerate().take(self.k - 1).rev() {
                    let term = self.taken(e.mul_scalar(power, self.coefficients[i + 1]))?;
                    sum = self.taken(e.add(&sum, &term))?;
                }
                e.add_plain(&sum, &encode(&self.context, &vec![self.coefficients[0]; self.expected.len()])?)
            }
            Circuit::InnerProduct => {
                let pairs: Vec<[&Ciphertext; 2]> =
                    self.inputs.chunks_exact(2).map(|pair| [&pair[0], &pair[1]]).collect();
                e.sum_of_products(&pairs)
            }
        }
    }

    fn decoded(&self, plaintext: &Plaintext) -> synchromesh::Result<Vec<i64>> {
        match self.context.slot_encoder() {
            Ok(_) => self.context.decode(plaintext),
            Err(_) => self.context.decode_coefficients(plaintext),
        }
    }

    fn measure(&self) -> Result<Measured, Error> {
        let result = self.run()?;
        let decrypted = self.context.decrypt(&self.secret, &result)?;
        let decoded = self.decoded(&decrypted)?;
        let params = self.context.params();
        let top = params.log2_modulus(params.top_level() - 1)?;
        // As if no modulus switch had scaled it: log Q_L less the bits between the error and the modulus.
        let scale = top - params.log2_modulus(result.level())?;
        Ok(Measured {
            ours_log_n: params.log_n(),
            ours_log_q: top,
            ours_log_e: self.log_e(&result, &decrypted)? + scale,
            ours_s: brief_median_seconds(|| self.run().map(|result| drop(std::hint::black_box(result))))?,
            correct: decoded[..self.expected.len()] == self.expected[..],
        })
    }

    /// log2 of the largest (phase - f m) / t.
    fn log_e(&self, ciphertext: &Ciphertext, message: &Plaintext) -> Result<f64, Error> {
        let (phase, q) = noise::phase(&self.context, &self.secret, ciphertext)?;
        let (t, factor) = (BigInt::from(self.t), BigInt::from(ciphertext.header().value().clone()));
        let mut most = BigUint::ZERO;
        for (x, m) in phase.into_iter().zip(self.context.decode_coefficients_big(message)?) {
            let negative = &x + &x > q;
            let x = if negative { BigInt::from_biguint(Sign::Minus, &q - x) } else { BigInt::from(x) };
            let e: BigInt = (x - m * &factor) / &t;
            most = most.max(e.magnitude().clone());
        }
        Ok(log2_biguint(&most))
    }
}

/// a_i of a draw: 1 for t = 2, else from 0 to 15.
fn coefficient(i: usize, t: u64, draw: usize) -> i64 {
    if t == 2 { 1 } else { (super::mix(&mut (((draw as u64) << 32) + i as u64)) % 16) as i64 }
}

fn encode(context: &Context, values: &[i64]) -> synchromesh::Result<Plaintext> {
    if context.slot_encoder().is_ok() { context.encode(values) } else { context.encode_coefficients(values) }
}

/// x modulo t in (-t/2, t/2].
fn centred(x: i128, t: u64) -> i64 {
    let (x, t) = (x.rem_euclid(i128::from(t)), i128::from(t));
    (if 2 * x > t { x - t } else { x }) as i64
}

/// The circuit on slots, modulo t and centred.
fn clear(circuit: Circuit, t: u64, coefficients: &[i64], inputs: &[Vec<i64>]) -> Vec<i64> {
    let t = i128::from(t);
    let slot = |j: usize| -> i64 {
        let value = match circuit {
            Circuit::Tree => inputs.iter().fold(1i128, |product, x| product * i128::from(x[j]) % t),
            Circuit::Polynomial => {
                let x = i128::from(inputs[0][j]);
                coefficients.iter().rev().fold(0i128, |sum, a| (sum * x + i128::from(*a)) % t)
            }
            Circuit::InnerProduct => inputs.chunks_exact(2).map(|x| i128::from(x[0][j]) * i128::from(x[1][j])).sum(),
        };
        centred(value, t as u64)
    };
    (0..inputs[0].len()).map(slot).collect()
}
