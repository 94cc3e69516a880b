//! Secret integer polynomials of any width: coefficients in two's complement, no branch and no address on them.

use num_bigint::BigUint;
use synchromesh::plain_modulus::{U256, from_biguint};
use synchromesh::rlwe::flood::Wide;
use synchromesh::rlwe::ring::modulus::Modulus;
use synchromesh::rlwe::ring::sampler::{Purpose, Seed, Stream};
use synchromesh::rlwe::ring::{Backend, Coeff, IndexSet, Poly, secrecy};
use zeroize::Zeroizing;

use super::error::Result;

/// Coefficients of `width` words each, least significant first. A constant has one coefficient, all others N.
pub(crate) struct Integers {
    words: Zeroizing<Vec<u64>>,
    width: usize,
}

/// Words that hold integers of `bits` bits beside their sign, with room to add a bound to them.
pub(crate) const fn width_of(bits: u64) -> usize {
    (bits as usize + 2).div_ceil(64)
}

impl Integers {
    /// `count` zeros.
    pub(super) fn zero(count: usize, width: usize) -> Self {
        Self { words: Zeroizing::new(vec![0; count * width]), width }
    }

    /// These integers.
    pub(super) fn from_signed<'a>(values: impl ExactSizeIterator<Item = &'a i64>, width: usize) -> Self {
        let mut out = Self::zero(values.len(), width);
        for (to, &value) in out.words.chunks_exact_mut(width).zip(values) {
            to.fill((value >> 63) as u64);
            to[0] = value as u64;
        }
        out
    }

    /// The representatives in \[-(t-1)/2, t/2\] of residues modulo t.
    pub(super) fn from_residues(values: impl ExactSizeIterator<Item = U256>, t: &BigUint, width: usize) -> Self {
        let limbs = |x: &BigUint| from_biguint(x).unwrap_or([u64::MAX; 4]);
        let (modulus, half) = (limbs(t), limbs(&(t >> 1u32)));
        let wide: Vec<u64> = (0..width).map(|i| modulus.get(i).copied().unwrap_or(0)).collect();
        let mut out = Self::zero(values.len(), width);
        for (to, value) in out.words.chunks_exact_mut(width).zip(values) {
            // x - t where x > t/2: the borrow of t/2 - x says so.
            let mut rest = half;
            let above = subtract_words(&mut rest, &value, u64::MAX);
            to.iter_mut().zip(value).for_each(|(word, x)| *word = x);
            subtract_words(to, &wide, secrecy::mask(above));
        }
        out
    }

    /// Uniform integers of \[-2^`bits`, 2^`bits`).
    pub(super) fn uniform(seed: &Seed, digit: u32, count: usize, bits: u64, width: usize) -> Self {
        let mut stream = Stream::new(seed, Purpose::Flooding, digit, 0);
        let mut out = Self::zero(count, width);
        stream.fill_words(0, &mut out.words);
        out.words.chunks_exact_mut(width).for_each(|x| sign_extend(x, bits));
        out
    }

    /// `count` independent Gaussians of width 2^`bits`, which fit.
    pub(crate) fn gaussian(seed: &Seed, bits: u32, count: usize, width: usize) -> Self {
        Self { words: Wide::gaussian(seed, bits, count).to_words(width), width }
    }

    /// A copy, wiped like this one.
    pub(super) fn duplicate(&self) -> Self {
        Self { words: self.words.clone(), width: self.width }
    }

    /// Number of coefficients.
    pub(super) fn len(&self) -> usize {
        self.words.len() / self.width
    }

    /// self += X^e other, e below 2N and public; between constants only 1 and -1 = X^N, e a multiple of N.
    pub(super) fn add_monomial(&mut self, other: &Self, e: usize, n: usize) {
        let (count, negative, shift) = (self.len(), e >= n, e % n);
        debug_assert!(other.len() == count && (count == n || shift == 0));
        for (i, x) in other.words.chunks_exact(other.width).enumerate() {
            let wraps = i + shift >= count;
            let at = (i + shift - if wraps { count } else { 0 }) * self.width;
            let to = &mut self.words[at..at + self.width];
            add_signed(to, x, negative != wraps);
        }
    }

    /// Whether all absolute values are at most `bound`; the time does not depend on which are not.
    pub(super) fn within(&self, bound: &BigUint) -> bool {
        let words: Vec<u64> = {
            let mut digits: Vec<u64> = bound.iter_u64_digits().collect();
            digits.resize(self.width, 0);
            digits
        };
        let mut sum = Zeroizing::new(vec![0; self.width]);
        let mut outside = 0;
        for x in self.words.chunks_exact(self.width) {
            for negative in [false, true] {
                // bound + x and bound - x are not negative.
                sum.copy_from_slice(&words);
                add_signed(&mut sum, x, negative);
                outside |= sum[self.width - 1] >> 63;
            }
        }
        secrecy::reveal(outside) == 0
    }

    /// Whether all but the constant coefficient are zero; the time does not depend on which are not.
    pub(super) fn is_constant(&self) -> bool {
        secrecy::reveal(self.words[self.width..].iter().fold(0, |acc, word| acc | word)) == 0
    }

    /// The constant coefficient alone.
    pub(super) fn constant(&self) -> Self {
        Self { words: Zeroizing::new(self.words[..self.width].to_vec()), width: self.width }
    }

    /// The polynomial modulo each of `primes`.
    pub(crate) fn to_poly<B: Backend>(&self, backend: &B, primes: &IndexSet) -> Result<Poly<B, Coeff>> {
        let n = backend.ring().n();
        let mut words = Zeroizing::new(vec![0; primes.len() * n]);
        for (i, limb) in primes.iter().zip(words.chunks_exact_mut(n)) {
            let q = backend.ring().modulus(i);
            let beyond = (0..self.width).fold(1, |x, _| q.reduce_u128(u128::from(x) << 64));
            for (to, x) in limb.iter_mut().zip(self.words.chunks_exact(self.width)) {
                *to = residue(&q, x, beyond);
            }
        }
        Ok(Poly::from_words(backend, primes, &words)?)
    }

    /// Appends the low `bits` bits of each coefficient.
    pub(super) fn pack(&self, bits: u64, out: &mut Vec<u8>) {
        let (mut buffer, mut filled) = (0u128, 0);
        for x in self.words.chunks_exact(self.width) {
            let mut left = bits;
            for &word in x.iter().take(bits.div_ceil(64) as usize) {
                let take = left.min(64);
                buffer |= u128::from(word & (u64::MAX >> (64 - take))) << filled;
                filled += take;
                left -= take;
                while filled >= 8 {
                    out.push(buffer as u8);
                    buffer >>= 8;
                    filled -= 8;
                }
            }
        }
        if filled > 0 {
            out.push(buffer as u8);
        }
    }

    /// The integers that [`Self::pack`] wrote into these bytes, and whether the bits behind them are zero.
    pub(super) fn unpack(bytes: &[u8], count: usize, bits: u64, width: usize) -> (Self, bool) {
        let mut out = Self::zero(count, width);
        let mut source = bytes.iter();
        let (mut buffer, mut filled) = (0u128, 0);
        for x in out.words.chunks_exact_mut(width) {
            let mut left = bits;
            for word in x.iter_mut().take(bits.div_ceil(64) as usize) {
                let take = left.min(64);
                while filled < take {
                    buffer |= u128::from(source.next().copied().unwrap_or(0)) << filled;
                    filled += 8;
                }
                *word = buffer as u64 & (u64::MAX >> (64 - take));
                buffer >>= take;
                filled -= take;
                left -= take;
            }
            sign_extend(x, bits - 1);
        }
        (out, buffer == 0)
    }

    /// The coefficients, for those who may see them.
    #[cfg(test)]
    pub(super) fn to_big_vartime(&self) -> Vec<num_bigint::BigInt> {
        let bytes = |x: &[u64]| x.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        self.words.chunks_exact(self.width).map(|x| num_bigint::BigInt::from_signed_bytes_le(&bytes(x))).collect()
    }

    /// These coefficients, which fit.
    #[cfg(test)]
    pub(super) fn from_big_vartime(values: &[num_bigint::BigInt], width: usize) -> Self {
        let mut out = Self::zero(values.len(), width);
        for (to, value) in out.words.chunks_exact_mut(width).zip(values) {
            let mut bytes = value.to_signed_bytes_le();
            bytes.resize(8 * width, if value.sign() == num_bigint::Sign::Minus { 255 } else { 0 });
            for (word, bytes) in to.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().unwrap());
            }
        }
        out
    }
}

