//! Products of encrypted square matrices in BGV at the parameters of ePrint 2023/593: time, memory, keys.

use std::sync::Arc;
use std::time::Instant;

use num_bigint::BigInt;
use serde::Serialize;
use synchromesh::bgv::{Ciphertext, Context, Evaluator, Params, ParamsLiteral};
use synchromesh::circuits::{
    Arithmetic, Matrix, MatrixArithmetic, MatrixChoices, MatrixPacking, MatrixPlan, Side, SlotShape,
};
use synchromesh::plain_modulus::PlainModulus;
use synchromesh_ring::isa::Isa;
use synchromesh_rlwe::{EvaluationKeys, Randomness, Security};

use crate::Error;
use crate::device::{Device, Measured, on_device};
use crate::memory;
use crate::numbers::Numbers;

/// The default modulus of 128 bits.
pub const T128: &str = "0xffffffffffffffffffffffffff820001";

/// Bytes of prepared keys that are kept: a few keys, as each is used for all blocks before the next.
const PREPARED_BYTES: u64 = 64 << 20;

/// Products that are measured as a rule.
pub const RUNS: usize = 3;

/// Bits of the ciphertext primes and of P (ePrint 2023/593, Table 1).
const PAPER: [u32; 2] = [600, 240];

/// What to measure; see the command `bench matmul`.
#[derive(Debug, Clone)]
pub struct Request {
    /// Rows and columns of a block.
    pub d: usize,
    /// Rows and columns of the matrices.
    pub size: usize,
    /// Bits of the plaintext modulus.
    pub t_bits: u32,
    /// log2 of the degree.
    pub log_n: u32,
    /// Width of the primes.
    pub width: u32,
    /// Keys, memory, threads.
    pub choices: MatrixChoices,
    /// Lines twice as long instead of masks.
    pub doubled: bool,
    /// Whether the product is compared with the plain one.
    pub check: bool,
    /// Products measured, of which the median counts, at least one; each prepares all keys again, as they do not fit.
    pub runs: usize,
    /// Where.
    pub device: Device,
}

impl Request {
    /// Matrices of `size` rows and columns in blocks of `d`, all rotations from one decomposition, on one thread.
    pub(crate) const fn blocks(d: usize, size: usize, t_bits: u32, log_n: u32) -> Self {
        let (choices, device) = (MatrixChoices::HOISTED, Device::Cpu);
        Self { d, size, t_bits, log_n, width: 60, choices, doubled: false, check: false, runs: RUNS, device }
    }
}

/// What `bench matmul` reports.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Rows and columns of a block.
    pub d: usize,
    /// Rows and columns of the matrices.
    pub size: usize,
    /// Products at a time.
    pub packed: usize,
    /// Seconds of all of them.
    pub median_s: f64,
    /// Seconds of one product of ciphertexts, of as many as are summed at once.
    pub tensor_s: f64,
    /// Bytes of the process at its largest, keys and all.
    pub peak_bytes: Option<u64>,
    /// log2 of the degree.
    pub log_n: u32,
    /// Bits of Q.
    pub log_q: u32,
    /// Bits of QP.
    pub log_qp: u32,
    /// Estimated security.
    pub security_bits: f64,
    /// Key switches, those of advancing and the relinearisations included.
    pub key_switches: usize,
    /// Rotation keys.
    pub rotation_keys: usize,
    /// Whether the products are the plain ones; none: not compared.
    pub exact: Option<bool>,
    /// Bits of noise budget that the products have left.
    pub noise_budget: f64,
    /// Limbs of the products.
    pub limbs: usize,
    /// Seconds to make the keys.
    pub keys_s: f64,
    /// Seconds to encode and encrypt both factors.
    pub encrypt_s: f64,
    /// Seconds to decrypt and decode the products.
    pub decrypt_s: f64,
    /// Threads.
    pub threads: usize,
    /// Instruction set.
    pub isa: &'static str,
    /// Device.
    pub device: String,
}

