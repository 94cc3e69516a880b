//! Flooding: discrete Gaussian noise of any width, derived from a secret key and what it is added to.
//!
//! Widths are powers of two, sigma = 2^k, sampled by rejection from steps of a quarter of sigma: a step from a table of
//! probabilities of 128 bits, a uniform number in it, and what is left decided by a coin. Probabilities are those of the discrete
//! Gaussian to within 2^-115 up to 2^48.
//!
//! [`gaussian`] draws many at a time, in vectors ([`cells_into`]); how long that takes depends on samples that are thrown away only.
//! Beyond 2^48 a sample of width 2^48 is multiplied by the power of two that is missing, D, and a number between -D and D
//! added, the difference of two uniform ones: what all that is as a function of x has straight pieces from one multiple of D to
//! the next, so that shifted by any e below D it is as far from itself as the Gaussian is, e^2 / (2 sigma^2) in relative entropy. (With one
//! uniform number it would have steps, and be e / (2 D 2^96) away.)
//!
//! [`nested`] has one noise for all widths, each that of the width below and more. It is what it always was, one sample after the other,
//! with von Neumann's coins: its time depends on the sizes of samples that are kept too. What is uniform in it lies under noise of
//! the width below.

mod wide;

use std::sync::OnceLock;

use num_bigint::{BigInt, BigUint};
use num_traits::Zero;
use synchromesh_ring::sampler::{self, Purpose, Seed, Stream, cells_into};
use zeroize::{Zeroize, Zeroizing};

use crate::secret_key::SecretKey;
use synchromesh_ring::{Backend, secrecy};

pub use self::wide::{POINT, Wide};

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
    let exact = bits.min(EXACT_BITS);
    let rest = bits.min(MAX_BITS) - exact;
    let Cells { log2, exponent, thresholds, .. } = Cells::new(Variance::Once, exact);
    let mut steps = Zeroizing::new(vec![0; count]);
    cells_into(&seed.derive("steps", 0), Purpose::Flooding, &sampler::Cells { log2, exponent, thresholds }, &mut steps);
    let mut samples = Zeroizing::new(vec![0; count]);
    samples.iter_mut().zip(steps.iter()).for_each(|(sample, &step)| *sample = i128::from(step) << rest);
    if rest > 0 {
        let mut stream = Stream::new(&seed.derive("between steps", 0), Purpose::Flooding, 0, 0);
        let mut words = Zeroizing::new([0u64; 512]);
        // Two numbers of so many bits from one word, from two or from four.
        let each = if rest > 64 { 4 } else { rest.div_ceil(32) as usize };
        let below = u128::MAX >> (128 - rest);
        for (chunk, samples) in samples.chunks_mut(words.len() / each).enumerate() {
            stream.fill_words((chunk * words.len()) as u64, &mut words[..samples.len() * each]);
            for (sample, words) in samples.iter_mut().zip(words.chunks_exact(each)) {
                let half = words.len() / 2;
                let [first, second] = match words {
                    [word] => [u128::from(word & u64::from(u32::MAX)), u128::from(word >> 32)],
                    _ => [&words[..half], &words[half..]]
                        .map(|half| half.iter().fold(0, |x, &word| (x << 64) | u128::from(word))),
                };
                *sample += (first & below) as i128 - (second & below) as i128;
            }
        }
    }
    samples
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
    let cells = Cells::new(variance, exact);
    let sample = |_| (source.gaussian(&cells) << rest) + source.bits(rest) as i128;
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

    /// True with probability exp(-y) for y = numerator / (factor 2^log2); log2 is at most 126, factor 3.
    fn exp(&mut self, numerator: u128, (factor, log2): (u64, u32)) -> bool {
        let denominator = u128::from(factor) << log2;
        if numerator >= denominator {
            return self.exp_at_most_one(1 << 126, 1) && self.exp(numerator - denominator, (factor, log2));
        }
        self.exp_at_most_one(numerator << (126 - log2), factor)
    }

    /// True with probability exp(-y) for y = numerator / (factor 2^126), which is 1 or less.
    ///
    /// Of uniform numbers u_1, u_2, .. the first u_k that is y / k or more has an odd k with that probability (von Neumann).
    fn exp_at_most_one(&mut self, numerator: u128, factor: u64) -> bool {
        let (mut k, mut odd) = (factor, true);
        while self.is_below(k, numerator) {
            (k, odd) = (k + factor, !odd);
        }
        odd
    }

    /// Whether k u < 2^-126 numerator for a uniform u, which has 64 bits if these decide, else 128.
    fn is_below(&mut self, k: u64, numerator: u128) -> bool {
        let k = u128::from(k);
        // What both are compared in: units of 2^-64, and of 2^-128.
        let wanted = (numerator >> 62, (numerator << 66) >> 64);
        let high = u128::from(self.word()) * k;
        if high + k <= wanted.0 || high > wanted.0 {
            return high < wanted.0;
        }
        let low = u128::from(self.word()) * k;
        (high + (low >> 64), low & u128::from(u64::MAX)) < wanted
    }

    /// A cell of |x|: how many thresholds a uniform number reaches.
    fn cell(&mut self, thresholds: &[[u64; 2]]) -> u64 {
        let high = self.word();
        let (mut cell, mut tie) = (0, false);
        for &[threshold, _] in thresholds {
            cell += u64::from(high >= threshold);
            tie |= high == threshold;
        }
        if tie {
            let number = [high, self.word()];
            cell = thresholds.iter().map(|&threshold| u64::from(number >= threshold)).sum();
        }
        cell
    }

    /// x with probability proportional to exp(-x^2 / (2 sigma^2)), sigma^2 = 4^bits once or three times; in the latter
    /// case `bits` is 1 or more.
    ///
    /// |x| = h c + l for cells of c numbers: h with probability proportional to exp(-(h c)^2 / (2 sigma^2)), l uniform, both
    /// kept with probability exp(-(2 h c l + l^2) / (2 sigma^2)).
    fn gaussian(&mut self, cells: &Cells) -> i128 {
        let Cells { log2, factor, exponent, thresholds } = *cells;
        loop {
            let h = u128::from(self.cell(thresholds));
            let word = self.word();
            let (negative, low) = (word & 1 == 1, u128::from(word >> 1) & ((1 << log2) - 1));
            let zero = h == 0 && low == 0;
            let excess = low * ((h << (log2 + 1)) + low);
            if !(negative && zero) && self.exp(excess, (factor, exponent)) {
                let magnitude = ((h << log2) + low) as i128;
                return if negative { -magnitude } else { magnitude };
            }
        }
    }
}

