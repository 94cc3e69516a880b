//! Flooding: discrete Gaussian noise of any width, derived from a secret key and what it is added to.
//!
//! Widths are powers of two, sigma = 2^k, sampled exactly by rejection from a discrete Laplace distribution of scale
//! 2^k (Canonne, Kamath and Steinke, NeurIPS 2020, algorithms 1 to 3): all probabilities are exponentials of rationals,
//! which integers decide. Beyond 2^48 a sample of width 2^48 is multiplied by the power of two that is missing and a
//! uniform number below it added. How long rejection takes depends on samples that are thrown away and on the sizes of
//! those that are kept, which says nothing about the key.

use synchromesh_ring::sampler::{Purpose, Seed, Stream};
use zeroize::{Zeroize, Zeroizing};

use crate::secret_key::SecretKey;
use synchromesh_ring::{Backend, secrecy};

/// log2 of the widest sigma that is sampled exactly.
const EXACT_BITS: u32 = 48;

/// log2 of the widest sigma.
pub const MAX_BITS: u32 = 118;

impl<B: Backend> SecretKey<B> {
    /// A seed that depends on this key and on `subject`, which may be any bytes: one key and subject, one seed. Without
    /// the key nothing is known of it.
    #[must_use]
    pub fn seed_for(&self, label: &str, subject: &[u8]) -> Seed {
        let mut hasher = blake3::Hasher::new_derive_key("synchromesh v1 flooding");
        for chunk in self.small().as_slice().chunks(1024) {
            let mut bytes: Vec<u8> = chunk.iter().map(|&x| x as u8).collect();
            hasher.update(&bytes);
            bytes.zeroize();
        }
        hasher.update(&(label.len() as u64).to_le_bytes());
        hasher.update(label.as_bytes());
        hasher.update(subject);
        let mut hash = *hasher.finalize().as_bytes();
        hasher.zeroize();
        let seed = Seed::from_bytes(hash);
        hash.zeroize();
        seed
    }
}

/// `count` independent samples of the discrete Gaussian of sigma = 2^`bits`; `bits` is at most [`MAX_BITS`].
#[must_use]
pub fn gaussian(seed: &Seed, bits: u32, count: usize) -> Zeroizing<Vec<i128>> {
    let mut source = Source::new(seed);
    let exact = bits.min(EXACT_BITS);
    let rest = bits.min(MAX_BITS) - exact;
    let sample = |_| (source.gaussian(exact) << rest) + source.bits(rest) as i128;
    Zeroizing::new((0..count).map(sample).collect())
}

/// Random words in order.
struct Source {
    stream: Stream,
    words: Zeroizing<[u64; 512]>,
    position: u64,
}

impl Source {
    fn new(seed: &Seed) -> Self {
        Self { stream: Stream::new(seed, Purpose::Flooding, 0, 0), words: Zeroizing::new([0; 512]), position: 0 }
    }

    fn word(&mut self) -> u64 {
        let at = (self.position % 512) as usize;
        if at == 0 {
            self.stream.fill_words(self.position, &mut self.words[..]);
            // Rejection takes a time that depends on these words, so that what memcheck says of what follows is of
            // the key alone.
            secrecy::reveal_all(&self.words[..]);
        }
        self.position += 1;
        self.words[at]
    }

    /// Uniform below 2^`count`, `count` at most 128.
    fn bits(&mut self, count: u32) -> u128 {
        if count == 0 {
            return 0;
        }
        let wide = u128::from(self.word()) | if count > 64 { u128::from(self.word()) << 64 } else { 0 };
        wide & (u128::MAX >> (128 - count))
    }

    /// Uniform below a small bound.
    fn below(&mut self, bound: u64) -> u64 {
        let limit = u64::MAX - u64::MAX % bound;
        loop {
            let word = self.word();
            if word < limit {
                return word % bound;
            }
        }
    }

    /// True with probability exp(-numerator / 2^log2_denominator), for a quotient of at most 1.
    fn exp_small(&mut self, numerator: u128, log2_denominator: u32) -> bool {
        let mut k = 1;
        // Uniform below 2^log2_denominator k.
        while self.bits(log2_denominator) * u128::from(k) + u128::from(self.below(k)) < numerator {
            k += 1;
        }
        k % 2 == 1
    }

    /// True with probability exp(-numerator / 2^log2_denominator).
    fn exp(&mut self, numerator: u128, log2_denominator: u32) -> bool {
        let whole = numerator >> log2_denominator;
        (0..whole).all(|_| self.exp_small(1, 0))
            && self.exp_small(numerator & ((1 << log2_denominator) - 1), log2_denominator)
    }

    /// The discrete Laplace distribution: x with probability proportional to exp(-|x| / 2^bits).
    fn laplace(&mut self, bits: u32) -> i128 {
        loop {
            let low = self.bits(bits);
            if !self.exp_small(low, bits) {
                continue;
            }
            let mut high = 0u128;
            while self.exp_small(1, 0) {
                high += 1;
            }
            let magnitude = (low + (high << bits)) as i128;
            let negative = self.word() & 1 == 1;
            if !(negative && magnitude == 0) {
                return if negative { -magnitude } else { magnitude };
            }
        }
    }

    /// x with probability proportional to exp(-x^2 / 2^(2 bits + 1)).
    fn gaussian(&mut self, bits: u32) -> i128 {
        loop {
            let x = self.laplace(bits);
            // Beyond 2^8 sigma lies a part of 2^-47000.
            let excess = x.unsigned_abs().abs_diff(1 << bits);
            if excess >> (bits + 8) == 0 && self.exp(excess * excess, 2 * bits + 1) {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_the_moments_and_the_shape_of_a_gaussian() {
        for bits in [0, 1, 5, 20, 47, 48, 49, 70, 100] {
            let samples = gaussian(&Seed::from_bytes([bits as u8; 32]), bits, 40_000);
            let scaled: Vec<f64> = samples.iter().map(|&x| x as f64 / f64::from(bits).exp2()).collect();
            let moment = |k: i32| scaled.iter().map(|x| x.powi(k)).sum::<f64>() / scaled.len() as f64;
            assert!(moment(1).abs() < 0.03, "{bits}: {}", moment(1));
            // A discrete Gaussian of width 1 has the variance of a continuous one to within 1e-6.
            assert!((moment(2) - 1.0).abs() < 0.04, "{bits}: {}", moment(2));
            assert!((moment(4) - 3.0).abs() < 0.3, "{bits}: {}", moment(4));
            let within = scaled.iter().filter(|x| x.abs() < 2.0).count() as f64 / scaled.len() as f64;
            assert!(bits < 5 || (within - 0.9545).abs() < 0.006, "{bits}: {within}");
            assert_eq!(*samples, *gaussian(&Seed::from_bytes([bits as u8; 32]), bits, 40_000));
        }
    }

    #[test]
    fn the_narrowest_has_the_probabilities_of_its_definition() {
        let samples = gaussian(&Seed::from_bytes([9; 32]), 0, 60_000);
        let total: f64 = (-20..=20).map(|x: i32| (-f64::from(x * x) / 2.0).exp()).sum();
        for x in -3..=3i128 {
            let expected = (-(x * x) as f64 / 2.0).exp() / total;
            let seen = samples.iter().filter(|&&y| y == x).count() as f64 / samples.len() as f64;
            assert!((seen - expected).abs() < 4.5 * (expected / samples.len() as f64).sqrt(), "{x}: {seen} {expected}");
        }
    }
}
