//! From the residues of a phase to real coefficients: exact integers modulo a few primes, then one division by the scale.
//!
//! Takes variable time.

use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::ring::modulus::{Modulus, Scalar};
use synchromesh_rlwe::ring::{Backend, Coeff, Poly};
use zeroize::{Zeroize, Zeroizing};

use crate::embedding::Scale;
use crate::error::Result;

/// The coefficients of `phase`, centred modulo its primes and divided by `scale`; each within a relative 3 * 2^-53.
pub(crate) fn coefficients<B: Backend>(
    context: &rlwe::Context<B>,
    phase: &Poly<B, Coeff>,
    scale: Scale,
) -> Result<Zeroizing<Vec<f64>>> {
    let words = Zeroizing::new(phase.to_words(context.backend())?);
    let ring = context.params().ring();
    let moduli: Vec<Modulus> = phase.primes().iter().map(|i| ring.modulus(i)).collect();
    let n = ring.n();
    // Dividing by the mantissa rounds once, the power of two is exact.
    let power = f64::from_bits((1023 - i64::from(scale.exponent())).unsigned_abs() << 52);
    let divide = |x: f64| x / scale.mantissa() * power;
    let limbs: Vec<&[u64]> = words.chunks_exact(n).collect();
    Ok(Zeroizing::new(match (&limbs[..], &moduli[..]) {
        ([x], [q]) => x.iter().map(|&x| divide(centred_word(x, q.value()) as f64)).collect(),
        ([x, y], [p, q]) => {
            let pair = Pair::new(*p, *q);
            x.iter().zip(*y).map(|(&x, &y)| divide(pair.centred(x, y) as f64)).collect()
        }
        _ => {
            let mut many = Many::new(&moduli);
            (0..n).map(|j| divide(many.centred(limbs.iter().map(|limb| limb[j])))).collect()
        }
    }))
}

/// The representative of x mod q nearest to 0.
const fn centred_word(x: u64, q: u64) -> i64 {
    if x > q / 2 { x as i64 - q as i64 } else { x as i64 }
}

/// Two primes p, q below 2^61.
struct Pair {
    p: u64,
    q: Modulus,
    product: u128,
    /// p^-1 mod q.
    inverse: Scalar,
}

impl Pair {
    fn new(p: Modulus, q: Modulus) -> Self {
        let inverse = q.scalar(q.inv(p.value()).unwrap_or(1));
        Self { p: p.value(), q, product: u128::from(p.value()) * u128::from(q.value()), inverse }
    }

    fn centred(&self, x: u64, y: u64) -> i128 {
        let digit = self.q.mul_scalar(self.q.sub(y, self.q.reduce(x)), &self.inverse);
        let value = u128::from(x) + u128::from(self.p) * u128::from(digit);
        if value > self.product / 2 { value as i128 - self.product as i128 } else { value as i128 }
    }
}

/// Any number of primes: mixed-radix digits, then a multi-word integer.
struct Many<'a> {
    moduli: &'a [Modulus],
    /// Entry (i, j), j < i: q_j^-1 mod q_i.
    inverses: Vec<Vec<Scalar>>,
    product: Vec<u64>,
    half: Vec<u64>,
    digits: Vec<u64>,
    value: Vec<u64>,
}

impl<'a> Many<'a> {
    fn new(moduli: &'a [Modulus]) -> Self {
        let inverse = |q: &Modulus, p: &Modulus| q.scalar(q.inv(p.value()).unwrap_or(1));
        let inverses = (0..moduli.len()).map(|i| moduli[..i].iter().map(|p| inverse(&moduli[i], p)).collect());
        let mut product = vec![0; moduli.len()];
        product[0] = 1;
        moduli.iter().for_each(|q| times_plus(&mut product, q.value(), 0));
        let mut half = product.clone();
        let mut carry = 0;
        for word in half.iter_mut().rev() {
            (*word, carry) = (*word >> 1 | carry << 63, *word & 1);
        }
        let zeros = vec![0; moduli.len()];
        Self { moduli, inverses: inverses.collect(), product, half, digits: zeros.clone(), value: zeros }
    }

