//! Products of BFV ciphertexts: the tensor product modulo QP, scaled by t to Q. One pipeline for every
//! [`Multiplication`]; a sum of products is scaled once (lazy scaling, ePrint 2021/204, appendix F).
//!
//! Each operand is brought to the primes Q and P and multiplied there in slots. The scaling's constants are multiplied
//! into the second operand, where its conversions take them in for nothing, so that the scaling itself is a matrix
//! product. 14 l transforms for l primes in Q and in P.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use num_bigint::BigUint;
use num_traits::One;
use synchromesh_rlwe::noise::{DEFAULT_LOG2_FAILURE, Noise};
use synchromesh_rlwe::ring::backend::TensorMode;
use synchromesh_rlwe::ring::rns::{ConvertSpec, Overflow};
use synchromesh_rlwe::ring::scale::{Scale, ScaleConstants, ScaleSpec};
use synchromesh_rlwe::ring::{Backend, Coeff, ConvertMode, IndexSet, Poly, View, ViewMut};

use super::{Ciphertext, Context, Dropping, Multiplication, Params, Tensor, noise};
use crate::error::{Error, Result};
use crate::exact::log2_biguint;

/// The most by which the certificate of a product may grow, in bits, when the product is computed at a lower level.
const LOSS: f64 = 0.5;

/// Two operands of a product.
pub(super) type Pair<'a, B> = [&'a Ciphertext<B>; 2];

/// What the constants of a product depend on: the levels of the operands and of the product, the second base's
/// number of primes, and the choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    from: [usize; 2],
    level: usize,
    second_primes: usize,
    how: Multiplication,
}

/// The constants of all products met so far.
pub(super) struct Products<B: Backend>(Mutex<HashMap<Key, Arc<Product<B>>>>);

impl<B: Backend> Default for Products<B> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// How one operand gets from the primes of its level to Q and P.
struct Route<B: Backend> {
    /// To the level of the product first.
    lower: Option<Arc<Scale<B>>>,
    /// To P: extended from Q, or switched.
    to_p: B::Conversion,
    /// Back from P to Q; none: Q's limbs are the operand's.
    to_q: Option<B::Conversion>,
    /// Factors of Q's limbs, where they are the operand's.
    factors: Option<Vec<u64>>,
}

/// The constants of one kind of product.
struct Product<B: Backend> {
    q: IndexSet,
    p: IndexSet,
    routes: [Route<B>; 2],
    /// Adds what one base's limbs contribute to the other's: P's to Q's, or for Algorithm 1 Q's to P's.
    down: B::Conversion,
    /// From P back to Q, for Algorithm 1.
    back: Option<B::Conversion>,
}

/// An operand's two components on both bases, in coefficients.
struct Expanded<'a, B: Backend> {
    q: [Limbs<'a, B>; 2],
    p: [Poly<B, Coeff>; 2],
}

/// A polynomial of an operand as it is, or computed.
enum Limbs<'a, B: Backend> {
    Given(&'a Poly<B, Coeff>),
    Made(Poly<B, Coeff>),
}

impl<B: Backend> std::ops::Deref for Limbs<'_, B> {
    type Target = Poly<B, Coeff>;
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Given(poly) => poly,
            Self::Made(poly) => poly,
        }
    }
}

fn ones(set: &IndexSet) -> Vec<u64> {
    vec![1; set.len()]
}

/// The rule by which a result comes back from P: it is centred, and must come back as it is.
const fn centred(overflow: Overflow) -> Overflow {
    match overflow {
        Overflow::Fast | Overflow::Floor => Overflow::Round,
        Overflow::HpsFloor => Overflow::HpsRound,
        counted => counted,
    }
}

/// The scaling at the end of a product: by t/P to Q, or by t/Q to P.
fn down_spec(params: &Params, how: Multiplication, q: &IndexSet, p: &IndexSet) -> ScaleSpec {
    ScaleSpec {
        from: q.union(p),
        to: if how.tensor == Tensor::Switched { q.clone() } else { p.clone() },
        numerator: params.t().value().clone(),
        multiple: BigUint::one(),
        overflow: how.scale,
    }
}

