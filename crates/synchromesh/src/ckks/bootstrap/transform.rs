//! The transform between slots and coefficients as products of few sparse maps (CoeffsToSlots, SlotsToCoeffs).
//!
//! With n = N/2, e_k = (-3)^k and y_k the value of a polynomial at zeta^(e_k), y_k = sum_j w_j zeta^(j e_k), where
//! w_j = p_j + i p_(j + n). y_k is slot k for even k and its conjugate for odd k; seen like that, X -> X^(e_r) rotates all
//! slots by r (see [`View`](super::view::View)). Since e_(k + n/2) = e_k (1 + 2n), the transform is log2(n) layers of
//! butterflies after a permutation by reversed bits, which is left out: slots and coefficients correspond in reversed
//! order, both ways. A layer of blocks of 2h slots has the diagonals -h, 0 and h, and a product of neighbouring layers few
//! more: 2^(k+1) - 1 for k layers (ePrint 2018/1043).

use std::collections::BTreeMap;
use std::f64::consts::PI;

use crate::circuits::{LinearTransform, SlotShape};
use crate::embedding::Complex64;
use crate::error::Result;

/// Which way a transform goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The values in slots become coefficients.
    SlotsToCoeffs,
    /// And back.
    CoeffsToSlots,
}

/// A map of n slots by its diagonals: slot i becomes the sum over k of `d_k\[i\]` times slot i + k.
type Diagonals = BTreeMap<usize, Vec<Complex64>>;

/// The transform times a public number, as the product of `count` maps, the first to be applied first.
pub(super) fn factors(
    slots: usize,
    direction: Direction,
    count: usize,
    number: f64,
) -> Result<Vec<LinearTransform<Complex64>>> {
    let layers = slots.trailing_zeros() as usize;
    let mut blocks: Vec<usize> = (1..=layers).map(|log| 1 << log).collect();
    if direction == Direction::CoeffsToSlots {
        blocks.reverse();
    }
    let count = count.clamp(1, layers.max(1));
    let shape = SlotShape { row: slots, rows: 1 };
    let mut maps = Vec::with_capacity(count);
    for at in 0..count {
        // As even as can be, the shorter ones first.
        let own = &blocks[layers * at / count..layers * (at + 1) / count];
        let mut map = Diagonals::from([(0, vec![Complex64::new(1.0, 0.0); slots])]);
        for &block in own {
            map = product(&layer(slots, block, direction), &map);
        }
        // Each layer is sqrt(2) times a unitary map, or 1 / sqrt(2) times one.
        let half = own.len() as f64 / 2.0;
        let mut norm = if direction == Direction::SlotsToCoeffs { half.exp2() } else { (-half).exp2() };
        if at == 0 {
            norm *= number.abs();
            map.values_mut().flatten().for_each(|z| *z = Complex64::new(z.re * number, z.im * number));
        }
        let diagonals = map.into_iter().map(|(k, values)| (k as i64, values));
        maps.push(LinearTransform::from_diagonals(shape, diagonals)?.with_norm(norm * (1.0 + 1e-9)));
    }
    Ok(maps)
}

/// The butterflies of blocks of `block` slots.
fn layer(slots: usize, block: usize, direction: Direction) -> Diagonals {
    let half = block / 2;
    let order = 4 * block;
    let mut exponent = 1;
    let mut turns = Vec::with_capacity(half);
    for _ in 0..half {
        let (sin, cos) = (2.0 * PI * exponent as f64 / order as f64).sin_cos();
        turns.push(Complex64::new(cos, sin));
        exponent = exponent * (order - 3) % order;
    }
    let zero = vec![Complex64::default(); slots];
    let mut map = Diagonals::new();
    let mut set = |shift: usize, slot: usize, value: Complex64| {
        map.entry(shift % slots).or_insert_with(|| zero.clone())[slot] = value;
    };
    for first in (0..slots).step_by(block) {
        for (j, &w) in turns.iter().enumerate() {
            let (low, high) = (first + j, first + j + half);
            match direction {
                Direction::SlotsToCoeffs => {
                    set(0, low, Complex64::new(1.0, 0.0));
                    set(half, low, w);
                    set(slots - half, high, Complex64::new(1.0, 0.0));
                    set(0, high, Complex64::new(-w.re, -w.im));
                }
                Direction::CoeffsToSlots => {
                    set(0, low, Complex64::new(0.5, 0.0));
                    set(half, low, Complex64::new(0.5, 0.0));
                    set(slots - half, high, Complex64::new(0.5 * w.re, -0.5 * w.im));
                    set(0, high, Complex64::new(-0.5 * w.re, 0.5 * w.im));
                }
            }
        }
    }
    map
}

