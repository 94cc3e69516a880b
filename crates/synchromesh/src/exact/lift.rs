//! From Z_t to RNS: the centred representative of f m mod t, modulo each prime; constant time in m.

use num_bigint::BigUint;
use num_traits::One;
use synchromesh_rlwe::ring::{Backend, Coeff, IndexSet, Poly};
use zeroize::Zeroizing;

use crate::batch::PlainPoly;
use crate::error::{Error, Result};
use crate::plain_modulus::{Arithmetic, U256, WideModulus, WordModulus, at_least, difference, from_biguint};

/// The polynomial over `primes` whose coefficients are \[f m\]_t in \[-(t-1)/2, t/2\], for a public factor f < t.
///
/// # Errors
/// [`Error::Degree`] when m has not N coefficients, or when the device fails.
pub(crate) fn lift<B: Backend>(
    backend: &B,
    primes: &IndexSet,
    m: &PlainPoly,
    factor: &BigUint,
) -> Result<Poly<B, Coeff>> {
    let n = backend.ring().n();
    if m.coeffs().len() != n {
        return Err(Error::Degree { expected: n, found: m.coeffs().len() });
    }
    if !B::HOLDS_NUMBERS {
        return Ok(Poly::new(backend, primes)?);
    }
    let factor = (!factor.is_one()).then_some(factor);
    match m.modulus().arithmetic() {
        Arithmetic::Word(t) => {
            let words = m.coeffs().as_word().unwrap_or_default();
            Ok(Poly::from_bounded(backend, primes, &centred_words(t, words, factor), t.value() / 2)?)
        }
        Arithmetic::Wide(t) => {
            let limbs = m.coeffs().as_wide().unwrap_or_default();
            let values = match factor {
                Some(f) => times(t, limbs, f),
                None => Zeroizing::new(limbs.to_vec()),
            };
            Ok(Poly::from_parts(backend, primes, &centred_parts(t, m.modulus().value(), &values), PART_BITS)?)
        }
    }
}

/// \[f x\]_t for each residue x, centred.
fn centred_words(t: &WordModulus, words: &[u64], factor: Option<&BigUint>) -> Zeroizing<Vec<i64>> {
    let half = t.value() / 2;
    // half - x wraps exactly when x > t/2, as both are below 2^62.
    let centre = |x: u64| x.wrapping_sub(t.value() & (half.wrapping_sub(x) >> 63).wrapping_neg()) as i64;
    Zeroizing::new(match factor.and_then(|f| f.iter_u64_digits().next()) {
        Some(f) => {
            let companion = t.shoup(f);
            words.iter().map(|&x| centre(t.reduce_once(t.mul_shoup_lazy(x, f, companion)))).collect()
        }
        None => words.iter().map(|&x| centre(x)).collect(),
    })
}

fn times(t: &WideModulus, limbs: &[U256], factor: &BigUint) -> Zeroizing<Vec<U256>> {
    let f = from_biguint(factor).unwrap_or_default();
    Zeroizing::new(match t.to_montgomery(&f) {
        Some(form) => limbs.iter().map(|x| t.mul_constant(x, &form)).collect(),
        None => limbs.iter().map(|x| t.mul(x, &f)).collect(),
    })
}

/// Bits of a part of a wide coefficient.
const PART_BITS: u32 = 60;

/// The centred representative of each x in parts of [`PART_BITS`] bits, the lowest first, of which the last has the sign: as
/// many for each as t takes.
fn centred_parts(t: &WideModulus, t_value: &BigUint, values: &[U256]) -> Vec<Zeroizing<Vec<i64>>> {
    let above_half = from_biguint(&((t_value >> 1u32) + 1u32)).unwrap_or(*t.value());
    let centre = |x: &U256| {
        let mask = at_least(x, &above_half).wrapping_neg();
        difference(x, &t.value().map(|limb| limb & mask))
    };
    let centred: Zeroizing<Vec<U256>> = Zeroizing::new(values.iter().map(centre).collect());
    let last = t_value.bits().div_ceil(u64::from(PART_BITS)) as u32 - 1;
    let part = |k: u32| {
        let (word, shift) = ((k * PART_BITS / 64) as usize, k * PART_BITS % 64);
        let mask = if k == last { u64::MAX } else { (1 << PART_BITS) - 1 };
        let of = |x: &U256| {
            // Above the highest limb are copies of the sign.
            let above = x.get(word + 1).copied().unwrap_or((x[3] as i64 >> 63) as u64);
            ((((u128::from(above) << 64) | u128::from(x[word])) >> shift) as u64 & mask) as i64
        };
        Zeroizing::new(centred.iter().map(of).collect())
    };
    (0..=last).map(part).collect()
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;

    use super::*;
    use crate::plain_modulus::to_biguint;

    #[test]
    fn parts_of_centred_residues_add_up() {
        for bits in [63, 64, 120, 121, 128, 180, 192, 255, 256u32] {
            let t_value = (BigUint::one() << bits) - 59u32;
            let t = WideModulus::new(&t_value).unwrap();
            let half = &t_value >> 1u32;
            let mut values = vec![BigUint::ZERO, BigUint::one(), half.clone(), &half + 1u32, &t_value - 1u32];
            values.extend((0..100u32).map(|i| (&t_value * (i * i + 7)) / 10_151u32));
            let limbs: Vec<U256> = values.iter().map(|x| from_biguint(x).unwrap()).collect();
            let parts = centred_parts(&t, &t_value, &limbs);
            assert_eq!(parts.len(), bits.div_ceil(PART_BITS) as usize);
            for (i, x) in values.iter().enumerate() {
                assert_eq!(&to_biguint(&limbs[i]), x);
                let sum: BigInt = (0u32..).zip(&parts).map(|(k, part)| BigInt::from(part[i]) << (k * PART_BITS)).sum();
                let expected =
                    BigInt::from(x.clone()) - if *x > half { BigInt::from(t_value.clone()) } else { 0.into() };
                assert_eq!(sum, expected, "{x} modulo {t_value}");
            }
        }
    }
}
