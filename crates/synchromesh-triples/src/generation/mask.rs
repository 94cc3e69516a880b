//! Masks for distributed decryption: wide uniform polynomials, a function of a party's key, the session and the ciphertext.
//!
//! A share c_1 s_i of a decryption may be seen by others only with a mask that hides it: one uniform in
//! [-2^(bits-1), 2^(bits-1)) hides values up to 2^v but for a distance of 2^(v-bits) a coefficient. The mask is a
//! pseudo-random function, so that a party that is made to repeat itself says the same again: two shares of one
//! ciphertext under different masks would reveal s_i by averaging.

use synchromesh::batch::Residues;
use synchromesh::rlwe::ring::sampler::{Purpose, Seed, SmallPoly, Stream};
use synchromesh::rlwe::ring::{Backend, Coeff, Poly, Ring};
use zeroize::{Zeroize, Zeroizing};

use crate::error::Result;
use crate::field::{Element, Field};

/// Bits of a digit of a mask.
const DIGIT: u32 = 60;

/// The secret from which a party's masks come. Wiped when dropped, never printed.
#[derive(Clone)]
pub(crate) struct MaskKey(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for MaskKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MaskKey(secret)")
    }
}

impl MaskKey {
    /// The key with these bytes.
    pub(crate) fn new(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The mask of `bits` bits for a ciphertext, by its hash, in a session: N coefficients.
    pub(crate) fn mask(&self, session: &[u8; 32], ciphertext: &[u8; 32], bits: u32, n: usize) -> Mask {
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 triples, flooding");
        hasher.update(&self.0[..]);
        hasher.update(session);
        hasher.update(ciphertext);
        hasher.update(&bits.to_le_bytes());
        let mut hash = *hasher.finalize().as_bytes();
        hasher.zeroize();
        let seed = Seed::from_bytes(hash);
        hash.zeroize();
        let digits = (0..bits.div_ceil(DIGIT)).map(|j| digit(&seed, j, (bits - DIGIT * j).min(DIGIT), n));
        let digits = digits.collect();
        Mask { digits, bits }
    }
}

/// A digit of `bits` bits of every coefficient.
fn digit(seed: &Seed, j: u32, bits: u32, n: usize) -> SmallPoly {
    let mut words = Zeroizing::new(vec![0u64; n]);
    Stream::new(seed, Purpose::Flooding, j, 0).fill_words(0, &mut words);
    SmallPoly::from_vec(words.iter().map(|&word| (word >> (64 - bits)) as i64).collect())
        .bounded(u64::MAX >> (64 - bits))
}

/// sum_j 2^(60 j) d_j - 2^(bits-1), coefficient by coefficient. Its digits are wiped when it is dropped.
pub(crate) struct Mask {
    digits: Vec<SmallPoly>,
    bits: u32,
}

impl Mask {
    /// poly += mask.
    pub(crate) fn add_to<B: Backend>(&self, backend: &B, ring: &Ring, poly: &mut Poly<B, Coeff>) -> Result<()> {
        let primes = poly.primes().clone();
        let power = |j: usize| num_bigint::BigUint::from(1u8) << (DIGIT as usize * j);
        for (j, digit) in self.digits.iter().enumerate() {
            let mut term = Poly::from_small(backend, &primes, digit)?;
            poly.mul_scalar_acc(backend, &term, &ring.residues(&primes, &power(j)))?;
            term.zeroize();
        }
        let ones = vec![-1; self.digits.first().map_or(0, SmallPoly::len)];
        let ones = Poly::from_bounded(backend, &primes, &ones, 1)?;
        let half = num_bigint::BigUint::from(1u8) << (self.bits - 1);
        Ok(poly.mul_scalar_acc(backend, &ones, &ring.residues(&primes, &half))?)
    }

