//! Scaling between RNS bases with rounding: modulus switching, rescaling, and the scalings of BFV multiplication.
//!
//! One operation covers them all (ePrint 2023/1642 section 2.7, ePrint 2021/204 appendix E). With D the product of
//! the primes that leave, E of those that come in, f = numerator * E, and an error multiple t:
//!
//! ```text
//! x' = (f x - t [t^-1 f x]_D) / D  mod the new base,    [.]_D centred
//! ```
//!
//! This is f x / D rounded to the nearest integer that agrees with f x D^-1 modulo t.

use num_bigint::BigUint;

use crate::backend::{Backend, ConvertMode, Stage, View, ViewMut};
use crate::error::Error;
use crate::poly::{Coeff, Domain, Ntt, Poly};
use crate::ring::{IndexSet, Ring};
use crate::rns::{ConvertSpec, Overflow, inverse_residues};

/// What to scale: from which primes to which, by which public factor, and which multiples the rounding keeps.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScaleSpec {
    /// Primes before.
    pub from: IndexSet,
    /// Primes after.
    pub to: IndexSet,
    /// A public integer that multiplies the value first (1 for a modulus switch, t in BFV multiplication).
    pub numerator: BigUint,
    /// The error multiple t that the rounding preserves (1 for BFV and CKKS).
    pub multiple: BigUint,
    /// How the overflow is counted.
    pub overflow: Overflow,
}

/// The constants of a scaling: a conversion from the leaving primes to all of the new base, and a factor for each
/// prime that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleConstants {
    /// Primes that leave, D.
    pub leaving: IndexSet,
    /// Primes in both bases.
    pub staying: IndexSet,
    /// From `leaving` to `to`.
    pub convert: ConvertSpec,
    /// f / D modulo each staying prime.
    pub factors: Vec<u64>,
}

impl ScaleSpec {
    /// A plain modulus switch or rescale from `from` to `to`.
    #[must_use]
    pub fn switch(from: &IndexSet, to: &IndexSet, multiple: &BigUint) -> Self {
        Self {
            from: from.clone(),
            to: to.clone(),
            numerator: BigUint::from(1u32),
            multiple: multiple.clone(),
            overflow: Overflow::Round,
        }
    }

    /// Computes the constants.
    ///
    /// # Errors
    /// [`Error::NotInvertible`] when t shares a factor with a leaving prime.
    pub fn constants(&self, ring: &Ring) -> Result<ScaleConstants, Error> {
        let leaving = self.from.without(&self.to);
        let staying = self.to.intersection(&self.from);
        let coming = self.to.without(&self.from);
        let f = &self.numerator * ring.product(&coming);
        let d = ring.product(&leaving);
        let t_inverse = inverse_residues(ring, &leaving, &self.multiple)?;
        let times = |set: &IndexSet, a: &[u64], b: &[u64]| -> Vec<u64> {
            set.iter().zip(a).zip(b).map(|((i, &x), &y)| ring.modulus(i).mul(x, y)).collect()
        };
        let pre = times(&leaving, &ring.residues(&leaving, &f), &t_inverse);
        let d_inverse = inverse_residues(ring, &self.to, &d)?;
        let post = times(&self.to, &ring.residues(&self.to, &self.multiple), &d_inverse);
        let post: Vec<u64> = self.to.iter().zip(&post).map(|(i, &x)| ring.modulus(i).neg(x)).collect();
        let convert = ConvertSpec::new(ring, &leaving, &self.to, &pre, &post, self.overflow)?;
        let d_inverse = inverse_residues(ring, &staying, &d)?;
        let factors = times(&staying, &ring.residues(&staying, &f), &d_inverse);
        Ok(ScaleConstants { leaving, staying, convert, factors })
    }
}

/// A scaling prepared for a backend.
pub struct Scale<B: Backend> {
    spec: ScaleSpec,
    constants: ScaleConstants,
    conversion: Option<B::Conversion>,
    leaving_rows: Vec<usize>,
    staying_from: Vec<usize>,
    staying_to: Vec<usize>,
}

