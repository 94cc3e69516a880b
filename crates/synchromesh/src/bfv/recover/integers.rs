//! round(t x / Q) mod t in integers alone: BEHZ's decryption with a second modulus (ePrint 2016/510, section 3.2).
//!
//! With gamma prime to t, v = (gamma t x - z) / Q is an integer for z = \[gamma t x\]_Q + a Q, 0 <= a < k, the value of
//! the base extension without overflow counts. Modulo t and gamma it is -z / Q, since gamma t vanishes there. From
//! t x / Q = m + t j + eps follows v = gamma m + gamma t j + floor(gamma eps) - a, so that the centred residue of v
//! modulo gamma is what is too much, and the message is (v - \[v\]_gamma) / gamma mod t.

use synchromesh_rlwe::ring::modulus::{Modulus, Scalar};
use synchromesh_rlwe::ring::rns::inverse_residues;
use zeroize::Zeroize;

use super::Params;
use crate::error::{Error, Result};
use crate::plain_modulus::WordModulus;

/// Coefficients worked on at a time.
const CHUNK: usize = 64;

/// Primes for gamma, of which a word t has at most one as a factor; neither is 1 modulo a power of two above 2^5, so
/// that no ring has them.
const GAMMAS: [u64; 2] = [(1 << 61) - 1, (1 << 61) - 31];

/// How near a half t e / Q may come for `k` primes: (k + 2) / gamma.
pub(super) fn margin(k: usize) -> f64 {
    (k as f64 + 2.0) * 2f64.powi(-60)
}

/// One limb: y = \[gamma t (Q/q)^-1 x\]_q, and -1/q modulo t and gamma with companions.
struct Term {
    modulus: Modulus,
    scale: Scalar,
    in_t: [u64; 2],
    in_gamma: [u64; 2],
}

/// The constants of one level.
pub(super) struct Correction {
    gamma: WordModulus,
    terms: Vec<Term>,
    /// 1 / gamma mod t and its companion.
    inverse: [u64; 2],
}

/// w and its companion.
fn constant(modulus: &WordModulus, w: u64) -> [u64; 2] {
    [w, modulus.shoup(w)]
}

/// x w mod the modulus.
#[inline(always)]
fn times(modulus: &WordModulus, x: u64, [w, companion]: [u64; 2]) -> u64 {
    modulus.reduce_once(modulus.mul_shoup_lazy(x, w, companion))
}

impl Correction {
    pub(super) fn new(params: &Params, t: &WordModulus, level: usize) -> Result<Self> {
        let (ring, primes) = (params.rlwe().ring(), params.rlwe().level(level)?);
        let gamma = GAMMAS.into_iter().find(|gamma| !t.value().is_multiple_of(*gamma)).and_then(WordModulus::new);
        let no_inverse = || Error::params(format!("t = {} is prime to no correction modulus", t.value()));
        let gamma = gamma.ok_or_else(no_inverse)?;
        let invert = |x: u64, modulus: &WordModulus| -> Result<u64> {
            let big = |x: u64| num_bigint::BigUint::from(x);
            let inverse = big(x % modulus.value()).modinv(&big(modulus.value()));
            inverse.and_then(|x| x.iter_u64_digits().next().or(Some(0))).ok_or_else(no_inverse)
        };
        let mut terms = Vec::with_capacity(primes.len());
        for i in primes.iter() {
            let modulus = ring.modulus(i);
            let others = primes.without(&[i].into_iter().collect());
            let cofactor = inverse_residues(ring, &[i].into_iter().collect(), &ring.product(&others))?[0];
            let [t_here, gamma_here] = [t.value(), gamma.value()].map(|x| modulus.reduce(x));
            let scale = modulus.scalar(modulus.mul(cofactor, modulus.mul(t_here, gamma_here)));
            let negated =
                |in_: &WordModulus| -> Result<[u64; 2]> { Ok(constant(in_, in_.neg(invert(modulus.value(), in_)?))) };
            terms.push(Term { modulus, scale, in_t: negated(t)?, in_gamma: negated(&gamma)? });
        }
        let inverse = constant(t, invert(gamma.value(), t)?);
        Ok(Self { gamma, terms, inverse })
    }

    /// The messages of a phase given limb after limb.
    pub(super) fn run(&self, t: &WordModulus, words: &[u64], out: &mut [u64]) {
        let n = out.len();
        let mut rest = [0u64; CHUNK];
        for (c, out) in out.chunks_mut(CHUNK).enumerate() {
            rest.zeroize();
            for (j, term) in self.terms.iter().enumerate() {
                let limb = &words[j * n + c * CHUNK..];
                for ((out, rest), &x) in out.iter_mut().zip(&mut rest).zip(limb) {
                    let y = term.modulus.mul_scalar(x, &term.scale);
                    *out = t.add(*out, times(t, y, term.in_t));
                    *rest = self.gamma.add(*rest, times(&self.gamma, y, term.in_gamma));
                }
            }
            for (out, &rest) in out.iter_mut().zip(&rest) {
                // Centred, without a branch: gamma leaves when rest is above its half.
                let above = ((self.gamma.value() / 2).wrapping_sub(rest) as i64) >> 63;
                let centred = (rest as i64).wrapping_sub(above & self.gamma.value() as i64);
                *out = times(t, t.sub(*out, t.reduce_signed(centred)), self.inverse);
            }
        }
        rest.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::GAMMAS;
    use synchromesh_rlwe::ring::prime::is_prime;

    #[test]
    fn correction_moduli_are_primes_of_no_ring() {
        for gamma in GAMMAS {
            assert!(is_prime(gamma) && gamma % 2048 != 1, "{gamma}");
        }
    }
}
