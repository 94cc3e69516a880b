//! Numbers that look random and are the same for the same seed: splitmix64 (Steele, Lea, Flood 2014).

/// A generator, begun at a seed.
#[derive(Debug, Clone)]
pub struct Numbers(pub u64);

impl Numbers {
    /// Any word.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than the bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.word() % bound as u64) as usize
    }

    /// From -1 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / 2f64.powi(52) - 1.0
    }
}
