//! The noise that hides a share of a decryption: a Gaussian of any width, a function of a party's key, the ciphertext, who else
//! is there, and the width.
//!
//! A party that is made to repeat itself says the same again: two shares of one ciphertext under different noise would
//! reveal s_i by averaging. Where others take part, the share has another Lagrange factor, and other noise.

use num_bigint::BigUint;
use synchromesh::rlwe::entropy;
use synchromesh::rlwe::flood::seed_of;
use synchromesh::rlwe::noise::hints::LOG2_WITHIN;
use synchromesh::rlwe::ring::sampler::Seed;
use synchromesh::rlwe::ring::{Coeff, Cpu, IndexSet, Poly, Ring};
use zeroize::Zeroizing;

use crate::error::Result;
use crate::proofs::integers::{Integers, width_of};

/// The secret from which a party's noise comes. Wiped when dropped, never printed.
pub(super) struct NoiseKey(Zeroizing<[u8; KEY_BYTES]>);

/// Bytes of a [`NoiseKey`].
pub(super) const KEY_BYTES: usize = 32;

impl NoiseKey {
    /// A fresh one.
    pub(super) fn generate() -> Result<Self> {
        Ok(Self(Zeroizing::new(entropy::random_bytes::<KEY_BYTES>()?)))
    }

    /// The one with these bytes.
    pub(super) const fn from_bytes(bytes: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        Self(bytes)
    }

    /// Its bytes, to be written where nobody else reads.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0[..]
    }

    /// The seed for what these bytes describe.
    pub(super) fn seed(&self, subject: &[u8]) -> Seed {
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 parties, flooding");
        hasher.update(&self.0[..]);
        hasher.update(subject);
        seed_of(hasher)
    }
}

/// A polynomial of independent samples of width 2^`bits`, times `multiple`.
pub(super) fn noise(
    backend: &Cpu,
    ring: &Ring,
    primes: &IndexSet,
    (seed, bits): (&Seed, u32),
    multiple: &BigUint,
) -> Result<Zeroizing<Poly<Cpu, Coeff>>> {
    let width = width_of((bits + LOG2_WITHIN).into());
    let mut noise = Zeroizing::new(Integers::gaussian(seed, bits, ring.n(), width).to_poly(backend, primes)?);
    noise.mul_scalar_assign(backend, &ring.residues(primes, multiple))?;
    Ok(noise)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use num_bigint::BigInt;
    use num_traits::ToPrimitive;
    use synchromesh::rlwe::ring::prime::ntt_primes;
    use synchromesh::rlwe::ring::rns::compose_vartime;

    use super::*;

    #[test]
    fn samples_have_the_width_asked_for_at_any_width_and_are_the_same_again() {
        let primes = ntt_primes(60, 10, 6).unwrap();
        let ring = Arc::new(Ring::new(10, &primes).unwrap());
        let backend = Cpu::open(Arc::clone(&ring)).unwrap();
        let all: IndexSet = (0..6).collect();
        let key = NoiseKey(Zeroizing::new([7; 32]));
        let product = BigInt::from(ring.product(&all));
        for (bits, multiple) in [(3, 1u32), (61, 1), (100, 65537), (118, 1), (119, 3), (200, 1), (300, 2)] {
            let values = |subject: &[u8]| -> Vec<f64> {
                let multiple = BigUint::from(multiple);
                let poly = noise(&backend, &ring, &all, (&key.seed(subject), bits), &multiple).unwrap();
                let words = poly.to_words(&backend).unwrap();
                let one = |i: usize| {
                    let residues: Vec<u64> = words.iter().skip(i).step_by(1024).copied().collect();
                    let x = BigInt::from(compose_vartime(&ring, &all, &residues).unwrap());
                    let x = if &x * 2 > product { x - &product } else { x };
                    assert_eq!(&x % BigInt::from(multiple.clone()), BigInt::ZERO);
                    (x / BigInt::from(multiple.clone())).to_f64().unwrap() / f64::from(bits).exp2()
                };
                (0..1024).map(one).collect()
            };
            let (x, y) = (values(b"x"), values(b"y"));
            let mean = |f: &dyn Fn(f64, f64) -> f64| x.iter().zip(&y).map(|(&x, &y)| f(x, y)).sum::<f64>() / 1024.0;
            let [first, second, both] = [mean(&|x, _| x), mean(&|x, _| x * x), mean(&|x, y| x * y)];
            // 1024 values: a deviation of 1/32 of the mean, 1/23 of the square, 1/32 of the product.
            assert!(
                first.abs() < 0.16 && (second - 1.0).abs() < 0.22 && both.abs() < 0.16,
                "{bits}: {first} {second} {both}"
            );
            assert_eq!(x, values(b"x"));
        }
    }
}
