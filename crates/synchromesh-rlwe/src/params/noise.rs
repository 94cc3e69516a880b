//! The errors that keys of some parameters bring in, in the norm of the scheme and under keys as the parameters take them to
//! be.

use synchromesh_ring::rns::Overflow;

use super::Params;
use crate::noise::{
    Certificate, DigitSize, KeyBound, LOG2_FAILURE_INSIDE, Noise, SharedKey, gadget, hints, public, rounding, tail,
    uniform_components,
};

/// What certificates take keys to be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum KeyOrigin {
    /// Drawn by this library, which looked at them.
    #[default]
    Drawn,
    /// Sums of what so many parties have drawn in that way.
    Shared(SharedKey),
    /// Made by anybody, within bounds that were proven.
    Bounded(KeyBound),
}

impl Params {
    /// Rounding error of a ciphertext of `components` parts.
    #[must_use]
    pub fn rounding_noise(&self, components: usize) -> Noise {
        match self.key_origin() {
            KeyOrigin::Drawn => rounding(self.n(), components, self.norm()),
            KeyOrigin::Shared(shared) => shared.rounding(self.n(), components, self.norm()),
            KeyOrigin::Bounded(bound) => self.in_norm(bound.rounding(self.n(), components)),
        }
    }

    /// The error of a ciphertext under the public key before it is divided by P.
    #[must_use]
    pub fn public_noise(&self) -> Noise {
        let sigma = self.error().variance().sqrt();
        match self.key_origin() {
            KeyOrigin::Drawn => public(self.n(), sigma),
            KeyOrigin::Shared(shared) => shared.public(self.n(), sigma),
            KeyOrigin::Bounded(bound) => self.in_norm(bound.public(self.n(), sigma)),
        }
    }

    /// The error e v + e_1 s of what all makers of a key with proven norms encrypt together, without special primes and without
    /// e_0, each proving that its v and e_1 are as short as its shares of the key; under any key of these parameters. Of other keys
    /// nothing is known of this kind.
    #[must_use]
    pub fn sealed_noise(&self) -> Noise {
        match self.key_origin() {
            KeyOrigin::Drawn | KeyOrigin::Shared(_) => Certificate::UNKNOWN.into(),
            KeyOrigin::Bounded(bound) => self.norm().of_coefficients(bound.sealed(), self.n()),
        }
    }

    /// The error that a switch by any key adds before rounding.
    #[must_use]
    pub fn gadget_noise(&self, digits: &[DigitSize], log2_p: f64, overflow: Overflow) -> Noise {
        let (n, sigma) = (self.n(), self.error().variance().sqrt());
        self.in_norm(match self.key_origin() {
            KeyOrigin::Drawn => gadget(n, sigma, digits, log2_p, overflow),
            KeyOrigin::Shared(shared) => shared.relinearisation(n, sigma, digits, log2_p, overflow),
            KeyOrigin::Bounded(bound) => bound.gadget(n, digits, log2_p, overflow),
        })
    }

    /// The same for a key for rotations, which may have smaller errors than others.
    #[must_use]
    pub fn rotation_noise(&self, digits: &[DigitSize], log2_p: f64, overflow: Overflow) -> Noise {
        let (n, sigma) = (self.n(), self.error().variance().sqrt());
        match self.key_origin() {
            KeyOrigin::Shared(shared) => self.in_norm(shared.rotation(n, sigma, digits, log2_p, overflow)),
            KeyOrigin::Drawn | KeyOrigin::Bounded(_) => self.gadget_noise(digits, log2_p, overflow),
        }
    }

    /// tau_0 + tau_1 s with both uniform in +-`size`, bounded by its coefficients.
    #[must_use]
    pub fn uniform_noise(&self, size: f64) -> Noise {
        match self.key_origin() {
            KeyOrigin::Drawn | KeyOrigin::Shared(_) => {
                uniform_components(self.n(), size).times(self.log2_secret_size())
            }
            KeyOrigin::Bounded(bound) => bound.rounding(self.n(), 2).times((2.0 * size).log2()),
        }
    }

    /// log2 of a bound on the coefficients of c s, for any c within +-1 that does not depend on s.
    #[must_use]
    pub fn log2_secret_reach(&self) -> f64 {
        let log_n = self.ring().log_n();
        match self.key_origin() {
            KeyOrigin::Drawn | KeyOrigin::Shared(_) => {
                let spread = tail(log_n, LOG2_FAILURE_INSIDE) * (2.0 * self.n() as f64 / 3.0).sqrt();
                spread.log2() + self.log2_secret_size()
            }
            KeyOrigin::Bounded(bound) => bound.log2_sum(log_n),
        }
    }

    /// log2 of a bound on |s|_1, and so on the coefficients of c s for any c within +-1.
    #[must_use]
    pub fn log2_secret_sum(&self) -> f64 {
        let log_n = self.ring().log_n();
        match self.key_origin() {
            KeyOrigin::Drawn | KeyOrigin::Shared(_) => f64::from(log_n) + self.log2_secret_size(),
            KeyOrigin::Bounded(bound) => bound.log2_sum(log_n),
        }
    }

    /// log2 of how many times as large as one that was drawn the secret key may be.
    fn log2_secret_size(&self) -> f64 {
        match self.key_origin() {
            KeyOrigin::Shared(shared) => shared.log2_size(),
            KeyOrigin::Drawn | KeyOrigin::Bounded(_) => 0.0,
        }
    }

    /// An error of which coefficients are bounded, in the norm of these parameters.
    fn in_norm(&self, noise: Noise) -> Noise {
        self.norm().of_coefficients(noise, self.n())
    }
}

impl KeyBound {
    /// A key that is the sum of `parties` honest ones, in the worst case.
    #[must_use]
    pub fn honest(params: &Params, parties: usize) -> Self {
        let norm = |bound: u64| (bound as f64 * parties as f64).log2() + f64::from(params.ring().log_n()) / 2.0;
        Self { error: norm(params.error().bound()), secret: norm(params.secret().bound()) }
    }

    /// A key that is the sum of the shares of `parties`, each with a proof of 128 bits that it is short: in the worst case that
    /// proofs let through.
    #[must_use]
    pub fn proven(params: &Params, parties: usize) -> Self {
        let (error, secret) = (params.error(), params.secret());
        let norm = |proven: f64| (proven * parties as f64).log2() + f64::from(params.ring().log_n()) / 2.0;
        Self {
            error: norm(hints::proven(error.bound() as f64, error.variance().sqrt())),
            secret: norm(hints::proven(secret.bound() as f64, secret.variance().sqrt())),
        }
    }
}
