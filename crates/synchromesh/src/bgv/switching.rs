//! Levels and correction factors of BGV: modulus switching, operands made equal for sums, and right before products.

use num_bigint::{BigInt, BigUint};
use num_traits::One;
use synchromesh_rlwe::Operation;
use synchromesh_rlwe::noise::{self as rlwe_noise, Noise};
use synchromesh_rlwe::ring::{Backend, Ntt, Poly};

use super::factor::{Factor, equalisers};
use super::management::Levels;
use super::{Bgv, Ciphertext, Context, noise};
use crate::error::Result;
use crate::exact::{Equalised, Scheme, centred, log2_biguint, require_room, times_integer};

type Operand<'a, B> = crate::exact::Operand<'a, Bgv, B>;

/// Bits of noise that a canonical factor may cost when a level is dropped.
const CANONICAL_COST: f64 = 1.0;

/// log2 of the bound on an error at the failure limit of the parameters.
fn bound<B: Backend>(context: &Context<B>, noise: Noise) -> f64 {
    noise.bound(context.params().log_n(), context.params().failure_limit().log2_failure())
}

/// A way down: multiply by a public constant, then switch to a level; with the error and factor it ends with.
pub(super) struct Move {
    constant: BigInt,
    /// The error between the two steps, which must fit the level above.
    between: Noise,
    level: usize,
    noise: Noise,
    factor: Factor,
}

impl Move {
    fn new<B: Backend>(context: &Context<B>, from: &Ciphertext<B>, level: usize, constant: BigInt) -> Result<Self> {
        let params = context.params();
        let t = params.t().value();
        let mut noise = from.noise();
        if !constant.is_one() {
            let size = log2_biguint(constant.magnitude());
            noise = noise.times(size).plus(noise::message_product(size));
        }
        let between = noise;
        let mut factor = from.header().times(&crate::exact::residue(&constant, t), t);
        if level < from.level() {
            let dropped = params.log2_modulus(from.level())? - params.log2_modulus(level)?;
            let rounding = params.rlwe().rounding_noise(from.components());
            noise = noise.times(-dropped).plus_switching(rounding).plus(noise::message_switch());
            factor = factor.over(&context.params().divisor_mod_t(from.level(), level)?, t);
        }
        Ok(Self { constant, between, level, noise, factor })
    }

    /// To `level` and exactly `factor`.
    pub(super) fn to_factor<B: Backend>(
        context: &Context<B>,
        from: &Ciphertext<B>,
        level: usize,
        factor: &Factor,
    ) -> Result<Self> {
        let t = context.params().t().value();
        let dropped = context.params().divisor_mod_t(from.level(), level)?;
        let constant = factor.times(&dropped, t).over(from.header().value(), t);
        Self::new(context, from, level, centred(constant.value(), t))
    }

    /// To `level`: to its canonical factor where that costs almost no noise, or where the chain allows for it, else
    /// without a constant.
    fn to_level<B: Backend>(context: &Context<B>, from: &Ciphertext<B>, level: usize) -> Result<Self> {
        let plain = Self::new(context, from, level, BigInt::one())?;
        if level == from.level() {
            return Ok(plain);
        }
        let canonical = Self::to_factor(context, from, level, context.tables().canonical(level))?;
        let most = match context.management().levels {
            Levels::Certified => CANONICAL_COST,
            Levels::Static => f64::INFINITY,
        };
        let cost = canonical.bound(context) - plain.bound(context);
        Ok(if canonical.fits(context, from) && cost <= most { canonical } else { plain })
    }

    fn bound<B: Backend>(&self, context: &Context<B>) -> f64 {
        bound(context, self.noise)
    }

    /// Whether the error between the two steps fits the level above.
    fn fits<B: Backend>(&self, context: &Context<B>, from: &Ciphertext<B>) -> bool {
        require_room(context.params(), self.between, from.level()).is_ok()
    }

    fn is_nothing<B: Backend>(&self, from: &Ciphertext<B>) -> bool {
        self.level == from.level() && self.constant.is_one()
    }

    /// Carries it out.
    pub(super) fn apply<'a, B: Backend>(self, context: &Context<B>, from: &'a Ciphertext<B>) -> Result<Operand<'a, B>> {
        if self.is_nothing(from) {
            return Ok(Operand::Given(from));
        }
        require_room(context.params(), self.between, from.level())?;
        let rlwe = context.rlwe();
        let inner = match (self.constant.is_one(), self.level < from.level()) {
            (true, _) => from.inner().mod_switch_to(rlwe, self.level)?,
            (false, true) => times_integer(context, from, &self.constant)?.mod_switch_to(rlwe, self.level)?,
            (false, false) => times_integer(context, from, &self.constant)?,
        };
        let moved = Ciphertext::new(inner.assume_noise(self.noise), self.factor);
        Ok(Operand::Brought(moved.certified(context, Operation::Descent)?))
    }
}

