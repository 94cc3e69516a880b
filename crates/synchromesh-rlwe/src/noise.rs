//! What is known of the error of a ciphertext: a certificate that holds for any message within its declared bound, the
//! average case, and the models of the papers, all tracked by the same operations.
//!
//! **The certificate.** The error e of a ciphertext (phase = message + t e) is written e = g + w + f_2 + .. + f_6 + r. g is a
//! sum of fresh errors and rounding errors such as tau s: each coefficient exceeds x sigma with probability at most
//! 2 exp(-x^2 / 2). f_d is a sum of products of d such errors of ciphertexts that have no fresh encryption in common
//! ([`Origins`]), with the tails of products of Gaussians. r is whatever is left, bounded in a norm that the scheme chooses.
//! Nothing else is assumed about how the errors of two ciphertexts depend on each other: parameters and bounds add, and
//! a product of errors that may have something in common takes the Cauchy-Schwarz bound |a|_2 |b|_2, which x times its
//! own conjugate attains.
//!
//! A fixed polynomial p times g is another matter: a coefficient of p tau s is the inner product of tau with p s, whose
//! length is itself random, and with p on a single frequency it is |s(zeta)|. Given the key, it is at most that of the
//! root at which the key is largest, which is known; see [`Noise::times_poly`] and [`root_tail`]. Sums of such p g and
//! p f_d, also for p that are products, are the parts w_1 and w_d, described in `weighted.rs`.
//!
//! What is assumed, and listed in SECURITY.md: rounding errors and digits of a ciphertext behave as uniform and
//! independent of the keys, and the secret is the one the parameters name, drawn by this library.

mod average;
mod key_bound;
mod limit;
mod origins;
mod product;
mod reference;
mod tails;
mod weighted;

use serde::{Deserialize, Serialize};

use synchromesh_ring::rns::Overflow;

pub use average::Average;
pub use key_bound::KeyBound;
pub use limit::{FailureLimit, Model};
pub use origins::Origins;
pub use reference::Reference;
pub use tails::DEGREES;
pub use weighted::LARGEST_AT_ROOT;

use crate::error::Error;
use crate::spectrum::{self, UNEVEN};

/// Default failure probability of one decryption, as minus its log2.
pub const DEFAULT_LOG2_FAILURE: u32 = 128;

/// Failure probability of a bound that enters another, as minus its log2: a million of them together stay below the
/// default.
pub const LOG2_FAILURE_INSIDE: u32 = DEFAULT_LOG2_FAILURE + 20;

/// log2(2^a + 2^b).
#[must_use]
pub fn log2_add(a: f64, b: f64) -> f64 {
    let (hi, lo) = if a >= b { (a, b) } else { (b, a) };
    if lo == f64::NEG_INFINITY || hi == f64::INFINITY {
        hi
    } else {
        hi + (lo - hi).exp2().ln_1p() / std::f64::consts::LN_2
    }
}

/// What is known of an error polynomial; numbers are log2.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Sub-Gaussian parameter of each coefficient of g.
    pub sigma: f64,
    /// Bound on r.
    pub remainder: f64,
    /// Sums of |p|_2 sigma_d over the terms p f_d of w_1 = sum p g, w_2, ..
    weighted: [f64; DEGREES],
    /// Standard deviations of the products f_2, f_3, .. with N^((d-1)/2) for the products of polynomials.
    products: [f64; DEGREES - 1],
    /// Bound on |r|_2 / sqrt(N); at most `remainder`.
    norm: f64,
    /// The encryptions that g and the products descend from.
    origins: Origins,
    /// Whether it is independent of the ciphertext's components, taken to be uniform; see [`Noise::plus_switching`].
    detached: bool,
    /// Whether what is known was read from a file and is believed on the user's word; see [`Noise::on_word`].
    #[serde(default)]
    on_word: bool,
    /// The average case.
    pub average: Average,
    /// The models of the papers.
    pub reference: Reference,
}

