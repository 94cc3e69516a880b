//! Shared by the tests of this crate: small insecure parameters, and decryption by big integers as the judge.
#![allow(unreachable_pub, missing_docs, reason = "shared by the files of one test program")]

use std::sync::Arc;

use num_bigint::{BigInt, BigUint};
use num_traits::{Signed, Zero};
use synchromesh_ring::prime::ntt_primes_excluding;
use synchromesh_ring::rns::compose_vartime;
use synchromesh_ring::{Backend, Coeff, Counting, Cpu, IndexSet, Ntt, Poly};
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::{
    Ciphertext, Context, Noise, Params, ParamsLiteral, Randomness, SecretKey, Security, SwitchDomain,
};

pub type Counted = Counting<Cpu>;

/// Primes of the given widths, all different.
pub fn chain(log_n: u32, widths: &[u32]) -> Vec<u64> {
    let mut primes: Vec<u64> = Vec::new();
    for &w in widths {
        let next = ntt_primes_excluding(w, log_n, 1, &primes).unwrap()[0];
        primes.push(next);
    }
    primes
}

pub fn literal(log_n: u32, q: &[u32], p: &[u32], t: &str) -> ParamsLiteral {
    let widths: Vec<u32> = q.iter().chain(p).copied().collect();
    let primes = chain(log_n, &widths);
    ParamsLiteral {
        tag: "test".to_owned(),
        log_n,
        q: primes[..q.len()].to_vec(),
        p: primes[q.len()..].to_vec(),
        aux: vec![],
        level_limbs: vec![],
        schedule: Default::default(),
        error_multiple: t.to_owned(),
        error: Default::default(),
        security: Security::Insecure,
    }
}

pub fn counted(literal: ParamsLiteral) -> Arc<Context<Counted>> {
    let params = Params::new(literal).unwrap();
    let cpu = Cpu::open(Arc::clone(params.ring())).unwrap();
    Context::with_backend(params, Counting::new(cpu))
}

/// A message polynomial with coefficients below t (or below 2^20 for t = 1), as integers and on the device.
pub fn message<B: Backend>(context: &Context<B>, level: usize, salt: u64) -> (Vec<BigInt>, Poly<B, Coeff>) {
    let params = context.params();
    let modulus = if params.error_multiple() == &BigUint::from(1u32) {
        BigUint::from(1u32) << 20
    } else {
        params.error_multiple().clone()
    };
    let value = |i: u64| {
        let mut x = BigUint::from(i.wrapping_add(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for round in 0..3u64 {
            x = (x << 64) + (i ^ (salt << round)).wrapping_mul(0xd134_2543_de82_ef95);
        }
        x % &modulus
    };
    let m: Vec<BigUint> = (0..params.n() as u64).map(value).collect();
    let primes = params.level(level).unwrap();
    let mut words = vec![0; primes.len() * params.n()];
    for (r, limb) in words.chunks_exact_mut(params.n()).enumerate() {
        let q = params.ring().modulus(primes.as_slice()[r]).value();
        for (w, x) in limb.iter_mut().zip(&m) {
            *w = (x % q).iter_u64_digits().next().unwrap_or(0);
        }
    }
    let poly = Poly::from_words(context.backend(), primes, &words).unwrap();
    (m.into_iter().map(BigInt::from).collect(), poly)
}

/// The coefficients of a polynomial as centred integers.
pub fn centred<B: Backend>(context: &Context<B>, poly: &Poly<B, Coeff>) -> Vec<BigInt> {
    let params = context.params();
    let words = poly.to_words(context.backend()).unwrap();
    let product = BigInt::from(params.ring().product(poly.primes()));
    let half = &product / 2;
    (0..params.n())
        .map(|i| {
            let residues: Vec<u64> = (0..poly.primes().len()).map(|r| words[r * params.n() + i]).collect();
            let x = BigInt::from(compose_vartime(params.ring(), poly.primes(), &residues).unwrap());
            if x > half { x - &product } else { x }
        })
        .collect()
}

/// log2 of the largest |e| in phase = m + t e, which must hold exactly modulo Q.
pub fn error_bits<B: Backend, D: SwitchDomain>(
    context: &Context<B>,
    secret: &SecretKey<B>,
    ct: &Ciphertext<B, D>,
    m: &[BigInt],
) -> f64 {
    let params = context.params();
    let phase = centred(context, secret.phase(context, ct).unwrap().poly());
    let product = BigInt::from(params.ring().product(params.level(ct.level()).unwrap()));
    let t = BigInt::from(params.error_multiple().clone());
    let half = &product / 2;
    let mut largest = BigInt::zero();
    for (x, m) in phase.iter().zip(m) {
        let mut e = (x - m) % &product;
        if e > half {
            e -= &product;
        }
        if e < -half.clone() {
            e += &product;
        }
        assert!((&e % &t).is_zero(), "the phase minus the message is no multiple of t");
        largest = largest.max((e / &t).abs());
    }
    log2(&largest)
}

pub fn log2(x: &BigInt) -> f64 {
    let bits = x.bits();
    if bits < 60 {
        return x.to_string().parse::<f64>().unwrap().log2();
    }
    let top: BigInt = x >> (bits - 52);
    top.to_string().parse::<f64>().unwrap().log2() + (bits - 52) as f64
}

/// m(X^g).
pub fn automorphism(m: &[BigInt], g: usize) -> Vec<BigInt> {
    let n = m.len();
    let mut out = vec![BigInt::zero(); n];
    for (i, x) in m.iter().enumerate() {
        let to = i * g % (2 * n);
        if to < n {
            out[to] = x.clone();
        } else {
            out[to - n] = -x;
        }
    }
    out
}

/// a b in Z[X]/(X^N + 1).
pub fn product(a: &[BigInt], b: &[BigInt]) -> Vec<BigInt> {
    let n = a.len();
    let mut out = vec![BigInt::zero(); n];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            let term = x * y;
            if i + j < n { out[i + j] += term } else { out[i + j - n] -= term }
        }
    }
    out
}

