//! A polynomial in RNS form whose domain and device are types.

use std::marker::PhantomData;

use num_bigint::BigUint;
use zeroize::{Zeroize, Zeroizing};

use crate::backend::{Backend, SignedWidth, Stage, TensorMode, View, ViewMut};
use crate::error::Error;
use crate::ring::IndexSet;
use crate::sampler::SmallPoly;
use crate::secrecy;

mod sealed {
    pub trait Sealed {}
}

/// Which representation a polynomial is in.
pub trait Domain: sealed::Sealed + Send + Sync + 'static {
    /// Whether it holds slots.
    const NTT: bool;
    /// The domain's name in messages and files.
    const NAME: &'static str;
}

/// Coefficients of 1, X, .., X^(N-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coeff {}
/// Values at the odd powers of psi, in the ring's slot order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ntt {}

impl sealed::Sealed for Coeff {}
impl sealed::Sealed for Ntt {}
impl Domain for Coeff {
    const NTT: bool = false;
    const NAME: &'static str = "coeff";
}
impl Domain for Ntt {
    const NTT: bool = true;
    const NAME: &'static str = "ntt";
}

/// A polynomial over the primes of an [`IndexSet`], one row of N residues each, in \[0, q).
///
/// Two polynomials in different domains do not add:
/// ```compile_fail
/// use synchromesh_ring::{Coeff, Cpu, Ntt, Poly};
/// fn mixed(cpu: &Cpu, a: &mut Poly<Cpu, Coeff>, b: &Poly<Cpu, Ntt>) {
///     a.add_assign(cpu, b).unwrap();
/// }
/// ```
pub struct Poly<B: Backend, D: Domain> {
    buffer: B::Buffer,
    primes: IndexSet,
    domain: PhantomData<D>,
}

impl<B: Backend, D: Domain> Poly<B, D> {
    /// A polynomial with unspecified contents.
    ///
    /// # Errors
    /// When the device has no memory left.
    pub fn new(backend: &B, primes: &IndexSet) -> Result<Self, Error> {
        let have = backend.ring().moduli().len();
        if let Some(index) = primes.iter().find(|&i| i >= have) {
            return Err(Error::NoSuchPrime { index, have: (0..have).collect() });
        }
        Ok(Self { buffer: backend.alloc(primes.len())?, primes: primes.clone(), domain: PhantomData })
    }

    /// The zero polynomial.
    ///
    /// # Errors
    /// When the device has no memory left.
    pub fn zero(backend: &B, primes: &IndexSet) -> Result<Self, Error> {
        let mut out = Self::new(backend, primes)?;
        out.buffer.zeroize();
        Ok(out)
    }

    /// A polynomial from its residues, limb after limb.
    ///
    /// # Errors
    /// [`Error::Length`] when there are not N residues for each prime.
    pub fn from_words(backend: &B, primes: &IndexSet, words: &[u64]) -> Result<Self, Error> {
        let expected = primes.len() * backend.ring().n();
        if words.len() != expected {
            return Err(Error::Length { expected, got: words.len() });
        }
        let mut out = Self::new(backend, primes)?;
        backend.upload(words, &mut out.buffer, 0)?;
        Ok(out)
    }

    /// The residues, limb after limb.
    ///
    /// # Errors
    /// When the device fails.
    pub fn to_words(&self, backend: &B) -> Result<Vec<u64>, Error> {
        let mut words = vec![0; self.primes.len() * backend.ring().n()];
        backend.download(&self.buffer, 0, &mut words)?;
        Ok(words)
    }

    /// A copy.
    ///
    /// # Errors
    /// When the device has no memory left.
    pub fn duplicate(&self, backend: &B) -> Result<Self, Error> {
        self.restrict(backend, &self.primes)
    }

    /// The same on another device for the same ring.
    ///
    /// # Errors
    /// When a device fails or has no memory left.
    pub fn transfer<To: Backend>(&self, from: &B, to: &To) -> Result<Poly<To, D>, Error> {
        let mut words = self.to_words(from)?;
        let made = Poly::from_words(to, &self.primes, &words);
        words.zeroize();
        made
    }