impl Noise {
    /// No error.
    pub const ZERO: Self = Self {
        sigma: f64::NEG_INFINITY,
        remainder: f64::NEG_INFINITY,
        weighted: [f64::NEG_INFINITY; DEGREES],
        products: [f64::NEG_INFINITY; DEGREES - 1],
        norm: f64::NEG_INFINITY,
        origins: Origins::NONE,
        detached: true,
        on_word: false,
        average: Average::ZERO,
        reference: Reference::ZERO,
    };

    /// An error of which nothing is known: read from a file without a reason to believe its certificate.
    ///
    /// Whatever is computed from it is unknown too, and [`require_room`] refuses it.
    pub const UNKNOWN: Self = Self {
        sigma: f64::INFINITY,
        remainder: f64::INFINITY,
        weighted: [f64::INFINITY; DEGREES],
        products: [f64::INFINITY; DEGREES - 1],
        norm: f64::INFINITY,
        origins: Origins::ANY,
        detached: false,
        on_word: false,
        average: Average::UNKNOWN,
        reference: Reference::UNKNOWN,
    };

    /// Whether there is no bound.
    #[must_use]
    pub fn is_unknown(self) -> bool {
        let finite = |x: &f64| *x < f64::INFINITY;
        ![self.sigma, self.remainder].iter().chain(&self.weighted).chain(&self.products).all(finite)
    }

    /// A sub-Gaussian error with standard deviation `sigma` (not its log2).
    #[must_use]
    pub fn gaussian(sigma: f64) -> Self {
        let log2 = sigma.log2();
        let (average, reference) = (Average::of(0, 2.0 * log2), Reference::gaussian(log2));
        Self { sigma: log2, average, reference, ..Self::ZERO }
    }

    /// An error of which only a bound is known (not its log2); uniform in the average case.
    #[must_use]
    pub fn bounded(bound: f64) -> Self {
        Self::at_most(bound.log2())
    }

    /// An error of which only a bound of 2^`log2` is known; uniform in the average case.
    #[must_use]
    pub fn at_most(log2: f64) -> Self {
        let (average, reference) = (Average::of(0, 2.0 * log2 - 3f64.log2()), Reference::uniform(log2));
        Self { remainder: log2, norm: log2, average, reference, ..Self::ZERO }
    }

    /// An error by the two numbers that files hold, with anything for origins.
    #[must_use]
    pub fn claimed(sigma: f64, remainder: f64) -> Self {
        if sigma == f64::INFINITY || remainder == f64::INFINITY {
            return Self::UNKNOWN;
        }
        let both = Self { sigma, average: Average::of(0, 2.0 * sigma), ..Self::ZERO };
        let reference = Reference::gaussian(sigma);
        let detached = false;
        Self { reference, detached, ..both }.plus(Self::at_most(remainder)).with_origins(Origins::ANY)
    }

    /// The same, believed because the user says so and for no other reason. Whatever an operation makes of it is too.
    #[must_use]
    pub const fn on_word(self) -> Self {
        Self { on_word: true, ..self }
    }

    /// Whether anything that this was computed from is believed on the user's word only.
    #[must_use]
    pub const fn is_on_word(&self) -> bool {
        self.on_word
    }

    /// Fails for what is believed on the user's word.
    ///
    /// # Errors
    /// [`Error::OnWord`], of `what` was to be made.
    pub const fn require_proven(&self, what: &'static str) -> Result<(), Error> {
        if self.on_word { Err(Error::OnWord { what }) } else { Ok(()) }
    }

    /// The two numbers that files hold: w and products join the remainder.
    #[must_use]
    pub fn claim(self, log_n: u32) -> (f64, f64) {
        let rest = self.with_weighted_bounded(log_n).remainder;
        (self.sigma, log2_add(rest, self.products_bound(log_n, LOG2_FAILURE_INSIDE)))
    }