/// A switch between disjoint or nested bases.
fn switch_spec(how: Multiplication, from: &IndexSet, to: &IndexSet) -> ScaleSpec {
    ScaleSpec { overflow: how.scale, ..ScaleSpec::switch(from, to, &BigUint::one()) }
}

/// The second base of a product: auxiliary primes about Q, or for Algorithm 1 as many of the primes outside Q as it
/// needs, `second_primes` of them.
fn second_base(params: &Params, level: usize, second_primes: usize) -> Result<IndexSet> {
    Ok(outside(params, level)?.take(second_primes).collect())
}

/// The primes outside Q: auxiliary, special, and ciphertext primes of higher levels.
fn outside(params: &Params, level: usize) -> Result<impl Iterator<Item = usize>> {
    let rlwe = params.rlwe();
    let dropped = rlwe.q().without(rlwe.level(level)?);
    let all: Vec<usize> = rlwe.aux().iter().chain(rlwe.p().iter()).chain(dropped.iter()).collect();
    Ok(all.into_iter())
}

/// How many primes of [`outside`] a product of `terms` terms takes.
fn second_primes(params: &Params, level: usize, how: Multiplication, terms: usize) -> Result<usize> {
    let limbs = params.rlwe().level(level)?.len();
    if how.tensor == Tensor::Switched {
        return Ok(params.second_base(level)?.len());
    }
    let needed = params.log2_modulus(level)? + noise::excess(params, terms, noise::largest(how.extend, limbs));
    let (mut bits, mut count) = (0.0, 0);
    for prime in outside(params, level)? {
        bits += (params.rlwe().ring().modulus(prime).value() as f64).log2();
        count += 1;
        if bits > needed {
            return Ok(count);
        }
    }
    Err(Error::SecondBase { needed, have: bits, level, terms })
}

impl<B: Backend> Products<B> {
    fn get(&self, context: &Context<B>, key: Key) -> Result<Arc<Product<B>>> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = lock().get(&key) {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(Product::new(context, key)?);
        Ok(Arc::clone(lock().entry(key).or_insert(made)))
    }
}

impl<B: Backend> Product<B> {
    fn new(context: &Context<B>, key: Key) -> Result<Self> {
        let (params, ring) = (context.params(), context.params().rlwe().ring());
        let q = params.rlwe().level(key.level)?;
        let p = second_base(params, key.level, key.second_primes)?;
        let spec = down_spec(params, key.how, q, &p);
        let mut down = spec.constants(ring)?;
        let (leaving, staying) = (down.leaving.clone(), down.staying.clone());
        // y_j = x_j s_j of the scaling, and f / D: constants that the second operand carries.
        let carried = Carried {
            leaving: down.convert.prescale.take().unwrap_or_else(|| ones(&leaving)),
            staying: std::mem::replace(&mut down.factors, ones(&staying)),
        };
        let backend = context.backend();
        let back = match key.how.tensor {
            Tensor::Switched => None,
            Tensor::Original => {
                let spec = ConvertSpec::new(ring, &p, q, &ones(&p), &ones(q), centred(key.how.extend))?;
                Some(backend.conversion(&p, q, &spec)?)
            }
        };
        let routes = [
            Route::plain(context, &key, 0, (q, &p), None)?,
            match key.how.tensor {
                Tensor::Original => Route::plain(context, &key, 1, (q, &p), Some(carried))?,
                Tensor::Switched => Route::switched(context, &key, (q, &p), &carried)?,
            },
        ];
        let ScaleConstants { convert, .. } = down;
        let down = backend.conversion(&leaving, &spec.to, &convert)?;
        Ok(Self { routes, down, back, q: q.clone(), p })
    }

    /// The tensor product of expanded operands on one base; added to `out` in slots, or left in coefficients.
    fn tensor(
        backend: &B,
        primes: &IndexSet,
        [a, b]: [[&Poly<B, Coeff>; 2]; 2],
        out: &mut [Poly<B, Coeff>; 3],
        mode: TensorMode,
    ) -> Result<()> {
        let rows: Vec<usize> = (0..primes.len()).collect();
        let [a, b] = [a, b].map(|operand| operand.map(|poly| View::new(poly.buffer(), &rows)));
        // Until the last pair `out` holds slots, which nothing else sees.
        let out = out.each_mut().map(|poly| ViewMut::new(poly.buffer_mut(), &rows));
        Ok(backend.tensor(primes.as_slice(), a, b, out, mode)?)
    }

