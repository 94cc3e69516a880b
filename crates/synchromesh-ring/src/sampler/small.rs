//! Polynomials with small integer coefficients: ternary secrets, centred binomial and discrete Gaussian errors.
//!
//! Coefficient `j` depends on word `j` of its stream (words `2j`, `2j + 1` for the Gaussian). No sampler branches on
//! a drawn value or uses it as an address.

use super::gaussian::{GAUSSIAN_BOUND, GaussianTable};
use super::{Purpose, Seed, Stream};
use crate::secrecy;
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// A polynomial with small signed coefficients. Zeroised on drop; its `Debug` form shows the length only.
#[derive(Clone)]
pub struct SmallPoly {
    coefficients: Zeroizing<Vec<i64>>,
    bound: u64,
}

impl SmallPoly {
    /// Takes the coefficients over; they are wiped when the polynomial is dropped.
    #[must_use]
    pub fn from_vec(coefficients: Vec<i64>) -> Self {
        Self { coefficients: Zeroizing::new(coefficients), bound: u64::MAX }
    }

    /// The same, of whose coefficients it is known to all that none is larger in magnitude.
    #[must_use]
    pub fn bounded(self, bound: u64) -> Self {
        Self { bound, ..self }
    }

    /// What is known to all of the largest magnitude of a coefficient: it is at most this.
    #[must_use]
    pub const fn bound(&self) -> u64 {
        self.bound
    }

    /// The coefficients, lowest power first.
    #[must_use]
    pub fn as_slice(&self) -> &[i64] {
        &self.coefficients
    }

    /// Number of coefficients.
    #[must_use]
    pub fn len(&self) -> usize {
        self.coefficients.len()
    }

    /// Whether there are no coefficients.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.coefficients.is_empty()
    }

    fn draw(n: usize, bound: u64, fill: impl FnOnce(&mut [i64])) -> Self {
        let mut poly = Self::from_vec(vec![0; n]).bounded(bound);
        fill(&mut poly.coefficients);
        poly
    }
}

impl fmt::Debug for SmallPoly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmallPoly({} coefficients)", self.len())
    }
}

/// How errors are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorDistribution {
    /// Centred binomial: the difference of two sums of 21 bits; standard deviation 3.24.
    Cbd21,
    /// Discrete Gaussian of width parameter 3.19 on the integers.
    Gaussian319,
}

impl ErrorDistribution {
    /// Variance of one coefficient. That of the discrete Gaussian equals 3.19^2 to within 2^-180.
    #[must_use]
    pub const fn variance(self) -> f64 {
        match self {
            Self::Cbd21 => 10.5,
            Self::Gaussian319 => 3.19 * 3.19,
        }
    }

    /// Largest absolute value a coefficient can take.
    #[must_use]
    pub const fn bound(self) -> u64 {
        match self {
            Self::Cbd21 => 21,
            Self::Gaussian319 => GAUSSIAN_BOUND,
        }
    }

    /// Draws polynomial number `index` of `purpose`.
    #[must_use]
    pub fn sample(self, seed: &Seed, purpose: Purpose, index: u32, n: usize) -> SmallPoly {
        match self {
            Self::Cbd21 => cbd21(seed, purpose, index, n),
            Self::Gaussian319 => gaussian(seed, purpose, index, n),
        }
    }
}

/// How secrets are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SecretDistribution {
    /// Uniform on {-1, 0, 1}.
    Ternary,
}

impl SecretDistribution {
    /// Variance of one coefficient.
    #[must_use]
    pub const fn variance(self) -> f64 {
        match self {
            Self::Ternary => 2.0 / 3.0,
        }
    }

    /// Largest absolute value a coefficient can take.
    #[must_use]
    pub const fn bound(self) -> u64 {
        match self {
            Self::Ternary => 1,
        }
    }

    /// Draws polynomial number `index` of `purpose`.
    #[must_use]
    pub fn sample(self, seed: &Seed, purpose: Purpose, index: u32, n: usize) -> SmallPoly {
        match self {
            Self::Ternary => ternary(seed, purpose, index, n),
        }
    }
}

/// Polynomial number `index` of `purpose` with coefficients uniform on {-1, 0, 1}; see [`ternary_into`].
#[must_use]
pub fn ternary(seed: &Seed, purpose: Purpose, index: u32, n: usize) -> SmallPoly {
    SmallPoly::draw(n, SecretDistribution::Ternary.bound(), |out| ternary_into(seed, purpose, index, out))
}

