//! Digits that are unions of stored ones, with P of some special primes and of primes the input has lost: level-aware key
//! switching.

use synchromesh_ring::IndexSet;

use super::{DigitSizes, KeyRow, KeyShape, ProductRing, SwitchPlan};
use crate::error::Error;
use crate::params::Params;

/// How the digits of a stored key become those of a plan.
///
/// Row i of a stored key hides W_i s' with W_i = P_0 on the primes of its digit and 0 on all others, P_0 the product of
/// the special primes it was made with. A sum of rows hides the same form on the union of their digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Gadget {
    /// The plan's digits are the stored ones, and P = P_0 (ePrint 2023/1642, section 2.8).
    Idempotent,
    /// A digit of the plan is one stored one, or several whose rows are added; P is ciphertext primes B that the input
    /// has lost, and P_0 or some of its primes. W is a multiple of P on all primes in use, and P g_j needs W = P on the
    /// digit: the input is multiplied by P / P_0, in constants (Hwang, Seo and Song, level-aware key switching, sections
    /// 3.2 and 4.2, with P = P_0 B).
    Coalesced {
        /// What the stored key is.
        stored: KeyShape,
    },
}

impl DigitSizes {
    /// l digits of one prime: what level-aware keys are stored with.
    #[must_use]
    pub fn single(l: usize) -> Self {
        Self(vec![1; l])
    }

    /// Digits of `size` of l primes, the last one short.
    pub(super) fn of(l: usize, size: usize) -> Self {
        let mut sizes = vec![size; l / size];
        if !l.is_multiple_of(size) {
            sizes.push(l % size);
        }
        Self(sizes)
    }
}

