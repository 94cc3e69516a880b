//! Toy parameter sets: small rings with real structure, for tests that need to be fast and are not secure.

/// A ring degree, a chain of ciphertext primes, special primes and a plaintext modulus.
#[derive(Clone, Debug)]
pub struct ToySet {
    /// What the set exercises.
    pub name: &'static str,
    /// log2 of the ring degree N.
    pub log_n: u32,
    /// Ciphertext primes, all 1 modulo 2N.
    pub q: Vec<u64>,
    /// Special primes, all 1 modulo 2N and none in `q`.
    pub p: Vec<u64>,
    /// Plaintext modulus.
    pub t: u64,
}

/// Sets that differ in what usually breaks: equal widths, unequal widths, one prime, odd digit borders, wide primes.
pub fn sets() -> Vec<ToySet> {
    let set = |name, log_n, q: &[u32], p: &[u32], t| {
        let mut all = distinct_primes(&[q, p].concat(), log_n);
        let p = all.split_off(q.len());
        ToySet { name, log_n, q: all, p, t }
    };
    vec![
        set("equal 50-bit primes", 10, &[50; 6], &[50; 3], 65537),
        set("one prime", 10, &[50], &[50], 65537),
        set("unequal widths", 10, &[60, 45, 45, 36, 30], &[60, 51], 65537),
        set("widest primes", 10, &[61; 5], &[61; 2], 786_433),
        set("narrowest primes", 10, &[20, 20, 21, 22], &[24, 24], 12289),
        set("binary plaintext", 11, &[45; 7], &[50; 2], 2),
    ]
}

/// Distinct primes with these widths in this order, all 1 modulo 2N, the largest of each width first.
///
/// # Panics
/// When a width has too few of them.
pub fn distinct_primes(widths: &[u32], log_n: u32) -> Vec<u64> {
    let mut chosen: Vec<u64> = Vec::with_capacity(widths.len());
    for (i, &width) in widths.iter().enumerate() {
        let earlier = widths[..i].iter().filter(|&&w| w == width).count();
        chosen.push(ntt_primes(width, log_n, earlier + 1)[earlier]);
    }
    chosen
}

/// The `count` largest primes of exactly `width` bits (at most 61) that are 1 modulo 2N, in falling order.
///
/// # Panics
/// When there are fewer.
pub fn ntt_primes(width: u32, log_n: u32, count: usize) -> Vec<u64> {
    assert!((2..=61).contains(&width), "widths go from 2 to 61 bits, not {width}");
    let step = 2u64 << log_n;
    let (low, high) = (1u64 << (width - 1), 1u64 << width);
    let last = (high - 2) / step * step + 1;
    let candidates = (0..).map_while(|k| last.checked_sub(k * step)).take_while(|&q| q > low);
    let primes: Vec<u64> = candidates.filter(|&q| is_prime(q)).take(count).collect();
    assert_eq!(primes.len(), count, "too few {width}-bit primes that are 1 modulo {step}");
    primes
}

/// Miller-Rabin with the twelve smallest primes as bases, which decides every number below 2^64
/// (Sorenson and Webster 2015).
pub fn is_prime(n: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if n < 2 {
        return false;
    }
    if let Some(base) = BASES.iter().find(|&&base| n.is_multiple_of(base)) {
        return n == *base;
    }
    let (odd, twos) = ((n - 1) >> (n - 1).trailing_zeros(), (n - 1).trailing_zeros());
    BASES.iter().all(|&base| {
        let mut x = pow(base, odd, n);
        if x == 1 || x == n - 1 {
            return true;
        }
        (1..twos).any(|_| {
            x = mul(x, x, n);
            x == n - 1
        })
    })
}

fn mul(x: u64, y: u64, n: u64) -> u64 {
    (u128::from(x) * u128::from(y) % u128::from(n)) as u64
}

fn pow(mut base: u64, mut exponent: u64, n: u64) -> u64 {
    let mut power = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = mul(power, base, n);
        }
        base = mul(base, base, n);
        exponent >>= 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn primality_agrees_with_trial_division() {
        let trial = |n: u64| n > 1 && (2..n).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
        assert!((0..20_000).all(|n| is_prime(n) == trial(n)));
    }

    #[test]
    fn strong_pseudoprimes_are_composite() {
        for n in [3_215_031_751, 3_474_749_660_383, 341_550_071_728_321, 3_825_123_056_546_413_051] {
            assert!(!is_prime(n), "{n}");
        }
        assert!(is_prime((1 << 61) - 1));
    }

    #[test]
    fn every_set_is_what_it_says() {
        for set in sets() {
            let primes: BTreeSet<u64> = set.q.iter().chain(&set.p).copied().collect();
            assert_eq!(primes.len(), set.q.len() + set.p.len(), "{}: repeated primes", set.name);
            let step = 2u64 << set.log_n;
            assert!(primes.iter().all(|&q| is_prime(q) && q % step == 1 && q % set.t != 0), "{}", set.name);
        }
    }

    #[test]
    fn primes_come_in_falling_order_from_the_top_of_their_width() {
        assert_eq!(ntt_primes(17, 4, 2), [131_041, 131_009]);
        assert!(ntt_primes(50, 16, 4).windows(2).all(|pair| pair[0] > pair[1] && pair[1] >> 49 == 1));
    }
}