/// Cells of a Gaussian, of 2^log2 numbers each: a quarter of sigma, or less than a third.
struct Cells {
    log2: u32,
    /// 2 sigma^2 = factor 2^exponent.
    factor: u64,
    exponent: u32,
    /// 2^128 times the probability of the cells up to each, but for the last: two words, the higher one first.
    thresholds: &'static [[u64; 2]],
}

impl Cells {
    fn new(variance: Variance, bits: u32) -> Self {
        let (log2, factor) = match variance {
            Variance::Once => (bits.saturating_sub(2), 1),
            Variance::Thrice => (bits.saturating_sub(1), 3),
        };
        let exponent = 2 * bits + 1;
        Self { log2, factor, exponent, thresholds: known_thresholds(factor << (exponent - 2 * log2)) }
    }
}

/// [`thresholds`] of a width, found once; of sigma = 1, 2, more, and the root of three times a power of two.
fn known_thresholds(width: u64) -> &'static [[u64; 2]] {
    static KNOWN: [OnceLock<Vec<[u64; 2]>>; 5] = [const { OnceLock::new() }; 5];
    let at = match width {
        2 => 0,
        8 => 1,
        32 => 2,
        24 => 3,
        _ => 4,
    };
    KNOWN[at].get_or_init(|| thresholds(width))
}

