//! Secret polynomials with integer coefficients of any size, in digits of 60 bits: noise wider than a word, and messages in
//! shares.
//!
//! Nothing here depends on the coefficients but in what it returns, except where a name says so.

use num_bigint::{BigInt, BigUint};
use num_traits::{Euclid, Zero};
use synchromesh_ring::modulus::Modulus;
use synchromesh_ring::sampler::{Purpose, Seed, Stream};
use synchromesh_ring::{Backend, Coeff, IndexSet, Poly, Ring};
use zeroize::Zeroizing;

use super::{MAX_BITS, gaussian};
use crate::error::Error;

/// Bits of a digit.
const DIGIT: u32 = 60;

/// What an integer has below its highest digit, in each.
const LOW: i128 = (1 << DIGIT) - 1;

/// Bits behind the point of a factor of [`Wide::times`].
pub const POINT: u32 = 2 * DIGIT;

/// N integers. Wiped when dropped, never printed.
#[derive(Clone)]
pub struct Wide {
    /// Of all coefficients the lowest digit, then the next; the highest has the sign, all others are from 0 to 2^60 - 1.
    digits: Zeroizing<Vec<Vec<i64>>>,
}

impl std::fmt::Debug for Wide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wide({} digits, secret)", self.digits.len())
    }
}

/// Sums of products of digits at each place, lowest first.
type Columns = Zeroizing<Vec<Vec<i128>>>;

fn columns(places: usize, n: usize) -> Columns {
    Zeroizing::new(vec![vec![0; n]; places])
}

/// a + b + carry and what it carries.
const fn carrying(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let sum = a as u128 + b as u128 + carry as u128;
    (sum as u64, sum >> 64 != 0)
}

impl Wide {
    /// The digits of what stands in columns of less than 2^126, from a place on; the integers have to fit into the last.
    fn carried(mut columns: Columns, from: usize) -> Self {
        let places = columns.len();
        for place in 1..places {
            let (below, above) = columns.split_at_mut(place);
            for (x, next) in below[place - 1].iter_mut().zip(&mut above[0]) {
                *next += *x >> DIGIT;
                *x &= LOW;
            }
        }
        let digits = columns[from.min(places)..].iter().map(|column| column.iter().map(|&x| x as i64).collect());
        Self { digits: Zeroizing::new(digits.collect()) }
    }

    /// Independent samples of the discrete Gaussian of width 2^`bits`.
    ///
    /// Beyond [`MAX_BITS`] a sample of that width is multiplied by the power of two that is missing and a uniform number below
    /// it added: steps 2^118 times as narrow as the whole, which an error of more than 2^-118 of its width does not find.
    #[must_use]
    pub fn gaussian(seed: &Seed, bits: u32, n: usize) -> Self {
        let rest = bits.saturating_sub(MAX_BITS);
        let samples = gaussian(&seed.derive("gaussian", 0), bits - rest, n);
        // No sample is 2^10 times as large as the width, and a highest digit has 63 bits.
        let places = (bits + 8).div_ceil(DIGIT) as usize;
        if rest == 0 {
            let digit = |place: usize| {
                let mask = if place + 1 < places { LOW } else { -1 };
                samples.iter().map(|x| ((x >> (place as u32 * DIGIT)) & mask) as i64).collect()
            };
            return Self { digits: Zeroizing::new((0..places).map(digit).collect()) };
        }
        let (first, shift) = ((rest / DIGIT) as usize, rest % DIGIT);
        let mut sums = columns(places, n);
        for (place, column) in sums.iter_mut().enumerate().skip(first) {
            let low = ((place - first) as u32 * DIGIT).min(i128::BITS - 1);
            let mask = if place + 1 < places { LOW } else { -1 };
            column.iter_mut().zip(samples.iter()).for_each(|(sum, x)| *sum += ((x >> low) & mask) << shift);
        }
        for (place, column) in sums.iter_mut().enumerate().take(rest.div_ceil(DIGIT) as usize) {
            let bits = (rest - DIGIT * place as u32).min(DIGIT);
            let mut words = Zeroizing::new(vec![0u64; n]);
            let seed = seed.derive("uniform", place as u64);
            Stream::new(&seed, Purpose::Flooding, 0, 0).fill_words(0, &mut words);
            column.iter_mut().zip(words.iter()).for_each(|(sum, word)| *sum += i128::from(word >> (64 - bits)));
        }
        Self::carried(sums, 0)
    }

