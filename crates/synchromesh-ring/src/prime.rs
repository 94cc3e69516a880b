//! Primes q = 1 mod m of a given width, and the frozen roots of unity modulo them.

use crate::modulus::{Modulus, ModulusError};

/// Narrowest prime width, in bits.
pub const MIN_PRIME_BITS: u32 = 20;
/// Widest prime width, in bits.
pub const MAX_PRIME_BITS: u32 = 61;

/// Why primes or roots of unity cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrimeError {
    /// The width is outside 20 to 61 bits.
    #[error("prime width {width} is outside {MIN_PRIME_BITS} to {MAX_PRIME_BITS} bits")]
    Width {
        /// The width asked for, in bits.
        width: u32,
    },
    /// The congruence 1 mod m makes no sense for m = 0.
    #[error("primes congruent to 1 mod 0 do not exist; use a positive congruence modulus")]
    Congruence,
    /// Fewer primes of this width exist than were asked for.
    #[error("{have} primes of {width} bits are 1 mod {congruence}, {need} were asked for; the nearest width with enough is {}",
        nearest.map_or("none".to_owned(), |w| format!("{w} bits")))]
    NotEnoughPrimes {
        /// The width asked for, in bits.
        width: u32,
        /// How many exist, exclusions apart.
        have: usize,
        /// How many were asked for.
        need: usize,
        /// They are 1 modulo this.
        congruence: u64,
        /// The nearest width, in bits, that has enough.
        nearest: Option<u32>,
    },
    /// The modulus is not prime.
    #[error("{q} is not prime; use a prime that is 1 mod {congruence}")]
    NotPrime {
        /// The number refused.
        q: u64,
        /// It must be 1 modulo this.
        congruence: u64,
    },
    /// No primitive root of unity of the order exists.
    #[error("{q} is not 1 mod {congruence}, so it has no root of unity of that order; choose another prime")]
    NoRoot {
        /// The prime refused.
        q: u64,
        /// The order asked for.
        congruence: u64,
    },
    /// The number is no [`Modulus`].
    #[error(transparent)]
    Modulus(#[from] ModulusError),
}

/// Whether n is prime: Miller-Rabin with the first twelve prime bases, exact for all 64-bit n.
#[must_use]
pub fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if let Some(p) = BASES.into_iter().find(|&p| n.is_multiple_of(p)) {
        return n == p;
    }
    if n < 2 {
        return false;
    }
    match Modulus::new(n) {
        Ok(modulus) => passes(n, &BASES, |a, b| modulus.mul(a, b)),
        Err(_) => passes(n, &BASES, |a, b| (u128::from(a) * u128::from(b) % u128::from(n)) as u64),
    }
}

/// Whether the odd number n passes the Miller-Rabin test for all bases; `mul` is the product modulo n.
fn passes(n: u64, bases: &[u64], mul: impl Fn(u64, u64) -> u64) -> bool {
    let twos = (n - 1).trailing_zeros();
    let odd = (n - 1) >> twos;
    bases.iter().all(|&base| {
        let (mut x, mut square, mut e) = (1, base, odd);
        while e > 0 {
            if e & 1 == 1 {
                x = mul(x, square);
            }
            square = mul(square, square);
            e >>= 1;
        }
        if x == 1 || x == n - 1 {
            return true;
        }
        (1..twos).any(|_| {
            x = mul(x, x);
            x == n - 1
        })
    })
}

/// The `count` largest primes of exactly `bits` bits that are 1 mod 2N, N = 2^log_n, in decreasing order.
///
/// # Errors
/// [`PrimeError::Width`], [`PrimeError::NotEnoughPrimes`].
pub fn ntt_primes(bits: u32, log_n: u32, count: usize) -> Result<Vec<u64>, PrimeError> {
    ntt_primes_excluding(bits, log_n, count, &[])
}

/// As [`ntt_primes`], passing over the primes in `exclude`.
///
/// # Errors
/// [`PrimeError::Width`], [`PrimeError::NotEnoughPrimes`].
pub fn ntt_primes_excluding(bits: u32, log_n: u32, count: usize, exclude: &[u64]) -> Result<Vec<u64>, PrimeError> {
    primes_one_mod(bits, 1u64.checked_shl(log_n + 1).unwrap_or(0), count, exclude)
}

/// The `count` largest primes of exactly `bits` bits that are 1 mod `congruence` and not in `exclude`, in
/// decreasing order. Searches all of the width before it gives up.
///
/// # Errors
/// [`PrimeError::Width`], [`PrimeError::Congruence`] for 0, [`PrimeError::NotEnoughPrimes`].
pub fn primes_one_mod(bits: u32, congruence: u64, count: usize, exclude: &[u64]) -> Result<Vec<u64>, PrimeError> {
    if !(MIN_PRIME_BITS..=MAX_PRIME_BITS).contains(&bits) {
        return Err(PrimeError::Width { width: bits });
    }
    if congruence == 0 {
        return Err(PrimeError::Congruence);
    }
    let found = search(bits, congruence, count, exclude);
    if found.len() == count {
        return Ok(found);
    }
    let mut widths: Vec<u32> = (MIN_PRIME_BITS..=MAX_PRIME_BITS).filter(|&w| w != bits).collect();
    widths.sort_by_key(|w| w.abs_diff(bits));
    let nearest = widths.into_iter().find(|&w| search(w, congruence, count, exclude).len() == count);
    Err(PrimeError::NotEnoughPrimes { width: bits, have: found.len(), need: count, congruence, nearest })
}

