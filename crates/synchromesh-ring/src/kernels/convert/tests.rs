//! Base conversion against its definition in wide integers, on every instruction set.

use super::*;
use crate::kernels::tests::{refs, residues};
use crate::prime::ntt_primes;

/// u of one coefficient, by the definition of [`Count`].
fn overflow_count(overflow: &Count, src: &[Modulus], y: &[u64]) -> u64 {
    match overflow {
        Count::None => 0,
        Count::Fixed { half } => {
            let z = |(p, &y): (&Modulus, &u64)| {
                let b = p.bits();
                let h = if b > 51 { y >> (b - 51) } else { y << (51 - b) };
                let f = (1u128 << (51 + b)) / u128::from(p.value());
                ((u128::from(h) * f) >> 52) as u64
            };
            (src.iter().zip(y).map(z).sum::<u64>() + u64::from(*half) * (1 << 49)) >> 50
        }
        Count::Double { half } => {
            let sum = src.iter().zip(y).fold(0.0, |sum, (p, &y)| sum + y as f64 * (1.0 / p.value() as f64));
            (if *half { sum + 0.5 } else { sum }).floor() as u64
        }
        Count::Montgomery32 { weights } => {
            let sum = y.iter().zip(weights).fold(0u32, |sum, (&y, &w)| sum.wrapping_add((y as u32).wrapping_mul(w)));
            (i64::from(sum.wrapping_neg() as i32) + (1 << 31)) as u64
        }
    }
}

/// The result by definition, one coefficient at a time.
fn convert(src: &[Modulus], dst: &[Modulus], spec: &ConvertSpec, x: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let mut out = vec![Vec::new(); dst.len()];
    for c in 0..x[0].len() {
        let scaled = |(j, p): (usize, &Modulus)| spec.prescale.as_ref().map_or(x[j][c], |s| p.mul(x[j][c], s[j]));
        let y: Vec<u64> = src.iter().enumerate().map(scaled).collect();
        let u = overflow_count(&spec.overflow, src, &y);
        for (i, q) in dst.iter().enumerate() {
            let start = q.add(spec.bias[i], q.mul(u, spec.correction[i]));
            out[i].push(y.iter().zip(&spec.matrix[i]).fold(start, |sum, (&y, &m)| q.add(sum, q.mul(y, m))));
        }
    }
    out
}

fn moduli(widths: &[u32]) -> Vec<Modulus> {
    let mut taken = Vec::new();
    for &bits in widths {
        taken.push(crate::prime::ntt_primes_excluding(bits, 10, 1, &taken).unwrap()[0]);
    }
    taken.into_iter().map(|q| Modulus::new(q).unwrap()).collect()
}

fn spec(src: &[Modulus], dst: &[Modulus], overflow: Count, prescale: bool) -> ConvertSpec {
    let row = |q: &Modulus, seed: u64, n: usize| residues(q.value(), n, seed);
    let single = |seed: u64| dst.iter().map(|q| row(q, seed, 5)[1]).collect();
    ConvertSpec {
        prescale: prescale.then(|| src.iter().map(|p| row(p, 11, 5)[2]).collect()),
        matrix: dst.iter().map(|q| row(q, 12, src.len())).collect(),
        overflow,
        correction: single(13),
        bias: single(14),
    }
}

fn overflows(sources: usize) -> Vec<Count> {
    let weights = (0..sources as u32).map(|j| j.wrapping_mul(0x9e37_79b9) | 1).collect();
    let mut all = vec![Count::None, Count::Montgomery32 { weights }];
    for half in [false, true] {
        all.extend([Count::Fixed { half }, Count::Double { half }]);
    }
    all
}