/// The map that applies `first` and then `second`.
fn product(second: &Diagonals, first: &Diagonals) -> Diagonals {
    let mut out = Diagonals::new();
    for (&a, x) in second {
        for (&b, y) in first {
            let slots = x.len();
            let sum = out.entry((a + b) % slots).or_insert_with(|| vec![Complex64::default(); slots]);
            for (i, (sum, x)) in sum.iter_mut().zip(x).enumerate() {
                let y = y[(i + a) % slots];
                sum.re += x.re * y.re - x.im * y.im;
                sum.im += x.re * y.im + x.im * y.re;
            }
        }
    }
    out.retain(|_, values| values.iter().any(|z| z.re != 0.0 || z.im != 0.0));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedding::{Embedding, Scale};

    fn apply(map: &Diagonals, x: &[Complex64]) -> Vec<Complex64> {
        let n = x.len();
        let mut out = vec![Complex64::default(); n];
        for (&k, values) in map {
            for (i, (sum, d)) in out.iter_mut().zip(values).enumerate() {
                let x = x[(i + k) % n];
                sum.re += d.re * x.re - d.im * x.im;
                sum.im += d.re * x.im + d.im * x.re;
            }
        }
        out
    }

    fn whole(slots: usize, direction: Direction) -> Diagonals {
        let logs = 1..=slots.trailing_zeros();
        let blocks: Vec<usize> = logs.map(|log| 1 << log).collect();
        let one = Diagonals::from([(0, vec![Complex64::new(1.0, 0.0); slots])]);
        let then = |map, &block: &usize| product(&layer(slots, block, direction), &map);
        match direction {
            Direction::SlotsToCoeffs => blocks.iter().fold(one, then),
            Direction::CoeffsToSlots => blocks.iter().rev().fold(one, then),
        }
    }

    #[test]
    fn slots_become_coefficients_in_reversed_order_and_come_back() {
        for log_n in [4u32, 7, 10] {
            let (n, half) = (1usize << log_n, 1usize << (log_n - 1));
            let point = |i: usize| Complex64::new((i as f64 * 0.7).sin(), (i as f64 * 1.3).cos());
            let given: Vec<Complex64> = (0..half).map(point).collect();
            let there = apply(&whole(half, Direction::SlotsToCoeffs), &given);
            // As the embedding sees it: conjugated in odd places.
            let slots: Vec<Complex64> = there
                .iter()
                .enumerate()
                .map(|(k, z)| Complex64::new(z.re, if k % 2 == 0 { z.im } else { -z.im }))
                .collect();
            let scale = Scale::power_of_two(40).unwrap();
            let bound = slots.iter().map(|z| z.re.hypot(z.im)).fold(0.0, f64::max) * 1.001;
            let coefficients = Embedding::new(log_n).unwrap().encode(&slots, scale, bound).unwrap();
            assert_eq!(coefficients.len(), n);
            for (k, z) in given.iter().enumerate() {
                let j = k.reverse_bits() >> (usize::BITS - (log_n - 1));
                let found = [coefficients[j], coefficients[j + half]].map(|c| c as f64 / 40f64.exp2());
                assert!((found[0] - z.re).abs() < 1e-9 && (found[1] - z.im).abs() < 1e-9, "N = {n}, slot {k}");
            }
            let back = apply(&whole(half, Direction::CoeffsToSlots), &there);
            assert!(back.iter().zip(&given).all(|(a, b)| (a.re - b.re).hypot(a.im - b.im) < 1e-12));
        }
    }

    #[test]
    fn factors_have_few_diagonals_and_the_norm_they_say() {
        for (direction, sign) in [(Direction::SlotsToCoeffs, 0.5), (Direction::CoeffsToSlots, -0.5)] {
            let maps = factors(1 << 9, direction, 3, 1.0).unwrap();
            assert!(maps.iter().all(|map| map.diagonals() <= 15), "three layers each");
            // |A x| on a random vector is that of a multiple of a unitary map.
            let map = product(&layer(512, 8, direction), &layer(512, 4, direction));
            let x: Vec<Complex64> =
                (0..512).map(|i| Complex64::new((i as f64).sin(), (3.0 * i as f64).cos())).collect();
            let norm = |x: &[Complex64]| x.iter().map(|z| z.re * z.re + z.im * z.im).sum::<f64>().sqrt();
            let grows = norm(&apply(&map, &x)) / norm(&x);
            assert!((grows - f64::exp2(2.0 * sign)).abs() < 1e-9, "{grows}");
        }
    }
}
