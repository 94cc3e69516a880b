//! Sums of rotations times public polynomials, by baby and giant steps with double hoisting (ePrint 2020/1203): the input
//! is decomposed once for all baby steps, products with the polynomials are summed modulo QP, each giant step divides one
//! component by P, and the result is divided by P once.
//!
//! Giant steps are nested, rot_0(s_0 + rot_1(s_1 + rot_2(...))) with s_g = sum_i f_gi rot_i(x): as many switches as
//! rot_0(s_0) + rot_01(s_1) + ..., and steps of equal distance need one key.

use synchromesh_ring::{Backend, IndexSet, Ntt, Poly, View, ViewMut, repeated};

use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::domain::{Operand, SwitchDomain};
use crate::error::Error;
use crate::evaluation_keys::EvaluationKeys;
use crate::key_switch::{Accumulator, Accumulators, Digits, Output, Plus, RowSum, Switcher};
use crate::operations::KeySwitching;
use crate::switch_key::Source;
use crate::switch_plan::SwitchPlan;

/// Giant steps that are summed in one pass over the baby steps, which are read once for them; each takes an accumulator.
const AT_ONCE: usize = 4;

/// A baby step by its number, and the polynomial it is multiplied by, in slots on the primes of
/// [`KeySwitching::extended`]; none: 1.
pub type Term<B> = (usize, Option<Poly<B, Ntt>>);

/// One giant step as it is given.
pub struct Giant<B: Backend> {
    /// X -> X^galois, after the sum of its terms and of all giant steps that follow; 1: none.
    pub galois: usize,
    /// The terms of its sum.
    pub terms: Vec<Term<B>>,
    /// Whether its polynomials are polynomials in X^8, of which an eighth of the slots are kept.
    pub repeats: bool,
}

/// The polynomials of a run, one after another.
enum Factors<B: Backend> {
    /// All 1.
    Ones,
    /// All slots.
    Whole(B::Buffer),
    /// The words that stand for slots which repeat, see [`repeated`].
    Repeated(B::Buffer),
}

/// Baby steps next to one another in one giant step, with their polynomials.
struct Run<B: Backend> {
    first: usize,
    count: usize,
    factors: Factors<B>,
}

/// A sum of rotations, its polynomials on the device.
pub struct RotationSum<B: Backend> {
    /// For each baby step, which input it rotates and by which Galois element.
    babies: Vec<(usize, usize)>,
    giants: Vec<(usize, Vec<Run<B>>)>,
    extended: IndexSet,
    level: usize,
    params_digest: [u8; 32],
}

impl<B: Backend> RotationSum<B> {
    /// A sum for inputs at `level`, whose extended base is `extended`, its giant steps from the outermost to the innermost.
    ///
    /// # Errors
    /// [`Error::Argument`] for a baby step that is not there or a sum of nothing, [`Error::Ring`] for a polynomial on
    /// other primes.
    pub fn new(
        context: &Context<B>,
        level: usize,
        extended: IndexSet,
        babies: Vec<(usize, usize)>,
        giants: Vec<Giant<B>>,
    ) -> Result<Self, Error> {
        let mut compiled = Vec::with_capacity(giants.len());
        for giant in giants {
            let runs = Run::of(context, &extended, babies.len(), (giant.terms, giant.repeats))?;
            compiled.push((giant.galois, runs));
        }
        if compiled.iter().all(|(_, runs): &(usize, Vec<Run<B>>)| runs.is_empty()) {
            return Err(Error::argument("a sum of rotations needs at least one term"));
        }
        let params_digest = *context.params().digest();
        Ok(Self { babies, giants: compiled, extended, level, params_digest })
    }

    /// As [`Self::new`], with giant steps by their Galois elements alone, whose terms are made when they are summed:
    /// [`KeySwitching::rotation_sum_of`].
    #[must_use]
    pub fn outline(
        context: &Context<B>,
        level: usize,
        extended: IndexSet,
        babies: Vec<(usize, usize)>,
        giants: impl IntoIterator<Item = usize>,
    ) -> Self {
        let giants = giants.into_iter().map(|galois| (galois, Vec::new())).collect();
        Self { babies, giants, extended, level, params_digest: *context.params().digest() }
    }

    /// The level of its inputs.
    #[must_use]
    pub const fn level(&self) -> usize {
        self.level
    }

