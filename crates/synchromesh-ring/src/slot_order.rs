//! The frozen slot order: slot i of a transform holds the value at psi^e(i).
//!
//! With i = 64 B + 8 j + v (v, j < 8), e(i) = 2 rev(64 B + 8 v + j) + 1, rev the bit reversal on log2 N bits: the
//! usual bit-reversed order with each block of 64 read as an 8 x 8 matrix and transposed.

/// Least log2 N of a transform.
pub const MIN_LOG_N: u32 = 10;
/// Greatest log2 N of a transform.
pub const MAX_LOG_N: u32 = 18;

/// The slot of the bit-reversed order that slot i stands for; its own inverse.
#[inline]
pub(crate) fn transpose64(i: usize) -> usize {
    (i & !63) | ((i & 7) << 3) | ((i >> 3) & 7)
}

/// The exponents e(i), odd and below 2N: slot i of the transform holds the value at psi^e(i).
///
/// One order, a function of N = 2^log_n only, equal for all primes, widths and instruction sets.
///
/// # Panics
/// If log_n is outside 10 to 18.
#[must_use]
pub fn slot_exponents(log_n: u32) -> Vec<u32> {
    check(log_n);
    (0..1usize << log_n).map(|i| slot_exponent(i, log_n)).collect()
}

#[inline]
fn slot_exponent(i: usize, log_n: u32) -> u32 {
    2 * ((transpose64(i) as u32).reverse_bits() >> (32 - log_n)) + 1
}

/// The permutation of slots that is a(X) -> a(X^g): NTT(a(X^g))\[i\] = NTT(a)\[perm\[i\]\].
///
/// It maps each block of 64 slots onto one block of 64 slots. `g` is taken modulo 2N.
///
/// # Panics
/// If g is even, or log_n outside 10 to 18.
#[must_use]
pub fn galois_permutation(log_n: u32, g: u32) -> Vec<u32> {
    check(log_n);
    assert!(g % 2 == 1, "Galois element {g} is even; use an odd one below 2N");
    let mask = (2u32 << log_n) - 1;
    (0..1usize << log_n)
        .map(|i| {
            let e = slot_exponent(i, log_n).wrapping_mul(g) & mask;
            transpose64(((e >> 1).reverse_bits() >> (32 - log_n)) as usize) as u32
        })
        .collect()
}

/// [`galois_permutation`] in both directions: where each slot comes from, and where each block of 64 slots goes.
#[derive(Debug)]
pub(crate) struct SlotPermutation {
    from: Vec<u32>,
    block_to: Vec<u32>,
}

impl SlotPermutation {
    /// That of a(X) -> a(X^g); panics as [`galois_permutation`].
    pub(crate) fn new(log_n: u32, g: u32) -> Self {
        let from = galois_permutation(log_n, g);
        let mut block_to = vec![0; from.len() / 64];
        from.iter().step_by(64).zip(0..).for_each(|(&slot, to)| block_to[slot as usize / 64] = to);
        Self { from, block_to }
    }

    /// Slot i of the result is slot `from()[i]`: a permutation of 0..N.
    pub(crate) fn from(&self) -> &[u32] {
        &self.from
    }

    /// Block b of 64 slots becomes block `block_to()[b]`: a permutation of 0..N/64.
    pub(crate) fn block_to(&self) -> &[u32] {
        &self.block_to
    }
}

fn check(log_n: u32) {
    assert!((MIN_LOG_N..=MAX_LOG_N).contains(&log_n), "log_n = {log_n} is outside {MIN_LOG_N} to {MAX_LOG_N}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_the_odd_numbers_below_2n() {
        for log_n in [10, 13] {
            let mut e = slot_exponents(log_n);
            assert_eq!(&e[..2], &[1, 1 + (2 << log_n) / 16]);
            e.sort_unstable();
            assert!(e.iter().enumerate().all(|(i, &x)| x as usize == 2 * i + 1));
        }
    }

    #[test]
    fn permutations_follow_the_exponents_and_keep_blocks() {
        for (log_n, g) in [(10, 1), (10, 5), (11, 4095), (12, 625)] {
            let e = slot_exponents(log_n);
            let perm = galois_permutation(log_n, g);
            for (i, &p) in perm.iter().enumerate() {
                assert_eq!(e[p as usize], e[i].wrapping_mul(g) % (2 << log_n));
                assert_eq!(p / 64, perm[i & !63] / 64);
            }
            let both = SlotPermutation::new(log_n, g);
            assert_eq!(both.from(), perm);
            for (from, &to) in both.block_to().iter().enumerate() {
                assert_eq!(perm[64 * to as usize] as usize / 64, from);
            }
        }
    }
}
