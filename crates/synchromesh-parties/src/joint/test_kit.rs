//! What the tests of joint keys share: small insecure parameters of each scheme, plain vectors, parties as threads, and the
//! judge, which has all shares of the secret.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive};
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::ckks::{self, Ckks, Complex64};
use synchromesh::exact::{self, Rotations};
use synchromesh::rlwe::ring::rns::compose_vartime;
use synchromesh::rlwe::ring::{Coeff, Cpu, Poly, Ring};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::{Context, Randomness, Security, SwitchDomain};
use synchromesh::scheme::{Encryptor, Scheme, Values};

use super::generate::generate_as;
use super::*;
use crate::Result;
use crate::journal::Decryptions;
use crate::proven::Cheat;
use crate::session::Session;
use crate::tampering::{Tamper, Tampering};

/// How long a party waits: an honest one may have the machine for itself or not.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A scheme whose results tests can judge.
pub(super) trait Judged: Scheme {
    /// Parameters of N = 2^10 for keys of so many parties.
    fn small(parties: usize) -> Self::Params;
    /// The same with special primes so few that the errors of keys show in every switch.
    fn tight(parties: usize) -> Self::Params;
    fn plans(params: &Self::Params) -> &synchromesh::rlwe::LevelPlans;
    /// A vector for all slots.
    fn sample(context: &Self::Context<Cpu>, seed: u64) -> Values;
    fn product(context: &Self::Context<Cpu>, x: &Values, y: &Values) -> Values;
    fn rotated(x: &Values, k: i64) -> Values;
    /// Whether both are the same, to so many bits.
    fn agree(x: &Values, y: &Values, bits: f64) -> bool;
    /// log2 of the largest error of a ciphertext of these values under the sum of all shares, and of its certificate.
    fn errors(
        context: &Self::Context<Cpu>,
        x: &Self::Ciphertext<Cpu>,
        secret: &SecretPoly<Cpu>,
        values: &Values,
    ) -> [f64; 2];
}

pub(super) fn exact_literal(t: &str, q: &[u32], p: &[u32], omega: usize) -> exact::ParamsLiteral {
    exact::ParamsLiteral {
        log_n: 10,
        t: t.to_owned(),
        q_bits: q.to_vec(),
        p_bits: p.to_vec(),
        level_limbs: vec![],
        schedule: Default::default(),
        omega,
        security: Security::Insecure,
        primes: None,
    }
}

/// Splits into rows of half the slots.
fn turn<T: Clone>(x: &[T], k: i64, row: usize) -> Vec<T> {
    let at = |i: usize| (i / row) * row + (i as i64 % row as i64 + k).rem_euclid(row as i64) as usize;
    (0..x.len()).map(|i| x[at(i)].clone()).collect()
}

/// c_0 + c_1 s as integers, centred, and their modulus.
fn phase<D: SwitchDomain>(
    context: &Context<Cpu>,
    parts: &[Poly<Cpu, D>],
    secret: &SecretPoly<Cpu>,
) -> (Vec<BigInt>, BigInt) {
    let (backend, ring) = (context.backend(), context.params().ring());
    let primes = parts[0].primes();
    let own = secret.poly().restrict(backend, primes).unwrap();
    let mut sum = D::to_ntt(backend, &parts[1]).unwrap().mul(backend, &own).unwrap();
    sum.add_assign(backend, &D::to_ntt(backend, &parts[0]).unwrap()).unwrap();
    (integers(ring, backend, sum.into_coeff(backend).unwrap()), BigInt::from(ring.product(primes)))
}

/// The coefficients as integers, centred.
pub(super) fn integers(ring: &Ring, backend: &Cpu, x: Poly<Cpu, Coeff>) -> Vec<BigInt> {
    let (words, n) = (x.to_words(backend).unwrap(), ring.n());
    let modulus = BigInt::from(ring.product(x.primes()));
    let one = |i: usize| {
        let residues: Vec<u64> = words.iter().skip(i).step_by(n).copied().collect();
        centred(&BigInt::from(compose_vartime(ring, x.primes(), &residues).unwrap()), &modulus)
    };
    (0..n).map(one).collect()
}

fn centred(x: &BigInt, modulus: &BigInt) -> BigInt {
    let x = x.mod_floor(modulus);
    if &x * 2 > *modulus { x - modulus } else { x }
}

fn log2(x: &BigInt) -> f64 {
    let shift = x.bits().saturating_sub(60);
    (x.abs() >> shift).to_f64().unwrap_or(f64::NAN).log2() + shift as f64
}

