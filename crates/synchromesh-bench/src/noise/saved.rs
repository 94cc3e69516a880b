//! Bits of modulus that the circuits of ePrint 2021/204 and 2023/593 take by each model, from dry runs.

use std::sync::Arc;

use serde::Serialize;
use synchromesh::exact::{Ciphertext, Context, Evaluator, Params, ParamsLiteral, Rotations, Scheme, log2_biguint};
use synchromesh::{bfv, bgv};
use synchromesh_ring::Dry;
use synchromesh_rlwe::noise::{Estimating, FailureLimit, Model};
use synchromesh_rlwe::{Noise, PublicKey, Randomness, Security};

use crate::Error;

/// log2 q that a circuit takes by each model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Saved {
    /// The circuit.
    pub circuit: String,
    /// log2 N.
    pub log_n: u32,
    /// Expansion factor 2 sqrt(N) (ePrint 2021/204).
    pub worst_case: f64,
    /// Canonical norm, six standard deviations (ePrint 2023/593).
    pub canonical: f64,
    /// Average case, 2^-128.
    pub average: f64,
    /// Certificate, 2^-128.
    pub certificate_128: f64,
    /// Certificate, 2^-40.
    pub certificate_40: f64,
}

impl Saved {
    fn new(circuit: String, log_n: u32, bits: [f64; 5]) -> Self {
        let [worst_case, canonical, average, certificate_128, certificate_40] = bits;
        Self { circuit, log_n, worst_case, canonical, average, certificate_128, certificate_40 }
    }
}

/// A context, keys and an evaluator that compute nothing.
struct Run<S: Scheme> {
    context: Arc<Context<S, Dry>>,
    public: PublicKey<Dry>,
    evaluator: Evaluator<S, Dry>,
    randomness: Randomness,
    log2_t: f64,
}

impl<S: Scheme> Run<S> {
    fn new(log_n: u32, t: &str, limbs: usize) -> Result<Self, Error> {
        let params = Params::<S>::new(ParamsLiteral {
            log_n,
            t: t.to_owned(),
            q_bits: vec![55; limbs],
            p_bits: vec![60; limbs.div_ceil(3) + 1],
            level_limbs: Vec::new(),
            schedule: Default::default(),
            omega: 3,
            security: Security::Insecure,
            primes: None,
        })?;
        let log2_t = log2_biguint(params.t().value());
        let backend = Dry::new(Arc::clone(params.rlwe().ring()));
        let context = Context::observed(params.clone(), backend, Some(Arc::new(Estimating)))?;
        let mut randomness = Randomness::insecure_from_number(1);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?;
        let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
        Ok(Self { context, public, evaluator, randomness, log2_t })
    }

    fn encrypt(&mut self) -> Result<Ciphertext<S, Dry>, Error> {
        let plaintext = self.context.encode_coefficients(&[1u64])?;
        Ok(self.context.encrypt(&self.public, &plaintext, &mut self.randomness)?)
    }

    /// By each model, in the order of a row's numbers.
    fn bits(&self, noise: &Noise) -> [f64; 5] {
        let log_n = self.context.params().log_n();
        let estimated = |model| super::estimates(noise).by(model, log_n);
        let certified = |limit: FailureLimit| noise.bound(log_n, limit.log2_failure());
        [
            estimated(Model::WorstCase),
            estimated(Model::Canonical),
            estimated(Model::Average(FailureLimit::Negligible)),
            certified(FailureLimit::Negligible),
            certified(FailureLimit::Statistical),
        ]
    }

    /// Bits of a modulus in which errors of these sizes decrypt.
    fn modulus(&self, bits: [f64; 5]) -> [f64; 5] {
        bits.map(|b| b + self.log2_t + 1.0)
    }
}

/// The product of 2^k ciphertexts in BFV (ePrint 2021/204, Table 2), at one level.
fn product_tree(log_n: u32, k: u32) -> Result<Saved, Error> {
    let mut run = Run::<bfv::Bfv>::new(log_n, "65537", 4 + k as usize)?;
    let mut row = (0..1 << k).map(|_| run.encrypt()).collect::<Result<Vec<_>, _>>()?;
    while row.len() > 1 {
        let pairs = row.chunks_exact(2).map(|pair| run.evaluator.mul(&pair[0], &pair[1]));
        row = pairs.collect::<Result<_, _>>()?;
    }
    let bits = run.modulus(run.bits(&row[0].noise()));
    Ok(Saved::new(format!("bfv, product of 2^{k}"), log_n, bits))
}

/// A chain of BGV products each after a modulus switch (ePrint 2021/204, section 4): what a level takes, times the
/// depth, and what is left at the end.
fn levelled(log_n: u32, depth: u32) -> Result<Saved, Error> {
    let mut run = Run::<bgv::Bgv>::new(log_n, "65537", 8)?;
    let (x, y) = (run.encrypt()?, run.encrypt()?);
    let e = &run.evaluator;
    let (x, y) = (e.mod_switch(&x)?, e.mod_switch(&y)?);
    let product = e.mul(&x, &y)?;
    let (floor, grown) = (run.bits(&x.noise()), run.bits(&product.noise()));
    let last = run.modulus(floor);
    let bits = std::array::from_fn(|i| last[i] + f64::from(depth) * (grown[i] - floor[i]));
    Ok(Saved::new(format!("bgv, depth {depth}"), log_n, bits))
}

/// The circuit of a matrix triple (ePrint 2023/593, section 5): a plaintext of masks, the sum of 128 products, and the
/// product with the key of the MAC, with a modulus switch after each; t of 128 bits.
fn triple(log_n: u32) -> Result<Saved, Error> {
    let mut run = Run::<bgv::Bgv>::new(log_n, "0xffffffffffffffffffffffffff820001", 16)?;
    let (x, y) = (run.encrypt()?, run.encrypt()?);
    let mask = run.context.encode_coefficients(&[1u64])?;
    let e = &run.evaluator;
    let (a, b) = (e.mod_switch(&x)?, e.mod_switch(&y)?);
    let masked = e.mul_plain(&a, &mask)?;
    let mut sum = e.mul(&a, &b)?;
    let mac = sum.duplicate(&run.context)?;
    for _ in 0..7 {
        sum = e.add(&sum, &sum.duplicate(&run.context)?)?;
    }
    let floor = run.bits(&a.noise());
    let [masked, sum, mac] = [&masked, &sum, &mac].map(|x| run.bits(&x.noise()));
    let last = run.modulus(mac);
    let bits = std::array::from_fn(|i| last[i] + (masked[i] - floor[i]) + (sum[i] - floor[i]));
    Ok(Saved::new("bgv, matrix triple".to_owned(), log_n, bits))
}

/// All circuits.
///
/// # Errors
/// When one is refused.
pub fn saved() -> Result<Vec<Saved>, Error> {
    let mut rows = Vec::new();
    for k in 1..=6 {
        rows.push(product_tree(if k < 4 { 13 } else { 14 }, k)?);
    }
    for (log_n, depth) in [(13, 2), (14, 5), (15, 10)] {
        rows.push(levelled(log_n, depth)?);
    }
    rows.push(triple(15)?);
    Ok(rows)
}
