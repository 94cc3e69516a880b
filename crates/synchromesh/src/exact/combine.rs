//! Sums of weighted ciphertexts with one relinearisation; the exact schemes as [`Arithmetic`].

use num_bigint::{BigInt, BigUint};
use num_traits::One;
use synchromesh_rlwe::noise::Noise;
use synchromesh_rlwe::ring::{Backend, IndexSet, Ntt, Poly, Threads};
use synchromesh_rlwe::{Context, Operation, SwitchDomain};

use super::context::Secret;
use super::integers::{centred, log2_biguint, residue};
use super::plaintext::Norms;
use super::{Ciphertext, Evaluator, Plaintext, Scheme, lift, signed_residues};
use crate::circuits::{Arithmetic, Coefficient, Combination, Cost, Run, SizedSum, SlotShape};
use crate::error::{Error, Result};
use crate::rotations::Rotations;

/// A weight as it is multiplied: an integer, or a polynomial in slots with its norms.
enum Weight<B: Backend> {
    Integer(BigInt),
    Poly(Secret<Poly<B, Ntt>>, Norms),
}

/// A weighted sum as it grows: its components in the resting domain, and what is still in slots.
struct Accumulator<S: Scheme, B: Backend> {
    resting: Vec<Option<Poly<B, S::Domain>>>,
    slots: Vec<Option<Poly<B, Ntt>>>,
    noise: Noise,
}

impl<S: Scheme, B: Backend> Evaluator<S, B> {
    /// A public coefficient as a plaintext whose norms may be known.
    fn plaintext(&self, coefficient: &Coefficient<BigInt>) -> Result<Plaintext> {
        let context = self.context();
        Ok(match coefficient {
            Coefficient::All(c) => context.encode_coefficients(std::slice::from_ref(c))?,
            Coefficient::Slots(values) => context.encode(values)?,
        }
        .with_public_norms())
    }

    /// A weight times the unit mod t that brings its term to the sum's header.
    fn weight(&self, coefficient: &Coefficient<BigInt>, unit: &BigUint, level: usize) -> Result<Weight<B>> {
        let (params, backend) = (self.context().params(), self.context().backend());
        let t = params.t().value();
        match coefficient {
            Coefficient::All(c) => Ok(Weight::Integer(centred(&residue(&(c * BigInt::from(unit.clone())), t), t))),
            Coefficient::Slots(_) => {
                let plaintext = self.plaintext(coefficient)?;
                let poly = lift(backend, params.rlwe().level(level)?, plaintext.poly(), unit)?.into_ntt(backend)?;
                // A unit other than 1 moves the coefficients anywhere in +-t/2.
                let norms =
                    if unit.is_one() { plaintext.norms() } else { Plaintext::from(plaintext.poly().clone()).norms() };
                Ok(Weight::Poly(Secret(poly), norms))
            }
        }
    }

    fn accumulate(&self, sum: &mut Accumulator<S, B>, x: &Ciphertext<S, B>, weight: &Weight<B>) -> Result<()> {
        let (params, backend) = (self.context().params(), self.context().backend());
        let primes = params.rlwe().level(x.level())?;
        for (i, part) in x.inner().parts().iter().enumerate() {
            match weight {
                Weight::Integer(c) => {
                    let residues = signed_residues(params.rlwe().ring(), primes, c);
                    match &mut sum.resting[i] {
                        Some(sum) if c.is_one() => sum.add_assign(backend, part)?,
                        Some(sum) => sum.mul_scalar_acc(backend, part, &residues)?,
                        empty => {
                            let mut product = part.duplicate(backend)?;
                            if !c.is_one() {
                                product.mul_scalar_assign(backend, &residues)?;
                            }
                            *empty = Some(product);
                        }
                    }
                }
                Weight::Poly(poly, _) => {
                    let part = S::Domain::to_ntt(backend, part)?;
                    match &mut sum.slots[i] {
                        Some(sum) => sum.mul_acc(backend, &part, &poly.0)?,
                        None => sum.slots[i] = Some(part.mul(backend, &poly.0)?),
                    }
                }
            }
        }
        let term = match weight {
            Weight::Integer(c) => {
                let size = log2_biguint(c.magnitude());
                x.noise().times(size).plus(S::product_noise(size))
            }
            Weight::Poly(_, norms) => super::evaluator::times_known::<S>(x.noise(), params.log_n(), *norms),
        };
        sum.noise = sum.noise.sum(term).plus(S::sum_noise());
        Ok(())
    }

