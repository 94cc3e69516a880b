//! The two domains as a key switch sees them: inputs and outputs in coefficients, slots, or mixed prime by prime.

use synchromesh_ring::{Backend, Coeff, Domain, IndexSet, Ntt, Poly};

use crate::error::Error;

/// A polynomial given to a key switch: all in one domain, or some primes in each.
pub enum Operand<'a, B: Backend> {
    /// Coefficients.
    Coeff(&'a Poly<B, Coeff>),
    /// Slots.
    Ntt(&'a Poly<B, Ntt>),
    /// Some primes in coefficients, the others in slots.
    Mixed(&'a MixedPoly<B>),
}

impl<B: Backend> Clone for Operand<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for Operand<'_, B> {}

impl<'a, B: Backend> Operand<'a, B> {
    /// The part in coefficients.
    #[must_use]
    pub const fn coeff(&self) -> Option<&'a Poly<B, Coeff>> {
        match self {
            Self::Coeff(p) => Some(p),
            Self::Ntt(_) => None,
            Self::Mixed(m) => Some(&m.coeff),
        }
    }

    /// The part in slots.
    #[must_use]
    pub const fn ntt(&self) -> Option<&'a Poly<B, Ntt>> {
        match self {
            Self::Coeff(_) => None,
            Self::Ntt(p) => Some(p),
            Self::Mixed(m) => Some(&m.ntt),
        }
    }

    /// Fails unless the parts together are exactly `primes`.
    pub(crate) fn require(&self, primes: &IndexSet) -> Result<(), Error> {
        let [coeff, ntt] = [self.coeff().map(Poly::primes), self.ntt().map(Poly::primes)];
        let have = |i| coeff.is_some_and(|p| p.contains(i)) != ntt.is_some_and(|p| p.contains(i));
        let count = coeff.map_or(0, IndexSet::len) + ntt.map_or(0, IndexSet::len);
        if count == primes.len() && primes.iter().all(have) {
            return Ok(());
        }
        let left = coeff.into_iter().chain(ntt).flat_map(IndexSet::iter).collect();
        Err(synchromesh_ring::Error::PrimesDiffer { left, right: primes.as_slice().to_vec() }.into())
    }
}

/// A polynomial with some primes in coefficients and the others in slots (ePrint 2023/1642, section 6.1).
pub struct MixedPoly<B: Backend> {
    /// The limbs in coefficients.
    pub coeff: Poly<B, Coeff>,
    /// The limbs in slots.
    pub ntt: Poly<B, Ntt>,
}

/// A ciphertext's domain: how its polynomials enter and leave a key switch.
pub trait SwitchDomain: Domain + Sized {
    /// As the input of a key switch.
    fn operand<B: Backend>(poly: &Poly<B, Self>) -> Operand<'_, B>;
    /// Which of `primes` leave a key switch as slots.
    fn ntt_primes(primes: &IndexSet) -> IndexSet;
    /// The result of a key switch that left all primes in this domain.
    fn take<B: Backend>(result: MixedPoly<B>) -> Poly<B, Self>;
    /// From coefficients.
    ///
    /// # Errors
    /// When the device fails.
    fn from_coeff<B: Backend>(backend: &B, poly: Poly<B, Coeff>) -> Result<Poly<B, Self>, Error>;
    /// From slots.
    ///
    /// # Errors
    /// When the device fails.
    fn from_ntt<B: Backend>(backend: &B, poly: Poly<B, Ntt>) -> Result<Poly<B, Self>, Error>;
    /// A copy in slots.
    ///
    /// # Errors
    /// When the device fails.
    fn to_ntt<B: Backend>(backend: &B, poly: &Poly<B, Self>) -> Result<Poly<B, Ntt>, Error>;
    /// A copy in slots, of some primes only.
    ///
    /// # Errors
    /// [`Error::Ring`] for a prime that `poly` lacks.
    fn restrict_to_ntt<B: Backend>(backend: &B, poly: &Poly<B, Self>, primes: &IndexSet)
    -> Result<Poly<B, Ntt>, Error>;
    /// A copy in coefficients.
    ///
    /// # Errors
    /// When the device fails.
    fn to_coeff<B: Backend>(backend: &B, poly: &Poly<B, Self>) -> Result<Poly<B, Coeff>, Error>;
    /// x + y in coefficients, with the fewest transforms.
    ///
    /// # Errors
    /// When the device fails.
    fn add_ntt_to_coeff<B: Backend>(backend: &B, x: Poly<B, Ntt>, y: &Poly<B, Self>) -> Result<Poly<B, Coeff>, Error>;
    /// A scaling between bases in this domain.
    ///
    /// # Errors
    /// When the device fails.
    fn scale<B: Backend>(
        backend: &B,
        scale: &synchromesh_ring::scale::Scale<B>,
        poly: &Poly<B, Self>,
    ) -> Result<Poly<B, Self>, Error>;
}