    /// The three components of the scaled sum of products, on Q.
    fn run(&self, backend: &B, pairs: &[Pair<'_, B>]) -> Result<Vec<Poly<B, Coeff>>> {
        let three = |set| -> Result<[Poly<B, Coeff>; 3]> {
            Ok([Poly::new(backend, set)?, Poly::new(backend, set)?, Poly::new(backend, set)?])
        };
        let (mut on_q, mut on_p) = (three(&self.q)?, three(&self.p)?);
        for (i, [a, b]) in pairs.iter().enumerate() {
            let mode = TensorMode { accumulate: i > 0, finish: i + 1 == pairs.len() };
            let a = self.routes[0].expand(backend, a.inner().parts(), (&self.q, &self.p))?;
            let b = self.routes[1].expand(backend, b.inner().parts(), (&self.q, &self.p))?;
            let of_q = [&a, &b].map(|x| x.q.each_ref().map(|limbs| &**limbs));
            Self::tensor(backend, &self.q, of_q, &mut on_q, mode)?;
            Self::tensor(backend, &self.p, [a.p.each_ref(), b.p.each_ref()], &mut on_p, mode)?;
        }
        for (x, y) in on_q.iter_mut().zip(&mut on_p) {
            match &self.back {
                None => convert(backend, &self.down, y, x, ConvertMode::Add)?,
                Some(back) => {
                    convert(backend, &self.down, x, y, ConvertMode::Add)?;
                    convert(backend, back, y, x, ConvertMode::Replace)?;
                }
            }
        }
        Ok(Vec::from(on_q))
    }
}

/// Factors that the limbs of the second operand carry for the scaling at the end: those of the primes that leave then
/// and of those that stay.
struct Carried {
    leaving: Vec<u64>,
    staying: Vec<u64>,
}

fn convert<B: Backend>(
    backend: &B,
    conversion: &B::Conversion,
    from: &Poly<B, Coeff>,
    to: &mut Poly<B, Coeff>,
    mode: ConvertMode,
) -> Result<()> {
    let [src, dst]: [Vec<usize>; 2] = [from.primes().len(), to.primes().len()].map(|n| (0..n).collect());
    Ok(backend.convert(conversion, View::new(from.buffer(), &src), ViewMut::new(to.buffer_mut(), &dst), mode)?)
}

impl<B: Backend> Route<B> {
    /// Lowered where needed, then extended to P; `carried` is multiplied in for a scaling that Q leaves.
    fn plain(
        context: &Context<B>,
        key: &Key,
        operand: usize,
        (q, p): (&IndexSet, &IndexSet),
        carried: Option<Carried>,
    ) -> Result<Self> {
        let (backend, ring) = (context.backend(), context.params().rlwe().ring());
        let mut extend = ConvertSpec::new(ring, q, p, &ones(q), &ones(p), key.how.extend)?;
        let mut factors = None;
        if let Some(carried) = carried {
            extend = extend.with_factors(ring, (q, &ones(q)), (p, &carried.staying))?;
            factors = Some(carried.leaving);
        }
        let lower = lower(context, key, operand, q)?;
        Ok(Self { lower, to_p: backend.conversion(q, p, &extend)?, to_q: None, factors })
    }

    /// Switched to P, in one step or after lowering, then extended to Q; carries the factors of a scaling that P leaves.
    fn switched(context: &Context<B>, key: &Key, (q, p): (&IndexSet, &IndexSet), carried: &Carried) -> Result<Self> {
        let (backend, ring) = (context.backend(), context.params().rlwe().ring());
        let from = context.params().rlwe().level(key.from[1])?;
        let (lower, from) = if key.how.merged { (None, from) } else { (lower(context, key, 1, q)?, q) };
        let switch = switch_spec(key.how, from, p).constants(ring)?.convert;
        let switch = switch.with_factors(ring, (from, &ones(from)), (p, &carried.leaving))?;
        let extend = ConvertSpec::new(ring, p, q, &ones(p), &ones(q), key.how.extend)?;
        let extend = extend.with_factors(ring, (p, &carried.leaving), (q, &carried.staying))?;
        let to_q = Some(backend.conversion(p, q, &extend)?);
        Ok(Self { lower, to_p: backend.conversion(from, p, &switch)?, to_q, factors: None })
    }