    /// The integer nearest to 0 with these residues, as the nearest double (to 2^-63 of it more).
    fn centred(&mut self, residues: impl Iterator<Item = u64>) -> f64 {
        for (i, residue) in residues.enumerate() {
            let q = &self.moduli[i];
            let mut x = residue;
            for (digit, inverse) in self.digits[..i].iter().zip(&self.inverses[i]) {
                x = q.mul_scalar(q.sub(x, q.reduce(*digit)), inverse);
            }
            self.digits[i] = x;
        }
        self.value.fill(0);
        for (q, digit) in self.moduli.iter().zip(&self.digits).rev() {
            times_plus(&mut self.value, q.value(), *digit);
        }
        let negative = self.value.iter().rev().gt(self.half.iter().rev());
        if negative {
            let mut borrow = false;
            for (x, p) in self.value.iter_mut().zip(&self.product) {
                let (difference, b1) = p.overflowing_sub(*x);
                let (difference, b2) = difference.overflowing_sub(u64::from(borrow));
                (*x, borrow) = (difference, b1 || b2);
            }
        }
        let magnitude = to_double(&self.value);
        if negative { -magnitude } else { magnitude }
    }
}

impl Drop for Many<'_> {
    fn drop(&mut self) {
        self.digits.zeroize();
        self.value.zeroize();
    }
}

/// x = x * factor + addend, little-endian words; the result must fit.
fn times_plus(x: &mut [u64], factor: u64, addend: u64) {
    let mut carry = addend;
    for word in x {
        let wide = u128::from(*word) * u128::from(factor) + u128::from(carry);
        (*word, carry) = (wide as u64, (wide >> 64) as u64);
    }
}

/// The two leading words of x (128 bits from its leading word on), as a double with the right power of two.
fn to_double(x: &[u64]) -> f64 {
    let top = x.iter().rposition(|&w| w != 0).unwrap_or(0);
    let low = top.saturating_sub(1);
    let leading = if top == low { u128::from(x[top]) } else { u128::from(x[top]) << 64 | u128::from(x[low]) };
    (0..low).fold(leading as f64, |value, _| value * (64f64).exp2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use num_traits::{Signed, ToPrimitive};
    use synchromesh_rlwe::ring::prime::ntt_primes;

    #[test]
    fn every_number_of_primes_gives_the_centred_integer() {
        let primes = ntt_primes(61, 10, 5).unwrap();
        let moduli: Vec<Modulus> = primes.iter().map(|&q| Modulus::new(q).unwrap()).collect();
        for k in 1..=5 {
            let product: BigInt = primes[..k].iter().map(|&q| BigInt::from(q)).product();
            let half: BigInt = &product / 2;
            let mut cases: Vec<BigInt> = vec![0.into(), 1.into(), (-1).into(), half.clone(), -half.clone()];
            cases.extend([BigInt::from(1) << (20 * k), -(BigInt::from(3) << (50 * k)), &half - 1, &half / 3]);
            for x in cases {
                let residue = |q: &u64| {
                    let r: BigInt = ((&x % q) + q) % q;
                    r.to_u64().unwrap()
                };
                let residues: Vec<u64> = primes[..k].iter().map(residue).collect();
                let expected = x.to_f64().unwrap();
                let got = Many::new(&moduli[..k]).centred(residues.iter().copied());
                assert!((got - expected).abs() <= x.abs().to_f64().unwrap() * 2.3e-16, "{k} primes: {got} for {x}");
                if k == 1 {
                    assert_eq!(centred_word(residues[0], primes[0]) as f64, expected);
                }
                if k == 2 {
                    assert_eq!(Pair::new(moduli[0], moduli[1]).centred(residues[0], residues[1]) as f64, expected);
                }
            }
        }
    }
}
