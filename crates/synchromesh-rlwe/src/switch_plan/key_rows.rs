//! The rows of a key: digits of the ciphertext, or radix digits of single-prime digits.

use num_bigint::BigUint;
use synchromesh_ring::IndexSet;
use synchromesh_ring::backend::RadixDigit;
use synchromesh_ring::rns::Overflow;

use crate::error::Error;
use crate::noise::DigitSize;
use crate::params::Params;
use crate::switch_plan::{DigitSizes, Gadget, ProductRing, SwitchPlan};

/// What of a plan is fixed in a key at rest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyShape {
    /// The ciphertext primes of the digits: all there are, or those of the levels under a second secret key.
    pub q: IndexSet,
    /// Primes in each digit, in the order of q.
    pub sizes: DigitSizes,
    /// w, where digits are split in base 2^w.
    pub radix_bits: Option<u32>,
    /// The special primes.
    pub special: IndexSet,
}

impl KeyShape {
    /// The primes a key of this shape lives in: those of q, then the special ones.
    #[must_use]
    pub fn primes(&self) -> IndexSet {
        self.q.union(&self.special)
    }

    /// The rows of a key of this shape.
    #[must_use]
    pub fn rows(&self, params: &Params) -> Vec<KeyRow> {
        self.plain().map_or_else(|_| Vec::new(), |plan| plan.rows(params, &self.q))
    }

    fn plain(&self) -> Result<SwitchPlan, Error> {
        let plan = SwitchPlan::over(&self.q, &self.special, &self.sizes)?;
        Ok(SwitchPlan { radix_bits: self.radix_bits, ..plan })
    }

    /// The plainest plan for a key of this shape: R_QP, folded.
    ///
    /// # Errors
    /// As [`SwitchPlan::require_valid`].
    pub fn plan(&self, params: &Params) -> Result<SwitchPlan, Error> {
        let plan = self.plain()?;
        plan.require_valid(params)?;
        Ok(plan)
    }
}

/// One row of a key, and the digit of the ciphertext that it is multiplied by.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyRow {
    /// Its number in the key.
    pub index: usize,
    /// The active primes of its digit.
    pub own: IndexSet,
    /// Which radix digit of it, if it is split.
    pub radix: Option<RadixDigit>,
    /// The rows of the stored key that are added to give it.
    pub stored: Vec<usize>,
}

impl KeyRow {
    /// c, where the digit is a radix digit and lies in \[-2^(c-1), 2^(c-1)\]: w, and what is left for the last one.
    fn radix_bits(&self, params: &Params) -> Option<u32> {
        let (radix, prime) = (self.radix?, self.own.iter().next()?);
        let bits = params.ring().modulus(prime).bits();
        Some(radix.bits.min(bits.saturating_sub(radix.bits * radix.index)))
    }

    /// Twice a bound on the coefficients of the digit, up to 2^-20 of it.
    pub(crate) fn twice_bound(&self, params: &Params, plan: &SwitchPlan) -> BigUint {
        if let Some(bits) = self.radix_bits(params) {
            return BigUint::from(1u32) << bits;
        }
        let product = params.ring().product(&self.own);
        match plan.digit_overflow {
            Overflow::Round | Overflow::HpsRound | Overflow::Behz => product,
            Overflow::Floor | Overflow::HpsFloor => product * 2u32,
            Overflow::Fast => product * (2 * self.own.len()),
        }
    }

    /// As the noise bound wants it. A radix digit is uniform in \[-2^(w-1), 2^(w-1)), whose mean of -1/2 counts as
    /// two more values.
    pub(crate) fn size(&self, params: &Params) -> DigitSize {
        match self.radix_bits(params) {
            Some(bits) => {
                DigitSize { log2: (f64::from(bits).exp2() + 2.0).log2(), primes: 1, errors: self.stored.len() }
            }
            None => {
                DigitSize { log2: params.ring().log2(&self.own), primes: self.own.len(), errors: self.stored.len() }
            }
        }
    }

    /// The gadget's factor at the digit's primes: 2^(w i).
    pub(crate) fn power(&self) -> BigUint {
        BigUint::from(1u32) << self.radix.map_or(0, |radix| radix.bits * radix.index)
    }
}

impl SwitchPlan {
    /// What a key for this plan is at rest.
    #[must_use]
    pub fn shape(&self) -> KeyShape {
        if let Gadget::Coalesced { stored } = &self.gadget {
            return stored.clone();
        }
        KeyShape { q: self.q(), sizes: self.digit_sizes(), radix_bits: self.radix_bits, special: self.special.clone() }
    }

