//! Flooding: discrete Gaussian noise of any width, derived from a secret key and what it is added to.
//!
//! Widths are powers of two, sigma = 2^k, sampled exactly by rejection from a discrete Laplace distribution of scale
//! 2^k (Canonne, Kamath and Steinke, NeurIPS 2020, algorithms 1 to 3): all probabilities are exponentials of rationals,
//! which integers decide. Beyond 2^48 a sample of width 2^48 is multiplied by the power of two that is missing and a
//! uniform number below it added. [`nested`] has one noise for all widths, each that of the width below and more. How
//! long rejection takes depends on samples that are thrown away and on the sizes of those that are kept, which says
//! nothing about the key.

use synchromesh_ring::sampler::{Purpose, Seed, Stream};
use zeroize::{Zeroize, Zeroizing};

use crate::secret_key::SecretKey;
use synchromesh_ring::{Backend, secrecy};

/// log2 of the widest sigma that is sampled exactly.
const EXACT_BITS: u32 = 48;

/// log2 of the widest sigma.
pub const MAX_BITS: u32 = 118;

/// log2 of the narrowest sigma of [`nested`].
pub const MIN_BITS: u32 = 16;

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
        seed_of(hasher)
    }
}

/// The seed that is the hash of what was absorbed; the hash and what led to it are wiped.
#[must_use]
pub fn seed_of(mut hasher: blake3::Hasher) -> Seed {
    let mut hash = *hasher.finalize().as_bytes();
    hasher.zeroize();
    let seed = Seed::from_bytes(hash);
    hash.zeroize();
    seed
}

/// A variance: 4^bits or three times that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variance {
    Once,
    Thrice,
}

/// `count` independent samples of the discrete Gaussian of sigma = 2^`bits`; `bits` is at most [`MAX_BITS`].
#[must_use]
pub fn gaussian(seed: &Seed, bits: u32, count: usize) -> Zeroizing<Vec<i128>> {
    samples(seed, Variance::Once, bits, count)
}

/// As [`gaussian`], for [`MIN_BITS`] to [`MAX_BITS`], so that for one seed the samples of a width are those of the width
/// below plus independent ones of the variance that is missing.
///
/// With sigma_0 = 2^16 the sum is sigma_0 and sqrt(3) 2^j for j = 16 .. `bits`, each of them a discrete Gaussian far above
/// the smoothing parameter of the integers: the sum is one of width 2^`bits` but for a factor of 1 + 2^-2^30.
#[must_use]
pub fn nested(seed: &Seed, bits: u32, count: usize) -> Zeroizing<Vec<i128>> {
    let mut sum = samples(&seed.derive("narrowest", 0), Variance::Once, MIN_BITS, count);
    for step in MIN_BITS..bits.min(MAX_BITS) {
        let more = samples(&seed.derive("wider", step.into()), Variance::Thrice, step, count);
        // At most 2^127, but for samples of more than 2^7 sigma.
        sum.iter_mut().zip(more.iter()).for_each(|(x, y)| *x = x.saturating_add(*y));
    }
    sum
}

