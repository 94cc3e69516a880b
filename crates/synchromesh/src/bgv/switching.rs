//! Levels and correction factors of BGV: modulus switching, operands made equal for sums, and right before products.

use num_bigint::{BigInt, BigUint};
use num_traits::One;
use synchromesh_rlwe::noise::{self as rlwe_noise, DEFAULT_LOG2_FAILURE, Noise};
use synchromesh_rlwe::ring::Backend;

use super::factor::{Factor, equalisers};
use super::{Bgv, Ciphertext, Context, noise};
use crate::error::Result;
use crate::exact::{Scheme, centred, log2_biguint, require_room, times_integer};

type Operand<'a, B> = crate::exact::Operand<'a, Bgv, B>;

/// Bits of noise that a canonical factor may cost when a level is dropped.
const CANONICAL_COST: f64 = 1.0;

/// A way down: multiply by a public constant, then switch to a level; with the error and factor it ends with.
struct Move {
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
            let rounding = rlwe_noise::rounding(params.n(), from.components());
            noise = noise.times(-dropped).plus(rounding).plus(noise::message_switch());
            factor = factor.over(&dropped_product(context, from.level(), level)?, t);
        }
        Ok(Self { constant, between, level, noise, factor })
    }

    /// To `level` and exactly `factor`.
    fn to_factor<B: Backend>(
        context: &Context<B>,
        from: &Ciphertext<B>,
        level: usize,
        factor: &Factor,
    ) -> Result<Self> {
        let t = context.params().t().value();
        let dropped = dropped_product(context, from.level(), level)?;
        let constant = factor.times(&dropped, t).over(from.header().value(), t);
        Self::new(context, from, level, centred(constant.value(), t))
    }

    /// To `level`: to its canonical factor where that costs almost no noise, else without a constant.
    fn to_level<B: Backend>(context: &Context<B>, from: &Ciphertext<B>, level: usize) -> Result<Self> {
        let plain = Self::new(context, from, level, BigInt::one())?;
        if level == from.level() {
            return Ok(plain);
        }
        let canonical = Self::to_factor(context, from, level, context.tables().canonical(level))?;
        let cost = canonical.bound(context) - plain.bound(context);
        Ok(if canonical.fits(context, from) && cost <= CANONICAL_COST { canonical } else { plain })
    }

    fn bound<B: Backend>(&self, context: &Context<B>) -> f64 {
        self.noise.bound(context.params().log_n(), DEFAULT_LOG2_FAILURE)
    }

    /// Whether the error between the two steps fits the level above.
    fn fits<B: Backend>(&self, context: &Context<B>, from: &Ciphertext<B>) -> bool {
        require_room(context.params(), self.between, from.level()).is_ok()
    }

    fn is_nothing<B: Backend>(&self, from: &Ciphertext<B>) -> bool {
        self.level == from.level() && self.constant.is_one()
    }

    /// Carries it out.
    fn apply<'a, B: Backend>(self, context: &Context<B>, from: &'a Ciphertext<B>) -> Result<Operand<'a, B>> {
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
        let moved = Ciphertext::new(inner.with_noise(self.noise), self.factor);
        Ok(Operand::Brought(moved.certified(context.params())?))
    }
}

/// The product of the primes between two levels.
fn dropped_product<B: Backend>(context: &Context<B>, from: usize, to: usize) -> Result<BigUint> {
    let params = context.params().rlwe();
    Ok(params.ring().product(&params.level(from)?.without(params.level(to)?)))
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
    let switched =
        |x: &Ciphertext<B>| -> Result<Factor> { Ok(x.header().over(&dropped_product(context, x.level(), level)?, t)) };
    let mut best: Option<(f64, [Move; 2])> = None;
    for (c, d) in equalisers(&switched(a)?, &switched(b)?, t) {
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

/// Both operands of a product at the level where it leaves the most room (ePrint 2021/204, section 4, with the
/// certificates in place of constant noise), and the product's error.
fn before_product<'a, B: Backend>(
    context: &Context<B>,
    a: &'a Ciphertext<B>,
    b: &'a Ciphertext<B>,
) -> Result<([Operand<'a, B>; 2], Noise)> {
    let params = context.params();
    let mut best: Option<(f64, [Move; 2], Noise)> = None;
    for level in (0..=a.level().min(b.level())).rev() {
        let moves = [Move::to_level(context, a, level)?, Move::to_level(context, b, level)?];
        let error = noise::product(params, moves[0].noise, moves[1].noise);
        let left = Bgv::room(params, level)? - error.bound(params.log_n(), DEFAULT_LOG2_FAILURE);
        if best.as_ref().is_some_and(|(most, ..)| left <= *most) {
            break;
        }
        best = Some((left, moves, error));
    }
    let Some((_, [left, right], error)) = best else {
        return Ok(([Operand::Given(a), Operand::Given(b)], noise::product(params, a.noise(), b.noise())));
    };
    Ok(([left.apply(context, a)?, right.apply(context, b)?], error))
}

/// (a_0 b_0, a_0 b_1 + a_1 b_0, a_1 b_1) in slots; the factors multiply.
pub(super) fn tensor<B: Backend>(context: &Context<B>, a: &Ciphertext<B>, b: &Ciphertext<B>) -> Result<Ciphertext<B>> {
    let ([a, b], error) = before_product(context, a, b)?;
    let (params, backend) = (context.params(), context.backend());
    let ([a0, a1], [b0, b1]) = ([0, 1].map(|i| &a.inner().parts()[i]), [0, 1].map(|i| &b.inner().parts()[i]));
    let mut middle = a0.mul(backend, b1)?;
    middle.mul_acc(backend, a1, b0)?;
    let parts = vec![a0.mul(backend, b0)?, middle, a1.mul(backend, b1)?];
    let inner = synchromesh_rlwe::Ciphertext::new(params.rlwe(), parts, a.level(), a.inner().key(), error)?;
    Ok(Ciphertext::new(inner, a.header().times(b.header().value(), params.t().value())))
}
