//! Residue number systems over exact integers: composition, base conversion, modulus switching, scaling.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, ToPrimitive};

use crate::integer::{centre, exact_quotient, inverse, reduce, round_quotient};
use crate::poly::IntPoly;

/// The product of the primes.
pub fn product(primes: &[u64]) -> BigInt {
    primes.iter().fold(BigInt::one(), |q, &prime| q * prime)
}

/// The residues of every coefficient: one vector a prime, entries in [0, prime).
pub fn decompose(a: &[BigInt], primes: &[u64]) -> Vec<Vec<u64>> {
    primes.iter().map(|&prime| a.iter().map(|x| residue(x, prime)).collect()).collect()
}

/// The polynomial with these residues and coefficients in [0, Q), by the Chinese remainder theorem.
///
/// # Panics
/// When the number of limbs or their lengths disagree, or the primes share a factor.
pub fn compose(limbs: &[Vec<u64>], primes: &[u64]) -> IntPoly {
    assert_eq!(limbs.len(), primes.len(), "one limb a prime");
    let n = limbs.first().map_or(0, Vec::len);
    assert!(limbs.iter().all(|limb| limb.len() == n), "limbs of different length");
    let q = product(primes);
    let idempotents: Vec<BigInt> = primes.iter().map(|&prime| idempotent(&q, &prime.into())).collect();
    let coefficient = |j: usize| limbs.iter().zip(&idempotents).map(|(limb, e)| e * limb[j]).sum::<BigInt>();
    (0..n).map(|j| reduce(&coefficient(j), &q)).collect()
}

/// [`compose`] with coefficients in (-Q/2, Q/2].
pub fn compose_centred(limbs: &[Vec<u64>], primes: &[u64]) -> IntPoly {
    let q = product(primes);
    compose(limbs, primes).iter().map(|x| centre(x, &q)).collect()
}

/// The number in [0, q) that is 1 modulo `factor` and 0 modulo q / factor: the gadget of a digit with that product
/// [ePrint 2023/1642, section 2.8].
///
/// # Panics
/// When `factor` does not divide q, or shares a factor with q / factor.
pub fn idempotent(q: &BigInt, factor: &BigInt) -> BigInt {
    let rest = exact_quotient(q, factor);
    reduce(&(&rest * inverse(&rest, factor)), q)
}

/// Exact base conversion: the residues modulo `to` of the integer in [0, Q) with the given residues.
pub fn convert(limbs: &[Vec<u64>], from: &[u64], to: &[u64]) -> Vec<Vec<u64>> {
    decompose(&compose(limbs, from), to)
}

/// Exact base conversion of the integer in (-Q/2, Q/2].
pub fn convert_centred(limbs: &[Vec<u64>], from: &[u64], to: &[u64]) -> Vec<Vec<u64>> {
    decompose(&compose_centred(limbs, from), to)
}

/// The overflow u of the fast conversion: sum_j [x_j (Q/q_j)^-1]_{q_j} Q/q_j = x + u Q with x in [0, Q), for every
/// coefficient. It lies in [0, k) for k primes.
pub fn fast_conversion_overflow(limbs: &[Vec<u64>], primes: &[u64]) -> Vec<u64> {
    let q = product(primes);
    let parts: Vec<(BigInt, BigInt)> = primes
        .iter()
        .map(|&prime| {
            let rest = &q / prime;
            let weight = inverse(&rest, &prime.into());
            (rest, weight)
        })
        .collect();
    let sum = |j: usize| {
        let terms = limbs.iter().zip(primes).zip(&parts);
        terms.map(|((limb, &prime), (rest, weight))| reduce(&(weight * limb[j]), &prime.into()) * rest).sum::<BigInt>()
    };
    let n = limbs.first().map_or(0, Vec::len);
    (0..n).map(|j| sum(j).div_floor(&q).to_u64().expect("fewer than 2^64 primes")).collect()
}

/// Modulus switching from q to q' with rounding to the nearest integer whose error is 0 modulo t
/// [ePrint 2023/1642, section 2.7]: (q' a - t [t^-1 q' a]_q) / q, the bracket centred, for every coefficient.
///
/// The result r satisfies q r = q' a modulo t and |q r - q' a| <= t q / 2. With t = 1 it is the nearest integer to
/// q' a / q.
///
/// # Panics
/// When t and q share a factor.
pub fn mod_switch(a: &[BigInt], q: &BigInt, q_new: &BigInt, t: &BigInt) -> IntPoly {
    let t_inverse = inverse(t, q);
    a.iter()
        .map(|x| {
            let scaled = q_new * x;
            let correction = t * centre(&(&t_inverse * &scaled), q);
            exact_quotient(&(scaled - correction), q)
        })
        .collect()
}

