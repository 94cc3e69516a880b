//! The ring: degree N and one ordered table of primes; everything else names primes by their index in it.

use std::sync::Arc;

use num_bigint::BigUint;

use crate::error::Error;
use crate::modulus::Modulus;
use crate::prime::is_prime;

/// Degree N = 2^log_n and the ordered prime table of Z_Q\[X\]/(X^N+1).
///
/// Every modulus is a proven prime of 20 to 61 bits with q = 1 mod 2N, and stands in the table once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ring {
    log_n: u32,
    moduli: Vec<Modulus>,
}

impl Ring {
    /// Checks and builds a ring.
    ///
    /// # Errors
    /// [`Error::Degree`], [`Error::Modulus`] or [`Error::Repeated`].
    pub fn new(log_n: u32, primes: &[u64]) -> Result<Self, Error> {
        if !(10..=18).contains(&log_n) {
            return Err(Error::Degree { log_n });
        }
        let mut moduli = Vec::with_capacity(primes.len());
        for (i, &value) in primes.iter().enumerate() {
            let reject = |reason: &str| Error::Modulus { value, reason: reason.to_owned() };
            if !(1 << 19..1 << 61).contains(&value) {
                return Err(reject("it must have 20 to 61 bits"));
            }
            if value % (2 << log_n) != 1 {
                return Err(reject(&format!("it must be 1 mod 2N = {}", 2u64 << log_n)));
            }
            if !is_prime(value) {
                return Err(reject("it is not prime"));
            }
            if primes[..i].contains(&value) {
                return Err(Error::Repeated { value });
            }
            moduli.push(Modulus::new(value).map_err(|e| reject(&e.to_string()))?);
        }
        Ok(Self { log_n, moduli })
    }

    /// log2 of the degree.
    #[must_use]
    pub const fn log_n(&self) -> u32 {
        self.log_n
    }

    /// The degree N.
    #[must_use]
    pub const fn n(&self) -> usize {
        1 << self.log_n
    }

    /// The prime table.
    #[must_use]
    pub fn moduli(&self) -> &[Modulus] {
        &self.moduli
    }

    /// The modulus at `index`.
    #[must_use]
    pub fn modulus(&self, index: usize) -> Modulus {
        self.moduli[index]
    }

    /// The product of the primes of `set`.
    #[must_use]
    pub fn product(&self, set: &IndexSet) -> BigUint {
        set.iter().map(|i| BigUint::from(self.moduli[i].value())).product()
    }

    /// log2 of the product of the primes of `set`, in bits.
    #[must_use]
    pub fn log2(&self, set: &IndexSet) -> f64 {
        set.iter().map(|i| (self.moduli[i].value() as f64).log2()).sum()
    }

    /// The residue of `x` modulo each prime of `set`, in its order.
    #[must_use]
    pub fn residues(&self, set: &IndexSet, x: &BigUint) -> Vec<u64> {
        set.iter()
            .map(|i| {
                let r = x % self.moduli[i].value();
                r.iter_u64_digits().next().unwrap_or(0)
            })
            .collect()
    }
}

/// An ordered set of indices into a ring's prime table; limb r of a polynomial belongs to the r-th index.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexSet(Arc<[usize]>);

impl std::fmt::Debug for IndexSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl FromIterator<usize> for IndexSet {
    fn from_iter<T: IntoIterator<Item = usize>>(iter: T) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl IndexSet {
    /// The empty set.
    #[must_use]
    pub fn empty() -> Self {
        Self(Arc::from([]))
    }

    /// The indices in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = usize> + DoubleEndedIterator + '_ {
        self.0.iter().copied()
    }

    /// The indices in order.
    #[must_use]
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }

    /// Number of primes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether prime `index` is in the set.
    #[must_use]
    pub fn contains(&self, index: usize) -> bool {
        self.0.contains(&index)
    }

    /// The limb that belongs to prime `index`.
    #[must_use]
    pub fn position(&self, index: usize) -> Option<usize> {
        self.0.iter().position(|&i| i == index)
    }

    /// The primes of `self`, then those of `other` that are new.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.iter().chain(other.iter().filter(|&i| !self.contains(i))).collect()
    }

    /// The primes of `self` that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.iter().filter(|&i| !other.contains(i)).collect()
    }

    /// The primes of `self` that are in `other` too.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.iter().filter(|&i| other.contains(i)).collect()
    }

    /// For each prime of `of`, its limb in `self`.
    ///
    /// # Errors
    /// [`Error::NoSuchPrime`] when one is missing.
    pub fn rows(&self, of: &Self) -> Result<Vec<usize>, Error> {
        of.iter()
            .map(|i| self.position(i).ok_or_else(|| Error::NoSuchPrime { index: i, have: self.0.to_vec() }))
            .collect()
    }
}
