//! The errors that keys of some parameters bring in, in the norm of the scheme and under keys as the parameters take them to
//! be.

use synchromesh_ring::rns::Overflow;

use super::Params;
use crate::noise::{DigitSize, KeyBound, Noise, gadget, public, rounding};

impl Params {
    /// Rounding error of a ciphertext of `components` parts.
    #[must_use]
    pub fn rounding_noise(&self, components: usize) -> Noise {
        let drawn = || rounding(self.n(), components, self.norm());
        self.key_bound().map_or_else(drawn, |bound| self.in_norm(bound.rounding(self.n(), components)))
    }

    /// The error of a ciphertext under the public key before it is divided by P.
    #[must_use]
    pub fn public_noise(&self) -> Noise {
        let sigma = self.error().variance().sqrt();
        let drawn = || public(self.n(), sigma);
        self.key_bound().map_or_else(drawn, |bound| self.in_norm(bound.public(self.n(), sigma)))
    }

    /// The error that a key switch adds before rounding.
    #[must_use]
    pub fn gadget_noise(&self, digits: &[DigitSize], log2_p: f64, overflow: Overflow) -> Noise {
        let drawn = || gadget(self.n(), self.error().variance().sqrt(), digits, log2_p, overflow);
        let bounded = |bound: KeyBound| bound.gadget(self.n(), digits, log2_p, overflow);
        self.in_norm(self.key_bound().map_or_else(drawn, bounded))
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
}