impl SwitchDomain for Coeff {
    fn operand<B: Backend>(poly: &Poly<B, Self>) -> Operand<'_, B> {
        Operand::Coeff(poly)
    }
    fn ntt_primes(_: &IndexSet) -> IndexSet {
        IndexSet::empty()
    }
    fn take<B: Backend>(result: MixedPoly<B>) -> Poly<B, Self> {
        result.coeff
    }
    fn from_coeff<B: Backend>(_: &B, poly: Poly<B, Coeff>) -> Result<Poly<B, Self>, Error> {
        Ok(poly)
    }
    fn from_ntt<B: Backend>(backend: &B, poly: Poly<B, Ntt>) -> Result<Poly<B, Self>, Error> {
        Ok(poly.into_coeff(backend)?)
    }
    fn to_ntt<B: Backend>(backend: &B, poly: &Poly<B, Self>) -> Result<Poly<B, Ntt>, Error> {
        Ok(poly.duplicate(backend)?.into_ntt(backend)?)
    }
    fn restrict_to_ntt<B: Backend>(
        backend: &B,
        poly: &Poly<B, Self>,
        primes: &IndexSet,
    ) -> Result<Poly<B, Ntt>, Error> {
        Ok(poly.restrict(backend, primes)?.into_ntt(backend)?)
    }
    fn to_coeff<B: Backend>(backend: &B, poly: &Poly<B, Self>) -> Result<Poly<B, Coeff>, Error> {
        Ok(poly.duplicate(backend)?)
    }
    fn add_ntt_to_coeff<B: Backend>(backend: &B, x: Poly<B, Ntt>, y: &Poly<B, Self>) -> Result<Poly<B, Coeff>, Error> {
        let mut x = x.into_coeff(backend)?;
        x.add_assign(backend, y)?;
        Ok(x)
    }
    fn scale<B: Backend>(
        backend: &B,
        scale: &synchromesh_ring::scale::Scale<B>,
        poly: &Poly<B, Self>,
    ) -> Result<Poly<B, Self>, Error> {
        Ok(scale.apply(backend, poly)?)
    }
}

impl SwitchDomain for Ntt {
    fn operand<B: Backend>(poly: &Poly<B, Self>) -> Operand<'_, B> {
        Operand::Ntt(poly)
    }
    fn ntt_primes(primes: &IndexSet) -> IndexSet {
        primes.clone()
    }
    fn take<B: Backend>(result: MixedPoly<B>) -> Poly<B, Self> {
        result.ntt
    }
    fn from_coeff<B: Backend>(backend: &B, poly: Poly<B, Coeff>) -> Result<Poly<B, Self>, Error> {
        Ok(poly.into_ntt(backend)?)
    }
    fn from_ntt<B: Backend>(_: &B, poly: Poly<B, Ntt>) -> Result<Poly<B, Self>, Error> {
        Ok(poly)
    }
    fn to_ntt<B: Backend>(backend: &B, poly: &Poly<B, Self>) -> Result<Poly<B, Ntt>, Error> {
        Ok(poly.duplicate(backend)?)
    }
    fn restrict_to_ntt<B: Backend>(
        backend: &B,
        poly: &Poly<B, Self>,
        primes: &IndexSet,
    ) -> Result<Poly<B, Ntt>, Error> {
        Ok(poly.restrict(backend, primes)?)
    }
    fn to_coeff<B: Backend>(backend: &B, poly: &Poly<B, Self>) -> Result<Poly<B, Coeff>, Error> {
        Ok(poly.duplicate(backend)?.into_coeff(backend)?)
    }
    fn add_ntt_to_coeff<B: Backend>(
        backend: &B,
        mut x: Poly<B, Ntt>,
        y: &Poly<B, Self>,
    ) -> Result<Poly<B, Coeff>, Error> {
        x.add_assign(backend, y)?;
        Ok(x.into_coeff(backend)?)
    }
    fn scale<B: Backend>(
        backend: &B,
        scale: &synchromesh_ring::scale::Scale<B>,
        poly: &Poly<B, Self>,
    ) -> Result<Poly<B, Self>, Error> {
        Ok(scale.apply_ntt(backend, poly)?)
    }
}