    /// The same integers modulo fewer primes.
    ///
    /// # Errors
    /// [`Error::NoSuchPrime`] when `primes` asks for one this polynomial lacks.
    pub fn restrict(&self, backend: &B, primes: &IndexSet) -> Result<Self, Error> {
        let rows = self.primes.rows(primes)?;
        let mut out = Self::new(backend, primes)?;
        let all: Vec<usize> = (0..rows.len()).collect();
        backend.copy(View::new(&self.buffer, &rows), ViewMut::new(&mut out.buffer, &all))?;
        Ok(out)
    }

    /// The primes, in limb order.
    #[must_use]
    pub const fn primes(&self) -> &IndexSet {
        &self.primes
    }

    /// The memory, row r holding limb r.
    #[must_use]
    pub const fn buffer(&self) -> &B::Buffer {
        &self.buffer
    }

    /// The memory, row r holding limb r.
    pub const fn buffer_mut(&mut self) -> &mut B::Buffer {
        &mut self.buffer
    }

    /// Fails unless this polynomial lives on exactly `primes`.
    ///
    /// # Errors
    /// [`Error::PrimesDiffer`].
    pub fn require(&self, primes: &IndexSet) -> Result<(), Error> {
        if &self.primes == primes {
            return Ok(());
        }
        Err(Error::PrimesDiffer { left: self.primes.as_slice().to_vec(), right: primes.as_slice().to_vec() })
    }

    fn all_rows(&self) -> Vec<usize> {
        (0..self.primes.len()).collect()
    }

    /// self + other, in one pass.
    ///
    /// # Errors
    /// [`Error::PrimesDiffer`], or when the device has no memory left.
    pub fn sum(&self, backend: &B, other: &Self) -> Result<Self, Error> {
        self.require(&other.primes)?;
        let mut out = Self::new(backend, &self.primes)?;
        let rows = self.all_rows();
        let xs = vec![View::new(&self.buffer, &rows), View::new(&other.buffer, &rows)];
        let sum = Stage::SumInto { xs, scalars: None, g: 1, out: ViewMut::new(&mut out.buffer, &rows) };
        backend.stage(self.primes.as_slice(), sum)?;
        Ok(out)
    }

    /// self += other.
    ///
    /// # Errors
    /// [`Error::PrimesDiffer`].
    pub fn add_assign(&mut self, backend: &B, other: &Self) -> Result<(), Error> {
        self.require(&other.primes)?;
        let rows = self.all_rows();
        let (x, y) = (ViewMut::new(&mut self.buffer, &rows), View::new(&other.buffer, &rows));
        Ok(backend.add_assign(self.primes.as_slice(), x, y)?)
    }

    /// self -= other.
    ///
    /// # Errors
    /// [`Error::PrimesDiffer`].
    pub fn sub_assign(&mut self, backend: &B, other: &Self) -> Result<(), Error> {
        self.require(&other.primes)?;
        let rows = self.all_rows();
        let (x, y) = (ViewMut::new(&mut self.buffer, &rows), View::new(&other.buffer, &rows));
        Ok(backend.sub_assign(self.primes.as_slice(), x, y)?)
    }

    /// self = -self.
    ///
    /// # Errors
    /// When the device fails.
    pub fn neg_assign(&mut self, backend: &B) -> Result<(), Error> {
        let rows = self.all_rows();
        Ok(backend.neg_assign(self.primes.as_slice(), ViewMut::new(&mut self.buffer, &rows))?)
    }