    /// sum_j w_j x_j for ciphertexts of two or three components.
    ///
    /// # Errors
    /// [`Error::Argument`] for an empty list, [`synchromesh_rlwe::Error::KeysDiffer`],
    /// [`synchromesh_rlwe::Error::ParamsDiffer`], a plaintext's errors for a weight of slots, or a noise error.
    pub fn weighted_sum(&self, terms: &[(&Ciphertext<S, B>, &Coefficient<BigInt>)]) -> Result<Ciphertext<S, B>> {
        let (params, backend) = (self.context().params(), self.context().backend());
        for (x, _) in terms {
            self.require(x)?;
        }
        let met = self.meet(terms.iter().map(|(x, _)| *x))?;
        let Some(key) = met.first().map(|first| first.inner().key()) else {
            return Err(Error::argument("a weighted sum needs at least one term"));
        };
        let t = params.t().value();
        let constant = |c: &Coefficient<BigInt>| match c {
            Coefficient::All(c) => Some(centred(&residue(c, t), t)),
            Coefficient::Slots(_) => None,
        };
        let list: Vec<_> = met.iter().zip(terms).map(|(x, (_, c))| (&**x, constant(c))).collect();
        let (header, equal) = S::equalise(self.context(), &list)?;
        let level = equal.first().map_or(0, |(x, _)| x.level());
        let parts = terms.iter().map(|(x, _)| x.components()).max().unwrap_or(2);
        let mut sum = Accumulator {
            resting: (0..parts).map(|_| None).collect(),
            slots: (0..parts).map(|_| None).collect(),
            noise: Noise::ZERO,
        };
        for ((x, unit), (_, c)) in equal.iter().zip(terms) {
            let weight = self.weight(c, unit, level)?;
            self.accumulate(&mut sum, x, &weight)?;
        }
        let mut out = Vec::with_capacity(parts);
        for (resting, slots) in sum.resting.into_iter().zip(sum.slots) {
            let slots = slots.map(|s| S::Domain::from_ntt(backend, s)).transpose()?;
            out.push(match (resting, slots) {
                (Some(mut a), Some(b)) => {
                    a.add_assign(backend, &b)?;
                    a
                }
                (Some(a), None) | (None, Some(a)) => a,
                (None, None) => Poly::zero(backend, params.rlwe().level(level)?)?,
            });
        }
        let inner = synchromesh_rlwe::Ciphertext::new(params.rlwe(), out, level, key, sum.noise)?;
        self.settled(Ciphertext::new(inner, header).certified(self.context(), Operation::Sum)?)
    }
}

impl<S: Scheme, B: Backend> Arithmetic for Evaluator<S, B> {
    type Backend = B;
    type Ciphertext = Ciphertext<S, B>;
    type Scalar = BigInt;
    type Size = Norms;
    const COST: Cost = Cost { tensor: if S::SECOND_BASE { 0.65 } else { 0.15 }, scalars_take_a_level: false };

    fn threads(&self) -> Threads {
        self.context().rlwe().backend().threads()
    }
    fn level(&self, x: &Ciphertext<S, B>) -> usize {
        x.level()
    }
    fn duplicate(&self, x: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        x.duplicate(self.context())
    }
    fn add(&self, x: &Ciphertext<S, B>, y: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        Self::add(self, x, y)
    }
    fn sub(&self, x: &Ciphertext<S, B>, y: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        Self::sub(self, x, y)
    }
    fn neg(&self, x: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        Self::neg(self, x)
    }
    fn mul(&self, x: &Ciphertext<S, B>, y: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        Self::mul(self, x, y)
    }
    fn square(&self, x: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        Self::square(self, x)
    }
    fn combine(&self, terms: &Combination<'_, Ciphertext<S, B>, BigInt>) -> Result<Ciphertext<S, B>> {
        let mut sum = if terms.products.is_empty() {
            self.weighted_sum(&terms.weights)?
        } else {
            let products = self.sum_of_products_no_relin(&terms.products)?;
            if terms.weights.is_empty() {
                products
            } else {
                let one = Coefficient::All(BigInt::one());
                let weights = terms.weights.iter().copied();
                self.weighted_sum(&std::iter::once((&products, &one)).chain(weights).collect::<Vec<_>>())?
            }
        };
        if let Some(constant) = terms.constant.filter(|c| !c.is_zero()) {
            sum = self.add_plain(&sum, &self.plaintext(constant)?)?;
        }
        if sum.components() == 3 { self.relinearize(&sum) } else { Ok(sum) }
    }
    fn refresh(&self, x: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        Self::refresh(self, x)
    }
    fn with_room<'x>(
        &self,
        x: &[&'x Ciphertext<S, B>],
        run: &Run<'_, 'x, Ciphertext<S, B>>,
    ) -> Result<Ciphertext<S, B>> {
        self.with_room_for(x, run)
    }
    fn lowered(&self, _: &Ciphertext<S, B>, _: usize) -> Result<Option<Ciphertext<S, B>>> {
        Ok(None)
    }
    fn bound(&self, _: &Ciphertext<S, B>) -> f64 {
        f64::INFINITY
    }
    fn bounded(&self, x: Ciphertext<S, B>, _: f64) -> Result<Ciphertext<S, B>> {
        Ok(x)
    }
    fn slots(&self) -> Result<SlotShape> {
        self.context().slot_encoder()?;
        Ok(SlotShape { row: self.context().params().n() / 2, rows: 2 })
    }
    fn require_rotations(&self, steps: &Rotations) -> Result<()> {
        Self::require_rotations(self, steps)
    }
    fn rotate(&self, x: &Ciphertext<S, B>, k: i64) -> Result<Ciphertext<S, B>> {
        self.rotate_rows(x, k)
    }
    fn swap(&self, x: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        self.rotate_columns(x)
    }
    fn at_level(&self, x: &Ciphertext<S, B>, level: usize) -> Result<Ciphertext<S, B>> {
        self.mod_switch_to(x, level)
    }
    fn route(&self, k: i64) -> Vec<i64> {
        self.routes.as_ref().and_then(|routes| routes.route(k)).map_or_else(|| vec![k], <[i64]>::to_vec)
    }
    fn element(&self, k: i64) -> Result<usize> {
        self.context().galois_element(k)
    }
    fn extended(&self, level: usize) -> Result<(&Context<B>, IndexSet)> {
        let context = self.context().rlwe();
        Ok((context, self.switching("rotation")?.extended(context, level)?))
    }
    fn factor(&self, values: &[BigInt], level: usize) -> Result<(Poly<B, Ntt>, Norms)> {
        self.rotation_factor(values, level)
    }
    fn rotation_sum(&self, inputs: &[&Ciphertext<S, B>], sum: &SizedSum<B, Norms>) -> Result<Ciphertext<S, B>> {
        self.sum_of_rotations(inputs, sum)
    }
}
