//! BFV and BGV in the search for parameters: the chain with the fewest bits at a degree, judged by a run without data.

use std::marker::PhantomData;
use std::sync::Arc;

use synchromesh_rlwe::ring::Backend;
use synchromesh_rlwe::{Randomness, Security, SwitchPlan};

use super::circuit::described;
use super::search::{Chain, Family};
use super::shape::{Shape, split, split_exactly};
use super::static_bgv::{StaticChain, StaticRule};
use super::trace::{Trace, Traced};
use super::{DEFAULT_T, Description, SchemeName, SchemeParams, dry, smallest, smallest_near, too_small};
use crate::cost::recorder;
use crate::error::{Error, Result};
use crate::exact::{Context, Evaluator, Params, ParamsLiteral, PrimeLists, Rotations, Scheme};
use crate::plain_modulus::PlainModulus;

/// Most bits one level may take.
const MOST_LEVEL_BITS: u32 = 700;

/// Depth of the chain from which levels of deeper ones are guessed: they take as many bits or a few more.
const SHALLOW: usize = 6;

/// Fewest bits of a level.
fn least_bits(log_n: u32) -> u32 {
    (log_n + 8).max(20)
}

/// A description for the exact scheme S.
pub(super) struct Exact<'a, S> {
    description: &'a Description,
    t: PlainModulus,
    scheme: PhantomData<S>,
}

impl<'a, S: Scheme> Exact<'a, S> {
    pub(super) fn new(description: &'a Description) -> Result<Self> {
        let t = description.t.as_deref().unwrap_or(DEFAULT_T).parse()?;
        Ok(Self { description, t, scheme: PhantomData })
    }

    fn literal(&self, log_n: u32, shape: &Shape, omega: usize, p_bits: &[u32], security: Security) -> ParamsLiteral {
        ParamsLiteral {
            log_n,
            t: self.t.to_string(),
            q_bits: shape.q_bits.clone(),
            p_bits: p_bits.to_vec(),
            level_limbs: shape.level_limbs.clone(),
            schedule: shape.schedule.clone(),
            omega,
            security,
            primes: None,
        }
    }

    /// The chain of the static rule of BGV.
    fn static_chain(&self, log_n: u32) -> Result<std::result::Result<Chain, String>> {
        let Description { depth, additions, prime_switching: packing, .. } = *self.description;
        let switches = usize::from(self.description.rotates());
        let rule = StaticRule {
            first_additions: additions,
            first_switches: switches,
            additions,
            switches,
            packing,
            security: Security::Insecure,
            ..StaticRule::new(self.t.to_string(), depth)
        };
        let chain = match rule.plan_at(log_n) {
            Ok(plan) => plan.chain,
            Err(e @ Error::Primes(_)) => return Ok(Err(format!("at N = 2^{log_n} the static rule: {e}"))),
            Err(e) => return Err(e),
        };
        let StaticChain { base, level, first, q_bits, level_limbs, schedule, .. } = chain;
        let explain = vec![format!(
            "{} levels by the static rule: level 0 exceeds {base:.1} bits, each multiplication takes {level:.1}, the first \
             switch of fresh ciphertexts {first:.1}; {} bits in all",
            depth + 2,
            q_bits.iter().sum::<u32>(),
        )];
        let mut shape = Shape { q_bits, level_limbs, schedule, width: self.description.width() };
        if (1..=depth).contains(&self.description.leading_levels) {
            shape.schedule = shape.schedule.with_second_key(self.description.leading_levels);
        }
        Ok(Ok(Chain { shape, log_scale: 0, explain }))
    }

    /// Bits of level 0 to try at the most.
    fn slacks(&self, log_n: u32) -> [u32; 3] {
        let hidden = self.t.bits() + self.description.hiding_bits();
        [log_n + 24, 2 * log_n + 40, 3 * log_n + 60].map(|slack| hidden + slack)
    }

    /// Bits that a product multiplies errors by at the least: t sqrt(N) times the error of a rounding, sqrt(N) / 4.1.
    fn least_level(&self, log_n: u32) -> u32 {
        self.t.bits() + log_n - 4
    }

    /// The fewest bits of a level above one of `base` bits, in few trials where they are near `guess`.
    fn level(&self, log_n: u32, base: u32, switches: usize, guess: Option<u32>) -> Result<Option<u32>> {
        let least = least_bits(log_n);
        if self.description.depth == 0 {
            return Ok(Some(least));
        }
        let most = (self.t.bits() + 4 * log_n + 60).min(MOST_LEVEL_BITS);
        let guess = match guess {
            Some(guess) => guess,
            None => self.guess(log_n, base, switches)?.unwrap_or(self.least_level(log_n) + 4),
        };
        smallest_near(guess, least, most, |level| self.fits(log_n, [base, level], switches))
    }

