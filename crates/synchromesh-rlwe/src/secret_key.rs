//! The secret key: a ternary polynomial, and its slots on the device.

use synchromesh_ring::sampler::{Purpose, Seed, SmallPoly, sparse_ternary};
use synchromesh_ring::{Backend, Coeff, Cpu, IndexSet, Ntt, Poly, View, ViewMut, secrecy};
use zeroize::Zeroize;

use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::derived_key::Derived;
use crate::domain::SwitchDomain;
use crate::entropy;
use crate::error::Error;
use crate::params::{KeyOrigin, Params, hex};
use crate::randomness::Randomness;
use crate::spectrum;
pub use crate::wire::KeyId;

impl KeyId {
    /// Fails unless both are the same key.
    ///
    /// # Errors
    /// [`Error::KeysDiffer`].
    pub fn require(self, other: Self) -> Result<(), Error> {
        if self == other {
            return Ok(());
        }
        Err(Error::KeysDiffer { left: hex(&self.0), right: hex(&other.0) })
    }
}

/// A secret polynomial on the device, overwritten with zeros when dropped.
pub struct SecretPoly<B: Backend>(Poly<B, Ntt>);

impl<B: Backend> SecretPoly<B> {
    /// Takes charge of a polynomial.
    #[must_use]
    pub const fn new(poly: Poly<B, Ntt>) -> Self {
        Self(poly)
    }

    /// The slots.
    #[must_use]
    pub const fn poly(&self) -> &Poly<B, Ntt> {
        &self.0
    }

    /// Uniform modulo each of the primes, from fresh randomness.
    ///
    /// # Errors
    /// [`Error::Entropy`] without randomness, [`Error::Ring`] when the device fails.
    pub fn uniform(context: &Context<B>, primes: &IndexSet) -> Result<Self, Error> {
        let seed = entropy::seed()?;
        let mut drawn = Self(Poly::new(context.backend(), primes)?);
        for (row, prime) in primes.iter().enumerate() {
            let to = ViewMut::new(drawn.0.buffer_mut(), std::slice::from_ref(&row));
            context.backend().uniform(&[prime], &seed, Purpose::SecretKey, prime as u32, to)?;
        }
        Ok(drawn)
    }

    /// The slots, to write.
    pub(crate) const fn poly_mut(&mut self) -> &mut Poly<B, Ntt> {
        &mut self.0
    }
}

impl<B: Backend> Drop for SecretPoly<B> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The decrypted phase, overwritten with zeros when dropped.
pub struct Phase<B: Backend>(Poly<B, Coeff>);

impl<B: Backend> Phase<B> {
    /// Its coefficients.
    #[must_use]
    pub const fn poly(&self) -> &Poly<B, Coeff> {
        &self.0
    }
}

impl<B: Backend> Drop for Phase<B> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// A secret key. It has no `Debug` form and is zeroised on drop.
pub struct SecretKey<B: Backend = Cpu> {
    id: KeyId,
    params_digest: [u8; 32],
    small: SmallPoly,
    slots: SecretPoly<B>,
    /// Coefficients that are not 0, where that is known to all: of a sparse key.
    weight: Option<usize>,
    second: Option<Box<Self>>,
    sparse: Option<Box<Self>>,
}

impl<B: Backend> SecretKey<B> {
    /// Draws a new secret key.
    ///
    /// # Errors
    /// [`Error::Entropy`] without randomness, [`Error::Uneven`] when it gives no even secret, or when the device fails.
    pub fn generate(context: &Context<B>, randomness: &mut Randomness) -> Result<Self, Error> {
        let seed = randomness.next_seed()?;
        let mut id = [0; 16];
        id.copy_from_slice(&seed.derive("key id", 0).published().as_bytes()[..16]);
        let small = Self::even(context, |attempt| seed.derive("secret", attempt))?;
        Self::from_small(context, KeyId(id), small)
    }

    /// The first of the secrets from these seeds whose values at the roots of X^N + 1 are as even as certificates take
    /// them to be; nearly always the first one.
    fn even(context: &Context<B>, seed: impl Fn(u64) -> Seed) -> Result<SmallPoly, Error> {
        let params = context.params();
        let draw = |attempt| params.secret().sample(&seed(attempt), Purpose::SecretKey, 0, params.n());
        let even = spectrum::first_even(|secret| spectrum::is_even(params.ring().log_n(), secret), draw);
        even.ok_or(Error::Uneven { what: "no secret of this generator is" })
    }

