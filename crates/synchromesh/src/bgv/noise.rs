//! BGV's certificate: bounds on e where phase = \[f m\]_t + t e, for any message in its range.
//!
//! \[.\]_t has coefficients in +-t/2. A phase is an exact integer, so whatever an operation does to the message beyond
//! reducing it mod t moves a multiple of t into e; those terms are bounded here, the others in
//! [`synchromesh_rlwe::noise`].

use synchromesh_rlwe::noise::{Average, Noise, log2_add};

use super::Params;
use crate::error::Result;
use crate::exact::{fixed_point_margin, log2_biguint};

/// log2 of the largest |e| that decrypts: t (|e| + 1/2) < Q (1/2 - margin of the overflow count).
pub(super) fn room(params: &Params, level: usize) -> Result<f64> {
    let limbs = params.rlwe().level(level)?.len();
    let log2_t = log2_biguint(params.t().value());
    let ratio = params.log2_modulus(level)? - log2_t + (0.5 - fixed_point_margin(limbs)).log2();
    // 2^ratio - 1/2, without overflow for a modulus of thousands of bits.
    Ok(if ratio > 60.0 {
        ratio + (-(-ratio - 1.0).exp2()).ln_1p() / std::f64::consts::LN_2
    } else {
        (ratio.exp2() - 0.5).max(0.0).log2()
    })
}

/// \[a\]_t + \[b\]_t = \[a + b\]_t + t k with |k| <= 1.
pub(super) fn sum() -> Noise {
    // Uniform messages wrap around one time in four.
    Noise::bounded(1.0).with_average(Average::of(0, -2.0))
}

/// \[a\]_t p = \[a p\]_t + t k with |k| <= |p|_1 / 2 + 1/2.
pub(super) fn message_product(log2_norm1: f64) -> Noise {
    Noise::bounded(0.5).times(log2_norm1).plus(Noise::bounded(0.5))
}

/// \[f m\]_t / D = \[f m / D\]_t + t k with |k| <= (1 + 1/D) / 2, where D, the quotient of two levels' moduli, is
/// at least 2^18.999.
pub(crate) fn message_switch() -> Noise {
    Noise::bounded(0.5 + 2f64.powi(-19))
}

/// The error of a product of different ciphertexts, see [`product_of`].
pub(crate) fn product(log_n: u32, log2_t: f64, a: Noise, b: Noise) -> Noise {
    product_of(log_n, log2_t, a, b, false)
}

/// The error of a product, of a ciphertext with itself if `same`: with phases A + t a and B + t b,
/// (A B - \[A B\]_t) / t + A b + B a + t a b, where |A|, |B| <= t/2.
pub(super) fn product_of(log_n: u32, log2_t: f64, a: Noise, b: Noise, same: bool) -> Noise {
    let log2_n = f64::from(log_n);
    let errors = a.product(b, log_n, same).times(log2_t);
    let wraps = Average::of(0, log2_add(log2_n + 2.0 * log2_t - 144f64.log2(), -(12f64.log2())));
    let wraps = message_product(log2_t - 1.0 + log2_n).with_average(wraps);
    let [a, b] = [a, b].map(|e| e.times_message(log_n, log2_t - 1.0));
    let cross = if same { a.sum_same(b) } else { a.sum(b) };
    wraps.plus(cross).plus(errors)
}
