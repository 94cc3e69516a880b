//! From RNS to Z_t: sum_j y_j W_j + round(sum_j y_j theta_j) V mod t for public W, V and theta; constant time.
//!
//! With y_j = \[x (Q/q_j)^-1\]_{q_j}, theta_j = 1/q_j, W_j = Q/q_j and V = -Q this is the centred x mod Q, modulo t
//! (BGV). With y_j = x mod q_j and theta_j + W_j = (t/q_j) \[(Q/q_j)^-1\]_{q_j}, V = 1, it is round(t x / Q) modulo t
//! (BFV; ePrint 2021/204, section 3.3). theta has 128 fractional bits, the rounding is exact unless the sum is within
//! [`fixed_point_margin`] of a half.

use num_bigint::BigUint;
use synchromesh_rlwe::ring::modulus::{Modulus, Scalar};
use synchromesh_rlwe::ring::{IndexSet, Ring};
use zeroize::Zeroize;

use crate::batch::{BatchError, PlainPoly, Residues};
use crate::error::Result;
use crate::plain_modulus::{Arithmetic, PlainModulus, U256, WideModulus, WordModulus, from_biguint};

/// Coefficients worked on at a time.
const CHUNK: usize = 64;

/// How near a half the sum of `k` fixed-point terms may come before its rounding can be wrong.
pub(crate) fn fixed_point_margin(k: usize) -> f64 {
    // Each term is truncated twice, in units of 2^-64, and theta to 2^-128 of up to 2^61.
    k as f64 * 2f64.powi(-62)
}

/// The part that does not depend on t's arithmetic: y_j from x mod q_j, and theta_j.
pub(crate) struct FixedPoint {
    moduli: Vec<Modulus>,
    prescale: Option<Vec<Scalar>>,
    /// floor(2^128 theta_j), low word first.
    theta: Vec<[u64; 2]>,
}

impl FixedPoint {
    /// theta_j = numerators_j / q_j, numerators below q_j.
    pub(crate) fn new(ring: &Ring, primes: &IndexSet, prescale: Option<&[u64]>, numerators: &[u64]) -> Self {
        let moduli: Vec<Modulus> = primes.iter().map(|i| ring.modulus(i)).collect();
        let theta = moduli.iter().zip(numerators).map(|(q, &x)| {
            let scaled = (BigUint::from(x) << 128u32) / q.value();
            let mut words = scaled.iter_u64_digits();
            [words.next().unwrap_or(0), words.next().unwrap_or(0)]
        });
        let prescale = prescale.map(|p| moduli.iter().zip(p).map(|(q, &x)| q.scalar(x)).collect());
        Self { theta: theta.collect(), prescale, moduli }
    }
}

/// W_j and V in the arithmetic of t.
pub(crate) enum Weights {
    /// Constants with their companions; V last.
    Word(WordModulus, Vec<[u64; 2]>),
    /// Four limbs; V last.
    Wide(WideModulus, Vec<U256>),
}

impl Weights {
    /// The weights `values` modulo t, V last.
    pub(crate) fn new(t: &PlainModulus, values: impl Iterator<Item = BigUint>) -> Self {
        let reduced = values.map(|x| x % t.value());
        match t.arithmetic() {
            Arithmetic::Word(t) => {
                let word = |x: BigUint| x.iter_u64_digits().next().unwrap_or(0);
                Self::Word(t.clone(), reduced.map(word).map(|w| [w, t.shoup(w)]).collect())
            }
            Arithmetic::Wide(t) => {
                Self::Wide(t.clone(), reduced.map(|x| from_biguint(&x).unwrap_or_default()).collect())
            }
        }
    }
}

/// A recomposition ready to run.
pub(crate) struct Recompose<'a> {
    pub(crate) fixed: &'a FixedPoint,
    pub(crate) weights: Weights,
}

/// The sum of y_j theta_j for a chunk of coefficients: integer parts, and fractions in units of 2^-64.
struct Counts {
    integer: [u128; CHUNK],
    fraction: [u128; CHUNK],
}

impl Counts {
    const ZERO: Self = Self { integer: [0; CHUNK], fraction: [0; CHUNK] };

    #[inline(always)]
    fn add(&mut self, i: usize, y: u64, theta: [u64; 2]) {
        let low = (u128::from(y) * u128::from(theta[0])) >> 64;
        let product = u128::from(y) * u128::from(theta[1]) + low;
        self.integer[i] += product >> 64;
        self.fraction[i] += u128::from(product as u64);
    }

    /// The nearest integer.
    #[inline(always)]
    fn round(&self, i: usize) -> u128 {
        self.integer[i] + ((self.fraction[i] + (1 << 63)) >> 64)
    }

    fn erase(&mut self) {
        self.integer.zeroize();
        self.fraction.zeroize();
    }
}

