//! Keys that several parties make together, and decryptions under them: time of all parties on one core, and bytes that
//! each sends.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use synchromesh::bgv::{self, Bgv};
use synchromesh::circuits::Arithmetic;
use synchromesh::ckks::{self, Ckks};
use synchromesh::exact::Rotations;
use synchromesh::plan::SchemeName;
use synchromesh::rlwe::{LevelPlans, Security};
use synchromesh::scheme::{Encryptor, Scheme, Values};
use synchromesh_parties::joint::{JointKeys, KeyShare, Plan, Quorum, Wanted, generate};
use synchromesh_parties::session::Session;
use synchromesh_parties::transport::InProcess;
use synchromesh_ring::{Cpu, Threads};
use synchromesh_rlwe::{PublicKey, Randomness};

use crate::Error;

/// What to measure; see the command `bench joint`.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// BGV at N = 2^14 or CKKS at N = 2^15.
    pub scheme: SchemeName,
    /// Those who make the key.
    pub parties: usize,
    /// Those who decrypt.
    pub threshold: usize,
    /// Keys for rotations by 1, 2, ..
    pub rotations: u32,
    /// Ciphertexts that are decrypted together.
    pub ciphertexts: u32,
    /// Whether shares of keys are proven.
    pub proofs: bool,
}

/// What `bench joint` reports.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The scheme.
    pub scheme: SchemeName,
    /// log2 of the degree.
    pub log_n: u32,
    /// Bits of all primes of a key.
    pub log_qp: u32,
    /// Estimated security.
    pub security_bits: f64,
    /// Milliseconds in which all parties make public, relinearisation and rotation keys.
    pub generate_ms: f64,
    /// Bytes that each sends for it to each of the others.
    pub generate_bytes: u64,
    /// Milliseconds in which one party brings all ciphertexts to the level at which they are decrypted.
    pub lower_ms: f64,
    /// Milliseconds in which those who meet decrypt all ciphertexts, which are at that level.
    pub decrypt_ms: f64,
    /// Bytes that each sends for it to each of the others.
    pub decrypt_bytes: u64,
}

/// The first slots of every ciphertext, which rotated by one and squared they are found again in.
const MESSAGE: [i64; 4] = [1, 2, 3, 4];
/// Bits of a message that must be right, of CKKS.
const PRECISION: f64 = 10.0;
/// How long parties wait for one another.
const PATIENCE: Duration = Duration::from_secs(600);

/// Makes keys, computes a rotation and a square, decrypts, and looks at the results.
///
/// # Errors
/// [`Error::Request`] for numbers out of range or a scheme without a set, or where results are wrong; a refusal of the
/// parties or the scheme.
pub fn measure(request: &Request) -> Result<Report, Error> {
    let Request { parties, threshold, .. } = *request;
    if !(2..=16).contains(&parties) || !(1..=parties).contains(&threshold) {
        return Err(Error::Request {
            reason: format!("{threshold} of {parties} parties: 2 to 16 of them are measured"),
        });
    }
    let plan = Plan { proofs: request.proofs, ..Plan::any_of(threshold, parties) };
    match request.scheme {
        SchemeName::Bgv => {
            let params = bgv::Params::new(bgv::ParamsLiteral {
                log_n: 14,
                t: "65537".to_owned(),
                q_bits: vec![56, 55, 55, 55, 55],
                p_bits: vec![58, 58],
                level_limbs: vec![],
                schedule: Default::default(),
                omega: 3,
                security: Security::Bits128,
                primes: None,
            })?
            .with_joint(&plan);
            let plans = params.plans().clone();
            run::<Bgv>(request, params, &plans, &plan)
        }
        SchemeName::Ckks => {
            // Its noise stays in the message.
            let plan = plan.with_security(30).with_decryptions(1 << 10);
            let params = ckks::Params::new(ckks::ParamsLiteral {
                log_n: 15,
                log_scale: 80,
                q_bits: [50, 50].into_iter().chain([40; 10]).collect(),
                p_bits: vec![60, 60, 60],
                level_limbs: vec![2, 4, 6, 8, 10, 12],
                schedule: Default::default(),
                omega: 4,
                log_scales: vec![],
                mode: ckks::Mode::Auto,
                security: Security::Bits128,
                primes: None,
            })?
            .with_joint(&plan);
            let plans = params.plans().clone();
            run::<Ckks>(request, params, &plans, &plan)
        }
        other => Err(Error::Request { reason: format!("no set of {} is measured: bgv or ckks", other.name()) }),
    }
}