    /// The same with these origins.
    #[must_use]
    pub const fn with_origins(self, origins: Origins) -> Self {
        Self { origins, ..self }
    }

    /// The encryptions it descends from.
    #[must_use]
    pub const fn origins(&self) -> &Origins {
        &self.origins
    }

    /// The same certificate with another average case.
    #[must_use]
    pub const fn with_average(self, average: Average) -> Self {
        Self { average, ..self }
    }

    /// The same certificate with other reference models.
    #[must_use]
    pub const fn with_reference(self, reference: Reference) -> Self {
        Self { reference, ..self }
    }

    /// The same with these two numbers for a certificate.
    #[must_use]
    pub const fn with_certificate(self, sigma: f64, remainder: f64) -> Self {
        let Self { weighted, products, .. } = Self::ZERO;
        Self { sigma, remainder, weighted, norm: remainder, products, ..self }
    }

    /// The certificate alone times 2^`log2`: for what is bounded in another norm from here on.
    #[must_use]
    pub fn with_larger_remainder(self, log2: f64) -> Self {
        Self { remainder: self.remainder + log2, norm: self.norm + log2, ..self }
    }

    /// The sum with an error that an operation adds: however they depend on each other for the certificate, independent
    /// in the average case.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            sigma: log2_add(self.sigma, other.sigma),
            remainder: log2_add(self.remainder, other.remainder),
            weighted: std::array::from_fn(|i| log2_add(self.weighted[i], other.weighted[i])),
            products: std::array::from_fn(|i| log2_add(self.products[i], other.products[i])),
            norm: log2_add(self.norm, other.norm),
            origins: self.origins.union(&other.origins),
            detached: self.detached && other.detached && !self.shares(&other),
            on_word: self.on_word || other.on_word,
            average: self.average.plus(&other.average),
            reference: self.reference.plus(&other.reference),
        }
    }

    /// After X -> X^g and a switch back to the same secret.
    #[must_use]
    pub fn moved(self) -> Self {
        Self { average: self.average.moved(), ..self }
    }

    /// Whether both descend from encryptions that may be the same.
    fn shares(&self, other: &Self) -> bool {
        !(self.origins.is_none() || other.origins.is_none() || self.origins.disjoint(&other.origins))
    }

    /// The sum with the error of another ciphertext: variances add if both descend from different encryptions, those of
    /// products if one of them is besides symmetric, as every error is that is independent of its components.
    ///
    /// With f and g independent, one of them with odd moments 0, E (f + g)^2p is the sum of C(2p, 2k) E f^2k E g^2(p-k).
    /// For moments as in `tails` that is at most (2p - 1)!! E q^p times the p-th power of the sum of the variances, since
    /// E q^k E q^(p-k) <= E q^p.
    #[must_use]
    pub fn sum(self, other: Self) -> Self {
        let sum = self.plus(other);
        if !self.origins.disjoint(&other.origins) {
            return sum;
        }
        let all = sum.with_variances(&[self, other]);
        if self.detached || other.detached { all } else { Self { products: sum.products, ..all } }
    }

    /// The same with parameters whose squares are the sums of those of `terms`; those of w_2, w_3, .. belong to bounds by
    /// norms too, which add.
    fn with_variances(self, terms: &[Self]) -> Self {
        let root =
            |of: &dyn Fn(&Self) -> f64| terms.iter().map(|x| 2.0 * of(x)).fold(f64::NEG_INFINITY, log2_add) / 2.0;
        let products = std::array::from_fn(|i| root(&|x| x.products[i]));
        let mut weighted = self.weighted;
        weighted[0] = root(&|x| x.weighted[0]);
        Self { sigma: root(&|x| x.sigma), weighted, products, ..self }
    }

    /// The sum with what switching this ciphertext leaves: the rounding of a division, the digits of a key switch times the
    /// errors of its key.
    ///
    /// Variances add if the error is independent of the components. It is for a fresh encryption, whose components are
    /// uniform whatever its error, and stays so through switches, rotations and products with public polynomials, and in
    /// sums and products of ciphertexts that have no encryption in common. The sum of x and of x switched down and brought
    /// up again is another matter: its error is the rounding to come.
    #[must_use]
    pub fn plus_switching(self, switching: Self) -> Self {
        let sum = self.plus(switching);
        if self.detached { sum.with_variances(&[self, switching]) } else { sum }
    }

    /// The sum e K' + e' K of two products, `self` and `other`, where e and e' are the errors of two ciphertexts and K and
    /// K' are made of their components: variances add if those ciphertexts have no encryption in common and their errors
    /// are independent of their components.
    #[must_use]
    pub fn sum_crosswise(self, other: Self, [x, y]: [&Self; 2]) -> Self {
        let sum = self.plus(other);
        let apart = x.detached && y.detached && x.origins.disjoint(&y.origins);
        let detached = apart && self.detached && other.detached;
        if apart { Self { detached, ..sum.with_variances(&[self, other]) } } else { sum }
    }

    /// The error m e + (1 - m) f where m is 0 or 1 at every root of X^N + 1, so that its value there is one of the two.
    ///
    /// The weights of a coefficient of g have squares that add up to 1, half a bit more than either error if the two are
    /// not independent. Products may be large where each is chosen.
    #[must_use]
    pub fn either(self, other: Self) -> Self {
        let remainder = self.remainder.max(other.remainder);
        Self { sigma: self.sigma.max(other.sigma) + 0.5, remainder, norm: remainder, ..self.plus(other) }
    }

    /// What either error keeps to, with the average case of the first: one error in the place of several, which is not
    /// independent of any ciphertext's components.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let larger = |of: &dyn Fn(&Self) -> f64| of(&self).max(of(&other));
        Self {
            sigma: larger(&|x| x.sigma),
            remainder: larger(&|x| x.remainder),
            weighted: std::array::from_fn(|i| larger(&|x| x.weighted[i])),
            products: std::array::from_fn(|i| larger(&|x| x.products[i])),
            norm: larger(&|x| x.norm),
            origins: self.origins.union(&other.origins),
            detached: false,
            on_word: self.on_word || other.on_word,
            ..self
        }
    }

    /// The error of a ciphertext added to itself.
    #[must_use]
    pub fn doubled(self) -> Self {
        Self { average: self.average.plus_same(&self.average), detached: self.detached, ..self.sum(self) }
    }

    /// The error times a public number, given as log2.
    #[must_use]
    pub fn times(self, log2_factor: f64) -> Self {
        if self.is_unknown() {
            return Self::UNKNOWN;
        }
        Self {
            sigma: self.sigma + log2_factor,
            remainder: self.remainder + log2_factor,
            weighted: self.weighted.map(|x| x + log2_factor),
            products: self.products.map(|x| x + log2_factor),
            norm: self.norm + log2_factor,
            origins: self.origins,
            detached: self.detached,
            on_word: self.on_word,
            average: self.average.times(log2_factor),
            reference: self.reference.times(log2_factor),
        }
    }

    fn products_bound(&self, log_n: u32, log2_failure: u32) -> f64 {
        if self.products.iter().all(|&x| x == f64::NEG_INFINITY) {
            return f64::NEG_INFINITY;
        }
        let tails = tails::tails(log_n, log2_failure).largest;
        self.products.iter().zip(&tails[1..]).map(|(x, tail)| x + tail).fold(f64::NEG_INFINITY, log2_add)
    }

    /// log2 of a bound that all N = 2^log_n coefficients keep except with probability 2^-log2_failure, which g + w_1, the
    /// products of each degree and the rest of w by degrees have an equal part of.
    #[must_use]
    pub fn bound(self, log_n: u32, log2_failure: u32) -> f64 {
        let linear = log2_add(self.sigma, self.weighted[0] + spectrum::log2_peak(log_n) / 2.0);
        let further = self.products.iter().chain(&self.weighted[1..]);
        let parts = further.chain([&linear]).filter(|&&x| x > f64::NEG_INFINITY).count();
        let each = log2_failure + parts.max(1).next_power_of_two().trailing_zeros();
        let products = log2_add(self.products_bound(log_n, each), self.weighted_bound(log_n, each));
        log2_add(log2_add(linear + tail(log_n, each).log2(), products), self.remainder)
    }
}