    /// The integers nearest to 0 with the residues of a polynomial. Takes variable time.
    ///
    /// # Errors
    /// When the device fails.
    pub fn centred_vartime<B: Backend>(backend: &B, x: &Poly<B, Coeff>) -> Result<Self, Error> {
        let (ring, primes) = (backend.ring(), x.primes());
        let modulus = ring.product(primes);
        let part = |q: Modulus| {
            let cofactor = &modulus / q.value();
            let rest = (&cofactor % q.value()).iter_u64_digits().next().unwrap_or(0);
            cofactor * q.inv(rest).unwrap_or(0)
        };
        let parts: Vec<BigUint> = primes.iter().map(|prime| part(ring.modulus(prime))).collect();
        let words = Zeroizing::new(x.to_words(backend)?);
        let limbs: Vec<&[u64]> = words.chunks_exact(ring.n()).collect();
        let integer = |j: usize| {
            let sum: BigUint = parts.iter().zip(&limbs).map(|(part, limb)| part * limb[j]).sum();
            let rest = BigInt::from(sum % &modulus);
            if &rest * 2u32 > BigInt::from(modulus.clone()) { rest - BigInt::from(modulus.clone()) } else { rest }
        };
        Ok(Self::from_integers_vartime(&(0..ring.n()).map(integer).collect::<Vec<_>>()))
    }

    /// These integers. Takes variable time.
    #[must_use]
    pub fn from_integers_vartime(integers: &[BigInt]) -> Self {
        let bits = integers.iter().map(BigInt::bits).max().unwrap_or(0) + 1;
        let places = bits.div_ceil(DIGIT.into()).max(1) as usize;
        let base = BigInt::from(LOW + 1);
        let mut digits = Zeroizing::new(vec![vec![0; integers.len()]; places]);
        for (j, x) in integers.iter().enumerate() {
            let mut left = x.clone();
            for (place, column) in digits.iter_mut().enumerate() {
                let (above, low) = left.div_rem_euclid(&base);
                let digit = if place + 1 < places { low } else { left };
                column[j] = i64::try_from(digit).unwrap_or(0);
                left = above;
            }
        }
        Self { digits }
    }

    /// The integers. Takes variable time, and what it returns is the caller's to wipe.
    #[must_use]
    pub fn to_integers_vartime(&self) -> Vec<BigInt> {
        let n = self.digits.first().map_or(0, Vec::len);
        let one = |j: usize| self.digits.iter().rev().fold(BigInt::zero(), |sum, digit| (sum << DIGIT) + digit[j]);
        (0..n).map(one).collect()
    }

