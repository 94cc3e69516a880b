//! Where the inner product of a key switch is computed: modulo QP, or in a ring R_E that holds it as an integer.

use num_bigint::BigUint;
use synchromesh_ring::IndexSet;
use synchromesh_ring::rns::{ConvertSpec, Overflow};

use crate::error::Error;
use crate::params::Params;
use crate::switch_plan::{DigitSizes, SwitchPlan};

/// The ring of the inner product.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ProductRing {
    /// Modulo QP, digit by digit of the ciphertext (single decomposition).
    Base,
    /// In R_E, with a second decomposition of the key (double decomposition; ePrint 2023/413, ePrint 2023/1642
    /// sections 2.8 and 4).
    Extended(ExtendedRing),
}

/// A second decomposition of the key and the ring R_E in which digits are multiplied.
///
/// For each digit m of the key, sum_j d_j \[k_j\]_m is an integer polynomial below E / 2; it is computed modulo the
/// primes of E and taken centred, then reduced modulo the primes of digit m. No key at rest lives modulo E.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ExtendedRing {
    /// Digit m of the key is the integer modulo the product of these primes; together they are those of QP, or, for
    /// use at lower levels only, some of them.
    pub key_digits: Vec<IndexSet>,
    /// The primes of E; any of the prime table, those of QP too.
    pub aux: IndexSet,
    /// How overflows are counted on the way from E to QP, which must be exact: `Round`, `HpsRound` or `Behz`.
    pub overflow: Overflow,
    /// Whether E is checked to be large enough.
    pub bound: AuxBound,
}

/// Whether prod E > 2 |sum_j d_j k_j| is demanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuxBound {
    /// A plan whose E is too small is refused.
    Checked,
    /// Any E: results are wrong where it is too small. Only for reproducing published parameters.
    Unchecked,
}

impl ExtendedRing {
    /// Fails unless the key digits share primes of `keyed` and the conversion from E is exact.
    pub(crate) fn require_shape(&self, params: &Params, keyed: &IndexSet) -> Result<(), Error> {
        let together: Vec<usize> = self.key_digits.iter().flat_map(IndexSet::iter).collect();
        let distinct = together.iter().enumerate().all(|(r, i)| keyed.contains(*i) && !together[..r].contains(i));
        if !distinct || self.key_digits.iter().any(IndexSet::is_empty) {
            return Err(Error::switch_plan(format!("key digits {:?} must share primes of {keyed:?}", self.key_digits)));
        }
        if !matches!(self.overflow, Overflow::Round | Overflow::HpsRound | Overflow::Behz) {
            return Err(Error::switch_plan(format!(
                "results of R_E are taken centred; {:?} is not exact",
                self.overflow
            )));
        }
        let have = params.ring().moduli().len();
        let distinct = self.aux.iter().enumerate().all(|(r, i)| i < have && self.aux.position(i) == Some(r));
        if self.aux.is_empty() || !distinct {
            return Err(Error::switch_plan(format!(
                "E = {:?} must be distinct primes of the {have} there are",
                self.aux
            )));
        }
        Ok(())
    }

    /// The digits of the key that hold active primes, with their number.
    pub(crate) fn active_digits(&self, extended: &IndexSet) -> Vec<(usize, IndexSet)> {
        let own = self.key_digits.iter().map(|d| extended.intersection(d));
        own.enumerate().filter(|(_, d)| !d.is_empty()).collect()
    }

    /// The exact conversion from E to `to`.
    pub(crate) fn way_out(&self, params: &Params, to: &IndexSet) -> Result<ConvertSpec, Error> {
        let ones = |set: &IndexSet| vec![1; set.len()];
        Ok(ConvertSpec::new(params.ring(), &self.aux, to, &ones(&self.aux), &ones(to), self.overflow)?)
    }

    /// How many inner products of `plan` on the primes `active` may be summed in R_E: the largest c with
    /// 2 c N sum_j max|d_j| max_m max|k_m| < E. Longer sums leave R_E in between.
    #[must_use]
    pub fn capacity(&self, params: &Params, plan: &SwitchPlan, active: &IndexSet) -> u64 {
        let (need, have) = (bound(params, plan, &self.key_digits, active), params.ring().product(&self.aux));
        u64::try_from(have / need).unwrap_or(u64::MAX)
    }

    /// Fails when a prime of QP on `active` is in no digit of the key, or E cannot hold one inner product.
    fn require_capacity(&self, params: &Params, plan: &SwitchPlan, active: &IndexSet) -> Result<(), Error> {
        let missing = self.key_digits.iter().fold(active.union(&plan.special), |left, d| left.without(d));
        if !missing.is_empty() {
            return Err(Error::switch_plan(format!("no digit of the key holds the primes {missing:?}")));
        }
        if self.bound == AuxBound::Unchecked || self.capacity(params, plan, active) > 0 {
            return Ok(());
        }
        Err(too_few(params, plan, &self.key_digits, &self.aux, active))
    }
}

/// Twice the largest coefficient of sum_j d_j \[k_j\]_m: 2 N sum_j max|d_j| max_m max|k_m|, and 2^-20 of it more for
/// representatives near the boundary. ePrint 2023/1642, section 4.2, and section V of the linear method, with the
/// number of digits, the sign and ceilings in it.
fn bound(params: &Params, plan: &SwitchPlan, key_digits: &[IndexSet], active: &IndexSet) -> BigUint {
    let extended = active.union(&plan.special);
    let reached = key_digits.iter().filter(|d| !d.intersection(&extended).is_empty());
    let key = reached.map(|d| params.ring().product(d)).max().unwrap_or_default();
    let digits: BigUint = plan.rows(params, active).iter().map(|row| row.twice_bound(params, plan)).sum();
    // Twice the digits' bound times twice the key's, a quarter and then twice.
    let twice = digits * key * params.n() / 2u32;
    &twice + (&twice >> 20) + 1u32
}