/// x is what its low `bits` + 1 bits say in two's complement.
fn sign_extend(x: &mut [u64], bits: u64) {
    let (at, within) = ((bits / 64) as usize, bits % 64);
    let sign = (x[at] >> within & 1).wrapping_neg();
    let low = (1u64 << within) - 1;
    x[at] = (x[at] & low) | (sign & !low);
    x[at + 1..].fill(sign);
}

/// to += x, or to -= x; x is sign-extended to the width of `to`.
fn add_signed(to: &mut [u64], x: &[u64], negative: bool) {
    let flip = u64::from(negative).wrapping_neg();
    let sign = (x[x.len() - 1] >> 63).wrapping_neg();
    let mut carry = u64::from(negative);
    for (i, word) in to.iter_mut().enumerate() {
        let term = if i < x.len() { x[i] } else { sign } ^ flip;
        let sum = u128::from(*word) + u128::from(term) + u128::from(carry);
        *word = sum as u64;
        carry = (sum >> 64) as u64;
    }
}

/// a -= b & mask over the words of both, and the borrow.
fn subtract_words(a: &mut [u64], b: &[u64], mask: u64) -> u64 {
    a.iter_mut().zip(b).fold(0, |borrow, (a, &b)| {
        let difference = u128::from(*a).wrapping_sub(u128::from(b & mask)).wrapping_sub(u128::from(borrow));
        *a = difference as u64;
        (difference >> 127) as u64
    })
}

/// x mod q by Horner's rule; `beyond` is 2^(64 width) mod q.
fn residue(q: &Modulus, x: &[u64], beyond: u64) -> u64 {
    let unsigned = x.iter().rev().fold(0, |r, &word| q.reduce_u128(u128::from(r) << 64 | u128::from(word)));
    q.sub(unsigned, beyond & (x[x.len() - 1] >> 63).wrapping_neg())
}
