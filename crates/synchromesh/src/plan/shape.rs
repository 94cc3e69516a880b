//! The shape of a chain: how many bits each level has, split into primes, and the digits and special primes for it.

use synchromesh_rlwe::Security;
use synchromesh_rlwe::security::max_log_qp;

/// Widest prime that a plan uses: below 2^50 the 52-bit multipliers of newer CPUs serve, and others lose little.
pub(super) const WIDTH: u32 = 50;

/// Bits for each level, lowest first, as prime widths.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) q_bits: Vec<u32>,
    pub(super) level_limbs: Vec<usize>,
}

/// Most bits of QP at this degree; 0 where the table has no entry.
pub(super) fn bit_limit(log_n: u32, security: Security) -> u32 {
    security.level().map_or(u32::MAX, |level| max_log_qp(log_n, level).unwrap_or(0))
}

/// [`bit_limit`] in words.
pub(super) fn limit_text(log_n: u32, security: Security) -> String {
    if security == Security::Insecure { "any number of".to_owned() } else { bit_limit(log_n, security).to_string() }
}

/// `bits` as the fewest equal primes of at most `width` bits; their sum is at least `bits`.
pub(super) fn split(bits: u32, width: u32) -> Vec<u32> {
    let count = bits.div_ceil(width).max(1);
    vec![bits.div_ceil(count); count as usize]
}

/// `bits` as primes of at most `width` bits whose widths add up to exactly `bits`.
pub(super) fn split_exactly(bits: u32, width: u32) -> Vec<u32> {
    let count = bits.div_ceil(width).max(1);
    (0..count).map(|i| bits / count + u32::from(i < bits % count)).collect()
}

impl Shape {
    /// Level 0 of `base` primes, then `depth` levels of `level` primes each.
    pub(super) fn new(base: &[u32], level: &[u32], depth: usize) -> Self {
        let mut q_bits = base.to_vec();
        let mut level_limbs = vec![base.len()];
        for _ in 0..depth {
            q_bits.extend(level);
            level_limbs.push(q_bits.len());
        }
        Self { q_bits, level_limbs }
    }

    /// Widths of special primes for `omega` digits: P has 4 bits more than the largest digit, so that the digits'
    /// error stays below the rounding error.
    pub(super) fn special(&self, omega: usize) -> Vec<u32> {
        let size = self.q_bits.len().div_ceil(omega);
        let largest = self.q_bits.chunks(size).map(|d| d.iter().sum::<u32>()).max().unwrap_or(0);
        split(largest + 4, WIDTH)
    }

    /// Bits of QP with these special primes, from above.
    pub(super) fn log_qp(&self, p_bits: &[u32]) -> u32 {
        self.q_bits.iter().chain(p_bits).sum()
    }

    /// The digits that are secure at this degree, cheapest first by counted operations, with their special primes:
    /// (omega + 2)(l + k) transforms and l (l + 2 omega + 2k + 3) products (ePrint 2023/1642, Table 2 and section 4).
    pub(super) fn digits(&self, log_n: u32, security: Security) -> Vec<(usize, Vec<u32>, f64)> {
        let limit = bit_limit(log_n, security);
        let l = self.q_bits.len();
        let mut found: Vec<(usize, Vec<u32>, f64)> = Vec::new();
        for omega in 1..=l.min(16) {
            let p_bits = self.special(omega);
            if self.log_qp(&p_bits) > limit {
                continue;
            }
            let (w, l, k) = (omega as f64, l as f64, p_bits.len() as f64);
            let transforms = (w + 2.0) * (l + k) * f64::from(log_n) * 0.5;
            found.push((omega, p_bits, transforms + l * (l + 2.0 * w + 2.0 * k + 3.0)));
        }
        found.sort_by(|a, b| a.2.total_cmp(&b.2));
        found
    }

    /// Fewest bits of QP that any number of digits reaches.
    pub(super) fn least_log_qp(&self) -> u32 {
        (1..=self.q_bits.len().min(16)).map(|omega| self.log_qp(&self.special(omega))).min().unwrap_or(0)
    }
}

/// Lines that explain the choice of digits.
pub(super) fn explain_digits(found: &[(usize, Vec<u32>, f64)]) -> String {
    let Some((omega, p_bits, cost)) = found.first() else { return String::new() };
    let first = format!("{omega} digit(s) with {} special prime(s) of {} bits", p_bits.len(), p_bits[0]);
    match found.get(1) {
        None => format!("key switching: {first}; no other number of digits is secure at this degree"),
        Some((other, _, more)) => format!(
            "key switching: {first}; the runner-up, {other} digit(s), would cost {:.0} % more operations",
            100.0 * (more / cost - 1.0)
        ),
    }
}
