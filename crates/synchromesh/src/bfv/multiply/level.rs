//! Where a product is computed: its level, its second base, and what its certificate says there.

use synchromesh_rlwe::noise::Noise;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::ring::rns::Overflow;
use synchromesh_rlwe::ring::{Backend, IndexSet};
use synchromesh_rlwe::switch_plan::Folding;

use super::super::noise::Operand;
use super::super::{Ciphertext, Context, Dropping, Multiplication, Params, Tensor, noise};
use super::Pair;
use crate::error::{Error, Result};

/// The most by which the certificate of a product may grow, in bits, when the product is computed at a lower level.
const LOSS: f64 = 0.5;

/// Bits by which a second base may be below that of auxiliary primes.
const SHORTER: f64 = 0.01;

/// What follows a product: the keys that it will be relinearised with, if any, and whether at once.
pub(super) struct Next<'a, B: Backend> {
    pub(super) keys: Option<&'a KeySwitching<B>>,
    pub(super) joins: bool,
}

impl<B: Backend> Clone for Next<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: Backend> Copy for Next<'_, B> {}

impl<B: Backend> Next<'_, B> {
    /// What relinearising the product at `level` will add: by the operands' keys, or without such keys by the plan that
    /// keys are made for.
    fn switch_noise(self, context: &Context<B>, level: usize, pairs: &[Pair<'_, B>]) -> Result<Noise> {
        let (params, rlwe) = (context.params(), context.rlwe());
        let keyed = self.keys.zip(pairs.first());
        if let Some(Ok(noise)) = keyed.map(|(keys, [x, _])| keys.noise_under(rlwe, x.inner().key(), level, level)) {
            return Ok(noise);
        }
        let primes = params.rlwe().level(level)?;
        Ok(rlwe.switcher(params.plans().at(level), primes, primes)?.noise())
    }

    /// The special primes of the key switch that follows, if its sums modulo P can join a division by a multiple of P.
    fn special(
        self,
        context: &Context<B>,
        level: usize,
        how: Multiplication,
        pairs: &[Pair<'_, B>],
    ) -> Result<Option<IndexSet>> {
        let keyed = self.keys.filter(|_| self.joins && how.scale != Overflow::Behz).zip(pairs.first());
        let Some((keys, [x, _])) = keyed else { return Ok(None) };
        let (plan, primes) = (keys.plan_under(x.inner().key(), level)?, context.params().rlwe().level(level)?);
        // The key has the inverse cofactors of P folded in, as the numerators of the scaling have theirs.
        let folded = Folding::Folded { dropped: IndexSet::empty(), coming: IndexSet::empty() };
        let same = plan.folding == folded && plan.down_overflow != Overflow::Behz;
        let joins = same && context.rlwe().switcher(plan, primes, primes)?.is_plain();
        Ok(joins.then(|| plan.special.clone()))
    }

    /// The second base of a product at `level`.
    ///
    /// In Algorithm 2 as many auxiliary primes as Q has, or the special primes of the key switch that follows and fewer
    /// auxiliary ones; in Algorithm 1 as many of the primes outside Q as it needs.
    pub(super) fn second_base(
        self,
        context: &Context<B>,
        level: usize,
        how: Multiplication,
        pairs: &[Pair<'_, B>],
    ) -> Result<IndexSet> {
        let (params, ring) = (context.params(), context.params().rlwe().ring());
        if how.tensor == Tensor::Original {
            return original_base(params, level, how, pairs.len());
        }
        let aux = params.second_base(level)?;
        let Some(special) = self.special(context, level, how, pairs)? else { return Ok(aux) };
        let widest = aux.iter().map(|i| ring.modulus(i).bits()).max().unwrap_or(0);
        // A wide prime would slow the conversions of narrow ones.
        if special.iter().any(|i| aux.contains(i) || ring.modulus(i).bits() > widest) {
            return Ok(aux);
        }
        let (needed, mut bits) = (ring.log2(&aux) - SHORTER, ring.log2(&special));
        let mut base = special.as_slice().to_vec();
        for prime in aux.iter() {
            if bits < needed {
                bits += (ring.modulus(prime).value() as f64).log2();
                base.push(prime);
            }
        }
        Ok(if bits < needed || base.len() > aux.len() { aux } else { base.into_iter().collect() })
    }
}

/// The second base of Algorithm 1: primes outside Q, auxiliary, special, and ciphertext primes of higher levels.
fn original_base(params: &Params, level: usize, how: Multiplication, terms: usize) -> Result<IndexSet> {
    let rlwe = params.rlwe();
    let (ring, primes) = (rlwe.ring(), rlwe.level(level)?);
    let needed = params.log2_modulus(level)? + noise::excess(params, terms, noise::largest(how.extend, primes.len()));
    let dropped = rlwe.q().without(primes);
    let (mut bits, mut base) = (0.0, Vec::new());
    for prime in rlwe.aux().iter().chain(rlwe.p().iter()).chain(dropped.iter()) {
        bits += (ring.modulus(prime).value() as f64).log2();
        base.push(prime);
        if bits > needed {
            return Ok(base.into_iter().collect());
        }
    }
    Err(Error::SecondBase { needed, have: bits, level, terms })
}

/// The error of a sum of products at `level`, of three components, with the second base `p`.
pub(super) fn product_noise<B: Backend>(
    context: &Context<B>,
    level: usize,
    p: &IndexSet,
    how: Multiplication,
    pairs: &[Pair<'_, B>],
) -> Result<Noise> {
    let (params, ring) = (context.params(), context.params().rlwe().ring());
    let (q, log2_q) = (params.rlwe().level(level)?, params.log2_modulus(level)?);
    let size = noise::largest(how.extend, q.len().max(p.len()));
    let scaling = |from: &IndexSet, to: &IndexSet, components| {
        noise::scaling(params, components, from.without(to).len(), how.scale)
    };
    // An operand's error at this level, and what bringing it there adds.
    let lowered = |x: &Ciphertext<B>, rounds: bool| -> Result<Operand> {
        let from = params.rlwe().level(x.level())?;
        let rounding = if rounds && x.level() > level { scaling(from, q, 2) } else { Noise::ZERO };
        Ok(Operand { own: x.noise().times(log2_q - ring.log2(from)), rounding })
    };
    let switched = how.tensor == Tensor::Switched;
    let mut sum = Noise::ZERO;
    for [a, b] in pairs {
        let first = lowered(a, true)?;
        let mut second = lowered(b, !(switched && how.merged))?;
        if switched {
            // The switch rounds to 1, which is Q/P here.
            let from = if how.merged { params.rlwe().level(b.level())? } else { q };
            second.rounding = second.rounding.plus_switching(scaling(from, p, 2).times(log2_q - ring.log2(p)));
        }
        let product = noise::cross_terms(params, log2_q, [first, second], size, std::ptr::eq(*a, *b));
        sum = sum.sum(product);
    }
    let (leaving, staying) = if switched { (p, q) } else { (q, p) };
    Ok(sum.plus_switching(scaling(leaving, staying, 3)))
}

/// The level to multiply at.
pub(super) fn choose<B: Backend>(
    context: &Context<B>,
    how: Multiplication,
    pairs: &[Pair<'_, B>],
    next: Next<'_, B>,
) -> Result<usize> {
    let (params, lowest) = (context.params(), pairs.iter().flatten().map(|x| x.level()).min().unwrap_or(0));
    let bound = |noise: Noise| noise.bound(params.log_n(), params.failure_limit().log2_failure());
    match how.dropping {
        Dropping::Never => Ok(lowest),
        Dropping::Certified => {
            // The error as a fraction of Q, key switching included.
            let fraction = |level: usize| -> Result<f64> {
                let second = next.second_base(context, level, how, pairs)?;
                let product = product_noise(context, level, &second, how, pairs)?;
                let switch = next.switch_noise(context, level, pairs)?;
                Ok(bound(product.plus_switching(switch)) - params.log2_modulus(level)?)
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
