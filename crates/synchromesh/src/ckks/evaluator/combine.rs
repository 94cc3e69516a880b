//! Sums of products and of weighted ciphertexts with one relinearisation and one rescale; CKKS as [`Arithmetic`].

use num_bigint::BigInt;
use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::ring::{Backend, IndexSet, Ntt, Poly, Threads};
use synchromesh_rlwe::{Noise, Operation};

use super::Evaluator;
use super::plain::{INTEGER_LIMIT, finite, modulus_above, rounded_multiple};
use crate::circuits::{Arithmetic, Coefficient, Combination, Cost, SizedSum, SlotShape, SumCounts};
use crate::ckks::beside::Beside;
use crate::ckks::ciphertext::Ciphertext;
use crate::ckks::noise::{self, Public};
use crate::embedding::Complex64;
use crate::error::{Error, Result};
use crate::rotations::Rotations;

/// The integer that a weight is, where it takes no level.
fn as_integer(weight: &Coefficient<Complex64>) -> Option<f64> {
    match weight {
        Coefficient::All(c) if c.im == 0.0 && c.re == c.re.trunc() && c.re.abs() <= INTEGER_LIMIT => Some(c.re),
        _ => None,
    }
}

/// A sum as it grows, at one level and one scale.
struct Accumulator<B: Backend> {
    parts: Vec<Poly<B, Ntt>>,
    noise: Noise,
    bound: f64,
    /// What is known beside the messages of the terms so far; none where one of them may be anywhere.
    beside: Option<Option<Beside>>,
}

impl<B: Backend> Accumulator<B> {
    fn add_beside(&mut self, term: Option<Beside>) {
        self.beside = Some(match self.beside.take() {
            None => term,
            Some(sum) => sum.zip(term).and_then(|(sum, term)| sum.plus(&term)),
        });
    }
}

impl<B: Backend> Evaluator<B> {
    /// sum_i a_i b_i + sum_j w_j x_j + c with one division at the end: by P and a level's primes after products, by a
    /// level's primes after weights that are no integers, by nothing otherwise. Automatic mode only.
    fn combination(&self, terms: &Combination<'_, Ciphertext<B>, Complex64>) -> Result<Ciphertext<B>> {
        if !self.auto() {
            return Err(Error::argument("circuits need scales that are managed automatically: mode auto"));
        }
        let Some(first) = terms.products.first().map(|[x, _]| *x).or(terms.weights.first().map(|(x, _)| *x)) else {
            return Err(Error::argument("a combination needs at least one term"));
        };
        let all: Vec<&Ciphertext<B>> =
            terms.products.iter().flatten().copied().chain(terms.weights.iter().map(|(x, _)| *x)).collect();
        for x in &all {
            self.require_related(x, first)?;
            x.inner().require_components(2)?;
        }
        let integral = terms.products.is_empty() && terms.weights.iter().all(|(_, w)| as_integer(w).is_some());
        let least = if integral { 0 } else { self.lowest() + 1 };
        let all = all.into_iter().map(|x| self.renew(x, least)).collect::<Result<Vec<_>>>()?;
        let from: Vec<_> = all.iter().map(|x| x.parent()).collect();
        let met = self.meet(&all)?;
        let key = met[0].inner().key();
        let operands = met.iter().map(|x| self.settle(x)).collect::<Result<Vec<_>>>()?;
        let level = operands.iter().map(|x| x.level()).min().unwrap_or(0);
        if !integral && level == 0 {
            return Err(self.no_level(1, 0));
        }
        let mut operands =
            operands.into_iter().map(|x| self.lowered(x, level)).collect::<Result<Vec<_>>>()?.into_iter();
        let primes = self.context.params().rlwe().level(level)?;
        let backend = self.context.rlwe().backend();
        let components = if terms.products.is_empty() { 2 } else { 3 };
        let zeros = (0..components).map(|_| Ok(Poly::zero(backend, primes)?)).collect::<Result<_>>()?;
        let mut sum = Accumulator { parts: zeros, noise: Noise::ZERO, bound: 0.0, beside: None };
        for _ in &terms.products {
            if let (Some(x), Some(y)) = (operands.next(), operands.next()) {
                self.add_product(&mut sum, &x, &y)?;
            }
        }
        for (x, (_, weight)) in operands.zip(&terms.weights) {
            self.add_weighted(&mut sum, &x, weight, integral)?;
        }
        let own = self.context.params().at(level)?;
        let scale = if integral { own.scale.clone() } else { own.square.clone() };
        let params = self.context.params().rlwe();
        let inner = rlwe::Ciphertext::new(params, sum.parts, level, key, sum.noise)?;
        let operation = if terms.products.is_empty() { Operation::Sum } else { Operation::Product };
        let mut out = self.finish(operation, &from, inner, sum.noise, scale, sum.bound)?;
        out = out.with_beside(sum.beside.flatten());
        match terms.constant.filter(|c| !c.is_zero()) {
            Some(Coefficient::All(c)) => out = self.add_scalar(&out, *c)?,
            Some(Coefficient::Slots(values)) => {
                out = self.add_plain(&out, &self.context.encode_complex(values, largest(values)?)?)?;
            }
            None => {}
        }
        match (terms.products.is_empty(), integral) {
            (false, _) => self.relinearize(&out),
            (true, false) => self.rescale(&out),
            (true, true) => self.settled(out),
        }
    }