/// How many standard deviations a sub-Gaussian value stays within, for 2^log_n values, except with probability
/// 2^-log2_failure.
#[must_use]
pub fn tail(log_n: u32, log2_failure: u32) -> f64 {
    (2.0 * std::f64::consts::LN_2 * f64::from(log_n + log2_failure + 1)).sqrt()
}

/// How large |g(zeta)| is at the most over all roots of X^N + 1, in units of 2^sigma sqrt(N), except with probability
/// 2^-log2_failure.
///
/// Given the keys, the part of g(zeta) in any direction has at most the moments of a Gaussian of variance
/// 2^2sigma V(zeta) N/2, where V is a mean of the squares that the secret and the errors of keys, moved by automorphisms,
/// have at the roots. The mean over all directions is E |g(zeta)|^2p <= p! (2^2sigma V(zeta) N)^p. What is known of the
/// moments of V bounds the sum over the N/2 pairs of roots, and the best p gives a tail by Markov's inequality.
#[must_use]
pub fn root_tail(log_n: u32, log2_failure: u32) -> f64 {
    tails::tails(log_n, log2_failure).root.exp2()
}

/// The standard deviation that rounding adds: tau_0 + tau_1 s (+ tau_2 s^2 is bounded apart) for a ternary s.
#[must_use]
pub fn rounding_sigma(n: usize) -> f64 {
    ((1.0 + spectrum::POWER * n as f64) / 12.0).sqrt()
}

