//! What the tests of BFV and BGV share: contexts, plain vectors modulo t that mirror ciphertexts, and the judge, which
//! decrypts, compares, and measures the error in the phase against the certificate.
#![allow(unreachable_pub, missing_docs, reason = "shared by the files of one test program")]

use std::sync::Arc;

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{Signed, Zero};
use synchromesh::exact::{
    Ciphertext, Context, Evaluator, Params, ParamsLiteral, Plaintext, Rotations, Scheme, log2_biguint,
};
use synchromesh::plain_modulus::PlainModulus;
use synchromesh::rlwe::ring::{Coeff, Counting, Cpu, Poly};
use synchromesh::rlwe::{Noise, PublicKey, Randomness, SecretKey, Security, SwitchDomain};
use synchromesh_testing::random::SplitMix;
use synchromesh_testing::{poly, rns};

pub type Device = Counting<Cpu>;
pub type Ct<S> = Ciphertext<S, Device>;

pub const T128: &str = "0xffffffffffffffffffffffffff820001";
/// The plaintext moduli of the suite: 2, a Fermat prime, 2^30 - 2^18 + 1, and primes of 128 and 255 bits.
pub fn moduli() -> Vec<String> {
    let widest = PlainModulus::next_slot_prime(255, 16).unwrap().to_string();
    vec!["2".to_owned(), "65537".to_owned(), "1073479681".to_owned(), T128.to_owned(), widest]
}

pub fn literal(
    log_n: u32,
    t: &str,
    q_bits: &[u32],
    p_bits: &[u32],
    level_limbs: &[usize],
    omega: usize,
) -> ParamsLiteral {
    ParamsLiteral {
        log_n,
        t: t.to_owned(),
        q_bits: q_bits.to_vec(),
        p_bits: p_bits.to_vec(),
        level_limbs: level_limbs.to_vec(),
        schedule: Default::default(),
        omega,
        security: Security::Insecure,
        primes: None,
    }
}

/// Parameters of `depth` levels with `per_level` bits each in primes of unequal widths, and `base` bits at level 0.
pub fn deep(log_n: u32, t: &str, base: u32, per_level: u32, depth: usize) -> ParamsLiteral {
    let split = |bits: u32, wide: u32| -> Vec<u32> {
        let count = bits.div_ceil(wide);
        let even = bits / count;
        (0..count).map(|i| even + u32::from(i < bits % count)).collect()
    };
    let mut q_bits = split(base.max(24), 59);
    let mut limbs = vec![q_bits.len()];
    for level in 0..depth {
        q_bits.extend(split(per_level + (level % 2) as u32, 57));
        limbs.push(q_bits.len());
    }
    let omega = q_bits.len().div_ceil(4);
    let digit: u32 = q_bits.chunks(q_bits.len().div_ceil(omega)).map(|d| d.iter().sum()).max().unwrap();
    literal(log_n, t, &q_bits, &vec![61; (digit as usize + 8).div_ceil(60)], &limbs, omega)
}

/// Everything a test needs.
pub struct Fixture<S: Scheme> {
    pub context: Arc<Context<S, Device>>,
    pub secret: SecretKey<Device>,
    pub public: PublicKey<Device>,
    pub evaluator: Evaluator<S, Device>,
    pub randomness: Randomness,
    pub random: SplitMix,
}

/// A vector modulo t in the encoding of the fixture, in [0, t).
pub type Model = Vec<BigInt>;

pub fn fixture<S: Scheme>(literal: ParamsLiteral, rotations: &Rotations, seed: u64) -> Fixture<S> {
    let params = Params::<S>::new(literal).unwrap();
    let cpu = Cpu::open(Arc::clone(params.rlwe().ring())).unwrap();
    fixture_in(Context::with_backend(params, Counting::new(cpu)).unwrap(), rotations, seed)
}

pub fn fixture_in<S: Scheme>(context: Arc<Context<S, Device>>, rotations: &Rotations, seed: u64) -> Fixture<S> {
    let mut randomness = Randomness::insecure_from_number(seed);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let keys = context.generate_evaluation_keys(&secret, rotations, &mut randomness).unwrap();
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    Fixture { context, secret, public, evaluator, randomness, random: SplitMix::new(seed) }
}

impl<S: Judged> Fixture<S> {
    pub fn t(&self) -> BigInt {
        BigInt::from(self.context.params().t().value().clone())
    }

    pub fn has_slots(&self) -> bool {
        self.context.slot_encoder().is_ok()
    }

    /// N values that fill all of [0, t).
    pub fn random(&mut self) -> Model {
        let t = self.t();
        self.random.int_poly(self.context.params().n(), &t).iter().map(|x| x.mod_floor(&t)).collect()
    }

    pub fn encode(&self, m: &Model) -> Plaintext {
        if self.has_slots() { self.context.encode(m) } else { self.context.encode_coefficients(m) }.unwrap()
    }

    pub fn decode(&self, plaintext: &Plaintext) -> Model {
        let centred = if self.has_slots() {
            self.context.decode_big(plaintext)
        } else {
            self.context.decode_coefficients_big(plaintext)
        };
        let t = self.t();
        centred.unwrap().iter().map(|x| x.mod_floor(&t)).collect()
    }

    pub fn encrypt_at(&mut self, m: &Model, level: usize) -> Ct<S> {
        let plaintext = self.encode(m);
        self.context.encrypt_at(&self.public, &plaintext, level, &mut self.randomness).unwrap()
    }

