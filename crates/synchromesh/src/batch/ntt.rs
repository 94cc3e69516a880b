//! Negacyclic NTT mod a prime t = 1 mod 2N: coefficients of f to f(psi^(2 brv(k) + 1)) at index k, psi of order 2N.
//!
//! psi = x^((t-1)/2N) for the least quadratic non-residue x. The inverse needs no second table: with e(i) the exponent
//! of entry i of `roots`, block i of a stage of m blocks has e(m + i) + e(2m - 1 - i) = N, so that
//! psi^-e(m + i) = -psi^e(2m - 1 - i).

use num_bigint::BigUint;

use super::poly::Residues;
use crate::plain_modulus::{Arithmetic, PlainModulus, U256, WideModulus, WordModulus, from_biguint};

/// The transform of one (t, N); `Word` for t < 2^62.
#[derive(Clone, Debug)]
pub(super) enum SlotTransform {
    Word(WordTransform),
    Wide(WideTransform),
}

impl SlotTransform {
    /// The tables for a prime t = 1 mod 2N, or `None` for any other.
    pub(super) fn new(modulus: &PlainModulus, log_n: u32) -> Option<Self> {
        if !modulus.supports_slots(log_n) {
            return None;
        }
        let psi = primitive_root(modulus.value(), log_n);
        match modulus.arithmetic() {
            Arithmetic::Word(t) => WordTransform::new(t, &psi, log_n).map(Self::Word),
            Arithmetic::Wide(t) => WideTransform::new(t, &psi, log_n).map(Self::Wide),
        }
    }

    /// Coefficients to evaluations, in place. Residues stored otherwise than t asks are left alone: callers check.
    pub(super) fn forward(&self, residues: &mut Residues) {
        match (self, residues) {
            (Self::Word(transform), Residues::Word(words)) => transform.forward(words),
            (Self::Wide(transform), Residues::Wide(limbs)) => transform.forward(limbs),
            _ => debug_assert!(false, "in: residues stored as t asks"),
        }
    }

    /// Evaluations to coefficients, in place.
    pub(super) fn inverse(&self, residues: &mut Residues) {
        match (self, residues) {
            (Self::Word(transform), Residues::Word(words)) => transform.inverse(words),
            (Self::Wide(transform), Residues::Wide(limbs)) => transform.inverse(limbs),
            _ => debug_assert!(false, "in: residues stored as t asks"),
        }
    }
}

/// The low `bits` bits of k in reverse.
pub(super) fn reverse_bits(k: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { k.reverse_bits() >> (usize::BITS - bits) }
}

/// x^((t-1)/2N) for the least quadratic non-residue x of the prime t: of order exactly 2N, as its N-th power is -1.
fn primitive_root(t: &BigUint, log_n: u32) -> BigUint {
    let order = t - 1u8;
    let half = &order >> 1u32;
    let mut x = BigUint::from(2u8);
    while x.modpow(&half, t) != order {
        x += 1u8;
    }
    x.modpow(&(order >> (log_n + 1)), t)
}

/// Entry k is psi^brv(k); built by doubling, `mul` being multiplication mod t and psi_power(j) = psi^(2^j).
fn root_table<T: Copy>(one: T, log_n: u32, psi_power: impl Fn(u32) -> T, mul: impl Fn(T, T) -> T) -> Vec<T> {
    let mut roots = Vec::with_capacity(1 << log_n);
    roots.push(one);
    for stage in 0..log_n {
        // brv(2^stage + i) = 2^(log_n - 1 - stage) + brv(i) for i < 2^stage.
        let step = psi_power(log_n - 1 - stage);
        for i in 0..roots.len() {
            roots.push(mul(roots[i], step));
        }
    }
    roots
}

/// psi^brv(k) with its Shoup companion.
#[derive(Clone, Copy, Debug)]
struct WordRoot {
    value: u64,
    companion: u64,
}

/// The transform for t < 2^62.
#[derive(Clone, Debug)]
pub(super) struct WordTransform {
    t: WordModulus,
    roots: Vec<WordRoot>,
    inverse_n: WordRoot,
}

impl WordTransform {
    fn new(t: &WordModulus, psi: &BigUint, log_n: u32) -> Option<Self> {
        let psi = u64::try_from(psi).ok()?;
        let with_companion = |value| WordRoot { value, companion: t.shoup(value) };
        let roots = root_table(1, log_n, |j| t.pow_vartime(psi, 1 << j), |a, b| t.mul(a, b));
        let inverse_n = t.pow_vartime(1 << log_n, t.value() - 2);
        Some(Self {
            t: t.clone(),
            roots: roots.into_iter().map(with_companion).collect(),
            inverse_n: with_companion(inverse_n),
        })
    }

