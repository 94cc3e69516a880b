//! One operation of a scheme at given degree and depth.
//!
//! CKKS at (2^15, depth 12) is q = 55 + 12 x 45 bits, P = 5 x 48 bits; BFV and BGV at (2^14, depth 5) are q = 6 x 50
//! bits, P = 2 x 50 bits; both with three digits: the sets at which other libraries are measured. Other degrees and
//! depths follow the same pattern. CKKS runs in manual mode, so that a product and its rescale are two operations.

pub mod bfv;
pub mod bgv;

use std::sync::Arc;

use serde::Serialize;
use synchromesh::ckks;
use synchromesh::exact::{self, Scheme as Exact};
use synchromesh::plan::SchemeName;
use synchromesh_ring::isa::Isa;
use synchromesh_rlwe::{Params, Randomness, Security};

use crate::Error;
use crate::device::{Device, Measured, on_device};
use crate::timing::median_seconds;

/// Digits of a key switch, if there are as many primes.
const OMEGA: usize = 3;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Encryption of an encoded message under the public key.
    Encrypt,
    /// Decryption down to the values, decoding included.
    Decrypt,
    /// Sum of two ciphertexts.
    Add,
    /// Product and relinearisation.
    Mul,
    /// Product in three components.
    MulNorelin,
    /// Product, relinearisation and rescale (CKKS).
    MulRescale,
    /// Rotation by one slot.
    Rotate,
    /// Rescale of a product (CKKS) or modulus switch of a fresh ciphertext.
    Rescale,
}

/// What to measure; see the command `bench scheme`.
#[derive(Debug, Clone)]
pub struct Request {
    /// The scheme.
    pub scheme: SchemeName,
    /// log2 of the degree.
    pub log_n: u32,
    /// Levels above the lowest, one prime each.
    pub depth: usize,
    /// Widths of the ciphertext primes of BFV and BGV, the one that stays longest first; none: 50 bits each.
    pub q_bits: Option<Vec<u32>>,
    /// Widths of their special primes; none: primes of 50 bits as long together as the longest digit.
    pub p_bits: Option<Vec<u32>>,
    /// Their digits of a key switch; none: 3.
    pub omega: Option<usize>,
    /// Plaintext modulus of BFV and BGV; none: 65537.
    pub t: Option<String>,
    /// Limbs of the operands, when fewer than all.
    pub limbs: Option<usize>,
    /// The operation.
    pub op: Op,
    /// The way of multiplying, see [`bfv::names`] and [`bgv::names`]; none: the default.
    pub variant: Option<String>,
    /// Which of products one after another: operands of BFV and BGV have been squared one time fewer. 1: fresh ones.
    pub product: usize,
    /// Operands, or pairs of them, that one run takes: one after another on the CPU, in one launch a step elsewhere.
    pub batch: usize,
    /// Where; other devices than the CPU are for CKKS, and for what copies nothing to or from them.
    pub device: Device,
}

impl Request {
    /// On fresh ciphertexts at the default parameters.
    #[must_use]
    pub const fn new(scheme: SchemeName, log_n: u32, depth: usize, op: Op) -> Self {
        Self {
            scheme,
            log_n,
            depth,
            q_bits: None,
            p_bits: None,
            omega: None,
            t: None,
            limbs: None,
            op,
            variant: None,
            product: 1,
            batch: 1,
            device: Device::Cpu,
        }
    }
}

/// What `bench scheme` reports.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The scheme.
    pub scheme: SchemeName,
    /// The operation.
    pub op: Op,
    /// How products are computed; `new` is ePrint 2021/204, Algorithm 2. `lazy` is the time of one of the products of a
    /// sum.
    pub variant: Option<&'static str>,
    /// log2 of the degree.
    pub log_n: u32,
    /// log2 of the product of the ciphertext primes, rounded.
    pub log_q: u32,
    /// Bits of all primes of a key.
    pub log_qp: u32,
    /// Widths of the ciphertext primes.
    pub q_bits: Vec<u32>,
    /// Widths of the special primes.
    pub p_bits: Vec<u32>,
    /// Digits of a key switch.
    pub omega: usize,
    /// Limbs of the operands. For a product at a lower level than theirs: the limbs it is computed with.
    pub limbs: usize,
    /// Which of products one after another.
    pub product: usize,
    /// Estimated security.
    pub security_bits: f64,
    /// Instruction set.
    pub isa: &'static str,
    /// Device.
    pub device: String,
    /// Operands, or pairs of them, of one run.
    pub batch: usize,
    /// Launches of one run, on a device that has launches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launches: Option<usize>,
    /// Median milliseconds of the batch.
    pub median_ms: f64,
    /// The same by the device's own clock, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_ms: Option<f64>,
}