#[test]
fn matches_the_definition_for_all_widths_modes_and_instruction_sets() {
    let cases: [(&[u32], &[u32]); 12] = [
        (&[47; 3], &[47, 46, 20, 48, 61]),
        (&[48, 47, 47, 20, 48, 48, 47], &[47, 20]),
        (&[47; 18], &[47, 20, 50]),
        (&[48; 26], &[47, 46, 20, 50, 61]),
        (&[48; 40], &[47, 20, 50]),
        (&[47, 20, 47, 47, 47, 47, 47, 47, 47], &[47, 30]),
        (&[50, 50, 50, 49], &[50, 45, 20, 50, 61]),
        (&[61], &[61, 20]),
        (&[20, 30, 36, 45, 49, 50, 51, 54, 60, 61], &[61, 60, 50, 49, 36, 30, 22]),
        (&[60; 40], &[60, 50]),
        (&[50; 70], &[50, 60]),
        (&[30, 50], &[50]),
    ];
    for (from, to) in cases {
        let all = moduli(&[from, to].concat());
        let (src, dst) = all.split_at(from.len());
        for n in [128, 200] {
            let x: Vec<Vec<u64>> = src
                .iter()
                .map(|p| {
                    let mut limb = residues(p.value(), n, p.value());
                    limb[..40].fill(p.value() - 1);
                    limb
                })
                .collect();
            for overflow in overflows(src.len()) {
                let spec = spec(src, dst, overflow, n == 128);
                let expected = convert(src, dst, &spec, &x);
                let start: Vec<Vec<u64>> = dst.iter().map(|q| residues(q.value(), n, 77)).collect();
                for isa in Isa::available() {
                    let matrix = ConvertMatrix::new(src, dst, spec.clone(), isa).unwrap();
                    for mode in [Mode::Replace, Mode::Add] {
                        let mut out = start.clone();
                        matrix.apply(&refs(&x), &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(), mode);
                        for (i, q) in dst.iter().enumerate() {
                            for c in 0..n {
                                let value = match mode {
                                    Mode::Replace | Mode::Stream => expected[i][c],
                                    Mode::Add => q.add(start[i][c], expected[i][c]),
                                };
                                assert_eq!(
                                    out[i][c], value,
                                    "{from:?} to {to:?}, {isa}, {mode:?}, {:?}",
                                    spec.overflow
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Results at both ends of [0, q), where what a vector rounds could send it to the other.
#[test]
fn sums_that_are_0_or_1_below_q_are_found_without_fail() {
    for (from, to) in [(&[47; 15][..], 47), (&[48; 7], 47), (&[47; 7], 20), (&[50; 15], 50), (&[60; 3], 61)] {
        let all = moduli(&[from, &[to]].concat());
        let (src, dst) = all.split_at(from.len());
        let q = dst[0];
        for seed in 0..50 {
            let x: Vec<Vec<u64>> = src.iter().map(|p| vec![p.value() - 1 - seed % 3; 64]).collect();
            let bias = |bias| ConvertSpec {
                prescale: None,
                matrix: vec![
                    residues(q.value(), src.len(), seed).iter().map(|m| q.value() - 1 - m % (1 + seed)).collect(),
                ],
                overflow: Count::None,
                correction: vec![0],
                bias: vec![bias],
            };
            let sum = convert(src, dst, &bias(0), &x)[0][0];
            for value in [0, 1, q.value() / 2, q.value() / 2 + 1, q.value() - 1] {
                for isa in Isa::available() {
                    let matrix = ConvertMatrix::new(src, dst, bias(q.sub(value, sum)), isa).unwrap();
                    let mut out = vec![0; 64];
                    matrix.apply(&refs(&x), &mut [&mut out], Mode::Replace);
                    assert_eq!(out, [value; 64], "{from:?} to {to}, {isa}, seed {seed}");
                }
            }
        }
    }
}

#[test]
fn the_fixed_count_is_exact_away_from_the_boundary() {
    for bits in [20, 36, 50, 51, 61] {
        let src: Vec<Modulus> = ntt_primes(bits, 9, 3).unwrap().into_iter().map(|p| Modulus::new(p).unwrap()).collect();
        for seed in 0..2000u64 {
            let y: Vec<u64> = src.iter().map(|p| residues(p.value(), 8, seed + p.value())[seed as usize % 8]).collect();
            // sum_j y_j / p_j = numerator / product, in units of 2^-48 relative to the nearest integer below.
            let scaled: u128 = src.iter().zip(&y).map(|(p, &y)| (u128::from(y) << 64) / u128::from(p.value())).sum();
            let distance = (scaled % (1 << 64)).min((1 << 64) - scaled % (1 << 64));
            if distance > 3 << 16 {
                let u = overflow_count(&Count::Fixed { half: false }, &src, &y);
                assert_eq!(u128::from(u), scaled >> 64, "{bits} bits, {y:?}");
            }
        }
    }
}

#[test]
fn tables_of_the_wrong_size_are_refused() {
    let all = moduli(&[50, 50, 45]);
    let (src, dst) = all.split_at(2);
    let good = spec(src, dst, Count::None, true);
    let new = |spec: ConvertSpec| ConvertMatrix::new(src, dst, spec, Isa::Scalar).map(|_| ());
    assert_eq!(new(good.clone()), Ok(()));
    let error = |table, have, need| Err(ConvertError::Shape { table, have, need, sources: 2, destinations: 1 });
    assert_eq!(new(ConvertSpec { prescale: Some(vec![1]), ..good.clone() }), error("prescale", 1, 2));
    assert_eq!(new(ConvertSpec { matrix: vec![], ..good.clone() }), error("matrix", 0, 1));
    assert_eq!(new(ConvertSpec { matrix: vec![vec![1; 3]], ..good.clone() }), error("matrix row", 3, 2));
    assert_eq!(new(ConvertSpec { correction: vec![], ..good.clone() }), error("correction", 0, 1));
    assert_eq!(new(ConvertSpec { bias: vec![0; 2], ..good.clone() }), error("bias", 2, 1));
    let weights = Count::Montgomery32 { weights: vec![] };
    assert_eq!(new(ConvertSpec { overflow: weights, ..good.clone() }), error("weights", 0, 2));
    let none = ConvertMatrix::new(&[], dst, good, Isa::Scalar).map(|_| ());
    assert_eq!(none, Err(ConvertError::Sources { sources: 0 }));
}