    /// x + y.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let (n, places) = (self.digits[0].len(), self.digits.len().max(other.digits.len()) + 1);
        let mut sums = columns(places, n);
        for digits in [&self.digits, &other.digits] {
            for (column, digit) in sums.iter_mut().zip(digits.iter()) {
                column.iter_mut().zip(digit).for_each(|(sum, &x)| *sum += i128::from(x));
            }
        }
        Self::carried(sums, 0)
    }

    /// The integers nearest to x times a public number, which is given as that number times 2^[`POINT`].
    #[must_use]
    pub fn times(&self, factor: &BigUint) -> Self {
        let mut left = factor.clone();
        let mut own = Vec::new();
        while !left.is_zero() {
            own.push((&left & BigUint::from(LOW as u128)).iter_u64_digits().next().unwrap_or(0));
            left >>= DIGIT;
        }
        let (n, point) = (self.digits[0].len(), (POINT / DIGIT) as usize);
        let mut sums = columns((self.digits.len() + own.len() + 1).max(point + 1), n);
        sums[point - 1].fill(1 << (DIGIT - 1));
        for (i, digit) in self.digits.iter().enumerate() {
            for (j, &y) in own.iter().enumerate() {
                // Split, so that any number of products fits.
                let (below, above) = sums[i + j..].split_at_mut(1);
                for ((low, high), &x) in below[0].iter_mut().zip(&mut above[0]).zip(digit) {
                    let product = i128::from(x) * i128::from(y);
                    *low += product & LOW;
                    *high += product >> DIGIT;
                }
            }
        }
        Self::carried(sums, point)
    }

    /// The integers in two's complement, `width` words each, least significant first; what does not fit is cut off.
    #[must_use]
    pub fn to_words(&self, width: usize) -> Zeroizing<Vec<u64>> {
        let mut words = Zeroizing::new(vec![0u64; self.digits[0].len() * width]);
        for (place, digit) in self.digits.iter().enumerate() {
            let (first, shift) = (place * DIGIT as usize / 64, place as u32 * DIGIT % 64);
            for (to, &x) in words.chunks_exact_mut(width).zip(digit) {
                let shifted = i128::from(x) << shift;
                let (sign, mut carry) = ((x >> 63) as u64, false);
                for (i, word) in to.iter_mut().skip(first).enumerate() {
                    let own = match i {
                        0 => shifted as u64,
                        1 => (shifted >> 64) as u64,
                        _ => sign,
                    };
                    (*word, carry) = carrying(*word, own, carry);
                }
            }
        }
        words
    }

    /// The polynomial with `multiple` times these coefficients.
    ///
    /// # Errors
    /// When there are not as many as coefficients, or the device fails.
    pub fn to_poly<B: Backend>(
        &self,
        backend: &B,
        ring: &Ring,
        primes: &IndexSet,
        multiple: &BigUint,
    ) -> Result<Zeroizing<Poly<B, Coeff>>, Error> {
        let mut sum = Zeroizing::new(Poly::zero(backend, primes)?);
        for (place, digit) in self.digits.iter().enumerate() {
            let term = Zeroizing::new(Poly::from_signed(backend, primes, digit)?);
            sum.mul_scalar_acc(backend, &term, &ring.residues(primes, &(multiple << (DIGIT * place as u32))))?;
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use num_integer::Integer;
    use num_traits::ToPrimitive;

    use super::*;

    fn samples(bits: u32, subject: u64) -> Wide {
        Wide::gaussian(&Seed::from_bytes([7; 32]).derive("a test", subject), bits, 1024)
    }

    #[test]
    fn samples_have_the_width_asked_for_at_any_width_and_are_the_same_again() {
        for bits in [3, 51, 52, 53, 61, 100, 112, 113, 118, 119, 173, 200, 233, 300] {
            let values = |subject: u64| -> Vec<f64> {
                let integers = samples(bits, subject).to_integers_vartime();
                integers.iter().map(|x| x.to_f64().unwrap() / f64::from(bits).exp2()).collect()
            };
            let (x, y) = (values(1), values(2));
            let mean = |f: &dyn Fn(f64, f64) -> f64| x.iter().zip(&y).map(|(&x, &y)| f(x, y)).sum::<f64>() / 1024.0;
            let [first, second, both] = [mean(&|x, _| x), mean(&|x, _| x * x), mean(&|x, y| x * y)];
            // 1024 values: a deviation of 1/32 of the mean, 1/23 of the square, 1/32 of the product.
            assert!(
                first.abs() < 0.16 && (second - 1.0).abs() < 0.22 && both.abs() < 0.16,
                "{bits}: {first} {second} {both}"
            );
            assert_eq!(x, values(1));
        }
    }

    #[test]
    fn sums_and_multiples_are_those_of_integers() {
        for (a, b) in [(3, 60), (59, 59), (118, 61), (240, 118)] {
            let (x, y) = (samples(a, 1), samples(b, 2));
            let [p, q] = [&x, &y].map(Wide::to_integers_vartime);
            let sum = x.plus(&y).to_integers_vartime();
            assert!(sum.iter().zip(p.iter().zip(&q)).all(|(sum, (p, q))| *sum == p + q), "{a} {b}");
            assert_eq!(Wide::from_integers_vartime(&p).to_integers_vartime(), p);
            let words = x.to_words(5);
            let complement = |x: &BigInt| {
                let x = if x.sign() == num_bigint::Sign::Minus { x + (BigInt::from(1) << 320) } else { x.clone() };
                let mut digits: Vec<u64> = x.iter_u64_digits().collect();
                digits.resize(5, 0);
                digits
            };
            assert!(p.iter().zip(words.chunks(5)).all(|(p, words)| complement(p) == words), "{a}");
            let one = BigUint::from(1u32) << POINT;
            assert_eq!(x.times(&one).to_integers_vartime(), p);
            for factor in [&one / 3u32, &one * 5u32 / 7u32, &one << 70u32, BigUint::ZERO, one - 1u32] {
                let half = BigInt::from(1) << (POINT - 1);
                let expected = p.iter().map(|p| (p * BigInt::from(factor.clone()) + &half).div_floor(&(&half * 2)));
                assert_eq!(x.times(&factor).to_integers_vartime(), expected.collect::<Vec<_>>(), "{a} {factor}");
            }
        }
    }
}
