//! What a key switch does, as choices on independent axes: digits, special primes, folding, overflow correction.

use serde::{Deserialize, Serialize};
use synchromesh_ring::IndexSet;
use synchromesh_ring::rns::Overflow;
use synchromesh_ring::scale::ScaleSpec;

use crate::error::Error;
use crate::params::Params;

/// Where the constants of the mod-down are multiplied (ePrint 2023/1642, section 3.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Folding {
    /// At run time; for comparison and as a test oracle.
    Unfolded,
    /// Into the prepared key, for a mod-down by P and these further primes.
    Folded {
        /// Ciphertext primes that the mod-down drops together with P; empty for a plain key switch.
        dropped: IndexSet,
    },
}

/// How a key switch with the CRT-idempotent gadget in R_QP is carried out.
///
/// One digit is GHS, omega digits are hybrid key switching, one prime a digit is RNS-BV.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SwitchPlan {
    /// Digit j is the integer modulo the product of these ciphertext primes; together they are all of them.
    pub digits: Vec<IndexSet>,
    /// The special primes P.
    pub special: IndexSet,
    /// Where the constants go.
    pub folding: Folding,
    /// Overflow rule when a digit is extended.
    pub digit_overflow: Overflow,
    /// Overflow rule when P is divided out.
    pub down_overflow: Overflow,
}

/// The digit borders of a key, as stored: primes in each digit, in the order of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DigitSizes(pub Vec<usize>);

impl DigitSizes {
    /// omega digits of ceil(l / omega) primes, the last one short.
    ///
    /// # Errors
    /// [`Error::Params`] unless 1 <= omega <= l and every digit gets a prime.
    pub fn equal(l: usize, omega: usize) -> Result<Self, Error> {
        if omega == 0 || omega > l {
            return Err(Error::params(format!("omega = {omega} digits: there must be 1 to {l} of them")));
        }
        let size = l.div_ceil(omega);
        let mut sizes = vec![size; l / size];
        if !l.is_multiple_of(size) {
            sizes.push(l % size);
        }
        Ok(Self(sizes))
    }
}

impl SwitchPlan {
    /// Hybrid key switching with about `omega` equal digits and all of the parameters' special primes.
    ///
    /// # Errors
    /// [`Error::Params`] unless 1 <= omega <= number of ciphertext primes.
    pub fn hybrid(params: &Params, omega: usize) -> Result<Self, Error> {
        Self::with_digits(params, &DigitSizes::equal(params.q().len(), omega)?)
    }

    /// Hybrid key switching with any digit borders.
    ///
    /// # Errors
    /// [`Error::Params`] unless the sizes are positive and add up to the number of ciphertext primes.
    pub fn with_digits(params: &Params, sizes: &DigitSizes) -> Result<Self, Error> {
        let l = params.q().len();
        if sizes.0.contains(&0) || sizes.0.iter().sum::<usize>() != l {
            return Err(Error::params(format!("digit sizes {:?} must be positive and add up to {l}", sizes.0)));
        }
        let mut start = 0;
        let digits = sizes
            .0
            .iter()
            .map(|&size| {
                start += size;
                (start - size..start).collect()
            })
            .collect();
        Ok(Self {
            digits,
            special: params.p().clone(),
            folding: Folding::Folded { dropped: IndexSet::empty() },
            digit_overflow: Overflow::Round,
            down_overflow: Overflow::Round,
        })
    }

    /// The same plan with constants multiplied at run time.
    #[must_use]
    pub fn unfolded(mut self) -> Self {
        self.folding = Folding::Unfolded;
        self
    }

    /// The same plan with other overflow rules.
    #[must_use]
    pub const fn with_overflow(mut self, digits: Overflow, down: Overflow) -> Self {
        self.digit_overflow = digits;
        self.down_overflow = down;
        self
    }

    /// Number of primes of each digit.
    #[must_use]
    pub fn digit_sizes(&self) -> DigitSizes {
        DigitSizes(self.digits.iter().map(IndexSet::len).collect())
    }

    /// The digits that remain on the primes `active`, with their index in the key.
    #[must_use]
    pub fn active_digits(&self, active: &IndexSet) -> Vec<(usize, IndexSet)> {
        let own = self.digits.iter().map(|d| active.intersection(d));
        own.enumerate().filter(|(_, d)| !d.is_empty()).collect()
    }

    /// The factor that folding multiplies into the key at each prime of q, then of P.
    ///
    /// # Errors
    /// [`Error::Ring`] when the error multiple is not invertible.
    pub fn key_factors(&self, params: &Params) -> Result<Vec<u64>, Error> {
        let all = params.q().union(&self.special);
        let Folding::Folded { dropped } = &self.folding else {
            return Ok(vec![1; all.len()]);
        };
        let mut spec = ScaleSpec::switch(&all, &params.q().without(dropped), params.error_multiple());
        spec.overflow = self.down_overflow;
        let constants = spec.constants(params.ring())?;
        let (pre, _) = constants.convert.fold();
        let factor = |i: usize| {
            let left = constants.leaving.position(i).map(|r| pre[r]);
            left.or_else(|| constants.staying.position(i).map(|r| constants.factors[r])).unwrap_or(1)
        };
        Ok(all.iter().map(factor).collect())
    }
}