pub struct Fixture {
    pub context: Arc<Context<Counted>>,
    pub secret: SecretKey<Counted>,
    pub randomness: Randomness,
}

pub fn fixture(literal: ParamsLiteral, seed: u64) -> Fixture {
    let context = counted(literal);
    let mut randomness = Randomness::insecure_from_number(seed);
    let secret = SecretKey::generate(&context, &mut randomness).unwrap();
    Fixture { context, secret, randomness }
}

pub fn set(indices: impl IntoIterator<Item = usize>) -> IndexSet {
    indices.into_iter().collect()
}

/// Tensor product of two slot ciphertexts, as the schemes above form it.
pub fn tensor(f: &Fixture, a: &Ciphertext<Counted, Ntt>, b: &Ciphertext<Counted, Ntt>) -> Ciphertext<Counted, Ntt> {
    let backend = f.context.backend();
    let (a, b, level, key) = (a.parts(), b.parts(), a.level(), a.key());
    let mut middle = a[0].mul(backend, &b[1]).unwrap();
    middle.mul_acc(backend, &a[1], &b[0]).unwrap();
    let parts = vec![a[0].mul(backend, &b[0]).unwrap(), middle, a[1].mul(backend, &b[1]).unwrap()];
    Ciphertext::new(f.context.params(), parts, level, key, Noise::bounded(2f64.powi(60))).unwrap()
}

/// Relinearises a product at level 4 at once, merged with a modulus switch, and in a sum; what is relinearised may be
/// off by `most` bits.
pub fn judge_relinearisation(f: &mut Fixture, switching: &KeySwitching<Counted>, most: f64) {
    let t = BigInt::from(f.context.params().error_multiple().clone());
    let (ma, a) = message(&f.context, 4, 1);
    let (mb, b) = message(&f.context, 4, 2);
    let (ca, _) = f.secret.encrypt::<Ntt>(&f.context, &a, 4, &mut f.randomness).unwrap();
    let (cb, _) = f.secret.encrypt::<Ntt>(&f.context, &b, 4, &mut f.randomness).unwrap();
    let three = tensor(f, &ca, &cb);
    let two = switching.relinearize(&f.context, &three).unwrap();
    let expected = product(&ma, &mb);
    let bits = error_bits(&f.context, &f.secret, &two, &expected);
    assert!(bits < most, "relinearised product is off by 2^{bits}");
    for level in [3, 2] {
        let merged = switching.relinearize_to(&f.context, &three, level).unwrap();
        let in_turn = two.mod_switch_to(&f.context, level).unwrap();
        let merged = centred(&f.context, f.secret.phase(&f.context, &merged).unwrap().poly());
        let in_turn = centred(&f.context, f.secret.phase(&f.context, &in_turn).unwrap().poly());
        for (x, y) in merged.iter().zip(&in_turn) {
            let d = x - y;
            assert!((&d % &t).is_zero() && log2(&(&d * &d)) / 2.0 < 12.0 + log2(&t));
        }
    }
    let lazy = switching.relinearize_sum(&f.context, &[three.duplicate(&f.context).unwrap(), three]).unwrap();
    let doubled: Vec<BigInt> = expected.iter().map(|x| 2 * x).collect();
    assert!(error_bits(&f.context, &f.secret, &lazy, &doubled) < most + 1.0);
}