    /// in: < t; out: < t; between stages < 4t (Harvey, "Faster arithmetic for number-theoretic transforms", 2014).
    fn forward(&self, values: &mut [u64]) {
        let twice = 2 * self.t.value();
        let mut half = values.len() / 2;
        let mut blocks = 1;
        while half > 0 {
            for (block, root) in values.chunks_exact_mut(2 * half).zip(&self.roots[blocks..]) {
                let (low, high) = block.split_at_mut(half);
                for (u, v) in low.iter_mut().zip(high) {
                    let x = (*u).min(u.wrapping_sub(twice));
                    let y = self.t.mul_shoup_lazy(*v, root.value, root.companion);
                    *u = x + y;
                    *v = x + twice - y;
                }
            }
            half /= 2;
            blocks *= 2;
        }
        for value in values {
            let below_twice = (*value).min(value.wrapping_sub(twice));
            *value = self.t.reduce_once(below_twice);
        }
    }

    /// in: < t; out: < t; between stages < 2t.
    fn inverse(&self, values: &mut [u64]) {
        let twice = 2 * self.t.value();
        let mut half = 1;
        let mut blocks = values.len() / 2;
        while blocks > 0 {
            let roots = self.roots[blocks..2 * blocks].iter().rev();
            for (block, root) in values.chunks_exact_mut(2 * half).zip(roots) {
                let (low, high) = block.split_at_mut(half);
                for (u, v) in low.iter_mut().zip(high) {
                    let sum = *u + *v;
                    let negated_difference = *v + twice - *u;
                    *u = sum.min(sum.wrapping_sub(twice));
                    *v = self.t.mul_shoup_lazy(negated_difference, root.value, root.companion);
                }
            }
            half *= 2;
            blocks /= 2;
        }
        for value in values {
            let lazy = self.t.mul_shoup_lazy(*value, self.inverse_n.value, self.inverse_n.companion);
            *value = self.t.reduce_once(lazy);
        }
    }
}

/// The transform for 2^62 <= t < 2^256; constants in Montgomery form, values not.
#[derive(Clone, Debug)]
pub(super) struct WideTransform {
    t: WideModulus,
    roots: Vec<U256>,
    inverse_n: U256,
}

impl WideTransform {
    fn new(t: &WideModulus, psi: &BigUint, log_n: u32) -> Option<Self> {
        let psi = t.to_montgomery(&from_biguint(psi)?)?;
        let mut squares = vec![psi];
        for j in 1..log_n as usize {
            squares.push(t.mul_constant(&squares[j - 1], &squares[j - 1]));
        }
        let one = t.to_montgomery(&[1, 0, 0, 0])?;
        let modulus = crate::plain_modulus::to_biguint(t.value());
        let inverse_n = t.pow_vartime(&[1 << log_n, 0, 0, 0], &(modulus - 2u8));
        Some(Self {
            t: t.clone(),
            roots: root_table(one, log_n, |j| squares[j as usize], |a, b| t.mul_constant(&a, &b)),
            inverse_n: t.to_montgomery(&inverse_n)?,
        })
    }

    fn forward(&self, values: &mut [U256]) {
        let mut half = values.len() / 2;
        let mut blocks = 1;
        while half > 0 {
            for (block, root) in values.chunks_exact_mut(2 * half).zip(&self.roots[blocks..]) {
                let (low, high) = block.split_at_mut(half);
                for (u, v) in low.iter_mut().zip(high) {
                    let product = self.t.mul_constant(v, root);
                    *v = self.t.sub(u, &product);
                    *u = self.t.add(u, &product);
                }
            }
            half /= 2;
            blocks *= 2;
        }
    }

    fn inverse(&self, values: &mut [U256]) {
        let mut half = 1;
        let mut blocks = values.len() / 2;
        while blocks > 0 {
            let roots = self.roots[blocks..2 * blocks].iter().rev();
            for (block, root) in values.chunks_exact_mut(2 * half).zip(roots) {
                let (low, high) = block.split_at_mut(half);
                for (u, v) in low.iter_mut().zip(high) {
                    let negated_difference = self.t.sub(v, u);
                    *u = self.t.add(u, v);
                    *v = self.t.mul_constant(&negated_difference, root);
                }
            }
            half *= 2;
            blocks /= 2;
        }
        for value in values {
            *value = self.t.mul_constant(value, &self.inverse_n);
        }
    }
}