impl Recompose<'_> {
    /// The plaintext of a polynomial given limb after limb, N residues each.
    pub(crate) fn run(&self, t: &PlainModulus, words: &[u64], n: usize) -> Result<PlainPoly> {
        let mut residues = Residues::zero(t, n);
        match (&self.weights, &mut residues) {
            (Weights::Word(t, weights), Residues::Word(out)) => self.run_word(t, weights, words, out),
            (Weights::Wide(t, weights), Residues::Wide(out)) => self.run_wide(t, weights, words, out),
            _ => return Err(BatchError::WrongStorage { bits: t.bits() }.into()),
        }
        Ok(PlainPoly::new(t, residues)?)
    }

    #[inline(always)]
    fn digit(&self, j: usize, x: u64) -> u64 {
        match &self.fixed.prescale {
            Some(scalars) => self.fixed.moduli[j].mul_scalar(x, &scalars[j]),
            None => x,
        }
    }

    fn run_word(&self, t: &WordModulus, weights: &[[u64; 2]], words: &[u64], out: &mut [u64]) {
        let n = out.len();
        let [v, v_companion] = weights[self.fixed.moduli.len()];
        let mut counts = Counts::ZERO;
        for (c, out) in out.chunks_mut(CHUNK).enumerate() {
            counts.erase();
            for (j, limb) in words.chunks_exact(n).enumerate() {
                let ([w, companion], theta) = (weights[j], self.fixed.theta[j]);
                for (i, (out, &x)) in out.iter_mut().zip(&limb[c * CHUNK..]).enumerate() {
                    let y = self.digit(j, x);
                    *out = t.add(*out, t.reduce_once(t.mul_shoup_lazy(y, w, companion)));
                    counts.add(i, y, theta);
                }
            }
            for (i, out) in out.iter_mut().enumerate() {
                let u = counts.round(i);
                let u = t.reduce_limbs([u as u64, (u >> 64) as u64].into_iter());
                *out = t.add(*out, t.reduce_once(t.mul_shoup_lazy(u, v, v_companion)));
            }
        }
        counts.erase();
    }

    fn run_wide(&self, t: &WideModulus, weights: &[U256], words: &[u64], out: &mut [U256]) {
        let n = out.len();
        let v = &weights[self.fixed.moduli.len()];
        let fold = WideFold::new(t);
        let (mut counts, mut sums) = (Counts::ZERO, [[0; LIMBS]; CHUNK]);
        for (c, out) in out.chunks_mut(CHUNK).enumerate() {
            counts.erase();
            sums.zeroize();
            for (j, limb) in words.chunks_exact(n).enumerate() {
                let theta = self.fixed.theta[j];
                for (i, &x) in limb[c * CHUNK..].iter().take(out.len()).enumerate() {
                    let y = self.digit(j, x);
                    multiply_add(&mut sums[i], &weights[j], y, 0);
                    counts.add(i, y, theta);
                }
            }
            for (i, out) in out.iter_mut().enumerate() {
                let u = counts.round(i);
                multiply_add(&mut sums[i], v, u as u64, 0);
                multiply_add(&mut sums[i], v, (u >> 64) as u64, 1);
                *out = fold.reduce(&sums[i]);
            }
        }
        counts.erase();
        sums.zeroize();
    }
}

/// Limbs of a sum of at most 2^60 products of a word and a residue mod t.
const LIMBS: usize = 6;

/// sum += w y 2^(64 shift); the sum must fit, shift <= 1.
#[inline(always)]
fn multiply_add(sum: &mut [u64; LIMBS], w: &U256, y: u64, shift: usize) {
    let mut carry = 0u128;
    for (k, limb) in sum.iter_mut().enumerate().skip(shift) {
        let product = w.get(k - shift).map_or(0, |&w| u128::from(w) * u128::from(y));
        let total = product + u128::from(*limb) + carry;
        *limb = total as u64;
        carry = total >> 64;
    }
}

/// Reduction of a sum modulo t.
struct WideFold<'a> {
    t: &'a WideModulus,
    /// 2^256 mod t in Montgomery form, for odd t.
    high: Option<U256>,
}

impl<'a> WideFold<'a> {
    fn new(t: &'a WideModulus) -> Self {
        // 2^256 - t = 2^256 mod t up to multiples of t.
        let mut negated = t.value().map(|limb| !limb);
        let mut carry = true;
        for limb in &mut negated {
            (*limb, carry) = limb.overflowing_add(u64::from(carry));
        }
        let residue = t.reduce(&negated);
        Self { t, high: t.to_montgomery(&residue) }
    }

    fn reduce(&self, sum: &[u64; LIMBS]) -> U256 {
        let [a, b, c, d, e, f] = *sum;
        match &self.high {
            Some(high) => {
                let top = self.t.mul_constant(&self.t.reduce(&[e, f, 0, 0]), high);
                self.t.add(&self.t.reduce(&[a, b, c, d]), &top)
            }
            None => self.t.reduce_limbs(sum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain_modulus::to_biguint;

    #[test]
    fn wide_sums_agree_with_big_integers() {
        for t in
            ["0xffffffffffffffffffffffffff820001", "0x8000000000000000000000000000000000000001", "0x4000000000000002"]
        {
            let t: PlainModulus = t.parse().expect("t");
            let Arithmetic::Wide(wide) = t.arithmetic() else { panic!("wide") };
            let (fold, mut sum, mut expected) = (WideFold::new(wide), [0; LIMBS], BigUint::ZERO);
            let mut w = wide.neg(&[1, 0, 0, 0]);
            for i in 0..40u64 {
                let y = u64::MAX - i * i;
                multiply_add(&mut sum, &w, y, (i % 2) as usize);
                expected += (to_biguint(&w) * y) << (64 * (i % 2));
                assert_eq!(to_biguint(&fold.reduce(&sum)), &expected % t.value(), "{t}");
                w = wide.mul(&w, &[y, 0, 0, 0].map(|x| x >> 3));
            }
        }
    }
}
