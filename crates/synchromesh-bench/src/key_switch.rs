//! One key switch: relinearisation or rotation, any domains, folded or not, with its counted cost.

use std::sync::Arc;

use serde::Serialize;
use synchromesh_ring::isa::Isa;
use synchromesh_ring::prime::ntt_primes_excluding;
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, Counting, Cpu, IndexSet, Ntt, Poly, ViewMut};
use synchromesh_rlwe::domain::MixedPoly;
use synchromesh_rlwe::key_switch::Output;
use synchromesh_rlwe::{
    Context, Operand, Params, ParamsLiteral, PreparedKey, Randomness, SecretKey, Security, Source, SwitchKey,
    SwitchPlan, Switcher,
};

use crate::Error;
use crate::timing::median_seconds;

/// What is switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// c_2 of a product; c_0 and c_1 are added.
    Relinearize,
    /// c_1 of a rotated ciphertext; c_0 is added and both are permuted.
    Rotate,
}

/// What to measure; see the command `bench key-switch`.
#[derive(Debug, Clone)]
pub struct Request {
    /// log2 of the degree.
    pub log_n: u32,
    /// Bits of the modulus of the ciphertext being switched.
    pub log_q: u32,
    /// Bits of P; `None`: as many as the largest digit.
    pub log_p: Option<u32>,
    /// Number of digits.
    pub omega: usize,
    /// Limbs of the ciphertext when fewer than the key has.
    pub limbs: Option<usize>,
    /// Error multiple: 1 for BFV and CKKS, the plaintext modulus for BGV, in decimal.
    pub error_multiple: String,
    /// Operation.
    pub op: Op,
    /// Input in slots.
    pub input_ntt: bool,
    /// Output in slots.
    pub output_ntt: bool,
    /// Constants at run time instead of in the key.
    pub unfolded: bool,
    /// Width of the primes; `None`: 50 where the CPU has IFMA, 60 elsewhere.
    pub width: Option<u32>,
}

/// Operations per N coefficients; `bytes` are bytes moved.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CountReport {
    /// Transforms of one limb.
    pub ntt: u64,
    /// Element-wise multiplications.
    pub mul: u64,
    /// Products inside base conversions.
    pub convert_mac: u64,
    /// Products of the overflow corrections.
    pub correction: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

/// What `bench key-switch` reports.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Key-switching method.
    pub method: &'static str,
    /// log2 of the degree.
    pub log_n: u32,
    /// Widths of the ciphertext primes.
    pub q_bits: Vec<u32>,
    /// Widths of the special primes.
    pub p_bits: Vec<u32>,
    /// Bits of all primes of the key.
    pub log_qp: u32,
    /// Estimated security.
    pub security_bits: f64,
    /// Digits.
    pub omega: usize,
    /// Digits of a second decomposition; none here.
    pub omega2: Option<usize>,
    /// Primes in a digit.
    pub digit_primes: usize,
    /// Primes of an extended ring; none here.
    pub aux_primes: usize,
    /// Limbs of the ciphertext.
    pub limbs: usize,
    /// Instruction set.
    pub isa: &'static str,
    /// Device.
    pub device: String,
    /// Median milliseconds of one switch.
    pub median_ms: f64,
    /// Predicted milliseconds; none without a machine profile.
    pub predicted_ms: Option<f64>,
    /// Bytes of the prepared key.
    pub key_bytes: usize,
    /// Counted operations.
    pub counts: CountReport,
}

/// Widths of the fewest primes of at most `width` bits whose product has at least `log` bits, as equal as they get.
fn widths(log: u32, width: u32) -> Vec<u32> {
    let count = log.div_ceil(width).max(1);
    vec![log.div_ceil(count); count as usize]
}

fn literal(request: &Request, width: u32) -> Result<ParamsLiteral, Error> {
    let q_bits = widths(request.log_q, width);
    let digit = q_bits.len().div_ceil(request.omega.max(1));
    let log_p = request.log_p.unwrap_or(q_bits[0] * digit as u32);
    let mut taken = Vec::new();
    for &bits in q_bits.iter().chain(&widths(log_p, width)) {
        let next = ntt_primes_excluding(bits, request.log_n, 1, &taken)?;
        taken.extend(next);
    }
    let p = taken.split_off(q_bits.len());
    Ok(ParamsLiteral {
        tag: "bench".to_owned(),
        log_n: request.log_n,
        q: taken,
        p,
        aux: vec![],
        level_limbs: vec![],
        error_multiple: request.error_multiple.clone(),
        error: Default::default(),
        security: Security::Insecure,
    })
}

/// Everything one measured switch needs.
struct Setup<B: Backend> {
    context: Arc<Context<B>>,
    switcher: Arc<Switcher<B>>,
    key: PreparedKey<B>,
    input: MixedPoly<B>,
    addends: [MixedPoly<B>; 2],
    output: Output,
    op: Op,
}

