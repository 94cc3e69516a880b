//! Products of BFV ciphertexts: the tensor product modulo QP, scaled by t to Q. One pipeline for every
//! [`Multiplication`]; a sum of products is scaled once (lazy scaling, ePrint 2021/204, appendix F).
//!
//! Each operand is brought to the primes Q and P and multiplied there in slots. The scaling's constants are multiplied
//! into the second operand, where its conversions take them in for nothing, so that the scaling itself is a matrix
//! product. 14 l transforms for l primes in Q and in P. A product that is relinearised at once saves those that the
//! key switch does anyway: 2 l on Q, and 2 k on the k special primes where P begins with them.

mod level;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use num_bigint::BigUint;
use num_traits::One;
use synchromesh_rlwe::noise::Noise;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::ring::backend::{Stage, TensorMode};
use synchromesh_rlwe::ring::rns::{ConvertSpec, Overflow};
use synchromesh_rlwe::ring::scale::{Scale, ScaleConstants, ScaleSpec};
use synchromesh_rlwe::ring::{Backend, Coeff, ConvertMode, IndexSet, Poly, View, ViewMut};
use synchromesh_rlwe::{Ciphertext as RlweCiphertext, Operand, Operation};

use super::{Ciphertext, Context, Multiplication, Params, Tensor};
use crate::error::{Error, Result};
use crate::exact::log2_biguint;
use level::Next;

/// Two operands of a product.
pub(super) type Pair<'a, B> = [&'a Ciphertext<B>; 2];

/// What the constants of a product depend on: the levels of the operands and of the product, the second base, and the
/// choices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind {
    from: [usize; 2],
    level: usize,
    second: IndexSet,
    how: Multiplication,
}

/// The constants of all products met so far.
pub(super) struct Products<B: Backend>(Mutex<HashMap<Kind, Arc<Product<B>>>>);

impl<B: Backend> Default for Products<B> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// How one operand gets from the primes of its level to Q and P.
struct Expansion<B: Backend> {
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
    expansions: [Expansion<B>; 2],
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

impl<B: Backend> Products<B> {
    fn get(&self, context: &Context<B>, kind: &Kind) -> Result<Arc<Product<B>>> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = lock().get(kind) {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(Product::new(context, kind)?);
        Ok(Arc::clone(lock().entry(kind.clone()).or_insert(made)))
    }
}

impl<B: Backend> Product<B> {
    fn new(context: &Context<B>, kind: &Kind) -> Result<Self> {
        let (params, ring) = (context.params(), context.params().rlwe().ring());
        let q = params.rlwe().level(kind.level)?;
        let p = kind.second.clone();
        let spec = down_spec(params, kind.how, q, &p);
        let mut down = spec.constants(ring)?;
        let (leaving, staying) = (down.leaving.clone(), down.staying.clone());
        // y_j = x_j s_j of the scaling, and f / D: constants that the second operand carries.
        let carried = Carried {
            leaving: down.convert.prescale.take().unwrap_or_else(|| ones(&leaving)),
            staying: std::mem::replace(&mut down.factors, ones(&staying)),
        };
        let backend = context.backend();
        let back = match kind.how.tensor {
            Tensor::Switched => None,
            Tensor::Original => {
                let spec = ConvertSpec::new(ring, &p, q, &ones(&p), &ones(q), centred(kind.how.extend))?;
                Some(backend.conversion(&p, q, &spec)?)
            }
        };
        let expansions = [
            Expansion::plain(context, kind, 0, (q, &p), None)?,
            match kind.how.tensor {
                Tensor::Original => Expansion::plain(context, kind, 1, (q, &p), Some(carried))?,
                Tensor::Switched => Expansion::switched(context, kind, (q, &p), &carried)?,
            },
        ];
        let ScaleConstants { convert, .. } = down;
        let down = backend.conversion(&leaving, &spec.to, &convert)?;
        Ok(Self { expansions, down, back, q: q.clone(), p })
    }