/// Measures the operation on one thread.
///
/// # Errors
/// [`Error`] for parameters that cannot be built, or operands that the scheme refuses.
pub fn measure(request: &Request) -> Result<Report, Error> {
    if request.depth > 100 {
        return Err(Error::Request { reason: format!("depth {} is above 100", request.depth) });
    }
    if let Some(bits) = request.q_bits.as_ref().filter(|bits| bits.is_empty() || bits.len() > 101) {
        return Err(Error::Request {
            reason: format!("{} ciphertext primes; from 1 to 101 can be measured", bits.len()),
        });
    }
    if request.batch == 0 {
        return Err(Error::Request { reason: "a batch of 0".to_owned() });
    }
    if request.scheme != SchemeName::Ckks && (request.device != Device::Cpu || request.batch != 1) {
        return Err(Error::Request { reason: "batches and other devices than the CPU are for ckks".to_owned() });
    }
    match request.scheme {
        SchemeName::Bfv => bfv::measure(request),
        SchemeName::Bgv => bgv::measure(request),
        SchemeName::Ckks if request.variant.is_some() => {
            Err(Error::Request { reason: "--variant is for bfv and bgv".to_owned() })
        }
        SchemeName::Ckks => on_device!(request.device, B => measure_ckks::<B>(request)),
    }
}

/// A ciphertext on this machine's CPU.
type Ct<S> = exact::Ciphertext<S>;
/// How an evaluator is set up.
type SetUp<'a, S> = dyn Fn(exact::Evaluator<S>) -> exact::Evaluator<S> + 'a;
/// What is done to a fresh operand first.
type Prepare<'a, S> = dyn Fn(&exact::Evaluator<S>, Ct<S>) -> synchromesh::Result<Ct<S>> + 'a;
/// The operation that is measured as a product, relinearised or not.
type Product<'a, S> = dyn Fn(&exact::Evaluator<S>, &Ct<S>, &Ct<S>, bool) -> synchromesh::Result<Ct<S>> + 'a;

/// A way of multiplying: how the evaluator is set up, what operands are like, what a product is.
struct Way<'a, S: Exact> {
    name: Option<&'static str>,
    set_up: &'a SetUp<'a, S>,
    operand: &'a Prepare<'a, S>,
    product: &'a Product<'a, S>,
    /// Products that one call of `product` computes.
    products: usize,
}

impl<S: Exact> Way<'_, S> {
    /// As the evaluator does it.
    fn plain() -> Self {
        Self {
            name: None,
            set_up: &|evaluator| evaluator,
            operand: &|_, x| Ok(x),
            product: &|evaluator, x, y, relinearise| {
                if relinearise { evaluator.mul(x, y) } else { evaluator.mul_no_relin(x, y) }
            },
            products: 1,
        }
    }
}

/// Widths of special primes at least as long as the longest digit of `q_bits`, of at most `width` bits.
fn special(q_bits: &[u32], omega: usize, width: u32) -> Vec<u32> {
    let longest = q_bits.chunks(q_bits.len().div_ceil(omega)).map(|digit| digit.iter().sum::<u32>()).max();
    vec![width; longest.unwrap_or(width).div_ceil(width) as usize]
}

/// The level whose ciphertexts have `limbs` limbs, one prime a level.
fn level(limbs: Option<usize>, primes: usize) -> Result<usize, Error> {
    let limbs = limbs.unwrap_or(primes);
    if (1..=primes).contains(&limbs) {
        return Ok(limbs - 1);
    }
    Err(Error::Request { reason: format!("--limbs {limbs} is outside 1..={primes}") })
}