pub(super) fn mod_switch_to<B: Backend>(
    context: &Context<B>,
    ciphertext: &Ciphertext<B>,
    level: usize,
) -> Result<Ciphertext<B>> {
    if level >= ciphertext.level() {
        let top = context.params().top_level();
        return Err(
            synchromesh_rlwe::Error::Level { needed: level.saturating_add(1), have: ciphertext.level(), top }.into()
        );
    }
    Move::to_level(context, ciphertext, level)?.apply(context, ciphertext)?.into_owned(context)
}

/// One level and one factor for a sum: the higher operand comes down, and both are multiplied by the constants (mostly
/// 1 for one of them) that leave the least noise.
pub(super) fn align<'a, B: Backend>(
    context: &Context<B>,
    a: &'a Ciphertext<B>,
    b: &'a Ciphertext<B>,
) -> Result<[Operand<'a, B>; 2]> {
    if a.level() == b.level() && a.header() == b.header() {
        return Ok([Operand::Given(a), Operand::Given(b)]);
    }
    let params = context.params();
    let (t, level) = (params.t().value(), a.level().min(b.level()));
    let mut best: Option<(f64, [Move; 2])> = None;
    for (c, d) in equalisers(&switched_factor(context, a, level)?, &switched_factor(context, b, level)?, t) {
        let moves = [Move::new(context, a, level, c)?, Move::new(context, b, level, d)?];
        let fits = moves[0].fits(context, a) && moves[1].fits(context, b);
        let total = rlwe_noise::log2_add(moves[0].bound(context), moves[1].bound(context));
        let cost = if fits { total } else { f64::INFINITY };
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, moves));
        }
    }
    match best {
        Some((_, [left, right])) => Ok([left.apply(context, a)?, right.apply(context, b)?]),
        None => Ok([Operand::Given(a), Operand::Given(b)]),
    }
}

/// The error of c x for a constant c, or for a polynomial of any size in place of none.
fn weighted<B: Backend>(context: &Context<B>, noise: Noise, c: Option<&BigInt>) -> Noise {
    let params = context.params();
    let Some(c) = c else {
        let half = log2_biguint(params.t().value()) - 1.0;
        let product = noise.times_message(params.log_n(), half);
        return product.plus(noise::message_product(half + f64::from(params.log_n())));
    };
    let size = log2_biguint(c.magnitude());
    noise.times(size).plus(noise::message_product(size))
}

/// A way for a term of a sum, and the unit that is joined to its constant.
type Equal = (Move, BigUint);

