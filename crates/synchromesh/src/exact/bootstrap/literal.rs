//! What bootstrapping does, as choices, and the parameters that go with them.

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::DigitSizes;

use crate::ckks;
use crate::ckks::bootstrap::{Chain, Order};
use crate::error::{Error, Result};
use crate::exact::{ParamsLiteral, Scheme};

/// What bootstrapping does, as choices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootstrapLiteral {
    /// Levels of SlotsToCoeffs, above the output level: maps that the transform is the product of.
    pub slots_to_coeffs: usize,
    /// Levels of CoeffsToSlots, the highest there are.
    pub coeffs_to_slots: usize,
    /// Baby steps of each map, a power of two: fewer of them need fewer keys and take longer; none: as many as are fastest.
    #[serde(default)]
    pub baby_steps: Option<usize>,
    /// Degree of the cosine's polynomial, even.
    pub degree: usize,
    /// Doublings of its angle.
    pub doublings: u32,
    /// Whether the sine is straightened by the first terms of the arcsine, at two levels.
    #[serde(default)]
    pub arcsine: bool,
    /// r, log2 of what a modulus is of the error that a pass takes, at the least: the sine is straight up to a relative error
    /// of 6.6 / 4^r, straightened of 117 / 16^r, and a ciphertext is refreshed while it has a noise budget of about r.
    pub ratio_bits: u32,
    /// The least noise budget of a refreshed ciphertext, in bits; passes repeat until it has that.
    pub budget_bits: u32,
}

impl BootstrapLiteral {
    /// The choices as those of the CKKS ring. Its messages are what is left of numbers of at most 2^-r q_0: 1 is the largest.
    fn inside(&self) -> ckks::bootstrap::BootstrapLiteral {
        ckks::bootstrap::BootstrapLiteral {
            slots_to_coeffs: self.slots_to_coeffs,
            coeffs_to_slots: self.coeffs_to_slots,
            baby_steps: self.baby_steps,
            degree: self.degree,
            doublings: self.doublings,
            messages: ckks::bootstrap::Messages::Complex,
            slots: None,
            message_bound: 1.0,
            ratio_bits: self.ratio_bits,
            rounds: 1,
        }
    }

    /// What the ring does.
    pub(super) fn refresh(&self, inside: &ckks::Params) -> Result<ckks::bootstrap::Bootstrap> {
        self.check(inside)?;
        let order = Order::CoefficientsFirst { arcsine: self.arcsine };
        ckks::bootstrap::Bootstrap::ordered(inside, self.inside(), order)
    }

    /// The numbers that are no choices of CKKS, in their ranges.
    fn check(&self, inside: &ckks::Params) -> Result<()> {
        let base = inside.rlwe().ring().log2(inside.rlwe().level(0)?);
        let most = (base / 2.0) as u32;
        if (2..=most).contains(&self.ratio_bits) {
            return Ok(());
        }
        Err(Error::params(format!(
            "errors {} bits below their modulus: from 2 to {most}, half of level 0's {base:.0}",
            self.ratio_bits
        )))
    }

    /// The CKKS ring that refreshes run in: `usable` levels above level 0 of primes of `log_scale` bits for the user, and
    /// those of refreshes above them.
    ///
    /// # Errors
    /// [`Error::Params`] for choices that no polynomial or chain is made of.
    pub fn ring(&self, chain: &Chain) -> Result<ckks::ParamsLiteral> {
        chain.literal_for_coefficients(&self.inside(), self.arcsine)
    }

    /// The parameters of BFV or BGV whose ciphertexts are refreshed in a ring of [`Self::ring`]: its primes up to the output
    /// level, its special primes, and as few digits of a key switch as these allow.
    ///
    /// # Errors
    /// [`Error::Params`] for another ring, [`Error::PlainModulus`] for no plaintext modulus.
    pub fn literal<S: Scheme>(&self, inside: &ckks::Params, t: &str) -> Result<ParamsLiteral> {
        let rlwe = inside.rlwe();
        let top = self.refresh(inside)?.output_level();
        let level_limbs = (0..=top).map(|level| Ok(rlwe.level(level)?.len())).collect::<Result<Vec<_>>>()?;
        let limbs = level_limbs.last().copied().unwrap_or(0);
        let (q, p) = (&rlwe.literal().q[..limbs], &rlwe.literal().p);
        let literal = ParamsLiteral::over::<S>(inside.log_n(), t, [q, p], level_limbs)?;
        let special = literal.p_bits.iter().sum::<u32>();
        let fits = |omega: &usize| -> bool {
            let mut rest = literal.q_bits.as_slice();
            let digits = DigitSizes::balanced(rest, *omega).map_or_else(|_| Vec::new(), |digits| digits.0);
            digits.iter().all(|&size| {
                let (digit, after) = rest.split_at(size);
                rest = after;
                digit.iter().sum::<u32>() <= special
            })
        };
        let omega = (1..=limbs).find(fits).unwrap_or(limbs);
        Ok(ParamsLiteral { omega, security: rlwe.literal().security, ..literal })
    }
}