/// tau_0 + tau_1 s with both uniform in +-`size`.
#[must_use]
pub fn uniform_components(n: usize, size: f64) -> Noise {
    let log2_size = (2.0 * size).log2();
    let average = rounding_average(n, 2).times(log2_size);
    Noise { sigma: rounding_sigma(n).log2() + log2_size, average, ..Noise::ZERO }
        .with_reference(Reference::rounding(n, 2).times(log2_size))
}

/// Variances of tau_0 + tau_1 s + ..
fn rounding_average(n: usize, components: usize) -> Average {
    let secret = (2.0 / 3.0 * n as f64).log2();
    let part = |i: usize| Average::of(i, i as f64 * secret - 12f64.log2());
    (0..components).map(part).fold(Average::ZERO, |sum, x| sum.plus(&x))
}

/// Rounding error of a ciphertext of `components` parts.
///
/// Given s, the part that meets s^2 is sub-Gaussian with |s^2|_2 / sqrt(12).
#[must_use]
pub fn rounding(n: usize, components: usize) -> Noise {
    let two = uniform_components(n, 0.5);
    if components < 3 {
        return two;
    }
    let log_n = n.trailing_zeros();
    let square = f64::from(log_n) + spectrum::POWER.log2() + (spectrum::log2_moment(log_n, 2) - 12f64.log2()) / 2.0;
    let bound = Noise::at_most(square + tail(log_n, LOG2_FAILURE_INSIDE).log2());
    two.plus(bound).with_average(rounding_average(n, components)).with_reference(Reference::rounding(n, components))
}

