//! The certificate: a bound on the error of a ciphertext that holds for any message within its declared bound.
//!
//! The error e of a ciphertext (phase = message + t e) is written e = g + w + f_2 + .. + f_6 + r. g is a
//! sum of fresh errors and rounding errors such as tau s: each coefficient exceeds x sigma with probability at most
//! 2 exp(-x^2 / 2). f_d is a sum of products of d such errors of ciphertexts that have no fresh encryption in common
//! ([`Origins`]), with the tails of products of Gaussians. r is whatever is left, bounded in a norm that the scheme chooses.
//! Nothing else is assumed about how the errors of two ciphertexts depend on each other: parameters and bounds add, and
//! a product of errors that may have something in common takes the Cauchy-Schwarz bound |a|_2 |b|_2, which x times its
//! own conjugate attains.
//!
//! A fixed polynomial p times g is another matter: a coefficient of p tau s is the inner product of tau with p s, whose
//! length is itself random, and with p on a single frequency it is |s(zeta)|. Given the key, it is at most that of the
//! root at which the key is largest, which is known; see [`Certificate::times_poly`] and [`root_tail`]. Sums of such p g and
//! p f_d, also for p that are products, are the parts w_1 and w_d, described in `weighted.rs`.
//!
//! What is assumed, and listed in SECURITY.md: rounding errors and digits of a ciphertext behave as uniform and
//! independent of the keys, and the secret is the one the parameters name, drawn by this library.

mod linear;
mod origins;
mod product;
mod tails;
mod weighted;

use linear::JOINT;
pub use linear::LinearBound;
pub use origins::Origins;
pub use tails::{DEGREES, root_tail, tail};
pub use weighted::LARGEST_AT_ROOT;

use super::{LOG2_FAILURE_INSIDE, log2_add};
use crate::error::Error;
use crate::spectrum;

/// What certifies an error polynomial; numbers are log2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
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
    /// Parameter of g at all roots together, see [`LinearBound`].
    joint: f64,
    /// The encryptions that g and the products descend from.
    origins: Origins,
    /// Whether it is independent of the ciphertext's components, taken to be uniform; see [`Certificate::plus_switching`].
    detached: bool,
    /// Whether it was read from a file and is believed on the user's word; see [`Certificate::on_word`].
    on_word: bool,
}

impl Certificate {
    /// No error.
    pub const ZERO: Self = Self {
        sigma: f64::NEG_INFINITY,
        remainder: f64::NEG_INFINITY,
        weighted: [f64::NEG_INFINITY; DEGREES],
        products: [f64::NEG_INFINITY; DEGREES - 1],
        norm: f64::NEG_INFINITY,
        joint: f64::NEG_INFINITY,
        origins: Origins::NONE,
        detached: true,
        on_word: false,
    };

    /// An error of which nothing is known: read from a file without a reason to believe its certificate.
    ///
    /// Whatever is computed from it is unknown too, and [`require_room`](super::require_room) refuses it.
    pub const UNKNOWN: Self = Self {
        sigma: f64::INFINITY,
        remainder: f64::INFINITY,
        weighted: [f64::INFINITY; DEGREES],
        products: [f64::INFINITY; DEGREES - 1],
        norm: f64::INFINITY,
        joint: f64::INFINITY,
        origins: Origins::ANY,
        detached: false,
        on_word: false,
    };

    /// Whether there is no bound.
    #[must_use]
    pub fn is_unknown(self) -> bool {
        let finite = |x: &f64| *x < f64::INFINITY;
        ![self.sigma, self.remainder].iter().chain(&self.weighted).chain(&self.products).all(finite)
    }

    /// A sub-Gaussian error with standard deviation 2^`log2`.
    #[must_use]
    pub const fn gaussian(log2: f64) -> Self {
        Self { sigma: log2, joint: log2 + JOINT, ..Self::ZERO }
    }

    /// An error of which only a bound of 2^`log2` is known.
    #[must_use]
    pub const fn at_most(log2: f64) -> Self {
        Self { remainder: log2, norm: log2, ..Self::ZERO }
    }

    /// By the two numbers that files hold, with anything for origins.
    #[must_use]
    pub fn claimed(sigma: f64, remainder: f64) -> Self {
        if sigma == f64::INFINITY || remainder == f64::INFINITY {
            return Self::UNKNOWN;
        }
        let both = Self { sigma, joint: f64::INFINITY, detached: false, ..Self::ZERO };
        both.plus(Self::at_most(remainder)).with_origins(Origins::ANY)
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

    /// The same with r larger by 2^`log2`: for what is bounded in another norm from here on.
    #[must_use]
    pub fn with_larger_remainder(self, log2: f64) -> Self {
        Self { remainder: self.remainder + log2, norm: self.norm + log2, ..self }
    }

    /// The sum with an error that an operation adds, however they depend on each other.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            sigma: log2_add(self.sigma, other.sigma),
            remainder: log2_add(self.remainder, other.remainder),
            weighted: std::array::from_fn(|i| log2_add(self.weighted[i], other.weighted[i])),
            products: std::array::from_fn(|i| log2_add(self.products[i], other.products[i])),
            norm: log2_add(self.norm, other.norm),
            joint: log2_add(self.joint, other.joint),
            origins: self.origins.union(&other.origins),
            detached: self.detached && other.detached && !self.shares(&other),
            on_word: self.on_word || other.on_word,
        }
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
        Self { sigma: root(&|x| x.sigma), joint: root(&|x| x.joint), weighted, products, ..self }
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
        let [sigma, joint] = [self.sigma.max(other.sigma), self.joint.max(other.joint)].map(|x| x + 0.5);
        Self { sigma, joint, remainder, norm: remainder, ..self.plus(other) }
    }

    /// What either error keeps to: one error in the place of several, which is not independent of any ciphertext's
    /// components.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let larger = |of: &dyn Fn(&Self) -> f64| of(&self).max(of(&other));
        Self {
            sigma: larger(&|x| x.sigma),
            remainder: larger(&|x| x.remainder),
            weighted: std::array::from_fn(|i| larger(&|x| x.weighted[i])),
            products: std::array::from_fn(|i| larger(&|x| x.products[i])),
            norm: larger(&|x| x.norm),
            joint: larger(&|x| x.joint),
            origins: self.origins.union(&other.origins),
            detached: false,
            on_word: self.on_word || other.on_word,
        }
    }

    /// The error of a ciphertext added to itself.
    #[must_use]
    pub fn doubled(self) -> Self {
        Self { detached: self.detached, ..self.sum(self) }
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
            joint: if log2_factor == f64::NEG_INFINITY { log2_factor } else { self.joint + log2_factor },
            origins: self.origins,
            detached: self.detached,
            on_word: self.on_word,
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

#[cfg(test)]
mod tests;
