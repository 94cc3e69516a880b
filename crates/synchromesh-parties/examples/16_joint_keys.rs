//! Three parties make a key that none of them holds; one leaves, and the other two decrypt what was computed.
//!
//! The parties are threads here. Over a network each is a process with `tls::Tls` in the place of the queues.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, thread};

use synchromesh::bgv::{Bgv, Context, Evaluator, Params, ParamsLiteral, Rotations};
use synchromesh::rlwe::ring::{Cpu, Threads};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh_parties::joint::{JointKeys, KeyShare, Plan, Quorum, Wanted, generate};
use synchromesh_parties::session::Session;
use synchromesh_parties::transport::InProcess;

const PARTIES: usize = 3;
const ROTATIONS: i64 = 20;
const CIPHERTEXTS: usize = 100;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Runs `party` on a thread for each member, and returns what each got, with the bytes it sent.
fn together<R: Send>(
    members: &[usize],
    party: impl Fn(&mut Session<InProcess>, usize) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let start = Instant::now();
    let transports = InProcess::mesh(members.len(), Duration::from_secs(60));
    let results = thread::scope(|scope| {
        let party = &party;
        let run = |(transport, &member)| {
            scope.spawn(move || {
                let mut session = Session::new(transport, "an example")?;
                let result = party(&mut session, member)?;
                Ok((result, session.traffic()))
            })
        };
        let threads: Vec<_> = transports.into_iter().zip(members).map(run).collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a party panicked".into())));
        joined.collect::<Result<Vec<(R, (u64, u64))>>>()
    })?;
    if let Some((_, (rounds, bytes))) = results.first() {
        let (seconds, megabytes) = (start.elapsed().as_secs_f64(), *bytes as f64 / 1e6);
        println!("  {seconds:.2} s, {rounds} rounds, {megabytes:.1} MB sent by each");
    }
    Ok(results.into_iter().map(|(result, _)| result).collect())
}

fn main() -> Result<()> {
    // 128 bits of security, at N = 2^14; certificates are those of keys that three have made.
    let literal = ParamsLiteral {
        log_n: 14,
        t: "65537".to_owned(),
        q_bits: vec![56, 55, 55, 55, 55],
        p_bits: vec![58, 58],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 3,
        security: Security::Bits128,
        primes: None,
    };
    let params = Params::new(literal)?.with_parties(PARTIES);
    // Each party computes on its own thread.
    let cpu = Cpu::open(Arc::clone(params.rlwe().ring()))?.with_threads(Threads::ONE);
    let context = Context::with_backend(params, cpu)?;
    let plan = Plan::any_of(2, PARTIES);
    let wanted = Wanted::whole::<Bgv>(&context, context.params().plans(), &Rotations::by(1..=ROTATIONS))?;

    println!("{PARTIES} parties make a key with {ROTATIONS} rotations:");
    let make = |session: &mut Session<InProcess>, _| Ok(generate(session, context.rlwe(), &plan, &wanted)?);
    let made: Vec<(JointKeys, KeyShare)> = together(&[0, 1, 2], make)?;
    let directory = env::temp_dir().join(format!("synchromesh-joint-keys-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let journal = |member: usize| directory.join(format!("{member}.journal"));
    for (member, (_, share)) in made.iter().enumerate() {
        share.begin_journal(&journal(member))?;
    }
    let (keys, shares): (Vec<JointKeys>, Vec<KeyShare>) = made.into_iter().unzip();
    let Some(JointKeys { public, evaluation, .. }) = keys.into_iter().next() else { return Err("no keys".into()) };

    // Anybody encrypts and computes, with keys that are ordinary ones.
    let mut randomness = Randomness::from_os();
    let evaluator = Evaluator::new(&context, Some(Arc::new(evaluation)));
    let mut results = Vec::with_capacity(CIPHERTEXTS);
    for i in 0..CIPHERTEXTS as i64 {
        let x = context.encrypt(&public, &context.encode(&[i, 2, 3, 4][..])?, &mut randomness)?;
        results.push(evaluator.square(&evaluator.rotate_rows(&x, 1)?)?);
    }

    println!("two of them decrypt {CIPHERTEXTS} ciphertexts:");
    let given: Vec<_> = results.iter().collect();
    let decrypt = |session: &mut Session<InProcess>, member: usize| {
        let mut journal = shares[member].open_journal(&journal(member))?;
        let mut quorum = Quorum::meet(session, context.rlwe(), &shares[member])?;
        Ok(quorum.decrypt::<Bgv>(&context, &mut journal, &given, 0.0)?)
    };
    let decrypted = together(&[2, 0], decrypt)?;
    for opened in decrypted.iter().flatten() {
        assert_eq!(opened.values.words()?[..3], [4, 9, 16]);
    }
    println!("  each square is right");

    println!("and once more:");
    match together(&[0, 1], decrypt) {
        Err(error) => println!("  refused: {error}"),
        Ok(_) => return Err("a share was shown twice".into()),
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