impl<B: Backend> Scale<B> {
    /// Prepares `spec` on `backend`.
    ///
    /// # Errors
    /// [`Error::NotInvertible`], or when the device fails.
    pub fn new(backend: &B, spec: ScaleSpec) -> Result<Self, Error> {
        let constants = spec.constants(backend.ring())?;
        let conversion = if constants.leaving.is_empty() {
            None
        } else {
            Some(backend.conversion(&constants.leaving, &spec.to, &constants.convert)?)
        };
        Ok(Self {
            leaving_rows: spec.from.rows(&constants.leaving)?,
            staying_from: spec.from.rows(&constants.staying)?,
            staying_to: spec.to.rows(&constants.staying)?,
            spec,
            constants,
            conversion,
        })
    }

    /// What this scaling does.
    #[must_use]
    pub const fn spec(&self) -> &ScaleSpec {
        &self.spec
    }

    /// The constants behind it.
    #[must_use]
    pub const fn constants(&self) -> &ScaleConstants {
        &self.constants
    }

    /// out += what the leaving primes contribute; `leaving` holds them alone.
    ///
    /// # Errors
    /// [`Error::PrimesDiffer`] when an operand is on other primes.
    pub fn leave_into(&self, backend: &B, leaving: &Poly<B, Coeff>, out: &mut Poly<B, Coeff>) -> Result<(), Error> {
        leaving.require(&self.constants.leaving)?;
        out.require(&self.spec.to)?;
        let Some(conversion) = &self.conversion else { return Ok(()) };
        let [from, to]: [Vec<usize>; 2] = [leaving.primes().len(), self.spec.to.len()].map(|n| (0..n).collect());
        let (src, dst) = (View::new(leaving.buffer(), &from), ViewMut::new(out.buffer_mut(), &to));
        Ok(backend.convert(conversion, src, dst, ConvertMode::Add)?)
    }

    /// What the leaving primes contribute: a new polynomial over the new base, from `x` whose `rows` hold them.
    fn leave(&self, backend: &B, x: &Poly<B, Coeff>, rows: &[usize]) -> Result<Poly<B, Coeff>, Error> {
        let Some(conversion) = &self.conversion else { return Poly::zero(backend, &self.spec.to) };
        let mut out = Poly::new(backend, &self.spec.to)?;
        let all: Vec<usize> = (0..self.spec.to.len()).collect();
        let (src, dst) = (View::new(x.buffer(), rows), ViewMut::new(out.buffer_mut(), &all));
        backend.convert(conversion, src, dst, ConvertMode::Replace)?;
        Ok(out)
    }

    /// out += f / D x on the staying primes.
    fn stay<D: Domain>(&self, backend: &B, x: &Poly<B, D>, out: &mut Poly<B, D>) -> Result<(), Error> {
        Ok(backend.mul_scalar_acc(
            self.constants.staying.as_slice(),
            View::new(x.buffer(), &self.staying_from),
            &self.constants.factors,
            ViewMut::new(out.buffer_mut(), &self.staying_to),
        )?)
    }

    /// Scales coefficients.
    ///
    /// # Errors
    /// [`Error::PrimesDiffer`] when `x` does not live on the primes this scaling starts from.
    pub fn apply(&self, backend: &B, x: &Poly<B, Coeff>) -> Result<Poly<B, Coeff>, Error> {
        x.require(&self.spec.from)?;
        let mut out = self.leave(backend, x, &self.leaving_rows)?;
        self.stay(backend, x, &mut out)?;
        Ok(out)
    }

    /// Scales slots: the leaving limbs go to coefficients, what they contribute comes back.
    ///
    /// # Errors
    /// [`Error::PrimesDiffer`] when `x` does not live on the primes this scaling starts from.
    pub fn apply_ntt(&self, backend: &B, x: &Poly<B, Ntt>) -> Result<Poly<B, Ntt>, Error> {
        x.require(&self.spec.from)?;
        let mut leaving = Poly::<B, Coeff>::new(backend, &self.constants.leaving)?;
        let rows: Vec<usize> = (0..leaving.primes().len()).collect();
        let (src, dst) = (View::new(x.buffer(), &self.leaving_rows), ViewMut::new(leaving.buffer_mut(), &rows));
        backend.stage(self.constants.leaving.as_slice(), Stage::NttInverseInto { src, dst })?;
        let mut out = self.leave(backend, &leaving, &rows)?.into_ntt(backend)?;
        self.stay(backend, x, &mut out)?;
        Ok(out)
    }
}