    /// Galois elements that keys are needed for.
    #[must_use]
    pub fn elements(&self) -> Vec<usize> {
        let all = self.babies.iter().map(|(_, g)| *g).chain(self.giants.iter().map(|(g, _)| *g));
        let mut all: Vec<usize> = all.filter(|&g| g != 1).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Bytes of its polynomials on the device.
    #[must_use]
    pub fn bytes(&self, n: usize) -> usize {
        let words = |run: &Run<B>| match run.factors {
            Factors::Ones => 0,
            Factors::Whole(_) => run.count * n,
            Factors::Repeated(_) => run.count * repeated::words(n),
        };
        let all: usize = self.giants.iter().flat_map(|(_, runs)| runs).map(words).sum();
        8 * self.extended.len() * all
    }
}

impl<B: Backend> Run<B> {
    /// The terms of a giant step, those next to one another together.
    fn of(
        context: &Context<B>,
        extended: &IndexSet,
        babies: usize,
        (mut terms, repeats): (Vec<Term<B>>, bool),
    ) -> Result<Vec<Self>, Error> {
        terms.sort_by_key(|(baby, _)| *baby);
        let mut runs: Vec<Vec<Term<B>>> = Vec::new();
        for (baby, factor) in terms {
            if baby >= babies {
                return Err(Error::argument(format!("baby step {baby} of {babies}")));
            }
            if let Some(factor) = &factor {
                factor.require(extended)?;
            }
            let last = runs.last_mut().filter(|run| {
                let (at, kind) = (run[run.len() - 1].0, run[0].1.is_some());
                at + 1 == baby && kind == factor.is_some()
            });
            match last {
                Some(run) => run.push((baby, factor)),
                None => runs.push(vec![(baby, factor)]),
            }
        }
        runs.into_iter().map(|run| Self::new(context, extended.len(), run, repeats)).collect()
    }

    fn new(context: &Context<B>, width: usize, run: Vec<Term<B>>, repeats: bool) -> Result<Self, Error> {
        let (first, count) = (run[0].0, run.len());
        if run[0].1.is_none() {
            return Ok(Self { first, count, factors: Factors::Ones });
        }
        if let Some(buffer) =
            if repeats && context.backend().keeps_repeated() { Self::packed(context, width, &run)? } else { None }
        {
            return Ok(Self { first, count, factors: Factors::Repeated(buffer) });
        }
        let mut buffer = context.backend().alloc(count * width)?;
        let from: Vec<usize> = (0..width).collect();
        for (at, factor) in run.into_iter().filter_map(|(_, factor)| factor).enumerate() {
            let to: Vec<usize> = from.iter().map(|r| at * width + r).collect();
            let (src, dst) = (View::new(factor.buffer(), &from), ViewMut::new(&mut buffer, &to));
            context.backend().copy(src, dst)?;
        }
        Ok(Self { first, count, factors: Factors::Whole(buffer) })
    }

    /// Its products, to be added to `into`, which comes back where its polynomials are all 1.
    fn products(&self, into: Option<Accumulator<B>>) -> Result<RowSum<'_, B>, Option<Accumulator<B>>> {
        let (factors, repeats) = match &self.factors {
            Factors::Whole(factors) => (factors, false),
            Factors::Repeated(factors) => (factors, true),
            Factors::Ones => return Err(into),
        };
        Ok(RowSum { factors, repeats, first: self.first, count: self.count, into })
    }

    /// The words that stand for the slots of all polynomials; none where slots do not repeat after all.
    fn packed(context: &Context<B>, width: usize, run: &[Term<B>]) -> Result<Option<B::Buffer>, Error> {
        let (backend, n) = (context.backend(), context.params().ring().n());
        let each = repeated::words(n);
        let mut buffer = backend.alloc((run.len() * width * each).div_ceil(n))?;
        if !B::HOLDS_NUMBERS {
            return Ok(Some(buffer));
        }
        let (mut row, mut words) = (vec![0; n], Vec::with_capacity(run.len() * width * each));
        for factor in run.iter().filter_map(|(_, factor)| factor.as_ref()) {
            for limb in 0..width {
                backend.download(factor.buffer(), limb, &mut row)?;
                let Some(kept) = repeated::pack(&row) else { return Ok(None) };
                words.extend(kept);
            }
        }
        words.resize(words.len().next_multiple_of(n), 0);
        for (at, row) in words.chunks(n).enumerate() {
            backend.upload(row, &mut buffer, at)?;
        }
        Ok(Some(buffer))
    }
}

impl<B: Backend> KeySwitching<B> {
    /// The primes that the polynomials of a [`RotationSum`] at `level` live on: those of the level, and P, which is that
    /// of the second secret key where ciphertexts of the level are under it.
    ///
    /// # Errors
    /// As [`Context::switcher`].
    pub fn extended(&self, context: &Context<B>, level: usize) -> Result<IndexSet, Error> {
        let (_, plan) = self.under(self.key_at(context.params(), level), level)?;
        Ok(Self::switcher(context, plan, level, level)?.extended().clone())
    }