fn run<S: Scheme>(request: &Request, params: S::Params, plans: &LevelPlans, plan: &Plan) -> Result<Report, Error> {
    let cpu = Cpu::open(Arc::clone(S::ring(&params)))?.with_threads(Threads::ONE);
    let evaluator = S::open(params, cpu)?;
    let context = S::context(&evaluator);
    let rlwe = S::rlwe(context);
    let wanted = Wanted::whole::<S>(context, plans, &Rotations::by(1..=i64::from(request.rotations)))?;
    let everybody: Vec<usize> = (0..request.parties).collect();
    let made = together(&everybody, |session, _| Ok(generate(session, rlwe, plan, &wanted)?))?;
    let directory = tempfile::tempdir().map_err(|error| wrong(&format!("no folder for journals: {error}")))?;
    let journal = |member: usize| directory.path().join(format!("{member}.journal"));
    let (keys, shares): (Vec<JointKeys>, Vec<KeyShare>) = made.results.into_iter().unzip();
    for (member, share) in shares.iter().enumerate() {
        share.begin_journal(&journal(member))?;
    }
    let Some(JointKeys { public, evaluation, .. }) = keys.into_iter().next() else { return Err(wrong("no keys")) };
    let evaluator = S::with_keys(&evaluator, Arc::new(evaluation));
    let results = computed::<S>(request, &evaluator, &public)?;
    let (lowered, lower) = lowered::<S>(&evaluator, &results, plan, request.threshold)?;
    let given: Vec<_> = lowered.iter().collect();
    let opened = together(&everybody[..request.threshold], |session, member| {
        let mut journal = shares[member].open_journal(&journal(member))?;
        let mut quorum = Quorum::meet(session, rlwe, &shares[member])?;
        Ok(quorum.decrypt::<S>(context, &mut journal, &given, PRECISION)?)
    })?;
    let found = opened.results.iter().flatten().map(|opened| opened.values.reals());
    let off = found.flat_map(|values| [4.0, 9.0, 16.0].into_iter().zip(values.to_vec()).map(|(x, y)| (x - y).abs()));
    if off.fold(0.0, f64::max) > 0.01 {
        return Err(wrong("what was decrypted is not what was computed"));
    }
    let params = rlwe.params();
    Ok(Report {
        scheme: S::NAME,
        log_n: params.literal().log_n,
        log_qp: params.log_qp(),
        security_bits: params.security_bits(),
        generate_ms: made.seconds * 1e3,
        generate_bytes: made.bytes,
        lower_ms: lower.as_secs_f64() * 1e3,
        decrypt_ms: opened.seconds * 1e3,
        decrypt_bytes: opened.bytes,
    })
}

fn wrong(reason: &str) -> Error {
    Error::Request { reason: reason.to_owned() }
}

/// A rotation and a square of as many messages as are asked for.
fn computed<S: Scheme>(
    request: &Request,
    evaluator: &S::Evaluator<Cpu>,
    public: &PublicKey<Cpu>,
) -> Result<Vec<S::Ciphertext<Cpu>>, Error> {
    let (context, top) = (S::context(evaluator), S::top_level(evaluator));
    let (mut randomness, values) = (Randomness::from_os(), Values::from(MESSAGE.as_slice()));
    let one = |_| {
        let x = S::encrypt(context, &Encryptor::Public(public), &values, 4.0, top, &mut randomness)?;
        Ok(evaluator.square(&evaluator.rotate(&x, 1)?)?)
    };
    (0..request.ciphertexts).map(one).collect()
}

/// Ciphertexts at the lowest level that has room for what hides a decryption, as a computation leaves them where parties are to
/// send little; and the time that it took.
fn lowered<S: Scheme>(
    evaluator: &S::Evaluator<Cpu>,
    given: &[S::Ciphertext<Cpu>],
    plan: &Plan,
    present: usize,
) -> Result<(Vec<S::Ciphertext<Cpu>>, Duration), Error> {
    let (context, hiding) = (S::context(evaluator), plan.hiding(present, PRECISION));
    let Some(first) = given.first() else { return Ok((Vec::new(), Duration::ZERO)) };
    let level = S::state(context, &S::opening(context, first, &hiding)?.ciphertext)?.level;
    let begin = Instant::now();
    let lowered = given.iter().map(|x| Ok(evaluator.at_level(x, level)?)).collect::<Result<_, Error>>()?;
    Ok((lowered, begin.elapsed()))
}

/// What parties have made, with the seconds all took and the most bytes that one sent to each of the others.
struct Together<R> {
    results: Vec<R>,
    seconds: f64,
    bytes: u64,
}

/// Runs `party` on a thread for each member.
fn together<R: Send>(
    members: &[usize],
    party: impl Fn(&mut Session<InProcess>, usize) -> Result<R, Error> + Sync,
) -> Result<Together<R>, Error> {
    let begin = Instant::now();
    let transports = InProcess::mesh(members.len(), PATIENCE);
    let run = |transport, member| {
        let mut session = Session::new(transport, "bench joint")?;
        let result = party(&mut session, member)?;
        Ok::<_, Error>((result, session.traffic().1))
    };
    let each: Vec<(R, u64)> = thread::scope(|scope| {
        let run = &run;
        let start = |(transport, &member)| scope.spawn(move || run(transport, member));
        let threads: Vec<_> = transports.into_iter().zip(members).map(start).collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(wrong("a party panicked"))));
        joined.collect::<Result<_, _>>()
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    let sent = each.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
    let bytes = sent / (members.len() as u64 - 1).max(1);
    Ok(Together { results: each.into_iter().map(|(result, _)| result).collect(), seconds, bytes })
}
