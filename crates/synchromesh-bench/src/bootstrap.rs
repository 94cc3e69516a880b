//! Refreshes of CKKS ciphertexts: seconds by stage, precision measured beside certified, levels, keys and memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use synchromesh::ckks::bootstrap::{Bootstrap, BootstrapLiteral, Bootstrapper, Messages, Stage};
use synchromesh::ckks::{Complex64, Context, Params, Rotations};
use synchromesh::plan::bootstrap::{BootstrapRequest, Found};
use synchromesh_ring::isa::Isa;
use synchromesh_ring::{Backend, BackendError, Cpu, Ring, Threads};
use synchromesh_rlwe::{EvaluationKeys, PublicKey, Randomness, SecretKey};

use crate::Error;
use crate::device::{Device, Measured, on_device};
use crate::memory::{fits_refresh, forget_peak, peak_bytes};
use crate::numbers::Numbers;
use crate::timing::median;

/// What a stage took.
#[derive(Debug, Clone, Serialize)]
pub struct StageReport {
    /// Which.
    pub stage: Stage,
    /// Median seconds.
    pub seconds: f64,
    /// The level of what it makes.
    pub level: usize,
}

/// What `bench bootstrap` reports.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Instruction set.
    pub isa: &'static str,
    /// Threads.
    pub threads: usize,
    /// Where refreshes were computed.
    pub device: String,
    /// log2 of the ring degree.
    pub log_n: u32,
    /// Slots that are refreshed; where they repeat, those after which they do.
    pub slots: usize,
    /// log2 of the largest modulus of a key.
    pub log_qp: u32,
    /// Security in bits.
    pub security_bits: f64,
    /// What is done.
    pub bootstrap: BootstrapLiteral,
    /// Digits of a key switch.
    pub omega: usize,
    /// Widths of the ciphertext primes, in bits.
    pub q_bits: Vec<u32>,
    /// Widths of the special primes, in bits.
    pub p_bits: Vec<u32>,
    /// Levels between two refreshes.
    pub usable_levels: usize,
    /// log2 of what their primes multiply to.
    pub usable_bits: f64,
    /// The certificate: log2 of the message bound over what a slot may be off by.
    pub certified_bits: f64,
    /// log2 of the message bound over the largest error of a slot in all refreshes.
    pub measured_bits: f64,
    /// log2 of the message bound over the mean error.
    pub mean_bits: f64,
    /// Switch keys.
    pub keys: usize,
    /// Bytes of their file.
    pub key_bytes: u64,
    /// Bytes of them as they are computed with.
    pub prepared_bytes: u64,
    /// Bytes of the public vectors.
    pub vector_bytes: u64,
    /// The most memory of this process while keys were made and ciphertexts refreshed, in bytes; none where the system does
    /// not say.
    pub peak_bytes: Option<u64>,
    /// Seconds to make the keys.
    pub keys_s: f64,
    /// Seconds to prepare the public vectors.
    pub vectors_s: f64,
    /// Refreshes that were timed, after one that was not.
    pub iterations: usize,
    /// The stages.
    pub stages: Vec<StageReport>,
    /// Median seconds of a refresh.
    pub seconds: f64,
}

/// All that refreshes take.
pub(crate) struct Made<B: Backend = Cpu> {
    pub(crate) context: Arc<Context<B>>,
    pub(crate) secret: SecretKey<B>,
    pub(crate) public: PublicKey<B>,
    pub(crate) keys: Arc<EvaluationKeys<B>>,
    pub(crate) bootstrapper: Bootstrapper<B>,
    pub(crate) randomness: Randomness,
    keys_s: f64,
    vectors_s: f64,
}

impl<B: Backend> Made<B> {
    /// Keys and public vectors at parameters that were found, on the device that `open` opens.
    pub(crate) fn new(
        found: &Found,
        open: impl FnOnce(&Arc<Ring>) -> Result<B, BackendError>,
        mut randomness: Randomness,
        progress: impl Fn(&str),
    ) -> Result<Self, Error> {
        let params = Params::new(found.params.clone())?;
        let bootstrap = Bootstrap::new(&params, found.bootstrap.clone())?;
        let device = open(params.rlwe().ring())?;
        let context = Context::with_backend(params, device)?;
        let (secret, public) = context.generate_keys(&mut randomness)?;
        progress("keys");
        let start = Instant::now();
        let keys = bootstrap.generate_keys(&context, &secret, &Rotations::default(), &mut randomness)?;
        let keys_s = start.elapsed().as_secs_f64();
        let keys = Arc::new(keys.into_prepared(context.rlwe(), context.params().plans())?);
        progress("public vectors");
        let start = Instant::now();
        let bootstrapper = Bootstrapper::new(&context, bootstrap, Arc::clone(&keys))?;
        let vectors_s = start.elapsed().as_secs_f64();
        Ok(Self { context, secret, public, keys, bootstrapper, randomness, keys_s, vectors_s })
    }
}