    /// As [`Self::level`], for a shallow chain where the one wanted is deep.
    fn guess(&self, log_n: u32, base: u32, switches: usize) -> Result<Option<u32>> {
        if self.description.depth <= 2 * SHALLOW {
            return Ok(None);
        }
        let description = Description { depth: SHALLOW, ..self.description.clone() };
        let shallow = Exact::<S> { description: &description, t: self.t.clone(), scheme: PhantomData };
        shallow.level(log_n, base, switches, None)
    }

    /// Whether the circuit survives this chain, security aside.
    fn fits(&self, log_n: u32, [base, level]: [u32; 2], switches: usize) -> Result<bool> {
        let width = self.description.width();
        self.survives(log_n, &Shape::of(self.description, &split(base, width), &split(level, width)), switches)
    }

    /// The parameters of a literal, for keys and at the failure probability as the description has them.
    fn checked(&self, literal: ParamsLiteral) -> Result<Params<S>> {
        let params = Params::new(literal)?.with_failure_limit(self.description.failure);
        Ok(self.description.joint.map_or(params.clone(), |joint| params.with_joint(&joint)))
    }

    /// Whether the circuit survives a chain of this shape, security aside.
    fn survives(&self, log_n: u32, shape: &Shape, switches: usize) -> Result<bool> {
        let omega = shape.q_bits.len().min(3);
        let p_bits = shape.special(omega);
        match self.checked(self.literal(log_n, shape, omega, &p_bits, Security::Insecure)) {
            Ok(params) => Ok(self.budget(&params, switches)?.is_some()),
            Err(Error::Primes(_)) => Ok(false),
            Err(e) if too_small(&e) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// The chain of the fewest bits in the fewest primes, each a level of its own, where it has fewer primes than `levels`.
    /// Products of BFV need no level; BGV's do, and so do prime switching and a second key.
    fn fewest_primes(&self, log_n: u32, levels: &Shape, switches: usize) -> Result<Option<Shape>> {
        let Description { prime_switching, leading_levels, .. } = *self.description;
        let (bits, width) = (levels.q_bits.iter().sum::<u32>(), self.description.width());
        let fewest = bits.div_ceil(width) as usize;
        if S::NAME != SchemeName::Bfv.name()
            || prime_switching.is_some()
            || leading_levels > 0
            || fewest >= levels.q_bits.len()
        {
            return Ok(None);
        }
        let shape = |bits| {
            let q_bits = split_exactly(bits, width);
            let level_limbs = (1..=q_bits.len()).collect();
            Shape { q_bits, level_limbs, schedule: levels.schedule.clone(), width }
        };
        let most = fewest as u32 * width;
        let bits =
            smallest(bits.saturating_sub(40).max(width), most, |bits| self.survives(log_n, &shape(bits), switches))?;
        Ok(bits.map(shape))
    }

    /// Bits of noise left when the circuit has run without data, or none when a certificate fails.
    fn budget(&self, params: &Params<S>, switches: usize) -> Result<Option<f64>> {
        match self.run(params, dry(params.rlwe()), switches, None) {
            Ok(budget) => Ok((budget > 0.0).then_some(budget)),
            Err(e) if too_small(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Runs the circuit on a device; `trace` gets what happens once all keys are made.
    fn run<B: Backend>(
        &self,
        params: &Params<S>,
        device: B,
        switches: usize,
        trace: Option<&Arc<Trace>>,
    ) -> Result<f64> {
        let description = self.description;
        let context = Context::<S, _>::observed(params.clone(), device, trace.map(Trace::observer))?;
        let mut randomness = Randomness::insecure_from_number(0);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let rotates = !description.rotations.is_empty();
        let rotations = if rotates { Rotations::by([1]) } else { Rotations::none() };
        let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness)?;
        let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
        trace.inspect(|trace| trace.restart());
        let message = context.encode_coefficients(&[1i64][..])?;
        let x = described(&evaluator, description, switches, context.encrypt(&public, &message, &mut randomness)?)?;
        if let Some(joint) = &description.joint {
            return crate::exact::hidden_budget(&context, &x, &joint.widest());
        }
        context.noise_budget(&x)
    }
}

impl<S: Scheme> Family for Exact<'_, S> {
    type Params = Params<S>;

    fn slots(&self, log_n: u32) -> usize {
        if self.t.supports_slots(log_n) { 1 << log_n } else { 0 }
    }

    fn row(&self, log_n: u32) -> usize {
        1 << (log_n - 1)
    }

    /// Each level has its least bits, and the lowest holds a message; and a level of a deep chain has about as many bits as
    /// one of a shallow chain, which takes few trials.
    fn floor(&self, log_n: u32) -> Result<u32> {
        let (depth, limit) = (self.description.depth as u32, self.description.security.max_log_qp(log_n));
        let floor = depth * self.least_level(log_n) + self.t.bits();
        if floor > limit || depth as usize <= 2 * SHALLOW || self.description.static_levels {
            return Ok(floor);
        }
        let [.., widest] = self.slacks(log_n);
        let level = self.guess(log_n, widest, 1)?.map_or(0, |level| level.saturating_sub(1));
        Ok(floor.max(depth * level + self.t.bits()))
    }

    fn chain(&self, log_n: u32, switches: usize) -> Result<std::result::Result<Chain, String>> {
        if self.description.static_levels {
            return self.static_chain(log_n);
        }
        let (least, width, depth) = (least_bits(log_n), self.description.width(), self.description.depth);
        // A wide level 0 saves bits on every level and a narrow one saves its own: try three.
        let mut tried: Vec<(u32, [u32; 2], Shape)> = Vec::new();
        for widest in self.slacks(log_n) {
            // What one of them takes, the next one takes or a few bits less.
            let near = tried.last().map(|(_, sizes, _)| *sizes);
            let Some(level) = self.level(log_n, widest, switches, near.map(|[_, level]| level))? else { continue };
            let fits = |base| self.fits(log_n, [base, level], switches);
            let base = match near {
                Some([base, _]) => smallest_near(base, least, widest, fits)?,
                None => smallest(least, widest, fits)?,
            };
            let Some(base) = base else { continue };
            let shape = Shape::of(self.description, &split(base, width), &split(level, width));
            tried.push((shape.q_bits.iter().sum(), [base, level], shape));
        }
        tried.sort_by_key(|(bits, ..)| *bits);
        let Some((bits, [base, level], shape)) = tried.first().cloned() else {
            return Ok(Err(format!("at N = 2^{log_n} no chain of up to {MOST_LEVEL_BITS} bits a level decrypts")));
        };
        let other = tried.iter().find(|(_, sizes, _)| *sizes != [base, level]);
        let runner_up = other.map_or_else(String::new, |(more, [base, level], _)| {
            format!("; the runner-up, {base} and {level} bits, has {} bit(s) more", more - bits)
        });
        let explain = vec![format!(
            "{} levels: level 0 has {:?} bits, each multiplication takes {:?} bits, {bits} in all{runner_up}",
            depth + 1,
            shape.level(0),
            shape.step(),
        )];
        if let Some(even) = self.fewest_primes(log_n, &shape, switches)? {
            let (count, bits) = (even.q_bits.len(), even.q_bits.iter().sum::<u32>());
            let instead = format!("{count} primes, {bits} bits in all, instead: products of BFV take no level");
            return Ok(Ok(Chain { shape: even, log_scale: 0, explain: [explain, vec![instead]].concat() }));
        }
        Ok(Ok(Chain { shape, log_scale: 0, explain }))
    }

    fn params(&self, log_n: u32, chain: &Chain, omega: usize, p_bits: &[u32]) -> Result<Params<S>> {
        self.checked(self.literal(log_n, &chain.shape, omega, p_bits, self.description.security))
    }

    fn rlwe(params: &Params<S>) -> (&synchromesh_rlwe::Params, &SwitchPlan) {
        (params.rlwe(), params.plan())
    }

    fn literal(params: &Params<S>) -> SchemeParams {
        let rlwe = params.rlwe().literal();
        let primes = PrimeLists { q: rlwe.q.clone(), p: rlwe.p.clone(), aux: rlwe.aux.clone() };
        let literal = ParamsLiteral { primes: Some(primes), ..params.literal().clone() };
        if S::NAME == SchemeName::Bfv.name() { SchemeParams::Bfv(literal) } else { SchemeParams::Bgv(literal) }
    }

    fn judge(&self, params: &Params<S>, switches: usize) -> Result<Option<String>> {
        let limit = self.description.failure;
        let words = |budget| format!("noise: {budget:.1} bits remain at the end, at failure probability {limit}");
        Ok(self.budget(params, switches)?.map(words))
    }
    fn trace(&self, params: &Params<S>, switches: usize) -> Result<Traced> {
        let device = recorder(params.rlwe());
        let trace = Trace::new(device.reader());
        self.run(params, device, switches, Some(&trace))?;
        Ok(trace.take())
    }
}
