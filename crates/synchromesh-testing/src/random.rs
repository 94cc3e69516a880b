//! Reproducible test inputs: a 64-bit generator, and residues that visit the edges 0, 1, q-1.

use num_bigint::BigInt;
use num_integer::Integer;

/// SplitMix64: a fixed sequence for a fixed seed. For tests only; it hides nothing.
#[derive(Clone, Debug)]
pub struct SplitMix {
    state: u64,
}

impl SplitMix {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in [0, bound), with a bias below bound / 2^64; bound > 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// An integer in (-bound/2, bound/2], with a bias below 2^-64.
    pub fn integer(&mut self, bound: &BigInt) -> BigInt {
        let words = bound.bits() / 64 + 2;
        let wide = (0..words).fold(BigInt::from(0), |x, _| (x << 64u32) + self.word());
        crate::integer::centre(&wide.mod_floor(bound), bound)
    }

    /// A polynomial with n coefficients in (-bound/2, bound/2].
    pub fn int_poly(&mut self, n: usize, bound: &BigInt) -> Vec<BigInt> {
        (0..n).map(|_| self.integer(bound)).collect()
    }

    /// n residues modulo q; the first ones are 0, 1, q-1, (q-1)/2, (q+1)/2 as far as n allows.
    pub fn residues(&mut self, n: usize, q: u64) -> Vec<u64> {
        let edges = [0, 1, q - 1, (q - 1) / 2, q.div_ceil(2)];
        (0..n).map(|i| edges.get(i).map_or_else(|| self.below(q), |edge| edge % q)).collect()
    }

    /// n coefficients in {-1, 0, 1}.
    pub fn ternary(&mut self, n: usize) -> Vec<i64> {
        (0..n).map(|_| self.below(3) as i64 - 1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = SplitMix::new(1_234_567);
        assert_eq!(random.word(), 6_457_827_717_110_365_317);
        assert_eq!(random.word(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn residues_begin_with_the_edges_and_stay_in_range() {
        let residues = SplitMix::new(7).residues(1000, 97);
        assert_eq!(residues[..5], [0, 1, 96, 48, 49]);
        assert!(residues.iter().all(|&x| x < 97));
        assert!((0..97).all(|x| residues.contains(&x)), "a thousand draws visit every residue of 97");
    }

    #[test]
    fn integers_stay_in_their_interval() {
        let bound = BigInt::from(1) << 130u32;
        let mut random = SplitMix::new(3);
        let half: BigInt = &bound / 2;
        for x in random.int_poly(100, &bound) {
            assert!(-&half < x && x <= half);
        }
    }
}
