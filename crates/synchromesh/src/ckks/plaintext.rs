//! A message: complex slots with a declared bound, encoded where and when an operation needs it.
//!
//! What an encoding looks like depends on the level and scale of the ciphertext it meets, so a [`Plaintext`] keeps the
//! values and remembers its last encoding in each domain: reusing one plaintext at one level encodes once.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use synchromesh_rlwe::ring::{Backend, Coeff, Cpu, Domain, Ntt, Poly};
use synchromesh_rlwe::secret_key::Phase;
use zeroize::Zeroizing;

use super::params::Params;
use super::scale::Scale;
use crate::embedding::Complex64;
use crate::error::Result;

/// An encoded polynomial, overwritten with zeros when dropped.
pub(crate) struct Encoded<B: Backend, D: Domain> {
    /// Of the parameters whose primes it is modulo.
    pub(crate) params_digest: [u8; 32],
    pub(crate) level: usize,
    pub(crate) scale: Scale,
    pub(crate) poly: Zeroizing<Poly<B, D>>,
    /// log2 of how far it is from the scaled message at any root, where that was measured.
    pub(crate) error: Option<f64>,
}

/// The last encoding in one domain.
pub(crate) struct Last<B: Backend, D: Domain>(Mutex<Option<Arc<Encoded<B, D>>>>);

impl<B: Backend, D: Domain> Default for Last<B, D> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<B: Backend, D: Domain> Last<B, D> {
    /// The encoding under these parameters for `level` and `scale`, made by `make` unless it is the last one, with its error
    /// if that is to be `measured`.
    pub(crate) fn get_or_make(
        &self,
        params: &Params,
        (level, scale): (usize, &Scale),
        measured: bool,
        make: impl FnOnce() -> Result<(Poly<B, D>, Option<f64>)>,
    ) -> Result<Arc<Encoded<B, D>>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let params_digest = *params.rlwe().digest();
        let same = |e: &Arc<Encoded<B, D>>| {
            let known = e.error.is_some() || !measured;
            e.params_digest == params_digest && e.level == level && e.scale == *scale && known
        };
        if let Some(found) = last.filter(same) {
            return Ok(found);
        }
        let (poly, error) = make()?;
        let made = Arc::new(Encoded { params_digest, level, scale: scale.clone(), poly: Zeroizing::new(poly), error });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&made));
        Ok(made)
    }
}

/// A decrypted phase, not yet decoded.
pub(crate) struct Decrypted<B: Backend> {
    /// Of the parameters whose primes the phase is modulo.
    pub(crate) params_digest: [u8; 32],
    pub(crate) phase: Phase<B>,
    pub(crate) scale: Scale,
}

/// A vector of N/2 complex numbers within a bound; zeroised on drop, without `Debug`.
///
/// One that was decrypted is secret in a further sense: its errors depend on the secret key and on every message that
/// entered it. Publishing decrypted values lets others solve for the key unless noise is added first (Li and
/// Micciancio, ePrint 2020/1533); keep them with the key's owner. Decoding takes variable time.
pub struct Plaintext<B: Backend = Cpu> {
    bound: f64,
    error: f64,
    pub(crate) decrypted: Option<Decrypted<B>>,
    pub(crate) values: OnceLock<Zeroizing<Vec<Complex64>>>,
    pub(crate) coefficients: Last<B, Coeff>,
    pub(crate) slots: Last<B, Ntt>,
}

impl<B: Backend> Plaintext<B> {
    /// A message given by its values, which the caller has checked against the bound.
    pub(crate) fn from_values(values: Zeroizing<Vec<Complex64>>, bound: f64) -> Self {
        Self {
            bound,
            error: 0.0,
            decrypted: None,
            values: OnceLock::from(values),
            coefficients: Last::default(),
            slots: Last::default(),
        }
    }

    /// A decrypted message within `bound`, known to within `error`.
    pub(crate) fn from_phase(decrypted: Decrypted<B>, bound: f64, error: f64) -> Self {
        Self {
            bound,
            error,
            decrypted: Some(decrypted),
            values: OnceLock::new(),
            coefficients: Last::default(),
            slots: Last::default(),
        }
    }

    /// Largest modulus of a slot.
    #[must_use]
    pub const fn bound(&self) -> f64 {
        self.bound
    }

    /// How far a decrypted slot may be from the message that was computed; 0 for an encoded one.
    #[must_use]
    pub const fn error_bound(&self) -> f64 {
        self.error
    }
}