    /// A secret key from its ternary coefficients.
    ///
    /// # Errors
    /// [`Error::Ring`] when there are not N of them, [`Error::Argument`] when one is not -1, 0 or 1, [`Error::Uneven`] for a
    /// secret that is less even at the roots of X^N + 1 than certificates take it to be, [`Error::Security`] when QP is too
    /// large for N.
    pub fn from_small(context: &Context<B>, id: KeyId, small: SmallPoly) -> Result<Self, Error> {
        // Without a branch on a coefficient: -1, 0, 1 are the words 0, 1, 2 once 1 is added.
        let outside = small.as_slice().iter().fold(false, |bad, &x| bad | (x.wrapping_add(1) as u64 > 2));
        if secrecy::reveal(outside) {
            return Err(Error::argument("a secret key's coefficients must be -1, 0 or 1"));
        }
        let (small, params) = (small.bounded(1), context.params());
        let mut key = Self::on(context, id, small, &params.keyed(), None)?;
        if let Some(second) = params.second() {
            let seed = Derived::Second.seed(key.small.as_slice());
            let again = |attempt| if attempt == 0 { seed.clone() } else { seed.derive("secret", attempt) };
            let small = Self::even(context, again)?;
            let second = Self::on(context, Derived::Second.id(id), small, &second.keyed(), None)?;
            key.second = Some(Box::new(second));
        }
        if let Some(sparse) = params.sparse() {
            let seed = Derived::Sparse.seed(key.small.as_slice());
            let small = sparse_ternary(&seed, Purpose::SecretKey, 0, params.n(), sparse.weight);
            let sparse = Self::on(context, Derived::Sparse.id(id), small, &sparse.keyed(), Some(sparse.weight))?;
            key.sparse = Some(Box::new(sparse));
        }
        Ok(key)
    }

    /// A ternary secret on the primes of its keys.
    fn on(
        context: &Context<B>,
        id: KeyId,
        small: SmallPoly,
        keyed: &IndexSet,
        weight: Option<usize>,
    ) -> Result<Self, Error> {
        let params = context.params();
        require_secure(params, weight, keyed)?;
        let poly = Poly::from_small(context.backend(), keyed, &small)?.into_ntt(context.backend())?;
        let slots = SecretPoly::new(poly);
        // Certificates under a bound on the key's norm ask for nothing else.
        let believed = matches!(params.key_origin(), KeyOrigin::Bounded(_));
        if !believed && !spectrum::is_even(params.ring().log_n(), small.as_slice()) {
            return Err(Error::Uneven { what: "the secret key is not" });
        }
        Ok(Self { id, params_digest: *params.digest(), small, slots, weight, second: None, sparse: None })
    }

    /// The second secret key, derived from this one, where the parameters have one.
    #[must_use]
    pub fn second(&self) -> Option<&Self> {
        self.second.as_deref()
    }

    /// The sparse secret key, derived from this one, where the parameters have one.
    #[must_use]
    pub fn sparse(&self) -> Option<&Self> {
        self.sparse.as_deref()
    }

    /// The secret key of this name: this one, or one derived from it.
    ///
    /// # Errors
    /// [`Error::KeysDiffer`] for any other.
    pub fn named(&self, id: KeyId) -> Result<&Self, Error> {
        let derived = [self.second(), self.sparse()].into_iter().flatten().find(|key| key.id == id);
        derived.map_or_else(|| self.id.require(id).map(|()| self), Ok)
    }

    /// Fails when a key under this one over `primes` would be less secure than the parameters demand.
    ///
    /// # Errors
    /// [`Error::Security`], and [`Error::Ring`] for an index outside the prime table.
    pub(crate) fn require_secure(&self, params: &Params, primes: &IndexSet) -> Result<(), Error> {
        require_secure(params, self.weight, primes)
    }

    /// Fails unless the key was made for these parameters: its slots mean nothing modulo other primes.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`].
    pub fn require_params(&self, params: &Params) -> Result<(), Error> {
        params.require_digest(&self.params_digest)
    }

    /// The key's name.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// The ternary coefficients, for writing the key to its file.
    #[must_use]
    pub const fn small(&self) -> &SmallPoly {
        &self.small
    }

    /// The slots over all of QP.
    #[must_use]
    pub const fn slots(&self) -> &SecretPoly<B> {
        &self.slots
    }