    /// The sum of the tensor products on both bases. Coefficients; with `split` the first two components are left in
    /// slots on Q and on so many leading primes of P.
    fn tensors(&self, backend: &B, pairs: &[Pair<'_, B>], split: Option<usize>) -> Result<[[Poly<B, Coeff>; 3]; 2]> {
        let three = |set| -> Result<[Poly<B, Coeff>; 3]> {
            Ok([Poly::new(backend, set)?, Poly::new(backend, set)?, Poly::new(backend, set)?])
        };
        let (mut on_q, mut on_p) = (three(&self.q)?, three(&self.p)?);
        let count = split.unwrap_or(0);
        for (i, [a, b]) in pairs.iter().enumerate() {
            let (accumulate, last) = (i > 0, i + 1 == pairs.len());
            let all = TensorMode { slots: false, accumulate, finish: [last; 3] };
            let some = TensorMode {
                slots: false,
                accumulate,
                finish: [last && split.is_none(), last && split.is_none(), last],
            };
            let a = self.expansions[0].expand(backend, a.inner().parts(), (&self.q, &self.p))?;
            let b = self.expansions[1].expand(backend, b.inner().parts(), (&self.q, &self.p))?;
            let of_q = [&a, &b].map(|x| x.q.each_ref().map(|limbs| &**limbs));
            let of_p = [&a, &b].map(|x| x.p.each_ref());
            tensor_rows(backend, 0..self.q.len(), of_q, &mut on_q, some)?;
            tensor_rows(backend, 0..count, of_p, &mut on_p, some)?;
            tensor_rows(backend, count..self.p.len(), of_p, &mut on_p, all)?;
        }
        Ok([on_q, on_p])
    }

    /// The three components scaled to Q, of coefficients on both bases.
    fn scaled(&self, backend: &B, [mut on_q, mut on_p]: [[Poly<B, Coeff>; 3]; 2]) -> Result<[Poly<B, Coeff>; 3]> {
        for (x, y) in on_q.iter_mut().zip(&mut on_p) {
            match &self.back {
                None => convert(backend, &self.down, y, x, ConvertMode::Add)?,
                Some(back) => {
                    convert(backend, &self.down, x, y, ConvertMode::Add)?;
                    convert(backend, back, y, x, ConvertMode::Replace)?;
                }
            }
        }
        Ok(on_q)
    }
}

/// The tensor product of expanded operands on some of their limbs; see [`TensorMode`]. Slots that `out` holds until the
/// last pair, or beyond it, are the caller's to know.
fn tensor_rows<B: Backend>(
    backend: &B,
    rows: Range<usize>,
    [a, b]: [[&Poly<B, Coeff>; 2]; 2],
    out: &mut [Poly<B, Coeff>; 3],
    mode: TensorMode,
) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let primes: Vec<usize> = out[0].primes().as_slice()[rows.clone()].to_vec();
    let rows: Vec<usize> = rows.collect();
    let [a, b] = [a, b].map(|operand| operand.map(|poly| View::new(poly.buffer(), &rows)));
    let out = out.each_mut().map(|poly| ViewMut::new(poly.buffer_mut(), &rows));
    Ok(backend.stage(&primes, Stage::Tensor { a, b, out, mode })?)
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

impl<B: Backend> Expansion<B> {
    /// Lowered where needed, then extended to P; `carried` is multiplied in for a scaling that Q leaves.
    fn plain(
        context: &Context<B>,
        kind: &Kind,
        operand: usize,
        (q, p): (&IndexSet, &IndexSet),
        carried: Option<Carried>,
    ) -> Result<Self> {
        let (backend, ring) = (context.backend(), context.params().rlwe().ring());
        let mut extend = ConvertSpec::new(ring, q, p, &ones(q), &ones(p), kind.how.extend)?;
        let mut factors = None;
        if let Some(carried) = carried {
            extend = extend.with_factors(ring, (q, &ones(q)), (p, &carried.staying))?;
            factors = Some(carried.leaving);
        }
        let lower = lower(context, kind, operand, q)?;
        Ok(Self { lower, to_p: backend.conversion(q, p, &extend)?, to_q: None, factors })
    }