/// 2^128 times the sums of exp(-h^2 / `width`) over h = 0, 1, .., over the whole sum, as far as cells matter: the rest has
/// a probability of less than 2^-120.
fn thresholds(width: u64) -> Vec<[u64; 2]> {
    const FRACTION: u32 = 256;
    let one = BigUint::from(1u32) << FRACTION;
    // exp(-1 / width) by its series, which alternates.
    let (mut sum, mut term) = (BigInt::from(one.clone()), BigInt::from(one.clone()));
    for k in 1u64.. {
        term = -term / (k * width);
        if term.is_zero() {
            break;
        }
        sum += &term;
    }
    let ratio = sum.magnitude().clone();
    let product = |x: &BigUint, y: &BigUint| (x * y) >> FRACTION;
    let square = product(&ratio, &ratio);
    // ratio^(h^2) from the one before, times ratio^(2h + 1).
    let (mut weights, mut weight, mut step) = (Vec::new(), one, ratio);
    while weight.bits() > u64::from(FRACTION - 130) {
        weights.push(weight.clone());
        weight = product(&weight, &step);
        step = product(&step, &square);
    }
    let total: BigUint = weights.iter().sum();
    weights.pop();
    let mut below = BigUint::ZERO;
    let share = |below: &BigUint| u128::try_from((below << 128u32) / &total).unwrap_or(u128::MAX);
    let words = |share: u128| [(share >> 64) as u64, share as u64];
    let mut up_to = |weight| {
        below += weight;
        words(share(&below))
    };
    weights.iter().map(&mut up_to).collect()
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

    /// Beyond what is exact the density has straight pieces: a step would show in how often the first numbers of one are met.
    #[test]
    fn what_lies_between_steps_is_the_difference_of_two_uniform_numbers() {
        for rest in [1, 20, 32, 33, 64, 65, 70] {
            let samples = gaussian(&Seed::from_bytes([rest as u8; 32]), EXACT_BITS + rest, 20_000);
            let unit = f64::from(rest).exp2();
            // Modulo the step a sum of two is uniform, and the step before it is reached half of the time.
            let low = samples.iter().map(|x| (x & ((1 << rest) - 1)) as f64 / unit);
            assert!((low.sum::<f64>() / 2e4 - 0.5 + 0.5 / unit).abs() < 0.01, "{rest}");
            let mut steps = vec![0; samples.len()];
            let Cells { log2, exponent, thresholds, .. } = Cells::new(Variance::Once, EXACT_BITS);
            let seed = Seed::from_bytes([rest as u8; 32]).derive("steps", 0);
            cells_into(&seed, Purpose::Flooding, &sampler::Cells { log2, exponent, thresholds }, &mut steps);
            let off = samples.iter().zip(&steps).map(|(x, &step)| (x - (i128::from(step) << rest)) as f64 / unit);
            let off: Vec<f64> = off.collect();
            let moment = |k: i32| off.iter().map(|x| x.powi(k)).sum::<f64>() / 2e4;
            assert!(off.iter().all(|x| x.abs() < 1.0) && moment(1).abs() < 0.02, "{rest}: {}", moment(1));
            assert!(rest == 1 || (moment(2) - 1.0 / 6.0).abs() < 0.01, "{rest}: {}", moment(2));
        }
    }

    #[test]
    fn samples_have_the_probabilities_of_their_definition() {
        const COUNT: usize = 200_000;
        for bits in [0, 1, 2, 3, 4] {
            let samples = gaussian(&Seed::from_bytes([4; 32]), bits, COUNT);
            has_probabilities(&samples, f64::from(2 * bits + 1).exp2(), bits);
        }
        for (variance, bits, twice) in [
            (Variance::Once, 0, 2.0),
            (Variance::Once, 1, 8.0),
            (Variance::Once, 2, 32.0),
            (Variance::Once, 3, 128.0),
            (Variance::Once, 4, 512.0),
            (Variance::Thrice, 1, 24.0),
            (Variance::Thrice, 2, 96.0),
            (Variance::Thrice, 3, 384.0),
        ] {
            let samples = samples(&Seed::from_bytes([3; 32]), variance, bits, COUNT);
            has_probabilities(&samples, twice, bits);
        }
    }

    /// Probabilities in proportion to exp(-x^2 / twice).
    fn has_probabilities(samples: &[i128], twice: f64, bits: u32) {
        let (weight, count) = (|x: i128| (-((x * x) as f64) / twice).exp(), samples.len() as f64);
        let total: f64 = (-300..=300).map(weight).sum();
        for x in -40..=40i128 {
            let expected = weight(x) / total;
            let seen = samples.iter().filter(|&&y| y == x).count() as f64 / count;
            let deviation = (expected / count).sqrt();
            assert!((seen - expected).abs() < 4.5 * deviation + 2.0 / count, "{twice} {bits}, {x}: {seen} {expected}");
        }
    }

    #[test]
    fn thresholds_are_sums_of_probabilities() {
        for width in [2u64, 8, 24, 32] {
            let weight = |h: f64| (-h * h / width as f64).exp();
            let total: f64 = (0..200).map(|h| weight(h.into())).sum();
            let (thresholds, mut sum) = (thresholds(width), 0.0);
            for (h, &[high, _]) in thresholds.iter().enumerate() {
                sum += weight(h as f64) / total;
                assert!((high as f64 / 64f64.exp2() - sum).abs() < 1e-14, "{width} {h}");
            }
            assert!(thresholds.is_sorted() && weight(thresholds.len() as f64 + 1.0) < 1e-38);
        }
    }

    #[test]
    fn exponentials_have_their_probabilities_at_ties_too() {
        let mut source = Source::new(&Seed::from_bytes([5; 32]));
        for (numerator, denominator, y) in
            [(1u128, (1, 3), 0.125), (5, (3, 1), 5.0 / 6.0), (7, (1, 1), 3.5), (0, (1, 9), 0.0), (8, (1, 3), 1.0)]
        {
            let hits = (0..100_000).filter(|_| source.exp(numerator, denominator)).count();
            assert!((hits as f64 / 1e5 - f64::exp(-y)).abs() < 0.008, "{y}: {hits}");
        }
        // The first 64 bits are the same, and the next 64 decide.
        for byte in 0..20 {
            let seed = Seed::from_bytes([byte; 32]);
            let mut words = Source::new(&seed);
            let number = (BigUint::from(words.word()) << 64u32) + words.word();
            for delta in 0..3u32 {
                let numerator = ((&number * 3u32) >> 2u32) - 1u32 + delta;
                let expected = &number * 3u32 < &numerator << 2u32;
                assert_eq!(
                    Source::new(&seed).is_below(3, u128::try_from(numerator).unwrap()),
                    expected,
                    "{byte} {delta}"
                );
            }
        }
    }
}
