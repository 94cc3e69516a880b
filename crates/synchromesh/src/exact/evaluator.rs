//! Operations on ciphertexts of an exact scheme; every result is certified or refused.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::Zero;
use synchromesh_rlwe::noise::{Average, Noise};
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::ring::{Backend, Cpu, Ntt, Poly};
use synchromesh_rlwe::{EvaluationKeys, Operand as DomainOperand, Operation, SwitchDomain};

use super::context::Secret;
use super::integers::{centred, log2_biguint, residue};
use super::plaintext::Norms;
use super::refreshing::Refresher;
use super::{Ciphertext, Context, Plaintext, Scheme, lift, signed_residues};
use crate::error::{Error, Result};
use crate::rotations::Rotations;
use crate::rotations::Routes;

/// Evaluates on ciphertexts of the scheme S; shared between threads.
///
/// Operands at different levels are brought to the lower one. Every method fails with
/// [`synchromesh_rlwe::Error::Noise`] when its result could decrypt wrongly.
pub struct Evaluator<S: Scheme, B: Backend = Cpu> {
    pub(super) context: Arc<Context<S, B>>,
    pub(super) switching: Option<KeySwitching<B>>,
    pub(super) variant: S::Variant,
    pub(super) routes: Option<Arc<Routes>>,
    pub(super) refresher: Option<Arc<Refresher<S, B>>>,
}

impl<S: Scheme, B: Backend> Clone for Evaluator<S, B> {
    fn clone(&self) -> Self {
        let (context, switching) = (Arc::clone(&self.context), self.switching.clone());
        let (routes, refresher) = (self.routes.clone(), self.refresher.clone());
        Self { context, switching, variant: self.variant, routes, refresher }
    }
}

impl<S: Scheme, B: Backend> Evaluator<S, B> {
    /// An evaluator; without keys it neither relinearises nor rotates.
    #[must_use]
    pub fn new(context: &Arc<Context<S, B>>, keys: Option<Arc<EvaluationKeys<B>>>) -> Self {
        let second = context.params().second_plan().cloned();
        let switching = keys.map(|keys| KeySwitching::new(keys, context.params().plans().clone()).with_second(second));
        Self { context: Arc::clone(context), switching, variant: S::Variant::default(), routes: None, refresher: None }
    }

    /// An evaluator like this one, with these keys.
    #[must_use]
    pub fn with_keys(&self, keys: Arc<EvaluationKeys<B>>) -> Self {
        let Self { switching, .. } = Self::new(&self.context, Some(keys));
        let refresher = self.refresher.as_ref().map(|refresher| refresher.with_keys());
        Self { switching, refresher, ..self.clone() }
    }

    /// The same evaluator with rotations composed from fewer keys, as a plan says.
    #[must_use]
    pub fn with_routes(self, routes: Option<Arc<Routes>>) -> Self {
        Self { routes, ..self }
    }

    /// The same evaluator with another way of multiplying.
    #[must_use]
    pub fn with_variant(self, variant: S::Variant) -> Self {
        Self { variant, ..self }
    }

    /// How products are computed.
    #[must_use]
    pub const fn variant(&self) -> S::Variant {
        self.variant
    }

    /// The context.
    #[must_use]
    pub const fn context(&self) -> &Arc<Context<S, B>> {
        &self.context
    }

    pub(crate) const fn keys(&self) -> Option<&KeySwitching<B>> {
        self.switching.as_ref()
    }

    pub(crate) fn switching(&self, operation: &'static str) -> Result<&KeySwitching<B>> {
        self.switching.as_ref().ok_or(Error::NoKeys { operation })
    }

