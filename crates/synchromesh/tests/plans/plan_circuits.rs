//! Random circuits of the depth that a plan is for decrypt right, in all three schemes: a few at a small degree, a
//! thousand at 128 bits of security where the ignored tests are run.

use std::sync::Arc;

use synchromesh::exact::{self, Scheme};
use synchromesh::plan::{Description, Plan, SchemeName, SchemeParams};
use synchromesh::rlwe::{Randomness, SecretKey, Security};
use synchromesh::{bfv, bgv, ckks};

const DEPTH: usize = 10;
const T: i64 = 65537;
const SLOTS: usize = 64;
const PRECISION: u32 = 20;

/// A small generator: splitmix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// Ciphertexts beside the values in them.
trait Machine {
    type Value;
    fn input(&mut self, dice: &mut Dice) -> Self::Value;
    fn add(&self, x: &Self::Value, y: &Self::Value) -> Self::Value;
    fn mul(&self, x: &Self::Value, y: &Self::Value) -> Self::Value;
    /// Whether it decrypts to its value.
    fn is_right(&self, x: &Self::Value) -> bool;
}

/// At each level two products, each with an operand of the level before; the others are of any level before. With `sums`
/// every operand is a sum of two.
fn circuit<M: Machine>(machine: &mut M, dice: &mut Dice, sums: bool) -> bool {
    let mut made: Vec<M::Value> = vec![machine.input(dice), machine.input(dice)];
    for level in 0..DEPTH {
        for _ in 0..2 {
            let (last, any) = (2 * level + dice.below(2), dice.below(2 * level + 2));
            let other = 2 * level + dice.below(2);
            let product = match sums {
                true => machine.mul(&machine.add(&made[last], &made[other]), &machine.add(&made[last], &made[any])),
                false => machine.mul(&made[last], &made[any]),
            };
            made.push(product);
        }
    }
    made[2 * DEPTH..].iter().all(|x| machine.is_right(x))
}

struct Exact<S: Scheme> {
    context: Arc<exact::Context<S>>,
    evaluator: exact::Evaluator<S>,
    secret: SecretKey,
    public: synchromesh::rlwe::PublicKey,
    randomness: Randomness,
}

impl<S: Scheme> Exact<S> {
    fn new(literal: &exact::ParamsLiteral) -> Self {
        let context = exact::Context::new(exact::Params::<S>::new(literal.clone()).unwrap()).unwrap();
        let mut randomness = Randomness::insecure_from_number(7);
        let (secret, public) = context.generate_keys(&mut randomness).unwrap();
        let keys = context.generate_evaluation_keys(&secret, &exact::Rotations::none(), &mut randomness).unwrap();
        let evaluator = exact::Evaluator::new(&context, Some(Arc::new(keys)));
        Self { context, evaluator, secret, public, randomness }
    }
}

fn each(x: &[i64], y: &[i64], f: impl Fn(i64, i64) -> i64) -> Vec<i64> {
    x.iter().zip(y).map(|(&x, &y)| f(x, y).rem_euclid(T)).collect()
}

impl<S: Scheme> Machine for Exact<S> {
    type Value = (exact::Ciphertext<S>, Vec<i64>);

    fn input(&mut self, dice: &mut Dice) -> Self::Value {
        let values: Vec<i64> = (0..SLOTS).map(|_| dice.below(T as usize) as i64).collect();
        let message = self.context.encode(&values[..]).unwrap();
        (self.context.encrypt(&self.public, &message, &mut self.randomness).unwrap(), values)
    }

    fn add(&self, x: &Self::Value, y: &Self::Value) -> Self::Value {
        (self.evaluator.add(&x.0, &y.0).unwrap(), each(&x.1, &y.1, |x, y| x + y))
    }

    fn mul(&self, x: &Self::Value, y: &Self::Value) -> Self::Value {
        (self.evaluator.mul(&x.0, &y.0).unwrap(), each(&x.1, &y.1, |x, y| x * y))
    }

    fn is_right(&self, (x, values): &Self::Value) -> bool {
        let out = self.context.decode(&self.context.decrypt(&self.secret, x).unwrap()).unwrap();
        out.iter().zip(values).all(|(out, value)| (out - value).rem_euclid(T) == 0)
    }
}

