//! BFV's certificate: bounds on e where phase = (Q/t) m + e mod Q, e rational, for any message.
//!
//! The message may move by multiples of t freely, so sums and products by plaintexts add nothing beyond
//! [`synchromesh_rlwe::noise`]. What a product does is derived below (ePrint 2021/204, section 3.2, without its
//! heuristics).

use synchromesh_rlwe::noise::{Noise, rounding_average};
use synchromesh_rlwe::ring::rns::Overflow;

use super::Params;
use crate::error::Result;
use crate::exact::{fixed_point_margin, log2_biguint};

/// log2 of the largest |e| that decrypts: t |e| < Q (1/2 - margin of multi-limb rounding).
pub(super) fn room(params: &Params, level: usize) -> Result<f64> {
    let limbs = params.rlwe().level(level)?.len();
    Ok(params.log2_modulus(level)? - log2_biguint(params.t().value()) + (0.5 - fixed_point_margin(limbs)).log2())
}

/// log2 of a size that components counted to nearest stay below, and others do not.
const COUNTED: f64 = -0.9;

/// log2 of the largest coefficient that a conversion from `primes` primes gives, as a multiple of their product.
pub(super) fn largest(overflow: Overflow, primes: usize) -> f64 {
    // Fixed point and doubles are off by one only within 2^-40 of a boundary, Montgomery by primes 2^-32.
    match overflow {
        Overflow::Round | Overflow::HpsRound | Overflow::Behz => 0.5001f64.log2(),
        Overflow::Floor | Overflow::HpsFloor => 1.0001f64.log2(),
        Overflow::Fast => (primes as f64).log2(),
    }
}

/// What dividing `components` components by `leaving` primes adds to the error.
///
/// The quotient is off by tau in +-1/2, uniform, when overflows are counted to nearest; otherwise by a further u, an
/// integer in \[0, 1\] or \[0, leaving), of which nothing is assumed but that it does not depend on s.
pub(super) fn scaling(params: &Params, components: usize, leaving: usize, overflow: Overflow) -> Noise {
    let off = match overflow {
        Overflow::Round | Overflow::HpsRound | Overflow::Behz => 0.0,
        Overflow::Floor | Overflow::HpsFloor => 1.0,
        Overflow::Fast => leaving as f64,
    };
    let square = if components < 3 { 0.0 } else { (2.0 * params.rlwe().log2_secret_sum()).exp2() };
    let wild = off * (1.0 + params.rlwe().log2_secret_reach().exp2() + square);
    let rounding = params.rlwe().rounding_noise(components);
    if off == 0.0 {
        return rounding;
    }
    let average = rounding_average(params.n(), components).times(uneven(off));
    rounding.plus(Noise::bounded(wild)).with_average(average)
}

/// log2 of how far k uniform numbers of \[0, 1) that overflow are from 0, for one in +-1/2: the root of the quotient of
/// mean squares.
fn uneven(k: f64) -> f64 {
    (k + 3.0 * k * k).log2() / 2.0
}

/// The error of an operand of a product.
#[derive(Clone, Copy)]
pub(super) struct Operand {
    /// That of the ciphertext, at the level of the product.
    pub(super) own: Noise,
    /// What bringing it there, and to P, has added.
    pub(super) rounding: Noise,
}

impl Operand {
    fn error(self) -> Noise {
        self.own.plus_switching(self.rounding)
    }
}

/// The error of a product before its last rounding, at a modulus Q with log2 `log2_q`; `first` and `second` are those
/// of the operands at that modulus, of one ciphertext if `same`; `size` is [`largest`] of their components.
///
/// Over the integers the first phase is (Q/t) K_1 with K_1 = m_1 + t k_1 + (t/Q) e_1, the second, switched to P, the same
/// with P in place of Q and e_2' = (P/Q) e_2 + rounding. Their product times t/P is, modulo Q,
/// ```text
/// (Q/t) m_1 m_2 + e_1 K_2 + (Q/P) e_2' K_1 - (t/P) e_1 e_2' + rounding,
/// ```
/// and the same with P = Q when neither is switched.
/// K_i is t / Q times a sum of components times powers of s. Counted to nearest they are uniform and the sum is of the
/// kind of a rounding error, t times as large. Otherwise they are at most x Q: with a ternary s that is independent of
/// them, sum_j c_j s_j exceeds y x Q sqrt(2N/3) with probability at most 2 exp(-y^2/2). Under a key that parties share all of
/// it is as many times as large as the secret; of one with proven shares only norms are known.
///
/// The two terms with K_1 and K_2 are summed like independent ones where the operands have no encryption in common and
/// their errors are independent of their components ([`Noise::sum_crosswise`]).
pub(super) fn cross_terms(params: &Params, log2_q: f64, [first, second]: [Operand; 2], size: f64, same: bool) -> Noise {
    let log_n = params.log_n();
    let log2_t = log2_biguint(params.t().value());
    let phase = |e: &Noise| {
        let unit = if size < COUNTED {
            params.rlwe().uniform_noise(size.exp2())
        } else {
            let spread = 1.0 + params.rlwe().log2_secret_reach().exp2();
            let average = rounding_average(params.n(), 2).times(uneven(size.exp2()));
            Noise::bounded(size.exp2() * spread + 1.0).with_average(average)
        };
        unit.times(log2_t).with_origins(*e.certificate.origins())
    };
    let [x, y] = [first.error(), second.error()];
    let both = x.product(y, log_n, same).times(log2_t - log2_q);
    if same {
        // 2 e and the roundings of both, times one K.
        let error = first.own.times(1.0).plus(first.rounding).plus(second.rounding);
        return error.product(phase(&x), log_n, false).plus(both);
    }
    let terms = [x.product(phase(&y), log_n, false), y.product(phase(&x), log_n, false)];
    terms[0].sum_crosswise(terms[1], [&x, &y]).plus(both)
}

/// log2 of what P must exceed, beyond Q, for the sum of `terms` products of Algorithm 1 not to wrap around P: twice
/// t/Q times N products of components of size x Q, two of them in the middle component, and as much again as room for
/// the conversion back from P.
pub(super) fn excess(params: &Params, terms: usize, size: f64) -> f64 {
    log2_biguint(params.t().value()) + f64::from(params.log_n()) + 2.0 * size + 3.0 + (terms as f64).log2() + 0.01
}