fn largest(x: impl Iterator<Item = BigInt>) -> f64 {
    x.map(|x| log2(&x)).fold(f64::NEG_INFINITY, f64::max)
}

/// An exact scheme, whose errors are integers in the phase.
pub(super) trait Exact: exact::Scheme {
    /// The error, rounded away from 0, of a coefficient p of a phase modulo Q with the message m.
    fn error(header: &Self::Header, p: &BigInt, m: &BigInt, modulus: &BigInt, t: &BigInt) -> BigInt;
}

impl Exact for Bfv {
    /// p is (Q/t) m + e.
    fn error((): &(), p: &BigInt, m: &BigInt, modulus: &BigInt, t: &BigInt) -> BigInt {
        centred(&(p * t - m * modulus), &(modulus * t)) / t
    }
}

impl Exact for Bgv {
    /// p is f m + t e. A phase that is not the message modulo t has no error that a certificate allows.
    fn error(factor: &synchromesh::bgv::Factor, p: &BigInt, m: &BigInt, modulus: &BigInt, t: &BigInt) -> BigInt {
        let (e, rest) = (p - centred(&(m * BigInt::from(factor.value().clone())), t)).div_rem(t);
        if rest == BigInt::ZERO { e } else { modulus.clone() }
    }
}

impl<S: Exact> Judged for S {
    fn small(parties: usize) -> Self::Params {
        // The last digit has one short prime.
        let literal = exact_literal("65537", &[58, 57, 55, 51, 40], &[61, 61], 3);
        exact::Params::new(literal).unwrap().with_parties(parties)
    }

    fn tight(parties: usize) -> Self::Params {
        let literal = exact_literal("65537", &[58, 57, 55, 51, 40], &[59], 5);
        exact::Params::new(literal).unwrap().with_parties(parties)
    }

    fn plans(params: &Self::Params) -> &synchromesh::rlwe::LevelPlans {
        params.plans()
    }

    fn sample(context: &exact::Context<S>, seed: u64) -> Values {
        let t = BigInt::from(context.params().t().value().clone());
        let mut bytes = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
        let mut one = || {
            let mut word = [0; 40];
            bytes.fill(&mut word);
            centred(&BigInt::from(BigUint::from_bytes_le(&word)), &t)
        };
        (0..context.params().n()).map(|_| one()).collect::<Vec<BigInt>>().into()
    }

    fn product(context: &exact::Context<S>, x: &Values, y: &Values) -> Values {
        let t = BigInt::from(context.params().t().value().clone());
        let [x, y] = [x, y].map(|x| x.integers("a test").unwrap());
        x.iter().zip(&y).map(|(x, y)| centred(&(x * y), &t)).collect::<Vec<BigInt>>().into()
    }

    fn rotated(x: &Values, k: i64) -> Values {
        let x = x.integers("a test").unwrap();
        turn(&x, k, x.len() / 2).into()
    }

    fn agree(x: &Values, y: &Values, _: f64) -> bool {
        x.integers("a test").unwrap() == y.integers("a test").unwrap()
    }

    fn errors(
        context: &exact::Context<S>,
        x: &exact::Ciphertext<S>,
        secret: &SecretPoly<Cpu>,
        values: &Values,
    ) -> [f64; 2] {
        let (phase, modulus) = phase(context.rlwe(), x.inner().parts(), secret);
        let t = BigInt::from(context.params().t().value().clone());
        let encoded = context.encode(&values.integers("a test").unwrap()[..]).unwrap();
        let message = context.decode_coefficients_big(&encoded).unwrap();
        let errors = phase.iter().zip(&message).map(|(p, m)| S::error(x.header(), p, m, &modulus, &t));
        [largest(errors), x.noise().bound(10, 128)]
    }
}

impl Judged for Ckks {
    fn small(parties: usize) -> ckks::Params {
        let literal = ckks::ParamsLiteral {
            log_n: 10,
            log_scale: 80,
            q_bits: vec![50, 50, 40, 40, 40, 40],
            p_bits: vec![60, 60],
            level_limbs: vec![2, 4, 6],
            schedule: Default::default(),
            omega: 3,
            log_scales: vec![],
            mode: ckks::Mode::Auto,
            security: Security::Insecure,
            primes: None,
        };
        ckks::Params::new(literal).unwrap().with_parties(parties)
    }

    fn tight(parties: usize) -> ckks::Params {
        let literal = ckks::ParamsLiteral {
            log_scale: 40,
            q_bits: vec![60, 40, 40],
            p_bits: vec![60],
            level_limbs: vec![],
            primes: None,
            ..Self::small(1).literal().clone()
        };
        ckks::Params::new(literal).unwrap().with_parties(parties)
    }