struct Real {
    context: Arc<ckks::Context>,
    evaluator: ckks::Evaluator,
    secret: SecretKey,
    public: synchromesh::rlwe::PublicKey,
    randomness: Randomness,
}

impl Real {
    fn new(literal: &ckks::ParamsLiteral) -> Self {
        let context = ckks::Context::new(ckks::Params::new(literal.clone()).unwrap()).unwrap();
        let mut randomness = Randomness::insecure_from_number(8);
        let (secret, public) = context.generate_keys(&mut randomness).unwrap();
        let keys = context.generate_evaluation_keys(&secret, &ckks::Rotations::none(), &mut randomness).unwrap();
        let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
        Self { context, evaluator, secret, public, randomness }
    }
}

impl Machine for Real {
    type Value = (ckks::Ciphertext, Vec<f64>);

    fn input(&mut self, dice: &mut Dice) -> Self::Value {
        let values: Vec<f64> = (0..SLOTS).map(|_| dice.below(1 << 30) as f64 / f64::from(1 << 29) - 1.0).collect();
        let message = self.context.encode(&values).unwrap();
        (self.context.encrypt(&self.public, &message, &mut self.randomness).unwrap(), values)
    }

    fn add(&self, x: &Self::Value, y: &Self::Value) -> Self::Value {
        let values = x.1.iter().zip(&y.1).map(|(x, y)| x + y).collect();
        (self.evaluator.add(&x.0, &y.0).unwrap(), values)
    }

    fn mul(&self, x: &Self::Value, y: &Self::Value) -> Self::Value {
        let values = x.1.iter().zip(&y.1).map(|(x, y)| x * y).collect();
        (self.evaluator.mul(&x.0, &y.0).unwrap(), values)
    }

    fn is_right(&self, (x, values): &Self::Value) -> bool {
        let out = self.context.decode(&self.context.decrypt(&self.secret, x).unwrap()).unwrap();
        out.iter().zip(values).all(|(out, value)| (out - value).abs() < 2f64.powi(-(PRECISION as i32)))
    }
}

fn description(scheme: SchemeName, security: Security) -> Description {
    let additions = usize::from(scheme != SchemeName::Ckks);
    Description { additions, security, ..Description::new(scheme, DEPTH) }
}

/// How many of `count` circuits decrypt right.
fn right(plan: &Plan, count: u64) -> u64 {
    fn all<M: Machine>(mut machine: M, count: u64, sums: bool) -> u64 {
        (0..count).filter(|&seed| circuit(&mut machine, &mut Dice(seed), sums)).count() as u64
    }
    match &plan.params {
        SchemeParams::Bfv(literal) => all(Exact::<bfv::Bfv>::new(literal), count, true),
        SchemeParams::Bgv(literal) => all(Exact::<bgv::Bgv>::new(literal), count, true),
        SchemeParams::Ckks(literal) => all(Real::new(literal), count, false),
    }
}

#[test]
fn random_circuits_of_the_planned_depth_decrypt_right() {
    for scheme in [SchemeName::Bfv, SchemeName::Bgv, SchemeName::Ckks] {
        let plan = description(scheme, Security::Insecure).plan().unwrap();
        assert_eq!((plan.log_n, right(&plan, 2)), (11, 2), "{scheme:?}");
    }
}

fn a_thousand(scheme: SchemeName) {
    let plan = description(scheme, Security::Bits128).plan().unwrap();
    assert!(plan.security_bits >= 128.0);
    // Lowered instruction sets give the same bits, slowly.
    let count = if std::env::var_os("SYNCHROMESH_ISA").is_some() { 10 } else { 1000 };
    assert_eq!(right(&plan, count), count, "{scheme:?}");
}

#[test]
#[ignore = "a thousand circuits at 128 bits take minutes: cargo xtask verify"]
fn a_thousand_circuits_of_bfv_decrypt_right() {
    a_thousand(SchemeName::Bfv);
}

#[test]
#[ignore = "a thousand circuits at 128 bits take minutes: cargo xtask verify"]
fn a_thousand_circuits_of_bgv_decrypt_right() {
    a_thousand(SchemeName::Bgv);
}

#[test]
#[ignore = "a thousand circuits at 128 bits take minutes: cargo xtask verify"]
fn a_thousand_circuits_of_ckks_decrypt_right() {
    a_thousand(SchemeName::Ckks);
}