    /// self *= the integer whose residues are `scalars`, one a limb.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn mul_scalar_assign(&mut self, backend: &B, scalars: &[u64]) -> Result<(), Error> {
        if scalars.len() != self.primes.len() {
            return Err(Error::Length { expected: self.primes.len(), got: scalars.len() });
        }
        let rows = self.all_rows();
        let x = ViewMut::new(&mut self.buffer, &rows);
        Ok(backend.mul_scalar_assign(self.primes.as_slice(), x, scalars)?)
    }

    /// self += c x, c the integer whose residues are `scalars`, one a limb.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::PrimesDiffer`].
    pub fn mul_scalar_acc(&mut self, backend: &B, x: &Self, scalars: &[u64]) -> Result<(), Error> {
        self.require(&x.primes)?;
        if scalars.len() != self.primes.len() {
            return Err(Error::Length { expected: self.primes.len(), got: scalars.len() });
        }
        let rows = self.all_rows();
        let (x, out) = (View::new(&x.buffer, &rows), ViewMut::new(&mut self.buffer, &rows));
        Ok(backend.mul_scalar_acc(self.primes.as_slice(), x, scalars, out)?)
    }

    /// self(X^g), g odd and below 2N.
    ///
    /// # Errors
    /// [`Error::GaloisElement`].
    pub fn automorphism(&self, backend: &B, g: usize) -> Result<Self, Error> {
        let two_n = 2 * backend.ring().n();
        if g.is_multiple_of(2) || g >= two_n {
            return Err(Error::GaloisElement { element: g, two_n });
        }
        let mut out = Self::new(backend, &self.primes)?;
        let rows = self.all_rows();
        let (x, y) = (View::new(&self.buffer, &rows), ViewMut::new(&mut out.buffer, &rows));
        if D::NTT {
            backend.automorphism_ntt(g, x, y)?;
        } else {
            backend.automorphism_coeff(self.primes.as_slice(), g, x, y)?;
        }
        Ok(out)
    }

    fn recast<E: Domain>(self) -> Poly<B, E> {
        Poly { buffer: self.buffer, primes: self.primes, domain: PhantomData }
    }
}

impl<B: Backend, D: Domain> Zeroize for Poly<B, D> {
    fn zeroize(&mut self) {
        self.buffer.zeroize();
    }
}

impl<B: Backend> Poly<B, Coeff> {
    /// The polynomial with small signed coefficients `values` (N of them); constant time in the values.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn from_signed(backend: &B, primes: &IndexSet, values: &[i64]) -> Result<Self, Error> {
        Self::from_bounded(backend, primes, values, u64::MAX)
    }

    /// The same of coefficients of magnitude at most `bound`, which is public: a device with memory of its own is sent no
    /// more bytes than that takes.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Magnitude`].
    pub fn from_bounded(backend: &B, primes: &IndexSet, values: &[i64], bound: u64) -> Result<Self, Error> {
        let (n, width) = (backend.ring().n(), SignedWidth::of(bound));
        if values.len() != n {
            return Err(Error::Length { expected: n, got: values.len() });
        }
        if !secrecy::reveal(width.holds(values)) {
            return Err(Error::Magnitude { bound, bytes: width.bytes() });
        }
        let mut out = Self::new(backend, primes)?;
        let rows = out.all_rows();
        backend.reduce_signed(primes.as_slice(), values, width, ViewMut::new(&mut out.buffer, &rows))?;
        Ok(out)
    }

    /// The same of a drawn polynomial.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn from_small(backend: &B, primes: &IndexSet, small: &SmallPoly) -> Result<Self, Error> {
        Self::from_bounded(backend, primes, small.as_slice(), small.bound())
    }

    /// The polynomial with the coefficients sum_k 2^(`bits` k) `parts[k][i]`, of words each; constant time in the parts. What
    /// it goes through is wiped.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn from_parts<P: AsRef<[i64]>>(backend: &B, primes: &IndexSet, parts: &[P], bits: u32) -> Result<Self, Error> {
        let Some((top, lower)) = parts.split_last() else {
            return Err(Error::Length { expected: backend.ring().n(), got: 0 });
        };
        let power = backend.ring().residues(primes, &(BigUint::from(1u8) << bits));
        let mut sum = Self::from_signed(backend, primes, top.as_ref())?;
        for part in lower.iter().rev() {
            sum.mul_scalar_assign(backend, &power)?;
            let part = Zeroizing::new(Self::from_signed(backend, primes, part.as_ref())?);
            sum.add_assign(backend, &part)?;
        }
        Ok(sum)
    }

    /// The same rows taken for slots, by a caller that has transformed them row by row.
    #[must_use]
    pub fn assume_ntt(self) -> Poly<B, Ntt> {
        self.recast()
    }

    /// To slots.
    ///
    /// # Errors
    /// When the device fails.
    pub fn into_ntt(mut self, backend: &B) -> Result<Poly<B, Ntt>, Error> {
        let rows = self.all_rows();
        backend.ntt_forward(self.primes.as_slice(), ViewMut::new(&mut self.buffer, &rows))?;
        Ok(self.recast())
    }
}