    fn expand<'a>(
        &self,
        backend: &B,
        parts: &'a [Poly<B, Coeff>],
        (q, p): (&IndexSet, &IndexSet),
    ) -> Result<Expanded<'a, B>> {
        let one = |part: &'a Poly<B, Coeff>| -> Result<(Limbs<'a, B>, Poly<B, Coeff>)> {
            let part = match &self.lower {
                Some(scale) => Limbs::Made(scale.apply(backend, part)?),
                None => Limbs::Given(part),
            };
            let mut on_p = Poly::new(backend, p)?;
            convert(backend, &self.to_p, &part, &mut on_p, ConvertMode::Replace)?;
            let on_q = match (&self.to_q, &self.factors) {
                (Some(to_q), _) => {
                    let mut on_q = Poly::new(backend, q)?;
                    convert(backend, to_q, &on_p, &mut on_q, ConvertMode::Replace)?;
                    Limbs::Made(on_q)
                }
                (None, Some(factors)) => {
                    let mut on_q = match part {
                        Limbs::Made(poly) => poly,
                        Limbs::Given(poly) => poly.duplicate(backend)?,
                    };
                    on_q.mul_scalar_assign(backend, factors)?;
                    Limbs::Made(on_q)
                }
                (None, None) => part,
            };
            Ok((on_q, on_p))
        };
        let ((q0, p0), (q1, p1)) = (one(&parts[0])?, one(&parts[1])?);
        Ok(Expanded { q: [q0, q1], p: [p0, p1] })
    }
}

/// The switch of an operand to the product's level, if it is above.
fn lower<B: Backend>(context: &Context<B>, key: &Key, operand: usize, q: &IndexSet) -> Result<Option<Arc<Scale<B>>>> {
    if key.from[operand] == key.level {
        return Ok(None);
    }
    let from = context.params().rlwe().level(key.from[operand])?;
    Ok(Some(context.rlwe().scale(switch_spec(key.how, from, q))?))
}

