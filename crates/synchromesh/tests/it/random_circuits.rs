//! Random circuits against a plaintext evaluator: every ciphertext that is not refused decrypts to what the circuit
//! computes modulo t, and its error is within its certificate.

use std::sync::Arc;

use crate::oracle::{Ct, Device, Fixture, Judged, Model, T128, big, deep, fixture, fixture_in};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::ToPrimitive;
use synchromesh::bfv::{Bfv, Dropping, Encryption, Multiplication, Tensor};
use synchromesh::bgv::{Bgv, Context, Management, Params, original_primes};
use synchromesh::exact::{Evaluator, ParamsLiteral, Rotations};
use synchromesh::plain_modulus::PlainModulus;
use synchromesh::plan::static_bgv::StaticRule;
use synchromesh::rlwe::ring::rns::Overflow;
use synchromesh::rlwe::ring::{Counting, Cpu};
use synchromesh::rlwe::{PrimeSwitching, Security};
use synchromesh::{Error, Result};
use synchromesh_testing::random::SplitMix;

/// A scheme with its ways of computing.
trait Ways: Judged {
    /// A fixture for each way, with its name.
    fn ways(literal: &ParamsLiteral, rotations: &Rotations, seed: u64) -> Vec<(String, Fixture<Self>)>;

    /// A fresh ciphertext, in the way of the variant.
    fn fresh(f: &mut Fixture<Self>, m: &Model, level: usize) -> Ct<Self> {
        f.encrypt_at(m, level)
    }

    /// Back to the top level, where the scheme can.
    fn raised(e: &Evaluator<Self, Device>, x: &Ct<Self>) -> Option<Result<Ct<Self>>>;
}

impl Ways for Bfv {
    fn ways(literal: &ParamsLiteral, rotations: &Rotations, seed: u64) -> Vec<(String, Fixture<Self>)> {
        let odd = Multiplication { extend: Overflow::Fast, scale: Overflow::Floor, ..Multiplication::LEVELED };
        let cushion = Multiplication { dropping: Dropping::Cushion(30), merged: false, ..Multiplication::NEW };
        let further = [("uncounted", odd), ("cushion", cushion)];
        let make = |(name, how): (&str, Multiplication)| {
            let f: Fixture<Self> = fixture(literal.clone(), rotations, seed);
            (name.to_owned(), Fixture { evaluator: f.evaluator.with_variant(how), ..f })
        };
        Multiplication::NAMED.into_iter().chain(further).map(make).collect()
    }

    /// Algorithm 1 on ciphertexts of the original encoding, where those have room for a product.
    fn fresh(f: &mut Fixture<Self>, m: &Model, level: usize) -> Ct<Self> {
        if f.evaluator.variant().tensor == Tensor::Original {
            let plaintext = f.encode(m);
            let how = Encryption::ORIGINAL;
            let ct = f.context.encrypt_by(how, &f.public, &plaintext, level, &mut f.randomness).unwrap();
            if f.evaluator.square(&ct).is_ok() {
                return ct;
            }
        }
        f.encrypt_at(m, level)
    }

    fn raised(e: &Evaluator<Self, Device>, x: &Ct<Self>) -> Option<Result<Ct<Self>>> {
        Some(e.mod_raise_to(x, e.context().params().top_level()))
    }
}

impl Ways for Bgv {
    fn ways(literal: &ParamsLiteral, rotations: &Rotations, seed: u64) -> Vec<(String, Fixture<Self>)> {
        let managements = [
            ("per level", Management::default()),
            ("per ciphertext", Management::GHS),
            ("static", Management::STATIC),
            ("original", Management::ORIGINAL),
        ];
        let make = |(name, management): (&str, Management)| {
            let mut literal = literal.clone();
            if management == Management::ORIGINAL {
                // Only a small t leaves enough primes that are 1 modulo it.
                let t = PlainModulus::new(big(&literal.t)).unwrap();
                literal.primes = Some(original_primes(literal.log_n, &t, &literal.q_bits, &literal.p_bits).ok()?);
            }
            let params = Params::new(literal).unwrap();
            let device = Counting::new(Cpu::open(Arc::clone(params.rlwe().ring())).unwrap());
            let context = Context::managed_on(params, device, management).unwrap();
            Some((name.to_owned(), fixture_in(context, rotations, seed)))
        };
        managements.into_iter().filter_map(make).chain(packed(literal, seed)).collect()
    }

