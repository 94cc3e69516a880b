//! What a key switch does, as choices on independent axes: digits, radix, gadget, special primes, the ring of the inner
//! product, folding, overflow correction.

mod coalesce;
mod derived;
mod key_rows;
mod product_ring;
mod search;

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use synchromesh_ring::IndexSet;
use synchromesh_ring::rns::Overflow;
use synchromesh_ring::scale::ScaleSpec;

use crate::error::Error;
use crate::params::Params;
pub use coalesce::Gadget;
pub use key_rows::{KeyRow, KeyShape};
pub use product_ring::{AuxBound, ExtendedRing, ProductRing};
pub use search::{DoubleChoice, DoubleSearch};

/// Where the constants of the mod-down are multiplied (ePrint 2023/1642, section 3.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Folding {
    /// At run time; for comparison and as a test oracle.
    Unfolded,
    /// Into the prepared key, for a mod-down by P and these further primes.
    Folded {
        /// Ciphertext primes that the mod-down drops together with P; empty for a plain key switch.
        dropped: IndexSet,
        /// Ciphertext primes that it brings in (prime switching).
        coming: IndexSet,
    },
}

/// How a key switch is carried out.
///
/// One digit is GHS, omega digits are hybrid key switching, one prime a digit is RNS-BV, with radix digits BV; in an
/// extended ring it is double decomposition, and linear key switching where every digit is one prime.
/// Coalesced digits with borrowed primes are level-aware key switching.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SwitchPlan {
    /// Digit j is the integer modulo the product of these ciphertext primes; the input has no other primes.
    pub digits: Vec<IndexSet>,
    /// How they come from the stored key.
    pub gadget: Gadget,
    /// w: each digit, of one prime then, is split further in base 2^w.
    pub radix_bits: Option<u32>,
    /// The special primes P; none: P = 1.
    pub special: IndexSet,
    /// Where the inner product is computed.
    pub ring: ProductRing,
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
    /// [`Error::SwitchPlan`] unless 1 <= omega <= l and every digit gets a prime.
    pub fn equal(l: usize, omega: usize) -> Result<Self, Error> {
        if omega == 0 || omega > l {
            return Err(Error::switch_plan(format!("omega = {omega} digits: there must be 1 to {l} of them")));
        }
        Ok(Self::of(l, l.div_ceil(omega)))
    }

    /// `primes` in runs of these sizes.
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] unless the sizes are positive and add up to the number of primes.
    pub fn split(&self, primes: &IndexSet) -> Result<Vec<IndexSet>, Error> {
        let l = primes.len();
        if self.0.contains(&0) || self.0.iter().try_fold(0usize, |sum, &n| sum.checked_add(n)) != Some(l) {
            return Err(Error::switch_plan(format!("digit sizes {:?} must be positive and add up to {l}", self.0)));
        }
        let mut rest = primes.as_slice();
        let mut take = |size| {
            let (digit, after) = rest.split_at(size);
            rest = after;
            digit.iter().copied().collect()
        };
        Ok(self.0.iter().map(|&size| take(size)).collect())
    }

    /// At most omega digits of neighbouring primes whose widest is as narrow as can be, for primes of these widths.
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] unless 1 <= omega <= number of primes.
    pub fn balanced(widths: &[u32], omega: usize) -> Result<Self, Error> {
        let l = widths.len();
        if omega == 0 || omega > l {
            return Err(Error::switch_plan(format!("omega = {omega} digits: there must be 1 to {l} of them")));
        }
        let (mut low, mut high) = (widths.iter().copied().max().unwrap_or(0), widths.iter().sum::<u32>());
        let split = |widest: u32| {
            let (mut sizes, mut bits) = (vec![0], 0);
            for &width in widths {
                if bits + width > widest {
                    sizes.push(0);
                    bits = 0;
                }
                bits += width;
                *sizes.last_mut().unwrap_or(&mut 0) += 1;
            }
            sizes
        };
        while low < high {
            let middle = low + (high - low) / 2;
            if split(middle).len() <= omega { high = middle } else { low = middle + 1 }
        }
        Ok(Self(split(high)))
    }
}

impl SwitchPlan {
    /// Hybrid key switching with about `omega` equal digits and all of the parameters' special primes.
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] unless 1 <= omega <= number of ciphertext primes.
    pub fn hybrid(params: &Params, omega: usize) -> Result<Self, Error> {
        Self::with_digits(params, &DigitSizes::equal(params.q().len(), omega)?)
    }

    /// Hybrid key switching with any digit borders.
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] unless the sizes are positive and add up to the number of ciphertext primes.
    pub fn with_digits(params: &Params, sizes: &DigitSizes) -> Result<Self, Error> {
        Self::over(params.q(), params.p(), sizes)
    }

    /// Hybrid key switching with digits of the ciphertext primes `q`, in their order, and the special primes `special`.
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] unless the sizes are positive and add up to the number of primes of `q`.
    pub fn over(q: &IndexSet, special: &IndexSet, sizes: &DigitSizes) -> Result<Self, Error> {
        Ok(Self {
            digits: sizes.split(q)?,
            gadget: Gadget::Idempotent,
            radix_bits: None,
            special: special.clone(),
            ring: ProductRing::Base,
            folding: Folding::Folded { dropped: IndexSet::empty(), coming: IndexSet::empty() },
            digit_overflow: Overflow::Round,
            down_overflow: Overflow::Round,
        })
    }

    /// The ciphertext primes that the digits hold.
    #[must_use]
    pub fn q(&self) -> IndexSet {
        self.digits.iter().flat_map(IndexSet::iter).collect()
    }

    /// The same plan with constants folded for switches from `active` to `target`, which may drop primes besides P and
    /// bring others in: no run-time constant then but that of the addends.
    #[must_use]
    pub fn folded_to(mut self, active: &IndexSet, target: &IndexSet) -> Self {
        self.folding = Folding::Folded { dropped: active.without(target), coming: target.without(active) };
        self
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

    /// A digest that tells plans apart within a process.
    pub(crate) fn digest(&self) -> [u8; 32] {
        struct Digest(blake3::Hasher);
        impl Hasher for Digest {
            fn write(&mut self, bytes: &[u8]) {
                self.0.update(bytes);
            }
            fn finish(&self) -> u64 {
                0
            }
        }
        let mut digest = Digest(blake3::Hasher::new());
        self.hash(&mut digest);
        *digest.0.finalize().as_bytes()
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

    /// The factor that folding multiplies into the key at each prime of [`Self::key_primes`].
    ///
    /// # Errors
    /// [`Error::Ring`] when the error multiple is not invertible.
    pub fn key_factors(&self, params: &Params) -> Result<Vec<u64>, Error> {
        let all = self.key_primes();
        let Folding::Folded { dropped, coming } = &self.folding else {
            return Ok(vec![1; all.len()]);
        };
        // What is dropped counts even where a narrower plan, for a trimmed key, no longer has it.
        let from = all.union(dropped).without(coming);
        let to = all.union(coming).without(&self.special).without(dropped);
        let mut spec = ScaleSpec::switch(&from, &to, params.error_multiple());
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