impl<B: Backend> Poly<B, Ntt> {
    /// The same rows taken for coefficients, by a caller that has transformed them row by row.
    #[must_use]
    pub fn assume_coeff(self) -> Poly<B, Coeff> {
        self.recast()
    }

    /// To coefficients.
    ///
    /// # Errors
    /// When the device fails.
    pub fn into_coeff(mut self, backend: &B) -> Result<Poly<B, Coeff>, Error> {
        let rows = self.all_rows();
        backend.ntt_inverse(self.primes.as_slice(), ViewMut::new(&mut self.buffer, &rows))?;
        Ok(self.recast())
    }

    /// self * other.
    ///
    /// # Errors
    /// [`Error::PrimesDiffer`].
    pub fn mul(&self, backend: &B, other: &Self) -> Result<Self, Error> {
        self.require(&other.primes)?;
        let mut out = Self::new(backend, &self.primes)?;
        let rows = self.all_rows();
        let (a, b) = (View::new(&self.buffer, &rows), View::new(&other.buffer, &rows));
        backend.mul_into(self.primes.as_slice(), a, b, ViewMut::new(&mut out.buffer, &rows))?;
        Ok(out)
    }

    /// (a_0 b_0, a_0 b_1 + a_1 b_0, a_1 b_1): the product of two ciphertexts of two components.
    ///
    /// # Errors
    /// [`Error::PrimesDiffer`].
    pub fn tensor(backend: &B, a: [&Self; 2], b: [&Self; 2]) -> Result<[Self; 3], Error> {
        let one = || Self::new(backend, &a[0].primes);
        let mut out = [one()?, one()?, one()?];
        Self::tensor_into(backend, a, b, out.each_mut(), false)?;
        Ok(out)
    }

    /// Adds [`Self::tensor`] of a and b to `out`.
    ///
    /// # Errors
    /// [`Error::PrimesDiffer`].
    pub fn tensor_acc(backend: &B, a: [&Self; 2], b: [&Self; 2], out: [&mut Self; 3]) -> Result<(), Error> {
        Self::tensor_into(backend, a, b, out, true)
    }

    fn tensor_into(
        backend: &B,
        a: [&Self; 2],
        b: [&Self; 2],
        out: [&mut Self; 3],
        accumulate: bool,
    ) -> Result<(), Error> {
        let primes = out[0].primes.clone();
        a.into_iter().chain(b).try_for_each(|x| x.require(&primes))?;
        out.iter().try_for_each(|x| x.require(&primes))?;
        let rows = out[0].all_rows();
        let [a, b] = [a, b].map(|x| x.map(|poly| View::new(&poly.buffer, &rows)));
        let out = out.map(|poly| ViewMut::new(&mut poly.buffer, &rows));
        let mode = TensorMode { slots: true, accumulate, finish: [false; 3] };
        Ok(backend.stage(primes.as_slice(), Stage::Tensor { a, b, out, mode })?)
    }

    /// self += a * b.
    ///
    /// # Errors
    /// [`Error::PrimesDiffer`].
    pub fn mul_acc(&mut self, backend: &B, a: &Self, b: &Self) -> Result<(), Error> {
        self.require(&a.primes)?;
        self.require(&b.primes)?;
        let rows = self.all_rows();
        let (a, b) = (View::new(&a.buffer, &rows), View::new(&b.buffer, &rows));
        Ok(backend.mul_acc(self.primes.as_slice(), a, b, ViewMut::new(&mut self.buffer, &rows))?)
    }
}