    fn raised(_: &Evaluator<Self, Device>, _: &Ct<Self>) -> Option<Result<Ct<Self>>> {
        None
    }
}

/// The static rule's levels, two to a prime, where t leaves levels as small (ePrint 2021/204, remark 5.1).
fn packed(literal: &ParamsLiteral, seed: u64) -> Option<(String, Fixture<Bgv>)> {
    let depth = literal.level_limbs.len() - 1;
    let packing = Some(PrimeSwitching::new(1, 2).unwrap());
    let (omega, security) = (Some(3), Security::Insecure);
    let rule = StaticRule { packing, omega, security, additions: 3, ..StaticRule::new(literal.t.clone(), depth) };
    let params = rule.plan_at(literal.log_n).ok()?.params;
    let device = Counting::new(Cpu::open(Arc::clone(params.rlwe().ring())).unwrap());
    let context = Context::managed_on(params, device, Management::STATIC).unwrap();
    Some(("static packed".to_owned(), fixture_in(context, &Rotations::none(), seed)))
}

/// A ciphertext, what it must decrypt to, and its multiplicative depth.
struct Value<S: Judged> {
    ct: Ct<S>,
    model: Model,
    depth: usize,
}

/// What a run of circuits came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    computed: usize,
    refused: usize,
    deepest: usize,
}

/// Greatest multiplicative depth of a circuit.
const DEPTH: usize = 6;

/// a b modulo t: slot by slot, or the negacyclic product in machine words where t is small.
fn product<S: Judged>(f: &Fixture<S>, a: &Model, b: &Model) -> Model {
    let t = f.t();
    if f.has_slots() {
        return a.iter().zip(b).map(|(x, y)| (x * y).mod_floor(&t)).collect();
    }
    let words = |m: &Model| -> Vec<i64> { m.iter().map(|x| x.to_i64().expect("t below 2^20")).collect() };
    let (a, b, n) = (words(a), words(b), a.len());
    let mut wide = vec![0i64; 2 * n];
    for (i, x) in a.iter().enumerate() {
        wide[i..].iter_mut().zip(&b).for_each(|(out, y)| *out += x * y);
    }
    (0..n).map(|i| BigInt::from(wide[i] - wide[n + i]).mod_floor(&t)).collect()
}

/// One random step on values of `pool`; none when the depth is used up.
fn step<S: Ways>(f: &Fixture<S>, pool: &[Value<S>], random: &mut SplitMix) -> Option<(Result<Ct<S>>, Model, usize)> {
    let mut pick = || &pool[random.below(pool.len() as u64) as usize];
    let (x, y, z, w) = (pick(), pick(), pick(), pick());
    let (depth, e) = (x.depth.max(y.depth), &f.evaluator);
    let plain = f.encode(&y.model);
    let choice = random.below(17);
    if (8..=12).contains(&choice) && depth.max(z.depth).max(w.depth) >= DEPTH {
        return None;
    }
    let level = random.below(x.ct.level() as u64 + 1) as usize;
    let c = random.integer(&(f.t() * 3));
    let turn = [1i64, -3][random.below(2) as usize];
    Some(match choice {
        0 | 1 => (e.add(&x.ct, &y.ct), f.add(&x.model, &y.model), depth),
        2 => (e.sub(&x.ct, &y.ct), f.sub(&x.model, &y.model), depth),
        3 => (e.neg(&x.ct), f.scale(&x.model, &(-1).into()), x.depth),
        4 => (e.add_plain(&x.ct, &plain), f.add(&x.model, &y.model), x.depth),
        5 => (e.sub_plain(&x.ct, &plain), f.sub(&x.model, &y.model), x.depth),
        6 => (e.mul_plain(&x.ct, &plain), product(f, &x.model, &y.model), x.depth),
        7 => (e.mul_scalar(&x.ct, c.clone()), f.scale(&x.model, &c), x.depth),
        8 | 9 => (e.mul(&x.ct, &y.ct), product(f, &x.model, &y.model), depth + 1),
        10 => (e.square(&x.ct), product(f, &x.model, &x.model), x.depth + 1),
        11 => {
            let pairs = [[&x.ct, &y.ct], [&z.ct, &w.ct], [&y.ct, &z.ct]];
            let models =
                [product(f, &x.model, &y.model), product(f, &z.model, &w.model), product(f, &y.model, &z.model)];
            let sum = models[1..].iter().fold(models[0].clone(), |sum, m| f.add(&sum, m));
            (e.sum_of_products(&pairs), sum, depth.max(z.depth).max(w.depth) + 1)
        }
        12 => {
            let lazy = e.mul_no_relin(&x.ct, &y.ct).and_then(|p| e.relinearize(&e.sub(&p, &z.ct)?));
            (lazy, f.sub(&product(f, &x.model, &y.model), &z.model), depth.max(z.depth) + 1)
        }
        13 => (e.mod_switch_to(&x.ct, level), x.model.clone(), x.depth),
        14 => (S::raised(e, &x.ct)?, x.model.clone(), x.depth),
        15 if f.has_slots() => (e.rotate_rows(&x.ct, turn), f.rotate(&x.model, turn), x.depth),
        16 if f.has_slots() => (e.rotate_columns(&x.ct), f.swap(&x.model), x.depth),
        _ => return None,
    })
}