impl<B: Backend> Setup<B> {
    fn new(request: &Request, params: Params, backend: B) -> Result<Self, Error> {
        let context = Context::with_backend(params, backend);
        let params = context.params();
        let mut plan = SwitchPlan::hybrid(params, request.omega)?;
        if request.unfolded {
            plan = plan.unfolded();
        }
        let mut randomness = Randomness::insecure_from_number(1);
        let secret = SecretKey::generate(&context, &mut randomness)?;
        let source = match request.op {
            Op::Relinearize => Source::Square,
            Op::Rotate => Source::Galois(3),
        };
        let key = SwitchKey::generate(&context, &secret, source, None, &plan, &mut randomness)?;
        let key = key.prepare(&context, &plan)?;
        let limbs = request.limbs.unwrap_or(params.q().len());
        let Some(active) = limbs.checked_sub(1).and_then(|level| params.level(level).ok()).cloned() else {
            let reason = format!("--limbs {limbs} is outside 1..={}", params.q().len());
            return Err(Error::Request { reason });
        };
        let switcher = context.switcher(&plan, &active, &active)?;
        let input = uniform(&context, &active, request.input_ntt, 0)?;
        let addends =
            [uniform(&context, &active, request.input_ntt, 1)?, uniform(&context, &active, request.input_ntt, 2)?];
        let galois = if request.op == Op::Rotate { 3 } else { 1 };
        let output = Output { ntt: if request.output_ntt { active } else { IndexSet::empty() }, galois };
        Ok(Self { context, switcher, key, input, addends, output, op: request.op })
    }

    fn run(&self) -> Result<(), Error> {
        let context = &self.context;
        let digits = self.switcher.decompose(context, Operand::Mixed(&self.input))?;
        let accumulator = self.switcher.gadget_product(context, digits, &self.key, None)?;
        let second = (self.op == Op::Relinearize).then_some(Operand::Mixed(&self.addends[1]));
        let addends = [Some(Operand::Mixed(&self.addends[0])), second];
        let parts = self.switcher.mod_down(context, accumulator, addends, &self.output)?;
        std::hint::black_box(parts);
        Ok(())
    }
}

fn uniform<B: Backend>(context: &Context<B>, primes: &IndexSet, ntt: bool, digit: u32) -> Result<MixedPoly<B>, Error> {
    let (backend, empty) = (context.backend(), IndexSet::empty());
    let mut x: Poly<B, Ntt> = Poly::new(backend, primes)?;
    let rows: Vec<usize> = (0..primes.len()).collect();
    let seed = Seed::from_bytes([7; 32]);
    let view = ViewMut::new(x.buffer_mut(), &rows);
    backend.uniform(primes.as_slice(), &seed, Purpose::PublicRandomness, digit, view)?;
    if ntt {
        return Ok(MixedPoly { coeff: Poly::new(backend, &empty)?, ntt: x });
    }
    Ok(MixedPoly { coeff: x.into_coeff(backend)?, ntt: Poly::new(backend, &empty)? })
}

/// Runs the request on this machine's CPU.
///
/// # Errors
/// [`Error`] for parameters that cannot be built.
pub fn measure(request: &Request) -> Result<Report, Error> {
    let isa = Isa::detect().map_err(|e| Error::Request { reason: e.to_string() })?;
    let width = request.width.unwrap_or(if isa == Isa::Ifma { 50 } else { 60 });
    if !(20..=61).contains(&width) {
        return Err(Error::Request { reason: format!("width {width} is outside 20..=61") });
    }
    let params = Params::new(literal(request, width)?)?;
    let open = || Cpu::with_isa(Arc::clone(params.ring()), isa);
    let counted = Setup::new(request, params.clone(), Counting::new(open()?))?;
    let (done, counts) = counted.context.backend().measure(|| counted.run());
    done?;
    let setup = Setup::new(request, params.clone(), open()?)?;
    let seconds = median_seconds(|| setup.run())?;
    let bits = |set: &IndexSet| set.iter().map(|i| params.ring().modulus(i).bits()).collect::<Vec<_>>();
    let limbs = setup.switcher.active().len();
    Ok(Report {
        method: if request.omega == 1 { "ghs" } else { "hybrid" },
        log_n: request.log_n,
        q_bits: bits(params.q()),
        p_bits: bits(params.p()),
        log_qp: params.log_qp(),
        security_bits: params.security_bits(),
        omega: setup.switcher.omega(),
        omega2: None,
        digit_primes: params.q().len().div_ceil(request.omega),
        aux_primes: 0,
        limbs,
        isa: isa.name(),
        device: setup.context.backend().name(),
        median_ms: seconds * 1e3,
        predicted_ms: None,
        key_bytes: (16 * request.omega * (params.q().len() + params.p().len())) << request.log_n,
        counts: CountReport {
            ntt: counts.ntt,
            mul: counts.mul,
            convert_mac: counts.convert_mac,
            correction: counts.correction,
            bytes: counts.bytes,
        },
    })
}
