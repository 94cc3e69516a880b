//! Primality of plaintext moduli: Miller-Rabin, proven below 2^64, with error below 4^-64 above; primes t = 1 mod 2N.

use num_bigint::BigUint;

/// The first twelve primes: as Miller-Rabin bases they decide every n below 3.18 * 10^23 (Sorenson and Webster, 2015).
const BASES: [u32; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];

/// Bases drawn from a hash of n for n of more than 64 bits; each passes a composite with probability at most 1/4.
const HASHED_ROUNDS: usize = 64;

/// Whether n is prime. For public n; the time depends on it.
pub(super) fn is_prime(n: &BigUint) -> bool {
    if n < &BigUint::from(2u8) {
        return false;
    }
    for base in BASES {
        if n == &BigUint::from(base) {
            return true;
        }
        if n % base == BigUint::ZERO {
            return false;
        }
    }
    let witness = Witness::new(n);
    let fixed = BASES.iter().all(|&base| witness.accepts(&BigUint::from(base)));
    if !fixed || n.bits() <= 64 {
        return fixed;
    }
    let mut stream = blake3::Hasher::new_derive_key("synchromesh 1 plaintext modulus, primality bases")
        .update(&n.to_bytes_le())
        .finalize_xof();
    let span = n - 3u8;
    (0..HASHED_ROUNDS).all(|_| {
        let mut bytes = [0; 48];
        stream.fill(&mut bytes);
        witness.accepts(&(BigUint::from_bytes_le(&bytes) % &span + 2u8))
    })
}

/// n - 1 = odd * 2^twos.
struct Witness<'a> {
    n: &'a BigUint,
    n_minus_one: BigUint,
    odd: BigUint,
    twos: u64,
}

impl<'a> Witness<'a> {
    fn new(n: &'a BigUint) -> Self {
        let n_minus_one = n - 1u8;
        let twos = n_minus_one.trailing_zeros().unwrap_or(0);
        Self { n, odd: &n_minus_one >> twos, n_minus_one, twos }
    }

    /// Whether n passes for this base in `[2, n - 2]`.
    fn accepts(&self, base: &BigUint) -> bool {
        let mut power = base.modpow(&self.odd, self.n);
        if power == BigUint::from(1u8) || power == self.n_minus_one {
            return true;
        }
        for _ in 1..self.twos {
            power = &power * &power % self.n;
            if power == self.n_minus_one {
                return true;
            }
        }
        false
    }
}

/// The primes of exactly `bits` bits that are 1 mod 2^(log_n + 1): the largest when `descending`, else the smallest.
pub(super) fn slot_prime(bits: u32, log_n: u32, descending: bool) -> Option<BigUint> {
    let step_log = log_n.checked_add(1)?;
    if bits <= step_log || bits > 256 {
        return None;
    }
    let one = BigUint::from(1u8);
    let step = &one << step_log;
    let last_multiplier = (&one << (bits - step_log)) - 1u8;
    let first_multiplier = &one << (bits - step_log - 1);
    let mut multiplier = if descending { last_multiplier.clone() } else { first_multiplier.clone() };
    while multiplier >= first_multiplier && multiplier <= last_multiplier {
        let candidate = &multiplier * &step + 1u8;
        if is_prime(&candidate) {
            return Some(candidate);
        }
        if descending {
            multiplier -= 1u8;
        } else {
            multiplier += 1u8;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_agree_with_a_sieve() {
        let mut composite = vec![false; 20_000];
        for n in 2..composite.len() {
            assert_eq!(is_prime(&BigUint::from(n)), !composite[n], "n = {n}");
            for multiple in (2 * n..composite.len()).step_by(n) {
                composite[multiple] = true;
            }
        }
        assert!(!is_prime(&BigUint::ZERO) && !is_prime(&BigUint::from(1u8)));
    }

    #[test]
    fn strong_pseudoprimes_and_carmichael_numbers_are_composite() {
        // The last passes for each of the first nine primes as base, the others for fewer.
        for n in [561u64, 2047, 1_373_653, 3_215_031_751, 3_474_749_660_383, 3_825_123_056_546_413_051] {
            assert!(!is_prime(&BigUint::from(n)), "n = {n}");
        }
    }

    #[test]
    fn known_large_primes_and_composites_are_told_apart() {
        let one = BigUint::from(1u8);
        for (exponent, minus, prime) in
            [(61u32, 1u32, true), (127, 1, true), (255, 19, true), (256, 189, true), (128, 1, false), (255, 21, false)]
        {
            assert_eq!(is_prime(&((&one << exponent) - minus)), prime, "2^{exponent} - {minus}");
        }
        let product = ((&one << 127u32) - 1u8) * ((&one << 107u32) - 1u8);
        assert!(!is_prime(&product));
    }

    #[test]
    fn slot_primes_are_extreme() {
        for (bits, log_n) in [(14, 4), (17, 11), (20, 10), (17, 15)] {
            let step = 2u64 << log_n;
            let all: Vec<u64> = ((1u64 << (bits - 1))..(1 << bits))
                .filter(|p| p % step == 1 && (2..).take_while(|d| d * d <= *p).all(|d| p % d != 0))
                .collect();
            assert_eq!(slot_prime(bits, log_n, true), all.last().map(|&p| BigUint::from(p)));
            assert_eq!(slot_prime(bits, log_n, false), all.first().map(|&p| BigUint::from(p)));
        }
        assert_eq!(slot_prime(12, 11, true), None);
        assert_eq!(slot_prime(300, 11, true), None);
        assert_eq!(slot_prime(20, u32::MAX, true), None);
    }
}