/// Runs one circuit of `steps` steps; whatever is not refused must decrypt.
fn circuit<S: Ways>(name: &str, f: &mut Fixture<S>, steps: usize, random: &mut SplitMix, tally: &mut Tally) {
    let mut pool: Vec<Value<S>> = Vec::new();
    for _ in 0..3 {
        let model = f.random();
        let level = f.context.params().top_level() - random.below(2) as usize;
        pool.push(Value { ct: S::fresh(f, &model, level), model, depth: 0 });
    }
    for _ in 0..steps {
        let Some((result, model, depth)) = step(f, &pool, random) else { continue };
        match result {
            Ok(ct) => {
                tally.computed += 1;
                tally.deepest = tally.deepest.max(depth);
                pool.push(Value { ct, model, depth });
            }
            // An operation that could decrypt wrongly says so, with the noise and the room.
            Err(error @ Error::Rlwe(synchromesh::rlwe::Error::Noise { .. })) => {
                assert!(error.kind() == "noise" && !error.remedy().is_empty());
                tally.refused += 1;
            }
            // With a level for every product there is none left at level 0.
            Err(error) if name.starts_with("static") && error.kind() == "level" => tally.refused += 1,
            Err(error) => panic!("{name}: {error}"),
        }
    }
    for value in pool.iter().skip(3).rev().take(4) {
        f.judge(&value.ct, &value.model);
    }
}

/// The plaintext moduli, with the bits that a product takes beyond those of t at N = 2^10.
fn cases() -> [(String, u32); 5] {
    ["2", "257", "65537", "1073479681", T128].map(|t| (t.to_owned(), 28))
}

/// `count` circuits for each t and way of the scheme, a third of them on chains that are too short for their depth.
fn circuits<S: Ways>(count: usize, seed: u64) -> Tally {
    let (mut tally, mut random) = (Tally::default(), SplitMix::new(seed));
    for (t, product) in cases() {
        let slots = !["2", "257"].contains(&t.as_str());
        let rotations = if slots { Rotations::by([1, -3]).and_swap() } else { Rotations::none() };
        let bits = big(&t).bits() as u32 + product;
        for (depth, share) in [(6, 2), (2, 1)] {
            let mut literal = deep(10, &t, bits + 8, bits, depth);
            // Algorithm 1 takes special primes for its longer second base.
            literal.p_bits.extend([59, 58, 57]);
            for (name, mut f) in S::ways(&literal, &rotations, seed) {
                for _ in 0..(count * share).div_ceil(3) {
                    let steps = 4 + random.below(9) as usize;
                    circuit(&format!("{name}, t = {t}"), &mut f, steps, &mut random, &mut tally);
                }
            }
        }
    }
    tally
}

#[test]
fn bfv_circuits_decrypt_or_are_refused() {
    let tally = circuits::<Bfv>(6, 1);
    assert!(tally.computed > 800 && tally.refused > 10 && tally.deepest >= 4, "{tally:?}");
}

#[test]
fn bgv_circuits_decrypt_or_are_refused() {
    let tally = circuits::<Bgv>(6, 2);
    assert!(tally.computed > 200 && tally.refused > 5 && tally.deepest >= 3, "{tally:?}");
}

#[test]
#[ignore = "ten thousand circuits; cargo xtask verify runs them"]
fn ten_thousand_circuits_decrypt_or_are_refused() {
    let bfv = circuits::<Bfv>(201, 3);
    let bgv = circuits::<Bgv>(120, 4);
    assert!(bfv.computed + bgv.computed > 40_000, "{bfv:?} {bgv:?}");
}