    /// The components of the sum, divided down to level `to` in the same step; the scheme answers for the certificate.
    ///
    /// # Errors
    /// [`Error::Level`] for inputs at another level, [`Error::Components`], [`Error::MissingKey`],
    /// [`Error::KeysDiffer`], [`Error::ParamsDiffer`] for a sum made for other parameters, [`Error::Argument`] for one made for
    /// the special primes of another secret key, or when the device fails.
    pub fn rotation_sum<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        inputs: &[&Ciphertext<B, D>],
        sum: &RotationSum<B>,
        to: usize,
    ) -> Result<[Poly<B, D>; 2], Error> {
        // Sums of the giant steps that come next, the first of them last.
        let mut ahead: Vec<Accumulator<B>> = Vec::new();
        self.summed(context, inputs, sum, to, |babies, switcher, at, total| {
            if ahead.is_empty() {
                ahead = babies.sums_ahead(context, switcher, &sum.giants[..=at])?;
            }
            let Some(mut own) = ahead.pop() else {
                return babies.sum(context, switcher, &sum.giants[at].1, total);
            };
            total.map_or(Ok(()), |total| switcher.add(context, &mut own, &total, None))?;
            Ok(Some(own))
        })
    }

    /// As [`Self::rotation_sum`], where `terms` makes those of a giant step, from the last to the first, when they are
    /// summed: never more of them are held than those of one step.
    ///
    /// # Errors
    /// As [`Self::rotation_sum`] and [`RotationSum::new`], and those of `terms`.
    pub fn rotation_sum_of<D: SwitchDomain, E: From<Error>>(
        &self,
        context: &Context<B>,
        inputs: &[&Ciphertext<B, D>],
        sum: &RotationSum<B>,
        to: usize,
        mut terms: impl FnMut(usize) -> Result<Vec<Term<B>>, E>,
    ) -> Result<[Poly<B, D>; 2], E> {
        self.summed(context, inputs, sum, to, |babies, switcher, at, total| {
            let runs = Run::of(context, &sum.extended, sum.babies.len(), (terms(at)?, false))?;
            Ok(babies.sum(context, switcher, &runs, total)?)
        })
    }

    /// The components of the sum, where `giant` adds the terms of a giant step to what there is.
    fn summed<D: SwitchDomain, E: From<Error>>(
        &self,
        context: &Context<B>,
        inputs: &[&Ciphertext<B, D>],
        sum: &RotationSum<B>,
        to: usize,
        mut giant: impl FnMut(&Babies<B>, &Switcher<B>, usize, Option<Accumulator<B>>) -> Result<Option<Accumulator<B>>, E>,
    ) -> Result<[Poly<B, D>; 2], E> {
        context.params().require_digest(&sum.params_digest)?;
        let top = context.params().top_level();
        let under = inputs.first().map_or_else(|| self.key_at(context.params(), sum.level), |input| input.key());
        for input in inputs {
            input.require_components(2)?;
            self.own(context, input)?;
            under.require(input.key())?;
            if input.level() != sum.level {
                return Err(Error::Level { needed: sum.level, have: input.level(), top }.into());
            }
        }
        let (keys, plan) = self.under(under, sum.level)?;
        let switch = Switch { keys, plan, switcher: &*Self::switcher(context, plan, sum.level, sum.level)? };
        if switch.switcher.extended() != &sum.extended {
            let (made, have) = (&sum.extended, switch.switcher.extended());
            return Err(Error::argument(format!(
                "the sum of rotations is made for the primes {made:?}, its inputs are switched on {have:?}: bring them \
                 under the secret key of their level first"
            ))
            .into());
        }
        let babies = switch.baby_steps(context, inputs, sum)?;
        let mut total: Option<Accumulator<B>> = None;
        for (at, (galois, _)) in sum.giants.iter().enumerate().rev() {
            let inner = giant(&babies, switch.switcher, at, total.take())?;
            total = match inner {
                Some(inner) if *galois != 1 => Some(switch.giant_step(context, inner, *galois)?),
                inner => inner,
            };
        }
        let total = match total {
            Some(total) => total,
            None => switch.switcher.zero(context)?,
        };
        let down = Self::switcher(context, plan, sum.level, to)?;
        let output = Output { ntt: D::ntt_primes(down.target()), galois: 1 };
        Ok(down.mod_down(context, total, [None, None], &output)?.map(D::take))
    }
}