/// Multiplies as many pairs of matrices as the packing holds, from keys that are not prepared.
///
/// # Errors
/// [`Error::Request`] for blocks that do not fit the slots, or a scheme's refusal.
pub fn measure(request: &Request) -> Result<Report, Error> {
    on_device!(request.device, B => measure_on::<B>(request))
}

fn measure_on<B: Measured>(request: &Request) -> Result<Report, Error> {
    let t = modulus(request)?;
    memory::forget_peak();
    let params = Params::new(literal(request, &t)?)?;
    let context = Context::with_backend(params.clone(), B::open(params.rlwe().ring())?)?;
    let backend = context.rlwe().backend();
    let mut randomness = Randomness::insecure_from_number(5);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let slots = Evaluator::new(&context, None).slots()?;
    let packing = packing(request, slots)?;
    let [packed, size] = [packing.copies(), request.size];
    let plan = MatrixPlan::new(packing, [size; 3], packed, [1, 1])?;
    let (left, right) = (matrices(packed, [size; 2], 1, &t)?, matrices(packed, [size; 2], 2, &t)?);
    let start = Instant::now();
    let mut encrypt = |side, matrices: &[Matrix<BigInt>]| {
        let one = |slots: &Vec<BigInt>| context.encrypt(&public, &context.encode(slots)?, &mut randomness);
        plan.slots(side, matrices)?.iter().map(one).collect::<synchromesh::Result<Vec<_>>>()
    };
    let (a, b) = (encrypt(Side::Left, &left)?, encrypt(Side::Right, &right)?);
    let encrypt_s = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let none = Evaluator::new(&context, Some(Arc::new(EvaluationKeys::new(secret.id()))));
    let levels = plan.levels(&none, &a[0], &b[0])?;
    let keys = Arc::new(plan.generate_keys(&context, &secret, &request.choices, levels.product, &mut randomness)?);
    keys.set_prepared_budget(PREPARED_BYTES);
    let keys_s = start.elapsed().as_secs_f64();
    let evaluator = Evaluator::new(&context, Some(Arc::clone(&keys)));
    let (mut made, mut seconds) = (Vec::new(), Vec::new());
    for _ in 0..request.runs.max(1) {
        let start = Instant::now();
        made = plan.multiply(&evaluator, &request.choices, &a, &b)?;
        backend.wait()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let median_s = seconds[seconds.len() / 2];
    let peak_bytes = memory::peak_bytes();
    let tensor_s = tensor_seconds(&evaluator, levels.product, &a[0], &b[0])?;
    let start = Instant::now();
    let slots = |ct| context.decode_big(&context.decrypt(&secret, ct)?);
    let products = plan.products(&made.iter().map(slots).collect::<synchromesh::Result<Vec<_>>>()?)?;
    let decrypt_s = start.elapsed().as_secs_f64();
    let exact = request.check.then(|| are_products(&products, [&left, &right], &t));
    let (rlwe, level) = (params.rlwe(), made[0].level());
    Ok(Report {
        d: request.d,
        size,
        packed,
        median_s,
        tensor_s,
        peak_bytes,
        log_n: params.log_n(),
        log_q: rlwe.ring().log2(rlwe.q()).round() as u32,
        log_qp: rlwe.log_qp(),
        security_bits: rlwe.security_bits(),
        key_switches: plan.key_switches(&request.choices),
        rotation_keys: keys.iter().len() - 1,
        exact,
        noise_budget: context.noise_budget(&made[0])?,
        limbs: rlwe.level(level)?.len(),
        keys_s,
        encrypt_s,
        decrypt_s,
        threads: request.choices.threads,
        isa: Isa::detect().map_or("unknown", Isa::name),
        device: backend.name(),
    })
}

fn packing(request: &Request, slots: SlotShape) -> synchromesh::Result<MatrixPacking> {
    if request.doubled { MatrixPacking::doubled(slots, request.d) } else { MatrixPacking::square(slots, request.d) }
}

/// Seconds of a product at the level of the matrices' products, one of a sum of 16.
fn tensor_seconds<B: Measured>(
    evaluator: &Evaluator<B>,
    level: usize,
    a: &Ciphertext<B>,
    b: &Ciphertext<B>,
) -> Result<f64, Error> {
    const COUNT: usize = 16;
    let lowered = |x: &Ciphertext<B>| (0..COUNT).map(|_| evaluator.at_level(x, level)).collect();
    let (a, b): (synchromesh::Result<Vec<_>>, synchromesh::Result<Vec<_>>) = (lowered(a), lowered(b));
    let (a, b) = (a?, b?);
    let pairs: Vec<[&Ciphertext<B>; 2]> = a.iter().zip(&b).map(|(a, b)| [a, b]).collect();
    let start = Instant::now();
    std::hint::black_box(evaluator.sum_of_tensors(&pairs)?);
    evaluator.context().rlwe().backend().wait()?;
    Ok(start.elapsed().as_secs_f64() / COUNT as f64)
}

/// The paper's bits in primes of the width asked for, a level for each prime from the least that holds t on.
pub(crate) fn literal(request: &Request, t: &str) -> Result<ParamsLiteral, Error> {
    let width = request.width.clamp(30, 60);
    let [q_bits, p_bits] = PAPER.map(|bits| vec![width; bits.div_ceil(width) as usize]);
    let least = (request.t_bits + 20).div_ceil(width) as usize;
    if least > q_bits.len() {
        return Err(Error::Request { reason: format!("a plaintext modulus of {} bits is too large", request.t_bits) });
    }
    Ok(ParamsLiteral {
        log_n: request.log_n,
        t: t.to_owned(),
        level_limbs: (least..=q_bits.len()).collect(),
        q_bits,
        p_bits,
        schedule: Default::default(),
        omega: 3,
        security: Security::Insecure,
        primes: None,
    })
}

/// Pseudo-random matrices modulo t, of entries below 2^192.
///
/// # Errors
/// No plaintext modulus.
pub fn matrices(count: usize, [rows, columns]: [usize; 2], seed: u64, t: &str) -> Result<Vec<Matrix<BigInt>>, Error> {
    let t = BigInt::from(t.parse::<PlainModulus>().map_err(synchromesh::Error::from)?.value().clone());
    let mut numbers = Numbers(seed);
    let mut word = || BigInt::from(numbers.word());
    let mut entry = || (word() * word() * word()) % &t;
    (0..count).map(|_| Ok(Matrix::from_fn(rows, columns, |_, _| entry())?)).collect()
}

/// The plaintext modulus asked for.
pub(crate) fn modulus(request: &Request) -> Result<String, Error> {
    Ok(match request.t_bits {
        128 => T128.to_owned(),
        bits => PlainModulus::next_slot_prime(bits, request.log_n + 1).map_err(synchromesh::Error::from)?.to_string(),
    })
}

fn are_products(products: &[Matrix<BigInt>], [left, right]: [&[Matrix<BigInt>]; 2], t: &str) -> bool {
    products.iter().zip(left.iter().zip(right)).all(|(c, (a, b))| is_product(c, a, b, t))
}

fn is_product(c: &Matrix<BigInt>, a: &Matrix<BigInt>, b: &Matrix<BigInt>, t: &str) -> bool {
    let Ok(t) = t.parse::<PlainModulus>() else { return false };
    let t = BigInt::from(t.value().clone());
    let entry =
        |i: usize, j: usize| -> Option<BigInt> { (0..a.columns()).map(|k| Some(a.get(i, k)? * b.get(k, j)?)).sum() };
    let holds =
        |i: usize, j: usize| entry(i, j).zip(c.get(i, j)).is_some_and(|(sum, c)| ((sum - c) % &t) == BigInt::from(0));
    (0..c.rows()).all(|i| (0..c.columns()).all(|j| holds(i, j)))
}