impl SwitchPlan {
    /// Level-aware key switching from a key of single-prime digits: digits of `digit_primes` primes, and P the last
    /// `borrowed` ciphertext primes besides the dedicated ones. It serves inputs of at most l - `borrowed` limbs.
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] unless both are at least 1 (`borrowed` may be 0 beside dedicated special primes) and
    /// `borrowed` < l.
    pub fn level_aware(params: &Params, digit_primes: usize, borrowed: usize) -> Result<Self, Error> {
        let l = params.q().len();
        if digit_primes == 0 || borrowed >= l || (borrowed == 0 && params.p().is_empty()) {
            return Err(Error::switch_plan(format!(
                "digits of {digit_primes} primes with {borrowed} borrowed of {l}: a digit needs a prime, and from 1 to \
                 {} primes can be borrowed",
                l - 1
            )));
        }
        let most = l - borrowed;
        let kept: IndexSet = params.q().iter().take(most).collect();
        let top: IndexSet = params.q().iter().skip(most).collect();
        Self::coalesced(params, &DigitSizes::single(l), DigitSizes::of(most, digit_primes).split(&kept)?, &top)
    }

    /// Key switching from a key of the digits `stored`, with digits that are unions of stored ones, and P the primes
    /// `borrowed` besides the dedicated ones.
    ///
    /// # Errors
    /// [`Error::Digits`] when a digit is empty, cuts a stored one, shares a prime with another digit or with P, or names
    /// a prime outside q, with digits that do work; [`Error::SwitchPlan`] when the stored sizes do not add up to the number of
    /// ciphertext primes.
    pub fn coalesced(
        params: &Params,
        stored: &DigitSizes,
        digits: Vec<IndexSet>,
        borrowed: &IndexSet,
    ) -> Result<Self, Error> {
        let plain = Self::with_digits(params, stored)?;
        let wanted = Self { digits, special: params.p().union(borrowed), ..plain.clone() };
        if let Some(rule) = plain.broken_by(&wanted.digits, borrowed) {
            let nearest = plain.nearest_to(&wanted.digits, borrowed);
            return Err(wanted.refused(rule, nearest.as_ref().map(|(digits, special)| (&digits[..], special))));
        }
        let gadget = Gadget::Coalesced { stored: plain.shape() };
        Ok(Self { gadget, ..wanted })
    }

    /// What keeps a key of this plan from being used with these digits, and a P of `borrowed` besides its own.
    fn broken_by(&self, digits: &[IndexSet], borrowed: &IndexSet) -> Option<String> {
        let q = self.q();
        let mut seen = borrowed.clone();
        for digit in digits {
            let outside = digit.is_empty() || !digit.without(&q).is_empty();
            let cuts = |d: &IndexSet| !matches!(d.intersection(digit).len(), n if n == 0 || n == d.len());
            if outside || !digit.intersection(&seen).is_empty() || self.digits.iter().any(cuts) {
                return Some(format!(
                    "digit {digit:?} must be a union of the stored digits {:?}, apart from the primes {seen:?} of other \
                     digits and of P",
                    self.digits
                ));
            }
            seen = seen.union(digit);
        }
        let none = digits.is_empty() || !borrowed.without(&q).is_empty();
        none.then(|| format!("no digits, or borrowed primes {borrowed:?} that are not all among {q:?}"))
    }

    /// Digits and special primes that a key of this plan does have: the whole stored digits that each digit meets first,
    /// and of what is borrowed the primes apart from them; at least one stored digit is borrowed where there is no other P.
    fn nearest_to(&self, digits: &[IndexSet], borrowed: &IndexSet) -> Option<(Vec<IndexSet>, IndexSet)> {
        let mut free = self.digits.clone();
        let mut take = |wanted: &IndexSet| -> IndexSet {
            let meets = |d: &IndexSet| !d.intersection(wanted).is_empty();
            let (met, rest): (Vec<IndexSet>, Vec<IndexSet>) = std::mem::take(&mut free).into_iter().partition(meets);
            free = rest;
            met.iter().flat_map(IndexSet::iter).collect()
        };
        let mut found: Vec<IndexSet> = digits.iter().map(&mut take).filter(|digit| !digit.is_empty()).collect();
        if found.is_empty() {
            found = self.digits.iter().filter(|d| d.intersection(borrowed).is_empty()).cloned().collect();
        }
        let covered = |found: &[IndexSet]| found.iter().flat_map(IndexSet::iter).collect::<IndexSet>();
        let mut special = self.special.union(&borrowed.intersection(&self.q()).without(&covered(&found)));
        if special.is_empty() {
            special = self.digits.iter().rfind(|d| !d.intersection(&covered(&found)).is_empty())?.clone();
            found = found.iter().map(|d| d.without(&special)).filter(|d| !d.is_empty()).collect();
        }
        (!found.is_empty()).then_some((found, special))
    }

    /// The refusal of this plan's digits and P, and what works instead.
    pub(super) fn refused(&self, rule: String, nearest: Option<(&[IndexSet], &IndexSet)>) -> Error {
        let lists = |digits: &[IndexSet]| digits.iter().map(|d| d.as_slice().to_vec()).collect();
        let nearest = nearest.map(|(digits, special)| Box::new((lists(digits), special.as_slice().to_vec())));
        Error::Digits { digits: lists(&self.digits), special: self.special.as_slice().to_vec(), rule, nearest }
    }

    /// The plan for inputs on some of `primes` only: the key in use holds no more than they need. One in an extended ring
    /// stays as it is.
    #[must_use]
    pub fn up_to(mut self, primes: &IndexSet) -> Self {
        let digits: Vec<IndexSet> = self.active_digits(primes).into_iter().map(|(_, digit)| digit).collect();
        if digits != self.digits && self.ring == ProductRing::Base {
            self.gadget = Gadget::Coalesced { stored: self.shape() };
            self.digits = digits;
        }
        self
    }

    /// The rows of the stored key whose sum is a row for this digit, and this radix digit of it.
    pub(super) fn stored_rows(&self, params: &Params, row: &KeyRow, digit: &IndexSet) -> Vec<usize> {
        let Gadget::Coalesced { stored } = &self.gadget else { return vec![row.index] };
        let stored = stored.rows(params);
        let meets = |r: &&KeyRow| r.radix == row.radix && !r.own.intersection(digit).is_empty();
        stored.iter().filter(meets).map(|r| r.index).collect()
    }

    /// The primes of the key in use: those of the digits, then those of P.
    #[must_use]
    pub fn key_primes(&self) -> IndexSet {
        self.q().union(&self.special)
    }

    /// The same plan, for the same stored key, with P = `special`: some of the special primes that the key is stored with,
    /// and ciphertext primes in no digit.
    ///
    /// A row is W s' with W = P_0 on its digit and 0 on every other prime, those of P_0 among them; modulo fewer of these
    /// it still is, and any P of primes outside the digits divides it. What is left of P / P_0 is a constant that a digit
    /// is multiplied by.
    ///
    /// # Errors
    /// [`Error::Digits`] when P is empty, has a prime of a digit, or one that the stored key does not live in; for a plan in
    /// an extended ring, and for digits that are split in base 2^w, which take no constant.
    pub fn dividing_by(mut self, special: IndexSet) -> Result<Self, Error> {
        let (covered, stored) = (self.q(), self.shape());
        let foreign = special.without(&stored.primes()).union(&special.intersection(&covered));
        if special == self.special {
            return Ok(self);
        }
        let plain = self.ring == ProductRing::Base && self.radix_bits.is_none();
        if special.is_empty() || !foreign.is_empty() || !plain {
            let rule = format!(
                "P must be of the primes {:?} that the key is stored with, apart from those of the digits; it is chosen \
                 before an extended ring, and not for digits in base 2^w",
                stored.primes().without(&covered)
            );
            // What is left of P where that is something, and the P there was.
            let left = if plain { special.without(&foreign) } else { IndexSet::empty() };
            let nearest = if left.is_empty() { self.special.clone() } else { left };
            return Err(Self { special, ..self.clone() }.refused(rule, Some((&self.digits, &nearest))));
        }
        self.gadget = Gadget::Coalesced { stored };
        self.special = special;
        Ok(self)
    }

    /// P / P_0 modulo each prime of a digit: what its input is multiplied by. In R_QP the primes' own limbs enter the
    /// inner product without it; the key in use has it there instead.
    #[must_use]
    pub fn input_factors(&self, params: &Params, own: &IndexSet) -> Vec<u64> {
        let (ring, stored) = (params.ring(), self.shape().special);
        let more = ring.residues(own, &ring.product(&self.special.without(&stored)));
        let fewer = ring.residues(own, &ring.product(&stored.without(&self.special)));
        let quotient = |(i, (&more, &fewer)): (usize, (&u64, &u64))| {
            let q = ring.modulus(i);
            // Primes of P_0 are not in a digit, so that the inverse is there.
            q.inv(fewer).map_or(0, |inverse| q.mul(more, inverse))
        };
        own.iter().zip(more.iter().zip(&fewer)).map(quotient).collect()
    }

    /// Whether a digit's own limbs are those of the input: not in an extended ring whose key lacks P / P_0 there.
    pub(crate) fn keeps_limbs(&self) -> bool {
        let stored = self.shape().special;
        let same = self.special.without(&stored).is_empty() && stored.without(&self.special).is_empty();
        self.ring == ProductRing::Base || same
    }

    /// Bytes of one key in use: two columns of words.
    #[must_use]
    pub fn prepared_bytes(&self, params: &Params) -> u64 {
        let limbs = match &self.ring {
            ProductRing::Base => self.key_primes().len(),
            ProductRing::Extended(ring) => ring.key_digits.len() * ring.aux.len(),
        };
        let rows = self.rows(params, params.q()).len() * limbs;
        16u64.saturating_mul(rows as u64).saturating_mul(params.n() as u64)
    }

    /// Fails when an input on `active` has a prime of P, or one in no digit.
    ///
    /// # Errors
    /// [`Error::BorrowedPrimes`]; [`Error::SwitchPlan`] when the stored key has no such digit either.
    pub fn require_input(&self, params: &Params, active: &IndexSet) -> Result<(), Error> {
        let (covered, stored) = (self.q(), self.shape());
        if active.without(&covered).is_empty() && active.intersection(&self.special).is_empty() {
            return Ok(());
        }
        if !active.without(&stored.q).is_empty() || !active.intersection(&stored.special).is_empty() {
            let (have, special) = (&stored.q, &stored.special);
            return Err(Error::switch_plan(format!(
                "this key switches primes {have:?} with the special primes {special:?}; the ciphertext is on {active:?}"
            )));
        }
        let borrowed = self.special.without(&stored.special).len();
        let (limbs, primes) = (active.len(), params.q().len());
        Err(Error::BorrowedPrimes { limbs, most: covered.len(), borrowed, primes })
    }
}