/// Terms of a weighted sum at one level with one factor, that of a term or, a level below all of them, the canonical
/// one: whichever leaves the most room. A term whose factor differs has the quotient joined to its constant.
pub(super) fn equalise<'a, B: Backend>(
    context: &Context<B>,
    terms: &[(&'a Ciphertext<B>, Option<BigInt>)],
) -> Result<Equalised<'a, Bgv, B>> {
    let params = context.params();
    let t = params.t().value();
    let lowest = terms.iter().map(|(x, _)| x.level()).min().unwrap_or(0);
    let mut targets = Vec::new();
    for (x, _) in terms {
        let factor = Move::to_level(context, x, lowest)?.factor;
        if !targets.contains(&(lowest, factor.clone())) {
            targets.push((lowest, factor));
        }
    }
    if targets.len() > 1 && lowest > 0 {
        targets.push((lowest - 1, context.tables().canonical(lowest - 1).clone()));
    }
    let mut best: Option<(f64, Factor, Vec<Equal>)> = None;
    for (level, target) in targets {
        let (mut total, mut fits, mut moves) = (Noise::ZERO, true, Vec::with_capacity(terms.len()));
        for (x, c) in terms {
            let canonical = (level < x.level()).then(|| Move::to_factor(context, x, level, &target)).transpose()?;
            let direct = canonical.filter(|m| m.fits(context, x));
            let moved = match direct {
                Some(moved) => moved,
                None => Move::to_level(context, x, level)?,
            };
            let unit = target.over(moved.factor.value(), t).value().clone();
            let c = c.as_ref().map(|c| centred(&crate::exact::residue(&(c * BigInt::from(unit.clone())), t), t));
            total = total.sum(weighted(context, moved.noise, c.as_ref()));
            fits &= moved.fits(context, x);
            moves.push((moved, unit));
        }
        let bound = bound(context, total);
        let left = if fits { Bgv::room(params, level)? - bound } else { f64::NEG_INFINITY };
        if best.as_ref().is_none_or(|(most, ..)| left > *most) {
            best = Some((left, target, moves));
        }
    }
    let Some((_, factor, moves)) = best else { return Ok((Factor::new(BigUint::one(), t), Vec::new())) };
    let apply = |((moved, unit), (x, _)): (Equal, &(&'a Ciphertext<B>, _))| Ok((moved.apply(context, x)?, unit));
    Ok((factor, moves.into_iter().zip(terms).map(apply).collect::<Result<_>>()?))
}

/// A product to come: what happens to its operands, and its error.
struct Product {
    moves: [Move; 2],
    error: Noise,
}

impl Product {
    /// The product of a and b at `level`; with the factor `target`, if one is given.
    fn new<B: Backend>(
        context: &Context<B>,
        [a, b]: [&Ciphertext<B>; 2],
        level: usize,
        target: Option<&Factor>,
    ) -> Result<Self> {
        let t = context.params().t().value();
        let same = std::ptr::eq(a, b);
        let plain = Self::of(context, [Move::to_level(context, a, level)?, Move::to_level(context, b, level)?], same);
        let Some(target) = target.filter(|&f| &plain.factor(t) != f) else { return Ok(plain) };
        let [first, second] = &plain.moves;
        let correct = |x, other: &Move| Move::to_factor(context, x, level, &target.over(other.factor.value(), t));
        let corrected_a = Self::of(context, [correct(a, second)?, Move::to_level(context, b, level)?], same);
        let corrected_b = Self::of(context, [Move::to_level(context, a, level)?, correct(b, first)?], same);
        let bound = |product: &Self| bound(context, product.error);
        Ok(if bound(&corrected_a) <= bound(&corrected_b) { corrected_a } else { corrected_b })
    }

    fn of<B: Backend>(context: &Context<B>, moves: [Move; 2], same: bool) -> Self {
        let params = context.params();
        let log2_t = log2_biguint(params.t().value());
        let error = noise::product_of(params.log_n(), log2_t, moves[0].noise, moves[1].noise, same);
        Self { moves, error }
    }

    fn factor(&self, t: &BigUint) -> Factor {
        self.moves[0].factor.times(self.moves[1].factor.value(), t)
    }
}

/// Products with one factor at one level, and the error of their sum.
struct Sum {
    products: Vec<Product>,
    error: Noise,
}

impl Sum {
    fn new<B: Backend>(context: &Context<B>, pairs: &[[&Ciphertext<B>; 2]], level: usize) -> Result<Self> {
        let t = context.params().t().value();
        let mut products: Vec<Product> = Vec::with_capacity(pairs.len());
        let mut error = Noise::ZERO;
        for &pair in pairs {
            let target = products.first().map(|first| first.factor(t));
            let product = Product::new(context, pair, level, target.as_ref())?;
            let carry = if products.is_empty() { Noise::ZERO } else { noise::sum() };
            error = error.sum(product.error).plus(carry);
            products.push(product);
        }
        Ok(Self { products, error })
    }

    /// The sum at the level that the context's management names: one below the lowest operand, or where it leaves the
    /// most room (ePrint 2021/204, section 4, with the certificates in place of constant noise).
    fn placed<B: Backend>(context: &Context<B>, pairs: &[[&Ciphertext<B>; 2]]) -> Result<(usize, Self)> {
        let params = context.params();
        let lowest = pairs.iter().flatten().map(|x| x.level()).min().unwrap_or(0);
        if context.management().levels == Levels::Static {
            let top = params.top_level();
            let below = lowest.checked_sub(1).ok_or(synchromesh_rlwe::Error::Level { needed: 1, have: 0, top })?;
            return Ok((below, Self::new(context, pairs, below)?));
        }
        let mut best: Option<(f64, usize, Self)> = None;
        for level in (0..=lowest).rev() {
            let sum = Self::new(context, pairs, level)?;
            let left = Bgv::room(params, level)? - bound(context, sum.error);
            if best.as_ref().is_some_and(|(most, ..)| left <= *most) {
                break;
            }
            best = Some((left, level, sum));
        }
        match best {
            Some((_, level, sum)) => Ok((level, sum)),
            None => Ok((lowest, Self::new(context, pairs, lowest)?)),
        }
    }
}

/// The sum of products (a_0 b_0, a_0 b_1 + a_1 b_0, a_1 b_1) in slots, all at one level; the factors multiply.
pub(super) fn tensor<B: Backend>(context: &Context<B>, pairs: &[[&Ciphertext<B>; 2]]) -> Result<Ciphertext<B>> {
    let Some(first) = pairs.first() else {
        return Err(crate::Error::argument("a sum of products needs at least one product"));
    };
    let (level, sum) = Sum::placed(context, pairs)?;
    let (params, backend, t) = (context.params(), context.backend(), context.params().t().value());
    let factor = sum.products[0].factor(t);
    let mut parts: Vec<Poly<B, Ntt>> = Vec::with_capacity(3);
    for (product, [a, b]) in sum.products.into_iter().zip(pairs) {
        let [left, right] = product.moves;
        let (a, b) = (left.apply(context, a)?, right.apply(context, b)?);
        let [a, b] = [&a, &b].map(|x| [0, 1].map(|i| &x.inner().parts()[i]));
        match &mut parts[..] {
            [first, middle, last] => Poly::tensor_acc(backend, a, b, [first, middle, last])?,
            _ => parts = Vec::from(Poly::tensor(backend, a, b)?),
        }
    }
    let inner = synchromesh_rlwe::Ciphertext::new(params.rlwe(), parts, level, first[0].inner().key(), sum.error)?;
    Ok(Ciphertext::new(inner, factor))
}

/// The factor after a switch from one level to another.
fn switched_factor<B: Backend>(context: &Context<B>, from: &Ciphertext<B>, level: usize) -> Result<Factor> {
    let params = context.params();
    Ok(from.header().over(&params.divisor_mod_t(from.level(), level)?, params.t().value()))
}