    /// A fresh seed's worth of a uniform polynomial and its product with s: used by every encryption under s.
    pub(crate) fn times(&self, context: &Context<B>, a: &Poly<B, Ntt>) -> Result<Poly<B, Ntt>, Error> {
        let backend = context.backend();
        let mut out = Poly::new(backend, a.primes())?;
        let rows: Vec<usize> = (0..a.primes().len()).collect();
        let secret_rows = self.slots.poly().primes().rows(a.primes())?;
        backend.mul_into(
            a.primes().as_slice(),
            View::new(a.buffer(), &rows),
            View::new(self.slots.poly().buffer(), &secret_rows),
            ViewMut::new(out.buffer_mut(), &rows),
        )?;
        Ok(out)
    }

    /// c_0 + c_1 s (+ c_2 s^2), by Horner's rule.
    ///
    /// # Errors
    /// [`Error::KeysDiffer`] or [`Error::ParamsDiffer`] for a ciphertext of another key or other parameters.
    pub fn phase<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        ciphertext: &Ciphertext<B, D>,
    ) -> Result<Phase<B>, Error> {
        self.require_params(context.params())?;
        context.params().require_digest(ciphertext.params_digest())?;
        let key = self.named(ciphertext.key())?;
        let backend = context.backend();
        let (constant, rest) = ciphertext.parts().split_first().ok_or(Error::Components { expected: 2, got: 0 })?;
        let rest = rest.iter().map(|part| D::to_ntt(backend, part)).collect::<Result<_, _>>()?;
        Ok(Phase(D::add_ntt_to_coeff(backend, key.horner(context, rest)?, constant)?))
    }

    /// The phase modulo some of the primes only: enough to know it when it is smaller than their product.
    ///
    /// # Errors
    /// As [`Self::phase`], and [`Error::Ring`] for a prime that the ciphertext lacks.
    pub fn phase_on<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        ciphertext: &Ciphertext<B, D>,
        primes: &IndexSet,
    ) -> Result<Phase<B>, Error> {
        self.require_params(context.params())?;
        context.params().require_digest(ciphertext.params_digest())?;
        let key = self.named(ciphertext.key())?;
        let backend = context.backend();
        let (constant, rest) = ciphertext.parts().split_first().ok_or(Error::Components { expected: 2, got: 0 })?;
        let slots = |part: &Poly<B, D>| D::restrict_to_ntt(backend, part, primes);
        let rest = rest.iter().map(slots).collect::<Result<_, _>>()?;
        let constant = constant.restrict(backend, primes)?;
        Ok(Phase(D::add_ntt_to_coeff(backend, key.horner(context, rest)?, &constant)?))
    }

    /// c_1 s (+ c_2 s^2 ..).
    fn horner(&self, context: &Context<B>, mut rest: Vec<Poly<B, Ntt>>) -> Result<Poly<B, Ntt>, Error> {
        let mut sum = rest.pop().ok_or(Error::Components { expected: 2, got: 1 })?;
        let public = rest.is_empty();
        while let Some(part) = rest.pop() {
            let mut next = self.times(context, &sum)?;
            next.add_assign(context.backend(), &part)?;
            sum.zeroize();
            sum = next;
        }
        let product = self.times(context, &sum)?;
        if !public {
            sum.zeroize();
        }
        Ok(product)
    }
}

fn require_secure(params: &Params, weight: Option<usize>, primes: &IndexSet) -> Result<(), Error> {
    match weight {
        Some(weight) => params.require_secure_sparse(weight, primes),
        None => params.require_secure(primes),
    }
}

/// A uniform polynomial in slots, expanded from a seed.
pub(crate) fn uniform<B: Backend>(
    context: &Context<B>,
    primes: &IndexSet,
    seed: &Seed,
    purpose: Purpose,
    digit: u32,
) -> Result<Poly<B, Ntt>, Error> {
    let mut a = Poly::new(context.backend(), primes)?;
    let rows: Vec<usize> = (0..primes.len()).collect();
    context.backend().uniform(primes.as_slice(), seed, purpose, digit, ViewMut::new(a.buffer_mut(), &rows))?;
    Ok(a)
}

/// t e in coefficients, for a small error e.
pub(crate) fn scaled_error<B: Backend>(
    context: &Context<B>,
    primes: &IndexSet,
    error: &SmallPoly,
) -> Result<Poly<B, Coeff>, Error> {
    let params = context.params();
    let mut e = Poly::from_small(context.backend(), primes, error)?;
    if params.error_multiple() != &num_bigint::BigUint::from(1u32) {
        let t = params.ring().residues(primes, params.error_multiple());
        e.mul_scalar_assign(context.backend(), &t)?;
    }
    Ok(e)
}