/// Polynomial number `index` of `purpose` with centred binomial coefficients; see [`cbd21_into`].
#[must_use]
pub fn cbd21(seed: &Seed, purpose: Purpose, index: u32, n: usize) -> SmallPoly {
    SmallPoly::draw(n, ErrorDistribution::Cbd21.bound(), |out| cbd21_into(seed, purpose, index, out))
}

/// Polynomial number `index` of `purpose` with discrete Gaussian coefficients; see [`gaussian_into`].
#[must_use]
pub fn gaussian(seed: &Seed, purpose: Purpose, index: u32, n: usize) -> SmallPoly {
    SmallPoly::draw(n, GAUSSIAN_BOUND, |out| gaussian_into(seed, purpose, index, out))
}

/// Coefficients `floor(3x / 2^64) - 1` for uniform 64-bit x: each of -1, 0, 1 has probability within 2^-64 of 1/3
/// (statistical distance below 2^-64).
pub fn ternary_into(seed: &Seed, purpose: Purpose, index: u32, out: &mut [i64]) {
    map_words(seed, purpose, index, out, |x| ((u128::from(x) * 3) >> 64) as i64 - 1);
}

/// Coefficients `popcount(21 bits) - popcount(21 other bits)`: exact centred binomial distribution, variance 21/2.
pub fn cbd21_into(seed: &Seed, purpose: Purpose, index: u32, out: &mut [i64]) {
    const BITS: u64 = (1 << 21) - 1;
    map_words(seed, purpose, index, out, |x| {
        i64::from((x & BITS).count_ones()) - i64::from((x >> 21 & BITS).count_ones())
    });
}

/// Polynomial number `index` of `purpose` with `weight` coefficients that are -1 or 1, uniform among all of those, and 0
/// elsewhere; n is a power of two and at least `weight`.
///
/// A position that is taken already is drawn again: that this happened is all that the running time tells.
#[must_use]
pub fn sparse_ternary(seed: &Seed, purpose: Purpose, index: u32, n: usize, weight: usize) -> SmallPoly {
    let mut stream = Stream::new(seed, purpose, index, 0);
    let positions = n as u64 - 1;
    let mut drawn = Zeroizing::new(Vec::with_capacity(weight));
    let mut next = 0;
    while drawn.len() < weight.min(n) {
        let mut word = Zeroizing::new([0u64]);
        stream.fill_words(next, &mut *word);
        next += 1;
        let taken = drawn.iter().fold(0, |taken, &other: &u64| taken | is_zero((other ^ word[0]) & positions));
        if !secrecy::reveal(taken != 0) {
            drawn.push(word[0]);
        }
    }
    SmallPoly::draw(n, SecretDistribution::Ternary.bound(), |out| {
        for (j, value) in out.iter_mut().enumerate() {
            // The sign is the highest bit of the word.
            *value = drawn.iter().fold(0, |value, &word| {
                value + is_zero((word ^ j as u64) & positions) as i64 * (1 - 2 * (word >> 63) as i64)
            });
        }
    })
}

/// 1 for 0, otherwise 0; without a branch.
const fn is_zero(x: u64) -> u64 {
    ((x | x.wrapping_neg()) >> 63) ^ 1
}

/// Coefficients from the discrete Gaussian with probability proportional to `exp(-k^2 / (2 * 3.19^2))`.
///
/// The distribution drawn is within statistical distance 2^-121 of that one: cumulative probabilities are rounded to
/// 127 bits and values beyond [`GAUSSIAN_BOUND`] are cut off.
pub fn gaussian_into(seed: &Seed, purpose: Purpose, index: u32, out: &mut [i64]) {
    let table = GaussianTable::shared();
    let mut stream = Stream::new(seed, purpose, index, 0);
    let mut words = [0u64; 2 * TILE];
    for (tile, part) in out.chunks_mut(TILE).enumerate() {
        let used = &mut words[..2 * part.len()];
        stream.fill_words((2 * TILE * tile) as u64, used);
        for (value, pair) in part.iter_mut().zip(used.chunks_exact(2)) {
            *value = table.value(pair[0], pair[1]);
        }
    }
    words.zeroize();
}

/// Coefficients handled at a time, while their words are in L1.
const TILE: usize = 512;

/// Replaces each coefficient by a function of its word.
fn map_words(seed: &Seed, purpose: Purpose, index: u32, out: &mut [i64], f: impl Fn(u64) -> i64) {
    let mut stream = Stream::new(seed, purpose, index, 0);
    for (tile, part) in out.chunks_mut(TILE).enumerate() {
        stream.fill_words((TILE * tile) as u64, bytemuck::cast_slice_mut(part));
        part.iter_mut().for_each(|value| *value = f(*value as u64));
    }
}
