//! Key switches from a seed on any backend: what they decrypt to is judged, all that they make is kept as words.
#![allow(dead_code, reason = "the packed checks use a part of these")]

pub(crate) mod counted;
pub(crate) mod methods;
pub(crate) mod operations;
pub(crate) mod schemes;

use std::io::Write;
use std::sync::Arc;

use synchromesh_ring::prime::ntt_primes_excluding;
use synchromesh_ring::{Backend, Coeff, Ntt, Poly};
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::{
    Ciphertext, Context, EvaluationKeys, LevelPlans, Params, ParamsLiteral, PublicKey, Randomness, SecretKey, Security,
    Source, SwitchDomain,
};

const LOG_N: u32 = 10;
/// The message is this constant polynomial plus X.
const MESSAGE: u64 = 1234;

/// Prints a line that the test harness does not keep to itself.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Parameters with primes of these widths; without special primes the highest level lacks one.
pub(crate) fn params(q: &[u32], p: &[u32], aux: &[u32], t: &str) -> Params {
    params_at(LOG_N, q, p, aux, t)
}

/// As [`params`], at this degree.
pub(crate) fn params_at(log_n: u32, q: &[u32], p: &[u32], aux: &[u32], t: &str) -> Params {
    let mut primes: Vec<u64> = Vec::new();
    for &width in q.iter().chain(p).chain(aux) {
        primes.push(ntt_primes_excluding(width, log_n, 1, &primes).expect("a prime")[0]);
    }
    let aux = primes.split_off(q.len() + p.len());
    let p = primes.split_off(q.len());
    let level_limbs = if p.is_empty() { (1..primes.len()).collect() } else { vec![] };
    Params::new(ParamsLiteral {
        tag: "test".to_owned(),
        log_n,
        q: primes,
        p,
        aux,
        level_limbs,
        schedule: Default::default(),
        error_multiple: t.to_owned(),
        error: Default::default(),
        security: Security::Insecure,
    })
    .expect("parameters")
}

/// What a device computes from a seed: keys, encryptions, switches at two levels, phases; as words.
pub(crate) struct Run<B: Backend> {
    context: Arc<Context<B>>,
    secret: SecretKey<B>,
    pub(crate) words: Vec<u64>,
}

impl<B: Backend> Run<B> {
    pub(crate) fn new(backend: B, params: &Params, plans: &LevelPlans) -> Self {
        let context = Context::with_backend(params.clone(), backend);
        let mut randomness = Randomness::insecure_from_number(5);
        let secret = SecretKey::generate(&context, &mut randomness).expect("a key");
        let sources = [Source::Galois(3), Source::Galois(9), Source::Square];
        let top = params.top_level();
        let stored = plans.at(top);
        let keys = EvaluationKeys::generate(&context, &secret, sources, stored, &mut randomness).expect("keys");
        let public = PublicKey::generate(&context, &secret, &mut randomness).expect("a key");
        let switching = KeySwitching::new(Arc::new(keys), plans.clone());
        let mut run = Self { context, secret, words: Vec::new() };
        for level in [top, top / 2] {
            run.domain::<Ntt>(&switching, &public, level, &mut randomness);
            run.domain::<Coeff>(&switching, &public, level, &mut randomness);
        }
        run
    }

    fn domain<D: SwitchDomain>(
        &mut self,
        switching: &KeySwitching<B>,
        public: &PublicKey<B>,
        level: usize,
        randomness: &mut Randomness,
    ) {
        let context = Arc::clone(&self.context);
        let primes = context.params().level(level).expect("a level");
        let n = context.params().n();
        let mut words = vec![0; primes.len() * n];
        words.chunks_exact_mut(n).for_each(|limb| limb[..2].copy_from_slice(&[MESSAGE, 1]));
        let message = Poly::from_words(context.backend(), primes, &words).expect("upload");
        let ct = public.encrypt::<D>(&context, &message, level, randomness).expect("a ciphertext");
        let rotated = switching.automorphism(&context, &ct, 3).expect("a rotation");
        self.decrypts(&rotated, 3);
        self.keep(&rotated);
        for ct in switching.automorphisms_hoisted(&context, &ct, &[9, 3]).expect("hoisted rotations") {
            self.keep(&ct);
        }
    }

    fn keep<D: SwitchDomain>(&mut self, ct: &Ciphertext<B, D>) {
        for part in ct.parts() {
            self.words.extend(part.to_words(self.context.backend()).expect("download"));
        }
    }

    /// That a phase is the message under X -> X^g up to an error that leaves most of the modulus.
    fn decrypts<D: SwitchDomain>(&mut self, ct: &Ciphertext<B, D>, g: usize) {
        let params = self.context.params();
        let primes = params.level(ct.level()).expect("a level");
        let bound = ct.noise().bound(params.ring().log_n(), 128);
        if params.ring().log2(primes) < bound + 20.0 {
            return;
        }
        let phase = self.secret.phase(&self.context, ct).expect("a phase");
        let words = phase.poly().to_words(self.context.backend()).expect("download");
        let modulus = params.ring().modulus(primes.as_slice()[0]);
        let t = params.ring().residues(primes, params.error_multiple())[0];
        let inverse = modulus.inv(t).expect("t is invertible");
        let bound = bound.exp2();
        // The error is small against the first prime where its bound is.
        if bound < modulus.value() as f64 / 32.0 {
            for (i, &word) in words[..params.n()].iter().enumerate() {
                let m = if i == 0 { MESSAGE } else { u64::from(i == g) };
                let error = modulus.mul(modulus.sub(word, modulus.reduce(m)), inverse);
                let error = error.min(modulus.value() - error);
                assert!(error as f64 <= bound, "coefficient {i} is off by {error}, more than {bound}");
            }
        }
        self.words.extend(words);
    }
}
