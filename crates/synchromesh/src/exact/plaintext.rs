//! Plaintexts: a secret polynomial of Z_t\[X\]/(X^N+1), and the size that certificates may assume of it.

use zeroize::Zeroizing;

use super::integers::log2_biguint;
use crate::batch::PlainPoly;
use crate::plain_modulus::{Arithmetic, U256, at_least};

/// Bounds on a polynomial's centred coefficients, as log2.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Norms {
    /// log2 of the sum of their absolute values.
    pub norm1: f64,
    /// log2 of the root of the sum of their squares.
    pub norm2: f64,
}

/// A plaintext polynomial. Its residues are secret and erased when it is dropped.
///
/// Certificates assume nothing about it but that its coefficients lie in +-t/2, unless its norms are declared public.
#[derive(Debug, Clone, PartialEq)]
pub struct Plaintext {
    poly: PlainPoly,
    public: Option<Norms>,
}

impl From<PlainPoly> for Plaintext {
    fn from(poly: PlainPoly) -> Self {
        Self { poly, public: None }
    }
}

impl Plaintext {
    /// The polynomial.
    #[must_use]
    pub const fn poly(&self) -> &PlainPoly {
        &self.poly
    }

    /// Declares that the polynomial's norms may be known, so that products with it get tighter certificates.
    ///
    /// The norms then show in the certificates of ciphertexts: for masks, weights and other public operands.
    #[must_use]
    pub fn with_public_norms(mut self) -> Self {
        self.public = Some(norms(&self.poly));
        self
    }

    /// Whether its norms were declared public.
    pub(super) const fn has_public_norms(&self) -> bool {
        self.public.is_some()
    }

    /// What a certificate may assume: the declared norms, or coefficients of +-t/2.
    #[must_use]
    pub fn norms(&self) -> Norms {
        self.public.unwrap_or_else(|| {
            let log_n = (self.poly.coeffs().len() as f64).log2();
            let half = log2_biguint(self.poly.modulus().value()) - 1.0;
            Norms { norm1: half + log_n, norm2: half + log_n / 2.0 }
        })
    }
}

/// The norms of the centred coefficients, rounded up by more than all rounding errors.
fn norms(poly: &PlainPoly) -> Norms {
    const SLACK: f64 = 1.0 + 1e-9;
    let coeffs = poly.coeffs();
    let sizes: Zeroizing<Vec<f64>> = Zeroizing::new(match poly.modulus().arithmetic() {
        Arithmetic::Word(t) => {
            let t = t.value();
            coeffs.as_word().unwrap_or_default().iter().map(|&x| x.min(t - x) as f64).collect()
        }
        Arithmetic::Wide(t) => {
            let smaller = |x: &U256| {
                let negated = t.neg(x);
                if at_least(x, &negated) == 1 { negated } else { *x }
            };
            let value = |x: U256| x.iter().rev().fold(0.0, |sum: f64, &limb| sum * 2f64.powi(64) + limb as f64);
            coeffs.as_wide().unwrap_or_default().iter().map(|x| value(smaller(x))).collect()
        }
    });
    // Scaled by the largest coefficient, so that squares of 256-bit coefficients stay far from overflow.
    let largest = sizes.iter().fold(0.0, |a: f64, &b| a.max(b));
    if largest == 0.0 {
        return Norms { norm1: f64::NEG_INFINITY, norm2: f64::NEG_INFINITY };
    }
    let (sum, squares) = sizes.iter().fold((0.0, 0.0), |(sum, squares), x| {
        let x = x / largest;
        (sum + x, squares + x * x)
    });
    Norms { norm1: (sum * SLACK).log2() + largest.log2(), norm2: (squares * SLACK).log2() / 2.0 + largest.log2() }
}