    fn plans(params: &ckks::Params) -> &synchromesh::rlwe::LevelPlans {
        params.plans()
    }

    fn sample(context: &ckks::Context, seed: u64) -> Values {
        let mut bytes = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
        let mut one = || {
            let mut word = [0; 8];
            bytes.fill(&mut word);
            (u64::from_le_bytes(word) >> 11) as f64 / 2f64.powi(52) - 1.0
        };
        let slot = |_| Complex64::new(0.7 * one(), 0.7 * one());
        (0..context.params().slots()).map(slot).collect::<Vec<Complex64>>().into()
    }

    fn product(_: &ckks::Context, x: &Values, y: &Values) -> Values {
        let [x, y] = [x, y].map(|x| x.complexes("a test").unwrap());
        let times =
            |(x, y): (&Complex64, &Complex64)| Complex64::new(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
        x.iter().zip(y.iter()).map(times).collect::<Vec<Complex64>>().into()
    }

    fn rotated(x: &Values, k: i64) -> Values {
        let x = x.complexes("a test").unwrap();
        turn(&x, k, x.len()).into()
    }

    fn agree(x: &Values, y: &Values, bits: f64) -> bool {
        distance(x, y) < (-bits).exp2()
    }

    /// In the slots, from a decryption without noise.
    fn errors(context: &ckks::Context, x: &ckks::Ciphertext, secret: &SecretPoly<Cpu>, values: &Values) -> [f64; 2] {
        let rlwe = context.rlwe();
        let parts = x.inner().parts();
        let (integers, _) = phase(rlwe, parts, secret);
        let primes = parts[0].primes();
        let ring = rlwe.params().ring();
        let words: Vec<u64> = primes
            .iter()
            .flat_map(|prime| {
                let q = BigInt::from(ring.modulus(prime).value());
                integers.iter().map(move |x| x.mod_floor(&q).to_u64().unwrap()).collect::<Vec<u64>>()
            })
            .collect();
        let phase: Poly<Cpu, Coeff> = Poly::from_words(rlwe.backend(), primes, &words).unwrap();
        let hiding = synchromesh::opening::Hiding {
            parties: 1,
            security: 30,
            decryptions: 1,
            precision: -1000.0,
            encrypted: true,
            proven: false,
        };
        let opening = Self::opening(context, x, &hiding).unwrap();
        let found = Self::opened(context, &opening, &phase).unwrap();
        [distance(&found, values).log2(), context.error_bound(x).log2()]
    }
}

fn distance(x: &Values, y: &Values) -> f64 {
    let [x, y] = [x, y].map(|x| x.complexes("a test").unwrap());
    x.iter().zip(y.iter()).map(|(x, y)| (x.re - y.re).hypot(x.im - y.im)).fold(0.0, f64::max)
}

/// The secret that these members hold.
pub(super) fn secret(context: &Context<Cpu>, shares: &[&KeyShare]) -> SecretPoly<Cpu> {
    let (backend, plan) = (context.backend(), shares[0].plan);
    let shares = &shares[..plan.threshold];
    let members: Vec<usize> = shares.iter().map(|share| share.member).collect();
    let mut sum = Poly::zero(backend, &context.params().keyed()).unwrap();
    for share in shares {
        sum.add_assign(backend, share.part(context, &members).unwrap().poly()).unwrap();
    }
    SecretPoly::new(sum)
}

/// What one party has once keys are made.
pub(super) struct Party {
    pub(super) keys: JointKeys,
    pub(super) share: KeyShare,
    pub(super) journal: PathBuf,
}

/// Parties with a joint key, who have met before.
pub(super) struct Kit<S: Scheme> {
    pub(super) evaluator: S::Evaluator<Cpu>,
    pub(super) parties: Vec<Party>,
    pub(super) root: tempfile::TempDir,
    pub(super) randomness: Randomness,
}

/// Runs `party` on a thread for each of `parties`; frames of the last pass through `tamper`.
pub(super) fn run<R: Send>(
    parties: usize,
    (patience, tamper): (Duration, Option<Tamper>),
    party: impl Fn(usize, Tampering) -> R + Sync,
) -> Vec<R> {
    let transports = Tampering::mesh(parties, patience, tamper).into_iter().enumerate();
    thread::scope(|scope| {
        let party = &party;
        let threads: Vec<_> = transports.map(|(i, transport)| scope.spawn(move || party(i, transport))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

impl<S: Judged> Kit<S> {
    pub(super) fn new(params: S::Params, plan: Plan, rotations: &Rotations) -> Self {
        let wanted =
            |context: &S::Context<Cpu>, params: &S::Params| Wanted::whole::<S>(context, S::plans(params), rotations);
        Self::with_keys(params, plan, wanted)
    }

    pub(super) fn with_keys(
        params: S::Params,
        plan: Plan,
        wanted: impl Fn(&S::Context<Cpu>, &S::Params) -> Result<Wanted>,
    ) -> Self {
        Self::with_cheat(params, plan, wanted, Cheat::None)
    }

    /// The same, where the last party does something that proofs of shares let through.
    pub(super) fn with_cheat(
        params: S::Params,
        plan: Plan,
        wanted: impl Fn(&S::Context<Cpu>, &S::Params) -> Result<Wanted>,
        cheat: Cheat,
    ) -> Self {
        let cpu = Cpu::open(Arc::clone(S::ring(&params))).unwrap();
        let list = |e: &S::Evaluator<Cpu>, params| wanted(S::context(e), params).unwrap();
        let plain = S::open(S::with_joint(&params, &plan), cpu).unwrap();
        let wanted = list(&plain, &params);
        let root = tempfile::tempdir().unwrap();
        let make = |i: usize, transport| {
            let mut session = Session::new(transport, "keys").unwrap();
            let rlwe = S::rlwe(S::context(&plain));
            let conduct = if i + 1 == plan.parties { cheat } else { Cheat::None };
            let (keys, share) = generate_as(&mut session, rlwe, &plan, &wanted, &conduct).unwrap();
            let journal = root.path().join(format!("{i}.journal"));
            share.begin_journal(&journal).unwrap();
            Party { keys, share, journal }
        };
        let mut parties = run(plan.parties, (PATIENCE, None), make);
        let evaluation = std::mem::replace(
            &mut parties[0].keys.evaluation,
            synchromesh::rlwe::EvaluationKeys::new(synchromesh::rlwe::KeyId::NONE),
        );
        let evaluator = S::with_keys(&plain, Arc::new(evaluation));
        Self { evaluator, parties, root, randomness: Randomness::insecure_from_number(7) }
    }

    pub(super) fn context(&self) -> &Arc<S::Context<Cpu>> {
        S::context(&self.evaluator)
    }

    pub(super) fn rlwe(&self) -> &Context<Cpu> {
        S::rlwe(self.context())
    }

    pub(super) fn encrypt(&mut self, values: &Values) -> S::Ciphertext<Cpu> {
        let context = Arc::clone(S::context(&self.evaluator));
        let level = S::rlwe(&context).params().top_level();
        let by = Encryptor::Public(&self.parties[0].keys.public);
        S::encrypt(&context, &by, values, 1.0, level, &mut self.randomness).unwrap()
    }

    /// s, which nobody should ever know: of as many shares as it takes.
    pub(super) fn secret(&self) -> SecretPoly<Cpu> {
        secret(self.rlwe(), &self.parties.iter().map(|party| &party.share).collect::<Vec<_>>())
    }

    pub(super) fn journal(&self, member: usize) -> Decryptions {
        let party = &self.parties[member];
        party.share.open_journal(&party.journal).unwrap()
    }

    /// What each of these members gets of a decryption; frames of the last pass through `tamper`.
    pub(super) fn decrypt(
        &self,
        members: &[usize],
        how: (Duration, Option<Tamper>),
        ciphertexts: &[&S::Ciphertext<Cpu>],
        precision: f64,
    ) -> Vec<Result<Vec<Values>>> {
        run(members.len(), how, |i, transport| {
            let mut session = Session::new(transport, "decryption")?;
            let mut journal = self.journal(members[i]);
            let mut quorum = Quorum::meet(&mut session, self.rlwe(), &self.parties[members[i]].share)?;
            let opened = quorum.decrypt::<S>(self.context(), &mut journal, ciphertexts, precision)?;
            Ok(opened.into_iter().map(|opened| opened.values).collect())
        })
    }

    /// As [`Self::decrypt`], where all goes well.
    pub(super) fn open(&self, members: &[usize], ciphertexts: &[&S::Ciphertext<Cpu>], precision: f64) -> Vec<Values> {
        let mut results = self.decrypt(members, (PATIENCE, None), ciphertexts, precision).into_iter();
        let first = results.next().unwrap().unwrap();
        for result in results {
            assert!(result.unwrap().iter().zip(&first).all(|(x, y)| S::agree(x, y, 1000.0) || x.reals() == y.reals()));
        }
        first
    }
}