/// `count` independent samples of this variance at 4^`bits`.
fn samples(seed: &Seed, variance: Variance, bits: u32, count: usize) -> Zeroizing<Vec<i128>> {
    let mut source = Source::new(seed);
    let exact = bits.min(EXACT_BITS);
    let rest = bits.min(MAX_BITS) - exact;
    let sample = |_| (source.gaussian(variance, exact) << rest) + source.bits(rest) as i128;
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

    /// True with probability exp(-numerator / (factor 2^log2)), for a quotient of at most 1.
    fn exp_small(&mut self, numerator: u128, (factor, log2): (u64, u32)) -> bool {
        let mut k = 1;
        // Uniform below factor k 2^log2.
        while self.bits(log2) * u128::from(factor * k) + u128::from(self.below(factor * k)) < numerator {
            k += 1;
        }
        k % 2 == 1
    }

    /// True with probability exp(-numerator / (factor 2^log2)).
    fn exp(&mut self, numerator: u128, (factor, log2): (u64, u32)) -> bool {
        let denominator = u128::from(factor) << log2;
        (0..numerator / denominator).all(|_| self.exp_small(1, (1, 0)))
            && self.exp_small(numerator % denominator, (factor, log2))
    }

    /// The discrete Laplace distribution: x with probability proportional to exp(-|x| / 2^bits).
    fn laplace(&mut self, bits: u32) -> i128 {
        loop {
            let low = self.bits(bits);
            if !self.exp_small(low, (1, bits)) {
                continue;
            }
            let mut high = 0u128;
            while self.exp_small(1, (1, 0)) {
                high += 1;
            }
            let magnitude = (low + (high << bits)) as i128;
            let negative = self.word() & 1 == 1;
            if !(negative && magnitude == 0) {
                return if negative { -magnitude } else { magnitude };
            }
        }
    }

    /// x with probability proportional to exp(-x^2 / (2 sigma^2)), sigma^2 = 4^bits once or three times; in the latter
    /// case `bits` is 1 or more.
    ///
    /// From a Laplace distribution of scale T = sigma or 2 / sqrt(3) sigma, a power of two, kept with probability
    /// exp(-(|x| - sigma^2 / T)^2 / (2 sigma^2)).
    fn gaussian(&mut self, variance: Variance, bits: u32) -> i128 {
        let (scale, centre, denominator) = match variance {
            Variance::Once => (bits, 1 << bits, (1, 2 * bits + 1)),
            Variance::Thrice => (bits + 1, 3 << (bits - 1), (3, 2 * bits + 1)),
        };
        loop {
            let x = self.laplace(scale);
            // Beyond 2^8 sigma lies a part of 2^-47000.
            let excess = x.unsigned_abs().abs_diff(centre);
            if excess >> (bits + 8) == 0 && self.exp(excess * excess, denominator) {
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
    fn each_width_is_the_one_below_and_independent_noise() {
        let seed = Seed::from_bytes([7; 32]);
        let all = [16, 17, 20, 48, 49, 60].map(|bits| (bits, nested(&seed, bits, 20_000)));
        for (i, (a, narrow)) in all.iter().enumerate() {
            let covariance = |x: &[i128], y: &[i128], log2: u32| {
                let unit = f64::from(log2).exp2();
                x.iter().zip(y).map(|(x, y)| *x as f64 / unit * (*y as f64 / unit)).sum::<f64>() / x.len() as f64
            };
            assert!((covariance(narrow, narrow, *a) - 1.0).abs() < 0.05, "{a}");
            for (b, wide) in &all[i + 1..] {
                let more: Vec<i128> = wide.iter().zip(narrow.iter()).map(|(x, y)| x - y).collect();
                // 4^b - 4^a, and no part of the narrower one.
                let missing = 1.0 - f64::from(a * 2).exp2() / f64::from(b * 2).exp2();
                assert!((covariance(&more, &more, *b) - missing).abs() < 0.05, "{a} {b}");
                let unit = f64::from(b - a).exp2();
                assert!((covariance(&more, narrow, *a) / unit).abs() < 0.05, "{a} {b}");
            }
        }
        assert_eq!(*nested(&seed, 0, 9), *nested(&seed, MIN_BITS, 9));
    }

    #[test]
    fn three_times_a_variance_has_the_probabilities_of_its_definition() {
        let samples = samples(&Seed::from_bytes([3; 32]), Variance::Thrice, 1, 60_000);
        let weight = |x: i128| (-((x * x) as f64) / 24.0).exp();
        let total: f64 = (-60..=60).map(weight).sum();
        for x in -8..=8i128 {
            let expected = weight(x) / total;
            let seen = samples.iter().filter(|&&y| y == x).count() as f64 / samples.len() as f64;
            assert!((seen - expected).abs() < 4.5 * (expected / samples.len() as f64).sqrt(), "{x}: {seen} {expected}");
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