fn too_few(params: &Params, plan: &SwitchPlan, key_digits: &[IndexSet], aux: &IndexSet, active: &IndexSet) -> Error {
    let bits = |x: &BigUint| x.bits() as u32;
    Error::AuxPrimes {
        have: aux.len(),
        have_bits: bits(&params.ring().product(aux)),
        need_bits: bits(&bound(params, plan, key_digits, active)) + 1,
        omega: plan.active_digits(active).len(),
        omega2: key_digits.len(),
        nearest: nearest(params, plan, key_digits.len(), aux, active),
    }
}

/// The (omega, omega2) next to those of `plan`, in the sum of differences, for which `aux` is large enough.
fn nearest(
    params: &Params,
    plan: &SwitchPlan,
    omega2: usize,
    aux: &IndexSet,
    active: &IndexSet,
) -> Option<(usize, usize)> {
    let (l, keyed) = (active.len(), active.union(&plan.special));
    let (have, from) = (params.ring().product(aux), plan.active_digits(active).len());
    let omegas = if plan.radix_bits.is_some() { l..=l } else { 1..=l };
    let mut all: Vec<(usize, usize)> = omegas.flat_map(|w| (1..=keyed.len()).map(move |w2| (w, w2))).collect();
    all.sort_by_key(|&(w, w2)| w.abs_diff(from) + w2.abs_diff(omega2));
    let equal = |count, primes: &IndexSet| {
        let digits = DigitSizes::equal(primes.len(), count).and_then(|sizes| sizes.split(primes)).unwrap_or_default();
        Some(digits).filter(|digits| digits.len() == count)
    };
    all.into_iter().find(|&(omega, omega2)| {
        let (Some(digits), Some(groups)) = (equal(omega, active), equal(omega2, &keyed)) else { return false };
        bound(params, &SwitchPlan { digits, ..plan.clone() }, &groups, active) <= have
    })
}

impl SwitchPlan {
    /// The same plan in an extended ring with `omega2` digits of the key, of ceil((l + k) / omega2) primes each, and
    /// as few primes in E as the bound allows: auxiliary primes first, then those of P, then those of q.
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] unless 1 <= omega2 <= l + k; [`Error::AuxPrimes`] when all primes together are too few.
    pub fn in_extended_ring(self, params: &Params, omega2: usize) -> Result<Self, Error> {
        let active: IndexSet = self.digits.iter().flat_map(IndexSet::iter).collect();
        self.in_extended_ring_at(params, &active, omega2)
    }

    /// As [`Self::in_extended_ring`], for the ciphertext primes `active` and fewer only: the key at rest is the same,
    /// its prepared form and E are smaller.
    ///
    /// # Errors
    /// As [`Self::in_extended_ring`].
    pub fn in_extended_ring_at(mut self, params: &Params, active: &IndexSet, omega2: usize) -> Result<Self, Error> {
        let keyed = active.union(&self.special);
        let key_digits = DigitSizes::equal(keyed.len(), omega2)?.split(&keyed)?;
        let candidates = params.aux().union(params.p()).union(params.q());
        let need = bound(params, &self, &key_digits, active);
        let mut have = BigUint::from(1u32);
        let enough = candidates.iter().position(|i| {
            have *= params.ring().modulus(i).value();
            have >= need
        });
        let Some(last) = enough else {
            return Err(too_few(params, &self, &key_digits, &candidates, active));
        };
        let aux = candidates.iter().take(last + 1).collect();
        let ring = ExtendedRing { key_digits, aux, overflow: Overflow::Round, bound: AuxBound::Checked };
        self.ring = ProductRing::Extended(ring);
        Ok(self)
    }

    /// Fails when the inner product of a switch on the primes `active` does not fit the plan's ring.
    ///
    /// # Errors
    /// [`Error::AuxPrimes`]; [`Error::SwitchPlan`] when the ring is made for fewer primes.
    pub fn require_capacity(&self, params: &Params, active: &IndexSet) -> Result<(), Error> {
        match &self.ring {
            ProductRing::Base => Ok(()),
            ProductRing::Extended(ring) => ring.require_capacity(params, self, active),
        }
    }

    /// The same plan with exactly these primes of E, unchecked: results are wrong where they are too few. For
    /// reproducing published parameters.
    #[must_use]
    pub fn with_unchecked_aux(mut self, primes: IndexSet) -> Self {
        if let ProductRing::Extended(ring) = &mut self.ring {
            ring.aux = primes;
            ring.bound = AuxBound::Unchecked;
        }
        self
    }

    /// Double decomposition with `omega` digits of the ciphertext and `omega2` of the key (ePrint 2023/1642,
    /// section 2.8).
    ///
    /// # Errors
    /// As [`Self::hybrid`] and [`Self::in_extended_ring`].
    pub fn double(params: &Params, omega: usize, omega2: usize) -> Result<Self, Error> {
        Self::hybrid(params, omega)?.in_extended_ring(params, omega2)
    }

    /// Linear key switching: one prime in every digit of the ciphertext and of the key, and the first `alpha` special
    /// primes.
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] with fewer special primes than `alpha`; as [`Self::in_extended_ring`].
    pub fn linear(params: &Params, alpha: usize) -> Result<Self, Error> {
        let special: IndexSet = params.p().iter().take(alpha).collect();
        if special.len() < alpha {
            return Err(Error::switch_plan(format!(
                "alpha = {alpha}, and there are {} special primes",
                params.p().len()
            )));
        }
        let l = params.q().len();
        Self::hybrid(params, l)?.with_special(special).in_extended_ring(params, l + alpha)
    }
}