/// How the inputs of one sum are switched: by which keys, which plan, and that plan compiled for their level.
struct Switch<'a, B: Backend> {
    keys: &'a EvaluationKeys<B>,
    plan: &'a SwitchPlan,
    switcher: &'a Switcher<B>,
}

impl<B: Backend> Switch<'_, B> {
    /// All baby steps modulo QP, from one decomposition of each input.
    fn baby_steps<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        inputs: &[&Ciphertext<B, D>],
        sum: &RotationSum<B>,
    ) -> Result<Babies<B>, Error> {
        let (backend, switcher) = (context.backend(), self.switcher);
        let mut all = switcher.accumulators(context, sum.babies.len())?;
        for (at, input) in inputs.iter().enumerate() {
            let steps: Vec<(usize, usize)> =
                sum.babies.iter().enumerate().filter(|(_, (i, _))| *i == at).map(|(row, (_, g))| (row, *g)).collect();
            if steps.is_empty() {
                continue;
            }
            let c0 = D::to_ntt(backend, &input.parts()[0])?;
            let rotates = steps.iter().any(|(_, g)| *g != 1);
            let mut digits = if rotates {
                let digits = switcher.decompose(context, D::operand(&input.parts()[1]))?;
                Some(switcher.hoist(context, digits)?)
            } else {
                None
            };
            for (row, g) in steps {
                if let Some(digits) = digits.as_mut().filter(|_| g != 1) {
                    let key = self.keys.prepared(context, Source::Galois(g), self.plan)?;
                    let product = (Digits::Hoisted(digits), &*key);
                    switcher.rotated_product(context, product, Plus::Lifted(&c0), g, &mut all, row)?;
                } else {
                    let mut own = switcher.zero(context)?;
                    let c1 = D::to_ntt(backend, &input.parts()[1])?;
                    switcher.add_lifted(context, &mut own, 0, &c0)?;
                    switcher.add_lifted(context, &mut own, 1, &c1)?;
                    switcher.rotate_into(context, &own, 1, &mut all, row)?;
                }
            }
        }
        Ok(Babies(all))
    }

    /// Divides the second part by P, switches its key, and rotates.
    fn giant_step(
        &self,
        context: &Context<B>,
        mut inner: Accumulator<B>,
        galois: usize,
    ) -> Result<Accumulator<B>, Error> {
        let switcher = self.switcher;
        let key = self.keys.prepared(context, Source::Galois(galois), self.plan)?;
        let second = switcher.mod_down_part(context, &mut inner, 1)?;
        let digits = switcher.decompose(context, Operand::Coeff(&second))?;
        switcher.rotated_accumulator(context, (Digits::Once(digits), &*key), Plus::Part0(&inner), galois)
    }
}

/// Every baby step.
struct Babies<B: Backend>(Accumulators<B>);

impl<B: Backend> Babies<B> {
    /// Sums of the last giant steps, at most [`AT_ONCE`], of which each is one run of products: of one alone none.
    fn sums_ahead(
        &self,
        context: &Context<B>,
        switcher: &Switcher<B>,
        giants: &[(usize, Vec<Run<B>>)],
    ) -> Result<Vec<Accumulator<B>>, Error> {
        let one = |(_, runs): &'_ (usize, Vec<Run<B>>)| runs.len() == 1 && !matches!(runs[0].factors, Factors::Ones);
        let count = giants.iter().rev().take(AT_ONCE).take_while(|giant| one(giant)).count();
        if count < 2 {
            return Ok(Vec::new());
        }
        let runs = giants[giants.len() - count..].iter().flat_map(|(_, runs)| runs);
        let sums = runs.filter_map(|run| run.products(None).ok()).collect();
        switcher.multiply_sums(context, &self.0, sums)
    }

    /// The terms of one giant step, added to what there is.
    fn sum(
        &self,
        context: &Context<B>,
        switcher: &Switcher<B>,
        runs: &[Run<B>],
        mut sum: Option<Accumulator<B>>,
    ) -> Result<Option<Accumulator<B>>, Error> {
        for run in runs {
            sum = match run.products(sum) {
                Ok(products) => switcher.multiply_sums(context, &self.0, vec![products])?.pop(),
                Err(sum) => {
                    let mut total = match sum {
                        Some(sum) => sum,
                        None => switcher.zero(context)?,
                    };
                    for row in run.first..run.first + run.count {
                        switcher.add_one(context, &mut total, &self.0, row)?;
                    }
                    Some(total)
                }
            };
        }
        Ok(sum)
    }
}
