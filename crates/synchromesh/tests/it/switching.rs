//! Chains whose levels are no prefixes of one another, for BFV and BGV: prime switching by (mu, kappa), and levels of
//! several primes for wide plaintext moduli.
#![allow(unreachable_pub, missing_docs, reason = "shared by the files of one test program")]

use synchromesh::exact::{ParamsLiteral, Rotations};
use synchromesh::rlwe::{DigitSizes, PrimeSwitching, Schedule};

use crate::oracle::{Fixture, Judged, fixture, literal};

fn wide_enough(mut literal: ParamsLiteral) -> ParamsLiteral {
    let sizes = DigitSizes::balanced(&literal.q_bits, literal.omega).unwrap();
    let mut widths = literal.q_bits.iter();
    let digits = sizes.0.iter().map(|&size| widths.by_ref().take(size).sum::<u32>());
    literal.p_bits = vec![61; (digits.max().unwrap() as usize + 8).div_ceil(60)];
    literal
}

/// `depth` levels of `bits` by (mu, kappa), level 0 of `base` bits at the least.
pub fn switched(t: &str, (mu, kappa): (usize, usize), base: u32, bits: u32, depth: usize) -> ParamsLiteral {
    let chain = PrimeSwitching::new(mu, kappa).unwrap().chain(base, bits, depth, 59).unwrap();
    let literal = literal(10, t, &chain.q_bits, &[], &[], 2);
    wide_enough(ParamsLiteral { schedule: chain.schedule, ..literal })
}

/// Four levels by (1, 2) whose steps are several primes each: `small` bits as primes of 45 to 50 bits, twice that as
/// primes of 55 to 60.
pub fn switched_wide(t: &str, base: u32, small: u32) -> ParamsLiteral {
    let split = |bits: u32, width: u32| vec![bits.div_ceil(bits.div_ceil(width)); bits.div_ceil(width) as usize];
    let (base, step, large) = (split(base, 58), split(small, 48), split(2 * small + 8, 57));
    let q_bits = [step.clone(), base.clone(), large.clone(), large.clone()].concat();
    let (s, b, l) = (step.len(), step.len() + base.len(), large.len());
    let set = |with_small: bool, end: usize| (if with_small { 0 } else { s }..s).chain(s..end).collect::<Vec<_>>();
    let levels = vec![set(false, b), set(true, b), set(false, b + l), set(true, b + l), set(false, b + 2 * l)];
    wide_enough(ParamsLiteral { schedule: Schedule::of(levels), ..literal(10, t, &q_bits, &[], &[], 3) })
}

/// Rotations and products at every level of a chain.
pub fn every_level<S: Judged>(literal: ParamsLiteral) {
    let mut f: Fixture<S> = fixture(literal, &Rotations::by([1, -3]), 31);
    for level in 0..=f.context.params().top_level() {
        let (a, b) = (f.random(), f.random());
        let (x, y) = (f.encrypt_at(&a, level), f.encrypt_at(&b, level));
        f.judge(&f.evaluator.rotate_rows(&x, 1).unwrap(), &f.rotate(&a, 1));
        if level > 0 {
            let product = f.evaluator.mul(&x, &y).unwrap();
            f.judge(&product, &f.mul(&a, &b));
            let three = f.evaluator.mul_no_relin(&x, &y).unwrap();
            let lower = three.level().saturating_sub(1);
            let merged = f.evaluator.relinearize_to(&three, lower).unwrap();
            assert_eq!(merged.level(), lower);
            f.judge(&merged, &f.mul(&a, &b));
            let rotated = f.evaluator.rotate_rows_many(&product, &[-3, 1]).unwrap();
            f.judge(&rotated[0], &f.rotate(&f.mul(&a, &b), -3));
        }
    }
}

/// A chain of one prime a level with a second secret key, whose switches have fewer digits.
pub fn second(t: &str, leading: usize, depth: usize) -> ParamsLiteral {
    let mut q_bits = vec![48; depth + 1];
    q_bits[0] = 60;
    // Digits of two primes, and below the leading levels of three or four.
    let omega = q_bits.len().div_ceil(2);
    let mut literal = literal(10, t, &q_bits, &[58, 58], &[], omega);
    literal.schedule = Schedule::default().with_second_key(leading);
    let params = synchromesh::exact::Params::<synchromesh::bgv::Bgv>::new(literal.clone()).unwrap();
    let digits = params.second_plan().unwrap().digits.len();
    assert!(digits < params.plan().digits.len(), "{digits} digits below, {omega} above");
    literal
}
