//! BFV's certificate: bounds on e where phase = (Q/t) m + e mod Q, e rational, for any message.
//!
//! The message may move by multiples of t freely, so sums and products by plaintexts add nothing beyond
//! [`synchromesh_rlwe::noise`]. What a product does is derived below (ePrint 2021/204, section 3.2, without its
//! heuristics).

use synchromesh_rlwe::noise::{DEFAULT_LOG2_FAILURE, Noise, rounding, tail};

use super::Params;
use crate::error::Result;
use crate::exact::{fixed_point_margin, log2_biguint};

/// log2 of the largest |e| that decrypts: t |e| < Q (1/2 - margin of multi-limb rounding).
pub(super) fn room(params: &Params, level: usize) -> Result<f64> {
    let limbs = params.rlwe().level(level)?.len();
    Ok(params.log2_modulus(level)? - log2_biguint(params.t().value()) + (0.5 - fixed_point_margin(limbs)).log2())
}

/// The error of a product in three components.
///
/// Over the integers the first phase is (Q/t) m_1 + e_1 + Q k_1, the second, switched to P, (P/t) m_2 + e_2' + P k_2
/// with e_2' = (P/Q) e_2 + rounding. Their product times t/P is, modulo Q,
/// ```text
/// (Q/t) m_1 m_2 + e_1 (m_2 + t k_2) + (Q/P) e_2' (m_1 + t k_1) + (t/P) e_1 e_2' + rounding.
/// ```
/// m_i + t k_i is t / Q times a phase of centred components less t e_i / Q, at most 1/2: with a ternary s that is
/// independent of them, sum_j c_j s_j exceeds x (Q/2) sqrt(2N/3) with probability at most 2 exp(-x^2/2).
/// Polynomials of size a and b multiply to at most N a b.
pub(super) fn product(params: &Params, level: usize, first: Noise, second: Noise) -> Result<Noise> {
    let (n, log_n) = (params.n() as f64, f64::from(params.log_n()));
    let log2_t = log2_biguint(params.t().value());
    let bound = |e: Noise| e.bound(params.log_n(), DEFAULT_LOG2_FAILURE);
    let log2_q = params.log2_modulus(level)?;
    let log2_p = params.rlwe().ring().log2(&params.second_base(level)?);
    // e_2' in units of P/Q: the switch rounds to 1, which is Q/P here.
    let second = second.plus(rounding(params.n(), 2).times(log2_q - log2_p));
    // 1/2 for c_0, and 1 for t e / Q and the overflow count's tolerance.
    let wraps = log2_t + (tail(params.log_n(), DEFAULT_LOG2_FAILURE) * (n / 6.0).sqrt() + 1.5).log2();
    let of = |log2: f64| Noise { sigma: f64::NEG_INFINITY, remainder: log2 + log_n };
    let cross = of(bound(first) + wraps).plus(of(bound(second) + wraps));
    let errors = of(log2_t - log2_q + bound(first) + bound(second));
    Ok(cross.plus(errors).plus(rounding(params.n(), 3)))
}