/// Whether there is memory for refreshes on a device at parameters that were found.
pub(crate) fn fits(found: &Found, device: Device) -> Result<(), Error> {
    fits_refresh(found.forecast.peak_bytes.saturating_sub(found.forecast.stored_bytes), device)
}

/// Measures refreshes of random messages at the parameters found for a request, on a device, the CPU with the threads of this
/// process; `progress` hears what is done.
///
/// # Errors
/// [`Error::Request`] before anything is made that does not fit, or what a search or a refresh refuses.
pub fn measure(
    request: &BootstrapRequest,
    iterations: usize,
    device: Device,
    progress: impl Fn(&str),
) -> Result<Report, Error> {
    on_device!(device, B => measure_on::<B>(request, iterations, device, progress))
}

fn measure_on<B: Measured>(
    request: &BootstrapRequest,
    iterations: usize,
    device: Device,
    progress: impl Fn(&str),
) -> Result<Report, Error> {
    progress("parameters");
    let found = request.find(None)?;
    fits(&found, device)?;
    forget_peak();
    let made = Made::<B>::new(&found, B::open, Randomness::from_os(), &progress)?;
    let Made { context, secret, public, keys, bootstrapper, mut randomness, keys_s, vectors_s } = made;
    let (params, backend) = (context.params(), context.rlwe().backend());
    // Where SlotsToCoeffs begins, scales leave no more precision than one round does.
    let level = bootstrapper.bootstrap().input_level() + usize::from(request.rounds > 1);
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); Stage::ALL.len()];
    let mut totals = Vec::new();
    let (mut worst, mut sum, mut certified) = (0f64, 0f64, f64::INFINITY);
    for round in 0..=iterations {
        progress(&format!("refresh {round} of {iterations}"));
        let message = random(request, request.message_bound, round as u64);
        let plain = context.encode_complex(&message, request.message_bound)?;
        let x = context.encrypt_at(&public, &plain, level, &mut randomness)?;
        backend.wait()?;
        let begin = Instant::now();
        let mut last = begin;
        let mut own = [Duration::ZERO; Stage::ALL.len()];
        let mut waited = Ok(());
        let refreshed = bootstrapper.refresh_watched(&x, |stage, _| {
            waited = backend.wait();
            let now = Instant::now();
            own[stage as usize] += now - last;
            last = now;
        })?;
        waited?;
        if round > 0 {
            totals.push(begin.elapsed().as_secs_f64());
            times.iter_mut().zip(own).for_each(|(all, time)| all.push(time));
        }
        let slots = context.decode_complex(&context.decrypt(&secret, &refreshed)?)?;
        let errors = slots.iter().zip(&message).map(|(a, b)| (a.re - b.re).hypot(a.im - b.im));
        let (most, mean) = errors.fold((0f64, 0f64), |(most, mean), error| (most.max(error), mean + error));
        worst = worst.max(most);
        sum += mean / message.len() as f64;
        certified = certified.min((request.message_bound / context.error_bound(&refreshed)).log2());
    }
    let stages = found.forecast.stages.iter().zip(&times).map(|(stage, times)| StageReport {
        stage: stage.stage,
        seconds: median(times.iter().map(Duration::as_secs_f64).collect()),
        level: stage.level,
    });
    Ok(Report {
        isa: Isa::detect().map_or("unknown", Isa::name),
        threads: Threads::of_process().map_err(BackendError::from)?.count(),
        device: backend.name(),
        log_n: request.log_n,
        slots: request.slots(),
        log_qp: found.forecast.log_qp,
        security_bits: found.forecast.security_bits,
        omega: found.params.omega,
        q_bits: found.params.q_bits.clone(),
        p_bits: found.params.p_bits.clone(),
        usable_levels: found.forecast.usable_levels,
        usable_bits: found.forecast.usable_bits,
        certified_bits: certified,
        measured_bits: (request.message_bound / worst).log2(),
        mean_bits: (request.message_bound * (iterations + 1) as f64 / sum).log2(),
        keys: found.forecast.keys,
        key_bytes: keys.wire_bytes(params.rlwe()),
        prepared_bytes: keys.prepared_bytes(),
        vector_bytes: bootstrapper.bytes() as u64,
        peak_bytes: peak_bytes(),
        keys_s,
        vectors_s,
        iterations,
        stages: stages.collect(),
        seconds: median(totals),
        bootstrap: found.bootstrap,
    })
}

/// Values in the square of this half diagonal, the same for the same number: real and repeated where the request says so.
pub(crate) fn random(request: &BootstrapRequest, bound: f64, number: u64) -> Vec<Complex64> {
    let mut numbers = Numbers(number);
    let half = bound * f64::sqrt(0.5) * (1.0 - 1e-9);
    let slot = |_| {
        let (re, im) = (half * numbers.unit(), half * numbers.unit());
        Complex64::new(re, if request.messages == Messages::Real { 0.0 } else { im })
    };
    let own: Vec<Complex64> = (0..request.slots()).map(slot).collect();
    own.into_iter().cycle().take(1 << (request.log_n - 1)).collect()
}