fn report(request: &Request, params: &Params, omega: usize, variant: Option<&'static str>, seconds: f64) -> Report {
    let bits = |set: &synchromesh_ring::IndexSet| set.iter().map(|i| params.ring().modulus(i).bits()).collect();
    let isa = Isa::detect().map_or("unknown", Isa::name);
    Report {
        scheme: request.scheme,
        op: request.op,
        variant,
        log_n: request.log_n,
        log_q: params.ring().log2(params.q()).round() as u32,
        log_qp: params.log_qp(),
        q_bits: bits(params.q()),
        p_bits: bits(params.p()),
        omega,
        limbs: request.limbs.unwrap_or(params.q().len()),
        product: request.product,
        security_bits: params.security_bits(),
        isa,
        device: format!("cpu/{isa}"),
        batch: request.batch,
        launches: None,
        median_ms: seconds * 1e3,
        device_ms: None,
    }
}

/// Runs `operation` again and again; its result is dropped.
fn time<T>(mut operation: impl FnMut() -> synchromesh::Result<T>) -> Result<f64, Error> {
    Ok(median_seconds(|| operation().map(|result| drop(std::hint::black_box(result))))?)
}

/// t, decimal or hexadecimal.
fn plain_modulus(request: &Request) -> String {
    request.t.clone().unwrap_or_else(|| "65537".to_owned())
}

/// The parameters of a request, with the largest primes of their widths.
fn literal(request: &Request) -> exact::ParamsLiteral {
    let q_bits = request.q_bits.clone().unwrap_or_else(|| vec![50; request.depth + 1]);
    let omega = request.omega.unwrap_or(OMEGA).clamp(1, q_bits.len().max(1));
    let width = q_bits.iter().copied().max().unwrap_or(50);
    exact::ParamsLiteral {
        log_n: request.log_n,
        t: plain_modulus(request),
        p_bits: request.p_bits.clone().unwrap_or_else(|| special(&q_bits, omega, width)),
        q_bits,
        level_limbs: vec![],
        schedule: Default::default(),
        omega,
        security: Security::Insecure,
        primes: None,
    }
}

fn measure_exact<S: Exact>(request: &Request, way: &Way<'_, S>) -> Result<Report, Error> {
    let params = exact::Params::<S>::new(literal(request))?;
    run(request, &exact::Context::<S>::new(params)?, way)
}

/// Measures in a context made for the request.
fn run<S: Exact>(request: &Request, context: &Arc<exact::Context<S>>, way: &Way<'_, S>) -> Result<Report, Error> {
    let omega = context.params().literal().omega;
    let level = match request.limbs {
        None => context.params().top_level(),
        limbs => level(limbs, context.params().rlwe().q().len())?,
    };
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let slots = context.slot_encoder().is_ok();
    let rotations = if slots { exact::Rotations::by([1]) } else { exact::Rotations::none() };
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness)?;
    let evaluator = (way.set_up)(exact::Evaluator::new(context, Some(Arc::new(keys))));
    let message: Vec<i64> = (0..context.params().n() as i64).map(|i| i * i % 251 - 125).collect();
    let message = context.encode_coefficients(&message)?;
    let mut operand = || -> synchromesh::Result<Ct<S>> {
        let mut x = (way.operand)(&evaluator, context.encrypt_at(&public, &message, level, &mut randomness)?)?;
        for _ in 1..request.product {
            x = evaluator.square(&x)?;
        }
        Ok(x)
    };
    let (x, y) = (operand()?, operand()?);
    let per_product = |seconds: f64| seconds / way.products as f64;
    let seconds = match request.op {
        Op::Encrypt => time(|| context.encrypt_at(&public, &message, level, &mut randomness)),
        Op::Decrypt if slots => time(|| context.decode(&context.decrypt(&secret, &x)?)),
        Op::Decrypt => time(|| context.decode_coefficients(&context.decrypt(&secret, &x)?)),
        Op::Add => time(|| evaluator.add(&x, &y)),
        Op::Mul => time(|| (way.product)(&evaluator, &x, &y, true)).map(per_product),
        Op::MulNorelin => time(|| (way.product)(&evaluator, &x, &y, false)).map(per_product),
        Op::Rotate => time(|| evaluator.rotate_rows(&x, 1)),
        Op::Rescale => time(|| evaluator.mod_switch(&x)),
        Op::MulRescale => return Err(Error::Request { reason: "mul-rescale is for ckks".to_owned() }),
    }?;
    Ok(report(request, context.params().rlwe(), omega, way.name, seconds))
}