/// The error of a sum of products at `level`, of three components.
fn product_noise<B: Backend>(
    context: &Context<B>,
    level: usize,
    how: Multiplication,
    pairs: &[Pair<'_, B>],
) -> Result<Noise> {
    let (params, ring) = (context.params(), context.params().rlwe().ring());
    let (q, log2_q) = (params.rlwe().level(level)?, params.log2_modulus(level)?);
    let p = second_base(params, level, second_primes(params, level, how, pairs.len())?)?;
    let size = noise::largest(how.extend, q.len().max(p.len()));
    let scaling = |from: &IndexSet, to: &IndexSet, components| {
        noise::scaling(params, components, from.without(to).len(), how.scale)
    };
    let lowered = |x: &Ciphertext<B>, rounds: bool| -> Result<Noise> {
        let from = params.rlwe().level(x.level())?;
        let noise = x.noise().times(log2_q - ring.log2(from));
        Ok(if rounds && x.level() > level { noise.plus(scaling(from, q, 2)) } else { noise })
    };
    let switched = how.tensor == Tensor::Switched;
    let mut sum = Noise::ZERO;
    for [a, b] in pairs {
        let first = lowered(a, true)?;
        let mut second = lowered(b, !(switched && how.merged))?;
        if switched {
            // The switch rounds to 1, which is Q/P here.
            let from = if how.merged { params.rlwe().level(b.level())? } else { q };
            second = second.plus(scaling(from, &p, 2).times(log2_q - ring.log2(&p)));
        }
        sum = sum.plus(noise::cross_terms(params, log2_q, first, second, size));
    }
    let (leaving, staying) = if switched { (&p, q) } else { (q, &p) };
    Ok(sum.plus(scaling(leaving, staying, 3)))
}

/// The level to multiply at.
fn level<B: Backend>(context: &Context<B>, how: Multiplication, pairs: &[Pair<'_, B>]) -> Result<usize> {
    let (params, lowest) = (context.params(), pairs.iter().flatten().map(|x| x.level()).min().unwrap_or(0));
    let bound = |noise: Noise| noise.bound(params.log_n(), DEFAULT_LOG2_FAILURE);
    match how.dropping {
        Dropping::Never => Ok(lowest),
        Dropping::Certified => {
            // The error as a fraction of Q, key switching included.
            let fraction = |level: usize| -> Result<f64> {
                let primes = params.rlwe().level(level)?;
                let switch = context.rlwe().switcher(params.plan(), primes, primes)?.noise();
                let product = product_noise(context, level, how, pairs)?.plus(switch);
                Ok(bound(product) - params.log2_modulus(level)?)
            };
            let most = fraction(lowest)? + LOSS;
            let mut level = lowest;
            while level > 0 && fraction(level - 1)? <= most {
                level -= 1;
            }
            Ok(level)
        }
        Dropping::Cushion(bits) => {
            // (12): |v| > 8 Q delta / Q_l with delta = 2 sqrt(N), |v| the certificate less the cushion.
            let least = pairs
                .iter()
                .flatten()
                .map(|x| Ok(bound(x.noise()) - f64::from(bits) - params.log2_modulus(x.level())?));
            let least = least.collect::<Result<Vec<f64>>>()?.into_iter().fold(f64::INFINITY, f64::min);
            let needed = 4.0 + f64::from(params.log_n()) / 2.0 - least;
            let enough = |level: usize| Ok::<bool, Error>(params.log2_modulus(level)? > needed);
            let mut level = lowest;
            while level > 0 && enough(level - 1)? {
                level -= 1;
            }
            Ok(level)
        }
    }
}

/// The sum of the pairs' products in three components, at the level that `how` chooses.
///
/// All operands have two components and are under one key.
pub(super) fn tensor<B: Backend>(
    context: &Context<B>,
    how: Multiplication,
    pairs: &[Pair<'_, B>],
) -> Result<Ciphertext<B>> {
    let Some([first, _]) = pairs.first() else {
        return Err(Error::params("a sum of products needs at least one pair"));
    };
    let params = context.params();
    let level = level(context, how, pairs)?;
    // One set of constants serves all pairs: they come to the levels of the lowest operand on each side.
    let from = [0, 1].map(|side| pairs.iter().map(|pair| pair[side].level()).min().unwrap_or(level));
    let mut brought = Vec::new();
    for pair in pairs {
        for (x, &to) in pair.iter().zip(&from) {
            let lower = (x.level() > to)
                .then(|| Ok::<_, Error>(Ciphertext::new(x.inner().mod_switch_to(context.rlwe(), to)?, ())));
            brought.push(lower.transpose()?);
        }
    }
    let at = |pair: usize, side: usize| brought[2 * pair + side].as_ref().unwrap_or(pairs[pair][side]);
    let pairs: Vec<Pair<'_, B>> = (0..pairs.len()).map(|i| [at(i, 0), at(i, 1)]).collect();
    let error = product_noise(context, level, how, &pairs)?;
    let second_primes = second_primes(params, level, how, pairs.len())?;
    let product = context.tables().products.get(context, Key { from, level, second_primes, how })?;
    let parts = product.run(context.backend(), &pairs)?;
    let inner = synchromesh_rlwe::Ciphertext::new(params.rlwe(), parts, level, first.inner().key(), error)?;
    Ok(Ciphertext::new(inner, ()))
}

/// The ciphertext at a higher level: every residue times the product E of the primes that come in, which is exact; the
/// error grows by E and so does Q.
pub(super) fn raise<B: Backend>(context: &Context<B>, x: &Ciphertext<B>, level: usize) -> Result<Ciphertext<B>> {
    let (params, rlwe) = (context.params().rlwe(), context.rlwe());
    let (from, to) = (params.level(x.level())?, params.level(level)?);
    if level < x.level() {
        return Err(synchromesh_rlwe::Error::Level { needed: level, have: x.level(), top: params.top_level() }.into());
    }
    let scale = rlwe.scale(ScaleSpec::switch(from, to, &BigUint::one()))?;
    let parts = x.inner().parts().iter().map(|part| Ok(scale.apply(context.backend(), part)?));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let noise = x.noise().times(log2_biguint(&params.ring().product(&to.without(from))));
    Ok(Ciphertext::new(synchromesh_rlwe::Ciphertext::new(params, parts, level, x.inner().key(), noise)?, ()))
}