/// At most `count` primes of `bits` bits, 1 mod m, not excluded, from the largest downwards.
fn search(bits: u32, m: u64, count: usize, exclude: &[u64]) -> Vec<u64> {
    let low = 1u64 << (bits - 1);
    let top = (1u64 << bits) - 1;
    if count == 0 || m > top {
        return Vec::new();
    }
    let first = (top - 1) / m * m + 1;
    // An odd m with an odd multiple gives an even candidate, refused by the first base of the primality test.
    std::iter::successors(Some(first), |&q| q.checked_sub(m))
        .take_while(|&q| q >= low)
        .filter(|q| !exclude.contains(q) && is_prime(*q))
        .take(count)
        .collect()
}

/// psi = x^((q-1)/2N) for the least quadratic non-residue x mod q: a primitive 2N-th root of unity, N = 2^log_n.
///
/// The definition is frozen: keys and ciphertexts in the NTT domain depend on it.
///
/// # Errors
/// [`PrimeError::NotPrime`], [`PrimeError::NoRoot`] unless q = 1 mod 2N.
pub fn root_of_unity(modulus: &Modulus, log_n: u32) -> Result<u64, PrimeError> {
    let q = modulus.value();
    let congruence = 1u64.checked_shl(log_n + 1).unwrap_or(0);
    if !is_prime(q) {
        return Err(PrimeError::NotPrime { q, congruence });
    }
    if congruence == 0 || !(q - 1).is_multiple_of(congruence) {
        return Err(PrimeError::NoRoot { q, congruence });
    }
    // x is a non-residue if and only if x^((q-1)/2) = -1, and then psi^N = -1: the order is exactly 2N.
    let x = (2..q).find(|&x| modulus.pow(x, (q - 1) / 2) == q - 1);
    x.map(|x| modulus.pow(x, (q - 1) / congruence)).ok_or(PrimeError::NoRoot { q, congruence })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primality_agrees_with_trial_division_and_known_pseudoprimes() {
        for n in 0..5000u64 {
            let slow = n >= 2 && (2..n).take_while(|d| d * d <= n).all(|d| n % d != 0);
            assert_eq!(is_prime(n), slow, "{n}");
        }
        for composite in [3_215_031_751, 3_825_123_056_546_413_051, 341_550_071_728_321, (1 << 60) - 1, u64::MAX] {
            assert!(!is_prime(composite), "{composite}");
        }
        for prime in [(1 << 61) - 1, 18_446_744_073_709_551_557, 0x0fff_ffff_fffc_0001] {
            assert!(is_prime(prime), "{prime}");
        }
    }

    #[test]
    fn primes_have_the_width_and_the_congruence() {
        for bits in [20, 30, 45, 50, 51, 60, 61] {
            let log_n = if bits == 20 { 10 } else { 14 };
            let primes = ntt_primes(bits, log_n, 3).unwrap();
            assert!(primes.windows(2).all(|w| w[0] > w[1]));
            for q in &primes {
                assert!(is_prime(*q) && q % (2 << log_n) == 1 && 64 - q.leading_zeros() == bits);
            }
            let others = ntt_primes_excluding(bits, log_n, 1, &primes[..1]).unwrap();
            assert_eq!(others, primes[1..2]);
        }
        assert!(primes_one_mod(40, 3 * 65537, 2, &[]).unwrap().iter().all(|q| q % (3 * 65537) == 1));
    }

    #[test]
    fn scarcity_is_reported_with_a_remedy() {
        let error = ntt_primes(20, 16, 2).unwrap_err();
        let expected =
            PrimeError::NotEnoughPrimes { width: 20, have: 1, need: 2, congruence: 1 << 17, nearest: Some(23) };
        assert_eq!(error, expected);
        assert_eq!(ntt_primes(19, 10, 1), Err(PrimeError::Width { width: 19 }));
        assert_eq!(ntt_primes(62, 10, 1), Err(PrimeError::Width { width: 62 }));
        assert_eq!(ntt_primes(50, 63, 1), Err(PrimeError::Congruence));
        assert_eq!(ntt_primes(50, 12, 0), Ok(vec![]));
    }

    #[test]
    fn roots_have_order_exactly_2n() {
        for bits in [21, 36, 50, 61] {
            let q = ntt_primes(bits, 10, 1).unwrap()[0];
            let m = Modulus::new(q).unwrap();
            let psi = root_of_unity(&m, 10).unwrap();
            assert_eq!(m.pow(psi, 1 << 10), q - 1);
        }
        let m = Modulus::new((1 << 61) - 1).unwrap();
        assert_eq!(root_of_unity(&m, 10), Err(PrimeError::NoRoot { q: m.value(), congruence: 2048 }));
        let composite = Modulus::new((1 << 20) + 1).unwrap();
        assert!(matches!(root_of_unity(&composite, 10), Err(PrimeError::NotPrime { .. })));
    }
}