    fn sum(&self, a: &Ciphertext<S, B>, b: &Ciphertext<S, B>, subtract: bool) -> Result<Ciphertext<S, B>> {
        self.require(a)?;
        self.require(b)?;
        let twice = std::ptr::eq(a, b) && !subtract;
        let met = self.meet([a, b].into_iter())?;
        let [a, b] = S::align(&self.context, &met[0], &met[1])?;
        let doubled = twice.then(|| a.noise().doubled());
        let sum = a.plus(&self.context, &b, subtract)?;
        let sum = match doubled {
            Some(noise) => sum.with_estimates(noise.estimates),
            None => sum,
        };
        self.settled(sum.with_more_noise(S::sum_noise()).certified(&self.context, Operation::Sum)?)
    }

    /// a + b.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::KeysDiffer`] or [`synchromesh_rlwe::Error::ParamsDiffer`] for operands that do not
    /// belong together, or a noise error.
    pub fn add(&self, a: &Ciphertext<S, B>, b: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        self.sum(a, b, false)
    }

    /// a - b.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn sub(&self, a: &Ciphertext<S, B>, b: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        self.sum(a, b, true)
    }

    /// -a.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::ParamsDiffer`], or when the device fails.
    pub fn neg(&self, a: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        self.require(a)?;
        let mut negated = a.duplicate(&self.context)?;
        negated.inner_mut().neg_assign(self.context.rlwe())?;
        Ok(negated)
    }

    fn sum_plain(&self, a: &Ciphertext<S, B>, b: &Plaintext, subtract: bool) -> Result<Ciphertext<S, B>> {
        self.require(a)?;
        self.context.require_plaintext(b)?;
        let backend = self.context.backend();
        let (message, noise) = S::message(&self.context, b.poly(), a.level(), a.header())?;
        let mut message = Secret(S::Domain::from_coeff(backend, message)?);
        if subtract {
            message.0.neg_assign(backend)?;
        }
        let mut sum = a.duplicate(&self.context)?;
        sum.inner_mut().add_constant_assign(self.context.rlwe(), &message.0)?;
        sum.with_more_noise(noise.plus(S::sum_noise())).certified(&self.context, Operation::PlainSum)
    }

    /// a + b for a plaintext b.
    ///
    /// # Errors
    /// [`Error::PlainModulusDiffers`] or [`Error::Degree`] for a plaintext of other parameters, or a noise error.
    pub fn add_plain(&self, a: &Ciphertext<S, B>, b: &Plaintext) -> Result<Ciphertext<S, B>> {
        self.sum_plain(a, b, false)
    }

    /// a - b for a plaintext b.
    ///
    /// # Errors
    /// As [`Self::add_plain`].
    pub fn sub_plain(&self, a: &Ciphertext<S, B>, b: &Plaintext) -> Result<Ciphertext<S, B>> {
        self.sum_plain(a, b, true)
    }

    /// a b for a plaintext b.
    ///
    /// # Errors
    /// As [`Self::add_plain`].
    pub fn mul_plain(&self, a: &Ciphertext<S, B>, b: &Plaintext) -> Result<Ciphertext<S, B>> {
        self.require(a)?;
        self.context.require_plaintext(b)?;
        let (params, backend) = (self.context.params(), self.context.backend());
        let primes = params.rlwe().level(a.level())?;
        let factor = Secret(lift(backend, primes, b.poly(), &1u32.into())?.into_ntt(backend)?);
        let multiply = |part| multiply::<S, B>(backend, part, &factor.0);
        let parts = a.inner().parts().iter().map(multiply).collect::<Result<_>>()?;
        let noise = self.times_plaintext(a.noise(), b);
        let inner = synchromesh_rlwe::Ciphertext::new(params.rlwe(), parts, a.level(), a.inner().key(), noise)?;
        Ciphertext::new(inner, a.header().clone()).certified(&self.context, Operation::PlainProduct)
    }

    /// The error after a product with a plaintext, of public norms or of any coefficients.
    pub(super) fn times_plaintext(&self, noise: Noise, plaintext: &Plaintext) -> Noise {
        let (log_n, norms) = (self.context.params().log_n(), plaintext.norms());
        let product = match plaintext.has_public_norms() {
            true => return times_known::<S>(noise, log_n, norms),
            false => noise.times_message(log_n, norms.norm1 - f64::from(log_n)),
        };
        product.plus(wraps::<S>(Norms { norm2: norms.norm2 - 3f64.log2() / 2.0, ..norms }))
    }

    /// c a for a public integer c, taken mod t.
    ///
    /// # Errors
    /// A noise error, or [`synchromesh_rlwe::Error::ParamsDiffer`].
    pub fn mul_scalar(&self, a: &Ciphertext<S, B>, c: impl Into<BigInt>) -> Result<Ciphertext<S, B>> {
        self.require(a)?;
        let params = self.context.params();
        let c = centred(&residue(&c.into(), params.t().value()), params.t().value());
        let size = if c.is_zero() { f64::NEG_INFINITY } else { log2_biguint(c.magnitude()) };
        let product = times_integer(&self.context, a, &c)?;
        let noise = a.noise().times(size).plus(S::product_noise(size));
        Ciphertext::new(product.assume_noise(noise), a.header().clone())
            .certified(&self.context, Operation::NumberProduct)
    }

    /// a b: the tensor product, relinearised; levels are managed automatically.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Components`] unless both operands have two components, [`Error::NoKeys`] or
    /// [`synchromesh_rlwe::Error::MissingKey`] without a relinearisation key, or a noise error.
    pub fn mul(&self, a: &Ciphertext<S, B>, b: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        self.sum_of_products(&[[a, b]])
    }

    /// The sum of a b over all pairs \[a, b\], scaled once and relinearised once (lazy scaling and lazy
    /// relinearisation, ePrint 2021/204, appendix F): a term costs its tensor product alone.
    ///
    /// # Errors
    /// [`Error::Argument`] for an empty list, [`Error::SecondBase`] when Algorithm 1 of BFV has too few primes for a sum
    /// of this length, and as [`Self::mul`]; a noise error speaks of the whole sum.
    pub fn sum_of_products(&self, pairs: &[[&Ciphertext<S, B>; 2]]) -> Result<Ciphertext<S, B>> {
        let keys = self.switching("relinearisation")?;
        self.products(pairs, |pairs| {
            let product = self.met_pairs(pairs, Operation::Relinearisation, |pairs| {
                S::multiply(&self.context, self.variant, pairs, keys)
            })?;
            self.finish_product(self.settled(product)?, pairs)
        })
    }

    /// As [`Self::sum_of_products`], in three components.
    ///
    /// # Errors
    /// As [`Self::sum_of_products`], keys apart.
    pub fn sum_of_products_no_relin(&self, pairs: &[[&Ciphertext<S, B>; 2]]) -> Result<Ciphertext<S, B>> {
        let keys = self.keys();
        self.products(pairs, |pairs| {
            let tensor = |pairs: &[[&_; 2]]| S::tensor(&self.context, self.variant, pairs, keys);
            self.finish_product(self.met_pairs(pairs, Operation::Product, tensor)?, pairs)
        })
    }

    /// What `run` makes of the pairs, or of refreshed ones.
    fn products<'x>(
        &self,
        pairs: &[[&'x Ciphertext<S, B>; 2]],
        run: impl Fn(&[[&'x Ciphertext<S, B>; 2]]) -> Result<Ciphertext<S, B>>,
    ) -> Result<Ciphertext<S, B>> {
        let operands: Vec<&'x Ciphertext<S, B>> = pairs.iter().flatten().copied().collect();
        self.with_room_for(&operands, |x| run(&x.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect::<Vec<_>>()))
    }

    /// What `product` makes of the pairs brought under one key, certified.
    fn met_pairs(
        &self,
        pairs: &[[&Ciphertext<S, B>; 2]],
        operation: Operation,
        product: impl FnOnce(&[[&Ciphertext<S, B>; 2]]) -> Result<Ciphertext<S, B>>,
    ) -> Result<Ciphertext<S, B>> {
        for operand in pairs.iter().flatten() {
            self.require(operand)?;
            operand.inner().require_components(2)?;
        }
        let met = self.meet(pairs.iter().flatten().copied())?;
        let pairs: Vec<[&Ciphertext<S, B>; 2]> = met.chunks_exact(2).map(|pair| [&*pair[0], &*pair[1]]).collect();
        product(&pairs)?.certified(&self.context, operation)
    }

    fn finish_product(&self, product: Ciphertext<S, B>, pairs: &[[&Ciphertext<S, B>; 2]]) -> Result<Ciphertext<S, B>> {
        let level = pairs.iter().flatten().map(|x| x.level()).min().unwrap_or(product.level());
        // Under the second secret key there is no way back to the leading levels.
        let highest = |keys: &KeySwitching<B>| keys.highest(self.context.params().rlwe(), product.inner().key());
        let level = level.min(self.keys().map_or(level, highest));
        S::finish_product(&self.context, self.variant, product, level)
    }

    /// a b in three components, without relinearisation.
    ///
    /// # Errors
    /// As [`Self::mul`], keys apart.
    pub fn mul_no_relin(&self, a: &Ciphertext<S, B>, b: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        self.sum_of_products_no_relin(&[[a, b]])
    }

    /// a^2, relinearised.
    ///
    /// # Errors
    /// As [`Self::mul`].
    pub fn square(&self, a: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        self.mul(a, a)
    }

    /// Three components to two.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Components`], [`Error::NoKeys`], [`synchromesh_rlwe::Error::MissingKey`],
    /// [`synchromesh_rlwe::Error::KeysDiffer`] for keys of another secret key, or a noise error.
    pub fn relinearize(&self, a: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        let inner = self.switching("relinearisation")?.relinearize(self.context.rlwe(), a.inner())?;
        self.settled(Ciphertext::new(inner, a.header().clone()).certified(&self.context, Operation::Relinearisation)?)
    }

    /// The image under X -> X^g, for any odd g below 2N: the general form of rotations, for coefficient encodings too.
    ///
    /// # Errors
    /// As [`Self::relinearize`], for the key of g.
    pub fn automorphism(&self, a: &Ciphertext<S, B>, g: usize) -> Result<Ciphertext<S, B>> {
        let inner = self.switching("rotation")?.automorphism(self.context.rlwe(), a.inner(), g)?;
        Ciphertext::new(inner, a.header().clone()).certified(&self.context, Operation::Rotation)
    }

    /// Both rows of slots rotated by k, to the left for k > 0.
    ///
    /// # Errors
    /// As [`Self::automorphism`], and [`crate::batch::BatchError::NoSlots`] where t has no slots.
    pub fn rotate_rows(&self, a: &Ciphertext<S, B>, k: i64) -> Result<Ciphertext<S, B>> {
        self.require_rotations(&Rotations::by([k]))?;
        if let Some([first, rest @ ..]) = self.routes.as_ref().and_then(|routes| routes.route(k)) {
            let once = |a: &Ciphertext<S, B>, &k: &i64| self.automorphism(a, self.context.galois_element(k)?);
            return rest.iter().try_fold(once(a, first)?, |a, k| once(&a, k));
        }
        self.automorphism(a, self.context.galois_element(k)?)
    }

    /// Both rows of slots rotated by each k, decomposing once.
    ///
    /// # Errors
    /// As [`Self::rotate_rows`].
    pub fn rotate_rows_many(&self, a: &Ciphertext<S, B>, steps: &[i64]) -> Result<Vec<Ciphertext<S, B>>> {
        self.require_rotations(&Rotations::by(steps.iter().copied()))?;
        if self.routes.as_ref().is_some_and(|routes| steps.iter().any(|&k| routes.route(k).is_some())) {
            return steps.iter().map(|&k| self.rotate_rows(a, k)).collect();
        }
        let elements = steps.iter().map(|&k| self.context.galois_element(k)).collect::<Result<Vec<_>>>()?;
        let rotated = self.switching("rotation")?.automorphisms_hoisted(self.context.rlwe(), a.inner(), &elements)?;
        let certify = |inner| Ciphertext::new(inner, a.header().clone()).certified(&self.context, Operation::Rotation);
        rotated.into_iter().map(certify).collect()
    }

    /// The two rows of slots swapped.
    ///
    /// # Errors
    /// As [`Self::rotate_rows`].
    pub fn rotate_columns(&self, a: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        self.require_rotations(&Rotations::by([]).and_swap())?;
        self.automorphism(a, self.context.columns_element()?)
    }

    /// One level down.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] at level 0, or a noise error.
    pub fn mod_switch(&self, a: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        let top = self.context.params().top_level();
        let level = a.level().checked_sub(1);
        let level = level.ok_or(synchromesh_rlwe::Error::Level { needed: 1, have: 0, top })?;
        self.mod_switch_to(a, level)
    }

    /// Down to `level`; a copy if it is there already.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] above the ciphertext's level, or a noise error.
    pub fn mod_switch_to(&self, a: &Ciphertext<S, B>, level: usize) -> Result<Ciphertext<S, B>> {
        self.require(a)?;
        if level == a.level() {
            return self.settled(a.duplicate(&self.context)?);
        }
        self.settled(S::mod_switch_to(&self.context, a, level)?.certified(&self.context, Operation::Descent)?)
    }

    pub(crate) fn require(&self, a: &Ciphertext<S, B>) -> Result<()> {
        Ok(self.context.params().rlwe().require_digest(a.inner().params_digest())?)
    }
}

/// The error of a message times a polynomial of these norms, apart from its error's product with it; in the average
/// case the message is uniform and |p|_2 what the polynomial has on average.
fn wraps<S: Scheme>(norms: Norms) -> Noise {
    let wraps = S::product_noise(norms.norm1);
    if wraps == Noise::ZERO {
        return wraps;
    }
    wraps.with_average(Average::of(0, 2.0 * norms.norm2 - 12f64.log2()))
}

/// The error after a product with a polynomial of known norms.
pub(super) fn times_known<S: Scheme>(noise: Noise, log_n: u32, norms: Norms) -> Noise {
    noise.times_poly(log_n, norms.norm2, norms.norm1).plus(wraps::<S>(norms))
}

/// A component times a polynomial in slots, back in its own domain.
fn multiply<S: Scheme, B: Backend>(
    backend: &B,
    part: &Poly<B, S::Domain>,
    factor: &Poly<B, Ntt>,
) -> Result<Poly<B, S::Domain>> {
    let product = match S::Domain::operand(part) {
        DomainOperand::Ntt(slots) => slots.mul(backend, factor)?,
        _ => S::Domain::to_ntt(backend, part)?.mul(backend, factor)?,
    };
    Ok(S::Domain::from_ntt(backend, product)?)
}

/// c a on all components; the certificate is the caller's to set.
pub(crate) fn times_integer<S: Scheme, B: Backend>(
    context: &Context<S, B>,
    a: &Ciphertext<S, B>,
    c: &BigInt,
) -> Result<synchromesh_rlwe::Ciphertext<B, S::Domain>> {
    let (params, backend) = (context.params().rlwe(), context.backend());
    let residues = signed_residues(params.ring(), params.level(a.level())?, c);
    let mut parts = Vec::with_capacity(a.components());
    for part in a.inner().parts() {
        let mut product = part.duplicate(backend)?;
        product.mul_scalar_assign(backend, &residues)?;
        parts.push(product);
    }
    Ok(synchromesh_rlwe::Ciphertext::new(params, parts, a.level(), a.inner().key(), Noise::ZERO)?)
}