    fn add_product(&self, sum: &mut Accumulator<B>, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<()> {
        let backend = self.context.rlwe().backend();
        let [a, b] = [x, y].map(|z| [0, 1].map(|i| &z.inner().parts()[i]));
        if let [first, middle, last] = &mut sum.parts[..] {
            Poly::tensor_acc(backend, a, b, [first, middle, last])?;
        }
        sum.noise = sum.noise.sum(noise::product(x.factor(), y.factor(), self.log_n(), std::ptr::eq(x, y)));
        sum.bound += x.bound() * y.bound();
        sum.add_beside(self.product_beside(x, y));
        Ok(())
    }

    /// What is known beside the message of a product: of the factor that is 0 in more slots.
    pub(super) fn product_beside(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Option<Beside> {
        let same = std::ptr::eq(x, y);
        let fewer = |b: &&Beside, other: Option<&Beside>| other.is_none_or(|other| b.held() <= other.held());
        match (x.beside().filter(|b| fewer(b, y.beside())), y.beside()) {
            (Some(b), _) if same => Some(b.with(noise::product(b.factor(), b.factor(), self.log_n(), true))),
            (Some(b), _) => Some(b.with(noise::product(b.factor(), y.factor(), self.log_n(), false))),
            (None, Some(b)) => Some(b.with(noise::product(x.factor(), b.factor(), self.log_n(), false))),
            (None, None) => None,
        }
    }

    fn add_weighted(
        &self,
        sum: &mut Accumulator<B>,
        x: &Ciphertext<B>,
        weight: &Coefficient<Complex64>,
        integral: bool,
    ) -> Result<()> {
        let (params, backend) = (self.context.params(), self.context.rlwe().backend());
        let level = params.at(x.level())?;
        let integer = as_integer(weight).filter(|_| integral);
        let (number, noise, size, beside) = match (integer, weight) {
            (Some(c), _) => {
                let times = |noise: Noise| noise.times(c.abs().log2());
                let beside = x.beside().map(|b| b.with(times(b.noise)));
                (Some(BigInt::from(c as i64)), times(x.inner().noise()), c.abs(), beside)
            }
            (None, Coefficient::All(c)) if c.im == 0.0 => {
                let c = finite(*c)?.re;
                let (number, error) = rounded_multiple(&level.scale, c)?;
                let size = level.log2 + c.abs().log2();
                let product = |z| noise::plain_product(z, Public::Scalar, size, error.log2(), self.log_n());
                (Some(number), product(x.factor()), c.abs(), x.beside().map(|b| b.with(product(b.factor()))))
            }
            (None, _) => {
                let values = match weight {
                    Coefficient::All(c) => vec![finite(*c)?; params.slots()],
                    Coefficient::Slots(values) => values.clone(),
                };
                let bound = largest(&values)?;
                let message = self.context.encode_complex(&values, bound)?;
                let (encoded, error) = self.context.factor(&message, x.level(), &level.scale)?;
                for (sum, part) in sum.parts.iter_mut().zip(x.inner().parts()) {
                    sum.mul_acc(backend, part, &encoded.poly)?;
                }
                let product = |size| noise::plain_product(x.factor(), Public::Vector, size, error, self.log_n());
                let beside = Beside::new(self.context.holding(&message)?, product(f64::NEG_INFINITY));
                (None, product(level.log2 + bound.log2()), bound, beside)
            }
        };
        if let Some(number) = number {
            let residues = self.residues(x.level(), &number)?;
            for (sum, part) in sum.parts.iter_mut().zip(x.inner().parts()) {
                sum.mul_scalar_acc(backend, part, &residues)?;
            }
        }
        sum.noise = sum.noise.plus(noise);
        sum.bound += x.bound() * size;
        sum.add_beside(beside);
        Ok(())
    }
}

/// A little more than the largest modulus, and more than 0.
pub(super) fn largest(values: &[Complex64]) -> Result<f64> {
    let mut most = 2f64.powi(-100);
    for &value in values {
        most = modulus_above(finite(value)?).max(most);
    }
    Ok(most)
}

impl<B: Backend> Arithmetic for Evaluator<B> {
    type Backend = B;
    type Ciphertext = Ciphertext<B>;
    type Scalar = Complex64;
    type Size = f64;
    const COST: Cost = Cost { tensor: 0.1, scalars_take_a_level: true };

    fn threads(&self) -> Threads {
        self.context.rlwe().backend().threads()
    }
    fn level(&self, x: &Ciphertext<B>) -> usize {
        x.level()
    }
    fn duplicate(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        x.duplicate(&self.context)
    }
    fn add(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        Self::add(self, x, y)
    }
    fn sub(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        Self::sub(self, x, y)
    }
    fn neg(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        Self::neg(self, x)
    }
    fn mul(&self, x: &Ciphertext<B>, y: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        Self::mul(self, x, y)
    }
    fn square(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        Self::square(self, x)
    }
    fn combine(&self, terms: &Combination<'_, Ciphertext<B>, Complex64>) -> Result<Ciphertext<B>> {
        self.combination(terms)
    }
    fn lowered(&self, x: &Ciphertext<B>, level: usize) -> Result<Option<Ciphertext<B>>> {
        if x.level() > level { Ok(Some(self.brought_to(x, level)?)) } else { Ok(None) }
    }
    fn bound(&self, x: &Ciphertext<B>) -> f64 {
        x.bound()
    }
    fn bounded(&self, x: Ciphertext<B>, bound: f64) -> Result<Ciphertext<B>> {
        self.declare_bound(x, bound)
    }
    fn deviated(&self, x: Ciphertext<B>, error: f64) -> Result<Ciphertext<B>> {
        self.declare_error(x, error)
    }
    fn exactly(&self, x: &Ciphertext<B>) -> Result<(Ciphertext<B>, f64)> {
        self.as_computed(x)
    }
    fn lowest_level(&self) -> usize {
        self.lowest()
    }
    fn renewed<'x>(&self, x: &'x Ciphertext<B>, level: usize) -> Result<&'x Ciphertext<B>> {
        self.renew(x, level)
    }
    fn refresh(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        Self::refresh(self, x)
    }
    fn summed(&self, x: &Ciphertext<B>, sum: Ciphertext<B>, counts: &SumCounts) -> Result<Ciphertext<B>> {
        self.sum_certified(x, sum, counts)
    }
    fn slots(&self) -> Result<SlotShape> {
        Ok(SlotShape { row: self.context.params().slots(), rows: 1 })
    }
    fn require_rotations(&self, steps: &Rotations) -> Result<()> {
        Self::require_rotations(self, steps)
    }
    fn rotate(&self, x: &Ciphertext<B>, k: i64) -> Result<Ciphertext<B>> {
        Self::rotate(self, x, k)
    }
    fn swap(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.conjugate(x)
    }
    fn at_level(&self, x: &Ciphertext<B>, level: usize) -> Result<Ciphertext<B>> {
        self.brought_to(x, level)
    }
    fn route(&self, k: i64) -> Vec<i64> {
        self.routes.as_ref().and_then(|routes| routes.route(k)).map_or_else(|| vec![k], <[i64]>::to_vec)
    }
    fn element(&self, k: i64) -> Result<usize> {
        Ok(self.context.galois_element(k))
    }
    fn extended(&self, level: usize) -> Result<(&rlwe::Context<B>, IndexSet)> {
        let context = self.context.rlwe();
        Ok((context, self.switching("rotation")?.extended(context, level)?))
    }
    fn factor(&self, values: &[Complex64], level: usize) -> Result<(Poly<B, Ntt>, f64)> {
        self.rotation_factor(values, level)
    }
    fn rotation_sum(&self, inputs: &[&Ciphertext<B>], sum: &SizedSum<B, f64>) -> Result<Ciphertext<B>> {
        self.sum_of_rotations(inputs, sum)
    }
}