/// The error of a ciphertext under a public key with errors of standard deviation `sigma`: e u + e_0 + e_1 s.
///
/// In the average case e, which all encryptions share, and s are two secrets that errors meet; one of the power
/// sqrt(1/2) stands for them, which is right for products of two such errors.
#[must_use]
pub fn public(n: usize, sigma: f64) -> Noise {
    let (n, half) = (n as f64, 0.5f64.sqrt());
    let variance = (sigma * sigma * (4.0 / 3.0 * n + 1.0)).log2();
    let average = Average::of(0, variance + (1.0 - half).log2()).plus(&Average::of(1, variance + half.log2()));
    let worst = (6.0 * sigma * (4.0 * n.sqrt() + 1.0)).log2();
    Noise::gaussian(1.16 * sigma * (2.0 * n + 1.0).sqrt())
        .with_average(average)
        .with_reference(Reference::of(worst, variance))
}

/// The error of a ciphertext under the secret key.
#[must_use]
pub fn secret(sigma: f64) -> Noise {
    Noise::gaussian(1.01 * sigma).with_average(Average::of(0, 2.0 * sigma.log2()))
}

/// One digit of a key switch, for its noise: log2 of the product of its primes, how many there are, and how many errors
/// its row of the key holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DigitSize {
    /// log2 of the digit's product.
    pub log2: f64,
    /// Number of primes.
    pub primes: usize,
    /// Number of independent errors in its row of the key: stored rows added.
    pub errors: usize,
}

/// The error that a key switch adds before rounding: sum_j d_j e_j / P.
///
/// A centred digit is uniform in +-D/2; a fast one is up to (k + 1) D off and bounded by Cauchy-Schwarz. In the average
/// case floors are uniform in \[0, D), and k of k residues that overflow are off by a sum of as many uniform values.
#[must_use]
pub fn gadget(n: usize, error_sigma: f64, digits: &[DigitSize], log2_p: f64, overflow: Overflow) -> Noise {
    digits.iter().fold(Noise::ZERO, |sum, digit| {
        let exact = error_sigma * (digit.errors as f64 * n as f64).sqrt();
        let norm = 1.1 * exact;
        let scale = digit.log2 - log2_p;
        let uniform = Noise::gaussian(norm * UNEVEN / 12f64.sqrt()).times(scale);
        let k = digit.primes as f64;
        // Mean squares of a digit over D^2.
        let (extra, square) = match overflow {
            Overflow::Round | Overflow::HpsRound => (Noise::ZERO, 1.0 / 12.0),
            Overflow::Behz => (uniform, 1.0 / 12.0),
            Overflow::Floor | Overflow::HpsFloor => (Noise::bounded(norm * (n as f64).sqrt()).times(scale), 1.0 / 3.0),
            Overflow::Fast => {
                let bound = Noise::bounded((k + 1.0) * norm * (n as f64).sqrt()).times(scale);
                (bound, if digit.primes == 1 { 1.0 / 12.0 } else { k / 12.0 + k * k / 4.0 })
            }
        };
        let variance = 2.0 * (exact.log2() + scale) + square.log2();
        // alpha delta D B_err / (2 P), ePrint 2021/204, appendix B.
        let worst = (n as f64).log2() / 2.0 + scale + (6.0 * error_sigma * k * digit.errors as f64).log2();
        let reference = Reference::of(worst, variance);
        let term = uniform.plus(extra).with_average(Average::of(1, variance)).with_reference(reference);
        sum.plus_switching(term)
    })
}

/// Fails when a noise bound exceeds the room, both as log2.
///
/// # Errors
/// [`Error::Noise`]; [`Error::UnknownNoise`] when there is no bound (infinite, or not a number).
pub fn require_room(noise_bits: f64, room_bits: f64, level: usize, log2_failure: u32) -> Result<(), Error> {
    if noise_bits < room_bits {
        return Ok(());
    }
    if noise_bits < f64::INFINITY {
        return Err(Error::Noise { noise_bits, room_bits, level, log2_failure });
    }
    Err(Error::UnknownNoise { room_bits, level })
}

#[cfg(test)]
mod tests;