/// round(t a / q) for every coefficient, ties upwards: BFV's scaling.
pub fn scale_and_round(a: &[BigInt], t: &BigInt, q: &BigInt) -> IntPoly {
    a.iter().map(|x| round_quotient(&(t * x), q)).collect()
}

fn residue(x: &BigInt, prime: u64) -> u64 {
    x.mod_floor(&prime.into()).to_u64().expect("a residue below a 64-bit prime")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poly::infinity_norm;
    use crate::random::SplitMix;
    use crate::toy::ntt_primes;
    use num_traits::{Signed, Zero};

    fn primes() -> Vec<u64> {
        [ntt_primes(30, 4, 2), ntt_primes(45, 4, 2), ntt_primes(61, 4, 1)].concat()
    }

    #[test]
    fn composition_undoes_decomposition() {
        let primes = primes();
        let q = product(&primes);
        let mut a = SplitMix::new(1).int_poly(16, &q);
        a[0] = BigInt::zero();
        let half: BigInt = (&q - 1) / 2;
        a[1] = half.clone();
        a[2] = -half;
        assert_eq!(compose_centred(&decompose(&a, &primes), &primes), a);
    }

    #[test]
    fn idempotents_are_one_on_their_digit_and_zero_elsewhere() {
        let primes = primes();
        let digit = product(&primes[1..3]);
        let e = idempotent(&product(&primes), &digit);
        let residues: Vec<u64> = primes.iter().map(|&prime| residue(&e, prime)).collect();
        assert_eq!(residues, [0, 1, 1, 0, 0]);
    }

    #[test]
    fn fast_conversion_is_the_exact_one_plus_its_overflow() {
        let (from, to) = (primes(), ntt_primes(50, 4, 2));
        let mut random = SplitMix::new(2);
        let limbs: Vec<Vec<u64>> = from.iter().map(|&prime| random.residues(16, prime)).collect();
        let overflow = fast_conversion_overflow(&limbs, &from);
        assert!(overflow.iter().all(|&u| u < from.len() as u64));
        assert!(overflow.iter().any(|&u| u > 0), "random residues overflow somewhere");
        let q = product(&from);
        for (limb, &prime) in convert(&limbs, &from, &to).iter().zip(&to) {
            for j in 0..16 {
                let fast: BigInt = limbs
                    .iter()
                    .zip(&from)
                    .map(|(x, &p)| {
                        let rest = &q / p;
                        reduce(&(inverse(&rest, &p.into()) * x[j]), &p.into()) * rest
                    })
                    .sum();
                assert_eq!(residue(&(fast - &q * overflow[j]), prime), limb[j]);
            }
        }
    }

    #[test]
    fn switched_moduli_keep_the_residue_modulo_t() {
        let primes = primes();
        let (q, q_new) = (product(&primes), product(&primes[..3]));
        let a = SplitMix::new(3).int_poly(16, &q);
        for t in [BigInt::from(1), 2.into(), 65537.into(), (BigInt::from(1) << 128u32) + 51] {
            let switched = mod_switch(&a, &q, &q_new, &t);
            for (x, r) in a.iter().zip(&switched) {
                let error = &q * r - &q_new * x;
                assert!((&error % &t).is_zero(), "the error is 0 modulo {t}");
                assert!(error.abs() * 2 <= &t * &q, "the error is at most t q / 2");
            }
        }
        assert_eq!(mod_switch(&a, &q, &q_new, &1.into()), scale_and_round(&a, &q_new, &q));
    }

    #[test]
    fn scaling_recovers_an_encoded_message() {
        let (q, t) = (product(&primes()), BigInt::from(65537));
        let message = SplitMix::new(4).int_poly(16, &t);
        let encoded = scale_and_round(&message, &q, &t);
        assert_eq!(scale_and_round(&encoded, &t, &q), message);
        assert!(infinity_norm(&encoded) <= (&q + 1) / 2);
    }

    #[test]
    fn centred_and_plain_conversion_differ_by_the_modulus() {
        let (from, to) = (primes(), ntt_primes(50, 4, 1));
        let q = product(&from);
        let limbs = decompose(&[BigInt::from(-5)], &from);
        assert_eq!(convert_centred(&limbs, &from, &to)[0][0], to[0] - 5);
        assert_eq!(convert(&limbs, &from, &to)[0][0], residue(&(q - 5), to[0]));
    }
}