    /// The rows of the key that belong to the primes `active`.
    #[must_use]
    pub fn rows(&self, params: &Params, active: &IndexSet) -> Vec<KeyRow> {
        let mut rows = Vec::new();
        let mut first = 0;
        for digit in &self.digits {
            let count = match self.radix_bits {
                None => 1,
                Some(bits) => {
                    let widest = digit.iter().map(|i| params.ring().modulus(i).bits()).max();
                    RadixDigit::count(widest.unwrap_or(0), bits) as usize
                }
            };
            let own = active.intersection(digit);
            if !own.is_empty() {
                rows.extend((0..count).map(|i| {
                    let radix = self.radix_bits.map(|bits| RadixDigit { bits, index: i as u32 });
                    let mut row = KeyRow { index: first + i, own: own.clone(), radix, stored: Vec::new() };
                    row.stored = self.stored_rows(params, &row, digit);
                    row
                }));
            }
            first += count;
        }
        rows
    }

    /// Fails unless the plan can be carried out: distinct special primes of the table, none of them in a digit, digits of
    /// one prime where they are split, and digits of the key in distinct primes. Whether the ring holds the inner product
    /// is [`Self::require_capacity`].
    ///
    /// # Errors
    /// [`Error::Digits`] where P has a prime of a digit, [`Error::SwitchPlan`] otherwise.
    pub fn require_valid(&self, params: &Params) -> Result<(), Error> {
        let (special, have) = (&self.special, params.ring().moduli().len());
        if !special.iter().enumerate().all(|(r, i)| i < have && special.position(i) == Some(r)) {
            return Err(Error::switch_plan(format!("P = {special:?} must be distinct primes of the {have} there are")));
        }
        let shared = special.intersection(&self.q());
        if !shared.is_empty() {
            let rule = format!("the primes {shared:?} are in a digit and in P");
            return Err(self.refused(rule, Some((&self.digits, &special.without(&shared)))));
        }
        if let Some(bits) = self.radix_bits
            && (!(1..=61).contains(&bits) || self.digits.iter().any(|d| d.len() != 1))
        {
            let sizes = self.digit_sizes().0;
            return Err(Error::switch_plan(format!(
                "digits of {sizes:?} primes in base 2^{bits}: only single primes are split, in base 2^1 to 2^61"
            )));
        }
        if let ProductRing::Extended(ring) = &self.ring {
            ring.require_shape(params, &self.key_primes())?;
        }
        Ok(())
    }

    /// The same plan with these special primes; empty: P = 1.
    #[must_use]
    pub fn with_special(mut self, special: IndexSet) -> Self {
        self.special = special;
        self
    }

    /// The same plan with each digit, of one prime, split in base 2^`bits`.
    #[must_use]
    pub const fn with_radix(mut self, bits: u32) -> Self {
        self.radix_bits = Some(bits);
        self
    }

    /// RNS-BV: one prime a digit, split in base 2^`bits`, and no special primes (ePrint 2021/204, appendix B.2.1).
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] unless 1 <= bits <= 61.
    pub fn bv(params: &Params, bits: u32) -> Result<Self, Error> {
        let plan = Self::hybrid(params, params.q().len())?.with_special(IndexSet::empty()).with_radix(bits);
        plan.require_valid(params)?;
        Ok(plan)
    }

    /// GHS: one digit (ePrint 2021/204, appendix B.2.2).
    ///
    /// # Errors
    /// As [`Self::hybrid`].
    pub fn ghs(params: &Params) -> Result<Self, Error> {
        Self::hybrid(params, 1)
    }

    /// The field's name for this choice of digits and ring: `bv`, `rns_bv`, `ghs`, `hybrid`, `double`, `linear`, or
    /// `level-aware` where P is borrowed.
    #[must_use]
    pub fn method(&self) -> &'static str {
        let single = self.digits.iter().all(|d| d.len() == 1);
        match &self.ring {
            ProductRing::Extended(ring) => {
                let linear = single && self.radix_bits.is_none() && ring.key_digits.iter().all(|d| d.len() == 1);
                if linear { "linear" } else { "double" }
            }
            ProductRing::Base if !self.special.without(&self.shape().special).is_empty() => "level-aware",
            ProductRing::Base if self.radix_bits.is_some() => "bv",
            ProductRing::Base if self.digits.len() == 1 => "ghs",
            ProductRing::Base if single => "rns_bv",
            ProductRing::Base => "hybrid",
        }
    }
}