    pub fn encrypt(&mut self, m: &Model) -> Ct<S> {
        self.encrypt_at(m, self.context.params().top_level())
    }

    pub fn reduce(&self, m: Model) -> Model {
        let t = self.t();
        m.into_iter().map(|x| x.mod_floor(&t)).collect()
    }

    pub fn add(&self, a: &Model, b: &Model) -> Model {
        self.reduce(poly::add(a, b))
    }

    pub fn sub(&self, a: &Model, b: &Model) -> Model {
        self.reduce(poly::sub(a, b))
    }

    pub fn scale(&self, a: &Model, c: &BigInt) -> Model {
        self.reduce(poly::scale(a, c))
    }

    /// Slot by slot, or as a negacyclic convolution.
    pub fn mul(&self, a: &Model, b: &Model) -> Model {
        let product = if self.has_slots() { a.iter().zip(b).map(|(x, y)| x * y).collect() } else { poly::mul(a, b) };
        self.reduce(product)
    }

    /// Both rows left by k.
    pub fn rotate(&self, a: &Model, k: i64) -> Model {
        let half = a.len() / 2;
        let shift = k.rem_euclid(half as i64) as usize;
        let row = |r: usize| (0..half).map(move |i| r * half + (i + shift) % half);
        row(0).chain(row(1)).map(|i| a[i].clone()).collect()
    }

    /// The rows swapped.
    pub fn swap(&self, a: &Model) -> Model {
        let half = a.len() / 2;
        a[half..].iter().chain(&a[..half]).cloned().collect()
    }

    /// Decrypts and compares; measures the error, which the certificate must cover; returns the bits by which the
    /// certificate exceeds it.
    pub fn judge(&self, ct: &Ct<S>, expected: &Model) -> f64 {
        let measured = S::measure(self, ct, &self.encode(expected));
        let bound = ct.noise().bound(self.context.params().log_n(), 128);
        assert!(measured <= bound + 0.001, "error 2^{measured:.2} above its certificate 2^{bound:.2}");
        let decrypted = self.context.decrypt(&self.secret, ct).unwrap();
        assert!(&self.decode(&decrypted) == expected, "decrypted wrongly at level {}", ct.level());
        bound - measured
    }

    /// The centred coefficients of the phase.
    pub fn phase(&self, ct: &Ct<S>) -> Vec<BigInt> {
        let phase = self.secret.phase(self.context.rlwe(), ct.inner()).unwrap();
        self.integers(phase.poly())
    }

    /// (phase, 0) at the top level, said to have errors of at most e.
    pub fn trivial(&self, phase: &[BigInt], e: &BigInt) -> Ct<S> {
        let (params, backend) = (self.context.params().rlwe(), self.context.backend());
        let primes: Vec<u64> = params.q().iter().map(|i| params.ring().modulus(i).value()).collect();
        let words = rns::decompose(phase, &primes).concat();
        let body = Poly::<_, Coeff>::from_words(backend, params.q(), &words).unwrap();
        let parts = vec![S::Domain::from_coeff(backend, body).unwrap(), Poly::zero(backend, params.q()).unwrap()];
        let noise = Noise::at_most(log2_biguint(e.magnitude()));
        let inner =
            synchromesh::rlwe::Ciphertext::new(params, parts, params.top_level(), self.secret.id(), noise).unwrap();
        Ciphertext::from_parts(self.context.params(), inner, S::plain_header(self)).unwrap()
    }

    fn integers(&self, poly: &Poly<Device, Coeff>) -> Vec<BigInt> {
        let ring = self.context.params().rlwe().ring();
        let words = poly.to_words(self.context.backend()).unwrap();
        let limbs: Vec<Vec<u64>> = words.chunks_exact(ring.n()).map(<[u64]>::to_vec).collect();
        let primes: Vec<u64> = poly.primes().iter().map(|i| ring.modulus(i).value()).collect();
        rns::compose_centred(&limbs, &primes)
    }

    pub fn coefficients(&self, plaintext: &Plaintext) -> Vec<BigInt> {
        self.context.decode_coefficients_big(plaintext).unwrap()
    }

    pub fn modulus(&self, level: usize) -> BigInt {
        BigInt::from(self.context.params().modulus(level).unwrap())
    }
}

/// A scheme whose error can be measured.
pub trait Judged: Scheme {
    /// log2 of the largest error of a ciphertext of `expected`.
    fn measure(f: &Fixture<Self>, ct: &Ct<Self>, expected: &Plaintext) -> f64;
    /// The phase of the centred message m with the integer error e.
    fn phase_of(f: &Fixture<Self>, m: &BigInt, e: &BigInt) -> BigInt;
    /// A header of 1 (no correction).
    fn plain_header(f: &Fixture<Self>) -> Self::Header;
}

/// log2 of the largest |numerator| / denominator.
pub fn largest(numerators: impl Iterator<Item = BigInt>, denominator: &BigInt) -> f64 {
    let most = numerators.map(|x| x.abs()).max().unwrap_or_default();
    if most.is_zero() {
        f64::NEG_INFINITY
    } else {
        log2_biguint(most.magnitude()) - log2_biguint(denominator.magnitude())
    }
}

/// x - t [x/t] in [-t/2, t/2].
pub fn centred(x: &BigInt, t: &BigInt) -> BigInt {
    let r = x.mod_floor(t);
    if &r + &r > *t { r - t } else { r }
}

pub fn big(x: &str) -> BigUint {
    x.parse::<PlainModulus>().unwrap().value().clone()
}
