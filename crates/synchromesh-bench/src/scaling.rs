//! One thread against several, in turn: what a second core gives to operations, circuits, encryption and keys.

use std::sync::Arc;
use std::time::Duration;

use num_bigint::BigInt;
use serde::Serialize;
use synchromesh::circuits::{Arithmetic, LinearTransform, MatrixChoices, MatrixPacking, MatrixPlan, Side, SlotShape};
use synchromesh::{bfv, bgv, ckks, exact};
use synchromesh_ring::isa::Isa;
use synchromesh_ring::{Cpu, Ring, Threads};
use synchromesh_rlwe::{EvaluationKeys, Randomness, Security};

use crate::matmul::{self, matrices};
use crate::timing::interleaved_medians;
use crate::{Error, scheme};

/// Least time that the two ways of one task are run for, in turn.
const LEAST_TIME: Duration = Duration::from_secs(4);
/// Least rounds of a task that takes long.
const LEAST_ROUNDS: usize = 3;
/// Ciphertexts of the encryption.
const ENCRYPTED: usize = 64;
/// Rotation keys of the key generation.
const ROTATIONS: i64 = 100;
/// Diagonals of the linear map.
const DIAGONALS: usize = 128;
/// Rows and columns of the matrices.
const SIDE: usize = 192;

/// One task.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What is done.
    pub task: String,
    /// Median milliseconds on one thread.
    pub one_ms: f64,
    /// Median milliseconds on several.
    pub several_ms: f64,
    /// The one over the other.
    pub ratio: f64,
}

/// What `bench threads` reports.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// How many threads several are.
    pub threads: usize,
    /// Instruction set.
    pub isa: &'static str,
    /// The tasks.
    pub tasks: Vec<Row>,
}

/// A task at work: each call does it once.
type Run = Box<dyn FnMut() -> Result<(), Error>>;
/// Sets a task up on some threads.
type SetUp = fn(&Threads) -> Result<Run, Error>;

/// Every task with the words to find it by.
const TASKS: [(&str, SetUp); 9] = [
    ("CKKS rotation, N = 2^15, log Q = 550, omega = 2", |threads| rotation(15, 11, threads)),
    ("CKKS rotation, N = 2^16, log Q = 1090, omega = 2", |threads| rotation(16, 23, threads)),
    ("CKKS product, N = 2^15, log Q = 550, omega = 2", |threads| product(15, 11, threads)),
    ("CKKS product, N = 2^16, log Q = 1090, omega = 2", |threads| product(16, 23, threads)),
    ("BFV product, N = 2^15, log Q = 450, omega = 3", bfv_product),
    ("encryption of 64 CKKS ciphertexts, N = 2^15, log Q = 550", encryption),
    ("CKKS linear map of 128 diagonals, N = 2^15, log Q = 550", linear_map),
    ("BGV matrix product 192 x 192 x 192, N = 2^14, t of 17 bits", matrix_product),
    ("CKKS keys: 100 rotations, N = 2^15, log Q = 550", key_generation),
];

/// Measures the tasks whose names hold `filter`, on one thread and on `threads`; `progress` hears what comes next, and what each
/// came to.
///
/// # Errors
/// [`Error`] for threads that cannot be had, or what a task refuses.
pub fn measure(threads: usize, filter: &str, progress: impl Fn(&str)) -> Result<Report, Error> {
    let several = Threads::new(threads).map_err(synchromesh_ring::BackendError::from)?;
    let mut tasks = Vec::new();
    for (task, set_up) in TASKS.iter().filter(|(task, _)| task.contains(filter)) {
        progress(task);
        let mut runs = [set_up(&Threads::ONE)?, set_up(&several)?];
        let times = interleaved_medians(&mut runs, LEAST_TIME, LEAST_ROUNDS)?;
        let [one, more] = [times[0], times[1]].map(|seconds| seconds * 1e3);
        progress(&format!("  {one:.2} ms, {more:.2} ms, ratio {:.2}", one / more));
        tasks.push(Row { task: (*task).to_owned(), one_ms: one, several_ms: more, ratio: one / more });
    }
    if tasks.is_empty() {
        let all: Vec<&str> = TASKS.iter().map(|(task, _)| *task).collect();
        return Err(Error::Request { reason: format!("no task holds {filter:?}; there are: {}", all.join("; ")) });
    }
    Ok(Report { threads, isa: Isa::detect().map_or("unknown", Isa::name), tasks })
}

fn cpu(ring: &Arc<Ring>, threads: &Threads) -> Result<Cpu, Error> {
    Ok(Cpu::open(Arc::clone(ring))?.with_threads(threads.clone()))
}

/// A CKKS context with an evaluator that rotates by these steps, and a ciphertext.
struct Ckks {
    context: Arc<ckks::Context>,
    evaluator: ckks::Evaluator,
    secret: synchromesh_rlwe::SecretKey,
    public: synchromesh_rlwe::PublicKey,
    message: ckks::Plaintext,
    x: ckks::Ciphertext,
}

fn ckks(log_n: u32, depth: usize, steps: ckks::Rotations, threads: &Threads) -> Result<Ckks, Error> {
    let params =
        ckks::Params::new(ckks::ParamsLiteral { mode: ckks::Mode::Auto, ..scheme::ckks_literal(log_n, depth, 2) })?;
    let backend = cpu(params.rlwe().ring(), threads)?;
    let context = ckks::Context::with_backend(params, backend)?;
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &steps, &mut randomness)?;
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
    let message: Vec<f64> = (0..context.params().slots()).map(|i| (i % 251) as f64 / 251.0).collect();
    let message = context.encode(&message)?;
    let x = context.encrypt(&public, &message, &mut randomness)?;
    Ok(Ckks { context, evaluator, secret, public, message, x })
}

