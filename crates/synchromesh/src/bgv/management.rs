//! The two choices by which variants of BGV differ: which correction factors fresh ciphertexts get, and when levels are
//! dropped.

use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::{One, ToPrimitive};
use synchromesh_rlwe::ring::prime::{MAX_PRIME_BITS, PrimeError, ntt_primes_excluding, primes_one_mod};

use super::bridge::lossless_factor;
use super::factor::Factor;
use super::{Params, PrimeLists};
use crate::error::{Error, Result};
use crate::plain_modulus::PlainModulus;

/// The correction factor of a fresh ciphertext at each level, which switched ciphertexts get as well where they can.
///
/// The choice is local: every ciphertext carries its factor, and ciphertexts of contexts with different choices mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Factors {
    /// One factor a level, such that products of a level arrive at the factor of the next: S_L = 1 and
    /// S_{l-1} = S_l^2 / D_l mod t, with D_l the product of the primes dropped (ePrint 2021/204, section 4).
    #[default]
    PerLevel,
    /// -Q_l mod t at level l, which a modulus switch keeps (Gentry, Halevi and Smart, ePrint 2012/099; the sign makes
    /// conversion to BFV lossless, see [`super::Bridge`]). Products get another factor, which is tracked.
    Ghs,
    /// 1 at every level: the original scheme (ePrint 2021/204, section 2.2.1). The primes that levels drop must be
    /// 1 mod t, see [`original_primes`].
    One,
}

/// When levels are dropped. Explicit switches are possible with either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Levels {
    /// Before a product, as many as leave the most room by the certificates.
    #[default]
    Certified,
    /// Before every product exactly one (ePrint 2021/204, section 4): the level of a result depends on the circuit
    /// alone, and a fresh ciphertext's first switch brings its noise down to that of a modulus switch. Made for chains
    /// by [`crate::plan::static_bgv::StaticRule`]; a circuit of depth L needs L + 1 levels, and a ciphertext at level 0
    /// is not multiplied.
    Static,
}

/// How a context manages factors and levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Management {
    /// Correction factors.
    pub factors: Factors,
    /// Levels.
    pub levels: Levels,
}

impl Management {
    /// The original scheme: no correction factors.
    pub const ORIGINAL: Self = Self { factors: Factors::One, levels: Levels::Certified };
    /// Factors tracked for each ciphertext.
    pub const GHS: Self = Self { factors: Factors::Ghs, levels: Levels::Certified };
    /// One factor a level, one level before every product.
    pub const STATIC: Self = Self { factors: Factors::PerLevel, levels: Levels::Static };

    /// The canonical factor of every level, lowest first.
    pub(super) fn canonical(self, params: &Params) -> Result<Vec<Factor>> {
        let (t, top) = (params.t().value(), params.top_level());
        match self.factors {
            Factors::Ghs => (0..=top).map(|level| lossless_factor(params, level)).collect(),
            Factors::PerLevel => {
                let mut canonical = vec![Factor::new(BigUint::one(), t)];
                for level in (1..=top).rev() {
                    let dropped = params.divisor_mod_t(level, level - 1)?;
                    let above = &canonical[canonical.len() - 1];
                    canonical.push(above.times(above.value(), t).over(&dropped, t));
                }
                canonical.reverse();
                Ok(canonical)
            }
            Factors::One => {
                for level in 1..=top {
                    let dropped = params.divisor_mod_t(level, level - 1)?;
                    if !dropped.is_one() && !t.is_one() {
                        return Err(Error::params(format!(
                            "the primes that level {level} drops have the product {dropped} mod t = {t}; without \
                             correction factors it must be 1: take the primes of bgv::original_primes, or other factors"
                        )));
                    }
                }
                Ok(vec![Factor::new(BigUint::one(), t); top + 1])
            }
        }
    }
}

/// Primes for the original scheme, one a level: those of `q_bits` but the first are 1 modulo t as well as 2N.
///
/// # Errors
/// [`Error::Params`] when t lcm 2N has more than 61 bits, [`Error::Primes`] when a width has too few such primes,
/// which is soon the case: half of them have less than twice the size of lcm(t, 2N).
pub fn original_primes(log_n: u32, t: &PlainModulus, q_bits: &[u32], p_bits: &[u32]) -> Result<PrimeLists> {
    let congruence = t.value().lcm(&(BigUint::one() << (log_n + 1)));
    let Some(congruence) = congruence.to_u64().filter(|c| c >> MAX_PRIME_BITS == 0) else {
        return Err(Error::params(format!(
            "primes that are 1 mod t and mod 2N are 1 mod {congruence}, of {} bits, and have at most {MAX_PRIME_BITS}: \
             use correction factors",
            congruence.bits()
        )));
    };
    let mut taken = Vec::new();
    let mut take = |width: u32, both: bool| -> Result<u64> {
        loop {
            let found = match both {
                true => primes_one_mod(width, congruence, 1, &taken),
                false => ntt_primes_excluding(width, log_n, 1, &taken),
            }?;
            let missing = PrimeError::NotEnoughPrimes { width, have: 0, need: 1, congruence, nearest: None };
            let &prime = found.first().ok_or(missing)?;
            taken.push(prime);
            if (t.value() % prime).bits() != 0 {
                return Ok(prime);
            }
        }
    };
    let q = q_bits.iter().enumerate().map(|(i, &width)| take(width, i > 0)).collect::<Result<_>>()?;
    let p = p_bits.iter().map(|&width| take(width, false)).collect::<Result<_>>()?;
    Ok(PrimeLists { q, p, aux: Vec::new() })
}
