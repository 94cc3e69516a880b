//! From Z_t to RNS: the centred representative of f m mod t, modulo each prime; constant time in m.

use num_bigint::BigUint;
use num_traits::One;
use synchromesh_rlwe::ring::modulus::Modulus;
use synchromesh_rlwe::ring::{Backend, Coeff, IndexSet, Poly};
use zeroize::Zeroizing;

use crate::batch::PlainPoly;
use crate::error::{Error, Result};
use crate::plain_modulus::{Arithmetic, U256, WideModulus, WordModulus, at_least, from_biguint};

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
            Ok(Poly::from_signed(backend, primes, &centred_words(t, words, factor))?)
        }
        Arithmetic::Wide(t) => {
            let limbs = m.coeffs().as_wide().unwrap_or_default();
            let values = match factor {
                Some(f) => times(t, limbs, f),
                None => Zeroizing::new(limbs.to_vec()),
            };
            Ok(Poly::from_words(backend, primes, &wide_residues(backend, primes, t, m.modulus().value(), &values))?)
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

/// The centred representative of each x modulo each prime, limb after limb.
fn wide_residues<B: Backend>(
    backend: &B,
    primes: &IndexSet,
    t: &WideModulus,
    t_value: &BigUint,
    values: &[U256],
) -> Zeroizing<Vec<u64>> {
    let above_half = from_biguint(&((t_value >> 1u32) + 1u32)).unwrap_or(*t.value());
    let mut words = Zeroizing::new(vec![0; primes.len() * values.len()]);
    for (i, limb) in primes.iter().zip(words.chunks_exact_mut(values.len().max(1))) {
        let q = backend.ring().modulus(i);
        let t_residue = reduce(&q, t.value());
        for (out, x) in limb.iter_mut().zip(values) {
            let subtract = t_residue & at_least(x, &above_half).wrapping_neg();
            *out = q.sub(reduce(&q, x), subtract);
        }
    }
    words
}

/// x mod q by Horner's rule on the limbs.
#[inline]
fn reduce(q: &Modulus, x: &U256) -> u64 {
    x.iter().rev().fold(0, |r, &limb| q.reduce_u128(u128::from(r) << 64 | u128::from(limb)))
}