fn rotation(log_n: u32, depth: usize, threads: &Threads) -> Result<Run, Error> {
    let f = ckks(log_n, depth, ckks::Rotations::by([1]), threads)?;
    Ok(Box::new(move || done(f.evaluator.rotate(&f.x, 1))))
}

fn product(log_n: u32, depth: usize, threads: &Threads) -> Result<Run, Error> {
    let f = ckks(log_n, depth, ckks::Rotations::by([]), threads)?;
    let y = f.x.duplicate(&f.context)?;
    Ok(Box::new(move || done(f.evaluator.mul(&f.x, &y))))
}

fn bfv_product(threads: &Threads) -> Result<Run, Error> {
    let params = bfv::Params::new(exact::ParamsLiteral {
        log_n: 15,
        t: "65537".to_owned(),
        q_bits: vec![50; 9],
        p_bits: vec![50; 3],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 3,
        security: Security::Insecure,
        primes: None,
    })?;
    let backend = cpu(params.rlwe().ring(), threads)?;
    let context = bfv::Context::with_backend(params, backend)?;
    let mut randomness = Randomness::insecure_from_number(2);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &exact::Rotations::none(), &mut randomness)?;
    let evaluator = bfv::Evaluator::new(&context, Some(Arc::new(keys)));
    let message: Vec<i64> = (0..1 << 15).map(|i| i * i % 251 - 125).collect();
    let message = context.encode_coefficients(&message)?;
    let mut encrypt = || context.encrypt(&public, &message, &mut randomness);
    let (x, y) = (encrypt()?, encrypt()?);
    Ok(Box::new(move || done(evaluator.mul(&x, &y))))
}

fn encryption(threads: &Threads) -> Result<Run, Error> {
    let f = ckks(15, 11, ckks::Rotations::by([]), threads)?;
    let mut randomness = Randomness::insecure_from_number(3);
    Ok(Box::new(move || {
        let forks = (0..ENCRYPTED).map(|_| randomness.fork()).collect::<Result<Vec<_>, _>>()?;
        let one = |mut fork: Randomness| f.context.encrypt(&f.public, &f.message, &mut fork).map(drop);
        f.evaluator.threads().try_map(forks, one)?;
        Ok(())
    }))
}

fn linear_map(threads: &Threads) -> Result<Run, Error> {
    let shape = SlotShape { row: 1 << 14, rows: 1 };
    let entry = |i: usize| ckks::Complex64::from((i % 17) as f64 / (17 * DIAGONALS) as f64);
    let rows: Vec<Vec<ckks::Complex64>> =
        (0..DIAGONALS).map(|r| (0..DIAGONALS).map(|c| entry(3 * r + c)).collect()).collect();
    let map = LinearTransform::repeated(shape, &rows)?;
    let f = ckks(15, 11, map.rotations(map.baby_steps()), threads)?;
    let prepared = map.prepare(&f.evaluator, f.context.params().top_level())?;
    Ok(Box::new(move || done(prepared.apply(&f.evaluator, &f.x))))
}

fn matrix_product(threads: &Threads) -> Result<Run, Error> {
    let choices = MatrixChoices::HOISTED.threads(threads.count());
    let request = matmul::Request { choices, ..matmul::Request::blocks(64, SIDE, 17, 14) };
    let t = matmul::modulus(&request)?;
    let params = bgv::Params::new(matmul::literal(&request, &t)?)?;
    let backend = cpu(params.rlwe().ring(), threads)?;
    let context = bgv::Context::with_backend(params, backend)?;
    let mut randomness = Randomness::insecure_from_number(5);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let slots = bgv::Evaluator::new(&context, None).slots()?;
    let plan = MatrixPlan::new(MatrixPacking::square(slots, request.d)?, [SIDE; 3], 1, [1, 1])?;
    let mut encrypt = |side, seed| -> Result<Vec<_>, Error> {
        let matrix: Vec<synchromesh::circuits::Matrix<BigInt>> = matrices(1, [SIDE; 2], seed, &t)?;
        let slots = plan.slots(side, &matrix)?;
        let one = |slots: &Vec<BigInt>| context.encrypt(&public, &context.encode(slots)?, &mut randomness);
        Ok(slots.iter().map(one).collect::<synchromesh::Result<_>>()?)
    };
    let (a, b) = (encrypt(Side::Left, 1)?, encrypt(Side::Right, 2)?);
    let none = bgv::Evaluator::new(&context, Some(Arc::new(EvaluationKeys::new(secret.id()))));
    let level = plan.levels(&none, &a[0], &b[0])?.product;
    let keys = plan.generate_keys(&context, &secret, &choices, level, &mut randomness)?;
    let evaluator = bgv::Evaluator::new(&context, Some(Arc::new(keys)));
    Ok(Box::new(move || done(plan.multiply(&evaluator, &choices, &a, &b))))
}

fn key_generation(threads: &Threads) -> Result<Run, Error> {
    let f = ckks(15, 11, ckks::Rotations::by([]), threads)?;
    let mut randomness = Randomness::insecure_from_number(4);
    let steps = ckks::Rotations::by(1..=ROTATIONS);
    Ok(Box::new(move || done(f.context.generate_evaluation_keys(&f.secret, &steps, &mut randomness))))
}

/// What was made is dropped.
fn done<T>(made: synchromesh::Result<T>) -> Result<(), Error> {
    made?;
    Ok(())
}