    /// The mask modulo p, times a factor.
    pub(crate) fn residues(&self, field: &Field, factor: Element) -> Residues {
        let power = |bits: u32| field.reduce(&(num_bigint::BigUint::from(1u8) << bits));
        let (radix, half) = (field.factor(power(DIGIT)), power(self.bits - 1));
        let factor = field.factor(factor);
        let n = self.digits.first().map_or(0, SmallPoly::len);
        let value = |i: usize| {
            let sum = self.digits.iter().rev().fold(Element::ZERO, |sum, digit| {
                field.add(field.mul_factor(sum, &radix), field.word(digit.as_slice()[i] as u64))
            });
            field.mul_factor(field.sub(sum, half), &factor).0
        };
        Residues::Wide((0..n).map(value).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::DEFAULT_PRIME;
    use num_bigint::{BigInt, BigUint};
    use std::sync::Arc;
    use synchromesh::rlwe::ring::{Cpu, IndexSet};

    fn integers(mask: &Mask) -> Vec<BigInt> {
        let n = mask.digits[0].len();
        let half = BigInt::from(1) << (mask.bits - 1);
        let at = |i: usize| -> BigInt {
            let digits = mask.digits.iter().enumerate();
            digits.map(|(j, d)| BigInt::from(d.as_slice()[i]) << (60 * j)).sum::<BigInt>() - &half
        };
        (0..n).map(at).collect()
    }

    #[test]
    fn masks_fill_their_range_and_are_the_same_integers_everywhere() {
        let field: Field = DEFAULT_PRIME.parse().unwrap();
        let primes = [1_152_921_504_606_584_833u64, 1_152_921_504_598_720_513];
        let ring = Arc::new(Ring::new(10, &primes).unwrap());
        let backend = Cpu::open(Arc::clone(&ring)).unwrap();
        let all: IndexSet = [0usize, 1].into_iter().collect();
        let key = MaskKey::new(Zeroizing::new([7; 32]));
        for bits in [1, 59, 60, 61, 240, 311] {
            let mask = key.mask(&[1; 32], &[2; 32], bits, 1024);
            let values = integers(&mask);
            let half = BigInt::from(1) << (bits - 1);
            assert!(values.iter().all(|x| -&half <= *x && *x < half));
            // A uniform value has its top bit set, or not, half of the time: off by 160 of 512 is 10 deviations.
            let negative = values.iter().filter(|x| x.sign() == num_bigint::Sign::Minus).count();
            assert!((352..672).contains(&negative), "{bits}: {negative}");
            let mut poly = Poly::zero(&backend, &all).unwrap();
            mask.add_to(&backend, &ring, &mut poly).unwrap();
            let words = poly.to_words(&backend).unwrap();
            let modulo = |x: &BigInt, q: &BigUint| {
                let q = BigInt::from(q.clone());
                (((x % &q) + &q) % &q).to_biguint().unwrap()
            };
            for (limb, q) in primes.iter().enumerate() {
                let q = BigUint::from(*q);
                for (i, x) in values.iter().enumerate() {
                    assert_eq!(BigUint::from(words[1024 * limb + i]), modulo(x, &q), "{bits}");
                }
            }
            let residues = mask.residues(&field, field.small(3));
            for (x, r) in values.iter().zip(residues.as_wide().unwrap()) {
                assert_eq!(Element(*r).to_biguint(), modulo(&(x * 3), field.prime()));
            }
        }
    }

    #[test]
    fn the_same_again_for_the_same_and_another_for_another() {
        let mask = |key: u8, session: u8, ciphertext: u8, bits| {
            integers(&MaskKey::new(Zeroizing::new([key; 32])).mask(&[session; 32], &[ciphertext; 32], bits, 16))
        };
        let first = mask(1, 1, 1, 200);
        assert_eq!(first, mask(1, 1, 1, 200));
        for other in [mask(2, 1, 1, 200), mask(1, 2, 1, 200), mask(1, 1, 2, 200), mask(1, 1, 1, 199)] {
            assert_ne!(first, other);
        }
    }
}