    /// Switched to P, in one step or after lowering, then extended to Q; carries the factors of a scaling that P leaves.
    fn switched(context: &Context<B>, kind: &Kind, (q, p): (&IndexSet, &IndexSet), carried: &Carried) -> Result<Self> {
        let (backend, ring) = (context.backend(), context.params().rlwe().ring());
        let from = context.params().rlwe().level(kind.from[1])?;
        let (lower, from) = if kind.how.merged { (None, from) } else { (lower(context, kind, 1, q)?, q) };
        let switch = switch_spec(kind.how, from, p).constants(ring)?.convert;
        let switch = switch.with_factors(ring, (from, &ones(from)), (p, &carried.leaving))?;
        let extend = ConvertSpec::new(ring, p, q, &ones(p), &ones(q), kind.how.extend)?;
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
fn lower<B: Backend>(context: &Context<B>, kind: &Kind, operand: usize, q: &IndexSet) -> Result<Option<Arc<Scale<B>>>> {
    if kind.from[operand] == kind.level {
        return Ok(None);
    }
    let from = context.params().rlwe().level(kind.from[operand])?;
    Ok(Some(context.rlwe().scale(switch_spec(kind.how, from, q))?))
}

/// What a sum of products is computed with, and what it comes to.
struct Setting<B: Backend> {
    constants: Arc<Product<B>>,
    /// The error of the product in three components.
    noise: Noise,
}

/// Operands above the level of their side, brought down to it.
struct Brought<B: Backend>(Vec<Option<Ciphertext<B>>>);

impl<B: Backend> Brought<B> {
    fn new(context: &Context<B>, pairs: &[Pair<'_, B>], from: [usize; 2]) -> Result<Self> {
        let mut brought = Vec::with_capacity(2 * pairs.len());
        for pair in pairs {
            for (x, &to) in pair.iter().zip(&from) {
                let lower = (x.level() > to)
                    .then(|| Ok::<_, Error>(Ciphertext::new(x.inner().mod_switch_to(context.rlwe(), to)?, ())));
                brought.push(lower.transpose()?);
            }
        }
        Ok(Self(brought))
    }

    fn pairs<'a>(&'a self, pairs: &[Pair<'a, B>]) -> Vec<Pair<'a, B>> {
        let at = |pair: usize, side: usize| self.0[2 * pair + side].as_ref().unwrap_or(pairs[pair][side]);
        (0..pairs.len()).map(|i| [at(i, 0), at(i, 1)]).collect()
    }
}

/// The lowest level on each side: all pairs are brought to it, so that one set of constants serves them.
fn sides<B: Backend>(pairs: &[Pair<'_, B>]) -> [usize; 2] {
    [0, 1].map(|side| pairs.iter().map(|pair| pair[side].level()).min().unwrap_or(0))
}

/// The constants and the certificate of a sum of products of pairs that are at [`sides`] already.
fn setting<B: Backend>(
    context: &Context<B>,
    how: Multiplication,
    level: usize,
    pairs: &[Pair<'_, B>],
    next: Next<'_, B>,
) -> Result<Setting<B>> {
    let second = next.second_base(context, level, how, pairs)?;
    let noise = level::product_noise(context, level, &second, how, pairs)?;
    let constants = context.tables().products.get(context, &Kind { from: sides(pairs), level, second, how })?;
    Ok(Setting { constants, noise })
}

/// The sum of the pairs' products in three components, at the level that `how` chooses.
///
/// All operands have two components and are under one key.
pub(super) fn tensor<B: Backend>(
    context: &Context<B>,
    how: Multiplication,
    pairs: &[Pair<'_, B>],
    keys: Option<&KeySwitching<B>>,
) -> Result<Ciphertext<B>> {
    let Some([first, _]) = pairs.first() else { return Err(no_pairs()) };
    let next = Next { keys, joins: false };
    let level = level::choose(context, how, pairs, next)?;
    let brought = Brought::new(context, pairs, sides(pairs))?;
    let pairs = brought.pairs(pairs);
    let Setting { constants, noise } = setting(context, how, level, &pairs, next)?;
    let parts = constants.scaled(context.backend(), constants.tensors(context.backend(), &pairs, None)?)?;
    let inner = RlweCiphertext::new(context.params().rlwe(), Vec::from(parts), level, first.inner().key(), noise)?;
    Ok(Ciphertext::new(inner, ()))
}

fn no_pairs() -> Error {
    Error::argument("a sum of products needs at least one pair")
}

/// As [`tensor`], relinearised at the level it was computed at. In Algorithm 2 the first two components stay in slots
/// until the key switch has added its own, and where the second base begins with the special primes, the division by P
/// is that of the key switch, too.
pub(super) fn relinearized<B: Backend>(
    context: &Context<B>,
    how: Multiplication,
    pairs: &[Pair<'_, B>],
    keys: &KeySwitching<B>,
) -> Result<Ciphertext<B>> {
    let Some([first, _]) = pairs.first() else { return Err(no_pairs()) };
    if how.tensor == Tensor::Original {
        let product = tensor(context, how, pairs, Some(keys))?.certified(context, Operation::Product)?;
        return Ok(Ciphertext::new(keys.relinearize(context.rlwe(), product.inner())?, ()));
    }
    let (backend, rlwe, key) = (context.backend(), context.rlwe(), first.inner().key());
    let next = Next { keys: Some(keys), joins: true };
    let level = level::choose(context, how, pairs, next)?;
    let brought = Brought::new(context, pairs, sides(pairs))?;
    let pairs = brought.pairs(pairs);
    let Setting { constants, noise } = setting(context, how, level, &pairs, next)?;
    let (switcher, prepared) = keys.square(rlwe, key, level)?;
    let special = &keys.plan_under(key, level)?.special;
    let joined = constants.p.as_slice().starts_with(special.as_slice());
    let count = if joined { special.len() } else { 0 };
    let [[q0, q1, mut square], [mut p0, mut p1, p2]] = constants.tensors(backend, &pairs, Some(count))?;
    convert(backend, &constants.down, &p2, &mut square, ConvertMode::Add)?;
    let mut out = if joined {
        let mut digits = switcher.decompose(rlwe, Operand::Coeff(&square))?;
        let (mut on_q, rows) = ([q0, q1], (0..constants.q.len()).collect::<Vec<_>>());
        let views = on_q.each_mut().map(|x| ViewMut::new(x.buffer_mut(), &rows));
        switcher.product_onto(rlwe, &mut digits, &prepared, &constants.q, views)?;
        let rows: Vec<usize> = (0..count).collect();
        let views = [&mut p0, &mut p1].map(|x| ViewMut::new(x.buffer_mut(), &rows));
        switcher.product_onto(rlwe, &mut digits, &prepared, special, views)?;
        on_q
    } else {
        switcher.switch_onto(rlwe, &square, &prepared, [q0.assume_ntt(), q1.assume_ntt()])?
    };
    for (x, y) in out.iter_mut().zip([&p0, &p1]) {
        convert(backend, &constants.down, y, x, ConvertMode::Add)?;
    }
    let noise = noise.plus_switching(switcher.noise());
    Ok(Ciphertext::new(RlweCiphertext::new(context.params().rlwe(), Vec::from(out), level, key, noise)?, ()))
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
