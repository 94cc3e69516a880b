//! Who watches what a context computes: operations name themselves and say what they made.

use std::fmt;

/// What makes a ciphertext.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Of a message.
    Encryption,
    /// Of ciphertexts, or with public weights.
    Sum,
    /// With a plaintext or a number.
    PlainSum,
    /// Of ciphertexts, if need be relinearised and rescaled in one go.
    Product,
    /// With a plaintext.
    PlainProduct,
    /// With a number.
    NumberProduct,
    /// Three components to two, with the rescale that is due.
    Relinearisation,
    /// X -> X^g, or sums of such.
    Rotation,
    /// To another secret key.
    Rekeying,
    /// A modulus switch or a rescale.
    Descent,
    /// To another scheme or a higher level.
    Conversion,
    /// Bootstrapping, as a whole.
    Refresh,
    /// Nothing new: from a file, or with a smaller bound.
    Copy,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Encryption => "encryption",
            Self::Sum => "sum",
            Self::PlainSum => "sum with a plaintext",
            Self::Product => "product",
            Self::PlainProduct => "product with a plaintext",
            Self::NumberProduct => "product with a number",
            Self::Relinearisation => "relinearisation",
            Self::Rotation => "rotation",
            Self::Rekeying => "switch to another key",
            Self::Descent => "switch to a lower level",
            Self::Conversion => "conversion",
            Self::Refresh => "refresh",
            Self::Copy => "copy",
        })
    }
}

/// A ciphertext that was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Made {
    /// What made it.
    pub operation: Operation,
    /// Its level.
    pub level: usize,
    /// Its components, 2 or 3.
    pub components: usize,
    /// log2 of its modulus.
    pub modulus_bits: f64,
    /// log2 of its certified error, as far as it counts: an error of as many bits as the modulus does not decrypt.
    pub noise_bits: f64,
}

/// Watches a context. Every method has a default: an observer says what it wants and no more.
pub trait Observer: Send + Sync {
    /// Whether ciphertexts carry estimates of their errors ([`crate::noise::Estimates`]) beside their certificates.
    fn wants_estimates(&self) -> bool {
        false
    }

    /// A ciphertext was made, and its certificate has been found good enough.
    fn made(&self, _: &Made) {}
}