fn ckks_params(request: &Request) -> Result<(ckks::Params, usize), Error> {
    if let Some(t) = &request.t {
        return Err(Error::Request { reason: format!("--t {t} is for bfv and bgv: ckks has no plaintext modulus") });
    }
    if request.q_bits.is_some() || request.p_bits.is_some() || request.omega.is_some() || request.product != 1 {
        return Err(Error::Request {
            reason: "--q-bits, --p-bits, --omega and --product are for bfv and bgv".to_owned(),
        });
    }
    let literal = ckks_literal(request.log_n, request.depth, OMEGA);
    let omega = literal.omega;
    Ok((ckks::Params::new(literal)?, omega))
}

/// CKKS with levels of 45 bits and at most `omega` digits.
pub(crate) fn ckks_literal(log_n: u32, depth: usize, omega: usize) -> ckks::ParamsLiteral {
    let mut q_bits = vec![55];
    q_bits.resize(depth + 1, 45);
    let omega = omega.min(q_bits.len());
    ckks::ParamsLiteral {
        log_n,
        log_scale: 45,
        p_bits: special(&q_bits, omega, 48),
        q_bits,
        level_limbs: vec![],
        schedule: Default::default(),
        omega,
        log_scales: vec![],
        mode: ckks::Mode::Manual,
        security: Security::Insecure,
        primes: None,
    }
}

fn measure_ckks<B: Measured>(request: &Request) -> Result<Report, Error> {
    let (params, omega) = ckks_params(request)?;
    let level = level(request.limbs, params.rlwe().q().len())?;
    let backend = B::open(params.rlwe().ring())?;
    let context = ckks::Context::with_backend(params, backend)?;
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &ckks::Rotations::by([1]), &mut randomness)?;
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
    let message: Vec<f64> = (0..context.params().slots()).map(|i| (i % 251) as f64 / 251.0).collect();
    let message = context.encode(&message)?;
    let mut encrypted = || -> synchromesh::Result<Vec<_>> {
        (0..request.batch).map(|_| context.encrypt_at(&public, &message, level, &mut randomness)).collect()
    };
    let (x, y) = (encrypted()?, encrypted()?);
    let (backend, batch) = (context.rlwe().backend(), request.batch);
    let times = match request.op {
        Op::Encrypt | Op::Decrypt if !B::COPIES => {
            let reason = "encrypt and decrypt copy to and from the device: they are measured on the CPU".to_owned();
            return Err(Error::Request { reason });
        }
        Op::Encrypt => {
            let (on, seed) = (Arc::clone(&context), std::cell::RefCell::new(randomness));
            backend.time(batch, move |_| on.encrypt_at(&public, &message, level, &mut seed.borrow_mut()))
        }
        Op::Decrypt => {
            let on = Arc::clone(&context);
            backend.time(batch, move |i| on.decode(&on.decrypt(&secret, &x[i])?))
        }
        Op::Add => backend.time(batch, move |i| evaluator.add(&x[i], &y[i])),
        Op::Mul => backend.time(batch, move |i| evaluator.mul(&x[i], &y[i])),
        Op::MulNorelin => backend.time(batch, move |i| evaluator.mul_no_relin(&x[i], &y[i])),
        Op::MulRescale => backend.time(batch, move |i| evaluator.rescale(&evaluator.mul(&x[i], &y[i])?)),
        Op::Rotate => backend.time(batch, move |i| evaluator.rotate(&x[i], 1)),
        Op::Rescale => {
            let products: synchromesh::Result<Vec<_>> = x.iter().zip(&y).map(|(x, y)| evaluator.mul(x, y)).collect();
            let products = products?;
            backend.time(batch, move |i| evaluator.rescale(&products[i]))
        }
    }?;
    Ok(Report {
        device: backend.name(),
        launches: times.launches,
        device_ms: times.device_seconds.map(|seconds| seconds * 1e3),
        ..report(request, context.params().rlwe(), omega, None, times.seconds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_primes_are_those_that_other_libraries_are_measured_with() {
        let mut ckks = vec![55];
        ckks.resize(13, 45);
        assert_eq!(special(&ckks, 3, 48), [48; 5]);
        assert_eq!(special(&[50; 6], 3, 50), [50; 2]);
        assert_eq!(special(&[50], 1, 50), [50]);
    }

    #[test]
    fn limbs_beyond_the_chain_are_refused() {
        assert_eq!((level(None, 6).unwrap(), level(Some(1), 6).unwrap()), (5, 0));
        assert_eq!(level(Some(7), 6).unwrap_err().kind(), "request");
        assert_eq!(level(Some(0), 6).unwrap_err().kind(), "request");
    }
}
